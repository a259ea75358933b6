/* stream_test.c - what the writer writes is what the reader reads: files, streams and pipes, compressed or not, in either byte
 * order, cut anywhere and damaged; and what streams hold between their records. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/check.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/generate.h>
#include "file_rig.h"
#include "machine.h"
#include "pack.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(stream, .timeout = 300);

/* ---- many records of every kind ---- */

enum {
	EVENTS = 5,
	IDS = 3, /* of each */
	MOST_RECORDS = 10000,
};

struct many {
	struct perf_event_attr attrs[EVENTS];
	struct perfring_format_set *formats;
	uint32_t events;
	unsigned char *bytes;
	size_t used;
	size_t count;
	struct written {
		size_t at;
		uint32_t size;
		uint64_t time;
		bool is_round_behind;
	} records[MOST_RECORDS];
};

static uint64_t id_of(uint32_t event, uint64_t i)
{
	return 1000 + event * 10 + i;
}

/* Time and id where the format has them. */
static void stamp(const struct perfring_format *format, unsigned char *record, uint64_t time, uint64_t id)
{
	const struct perf_event_header *header = (const struct perf_event_header *)(const void *)record;
	bool is_sample = header->type == PERF_RECORD_SAMPLE;
	uint32_t time_at = is_sample ? format->sample_time_at : header->size - (uint32_t)format->trailer_time_back;
	uint32_t id_at = is_sample ? format->sample_id_at : header->size - (uint32_t)format->trailer_id_back;

	memcpy(record + time_at, &time, 8);
	if (format->sample_type & PERFRING_SAMPLE_IDENTIFIER)
		memcpy(record + id_at, &id, 8);
	cr_assert_eq(perfring_format_time_of(format, header), time);
}

/* Rounds of some hundred records: in each the times go up and down, from round to round they go up. */
static struct many *make_many(uint32_t events, uint64_t seed, size_t count)
{
	struct many *many = calloc(1, sizeof(*many));
	struct perfring_generator generator;
	uint64_t round = 1;
	uint32_t i;

	cr_assert_not_null(many);
	perfring_generator_seed(&generator, seed);
	many->events = events;
	cr_assert_eq(perfring_format_set_open(&many->formats), 0);
	for (i = 0; i < events; i++) {
		struct perf_event_attr *attr = &many->attrs[i];

		cr_assert_eq(perfring_generate_attr(&generator, attr, sizeof(*attr)), 0);
		attr->sample_type |= PERFRING_SAMPLE_TIME | (events > 1 ? PERFRING_SAMPLE_IDENTIFIER : 0);
		attr->sample_id_all = 1;
		/* swapped, a stack or AUX data behind these may be taken for something else (swap.h) */
		attr->branch_sample_type &=
			~(uint64_t)(PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS);
		cr_assert_eq(perfring_format_set_add(many->formats, attr), (int)i);
	}
	many->bytes = malloc(count * 2048 + 65536);
	cr_assert_not_null(many->bytes);
	while (many->count < count && many->used < count * 2048) {
		uint32_t event = (uint32_t)perfring_generator_draw(&generator, events);
		const struct perfring_format *format = perfring_format_set_at(many->formats, event);
		struct written *written = &many->records[many->count];
		uint64_t kind = perfring_generator_draw(&generator, 200);
		unsigned char *buffer = many->bytes + many->used;
		int64_t size;

		if (kind == 0) {
			/* of nobody, as long as any */
			struct perf_event_header header = {200, 7, 65528};

			for (size_t at = 0; at < 65528; at += 8) {
				uint64_t word = perfring_generator_draw(&generator, 0);

				memcpy(buffer + at, &word, 8);
			}
			memcpy(buffer, &header, sizeof(header));
			size = 65528;
			written->time = 0;
		} else {
			size = perfring_generate_record(&generator, format, kind < 120 ? PERF_RECORD_SAMPLE : 0, buffer,
							kind < 10   ? 65528
							: kind < 40 ? 4096
								    : 512);
			if (size == -ENOSPC)
				continue;
			cr_assert_gt(size, 0);
			written->time = kind % 16 == 15 ? 0 : round * 1000 + perfring_generator_draw(&generator, 900);
			stamp(format, buffer, written->time, id_of(event, perfring_generator_draw(&generator, IDS)));
		}
		written->at = many->used;
		written->size = (uint32_t)size;
		many->used += (size_t)size;
		if (perfring_generator_draw(&generator, 400) == 0) {
			written->is_round_behind = true;
			round++;
		}
		many->count++;
	}
	return many;
}

static void drop_many(struct many *many)
{
	perfring_format_set_close(many->formats);
	free(many->bytes);
	free(many);
}

static void write_many(const struct many *many, struct mode mode, size_t count)
{
	struct perfring_file_writer *writer;
	struct perfring_generator generator;
	struct iovec pieces[64];
	uint32_t event, id;
	size_t i;
	int fd, nr = 0;

	perfring_generator_seed(&generator, count);
	writer = create(mode, &fd);
	for (event = 0; event < many->events; event++) {
		cr_assert_eq(perfring_file_writer_add_event(writer, &many->attrs[event], "event"), (int)event);
		for (id = 0; id < IDS && many->events > 1; id++)
			cr_assert_eq(perfring_file_writer_add_id(writer, event, id_of(event, id)), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	for (i = 0; i < count; i++) {
		pieces[nr].iov_base = many->bytes + many->records[i].at;
		pieces[nr++].iov_len = many->records[i].size;
		if (nr < 64 && i + 1 < count && !many->records[i].is_round_behind &&
		    perfring_generator_draw(&generator, 20))
			continue;
		cr_assert_eq(perfring_file_writer_write(writer, pieces, nr), 0);
		nr = 0;
		if (many->records[i].is_round_behind)
			cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	}
	end(writer, fd);
}

static int compare_times(const void *a, const void *b)
{
	const struct written *left = *(const struct written *const *)a, *right = *(const struct written *const *)b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->at < right->at ? -1 : left->at > right->at;
}

/* The records of `path`: those without a time in the order of the file, the others in that of time. */
static void expect_many(const struct many *many, size_t count, const char *from)
{
	const struct written **sorted = malloc((count + 1) * sizeof(*sorted));
	size_t timed_count = 0, others = 0, at = 0, other = 0;
	struct perfring_file *data;
	struct perfring_item item;
	int one;

	cr_assert_not_null(sorted);
	for (size_t i = 0; i < count; i++) {
		if (many->records[i].time)
			sorted[timed_count++] = &many->records[i];
		else
			others++;
	}
	qsort(sorted, timed_count, sizeof(*sorted), compare_times);
	one = perfring_file_open(&data, from);
	cr_assert_eq(one, 0, "%s", data ? perfring_file_fault(data).what : "");
	cr_assert_eq(perfring_format_set_count(perfring_file_formats(data)), many->events);
	while ((one = perfring_file_next(data, &item)) == 1) {
		const struct written *written;

		if (item.record->type >= 64 && item.record->type < 100)
			continue;
		if (item.time) {
			cr_assert_lt(at, timed_count);
			written = sorted[at++];
		} else {
			for (; other < count && many->records[other].time; other++)
				;
			cr_assert_lt(other, count);
			written = &many->records[other++];
			others--;
		}
		cr_assert_eq(item.time, written->time);
		cr_assert_eq(item.record->size, written->size, "%u: %u", item.record->size, written->size);
		cr_assert_eq(memcmp(item.record, many->bytes + written->at, written->size), 0, "type %u at %lld",
			     item.record->type, (long long)perfring_file_position(data));
		cr_assert_not(perfring_file_was_late(data));
	}
	cr_assert_eq(one, 0, "%s", perfring_file_fault(data).what);
	cr_assert_eq(at, timed_count);
	cr_assert_eq(others, 0);
	cr_assert_eq(perfring_file_late(data), 0);
	cr_assert(perfring_file_is_finished(data));
	perfring_file_close(data);
	free(sorted);
}

static const int levels[] = {0, 1, 9, 22};

/* ---- pipes ---- */

struct feed {
	pthread_t thread;
	int end;
	const unsigned char *bytes;
	size_t size;
	size_t most; /* bytes of a piece */
};

static void *feed(void *argument)
{
	struct feed *feed = argument;
	struct perfring_generator generator;
	size_t at, size;

	perfring_generator_seed(&generator, feed->size);
	for (at = 0; at < feed->size; at += size) {
		ssize_t put;

		size = 1 + (size_t)perfring_generator_draw(&generator, feed->most);
		if (size > feed->size - at)
			size = feed->size - at;
		put = write(feed->end, feed->bytes + at, size);
		if (put <= 0)
			break;
		size = (size_t)put;
	}
	close(feed->end);
	return NULL;
}

/* The bytes through a pipe, in pieces; `name` is what to open. */
static void begin_feed(struct feed *fed, const unsigned char *from, size_t size, size_t most, int *end, char name[64])
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	*end = ends[0];
	snprintf(name, 64, "/proc/self/fd/%d", ends[0]);
	fed->end = ends[1];
	fed->bytes = from;
	fed->size = size;
	fed->most = most;
	cr_assert_eq(pthread_create(&fed->thread, NULL, feed, fed), 0);
}

static void expect_through_pipe(const struct many *many, size_t count, size_t most)
{
	unsigned char *stream;
	struct feed fed;
	char name[64];
	size_t size;
	int fd;

	stream = get_file(&size);
	begin_feed(&fed, stream, size, most, &fd, name);
	expect_many(many, count, name);
	pthread_join(fed.thread, NULL);
	close(fd);
	free(stream);
}

static void try_modes(uint32_t events, uint64_t seed)
{
	size_t all = trials(MOST_RECORDS);
	struct many *many = make_many(events, seed, IS_SANITIZED ? all / 4 : all);
	size_t i, number;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (levels[i] && !has_zstd())
			continue;
		for (number = 0; number < 4; number++) {
			struct mode mode = {number & 1, number & 2, levels[i]};
			/* the highest level is slow, and takes 700 MB */
			size_t count = levels[i] == 22 ? many->count / 8 : many->count;

			if (levels[i] == 22 && number != seed % 2 * 3 && !is_long())
				continue;
			write_many(many, mode, count);
			expect_many(many, count, path);
			if (mode.is_stream)
				expect_through_pipe(many, count, number & 2 ? 3000 : 100000);
		}
	}
	drop_many(many);
}

Test(stream, one_event)
{
	make_folder();
	try_modes(1, 1);
	remove_folder();
}

Test(stream, several_events)
{
	make_folder();
	try_modes(EVENTS, 2);
	remove_folder();
}

Test(stream, byte_by_byte)
{
	struct many *many;

	make_folder();
	for (int number = 0; number < 4; number++) {
		struct mode mode = {true, number & 1, number & 2 ? 1 : 0};

		if (mode.level && !has_zstd())
			continue;
		many = make_many(3, 77, 40);
		write_many(many, mode, many->count);
		expect_through_pipe(many, many->count, 1);
		drop_many(many);
	}
	remove_folder();
}

/* ---- compressed records, cut elsewhere ---- */

/* The bytes of all COMPRESSED records of a stream of ours, which are to be put behind what stands before them. */
static unsigned char *gather(const unsigned char *stream, size_t size, size_t *front, size_t *packed_size)
{
	unsigned char *packed = malloc(size);
	size_t at, used = 0;
	struct perf_event_header header;

	cr_assert_not_null(packed);
	*front = 0;
	for (at = 16; at + 8 <= size; at += header.size) {
		memcpy(&header, stream + at, 8);
		cr_assert_geq(header.size, 8);
		if (header.type != PERFRING_RECORD_COMPRESSED)
			continue;
		if (!*front)
			*front = at;
		memcpy(packed + used, stream + at + 8, header.size - 8u);
		used += header.size - 8u;
	}
	*packed_size = used;
	return packed;
}

Test(stream, cut_anywhere)
{
	static const size_t pieces[] = {1, 2, 3, 13, 100, 1021, 60000};
	struct mode mode = {true, false, 3};
	unsigned char *stream, *packed;
	size_t size, front, left, i;
	struct many *many;

	if (!has_zstd())
		cr_skip_test("SKIP-ENV: libzstd: not built in: needs libzstd-dev");
	make_folder();
	many = make_many(EVENTS, 5, 500);
	for (i = 0; i < many->count; i++)
		many->records[i].is_round_behind = false;
	write_many(many, mode, many->count);
	stream = get_file(&size);
	packed = gather(stream, size, &front, &left);
	cr_assert_gt(left, 10000);
	for (i = 0; i < 2 * sizeof(pieces) / sizeof(pieces[0]); i++) {
		bool is_second = i % 2;
		size_t piece = pieces[i / 2], at, padding;
		FILE *file = fopen(path, "wb");

		cr_assert_not_null(file);
		cr_assert_eq(fwrite(stream, 1, front, file), front);
		for (at = 0; at < left; at += piece) {
			uint64_t own = left - at < piece ? left - at : piece;
			struct perf_event_header header = {is_second ? 83 : 81, 0, (uint16_t)(8 + own)};

			padding = is_second ? (8 - own % 8) % 8 : 0;
			header.size = (uint16_t)(header.size + (is_second ? 8 + padding : 0));
			cr_assert_eq(fwrite(&header, 8, 1, file), 1);
			if (is_second)
				cr_assert_eq(fwrite(&own, 8, 1, file), 1);
			cr_assert_eq(fwrite(packed + at, 1, own, file), own);
			/* what pads it is not of the frame */
			cr_assert_eq(fwrite("\xff\xff\xff\xff\xff\xff\xff", 1, padding, file), padding);
		}
		fclose(file);
		expect_many(many, many->count, path);
	}
	free(stream);
	free(packed);
	drop_many(many);
	remove_folder();
}

/* ---- frames that are cut or damaged ---- */

enum {
	BLOCKS = 6,  /* of a frame, with a record in each */
	RANDOM = 72, /* bytes of that record */
	ALL = (1 << BLOCKS) - 1,
	FRAME_HEADER = 6,
};

struct frame {
	unsigned char bytes[BLOCKS * 128];
	size_t ends[BLOCKS];
};

/* A sample that zstd cannot make less: it stands in its block as it is. */
static void make_random(unsigned char record[RANDOM], uint64_t time)
{
	struct perfring_generator generator;
	struct timed sample = timed(time);

	perfring_generator_seed(&generator, time);
	for (size_t at = 0; at < RANDOM; at += 8) {
		uint64_t number = perfring_generator_draw(&generator, 0);

		memcpy(record + at, &number, 8);
	}
	sample.header.size = RANDOM;
	memcpy(&sample.ip, record, 8);
	memcpy(record, &sample, sizeof(sample));
}

/* Samples `time` and following; `front` is what stands before them in a stream. */
static void make_frame(struct frame *frame, uint64_t time, struct pack *front)
{
	struct perf_event_header header;
	struct perfring_file_writer *writer;
	unsigned char record[RANDOM], *file;
	size_t size, at, used = 0, block = 0;
	int fd;

	make_folder();
	writer = begin((struct mode){true, false, 1}, &fd);
	at = (size_t)perfring_file_writer_size(writer);
	for (uint64_t i = 0; i < BLOCKS; i++) {
		make_random(record, time + i);
		write_bytes(writer, record, RANDOM);
	}
	perfring_file_writer_close(writer);
	close(fd);
	file = get_file(&size);
	remove_folder();
	front->size = 0;
	bytes(front, file, at);
	for (; at < size; at += header.size) {
		memcpy(&header, file + at, sizeof(header));
		cr_assert_eq(header.type, PERFRING_RECORD_COMPRESSED);
		memcpy(frame->bytes + used, file + at + 8, header.size - 8u);
		used += header.size - 8u;
		cr_assert_lt(block, BLOCKS);
		frame->ends[block++] = used;
	}
	cr_assert_eq(block, BLOCKS);
	free(file);
}

/* So many bytes of a frame: in one compressed record, or one for each block. */
static void put_frame(struct pack *pack, const struct frame *frame, size_t size, bool is_together)
{
	size_t at = 0, end;

	for (size_t block = 0; at < size; block++, at = end) {
		end = is_together || frame->ends[block] > size ? size : frame->ends[block];
		half(pack, PERFRING_RECORD_COMPRESSED);
		quarter(pack, 0);
		quarter(pack, (uint16_t)(8 + end - at));
		bytes(pack, frame->bytes + at, end - at);
	}
}

struct outcome {
	unsigned found[2];     /* samples of each frame, a bit each */
	unsigned before_fault; /* of the first, when the first fault was told */
	size_t faults;
	size_t others; /* records that nobody wrote */
	struct perfring_file_compressed compression;
};

/* Reads two frames, whose times begin at 1 and at 101. */
static struct outcome read_frames(struct pack *pack)
{
	struct outcome outcome = {{0, 0}, 0, 0, 0, {0}};
	unsigned char expected[RANDOM];
	struct perfring_file *data;
	struct perfring_item item;
	int one;

	set_memory(pack->bytes, pack->size);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	do {
		item.record = NULL;
		one = perfring_file_next(data, &item);
		if (one == -EBADMSG) {
			if (!outcome.faults++)
				outcome.before_fault = outcome.found[0];
			cr_assert_not_null(strstr(perfring_file_fault(data).what, "compressed"), "%s",
					   perfring_file_fault(data).what);
			cr_assert_not_null(item.record);
			cr_assert_null(item.format);
			cr_assert_eq(item.record->type, PERFRING_RECORD_COMPRESSED);
			cr_assert_eq(perfring_file_position(data), perfring_file_fault(data).at);
			cr_assert_eq(memcmp(item.record, pack->bytes + perfring_file_position(data), item.record->size),
				     0);
		} else if (one == 1 && (item.record->type < 64 || item.record->type >= 100)) {
			uint64_t frame = item.time / 100, block = item.time % 100 - 1;

			make_random(expected, item.time);
			if (item.record->size == RANDOM && frame < 2 && block < BLOCKS &&
			    !memcmp(item.record, expected, RANDOM))
				outcome.found[frame] |= 1u << block;
			else
				outcome.others++;
		}
	} while (one == 1 || item.record);
	cr_assert_eq(one, 0);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	perfring_file_compression(data, &outcome.compression);
	perfring_file_close(data);
	return outcome;
}

/* A byte is another, or is not there at all. */
static void damage(struct frame *frame, size_t at, unsigned way)
{
	static const unsigned char ways[] = {0xff, 0x01, 0x80, 0x10, 0x04, 0};

	frame->bytes[at] ^= ways[way];
	if (!ways[way]) {
		memmove(frame->bytes + at, frame->bytes + at + 1, frame->ends[BLOCKS - 1] - at - 1);
		for (size_t block = 0; block < BLOCKS; block++)
			frame->ends[block] -= frame->ends[block] > at;
	}
}

/* What came out before the damage is there, and the next frame too, unless a size that is damaged takes its bytes for those
 * of a block; what is not there was told. */
Test(stream, damaged_frames)
{
	struct frame frames[2], damaged;
	unsigned tries = 0, swallowed = 0;
	static struct pack front, pack;
	struct outcome outcome;
	size_t at, block;

	if (!has_zstd())
		cr_skip_test("SKIP-ENV: libzstd: not built in: needs libzstd-dev");
	make_frame(&frames[0], 1, &front);
	make_frame(&frames[1], 101, &front);
	for (int is_together = 0; is_together < 2; is_together++) {
		pack = front;
		put_frame(&pack, &frames[0], frames[0].ends[BLOCKS - 1], is_together);
		put_frame(&pack, &frames[1], frames[1].ends[BLOCKS - 1], is_together);
		outcome = read_frames(&pack);
		cr_assert(outcome.found[0] == ALL && outcome.found[1] == ALL && !outcome.faults && !outcome.others);
		cr_assert_eq(outcome.compression.compressed, is_together ? 2 : 2 * BLOCKS);
		cr_assert_eq(outcome.compression.lost, 0);
		cr_assert_eq(outcome.compression.packed_bytes, frames[0].ends[BLOCKS - 1] + frames[1].ends[BLOCKS - 1]);
		cr_assert_eq(outcome.compression.plain_bytes, 2 * BLOCKS * RANDOM);
		for (at = 0, block = 0; at < frames[0].ends[BLOCKS - 1]; at += stride()) {
			block += at >= frames[0].ends[block];
			for (unsigned way = 0; way < 6; way++) {
				unsigned before = (1u << block) - 1;

				damaged = frames[0];
				damage(&damaged, at, way);
				pack = front;
				put_frame(&pack, &damaged, damaged.ends[BLOCKS - 1], is_together);
				put_frame(&pack, &frames[1], frames[1].ends[BLOCKS - 1], is_together);
				outcome = read_frames(&pack);
				cr_assert_eq(outcome.found[0] & before, before, "byte %zu, %u: %x", at, way,
					     outcome.found[0]);
				tries++;
				swallowed += outcome.found[1] != ALL;
				cr_assert(outcome.found[1] == ALL || outcome.faults, "byte %zu, %u", at, way);
				cr_assert(outcome.found[0] == ALL || outcome.faults || outcome.others, "byte %zu, %u",
					  at, way);
				cr_assert(!outcome.faults || (outcome.before_fault & before) == before);
				cr_assert_leq(outcome.faults, 2);
				cr_assert_eq(!outcome.faults, !outcome.compression.lost);
			}
		}
	}
	cr_assert_lt(swallowed, tries / 20, "%u of %u", swallowed, tries);
}

/* A frame that is not whole, with another behind it or nothing. */
Test(stream, cut_frames)
{
	struct frame frames[2];
	unsigned tries = 0, swallowed = 0;
	static struct pack front, pack;
	struct outcome outcome;
	size_t cut, block;

	if (!has_zstd())
		cr_skip_test("SKIP-ENV: libzstd: not built in: needs libzstd-dev");
	make_frame(&frames[0], 1, &front);
	make_frame(&frames[1], 101, &front);
	for (int number = 0; number < 4; number++) {
		bool is_together = number & 1, is_last = number & 2;

		for (cut = 1, block = 0; cut <= frames[0].ends[BLOCKS - 1]; cut++) {
			/* what the header alone says is not known to be less than there was */
			bool is_whole = cut == frames[0].ends[block] || cut == FRAME_HEADER;

			block += cut == frames[0].ends[block];
			pack = front;
			put_frame(&pack, &frames[0], cut, is_together);
			if (!is_last)
				put_frame(&pack, &frames[1], frames[1].ends[BLOCKS - 1], is_together);
			outcome = read_frames(&pack);
			cr_assert_eq(outcome.found[0], (1u << block) - 1, "cut at %zu: %x", cut, outcome.found[0]);
			tries++;
			swallowed += outcome.found[1] != (is_last ? 0u : ALL);
			/* the next frame's first bytes may be what is missing */
			cr_assert(is_whole ? !outcome.faults : outcome.faults || outcome.others, "cut at %zu", cut);
			cr_assert(!outcome.faults || outcome.before_fault == outcome.found[0]);
			cr_assert_leq(outcome.faults, 2);
		}
	}
	cr_assert_lt(swallowed, tries / 20, "%u of %u", swallowed, tries);
}

/* ---- a writer that waits ---- */

struct stalling {
	pthread_t thread;
	int end, answers;
	struct mode mode;
	bool was_answered[3];
};

static bool answered(const struct stalling *stalling)
{
	char one;

	return read(stalling->answers, &one, 1) == 1;
}

/* Goes on only when the reader has seen what was written. */
static void *stall(void *argument)
{
	struct stalling *stalling = argument;
	struct perf_event_attr attr = attr_of(TIMED);
	struct perfring_file_writer *writer;
	struct perf_event_header untimed = {200, 0, 8};
	struct iovec piece = {.iov_base = &untimed, .iov_len = 8};
	struct timed sample;

	if (perfring_file_writer_open_stream(&writer, stalling->end))
		return NULL;
	if (stalling->mode.is_foreign)
		perfring_file_writer_make_foreign(writer);
	if (stalling->mode.level)
		perfring_file_writer_compress(writer, stalling->mode.level);
	perfring_file_writer_add_event(writer, &attr, "one");
	perfring_file_writer_begin(writer);
	/* what belongs to no event is handed out by itself */
	perfring_file_writer_write(writer, &piece, 1);
	stalling->was_answered[0] = answered(stalling);
	piece.iov_base = &sample;
	piece.iov_len = sizeof(sample);
	for (uint64_t round = 0; round < 2; round++) {
		sample = timed(10 + round * 10);
		perfring_file_writer_write(writer, &piece, 1);
		perfring_file_writer_end_round(writer);
		/* two rounds, and the first one's is due */
		if (round == 1)
			stalling->was_answered[1] = answered(stalling);
	}
	perfring_file_writer_finish(writer);
	perfring_file_writer_close(writer);
	close(stalling->end);
	return NULL;
}

Test(stream, stalled)
{
	for (int number = 0; number < 4; number++) {
		struct stalling stalling = {.mode = {true, number & 1, number & 2 ? 1 : 0}};
		struct perfring_file *data;
		struct perfring_item item;
		int ends[2], answers[2];
		char name[64];

		if (stalling.mode.level && !has_zstd())
			continue;
		cr_assert_eq(pipe(ends), 0);
		cr_assert_eq(pipe(answers), 0);
		stalling.end = ends[1];
		stalling.answers = answers[0];
		snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
		cr_assert_eq(pthread_create(&stalling.thread, NULL, stall, &stalling), 0);
		cr_assert_eq(perfring_file_open(&data, name), 0);
		do
			cr_assert_eq(perfring_file_next(data, &item), 1);
		while (item.record->type != 200);
		cr_assert_eq(write(answers[1], "1", 1), 1);
		do
			cr_assert_eq(perfring_file_next(data, &item), 1);
		while (!item.time);
		cr_assert_eq(item.time, 10);
		cr_assert_eq(write(answers[1], "2", 1), 1);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.time, 20);
		cr_assert_eq(perfring_file_next(data, &item), 0);
		pthread_join(stalling.thread, NULL);
		cr_assert(stalling.was_answered[0] && stalling.was_answered[1]);
		perfring_file_close(data);
		close(ends[0]);
		close(answers[0]);
		close(answers[1]);
	}
}

/* ---- what a stream tells of itself, wherever it stands ---- */

static void put_string(struct pack *pack, const char *text)
{
	size_t size = strlen(text) / 64 * 64 + 64;

	half(pack, (uint32_t)size);
	memset(pack->bytes + pack->size, 0, size);
	memcpy(pack->bytes + pack->size, text, strlen(text));
	pack->size += size;
}

/* The size into the header of the record that begins at `at`. */
static void finish(struct pack *pack, size_t at)
{
	quarter_at(pack, at + 6, (uint16_t)(pack->size - at));
}

static size_t start_more(struct pack *pack, uint32_t type)
{
	half(pack, type);
	half(pack, 0);
	return pack->size - 8;
}

static void put_feature_string(struct pack *pack, uint64_t feature, const char *text)
{
	size_t at = start_more(pack, PERFRING_RECORD_HEADER_FEATURE);

	word(pack, feature);
	put_string(pack, text);
	finish(pack, at);
}

static void put_attr(struct pack *pack, uint64_t sample_type, uint64_t id)
{
	struct perf_event_attr attr = attr_of(sample_type);
	size_t at = start_more(pack, PERFRING_RECORD_HEADER_ATTR);

	bytes(pack, &attr, sizeof(attr));
	word(pack, id);
	finish(pack, at);
}

static void put_name(struct pack *pack, uint64_t id, const char *name)
{
	size_t at = start_more(pack, PERFRING_RECORD_EVENT_UPDATE);

	word(pack, PERFRING_EVENT_UPDATE_NAME);
	word(pack, id);
	bytes(pack, name, strlen(name) + 1);
	finish(pack, at);
}

static void put_sample(struct pack *pack, uint64_t id, uint64_t time)
{
	size_t at = start_more(pack, PERF_RECORD_SAMPLE);

	word(pack, id);
	word(pack, time);
	finish(pack, at);
}

static void start_stream(struct pack *pack)
{
	pack->size = 0;
	bytes(pack, "PERFILE2", 8);
	word(pack, 16);
}

Test(stream, learned)
{
	static struct pack pack;
	const uint64_t type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TIME;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t id;
	int i;

	make_folder();
	start_stream(&pack);
	put_feature_string(&pack, PERFRING_FEATURE_HOSTNAME, "before");
	put_attr(&pack, type, 7);
	put_name(&pack, 7, "first");
	put_attr(&pack, type | PERFRING_SAMPLE_IDENTIFIER, 9);
	put_sample(&pack, 9, 0);
	put_feature_string(&pack, PERFRING_FEATURE_OSRELEASE, "between");
	put_name(&pack, 7, "second");
	put_name(&pack, 5, "of nobody");
	put_sample(&pack, 7, 0);
	put_name(&pack, 9, "last");
	put_feature_string(&pack, PERFRING_FEATURE_VERSION, "after");
	put_feature_string(&pack, PERFRING_FEATURE_HOSTNAME, "once more");
	set_file(path, pack.bytes, pack.size);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert(perfring_file_is_pipe(data));
	cr_assert_eq(perfring_format_set_count(perfring_file_formats(data)), 2);
	cr_assert_eq(perfring_file_event_id(data, 0, 0, &id), 1);
	cr_assert_eq(id, 7);
	cr_assert_eq(perfring_file_event_id(data, 0, 1, &id), 0);
	cr_assert_eq(perfring_file_event_id(data, 2, 0, &id), 0);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), "before");
	cr_assert_str_eq(perfring_file_event_name(data, 0), "first");
	cr_assert_null(perfring_file_string(data, PERFRING_FEATURE_OSRELEASE));
	for (i = 0; i < 5; i++)
		cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.record->type, PERF_RECORD_SAMPLE);
	cr_assert_eq(item.format->index, 1);
	for (i = 0; i < 4; i++)
		cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.record->type, PERF_RECORD_SAMPLE);
	cr_assert_eq(item.format->index, 0);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_OSRELEASE), "between");
	cr_assert_str_eq(perfring_file_event_name(data, 0), "second");
	for (i = 0; i < 3; i++)
		cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	cr_assert_str_eq(perfring_file_event_name(data, 1), "last");
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_VERSION), "after");
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), "before");
	perfring_file_close(data);
	remove_folder();
}

/* ---- bytes behind records ---- */

enum {
	LONG_TRACE = (5 << 20) + 3,
};

static unsigned char trace_byte(uint64_t at)
{
	return (unsigned char)(at * 7 + at / 256);
}

/* Reads `most` bytes of a trace of `size`, in pieces. */
static void read_trace(struct perfring_file *data, uint64_t size, uint64_t most)
{
	static unsigned char piece[70001];
	uint64_t at = 0;
	int64_t got;

	while (at < most) {
		size_t buffer = most - at < sizeof(piece) ? (size_t)(most - at) : sizeof(piece);

		got = perfring_file_read_trace(data, piece, buffer);
		cr_assert_geq(got, 0);
		if (!got)
			break;
		for (int64_t i = 0; i < got; i++)
			if (piece[i] != trace_byte(at + (uint64_t)i))
				cr_assert_fail("byte %llu", (unsigned long long)(at + (uint64_t)i));
		at += (uint64_t)got;
	}
	cr_assert_eq(at, most < size ? most : size);
}

static void expect_traces(const char *name, const uint64_t *sizes, size_t count)
{
	static const uint64_t shares[] = {UINT64_MAX, 0, 5};
	struct perfring_file *data;
	struct perfring_item item;
	unsigned char byte;
	size_t traces = 0;
	uint64_t time = 0;
	int one;

	cr_assert_eq(perfring_file_open(&data, name), 0);
	while ((one = perfring_file_next(data, &item)) == 1) {
		if (item.record->type != PERFRING_RECORD_AUXTRACE) {
			/* whatever waits behind another record by now */
			cr_assert_eq(perfring_file_read_trace(data, &byte, 1), 0);
			if (item.time)
				cr_assert_eq(item.time, ++time);
			continue;
		}
		cr_assert_lt(traces, count);
		read_trace(data, sizes[traces], shares[traces % 3]);
		traces++;
	}
	cr_assert_eq(one, 0, "%s", perfring_file_fault(data).what);
	cr_assert_eq(traces, count);
	cr_assert_eq(time, count);
	perfring_file_close(data);
}

Test(stream, traces)
{
	static const uint64_t sizes[] = {24, 100, 8, LONG_TRACE, LONG_TRACE, LONG_TRACE, 0, 0, 0};
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	unsigned char *trace = malloc(LONG_TRACE), *stream;
	struct perfring_file *data;
	const uint64_t *index;
	uint64_t length;
	size_t size, i;
	int fd;

	make_folder();
	cr_assert_not_null(trace);
	for (i = 0; i < LONG_TRACE; i++)
		trace[i] = trace_byte(i);
	for (int number = 0; number < 8; number++) {
		struct mode mode = {number & 1, number & 2, number & 4 ? 1 : 0};
		struct perfring_file_writer *writer;

		if (mode.level && !has_zstd())
			continue;
		writer = begin(mode, &fd);
		for (i = 0; i < count; i++) {
			struct {
				struct perf_event_header header;
				uint64_t size, offset, reference;
				uint32_t index, tid, cpu, reserved;
			} record = {{PERFRING_RECORD_AUXTRACE, 0, 48}, sizes[i] + 1, 0, 0, 0, 0, 0, 0};
			const size_t first = sizes[i] / 3;
			const struct iovec pieces[5] = {{trace, first}, {trace + first, sizes[i] - first}};

			cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, pieces, 2), -EINVAL);
			record.size = sizes[i];
			cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, pieces, 5), -EINVAL);
			cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, pieces, 2), 0);
			write_timed(writer, i + 1);
		}
		end(writer, fd);
		expect_traces(path, sizes, count);
		if (!mode.is_stream) {
			cr_assert_eq(perfring_file_open(&data, path), 0);
			index = perfring_file_feature(data, PERFRING_FEATURE_AUXTRACE, &length);
			cr_assert_eq(length, 8 + count * 16);
			cr_assert_eq(index[0], count);
			for (i = 0; i < count; i++)
				cr_assert_eq(index[2 + i * 2], 48);
			perfring_file_close(data);
			continue;
		}
		if (number & 4)
			continue;
		stream = get_file(&size);
		{
			struct feed fed;
			char name[64];

			begin_feed(&fed, stream, size, 50000, &fd, name);
			expect_traces(name, sizes, count);
			pthread_join(fed.thread, NULL);
			close(fd);
		}
		free(stream);
	}
	free(trace);
	remove_folder();
}

/* Where the data of tracepoints follow their record: of 12 bytes (older perfs, and our writer) or 16 (newer perfs); and where
 * they are in it (simpleperf). */
Test(stream, tracing_data)
{
	static const struct {
		uint16_t size; /* of the record */
		uint32_t bytes;
		bool is_inside;
	} rows[] = {
		{12, 40, false},
		{16, 40, false},
		{12, 0, false},
		{16, 0, false},
		{12, 9, false},
		{16, 4, false},
		{12, 70000, false},
		{16, 70000, false},
		{12 + 64, 40, true},
		{12 + 64, 64, true},
		{12 + 65472, 65470, true},
		{20, 8, true},
	};
	static struct pack pack;
	static unsigned char tracing[70000];
	struct perfring_record decoded;
	struct perfring_file *data;
	struct perfring_item item;
	const void *payload;
	uint64_t size;

	make_folder();
	for (size_t i = 0; i < sizeof(tracing); i++)
		tracing[i] = trace_byte(i);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned char *bytes_of;
		size_t at, all;

		start_stream(&pack);
		put_attr(&pack, TIMED, 0);
		at = start_more(&pack, PERFRING_RECORD_HEADER_TRACING_DATA);
		half(&pack, rows[i].bytes);
		/* the rest of the record, and what follows it: of one size in memory, whichever holds the data */
		all = pack.size + rows[i].size - 12u + (rows[i].is_inside ? 0 : rows[i].bytes);
		bytes_of = calloc(1, all + 128);
		cr_assert_not_null(bytes_of);
		memcpy(bytes_of, pack.bytes, pack.size);
		memcpy(bytes_of + at + 6, &rows[i].size, 2);
		memcpy(bytes_of + (rows[i].is_inside ? at + 12 : at + rows[i].size), tracing, rows[i].bytes);
		pack.size = 0;
		at = start_more(&pack, PERF_RECORD_SAMPLE);
		word(&pack, 0x1111);
		half(&pack, 1);
		half(&pack, 2);
		word(&pack, 99);
		finish(&pack, at);
		memcpy(bytes_of + all, pack.bytes, pack.size);
		set_file(path, bytes_of, all + pack.size);
		free(bytes_of);
		cr_assert_eq(perfring_file_open(&data, path), 0, "row %zu", i);
		do {
			cr_assert_eq(perfring_file_next(data, &item), 1, "row %zu: %s", i,
				     perfring_file_fault(data).what);
			if (item.record->type == PERF_RECORD_SAMPLE)
				break;
			cr_assert_eq(perfring_record_decode(NULL, item.record, &decoded, NULL), 0);
			cr_assert_eq(perfring_record_check(NULL, item.record, item.record->size, NULL), 0);
		} while (true);
		cr_assert_eq(item.time, 99);
		cr_assert_eq(perfring_file_next(data, &item), 0);
		payload = perfring_file_feature(data, PERFRING_FEATURE_TRACING_DATA, &size);
		cr_assert_eq(!payload, !rows[i].bytes && !rows[i].is_inside);
		cr_assert(!payload || size == rows[i].bytes, "row %zu", i);
		cr_assert(!payload || !memcmp(payload, tracing, size), "row %zu", i);
		perfring_file_close(data);
	}
	remove_folder();
}

/* A trace that the file does not hold to its end is told, by whoever reads it and by the next record. */
Test(stream, short_trace)
{
	static struct pack pack;
	struct perfring_file *data;
	struct perfring_item item;
	unsigned char buffer[64];
	size_t at;

	make_folder();
	for (int is_read = 0; is_read < 2; is_read++) {
		start_stream(&pack);
		put_attr(&pack, TIMED, 0);
		at = start_more(&pack, PERFRING_RECORD_AUXTRACE);
		word(&pack, UINT64_C(1) << 50);
		for (int i = 0; i < 4; i++)
			word(&pack, 0);
		finish(&pack, at);
		word(&pack, 1);
		set_file(path, pack.bytes, pack.size);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(perfring_file_read_trace(data, buffer, sizeof(buffer)), 0);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.record->type, PERFRING_RECORD_AUXTRACE);
		if (is_read) {
			cr_assert_eq(perfring_file_read_trace(data, buffer, sizeof(buffer)), 8);
			cr_assert_eq(perfring_file_read_trace(data, buffer, sizeof(buffer)), -EBADMSG);
			cr_assert_eq(perfring_file_fault(data).at, (int64_t)pack.size);
		}
		cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
		cr_assert_str_eq(perfring_file_fault(data).what, "file ends inside the bytes after a record");
		cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
		perfring_file_close(data);
	}
	remove_folder();
}
