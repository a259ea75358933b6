/* record_fuzz.c - any bytes as any record but SAMPLE, under any format: decoded, encoded and decoded again.  The
 * first 48 bytes are the attr's members that shape records, the rest is one record. */
#include <stdlib.h>
#include <perfring/check.h>
#include <perfring/record.h>
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

/* In just the buffer that it asks for.  NULL: what was decoded needs more than a record can have. */
static struct perf_event_header *encode(const struct perfring_format *format, const struct perfring_record *decoded)
{
	int64_t length = perfring_record_size(format, decoded);
	struct perf_event_header *buffer;
	uint16_t misc = decoded->misc;

	/* The file says whether there is a build id: a bit that another event left set is not written. */
	if (decoded->type == PERFRING_RECORD_MMAP2 && !decoded->is.mmap2.file.has_build_id)
		misc &= (uint16_t)~PERFRING_RECORD_MISC_MMAP_BUILD_ID;
	must(length == -EINVAL ||
	     (length >= (int64_t)sizeof(*buffer) && length <= 65535 && (decoded->type >= 64 || length % 8 == 0)));
	if (length < 0)
		return NULL;
	buffer = malloc((size_t)length);
	must(buffer && perfring_record_encode(format, decoded, buffer, (size_t)length - 1) == -ENOSPC);
	must(perfring_record_encode(format, decoded, buffer, (size_t)length) == length);
	must(buffer->type == decoded->type && buffer->misc == misc && buffer->size == length);
	return buffer;
}

static void try(const struct perfring_format *format, const struct perf_event_header *record)
{
	struct perfring_fault fault = {-1, NULL};
	struct perfring_finding finding;
	struct perf_event_header *once, *twice;
	struct perfring_record decoded;
	int ret = perfring_record_decode(format, record, &decoded, &fault);

	if (ret) {
		must(ret == (record->type == PERFRING_RECORD_SAMPLE ? -EINVAL : -EBADMSG));
		must(ret == -EINVAL || (fault.what && fault.at >= 0 && fault.at <= record->size));
		return;
	}
	must((const uint8_t *)decoded.trailing + decoded.trailing_size +
		     (format && record->type < 64 ? perfring_format_trailer(format) : 0) ==
	     (const uint8_t *)record + record->size);
	once = encode(format, &decoded);
	/* What a kernel could have written comes back as it was; and whatever we made is made the same again. */
	if (record->type < 64 && !perfring_record_examine(format, record, record->size, &finding))
		must(once && once->size == record->size && !memcmp(once, record, record->size));
	if (!once)
		return;
	must(!perfring_record_decode(format, once, &decoded, NULL));
	twice = encode(format, &decoded);
	must(twice && once->size == twice->size && !memcmp(once, twice, once->size));
	free(twice);
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_format format;
	struct perf_event_header *record;

	memset(&format, 0, sizeof(format));
	if (size < 48 + sizeof(*record) || size - 48 > UINT16_MAX)
		return 0;
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	size -= 48;
	record = malloc(size);
	must(record);
	memcpy(record, bytes + 48, size);
	record->size = (uint16_t)size;
	perfring_format_time_of(&format, record);
	perfring_format_id_of(&format, record);
	try(&format, record);
	try(NULL, record);
	free(record);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
	return mutate(bytes, size, most, seed, 0);
}
