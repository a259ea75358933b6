/* tasks.c - threads and processes by their numbers, in a table of bounded size.
 *
 * The functions of tasks.h.  Beyond its bounds the table forgets first the thread that ended first, then the one that no record
 * has named for longest.
 */
#include <stdlib.h>

#include "os/hash.h"
#include "tasks.h"

/* A test has lower ones. */
#ifndef TASKS_MAX
#define TASKS_MAX PERFRING_MAPS_TASKS_MAX
#define ENDED_MAX PERFRING_MAPS_ENDED_MAX
#endif

/* ---- the table ---- */

static uint64_t task_slot(const struct perfring_tasks *tasks, uint32_t id)
{
	uint64_t mask = tasks->slot_count - 1, i = id * tasks->factor >> __builtin_clzll(mask);

	while (tasks->slots[i] && tasks->slots[i]->id != id)
		i = (i + 1) & mask;
	return i;
}

struct perfring_task *perfring__tasks_find(const struct perfring_tasks *tasks, uint32_t id)
{
	return tasks->slots[task_slot(tasks, id)];
}

static int grow_tasks(struct perfring_tasks *tasks)
{
	uint64_t old_count = tasks->slot_count;
	struct perfring_task **old = tasks->slots, **slots = calloc((size_t)old_count * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	tasks->slots = slots;
	tasks->slot_count *= 2;
	for (uint64_t i = 0; i < old_count; i++)
		if (old[i])
			slots[task_slot(tasks, old[i]->id)] = old[i];
	free(old);
	return 0;
}

/* What follows in the same run of full slots moves up, so that it is still found. */
static void vacate(struct perfring_tasks *tasks, uint64_t i)
{
	uint64_t mask = tasks->slot_count - 1;
	struct perfring_task *moved;

	tasks->slots[i] = NULL;
	for (i = (i + 1) & mask; (moved = tasks->slots[i]); i = (i + 1) & mask) {
		tasks->slots[i] = NULL;
		tasks->slots[task_slot(tasks, moved->id)] = moved;
	}
}

/* ---- the lists ---- */

static void unlist(struct perfring_tasks *tasks, struct perfring_task *task)
{
	struct perfring_task_list *list = task->is_listed_as_ended ? &tasks->ended : &tasks->living;

	*(task->older ? &task->older->newer : &list->oldest) = task->newer;
	*(task->newer ? &task->newer->older : &list->newest) = task->older;
	list->count--;
}

static void enlist(struct perfring_tasks *tasks, struct perfring_task *task, bool as_ended)
{
	struct perfring_task_list *list = as_ended ? &tasks->ended : &tasks->living;

	task->is_listed_as_ended = as_ended;
	task->older = list->newest;
	task->newer = NULL;
	*(list->newest ? &list->newest->newer : &list->oldest) = task;
	list->newest = task;
	list->count++;
}

void perfring__tasks_clear_maps(struct perfring_tasks *tasks, struct perfring_task *task)
{
	perfring__intervals_drop(&tasks->intervals, task->maps);
	task->maps = NULL;
	task->version = 0;
}

void perfring__tasks_renew(struct perfring_tasks *tasks, struct perfring_task *task)
{
	perfring__tasks_clear_maps(tasks, task);
	perfring__intervals_drop(&tasks->intervals, task->guest);
	task->guest = NULL;
	task->threads = 0;
}

static void forget(struct perfring_tasks *tasks, struct perfring_task *task)
{
	unlist(tasks, task);
	vacate(tasks, task_slot(tasks, task->id));
	perfring__tasks_renew(tasks, task);
	free(task);
}

bool perfring__tasks_forget(struct perfring_tasks *tasks)
{
	if (tasks->ended.oldest) {
		forget(tasks, tasks->ended.oldest);
		return true;
	}
	if (!tasks->living.oldest)
		return false;
	forget(tasks, tasks->living.oldest);
	tasks->forgotten++;
	return true;
}

struct perfring_task *perfring__tasks_get(struct perfring_tasks *tasks, uint32_t id)
{
	struct perfring_task *task = perfring__tasks_find(tasks, id);

	if (task) {
		unlist(tasks, task);
		task->has_ended = task->has_ended && !task->is_listed_as_ended;
		enlist(tasks, task, false);
		return task;
	}
	if (tasks->living.count + tasks->ended.count >= TASKS_MAX)
		perfring__tasks_forget(tasks);
	if ((tasks->living.count + tasks->ended.count) * 2 >= tasks->slot_count && grow_tasks(tasks))
		return NULL;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->id = id;
	tasks->slots[task_slot(tasks, id)] = task;
	enlist(tasks, task, false);
	return task;
}

/* ---- threads of processes ---- */

/* One that has ended stays for late samples, as long as there is space for it. */
static void end_if_over(struct perfring_tasks *tasks, struct perfring_task *task)
{
	if (!task->has_ended || task->threads || task->is_listed_as_ended)
		return;
	unlist(tasks, task);
	enlist(tasks, task, true);
	if (tasks->ended.count > ENDED_MAX)
		forget(tasks, tasks->ended.oldest);
}

static void leave_process(struct perfring_tasks *tasks, struct perfring_task *thread)
{
	struct perfring_task *process = thread->process ? perfring__tasks_find(tasks, thread->process) : NULL;

	thread->process = 0;
	if (!process || !process->threads)
		return;
	process->threads--;
	end_if_over(tasks, process);
}

int perfring__tasks_join(struct perfring_tasks *tasks, uint32_t tid, uint32_t pid)
{
	struct perfring_task *process = tid != pid ? perfring__tasks_get(tasks, pid) : NULL;
	struct perfring_task *thread = perfring__tasks_find(tasks, tid);

	if (tid != pid && !process)
		return -ENOMEM;
	if (!thread || thread->process == (process ? pid : 0))
		return 0;
	leave_process(tasks, thread);
	if (process) {
		thread->process = pid;
		process->threads++;
	}
	return 0;
}

void perfring__tasks_end(struct perfring_tasks *tasks, uint32_t tid)
{
	struct perfring_task *task = perfring__tasks_find(tasks, tid);

	if (!task)
		return;
	task->is_old = false;
	task->has_ended = true;
	leave_process(tasks, task);
	end_if_over(tasks, task);
}

/* ---- all of them ---- */

int perfring__tasks_open(struct perfring_tasks *tasks)
{
	*tasks = (struct perfring_tasks){.slot_count = 64, .factor = perfring__os_hash_factor(tasks)};
	tasks->slots = calloc((size_t)tasks->slot_count, sizeof(*tasks->slots));
	perfring__intervals_open(&tasks->intervals);
	return tasks->slots ? 0 : -ENOMEM;
}

void perfring__tasks_close(struct perfring_tasks *tasks)
{
	while (perfring__tasks_forget(tasks))
		;
	perfring__intervals_close(&tasks->intervals);
	free(tasks->slots);
}
