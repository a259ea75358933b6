/* heap.h - a binary heap of numbers: the smallest key first, equal keys by number.
 *
 * session/ and file/ merge streams by it, symbol/source_lines.c nests calls.  Inline, in memory of the caller.
 */
#ifndef PERFRING_OS_HEAP_H
#define PERFRING_OS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct perfring_heap_entry {
	uint64_t key;
	uint32_t number;
};

static inline bool perfring__heap_is_before(struct perfring_heap_entry one, struct perfring_heap_entry other)
{
	return one.key < other.key || (one.key == other.key && one.number < other.number);
}

/* Restores the order after entry `at` was replaced, or got a larger key. */
static inline void perfring__heap_down(struct perfring_heap_entry *heap, uint32_t count, uint32_t at)
{
	for (;;) {
		struct perfring_heap_entry moved = heap[at];
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
			if (perfring__heap_is_before(heap[child], heap[least]))
				least = child;
		if (least == at)
			return;
		heap[at] = heap[least];
		heap[least] = moved;
		at = least;
	}
}

static inline bool perfring__heap_is_valid(const struct perfring_heap_entry *heap, uint32_t count)
{
	for (uint32_t at = 1; at < count; at++)
		if (perfring__heap_is_before(heap[at], heap[(at - 1) / 2]))
			return false;
	return true;
}

/* Makes a heap of entries in any order. */
static inline void perfring__heap_make(struct perfring_heap_entry *heap, uint32_t count)
{
	for (uint32_t i = count / 2; i-- > 0;)
		perfring__heap_down(heap, count, i);
}

#endif
