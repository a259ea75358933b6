/* options.h - a command of perfring, described once: what it does, its options, its exit statuses.
 *
 * The description has these views: the parser (here), and --help, the man page and the list for shells (options_text.h).
 *
 *     struct tool_options options = {.command = &tool_dump};
 *     while ((found = tool_options_next(&options, argc, argv)) > 0)
 *             switch (found) {
 *             case 'n': ... options.value, options.number ...
 *             default: return tool_options_forgotten(&options, found);
 *             }
 *     if (!found)
 *             return options.status;
 *     ... argv + optind: the arguments that are not options ...
 *
 * When an option is repeated the last one counts, as in perf, unless the command says that they add up.
 */
#ifndef PERFRING_TOOLS_OPTIONS_H
#define PERFRING_TOOLS_OPTIONS_H

#include "tools.h"

enum {
	TOOL_OPTION_LONG = 0x100, /* the first `found` of options without a letter */
	TOOL_OPTION_ROWS = 160,   /* the most rows of a command */
};

/* A row of a command's table: an option, or a heading above options.
 *
 * Texts of a description are filled by the views: a blank separates words, two blanks separate sentences. */
struct tool_option {
	int found;         /* its letter, or TOOL_OPTION_LONG and above; 0: a heading */
	const char *name;  /* the long name; NULL: it has only a letter */
	const char *also;  /* another long name, which would be an ambiguous beginning, and which the views leave out; NULL: none */
	const char *value; /* the value as help writes it: "FILE"; NULL: it takes none */
	bool is_optional;  /* the value: -zN, -z=N or --name=N, never the next argument */
	/* What a correct value is, in messages: "a file's name".  With `max`: a number of this, from `min` to `max`. */
	const char *takes;
	uint64_t min, max;
	bool is_input; /* it names the file that the command reads: tool_options_next keeps it, and tool_input_open opens it */
	const char *help;
	const char *heading;
	const char
		*refused; /* perf has this option: why the command does not, and what to use; the views leave it out */
};

/* Whether this row ends the table. */
static inline bool tool_option_is_last(const struct tool_option *row)
{
	return !row->found && !row->heading;
}

/* The last rows of each table. */
#define TOOL_OPTIONS_END \
	{'h', "help", .help = "print this help"}, \
	{ \
		0 \
	}

struct tool_example {
	const char *what;
	const char *line; /* of a shell */
};

/* In a text, '\n' ends a paragraph; one that begins with a blank is shown as it stands. */
struct tool_command {
	const char *name;    /* "stat", or "stat report", which is a part of it; NULL: perfring itself */
	const char *summary; /* one line, in the list of commands */
	const char *usage;   /* what follows the name; '\n' separates forms */
	const char *description;
	const struct tool_option *options;
	bool has_command; /* the options end at the first other argument: it begins a command line */
	/* A list of names below the options: the i-th, or NULL after the last. */
	const char *names_heading;
	const char *(*names)(size_t i);
	const char *notes; /* below the options */
	const char *exit_status;
	const struct tool_example *examples; /* the last is {0} */
	const char *see_also;                /* man pages, separated by blanks; one of another section than 1: "perfring(7)" */
	const struct tool_command *const *commands;
	int (*run)(int argc, char **argv); /* argv[0]: the name.  Returns an exit status. */
};

extern const struct tool_command tool_record, tool_stat, tool_report, tool_script, tool_dump, tool_convert, tool_check,
	tool_ring, tool_list, tool_evlist, tool_buildid_list, tool_gen, tool_doctor, tool_export, tool_top, tool_flame, tool_html, tool_stat_report_command;

struct tool_options {
	const struct tool_command *command;
	char *value;     /* of the option that was found; NULL: it has none */
	uint64_t number; /* the same, of a row with `max` */
	const char *input; /* the last value of the row with is_input; NULL: none */
	int status;      /* after 0: the command's exit status */
};

/* Returns `found` of the next option's row; -1: there is none left; 0: the command ends here, because help was printed or an
 * option is wrong, which was reported. */
int tool_options_next(struct tool_options *options, int argc, char **argv);

enum {
	TOOL_OPTION_TAKES = 256,
};

/* What a correct value of this row is, with its bounds. */
const char *tool_option_takes(const struct tool_option *row, char takes[TOOL_OPTION_TAKES]);

/* Reports that the option does not take this value.  Returns TOOL_MISUSED. */
int tool_options_refuse(const struct tool_options *options, int found, const char *value);

/* Reports an option that has a row and no case: a fault of the command.  Returns TOOL_FAILED. */
int tool_options_forgotten(const struct tool_options *options, int found);

/* Reports what is wrong with a list of events, and where in it.  error: negative, of the parser. */
void tool_options_refuse_event(const char *command, const char *list, int error, const struct perfring_fault *fault);

/* Decimal digits, or 0x and hexadecimal ones, and nothing else, in bounds. */
bool tool_options_number(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/* "1,23": ids of processes or threads. */
bool tool_options_ids(const char *text);

/* "0-3,6": CPUs. */
bool tool_options_cpus(const char *text);

#endif
