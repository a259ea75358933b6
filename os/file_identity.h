/* file_identity.h - whether an open file is one that was read before.
 *
 * Numbers of inodes are used again: the size and the time of the last write are compared too.  The time of the last change is not: a
 * link more changes it and no byte of the file (perf record links the objects that it saw into its cache of build ids).
 *
 * Any thread.
 */
#ifndef PERFRING_OS_FILE_IDENTITY_H
#define PERFRING_OS_FILE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file as it was read. */
struct perfring_os_identity {
	uint64_t words[5]; /* device, inode, size, seconds and ns of the last write */
};

static inline struct perfring_os_identity perfring__os_identity_of(const struct stat *status)
{
	return (struct perfring_os_identity){{(uint64_t)status->st_dev, (uint64_t)status->st_ino,
					      (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
					      (uint64_t)status->st_mtim.tv_nsec}};
}

/* An order of files, for trees: <0, 0, >0. */
static inline int perfring__os_identity_compare(const struct perfring_os_identity *one,
						const struct perfring_os_identity *other)
{
	size_t i = 0;

	while (i < 4 && one->words[i] == other->words[i])
		i++;
	return one->words[i] < other->words[i] ? -1 : one->words[i] > other->words[i];
}

/* Whether that file is the one that was read. */
static inline bool perfring__os_identity_is(const struct perfring_os_identity *identity, const struct stat *status)
{
	const struct perfring_os_identity now = perfring__os_identity_of(status);

	return !perfring__os_identity_compare(identity, &now);
}

#endif
