/* command.h - a command that is observed from its first instruction.
 *
 * open, add the events of the child's pid (target.h), release; then read until the child ends, and waitpid(2) it.
 *
 * Context: any thread; one thread at a time for each command; not signal handlers. */
#ifndef PERFRING_COMMAND_H
#define PERFRING_COMMAND_H

#include <perfring/base.h>

PERFRING_BEGIN

/* In the caller's memory. */
struct perfring_command {
	int32_t pid;
	int fd; /* socket to the waiting child: one byte releases it, and a failed exec returns its errno through it */
};

/* Forks a child that waits before it execs argv[0] (searched in PATH).  Open its events with `disabled` and `enable_on_exec`,
 * then release it.  The child has the caller's signal mask and dispositions, and exits with 127 if the caller ends, or closes the
 * command.  Returns 0; -EINVAL (argv is empty); -errno of socketpair or fork. */
PERFRING_API int perfring_command_open(struct perfring_command *command, char *const argv[]);

/* Lets the child exec, and waits for that.  Returns 0 after the exec; the exec's -errno (-ENOENT: no such command); -ESRCH (the child
 * has died); -EINVAL (it was released before).  The caller reaps the child in each case. */
PERFRING_API int perfring_command_release(struct perfring_command *command);

/* Kills and reaps a child that was not released; does nothing after release. */
PERFRING_API void perfring_command_close(struct perfring_command *command);

PERFRING_END

#endif
