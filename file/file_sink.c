/* file_sink.c - bytes at the end of a file or pipe.  A write to a file that fails half-way is cut off.
 *
 * file_compress.c and file_writer.c call it, for one fd, which stays the caller's.  No bytes are kept here.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>
#include "file_sink.h"

int perfring__file_sink_open(struct perfring_file_sink *sink, int fd, bool is_pipe)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	/* pwrite would ignore its offset */
	if (!is_pipe && flags & O_APPEND)
		return -EINVAL;
	if (!is_pipe && lseek(fd, 0, SEEK_CUR) < 0)
		return -errno;
	*sink = (struct perfring_file_sink){.fd = fd, .is_pipe = is_pipe};
	return 0;
}

int perfring__file_sink_clear(const struct perfring_file_sink *sink)
{
	/* EINVAL: a device */
	return ftruncate(sink->fd, 0) && errno != EINVAL ? -errno : 0;
}

/* Makes one system call: for all pieces, or, if `skip` bytes of the first are written, for its rest. */
static ssize_t write_some(const struct perfring_file_sink *sink, uint64_t at, const struct iovec *pieces, int count,
			  size_t skip)
{
	struct iovec rest = {(char *)pieces->iov_base + skip, pieces->iov_len - skip};

	if (skip) {
		pieces = &rest;
		count = 1;
	}
	if (count > IOV_MAX)
		count = IOV_MAX;
	return sink->is_pipe ? writev(sink->fd, pieces, count) : pwritev(sink->fd, pieces, count, (off_t)at);
}

int perfring__file_sink_append(struct perfring_file_sink *sink, const struct iovec *pieces, int count)
{
	uint64_t at = sink->end;
	size_t skip = 0;

	for (;;) {
		struct pollfd wait = {.fd = sink->fd, .events = POLLOUT};
		int error;
		ssize_t done;

		for (; count && skip >= pieces->iov_len; pieces++, count--)
			skip -= pieces->iov_len;
		if (!count)
			break;
		done = write_some(sink, at, pieces, count, skip);
		if (done > 0) {
			at += (uint64_t)done;
			skip += (size_t)done;
			continue;
		}
		error = done ? -errno : -EIO;
		if (error == -EINTR)
			continue;
		if (sink->is_pipe && error == -EAGAIN) {
			poll(&wait, 1, -1);
			continue;
		}
		if (sink->is_pipe)
			sink->end = at;
		else if (ftruncate(sink->fd, (off_t)sink->end))
			return error; /* that of the write says more than that of ftruncate */
		return error;
	}
	sink->end = at;
	return 0;
}

int perfring__file_sink_overwrite(const struct perfring_file_sink *sink, const void *bytes, size_t size)
{
	ssize_t done;

	do
		done = pwrite(sink->fd, bytes, size, 0);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	return done == (ssize_t)size ? 0 : -EIO;
}
