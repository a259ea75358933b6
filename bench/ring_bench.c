/* ring_bench.c - what a record costs to write into a ring, beside a plain memcpy of it, beside the kernel's algorithm and
 * beside other rings; by one thread, across two cores, by two producers; and what waking a reader costs.
 *
 * Rings hold 1 MiB; records have a constant size, 64 bytes where none is named, and come from a warm source.  A lap of
 * one thread writes half a ring; then, untimed, the same thread drains it by a plain perf reader, or by what the peer
 * has for that.  Laps across cores write 4 MiB, and end when the reader has seen the last record.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <perfring/cpus.h>
#include <perfring/reader.h>
#include <perfring/set.h>
#include <perfring/shared.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>

#include "bench.h"
#include "ring_peers.h"

enum {
	PAGES = RING_SIZE / 4096,
	LAP = RING_SIZE / 2,                    /* bytes, of one thread */
	LONG_LAP = 4 * RING_SIZE / RING_RECORD, /* records, across cores: short enough to fall between interruptions */
	PINGS = 200,
	NEAR_NS = 200, /* there and back, with two looks at the clock */
	BACKOFF = 128, /* pauses of a thread that found nothing to do */
	SAMPLE = 9,
};

unsigned char ring_source[4096] __attribute__((aligned(64)));

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void set_source(uint64_t size)
{
	struct perf_event_header header = {SAMPLE, 0, (uint16_t)size};

	memset(ring_source, 1, sizeof(ring_source));
	memcpy(ring_source, &header, sizeof(header));
}

/* ---- perfring: a ring, its writer and its reader ---- */

struct ours {
	struct perfring_ring ring;
	struct perfring_writer *writer;
	struct perfring_reader reader;
	struct ring_kernel *kernel;
	uint64_t position; /* of the baselines */
	uint64_t limit;
};

static const char *open_ours(void **peer, uint32_t stamp)
{
	struct perfring_ring_options ring = {.pages = PAGES};
	struct perfring_writer_options writer = {.stamp = stamp, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct ours *ours = calloc(1, sizeof(*ours));

	if (perfring_ring_create(&ours->ring, &ring) || perfring_writer_open(&ours->writer, &ours->ring, &writer) ||
	    perfring_reader_open(&ours->reader, &ours->ring, 0))
		return "no ring, writer or reader of ours";
	memset(ours->ring.data, 0, ours->ring.size);
	*peer = ours;
	return NULL;
}

static void close_ours(void *peer)
{
	struct ours *ours = peer;

	perfring_reader_close(&ours->reader);
	perfring_writer_close(ours->writer);
	perfring_ring_close(&ours->ring);
	free(ours);
}

static const char *open_writer(void **peer)
{
	return open_ours(peer, PERFRING_STAMP_NONE);
}

static const char *open_clock(void **peer)
{
	return open_ours(peer, PERFRING_STAMP_CLOCK);
}

static const char *open_counter(void **peer)
{
	return open_ours(peer, PERFRING_STAMP_COUNTER);
}

/* LOST records are not counted. */
static int64_t drain(struct perfring_reader *reader)
{
	const struct perf_event_header *record;
	int64_t done = 0;

	if (perfring_reader_observe(reader) <= 0)
		return 0;
	while (perfring_reader_next(reader, &record) == 1)
		done += record->type == SAMPLE;
	perfring_reader_return(reader);
	return done;
}

static int64_t read_ours(void *peer)
{
	struct ours *ours = peer;

	return drain(&ours->reader);
}

static inline __attribute__((always_inline)) int64_t write_sized(struct ours *ours, int64_t records, uint64_t size)
{
	struct perfring_writer *writer = ours->writer;
	int64_t done;

	for (done = 0; done < records; done++)
		if (!perfring_writer_write(writer, NULL, ring_source, size))
			break;
	return done;
}

static int64_t write_stamped(void *peer, int producer, int64_t records)
{
	struct ours *ours = peer;
	struct perfring_writer *writer = ours->writer;
	struct perf_event_header header = {SAMPLE, 0, RING_RECORD};
	struct perfring_claim claim;
	unsigned char *space;
	uint64_t time;
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++) {
		space = perfring_writer_reserve(writer, NULL, RING_RECORD, &claim);
		if (!space)
			break;
		memcpy(space, &header, sizeof(header));
		time = perfring_writer_stamp(writer, &claim);
		memcpy(space + 8, &time, sizeof(time));
		memcpy(space + 16, ring_source + 16, RING_RECORD - 16); /* six words */
		perfring_writer_commit(writer, &claim);
	}
	return done;
}

/* Four records, one publication. */
static int64_t write_fours(void *peer, int producer, int64_t records)
{
	struct ours *ours = peer;
	struct perfring_writer *writer = ours->writer;
	struct perfring_claim claim;
	int64_t done;
	int i;

	(void)producer;
	for (done = 0; done + 4 <= records; done += 4) {
		if (!perfring_writer_begin(writer, NULL, 4 * RING_RECORD, 4, &claim))
			break;
		for (i = 0; i < 4; i++) {
			void *space = perfring_writer_take(&claim, RING_RECORD);

			if (space)
				memcpy(space, ring_source, RING_RECORD);
		}
		perfring_writer_end(writer, &claim);
	}
	return done;
}

/* ---- baselines, in the same memory ---- */

/* What no writer can do without: the record into its place, and a position in memory that moves on.  The reader learns
 * of it after the lap. */
static inline __attribute__((always_inline)) int64_t copy_sized(struct ours *ours, int64_t records, uint64_t size)
{
	uint64_t position;
	int64_t done;

	for (done = 0; done < records; done++) {
		position = ours->position;
		memcpy(ours->ring.data + (position & (ours->ring.size - 1)), ring_source, size);
		ours->position = position + size;
		bench_use(0);
	}
	return done;
}

static int64_t read_copied(void *peer)
{
	struct ours *ours = peer;

	perfring_page_publish(ours->ring.page, ours->position);
	return drain(&ours->reader);
}

/* As one would write it who knows of no handlers: is there space, copy, move on. */
static int64_t write_plain(void *peer, int producer, int64_t records)
{
	struct ours *ours = peer;
	uint64_t position;
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++) {
		position = ours->position;
		if (PERFRING_UNLIKELY(position + RING_RECORD > ours->limit)) {
			ours->limit = perfring_page_reclaim(ours->ring.page) + ours->ring.size;
			if (position + RING_RECORD > ours->limit)
				break;
		}
		memcpy(ours->ring.data + (position & (ours->ring.size - 1)), ring_source, RING_RECORD);
		ours->position = position + RING_RECORD;
		perfring_page_publish(ours->ring.page, position + RING_RECORD);
	}
	return done;
}

static const char *open_kernel(void **peer)
{
	const char *reason = open_writer(peer);
	struct ours *ours = *peer;

	if (!reason)
		ours->kernel = ring_kernel_open(ours->ring.page, ours->ring.data, ours->ring.size);
	return reason;
}

static void close_kernel(void *peer)
{
	struct ours *ours = peer;

	ring_kernel_close(ours->kernel);
	close_ours(peer);
}

static int64_t write_kernel_unlocked(void *peer, int producer, int64_t records)
{
	struct ours *ours = peer;

	(void)producer;
	return ring_kernel_unlocked(ours->kernel, RING_RECORD, records);
}

static int64_t write_kernel_locked(void *peer, int producer, int64_t records)
{
	struct ours *ours = peer;

	(void)producer;
	return ring_kernel_locked(ours->kernel, RING_RECORD, records);
}

#define SIZED(size) \
	static int64_t write_##size(void *peer, int producer, int64_t records) \
	{ \
		(void)producer; \
		return write_sized(peer, records, size); \
	} \
\
	static int64_t copy_##size(void *peer, int producer, int64_t records) \
	{ \
		(void)producer; \
		return copy_sized(peer, records, size); \
	} \
\
	static const struct ring_peer ring_##size = { \
		.open = open_writer, .write = write_##size, .read = read_ours, .close = close_ours}; \
	static const struct ring_peer ring_copy_##size = { \
		.open = open_writer, .write = copy_##size, .read = read_copied, .close = close_ours};

SIZED(16)
SIZED(64)
SIZED(256)
SIZED(1024)

static const struct ring_peer ring_plain = {
	.open = open_writer, .write = write_plain, .read = read_ours, .close = close_ours};
static const struct ring_peer ring_fours = {
	.open = open_writer, .write = write_fours, .read = read_ours, .close = close_ours};
static const struct ring_peer ring_kernel_without_lock = {
	.open = open_kernel, .write = write_kernel_unlocked, .read = read_ours, .close = close_kernel};
static const struct ring_peer ring_kernel_with_lock = {
	.open = open_kernel, .write = write_kernel_locked, .read = read_ours, .close = close_kernel};
static const struct ring_peer ring_clock = {
	.open = open_clock, .write = write_stamped, .read = read_ours, .close = close_ours};
static const struct ring_peer ring_counter = {
	.open = open_counter, .write = write_stamped, .read = read_ours, .close = close_ours};

/* ---- one thread ---- */

static void run_alone(struct bench *bench, const struct ring_peer *peer, uint64_t size)
{
	int64_t records = (int64_t)(LAP / size), written, read;
	const char *reason;
	double start;
	void *opened;

	set_source(size);
	reason = peer->open(&opened);
	if (reason) {
		bench_skip(bench, reason);
		return;
	}
	bench_items(bench, records);
	while (bench_keep(bench, 1)) {
		start = now();
		written = peer->write(opened, 0, records);
		bench_lap(bench, now() - start);
		read = peer->read ? peer->read(opened) : written;
		if (written != records || read != records) {
			bench_skip(bench, "a record was not taken, or not read");
			break;
		}
	}
	if (peer->close)
		peer->close(opened);
}

#define ALONE(name, peer, size) \
	static void run_##name(struct bench *bench) \
	{ \
		run_alone(bench, &(peer), size); \
	}

ALONE(copy_16, ring_copy_16, 16)
ALONE(copy_64, ring_copy_64, 64)
ALONE(copy_256, ring_copy_256, 256)
ALONE(copy_1024, ring_copy_1024, 1024)
ALONE(write_16, ring_16, 16)
ALONE(write_64, ring_64, 64)
ALONE(write_256, ring_256, 256)
ALONE(write_1024, ring_1024, 1024)
ALONE(plain, ring_plain, 64)
ALONE(fours, ring_fours, 64)
ALONE(kernel_unlocked, ring_kernel_without_lock, 64)
ALONE(kernel_locked, ring_kernel_with_lock, 64)
ALONE(boost, ring_boost, 64)
ALONE(ck_spsc, ring_ck_spsc, 64)
ALONE(ck_mpsc, ring_ck_mpsc, 64)
ALONE(dpdk_mp, ring_dpdk_mp, 64)
ALONE(concurrent_token, ring_concurrent_token, 64)
ALONE(concurrent_bulk, ring_concurrent_bulk, 64)
ALONE(readerwriter, ring_readerwriter, 64)
ALONE(lttng_array, ring_lttng_array, 64)
ALONE(lttng_fields, ring_lttng_fields, 64)
ALONE(clock, ring_clock, 64)
ALONE(counter, ring_counter, 64)

/* ---- two cores ---- */

/* The calling thread on one CPU. */
static void pin(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void relax(int times)
{
	while (times-- > 0)
		PERFRING_RELAX();
}

/* The other core: a reader, or the second producer, which reads as well. */
struct other {
	const struct ring_peer *peer;
	void *opened;
	pthread_t thread;
	int64_t records, slice; /* that it writes in a lap; that the second producer writes before it reads */
	cpu_set_t free;         /* where main ran before */
	int64_t lap __attribute__((aligned(128)));  /* main: which one to run; -1: end */
	int64_t theirs, stopped;                    /* main: how many it has written, up to which lap */
	int64_t seen __attribute__((aligned(128))); /* records, by the other; of all laps */
	int64_t ended, ready;                       /* the last lap that the other has written, and read */
	int64_t ping __attribute__((aligned(128)));
	int64_t pong __attribute__((aligned(128)));
	bool near; /* the two CPUs, as they began */
};

/* Virtual CPUs move: two of them may be threads of one core now, and far apart in the next moment, with a factor of six
 * between; so it is measured where they are.  The other's half, then main's. */
static void answer(struct other *other)
{
	int64_t from = other->pong, i;

	for (i = from + 1; i <= from + PINGS; i++) {
		while (PERFRING_LOAD_ACQUIRE(&other->ping) < i)
			relax(1);
		PERFRING_STORE_RELEASE(&other->pong, i);
	}
}

static bool ask_near(struct other *other)
{
	int64_t from = other->ping, i;
	double start, least = 1e9;

	for (i = from + 1; i <= from + PINGS; i++) {
		start = now();
		PERFRING_STORE_RELEASE(&other->ping, i);
		while (PERFRING_LOAD_ACQUIRE(&other->pong) < i)
			relax(1);
		if (now() - start < least)
			least = now() - start;
	}
	return least < NEAR_NS;
}

/* Reads as soon as there is enough to be worth a look: a reader that looks for each record is what costs most. */
static void *read_always(void *arg)
{
	struct other *other = arg;
	int64_t seen = 0, count;

	pin(1);
	answer(other);
	while (PERFRING_LOAD(&other->lap) >= 0) {
		count = other->peer->read(other->opened);
		if (count) {
			seen += count;
			PERFRING_STORE_RELEASE(&other->seen, seen);
		}
		if (count < 256)
			relax(BACKOFF);
	}
	answer(other);
	return NULL;
}

static void write_all(const struct ring_peer *peer, void *opened, int producer, int64_t records)
{
	while (records > 0) {
		int64_t count = peer->write(opened, producer, records < 1024 ? records : 1024);

		records -= count;
		if (count < 1024)
			relax(BACKOFF);
	}
}

/* Starts the other thread and waits until it runs.  Returns whether it does. */
static bool start_other(struct bench *bench, struct other *other, const struct ring_peer *peer, void *(*run)(void *))
{
	const char *reason;

	memset(other, 0, sizeof(*other));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		bench_skip(bench, "SKIP-ENV: this machine has one CPU: two are needed");
		return false;
	}
	set_source(RING_RECORD);
	other->peer = peer;
	other->records = LONG_LAP;
	other->slice = 256;
	reason = peer->open(&other->opened);
	if (!reason && pthread_create(&other->thread, NULL, run, other))
		reason = "no thread";
	if (reason) {
		bench_skip(bench, reason);
		return false;
	}
	pthread_getaffinity_np(pthread_self(), sizeof(other->free), &other->free);
	pin(0);
	if (peer->join)
		peer->join(other->opened, 0);
	other->near = ask_near(other);
	bench_items(bench, LONG_LAP);
	return true;
}

static void end_other(struct bench *bench, struct other *other)
{
	bool near;

	PERFRING_STORE(&other->lap, -1);
	near = ask_near(other);
	bench_place(bench, near != other->near ? BENCH_MIXED : near ? BENCH_NEAR : BENCH_FAR);
	pthread_join(other->thread, NULL);
	if (other->peer->leave)
		other->peer->leave(other->opened, 0);
	other->peer->close(other->opened);
	pthread_setaffinity_np(pthread_self(), sizeof(other->free), &other->free);
}

/* The mean of a repetition's laps, here and below: the least lap is one in which the two cores hardly met. */
static void run_across(struct bench *bench, const struct ring_peer *peer)
{
	int64_t written = 0;
	struct other other;
	double start, took = 0;

	if (!start_other(bench, &other, peer, read_always))
		return;
	while (bench_keep(bench, 1)) {
		start = now();
		write_all(peer, other.opened, 0, LONG_LAP);
		if (peer->finish)
			peer->finish(other.opened, 0);
		written += LONG_LAP;
		while (PERFRING_LOAD_ACQUIRE(&other.seen) < written)
			relax(1);
		took += now() - start;
	}
	bench_items(bench, 1);
	bench_lap(bench, took / (double)written);
	end_other(bench, &other);
}

/* Its records of a lap, and in between what there is to read, of both; then what main has left. */
static void *write_and_read(void *arg)
{
	struct other *other = arg;
	const struct ring_peer *peer = other->peer;
	int64_t lap, done = 0, left, count, due = 0;

	pin(1);
	if (peer->join)
		peer->join(other->opened, 1);
	answer(other);
	while ((lap = PERFRING_LOAD_ACQUIRE(&other->lap)) >= 0) {
		if (lap == done) {
			relax(1);
			continue;
		}
		for (left = other->records; left > 0; left -= count) {
			count = peer->write(other->opened, 1, left < other->slice ? left : other->slice);
			other->seen += peer->read(other->opened);
		}
		if (peer->finish)
			peer->finish(other->opened, 1);
		due += other->records;
		PERFRING_STORE_RELEASE(&other->ended, lap);
		while (PERFRING_LOAD_ACQUIRE(&other->stopped) < lap || other->seen < due + other->theirs) {
			count = peer->read(other->opened);
			other->seen += count;
			if (count < 256)
				relax(BACKOFF);
		}
		done = lap;
		PERFRING_STORE_RELEASE(&other->ready, done);
	}
	answer(other);
	if (peer->leave)
		peer->leave(other->opened, 1);
	return NULL;
}

/* Main has written `records` in this lap; returns when they are read. */
static void stop_lap(struct other *other, int64_t lap, int64_t records)
{
	if (other->peer->finish)
		other->peer->finish(other->opened, 0);
	other->theirs += records;
	PERFRING_STORE_RELEASE(&other->stopped, lap);
	while (PERFRING_LOAD_ACQUIRE(&other->ready) < lap)
		relax(1);
}

/* Both write from the first record to the last: main as long as the other does. */
static void run_two(struct bench *bench, const struct ring_peer *peer)
{
	struct other other;
	int64_t lap = 0, mine, count, written = 0;
	double start, took = 0;

	if (!start_other(bench, &other, peer, write_and_read))
		return;
	while (bench_keep(bench, 1)) {
		mine = 0;
		start = now();
		PERFRING_STORE_RELEASE(&other.lap, ++lap);
		while (PERFRING_LOAD_ACQUIRE(&other.ended) < lap) {
			mine += count = peer->write(other.opened, 0, 256);
			if (count < 256)
				relax(BACKOFF);
		}
		took += now() - start;
		written += mine + other.records;
		stop_lap(&other, lap, mine);
	}
	bench_items(bench, 1);
	bench_lap(bench, took / (double)written);
	end_other(bench, &other);
}

/* Bytes, not ns: what 99 of 100 records of a lap find published at the latest. */
static void run_late(struct bench *bench, const struct ring_peer *peer, int64_t *counts)
{
	struct other other;
	int64_t lap = 0, sum, all = RING_SIZE / RING_RECORD / 4;
	size_t i;

	if (!start_other(bench, &other, peer, write_and_read))
		return;
	other.records = all; /* half a ring, read when both are through: a reader that is a writer would be late */
	other.slice = all;
	bench_items(bench, 1);
	while (bench_keep(bench, 1)) {
		memset(counts, 0, (RING_SIZE / RING_RECORD + 1) * sizeof(counts[0]));
		PERFRING_STORE_RELEASE(&other.lap, ++lap);
		write_all(peer, other.opened, 0, all);
		stop_lap(&other, lap, all);
		for (sum = 0, i = 0; i < RING_SIZE / RING_RECORD && (sum += counts[i]) < all * 99 / 100; i++)
			;
		bench_lap(bench, (double)((i + 1) * RING_RECORD));
	}
	end_other(bench, &other);
	bench_place(bench, 0); /* bytes: wherever the CPUs are */
}

static void run_two_chunks(struct bench *bench)
{
	while (bench_keep(bench, 1))
		bench_lap(bench, 2 * 4096);
}

/* How fast lines go from one core to another at best: filled, and published 16 KiB at a time. */
struct stream {
	unsigned char *data;
	uint64_t written, limit;
	uint64_t published __attribute__((aligned(128)));
	uint64_t returned __attribute__((aligned(128)));
};

static const char *open_stream(void **peer)
{
	struct stream *stream = aligned_alloc(128, sizeof(*stream));

	memset(stream, 0, sizeof(*stream));
	stream->data = aligned_alloc(4096, RING_SIZE);
	memset(stream->data, 0, RING_SIZE);
	*peer = stream;
	return NULL;
}

static void close_stream(void *peer)
{
	struct stream *stream = peer;

	free(stream->data);
	free(stream);
}

static int64_t write_stream(void *peer, int producer, int64_t records)
{
	struct stream *stream = peer;
	uint64_t position = stream->written, end;
	int64_t done = 0;

	(void)producer;
	while (done < records) {
		end = position + 16384;
		if (end > position + (uint64_t)(records - done) * RING_RECORD)
			end = position + (uint64_t)(records - done) * RING_RECORD;
		if (end - PERFRING_LOAD_ACQUIRE(&stream->returned) > RING_SIZE)
			break;
		done += (int64_t)((end - position) / RING_RECORD);
		for (; position < end; position += RING_RECORD) {
			memcpy(stream->data + (position & (RING_SIZE - 1)), ring_source, RING_RECORD);
			bench_use(0);
		}
		PERFRING_STORE_RELEASE(&stream->published, position);
	}
	stream->written = position;
	return done;
}

static int64_t read_stream(void *peer)
{
	struct stream *stream = peer;
	uint64_t end = PERFRING_LOAD_ACQUIRE(&stream->published), position = stream->returned, from = position;

	for (; position < end; position += RING_RECORD)
		bench_use(*(uint64_t *)(void *)(stream->data + (position & (RING_SIZE - 1))));
	if (position != from)
		PERFRING_STORE_RELEASE(&stream->returned, position);
	return (int64_t)((position - from) / RING_RECORD);
}

static const struct ring_peer ring_stream = {
	.open = open_stream, .write = write_stream, .read = read_stream, .close = close_stream};

/* ---- perfring with many writers ---- */

/* A ring for each thread; the reader takes one after the other. */
struct threads {
	struct perfring_set *set;
	struct perfring_writer *writers[RING_PRODUCERS];
};

static const char *open_threads(void **peer)
{
	struct perfring_ring_options ring = {.pages = PAGES};
	struct perfring_writer_options writer = {.wake_fd = -1};
	struct threads *threads = calloc(1, sizeof(*threads));

	*peer = threads;
	return perfring_set_open(&threads->set, &ring, &writer, 0) ? "no set" : NULL;
}

static void join_threads(void *peer, int producer)
{
	struct threads *threads = peer;

	if (perfring_set_join(threads->set, &threads->writers[producer]))
		threads->writers[producer] = NULL;
}

static int64_t write_threads(void *peer, int producer, int64_t records)
{
	struct threads *threads = peer;
	struct perfring_writer *writer = threads->writers[producer];
	int64_t done;

	for (done = 0; done < records; done++)
		if (!perfring_writer_write(writer, NULL, ring_source, RING_RECORD))
			break;
	return done;
}

static int64_t read_threads(void *peer)
{
	struct threads *threads = peer;
	struct perfring_set_ring *member;
	int64_t done = 0;

	for (member = perfring_set_next(threads->set, NULL); member; member = perfring_set_next(threads->set, member))
		done += drain(&member->reader);
	return done;
}

static void leave_threads(void *peer, int producer)
{
	struct threads *threads = peer;

	(void)producer;
	perfring_set_leave(threads->set);
}

static void close_threads(void *peer)
{
	struct threads *threads = peer;

	perfring_set_close(threads->set);
	free(threads);
}

static const struct ring_peer ring_threads = {.open = open_threads,
					      .join = join_threads,
					      .write = write_threads,
					      .read = read_threads,
					      .leave = leave_threads,
					      .close = close_threads};

/* One ring for all. */
struct shared {
	struct perfring_ring ring;
	struct perfring_shared *writers[RING_PRODUCERS];
	struct perfring_reader reader;
};

static const char *open_shared(void **peer, uint32_t flags)
{
	struct perfring_ring_options ring = {.pages = PAGES, .flags = flags};
	struct shared *shared = calloc(1, sizeof(*shared));

	*peer = shared;
	if (perfring_ring_create(&shared->ring, &ring) || perfring_reader_open(&shared->reader, &shared->ring, 0))
		return "no shared ring, or no reader of it";
	return NULL;
}

static const char *open_strict(void **peer)
{
	return open_shared(peer, PERFRING_RING_STRICT);
}

static const char *open_leased(void **peer)
{
	return open_shared(peer, PERFRING_RING_LEASED);
}

static void join_shared(void *peer, int producer)
{
	struct perfring_writer_options options = {.wake_fd = -1};
	struct shared *shared = peer;

	perfring_shared_open(&shared->writers[producer], &shared->ring, &options);
}

static int64_t write_shared(void *peer, int producer, int64_t records)
{
	struct shared *shared = peer;
	struct perfring_shared *writer = shared->writers[producer];
	int64_t done;

	for (done = 0; done < records; done++)
		if (!perfring_shared_write(writer, NULL, ring_source, RING_RECORD))
			break;
	return done;
}

/* How far data_head is from the record that was just committed, at each of the first producer: in records. */
static int64_t late[RING_SIZE / RING_RECORD + 1];

static int64_t write_late(void *peer, int producer, int64_t records)
{
	struct shared *shared = peer;
	struct perfring_claim claim;
	int64_t done, distance;
	void *space;

	for (done = 0; done < records; done++) {
		space = perfring_shared_reserve(shared->writers[producer], NULL, RING_RECORD, &claim);
		if (!space)
			break;
		memcpy(space, ring_source, RING_RECORD);
		perfring_shared_commit(shared->writers[producer], &claim);
		/* The place in the ring is enough: nothing is later than a whole ring. */
		distance = (int64_t)(((uint64_t)((unsigned char *)space - shared->ring.data) + RING_RECORD -
				    perfring_page_observe(shared->ring.page)) &
				   (RING_SIZE - 1));
		if (producer == 0)
			late[distance < RING_SIZE / 2 ? distance / RING_RECORD : 0]++; /* data_head is in front already */
	}
	return done;
}

static void finish_shared(void *peer, int producer)
{
	struct shared *shared = peer;

	perfring_shared_flush(shared->writers[producer]);
}

static int64_t read_shared(void *peer)
{
	struct shared *shared = peer;

	return drain(&shared->reader);
}

static void leave_shared(void *peer, int producer)
{
	struct shared *shared = peer;

	perfring_shared_close(shared->writers[producer]);
}

static void close_shared(void *peer)
{
	struct shared *shared = peer;

	perfring_reader_close(&shared->reader);
	perfring_ring_close(&shared->ring);
	free(shared);
}

static const struct ring_peer ring_strict = {.open = open_strict,
					     .join = join_shared,
					     .write = write_shared,
					     .finish = finish_shared,
					     .read = read_shared,
					     .leave = leave_shared,
					     .close = close_shared};
static const struct ring_peer ring_leased = {.open = open_leased,
					     .join = join_shared,
					     .write = write_shared,
					     .finish = finish_shared,
					     .read = read_shared,
					     .leave = leave_shared,
					     .close = close_shared};

static const struct ring_peer ring_late = {.open = open_leased,
					   .join = join_shared,
					   .write = write_late,
					   .finish = finish_shared,
					   .read = read_shared,
					   .leave = leave_shared,
					   .close = close_shared};

/* A ring for each CPU. */
static const char *open_cpus(void **peer)
{
	struct perfring_ring_options ring = {.pages = PAGES};
	struct perfring_writer_options writer = {.wake_fd = -1};
	struct perfring_cpus *cpus;

	if (perfring_cpus_open(&cpus, &ring, &writer))
		return "no rings for each CPU";
	*peer = cpus;
	return NULL;
}

static void close_cpus(void *peer)
{
	perfring_cpus_close(peer);
}

static int64_t write_cpus(void *peer, int producer, int64_t records)
{
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++)
		if (!perfring_cpus_write(peer, NULL, ring_source, RING_RECORD))
			break;
	return done;
}

static int64_t read_cpus(void *peer)
{
	struct perfring_set_ring *member;
	int64_t done = 0;
	uint32_t i;

	for (i = 0; (member = perfring_cpus_at(peer, i)); i++)
		done += drain(&member->reader);
	return done;
}

static const struct ring_peer ring_cpus = {
	.open = open_cpus, .write = write_cpus, .read = read_cpus, .close = close_cpus};

ALONE(cpus, ring_cpus, 64)

#define ACROSS(name, peer) \
	static void run_##name(struct bench *bench) \
	{ \
		run_across(bench, &(peer)); \
	}

ACROSS(across_stream, ring_stream)
ACROSS(across_perfring, ring_64)
ACROSS(across_kernel, ring_kernel_without_lock)
ACROSS(across_boost, ring_boost)
ACROSS(across_ck_spsc, ring_ck_spsc)
ACROSS(across_readerwriter, ring_readerwriter)
ACROSS(across_dpdk, ring_dpdk_mp)

#define TWO(name, peer) \
	static void run_##name(struct bench *bench) \
	{ \
		run_two(bench, &(peer)); \
	}

TWO(two_threads, ring_threads)
TWO(two_strict, ring_strict)
TWO(two_leased, ring_leased)
TWO(two_cpus, ring_cpus)
TWO(two_ck_mpsc, ring_ck_mpsc)
TWO(two_dpdk_mp, ring_dpdk_mp)
TWO(two_bulk, ring_concurrent_bulk)
TWO(two_token, ring_concurrent_token)

static void run_late_leased(struct bench *bench)
{
	run_late(bench, &ring_late, late);
}

/* ---- readers that sleep ---- */

enum wakes {
	EACH, /* an eventfd written for each record */
	NEXT, /* the reader asks to be woken by the next record */
	MARK, /* the reader is woken by a watermark of 64 KiB */
	NONE, /* there is no reader */
	IDLE, /* it has drained the ring long ago, and looks every millisecond */
};

struct sleeper {
	struct perfring_ring ring;
	struct perfring_writer *writer;
	struct perfring_reader reader;
	enum wakes wakes;
	int fd;
	pthread_t thread;
	bool ends;
};

static void *sleep_and_read(void *arg)
{
	struct sleeper *sleeper = arg;
	struct pollfd poll_fd = {.fd = sleeper->fd, .events = POLLIN};
	uint64_t count;

	pin(1);
	while (!PERFRING_LOAD(&sleeper->ends)) {
		if (sleeper->wakes == IDLE) {
			usleep(1000);
			bench_use((uint64_t)perfring_page_observe(sleeper->ring.page));
			continue;
		}
		drain(&sleeper->reader);
		if (sleeper->wakes != EACH &&
		    perfring_wakeup_arm(&sleeper->ring, sleeper->reader.position, PERFRING_WAKEUP_EVENTFD) &&
		    sleeper->wakes == NEXT)
			continue;
		if (sleeper->wakes == NEXT && perfring_writer_arm(sleeper->writer))
			continue;
		if (poll(&poll_fd, 1, 10) > 0 && read(sleeper->fd, &count, sizeof(count)) < 0)
			break;
		if (sleeper->wakes != EACH) {
			perfring_wakeup_disarm(&sleeper->ring);
			perfring_wakeup_poll(&sleeper->ring);
		}
	}
	return NULL;
}

/* Returns whether it runs. */
static bool start_sleeper(struct bench *bench, struct sleeper *sleeper, enum wakes wakes)
{
	struct perfring_ring_options ring = {.pages = PAGES};
	struct perfring_writer_options writer = {.wake_fd = -1};

	memset(sleeper, 0, sizeof(*sleeper));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		bench_skip(bench, "SKIP-ENV: this machine has one CPU: two are needed");
		return false;
	}
	sleeper->wakes = wakes;
	sleeper->fd = eventfd(0, EFD_NONBLOCK);
	if (wakes == NEXT || wakes == MARK)
		writer.wake_fd = sleeper->fd;
	if (wakes == MARK) {
		ring.watermark = true;
		ring.wakeup = 65536;
	}
	set_source(RING_RECORD);
	if (perfring_ring_create(&sleeper->ring, &ring) ||
	    perfring_writer_open(&sleeper->writer, &sleeper->ring, &writer) ||
	    perfring_reader_open(&sleeper->reader, &sleeper->ring, 0) ||
	    (wakes != NONE && pthread_create(&sleeper->thread, NULL, sleep_and_read, sleeper))) {
		bench_skip(bench, "no ring, writer, reader or thread");
		return false;
	}
	return true;
}

static void end_sleeper(struct sleeper *sleeper)
{
	uint64_t one = 1;

	PERFRING_STORE(&sleeper->ends, true);
	if (write(sleeper->fd, &one, sizeof(one)) < 0)
		perror("eventfd");
	if (sleeper->wakes != NONE)
		pthread_join(sleeper->thread, NULL);
	perfring_reader_close(&sleeper->reader);
	perfring_writer_close(sleeper->writer);
	perfring_ring_close(&sleeper->ring);
	close(sleeper->fd);
}

/* A record a microsecond; what counts is the time inside the writer (and in one look at the clock). */
static void run_woken(struct bench *bench, enum wakes wakes)
{
	enum {
		RECORDS = 8192,
		EVERY = 1000, /* ns */
	};
	struct sleeper sleeper;
	uint64_t one = 1;
	cpu_set_t before;
	int i;

	if (!start_sleeper(bench, &sleeper, wakes))
		return;
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	pin(0);
	bench_items(bench, RECORDS);
	while (bench_keep(bench, 1)) {
		double next = now(), start = next, spent = 0;

		for (i = 0; i < RECORDS; i++) {
			while ((start = now()) < next)
				;
			next = start + EVERY;
			start = now();
			perfring_writer_write(sleeper.writer, NULL, ring_source, RING_RECORD);
			if (wakes == EACH && write(sleeper.fd, &one, sizeof(one)) < 0)
				break;
			spent += now() - start;
		}
		bench_lap(bench, spent);
	}
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	end_sleeper(&sleeper);
}

/* What a reader costs that has nothing to do with these records: their space is given back between the laps. */
static void run_beside(struct bench *bench, enum wakes wakes)
{
	int64_t records = LAP / RING_RECORD, i;
	struct sleeper sleeper;
	cpu_set_t before;
	double start;

	if (!start_sleeper(bench, &sleeper, wakes))
		return;
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	pin(0);
	bench_items(bench, records);
	while (bench_keep(bench, 1)) {
		start = now();
		for (i = 0; i < records; i++)
			perfring_writer_write(sleeper.writer, NULL, ring_source, RING_RECORD);
		bench_lap(bench, now() - start);
		drain(&sleeper.reader);
	}
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	end_sleeper(&sleeper);
}

static void run_wake_each(struct bench *bench)
{
	run_woken(bench, EACH);
}

static void run_wake_next(struct bench *bench)
{
	run_woken(bench, NEXT);
}

static void run_wake_mark(struct bench *bench)
{
	run_woken(bench, MARK);
}

static void run_no_reader(struct bench *bench)
{
	run_beside(bench, NONE);
}

static void run_idle_reader(struct bench *bench)
{
	run_beside(bench, IDLE);
}

const struct bench_row bench_rows[] = {
	{"16", "memcpy", run_copy_16, 0, 0},
	{"16", "perfring", run_write_16, 2.4, 0},
	{"64", "memcpy", run_copy_64, 0, 0},
	{"64", "perfring", run_write_64, 1.5, 0},
	{"64", "transaction_of_four", run_fours, 1.15, 0},
	{"64", "plain_store", run_plain, 0, 0},
	{"64", "perfring", run_write_64, 1.25, 0},
	{"64", "boost_push", run_boost, 0, 0},
	{"64", "perfring", run_write_64, 1.5, 0},
	{"64", "ck_mpsc", run_ck_mpsc, 0, 0},
	{"64", "perfring", run_write_64, 0.5, 0},
	{"64", "dpdk_mp", run_dpdk_mp, 0, 0},
	{"64", "perfring", run_write_64, 0.5, 0},
	{"64", "concurrentqueue_token", run_concurrent_token, 0, 0},
	{"64", "perfring", run_write_64, 0.95, 0},
	{"64", "kernel_locked", run_kernel_locked, 0, 0},
	{"64", "kernel_unlocked", run_kernel_unlocked, 0, 0},
	{"64", "perfring", run_write_64, 0.4, 0},
	{"64", "ck_spsc", run_ck_spsc, 0, 0},
	{"64", "concurrentqueue_bulk", run_concurrent_bulk, 0, 0},
	{"64", "readerwriterqueue", run_readerwriter, 0, 0},
	{"256", "memcpy", run_copy_256, 0, 0},
	{"256", "perfring", run_write_256, 1.15, 0},
	{"1024", "memcpy", run_copy_1024, 0, 0},
	{"1024", "perfring", run_write_1024, 1.05, 0},
	{"64_with_time", "lttng_ust_array", run_lttng_array, 0, 0},
	{"64_with_time", "lttng_ust", run_lttng_fields, 0, 0},
	{"64_with_time", "perfring_clock", run_clock, 0.32, 0},
	{"64_with_time", "perfring_counter", run_counter, 0.17, 0},
	{"per_cpu", "perfring_writer", run_write_64, 0, 0},
	{"per_cpu", "perfring_cpus", run_cpus, 1.6, 0},
	{"reader", "none", run_no_reader, 0, 0},
	{"reader", "idle", run_idle_reader, 1.1, 0},
	{"wakeup", "eventfd_each", run_wake_each, 0, 0},
	{"wakeup", "next_record", run_wake_next, 0.15, 0},
	{"wakeup", "watermark", run_wake_mark, 0.15, 0},
	{"two_cores", "boost_consume_all", run_across_boost, 0, 0},
	{"two_cores", "perfring", run_across_perfring, 1.4, 1.5},
	{"two_cores", "ck_spsc", run_across_ck_spsc, 0, 0},
	{"two_cores", "perfring", run_across_perfring, 0.7, 0.6},
	{"two_cores", "raw_stream", run_across_stream, 0, 0},
	{"two_cores", "perfring", run_across_perfring, 1.7, 2.4},
	{"two_cores", "kernel_unlocked", run_across_kernel, 0, 0},
	{"two_cores", "readerwriterqueue", run_across_readerwriter, 0, 0},
	{"two_cores", "dpdk_mp", run_across_dpdk, 0, 0},
	{"two_producers", "ck_mpsc", run_two_ck_mpsc, 0, 0},
	{"two_producers", "perfring_set", run_two_threads, 0.2, 0},
	{"two_producers", "perfring_strict", run_two_strict, 1, 1.7},
	{"two_producers", "perfring_leased", run_two_leased, 0.2, 0.55},
	{"two_producers", "dpdk_mp", run_two_dpdk_mp, 0, 0},
	{"two_producers", "perfring_set", run_two_threads, 0.2, 0.25},
	{"two_producers", "concurrentqueue_bulk", run_two_bulk, 0, 0},
	{"two_producers", "perfring_set", run_two_threads, 1.1, 0},
	{"two_producers", "concurrentqueue_token", run_two_token, 0, 0},
	{"two_producers", "perfring_cpus", run_two_cpus, 0, 0},
	{"leased_late_bytes", "two_chunks", run_two_chunks, 0, 0},
	{"leased_late_bytes", "p99", run_late_leased, 1, 0},
	{NULL, NULL, NULL, 0, 0},
};
