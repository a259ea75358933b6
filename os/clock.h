/* clock.h - the clocks of the system, in nanoseconds.
 *
 * Context: any thread, also signal handlers (clock_gettime is async-signal-safe).  No lock, no allocation; inline,
 * because a writer may ask once per record.
 */
#ifndef PERFRING_OS_CLOCK_H
#define PERFRING_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t perfring__os_clock_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

/* The time of the clock; 0: there is no such clock. */
static inline uint64_t perfring__os_clock_of(clockid_t clock)
{
	struct timespec time = {0, 0};

	clock_gettime(clock, &time);
	return perfring__os_clock_ns(&time);
}

static inline uint64_t perfring__os_clock_now(void)
{
	return perfring__os_clock_of(CLOCK_MONOTONIC);
}

/* The resolution of the clock; 0: there is no such clock. */
static inline uint64_t perfring__os_clock_step(clockid_t clock)
{
	struct timespec step = {0, 0};

	clock_getres(clock, &step);
	return perfring__os_clock_ns(&step);
}

#endif
