/* package.c - which package has the debug file of an object: dpkg-query is asked which one has the object.
 *
 * symbol_names.c asks, when an object has no debug file, for the sentence that says what to install.  Runs dpkg-query, where there is
 * one, without a shell.
 */
#include "package.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The first line of `dpkg-query --search PATH`: "dash: /bin/dash".  Returns whether there is one. */
static bool ask(const char *path, char *line, size_t space)
{
	char search[] = "--search", name[] = "dpkg-query", copy[4096];
	char *words[] = {name, search, copy, NULL};
	posix_spawn_file_actions_t actions;
	size_t size = 0;
	ssize_t got;
	pid_t child;
	int ends[2], error;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy) || pipe2(ends, O_CLOEXEC))
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(&child, name, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!error && size < space - 1) {
		got = read(ends[0], line + size, space - 1 - size);
		if (got <= 0 && !(got < 0 && errno == EINTR))
			break;
		size += got > 0 ? (size_t)got : 0;
	}
	line[size] = 0;
	close(ends[0]); /* it may have more to say of a path that is a pattern */
	while (!error && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return size;
}

bool tool_package_of(const char *path, char *text, size_t space)
{
	char line[1024];

	/* of files in /usr/lib, some packages say /lib, which leads there */
	if (*path != '/' ||
	    (!ask(path, line, sizeof(line)) && (strncmp(path, "/usr/", 5) || !ask(path + 4, line, sizeof(line)))))
		return false;
	line[strcspn(line, ":, \n")] = 0;
	if (!strncmp(line, "libc6", 5))
		snprintf(text, space, "libc6-dbg");
	else
		snprintf(text, space, "%.200s-dbgsym", line);
	return *line;
}
