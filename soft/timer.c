/* timer.c - the clocks' timer, one for each thread, and the signal that it sends.
 *
 * Both clocks run on the CPU clock of their thread (docs/abi.md 9.4: of a task, cpu-clock counts what task-clock counts).  The
 * kernel looks at such a timer in its own tick, and only while the thread runs: a thread that sleeps, or waits for a
 * processor, is never interrupted.  So a clock gives at most CONFIG_HZ samples for a second of CPU time, whatever its
 * period.  The intervals that it misses are in its samples' periods, which add up to the CPU time.
 *
 * A thread has one timer for all its clocks.  It is programmed for the end of the interval that ends first; its
 * handler looks at the CPU clock, samples each clock whose interval has ended, and programs it again.  The value is
 * relative, so the kernel's next tick is the earliest: however short the periods, the thread goes on between two ticks.
 * Where the handler finds no space, the kernel programs it (AGAIN).
 *
 *     made                with the thread's first clock
 *     disarmed            while no clock of the thread is started
 *     deleted             when the thread leaves, which then takes what the timer has left pending.  (A timer for each
 *                         event would leave one signal queued for each in a thread that blocks it.)  A thread that ends
 *                         unseen (SYS_exit) leaves a timer that finds no thread.
 *     fork                not inherited: the child has no timers.
 *     exec                the kernel deletes the timer and what it has queued, before the signal means death again.
 *
 * A signal that was on its way when its clock was stopped finds nothing whose interval has ended.  The handler stays: a
 * signal may still be on its way when the last clock is gone.
 *
 * The handler runs on an alternate stack (stack.c), so that what it interrupts may stand on a small stack.  A tick that has
 * no space is missed.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "soft_private.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	SECOND = 1000000000,
	LEAST = 10000,    /* ns: the shortest interval */
	AGAIN = 10000000, /* ns behind a tick that was missed: another */
};

/* A sampling clock in a thread. */
struct soft_timer {
	/* The thread's; changed under both locks.  Its handlers walk `next`, who holds the switch too. */
	struct soft_timer *next, **link;
	struct soft_timer *gone; /* the next to be freed */
	struct soft_instance *instance;
	/* When the interval ends, ns of the thread's CPU clock; 0: stopped.  By PERFRING_COMPARE_EXCHANGE and PERFRING_EXCHANGE */
	perfring_u64 due;
};

/* perfring_soft_lock, but for perfring_soft_signal. */
static int signal_number;

int perfring_soft_signal(void)
{
	return PERFRING_LOAD(&signal_number); /* set once */
}

static uint64_t interval_of(const struct soft_instance *instance)
{
	uint64_t period = PERFRING_LOAD(&instance->period); /* no order: set_period starts the timer again */

	return period < LEAST ? LEAST : period;
}

/* Acquire: partner is the release in make, which another thread may have done. */
static struct soft_timer *first_of(const struct soft_thread *thread)
{
	return PERFRING_LOAD_ACQUIRE((struct soft_timer *const *)&thread->clocks);
}

/* 0: none is started. */
static uint64_t earliest_of(const struct soft_thread *thread)
{
	struct soft_timer *timer;
	uint64_t earliest = 0, due;

	for (timer = first_of(thread); timer; timer = PERFRING_LOAD_ACQUIRE(&timer->next)) {
		due = PERFRING_LOAD(&timer->due); /* no order: who changes it counts the change behind it */
		if (due && due - 1 < earliest - 1)
			earliest = due;
	}
	return earliest;
}

static void settime(const struct soft_thread *thread, uint64_t earliest)
{
	struct itimerspec spec = {{0, earliest ? AGAIN : 0}, {0, 0}};
	int64_t first = 0;

	if (earliest) {
		first = (int64_t)(earliest - perfring_soft_thread_time(thread));
		first = first < LEAST ? LEAST : first;
	}
	spec.it_value.tv_sec = (time_t)(first / SECOND);
	spec.it_value.tv_nsec = (long)(first % SECOND);
	timer_settime(thread->timer, 0, &spec, NULL); /* fails for a thread that has ended unseen */
}

/* After a `due` was changed.  The thread's handler and one other may be here at a time, none waits: who finds that another
 * change was made since he looked programs again, so the last of all programs the last state. */
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

static void start(struct soft_timer *timer)
{
	struct soft_instance *instance = timer->instance;
	uint64_t left = PERFRING_LOAD(&instance->left), first = left ? left : interval_of(instance);

	PERFRING_STORE(&instance->left, 0);
	PERFRING_EXCHANGE(&timer->due, perfring_soft_thread_time(instance->thread) + first);
	program(instance->thread);
}

/* ---- the handler ---- */

static void expire(struct soft_timer *timer, uint64_t now, const void *context)
{
	struct soft_instance *instance = timer->instance;
	struct perfring_soft_site site = {.context = context};
	/* Before is_active: who enables does so before start. */
	uint64_t due = PERFRING_LOAD_ORDERED(&timer->due), interval = interval_of(instance), intervals, next;

	if (!due || now < due)
		return;
	intervals = 1 + (now - due) / interval;
	next = due + intervals * interval;
	PERFRING_POINT(timer_due);
	if (!PERFRING_COMPARE_EXCHANGE(&timer->due, &due, next)) /* was stopped, and maybe started again */
		return;
	if (perfring_soft_is_active(instance->event))
		perfring_soft_tick_of_clock(instance, intervals, &site);
	PERFRING_POINT(timer_ticked);
	if (perfring_soft_is_active(instance->event))
		return;
	/* event_limit ended it, which has no lock to stop timers.  Then looks again: partner is resume, behind enable. */
	if (PERFRING_COMPARE_EXCHANGE(&timer->due, &next, 0) && perfring_soft_is_active(instance->event))
		start(timer);
}

/* Apart from on_signal, which needs little stack to find that there is none. */
static __attribute__((noinline)) void expire_all(struct soft_thread *thread, const void *context)
{
	struct soft_timer *timer;
	int saved = errno;
	uint64_t before, now;

	before = perfring_soft_enter(thread); /* delete waits for us */
	PERFRING_POINT(timer_found);
	now = perfring_soft_thread_time(thread);
	for (timer = first_of(thread); timer; timer = PERFRING_LOAD_ACQUIRE(&timer->next))
		expire(timer, now, context);
	program(thread);
	perfring_soft_exit(thread, before);
	errno = saved;
}

static void on_signal(int number, siginfo_t *from, void *context)
{
	struct soft_thread *thread = perfring_soft_self;

	(void)number;
	/* Nobody handled the signal before us, so what is not a timer's is nobody's.  A thread that takes no part has no
	 * timer: this was on its way when it left. */
	if (from->si_code == SI_TIMER && thread && PERFRING_LOAD_ACQUIRE(&thread->has_timer) &&
	    perfring_soft_stack_fits(thread, &((const ucontext_t *)context)->uc_stack))
		expire_all(thread, context);
}

/* ---- the signal ---- */

/* Takes a signal that nobody handles.  One that is blocked here may well be somebody's, for sigwait or a signalfd: those
 * only when there is no other.  The middle of the range first: most programs that want one begin at an end. */
static int take_signal(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, old;
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	int k, number, count = SIGRTMAX - SIGRTMIN + 1;

	ours.sa_sigaction = on_signal;
	/* A handler that came on top of ours might leave by longjmp, and who waits for a grace period would wait for ever. */
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&ours.sa_mask, synchronous[i]);
	for (k = 0; k < 2 * count; k++) {
		number = SIGRTMIN + (k + count / 2) % count;
		if (sigismember(&perfring_soft_lock_signals, number) != (k >= count))
			continue;
		if (sigaction(number, NULL, &old) < 0 || old.sa_handler != SIG_DFL)
			continue;
		if (sigaction(number, &ours, &old) < 0)
			continue;
		if (old.sa_handler == SIG_DFL) {
			PERFRING_STORE(&signal_number, number); /* no order: just a number */
			return 0;
		}
		sigaction(number, &old, NULL); /* somebody was faster */
	}
	return -EBUSY;
}

/* Still ours?  A program that has put its own handler there since would get signals that it does not know. */
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

/* Unseen, by SYS_exit: it needs no timer any more. */
static bool has_ended(const struct soft_thread *thread)
{
	int saved = errno;
	bool ended = syscall(SYS_tgkill, getpid(), thread->tid, 0) < 0 && errno == ESRCH;

	errno = saved;
	return ended;
}

/* perfring_soft_lock.  1: the thread has ended unseen. */
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
		return has_ended(thread) ? 1 : -errno; /* -EAGAIN: RLIMIT_SIGPENDING */
	PERFRING_STORE_RELEASE(&thread->has_timer, true); /* after `timer`, which the handler programs: partner is on_signal */
	return 0;
}

int perfring_soft_timer_make(struct soft_instance *instance)
{
	struct soft_thread *thread = instance->thread;
	struct soft_timer *timer;
	int r;

	r = create(thread);
	if (r)
		return r < 0 ? r : 0;
	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return -ENOMEM;
	timer->instance = instance;
	timer->link = (struct soft_timer **)&thread->clocks;
	timer->next = *timer->link;
	if (timer->next)
		timer->next->link = &timer->next;
	PERFRING_STORE_RELEASE(timer->link, timer); /* partner: first_of */
	instance->timer = timer;
	return 0;
}

/* Inherited over a fork: the kernel has no such timer, or another one of that name. */
static bool is_foreign(const struct soft_instance *instance)
{
	return instance->event->inert || instance->thread->pid != (uint32_t)getpid();
}

void perfring_soft_timer_start(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;

	if (timer && !is_foreign(instance))
		start(timer);
}

void perfring_soft_timer_resume(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;

	if (timer && !PERFRING_LOAD_ORDERED(&timer->due)) /* partner: the handler's swap, in expire */
		perfring_soft_timer_start(instance);
}

/* The rest of the interval that runs is kept; below 0, it has ended and was not sampled yet. */
void perfring_soft_timer_stop(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;
	uint64_t due;

	if (!timer || is_foreign(instance))
		return;
	due = PERFRING_EXCHANGE(&timer->due, 0);
	if (!due)
		return; /* the rest stays what it was; 0 if its handler has stopped it */
	program(instance->thread);
	PERFRING_STORE(&instance->left, due - perfring_soft_thread_time(instance->thread));
}

/* Out of the instance and the thread's list: no handler that comes now finds it.  In front of those taken out before. */
static struct soft_timer *take_out(struct soft_instance *instance, struct soft_timer *gone)
{
	struct soft_timer *timer = instance ? instance->timer : NULL;
	sigset_t signals;

	if (!timer)
		return gone;
	timer->gone = gone;
	if (is_foreign(instance)) { /* its list was forgotten */
		instance->timer = NULL;
		return timer;
	}
	perfring_soft_switch_take(&signals); /* who enables looks at the clocks of all threads */
	perfring_soft_timer_stop(instance);
	instance->timer = NULL;
	if (timer->next)
		timer->next->link = timer->link;
	PERFRING_STORE(timer->link, timer->next); /* no order: what is behind it was published before */
	perfring_soft_switch_give(&signals);
	return timer;
}

static void free_all(struct soft_timer *gone)
{
	struct soft_timer *timer;
	bool waits = false;

	/* In its own thread no handler can be in it now. */
	for (timer = gone; timer; timer = timer->gone)
		waits |= !is_foreign(timer->instance) &&
			 (!perfring_soft_self || timer->instance->thread != perfring_soft_self);
	PERFRING_POINT(timer_unlinked);
	if (waits)
		perfring_soft_grace();
	for (; gone; gone = timer) {
		timer = gone->gone;
		free(gone);
	}
}

void perfring_soft_timer_delete(struct soft_instance *instance)
{
	free_all(take_out(instance, NULL));
}

void perfring_soft_timers_delete(struct perfring_soft_event *event)
{
	struct soft_timer *gone = NULL;

	for (uint32_t i = 0; i < event->threads; i++)
		gone = take_out(event->instances[i], gone);
	free_all(gone);
}

void perfring_soft_timer_end(struct soft_thread *thread)
{
	const struct timespec none = {0, 0};
	struct sigaction now;
	sigset_t pending;
	int saved = errno;

	if (!thread->has_timer)
		return;
	thread->has_timer = false;
	timer_delete(thread->timer);
	/* What it has queued waits for as long as the thread blocks the signal.  Not what would be for another handler. */
	if (!sigaction(signal_number, NULL, &now) && now.sa_sigaction == on_signal) {
		sigemptyset(&pending);
		sigaddset(&pending, signal_number);
		while (sigtimedwait(&pending, NULL, &none) > 0)
			;
	}
	errno = saved;
}

/* cpu-clock counts wall time only while its task runs (docs/abi.md 9.4), and that is what task-clock counts. */
uint64_t perfring_soft_clock_count(struct soft_instance *instance)
{
	return perfring_soft_time_enabled(instance);
}
