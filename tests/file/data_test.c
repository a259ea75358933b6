/* data_test.c - perf.data files: what is written is read back, what is damaged is told, perf agrees. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/sample.h>
#include "machine.h"
#include "test.h"

TestSuite(data, .timeout = 120);

static char folder[64];
static char path[96];
static char shell[1024];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/data_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void remove_folder(void)
{
	snprintf(shell, sizeof(shell), "rm -rf %s", folder);
	cr_assert_eq(system(shell), 0);
}

/* What a command prints, NUL-terminated; the caller frees it. */
static char *output_of(const char *command, int *status)
{
	size_t used = 0, buffer = 1 << 16, got;
	char *text = malloc(buffer);
	FILE *pipe = popen(command, "r");

	cr_assert_not_null(pipe);
	cr_assert_not_null(text);
	while ((got = fread(text + used, 1, buffer - used - 1, pipe)) > 0) {
		used += got;
		if (used == buffer - 1)
			text = realloc(text, buffer *= 2);
		cr_assert_not_null(text);
	}
	text[used] = 0;
	*status = pclose(pipe);
	return text;
}

static bool has_perf(void)
{
	return !system("perf version >/dev/null 2>&1");
}

#define SIMPLE \
	(PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | \
	 PERFRING_SAMPLE_IDENTIFIER)

static struct perf_event_attr simple_attr(uint64_t sample_type)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 1000000;
	attr.sample_type = sample_type;
	attr.sample_id_all = 1;
	attr.mmap = attr.mmap2 = attr.comm = attr.task = 1;
	return attr;
}

/* A SAMPLE of SIMPLE, as the kernel lays it out. */
struct simple {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

static struct simple simple(uint64_t id, uint64_t time, uint32_t cpu)
{
	struct simple sample = {
		.header = {.type = PERF_RECORD_SAMPLE, .misc = 2, .size = sizeof(sample)},
		.identifier = id,
		.pid = 100,
		.tid = 101,
		.time = time,
		.cpu = cpu,
	};

	return sample;
}

/* A writer with an event of ids 7 and 8 and another of id 9, begun; level 0: not compressed.  NULL: built without libzstd. */
static struct perfring_file_writer *begin_with(int *fd, int level)
{
	struct perf_event_attr attr = simple_attr(SIMPLE);
	struct perfring_file_writer *writer;

	*fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(*fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, *fd), 0);
	if (level && perfring_file_writer_compress(writer, level) == -EOPNOTSUPP) {
		perfring_file_writer_close(writer);
		close(*fd);
		return NULL;
	}
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "my clock"), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 8), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "another"), 1);
	cr_assert_eq(perfring_file_writer_add_id(writer, 1, 9), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static struct perfring_file_writer *begin(int *fd)
{
	return begin_with(fd, 0);
}

static void write_bytes(struct perfring_file_writer *writer, void *bytes, size_t size)
{
	struct iovec piece = {.iov_base = bytes, .iov_len = size};

	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
}

static void write_simple(struct perfring_file_writer *writer, uint64_t id, uint64_t time)
{
	struct simple sample = simple(id, time, 0);

	write_bytes(writer, &sample, sizeof(sample));
}

static void end(struct perfring_file_writer *writer, int fd)
{
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
}

/* The times of all items that have one, in the order they come; -1 for what next said at the end. */
static size_t read_times(uint64_t *times, size_t most, int *last, uint64_t *late)
{
	struct perfring_item item;
	struct perfring_file *data;
	size_t nr = 0;

	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((*last = perfring_file_next(data, &item)) == 1) {
		if (!item.time)
			continue;
		cr_assert_lt(nr, most);
		times[nr++] = item.time;
	}
	*late = perfring_file_late(data);
	perfring_file_close(data);
	return nr;
}

/* The header's place of the attrs' section, and at the end of each entry there the section of its ids. */
Test(data, an_id_is_written_once)
{
	static const uint64_t expected[] = {7, 8}, repeated[] = {7, 7, 8, 7, 8};
	struct perf_event_attr attr = simple_attr(SIMPLE);
	struct perfring_file_writer *writer;
	uint64_t header[5], ids[2], section[2];
	int fd;

	make_folder();
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "first"), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "second"), 1);
	for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++)
		cr_assert_eq(perfring_file_writer_add_id(writer, 0, repeated[i]), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 1, 8), -EEXIST);
	cr_assert_eq(perfring_file_writer_add_id(writer, 1, 0), -EINVAL);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	cr_assert_eq(pread(fd, header, sizeof(header), 0), sizeof(header));
	cr_assert_eq(header[4], 2 * header[2], "two entries of the attrs' size");
	cr_assert_eq(pread(fd, section, sizeof(section), (off_t)(header[3] + header[2] - sizeof(section))),
		     sizeof(section));
	cr_assert_eq(section[1], sizeof(expected));
	cr_assert_eq(pread(fd, ids, sizeof(ids), (off_t)section[0]), sizeof(ids));
	cr_assert_eq(memcmp(ids, expected, sizeof(ids)), 0);
	close(fd);
}

Test(data, states)
{
	struct perf_event_attr attr = simple_attr(SIMPLE);
	struct perfring_file_writer *writer;
	struct perfring_record record = {.type = PERF_RECORD_LOST_SAMPLES};
	struct iovec piece = {.iov_base = &record, .iov_len = 8};
	int fd, pipes[2];

	make_folder();
	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(perfring_file_writer_open(&writer, pipes[1]), -ESPIPE);
	cr_assert_null(writer);
	cr_assert_eq(perfring_file_writer_open(&writer, -1), -EBADF);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), -EINVAL);
	close(fd);

	fd = open(path, O_RDWR);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_finish(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), -EINVAL);
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), -EINVAL);
	cr_assert_eq(perfring_file_writer_end_round(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_put_kernel(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_put_process(writer, -1), -EINVAL);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 1), -EINVAL);
	attr.size = 63;
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "short"), -EINVAL);
	attr.size = sizeof(attr);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "first"), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "second"), 1);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 1), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 1, 1), -EEXIST);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "late"), -EINVAL);
	cr_assert_eq(perfring_file_writer_put(writer, 2, &record), -EINVAL);
	cr_assert_eq(perfring_file_writer_put_feature(writer, 0, "", 0), -EINVAL);
	cr_assert_eq(perfring_file_writer_put_feature(writer, 256, "", 0), -EINVAL);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), -EINVAL);
	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), -EINVAL);
	perfring_file_writer_close(writer);
	close(fd);

	fd = open("/dev/full", O_RDWR);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "first"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), -ENOSPC);
	perfring_file_writer_close(writer);
	close(fd);
	remove_folder();
}

/* Two rings, three rounds: a round's runs follow one another in the file, what is due comes out in time order. */
Test(data, rounds)
{
	static const uint64_t written[] = {10, 30, 50, 20, 40, 45, 0, 60, 80, 48, 55, 70, 0, 90, 75, 95, 0};
	static const uint64_t expected[] = {10, 20, 30, 40, 45, 48, 50, 55, 60, 70, 75, 80, 90, 95};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t times[16], late;
	size_t i, rounds = 0, seen = 0;
	int fd, last;

	make_folder();
	writer = begin(&fd);
	for (i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		if (written[i])
			write_simple(writer, 7 + i % 2, written[i]);
		else
			cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	}
	end(writer, fd);
	cr_assert_eq(read_times(times, 16, &last, &late), 14);
	cr_assert_eq(last, 0);
	cr_assert_eq(late, 0);
	cr_assert_eq(memcmp(times, expected, sizeof(expected)), 0);

	/* a round makes due what the rounds before it held, and no more: 50 was the newest at the first mark */
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		if (item.record->type == PERFRING_RECORD_FINISHED_ROUND) {
			cr_assert_null(item.format);
			cr_assert_eq(item.time, 0);
			cr_assert_eq(seen, rounds == 2 ? 7u : 0u);
			rounds++;
		} else {
			cr_assert_eq(item.format->index, 0);
			cr_assert_eq(((const struct simple *)item.record)->time, item.time);
			seen++;
		}
	}
	cr_assert_eq(rounds, 3);
	cr_assert_eq(seen, 14);
	perfring_file_close(data);
	remove_folder();
}

/* What comes two rounds late is handed out late, and counted. */
Test(data, late)
{
	struct perfring_file_writer *writer;
	uint64_t times[16], late;
	int fd, last;

	make_folder();
	writer = begin(&fd);
	write_simple(writer, 7, 100);
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	write_simple(writer, 7, 200);
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	write_simple(writer, 7, 50);
	write_simple(writer, 7, 150);
	end(writer, fd);
	cr_assert_eq(read_times(times, 16, &last, &late), 4);
	cr_assert_eq(late, 1);
	cr_assert_eq(times[0], 100);
	cr_assert_eq(times[1], 50);
	cr_assert_eq(times[2], 150);
	cr_assert_eq(times[3], 200);
	remove_folder();
}

/* Equal times keep the order of the file; without rounds a small file is sorted as a whole. */
Test(data, whole)
{
	enum {
		COUNT = 5000
	};
	static uint64_t times[COUNT];
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t late, before = 0, seed = 1;
	int64_t place = 0;
	size_t nr = 0;
	int fd, last, i;

	make_folder();
	writer = begin(&fd);
	for (i = 0; i < COUNT; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		write_simple(writer, 7, 1 + (seed >> 40) % 700);
	}
	end(writer, fd);
	cr_assert_eq(read_times(times, COUNT, &last, &late), (size_t)COUNT);
	cr_assert_eq(late, 0);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		cr_assert_geq(item.time, before);
		if (item.time == before)
			cr_assert_gt(perfring_file_position(data), place);
		before = item.time;
		place = perfring_file_position(data);
		nr++;
	}
	cr_assert_eq(last, 0);
	cr_assert_eq(nr, (size_t)COUNT);
	perfring_file_close(data);
	remove_folder();
}

/* More than the window holds, against the order of time: everything comes, late ones are counted, memory is bounded. */
Test(data, window)
{
	enum {
		COUNT = 6000,
		SIZE = 32768
	};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	struct rusage usage;
	struct simple *sample = calloc(1, SIZE);
	size_t nr = 0;
	long most;
	int fd, last, i;

	make_folder();
	writer = begin(&fd);
	for (i = 0; i < COUNT; i++) {
		*sample = simple(8, (uint64_t)(COUNT - i), 0);
		sample->header.size = SIZE;
		write_bytes(writer, sample, SIZE);
	}
	end(writer, fd);
	getrusage(RUSAGE_SELF, &usage);
	most = usage.ru_maxrss + 180 * 1024;
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1)
		nr++;
	cr_assert_eq(last, 0);
	cr_assert_eq(nr, (size_t)COUNT);
	cr_assert_gt(perfring_file_late(data), 0);
	getrusage(RUSAGE_SELF, &usage);
	cr_assert_lt(usage.ru_maxrss, most);
	perfring_file_close(data);
	free(sample);
	remove_folder();
}

/* Rounds of rings of 20 MiB, as with stack copies: each ring begins anew in time, and nothing is late. */
Test(data, large_rounds)
{
	enum {
		ROUNDS = 3,
		RINGS = 2,
		COUNT = 640,
		SIZE = 32768
	};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	struct simple *sample = calloc(1, SIZE);
	uint64_t time = 0;
	size_t nr = 0;
	int fd, last;

	make_folder();
	writer = begin(&fd);
	for (int round = 0; round < ROUNDS; round++) {
		for (int ring = 0; ring < RINGS; ring++)
			for (int i = 0; i < COUNT; i++) {
				*sample = simple(8, (uint64_t)(1 + (round * COUNT + i) * RINGS + ring), 0);
				sample->header.size = SIZE;
				write_bytes(writer, sample, SIZE);
			}
		cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	}
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		if (item.record->type != PERF_RECORD_SAMPLE)
			continue; /* the rounds themselves */
		nr++;
		time++;
		cr_assert_eq(item.time, time);
	}
	cr_assert_eq(last, 0);
	cr_assert_eq(nr, (size_t)ROUNDS * RINGS * COUNT);
	cr_assert_eq(perfring_file_late(data), 0);
	perfring_file_close(data);
	free(sample);
	remove_folder();
}

Test(data, events)
{
	static const uint64_t types[] = {SIMPLE, PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TIME,
					 PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TIME |
						 PERFRING_SAMPLE_PERIOD};
	struct {
		struct perf_event_header header;
		uint64_t id, time;
	} second = {{PERF_RECORD_SAMPLE, 0, 24}, 21, 20};
	struct {
		struct perf_event_header header;
		uint64_t id, ip, time, period;
	} third = {{PERF_RECORD_SAMPLE, 0, 40}, 31, 0x1234, 30, 9};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	struct perf_event_attr attr;
	char name[300];
	int fd, i;

	make_folder();
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	fd = open(path, O_RDWR | O_CREAT, 0600);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	for (i = 0; i < 3; i++) {
		attr = simple_attr(types[i]);
		attr.config = (unsigned)i;
		if (i == 1)
			attr.sample_regs_intr = 1; /* needs an attr of 104 bytes */
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, i == 2 ? name : "short"), i);
		cr_assert_eq(perfring_file_writer_add_id(writer, (uint32_t)i, 11 + (uint64_t)i * 10), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	write_bytes(writer, &third, sizeof(third));
	write_bytes(writer, &second, sizeof(second));
	write_simple(writer, 11, 10);
	cr_assert_eq(perfring_file_writer_size(writer), 104u + 3 * 8 + 3 * (104 + 16) + 40 + 24 + sizeof(struct simple));
	end(writer, fd);

	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert(perfring_file_is_finished(data));
	cr_assert_eq(perfring_format_set_count(perfring_file_formats(data)), 3);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.format->index, (uint32_t)i);
		cr_assert_eq(item.format->sample_type, types[i]);
		cr_assert_eq(item.time, (uint64_t)(i + 1) * 10);
		cr_assert_eq(perfring_file_attr(data, (uint32_t)i)->sample_type, types[i]);
		cr_assert_eq(perfring_file_attr(data, (uint32_t)i)->config, (uint64_t)i);
		cr_assert_eq(perfring_file_attr(data, (uint32_t)i)->size, 104);
	}
	cr_assert_eq(perfring_file_attr(data, 1)->sample_regs_intr, 1);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	cr_assert_str_eq(perfring_file_event_name(data, 0), "short");
	cr_assert_str_eq(perfring_file_event_name(data, 2), name);
	cr_assert_null(perfring_file_event_name(data, 3));
	cr_assert_null(perfring_file_attr(data, 3));
	perfring_file_close(data);
	remove_folder();
}

Test(data, kinds)
{
	struct perfring_file_writer *writer;
	struct perfring_record record, decoded;
	struct perfring_file *data;
	struct perfring_item item;
	char name[4096];
	int fd;

	make_folder();
	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[4095] = 0;
	writer = begin(&fd);
	memset(&record, 0, sizeof(record));
	record.type = PERF_RECORD_MMAP2;
	record.misc = PERFRING_RECORD_MISC_USER;
	record.trailer.time = 5;
	record.trailer.identifier = 8;
	record.is.mmap2.pid = 3;
	record.is.mmap2.tid = 4;
	record.is.mmap2.addr = 0x7f0000000000;
	record.is.mmap2.file.maj = 8;
	record.is.mmap2.file.ino = 99;
	record.is.mmap2.prot = 5;
	record.is.mmap2.filename.data = name;
	record.is.mmap2.filename.size = 4095;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
	memset(&record, 0, sizeof(record));
	record.type = PERF_RECORD_COMM;
	record.misc = PERFRING_RECORD_MISC_COMM_EXEC;
	record.trailer.time = 4;
	record.trailer.identifier = 7;
	record.is.comm.pid = 1;
	record.is.comm.comm.data = "a b\nc";
	record.is.comm.comm.size = 5;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
	memset(&record, 0, sizeof(record));
	record.type = PERF_RECORD_FORK;
	record.trailer.time = 3;
	record.trailer.identifier = 7;
	record.is.fork.ppid = 77;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
	memset(&record, 0, sizeof(record));
	record.type = PERF_RECORD_LOST;
	record.trailer.identifier = 7; /* no time: comes at once */
	record.is.lost.lost = 12;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_FINISHED_INIT;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), 0);
	record.type = PERF_RECORD_SAMPLE;
	cr_assert_eq(perfring_file_writer_put(writer, 0, &record), -EINVAL);
	end(writer, fd);

	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(perfring_record_decode(item.format, item.record, &decoded, NULL), 0);
	cr_assert_eq(decoded.type, PERF_RECORD_LOST);
	cr_assert_eq(decoded.is.lost.lost, 12);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.record->type, PERFRING_RECORD_FINISHED_INIT);
	cr_assert_eq(item.record->size, 8);
	cr_assert_null(item.format);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 3);
	cr_assert_eq(perfring_record_decode(item.format, item.record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.fork.ppid, 77);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 4);
	cr_assert_eq(perfring_record_decode(item.format, item.record, &decoded, NULL), 0);
	cr_assert_eq(decoded.misc, PERFRING_RECORD_MISC_COMM_EXEC);
	cr_assert_eq(decoded.is.comm.comm.size, 5);
	cr_assert_eq(memcmp(decoded.is.comm.comm.data, "a b\nc", 6), 0);
	cr_assert_eq(decoded.trailer.identifier, 7);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 5);
	cr_assert_eq(perfring_record_decode(item.format, item.record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.mmap2.filename.size, 4095);
	cr_assert_eq(memcmp(decoded.is.mmap2.filename.data, name, 4096), 0);
	cr_assert_eq(decoded.is.mmap2.file.ino, 99);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	perfring_file_close(data);
	remove_folder();
}

/* Records of odd size, and bytes behind records that are in no record's size. */
Test(data, crooked)
{
	static unsigned char odd[84] = {PERFRING_RECORD_HEADER_FEATURE, 0, 0, 0, 0, 0, 84};
	static unsigned char tracing[16 + 40] = {PERFRING_RECORD_HEADER_TRACING_DATA, 0, 0, 0, 0, 0, 16, 0, 40};
	static unsigned char auxtrace[48 + 8] = {PERFRING_RECORD_AUXTRACE, 0, 0, 0, 0, 0, 48, 0, 8};
	static unsigned char unknown[24] = {200, 1, 0, 0, 0, 0, 24};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	size_t user = 0;
	uint64_t time = 0;
	int fd, last, i;

	make_folder();
	/* bytes behind a record look like a record of size 0, were they taken for one */
	writer = begin(&fd);
	for (i = 0; i < 30000; i++) {
		write_bytes(writer, odd, i % 3 ? sizeof(odd) : 0);
		write_simple(writer, 7, (uint64_t)i + 1);
	}
	write_bytes(writer, tracing, sizeof(tracing));
	write_bytes(writer, auxtrace, sizeof(auxtrace));
	write_bytes(writer, unknown, sizeof(unknown));
	write_simple(writer, 7, 30001);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		cr_assert_eq((uintptr_t)item.record % 8, 0);
		if (!item.time) {
			cr_assert_geq(item.record->type, 64);
			user++;
			continue;
		}
		cr_assert_eq(item.time, ++time);
		cr_assert_eq(((const struct simple *)item.record)->tid, 101);
	}
	cr_assert_eq(last, 0);
	cr_assert_eq(time, 30001);
	cr_assert_eq(user, 20000u + 3);
	perfring_file_close(data);
	remove_folder();
}

Test(data, features)
{
	char *const argv[] = {(char *)(uintptr_t) "perfring", (char *)(uintptr_t) "record", NULL};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct utsname system;
	const uint64_t *words;
	const char *text;
	uint64_t size;
	uint32_t count;
	int fd;

	make_folder();
	writer = begin(&fd);
	cr_assert_eq(perfring_file_writer_describe(writer, argv), 0);
	cr_assert_eq(perfring_file_writer_put_times(writer, 5, 6), 0);
	cr_assert_eq(perfring_file_writer_put_times(writer, 11, 22), 0);
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_VERSION, ""), 0);
	cr_assert_eq(perfring_file_writer_put_feature(writer, 200, "abc", 3), 0);
	cr_assert_eq(perfring_file_writer_put_feature(writer, 255, NULL, 0), 0);
	end(writer, fd);

	cr_assert_eq(uname(&system), 0);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_str_eq(perfring_file_event_name(data, 0), "my clock");
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), system.nodename);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_OSRELEASE), system.release);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_ARCH), system.machine);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_VERSION), "");
	cr_assert_null(perfring_file_string(data, PERFRING_FEATURE_AUXTRACE));
	cr_assert_null(perfring_file_string(data, 200));
	words = perfring_file_feature(data, PERFRING_FEATURE_SAMPLE_TIME, &size);
	cr_assert_eq(size, 16);
	cr_assert_eq(words[0], 11);
	cr_assert_eq(words[1], 22);
	text = perfring_file_feature(data, PERFRING_FEATURE_CMDLINE, &size);
	cr_assert_eq(size, 4u + 2 * (4 + 64));
	memcpy(&count, text, 4);
	cr_assert_eq(count, 2);
	cr_assert_str_eq(text + 8, "perfring");
	cr_assert_eq(memcmp(perfring_file_feature(data, 200, &size), "abc", 3), 0);
	cr_assert_eq(size, 3);
	cr_assert_not_null(perfring_file_feature(data, 255, &size));
	cr_assert_eq(size, 0);
	cr_assert_null(perfring_file_feature(data, 199, &size));
	cr_assert_null(perfring_file_feature(data, 256, &size));
	perfring_file_close(data);
	remove_folder();
}

static void set_file(const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

static size_t get_file(unsigned char *bytes, size_t buffer)
{
	int fd = open(path, O_RDONLY);
	ssize_t got = read(fd, bytes, buffer);

	close(fd);
	cr_assert_gt(got, 0);
	cr_assert_lt((size_t)got, buffer);
	return (size_t)got;
}

/* A small finished file; ends[] tells where each of its records ends. */
static size_t small_file(unsigned char *bytes, size_t buffer, size_t *ends, size_t *records)
{
	struct perfring_file_writer *writer;
	int fd, i;

	writer = begin(&fd);
	*records = 0;
	for (i = 0; i < 6; i++) {
		write_simple(writer, 7, 100 - (uint64_t)i);
		ends[(*records)++] = perfring_file_writer_size(writer);
		if (i % 2) {
			cr_assert_eq(perfring_file_writer_end_round(writer), 0);
			ends[(*records)++] = perfring_file_writer_size(writer);
		}
	}
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "host"), 0);
	end(writer, fd);
	return get_file(bytes, buffer);
}

/* Reads the file to its end: how many items, and how it ended. */
static size_t read_all(int *last)
{
	struct perfring_item item;
	struct perfring_file *data;
	size_t nr = 0;

	*last = perfring_file_open(&data, path);
	while (!*last && (*last = perfring_file_next(data, &item)) == 1) {
		nr++;
		*last = 0;
	}
	if (*last == -EBADMSG) {
		cr_assert_not_null(perfring_file_fault(data).what);
		if (perfring_file_attr(data, 0) && perfring_file_next(data, &item) == 1)
			nr += 1000000; /* the fault must come again */
	}
	perfring_file_close(data);
	return nr;
}

Test(data, truncated)
{
	static unsigned char bytes[8192];
	size_t ends[16], records, size, cut, whole, start;
	struct perfring_file *data;
	int last;

	make_folder();
	size = small_file(bytes, sizeof(bytes), ends, &records);
	start = ends[0] - sizeof(struct simple);
	for (cut = 0; cut <= size; cut++) {
		size_t nr;

		set_file(bytes, cut);
		nr = read_all(&last);
		for (whole = 0; whole < records && ends[whole] <= cut; whole++)
			;
		cr_assert_eq(nr, whole, "cut at %zu: %zu of %zu", cut, nr, whole);
		if (cut < start)
			cr_assert_eq(last, -EBADMSG);
		else
			cr_assert_eq(last, cut < ends[records - 1] ? -EBADMSG : 0);
		if (cut < ends[records - 1])
			continue;
		/* the features are the file's last bytes */
		cr_assert_eq(perfring_file_open(&data, path), 0);
		cr_assert_eq(perfring_file_lost_features(data) > 0, cut < size, "cut at %zu of %zu", cut, size);
		perfring_file_close(data);
	}
	/* the same, as a killed writer leaves it: no error wherever it is cut */
	memset(bytes + 48, 0, 8);
	for (cut = start; cut <= ends[records - 1]; cut++) {
		set_file(bytes, cut);
		for (whole = 0; whole < records && ends[whole] <= cut; whole++)
			;
		cr_assert_eq(read_all(&last), whole);
		cr_assert_eq(last, 0);
	}
	remove_folder();
}

/* Every byte of the file, every bit pattern that tends to hurt: it ends, and what it says is an error of ours. */
Test(data, corrupt)
{
	static const unsigned char values[] = {0, 1, 7, 8, 16, 0x7f, 0x80, 0xff};
	static unsigned char bytes[8192];
	size_t ends[16], records, size, at, i;
	int last;

	make_folder();
	size = small_file(bytes, sizeof(bytes), ends, &records);
	for (at = 0; at < size; at += stride()) {
		unsigned char good = bytes[at];

		for (i = 0; i < sizeof(values); i++) {
			struct perfring_file *data;
			struct perfring_item item;
			uint32_t bit;
			size_t nr = 0;

			bytes[at] = values[i];
			set_file(bytes, size);
			last = perfring_file_open(&data, path);
			cr_assert_not_null(data);
			if (!last) {
				for (bit = 0; bit < PERFRING_FEATURE_BITS; bit++)
					perfring_file_string(data, bit);
				for (bit = 0; perfring_file_event_name(data, bit); bit++)
					cr_assert_lt(strlen(perfring_file_event_name(data, bit)), size);
				do
					last = perfring_file_next(data, &item);
				while ((last == 1 || last == -EBADMSG) && ++nr < 100);
			}
			cr_assert(last == 0 || last == -EBADMSG || last == -EOPNOTSUPP || last == -EINVAL, "%d at %zu",
				  last, at);
			cr_assert_leq(nr, 100u);
			perfring_file_close(data);
		}
		bytes[at] = good;
	}
	remove_folder();
}

/* What the records' sizes lie about. */
Test(data, faults)
{
	static unsigned char zeros[8];
	static unsigned char compressed[2][24] = {{PERFRING_RECORD_COMPRESSED, 0, 0, 0, 0, 0, 24},
						  {PERFRING_RECORD_COMPRESSED2, 0, 0, 0, 0, 0, 24}};
	uint64_t inside[2] = {8, 9}; /* bytes that the second says it has: as many as there are, and one more */
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	static unsigned char bytes[8192];
	uint64_t more;
	size_t size;
	int64_t at;
	int fd, i;

	make_folder();
	writer = begin(&fd);
	write_simple(writer, 7, 2);
	write_simple(writer, 7, 1);
	at = (int64_t)perfring_file_writer_size(writer);
	write_bytes(writer, zeros, sizeof(zeros));
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 1);
	cr_assert_eq(perfring_file_position(data), at - (int64_t)sizeof(struct simple));
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 2);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
		cr_assert_eq(perfring_file_fault(data).at, at);
		cr_assert_str_eq(perfring_file_fault(data).what, "record shorter than its header");
	}
	perfring_file_close(data);

	/* an id of no event is told in its turn, and reading goes on */
	writer = begin(&fd);
	write_simple(writer, 7, 2);
	at = (int64_t)perfring_file_writer_size(writer);
	write_simple(writer, 999, 3);
	write_simple(writer, 8, 1);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
	cr_assert_null(item.format);
	cr_assert_eq(((const struct simple *)item.record)->identifier, 999);
	cr_assert_eq(perfring_file_position(data), at);
	cr_assert_geq(perfring_file_fault(data).at, at);
	cr_assert_lt(perfring_file_fault(data).at, at + (int64_t)sizeof(struct simple));
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 1);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(item.time, 2);
	cr_assert_eq(perfring_file_next(data, &item), 0);
	perfring_file_close(data);

	/* a header that promises more than there is */
	size = get_file(bytes, sizeof(bytes));
	memcpy(&more, bytes + 48, 8);
	more += 1000000;
	memcpy(bytes + 48, &more, 8);
	size = (size_t)at;
	set_file(bytes, size);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_next(data, &item), 1);
	cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
	cr_assert_eq(strncmp(perfring_file_fault(data).what, "file ends inside", 16), 0);
	cr_assert_eq(perfring_file_fault(data).at, at);
	perfring_file_close(data);

	/* no zstd, or no zstd in the library */
	for (i = 0; i < 3; i++) {
		int error;

		memcpy(&compressed[1][8], &inside[i == 2], 8);
		writer = begin(&fd);
		write_simple(writer, 7, 2);
		write_bytes(writer, compressed[i > 0], sizeof(compressed[0]));
		end(writer, fd);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		error = perfring_file_next(data, &item);
		cr_assert(error == -EBADMSG || (error == -EOPNOTSUPP && i < 2));
		cr_assert_not_null(strstr(perfring_file_fault(data).what, "compressed"));
		/* what is damaged is told once */
		cr_assert_eq(perfring_file_next(data, &item), error == -EBADMSG ? 0 : error);
		perfring_file_close(data);
	}
	remove_folder();
}

static void expect_open(const void *bytes, size_t size, int error, const char *word)
{
	struct perfring_file *data;

	set_file(bytes, size);
	cr_assert_eq(perfring_file_open(&data, path), error);
	cr_assert_not_null(data);
	cr_assert_not_null(strstr(perfring_file_fault(data).what, word), "%s: %s", word,
			   perfring_file_fault(data).what);
	perfring_file_close(data);
}

Test(data, unknown_ids)
{
	static const unsigned char stream[] = "PERFILE2\x10\0\0\0\0\0\0\0@\0\0";
	struct perfring_file *data;
	struct perfring_item item;
	unsigned char zeros[200] = {0};

	make_folder();
	/* a stream that ends inside its first header */
	set_file(stream, sizeof(stream) - 1);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert(perfring_file_is_pipe(data));
	cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
	cr_assert_str_eq(perfring_file_fault(data).what, "file ends inside its records");
	cr_assert_eq(perfring_file_fault(data).at, 16);
	perfring_file_close(data);
	expect_open("2ELIFREPabcdefgh", 16, -EBADMSG, "inside the header");
	expect_open("PERFFILEabcdefgh", 16, -EBADMSG, "not a perf.data");
	expect_open("", 0, -EBADMSG, "not a perf.data");
	expect_open("PERF", 4, -EBADMSG, "not a perf.data");
	expect_open(zeros, sizeof(zeros), -EBADMSG, "not a perf.data");
	cr_assert_eq(perfring_file_open(&data, folder), -EBADMSG);
	cr_assert_not_null(strstr(perfring_file_fault(data).what, "directory"));
	perfring_file_close(data);
	cr_assert_eq(perfring_file_open(&data, "/dev/null"), -EBADMSG);
	cr_assert_str_eq(perfring_file_fault(data).what, "stream ends inside the header");
	perfring_file_close(data);
	cr_assert_eq(perfring_file_open(&data, "/no/such/file"), -ENOENT);
	perfring_file_close(data);
	perfring_file_close(NULL);
	perfring_file_writer_close(NULL);
	remove_folder();
}

/* attrs newer and longer than any we know; ids in the last 16 bytes of the entry, wherever attr.size ends. */
Test(data, attrs)
{
	static unsigned char bytes[8192];
	struct perf_event_attr attr = simple_attr(SIMPLE);
	uint64_t words[13] = {0};
	struct perfring_file *data;
	struct perfring_item item;
	struct simple sample = simple(0x77, 5, 0);
	static const uint32_t sizes[] = {64, 72, 144, 152, 1000};
	size_t i;

	make_folder();
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t entry = 1000 + 16, ids[3] = {0x77, 104, 8};

		memset(bytes, 0xee, sizeof(bytes));
		memcpy(words, "PERFILE2", 8);
		words[1] = 104;
		words[2] = entry;
		words[3] = 112;
		words[4] = entry;
		words[5] = 112 + entry;
		words[6] = sizeof(sample);
		memcpy(bytes, words, 104);
		memcpy(bytes + 104, ids, 8);
		attr.size = sizes[i];
		memcpy(bytes + 112, &attr, sizes[i] < sizeof(attr) ? sizes[i] : sizeof(attr));
		memcpy(bytes + 112 + 1000, ids + 1, 16);
		memcpy(bytes + 112 + entry, &sample, sizeof(sample));
		set_file(bytes, 112 + entry + sizeof(sample));
		cr_assert_eq(perfring_file_open(&data, path), 0);
		cr_assert_eq(perfring_file_attr(data, 0)->size, sizes[i]);
		cr_assert_str_eq(perfring_file_event_name(data, 0), "cpu-clock:HG");
		cr_assert_not_null(perfring_format_set_find(perfring_file_formats(data), 0x77));
		if (sizes[i] == 1000)
			cr_assert_eq(((const unsigned char *)perfring_file_attr(data, 0))[999], 0xee);
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.time, 5);
		cr_assert_eq(perfring_file_next(data, &item), 0);
		perfring_file_close(data);
	}
	remove_folder();
}

Test(data, killed)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t words[2], settled, nr;
	int fd, i, last;

	make_folder();
	set_file("what was there before is longer than what comes, and looks like nothing", 71);
	writer = begin(&fd);
	for (i = 0; i < 10; i++)
		write_simple(writer, 7, (uint64_t)i + 1);
	cr_assert_eq(perfring_file_writer_put_times(writer, 1, 10), 0);
	perfring_file_writer_close(writer);
	close(fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_not(perfring_file_is_finished(data));
	cr_assert_null(perfring_file_feature(data, PERFRING_FEATURE_SAMPLE_TIME, NULL));
	cr_assert_str_eq(perfring_file_event_name(data, 0), "cpu-clock:HG");
	for (i = 0; i < 10; i++) {
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.time, (uint64_t)i + 1);
	}
	cr_assert_eq(perfring_file_next(data, &item), 0);
	perfring_file_close(data);

	/* killed behind a round: the header has settled that much, for perf, and what follows is read as well */
	writer = begin(&fd);
	for (i = 0; i < 6; i++)
		write_simple(writer, 7, (uint64_t)i + 1);
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	settled = perfring_file_writer_size(writer);
	for (i = 6; i < 9; i++)
		write_simple(writer, 7, (uint64_t)i + 1);
	perfring_file_writer_close(writer);
	cr_assert_eq(pread(fd, &words, sizeof(words), 40), (ssize_t)sizeof(words));
	cr_assert_eq(words[0] + words[1], settled);
	cr_assert_eq(pwrite(fd, "half a record", 13, (off_t)(settled + 3 * (settled - words[0] - 8) / 6)), 13);
	close(fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_not(perfring_file_is_finished(data));
	for (nr = 0; (last = perfring_file_next(data, &item)) == 1;)
		if (item.record->type == PERF_RECORD_SAMPLE)
			cr_assert_eq(item.time, ++nr);
	cr_assert_eq(last, 0);
	cr_assert_eq(nr, 9);
	perfring_file_close(data);

	/* damage inside what was settled is damage */
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\0\0", 2, (off_t)words[0] + 6), 2);
	close(fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_next(data, &item), -EBADMSG);
	cr_assert_eq(perfring_file_fault(data).at, (int64_t)words[0]);
	perfring_file_close(data);

	/* nothing recorded, but finished */
	writer = begin(&fd);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert(perfring_file_is_finished(data));
	cr_assert_str_eq(perfring_file_event_name(data, 0), "my clock");
	perfring_file_close(data);
	remove_folder();
}

/* Writes until there is no space, and a little more. */
static void fill_up(int error)
{
	static const unsigned char large[100000];
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	struct simple samples[3];
	struct iovec pieces[2] = {{&samples[0], sizeof(samples[0])}, {&samples[1], 2 * sizeof(samples[0])}};
	uint64_t written = 0, late = 0, size;
	int fd, last, i;

	writer = begin(&fd);
	for (;;) {
		for (i = 0; i < 3; i++)
			samples[i] = simple(7, written + (uint64_t)i + 1, 0);
		last = perfring_file_writer_write(writer, pieces, 2);
		if (last)
			break;
		written += 3;
		cr_assert_lt(written, 1000000);
	}
	cr_assert_eq(last, error);
	size = perfring_file_writer_size(writer);
	cr_assert_eq(lseek(fd, 0, SEEK_END), (off_t)size);
	cr_assert_eq(perfring_file_writer_write(writer, pieces, 2), error);
	cr_assert_eq(lseek(fd, 0, SEEK_END), (off_t)size);
	cr_assert_eq(perfring_file_writer_put_feature(writer, 99, large, sizeof(large)), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), error);
	perfring_file_writer_close(writer);
	close(fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_not(perfring_file_is_finished(data), "the features are missing, and it says so");
	while ((last = perfring_file_next(data, &item)) == 1)
		cr_assert_eq(item.time, ++late);
	cr_assert_eq(last, 0);
	cr_assert_eq(late, written);
	perfring_file_close(data);
}

Test(data, limit)
{
	struct rlimit limit = {50001, 50001};

	make_folder();
	signal(SIGXFSZ, SIG_IGN);
	limit.rlim_max = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill_up(-EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	remove_folder();
}

/* A write that failed leaves nothing behind; what comes after it is whole. */
Test(data, resumed)
{
	struct rlimit limit = {50001, RLIM_INFINITY};
	struct perfring_file_writer *writer;
	static char many[50000];
	struct iovec piece = {.iov_base = many, .iov_len = sizeof(many)};
	uint64_t times[4], late;
	int fd, last;

	make_folder();
	signal(SIGXFSZ, SIG_IGN);
	writer = begin(&fd);
	write_simple(writer, 7, 1);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), -EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	write_simple(writer, 9, 2);
	end(writer, fd);
	cr_assert_eq(read_times(times, 4, &last, &late), 2);
	cr_assert_eq(last, 0);
	cr_assert_eq(times[0], 1);
	cr_assert_eq(times[1], 2);
	remove_folder();
}

Test(data, full)
{
	char place[96];

	make_folder();
	snprintf(place, sizeof(place), "%s/tiny", folder);
	cr_assert_eq(mkdir(place, 0700), 0);
	if (mount("tmpfs", place, "tmpfs", 0, "size=64k")) {
		remove_folder();
		cr_skip_test("SKIP-ENV: mount: a tmpfs of 64k needs root");
	}
	snprintf(path, sizeof(path), "%.80s/file", place);
	fill_up(-ENOSPC);
	cr_assert_eq(umount(place), 0);
	remove_folder();
}

/* ---- beside perf ---- */

#define QUIETLY "2>&1 >/dev/null"

/* Records with perf into path; the workload makes processes, mappings and samples.  Few samples a
 * second, and a short workload: with -a the machine's other work is recorded, and slowed down, as well. */
static void record_with_perf(const char *options)
{
	char *said;
	int status;

	snprintf(shell, sizeof(shell),
		 "perf record %s -o %s -- sh -c 'for i in /linux /linux /linux /linux \"\"; do /bin/ls -lR "
		 "/usr/include$i >/dev/null; done' 2>&1",
		 options, path);
	said = output_of(shell, &status);
	if (status && strstr(said, "perf_event_paranoid")) {
		free(said);
		remove_folder();
		cr_skip_test("SKIP-ENV: perf record %s: refused: needs CAP_PERFMON or perf_event_paranoid below 1",
			     options);
	}
	/* what reaches its --max-size ends its workload, and itself as that */
	cr_assert(status == 0 || strstr(said, "size limit reached"), "%d: %s", status, said);
	free(said);
}

/* Ours against `perf report --stats`, kind by kind. */
static void compare_stats(void)
{
	unsigned long counts[PERFRING_RECORD_FINISHED_INIT + 1] = {0}, total = 0, told = 0, late = 0;
	char kind[64], *text, *whole, *line, *next;
	struct perfring_file *data;
	struct perfring_item item;
	unsigned long count;
	int status, last, kinds = 0;
	uint32_t type;

	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		cr_assert_lt(item.record->type, sizeof(counts) / sizeof(counts[0]));
		counts[item.record->type]++;
		total++;
	}
	cr_assert_eq(last, 0);
	/* On a busy machine some come too late for perf as well. */
	if (perfring_file_late(data)) {
		snprintf(shell, sizeof(shell), "perf report --stdio -i %s 2>&1 | sed -n 's/ out of order events.*//p'",
			 path);
		text = output_of(shell, &status);
		late = strtoul(text, NULL, 10);
		free(text);
	}
	cr_assert_eq(perfring_file_late(data), late);
	perfring_file_close(data);
	snprintf(shell, sizeof(shell), "perf report --stats -i %s 2>/dev/null", path);
	text = output_of(shell, &status);
	cr_assert_eq(status, 0);
	whole = strdup(text);
	for (line = text; (next = strchr(line, '\n')); line = next + 1) {
		*next = 0;
		if (strstr(line, " stats:") && kinds)
			break;
		if (sscanf(line, " %63s events: %lu", kind, &count) != 2)
			continue;
		if (!strcmp(kind, "TOTAL")) {
			told = count;
			continue;
		}
		for (type = 0; type < sizeof(counts) / sizeof(counts[0]); type++)
			if (perfring_record_name(type) && !strcmp(perfring_record_name(type), kind))
				cr_assert_eq(counts[type], count, "%s: %lu, perf %lu", kind, counts[type], count);
		kinds++;
	}
	cr_assert_gt(kinds, 5, "%s: %s", shell, whole);
	cr_assert_eq(told, total);
	free(whole);
	free(text);
}

Test(data, of_perf)
{
	if (!has_perf())
		cr_skip_test("SKIP-ENV: perf: not installed");
	make_folder();
	record_with_perf("-e cpu-clock -F 999 -g");
	compare_stats();
	/* Bounded: all processes are recorded, and perf's own reading of them takes as long as there are many.  Clocks alone:
	 * samples of switches and page faults of all CPUs are mixed up with those that another process asks for. */
	record_with_perf("-a --max-size=2M -e cpu-clock/period=200000/,task-clock/period=300000/ -m 8");
	compare_stats();
	remove_folder();
}

/* In a chroot perf cannot come back from a mount namespace, and says so. */
static void drop_chroot_lines(char *text)
{
	char *line = text, *end;

	while (*line) {
		end = strchr(line, '\n');
		end = end ? end + 1 : line + strlen(line);
		if (memmem(line, (size_t)(end - line), "util/namespaces.c", strlen("util/namespaces.c")))
			memmove(line, end, strlen(end) + 1);
		else
			line = end;
	}
}

static void expect_quiet(const char *command)
{
	char *text;
	int status;

	snprintf(shell, sizeof(shell), "%s -i %s " QUIETLY, command, path);
	text = output_of(shell, &status);
	cr_assert_eq(status, 0, "%s: %s", shell, text);
	drop_chroot_lines(text);
	cr_assert_str_eq(text, "");
	free(text);
}

/* Reads path, writes it again with our own writer beside it, and makes that one path. */
static void copy(void)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	const uint64_t *words;
	char other[128];
	uint32_t i, nr;
	int fd, last;

	snprintf(other, sizeof(other), "%s.copy", path);
	fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	for (i = 0; perfring_file_attr(data, i); i++)
		cr_assert_eq(
			perfring_file_writer_add_event(writer, perfring_file_attr(data, i), perfring_file_event_name(data, i)),
			(int)i);
	/* the ids stand in the first record, ID_INDEX: nr, then id, idx, cpu, tid of each */
	while ((last = perfring_file_next(data, &item)) == 1)
		if (item.record->type == PERFRING_RECORD_ID_INDEX)
			break;
	cr_assert_eq(last, 1);
	words = (const uint64_t *)(const void *)(item.record + 1);
	nr = (uint32_t)words[0];
	for (i = 0; i < nr; i++)
		cr_assert_eq(perfring_file_writer_add_id(
				     writer,
				     perfring_format_set_find(perfring_file_formats(data), words[1 + i * 4])->index,
				     words[1 + i * 4]),
			     0);
	perfring_file_close(data);
	cr_assert_eq(perfring_file_writer_describe(writer, NULL), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		struct iovec piece = {.iov_base = (void *)(uintptr_t)item.record, .iov_len = item.record->size};

		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
	}
	cr_assert_eq(last, 0);
	perfring_file_close(data);
	end(writer, fd);
	cr_assert_eq(rename(other, path), 0);
}

/* perf tells the same of a file and of our copy of it. */
static void compare_copy(const char *options)
{
	char *before, *after;
	int status;

	record_with_perf(options);
	snprintf(shell, sizeof(shell), "perf script -i %s 2>/dev/null", path);
	before = output_of(shell, &status);
	cr_assert_eq(status, 0);
	cr_assert_gt(strlen(before), 1000);
	copy();
	expect_quiet("perf script");
	expect_quiet("perf report --stats");
	snprintf(shell, sizeof(shell), "perf script -i %s 2>/dev/null", path);
	after = output_of(shell, &status);
	cr_assert_eq(strcmp(before, after), 0);
	free(before);
	free(after);
}

Test(data, for_perf)
{
	if (!has_perf())
		cr_skip_test("SKIP-ENV: perf: not installed");
	make_folder();
	compare_copy("-e cpu-clock -F 999 -g");
	compare_copy("-e cpu-clock/period=200000/,page-faults/period=100/");
	remove_folder();
}

Test(data, tracepoints)
{
	if (!has_perf())
		cr_skip_test("SKIP-ENV: perf: not installed");
	if (access("/sys/kernel/tracing/events/sched", R_OK) && access("/sys/kernel/debug/tracing/events/sched", R_OK))
		cr_skip_test("SKIP-ENV: tracefs: not mounted, or not root");
	make_folder();
	compare_copy("-e sched:sched_switch,sched:sched_process_exec,irq:softirq_entry -c 1");
	remove_folder();
}

static bool is_third(void *of)
{
	return ++*(unsigned *)of >= 3;
}

/* What ends it is asked before each record, and the file stays one. */
Test(data, state_that_is_ended)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	unsigned asked = 0, records = 0;
	int fd;

	make_folder();
	writer = begin(&fd);
	perfring_file_writer_end_when(writer, is_third, &asked);
	cr_assert_eq(perfring_file_writer_put_process(writer, getpid()), -EINTR);
	cr_assert_eq(asked, 3);
	cr_assert_eq(perfring_file_writer_put_process(writer, -1), -EINTR);
	cr_assert_eq(asked, 4);
	perfring_file_writer_end_when(writer, NULL, NULL);
	cr_assert_eq(perfring_file_writer_put_process(writer, getpid()), 0);
	cr_assert_eq(asked, 4);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while (perfring_file_next(data, &item) == 1)
		records += item.record->type == PERF_RECORD_FORK || item.record->type == PERF_RECORD_COMM;
	cr_assert_geq(records, 4, "%u", records);
	perfring_file_close(data);
	remove_folder();
}

/* The machine's state: this process is in it, and perf finds symbols by it. */
Test(data, state)
{
	struct perfring_file_writer *writer;
	struct perfring_record record;
	struct perfring_file *data;
	struct perfring_item item;
	bool has_comm = false, has_fork = false, has_map = false, has_init = false, has_kernel = false;
	uint64_t here = (uint64_t)(uintptr_t)&simple_attr;
	char comm[32] = "", exe[4096] = "", *text;
	uint32_t self = (uint32_t)getpid();
	int fd, last, status;
	FILE *file;

	make_folder();
	file = fopen("/proc/self/comm", "r");
	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%31[^\n]", comm), 1);
	fclose(file);
	cr_assert_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	writer = begin(&fd);
	cr_assert_eq(perfring_file_writer_put_kernel(writer), 0);
	cr_assert_eq(perfring_file_writer_put_process(writer, 0x7ffffff0), 0);
	cr_assert_eq(perfring_file_writer_put_process(writer, -2), -EINVAL);
	cr_assert_eq(perfring_file_writer_put_process(writer, -1), 0);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((last = perfring_file_next(data, &item)) == 1) {
		cr_assert_eq(item.time, 0);
		cr_assert_eq(perfring_record_decode(item.format, item.record, &record, NULL), 0);
		cr_assert_eq(record.trailer.identifier, 7);
		cr_assert_eq(record.trailer.cpu, 0xffffffff);
		if (record.type == PERF_RECORD_COMM && record.is.comm.tid == self)
			has_comm = !strcmp(record.is.comm.comm.data, comm);
		if (record.type == PERF_RECORD_COMM && record.is.comm.pid == 1)
			has_init = true;
		if (record.type == PERF_RECORD_FORK && record.is.fork.tid == self)
			has_fork = record.is.fork.ppid == (uint32_t)getppid() && !has_comm;
		if (record.type == PERF_RECORD_MMAP && !strncmp(record.is.mmap.filename.data, "[kernel.kallsyms]", 17))
			has_kernel = record.misc == 1 && record.is.mmap.pid == 0xffffffff;
		if (record.type == PERF_RECORD_MMAP2 && record.is.mmap2.pid == self &&
		    here - record.is.mmap2.addr < record.is.mmap2.len)
			has_map = !strcmp(record.is.mmap2.filename.data, exe) && (record.is.mmap2.prot & 4) &&
				  record.is.mmap2.file.ino && record.misc == 2 && record.is.mmap2.flags == 2;
		if (record.type == PERF_RECORD_MMAP2)
			cr_assert(record.is.mmap2.prot & 4);
	}
	cr_assert_eq(last, 0);
	cr_assert(has_comm);
	cr_assert(has_fork);
	cr_assert(has_map);
	cr_assert(has_init);
	if (!geteuid())
		cr_assert(has_kernel);
	perfring_file_close(data);
	if (has_perf()) {
		expect_quiet("perf report --stats");
		expect_quiet("perf script");
		snprintf(shell, sizeof(shell),
			 "perf script --show-mmap-events --show-task-events -i %s 2>/dev/null | grep -c _text", path);
		text = output_of(shell, &status);
		cr_assert_str_eq(text, geteuid() ? "0\n" : "1\n");
		free(text);
	}
	remove_folder();
}

/* ---- directories ---- */

enum {
	FILES = 3, /* data, data.0, data.1 */
};

static int open_in(const char *name)
{
	char one[160];
	int fd;

	snprintf(one, sizeof(one), "%s/%s", path, name);
	fd = open(one, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	return fd;
}

/* Of one event with ids 7 and 8, begun; level 0: not compressed.  NULL: built without libzstd. */
static struct perfring_file_writer *begin_directory(int *fds, int level, bool foreign)
{
	struct perf_event_attr attr = simple_attr(SIMPLE);
	struct perfring_file_writer *writer;

	snprintf(shell, sizeof(shell), "rm -rf %s", path);
	cr_assert_eq(system(shell), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	fds[0] = open_in("data");
	fds[1] = open_in("data.0");
	fds[2] = open_in("data.1");
	cr_assert_eq(perfring_file_writer_open(&writer, fds[0]), 0);
	cr_assert_eq(perfring_file_writer_add_part(writer, fds[1]), 1);
	if (level && perfring_file_writer_compress(writer, level) == -EOPNOTSUPP) {
		perfring_file_writer_close(writer);
		return NULL;
	}
	cr_assert_eq(perfring_file_writer_add_part(writer, fds[2]), 2);
	if (foreign)
		cr_assert_eq(perfring_file_writer_make_foreign(writer), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "my clock"), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 8), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static int write_in(struct perfring_file_writer *writer, uint32_t file, uint64_t time)
{
	struct simple sample = simple(7 + file % 2, time, file);
	struct iovec piece = {.iov_base = &sample, .iov_len = sizeof(sample)};

	return perfring_file_writer_write_to(writer, file, &piece, 1);
}

static void close_all(const int *fds)
{
	for (int i = 0; i < FILES; i++)
		close(fds[i]);
}

/* Reads `samples` samples in time order, each from the file whose number is its CPU, and nothing else. */
static void expect_directory(size_t samples, bool finished)
{
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t before = 0;
	size_t nr = 0;
	int last;

	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_eq(perfring_file_is_finished(data), finished);
	while ((last = perfring_file_next(data, &item)) == 1) {
		struct perfring_sample sample;

		cr_assert_eq(item.record->type, PERF_RECORD_SAMPLE);
		cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
		cr_assert_eq(sample.cpu, perfring_file_part(data));
		cr_assert_eq(sample.tid, 101);
		cr_assert_geq(item.time, before);
		before = item.time;
		nr++;
	}
	cr_assert_eq(last, 0);
	cr_assert_eq(nr, samples, "%zu of %zu", nr, samples);
	perfring_file_close(data);
}

Test(data, directory_states)
{
	struct perfring_file_writer *writer;
	int fds[FILES], fd;

	make_folder();
	writer = begin_directory(fds, 0, false);
	cr_assert_eq(perfring_file_writer_add_part(writer, fds[2]), -EINVAL);
	cr_assert_eq(write_in(writer, FILES, 1), -EINVAL);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	cr_assert_eq(write_in(writer, 1, 1), -EINVAL);
	perfring_file_writer_close(writer);
	close_all(fds);
	/* nothing recorded, but finished: perf takes a data size of 0 for a killed writer's */
	if (has_perf())
		expect_quiet("perf report --stats");

	fd = open("/dev/null", O_WRONLY);
	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_part(writer, fd), -EINVAL);
	perfring_file_writer_close(writer);
	close(fd);
	remove_folder();
}

/* What each file has, in both byte orders, compressed or not. */
Test(data, directory)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	const uint64_t *version;
	struct simple first;
	uint64_t all, size;
	char *text;
	int fds[FILES], status;

	make_folder();
	for (int i = 0; i < 4; i++) {
		int level = i & 1 ? 3 : 0;
		bool foreign = i & 2;

		writer = begin_directory(fds, level, foreign);
		if (!writer)
			continue;
		for (uint64_t time = 1; time <= 3000; time += 3) {
			/* nearly in order, as rings are, and one far behind the other */
			cr_assert_eq(write_in(writer, 1, time + 2), 0);
			cr_assert_eq(write_in(writer, 1, time), 0);
			cr_assert_eq(write_in(writer, 2, time / 2 + 1), 0);
			if (time % 100 == 1)
				cr_assert_eq(perfring_file_writer_end_round(writer), 0);
		}
		cr_assert_eq(write_in(writer, 0, 3002), 0);
		/* which perf asks for to know the byte order of the bitmap */
		cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "host"), 0);
		all = perfring_file_writer_size(writer);
		all -= (uint64_t)lseek(fds[1], 0, SEEK_END) + (uint64_t)lseek(fds[2], 0, SEEK_END);
		cr_assert_eq(all, (uint64_t)lseek(fds[0], 0, SEEK_END));
		cr_assert_eq(perfring_file_writer_finish(writer), 0);
		perfring_file_writer_close(writer);
		cr_assert_eq(pread(fds[1], &first, sizeof(first), 0), (ssize_t)sizeof(first));
		if (!i)
			cr_assert_eq(first.time, 3);
		expect_directory(3001, true);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		cr_assert_eq(perfring_file_is_foreign(data), foreign);
		version = perfring_file_feature(data, PERFRING_FEATURE_DIR_FORMAT, &size);
		cr_assert_not_null(version);
		cr_assert_eq(size, sizeof(*version));
		cr_assert_eq(*version, 1);
		perfring_file_close(data);
		if (has_perf()) {
			expect_quiet("perf report --stats");
			snprintf(shell, sizeof(shell), "perf script -F cpu,time -i %s 2>/dev/null | wc -l", path);
			text = output_of(shell, &status);
			cr_assert_str_eq(text, "3001\n");
			free(text);
		}
		/* each file is whole without the others */
		cr_assert_eq(ftruncate(fds[1], 0), 0);
		expect_directory(1001, true);
		close_all(fds);
	}
	remove_folder();
}

/* A write that failed in one file cuts that one back, and concerns no other. */
Test(data, directory_limit)
{
	struct rlimit limit = {50001, RLIM_INFINITY};
	struct perfring_file_writer *writer;
	int fds[FILES], ret;

	make_folder();
	signal(SIGXFSZ, SIG_IGN);
	for (int level = 0; level < 2; level++) {
		size_t samples = 0;

		writer = begin_directory(fds, level, false);
		if (!writer)
			continue;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		while (!(ret = write_in(writer, 1, samples + 1)))
			cr_assert_lt(++samples, 1000000);
		cr_assert_eq(ret, -EFBIG);
		cr_assert_gt(samples, 500);
		cr_assert_eq(write_in(writer, 2, 5), 0);
		cr_assert_eq(write_in(writer, 0, 6), 0);
		limit.rlim_cur = RLIM_INFINITY;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		limit.rlim_cur = 50001;
		/* of a compressed file too, which goes on with another frame */
		cr_assert_eq(write_in(writer, 1, samples + 1), 0);
		cr_assert_eq(write_in(writer, 2, samples + 2), 0);
		cr_assert_eq(perfring_file_writer_finish(writer), 0);
		perfring_file_writer_close(writer);
		close_all(fds);
		expect_directory(samples + 4, true);
	}
	remove_folder();
}

/* What a failed write cut off of a compressed file is in no later frame, whatever was written before; and perf reads on. */
Test(data, resumed_compressed)
{
	enum {
		MANY = 8000
	};
	static struct simple many[MANY];
	static uint64_t times[MANY + 3];
	struct rlimit limit = {50001, RLIM_INFINITY};
	struct iovec piece = {.iov_base = many, .iov_len = sizeof(many)};
	uint64_t random = 88172645463325252, late;
	struct perfring_file_writer *writer;
	int fd, last, status;

	make_folder();
	signal(SIGXFSZ, SIG_IGN);
	/* 8 bytes of each cannot be compressed */
	for (size_t i = 0; i < MANY; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		many[i] = simple(7, i + 4, 0);
		many[i].ip = random;
	}
	for (int first = 0; first < 2; first++) {
		writer = begin_with(&fd, 1);
		if (!writer) {
			remove_folder();
			cr_skip_test("SKIP-ENV: perfring_file_writer_compress: built without libzstd");
		}
		if (first)
			write_simple(writer, 7, 1);
		limit.rlim_cur = 50001;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), -EFBIG);
			cr_assert_eq(lseek(fd, 0, SEEK_END), (off_t)perfring_file_writer_size(writer));
		}
		write_simple(writer, 9, 2);
		write_simple(writer, 7, 3);
		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), -EFBIG);
		limit.rlim_cur = RLIM_INFINITY;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
		end(writer, fd);
		cr_assert_eq(read_times(times, MANY + 3, &last, &late), (size_t)(MANY + 2 + first));
		cr_assert_eq(last, 0);
		for (size_t i = 0; i < MANY + 2 + (size_t)first; i++)
			cr_assert_eq(times[i], i + (first ? 1 : 2));
		if (has_perf()) {
			char *text;

			expect_quiet("perf report --stats");
			snprintf(shell, sizeof(shell), "perf script -F time -i %s 2>/dev/null | wc -l", path);
			text = output_of(shell, &status);
			cr_assert_eq(atoi(text), MANY + 2 + first, "%s", text);
			free(text);
		}
	}
	remove_folder();
}

Test(data, directory_killed)
{
	struct perfring_file_writer *writer;
	struct simple half = simple(7, 9, 0);
	struct stat status;
	int fds[FILES];

	make_folder();
	for (int level = 0; level < 2; level++) {
		writer = begin_directory(fds, level, level);
		if (!writer)
			continue;
		for (uint64_t time = 1; time <= 100; time++) {
			cr_assert_eq(write_in(writer, 1, time), 0);
			cr_assert_eq(write_in(writer, 2, time), 0);
			if (time == 50)
				cr_assert_eq(write_in(writer, 0, time), 0);
			if (time == 60)
				cr_assert_eq(perfring_file_writer_end_round(writer), 0);
		}
		perfring_file_writer_close(writer);
		for (int i = 0; i < FILES; i++) {
			cr_assert_eq(fstat(fds[i], &status), 0);
			if (!level)
				cr_assert_eq(pwrite(fds[i], &half, sizeof(half) / 2, status.st_size),
					     (ssize_t)sizeof(half) / 2);
			else if (i == 2) /* the last of its hundred compressed records */
				cr_assert_eq(ftruncate(fds[i], status.st_size - 1), 0);
		}
		close_all(fds);
		expect_directory(level ? 200 : 201, false);
	}
	remove_folder();
}
