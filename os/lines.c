/* lines.c - text files of /proc, line by line.
 *
 * Reads into the struct's buffer; a line longer than that is cut.
 */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int perfring__os_pass_over(int error)
{
	return error == -ENOENT || error == -ESRCH || error == -EACCES || error == -EPERM ? 0 : error;
}

int perfring__os_lines_open(struct perfring_os_lines *lines, const char *path)
{
	lines->error = 0;
	lines->from = 0;
	lines->filled = 0;
	lines->is_skipping = false;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	return lines->fd < 0 ? -errno : 0;
}

/* Reads more bytes.  Returns false at the end, and after an error. */
static bool fill(struct perfring_os_lines *lines)
{
	ssize_t got;

	memmove(lines->buffer, lines->buffer + lines->from, lines->filled - lines->from);
	lines->filled -= lines->from;
	lines->from = 0;
	got = TEMP_FAILURE_RETRY(
		read(lines->fd, lines->buffer + lines->filled, sizeof(lines->buffer) - 1 - lines->filled));
	if (got < 0)
		lines->error = -errno;
	if (got <= 0)
		return false;
	lines->filled += (size_t)got;
	return true;
}

char *perfring__os_lines_next(struct perfring_os_lines *lines)
{
	for (;;) {
		size_t left = lines->filled - lines->from;
		char *line = lines->buffer + lines->from;
		char *end = memchr(line, '\n', left);
		bool is_full = left == sizeof(lines->buffer) - 1, was_skipping = lines->is_skipping;

		if (!end && !is_full && fill(lines))
			continue;
		if (!end && !left)
			return NULL;
		/* A failed fill has moved the last line, which has no newline. */
		line = end ? line : lines->buffer + lines->from;
		lines->is_skipping = !end && is_full;
		lines->from = end ? (size_t)(end + 1 - lines->buffer) : lines->filled;
		*(end ? end : line + left) = 0;
		if (!was_skipping)
			return line;
	}
}

void perfring__os_lines_close(struct perfring_os_lines *lines)
{
	close(lines->fd);
}

int perfring__os_lines_find(const char *path, const char *name, char *rest, size_t size)
{
	struct perfring_os_lines lines;
	int error = perfring__os_lines_open(&lines, path);
	size_t length = strlen(name);
	char *line, *at = NULL;

	if (error)
		return error;
	while (!at && (line = perfring__os_lines_next(&lines))) {
		if (strncmp(line, name, length))
			continue;
		line += length + strspn(line + length, " \t");
		if (*line == ':')
			at = line + 1 + strspn(line + 1, " \t");
	}
	if (at) {
		length = strnlen(at, size - 1);
		memcpy(rest, at, length);
		rest[length] = 0;
	}
	perfring__os_lines_close(&lines);
	return at ? 1 : lines.error;
}

uint64_t perfring__os_lines_number(const char *path, const char *name, int base, uint64_t otherwise)
{
	char text[32];

	return perfring__os_lines_find(path, name, text, sizeof(text)) == 1 ? strtoull(text, NULL, base) : otherwise;
}
