/* split_test.c - the sample of a group as one sample for each event that counted. */
#include "test.h"
#include "machine.h"

#include <sys/mman.h>
#include <perfring/session.h>
#include <perfring/split.h>

/* The tables, again, over a calloc that can be made to fail; and so not linked from the library. */
static long callocs_left = -1;

static void *counted_calloc(size_t nr, size_t size)
{
	if (!callocs_left)
		return NULL;
	callocs_left -= callocs_left > 0;
	return calloc(nr, size);
}

#define calloc counted_calloc
#include "sample/split.c"
#undef calloc

TestSuite(split, .timeout = 60);

enum {
	A = 10, /* ids: two of each event */
	A_TOO = 11,
	B = 20,
	B_TOO = 21,
};

static struct perfring_format_set *formats;
static struct perfring_split *split;

static void begin(uint64_t flag)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1};

	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	attr.inherit = flag == PERFRING_ATTR_FLAG_inherit;
	cr_assert_eq(perfring_format_set_open(&formats), 0);
	cr_assert_eq(perfring_format_set_add(formats, &attr), 0);
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_READ;
	cr_assert_eq(perfring_format_set_add(formats, &attr), 1);
	cr_assert_eq(perfring_format_set_put(formats, A, 0), 0);
	cr_assert_eq(perfring_format_set_put(formats, A_TOO, 0), 0);
	cr_assert_eq(perfring_format_set_put(formats, B, 1), 0);
	cr_assert_eq(perfring_format_set_put(formats, B_TOO, 1), 0);
	cr_assert_eq(perfring_split_open(&split, formats), 0);
}

static void end(void)
{
	perfring_split_close(split);
	perfring_format_set_close(formats);
}

struct counted {
	uint64_t id;
	uint64_t period;
	uint32_t event;
};

/* Splits one sample of `nr` pairs of value and id.  Returns how many came out, in the order of the pairs. */
static size_t split_pairs(uint32_t tid, const uint64_t *pairs, uint64_t nr, struct counted *out)
{
	struct perfring_sample sample = {
		.present = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_READ,
		.identifier = A,
		.tid = tid,
		.read = {(const perfring_word *)pairs, nr, 0, 0, PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID},
	};
	const struct perfring_format *format;
	size_t count = 0;
	int one;

	perfring_split_begin(split, perfring_format_set_at(formats, 0), &sample);
	while ((one = perfring_split_next(split, &format)) == 1) {
		cr_assert(sample.present & PERFRING_SAMPLE_PERIOD);
		cr_assert_eq(sample.identifier, sample.id);
		cr_assert_eq(sample.tid, tid);
		out[count++] = (struct counted){sample.id, sample.period, format->index};
	}
	cr_assert_eq(one, 0);
	return count;
}

/* The period of one event of a sample with one value. */
static uint64_t period_of(uint32_t tid, uint64_t id, uint64_t value)
{
	const uint64_t pair[] = {value, id};
	struct counted out[1];

	return split_pairs(tid, pair, 1, out) ? out[0].period : 0;
}

Test(split, a_sample_for_each_event_that_counted)
{
	/* value, id */
	const uint64_t first[] = {100, A, 0, B}, second[] = {250, A, 3, B}, third[] = {250, A, 3, B},
		       fourth[] = {250, A, 4, B};
	struct counted out[2];

	begin(0);
	cr_assert_eq(split_pairs(1, first, 2, out), 1);
	cr_assert_eq(out[0].event, 0);
	cr_assert_eq(out[0].id, A);
	cr_assert_eq(out[0].period, 100);
	cr_assert_eq(split_pairs(1, second, 2, out), 2);
	cr_assert_eq(out[0].event, 0);
	cr_assert_eq(out[0].period, 150);
	cr_assert_eq(out[1].event, 1);
	cr_assert_eq(out[1].id, B);
	cr_assert_eq(out[1].period, 3);
	cr_assert_eq(split_pairs(1, third, 2, out), 0);
	cr_assert_eq(split_pairs(1, fourth, 2, out), 1);
	cr_assert_eq(out[0].event, 1);
	cr_assert_eq(out[0].period, 1);
	end();
}

Test(split, ids_of_one_event_are_counted_apart)
{
	begin(0);
	cr_assert_eq(period_of(1, A, 100), 100);
	cr_assert_eq(period_of(1, A_TOO, 70), 70);
	cr_assert_eq(period_of(1, A, 130), 30);
	cr_assert_eq(period_of(1, A_TOO, 75), 5);
	end();
}

Test(split, a_counter_that_began_anew_counts_from_0)
{
	begin(0);
	cr_assert_eq(period_of(1, A, 1000), 1000);
	cr_assert_eq(period_of(1, A, 40), 40);
	cr_assert_eq(period_of(1, A, 50), 10);
	cr_assert_eq(period_of(1, A, 0), 0);
	cr_assert_eq(period_of(1, A, UINT64_MAX), UINT64_MAX);
	end();
}

Test(split, one_id_twice_in_a_sample_counts_once)
{
	const uint64_t twice[] = {5, A, 5, A};
	struct counted out[2];

	begin(0);
	cr_assert_eq(split_pairs(1, twice, 2, out), 1);
	cr_assert_eq(out[0].period, 5);
	end();
}

Test(split, ids_of_no_event_are_counted_and_passed_over)
{
	const uint64_t pairs[] = {5, 99, 7, B, 9, 0};
	struct counted out[3];

	begin(0);
	cr_assert_eq(split_pairs(1, pairs, 3, out), 1);
	cr_assert_eq(out[0].event, 1);
	cr_assert_eq(out[0].period, 7);
	cr_assert_eq(perfring_split_unknown(split), 2);
	end();
}

/* What is inherited counts each thread's own; what is not counts the same whichever thread is sampled. */
Test(split, threads_are_apart_where_they_inherit)
{
	begin(PERFRING_ATTR_FLAG_inherit);
	cr_assert_eq(period_of(1, A, 100), 100);
	cr_assert_eq(period_of(2, A, 30), 30);
	cr_assert_eq(period_of(1, A, 110), 10);
	cr_assert_eq(period_of(2, A, 31), 1);
	end();
	begin(0);
	cr_assert_eq(period_of(1, A, 100), 100);
	cr_assert_eq(period_of(2, A, 130), 30);
	end();
}

Test(split, every_other_sample_comes_once_as_it_is)
{
	static const struct {
		uint64_t present, read_format;
	} rows[] = {
		{PERFRING_SAMPLE_TID, 0},
		{PERFRING_SAMPLE_TID | PERFRING_SAMPLE_PERIOD, PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID},
		{PERFRING_SAMPLE_READ, PERFRING_FORMAT_GROUP},
		{PERFRING_SAMPLE_READ, 0},
	};
	const uint64_t words[] = {5, 6};
	const struct perfring_format *format;

	begin(0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perfring_sample sample = {
			.present = rows[i].present,
			.id = 77,
			.period = 78,
			.read = {(const perfring_word *)words, 1, 0, 0, rows[i].read_format},
		};

		perfring_split_begin(split, perfring_format_set_at(formats, 1), &sample);
		cr_assert_eq(perfring_split_next(split, &format), 1);
		cr_assert_eq(format->index, 1);
		cr_assert_eq(sample.present, rows[i].present);
		cr_assert_eq(sample.id, 77);
		cr_assert_eq(sample.period, 78);
		cr_assert_eq(perfring_split_next(split, &format), 0);
	}
	end();
}

/* READ of one event alone: value, then id, with the times between the two. */
Test(split, the_value_of_one_event)
{
	const uint64_t words[] = {40, 1, 2, B}, later[] = {44, 3, 4, B};
	const struct perfring_format *format;

	begin(0);
	for (int i = 0; i < 2; i++) {
		struct perfring_sample sample = {
			.present = PERFRING_SAMPLE_READ,
			.read = {(const perfring_word *)(i ? later : words), 1, 0, 0,
				 PERFRING_FORMAT_ID | PERFRING_FORMAT_TOTAL_TIME_ENABLED |
					 PERFRING_FORMAT_TOTAL_TIME_RUNNING},
		};

		perfring_split_begin(split, perfring_format_set_at(formats, 1), &sample);
		cr_assert_eq(perfring_split_next(split, &format), 1);
		cr_assert_eq(format->index, 1);
		cr_assert_eq(sample.period, i ? 4 : 40);
		cr_assert_eq(perfring_split_next(split, &format), 0);
	}
	end();
}

/* More threads than are remembered: those that go on counting are not forgotten, and the tables do not grow. */
Test(split, memory_is_bounded)
{
	uint64_t kept = 0;

	begin(PERFRING_ATTR_FLAG_inherit);
	cr_assert_eq(period_of(1, A, 1000), 1000);
	for (uint32_t tid = 3; tid < 4 * PERFRING_SPLIT_MAX; tid++) {
		cr_assert_eq(period_of(tid, A, tid), tid);
		if (tid % 65536)
			continue;
		kept++;
		cr_assert_eq(period_of(2, A, kept), 1);
		cr_assert(split->table.nr <= 2 * PERFRING_SPLIT_MAX && split->older.nr <= 2 * PERFRING_SPLIT_MAX);
		cr_assert(split->table.used <= PERFRING_SPLIT_MAX && split->older.used <= PERFRING_SPLIT_MAX);
	}
	cr_assert_eq(kept, 31);
	/* used so long ago that it is forgotten */
	cr_assert_eq(period_of(1, A, 1001), 1001);
	end();
}

Test(split, without_memory)
{
	const uint64_t pair[] = {5, A};
	struct perfring_sample sample = {
		.present = PERFRING_SAMPLE_READ,
		.read = {(const perfring_word *)pair, 1, 0, 0, PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID},
	};
	const struct perfring_format *format;
	struct perfring_split *none;

	callocs_left = 0;
	cr_assert_eq(perfring_split_open(&none, formats), -ENOMEM);
	cr_assert_null(none);
	callocs_left = -1;
	begin(0);
	callocs_left = 0;
	perfring_split_begin(split, perfring_format_set_at(formats, 0), &sample);
	cr_assert_eq(perfring_split_next(split, &format), -ENOMEM);
	callocs_left = -1;
	perfring_split_begin(split, perfring_format_set_at(formats, 0), &sample);
	cr_assert_eq(perfring_split_next(split, &format), 1);
	cr_assert_eq(sample.period, 5);
	end();
	perfring_split_close(NULL);
}

/* ---- the kernel's, inherited ---- */

enum {
	PAGES = 50,
	CHILDREN = 4,
};

static void touch(void)
{
	volatile char *bytes = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; bytes != MAP_FAILED && i < PAGES; i++)
		bytes[i * 4096] = 1;
}

/* Waits for a byte, and faults in some processes one after the other, so that no two samples meet. */
static int family(int go)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		return 1;
	touch();
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			touch();
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 1;
	}
	touch();
	return 0;
}

/* Each fault is a sample, and holds what its own thread has counted: their periods are what read(2) says in the end. */
Test(split, inherited_counts_of_the_kernel)
{
	struct perf_event_attr leader = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(leader)}, member;
	const struct perf_event_attr *attrs[] = {&leader, &member};
	struct perfring_session_event opened;
	const struct perfring_format *format;
	struct perfring_session *session;
	struct perfring_split *live;
	struct perfring_target *target;
	struct perfring_totals totals;
	struct perfring_sample sample;
	struct perfring_item item;
	uint64_t words[8], periods[2] = {0}, counts[2] = {0}, fds = 0;
	int go[2], status, error;
	pid_t child;

	if (!is_at_least(6, 12))
		cr_skip_test("SKIP-ENV: perf_event_open: EINVAL: READ that is inherited needs Linux 6.12");
	leader.config = PERF_COUNT_SW_PAGE_FAULTS;
	leader.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
	leader.sample_id_all = leader.inherit = leader.exclude_kernel = 1;
	leader.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	member = leader;
	leader.sample_period = 1;
	leader.disabled = 1; /* a child that still runs when the leader alone is open gives samples of one value */
	member.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	cr_assert_eq(pipe(go), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		_exit(family(go[0]));
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, child), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_session_open(&session, 64), 0);
	error = perfring_session_add_group(session, attrs, 2, target);
	cr_assert_eq(error, 0, "%s", perfring_session_refusal(session));
	cr_assert_eq(perfring_session_enable(session), 0);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	cr_assert_eq(perfring_split_open(&live, perfring_session_formats(session)), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		if (item.record->type != PERF_RECORD_SAMPLE)
			continue;
		cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
		cr_assert_eq(sample.read.nr, 2);
		perfring_split_begin(live, item.format, &sample);
		while (perfring_split_next(live, &format) == 1)
			periods[format->index] += sample.period;
	}
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.lost, 0);
	cr_assert_eq(perfring_split_unknown(live), 0);
	for (uint32_t i = 0; perfring_session_event_at(session, i, &opened) == 1; i++) {
		struct perfring_read read;

		format = perfring_format_set_at(perfring_session_formats(session), opened.event);
		cr_assert_eq(perfring_event_read(opened.fd, format, &read, words, sizeof(words)), 0);
		counts[opened.event] += perfring_read_value(&read, 0);
		fds++;
	}
	cr_assert_geq(periods[0], (CHILDREN + 2) * PAGES);
	cr_assert_eq(periods[0], counts[0], "%llu of %llu", (unsigned long long)periods[0],
		     (unsigned long long)counts[0]);
	/* counted after the sample of the same fault: the last one of each thread and CPU is in no sample */
	cr_assert_leq(periods[1], counts[1]);
	cr_assert_geq(periods[1] + fds * (CHILDREN + 1), counts[1]);
	perfring_split_close(live);
	perfring_session_close(session);
	perfring_target_close(target);
	close(go[0]);
	close(go[1]);
}
