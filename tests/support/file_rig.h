/* file_rig.h - perf.data files of samples: how they are written, and where they lie. */
#ifndef FILE_RIG_H
#define FILE_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/file_writer.h>
#include "machine.h"
#include "test.h"

#define TIMED (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME)

static char folder[64];
static char path[96];

static inline void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/file_rig.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

/* A folder of folders at most. */
static inline void remove_folder(void)
{
	char shell[128];

	snprintf(shell, sizeof(shell), "rm -rf %s", folder);
	cr_assert_eq(system(shell), 0);
}

static inline void set_file(const char *name, const void *from, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, from, size), (ssize_t)size);
	close(fd);
}

/* The same in a file that no disk waits for; its path is kept in `path`. */
static inline void set_memory(const void *from, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("file_rig", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, from, size, 0), (ssize_t)size);
}

static inline unsigned char *get_file(size_t *size)
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

static inline struct perf_event_attr attr_of(uint64_t sample_type)
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
static inline bool has_zstd(void)
{
	struct perfring_file_writer *writer;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), error;

	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	error = perfring_file_writer_compress(writer, 1);
	perfring_file_writer_close(writer);
	close(fd);
	return error != -EOPNOTSUPP;
}

static inline struct perfring_file_writer *create(struct mode mode, int *fd)
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
static inline struct perfring_file_writer *begin(struct mode mode, int *fd)
{
	struct perf_event_attr attr = attr_of(TIMED);
	struct perfring_file_writer *writer = create(mode, fd);

	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static inline void end(struct perfring_file_writer *writer, int fd)
{
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
}

static inline void write_bytes(struct perfring_file_writer *writer, const void *from, size_t size)
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

static inline struct timed timed(uint64_t time)
{
	struct timed sample = {{PERF_RECORD_SAMPLE, 2, sizeof(sample)}, 0x1234, 1, 2, time};

	return sample;
}

static inline void write_timed(struct perfring_file_writer *writer, uint64_t time)
{
	struct timed sample = timed(time);

	write_bytes(writer, &sample, sizeof(sample));
}

/* As it stands in the file. */
static inline uint64_t turned(uint64_t value, bool is_foreign)
{
	return is_foreign ? __builtin_bswap64(value) : value;
}

#endif
