/* object.c - a file that somebody else has named, opened without harm. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "object.h"

/* Where process `pid` sees that path: its links lead nowhere outside of its own root.  Returns a descriptor or -errno. */
static int find_place(int32_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char name[32];
	int root, place;

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	place = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (place < 0)
		place = -errno;
	close(root);
	return place;
}

/* What this process is short of: then it is not known where the other one sees the path, and the file by that name
 * here may be another. */
static bool is_short(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EIO;
}

/* O_PATH opens nothing: a device, which may act on being opened, and a pipe are known by it and let be; what was
 * found to be a regular file is then opened itself, whatever its name leads to meanwhile. */
int perfring_os_object_open(int32_t pid, const char *path)
{
	int place = pid > 0 ? find_place(pid, path) : -ENOENT, fd;
	char name[32];
	struct stat file;

	if (is_short(place))
		return place;
	if (place < 0)
		place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, &file)) {
		fd = -errno;
	} else if (!S_ISREG(file.st_mode)) {
		fd = -EINVAL;
	} else {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
		/* O_NONBLOCK: one that is leased is not waited for */
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}
