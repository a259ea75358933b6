/* profile_output.h - the file that a command writes of a profile.
 *
 * The writer is a function of the command, which calls perfring_profile_write or write_flame.
 */
#ifndef PERFRING_TOOLS_PROFILE_OUTPUT_H
#define PERFRING_TOOLS_PROFILE_OUTPUT_H

#include "profile_input.h"

/* Writes a profile.  Returns 0 or -errno. */
typedef int tool_profile_writer(const struct perfring_profile *profile, const void *request, FILE *out);

/* Calls write for the file `path`, where "-" is standard output.  path NULL: the recording's name with this suffix, here
 * (perf.data, ".html": perf.html), and one line that reports it, without -q.  False after a complaint: the file is as it was. */
bool tool_profile_output(const struct tool_profile_input *input, const char *command, const char *path,
			 const char *suffix, tool_profile_writer *write, const void *request);

#endif
