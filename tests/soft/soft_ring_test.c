/* soft_ring_test.c - samples of the process's own software events: periods, rings, ids, wakeups, throttling. */
#include "soft_rig.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/snapshot.h>
#include <perfring/soft.h>
#include <perfring/wakeup.h>
#include "machine.h"
#include "test.h"

TestSuite(soft_ring, .timeout = 60);

/* ---- sampling, through the whole of it ---- */

Test(soft_ring, periods_give_the_kernels_samples)
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
Test(soft_ring, a_period_changes_as_in_the_kernel)
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
Test(soft_ring, a_new_thread_finds_the_frequencys_period)
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

Test(soft_ring, refresh_stops_after_so_many)
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

Test(soft_ring, each_thread_has_a_ring_and_an_id)
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

Test(soft_ring, wakes_as_the_attr_says)
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

Test(soft_ring, writes_into_anothers_rings)
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

/* ---- ids of the caller's choice ---- */

Test(soft_ring, has_the_id_that_it_is_given)
{
	struct perfring_soft_point *a = perfring_soft_define("id:a"), *b = perfring_soft_define("id:b");
	struct perf_event_attr attr = attr_sampling(a);
	struct perfring_soft_event *first, *second;
	struct worker before, behind;
	struct perf_event_attr described;
	uint64_t id;

	begin(&before, b);
	tell(&before, JOIN, 0);
	first = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	attr = attr_sampling(b);
	second = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_set_id(first, 0), -EINVAL, "no id");
	cr_assert_eq(perfring_soft_set_id(first, 1), 0);
	cr_assert_eq(perfring_soft_set_id(second, 2), 0);
	cr_assert_eq(perfring_soft_id(second), 2);
	cr_assert_eq(perfring_soft_map(first, 1, -1), 0);
	cr_assert_eq(perfring_soft_set_output(second, first), 0);
	cr_assert_eq(perfring_soft_set_id(first, 3), -EINVAL, "its rings are described by its id");
	cr_assert_eq(perfring_soft_set_id(second, 3), -EINVAL, "there are records with it");
	cr_assert(perfring_ring_attr(&perfring_set_next(perfring_soft_rings(first), NULL)->ring, &described, &id));
	cr_assert_eq(id, 1);

	/* In threads that joined before and later. */
	begin(&behind, b);
	tell(&behind, JOIN, 0);
	raise_times(a, 3);
	cr_assert_eq(drain_ids(first, 1, NULL), 3);
	raise_times(b, 4);
	tell(&before, RAISE, 5);
	tell(&behind, RAISE, 6);
	cr_assert_eq(drain_ids(first, 2, NULL), 15);
	end(&before);
	end(&behind);
	perfring_soft_close(second);
	perfring_soft_close(first);
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

/* What a ring holds now, from old to new: samples of addr only. */
static unsigned copy_addrs(const struct perfring_ring *ring, uint64_t *addrs, unsigned max)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	unsigned n = 0;

	cr_assert_eq(perfring_snapshot_take(&snapshot, ring, 0), 0);
	for (; perfring_snapshot_next(&snapshot, &record) == 1; n++)
		if (n < max)
			memcpy(&addrs[n], record + 1, sizeof(addrs[n]));
	perfring_snapshot_close(&snapshot);
	return n;
}

Test(soft_ring, write_backward_keeps_the_newest)
{
	struct perfring_soft_point *point = perfring_soft_define("backward");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event, *forward, *state;
	struct perfring_set_ring *ring;
	static uint64_t addrs[1024];
	struct worker worker;
	unsigned n, comms;

	attr.sample_type = PERF_SAMPLE_ADDR;
	attr.write_backward = 1;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	for (uint64_t i = 0; i < 1000; i++)
		perfring_soft_raise(point, 1, i, NULL, 0);
	ring = perfring_set_next(perfring_soft_rings(event), NULL);
	n = copy_addrs(&ring->ring, addrs, 1024);
	cr_assert_eq(n, 4096 / 16);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(addrs[i], 1000 - n + i);
	cr_assert_eq(perfring_soft_lost(event), 0);
	cr_assert_eq(value(event), 1000);

	attr.write_backward = 0;
	forward = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_set_output(forward, event), -EINVAL, "the kernel mixes them neither");
	perfring_soft_close(forward);
	attr.write_backward = 1;
	forward = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_set_output(forward, event), 0);
	perfring_soft_close(forward);

	/* A thread's ring stays when it has left, until the reader is done with it. */
	begin(&worker, point);
	tell(&worker, JOIN, 0);
	tell(&worker, RAISE, 3);
	end(&worker);
	ring = perfring_set_next(perfring_soft_rings(event), ring);
	for (unsigned walk = 0; walk < 3; walk++) {
		cr_assert(ring->left && !ring->drained);
		cr_assert_eq(copy_addrs(&ring->ring, addrs, 3), 3);
		cr_assert_eq(perfring_set_next(perfring_soft_rings(event), NULL)->number, 0);
		ring = perfring_set_next(perfring_soft_rings(event),
					 perfring_set_next(perfring_soft_rings(event), NULL));
	}
	ring->drained = true;
	ring = perfring_set_next(perfring_soft_rings(event), NULL);
	cr_assert_null(perfring_set_next(perfring_soft_rings(event), ring));
	perfring_soft_close(event);

	/* What was written may be gone, so all of it comes again. */
	attr = (struct perf_event_attr){
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
	attr.comm = attr.write_backward = 1;
	state = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(state, 1, -1), 0);
	comms = (unsigned)perfring_soft_put_state(state);
	cr_assert_geq(comms, 1);
	cr_assert_eq(perfring_soft_put_state(state), (int)comms);
	ring = perfring_set_next(perfring_soft_rings(state), NULL);
	cr_assert_eq(copy_addrs(&ring->ring, addrs, 1024), 2 * comms);
	perfring_soft_close(state);
}

Test(soft_ring, a_group_is_throttled_as_one)
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
