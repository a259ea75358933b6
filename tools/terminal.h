/* terminal.h - standard output as a terminal: colours, and a pager.
 *
 * report and doctor ask for colours, report opens a pager around its output.
 */
#ifndef PERFRING_TOOLS_TERMINAL_H
#define PERFRING_TOOLS_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

#define TOOL_TERMINAL_RED "\033[31m"
#define TOOL_TERMINAL_GREEN "\033[32m"
#define TOOL_TERMINAL_YELLOW "\033[33m"
#define TOOL_TERMINAL_PLAIN "\033[0m"

/* Whether stdout is a terminal that shows colours, and NO_COLOR does not ask for none. */
bool tool_terminal_has_colours(void);

struct tool_pager {
	pid_t pid; /* 0: stdout is what it was */
};

/* What is printed from now on goes through a pager, if stdout is a terminal: that of PERFRING_PAGER, else of PAGER, else less -R if it is
 * here.  An empty name, and cat, are none.  Without a pager all stays as it is. */
void tool_pager_open(struct tool_pager *pager);

/* Waits until the pager has ended.  Context: nothing is printed any more. */
void tool_pager_close(struct tool_pager *pager);

#endif
