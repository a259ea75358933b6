/* file_order.h - records in time order.
 *
 * file_reader.c orders each stream's records by it.  One thread.  A record stays where it is in memory: only its place, offset
 * and time are ordered.
 */
#ifndef PERFRING_FILE_FILE_ORDER_H
#define PERFRING_FILE_FILE_ORDER_H

#include <perfring/base.h>
#include <perfring/feature.h>

struct perfring_pending {
	uint64_t time;
	int64_t at;
	const struct perf_event_header *record;
	const struct perfring_format *format;
};

/* Consecutive records whose times do not decrease. */
struct perfring_run {
	size_t at; /* of the next one, in pending */
	size_t end;
};

/* A run in the tournament, by the time of its next record. */
struct perfring_contender {
	uint64_t key; /* UINT64_MAX: the run is empty */
	uint32_t run;
};

/* Begins as all 0.  Invariants: the runs follow one another in `pending`, in the order of the file; the last one ends at `count`, or
 * before it where a later run has become empty.  While a record is due, contenders[0] is the run with the oldest record, contenders[n] of 1 .. leaves - 1 the loser of node
 * n of the tournament; leaf i is node `leaves + i`. */
struct perfring_order {
	struct perfring_pending *pending;
	size_t count, capacity;
	size_t left; /* records in the runs */
	struct perfring_run *runs;
	size_t run_count, run_capacity;
	struct perfring_contender *contenders;
	struct perfring_contender *winners; /* of each node, while the tournament is set up */
	size_t leaves;
	uint64_t due_time; /* records with time <= due_time are due */
	size_t due_count;  /* at most this many */
	uint64_t newest;   /* time of all that were pushed */
	uint64_t boundary; /* `newest` when the last round ended */
};

static inline bool perfring__order_has_due(const struct perfring_order *order)
{
	return order->due_count && order->left && order->contenders[0].key <= order->due_time;
}

static inline size_t perfring__order_waiting(const struct perfring_order *order)
{
	return order->left;
}

/* The oldest record that is due. */
static inline const struct perfring_pending *perfring__order_first(const struct perfring_order *order)
{
	return &order->pending[order->runs[order->contenders[0].run].at];
}

static inline struct perfring_contender perfring__order_contender(const struct perfring_order *order, size_t number)
{
	const struct perfring_run *run = &order->runs[number];
	uint64_t time = run->at < run->end ? order->pending[run->at].time : UINT64_MAX;

	/* UINT64_MAX is the key of empty runs only */
	return (struct perfring_contender){time - (time == UINT64_MAX && run->at < run->end), (uint32_t)number};
}

/* Whether a run's next record comes first; equal times keep the order of the file. */
static inline bool perfring__order_is_before(struct perfring_contender one, struct perfring_contender other)
{
	return (one.key < other.key) | ((one.key == other.key) & (one.run < other.run));
}

/* Removes the oldest record that is due, and returns it.  Valid until the next push. */
static inline const struct perfring_pending *perfring__order_pop(struct perfring_order *order)
{
	const struct perfring_pending *first = perfring__order_first(order);
	struct perfring_contender *contenders = order->contenders, winner;
	uint32_t number = contenders[0].run;

	order->runs[number].at++;
	order->left--;
	order->due_count--;
	winner = perfring__order_contender(order, number);
	for (size_t node = (order->leaves + number) / 2; node; node /= 2) {
		struct perfring_contender other = contenders[node];
		bool is_other = perfring__order_is_before(other, winner);

		contenders[node].key = is_other ? winner.key : other.key;
		contenders[node].run = is_other ? winner.run : other.run;
		winner.key = is_other ? other.key : winner.key;
		winner.run = is_other ? other.run : winner.run;
	}
	contenders[0] = winner;
	if (winner.key <= order->due_time)
		__builtin_prefetch(order->pending[order->runs[winner.run].at].record);
	return first;
}

int perfring__order_grow(struct perfring_order *order);
int perfring__order_grow_runs(struct perfring_order *order);
void perfring__order_close(struct perfring_order *order);

/* Adds a record.  To be called only while nothing is due.  Returns 0 or -ENOMEM. */
static inline int perfring__order_push(struct perfring_order *order, const struct perfring_pending *pending)
{
	bool continues;
	int error;

	if (PERFRING_UNLIKELY(order->count == order->capacity)) {
		error = perfring__order_grow(order);
		if (error)
			return error;
	}
	continues = order->run_count && order->count == order->runs[order->run_count - 1].end && order->count &&
		    order->pending[order->count - 1].time <= pending->time;
	if (PERFRING_UNLIKELY(!continues)) {
		if (order->run_count == order->run_capacity) {
			error = perfring__order_grow_runs(order);
			if (error)
				return error;
		}
		order->runs[order->run_count].at = order->count;
		order->runs[order->run_count++].end = order->count;
	}
	if (pending->time > order->newest)
		order->newest = pending->time;
	order->pending[order->count++] = *pending;
	order->runs[order->run_count - 1].end = order->count;
	order->left++;
	return 0;
}

/* The three choose which records are due from now on.  A round ends at a FINISHED_ROUND record (docs/abi.md 10).  They cannot fail: push has allocated the tournament.
 *
 *     round   at the end of a round: all up to the newest time of the rounds before it
 *     half    the older half, at least one
 *     all     all */
void perfring__order_round(struct perfring_order *order);
void perfring__order_half(struct perfring_order *order);
void perfring__order_all(struct perfring_order *order);

#endif
