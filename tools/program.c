/* program.c - the COMMAND of record and stat: whether there is such a program, asked before anything is opened for it, and the
 * sentence where there is none. */
#include "program.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "tools.h"

/* -ENOENT or -EACCES: exec would fail so.  0: it may find one. */
static int find(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char place[PATH_MAX];
	int ret = -ENOENT, length;

	if (strchr(name, '/')) {
		if (!faccessat(AT_FDCWD, name, X_OK, AT_EACCESS))
			return 0;
		return errno == ENOENT || errno == EACCES ? -errno : 0;
	}
	for (path = path ? path : "/bin:/usr/bin";; path = end + 1) {
		end = strchrnul(path, ':');
		/* An empty part is the current folder. */
		length = snprintf(place, sizeof(place), "%.*s%s%s", (int)(end - path), path, end > path ? "/" : "", name);
		if (length >= (int)sizeof(place) || !faccessat(AT_FDCWD, place, X_OK, AT_EACCESS))
			return 0;
		if (errno == EACCES)
			ret = -EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return 0;
		if (!*end)
			return ret;
	}
}

void tool_program_complain(const char *who, const char *name, int error)
{
	/* perf record -g dwarf, as some have it in mind: -g takes no value. */
	bool is_chain = !strcmp(name, "dwarf") || !strcmp(name, "fp") || !strcmp(name, "lbr");

	if (error == -ENOENT && !find(name))
		tool_complain("%s: %s: %s: the interpreter of its first line, or its dynamic linker", who, name, strerror(ENOENT));
	else if (error == -ENOENT && is_chain)
		tool_complain("%s: %s: no such program in PATH: -g takes no value, --call-graph %s does", who, name, name);
	else if (error == -ENOENT && !strchr(name, '/'))
		tool_complain("%s: %s: no such program in PATH%s%s", who, name,
			      access(name, F_OK) ? "" : ": one of this folder is ./", access(name, F_OK) ? "" : name);
	else if (error == -EACCES && strchr(name, '/') && !access(name, F_OK) && access(name, X_OK))
		tool_complain("%s: %s: %s: not a program, or chmod +x makes it one", who, name, strerror(EACCES));
	else
		tool_complain("%s: %s: %s", who, name, strerror(-error));
}

bool tool_program_find(const char *who, const char *name)
{
	int error = find(name);

	if (error)
		tool_program_complain(who, name, error);
	return !error;
}
