/* equivalence_test.c - random schedules of writes, drains, pauses and redirections: a ring of ours, the kernel's, and a
 * model written from docs/abi.md 7 hold the same bytes after each step. */
#include "test.h"
#include "machine.h"

#include "ring_feed.h"
#include "ring_model.h"
#include "rb/writer_private.h"

TestSuite(equivalence, .timeout = 120);

enum {
	PAGE = 4096,
	STEPS = 100,
	LARGEST = 65528,
};

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t below(uint64_t *state, uint64_t bound)
{
	return draw(state) % bound;
}

/* ---- one schedule, on the model and on one or two rings ---- */

struct run {
	uint64_t seed;
	struct model model;
	struct model_output outputs[2];
	struct feed feeds[2];
	unsigned nr;
	bool live, has_wrong_tail;
	struct foreign *foreign; /* one for each feed, of rings that stop and rise */
	uint64_t drained;        /* how far it has looked */
	uint64_t samples, losses, wakeups;
};

/* Everything that can be seen of a ring. */
static void compare(struct run *run, const char *step)
{
	for (unsigned i = 0; i < run->nr; i++) {
		struct feed *feed = &run->feeds[i];

		cr_assert(feed->options.live || run->has_wrong_tail || perfring__writer_is_valid(feed->writer),
			  "seed %llu, %s", (unsigned long long)run->seed, step);
		cr_assert_eq(perfring_page_observe(feed->page), run->model.head,
			     "seed %llu, %s: ring %u (%s) stands at %lld, the model at %lld",
			     (unsigned long long)run->seed, step, i, feed->options.live ? "kernel" : "ours",
			     (long long)perfring_page_observe(feed->page), (long long)run->model.head);
		for (unsigned k = 0; k < feed->options.outputs; k++)
			cr_assert_eq(feed_lost(feed, k), run->outputs[k].lost, "seed %llu, %s: ring %u, output %u",
				     (unsigned long long)run->seed, step, i, k);
	}
}

static void compare_bytes(struct run *run, const char *step)
{
	for (unsigned i = 0; i < run->nr; i++)
		cr_assert_eq(memcmp(run->feeds[i].data, run->model.data, (size_t)run->model.size), 0,
			     "seed %llu, %s: ring %u (%s) has other bytes", (unsigned long long)run->seed, step, i,
			     run->feeds[i].options.live ? "kernel" : "ours");
}

static void step_write(struct run *run, uint64_t *random)
{
	static unsigned char raw[LARGEST], record[LARGEST];
	const struct feed *first = &run->feeds[0];
	uint64_t least = (feed_overhead(first) + 4) / 8;
	uint64_t most = LARGEST / 8, size;
	unsigned output = (unsigned)below(random, first->options.outputs);
	bool other = !run->live && below(random, 3) == 0; /* no sample: from 8 bytes on */
	struct perf_event_header header = {.type = PERF_RECORD_SWITCH};
	bool taken;

	if (other)
		least = 1;

	if (first->options.overwrite && most > run->model.size / 8 - 16)
		most = run->model.size / 8 - 16;
	/* Mostly small; at times as large as a record can be. */
	size = below(random, 5) ? below(random, 40) : below(random, most + 1);
	size = 8 * (size < least ? least : size > most ? most : size);
	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t word = draw(random);

		memcpy(raw + i, &word, 8);
	}
	if (!first->attached[output]) {
		for (unsigned i = 0; i < run->nr; i++)
			feed_write(&run->feeds[i], output, raw, size);
		return;
	}
	if (other) {
		header.size = (uint16_t)size;
		memcpy(record, &header, sizeof(header));
		memcpy(record + sizeof(header), raw, (size_t)size - sizeof(header));
	} else {
		feed_compose(first, output, raw, size, record);
	}
	if (first->options.sample_type)
		feed_trailer(&(struct perfring_output){.id = run->outputs[output].id, .data = &run->feeds[0]},
			     run->outputs[output].trailer);
	taken = model_write(&run->model, &run->outputs[output], record, size);
	run->samples += taken;
	run->losses += !taken;
	for (unsigned i = 0; i < run->nr; i++) {
		struct feed *feed = &run->feeds[i];

		cr_assert_eq(other ? perfring_writer_write(feed->writer, &feed->outputs[output], record, size)
				   : feed_write(feed, output, raw, size),
			     taken, "seed %llu: %llu bytes, ring %u", (unsigned long long)run->seed,
			     (unsigned long long)size, i);
	}
}

/* Hands some records back: of a rising ring from the oldest on, read by the foreign reader; of one that falls, all from
 * some record upwards. */
static void step_drain(struct run *run, uint64_t *random)
{
	uint64_t nr = below(random, 12), boundary[64], at, kept = 0;
	struct perf_event_header header;

	if (run->model.overwrite)
		return;
	if (!run->model.backward) {
		for (unsigned i = 0; i < run->nr; i++) {
			uint64_t left = below(random, 2) ? nr : 1000;
			uint64_t from = run->drained;

			if (i > 0)
				left = 1000; /* as far as the first went */
			while (left && (i == 0 || run->foreign[i].tail != run->foreign[0].tail)) {
				const struct perf_event_header *record = foreign_next(&run->foreign[i]);

				if (!record)
					break;
				left--;
				for (uint64_t k = 0; k < record->size; k++)
					cr_assert_eq(((const unsigned char *)record)[k],
						     run->model.data[(from + k) % run->model.size],
						     "seed %llu: ring %u", (unsigned long long)run->seed, i);
				from += record->size;
			}
			cr_assert_eq(run->foreign[i].tail, from);
			foreign_done(&run->foreign[i]);
			if (i + 1 == run->nr)
				run->drained = from;
		}
		run->model.tail = run->drained;
		return;
	}
	/* The last 64 boundaries on the way up. */
	for (at = run->model.head; at != run->model.tail; at += header.size) {
		boundary[kept++ % 64] = at;
		memcpy(&header, run->model.data + at % run->model.size, sizeof(header));
	}
	if (kept == 0)
		return;
	nr = below(random, kept < 64 ? kept : 64);
	run->model.tail = boundary[(kept - 1 - nr) % 64];
	for (unsigned i = 0; i < run->nr; i++)
		perfring_page_return(run->feeds[i].page, run->model.tail);
}

static void step_poll(struct run *run)
{
	bool poll = model_poll(&run->model);

	run->wakeups += poll;
	for (unsigned i = 0; i < run->nr; i++)
		cr_assert_eq(feed_poll(&run->feeds[i]), poll, "seed %llu: ring %u: poll", (unsigned long long)run->seed,
			     i);
}

static void open_run(struct run *run, uint64_t seed, const struct feed_options *options, bool live, bool own)
{
	struct feed_options each = *options;

	memset(run, 0, sizeof(*run));
	run->seed = seed;
	run->live = live;
	if (live) {
		each.live = true;
		if (!feed_open(&run->feeds[run->nr++], &each))
			cr_skip_test("%s", run->feeds[0].reason);
	}
	if (own) {
		each.live = false;
		cr_assert(feed_open(&run->feeds[run->nr++], &each), "%s", run->feeds[run->nr - 1].reason);
		if (live)
			feed_take_ids(&run->feeds[1], &run->feeds[0]);
	}
	model_open(&run->model, (uint64_t)options->pages * PAGE, options->watermark, options->wakeup);
	run->model.backward = options->backward;
	run->model.overwrite = options->overwrite;
	run->foreign = calloc(2, sizeof(*run->foreign));
	for (unsigned i = 0; i < options->outputs; i++) {
		run->outputs[i].id = run->feeds[0].ids[i];
		/* The first event's word is the watermark then (docs/abi.md 7.7). */
		run->outputs[i].wakeup_events = options->watermark && i == 0 ? 0 : options->wakeup_events[i];
		run->outputs[i].trailer_size = 8 * feed_bits(options->sample_type);
	}
	for (unsigned i = 0; i < run->nr; i++)
		if (!options->overwrite)
			cr_assert_eq(foreign_open(&run->foreign[i], feed_fd(&run->feeds[i]), options->pages), 0);
}

static void close_run(struct run *run)
{
	for (unsigned i = 0; i < run->nr; i++) {
		if (!run->model.overwrite)
			foreign_close(&run->foreign[i]);
		feed_close(&run->feeds[i]);
	}
	free(run->foreign);
	model_close(&run->model);
}

/* The last step of a schedule: a tail that cannot be, while a loss is pending (docs/abi.md 7.2: only its low bits matter). */
static void step_wrong_tail(struct run *run, uint64_t *random)
{
	if (run->model.lost == 0 || run->model.overwrite || run->model.paused)
		return;
	run->has_wrong_tail = true;
	run->model.tail = below(random, 2) ? run->model.head + 8 * below(random, 100) : draw(random);
	for (unsigned i = 0; i < run->nr; i++)
		perfring_page_return(run->feeds[i].page, run->model.tail);
	for (unsigned i = 0; i < 20 && run->model.lost; i++)
		step_write(run, random);
	compare(run, "wrong tail");
}

static void run_schedule(uint64_t seed, const struct feed_options *shape, bool live, bool own, uint64_t totals[3])
{
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	struct feed_options options = *shape;
	static const uint64_t types[] = {0, PERF_SAMPLE_IDENTIFIER, FEED_TRAILER};
	static struct run run;
	bool paused = false;

	draw(&random);
	options.pages = 1u << below(&random, 6);
	if (options.overwrite)
		options.pages = 1u << (1 + below(&random, 5));
	options.outputs = 1 + (unsigned)below(&random, 2);
	options.sample_type = types[below(&random, 3)];
	if (options.watermark)
		options.wakeup = (uint32_t)below(&random, below(&random, 2) ? 200 : (uint64_t)options.pages * PAGE * 2);
	for (unsigned i = 0; i < 2; i++)
		if (options.wakeup_events[i])
			options.wakeup_events[i] = 1 + (uint32_t)below(&random, 9);
	if (options.watermark)
		options.wakeup_events[0] = 0;
	open_run(&run, seed, &options, live, own);
	for (unsigned i = 0; i < STEPS; i++) {
		switch (below(&random, 16)) {
		case 0:
		case 1:
		case 2:
			step_drain(&run, &random);
			break;
		case 3:
		case 4:
			step_poll(&run);
			break;
		case 5:
			paused = !paused && below(&random, 3) == 0;
			run.model.paused = paused;
			for (unsigned k = 0; k < run.nr; k++)
				feed_pause(&run.feeds[k], paused);
			break;
		case 6:
			if (options.outputs == 2 && below(&random, 4) == 0) { /* a grace period of the kernel's each */
				bool attach = !run.feeds[0].attached[1];

				for (unsigned k = 0; k < run.nr; k++)
					feed_attach(&run.feeds[k], attach);
			}
			break;
		default:
			step_write(&run, &random);
			break;
		}
		compare(&run, "a step");
		if (options.pages <= 2)
			compare_bytes(&run, "a step");
	}
	step_poll(&run);
	step_wrong_tail(&run, &random);
	compare_bytes(&run, "the end");
	totals[0] += run.samples;
	totals[1] += run.losses;
	totals[2] += run.wakeups;
	close_run(&run);
}

static const struct {
	const char *name;
	struct feed_options options;
} shapes[] = {
	{"stopping", {.backward = false}},
	{"stopping, watermark", {.watermark = true, .wakeup_events = {0, 1}}},
	{"stopping, wakeup_events", {.wakeup_events = {1, 1}}},
	{"stopping backward", {.backward = true}},
	{"stopping backward, watermark", {.backward = true, .watermark = true}},
	{"stopping backward, wakeup_events", {.backward = true, .wakeup_events = {1, 0}}},
	{"overwriting", {.overwrite = true}},
	{"overwriting, watermark", {.overwrite = true, .watermark = true}},
	{"overwriting, wakeup_events", {.overwrite = true, .wakeup_events = {1, 1}}},
	{"overwriting backward", {.backward = true, .overwrite = true}},
	{"overwriting backward, watermark", {.backward = true, .overwrite = true, .watermark = true}},
	{"overwriting backward, wakeup_events", {.backward = true, .overwrite = true, .wakeup_events = {1, 1}}},
};

enum {
	SHAPES = sizeof(shapes) / sizeof(shapes[0])
};

static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void run_schedules(unsigned nr, bool live, bool own)
{
	uint64_t all[3] = {0, 0, 0};

	stay_on_this_cpu();
	for (unsigned i = 0; i < SHAPES; i++) {
		uint64_t totals[3] = {0, 0, 0};

		for (unsigned k = 0; k < nr; k++)
			run_schedule(1000 * i + k + 1, &shapes[i].options, live, own, totals);
		/* Each shape has seen what it is about. */
		cr_assert_gt(totals[0], 10 * nr, "%s", shapes[i].name);
		cr_assert_gt(totals[1], nr / 2, "%s", shapes[i].name);
		cr_assert_gt(totals[2], nr / 2, "%s", shapes[i].name);
		for (unsigned k = 0; k < 3; k++)
			all[k] += totals[k];
	}
	printf("equivalence: %u schedules: %llu records, %llu refused, %llu wakeups\n", SHAPES * nr,
	       (unsigned long long)all[0], (unsigned long long)all[1], (unsigned long long)all[2]);
}

/* What the model says is what the kernel does. */
Test(equivalence, kernel_and_model)
{
	run_schedules(4, true, false);
}

Test(equivalence, ours_and_model)
{
	run_schedules(trials(200), false, true);
}

Test(equivalence, kernel_ours_and_model)
{
	run_schedules(trials(120), true, true);
}
