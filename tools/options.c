/* options.c - a command's options, found by its table; every sentence about a wrong one. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include "options.h"

/* What there is to say of an option: the command's name, the option, and what the row or the command line adds. */
static const char UNKNOWN[] = "%s: unknown option '%s' (perfring %s --help)";
static const char AMBIGUOUS[] = "%s: option '%s' is ambiguous (perfring %s --help)";
static const char NO_VALUE[] = "%s: option '%s' takes no value, but has one: '%s' (perfring %s --help)";
static const char MISSING[] = "%s: option '%s' needs a value: %s (perfring %s --help)";
static const char EVENT[] = "%s: option '-e': '%s': %s (perfring list shows the events of this machine)";
static const char EVENT_AT[] = "%s: option '-e': '%s': at '%s': %s";
static const char EVENT_END[] = "%s: option '-e': '%s': at its end: %s";
static const char WRONG[] = "%s: option '%s' takes %s, not '%s' (perfring %s --help)";

enum {
	NAME = 64,
	TAKES = 256,
};

static const struct perfring_option *row_of(const struct perfring_options *options, int found)
{
	const struct perfring_option *row = options->rows;

	while (row->found && row->found != found)
		row++;
	return row->found ? row : NULL;
}

/* As it is written: by its letter where it has one. */
static const char *name_of(const struct perfring_option *row, char name[NAME])
{
	if (row->found < PERFRING_OPTION_LONG)
		snprintf(name, NAME, "-%c", row->found);
	else
		snprintf(name, NAME, "--%s", row->name);
	return name;
}

static const char *takes_of(const struct perfring_option *row, char takes[TAKES])
{
	if (row->most)
		snprintf(takes, TAKES, "%s from %" PRIu64 " to %" PRIu64, row->takes, row->least, row->most);
	else
		snprintf(takes, TAKES, "%s", row->takes);
	return takes;
}

int perfring_options_refuse(const struct perfring_options *options, const char *command, int found, const char *value)
{
	const struct perfring_option *row = row_of(options, found);
	char name[NAME], takes[TAKES];

	perfring_tool_complain(WRONG, command, name_of(row, name), takes_of(row, takes), value ? value : "", command);
	return PERFRING_TOOL_MISUSED;
}

void perfring_options_refuse_event(const char *command, const char *list, int error, const struct perfring_fault *fault)
{
	const char *what = fault->what ? fault->what : strerror(-error);
	size_t length = strlen(list), at = fault->at > 0 ? (size_t)fault->at : 0;

	if (!at || error == -ENOMEM)
		perfring_tool_complain(EVENT, command, list, error == -ENOMEM ? strerror(ENOMEM) : what);
	else if (at >= length)
		perfring_tool_complain(EVENT_END, command, list, what);
	else
		perfring_tool_complain(EVENT_AT, command, list, list + at, what);
}

/* Of getopt_long's '?' and ':'. */
static int refuse_word(const struct perfring_options *options, int found, char **argv)
{
	const struct perfring_option *row = optopt ? row_of(options, optopt) : NULL, *other = NULL;
	const char *command = argv[0], *word = argv[optind - 1];
	char name[NAME], takes[TAKES], letter[] = {'-', (char)optopt, 0};
	size_t length = strcspn(word, "=");

	if (found == ':') {
		perfring_tool_complain(MISSING, command, name_of(row, name), takes_of(row, takes), command);
	} else if (strncmp(word, "--", 2) || (optopt && !row)) {
		/* among letters it may be in the word before the next */
		perfring_tool_complain(UNKNOWN, command, optopt ? letter : word, command);
	} else if (row) {
		snprintf(name, sizeof(name), "%.*s", (int)length, word);
		perfring_tool_complain(NO_VALUE, command, name, word[length] ? word + length + 1 : "", command);
	} else {
		for (row = options->rows; row->found; row++)
			if (row->name && length > 2 && !strncmp(row->name, word + 2, length - 2))
				other = row;
		perfring_tool_complain(other ? AMBIGUOUS : UNKNOWN, command, word, command);
	}
	return PERFRING_TOOL_MISUSED;
}

/* getopt's own two tables, of ours.  letters: room for three and five characters a row. */
static void translate(const struct perfring_options *options, char *letters, struct option *names)
{
	const struct perfring_option *row = options->rows;

	if (options->has_command)
		*letters++ = '+';
	*letters++ = ':';
	for (int i = 0; row->found && i < PERFRING_OPTION_ROWS - 1; row++, i++) {
		if (row->name)
			*names++ = (struct option){row->name,
						   row->kind == PERFRING_OPTION_PLAIN   ? no_argument
						   : row->kind == PERFRING_OPTION_VALUE ? required_argument
											: optional_argument,
						   NULL, row->found};
		if (row->found >= PERFRING_OPTION_LONG)
			continue;
		*letters++ = (char)row->found;
		for (int colons = (int)row->kind; colons; colons--)
			*letters++ = ':';
	}
	*letters = 0;
	*names = (struct option){NULL, 0, NULL, 0};
}

/* For the completion of shells, and for tests: each option, what it takes, a tab between them. */
static int list(const struct perfring_options *options)
{
	char takes[TAKES];

	for (const struct perfring_option *row = options->rows; row->found; row++) {
		if (row->found < PERFRING_OPTION_LONG)
			printf("-%c", row->found);
		if (row->name)
			printf("%s--%s", row->found < PERFRING_OPTION_LONG ? "," : "", row->name);
		if (row->kind != PERFRING_OPTION_PLAIN)
			printf("\t%s\t%s", row->kind == PERFRING_OPTION_MAYBE ? "maybe" : "value",
			       takes_of(row, takes));
		putchar('\n');
	}
	return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
}

int perfring_options_next(struct perfring_options *options, int argc, char **argv)
{
	struct option names[PERFRING_OPTION_ROWS];
	char letters[3 + 3 * PERFRING_OPTION_ROWS];
	const struct perfring_option *row;
	int found;

	opterr = 0;
	options->status = PERFRING_TOOL_DONE;
	if (argc == 2 && !strcmp(argv[1], "--list-options")) {
		options->status = list(options);
		return 0;
	}
	translate(options, letters, names);
	found = getopt_long(argc, argv, letters, names, NULL);
	if (found == -1)
		return -1;
	if (found == '?' || found == ':') {
		options->status = refuse_word(options, found, argv);
		return 0;
	}
	if (found == 'h') {
		options->help();
		options->status = perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		return 0;
	}
	row = row_of(options, found);
	options->value = optarg;
	options->number = 0;
	/* What is empty is forgotten, or a shell's variable that is. */
	if (optarg &&
	    (!*optarg || (row->most && !perfring_options_number(optarg, row->least, row->most, &options->number)))) {
		options->status = perfring_options_refuse(options, argv[0], found, optarg);
		return 0;
	}
	return found;
}

/* ---- values ---- */

bool perfring_options_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number >= least && *number <= most;
}

bool perfring_options_ids(const char *text)
{
	char *end;

	do {
		errno = 0;
		if (*text < '0' || *text > '9')
			return false;
		unsigned long long id = strtoull(text, &end, 10);

		if (errno || !id || id > INT32_MAX)
			return false;
		text = end + 1;
	} while (*end == ',');
	return !*end;
}

bool perfring_options_cpus(const char *text)
{
	unsigned long long first, last;
	char *end;

	do {
		if (*text < '0' || *text > '9')
			return false;
		first = last = strtoull(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoull(end + 1, &end, 10);
		if (last < first || last > INT32_MAX)
			return false;
		text = end + 1;
	} while (*end == ',');
	return !*end;
}
