/* object.c - safe opening of a file whose name is not trusted.
 *
 * Names come from records and from other processes' mount namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "object.h"

/* Finds the path below that root; links stay within it.  Returns an fd or -errno. */
static int find_place(const char *name, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC), place;

	if (root < 0)
		return -errno;
	place = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (place < 0)
		place = -errno;
	close(root);
	return place;
}

/* A lack of resources: what the other process sees stays unknown, and the file of that name here may be another. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EIO;
}

/* O_PATH finds a device or a pipe without opening it, for opening a device may act.  Only a regular file is then
 * opened, by its fd, whatever its name refers to by now.  place: closed; or -errno, which is returned. */
static int open_place(int place)
{
	char name[32];
	struct stat file;
	int fd;

	if (place < 0)
		return place;
	if (fstat(place, &file)) {
		fd = -errno;
	} else if (!S_ISREG(file.st_mode)) {
		fd = -EINVAL;
	} else {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
		/* O_NONBLOCK: does not wait for a lease */
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}

static int find_as(int32_t pid, const char *path)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	return find_place(root, path);
}

int perfring__os_object_open(int32_t pid, const char *path)
{
	int place = pid > 0 ? find_as(pid, path) : -ENOENT;

	if (place < 0 && !is_shortage(place)) {
		place = open(path, O_PATH | O_CLOEXEC);
		if (place < 0)
			place = -errno;
	}
	return open_place(place);
}

int perfring__os_object_open_in(const char *root, const char *path)
{
	return open_place(find_place(root, path));
}

int perfring__os_object_open_as(int32_t pid, const char *path)
{
	return pid > 0 ? open_place(find_as(pid, path)) : -EINVAL;
}
