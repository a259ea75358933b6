/* preload.h - what the files of libperfring_preload.so share. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <stdbool.h>
#include <stdint.h>

/* ---- preload_filter.c ---- */

/* Whether a seccomp filter (a struct sock_fprog at `program`, of the caller's, who may have meant nothing by it) lets through
 * each system call that this object makes, whatever their arguments.  True also when there is none: the kernel refuses it.
 * At most as many steps as the filter has instructions for each call; makes only system calls that it asks for. */
bool perfring_filter_allows(const void *program);

/* How many seccomp filters this process has, with those of its parents.  UINT32_MAX: not known. */
uint32_t perfring_filter_count(void);

#endif
