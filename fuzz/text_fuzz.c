/* text_fuzz.c - any bytes as any record, under any format, as text: whole, in too short a buffer, and field by field.  The
 * first 48 bytes are the attr's members that shape records, the rest is one record. */
#include <stdlib.h>
#include <perfring/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

static void show(const struct perfring_format *format, const struct perf_event_header *record)
{
	int64_t length = perfring_record_text(format, record, NULL, 0);
	char part[24], *text;

	must(length > 0);
	text = malloc((size_t)length + 1);
	must(text && perfring_record_text(format, record, text, (size_t)length + 1) == length);
	must(strlen(text) == (size_t)length);
	for (char *c = text; *c; c++)
		must(*c >= 0x20 && *c < 0x7f);
	/* with a shorter buffer: the beginning of it, and the same length */
	must(perfring_record_text(format, record, part, sizeof(part)) == length);
	must(strlen(part) < sizeof(part) && !strncmp(part, text, strlen(part)));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_format format;
	struct perfring_sample sample;
	struct perf_event_header *record;
	char text[256];

	memset(&format, 0, sizeof(format));
	if (size < 48 + sizeof(*record) || size - 48 > UINT16_MAX)
		return 0;
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	format.arch = bytes[48] % 8; /* the type's first byte: as good as any */
	size -= 48;
	record = malloc(size);
	must(record);
	memcpy(record, bytes + 48, size);
	record->size = (uint16_t)size;
	show(&format, record);
	show(NULL, record);
	if (record->type == PERFRING_RECORD_SAMPLE && !perfring_sample_decode(&format, record, &sample, NULL))
		for (unsigned bit = 0; bit < 64; bit++)
			if (sample.present >> bit & 1)
				must(perfring_field_text(&sample, UINT64_C(1) << bit, text, sizeof(text)) >= 0);
	if (size >= sizeof(*record) + 64) {
		const struct perf_event_attr *attr = (const struct perf_event_attr *)(const void *)(record + 1);

		if (attr->size <= size - sizeof(*record))
			perfring_attr_text(attr, text, sizeof(text));
	}
	free(record);
	return 0;
}
