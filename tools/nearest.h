/* nearest.h - which of many names a mistyped word may have meant.
 *
 *     struct tool_nearest nearest = {.distance = 0};
 *     for each name: tool_nearest_offer(&nearest, word, name);
 *     tool_complain("unknown command '%s'%s", word, tool_nearest_hint(&nearest));
 */
#ifndef PERFRING_TOOLS_NEAREST_H
#define PERFRING_TOOLS_NEAREST_H

#include <stddef.h>

enum {
	TOOL_NEAREST_MAX = 64, /* characters of a word; longer ones have no hint */
};

struct tool_nearest {
	const char *before; /* stands before the name in the hint: "--"; NULL: nothing */
	unsigned distance;  /* of the name; 0: there is none yet */
	char name[TOOL_NEAREST_MAX + 1];
	char hint[TOOL_NEAREST_MAX + 32];
};

/* Takes the name if it is near the word, and nearer than those before: by a change, or by one for every three characters of a
 * longer word.  A change is a character more, less, another, or two that changed places. */
void tool_nearest_offer(struct tool_nearest *nearest, const char *word, const char *name);

/* ": did you mean 'NAME'?", or "".  Valid as long as `nearest`. */
const char *tool_nearest_hint(struct tool_nearest *nearest);

#endif
