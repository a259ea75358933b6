/* perfring.c - the `perfring` command: finds the command that was asked for. */
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include "out.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{"record", perfring_tool_record, "record a command or the system into a perf.data file"},
	{"stat", perfring_tool_stat, "count the events of a command or the system"},
	{"report", perfring_tool_report, "samples of a perf.data file by command, object and symbol"},
	{"dump", perfring_tool_dump, "every record of a perf.data file as text"},
	{"convert", perfring_tool_convert, "write a perf.data file as a stream, compressed, in the other byte order, as JSON"},
	{"check", perfring_tool_check, "check that a perf.data file is well-formed, or show where it is not"},
	{"ring", perfring_tool_ring, "the contents of a ring, of a running process or a dead one"},
	{"list", perfring_tool_list, "the events that can be named on this machine"},
	{"gen", perfring_tool_gen, "random records, valid or damaged, for tests and fuzzers"},
	{"doctor", perfring_tool_doctor, "what this machine, kernel, container and user allow"},
};

static void help(FILE *out)
{
	size_t i;

	fputs("usage: perfring COMMAND [OPTIONS]\n\n", out);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
	fputs("\nperfring COMMAND --help says more.  perfring --version, perfring --help.\n"
	      "Exit status: 0 done; 1 failed; 2 usage error.\n",
	      out);
}

uint64_t perfring_tool_now(void)
{
	struct timespec now = {0, 0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

int perfring_tool_status(int child_status, int ended_by)
{
	int by = WIFSIGNALED(child_status) ? WTERMSIG(child_status) : ended_by;

	if (!by)
		return WEXITSTATUS(child_status);
	if (ended_by && (by == SIGINT || by == SIGTERM || by == SIGHUP)) {
		perfring_tool_flush();
		signal(by, SIG_DFL);
		raise(by);
	}
	return 128 + by;
}

bool perfring_tool_open_signals(int *signals, int another, sigset_t *before)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* Blocked signals come even when they are ignored: nohup's must not. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	/* Ignored by who started us, the command's end would not be told. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&set, SIGCHLD);
	if (another)
		sigaddset(&set, another);
	sigprocmask(SIG_BLOCK, &set, before);
	*signals = signalfd(*signals, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*signals < 0)
		perfring_tool_complain("signalfd: %s", strerror(errno));
	return *signals >= 0;
}

bool perfring_tool_is_ending(void)
{
	sigset_t pending;

	return !sigpending(&pending) && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
					 sigismember(&pending, SIGHUP) == 1);
}

bool perfring_tool_is_cut(uint64_t since)
{
	return perfring_tool_is_ending() && perfring_tool_now() - since > UINT64_C(1000000000);
}

bool perfring_tool_flush(void)
{
	int error;

	perfring_out_flush(0);
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	error = errno;
	if (error != EPIPE)
		perfring_tool_complain("standard output: %s", strerror(error));
	return false;
}

static const struct command *command_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	perfring_tool_complain("unknown command '%s' (perfring --help)", name);
	return NULL;
}

int main(int argc, char **argv)
{
	static char asks[] = "--help";
	const struct command *command;

	if (argc < 2) {
		help(stderr);
		return PERFRING_TOOL_MISUSED;
	}
	if (argc > 2 && !strcmp(argv[1], "help")) {
		command = command_of(argv[2]);
		return command ? command->run(2, (char *[]){argv[2], asks, NULL}) : PERFRING_TOOL_MISUSED;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		help(stdout);
		return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("perfring %s\n", perfring_version());
		return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
	}
	command = command_of(argv[1]);
	return command ? command->run(argc - 1, argv + 1) : PERFRING_TOOL_MISUSED;
}
