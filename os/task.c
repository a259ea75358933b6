/* task.c - processes and threads, as /proc has them.
 *
 * Reads /proc/PID/task/TID/stat into a buffer on the stack; signal handlers call it (rb/identity.c, soft/).  Lists are not for
 * them.
 */
#include "task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "small_file.h"

/* Appends `number` in decimal (snprintf is not for handlers).  Returns the end. */
static char *put_number(char *at, uint32_t number)
{
	char digits[10];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	return at;
}

void perfring__os_task_path(char *path, uint32_t pid, uint32_t tid, const char *name)
{
	char *at = put_number(stpcpy(path, "/proc/"), pid);

	strcpy(put_number(stpcpy(at, "/task/"), tid), name);
}

int perfring__os_task_stat(uint32_t pid, uint32_t tid, struct perfring_os_task *thread)
{
	char text[512], *field, *name;
	int64_t got;

	memset(thread, 0, sizeof(*thread));
	perfring__os_task_path(text, pid, tid, "/stat");
	got = perfring__os_file_read(text, text, sizeof(text));
	if (got < 0)
		return (int)got;
	/* Fields 2, 3, 4, 10, 12 and 22.  The second is the name in parentheses, which may hold any character. */
	name = strchr(text, '(');
	field = strrchr(text, ')');
	if (name && field && field[1] == ' ' && field[2]) {
		*field = 0;
		memcpy(thread->comm, name + 1, strnlen(name + 1, sizeof(thread->comm) - 1));
		thread->state = field[2];
		thread->parent = (uint32_t)strtoul(field + 3, NULL, 10);
	}
	for (int i = 2; field && i < 22; i++) {
		if (i == 10)
			thread->minor_faults = strtoull(field, NULL, 10);
		if (i == 12)
			thread->major_faults = strtoull(field, NULL, 10);
		field = strchr(field + 1, ' ');
	}
	thread->start = field ? strtoull(field, NULL, 10) : 0;
	return 0;
}

bool perfring__os_task_has_ended(uint32_t tid)
{
	struct perfring_os_task thread;
	int saved = errno;
	uint32_t pid = (uint32_t)getpid();
	bool ended = syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;

	/* The first thread stays as a zombie, which takes signals, until the last one has ended. */
	if (!ended && tid == pid)
		ended = !perfring__os_task_stat(pid, tid, &thread) && thread.state == 'Z';

	errno = saved;
	return ended;
}

static int open_folder(struct perfring_os_tasks *tasks, const char *path)
{
	tasks->error = 0;
	tasks->folder = opendir(path);
	return tasks->folder ? 0 : -errno;
}

int perfring__os_tasks_open(struct perfring_os_tasks *tasks, uint32_t pid)
{
	char path[PERFRING_OS_TASK_PATH];

	strcpy(put_number(stpcpy(path, "/proc/"), pid), "/task");
	return open_folder(tasks, path);
}

int perfring__os_tasks_open_processes(struct perfring_os_tasks *tasks)
{
	return open_folder(tasks, "/proc");
}

uint32_t perfring__os_tasks_next(struct perfring_os_tasks *tasks)
{
	struct dirent *entry;
	uint32_t number = 0;

	errno = 0;
	while (!number && (entry = readdir(tasks->folder)))
		number = (uint32_t)strtoul(entry->d_name, NULL, 10);
	if (!number)
		tasks->error = -errno;
	return number;
}

void perfring__os_tasks_close(struct perfring_os_tasks *tasks)
{
	closedir(tasks->folder);
}
