/* check_fuzz.c - any bytes as any record, under any format, checked: what passes can be decoded, what cannot be decoded does
 * not pass, and a fault lies inside the record.  The first 48 bytes are the attr's members that shape records, the rest is
 * one record. */
#include <stdlib.h>
#include <perfring/check.h>
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

static int decode(const struct perfring_format *format, const struct perf_event_header *record)
{
	const perfring_header *header = (const perfring_header *)record;
	struct perfring_sample sample;
	struct perfring_record decoded;

	if (header->type != PERFRING_RECORD_SAMPLE)
		return perfring_record_decode(format, record, &decoded, NULL);
	return format ? perfring_sample_decode(format, record, &sample, NULL) : 0;
}

static void try(const struct perfring_format *format, const struct perf_event_header *record, size_t size)
{
	struct perfring_fault fault = {-1, NULL};
	const perfring_header *header = (const perfring_header *)record;
	int error = perfring_record_check(format, record, size, &fault), one;
	struct perfring_finding finding;

	must(!error || (error == -EBADMSG && fault.what && fault.at >= 0 && fault.at <= (int64_t)size));
	must(perfring_record_check(format, record, size, NULL) == error);
	one = perfring_record_examine(format, record, size, &finding);
	must(one == error || (one == 1 && !error));
	must(finding.severity == (one < 0 ? PERFRING_DAMAGE : one ? PERFRING_REMARK : PERFRING_NOTHING));
	must(error ? finding.at == fault.at && finding.what == fault.what
		   : !finding.what == !one && finding.at >= 0 && finding.at < (int64_t)size);
	if (size < sizeof(*header) || header->size > size)
		must(error);
	else if (decode(format, record))
		must(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_format format;
	struct perf_event_header *record;
	uint32_t stack;

	memset(&format, 0, sizeof(format));
	if (size < 48 || size - 48 > UINT16_MAX)
		return 0;
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	memcpy(&stack, bytes + 40, sizeof(stack)); /* of the flags: as good as any */
	format.sample_stack_user = stack % 3 * 64;
	size -= 48;
	record = malloc(size + 1); /* one off, so not aligned either, and its end is the end of what there is */
	must(record);
	record = (struct perf_event_header *)(void *)((unsigned char *)record + 1);
	memcpy(record, bytes + 48, size);
	try(&format, record, size);
	try(NULL, record, size);
	free((unsigned char *)record - 1);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
	return mutate(bytes, size, most, seed, 0);
}
