/* lines.h - a text file of /proc, line by line, without allocating. */
#ifndef PERFRING_FEATURE_LINES_H
#define PERFRING_FEATURE_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct perfring_lines {
	int fd;
	size_t from, filled;
	bool is_skipping; /* the rest of a line that was too long */
	int error;        /* of read: then there are no more lines */
	char room[8192];
};

/* A process may end, and may be another user's, at any time; a machine may lack a file, or hide it: that is passed over, and 0.
 * What this process is short of, and what cannot be read, is an error. */
int perfring_pass_over(int error);

/* Returns 0 or -errno. */
int perfring_lines_open(struct perfring_lines *lines, const char *path);

/* The next line without its newline, NUL-terminated, the end of a very long one cut off; NULL at the end, or when the
 * file cannot be read on (a process that went).  Valid until: the next call. */
char *perfring_lines_next(struct perfring_lines *lines);
void perfring_lines_close(struct perfring_lines *lines);

#endif
