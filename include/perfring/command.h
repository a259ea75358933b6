/* command.h - a command that is observed from its first instruction.
 *
 * Context: any thread; not signal handlers. */
#ifndef PERFRING_COMMAND_H
#define PERFRING_COMMAND_H

#include <perfring/base.h>

PERFRING_BEGIN

struct perfring_command {
	int32_t pid;
	int fd; /* socket to the waiting child: one byte releases it, and a failed exec returns its errno through it */
};

/* Forks a child that waits before it execs argv[0] (searched in PATH).  Open its events with `disabled` and `enable_on_exec`,
 * then release it.  The child has the caller's signal mask and dispositions.  Returns 0 or -errno. */
PERFRING_API int perfring_command_open(struct perfring_command *command, char *const argv[]);

/* Lets the child exec.  Returns 0 after the exec, or the exec's -errno (-ENOENT: no such command). */
PERFRING_API int perfring_command_release(struct perfring_command *command);

/* Kills and reaps a child that was not released.  The caller reaps a released one. */
PERFRING_API void perfring_command_close(struct perfring_command *command);

PERFRING_END

#endif
