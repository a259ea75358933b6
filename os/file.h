/* file.h - small files of /proc and /sys, which are read in one piece. */
#ifndef PERFRING_OS_FILE_H
#define PERFRING_OS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The beginning of a file as text: at most size - 1 bytes, NUL-terminated, line ends at its end cut off; _at as openat(2).
 * Returns the text's length or -errno.
 * Context: also signal handlers.  No lock, no allocation; errno may change. */
int64_t perfring_os_file_read(const char *path, char *text, size_t size);
int64_t perfring_os_file_read_at(int at, const char *path, char *text, size_t size);

/* The decimal number with which a file begins; `otherwise` when it cannot be read, or is empty.  Context: as above. */
uint64_t perfring_os_file_number(const char *path, uint64_t otherwise);

/* All of a file, NUL-terminated: free(*text).  Returns 0 or -errno, and then *text is NULL.  Context: not signal handlers. */
int perfring_os_file_load(const char *path, char **text, size_t *size);

/* Another number for fd, 1000 or more, or near RLIMIT_NOFILE, closed by exec: out of the way of what the program opens.  Closes
 * fd; returns fd itself where there is no such number, or when it is negative.  Context: also signal handlers. */
int perfring_os_file_raise(int fd);

#endif
