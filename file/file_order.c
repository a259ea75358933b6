/* file_order.c - records that wait for their turn in time: runs that are in order already, merged as they are handed out.
 *
 * The records of one ring stand in the file as one run, or nearly, so there are few runs, and no record is moved but
 * into the user's hands.
 */
#include <stdlib.h>
#include "file_order.h"

/* What is left moves to the front, and the runs that are used up go. */
static void close_up(struct perfring_order *order)
{
	size_t runs = 0, count = 0;

	for (size_t i = 0; i < order->run_count; i++) {
		struct perfring_run run = order->runs[i];
		size_t left = run.end - run.at;

		if (!left)
			continue;
		memmove(order->pending + count, order->pending + run.at, left * sizeof(*order->pending));
		order->runs[runs].at = count;
		order->runs[runs++].end = count += left;
	}
	order->count = count;
	order->run_count = runs;
}

int perfring_order_grow(struct perfring_order *order)
{
	struct perfring_pending *pending;
	size_t room;

	close_up(order);
	if (order->room && order->count <= order->room / 2)
		return 0;
	room = order->room ? order->room * 2 : 1024;
	pending = realloc(order->pending, room * sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	order->pending = pending;
	order->room = room;
	return 0;
}

/* And for their tournament: making due cannot fail. */
int perfring_order_grow_runs(struct perfring_order *order)
{
	size_t room = order->run_room ? order->run_room * 2 : 16;
	struct perfring_run *runs = realloc(order->runs, room * sizeof(*runs));
	struct perfring_contender *contenders;

	if (!runs)
		return -ENOMEM;
	order->runs = runs;
	contenders = realloc(order->contenders, room * sizeof(*contenders));
	if (!contenders)
		return -ENOMEM;
	order->contenders = contenders;
	contenders = realloc(order->winners, 2 * room * sizeof(*contenders));
	if (!contenders)
		return -ENOMEM;
	order->winners = contenders;
	order->run_room = room;
	return 0;
}

void perfring_order_close(struct perfring_order *order)
{
	free(order->pending);
	free(order->runs);
	free(order->contenders);
	free(order->winners);
}

static void make_due(struct perfring_order *order, uint64_t time, size_t count)
{
	size_t leaves = 1, runs = 0;

	for (size_t i = 0; i < order->run_count; i++)
		if (order->runs[i].at < order->runs[i].end)
			order->runs[runs++] = order->runs[i];
	order->run_count = runs;
	/* the end of a run is never due */
	order->due_time = time - (time == UINT64_MAX);
	order->due_count = order->left ? count : 0;
	if (!order->left) {
		order->count = 0;
		return;
	}
	/* a power of two, at most run_room */
	while (leaves < runs)
		leaves *= 2;
	order->leaves = leaves;
	for (size_t i = 0; i < leaves; i++)
		order->winners[leaves + i] = i < runs ? perfring_order_contender(order, i)
						      : (struct perfring_contender){UINT64_MAX, (uint32_t)i};
	for (size_t node = leaves - 1; node; node--) {
		struct perfring_contender left = order->winners[2 * node], right = order->winners[2 * node + 1];
		bool is_right = perfring_order_is_before(right, left);

		order->winners[node] = is_right ? right : left;
		order->contenders[node] = is_right ? left : right;
	}
	order->contenders[0] = order->winners[1];
}

void perfring_order_round(struct perfring_order *order)
{
	make_due(order, order->boundary, SIZE_MAX);
	order->boundary = order->newest;
}

void perfring_order_half(struct perfring_order *order)
{
	make_due(order, UINT64_MAX, (order->left + 1) / 2);
}

void perfring_order_all(struct perfring_order *order)
{
	make_due(order, UINT64_MAX, SIZE_MAX);
}
