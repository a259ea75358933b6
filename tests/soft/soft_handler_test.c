/* soft_handler_test.c - overflows that call a handler, and overflows that signal, beside the kernel's event. */
#include "soft_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/soft.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft_handler, .timeout = 60);

/* ---- handlers ---- */

struct calls {
	uint64_t n, periods, addresses, ip, stream_id;
	struct perfring_soft_event *event;
	struct perfring_soft_point *raises; /* one more level */
	uint32_t wrong;
};

static void note(const struct perfring_soft_overflow *overflow, void *of)
{
	struct calls *calls = of;

	PERFRING_ADD(&calls->n, 1);
	PERFRING_ADD(&calls->periods, overflow->period);
	PERFRING_ADD(&calls->addresses, overflow->site->addr);
	PERFRING_STORE(&calls->ip, overflow->ip);
	PERFRING_STORE(&calls->stream_id, overflow->stream_id);
	if (overflow->event != calls->event)
		PERFRING_STORE(&calls->wrong, 1);
	if (calls->raises)
		perfring_soft_raise(calls->raises, 1, 0, NULL, 0);
	errno = 99;
}

Test(soft_handler, overflows_call_it)
{
	struct perfring_soft_point *point = perfring_soft_define("handled"), *other = perfring_soft_define("other");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *event, *inner, *ring;
	struct calls calls = {0};

	attr.sample_period = 3;
	event = calls.event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_handler(event, note, &calls), 0);
	cr_assert_eq(perfring_soft_set_handler(event, note, NULL), -EBUSY);
	cr_assert_eq(perfring_soft_map(event, 2, -1), -EINVAL, "instead of a ring");
	ring = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(ring, 2, -1), 0);
	cr_assert_eq(perfring_soft_set_handler(ring, note, &calls), -EINVAL);
	cr_assert_eq(perfring_soft_set_output(event, ring), -EINVAL);
	perfring_soft_close(ring);

	errno = 7;
	for (int i = 0; i < 10; i++)
		perfring_soft_raise(point, 1, 1000, NULL, 0);
	cr_assert_eq(errno, 7);
	cr_assert_eq(calls.n, 3);
	cr_assert_eq(calls.periods, 9);
	cr_assert_eq(calls.addresses, 3000);
	cr_assert_eq(calls.stream_id, perfring_soft_id(event));
	cr_assert_neq(calls.ip, 0);
	cr_assert_eq(calls.wrong, 0);
	perfring_soft_raise(point, 7, 0, NULL, 0);
	cr_assert_eq(calls.n, 5, "a weight of several periods");

	/* From within it another point. */
	inner = count_point(other, PERFRING_SOFT_THREAD);
	calls.raises = other;
	raise_times(point, 9);
	cr_assert_eq(value(inner), 3);
	calls.raises = NULL;

	cr_assert_eq(perfring_soft_refresh(event, 2), 0);
	raise_times(point, 90);
	cr_assert_eq(calls.n, 10, "a limit ends it");
	perfring_soft_enable(event, false);
	cr_assert_eq(perfring_soft_set_handler(event, NULL, NULL), 0);
	raise_times(point, 90);
	cr_assert_eq(calls.n, 10);
	cr_assert_eq(perfring_soft_set_handler(event, note, &calls), 0, "another one");
	raise_times(point, 3);
	cr_assert_eq(calls.n, 11);
	perfring_soft_close(event);
	perfring_soft_close(inner);
}

static void *raise_on(void *of)
{
	perfring_soft_join();
	for (int i = 0; i < 20000; i++)
		perfring_soft_raise(of, 1, 0, NULL, 0);
	return NULL;
}

/* While threads raise, handlers come and go: after the return none uses the old data. */
Test(soft_handler, it_is_taken_away_from_under_raises)
{
	struct perfring_soft_point *point = perfring_soft_define("going");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *event;
	pthread_t threads[3];
	struct calls calls;
	uint64_t sum = 0;

	attr.sample_period = 1;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, raise_on, point), 0);
	for (int i = 0; i < 200; i++) {
		memset(&calls, 0, sizeof(calls));
		calls.event = event;
		cr_assert_eq(perfring_soft_set_handler(event, note, &calls), 0);
		raise_times(point, 10);
		cr_assert_eq(perfring_soft_set_handler(event, NULL, NULL), 0);
		cr_assert_geq(calls.n, 10);
		cr_assert_eq(calls.periods, calls.n);
		cr_assert_eq(calls.wrong, 0);
		sum += calls.n;
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(value(event), 60000 + 2000);
	cr_assert_leq(sum, 62000);
	perfring_soft_close(event);
}

struct stay {
	struct perfring_soft_point *point;
	struct perfring_soft_event *event;
	uint32_t inside, released;
};

static void stay_inside(const struct perfring_soft_overflow *overflow, void *of)
{
	struct stay *stay = of;

	(void)overflow;
	PERFRING_STORE_RELEASE(&stay->inside, 1);
	while (!PERFRING_LOAD_ACQUIRE(&stay->released))
		usleep(100);
}

static void *raise_and_stay(void *of)
{
	struct stay *stay = of;

	perfring_soft_join();
	perfring_soft_raise(stay->point, 1, 0, NULL, 0);
	return NULL;
}

static void *take_away(void *of)
{
	struct stay *stay = of;

	cr_assert_eq(perfring_soft_set_handler(stay->event, NULL, NULL), 0);
	cr_assert(PERFRING_LOAD(&stay->released), "a call was running");
	return NULL;
}

/* Else a raise that has found the one would call it with the data of the other. */
Test(soft_handler, no_other_comes_while_one_goes)
{
	struct stay stay = {.point = perfring_soft_define("stays")};
	struct perf_event_attr attr = attr_of(stay.point);
	pthread_t raises, takes;
	struct calls calls = {0};

	attr.sample_period = 1;
	stay.event = calls.event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_set_handler(stay.event, stay_inside, &stay), 0);
	cr_assert_eq(pthread_create(&raises, NULL, raise_and_stay, &stay), 0);
	while (!PERFRING_LOAD_ACQUIRE(&stay.inside))
		usleep(100);
	cr_assert_eq(pthread_create(&takes, NULL, take_away, &stay), 0);
	for (int i = 0; i < 100; i++) { /* before the other thread has begun, and after */
		cr_assert_eq(perfring_soft_set_handler(stay.event, note, &calls), -EBUSY);
		usleep(1000);
	}
	PERFRING_STORE_RELEASE(&stay.released, 1);
	pthread_join(takes, NULL);
	pthread_join(raises, NULL);
	cr_assert_eq(perfring_soft_set_handler(stay.event, note, &calls), 0);
	raise_times(stay.point, 2);
	cr_assert_eq(calls.n, 2);
	perfring_soft_close(stay.event);
}

struct forks {
	pid_t child;
	uint32_t calls;
};

static void fork_at_first(const struct perfring_soft_overflow *overflow, void *of)
{
	struct forks *forks = of;

	(void)overflow;
	if (!forks->calls++)
		forks->child = fork();
}

static pid_t test_process;

static void leave_child(int number)
{
	(void)number;
	if (getpid() != test_process)
		_exit(99);
}

/* The child of a handler returns from the raise; the overflows left, and the signal, are the parent's. */
Test(soft_handler, a_handler_forks)
{
	struct perfring_soft_point *point = perfring_soft_define("forks");
	struct perf_event_attr attr = attr_of(point);
	struct sigaction action = {.sa_handler = leave_child};
	struct forks forks = {0};
	struct perfring_soft_event *event;
	int status;

	test_process = getpid();
	attr.sample_period = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_handler(event, fork_at_first, &forks), 0);
	cr_assert_eq(sigaction(SIGUSR2, &action, NULL), 0);
	cr_assert_eq(perfring_soft_set_signal(event, SIGUSR2, 0, 0), 0);
	perfring_soft_raise(point, 8, 0, NULL, 0);
	if (!forks.child) {
		perfring_soft_raise(point, 8, 0, NULL, 0);
		_exit((int)forks.calls);
	}
	cr_assert_gt(forks.child, 0);
	cr_assert_eq(waitpid(forks.child, &status, 0), forks.child);
	cr_assert(WIFEXITED(status), "status %x", (unsigned)status);
	cr_assert_eq(WEXITSTATUS(status), 1, "%d calls in the child", WEXITSTATUS(status) - 1);
	cr_assert_eq(forks.calls, 8);
	perfring_soft_close(event);
}

/* A clock's tick, in the timer's handler. */
/* In the child, in the middle of the raise: what it closes is in use until the raise returns. */
struct closes {
	struct perfring_soft_event *events[3];
	pid_t child;
	bool again; /* joins, raises, forks and closes in that child too */
};

static void fork_and_close(const struct perfring_soft_overflow *overflow, void *of)
{
	struct closes *closes = of;
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	struct perfring_soft_event *own;

	(void)overflow;
	if (closes->child)
		return;
	closes->child = fork();
	if (closes->child)
		return;
	alarm(30);
	for (unsigned i = 0; i < 2; i++)
		perfring_soft_close(closes->events[i]);
	if (!closes->again)
		return;
	/* Its own events end at once: no grace period waits for the parent's raise. */
	if (perfring_soft_open(&own, &attr, PERFRING_SOFT_PROCESS, NULL))
		_exit(2);
	perfring_soft_close(own);
}

Test(soft_handler, a_child_closes_what_the_raise_uses)
{
	struct perfring_soft_point *point = perfring_soft_define("closes");
	struct perf_event_attr attr = attr_of(point);
	struct closes closes;
	int status;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
	for (unsigned turn = 0; turn < 2; turn++) {
		closes = (struct closes){.again = turn};
		/* The last opened comes first: the others are still to count when it forks. */
		for (unsigned i = 0; i < 3; i++)
			closes.events[i] = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
		cr_assert_eq(perfring_soft_map(closes.events[0], 1, -1), 0);
		cr_assert_eq(perfring_soft_set_handler(closes.events[1], fork_and_close, &closes), 0);
		perfring_soft_raise(point, 3, 0, NULL, 0);
		if (!closes.child) {
			perfring_soft_close(closes.events[2]); /* frees all */
			for (uint32_t i = 0; i < SOFT_BLOCK; i++)
				if (perfring__soft_blocks[0][i].raises_on ||
				    perfring__soft_blocks[0][i].inside % SOFT_SECTION)
					_exit(3);
			_exit(0);
		}
		cr_assert_gt(closes.child, 0);
		cr_assert_eq(waitpid(closes.child, &status, 0), closes.child);
		cr_assert_eq(status, 0, "%x", (unsigned)status);
		for (unsigned i = 0; i < 3; i++) {
			cr_assert_eq(value(closes.events[i]), 3);
			perfring_soft_close(closes.events[i]);
		}
	}
}

static uint32_t is_called; /* in the timer's handler; 2: its event is being closed */

static void fork_under_close(const struct perfring_soft_overflow *overflow, void *of)
{
	pid_t child;
	int status;

	(void)overflow;
	if (PERFRING_LOAD(&is_called))
		return;
	PERFRING_STORE(&is_called, 1);
	while (PERFRING_LOAD(&is_called) != 2)
		;
	child = fork();
	if (!child)
		_exit(0);
	if (child > 0 && waitpid(child, &status, 0) == child && !status)
		PERFRING_STORE((uint32_t *)of, 1);
}

static void told_of_close(const char *name)
{
	if (!strcmp(name, "event_unlinked"))
		PERFRING_STORE(&is_called, 2);
}

static void *close_meanwhile(void *event)
{
	while (!PERFRING_LOAD(&is_called))
		sched_yield();
	struck = told_of_close;
	perfring_soft_close(event);
	return NULL;
}

/* Of a clock, whose timers end before it is freed. */
Test(soft_handler, a_handler_forks_while_its_event_is_closed)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
	struct perfring_soft_event *event;
	uint32_t forked = 0;
	pthread_t closer;

	attr.sample_period = 1000000;
	attr.disabled = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_handler(event, fork_under_close, &forked), 0);
	cr_assert_eq(pthread_create(&closer, NULL, close_meanwhile, event), 0);
	perfring_soft_enable(event, false);
	while (!PERFRING_LOAD(&is_called))
		;
	pthread_join(closer, NULL);
	cr_assert_eq(PERFRING_LOAD(&forked), 1);
}

Test(soft_handler, a_clock_calls_it)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .sample_period = 1000000};
	struct calls calls = {0};

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.disabled = 1;
	calls.event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_handler(calls.event, note, &calls), 0);
	perfring_soft_enable(calls.event, false);
	for (int i = 0; i < 100 && !PERFRING_LOAD(&calls.n); i++)
		burn(20000000);
	cr_assert_gt(PERFRING_LOAD(&calls.n), 0);
	cr_assert_neq(PERFRING_LOAD(&calls.ip), 0);
	perfring_soft_close(calls.event);
}

/* ---- signals ---- */

enum {
	SIGNALS_MAX = 64,
	PAGE = 4096,
};

struct arrival {
	int code, fd;
	long band;
	uint32_t tid;
};

static struct arrival arrivals[SIGNALS_MAX];
static uint32_t arrived;

static void arrive(int number, siginfo_t *what, void *context)
{
	uint32_t i = PERFRING_ADD(&arrived, 1u);

	(void)number;
	(void)context;
	if (i < SIGNALS_MAX)
		arrivals[i] = (struct arrival){what->si_code, what->si_fd, what->si_band,
					       (uint32_t)syscall(SYS_gettid)};
}

static int take_signal(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = arrive;
	cr_assert_eq(sigaction(SIGRTMIN + 3, &action, NULL), 0);
	return SIGRTMIN + 3;
}

Test(soft_handler, overflows_signal)
{
	struct perfring_soft_point *point = perfring_soft_define("signals");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *event;
	uint32_t self = (uint32_t)syscall(SYS_gettid);
	int number = take_signal();
	struct worker worker;

	attr.sample_period = 2;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_signal(event, -1, 0, 0), -EINVAL);
	cr_assert_eq(perfring_soft_set_signal(event, SIGRTMAX + 1, 0, 0), -EINVAL);
	cr_assert_eq(perfring_soft_set_signal(event, number, 1u << 24, 0), -EINVAL);
	cr_assert_eq(perfring_soft_set_signal(event, number, 0, 1234), 0);
	raise_times(point, 5);
	cr_assert_eq(arrived, 2);
	cr_assert_eq(arrivals[0].code, POLL_IN);
	cr_assert_eq(arrivals[0].fd, 1234);
	cr_assert_eq(arrivals[0].band, POLLIN | POLLRDNORM);
	cr_assert_eq(arrivals[0].tid, self);
	cr_assert_eq(perfring_soft_set_signal(event, 0, 0, 0), 0);
	raise_times(point, 10);
	cr_assert_eq(arrived, 2);
	perfring_soft_close(event);

	/* To another thread than the one that raises. */
	begin(&worker, point);
	cr_assert_eq(tell(&worker, JOIN, 0), 0);
	cr_assert_eq(perfring_soft_open_on(&event, &attr, worker.tid, NULL), 0);
	cr_assert_eq(perfring_soft_set_signal(event, number, self, -7), 0);
	tell(&worker, RAISE, 2);
	while (PERFRING_LOAD(&arrived) < 3)
		usleep(1000);
	cr_assert_eq(arrivals[2].code, SI_SIGIO);
	cr_assert_eq(arrivals[2].fd, -7);
	cr_assert_eq(arrivals[2].band, POLLIN | POLLRDNORM);
	cr_assert_eq(arrivals[2].tid, self);
	end(&worker);
	perfring_soft_close(event);
}

static struct perfring_soft_event *looked_at;
static uint64_t values[8];
static uint32_t looks;

static void look(int number)
{
	(void)number;
	values[looks++ % 8] = value(looked_at);
}

/* Of the events of a point the last opened counts first. */
Test(soft_handler, a_signal_comes_when_all_events_have_counted)
{
	struct perfring_soft_point *point = perfring_soft_define("all");
	struct perf_event_attr attr = attr_of(point);
	struct sigaction action = {.sa_handler = look};
	struct perfring_soft_event *event;

	if (IS_THREAD_SANITIZED)
		cr_skip_test("SKIP-ENV: the thread sanitizer holds signals back, and merges them");
	attr.sample_period = 1;
	cr_assert_eq(sigaction(SIGUSR2, &action, NULL), 0);
	looked_at = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_signal(event, SIGUSR2, 0, 0), 0);
	raise_times(point, 3);
	cr_assert_eq(looks, 3);
	for (uint32_t i = 0; i < looks; i++)
		cr_assert_eq(values[i], i + 1);
	perfring_soft_close(event);
	perfring_soft_close(looked_at);
}

struct nest {
	struct perfring_soft_point *point;
	uint32_t calls, at;
};

static void raise_at_one_call(const struct perfring_soft_overflow *overflow, void *of)
{
	struct nest *nest = of;

	(void)overflow;
	if (++nest->calls == nest->at)
		perfring_soft_raise(nest->point, 2, 0, NULL, 0);
}

/* An occurrence in the middle of another, after its first overflow, between two, and after its last. */
Test(soft_handler, each_occurrence_signals_once)
{
	struct nest nest = {.point = perfring_soft_define("nested")};
	struct perf_event_attr attr = attr_of(nest.point);
	struct perfring_soft_event *event;
	int number = take_signal();

	if (IS_THREAD_SANITIZED)
		cr_skip_test("SKIP-ENV: the thread sanitizer holds signals back, and merges them");
	attr.sample_period = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_handler(event, raise_at_one_call, &nest), 0);
	cr_assert_eq(perfring_soft_set_signal(event, number, 0, 0), 0);
	for (uint32_t at = 1; at <= 10; at++) {
		nest.calls = 0;
		nest.at = at;
		arrived = 0;
		perfring_soft_raise(nest.point, 10, 0, NULL, 0);
		cr_assert_eq(nest.calls, 12);
		cr_assert_eq(arrived, 2, "raised at overflow %u: %u signals", at, arrived);
	}
	perfring_soft_close(event);
}

static uint32_t ios;

static void count_io(int number)
{
	(void)number;
	PERFRING_ADD(&ios, 1u);
}

Test(soft_handler, a_queue_that_is_full_sends_sigio)
{
	struct perfring_soft_point *point = perfring_soft_define("queue");
	struct perf_event_attr attr = attr_of(point);
	struct sigaction action = {.sa_handler = count_io};
	struct perfring_soft_event *event;
	struct rlimit none = {0, 0};
	int number = take_signal();

	attr.sample_period = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(sigaction(SIGIO, &action, NULL), 0);
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	cr_assert_eq(perfring_soft_set_signal(event, number, 0, 1), 0);
	raise_times(point, 3);
	cr_assert_eq(ios, 3);
	cr_assert_eq(arrived, 0);
	perfring_soft_close(event);
}

/* The kernel's event and ours: the same occurrences, the same signals. */
Test(soft_handler, signals_are_the_kernels)
{
	struct perfring_soft_point *point = perfring_soft_define("both");
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .disabled = 1};
	struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
	struct arrival theirs[SIGNALS_MAX];
	struct perfring_soft_event *event;
	unsigned char *pages;
	uint32_t n;
	int fd, number = take_signal();

	if (IS_THREAD_SANITIZED)
		cr_skip_test("SKIP-ENV: the thread sanitizer holds the kernel's signals back, and merges them");
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.exclude_user = 1;
	attr.sample_period = 3;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid at most 1, or CAP_PERFMON",
			     strerror(errno));
	cr_assert_eq(fcntl(fd, F_SETSIG, number), 0);
	cr_assert_eq(fcntl(fd, F_SETOWN_EX, &owner), 0);
	cr_assert_eq(fcntl(fd, F_SETFL, O_ASYNC), 0);
	pages = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(pages, MAP_FAILED);
	madvise(pages, 64 * PAGE, MADV_NOHUGEPAGE);
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_REFRESH, 5), 0);
	for (int i = 0; i < 40; i++)
		cr_assert_eq(syscall(SYS_getcpu, pages + i * PAGE, NULL, NULL), 0);
	n = PERFRING_LOAD(&arrived);
	memcpy(theirs, arrivals, sizeof(theirs));
	arrived = 0;

	attr.type = point->type;
	attr.config = point->config;
	attr.exclude_user = 0;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_signal(event, number, owner.pid > 0 ? (uint32_t)owner.pid : 0, fd), 0);
	cr_assert_eq(perfring_soft_refresh(event, 5), 0);
	raise_times(point, 40);
	cr_assert_eq(arrived, 5);
	cr_assert_eq(n, 5, "the kernel's: %u", n);
	for (uint32_t i = 0; i < n; i++) {
		cr_assert_eq(arrivals[i].code, theirs[i].code, "signal %u: code %d, the kernel's %d", i,
			     arrivals[i].code, theirs[i].code);
		cr_assert_eq(arrivals[i].fd, theirs[i].fd);
		cr_assert_eq(arrivals[i].band, theirs[i].band, "signal %u: band %lx, the kernel's %lx", i,
			     arrivals[i].band, theirs[i].band);
	}
	perfring_soft_close(event);
	close(fd);
}
