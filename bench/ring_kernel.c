/* ring_kernel.c - the kernel's algorithm as docs/abi.md 7.2 to 7.5 describe it, for comparison: position, nest count and
 * losses in memory, data by pages, a compare-exchange for each record; with unlocked and with locked instructions.
 *
 * All steps are there, those too that a plain ring never needs: they are what it costs.
 */
#include <stdlib.h>
#include <string.h>
#include <perfring/page.h>

#include "bench.h"
#include "ring_peers.h"

enum {
	PAGE_SHIFT = 12,
	PAGE = 1 << PAGE_SHIFT,
};

struct ring_kernel {
	uint64_t position; /* its head */
	uint64_t wakeup;
	uint64_t lost;
	uint64_t watermark;
	uint64_t size;
	uint32_t nest;
	uint32_t events;
	uint32_t poll;
	bool paused, overwrite, backward;
	struct perf_event_mmap_page *page;
	/* of the event that writes */
	uint64_t id, refused;
	uint32_t wakeup_events;
	bool sample_id_all;
	unsigned char *pages[];
};

/* One record that is being written. */
struct output {
	struct ring_kernel *ring;
	uint64_t wakeup; /* as it was at the beginning */
	unsigned char *place;
	uint64_t left; /* in this page */
	uint64_t number;
};

struct lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct ring_kernel *ring_kernel_open(struct perf_event_mmap_page *page, unsigned char *data, uint64_t size)
{
	uint64_t pages = size >> PAGE_SHIFT, i;
	struct ring_kernel *ring = calloc(1, sizeof(*ring) + pages * sizeof(ring->pages[0]));

	ring->page = page;
	ring->size = size;
	ring->watermark = size / 2;
	ring->position = page->data_head;
	ring->wakeup = ring->position;
	for (i = 0; i < pages; i++)
		ring->pages[i] = data + (i << PAGE_SHIFT);
	return ring;
}

void ring_kernel_close(struct ring_kernel *ring)
{
	free(ring);
}

static inline bool swap(uint64_t *word, uint64_t expected, uint64_t value, bool locked)
{
	if (locked)
		return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return PERFRING_COMPARE_EXCHANGE_LOCAL(word, expected, value);
}

static inline uint64_t exchange(uint64_t *word, uint64_t value, bool locked)
{
	uint64_t was;

	do
		was = PERFRING_LOAD(word);
	while (!swap(word, was, value, locked));
	return was;
}

static inline void add(uint64_t *word, uint64_t value, bool locked)
{
	if (locked)
		PERFRING_ADD(word, value);
	else
		PERFRING_ADD_LOCAL(word, value);
}

/* 7.2: what is free, less the one byte that keeps full and empty apart. */
static inline bool fits(uint64_t size, uint64_t from, uint64_t to, uint64_t ring_size)
{
	return ((to - (from + 1)) & (ring_size - 1)) >= size;
}

static inline void copy(struct output *output, const void *from, uint64_t size)
{
	const unsigned char *bytes = from;

	for (;;) {
		uint64_t piece = size < output->left ? size : output->left;

		memcpy(output->place, bytes, piece);
		output->place += piece;
		output->left -= piece;
		bytes += piece;
		size -= piece;
		if (!output->left) {
			output->number = (output->number + 1) & ((output->ring->size >> PAGE_SHIFT) - 1);
			output->place = output->ring->pages[output->number];
			output->left = PAGE;
		}
		if (!size)
			break;
	}
}

/* 7.5 */
static inline void end(struct output *output)
{
	struct ring_kernel *ring = output->ring;
	uint64_t position;

	if (PERFRING_LOAD(&ring->nest) > 1) {
		PERFRING_STORE(&ring->nest, ring->nest - 1);
		return;
	}
	for (;;) {
		PERFRING_FENCE_LOCAL();
		position = PERFRING_LOAD(&ring->position);
		perfring_page_publish(ring->page, position);
		PERFRING_FENCE_LOCAL();
		PERFRING_STORE(&ring->nest, 0u);
		PERFRING_FENCE_LOCAL();
		if (PERFRING_LIKELY(PERFRING_LOAD(&ring->position) == position))
			break;
		PERFRING_STORE(&ring->nest, 1u);
	}
	if (PERFRING_LOAD(&ring->wakeup) != output->wakeup)
		PERFRING_STORE(&ring->poll, 1u); /* and the wakeup itself: no thread waits here */
}

/* 7.3 */
static inline bool begin(struct output *output, struct ring_kernel *ring, uint64_t size, bool locked)
{
	uint64_t from, to, tail, at;
	bool has_lost;

	output->ring = ring;
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&ring->paused))) {
		add(&ring->lost, 1, locked);
		add(&ring->refused, 1, locked);
		return false;
	}
	has_lost = PERFRING_LOAD(&ring->lost) != 0;
	if (PERFRING_UNLIKELY(has_lost))
		size += sizeof(struct lost);
	PERFRING_STORE(&ring->nest, ring->nest + 1);
	PERFRING_FENCE_LOCAL();
	output->wakeup = PERFRING_LOAD(&ring->wakeup);
	do {
		tail = perfring_page_reclaim(ring->page);
		from = PERFRING_LOAD(&ring->position);
		if (!ring->overwrite && PERFRING_UNLIKELY(ring->backward ? !fits(size, tail, from, ring->size)
									 : !fits(size, from, tail, ring->size))) {
			add(&ring->lost, 1, locked);
			add(&ring->refused, 1, locked);
			end(output);
			return false;
		}
		to = ring->backward ? from - size : from + size;
	} while (PERFRING_UNLIKELY(!swap(&ring->position, from, to, locked)));
	at = ring->backward ? to : from;
	if (PERFRING_UNLIKELY((ring->backward ? -to : to) - PERFRING_LOAD(&ring->wakeup) > ring->watermark))
		add(&ring->wakeup, ring->watermark, locked);
	output->number = (at >> PAGE_SHIFT) & ((ring->size >> PAGE_SHIFT) - 1);
	output->place = ring->pages[output->number] + (at & (PAGE - 1));
	output->left = PAGE - (at & (PAGE - 1));
	if (PERFRING_UNLIKELY(has_lost)) {
		struct lost record = {{PERF_RECORD_LOST, 0, sizeof(record)}, ring->id, 0};

		record.lost = exchange(&ring->lost, 0, locked);
		copy(output, &record, sizeof(record));
	}
	return true;
}

/* 7.3, step 10 */
static inline void count(struct output *output)
{
	struct ring_kernel *ring = output->ring;

	if (ring->wakeup_events && ++ring->events >= ring->wakeup_events) {
		ring->events -= ring->wakeup_events;
		PERFRING_STORE(&ring->wakeup, ring->wakeup + 1);
	}
}

/* Three functions, as in the kernel, where callers are many. */
#define KERNEL(name, locked) \
	static __attribute__((noinline)) bool begin_##name(struct output *output, struct ring_kernel *ring, \
							   uint64_t size) \
	{ \
		return begin(output, ring, size, locked); \
	} \
\
	int64_t ring_kernel_##name(struct ring_kernel *ring, uint64_t size, int64_t records) \
	{ \
		struct output output; \
		int64_t done; \
\
		for (done = 0; done < records && begin_##name(&output, ring, size); done++) { \
			copy_all(&output, ring_source, size); \
			count(&output); \
			end_all(&output); \
		} \
		return done; \
	}

static __attribute__((noinline)) void copy_all(struct output *output, const void *from, uint64_t size)
{
	copy(output, from, size);
}

static __attribute__((noinline)) void end_all(struct output *output)
{
	end(output);
}

KERNEL(unlocked, false)
KERNEL(locked, true)
