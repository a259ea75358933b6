/* call_tree.c - paths of calls that begin alike, as a tree.
 *
 * report_callers.c builds the trees.  Children of a node are found by a hash table over all nodes; nodes are indices, and do not
 * move.
 */
#include "call_tree.h"
#include <stdlib.h>
#include <string.h>
#include "tools.h"

static uint32_t add_node(struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	if (tree->count == tree->capacity) {
		tree->capacity = tree->capacity ? 2 * tree->capacity : 64;
		tree->nodes = tool_allocate(tree->nodes, tree->capacity, sizeof(*tree->nodes));
	}
	tree->nodes[tree->count] = (struct tool_tree_node){.frame = frame, .parent = parent, .order = tree->count};
	return tree->count++;
}

void tool_tree_clear(struct tool_tree *tree)
{
	/* of a small tree in a large table, only the slots that are taken */
	if (tree->count < tree->slot_count / 16)
		for (uint32_t i = 1; i < tree->count; i++)
			tree->slots[tree->nodes[i].slot] = 0;
	else if (tree->slots)
		memset(tree->slots, 0, tree->slot_count * sizeof(*tree->slots));
	tree->count = 0;
	tree->cut = tree->crowded = 0;
	add_node(tree, 0, 0);
}

void tool_tree_close(struct tool_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct tool_tree){.nodes = NULL};
}

/* The slot of a child of `parent`, or the free slot for it. */
static uint32_t find_slot(const struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t hash = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (at &= tree->slot_count - 1; tree->slots[at]; at = (at + 1) & (tree->slot_count - 1)) {
		const struct tool_tree_node *node = &tree->nodes[tree->slots[at]];

		if (node->parent == parent && node->frame == frame)
			break;
	}
	return at;
}

static void take_slot(struct tool_tree *tree, uint32_t slot, uint32_t node)
{
	tree->slots[slot] = node;
	tree->nodes[node].slot = slot;
}

/* At most half of the slots are taken. */
static void grow(struct tool_tree *tree)
{
	if (tree->slot_count / 2 > tree->count)
		return;
	tree->slot_count = tree->slot_count ? 2 * tree->slot_count : 256;
	tree->slots = tool_allocate(tree->slots, tree->slot_count, sizeof(*tree->slots));
	memset(tree->slots, 0, tree->slot_count * sizeof(*tree->slots));
	for (uint32_t i = 1; i < tree->count; i++)
		take_slot(tree, find_slot(tree, tree->nodes[i].parent, tree->nodes[i].frame), i);
}

uint32_t tool_tree_child(struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	uint32_t slot, depth = tree->nodes[parent].depth + 1;

	grow(tree);
	slot = find_slot(tree, parent, frame);
	if (tree->slots[slot])
		return tree->slots[slot];
	if (depth > TOOL_TREE_DEPTH_MAX)
		tree->cut++;
	else if (tree->count == TOOL_TREE_NODES_MAX)
		tree->crowded++;
	if (depth > TOOL_TREE_DEPTH_MAX || tree->count == TOOL_TREE_NODES_MAX)
		return 0;
	take_slot(tree, slot, add_node(tree, parent, frame));
	tree->nodes[tree->slots[slot]].depth = depth;
	return tree->slots[slot];
}

void tool_tree_count(struct tool_tree *tree, uint32_t node, uint64_t weight, uint64_t samples)
{
	tree->nodes[node].self = tool_plus(tree->nodes[node].self, weight);
	tree->nodes[node].self_samples = tool_plus(tree->nodes[node].self_samples, samples);
}

static int compare(const void *a, const void *b, void *of)
{
	const struct tool_tree_node *nodes = of;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	if (nodes[one].weight != nodes[other].weight)
		return nodes[one].weight < nodes[other].weight ? 1 : -1;
	return nodes[one].order < nodes[other].order ? -1 : nodes[one].order > nodes[other].order;
}

/* Puts a node before the other children of its parent. */
static void put_first(struct tool_tree *tree, uint32_t index)
{
	struct tool_tree_node *node = &tree->nodes[index];

	node->next = tree->nodes[node->parent].first;
	tree->nodes[node->parent].first = index;
}

void tool_tree_sum(struct tool_tree *tree)
{
	struct tool_tree_node *nodes = tree->nodes;

	for (uint32_t i = tree->count; i--;) { /* children are after their parents */
		nodes[i].weight = tool_plus(nodes[i].weight, nodes[i].self);
		nodes[i].samples = tool_plus(nodes[i].samples, nodes[i].self_samples);
		if (i == TOOL_TREE_ROOT)
			break;
		nodes[nodes[i].parent].weight = tool_plus(nodes[nodes[i].parent].weight, nodes[i].weight);
		nodes[nodes[i].parent].samples = tool_plus(nodes[nodes[i].parent].samples, nodes[i].samples);
	}
}

void tool_tree_sort(struct tool_tree *tree, uint64_t least)
{
	uint32_t *order = tool_allocate(NULL, tree->count, sizeof(*order)), count = 0;

	for (uint32_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].weight < least)
			put_first(tree, i);
		else
			order[count++] = i;
	qsort_r(order, count, sizeof(*order), compare, tree->nodes);
	while (count--)
		put_first(tree, order[count]);
	free(order);
}
