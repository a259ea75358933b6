/* lines.c - a text file of /proc, line by line, without allocating. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "lines.h"

int perfring_pass_over(int error)
{
	return error == -ENOENT || error == -ESRCH || error == -EACCES || error == -EPERM ? 0 : error;
}

int perfring_lines_open(struct perfring_lines *lines, const char *path)
{
	lines->error = 0;
	lines->from = 0;
	lines->filled = 0;
	lines->is_skipping = false;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	return lines->fd < 0 ? -errno : 0;
}

/* More bytes behind those that are there.  Returns false at the end, and after an error. */
static bool fill(struct perfring_lines *lines)
{
	ssize_t got;

	memmove(lines->room, lines->room + lines->from, lines->filled - lines->from);
	lines->filled -= lines->from;
	lines->from = 0;
	do
		got = read(lines->fd, lines->room + lines->filled, sizeof(lines->room) - 1 - lines->filled);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		lines->error = -errno;
	if (got <= 0)
		return false;
	lines->filled += (size_t)got;
	return true;
}

char *perfring_lines_next(struct perfring_lines *lines)
{
	for (;;) {
		char *line = lines->room + lines->from;
		char *end = memchr(line, '\n', lines->filled - lines->from);
		bool was_skipping = lines->is_skipping;

		if (end) {
			*end = 0;
			lines->from = (size_t)(end + 1 - lines->room);
			lines->is_skipping = false;
			if (was_skipping)
				continue;
			return line;
		}
		if (lines->filled - lines->from == sizeof(lines->room) - 1) {
			lines->room[lines->filled] = 0;
			lines->from = lines->filled;
			lines->is_skipping = true;
			if (was_skipping)
				continue;
			return line;
		}
		if (fill(lines))
			continue;
		if (lines->from == lines->filled || was_skipping)
			return NULL;
		/* a last line without a newline */
		lines->room[lines->filled] = 0;
		line = lines->room + lines->from;
		lines->from = lines->filled;
		return line;
	}
}

void perfring_lines_close(struct perfring_lines *lines)
{
	close(lines->fd);
}
