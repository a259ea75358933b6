/* soft_event.c - events: opened by the kernel's rules, in groups, with a ring for each thread; on and off.
 *
 * An event counts while it and its group's leader are on.  Any thread or handler may change either word, and then settles
 * what depends on it: the times of instances, point->active, timers.  Settling brings each to the event's state, then looks
 * at the event again.  So however many settle at a time, or interrupt one another, the last change is by one that has seen
 * the last state.  With the switch, an event is settled for all threads; event_limit settles it in an occurrence, for its own
 * thread, which is the only one of such an event.
 *
 *     close                              an occurrence
 *       off; unlink from the point         enters a section
 *       grace                              list, event, instance, writer: each by an acquire
 *       unlink from all events; pmu->del   exits
 *       grace, of clocks: timers' handlers
 *       free rings, instances, event
 *
 * Until it is unlinked from all events, a thread that leaves folds its instance.  No lock is held over a grace period: a handler
 * that forks takes the lock, and its raise is what the grace period waits for.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/signals.h"
#include "soft_private.h"

enum {
	READ_MAX = 16384,
};

/* ---- groups ---- */

/* Whether the event may join the other's group, or write into its rings. */
static bool is_akin(const struct perfring_soft_event *event, const struct perfring_soft_event *other)
{
	return other->scope == event->scope &&
	       (event->scope == PERFRING_SOFT_PROCESS || (event->opener && other->opener == event->opener)) &&
	       other->attr.use_clockid == event->attr.use_clockid && other->attr.clockid == event->attr.clockid;
}

/* perfring__soft_lock. docs/abi.md 1.5. */
static int judge_group(const struct perfring_soft_event *event, const struct perfring_soft_event *leader)
{
	const struct perfring_soft_event *member;
	uint32_t members = 1;

	if (leader) {
		if (leader->leader != leader || !is_akin(event, leader) || leader->has_heirs != event->has_heirs ||
		    event->attr.pinned || event->attr.exclusive)
			return -EINVAL;
		for (member = leader; member; member = member->next)
			members++;
		for (member = leader; member; member = member->next)
			if (perfring__soft_read_size_of(member, members) > READ_MAX)
				return -E2BIG;
	}
	return perfring__soft_read_size_of(event, members) > READ_MAX ? -E2BIG : 0;
}

/* Both locks.  A concurrent occurrence sees the group with the new member, without it, or only its beginning. */
static void join_group(struct perfring_soft_event *event, struct perfring_soft_event *leader)
{
	struct perfring_soft_event **link = &leader->next;

	while (*link)
		link = &(*link)->next;
	PERFRING_STORE_RELEASE(link, event); /* partner: read_in_thread, event_stop */
}

/* ---- what depends on `on` ---- */

/* What a meter measures, now.  0: the thread has ended. */
typedef uint64_t gauge(struct soft_instance *instance);

static uint64_t time_of(struct soft_instance *instance)
{
	return perfring__soft_thread_time(instance->thread);
}

/* While a thread joins or leaves it is no thread of ours. */
static bool is_here(const struct soft_instance *instance)
{
	if (perfring__soft_self)
		return instance->thread == perfring__soft_self;
	return instance->thread->tid == (uint32_t)syscall(SYS_gettid);
}

/* What a PMU calls may be cancellation points; the switch may be held, or a record be in the ring. */
static uint64_t value_of(struct soft_instance *instance)
{
	uint64_t value;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	value = instance->event->pmu->read(&instance->counter, is_here(instance));
	pthread_setcancelstate(state, NULL);
	return value;
}

static uint64_t since(uint64_t word, uint64_t now)
{
	uint64_t begun = word & ~SOFT_RUNS;

	return now > begun ? now - begun : 0;
}

/* Never less than was returned before: settle_meter reads the gauge before it stores the sum, and that of a thread that has
 * exited is 0. */
static uint64_t read_meter(struct soft_meter *meter, struct soft_instance *instance, gauge *now)
{
	uint64_t reported = PERFRING_LOAD(&meter->reported), sum = PERFRING_LOAD(&meter->word);

	if (sum & SOFT_RUNS)
		sum = since(sum, now(instance));
	while (reported < sum)
		if (PERFRING_COMPARE_EXCHANGE(&meter->reported, &reported, sum))
			return sum;
	return reported;
}

uint64_t perfring__soft_time_enabled(struct soft_instance *instance)
{
	return read_meter(&instance->time, instance, time_of);
}

/* Returns 1 if it began to count, -1 if it stopped, else 0. */
static int settle_meter(struct soft_meter *meter, struct soft_instance *instance, gauge *read)
{
	uint64_t word, now, to;
	int change = 0;
	bool active;

	for (;;) {
		active = perfring__soft_is_active(instance->event);
		PERFRING_POINT(time_looked);
		word = PERFRING_LOAD_ORDERED(&meter->word);
		if (active == !!(word & SOFT_RUNS))
			return change;
		now = read(instance);
		/* An account that is not known has no base to count from: the next one to settle asks again. */
		if (active && !now && read == value_of && instance->event->pmu == &perfring__soft_accounts)
			return change;
		to = active ? (now - word) | SOFT_RUNS : now ? since(word, now) : PERFRING_LOAD(&meter->reported);
		PERFRING_POINT(time_taken);
		if (PERFRING_COMPARE_EXCHANGE(&meter->word, &word, to))
			change = active ? 1 : -1;
	}
}

static int settle_meters(struct soft_instance *instance)
{
	if (instance->event->pmu->read)
		settle_meter(&instance->value, instance, value_of);
	return settle_meter(&instance->time, instance, time_of);
}

static bool runs(const struct soft_instance *instance)
{
	return PERFRING_LOAD_ORDERED(&instance->time.word) & SOFT_RUNS;
}

/* The switch. */
static void start_or_stop(struct soft_instance *instance, bool starts)
{
	const struct perfring_soft_pmu *pmu = instance->event->pmu;
	void (*call)(struct perfring_soft_counter *) = starts ? pmu->start : pmu->stop;
	int state;

	if (!call)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as in value_of */
	call(&instance->counter);
	pthread_setcancelstate(state, NULL);
}

/* The switch.  Also if nothing has changed: event_stop calls no PMU. */
static void settle_instance(struct soft_instance *instance)
{
	if (settle_meters(instance) > 0)
		perfring__soft_period_resume(instance);
	start_or_stop(instance, runs(instance));
}

/* The switch.  The event, with its group if it leads one. */
static void settle(struct perfring_soft_event *event)
{
	struct perfring_soft_event *member = event;
	struct soft_instance *instance;

	do {
		for (uint32_t i = 0; (instance = perfring__soft_instance_from(member, &i)); i++)
			settle_instance(instance);
		perfring__soft_point_update(member);
		member = member->next;
	} while (event->leader == event && member);
}

/* Only events without heirs have a limit, so only this thread's instances count.  A clock's handler stops its timer itself. */
void perfring__soft_event_stop(struct perfring_soft_event *event)
{
	const struct soft_thread *self = perfring__soft_self;
	struct perfring_soft_event *member = event;
	struct soft_instance *instance;
	sigset_t signals;

	if (!self) /* a child of a handler that interrupted us: there it is off */
		return;
	PERFRING_EXCHANGE(&event->on, 0);
	PERFRING_POINT(event_stopped);
	do {
		instance = PERFRING_LOAD_ACQUIRE(&member->instances[self->index]);
		if (instance)
			settle_meters(instance);
		/* A handler that forks between its two words would leave the child a point that counts always, or never. */
		perfring__os_signals_block(&signals);
		perfring__soft_point_update(member);
		perfring__soft_signals_restore(&signals);
		member = PERFRING_LOAD_ACQUIRE(&member->next);
	} while (PERFRING_LOAD_ACQUIRE(&event->leader) == event && member);
}

/* ---- instances ---- */

static void free_instance(struct soft_instance *instance)
{
	if (instance->event->set && instance->writer)
		perfring_set_dismiss(instance->event->set, instance->writer);
	perfring__soft_frames_free(instance);
	free(instance);
}

/* perfring__soft_lock. */
static void delete_counter(struct soft_instance *instance)
{
	if (instance->event->pmu->del)
		instance->event->pmu->del(&instance->counter);
}

int perfring__soft_instance_make(struct perfring_soft_event *event, struct soft_thread *thread)
{
	struct soft_instance *instance = calloc(1, sizeof(*instance)), *owner;
	sigset_t signals;
	int ret = 0;

	if (!instance)
		return -ENOMEM;
	instance->event = event;
	instance->thread = thread;
	instance->id = event->opener == thread ? event->id : perfring__soft_next_id();
	instance->counter = (struct perfring_soft_counter){.event = event, .attr = &event->attr, .tid = thread->tid};
	perfring__soft_output_init(instance);
	if (event->set) {
		ret = perfring_set_admit(event->set, thread->pthread, thread->tid, &instance->writer);
	} else if (event->output) { /* NULL if that instance is made later: perfring_soft_join looks again */
		owner = event->output->instances[thread->index];
		instance->writer = owner ? owner->writer : NULL;
	}
	if (!ret && PERFRING_LOAD(&event->by_tables))
		ret = perfring__soft_frames_make(instance);
	if (!ret && event->pmu->add)
		ret = event->pmu->add(&instance->counter);
	if (ret) {
		free_instance(instance);
		return ret;
	}
	perfring__soft_switch_take(&signals); /* attr's period and `on` change under it */
	perfring__soft_period_start(instance);
	if (event->threads <= thread->index)
		event->threads = thread->index + 1;
	PERFRING_STORE_RELEASE(&event->instances[thread->index], instance); /* partner: perfring_soft_raise_active */
	settle_instance(instance);
	perfring__soft_switch_give(&signals);
	return 0;
}

uint64_t perfring__soft_counted(struct soft_instance *instance)
{
	/* Both clocks count the thread's time while it was on (docs/abi.md 9.4). */
	uint64_t count = instance->event->is_clock    ? perfring__soft_time_enabled(instance)
			 : instance->event->pmu->read ? read_meter(&instance->value, instance, value_of)
						      : PERFRING_LOAD(&instance->count);
	uint64_t base = PERFRING_LOAD(&instance->base);

	return count > base ? count - base : 0; /* less: a reset since then */
}

/* No occurrence uses it, because perfring__soft_self is NULL, and other threads only under the lock: no grace period. */
void perfring__soft_instance_fold(struct perfring_soft_event *event, struct soft_thread *thread)
{
	struct soft_instance *instance = event->instances[thread->index];
	sigset_t signals;

	if (!instance)
		return;
	perfring__soft_switch_take(&signals);
	if (event->opener == thread) {
		event->own_count += perfring__soft_counted(instance);
		event->opener = NULL;
	} else {
		event->exited_count += perfring__soft_counted(instance);
	}
	event->exited_enabled += perfring__soft_time_enabled(instance);
	event->exited_lost += PERFRING_LOAD(&instance->output.lost);
	PERFRING_STORE(&event->instances[thread->index], NULL);
	start_or_stop(instance, false);
	perfring__soft_switch_give(&signals);
	delete_counter(instance);
	free_instance(instance);
}

/* ---- open, close ---- */

static void free_event(struct perfring_soft_event *event)
{
	for (uint32_t i = 0; i < event->threads; i++) {
		if (event->instances[i])
			perfring__soft_frames_free(event->instances[i]);
		free(event->instances[i]);
	}
	perfring_set_close(event->set);
	free(event->state.array);
	free(event);
}

/* perfring__soft_lock.  Before free_event; of clocks a grace period before. */
static void delete_counters(struct perfring_soft_event *event)
{
	struct soft_instance *instance;

	for (uint32_t i = 0; (instance = perfring__soft_instance_from(event, &i)); i++)
		delete_counter(instance);
}

/* perfring__soft_lock.  The event is not published yet; free_event frees what an error leaves. */
static int make_instances(struct perfring_soft_event *event)
{
	struct soft_thread *thread;
	int ret;

	ret = perfring__soft_instance_make(event, event->opener); /* the first: its id is the event's */
	if (event->scope == PERFRING_SOFT_PROCESS) {
		for (thread = perfring__soft_threads; !ret && thread; thread = thread->next)
			if (thread != event->opener)
				ret = perfring__soft_instance_make(event, thread);
	}
	return ret;
}

/* perfring__soft_lock.  The joined thread with that tid, or NULL. */
static struct soft_thread *thread_of(uint32_t tid)
{
	struct soft_thread *thread = perfring__soft_threads;

	while (thread && thread->tid != tid)
		thread = thread->next;
	return thread;
}

/* tid: of the event's thread; 0: the caller. */
static int open_event_on(struct perfring_soft_event **result, const struct perf_event_attr *attr, unsigned scope,
			 uint32_t tid, struct perfring_soft_event *leader)
{
	struct perfring_soft_event *event;
	struct soft_list *old = NULL;
	sigset_t signals;
	int ret;

	*result = NULL;
	if (scope > PERFRING_SOFT_PROCESS)
		return -EINVAL;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	event->scope = scope;
	ret = perfring__soft_judge(event, attr, scope);
	if (!ret)
		ret = perfring_soft_join();
	if (ret) {
		free(event);
		return ret;
	}
	event->id = perfring__soft_next_id();
	event->on = !event->attr.disabled;

	perfring__soft_lock_take(); /* from here to instance_make the thread cannot leave */
	event->opener = tid ? thread_of(tid) : perfring__soft_self;
	ret = event->opener ? judge_group(event, leader) : -ESRCH;
	event->leader = leader ? leader : event;
	if (!ret)
		ret = make_instances(event);
	if (!ret)
		ret = perfring__soft_point_add(event, &old);
	if (ret) {
		perfring__soft_switch_take(&signals);
		PERFRING_EXCHANGE(&event->on, 0);
		settle(event);
		perfring__soft_switch_give(&signals);
		delete_counters(event);
		perfring__soft_lock_give();
		perfring__soft_grace();
		free_event(event);
		return ret;
	}
	perfring__soft_switch_take(&signals);
	if (leader)
		join_group(event, leader);
	settle(event); /* the leader may have changed since the instances were made */
	perfring__soft_switch_give(&signals);
	event->all = perfring__soft_events;
	perfring__soft_events = event;
	perfring__soft_lock_give();
	if (old) {
		perfring__soft_grace();
		free(old);
	}
	*result = event;
	return 0;
}

int perfring_soft_open(struct perfring_soft_event **event, const struct perf_event_attr *attr, unsigned scope,
		       struct perfring_soft_event *leader)
{
	return open_event_on(event, attr, scope, 0, leader);
}

int perfring_soft_open_on(struct perfring_soft_event **event, const struct perf_event_attr *attr, uint32_t tid,
			  struct perfring_soft_event *leader)
{
	return open_event_on(event, attr, PERFRING_SOFT_THREAD, tid, leader);
}

/* Both locks. */
static void leave_group(struct perfring_soft_event *event)
{
	struct perfring_soft_event *member, *next, **link;

	if (event->leader != event) {
		for (link = &event->leader->next; *link != event; link = &(*link)->next)
			;
		PERFRING_STORE(link, event->next);     /* no order: event->next was published before */
		PERFRING_STORE(&event->leader, event); /* until it is freed: the leader may be closed meanwhile */
		return;
	}
	for (member = event->next; member; member = next) {
		next = member->next;
		PERFRING_STORE(&member->next, NULL);
		PERFRING_STORE(&member->leader, member);
		settle(member); /* it counts alone now */
	}
	PERFRING_STORE(&event->next, NULL);
}

/* perfring__soft_lock.  The event's instances write into the rings of `to`, or into none. */
static void redirect(struct perfring_soft_event *event, struct perfring_soft_event *to)
{
	const struct soft_instance *owner;
	struct soft_instance *instance;

	if (!to) /* first: from here on what has no ring is not lost */
		PERFRING_STORE(&event->output, NULL);
	for (uint32_t i = 0; (instance = perfring__soft_instance_from(event, &i)); i++) {
		owner = to ? to->instances[i] : NULL;
		PERFRING_STORE_RELEASE(&instance->writer, owner ? owner->writer : NULL); /* partner: emit.c */
	}
	PERFRING_STORE(&event->output, to); /* no order: emit.c only counts by it */
}

/* perfring__soft_lock.  Of a fork's child: it is linked nowhere, and has no threads and timers here.  A raise that the forking
 * handler has interrupted goes on in the child, and uses it until its end: then a later close frees it. */
static void close_inherited(struct perfring_soft_event *event)
{
	static struct perfring_soft_event *closed; /* perfring__soft_lock */
	struct perfring_soft_event *next;
	bool frees;

	event->all = closed;
	closed = event;
	for (frees = !perfring__soft_raise_is_inherited(); frees && closed; closed = next) {
		next = closed->all;
		delete_counters(closed);
		free_event(closed);
	}
}

void perfring_soft_close(struct perfring_soft_event *event)
{
	struct perfring_soft_event *other, **link;
	sigset_t signals;

	if (!event)
		return;
	perfring__soft_lock_take();
	if (event->is_inherited) {
		close_inherited(event);
		perfring__soft_lock_give();
		return;
	}
	perfring__soft_switch_take(&signals);
	PERFRING_EXCHANGE(&event->on, 0); /* first: it becomes its own leader */
	leave_group(event);
	settle(event);
	perfring__soft_switch_give(&signals);
	perfring__soft_point_remove(event);
	for (other = perfring__soft_events; other; other = other->all)
		if (other->output == event)
			redirect(other, NULL);
	perfring__soft_lock_give();
	PERFRING_POINT(event_unlinked);
	perfring__soft_grace();
	perfring__soft_lock_take();
	if (event->is_inherited) { /* a handler has forked since, and this is the child */
		close_inherited(event);
		perfring__soft_lock_give();
		return;
	}
	for (link = &perfring__soft_events; *link != event; link = &(*link)->all)
		;
	*link = event->all;
	delete_counters(event);
	perfring__soft_lock_give();
	if (event->is_clock && event->samples) /* for their timers' handlers */
		perfring__soft_grace();
	free_event(event);
}

/* ---- rings ---- */

static int make_rings(struct perfring_soft_event *event, struct perfring_set *set)
{
	struct perfring_writer **writers;
	struct soft_instance *instance;
	int ret = 0;

	writers = calloc(event->threads + 1, sizeof(*writers));
	if (!writers)
		return -ENOMEM;
	for (uint32_t i = 0; !ret && (instance = perfring__soft_instance_from(event, &i)); i++)
		ret = perfring_set_admit(set, instance->thread->pthread, instance->thread->tid, &writers[i]);
	for (uint32_t i = 0; !ret && (instance = perfring__soft_instance_from(event, &i)); i++) /* all, or none */
		PERFRING_STORE_RELEASE(&instance->writer, writers[i]);                         /* partner: emit.c */
	for (uint32_t i = 0; ret && i < event->threads; i++)
		if (writers[i])
			perfring_set_dismiss(set, writers[i]);
	free(writers);
	if (ret) /* the first walk finds them drained, the next removes them and their files */
		for (unsigned walk = 0; walk < 2; walk++)
			for (struct perfring_set_ring *ring = NULL; (ring = perfring_set_next(set, ring));)
				;
	return ret;
}

int perfring_soft_map(struct perfring_soft_event *event, uint32_t pages, int32_t wake_fd)
{
	return perfring_soft_map_files(event, pages, NULL, wake_fd);
}

int perfring_soft_map_files(struct perfring_soft_event *event, uint32_t pages, const char *file, int32_t wake_fd)
{
	struct perfring_ring_options ring = {
		.pages = pages,
		/* Threads create rings while the program opens files of its own. */
		.flags = file ? PERFRING_RING_REPLACE : PERFRING_RING_HIGH_FD,
		.file = file,
		.watermark = event->attr.watermark,
		.attr = &event->attr,
		.id = event->id,
	};
	struct perfring_writer_options writer = {.policy = PERFRING_WRITER_DROP, .wake_fd = wake_fd};
	struct perfring_set *set;
	int ret;

	if (event->attr.write_backward) /* as a read-only mapping of a kernel's event */
		ring.flags |= PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE;
	if (event->attr.watermark)
		ring.wakeup = event->attr.wakeup_watermark;
	perfring__soft_lock_take();
	ret = event->set || event->output || event->handler ? -EINVAL
							    : perfring_set_open(&set, &ring, &writer, SOFT_THREADS);
	if (!ret) {
		ret = make_rings(event, set);
		if (ret)
			perfring_set_close(set);
		else
			PERFRING_STORE_RELEASE(&event->set, set); /* partner: perfring_soft_rings */
	}
	perfring__soft_lock_give();
	return ret;
}

struct perfring_set *perfring_soft_rings(struct perfring_soft_event *event)
{
	return PERFRING_LOAD_ACQUIRE(&event->set);
}

/* An uncommitted record goes into the old ring, which stays until its event is closed. */
int perfring_soft_set_output(struct perfring_soft_event *event, struct perfring_soft_event *other)
{
	int ret = 0;

	perfring__soft_lock_take();
	if (event->set || event->handler ||
	    (other && (other == event || !other->set || !is_akin(event, other) || event->has_heirs > other->has_heirs ||
		       event->attr.write_backward != other->attr.write_backward)))
		ret = -EINVAL;
	else
		redirect(event, other);
	perfring__soft_lock_give();
	return ret;
}

int perfring_soft_set_id(struct perfring_soft_event *event, uint64_t id)
{
	struct soft_instance *instance;
	int ret = 0;

	perfring__soft_lock_take();
	if (!id || event->set || event->output || event->handler) {
		ret = -EINVAL;
	} else {
		event->id = id;
		for (uint32_t i = 0; (instance = perfring__soft_instance_from(event, &i)); i++) {
			instance->output.id = id;
			if (instance->thread == event->opener)
				instance->id = id;
		}
	}
	perfring__soft_lock_give();
	return ret;
}

/* ---- without a ring ---- */

/* data first: an overflow that finds the handler finds it.  While a handler goes, no other comes: an occurrence that found the one
 * would call it with the data of the other.  The lock is not held over the grace period, because a handler that forks takes it. */
int perfring_soft_set_handler(struct perfring_soft_event *event,
			      void (*handler)(const struct perfring_soft_overflow *overflow, void *data), void *data)
{
	int ret = 0;

	perfring__soft_lock_take();
	if (event->set || event->output)
		ret = -EINVAL;
	else if (handler && (event->handler || event->handlers_going))
		ret = -EBUSY;
	if (!ret) {
		if (handler)
			PERFRING_STORE(&event->handler_data, data);
		else
			event->handlers_going++;
		PERFRING_STORE_RELEASE(&event->handler, handler); /* partner: call_handler */
	}
	perfring__soft_lock_give();
	if (ret || handler)
		return ret;
	perfring__soft_grace();
	perfring__soft_lock_take();
	event->handlers_going--;
	perfring__soft_lock_give();
	return 0;
}

int perfring_soft_set_signal(struct perfring_soft_event *event, int signal, uint32_t tid, int32_t fd)
{
	if (signal < 0 || signal > SIGRTMAX || tid >> 24)
		return -EINVAL;
	/* No order: a word on its own. */
	PERFRING_STORE(&event->signal,
		       signal ? (uint64_t)(uint32_t)fd << 32 | (uint64_t)tid << 8 | (unsigned)signal : 0);
	return 0;
}

/* ---- on and off: handlers too ---- */

/* After SPENT was cleared.  If the limit is spent again, this switches it off; later the spender does. */
static void set_on(struct perfring_soft_event *event)
{
	PERFRING_POINT(limit_set);
	PERFRING_EXCHANGE(&event->on, 1);
	if (PERFRING_LOAD_ORDERED(&event->limit) & SOFT_LIMIT_SPENT) /* partner: take_limit, before event_stop */
		PERFRING_EXCHANGE(&event->on, 0);
}

static void switch_event(struct perfring_soft_event *event, bool group, bool on)
{
	struct perfring_soft_event *first, *member;
	sigset_t signals;

	perfring__soft_switch_take(&signals);
	if (event->is_inherited) {
		perfring__soft_switch_give(&signals);
		return;
	}
	first = group ? event->leader : event; /* the leader changes under the switch, then is freed */
	for (member = first; member; member = group ? member->next : NULL) {
		if (!on) {
			PERFRING_EXCHANGE(&member->on, 0);
			continue;
		}
		PERFRING_AND(&member->limit, ~SOFT_LIMIT_SPENT); /* an enable ends SPENT */
		set_on(member);
	}
	settle(first);
	perfring__soft_switch_give(&signals);
}

void perfring_soft_enable(struct perfring_soft_event *event, bool group)
{
	switch_event(event, group, true);
}

void perfring_soft_disable(struct perfring_soft_event *event, bool group)
{
	switch_event(event, group, false);
}

/* docs/abi.md 2.1: counts of threads that have left stay, as of an inherited event's children; so do times and
 * losses. */
void perfring_soft_reset(struct perfring_soft_event *event, bool group)
{
	struct perfring_soft_event *member;
	struct soft_instance *instance;
	sigset_t signals;

	perfring__soft_switch_take(&signals);
	/* The leader: as in switch_event. */
	for (member = group ? event->leader : event; member; member = group ? member->next : NULL) {
		for (uint32_t i = 0; (instance = perfring__soft_instance_from(member, &i)); i++)
			PERFRING_STORE(&instance->base, perfring__soft_counted(instance) + instance->base);
		member->own_count = 0;
		PERFRING_EXCHANGE(&member->unjoined_count, 0);
	}
	perfring__soft_switch_give(&signals);
}

/* Also clears SPENT, in one step: else n could be used up before the event is on, and 0 means no limit. */
static void add_limit(struct perfring_soft_event *event, uint32_t n)
{
	uint32_t limit = PERFRING_LOAD(&event->limit), left;

	do {
		left = limit & ~SOFT_LIMIT_SPENT;
	} while (!PERFRING_COMPARE_EXCHANGE(&event->limit, &limit,
					    left + n < SOFT_LIMIT_SPENT ? left + n : SOFT_LIMIT_SPENT - 1));
}

int perfring_soft_refresh(struct perfring_soft_event *event, uint32_t n)
{
	sigset_t signals;

	if (!event->samples || n >= SOFT_LIMIT_SPENT || event->has_heirs) /* docs/abi.md 2.1 */
		return -EINVAL;
	if (!n) {
		perfring_soft_enable(event, false);
		return 0;
	}
	perfring__soft_switch_take(&signals);
	if (!event->is_inherited) {
		add_limit(event, n);
		set_on(event);
		settle(event);
	}
	perfring__soft_switch_give(&signals);
	return 0;
}

int perfring_soft_set_period(struct perfring_soft_event *event, uint64_t period)
{
	struct soft_instance *instance;
	sigset_t signals;

	if (!event->samples || !period ||
	    (event->attr.freq ? period > PERFRING_LOAD(&perfring__soft_max_rate) : period >> 63))
		return -EINVAL;
	perfring__soft_switch_take(&signals);
	PERFRING_STORE(&event->attr.sample_period,
		       period); /* or sample_freq, the same word: for threads that join later */
	for (uint32_t i = 0; (instance = perfring__soft_instance_from(event, &i)); i++) {
		start_or_stop(instance, false);
		perfring__soft_period_set(instance, period);
		if (runs(instance))
			start_or_stop(instance, true);
	}
	perfring__soft_switch_give(&signals);
	return 0;
}
