/* shapes.h - what both decoders of samples, of either byte order, know of their shapes. */
#ifndef PERFRING_SHAPES_H
#define PERFRING_SHAPES_H

#include <perfring/sample.h>

/* The fields in front of those that vary in length. */
enum {
	PLACE = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME,
	IDS = PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID,
	COUNT = PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD,
	FRONT = PERFRING_SAMPLE_IDENTIFIER | PLACE | IDS | COUNT,
	FRONT_SIZE = offsetof(struct perfring_sample, read) - offsetof(struct perfring_sample, identifier),
};

static_assert(FRONT_SIZE == 72 && __builtin_popcount(FRONT) == 9,
	      "the front: nine words, in the struct as in the record");

/* What the kernel may leave out of a branch stack (docs/abi.md 6, 14.6), and which bit of branch_sample_type asked for it:
 * tried in this order. */
static const struct {
	uint64_t when;
	unsigned shape;
} branch_tries[] = {
	{0, 0},
	{PERFRING_SAMPLE_BRANCH_HW_INDEX, PERFRING_BRANCH_SHAPE_NO_HW_IDX},
	{PERFRING_SAMPLE_BRANCH_COUNTERS, PERFRING_BRANCH_SHAPE_NO_COUNTERS},
};

#define BRANCH_TRIES (sizeof(branch_tries) / sizeof(branch_tries[0]))

/* The column `how` of a branch stack: of branch_sample_type what the shape has, and bit 63 where no branches can be. */
static inline uint64_t perfring_branch_how(uint64_t branch_sample_type, unsigned shape)
{
	if (shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX) {
		branch_sample_type &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_HW_INDEX;
		branch_sample_type |= UINT64_C(1) << 63;
	}
	if (shape & PERFRING_BRANCH_SHAPE_NO_COUNTERS)
		branch_sample_type &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_COUNTERS;
	return branch_sample_type;
}

/* The shape that a decoded sample has. */
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

static inline bool branches_may_lack(const struct perfring_format *format)
{
	return (format->sample_type & PERFRING_SAMPLE_BRANCH_STACK) &&
	       (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS));
}

#endif
