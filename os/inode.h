/* inode.h - whether an open file is the one that a record of a mapping names.
 *
 * Any thread; not signal handlers.
 */
#ifndef PERFRING_OS_INODE_H
#define PERFRING_OS_INODE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the file has that inode number and generation (0: not known, as records of processes that ran already have it), as
 * MMAP2 has them.  Devices are not compared: they may have other numbers after a boot, and stat has others than records have on
 * btrfs and overlayfs.  Where stat cannot decide, as of a file of overlayfs whose inode is another layer's, the calling thread maps
 * the file and reads the kernel's own record of that; where no event may be opened, the number that stat has decides. */
bool perfring__os_inode_is(int fd, uint64_t ino, uint64_t generation);

#endif
