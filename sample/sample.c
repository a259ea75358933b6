/* sample.c - decoding of samples whose format is known only at run time. */
#include <perfring/sample.h>

/* The kernel leaves hw_idx and counters out without a word (ABI.md 6, 14.6): the shape that uses up the record is the
 * right one.  Where none does, which is what a newer kernel's fields look like, the first that fits. */
static __attribute__((noinline)) int decode_branches(const struct perfring_format *format,
						     const struct perf_event_header *record,
						     struct perfring_sample *sample, struct perfring_fault *fault)
{
	static const struct {
		uint64_t when;
		unsigned shape;
	} tries[] = {
		{0, 0},
		{PERFRING_SAMPLE_BRANCH_HW_INDEX, PERFRING_BRANCH_SHAPE_NO_HW_IDX},
		{PERFRING_SAMPLE_BRANCH_COUNTERS, PERFRING_BRANCH_SHAPE_NO_COUNTERS},
	};
	unsigned fits = 0;
	bool found = false;
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		if ((format->branch_sample_type & tries[i].when) != tries[i].when)
			continue;
		if (perfring_sample_decode_shape(format, record, sample, NULL, tries[i].shape))
			continue;
		if (!sample->trailing_size)
			return 0;
		if (!found)
			fits = tries[i].shape;
		found = true;
	}
	return perfring_sample_decode_shape(format, record, sample, fault, fits);
}

int perfring_sample_decode_any(const struct perfring_format *format, const struct perf_event_header *record,
			       struct perfring_sample *sample, struct perfring_fault *fault)
{
	if ((format->sample_type & PERFRING_SAMPLE_BRANCH_STACK) &&
	    (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS)))
		return decode_branches(format, record, sample, fault);
	return perfring_sample_decode_shape(format, record, sample, fault, 0);
}
