/* cgroup.c - the mount point of the cgroup hierarchy that perf events follow.
 *
 * The hierarchy is that of the controller perf_event, else cgroup2: docs/abi.md 1.1.
 */
#include "cgroup.h"

#include <errno.h>
#include <string.h>

#include "lines.h"

/* The kernel writes characters that could end a field as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' &&
		    at[3] <= '7') {
			*to = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = 0;
}

/* The mount point in a line of mountinfo, which it modifies; NULL for a hierarchy that perf events do not follow.
 * *second: version 2, the second choice. */
static char *mount_of(char *line, bool *second)
{
	char *separator = strstr(line, " - "), *point = line, *end, *rest;
	bool first;

	if (!separator)
		return NULL;
	/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS */
	for (int field = 0; point && field < 4; field++)
		point = strchr(point, ' ') ? strchr(point, ' ') + 1 : NULL;
	end = point ? strchr(point, ' ') : NULL;
	if (!end)
		return NULL;
	*end = 0;
	rest = separator + 3;
	*second = !strncmp(rest, "cgroup2 ", 8);
	/* A controller belongs to one hierarchy only. */
	first = !strncmp(rest, "cgroup ", 7) && strstr(rest, "perf_event");
	if (!*second && !first)
		return NULL;
	unescape(point);
	return point;
}

int perfring__os_cgroup_mount(const char *mounts, char *point, size_t size)
{
	struct perfring_os_lines lines;
	bool found = false, second = true;
	int error = perfring__os_lines_open(&lines, mounts);
	char *line;

	if (error)
		return error;
	while ((!found || second) && (line = perfring__os_lines_next(&lines))) {
		bool is_second;
		char *at = mount_of(line, &is_second);

		if (!at || (found && is_second) || strlen(at) >= size)
			continue;
		memcpy(point, at, strlen(at) + 1);
		found = true;
		second = is_second;
	}
	perfring__os_lines_close(&lines);
	return found ? 0 : lines.error ? lines.error : -ENOENT;
}
