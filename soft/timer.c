/* timer.c - the clocks' timers, one for each sampling clock in each thread, and the signal that they send.
 *
 * The clocks are ABI.md 9.4's.  cpu-clock's timer runs on CLOCK_MONOTONIC: it goes off while its thread sleeps too, whose
 * system call then restarts or ends as under any handler; such a tick gives no sample (slept).  task-clock's runs on the
 * CPU clock of its thread: it goes off only where the thread runs, so it disturbs no sleeper, but the kernel looks at such
 * timers in its tick alone.
 *
 *     one thread that burns CPU (6.18, CONFIG_HZ 250), signals per second for an interval of
 *                                  10 ms    1 ms    250 us    100 us
 *     CLOCK_THREAD_CPUTIME_ID         99.6   250       250       250
 *     CLOCK_MONOTONIC                100.0  1000      4000     10000
 *
 * So a task-clock gives at most CONFIG_HZ samples per second of CPU time.  The intervals that it misses are in its samples'
 * periods, which add up to the CPU time: the kernel's own task-clock, with a timer of high resolution, misses nearly none.
 * What a cpu-clock misses is skipped, as there: the thread was off the processor.
 * A monotonic timer for a thread that runs would be finer, but a thread cannot disarm it before it falls asleep, and
 * nanosleep and poll do not restart.
 *
 * The signal carries a number that is never used twice.  Its handler looks it up among its own thread's timers, so what was
 * queued when a timer was deleted finds nothing (newer kernels drop it themselves).
 *
 *     at a thread's end   it deletes its timers itself.  One that ends unseen (SYS_exit) leaves timers that find no thread.
 *     fork                timers are not inherited, but their kernel's names are given out anew: the child only frees.
 *     exec                the kernel deletes the timers and what they have queued, before the signal means death again.
 *
 * The handler stays: a signal may still be on its way when the last clock is gone.
 *
 * It runs on the stack that it interrupts (no SA_ONSTACK), which is the thread's own nearly always.  An alternate stack is
 * often of 4096 or 8192 bytes, and below it lies anything; the kernel's frame alone takes 3 KB of it where there is
 * AVX-512.  Over a handler that stands there we are there too, and a tick that has no room is missed.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "own.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	SECOND = 1000000000,
	LEAST = 10000, /* ns: the shortest interval */
	AWAKE = 10,    /* who ran for less than this part of an interval was asleep */
	/* Bytes of stack below the kernel's frame: with READ, a chain and registers a first tick, whose calls the dynamic
	 * linker resolves, was measured to use 8536, a later one 6056. */
	ROOM = 10240,
};

struct soft_timer {
	struct soft_timer *next, **link; /* the thread's; perfring_soft_lock.  Its handlers walk `next` */
	struct soft_timer *gone;         /* the next to be deleted */
	struct soft_instance *instance;
	uintptr_t number; /* what the signal carries */
	timer_t kernel;
	uint64_t ran;   /* CPU time of the thread at the last tick; cpu-clock's */
	pid_t pid;      /* that made it */
	uint32_t state; /* STARTED, and above it how often it was changed */
};

enum {
	STARTED = 1,
	CHANGE = 2,
};

/* perfring_soft_lock, but for perfring_soft_signal. */
static int signal_number;
static uintptr_t last_number;

int perfring_soft_signal(void)
{
	return PERFRING_LOAD(&signal_number); /* set once */
}

static uint64_t interval_of(const struct soft_instance *instance)
{
	uint64_t period = PERFRING_LOAD(&instance->period); /* no order: set_period starts the timer again */

	return period < LEAST ? LEAST : period;
}

static void settime(const struct soft_timer *timer, uint64_t first, uint64_t interval)
{
	struct itimerspec spec = {
		{(time_t)(interval / SECOND), (long)(interval % SECOND)},
		{(time_t)(first / SECOND), (long)(first % SECOND)},
	};

	timer_settime(timer->kernel, 0, &spec, NULL); /* fails for a thread that has ended unseen */
}

/* Does it go off while its thread sleeps? */
static bool is_cpu_clock(const struct soft_instance *instance)
{
	return instance->event->attr.config == PERF_COUNT_SW_CPU_CLOCK;
}

static uint64_t cpu_time(clockid_t clock)
{
	struct timespec time = {0, 0};

	clock_gettime(clock, &time); /* fails for a thread that has ended unseen */
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Changes the state from what the caller has seen, and the kernel's timer with it; false: it is another already, and so
 * somebody else's to program.  The thread's handler and others may be here at a time, none waits: who finds another state
 * behind him than he programmed programs again, so the last of all programs the last state. */
static bool change(struct soft_timer *timer, uint32_t seen, uint32_t started)
{
	struct soft_instance *instance = timer->instance;
	uint32_t state = ((seen & ~(uint32_t)STARTED) + CHANGE) | started;
	uint64_t interval, first;
	int64_t left;

	if (!PERFRING_SWAP(&timer->state, &seen, state))
		return false;
	do {
		state = PERFRING_LOAD_ORDERED(&timer->state);
		PERFRING_POINT(timer_changes);
		if (state & STARTED) {
			interval = interval_of(instance);
			left = (int64_t)PERFRING_LOAD(&instance->left);
			PERFRING_STORE(&instance->left, 0);
			first = left < 0 ? LEAST : left > 0 ? (uint64_t)left : interval;
			/* What is gone of the interval, it ran.  No order: an estimate. */
			if (is_cpu_clock(instance))
				PERFRING_STORE(&timer->ran, cpu_time(instance->thread->clock) - (interval - first));
			settime(timer, first, interval);
		} else {
			settime(timer, 0, 0);
		}
	} while (PERFRING_LOAD_ORDERED(&timer->state) != state);
	return true;
}

static void start(struct soft_timer *timer)
{
	while (!change(timer, PERFRING_LOAD(&timer->state), STARTED)) /* no order: the swap says whether it was old */
		;
}

/* ---- the handler ---- */

static struct soft_timer *find(const struct soft_thread *thread, uintptr_t number)
{
	/* Acquire: partner is the release in make, which another thread may have done. */
	struct soft_timer *timer = PERFRING_LOAD_ACQUIRE((struct soft_timer *const *)&thread->timers);

	while (timer && timer->number != number)
		timer = PERFRING_LOAD_ACQUIRE(&timer->next);
	return timer;
}

/* Has the thread slept since the last tick?  One that is preempted runs before it is hit, and so has not. */
static bool slept(struct soft_timer *timer)
{
	uint64_t now = cpu_time(CLOCK_THREAD_CPUTIME_ID);
	int64_t ran = (int64_t)(now - PERFRING_LOAD(&timer->ran));

	PERFRING_STORE(&timer->ran, now);
	return ran < (int64_t)(interval_of(timer->instance) / AWAKE);
}

static void expire(struct soft_timer *timer, uint64_t missed, const void *context)
{
	struct soft_instance *instance = timer->instance;
	struct perfring_soft_site site = {.context = context};
	uint32_t state = PERFRING_LOAD_ORDERED(&timer->state); /* before is_active: who enables does so before start */

	if (!(state & STARTED))
		return; /* was on its way when it was stopped */
	if (is_cpu_clock(instance) && slept(timer))
		PERFRING_POINT(timer_slept);
	else if (perfring_soft_is_active(instance->event))
		perfring_soft_tick_of_clock(instance, 1 + (is_cpu_clock(instance) ? 0 : missed), &site);
	PERFRING_POINT(timer_ticked);
	if (perfring_soft_is_active(instance->event))
		return;
	/* event_limit ended it, which has no lock to stop timers.  Then looks again: partner is resume, behind enable. */
	if (change(timer, state, 0) && perfring_soft_is_active(instance->event))
		start(timer);
}

/* Below us, in the alternate stack or else in the thread's own: on others (coroutines') nobody knows. */
static bool has_room(const struct soft_thread *thread, const stack_t *alternate)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)alternate->ss_sp;

	if (alternate->ss_flags & SS_DISABLE || here - low >= alternate->ss_size)
		low = thread->stack_low;
	return here - low >= ROOM;
}

/* Apart from on_signal: even the first errno, which the dynamic linker resolves, takes 3 KB of stack. */
static __attribute__((noinline)) void find_and_expire(const struct soft_thread *thread, const siginfo_t *from,
						      const void *context)
{
	struct soft_timer *timer;
	int saved = errno;

	perfring_soft_read_lock(); /* delete waits for us */
	timer = find(thread, (uintptr_t)from->si_value.sival_ptr);
	PERFRING_POINT(timer_found);
	if (timer)
		expire(timer, from->si_overrun > 0 ? (uint64_t)from->si_overrun : 0, context);
	perfring_soft_read_unlock();
	errno = saved;
}

static void on_signal(int number, siginfo_t *from, void *context)
{
	const struct soft_thread *thread = perfring_soft_self;

	(void)number;
	/* Nobody handled the signal before us, so what is not a timer's is nobody's.  A thread that takes no part has no
	 * timers: this was on its way when it left. */
	if (from->si_code == SI_TIMER && thread && !PERFRING_LOAD(&thread->ends) &&
	    has_room(thread, &((const ucontext_t *)context)->uc_stack))
		find_and_expire(thread, from, context);
}

/* ---- the signal ---- */

/* Takes a signal that nobody handles.  One that is blocked here may well be somebody's, for sigwait or a signalfd: those
 * only when there is no other.  The middle of the range first: most programs that want one begin at an end. */
static int take_signal(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART}, old;
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	sigset_t blocked;
	int k, number, count = SIGRTMAX - SIGRTMIN + 1;

	ours.sa_sigaction = on_signal;
	/* A handler that came on top of ours might leave by longjmp, and who waits for a grace period would wait for ever. */
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&ours.sa_mask, synchronous[i]);
	sigemptyset(&blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (k = 0; k < 2 * count; k++) {
		number = SIGRTMIN + (k + count / 2) % count;
		if (sigismember(&blocked, number) != (k >= count))
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

int perfring_soft_timer_make(struct soft_instance *instance)
{
	struct soft_thread *thread = instance->thread;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID};
	clockid_t clock = CLOCK_MONOTONIC;
	struct soft_timer *timer;
	int r;

	r = check_signal();
	if (r < 0)
		return r;
	if (instance->event->attr.config == PERF_COUNT_SW_TASK_CLOCK)
		clock = thread->clock; /* not ours: its */
	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return -ENOMEM;
	timer->instance = instance;
	timer->number = ++last_number;
	timer->pid = getpid();
	event.sigev_signo = signal_number;
	event.sigev_value.sival_ptr = (void *)timer->number;
	event.sigev_notify_thread_id = (pid_t)thread->tid;
	if (timer_create(clock, &event, &timer->kernel) < 0) {
		r = has_ended(thread) ? 0 : -errno; /* -EAGAIN: RLIMIT_SIGPENDING */
		free(timer);
		return r;
	}
	timer->link = (struct soft_timer **)&thread->timers;
	timer->next = *timer->link;
	if (timer->next)
		timer->next->link = &timer->next;
	PERFRING_STORE_RELEASE(timer->link, timer); /* partner: find */
	instance->timer = timer;
	return 0;
}

/* Inherited over a fork: the kernel has no such timer, or another one of that name. */
static bool is_foreign(const struct soft_timer *timer)
{
	return timer->pid != getpid();
}

void perfring_soft_timer_start(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;

	if (!timer || is_foreign(timer))
		return;
	start(timer);
}

void perfring_soft_timer_resume(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;

	if (timer && !(PERFRING_LOAD_ORDERED(&timer->state) & STARTED)) /* partner: the handler's swap, in change */
		perfring_soft_timer_start(instance);
}

void perfring_soft_timer_stop(struct soft_instance *instance)
{
	struct soft_timer *timer = instance->timer;
	struct itimerspec rest;
	uint32_t state;

	if (!timer || is_foreign(timer))
		return;
	do {
		state = PERFRING_LOAD(&timer->state); /* no order: as in start */
		if (!(state & STARTED))
			return; /* the rest stays what it was; 0 if its handler has stopped it */
		if (timer_gettime(timer->kernel, &rest) < 0)
			rest = (struct itimerspec){0};
	} while (!change(timer, state, 0));
	PERFRING_STORE(&instance->left, (uint64_t)rest.it_value.tv_sec * SECOND + (uint64_t)rest.it_value.tv_nsec);
}

/* Out of the instance and the thread's list: no handler that comes now finds it.  In front of those taken out before. */
static struct soft_timer *take_out(struct soft_instance *instance, struct soft_timer *gone)
{
	struct soft_timer *timer = instance ? instance->timer : NULL;
	sigset_t signals;

	if (!timer)
		return gone;
	perfring_soft_switch_take(&signals); /* who enables looks at the timers of all threads */
	perfring_soft_timer_stop(instance);
	instance->timer = NULL;
	perfring_soft_switch_give(&signals);
	timer->gone = gone;
	if (is_foreign(timer))
		return timer;
	if (timer->next)
		timer->next->link = timer->link;
	PERFRING_STORE(timer->link, timer->next); /* no order: what is behind it was published before */
	return timer;
}

static void delete_all(struct soft_timer *gone)
{
	struct soft_timer *timer;
	bool waits = false;

	/* In its own thread no handler can be in it now. */
	for (timer = gone; timer; timer = timer->gone)
		waits |= !is_foreign(timer) && (!perfring_soft_self || timer->instance->thread != perfring_soft_self);
	PERFRING_POINT(timer_unlinked);
	if (waits)
		perfring_soft_grace();
	for (; gone; gone = timer) {
		timer = gone->gone;
		/* Not before: a handler that was still in it would have programmed whoever gets the name next. */
		if (!is_foreign(gone))
			timer_delete(gone->kernel);
		free(gone);
	}
}

void perfring_soft_timer_delete(struct soft_instance *instance)
{
	delete_all(take_out(instance, NULL));
}

void perfring_soft_timers_delete(struct perfring_soft_event *event)
{
	struct soft_timer *gone = NULL;

	for (uint32_t i = 0; i < event->threads; i++)
		gone = take_out(event->instances[i], gone);
	delete_all(gone);
}

/* cpu-clock counts wall time only while its task runs (ABI.md 9.4), and that is what task-clock counts. */
uint64_t perfring_soft_clock_count(struct soft_instance *instance)
{
	return perfring_soft_time_enabled(instance);
}
