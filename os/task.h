/* task.h - a thread, as /proc has it.
 *
 * rb/identity.c, event/target.c, file/synthesis.c, symbol/jit.c and soft/ ask for start times and states.
 */
#ifndef PERFRING_OS_TASK_H
#define PERFRING_OS_TASK_H

#include <stdbool.h>
#include <stdint.h>

struct perfring_os_task {
	uint64_t start;  /* clock ticks since boot: differs when a number is reused */
	uint64_t minor_faults, major_faults;
	uint32_t parent; /* of its process */
	char state;      /* the letter of proc(5); Z and X: it has ended, but is not yet reaped */
	char comm[16];   /* its name, NUL-terminated */
};

enum {
	PERFRING_OS_TASK_PATH = 48, /* bytes, with a name of at most 12 */
};

/* /proc/PID/task/TID and the name, which begins with a slash.  Context: also signal handlers. */
void perfring_os_task_path(char *path, uint32_t pid, uint32_t tid, const char *name);

/* Reads /proc/PID/task/TID/stat.  Returns 0; or -errno (-ENOENT, -ESRCH: no such thread), with *thread all 0.
 * Context: also signal handlers.  No lock, no allocation; errno may change. */
int perfring_os_task_stat(uint32_t pid, uint32_t tid, struct perfring_os_task *thread);

/* Whether this process has no thread of that number, or its first thread has ended (a zombie until the last has; without
 * /proc it counts as running).  Context: also signal handlers; errno is kept. */
bool perfring_os_task_has_ended(uint32_t tid);

#endif
