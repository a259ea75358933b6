/* soft_span_test.c - spans: each is one sample of how long it lasted, wherever it begins and ends. */
#include "soft_rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include "test.h"

TestSuite(soft_span, .timeout = 60);

enum {
	NS_PER_MS = 1000000,
	SPANS_MAX = 64,
};

/* What a span's sample has to say, by clocks read outside of it and inside. */
struct seen {
	uint64_t before, begin, inside, after; /* ns */
	uint32_t tid;
	char raw[16];
};

static struct perfring_soft_point *query;
static struct seen spans[SPANS_MAX];
static unsigned span_count;

static uint64_t now(void)
{
	return now_of(CLOCK_MONOTONIC);
}

static struct seen open_span(void)
{
	struct seen one = {.before = now()};

	one.begin = perfring_soft_span_begin(query);
	one.inside = now();
	return one;
}

static void close_span(struct seen *one, const char *raw)
{
	uint64_t inside = now();

	memcpy(one->raw, raw, strlen(raw));
	perfring_soft_span_end(query, one->begin, one->raw, sizeof(one->raw));
	one->after = now();
	one->tid = (uint32_t)gettid();
	cr_assert(one->begin >= one->before && one->begin <= one->inside);
	one->before = inside - one->inside; /* it lasted at least */
	spans[span_count++] = *one;
}

static struct perfring_soft_event *open_spans(void)
{
	struct perf_event_attr attr;

	query = perfring_soft_define("span:query");
	attr = attr_of(query);
	attr.sample_period = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	return open_event(&attr, PERFRING_SOFT_PROCESS, NULL);
}

/* The samples are exactly the spans, in the order of their ends.  Returns their sum. */
static uint64_t check(struct perfring_soft_event *event)
{
	struct perfring_session *session;
	struct perfring_item item;
	struct perfring_sample sample;
	uint64_t sum = 0;
	unsigned i = 0;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, perfring_soft_rings(event), -1, 0), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		const struct seen *one = &spans[i];

		if (item.record->type != PERF_RECORD_SAMPLE)
			continue;
		cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
		cr_assert_lt(i, span_count);
		cr_assert_eq(sample.addr, one->begin);
		cr_assert_eq(sample.tid, one->tid);
		cr_assert(sample.period >= one->before && sample.period <= one->after - one->begin, "span %u: %llu ns", i,
			  (unsigned long long)sample.period);
		cr_assert(sample.time >= one->begin + sample.period && sample.time <= one->after);
		cr_assert(sample.raw.size >= sizeof(one->raw) && !memcmp(sample.raw.data, one->raw, sizeof(one->raw)));
		sum += sample.period;
		i++;
	}
	cr_assert_eq(i, span_count);
	perfring_session_close(session);
	return sum;
}

static void on_signal(int number)
{
	struct seen one = open_span();

	(void)number;
	close_span(&one, "handler");
}

static void *end_of_another(void *data)
{
	struct seen *one = data;

	cr_assert_eq(perfring_soft_join(), 0);
	burn_by(CLOCK_MONOTONIC, NS_PER_MS);
	close_span(one, "other thread");
	return NULL;
}

Test(soft_span, each_is_a_sample_of_its_time)
{
	struct perfring_soft_event *event = open_spans(), *sum = count_point(query, PERFRING_SOFT_PROCESS);
	struct seen outer, inner;
	pthread_t thread;

	cr_assert_eq(perfring_soft_map(event, 8, -1), 0);
	signal(SIGUSR1, on_signal);
	outer = open_span();
	inner = open_span();
	burn_by(CLOCK_MONOTONIC, 2 * NS_PER_MS);
	raise(SIGUSR1); /* within both */
	close_span(&inner, "inner");
	burn_by(CLOCK_MONOTONIC, NS_PER_MS);
	close_span(&outer, "outer");
	outer = open_span();
	cr_assert_eq(pthread_create(&thread, NULL, end_of_another, &outer), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(check(event), value(sum));
	perfring_soft_close(sum);
	perfring_soft_close(event);
}

/* A span of which one end has no event is none: its time is not known. */
Test(soft_span, none_without_an_event)
{
	struct perfring_soft_event *event = open_spans();
	uint64_t early, late;

	cr_assert_eq(perfring_soft_map(event, 8, -1), 0);
	perfring_soft_disable(event, false);
	early = perfring_soft_span_begin(query);
	cr_assert_eq(early, 0);
	perfring_soft_enable(event, false);
	perfring_soft_span_end(query, early, NULL, 0);
	late = perfring_soft_span_begin(query);
	cr_assert_gt(late, 0);
	perfring_soft_disable(event, false);
	perfring_soft_span_end(query, late, NULL, 0);
	cr_assert_eq(value(event), 0);
	cr_assert_eq(check(event), 0);
	perfring_soft_close(event);
}

/* Another process watches: spans that are longer than it asked for are counted, of each thread, handler and child, without an event. */
static void lasts(uint64_t ns)
{
	uint64_t begin = perfring_soft_span_begin(query);

	burn_by(CLOCK_MONOTONIC, ns);
	perfring_soft_span_end(query, begin, NULL, 0);
}

static void long_in_handler(int number)
{
	(void)number;
	lasts(3 * NS_PER_MS);
}

static void *long_unjoined(void *data)
{
	lasts(3 * NS_PER_MS);
	return data;
}

Test(soft_span, another_process_watches)
{
	struct perfring_soft_watch *watch;
	struct perfring_soft_event *event;
	char long_name[PERFRING_SOFT_NAME_MAX + 2] = {0};
	struct perfring_soft_point *other;
	pthread_t thread;
	char path[64];
	int status;
	pid_t child;

	cr_assert_eq(perfring_soft_watch_open(&watch), 0);
	cr_assert_eq(perfring_soft_watch_add(watch, "span:query", 2 * NS_PER_MS), 0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	cr_assert_eq(perfring_soft_watch_add(watch, "", 1), -EINVAL);
	cr_assert_eq(perfring_soft_watch_add(watch, long_name, 1), -EINVAL);
	long_name[PERFRING_SOFT_NAME_MAX] = 0;
	for (int i = 1; i < PERFRING_SOFT_WATCHES_MAX; i++)
		cr_assert_eq(perfring_soft_watch_add(watch, long_name, 1), i);
	cr_assert_eq(perfring_soft_watch_add(watch, "span:other", 1), -ENOSPC);
	snprintf(path, sizeof(path), "%s", perfring_soft_watch_path(watch));
	cr_assert_eq(setenv(PERFRING_SOFT_WATCH, path, 1), 0);
	query = perfring_soft_define("span:query");
	other = perfring_soft_define("span:other");
	cr_assert_eq(perfring_soft_span_begin(other), 0, "none watches for it");
	cr_assert_gt(perfring_soft_span_begin(query), 0);
	perfring_soft_raise(query, 1 * NS_PER_MS, 0, NULL, 0); /* short */
	perfring_soft_raise(query, 2 * NS_PER_MS, 0, NULL, 0); /* not longer */
	cr_assert_eq(perfring_soft_watch_count(watch, 0), 0);
	lasts(3 * NS_PER_MS);
	cr_assert_eq(perfring_soft_watch_count(watch, 0), 1);
	signal(SIGUSR1, long_in_handler);
	raise(SIGUSR1);
	cr_assert_eq(pthread_create(&thread, NULL, long_unjoined, NULL), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(perfring_soft_watch_count(watch, 0), 3);
	child = fork();
	if (!child) {
		lasts(3 * NS_PER_MS);
		_exit(0);
	}
	cr_assert(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	cr_assert_eq(perfring_soft_watch_count(watch, 0), 4);
	/* beside an event, which may come and go */
	event = count_point(query, PERFRING_SOFT_PROCESS);
	lasts(3 * NS_PER_MS);
	cr_assert_geq(value(event), 3 * NS_PER_MS);
	perfring_soft_close(event);
	lasts(3 * NS_PER_MS);
	cr_assert_eq(perfring_soft_watch_count(watch, 0), 6);
	cr_assert_eq(perfring_soft_watch_count(watch, 99), 0);
	perfring_soft_watch_close(watch);
	cr_assert_eq(access(path, F_OK), -1, "the file is gone");
	lasts(3 * NS_PER_MS);
}

/* What is no such file is not mapped. */
Test(soft_span, a_variable_that_lies)
{
	static const char *const paths[] = {"/dev/zero", "/etc/passwd", "/nowhere", ""};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			setenv(PERFRING_SOFT_WATCH, paths[i], 1);
			query = perfring_soft_define("span:query");
			_exit(query && !perfring_soft_span_begin(query) ? 0 : 1);
		}
		cr_assert(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status), "%s", paths[i]);
	}
}
