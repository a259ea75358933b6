/* swap_fuzz.c - any bytes as a record of the other byte order, under any format, and as an attr: swapped there and back
 * they are the same, and what they decode to is what the swapped ones decode to.  The first 48 bytes are the attr's
 * members that shape records, in our order; the rest is one foreign record. */
#include <stdlib.h>
#include <perfring/swap.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
	MOST = UINT16_MAX + 1,
};

/* Each is used from its far end: a sanitizer sees the first byte after it. */
static uint8_t foreign[MOST], native[MOST], back[MOST], words[MOST];
static uint8_t encoded[MOST + 8], native_encoded[MOST + 8];

static void must(bool held)
{
	if (!held)
		abort();
}

static bool equal(const struct perfring_fault *a, const struct perfring_fault *b)
{
	return a->at == b->at && a->what && b->what && !strcmp(a->what, b->what);
}

/* Whether it may be read in another shape once it is swapped (swap.h). */
static bool is_ambiguous(const struct perfring_format *format, int64_t result)
{
	return format && (format->sample_type & PERFRING_SAMPLE_BRANCH_STACK) &&
	       (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS)) &&
	       (result < 0 || (format->sample_type & (PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_AUX)));
}

static void try_sample(const struct perfring_format *format, const struct perf_event_header *from,
		       const struct perf_event_header *swapped, size_t size, bool is_good)
{
	struct perfring_fault fault = {-1, NULL}, native_fault = {-1, NULL};
	struct perfring_sample sample, native_sample;
	void *buffer = words + MOST - size;
	int error = perfring_sample_decode_foreign(format, from, &sample, buffer, size, &fault);
	int64_t needed;

	must(error == perfring_sample_decode(format, swapped, &native_sample, &native_fault));
	must(error ? error == -EBADMSG && !is_good && equal(&fault, &native_fault) : is_good);
	if (error)
		return;
	must(sample.present == native_sample.present && sample.trailing_size == native_sample.trailing_size);
	needed = perfring_sample_encode(format, &sample, encoded, sizeof(encoded));
	must(perfring_sample_encode(format, &native_sample, native_encoded, sizeof(native_encoded)) == needed);
	must(needed < 0 || !memcmp(encoded, native_encoded, (size_t)needed));
}

static void try_record(const struct perfring_format *format, const struct perf_event_header *from, size_t size)
{
	struct perfring_fault fault = {-1, NULL}, back_fault = {-1, NULL}, decode_fault = {-1, NULL};
	struct perf_event_header *to = (void *)(native + MOST - size), *again = (void *)(back + MOST - size);
	int64_t result = perfring_record_to_native(format, from, to, size, &fault);
	struct perfring_record decoded;
	struct perfring_sample sample;
	uint32_t type;
	int error;

	must(result == (int64_t)size ||
	     (result == -EBADMSG && fault.what && fault.at >= 0 && fault.at <= (int64_t)size));
	memcpy(&type, to, sizeof(type));
	if (type == PERFRING_RECORD_SAMPLE && is_ambiguous(format, result)) {
		perfring_record_to_foreign(format, to, again, size, NULL);
		perfring_sample_decode_foreign(format, from, &sample, words + MOST - size, size, NULL);
		return;
	}
	must(perfring_record_to_foreign(format, to, again, size, &back_fault) == result);
	must(!memcmp(again, from, size));
	must(result >= 0 || equal(&fault, &back_fault));
	if (type == PERFRING_RECORD_SAMPLE) {
		if (format)
			try_sample(format, from, to, size, result >= 0);
		return;
	}
	error = perfring_record_decode(format, to, &decoded, &decode_fault);
	must(error == (result < 0 ? result : 0) && (!error || decode_fault.at == fault.at));
}

static void try_attr(const uint8_t *bytes, size_t size)
{
	int64_t needed;
	uint32_t own;

	memcpy(&own, bytes + 4, sizeof(own));
	own = __builtin_bswap32(own);
	if ((own ? own : 64) > size)
		return;
	needed = perfring_attr_to_native((const void *)bytes, native, sizeof(native));
	must(needed == (own ? own : 64) || (needed == -EINVAL && (own < 64 || own > 4096)));
	if (needed < 0)
		return;
	must(perfring_attr_to_foreign((const void *)native, back, (size_t)needed) == needed);
	must(!memcmp(back, bytes, (size_t)needed));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfring_format format;
	uint8_t *from;

	memset(&format, 0, sizeof(format));
	if (size < 48 + sizeof(struct perf_event_header) || size - 48 > UINT16_MAX)
		return 0;
	memcpy(&format, bytes, 48);
	perfring_format_plan(&format);
	bytes += 48;
	size -= 48;
	from = foreign + MOST - size;
	memcpy(from, bytes, size);
	if (size >= 64)
		try_attr(from, size);
	from[6] = (uint8_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? size >> 8 : size);
	from[7] = (uint8_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? size : size >> 8);
	try_record(&format, (const void *)from, size);
	if (native[MOST - size] == 9 || native[MOST - size + 3] == 9) /* a SAMPLE is words, without a format */
		return 0;
	try_record(NULL, (const void *)from, size);
	return 0;
}
