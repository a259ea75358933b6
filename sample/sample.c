/* sample.c - decoding and encoding of samples whose format is known only at run time.
 *
 * The compiled parts of sample.h: what its inlines call if the format is no constant.  The fast path reads the fields of one word
 * before the first one of variable length by one test of the size; others take their own functions.  A branch stack may have
 * several shapes (shapes.h).  No allocation; signal handlers decode too.
 */
#include "shapes.h"
#include "within.h"

struct input {
	const struct perfring_format *format;
	const struct perf_event_header *record;
	uint32_t size;
};

static __attribute__((noinline)) int decode_shape(const void *of, struct perfring_sample *sample,
						  struct perfring_fault *fault, unsigned shape)
{
	const struct input *input = of;

	return perfring_sample_decode_shape(input->format, input->record, input->size, sample, fault, shape);
}

/* The slow path: any fields, any size. */
static __attribute__((noinline)) int decode_slow(const struct perfring_format *format,
						 const struct perf_event_header *record, struct perfring_sample *sample,
						 struct perfring_fault *fault, uint32_t size)
{
	if (branches_may_lack(format))
		return try_shapes(format, decode_shape, &(struct input){format, record, size}, sample, fault);
	return perfring_sample_decode_shape(format, record, size, sample, fault, 0);
}

/* The fast path: samples of these fields that are as long as the whole front, even if they lack some of its words.  One
 * test of the size serves all words of the front.  Other fields have functions of their own, so that this path needs no
 * more registers than a call may clobber. */
enum {
	LISTS = PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_RAW,
	COMMON = FRONT | PERFRING_SAMPLE_READ | LISTS,
};

/* run: fields of FRONT that are adjacent in the record.  Mostly a sample has all of them or none. */
PERFRING_FOLDED const unsigned char *take_run(const unsigned char *from, uint64_t type, uint64_t run,
					      struct perfring_sample *sample)
{
	const size_t size = 8 * (size_t)__builtin_popcountll(run);
	unsigned char *to = (unsigned char *)sample + offsetof(struct perfring_sample, identifier);
	bool before = true;

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	before = before && !(run & PERFRING_SAMPLE_##NAME); \
	to += before ? 8 : 0;
#include <perfring/fields.def>
	if ((type & run) == run) {
		memcpy(to, from, size);
		return from + size;
	}
	if (!(type & run))
		return from;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (run & type & PERFRING_SAMPLE_##NAME) { \
		memcpy(to, from, 8); \
		from += 8; \
	} \
	to += run & PERFRING_SAMPLE_##NAME ? 8 : 0;
#include <perfring/fields.def>
	return from;
}

/* Without noipa, GCC passes the format's members one by one, more than there are registers. */
#if defined(__has_attribute) && __has_attribute(noipa)
#define APART __attribute__((noipa))
#else
#define APART __attribute__((noinline))
#endif

static APART int decode_lists(const struct perfring_format *format, const struct perf_event_header *record,
			      struct perfring_sample *sample, struct perfring_fault *fault, uint32_t size, uint32_t at)
{
	return perfring_sample_decode_fields(format, record, at, size, format->sample_type & LISTS, sample, fault, 0);
}

static APART int decode_read(const struct perfring_format *format, const struct perf_event_header *record,
			     struct perfring_sample *sample, struct perfring_fault *fault, uint32_t size, uint32_t at)
{
	int error = perfring_sample_decode_fields(format, record, at, size, PERFRING_SAMPLE_READ, sample, fault, 0);

	if (error || !(format->sample_type & LISTS))
		return error;
	return decode_lists(format, record, sample, fault, size, size - sample->trailing_size);
}

/* Inline in both functions below: a call would cost measurable time. */
PERFRING_FOLDED int decode(const struct perfring_format *format, const struct perf_event_header *record, uint32_t size,
			   struct perfring_sample *sample, struct perfring_fault *fault)
{
	const perfring_header *header = (const perfring_header *)record;
	const unsigned char *from = (const unsigned char *)(header + 1);
	uint64_t type = format->sample_type;
	uint32_t at;

	/* Without a plan `least` is 0, which wraps to the largest number. */
	if (PERFRING_UNLIKELY(size < sizeof(*header) + FRONT_SIZE || format->least - 1u >= size ||
			      (type & ~(uint64_t)COMMON)))
		return decode_slow(format, record, sample, fault, size);
	sample->misc = header->misc;
	sample->present = type;
	from = take_run(from, type, PERFRING_SAMPLE_IDENTIFIER, sample);
	from = take_run(from, type, PLACE, sample);
	if (type & IDS)
		from = take_run(from, type, IDS, sample);
	from = take_run(from, type, COUNT, sample);
	at = (uint32_t)(from - (const unsigned char *)record);
	if (type & PERFRING_SAMPLE_READ)
		return decode_read(format, record, sample, fault, size, at);
	return perfring_sample_decode_fields(format, record, at, size, type & LISTS, sample, fault, 0);
}

int perfring_sample_decode_any(const struct perfring_format *format, const struct perf_event_header *record,
			       struct perfring_sample *sample, struct perfring_fault *fault)
{
	/* size is read once: a peer may be able to write to this memory (reader.h). */
	return decode(format, record, ((const volatile perfring_header *)record)->size, sample, fault);
}

int perfring__sample_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				   uint32_t size, struct perfring_sample *sample, struct perfring_fault *fault)
{
	return decode(format, record, size, sample, fault);
}

int64_t perfring_sample_size_any(const struct perfring_format *format, const struct perfring_sample *sample)
{
	return perfring_sample_size_shape(format, sample, sample->trailing_size);
}

int64_t perfring_sample_encode_any(const struct perfring_format *format, const struct perfring_sample *sample,
				   void *buffer, size_t size)
{
	return perfring_sample_encode_shape(format, sample, buffer, size, sample->trailing_size);
}
