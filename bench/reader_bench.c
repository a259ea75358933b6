/* reader_bench.c - what a record costs to read, beside what its bytes cost to copy and what its headers cost to walk.
 *
 * The ring is made by hand: 1 MiB of 64-byte samples.  A drain reads all of it, and the ring is full again: the
 * writer's side is one store.
 */
#include <stdlib.h>
#include <string.h>
#include <perfring/reader.h>
#include <perfring/sample.h>

#include "bench.h"

enum {
	SIZE = 1 << 20,
	PAGE = 4096,
};

static const struct perfring_format format = {
	.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD,
};

static unsigned char memory[PAGE + SIZE] __attribute__((aligned(PAGE)));
static unsigned char copy[SIZE];

static struct perf_event_mmap_page *page(void)
{
	return (struct perf_event_mmap_page *)(void *)memory;
}

/* Fills the ring with records of `size` bytes, whole ones only.  Returns how many. */
static int64_t fill(uint16_t size)
{
	struct perf_event_header header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, size};
	int64_t count = SIZE / size;

	memset(memory, 1, sizeof(memory));
	memset(page(), 0, PAGE);
	for (int64_t i = 0; i < count; i++)
		memcpy(memory + PAGE + i * size, &header, sizeof(header));
	page()->data_head = (uint64_t)(count * size);
	return count;
}

static void run_memcpy(struct bench *bench)
{
	bench_items(bench, fill(64));
	while (bench_keep(bench, 1)) {
		memcpy(copy, memory + PAGE, sizeof(copy));
		bench_use(copy[0]);
	}
}

/* The least a reader can do: from header to header. */
static void run_headers(struct bench *bench)
{
	uint64_t size;

	bench_items(bench, fill(64));
	while (bench_keep(bench, 1)) {
		size = page()->data_head;
		for (uint64_t at = 0; at < size;) {
			const struct perf_event_header *record =
				(const struct perf_event_header *)(const void *)(memory + PAGE + at);

			bench_use(record->type);
			at += record->size;
		}
	}
}

/* Drains the ring; then the writer has filled it again, from where it stood. */
static void drain(struct bench *bench, bool decodes)
{
	int64_t count = fill(64);
	struct perfring_ring ring;
	struct perfring_reader reader;
	const struct perf_event_header *record;
	struct perfring_sample sample;

	bench_items(bench, count);
	if (perfring_ring_wrap(&ring, memory, sizeof(memory)) || perfring_reader_open(&reader, &ring, 0)) {
		bench_skip(bench, "no reader on this ring");
		return;
	}
	while (bench_keep(bench, 1)) {
		int64_t seen = 0;

		perfring_reader_observe(&reader);
		while (perfring_reader_next(&reader, &record) == 1) {
			if (!decodes)
				bench_use(record->type);
			else if (perfring_sample_decode(&format, record, &sample, NULL) == 0)
				bench_use(sample.ip + sample.tid + sample.time + sample.period);
			seen++;
		}
		perfring_reader_return(&reader);
		perfring_page_publish(page(), page()->data_head + SIZE);
		if (seen != count) {
			bench_skip(bench, "the drain missed records");
			break;
		}
	}
	perfring_reader_close(&reader);
}

static void run_drain(struct bench *bench)
{
	drain(bench, false);
}

static void run_decode(struct bench *bench)
{
	drain(bench, true);
}

const struct bench_row bench_rows[] = {
	{"record", "memcpy", run_memcpy, 0, 0},
	{"record", "headers", run_headers, 0, 0},
	{"record", "drain", run_drain, 0, 0},
	{"record", "drain_and_decode", run_decode, 0, 0},
	{NULL, NULL, NULL, 0, 0},
};
