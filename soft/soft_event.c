/* soft_event.c - events: opened by the kernel's rules, in groups, with a ring for each thread; on and off; read.
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
 *       free rings, instances, event       exits
 */
#include <stdlib.h>

#include "soft_private.h"
#include "sample/attr.h"

enum {
	READ_MAX = 16384,
	STACK_MAX = 65535,
};

#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)

/* The bits that are implemented.  A later bit may mean more. */
#define READ_BITS (2 * (uint64_t)PERFRING_FORMAT_LOST - 1)
#define FLAGS (2 * FLAG(defer_output) - 1)

/* Reserved registers of user mode by perf's numbers. */
#if defined(__x86_64__)
#define REGS_RESERVED (UINT64_C(0xf000) | UINT64_C(0xff000000)) /* DS ES FS GS, and none */
#elif defined(__aarch64__)
#define REGS_RESERVED (~((UINT64_C(1) << 33) - 1))
#else
#define REGS_RESERVED UINT64_C(0)
#endif

/* ---- attr: docs/abi.md 1.3, 1.5 ---- */

/* As many bytes as its own size says. */
static int copy_attr(struct perf_event_attr *copy, const struct perf_event_attr *attr, uint32_t *aux_action)
{
	const unsigned char *bytes = (const unsigned char *)attr;
	uint32_t size = perfring_attr_own_size(attr);
	struct perfring_attr_members members;

	if (perfring_attr_read(&members, attr))
		return -E2BIG;
	for (uint32_t i = PERFRING_ATTR_KNOWN; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	*aux_action = (uint32_t)members.aux_action;
	*copy = perfring_attr_whole(attr);
	copy->size = size < sizeof(*copy) ? size : (uint32_t)sizeof(*copy);
	return 0;
}

/* The rules of every kernel. */
static int judge_shape(const struct perf_event_attr *attr, uint64_t flags, uint32_t aux_action)
{
	uint64_t type = attr->sample_type;

	if (type & ~(uint64_t)PERFRING_SAMPLE_KNOWN || attr->read_format & ~READ_BITS || flags & ~FLAGS ||
	    attr->__reserved_2 || aux_action & ~7u)
		return -EINVAL;
	if (type & PERF_SAMPLE_REGS_USER && (!attr->sample_regs_user || attr->sample_regs_user & REGS_RESERVED))
		return -EINVAL;
	if (type & PERF_SAMPLE_STACK_USER && (attr->sample_stack_user >= STACK_MAX || attr->sample_stack_user & 7))
		return -EINVAL;
	if (type & PERFRING_SAMPLE_WEIGHT && type & PERFRING_SAMPLE_WEIGHT_STRUCT)
		return -EINVAL;
	if ((flags & FLAG(inherit_thread) && !(flags & FLAG(inherit))) ||
	    (flags & FLAG(remove_on_exec) && flags & FLAG(enable_on_exec)) ||
	    (flags & FLAG(sigtrap) && !(flags & FLAG(remove_on_exec))))
		return -EINVAL;
	if (aux_action & 6) /* aux_pause, aux_resume: no leader here has an AUX area */
		return -EINVAL;
	return 0;
}

static bool clock_is_valid(const struct perf_event_attr *attr)
{
	return !attr->use_clockid || attr->clockid == CLOCK_MONOTONIC || attr->clockid == CLOCK_MONOTONIC_RAW ||
	       attr->clockid == CLOCK_REALTIME || attr->clockid == CLOCK_BOOTTIME || attr->clockid == CLOCK_TAI;
}

/* Sets the members of the event that attr gives. */
static int judge(struct perfring_soft_event *event, const struct perf_event_attr *from, unsigned scope)
{
	struct perf_event_attr *attr = &event->attr;
	uint32_t aux_action;
	uint64_t flags;
	int ret;

	ret = copy_attr(attr, from, &aux_action);
	if (ret)
		return ret;
	ret = perfring_format_from_attr(&event->format, attr);
	if (ret)
		return ret;
	flags = event->format.flags;
	ret = judge_shape(attr, flags, aux_action);
	if (ret)
		return ret;
	if (attr->freq ? attr->sample_freq > PERFRING_LOAD(&perfring_soft_max_rate) : attr->sample_period >> 63)
		return -EINVAL;
	if (scope == PERFRING_SOFT_PROCESS)
		flags |= FLAG(inherit);
	event->has_heirs = flags & FLAG(inherit);
	/* Only TID says whose values these are. */
	if (flags & FLAG(inherit) && attr->sample_type & PERF_SAMPLE_READ && !(attr->sample_type & PERF_SAMPLE_TID))
		return -EINVAL;
	if (!clock_is_valid(attr))
		return -EINVAL;
	event->point = perfring_soft_point_of(attr->type, attr->config);
	if (!event->point)
		return -ENOENT;
	if (perfring_soft_refused(flags, attr->sample_type, attr->sample_regs_user) || aux_action)
		return -EOPNOTSUPP;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && attr->sample_max_stack > SOFT_CHAIN_MAX)
		return -EOVERFLOW;
	event->is_clock = attr->type == PERF_TYPE_SOFTWARE && attr->config != PERF_COUNT_SW_DUMMY;
	event->samples = attr->sample_period != 0;
	event->is_monotonic = !attr->use_clockid || attr->clockid == CLOCK_MONOTONIC;
	if (event->is_clock && attr->freq) { /* docs/abi.md 9.3: converted once */
		attr->sample_period = attr->sample_freq ? SECOND / attr->sample_freq : 0;
		attr->freq = 0;
	}
	return 0;
}

/* ---- groups ---- */

static uint32_t read_size(const struct perfring_soft_event *event, uint32_t members)
{
	uint64_t format = event->attr.read_format;
	uint32_t entries = format & PERF_FORMAT_GROUP ? members : 1;

	return perfring_format_read_head(format) + entries * perfring_format_read_entry(format);
}

/* Whether the event may join the other's group, or write into its rings. */
static bool is_akin(const struct perfring_soft_event *event, const struct perfring_soft_event *other)
{
	return other->scope == event->scope &&
	       (event->scope == PERFRING_SOFT_PROCESS || (event->opener && other->opener == event->opener)) &&
	       other->attr.use_clockid == event->attr.use_clockid && other->attr.clockid == event->attr.clockid;
}

/* perfring_soft_lock. docs/abi.md 1.5. */
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
			if (read_size(member, members) > READ_MAX)
				return -E2BIG;
	}
	return read_size(event, members) > READ_MAX ? -E2BIG : 0;
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

/* The event's next instance from thread index *i on, or NULL.  The switch, or perfring_soft_lock. */
static struct soft_instance *instance_from(const struct perfring_soft_event *event, uint32_t *i)
{
	while (*i < event->threads && !event->instances[*i])
		++*i;
	return *i < event->threads ? event->instances[*i] : NULL;
}

/* Of a running time.  The clock of a thread that has exited is 0. */
static uint64_t since(uint64_t time, uint64_t now)
{
	uint64_t begun = time & ~SOFT_TIME_RUNS;

	return now > begun ? now - begun : 0;
}

/* Never less than was returned before: settle_time reads the clock before it stores the sum, and the clock of a thread
 * that has exited is 0. */
uint64_t perfring_soft_time_enabled(struct soft_instance *instance)
{
	uint64_t reported = PERFRING_LOAD(&instance->reported), time = PERFRING_LOAD(&instance->time);

	if (time & SOFT_TIME_RUNS)
		time = since(time, perfring_soft_thread_time(instance->thread));
	while (reported < time)
		if (PERFRING_COMPARE_EXCHANGE(&instance->reported, &reported, time))
			return time;
	return reported;
}

/* Returns 1 if it began to count, -1 if it stopped, else 0. */
static int settle_time(struct soft_instance *instance)
{
	uint64_t time, now, to;
	int change = 0;
	bool active;

	for (;;) {
		active = perfring_soft_is_active(instance->event);
		PERFRING_POINT(time_looked);
		time = PERFRING_LOAD_ORDERED(&instance->time);
		if (active == !!(time & SOFT_TIME_RUNS))
			return change;
		now = perfring_soft_thread_time(instance->thread);
		to = active ? (now - time) | SOFT_TIME_RUNS : since(time, now);
		PERFRING_POINT(time_taken);
		if (PERFRING_COMPARE_EXCHANGE(&instance->time, &time, to))
			change = active ? 1 : -1;
	}
}

/* The switch. */
static void settle_instance(struct soft_instance *instance)
{
	switch (settle_time(instance)) {
	case 1:
		perfring_soft_period_resume(instance);
		perfring_soft_timer_start(instance);
		break;
	case -1:
		perfring_soft_timer_stop(instance);
		break;
	default: /* event_stop may have switched it off for a moment, and the handler stopped its timer */
		if (PERFRING_LOAD_ORDERED(&instance->time) & SOFT_TIME_RUNS)
			perfring_soft_timer_resume(instance);
	}
}

/* The switch.  The event, with its group if it leads one. */
static void settle(struct perfring_soft_event *event)
{
	struct perfring_soft_event *member = event;
	struct soft_instance *instance;

	do {
		for (uint32_t i = 0; (instance = instance_from(member, &i)); i++)
			settle_instance(instance);
		perfring_soft_point_update(member);
		member = member->next;
	} while (event->leader == event && member);
}

/* Only events without heirs have a limit, so only this thread's instances count.  A clock's handler stops its timer itself. */
void perfring_soft_event_stop(struct perfring_soft_event *event)
{
	const struct soft_thread *self = perfring_soft_self;
	struct perfring_soft_event *member = event;
	struct soft_instance *instance;

	if (!self) /* a child of a handler that interrupted us: there it is off */
		return;
	PERFRING_EXCHANGE(&event->on, 0);
	PERFRING_POINT(event_stopped);
	do {
		instance = PERFRING_LOAD_ACQUIRE(&member->instances[self->index]);
		if (instance)
			settle_time(instance);
		perfring_soft_point_update(member);
		member = PERFRING_LOAD_ACQUIRE(&member->next);
	} while (PERFRING_LOAD_ACQUIRE(&event->leader) == event && member);
}

/* ---- instances ---- */

static void free_instance(struct soft_instance *instance)
{
	perfring_soft_timer_delete(instance);
	if (instance->event->set && instance->writer)
		perfring_set_dismiss(instance->event->set, instance->writer);
	free(instance);
}

int perfring_soft_instance_make(struct perfring_soft_event *event, struct soft_thread *thread)
{
	struct soft_instance *instance = calloc(1, sizeof(*instance)), *owner;
	sigset_t signals;
	int ret = 0;

	if (!instance)
		return -ENOMEM;
	instance->event = event;
	instance->thread = thread;
	instance->id = event->opener == thread ? event->id : perfring_soft_next_id();
	perfring_soft_output_init(instance);
	if (event->set) {
		ret = perfring_set_admit(event->set, thread->pthread, thread->tid, &instance->writer);
	} else if (event->output) { /* NULL if that instance is made later: perfring_soft_join looks again */
		owner = event->output->instances[thread->index];
		instance->writer = owner ? owner->writer : NULL;
	}
	/* exclude_user excludes all samples here, but not the count (docs/abi.md 9.4). */
	if (!ret && event->is_clock && event->samples && !event->attr.exclude_user)
		ret = perfring_soft_timer_make(instance);
	if (ret) {
		free_instance(instance);
		return ret;
	}
	perfring_soft_switch_take(&signals); /* attr's period and `on` change under it */
	perfring_soft_period_start(instance);
	if (event->threads <= thread->index)
		event->threads = thread->index + 1;
	PERFRING_STORE_RELEASE(&event->instances[thread->index], instance); /* partner: perfring_soft_raise_active */
	settle_instance(instance);
	perfring_soft_switch_give(&signals);
	return 0;
}

static uint64_t counted(struct soft_instance *instance)
{
	/* Both clocks count the thread's time while it was on (docs/abi.md 9.4). */
	uint64_t count =
		instance->event->is_clock ? perfring_soft_time_enabled(instance) : PERFRING_LOAD(&instance->count);
	uint64_t base = PERFRING_LOAD(&instance->base);

	return count > base ? count - base : 0; /* less: a reset since then */
}

/* No occurrence uses it, because perfring_soft_self is NULL, and other threads only under the lock: no grace period. */
void perfring_soft_instance_fold(struct perfring_soft_event *event, struct soft_thread *thread)
{
	struct soft_instance *instance = event->instances[thread->index];
	sigset_t signals;

	if (!instance)
		return;
	perfring_soft_switch_take(&signals);
	if (event->opener == thread) {
		event->own_count += counted(instance);
		event->opener = NULL;
	} else {
		event->exited_count += counted(instance);
	}
	event->exited_enabled += perfring_soft_time_enabled(instance);
	event->exited_lost += PERFRING_LOAD(&instance->output.lost);
	PERFRING_STORE(&event->instances[thread->index], NULL);
	perfring_soft_switch_give(&signals);
	free_instance(instance);
}

/* ---- open, close ---- */

static void free_event(struct perfring_soft_event *event)
{
	for (uint32_t i = 0; i < event->threads; i++)
		free(event->instances[i]);
	perfring_set_close(event->set);
	free(event->state.array);
	free(event);
}

/* perfring_soft_lock.  The event is not published yet; free_event frees what an error leaves. */
static int make_instances(struct perfring_soft_event *event)
{
	struct soft_thread *thread;
	int ret;

	ret = perfring_soft_instance_make(event, event->opener); /* the first: its id is the event's */
	if (event->scope == PERFRING_SOFT_PROCESS) {
		for (thread = perfring_soft_threads; !ret && thread; thread = thread->next)
			if (thread != event->opener)
				ret = perfring_soft_instance_make(event, thread);
	}
	return ret;
}

/* perfring_soft_lock.  The joined thread with that tid, or NULL. */
static struct soft_thread *thread_of(uint32_t tid)
{
	struct soft_thread *thread = perfring_soft_threads;

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
	ret = judge(event, attr, scope);
	if (!ret)
		ret = perfring_soft_join();
	if (ret) {
		free(event);
		return ret;
	}
	event->id = perfring_soft_next_id();
	event->on = !event->attr.disabled;

	perfring_soft_lock_take(); /* from here to instance_make the thread cannot leave */
	event->opener = tid ? thread_of(tid) : perfring_soft_self;
	ret = event->opener ? judge_group(event, leader) : -ESRCH;
	event->leader = leader ? leader : event;
	if (!ret)
		ret = make_instances(event);
	if (!ret)
		ret = perfring_soft_point_add(event, &old);
	if (ret) {
		perfring_soft_timers_delete(event);
		perfring_soft_lock_give();
		free_event(event);
		return ret;
	}
	perfring_soft_switch_take(&signals);
	if (leader)
		join_group(event, leader);
	settle(event); /* the leader may have changed since the instances were made */
	perfring_soft_switch_give(&signals);
	event->all = perfring_soft_events;
	perfring_soft_events = event;
	perfring_soft_lock_give();
	if (old) {
		perfring_soft_grace();
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
		PERFRING_STORE(link, event->next); /* no order: event->next was published before */
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

/* perfring_soft_lock.  The event's instances write into the rings of `to`, or into none. */
static void redirect(struct perfring_soft_event *event, struct perfring_soft_event *to)
{
	const struct soft_instance *owner;
	struct soft_instance *instance;

	if (!to) /* first: from here on what has no ring is not lost */
		PERFRING_STORE(&event->output, NULL);
	for (uint32_t i = 0; (instance = instance_from(event, &i)); i++) {
		owner = to ? to->instances[i] : NULL;
		PERFRING_STORE_RELEASE(&instance->writer, owner ? owner->writer : NULL); /* partner: emit.c */
	}
	PERFRING_STORE(&event->output, to); /* no order: emit.c only counts by it */
}

void perfring_soft_close(struct perfring_soft_event *event)
{
	struct perfring_soft_event *other, **link;
	sigset_t signals;

	if (!event)
		return;
	if (event->is_inherited) { /* it is linked nowhere, and has no threads and timers here */
		free_event(event);
		return;
	}
	perfring_soft_lock_take();
	perfring_soft_switch_take(&signals);
	leave_group(event);
	PERFRING_EXCHANGE(&event->on, 0);
	settle(event);
	perfring_soft_switch_give(&signals);
	perfring_soft_point_remove(event);
	for (link = &perfring_soft_events; *link != event; link = &(*link)->all)
		;
	*link = event->all;
	for (other = perfring_soft_events; other; other = other->all)
		if (other->output == event)
			redirect(other, NULL);
	perfring_soft_timers_delete(event);
	perfring_soft_lock_give();
	PERFRING_POINT(event_unlinked);
	perfring_soft_grace();
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
	for (uint32_t i = 0; !ret && (instance = instance_from(event, &i)); i++)
		ret = perfring_set_admit(set, instance->thread->pthread, instance->thread->tid, &writers[i]);
	for (uint32_t i = 0; !ret && (instance = instance_from(event, &i)); i++) /* all, or none */
		PERFRING_STORE_RELEASE(&instance->writer, writers[i]);           /* partner: emit.c */
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

	if (event->attr.watermark)
		ring.wakeup = event->attr.wakeup_watermark;
	perfring_soft_lock_take();
	ret = event->set || event->output || event->handler ? -EINVAL : perfring_set_open(&set, &ring, &writer, SOFT_THREADS);
	if (!ret) {
		ret = make_rings(event, set);
		if (ret)
			perfring_set_close(set);
		else
			PERFRING_STORE_RELEASE(&event->set, set); /* partner: perfring_soft_rings */
	}
	perfring_soft_lock_give();
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

	perfring_soft_lock_take();
	if (event->set || event->handler || (other && (other == event || !other->set || !is_akin(event, other) ||
						       event->has_heirs > other->has_heirs)))
		ret = -EINVAL;
	else
		redirect(event, other);
	perfring_soft_lock_give();
	return ret;
}

/* ---- without a ring ---- */

/* data first: an overflow that finds the handler finds it.  While a handler goes, no other comes: an occurrence that found the one
 * would call it with the data of the other.  The lock is not held over the grace period, because a handler that forks takes it. */
int perfring_soft_set_handler(struct perfring_soft_event *event,
			      void (*handler)(const struct perfring_soft_overflow *overflow, void *data), void *data)
{
	int ret = 0;

	perfring_soft_lock_take();
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
	perfring_soft_lock_give();
	if (ret || handler)
		return ret;
	perfring_soft_grace();
	perfring_soft_lock_take();
	event->handlers_going--;
	perfring_soft_lock_give();
	return 0;
}

int perfring_soft_set_signal(struct perfring_soft_event *event, int signal, uint32_t tid, int32_t fd)
{
	if (signal < 0 || signal > SIGRTMAX || tid >> 24)
		return -EINVAL;
	/* No order: a word on its own. */
	PERFRING_STORE(&event->signal, signal ? (uint64_t)(uint32_t)fd << 32 | (uint64_t)tid << 8 | (unsigned)signal : 0);
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

	if (event->is_inherited)
		return;
	perfring_soft_switch_take(&signals);
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
	perfring_soft_switch_give(&signals);
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

	perfring_soft_switch_take(&signals);
	/* The leader: as in switch_event. */
	for (member = group ? event->leader : event; member; member = group ? member->next : NULL) {
		for (uint32_t i = 0; (instance = instance_from(member, &i)); i++)
			PERFRING_STORE(&instance->base, counted(instance) + instance->base);
		member->own_count = 0;
		PERFRING_EXCHANGE(&member->unjoined_count, 0);
	}
	perfring_soft_switch_give(&signals);
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

	if (!event->samples || n >= SOFT_LIMIT_SPENT ||
	    event->has_heirs) /* docs/abi.md 2.1 */
		return -EINVAL;
	if (!n) {
		perfring_soft_enable(event, false);
		return 0;
	}
	if (event->is_inherited)
		return 0;
	perfring_soft_switch_take(&signals);
	add_limit(event, n);
	set_on(event);
	settle(event);
	perfring_soft_switch_give(&signals);
	return 0;
}

int perfring_soft_set_period(struct perfring_soft_event *event, uint64_t period)
{
	struct soft_instance *instance;
	sigset_t signals;
	bool runs;

	if (!event->samples || !period ||
	    (event->attr.freq ? period > PERFRING_LOAD(&perfring_soft_max_rate) : period >> 63))
		return -EINVAL;
	perfring_soft_switch_take(&signals);
	PERFRING_STORE(&event->attr.sample_period,
		       period); /* or sample_freq, the same word: for threads that join later */
	for (uint32_t i = 0; (instance = instance_from(event, &i)); i++) {
		runs = PERFRING_LOAD(&instance->time) & SOFT_TIME_RUNS;
		perfring_soft_timer_stop(instance);
		perfring_soft_period_set(instance, period);
		if (runs)
			perfring_soft_timer_start(instance);
	}
	perfring_soft_switch_give(&signals);
	return 0;
}

/* ---- read ---- */

uint64_t perfring_soft_id(const struct perfring_soft_event *event)
{
	return event->id;
}

struct reading {
	uint64_t value, enabled, lost;
};

static void add(struct reading *reading, struct soft_instance *instance)
{
	reading->value += counted(instance);
	reading->enabled += perfring_soft_time_enabled(instance);
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
	for (uint32_t i = 0; (instance = instance_from(event, &i)); i++)
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
	uint32_t entry = group ? perfring_format_read_entry(format) : read_size(event, 1);
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

uint32_t perfring_soft_read_in_thread(const struct soft_instance *instance, void *to, uint32_t max)
{
	return put_reading(instance->event, instance->thread->index, NULL, to, max);
}

/* The kernel ends a task's events from the last to the first: of a group those that are left. */
uint32_t perfring_soft_read_at_exit(const struct soft_instance *instance, void *to, uint32_t max)
{
	const struct perfring_soft_event *event = instance->event, *member = event->leader;
	uint32_t members = 1, size;

	for (; member != event; member = member->next)
		members++;
	size = read_size(event, members);
	return to ? put_reading(event, instance->thread->index, event, to, max) : size;
}

uint32_t perfring_soft_read_size(const struct soft_instance *instance)
{
	const struct perfring_soft_event *member = PERFRING_LOAD_ACQUIRE(&instance->event->leader);
	uint32_t members = 0;

	for (; member; member = PERFRING_LOAD_ACQUIRE(&member->next))
		members++;
	return read_size(instance->event, members);
}

int64_t perfring_soft_read(struct perfring_soft_event *event, void *buffer, size_t size)
{
	sigset_t signals;
	uint32_t put;

	perfring_soft_switch_take(&signals);
	put = put_reading(event, UINT32_MAX, NULL, buffer, size);
	perfring_soft_switch_give(&signals);
	return put ? (int64_t)put : -ENOSPC;
}

uint64_t perfring_soft_lost(const struct perfring_soft_event *event)
{
	sigset_t signals;
	uint64_t lost;

	perfring_soft_switch_take(&signals);
	lost = reading_of(event, UINT32_MAX).lost;
	perfring_soft_switch_give(&signals);
	return lost;
}
