/* waits_test.c - which threads are off their CPUs: from a switch to the return, preempted ones, those that never return. */
#include "test.h"

#include <errno.h>
#include <perfring/waits.h>

TestSuite(waits, .timeout = 60);

static struct perfring_waits *waits;

static int begin(uint32_t tid, uint64_t time)
{
	return perfring_waits_begin(waits, &(struct perfring_wait){.tid = tid, .begin = time, .own = {tid * 10}});
}

static const struct perfring_wait *take(uint32_t type, uint16_t misc, uint32_t tid)
{
	struct perfring_record record = {.type = type, .misc = misc, .trailer = {.present = PERFRING_SAMPLE_TID, .tid = tid}};

	return perfring_waits_take(waits, &record);
}

Test(waits, end_with_the_return)
{
	const struct perfring_wait *ended;

	cr_assert_eq(perfring_waits_open(&waits), 0);
	cr_assert_eq(begin(7, 100), 0);
	cr_assert(perfring_waits_find(waits, 7) && perfring_waits_find(waits, 7)->begin == 100);
	cr_assert_null(take(PERFRING_RECORD_SWITCH, PERFRING_RECORD_MISC_SWITCH_OUT, 7));
	cr_assert_null(take(PERFRING_RECORD_SWITCH, 0, 8), "another thread returns");
	cr_assert_null(take(PERFRING_RECORD_EXIT, 0, 7), "not a switch");
	ended = take(PERFRING_RECORD_SWITCH, 0, 7);
	cr_assert(ended && ended->tid == 7 && ended->begin == 100 && !ended->is_ready && ended->own[0] == 70);
	cr_assert_null(perfring_waits_find(waits, 7));
	cr_assert_null(take(PERFRING_RECORD_SWITCH, 0, 7), "it runs already");
	perfring_waits_close(waits);
}

Test(waits, preempted_threads_are_ready)
{
	const struct perfring_wait *ended;

	cr_assert_eq(perfring_waits_open(&waits), 0);
	cr_assert_eq(begin(7, 100), 0);
	cr_assert_null(take(PERFRING_RECORD_SWITCH_CPU_WIDE, PERFRING_RECORD_MISC_SWITCH_OUT | PERFRING_RECORD_MISC_SWITCH_OUT_PREEMPT, 7));
	ended = take(PERFRING_RECORD_SWITCH_CPU_WIDE, 0, 7);
	cr_assert(ended && ended->is_ready);
	cr_assert_eq(begin(7, 200), 0);
	ended = take(PERFRING_RECORD_SWITCH_CPU_WIDE, 0, 7);
	cr_assert(ended && !ended->is_ready && ended->begin == 200, "the next wait is another one");
	perfring_waits_close(waits);
}

/* A thread's last switch comes after its EXIT; later its number is another's. */
Test(waits, ended_threads_do_not_wait)
{
	const struct {
		uint32_t type;
		uint16_t misc;
	} news[] = {{PERFRING_RECORD_FORK, 0}, {PERFRING_RECORD_COMM, PERFRING_RECORD_MISC_COMM_EXEC}};

	cr_assert_eq(perfring_waits_open(&waits), 0);
	for (int i = 0; i < 2; i++) {
		struct perfring_record record = {.type = PERFRING_RECORD_EXIT, .is.exit.tid = 7};

		cr_assert_null(perfring_waits_take(waits, &record));
		cr_assert_eq(begin(7, 100), 0);
		cr_assert_null(perfring_waits_find(waits, 7));
		cr_assert_null(perfring_waits_next(waits));
		record = (struct perfring_record){.type = news[i].type, .misc = news[i].misc};
		if (news[i].type == PERFRING_RECORD_FORK)
			record.is.fork.tid = 7;
		else
			record.is.comm.tid = 7;
		cr_assert_null(perfring_waits_take(waits, &record));
		cr_assert_eq(begin(7, 200), 0);
		cr_assert(perfring_waits_find(waits, 7) && perfring_waits_find(waits, 7)->begin == 200);
	}
	cr_assert_eq(begin(0, 100), 0);
	cr_assert_eq(begin(UINT32_MAX, 100), 0);
	cr_assert(!perfring_waits_find(waits, 0) && !perfring_waits_find(waits, UINT32_MAX), "an idle CPU; a thread without a number");
	perfring_waits_close(waits);
}

Test(waits, that_do_not_end)
{
	static const uint32_t tids[] = {9, 3, 5};
	const struct perfring_wait *wait;
	struct perfring_record record = {.type = PERFRING_RECORD_SWITCH}; /* whose thread is not known */

	cr_assert_eq(perfring_waits_open(&waits), 0);
	cr_assert_null(perfring_waits_next(waits));
	cr_assert_eq(begin(1, 0), -EINVAL);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(begin(tids[i], 100), 0);
	cr_assert_null(perfring_waits_take(waits, &record));
	cr_assert_not_null(take(PERFRING_RECORD_SWITCH, 0, 5));
	wait = perfring_waits_next(waits);
	cr_assert(wait && wait->tid == 3);
	cr_assert_eq(begin(1, 300), 0);
	wait = perfring_waits_next(waits);
	cr_assert(wait && wait->tid == 1 && wait->begin == 300, "it began later, and is the lowest");
	wait = perfring_waits_next(waits);
	cr_assert(wait && wait->tid == 9);
	cr_assert_null(perfring_waits_next(waits));
	cr_assert_eq(begin(4, 400), 0);
	perfring_waits_forget(waits);
	cr_assert_null(perfring_waits_next(waits));
	cr_assert_null(perfring_waits_find(waits, 4));
	perfring_waits_close(waits);
}

Test(waits, switches_are_events_of_each_one)
{
	struct perf_event_attr attr = {.type = PERFRING_TYPE_SOFTWARE, .config = PERFRING_COUNT_SW_CONTEXT_SWITCHES, .sample_period = 1};

	cr_assert(perfring_waits_is_switch(&attr));
	attr.sample_period = 2;
	cr_assert_not(perfring_waits_is_switch(&attr), "each second one");
	attr.sample_period = 1;
	attr.freq = 1;
	cr_assert_not(perfring_waits_is_switch(&attr), "a frequency");
	cr_assert_not(perfring_waits_is_switch(NULL));
}
