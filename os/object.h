/* object.h - a file that somebody else has named, opened without harm. */
#ifndef PERFRING_OS_OBJECT_H
#define PERFRING_OS_OBJECT_H

#include <stdint.h>

/* A regular file for reading, never a device or a pipe, for neither of which it waits.  pid: where that process sees
 * the path, else, or when it is 0, where we do.  Returns a descriptor, closed by exec, -EINVAL (no regular file),
 * -errno.  Context: not signal handlers. */
int perfring_os_object_open(int32_t pid, const char *path);

#endif
