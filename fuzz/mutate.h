/* mutate.h - libFuzzer's mutations of 48 bytes of format and one record, every other one by shape (generate.h). */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <perfring/generate.h>

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

/* The engine's own, where there is an engine. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

/* type: what the fuzzer makes of every record; 0: it leaves the type alone. */
static size_t mutate(uint8_t *bytes, size_t size, size_t most, unsigned seed, uint32_t type)
{
	struct perfring_format format;
	struct perf_event_header header;

	if (LLVMFuzzerMutate && (seed & 1 || size < 48 || most < 48 + sizeof(header)))
		return LLVMFuzzerMutate(bytes, size, most);
	if (size < 48 || most < 48 + sizeof(header))
		return size;
	memset(&format, 0, sizeof(format));
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	if (size >= 48 + sizeof(header)) {
		memcpy(&header, bytes + 48, sizeof(header));
		header.size = size - 48 > UINT16_MAX ? UINT16_MAX : (uint16_t)(size - 48);
		header.type = type ? type : header.type;
		memcpy(bytes + 48, &header, sizeof(header));
	}
	return 48 + perfring_generate_mutate(&format, bytes + 48, size - 48, most - 48, seed);
}

#endif
