/* counter.c - the processor's counter as a clock, fitted to CLOCK_MONOTONIC (docs/abi.md 3.3).
 *
 * perfring_ring_calibrate alone, for rings whose records are stamped by the counter (PERFRING_STAMP_COUNTER).  It writes the
 * conversion into the control page under the page's sequence lock; page.c reads it there, as from a kernel's page.  Threads only:
 * it sleeps 20 ms.
 */
#include <perfring/ring.h>

#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <perfring/page.h>
#include <perfring/writer.h>

#include "identity.h"
#include "os/clock.h"
#include "page_private.h"

enum {
	SHIFT = 32, /* at most */
	SETTLE_NS = 20000000,
};

#ifdef __SIZEOF_INT128__ /* what calibrate computes with */

/* Whether the counter runs at a constant rate, in every power state, and is the same on all CPUs. */
static bool is_steady(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1 << 8;
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

/* Both at one instant: the closest of eight tries. */
static void compare(uint64_t *counter, uint64_t *time)
{
	uint64_t best = UINT64_MAX, before, after, between;

	for (int i = 0; i < 8; i++) {
		before = perfring__os_clock_now();
		between = perfring_writer_counter();
		after = perfring__os_clock_now();
		if (after - before >= best)
			continue;
		best = after - before;
		*counter = between;
		*time = before + best / 2;
	}
}

/* Takes the right to store the conversion; of several threads that find the last one dead, one succeeds.  The exchange
 * is ordered: what the last one stored is seen.  Identity and namespaces are one word, so they belong to one thread. */
static bool begin(struct perfring_ring_state *state)
{
	uint64_t before = PERFRING_LOAD(&state->calibrator), own = perfring__identity_global();

	/* its own: from before an exec */
	if (before && before != own && !perfring__identity_global_ended(before))
		return false;
	return PERFRING_COMPARE_EXCHANGE(&state->calibrator, &before, own);
}

static int calibrate(struct perf_event_mmap_page *page, struct perfring_ring_state *state)
{
	struct timespec nap = {0, SETTLE_NS};
	uint64_t counter = 0, time = 0, first, first_time;
	unsigned __int128 mult;
	uint16_t shift = SHIFT;
	uint32_t odd;

	first = PERFRING_LOAD(&state->counter_at);
	first_time = PERFRING_LOAD(&state->counter_time);
	if (!first) {
		compare(&first, &first_time);
		PERFRING_STORE(&state->counter_time, first_time);
		PERFRING_STORE(&state->counter_at, first);
		nanosleep(&nap, NULL);
	}
	compare(&counter, &time);
	if (counter <= first || time <= first_time)
		return -EOPNOTSUPP;
	do
		mult = ((unsigned __int128)(time - first_time) << shift) / (counter - first);
	while (mult > UINT32_MAX && shift-- > 1);
	if (!mult || mult > UINT32_MAX)
		return -EOPNOTSUPP;
	/* Odd while the members change: readers try again.  Odd already: the last thread died here. */
	odd = PERFRING_LOAD(&page->lock) | 1;
	PERFRING_STORE(&page->lock, odd);
	PERFRING_FENCE_STORES();
	PERFRING_POINT(counter_locked);
	PERFRING_STORE(&page->time_shift, shift);
	PERFRING_STORE(&page->time_mult, (uint32_t)mult);
	PERFRING_STORE(&page->time_zero, time - perfring__page_scale(counter, (uint32_t)mult, shift));
	PERFRING_STORE(&page->time_offset, 0);
	PERFRING_STORE(&page->capabilities,
		       PERFRING_LOAD(&page->capabilities) | 8 | 16); /* user_time, user_time_zero */
	PERFRING_STORE_RELEASE(&page->lock, odd + 1);
	return 0;
}

#endif

int perfring_ring_calibrate(struct perfring_ring *ring)
{
#ifdef __SIZEOF_INT128__
	struct perf_event_mmap_page *page = ring->page;
	struct perfring_ring_state *state;
	int error;

	if (!(ring->flags & PERFRING_RING_OWN) || ring->flags & PERFRING_RING_READ_ONLY)
		return -EINVAL;
	if (!is_steady())
		return -EOPNOTSUPP;
	state = perfring_ring_state_of(page);
	if (!begin(state))
		return -EBUSY;
	error = calibrate(page, state);
	PERFRING_STORE_RELEASE(&state->calibrator, 0); /* pairs with begin */
	return error;
#else
	(void)ring;
	return -EOPNOTSUPP;
#endif
}
