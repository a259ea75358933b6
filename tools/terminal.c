/* terminal.c - standard output as a terminal: colours, and a pager.
 *
 * report opens a pager, report and doctor ask for colours.  The pager is a child that reads stdout.
 */
#include "terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_dumb(void)
{
	const char *terminal = getenv("TERM");

	return !terminal || !strcmp(terminal, "dumb");
}

bool tool_terminal_has_colours(void)
{
	const char *off = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(off && *off) && !is_dumb();
}

/* Whether a program of this name is in PATH. */
static bool is_here(const char *name)
{
	const char *at = getenv("PATH");
	char path[4096];

	while (at && *at) {
		size_t length = strcspn(at, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)(length < 2048 ? length : 2048), at, name);
		if (!access(path, X_OK))
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

static const char *pager_command(void)
{
	const char *command = getenv("PERFRING_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command && is_here("less"))
		command = "less -R";
	return command && *command && strcmp(command, "cat") != 0 ? command : NULL;
}

static void run(const char *command, int input)
{
	/* less: what fits on one screen is left on it */
	if (dup2(input, STDIN_FILENO) >= 0 && !setenv("LESS", "FRX", 0))
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void tool_pager_open(struct tool_pager *pager)
{
	const char *command = pager_command();
	int ends[2];

	if (pager->pid || !command || !isatty(STDOUT_FILENO) || is_dumb() || pipe2(ends, O_CLOEXEC))
		return;
	fflush(stdout);
	pager->pid = fork();
	if (!pager->pid)
		run(command, ends[0]);
	if (pager->pid > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
		/* a reader that leaves early is no fault; ^C is the pager's while it is there */
		signal(SIGPIPE, SIG_IGN);
		signal(SIGINT, SIG_IGN);
	} else {
		pager->pid = 0;
	}
	close(ends[0]);
	close(ends[1]);
}

void tool_pager_close(struct tool_pager *pager)
{
	int nothing;

	if (!pager->pid)
		return;
	fflush(stdout);
	/* the pipe's last end */
	nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nothing < 0 || dup2(nothing, STDOUT_FILENO) < 0)
		close(STDOUT_FILENO);
	if (nothing >= 0)
		close(nothing);
	while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager->pid = 0;
}
