/* perfring.c - the `perfring` command: finds the command that was asked for.
 *
 * main, the table of commands, `help` and the options before a command; and what tools.h declares of exit statuses and signals.
 */
#include <perfring/config.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "nearest.h"
#include "options_text.h"
#include "out.h"

enum {
	NO_PAGER = TOOL_OPTION_LONG,
};

static const struct tool_option ROWS[] = {
	{'v', "version", .help = "print the version, and which optional parts are in this build"},
	{'p', "paginate", .refused = "report opens a pager by itself on a terminal"},
	{NO_PAGER, "no-pager", .refused = "goes after the command: perfring report --no-pager"},
	TOOL_OPTIONS_END,
};

static const struct tool_command *const COMMANDS[] = {
	&tool_record, &tool_stat,         &tool_report, &tool_script, &tool_dump, &tool_convert,
	&tool_export, &tool_flame,        &tool_top,    &tool_check,  &tool_ring, &tool_list,
	&tool_evlist, &tool_buildid_list, &tool_gen,    &tool_doctor, &tool_html, NULL,
};

/* Commands of commands: not in the list. */
static const struct {
	const char *name;
	const struct tool_command *command; /* which has their options */
} PARTS[] = {{"stat report", &tool_stat_report_command}, {"stat record", &tool_stat}};

/* What CMake finds, or leaves out: PERFRING_WITH_NAME. */
static const struct {
	const char *name;
	bool is_in;
} FEATURES[] = {
	{"soft", PERFRING_HAS_SOFT},
	{"zstd", PERFRING_HAS_ZSTD},
	{"pfm", PERFRING_HAS_PFM},
	{"lzma", PERFRING_HAS_LZMA},
	{"zlib", PERFRING_HAS_ZLIB},
	{"iberty", PERFRING_HAS_IBERTY},
	{"traceevent", PERFRING_HAS_TRACEEVENT},
};

/* perf's commands that are not here, and what does their work. */
static const struct {
	const char *name;
	const char *instead;
} OTHERS[] = {
	{"annotate", "perfring export --callgrind has lines of sources; perf annotate opens perfring's files"},
	{"archive", "perfring report --symfs DIR reads objects that were copied from another machine"},
	{"bench", "bench/ of perfring's sources has its own"},
	{"buildid-cache", "perfring reads perf's cache, ~/.debug, and writes none"},
	{"c2c", "perfring record -d -W, then perfring dump -F addr,data_src,weight"},
	{"config", "perfring has no file of settings"},
	{"daemon", "perfring record --overwrite --trigger, as a service"},
	{"data", "perfring convert"},
	{"diff", "perfring report --diff OLD NEW, or perfring flame --diff OLD NEW"},
	{"ftrace", "perfring record -e SUBSYSTEM:TRACEPOINT"},
	{"inject", "perfring report reads dumps of JITs by itself; perf inject opens perfring's files"},
	{"iostat", "perfring stat -a -I 1000 -e LIST, with events that perfring list uncore names"},
	{"kallsyms", "grep -w NAME /proc/kallsyms"},
	{"kmem", "perfring record -e 'kmem:*', then perfring script"},
	{"kvm", "perfring record -e 'kvm:*', then perfring script"},
	{"kwork", "perfring record -e 'irq:*,workqueue:*', then perfring script"},
	{"lock", "perfring record -g --off-cpu, then perfring html: where threads wait"},
	{"mem", "perfring record -d -W, then perfring dump -F addr,data_src,weight"},
	{"probe", "perfring record -e uprobe:PATH:FUNCTION, which needs no definition"},
	{"sched", "perfring record -a --off-cpu, then perfring html: who ran, and who waited"},
	{"test", "scripts/test of perfring's sources"},
	{"timechart", "perfring record -a --off-cpu, then perfring html"},
	{"trace", "perfring record -e 'raw_syscalls:*', then perfring script"},
};

static const struct tool_example EXAMPLES[] = {
	{"What this machine and this user may record:", "perfring doctor"},
	{"A profile of a program:", "perfring record -g ./program\nperfring report"},
	{0},
};

static const struct tool_command PERFRING = {
	.summary = "record, count and show performance events of Linux",
	.usage = "COMMAND [OPTIONS]\n"
		 "help [COMMAND]",
	.description =
		"Records, counts and shows performance events: of the kernel, and of programs that observe themselves.",
	.commands = COMMANDS,
	.options = ROWS,
	.has_command = true,
	.notes =
		"perfring COMMAND --help says more.  help --man [COMMAND] prints the manual page, help --complete bash or "
		"zsh the completion for that shell.",
	.exit_status = "0 done; 1 failed; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perf perfring-data(5) perfring(7)",
};

uint64_t tool_now(void)
{
	struct timespec now = {0, 0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

int tool_status(int child_status, int ended_by)
{
	int by = WIFSIGNALED(child_status) ? WTERMSIG(child_status) : ended_by;

	if (!by)
		return WEXITSTATUS(child_status);
	if (ended_by && (by == SIGINT || by == SIGTERM || by == SIGHUP)) {
		tool_flush();
		signal(by, SIG_DFL);
		raise(by);
	}
	return 128 + by;
}

bool tool_open_signals(int *signals, int another, sigset_t *before)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* a blocked signal is read even if it is ignored: SIGHUP is not blocked under nohup */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	/* When the caller of this program ignores it, the end of the command is not reported. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&set, SIGCHLD);
	if (another)
		sigaddset(&set, another);
	sigprocmask(SIG_BLOCK, &set, before);
	*signals = signalfd(*signals, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*signals < 0)
		tool_complain("signalfd: %s", strerror(errno));
	return *signals >= 0;
}

bool tool_is_ending(void)
{
	sigset_t pending;

	return !sigpending(&pending) && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
					 sigismember(&pending, SIGHUP) == 1);
}

bool tool_is_cut(uint64_t since)
{
	return tool_is_ending() && tool_now() - since > UINT64_C(1000000000);
}

bool tool_flush(void)
{
	int error;

	tool_out_flush(0);
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	error = errno;
	if (error != EPIPE)
		tool_complain("standard output: %s", strerror(error));
	return false;
}

static const struct tool_command *command_of(const char *name)
{
	struct tool_nearest nearest = {.distance = 0};
	struct stat file;

	for (size_t i = 0; COMMANDS[i]; i++)
		if (!strcmp(name, COMMANDS[i]->name))
			return COMMANDS[i];
	for (size_t i = 0; i < sizeof(OTHERS) / sizeof(*OTHERS); i++)
		if (!strcmp(name, OTHERS[i].name)) {
			tool_complain("'%s' is a command of perf's alone: %s", name, OTHERS[i].instead);
			return NULL;
		}
	if (!stat(name, &file) && S_ISREG(file.st_mode)) {
		tool_complain("'%s' is a file, not a command: perfring %s %s%s", name, access(name, X_OK) ? "report" : "record",
			      access(name, X_OK) || strchr(name, '/') ? "" : "./", name);
		return NULL;
	}
	for (size_t i = 0; COMMANDS[i]; i++)
		tool_nearest_offer(&nearest, name, COMMANDS[i]->name);
	tool_complain("unknown command '%s'%s (perfring --help)", name, tool_nearest_hint(&nearest));
	return NULL;
}

/* The command that these words name, or of which they are the first: "stat report".  *next: the word after it. */
static const struct tool_command *command_of_words(int argc, char **argv, int *next)
{
	char name[64];

	if (argc > *next + 1) {
		snprintf(name, sizeof(name), "%s %s", argv[*next], argv[*next + 1]);
		for (size_t i = 0; i < sizeof(PARTS) / sizeof(*PARTS); i++)
			if (!strcmp(name, PARTS[i].name)) {
				*next += 2;
				return PARTS[i].command;
			}
	}
	return command_of(argv[(*next)++]);
}

static int flush(void)
{
	return tool_flush() ? TOOL_DONE : TOOL_FAILED;
}

/* perfring help [--man [COMMAND]|--complete [bash|zsh|COMMAND [OPTION]]|COMMAND] */
static int help(int argc, char **argv)
{
	bool is_man = argc > 1 && !strcmp(argv[1], "--man"), is_completion = argc > 1 && !strcmp(argv[1], "--complete");
	int next = is_man || is_completion ? 2 : 1;
	const struct tool_command *command;

	if (is_completion && argc > next && tool_completion_script_print(argv[next], COMMANDS))
		return flush();
	command = argc > next ? command_of_words(argc, argv, &next) : &PERFRING;
	if (!command)
		return TOOL_MISUSED;
	if (is_completion && argc > next) {
		if (tool_completion_values_print(command, argv[next]))
			return flush();
		tool_complain("unknown option '%s' (perfring %s --help)", argv[next], command->name);
		return TOOL_MISUSED;
	}
	if (is_man)
		tool_man_print(command);
	else if (is_completion)
		tool_completion_print(command);
	else
		tool_help_print(stdout, command);
	return flush();
}

static void print_features(const char *title, bool is_in)
{
	const char *before = title;

	for (size_t i = 0; i < sizeof(FEATURES) / sizeof(*FEATURES); i++)
		if (FEATURES[i].is_in == is_in) {
			printf("%s %s", before, FEATURES[i].name);
			before = ",";
		}
	if (before != title)
		putchar('\n');
}

static int print_version(void)
{
	printf("perfring %s\n", perfring_version());
	print_features("with", true);
	print_features("without", false);
	return flush();
}

/* Options before a command. */
static int read_options(int argc, char **argv)
{
	struct tool_options options = {.command = &PERFRING};
	int found = tool_options_next(&options, argc, argv);

	switch (found) {
	case -1: /* "--" or "-" */
		command_of(argv[1]);
		return TOOL_MISUSED;
	case 0:
		return options.status;
	case 'v':
		return print_version();
	default:
		return tool_options_forgotten(&options, found);
	}
}

int main(int argc, char **argv)
{
	const struct tool_command *command;

	if (argc < 2) {
		tool_help_print(stderr, &PERFRING);
		return TOOL_MISUSED;
	}
	if (*argv[1] == '-')
		return read_options(argc, argv);
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "version"))
		return print_version();
	command = command_of(argv[1]);
	return command ? command->run(argc - 1, argv + 1) : TOOL_MISUSED;
}
