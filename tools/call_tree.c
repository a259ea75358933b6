/* call_tree.c - paths of calls that begin alike, as a tree.
 *
 * report_callers.c builds the trees.  Children of a node are found by a hash table over all nodes; nodes are indices, and do not
 * move.
 */
#include "call_tree.h"
#include <stdlib.h>
#include <string.h>
#include "tools.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint32_t add_node(struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	if (tree->count == tree->capacity) {
		tree->capacity = tree->capacity ? 2 * tree->capacity : 64;
		tree->nodes = tool_allocate(tree->nodes, tree->capacity, sizeof(*tree->nodes));
	}
	tree->nodes[tree->count] = (struct tool_tree_node){.frame = frame, .parent = parent};
	return tree->count++;
}

void tool_tree_clear(struct tool_tree *tree)
{
	tree->count = 0;
	tree->cut = tree->crowded = 0;
	if (tree->slots)
		memset(tree->slots, 0, tree->slot_count * sizeof(*tree->slots));
	add_node(tree, 0, 0);
}

void tool_tree_close(struct tool_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct tool_tree){.nodes = NULL};
}

/* The slot of a child of `parent`, or the free slot for it. */
static uint32_t *find_slot(const struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t hash = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (at &= tree->slot_count - 1; tree->slots[at]; at = (at + 1) & (tree->slot_count - 1)) {
		const struct tool_tree_node *node = &tree->nodes[tree->slots[at]];

		if (node->parent == parent && node->frame == frame)
			break;
	}
	return &tree->slots[at];
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
		*find_slot(tree, tree->nodes[i].parent, tree->nodes[i].frame) = i;
}

static void weigh(struct tool_tree_node *node, uint64_t weight, uint64_t samples)
{
	node->weight = plus(node->weight, weight);
	node->samples = plus(node->samples, samples);
}

/* The child of `parent`, which is added if there is none; 0: a bound is exceeded. */
static uint32_t find_child(struct tool_tree *tree, uint32_t parent, uint32_t frame)
{
	uint32_t *slot, depth = tree->nodes[parent].depth + 1;

	grow(tree);
	slot = find_slot(tree, parent, frame);
	if (*slot)
		return *slot;
	if (depth > TOOL_TREE_DEPTH_MAX || tree->count == TOOL_TREE_NODES_MAX)
		return 0;
	*slot = add_node(tree, parent, frame);
	tree->nodes[*slot].depth = depth;
	return *slot;
}

void tool_tree_add(struct tool_tree *tree, const uint32_t *frames, uint32_t count, uint64_t weight, uint64_t samples)
{
	uint32_t node = TOOL_TREE_ROOT, child;

	weigh(&tree->nodes[node], weight, samples);
	for (uint32_t i = 0; i < count; i++) {
		child = find_child(tree, node, frames[i]);
		if (!child && tree->nodes[node].depth == TOOL_TREE_DEPTH_MAX)
			tree->cut++;
		else if (!child)
			tree->crowded++;
		if (!child)
			break;
		node = child;
		weigh(&tree->nodes[node], weight, samples);
	}
	tree->nodes[node].self = plus(tree->nodes[node].self, weight);
	tree->nodes[node].self_samples = plus(tree->nodes[node].self_samples, samples);
}

static int compare(const void *a, const void *b, void *of)
{
	const struct tool_tree_node *nodes = of;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	if (nodes[one].weight != nodes[other].weight)
		return nodes[one].weight < nodes[other].weight ? 1 : -1;
	return one < other ? -1 : one > other;
}

void tool_tree_sort(struct tool_tree *tree)
{
	uint32_t *order = tool_allocate(NULL, tree->count + 1, sizeof(*order));

	for (uint32_t i = 0; i < tree->count; i++) {
		order[i] = i;
		tree->nodes[i].first = tree->nodes[i].next = 0;
	}
	qsort_r(order, tree->count, sizeof(*order), compare, tree->nodes);
	for (uint32_t i = tree->count; i--;) {
		struct tool_tree_node *node = &tree->nodes[order[i]];

		if (order[i] == TOOL_TREE_ROOT)
			continue;
		node->next = tree->nodes[node->parent].first;
		tree->nodes[node->parent].first = order[i];
	}
	free(order);
}
