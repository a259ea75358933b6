/* program.h - the COMMAND of record and stat. */
#ifndef PERFRING_TOOLS_PROGRAM_H
#define PERFRING_TOOLS_PROGRAM_H

#include <stdbool.h>

/* Whether exec may find the program NAME; where it certainly does not, one line on stderr says so, as tool_program_complain.  who:
 * the command that was given it: "record". */
bool tool_program_find(const char *who, const char *name);

/* Why the program could not be executed, and what to do.  error: -errno of exec. */
void tool_program_complain(const char *who, const char *name, int error);

#endif
