/* wakeup.h - wakes the reader of a perfring ring when the kernel would wake it (docs/abi.md 7.7).
 *
 * A crossing is the kernel's condition for a wakeup: more bytes than the watermark since the last crossing, or wakeup_events
 * samples.  After publishing, the writer sets the ring's pending flag at a crossing.  If a reader is armed, the writer makes one
 * system call, and the reader is no longer armed.  A reader that polls its ring costs the writer no system call.
 *
 *     writer                                            reader that wants to sleep
 *       publish data_head                                 arm: armed |= how, a full barrier
 *       exchange pending := 1 (a full barrier)            look again: pending, or records to read?  do not sleep
 *       armed? exchange := 0, write or futex              sleep on its eventfd, or in perfring_wakeup_wait
 *
 * A perfring ring sends no SIGIO (fcntl F_SETOWN of a perf fd): an eventfd with a thread of its own, or with epoll, does it.
 * One of the two sees the other, so no crossing is missed.  One reader at a time may sleep on a ring, for its records or for its
 * AUX area.
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

/* What poll(2) returns for a perf fd with this ring (docs/abi.md 2.3): POLLIN | POLLRDNORM once for all crossings since the last
 * call; else 0, even with unread records; POLLHUP without data area.  With a READ_ONLY mapping the flag is not cleared.
 * Context: any thread, handlers. */
PERFRING_API int perfring_wakeup_poll(const struct perfring_ring *ring);

/* To be called before sleeping on an eventfd.  position: the reader's.  ways: EVENTFD, FUTEX.  Returns true if a crossing is
 * pending or there are records after `position`: then do not sleep. */
PERFRING_API bool perfring_wakeup_arm(const struct perfring_ring *ring, uint64_t position, unsigned ways);

/* Undoes perfring_wakeup_arm.  To be called after sleeping, also after a timeout or an error. */
PERFRING_API void perfring_wakeup_disarm(const struct perfring_ring *ring);

/* Sleeps until a crossing, at most timeout_ns (negative: no limit).  Returns 1 if woken, or at once if a crossing is pending
 * (which this consumes, as poll does) or there are records after `position`; 0 after the time; -EINTR; -EINVAL (no perfring
 * ring, or READ_ONLY). */
PERFRING_API int perfring_wakeup_wait(const struct perfring_ring *ring, uint64_t position, int64_t timeout_ns);

/* Signals a crossing, as a writer does.  wake_fd: the eventfd, or -1.  Keeps errno.  Context: any thread, handlers. */
PERFRING_API void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd);

PERFRING_END

#endif
