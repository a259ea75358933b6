/* build_id.h - build ids of ELF files and of the kernel.
 *
 * Context: any thread; not signal handlers. */
#ifndef PERFRING_BUILD_ID_H
#define PERFRING_BUILD_ID_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Opens the file that a mapping names, for reading: as process `pid` sees it, which may be in another mount namespace or
 * under another root; here when pid is 0, has gone or may not be looked into, or has no such file.  Only a regular file is ever
 * opened: a device or a pipe by that name is not, not for a moment.  It needs /proc.  Returns a descriptor; -EINVAL (no
 * regular file), -errno. */
PERFRING_API int perfring_object_open(int32_t pid, const char *path);

/* Build ids, from the GNU note of an ELF file, or of the running kernel.  Return the bytes of it; -ENODATA (it has none),
 * -EINVAL (no ELF file), -errno.  At most 4096 program headers and 64 KiB of notes are read of a file, so that none costs
 * more than some milliseconds. */
enum {
	PERFRING_BUILD_ID_SIZE = 20
};
PERFRING_API int64_t perfring_build_id_of(const char *path, uint8_t id[PERFRING_BUILD_ID_SIZE]);
PERFRING_API int64_t perfring_build_id_in(int fd, uint8_t id[PERFRING_BUILD_ID_SIZE]);
PERFRING_API int64_t perfring_build_id_of_kernel(uint8_t id[PERFRING_BUILD_ID_SIZE]);

PERFRING_END

#endif
