/* task.h - processes and threads, as /proc has them.
 *
 * rb/identity.c, event/target.c, file/synthesis.c, symbol/ and soft/ ask for start times, states and lists.
 */
#ifndef PERFRING_OS_TASK_H
#define PERFRING_OS_TASK_H

#include <dirent.h>
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
void perfring__os_task_path(char *path, uint32_t pid, uint32_t tid, const char *name);

/* Reads /proc/PID/task/TID/stat.  Returns 0; or -errno (-ENOENT, -ESRCH: no such thread), with *thread all 0.
 * Context: also signal handlers.  No lock, no allocation; errno may change. */
int perfring__os_task_stat(uint32_t pid, uint32_t tid, struct perfring_os_task *thread);

/* Whether this process has no thread of that number, or its first thread has ended (a zombie until the last has; without
 * /proc it counts as running).  Context: also signal handlers; errno is kept. */
bool perfring__os_task_has_ended(uint32_t tid);

/* The threads of a process, or all processes, in the order of the folder.  opendir allocates: not for handlers. */
struct perfring_os_tasks {
	DIR *folder;
	int error; /* of readdir, which ends the list */
};

/* The threads of a process.  Returns 0 or -errno (-ENOENT: no such process, such as 0). */
int perfring__os_tasks_open(struct perfring_os_tasks *tasks, uint32_t pid);

/* All processes.  Returns 0 or -errno. */
int perfring__os_tasks_open_processes(struct perfring_os_tasks *tasks);

/* The next number; 0 at the end, or after an error.  A process that has ended has no thread. */
uint32_t perfring__os_tasks_next(struct perfring_os_tasks *tasks);
void perfring__os_tasks_close(struct perfring_os_tasks *tasks);

#endif
