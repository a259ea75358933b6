/* usage.h - what a thread of this process has used, by the kernel's accounts.
 *
 * Each of the three returns one more than the number; 0: it is not known, because the thread has ended, or a file cannot be opened.  here: the thread is
 * the calling one, which getrusage(2) serves; of another, /proc.  Context: also signal handlers.  No lock, no allocation; errno is kept.
 */
#ifndef PERFRING_OS_USAGE_H
#define PERFRING_OS_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Page faults: those that needed no I/O, those that did. */
uint64_t perfring__os_usage_faults(uint32_t tid, bool here, bool minor, bool major);

/* How often it left a CPU. */
uint64_t perfring__os_usage_switches(uint32_t tid, bool here);

/* How often it was moved to another CPU: always by /proc. */
uint64_t perfring__os_usage_migrations(uint32_t tid);
/* Whether this kernel says so (CONFIG_SCHED_DEBUG). */
bool perfring__os_usage_has_migrations(void);

#endif
