/* opening.h - what opening many fds shares: limits looked at and raised before the kernel refuses, and groups on threads
 * that die or have children meanwhile. */
#ifndef EVENT_PLAN_H
#define EVENT_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include <perfring/sample.h>

/* Makes sure that `more` files can be opened: counts those that are open, raises the soft RLIMIT_NOFILE up to the hard
 * one when `raise`.  Returns 0, or -EMFILE with the sentence that says how many are needed, how many there can be, and
 * what to change (ulimit -n, LimitNOFILE=, /proc/sys/fs/nr_open, fewer events, threads or CPUs). */
int perfring_plan_files(uint64_t more, bool raise, char *refusal, size_t size);

enum {
	/* The kernel opens no group that reads as more (docs/abi.md 1.5). */
	PERFRING_PLAN_READ_WORDS = 16384 / 8,
};

/* perfring_event_read; a group that a child is just inheriting cannot be read (ECHILD) until it has. */
int perfring_plan_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *room,
		       size_t size);

/* Whether a group can be read as a whole: 0 or -ECHILD.  A child that was born between the opening of its leader and
 * that of its members has inherited half of it, and no read of the whole succeeds while that child lives. */
int perfring_plan_group(int fd, uint64_t read_format);

/* Opens one place: what `open` opens, all of it or nothing.  What a thread that dies or has children does to groups is
 * over soon, so on a thread it is tried again: -ECHILD of the above, and, *joining set, the EINVAL or ENODEV of joining a
 * leader whose thread has died, which then is ESRCH. */
int perfring_plan_place(int (*open)(void *of, bool *joining), void *of, bool is_thread);

#endif
