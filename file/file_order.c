/* file_order.c - records in time order: runs that are ordered already, merged by a tournament.
 *
 * The records of one ring are nearly one run of the file, so there are few runs, and no record is moved.
 *
 * file_order.h has the inlines.  file_reader.c pushes the records that a stream has read, and pops those that are due.  Memory: a
 * few words for each waiting record, of which file_reader.c bounds the number.
 */
#include <stdlib.h>
#include "os/array.h"
#include "file_order.h"

/* Moves the pending records to the front, and removes runs that are empty. */
static void compact(struct perfring_order *order)
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

int perfring__order_grow(struct perfring_order *order)
{
	size_t capacity = order->capacity ? order->capacity * 2 : 1024;

	compact(order);
	if (order->capacity && order->count <= order->capacity / 2)
		return 0;
	if (perfring__os_array_resize(&order->pending, capacity, sizeof(*order->pending)))
		return -ENOMEM;
	order->capacity = capacity;
	return 0;
}

int perfring__order_grow_runs(struct perfring_order *order)
{
	size_t capacity = order->run_capacity ? order->run_capacity * 2 : 16;

	if (perfring__os_array_resize(&order->runs, capacity, sizeof(*order->runs)) ||
	    perfring__os_array_resize(&order->contenders, capacity, sizeof(*order->contenders)) ||
	    perfring__os_array_resize(&order->winners, 2 * capacity, sizeof(*order->winners)))
		return -ENOMEM;
	order->run_capacity = capacity;
	return 0;
}

void perfring__order_close(struct perfring_order *order)
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
	/* UINT64_MAX is the key of an empty run, which is never due: so pop finds no record in it */
	order->due_time = time - (time == UINT64_MAX);
	order->due_count = order->left ? count : 0;
	if (!order->left) {
		order->count = 0;
		return;
	}
	/* a power of two, as run_capacity is */
	while (leaves < runs)
		leaves *= 2;
	order->leaves = leaves;
	for (size_t i = 0; i < leaves; i++)
		order->winners[leaves + i] = i < runs ? perfring__order_contender(order, i)
						      : (struct perfring_contender){UINT64_MAX, (uint32_t)i};
	for (size_t node = leaves - 1; node; node--) {
		struct perfring_contender left = order->winners[2 * node], right = order->winners[2 * node + 1];
		bool is_right = perfring__order_is_before(right, left);

		order->winners[node] = is_right ? right : left;
		order->contenders[node] = is_right ? left : right;
	}
	order->contenders[0] = order->winners[1];
}

void perfring__order_round(struct perfring_order *order)
{
	make_due(order, order->boundary, SIZE_MAX);
	order->boundary = order->newest;
}

void perfring__order_half(struct perfring_order *order)
{
	make_due(order, UINT64_MAX, (order->left + 1) / 2);
}

void perfring__order_all(struct perfring_order *order)
{
	make_due(order, UINT64_MAX, SIZE_MAX);
}
