/* table.h - elements that are found by their first bytes: each stands once, and keeps its index.
 *
 * The tables of profile.c, and those of pprof.c and callgrind.c while they write.  Elements are copied, and move when the table
 * grows: keep indices, not pointers.  One thread.
 */
#ifndef PERFRING_PROFILE_TABLE_H
#define PERFRING_PROFILE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfring_table_slot {
	uint32_t hash;
	uint32_t index; /* + 1; 0: free */
};

/* What several tables may take together. */
struct perfring_table_budget {
	uint64_t used, max;
	uint64_t factor; /* of hashes: secret */
};

/* All 0 but the sizes is an empty one. */
struct perfring_table {
	uint32_t size, key_size; /* of an element, and of the key at its beginning: without padding */
	uint32_t count, capacity;
	unsigned char *elements;
	struct perfring_table_slot *slots; /* at most half full */
	uint64_t slot_count;               /* 0, or a power of two */
};

/* The index of the element with this key, which is added if there is none: 0 after its key.  must: also above the budget.
 * Returns -ENOSPC above the budget, -ENOMEM. */
int64_t perfring__table_add(struct perfring_table *table, struct perfring_table_budget *budget, const void *key,
			    bool must);
void perfring__table_close(struct perfring_table *table);

static inline void *perfring__table_at(const struct perfring_table *table, uint64_t index)
{
	return table->elements + index * table->size;
}

#endif
