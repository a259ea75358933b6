/* event_holders.c - which other processes have perf events open.
 *
 * Looks at /proc/PID/fd of every process that this user may look into, in bounds.
 */
#include "event_holders.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task.h"

/* looks: how many files may still be looked at. */
static bool holds_event(uint32_t pid, uint32_t *looks)
{
	char path[64], link[32];
	struct dirent *entry;
	bool found = false;
	DIR *files;

	--*looks; /* at the folder, which may be refused */
	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	files = opendir(path);
	if (!files)
		return false;
	while (!found && *looks && (entry = readdir(files))) {
		ssize_t length = readlinkat(dirfd(files), entry->d_name, link, sizeof(link));

		--*looks;
		found = length == (ssize_t)strlen("anon_inode:[perf_event]") &&
			!memcmp(link, "anon_inode:[perf_event]", (size_t)length);
	}
	closedir(files);
	return found;
}

uint32_t perfring__os_event_holders(struct perfring_os_holder holders[PERFRING_OS_HOLDERS])
{
	uint32_t count = 0, looks = PERFRING_OS_HOLDERS_LOOKS;
	struct perfring_os_tasks processes;
	struct perfring_os_task task;
	uint32_t pid;

	if (perfring__os_tasks_open_processes(&processes))
		return 0;
	while (count < PERFRING_OS_HOLDERS && looks && (pid = perfring__os_tasks_next(&processes))) {
		struct perfring_os_holder *holder = &holders[count];

		if (pid == (uint32_t)getpid() || !holds_event(pid, &looks) || perfring__os_task_stat(pid, pid, &task))
			continue;
		*holder = (struct perfring_os_holder){.pid = pid};
		for (size_t i = 0; i < sizeof(task.comm) - 1 && task.comm[i]; i++)
			holder->comm[i] = task.comm[i] >= 0x20 && task.comm[i] < 0x7f ? task.comm[i] : '?';
		count++;
	}
	perfring__os_tasks_close(&processes);
	return count;
}
