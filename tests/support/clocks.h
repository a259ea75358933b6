/* clocks.h - the time of a clock, and a loop until it. */
#ifndef CLOCKS_H
#define CLOCKS_H

#include <stdint.h>
#include <time.h>

/* ns */
static inline uint64_t now_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Looks at a CPU's clock seldom: the kernel preempts a thread at such a look as soon as its slice is over, on a busy machine always before
 * its own tick, in which it looks at timers (docs/abi.md 9.4). */
static inline void burn_by(clockid_t clock, uint64_t ns)
{
	uint64_t until = now_of(clock) + ns, now;

	while ((now = now_of(clock)) < until)
		for (uint64_t end = now_of(CLOCK_MONOTONIC) + (until - now); now_of(CLOCK_MONOTONIC) < end;)
			;
}

#endif
