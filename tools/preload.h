/* preload.h - what the files of libperfring_preload.so share. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <stdbool.h>
#include <stdint.h>

/* ---- preload_filter.c ---- */

/* What goes on under a filter, each with what stands before it. */
enum perfring_filter_verdict {
	PERFRING_FILTER_NOTHING,
	PERFRING_FILTER_TICKS,  /* events, and a recorder's rings */
	PERFRING_FILTER_DRAINS, /* a file of its own that is begun */
	PERFRING_FILTER_ALL,    /* new ones, in children of forks */
};

/* Which of the system calls that this object makes a seccomp filter (a struct sock_fprog at `program`, of the caller's, who may
 * have meant nothing by it) lets through, whatever their arguments.  ALL also when there is none: the kernel refuses it.
 * At most as many steps as the filter has instructions for each call; makes only system calls that it asks for. */
enum perfring_filter_verdict perfring_filter_judge(const void *program);

/* How many seccomp filters this process has, with those of its parents.  UINT32_MAX: not known. */
uint32_t perfring_filter_count(void);

#endif
