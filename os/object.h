/* object.h - safe opening of a file whose name is not trusted.
 *
 * symbol/, file/build_id.c and event/uprobe.c open objects by it.  Opening a device or a pipe could act, or block: so those are
 * never opened.
 */
#ifndef PERFRING_OS_OBJECT_H
#define PERFRING_OS_OBJECT_H

#include <stdint.h>

/* Opens a regular file for reading, never a device or a pipe, and does not wait.  pid: the path is as that process sees
 * it; 0, or where that fails: as this one does.  Returns an fd, closed by exec; -EINVAL (no regular file); or -errno.
 * Context: not signal handlers. */
int perfring__os_object_open(int32_t pid, const char *path);

/* The same below a folder, which links do not leave: as a process whose root it is sees it.  Context: not signal handlers. */
int perfring__os_object_open_in(const char *root, const char *path);

/* The same, as that process alone sees it: what has the path here may be another file. */
int perfring__os_object_open_as(int32_t pid, const char *path);

#endif
