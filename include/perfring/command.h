/* command.h - a command that is observed from its first instruction.
 *
 * Context: any thread; not signal handlers. */
#ifndef PERFRING_COMMAND_H
#define PERFRING_COMMAND_H

#include <perfring/base.h>

PERFRING_BEGIN

struct perfring_command {
	int32_t pid;
	int fd; /* to the child while it waits: a byte releases it, and an exec that failed sends its errno back */
};

/* Forks a child that waits before it execs argv[0] (found through PATH).  Open its events with enable_on_exec and
 * disabled, then release it.  Returns 0 or -errno.  Signals are as the caller's were. */
PERFRING_API int perfring_command_open(struct perfring_command *command, char *const argv[]);

/* Lets it go.  Returns 0 once it has exec'd, or -errno of its exec (-ENOENT: no such command). */
PERFRING_API int perfring_command_release(struct perfring_command *command);

/* A child that was never released is killed and waited for; a released one is the caller's to wait for. */
PERFRING_API void perfring_command_close(struct perfring_command *command);

PERFRING_END

#endif
