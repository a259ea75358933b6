/* point.c - points, and who listens at them: what a raise walks.
 *
 * A point's list is found without a lock, in a section (grace.c).  A thread that has not joined has no instances: what it
 * raises is counted in the events themselves, and what would be sampled of it is counted as lost.
 */
#include <stdlib.h>

#include <urcu/hlist.h>

#include "soft_private.h"

enum {
	CHAINS = 256, /* of names; a power of two */
	NAME_MOST = 255,
};

struct named {
	struct perfring_soft_point point;
	struct cds_hlist_node node; /* in its chain */
	char name[];
};

static struct perfring_soft_point builtin[] = {
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .name = "cpu-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .name = "task-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .name = "dummy"},
};

/* perfring_soft_lock */
static struct cds_hlist_head chains[CHAINS];
static struct named **by_config; /* from 1 */
static uint64_t configs, room_of_configs;

/* ---- points ---- */

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	while (*name)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return (h ^ h >> 16) & (CHAINS - 1);
}

static struct named *make(const char *name, size_t length)
{
	struct named *named, **more;
	uint64_t room;

	if (configs == room_of_configs) {
		room = room_of_configs ? 2 * room_of_configs : 64;
		more = realloc(by_config, (size_t)room * sizeof(struct named *));
		if (!more)
			return NULL;
		by_config = more;
		room_of_configs = room;
	}
	named = calloc(1, sizeof(*named) + length + 1);
	if (!named)
		return NULL;
	memcpy(named->name, name, length + 1);
	named->point.name = named->name;
	named->point.type = PERFRING_SOFT_TYPE;
	named->point.config = configs + 1;
	by_config[configs++] = named;
	return named;
}

struct perfring_soft_point *perfring_soft_define(const char *name)
{
	size_t length = name ? strnlen(name, NAME_MOST + 1) : 0;
	struct cds_hlist_head *chain;
	struct named *named;

	if (!length || length > NAME_MOST || perfring_soft_prepare())
		return NULL;
	chain = &chains[hash(name)];
	perfring_soft_lock_take();
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
	perfring_soft_lock_give();
	return named ? &named->point : NULL;
}

struct perfring_soft_point *perfring_soft_point_of(uint32_t type, uint64_t config)
{
	struct perfring_soft_point *point = NULL;

	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
		if (builtin[i].type == type && builtin[i].config == config)
			return &builtin[i];
	}
	if (type != PERFRING_SOFT_TYPE)
		return NULL;
	perfring_soft_lock_take();
	if (config - 1 < configs)
		point = &by_config[config - 1]->point;
	perfring_soft_lock_give();
	return point;
}

/* ---- who listens ---- */

/* Clocks count by themselves, and whoever excludes user mode excludes all that there is here. */
static bool listens(const struct perfring_soft_event *event)
{
	return !event->is_clock && !event->attr.exclude_user;
}

/* Several may be here for one event, a handler on top of another: each looks again behind its change, so the last change is
 * by one who has seen the event as it is. */
void perfring_soft_point_update(struct perfring_soft_event *event)
{
	uint32_t active;

	if (!listens(event))
		return;
	do {
		active = perfring_soft_is_active(event);
		PERFRING_POINT(point_looked);
		if (PERFRING_EXCHANGE(&event->counted, active) != active)
			PERFRING_ADD(&event->point->active, active ? 1u : UINT32_MAX);
	} while (perfring_soft_is_active(event) != active);
}

int perfring_soft_point_add(struct perfring_soft_event *event, struct soft_list **old)
{
	struct perfring_soft_point *point = event->point;
	struct soft_list *list = (struct soft_list *)(uintptr_t)point->events, *larger;
	uint32_t i, count = list ? list->count : 0;

	*old = NULL;
	if (!listens(event))
		return 0;
	for (i = 0; i < count && list->events[i]; i++)
		;
	if (i < count) {
		PERFRING_STORE_RELEASE(&list->events[i], event); /* partner: raise_active, and count_visit */
		return 0;
	}
	larger = calloc(1, sizeof(*larger) + (2 * (size_t)count + 1) * sizeof(larger->events[0]));
	if (!larger)
		return -ENOMEM;
	larger->count = 2 * count + 1;
	if (count)
		memcpy(larger->events, list->events, count * sizeof(larger->events[0]));
	larger->events[count] = event;
	PERFRING_STORE_RELEASE(&point->events, (const void *)larger); /* partner: list_of */
	*old = list;
	return 0;
}

void perfring_soft_point_remove(struct perfring_soft_event *event)
{
	struct soft_list *list = (struct soft_list *)(uintptr_t)event->point->events;

	for (uint32_t i = 0; list && i < list->count; i++) {
		if (list->events[i] == event)
			PERFRING_STORE(&list->events[i], NULL); /* no order: there is nothing behind it */
	}
}

/* Lists stay where they are: what forked may have been a handler on top of a raise. */
static void forget(struct perfring_soft_point *point)
{
	point->active = 0;
	PERFRING_STORE(&point->events, NULL);
}

void perfring_soft_points_forget(void)
{
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		forget(&builtin[i]);
	for (uint64_t i = 0; i < configs; i++)
		forget(&by_config[i]->point);
}

/* ---- raise ---- */

static const struct soft_list *list_of(const struct perfring_soft_point *point)
{
	return PERFRING_LOAD_ACQUIRE(&point->events);
}

/* nr samples for a weight of nr; else at most one is taken for a raise, or few: docs/abi.md 9.2. */
static bool each_is_sampled(const struct perfring_soft_event *event)
{
	return PERFRING_LOAD(&event->attr.sample_period) == 1 && !event->attr.freq &&
	       !(event->attr.sample_type & PERF_SAMPLE_PERIOD);
}

/* Not in perfring_soft_raise_active itself, whose frame is that of the place. */
static __attribute__((noinline)) void count_visit(const struct perfring_soft_point *point, uint64_t nr)
{
	const struct soft_list *list;
	struct perfring_soft_event *event;
	struct soft_visit visit;

	perfring_soft_visit_begin(&visit);
	list = list_of(point);
	for (uint32_t i = 0; list && i < list->count; i++) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		PERFRING_POINT(visit_found);
		if (!event || event->scope != PERFRING_SOFT_PROCESS || !perfring_soft_is_active(event))
			continue;
		PERFRING_ADD(&event->stray_count, nr);
		if (event->samples)
			PERFRING_ADD(&event->stray_lost, each_is_sampled(event) ? nr : 1);
	}
	perfring_soft_visit_end(&visit);
}

__attribute__((noinline)) void perfring_soft_raise_active(struct perfring_soft_point *point, uint64_t nr,
							  const struct perfring_soft_site *site)
{
	struct soft_thread *self = perfring_soft_self;
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	const struct soft_list *list;
	uint64_t before;

	if (PERFRING_UNLIKELY(!self)) {
		count_visit(point, nr);
		return;
	}
	before = perfring_soft_enter(self);
	list = list_of(point);
	for (uint32_t i = 0; list && i < list->count; i++) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		if (!event)
			continue;
		instance = PERFRING_LOAD_ACQUIRE(&event->instances[self->index]); /* partner: instance_make */
		PERFRING_POINT(raise_found);
		if (instance)
			perfring_soft_occur(instance, nr, site, __builtin_frame_address(0),
					    __builtin_return_address(0));
	}
	perfring_soft_exit(self, before);
}
