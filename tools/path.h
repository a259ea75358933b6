/* path.h - what the name of a file leads to.
 *
 * outfile.c and preload.c write to such names without replacing them.
 */
#ifndef PERFRING_TOOLS_PATH_H
#define PERFRING_TOOLS_PATH_H

#include <stdbool.h>

/* Whether the name is a descriptor's, as /dev/stdout: it leads through /proc.  No other file can take such a name. */
bool tool_path_is_descriptor(const char *path);

#endif
