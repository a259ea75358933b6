/* page.h - the control page: the ordered accesses to where a ring's records begin and end.
 *
 *      writer (kernel, or writer.h)                 reader (reader.h, or any perf consumer)
 *
 *      reclaim: load-acquire data_tail   <--pairs-- return:  store-release data_tail
 *      ... writes into what was given back          ... has finished reading what it gives back
 *      publish: store-release data_head  --pairs--> observe: load-acquire data_head
 *      ... records below are complete               ... may read below
 *
 * `head` and `tail` are the kernel's words for the page's members and appear here only: positions are free-running
 * byte counts, the place in the data is position & (size - 1).  Each of the four is one 64-bit access, so an interrupt
 * or a signal falls before it or after it.  AUX has the same four (docs/abi.md 7.6, 8).
 *
 * Context: any thread and signal handler that owns that end of the ring.
 */
#ifndef PERFRING_PAGE_H
#define PERFRING_PAGE_H

#include <perfring/access.h>

PERFRING_BEGIN

static_assert(offsetof(struct perf_event_mmap_page, data_head) == 1024, "docs/abi.md 3.2");
static_assert(offsetof(struct perf_event_mmap_page, data_tail) == 1032, "docs/abi.md 3.2");
static_assert(offsetof(struct perf_event_mmap_page, aux_size) == 1080, "docs/abi.md 3.2");

/* Reader: how far records are complete.  Acquire: what the writer stored before its publish is seen after this. */
PERFRING_INLINE uint64_t perfring_page_observe(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->data_head);
}

/* A position of the page that is not before `from`, one that was seen earlier.  A 32-bit kernel counts positions in its
 * unsigned long: 0 follows 2^32 - 8.  There the low 32 bits count, as the distance from `from`. */
PERFRING_INLINE uint64_t perfring_page_extend(uint64_t position, uint64_t from)
{
	return sizeof(long) == 8 ? position : from + (uint32_t)(position - from);
}

/* perfring_page_observe, of a reader that has read up to `from`. */
PERFRING_INLINE uint64_t perfring_page_observe_from(const struct perf_event_mmap_page *page, uint64_t from)
{
	return perfring_page_extend(perfring_page_observe(page), from);
}

/* Reader: everything below `tail` may be overwritten.  Release: our loads of it are over before the writer's reclaim
 * can see this. */
PERFRING_INLINE void perfring_page_return(struct perf_event_mmap_page *page, uint64_t tail)
{
	PERFRING_STORE_RELEASE(&page->data_tail, tail);
}

/* Writer: how far the reader has finished.  Acquire: our stores into that room come after its loads.  (The kernel
 * orders this by a control dependency, which C11 does not have.) */
PERFRING_INLINE uint64_t perfring_page_reclaim(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->data_tail);
}

/* Writer: every record below `head` is complete.  Release: their bytes are stored before the reader's observe can see
 * this. */
PERFRING_INLINE void perfring_page_publish(struct perf_event_mmap_page *page, uint64_t head)
{
	PERFRING_STORE_RELEASE(&page->data_head, head);
}

PERFRING_INLINE uint64_t perfring_page_observe_aux(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->aux_head);
}

/* perfring_page_observe_aux, of a consumer that has read up to `from`. */
PERFRING_INLINE uint64_t perfring_page_observe_aux_from(const struct perf_event_mmap_page *page, uint64_t from)
{
	return perfring_page_extend(perfring_page_observe_aux(page), from);
}

/* The position is free-running here too: a masked one stops the trace after its first lap. */
PERFRING_INLINE void perfring_page_return_aux(struct perf_event_mmap_page *page, uint64_t tail)
{
	PERFRING_STORE_RELEASE(&page->aux_tail, tail);
}

PERFRING_INLINE uint64_t perfring_page_reclaim_aux(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->aux_tail);
}

PERFRING_INLINE void perfring_page_publish_aux(struct perf_event_mmap_page *page, uint64_t head)
{
	PERFRING_STORE_RELEASE(&page->aux_head, head);
}

/* ---- self-monitoring (docs/abi.md 3.3): rb/page.c ---- */

/* What the page says of its event, read as one under its sequence lock. */
struct perfring_page_count {
	uint64_t value;   /* counter and offset; the offset alone when it is not counting now */
	uint64_t enabled; /* up to now where the page has user_time, else up to the kernel's last update */
	uint64_t running;
	bool is_counting; /* the event is on a counter now; else `enabled` goes on though it may be disabled: read(2) knows */
	bool is_current;  /* the times are up to now */
};

/* page: of a kernel's event of this thread, into whose ring no other one writes (each would put its own count there),
 * and not of a ring of ours: a counter's number that is none ends the process.  What live children count (inherit) is
 * not in it.  Returns 0; -EOPNOTSUPP where the count cannot be had in user space (no user_rdpmc, an architecture
 * without it here ...): read(2) it; -EAGAIN when the lock stayed odd.  Context: the thread that the event counts, signal
 * handlers too. */
PERFRING_API int perfring_page_read(const struct perf_event_mmap_page *page, struct perfring_page_count *count);

/* Cycles of the processor's counter to the clock of time stamps without use_clockid (of a ring of ours: to what
 * perfring_ring_calibrate fitted), and back.  Returns 0; -EOPNOTSUPP where the page has no user_time_zero; -EAGAIN.
 * Context: any. */
PERFRING_API int perfring_page_to_time(const struct perf_event_mmap_page *page, uint64_t cycles, uint64_t *time);
PERFRING_API int perfring_page_to_cycles(const struct perf_event_mmap_page *page, uint64_t time, uint64_t *cycles);

PERFRING_END

#endif
