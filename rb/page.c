/* page.c - an event's count, and the clock, from the control page (docs/abi.md 3.2, 3.3).
 *
 * The functions of page.h that are no inlines: event/event_open.c counts by them (perfring_event_count_self), session/session.c
 * and programs convert times.  The page is the kernel's, or a ring's of perfring; it changes while it is read, so all members are
 * read between two loads of its lock.
 */
#include <perfring/page.h>

#include <perfring/writer.h>

#include "page_private.h"

enum {
	USER_RDPMC = 4, /* the bits of `capabilities` */
	USER_TIME = 8,
	USER_TIME_ZERO = 16,
	USER_TIME_SHORT = 32,
	SHIFT = 32, /* at most: the remainder's product fits 64 bits then */
	TRIES = 1000,
};

/* ---- the sequence lock ---- */

/* How the page converts cycles. */
struct clock {
	uint64_t capabilities;
	uint64_t offset;
	uint64_t zero;
	uint64_t cycles;
	uint64_t mask;
	uint32_t mult;
	uint16_t shift;
};

/* Odd: the kernel or perfring_ring_calibrate is changing the page, or a process died in the latter.  The acquire pairs with the
 * store that makes it even. */
static inline uint32_t lock_of(const struct perf_event_mmap_page *page)
{
	return PERFRING_LOAD_ACQUIRE(&page->lock);
}

static inline bool is_whole(const struct perf_event_mmap_page *page, uint32_t lock)
{
	PERFRING_POINT(page_read);
	PERFRING_FENCE_LOADS();
	return !(lock & 1) && PERFRING_LOAD(&page->lock) == lock;
}

static inline void load_clock(const struct perf_event_mmap_page *page, struct clock *clock)
{
	clock->capabilities = PERFRING_LOAD(&page->capabilities);
	clock->shift = PERFRING_LOAD(&page->time_shift);
	clock->mult = PERFRING_LOAD(&page->time_mult);
	PERFRING_POINT(page_clock);
	clock->offset = PERFRING_LOAD(&page->time_offset);
	clock->zero = PERFRING_LOAD(&page->time_zero);
	clock->cycles = PERFRING_LOAD(&page->time_cycles);
	clock->mask = PERFRING_LOAD(&page->time_mask);
}

/* ---- cycles and time ---- */

static inline uint64_t time_of(const struct clock *clock, uint64_t cycles)
{
	if (clock->capabilities & USER_TIME_SHORT)
		cycles = clock->cycles + ((cycles - clock->cycles) & clock->mask);
	return perfring__page_scale(cycles, clock->mult, clock->shift);
}

static int read_clock(const struct perf_event_mmap_page *page, struct clock *clock)
{
	uint32_t lock;
	int tries = 0;

	for (;;) {
		lock = lock_of(page);
		load_clock(page, clock);
		if (is_whole(page, lock))
			break;
		if (++tries == TRIES)
			return -EAGAIN;
		PERFRING_RELAX();
	}
	return clock->capabilities & USER_TIME_ZERO && clock->shift <= SHIFT ? 0 : -EOPNOTSUPP;
}

int perfring_page_to_time(const struct perf_event_mmap_page *page, uint64_t cycles, uint64_t *time)
{
	struct clock clock;
	int error = read_clock(page, &clock);

	if (error)
		return error;
	*time = clock.zero + time_of(&clock, cycles);
	return 0;
}

int perfring_page_to_cycles(const struct perf_event_mmap_page *page, uint64_t time, uint64_t *cycles)
{
	struct clock clock;
	int error = read_clock(page, &clock);

	if (error || !clock.mult)
		return error ? error : -EOPNOTSUPP;
	time -= clock.zero;
	*cycles = ((time / clock.mult) << clock.shift) + ((time % clock.mult) << clock.shift) / clock.mult;
	return 0;
}

/* ---- the counters ---- */

#if defined(__x86_64__) || defined(__i386__)

/* The instruction faults on an invalid number.  So this is never called for a page that others than the kernel can write. */
static inline bool read_counter(uint32_t counter, uint64_t *raw)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter) : "memory");
	*raw = (uint64_t)high << 32 | low;
	return true;
}

#elif defined(__aarch64__)

/* The number is part of the instruction: PMSELR, the alternative, would be changed by a signal handler that counts. */
static inline bool read_counter(uint32_t counter, uint64_t *raw)
{
	uint64_t value;

#define ONE(number) \
	case number: \
		__asm__ volatile("mrs %0, pmevcntr" #number "_el0" : "=r"(value) : : "memory"); \
		break;
	/* clang-format off */
	switch (counter) {
	ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) ONE(9) ONE(10)
	ONE(11) ONE(12) ONE(13) ONE(14) ONE(15) ONE(16) ONE(17) ONE(18) ONE(19) ONE(20)
	ONE(21) ONE(22) ONE(23) ONE(24) ONE(25) ONE(26) ONE(27) ONE(28) ONE(29) ONE(30)
	case 31:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value) : : "memory");
		break;
	default:
		return false;
	}
	/* clang-format on */
#undef ONE
	*raw = value;
	return true;
}

#endif

/* ---- the count ---- */

/* A raw counter of `width` bits is signed: the kernel starts it below 0, and has the rest in `offset`. */
static inline uint64_t extend(uint64_t raw, uint16_t width)
{
	uint64_t sign = UINT64_C(1) << (width - 1);

	return ((raw & (sign * 2 - 1)) ^ sign) - sign;
}

static inline __attribute__((always_inline)) int read_by(const struct perfring_page_counters *counters,
							 const struct perf_event_mmap_page *page,
							 struct perfring_page_count *count)
{
	uint64_t now = 0, raw = 0, delta;
	struct clock clock;
	uint32_t lock, index;
	uint16_t width;
	bool is_read;
	int tries = 0;

	if (!counters->count)
		return -EOPNOTSUPP;
	for (;;) {
		lock = lock_of(page);
		count->enabled = PERFRING_LOAD(&page->time_enabled);
		PERFRING_POINT(page_enabled);
		count->running = PERFRING_LOAD(&page->time_running);
		load_clock(page, &clock);
		count->is_current = clock.capabilities & USER_TIME && counters->cycles && clock.shift <= SHIFT;
		if (count->is_current)
			now = counters->cycles();
		index = PERFRING_LOAD(&page->index);
		PERFRING_POINT(page_index);
		count->value = (uint64_t)PERFRING_LOAD(&page->offset);
		width = PERFRING_LOAD(&page->pmc_width);
		is_read = clock.capabilities & USER_RDPMC;
		/* Between the two loads of the lock: else the counter may be another event's by now.  Not under an odd
		 * lock: that try is dropped, and its index is of no use. */
		if (is_read && index && !(lock & 1))
			is_read = width && width <= 64 && counters->count(index - 1, &raw);
		if (is_whole(page, lock))
			break;
		if (++tries == TRIES)
			return -EAGAIN;
		PERFRING_RELAX();
	}
	if (!is_read)
		return -EOPNOTSUPP;
	count->is_counting = index;
	if (index)
		count->value += extend(raw, width);
	if (count->is_current) {
		delta = clock.offset + time_of(&clock, now);
		count->enabled += delta;
		if (index)
			count->running += delta;
	}
	return 0;
}

int perfring__page_read_by(const struct perfring_page_counters *counters, const struct perf_event_mmap_page *page,
			   struct perfring_page_count *count)
{
	return read_by(counters, page, count);
}

int perfring_page_read(const struct perf_event_mmap_page *page, struct perfring_page_count *count)
{
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
	static const struct perfring_page_counters OWN = {read_counter, perfring_writer_counter};
#else
	static const struct perfring_page_counters OWN = {NULL, NULL};
#endif

	return read_by(&OWN, page, count);
}
