/* codec_bench.c - what samples and other records cost to decode and to encode, beside merely walking the headers of the
 * same bytes and beside loads and stores by hand.
 *
 * The samples are this kernel's, recorded when a row first needs them: half a megabyte, as much as a ring holds, walked
 * again and again.  Every loop goes from header to header in the same way and hands each record's type to bench_use.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include <perfring/swap.h>

#include "bench.h"

enum {
	SIZE = 512 << 10,
	PAGES = 256,
	MEMBERS = 3,
	DEPTH = 18,
	SECONDS = 2, /* of recording: kernels that feel slow give few samples a second */
	LEAST = 500, /* samples: fewer are no stream */
};

struct stream {
	struct perfring_format format;
	unsigned char *bytes; /* SAMPLE records only */
	size_t size;
	int64_t count;
	char reason[160]; /* why there is none; "": not yet asked */
};

/* ---- recording ---- */

/* A chain of DEPTH frames: asking for its address gives each a frame pointer, by which the kernel walks. */
static __attribute__((noinline)) uint64_t descend(unsigned depth)
{
	uint64_t sum = (uintptr_t)__builtin_frame_address(0);
	volatile uint64_t spin;

	if (depth > 0)
		sum += descend(depth - 1);
	else
		for (spin = 0; spin < 20000; spin++)
			sum += spin;
	bench_use(sum);
	return sum + 1;
}

static void work_chain(void)
{
	static unsigned round;

	bench_use(descend(DEPTH - 4 + round++ % 8));
}

static void work_calls(void)
{
	int i;

	for (i = 0; i < 200; i++)
		syscall(SYS_getppid);
}

static int open_event(struct perf_event_attr *attr, int leader)
{
	attr->size = sizeof(*attr);
	attr->disabled = leader < 0;
	attr->exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Keeps a sample.  Returns false when it was one too many. */
static bool keep(struct stream *stream, const struct perf_event_header *record)
{
	if (record->size > SIZE - stream->size)
		return false;
	memcpy(stream->bytes + stream->size, record, record->size);
	stream->size += record->size;
	stream->count++;
	return true;
}

/* Works until SIZE bytes of samples were taken from the event's ring, or for SECONDS; then they are repeated. */
static void record(struct stream *stream, int fd, void (*work)(void))
{
	const struct perf_event_header *record;
	time_t end = time(NULL) + SECONDS;
	struct perfring_reader reader;
	struct perfring_ring ring;
	bool full = false;
	size_t at;
	int error;

	error = perfring_ring_map(&ring, fd, PAGES, 0);
	if (error) {
		snprintf(stream->reason, sizeof(stream->reason), "SKIP-ENV: mmap of %d pages: %s", PAGES,
			 strerror(-error));
		return;
	}
	error = perfring_reader_open(&reader, &ring, 0);
	stream->bytes = malloc(SIZE);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	while (!error && stream->bytes && !full && time(NULL) <= end) {
		work();
		perfring_reader_observe(&reader);
		while (!full && perfring_reader_next(&reader, &record) == 1)
			full = record->type == PERF_RECORD_SAMPLE && !keep(stream, record);
		perfring_reader_return(&reader);
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	if (stream->count < LEAST) {
		snprintf(stream->reason, sizeof(stream->reason), "too few samples: %lld", (long long)stream->count);
		return;
	}
	for (at = 0; !full; at += record->size) {
		record = (const void *)(stream->bytes + at);
		full = !keep(stream, record);
	}
}

static void open_and_record(struct stream *stream, struct perf_event_attr *attr, void (*work)(void))
{
	struct perf_event_attr member;
	int fds[1 + MEMBERS], count = 0, i;

	fds[count++] = open_event(attr, -1);
	if (fds[0] < 0) {
		snprintf(stream->reason, sizeof(stream->reason), "SKIP-ENV: perf_event_open: %s: needs CAP_PERFMON",
			 strerror(errno));
		return;
	}
	/* The group that a READ block names. */
	for (i = 0; (attr->sample_type & PERFRING_SAMPLE_READ) && i < MEMBERS; i++) {
		memset(&member, 0, sizeof(member));
		member.type = PERFRING_TYPE_SOFTWARE;
		member.config = PERFRING_COUNT_SW_PAGE_FAULTS;
		member.read_format = attr->read_format;
		fds[count] = open_event(&member, fds[0]);
		if (fds[count] >= 0)
			count++;
	}
	perfring_format_from_attr(&stream->format, attr);
	record(stream, fds[0], work);
	while (count > 0)
		close(fds[--count]);
}

/* A cpu-clock every 50 us: where an interrupt takes 10, one every 10 leaves nothing for the work. */
static struct perf_event_attr clock_attr(uint64_t sample_type)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.type = PERFRING_TYPE_SOFTWARE;
	attr.config = PERFRING_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 50000;
	attr.sample_type = sample_type;
	return attr;
}

static const uint64_t few_fields =
	PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD;

static struct stream *callchain_stream(void)
{
	static struct stream stream;
	struct perf_event_attr attr = clock_attr(few_fields | PERFRING_SAMPLE_CALLCHAIN);

	if (!stream.bytes && !stream.reason[0])
		open_and_record(&stream, &attr, work_chain);
	return &stream;
}

static struct stream *few_stream(void)
{
	static struct stream stream;
	struct perf_event_attr attr = clock_attr(few_fields);

	if (!stream.bytes && !stream.reason[0])
		open_and_record(&stream, &attr, work_chain);
	return &stream;
}

static struct stream *group_stream(void)
{
	static struct stream stream;
	struct perf_event_attr attr = clock_attr(few_fields | PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_READ);

	attr.read_format = PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID;
	if (!stream.bytes && !stream.reason[0])
		open_and_record(&stream, &attr, work_chain);
	return &stream;
}

/* raw_syscalls:sys_enter, as tracefs numbers it. */
static struct stream *raw_stream(void)
{
	static const char *const paths[] = {"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
					    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id"};
	static struct stream stream;
	struct perf_event_attr attr = clock_attr(few_fields | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_RAW);
	unsigned long long id = 0;
	size_t i;

	if (stream.bytes || stream.reason[0])
		return &stream;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]) && !id; i++) {
		FILE *file = fopen(paths[i], "re");

		if (file && fscanf(file, "%llu", &id) != 1)
			id = 0;
		if (file)
			fclose(file);
	}
	if (!id) {
		snprintf(stream.reason, sizeof(stream.reason), "SKIP-ENV: %s: mount tracefs, and be root", paths[0]);
		return &stream;
	}
	attr.type = PERFRING_TYPE_TRACEPOINT;
	attr.config = id;
	attr.sample_period = 1;
	open_and_record(&stream, &attr, work_calls);
	return &stream;
}

/* One of each kind that a kernel writes about processes, code and losses, with a trailer. */
static struct stream *record_stream(void)
{
	static const uint64_t words[14] = {3, 4026531840};
	static const struct perfring_string path = {.data = "/usr/lib/x86_64-linux-gnu/libc.so.6", .size = 35};
	static const struct perfring_string name = {.data = "bash", .size = 4};
	const struct perfring_list pairs = {.words = (const perfring_word *)words, .nr = 7};
	const struct perfring_record records[] = {
		{.type = PERFRING_RECORD_MMAP2, .is.mmap2 = {.pid = 1000, .len = 4096, .prot = 5, .filename = path}},
		{.type = PERFRING_RECORD_COMM, .is.comm = {.pid = 1000, .tid = 1000, .comm = name}},
		{.type = PERFRING_RECORD_FORK, .is.fork = {.pid = 1001, .ppid = 1000, .tid = 1001, .ptid = 1000}},
		{.type = PERFRING_RECORD_LOST, .is.lost = {.id = 7, .lost = 12}},
		{.type = PERFRING_RECORD_SWITCH},
		{.type = PERFRING_RECORD_NAMESPACES,
		 .is.namespaces = {.pid = 1000, .tid = 1000, .links = {.words = pairs.words, .nr = pairs.nr}}},
		{.type = PERFRING_RECORD_KSYMBOL, .is.ksymbol = {.addr = 0x1000, .len = 64, .name = name}},
		{.type = PERFRING_RECORD_BPF_EVENT, .is.bpf_event = {.type = 1, .id = 5}},
		{.type = PERFRING_RECORD_CGROUP, .is.cgroup = {.id = 9, .path = path}},
		{.type = PERFRING_RECORD_TEXT_POKE,
		 .is.text_poke = {.poke = {.old_bytes = words, .new_bytes = words, .old_len = 5, .new_len = 5}}},
	};
	static struct stream stream;
	struct perf_event_attr attr = clock_attr(few_fields);
	int64_t size;

	if (stream.bytes)
		return &stream;
	attr.sample_id_all = 1;
	perfring_format_from_attr(&stream.format, &attr);
	stream.bytes = malloc(SIZE);
	for (; stream.bytes; stream.count++, stream.size += (size_t)size) {
		size = perfring_record_encode(&stream.format, &records[stream.count % 10], stream.bytes + stream.size,
					      SIZE - stream.size);
		if (size < 0)
			break;
	}
	return &stream;
}

/* The same records as a machine of the other byte order would have written them. */
static void turn_stream(struct stream *stream, const struct stream *from)
{
	size_t at;

	if (stream->bytes || stream->reason[0])
		return;
	*stream = *from;
	stream->bytes = stream->reason[0] ? NULL : malloc(SIZE);
	for (at = 0; stream->bytes && at < from->size;) {
		const struct perf_event_header *record = (const void *)(from->bytes + at);

		if (perfring_record_to_foreign(&from->format, record, stream->bytes + at, SIZE - at, NULL) < 0)
			snprintf(stream->reason, sizeof(stream->reason), "a sample could not be swapped");
		at += record->size;
	}
}

/* Whether it can be walked; else the row is skipped. */
static bool has(struct bench *bench, const struct stream *stream)
{
	if (stream->reason[0])
		bench_skip(bench, stream->reason);
	else
		bench_items(bench, stream->count);
	return !stream->reason[0];
}

/* ---- walks ---- */

#define WALK(stream, ...) \
	do { \
		const unsigned char *walk_position = (stream)->bytes, *walk_end = walk_position + (stream)->size; \
\
		while (walk_position < walk_end) { \
			const struct perf_event_header *record = (const void *)walk_position; \
\
			bench_use(record->type); \
			__VA_ARGS__ \
			walk_position += record->size; \
		} \
	} while (0)

/* The least a reader can do. */
static void walk_headers(struct bench *bench, const struct stream *stream)
{
	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1))
		WALK(stream);
}

static void walk_decode(struct bench *bench, const struct stream *stream)
{
	struct perfring_sample sample;
	int failed = 0;

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1))
		WALK(stream, failed |= perfring_sample_decode(&stream->format, record, &sample, NULL);
		     bench_use((uintptr_t)&sample););
	if (failed)
		bench_skip(bench, "a sample was not decoded");
}

static void run_callchain_headers(struct bench *bench)
{
	walk_headers(bench, callchain_stream());
}

static void run_callchain_decode(struct bench *bench)
{
	walk_decode(bench, callchain_stream());
}

static void run_raw_headers(struct bench *bench)
{
	walk_headers(bench, raw_stream());
}

static void run_raw_decode(struct bench *bench)
{
	walk_decode(bench, raw_stream());
}

static void run_group_headers(struct bench *bench)
{
	walk_headers(bench, group_stream());
}

static void run_group_decode(struct bench *bench)
{
	walk_decode(bench, group_stream());
}

static void run_record_headers(struct bench *bench)
{
	walk_headers(bench, record_stream());
}

static void run_record_decode(struct bench *bench)
{
	const struct stream *stream = record_stream();
	struct perfring_record decoded;
	int failed = 0;

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1))
		WALK(stream, failed |= perfring_record_decode(&stream->format, record, &decoded, NULL);
		     bench_use((uintptr_t)&decoded););
	if (failed)
		bench_skip(bench, "a record was not decoded");
}

static void run_record_encode(struct bench *bench)
{
	const struct stream *stream = record_stream();
	static unsigned char to[65536];
	static struct perfring_record records[10];
	size_t at = 0;
	int64_t i = 0, size = 0;

	if (!has(bench, stream))
		return;
	for (; i < 10; i++, at += ((const struct perf_event_header *)(const void *)(stream->bytes + at))->size)
		size |= perfring_record_decode(&stream->format, (const void *)(stream->bytes + at), &records[i], NULL);
	while (bench_keep(bench, 1))
		for (i = 0; i < stream->count; i++) {
			size |= perfring_record_encode(&stream->format, &records[i % 10], to, sizeof(to));
			bench_use((uintptr_t)to);
		}
	if (size < 0)
		bench_skip(bench, "a record was not encoded");
}

/* ip, pid and tid, time, period; 64 rows a call. */
static void run_columns(struct bench *bench)
{
	enum {
		ROWS = 64
	};
	static uint64_t ip[ROWS], time[ROWS], period[ROWS];
	static uint32_t pid[ROWS], tid[ROWS];
	static const struct perfring_columns columns = {
		.ip = ip, .pid = pid, .tid = tid, .time = time, .period = period};
	const struct stream *stream = callchain_stream();
	int64_t rows, all = 0;
	size_t position;

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1)) {
		for (all = 0, position = 0; position < stream->size; all += rows) {
			rows = perfring_columns_decode(&columns, &stream->format, stream->bytes, stream->size,
						       &position, ROWS, NULL);
			if (rows <= 0)
				break;
			bench_use((uint64_t)rows);
		}
	}
	if (all != stream->count)
		bench_skip(bench, "the columns missed samples");
}

/* ---- a format known to the compiler ---- */

static const struct perfring_format constant = {
	.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD,
};

/* As one would write it without a codec. */
struct few {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint64_t period;
};

static void run_constant_loads(struct bench *bench)
{
	const struct stream *stream = few_stream();

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1))
		WALK(stream, const struct few *few = (const void *)record; bench_use(few->ip); bench_use(few->pid);
		     bench_use(few->tid); bench_use(few->time); bench_use(few->period););
}

static void run_constant_decode(struct bench *bench)
{
	const struct stream *stream = few_stream();
	struct perfring_sample sample;

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1))
		WALK(stream, if (perfring_sample_decode(&constant, record, &sample, NULL)) break; bench_use(sample.ip);
		     bench_use(sample.pid); bench_use(sample.tid); bench_use(sample.time); bench_use(sample.period););
}

static unsigned char buffer[SIZE / sizeof(struct few) * sizeof(struct few)] __attribute__((aligned(64)));

/* Fills the buffer.  The samples differ, and the compiler does not know them. */
static struct perfring_sample *some_samples(struct bench *bench)
{
	static struct perfring_sample samples[16];
	size_t i;

	for (i = 0; i < 16; i++) {
		memset(&samples[i], 0, sizeof(samples[i]));
		samples[i].misc = PERFRING_RECORD_MISC_USER;
		samples[i].ip = 0x401000 + i;
		samples[i].pid = 1000;
		samples[i].tid = 1000 + (uint32_t)i;
		samples[i].time = 1000000 * i;
		samples[i].period = 10000;
	}
	bench_items(bench, sizeof(buffer) / sizeof(struct few));
	bench_use((uintptr_t)samples);
	return samples;
}

static void run_stores(struct bench *bench)
{
	const struct perfring_sample *samples = some_samples(bench), *sample;
	size_t at, i = 0;

	while (bench_keep(bench, 1)) {
		for (at = 0; at + sizeof(struct few) <= sizeof(buffer); at += sizeof(struct few)) {
			struct few *few = (struct few *)(void *)(buffer + at);

			sample = &samples[i++ % 16];
			few->header.type = PERF_RECORD_SAMPLE;
			few->header.misc = sample->misc;
			few->header.size = sizeof(*few);
			few->ip = sample->ip;
			few->pid = sample->pid;
			few->tid = sample->tid;
			few->time = sample->time;
			few->period = sample->period;
			bench_use((uintptr_t)few);
		}
	}
}

static void run_encode(struct bench *bench)
{
	const struct perfring_sample *samples = some_samples(bench), *sample;
	int64_t size;
	size_t at, i = 0;

	while (bench_keep(bench, 1)) {
		for (at = 0; at < sizeof(buffer); at += (size_t)size) {
			sample = &samples[i++ % 16];
			size = perfring_sample_encode(&constant, sample, buffer + at, sizeof(buffer) - at);
			if (size < 0)
				break;
			bench_use((uintptr_t)(buffer + at));
		}
	}
}

/* ---- the other byte order ---- */

static void walk_foreign(struct bench *bench, const struct stream *stream)
{
	static unsigned char swapped[65536];
	struct perfring_sample sample;
	const unsigned char *position;
	int failed = 0;

	if (!has(bench, stream))
		return;
	while (bench_keep(bench, 1)) {
		for (position = stream->bytes; position < stream->bytes + stream->size;) {
			const struct perf_event_header *foreign = (const void *)position;
			struct perf_event_header header = perfring_header_to_native(foreign);

			bench_use(header.type);
			failed |= perfring_sample_decode_foreign(&stream->format, foreign, &sample, swapped,
								 sizeof(swapped), NULL);
			bench_use((uintptr_t)&sample);
			position += header.size;
		}
	}
	if (failed)
		bench_skip(bench, "a foreign sample was not decoded");
}

static void run_foreign(struct bench *bench)
{
	static struct stream stream;

	turn_stream(&stream, callchain_stream());
	walk_foreign(bench, &stream);
}

static void run_foreign_raw(struct bench *bench)
{
	static struct stream stream;

	turn_stream(&stream, raw_stream());
	walk_foreign(bench, &stream);
}

static void run_foreign_group(struct bench *bench)
{
	static struct stream stream;

	turn_stream(&stream, group_stream());
	walk_foreign(bench, &stream);
}

const struct bench_row bench_rows[] = {
	{"callchain", "headers", run_callchain_headers, 0, 0},
	{"callchain", "decode", run_callchain_decode, 2.6, 0},
	{"callchain", "columns", run_columns, 1.5, 0},
	{"raw", "headers", run_raw_headers, 0, 0},
	{"raw", "decode", run_raw_decode, 1.9, 0},
	{"group_read", "headers", run_group_headers, 0, 0},
	{"group_read", "decode", run_group_decode, 2.4, 0},
	{"constant_decode", "loads", run_constant_loads, 0, 0},
	{"constant_decode", "decode", run_constant_decode, 1.3, 0},
	{"constant_encode", "stores", run_stores, 0, 0},
	{"constant_encode", "encode", run_encode, 1.3, 0},
	{"swapped", "native", run_callchain_decode, 0, 0},
	{"swapped", "foreign", run_foreign, 1.6, 0},
	{"swapped_raw", "native", run_raw_decode, 0, 0},
	{"swapped_raw", "foreign", run_foreign_raw, 4, 0},
	{"swapped_group", "native", run_group_decode, 0, 0},
	{"swapped_group", "foreign", run_foreign_group, 4, 0},
	{"records", "headers", run_record_headers, 0, 0},
	{"records", "decode", run_record_decode, 10, 0},
	{"records", "encode", run_record_encode, 17, 0},
	{NULL, NULL, NULL, 0, 0},
};
