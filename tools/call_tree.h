/* call_tree.h - paths of calls that begin alike, as a tree.
 *
 *     tool_tree_clear(&tree);
 *     node = tool_tree_child(&tree, TOOL_TREE_ROOT, frame);        each frame of a path, from the outermost on
 *     tool_tree_count(&tree, node, weight, samples);               where the path ends
 *     tool_tree_sum(&tree);
 *     tool_tree_sort(&tree, least);
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
	uint32_t slot;
	uint32_t order;              /* of equal children the least is the first; the node's number, unless the caller sets it */
	uint32_t members, last;      /* of the caller */
	uint64_t self, self_samples; /* of the paths that end here */
	uint64_t weight, samples;    /* of all paths through it */
};

/* Begins as all 0, and must be cleared before the first path. */
struct tool_tree {
	struct tool_tree_node *nodes; /* a node has a larger index than its parent */
	uint32_t count, capacity;
	uint32_t *slots; /* nodes by parent and frame; 0: free */
	uint32_t slot_count;
	uint64_t cut, crowded; /* stacks that are deeper than that; of which the tree has no space for all nodes */
};

/* Removes all nodes but the root. */
void tool_tree_clear(struct tool_tree *tree);
void tool_tree_close(struct tool_tree *tree);

/* The child of a node, which is added if there is none.  Returns 0 if a bound is exceeded: the path is cut at `parent`, which
 * tree->cut or tree->crowded counts. */
uint32_t tool_tree_child(struct tool_tree *tree, uint32_t parent, uint32_t frame);

/* Counts a path that ends at a node. */
void tool_tree_count(struct tool_tree *tree, uint32_t node, uint64_t weight, uint64_t samples);

/* After all paths: sums them up for each node. */
void tool_tree_sum(struct tool_tree *tree);

/* Sorts the children of each node by weight, the largest first, then by their order; those below `least` follow the others in no
 * order. */
void tool_tree_sort(struct tool_tree *tree, uint64_t least);

#endif
