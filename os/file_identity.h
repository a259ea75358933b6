/* file_identity.h - whether an open file is one that was read before.
 *
 * Numbers of inodes are used again: the size, the time of the last write and, where the file system has it, the time of birth are
 * compared too; the files of some systems (Nix, OSTree) all have one time of the last write.  The time of the last change is not compared:
 * one more hard link changes it and no byte of the file, and perf record links the objects that it saw into its cache of build ids.
 * A write that leaves size and times as they were is not seen.
 *
 * Any thread.
 */
#ifndef PERFRING_OS_FILE_IDENTITY_H
#define PERFRING_OS_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* A file as it was read. */
struct perfring_os_identity {
	uint64_t device, inode, size;
	int64_t written_s, born_s;
	uint32_t written_ns, born_ns;
};

/* Returns 0 or -errno: all is 0. */
int perfring__os_identity_of(int fd, struct perfring_os_identity *identity);

/* An order of files, for trees: < 0, 0, > 0. */
int perfring__os_identity_compare(const struct perfring_os_identity *one, const struct perfring_os_identity *other);

/* Whether the file is the one that was read. */
bool perfring__os_identity_is(const struct perfring_os_identity *identity, int fd);

#endif
