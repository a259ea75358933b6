/* soft_span_test.c - spans: each is one sample of how long it lasted, wherever it begins and ends. */
#include "soft_rig.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
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
