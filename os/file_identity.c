/* file_identity.c - whether an open file is one that was read before. */
#include "file_identity.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int perfring__os_identity_of(int fd, struct perfring_os_identity *identity)
{
	struct statx file;

	*identity = (struct perfring_os_identity){.device = 0};
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &file))
		return -errno;
	identity->device = (uint64_t)file.stx_dev_major << 32 | file.stx_dev_minor;
	identity->inode = file.stx_ino;
	identity->size = file.stx_size;
	identity->written_s = file.stx_mtime.tv_sec;
	identity->written_ns = file.stx_mtime.tv_nsec;
	if (file.stx_mask & STATX_BTIME) {
		identity->born_s = file.stx_btime.tv_sec;
		identity->born_ns = file.stx_btime.tv_nsec;
	}
	return 0;
}

int perfring__os_identity_compare(const struct perfring_os_identity *one, const struct perfring_os_identity *other)
{
	static_assert(sizeof(*one) == 5 * sizeof(uint64_t) + 2 * sizeof(uint32_t), "no bytes between the members");
	return memcmp(one, other, sizeof(*one));
}

bool perfring__os_identity_is(const struct perfring_os_identity *identity, int fd)
{
	struct perfring_os_identity now;

	return !perfring__os_identity_of(fd, &now) && !perfring__os_identity_compare(identity, &now);
}
