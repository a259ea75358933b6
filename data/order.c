/* order.c - records that wait for their turn in time: a natural merge sort.
 *
 * The records of one ring stand in the file as one run that is sorted already, or nearly, so there are few runs.
 * Merging is stable and what waits is in file order: equal times keep it.
 */
#include <stdlib.h>
#include "order.h"

int perfring_order_grow(struct perfring_order *order)
{
	size_t waiting = order->count - order->first;
	size_t room = order->room ? order->room * 2 : 1024;
	struct perfring_pending *pending, *scratch;

	if (order->first > order->room / 2) {
		memmove(order->pending, order->pending + order->first, waiting * sizeof(*order->pending));
	} else {
		/* both here, so that sorting cannot fail; scratch holds nothing between sorts */
		scratch = malloc(room * sizeof(*scratch));
		pending = scratch ? realloc(order->pending, room * sizeof(*pending)) : NULL;
		if (!pending) {
			free(scratch);
			return -ENOMEM;
		}
		free(order->scratch);
		order->scratch = scratch;
		order->pending = pending;
		order->room = room;
		memmove(pending, pending + order->first, waiting * sizeof(*pending));
	}
	order->first = 0;
	order->due = 0;
	order->count = waiting;
	return 0;
}

void perfring_order_close(struct perfring_order *order)
{
	free(order->pending);
	free(order->scratch);
}

static size_t run_end(const struct perfring_pending *from, size_t begin, size_t count)
{
	size_t end = begin + 1;

	while (end < count && from[end - 1].time <= from[end].time)
		end++;
	return end;
}

static void merge(struct perfring_pending *to, const struct perfring_pending *left,
		  const struct perfring_pending *middle, const struct perfring_pending *end)
{
	const struct perfring_pending *right = middle;

	while (left < middle && right < end) {
		bool is_right = right->time < left->time;

		*to++ = *(is_right ? right : left);
		right += is_right;
		left += !is_right;
	}
	memcpy(to, left, (size_t)(middle - left) * sizeof(*to));
	memcpy(to + (middle - left), right, (size_t)(end - right) * sizeof(*to));
}

static void sort(struct perfring_order *order)
{
	size_t count = order->count - order->first;

	if (!order->disordered)
		return;
	order->disordered = false;
	for (;;) {
		const struct perfring_pending *from = order->pending + order->first;
		struct perfring_pending *to = order->scratch;
		size_t begin, middle, end;

		for (begin = 0; begin < count; begin = end) {
			middle = run_end(from, begin, count);
			if (middle == count && begin == 0)
				return;
			end = middle < count ? run_end(from, middle, count) : middle;
			merge(to + begin, from + begin, from + middle, from + end);
		}
		order->scratch = order->pending;
		order->pending = to;
		order->first = 0;
		order->due = 0;
		order->count = count;
	}
}

void perfring_order_round(struct perfring_order *order)
{
	size_t low, high;

	sort(order);
	low = order->first;
	high = order->count;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (order->pending[middle].time <= order->boundary)
			low = middle + 1;
		else
			high = middle;
	}
	order->due = low;
	order->boundary = order->newest;
}

void perfring_order_half(struct perfring_order *order)
{
	sort(order);
	order->due = order->first + (order->count - order->first + 1) / 2;
}

void perfring_order_all(struct perfring_order *order)
{
	sort(order);
	order->due = order->count;
}
