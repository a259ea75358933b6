/* preload.h - what the files of libperfring_preload.so share.
 *
 * preload.c, preload_filter.c and soft_source.c (the recorder, which counts its own filters) include it.
 */
#ifndef PERFRING_TOOLS_PRELOAD_H
#define PERFRING_TOOLS_PRELOAD_H

#include <stdbool.h>
#include <stdint.h>

/* ---- preload_filter.c ---- */

/* What goes on under a filter, each with what stands before it. */
enum tool_filter_verdict {
	TOOL_FILTER_NOTHING,
	TOOL_FILTER_TICKS,  /* events, and a recorder's rings */
	TOOL_FILTER_DRAINS, /* a file of its own that is begun */
	TOOL_FILTER_ALL,    /* new ones, in children of forks */
};

/* Which of this object's system calls a seccomp filter lets through with any arguments.  program: a struct sock_fprog of the
 * caller, possibly a bad pointer.  ALL also when it is no filter: the kernel refuses it.  Runs at most the filter's number of
 * instructions for each call, and makes no system call that it does not ask the filter about. */
enum tool_filter_verdict tool_filter_judge(const void *program);

/* How many seccomp filters this process has, with those of its parents.  UINT32_MAX: not known. */
uint32_t tool_filter_count(void);

#endif
