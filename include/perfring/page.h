/* page.h - the control page: the ordered accesses to where a ring's records begin and end.
 *
 *      writer (kernel, or writer.h)                 reader (reader.h, or any perf consumer)
 *
 *      reclaim: load-acquire data_tail   <--pairs-- return:  store-release data_tail
 *      ... writes into the returned space           ... has finished reading the returned space
 *      publish: store-release data_head  --pairs--> observe: load-acquire data_head
 *      ... records below are complete               ... may read below
 *
 * Positions are free-running byte counts; the offset in the data is position & (size - 1).  Each of the four is one 64-bit
 * access, so that an interrupt or a signal comes before it or after it.  The AUX area has four of its own (docs/abi.md 7.6, 8).
 *
 * Context: the thread, or signal handler, that owns that end of the ring. */
#ifndef PERFRING_PAGE_H
#define PERFRING_PAGE_H

#include <perfring/access.h>

PERFRING_BEGIN

static_assert(offsetof(struct perf_event_mmap_page, data_head) == 1024, "docs/abi.md 3.2");
static_assert(offsetof(struct perf_event_mmap_page, data_tail) == 1032, "docs/abi.md 3.2");
static_assert(offsetof(struct perf_event_mmap_page, aux_size) == 1080, "docs/abi.md 3.2");

/* Reader: the end of the complete records.  Acquire: what the writer stored before publish is visible after this. */
PERFRING_INLINE uint64_t perfring_page_observe(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->data_head);
}

/* A position of the page, extended to 64 bits.  from: an earlier position.  A 32-bit kernel counts positions in an unsigned
 * long: 0 follows 2^32 - 8, so that only the low 32 bits of the distance from `from` are valid. */
PERFRING_INLINE uint64_t perfring_page_extend(uint64_t position, uint64_t from)
{
	return sizeof(long) == 8 ? position : from + (uint32_t)(position - from);
}

/* perfring_page_observe by a reader.  from: any earlier position. */
PERFRING_INLINE uint64_t perfring_page_observe_from(const struct perf_event_mmap_page *page, uint64_t from)
{
	return perfring_page_extend(perfring_page_observe(page), from);
}

/* Reader: everything before `tail` may be overwritten.  Release: the reader's loads of it are complete before the writer's
 * reclaim sees this. */
PERFRING_INLINE void perfring_page_return(struct perf_event_mmap_page *page, uint64_t tail)
{
	PERFRING_STORE_RELEASE(&page->data_tail, tail);
}

/* Writer: the end of what the reader has returned.  Acquire: the writer's stores into that space come after the reader's
 * loads.  (The kernel orders this by a control dependency, which C11 does not have.) */
PERFRING_INLINE uint64_t perfring_page_reclaim(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->data_tail);
}

/* Writer: every record before `head` is complete.  Release: their bytes are stored before the reader's observe sees this. */
PERFRING_INLINE void perfring_page_publish(struct perf_event_mmap_page *page, uint64_t head)
{
	PERFRING_STORE_RELEASE(&page->data_head, head);
}

/* Observe, return, reclaim and publish for the AUX area (docs/abi.md 8), by aux_head and aux_tail.
 *
 * Reader: the end of the complete AUX bytes.  Acquire: pairs with perfring_page_publish_aux. */
PERFRING_INLINE uint64_t perfring_page_observe_aux(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->aux_head);
}

/* perfring_page_observe_aux by a consumer that has read up to `from`. */
PERFRING_INLINE uint64_t perfring_page_observe_aux_from(const struct perf_event_mmap_page *page, uint64_t from)
{
	return perfring_page_extend(perfring_page_observe_aux(page), from);
}

/* Reader: the AUX bytes before `tail` may be overwritten.  Release: pairs with perfring_page_reclaim_aux.  `tail` is free-running too:
 * one reduced by the size would stop the trace after its first lap. */
PERFRING_INLINE void perfring_page_return_aux(struct perf_event_mmap_page *page, uint64_t tail)
{
	PERFRING_STORE_RELEASE(&page->aux_tail, tail);
}

/* Writer: the end of the AUX bytes that the reader has returned.  Acquire: the reader has finished with them. */
PERFRING_INLINE uint64_t perfring_page_reclaim_aux(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->aux_tail);
}

/* Writer: AUX bytes below `head` are complete.  Release: pairs with perfring_page_observe_aux. */
PERFRING_INLINE void perfring_page_publish_aux(struct perf_event_mmap_page *page, uint64_t head)
{
	PERFRING_STORE_RELEASE(&page->aux_head, head);
}

/* ---- self-monitoring (docs/abi.md 3.3): rb/page.c ---- */

/* The page's members about its event, read consistently under its sequence lock. */
struct perfring_page_count {
	uint64_t value;   /* counter + offset; only the offset if it is not counting now */
	uint64_t enabled; /* up to now if the page has user_time, else up to the kernel's last update */
	uint64_t running;
	bool is_counting; /* the event is on a counter now; if not, only read(2) knows whether it is enabled */
	bool is_current;  /* the times are up to now */
};

/* page: of a kernel event of the calling thread, into whose ring no other event writes (each stores its own count there).
 * Not of a perfring ring: an invalid counter number ends the process.  Counts of live children (inherit) are not included.
 * Returns 0; -EOPNOTSUPP if user space cannot read the counter (no user_rdpmc, or this architecture): use read(2); -EAGAIN
 * if the lock was odd or changed at each of 1000 tries.  Context: the thread that the event counts, and its signal handlers. */
PERFRING_API int perfring_page_read(const struct perf_event_mmap_page *page, struct perfring_page_count *count);

/* Converts cycles of the processor's counter to the clock of time stamps without use_clockid (of a perfring ring:
 * CLOCK_MONOTONIC, by perfring_ring_calibrate), and back.  Returns 0; -EOPNOTSUPP if the page has no user_time_zero, or
 * a conversion that cannot be (a shift above 32; a factor of 0); -EAGAIN.
 * Context: any. */
PERFRING_API int perfring_page_to_time(const struct perf_event_mmap_page *page, uint64_t cycles, uint64_t *time);
PERFRING_EXPERIMENTAL int perfring_page_to_cycles(const struct perf_event_mmap_page *page, uint64_t time, uint64_t *cycles);

PERFRING_END

#endif
