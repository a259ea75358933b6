/* options_text.h - the description of a command as text: --help, the man page, completion for shells.
 *
 * Views of struct tool_command (options.h); printed to stdout.
 */
#ifndef PERFRING_TOOLS_OPTIONS_TEXT_H
#define PERFRING_TOOLS_OPTIONS_TEXT_H

#include "options.h"

/* At most 100 columns. */
void tool_help_print(FILE *out, const struct tool_command *command);

/* For perfring-COMMAND.1, in the macros of man(7).  The date is SOURCE_DATE_EPOCH's, or today. */
void tool_man_print(const struct tool_command *command);

/* A line each: the option's spellings, separated by a comma; none, value or maybe; and of what has a value how help writes
 * it, and what a correct one is.  Of perfring itself: its commands.  Tabs separate columns. */
void tool_completion_print(const struct tool_command *command);

/* The values that an option may have where they are known, one a line: events, columns, words.  spelling: "-e" or "--event".
 * Returns false if the command has no such option. */
bool tool_completion_values_print(const struct tool_command *command, const char *spelling);

/* The script for a shell.  shell: "bash" or "zsh"; commands: all, the last NULL.  Returns false for another shell. */
bool tool_completion_script_print(const char *shell, const struct tool_command *const *commands);

#endif
