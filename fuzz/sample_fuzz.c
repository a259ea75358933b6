/* sample_fuzz.c - any bytes as a SAMPLE, under any format: the first 48 bytes are the attr's members that shape records,
 * the rest is one record. */
#include <stdlib.h>
#include <perfring/sample.h>
#include <perfring/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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
	char text[256];
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
	for (unsigned bit = 0; ret == 0 && bit < 64; bit++)
		if (sample.present >> bit & 1)
			perfring_field_text(&sample, UINT64_C(1) << bit, text, sizeof(text));
	perfring_sample_decode(&constant, record, &sample, NULL);
	if (perfring_record_text(&format, record, text, sizeof(text)) < 0)
		abort();
	free(record);
	return 0;
}
