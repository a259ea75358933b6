/* split.h - the sample of a group as one sample for each event that counted.
 *
 * perfring's commands show the samples of groups by it, as perf's do.  A sample with READ (`{a,b}:S`) holds the counts of all events
 * of the group.  perf shows it as one sample for each event whose count has changed since the last sample with that event; the
 * period is the difference:
 *
 *     READ of the record             event a      event b
 *     {a=100 b=0}                    period 100   -
 *     {a=250 b=3}                    period 150   period 3
 *
 *     perfring_split_begin(split, item.format, &sample);           decoded by item.format
 *     while ((one = perfring_split_next(split, &format)) == 1)
 *             use(format->index, &sample);                        sample.period, sample.id: the event's
 *
 * A sample with READ but without a group is one such event.  A sample without READ, or whose read_format has no ID, comes
 * once, unchanged.  Put the samples of each id (with inherit: of each id and thread) in time order, because differences are
 * to the last value.
 *
 * Context: one thread at a time for each split; not signal handlers. */
#ifndef PERFRING_SPLIT_H
#define PERFRING_SPLIT_H

#include <perfring/format.h>
#include <perfring/sample.h>

PERFRING_BEGIN

enum {
	PERFRING_SPLIT_MAX = 1 << 19, /* values in one table */
};

struct perfring_split;

/* formats: the set whose ids the samples hold; it must outlive the split.  One value is
 * remembered for each id, and for each id and thread of an event that threads inherit (attr.inherit, with TID): 48 bytes.
 * They are in two tables of at most PERFRING_SPLIT_MAX values, 50 MB in all: those used lately, and older ones.  When the
 * first is full, it becomes the older one, and what that held is forgotten, as if those events had begun anew.  Returns 0
 * or -ENOMEM. */
PERFRING_API int perfring_split_open(struct perfring_split **split, const struct perfring_format_set *formats);
PERFRING_API void perfring_split_close(struct perfring_split *split);

/* Begins with a sample that was decoded by this format, which is the set's.  The sample, which next writes into, and the
 * record that it was decoded from must stay until the last next.  What an earlier sample still had is dropped: the next
 * difference of those events then covers both. */
PERFRING_API void perfring_split_begin(struct perfring_split *split, const struct perfring_format *format,
				       struct perfring_sample *sample);

/* The next event that counted: its format, and its identifier, id and period in the sample, and PERFRING_SAMPLE_PERIOD
 * in its `present`.  A value
 * smaller than the last one is that of a counter that began anew (a reset, or another thread of the same number): all of it
 * counts.  Returns 1; 0 after the last, which may be at once; -ENOMEM. */
PERFRING_API int perfring_split_next(struct perfring_split *split, const struct perfring_format **format);

/* The number of values so far whose id is in no format: they belong to no event, and are skipped. */
PERFRING_API uint64_t perfring_split_unknown(const struct perfring_split *split);

PERFRING_END

#endif
