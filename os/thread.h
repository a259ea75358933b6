/* thread.h - what the system says of a thread. */
#ifndef PERFRING_OS_THREAD_H
#define PERFRING_OS_THREAD_H

#include <stdint.h>

/* When it began, in clock ticks since boot: by that a number which was given to another thread since is told apart.
 * Returns 0 or -errno (-ENOENT, -ESRCH: there is none), and then *start is 0.
 * Context: also signal handlers.  No lock, no allocation; errno may change. */
int perfring_os_thread_start(uint32_t pid, uint32_t tid, uint64_t *start);

#endif
