/* soft_pmu_test.c - PMUs of the program's own: what is called when, and that their events count and sample as perfring's own. */
#include "soft_rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/soft.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft_pmu, .timeout = 60);

static struct perf_event_attr attr_of_pmu(const struct perfring_soft_pmu *pmu, uint64_t config)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = pmu->type, .config = config};

	return attr;
}

/* ---- by occurrences ---- */

static struct perfring_soft_point *queries;

static int find_query(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	if (attr->config > 1)
		return attr->config == 2 ? -ENOENT : -EPERM;
	*point = queries = perfring_soft_define("soft_pmu:query");
	return 0;
}

static struct perfring_soft_pmu occurring = {.type = PERFRING_SOFT_TYPE, .init = find_query};

static void on_signal(int number)
{
	(void)number;
	perfring_soft_raise(queries, 1, 0, NULL, 0);
}

Test(soft_pmu, occurrences_count_and_sample)
{
	struct perfring_soft_event *event, *sibling, *point;
	struct perf_event_attr attr;
	struct worker worker;
	uint64_t words[8];

	cr_assert_eq(perfring_soft_pmu_register(&occurring), 0);
	cr_assert_gt(occurring.type, PERFRING_SOFT_TYPE);
	attr = attr_of_pmu(&occurring, 2);
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -ENOENT);
	attr.config = 3;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -EPERM);

	attr = attr_of_pmu(&occurring, 1);
	attr.sample_period = 10;
	attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	attr.read_format = PERF_FORMAT_GROUP;
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
	point = count_point(queries, PERFRING_SOFT_PROCESS);
	attr.sample_period = 0;
	sibling = open_event(&attr, PERFRING_SOFT_PROCESS, event);
	begin(&worker, queries);
	tell(&worker, JOIN, 0);
	tell(&worker, RAISE, 70);
	raise_times(queries, 29);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	cr_assert_eq(value(point), 100);
	cr_assert_eq(drain_ids(event, 0, NULL), 10);
	cr_assert_eq(perfring_soft_read(event, words, sizeof(words)), 24);
	cr_assert(words[0] == 2 && words[1] == 100 && words[2] == 100);
	perfring_soft_disable(event, false);
	raise_times(queries, 5);
	cr_assert_eq(value(point), 105);
	perfring_soft_read(event, words, sizeof(words));
	cr_assert(words[1] == 100 && words[2] == 100);
	perfring_soft_enable(event, false);
	tell(&worker, RAISE, 10);
	cr_assert_eq(drain_ids(event, 0, NULL), 1);
	end(&worker);
	perfring_soft_close(sibling);
	perfring_soft_close(event);
	perfring_soft_close(point);
	cr_assert_eq(PERFRING_LOAD(&queries->active), 0);
}

/* ---- by a counter ---- */

static __thread uint64_t ticks; /* what the counter of this thread shows */
static uint32_t added, deleted;
static int refuses; /* add; how many succeed before */

struct own {
	const uint64_t *ticks;
	uint32_t started, starts, stops;
};

static __thread struct own *latest; /* of this thread */

static int find_tick(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)point;
	return attr->config ? -ENOENT : 0;
}

/* In the test each event is opened by its own thread, or by that which joins: `ticks` is the right one. */
static int add_tick(struct perfring_soft_counter *counter)
{
	struct own *own;

	if (refuses && !--refuses)
		return -EMFILE;
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->ticks = &ticks;
	latest = counter->data = own;
	PERFRING_ADD(&added, 1u);
	return 0;
}

static void del_tick(struct perfring_soft_counter *counter)
{
	free(counter->data);
	PERFRING_ADD(&deleted, 1u);
}

static void start_tick(struct perfring_soft_counter *counter)
{
	struct own *own = counter->data;

	own->started = 1;
	own->starts++;
}

static void stop_tick(struct perfring_soft_counter *counter)
{
	struct own *own = counter->data;

	own->started = 0;
	own->stops++;
}

static uint64_t read_tick(struct perfring_soft_counter *counter, bool here)
{
	const struct own *own = counter->data;

	return here ? ticks : PERFRING_LOAD(own->ticks);
}

static struct perfring_soft_pmu counted_pmu = {
	.type = PERFRING_SOFT_TYPE,
	.init = find_tick,
	.add = add_tick,
	.del = del_tick,
	.start = start_tick,
	.stop = stop_tick,
	.read = read_tick,
};

static void grow(uint64_t n)
{
	PERFRING_STORE(&ticks, ticks + n); /* others read it */
}

static struct perf_event_attr attr_counted(void)
{
	if (counted_pmu.type == PERFRING_SOFT_TYPE)
		cr_assert_eq(perfring_soft_pmu_register(&counted_pmu), 0);
	added = deleted = 0;
	return attr_of_pmu(&counted_pmu, 0);
}

Test(soft_pmu, a_counter_counts_while_it_is_on)
{
	struct perf_event_attr attr = attr_counted();
	struct perfring_soft_event *event;
	char text[256];

	ticks = 1000;
	attr.disabled = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_not(latest->started);
	grow(5);
	cr_assert_eq(value(event), 0);
	perfring_soft_enable(event, false);
	cr_assert(latest->started);
	grow(7);
	cr_assert_eq(value(event), 7);
	perfring_soft_disable(event, false);
	cr_assert_not(latest->started);
	grow(100);
	cr_assert_eq(value(event), 7);
	perfring_soft_enable(event, false);
	grow(3);
	perfring_soft_reset(event, false);
	cr_assert_eq(value(event), 0);
	grow(2);
	cr_assert_eq(value(event), 2);
	PERFRING_STORE(&ticks, 0);
	cr_assert_eq(value(event), 2, "what was read stays");
	perfring_soft_close(event);
	cr_assert(added == 1 && deleted == 1);

	attr.sample_period = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -EOPNOTSUPP);
	cr_assert_gt(perfring_soft_explain(&attr, text, sizeof(text)), 0);
	cr_assert_eq(strncmp(text, "sample_period: ", 15), 0, "%s", text);
	cr_assert_eq(added, 1);
}

/* Occurrences of a point end the group: its siblings stop with it, before anybody calls. */
Test(soft_pmu, a_limit_ends_its_group)
{
	struct perfring_soft_point *point = perfring_soft_define("soft_pmu:limit");
	struct perf_event_attr attr = attr_of(point), counted = attr_counted();
	struct perfring_soft_event *leader, *event;
	const struct perf_event_header *record;
	struct perfring_set_ring *ring;
	uint64_t words[5];

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	attr.disabled = 1;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	event = open_event(&counted, PERFRING_SOFT_THREAD, leader);
	cr_assert_eq(perfring_soft_map(leader, 1, -1), 0);
	grow(10);
	cr_assert_eq(perfring_soft_refresh(leader, 2), 0);
	for (unsigned i = 0; i < 5; i++) {
		grow(1);
		perfring_soft_raise(point, 1, 0, NULL, 0);
	}
	cr_assert_eq(value(event), 2);
	/* The samples have it too. */
	ring = perfring_set_next(perfring_soft_rings(leader), NULL);
	cr_assert_gt(perfring_reader_observe(&ring->reader), 0);
	for (uint64_t i = 1; i <= 2; i++) {
		cr_assert_eq(perfring_reader_next(&ring->reader, &record), 1);
		memcpy(words, record + 1, 24);
		cr_assert(words[0] == 2 && words[1] == i && words[2] == i);
	}
	perfring_reader_return(&ring->reader);
	perfring_soft_enable(leader, false);
	grow(4);
	cr_assert_eq(value(event), 6);
	perfring_soft_close(leader);
	grow(1);
	cr_assert_eq(value(event), 7, "alone");
	perfring_soft_close(event);
	cr_assert(added == 1 && deleted == 1);
}

static void *grow_and_leave(void *of)
{
	ticks = 50;
	if (perfring_soft_join())
		return of;
	grow(30);
	return NULL;
}

Test(soft_pmu, each_thread_has_its_counter)
{
	struct perf_event_attr attr = attr_counted();
	struct perfring_soft_event *event;
	pthread_t thread;
	void *failed;
	pid_t child;
	int status;

	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	grow(1);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, grow_and_leave, event), 0);
		pthread_join(thread, &failed);
		cr_assert_null(failed);
	}
	cr_assert_eq(value(event), 91, "of those that have left too");
	cr_assert(added == 4 && deleted == 3);

	attr.inherit = 1;
	perfring_soft_close(event);
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_thread_create(&thread, NULL, grow_and_leave, event), 0);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	cr_assert_eq(value(event), 80, "an heir's: it has joined before its counter is at 50");
	cr_assert(added == 6 && deleted == 5);

	child = fork();
	if (!child) {
		perfring_soft_close(event);
		_exit(deleted == 6 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);

	perfring_soft_close(event);
	refuses = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -EMFILE);
	cr_assert(added == 6 && deleted == 6);
	event = open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
	refuses = 1;
	cr_assert_eq(pthread_create(&thread, NULL, grow_and_leave, event), 0);
	pthread_join(thread, &failed);
	cr_assert_eq(failed, event, "join is refused");
	perfring_soft_close(event);
	cr_assert(added == 7 && deleted == 7);
}

/* ---- a thread that ends, or is doubled, in the middle ---- */

static uint32_t testing; /* calls in which the thread could have been cancelled */

static void test_cancel(void)
{
	PERFRING_ADD(&testing, 1u);
	pthread_testcancel();
}

static void start_or_stop_testing(struct perfring_soft_counter *counter)
{
	(void)counter;
	test_cancel();
}

static uint64_t read_testing(struct perfring_soft_counter *counter, bool here)
{
	(void)counter;
	(void)here;
	test_cancel();
	return 1;
}

static struct perfring_soft_pmu testing_pmu = {
	.type = PERFRING_SOFT_TYPE,
	.init = find_tick,
	.start = start_or_stop_testing,
	.stop = start_or_stop_testing,
	.read = read_testing,
};

/* Nothing on the stack: what the address sanitizer has put around it would stay there when the thread is cancelled. */
static void *cancel_oneself(void *of)
{
	static struct perf_event_attr attr;
	static struct perfring_soft_event *event;
	static uint64_t words[4];

	attr = attr_of_pmu(&testing_pmu, 0);
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL))
		return of;
	*(struct perfring_soft_event **)of = event;
	pthread_cancel(pthread_self());
	perfring_soft_disable(event, false);
	perfring_soft_enable(event, false);
	perfring_soft_read(event, words, sizeof(words));
	PERFRING_ADD(&testing, 1000u);
	pthread_testcancel();
	return of;
}

/* What a PMU calls may be a cancellation point: the switch, which the thread holds there, would stay taken. */
Test(soft_pmu, a_cancelled_thread_leaves_the_switch, .timeout = 20)
{
	struct perfring_soft_event *event = NULL, *other;
	pthread_t thread;
	void *result;

	cr_assert_eq(perfring_soft_pmu_register(&testing_pmu), 0);
	other = count_point(perfring_soft_define("soft_pmu:other"), PERFRING_SOFT_PROCESS);
	cr_assert_eq(pthread_create(&thread, NULL, cancel_oneself, &event), 0);
	pthread_join(thread, &result);
	cr_assert_eq(result, PTHREAD_CANCELED);
	cr_assert_geq(testing, 1003u, "it ended in %u", testing);
	perfring_soft_disable(other, false);
	perfring_soft_close(other);
	perfring_soft_close(event);
}

static pid_t child_of_close = -1;

static void fork_there(const char *name)
{
	if (child_of_close < 0 && !strcmp(name, "event_unlinked"))
		child_of_close = fork();
}

/* As a handler that forks while its thread closes: the child returns into the close, of an event that is in none of its lists. */
Test(soft_pmu, a_fork_in_the_middle_of_close)
{
	struct perf_event_attr attr = attr_counted();
	struct perfring_soft_event *event = open_event(&attr, PERFRING_SOFT_THREAD, NULL), *own;
	int status;

	struck = fork_there;
	perfring_soft_close(event);
	struck = NULL;
	if (!child_of_close) {
		alarm(30);
		if (deleted != 1 || perfring_soft_join() || perfring_soft_open(&own, &attr, PERFRING_SOFT_THREAD, NULL))
			_exit(1);
		perfring_soft_close(own);
		_exit(deleted == 2 ? 0 : 2);
	}
	cr_assert_gt(child_of_close, 0);
	cr_assert_eq(waitpid(child_of_close, &status, 0), child_of_close);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
	cr_assert(added == 1 && deleted == 1);
}

/* ---- several threads and handlers at a time ---- */

enum {
	GROWERS = 3,
};

static struct perfring_soft_event *storm;
static struct perfring_soft_point *storm_point;
static uint32_t is_over;
static uint64_t grown; /* by all */

static void switch_it(int number)
{
	(void)number;
	perfring_soft_disable(storm, false);
	perfring_soft_enable(storm, false);
}

static void *grow_on(void *of)
{
	uint64_t n = 0;

	if (perfring_soft_join())
		return of;
	for (; !PERFRING_LOAD(&is_over); n++) {
		grow(1);
		perfring_soft_raise(storm_point, 1, 0, NULL, 0);
		if (n % 1024 == 0)
			raise(SIGUSR2);
	}
	PERFRING_ADD(&grown, n);
	return NULL;
}

static void *read_on(void *of)
{
	uint64_t last = 0, now;

	while (!PERFRING_LOAD(&is_over)) {
		now = value(storm);
		if (now < last)
			return of;
		last = now;
	}
	return NULL;
}

/* The counters run on while the event is on: all of them, and it is switched by handlers of all threads; a sampling sibling reads it
 * in each occurrence.  A count never falls, and is never above what the counters have grown by. */
Test(soft_pmu, counters_under_a_storm)
{
	struct perf_event_attr attr = attr_counted(), leads;
	struct perfring_soft_event *leader;
	pthread_t growers[GROWERS], reader;
	void *failed;

	storm_point = perfring_soft_define("soft_pmu:storm");
	leads = attr_of(storm_point);
	leads.sample_period = 100;
	leads.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_READ;
	leads.read_format = PERF_FORMAT_GROUP;
	leader = open_event(&leads, PERFRING_SOFT_PROCESS, NULL);
	cr_assert_eq(perfring_soft_map(leader, 4, -1), 0);
	storm = open_event(&attr, PERFRING_SOFT_PROCESS, leader);
	signal(SIGUSR2, switch_it);
	is_over = 0;
	for (unsigned i = 0; i < GROWERS; i++)
		cr_assert_eq(pthread_create(&growers[i], NULL, grow_on, storm), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_on, storm), 0);
	for (unsigned i = 0; i < 300; i++) {
		perfring_soft_disable(leader, i % 2);
		perfring_soft_enable(leader, i % 2);
		usleep(500);
	}
	PERFRING_STORE(&is_over, 1);
	for (unsigned i = 0; i < GROWERS; i++) {
		pthread_join(growers[i], &failed);
		cr_assert_null(failed);
	}
	pthread_join(reader, &failed);
	cr_assert_null(failed, "a count has fallen");
	cr_assert_gt(value(storm), 0);
	cr_assert_leq(value(storm), grown);
	perfring_soft_close(storm);
	perfring_soft_close(leader);
	cr_assert_eq(added, deleted);
}

/* ---- registering ---- */

static int find_none(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)attr, (void)point;
	return -ENOENT;
}

static int find_cycles(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)point;
	return attr->config == PERF_COUNT_HW_CPU_CYCLES ? 0 : -ENOENT;
}

Test(soft_pmu, so_many_and_no_more)
{
	static struct perfring_soft_pmu many[64],
		cycles = {.type = PERF_TYPE_HARDWARE, .init = find_cycles, .read = read_tick};
	struct perf_event_attr attr = attr_of_pmu(&cycles, PERF_COUNT_HW_CPU_CYCLES);
	struct perfring_soft_pmu bad = {.type = PERFRING_SOFT_TYPE};
	struct perfring_soft_event *event;
	uint32_t last = PERFRING_SOFT_TYPE;
	unsigned n = 0;
	int ret;

	cr_assert_eq(perfring_soft_pmu_register(&bad), -EINVAL, "no init");
	bad.init = find_none;
	bad.type = PERFRING_SOFT_TYPE + 1;
	cr_assert_eq(perfring_soft_pmu_register(&bad), -EINVAL, "another's number");
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -ENOENT);

	for (ret = 0; !ret && n < 64; n++) {
		many[n] = (struct perfring_soft_pmu){.type = n % 2 ? PERFRING_SOFT_TYPE : PERF_TYPE_HARDWARE,
						     .init = find_none};
		if (n == 20)
			cr_assert_eq(perfring_soft_pmu_register(&cycles), 0);
		ret = perfring_soft_pmu_register(&many[n]);
		if (!ret && n % 2) {
			cr_assert_gt(many[n].type, last);
			last = many[n].type;
		}
	}
	cr_assert_eq(ret, -EUSERS);
	cr_assert_leq(n, 64);

	event = NULL; /* several of one type: the first that has the event */
	attr.disabled = 1;
	ret = perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(ret, 0);
	perfring_soft_close(event);
	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), -ENOENT);
}
