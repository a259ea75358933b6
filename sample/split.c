/* split.c - the sample of a group as one sample of each event that counted.
 *
 * The functions of split.h, which tools/input.c calls for every command that reads samples.  Two hash tables of bounded size hold
 * the last value of each id; ids are foreign, and the hash factors random.
 */
#include <stdlib.h>
#include <perfring/split.h>

#include "os/hash.h"

/* The last value of an id, per thread where threads inherit the event; else tid is 0.  A free slot has id 0. */
struct last {
	uint64_t id;
	uint64_t value;
	uint32_t tid;
	uint32_t padding;
};

/* Open addressing, at most half full.  nr: 0, or a power of two. */
struct table {
	struct last *slots;
	uint64_t nr;
	uint64_t used;
};

/* A full table replaces the older one, so that memory is bounded for any number of ids and threads.  A value that is
 * used again is copied from the older table. */
struct perfring_split {
	const struct perfring_format_set *formats;
	struct table table;
	struct table older;
	uint64_t factors[2]; /* spread ids and threads over the slots */
	uint64_t unknown;
	/* of the sample */
	const struct perfring_format *format;
	struct perfring_sample *sample;
	uint64_t at; /* of its values */
	uint64_t nr;
	uint32_t tid;
	bool is_read;
};

int perfring_split_open(struct perfring_split **split, const struct perfring_format_set *formats)
{
	struct perfring_split *opened = calloc(1, sizeof(*opened));

	*split = opened;
	if (!opened)
		return -ENOMEM;
	opened->formats = formats;
	opened->factors[0] = perfring__os_hash_factor(opened);
	opened->factors[1] = perfring__os_hash_factor(opened->factors);
	return 0;
}

void perfring_split_close(struct perfring_split *split)
{
	if (!split)
		return;
	free(split->table.slots);
	free(split->older.slots);
	free(split);
}

uint64_t perfring_split_unknown(const struct perfring_split *split)
{
	return split->unknown;
}

/* The slot of the id, or the free slot for it; NULL in a table without slots. */
static struct last *slot_of(const struct perfring_split *split, const struct table *table, uint64_t id, uint32_t tid)
{
	uint64_t mask = table->nr - 1, i;

	if (!table->nr)
		return NULL;
	i = (id * split->factors[0] + tid * split->factors[1]) >> __builtin_clzll(mask);
	while (table->slots[i].id && (table->slots[i].id != id || table->slots[i].tid != tid))
		i = (i + 1) & mask;
	return &table->slots[i];
}

/* Doubles the slots, or begins an empty table when there are enough. */
static int grow(struct perfring_split *split)
{
	bool is_full = split->table.used >= PERFRING_SPLIT_MAX;
	struct table grown = {.nr = is_full || !split->table.nr ? 64 : split->table.nr * 2};

	grown.slots = calloc((size_t)grown.nr, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	if (is_full) {
		free(split->older.slots);
		split->older = split->table;
	} else {
		grown.used = split->table.used;
		for (uint64_t i = 0; i < split->table.nr; i++) {
			const struct last *last = &split->table.slots[i];

			if (last->id)
				*slot_of(split, &grown, last->id, last->tid) = *last;
		}
		free(split->table.slots);
	}
	split->table = grown;
	return 0;
}

/* The last value of this id, 0 at first.  Returns NULL without memory. */
static uint64_t *value_of(struct perfring_split *split, uint64_t id, uint32_t tid)
{
	struct last *last = slot_of(split, &split->table, id, tid);
	const struct last *older;

	if (last && last->id)
		return &last->value;
	if (split->table.used >= split->table.nr / 2) {
		if (grow(split))
			return NULL;
		last = slot_of(split, &split->table, id, tid);
	}
	older = slot_of(split, &split->older, id, tid);
	*last = (struct last){.id = id, .value = older && older->id ? older->value : 0, .tid = tid};
	split->table.used++;
	return &last->value;
}

void perfring_split_begin(struct perfring_split *split, const struct perfring_format *format,
			  struct perfring_sample *sample)
{
	const struct perfring_read *read = &sample->read;
	bool is_per_thread = format->flags >> PERFRING_ATTR_FLAG_inherit & 1 && (sample->present & PERFRING_SAMPLE_TID);

	split->format = format;
	split->sample = sample;
	split->is_read = (sample->present & PERFRING_SAMPLE_READ) && (read->read_format & PERFRING_FORMAT_ID);
	split->nr = split->is_read ? read->nr : 1;
	split->at = 0;
	split->tid = is_per_thread ? sample->tid : 0;
}

int perfring_split_next(struct perfring_split *split, const struct perfring_format **format)
{
	struct perfring_sample *sample;

	if (PERFRING_UNLIKELY(!split)) {
		*format = NULL;
		return -EINVAL;
	}
	sample = split->sample;
	*format = split->format;
	if (PERFRING_LIKELY(!split->is_read))
		return split->at++ < split->nr;
	while (split->at < split->nr) {
		uint64_t id = perfring_read_id(&sample->read, split->at);
		uint64_t value = perfring_read_value(&sample->read, split->at), *last, before;

		split->at++;
		*format = perfring_format_set_find(split->formats, id);
		if (!*format) {
			split->unknown++;
			continue;
		}
		last = value_of(split, id, split->tid);
		if (!last)
			return -ENOMEM;
		before = value < *last ? 0 : *last;
		*last = value;
		if (value == before)
			continue;
		sample->identifier = sample->id = id;
		sample->period = value - before;
		sample->present |= PERFRING_SAMPLE_PERIOD;
		return 1;
	}
	return 0;
}
