/* order.h - records that wait for their turn in time. */
#ifndef PERFRING_DATA_ORDER_H
#define PERFRING_DATA_ORDER_H

#include <perfring/base.h>

struct perfring_pending {
	uint64_t time;
	int64_t at;
	const struct perf_event_header *record;
	const struct perfring_format *format;
};

/*     0        first      due       count     room
 *     |  gone  |   due    | waiting |  free   |
 */
struct perfring_order {
	struct perfring_pending *pending;
	struct perfring_pending *scratch;
	size_t first, due, count, room;
	uint64_t newest;   /* of all that ever waited */
	uint64_t boundary; /* newest, when the last round ended */
	bool disordered;
};

static inline bool perfring_order_has_due(const struct perfring_order *order)
{
	return order->first < order->due;
}

static inline size_t perfring_order_waiting(const struct perfring_order *order)
{
	return order->count - order->due;
}

int perfring_order_grow(struct perfring_order *order);
void perfring_order_close(struct perfring_order *order);

/* Only while nothing is due. */
static inline int perfring_order_push(struct perfring_order *order, const struct perfring_pending *pending)
{
	if (PERFRING_UNLIKELY(order->count == order->room)) {
		int error = perfring_order_grow(order);

		if (error)
			return error;
	}
	if (order->count > order->first && pending->time < order->pending[order->count - 1].time)
		order->disordered = true;
	if (pending->time > order->newest)
		order->newest = pending->time;
	order->pending[order->count++] = *pending;
	return 0;
}

/* A round ended: what is no younger than the newest of the rounds before it is due. */
void perfring_order_round(struct perfring_order *order);
/* The older half, at least one. */
void perfring_order_half(struct perfring_order *order);
void perfring_order_all(struct perfring_order *order);

#endif
