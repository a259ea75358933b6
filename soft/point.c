/* point.c - points and their events: what a raise walks.
 *
 * Of the events of one occurrence the last opened comes first, as in the kernel: what a leader reads of its siblings has it.
 *
 * A raise finds a point's list without a lock, in a section (grace.c).  A thread that has not joined has no instances: its
 * raises are counted in the events, and the samples that they would have made are counted as lost.
 */
#include <stdlib.h>

#include <urcu/hlist.h>

#include "os/array.h"
#include "os/clock.h"
#include "soft_private.h"

enum {
	CHAINS = 256, /* of names */
};

struct named {
	struct perfring_soft_point point; /* the first */
	perfring_u64 *slow; /* in memory of another process too: spans that were longer than `limit` ns (watch.c); NULL: none watches */
	uint64_t limit;
	struct cds_hlist_node node;
	char name[];
};

static struct perfring_soft_point builtin[] = {
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .name = "cpu-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .name = "task-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .name = "dummy"},
};

/* perfring__soft_lock */
static struct cds_hlist_head chains[CHAINS];
static struct named **by_config; /* config - 1 */
static uint32_t configs, config_capacity;

/* ---- points ---- */

static struct named *make(const char *name, size_t length)
{
	struct named *named = NULL;

	if (!perfring__os_array_grow(&by_config, configs, &config_capacity, sizeof(struct named *)))
		named = calloc(1, sizeof(*named) + length + 1);
	if (!named)
		return NULL;
	memcpy(named->name, name, length + 1);
	named->point.name = named->name;
	named->point.type = PERFRING_SOFT_TYPE;
	named->point.config = configs + UINT64_C(1);
	named->slow = perfring__soft_watched(named->name, &named->limit);
	named->point.active = named->slow ? 1 : 0; /* as one more event */
	by_config[configs++] = named;
	return named;
}

struct perfring_soft_point *perfring_soft_define(const char *name)
{
	size_t length = name ? strnlen(name, PERFRING_SOFT_NAME_MAX + 1) : 0;
	struct cds_hlist_head *chain;
	struct named *named;

	if (!length || length > PERFRING_SOFT_NAME_MAX || perfring__soft_prepare())
		return NULL;
	chain = &chains[(perfring__soft_hash(name, 0) >> 32) % CHAINS];
	perfring__soft_lock_take();
	cds_hlist_for_each_entry_2(named, chain, node)
	{
		if (!strcmp(named->name, name))
			break;
	}
	if (!named) {
		named = make(name, length);
		if (named)
			cds_hlist_add_head(&named->node, chain);
	}
	perfring__soft_lock_give();
	return named ? &named->point : NULL;
}

struct perfring_soft_point *perfring_soft_point_of(uint32_t type, uint64_t config)
{
	struct perfring_soft_point *point = NULL;

	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (builtin[i].type == type && builtin[i].config == config)
			return &builtin[i];
	if (type != PERFRING_SOFT_TYPE)
		return NULL;
	perfring__soft_lock_take();
	if (config - 1 < configs)
		point = &by_config[config - 1]->point;
	perfring__soft_lock_give();
	return point;
}

static int find_point(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config != PERF_COUNT_SW_DUMMY)
		return -ENOENT;
	*point = perfring_soft_point_of(attr->type, attr->config);
	return *point ? 0 : -ENOENT;
}

const struct perfring_soft_pmu perfring__soft_points = {.type = PERFRING_SOFT_TYPE, .init = find_point};
const struct perfring_soft_pmu perfring__soft_dummy = {.type = PERF_TYPE_SOFTWARE, .init = find_point};

/* ---- a point's events ---- */

/* exclude_user excludes every occurrence. */
static bool listens(const struct perfring_soft_event *event)
{
	return event->point && !event->attr.exclude_user;
}

/* Each looks again after its change, so the last change, of this or of a handler, is by one that has seen the last
 * state. */
void perfring__soft_point_update(struct perfring_soft_event *event)
{
	uint32_t active;

	if (!listens(event))
		return;
	do {
		active = perfring__soft_is_active(event);
		PERFRING_POINT(point_looked);
		if (PERFRING_EXCHANGE(&event->is_counted, active) != active)
			PERFRING_ADD(&event->point->active, active ? 1u : UINT32_MAX);
	} while (perfring__soft_is_active(event) != active);
}

int perfring__soft_point_add(struct perfring_soft_event *event, struct soft_list **old)
{
	struct perfring_soft_point *point = event->point;
	struct soft_list *list, *another;
	uint32_t end, live = 0, place = 0;

	*old = NULL;
	if (!listens(event))
		return 0;
	list = (struct soft_list *)(uintptr_t)point->events;
	end = list ? list->count : 0;
	while (end && !list->events[end - 1])
		end--;
	if (list && end < list->count) { /* after all others: raise_active goes from the last to the first */
		PERFRING_STORE_RELEASE(&list->events[end], event); /* partner: raise_active, and count_visit */
		return 0;
	}
	for (uint32_t i = 0; i < end; i++)
		live += !!list->events[i];
	another = calloc(1, sizeof(*another) + (2 * (size_t)live + 1) * sizeof(another->events[0]));
	if (!another)
		return -ENOMEM;
	another->count = 2 * live + 1;
	for (uint32_t i = 0; i < end; i++)
		if (list->events[i])
			another->events[place++] = list->events[i];
	another->events[place] = event;
	PERFRING_STORE_RELEASE(&point->events, (const void *)another); /* partner: list_of */
	*old = list;
	return 0;
}

void perfring__soft_point_remove(struct perfring_soft_event *event)
{
	struct soft_list *list = event->point ? (struct soft_list *)(uintptr_t)event->point->events : NULL;

	for (uint32_t i = 0; list && i < list->count; i++)
		if (list->events[i] == event)
			PERFRING_STORE(&list->events[i], NULL); /* no order: nothing was published by it */
}

/* Lists are not freed: the handler that forked may have interrupted a raise. */
static void forget(struct perfring_soft_point *point)
{
	point->active = 0;
	PERFRING_STORE(&point->events, NULL);
}

void perfring__soft_points_forget(void)
{
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		forget(&builtin[i]);
	for (uint32_t i = 0; i < configs; i++) {
		forget(&by_config[i]->point);
		by_config[i]->point.active = by_config[i]->slow ? 1 : 0;
	}
}

/* ---- raise ---- */

static const struct soft_list *list_of(const struct perfring_soft_point *point)
{
	return PERFRING_LOAD_ACQUIRE(&point->events); /* partner: point_add */
}

/* Whether a weight of nr makes nr samples; else a raise makes few, or one: docs/abi.md 9.2. */
static bool each_is_sampled(const struct perfring_soft_event *event)
{
	return PERFRING_LOAD(&event->attr.sample_period) == 1 && !event->attr.freq &&
	       !(event->attr.sample_type & PERF_SAMPLE_PERIOD);
}

/* Its own function: the frame of perfring_soft_raise_active is that of the place. */
static __attribute__((noinline)) void count_visit(const struct perfring_soft_point *point, uint64_t nr)
{
	const struct soft_list *list;
	struct perfring_soft_event *event;
	struct soft_visit visit;

	perfring__soft_visit_begin(&visit);
	list = list_of(point);
	for (uint32_t i = 0; list && i < list->count; i++) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		PERFRING_POINT(visit_found);
		if (!event || event->scope != PERFRING_SOFT_PROCESS || !perfring__soft_is_active(event))
			continue;
		PERFRING_ADD(&event->unjoined_count, nr);
		if (event->samples)
			PERFRING_ADD(&event->unjoined_lost, each_is_sampled(event) ? nr : 1);
	}
	perfring__soft_visit_end(&visit);
}

/* Counts a span that lasted longer than the process that watches for it has asked for. */
static void watch(const struct perfring_soft_point *point, uint64_t nr)
{
	const struct named *named = (const struct named *)(const void *)point;

	if (point->type == PERFRING_SOFT_TYPE && named->slow && nr > named->limit)
		PERFRING_ADD(named->slow, 1); /* partner: perfring_soft_watch_count; no order: no other memory depends on it */
}

/* As in the kernel, a signal comes when all events have counted. */
static __attribute__((noinline)) void send_all(const struct soft_list *list, uint32_t index)
{
	struct perfring_soft_event *event;
	struct soft_instance *instance;

	for (uint32_t i = list->count; i--;) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		instance = event ? PERFRING_LOAD_ACQUIRE(&event->instances[index]) : NULL; /* partners: as in raise_active */
		if (instance)
			perfring__soft_send(instance);
	}
}

__attribute__((noinline)) void perfring_soft_raise_active(struct perfring_soft_point *point, uint64_t nr,
							  const struct perfring_soft_site *site)
{
	struct soft_thread *self = perfring__soft_self;
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	const struct soft_list *list;
	bool signals = false;
	uint64_t before;

	watch(point, nr);
	if (PERFRING_UNLIKELY(!self)) {
		count_visit(point, nr);
		return;
	}
	before = perfring__soft_enter(self);
	list = list_of(point);
	for (uint32_t i = list ? list->count : 0; i--;) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		if (!event)
			continue;
		instance = PERFRING_LOAD_ACQUIRE(&event->instances[self->index]); /* partner: instance_make */
		PERFRING_POINT(raise_found);
		if (instance)
			signals |= perfring__soft_occur(instance, nr, site, __builtin_frame_address(0),
							__builtin_return_address(0));
	}
	if (PERFRING_UNLIKELY(signals))
		send_all(list, self->index);
	perfring__soft_exit(self, before);
}

uint64_t perfring_soft_span_now(void)
{
	return perfring__os_clock_of(CLOCK_MONOTONIC);
}
