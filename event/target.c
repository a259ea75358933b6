/* target.c - targets: threads, CPUs and cgroups.
 *
 * The functions of target.h.  Reads /proc for threads and sysfs for CPUs when something is added; sessions and counts copy the
 * target.  A process is identified by number and start time.
 */
#include <perfring/target.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "event_private.h"
#include "os/array.h"
#include "os/cgroup.h"
#include "os/small_file.h"
#include "os/range.h"
#include "os/task.h"
#include "target_private.h"

enum {
	CPU_LIST_SIZE = 65536,
	CPUS_MAX = 1 << 20
};

/* ---- sorted numbers ---- */

static uint32_t place_of(const struct perfring_numbers *numbers, int32_t number)
{
	uint32_t low = 0, high = numbers->count;

	/* Most numbers are added in order. */
	if (!high || numbers->numbers[high - 1] < number)
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (numbers->numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool perfring__numbers_have(const struct perfring_numbers *numbers, int32_t number)
{
	uint32_t at = place_of(numbers, number);

	return at < numbers->count && numbers->numbers[at] == number;
}

int perfring__numbers_add(struct perfring_numbers *numbers, int32_t number)
{
	uint32_t at = place_of(numbers, number);

	if (at < numbers->count && numbers->numbers[at] == number)
		return 0;
	if (perfring__os_array_grow(&numbers->numbers, numbers->count, &numbers->capacity, sizeof(*numbers->numbers)))
		return -ENOMEM;
	memmove(numbers->numbers + at + 1, numbers->numbers + at, (numbers->count - at) * sizeof(*numbers->numbers));
	numbers->numbers[at] = number;
	numbers->count++;
	return 0;
}

void perfring__numbers_keep(struct perfring_numbers *numbers, const struct perfring_numbers *kept)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < numbers->count; i++)
		if (perfring__numbers_have(kept, numbers->numbers[i]))
			numbers->numbers[count++] = numbers->numbers[i];
	numbers->count = count;
}

/* ---- lists of CPUs ---- */

int perfring__numbers_add_list(struct perfring_numbers *numbers, const char *list, const struct perfring_numbers *among)
{
	uint32_t first, last;
	int ret;

	while ((ret = perfring__os_range_next(&list, &first, &last)) == 1) {
		if (last >= CPUS_MAX) /* the loop ends, and a number fits an int32_t */
			return -EINVAL;
		for (uint32_t cpu = first; cpu <= last; cpu++) {
			if (among && !perfring__numbers_have(among, (int32_t)cpu))
				return -ENODEV;
			ret = perfring__numbers_add(numbers, (int32_t)cpu);
			if (ret)
				return ret;
		}
	}
	return ret;
}

int perfring__numbers_add_online(struct perfring_numbers *numbers)
{
	char *online = malloc(CPU_LIST_SIZE);
	int64_t length;
	int ret;

	if (!online)
		return -ENOMEM;
	length = perfring__os_file_read("/sys/devices/system/cpu/online", online, CPU_LIST_SIZE);
	ret = length < 0 ? (int)length : length == 0 ? -EINVAL : perfring__numbers_add_list(numbers, online, NULL);
	free(online);
	return ret;
}

bool perfring__cpu_is_offline(int32_t cpu)
{
	struct perfring_numbers online = {NULL, 0, 0};
	bool offline = !perfring__numbers_add_online(&online) && !perfring__numbers_have(&online, cpu);

	free(online.numbers);
	return offline;
}

/* ---- targets ---- */

int perfring_target_open(struct perfring_target **target)
{
	*target = calloc(1, sizeof(**target));
	return *target ? 0 : -ENOMEM;
}

void perfring__target_empty(struct perfring_target *target)
{
	for (uint32_t i = 0; i < target->cgroups.count; i++)
		close(target->cgroups.numbers[i]);
	free(target->cpus.numbers);
	free(target->tids.numbers);
	free(target->threads.numbers);
	free(target->cgroups.numbers);
	free(target->processes);
	memset(target, 0, sizeof(*target));
}

void perfring_target_close(struct perfring_target *target)
{
	if (!target)
		return;
	perfring__target_empty(target);
	free(target);
}

static int copy_numbers(struct perfring_numbers *copy, const struct perfring_numbers *numbers)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < numbers->count; i++)
		ret = perfring__numbers_add(copy, numbers->numbers[i]);
	return ret;
}

int perfring__target_copy(struct perfring_target *copy, const struct perfring_target *target)
{
	int ret;

	memset(copy, 0, sizeof(*copy));
	copy->all_cpus = target->all_cpus;
	ret = copy_numbers(&copy->cpus, &target->cpus);
	ret = ret ? ret : copy_numbers(&copy->tids, &target->tids);
	ret = ret ? ret : copy_numbers(&copy->threads, &target->threads);
	if (!ret && target->process_count) {
		copy->processes = malloc(target->process_count * sizeof(*copy->processes));
		if (copy->processes) {
			memcpy(copy->processes, target->processes, target->process_count * sizeof(*copy->processes));
			copy->process_count = copy->process_capacity = target->process_count;
		} else {
			ret = -ENOMEM;
		}
	}
	for (uint32_t i = 0; !ret && i < target->cgroups.count; i++) {
		int fd = fcntl(target->cgroups.numbers[i], F_DUPFD_CLOEXEC, 0);

		ret = fd < 0 ? -errno : perfring__numbers_add(&copy->cgroups, fd);
		if (ret && fd >= 0)
			close(fd);
	}
	if (ret)
		perfring__target_empty(copy);
	return ret;
}

int perfring_target_add_cpus(struct perfring_target *target, const char *list)
{
	struct perfring_numbers online = {NULL, 0, 0};
	int ret;

	if (list && !*list)
		return -EINVAL;
	ret = perfring__numbers_add_online(&online);
	if (!ret)
		ret = list ? perfring__numbers_add_list(&target->cpus, list, &online)
			   : copy_numbers(&target->cpus, &online);
	if (!ret && !list)
		target->all_cpus = true;
	free(online.numbers);
	return ret;
}

int perfring_target_add_thread(struct perfring_target *target, int32_t tid)
{
	int ret;

	if (tid < 0 || target->cgroups.count)
		return -EINVAL;
	ret = perfring__numbers_add(&target->threads, tid);
	return ret ? ret : perfring__numbers_add(&target->tids, tid);
}

/* Sets *start to the start time of the process, 0 if there is none.  Returns 0 or -errno. */
static int read_start(int32_t pid, uint64_t *start)
{
	struct perfring_os_task thread;
	int ret = perfring__os_task_stat((uint32_t)pid, (uint32_t)pid, &thread);

	*start = thread.start;
	return ret == -ENOENT || ret == -ESRCH ? 0 : ret;
}

int perfring__numbers_add_process(struct perfring_numbers *tids, const struct perfring_process *process)
{
	struct perfring_os_tasks threads;
	bool found = false;
	uint64_t start;
	uint32_t tid;
	int ret = perfring__os_tasks_open(&threads, (uint32_t)process->pid);

	if (ret)
		return ret == -ENOENT ? -ESRCH : ret;
	/* The open directory stays with its process: if that ends and another one gets its pid, the list is empty.  So the start time
	 * is looked at after the open. */
	ret = read_start(process->pid, &start);
	if (!ret && start != process->start)
		ret = -ESRCH;
	while (!ret && (tid = perfring__os_tasks_next(&threads))) {
		found = true;
		ret = perfring__numbers_add(tids, (int32_t)tid);
	}
	if (!ret)
		ret = threads.error;
	perfring__os_tasks_close(&threads);
	return ret ? ret : found ? 0 : -ESRCH;
}

int perfring_target_add_process(struct perfring_target *target, int32_t pid)
{
	struct perfring_process process = {pid, 0};
	int ret;

	if (pid < 0 || target->cgroups.count)
		return -EINVAL;
	ret = read_start(pid, &process.start);
	if (!ret)
		ret = perfring__numbers_add_process(&target->tids, &process);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < target->process_count; i++)
		if (target->processes[i].pid == pid && target->processes[i].start == process.start)
			return 0;
	ret = perfring__os_array_grow(&target->processes, target->process_count, &target->process_capacity,
				      sizeof(*target->processes));
	if (!ret)
		target->processes[target->process_count++] = process;
	return ret;
}

/* ---- cgroups ---- */

int perfring_target_add_cgroup(struct perfring_target *target, const char *path)
{
	char point[PATH_MAX], whole[2 * PATH_MAX + 1];
	int ret = 0, fd;

	if (!*path || strlen(path) >= PATH_MAX || target->tids.count)
		return -EINVAL;
	if (*path != '/') {
		ret = perfring__os_cgroup_mount("/proc/self/mountinfo", point, sizeof(point));
		if (ret)
			return ret;
		snprintf(whole, sizeof(whole), "%s/%s", point, path);
	} else {
		snprintf(whole, sizeof(whole), "%s", path);
	}
	fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = perfring__numbers_add(&target->cgroups, fd);
	if (ret)
		close(fd);
	return ret;
}
