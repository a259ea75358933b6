/* ring_test.c - ring memory of our own: its layout beside the kernel's, handed to other processes, kept in files, and
 * whatever an attach may be given. */
#include "sanitizers.h"
#include "test.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/reader.h>
#include <perfring/snapshot.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>
#include "foreign.h"

TestSuite(ring, .timeout = 60);

enum {
	PAGE = 4096,
	SWITCH = 14, /* PERF_RECORD_SWITCH: a record that may have 8 bytes */
};

static int create(struct perfring_ring *ring, uint32_t pages, uint32_t flags, const char *file)
{
	const struct perfring_ring_options options = {.pages = pages, .flags = flags, .file = file};

	return perfring_ring_create(ring, &options);
}

static void make(struct perfring_ring *ring, uint32_t pages, uint32_t flags)
{
	int error = create(ring, pages, flags, NULL);

	cr_assert_eq(error, 0, "%u pages: %s", pages, strerror(-error));
}

static void close_two(struct perfring_ring *first, struct perfring_ring *second)
{
	perfring_ring_close(first);
	perfring_ring_close(second);
}

static struct perfring_writer *open_writer(struct perfring_ring *ring)
{
	struct perfring_writer *writer = NULL;

	cr_assert_eq(perfring_writer_open(&writer, ring, NULL), 0);
	return writer;
}

/* 24 bytes that say `word`. */
static bool put(struct perfring_writer *writer, uint64_t word)
{
	struct perf_event_header header = {SWITCH, 0, 24};
	unsigned char record[24];

	memcpy(record, &header, 8);
	memcpy(record + 8, &word, 8);
	memcpy(record + 16, &word, 8);
	return perfring_writer_write(writer, NULL, record, sizeof(record));
}

static uint64_t word_of(const struct perf_event_header *record)
{
	uint64_t words[2];

	if (record->type != SWITCH || record->size != 24)
		return UINT64_MAX;
	memcpy(words, record + 1, sizeof(words));
	return words[0] == words[1] ? words[0] : UINT64_MAX;
}

/* ---- as the kernel makes them ---- */

static int open_dummy(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER5};

	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8 /* CLOEXEC */);
}

/* Every byte of the control page, but for what is the event's and what the kernel leaves unused. */
Test(ring, control_page_as_the_kernels)
{
	struct perfring_ring ours, kernel;
	struct perf_event_mmap_page page;
	int fd = open_dummy();

	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open(dummy): %s: needs perf_event_paranoid <= 2", strerror(errno));
	cr_assert_eq(perfring_ring_map(&kernel, fd, 8, 0), 0);
	make(&ours, 8, 0);
	page = *kernel.page;
	page.time_enabled = ours.page->time_enabled;
	page.time_running = ours.page->time_running;
	page.offset = ours.page->offset;
	page.lock = ours.page->lock;
	/* Counters and clocks that this machine's kernel publishes in it. */
	page.capabilities &= 3;
	page.time_shift = 0;
	page.time_mult = 0;
	page.time_offset = 0;
	page.time_zero = 0;
	page.pmc_width = 0;
	cr_assert_eq(page.version, 0);
	cr_assert_eq(page.size, 96);
	cr_assert_eq(memcmp(ours.page, &page, 1024), 0);
	cr_assert_eq(ours.page->data_head, page.data_head);
	cr_assert_eq(ours.page->data_tail, page.data_tail);
	cr_assert_eq(ours.page->data_offset, page.data_offset);
	cr_assert_eq(ours.page->data_size, page.data_size);
	cr_assert_eq(ours.page->aux_offset, 0);
	cr_assert_eq(ours.page->aux_size, 0);
	/* What we keep lies where the kernel has nothing. */
	for (unsigned i = 1088; i < PAGE; i++)
		cr_assert_eq(((unsigned char *)kernel.page)[i], 0);
	close_two(&ours, &kernel);
	close(fd);
}

Test(ring, control_page_by_the_numbers)
{
	struct perfring_ring ring;
	const unsigned char *page;
	uint64_t word;
	uint32_t half;

	for (uint32_t pages = 1; pages <= 16; pages *= 2) {
		make(&ring, pages, 0);
		page = (const unsigned char *)ring.page;
		for (unsigned i = 0; i < 1024; i++)
			if ((i < 40 || i >= 48) && (i < 72 || i >= 76))
				cr_assert_eq(page[i], 0, "%u", i);
		memcpy(&word, page + 40, 8);
		cr_assert_eq(word, 2); /* docs/abi.md 3.2 */
		memcpy(&half, page + 72, 4);
		cr_assert_eq(half, 96);
		memcpy(&word, page + 1024, 8);
		cr_assert_eq(word, 0);
		memcpy(&word, page + 1032, 8);
		cr_assert_eq(word, 0);
		memcpy(&word, page + 1040, 8);
		cr_assert_eq(word, PAGE);
		memcpy(&word, page + 1048, 8);
		cr_assert_eq(word, pages * PAGE);
		cr_assert_eq(memcmp(page + 2048, "perfring", 8) == 0, *(const uint16_t *)"\1" == 1);
		for (uint64_t i = 0; i < ring.size; i++)
			cr_assert_eq(ring.data[i], 0);
		cr_assert_eq((uintptr_t)ring.data, (uintptr_t)ring.page + PAGE);
		cr_assert_eq(ring.size, pages * PAGE);
		cr_assert_eq(ring.span, 2 * pages * PAGE);
		perfring_ring_close(&ring);
	}
}

/* docs/abi.md 7.7 */
Test(ring, watermarks)
{
	static const struct {
		bool watermark;
		uint32_t value;
		uint64_t effective;
	} vectors[] = {{false, 0, 4096}, {true, 0, 4096},    {true, 1, 1},
		       {true, 100, 100}, {true, 8192, 8192}, {true, UINT32_MAX, 8192}};
	struct perfring_ring_options options = {.pages = 2};
	struct perfring_ring ring;

	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		options.watermark = vectors[i].watermark;
		options.wakeup = vectors[i].value;
		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		cr_assert_eq(perfring_ring_state_of(ring.page)->watermark, vectors[i].effective, "%u", i);
		perfring_ring_close(&ring);
	}
}

/* The data lie in memory twice in a row, and once in the fd. */
Test(ring, twice_in_a_row)
{
	struct perfring_ring ring;
	unsigned char byte;

	for (uint32_t pages = 1; pages <= 1024; pages *= 4) {
		make(&ring, pages, 0);
		for (uint64_t at = 0; at < ring.size; at += 509) {
			ring.data[at] = (unsigned char)(at + 1);
			cr_assert_eq(ring.data[ring.size + at], (unsigned char)(at + 1));
			cr_assert_eq(pread(ring.fd, &byte, 1, (off_t)(PAGE + at)), 1);
			cr_assert_eq(byte, (unsigned char)(at + 1));
			ring.data[ring.size + at] = 0;
			cr_assert_eq(ring.data[at], 0);
		}
		perfring_ring_close(&ring);
	}
}

/* Up to 1 GiB, which is really there. */
Test(ring, largest)
{
	struct perf_event_header header;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	struct stat status;
	int error;

	error = create(&ring, 262144, 0, NULL);
	if (error == -ENOMEM || error == -ENOSPC)
		cr_skip_test("SKIP-ENV: a ring of 1 GiB: %s: needs so much memory", strerror(-error));
	cr_assert_eq(error, 0, "%s", strerror(-error));
	cr_assert_eq(ring.size, UINT64_C(1) << 30);
	cr_assert_eq(fstat(ring.fd, &status), 0);
	cr_assert_eq(status.st_size, (off_t)(UINT64_C(1) << 30) + PAGE);
	writer = open_writer(&ring);
	cr_assert(put(writer, 5));
	ring.data[2 * ring.size - 1] = 9;
	cr_assert_eq(ring.data[ring.size - 1], 9);
	memcpy(&header, ring.data + ring.size, sizeof(header));
	cr_assert_eq(header.type, SWITCH);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	cr_assert_eq(create(&ring, 524288, 0, NULL), -EFBIG);
	cr_assert_eq(create(&ring, 1u << 31, 0, NULL), -EFBIG);
}

/* Asked for, got or not: the flag tells, and the ring is one. */
Test(ring, huge_pages)
{
	struct perfring_writer *writer;
	struct perfring_ring ring, other;

	for (uint32_t pages = 1; pages <= 4096; pages *= 64) {
		make(&ring, pages, PERFRING_RING_HUGE);
		if (pages * PAGE < 2u << 20)
			cr_assert_eq(ring.flags & PERFRING_RING_HUGE, 0);
		cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_HUGE, NULL), 0);
		writer = open_writer(&ring);
		for (uint64_t i = 0; i < 100; i++)
			cr_assert(put(writer, i));
		for (uint64_t i = 0; i < 100; i++)
			cr_assert_eq(word_of((const void *)(other.data + other.size + 24 * i)), i);
		perfring_writer_close(writer);
		close_two(&ring, &other);
	}
}

/* ---- options that make no ring ---- */

/* What the program opens next has the number that it would have had; and where there is no space above, any number will do. */
Test(ring, a_high_descriptor)
{
	int next = dup(STDERR_FILENO);
	struct perfring_ring ring;
	struct rlimit limit;

	close(next);
	make(&ring, 1, PERFRING_RING_HIGH_FD);
	cr_assert_geq(ring.fd, 1000);
	cr_assert_eq(fcntl(ring.fd, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(dup(STDERR_FILENO), next);
	close(next);
	perfring_ring_close(&ring);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 64;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	make(&ring, 1, PERFRING_RING_HIGH_FD);
	cr_assert(ring.fd >= 48 && ring.fd < 64);
	perfring_ring_close(&ring);
	limit.rlim_cur = (rlim_t)next + 1;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	make(&ring, 1, PERFRING_RING_HIGH_FD);
	cr_assert_eq(ring.fd, next);
	perfring_ring_close(&ring);
}

Test(ring, options_that_exclude_one_another)
{
	static const uint32_t bad[] = {
		PERFRING_RING_STRICT | PERFRING_RING_LEASED,
		PERFRING_RING_LOST_FILLERS,
		PERFRING_RING_LEASED | PERFRING_RING_LOST_FILLERS,
		PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE | PERFRING_RING_LOST_FILLERS,
		PERFRING_RING_STRICT | PERFRING_RING_BACKWARD,
		PERFRING_RING_LEASED | PERFRING_RING_BACKWARD,
		PERFRING_RING_STRICT | PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE,
		PERFRING_RING_LEASED | PERFRING_RING_OVERWRITE,
		PERFRING_RING_READ_ONLY,
		PERFRING_RING_OWN,
		1u << 20,
	};
	struct perfring_ring_options options = {.pages = 4};
	struct perfring_ring ring;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options.flags = bad[i];
		cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL, "%#x", bad[i]);
		cr_assert_null(ring.page);
	}
	options.flags = 0;
	for (uint32_t pages = 0; pages < 200; pages++) {
		options.pages = pages;
		if (pages & (pages - 1) || !pages)
			cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL, "%u", pages);
	}
	options.pages = 4;
	options.aux_pages = 3;
	cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL);
	options.aux_pages = 0;
	options.flags = PERFRING_RING_STRICT;
	options.owners = 1025;
	cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL);
	options.owners = 0;
	options.flags = PERFRING_RING_LEASED;
	options.chunk = 256;
	cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL);
	options.chunk = 1000;
	cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL);
	options.chunk = 8192;
	cr_assert_eq(perfring_ring_create(&ring, &options), -EINVAL);
	options.chunk = 4096;
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	perfring_ring_close(&ring);
}

/* ---- files ---- */

static void name_file(char *name, size_t size)
{
	static const char *const places[] = {"/dev/shm", "/tmp"};

	snprintf(name, size, "%s/ring_test.%d", places[access(places[0], W_OK) != 0], (int)getpid());
	unlink(name);
}

Test(ring, file_outlives_the_ring)
{
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	struct stat status;
	char name[64];
	int fd;

	name_file(name, sizeof(name));
	cr_assert_eq(create(&ring, 4, 0, name), 0);
	cr_assert_eq(stat(name, &status), 0);
	cr_assert_eq(status.st_size, 5 * PAGE);
	cr_assert_eq(status.st_mode & 07777, 0600);
	cr_assert_geq(status.st_blocks, 5 * PAGE / 512); /* on the disk at once */
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 50; i++)
		cr_assert(put(writer, i));
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	cr_assert_null(ring.page);
	/* Two readers, one after the other, each from where the last one stopped. */
	for (uint64_t i = 0; i < 50;) {
		fd = open(name, O_RDWR | O_CLOEXEC);
		cr_assert_eq(perfring_ring_attach(&ring, fd, 0, NULL), 0);
		close(fd);
		cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
		cr_assert_eq(perfring_reader_observe(&reader), (int64_t)(50 - i) * 24);
		for (unsigned k = 0; k < 7 && perfring_reader_next(&reader, &record) == 1; k++, i++)
			cr_assert_eq(word_of(record), i);
		perfring_reader_return(&reader);
		/* Handed out, but not returned: the next one has it again. */
		cr_assert_eq(perfring_reader_next(&reader, &record), i < 50);
		perfring_reader_close(&reader);
		perfring_ring_close(&ring);
	}
	/* A writer goes on where the last one stood. */
	fd = open(name, O_RDWR | O_CLOEXEC);
	cr_assert_eq(perfring_ring_attach(&ring, fd, 0, NULL), 0);
	close(fd);
	writer = open_writer(&ring);
	cr_assert(put(writer, 50));
	cr_assert_eq(ring.page->data_head, 51 * 24);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	unlink(name);
}

Test(ring, file_that_is_there)
{
	struct perfring_ring ring, second;
	char name[64], text[8] = "";
	int fd;

	name_file(name, sizeof(name));
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "precious", 8), 8);
	cr_assert_eq(create(&ring, 1, 0, name), -EEXIST);
	cr_assert_eq(pread(fd, text, 8, 0), 8);
	cr_assert_eq(memcmp(text, "precious", 8), 0);
	cr_assert_eq(create(&ring, 1, PERFRING_RING_REPLACE, name), 0);
	/* Replaced, not written over: whoever has the old one keeps it. */
	cr_assert_eq(pread(fd, text, 8, 0), 8);
	cr_assert_eq(memcmp(text, "precious", 8), 0);
	close(fd);
	cr_assert_eq(create(&second, 2, PERFRING_RING_REPLACE, name), 0);
	cr_assert_eq(ring.data[ring.size - 1], 0);
	close_two(&ring, &second);
	unlink(name);
	/* REPLACE where there is none. */
	cr_assert_eq(create(&ring, 1, PERFRING_RING_REPLACE, name), 0);
	perfring_ring_close(&ring);
	unlink(name);
	cr_assert_eq(create(&ring, 1, 0, "/nowhere/at/all"), -ENOENT);
	cr_assert_eq(create(&ring, 1, 0, "/"), -EEXIST);
}

/* A disk that is full is told at creation, and leaves no file. */
Test(ring, file_on_a_full_disk)
{
	struct rlimit limit;
	struct perfring_ring ring;
	char name[64];

	name_file(name, sizeof(name));
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 8 * PAGE;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(create(&ring, 16, 0, name), -EFBIG);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	cr_assert_neq(access(name, F_OK), 0);
	cr_assert_null(ring.page);
}

/* ---- other processes ---- */

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static int send_fd(int over, int fd)
{
	char byte = 0;
	struct iovec part = {&byte, 1};
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *head;

	memset(&control, 0, sizeof(control));
	head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(over, &message, 0) == 1 ? 0 : -1;
}

static int receive_fd(int over)
{
	char byte;
	struct iovec part = {&byte, 1};
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(over, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* What a child makes of the ring behind an fd: reads 500 records, through its own mapping. */
static int read_as_a_child(int fd)
{
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t next = 0;

	if (fd < 0)
		return 1;
	if (perfring_ring_attach(&ring, fd, 0, NULL) || perfring_reader_open(&reader, &ring, 0))
		return 2;
	close(fd);
	while (next < 500) {
		if (perfring_wakeup_wait(&ring, reader.position, 10000000000) != 1)
			return 3;
		if (perfring_reader_observe(&reader) < 0)
			return 4;
		while (perfring_reader_next(&reader, &record) == 1)
			if (word_of(record) != next++)
				return 5;
		perfring_reader_return(&reader);
	}
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return 7;
}

/* The parent writes until the child has them all; it never loses, because it looks first. */
static void write_for_a_child(struct perfring_ring *ring)
{
	struct perfring_writer *writer = open_writer(ring);
	unsigned patience = 20000;

	for (uint64_t i = 0; i < 500;) {
		if (perfring_page_observe(ring->page) - ring->page->data_tail + 24 < ring->size) {
			cr_assert(put(writer, i++));
			perfring_writer_flush(writer);
		} else {
			cr_assert_gt(patience--, 0);
			usleep(500);
		}
	}
	perfring_writer_close(writer);
}

Test(ring, handed_over_a_socket)
{
	struct perfring_ring ring;
	int sockets[2];
	pid_t child;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	child = fork();
	if (child == 0)
		_exit(read_as_a_child(receive_fd(sockets[1])));
	make(&ring, 1, 0);
	cr_assert_eq(send_fd(sockets[0], ring.fd), 0);
	write_for_a_child(&ring);
	cr_assert_eq(status_of(child), 7);
	perfring_ring_close(&ring);
	close(sockets[0]);
	close(sockets[1]);
}

Test(ring, handed_over_by_proc)
{
	struct perfring_ring ring;
	int numbers[2];
	pid_t child;
	char path[64];
	int fd;

	cr_assert_eq(pipe(numbers), 0);
	child = fork();
	if (child == 0) {
		if (read(numbers[0], &fd, sizeof(fd)) != sizeof(fd))
			_exit(1);
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(), fd);
		_exit(read_as_a_child(open(path, O_RDWR | O_CLOEXEC)));
	}
	make(&ring, 1, 0);
	cr_assert_eq(write(numbers[1], &ring.fd, sizeof(ring.fd)), (ssize_t)sizeof(ring.fd));
	write_for_a_child(&ring);
	cr_assert_eq(status_of(child), 7);
	perfring_ring_close(&ring);
	close(numbers[0]);
	close(numbers[1]);
}

/* A reader that has never heard of us, in another process: records that wrap, fillers, losses. */
Test(ring, read_by_a_stranger)
{
	static struct foreign foreign;
	const struct perf_event_header *record;
	struct perfring_claim outer = {0};
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t expected = 0, word, got = 0, attempted = 0;
	unsigned patience = 100000;
	pid_t child;

	make(&ring, 2, 0);
	child = fork();
	if (child == 0) {
		alarm(50);
		if (foreign_open(&foreign, ring.fd, 2))
			_exit(1);
		while (expected <= 20000) {
			while ((record = foreign_next(&foreign)) != NULL) {
				if (record->type == PERF_RECORD_LOST) {
					memcpy(&word, (const char *)record + 16, 8);
					expected += word;
					continue;
				}
				if (record->type != SWITCH)
					_exit(2);
				for (unsigned i = 8; i < record->size; i += 8) {
					memcpy(&word, (const char *)record + i, 8);
					if (word != expected)
						_exit(3);
				}
				expected++;
				got++;
			}
			foreign_done(&foreign);
		}
		if (got < 100 || got + foreign.lost != 20001)
			_exit(4);
		_exit(7);
	}
	writer = open_writer(&ring);
	while (attempted < 20000) {
		/* At times something that was given up lies before it. */
		bool discarded = attempted % 7 == 0 && perfring_writer_reserve(writer, NULL, 48, &outer);
		uint64_t words[64], size = 16 + 8 * (attempted % 60);
		struct perf_event_header header = {SWITCH, 0, (uint16_t)size};
		uint64_t number = attempted;

		/* The reservation that was refused counts too, and has no number: it is the next one. */
		if (attempted % 7 == 0 && !discarded && ++attempted == 20000)
			break;
		number = attempted;
		memcpy(words, &header, 8);
		for (unsigned i = 1; i < size / 8; i++)
			words[i] = number;
		perfring_writer_write(writer, NULL, words, size);
		attempted++;
		if (discarded)
			perfring_writer_discard(writer, &outer);
		/* Losses, but not only. */
		if (attempted % 64 == 0)
			while (ring.page->data_tail != ring.page->data_head && attempted % 1024 && --patience)
				usleep(20);
	}
	/* The last loss is told by a record. */
	while (ring.page->data_tail != ring.page->data_head && --patience)
		usleep(100);
	cr_assert(put(writer, 20000));
	cr_assert_eq(status_of(child), 7);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* A peer that shrinks the memory would be our SIGBUS. */
Test(ring, sealed)
{
	struct perfring_ring ring;
	pid_t child;

	make(&ring, 4, 0);
	child = fork();
	if (child == 0)
		_exit(ftruncate(ring.fd, PAGE) == -1 && errno == EPERM && ftruncate(ring.fd, 64 * PAGE) == -1 &&
				      errno == EPERM && fcntl(ring.fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 &&
				      errno == EBUSY
			      ? 7
			      : 1);
	cr_assert_eq(status_of(child), 7);
	ring.data[2 * ring.size - 1] = 1;
	perfring_ring_close(&ring);
}

/* A copy of the ring's bytes in a memfd with other seals, all of it allocated. */
static int copy_into_memory(const struct perfring_ring *ring, off_t size, int seals)
{
	int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char bytes[PAGE];

	cr_assert_geq(fd, 0);
	for (off_t at = 0; at < size; at += PAGE) {
		cr_assert_eq(pread(ring->fd, bytes, PAGE, at), PAGE);
		cr_assert_eq(pwrite(fd, bytes, PAGE, at), PAGE);
	}
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(ring, memory_that_may_shrink)
{
	static const struct {
		int seals;
		bool is_taken;
	} cases[] = {
		{0, false},
		{F_SEAL_GROW, false},
		{F_SEAL_SEAL, false},
		{F_SEAL_SHRINK, true},
		{F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, true},
	};
	struct perfring_ring ring, other;
	struct perfring_fault fault;

	make(&ring, 4, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = copy_into_memory(&ring, 5 * PAGE, cases[i].seals);
		int ret = perfring_ring_attach(&other, fd, 0, &fault);

		cr_assert_eq(ret, cases[i].is_taken ? 0 : -EBADMSG, "seals %d: %d", cases[i].seals, ret);
		if (ret)
			cr_assert_not_null(strstr(fault.what, "F_SEAL_SHRINK"));
		else
			perfring_ring_close(&other);
		close(fd);
	}
	perfring_ring_close(&ring);
}

/* Bytes that an fd's file has. */
static uint64_t allocated(int fd)
{
	struct stat status;

	cr_assert_eq(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

/* A hole becomes memory of the process that touches it first, so attaching must touch none. */
Test(ring, memory_with_holes)
{
	const unsigned ways[] = {0, PERFRING_RING_READ_ONLY, PERFRING_RING_HUGE};
	struct perfring_ring ring, other;
	struct perfring_fault fault;
	uint64_t before;
	char name[64];

	make(&ring, 1024, 0);
	cr_assert_eq(fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 512 * PAGE, PAGE), 0);
	before = allocated(ring.fd);
	cr_assert_eq(before, 1024 * PAGE);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		cr_assert_eq(perfring_ring_attach(&other, ring.fd, ways[i], &fault), -EBADMSG);
		cr_assert_eq(fault.at, (int64_t)before);
		cr_assert_not_null(strstr(fault.what, "holes"));
		cr_assert_eq(allocated(ring.fd), before);
	}
	perfring_ring_close(&ring);

	name_file(name, sizeof(name));
	cr_assert_eq(create(&ring, 1024, 0, name), 0);
	if (fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 512 * PAGE, 512 * PAGE)) {
		unlink(name);
		cr_skip_test("SKIP-ENV: fallocate: %s: a file system with holes", strerror(errno));
	}
	before = allocated(ring.fd);
	cr_assert_lt(before, 1024 * PAGE);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL), 0);
	cr_assert_eq(allocated(ring.fd), before);
	perfring_ring_close(&other);
	perfring_ring_close(&ring);
	unlink(name);
}

/* Whoever takes a ring can keep holes from coming: the mappings that there are stay. */
Test(ring, holes_kept_out)
{
	struct perfring_ring ring, other;
	struct stat status;

	make(&ring, 4, 0);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL), 0);
	if (fcntl(other.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		cr_skip_test("SKIP-ENV: F_SEAL_FUTURE_WRITE: %s: Linux 5.1", strerror(errno));
	cr_assert_eq(fallocate(ring.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE), -1);
	cr_assert_eq(errno, EPERM);
	madvise(ring.data, PAGE, MADV_REMOVE); /* EPERM; an emulator may say 0 and do nothing */
	cr_assert_eq(fstat(ring.fd, &status), 0);
	cr_assert_geq(allocated(ring.fd), (uint64_t)status.st_size);
	ring.data[0] = 7;
	cr_assert_eq(other.data[0], 7);
	close_two(&ring, &other);
}

/* Its control page, data and AUX area are allocated by its maker, huge pages or not. */
Test(ring, memory_is_whole)
{
	const unsigned kinds[] = {0, PERFRING_RING_HUGE, PERFRING_RING_STRICT,
				  PERFRING_RING_HUGE | PERFRING_RING_LEASED};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct perfring_ring_options options = {.pages = 1024, .flags = kinds[i], .aux_pages = 512};
		struct perfring_ring ring, other;
		struct stat status;

		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		cr_assert_eq(fstat(ring.fd, &status), 0);
		cr_assert_geq(allocated(ring.fd), (uint64_t)status.st_size, "kind %u", kinds[i]);
		cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL), 0);
		close_two(&ring, &other);
	}
}

Test(ring, attached_for_reading_alone)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_reader reader;
	struct perfring_writer *writer;
	struct perfring_ring ring, other;
	char path[64];
	int fd;

	make(&ring, 1, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE);
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 1000; i++)
		cr_assert(put(writer, i));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_ring_attach(&other, fd, 0, NULL), -EACCES);
	cr_assert_null(other.page);
	cr_assert_eq(perfring_ring_attach(&other, fd, PERFRING_RING_READ_ONLY, NULL), 0);
	close(fd);
	cr_assert_eq(perfring_reader_open(&reader, &other, 0), -EINVAL);
	cr_assert_eq(perfring_writer_open(&writer, &other, NULL), -EINVAL);
	/* Nothing that may be called on it stores. */
	cr_assert_eq(perfring_wakeup_wait(&other, 0, 0), -EINVAL);
	cr_assert_eq(perfring_snapshot_take(&snapshot, &other, 0), 0);
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	cr_assert_eq(word_of(record), 999);
	perfring_snapshot_close(&snapshot);
	close_two(&ring, &other);
}

/* Polling consumes the flag, which is a store. */
Test(ring, polled_for_reading_alone)
{
	struct perfring_ring ring, other;

	make(&ring, 1, 0);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_geq(perfring_wakeup_poll(&other), 0);
	perfring_wakeup_arm(&other, 0, PERFRING_WAKEUP_FUTEX);
	perfring_wakeup_disarm(&other);
	close_two(&ring, &other);
}

/* A reader that closes gives up nothing; a ring in memory too is attached again. */
Test(ring, reader_closed_and_opened_again)
{
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_writer *writer;
	struct perfring_ring ring, other;
	uint64_t written = 0, read = 0;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned k = 0; k < i % 7; k++)
			cr_assert(put(writer, written++));
		cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL), 0);
		cr_assert_eq(perfring_reader_open(&reader, &other, i % 2 ? PERFRING_READER_COPY : 0), 0);
		perfring_reader_observe(&reader);
		for (unsigned k = 0; k < i % 5 + 2 && perfring_reader_next(&reader, &record) == 1; k++)
			cr_assert_eq(word_of(record), read++);
		perfring_reader_return(&reader);
		perfring_reader_close(&reader);
		perfring_ring_close(&other);
	}
	cr_assert_eq(perfring_writer_lost(writer), 0);
	cr_assert_gt(read, 5000);
	cr_assert_eq((written - read) * 24, ring.page->data_head - ring.page->data_tail);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- what is no ring of ours ---- */

static void refused(int fd, int64_t at, const char *what)
{
	struct perfring_fault fault = {-1, NULL};
	struct perfring_ring ring;

	cr_assert_eq(perfring_ring_attach(&ring, fd, 0, &fault), -EBADMSG, "%s", what);
	cr_assert_not_null(fault.what, "%s", what);
	if (at >= 0)
		cr_assert_eq(fault.at, at, "%s: at %lld: %s", what, (long long)fault.at, fault.what);
	cr_assert_null(ring.page);
	cr_assert_eq(perfring_ring_attach(&ring, fd, PERFRING_RING_READ_ONLY, NULL), -EBADMSG, "%s", what);
}

/* Sanitizers map memory of their own as they go: there the rings' alone are counted. */
static unsigned mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned nr = 0;

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		nr += !IS_SANITIZED || strstr(line, "memfd:perfring") || strstr(line, "/ring_test.");
	fclose(file);
	return nr;
}

static unsigned open_fds(void)
{
	unsigned fds = 0;

	for (int fd = 0; fd < 1024; fd++)
		fds += fcntl(fd, F_GETFD) != -1;
	return fds;
}

Test(ring, other_fds)
{
	struct perfring_ring ring;
	int pipes[2], fd;
	char name[64];

	cr_assert_eq(perfring_ring_attach(&ring, -1, 0, NULL), -EBADF);
	cr_assert_eq(pipe(pipes), 0);
	refused(pipes[0], -1, "pipe");
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	refused(fd, -1, "directory");
	close(fd);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	refused(fd, -1, "device");
	close(fd);
	fd = open_dummy();
	if (fd >= 0)
		refused(fd, -1, "perf");
	close(fd);
	name_file(name, sizeof(name));
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	refused(fd, 0, "empty");
	cr_assert_eq(ftruncate(fd, 2 * PAGE), 0);
	refused(fd, 2048, "zeros");
	make(&ring, 1, 0);
	cr_assert_eq(perfring_ring_attach(&ring, ring.fd, 1u << 20, NULL), -EINVAL);
	close(fd);
	unlink(name);
	close(pipes[0]);
	close(pipes[1]);
}

/* Copies of a good ring, each with one thing wrong. */
Test(ring, one_thing_wrong)
{
	enum {
		STATE = PERFRING_RING_STATE_AT
	};
#define MEMBER(name) (STATE + (int64_t)offsetof(struct perfring_ring_state, name))
	static const struct {
		const char *what;
		int64_t at, told;
		uint64_t value;
		unsigned size;
	} faults[] = {
		{"magic", MEMBER(magic), 2048, 1, 8},
		{"byte order", MEMBER(magic), 2048, UINT64_C(0x7065726672696e67), 8},
		{"version", MEMBER(version), 2056, 2, 4},
		{"version", MEMBER(version), 2056, 0, 4},
		{"flags", MEMBER(flags), 2060, 0xffffffff, 4},
		{"OVERWRITE and STRICT", MEMBER(flags), 2060, 5, 4},
		{"STRICT and LEASED", MEMBER(flags), 2060, 12, 4},
		{"data_offset", 1040, 1040, 0, 8},
		{"data_offset", 1040, 1040, 8192, 8},
		{"data_offset", 1040, 1040, UINT64_MAX - 4095, 8},
		{"data_size", 1048, 1048, 0, 8},
		{"data_size", 1048, 1048, 12288, 8},
		{"data_size", 1048, 1048, 8, 8},
		{"data_size", 1048, 1048, UINT64_C(1) << 31, 8},
		{"data_size", 1048, 1048, UINT64_C(1) << 63, 8},
		{"data_size", 1048, -1, UINT64_C(1) << 30, 8},
		{"aux_size", 1080, 1080, 12288, 8},
		{"aux_size", 1080, -1, 4096, 8},
		{"aux_offset", 1072, 1072, 4096, 8},
		{"marks_offset", MEMBER(marks_offset), MEMBER(marks_offset), 4096, 8},
		{"marks_size", MEMBER(marks_size), -1, 4096, 8},
		{"owners_offset", MEMBER(owners_offset), -1, 4096, 8},
	};
#undef MEMBER
	unsigned fds, maps, nr = sizeof(faults) / sizeof(faults[0]);
	struct perfring_ring ring, other;
	unsigned char bytes[5 * PAGE];
	char name[64];
	int fd;

	name_file(name, sizeof(name));
	cr_assert_eq(create(&ring, 4, 0, name), 0);
	cr_assert_eq(pread(ring.fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	fd = open(name, O_RDWR | O_CLOEXEC);
	cr_assert_eq(perfring_ring_attach(&other, fd, 0, NULL), 0);
	perfring_ring_close(&other);
	maps = mappings();
	fds = open_fds();
	for (unsigned i = 0; i < nr; i++) {
		uint32_t half = (uint32_t)faults[i].value;

		cr_assert_eq(pwrite(fd, faults[i].size == 8 ? (const void *)&faults[i].value : &half, faults[i].size,
				    (off_t)faults[i].at),
			     (ssize_t)faults[i].size);
		refused(fd, faults[i].told, faults[i].what);
		cr_assert_eq(pwrite(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	}
	/* Cut off anywhere. */
	for (off_t size = 5 * PAGE - 1; size >= 0; size -= size > 4 * PAGE || size < 3000 ? 97 : 1021) {
		cr_assert_eq(ftruncate(fd, size), 0);
		refused(fd, size < 2 * PAGE ? 0 : size, "cut off");
	}
	cr_assert_eq(pwrite(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	cr_assert_eq(mappings(), maps);
	cr_assert_eq(open_fds(), fds);
	cr_assert_eq(perfring_ring_attach(&other, fd, 0, NULL), 0);
	/* More behind it than it says is nobody's business. */
	cr_assert_eq(ftruncate(fd, 50 * PAGE), 0);
	perfring_ring_close(&other);
	cr_assert_eq(perfring_ring_attach(&other, fd, 0, NULL), 0);
	cr_assert_eq(other.size, 4 * PAGE);
	close_two(&ring, &other);
	close(fd);
	unlink(name);
}

Test(ring, owners_of_a_shared_ring)
{
	const int64_t at = PERFRING_RING_STATE_AT + (int64_t)offsetof(struct perfring_ring_state, owners);
	struct perfring_ring ring;
	uint32_t owners;

	make(&ring, 4, PERFRING_RING_STRICT);
	owners = perfring_ring_state_of(ring.page)->owners;
	cr_assert_eq(owners, 64);
	perfring_ring_state_of(ring.page)->owners = 0;
	refused(ring.fd, at, "no owners");
	perfring_ring_state_of(ring.page)->owners = 1025;
	refused(ring.fd, at, "too many owners");
	perfring_ring_state_of(ring.page)->owners = 1024;
	refused(ring.fd, -1, "more owners than there is space for");
	perfring_ring_close(&ring);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Numbers that somebody might have forgotten. */
static uint64_t draw_word(uint64_t *state)
{
	static const uint64_t words[] = {0,          1,          4,          7,          8,
					 24,         64,         4095,       4096,       8192,
					 12288,      16384,      65536,      1u << 30,   1u << 31,
					 UINT32_MAX, UINT64_MAX, 1ull << 63, 1ull << 47, UINT64_MAX - 4095};
	uint64_t number = draw(state);

	if (number % 3 == 0)
		return draw(state);
	number = words[draw(state) % (sizeof(words) / sizeof(words[0]))];
	return draw(state) % 4 ? number : number + draw(state) % 16 - 8;
}

/* Every use of a ring that was attached; what it gives does not matter, only where it looks and stores. */
static void use(struct perfring_ring *ring, uint64_t *state)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_reader reader;
	volatile unsigned char byte;
	uint64_t sum = 0, position, size;
	int error;

	for (uint64_t at = 0; at < ring->span; at += PAGE)
		byte = ring->data[at];
	byte = ring->data[ring->span - 1];
	(void)byte;
	perfring_page_to_time(ring->page, draw(state), &position);
	error = perfring_snapshot_take(&snapshot, ring, 2);
	if (error == 0) {
		while (perfring_snapshot_next(&snapshot, &record) == 1)
			for (unsigned i = 0; i < record->size; i++)
				sum += ((const unsigned char *)record)[i];
		while (perfring_snapshot_previous(&snapshot, &record) == 1)
			sum += record->size;
		position = snapshot.claimed;
		for (unsigned i = 0;
		     i < 4096 && perfring_snapshot_unfinished(&snapshot, &position, &record, &size) == 1; i++)
			sum += size;
		perfring_snapshot_close(&snapshot);
	}
	if (ring->flags & PERFRING_RING_READ_ONLY)
		return;
	if (perfring_reader_open(&reader, ring, draw(state) % 2 ? PERFRING_READER_COPY : 0) == 0) {
		if (perfring_reader_observe(&reader) < 0)
			perfring_reader_skip(&reader);
		while ((error = perfring_reader_next(&reader, &record)) == 1)
			for (unsigned i = 0; i < record->size; i++)
				sum += ((const unsigned char *)record)[i];
		if (error < 0)
			perfring_reader_skip(&reader);
		perfring_reader_return(&reader);
		perfring_reader_close(&reader);
	}
	if (perfring_writer_open(&writer, ring, NULL) == 0) {
		for (unsigned i = 0; i < 100; i++) {
			size = 8 + 8 * (draw(state) % (draw(state) % 8 ? 60 : 2000));
			if (perfring_writer_reserve(writer, NULL, size, &claim)) {
				memset(claim.space, 0x5a, (size_t)size);
				memcpy(claim.space, &(struct perf_event_header){SWITCH, 0, (uint16_t)size}, 8);
				if (draw(state) % 4)
					perfring_writer_commit(writer, &claim);
				else
					perfring_writer_discard(writer, &claim);
			}
			/* A peer that does not stop at that. */
			if (draw(state) % 8 == 0)
				perfring_page_return(ring->page, draw_word(state));
			if (draw(state) % 32 == 0)
				perfring_page_publish(ring->page, draw_word(state));
		}
		perfring_writer_reset(writer);
		perfring_writer_pause(writer, draw(state) % 2);
		perfring_writer_flush(writer);
		perfring_writer_close(writer);
	}
	perfring_wakeup_poll(ring);
	perfring_wakeup_wait(ring, draw(state), 0);
	(void)sum;
}

/* Random bytes in control page and data: refused with the place, or a ring whose use stays inside it. */
Test(ring, scribbled_over, .timeout = 120)
{
	static const uint32_t kinds[] = {0, 2, 3, 4, 8}; /* enum perfring_ring_flag */
	unsigned fds, maps, accepted = 0, said_no = 0, size;
	struct perfring_ring rings[5], other;
	static unsigned char good[5][64 * PAGE], guard[PAGE];
	uint64_t sizes[5], random = 88172645463325252;
	struct perfring_fault fault;
	struct perfring_writer *writer;
	struct stat status;

	memset(guard, 0xee, sizeof(guard));
	for (unsigned i = 0; i < 5; i++) {
		struct perfring_ring_options options = {
			.pages = 4, .flags = kinds[i], .owners = 4, .chunk = kinds[i] == 8 ? 1024 : 0};

		options.aux_pages = i == 1;
		cr_assert_eq(perfring_ring_create(&rings[i], &options), 0);
		if (kinds[i] < 4) {
			writer = open_writer(&rings[i]);
			for (uint64_t k = 0; k < 100; k++)
				put(writer, k);
			perfring_writer_close(writer);
		}
		cr_assert_eq(fstat(rings[i].fd, &status), 0);
		sizes[i] = (uint64_t)status.st_size;
		cr_assert_leq(sizes[i], sizeof(good[i]));
		cr_assert_eq(pread(rings[i].fd, good[i], (size_t)sizes[i], 0), (ssize_t)sizes[i]);
	}
	fds = open_fds();
	maps = mappings();
	for (unsigned i = 0; i < 10000; i++) {
		unsigned k = (unsigned)(draw(&random) % 5), nr = 1 + (unsigned)(draw(&random) % 6);
		unsigned flags = draw(&random) % 8 ? 0 : PERFRING_RING_READ_ONLY;
		int error;

		for (; nr; nr--) {
			uint64_t word = draw_word(&random), where = draw(&random) % 16;
			uint64_t at = where < 8    ? 2048 + 8 * (draw(&random) % 48) /* the state */
				      : where < 11 ? 1024 + 8 * (draw(&random) % 8)  /* the kernel's positions */
				      : where < 12 ? 8 * (draw(&random) % 12)
				      : where < 15 ? PAGE + 8 * (draw(&random) % 2048)
						   : draw(&random) % (sizes[k] - 8);

			/* The magic and the version are what most would stumble over. */
			if (at >= 2048 && at < 2060 && draw(&random) % 16)
				at = 2060;
			size = draw(&random) % 2 ? 8 : draw(&random) % 2 ? 4 : 1;
			cr_assert_eq(pwrite(rings[k].fd, &word, size, (off_t)at), (ssize_t)size);
		}
		fault.what = NULL;
		error = perfring_ring_attach(&other, rings[k].fd, flags, &fault);
		if (error == 0) {
			accepted++;
			cr_assert_leq(PAGE + other.size, sizes[k]);
			cr_assert_eq(other.span, 2 * other.size);
			cr_assert_leq(other.mapping_size, 2 * sizes[k]);
			use(&other, &random);
			perfring_ring_close(&other);
		} else {
			said_no++;
			cr_assert_eq(error, -EBADMSG, "%s", strerror(-error));
			cr_assert_not_null(fault.what);
			cr_assert_geq(fault.at, 0);
		}
		cr_assert_eq(pwrite(rings[k].fd, good[k], (size_t)sizes[k], 0), (ssize_t)sizes[k]);
	}
	cr_assert_eq(open_fds(), fds);
	cr_assert_eq(mappings(), maps);
	cr_assert_gt(accepted, 2000, "%u", accepted);
	cr_assert_gt(said_no, 2000, "%u", said_no);
	for (unsigned i = 0; i < 5; i++)
		perfring_ring_close(&rings[i]);
}

/* ---- what is left behind: nothing ---- */

Test(ring, nothing_stays)
{
	static const uint32_t kinds[] = {0, 2, 3, 4, 8, 16};
	struct perfring_ring ring, other;
	struct perfring_writer *writer;
	unsigned fds = 0, maps = 0;

	for (unsigned i = 0; i < 40; i++) {
		/* What the first round allocates for good is no leak. */
		if (i == 1) {
			fds = open_fds();
			maps = mappings();
		}
		for (unsigned k = 0; k < 6; k++) {
			make(&ring, k == 5 ? 1024 : 4, kinds[k]);
			cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL), 0);
			cr_assert_neq(other.fd, ring.fd);
			cr_assert_neq(fcntl(ring.fd, F_GETFD) & FD_CLOEXEC, 0);
			cr_assert_neq(fcntl(other.fd, F_GETFD) & FD_CLOEXEC, 0);
			if (k < 3) {
				writer = open_writer(&other);
				perfring_writer_close(writer);
			}
			close_two(&ring, &other);
			/* Closed twice is closed. */
			perfring_ring_close(&ring);
		}
	}
	cr_assert_eq(open_fds(), fds);
	cr_assert_eq(mappings(), maps);
}

/* In a child: memory for the mapping is refused.  200: no filter can be had here, as in an emulator. */
static int create_unpopulated(const char *file)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
	struct perfring_ring ring;
	unsigned fds = open_fds(), maps;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 200;
	maps = mappings();
	if (create(&ring, 4, 0, file) != -ENOMEM)
		return 1;
	if (open_fds() != fds || mappings() != maps)
		return 2;
	return access(file, F_OK) ? 0 : 3;
}

/* Failures, one after the other: fds, then address space, then memory. */
Test(ring, nothing_stays_of_what_failed)
{
	unsigned fds = open_fds(), maps;
	struct rlimit limit, old;
	struct perfring_ring ring, other;
	char name[64];
	int status;
	pid_t child;

	name_file(name, sizeof(name));
	make(&ring, 4, 0);
	maps = mappings();
	getrlimit(RLIMIT_NOFILE, &old);
	limit = old;
	limit.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_eq(create(&other, 4, 0, NULL), -EMFILE);
	cr_assert_eq(create(&other, 4, 0, name), -EMFILE);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, 0, NULL) < 0, true);
	cr_assert_null(other.page);
	setrlimit(RLIMIT_NOFILE, &old);
	cr_assert_neq(access(name, F_OK), 0);
	cr_assert_eq(mappings(), maps);
#if !IS_SANITIZED
	getrlimit(RLIMIT_AS, &old);
	limit = old;
	limit.rlim_cur = 1u << 29;
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	/* An emulator gives more. */
	if (mmap(NULL, 1u << 29, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		cr_assert_eq(create(&other, 65536, 0, name), -ENOMEM);
	setrlimit(RLIMIT_AS, &old);
	cr_assert_neq(access(name, F_OK), 0);
#endif
	child = fork();
	if (child == 0)
		_exit(create_unpopulated(name));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 200), "%x", (unsigned)status);
	perfring_ring_close(&ring);
	cr_assert_eq(open_fds(), fds);
}
