/* stream_test.c - what the writer writes is what the reader reads: files, streams, pipes, directories, compressed or not, in
 * either byte order; what is cut off, late, or lies about its size. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include <perfring/check.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/generate.h>
#include <perfring/swap.h>
#include "machine.h"
#include "pack.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(stream, .timeout = 300);

#define TIMED (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME)

static char folder[64];
static char path[96];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/stream_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

/* A folder of folders at most. */
static void remove_folder(void)
{
	char shell[128];

	snprintf(shell, sizeof(shell), "rm -rf %s", folder);
	cr_assert_eq(system(shell), 0);
}

static void set_file(const char *name, const void *from, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, from, size), (ssize_t)size);
	close(fd);
}

/* The same in a file that no disk waits for; its path is kept in `path`. */
static void set_memory(const void *from, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("stream_test", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, from, size, 0), (ssize_t)size);
}

static unsigned char *get_file(size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char *got;
	struct stat file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &file), 0);
	*size = (size_t)file.st_size;
	got = malloc(*size + 1);
	cr_assert_not_null(got);
	cr_assert_eq(read(fd, got, *size), file.st_size);
	close(fd);
	return got;
}

static struct perf_event_attr attr_of(uint64_t sample_type)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.sample_type = sample_type;
	attr.sample_id_all = 1;
	return attr;
}

/* ---- how a file is written ---- */

struct mode {
	bool is_stream, is_foreign;
	int level;
};

/* Whether this library can compress. */
static bool has_zstd(void)
{
	struct perfring_file_writer *writer;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), error;

	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	error = perfring_file_writer_compress(writer, 1);
	perfring_file_writer_close(writer);
	close(fd);
	return error != -EOPNOTSUPP;
}

static struct perfring_file_writer *create(struct mode mode, int *fd)
{
	struct perfring_file_writer *writer;

	*fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(*fd, 0);
	cr_assert_eq((mode.is_stream ? perfring_file_writer_open_stream : perfring_file_writer_open)(&writer, *fd), 0);
	if (mode.is_foreign)
		cr_assert_eq(perfring_file_writer_make_foreign(writer), 0);
	if (mode.level)
		cr_assert_eq(perfring_file_writer_compress(writer, mode.level), 0);
	return writer;
}

/* With one event that has no ids. */
static struct perfring_file_writer *begin(struct mode mode, int *fd)
{
	struct perf_event_attr attr = attr_of(TIMED);
	struct perfring_file_writer *writer = create(mode, fd);

	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static void end(struct perfring_file_writer *writer, int fd)
{
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
}

static void write_bytes(struct perfring_file_writer *writer, const void *from, size_t size)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};

	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
}

/* A SAMPLE of TIMED. */
struct timed {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
};

static struct timed timed(uint64_t time)
{
	struct timed sample = {{PERF_RECORD_SAMPLE, 2, sizeof(sample)}, 0x1234, 1, 2, time};

	return sample;
}

static void write_timed(struct perfring_file_writer *writer, uint64_t time)
{
	struct timed sample = timed(time);

	write_bytes(writer, &sample, sizeof(sample));
}

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
		unsigned char *room = many->bytes + many->used;
		int64_t size;

		if (kind == 0) {
			/* of nobody, as long as any */
			struct perf_event_header header = {200, 7, 65528};

			for (size_t at = 0; at < 65528; at += 8) {
				uint64_t word = perfring_generator_draw(&generator, 0);

				memcpy(room + at, &word, 8);
			}
			memcpy(room, &header, sizeof(header));
			size = 65528;
			written->time = 0;
		} else {
			size = perfring_generate_record(&generator, format, kind < 120 ? PERF_RECORD_SAMPLE : 0, room,
							kind < 10   ? 65528
							: kind < 40 ? 4096
								    : 512);
			if (size == -ENOSPC)
				continue;
			cr_assert_gt(size, 0);
			written->time = kind % 16 == 15 ? 0 : round * 1000 + perfring_generator_draw(&generator, 900);
			stamp(format, room, written->time, id_of(event, perfring_generator_draw(&generator, IDS)));
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
		size_t room = most - at < sizeof(piece) ? (size_t)(most - at) : sizeof(piece);

		got = perfring_file_read_trace(data, piece, room);
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

			cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, trace, sizes[i]), -EINVAL);
			record.size = sizes[i];
			cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, trace, sizes[i]), 0);
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
	unsigned char room[64];
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
		cr_assert_eq(perfring_file_read_trace(data, room, sizeof(room)), 0);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.record->type, PERFRING_RECORD_AUXTRACE);
		if (is_read) {
			cr_assert_eq(perfring_file_read_trace(data, room, sizeof(room)), 8);
			cr_assert_eq(perfring_file_read_trace(data, room, sizeof(room)), -EBADMSG);
			cr_assert_eq(perfring_file_fault(data).at, (int64_t)pack.size);
		}
		cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
		cr_assert_str_eq(perfring_file_fault(data).what, "file ends inside the bytes after a record");
		cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
		perfring_file_close(data);
	}
	remove_folder();
}

/* ---- directories ---- */

/* data.0 .. data.N-1, of which every `empty`-th is empty, with times in order in each. */
static void try_directory(uint32_t files, uint32_t empty, bool is_foreign)
{
	enum {
		COUNT = 20000
	};
	static uint16_t owner[COUNT + 1];
	struct perfring_file_writer *writer;
	struct perfring_generator generator;
	FILE *data_files[40];
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t version = 1, time = 0;
	char name[192], whole[64];
	int fd, one;
	uint32_t i;

	snprintf(whole, sizeof(whole), "%.40s", path);
	cr_assert_eq(mkdir(whole, 0700), 0);
	snprintf(path, sizeof(path), "%s/data", whole);
	writer = begin((struct mode){false, is_foreign, 0}, &fd);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_DIR_FORMAT, &version, sizeof(version)), 0);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), -EOPNOTSUPP);
	cr_assert_not_null(strstr(perfring_file_fault(data).what, "directory"));
	perfring_file_close(data);
	for (i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "%s/data.%u", whole, i);
		data_files[i] = fopen(name, "wb");
		cr_assert_not_null(data_files[i]);
	}
	perfring_generator_seed(&generator, files);
	for (time = 1; time <= COUNT; time++) {
		struct timed sample = timed(time), foreign;

		do
			owner[time] = (uint16_t)perfring_generator_draw(&generator, files);
		while (empty && owner[time] % empty == 0);
		if (is_foreign) {
			struct perf_event_attr attr = attr_of(TIMED);
			struct perfring_format format;

			cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
			cr_assert_eq(
				perfring_record_to_foreign(&format, &sample.header, &foreign, sizeof(foreign), NULL),
				(int64_t)sizeof(foreign));
			sample = foreign;
		}
		cr_assert_eq(fwrite(&sample, sizeof(sample), 1, data_files[owner[time]]), 1);
	}
	for (i = 0; i < files; i++)
		fclose(data_files[i]);
	snprintf(path, sizeof(path), "%s", whole);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	time = 0;
	while ((one = perfring_file_next(data, &item)) == 1) {
		if (!item.time) {
			cr_assert_eq(perfring_file_part(data), 0);
			continue;
		}
		cr_assert_eq(item.time, ++time);
		cr_assert_eq(perfring_file_part(data), owner[time] + 1u);
		cr_assert_eq(((const struct timed *)(const void *)item.record)->tid, 2);
	}
	cr_assert_eq(one, 0);
	cr_assert_eq(time, (uint64_t)COUNT);
	cr_assert_eq(perfring_file_late(data), 0);
	perfring_file_close(data);
}

Test(stream, directories)
{
	static const uint32_t files[] = {2, 3, 7, 16, 40};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (uint32_t empty = 0; empty < 6; empty += 3) {
			make_folder();
			try_directory(files[i], files[i] > 3 ? empty : 0, empty);
			remove_folder();
		}
}

/* What is no file among them is not opened, and not waited for. */
Test(stream, odd_directory)
{
	static const char *const names[] = {"data.0", "data"};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	char name[128], other[96];
	int fd;

	make_folder();
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/data", folder);
		remove(path);
		writer = begin((struct mode){false, false, 0}, &fd);
		end(writer, fd);
		snprintf(name, sizeof(name), "%s/%s", folder, names[i % 2]);
		snprintf(other, sizeof(other), "%s/other", folder);
		remove(name);
		remove(other);
		if (i < 2)
			cr_assert_eq(mkfifo(name, 0600), 0);
		else if (i < 4)
			cr_assert_eq(mknod(name, S_IFSOCK | 0600, 0), 0);
		else
			cr_assert(mkfifo(other, 0600) == 0 && symlink(other, name) == 0);
		cr_assert_eq(perfring_file_open(&data, folder), -EOPNOTSUPP);
		cr_assert_not_null(strstr(perfring_file_fault(data).what, "data.N is not a file"));
		cr_assert_eq(perfring_file_part(data), 1 - i % 2);
		perfring_file_close(data);
		remove(name);
	}
	remove_folder();
}

/* TRACING_DATA with formats of two systems: "a:one" is number 4711, "b:two" 4712; the others are damaged. */
static void put_tracing(struct pack *pack)
{
	static const char *const formats[] = {"name: one\nID: 4711\nformat:\n", "name: none\nIDs: 4713\n", "name: \nID: 4713\n",
					      "name: two\nID: 4712\n", "name: too\nID: 4712\n"};

	pack->size = 0;
	bytes(pack, "\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0header_page", 14 + 6 + 12);
	word(pack, 0);
	bytes(pack, "header_event", 13);
	word(pack, 0);
	half(pack, 0);
	half(pack, 2);
	for (int i = 0; i < 5; i++) {
		if (i == 0 || i == 3) {
			bytes(pack, i ? "b" : "a", 2);
			half(pack, i ? 2 : 3);
		}
		word(pack, strlen(formats[i]));
		bytes(pack, formats[i], strlen(formats[i]));
	}
	half(pack, 0);
	half(pack, 0);
	word(pack, 0);
}

/* Tracepoints without names have those of the file's own formats, several of one too; other events what perf makes up. */
Test(stream, names_of_tracepoints)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name, *told;
	} events[] = {
		{2, 4711, "", "a:one"},		      {2, 4712, "", "b:two"}, {2, 4713, "", "type=2,config=0x1269"},
		{2, 4712, "mine", "mine"},	      {2, 4711, "", "a:one"}, {0, 0, "", "cycles:HG"},
		{4, 4711, "", "raw 0x1267:HG"},
	};
	static struct pack pack;

	make_folder();
	for (int number = 0; number < 4; number++) {
		struct mode mode = {number & 1, number & 2, 0};
		struct perfring_file_writer *writer;
		struct perfring_file *data;
		int fd;

		remove(path);
		writer = create(mode, &fd);
		for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
			struct perf_event_attr attr = attr_of(TIMED);

			attr.type = events[i].type;
			attr.config = events[i].config;
			cr_assert_geq(perfring_file_writer_add_event(writer, &attr, events[i].name), 0);
		}
		put_tracing(&pack);
		cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, pack.bytes, pack.size), 0);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		cr_assert_eq(perfring_file_writer_end_round(writer), 0);
		end(writer, fd);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		for (uint32_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
			cr_assert_str_eq(perfring_file_event_name(data, i), events[i].told, "%u in %d: %s", i, number,
					 perfring_file_event_name(data, i));
		perfring_file_close(data);
	}
	remove_folder();
}

/* A stream has no record of a feature of no bytes: perf stops there. */
Test(stream, empty_features)
{
	static const uint32_t empty[] = {PERFRING_FEATURE_BRANCH_STACK, PERFRING_FEATURE_STAT, PERFRING_FEATURE_ARCH, 77};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t cpus = 1 | UINT64_C(1) << 32;
	uint32_t features = 0;
	int fd, one;

	make_folder();
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &(struct perf_event_attr){.size = 64, .sample_type = TIMED}, "one"), 0);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		cr_assert_eq(perfring_file_writer_put_feature(writer, empty[i], NULL, 0), 0);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_NRCPUS, &cpus, sizeof(cpus)), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((one = perfring_file_next(data, &item)) == 1) {
		if (item.record->type != PERFRING_RECORD_HEADER_FEATURE)
			continue;
		cr_assert_gt(item.record->size, 16);
		features++;
	}
	cr_assert_eq(one, 0);
	cr_assert_eq(features, 2, "NRCPUS and EVENT_DESC");
	perfring_file_close(data);
	remove_folder();
}

/* Of what could not be opened next has the error, again and again, and nothing else fails either. */
Test(stream, not_opened)
{
	struct perfring_file_compressed compressed;
	struct perfring_item item = {0};
	struct perfring_file *data;
	uint64_t size, id;
	char byte;
	int fd, error;

	make_folder();
	for (int i = 0; i < 5; i++) {
		static const char bytes[200] = "PERFILE2";
		uint64_t header[13] = {0, 104, 152, 104, 48, 160, 40};

		memcpy(header, bytes, 8);
		if (i == 1)
			set_file(path, "", 0);
		if (i == 2)
			set_file(path, bytes, sizeof(bytes));
		if (i == 3) {
			header[3] = 1 << 20;
			set_file(path, header, sizeof(header));
		}
		if (i == 4) {
			remove(path);
			cr_assert_eq(mknod(path, S_IFSOCK | 0600, 0), 0);
		}
		error = perfring_file_open(&data, path);
		cr_assert_eq(error, i == 0 ? -ENOENT : i == 4 ? -ENXIO : -EBADMSG, "%d: %d", i, error);
		for (int again = 0; again < 3; again++)
			cr_assert_eq(perfring_file_next(data, &item), error);
		cr_assert_null(item.record);
		cr_assert_eq(perfring_file_fault(data).what == NULL, error != -EBADMSG);
		cr_assert_eq(perfring_file_position(data), 0);
		cr_assert_eq(perfring_file_part(data), 0);
		cr_assert_eq(perfring_file_read_trace(data, &byte, 1), 0);
		cr_assert_eq(perfring_file_late(data), 0);
		cr_assert_not(perfring_file_was_late(data));
		cr_assert_not(perfring_file_is_finished(data));
		cr_assert_not(perfring_file_is_pipe(data));
		cr_assert_eq(perfring_file_lost_features(data), 0);
		perfring_file_compression(data, &compressed);
		cr_assert_eq(compressed.lost, 0);
		cr_assert_not_null(perfring_file_formats(data));
		cr_assert_null(perfring_file_attr(data, 0));
		cr_assert_null(perfring_file_event_name(data, 0));
		cr_assert_eq(perfring_file_event_id(data, 0, 0, &id), 0);
		for (uint32_t feature = 0; feature <= PERFRING_FEATURE_BITS; feature++)
			cr_assert_null(perfring_file_feature(data, feature, &size));
		cr_assert_null(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME));
		perfring_file_close(data);
	}
	/* one that is damaged behind its attrs */
	for (long cut = 104; cut < 2000; cut += 8) {
		struct perfring_file_writer *writer;

		remove(path);
		writer = begin((struct mode){false, false, 0}, &fd);
		end(writer, fd);
		cr_assert_eq(truncate(path, cut), 0);
		error = perfring_file_open(&data, path);
		for (uint32_t feature = 0; feature < PERFRING_FEATURE_BITS; feature++)
			perfring_file_feature(data, feature, &size);
		if (error)
			cr_assert_eq(perfring_file_next(data, &item), error);
		perfring_file_close(data);
	}
	remove_folder();
}

/* The file of a fault is told: of one that is the last in its file, and of one behind which the reading goes on. */
Test(stream, faults_in_directory)
{
	struct perf_event_header nothing = {0, 0, 0};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	struct timed sample;
	unsigned char bytes[16] = {PERFRING_RECORD_COMPRESSED, 0, 0, 0, 0, 0, 16};
	uint64_t version = 1;
	FILE *file;
	int fd, one;

	for (uint32_t faulty = 1; faulty <= 4; faulty++)
		for (int goes_on = 0; goes_on <= has_zstd(); goes_on++) {
			uint32_t faults = 0, nr = 0, behind = 0;

			make_folder();
			snprintf(path, sizeof(path), "%s/data", folder);
			writer = begin((struct mode){false, false, 0}, &fd);
			cr_assert_eq(
				perfring_file_writer_put_feature(writer, PERFRING_FEATURE_DIR_FORMAT, &version, sizeof(version)),
				0);
			end(writer, fd);
			for (uint32_t i = 1; i <= 4; i++) {
				snprintf(path, sizeof(path), "%s/data.%u", folder, i - 1);
				file = fopen(path, "wb");
				cr_assert_not_null(file);
				for (uint64_t time = i; time < 100; time += 4) {
					sample = timed(time);
					cr_assert_eq(fwrite(&sample, sizeof(sample), 1, file), 1);
					behind += i == faulty && time > 54;
					if (i == faulty && time > 50 && time <= 54)
						cr_assert_eq(goes_on ? fwrite(bytes, sizeof(bytes), 1, file)
								     : fwrite(&nothing, sizeof(nothing), 1, file),
							     1);
				}
				fclose(file);
			}
			cr_assert_eq(perfring_file_open(&data, folder), 0);
			do {
				item.record = NULL;
				one = perfring_file_next(data, &item);
				if (one == 1 && item.time) {
					nr++;
					cr_assert_eq(perfring_file_part(data), (item.time - 1) % 4 + 1);
				} else if (one == -EBADMSG) {
					faults++;
					cr_assert_eq(perfring_file_part(data), faulty);
					cr_assert_eq(!item.record, !goes_on);
				}
			} while (one == 1 || item.record);
			cr_assert_eq(one, goes_on ? 0 : -EBADMSG);
			cr_assert_eq(faults, 1);
			cr_assert_eq(nr, goes_on ? 99 : 99 - behind);
			perfring_file_close(data);
			remove_folder();
		}
}

/* ---- old and strange headers ---- */

static size_t count_items(const char *name, int *last)
{
	struct perfring_item item;
	struct perfring_file *data;
	size_t nr = 0;

	*last = perfring_file_open(&data, name);
	if (!*last)
		while ((*last = perfring_file_next(data, &item)) == 1)
			nr++;
	if (*last == -EBADMSG)
		cr_assert_not_null(perfring_file_fault(data).what);
	perfring_file_close(data);
	return nr;
}

static uint64_t turned(uint64_t value, bool is_foreign)
{
	return is_foreign ? __builtin_bswap64(value) : value;
}

Test(stream, first_version)
{
	for (int is_foreign = 0; is_foreign < 2; is_foreign++)
		for (int is_short = 0; is_short < 2; is_short++) {
			struct perfring_file_writer *writer;
			struct perfring_file *data;
			unsigned char *file;
			uint64_t value;
			size_t size;
			int fd, last;

			make_folder();
			writer = begin((struct mode){false, is_foreign, 0}, &fd);
			for (uint64_t time = 1; time <= 100; time++)
				write_timed(writer, time);
			cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "old"), 0);
			end(writer, fd);
			file = get_file(&size);
			memcpy(file, "PERFFILE", 8);
			value = turned(72, is_foreign);
			if (is_short)
				memcpy(file + 8, &value, 8);
			set_file(path, file, size);
			cr_assert_eq(count_items(path, &last), 100);
			cr_assert_eq(last, 0);
			cr_assert_eq(perfring_file_open(&data, path), 0);
			cr_assert_eq(perfring_file_is_foreign(data), !!is_foreign);
			cr_assert(perfring_file_is_finished(data));
			if (is_short)
				cr_assert_null(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME));
			else
				cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), "old");
			perfring_file_close(data);
			/* version 2 with that header, and header sizes of nobody */
			memcpy(file, is_foreign ? "2ELIFREP" : "PERFILE2", 8);
			set_file(path, file, size);
			cr_assert_eq(count_items(path, &last), 100);
			cr_assert_eq(last, 0);
			for (uint64_t header = 73; header < 104; header += 15) {
				value = turned(header, is_foreign);
				memcpy(file + 8, &value, 8);
				set_file(path, file, size);
				count_items(path, &last);
				cr_assert_eq(last, -EBADMSG);
			}
			free(file);
			remove_folder();
		}
}

/* A writer whose long has 32 bits: the other byte order puts the halves of each word the other way round. */
Test(stream, narrow_bitmap)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	unsigned char *file, half_word[4];
	size_t size;
	int fd;

	make_folder();
	writer = begin((struct mode){false, true, 0}, &fd);
	write_timed(writer, 1);
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "narrow"), 0);
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_CPUID, "cpu"), 0);
	cr_assert_eq(perfring_file_writer_put_string(writer, 100, "beyond"), 0);
	end(writer, fd);
	file = get_file(&size);
	for (size_t at = 72; at < 104; at += 8) {
		memcpy(half_word, file + at, 4);
		memcpy(file + at, file + at + 4, 4);
		memcpy(file + at + 4, half_word, 4);
	}
	set_file(path, file, size);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), "narrow");
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_CPUID), "cpu");
	cr_assert_not_null(perfring_file_feature(data, 100, NULL));
	perfring_file_close(data);
	free(file);
	remove_folder();
}

/* attrs of every size in entries of every size that holds them, several in a row, so that odd ones stand askew. */
Test(stream, attr_sizes)
{
	static const uint32_t sizes[] = {64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 152, 1000, 4096};
	static const uint32_t more[] = {0, 8, 56, 4, 1};
	static struct pack pack;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t id;

	make_folder();
	for (size_t number = 0; number < 2 * 13 * 5; number++) {
		bool is_foreign = number & 1;
		uint32_t size = sizes[number / 2 % 13], body = size + more[number / 26], entry = body + 16, i;

		if (body > 4096)
			continue;
		pack.size = 0;
		bytes(&pack, is_foreign ? "2ELIFREP" : "PERFILE2", 8);
		word(&pack, turned(104, is_foreign));
		word(&pack, turned(entry, is_foreign));
		word(&pack, turned(104 + 24, is_foreign));
		word(&pack, turned(3 * entry, is_foreign));
		word(&pack, turned(104 + 24 + 3 * entry, is_foreign));
		for (i = 0; i < 7; i++)
			word(&pack, 0);
		for (i = 0; i < 3; i++)
			word(&pack, turned(70 + i, is_foreign));
		for (i = 0; i < 3; i++) {
			_Alignas(8) unsigned char attr[4096] = {0}, foreign[4096];
			struct perf_event_attr known =
				attr_of(PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TIME | i * PERFRING_SAMPLE_CPU);

			memset(attr, 0xee, sizeof(attr));
			known.size = size;
			memcpy(attr, &known, sizeof(known) < size ? sizeof(known) : size);
			if (is_foreign)
				cr_assert_eq(perfring_attr_to_foreign((const struct perf_event_attr *)(void *)attr,
								      foreign, sizeof(foreign)),
					     (int64_t)size);
			bytes(&pack, is_foreign ? foreign : attr, size);
			bytes(&pack, attr + size - 8, 0);
			memset(pack.bytes + pack.size, 0xdd, body - size);
			pack.size += body - size;
			word(&pack, turned(104 + i * 8, is_foreign));
			word(&pack, turned(8, is_foreign));
		}
		for (i = 0; i < 3; i++) {
			size_t at = pack.size;
			struct {
				struct perf_event_header header;
				uint64_t id, time;
			} sample = {{PERF_RECORD_SAMPLE, 0, 24}, turned(70 + i, is_foreign), turned(5 + i, is_foreign)};

			if (is_foreign) {
				sample.header.type = __builtin_bswap32(sample.header.type);
				sample.header.size = __builtin_bswap16(i == 0 ? 24 : 32);
			} else {
				sample.header.size = i == 0 ? 24 : 32;
			}
			bytes(&pack, &sample, 24);
			if (i)
				word(&pack, 0);
			cr_assert_eq(pack.size - at, i ? 32u : 24u);
		}
		set_file(path, pack.bytes, pack.size);
		cr_assert_eq(perfring_file_open(&data, path), 0, "%u in %u: %s", size, body,
			     data ? perfring_file_fault(data).what : "");
		for (i = 0; i < 3; i++) {
			const struct perf_event_attr *attr = perfring_file_attr(data, i);

			cr_assert_not_null(attr);
			cr_assert_eq((uintptr_t)attr % 8, 0);
			cr_assert_eq(attr->size, size);
			cr_assert_eq(attr->type, PERF_TYPE_SOFTWARE);
			cr_assert(attr->sample_id_all);
			cr_assert_eq(perfring_file_event_id(data, i, 0, &id), 1);
			cr_assert_eq(id, 70 + i);
			if (size > sizeof(*attr))
				cr_assert_eq(((const unsigned char *)attr)[size - 1], 0xee);
		}
		cr_assert_null(perfring_file_attr(data, 3));
		for (i = 0; i < 3; i++) {
			cr_assert_eq(perfring_file_next(data, &item), 1);
			cr_assert_eq(item.time, 5 + i);
			cr_assert_eq(item.format->index, i);
		}
		cr_assert_eq(perfring_file_next(data, &item), 0);
		perfring_file_close(data);
	}
	remove_folder();
}

/* ---- late ---- */

Test(stream, late)
{
	static const uint64_t times[] = {100, 0, 200, 0, 50, 250, 150, 0, 300};
	static const struct {
		uint64_t time;
		bool is_late;
	} expected[] = {{100, false}, {50, true}, {150, false}, {200, false}, {250, false}, {300, false}};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	size_t nr = 0;
	int fd;

	make_folder();
	writer = begin((struct mode){true, false, 0}, &fd);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i])
			write_timed(writer, times[i]);
		else
			cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	}
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while (perfring_file_next(data, &item) == 1) {
		if (!item.time) {
			cr_assert_not(perfring_file_was_late(data));
			continue;
		}
		cr_assert_lt(nr, sizeof(expected) / sizeof(expected[0]));
		cr_assert_eq(item.time, expected[nr].time);
		cr_assert_eq(perfring_file_was_late(data), expected[nr].is_late);
		nr++;
	}
	cr_assert_eq(nr, sizeof(expected) / sizeof(expected[0]));
	cr_assert_eq(perfring_file_late(data), 1);
	perfring_file_close(data);
	remove_folder();
}

/* ---- features ---- */

/* A payload, told by its members: a number of 1, 2, 4, 8 bytes (y h w d), a string (s), bytes with a NUL (z), n bytes
 * (x), tracing data's first ones (m) and byte order (o), an attr (a); at `?` it may end. */
static void build(struct pack *pack, const char *members, bool is_foreign, size_t ends[4])
{
	size_t nr = 0;

	pack->size = 0;
	for (const char *at = members; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		size_t length = strcspn(at, " ") - 1;
		uint64_t number = strtoull(at + 1, NULL, 0);
		char text[64] = "";
		_Alignas(8) unsigned char foreign[64];
		struct perf_event_attr attr = attr_of(TIMED);

		memcpy(text, at + 1, length);
		switch (*at) {
		case 'y':
			bytes(pack, &number, 1);
			break;
		case 'h':
			quarter(pack, is_foreign ? __builtin_bswap16((uint16_t)number) : (uint16_t)number);
			break;
		case 'w':
			half(pack, is_foreign ? __builtin_bswap32((uint32_t)number) : (uint32_t)number);
			break;
		case 'd':
			word(pack, turned(number, is_foreign));
			break;
		case 's':
			half(pack, is_foreign ? __builtin_bswap32(64) : 64);
			bytes(pack, text, 64);
			break;
		case 'z':
			bytes(pack, text, length + 1);
			break;
		case 'x':
			memset(pack->bytes + pack->size, 0xab, number);
			pack->size += number;
			break;
		case 'm':
			bytes(pack, "\x17\x08\x44tracing", 10);
			break;
		case 'o':
			text[0] = is_foreign == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
			bytes(pack, text, 1);
			break;
		case 'a':
			attr.size = 64;
			perfring_attr_to_foreign(&attr, foreign, sizeof(foreign));
			bytes(pack, is_foreign ? (const void *)foreign : &attr, 64);
			break;
		default:
			cr_assert_lt(nr, 4);
			ends[nr++] = pack->size;
			break;
		}
	}
	while (nr < 4)
		ends[nr++] = SIZE_MAX;
}

/* What the walk tells, up to its end, which it returns. */
static int tell(uint32_t feature, const void *payload, size_t size, char *text, size_t room)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	size_t used = 0;
	int one;

	perfring_feature_open(&walk, feature, payload, size, 2);
	while ((one = perfring_layout_next(&walk, &member)) == 1) {
		const char *begin = member.bytes;
		int more;

		cr_assert_lt(used, room);
		cr_assert(!member.size ||
			  (begin >= (const char *)payload && begin + member.size <= (const char *)payload + size));
		if (member.kind == PERFRING_LAYOUT_STRING)
			more = snprintf(text + used, room - used, "%s=\"%s\" ", member.name, begin);
		else if (member.kind == PERFRING_LAYOUT_NUMBER)
			more = snprintf(text + used, room - used, "%s=%llu ", member.name,
					(unsigned long long)member.number);
		else
			more = snprintf(text + used, room - used, "%s[%llu] ", member.name,
					(unsigned long long)member.size);
		used += (size_t)more;
	}
	text[used ? used - 1 : 0] = 0;
	if (one) {
		cr_assert_eq(one, -EBADMSG);
		cr_assert_not_null(walk.fault.what);
		cr_assert(walk.fault.at >= 0 && (uint64_t)walk.fault.at <= size);
		cr_assert_eq(perfring_layout_next(&walk, &member), 0);
	}
	return one;
}

static const struct {
	uint32_t feature;
	const char *name, *members, *told;
} features[] = {
	{1, "TRACING_DATA",
	 "m z0.6 o y8 w4096 zheader_page d3 x3 zheader_event d2 x2 w1 d4 x4 w2 zsched w2 d1 x1 d2 x2 zirq w0 w0 w3 x3 "
	 "? "
	 "d5 x5",
	 "magic[10] version=\"0.6\" big_endian=0 long_size=8 page_size=4096 page=\"header_page\" page_bytes=3 "
	 "header_page[3] event=\"header_event\" event_bytes=2 header_event[2] ftrace=1 bytes=4 format[4] systems=2 "
	 "system=\"sched\" events=2 bytes=1 format[1] bytes=2 format[2] system=\"irq\" events=0 kallsyms_bytes=0 "
	 "kallsyms[0] printk_bytes=3 printk[3] cmdline_bytes=5 cmdline[5]"},
	{2, "BUILD_ID", "? w0 h0x8001 h44 w0xffffffff x20 y20 y0 h0 zkernel. ? w0 h0x8002 h36 w7 x20 y16 y0 h0",
	 "type=0 misc=32769 size=44 pid=4294967295 build_id[20] length=20 reserved=0 reserved=0 file[8] type=0 "
	 "misc=32770 size=36 pid=7 build_id[20] length=16 reserved=0 reserved=0 file[0]"},
	{3, "HOSTNAME", "shost", "hostname=\"host\""},
	{4, "OSRELEASE", "s6.18", "osrelease=\"6.18\""},
	{5, "VERSION", "s6.1.1", "version=\"6.1.1\""},
	{6, "ARCH", "sx86_64", "arch=\"x86_64\""},
	{7, "NRCPUS", "w4 w2", "available=4 online=2"},
	{8, "CPUDESC", "sCPU", "cpudesc=\"CPU\""},
	{9, "CPUID", "sme,1", "cpuid=\"me,1\""},
	{10, "TOTAL_MEM", "d0x100000000", "kilobytes=4294967296"},
	{11, "CMDLINE", "w2 sperf srecord", "count=2 argument=\"perf\" argument=\"record\""},
	{12, "EVENT_DESC", "w2 w64 a w2 scycles d7 d8 a w0 sfaults",
	 "events=2 attr_size=64 attr[64] ids=2 name=\"cycles\" id=7 id=8 attr[64] ids=0 name=\"faults\""},
	{13, "CPU_TOPOLOGY", "w1 s0-1 w2 s0 s1 ? w0 w0 w1 w0 ? w1 s0-1 w3 w4",
	 "core_lists=1 cores=\"0-1\" thread_lists=2 threads=\"0\" threads=\"1\" core=0 socket=0 core=1 socket=0 "
	 "die_lists=1 dies=\"0-1\" die=3 die=4"},
	{14, "NUMA_TOPOLOGY", "w1 w5 d10 d20 s0-1", "nodes=1 node=5 total=10 free=20 cpus=\"0-1\""},
	{15, "BRANCH_STACK", "", ""},
	{16, "PMU_MAPPINGS", "w2 w1 ssoftware w2 stracepoint",
	 "pmus=2 type=1 name=\"software\" type=2 name=\"tracepoint\""},
	{17, "GROUP_DESC", "w1 s{a,b} w0 w2", "groups=1 name=\"{a,b}\" leader=0 members=2"},
	{18, "AUXTRACE", "d2 d100 d48 d0x100000000 d96", "count=2 offset=100 size=48 offset=4294967296 size=96"},
	{19, "STAT", "", ""},
	{20, "CACHE", "w1 w1 w2 w64 w1024 w8 sUnified s512K s0",
	 "version=1 caches=1 level=2 line_size=64 sets=1024 ways=8 type=\"Unified\" size=\"512K\" map=\"0\""},
	{21, "SAMPLE_TIME", "d1000 d2000", "first=1000 last=2000"},
	{22, "MEM_TOPOLOGY", "d1 d4096 d2 d0 d65 d65 d1 d2 d1 d64 d64 d3",
	 "version=1 block_size=4096 nodes=2 node=0 size=65 bits=65 word=1 word=2 node=1 size=64 bits=64 word=3"},
	{23, "CLOCKID", "d1", "resolution=1"},
	{24, "DIR_FORMAT", "d1", "version=1"},
	{25, "BPF_PROG_INFO", "w1 w3 w5 d9 x3 x5", "programs=1 info_bytes=3 data_bytes=5 arrays=9 info[3] data[5]"},
	{26, "BPF_BTF", "w2 w1 w3 x3 w2 w0", "count=2 id=1 bytes=3 btf[3] id=2 bytes=0 btf[0]"},
	{27, "COMPRESSED", "w0 w1 w3 w6 w528384", "version=0 type=1 level=3 ratio=6 mmap_len=528384"},
	{28, "CPU_PMU_CAPS", "w1 sbranches s32", "caps=1 name=\"branches\" value=\"32\""},
	{29, "CLOCK_DATA", "w1 w7 d5 d6", "version=1 clockid=7 wall_clock=5 clock=6"},
	{30, "HYBRID_TOPOLOGY", "w1 scpu_core s0-3", "pmus=1 pmu=\"cpu_core\" cpus=\"0-3\""},
	{31, "PMU_CAPS", "w2 w1 sa sb scpu w0 smsr",
	 "pmus=2 caps=1 name=\"a\" value=\"b\" pmu=\"cpu\" caps=0 pmu=\"msr\""},
	{33, "E_MACHINE", "w62 w0", "e_machine=62 e_flags=0"},
	{34, "CLN_SIZE", "w64", "bytes=64"},
};

Test(stream, features)
{
	static struct pack pack, foreign;
	static char text[4096];

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		uint32_t feature = features[i].feature;
		size_t ends[4], others[4], cut, end;

		cr_assert_str_eq(perfring_feature_name(feature), features[i].name);
		build(&pack, features[i].members, false, ends);
		cr_assert_eq(tell(feature, pack.bytes, pack.size, text, sizeof(text)), 0, "%u", feature);
		cr_assert_str_eq(text, features[i].told);
		build(&foreign, features[i].members, true, others);
		for (cut = 0; cut < pack.size; cut++) {
			unsigned char *exact = malloc(cut + 1);
			int one;

			cr_assert_not_null(exact);
			memcpy(exact + 1, pack.bytes, cut);
			one = tell(feature, exact + 1, cut, text, sizeof(text));
			for (end = 0; end < 4 && ends[end] != cut; end++)
				;
			cr_assert_eq(one, end < 4 ? 0 : -EBADMSG, "%u cut at %zu: %s", feature, cut, text);
			/* half a feature, too, is itself again */
			perfring_feature_swap(feature, exact + 1, cut, 2, true);
			perfring_feature_swap(feature, exact + 1, cut, 2, false);
			cr_assert_eq(memcmp(exact + 1, pack.bytes, cut), 0, "%u cut at %zu", feature, cut);
			free(exact);
		}
		cr_assert_eq(perfring_feature_swap(feature, pack.bytes, pack.size, 2, true), 0);
		cr_assert_eq(memcmp(pack.bytes, foreign.bytes, pack.size), 0, "%u", feature);
		cr_assert_eq(perfring_feature_swap(feature, pack.bytes, pack.size, 2, false), 0);
		build(&foreign, features[i].members, false, others);
		cr_assert_eq(memcmp(pack.bytes, foreign.bytes, pack.size), 0, "%u", feature);
		/* what the layout does not tell */
		if (feature == 2)
			continue;
		memset(pack.bytes + pack.size, 0, 3);
		if (tell(feature, pack.bytes, pack.size + 3, text, sizeof(text)) == 0)
			cr_assert_str_eq(text + strlen(text) - 7, "rest[3]");
	}
}

/* What no layout tells is one member; without a count of CPUs, what goes by it is the rest. */
Test(stream, raw_features)
{
	static const uint32_t numbers[] = {0, 32, 35, 255, 70000};
	static struct pack pack, copy;
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	static char text[4096];
	size_t ends[4];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		cr_assert_eq(tell(numbers[i], "abcde", 5, text, sizeof(text)), 0);
		cr_assert_str_eq(text, numbers[i] == 32 ? "domains[5]" : "bytes[5]");
		cr_assert(numbers[i] == 32 || !perfring_feature_name(numbers[i]));
	}
	build(&pack, "w0 w0 ? w1 w2 w3 w4", false, ends);
	perfring_feature_open(&walk, PERFRING_FEATURE_CPU_TOPOLOGY, pack.bytes, pack.size, 0);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_str_eq(member.name, "rest");
	cr_assert_eq(member.size, 16);
	cr_assert_eq(perfring_layout_next(&walk, &member), 0);
	/* an attr whose size is none, but one in the other order: turned twice it is the same */
	build(&pack, "w1 w64 y0 y0 y0 y0 y0 y0 y0 y64 x56 w0 sname", false, ends);
	build(&copy, "w1 w64 y0 y0 y0 y0 y0 y0 y0 y64 x56 w0 sname", false, ends);
	cr_assert_eq(perfring_feature_swap(PERFRING_FEATURE_EVENT_DESC, pack.bytes, pack.size, 2, true), -EBADMSG);
	cr_assert_eq(perfring_feature_swap(PERFRING_FEATURE_EVENT_DESC, pack.bytes, pack.size, 2, false), -EBADMSG);
	cr_assert_eq(memcmp(pack.bytes, copy.bytes, pack.size), 0);
	/* counts that lie: no more steps than there are bytes */
	build(&pack, "d0xffffffffffffffff d1 d2", false, ends);
	cr_assert_eq(tell(PERFRING_FEATURE_AUXTRACE, pack.bytes, pack.size, text, sizeof(text)), -EBADMSG);
	build(&pack, "w0xffffffff sa sb", false, ends);
	cr_assert_eq(tell(PERFRING_FEATURE_CMDLINE, pack.bytes, pack.size, text, sizeof(text)), -EBADMSG);
}

/* All of them, through files and streams of either order. */
static void put_features(struct perfring_file_writer *writer, struct pack *pack)
{
	size_t ends[4];

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		build(pack, features[i].members, false, ends);
		/* CPU_TOPOLOGY goes by NRCPUS, and the directory's is not for one file */
		if (features[i].feature == 7)
			half_at(pack, 0, 2);
		if (features[i].feature != 24)
			cr_assert_eq(perfring_file_writer_put_feature(writer, features[i].feature, pack->bytes, pack->size), 0);
	}
}

Test(stream, kept_features)
{
	static struct pack pack;
	static char text[4096];
	size_t ends[4];
	int fd, last;

	make_folder();
	/* Before begin, after it, and twice: what a stream has is not in it again. */
	for (int number = 0; number < 12; number++) {
		struct mode mode = {number & 1, number & 2, 0};
		struct perfring_file_writer *writer = create(mode, &fd);
		struct perf_event_attr attr = attr_of(TIMED);
		struct perfring_file *data;
		struct perfring_item item;
		uint64_t before;
		size_t i;

		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
		if (number / 4 != 1)
			put_features(writer, &pack);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		write_timed(writer, 1);
		before = perfring_file_writer_size(writer);
		if (number / 4 != 0)
			put_features(writer, &pack);
		cr_assert_eq(perfring_file_writer_size(writer) > before, mode.is_stream && number / 4 == 1);
		end(writer, fd);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		while ((last = perfring_file_next(data, &item)) == 1)
			;
		cr_assert_eq(last, 0);
		for (i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
			uint32_t feature = features[i].feature;
			uint64_t size;
			const void *payload = perfring_file_feature(data, feature, &size);

			/* EVENT_DESC is the writer's own; BUILD_ID's records have a type in a stream; perf takes no
			 * BPF of another byte order */
			if (feature == 24 || (mode.is_foreign && (feature == 25 || feature == 26)))
				continue;
			/* nor a record of no bytes */
			if (mode.is_stream && !*features[i].members) {
				cr_assert_null(payload);
				continue;
			}
			cr_assert_not_null(payload, "%u in %d", feature, number);
			build(&pack, features[i].members, false, ends);
			if (feature == 7)
				half_at(&pack, 0, 2);
			if (feature == 12) {
				cr_assert_eq(tell(feature, payload, (size_t)size, text, sizeof(text)), 0);
				cr_assert_not_null(strstr(text, "name=\"one\""));
			} else if (feature == 2) {
				cr_assert_eq(size, pack.size);
				cr_assert_eq(memcmp((const char *)payload + 6, pack.bytes + 6, 38), 0);
			} else {
				/* tracing data is padded in a stream */
				cr_assert_leq(pack.size, size);
				cr_assert_lt(size, pack.size + (feature == 1 ? 8 : 1));
				cr_assert_eq(memcmp(payload, pack.bytes, pack.size), 0, "%u in %d", feature, number);
			}
		}
		perfring_file_close(data);
	}
	remove_folder();
}

/* ---- build ids ---- */

struct elf {
	bool is_long, is_foreign;
	struct pack pack;
};

static void put_half(struct elf *elf, uint32_t value)
{
	half(&elf->pack, elf->is_foreign ? __builtin_bswap32(value) : value);
}

static void put_quarter(struct elf *elf, uint16_t value)
{
	quarter(&elf->pack, elf->is_foreign ? __builtin_bswap16(value) : value);
}

/* As wide as an address of its class. */
static void put_wide(struct elf *elf, uint64_t value)
{
	if (elf->is_long)
		word(&elf->pack, turned(value, elf->is_foreign));
	else
		put_half(elf, (uint32_t)value);
}

static void put_segment(struct elf *elf, uint32_t type, uint64_t offset, uint64_t size)
{
	put_half(elf, type);
	if (elf->is_long)
		put_half(elf, 4);
	put_wide(elf, offset);
	put_wide(elf, 0);
	put_wide(elf, 0);
	put_wide(elf, size);
	put_wide(elf, size);
	if (!elf->is_long)
		put_half(elf, 4);
	put_wide(elf, 4);
}

/* Two segments, of which the second has a note of another kind and that of the build id, `length` bytes long. */
static void make_elf(struct elf *elf, bool is_long, bool is_foreign, uint32_t name, uint32_t length)
{
	bool is_big = is_foreign == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	size_t segments = is_long ? 64 : 52, entry = is_long ? 56 : 32, notes = segments + 2 * entry;

	elf->is_long = is_long;
	elf->is_foreign = is_foreign;
	elf->pack.size = 0;
	bytes(&elf->pack,
	      "\x7f"
	      "ELF",
	      4);
	bytes(&elf->pack, is_long ? "\2" : "\1", 1);
	bytes(&elf->pack, is_big ? "\2" : "\1", 1);
	bytes(&elf->pack, "\1\0\0\0\0\0\0\0\0\0", 10);
	put_quarter(elf, 3);
	put_quarter(elf, 62);
	put_half(elf, 1);
	put_wide(elf, 0);
	put_wide(elf, segments);
	put_wide(elf, 0);
	put_half(elf, 0);
	put_quarter(elf, (uint16_t)segments);
	put_quarter(elf, (uint16_t)entry);
	put_quarter(elf, 2);
	put_quarter(elf, 0);
	put_quarter(elf, 0);
	put_quarter(elf, 0);
	cr_assert_eq(elf->pack.size, segments);
	put_segment(elf, 1, 0, 1000);
	put_segment(elf, 4, notes, 12 + 8 + 4 + 12 + 4 + length);
	cr_assert_eq(elf->pack.size, notes);
	put_half(elf, 6);
	put_half(elf, 4);
	put_half(elf, 1);
	bytes(&elf->pack, "Other\0\0\0desc", 12);
	put_half(elf, name);
	put_half(elf, length);
	put_half(elf, 3);
	bytes(&elf->pack, "GNU", 4);
	for (uint32_t i = 0; i < length && i < 64; i++)
		bytes(&elf->pack, (unsigned char[]){(unsigned char)(i + 1)}, 1);
}

Test(stream, build_ids)
{
	static const uint32_t lengths[] = {20, 16, 8, 1, 0, 21, 64, 0xffffffff};
	static const uint32_t names[] = {4, 0, 5, 0xfffffffc, 0xffffffff};
	static struct elf elf;
	uint8_t id[PERFRING_BUILD_ID_SIZE], expected[PERFRING_BUILD_ID_SIZE];
	size_t i, cut;

	make_folder();
	for (i = 0; i < PERFRING_BUILD_ID_SIZE; i++)
		expected[i] = (uint8_t)(i + 1);
	for (int number = 0; number < 4; number++) {
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			bool is_good = lengths[i] && lengths[i] <= 20;

			make_elf(&elf, number & 1, number & 2, 4, lengths[i]);
			set_memory(elf.pack.bytes, elf.pack.size);
			cr_assert_eq(perfring_build_id_of(path, id), is_good ? (int64_t)lengths[i] : -ENODATA);
			if (is_good)
				cr_assert_eq(memcmp(id, expected, lengths[i]), 0);
		}
		for (i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
			make_elf(&elf, number & 1, number & 2, names[i], 20);
			set_memory(elf.pack.bytes, elf.pack.size);
			cr_assert_eq(perfring_build_id_of(path, id), -ENODATA);
		}
		make_elf(&elf, number & 1, number & 2, 4, 20);
		for (cut = 0; cut < elf.pack.size; cut++) {
			int64_t got;

			set_memory(elf.pack.bytes, cut);
			got = perfring_build_id_of(path, id);
			cr_assert(got == -EINVAL || got == -ENODATA, "%zu: %lld", cut, (long long)got);
		}
		/* each byte of header, segments and notes, as wrong as it can be: an answer, and no access outside */
		for (cut = 0; cut < elf.pack.size; cut++) {
			unsigned char good = elf.pack.bytes[cut];
			int64_t got;

			elf.pack.bytes[cut] = 0xff;
			set_memory(elf.pack.bytes, elf.pack.size);
			got = perfring_build_id_of(path, id);
			cr_assert(got == -EINVAL || got == -ENODATA || got == 20, "%zu: %lld", cut, (long long)got);
			elf.pack.bytes[cut] = good;
		}
	}
	cr_assert_eq(perfring_build_id_of("/no/such/file", id), -ENOENT);
	cr_assert_eq(perfring_build_id_of("/dev/null", id), -EINVAL);
	cr_assert_eq(perfring_build_id_of(folder, id), -EINVAL);
	set_memory("#!/bin/sh\n", 10);
	cr_assert_eq(perfring_build_id_of(path, id), -EINVAL);
	remove_folder();
}

/* ---- what is left when a writer is killed ---- */

enum {
	ROUNDS = 3,
	WRITES = 10, /* in each */
};

/* The bytes of a small file that nobody finished; ends[] tells where what came with each write ends. */
static unsigned char *make_killed(struct mode mode, size_t *size, size_t *ends, size_t *count, size_t *front)
{
	struct perfring_file_writer *writer;
	unsigned char *file;
	size_t nr = 0;
	int fd;

	make_folder();
	writer = begin(mode, &fd);
	*front = (size_t)perfring_file_writer_size(writer);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < WRITES; i++) {
			write_timed(writer, round * 100 + 50 - i);
			ends[nr++] = (size_t)perfring_file_writer_size(writer);
		}
		cr_assert_eq(perfring_file_writer_end_round(writer), 0);
		ends[nr++] = (size_t)perfring_file_writer_size(writer);
	}
	perfring_file_writer_close(writer);
	close(fd);
	file = get_file(size);
	remove_folder();
	*count = nr;
	return file;
}

/* Cut at every length: what was written whole is there, and one fault at most is told. */
static void try_killed(struct mode mode, bool is_settled)
{
	size_t size, ends[ROUNDS * (WRITES + 1)], count, front, cut, whole, leading = 0;
	unsigned char *file = make_killed(mode, &size, ends, &count, &front);
	const uint64_t nothing = 0;
	int last;

	if (!mode.is_stream && !is_settled)
		memcpy(file + 48, &nothing, 8);
	/* records about the file itself */
	set_memory(file, front);
	leading = count_items(path, &last);
	if (mode.is_stream || !is_settled)
		cr_assert_eq(last, 0);
	for (cut = 0; cut <= size; cut += stride()) {
		size_t nr;

		set_memory(file, cut);
		nr = count_items(path, &last);
		for (whole = 0; whole < count && ends[whole] <= cut; whole++)
			;
		if (cut >= front)
			cr_assert_eq(nr, whole + leading, "cut at %zu: %zu of %zu", cut, nr, whole + leading);
		else
			cr_assert_leq(nr, leading);
		/* behind a whole record a stream just ends; inside one it is told */
		if (cut < 16)
			cr_assert_eq(last, -EBADMSG);
		else if (mode.is_stream && cut >= front)
			cr_assert_eq(last, cut == front || (whole && ends[whole - 1] == cut) ? 0 : -EBADMSG);
		else if (!mode.is_stream && cut < (leading ? 104 : front))
			cr_assert_eq(last, -EBADMSG);
		else if (!mode.is_stream && cut >= front)
			cr_assert_eq(last, is_settled && cut < ends[count - 1] ? -EBADMSG : 0);
	}
	free(file);
}

Test(stream, killed)
{
	for (int number = 0; number < 8; number++) {
		struct mode mode = {number & 1, number & 2, number & 4 ? 1 : 0};

		if (mode.level && !has_zstd())
			continue;
		try_killed(mode, true);
		if (!mode.is_stream)
			try_killed(mode, false);
	}
}

/* A large one, at random lengths, from long to short: it is cut in place. */
static int compare_lengths(const void *a, const void *b)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

static void try_large(int level)
{
	enum {
		COUNT = 800,
		RECORD = 400
	};
	static size_t ends[COUNT], cuts[10000];
	struct perfring_generator generator;
	struct perfring_file_writer *writer;
	unsigned char record[RECORD];
	struct timed sample;
	unsigned char *file;
	size_t size, front;
	unsigned lengths = trials(10000);
	int fd, last;

	if (IS_SANITIZED)
		lengths /= 10;
	make_folder();
	perfring_generator_seed(&generator, 3);
	writer = begin((struct mode){false, false, level}, &fd);
	front = (size_t)perfring_file_writer_size(writer);
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t at = 0; at < RECORD; at += 8) {
			uint64_t number = perfring_generator_draw(&generator, i % 2 ? 0 : 3);

			memcpy(record + at, &number, 8);
		}
		sample = timed(1 + i);
		sample.header.size = RECORD;
		memcpy(record, &sample, sizeof(sample));
		write_bytes(writer, record, RECORD);
		ends[i] = (size_t)perfring_file_writer_size(writer);
	}
	perfring_file_writer_close(writer);
	close(fd);
	file = get_file(&size);
	remove_folder();
	set_memory(file, size);
	for (unsigned i = 0; i < lengths; i++)
		cuts[i] = front + (size_t)perfring_generator_draw(&generator, size - front + 1);
	qsort(cuts, lengths, sizeof(*cuts), compare_lengths);
	for (unsigned i = 0; i < lengths; i++) {
		size_t cut = cuts[i], low = 0, high = COUNT, nr;

		cr_assert_eq(truncate(path, (off_t)cut), 0);
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (ends[middle] <= cut)
				low = middle + 1;
			else
				high = middle;
		}
		nr = count_items(path, &last);
		/* a write may take two compressed records, of which the second says nothing more */
		cr_assert(nr == low || (level && nr == low + 1), "%zu of %zu, cut at %zu, level %d", nr, low, cut,
			  level);
		cr_assert_eq(last, 0);
	}
	free(file);
}

Test(stream, killed_large)
{
	try_large(0);
	if (has_zstd() && !IS_SANITIZED)
		try_large(1);
}

/* ---- bounds ---- */

/* Opens and reads it, and asks for every feature. */
static int read_whole(const char *name)
{
	struct perfring_item item;
	struct perfring_file *data;
	int last = perfring_file_open(&data, name);

	if (!last) {
		do
			last = perfring_file_next(data, &item);
		while (last == 1);
		for (uint32_t feature = 0; feature < PERFRING_FEATURE_BITS; feature++)
			perfring_file_feature(data, feature, NULL);
	}
	perfring_file_close(data);
	return last;
}

/* A small file in which each word in turn says petabytes, and other sizes that nobody has: with little memory to be had,
 * it is never memory that is wanting. */
static void lie(bool is_foreign, bool is_stream)
{
	static const uint64_t lies[] = {
		UINT64_MAX,        UINT64_MAX / 2, UINT64_C(1) << 50, UINT64_C(1) << 40,
		UINT64_C(1) << 32, 0x7fffffff,     0xffffffff,        UINT64_C(0xffffffff00000000)};
	struct {
		struct perf_event_header header;
		uint64_t size, offset, reference;
		uint32_t index, tid, cpu, reserved;
	} record = {{PERFRING_RECORD_AUXTRACE, 0, 48}, 8, 0, 0, 0, 0, 0, 0};
	struct perf_event_attr attr = attr_of(TIMED | PERFRING_SAMPLE_IDENTIFIER);
	struct perfring_file_writer *writer;
	struct rlimit limit = {0, 0};
	size_t size, ends[4];
	static struct pack pack;
	unsigned char *file;
	int fd, status;
	pid_t child;

	make_folder();
	writer = create((struct mode){is_stream, is_foreign, 0}, &fd);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		build(&pack, features[i].members, false, ends);
		if (features[i].feature != PERFRING_FEATURE_DIR_FORMAT)
			cr_assert_eq(perfring_file_writer_put_feature(writer, features[i].feature, pack.bytes, pack.size), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, "8 bytes ", 8), 0);
	end(writer, fd);
	file = get_file(&size);
	remove_folder();
	set_memory(file, size);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		unsigned long pages = 0;
		FILE *statm = fopen("/proc/self/statm", "r");
		int code = 0;

		if (!statm || fscanf(statm, "%lu", &pages) != 1)
			_exit(2);
		/* what is there, and the blocks of a reader at rest */
		limit.rlim_cur = limit.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16u << 20);
		if (!IS_SANITIZED && setrlimit(RLIMIT_AS, &limit))
			_exit(3);
		for (size_t at = 0; at + 8 <= size && !code; at += is_long() ? 4 : IS_SANITIZED ? 36 : 12)
			for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]) && !code; i++) {
				uint64_t told = turned(lies[i], is_foreign), true_word;

				memcpy(&true_word, file + at, 8);
				memcpy(file + at, &told, 8);
				set_memory(file, size);
				code = read_whole(path) == -ENOMEM ? 4 : 0;
				memcpy(file + at, &true_word, 8);
			}
		_exit(code);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
	free(file);
}

Test(stream, lies)
{
	for (int number = 0; number < 4; number++)
		lie(number & 1, number & 2);
}

/* Features that all lie over one another do not each take the whole of the file. */
Test(stream, one_over_another)
{
	enum {
		SIZE = 1 << 20
	};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	unsigned char *file;
	uint64_t all = 0, one = 0;
	uint32_t feature;
	size_t size, at;
	int fd;

	make_folder();
	writer = begin((struct mode){false, false, 0}, &fd);
	write_timed(writer, 1);
	at = (size_t)perfring_file_writer_size(writer);
	for (feature = 40; feature < PERFRING_FEATURE_BITS; feature++)
		cr_assert_eq(perfring_file_writer_put_feature(writer, feature, "", 0), 0);
	end(writer, fd);
	file = get_file(&size);
	file = realloc(file, SIZE);
	cr_assert_not_null(file);
	memset(file + size, 0, SIZE - size);
	/* EVENT_DESC's comes first */
	for (feature = 40; feature < PERFRING_FEATURE_BITS; feature++) {
		uint64_t section[2] = {0, SIZE};

		memcpy(file + at + 16 + (feature - 40) * 16, section, 16);
	}
	set_file(path, file, SIZE);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	for (feature = 0; feature < PERFRING_FEATURE_BITS; feature++)
		if (perfring_file_feature(data, feature, &one))
			all += one;
	cr_assert_leq(all, (uint64_t)SIZE);
	perfring_file_close(data);
	free(file);
	remove_folder();
}

/* ---- memory ---- */

/* A file in time order, with holes in its large records: it takes little room and is as long as it says.  Some records are
 * small, as most are; `rounds` bytes apart are the ends of rounds, when there are any. */
static void make_long(int fd, uint64_t length, uint64_t rounds, bool is_backward)
{
	struct perf_event_attr attr = attr_of(TIMED);
	struct perfring_file_writer *writer;
	uint64_t at, time = 1, next = rounds, size;
	struct timed few[512];
	static const struct perf_event_header round = {PERFRING_RECORD_FINISHED_ROUND, 0, 8};

	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	at = perfring_file_writer_size(writer);
	perfring_file_writer_close(writer);
	for (size = 0; size < length;) {
		for (size_t i = 0; i < 512; i++)
			few[i] = timed(is_backward ? UINT64_MAX / 2 - time++ : time++);
		few[511].header.size = 65528;
		cr_assert_eq(pwrite(fd, few, sizeof(few), (off_t)(at + size)), (ssize_t)sizeof(few));
		size += sizeof(few) - sizeof(few[0]) + 65528;
		if (rounds && size > next) {
			cr_assert_eq(pwrite(fd, &round, 8, (off_t)(at + size)), 8);
			size += 8;
			next += rounds;
		}
	}
	cr_assert_eq(ftruncate(fd, (off_t)(at + size)), 0);
}

static void try_long(uint64_t length, uint64_t rounds, bool is_backward)
{
	char name[64];
	int fd = memfd_create("long", MFD_CLOEXEC), status;
	pid_t child;

	cr_assert_geq(fd, 0);
	make_long(fd, length, rounds, is_backward);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		struct perfring_item item;
		struct perfring_file *data;
		struct rusage usage;
		uint64_t time = 0;
		int one;

		if (perfring_file_open(&data, name))
			_exit(2);
		while ((one = perfring_file_next(data, &item)) == 1)
			if (item.time && item.time != ++time && !is_backward)
				_exit(3);
		if (one || !perfring_file_late(data) == is_backward || time < length / 200)
			_exit(4);
		getrusage(RUSAGE_SELF, &usage);
		if (getenv("PERFRING_TELL"))
			fprintf(stderr, "%llu bytes, rounds of %llu: %ld kB\n", (unsigned long long)length,
				(unsigned long long)rounds, usage.ru_maxrss);
		perfring_file_close(data);
		_exit(!IS_SANITIZED && usage.ru_maxrss >= 64 * 1024 ? 5 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
	close(fd);
}

/* 1 GB, and 4 GB where there is time for it. */
Test(stream, long_files)
{
	uint64_t length = (uint64_t)trials(IS_SANITIZED ? 100000000 : 1000000000);

	if (soak_seconds() > 4)
		length = UINT64_C(4000000000);
	try_long(length, 0, false);
	try_long(length, 500000, false);
	try_long(length, 50000000, false);
	/* nothing is where it belongs: all that the window holds waits, and each record is a run */
	try_long(length < 1000000000 ? 100000000 : length / 10, 0, true);
}

/* A file that another writes anew while it is read: no record is longer than what was read of it. */
Test(stream, changed)
{
	enum {
		COUNT = 2000,
		RECORD = 1000
	};
	struct perf_event_header longer = {PERF_RECORD_SAMPLE, 2, 65528};
	struct perfring_file_writer *writer;
	static unsigned char record[RECORD];
	struct timed sample = timed(0);
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t front, nr;
	int fd, one;

	make_folder();
	sample.header.size = RECORD;
	memcpy(record, &sample, sizeof(sample));
	writer = begin((struct mode){false, false, 0}, &fd);
	front = perfring_file_writer_size(writer);
	for (nr = 0; nr < COUNT; nr++)
		write_bytes(writer, record, RECORD);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	/* the last piece of the first block was read by then, and the block ends inside a record */
	for (nr = 0; nr < 1000; nr++)
		cr_assert_eq(perfring_file_next(data, &item), 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (nr = 1; nr < COUNT; nr++)
		cr_assert_eq(pwrite(fd, &longer, sizeof(longer), (off_t)(front + nr * RECORD)),
			     (ssize_t)sizeof(longer));
	close(fd);
	for (nr = 1000; (one = perfring_file_next(data, &item)) == 1; nr++)
		cr_assert_eq(item.record->size, RECORD);
	cr_assert_gt(nr, 1000);
	cr_assert_lt(nr, 1100);
	cr_assert_eq(one, -EBADMSG);
	cr_assert_str_eq(perfring_file_fault(data).what, "record changed while it was read");
	perfring_file_close(data);
	remove_folder();
}
