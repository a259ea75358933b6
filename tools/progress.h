/* progress.h - a line on the terminal, for files whose reading takes seconds.
 *
 *     tool_progress_begin(&progress, "report", &input, 64 << 20);
 *     while (tool_input_next(&input, &item))
 *             tool_progress_show(&progress, &input);
 *     tool_progress_end(&progress); */
#ifndef PERFRING_TOOLS_PROGRESS_H
#define PERFRING_TOOLS_PROGRESS_H

#include <time.h>
#include "tools.h"

struct tool_progress {
	const char *command;
	uint64_t records;
	uint64_t size; /* of the file; 0: unknown */
	time_t shown;
	bool is_watched;
};

/* Of a file of fewer bytes than `least` nothing is shown, nor if stderr is no terminal. */
void tool_progress_begin(struct tool_progress *progress, const char *command, const struct tool_input *input,
			 uint64_t least);

/* After each record: once a second. */
void tool_progress_show(struct tool_progress *progress, const struct tool_input *input);

/* Removes the line. */
void tool_progress_end(struct tool_progress *progress);

#endif
