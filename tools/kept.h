/* kept.h - the last records of a stream, to be saved as a perf.data file at any moment.
 *
 *     kept = tool_kept_open(ns);
 *     tool_kept_take(kept, &item);                      each item, in their order
 *     tool_kept_save(kept, file, "top", path, argv, &samples);
 *     tool_kept_close(kept);
 *
 * Tasks and mappings are kept from the beginning, samples and the rest as long as was asked for, all of them within
 * TOOL_KEPT_BYTES: above it the older half goes.  Without memory the program ends with one line.  One thread at a time. */
#ifndef PERFRING_TOOLS_KEPT_H
#define PERFRING_TOOLS_KEPT_H

#include <perfring/file.h>
#include "tools.h"

#define TOOL_KEPT_BYTES ((size_t)256 << 20)

struct tool_kept;

struct tool_kept *tool_kept_open(uint64_t ns);
void tool_kept_close(struct tool_kept *kept);
void tool_kept_take(struct tool_kept *kept, const struct perfring_item *item);

/* Writes a perf.data file of the events of `data`.  An existing file becomes PATH.old.  Returns false after a complaint. */
bool tool_kept_save(struct tool_kept *kept, const struct perfring_file *data, const char *command, const char *path,
		    char *const argv[], uint64_t *samples);

#endif
