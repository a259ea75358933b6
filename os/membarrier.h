/* membarrier.h - barriers in other threads: membarrier(2).
 *
 * Each returns whether it happened: kernels before 4.14 and seccomp filters refuse.  errno is kept.
 * Context: any thread, also signal handlers.
 */
#ifndef PERFRING_OS_MEMBARRIER_H
#define PERFRING_OS_MEMBARRIER_H

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long perfring__os_membarrier(int command)
{
	int saved = errno;
	long ret = syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return ret;
}

/* Before the first perfring__os_membarrier_process. */
static inline bool perfring__os_membarrier_register(void)
{
	return perfring__os_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* Every running thread of this process passes a full barrier: takes some microseconds. */
static inline bool perfring__os_membarrier_process(void)
{
	return perfring__os_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

/* Every thread of the system passes one, for each CPU switches meanwhile: takes 8 to 20 ms.  (GLOBAL since Linux
 * 4.16.) */
static inline bool perfring__os_membarrier_system(void)
{
	return perfring__os_membarrier(MEMBARRIER_CMD_SHARED) == 0;
}

/* Whether the kernel has perfring__os_membarrier_system. */
static inline bool perfring__os_membarrier_has_system(void)
{
	long commands = perfring__os_membarrier(MEMBARRIER_CMD_QUERY);

	return commands > 0 && commands & MEMBARRIER_CMD_SHARED;
}

#endif
