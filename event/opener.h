/* opener.h - the opener of events x threads x CPUs x groups, for sessions and counting.  It raises limits, drops what
 * may be dropped, handles threads that exit or have children meanwhile, and explains refusals.
 *
 * Private to event/ and session/.  Refusals are sentences in a buffer of the caller.
 */
#ifndef PERFRING_EVENT_OPENER_H
#define PERFRING_EVENT_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <perfring/sample.h>

#include "event_private.h"
#include "target_private.h"

/* Where events are opened. */
struct perfring_open_place {
	int32_t who; /* a thread, or the fd of a cgroup's directory; -1: any thread */
	int32_t cpu; /* -1: any */
	bool is_cgroup;
};

enum {
	PERFRING_NO_GROUP = UINT32_MAX,
};

/* An event as it is opened.  What is dropped at the first place is dropped at the others too. */
struct perfring_opener_event {
	struct perf_event_attr *attr; /* of its own size, and at least a whole struct */
	uint64_t dropped;             /* PERFRING_FALLBACK_ */
	uint32_t leader;              /* the number of its group's leader, which may be its own; or PERFRING_NO_GROUP */
	bool is_decided;              /* it was opened at some place, */
	bool is_taken;                /* and its fd taken over */
	bool is_absent;               /* at the current place */
	/* With PERFRING_FALLBACK_MISSING, why it is at no place: -errno, the attr and the CPU; 0: it is at one. */
	int error;
	int32_t cpu;
	struct perf_event_attr tried;
};

static inline bool perfring__opener_joins(const struct perfring_opener_event *event, uint32_t number)
{
	return event->leader != number && event->leader != PERFRING_NO_GROUP;
}

/* The events to open, and what becomes of their fds. */
struct perfring_opener {
	struct perfring_opener_event *(*event)(void *of, uint32_t number);

	/* Takes over an fd when all events of its place are open, leaders first.  Returns 0; or -errno: then the opener
	 * closes the fd, and the caller drops those it took. */
	int (*take)(void *of, const struct perfring_open_place *place, uint32_t number, int fd);

	void *of;
	uint32_t first;   /* event number, */
	uint32_t count;   /* and how many */
	uint64_t allowed; /* PERFRING_FALLBACK_; with MISSING, an event that the machine lacks is left out */
	bool is_late;     /* the places are new: that all of them are gone is no error */
	char *refusal;
	size_t size;
};

/* Opens the events at each of these places of the target; at one place, all or none.  Skips a thread that has exited if
 * there are others, and a CPU that went offline if the target does not name it.  Returns 0; or -errno, with a refusal
 * if the kernel refused an event. */
int perfring__opener_open(const struct perfring_opener *opener, const struct perfring_target *target,
			  const struct perfring_numbers *who, const struct perfring_numbers *cpus);

/* The places of a target, -1 where it names none. */
const struct perfring_numbers *perfring__target_who(const struct perfring_target *target);
const struct perfring_numbers *perfring__target_where(const struct perfring_target *target);

/* Makes sure that `more` files can be opened; raise: may raise the soft RLIMIT_NOFILE up to the hard one.  Returns 0;
 * or -EMFILE, with a refusal that says how many are needed, how many there can be, and what to change. */
int perfring__opener_files(uint64_t more, bool raise, char *refusal, size_t size);

enum {
	/* The kernel opens no group that reads as more (docs/abi.md 1.5). */
	PERFRING_OPENER_READ_WORDS = 16384 / 8,
};

/* perfring_event_read.  While a child inherits a group, reading it fails with ECHILD: tries again. */
int perfring__opener_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *space,
			  size_t size);

/* Returns whether a group can be read as a whole: 0 or -ECHILD.  A child that is created between the opening of the
 * leader and that of the members inherits half of the group, and no read of the whole succeeds while that child
 * lives. */
int perfring__opener_check_group(int fd, uint64_t read_format);

/* Calls `open` again after a refusal on a thread that passes soon: -ECHILD as above; and, with *joining set, EINVAL or
 * ENODEV of joining a leader whose thread has exited, which becomes ESRCH. */
int perfring__opener_retry(int (*open)(void *of, bool *joining), void *of, bool is_thread);

#endif
