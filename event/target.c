/* target.c - whom a session observes: threads and CPUs. */
#include <perfring/session.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "event.h"
#include "session.h"

enum {
	CPU_LIST_ROOM = 65536,
	CPUS_MOST = 1 << 20
};

int perfring_target_open(struct perfring_target **target)
{
	*target = calloc(1, sizeof(**target));
	return *target ? 0 : -ENOMEM;
}

void perfring_target_close(struct perfring_target *target)
{
	if (!target)
		return;
	free(target->cpus.numbers);
	free(target->tids.numbers);
	free(target);
}

/* Adds a number once.  Lists are short and sorted as they come: looking from the end is quick. */
static int numbers_add(struct perfring_numbers *numbers, int32_t number)
{
	for (uint32_t i = numbers->count; i > 0; i--)
		if (numbers->numbers[i - 1] == number)
			return 0;
		else if (numbers->numbers[i - 1] < number && i == numbers->count && numbers->sorted)
			break;
	if (numbers->count == numbers->room) {
		uint32_t room = numbers->room ? numbers->room * 2 : 16;
		int32_t *grown = realloc(numbers->numbers, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		numbers->numbers = grown;
		numbers->room = room;
	}
	numbers->sorted = !numbers->count || (numbers->sorted && numbers->numbers[numbers->count - 1] < number);
	numbers->numbers[numbers->count++] = number;
	return 0;
}

/* The next range of a list such as "0-3,6".  Returns 1, 0 at the end, -EINVAL. */
static int next_range(const char **text, long *first, long *last)
{
	char *end;

	if (!**text)
		return 0;
	if (**text < '0' || **text > '9')
		return -EINVAL;
	*first = *last = strtol(*text, &end, 10);
	if (*end == '-') {
		if (end[1] < '0' || end[1] > '9')
			return -EINVAL;
		*last = strtol(end + 1, &end, 10);
	}
	if (*first > *last || *last >= CPUS_MOST || (*end && *end != ','))
		return -EINVAL;
	*text = *end ? end + 1 : end;
	return 1;
}

static bool is_in(const char *list, long cpu)
{
	long first, last;

	while (next_range(&list, &first, &last) == 1)
		if (first <= cpu && cpu <= last)
			return true;
	return false;
}

int perfring_target_add_cpus(struct perfring_target *target, const char *list)
{
	char *online = malloc(CPU_LIST_ROOM);
	long first, last;
	int64_t length;
	int ret;

	if (!online)
		return -ENOMEM;
	length = perfring_event_slurp("/sys/devices/system/cpu/online", online, CPU_LIST_ROOM);
	ret = length < 0 ? (int)length : 0;
	if (!list)
		list = online;
	if (!ret && !*list)
		ret = -EINVAL;
	while (!ret && (ret = next_range(&list, &first, &last)) == 1) {
		ret = 0;
		for (long cpu = first; !ret && cpu <= last; cpu++)
			ret = is_in(online, cpu) ? numbers_add(&target->cpus, (int32_t)cpu) : -ENODEV;
	}
	free(online);
	return ret;
}

int perfring_target_add_thread(struct perfring_target *target, int32_t tid)
{
	return tid < 0 ? -EINVAL : numbers_add(&target->tids, tid);
}

int perfring_target_add_process(struct perfring_target *target, int32_t pid)
{
	struct dirent *entry;
	char path[64];
	bool found = false;
	int ret = 0;
	DIR *tasks;

	if (pid < 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!ret && (entry = readdir(tasks))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		found = true;
		ret = numbers_add(&target->tids, (int32_t)strtol(entry->d_name, NULL, 10));
	}
	closedir(tasks);
	return ret ? ret : found ? 0 : -ESRCH;
}
