/* opener.h - the one opener of events x threads x CPUs x groups, under sessions and counting: limits raised before the kernel
 * refuses, what may be dropped, threads that exit or have children meanwhile, and the refusal's text. */
#ifndef EVENT_OPENER_H
#define EVENT_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <perfring/sample.h>

#include "event_private.h"
#include "target_private.h"

/* Where events are opened. */
struct perfring_open_place {
	int32_t who; /* a thread, or the fd of a cgroup's directory; -1: everything */
	int32_t cpu; /* -1: any */
	bool is_cgroup;
};

enum {
	PERFRING_NO_GROUP = UINT32_MAX,
};

/* An event as it is opened: what the first place does without, the others do without too. */
struct perfring_opener_event {
	struct perf_event_attr *attr; /* as many bytes as it says, and at least a whole one */
	uint64_t dropped;             /* PERFRING_FALLBACK_ */
	uint32_t leader;              /* its group's number; its own when it leads, or PERFRING_NO_GROUP */
	bool is_decided;              /* it was opened somewhere, */
	bool is_taken;                /* and its fd taken */
	bool is_absent;               /* at the place that is being opened */
	/* With PERFRING_FALLBACK_MISSING, why it is at no place: -errno, of which attr and on which CPU; 0: it is at one. */
	int error;
	int32_t cpu;
	struct perf_event_attr tried;
};

static inline bool perfring_opener_joins(const struct perfring_opener_event *event, uint32_t number)
{
	return event->leader != number && event->leader != PERFRING_NO_GROUP;
}

/* What is opened, and what is done with its fds. */
struct perfring_opener {
	struct perfring_opener_event *(*event)(void *of, uint32_t number);

	/* Takes over an fd when all of its place is open, leaders first.  Returns 0; or -errno: the fd is closed then, and
	 * the caller drops what it took. */
	int (*take)(void *of, const struct perfring_open_place *place, uint32_t number, int fd);

	void *of;
	uint32_t first; /* numbers of events */
	uint32_t count;
	uint64_t allowed; /* PERFRING_FALLBACK_; with MISSING an event that the machine lacks is left out */
	bool is_late;     /* the places are new: it is no error when they are all gone again */
	char *refusal;
	size_t size;
};

/* Opens the events at each of these places of the target, all of them at a place or none.  Skips a thread that has exited,
 * when there are others, and a CPU that went offline, when it was not named.  Returns 0; or -errno, with a refusal if the
 * kernel refused an event. */
int perfring_opener_open(const struct perfring_opener *opener, const struct perfring_target *target,
			 const struct perfring_numbers *who, const struct perfring_numbers *cpus);

/* The places of a target, -1 where it names none. */
const struct perfring_numbers *perfring_target_who(const struct perfring_target *target);
const struct perfring_numbers *perfring_target_where(const struct perfring_target *target);

/* Makes sure that `more` files can be opened: counts those that are open, raises the soft RLIMIT_NOFILE up to the hard one
 * when `raise`.  Returns 0, or -EMFILE with the sentence that says how many are needed, how many there can be, and what to
 * change (ulimit -n, LimitNOFILE=, /proc/sys/fs/nr_open, fewer events, threads or CPUs). */
int perfring_opener_files(uint64_t more, bool raise, char *refusal, size_t size);

enum {
	/* The kernel opens no group that reads as more (docs/abi.md 1.5). */
	PERFRING_OPENER_READ_WORDS = 16384 / 8,
};

/* perfring_event_read; a group that a child is just inheriting cannot be read (ECHILD) until it has. */
int perfring_opener_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *space,
			 size_t size);

/* Whether a group can be read as a whole: 0 or -ECHILD.  A child that was born between the opening of its leader and that of
 * its members has inherited half of it, and no read of the whole succeeds while that child lives. */
int perfring_opener_check_group(int fd, uint64_t read_format);

/* Calls `open` again when what refused it is over soon, which on a thread is: -ECHILD of the above, and, *joining set, the
 * EINVAL or ENODEV of joining a leader whose thread has exited, which then is ESRCH. */
int perfring_opener_retry(int (*open)(void *of, bool *joining), void *of, bool is_thread);

#endif
