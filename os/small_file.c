/* small_file.c - small files of /proc and /sys, read at once.
 *
 * open, read, close: no stdio, which handlers may not use.
 */
#include "small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int64_t perfring__os_file_read_at(int at, const char *path, char *text, size_t size)
{
	int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got;
	int error;

	if (fd < 0)
		return -errno;
	got = read(fd, text, size - 1);
	error = errno;
	close(fd);
	if (got < 0)
		return -error;
	while (got && text[got - 1] == '\n')
		got--;
	text[got] = 0;
	return (int64_t)strlen(text);
}

int64_t perfring__os_file_read(const char *path, char *text, size_t size)
{
	return perfring__os_file_read_at(AT_FDCWD, path, text, size);
}

uint64_t perfring__os_file_number(const char *path, uint64_t otherwise)
{
	char text[32];

	return perfring__os_file_read(path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : otherwise;
}

int perfring__os_file_load(const char *path, char **text, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? -errno : 0;
	size_t filled = 0, capacity = 0;
	char *grown;
	ssize_t got;

	*text = NULL;
	for (got = 1; !error && got;) {
		if (capacity - filled < 4096) {
			capacity = 2 * capacity + 16384;
			grown = realloc(*text, capacity);
			if (!grown) {
				error = -ENOMEM;
				break;
			}
			*text = grown;
		}
		got = read(fd, *text + filled, capacity - filled - 1);
		if (got > 0)
			filled += (size_t)got;
		else if (got < 0 && errno != EINTR)
			error = -errno;
	}
	if (fd >= 0)
		close(fd);
	if (error) {
		free(*text);
		*text = NULL;
		return error;
	}
	(*text)[filled] = 0;
	*size = filled;
	return 0;
}

int64_t perfring__os_file_pread(int fd, void *buffer, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

int perfring__os_file_raise(int fd)
{
	struct rlimit limit;
	int from = 1000, high;

	if (fd < 0)
		return fd;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < (rlim_t)from + 16)
		from = limit.rlim_cur > 32 ? (int)limit.rlim_cur - 16 : 0;
	high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}
