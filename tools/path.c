/* path.c - what the name of a file leads to, link by link.
 *
 * Follows links itself, at most 40 as the kernel does.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "path.h"

enum {
	LINKS = 40, /* of links in a row, as the kernel */
};

bool tool_path_is_descriptor(const char *path)
{
	char name[PATH_MAX], link[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s", path) >= (int)sizeof(name))
		return false;
	for (int i = 0; i < LINKS; i++) {
		int fd = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct statfs about = {.f_type = 0};
		ssize_t length;
		char *end;

		if (fd < 0)
			return false;
		fstatfs(fd, &about);
		length = readlinkat(fd, "", link, sizeof(link) - 1);
		close(fd);
		if (about.f_type == PROC_SUPER_MAGIC)
			return true;
		if (length <= 0)
			return false;
		link[length] = 0;
		end = *link == '/' ? name : strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
		if ((size_t)length >= sizeof(name) - (size_t)(end - name))
			return false;
		strcpy(end, link);
	}
	return false;
}
