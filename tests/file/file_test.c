/* file_test.c - perf.data files as a reader finds them: in directories, with old or odd headers, late, killed while they were
 * written, long, changed meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/generate.h>
#include <perfring/swap.h>
#include "file_rig.h"
#include "machine.h"
#include "pack.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(file, .timeout = 300);

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

Test(file, directories)
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
Test(file, odd_directory)
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

/* Of what could not be opened next has the error, again and again, and nothing else fails either. */
Test(file, not_opened)
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
Test(file, faults_in_directory)
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

Test(file, first_version)
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

/* attrs of every size in entries of every size that holds them, several in a row, so that odd ones stand askew. */
Test(file, attr_sizes)
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

Test(file, late)
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

Test(file, killed)
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

Test(file, killed_large)
{
	try_large(0);
	if (has_zstd() && !IS_SANITIZED)
		try_large(1);
}

/* ---- sections that lie over one another ---- */

/* Features that all lie over one another do not each take the whole of the file. */
Test(file, one_over_another)
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

/* A file in time order, with holes in its large records: it takes little space and is as long as it says.  Some records are
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

static void try_long(uint64_t length, uint64_t rounds, bool is_backward, long most_mb)
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
		_exit(!IS_SANITIZED && usage.ru_maxrss >= most_mb * 1024 ? 5 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
	close(fd);
}

/* 1 GB, and 4 GB where there is time for it. */
Test(file, long_files)
{
	uint64_t length = (uint64_t)trials(IS_SANITIZED ? 100000000 : 1000000000);

	if (soak_seconds() > 4)
		length = UINT64_C(4000000000);
	try_long(length, 0, false, 192);
	try_long(length, 500000, false, 16);
	try_long(length, 50000000, false, 192);
	/* nothing is where it belongs: all that the window holds waits, and each record is a run */
	try_long(200000000, 0, true, 256);
}

/* A file that another writes anew while it is read: no record is longer than what was read of it. */
Test(file, changed)
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
