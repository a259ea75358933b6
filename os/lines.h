/* lines.h - text files of /proc, line by line.
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
	int error;        /* of read, which ends the lines */
	char buffer[8192];
};

/* Turns errors that are no fault into 0: a process may end or belong to another user, a machine may lack or hide a
 * file.  Any other error, such as a lack of memory or of fds, is returned. */
int perfring__os_pass_over(int error);

/* Returns 0 or -errno. */
int perfring__os_lines_open(struct perfring_os_lines *lines, const char *path);

/* The next line without its newline, NUL-terminated; a very long one is truncated.  NULL at the end, or after an error
 * (a process that ended).  Valid until: the next call. */
char *perfring__os_lines_next(struct perfring_os_lines *lines);
void perfring__os_lines_close(struct perfring_os_lines *lines);

/* The rest of the first line "NAME: REST", with any blanks, truncated to size - 1 bytes.  Returns 1, 0 (there is none)
 * or -errno. */
int perfring__os_lines_find(const char *path, const char *name, char *rest, size_t size);

/* The number at the beginning of that rest; `otherwise` without such a line. */
uint64_t perfring__os_lines_number(const char *path, const char *name, int base, uint64_t otherwise);

#endif
