/* soft_clock_test.c - clocks that sample: real timers, real signals. */
#include "test.h"

/* Every named place of soft/timer.c, which is compiled here for that. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "clocks.h"
#include "machine.h"
#include "signal_frame.h"
#include "soft/timer.c"

TestSuite(soft_clock, .timeout = 60);

/* The thread sanitizer keeps one signal of a number until it has time for it, and no system call is that. */
#define SIGNALS_WAIT IS_THREAD_SANITIZED
#define NEEDS_SIGNALS_AT_ONCE() \
	do { \
		if (SIGNALS_WAIT) \
			cr_skip_test("SKIP-ENV: the thread sanitizer runs handlers later, and on another stack"); \
	} while (0)

/* The address sanitizer's frames are several times as large: nothing fits into 8 KB. */
#define LARGE_FRAMES IS_ADDRESS_SANITIZED

enum {
	MS = 1000000, /* ns */
};

static __thread volatile uint64_t found, ticked; /* signals in this thread that came, intervals that ended */
static __thread void (*struck)(const char *name);

static void strike(const char *name)
{
	if (perfring__soft_self && perfring__soft_self->tid != (uint32_t)syscall(SYS_gettid))
		abort();
	if (strcmp(name, "timer_found") == 0)
		found++;
	if (strcmp(name, "timer_ticked") == 0)
		ticked++;
	if (struck)
		struck(name);
}

/* 0, or how the system call ended. */
static int doze(uint64_t ns)
{
	struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	return nanosleep(&time, NULL) < 0 ? errno : 0;
}

static struct perf_event_attr attr_of(uint64_t clock, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = clock, .disabled = 1};

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
	return attr;
}

struct told {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t period;
};

static uint64_t drained; /* the sum of the last drain's periods */

/* A clock with a ring of 128 pages for each thread. */
static struct perfring_soft_event *open_clock(uint64_t clock, uint64_t period, unsigned scope)
{
	struct perf_event_attr attr = attr_of(clock, period);
	struct perfring_soft_event *event = NULL;

	cr_assert_eq(perfring_soft_open(&event, &attr, scope, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 128, -1), 0);
	return event;
}

/* How many samples the thread's ring has; all of them are this process's and of `period`, or of several: the kernel's tick
 * is rarer. */
static uint64_t drain(struct perfring_soft_event *event, uint32_t tid, uint64_t period)
{
	struct perfring_set_ring *member = NULL;
	const struct perf_event_header *record;
	const struct told *told;
	uint64_t count = 0;

	drained = 0;
	while ((member = perfring_set_next(perfring_soft_rings(event), member)) != NULL) {
		if (member->tid != tid)
			continue;
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			told = (const void *)record;
			cr_assert_geq(record->size, sizeof(*told));
			cr_assert_eq(told->pid, (uint32_t)getpid());
			cr_assert_eq(told->tid, tid);
			cr_assert(told->period && told->period % period == 0);
			drained += told->period;
			count++;
		}
		perfring_reader_return(&member->reader);
	}
	return count;
}

static uint32_t self(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static struct soft_instance *instance_of(struct perfring_soft_event *event)
{
	return event->instances[perfring__soft_self->index];
}

static void block(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, perfring_soft_signal());
	pthread_sigmask(how, &set, NULL);
}

/* A timer's signal, as a kernel may deliver it that is slower. */
static void send_signal(int code)
{
	siginfo_t from;

	memset(&from, 0, sizeof(from));
	from.si_signo = perfring_soft_signal();
	from.si_code = code;
	cr_assert_eq(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), from.si_signo, &from), 0);
	if (SIGNALS_WAIT)
		doze(1);
}

/* The thread's timer, which is that of all its clocks. */
static struct itimerspec timer_now(void)
{
	struct itimerspec spec;

	cr_assert_eq(timer_gettime(perfring__soft_self->timer, &spec), 0);
	return spec;
}

static uint64_t timer_left(void)
{
	struct itimerspec spec = timer_now();

	return (uint64_t)spec.it_value.tv_sec * 1000000000 + (uint64_t)spec.it_value.tv_nsec;
}

static const uint64_t clocks[] = {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK};

/* ---- how many ---- */

Test(soft_clock, samples_cpu_time)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], 10 * MS, PERFRING_SOFT_THREAD);
		uint64_t begin, ns, samples;

		burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
		cr_assert_eq(drain(event, self(), 10 * MS), 0); /* disabled */
		begin = now_of(CLOCK_THREAD_CPUTIME_ID);
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_TICKS, 500 * MS);
		perfring_soft_disable(event, false);
		ns = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
		samples = drain(event, self(), 10 * MS);
		cr_assert_leq(samples, ns / (10 * MS), "%lu in %lu ns", samples, ns);
		cr_assert_geq(samples, 20, "%lu in %lu ns", samples, ns); /* the ticks of CONFIG_HZ=100 suffice */
		burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
		cr_assert_eq(drain(event, self(), 10 * MS), 0);
		perfring_soft_close(event);
	}
}

/* The kernel looks at it in its tick alone, every 4 ms here: what goes by between is in the periods.  This ends behind a
 * tick. */
Test(soft_clock, counts_what_it_misses)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], MS / 4, PERFRING_SOFT_THREAD);
		uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID), ns, samples;

		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_TICKS, 500 * MS);
		perfring_soft_disable(event, false);
		ns = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
		samples = drain(event, self(), MS / 4);
		cr_assert_geq(samples, 20, "%lu in %lu ns", samples, ns);
		cr_assert_leq(drained, ns, "%lu of %lu ns", drained, ns);
		cr_assert_geq(drained, ns - 25 * MS, "%lu of %lu ns", drained,
			      ns); /* two ticks of CONFIG_HZ=100, and a bit */
		perfring_soft_close(event);
	}
}

/* Several clocks of a thread have one timer, which goes off for the one that is due next. */
Test(soft_clock, one_timer_serves_all)
{
	static const uint64_t periods[] = {10 * MS, 35 * MS, 100 * MS, 100000 * (uint64_t)MS};
	struct perfring_soft_event *events[4];
	uint64_t begin, ns, samples;
	timer_t timer;

	for (unsigned i = 0; i < 4; i++)
		events[i] = open_clock(clocks[i % 2], periods[i], PERFRING_SOFT_THREAD);
	timer = perfring__soft_self->timer;
	cr_assert_eq(timer_left(), 0);
	begin = now_of(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 4; i--;) {
		perfring_soft_enable(events[i], false);
		ns = timer_left();
		cr_assert(ns && ns <= periods[i], "%lu", ns);
	}
	burn_by(CLOCK_THREAD_CPUTIME_ID, 500 * MS);
	burn_by(CLOCK_THREAD_TICKS, 50 * MS); /* to behind a tick */
	cr_assert_eq(perfring__soft_self->timer, timer);
	for (unsigned i = 0; i < 4; i++)
		perfring_soft_disable(events[i], false);
	cr_assert_eq(timer_left(), 0);
	ns = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
	for (unsigned i = 0; i < 4; i++) {
		samples = drain(events[i], self(), periods[i]);
		cr_assert_leq(drained, ns);
		cr_assert_geq(drained + periods[i] + 25 * MS, i < 3 ? ns : 0, "%u: %lu of %lu", i, drained, ns);
		if (i == 2)
			cr_assert(samples >= 4 && samples <= ns / periods[2], "%lu", samples);
		perfring_soft_close(events[i]);
	}
}

Test(soft_clock, no_interval_is_below_10_us)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, 1, PERFRING_SOFT_THREAD);
	uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID), due;

	perfring_soft_enable(event, false);
	due = instance_of(event)->due;
	cr_assert_geq(due, begin + 10000);
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_eq((instance_of(event)->due - due) % 10000, 0);
	cr_assert(ticked > 0 && ticked <= 60, "%lu", ticked); /* CONFIG_HZ=1000 at most */
	perfring_soft_close(event);
}

Test(soft_clock, a_frequency_is_a_period)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK, 0);
	struct perfring_soft_event *event;
	uint64_t left;

	attr.freq = 1;
	attr.sample_freq = 800; /* 1.25 ms */
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 8, -1), 0);
	perfring_soft_enable(event, false);
	left = timer_left();
	cr_assert(left > MS && left <= 1250000, "%lu", left);
	burn_by(CLOCK_THREAD_TICKS, 100 * MS);
	cr_assert_gt(drain(event, self(), 1250000), 0);
	perfring_soft_close(event);
}

Test(soft_clock, a_period_is_changed)
{
	struct perfring_soft_event *event =
		open_clock(PERF_COUNT_SW_CPU_CLOCK, 100000 * (uint64_t)MS, PERFRING_SOFT_THREAD);
	uint64_t before;

	perfring_soft_enable(event, false);
	burn_by(CLOCK_MONOTONIC, 20 * MS);
	cr_assert_eq(ticked, 0);
	cr_assert_eq(perfring_soft_set_period(event, MS), 0);
	burn_by(CLOCK_THREAD_TICKS, 200 * MS);
	cr_assert_geq(ticked, 10);
	cr_assert_eq(perfring_soft_set_period(event, 100000 * (uint64_t)MS), 0);
	burn_by(CLOCK_MONOTONIC, 20 * MS);
	before = ticked;
	burn_by(CLOCK_MONOTONIC, 100 * MS);
	cr_assert_eq(ticked, before);
	perfring_soft_close(event);
}

/* What is kept is what was not yet run off, and the next start begins with it. */
Test(soft_clock, a_stop_keeps_the_rest)
{
	const uint64_t period = 10000 * (uint64_t)MS;

	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], period, PERFRING_SOFT_THREAD);
		uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID), ns, left;

		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 50 * MS);
		perfring_soft_disable(event, false);
		ns = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
		left = instance_of(event)->left;
		cr_assert_leq(left, period - 50 * MS, "%lu", left);
		cr_assert_geq(left + ns, period, "%lu after %lu ns", left, ns);
		cr_assert_eq(timer_left(), 0);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
		perfring_soft_enable(event, false);
		ns = timer_left();
		cr_assert_leq(ns, left);
		cr_assert_gt(ns + 5000 * (uint64_t)MS, left, "%lu of %lu", ns, left);
		perfring_soft_disable(event, false);
		instance_of(event)->left = (uint64_t)-5;
		perfring_soft_enable(event, false); /* in 10 us */
		burn_by(CLOCK_THREAD_TICKS, 50 * MS);
		cr_assert_eq(drain(event, self(), period), 1);
		perfring_soft_close(event);
	}
}

/* ---- whom it disturbs ---- */

static void *burn_a_second(void *said)
{
	(void)said;
	cr_assert_eq(perfring_soft_join(), 0);
	burn_by(CLOCK_MONOTONIC, 1000 * (uint64_t)MS);
	return NULL;
}

static int poll_for(int ms)
{
	struct pollfd none = {.fd = -1};

	return poll(&none, 1, ms) < 0 ? errno : 0;
}

static int wait_for_a_signal(int ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * (long)MS};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	return sigtimedwait(&signals, NULL, &time) < 0 && errno == EAGAIN ? 0 : errno;
}

/* Calls that a handler would end, whatever SA_RESTART is. */
Test(soft_clock, lets_sleepers_sleep)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], MS, PERFRING_SOFT_PROCESS);
		pthread_t thread;
		uint64_t before, begin, awake;

		perfring_soft_enable(event, false);
		cr_assert_eq(pthread_create(&thread, NULL, burn_a_second, NULL), 0);
		burn_by(CLOCK_THREAD_TICKS, 50 * MS);
		cr_assert(found > 0 || SIGNALS_WAIT);
		begin = now_of(CLOCK_THREAD_CPUTIME_ID);
		before = found;
		cr_assert_eq(doze(300 * MS), 0);
		cr_assert_eq(poll_for(300), 0);
		cr_assert_eq(wait_for_a_signal(300), 0);
		for (unsigned k = 0; k < 100; k++)
			cr_assert_eq(doze(MS), 0);
		awake = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
		cr_assert_leq(found, before + awake / MS + 2, "%lu in %lu ns", found - before, awake);
		cr_assert_lt(awake, 300 * MS);
		pthread_join(thread, NULL);
		perfring_soft_close(event);
	}
}

struct burner {
	pthread_t thread;
	uint32_t tid;
	uint64_t ticked; /* and sampled */
};

static void *burn_and_tell(void *said)
{
	struct burner *burner = said;

	cr_assert_eq(perfring_soft_join(), 0);
	burner->tid = self();
	burn_by(CLOCK_THREAD_TICKS, 150 * MS);
	perfring_soft_leave();
	burner->ticked = ticked;
	return NULL;
}

/* Each handler counts in its own thread: as many as its ring has samples, and strike looks whose handler it is. */
Test(soft_clock, each_timer_hits_its_own_thread)
{
	struct burner burners[4];

	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], MS, PERFRING_SOFT_PROCESS);

		perfring_soft_enable(event, false);
		for (unsigned k = 0; k < 4; k++)
			cr_assert_eq(pthread_create(&burners[k].thread, NULL, burn_and_tell, &burners[k]), 0);
		for (unsigned k = 0; k < 4; k++)
			pthread_join(burners[k].thread, NULL);
		perfring_soft_disable(event, false);
		for (unsigned k = 0; k < 4; k++) {
			cr_assert_gt(burners[k].ticked, 3);
			cr_assert_eq(drain(event, burners[k].tid, MS), burners[k].ticked);
		}
		perfring_soft_close(event);
	}
}

/* A part of an interval that ran before a stop is not forgotten. */
Test(soft_clock, samples_who_is_stopped_often)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, 50 * MS, PERFRING_SOFT_THREAD);
	uint64_t end = now_of(CLOCK_THREAD_TICKS) + 360 * (uint64_t)MS;

	for (unsigned i = 0; i < 120 || now_of(CLOCK_THREAD_TICKS) < end; i++) {
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 3 * MS); /* less than the kernel's tick */
		perfring_soft_disable(event, false);
	}
	cr_assert_geq(drain(event, self(), 50 * MS), 6);
	perfring_soft_close(event);
}

/* ---- on which stack ---- */

enum {
	CANARY = 0xca,
};

static size_t spoilt(const unsigned char *bytes, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += bytes[i] != CANARY;
	return count;
}

static stack_t alternate_now(void)
{
	stack_t now;

	cr_assert_eq(sigaltstack(NULL, &now), 0);
	return now;
}

static void set_alternate(unsigned char *at, size_t size)
{
	stack_t alternate = {.ss_sp = at, .ss_size = size, .ss_flags = at ? 0 : SS_DISABLE};

	cr_assert_eq(sigaltstack(&alternate, NULL), 0);
}

static bool is_alternate(const unsigned char *at, size_t size)
{
	stack_t now = alternate_now();

	return !(now.ss_flags & SS_DISABLE) && now.ss_sp == at && now.ss_size == size;
}

static struct perfring_soft_event *open_with_chain(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK, MS);
	struct perfring_soft_event *event = NULL;

	attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 128, -1), 0);
	return event;
}

static uintptr_t stood_at;

static void look_where(const char *name)
{
	(void)name;
	stood_at = (uintptr_t)__builtin_frame_address(0);
}

static bool stood_on(const stack_t *stack)
{
	return stood_at - (uintptr_t)stack->ss_sp < stack->ss_size;
}

Test(soft_clock, ticks_stand_on_a_stack_of_their_own)
{
	struct perfring_soft_event *event;
	stack_t ours;

	NEEDS_SIGNALS_AT_ONCE();
	set_alternate(NULL, 0);
	event = open_with_chain();
	ours = alternate_now();
	cr_assert_not(ours.ss_flags & SS_DISABLE);
	perfring_soft_enable(event, false);
	struck = look_where;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	struck = NULL;
	cr_assert_gt(ticked, 0);
	cr_assert(stood_on(&ours));
	perfring_soft_close(event);
	cr_assert(is_alternate(ours.ss_sp, ours.ss_size));
	perfring_soft_leave();
	cr_assert(alternate_now().ss_flags & SS_DISABLE);
	cr_assert_eq(msync((unsigned char *)ours.ss_sp + ours.ss_size - 4096, 4096, MS_ASYNC), -1);
	cr_assert_eq(errno, ENOMEM); /* unmapped */
}

static struct {
	unsigned char before[65536], stack[65536], behind[4096];
} guarded __attribute__((aligned(4096)));

/* Set before the thread joined, or later: it stays, and carries the ticks. */
Test(soft_clock, the_programs_alternate_stack_stays)
{
	stack_t theirs = {.ss_sp = guarded.stack, .ss_size = sizeof(guarded.stack)};

	NEEDS_SIGNALS_AT_ONCE();
	for (unsigned later = 0; later < 2; later++) {
		struct perfring_soft_event *event;

		memset(&guarded, CANARY, sizeof(guarded));
		set_alternate(NULL, 0);
		if (!later)
			set_alternate(guarded.stack, sizeof(guarded.stack));
		event = open_with_chain();
		if (later)
			set_alternate(guarded.stack, sizeof(guarded.stack));
		cr_assert(is_alternate(guarded.stack, sizeof(guarded.stack)));
		perfring_soft_enable(event, false);
		ticked = 0;
		struck = look_where;
		burn_by(CLOCK_THREAD_TICKS, 50 * MS);
		struck = NULL;
		cr_assert_gt(ticked, 0);
		cr_assert(stood_on(&theirs));
		perfring_soft_close(event);
		perfring_soft_leave();
		cr_assert(is_alternate(guarded.stack, sizeof(guarded.stack)));
		cr_assert_eq(spoilt(guarded.before, sizeof(guarded.before)), 0);
		cr_assert_eq(spoilt(guarded.behind, sizeof(guarded.behind)), 0);
	}
	set_alternate(NULL, 0);
}

/* The kernel's frame fits, a tick does not: it is missed, and nothing below is written. */
Test(soft_clock, a_tick_without_space_is_missed)
{
	size_t size = signal_frame_size() + 2048;
	struct perfring_soft_event *event;

	NEEDS_SIGNALS_AT_ONCE();
	memset(&guarded, CANARY, sizeof(guarded));
	event = open_with_chain();
	set_alternate(guarded.stack, size);
	perfring_soft_enable(event, false);
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_eq(ticked, 0);
	cr_assert(is_alternate(guarded.stack, size));
	cr_assert_eq(spoilt(guarded.before, sizeof(guarded.before)), 0);
	set_alternate(NULL, 0);
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_gt(ticked, 0); /* on the thread's own */
	perfring_soft_close(event);
}

/* ---- coroutines ---- */

static struct {
	unsigned char before[65536], stack[8192], behind[4096];
} coroutine __attribute__((aligned(4096)));

static ucontext_t to_main, to_coroutine;
static uint64_t coroutine_ticks;

static void run_coroutine(void)
{
	coroutine_ticks = ticked;
	burn_by(CLOCK_THREAD_TICKS, 200 * MS);
	coroutine_ticks = ticked - coroutine_ticks;
}

static void enter_coroutine(void)
{
	memset(&coroutine, CANARY, sizeof(coroutine));
	cr_assert_eq(getcontext(&to_coroutine), 0);
	to_coroutine.uc_stack.ss_sp = coroutine.stack;
	to_coroutine.uc_stack.ss_size = sizeof(coroutine.stack);
	to_coroutine.uc_link = &to_main;
	makecontext(&to_coroutine, run_coroutine, 0);
	cr_assert_eq(swapcontext(&to_main, &to_coroutine), 0);
	cr_assert_eq(spoilt(coroutine.before, sizeof(coroutine.before)), 0);
	cr_assert_eq(spoilt(coroutine.behind, sizeof(coroutine.behind)), 0);
	/* Nor what it has not used of its own: no frame of the kernel's fits below it. */
	if (!LARGE_FRAMES && !SIGNALS_WAIT)
		cr_assert_eq(spoilt(coroutine.stack, 5120), 0);
}

Test(soft_clock, coroutines_stacks_are_not_touched)
{
	struct perfring_soft_event *event = open_with_chain();

	NEEDS_SIGNALS_AT_ONCE();
	perfring_soft_enable(event, false);
	enter_coroutine();
	cr_assert_gt(coroutine_ticks, SIGNALS_WAIT ? 0 : 10);
	cr_assert_eq(drain(event, self(), MS), ticked);
	perfring_soft_close(event);
}

static sigjmp_buf back;
static uint64_t found_within;

static void jump_out(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void spin(int number)
{
	uint64_t before = ticked;

	(void)number;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	found_within = ticked - before;
}

static void handle_on_stack(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_flags = SA_ONSTACK};

	action.sa_handler = handler;
	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

/* From then on the kernel has none, and what a coroutine stands on is not known: ticks in it are missed. */
Test(soft_clock, a_handler_may_jump_off_it)
{
	struct perfring_soft_event *event;

	NEEDS_SIGNALS_AT_ONCE();
	set_alternate(NULL, 0);
	event = open_with_chain();
	perfring_soft_enable(event, false);
	handle_on_stack(SIGUSR1, spin);
	raise(SIGUSR1); /* on ours: ticks come on top of it */
	cr_assert_gt(found_within, SIGNALS_WAIT ? 0 : 2);
	handle_on_stack(SIGUSR2, jump_out);
	if (!sigsetjmp(back, 1))
		raise(SIGUSR2);
	cr_assert(alternate_now().ss_flags & SS_DISABLE);
	raise(SIGUSR1);
	cr_assert_gt(found_within, SIGNALS_WAIT ? 0 : 2);
	perfring_soft_leave();
	perfring_soft_close(event);
}

static void end_here(int number)
{
	(void)number;
	pthread_exit(NULL);
}

static void *end_on_it(void *said)
{
	cr_assert_eq(perfring_soft_join(), 0);
	raise(SIGUSR1);
	return said;
}

Test(soft_clock, a_thread_may_end_on_it)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_PROCESS);
	pthread_t thread;
	void *said;

	NEEDS_SIGNALS_AT_ONCE();
	perfring_soft_enable(event, false);
	handle_on_stack(SIGUSR1, end_here);
	cr_assert_eq(pthread_create(&thread, NULL, end_on_it, event), 0);
	cr_assert_eq(pthread_join(thread, &said), 0);
	cr_assert_null(said);
	perfring_soft_close(event);
}

Test(soft_clock, a_child_takes_over_its_stack)
{
	int status = -1;
	stack_t ours;
	pid_t child;

	NEEDS_SIGNALS_AT_ONCE();
	set_alternate(NULL, 0);
	cr_assert_eq(perfring_soft_join(), 0);
	ours = alternate_now();
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		struct perfring_soft_event *event = open_with_chain();

		ticked = 0;
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_TICKS, 50 * MS);
		if (!ticked || !is_alternate(ours.ss_sp, ours.ss_size))
			_exit(1);
		perfring_soft_close(event);
		perfring_soft_leave();
		_exit(alternate_now().ss_flags & SS_DISABLE ? 0 : 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	perfring_soft_leave();
}

/* ---- the signal ---- */

static void on_foreign(int number)
{
	(void)number;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_flags = SA_RESTART};

	action.sa_handler = handler;
	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

Test(soft_clock, takes_the_signal_that_nobody_handles)
{
	struct perfring_soft_event *event;
	struct sigaction action;
	sigset_t blocked;

	cr_assert_eq(perfring_soft_signal(), 0);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		if (number != SIGRTMIN + 3 && number != SIGRTMIN + 5)
			handle(number, number % 2 ? on_foreign : SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN + 3); /* for sigwait, it seems */
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_THREAD);
	cr_assert_eq(perfring_soft_signal(), SIGRTMIN + 5);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
		cr_assert_eq(sigaction(number, NULL, &action), 0);
		if (number == SIGRTMIN + 3)
			cr_assert_eq(action.sa_handler, SIG_DFL);
		else if (number == SIGRTMIN + 5)
			cr_assert_eq(action.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK),
				     SA_SIGINFO | SA_RESTART | SA_ONSTACK);
		else
			cr_assert_eq(action.sa_handler, number % 2 ? on_foreign : SIG_IGN);
	}
	perfring_soft_enable(event, false);
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_gt(ticked, 0);
	perfring_soft_close(event);
	cr_assert_eq(perfring_soft_signal(), SIGRTMIN + 5);
}

Test(soft_clock, takes_a_blocked_signal_when_there_is_no_other)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK, MS);
	struct perfring_soft_event *event = NULL;
	sigset_t blocked;

	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		handle(number, on_foreign);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -EBUSY);
	cr_assert_eq(perfring_soft_signal(), 0);
	handle(SIGRTMAX, SIG_DFL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMAX);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_signal(), SIGRTMAX);
	perfring_soft_close(event);
}

Test(soft_clock, refuses_when_the_signal_was_taken_away)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK, MS);
	struct perfring_soft_event *first, *second = NULL;

	cr_assert_eq(perfring_soft_open(&first, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	handle(perfring_soft_signal(), on_foreign);
	cr_assert_eq(perfring_soft_open(&second, &attr, PERFRING_SOFT_THREAD, NULL), -EBUSY);
	perfring_soft_close(first);
}

static volatile unsigned alarms, profs;

static void on_alarm(int number)
{
	if (number == SIGALRM)
		alarms++;
	else
		profs++;
}

Test(soft_clock, leaves_the_programs_timers_alone)
{
	struct itimerval each = {{0, 20000}, {0, 20000}}, now;
	uint64_t begin = now_of(CLOCK_THREAD_TICKS), most;
	struct perfring_soft_event *events[2];
	struct sigaction action;

	handle(SIGALRM, on_alarm);
	handle(SIGPROF, on_alarm);
	cr_assert_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_PROF, &each, NULL), 0);
	events[0] = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_PROCESS);
	events[1] = open_clock(PERF_COUNT_SW_TASK_CLOCK, 5 * MS, PERFRING_SOFT_PROCESS);
	perfring_soft_enable(events[0], false);
	perfring_soft_enable(events[1], false);
	burn_by(CLOCK_THREAD_TICKS, 400 * MS); /* 20 of each: ITIMER_PROF's clock is that of the ticks */
	cr_assert_gt(drain(events[0], self(), MS), 0);
	cr_assert_gt(drain(events[1], self(), 5 * MS), 0);
	perfring_soft_close(events[0]);
	perfring_soft_close(events[1]);
	cr_assert_geq(alarms, 15);
	most = (now_of(CLOCK_THREAD_TICKS) - begin) / (20 * MS) + 1;
	cr_assert(profs >= 10 && profs <= most, "%u of %lu", profs, most);
	cr_assert_eq(getitimer(ITIMER_PROF, &now), 0);
	cr_assert_eq(now.it_interval.tv_usec, 20000);
	cr_assert_eq(getitimer(ITIMER_REAL, &now), 0);
	cr_assert_eq(now.it_interval.tv_usec, 20000);
	cr_assert_eq(sigaction(SIGPROF, NULL, &action), 0);
	cr_assert_eq(action.sa_handler, on_alarm);
	each = (struct itimerval){0};
	setitimer(ITIMER_REAL, &each, NULL);
	setitimer(ITIMER_PROF, &each, NULL);
}

static void spoil_errno(const char *name)
{
	(void)name;
	errno = ENOTTY;
}

Test(soft_clock, the_handler_keeps_errno)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_THREAD);

	perfring_soft_enable(event, false);
	struck = spoil_errno;
	errno = 4711;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_eq(errno, 4711);
	struck = NULL;
	cr_assert_gt(ticked, 0);
	perfring_soft_close(event);
}

static unsigned alarms_within;

static void alarm_within(const char *name)
{
	if (strcmp(name, "timer_found") == 0)
		raise(SIGALRM);
	if (strcmp(name, "timer_ticked") == 0)
		alarms_within += alarms != 0;
}

/* Else it might leave ours by longjmp. */
Test(soft_clock, no_handler_comes_on_top_of_the_timers)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, 50 * MS, PERFRING_SOFT_THREAD);

	handle(SIGALRM, on_alarm);
	perfring_soft_enable(event, false);
	struck = alarm_within;
	while (!PERFRING_LOAD(&ticked))
		burn_by(CLOCK_MONOTONIC, MS);
	struck = NULL;
	cr_assert_eq(alarms_within, 0);
	cr_assert_geq(alarms, 1); /* it came behind */
	perfring_soft_close(event);
}

/* ---- what comes late ---- */

Test(soft_clock, a_closed_clocks_signal_finds_nothing)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_soft_event *event = open_clock(clocks[i], 1, PERFRING_SOFT_THREAD), *other;
		uint64_t before;

		perfring_soft_enable(event, false);
		block(SIG_BLOCK);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
		before = ticked;
		perfring_soft_close(event);
		cr_assert_null(perfring__soft_self->clocks);
		other = open_clock(clocks[i], 100000 * (uint64_t)MS, PERFRING_SOFT_THREAD);
		perfring_soft_enable(other, false);
		for (unsigned k = 0; k < 3; k++)
			send_signal(SI_TIMER);
		found = 0;
		block(SIG_UNBLOCK);
		cr_assert_geq(found, SIGNALS_WAIT ? 1 : 3);
		cr_assert_eq(ticked, before);
		cr_assert_eq(drain(other, self(), 1), 0);

		found = 0;
		instance_of(other)->due = 1; /* long ago */
		send_signal(SI_QUEUE);    /* no timer's */
		cr_assert_eq(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), perfring_soft_signal()), 0);
		cr_assert_eq(found, 0);
		send_signal(SI_TIMER);
		cr_assert_eq(found, 1);
		cr_assert_eq(ticked, before + 1);
		perfring_soft_disable(other, false);
		send_signal(SI_TIMER); /* stopped a moment ago */
		cr_assert_eq(found, 2);
		cr_assert_eq(ticked, before + 1);
		perfring_soft_close(other);
	}
}

/* Signals that are queued for this user, those that timers keep for themselves among them.  UINT32_MAX: not known. */
static unsigned queued_signals(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned count = UINT32_MAX;
	char line[256];

	while (status && fgets(line, sizeof(line), status) && sscanf(line, "SigQ: %u/", &count) != 1)
		;
	if (status)
		fclose(status);
	return count;
}

static bool is_pending(int number)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, number) == 1;
}

/* Signals are counted by user, and other processes of this one have some too.  errno, or 0. */
static int be_another_user(void)
{
	uid_t nobody_elses = 0x70000000 + (uid_t)getpid();

	if (!setresuid(nobody_elses, nobody_elses, nobody_elses))
		return 0;
	return unshare(CLONE_NEWUSER) ? errno : 0;
}

static struct perfring_soft_event *come(uint64_t clock, uint64_t period)
{
	struct perf_event_attr attr = attr_of(clock, period);
	struct perfring_soft_event *event = NULL;

	return perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL) ? NULL : event;
}

/* What is wrong, as an exit status; 0: nothing. */
static int block_and_come_and_go(void)
{
	struct perfring_soft_event *event;
	unsigned before, most = 0, now;

	event = come(PERF_COUNT_SW_CPU_CLOCK, MS); /* there is a signal */
	if (!event)
		return 1;
	perfring_soft_close(event);
	perfring_soft_leave();
	block(SIG_BLOCK);
	before = queued_signals();
	if (perfring_soft_join())
		return 2;
	for (unsigned i = 0; i < 20; i++) {
		event = come(clocks[i % 2], 1);
		if (!event)
			return 2;
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_TICKS, 20 * MS);
		perfring_soft_close(event);
		now = queued_signals();
		most = now > most ? now : most;
	}
	if (!is_pending(perfring_soft_signal()))
		return 3;
	if (before == UINT32_MAX || most > before + 1)
		return 4;
	perfring_soft_leave();
	if (is_pending(perfring_soft_signal()))
		return 5;
	return queued_signals() > before ? 6 : 0;
}

/* Worker threads of many libraries block every signal. */
Test(soft_clock, a_thread_that_blocks_leaves_nothing_queued)
{
	int status = -1, error;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		error = be_another_user();
		_exit(error ? 100 + error : block_and_come_and_go());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "%x", status);
	if (WEXITSTATUS(status) > 100)
		cr_skip_test("SKIP-ENV: unshare(CLONE_NEWUSER): %s: user namespaces, or root",
			     strerror(WEXITSTATUS(status) - 100));
	cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}

static void *leave_with_one_pending(void *said)
{
	(void)said;
	cr_assert_eq(perfring_soft_join(), 0);
	block(SIG_BLOCK);
	burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
	send_signal(SI_TIMER);
	perfring_soft_leave();
	found = ticked = 0;
	block(SIG_UNBLOCK);
	cr_assert_eq(found, 0);
	cr_assert_eq(ticked, 0);
	return NULL;
}

Test(soft_clock, nothing_comes_to_who_has_left)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_PROCESS);
	pthread_t thread;

	perfring_soft_enable(event, false);
	cr_assert_eq(pthread_create(&thread, NULL, leave_with_one_pending, event), 0);
	pthread_join(thread, NULL);
	perfring_soft_close(event);
}

static uint32_t entered, left;

static void stay(const char *name)
{
	if (strcmp(name, "timer_found") != 0 || entered)
		return;
	PERFRING_STORE(&entered, 1);
	burn_by(CLOCK_MONOTONIC, 100 * MS);
	PERFRING_STORE(&left, 1);
}

static void *burn_and_stay(void *said)
{
	(void)said;
	cr_assert_eq(perfring_soft_join(), 0);
	struck = stay;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	return NULL;
}

Test(soft_clock, a_close_waits_for_the_handler)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_PROCESS);
	pthread_t thread;

	perfring_soft_enable(event, false);
	cr_assert_eq(pthread_create(&thread, NULL, burn_and_stay, NULL), 0);
	while (!PERFRING_LOAD(&entered))
		doze(MS);
	perfring_soft_close(event);
	cr_assert_eq(PERFRING_LOAD(&left), 1);
	pthread_join(thread, NULL);
}

/* ---- who programs ---- */

static struct perfring_soft_event *stricken;

static bool is_armed(const struct perfring_soft_event *event)
{
	(void)event;
	return timer_left();
}

/* The handler has seen that the event is off; then it is enabled again. */
static void enable_behind(const char *name)
{
	if (strcmp(name, "timer_ticked") != 0)
		return;
	struck = NULL;
	PERFRING_STORE(&stricken->on, 0);
	start(instance_of(stricken));
}

Test(soft_clock, a_handler_stops_no_timer_that_was_started_since)
{
	stricken = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_THREAD);
	perfring_soft_enable(stricken, false);
	struck = enable_behind;
	while (PERFRING_LOAD(&struck))
		burn_by(CLOCK_MONOTONIC, MS / 2);
	PERFRING_STORE(&stricken->on, 1);
	ticked = 0;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert(is_armed(stricken));
	cr_assert_gt(ticked, 0);
	perfring_soft_close(stricken);
}

/* Who programs is overtaken, and programs what it has seen, last. */
static void overtake(const char *name)
{
	if (strcmp(name, "timer_changes") != 0)
		return;
	struck = NULL;
	if (instance_of(stricken)->due)
		stop_clock(&instance_of(stricken)->counter);
	else
		start_clock(&instance_of(stricken)->counter);
}

Test(soft_clock, the_last_change_wins)
{
	stricken = open_clock(PERF_COUNT_SW_CPU_CLOCK, 100000 * (uint64_t)MS, PERFRING_SOFT_THREAD);
	cr_assert_not(is_armed(stricken));
	struck = overtake;
	start_clock(&instance_of(stricken)->counter);
	cr_assert_null(struck);
	cr_assert_not(is_armed(stricken));
	start_clock(&instance_of(stricken)->counter);
	cr_assert(is_armed(stricken));
	struck = overtake;
	stop_clock(&instance_of(stricken)->counter);
	cr_assert_null(struck);
	cr_assert(is_armed(stricken));
	stop_clock(&instance_of(stricken)->counter);
	cr_assert_not(is_armed(stricken));
	perfring_soft_close(stricken);
}

/* Who takes the last share of the limit has no lock to stop timers: they stop themselves. */
Test(soft_clock, a_timer_that_nobody_wants_stops_itself)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_THREAD);

	cr_assert_eq(perfring_soft_refresh(event, 5), 0);
	burn_by(CLOCK_THREAD_TICKS, 200 * MS);
	cr_assert_eq(drain(event, self(), MS), 5);
	cr_assert_not(is_armed(event));
	cr_assert_eq(perfring_soft_refresh(event, 3), 0);
	burn_by(CLOCK_THREAD_TICKS, 200 * MS);
	cr_assert_eq(drain(event, self(), MS), 3);
	perfring_soft_close(event);
}

/* ---- a thread that ends unseen ---- */

static void *end_unseen(void *said)
{
	uint32_t *ended = said;

	cr_assert_eq(perfring_soft_join(), 0);
	burn_by(CLOCK_THREAD_CPUTIME_ID, MS);
	PERFRING_STORE_RELEASE(ended, self());
	while (PERFRING_LOAD_ACQUIRE(ended) != UINT32_MAX)
		;
	syscall(SYS_exit, 0);
	return NULL;
}

/* A thread that ended by SYS_exit still takes part, as far as we know: who opens a clock later goes without it, and whoever
 * had one open reads no nonsense and is not held up. */
Test(soft_clock, a_thread_may_have_ended_unseen)
{
	struct perfring_soft_event *before[2], *after[2];
	static uint32_t ended;
	pthread_t thread;
	uint64_t value;
	uint32_t tid;
	unsigned i;

	cr_assert_eq(pthread_create(&thread, NULL, end_unseen, &ended), 0);
	while (!(tid = PERFRING_LOAD_ACQUIRE(&ended)))
		;
	for (i = 0; i < 2; i++) {
		before[i] = open_clock(clocks[i], MS, PERFRING_SOFT_PROCESS);
		perfring_soft_enable(before[i], false);
		perfring_soft_reset(before[i], false);
	}
	PERFRING_STORE_RELEASE(&ended, UINT32_MAX);
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		sched_yield();
	for (i = 0; i < 2; i++) {
		after[i] = open_clock(clocks[i], MS, PERFRING_SOFT_PROCESS);
		perfring_soft_enable(after[i], false);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 50 * MS);
		burn_by(CLOCK_THREAD_TICKS, 20 * MS);
		/* Several clocks' at a time: one signal is kept. */
		cr_assert_geq(drain(after[i], self(), MS), SIGNALS_WAIT ? 0 : 1);
		cr_assert_eq(drain(after[i], tid, MS), 0);
		cr_assert_eq(perfring_soft_set_period(after[i], 2 * MS), 0);
		perfring_soft_disable(before[i], false);
		perfring_soft_disable(after[i], false);
		cr_assert_eq(perfring_soft_read(before[i], &value, sizeof(value)), 8);
		cr_assert(value >= 50 * MS && value < UINT64_C(20000) * MS, "%d", (int)(value / MS));
		cr_assert_eq(perfring_soft_read(after[i], &value, sizeof(value)), 8);
		cr_assert(value >= 50 * MS && value < UINT64_C(20000) * MS, "%d", (int)(value / MS));
	}
	for (i = 0; i < 2; i++) {
		perfring_soft_close(before[i]);
		perfring_soft_close(after[i]);
	}
}

/* ---- fork, exec ---- */

/* The child's first timer has the name that the parent's first had. */
Test(soft_clock, a_child_keeps_its_own_timers)
{
	struct perfring_soft_event *event = open_clock(PERF_COUNT_SW_CPU_CLOCK, MS, PERFRING_SOFT_THREAD);
	struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
	struct itimerspec spec = {{0, 0}, {1000, 0}};
	timer_t timers[8];
	uint64_t before;
	int status = -1;
	pid_t child;

	perfring_soft_enable(event, false);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		for (unsigned i = 0; i < 8; i++)
			if (timer_create(CLOCK_MONOTONIC, &nothing, &timers[i]) < 0 ||
			    timer_settime(timers[i], 0, &spec, NULL) < 0)
				_exit(1);
		burn_by(CLOCK_MONOTONIC, 20 * MS);
		if (ticked && found != ticked)
			_exit(2);
		perfring_soft_close(event);
		for (unsigned i = 0; i < 8; i++)
			if (timer_gettime(timers[i], &spec) < 0 || spec.it_value.tv_sec < 900)
				_exit(3);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	before = ticked;
	burn_by(CLOCK_THREAD_TICKS, 50 * MS);
	cr_assert_gt(ticked, before); /* the parent's are what they were */
	perfring_soft_close(event);
}

/* A signal that is pending over an exec would kill the new program as soon as it is unblocked there. */
Test(soft_clock, nothing_is_pending_after_exec)
{
	int status = -1;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK, 1);
		struct perfring_soft_event *event;
		sigset_t pending;

		if (perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL) < 0)
			_exit(3);
		perfring_soft_enable(event, false);
		block(SIG_BLOCK);
		burn_by(CLOCK_THREAD_TICKS, 20 * MS);
		if (sigpending(&pending) < 0 || !sigismember(&pending, perfring_soft_signal()))
			_exit(4);
		execlp("grep", "grep", "-q", "^SigPnd:.*0000000000000000", "/proc/self/status", (char *)NULL);
		_exit(5);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

/* ---- what it counts ---- */

static uint64_t value_of(struct perfring_soft_event *event)
{
	uint64_t value = 0;

	cr_assert_eq(perfring_soft_read(event, &value, sizeof(value)), 8);
	return value;
}

Test(soft_clock, clocks_count_while_their_thread_runs)
{

	for (unsigned i = 0; i < 2; i++) {
		struct perf_event_attr attr = attr_of(clocks[i], 0);
		struct perfring_soft_event *event;
		uint64_t begin, value;

		cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
		cr_assert_eq(value_of(event), 0);
		begin = now_of(CLOCK_THREAD_CPUTIME_ID);
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 50 * MS);
		doze(200 * MS);
		value = value_of(event);
		cr_assert_geq(value, 50 * MS);
		cr_assert_leq(value, now_of(CLOCK_THREAD_CPUTIME_ID) - begin);
		perfring_soft_disable(event, false);
		value = value_of(event);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 20 * MS);
		cr_assert_eq(value_of(event), value);
		perfring_soft_reset(event, false);
		cr_assert_eq(value_of(event), 0);
		begin = now_of(CLOCK_THREAD_CPUTIME_ID);
		perfring_soft_enable(event, false);
		burn_by(CLOCK_THREAD_CPUTIME_ID, 10 * MS);
		value = value_of(event);
		cr_assert_geq(value, 10 * MS);
		cr_assert_leq(value, now_of(CLOCK_THREAD_CPUTIME_ID) - begin);
		perfring_soft_reset(event, false); /* while it runs */
		cr_assert_lt(value_of(event), 10 * MS);
		perfring_soft_close(event);
	}
}

/* ---- all at once ---- */

static uint32_t ended;

static void *burn_on(void *said)
{
	(void)said;
	cr_assert_eq(perfring_soft_join(), 0);
	while (!PERFRING_LOAD(&ended))
		burn_by(CLOCK_MONOTONIC, MS);
	return NULL;
}

static void *come_and_go(void *said)
{
	(void)said;
	while (!PERFRING_LOAD(&ended)) {
		cr_assert_eq(perfring_soft_join(), 0);
		burn_by(CLOCK_MONOTONIC, MS / 4);
		perfring_soft_leave();
	}
	return NULL;
}

static uint64_t opened; /* by all of them */

static void *open_and_close(void *said)
{
	unsigned turn = 0;

	(void)said;
	for (; !PERFRING_LOAD(&ended); turn++) {
		struct perf_event_attr attr =
			attr_of(turn % 2 ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_TASK_CLOCK, 10000);
		struct perfring_soft_event *event;
		unsigned scope = turn % 4 / 2;

		cr_assert_eq(perfring_soft_open(&event, &attr, scope, NULL), 0);
		cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
		perfring_soft_enable(event, false);
		burn_by(CLOCK_MONOTONIC, MS / 4);
		perfring_soft_disable(event, false);
		cr_assert_eq(perfring_soft_set_period(event, 20000 + turn), 0);
		if (scope == PERFRING_SOFT_THREAD)
			cr_assert_eq(perfring_soft_refresh(event, 2), 0);
		else
			perfring_soft_enable(event, false);
		perfring_soft_close(event);
		PERFRING_ADD(&opened, 1);
	}
	return NULL;
}

Test(soft_clock, storms)
{
	void *(*const starts[])(void *) = {burn_on, burn_on, come_and_go, come_and_go, open_and_close, open_and_close};
	pthread_t threads[6];

	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, starts[i], NULL), 0);
	/* Two seconds; on a busy machine, until something has happened. */
	for (unsigned i = 0; i < 20 || (i < 200 && PERFRING_LOAD(&opened) <= 5); i++)
		doze(100 * (uint64_t)MS);
	PERFRING_STORE(&ended, 1);
	for (unsigned i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	cr_assert_gt(opened, 5);
}
