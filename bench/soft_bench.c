/* soft_bench.c - what it costs to raise: no event listens, an event counts, an event samples.
 *
 * A sample holds id, pid and tid, time (CLOCK_MONOTONIC), CPU and 32 bytes of raw data: 80 bytes, in a ring of 1 MiB.  A
 * lap raises half a ring of them; then, untimed, the same thread drains it by a plain perf reader.
 *
 * A chain holds the last 32 callers besides, of functions with frame pointers: both ways find the same ones.
 */
#include <string.h>
#include <time.h>
#include <perfring/soft.h>

#include "bench.h"
#include "soft_peers.h"

enum {
	PAGES = 256,
	SAMPLE_SIZE = 80,
	LAP = PAGES * 4096 / 2 / SAMPLE_SIZE,
	IDLE_LAP = 1 << 16,
	FRAMES = 32,
	CHAIN_LAP = PAGES * 4096 / 2 / (SAMPLE_SIZE + 8 + 8 * (FRAMES + 1)),
};

unsigned char soft_payload[SOFT_PAYLOAD] = {1, 2, 3};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- no event listens ---- */

static uint32_t no_event;

__attribute__((noinline, cold)) static void never(void)
{
	bench_use(no_event);
}

/* The least that asks: one loaded word, one branch that is predicted. */
__attribute__((noinline)) static void branch(const uint32_t *word, int64_t times)
{
	while (times-- > 0)
		if (PERFRING_UNLIKELY(PERFRING_LOAD(word)))
			never();
}

__attribute__((noinline)) static void raise_quiet(struct perfring_soft_point *point, int64_t times)
{
	while (times-- > 0)
		perfring_soft_raise(point, 1, 0, soft_payload, SOFT_PAYLOAD);
}

static struct perfring_soft_point *quiet_point;

/* As programs have it: where the point is stands in memory too. */
__attribute__((noinline)) static void raise_global(int64_t times)
{
	while (times-- > 0) {
		perfring_soft_raise(PERFRING_LOAD(&quiet_point), 1, 0, soft_payload, SOFT_PAYLOAD);
	}
}

static void run_branch(struct bench *bench)
{
	bench_items(bench, IDLE_LAP);
	while (bench_keep(bench, 1))
		branch(&no_event, IDLE_LAP);
}

static void run_quiet(struct bench *bench)
{
	struct perfring_soft_point *point = perfring_soft_define("bench:quiet");

	if (!point) {
		bench_skip(bench, "no point");
		return;
	}
	bench_items(bench, IDLE_LAP);
	while (bench_keep(bench, 1))
		raise_quiet(point, IDLE_LAP);
}

static void run_global(struct bench *bench)
{
	quiet_point = perfring_soft_define("bench:quiet");
	if (!quiet_point) {
		bench_skip(bench, "no point");
		return;
	}
	bench_items(bench, IDLE_LAP);
	while (bench_keep(bench, 1))
		raise_global(IDLE_LAP);
}

static void run_lttng_off(struct bench *bench)
{
	const char *reason = soft_lttng_open();

	if (reason) {
		bench_skip(bench, reason);
		return;
	}
	bench_items(bench, IDLE_LAP);
	while (bench_keep(bench, 1))
		soft_lttng_off(IDLE_LAP);
}

/* ---- an event listens ---- */

/* LOST records are not counted. */
static int64_t drain(struct perfring_soft_event *event)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	int64_t samples = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		if (perfring_reader_observe(&member->reader) < 0)
			return -1;
		while (perfring_reader_next(&member->reader, &record) == 1)
			samples += record->type == PERF_RECORD_SAMPLE;
		perfring_reader_return(&member->reader);
	}
	return samples;
}

/* frequency: what `period` is. */
static struct perfring_soft_event *listen(struct perfring_soft_point *point, uint64_t period, bool frequency)
{
	struct perf_event_attr attr = {
		.type = PERFRING_SOFT_TYPE,
		.size = sizeof(attr),
		.config = point->config,
		.sample_period = period,
		.sample_type =
			PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.freq = frequency,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct perfring_soft_event *event;

	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL))
		return NULL;
	if (period && perfring_soft_map(event, PAGES, -1)) {
		perfring_soft_close(event);
		return NULL;
	}
	return event;
}

static void run_listened(struct bench *bench, uint64_t period, bool frequency)
{
	struct perfring_soft_point *point = perfring_soft_define("bench:listened");
	struct perfring_soft_event *event = point ? listen(point, period, frequency) : NULL;
	int64_t samples = 0, laps = 0;
	uint64_t count = 0;
	double start;

	if (!event) {
		bench_skip(bench, "no point, event or ring");
		return;
	}
	bench_items(bench, LAP);
	while (bench_keep(bench, 1)) {
		start = now();
		raise_quiet(point, LAP);
		bench_lap(bench, now() - start);
		laps++;
		if (period)
			samples += drain(event);
	}
	if (perfring_soft_read(event, &count, sizeof(count)) != sizeof(count) || (int64_t)count != laps * LAP ||
	    (period && !frequency && samples != laps * LAP / (int64_t)period))
		bench_skip(bench, "an occurrence was not counted, or a sample not read");
	perfring_soft_close(event);
}

static void run_samples(struct bench *bench)
{
	run_listened(bench, 1, false);
}

static void run_seldom(struct bench *bench)
{
	run_listened(bench, 1000, false);
}

static void run_frequency(struct bench *bench)
{
	run_listened(bench, 1000, true);
}

static void run_counts(struct bench *bench)
{
	run_listened(bench, 0, false);
}

/* ---- an event with call chains ---- */

/* At the depth of FRAMES.  What comes after the call keeps it from being a jump. */
__attribute__((noinline)) static uint64_t raise_deep(struct perfring_soft_point *point, int depth)
{
	uint64_t sum;

	if (depth) {
		sum = raise_deep(point, depth - 1) + (uint64_t)depth;
		bench_use(sum);
		return sum;
	}
	raise_quiet(point, CHAIN_LAP);
	return 1;
}

/* Whether the next sample's chain is whole. */
static bool is_deep(struct perfring_soft_event *event)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	uint32_t word = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member)))
		if (perfring_reader_observe(&member->reader) >= 0 &&
		    perfring_reader_next(&member->reader, &record) == 1 && record->size > 8 * FRAMES) {
			memcpy(&word, (const char *)record + 8 + 4 * 8, sizeof(word)); /* after id, tid, time and CPU */
			perfring_reader_return(&member->reader);
		}
	return word == FRAMES + 1;
}

static void run_chains(struct bench *bench, bool by_tables)
{
	struct perfring_soft_point *point = perfring_soft_define("bench:chains");
	struct perf_event_attr attr = {
		.type = PERFRING_SOFT_TYPE,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_max_stack = FRAMES,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct perfring_soft_event *event = NULL;
	int64_t samples = 0, laps = 0;
	double start;

	attr.config = point ? point->config : 0;
	if (!point || perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) ||
	    perfring_soft_map(event, PAGES, -1) || (by_tables && perfring_soft_set_unwind(event, true))) {
		perfring_soft_close(event);
		bench_skip(bench, "no point, event, ring or tables");
		return;
	}
	raise_deep(point, FRAMES);
	if (!is_deep(event))
		bench_skip(bench, "a chain is too short");
	drain(event);
	bench_items(bench, CHAIN_LAP);
	while (bench_keep(bench, 1)) {
		start = now();
		raise_deep(point, FRAMES);
		bench_lap(bench, now() - start);
		laps++;
		samples += drain(event);
	}
	if (samples != laps * CHAIN_LAP)
		bench_skip(bench, "a sample was not read");
	perfring_soft_close(event);
}

static void run_pointers(struct bench *bench)
{
	run_chains(bench, false);
}

static void run_tables(struct bench *bench)
{
	run_chains(bench, true);
}

/* Of a sample's cost, what is the clock's own. */
static void run_clock(struct bench *bench)
{
	struct timespec time;
	double start;
	int i;

	bench_items(bench, LAP);
	while (bench_keep(bench, 1)) {
		start = now();
		for (i = 0; i < LAP; i++) {
			clock_gettime(CLOCK_MONOTONIC, &time);
			bench_use((uint64_t)time.tv_nsec);
		}
		bench_lap(bench, now() - start);
	}
}

static void run_lttng(struct bench *bench, void (*raise)(int64_t records))
{
	const char *reason = soft_lttng_open();
	double start;

	if (reason) {
		bench_skip(bench, reason);
		return;
	}
	bench_items(bench, LAP);
	while (bench_keep(bench, 1)) {
		start = now();
		raise(LAP);
		bench_lap(bench, now() - start);
	}
}

static void run_lttng_context(struct bench *bench)
{
	run_lttng(bench, soft_lttng_context);
}

static void run_lttng_whole(struct bench *bench)
{
	run_lttng(bench, soft_lttng_whole);
}

const struct bench_row bench_rows[] = {
	{"disabled", "branch", run_branch, 0, 0},
	{"disabled", "perfring", run_quiet, 1.2, 0},
	{"disabled", "perfring_global", run_global, 0, 0},
	{"disabled", "lttng_ust", run_lttng_off, 0, 0},
	{"sample", "lttng_ust_context", run_lttng_context, 0, 0},
	{"sample", "perfring", run_samples, 0.5, 0},
	{"sample", "lttng_ust", run_lttng_whole, 0, 0},
	{"sample", "perfring", run_samples, 0.5, 0},
	{"sample", "clock_gettime", run_clock, 0, 0},
	{"chain", "frame_pointers", run_pointers, 0, 0},
	{"chain", "unwind_tables", run_tables, 2, 0},
	{"no_sample", "counting", run_counts, 0, 0},
	{"no_sample", "period_1000", run_seldom, 0, 0},
	{"no_sample", "frequency_1000", run_frequency, 0, 0},
	{NULL, NULL, NULL, 0, 0},
};
