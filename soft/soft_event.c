/* soft_event.c - events: opened as the kernel judges them, in groups, with a ring for each thread; on and off; read.
 *
 * An event counts while it and its group's leader are on.  Both words may change at any time, by any thread or handler, so
 * whoever changes one settles what depends on it: the times of instances, the point's `active`, timers.  Each is brought to
 * what the event is, then the event is looked at again: however many do so at a time, and however they interrupt each
 * other, the last change is by one who has seen the last state.  Those who wait for the switch do it for all threads;
 * event_limit, in an occurrence, for its own thread alone, the only one that such an event has.
 *
 *     close                              an occurrence
 *       off, out of its point's list       read lock
 *       grace                              list, event, instance, writer: each by an acquire
 *       rings, instances, event: freed     read unlock
 */
#include <stdlib.h>

#include "soft_private.h"
#include "sample/attr.h"

enum {
	READ_MOST = 16384,
	STACK_MOST = 65535,
	CHAIN_MOST = 127, /* kernel.perf_event_max_stack */
	SECOND = 1000000000,
};

/* What a process can know of itself. */
#define SAMPLE_BITS \
	((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | \
		    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | \
		    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | \
		    PERF_SAMPLE_IDENTIFIER))

#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)

/* What is known here: a later bit may ask for more than is done. */
#define READ_BITS (2 * (uint64_t)PERFRING_FORMAT_LOST - 1)
#define FLAGS (2 * FLAG(defer_output) - 1)

/* Records that only a kernel can write; what belongs to exec, which ends us; rings of ours for a thread do not fall. */
#define FLAGS_NOT_HERE \
	(FLAG(inherit_stat) | FLAG(enable_on_exec) | FLAG(context_switch) | FLAG(write_backward) | FLAG(namespaces) | \
	 FLAG(ksymbol) | FLAG(bpf_event) | FLAG(aux_output) | FLAG(cgroup) | FLAG(text_poke) | FLAG(sigtrap) | \
	 FLAG(defer_callchain) | FLAG(defer_output))

/* Registers of user mode by perf's numbers: those that can be asked for, and those that only some PMUs have. */
#if defined(__x86_64__)
#define REGS_RESERVED (UINT64_C(0xf000) | UINT64_C(0xff000000)) /* DS ES FS GS, and none */
#define REGS_ELSEWHERE (UINT64_C(0xffffffff) << 32)             /* XMM */
#elif defined(__aarch64__)
#define REGS_RESERVED (~((UINT64_C(1) << 33) - 1))
#define REGS_ELSEWHERE UINT64_C(0)
#else
#define REGS_RESERVED UINT64_C(0)
#define REGS_ELSEWHERE UINT64_MAX
#endif

/* ---- attr: docs/abi.md 1.3, 1.5 ---- */

/* Copies attr by its own size. */
static int copy_attr(struct perf_event_attr *copy, const struct perf_event_attr *attr, uint32_t *aux_action)
{
	const unsigned char *bytes = (const unsigned char *)attr;
	uint32_t size = perfring_attr_own_size(attr);
	struct perfring_attr_members members;

	if (perfring_attr_read(&members, attr))
		return -E2BIG;
	for (uint32_t i = PERFRING_ATTR_KNOWN; i < size; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	*aux_action = (uint32_t)members.aux_action;
	*copy = perfring_attr_whole(attr);
	copy->size = size < sizeof(*copy) ? size : (uint32_t)sizeof(*copy);
	return 0;
}

/* What no kernel takes. */
static int judge_shape(const struct perf_event_attr *attr, uint64_t flags, uint32_t aux_action)
{
	uint64_t type = attr->sample_type;

	if (type & ~(uint64_t)PERFRING_SAMPLE_KNOWN || attr->read_format & ~READ_BITS || flags & ~FLAGS ||
	    attr->__reserved_2 || aux_action & ~7u)
		return -EINVAL;
	if (type & PERF_SAMPLE_REGS_USER && (!attr->sample_regs_user || attr->sample_regs_user & REGS_RESERVED))
		return -EINVAL;
	if (type & PERF_SAMPLE_STACK_USER && (attr->sample_stack_user >= STACK_MOST || attr->sample_stack_user & 7))
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
	switch (attr->clockid) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_REALTIME:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		return true;
	default:
		return !attr->use_clockid;
	}
}

/* Fills what attr says of the event. */
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
	/* Whose values they are is told by TID alone. */
	if (flags & FLAG(inherit) && attr->sample_type & PERF_SAMPLE_READ && !(attr->sample_type & PERF_SAMPLE_TID))
		return -EINVAL;
	if (!clock_is_valid(attr))
		return -EINVAL;
	event->point = perfring_soft_point_of(attr->type, attr->config);
	if (!event->point)
		return -ENOENT;
	if (attr->sample_type & ~SAMPLE_BITS || flags & FLAGS_NOT_HERE || aux_action ||
	    (flags & FLAG(inherit) && scope == PERFRING_SOFT_THREAD) ||
	    (attr->sample_type & PERF_SAMPLE_REGS_USER && attr->sample_regs_user & REGS_ELSEWHERE))
		return -EOPNOTSUPP;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && attr->sample_max_stack > CHAIN_MOST)
		return -EOVERFLOW;
	event->is_clock = attr->type == PERF_TYPE_SOFTWARE && attr->config != PERF_COUNT_SW_DUMMY;
	event->samples = attr->sample_period != 0;
	event->tells = !attr->use_clockid || attr->clockid == CLOCK_MONOTONIC;
	if (event->is_clock && attr->freq) { /* docs/abi.md 9.3: converted for good */
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

/* perfring_soft_lock.  Whether the group takes it: docs/abi.md 1.5. */
static int judge_group(const struct perfring_soft_event *event, const struct perfring_soft_event *leader)
{
	const struct perfring_soft_event *member;
	uint32_t members = 1;

	if (leader) {
		if (leader->leader != leader || leader->scope != event->scope ||
		    (event->scope == PERFRING_SOFT_THREAD && leader->opener != event->opener) ||
		    leader->attr.use_clockid != event->attr.use_clockid ||
		    leader->attr.clockid != event->attr.clockid || event->attr.pinned || event->attr.exclusive)
			return -EINVAL;
		members++;
		for (member = leader->next; member; member = member->next)
			members++;
		for (member = leader; member; member = member->next) {
			if (read_size(member, members) > READ_MOST)
				return -E2BIG;
		}
	}
	return read_size(event, members) > READ_MOST ? -E2BIG : 0;
}

/* Both locks.  Readers in occurrences (read_in_thread) see the whole new group or the whole old one, or its beginning. */
static void join_group(struct perfring_soft_event *event, struct perfring_soft_event *leader)
{
	struct perfring_soft_event **link = &leader->next;

	while (*link)
		link = &(*link)->next;
	PERFRING_STORE_RELEASE(link, event); /* partner: the acquires of read_in_thread and event_stop */
}

/* ---- what depends on who is on ---- */

/* Of a time that runs.  Nothing is known of a thread that has ended unseen: its clock tells 0. */
static uint64_t since(uint64_t time, uint64_t now)
{
	uint64_t begun = time & ~SOFT_TIME_RUNS;

	return now > begun ? now - begun : 0;
}

/* Never less than was told before: who stops it has looked at the clock before he says so, and a thread may end unseen. */
uint64_t perfring_soft_time_enabled(struct soft_instance *instance)
{
	uint64_t told = PERFRING_LOAD(&instance->told), time = PERFRING_LOAD(&instance->time);

	if (time & SOFT_TIME_RUNS)
		time = since(time, perfring_soft_thread_time(instance->thread));
	while (told < time) {
		if (PERFRING_COMPARE_EXCHANGE(&instance->told, &told, time))
			return time;
	}
	return told;
}

/* 1: it began to count, -1: it ceased, 0: neither. */
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
	default: /* while it was off, which event_stop has not settled yet, a handler may have stopped the timer */
		if (PERFRING_LOAD_ORDERED(&instance->time) & SOFT_TIME_RUNS)
			perfring_soft_timer_resume(instance);
	}
}

/* The switch.  The event, or the group that it leads. */
static void settle(struct perfring_soft_event *event)
{
	struct perfring_soft_event *member = event;

	do {
		for (uint32_t i = 0; i < member->threads; i++) {
			if (member->instances[i])
				settle_instance(member->instances[i]);
		}
		perfring_soft_point_update(member);
		member = member->next;
	} while (event->leader == event && member);
}

/* THREAD events alone have a limit, so the instances of the group that count are those of this thread.  A clock's timer stops
 * itself when it sees what we have done. */
void perfring_soft_event_stop(struct perfring_soft_event *event)
{
	const struct soft_thread *self = perfring_soft_self;
	struct perfring_soft_event *member = event;
	struct soft_instance *instance;

	if (!self) /* a handler on top of us has forked, and we are the child: there it is off */
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

/* perfring_soft_lock. */
static void free_instance(struct soft_instance *instance)
{
	perfring_soft_timer_delete(instance);
	if (instance->event->set && instance->writer)
		perfring_set_dismiss(instance->event->set, instance->writer);
	free(instance);
}

int perfring_soft_instance_make(struct perfring_soft_event *event, struct soft_thread *thread)
{
	struct soft_instance *instance = calloc(1, sizeof(*instance)), *writes;
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
	} else if (event->output) { /* NULL if its turn comes later: perfring_soft_join looks again */
		writes = event->output->instances[thread->index];
		instance->writer = writes ? writes->writer : NULL;
	}
	/* Whoever excludes user mode excludes all samples here, and counts all the same (docs/abi.md 9.4). */
	if (!ret && event->is_clock && event->samples && !event->attr.exclude_user)
		ret = perfring_soft_timer_make(instance);
	if (ret) {
		free_instance(instance);
		return ret;
	}
	perfring_soft_switch_take(&signals); /* attr's period, and whether it is on */
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
	uint64_t count = instance->event->is_clock ? perfring_soft_clock_count(instance)
						   : PERFRING_LOAD(&instance->count); /* no order: so far */
	uint64_t base = PERFRING_LOAD(&instance->base);

	return count > base ? count - base : 0; /* less: in a sample, reset since */
}

/* No occurrence is in it, nor comes: perfring_soft_self is NULL.  Others look under a lock that we hold: no grace period. */
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
		event->gone_count += counted(instance);
	}
	event->gone_enabled += perfring_soft_time_enabled(instance);
	event->gone_lost += PERFRING_LOAD(&instance->output.lost);
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
	perfring_soft_state_forget(event);
	free(event);
}

/* perfring_soft_lock.  Nobody finds it yet: an error leaves nothing behind that free_event does not free. */
static int make_instances(struct perfring_soft_event *event)
{
	struct soft_thread *thread;
	int ret;

	ret = perfring_soft_instance_make(event, event->opener); /* the first: its id is the event's */
	if (event->scope == PERFRING_SOFT_PROCESS) {
		for (thread = perfring_soft_threads; !ret && thread; thread = thread->next) {
			if (thread != event->opener)
				ret = perfring_soft_instance_make(event, thread);
		}
	}
	return ret;
}

int perfring_soft_open(struct perfring_soft_event **result, const struct perf_event_attr *attr, unsigned scope,
		       struct perfring_soft_event *leader)
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
	event->opener = perfring_soft_self;
	event->on = !event->attr.disabled;

	perfring_soft_lock_take();
	ret = judge_group(event, leader);
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

/* Both locks. */
static void leave_group(struct perfring_soft_event *event)
{
	struct perfring_soft_event *member, *next, **link;

	if (event->leader != event) {
		for (link = &event->leader->next; *link != event; link = &(*link)->next)
			;
		PERFRING_STORE(link, event->next); /* no order: what is behind it was published before */
		return;
	}
	for (member = event->next; member; member = next) {
		next = member->next;
		PERFRING_STORE(&member->next, NULL);
		PERFRING_STORE(&member->leader, member);
		settle(member); /* it counts by itself now */
	}
	PERFRING_STORE(&event->next, NULL);
}

/* perfring_soft_lock.  Where an instance of the event writes, from now on: what `to` has in the same thread, or nowhere. */
static void redirect(struct perfring_soft_event *event, struct perfring_soft_event *to)
{
	const struct soft_instance *writes;

	for (uint32_t i = 0; i < event->threads; i++) {
		if (!event->instances[i])
			continue;
		writes = to ? to->instances[i] : NULL;
		PERFRING_STORE_RELEASE(&event->instances[i]->writer,
				       writes ? writes->writer : NULL); /* partner: emit.c */
	}
	event->output = to;
}

void perfring_soft_close(struct perfring_soft_event *event)
{
	struct perfring_soft_event *other, **link;
	sigset_t signals;

	if (!event)
		return;
	if (event->inert) { /* nobody finds it, and the threads and timers that it had are not here */
		perfring_soft_timers_delete(event);
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
	for (other = perfring_soft_events; other; other = other->all) {
		if (other->output == event)
			redirect(other, NULL);
	}
	perfring_soft_timers_delete(event);
	perfring_soft_lock_give();
	PERFRING_POINT(event_unlinked);
	perfring_soft_grace();
	free_event(event);
}

/* ---- rings ---- */

/* perfring_soft_lock. */
static int make_rings(struct perfring_soft_event *event, struct perfring_set *set)
{
	struct perfring_writer **writers;
	struct soft_instance *instance;
	uint32_t i, count = event->threads;
	int ret = 0;

	writers = calloc(count ? count : 1, sizeof(*writers));
	if (!writers)
		return -ENOMEM;
	for (i = 0; !ret && i < count; i++) {
		instance = event->instances[i];
		if (instance)
			ret = perfring_set_admit(set, instance->thread->pthread, instance->thread->tid, &writers[i]);
	}
	for (i = 0; !ret && i < count; i++) { /* all, or none */
		if (event->instances[i])
			PERFRING_STORE_RELEASE(&event->instances[i]->writer, writers[i]); /* partner: emit.c */
	}
	free(writers);
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
		/* Threads make their rings while the program opens files of its own. */
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
	ret = event->set || event->output ? -EINVAL : perfring_set_open(&set, &ring, &writer, SOFT_THREADS);
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

/* What is about to be written goes where it would have gone: the old rings are still there, and stay until they are closed. */
int perfring_soft_set_output(struct perfring_soft_event *event, struct perfring_soft_event *other)
{
	int ret = 0;

	perfring_soft_lock_take();
	if (event->set || (other && (other == event || !other->set || other->scope != event->scope ||
				     (event->scope == PERFRING_SOFT_THREAD && other->opener != event->opener) ||
				     other->attr.use_clockid != event->attr.use_clockid ||
				     other->attr.clockid != event->attr.clockid)))
		ret = -EINVAL;
	else
		redirect(event, other);
	perfring_soft_lock_give();
	return ret;
}

/* ---- on and off: handlers too ---- */

/* Behind the end of SPENT.  If somebody has spent the limit again, it was on till then; from here on he stops it himself. */
static void set_on(struct perfring_soft_event *event)
{
	PERFRING_POINT(limit_set);
	PERFRING_EXCHANGE(&event->on, 1);
	if (PERFRING_LOAD_ORDERED(&event->limit) & SOFT_LIMIT_SPENT) /* partner: take_limit's swap, before event_stop */
		PERFRING_EXCHANGE(&event->on, 0);
}

static void turn_one(struct perfring_soft_event *event, uint32_t on)
{
	if (!on) {
		PERFRING_EXCHANGE(&event->on, 0);
		return;
	}
	PERFRING_AND(&event->limit, ~SOFT_LIMIT_SPENT); /* what its limit has ended goes on */
	set_on(event);
}

static void turn(struct perfring_soft_event *event, bool group, uint32_t on)
{
	struct perfring_soft_event *member;
	sigset_t signals;

	if (event->inert)
		return;
	perfring_soft_switch_take(&signals);
	if (group) {
		for (member = event->leader; member; member = member->next)
			turn_one(member, on);
		settle(event->leader);
	} else {
		turn_one(event, on);
		settle(event);
	}
	perfring_soft_switch_give(&signals);
}

void perfring_soft_enable(struct perfring_soft_event *event, bool group)
{
	turn(event, group, 1);
}

void perfring_soft_disable(struct perfring_soft_event *event, bool group)
{
	turn(event, group, 0);
}

/* docs/abi.md 2.1: what has gone, as an inherited event's dead children, stays, and so do times and losses. */
static void reset_one(struct perfring_soft_event *event)
{
	struct soft_instance *instance;

	for (uint32_t i = 0; i < event->threads; i++) {
		instance = event->instances[i];
		if (instance)
			PERFRING_STORE(&instance->base, counted(instance) + instance->base);
	}
	event->own_count = 0;
	PERFRING_EXCHANGE(&event->stray_count, 0);
}

void perfring_soft_reset(struct perfring_soft_event *event, bool group)
{
	struct perfring_soft_event *member;
	sigset_t signals;

	perfring_soft_switch_take(&signals);
	if (group) {
		for (member = event->leader; member; member = member->next)
			reset_one(member);
	} else {
		reset_one(event);
	}
	perfring_soft_switch_give(&signals);
}

/* At once with the end of what was spent: if it went before the event is on, nothing would be left of n but "no limit". */
static void add_limit(struct perfring_soft_event *event, uint32_t n)
{
	uint32_t limit = PERFRING_LOAD(&event->limit), left; /* no order: the swap says whether it was old */

	do {
		left = limit & ~SOFT_LIMIT_SPENT;
	} while (!PERFRING_COMPARE_EXCHANGE(&event->limit, &limit, left + n < SOFT_LIMIT_SPENT ? left + n : SOFT_LIMIT_SPENT - 1));
}

int perfring_soft_refresh(struct perfring_soft_event *event, uint32_t n)
{
	sigset_t signals;

	if (!event->samples || n >= SOFT_LIMIT_SPENT ||
	    event->scope == PERFRING_SOFT_PROCESS) /* docs/abi.md 2.1: nor one with inherit */
		return -EINVAL;
	if (!n) {
		perfring_soft_enable(event, false);
		return 0;
	}
	if (event->inert)
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
	PERFRING_STORE(&event->attr.sample_period, period); /* or its other name, sample_freq: for threads to come */
	for (uint32_t i = 0; i < event->threads; i++) {
		instance = event->instances[i];
		if (!instance)
			continue;
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
	reading->lost += PERFRING_LOAD(&instance->output.lost); /* no order: so far */
}

/* The switch. */
static struct reading sum(const struct perfring_soft_event *event)
{
	struct reading reading = {
		event->own_count + event->gone_count + PERFRING_LOAD(&event->stray_count),
		event->gone_enabled,
		event->gone_lost + PERFRING_LOAD(&event->stray_lost),
	};

	for (uint32_t i = 0; i < event->threads; i++) {
		if (event->instances[i])
			add(&reading, event->instances[i]);
	}
	return reading;
}

/* The words of docs/abi.md 2.2 that stand in front of a group's entries, and one entry; alone it is the same without nr, and with
 * the times in the middle.  Software events are never kept waiting, so they run while they are enabled. */
static uint64_t *put_times(uint64_t *word, uint64_t format, uint64_t enabled)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*word++ = enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*word++ = enabled;
	return word;
}

static uint64_t *put_ids(uint64_t *word, uint64_t format, uint64_t id, uint64_t lost)
{
	if (format & PERF_FORMAT_ID)
		*word++ = id;
	if (format & PERFRING_FORMAT_LOST)
		*word++ = lost;
	return word;
}

/* Words are stored by memcpy: room need not be aligned.  index: a thread's, else UINT32_MAX for all. */
static struct reading reading_of(const struct perfring_soft_event *event, uint32_t index)
{
	struct soft_instance *instance;
	struct reading reading = {0, 0, 0};

	if (index == UINT32_MAX)
		return sum(event);
	instance = PERFRING_LOAD_ACQUIRE(&event->instances[index]); /* partner: instance_make */
	if (instance)
		add(&reading, instance);
	return reading;
}

/* A group seen while it changes may have fewer members than counted; what is given is whole. */
static uint32_t put_reading(const struct perfring_soft_event *event, uint32_t index, unsigned char *room, size_t most)
{
	uint64_t format = event->attr.read_format, words[8], *word = words, nr = 0;
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&event->leader), *member;
	bool group = format & PERF_FORMAT_GROUP;
	uint32_t head = perfring_format_read_head(format), entry = perfring_format_read_entry(format), size;
	struct reading reading;

	if (!group) {
		if (most < read_size(event, 1))
			return 0;
		reading = reading_of(event, index);
		*word++ = reading.value;
		word = put_times(word, format, reading.enabled);
		word = put_ids(word, format, event->id, reading.lost);
		memcpy(room, words, (size_t)(word - words) * sizeof(*word));
		return read_size(event, 1);
	}
	size = head;
	for (member = leader; member; member = PERFRING_LOAD_ACQUIRE(&member->next), nr++, size += entry) {
		if (size + entry > most)
			return 0;
		reading = reading_of(member, index);
		words[0] = reading.value;
		put_ids(words + 1, format, member->id, reading.lost);
		memcpy(room + size, words, entry);
	}
	/* read(2) tells the leader's times, a sample those of its own event. */
	reading = reading_of(index == UINT32_MAX ? leader : event, index);
	words[0] = nr;
	put_times(words + 1, format, reading.enabled);
	memcpy(room, words, head);
	return size;
}

uint32_t perfring_soft_read_in_thread(const struct soft_instance *instance, void *room, uint32_t most)
{
	return put_reading(instance->event, instance->thread->index, room, most);
}

uint32_t perfring_soft_read_size(const struct soft_instance *instance)
{
	const struct perfring_soft_event *member = PERFRING_LOAD_ACQUIRE(&instance->event->leader);
	uint32_t members = 0;

	for (; member; member = PERFRING_LOAD_ACQUIRE(&member->next))
		members++;
	return read_size(instance->event, members);
}

int64_t perfring_soft_read(struct perfring_soft_event *event, void *room, size_t size)
{
	sigset_t signals;
	uint32_t put;

	perfring_soft_switch_take(&signals);
	put = put_reading(event, UINT32_MAX, room, size);
	perfring_soft_switch_give(&signals);
	return put ? (int64_t)put : -ENOSPC;
}

uint64_t perfring_soft_lost(const struct perfring_soft_event *event)
{
	sigset_t signals;
	uint64_t lost;

	perfring_soft_switch_take(&signals);
	lost = sum(event).lost;
	perfring_soft_switch_give(&signals);
	return lost;
}
