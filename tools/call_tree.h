/* call_tree.h - paths of calls that begin alike, as a tree.
 *
 *     tool_tree_clear(&tree);
 *     tool_tree_add(&tree, frames, count, weight, samples);        each path
 *     tool_tree_sort(&tree);
 *     ... tree.nodes ...
 *     tool_tree_close(&tree);
 *
 * Frames are numbers of the caller.  A tree is bounded: what is deeper than TOOL_TREE_DEPTH_MAX frames, or beyond TOOL_TREE_NODES_MAX
 * nodes, counts where its path was cut.
 *
 * Without memory the program ends with one line. */
#ifndef PERFRING_TOOLS_CALL_TREE_H
#define PERFRING_TOOLS_CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TOOL_TREE_ROOT = 0, /* the node above all paths, without a frame */
	TOOL_TREE_DEPTH_MAX = 512,
	TOOL_TREE_NODES_MAX = 1 << 20,
};

struct tool_tree_node {
	uint32_t frame, depth;
	uint32_t parent, first, next; /* nodes; 0: none */
	uint64_t weight, samples;     /* of all paths through it */
	uint64_t self, self_samples;  /* of those that end here */
};

/* Begins as all 0, and must be cleared before the first path. */
struct tool_tree {
	struct tool_tree_node *nodes;
	uint32_t count, capacity;
	uint32_t *slots; /* nodes by parent and frame; 0: free */
	uint32_t slot_count;
	uint64_t cut, crowded; /* paths that are deeper than that; of which the tree has no space for all nodes */
};

/* Removes all nodes but the root. */
void tool_tree_clear(struct tool_tree *tree);
void tool_tree_close(struct tool_tree *tree);

/* Adds a path of `count` frames, of which the first is a child of the root. */
void tool_tree_add(struct tool_tree *tree, const uint32_t *frames, uint32_t count, uint64_t weight, uint64_t samples);

/* Sorts the children of each node by weight, the largest first; equal ones stay in the order of adding. */
void tool_tree_sort(struct tool_tree *tree);

#endif
