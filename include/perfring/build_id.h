/* build_id.h - build ids of ELF files, of the kernel and of its modules.
 *
 * A build id is the contents of the ELF note NT_GNU_BUILD_ID; the kernel's and its modules' are in /sys (notes).
 *
 * Context: any thread; not signal handlers.  They open and read files, and allocate. */
#ifndef PERFRING_BUILD_ID_H
#define PERFRING_BUILD_ID_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Opens the file that a mapping names, for reading, as process `pid` sees it (its mount namespace and root).  Uses the caller's
 * own view if pid is 0, or if the process is gone, may not be inspected, or has no such file.  Opens regular files only: devices
 * and pipes are never opened.  Needs /proc.  Returns a file descriptor with O_CLOEXEC, which the caller closes; -EINVAL (no regular
 * file), -errno of opening it. */
PERFRING_API int perfring_object_open(int32_t pid, const char *path);

/* The build id of an ELF file, by path or descriptor (whose offset stays), or of the running kernel, into id.  Returns its length
 * in bytes, 1 to PERFRING_BUILD_ID_SIZE; -ENODATA (there is none), -EINVAL (no ELF file), -errno.  Reads at most 4096 program
 * headers and 64 KiB of notes. */
enum {
	PERFRING_BUILD_ID_SIZE = 20
};
PERFRING_EXPERIMENTAL int64_t perfring_build_id_of(const char *path, uint8_t id[PERFRING_BUILD_ID_SIZE]);
PERFRING_API int64_t perfring_build_id_in(int fd, uint8_t id[PERFRING_BUILD_ID_SIZE]);
PERFRING_API int64_t perfring_build_id_of_kernel(uint8_t id[PERFRING_BUILD_ID_SIZE]);

/* The build id of a loaded module, by the name that its mapping has: "[zram]", or the path of its file.  Returns as above; -EINVAL:
 * not the name of a module. */
PERFRING_API int64_t perfring_build_id_of_module(const char *mapping, uint8_t id[PERFRING_BUILD_ID_SIZE]);

PERFRING_END

#endif
