/* table.c - elements that are found by their first bytes.
 *
 * Open addressing, at most half full; the budget has the hash factor, a random one where keys are foreign.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/array.h"
#include "os/hash.h"
#include "table.h"

static struct perfring_table_slot *slot_of(const struct perfring_table *table, uint32_t hash, const void *key)
{
	uint64_t mask = table->slot_count - 1;

	for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
		struct perfring_table_slot *slot = &table->slots[i];

		if (!slot->index || (slot->hash == hash && key &&
				     !memcmp(perfring__table_at(table, slot->index - 1), key, table->key_size)))
			return slot;
	}
}

static bool fits(const struct perfring_table_budget *budget, uint64_t bytes, bool must)
{
	return must || (bytes <= budget->max && budget->used <= budget->max - bytes);
}

static int grow_slots(struct perfring_table *table, struct perfring_table_budget *budget, bool must)
{
	uint64_t count = table->slot_count ? 2 * table->slot_count : 64, before = table->slot_count;
	struct perfring_table_slot *old = table->slots, *slots;

	if (!fits(budget, (count - before) * sizeof(*slots), must))
		return -ENOSPC;
	slots = calloc((size_t)count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	budget->used += (count - before) * sizeof(*slots);
	table->slots = slots;
	table->slot_count = count;
	for (uint64_t i = 0; i < before; i++)
		if (old[i].index)
			*slot_of(table, old[i].hash, NULL) = old[i];
	free(old);
	return 0;
}

static int grow_elements(struct perfring_table *table, struct perfring_table_budget *budget, bool must)
{
	uint32_t before = table->capacity;
	uint64_t bytes = (uint64_t)(before ? before : 16) * table->size;

	if (table->count < table->capacity)
		return 0;
	if (!fits(budget, bytes, must))
		return -ENOSPC;
	if (perfring__os_array_grow(&table->elements, table->count, &table->capacity, table->size))
		return -ENOMEM;
	budget->used += (uint64_t)(table->capacity - before) * table->size;
	return 0;
}

int64_t perfring__table_add(struct perfring_table *table, struct perfring_table_budget *budget, const void *key,
			    bool must)
{
	uint32_t hash = (uint32_t)(perfring__os_hash(budget->factor, key, table->key_size) >> 32);
	struct perfring_table_slot *slot;
	int error = 0;

	slot = table->slot_count ? slot_of(table, hash, key) : NULL;
	if (slot && slot->index)
		return slot->index - 1;
	if ((uint64_t)table->count * 2 >= table->slot_count) {
		error = grow_slots(table, budget, must);
		slot = error ? NULL : slot_of(table, hash, key);
	}
	if (!error)
		error = grow_elements(table, budget, must);
	if (error)
		return error;
	memset(perfring__table_at(table, table->count), 0, table->size);
	memcpy(perfring__table_at(table, table->count), key, table->key_size);
	*slot = (struct perfring_table_slot){hash, ++table->count};
	return table->count - 1;
}

void perfring__table_close(struct perfring_table *table)
{
	free(table->elements);
	free(table->slots);
}
