/* wakeup.h - lets a reader sleep until its ring has enough for it, by the kernel's conditions (docs/abi.md 7.7).
 *
 * A crossing is such a condition: more bytes than the watermark since the last crossing, or wakeup_events samples.  The writer
 * sets the ring's flag `pending` at each crossing, after it has published the records.  A reader that is going to sleep arms the
 * ring.  A writer that finds the ring armed disarms it and makes one system call, which wakes the reader.  A reader that only
 * polls its ring costs the writer no system call.
 *
 *     writer                                            reader that wants to sleep
 *       publish data_head                                 arm: armed |= how, a full barrier
 *       exchange pending := 1 (a full barrier)            look again: pending, or records to read?  do not sleep
 *       armed? exchange := 0, write or futex              sleep on its eventfd, or in perfring_wakeup_wait
 *
 * Each side first writes, then looks at what the other has written.  So at least one of them sees the other, and no crossing is
 * missed.  One thread at a time may arm a ring or sleep on it, for its records or for its AUX area.
 *
 * These functions are for rings of perfring that are mapped writable.  Of a kernel ring, use poll(2) on its fd.  A perfring ring
 * sends no SIGIO, as fcntl F_SETOWN of a perf fd does: wait for its eventfd in a thread, or by epoll.  The protocol: docs/ring.md 9.
 */
#ifndef PERFRING_WAKEUP_H
#define PERFRING_WAKEUP_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

/* How a reader is armed. */
enum perfring_wakeup_way {
	PERFRING_WAKEUP_EVENTFD = 1, /* the eventfd that the writer was given (its options' wake_fd) is written */
	PERFRING_WAKEUP_FUTEX = 2,   /* perfring_wakeup_wait: also across processes, by the ring alone */
	PERFRING_WAKEUP_RECORD = 4,  /* the next record wakes, not only the next crossing: set by perfring_writer_arm */
};

/* What poll(2) returns for a perf fd with this ring (docs/abi.md 2.3): POLLIN | POLLRDNORM if there was a crossing since the last
 * call, else 0, even with unread records; POLLHUP for a ring without data area and for one that is not perfring's.  Clears the flag
 * `pending`, unless the mapping is READ_ONLY.  Context: any thread, handlers. */
PERFRING_API int perfring_wakeup_poll(const struct perfring_ring *ring);

/* Arms the ring; to be called before sleeping on an eventfd.  position: up to where the reader has read.  ways: EVENTFD, FUTEX.
 * Returns true if a crossing is pending or there are records after `position`: do not sleep.  The ring is armed in both cases, until
 * a writer disarms it or perfring_wakeup_disarm.  Returns false and arms nothing for a READ_ONLY mapping and for a ring that
 * is not perfring's: it would never be woken.  Context: threads, handlers. */
PERFRING_API bool perfring_wakeup_arm(const struct perfring_ring *ring, uint64_t position, unsigned ways);

/* Disarms the ring.  To be called after each perfring_wakeup_arm, when the reader has slept or will not: a ring that stays armed
 * costs its writer a system call.  Context: threads, handlers. */
PERFRING_API void perfring_wakeup_disarm(const struct perfring_ring *ring);

/* Arms, sleeps until a crossing or until timeout_ns have passed (negative: no limit), and disarms.  Does not sleep if a crossing is
 * pending or there are records after `position`.  Returns 1 (woken, or did not sleep; clears `pending`); 0 (the time has
 * passed); -EINTR; -EINVAL (not a ring of perfring's, or READ_ONLY).  Context: threads. */
PERFRING_API int perfring_wakeup_wait(const struct perfring_ring *ring, uint64_t position, int64_t timeout_ns);

/* Signals a crossing, as a writer does.  page: of a ring of perfring's (PERFRING_RING_OWN), mapped writable: it writes into the
 * ring's state in that page.  wake_fd: the eventfd, or -1.  Keeps errno.  Context: any thread, handlers. */
PERFRING_API void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd);

PERFRING_END

#endif
