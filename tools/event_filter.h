/* event_filter.h - --filter of `record` and `stat`: for the events of the -e before it; of several for one event all must hold.
 *
 * Texts are the options', and the list is freed by close.
 */
#ifndef PERFRING_TOOLS_EVENT_FILTER_H
#define PERFRING_TOOLS_EVENT_FILTER_H

#include <perfring/event.h>
#include "tools.h"

/* By the number of the event in its list. */
struct tool_filters {
	char **texts; /* NULL: every occurrence */
	uint32_t count;
};

/* Adds a filter for the events from `from` on, as in perf: all must be tracepoints, or of a PMU, which judges the filter itself.
 * False after a complaint of `command`. */
bool tool_filters_add(const char *command, struct tool_filters *filters, const struct perfring_events *events,
		      uint32_t from, const char *text);

/* Sets the filter of event `i`, if there is one, on an fd of it.  False after a complaint. */
bool tool_filters_set(const char *command, const struct tool_filters *filters, const struct perfring_events *events,
		      uint32_t i, int fd);

void tool_filters_close(struct tool_filters *filters);

#endif
