/* profile_input.h - the samples of a perf.data file as a profile (profile.h): for the commands that show stacks.
 *
 *     static const struct tool_option ROWS[] = {..., TOOL_PROFILE_ROWS, TOOL_OPTIONS_END};
 *     taken = tool_profile_take(&input.options, &options, found);      for each option
 *     status = tool_profile_read(&input, "flame", &options, argc, argv);
 *     ... input.profile ...
 *     return tool_profile_close(&input);
 *
 * struct tool_profile_input has the file, the names and the profile; close frees all.  One thread.
 */
#ifndef PERFRING_TOOLS_PROFILE_INPUT_H
#define PERFRING_TOOLS_PROFILE_INPUT_H

#include <perfring/profile_fill.h>
#include "filter_options.h"
#include "symbol_names.h"
#include "tools.h"

enum {
	/* `found` of the rows, above those of symbol_names.h. */
	TOOL_PROFILE_NO_INLINE = TOOL_OPTION_LONG + 0x300,
	TOOL_PROFILE_MAX_STACK,
	TOOL_PROFILE_FORCE,
};

#define TOOL_PROFILE_ROWS \
	{'i', \
	 "input", \
	 .value = "FILE", \
	 .takes = "a perf.data file's name, or -", \
	 .is_input = true, \
	 .help = "the same as FILE"}, \
		{'q', "quiet", .help = "print errors only"}, {.heading = "which samples"}, TOOL_FILTER_ROWS, TOOL_FILTER_DSOS_ROW(TOOL_FILTER_DSOS), \
		{TOOL_PROFILE_MAX_STACK, \
		 "max-stack", \
		 .value = "N", \
		 .takes = "a number of frames", \
		 .min = 1, \
		 .max = UINT32_MAX, \
		 .help = "the innermost N frames of each stack (default: all)"}, \
		{.heading = "names"}, \
		{TOOL_PROFILE_NO_INLINE, "no-inline", \
		 .help = "functions that were inlined are not frames of their own"}, \
		TOOL_SYMBOLS_ROWS, \
	{ \
		TOOL_PROFILE_FORCE, "force", .help = "maps and dumps of code that belong to other users are read too" \
	}

struct tool_profile_options {
	struct perfring_filter filter;
	struct tool_symbols_options symbols;
	uint64_t max_stack; /* 0: all */
	bool no_inline;
	bool is_quiet;
	/* by the command: */
	bool lists;         /* each sample is kept */
	bool has_addresses; /* frames that differ in their address alone are two */
	bool has_lines;     /* frames have the lines of their sources */
	bool has_builds;    /* frames have the build ids of their objects */
};

struct tool_profile_input {
	struct tool_profile_options options;
	struct tool_input input;
	struct perfring_profile *profile;
	uint64_t shown; /* samples that are in it */
	uint64_t all;   /* samples of the file, of all events */
	struct reader *reader;
};

/* Takes an option of these rows.  Returns 1; 0: it is none of them; -1: its value is wrong, which was reported. */
int tool_profile_take(struct tool_profile_options *profile, const struct tool_options *options, int found);

/* Reads the file that the command line names, with progress on a terminal.  Returns an exit status, after a complaint when it is not
 * TOOL_DONE: then there is no profile. */
int tool_profile_read(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv);

/* The same for a stream that lives: the caller reads the records.  renew: begins an empty profile; who is off its CPU then is not
 * known. */
int tool_profile_open(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv);
void tool_profile_take_item(struct tool_profile_input *input, const struct perfring_item *item);
void tool_profile_renew(struct tool_profile_input *input);

/* Returns the exit status: that of what was wrong with the file. */
int tool_profile_close(struct tool_profile_input *input);

#endif
