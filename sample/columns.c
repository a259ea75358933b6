/* columns.c - many samples decoded at once, into columns.
 *
 * perfring_columns_decode of sample.h.  If all columns stand before the first field of variable length, they have one offset in
 * all records: then each is copied without decoding.
 */
#include "within.h"

enum {
	MAX = sizeof(struct perfring_columns) / sizeof(void *),
	AHEAD = 1024, /* bytes that are prefetched while the walk waits for a size */
};

struct column {
	unsigned char *to;
	uint32_t at;     /* offset in the record; 0: it varies */
	uint32_t member; /* offset in struct perfring_sample */
};

/* The columns, by width. */
struct plan {
	struct column words[MAX];
	struct column halves[MAX];
	uint32_t word_count;
	uint32_t half_count;
	bool is_fixed; /* every column has one offset in all records */
	bool lacks;    /* a column has no field */
};

static void add(struct plan *plan, struct column *columns, uint32_t *count, struct column column, bool has)
{
	if (!column.to)
		return;
	plan->lacks = plan->lacks || !has;
	plan->is_fixed = plan->is_fixed && column.at;
	columns[(*count)++] = column;
}

#define COLUMN(a, after) \
	(struct column) \
	{ \
		(unsigned char *)columns->a, at ? at + (after) : 0, offsetof(struct perfring_sample, a) \
	}
#define ADD_number(a, b) add(plan, plan->words, &plan->word_count, COLUMN(a, 0), has)
#define ADD_numbers(a, b) \
	add(plan, plan->halves, &plan->half_count, COLUMN(a, 0), has); \
	add(plan, plan->halves, &plan->half_count, COLUMN(b, 4), has)
#define ADD_own(a, b)

static void plan_columns(struct plan *plan, const struct perfring_columns *columns, uint64_t sample_type)
{
	uint32_t at = sizeof(struct perf_event_header);
	bool has;

	plan->word_count = 0;
	plan->half_count = 0;
	plan->is_fixed = true;
	plan->lacks = false;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	has = sample_type & PERFRING_SAMPLE_##NAME; \
	PERFRING_FIELD_BY(ADD_, PERFRING_FIELD_KIND_##kind)(a, b); \
	if (has) \
		at = at && PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, columns, a, b) ? at + 8 : 0;
#include <perfring/fields.def>
}

/* What is wrong with the size of a record, or NULL. */
static const char *wrong_size(uint32_t size, size_t left, uint32_t least)
{
	if (size < sizeof(struct perf_event_header))
		return "record smaller than its header";
	if (size > left)
		return "record longer than the bytes there are";
	return size < least ? "sample shorter than its fields" : NULL;
}

static int64_t damaged(struct perfring_fault *fault, size_t at, const char *what, size_t row)
{
	if (row)
		return (int64_t)row;
	if (fault) {
		fault->at = (int64_t)at;
		fault->what = what;
	}
	return -EBADMSG;
}

PERFRING_FOLDED int64_t fill(const struct plan *plan, const struct perfring_format *format,
			     const unsigned char *records, size_t size, size_t *position, size_t rows,
			     struct perfring_fault *fault, bool is_fixed)
{
	uint32_t least = perfring_format_least(format); /* not format->least, which may be wrong */
	size_t at = *position, row, left;
	struct perfring_fault inside;
	struct perfring_sample sample;

	for (row = 0; row < rows && at < size; row++) {
		const volatile perfring_header *header = (const volatile perfring_header *)(const void *)(records + at);
		const unsigned char *from = records + at;
		const char *what;
		uint32_t taken, i;

		left = size - at;
		if (PERFRING_UNLIKELY(left < sizeof(*header)))
			return damaged(fault, at, "bytes end inside a header", row);
		if (header->type != PERF_RECORD_SAMPLE)
			break;
		taken = header->size;
		if (PERFRING_UNLIKELY(taken > left || taken < least)) {
			what = wrong_size(taken, left, least);
			return damaged(fault, at, what, row);
		}
		__builtin_prefetch((const void *)((uintptr_t)from + AHEAD));
		if (!is_fixed) {
			if (PERFRING_UNLIKELY(perfring__sample_decode_within(format, (const void *)from, taken, &sample,
									     &inside)))
				return damaged(fault, at + (size_t)inside.at, inside.what, row);
			from = (const unsigned char *)&sample;
		}
		for (i = 0; i < plan->word_count; i++)
			memcpy(plan->words[i].to + row * 8,
			       from + (is_fixed ? plan->words[i].at : plan->words[i].member), 8);
		for (i = 0; i < plan->half_count; i++)
			memcpy(plan->halves[i].to + row * 4,
			       from + (is_fixed ? plan->halves[i].at : plan->halves[i].member), 4);
		at += taken;
		*position = at;
	}
	return (int64_t)row;
}

int64_t perfring_columns_decode(const struct perfring_columns *columns, const struct perfring_format *format,
				const void *records, size_t size, size_t *position, size_t rows,
				struct perfring_fault *fault)
{
	struct plan plan;

	plan_columns(&plan, columns, format->sample_type);
	if (plan.lacks || *position > size)
		return -EINVAL;
	if (plan.is_fixed)
		return fill(&plan, format, records, size, position, rows, fault, true);
	return fill(&plan, format, records, size, position, rows, fault, false);
}
