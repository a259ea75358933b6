/* small_file.h - small files of /proc and /sys, read at once.
 *
 * Most rooms read sysctls and sysfs by it.
 */
#ifndef PERFRING_OS_SMALL_FILE_H
#define PERFRING_OS_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The beginning of a file as text, by one read(2): at most size - 1 bytes (size: at least 1), NUL-terminated, without newlines at its
 * end; _at as openat(2).  The text may lie where the path is.  A FIFO is not waited for.  Returns the text's length or -errno.
 * Context: also signal handlers.  No lock, no allocation; errno may change. */
int64_t perfring__os_file_read(const char *path, char *text, size_t size);
int64_t perfring__os_file_read_at(int at, const char *path, char *text, size_t size);

/* The decimal number at the beginning of a file; `otherwise` when it cannot be read, or is empty.  Context: as
 * above. */
uint64_t perfring__os_file_number(const char *path, uint64_t otherwise);

/* All of a file, NUL-terminated: free(*text).  Returns 0; or -errno, with *text NULL.  Context: not signal handlers. */
int perfring__os_file_load(const char *path, char **text, size_t *size);

/* Reads `size` bytes at `at`.  Returns how many, fewer at the end of the file, or -errno.  Context: also signal handlers; errno
 * may change. */
int64_t perfring__os_file_pread(int fd, void *buffer, size_t size, uint64_t at);

/* Moves fd to a number of 1000 or more, or near RLIMIT_NOFILE, so that the program's own fds keep low numbers; exec
 * closes it.  Returns fd itself where there is no such number, or when it is negative.  Context: also signal
 * handlers; errno may change. */
int perfring__os_file_raise(int fd);

#endif
