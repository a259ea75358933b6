/* record_living.c - which processes ran when a file ended, as its records say: the next file begins with their state.
 *
 * record_build_ids.c reads each file back for it, when another file follows (--switch-output).
 */
#include <search.h>
#include <stdlib.h>
#include "record_command.h"

struct living {
	uint32_t tid;
	uint32_t pid;
};

static int compare(const void *a, const void *b)
{
	const struct living *one = a, *other = b;

	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static void add(void **tree, uint32_t pid, uint32_t tid)
{
	struct living *living = tool_allocate(NULL, 1, sizeof(*living)), **at;

	*living = (struct living){.tid = tid, .pid = pid};
	at = tsearch(living, tree, compare);
	if (!at) {
		tool_complain("out of memory");
		exit(TOOL_FAILED);
	}
	if (*at == living)
		return;
	(*at)->pid = pid;
	free(living);
}

static void drop(void **tree, uint32_t tid)
{
	struct living key = {.tid = tid}, *living;
	void *at = tfind(&key, tree, compare);

	if (!at)
		return;
	living = *(struct living **)at;
	tdelete(living, tree, compare);
	free(living);
}

void tool_living_take(void **tree, const struct perfring_record *record)
{
	switch (record->type) {
	case PERFRING_RECORD_FORK:
		add(tree, record->is.fork.pid, record->is.fork.tid);
		break;
	case PERFRING_RECORD_COMM:
		add(tree, record->is.comm.pid, record->is.comm.tid);
		break;
	case PERFRING_RECORD_EXIT:
		drop(tree, record->is.exit.tid);
		break;
	}
}

void tool_living_end(void **tree, struct recorded_pids *pids)
{
	while (*tree) {
		struct living *living = *(struct living **)*tree;

		tool_record_add_pid(pids, living->pid);
		drop(tree, living->tid);
	}
}
