/* dwarf_memory.c - the memory of what is made of DWARF: arrays that grow, and texts.
 *
 * All of it counts against PERFRING_LIMIT_LINES.  Of a file with large sections it comes from one space with huge pages: a page fault for
 * each 4 KiB would take as long as to fill them.  Of others it is malloc's.
 */
#include <stdlib.h>
#include "dwarf.h"
#include "limits.h"
#include "os/array.h"

enum {
	CLASS_MIN = 6,    /* logarithms of sizes of blocks in the space */
	TEXTS = 64 << 10, /* bytes for texts that are taken at once */
};

/* A block that is free. */
struct perfring_dwarf_block {
	struct perfring_dwarf_block *next;
};

/* Memory for texts. */
struct perfring_dwarf_texts {
	struct perfring_dwarf_texts *next;
	size_t used, space;
	char bytes[];
};

void perfring__dwarf_memory_open(struct perfring_dwarf_memory *memory)
{
	/* as much again for blocks that were left when an array grew, and for sizes that are powers of two */
	uint64_t size = 4 * PERFRING_LIMIT_LINES;

	memory->at = perfring__dwarf_space_open(&memory->space, size);
	memory->end = memory->at ? memory->at + size : NULL;
}

void perfring__dwarf_memory_close(struct perfring_dwarf_memory *memory)
{
	for (struct perfring_dwarf_texts *texts = memory->texts, *next; texts && !memory->at; texts = next) {
		next = texts->next;
		free(texts);
	}
	perfring__dwarf_space_close(&memory->space);
	*memory = (struct perfring_dwarf_memory){.bytes = 0};
}

static unsigned class_of(size_t size)
{
	unsigned class = CLASS_MIN;

	while ((size_t)1 << class < size)
		class ++;
	return class;
}

/* A block of the space, or NULL. */
static void *take_block(struct perfring_dwarf_memory *memory, unsigned class)
{
	struct perfring_dwarf_block *block = memory->free[class];
	size_t size = (size_t)1 << class;

	if (block) {
		memory->free[class] = block->next;
		return block;
	}
	if ((size_t)(memory->end - memory->at) < size)
		return NULL;
	memory->at += size;
	return memory->at - size;
}

static void put_block(struct perfring_dwarf_memory *memory, void *memory_of_it, size_t size)
{
	struct perfring_dwarf_block *block = memory_of_it;
	unsigned class = class_of(size);

	block->next = memory->free[class];
	memory->free[class] = block;
}

void perfring__dwarf_free(struct perfring_dwarf_memory *memory, void *array, uint32_t capacity, size_t size)
{
	if (!array)
		return;
	memory->bytes -= (uint64_t)capacity * size;
	if (memory->at)
		put_block(memory, array, capacity * size);
	else
		free(array);
}

/* Doubles an array in the space.  Returns 0 or -ENOMEM. */
static int double_in_space(struct perfring_dwarf_memory *memory, void *array, uint32_t *capacity, size_t size)
{
	unsigned class = class_of((*capacity ? 2 * (size_t)*capacity : 16) * size);
	void *before, *block = class < PERFRING_DWARF_CLASSES ? take_block(memory, class) : NULL;

	if (!block)
		return -ENOMEM;
	memcpy(&before, array, sizeof(before));
	if (before) {
		memcpy(block, before, *capacity * size);
		put_block(memory, before, *capacity * size);
	}
	memcpy(array, &block, sizeof(block));
	*capacity = (uint32_t)(((size_t)1 << class) / size);
	return 0;
}

bool perfring__dwarf_grow_slow(struct perfring_dwarf_memory *memory, void *array, uint32_t *capacity, size_t size)
{
	uint32_t before = *capacity;

	if (memory->bytes > PERFRING_LIMIT_LINES ||
	    (memory->at ? double_in_space(memory, array, capacity, size)
			: perfring__os_array_grow(array, before, capacity, size))) {
		memory->is_short = memory->is_short || memory->bytes <= PERFRING_LIMIT_LINES;
		return false;
	}
	memory->bytes += (uint64_t)(*capacity - before) * size;
	return true;
}

char *perfring__dwarf_text_space(struct perfring_dwarf_memory *memory, size_t size)
{
	struct perfring_dwarf_texts *texts = memory->texts;
	size_t space = size < TEXTS - sizeof(*texts) ? TEXTS - sizeof(*texts) : size;
	unsigned class;

	if (!texts || texts->space - texts->used < size) {
		class = class_of(sizeof(*texts) + space);
		texts = memory->bytes > PERFRING_LIMIT_LINES || class >= PERFRING_DWARF_CLASSES ? NULL
			: memory->at ? take_block(memory, class)
				     : malloc(sizeof(*texts) + space);
		if (!texts) {
			memory->is_short = memory->is_short || memory->bytes <= PERFRING_LIMIT_LINES;
			return NULL;
		}
		memory->bytes += sizeof(*texts) + space;
		*texts = (struct perfring_dwarf_texts){.next = memory->texts, .space = space};
		memory->texts = texts;
	}
	texts->used += size;
	return texts->bytes + texts->used - size;
}
