/* lines.h - a text file of /proc, line by line.
 *
 * Context: also signal handlers: open, read, close, no allocation.  The struct takes 8 KiB of stack; errno may change.
 */
#ifndef PERFRING_OS_LINES_H
#define PERFRING_OS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfring_os_lines {
	int fd;
	size_t from, filled;
	bool is_skipping; /* the rest of a line that was too long */
	int error;        /* of read: then there are no more lines */
	char room[8192];
};

/* A process may end, and may be another user's, at any time; a machine may lack a file, or hide it: that is 0.  What this process
 * is short of, and what cannot be read, is an error, and stays one. */
int perfring_os_pass_over(int error);

/* Returns 0 or -errno. */
int perfring_os_lines_open(struct perfring_os_lines *lines, const char *path);

/* The next line without its newline, NUL-terminated, the end of a very long one cut off; NULL at the end, or when the
 * file cannot be read on (a process that went).  Valid until: the next call. */
char *perfring_os_lines_next(struct perfring_os_lines *lines);
void perfring_os_lines_close(struct perfring_os_lines *lines);

/* The rest of the first line that is "NAME: REST", with blanks or without, cut to size - 1 bytes.  Returns 1, 0 (there is none)
 * or -errno. */
int perfring_os_lines_find(const char *path, const char *name, char *rest, size_t size);

/* The number in that place; `otherwise` without one. */
uint64_t perfring_os_lines_number(const char *path, const char *name, int base, uint64_t otherwise);

#endif
