/* options.h - a command's options: a row for each says how it is written, what its value may be, and in which words that is
 * said.
 *
 *     struct perfring_options options = {.rows = ROWS};
 *     while ((found = perfring_options_next(&options, argc, argv)) > 0)
 *             switch (found) { ... options.value, options.number ... }
 *     if (!found)
 *             return options.status;
 *     ... argv + optind: the words that are no options ...
 *
 * Of an option that is repeated the last counts, as in perf, unless the command says that they add up.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "tools.h"

enum perfring_option_kind {
	PERFRING_OPTION_PLAIN, /* no value */
	PERFRING_OPTION_VALUE,
	PERFRING_OPTION_MAYBE, /* a value by `-zN` or `--name=N` alone */
};

struct perfring_option {
	int found;        /* its letter; PERFRING_OPTION_LONG and above: it has none */
	const char *name; /* NULL: it has a letter alone */
	enum perfring_option_kind kind;
	/* What the value is: "a file's name".  With `most`: a number of that, from `least` to `most`; of a number that may
	 * also be something else, or is read otherwise, `most` is 0, and the whole is said. */
	const char *takes;
	uint64_t least, most;
};

enum {
	PERFRING_OPTION_LONG = 0x100,
	PERFRING_OPTION_ROWS = 96, /* of a command, its end included */
};

/* The last row of each table. */
#define PERFRING_OPTION_HELP \
	{ \
		'h', "help", PERFRING_OPTION_PLAIN, NULL, 0, 0 \
	}
#define PERFRING_OPTION_END \
	{ \
		0, NULL, PERFRING_OPTION_PLAIN, NULL, 0, 0 \
	}

struct perfring_options {
	const struct perfring_option *rows;
	void (*help)(void);
	bool has_command; /* what follows the first word belongs to that */
	char *value;      /* of the option that was found; NULL: it has none */
	uint64_t number;  /* the same, of a row with `most` */
	int status;       /* after 0: the command's exit status */
};

/* The next option: what its row says as `found`; -1: there is none left; 0: it ends here, for help was shown or an option is
 * wrong, which has been said. */
int perfring_options_next(struct perfring_options *options, int argc, char **argv);

/* Says what the option takes instead of `value`.  Returns PERFRING_TOOL_MISUSED. */
int perfring_options_refuse(const struct perfring_options *options, const char *command, int found, const char *value);

/* Says what is wrong with a list of events, and where in it.  error: negative, of the parser. */
void perfring_options_refuse_event(const char *command, const char *list, int error,
				   const struct perfring_fault *fault);

/* Decimal digits, or 0x and hexadecimal ones, and nothing else, in bounds. */
bool perfring_options_number(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* "1,23": ids of processes or threads. */
bool perfring_options_ids(const char *text);

/* "0-3,6": CPUs. */
bool perfring_options_cpus(const char *text);

#endif
