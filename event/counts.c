/* counts.c - counting sets: fds opened as one, read as one, summed. */
#include <perfring/count.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "event_private.h"
#include "opening.h"
#include "target_private.h"

enum {
	IN_NO_GROUP = UINT32_MAX,
	NONE = UINT32_MAX,
};

struct counted {
	char *name;
	struct perf_event_attr asked;
	struct perf_event_attr attr; /* as it was opened */
	uint64_t given_up;
	uint32_t leader; /* its own number when it leads; IN_NO_GROUP */
	bool opened;     /* somewhere: what could be given up has been */
	bool absent;     /* at the place that is being opened */
	/* Why it is at no place, -errno, of which attr and on which CPU; 0: it is at one. */
	int error;
	int32_t cpu;
	struct perf_event_attr tried;
};

/* fds: place by place (a place is a thread on a CPU), at each the events of one add in their order, without those that
 * are absent there.  So a group's members, which follow their leader in the list, follow it here. */
struct perfring_counts {
	uint64_t allowed;
	struct counted *events;
	uint32_t event_count;
	struct perfring_counts_fd *fds;
	uint32_t fd_count;
	uint32_t fd_room;
	bool without_lost; /* a kernel before 6.0 */
	char refusal[1024];
	uint64_t room[PERFRING_PLAN_READ_WORDS];
};

static void __attribute__((format(printf, 2, 3))) refuse(struct perfring_counts *counts, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(counts->refusal, sizeof(counts->refusal), format, arguments);
	va_end(arguments);
}

static bool is_member(const struct perfring_counts *counts, uint32_t number)
{
	uint32_t leader = counts->events[number].leader;

	return leader != IN_NO_GROUP && leader != number;
}

int perfring_counts_open(struct perfring_counts **counts, uint64_t allowed)
{
	*counts = calloc(1, sizeof(**counts));
	if (!*counts)
		return -ENOMEM;
	(*counts)->allowed = allowed;
	return 0;
}

/* The newest first: siblings before their leader, which would leave them as events of their own. */
static void cut_back(struct perfring_counts *counts, uint32_t fds)
{
	while (counts->fd_count > fds)
		close(counts->fds[--counts->fd_count].fd);
}

static void cut_events(struct perfring_counts *counts, uint32_t count)
{
	while (counts->event_count > count)
		free(counts->events[--counts->event_count].name);
}

void perfring_counts_close(struct perfring_counts *counts)
{
	if (!counts)
		return;
	cut_back(counts, 0);
	cut_events(counts, 0);
	free(counts->events);
	free(counts->fds);
	free(counts);
}

/* ---- one read ---- */

static int read_fd(struct perfring_counts *counts, uint32_t i, struct perfring_read *values)
{
	struct perfring_format format = {.read_format = counts->events[counts->fds[i].event].attr.read_format};

	return perfring_plan_read(counts->fds[i].fd, &format, values, counts->room, sizeof(counts->room));
}

/* ---- adding ---- */

static int make_room(struct perfring_counts *counts, uint64_t fds)
{
	uint64_t room = counts->fd_count + fds;
	void *grown;

	if (room <= counts->fd_room)
		return 0;
	if (room > INT32_MAX)
		return -ENOMEM;
	grown = reallocarray(counts->fds, (size_t)room, sizeof(*counts->fds));
	if (!grown)
		return -ENOMEM;
	counts->fds = grown;
	counts->fd_room = (uint32_t)room;
	return 0;
}

static int add_event(struct perfring_counts *counts, const struct perfring_events_one *one, uint32_t first)
{
	uint32_t number = counts->event_count;
	struct counted *event;
	void *grown = reallocarray(counts->events, number + 1, sizeof(*counts->events));

	if (!grown)
		return -ENOMEM;
	counts->events = grown;
	event = &counts->events[number];
	memset(event, 0, sizeof(*event));
	event->attr = perfring_attr_whole(one->attr);
	event->attr.size = sizeof(event->attr);
	event->asked = event->attr;
	event->name = strdup(one->name);
	if (!event->name)
		return -ENOMEM;
	counts->event_count++;
	event->leader = one->leader == UINT32_MAX ? IN_NO_GROUP : first + one->leader;
	if (event->leader != IN_NO_GROUP && event->leader > number) {
		refuse(counts, "a group's leader comes before its members.");
		return -EINVAL;
	}
	event->attr.read_format =
		PERFRING_FORMAT_TOTAL_TIME_ENABLED | PERFRING_FORMAT_TOTAL_TIME_RUNNING | PERFRING_FORMAT_ID;
	if (!counts->without_lost)
		event->attr.read_format |= PERFRING_FORMAT_LOST;
	/* A sibling is read alone by its own format, the leader for all (docs/abi.md 2.2). */
	if (event->leader == number)
		event->attr.read_format |= PERFRING_FORMAT_GROUP;
	if (!is_member(counts, number))
		return 0;
	/* A leader that is off stops its siblings: on themselves, they start with it at one moment. */
	event->attr.disabled = 0;
	event->attr.enable_on_exec = 0;
	return 0;
}

/* Where events are opened: a thread or a cgroup, on a CPU or any. */
struct place {
	struct perfring_counts *counts;
	uint32_t first; /* of the add's events */
	int32_t who;    /* -1: everything */
	int32_t cpu;
	bool cgroup;                  /* who is the fd of its directory */
	bool lonely;                  /* there is no other place */
	uint32_t refused;             /* the event that the kernel did not open; NONE: it was something else */
	struct perf_event_attr tried; /* it, as it was refused last */
	uint64_t given_up;            /* of it by then */
};

/* What was given up besides what no caller asked for: LOST in read_format. */
static uint64_t given_up_of(const struct counted *event, uint64_t taken)
{
	struct perf_event_attr asked = event->asked;

	asked.read_format = event->attr.read_format;
	return memcmp(&asked, &event->attr, sizeof(asked)) ? taken : taken & ~(uint64_t)PERFRING_FALLBACK_NEWER;
}

static int try_open(struct place *place, struct counted *event, int group_fd)
{
	const uint64_t allowed = place->counts->allowed & ~(uint64_t)PERFRING_FALLBACK_CPU_CLOCK;
	uint64_t flags = place->cgroup ? PERFRING_FLAG_PID_CGROUP : 0;
	int fd;

	place->tried = event->attr;
	/* What the first place gave up, the others do without too. */
	place->given_up = event->opened ? event->given_up : 0;
	if (event->opened || !allowed)
		return perfring_event_open(&event->attr, place->who, place->cpu, group_fd, flags);
	fd = perfring_event_open_fallback(&place->tried, place->who, place->cpu, group_fd, flags, allowed,
					  &place->given_up);
	if (fd < 0)
		return fd;
	event->attr = place->tried;
	event->given_up = given_up_of(event, place->given_up);
	return fd;
}

/* Whether this kernel is one that does not know FORMAT_LOST: the event opens without it. */
static int try_without_lost(struct place *place, struct counted *event, int group_fd)
{
	struct perfring_counts *counts = place->counts;
	uint64_t before = event->attr.read_format;
	int fd;

	event->attr.read_format &= ~(uint64_t)PERFRING_FORMAT_LOST;
	fd = try_open(place, event, group_fd);
	if (fd < 0) {
		event->attr.read_format = before;
		return -EINVAL;
	}
	counts->without_lost = true;
	for (uint32_t i = 0; i < counts->event_count; i++)
		if (!counts->events[i].opened)
			counts->events[i].attr.read_format &= ~(uint64_t)PERFRING_FORMAT_LOST;
	return fd;
}

/* The fd of event `number` among those of a place, which begin with number `base`. */
static int fd_of(const struct perfring_counts *counts, uint32_t number, uint32_t base)
{
	for (uint32_t i = counts->fd_count; i-- > base;)
		if (counts->fds[i].event == number)
			return counts->fds[i].fd;
	return -1;
}

/* Opens one event at one place.  base: the place's first fd. */
static int add_fd(struct place *place, uint32_t number, uint32_t base)
{
	struct perfring_counts *counts = place->counts;
	struct counted *event = &counts->events[number];
	int group_fd = is_member(counts, number) ? fd_of(counts, event->leader, base) : -1;
	struct perfring_counts_fd *opened = &counts->fds[counts->fd_count];
	int fd = try_open(place, event, group_fd), ret;

	if (fd == -EINVAL && !event->opened && event->attr.read_format & PERFRING_FORMAT_LOST)
		fd = try_without_lost(place, event, group_fd);
	if (fd < 0) {
		place->refused = number;
		return fd;
	}
	memset(opened, 0, sizeof(*opened));
	opened->fd = fd;
	opened->tid = place->cgroup ? -1 : place->who;
	opened->cpu = place->cpu;
	opened->event = number;
	ret = perfring_event_id(fd, &opened->id);
	if (ret) {
		refuse(counts, "the event's id cannot be had: %s.", strerror(-ret));
		close(fd);
		return ret;
	}
	event->opened = true;
	counts->fd_count++;
	return 0;
}

/* The number of the next fd that is no member of the group, or event, whose fd is number i. */
static uint32_t end_of_group(const struct perfring_counts *counts, uint32_t i)
{
	uint32_t leader = counts->fds[i].event;

	do
		i++;
	while (i < counts->fd_count && is_member(counts, counts->fds[i].event) &&
	       counts->events[counts->fds[i].event].leader == leader);
	return i;
}

/* perfring_plan_group of each group here. */
static int try_groups(struct perfring_counts *counts, uint32_t base)
{
	uint32_t next;
	int ret = 0;

	for (uint32_t i = base; !ret && i < counts->fd_count; i = next) {
		const struct counted *event = &counts->events[counts->fds[i].event];

		next = end_of_group(counts, i);
		if (event->attr.inherit && next > i + 1)
			ret = perfring_plan_group(counts->fds[i].fd, event->attr.read_format);
	}
	return ret;
}

static int add_once(void *of, bool *joining)
{
	struct place *place = of;
	struct perfring_counts *counts = place->counts;
	uint32_t base = counts->fd_count;
	int ret = 0;

	place->refused = NONE;
	for (uint32_t i = place->first; !ret && i < counts->event_count; i++) {
		if (counts->events[i].absent)
			continue;
		ret = add_fd(place, i, base);
		*joining = is_member(counts, i);
	}
	if (!ret)
		ret = try_groups(counts, base);
	if (ret)
		cut_back(counts, base);
	return ret;
}

/* Errors that mean: not on this machine, whoever asks. */
static bool is_missing(int error)
{
	return error == -ENOENT || error == -EOPNOTSUPP || error == -ENXIO || error == -ENODEV || error == -EINVAL;
}

/* Whether the place can be opened without the event that was refused there; a group is not without its leader. */
static bool leave_out(struct place *place, int error)
{
	struct perfring_counts *counts = place->counts;
	uint32_t refused = place->refused;

	if (!(counts->allowed & PERFRING_FALLBACK_MISSING) || refused == NONE || !is_missing(error))
		return false;
	for (uint32_t i = refused; i < counts->event_count; i++) {
		struct counted *event = &counts->events[i];

		if (i != refused && event->leader != refused)
			continue;
		event->absent = true;
		event->error = error;
		event->cpu = place->cpu;
		event->tried = i == refused ? place->tried : event->attr;
		if (i == refused && !event->opened)
			event->given_up = place->given_up;
	}
	return true;
}

/* All events at one place, or none, but for those that the machine does not have there.  A thread may have died and a CPU
 * gone since they were listed: one of several is passed over. */
static int add_place(struct place *place)
{
	struct perfring_counts *counts = place->counts;
	bool is_thread = place->who >= 0 && !place->cgroup;
	int ret;

	/* CPUs differ in what they have, threads do not. */
	for (uint32_t i = place->first; place->cpu >= 0 && i < counts->event_count; i++)
		counts->events[i].absent = false;
	do {
		ret = perfring_plan_place(add_once, place, is_thread);
		if (!place->lonely &&
		    (ret == -ESRCH || (ret == -ENODEV && place->cpu >= 0 && perfring_cpu_is_offline(place->cpu))))
			return 0;
	} while (ret && leave_out(place, ret));
	if (ret && place->refused != NONE)
		perfring_event_explain(ret, &place->tried, place->cgroup ? -1 : place->who, place->cpu, counts->refusal,
				       sizeof(counts->refusal));
	return ret;
}

/* Which of the add's events are at no place, those of fds from number `from` on being its own.  Returns whether one is
 * neither there nor missing: there was no place to look at. */
static bool settle_errors(struct perfring_counts *counts, uint32_t first, uint32_t from)
{
	bool lost = false;

	for (uint32_t i = from; i < counts->fd_count; i++)
		counts->events[counts->fds[i].event].error = 0;
	for (uint32_t i = first; counts->fd_count == from && i < counts->event_count; i++)
		lost |= !counts->events[i].error;
	return lost;
}

static int add_places(struct perfring_counts *counts, uint32_t first, const struct perfring_target *target,
		      const struct perfring_numbers *cpus)
{
	const struct perfring_numbers *whose = target->cgroups.count ? &target->cgroups : &target->tids;
	uint32_t who_count = whose->count ? whose->count : 1, cpu_count = cpus->count ? cpus->count : 1;
	uint64_t places = (uint64_t)who_count * cpu_count, fds = places * (counts->event_count - first);
	struct place place = {counts, .first = first, .cgroup = target->cgroups.count, .lonely = places == 1};
	uint32_t before = counts->fd_count;
	int ret = make_room(counts, fds);

	if (!ret)
		ret = perfring_plan_files(fds, true, counts->refusal, sizeof(counts->refusal));
	for (uint32_t i = 0; !ret && i < who_count; i++)
		for (uint32_t j = 0; !ret && j < cpu_count; j++) {
			place.who = whose->count ? whose->numbers[i] : -1;
			place.cpu = cpus->count ? cpus->numbers[j] : -1;
			ret = add_place(&place);
		}
	if (ret || !settle_errors(counts, first, before))
		return ret;
	refuse(counts, "none of these threads and CPUs is there any more.");
	return -ESRCH;
}

/* A cgroup is observed CPU by CPU. */
static int add_target(struct perfring_counts *counts, uint32_t first, const struct perfring_target *target)
{
	struct perfring_numbers online = {0};
	int ret = 0;

	if (!target->tids.count && !target->cpus.count && !target->cgroups.count) {
		refuse(counts, "the target names neither a thread nor a CPU.");
		return -EINVAL;
	}
	if (target->cgroups.count && !target->cpus.count)
		ret = perfring_numbers_add_online(&online);
	if (!ret)
		ret = add_places(counts, first, target, online.count ? &online : &target->cpus);
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
		refuse(counts, "the list names no event.");
		return -EINVAL;
	}
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = add_event(counts, perfring_events_at(events, i), first);
	if (!ret)
		ret = add_target(counts, first, target);
	if (!ret)
		return 0;
	if (!counts->refusal[0])
		refuse(counts, "adding the events failed: %s.", strerror(-ret));
	cut_back(counts, fds);
	cut_events(counts, first);
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
			refuse(*counts, "'%s': at %lld: %s.", text, (long long)fault.at,
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
	return event < counts->event_count ? counts->events[event].error : -EINVAL;
}

uint64_t perfring_counts_given_up(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? counts->events[event].given_up : 0;
}

int64_t perfring_counts_explain(const struct perfring_counts *counts, uint32_t number, char *room, size_t size)
{
	const struct counted *event = number < counts->event_count ? &counts->events[number] : NULL;
	struct perfring_words text = {room, size, 0};
	char name[256];

	if (size)
		room[0] = 0;
	if (!event)
		return 0;
	if (!event->error)
		return perfring_fallback_explain(event->given_up, &event->asked, &event->attr, room, size);
	if (!is_member(counts, number) || !counts->events[event->leader].error)
		return perfring_event_explain(event->error, &event->tried, 0, event->cpu, room, size);
	perfring_event_name(&event->asked, name, sizeof(name));
	perfring_say(&text, "%s: it is not counted without the leader of its group.", name);
	return (int64_t)text.length;
}

/* ---- running ---- */

/* Each event that stands alone, and each group through its leader.  All are tried; the first error is told. */
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

/* Puts one entry of a read to the fd that has its id.  A group's entries come in the order in which they joined. */
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

		/* Its leader's read has brought it. */
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

/* ---- what there is ---- */

uint32_t perfring_counts_count(const struct perfring_counts *counts)
{
	return counts->event_count;
}

const char *perfring_counts_name(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? counts->events[event].name : NULL;
}

const struct perf_event_attr *perfring_counts_attr(const struct perfring_counts *counts, uint32_t event)
{
	return event < counts->event_count ? &counts->events[event].attr : NULL;
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
