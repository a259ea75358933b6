/* record_side.c - tasks and mappings while a snapshot's rings overwrite, in bounded memory.
 *
 * record_file.c puts tasks and mappings into it while a snapshot waits; a file in memory holds each half.
 *
 *     older   | state | side records          |
 *     newer   |       ^ state                 | side records since | <- the next
 *
 * A file has the older state and all records since.  The newer state is what the file begins with once the older half is
 * dropped: when the newer one is full.  So there are always as many records as one half holds, and of processes that ended
 * earlier nothing.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record_command.h"

enum {
	/* Side records that a half holds: with twice what its state takes, so that a state is not written again for fewer
	 * bytes than it has. */
	HALF = 4 << 20,
};

int tool_record_open_memory(struct recording *recording, struct recorded_side *half)
{
	int ret;

	half->file = memfd_create("perfring record", MFD_CLOEXEC);
	if (half->file < 0)
		return -errno;
	ret = perfring_file_writer_open(&half->writer, half->file);
	if (ret)
		close(half->file);
	else
		ret = tool_record_describe(recording, half->writer);
	if (!ret)
		ret = perfring_file_writer_begin(half->writer);
	if (!ret)
		perfring_file_writer_limit_maps(half->writer, recording->maps_ms, &recording->maps_cut);
	half->state = ret ? 0 : perfring_file_writer_size(half->writer);
	return ret;
}

void tool_record_close_memory(struct recorded_side *half)
{
	if (!half->writer)
		return;
	perfring_file_writer_close(half->writer);
	close(half->file);
	memset(half, 0, sizeof(*half));
}

int tool_record_open_side(struct recording *recording)
{
	struct recorded_side *half = &recording->kept[0];
	struct recorded_pids pids = {0};
	int ret = tool_record_open_memory(recording, half);

	if (!ret)
		ret = tool_record_put_state(recording, half->writer, &pids);
	free(pids.list);
	half->records = ret ? 0 : perfring_file_writer_size(half->writer);
	return ret;
}

void tool_record_close_side(struct recording *recording)
{
	tool_record_close_memory(&recording->kept[0]);
	tool_record_close_memory(&recording->kept[1]);
}

static const struct recorded_side *last_half(const struct recording *recording)
{
	return &recording->kept[recording->kept[1].writer ? 1 : 0];
}

struct perfring_file_writer *tool_record_side(const struct recording *recording)
{
	return last_half(recording)->writer;
}

/* Every process in a half's records: all that are observed. */
static int find_pids(const struct recorded_side *half, struct recorded_pids *pids)
{
	uint64_t size = perfring_file_writer_size(half->writer);
	unsigned char *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, half->file, 0);
	struct perf_event_header header;
	uint32_t pid;

	if (bytes == MAP_FAILED)
		return -errno;
	for (uint64_t at = half->state; size - at >= sizeof(header); at += header.size) {
		memcpy(&header, bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - at)
			break;
		/* Each begins with it. */
		if (header.type != PERFRING_RECORD_FORK && header.type != PERFRING_RECORD_COMM &&
		    header.type != PERFRING_RECORD_MMAP2)
			continue;
		memcpy(&pid, bytes + at + sizeof(header), sizeof(pid));
		tool_record_add_pid(pids, pid);
	}
	munmap(bytes, (size_t)size);
	return 0;
}

/* ---- bounds ---- */

int tool_record_bound_side(struct recording *recording)
{
	const struct recorded_side *last = last_half(recording);
	struct recorded_side next = {.file = -1};
	struct recorded_pids pids = {0};
	int ret;

	if (perfring_file_writer_size(last->writer) - last->records < HALF + 2 * (last->records - last->state))
		return 0;
	ret = tool_record_open_memory(recording, &next);
	if (!ret && !recording->all && !recording->cgroup)
		ret = find_pids(last, &pids);
	if (!ret)
		ret = tool_record_put_state(recording, next.writer, &pids);
	free(pids.list);
	if (ret) {
		tool_record_close_memory(&next);
		return ret;
	}
	next.records = perfring_file_writer_size(next.writer);
	if (recording->kept[1].writer) {
		tool_record_close_memory(&recording->kept[0]);
		recording->kept[0] = recording->kept[1];
	}
	recording->kept[1] = next;
	return 0;
}

/* ---- into a file ---- */

static int put_half(const struct recording *recording, const struct recorded_side *half, uint64_t from)
{
	uint64_t size = half->writer ? perfring_file_writer_size(half->writer) : 0;
	struct iovec piece;
	void *bytes;
	int ret;

	if (size == from)
		return 0;
	bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, half->file, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	piece.iov_base = (char *)bytes + from;
	piece.iov_len = (size_t)(size - from);
	ret = perfring_file_writer_write(recording->writer, &piece, 1);
	munmap(bytes, (size_t)size);
	return ret;
}

int tool_record_put_side(const struct recording *recording)
{
	int ret = put_half(recording, &recording->kept[0], recording->kept[0].state);

	return ret ? ret : put_half(recording, &recording->kept[1], recording->kept[1].records);
}
