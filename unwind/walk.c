/* walk.c - whole stacks, and the cache of rules in front of them (docs/unwind.md). */
#include <stdlib.h>
#include <perfring/unwind.h>

enum {
	ENTRIES_MIN = 64,
	ENTRIES_MAX = 1 << 20,
	STACKS_MAX = 4,
};

/* `next` is the entry that was used after this one.  A stack is mostly left the way it was left the last time, so that entry is
 * loaded while its ip still comes from the stack: the two loads do not wait for one another, and only the comparison does. */
struct entry {
	uint64_t at; /* the address that was looked up */
	uint32_t space;
	uint32_t next;
	struct perfring_unwind_rule rule; /* CFA_NONE: it was looked up, and there is none */
};

static_assert(sizeof(struct entry) == 32, "two entries a cache line");

struct perfring_unwind_cache {
	struct entry *entries;
	uint32_t mask;
	uint32_t first; /* the entry of the last walk's first frame */
};

int perfring_unwind_cache_open(struct perfring_unwind_cache **cache, uint32_t entries)
{
	struct perfring_unwind_cache *opened = calloc(1, sizeof(*opened));
	uint32_t count = ENTRIES_MIN;

	*cache = NULL;
	if (!opened)
		return -ENOMEM;
	while (count < entries && count < ENTRIES_MAX)
		count *= 2;
	opened->mask = count - 1;
	opened->entries = aligned_alloc(64, count * sizeof(*opened->entries));
	if (!opened->entries) {
		free(opened);
		return -ENOMEM;
	}
	memset(opened->entries, 0, count * sizeof(*opened->entries)); /* space 0 is none */
	*cache = opened;
	return 0;
}

void perfring_unwind_cache_close(struct perfring_unwind_cache *cache)
{
	if (!cache)
		return;
	free(cache->entries);
	free(cache);
}

static const struct perfring_unwind_map *find_map(const struct perfring_unwind_space *space, uint64_t at)
{
	uint32_t low = 0, high = space->nr, middle;

	while (low < high) { /* 32 turns at most */
		middle = low + (high - low) / 2;
		if (space->maps[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < space->nr && space->maps[low].start <= at ? &space->maps[low] : NULL;
}

/* The entry of an address, filled. */
static __attribute__((noinline)) struct entry *find_entry(const struct perfring_unwind_space *space,
							  struct perfring_unwind_cache *cache, uint64_t at)
{
	uint64_t hash = (at ^ space->id) * 0x9e3779b97f4a7c15;
	struct entry *entry = &cache->entries[(hash >> 32) & cache->mask];
	const struct perfring_unwind_map *map;

	if (entry->at == at && entry->space == space->id)
		return entry;
	entry->at = at;
	entry->space = space->id;
	memset(&entry->rule, 0, sizeof(entry->rule));
	map = find_map(space, at);
	if (!map || !map->unwind)
		return entry;
	if (space->makes) /* what cannot be made is found without rows */
		perfring_unwind_make(map->unwind, at - map->bias);
	perfring_unwind_rule_at(map->unwind, at - map->bias, &entry->rule, NULL);
	return entry;
}

uint32_t perfring_unwind_walk(const struct perfring_unwind_space *space, struct perfring_unwind_cache *cache,
			      struct perfring_unwind_registers *registers, const struct perfring_unwind_stack *stack,
			      uint64_t *ips, uint32_t most, enum perfring_unwind_end *end)
{
	struct perfring_unwind_registers now = *registers;
	uint32_t nr = 0, *guess = &cache->first;

	*end = PERFRING_UNWIND_FULL;
	while (nr < most) {
		struct entry *entry = &cache->entries[*guess & cache->mask];
		uint64_t at = now.ip - now.is_return;

		ips[nr++] = now.ip;
		if (PERFRING_UNLIKELY(entry->at != at || entry->space != space->id)) {
			entry = find_entry(space, cache, at);
			*guess = (uint32_t)(entry - cache->entries);
		}
		guess = &entry->next;
		*end = perfring_unwind_step(&entry->rule, stack, &now);
		if (PERFRING_UNLIKELY(*end != PERFRING_UNWIND_STEPPED))
			break;
		*end = PERFRING_UNWIND_FULL;
	}
	*registers = now;
	return nr;
}

enum perfring_unwind_end perfring_unwind_read_slow(const struct perfring_unwind_stack *stack, uint64_t sp, uint64_t at,
						   uint64_t *word)
{
	const struct perfring_unwind_stack *one = stack;
	int i;

	for (i = 0; one && i < STACKS_MAX; i++, one = one->other) {
		if (at - one->start < one->limit) {
			memcpy(word, one->bytes + (at - one->start), 8);
			return PERFRING_UNWIND_STEPPED;
		}
		/* Below a copy is what the thread had left, unless it came from another stack. */
		if (at < one->start && sp - one->start < one->limit)
			return PERFRING_UNWIND_BAD;
	}
	return PERFRING_UNWIND_TRUNCATED;
}
