/* progress.h - a line on the terminal, for files whose reading takes longer than a second.
 *
 *     tool_progress_begin(&input, "report", 0);
 *     while (tool_input_next(&input, &item))                     shows it, and removes it at the end
 *
 * stderr, if it is a terminal.  tool_complain removes the line first.  One input at a time, one thread.
 */
#ifndef PERFRING_TOOLS_PROGRESS_H
#define PERFRING_TOOLS_PROGRESS_H

#include "tools.h"

enum {
	TOOL_PROGRESS_LINES = 1, /* the command writes lines while it reads: where they go to a terminal, none is shown */
	TOOL_PROGRESS_QUIET = 2, /* none is shown */
};

/* flags: of these.  From the next record on. */
void tool_progress_begin(struct tool_input *input, const char *command, unsigned flags);

/* After each record, for commands that do not read by tool_input_next: once a second. */
void tool_progress_show(struct tool_input *input);

/* Removes the line, if one stands there. */
void tool_progress_clear(void);

#endif
