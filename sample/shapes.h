/* shapes.h - the shapes of samples, for the decoders of both byte orders.
 *
 * Included by sample.c and swap.c.  What it decides for one record does not depend on others.
 */
#ifndef PERFRING_SAMPLE_SHAPES_H
#define PERFRING_SAMPLE_SHAPES_H

#include <perfring/sample.h>

/* The fields before those of varying length. */
enum {
	PLACE = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME,
	IDS = PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID,
	COUNT = PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD,
	FRONT = PERFRING_SAMPLE_IDENTIFIER | PLACE | IDS | COUNT,
	FRONT_SIZE = offsetof(struct perfring_sample, read) - offsetof(struct perfring_sample, identifier),
};

static_assert(FRONT_SIZE == 72 && __builtin_popcount(FRONT) == 9,
	      "the front is nine words, in the struct as in the record");

/* What the kernel may leave out of a branch stack (docs/abi.md 6, 14.6), and the bit of branch_sample_type that asked
 * for it.  The decoders try them in this order. */
static const struct {
	uint64_t when;
	unsigned shape;
} branch_tries[] = {
	{0, 0},
	{PERFRING_SAMPLE_BRANCH_HW_INDEX, PERFRING_BRANCH_SHAPE_NO_HW_IDX},
	{PERFRING_SAMPLE_BRANCH_COUNTERS, PERFRING_BRANCH_SHAPE_NO_COUNTERS},
};

#define BRANCH_TRIES (sizeof(branch_tries) / sizeof(branch_tries[0]))

/* The column `how` of a branch stack: what the shape has of branch_sample_type, and bit 63 where no branches are
 * possible. */
static inline uint64_t perfring__branch_how(uint64_t branch_sample_type, unsigned shape)
{
	if (shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX) {
		branch_sample_type &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_HW_INDEX;
		branch_sample_type |= UINT64_C(1) << 63;
	}
	if (shape & PERFRING_BRANCH_SHAPE_NO_COUNTERS)
		branch_sample_type &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_COUNTERS;
	return branch_sample_type;
}

static inline unsigned shape_of(const struct perfring_format *format, const struct perfring_sample *sample)
{
	if (!(sample->present & PERFRING_SAMPLE_BRANCH_STACK))
		return 0;
	if ((format->branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && !sample->branch_stack.has_hw_idx)
		return PERFRING_BRANCH_SHAPE_NO_HW_IDX;
	if ((format->branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS) && !sample->branch_stack.counters)
		return PERFRING_BRANCH_SHAPE_NO_COUNTERS;
	return 0;
}

/* Decodes by each shape that is possible.  The kernel does not say when it leaves out hw_idx or counters: the shape that
 * uses up the record is the right one.  Where none does, as with the fields of a newer kernel, the first that fits. */
PERFRING_FOLDED int try_shapes(const struct perfring_format *format,
			       int (*decode)(const void *of, struct perfring_sample *sample,
					     struct perfring_fault *fault, unsigned shape),
			       const void *of, struct perfring_sample *sample, struct perfring_fault *fault)
{
	unsigned fits = 0;
	bool found = false;
	size_t i;

	for (i = 0; i < BRANCH_TRIES; i++) {
		if ((format->branch_sample_type & branch_tries[i].when) != branch_tries[i].when ||
		    decode(of, sample, NULL, branch_tries[i].shape))
			continue;
		if (!sample->trailing_size)
			return 0;
		if (!found)
			fits = branch_tries[i].shape;
		found = true;
	}
	return decode(of, sample, fault, fits);
}

static inline bool branches_may_lack(const struct perfring_format *format)
{
	return (format->sample_type & PERFRING_SAMPLE_BRANCH_STACK) &&
	       (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS));
}

#endif
