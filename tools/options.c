/* options.c - the options of a command line, parsed by the command's table; every message about a wrong one.
 *
 * All commands parse by it.  getopt_long's tables are made of the command's rows; errors name the option, and the nearest one
 * that exists.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/event.h>
#include <perfring/filter.h>
#include "nearest.h"
#include "options_text.h"

/* Complaints: first the command ("record: "), last the command whose --help is meant ("perfring record"). */
static const char UNKNOWN[] = "%sunknown option '%s'%s (%s --help)";
static const char AMBIGUOUS[] = "%soption '%s' is ambiguous%s (%s --help)";
static const char NO_VALUE[] = "%soption '%s' takes no value, but has one: '%s' (%s --help)";
static const char MISSING[] = "%soption '%s' needs a value: %s (%s --help)";
static const char WRONG[] = "%soption '%s' takes %s, not '%s' (%s --help)";
static const char FORGOTTEN[] = "%sinternal error: option '%s' is in the table and has no case";
static const char EVENT[] = "%s: option '-e': '%s': %s%s (perfring list shows the events of this machine)";
static const char EVENT_AT[] = "%s: option '-e': '%s': at '%s': %s%s";
static const char EVENT_END[] = "%s: option '-e': '%s': at its end: %s";

enum {
	NAME = 64,
};

static const struct tool_option *row_of(const struct tool_options *options, int found)
{
	const struct tool_option *row = options->command->options;

	while (!tool_option_is_last(row) && row->found != found)
		row++;
	return tool_option_is_last(row) ? NULL : row;
}

static const char *prefix_of(const struct tool_options *options, char prefix[NAME])
{
	const char *name = options->command->name;

	snprintf(prefix, NAME, "%s%s", name ? name : "", name ? ": " : "");
	return prefix;
}

static const char *command_of(const struct tool_options *options, char command[NAME])
{
	const char *name = options->command->name;

	snprintf(command, NAME, "perfring%s%s", name ? " " : "", name ? name : "");
	return command;
}

/* The option's name for messages: its letter if it has one. */
static const char *name_of(const struct tool_option *row, char name[NAME])
{
	if (row->found < TOOL_OPTION_LONG)
		snprintf(name, NAME, "-%c", row->found);
	else
		snprintf(name, NAME, "--%s", row->name);
	return name;
}

const char *tool_option_takes(const struct tool_option *row, char takes[TOOL_OPTION_TAKES])
{
	if (row->max)
		snprintf(takes, TOOL_OPTION_TAKES, "%s from %" PRIu64 " to %" PRIu64, row->takes, row->min, row->max);
	else
		snprintf(takes, TOOL_OPTION_TAKES, "%s", row->takes);
	return takes;
}

int tool_options_refuse(const struct tool_options *options, int found, const char *value)
{
	const struct tool_option *row = row_of(options, found);
	char prefix[NAME], name[NAME], takes[TOOL_OPTION_TAKES], command[NAME];

	tool_complain(WRONG, prefix_of(options, prefix), name_of(row, name), tool_option_takes(row, takes),
		      value ? value : "", command_of(options, command));
	return TOOL_MISUSED;
}

int tool_options_forgotten(const struct tool_options *options, int found)
{
	char prefix[NAME], name[NAME];

	tool_complain(FORGOTTEN, prefix_of(options, prefix), name_of(row_of(options, found), name));
	return TOOL_FAILED;
}

/* Suggests the event of this machine that an unknown one may have meant.  text: begins with its name. */
static const char *nearest_event(struct tool_nearest *nearest, char *text)
{
	struct perfring_event_names *names;
	struct perfring_event_listed name;
	char plain[TOOL_NEAREST_MAX + 1];

	text[strcspn(text, ",{}/ ")] = 0;
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(text, ":"), text);
	if (perfring_event_names_open(&names, NULL, false))
		return "";
	while (perfring_event_names_next(names, &name) == 1) {
		/* a tracepoint's name has a colon; after that of another event stand modifiers */
		tool_nearest_offer(nearest, strchr(name.name, ':') ? text : plain, name.name);
		tool_nearest_offer(nearest, plain, name.alias);
	}
	perfring_event_names_close(names);
	return tool_nearest_hint(nearest);
}

void tool_options_refuse_event(const char *command, const char *list, int error, const struct perfring_fault *fault)
{
	const char *what = fault->what ? fault->what : strerror(-error);
	size_t length = strlen(list), at = fault->at > 0 ? (size_t)fault->at : 0;
	struct tool_nearest nearest = {.distance = 0};
	const char *hint = "";

	if (at < length && (!strcmp(what, "unknown event") || !strcmp(what, "no such tracepoint, or event")))
		hint = nearest_event(&nearest, strdupa(list + at));
	if (!at || error == -ENOMEM)
		tool_complain(EVENT, command, list, error == -ENOMEM ? strerror(ENOMEM) : what, hint);
	else if (at >= length)
		tool_complain(EVENT_END, command, list, what);
	else
		tool_complain(EVENT_AT, command, list, list + at, what, hint);
}

/* Whether a long name that this word abbreviates is in the table. */
static bool is_prefix(const struct tool_options *options, const char *word)
{
	size_t length = strcspn(word, "=");

	for (const struct tool_option *row = options->command->options; !tool_option_is_last(row); row++)
		if (row->name && length > 2 && !strncmp(row->name, word + 2, length - 2))
			return true;
	return false;
}

/* Suggests the long name that an unknown one may have meant. */
static const char *nearest_option(const struct tool_options *options, const char *word, struct tool_nearest *nearest)
{
	const char *name = strndupa(word + 2, strcspn(word + 2, "="));

	nearest->before = "--";
	for (const struct tool_option *row = options->command->options; !tool_option_is_last(row); row++)
		if (row->name && !row->refused)
			tool_nearest_offer(nearest, name, row->name);
	return tool_nearest_hint(nearest);
}

/* Complains of what getopt_long has returned as '?' or ':'. */
static int refuse_word(const struct tool_options *options, int found, char **argv)
{
	const struct tool_option *row = optopt ? row_of(options, optopt) : NULL;
	char prefix_buffer[NAME], command_buffer[NAME], name[NAME], takes[TOOL_OPTION_TAKES],
		letter[] = {'-', (char)optopt, 0};
	const char *prefix = prefix_of(options, prefix_buffer), *command = command_of(options, command_buffer);
	const char *word = argv[optind - 1];
	size_t length = strcspn(word, "=");
	struct tool_nearest nearest = {.distance = 0};
	bool is_part;

	if (found == ':') {
		tool_complain(MISSING, prefix, name_of(row, name), tool_option_takes(row, takes), command);
	} else if (strncmp(word, "--", 2) || (optopt && !row)) {
		/* among letters it may be in the word before the next */
		tool_complain(UNKNOWN, prefix, optopt ? letter : word, "", command);
	} else if (row) {
		snprintf(name, sizeof(name), "%.*s", (int)length, word);
		tool_complain(NO_VALUE, prefix, name, word[length] ? word + length + 1 : "", command);
	} else {
		is_part = is_prefix(options, word);
		tool_complain(is_part ? AMBIGUOUS : UNKNOWN, prefix, word,
			      is_part ? "" : nearest_option(options, word, &nearest), command);
	}
	return TOOL_MISUSED;
}

/* The two tables of getopt_long.  letters: space for three characters and three more of each row. */
static void translate(const struct tool_command *command, char *letters, struct option *names)
{
	const struct tool_option *row = command->options;

	if (command->has_command)
		*letters++ = '+';
	*letters++ = ':';
	for (int i = 0; !tool_option_is_last(row) && i < TOOL_OPTION_ROWS - 1; row++, i++) {
		int has_value = !row->value ? no_argument : row->is_optional ? optional_argument : required_argument;

		if (row->name)
			*names++ = (struct option){row->name, has_value, NULL, row->found};
		if (row->also)
			*names++ = (struct option){row->also, has_value, NULL, row->found};
		if (!row->found || row->found >= TOOL_OPTION_LONG)
			continue;
		*letters++ = (char)row->found;
		for (int colons = has_value; colons; colons--)
			*letters++ = ':';
	}
	*letters = 0;
	*names = (struct option){NULL, 0, NULL, 0};
}

static bool is_named(const struct tool_option *row, const char *name)
{
	return (row->name && !strcmp(row->name, name)) || (row->also && !strcmp(row->also, name));
}

/* The row of what getopt_long found; name: NULL if it was found by its letter. */
static const struct tool_option *found_row(const struct tool_options *options, int found, const char *name)
{
	const struct tool_option *row = options->command->options;

	while (!tool_option_is_last(row) && (name ? !is_named(row, name) : row->found != found))
		row++;
	return row;
}

/* Reports an option that the command does not take. */
static void refuse_option(struct tool_options *options, const struct tool_option *row, int found, const char *name)
{
	char prefix[NAME];

	if (name)
		tool_complain("%s--%s: %s", prefix_of(options, prefix), name, row->refused);
	else
		tool_complain("%s-%c: %s", prefix_of(options, prefix), found, row->refused);
	options->status = TOOL_MISUSED;
}

/* As tool_options_next; *row: the row of the option that was found. */
static int next_option(struct tool_options *options, int argc, char **argv, const struct tool_option **row_found)
{
	struct option names[2 * TOOL_OPTION_ROWS];
	char letters[3 + 3 * TOOL_OPTION_ROWS];
	const struct tool_option *row;
	int found, index = -1;

	opterr = 0;
	options->status = TOOL_DONE;
	translate(options->command, letters, names);
	found = getopt_long(argc, argv, letters, names, &index);
	if (found == -1)
		return -1;
	if (found == '?' || found == ':') {
		options->status = refuse_word(options, found, argv);
		return 0;
	}
	if (found == 'h') {
		tool_help_print(stdout, options->command);
		options->status = tool_flush() ? TOOL_DONE : TOOL_FAILED;
		return 0;
	}
	row = found_row(options, found, index < 0 ? NULL : names[index].name);
	if (row->refused) {
		refuse_option(options, row, found, index < 0 ? NULL : names[index].name);
		return 0;
	}
	if (index < 0 && row->is_optional && optarg && *optarg == '=' && optarg[1])
		optarg++;
	options->value = optarg;
	options->number = 0;
	/* An empty value was forgotten, or is a variable of the shell that is empty. */
	if (optarg && (!*optarg || (row->max && !tool_options_number(optarg, row->min, row->max, &options->number)))) {
		options->status = tool_options_refuse(options, found, optarg);
		return 0;
	}
	*row_found = row;
	return found;
}

int tool_options_next(struct tool_options *options, int argc, char **argv)
{
	const struct tool_option *row;
	int found;

	while ((found = next_option(options, argc, argv, &row)) > 0 && row->is_input)
		options->input = options->value;
	return found;
}

/* ---- values ---- */

bool tool_options_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number >= min && *number <= max;
}

bool tool_options_ids(const char *text)
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

bool tool_options_cpus(const char *text)
{
	return !perfring_filter_check(&(struct perfring_filter){.cpus = text});
}
