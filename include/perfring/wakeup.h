/* wakeup.h - waking whoever reads a ring of ours: when the kernel would (docs/abi.md 7.7), and no system call more.
 *
 * A crossing is what makes the kernel wake: more than the watermark written since the last one, or wakeup_events samples.
 * At each crossing, after the publication that caused it, the writer sets the ring's pending flag; only if a reader has
 * armed itself it makes one system call, and that reader is no longer armed.  A reader that polls its ring now and then
 * costs the writer nothing.
 *
 *     writer                                            reader that wants to sleep
 *       publish data_head                                 arm: armed |= how, a full barrier
 *       exchange pending := 1 (a full barrier)            look again: pending, or records to read?  then do not sleep
 *       armed? exchange := 0, write or futex              sleep on its eventfd, or in perfring_wakeup_wait
 *
 * One of the two sees the other: no crossing is slept through.  One reader sleeps on a ring at a time, be it for its
 * records or its AUX area.
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

/* What poll(2) says of a perf fd with this ring (docs/abi.md 2.3): POLLIN | POLLRDNORM once for the crossings since the last
 * time, else 0, even when there are records to read; POLLHUP for a ring that is not there (closed, no data).  By a mapping
 * that is READ_ONLY it is only looked at.  Context:
 * any thread; handlers. */
PERFRING_API int perfring_wakeup_poll(const struct perfring_ring *ring);

/* Before sleeping on an eventfd.  Returns whether there is something already: a crossing that nobody polled, or records
 * behind `position`, which is the reader's: then do not sleep.  ways: EVENTFD, FUTEX. */
PERFRING_API bool perfring_wakeup_arm(const struct perfring_ring *ring, uint64_t position, unsigned ways);

/* Takes it back: after sleeping, whatever the reason. */
PERFRING_API void perfring_wakeup_disarm(const struct perfring_ring *ring);

/* Sleeps until a crossing, at most timeout_ns (negative: no limit).  Returns 1 woken, or records behind `position` or a
 * crossing were there at once, which are told hereby, as by poll; 0 after the time; -EINTR; -EINVAL (no ring of ours, or
 * READ_ONLY). */
PERFRING_API int perfring_wakeup_wait(const struct perfring_ring *ring, uint64_t position, int64_t timeout_ns);

/* A crossing: what a writer does, and what an explicit flush does.  wake_fd: the eventfd, or -1.  Context: any thread;
 * handlers; errno stays. */
PERFRING_API void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd);

PERFRING_END

#endif
