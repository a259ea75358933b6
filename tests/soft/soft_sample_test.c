/* soft_sample_test.c - the samples of software events: each field against what the test knows; chains, registers, stacks. */
#include "sanitizers.h"
#include "test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <perfring/check.h>
#include <perfring/reader.h>
#include <perfring/record.h>

#include "clocks.h"
#include "far_stack.h"
#include "signal_frame.h"
#include "soft/soft_private.h"

TestSuite(soft_sample, .timeout = 60);

#define UNTOUCHED __attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
/* At both ends of a function: its frame is there, and stays, and what it calls last is no jump. */
#define FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")

#define FIELD(NAME) ((uint64_t)PERFRING_SAMPLE_##NAME)

enum {
	ID = 0x1d1d1d,
	STREAM = 0x57a57a,
	ADDR = 0xadda,
	PERIOD = 77,
	USER = 2, /* PERF_RECORD_MISC_USER */
	SAMPLE = 9,
	PAGE = 4096,
};

#define USER_MARK ((uint64_t)-512)

static const uint64_t words = FIELD(IDENTIFIER) | FIELD(IP) | FIELD(TID) | FIELD(TIME) | FIELD(ADDR) | FIELD(ID) |
			      FIELD(STREAM_ID) | FIELD(CPU) | FIELD(PERIOD);

/* ---- an event with a ring, made by hand ---- */

struct made {
	struct perfring_ring ring;
	struct perfring_writer *writer;
	struct perfring_reader reader;
	struct soft_thread thread;
	struct perfring_soft_event *event;
	struct soft_instance *instance;
};

static struct perf_event_attr attr_of(uint64_t sample_type)
{
	return (struct perf_event_attr){.type = PERFRING_SOFT_TYPE,
					.size = sizeof(struct perf_event_attr),
					.sample_type = sample_type,
					.sample_period = 1,
					.sample_id_all = 1};
}

static void make_event(struct made *made, const struct perf_event_attr *attr, uint64_t id, uint64_t stream)
{
	made->event = calloc(1, sizeof(*made->event));
	made->instance = calloc(1, sizeof(*made->instance));
	made->event->attr = *attr;
	made->event->pmu = &perfring__soft_points;
	cr_assert_eq(perfring_format_from_attr(&made->event->format, attr), 0);
	made->event->id = id;
	made->event->samples = true;
	made->event->on = 1;
	made->event->threads = 1;
	made->event->leader = made->event;
	made->event->opener = &made->thread;
	made->event->instances[0] = made->instance;
	made->instance->event = made->event;
	made->instance->thread = &made->thread;
	made->instance->id = stream;
	perfring__soft_output_init(made->instance);
}

static void make(struct made *made, const struct perf_event_attr *attr, uint32_t pages)
{
	struct perfring_ring_options options = {.pages = pages};
	pthread_attr_t own;
	void *low;
	size_t size;

	memset(made, 0, sizeof(*made));
	cr_assert_eq(perfring_ring_create(&made->ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&made->writer, &made->ring, NULL), 0);
	cr_assert_eq(perfring_reader_open(&made->reader, &made->ring, 0), 0);
	cr_assert_eq(pthread_getattr_np(pthread_self(), &own), 0);
	cr_assert_eq(pthread_attr_getstack(&own, &low, &size), 0);
	pthread_attr_destroy(&own);
	made->thread.stack_low = (uintptr_t)low;
	made->thread.stack_high = (uintptr_t)low + size;
	made->thread.pid = (uint32_t)getpid();
	made->thread.tid = (uint32_t)syscall(SYS_gettid);
	made->thread.pthread = pthread_self();
	perfring__soft_self = &made->thread;
	make_event(made, attr, ID, STREAM);
	made->instance->writer = made->writer;
}

static void unmake(struct made *made)
{
	perfring__soft_self = NULL;
	perfring_reader_close(&made->reader);
	perfring_writer_close(made->writer);
	perfring_ring_close(&made->ring);
	free(made->instance);
	free(made->event);
}

/* As perfring_soft_raise_active does. */
static UNTOUCHED bool put(struct made *made, const struct perfring_soft_site *site)
{
	uint64_t time;
	bool taken;

	FRAME();
	taken = perfring__soft_put_sample(made->instance, PERIOD, site, __builtin_frame_address(0),
					  __builtin_return_address(0), &time);
	FRAME();
	return taken;
}

/* The next record, NULL: there is none. */
static const struct perf_event_header *next(struct made *made)
{
	const struct perf_event_header *record;

	cr_assert_geq(perfring_reader_observe(&made->reader), 0);
	return perfring_reader_next(&made->reader, &record) == 1 ? record : NULL;
}

static const struct perf_event_header *next_sample(struct made *made, struct perfring_sample *sample)
{
	const struct perf_event_header *record = next(made);
	struct perfring_fault fault = {0, ""};

	cr_assert_not_null(record);
	cr_assert_eq(record->type, SAMPLE);
	cr_assert_eq(record->misc, USER);
	cr_assert_eq(perfring_record_check(&made->event->format, record, record->size, &fault), 0, "%s", fault.what);
	cr_assert_eq(perfring_sample_decode(&made->event->format, record, sample, &fault), 0, "%s", fault.what);
	cr_assert_eq(sample->present, made->event->attr.sample_type);
	cr_assert_eq(sample->trailing_size, 0u);
	return record;
}

/* A context that was never interrupted. */
static void set_context(ucontext_t *context, uint64_t ip, uint64_t sp, uint64_t bp)
{
	memset(context, 0, sizeof(*context));
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	context->uc_mcontext.gregs[REG_RBP] = (greg_t)bp;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = ip;
	context->uc_mcontext.sp = sp;
	context->uc_mcontext.regs[29] = bp;
#else
	(void)ip;
	(void)sp;
	(void)bp;
#endif
}

#if defined(__x86_64__) && defined(__LP64__)
#define FRAMES 1
#define REGISTERS UINT64_C(0xff0fff) /* ax to ss, r8 to r15 */
#define REGISTERS_NR 20
#elif defined(__aarch64__)
#define FRAMES 1
#define REGISTERS UINT64_C(0x1ffffffff) /* x0 to x29, lr, sp, pc */
#define REGISTERS_NR 33
#else
#define FRAMES 0
#define REGISTERS UINT64_C(0)
#define REGISTERS_NR 0
#endif

static void needs_frames(void)
{
	if (!FRAMES)
		cr_skip_test("SKIP-ENV: frames: x86-64 or aarch64 would allow it");
}

/* ---- the fields ---- */

static void check_fields(struct made *made, uint64_t type, const struct perfring_soft_site *site)
{
	struct perfring_sample sample;
	uint64_t before, after, told = 1;
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	cr_assert_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	cpu = sched_getcpu();
	before = now_of(CLOCK_MONOTONIC);
	cr_assert(perfring__soft_put_sample(made->instance, PERIOD, site, __builtin_frame_address(0), (void *)0x1234,
					    &told));
	after = now_of(CLOCK_MONOTONIC);
	next_sample(made, &sample);
	if (type & FIELD(IDENTIFIER))
		cr_assert_eq(sample.identifier, ID);
	if (type & FIELD(IP))
		cr_assert_eq(sample.ip, 0x1234);
	if (type & FIELD(TID)) {
		cr_assert_eq(sample.pid, (uint32_t)getpid());
		cr_assert_eq(sample.tid, (uint32_t)syscall(SYS_gettid));
	}
	if (type & FIELD(TIME)) {
		cr_assert_leq(before, sample.time);
		cr_assert_leq(sample.time, after);
	}
	cr_assert_eq(told, type & FIELD(TIME) ? sample.time : 1);
	if (type & FIELD(ADDR))
		cr_assert_eq(sample.addr, ADDR);
	if (type & FIELD(ID))
		cr_assert_eq(sample.id, ID);
	if (type & FIELD(STREAM_ID))
		cr_assert_eq(sample.stream_id, STREAM);
	if (type & FIELD(CPU)) {
		cr_assert_eq(sample.cpu, (uint32_t)cpu);
		cr_assert_eq(sample.cpu_reserved, 0u);
	}
	if (type & FIELD(PERIOD))
		cr_assert_eq(sample.period, PERIOD);
	if (type & FIELD(READ)) { /* value, id, lost */
		cr_assert_eq(sample.read.nr, 1);
		cr_assert_eq(perfring_read_value(&sample.read, 0), 4711);
		cr_assert_eq(perfring_read_id(&sample.read, 0), ID);
		cr_assert_eq(perfring_read_lost(&sample.read, 0), 0);
	}
	if (type & FIELD(CALLCHAIN)) {
		cr_assert_geq(sample.callchain.nr, 2);
		cr_assert_eq(sample.callchain.words[0], USER_MARK);
		cr_assert_eq(sample.callchain.words[1], 0x1234);
	}
	if (type & FIELD(RAW)) {
		cr_assert_eq(sample.raw.size, 12u); /* 4 + 5, up to 16 */
		cr_assert_eq(memcmp(sample.raw.data, "hello\0\0\0\0\0\0\0", 12), 0);
	}
	if (type & FIELD(REGS_USER) && FRAMES) {
		cr_assert_eq(sample.regs_user.abi, 2); /* 64 bits */
		cr_assert_eq(sample.regs_user.nr, (uint32_t)REGISTERS_NR);
#ifdef __x86_64__
		cr_assert_eq(sample.regs_user.values[8], 0x1234);
#endif
	}
	if (type & FIELD(STACK_USER)) {
		cr_assert_eq(sample.stack_user.size, 64);
		cr_assert_eq(sample.stack_user.dyn_size, 64);
	}
	perfring_reader_return(&made->reader);
}

static void check_type(uint64_t type)
{
	struct perfring_soft_site site = {.addr = ADDR, .raw = "hello", .raw_size = 5};
	struct perf_event_attr attr = attr_of(type);
	struct made made;

	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr.sample_regs_user = REGISTERS;
	attr.sample_stack_user = 64;
	make(&made, &attr, 8);
	made.instance->count = 4711;
	check_fields(&made, type, &site);
	unmake(&made);
}

static const uint64_t all = FIELD(IDENTIFIER) | FIELD(IP) | FIELD(TID) | FIELD(TIME) | FIELD(ADDR) | FIELD(READ) |
			    FIELD(CALLCHAIN) | FIELD(ID) | FIELD(CPU) | FIELD(PERIOD) | FIELD(STREAM_ID) | FIELD(RAW) |
			    FIELD(REGS_USER) | FIELD(STACK_USER);

Test(soft_sample, each_field)
{
	uint64_t bit;

	cr_assert_eq(all, 0x137ff); /* the 14 of soft.h */
	for (bit = 1; bit <= all; bit <<= 1)
		if (all & bit)
			check_type(bit);
}

/* The interrupted place, also where nothing else is wanted of it. */
Test(soft_sample, ip_of_a_context)
{
	struct perf_event_attr attr = attr_of(FIELD(IP));
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	ucontext_t context;
	struct made made;

	needs_frames();
	set_context(&context, 0x4321, 1, 1);
	site.context = &context;
	make(&made, &attr, 1);
	cr_assert(put(&made, &site));
	next_sample(&made, &sample);
	cr_assert_eq(sample.ip, 0x4321);
	unmake(&made);
}

Test(soft_sample, fields_together)
{
	check_type(all);
	check_type(words);
	check_type(words | FIELD(RAW));
	check_type(FIELD(IP) | FIELD(TID) | FIELD(REGS_USER) | FIELD(STACK_USER));
	check_type(0);
}

/* The record's bytes, one by one. */
Test(soft_sample, bytes)
{
	struct perf_event_attr attr = attr_of(FIELD(IDENTIFIER) | FIELD(IP) | FIELD(ADDR) | FIELD(PERIOD) | FIELD(RAW));
	struct perfring_soft_site site = {.addr = 3, .raw = "abcdefg", .raw_size = 7};
	const struct perf_event_header header = {SAMPLE, USER, 56};
	const uint32_t size = 12;
	const uint64_t expected[] = {ID, 2, 3, PERIOD};
	const struct perf_event_header *record;
	uint64_t time = 1;
	struct made made;

	make(&made, &attr, 1);
	cr_assert(
		perfring__soft_put_sample(made.instance, PERIOD, &site, __builtin_frame_address(0), (void *)2, &time));
	cr_assert_eq(time, 1, "it has none");
	record = next(&made);
	cr_assert_not_null(record);
	cr_assert_eq(memcmp(record, &header, sizeof(header)), 0);
	cr_assert_eq(memcmp(record + 1, expected, sizeof(expected)), 0);
	cr_assert_eq(memcmp((const char *)record + 40, &size, 4), 0);
	cr_assert_eq(memcmp((const char *)record + 44, "abcdefg\0\0\0\0", 12), 0);
	unmake(&made);
}

/* docs/abi.md 15: payload, size field, record with nothing but RAW. */
Test(soft_sample, raw_sizes)
{
	static const struct {
		uint32_t payload, field;
		uint16_t record;
	} rows[] = {{0, 4, 16}, {1, 4, 16}, {4, 4, 16}, {5, 12, 24}, {12, 12, 24}, {13, 20, 32}, {16, 20, 32}};
	struct perf_event_attr attr = attr_of(FIELD(RAW));
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct made made;
	size_t i, byte;

	make(&made, &attr, 8);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perfring_soft_site site = {.raw = "0123456789abcdef", .raw_size = rows[i].payload};

		cr_assert(put(&made, &site));
		record = next_sample(&made, &sample);
		cr_assert_eq(record->size, rows[i].record);
		cr_assert_eq(sample.raw.size, rows[i].field);
		cr_assert_eq(memcmp(sample.raw.data, "0123456789abcdef", rows[i].payload), 0);
		for (byte = rows[i].payload; byte < rows[i].field; byte++)
			cr_assert_eq(((const char *)sample.raw.data)[byte], 0);
	}
	/* All the ways of copying: nothing but the payload, and all of it. */
	for (i = 0; i < 200; i++) {
		char text[201], *own = malloc(i + 1); /* a sanitizer sees what lies behind */
		struct perfring_soft_site site = {.raw = own, .raw_size = (uint32_t)i};

		for (byte = 0; byte < i; byte++)
			own[byte] = text[byte] = (char)(1 + byte);
		own = realloc(own, i ? i : 1);
		site.raw = own;
		cr_assert(put(&made, &site));
		record = next_sample(&made, &sample);
		cr_assert_eq(record->size, (8 + 4 + i + 7) / 8 * 8);
		cr_assert_eq(memcmp(sample.raw.data, text, i), 0);
		for (byte = i; byte < sample.raw.size; byte++)
			cr_assert_eq(((const char *)sample.raw.data)[byte], 0);
		free(own);
	}
	unmake(&made);
}

Test(soft_sample, clocks)
{
	static const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI};
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	uint64_t before, after;
	struct made made;
	size_t i;

	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct perf_event_attr attr = attr_of(FIELD(TIME));

		attr.use_clockid = 1;
		attr.clockid = clocks[i];
		make(&made, &attr, 1);
		before = now_of(clocks[i]);
		cr_assert(put(&made, &site));
		after = now_of(clocks[i]);
		next_sample(&made, &sample);
		cr_assert_leq(before, sample.time);
		cr_assert_leq(sample.time, after);
		before = perfring__soft_now(made.event);
		cr_assert_leq(after, before);
		cr_assert_leq(before, now_of(clocks[i]));
		unmake(&made);
	}
}

Test(soft_sample, nowhere)
{
	struct perf_event_attr attr = attr_of(all);
	struct perfring_soft_site site = {0};
	struct made made;

	make(&made, &attr, 1);
	made.instance->writer = NULL;
	cr_assert(put(&made, &site));
	perfring__soft_put_throttle(made.instance, false);
	cr_assert_null(next(&made));
	cr_assert_eq(made.instance->output.lost, 0);
	unmake(&made);
}

/* ---- what is lost ---- */

static void check_trailer(const struct perfring_trailer *trailer, uint64_t id, uint64_t stream)
{
	cr_assert_eq(trailer->pid, (uint32_t)getpid());
	cr_assert_eq(trailer->tid, (uint32_t)syscall(SYS_gettid));
	cr_assert_eq(trailer->id, id);
	cr_assert_eq(trailer->stream_id, stream);
	cr_assert_lt(trailer->cpu, 4096u);
	cr_assert_eq(trailer->identifier, id);
}

static const uint64_t trailer_fields =
	FIELD(TID) | FIELD(TIME) | FIELD(ID) | FIELD(STREAM_ID) | FIELD(CPU) | FIELD(IDENTIFIER);

Test(soft_sample, lost_is_told)
{
	struct perf_event_attr attr = attr_of(trailer_fields);
	const struct perf_event_header *record;
	struct perfring_soft_site site = {0};
	struct perfring_record lost;
	struct perfring_sample sample;
	uint64_t last = 0, i;
	struct made made;

	make(&made, &attr, 1);
	for (i = 0; i < 100; i++) /* 56 bytes: 73 fit in 4095 */
		cr_assert_eq(put(&made, &site), i < 73);
	cr_assert_eq(made.instance->output.lost, 27);
	for (i = 0; i < 73; i++) {
		cr_assert_eq(next_sample(&made, &sample)->size, 56);
		cr_assert_leq(last, sample.time);
		last = sample.time;
	}
	cr_assert_null(next(&made));
	perfring_reader_return(&made.reader);
	cr_assert(put(&made, &site));
	record = next(&made);
	cr_assert_not_null(record);
	cr_assert_eq(perfring_record_check(&made.event->format, record, record->size, NULL), 0);
	cr_assert_eq(perfring_record_decode(&made.event->format, record, &lost, NULL), 0);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	cr_assert_eq(record->size, 72); /* 24, and six words */
	cr_assert_eq(lost.is.lost.id, ID);
	cr_assert_eq(lost.is.lost.lost, 27);
	cr_assert_eq(lost.trailer.present, trailer_fields);
	check_trailer(&lost.trailer, ID, STREAM);
	cr_assert_leq(last, lost.trailer.time);
	next_sample(&made, &sample);
	cr_assert_leq(lost.trailer.time, sample.time);
	cr_assert_eq(made.instance->output.lost, 27);
	unmake(&made);
}

/* Without sample_id_all: 24 bytes, and nothing behind. */
Test(soft_sample, lost_without_trailer)
{
	struct perf_event_attr attr = attr_of(trailer_fields);
	const struct perf_event_header *record;
	struct perfring_soft_site site = {0};
	struct made made;

	attr.sample_id_all = 0;
	make(&made, &attr, 1);
	cr_assert_eq(perfring__soft_put_trailer(made.instance, NULL, 1), 0u);
	while (put(&made, &site))
		;
	perfring_reader_skip(&made.reader);
	perfring_reader_return(&made.reader);
	cr_assert(put(&made, &site));
	record = next(&made);
	cr_assert_not_null(record);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	cr_assert_eq(record->size, 24);
	unmake(&made);
}

Test(soft_sample, trailer_by_type)
{
	static const uint64_t fields[] = {FIELD(TID),       FIELD(TIME), FIELD(ID),
					  FIELD(STREAM_ID), FIELD(CPU),  FIELD(IDENTIFIER)};
	uint64_t expected[6] = {0, 99, ID, STREAM, 0, ID}, buffer[6];
	uint32_t halves[12];
	struct perf_event_attr attr;
	struct made made;
	unsigned set, i;

	for (set = 0; set < 64; set++) {
		uint32_t size = 0, at = 0;

		attr = attr_of(FIELD(IP) | FIELD(PERIOD) | FIELD(CALLCHAIN));
		for (i = 0; i < 6; i++)
			if (set & 1u << i) {
				attr.sample_type |= fields[i];
				size += 8;
			}
		make(&made, &attr, 1);
		memcpy(&expected[0], (uint32_t[]){made.thread.pid, made.thread.tid}, 8);
		cr_assert_eq(perfring__soft_put_trailer(made.instance, (unsigned char *)buffer, 99), size);
		cr_assert_eq(made.instance->output.trailer_size, size);
		cr_assert_eq(made.instance->output.id, ID);
		memcpy(halves, buffer, size);
		for (i = 0; i < 6; i++)
			if (set & 1u << i) {
				if (i == 4)
					cr_assert_lt(halves[2 * at], 4096u); /* the CPU, and a word of 0 */
				else
					cr_assert_eq(buffer[at], expected[i]);
				at++;
			}
		unmake(&made);
	}
}

/* attr.wakeup_events are this event's, unless the word is a watermark. */
Test(soft_sample, wakeup_events)
{
	struct perf_event_attr attr = attr_of(FIELD(IP));
	struct made made;

	attr.wakeup_events = 3;
	make(&made, &attr, 1);
	cr_assert_eq(made.instance->output.wakeup_events, 3u);
	unmake(&made);
	attr.watermark = 1;
	make(&made, &attr, 1);
	cr_assert_eq(made.instance->output.wakeup_events, 0u);
	unmake(&made);
}

/* ---- THROTTLE ---- */

Test(soft_sample, throttle_is_the_leaders)
{
	struct perf_event_attr attr = attr_of(trailer_fields), plain = attr_of(FIELD(IP));
	const struct perf_event_header *record;
	struct perfring_record throttle;
	struct made leader;
	uint64_t before, after;
	unsigned way;

	make(&leader, &attr, 1);
	for (way = 0; way < 2; way++) {
		before = now_of(CLOCK_MONOTONIC);
		perfring__soft_put_throttle(leader.instance, way);
		after = now_of(CLOCK_MONOTONIC);
		record = next(&leader);
		cr_assert_not_null(record);
		cr_assert_eq(record->type, way ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE);
		cr_assert_eq(record->misc, 0);
		cr_assert_eq(record->size, 80);
		cr_assert_eq(perfring_record_check(&leader.event->format, record, record->size, NULL), 0);
		cr_assert_eq(perfring_record_decode(&leader.event->format, record, &throttle, NULL), 0);
		cr_assert_eq(throttle.is.throttle.id, ID);
		cr_assert_eq(throttle.is.throttle.stream_id, STREAM);
		cr_assert_leq(before, throttle.is.throttle.time);
		cr_assert_leq(throttle.is.throttle.time, after);
		cr_assert_eq(throttle.trailer.time, throttle.is.throttle.time);
		check_trailer(&throttle.trailer, ID, STREAM);
	}
	unmake(&leader);
	plain.sample_id_all = 0;
	make(&leader, &plain, 1);
	perfring__soft_put_throttle(leader.instance, false);
	record = next(&leader);
	cr_assert_not_null(record);
	cr_assert_eq(record->size, 32);
	unmake(&leader);
}

/* ---- sizes ---- */

Test(soft_sample, stack_is_cut_to_the_record)
{
	static const struct {
		uint64_t type;
		uint32_t raw, asked;
		uint64_t stack;
		uint16_t record;
	} rows[] = {
		{FIELD(IDENTIFIER) | FIELD(STACK_USER), 0, 65528, 65496, 65528}, /* docs/abi.md 15 */
		{FIELD(IDENTIFIER) | FIELD(STACK_USER), 0, 65496, 65496, 65528},
		{FIELD(IDENTIFIER) | FIELD(STACK_USER), 0, 65488, 65488, 65520},
		{FIELD(STACK_USER), 0, 65528, 65504, 65528},
		{FIELD(STACK_USER), 0, 0, 0, 16}, /* one word of 0: docs/abi.md 14.3 */
		{FIELD(RAW) | FIELD(STACK_USER), 65484, 800, 16, 65528},
		{FIELD(RAW) | FIELD(STACK_USER), 65492, 800, 8, 65528},
		{FIELD(RAW) | FIELD(STACK_USER), 65500, 800, 0, 65520},
		{FIELD(RAW) | FIELD(STACK_USER), 65508, 800, 0, 65528},
		{FIELD(RAW), 65516, 0, 0, 65528},
		{FIELD(RAW) | FIELD(STACK_USER), 65516, 800, 0, 0}, /* not even a word: refused */
		{FIELD(RAW), 65517, 0, 0, 0},
		{FIELD(RAW), UINT32_MAX, 0, 0, 0},
		{FIELD(RAW) | FIELD(CALLCHAIN), 65516, 0, 0, 0},
	};
	static char payload[65536];
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct made made;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perf_event_attr attr = attr_of(rows[i].type);
		struct perfring_soft_site site = {.raw = payload, .raw_size = rows[i].raw};

		attr.sample_stack_user = rows[i].asked;
		make(&made, &attr, 64);
		memset(made.ring.data, 0xee, 65536);
		cr_assert_eq(put(&made, &site), rows[i].record != 0, "row %zu", i);
		cr_assert_eq(made.ring.data[rows[i].record], 0xee, "row %zu", i); /* nothing behind it */
		cr_assert_eq(made.instance->output.lost, rows[i].record == 0);
		if (rows[i].record) {
			record = next_sample(&made, &sample);
			cr_assert_eq(record->size, rows[i].record, "row %zu: %u", i, record->size);
			if (rows[i].type & FIELD(STACK_USER))
				cr_assert_eq(sample.stack_user.size, rows[i].stack, "row %zu", i);
		}
		cr_assert_null(next(&made));
		unmake(&made);
	}
}

/* A ring that is too small for the record: refused, as often as it is tried. */
Test(soft_sample, larger_than_the_ring)
{
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(STACK_USER));
	struct perfring_soft_site site = {0};
	struct made made;

	attr.sample_stack_user = 8192;
	make(&made, &attr, 1);
	cr_assert_not(put(&made, &site));
	cr_assert_not(put(&made, &site));
	cr_assert_eq(made.instance->output.lost, 2);
	cr_assert_eq(perfring_writer_lost(made.writer), 2);
	unmake(&made);
}

/* ---- call chains ---- */

static uint64_t returns[4];

static UNTOUCHED void inner(struct made *made, const struct perfring_soft_site *site)
{
	FRAME();
	returns[0] = (uintptr_t)__builtin_return_address(0);
	put(made, site);
	FRAME();
}

static UNTOUCHED void middle(struct made *made, const struct perfring_soft_site *site)
{
	FRAME();
	returns[1] = (uintptr_t)__builtin_return_address(0);
	inner(made, site);
	FRAME();
}

static UNTOUCHED void outer(struct made *made, const struct perfring_soft_site *site)
{
	FRAME();
	returns[2] = (uintptr_t)__builtin_return_address(0);
	middle(made, site);
	FRAME();
}

static UNTOUCHED void outermost(struct made *made, const struct perfring_soft_site *site)
{
	FRAME();
	returns[3] = (uintptr_t)__builtin_return_address(0);
	outer(made, site);
	FRAME();
}

Test(soft_sample, chain_of_functions)
{
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(CALLCHAIN));
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	struct made made;

	needs_frames();
	make(&made, &attr, 1);
	outermost(&made, &site);
	next_sample(&made, &sample);
	cr_assert_geq(sample.callchain.nr, 6);
	cr_assert_eq(sample.callchain.words[0], USER_MARK);
	cr_assert_eq(sample.callchain.words[1], sample.ip);
	cr_assert_gt(sample.ip, (uintptr_t)inner);
	cr_assert_lt(sample.ip - (uintptr_t)inner, 256);
	cr_assert_eq(memcmp(sample.callchain.words + 2, returns, sizeof(returns)), 0);
	cr_assert_lt(sample.callchain.nr, 128);
	unmake(&made);
	attr.exclude_callchain_user = 1;
	make(&made, &attr, 1);
	outermost(&made, &site);
	next_sample(&made, &sample);
	cr_assert_eq(sample.callchain.nr, 0);
	unmake(&made);
}

Test(soft_sample, chain_on_an_unknown_stack)
{
	struct perf_event_attr attr = attr_of(FIELD(CALLCHAIN));
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	struct made made;

	needs_frames();
	needs_far();
	make(&made, &attr, 1);
	made.thread.stack_low = made.thread.stack_high = 0;
	outermost(&made, &site);
	next_sample(&made, &sample);
	cr_assert_geq(sample.callchain.nr, 6);
	cr_assert_eq(memcmp(sample.callchain.words + 2, returns, sizeof(returns)), 0);
	unmake(&made);
}

/* A stack made by hand: `size` bytes that can be read and written between two pages that cannot. */
static unsigned char *stack_make(size_t size)
{
	unsigned char *low = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(low, MAP_FAILED);
	cr_assert_eq(mprotect(low + PAGE, size, PROT_READ | PROT_WRITE), 0);
	return low + PAGE;
}

static void stack_unmake(unsigned char *low, size_t size)
{
	munmap(low - PAGE, size + 2 * PAGE);
}

#define CODE(i) (0x400000u + (uint64_t)(i))

/* A chain of frames of 32 bytes, from `at` upwards; the last one's caller is 0. */
static void frames_make(unsigned char *at, size_t count)
{
	uint64_t *frame = (uint64_t *)(void *)at;
	size_t i;

	for (i = 0; i < count; i++, frame += 4) {
		frame[0] = i + 1 < count ? (uintptr_t)(frame + 4) : 0;
		frame[1] = CODE(i);
	}
}

static uint32_t unwind(uint64_t *words_, uint32_t most, uint64_t sp, uint64_t bp, const struct soft_thread *thread)
{
	struct soft_registers registers = {.ip = 0x3fffff, .sp = sp, .bp = bp};
	uint32_t count = perfring__soft_unwind(words_, most, &registers, thread);

	cr_assert_leq(count, most);
	if (most > 0)
		cr_assert_eq(words_[0], USER_MARK);
	if (most > 1)
		cr_assert_eq(words_[1], 0x3fffff);
	return count;
}

Test(soft_sample, chain_is_bounded)
{
	static const struct {
		uint16_t attr;
		uint64_t nr;
	} rows[] = {{0, 128}, {1, 2}, {5, 6}, {127, 128}, {500, 128}};
	enum {
		SIZE = 64 * PAGE
	};
	unsigned char *stack = stack_make(SIZE);
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	uint64_t words_[201];
	ucontext_t context;
	struct made made;
	uint32_t most, i;
	unsigned known;
	size_t row;

	needs_frames();
	frames_make(stack + 64, 1000);
	for (known = 2; known--;) {
		if (!known)
			needs_far();
		for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(CALLCHAIN));

			attr.sample_max_stack = rows[row].attr;
			make(&made, &attr, 1);
			if (known) {
				made.thread.stack_low = (uintptr_t)stack;
				made.thread.stack_high = (uintptr_t)stack + SIZE;
			}
			set_context(&context, 0x3fffff, (uintptr_t)stack, (uintptr_t)stack + 64);
			site.context = &context;
			cr_assert(put(&made, &site));
			next_sample(&made, &sample);
			cr_assert_eq(sample.ip, 0x3fffff);
			cr_assert_eq(sample.callchain.nr, rows[row].nr);
			cr_assert_eq(sample.callchain.words[1], 0x3fffff);
			for (i = 2; i < sample.callchain.nr; i++)
				cr_assert_eq(sample.callchain.words[i], CODE(i - 2));
			for (most = 0; most <= 200; most++) {
				memset(words_, 0x5a, sizeof(words_));
				cr_assert_eq(
					unwind(words_, most, (uintptr_t)stack, (uintptr_t)stack + 64, &made.thread),
					most);
				cr_assert_eq(words_[most], UINT64_C(0x5a5a5a5a5a5a5a5a));
			}
			unmake(&made);
		}
	}
	/* All of them, and the end. */
	made.thread = (struct soft_thread){.stack_low = (uintptr_t)stack, .stack_high = (uintptr_t)stack + SIZE};
	frames_make(stack + 64, 20);
	cr_assert_eq(unwind(words_, 200, (uintptr_t)stack, (uintptr_t)stack + 64, &made.thread), 22u);
	stack_unmake(stack, SIZE);
}

/* Frame pointers that are none: how many words each gives, on the thread's own stack and elsewhere. */
Test(soft_sample, wild_frame_pointers)
{
	enum {
		SIZE = 4 * PAGE
	};
	unsigned char *stack = stack_make(SIZE), *heap = stack_make(SIZE);
	uint64_t low = (uintptr_t)stack, high = low + SIZE, sp = low + 1024, other = (uintptr_t)heap;
	uint64_t words_[128];
	struct soft_thread thread = {
		.pid = (uint32_t)getpid(), .stack_low = (uintptr_t)low, .stack_high = (uintptr_t)high};
	const struct {
		uint64_t bp, known, unknown;
	} rows[] = {
		{0, 2, 2},
		{1, 2, 2},
		{7, 2, 2},
		{8, 2, 2},
		{4096, 2, 2},
		{UINT64_MAX, 2, 2},
		{UINT64_MAX - 7, 2, 2},
		{UINT64_MAX - 15, 2, 2},
		{UINT64_C(1) << 63, 2, 2},
		{UINT64_C(0xffffffff81000000), 2, 2}, /* the kernel's */
		{UINT64_C(0xffff888000000000), 2, 2},
		{UINT64_C(0x0000800000000000), 2, 2}, /* no address at all */
		{UINT64_C(0x7ffffffff000), 2, 2},
		{low - 8, 2, 2}, /* not readable */
		{low - 16, 2, 2},
		{low - PAGE, 2, 2},
		{high, 2, 2},
		{high + 8, 2, 2},
		{high - 8, 2, 2},  /* the second word is outside */
		{high - 16, 3, 3}, /* a frame whose caller is 0 */
		{sp + 64, 12, 12}, /* ten frames */
		{sp + 65, 2, 2},   /* misaligned */
		{sp + 68, 2, 2},
		{sp + 512, 3, 3}, /* its own caller: a circle of one */
		{sp + 544, 4, 6}, /* a circle of two: falls once where nothing is known */
		{sp + 608, 2, 2}, /* returns to 0 */
		{sp + 640, 2, 2}, /* to the kernel */
		{sp + 672, 2, 2}, /* to what would be a marker */
		{sp + 704, 3, 3}, /* its caller is not mapped */
		{sp - 64, 2, 4},  /* below sp */
		{other, 2, 3},    /* another's memory, which looks like a frame */
	};
	uint64_t *word = (uint64_t *)(void *)stack;
	size_t i;

	needs_frames();
#define AT(address) word[((address)-low) / 8]
	frames_make(stack + 1024 + 64, 10);
	AT(high - 8) = CODE(0);
	AT(sp + 512) = sp + 512;
	AT(sp + 520) = CODE(1);
	AT(sp + 544) = sp + 576;
	AT(sp + 552) = CODE(2);
	AT(sp + 576) = sp + 544;
	AT(sp + 584) = CODE(3);
	AT(sp + 608) = sp + 512;
	AT(sp + 640) = sp + 512;
	AT(sp + 648) = UINT64_C(0xffffffff81000000);
	AT(sp + 672) = sp + 512;
	AT(sp + 680) = USER_MARK;
	AT(sp + 704) = high + 64;
	AT(sp + 712) = CODE(4);
	AT(sp - 64) = sp + 512;
	AT(sp - 56) = CODE(5);
#undef AT
	*(uint64_t *)(void *)(heap + 8) = CODE(6);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 4242;
		cr_assert_eq(unwind(words_, 128, sp, rows[i].bp, &thread), rows[i].known, "row %zu, known", i);
		unwind(words_, 128, other, rows[i].bp, &thread); /* from elsewhere into the thread's own, or not */
		cr_assert_eq(errno, 4242);
	}
	/* A guard that somebody takes for stack: entered from elsewhere, it is not touched. */
	thread.stack_low = (uintptr_t)low - PAGE;
	cr_assert_eq(unwind(words_, 128, other, low - 64, &thread), 2u);
	needs_far();
	thread.stack_low = thread.stack_high = 0;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 4242;
		cr_assert_eq(unwind(words_, 128, sp, rows[i].bp, &thread), rows[i].unknown, "row %zu, unknown", i);
		cr_assert_eq(errno, 4242);
	}
	stack_unmake(stack, SIZE);
	stack_unmake(heap, SIZE);
}

/* From an alternate stack to the thread's own, wherever they lie, and between two that are not known; once down. */
Test(soft_sample, chain_across_stacks)
{
	enum {
		SIZE = 8 * PAGE
	};
	unsigned char *area = stack_make(SIZE);
	uint64_t lower = (uintptr_t)area + 64, upper = (uintptr_t)area + SIZE / 2, from, to, words_[32], i;
	struct soft_thread thread = {.pid = (uint32_t)getpid()};
	unsigned way, known;
	uint64_t *last;

	needs_frames();
	needs_far();
	for (way = 0; way < 2; way++)
		for (known = 0; known < 2; known++) {
			from = way ? upper : lower;
			to = way ? lower : upper;
			frames_make((unsigned char *)(uintptr_t)from, 3);
			frames_make((unsigned char *)(uintptr_t)to, 4);
			last = (uint64_t *)(uintptr_t)(from + 64);
			last[0] = to;
			thread.stack_low = known ? (uintptr_t)to & ~(uintptr_t)4095 : 0;
			thread.stack_high = known ? thread.stack_low + SIZE / 2 : 0;
			cr_assert_eq(unwind(words_, 32, from, from, &thread), 9u, "way %u %u", way, known);
			for (i = 0; i < 3; i++)
				cr_assert_eq(words_[2 + i], CODE(i));
			for (i = 0; i < 4; i++)
				cr_assert_eq(words_[5 + i], CODE(i));
		}
	/* From an alternate stack down to a coroutine, and from there down to the thread's own. */
	for (i = 0; i < 3; i++)
		frames_make(area + (2 - i) * PAGE, 1);
	*(uint64_t *)(void *)(area + 2 * PAGE) = (uintptr_t)area + PAGE;
	*(uint64_t *)(void *)(area + PAGE) = (uintptr_t)area;
	thread.stack_low = (uintptr_t)area;
	thread.stack_high = (uintptr_t)area + PAGE;
	cr_assert_eq(unwind(words_, 32, (uintptr_t)area + 2 * PAGE, (uintptr_t)area + 2 * PAGE, &thread), 5u);
	stack_unmake(area, SIZE);
}

/* In the middle of a function: a signal that no sanitizer delays. */
#if defined(__x86_64__)
#define INTERRUPT() __asm__ volatile("int3" : : : "memory")
#else
#define INTERRUPT() syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGTRAP)
#endif

static struct made *handled;
static bool with_context;
static uint64_t context_ip, context_sp;

static UNTOUCHED void handle(int nr, siginfo_t *what, void *context)
{
	const ucontext_t *ucontext = context;
	struct perfring_soft_site site = {.context = with_context ? context : NULL};

	FRAME();
	(void)nr;
	(void)what;
#if defined(__x86_64__)
	context_ip = (uint64_t)ucontext->uc_mcontext.gregs[REG_RIP];
	context_sp = (uint64_t)ucontext->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	context_ip = ucontext->uc_mcontext.pc;
	context_sp = ucontext->uc_mcontext.sp;
#else
	(void)ucontext;
#endif
	put(handled, &site);
	FRAME();
}

static UNTOUCHED void victim(void)
{
	FRAME();
	returns[0] = (uintptr_t)__builtin_return_address(0);
	INTERRUPT();
	FRAME();
}

static UNTOUCHED void victims_caller(void)
{
	FRAME();
	returns[1] = (uintptr_t)__builtin_return_address(0);
	victim();
	FRAME();
}

static void install(int nr, int flags)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | flags};

	cr_assert_eq(sigaction(nr, &action, NULL), 0);
}

/* What the handler has put: the chain of whom it interrupted. */
static void check_handled(void)
{
	struct perfring_sample sample;
	uint64_t i;

	next_sample(handled, &sample);
	if (with_context) {
		cr_assert_eq(sample.ip, context_ip);
		cr_assert_geq(sample.callchain.nr, 4);
		cr_assert_eq(sample.callchain.words[1], context_ip);
#if defined(__x86_64__)
		i = 2; /* elsewhere the C library's function stands between */
		cr_assert_gt(context_ip, (uintptr_t)victim);
		cr_assert_lt(context_ip - (uintptr_t)victim, 256);
#endif
	} else {
		cr_assert_geq(sample.callchain.nr, 5);
		cr_assert_gt(sample.ip, (uintptr_t)handle);
		cr_assert_lt(sample.ip - (uintptr_t)handle, 512);
		i = 3; /* the restorer is before it */
	}
#if !defined(__x86_64__)
	for (i = 2; i < sample.callchain.nr && sample.callchain.words[i] != returns[0]; i++)
		;
	cr_assert_lt(i + 1, sample.callchain.nr);
#endif
	cr_assert_eq(sample.callchain.words[i], returns[0]);
	cr_assert_eq(sample.callchain.words[i + 1], returns[1]);
	perfring_reader_return(&handled->reader);
}

/* On the same stack, on alternate ones below and above; with the context and without. */
Test(soft_sample, chain_through_a_signal)
{
	enum {
		SIZE = 64 * 1024
	};
	static unsigned char below[SIZE];
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(CALLCHAIN));
	stack_t alternate = {.ss_size = SIZE}, none = {.ss_flags = SS_DISABLE};
	unsigned char *mapped = stack_make(SIZE);
	struct made made;
	unsigned way;

	needs_frames();
	make(&made, &attr, 8);
	handled = &made;
	for (way = 0; way < 6; way++) {
		with_context = way < 3;
		if (IS_THREAD_SANITIZED && !with_context)
			continue; /* its own handler is between */
		alternate.ss_sp = way % 3 == 1 ? below : mapped;
		if (way % 3) {
			if (!with_context)
				needs_far();
			cr_assert_eq(sigaltstack(&alternate, NULL), 0);
		}
		install(SIGTRAP, way % 3 ? SA_ONSTACK : 0);
		victims_caller();
		check_handled();
	}
	cr_assert_eq(sigaltstack(&none, NULL), 0);
	unmake(&made);
	stack_unmake(mapped, SIZE);
}

/* A coroutine, whose stack nobody has told us, interrupted on an alternate stack that lies above it, and below. */
static ucontext_t to_main, to_coroutine;

static UNTOUCHED void coroutine(void)
{
	FRAME();
	victims_caller();
	FRAME();
}

Test(soft_sample, chain_in_a_coroutine)
{
	enum {
		SIZE = 256 * 1024
	};
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(CALLCHAIN));
	unsigned char *area = stack_make(2 * SIZE);
	stack_t alternate = {.ss_size = SIZE}, none = {.ss_flags = SS_DISABLE};
	struct made made;
	unsigned way;

	needs_frames();
	needs_far();
	if (IS_SANITIZED)
		cr_skip_test("SKIP-ENV: swapcontext: sanitizers follow no stack but their own");
	make(&made, &attr, 8);
	handled = &made;
	install(SIGTRAP, SA_ONSTACK);
	for (way = 0; way < 4; way++) {
		with_context = way & 1;
		alternate.ss_sp = way & 2 ? area : area + SIZE;
		cr_assert_eq(sigaltstack(&alternate, NULL), 0);
		cr_assert_eq(getcontext(&to_coroutine), 0);
		to_coroutine.uc_stack.ss_sp = way & 2 ? area + SIZE : area;
		to_coroutine.uc_stack.ss_size = SIZE;
		to_coroutine.uc_link = &to_main;
		makecontext(&to_coroutine, coroutine, 0);
		cr_assert_eq(swapcontext(&to_main, &to_coroutine), 0);
		check_handled();
	}
	cr_assert_eq(sigaltstack(&none, NULL), 0);
	unmake(&made);
	stack_unmake(area, 2 * SIZE);
}

/* ---- registers ---- */

#if defined(__x86_64__) && defined(__LP64__)
uint64_t soft_sample_sp;

/* Sets every register, and is interrupted. */
static UNTOUCHED void set_all(void)
{
	__asm__ volatile("leaq -256(%%rsp), %%rsp\n\t" /* the red zone stays */
			 "pushq %%rbp\n\t"
			 "movq %%rsp, soft_sample_sp(%%rip)\n\t"
			 "movabsq $0xa0a0a0a0a0a0a0a0, %%rax\n\t"
			 "movabsq $0xb1b1b1b1b1b1b1b1, %%rbx\n\t"
			 "movabsq $0xc2c2c2c2c2c2c2c2, %%rcx\n\t"
			 "movabsq $0xd3d3d3d3d3d3d3d3, %%rdx\n\t"
			 "movabsq $0xe4e4e4e4e4e4e4e4, %%rsi\n\t"
			 "movabsq $0xf5f5f5f5f5f5f5f5, %%rdi\n\t"
			 "movabsq $0x0606060606060606, %%rbp\n\t"
			 "movabsq $0x1616161616161616, %%r8\n\t"
			 "movabsq $0x1717171717171717, %%r9\n\t"
			 "movabsq $0x1818181818181818, %%r10\n\t"
			 "movabsq $0x1919191919191919, %%r11\n\t"
			 "movabsq $0x2020202020202020, %%r12\n\t"
			 "movabsq $0x2121212121212121, %%r13\n\t"
			 "movabsq $0x2222222222222222, %%r14\n\t"
			 "movabsq $0x2323232323232323, %%r15\n\t"
			 "stc\n\t"
			 "int3\n\t"
			 ".globl soft_sample_stopped\n"
			 "soft_sample_stopped:\n\t"
			 "popq %%rbp\n\t"
			 "leaq 256(%%rsp), %%rsp"
			 :
			 :
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
			   "r15", "memory", "cc");
}

extern const char soft_sample_stopped[];

Test(soft_sample, registers_of_a_context)
{
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(CALLCHAIN) | FIELD(REGS_USER));
	struct perfring_sample sample;
	struct made made;
	uint64_t flags;

	attr.sample_regs_user = REGISTERS;
	make(&made, &attr, 1);
	handled = &made;
	with_context = true;
	install(SIGTRAP, 0);
	set_all();
	next_sample(&made, &sample);
	cr_assert_eq(sample.ip, (uintptr_t)soft_sample_stopped);
	cr_assert_eq(sample.callchain.nr, 2); /* rbp is no frame: nothing but the place */
	cr_assert_eq(sample.regs_user.abi, 2);
	cr_assert_eq(sample.regs_user.nr, 20u);
	flags = sample.regs_user.values[9];
	cr_assert_eq(flags & 0x203, 0x203); /* interrupts on, the bit that is always set, carry */
	{
		const uint64_t expected[20] = {
			UINT64_C(0xa0a0a0a0a0a0a0a0),
			UINT64_C(0xb1b1b1b1b1b1b1b1),
			UINT64_C(0xc2c2c2c2c2c2c2c2),
			UINT64_C(0xd3d3d3d3d3d3d3d3),
			UINT64_C(0xe4e4e4e4e4e4e4e4),
			UINT64_C(0xf5f5f5f5f5f5f5f5),
			UINT64_C(0x0606060606060606),
			soft_sample_sp,
			(uintptr_t)soft_sample_stopped,
			flags,
			0x33, /* cs */
			0x2b, /* ss */
			UINT64_C(0x1616161616161616),
			UINT64_C(0x1717171717171717),
			UINT64_C(0x1818181818181818),
			UINT64_C(0x1919191919191919),
			UINT64_C(0x2020202020202020),
			UINT64_C(0x2121212121212121),
			UINT64_C(0x2222222222222222),
			UINT64_C(0x2323232323232323),
		};

		cr_assert_eq(memcmp(sample.regs_user.values, expected, sizeof(expected)), 0);
	}
	unmake(&made);
	/* Few of them, in the order of their bits. */
	attr.sample_regs_user = 1u << 23 | 1u << 7 | 1u << 1;
	make(&made, &attr, 1);
	set_all();
	next_sample(&made, &sample);
	cr_assert_eq(sample.regs_user.nr, 3u);
	cr_assert_eq(sample.regs_user.values[0], UINT64_C(0xb1b1b1b1b1b1b1b1));
	cr_assert_eq(sample.regs_user.values[1], soft_sample_sp);
	cr_assert_eq(sample.regs_user.values[2], UINT64_C(0x2323232323232323));
	unmake(&made);
}

static uint64_t here_sp, here_bp;

/* The stack pointer as it is around the call: nothing is pushed for it, the arguments are in registers. */
static UNTOUCHED void raise_here(struct made *made, const struct perfring_soft_site *site)
{
	FRAME();
	returns[0] = (uintptr_t)__builtin_return_address(0);
	here_bp = (uintptr_t)__builtin_frame_address(0);
	__asm__ volatile("movq %%rsp, %0" : "=r"(here_sp) : : "memory");
	put(made, site);
	FRAME();
}

/* Without a context: of the place that raised, as far as it is known; the rest is 0. */
Test(soft_sample, registers_of_a_place)
{
	struct perf_event_attr attr = attr_of(FIELD(IP) | FIELD(REGS_USER) | FIELD(STACK_USER));
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	struct made made;
	uint32_t i;

	attr.sample_regs_user = REGISTERS;
	attr.sample_stack_user = 256;
	make(&made, &attr, 1);
	raise_here(&made, &site);
	next_sample(&made, &sample);
	cr_assert_gt(sample.ip, (uintptr_t)raise_here);
	cr_assert_lt(sample.ip - (uintptr_t)raise_here, 256);
	for (i = 0; i < 20; i++)
		cr_assert_eq(sample.regs_user.values[i],
			     i == 6   ? here_bp
			     : i == 7 ? here_sp
			     : i == 8 ? sample.ip
				      : 0,
			     "%u", i);
	/* Its frame: the return address. */
	cr_assert_eq(sample.stack_user.dyn_size, 256);
	cr_assert_lt(here_bp - here_sp, 200);
	cr_assert_eq(((const perfring_word *)sample.stack_user.data)[(here_bp - here_sp) / 8 + 1], returns[0]);
	unmake(&made);
}
#endif

/* ---- the stack ---- */

static unsigned char copied[1024];
static uint64_t copied_at;

static UNTOUCHED void call_nothing(void)
{
	__asm__ volatile("" : : : "memory");
}

static UNTOUCHED void fill_and_stop(void)
{
	volatile unsigned char pattern[sizeof(copied)];
	size_t i;

	for (i = 0; i < sizeof(pattern); i++)
		copied[i] = pattern[i] = (unsigned char)(i * 7 + i / 256);
	copied_at = (uintptr_t)pattern;
	call_nothing(); /* who calls keeps nothing below sp */
	INTERRUPT();
	FRAME();
}

Test(soft_sample, stack_is_copied)
{
	struct perf_event_attr attr = attr_of(FIELD(REGS_USER) | FIELD(STACK_USER));
	struct perfring_sample sample;
	struct made made;
	unsigned known;

	needs_frames();
	attr.sample_regs_user = REGISTERS;
	attr.sample_stack_user = 4096;
	for (known = 2; known--;) {
		if (!known)
			needs_far();
		make(&made, &attr, 8);
		if (!known)
			made.thread.stack_low = made.thread.stack_high = 0;
		handled = &made;
		with_context = true;
		install(SIGTRAP, 0);
		fill_and_stop();
		next_sample(&made, &sample);
		cr_assert_eq(sample.stack_user.size, 4096);
		cr_assert_geq(copied_at, context_sp);
		cr_assert_leq(copied_at - context_sp + sizeof(copied), sample.stack_user.dyn_size);
		cr_assert_eq(memcmp((const unsigned char *)sample.stack_user.data + (copied_at - context_sp), copied,
				    sizeof(copied)),
			     0);
		unmake(&made);
	}
}

/* To its end, and zeros behind: of the thread's own, and of one that ends where nothing is mapped. */
Test(soft_sample, stack_near_its_end)
{
	static const uint32_t lefts[] = {0, 1, 7, 8, 9, 100, 1000, 1023, 1024, 1025, 5000};
	enum {
		SIZE = 2 * PAGE,
		ASKED = 1024
	};
	unsigned char *stack = stack_make(SIZE);
	struct perf_event_attr attr = attr_of(FIELD(STACK_USER));
	struct perfring_soft_site site = {0};
	struct perfring_sample sample;
	uint64_t dyn, at, i;
	ucontext_t context;
	struct made made;
	unsigned known;
	size_t row;

	needs_frames();
	attr.sample_stack_user = ASKED;
	site.context = &context;
	for (i = 0; i < SIZE; i++)
		stack[i] = (unsigned char)(1 + i % 251);
	for (known = 2; known--;) {
		if (!known)
			needs_far();
		for (row = 0; row < sizeof(lefts) / sizeof(lefts[0]); row++) {
			make(&made, &attr, 2);
			memset(made.ring.data, 0xee, PAGE);
			if (known) {
				made.thread.stack_low = (uintptr_t)stack;
				made.thread.stack_high = (uintptr_t)stack + SIZE;
			}
			at = SIZE - lefts[row];
			dyn = lefts[row] < ASKED ? lefts[row] : ASKED;
			set_context(&context, 1, (uintptr_t)stack + at, 0);
			errno = 4242;
			cr_assert(put(&made, &site));
			cr_assert_eq(errno, 4242);
			next_sample(&made, &sample);
			cr_assert_eq(sample.stack_user.size, ASKED);
			cr_assert_eq(sample.stack_user.dyn_size, dyn, "left %u", lefts[row]);
			cr_assert_eq(memcmp(sample.stack_user.data, stack + at, (size_t)dyn), 0);
			for (i = dyn; i < ASKED; i++)
				cr_assert_eq(((const unsigned char *)sample.stack_user.data)[i], 0);
			unmake(&made);
		}
	}
	/* A stack pointer that is none. */
	make(&made, &attr, 8);
	for (row = 0; row < 4; row++) {
		static const uint64_t wild[] = {0, 1, UINT64_MAX - 7, UINT64_C(0xffffffff81000000)};

		set_context(&context, 1, wild[row], wild[row]);
		cr_assert(put(&made, &site));
		next_sample(&made, &sample);
		cr_assert_eq(sample.stack_user.dyn_size, 0);
	}
	unmake(&made);
	stack_unmake(stack, SIZE);
}

/* A thread's real one: what its bounds say is what is copied. */
static void *at_the_top(void *data)
{
	struct perf_event_attr attr = attr_of(FIELD(STACK_USER) | FIELD(CALLCHAIN));
	struct perfring_soft_site site = {0};
	uint64_t *dyn = data;
	struct perfring_sample sample;
	struct made made;

	attr.sample_stack_user = 65528;
	make(&made, &attr, 64);
	put(&made, &site);
	next_sample(&made, &sample);
	dyn[0] = sample.stack_user.dyn_size;
	dyn[1] = made.thread.stack_high - (uintptr_t)__builtin_frame_address(0);
	dyn[2] = sample.callchain.nr;
	unmake(&made);
	return NULL;
}

Test(soft_sample, stack_of_a_new_thread)
{
	uint64_t dyn[3] = {0, 0, 0};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, at_the_top, dyn), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_lt(dyn[1], 60000);
	cr_assert_geq(dyn[0], dyn[1]); /* from the sp of at_the_top, which lies below its frame, to the very end */
	cr_assert_lt(dyn[0] - dyn[1], 4096);
	cr_assert_lt(dyn[2], 20);
}

/* ---- in handlers ---- */

Test(soft_sample, errno_stays)
{
	static const uint64_t bps[] = {0, 1, 8, UINT64_C(0xffffffff81000000), 4096};
	struct perf_event_attr attr = attr_of(all);
	struct perfring_soft_site site = {.raw = "x", .raw_size = 1};
	ucontext_t context;
	struct made made;
	size_t i;
	unsigned refused = 0;

	attr.sample_stack_user = 512;
	attr.sample_regs_user = REGISTERS;
	make(&made, &attr, 1);
	for (i = 0; i < 30; i++) {
		set_context(&context, 1, bps[i % 5], bps[i % 5]);
		site.context = i % 3 ? &context : NULL;
		errno = 4242;
		refused += !put(&made, &site);
		perfring__soft_put_throttle(made.instance, i & 1);
		cr_assert_eq(errno, 4242);
	}
	cr_assert_gt(refused, 5u); /* both ways were gone */
	cr_assert_lt(refused, 30u);
	unmake(&made);
}

static volatile sig_atomic_t nested_puts;

static void nest(int nr)
{
	struct perfring_soft_site site = {.raw = "nested", .raw_size = 6};

	(void)nr;
	if (handled) {
		put(handled, &site);
		nested_puts++;
	}
}

/* Handlers raise on top of raises: nothing is torn, and what was taken and what was refused make up what was put. */
Test(soft_sample, nested)
{
	struct perf_event_attr attr = attr_of(all);
	struct perfring_soft_site site = {.raw = "outer", .raw_size = 5};
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = nest};
	const struct perf_event_header *record;
	uint64_t puts = 0, taken = 0, told = 0, until;
	struct perfring_sample sample;
	struct perfring_record lost;
	struct made made;

	attr.sample_stack_user = 256;
	attr.sample_regs_user = REGISTERS;
	make(&made, &attr, 8);
	handled = &made;
	cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	until = now_of(CLOCK_MONOTONIC) + 500000000;
	while (now_of(CLOCK_MONOTONIC) < until || nested_puts <= 10) {
		unsigned i;

		for (i = 0; i < 100; i++, puts++)
			put(&made, &site);
		while ((record = next(&made))) {
			cr_assert_eq(perfring_record_check(&made.event->format, record, record->size, NULL), 0);
			if (record->type == PERF_RECORD_LOST) {
				cr_assert_eq(perfring_record_decode(&made.event->format, record, &lost, NULL), 0);
				told += lost.is.lost.lost;
				continue;
			}
			cr_assert_eq(perfring_sample_decode(&made.event->format, record, &sample, NULL), 0);
			cr_assert(!memcmp(sample.raw.data, "outer", 6) || !memcmp(sample.raw.data, "nested", 7));
			taken++;
		}
		perfring_reader_return(&made.reader);
	}
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	handled = NULL;
	while ((record = next(&made)))
		if (record->type == SAMPLE) {
			taken++;
		} else {
			cr_assert_eq(perfring_record_decode(&made.event->format, record, &lost, NULL), 0);
			told += lost.is.lost.lost;
		}
	cr_assert_gt(nested_puts, 10);
	cr_assert_gt(made.instance->output.lost, 0);
	cr_assert_eq(taken + made.instance->output.lost, puts + (uint64_t)nested_puts);
	cr_assert_leq(told, made.instance->output.lost);
	unmake(&made);
}

#if !IS_SANITIZED && !defined(TEST_RUNNER) && defined(__GLIBC__)

/* The library is linked in: its calls are of these. */
static unsigned calls;

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *buffer);

void *malloc(size_t size)
{
	calls++;
	return __libc_malloc(size);
}

void free(void *buffer)
{
	calls++;
	__libc_free(buffer);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	(void)mutex;
	calls++;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	calls++;
	return 0;
}

Test(soft_sample, allocates_and_locks_nothing)
{
	struct perf_event_attr attr = attr_of(all);
	struct perfring_soft_site site = {.raw = "x", .raw_size = 1};
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	void *(*volatile allocate)(size_t) = malloc;
	ucontext_t context;
	struct made made;
	unsigned i, before;

	attr.sample_stack_user = 512;
	attr.sample_regs_user = REGISTERS;
	make(&made, &attr, 1);
	before = calls;
	free(allocate(1));
	pthread_mutex_lock(&mutex);
	cr_assert_eq(calls, before + 3); /* they are seen */
	before = calls;
	for (i = 0; i < 100; i++) {
		set_context(&context, 1, 4096 + i, 4096 + i);
		site.context = i % 2 ? &context : NULL;
		put(&made, &site);
		perfring__soft_put_throttle(made.instance, true);
		if (i == 50) {
			perfring_reader_skip(&made.reader);
			perfring_reader_return(&made.reader);
		}
	}
	cr_assert_eq(calls, before);
	unmake(&made);
}

/* On its own stack a thread that raises asks the kernel nothing: whatever a seccomp filter may say. */
Test(soft_sample, makes_no_system_call)
{
	static const uint64_t bps[] = {0, 1, 8, UINT64_C(0xffffffff81000000), 4096, 1 << 21};
	int status;
	pid_t child;

	needs_frames();
	child = fork();
	if (child == 0) {
		struct perf_event_attr attr = attr_of(all & ~FIELD(READ) & ~FIELD(TIME)); /* a clock may be slow */
		struct perfring_soft_site site = {.raw = "x", .raw_size = 1};
		ucontext_t context;
		struct made made;
		unsigned i, taken = 0;

		attr.sample_stack_user = 512;
		attr.sample_regs_user = REGISTERS;
		make(&made, &attr, 8);
		if (prctl(PR_SET_SECCOMP, 1) < 0) /* strict: read, write, exit, sigreturn */
			syscall(SYS_exit, 3);
		for (i = 0; i < 24; i++) {
			set_context(&context, 1, (uintptr_t)&context, bps[i % 6]);
			site.context = i % 2 ? &context : NULL;
			taken += put(&made, &site);
		}
		syscall(SYS_exit, taken == 24 ? 0 : 2);
	}
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		cr_skip_test("SKIP-ENV: prctl(PR_SET_SECCOMP): a kernel with seccomp");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
}

#endif

/* ---- how much stack ---- */

#if defined(__OPTIMIZE__) && !IS_SANITIZED
#define SMALL_FRAMES 1
#else
#define SMALL_FRAMES 0
#endif

enum {
	PAINT = 0xa5,
	PAINTED = 65536,
	TICK_MOST = 3072, /* soft/stack.c's TICK_STACK */
};

static unsigned char painted[PAINTED] __attribute__((aligned(64)));
static ucontext_t measuring, measured;
static uintptr_t raised_from;
static struct perfring_soft_point *measured_point;

static UNTOUCHED size_t untouched(void)
{
	size_t i = 0;

	while (i < PAINTED && painted[i] == PAINT)
		i++;
	return i;
}

static UNTOUCHED void raise_measured(void)
{
	raised_from = (uintptr_t)__builtin_frame_address(0);
	perfring_soft_raise(measured_point, 1, 4711, "0123456789", 10);
}

/* A group of three, the leader's samples with all that must be found out: in a process with 4 of them. */
static void open_group(struct perfring_soft_event **group, struct perf_event_attr attr, uint64_t sample_type)
{
	attr.size = sizeof(attr);
	attr.sample_type = sample_type;
	attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.sample_regs_user = REGISTERS;
	attr.sample_stack_user = 4096;
	attr.sample_id_all = 1;
	attr.wakeup_events = 1;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(perfring_soft_open(&group[i], &attr, PERFRING_SOFT_THREAD, i ? group[0] : NULL), 0);
		cr_assert_eq(perfring_soft_map(group[i], i ? 16 : 4, -1), 0); /* also full, and LOST records */
	}
}

static void close_group(struct perfring_soft_event **group)
{
	for (unsigned i = 3; i--;)
		perfring_soft_close(group[i]);
}

#define ALL_FIELDS \
	(words | FIELD(READ) | FIELD(CALLCHAIN) | FIELD(RAW) | (FRAMES ? FIELD(REGS_USER) | FIELD(STACK_USER) : 0))

/* In a coroutine, so that frames must be read from a stack that is not the thread's own; the first raise too. */
Test(soft_sample, a_raise_takes_little_stack)
{
	struct perf_event_attr attr = {.type = PERFRING_SOFT_TYPE, .sample_period = 1};
	struct perfring_soft_event *group[3];
	static size_t most;
	size_t depth;

	measured_point = perfring_soft_define("measured");
	attr.config = measured_point->config;
	open_group(group, attr, ALL_FIELDS);
	for (unsigned i = 0; i < 128; i++) {
		if (i == 64 && SOFT_HAS_TABLES)
			cr_assert_eq(perfring_soft_set_unwind(group[0], true), 0);
		memset(painted, PAINT, sizeof(painted));
		cr_assert_eq(getcontext(&measured), 0);
		measured.uc_stack.ss_sp = painted;
		measured.uc_stack.ss_size = sizeof(painted);
		measured.uc_link = &measuring;
		makecontext(&measured, raise_measured, 0);
		cr_assert_eq(swapcontext(&measuring, &measured), 0);
		depth = raised_from - ((uintptr_t)painted + untouched());
		most = depth > most ? depth : most;
	}
	cr_assert_gt(perfring_soft_lost(group[0]), 0u);
	printf("a raise takes %zu bytes of stack\n", most);
	cr_assert(most < PERFRING_SOFT_STACK || !SMALL_FRAMES, "%zu", most);
	close_group(group);
}

/* On an alternate stack that the test has painted: behind the kernel's frame. */
Test(soft_sample, a_tick_takes_little_stack)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
	stack_t alternate = {.ss_sp = painted, .ss_size = sizeof(painted)};
	struct perfring_soft_event *group[3];
	uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID);
	size_t most, frame = signal_frame_size();

	cr_assert_eq(sigaltstack(&alternate, NULL), 0);
	attr.sample_period = 100000;
	open_group(group, attr, ALL_FIELDS & ~FIELD(RAW));
	if (SOFT_HAS_TABLES)
		cr_assert_eq(perfring_soft_set_unwind(group[1], true), 0);
	memset(painted, PAINT, sizeof(painted));
	/* Until some found the ring full: their number in 0.3 s is the kernel's HZ. */
	while (now_of(CLOCK_THREAD_CPUTIME_ID) < begin + 300000000 ||
	       (!perfring_soft_lost(group[0]) && now_of(CLOCK_THREAD_CPUTIME_ID) < begin + 10000000000))
		burn_by(CLOCK_MONOTONIC, 20000000);
	perfring_soft_disable(group[0], true);
	most = PAINTED - untouched();
	cr_assert_gt(most, 512u); /* there was one */
	cr_assert_gt(perfring_soft_lost(group[0]), 0u);
	printf("a tick takes %zu bytes of stack, the kernel's frame of %zu in it\n", most, frame);
	cr_assert(most < frame + TICK_MOST || !SMALL_FRAMES, "%zu", most);
	close_group(group);
}
