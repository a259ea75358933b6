/* split.c - the sample of a group as one sample for each event that counted. */
#include <stdlib.h>
#include <sys/random.h>
#include <perfring/split.h>

/* The last value of an id: of one thread's where threads inherit the event, else tid is 0.  id 0 is no id: a free slot. */
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

/* A full table becomes the older one, and what that held is forgotten: memory is bounded whatever ids and threads a file
 * names.  What is used moves from the older into the new one. */
struct perfring_split {
	const struct perfring_format_set *formats;
	struct table table;
	struct table older;
	uint64_t odd
		[2]; /* spread ids and threads over the slots; drawn, so that no file can choose those that fall on one */
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
	if (getrandom(opened->odd, sizeof(opened->odd), GRND_NONBLOCK) != sizeof(opened->odd)) {
		opened->odd[0] = (uintptr_t)opened * UINT64_C(0x9e3779b97f4a7c15);
		opened->odd[1] = opened->odd[0] * UINT64_C(0xbf58476d1ce4e5b9);
	}
	opened->odd[0] |= 1;
	opened->odd[1] |= 1;
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

/* The slot that holds the value, or the free one where it would go; NULL in a table without slots. */
static struct last *slot_of(const struct perfring_split *split, const struct table *table, uint64_t id, uint32_t tid)
{
	uint64_t mask = table->nr - 1, i;

	if (!table->nr)
		return NULL;
	i = (id * split->odd[0] + tid * split->odd[1]) >> __builtin_clzll(mask);
	while (table->slots[i].id && (table->slots[i].id != id || table->slots[i].tid != tid))
		i = (i + 1) & mask;
	return &table->slots[i];
}

/* More slots, or an empty table before the full one. */
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

/* Where the last value of this id is kept, 0 at first.  NULL: no memory. */
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
