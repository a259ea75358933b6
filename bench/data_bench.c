/* data_bench.c - what a record of a perf.data file costs to hand out in time order, beside a walk over the file's headers.
 *
 * The file is in memory and made as a recorder makes it: rounds of spans, one for each of four rings, whose times run
 * beside one another; samples with callchains of 4 to 30 words, half a million of them, or tracepoints' of one size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/sample.h>

#include "bench.h"

enum {
	RINGS = 4,
	ROUNDS = 250,
	SPAN = 500, /* records of one ring in one round */
	RECORDS = RINGS * ROUNDS * SPAN,
	BLOCK = 1 << 20,
};

struct file {
	int fd;
	char path[64];
	int64_t from, size; /* of its records */
};

static unsigned next_random(unsigned *seed)
{
	return *seed = *seed * 1664525u + 1013904223u;
}

/* One ring's span.  Returns its bytes. */
static size_t make_span(unsigned char *bytes, const struct perfring_format *format, unsigned round, unsigned ring,
			bool has_chains, unsigned *seed)
{
	static const perfring_word chain[30];
	static const unsigned char raw[68];
	size_t used = 0;

	for (unsigned i = 0; i < SPAN; i++) {
		struct perfring_sample sample = {.misc = PERF_RECORD_MISC_USER};

		sample.ip = 0x401000 + i;
		sample.pid = sample.tid = 100 + ring;
		sample.time = 1 + ((uint64_t)round * SPAN + i) * 1000 + ring * 250 + (next_random(seed) >> 24);
		sample.cpu = ring;
		sample.period = 1;
		sample.identifier = 1 + ring;
		if (has_chains) {
			sample.callchain.words = chain;
			sample.callchain.nr = 4 + (next_random(seed) >> 16) % 27;
		} else {
			sample.raw.data = raw;
			sample.raw.size = sizeof(raw);
		}
		used += (size_t)perfring_sample_encode(format, &sample, bytes + used, 65536);
	}
	return used;
}

static const struct file *make_file(bool has_chains)
{
	static struct file files[2] = {{.fd = -1}, {.fd = -1}};
	struct file *file = &files[has_chains];
	struct perfring_file_writer *writer;
	struct perfring_format format;
	struct perf_event_attr attr;
	unsigned char *bytes;
	unsigned seed = 1;

	if (file->fd >= 0)
		return file;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERFRING_TYPE_SOFTWARE;
	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
			   PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD;
	attr.sample_type |= has_chains ? (uint64_t)PERFRING_SAMPLE_CALLCHAIN : (uint64_t)PERFRING_SAMPLE_RAW;
	attr.sample_id_all = 1;
	bytes = malloc(SPAN * 400 + 65536);
	file->fd = memfd_create("data_bench", MFD_CLOEXEC);
	if (!bytes || file->fd < 0 || perfring_file_writer_open(&writer, file->fd) ||
	    perfring_file_writer_add_event(writer, &attr, "bench") || perfring_format_from_attr(&format, &attr))
		abort();
	for (unsigned ring = 0; ring < RINGS; ring++)
		if (perfring_file_writer_add_id(writer, 0, 1 + ring))
			abort();
	if (perfring_file_writer_begin(writer))
		abort();
	file->from = (int64_t)perfring_file_writer_size(writer);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned ring = 0; ring < RINGS; ring++) {
			struct iovec piece = {.iov_base = bytes};

			piece.iov_len = make_span(bytes, &format, round, ring, has_chains, &seed);
			if (perfring_file_writer_write(writer, &piece, 1))
				abort();
		}
		if (perfring_file_writer_end_round(writer))
			abort();
	}
	file->size = (int64_t)perfring_file_writer_size(writer) - file->from;
	if (perfring_file_writer_finish(writer))
		abort();
	perfring_file_writer_close(writer);
	free(bytes);
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
	return file;
}

/* From header to header, through a block as ours: the least that anybody who reads the file does. */
static void walk_headers(struct bench *bench, bool has_chains)
{
	const struct file *file = make_file(has_chains);
	unsigned char *block = aligned_alloc(4096, BLOCK);

	bench_items(bench, RECORDS);
	while (bench_keep(bench, 1)) {
		int64_t at = file->from, end = file->from + file->size;

		while (at < end) {
			ssize_t got = pread(file->fd, block, BLOCK, at);
			ssize_t used = 0;

			if (at + got > end)
				got = (ssize_t)(end - at);
			while (got - used >= 8) {
				const struct perf_event_header *record =
					(const struct perf_event_header *)(const void *)(block + used);

				if (record->size > got - used)
					break;
				bench_use(record->type);
				used += record->size;
			}
			at += used;
		}
	}
	free(block);
}

static void iterate(struct bench *bench, bool has_chains, bool decodes)
{
	const struct file *file = make_file(has_chains);
	struct perfring_sample sample;
	struct perfring_item item;
	struct perfring_file *data;
	uint64_t count = 0;

	bench_items(bench, RECORDS);
	while (bench_keep(bench, 1)) {
		if (perfring_file_open(&data, file->path))
			abort();
		for (count = 0; perfring_file_next(data, &item) == 1; count++) {
			if (decodes && item.format && item.record->type == PERF_RECORD_SAMPLE)
				perfring_sample_decode(item.format, item.record, &sample, NULL);
			bench_use(item.time);
		}
		if (perfring_file_late(data))
			abort();
		perfring_file_close(data);
	}
	if (count < RECORDS)
		abort();
}

static void run_chain_headers(struct bench *bench)
{
	walk_headers(bench, true);
}

static void run_chain_items(struct bench *bench)
{
	iterate(bench, true, false);
}

static void run_chain_decode(struct bench *bench)
{
	iterate(bench, true, true);
}

static void run_raw_headers(struct bench *bench)
{
	walk_headers(bench, false);
}

static void run_raw_items(struct bench *bench)
{
	iterate(bench, false, false);
}

static void run_raw_decode(struct bench *bench)
{
	iterate(bench, false, true);
}

const struct bench_row bench_rows[] = {
	{"callchains", "headers", run_chain_headers, 0, 0},
	{"callchains", "in_time_order", run_chain_items, 2.5, 0},
	{"callchains", "in_time_order_decoded", run_chain_decode, 0, 0},
	{"tracepoints", "headers", run_raw_headers, 0, 0},
	{"tracepoints", "in_time_order", run_raw_items, 2.5, 0},
	{"tracepoints", "in_time_order_decoded", run_raw_decode, 0, 0},
	{NULL, NULL, NULL, 0, 0},
};
