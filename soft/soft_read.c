/* soft_read.c - counts, times and losses as read(2) of an event gives them: docs/abi.md 2.2.
 *
 * perfring_soft_read of soft.h, for threads: under the switch (soft_event.c), so that no event of the group goes meanwhile.  emit.c
 * puts what one thread has counted into its records: handlers too, in a section (grace.c).  Writes into the caller's memory;
 * what does not fit is an error, and nothing is allocated.
 */
#include "soft_private.h"

uint32_t perfring__soft_read_size_of(const struct perfring_soft_event *event, uint32_t members)
{
	uint64_t format = event->attr.read_format;
	uint32_t entries = format & PERF_FORMAT_GROUP ? members : 1;

	return perfring_format_read_head(format) + entries * perfring_format_read_entry(format);
}

uint64_t perfring_soft_id(const struct perfring_soft_event *event)
{
	return event->id;
}

struct reading {
	uint64_t value, enabled, lost;
};

static void add(struct reading *reading, struct soft_instance *instance)
{
	reading->value += perfring__soft_counted(instance);
	reading->enabled += perfring__soft_time_enabled(instance);
	reading->lost += PERFRING_LOAD(&instance->output.lost); /* no order: a count */
}

/* Of the thread with that index; UINT32_MAX: of all threads (the switch). */
static struct reading reading_of(const struct perfring_soft_event *event, uint32_t index)
{
	struct soft_instance *instance;
	struct reading reading = {0, 0, 0};

	if (index != UINT32_MAX) {
		instance = PERFRING_LOAD_ACQUIRE(&event->instances[index]); /* partner: instance_make */
		if (instance)
			add(&reading, instance);
		return reading;
	}
	reading.value = event->own_count + event->exited_count + PERFRING_LOAD(&event->unjoined_count);
	reading.enabled = event->exited_enabled;
	reading.lost = event->exited_lost + PERFRING_LOAD(&event->unjoined_lost);
	for (uint32_t i = 0; (instance = perfring__soft_instance_from(event, &i)); i++)
		add(&reading, instance);
	return reading;
}

/* docs/abi.md 2.2: nr and times before the entries; without a group, the times are inside the only entry.  A software
 * event runs while it is enabled. */
static uint64_t *put_times(uint64_t *word, uint64_t format, uint64_t enabled)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*word++ = enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*word++ = enabled;
	return word;
}

static void put_ids(uint64_t *word, uint64_t format, uint64_t id, uint64_t lost)
{
	if (format & PERF_FORMAT_ID)
		*word++ = id;
	if (format & PERFRING_FORMAT_LOST)
		*word++ = lost;
}

/* last: of the group's members, NULL: of all.  Returns the size; 0: more than `max`. Meanwhile the group may change; each
 * entry is valid. */
static uint32_t put_reading(const struct perfring_soft_event *event, uint32_t index,
			    const struct perfring_soft_event *last, unsigned char *to, size_t max)
{
	uint64_t format = event->attr.read_format, words[8], *word, nr = 0;
	bool group = format & PERF_FORMAT_GROUP;
	uint32_t head = group ? perfring_format_read_head(format) : 0, size = head;
	uint32_t entry = group ? perfring_format_read_entry(format) : perfring__soft_read_size_of(event, 1);
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&event->leader);
	const struct perfring_soft_event *member = group ? leader : event;
	struct reading reading;

	for (; member; member = group ? PERFRING_LOAD_ACQUIRE(&member->next) : NULL, nr++, size += entry) {
		if (size + entry > max)
			return 0;
		reading = reading_of(member, index);
		words[0] = reading.value;
		word = group ? words + 1 : put_times(words + 1, format, reading.enabled);
		put_ids(word, format, member->id, reading.lost);
		memcpy(to + size, words, entry);
		if (member == last)
			group = false;
	}
	if (!head)
		return size;
	/* read(2) has the leader's times, a sample those of its own event. */
	reading = reading_of(index == UINT32_MAX ? leader : event, index);
	words[0] = nr;
	put_times(words + 1, format, reading.enabled);
	memcpy(to, words, head);
	return size;
}

uint32_t perfring__soft_read_in_thread(const struct soft_instance *instance, void *to, uint32_t max)
{
	return put_reading(instance->event, instance->thread->index, NULL, to, max);
}

/* The kernel ends a task's events from the last to the first: of a group those that are left. */
uint32_t perfring__soft_read_at_exit(const struct soft_instance *instance, void *to, uint32_t max)
{
	const struct perfring_soft_event *event = instance->event, *member = event->leader;
	uint32_t members = 1, size;

	for (; member != event; member = member->next)
		members++;
	size = perfring__soft_read_size_of(event, members);
	return to ? put_reading(event, instance->thread->index, event, to, max) : size;
}

uint32_t perfring__soft_read_size(const struct soft_instance *instance)
{
	const struct perfring_soft_event *member = PERFRING_LOAD_ACQUIRE(&instance->event->leader);
	uint32_t members = 0;

	for (; member; member = PERFRING_LOAD_ACQUIRE(&member->next))
		members++;
	return perfring__soft_read_size_of(instance->event, members);
}

int64_t perfring_soft_read(struct perfring_soft_event *event, void *buffer, size_t size)
{
	sigset_t signals;
	uint32_t put;

	perfring__soft_switch_take(&signals);
	put = put_reading(event, UINT32_MAX, NULL, buffer, size);
	perfring__soft_switch_give(&signals);
	return put ? (int64_t)put : -ENOSPC;
}

uint64_t perfring_soft_lost(const struct perfring_soft_event *event)
{
	sigset_t signals;
	uint64_t lost;

	perfring__soft_switch_take(&signals);
	lost = reading_of(event, UINT32_MAX).lost;
	perfring__soft_switch_give(&signals);
	return lost;
}
