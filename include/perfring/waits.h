/* waits.h - the threads that are off their CPUs, and for how long.  In libperfring-profile.
 *
 * For callers that take a stream's items themselves; profile_fill.h does all of this.  A wait begins with the sample of a context switch
 * (an event for which perfring_waits_is_switch) and ends with the SWITCH record of the thread's return:
 *
 *     sample of a switch     perfring_waits_begin(waits, &(struct perfring_wait){.tid = sample.tid, .begin = sample.time});
 *     any other record       ended = perfring_waits_take(waits, &record);        from ended->begin to item.time
 *     after the last item    while ((waiting = perfring_waits_next(waits)))      those that still wait
 *
 * The wait of a preempted thread is returned too, with is_ready: it only waited for a CPU (docs/formats.md).  Threads that have ended and idle CPUs (tid 0) do not wait.
 *
 * Items must come in time order, and SWITCH records must have the thread in their trailers (sample_id_all and PERFRING_SAMPLE_TID); a
 * record without it ends no wait.  An item's time may be before a wait's beginning, if the stream has the wrong times.
 *
 * Bounds: 1 048 576 threads that have waited or ended, whether they still wait or not (docs/limits.md).
 *
 * Context: one thread at a time; not signal handlers. */
#ifndef PERFRING_WAITS_H
#define PERFRING_WAITS_H

#include <perfring/format.h>
#include <perfring/record.h>

PERFRING_BEGIN

struct perfring_waits;

struct perfring_wait {
	uint32_t tid;
	uint32_t is_ready; /* 0 at the begin; perfring_waits_take sets it: another thread was put in its place */
	uint64_t begin;    /* ns, of the stream's clock */
	uint64_t own[4];   /* the caller's */
};

/* Returns 0; -ENOMEM: *waits is NULL. */
PERFRING_API int perfring_waits_open(struct perfring_waits **waits);

/* waits: may be NULL. */
PERFRING_API void perfring_waits_close(struct perfring_waits *waits);

/* Whether the event has a sample of each context switch: period 1, no frequency.  attr: may be NULL. */
PERFRING_API bool perfring_waits_is_switch(const struct perf_event_attr *attr);

/* Whether an event of the set, which may grow, reports returns: without them no wait ends.  formats: the same in each call. */
PERFRING_API bool perfring_waits_has_returns(struct perfring_waits *waits, const struct perfring_format_set *formats);

/* The thread wait->tid waits since wait->begin: this replaces its wait that is open.  A thread that has ended, tid 0 and tid
 * UINT32_MAX do not wait.  Copies *wait.
 * Returns 0; -EINVAL (begin is 0); -ENOSPC (too many threads are known); -ENOMEM. */
PERFRING_API int perfring_waits_begin(struct perfring_waits *waits, const struct perfring_wait *wait);

/* The wait of a thread; NULL: it does not wait.  The caller may change `own`.  Valid until: the next begin, take, next, forget or close. */
PERFRING_API struct perfring_wait *perfring_waits_find(const struct perfring_waits *waits, uint32_t tid);

/* Takes a record, of which SWITCH, SWITCH_CPU_WIDE, FORK, EXIT and COMM change anything.  Returns the wait that it ends, or NULL.  Valid as
 * that of perfring_waits_find.  Without memory a thread that has ended may wait. */
PERFRING_API const struct perfring_wait *perfring_waits_take(struct perfring_waits *waits,
								       const struct perfring_record *record);

/* Ends the wait of the thread with the lowest number and returns it; NULL: no thread waits.  After a
 * perfring_waits_begin it starts at the lowest again.  Valid as that of perfring_waits_find. */
PERFRING_API const struct perfring_wait *perfring_waits_next(struct perfring_waits *waits);

/* Forgets all waits. */
PERFRING_API void perfring_waits_forget(struct perfring_waits *waits);

PERFRING_END

#endif
