/* soft_rig.h - points, events on them, and workers that raise. */
#ifndef SOFT_RIG_H
#define SOFT_RIG_H

/* Every named place of soft/soft_event.c, which is compiled here for that. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/soft.h>

#include "soft/soft_event.c"
#include "clocks.h"
#include "machine.h"
#include "test.h"

static __thread void (*struck)(const char *name); /* what comes in between there */

static inline void strike(const char *name)
{
	if (struck)
		struck(name);
}

/* ---- helpers ---- */

static inline struct perf_event_attr attr_of(const struct perfring_soft_point *point)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};

	return attr;
}

static inline struct perfring_soft_event *open_event(const struct perf_event_attr *attr, unsigned scope,
						     struct perfring_soft_event *leader)
{
	struct perfring_soft_event *event;
	int ret = perfring_soft_open(&event, attr, scope, leader);

	cr_assert_eq(ret, 0, "open: %d", ret);
	return event;
}

static inline struct perfring_soft_event *count_point(const struct perfring_soft_point *point, unsigned scope)
{
	struct perf_event_attr attr = attr_of(point);

	return open_event(&attr, scope, NULL);
}

static inline uint64_t value(struct perfring_soft_event *event)
{
	uint64_t words[5];

	cr_assert_geq(perfring_soft_read(event, words, sizeof(words)), 8);
	return words[0];
}

static inline void raise_times(struct perfring_soft_point *point, int n)
{
	while (n--)
		perfring_soft_raise(point, 1, 0, NULL, 0);
}

static inline void burn(uint64_t ns)
{
	burn_by(CLOCK_THREAD_CPUTIME_ID, ns);
}

/* A thread that does what it is told, one step after the other. */
struct worker {
	pthread_t thread;
	struct perfring_soft_point *point;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int order; /* 0: none */
	int n;
	int result;
	uint32_t tid;
};

enum {
	JOIN = 1,
	LEAVE,
	RAISE,
	BURN,
	END,
};

static inline void *work(void *of)
{
	struct worker *worker = of;
	int order;

	do {
		pthread_mutex_lock(&worker->lock);
		while (!worker->order)
			pthread_cond_wait(&worker->changed, &worker->lock);
		order = worker->order;
		worker->tid = (uint32_t)syscall(SYS_gettid);
		if (order == JOIN)
			worker->result = perfring_soft_join();
		else if (order == LEAVE)
			perfring_soft_leave();
		else if (order == RAISE)
			raise_times(worker->point, worker->n);
		else if (order == BURN)
			burn((uint64_t)worker->n);
		worker->order = 0;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
	} while (order != END);
	return NULL;
}

static inline void begin(struct worker *worker, struct perfring_soft_point *point)
{
	memset(worker, 0, sizeof(*worker));
	worker->point = point;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	cr_assert_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static inline int tell(struct worker *worker, int order, int n)
{
	pthread_mutex_lock(&worker->lock);
	worker->order = order;
	worker->n = n;
	pthread_cond_broadcast(&worker->changed);
	while (worker->order)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	return worker->result;
}

static inline void end(struct worker *worker)
{
	tell(worker, END, 0);
	pthread_join(worker->thread, NULL);
}

/* Samples of `id` (0: all) in all rings, which are emptied.  The attr has ID and STREAM_ID alone. */
struct two_ids {
	struct perf_event_header header;
	uint64_t id, stream_id;
};

static inline int drain_ids(struct perfring_soft_event *event, uint64_t id, uint64_t *stream_id)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	struct two_ids two;
	int n = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			memcpy(&two, record, sizeof(two));
			if (id && two.id != id)
				continue;
			if (stream_id)
				*stream_id = two.stream_id;
			n++;
		}
		perfring_reader_return(&member->reader);
	}
	return n;
}

static inline struct perf_event_attr attr_sampling(const struct perfring_soft_point *point)
{
	struct perf_event_attr attr = attr_of(point);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	return attr;
}

#endif
