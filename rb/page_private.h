/* page_private.h - the counters that perfring_page_read reads, which a test replaces; cycles to time.
 *
 * page.c and counter.c include it; tests/rb/page_test.c brings counters of its own.
 */
#ifndef PERFRING_RB_PAGE_PRIVATE_H
#define PERFRING_RB_PAGE_PRIVATE_H

#include <perfring/page.h>

/* The counters of this thread's processor; a NULL pointer: not on this architecture. */
struct perfring_page_counters {
	bool (*count)(uint32_t counter, uint64_t *raw); /* false: no such counter */
	uint64_t (*cycles)(void);
};

int perfring__page_read_by(const struct perfring_page_counters *counters, const struct perf_event_mmap_page *page,
			   struct perfring_page_count *count);

/* cycles * mult >> shift, whose product needs 96 bits.  shift: at most 32. */
static inline uint64_t perfring__page_scale(uint64_t cycles, uint32_t mult, uint16_t shift)
{
	uint64_t rest = cycles & ((UINT64_C(1) << shift) - 1);

	return (cycles >> shift) * mult + (rest * mult >> shift);
}

#endif
