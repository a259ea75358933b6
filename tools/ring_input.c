/* ring_input.c - a ring as input: its records as a perf.data file in memory, so that every command that reads files reads it.
 *
 * tool_ring_open of tools.h: input.c tries it before perf.data.  Takes a snapshot, and writes it by file_writer.h into a memfd.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/file_writer.h>
#include <perfring/snapshot.h>
#include "tools.h"

const char *tool_ring_reason(int error)
{
	return error == -EAGAIN ? "its writer fills it faster than it can be copied" : strerror(-error);
}

struct copy {
	const struct perfring_ring *ring;
	struct perfring_snapshot snapshot;
	struct perf_event_attr attr;
	struct perfring_format format;
	struct perfring_file_writer *writer;
	uint64_t id;
	uint64_t time; /* of its newest record */
	uint64_t lost; /* in its LOST records */
};

static int put_records(struct copy *copy)
{
	struct perfring_item item = {.format = &copy->format};
	struct perfring_record lost;
	int error = 0;

	while (!error && perfring_snapshot_next(&copy->snapshot, &item.record)) {
		item.time = perfring_format_time_of(&copy->format, item.record);
		if (item.time > copy->time)
			copy->time = item.time;
		if (item.record->type == PERFRING_RECORD_LOST &&
		    !perfring_record_decode(&copy->format, item.record, &lost, NULL))
			copy->lost += lost.is.lost.lost;
		error = perfring_file_writer_put_item(copy->writer, &item);
	}
	return error;
}

/* What the ring has refused since it was made, and no record in it says. */
static int put_lost(struct copy *copy)
{
	uint64_t all = PERFRING_LOAD(&perfring_ring_state_of(copy->ring->page)->lost_total);
	struct perfring_record record = {.type = PERFRING_RECORD_LOST};

	if (all <= copy->lost)
		return 0;
	record.is.lost = (struct perfring_record_lost){.id = copy->id, .lost = all - copy->lost};
	record.trailer.id = record.trailer.identifier = copy->id;
	record.trailer.time = copy->time;
	return perfring_file_writer_put(copy->writer, 0, &record);
}

static int write_file(struct copy *copy, int fd)
{
	int error = perfring_file_writer_open(&copy->writer, fd);

	if (!error)
		error = perfring_file_writer_add_event(copy->writer, &copy->attr, NULL);
	if (!error && copy->id)
		error = perfring_file_writer_add_id(copy->writer, 0, copy->id);
	if (!error)
		error = perfring_file_writer_begin(copy->writer);
	if (!error)
		error = put_records(copy);
	if (!error)
		error = put_lost(copy);
	if (!error)
		error = perfring_file_writer_finish(copy->writer);
	perfring_file_writer_close(copy->writer);
	return error;
}

/* The memory's descriptor stays with the file that is read from it.  Returns 0 or -errno. */
static int open_copy(struct copy *copy, struct perfring_file **file)
{
	int fd = memfd_create("ring", MFD_CLOEXEC), error;
	char name[32];

	if (fd < 0)
		return -errno;
	error = write_file(copy, fd);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (!error)
		error = perfring_file_open(file, name);
	close(fd);
	return error;
}

int tool_ring_fd(const char *path)
{
	/* Nor is a pipe waited for. */
	return strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
				 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

static int attach(struct perfring_ring *ring, const char *path)
{
	struct stat file;
	int fd, error;

	/* To open a device or a pipe may do something. */
	if ((strcmp(path, "-") ? stat(path, &file) : fstat(STDIN_FILENO, &file)) || !S_ISREG(file.st_mode))
		return -EINVAL;
	fd = tool_ring_fd(path);
	if (fd < 0)
		return -errno;
	error = perfring_ring_attach(ring, fd, PERFRING_RING_READ_ONLY, NULL);
	close(fd);
	return error;
}

int tool_ring_open(const char *path, struct perfring_file **file)
{
	struct perfring_ring ring;
	struct copy copy = {.ring = &ring};
	int error;

	if (attach(&ring, path))
		return 0;
	if (!perfring_ring_attr(&ring, &copy.attr, &copy.id) || perfring_format_from_attr(&copy.format, &copy.attr)) {
		tool_complain("%s: a ring that does not say what its records are: perfring ring shows it", path);
		perfring_ring_close(&ring);
		return -EINVAL;
	}
	error = perfring_snapshot_take(&copy.snapshot, &ring, 0);
	if (!error && copy.snapshot.fault.what)
		tool_complain("%s: warning: a damaged record: %s: perfring ring shows where", path, copy.snapshot.fault.what);
	if (!error)
		error = open_copy(&copy, file);
	perfring_snapshot_close(&copy.snapshot);
	perfring_ring_close(&ring);
	if (!error)
		return 1;
	tool_complain("%s: a ring: %s", path, tool_ring_reason(error));
	return error;
}
