/* soft_test.c - points, events and groups of the process's own software events: what is refused, counted and read. */
#include "soft_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <perfring/soft.h>
#include "machine.h"
#include "test.h"

TestSuite(soft, .timeout = 60);

enum {
	FORMAT_LOST = 16
};

/* ---- helpers ---- */

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
		{"alignment-faults", EOPNOTSUPP, {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_ALIGNMENT_FAULTS}},
		{"emulation-faults", EOPNOTSUPP, {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_EMULATION_FAULTS}},
		{"bpf-output", EOPNOTSUPP, {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT}},
		{"cgroup-switches", EOPNOTSUPP, {.type = PERF_TYPE_SOFTWARE, .config = 11}},
		{"no such software event", ENOENT, {.type = PERF_TYPE_SOFTWARE, .config = 12}},
		{"sampled faults", EOPNOTSUPP,
		 {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .sample_period = 1}},
		{"faults of the kernel", EOPNOTSUPP,
		 {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .exclude_user = 1}},
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
#if defined(__x86_64__)
		{"xmm registers", EOPNOTSUPP,
		 {.sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = UINT64_C(3) << 32}},
#endif
		{"enable_on_exec", EOPNOTSUPP, {.enable_on_exec = 1}},
		{"context_switch", EOPNOTSUPP, {.context_switch = 1}},
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
	char text[256];
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
		cr_assert_eq(perfring_soft_explain(&attr, text, sizeof(text)), (int64_t)strlen(text));
		if (refusals[i].error == EOPNOTSUPP)
			cr_assert(strchr(text, ':'), "%s: %s", refusals[i].what, text);
	}
	attr = attr_of(point);
	attr.enable_on_exec = 1;
	cr_assert_eq(perfring_soft_explain(&attr, text, 4), 80);
	cr_assert_str_eq(text, "ena", "like snprintf");

	attr = attr_of(point);
	cr_assert_eq(perfring_soft_open(&event, &attr, 2, NULL), -EINVAL, "scope");
	cr_assert_eq(perfring_soft_explain(&attr, text, sizeof(text)), 0);
	cr_assert_str_eq(text, "");

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
