/* intervals.c - mappings by address, without overlaps, in trees that share nodes.
 *
 * The functions of intervals.h.  A node's references are counted, and only a node with one reference is changed.
 */
#include <stdlib.h>

#include "intervals.h"
#include "os/hash.h"

/* Nodes that are kept for the next change; a test keeps fewer. */
#ifndef SPARE_MAX
#define SPARE_MAX 256
#endif

typedef struct perfring_interval node;

void perfring__intervals_open(struct perfring_intervals *intervals)
{
	*intervals = (struct perfring_intervals){.random = perfring__os_hash_factor(intervals)};
}

void perfring__intervals_close(struct perfring_intervals *intervals)
{
	node *one;

	while ((one = intervals->spare)) {
		intervals->spare = one->low;
		free(one);
	}
}

/* ---- nodes ---- */

static uint32_t draw(struct perfring_intervals *intervals)
{
	intervals->random ^= intervals->random << 13;
	intervals->random ^= intervals->random >> 7;
	intervals->random ^= intervals->random << 17;
	return (uint32_t)(intervals->random >> 32);
}

static int reserve(struct perfring_intervals *intervals, uint32_t count)
{
	node *one;

	while (intervals->spare_count < count) {
		one = malloc(sizeof(*one));
		if (!one)
			return -ENOMEM;
		one->low = intervals->spare;
		intervals->spare = one;
		intervals->spare_count++;
	}
	return 0;
}

/* One that was reserved. */
static node *draw_node(struct perfring_intervals *intervals)
{
	node *one = intervals->spare;

	assert(one);
	intervals->spare = one->low;
	intervals->spare_count--;
	intervals->count++;
	return one;
}

static void put_back(struct perfring_intervals *intervals, node *one)
{
	intervals->count--;
	if (intervals->spare_count >= SPARE_MAX) {
		free(one);
		return;
	}
	one->low = intervals->spare;
	intervals->spare = one;
	intervals->spare_count++;
}

/* Recursion is as deep as the tree. */
void perfring__intervals_drop(struct perfring_intervals *intervals, node *tree)
{
	node *next;

	for (; tree && !--tree->refs; tree = next) {
		next = tree->high;
		perfring__intervals_drop(intervals, tree->low);
		put_back(intervals, tree);
	}
}

node *perfring__intervals_share(node *tree)
{
	if (tree)
		tree->refs++;
	return tree;
}

static node *plant(struct perfring_intervals *intervals, const struct perfring_mapping *mapping)
{
	node *one = draw_node(intervals);

	*one = (node){.mapping = *mapping, .refs = 1, .priority = draw(intervals)};
	return one;
}

/* The node, or a copy of it if it is shared: to be changed. */
static node *own(struct perfring_intervals *intervals, node *one)
{
	node *copy;

	if (one->refs == 1)
		return one;
	copy = draw_node(intervals);
	*copy = *one;
	copy->refs = 1;
	if (copy->low)
		copy->low->refs++;
	if (copy->high)
		copy->high->refs++;
	one->refs--;
	return copy;
}

/* ---- trees: each function takes over the references that it is given ---- */

/* Splits into the mappings that begin below `at` and the others.  Copies no more nodes than path_length counts.  The
 * nodes at the right edge of *low and at the left edge of *high are not shared any more. */
static void split(struct perfring_intervals *intervals, node *tree, uint64_t at, node **low, node **high)
{
	node *inner;

	if (!tree) {
		*low = NULL;
		*high = NULL;
		return;
	}
	tree = own(intervals, tree);
	if (tree->mapping.addr < at) {
		split(intervals, tree->high, at, &inner, high);
		tree->high = inner;
		*low = tree;
	} else {
		split(intervals, tree->low, at, low, &inner);
		tree->low = inner;
		*high = tree;
	}
}

static uint32_t path_length(const node *tree, uint64_t at)
{
	uint32_t length = 0;

	for (; tree; tree = tree->mapping.addr < at ? tree->high : tree->low)
		length++;
	return length;
}

/* Everything in low is below everything in high.  The edges that meet are those of split, or of a merge of them: none of
 * their nodes is shared. */
static node *merge(node *low, node *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low->high = merge(low->high, high);
		return low;
	}
	high->low = merge(low, high->low);
	return high;
}

const struct perfring_mapping *perfring__intervals_find(const node *tree, uint64_t addr)
{
	while (tree && (addr < tree->mapping.addr || addr >= tree->mapping.end))
		tree = addr < tree->mapping.addr ? tree->low : tree->high;
	return tree ? &tree->mapping : NULL;
}

/* Cuts [addr, end) out and puts the mapping there, unless it is NULL.  A tree's root may be in other trees: then it is
 * copied by split, and theirs stays. */
static int replace(struct perfring_intervals *intervals, node **tree, uint64_t addr, uint64_t end,
		   const struct perfring_mapping *mapping)
{
	const struct perfring_mapping *old;
	struct perfring_mapping rest;
	node *low, *middle, *high, *after = NULL, *last;

	if (addr >= end)
		return 0;
	/* both splits, the mapping, and what reaches beyond its end */
	if (reserve(intervals, path_length(*tree, addr) + path_length(*tree, end) + 2))
		return -ENOMEM;
	old = perfring__intervals_find(*tree, end);
	if (old && old->addr < end) {
		rest = *old;
		rest.pgoff += end - rest.addr;
		rest.addr = end;
		after = plant(intervals, &rest);
	}
	split(intervals, *tree, addr, &low, &high);
	for (last = low; last && last->high; last = last->high)
		;
	if (last && last->mapping.end > addr)
		last->mapping.end = addr;
	split(intervals, high, end, &middle, &high);
	perfring__intervals_drop(intervals, middle);
	if (mapping)
		low = merge(low, plant(intervals, mapping));
	*tree = merge(merge(low, after), high);
	return 0;
}

int perfring__intervals_put(struct perfring_intervals *intervals, node **tree, const struct perfring_mapping *mapping)
{
	return replace(intervals, tree, mapping->addr, mapping->end, mapping);
}

int perfring__intervals_remove(struct perfring_intervals *intervals, node **tree, uint64_t addr, uint64_t end)
{
	return replace(intervals, tree, addr, end, NULL);
}
