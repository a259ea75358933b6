/* wakeup.c - wakes readers: the word `pending`, an eventfd, a futex (docs/ring.md 9).
 *
 * The functions of wakeup.h.  Writers call raise in the middle of a record, so it keeps errno and uses raw system calls; readers
 * call the others.
 */
#include <perfring/wakeup.h>

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"

static struct perfring_ring_state *state_of(const struct perfring_ring *ring)
{
	return ring->page && ring->flags & PERFRING_RING_OWN ? perfring_ring_state_of(ring->page) : NULL;
}

/* The same; also NULL if the ring is mapped read-only. */
static struct perfring_ring_state *writable_state_of(const struct perfring_ring *ring)
{
	return ring->flags & PERFRING_RING_READ_ONLY ? NULL : state_of(ring);
}

/* The ring may be another process's: no FUTEX_PRIVATE_FLAG. */
static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
#if defined(SYS_futex_time64)
	if (sizeof(timeout->tv_sec) > sizeof(long))
		return syscall(SYS_futex_time64, word, operation, value, timeout, NULL, 0);
#endif
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

int perfring_wakeup_poll(const struct perfring_ring *ring)
{
	struct perfring_ring_state *state = state_of(ring);

	if (!state || !ring->data)
		return POLLHUP;
	if (ring->flags & PERFRING_RING_READ_ONLY)
		return PERFRING_LOAD(&state->pending) ? POLLIN | POLLRDNORM : 0;
	return PERFRING_EXCHANGE(&state->pending, 0) ? POLLIN | POLLRDNORM : 0;
}

bool perfring_wakeup_arm(const struct perfring_ring *ring, uint64_t position, unsigned ways)
{
	struct perfring_ring_state *state = writable_state_of(ring);

	if (!state)
		return false;
	/* Arms, then looks; its partner is perfring_wakeup_raise, which stores `pending`, then looks at `armed`. */
	PERFRING_OR(&state->armed, ways & (PERFRING_WAKEUP_EVENTFD | PERFRING_WAKEUP_FUTEX));
	PERFRING_POINT(wakeup_armed);
	return PERFRING_LOAD_ORDERED(&state->pending) || PERFRING_LOAD_ORDERED(&ring->page->data_head) != position;
}

void perfring_wakeup_disarm(const struct perfring_ring *ring)
{
	struct perfring_ring_state *state = writable_state_of(ring);

	if (state)
		PERFRING_EXCHANGE(&state->armed, 0);
}

int perfring_wakeup_wait(const struct perfring_ring *ring, uint64_t position, int64_t timeout_ns)
{
	struct perfring_ring_state *state = writable_state_of(ring);
	int64_t until = 0, left;
	struct timespec timeout;
	uint32_t armed;
	int result = 1;

	if (!state)
		return -EINVAL;
	if (timeout_ns >= 0 && __builtin_add_overflow(perfring__os_clock_now(), timeout_ns, &until))
		timeout_ns = -1;
	while (!perfring_wakeup_arm(ring, position, PERFRING_WAKEUP_FUTEX)) {
		left = timeout_ns < 0 ? INT64_MAX : until - (int64_t)perfring__os_clock_now();
		if (left <= 0) {
			result = 0;
			break;
		}
		if (left > INT64_C(1000000000) * 1000000)
			left = INT64_C(1000000000) * 1000000; /* as much as any time_t can hold; then again */
		timeout.tv_sec = (time_t)(left / 1000000000);
		timeout.tv_nsec = (long)(left % 1000000000);
		/* a crossing before the kernel looks has cleared the word: then it does not sleep */
		armed = PERFRING_LOAD(&state->armed);
		if (!(armed & PERFRING_WAKEUP_FUTEX))
			break;
		PERFRING_POINT(wakeup_sleeping);
		if (futex(&state->armed, FUTEX_WAIT, armed, timeout_ns < 0 ? NULL : &timeout) < 0 && errno == EINTR) {
			result = -EINTR;
			break;
		}
		if (!(PERFRING_LOAD(&state->armed) & PERFRING_WAKEUP_FUTEX))
			break;
	}
	perfring_wakeup_disarm(ring);
	/* Reported, so not again: later records are seen after `position`. */
	if (result == 1)
		PERFRING_EXCHANGE(&state->pending, 0);
	return result;
}

void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd)
{
	static const uint64_t one = 1;
	struct perfring_ring_state *state = perfring_ring_state_of(page);
	int saved = errno;
	uint32_t armed;

	/* `pending`, then look at `armed`: a reader that has armed itself is woken; one that arms later sees `pending`,
	 * and with it what was published before. */
	PERFRING_EXCHANGE(&state->pending, 1);
	PERFRING_POINT(wakeup_pending);
	if (!PERFRING_LOAD_ORDERED(&state->armed))
		return;
	armed = PERFRING_EXCHANGE(&state->armed, 0);
	PERFRING_POINT(wakeup_disarmed);
	if (armed & PERFRING_WAKEUP_FUTEX)
		futex(&state->armed, FUTEX_WAKE, INT_MAX, NULL);
	/* EAGAIN: the counter is full: the reader is awake.  A handler may not call write(2), a cancellation point. */
	if (armed & PERFRING_WAKEUP_EVENTFD && wake_fd >= 0)
		syscall(SYS_write, wake_fd, &one, sizeof(one));
	errno = saved;
}
