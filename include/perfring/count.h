/* count.h - counting sets: events x threads x CPUs, opened as one, read as one, summed as asked.
 *
 *     perfring_counts_open(&counts, 0);
 *     perfring_counts_add(counts, events, target);            all of one list, groups kept together
 *     perfring_counts_enable(counts);
 *     ...
 *     perfring_counts_read(counts);                           one read(2) for each fd or group
 *     perfring_counts_sum(counts, event, PERFRING_COUNTS_ALL, 0, &count);
 *
 * No ring, no thread, no signal handler.  Used by one thread at a time.  Not from signal handlers.
 */
#ifndef PERFRING_COUNT_H
#define PERFRING_COUNT_H

#include <perfring/event.h>
#include <perfring/target.h>

PERFRING_BEGIN

struct perfring_counts;

/* What was counted: of one fd, or summed.  The times of a sum are sums too. */
struct perfring_count {
	uint64_t value;
	uint64_t enabled; /* ns */
	uint64_t running; /* ns */
	uint64_t lost;    /* records that a sampling event lost (Linux 6.0; else 0) */
	uint32_t fds;     /* that were read */
	uint32_t failed;  /* that could not be: in error state, or their PMU is gone; they are in none of the above */
};

/* allowed: what may be given up so that an event opens (perfring_fallback); 0: nothing.  MISSING: an event that this
 * machine does not have (perfring_counts_error) is no error of its list.  CPU_CLOCK has no effect: time is no count of
 * another event. */
PERFRING_API int perfring_counts_open(struct perfring_counts **counts, uint64_t allowed);
PERFRING_API void perfring_counts_close(struct perfring_counts *counts);

/* The events of a text ("instructions:u,page-faults"; event.h) of the calling thread, disabled, with PERFRING_FALLBACK_ALL: an
 * event that the machine lacks is in perfring_counts_error, not in the result.  Returns 0 or -errno of the text or of add,
 * explained by perfring_counts_refusal; *counts is to be closed in both cases, and is NULL for want of memory. */
PERFRING_API int perfring_counts_open_self(struct perfring_counts **counts, const char *events);

/* Opens every event of the list for each thread and CPU of the target, a group's members into their leader's group.
 * read_format is set here: the two times, ID, LOST where the kernel knows it, GROUP for a group's leader.  Members are
 * not disabled nor enable_on_exec: they start and stop with their leader, at one moment.  The soft limit of open
 * files is raised as far as the hard one permits.  Threads that die before they are opened are passed over.  Returns 0;
 * on -errno nothing of it stays open and perfring_counts_refusal tells why.  With MISSING it is 0 also when not one of
 * its events is there to count. */
PERFRING_API int perfring_counts_add(struct perfring_counts *counts, const struct perfring_events *events,
				     const struct perfring_target *target);

/* Why the last add failed and what to change; "" if it did not, or for NULL. */
PERFRING_API const char *perfring_counts_refusal(const struct perfring_counts *counts);

/* Why an event is not counted, -errno; 0: it is counted.  Only with PERFRING_FALLBACK_MISSING is there one that is not:
 * ENOENT, ENODEV, ENXIO, EOPNOTSUPP or EINVAL at each place where it was tried, or its group's leader's error, for no
 * group is without its leader.  Its sums are -ENOENT.  -EINVAL also for a number that no event has. */
PERFRING_API int perfring_counts_error(const struct perfring_counts *counts, uint32_t event);

/* What was given up of an event (perfring_fallback): of one that is not counted, before it was refused last. */
PERFRING_API uint64_t perfring_counts_given_up(const struct perfring_counts *counts, uint32_t event);

/* The sentences for the user: why an event is not counted, or what was given up so that it is; "" when it is counted as
 * asked.  Like snprintf. */
PERFRING_API int64_t perfring_counts_explain(const struct perfring_counts *counts, uint32_t event, char *room,
					     size_t size);

PERFRING_API int perfring_counts_enable(struct perfring_counts *counts);
PERFRING_API int perfring_counts_disable(struct perfring_counts *counts);
PERFRING_API int perfring_counts_reset(struct perfring_counts *counts);

/* Reads every fd.  Returns 0; an fd that cannot be read is counted in `failed`. */
PERFRING_API int perfring_counts_read(struct perfring_counts *counts);

/* Events in the order they were added. */
PERFRING_API uint32_t perfring_counts_count(const struct perfring_counts *counts);
PERFRING_API const struct perf_event_attr *perfring_counts_attr(const struct perfring_counts *counts, uint32_t event);

/* The name in the list of events; NULL: no such event.  Valid until close. */
PERFRING_API const char *perfring_counts_name(const struct perfring_counts *counts, uint32_t event);

/* One fd of the set and what the last read said. */
struct perfring_counts_fd {
	int fd;
	int32_t tid; /* -1: all */
	int32_t cpu; /* -1: any */
	uint32_t event;
	uint64_t id;
	struct perfring_count count;
};

/* The i-th fd, from 0.  Returns 1, or 0 behind the last. */
PERFRING_API int perfring_counts_at(const struct perfring_counts *counts, uint32_t i, struct perfring_counts_fd *fd);

enum perfring_counts_scope {
	PERFRING_COUNTS_ALL,
	PERFRING_COUNTS_CPU,    /* of CPU `which` */
	PERFRING_COUNTS_THREAD, /* of thread `which` */
};

/* Of the last read.  Returns 0, or -EINVAL (no such event), -ENOENT (nothing of that scope). */
PERFRING_API int perfring_counts_sum(const struct perfring_counts *counts, uint32_t event,
				     enum perfring_counts_scope scope, int32_t which, struct perfring_count *sum);

PERFRING_END

#endif
