/* soft_thread_test.c - the process's own software events beside handlers, forks, storms, and threads that end anywhere. */
#include "soft_rig.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/soft.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft_thread, .timeout = 60);

/* ---- handlers ---- */

static struct perfring_soft_point *handled;
static struct perfring_soft_event *switched;

static void raise_in_handler(int number)
{
	(void)number;
	perfring_soft_raise(handled, 1, 0, NULL, 0);
}

static void switch_in_handler(int number)
{
	(void)number;
	perfring_soft_disable(switched, true);
	perfring_soft_enable(switched, true);
	perfring_soft_set_period(switched, 1);
	perfring_soft_reset(switched, false);
	perfring_soft_refresh(switched, 0);
}

struct barrage {
	pthread_t target;
	bool done;
	uint64_t sent;
	int number;
};

static void *fire(void *of)
{
	struct barrage *barrage = of;

	while (!__atomic_load_n(&barrage->done, __ATOMIC_ACQUIRE)) {
		pthread_kill(barrage->target, barrage->number);
		barrage->sent++;
		usleep(20);
	}
	return NULL;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

static uint64_t handled_count;

static void count_in_handler(int number)
{
	raise_in_handler(number);
	handled_count++;
}

Test(soft_thread, handlers_on_top_of_raises_lose_nothing)
{
	struct barrage barrage = {.target = pthread_self(), .number = SIGUSR1};
	struct perf_event_attr attr;
	struct perfring_soft_event *counting, *sampling;
	uint64_t raised = 0, until, samples = 0;
	pthread_t thread;

	handled = perfring_soft_define("handlers");
	attr = attr_sampling(handled);
	counting = count_point(handled, PERFRING_SOFT_PROCESS);
	attr.sample_period = 3;
	sampling = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(sampling, 16, -1), 0);
	handle(SIGUSR1, count_in_handler);
	cr_assert_eq(pthread_create(&thread, NULL, fire, &barrage), 0);
	until = now_of(CLOCK_MONOTONIC) + 1000000000;
	/* Who fires needs a processor for each: beside others that takes longer. */
	while (now_of(CLOCK_MONOTONIC) < until || PERFRING_LOAD(&handled_count) <= 1000) {
		raise_times(handled, 100);
		raised += 100;
		samples += (uint64_t)drain_ids(sampling, 0, NULL);
	}
	__atomic_store_n(&barrage.done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	samples += (uint64_t)drain_ids(sampling, 0, NULL);
	raised += handled_count;
	cr_assert_eq(value(counting), raised);
	cr_assert_eq(value(sampling), raised);
	cr_assert_eq(samples + perfring_soft_lost(sampling), raised / 3);
	perfring_soft_close(counting);
	perfring_soft_close(sampling);
}

/* On top of raises, and of the same calls by the thread below: nobody waits for himself. */
Test(soft_thread, handlers_turn_events_on_and_off)
{
	struct perfring_soft_point *point = perfring_soft_define("switch");
	struct barrage barrage = {.target = pthread_self(), .number = SIGUSR2};
	struct perf_event_attr attr = attr_sampling(point);
	uint64_t until, words[5], before = 0;
	pthread_t thread;
	struct perfring_soft_event *sibling;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	switched = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, switched);
	handle(SIGUSR2, switch_in_handler);
	cr_assert_eq(pthread_create(&thread, NULL, fire, &barrage), 0);
	until = now_of(CLOCK_MONOTONIC) + 1000000000;
	while (now_of(CLOCK_MONOTONIC) < until) {
		raise_times(point, 10);
		perfring_soft_disable(switched, false);
		perfring_soft_enable(switched, true);
		cr_assert_eq(perfring_soft_read(switched, words, sizeof(words)), 16);
		cr_assert_geq(words[1], before);
		before = words[1];
	}
	__atomic_store_n(&barrage.done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert_eq(point->active, 2);
	perfring_soft_disable(switched, true);
	cr_assert_eq(point->active, 0);
	perfring_soft_close(switched);
	perfring_soft_close(sibling);
}

static struct perfring_soft_event *struck_event;
static uint64_t struck_told;

static void read_late(const char *name)
{
	uint64_t words[2];

	if (strcmp(name, "time_taken") != 0)
		return;
	struck = NULL;
	burn(1000000);
	cr_assert_eq(perfring_soft_read(struck_event, words, sizeof(words)), 16);
	struck_told = words[1];
}

/* Who stops an event has looked at the clock; another reads it; then it says when it was stopped. */
Test(soft_thread, times_never_go_back)
{
	struct perf_event_attr attr = attr_sampling(perfring_soft_define("back"));
	struct perfring_soft_point *point = perfring_soft_define("back");
	uint64_t words[2];

	attr.disabled = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	struck_event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_refresh(struck_event, 1), 0);
	struck = read_late;
	raise_times(point, 2);
	cr_assert_null(struck);
	cr_assert_geq(struck_told, 1000000);
	cr_assert_eq(perfring_soft_read(struck_event, words, sizeof(words)), 16);
	cr_assert_eq(words[0], 1);
	cr_assert_geq(words[1], struck_told);
	perfring_soft_close(struck_event);
}

static void *burn_and_end_unseen(void *said)
{
	uint32_t *tid = said;

	if (perfring_soft_join())
		return NULL;
	burn(20000000);
	PERFRING_STORE_RELEASE(tid, (uint32_t)syscall(SYS_gettid));
	while (PERFRING_LOAD_ACQUIRE(tid) != UINT32_MAX)
		sched_yield();
	syscall(SYS_exit, 0);
	return NULL;
}

/* What was read of a thread before it ended unseen stays. */
Test(soft_thread, what_was_read_of_a_thread_stays)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE};
	static uint32_t said;
	struct perfring_soft_event *event;
	uint64_t before;
	pthread_t thread;
	uint32_t tid;

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, burn_and_end_unseen, &said), 0);
	while (!(tid = PERFRING_LOAD_ACQUIRE(&said)))
		sched_yield();
	before = value(event);
	cr_assert_geq(before, 20000000);
	PERFRING_STORE_RELEASE(&said, UINT32_MAX);
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		sched_yield();
	cr_assert_geq(value(event), before);
	perfring_soft_disable(event, false);
	cr_assert_geq(value(event), before);
	perfring_soft_close(event);
}

/* The clock's handler finds the group off, and stops its timer; then the leader is enabled again, before event_stop has
 * settled anything. */
static void tick_and_enable(const char *name)
{
	if (strcmp(name, "event_stopped") != 0)
		return;
	struck = NULL;
	burn_by(CLOCK_THREAD_TICKS, 20000000);
	perfring_soft_enable(struck_event, false);
}

Test(soft_thread, a_siblings_clock_goes_on)
{
	struct perfring_soft_point *point = perfring_soft_define("clock:leader");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *clock;

	attr.disabled = 1;
	struck_event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr = attr_sampling(point);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 1000000;
	clock = open_event(&attr, PERFRING_SOFT_THREAD, struck_event);
	cr_assert_eq(perfring_soft_map(clock, 16, -1), 0);
	cr_assert_eq(perfring_soft_refresh(struck_event, 1), 0);
	struck = tick_and_enable;
	raise_times(point, 1);
	cr_assert_null(struck);
	drain_ids(clock, 0, NULL);
	burn_by(CLOCK_THREAD_TICKS, 100000000);
	cr_assert_gt(drain_ids(clock, 0, NULL), 0);
	perfring_soft_close(struck_event);
	perfring_soft_close(clock);
}

static struct perfring_soft_point *struck_point;

static void raise_before_it_is_on(const char *name)
{
	if (strcmp(name, "limit_set") != 0)
		return;
	struck = NULL;
	raise_times(struck_point, 10);
}

/* The event is on: what refresh adds may be spent before it enables.  Exactly so many all the same. */
Test(soft_thread, a_refresh_is_spent_at_once)
{
	struct perf_event_attr attr;

	struck_point = perfring_soft_define("spent");
	attr = attr_sampling(struck_point);
	struck_event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(struck_event, 16, -1), 0);
	struck = raise_before_it_is_on;
	cr_assert_eq(perfring_soft_refresh(struck_event, 5), 0);
	cr_assert_null(struck);
	raise_times(struck_point, 20);
	cr_assert_eq(value(struck_event), 5);
	cr_assert_eq(drain_ids(struck_event, 0, NULL), 5);
	cr_assert_eq(struck_point->active, 0);
	/* Likewise what was left of it, before somebody enables it once more. */
	cr_assert_eq(perfring_soft_refresh(struck_event, 2), 0);
	struck = raise_before_it_is_on;
	perfring_soft_enable(struck_event, false);
	cr_assert_null(struck);
	raise_times(struck_point, 20);
	cr_assert_eq(value(struck_event), 7);
	cr_assert_eq(drain_ids(struck_event, 0, NULL), 2);
	/* However many are asked for, they are a number. */
	cr_assert_eq(perfring_soft_refresh(struck_event, INT32_MAX), 0);
	cr_assert_eq(perfring_soft_refresh(struck_event, INT32_MAX), 0);
	raise_times(struck_point, 3);
	cr_assert_eq(drain_ids(struck_event, 0, NULL), 3);
	perfring_soft_close(struck_event);
}

/* ---- storms ---- */

struct storm {
	struct perfring_soft_point *point;
	bool done;
	uint64_t raised[4];
};

struct storming {
	struct storm *storm;
	int i;
};

static void *storm_raise(void *of)
{
	struct storming *storming = of;
	struct storm *storm = storming->storm;
	uint64_t rounds = 0;

	/* One of them is a stranger; one comes and goes. */
	if (storming->i != 3 && perfring_soft_join())
		return of;
	while (!__atomic_load_n(&storm->done, __ATOMIC_ACQUIRE)) {
		raise_times(storm->point, 100);
		storm->raised[storming->i] += 100;
		if (storming->i == 2 && ++rounds % 10 == 0) {
			perfring_soft_leave();
			raise_times(storm->point, 10);
			storm->raised[2] += 10;
			if (perfring_soft_join())
				return of;
		}
	}
	return NULL;
}

/* Events of all kinds come and go while others raise: what stays has counted everything. */
Test(soft_thread, events_come_and_go_while_others_raise)
{
	struct storm storm = {.point = perfring_soft_define("storm")};
	struct perfring_soft_event *stays, *target, *events[4];
	struct perf_event_attr attr = attr_sampling(storm.point);
	struct storming storming[4];
	uint64_t until, samples = 0, rounds = 0, total;
	pthread_t threads[4];
	void *failed;

	stays = count_point(storm.point, PERFRING_SOFT_PROCESS);
	for (int i = 0; i < 4; i++) {
		storming[i] = (struct storming){&storm, i};
		cr_assert_eq(pthread_create(&threads[i], NULL, storm_raise, &storming[i]), 0);
	}
	until = now_of(CLOCK_MONOTONIC) + 2000000000;
	while (now_of(CLOCK_MONOTONIC) < until || rounds < 4 || !samples) {
		target = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
		cr_assert_eq(perfring_soft_map(target, 4, -1), 0);
		for (int i = 0; i < 4; i++) {
			events[i] = open_event(&attr, PERFRING_SOFT_PROCESS, i == 1 ? events[0] : NULL);
			cr_assert_eq(perfring_soft_set_output(events[i], target), 0);
		}
		perfring_soft_disable(events[0], true);
		perfring_soft_enable(events[0], false);
		cr_assert_eq(perfring_soft_set_period(events[2], 2), 0);
		samples += (uint64_t)drain_ids(target, 0, NULL);
		perfring_soft_close(events[0]);
		samples += (uint64_t)drain_ids(target, 0, NULL);
		perfring_soft_close(target);
		for (int i = 1; i < 4; i++)
			perfring_soft_close(events[i]);
		rounds++;
	}
	__atomic_store_n(&storm.done, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		cr_assert_null(failed);
	}
	total = storm.raised[0] + storm.raised[1] + storm.raised[2] + storm.raised[3];
	cr_assert_gt(storm.raised[3], 0);
	cr_assert_eq(value(stays), total);
	cr_assert_eq(storm.point->active, 1);
	perfring_soft_close(stays);
}

/* ---- fork ---- */

static struct perfring_soft_event *opened;

static int child_of_fork(struct perfring_soft_point *point, struct perfring_soft_event *event)
{
	struct perfring_soft_event *own;
	uint64_t words[5];
	struct perf_event_attr attr = attr_sampling(point);

	if (point->active)
		return 1;
	raise_times(point, 100);
	perfring_soft_enable(event, true); /* nothing comes of it */
	if (point->active)
		return 2;
	/* Of its own. */
	if (perfring_soft_open(&own, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map(own, 1, -1))
		return 3;
	/* Another process's ids, and its thread. */
	if ((perfring_soft_id(own) >> 40 & 0x3fffff) != (uint64_t)getpid() ||
	    perfring_soft_id(own) >> 40 == perfring_soft_id(event) >> 40)
		return 4;
	if (perfring_set_next(perfring_soft_rings(own), NULL)->tid != (uint32_t)syscall(SYS_gettid))
		return 7;
	raise_times(point, 5);
	if (perfring_soft_read(own, words, sizeof(words)) != 8 || words[0] != 5)
		return 5;
	if (drain_ids(own, 0, NULL) != 5)
		return 6;
	perfring_soft_close(event);
	raise_times(point, 1);
	perfring_soft_close(own);
	perfring_soft_leave();
	perfring_soft_leave();
	return 0;
}

static void *fork_in_thread(void *of)
{
	struct perfring_soft_event *event = opened;
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		syscall(SYS_exit_group, child_of_fork(of, event));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "child %x", status);
	return NULL;
}

Test(soft_thread, a_forks_child_has_nothing)
{
	struct perfring_soft_point *point = perfring_soft_define("fork");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *sibling;
	struct worker worker;
	pthread_t thread;

	begin(&worker, point);
	tell(&worker, JOIN, 0);
	opened = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	sibling = open_event(&attr, PERFRING_SOFT_PROCESS, opened);
	cr_assert_eq(perfring_soft_map(opened, 1, -1), 0);
	raise_times(point, 3);
	fork_in_thread(point);
	raise_times(point, 4);
	tell(&worker, RAISE, 10);
	cr_assert_eq(pthread_create(&thread, NULL, fork_in_thread, point), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(value(opened), 17);
	cr_assert_eq(drain_ids(opened, 0, NULL), 17);
	end(&worker);
	perfring_soft_close(opened);
	cr_assert_eq(value(sibling), 17);
	perfring_soft_close(sibling);
}

/* Forks while others open and close: locks and grace periods are free in the child.  (Under gcc 12's address sanitizer the
 * child's first calloc may wait for ever, for a lock of the sanitizer's own.) */
#if !IS_ADDRESS_SANITIZED
static void *open_and_close(void *of)
{
	struct storm *storm = of;

	while (!__atomic_load_n(&storm->done, __ATOMIC_ACQUIRE))
		perfring_soft_close(count_point(storm->point, PERFRING_SOFT_PROCESS));
	return NULL;
}

Test(soft_thread, forks_while_others_open_and_close)
{
	struct storm storm = {.point = perfring_soft_define("fork:storm")};
	struct perfring_soft_event *event = count_point(storm.point, PERFRING_SOFT_PROCESS);
	struct storming stranger = {&storm, 3};
	struct storming joined = {&storm, 0};
	pthread_t threads[5];
	int status;
	pid_t pid;

	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, open_and_close, &storm), 0);
	cr_assert_eq(pthread_create(&threads[3], NULL, storm_raise, &stranger), 0);
	cr_assert_eq(pthread_create(&threads[4], NULL, storm_raise, &joined), 0);
	for (int i = 0; i < (IS_THREAD_SANITIZED && !is_long() ? 25 : 100); i++) {
		pid = fork();
		if (pid == 0) {
			alarm(20);
			perfring_soft_close(event);
			perfring_soft_close(count_point(storm.point, PERFRING_SOFT_PROCESS));
			syscall(SYS_exit_group, 0);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "child %d: %x", i, status);
	}
	__atomic_store_n(&storm.done, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(value(event), storm.raised[0] + storm.raised[3]);
	perfring_soft_close(event);
}
#endif

/* ---- vfork: the child runs on its parent's memory, as its parent's thread ---- */

/* The sanitizer makes a fork of it. */
#define VFORK_IS_FORK IS_THREAD_SANITIZED

static volatile int vfork_ret; /* a child's locals are its parent's */

static __attribute__((noinline)) pid_t vfork_raising(struct perfring_soft_point *point, const char *program)
{
	pid_t pid = vfork();

	if (pid)
		return pid;
	raise_times(point, 3);
	vfork_ret = perfring_soft_join(); /* does already */
	if (program)
		execl(program, program, (char *)NULL);
	syscall(SYS_exit_group, program ? 127 : 7);
	return 0;
}

Test(soft_thread, a_vforks_child_raises_as_its_parent)
{
	struct perfring_soft_point *point = perfring_soft_define("vfork");
	struct perf_event_attr attr = attr_sampling(point);
	const struct perf_event_header *record;
	struct perfring_soft_event *event;
	struct perfring_set_ring *member;
	int status, records = 0;
	uint32_t words[4];
	pid_t pid;

	if (VFORK_IS_FORK)
		cr_skip_test("SKIP-ENV: vfork: the thread sanitizer's is a fork: another sanitizer, or none");
	attr.sample_type = PERF_SAMPLE_TID;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	for (int i = 0; i < 2; i++) {
		vfork_ret = 1;
		raise_times(point, 1);
		pid = vfork_raising(point, i ? "/bin/true" : NULL);
		cr_assert_gt(pid, 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == (i ? 0 : 7), "%x", status);
		cr_assert_eq(vfork_ret, 0);
		raise_times(point, 1);
		cr_assert_eq(value(event), (uint64_t)(5 * (i + 1)));
	}
	member = perfring_set_next(perfring_soft_rings(event), NULL);
	cr_assert_null(perfring_set_next(perfring_soft_rings(event), member));
	cr_assert_geq(perfring_reader_observe(&member->reader), 0);
	while (perfring_reader_next(&member->reader, &record) == 1) {
		memcpy(words, record, sizeof(words));
		cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
		cr_assert_eq(words[2], (uint32_t)getpid());
		cr_assert_eq(words[3], (uint32_t)syscall(SYS_gettid));
		records++;
	}
	cr_assert_eq(records, 10);
	perfring_reader_return(&member->reader);
	cr_assert_eq(perfring_soft_lost(event), 0);
	perfring_soft_close(event);
}

/* ---- as many threads as can ---- */

static pthread_mutex_t crowd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crowd_has_joined = PTHREAD_COND_INITIALIZER, crowd_goes = PTHREAD_COND_INITIALIZER;
static int crowd_joined, crowd_refused, crowd_may_go;

static void *stand_in_the_crowd(void *of)
{
	int ret = perfring_soft_join();

	raise_times(of, 1);
	pthread_mutex_lock(&crowd_lock);
	crowd_joined += !ret;
	crowd_refused += ret == -EUSERS;
	pthread_cond_signal(&crowd_has_joined);
	while (!crowd_may_go)
		pthread_cond_wait(&crowd_goes, &crowd_lock);
	pthread_mutex_unlock(&crowd_lock);
	return NULL;
}

Test(soft_thread, no_more_than_4096_threads)
{
	struct perfring_soft_point *point = perfring_soft_define("crowd");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *event = count_point(point, PERFRING_SOFT_PROCESS);
	static pthread_t threads[4100];
	/* Each thread takes 4 ms of the thread sanitizer, which only sees whether they race. */
	const int most = IS_THREAD_SANITIZED && !is_long() ? 300 : 4100;
	pthread_attr_t small;
	int i, made, ret = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (made = 0; made < most; made++) {
		ret = pthread_create(&threads[made], &small, stand_in_the_crowd, point);
		if (ret)
			break;
	}
	pthread_mutex_lock(&crowd_lock);
	while (crowd_joined + crowd_refused < made)
		pthread_cond_wait(&crowd_has_joined, &crowd_lock);
	i = crowd_refused;
	perfring_soft_leave();
	if (made == 4100) { /* our place may be taken by nobody else now */
		cr_assert_eq(crowd_joined, 4095, "and this one");
		cr_assert_eq(i, 5);
		cr_assert_eq(perfring_soft_join(), 0);
		cr_assert_eq(value(event), 4100, "unknown_ids are counted");
	}
	crowd_may_go = 1;
	pthread_cond_broadcast(&crowd_goes);
	pthread_mutex_unlock(&crowd_lock);
	for (i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
	if (made < most)
		cr_skip_test("SKIP-ENV: pthread_create: %s: space for 4100 threads", strerror(ret));
	cr_assert_eq(value(event), (uint64_t)most);
	perfring_soft_close(event);
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL); /* their places are free */
	perfring_soft_close(event);
}

/* ---- a thread that a handler ends in the midst of a record ---- */

/* The sanitizer takes what is left of the thread for the handler. */
#if !IS_THREAD_SANITIZED

static void *forbidden;
static bool faulted;

static void end_thread(int number)
{
	struct timespec pause = {0, 200000000};

	(void)number;
	__atomic_store_n(&faulted, true, __ATOMIC_RELEASE);
	nanosleep(&pause, NULL);
	pthread_exit(NULL);
}

static void *fault_in_raise(void *of)
{
	if (perfring_soft_join())
		return of;
	perfring_soft_raise(of, 1, 0, NULL, 0);
	perfring_soft_raise(of, 1, 0, forbidden, 100);
	return of;
}

Test(soft_thread, a_thread_may_be_ended_in_a_raise)
{
	struct perfring_soft_point *point = perfring_soft_define("ended");
	struct perf_event_attr attr = attr_sampling(point), clock_attr = {.size = sizeof(attr)};
	struct sigaction action = {.sa_handler = end_thread, .sa_flags = SA_NODEFER}, old;
	const struct perf_event_header *record;
	struct perfring_soft_event *event, *clock;
	struct perfring_set_ring *member = NULL;
	int samples = 0, exits = 0;
	pthread_t thread;
	void *failed;

	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	attr.sample_type |= PERF_SAMPLE_RAW;
	attr.task = 1;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	clock_attr.type = PERF_TYPE_SOFTWARE;
	clock_attr.config = PERF_COUNT_SW_CPU_CLOCK;
	clock_attr.sample_period = 1000000000;
	clock = open_event(&clock_attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(sigaction(SIGSEGV, &action, &old), 0);
	cr_assert_eq(pthread_create(&thread, NULL, fault_in_raise, point), 0);
	while (!__atomic_load_n(&faulted, __ATOMIC_ACQUIRE))
		sched_yield();
	perfring_soft_close(clock); /* waits for the thread, and holds the lock that the thread's end needs */
	pthread_join(thread, &failed);
	cr_assert_eq(sigaction(SIGSEGV, &old, NULL), 0);
	cr_assert_null(failed);
	cr_assert_eq(value(event), 2);
	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			samples += record->type == PERF_RECORD_SAMPLE;
			exits += record->type == PERF_RECORD_EXIT;
		}
	}
	cr_assert_eq(samples, 1);
	cr_assert_eq(exits, 1, "what comes behind what was in the making");
	perfring_soft_close(event); /* waits for nobody */
}

static sigjmp_buf above;

static void jump(int number)
{
	(void)number;
	siglongjmp(above, 1);
}

/* What stays of it ends with leave: the ring is used no more, and nobody waits for the thread. */
Test(soft_thread, leave_is_the_way_back_from_a_jump)
{
	struct perfring_soft_point *point = perfring_soft_define("jumped");
	struct perf_event_attr attr = attr_sampling(point);
	struct sigaction action = {.sa_handler = jump}, old;
	struct perfring_soft_event *event;

	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	attr.sample_type |= PERF_SAMPLE_RAW;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	cr_assert_eq(sigaction(SIGSEGV, &action, &old), 0);
	if (!sigsetjmp(above, 1)) {
		perfring_soft_raise(point, 1, 0, forbidden, 100);
		cr_assert_fail("read what cannot be read");
	}
	cr_assert_eq(sigaction(SIGSEGV, &old, NULL), 0);
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_join(), 0);
	raise_times(point, 3);
	cr_assert_eq(drain_ids(event, 0, NULL), 3);
	cr_assert_eq(value(event), 4);
	perfring_soft_close(event);
}

#endif
