/* fill_test.c - a stream of items as a profile: of live rings of this process, with the names of its functions; what a filter leaves; what
 * becomes of switches, spans, losses and damage. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <perfring/profile_fill.h>

TestSuite(fill, .timeout = 120);

enum {
	CPU_MS = 1000000,
	EVENT_ID = 1,
	SWITCH_ID = 2,
	LATER_ID = 3,
};

/* ---- records that are made here, of a session that has described their events ---- */

static struct perfring_session *session;
static struct perfring_profile *profile;
static struct perfring_profile_fill *fill;
static struct perfring_profile_tables tables;
static uint64_t words[512];

static struct perf_event_attr attr_of(uint32_t config)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .config = config, .sample_period = 1};

	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
			   PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_CALLCHAIN;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	return attr;
}

static uint32_t describe(uint32_t config, uint64_t id, bool has_switches)
{
	struct perf_event_attr attr = attr_of(config);
	int event;

	attr.context_switch = has_switches;
	event = perfring_session_describe(session, &attr, &id, 1);
	cr_assert_geq(event, 0, "%d: %s", event, perfring_session_refusal(session));
	return (uint32_t)event;
}

/* Opens the fill, of a cpu-clock and of context switches. */
static void open_fill(const struct perfring_filter *filter)
{
	const struct perfring_profile_options listed = {.flags = PERFRING_PROFILE_SAMPLES};

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	describe(PERFRING_COUNT_SW_CPU_CLOCK, EVENT_ID, false);
	describe(PERFRING_COUNT_SW_CONTEXT_SWITCHES, SWITCH_ID, true);
	cr_assert_eq(perfring_profile_open(&profile, &listed), 0);
	cr_assert_eq(perfring_profile_fill_open(
			     &fill, profile, &(struct perfring_profile_fill_options){.session = session, .filter = filter}),
		     0);
}

static void close_fill(void)
{
	perfring_profile_fill_close(fill);
	perfring_profile_close(profile);
	perfring_session_close(session);
}

/* Gives the record that is encoded in `words` to the fill. */
static int give(const struct perfring_format *format, uint64_t time)
{
	const struct perfring_item item = {(const struct perf_event_header *)(const void *)words, format, time};

	return perfring_profile_fill_item(fill, &item, NULL);
}

static const struct perfring_format *format_of(uint64_t id)
{
	const struct perfring_format *format = perfring_format_set_find(perfring_session_formats(session), id);

	cr_assert_not_null(format);
	return format;
}

/* A sample of user space, whose stack is `ip`, called from `caller`. */
static int give_sample(uint64_t id, uint32_t tid, uint64_t time, uint64_t ip, uint64_t caller)
{
	const perfring_word chain[] = {(uint64_t)(int64_t)PERFRING_CONTEXT_USER, ip, caller};
	const struct perfring_format *format = format_of(id);
	struct perfring_sample sample = {.misc = PERFRING_RECORD_MISC_USER, .identifier = id, .ip = ip, .pid = 100, .tid = tid, .time = time, .cpu = 3, .period = 10};

	sample.callchain = (struct perfring_list){.words = chain, .nr = 3};
	cr_assert_gt(perfring_sample_encode(format, &sample, words, sizeof(words)), 0);
	return give(format, time);
}

static int give_record(struct perfring_record *record, uint64_t id, uint32_t tid, uint64_t time)
{
	const struct perfring_format *format = format_of(id);

	record->trailer = (struct perfring_trailer){.pid = 100, .tid = tid, .time = time, .cpu = 3, .identifier = id};
	cr_assert_gt(perfring_record_encode(format, record, words, sizeof(words)), 0);
	return give(format, time);
}

static void give_comm(uint32_t tid, const char *comm)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM};

	record.is.comm = (struct perfring_record_comm){.pid = 100, .tid = tid};
	record.is.comm.comm = (struct perfring_string){.data = comm, .size = (uint32_t)strlen(comm)};
	cr_assert_eq(give_record(&record, EVENT_ID, tid, 0), 0);
}

static void give_switch(uint32_t tid, uint64_t time, uint16_t misc)
{
	struct perfring_record record = {.type = PERFRING_RECORD_SWITCH, .misc = misc};

	cr_assert_eq(give_record(&record, SWITCH_ID, tid, time), 0);
}

/* The event of this name; NULL: there is none. */
static const struct perfring_profile_event *event_named(const char *name)
{
	perfring_profile_read(profile, &tables);
	for (uint32_t i = 0; i < tables.event_count; i++)
		if (!strcmp(tables.events[i].name, name))
			return &tables.events[i];
	return NULL;
}

Test(fill, samples_by_thread_and_stack)
{
	struct perfring_profile_fill_counts counts;

	open_fill(NULL);
	give_comm(101, "worker");
	cr_assert_eq(give_sample(EVENT_ID, 101, 1000, 0x1000, 0x2001), 0);
	cr_assert_eq(give_sample(EVENT_ID, 101, 2000, 0x1000, 0x2001), 0);
	cr_assert_eq(give_sample(EVENT_ID, 102, 3000, 0x1000, 0x2001), 0);
	perfring_profile_read(profile, &tables);
	cr_assert_eq(tables.event_count, 1);
	cr_assert_str_eq(tables.events[0].name, "cpu-clock");
	cr_assert_str_eq(tables.events[0].unit, "ns");
	cr_assert_eq(tables.events[0].samples, 3);
	cr_assert_eq(tables.events[0].weight, 30);
	cr_assert_eq(tables.thread_count, 2);
	cr_assert_str_eq(tables.threads[0].comm, "worker");
	cr_assert_str_eq(tables.threads[1].comm, ":102");
	cr_assert_eq(tables.threads[0].pid, 100);
	cr_assert_eq(tables.weight_count, 2);
	cr_assert_eq(tables.samples[0].time, 1000);
	cr_assert_eq(tables.samples[0].cpu, 3);
	cr_assert_eq(tables.nameless, 3);
	perfring_profile_fill_count(fill, &counts);
	cr_assert_eq(counts.samples, 3);
	cr_assert_eq(counts.shown, 3);
	close_fill();
}

/* A thread leaves its CPU twice: it sleeps, and another is put in its place; then it leaves and does not return. */
Test(fill, switches_become_intervals)
{
	const struct perfring_profile_event *event;

	open_fill(NULL);
	cr_assert_eq(give_sample(SWITCH_ID, 101, 1000, 0x1000, 0x2001), 0);
	give_switch(101, 1001, PERFRING_RECORD_MISC_SWITCH_OUT);
	give_switch(101, 1500, 0);
	cr_assert_eq(give_sample(SWITCH_ID, 101, 2000, 0x1000, 0x2001), 0);
	give_switch(101, 2001, PERFRING_RECORD_MISC_SWITCH_OUT | PERFRING_RECORD_MISC_SWITCH_OUT_PREEMPT);
	give_switch(101, 2100, 0);
	cr_assert_eq(give_sample(SWITCH_ID, 101, 3000, 0x1000, 0x2001), 0);
	cr_assert_eq(give_sample(EVENT_ID, 102, 3300, 0x1000, 0x2001), 0);
	event = event_named(PERFRING_PROFILE_OFF_CPU);
	cr_assert(event && event->lasts == 1 && event->samples == 1 && event->weight == 500);
	cr_assert_eq(perfring_profile_fill_end(fill), 0);
	event = event_named(PERFRING_PROFILE_OFF_CPU);
	cr_assert(event && event->samples == 2 && event->weight == 800);
	event = event_named(PERFRING_PROFILE_RUNQUEUE);
	cr_assert(event && event->lasts == 1 && event->samples == 1 && event->weight == 100);
	cr_assert_null(event_named("context-switches"));
	close_fill();
}

/* One thread more than may wait: its switch is what it is. */
Test(fill, threads_that_wait_are_bounded)
{
	enum {
		WAITING_MAX = 1 << 20
	};
	const struct perfring_profile_event *event;

	open_fill(NULL);
	for (uint32_t i = 0; i <= WAITING_MAX; i++)
		cr_assert_eq(give_sample(SWITCH_ID, 1000 + i, 1000 + i, 0x1000, 0x2001), 0);
	event = event_named("context-switches");
	cr_assert(event && event->samples == 1);
	cr_assert_eq(perfring_profile_fill_end(fill), 0);
	event = event_named(PERFRING_PROFILE_OFF_CPU);
	cr_assert(event && event->samples == WAITING_MAX);
	close_fill();
}

Test(fill, spans_begin_before_their_samples)
{
	const struct perfring_profile_event *event;

	open_fill(NULL);
	cr_assert_eq(perfring_profile_fill_name(fill, 0, "span:query"), 0);
	cr_assert_eq(perfring_profile_fill_name(fill, 9, "span:query"), -EINVAL);
	cr_assert_eq(give_sample(EVENT_ID, 101, 1000, 0x1000, 0x2001), 0);
	event = event_named("span:query");
	cr_assert(event && event->lasts == 1 && event->weight == 10);
	cr_assert_eq(tables.samples[0].time, 990);
	close_fill();
}

/* An event that the session learns later. */
Test(fill, events_that_come_later)
{
	open_fill(NULL);
	cr_assert_eq(give_sample(EVENT_ID, 101, 1000, 0x1000, 0x2001), 0);
	describe(PERFRING_COUNT_SW_PAGE_FAULTS, LATER_ID, false);
	cr_assert_eq(give_sample(LATER_ID, 101, 2000, 0x1000, 0x2001), 0);
	cr_assert(event_named("page-faults") && event_named("page-faults")->samples == 1);
	close_fill();
}

Test(fill, filters)
{
	const struct {
		struct perfring_filter filter;
		uint64_t samples;
	} rows[] = {
		{{.comms = "worker"}, 2},	    {{.tids = "102,103"}, 2}, {{.pids = "100"}, 4}, {{.pids = "101"}, 0},
		{{.events = "cpu-clock"}, 4},	    {{.events = "faults"}, 0}, {{.cpus = "0-2"}, 0}, {{.cpus = "3"}, 4},
		{{.frames = PERFRING_FILTER_USER}, 4}, {{.frames = PERFRING_FILTER_KERNEL}, 0},
		{{.span_count = 1, .spans = {{2000, 3000}}}, 2}, {{.symbols = "main"}, 0},
	};
	struct perfring_profile_fill_counts counts;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_fill(&rows[i].filter);
		give_comm(101, "worker");
		cr_assert_eq(give_sample(EVENT_ID, 101, 1000, 0x1000, 0x2001), 0);
		cr_assert_eq(give_sample(EVENT_ID, 101, 2000, 0x1000, 0x2001), 0);
		cr_assert_eq(give_sample(EVENT_ID, 102, 3000, 0x1000, 0x2001), 0);
		cr_assert_eq(give_sample(EVENT_ID, 103, 4000, 0x1000, 0x2001), 0);
		perfring_profile_fill_count(fill, &counts);
		cr_assert_eq(counts.samples, 4);
		cr_assert_eq(counts.shown, rows[i].samples, "row %zu: %llu", i, (unsigned long long)counts.shown);
		close_fill();
	}
}

Test(fill, losses_and_damage)
{
	struct perfring_record record = {.type = PERFRING_RECORD_LOST};
	struct perfring_fault fault;
	struct perfring_item item;

	open_fill(NULL);
	record.is.lost.lost = 7;
	cr_assert_eq(give_record(&record, EVENT_ID, 101, 1000), 0);
	record = (struct perfring_record){.type = PERFRING_RECORD_LOST_SAMPLES};
	record.is.lost_samples.lost = 5;
	cr_assert_eq(give_record(&record, EVENT_ID, 101, 1000), 0);
	record = (struct perfring_record){.type = PERFRING_RECORD_THROTTLE};
	cr_assert_eq(give_record(&record, EVENT_ID, 101, 1000), 0);
	cr_assert_eq(give_sample(EVENT_ID, 101, 2000, 0x1000, 0x2001), 0);
	((struct perf_event_header *)(void *)words)->size -= 8; /* the chain is longer than the record now */
	item = (struct perfring_item){(const struct perf_event_header *)(const void *)words, format_of(EVENT_ID), 2000};
	cr_assert_eq(perfring_profile_fill_item(fill, &item, &fault), -EBADMSG);
	cr_assert_not_null(fault.what);
	item.format = NULL; /* an id of no event */
	cr_assert_eq(perfring_profile_fill_item(fill, &item, &fault), -EBADMSG);
	cr_assert_null(fault.what);
	perfring_profile_read(profile, &tables);
	cr_assert_eq(tables.lost[PERFRING_PROFILE_LOST_RECORDS], 7);
	cr_assert_eq(tables.lost[PERFRING_PROFILE_LOST_SAMPLES], 5);
	cr_assert_eq(tables.lost[PERFRING_PROFILE_THROTTLED], 1);
	cr_assert_eq(tables.lost[PERFRING_PROFILE_UNREAD], 2);
	cr_assert_eq(tables.events[0].lost_samples, 5);
	close_fill();
}

/* The next profile has what comes then, and no index of the old one. */
Test(fill, another_profile)
{
	struct perfring_profile *next;

	open_fill(NULL);
	give_comm(101, "worker");
	cr_assert_eq(give_sample(SWITCH_ID, 101, 1000, 0x1000, 0x2001), 0);
	cr_assert_eq(give_sample(EVENT_ID, 102, 2000, 0x1000, 0x2001), 0);
	cr_assert_eq(perfring_profile_open(&next, NULL), 0);
	perfring_profile_fill_renew(fill, next);
	perfring_profile_close(profile);
	profile = next;
	give_switch(101, 3000, 0);
	cr_assert_eq(give_sample(EVENT_ID, 101, 4000, 0x1000, 0x2001), 0);
	perfring_profile_read(profile, &tables);
	cr_assert_eq(tables.event_count, 1);
	cr_assert_eq(tables.events[0].samples, 1);
	cr_assert_eq(tables.thread_count, 1);
	cr_assert_str_eq(tables.threads[0].comm, "worker");
	close_fill();
}

Test(fill, called_wrongly)
{
	const struct perfring_filter wrong = {.cpus = "x"};
	const struct perfring_profile_fill_options options[] = {
		{.flags = 8}, {.addresses = PERFRING_FILL_ADDRESSES_COUNT}, {.filter = &wrong}};
	struct perfring_item item;

	open_fill(NULL);
	cr_assert_eq(give_sample(EVENT_ID, 101, 1000, 0x1000, 0x2001), 0);
	item = (struct perfring_item){(const struct perf_event_header *)(const void *)words, format_of(EVENT_ID), 1000};
	perfring_profile_fill_close(fill);
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		cr_assert_eq(perfring_profile_fill_open(&fill, profile, &options[i]), -EINVAL);
		cr_assert_null(fill);
	}
	cr_assert_eq(perfring_profile_fill_open(&fill, profile, NULL), 0);
	cr_assert_eq(perfring_profile_fill_item(fill, &item, NULL), -EINVAL, "of neither a file nor a session");
	cr_assert_eq(perfring_profile_fill_name(fill, 0, "x"), -EINVAL);
	close_fill();
}

/* ---- this process ---- */

/* The function at an address of this process has its own name. */
Test(fill, names_of_what_runs)
{
	struct perfring_names *names;
	struct perfring_name name;
	uint64_t version, here = (uintptr_t)describe;

	cr_assert_eq(perfring_names_open(&names, NULL), 0);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, (uint32_t)getpid(), here, &name), 0);
	cr_assert_eq(name.nameless, PERFRING_NAMELESS_UNMAPPED);
	version = perfring_maps_version(perfring_names_maps(names), (uint32_t)getpid());
	cr_assert_eq(perfring_names_take_process(names, (uint32_t)getpid()), 0);
	cr_assert_neq(perfring_maps_version(perfring_names_maps(names), (uint32_t)getpid()), version);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, (uint32_t)getpid(), here + 1, &name), 1);
	cr_assert_str_eq(name.name, "describe");
	cr_assert_eq(name.offset, 1);
	cr_assert(strstr(name.object, "fill_"), "%s", name.object);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_GUEST_USER, 1, here, &name), 0);
	cr_assert_eq(name.nameless, PERFRING_NAMELESS_MODE);
	cr_assert_not_null(perfring_maps_comm(perfring_names_maps(names), (uint32_t)getpid()));
	/* a process that there is not */
	cr_assert_eq(perfring_names_take_process(names, 0x7ffffffe), 0);
	perfring_names_close(names);
	cr_assert_eq(perfring_names_open(&names, &(struct perfring_names_options){.flags = 2}), -EINVAL);
}

/* What is reported of objects and of code that a process made. */
struct heard {
	unsigned objects, codes, missing;
};

static void hear(void *to, const struct perfring_names_report *report)
{
	struct heard *heard = to;

	heard->objects += report->event == PERFRING_NAMES_OBJECT && report->object;
	heard->codes += report->event == PERFRING_NAMES_CODE && !report->error && report->codes == 2;
	heard->missing += report->event == PERFRING_NAMES_CODE && report->error == -ENOENT;
}

Test(fill, names_of_code_that_was_made)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};
	uint32_t pid = (uint32_t)getpid();
	struct heard heard = {0};
	struct perfring_names *names;
	struct perfring_name name;
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	map = fopen(path, "w");
	cr_assert_not_null(map);
	fprintf(map, "700000001000 100 made\n700000001100 100 other\n");
	fclose(map);
	cr_assert_eq(perfring_names_open(&names, &(struct perfring_names_options){.report = hear, .to = &heard}), 0);
	record.is.mmap2 = (struct perfring_record_mmap2){
		.pid = pid, .tid = pid, .addr = 0x700000001000, .len = 0x1000, .prot = 5, .filename = {.data = "//anon", .size = 6}};
	cr_assert_eq(perfring_names_take_record(names, &record), 0);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, pid, 0x700000001108, &name), 1);
	cr_assert_str_eq(name.name, "other");
	cr_assert_str_eq(name.object, path);
	cr_assert_eq(name.offset, 8);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, pid, 0x700000001800, &name), 0);
	cr_assert_eq(name.nameless, PERFRING_NAMELESS_MADE);
	cr_assert_eq(heard.codes, 1);
	record.is.mmap2.pid = record.is.mmap2.tid = 0x7ffffffe;
	cr_assert_eq(perfring_names_take_record(names, &record), 0);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, 0x7ffffffe, 0x700000001108, &name), 0);
	cr_assert_eq(perfring_names_take_process(names, pid), 0);
	cr_assert_eq(perfring_names_find(names, PERFRING_RECORD_MISC_USER, pid, (uintptr_t)describe, &name), 1);
	cr_assert_eq(heard.objects, 1);
	perfring_names_close(names);
	unlink(path);
}
