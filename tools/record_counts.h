/* record_counts.h - how many records a file has, by kind and by event: the --stats of dump and report.
 *
 * All 0 is an empty count; its `events` are to be freed.
 */
#ifndef PERFRING_TOOLS_RECORD_COUNTS_H
#define PERFRING_TOOLS_RECORD_COUNTS_H

#include "tools.h"

enum {
	TOOL_COUNTS_KINDS = 128, /* counted one by one: more than there are */
};

/* All 0 at first; `events` is the user's to free. */
struct tool_counts {
	uint64_t records;
	uint64_t kinds[TOOL_COUNTS_KINDS + 1];
	uint64_t lost;
	struct tool_counts_event {
		uint64_t samples;
		uint64_t lost;
	} * events;
	uint32_t event_capacity;
};

/* Counts a record, and reports what is wrong with it. */
void tool_counts_take(struct tool_counts *counts, struct tool_input *input, const struct perfring_item *item);

/* Once, at the end of the file. */
void tool_counts_print(struct tool_counts *counts, const struct perfring_file *data);

#endif
