/* soft_test.c - points, events, groups, rings and threads of the process's own software events. */
/* Every named place of soft/soft_event.c, which is compiled here for that. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <perfring/soft.h>
#include <perfring/wakeup.h>

#include "machine.h"
#include "soft/soft_event.c"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft, .timeout = 60);

static __thread void (*struck)(const char *name); /* what comes in between there */

static void strike(const char *name)
{
	if (struck)
		struck(name);
}

enum {
	FORMAT_LOST = 16
};

/* ---- helpers ---- */

static struct perf_event_attr attr_of(const struct perfring_soft_point *point)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};

	return attr;
}

static struct perfring_soft_event *open_event(const struct perf_event_attr *attr, unsigned scope,
					      struct perfring_soft_event *leader)
{
	struct perfring_soft_event *event;
	int ret = perfring_soft_open(&event, attr, scope, leader);

	cr_assert_eq(ret, 0, "open: %d", ret);
	return event;
}

static struct perfring_soft_event *count_point(const struct perfring_soft_point *point, unsigned scope)
{
	struct perf_event_attr attr = attr_of(point);

	return open_event(&attr, scope, NULL);
}

static uint64_t value(struct perfring_soft_event *event)
{
	uint64_t words[5];

	cr_assert_geq(perfring_soft_read(event, words, sizeof(words)), 8);
	return words[0];
}

/* value, enabled, running, id, lost */
static void read_all(struct perfring_soft_event *event, uint64_t words[5])
{
	cr_assert_eq(perfring_soft_read(event, words, 40), 40);
}

static struct perf_event_attr attr_read_all(const struct perfring_soft_point *point)
{
	struct perf_event_attr attr = attr_of(point);

	attr.read_format =
		PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | FORMAT_LOST;
	return attr;
}

static void raise_times(struct perfring_soft_point *point, int n)
{
	while (n--)
		perfring_soft_raise(point, 1, 0, NULL, 0);
}

static uint64_t now_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void burn_by(clockid_t clock, uint64_t ns)
{
	uint64_t until = now_of(clock) + ns;

	while (now_of(clock) < until)
		;
}

static void burn(uint64_t ns)
{
	burn_by(CLOCK_THREAD_CPUTIME_ID, ns);
}

/* A thread that does what it is told, one step after the other. */
struct worker {
	pthread_t thread;
	struct perfring_soft_point *point;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int order; /* 0: none */
	int n;
	int result;
	uint32_t tid;
};

enum {
	JOIN = 1,
	LEAVE,
	RAISE,
	BURN,
	END,
};

static void *work(void *of)
{
	struct worker *worker = of;
	int order;

	do {
		pthread_mutex_lock(&worker->lock);
		while (!worker->order)
			pthread_cond_wait(&worker->changed, &worker->lock);
		order = worker->order;
		worker->tid = (uint32_t)syscall(SYS_gettid);
		if (order == JOIN)
			worker->result = perfring_soft_join();
		else if (order == LEAVE)
			perfring_soft_leave();
		else if (order == RAISE)
			raise_times(worker->point, worker->n);
		else if (order == BURN)
			burn((uint64_t)worker->n);
		worker->order = 0;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
	} while (order != END);
	return NULL;
}

static void begin(struct worker *worker, struct perfring_soft_point *point)
{
	memset(worker, 0, sizeof(*worker));
	worker->point = point;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	cr_assert_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static int tell(struct worker *worker, int order, int n)
{
	pthread_mutex_lock(&worker->lock);
	worker->order = order;
	worker->n = n;
	pthread_cond_broadcast(&worker->changed);
	while (worker->order)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	return worker->result;
}

static void end(struct worker *worker)
{
	tell(worker, END, 0);
	pthread_join(worker->thread, NULL);
}

/* Samples of `id` (0: all) in all rings, which are emptied.  The attr has ID and STREAM_ID alone. */
struct two_ids {
	struct perf_event_header header;
	uint64_t id, stream_id;
};

static int drain_ids(struct perfring_soft_event *event, uint64_t id, uint64_t *stream_id)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	struct two_ids two;
	int n = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			memcpy(&two, record, sizeof(two));
			if (id && two.id != id)
				continue;
			if (stream_id)
				*stream_id = two.stream_id;
			n++;
		}
		perfring_reader_return(&member->reader);
	}
	return n;
}

static struct perf_event_attr attr_sampling(const struct perfring_soft_point *point)
{
	struct perf_event_attr attr = attr_of(point);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	return attr;
}

/* ---- points ---- */

Test(soft, points_are_found_again_by_name)
{
	struct perfring_soft_point *one = perfring_soft_define("test:one"), *two = perfring_soft_define("test:two"), *n;
	char name[300], longest[256];

	cr_assert_not_null(one);
	cr_assert_eq(one->type, 0x50465200);
	cr_assert_eq(one->config, 1);
	cr_assert_eq(two->config, 2);
	cr_assert_str_eq(two->name, "test:two");
	cr_assert_eq(one->active, 0);
	strcpy(name, "test:one");
	cr_assert_eq(perfring_soft_define(name), one);
	cr_assert_eq(perfring_soft_point_of(0x50465200, 2), two);
	cr_assert_null(perfring_soft_point_of(0x50465200, 0));
	cr_assert_null(perfring_soft_point_of(0x50465200, 3));
	cr_assert_null(perfring_soft_point_of(0x50465200, UINT64_MAX));
	cr_assert_null(perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS));
	cr_assert_null(perfring_soft_point_of(PERF_TYPE_HARDWARE, 0));
	cr_assert_str_eq(perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK)->name, "cpu-clock");
	cr_assert_str_eq(perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)->name, "task-clock");
	cr_assert_str_eq(perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY)->name, "dummy");

	cr_assert_null(perfring_soft_define(""));
	cr_assert_null(perfring_soft_define(NULL));
	memset(longest, 'x', 255);
	longest[255] = 0;
	cr_assert_not_null(perfring_soft_define(longest));
	memset(name, 'x', 256);
	name[256] = 0;
	cr_assert_null(perfring_soft_define(name));

	/* So many that chains and tables have to grow. */
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "many:%d", i);
		n = perfring_soft_define(name);
		cr_assert_eq(n->config, (uint64_t)i + 4);
	}
	cr_assert_eq(perfring_soft_define("many:1234")->config, 1238);
	cr_assert_str_eq(perfring_soft_point_of(PERFRING_SOFT_TYPE, 1238)->name, "many:1234");
	cr_assert_eq(perfring_soft_define("test:one"), one);
}

/* ---- counting ---- */

Test(soft, counts_in_one_thread)
{
	struct perfring_soft_point *point = perfring_soft_define("count"), *other = perfring_soft_define("other");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *a, *b, *never, *deaf;

	raise_times(point, 5);
	a = count_point(point, PERFRING_SOFT_THREAD);
	cr_assert_eq(point->active, 1);
	b = count_point(point, PERFRING_SOFT_PROCESS);
	cr_assert_eq(point->active, 2);
	attr.disabled = 1;
	never = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr.disabled = 0;
	attr.exclude_user = 1;
	deaf = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(point->active, 2);

	errno = 4711;
	perfring_soft_raise(point, 3, 0, NULL, 0);
	perfring_soft_raise(point, 1, 0, NULL, 0);
	perfring_soft_raise(other, 100, 0, NULL, 0);
	cr_assert_eq(errno, 4711);
	cr_assert_eq(value(a), 4);
	cr_assert_eq(value(b), 4);
	cr_assert_eq(value(never), 0);
	cr_assert_eq(value(deaf), 0, "exclude_user leaves nothing");

	perfring_soft_disable(a, false);
	perfring_soft_disable(a, false);
	cr_assert_eq(point->active, 1);
	raise_times(point, 10);
	cr_assert_eq(value(a), 4);
	cr_assert_eq(value(b), 14);
	perfring_soft_enable(a, false);
	perfring_soft_enable(a, false);
	perfring_soft_enable(never, false);
	cr_assert_eq(point->active, 3);
	raise_times(point, 2);
	cr_assert_eq(value(a), 6);
	cr_assert_eq(value(never), 2);

	perfring_soft_close(b);
	cr_assert_eq(point->active, 2);
	raise_times(point, 1);
	cr_assert_eq(value(a), 7);
	perfring_soft_close(never);
	perfring_soft_close(deaf);
	perfring_soft_close(a);
	cr_assert_eq(point->active, 0);
	raise_times(point, 1);
	perfring_soft_close(NULL);
}

Test(soft, counts_in_the_threads_of_its_scope)
{
	struct perfring_soft_point *point = perfring_soft_define("threads");
	struct perfring_soft_event *mine, *all;
	struct worker early, late, strange;

	begin(&early, point);
	begin(&late, point);
	begin(&strange, point);
	cr_assert_eq(tell(&early, JOIN, 0), 0);
	cr_assert_eq(tell(&early, JOIN, 0), 0, "a second time");
	mine = count_point(point, PERFRING_SOFT_THREAD);
	all = count_point(point, PERFRING_SOFT_PROCESS);
	cr_assert_eq(tell(&late, JOIN, 0), 0);

	tell(&early, RAISE, 10);
	tell(&late, RAISE, 200);
	raise_times(point, 1);
	cr_assert_eq(value(mine), 1);
	cr_assert_eq(value(all), 211);
	tell(&strange, RAISE, 3000);
	cr_assert_eq(value(mine), 1);
	cr_assert_eq(value(all), 3211, "who has not joined is counted");
	cr_assert_eq(perfring_soft_lost(all), 0, "but nothing was to be sampled");

	end(&early);
	cr_assert_eq(value(all), 3211, "what it counted stays");
	tell(&late, LEAVE, 0);
	cr_assert_eq(value(all), 3211);
	tell(&late, LEAVE, 0);
	tell(&late, RAISE, 40000);
	cr_assert_eq(value(all), 43211, "a stranger again");
	cr_assert_eq(tell(&late, JOIN, 0), 0);
	tell(&late, RAISE, 500000);
	cr_assert_eq(value(all), 543211);
	end(&late);
	end(&strange);
	cr_assert_eq(value(all), 543211);
	cr_assert_eq(value(mine), 1);
	perfring_soft_close(all);
	perfring_soft_close(mine);
}

/* Indices are given again: more threads come and go than take part at a time. */
static void *raise_once(void *of)
{
	if (perfring_soft_join())
		return of;
	perfring_soft_raise(of, 1, 0, NULL, 0);
	return NULL;
}

Test(soft, thousands_of_threads_after_one_another)
{
	struct perfring_soft_point *point = perfring_soft_define("churn");
	struct perfring_soft_event *all = count_point(point, PERFRING_SOFT_PROCESS);
	pthread_t thread;
	void *failed;

	for (int i = 0; i < 5000; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, raise_once, point), 0);
		pthread_join(thread, &failed);
		cr_assert_null(failed);
	}
	cr_assert_eq(value(all), 5000);
	perfring_soft_close(all);
}

/* The event of a thread that has gone is not the next one's, though that has its index. */
static struct perfring_soft_event *opened;

static void *open_in_thread(void *of)
{
	opened = count_point(of, PERFRING_SOFT_THREAD);
	raise_times(of, 3);
	return NULL;
}

Test(soft, a_thread_event_ends_with_its_thread)
{
	struct perfring_soft_point *point = perfring_soft_define("gone");
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, open_in_thread, point), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(value(opened), 3);
	cr_assert_eq(perfring_soft_join(), 0);
	raise_times(point, 7);
	cr_assert_eq(value(opened), 3);
	perfring_soft_disable(opened, false);
	perfring_soft_enable(opened, false);
	perfring_soft_reset(opened, false);
	cr_assert_eq(value(opened), 0, "its own count, not a child's");
	perfring_soft_close(opened);
}

Test(soft, reset_leaves_times_losses_and_those_who_have_gone)
{
	struct perfring_soft_point *point = perfring_soft_define("reset");
	struct perf_event_attr attr = attr_read_all(point);
	struct perfring_soft_event *all;
	struct worker gone, here, strange;
	uint64_t before[5], after[5];

	attr.sample_period = 1000;
	all = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	begin(&gone, point);
	begin(&here, point);
	begin(&strange, point);
	tell(&gone, JOIN, 0);
	tell(&here, JOIN, 0);
	tell(&gone, RAISE, 118);
	end(&gone);
	tell(&here, RAISE, 20);
	tell(&strange, RAISE, 3);
	raise_times(point, 4000);
	perfring_soft_disable(all, false);
	read_all(all, before);
	cr_assert_eq(before[0], 4141);
	cr_assert_eq(before[4], 3);
	perfring_soft_reset(all, false);
	read_all(all, after);
	cr_assert_eq(after[0], 118);
	cr_assert_eq(after[1], before[1]);
	cr_assert_eq(after[2], before[1]);
	cr_assert_eq(after[4], 3);
	perfring_soft_enable(all, false);
	tell(&here, RAISE, 5);
	raise_times(point, 6);
	tell(&strange, RAISE, 7);
	cr_assert_eq(value(all), 136);
	end(&here);
	cr_assert_eq(value(all), 136);
	perfring_soft_reset(all, false);
	cr_assert_eq(value(all), 123);
	end(&strange);
	perfring_soft_close(all);
}

/* ---- groups ---- */

Test(soft, siblings_count_while_their_leader_does)
{
	struct perfring_soft_point *a = perfring_soft_define("group:a"), *b = perfring_soft_define("group:b");
	struct perf_event_attr attr = attr_of(a);
	struct perfring_soft_event *leader, *sibling, *off;

	attr.disabled = 1;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr = attr_of(b);
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	attr.disabled = 1;
	off = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	cr_assert_eq(b->active, 0);
	raise_times(b, 3);
	cr_assert_eq(value(sibling), 0, "its leader is off");

	perfring_soft_enable(leader, false);
	cr_assert_eq(b->active, 1);
	raise_times(a, 1);
	raise_times(b, 3);
	cr_assert_eq(value(leader), 1);
	cr_assert_eq(value(sibling), 3);
	cr_assert_eq(value(off), 0);
	perfring_soft_enable(off, true);
	cr_assert_eq(b->active, 2);
	raise_times(b, 10);
	cr_assert_eq(value(sibling), 13);
	cr_assert_eq(value(off), 10);
	perfring_soft_disable(sibling, false);
	raise_times(a, 1);
	raise_times(b, 1);
	cr_assert_eq(value(leader), 2);
	cr_assert_eq(value(sibling), 13);
	cr_assert_eq(value(off), 11);
	perfring_soft_disable(off, true);
	cr_assert_eq(a->active, 0);
	cr_assert_eq(b->active, 0);
	raise_times(a, 1);
	raise_times(b, 1);
	cr_assert_eq(value(leader), 2);
	cr_assert_eq(value(sibling), 13);
	perfring_soft_reset(leader, true);
	cr_assert_eq(value(leader), 0);
	cr_assert_eq(value(sibling), 0);
	cr_assert_eq(value(off), 0);

	/* Without its leader, each is its own. */
	perfring_soft_enable(sibling, false);
	raise_times(b, 1);
	cr_assert_eq(value(sibling), 0);
	perfring_soft_close(leader);
	cr_assert_eq(b->active, 1);
	raise_times(b, 2);
	cr_assert_eq(value(sibling), 2);
	cr_assert_eq(value(off), 0);
	perfring_soft_enable(off, true);
	perfring_soft_disable(sibling, false);
	raise_times(b, 1);
	cr_assert_eq(value(sibling), 2);
	cr_assert_eq(value(off), 1);
	perfring_soft_close(off);
	perfring_soft_close(sibling);
}

Test(soft, groups_are_refused_as_the_kernel_does)
{
	struct perfring_soft_point *point = perfring_soft_define("refused:group");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *leader, *sibling, *event = (void *)&attr;

	leader = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	sibling = open_event(&attr, PERFRING_SOFT_PROCESS, leader);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, sibling), -EINVAL, "no leader");
	cr_assert_null(event);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, leader), -EINVAL, "scope");
	attr.pinned = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, leader), -EINVAL, "pinned");
	attr.pinned = 0;
	attr.exclusive = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, leader), -EINVAL, "exclusive");
	attr.exclusive = 0;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, leader), -EINVAL, "clock");
	cr_assert_eq(point->active, 2);
	perfring_soft_close(leader);
	perfring_soft_close(sibling);

	/* docs/abi.md 1.5: with read_format 31, a leader and 680 siblings can be read. */
	attr = attr_of(point);
	attr.read_format = 31;
	attr.disabled = 1;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	for (int i = 0; i < 680; i++)
		open_event(&attr, PERFRING_SOFT_THREAD, leader);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, leader), -E2BIG);
	attr.read_format = 0; /* itself it could be read, but not its leader */
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, leader), -E2BIG);
}

/* ---- read ---- */

/* Every format: value is 3 and 5, nothing lost, and a time that is the same wherever it stands. */
static void read_format_of(uint64_t format, struct perfring_soft_point *a, struct perfring_soft_point *b)
{
	struct perf_event_attr attr = attr_of(a);
	struct perfring_soft_event *leader, *sibling;
	uint64_t expected[16], got[16], time, n = 0, size;
	unsigned char odd[129];

	attr.read_format = format;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr = attr_of(b);
	attr.read_format = format;
	attr.sample_period = 5; /* one sample in five: raised by a stranger, lost */
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	raise_times(a, 3);
	raise_times(b, 5);
	perfring_soft_disable(leader, true);

	memset(got, 0xee, sizeof(got));
	size = (uint64_t)perfring_soft_read(sibling, got, sizeof(got));
	time = format & 1 ? got[1] : format & 2 ? got[1] : 0;
	if (format & 3) {
		cr_assert_gt(time, 0);
		cr_assert_leq(time, now_of(CLOCK_THREAD_CPUTIME_ID));
	}
	if (format & 8) {
		expected[n++] = 2;
		if (format & 1)
			expected[n++] = time;
		if (format & 2)
			expected[n++] = time;
		expected[n++] = 3;
		if (format & 4)
			expected[n++] = perfring_soft_id(leader);
		if (format & 16)
			expected[n++] = 0;
		expected[n++] = 5;
		if (format & 4)
			expected[n++] = perfring_soft_id(sibling);
		if (format & 16)
			expected[n++] = 0;
	} else {
		expected[n++] = 5;
		if (format & 1)
			expected[n++] = time;
		if (format & 2)
			expected[n++] = time;
		if (format & 4)
			expected[n++] = perfring_soft_id(sibling);
		if (format & 16)
			expected[n++] = 0;
	}
	cr_assert_eq(size, 8 * n, "format %d: %d bytes", (int)format, (int)size);
	cr_assert_eq(memcmp(got, expected, size), 0, "format %d", (int)format);
	cr_assert_eq(got[n], UINT64_C(0xeeeeeeeeeeeeeeee), "format %d: too much", (int)format);
	cr_assert_eq(perfring_soft_read(sibling, got, size - 1), -ENOSPC);
	cr_assert_eq(perfring_soft_read(sibling, got, 0), -ENOSPC);
	cr_assert_eq(perfring_soft_read(sibling, odd + 1, size), (int64_t)size, "not aligned");
	cr_assert_eq(memcmp(odd + 1, expected, size), 0);
	perfring_soft_close(sibling);
	perfring_soft_close(leader);
}

Test(soft, reads_in_all_formats)
{
	struct perfring_soft_point *a = perfring_soft_define("read:a"), *b = perfring_soft_define("read:b");

	for (uint64_t format = 0; format < 32; format++)
		read_format_of(format, a, b);
}

/* A group read on a sibling has the sibling's format and the leader's times. */
Test(soft, a_group_is_read_with_its_leaders_times)
{
	struct perfring_soft_point *point = perfring_soft_define("read:times");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *leader, *sibling;
	uint64_t alone[2], group[4];

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	burn(3000000);
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED;
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	perfring_soft_disable(leader, true);
	cr_assert_eq(perfring_soft_read(leader, alone, sizeof(alone)), 16);
	cr_assert_geq(alone[1], 3000000);
	cr_assert_eq(perfring_soft_read(sibling, group, sizeof(group)), 32);
	cr_assert_eq(group[0], 2);
	cr_assert_eq(group[1], alone[1]);
	perfring_soft_close(leader);
	cr_assert_eq(perfring_soft_read(sibling, group, sizeof(group)), 24);
	cr_assert_eq(group[0], 1);
	cr_assert_lt(group[1], alone[1], "its own now");
	perfring_soft_close(sibling);
}

Test(soft, is_enabled_for_as_long_as_its_threads_run)
{
	struct perfring_soft_point *point = perfring_soft_define("times");
	struct perf_event_attr attr = attr_read_all(point);
	struct perfring_soft_event *all, *off;
	struct timespec pause = {0, 60000000};
	uint64_t a[5], b[5], before, after;
	struct worker worker;

	begin(&worker, point);
	tell(&worker, JOIN, 0);
	before = now_of(CLOCK_THREAD_CPUTIME_ID);
	all = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	attr.disabled = 1;
	off = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	nanosleep(&pause, NULL);
	read_all(all, a);
	after = now_of(CLOCK_THREAD_CPUTIME_ID);
	cr_assert_eq(a[1], a[2]);
	cr_assert_gt(a[1], 0);
	cr_assert_lt(a[1], 40000000, "it slept");
	burn(30000000);
	read_all(all, b);
	cr_assert_geq(b[1] - a[1], 30000000);
	cr_assert_leq(b[1], now_of(CLOCK_THREAD_CPUTIME_ID) - before + 20000000, "and the worker hardly ran");
	cr_assert_gt(after, before);

	read_all(all, a);
	tell(&worker, BURN, 30000000);
	read_all(all, b);
	cr_assert_geq(b[1] - a[1], 30000000, "the other thread's");
	perfring_soft_disable(all, false);
	read_all(all, a);
	burn(10000000);
	tell(&worker, BURN, 10000000);
	read_all(all, b);
	cr_assert_eq(a[1], b[1], "off");
	end(&worker);
	read_all(all, b);
	cr_assert_eq(a[1], b[1], "who has gone");
	perfring_soft_enable(all, false);
	burn(5000000);
	read_all(all, b);
	cr_assert_geq(b[1] - a[1], 5000000);
	cr_assert_lt(b[1] - a[1], 5000000 + 50000000);
	read_all(off, a);
	cr_assert_eq(a[1], 0);
	perfring_soft_close(off);
	perfring_soft_close(all);
}

/* A sibling's time stands while its leader is off. */
Test(soft, a_siblings_time_needs_its_leader)
{
	struct perfring_soft_point *point = perfring_soft_define("times:group");
	struct perf_event_attr attr = attr_read_all(point);
	struct perfring_soft_event *leader, *sibling;
	uint64_t a[5], b[5];

	attr.disabled = 1;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr.disabled = 0;
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	burn(1000000);
	read_all(sibling, a);
	cr_assert_eq(a[1], 0);
	perfring_soft_enable(leader, false);
	burn(1000000);
	perfring_soft_disable(leader, false);
	read_all(sibling, a);
	cr_assert_geq(a[1], 1000000);
	burn(1000000);
	read_all(sibling, b);
	cr_assert_eq(a[1], b[1]);
	perfring_soft_close(sibling);
	perfring_soft_close(leader);
}

Test(soft, clocks_count_the_time_that_threads_run)
{
	struct perfring_soft_point *point = perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perfring_soft_event *clock = count_point(point, PERFRING_SOFT_THREAD), *wall;
	struct timespec pause = {0, 60000000};
	uint64_t a, b;

	wall = count_point(perfring_soft_point_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK), PERFRING_SOFT_THREAD);
	cr_assert_eq(point->active, 0, "nobody raises a clock");
	perfring_soft_raise(point, 1000000000, 0, NULL, 0);
	a = value(clock);
	cr_assert_lt(a, 1000000000);
	burn(20000000);
	b = value(clock);
	cr_assert_geq(b - a, 20000000);
	cr_assert_leq(b, now_of(CLOCK_THREAD_CPUTIME_ID));
	cr_assert_geq(value(wall), 20000000);
	nanosleep(&pause, NULL);
	cr_assert_lt(value(clock) - b, 40000000);
	cr_assert_lt(value(wall), 60000000);
	perfring_soft_reset(clock, false);
	cr_assert_lt(value(clock), 20000000);
	burn(20000000);
	cr_assert_geq(value(clock), 20000000);
	perfring_soft_close(clock);
	perfring_soft_close(wall);
}

/* ---- open, refused ---- */

struct refusal {
	const char *what;
	int error;
	struct perf_event_attr attr; /* but for type, config and size, unless they are given */
};

#define ALL_REGS 0x0000000000ff0fffull /* x86-64: what a process has */

Test(soft, refuses_as_the_kernel_does)
{
	static const struct refusal refusals[] = {
		{"sample_period", EINVAL, {.sample_period = UINT64_C(1) << 63}},
		{"sample_freq", EINVAL, {.freq = 1, .sample_freq = 100001}},
		{"sample_type", EINVAL, {.sample_type = 1 << 25}},
		{"read_format", EINVAL, {.read_format = 32}},
		{"reserved_2", EINVAL, {.__reserved_2 = 1}},
		{"no registers", EINVAL, {.sample_type = PERF_SAMPLE_REGS_USER}},
		{"stack size", EINVAL, {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 65536}},
		{"stack words", EINVAL, {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 4}},
		{"stack above all", EINVAL, {.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 65535}},
		{"weights", EINVAL, {.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT}},
		{"inherit_thread", EINVAL, {.inherit_thread = 1}},
		{"on exec", EINVAL, {.remove_on_exec = 1, .enable_on_exec = 1}},
		{"sigtrap", EINVAL, {.sigtrap = 1}},
		{"process cpu clock", EINVAL, {.use_clockid = 1, .clockid = CLOCK_PROCESS_CPUTIME_ID}},
		{"coarse clock", EINVAL, {.use_clockid = 1, .clockid = CLOCK_MONOTONIC_COARSE}},
		{"negative clock", EINVAL, {.use_clockid = 1, .clockid = -1}},
		{"aux_action", EINVAL, {.__reserved_3 = 8}},
		{"aux_pause", EINVAL, {.__reserved_3 = 2}},
		{"aux_start_paused", EOPNOTSUPP, {.__reserved_3 = 1}},
		{"small", E2BIG, {.size = 63}},
		{"huge", E2BIG, {.size = 4097}},
		{"no point", ENOENT, {.type = PERFRING_SOFT_TYPE, .config = 99}},
		{"page-faults", ENOENT, {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS}},
		{"upper config", ENOENT, {.type = PERF_TYPE_SOFTWARE, .config = UINT64_C(1) << 32}},
		{"hardware", ENOENT, {.type = PERF_TYPE_RAW, .config = 1}},
		{"max stack", EOVERFLOW, {.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_max_stack = 128}},
		{"branch stack", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_BRANCH_STACK}},
		{"data_src", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_DATA_SRC}},
		{"phys_addr", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_PHYS_ADDR}},
		{"aux", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_AUX}},
		{"cgroup id", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_CGROUP}},
		{"weight", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_WEIGHT}},
		{"regs_intr", EOPNOTSUPP, {.sample_type = PERF_SAMPLE_REGS_INTR, .sample_regs_intr = 1}},
		{"inherit in a thread", EOPNOTSUPP, {.inherit = 1}},
		{"inherit_stat", EOPNOTSUPP, {.inherit_stat = 1}},
		{"enable_on_exec", EOPNOTSUPP, {.enable_on_exec = 1}},
		{"context_switch", EOPNOTSUPP, {.context_switch = 1}},
		{"write_backward", EOPNOTSUPP, {.write_backward = 1}},
		{"namespaces", EOPNOTSUPP, {.namespaces = 1}},
		{"ksymbol", EOPNOTSUPP, {.ksymbol = 1}},
		{"bpf_event", EOPNOTSUPP, {.bpf_event = 1}},
		{"aux_output", EOPNOTSUPP, {.aux_output = 1}},
		{"cgroup", EOPNOTSUPP, {.cgroup = 1}},
		{"text_poke", EOPNOTSUPP, {.text_poke = 1}},
		{"sigtrap, right", EOPNOTSUPP, {.sigtrap = 1, .remove_on_exec = 1}},
	};
	struct perfring_soft_point *point = perfring_soft_define("refused");
	struct perfring_soft_event *event;
	struct perf_event_attr attr;
	unsigned char large[4097] = {0};
	uint64_t flags;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		attr = refusals[i].attr;
		if (!attr.type) {
			attr.type = point->type;
			attr.config = point->config;
		}
		if (!attr.size)
			attr.size = sizeof(attr);
		event = (void *)&attr;
		cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -refusals[i].error, "%s",
			     refusals[i].what);
		cr_assert_null(event);
	}

	attr = attr_of(point);
	cr_assert_eq(perfring_soft_open(&event, &attr, 2, NULL), -EINVAL, "scope");

	/* Flags that this header has no names for: bits 38, 39 belong to newer kernels, 40 to none. */
	for (int bit = 38; bit <= 40; bit++) {
		attr = attr_of(point);
		flags = UINT64_C(1) << bit;
		memcpy((unsigned char *)&attr + 40, &flags, sizeof(flags));
		cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL),
			     bit == 40 ? -EINVAL : -EOPNOTSUPP, "bit %d", bit);
	}

	/* Sizes: bytes that nobody knows must be 0. */
	attr = attr_of(point);
	attr.size = 4096;
	memcpy(large, &attr, sizeof(attr));
	cr_assert_eq(perfring_soft_open(&event, (void *)large, PERFRING_SOFT_THREAD, NULL), 0);
	perfring_soft_close(event);
	large[144] = 1;
	cr_assert_eq(perfring_soft_open(&event, (void *)large, PERFRING_SOFT_THREAD, NULL), -E2BIG);
	large[144] = 0;
	large[143] = 1; /* config4, which software events do not look at */
	cr_assert_eq(perfring_soft_open(&event, (void *)large, PERFRING_SOFT_THREAD, NULL), 0);
	perfring_soft_close(event);
	attr.size = 0; /* 64: what is behind is not looked at */
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 4;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	perfring_soft_close(event);

	/* docs/abi.md 1.5: whose values a thread's READ has, TID tells. */
	attr = attr_of(point);
	attr.sample_type = PERF_SAMPLE_READ;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), -EINVAL);
	attr.sample_type |= PERF_SAMPLE_TID;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	perfring_soft_close(event);
	cr_assert_eq(point->active, 0);
}

#if defined(__x86_64__)
Test(soft, refuses_registers_that_are_not_there)
{
	struct perf_event_attr attr = attr_of(perfring_soft_define("registers"));
	struct perfring_soft_event *event;

	attr.sample_type = PERF_SAMPLE_REGS_USER;
	for (int bit = 0; bit < 64; bit++) {
		int expected = bit >= 32 ? -EOPNOTSUPP : ALL_REGS >> bit & 1 ? 0 : -EINVAL;

		attr.sample_regs_user = UINT64_C(1) << bit;
		cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), expected, "bit %d", bit);
		perfring_soft_close(event);
	}
}
#endif

Test(soft, accepts_what_changes_nothing)
{
	struct perfring_soft_point *point = perfring_soft_define("accepted");
	struct perfring_soft_event *event;
	struct perf_event_attr attr = attr_of(point);

	attr.pinned = attr.exclusive = attr.exclude_kernel = attr.exclude_hv = attr.exclude_idle = 1;
	attr.exclude_host = attr.exclude_guest = attr.comm_exec = attr.remove_on_exec = attr.inherit = 1;
	attr.inherit_thread = 1;
	attr.precise_ip = 3;
	attr.aux_watermark = 4096;
	attr.sample_max_stack = 500; /* without CALLCHAIN */
	attr.sample_stack_user = 3;  /* without STACK_USER */
	attr.clockid = -5;           /* without use_clockid */
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	raise_times(point, 3);
	cr_assert_eq(value(event), 3);
	perfring_soft_close(event);
	for (int clock = 0; clock < 12; clock++) {
		attr = attr_of(point);
		attr.use_clockid = 1;
		attr.clockid = clock;
		cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL),
			     clock == 0 || clock == 1 || clock == 4 || clock == 7 || clock == 11 ? 0 : -EINVAL,
			     "clock %d", clock);
		perfring_soft_close(event);
	}
}

Test(soft, limits_are_the_kernels_unless_said)
{
	struct perf_event_attr attr = attr_of(perfring_soft_define("limits"));
	struct perfring_soft_event *event;

	cr_assert_eq(perfring_soft_limits(0, 250), -EINVAL);
	cr_assert_eq(perfring_soft_limits(1000, 0), -EINVAL);
	cr_assert_eq(perfring_soft_limits(1000, 1000000001), -EINVAL);
	attr.freq = 1;
	attr.sample_freq = 100000;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_set_period(event, 100001), -EINVAL);
	cr_assert_eq(perfring_soft_limits(1000, 100), 0);
	cr_assert_eq(perfring_soft_set_period(event, 1001), -EINVAL);
	cr_assert_eq(perfring_soft_set_period(event, 1000), 0);
	cr_assert_eq(perfring_soft_set_period(event, 0), -EINVAL);
	perfring_soft_close(event);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -EINVAL);
}

/* ---- sampling, through the whole of it ---- */

Test(soft, periods_give_the_kernels_samples)
{
	static const int expected[] = {100, 50, 33, 25, 20, 16, 14}; /* docs/abi.md 15 */
	struct perfring_soft_point *point = perfring_soft_define("periods");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event;

	for (unsigned period = 1; period <= 7; period++) {
		attr.sample_period = period;
		event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
		cr_assert_null(perfring_soft_rings(event));
		cr_assert_eq(perfring_soft_map(event, 3, -1), -EINVAL, "no power of two");
		cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
		cr_assert_eq(perfring_soft_map(event, 4, -1), -EINVAL, "twice");
		raise_times(point, 100);
		cr_assert_eq(value(event), 100);
		cr_assert_eq(drain_ids(event, 0, NULL), expected[period - 1], "period %u", period);
		perfring_soft_close(event);
	}
}

/* docs/abi.md 9.2: off and on again keeps what was gone of a period; a new period begins at once, or with the next reload. */
Test(soft, a_period_changes_as_in_the_kernel)
{
	struct perfring_soft_point *point = perfring_soft_define("set_period");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event;

	attr.sample_period = 10;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
	raise_times(point, 9);
	perfring_soft_disable(event, false);
	raise_times(point, 9);
	perfring_soft_enable(event, false);
	cr_assert_eq(drain_ids(event, 0, NULL), 0);
	raise_times(point, 1);
	cr_assert_eq(drain_ids(event, 0, NULL), 1, "the tenth that counted");

	cr_assert_eq(perfring_soft_set_period(event, 0), -EINVAL);
	cr_assert_eq(perfring_soft_set_period(event, UINT64_C(1) << 63), -EINVAL);
	cr_assert_eq(perfring_soft_set_period(event, 3), 0);
	raise_times(point, 1);
	/* V was 0: (1 + L) div L with L still 10 is one overflow, and V becomes -9. */
	cr_assert_eq(drain_ids(event, 0, NULL), 1);
	raise_times(point, 8);
	cr_assert_eq(drain_ids(event, 0, NULL), 0);
	raise_times(point, 1);
	cr_assert_eq(drain_ids(event, 0, NULL), 1);
	raise_times(point, 9);
	cr_assert_eq(drain_ids(event, 0, NULL), 3, "threes from here on");
	cr_assert_eq(perfring_soft_set_period(event, 5), 0);
	perfring_soft_disable(event, false);
	perfring_soft_enable(event, false);
	raise_times(point, 4);
	cr_assert_eq(drain_ids(event, 0, NULL), 0, "being enabled is a reload: V is -5");
	raise_times(point, 1);
	cr_assert_eq(drain_ids(event, 0, NULL), 1);
	perfring_soft_close(event);

	event = count_point(point, PERFRING_SOFT_THREAD);
	cr_assert_eq(perfring_soft_set_period(event, 3), -EINVAL, "it does not sample");
	perfring_soft_close(event);
}

/* Each thread's occurrences give the frequency, from its second on. */
Test(soft, a_new_thread_finds_the_frequencys_period)
{
	struct perfring_soft_point *point = perfring_soft_define("freq");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event;
	struct worker worker;

	attr.freq = 1;
	attr.sample_freq = 1;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 16, -1), 0);
	raise_times(point, 100000);
	cr_assert_leq(drain_ids(event, 0, NULL), 3);
	begin(&worker, point);
	tell(&worker, JOIN, 0);
	tell(&worker, RAISE, 5);
	cr_assert_eq(drain_ids(event, 0, NULL), 1);
	end(&worker);
	perfring_soft_close(event);
}

Test(soft, refresh_stops_after_so_many)
{
	struct perfring_soft_point *point = perfring_soft_define("refresh"),
				   *other = perfring_soft_define("refresh:sib");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event, *sibling;
	uint64_t words[2], again[2];

	attr.disabled = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
	attr = attr_of(other);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	sibling = open_event(&attr, PERFRING_SOFT_THREAD, event);
	cr_assert_eq(perfring_soft_refresh(event, 5), 0);
	cr_assert_eq(other->active, 1);
	raise_times(point, 20);
	cr_assert_eq(value(event), 5); /* docs/abi.md 9.5 */
	cr_assert_eq(drain_ids(event, 0, NULL), 5);
	cr_assert_eq(point->active, 0);
	cr_assert_eq(other->active, 0, "nor does the group");
	raise_times(other, 1);
	cr_assert_eq(perfring_soft_read(sibling, words, 16), 16);
	cr_assert_eq(words[0], 0);
	burn(1000000);
	cr_assert_eq(perfring_soft_read(sibling, again, 16), 16);
	cr_assert_eq(again[1], words[1], "its time stands");

	cr_assert_eq(perfring_soft_refresh(event, 2), 0);
	cr_assert_eq(perfring_soft_refresh(event, 1), 0);
	raise_times(point, 20);
	cr_assert_eq(value(event), 8);
	cr_assert_eq(perfring_soft_refresh(event, 0), 0);
	raise_times(point, 20);
	cr_assert_eq(value(event), 28, "0 just enables");
	cr_assert_eq(perfring_soft_refresh(sibling, 1), -EINVAL, "it does not sample");
	perfring_soft_close(event);
	perfring_soft_close(sibling);
	attr = attr_sampling(point);
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_refresh(event, 1), -EINVAL, "as an inherited one");
	perfring_soft_close(event);
}

Test(soft, each_thread_has_a_ring_and_an_id)
{
	struct perfring_soft_point *point = perfring_soft_define("ids");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event, *other;
	uint64_t id, mine = 0, early_id = 0, late_id = 0;
	struct perfring_set_ring *member;
	struct worker early, late, strange;
	uint32_t tids[3];
	int n = 0;

	begin(&early, point);
	begin(&late, point);
	begin(&strange, point);
	tell(&early, JOIN, 0);
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	other = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	id = perfring_soft_id(event);
	cr_assert_neq(id, 0);
	cr_assert_neq(id, perfring_soft_id(other));
	raise_times(point, 1);
	cr_assert_eq(perfring_soft_lost(event), 0, "no ring: nowhere to go, and not lost");
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	tell(&late, JOIN, 0);
	for (member = NULL; (member = perfring_set_next(perfring_soft_rings(event), member)); n++)
		tids[n] = member->tid;
	cr_assert_eq(n, 3);
	cr_assert_eq(tids[2], late.tid);
	cr_assert((tids[0] == early.tid && tids[1] == (uint32_t)syscall(SYS_gettid)) ||
		  (tids[1] == early.tid && tids[0] == (uint32_t)syscall(SYS_gettid)));

	raise_times(point, 1);
	cr_assert_eq(drain_ids(event, id, &mine), 1);
	cr_assert_eq(mine, id, "in the thread that opened it");
	tell(&early, RAISE, 2);
	cr_assert_eq(drain_ids(event, id, &early_id), 2);
	tell(&late, RAISE, 3);
	cr_assert_eq(drain_ids(event, id, &late_id), 3);
	cr_assert_neq(early_id, id);
	cr_assert_neq(late_id, id);
	cr_assert_neq(late_id, early_id);
	tell(&strange, RAISE, 7);
	cr_assert_eq(drain_ids(event, 0, NULL), 0);
	cr_assert_eq(perfring_soft_lost(event), 7);

	/* 24-byte records: 170 fit into a page (docs/abi.md 15). */
	tell(&late, RAISE, 200);
	cr_assert_eq(perfring_soft_lost(event), 37);
	end(&late);
	cr_assert_eq(perfring_soft_lost(event), 37);
	cr_assert_eq(drain_ids(event, id, NULL), 170, "unread when its thread ended");
	for (n = 0, member = NULL; (member = perfring_set_next(perfring_soft_rings(event), member)); n++)
		;
	cr_assert_leq(n, 3);
	for (n = 0, member = NULL; (member = perfring_set_next(perfring_soft_rings(event), member)); n++)
		;
	cr_assert_eq(n, 2, "drained and freed");
	cr_assert_eq(value(event), 1 + 1 + 2 + 3 + 7 + 200);
	end(&early);
	end(&strange);

	/* Who has opened it and comes again is another. */
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_join(), 0);
	raise_times(point, 1);
	cr_assert_eq(drain_ids(event, id, &mine), 1);
	cr_assert_neq(mine, id);
	perfring_soft_close(event);
	perfring_soft_close(other);
}

/* Whether the eventfd was written; the reader is armed before each step. */
static bool woken_by(struct perfring_soft_event *event, struct perfring_soft_point *point, int n, int fd)
{
	const struct perfring_ring *ring = &perfring_set_next(perfring_soft_rings(event), NULL)->ring;
	uint64_t wakes;

	cr_assert_not(perfring_wakeup_arm(ring, ring->page->data_head, PERFRING_WAKEUP_EVENTFD));
	raise_times(point, n);
	perfring_wakeup_poll(ring);
	perfring_wakeup_disarm(ring);
	return read(fd, &wakes, 8) == 8;
}

Test(soft, wakes_as_the_attr_says)
{
	struct perfring_soft_point *point = perfring_soft_define("wakes");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event;
	int fd = eventfd(0, EFD_NONBLOCK);

	attr.wakeup_events = 4;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, fd), 0);
	cr_assert_not(woken_by(event, point, 3, fd));
	cr_assert(woken_by(event, point, 1, fd));
	cr_assert_not(woken_by(event, point, 3, fd));
	cr_assert(woken_by(event, point, 1, fd));
	perfring_soft_close(event);

	attr.watermark = 1;
	attr.wakeup_watermark = 100; /* docs/abi.md 15: 24-byte records wake at 120 */
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, fd), 0);
	cr_assert_not(woken_by(event, point, 4, fd));
	cr_assert(woken_by(event, point, 1, fd));
	perfring_soft_close(event);
	close(fd);
}

/* ---- redirection: docs/abi.md 7.9 ---- */

Test(soft, writes_into_anothers_rings)
{
	struct perfring_soft_point *a = perfring_soft_define("output:a"), *b = perfring_soft_define("output:b");
	struct perf_event_attr attr = attr_sampling(a);
	struct perfring_soft_event *target, *event, *thread, *clocked, *second;
	struct worker before, behind;

	begin(&before, b);
	begin(&behind, b);
	tell(&before, JOIN, 0);
	/* Opened first: in a thread that joins later its turn comes last, and once first. */
	attr = attr_sampling(b);
	second = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	attr = attr_sampling(a);
	target = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	attr = attr_sampling(b);
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	thread = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	clocked = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);

	cr_assert_eq(perfring_soft_set_output(event, target), -EINVAL, "not mapped");
	cr_assert_eq(perfring_soft_map(target, 4, -1), 0);
	cr_assert_eq(perfring_soft_set_output(target, target), -EINVAL, "itself");
	cr_assert_eq(perfring_soft_set_output(thread, target), -EINVAL, "scope");
	cr_assert_eq(perfring_soft_set_output(clocked, target), -EINVAL, "clock");
	cr_assert_eq(perfring_soft_set_output(event, target), 0);
	cr_assert_eq(perfring_soft_set_output(second, target), 0);
	cr_assert_eq(perfring_soft_map(event, 4, -1), -EINVAL, "it writes into another's");
	cr_assert_eq(perfring_soft_set_output(clocked, event), -EINVAL, "no rings of its own");
	tell(&behind, JOIN, 0);

	raise_times(a, 1);
	raise_times(b, 2);
	cr_assert_eq(drain_ids(target, 0, NULL), 5);
	raise_times(b, 2);
	tell(&before, RAISE, 30);
	tell(&behind, RAISE, 100);
	cr_assert_eq(drain_ids(target, perfring_soft_id(event), NULL), 132);
	tell(&before, RAISE, 30);
	tell(&behind, RAISE, 100);
	cr_assert_eq(drain_ids(target, perfring_soft_id(second), NULL), 130);
	end(&behind);

	/* Full: each counts what was refused of it. */
	cr_assert_eq(perfring_soft_set_output(second, NULL), 0);
	raise_times(b, 683); /* 682 fit into four pages */
	cr_assert_eq(perfring_soft_lost(event), 1);
	cr_assert_eq(perfring_soft_lost(target), 0);
	raise_times(a, 2);
	cr_assert_eq(perfring_soft_lost(target), 2);
	drain_ids(target, 0, NULL);

	cr_assert_eq(perfring_soft_set_output(event, NULL), 0);
	raise_times(b, 1);
	cr_assert_eq(drain_ids(target, 0, NULL), 0, "nowhere");
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	cr_assert_eq(perfring_soft_set_output(event, target), -EINVAL, "it has rings");
	raise_times(b, 1);
	cr_assert_eq(drain_ids(event, 0, NULL), 1);

	cr_assert_eq(perfring_soft_set_output(second, target), 0);
	raise_times(b, 1);
	cr_assert_eq(drain_ids(target, 0, NULL), 1);
	perfring_soft_close(target);
	raise_times(b, 1);
	tell(&before, RAISE, 1);
	cr_assert_eq(perfring_soft_lost(second), 0);
	cr_assert_eq(perfring_soft_map(second, 1, -1), 0, "free to have its own");
	raise_times(b, 1);
	cr_assert_eq(drain_ids(second, 0, NULL), 1);
	end(&before);
	perfring_soft_close(event);
	perfring_soft_close(second);
	perfring_soft_close(thread);
	perfring_soft_close(clocked);
}

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

Test(soft, handlers_on_top_of_raises_lose_nothing)
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
Test(soft, handlers_turn_events_on_and_off)
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
Test(soft, times_never_go_back)
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
Test(soft, what_was_read_of_a_thread_stays)
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

Test(soft, a_siblings_clock_goes_on)
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
Test(soft, a_refresh_is_spent_at_once)
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
Test(soft, events_come_and_go_while_others_raise)
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

Test(soft, a_forks_child_has_nothing)
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

Test(soft, forks_while_others_open_and_close)
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
	for (int i = 0; i < 100; i++) {
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

Test(soft, a_vforks_child_raises_as_its_parent)
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

/* ---- an object that raises, and is unloaded ---- */

/* Its strings go away with it; the point, and what listens there, stay. */
Test(soft, a_points_name_is_its_own)
{
	char *name = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct perfring_soft_point *point;
	struct perfring_soft_event *event;

	cr_assert(name != MAP_FAILED);
	strcpy(name, "object:done");
	point = perfring_soft_define(name);
	event = count_point(point, PERFRING_SOFT_PROCESS);
	raise_times(point, 2);
	cr_assert_eq(munmap(name, 4096), 0);
	cr_assert_str_eq(point->name, "object:done");
	cr_assert_eq(perfring_soft_define("object:done"), point, "loaded again, it raises at the same");
	cr_assert_eq(perfring_soft_point_of(PERFRING_SOFT_TYPE, point->config), point);
	raise_times(point, 3);
	cr_assert_eq(value(event), 5);
	perfring_soft_close(event);
}

/* ---- a group is throttled as one (docs/abi.md 9.6, since 6.16) ---- */

static unsigned throttled[2], throttle_samples[2]; /* THROTTLE, UNTHROTTLE; of the leader, of its sibling */

static void drain_throttles(struct perfring_soft_event *leader)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = perfring_set_next(perfring_soft_rings(leader), NULL);
	uint64_t words[4];

	cr_assert_geq(perfring_reader_observe(&member->reader), 0);
	while (perfring_reader_next(&member->reader, &record) == 1) {
		memcpy(words, record, record->type == PERF_RECORD_SAMPLE ? 16 : 32);
		if (record->type == PERF_RECORD_SAMPLE) {
			throttle_samples[words[1] != perfring_soft_id(leader)]++;
			continue;
		}
		cr_assert(record->type == PERF_RECORD_THROTTLE || record->type == PERF_RECORD_UNTHROTTLE);
		throttled[record->type == PERF_RECORD_UNTHROTTLE]++;
		cr_assert_eq(words[2], perfring_soft_id(leader));
		cr_assert_eq(words[3], perfring_soft_id(leader));
	}
	perfring_reader_return(&member->reader);
}

Test(soft, a_group_is_throttled_as_one)
{
	struct perfring_soft_point *point = perfring_soft_define("throttled"), *other = perfring_soft_define("other");
	struct perf_event_attr attr = attr_sampling(point), of_other = attr_sampling(other);
	struct perfring_soft_event *leader, *sibling;
	struct timespec pause = {0, 10000000};

	attr.sample_type = of_other.sample_type = PERF_SAMPLE_ID;
	cr_assert_eq(perfring_soft_limits(40, 1), 0);
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	sibling = open_event(&of_other, PERFRING_SOFT_THREAD, leader);
	cr_assert_eq(perfring_soft_map(leader, 4, -1), 0);
	cr_assert_eq(perfring_soft_set_output(sibling, leader), 0);
	while (now_of(CLOCK_MONOTONIC_COARSE) % 1000000000 > 800000000) /* not at the end of a tick */
		nanosleep(&pause, NULL);
	perfring_soft_raise(other, 100, 0, NULL, 0);
	perfring_soft_raise(point, 100, 0, NULL, 0);
	perfring_soft_raise(other, 100, 0, NULL, 0);
	drain_throttles(leader);
	cr_assert_eq(throttled[0], 1);
	cr_assert_eq(throttled[1], 0);
	cr_assert_eq(throttle_samples[0], 0);
	cr_assert_eq(throttle_samples[1], 40);
	for (int i = 0; i < 300 && !throttled[1]; i++) {
		nanosleep(&pause, NULL);
		raise_times(point, 1);
		drain_throttles(leader);
	}
	raise_times(other, 1);
	drain_throttles(leader);
	cr_assert_eq(throttled[0], 1);
	cr_assert_eq(throttled[1], 1);
	cr_assert_eq(throttle_samples[0], 1);
	cr_assert_eq(throttle_samples[1], 41);
	cr_assert_eq(value(sibling), 201);
	perfring_soft_close(sibling);
	perfring_soft_close(leader);
	cr_assert_eq(perfring_soft_limits(100000, 250), 0);
}

/* ---- as many threads as can ---- */

static pthread_mutex_t crowd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crowd_changed = PTHREAD_COND_INITIALIZER;
static int crowd_joined, crowd_refused, crowd_may_go;

static void *stand_in_the_crowd(void *of)
{
	int ret = perfring_soft_join();

	raise_times(of, 1);
	pthread_mutex_lock(&crowd_lock);
	crowd_joined += !ret;
	crowd_refused += ret == -EUSERS;
	pthread_cond_broadcast(&crowd_changed);
	while (!crowd_may_go)
		pthread_cond_wait(&crowd_changed, &crowd_lock);
	pthread_mutex_unlock(&crowd_lock);
	return NULL;
}

Test(soft, no_more_than_4096_threads)
{
	struct perfring_soft_point *point = perfring_soft_define("crowd");
	struct perf_event_attr attr = attr_of(point);
	struct perfring_soft_event *event = count_point(point, PERFRING_SOFT_PROCESS);
	static pthread_t threads[4100];
	pthread_attr_t small;
	int i, made, ret = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (made = 0; made < 4100; made++) {
		ret = pthread_create(&threads[made], &small, stand_in_the_crowd, point);
		if (ret)
			break;
	}
	pthread_mutex_lock(&crowd_lock);
	while (crowd_joined + crowd_refused < made)
		pthread_cond_wait(&crowd_changed, &crowd_lock);
	i = crowd_refused;
	perfring_soft_leave();
	if (made == 4100) { /* our place may be taken by nobody else now */
		cr_assert_eq(crowd_joined, 4095, "and this one");
		cr_assert_eq(i, 5);
		cr_assert_eq(perfring_soft_join(), 0);
		cr_assert_eq(value(event), 4100, "unknown_ids are counted");
	}
	crowd_may_go = 1;
	pthread_cond_broadcast(&crowd_changed);
	pthread_mutex_unlock(&crowd_lock);
	for (i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
	if (made < 4100)
		cr_skip_test("SKIP-ENV: pthread_create: %s: room for 4100 threads", strerror(ret));
	cr_assert_eq(value(event), 4100);
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

Test(soft, a_thread_may_be_ended_in_a_raise)
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
Test(soft, leave_is_the_way_back_from_a_jump)
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
