/* count.h - counts of events x threads x CPUs, opened together, read together, summed by event, CPU or thread.
 *
 *     perfring_counts_open(&counts, 0);
 *     perfring_counts_add(counts, events, target);            all events of a list; groups stay groups
 *     perfring_counts_enable(counts);
 *     ...
 *     perfring_counts_read(counts);                           one read(2) for each fd or group
 *     perfring_counts_sum(counts, event, PERFRING_COUNTS_ALL, 0, &count);
 *
 * Context: one thread at a time, not signal handlers.  Needs no ring, starts no thread, installs no handler.  The fds are this
 * object's: close closes them.  read(2) of events: docs/abi.md 2.2; multiplexed counts: perfring_event_estimate.
 */
#ifndef PERFRING_COUNT_H
#define PERFRING_COUNT_H

#include <perfring/event.h>
#include <perfring/target.h>

PERFRING_BEGIN

struct perfring_counts;

/* A count of one fd, or a sum of many; the times of a sum are sums too. */
struct perfring_count {
	uint64_t value;
	uint64_t enabled; /* ns */
	uint64_t running; /* ns */
	uint64_t lost;    /* records that a sampling event lost (since Linux 6.0; else 0) */
	uint32_t fds;     /* fds that were read */
	uint32_t failed;  /* fds that could not be read (error state, PMU gone): they are not in value, enabled, running, lost */
};

/* allowed: bits of perfring_fallback, features that may be dropped so that an event opens.  With MISSING, add does not
 * fail because the machine lacks an event; perfring_counts_error has the reason.  CPU_CLOCK has no effect: a count never becomes a clock.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_counts_open(struct perfring_counts **counts, uint64_t allowed);
PERFRING_API void perfring_counts_close(struct perfring_counts *counts);

/* The events of a text ("instructions:u,page-faults"; event.h) of the calling thread, disabled, with PERFRING_FALLBACK_ALL:
 * an event that the machine lacks is in perfring_counts_error, not in the result.  Returns 0 or -errno of the text or of add,
 * explained by perfring_counts_refusal; *counts is to be closed in both cases, and is NULL for want of memory. */
PERFRING_API int perfring_counts_open_self(struct perfring_counts **counts, const char *events);

/* Opens each event of the list for each thread and CPU of the target, siblings in their leader's group.  Sets read_format:
 * the two times, ID, LOST if the kernel knows it, GROUP for a leader.  Clears `disabled` and `enable_on_exec` in siblings: they
 * start and stop with their leader, whose attr says whether it counts at once.  Keeps no pointer to `events` or `target`.
 * Raises the soft limit of open files up to the hard limit.  Skips threads that exit
 * meanwhile.  Returns 0 (with MISSING also if no event of the list can be counted); or -errno, explained by
 * perfring_counts_refusal: then nothing of the list stays open. */
PERFRING_API int perfring_counts_add(struct perfring_counts *counts, const struct perfring_events *events,
				     const struct perfring_target *target);

/* Why the last add failed and what to change: sentences for the user; "" if it did not fail, or for NULL.  Valid until the next
 * add or close. */
PERFRING_API const char *perfring_counts_refusal(const struct perfring_counts *counts);

/* With PERFRING_FALLBACK_MISSING: why an event is not counted.  Returns 0 if it is counted; -ENOENT, -ENODEV, -ENXIO,
 * -EOPNOTSUPP or -EINVAL, with which the kernel refused it, or its group's leader, for every thread and CPU; -EINVAL also
 * for an unknown event.  perfring_counts_sum returns -ENOENT for an event that is not counted. */
PERFRING_API int perfring_counts_error(const struct perfring_counts *counts, uint32_t event);

/* The features that were dropped so that the event opened (bits of perfring_fallback); of one that is not counted, those that were
 * dropped before the last refusal. */
PERFRING_API uint64_t perfring_counts_given_up(const struct perfring_counts *counts, uint32_t event);

/* Sentences for the user: why an event is not counted, or which features were dropped; "" if it is counted as asked.  Like
 * snprintf. */
PERFRING_API int64_t perfring_counts_explain(const struct perfring_counts *counts, uint32_t event, char *buffer,
					     size_t size);

/* Starts, stops, sets to 0 every event, by its leader where it has one.  All are tried.  Returns 0 or the first -errno. */
PERFRING_API int perfring_counts_enable(struct perfring_counts *counts);
PERFRING_API int perfring_counts_disable(struct perfring_counts *counts);
PERFRING_EXPERIMENTAL int perfring_counts_reset(struct perfring_counts *counts);

/* Reads every fd; a group by one read(2) of its leader.  Returns 0: fds that cannot be read are counted in `failed`. */
PERFRING_API int perfring_counts_read(struct perfring_counts *counts);

/* The number of events, in the order in which they were added; the attr of one as it was opened, NULL: no such event, valid until
 * close. */
PERFRING_API uint32_t perfring_counts_count(const struct perfring_counts *counts);
PERFRING_EXPERIMENTAL const struct perf_event_attr *perfring_counts_attr(const struct perfring_counts *counts, uint32_t event);

/* The name in the list of events; NULL: no such event.  Valid until close. */
PERFRING_API const char *perfring_counts_name(const struct perfring_counts *counts, uint32_t event);

/* One fd of the set, with its last read: fds is 1, or where that failed 0, and failed 1. */
struct perfring_counts_fd {
	int fd;
	int32_t tid; /* -1: all */
	int32_t cpu; /* -1: any */
	uint32_t event;
	uint64_t id;
	struct perfring_count count;
};

/* The i-th fd, from 0.  Returns 1, or 0 after the last. */
PERFRING_API int perfring_counts_at(const struct perfring_counts *counts, uint32_t i, struct perfring_counts_fd *fd);

enum perfring_counts_scope {
	PERFRING_COUNTS_ALL,
	PERFRING_COUNTS_CPU,    /* of CPU `which` */
	PERFRING_COUNTS_THREAD, /* of thread `which` */
};

/* Sums the last read; before the first, all numbers are 0.  Returns 0; -EINVAL (unknown event); -ENOENT (no fd in that scope). */
PERFRING_API int perfring_counts_sum(const struct perfring_counts *counts, uint32_t event,
				     enum perfring_counts_scope scope, int32_t which, struct perfring_count *sum);

PERFRING_END

#endif
