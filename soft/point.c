/* point.c - points, and who listens at them: what a raise walks.
 *
 * A point's list is found by RCU.  A thread that has joined reads under liburcu (VERIFY.md 3), which its join has touched
 * for the first time, so that nothing is allocated in a handler.  A thread that has not may be anything: one whose end has
 * passed liburcu by, or a handler in one that loads us just now.  It only counts, under two words of our own:
 *
 *     stranger                                grace
 *       p := phase                              the list is changed
 *       inside[p] += 1                          phase := the other      (graces come one by one)
 *       phase is still p?  else again           until inside[the one before] = 0
 *       ... walks ...
 *       inside[p] -= 1
 *
 * All ordered: a stranger who finds the phase unchanged behind his += 1 is seen by the grace that changes it, and one who
 * comes behind the change finds the new list.  New strangers cannot hold a grace up: they count in the other word.
 */
/* Inline; but not where a sanitizer looks: liburcu aligns its readers less than it declares. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SOFT_CALLS_URCU 1
#endif
#endif
#if !defined(_LGPL_SOURCE) && !defined(__SANITIZE_ADDRESS__) && !defined(SOFT_CALLS_URCU)
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "own.h"

#if defined(__SANITIZE_THREAD__)
#define SOFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFT_TSAN 1
#endif
#endif

/* liburcu orders by means that the sanitizer does not see (VERIFY.md 3). */
#ifdef SOFT_TSAN
void __tsan_acquire(void *tag);
void __tsan_release(void *tag);
static char tsan_begun, tsan_ended;
#define TSAN_ACQUIRE(tag) __tsan_acquire(&(tag))
#define TSAN_RELEASE(tag) __tsan_release(&(tag))
#else
#define TSAN_ACQUIRE(tag) ((void)0)
#define TSAN_RELEASE(tag) ((void)0)
#endif

enum {
	CHAINS = 256, /* of names; a power of two */
	NAME_MOST = 255,
};

struct named {
	struct perfring_soft_point point;
	struct named *next; /* in its chain */
	char name[];
};

static struct perfring_soft_point builtin[] = {
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .name = "cpu-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .name = "task-clock"},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .name = "dummy"},
};

/* perfring_soft_lock */
static struct named *chains[CHAINS];
static struct named **by_config; /* from 1 */
static uint64_t configs, room_of_configs;

static pthread_mutex_t graces = PTHREAD_MUTEX_INITIALIZER;
static uint64_t inside[2];
static uint32_t phase;

/* ---- RCU ---- */

void perfring_soft_read_lock(void)
{
	urcu_bp_read_lock();
	TSAN_ACQUIRE(tsan_begun);
}

void perfring_soft_read_unlock(void)
{
	TSAN_RELEASE(tsan_ended);
	urcu_bp_read_unlock();
}

void perfring_soft_grace(void)
{
	uint32_t before;

	TSAN_RELEASE(tsan_begun);
	urcu_bp_synchronize_rcu();
	TSAN_ACQUIRE(tsan_ended);
	pthread_mutex_lock(&graces);
	before = PERFRING_LOAD(&phase); /* only changed here */
	PERFRING_EXCHANGE(&phase, before ^ 1);
	PERFRING_POINT(grace_turned);
	while (PERFRING_LOAD_ORDERED(&inside[before]))
		sched_yield();
	pthread_mutex_unlock(&graces);
}

static uint32_t stranger_enters(void)
{
	uint32_t p;

	for (;;) {
		p = PERFRING_LOAD_ORDERED(&phase);
		PERFRING_POINT(stranger_looked);
		PERFRING_ADD(&inside[p], 1);
		if (PERFRING_LIKELY(PERFRING_LOAD_ORDERED(&phase) == p))
			return p;
		PERFRING_ADD(&inside[p], UINT64_MAX);
	}
}

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
	struct named *named, **chain;

	if (!length || length > NAME_MOST || perfring_soft_prepare())
		return NULL;
	chain = &chains[hash(name)];
	perfring_soft_lock_take();
	for (named = *chain; named && strcmp(named->name, name); named = named->next)
		;
	if (!named) {
		named = make(name, length);
		if (named) {
			named->next = *chain;
			*chain = named;
		}
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
		PERFRING_STORE_RELEASE(&list->events[i], event); /* partner: walk, and count_stray */
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
	pthread_mutex_init(&graces, NULL);
	inside[0] = inside[1] = 0;
}

/* ---- raise ---- */

static const struct soft_list *list_of(const struct perfring_soft_point *point)
{
	return PERFRING_LOAD_ACQUIRE(&point->events);
}

/* nr samples for a weight of nr; else at most one is taken for a raise, or few: ABI.md 9.2. */
static bool each_is_sampled(const struct perfring_soft_event *event)
{
	return PERFRING_LOAD(&event->attr.sample_period) == 1 && !event->attr.freq &&
	       !(event->attr.sample_type & PERF_SAMPLE_PERIOD);
}

/* Not in perfring_soft_raise_active itself, whose frame is that of the place. */
static __attribute__((noinline)) void count_stray(const struct perfring_soft_point *point, uint64_t nr)
{
	const struct soft_list *list;
	struct perfring_soft_event *event;
	sigset_t all, signals;
	uint32_t p;

	/* Signals blocked: a handler that ends, jumps out of us or forks would leave us inside for ever. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &signals);
	p = stranger_enters();
	list = list_of(point);

	for (uint32_t i = 0; list && i < list->count; i++) {
		event = PERFRING_LOAD_ACQUIRE(&list->events[i]);
		if (!event || event->scope != PERFRING_SOFT_PROCESS || !perfring_soft_is_active(event))
			continue;
		PERFRING_ADD(&event->stray_count, nr);
		if (event->samples)
			PERFRING_ADD(&event->stray_lost, each_is_sampled(event) ? nr : 1);
	}
	/* Else a handler here has forked, and we are the child. */
	PERFRING_ADD(&inside[p], UINT64_MAX);
}

__attribute__((noinline)) void perfring_soft_raise_active(struct perfring_soft_point *point, uint64_t nr,
							  const struct perfring_soft_site *site)
{
	struct soft_thread *self = perfring_soft_self;
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	const struct soft_list *list;

	if (PERFRING_UNLIKELY(!self)) {
		count_stray(point, nr);
		return;
	}
	perfring_soft_read_lock();
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
	perfring_soft_read_unlock();
}
