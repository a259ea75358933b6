/* preload_waits.h - what libperfring_preload.so wraps: the functions of the C library, and how long they wait. */
#ifndef PERFRING_TOOLS_PRELOAD_WAITS_H
#define PERFRING_TOOLS_PRELOAD_WAITS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <perfring/soft.h>

#define WRAPS __attribute__((visibility("default")))

/* The function that the program would have called. */
#define DECLARE(name) static __typeof__(&name) real_##name __attribute__((used));

/* A function's address comes as a pointer to an object: POSIX lets it. */
#define REAL(name) \
	if (!PERFRING_LOAD(&real_##name)) { \
		void *real_function = tool_preload_find(#name); \
		PERFRING_STORE(&real_##name, (__typeof__(&name))real_function); \
	}

/* Work inside the program's calls is not interrupted: neither by a cancellation (it calls cancellation points, and a raise that is
 * cancelled would never end) nor by a handler of the program, which may jump away, fork or call a wrapped function in the middle of it.
 * Context: also signal handlers. */
struct tool_held {
	int cancel;
	sigset_t signals;
};

struct tool_held tool_hold(void);
void tool_give(const struct tool_held *held);

/* ---- how long calls of the C library wait, for --off-cpu ---- */

/* After this object in the order of the loader's search. */
void *tool_preload_find(const char *name);

struct tool_waits {
	struct perfring_soft_point *point; /* release, after `least`; NULL: waits are not asked for */
	uint64_t least;                    /* ns that a call waits to be raised */
};

extern struct tool_waits tool_waits;

/* ns that this thread's calls so far have raised: a handler's calls are inside the call that it interrupted. */
extern __thread perfring_u64 tool_waited __attribute__((tls_model("initial-exec")));

/* A call that may wait, from before it. */
struct tool_wait {
	uint64_t cpu, wall, waited;
};

#define TOOL_WAIT_INLINE static inline __attribute__((always_inline))

TOOL_WAIT_INLINE uint64_t tool_wait_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Bounds of this object, by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* Whether the call is measured.  caller: a return address.  The calls of this object itself are not the program's. */
TOOL_WAIT_INLINE bool tool_wait_is_measured(const void *caller)
{
	const struct perfring_soft_point *point = PERFRING_LOAD_ACQUIRE(&tool_waits.point); /* partner: open_waits */

	return point && PERFRING_LOAD(&point->active) &&
	       ((uintptr_t)caller < (uintptr_t)__ehdr_start || (uintptr_t)caller >= (uintptr_t)etext);
}

/* The CPU clock is read first here and last in end: what is off the CPU is never more than it was.  Both read their clocks again after a
 * handler that has waited meanwhile: its wait is either before the clock and in `waited`, or neither. */
TOOL_WAIT_INLINE void tool_wait_begin(struct tool_wait *wait)
{
	do {
		wait->waited = PERFRING_LOAD(&tool_waited);
		wait->cpu = tool_wait_clock(CLOCK_THREAD_CPUTIME_ID);
		wait->wall = tool_wait_clock(CLOCK_MONOTONIC);
	} while (PERFRING_UNLIKELY(PERFRING_LOAD(&tool_waited) != wait->waited));
}

/* After the call: how long it waited; 0: not long enough. */
TOOL_WAIT_INLINE uint64_t tool_wait_end(const struct tool_wait *wait)
{
	uint64_t waited, wall, inside;

	do {
		waited = PERFRING_LOAD(&tool_waited);
		wall = tool_wait_clock(CLOCK_MONOTONIC) - wait->wall;
	} while (PERFRING_UNLIKELY(PERFRING_LOAD(&tool_waited) != waited));
	if (wall < tool_waits.least)
		return 0;
	inside = tool_wait_clock(CLOCK_THREAD_CPUTIME_ID) - wait->cpu + waited - wait->waited;
	if (wall <= inside || wall - inside < tool_waits.least)
		return 0;
	PERFRING_ADD_LOCAL(&tool_waited, wall - inside); /* whole: a handler's call adds too */
	return wall - inside;
}

/* In the wrapper itself, not in a function that it inlines: the chain begins with the wrapper, whose name is the call's.  errno stays.
 * A cancellation or a signal that comes meanwhile waits: the program gets it before the wrapper returns. */
#define TOOL_WAIT_RAISE(wait) \
	do { \
		const struct perfring_soft_site tool_site = {.addr = (wait)->wall}; \
		int tool_errno = errno; \
		uint64_t tool_ns = tool_wait_end(wait); \
		if (tool_ns) { \
			struct tool_held tool_held = tool_hold(); \
			perfring_soft_raise_active(tool_waits.point, tool_ns, &tool_site); \
			tool_give(&tool_held); \
		} \
		errno = tool_errno; \
	} while (0)

#endif
