/* split.h - the sample of a group as one sample for each event that counted.
 *
 * A sample with READ (`{a,b}:S`) holds the counts of all events of the group.  perf shows it as one sample for each event
 * whose count has changed since the last sample with that event; the period is the difference:
 *
 *     READ of the record             event a      event b
 *     {a=100 b=0}                    period 100   -
 *     {a=250 b=3}                    period 150   period 3
 *
 *     perfring_split_begin(split, item.format, &sample);           decoded by item.format
 *     while ((one = perfring_split_next(split, &format)) == 1)
 *             use(format->index, &sample);                        sample.period, sample.id: the event's
 *
 * Every other sample comes once, unchanged; so does a sample whose read_format has no ID.  Put samples in time order:
 * differences are to the last value.
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

/* formats: the set whose ids the samples hold; it must outlive the split.  Memory: 48 bytes for each value that is
 * remembered: one an id, and of events that threads inherit (attr.inherit, with TID) one an id and thread.  At most
 * PERFRING_SPLIT_MAX since which any was used, and as many older ones: 50 MB; beyond that those used longest ago are
 * forgotten, as if their events had begun anew.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_split_open(struct perfring_split **split, const struct perfring_format_set *formats);
PERFRING_API void perfring_split_close(struct perfring_split *split);

/* Begins with a sample that was decoded by this format, which is the set's.  The sample must stay until the last
 * next, which writes into it. */
PERFRING_API void perfring_split_begin(struct perfring_split *split, const struct perfring_format *format,
				       struct perfring_sample *sample);

/* The next event that counted: its format, and its identifier, id and period (with their bit PERIOD) in the sample.  A value
 * smaller than the last one is that of a counter that began anew (a reset, or another thread of the same number): all of it
 * counts.  Returns 1; 0 after the last, which may be at once; -ENOMEM. */
PERFRING_API int perfring_split_next(struct perfring_split *split, const struct perfring_format **format);

/* Values so far whose id is in no format: they are of no event. */
PERFRING_API uint64_t perfring_split_unknown(const struct perfring_split *split);

PERFRING_END

#endif
