/* waits.c - the threads that are off their CPUs, from a switch to the return.
 *
 * The functions of waits.h, for fill.c and perfring report.  A thread that waited once stays in the tree, for it will again.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <perfring/waits.h>

#include "os/array.h"

enum {
	WAITING_MAX = 1 << 20, /* threads that are known */
};

struct thread {
	struct perfring_wait wait; /* tid: the key; begin: 0 while it runs */
	bool has_ended;
};

struct perfring_waits {
	void *tree;                 /* of `all`, by tid */
	struct thread **all;
	uint32_t count, capacity;
	struct perfring_wait ended; /* the last one */
	uint32_t next;              /* of perfring_waits_next */
	bool is_sorted;             /* `all`, by tid */
	bool has_returns;           /* of the formats that were looked at */
	uint32_t looked_at;
};

int perfring_waits_open(struct perfring_waits **waits)
{
	*waits = calloc(1, sizeof(**waits));
	return *waits ? 0 : -ENOMEM;
}

void perfring_waits_forget(struct perfring_waits *waits)
{
	tdestroy(waits->tree, free);
	waits->tree = NULL;
	waits->count = waits->next = 0;
}

void perfring_waits_close(struct perfring_waits *waits)
{
	if (!waits)
		return;
	perfring_waits_forget(waits);
	free(waits->all);
	free(waits);
}

/* ---- events ---- */

bool perfring_waits_is_switch(const struct perf_event_attr *attr)
{
	return attr && attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_CONTEXT_SWITCHES && !attr->freq &&
	       attr->sample_period == 1;
}

bool perfring_waits_has_returns(struct perfring_waits *waits, const struct perfring_format_set *formats)
{
	const struct perfring_format *format;

	for (; !waits->has_returns && (format = perfring_format_set_at(formats, waits->looked_at)); waits->looked_at++)
		waits->has_returns = format->flags >> PERFRING_ATTR_FLAG_context_switch & 1;
	return waits->has_returns;
}

/* ---- threads ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct thread *one = a, *other = b;

	return one->wait.tid < other->wait.tid ? -1 : one->wait.tid > other->wait.tid;
}

static int compare_threads(const void *a, const void *b)
{
	return compare_tids(*(struct thread *const *)a, *(struct thread *const *)b);
}

/* NULL: it is not known. */
static struct thread *thread_of(const struct perfring_waits *waits, uint32_t tid)
{
	const struct thread key = {.wait.tid = tid};
	void *found = tfind(&key, &waits->tree, compare_tids);

	return found ? *(struct thread **)found : NULL;
}

/* Finds a thread, or adds it.  Returns 0; -ENOSPC: too many are known; -ENOMEM. */
static int add(struct perfring_waits *waits, uint32_t tid, struct thread **thread)
{
	*thread = thread_of(waits, tid);
	if (*thread)
		return 0;
	if (waits->count == WAITING_MAX)
		return -ENOSPC;
	if (perfring__os_array_grow(&waits->all, waits->count, &waits->capacity, sizeof(struct thread *)))
		return -ENOMEM;
	*thread = calloc(1, sizeof(**thread));
	if (!*thread)
		return -ENOMEM;
	(*thread)->wait.tid = tid;
	if (!tsearch(*thread, &waits->tree, compare_tids)) {
		free(*thread);
		return -ENOMEM;
	}
	waits->all[waits->count++] = *thread;
	waits->is_sorted = false;
	return 0;
}

int perfring_waits_begin(struct perfring_waits *waits, const struct perfring_wait *wait)
{
	struct thread *thread;
	int error;

	if (!wait->begin)
		return -EINVAL;
	if (!wait->tid || wait->tid == UINT32_MAX) /* an idle CPU; a thread that the kernel has no number of any more */
		return 0;
	error = add(waits, wait->tid, &thread);
	if (error)
		return error;
	if (!thread->has_ended)
		thread->wait = *wait;
	waits->next = 0;
	return 0;
}

struct perfring_wait *perfring_waits_find(const struct perfring_waits *waits, uint32_t tid)
{
	struct thread *thread = thread_of(waits, tid);

	return thread && thread->wait.begin ? &thread->wait : NULL;
}

/* ---- ends ---- */

static const struct perfring_wait *end(struct perfring_waits *waits, struct perfring_wait *wait)
{
	waits->ended = *wait;
	wait->begin = 0;
	return &waits->ended;
}

/* A thread's last switch comes after its EXIT.  Its number is used again by a new one, or by one of its process that calls execve. */
static void take_task(struct perfring_waits *waits, uint32_t tid, bool has_ended)
{
	struct thread *thread = thread_of(waits, tid);

	if (!thread && (!has_ended || add(waits, tid, &thread)))
		return;
	thread->wait.begin = 0;
	thread->has_ended = has_ended;
}

const struct perfring_wait *perfring_waits_take(struct perfring_waits *waits, const struct perfring_record *record)
{
	bool is_switch = record->type == PERFRING_RECORD_SWITCH || record->type == PERFRING_RECORD_SWITCH_CPU_WIDE;
	struct perfring_wait *wait = is_switch && record->trailer.present & PERFRING_SAMPLE_TID
					     ? perfring_waits_find(waits, record->trailer.tid)
					     : NULL;

	switch (record->type) {
	case PERFRING_RECORD_FORK:
		take_task(waits, record->is.fork.tid, false);
		break;
	case PERFRING_RECORD_EXIT:
		take_task(waits, record->is.exit.tid, true);
		break;
	case PERFRING_RECORD_COMM:
		if (record->misc & PERFRING_RECORD_MISC_COMM_EXEC)
			take_task(waits, record->is.comm.tid, false);
		break;
	}
	if (!wait)
		return NULL;
	if (!(record->misc & PERFRING_RECORD_MISC_SWITCH_OUT))
		return end(waits, wait);
	if (record->misc & PERFRING_RECORD_MISC_SWITCH_OUT_PREEMPT)
		wait->is_ready = 1;
	return NULL;
}

const struct perfring_wait *perfring_waits_next(struct perfring_waits *waits)
{
	if (!waits->is_sorted && waits->count) /* an order that does not depend on when they first waited */
		qsort(waits->all, waits->count, sizeof(struct thread *), compare_threads);
	waits->is_sorted = true;
	while (waits->next < waits->count) {
		struct perfring_wait *wait = &waits->all[waits->next++]->wait;

		if (wait->begin)
			return end(waits, wait);
	}
	return NULL;
}
