/* event_groups.h - the groups of events that a file describes (GROUP_DESC).
 *
 * report, evlist and the header's text read groups by it.  One walk over the feature; nothing is kept.
 */
#ifndef PERFRING_TOOLS_EVENT_GROUPS_H
#define PERFRING_TOOLS_EVENT_GROUPS_H

#include "tools.h"

struct tool_group {
	const char *name; /* "": it has none.  Valid as long as the file */
	uint32_t leader, members;
};

struct tool_groups {
	struct perfring_layout_walk walk;
	bool is_open;
	uint64_t next; /* the first event that may lead the next group */
	uint32_t events;
};

void tool_groups_open(struct tool_groups *groups, const struct perfring_file *data);

/* The next group, or false.  Groups do not overlap and come in the order of their leaders: an event is in one at most, however
 * often a file says so, and all of them are events of the file. */
bool tool_groups_next(struct tool_groups *groups, struct tool_group *group);

#endif
