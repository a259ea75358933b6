/* timer.c - the clocks' timer, one for each thread, and the signal that it sends.
 *
 * Both clocks run on the CPU clock of their thread (docs/abi.md 9.4: a task's cpu-clock counts what task-clock counts).  The
 * kernel looks at such a timer in its own tick, and only while the thread runs, so it never interrupts a sleep.  A clock
 * makes at most CONFIG_HZ samples in a second of CPU time.  Missed intervals are in the samples' periods, whose sum is the
 * CPU time.
 *
 * The timer is programmed for the interval that ends first.  Its handler samples each clock whose interval has ended, and
 * programs it again.  The value is relative, so the next kernel tick is the earliest: however short the periods are, the
 * thread runs between two ticks.  If the stack has no space for the handler, the kernel repeats the signal (RETRY).
 *
 *     created     with the thread's first clock
 *     disarmed    while no clock of the thread is started
 *     deleted     when the thread leaves, which also takes the pending signal.  (A timer for each event would queue one signal
 *                 for each, in a thread that blocks it.)  After SYS_exit the timer stays, and finds no thread
 *     fork        the child has no timers
 *     exec        the kernel deletes the timer and its queued signal, before the signal's action becomes the default
 *
 * A signal that arrives after its clock was stopped finds no interval that has ended.  For such a signal the handler stays
 * installed after the last clock.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/signals.h"
#include "os/task.h"
#include "soft_private.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	INTERVAL_MIN = 10000, /* ns: minimal interval */
	RETRY = 10000000,     /* ns after a missed tick */
};

/* perfring__soft_lock, except for reads by perfring_soft_signal. */
static int signal_number;

int perfring_soft_signal(void)
{
	return PERFRING_LOAD(&signal_number);
}

static uint64_t interval_of(const struct soft_instance *instance)
{
	uint64_t period = PERFRING_LOAD(&instance->period); /* no order: set_period restarts the timer */

	return period < INTERVAL_MIN ? INTERVAL_MIN : period;
}

/* Acquire: partner is add_clock. */
static struct soft_instance *first_of(const struct soft_thread *thread)
{
	return PERFRING_LOAD_ACQUIRE(&thread->clocks);
}

/* The end of the interval that ends first; 0: no clock is started. */
static uint64_t earliest_of(const struct soft_thread *thread)
{
	const struct soft_instance *clock;
	uint64_t earliest = 0, due;

	for (clock = first_of(thread); clock; clock = PERFRING_LOAD_ACQUIRE(&clock->next_clock)) {
		due = PERFRING_LOAD(&clock->due); /* no order: `changes` is increased after each change */
		if (due && due - 1 < earliest - 1)
			earliest = due;
	}
	return earliest;
}

static void settime(const struct soft_thread *thread, uint64_t earliest)
{
	struct itimerspec spec = {{0, earliest ? RETRY : 0}, {0, 0}};
	int64_t first = 0;

	if (earliest) {
		first = (int64_t)(earliest - perfring__soft_thread_time(thread));
		first = first < INTERVAL_MIN ? INTERVAL_MIN : first;
	}
	spec.it_value.tv_sec = (time_t)(first / SECOND);
	spec.it_value.tv_nsec = (long)(first % SECOND);
	timer_settime(thread->timer, 0, &spec, NULL); /* fails for a thread that has exited */
}

/* After a change of a `due`. The thread's handler may interrupt this, or run at the same time.  Neither waits: each
 * programs again if there was a later change, so the last one programs the last state. */
static void program(struct soft_thread *thread)
{
	uint32_t change = PERFRING_ADD(&thread->changes, 1) + 1, seen;

	do {
		seen = change;
		PERFRING_POINT(timer_changes);
		settime(thread, earliest_of(thread));
		change = PERFRING_LOAD_ORDERED(&thread->changes);
	} while (change != seen);
}

static void start(struct soft_instance *instance)
{
	uint64_t left = PERFRING_LOAD(&instance->left), first = left ? left : interval_of(instance);

	PERFRING_STORE(&instance->left, 0);
	PERFRING_EXCHANGE(&instance->due, perfring__soft_thread_time(instance->thread) + first);
	program(instance->thread);
}

/* ---- the handler ---- */

static void expire(struct soft_instance *instance, uint64_t now, const void *context)
{
	struct perfring_soft_site site = {.context = context};
	/* Before is_active: an enable sets `on` before it starts the timer. */
	uint64_t due = PERFRING_LOAD_ORDERED(&instance->due), interval = interval_of(instance), intervals, next;

	if (!due || now < due)
		return;
	intervals = 1 + (now - due) / interval;
	next = due + intervals * interval;
	PERFRING_POINT(timer_due);
	if (!PERFRING_COMPARE_EXCHANGE(&instance->due, &due, next)) /* stopped meanwhile, perhaps started again */
		return;
	if (perfring__soft_is_active(instance->event))
		perfring__soft_tick_of_clock(instance, intervals, &site);
	PERFRING_POINT(timer_ticked);
	if (perfring__soft_is_active(instance->event))
		return;
	/* event_limit has ended it, without a lock to stop timers.  Looks again: partner is start_clock, after an
	 * enable. */
	if (PERFRING_COMPARE_EXCHANGE(&instance->due, &next, 0) && perfring__soft_is_active(instance->event))
		start(instance);
}

/* Its own function: on_signal checks the stack with little stack. */
static __attribute__((noinline)) void expire_all(struct soft_thread *thread, const void *context)
{
	struct soft_instance *clock;
	int saved = errno;
	uint64_t before, now;

	before = perfring__soft_enter(thread); /* who frees a clock waits for it */
	PERFRING_POINT(timer_found);
	now = perfring__soft_thread_time(thread);
	for (clock = first_of(thread); clock; clock = PERFRING_LOAD_ACQUIRE(&clock->next_clock))
		expire(clock, now, context);
	if (PERFRING_LIKELY(perfring__soft_self ==
			    thread)) /* a child that a handler has forked has no timer, or another's */
		program(thread);
	perfring__soft_exit(thread, before);
	errno = saved;
}

static void on_signal(int number, siginfo_t *from, void *context)
{
	struct soft_thread *thread = perfring__soft_self;

	(void)number;
	/* Ignores signals of this number that no timer has sent.  A thread that has left may get its last one. */
	if (from->si_code == SI_TIMER && thread && PERFRING_LOAD_ACQUIRE(&thread->has_timer) &&
	    perfring__soft_stack_fits(thread, &((const ucontext_t *)context)->uc_stack))
		expire_all(thread, context);
}

/* ---- the signal ---- */

/* Takes a signal without a handler.  A blocked one may be for sigwait or a signalfd: only if there is no other.  The
 * search begins in the middle, because most programs take one from an end. */
static int take_signal(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, old;
	int k, number, count = SIGRTMAX - SIGRTMIN + 1;

	ours.sa_sigaction = on_signal;
	/* A handler that interrupted ours could leave by longjmp, and a grace period would wait without end. */
	perfring__os_signals_fill(&ours.sa_mask);
	for (k = 0; k < 2 * count; k++) {
		number = SIGRTMIN + (k + count / 2) % count;
		if (sigismember(&perfring__soft_lock_signals, number) != (k >= count))
			continue;
		if (sigaction(number, NULL, &old) < 0 || old.sa_handler != SIG_DFL)
			continue;
		if (sigaction(number, &ours, &old) < 0)
			continue;
		if (old.sa_handler == SIG_DFL) {
			PERFRING_STORE(&signal_number, number); /* no order: only a number */
			return 0;
		}
		sigaction(number, &old, NULL); /* another thread has set a handler meanwhile */
	}
	return -EBUSY;
}

/* A program that has replaced the handler would get signals that it does not expect. */
static int check_signal(void)
{
	struct sigaction now;

	if (!signal_number)
		return take_signal();
	if (sigaction(signal_number, NULL, &now) < 0 || now.sa_sigaction != on_signal)
		return -EBUSY;
	return 0;
}

/* ---- the timers ---- */

/* perfring__soft_lock.  Returns 1 if the thread has exited. */
static int create(struct soft_thread *thread)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID};
	int r;

	r = check_signal();
	if (r < 0 || thread->has_timer)
		return r;
	event.sigev_signo = signal_number;
	event.sigev_notify_thread_id = (pid_t)thread->tid;
	if (timer_create(thread->clock, &event, &thread->timer) < 0)
		return perfring__os_task_has_ended(thread->tid) ? 1 : -errno; /* -EAGAIN: RLIMIT_SIGPENDING */
	PERFRING_STORE_RELEASE(&thread->has_timer, true); /* after thread->timer: partner is on_signal */
	return 0;
}

static int find_clock(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)point;
	return attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK ? 0 : -ENOENT;
}

/* exclude_user excludes all samples here, but not the count (docs/abi.md 9.4). */
static int add_clock(struct perfring_soft_counter *counter)
{
	struct soft_instance *instance = perfring__soft_instance_of(counter);
	struct soft_thread *thread = instance->thread;
	sigset_t signals;
	int r;

	if (!instance->event->samples || instance->event->attr.exclude_user)
		return 0;
	r = create(thread);
	if (r)
		return r < 0 ? r : 0;
	perfring__soft_switch_take(&signals); /* clock_link changes under both locks, so each reader needs only one */
	instance->clock_link = &thread->clocks;
	instance->next_clock = thread->clocks;
	if (instance->next_clock)
		instance->next_clock->clock_link = &instance->next_clock;
	PERFRING_STORE_RELEASE(&thread->clocks, instance); /* partner: first_of */
	perfring__soft_switch_give(&signals);
	return 0;
}

/* A sampling clock.  After fork its thread has no such timer, or another one with that id. */
static bool is_linked(const struct soft_instance *instance)
{
	return instance->clock_link && !instance->event->is_inherited && instance->thread->pid == (uint32_t)getpid();
}

/* The switch, or the instance's own thread. */
static bool has_timer(const struct soft_instance *instance)
{
	return is_linked(instance) && PERFRING_LOAD(&instance->thread->has_timer);
}

/* Not if it is started: its handler stops it by itself, and event_stop may have switched it off for a moment. */
static void start_clock(struct perfring_soft_counter *counter)
{
	struct soft_instance *instance = perfring__soft_instance_of(counter);

	if (has_timer(instance) && !PERFRING_LOAD_ORDERED(&instance->due)) /* partner: expire */
		start(instance);
}

/* Keeps the rest of the interval; below 0 if it has ended and was not sampled yet. */
static void stop_clock(struct perfring_soft_counter *counter)
{
	struct soft_instance *instance = perfring__soft_instance_of(counter);
	uint64_t due = has_timer(instance) ? PERFRING_EXCHANGE(&instance->due, 0) : 0;

	if (!due)
		return; /* keeps the rest of last time; 0 if its handler stopped it */
	program(instance->thread);
	PERFRING_STORE(&instance->left, due - perfring__soft_thread_time(instance->thread));
}

static void del_clock(struct perfring_soft_counter *counter)
{
	struct soft_instance *instance = perfring__soft_instance_of(counter);
	sigset_t signals;

	if (!is_linked(instance))
		return;
	perfring__soft_switch_take(&signals);
	if (instance->next_clock)
		instance->next_clock->clock_link = instance->clock_link;
	PERFRING_STORE(instance->clock_link, instance->next_clock); /* no order: next_clock was published before */
	instance->clock_link = NULL;
	perfring__soft_switch_give(&signals);
	PERFRING_POINT(timer_unlinked);
}

const struct perfring_soft_pmu perfring__soft_clocks = {
	.type = PERF_TYPE_SOFTWARE,
	.init = find_clock,
	.add = add_clock,
	.del = del_clock,
	.start = start_clock,
	.stop = stop_clock,
};

void perfring__soft_timer_end(struct soft_thread *thread)
{
	const struct timespec none = {0, 0};
	sigset_t pending, signals;
	struct sigaction now;
	int saved = errno;

	if (!thread->has_timer)
		return;
	perfring__soft_switch_take(&signals);
	PERFRING_STORE(&thread->has_timer, false); /* from here on no other thread programs it */
	perfring__soft_switch_give(&signals);
	timer_delete(thread->timer);
	/* A queued signal stays while the thread blocks it.  Not if the handler was replaced: it may be the
	 * program's. */
	if (!sigaction(signal_number, NULL, &now) && now.sa_sigaction == on_signal) {
		sigemptyset(&pending);
		sigaddset(&pending, signal_number);
		while (sigtimedwait(&pending, NULL, &none) > 0)
			;
	}
	errno = saved;
}
