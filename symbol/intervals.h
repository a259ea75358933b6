/* intervals.h - mappings by address, without overlaps, in trees that share nodes.
 *
 * maps.c keeps processes' mappings in them, jit.c code by its addresses.  One thread.
 *
 * A tree is a treap: ordered by address, and a heap by random priorities, so that what is mapped cannot choose its shape.
 * Nodes count their references.  A second tree of the same contents is one more reference to the root; a node that is
 * shared is copied before it is changed, with those above it:
 *
 *     one ---> B <--- other            other unmaps D:      one ---> B     B' <--- other
 *            /   \                                                 /   \ /   \
 *           A     D                                               A     D     (nothing)
 *                                                                 ^___________'
 *
 * A change costs O(log n) steps and nodes, whatever is shared, and what it cuts out is freed.  It takes all nodes that it may need beforehand: without
 * memory it changes nothing.
 */
#ifndef PERFRING_SYMBOL_INTERVALS_H
#define PERFRING_SYMBOL_INTERVALS_H

#include <perfring/maps.h>

struct perfring_interval {
	struct perfring_mapping mapping;
	struct perfring_interval *low;
	struct perfring_interval *high;
	uint32_t refs;
	uint32_t priority;
};

/* The memory of several trees.  Each tree is a pointer to its root, NULL when it is empty. */
struct perfring_intervals {
	struct perfring_interval *spare; /* a list, linked by `low` */
	uint32_t spare_count;
	uint64_t count; /* of nodes in trees */
	uint64_t random;
};

void perfring__intervals_open(struct perfring_intervals *intervals);

/* Frees the spare nodes.  All trees must have been dropped. */
void perfring__intervals_close(struct perfring_intervals *intervals);

/* Puts a mapping, which replaces what it overlaps.  An empty mapping changes nothing.  Returns 0 or -ENOMEM: nothing is changed. */
int perfring__intervals_put(struct perfring_intervals *intervals, struct perfring_interval **tree,
			    const struct perfring_mapping *mapping);

/* Unmaps [addr, end); the rest of mappings that reach beyond it stays.  Returns 0 or -ENOMEM: nothing is changed. */
int perfring__intervals_remove(struct perfring_intervals *intervals, struct perfring_interval **tree, uint64_t addr,
			       uint64_t end);

/* share: another reference to the same tree, at most 2^32 - 1.  drop: ends one, and frees nodes that have none left. */
struct perfring_interval *perfring__intervals_share(struct perfring_interval *tree);
void perfring__intervals_drop(struct perfring_intervals *intervals, struct perfring_interval *tree);

/* The mapping at an address; NULL: there is none.  Valid until the tree is changed or dropped. */
const struct perfring_mapping *perfring__intervals_find(const struct perfring_interval *tree, uint64_t addr);

#endif
