/* counts.c - counting sets: fds that are opened and read together, and summed.
 *
 * The functions of count.h, for `perfring stat`, triggers and programs.  opener.c opens the fds; a group is read through its
 * leader.  Sums are made at each call, from the last read.  One thread at a time.
 */
#include <perfring/count.h>

#include <stdlib.h>
#include <unistd.h>

#include "opener.h"
#include "os/array.h"

struct counted {
	struct perfring_opener_event open;
	char *name;
	struct perf_event_attr asked;
	struct perf_event_attr attr; /* as opened */
};

/* The fds are sorted by place (a thread on a CPU); at each place are the events of one add in their order, without those that
 * could not be opened there.  So the members of a group follow their leader. */
struct perfring_counts {
	uint64_t allowed;
	uint64_t read_format; /* of the events, without bits that this kernel does not know */
	struct counted **events;
	uint32_t event_count;
	uint32_t event_capacity;
	struct perfring_counts_fd *fds;
	uint32_t fd_count;
	uint32_t fd_capacity;
	char refusal[1024];
	uint64_t buffer[PERFRING_OPENER_READ_WORDS];
};

#define REFUSE(counts, ...) \
	perfring__say(&(struct perfring_words){(counts)->refusal, sizeof((counts)->refusal), 0}, __VA_ARGS__)

static bool is_member(const struct perfring_counts *counts, uint32_t number)
{
	return perfring__opener_joins(&counts->events[number]->open, number);
}

int perfring_counts_open(struct perfring_counts **counts, uint64_t allowed)
{
	static const struct perf_event_attr WANTED = {.read_format = PERFRING_FORMAT_TOTAL_TIME_ENABLED |
								     PERFRING_FORMAT_TOTAL_TIME_RUNNING |
								     PERFRING_FORMAT_ID | PERFRING_FORMAT_LOST};

	*counts = calloc(1, sizeof(**counts));
	if (!*counts)
		return -ENOMEM;
	/* A count of cpu-clock does not replace another event's. */
	(*counts)->allowed = allowed & ~(uint64_t)PERFRING_FALLBACK_CPU_CLOCK;
	(*counts)->read_format = WANTED.read_format & ~perfring__probe_unknown(&WANTED, PERFRING_ATTR_AT_read_format);
	return 0;
}

/* Newest first: closing a leader before its siblings would make events of their own of them. */
static void cut_back(struct perfring_counts *counts, uint32_t fds, uint32_t events)
{
	while (counts->fd_count > fds)
		close(counts->fds[--counts->fd_count].fd);
	while (counts->event_count > events) {
		struct counted *event = counts->events[--counts->event_count];

		free(event->name);
		free(event);
	}
}

void perfring_counts_close(struct perfring_counts *counts)
{
	if (!counts)
		return;
	cut_back(counts, 0, 0);
	free(counts->events);
	free(counts->fds);
	free(counts);
}

/* ---- adding ---- */

static int add_event(struct perfring_counts *counts, const struct perfring_events_one *one, uint32_t first)
{
	uint32_t number = counts->event_count;
	struct counted *event = calloc(1, sizeof(*event));

	if (!event || perfring__os_array_grow(&counts->events, number, &counts->event_capacity, sizeof(event))) {
		free(event);
		return -ENOMEM;
	}
	counts->events[counts->event_count++] = event;
	event->open.attr = &event->attr;
	event->open.leader = one->leader == UINT32_MAX ? PERFRING_NO_GROUP : first + one->leader;
	event->attr = perfring__attr_whole(one->attr);
	event->attr.size = sizeof(event->attr);
	event->asked = event->attr;
	event->name = strdup(one->name);
	if (!event->name)
		return -ENOMEM;
	if (event->open.leader != PERFRING_NO_GROUP && event->open.leader > number) {
		REFUSE(counts, "a group's leader comes before its members.");
		return -EINVAL;
	}
	event->attr.read_format = counts->read_format;
	/* The leader's format reads the group, a sibling's only itself (docs/abi.md 2.2). */
	if (event->open.leader == number)
		event->attr.read_format |= PERFRING_FORMAT_GROUP;
	if (!is_member(counts, number))
		return 0;
	/* A disabled leader stops its siblings.  Enabled themselves, they start with it. */
	event->attr.disabled = 0;
	event->attr.enable_on_exec = 0;
	return 0;
}

static struct perfring_opener_event *event_of(void *of, uint32_t number)
{
	struct perfring_counts *counts = of;

	return &counts->events[number]->open;
}

static int take(void *of, const struct perfring_open_place *place, uint32_t number, int fd)
{
	struct perfring_counts *counts = of;
	struct perfring_counts_fd opened = {
		.fd = fd, .tid = place->is_cgroup ? -1 : place->who, .cpu = place->cpu, .event = number};
	int ret = perfring_event_id(fd, &opened.id);

	if (ret)
		REFUSE(counts, "the event's id cannot be read: %s.", strerror(-ret));
	else
		ret = perfring__os_array_grow(&counts->fds, counts->fd_count, &counts->fd_capacity, sizeof(opened));
	if (!ret)
		counts->fds[counts->fd_count++] = opened;
	return ret;
}

/* A cgroup is observed CPU by CPU. */
static int add_target(struct perfring_counts *counts, uint32_t first, const struct perfring_target *target)
{
	const struct perfring_numbers *who = perfring__target_who(target), *cpus = perfring__target_where(target);
	struct perfring_opener opener = {event_of,
					 take,
					 counts,
					 first,
					 counts->event_count - first,
					 counts->allowed,
					 false,
					 counts->refusal,
					 sizeof(counts->refusal)};
	struct perfring_target whole = *target;
	struct perfring_numbers online = {0};
	int ret = 0;

	if (who->numbers[0] == -1 && cpus->numbers[0] == -1) {
		REFUSE(counts, "the target names neither a thread nor a CPU.");
		return -EINVAL;
	}
	if (target->cgroups.count && !target->cpus.count) {
		ret = perfring__numbers_add_online(&online);
		whole.cpus = online;
		whole.all_cpus = true;
		cpus = &whole.cpus;
	}
	if (!ret)
		ret = perfring__opener_files((uint64_t)who->count * cpus->count * opener.count, true, counts->refusal,
					     sizeof(counts->refusal));
	if (!ret)
		ret = perfring__opener_open(&opener, &whole, who, cpus);
	free(online.numbers);
	return ret;
}

int perfring_counts_add(struct perfring_counts *counts, const struct perfring_events *events,
			const struct perfring_target *target)
{
	uint32_t first = counts->event_count, fds = counts->fd_count, count = perfring_events_count(events);
	int ret = 0;

	counts->refusal[0] = 0;
	if (!count) {
		REFUSE(counts, "the list names no event.");
		return -EINVAL;
	}
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = add_event(counts, perfring_events_at(events, i), first);
	if (!ret)
		ret = add_target(counts, first, target);
	if (!ret)
		return 0;
	if (!counts->refusal[0])
		REFUSE(counts, "adding the events failed: %s.", strerror(-ret));
	cut_back(counts, fds, first);
	return ret;
}

int perfring_counts_open_self(struct perfring_counts **counts, const char *text)
{
	struct perf_event_attr base = {.size = sizeof(base), .disabled = 1};
	struct perfring_events *events = NULL;
	struct perfring_target *target = NULL;
	struct perfring_fault fault = {0, ""};
	int ret = perfring_counts_open(counts, PERFRING_FALLBACK_ALL);

	if (ret)
		return ret;
	ret = perfring_events_open(&events);
	if (!ret)
		ret = perfring_target_open(&target);
	if (!ret)
		ret = perfring_target_add_thread(target, (int32_t)gettid());
	if (!ret) {
		ret = perfring_events_add(events, text, &base, &fault);
		if (ret)
			REFUSE(*counts, "'%s': at offset %lld: %s.", text, (long long)fault.at,
			       *fault.what ? fault.what : strerror(-ret));
		else
			ret = perfring_counts_add(*counts, events, target);
	}
	perfring_target_close(target);
	perfring_events_close(events);
	return ret;
}

const char *perfring_counts_refusal(const struct perfring_counts *counts)
{
	return counts ? counts->refusal : "";
}

int perfring_counts_error(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? counts->events[event]->open.error : -EINVAL;
}

uint64_t perfring_counts_given_up(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? counts->events[event]->open.dropped : 0;
}

int64_t perfring_counts_explain(const struct perfring_counts *counts, uint32_t number, char *buffer, size_t size)
{
	const struct counted *event = number < counts->event_count ? counts->events[number] : NULL;
	struct perfring_words text = perfring__words_in(buffer, size);
	char name[256];

	if (!event)
		return 0;
	if (!event->open.error)
		return perfring_fallback_explain(event->open.dropped, &event->asked, &event->attr, buffer, size);
	if (!is_member(counts, number) || !counts->events[event->open.leader]->open.error)
		return perfring_event_explain(event->open.error, &event->open.tried, 0, event->open.cpu, buffer, size);
	perfring__event_plain_name(&event->asked, name, sizeof(name));
	perfring__say(&text, "%s: not counted, because the leader of its group is not.", name);
	return (int64_t)text.length;
}

/* ---- running ---- */

/* Each single event, and each group through its leader.  Tries all; returns the first error. */
static int control(struct perfring_counts *counts, int (*one)(int fd, bool group), bool group)
{
	int ret = 0;

	for (uint32_t i = 0; i < counts->fd_count; i++) {
		int now = is_member(counts, counts->fds[i].event) ? 0 : one(counts->fds[i].fd, group);

		if (!ret)
			ret = now;
	}
	return ret;
}

int perfring_counts_enable(struct perfring_counts *counts)
{
	return control(counts, perfring_event_enable, false);
}

int perfring_counts_disable(struct perfring_counts *counts)
{
	return control(counts, perfring_event_disable, false);
}

int perfring_counts_reset(struct perfring_counts *counts)
{
	return control(counts, perfring_event_reset, true);
}

/* ---- reading ---- */

static int read_fd(struct perfring_counts *counts, uint32_t i, struct perfring_read *values)
{
	struct perfring_format format = {.read_format = counts->events[counts->fds[i].event]->attr.read_format};

	return perfring__opener_read(counts->fds[i].fd, &format, values, counts->buffer, sizeof(counts->buffer));
}

/* The number of the first fd after fd i that is no member of its group. */
static uint32_t end_of_group(const struct perfring_counts *counts, uint32_t i)
{
	uint32_t leader = counts->fds[i].event;

	do
		i++;
	while (i < counts->fd_count && is_member(counts, counts->fds[i].event) &&
	       counts->events[counts->fds[i].event]->open.leader == leader);
	return i;
}

/* Stores one entry of a read at the fd with its id.  A group's entries are in the order in which the members joined. */
static void put(struct perfring_counts_fd *fds, uint32_t count, const struct perfring_read *values, uint64_t i)
{
	uint64_t id = perfring_read_id(values, i);

	for (uint32_t j = 0; j < count; j++) {
		uint32_t at = (uint32_t)((i + j) % count);

		if (fds[at].id != id)
			continue;
		fds[at].count.value = perfring_read_value(values, i);
		fds[at].count.enabled = values->enabled;
		fds[at].count.running = values->running;
		fds[at].count.lost = perfring_read_lost(values, i);
		fds[at].count.fds = 1;
		fds[at].count.failed = 0;
		return;
	}
}

int perfring_counts_read(struct perfring_counts *counts)
{
	static const struct perfring_count UNREAD = {.failed = 1};

	for (uint32_t i = 0; i < counts->fd_count; i++) {
		uint32_t count = end_of_group(counts, i) - i;
		struct perfring_read values;

		/* The read of its leader covers it. */
		if (is_member(counts, counts->fds[i].event))
			continue;
		for (uint32_t j = 0; j < count; j++)
			counts->fds[i + j].count = UNREAD;
		if (read_fd(counts, i, &values))
			continue;
		for (uint64_t j = 0; j < values.nr; j++)
			put(&counts->fds[i], count, &values, j);
	}
	return 0;
}

/* ---- results ---- */

uint32_t perfring_counts_count(const struct perfring_counts *counts)
{
	return counts->event_count;
}

const char *perfring_counts_name(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? counts->events[event]->name : NULL;
}

const struct perf_event_attr *perfring_counts_attr(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? &counts->events[event]->attr : NULL;
}

int perfring_counts_at(const struct perfring_counts *counts, uint32_t i, struct perfring_counts_fd *fd)
{
	if (i >= counts->fd_count)
		return 0;
	*fd = counts->fds[i];
	return 1;
}

int perfring_counts_sum(const struct perfring_counts *counts, uint32_t event, enum perfring_counts_scope scope,
			int32_t which, struct perfring_count *sum)
{
	bool found = false;

	memset(sum, 0, sizeof(*sum));
	if (event >= counts->event_count)
		return -EINVAL;
	for (uint32_t i = 0; i < counts->fd_count; i++) {
		const struct perfring_counts_fd *fd = &counts->fds[i];

		if (fd->event != event || (scope == PERFRING_COUNTS_CPU && fd->cpu != which) ||
		    (scope == PERFRING_COUNTS_THREAD && fd->tid != which))
			continue;
		found = true;
		sum->value += fd->count.value;
		sum->enabled += fd->count.enabled;
		sum->running += fd->count.running;
		sum->lost += fd->count.lost;
		sum->fds += fd->count.fds;
		sum->failed += fd->count.failed;
	}
	return found ? 0 : -ENOENT;
}
