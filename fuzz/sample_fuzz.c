/* sample_fuzz.c - any bytes as a SAMPLE, under any format: decoded, and encoded into the same bytes.  The first 48
 * bytes are the attr's members that shape records, the rest is one record. */
#include <stdlib.h>
#include <perfring/sample.h>
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The same bytes come back; an end at no multiple of 8 is padded. */
static void try_encode(const struct perfring_format *format, const struct perfring_sample *sample,
		       const struct perf_event_header *record)
{
	static unsigned char buffer[UINT16_MAX + 1];
	struct perf_event_header header = *record;
	int64_t size = perfring_sample_size(format, sample);

	if (size != (record->size + 7) / 8 * 8) {
		if (size != -EINVAL || record->size <= PERFRING_RECORD_MAX)
			abort();
		return;
	}
	header.size = (uint16_t)size;
	if (perfring_sample_encode(format, sample, buffer, (size_t)size - 1) != -ENOSPC ||
	    perfring_sample_encode(format, sample, buffer, (size_t)size) != size ||
	    memcmp(buffer, &header, sizeof(header)) ||
	    memcmp(buffer + sizeof(header), record + 1, record->size - sizeof(header)))
		abort();
	for (size_t at = record->size; at < (size_t)size; at++)
		if (buffer[at])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct perfring_format constant = {
		.sample_type =
			PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_RAW,
	};
	struct perfring_format format;
	struct perfring_sample sample;
	struct perfring_fault fault = {-1, NULL};
	struct perf_event_header *record;
	int ret;

	memset(&format, 0, sizeof(format));
	if (size < 48 + sizeof(*record) || size - 48 > UINT16_MAX)
		return 0;
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	bytes += 48;
	size -= 48;
	record = malloc(size);
	if (!record)
		return 0;
	memcpy(record, bytes, size);
	record->type = PERF_RECORD_SAMPLE;
	record->size = (uint16_t)size;
	perfring_format_time_of(&format, record);
	perfring_format_id_of(&format, record);
	ret = perfring_sample_decode(&format, record, &sample, &fault);
	if (ret ? ret != -EBADMSG || !fault.what || fault.at < 0 || fault.at > (int64_t)size
		: (const uint8_t *)sample.trailing + sample.trailing_size != (const uint8_t *)record + size)
		abort();
	if (ret == 0)
		try_encode(&format, &sample, record);
	perfring_sample_decode(&constant, record, &sample, NULL);
	free(record);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
	return mutate(bytes, size, most, seed, PERFRING_RECORD_SAMPLE);
}
