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

struct perfring_waits {
	void *tree;                 /* of `all`, by tid */
	struct perfring_wait **all; /* begin: 0 of those that run */
	uint32_t count, capacity;
	struct perfring_wait ended; /* the last one */
	uint32_t next;              /* of perfring_waits_next */
	bool is_sorted;             /* `all`, by tid */
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

bool perfring_waits_has_returns(const struct perfring_format_set *formats)
{
	const struct perfring_format *format;

	for (uint32_t i = 0; (format = perfring_format_set_at(formats, i)); i++)
		if (format->flags >> PERFRING_ATTR_FLAG_context_switch & 1)
			return true;
	return false;
}

/* ---- threads ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct perfring_wait *one = a, *other = b;

	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static int compare_waits(const void *a, const void *b)
{
	return compare_tids(*(struct perfring_wait *const *)a, *(struct perfring_wait *const *)b);
}

/* The last wait of a thread, which may have ended; NULL: none is known. */
static struct perfring_wait *last_of(const struct perfring_waits *waits, uint32_t tid)
{
	const struct perfring_wait key = {.tid = tid};
	void *found = tfind(&key, &waits->tree, compare_tids);

	return found ? *(struct perfring_wait **)found : NULL;
}

/* Adds a thread that may wait.  Returns 0; -ENOSPC: too many are known; -ENOMEM. */
static int add(struct perfring_waits *waits, uint32_t tid, struct perfring_wait **wait)
{
	if (waits->count == WAITING_MAX)
		return -ENOSPC;
	if (perfring_os_array_grow(&waits->all, waits->count, &waits->capacity, sizeof(struct perfring_wait *)))
		return -ENOMEM;
	*wait = calloc(1, sizeof(**wait));
	if (!*wait)
		return -ENOMEM;
	(*wait)->tid = tid;
	if (!tsearch(*wait, &waits->tree, compare_tids)) {
		free(*wait);
		return -ENOMEM;
	}
	waits->all[waits->count++] = *wait;
	return 0;
}

int perfring_waits_begin(struct perfring_waits *waits, const struct perfring_wait *wait)
{
	struct perfring_wait *place;
	int error = 0;

	if (!wait->begin)
		return -EINVAL;
	place = last_of(waits, wait->tid);
	if (!place)
		error = add(waits, wait->tid, &place);
	if (error)
		return error;
	*place = *wait;
	waits->next = 0;
	waits->is_sorted = false;
	return 0;
}

struct perfring_wait *perfring_waits_find(const struct perfring_waits *waits, uint32_t tid)
{
	struct perfring_wait *wait = last_of(waits, tid);

	return wait && wait->begin ? wait : NULL;
}

/* ---- ends ---- */

static const struct perfring_wait *end(struct perfring_waits *waits, struct perfring_wait *wait)
{
	waits->ended = *wait;
	wait->begin = 0;
	return &waits->ended;
}

const struct perfring_wait *perfring_waits_take(struct perfring_waits *waits, const struct perfring_record *record)
{
	bool is_switch = record->type == PERFRING_RECORD_SWITCH || record->type == PERFRING_RECORD_SWITCH_CPU_WIDE;
	struct perfring_wait *wait = is_switch && record->trailer.present & PERFRING_SAMPLE_TID
					     ? perfring_waits_find(waits, record->trailer.tid)
					     : NULL;

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
		qsort(waits->all, waits->count, sizeof(struct perfring_wait *), compare_waits);
	waits->is_sorted = true;
	while (waits->next < waits->count) {
		struct perfring_wait *wait = waits->all[waits->next++];

		if (wait->begin)
			return end(waits, wait);
	}
	return NULL;
}
