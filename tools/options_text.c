/* options_text.c - the description of a command as text: --help, the man page, the list for shell completion.
 *
 * perfring.c and options.c print them.  Widths are those of a terminal of 80 columns.
 */
#include <ctype.h>
#include <stdlib.h>
#include <time.h>
#include "options_text.h"

enum {
	HELP_WIDTH = 100,
	MAN_WIDTH = 78,    /* mandoc wants less than 80 */
	COLUMN_MAX = 29,   /* where help texts begin, at most; a longer label moves its own first line */
	LABEL = 96,        /* bytes of "  -e, --event=EVENT[,EVENT]" */
	ESCAPED = 8 << 10, /* bytes of a text in a man page */
};

/* ---- filling ---- */

/* Lines of words: the column of the next one, and where further lines begin. */
struct fill {
	FILE *out;
	unsigned at, margin, width;
	bool breaks; /* a sentence begins on a line of its own, as roff wants */
};

static void fill_word(struct fill *fill, size_t blanks, const char *word, size_t length)
{
	if (fill->at > fill->margin && (fill->at + blanks + length > fill->width || (fill->breaks && blanks > 1))) {
		fprintf(fill->out, "\n%*s", (int)fill->margin, "");
		fill->at = fill->margin;
		blanks = 0;
	}
	fprintf(fill->out, "%*s%.*s", (int)blanks, "", (int)length, word);
	fill->at += (unsigned)(blanks + length);
}

static void fill_words(struct fill *fill, const char *text, size_t length)
{
	const char *end = text + length;

	while (text < end) {
		size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");

		fill_word(fill, blanks, text + blanks, word);
		text += blanks + word;
	}
}

/* The next paragraph of a text, or false at its end. */
static bool next_paragraph(const char **text, const char **paragraph, size_t *length)
{
	*paragraph = *text;
	*length = *text ? strcspn(*text, "\n") : 0;
	if (!*length)
		return false;
	*text += *length + ((*text)[*length] == '\n');
	return true;
}

/* "-e, --event=EVENT[,EVENT]" */
static size_t label_of(const struct tool_option *row, bool indented, char label[LABEL])
{
	char letter[8] = "", name[LABEL] = "";

	if (row->found < TOOL_OPTION_LONG)
		snprintf(letter, sizeof(letter), "-%c%s", row->found, row->name ? ", " : "");
	else if (indented)
		snprintf(letter, sizeof(letter), "    ");
	if (row->name)
		snprintf(name, sizeof(name), "--%s", row->name);
	return (size_t)snprintf(label, LABEL, "%s%s%s%s%s%s%s", indented ? "  " : "", letter, name,
				row->is_optional ? "[" : "", row->value ? "=" : "", row->value ? row->value : "",
				row->is_optional ? "]" : "");
}

static const char *name_of(const struct tool_command *command, char name[LABEL], char between)
{
	snprintf(name, LABEL, "perfring%s%s", command->name ? " " : "", command->name ? command->name : "");
	for (char *at = name; *at; at++)
		*at = *at == ' ' ? between : *at;
	return name;
}

/* ---- --help ---- */

static void help_text(FILE *out, const char *text)
{
	const char *paragraph;
	size_t length;

	while (next_paragraph(&text, &paragraph, &length)) {
		struct fill fill = {.out = out, .width = HELP_WIDTH};

		if (*paragraph == ' ')
			fprintf(out, "%.*s", (int)length, paragraph);
		else
			fill_words(&fill, paragraph, length);
		fprintf(out, "\n\n");
	}
}

static void help_row(FILE *out, const char *label, const char *text, unsigned column)
{
	struct fill fill = {.out = out, .margin = column, .width = HELP_WIDTH};

	fill.at = (unsigned)fprintf(out, "%-*s", (int)column - 2, label) + 2;
	fprintf(out, "  ");
	fill_words(&fill, text, strlen(text));
	fputc('\n', out);
}

/* As wide as the longest label that is not too long. */
static unsigned help_column(const struct tool_command *command)
{
	char label[LABEL];
	size_t column = 0;

	for (const struct tool_option *row = command->options; !tool_option_is_last(row); row++) {
		size_t length = row->found && !row->refused ? label_of(row, true, label) + 2 : 0;

		column = length > column && length <= COLUMN_MAX ? length : column;
	}
	return (unsigned)column;
}

static void help_names(FILE *out, const struct tool_command *command)
{
	struct fill fill = {.out = out, .width = HELP_WIDTH};
	const char *name;

	fill.at = (unsigned)fprintf(out, "%s:", command->names_heading);
	fill.margin = fill.at + 1;
	for (size_t i = 0; (name = command->names(i)); i++)
		fill_word(&fill, 1, name, strlen(name));
	fprintf(out, "\n\n");
}

static void help_examples(FILE *out, const struct tool_command *command)
{
	fprintf(out, "Examples:\n");
	for (const struct tool_example *example = command->examples; example->what; example++) {
		struct fill fill = {.out = out, .at = 2, .margin = 2, .width = HELP_WIDTH};
		const char *line = example->line;

		fprintf(out, "  ");
		fill_words(&fill, example->what, strlen(example->what));
		for (size_t length; *line; line += length + (line[length] == '\n')) {
			length = strcspn(line, "\n");
			fprintf(out, "\n      $ %.*s", (int)length, line);
		}
		fputc('\n', out);
	}
	fputc('\n', out);
}

void tool_help_print(FILE *out, const struct tool_command *command)
{
	unsigned column = help_column(command);
	const char *form, *rest = command->usage;
	char name[LABEL], label[LABEL];
	size_t length;

	name_of(command, name, ' ');
	for (bool first = true; next_paragraph(&rest, &form, &length); first = false)
		fprintf(out, "%s %s%s%.*s\n", first ? "usage:" : "      ", name, length ? " " : "", (int)length, form);
	fputc('\n', out);
	help_text(out, command->description);
	for (size_t i = 0; command->commands && command->commands[i]; i++) {
		snprintf(label, sizeof(label), "  %s", command->commands[i]->name);
		help_row(out, label, command->commands[i]->summary, column);
	}
	if (command->commands)
		fputc('\n', out);
	for (const struct tool_option *row = command->options; !tool_option_is_last(row); row++) {
		if (row->heading) {
			fprintf(out, "%s\n", row->heading);
			continue;
		}
		if (row->refused)
			continue;
		label_of(row, true, label);
		help_row(out, label, row->help, column);
	}
	fputc('\n', out);
	if (command->names)
		help_names(out, command);
	help_text(out, command->notes);
	help_examples(out, command);
	struct fill fill = {.out = out, .width = HELP_WIDTH};

	fill.at = (unsigned)fprintf(out, "Exit status: ");
	fill_words(&fill, command->exit_status, strlen(command->exit_status));
	fputc('\n', out);
}

/* ---- the man page, by the macros of man(7) ---- */

/* What roff reads otherwise; in one font. */
static const char *escape_of(char c)
{
	switch (c) {
	case '-':
		return "\\-";
	case '\\':
		return "\\e";
	case '\'':
		return "\\(aq";
	case '`':
		return "\\(ga";
	case '^':
		return "\\(ha";
	case '~':
		return "\\(ti";
	default:
		return NULL;
	}
}

/* Returns the bytes of `escaped` that were used.  A word that begins with a dot would be a request at the start of a line. */
static size_t escape(const char *text, size_t length, char *escaped, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + 8 < size; i++) {
		const char *other = escape_of(text[i]);
		bool begins = !i || text[i - 1] == ' ' || text[i - 1] == '\n';

		used += (size_t)snprintf(escaped + used, size - used, "%s%.*s", begins && text[i] == '.' ? "\\&" : "",
					 other ? 4 : 1, other ? other : text + i);
	}
	escaped[used] = 0;
	return used;
}

static void man_escaped(const char *text, size_t length)
{
	char escaped[ESCAPED];

	fwrite(escaped, 1, escape(text, length, escaped, sizeof(escaped)), stdout);
}

/* Options bold, what stands for something else (in capitals) in italics. */
static void man_styled(const char *text, size_t length)
{
	const char *end = text + length;
	char font = 'R';

	for (const char *at = text; at < end; at++) {
		bool begins = at == text || strchr(" [|", at[-1]);
		char next = font;

		if (begins && *at == '-')
			next = 'B';
		else if (font == 'B' ? !isalnum((unsigned char)*at) && *at != '-' : true)
			next = isupper((unsigned char)*at) ? 'I' : 'R';
		if (next != font)
			printf("\\f%c", next);
		font = next;
		printf("%.*s", escape_of(*at) ? 4 : 1, escape_of(*at) ? escape_of(*at) : at);
	}
	if (font != 'R')
		printf("\\fR");
	putchar('\n');
}

static void man_fill(const char *text, size_t length)
{
	struct fill fill = {.out = stdout, .width = MAN_WIDTH, .breaks = true};
	char escaped[ESCAPED];

	fill_words(&fill, escaped, escape(text, length, escaped, sizeof(escaped)));
	putchar('\n');
}

static void man_words(const char *text)
{
	man_fill(text, strlen(text));
}

/* Lines as they stand, set apart. */
static void man_literal(const char *text, size_t length)
{
	printf(".PP\n.RS 4\n.nf\n");
	man_escaped(text, length);
	printf("\n.fi\n.RE\n");
}

static void man_text(const char *text, bool begun)
{
	const char *paragraph;
	size_t length;

	for (; next_paragraph(&text, &paragraph, &length); begun = true)
		if (*paragraph == ' ') {
			size_t blanks = strspn(paragraph, " ");

			man_literal(paragraph + blanks, length - blanks);
		} else {
			if (begun)
				printf(".PP\n");
			man_fill(paragraph, length);
		}
}

static void man_title(const struct tool_command *command)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	time_t now = epoch && *epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
	char name[LABEL], date[16] = "", line[3 * LABEL];
	struct tm day;

	if (gmtime_r(&now, &day))
		strftime(date, sizeof(date), "%Y-%m-%d", &day);
	name_of(command, name, '-');
	for (char *at = name; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	printf(".TH %s 1 %s \"perfring %s\" \"perfring\"\n", name, date, perfring_version());
	name_of(command, name, '-');
	snprintf(line, sizeof(line), "%s - %s", name, command->summary);
	printf(".SH NAME\n");
	man_words(line);
}

static void man_synopsis(const struct tool_command *command)
{
	const char *form, *rest = command->usage;
	char name[LABEL];
	size_t length;

	printf(".SH SYNOPSIS\n.nf\n");
	name_of(command, name, ' ');
	while (next_paragraph(&rest, &form, &length)) {
		printf("\\fB%s\\fR ", name);
		man_styled(form, length);
	}
	printf(".fi\n");
}

static void man_description(const struct tool_command *command)
{
	struct fill fill = {.out = stdout, .width = MAN_WIDTH};
	const char *name;

	printf(".SH DESCRIPTION\n");
	man_text(command->description, false);
	man_text(command->notes, true);
	for (size_t i = 0; command->commands && command->commands[i]; i++) {
		printf(".TP\n.B %s\n", command->commands[i]->name);
		man_words(command->commands[i]->summary);
	}
	if (!command->names)
		return;
	printf(".PP\n");
	fill.at =
		(unsigned)printf("%c%s:", toupper((unsigned char)*command->names_heading), command->names_heading + 1);
	for (size_t i = 0; (name = command->names(i)); i++)
		fill_word(&fill, 1, name, strlen(name));
	putchar('\n');
}

static void man_options(const struct tool_command *command)
{
	char label[LABEL];

	printf(".SH OPTIONS\n");
	for (const struct tool_option *row = command->options; !tool_option_is_last(row); row++) {
		if (row->heading) {
			printf(".SS %c%s\n", toupper((unsigned char)*row->heading), row->heading + 1);
			continue;
		}
		if (row->refused)
			continue;
		printf(".TP\n");
		man_styled(label, label_of(row, false, label));
		man_words(row->help);
	}
}

static void man_examples(const struct tool_command *command)
{
	printf(".SH EXAMPLES\n");
	for (const struct tool_example *example = command->examples; example->what; example++) {
		if (example > command->examples)
			printf(".PP\n");
		man_words(example->what);
		man_literal(example->line, strlen(example->line));
	}
}

/* Of perfring itself its commands' pages come first. */
static void man_see_also(const struct tool_command *command)
{
	const char *page = command->see_also;

	printf(".SH SEE ALSO\n");
	for (size_t i = 0; command->commands && command->commands[i]; i++) {
		printf(".BR perfring\\-");
		man_escaped(command->commands[i]->name, strlen(command->commands[i]->name));
		printf(" (1),\n");
	}
	while (*page) {
		size_t length = strcspn(page, " "), name = strcspn(page, " (");
		const char *next = page + length + strspn(page + length, " ");

		printf(".BR ");
		man_escaped(page, name);
		printf(" %.*s%s\n", name < length ? (int)(length - name) : 3, name < length ? page + name : "(1)",
		       *next ? "," : "");
		page = next;
	}
}

void tool_man_print(const struct tool_command *command)
{
	man_title(command);
	man_synopsis(command);
	man_description(command);
	man_options(command);
	printf(".SH EXIT STATUS\n");
	man_words(command->exit_status);
	man_examples(command);
	man_see_also(command);
}

/* ---- for shells ---- */

void tool_completion_print(const struct tool_command *command)
{
	char takes[TOOL_OPTION_TAKES];

	for (size_t i = 0; command->commands && command->commands[i]; i++)
		printf("%s\tnone\n", command->commands[i]->name);
	for (const struct tool_option *row = command->options; !tool_option_is_last(row); row++) {
		if (row->heading || row->refused)
			continue;
		if (row->found < TOOL_OPTION_LONG)
			printf("-%c%s", row->found, row->name ? "," : "");
		printf("%s%s\t%s", row->name ? "--" : "", row->name ? row->name : "",
		       !row->value        ? "none"
		       : row->is_optional ? "maybe"
					  : "value");
		if (row->value)
			printf("\t%s\t%s", row->value, tool_option_takes(row, takes));
		putchar('\n');
	}
}
