/* report_callers.c - callers in a report: what each function's callees add to it, and the call trees of rows.
 *
 * Samples of one row, stack and event are one path.  When all samples are known, each path is walked once:
 *
 *     path: row, stack, event     frames of the stack, the outermost first:   main   run   sum
 *                                                                              |     |     |
 *     the row of each, beside what else tells the path's row apart:           row   row   row
 *
 * A row's `children` is the sum of the paths that it is in.  Each counts once, however often a function calls itself.
 *
 * report_rows.c adds each sample's stack; report_print.c and report_json.c ask when all samples are known.  Stacks are a
 * profile's (profile.h).  Bounds: docs/limits.md.
 */
#include <search.h>
#include <stdlib.h>
#include <perfring/profile_fill.h>
#include "report.h"

enum {
	KNOWN_BITS = 14,
	NAME = 16384 + 16, /* bytes of an inlined function's */
};

/* Samples of one row, stack and event. */
struct path {
	struct tool_report_row *row;
	uint32_t stack;
	uint32_t cell; /* of the row's */
	uint64_t samples, weight;
};

/* An entry of a row's list of paths: a path, and the row's frame in it. */
struct link {
	uint32_t path;
	uint32_t at;   /* the stack that ends at the row's frame; PERFRING_PROFILE_NONE: no frame is shown */
	uint32_t next; /* the row's next link + 1; 0: none */
};

/* A stack in the tree that is being made: so what paths have in common is walked once. */
struct placed {
	uint32_t tree; /* the number of that tree */
	uint32_t from; /* the stack that ends at the row's frame */
	uint32_t at;   /* its part; where the tree goes to callers, its node */
};

/* A stack below the row's frame, or several with hidden frames, and the paths that go through it. */
struct part {
	uint32_t frame;
	uint32_t parent, first, next; /* parts; 0: none */
	uint32_t member;              /* the next part of its node; 0: none */
	uint64_t weight, samples;
	uint64_t self, self_samples; /* of paths that end here */
};

/* A cache of the rows of frames, by context and mark: that of a guest's frame is its sample's. */
struct known {
	const struct tool_report_row *context;
	struct tool_report_row *row; /* NULL: the place is free */
	uint32_t frame;
	char mark;
};

struct tool_report_callers {
	struct perfring_profile_fill *fill;
	struct perfring_profile *profile; /* of which stacks and frames are used */
	struct perfring_profile_tables tables;
	struct path *paths;
	uint32_t *slots; /* paths + 1; 0: free */
	uint32_t path_count, path_capacity, slot_count;
	struct link *links;
	uint32_t link_count, link_capacity;
	uint64_t pathless, linkless, rowless; /* samples, and frames of stacks, of which there were too many */
	size_t self_rows;                     /* rows before those of callers */
	uint64_t work;
	uint32_t *walked; /* the stacks of the last walk */
	uint32_t capacity;
	struct tool_tree tree;
	struct placed *placed; /* by stack */
	uint32_t tree_number;  /* of the last tree; 0: none yet */
	struct part *parts;    /* of that tree, each after its parent; the first is above all */
	uint32_t part_count, part_capacity;
	struct known *known;
	void *contexts; /* a tree */
};

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* Makes space in an array for one more than `count`. */
static void *grow(void *of, uint32_t count, uint32_t *capacity, size_t size)
{
	if (count < *capacity)
		return of;
	*capacity = *capacity ? 2 * *capacity : 1024;
	return tool_allocate(of, *capacity, size);
}

/* ---- samples ---- */

void tool_report_callers_open(struct tool_report *report)
{
	struct tool_report_callers *callers = tool_allocate(NULL, 1, sizeof(*callers));
	bool has_lines = report->has[TOOL_REPORT_SRCLINE] || report->has[TOOL_REPORT_SRCFILE];
	struct perfring_profile_fill_options options = {
		.flags = (report->no_inline ? PERFRING_FILL_NO_INLINE : 0) | (has_lines ? PERFRING_FILL_LINES : 0),
		.addresses = PERFRING_FILL_FUNCTIONS,
		.max_stack = report->max_stack,
		.filter = &report->filter,
		.names = tool_symbols_names(report->symbols),
	};

	*callers = (struct tool_report_callers){.fill = NULL};
	report->callers = callers;
	if (perfring_profile_open(&callers->profile, NULL) ||
	    perfring_profile_fill_open(&callers->fill, callers->profile, &options))
		tool_out_of_memory();
}

uint32_t tool_report_callers_stack(struct tool_report *report, const struct perfring_sample *sample)
{
	uint32_t stack;

	if (perfring_profile_fill_stack(report->callers->fill, sample, &stack))
		tool_out_of_memory();
	return stack;
}

static uint32_t *find_slot(const struct tool_report_callers *callers, const struct path *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key->row ^ (uint64_t)key->stack << 32 ^ key->cell;
	uint32_t mask = callers->slot_count - 1, at;

	hash *= UINT64_C(0x9e3779b97f4a7c15);
	for (at = (uint32_t)(hash >> 32) & mask; callers->slots[at]; at = (at + 1) & mask) {
		const struct path *path = &callers->paths[callers->slots[at] - 1];

		if (path->row == key->row && path->stack == key->stack && path->cell == key->cell)
			break;
	}
	return &callers->slots[at];
}

/* At most half of the slots are taken. */
static void grow_slots(struct tool_report_callers *callers)
{
	if (callers->slot_count / 2 > callers->path_count)
		return;
	callers->slot_count = callers->slot_count ? 2 * callers->slot_count : 4096;
	callers->slots = tool_allocate(callers->slots, callers->slot_count, sizeof(*callers->slots));
	memset(callers->slots, 0, callers->slot_count * sizeof(*callers->slots));
	for (uint32_t i = 0; i < callers->path_count; i++)
		*find_slot(callers, &callers->paths[i]) = i + 1;
}

void tool_report_callers_add(struct tool_report *report, struct tool_report_row *row, uint32_t cell, uint32_t stack,
			     uint64_t weight)
{
	struct tool_report_callers *callers = report->callers;
	struct path key = {.row = row, .stack = stack, .cell = cell}, *path;
	uint32_t *slot;

	grow_slots(callers);
	slot = find_slot(callers, &key);
	if (!*slot && callers->path_count == TOOL_REPORT_PATHS_MAX) {
		callers->pathless++;
		row->cells[cell].children = plus(row->cells[cell].children, weight);
		return;
	}
	if (!*slot) {
		callers->paths =
			grow(callers->paths, callers->path_count, &callers->path_capacity, sizeof(*callers->paths));
		callers->paths[callers->path_count] = key;
		*slot = ++callers->path_count;
	}
	path = &callers->paths[*slot - 1];
	path->samples++;
	path->weight = plus(path->weight, weight);
}

/* ---- sums ---- */

static bool is_hidden(const struct tool_report *report, uint32_t stack)
{
	const struct perfring_profile_tables *tables = &report->callers->tables;

	return report->hides_unresolved &&
	       !tables->functions[tables->frames[tables->stacks[stack].frame].function].name;
}

static void note_walked(struct tool_report_callers *callers, uint32_t count, uint32_t stack)
{
	callers->walked = grow(callers->walked, count, &callers->capacity, sizeof(*callers->walked));
	callers->walked[count] = stack;
}

/* Notes the stack and its callers, of which each ends at a frame that is shown, the innermost first.  Returns how many. */
static uint32_t walk(struct tool_report *report, uint32_t stack)
{
	uint32_t count = 0;

	for (; stack != PERFRING_PROFILE_NONE; stack = report->callers->tables.stacks[stack].caller)
		if (!is_hidden(report, stack))
			note_walked(report->callers, count++, stack);
	return count;
}

/* A row without its place: all rows that differ in that alone have one. */
static const struct tool_report_row *context_of(struct tool_report *report, struct tool_report_row *row)
{
	struct tool_report_row key = *row, *context;
	void *at;

	if (row->context)
		return row->context;
	key.mark = 0;
	key.symbol = key.object = key.line = key.source = NULL;
	key.address = 0;
	key.symbol_size = key.object_size = -1;
	key.links = key.seen = key.depth = 0;
	at = tfind(&key, &report->callers->contexts, tool_report_compare_keys);
	if (!at) {
		context = tool_allocate(NULL, 1, sizeof(*context));
		*context = key;
		at = tool_insert(context, &report->callers->contexts, tool_report_compare_keys);
	}
	return row->context = *(struct tool_report_row **)at;
}

static const char *name_of(struct tool_report *report, const struct perfring_profile_function *function)
{
	char name[NAME];
	int size;

	if (!function->name || function->kind != PERFRING_PROFILE_INLINED)
		return function->name;
	size = snprintf(name, sizeof(name), "%s (inlined)", function->name);
	return tool_machine_name(report->machine, name, size < (int)sizeof(name) ? (size_t)size : sizeof(name) - 1);
}

static void fill_line(struct tool_report *report, struct tool_report_row *key,
		      const struct perfring_profile_function *function, uint32_t line)
{
	const struct perfring_symbol_frame frame = {.file = function->file, .line = line};
	char text[TOOL_SYMBOLS_LINE];

	if (!*tool_symbols_line(&frame, report->whole_paths, text))
		snprintf(text, sizeof(text), "??:0");
	if (report->has[TOOL_REPORT_SRCLINE])
		key->line = tool_machine_name(report->machine, text, strlen(text));
	if (report->has[TOOL_REPORT_SRCFILE])
		key->source = tool_machine_name(report->machine, text, (size_t)(strrchr(text, ':') - text));
}

static char mark_of(const struct tool_report_row *self, uint32_t kind)
{
	switch (kind) {
	case PERFRING_PROFILE_KERNEL:
		return 'k';
	case PERFRING_PROFILE_USER:
	case PERFRING_PROFILE_INLINED:
	case PERFRING_PROFILE_MADE:
		return '.';
	default:
		return kind == PERFRING_PROFILE_GUEST ? self->mark : '!';
	}
}

/* The row of a frame in a path of `self`; NULL: there are too many. */
static struct tool_report_row *row_of(struct tool_report *report, struct tool_report_row *self, uint32_t index)
{
	struct tool_report_callers *callers = report->callers;
	const struct tool_report_row *context = context_of(report, self);
	uint64_t hash = ((uint64_t)(uintptr_t)context ^ (uint64_t)index << 32) * UINT64_C(0x9e3779b97f4a7c15);
	struct known *known = &callers->known[hash >> (64 - KNOWN_BITS)];
	const struct perfring_profile_place *frame = &callers->tables.frames[index];
	const struct perfring_profile_function *function = &callers->tables.functions[frame->function];
	char mark = report->has[TOOL_REPORT_SYM] ? mark_of(self, function->kind) : 0;
	struct tool_report_row key = *context, *row;

	if (known->row && known->context == context && known->frame == index && known->mark == mark)
		return known->row;
	key.has_no_symbol = !function->name;
	key.context = context;
	if (report->has[TOOL_REPORT_DSO] || report->has[TOOL_REPORT_SYM])
		key.object = function->object ? tool_report_short_name(report, function->object) : "[unknown]";
	if (report->has[TOOL_REPORT_SYM]) {
		key.mark = mark;
		key.symbol = name_of(report, function);
		key.address = frame->address;
	}
	if (report->has[TOOL_REPORT_SRCLINE] || report->has[TOOL_REPORT_SRCFILE])
		fill_line(report, &key, function, frame->line);
	if (!report->has[TOOL_REPORT_SYMBOL_SIZE])
		key.symbol_size = 0;
	if (!report->has[TOOL_REPORT_DSO_SIZE])
		key.object_size = 0;
	row = report->nr - callers->self_rows < TOOL_REPORT_CALLERS_MAX ? tool_report_row_of(report, &key)
									: tool_report_find_row(report, &key);
	if (row)
		*known = (struct known){context, row, index, mark};
	return row;
}

/* Adds a path's weight to the `children` of a row that is in it, and links the row to it for the tree. */
static void join(struct tool_report *report, struct tool_report_row *row, uint32_t index, uint32_t at)
{
	struct tool_report_callers *callers = report->callers;
	const struct path *path = &callers->paths[index];
	struct tool_report_cell *cell = &row->cells[path->cell];

	cell->children = plus(cell->children, path->weight);
	if (path->cell || report->graph.print == TOOL_REPORT_NO_TREES)
		return;
	if (callers->link_count == TOOL_REPORT_LINKS_MAX) {
		callers->linkless++;
		return;
	}
	callers->links = grow(callers->links, callers->link_count, &callers->link_capacity, sizeof(*callers->links));
	callers->links[callers->link_count] = (struct link){index, at, row->links};
	row->links = ++callers->link_count;
}

/* Sums a path: the row of each of its frames gets its weight once, and a link to it for the tree. */
static void join_all(struct tool_report *report, uint32_t index)
{
	struct tool_report_callers *callers = report->callers;
	const struct path path = callers->paths[index];
	bool by_caller = report->graph.order == TOOL_REPORT_CALLER;
	uint32_t count = walk(report, path.stack);

	join(report, path.row, index, count ? callers->walked[by_caller ? count - 1 : 0] : PERFRING_PROFILE_NONE);
	path.row->seen = index + 1;
	if (!path.row->depth)
		path.row->depth = by_caller ? 1 : count;
	for (uint32_t i = 0; i < count && report->cumulates; i++) {
		uint32_t stack = callers->walked[by_caller ? count - 1 - i : i];
		struct tool_report_row *row = row_of(report, path.row, callers->tables.stacks[stack].frame);

		if (!row) {
			callers->rowless++;
			continue;
		}
		if (row->seen == index + 1)
			continue;
		row->seen = index + 1;
		if (!row->last_comm)
			row->last_comm = path.row->last_comm;
		if (count - i > row->depth)
			row->depth = count - i;
		join(report, row, index, stack);
	}
}

void tool_report_callers_sum(struct tool_report *report)
{
	struct tool_report_callers *callers = report->callers;

	callers->self_rows = report->nr;
	perfring_profile_read(callers->profile, &callers->tables);
	callers->known = tool_allocate(NULL, (size_t)1 << KNOWN_BITS, sizeof(*callers->known));
	memset(callers->known, 0, sizeof(*callers->known) << KNOWN_BITS);
	for (uint32_t i = 0; i < callers->path_count; i++)
		join_all(report, i);
}

/* ---- trees ---- */

static uint32_t add_part(struct tool_report_callers *callers, uint32_t parent, uint32_t frame)
{
	callers->parts = grow(callers->parts, callers->part_count, &callers->part_capacity, sizeof(*callers->parts));
	callers->parts[callers->part_count] = (struct part){.frame = frame, .parent = parent};
	return callers->part_count++;
}

/* The part at which a path ends that begins at a row's frame and goes on to what it calls. */
static uint32_t part_of(struct tool_report *report, uint32_t stack, uint32_t from)
{
	struct tool_report_callers *callers = report->callers;
	const struct perfring_profile_stack *stacks = callers->tables.stacks;
	uint32_t count = 0, part = 0;

	for (; from != PERFRING_PROFILE_NONE; stack = stacks[stack].caller) {
		const struct placed *placed = &callers->placed[stack];

		if (placed->tree == callers->tree_number && placed->from == from) {
			part = placed->at;
			break;
		}
		note_walked(callers, count++, stack);
		if (stack == from)
			break;
	}
	callers->work += count;
	while (count--) {
		stack = callers->walked[count];
		if (!is_hidden(report, stack))
			part = add_part(callers, part, stacks[stack].frame);
		callers->placed[stack] = (struct placed){callers->tree_number, from, part};
	}
	return part;
}

/* Sums up the parts, and makes lists of their children, which are after them. */
static void sum_parts(struct tool_report_callers *callers)
{
	for (uint32_t i = callers->part_count; i--;) {
		struct part *part = &callers->parts[i], *parent = &callers->parts[part->parent];

		part->weight = plus(part->weight, part->self);
		part->samples = plus(part->samples, part->self_samples);
		if (!i)
			break;
		parent->weight = plus(parent->weight, part->weight);
		parent->samples = plus(parent->samples, part->samples);
		part->next = parent->first;
		parent->first = i;
	}
}

/* Makes a part one of a node's. */
static void join_part(struct tool_report_callers *callers, uint32_t index, uint32_t part)
{
	struct tool_tree_node *node = &callers->tree.nodes[index];
	const struct part *one = &callers->parts[part];

	if (!node->members)
		node->members = part;
	else
		callers->parts[node->last].member = part;
	if (node->members == part || part < node->order)
		node->order = part;
	node->last = part;
	node->weight = plus(node->weight, one->weight);
	node->samples = plus(node->samples, one->samples);
	node->self = plus(node->self, one->self);
	node->self_samples = plus(node->self_samples, one->self_samples);
}

/* Makes the children of a node: those of all of its parts, equal ones together. */
static void make_children(struct tool_report_callers *callers, uint32_t node, uint32_t members)
{
	uint32_t at = members;

	do {
		for (uint32_t part = callers->parts[at].first; part; part = callers->parts[part].next) {
			uint32_t child = tool_tree_child(&callers->tree, node, callers->parts[part].frame);

			callers->work++;
			if (child)
				join_part(callers, child, part);
		}
		at = callers->parts[at].member;
	} while (at);
}

/* Makes the nodes of the tree from its parts: all that can be drawn, and the children of those. */
static void make_nodes(struct tool_report_callers *callers, uint64_t least)
{
	struct tool_tree *tree = &callers->tree;

	sum_parts(callers);
	join_part(callers, TOOL_TREE_ROOT, 0);
	make_children(callers, TOOL_TREE_ROOT, 0);
	for (uint32_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].weight >= least)
			make_children(callers, i, tree->nodes[i].members);
}

/* The node at which a path ends that begins at a row's frame and goes on to its callers: equal for all paths with that stack. */
static uint32_t place_callers(struct tool_report *report, uint32_t from)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t node = TOOL_TREE_ROOT, count, child;

	if (from == PERFRING_PROFILE_NONE)
		return node;
	if (callers->placed[from].tree == callers->tree_number)
		return callers->placed[from].at;
	count = walk(report, from);
	callers->work += count;
	for (uint32_t i = 0; i < count; i++) {
		child = tool_tree_child(&callers->tree, node, callers->tables.stacks[callers->walked[i]].frame);
		if (!child)
			return node; /* not noted: each path that is cut counts */
		node = child;
	}
	callers->placed[from] = (struct placed){callers->tree_number, from, node};
	return node;
}

const struct tool_tree *tool_report_callers_tree(struct tool_report *report, const struct tool_report_row *row,
						 uint64_t least)
{
	struct tool_report_callers *callers = report->callers;
	size_t size = (size_t)callers->tables.stack_count + 1;

	if (!callers->tree_number++) {
		callers->placed = tool_allocate(NULL, size, sizeof(*callers->placed));
		memset(callers->placed, 0, size * sizeof(*callers->placed));
	}
	tool_tree_clear(&callers->tree);
	callers->part_count = 0;
	add_part(callers, 0, 0);
	for (uint32_t at = row->links; at; at = callers->links[at - 1].next) {
		const struct link *link = &callers->links[at - 1];
		const struct path *path = &callers->paths[link->path];
		struct part *part;
		uint32_t index;

		if (++callers->work > TOOL_REPORT_WORK_MAX)
			return NULL;
		if (report->graph.order == TOOL_REPORT_CALLER) {
			index = part_of(report, path->stack, link->at); /* which may move the parts */
			part = &callers->parts[index];
			part->self = plus(part->self, path->weight);
			part->self_samples = plus(part->self_samples, path->samples);
		} else {
			tool_tree_count(&callers->tree, place_callers(report, link->at), path->weight, path->samples);
		}
	}
	if (report->graph.order == TOOL_REPORT_CALLER)
		make_nodes(callers, least);
	else
		tool_tree_sum(&callers->tree);
	tool_tree_sort(&callers->tree, least);
	return &callers->tree;
}

void tool_report_callers_frame(const struct tool_report *report, uint32_t index, struct tool_report_frame *frame)
{
	const struct perfring_profile_tables *tables = &report->callers->tables;
	const struct perfring_profile_place *place = &tables->frames[index];
	const struct perfring_profile_function *function = &tables->functions[place->function];

	*frame = (struct tool_report_frame){
		.name = function->name,
		.object = function->object,
		.address = place->address,
		.is_inlined = function->kind == PERFRING_PROFILE_INLINED,
	};
}

void tool_report_callers_missing(const struct tool_report *report, struct tool_report_missing *missing)
{
	*missing = (struct tool_report_missing){
		.pathless = report->callers->pathless,
		.linkless = report->callers->linkless,
		.rowless = report->callers->rowless,
		.is_too_much = report->callers->work > TOOL_REPORT_WORK_MAX,
	};
}

void tool_report_callers_close(struct tool_report *report)
{
	struct tool_report_callers *callers = report->callers;

	if (!callers)
		return;
	perfring_profile_fill_close(callers->fill);
	perfring_profile_close(callers->profile);
	tdestroy(callers->contexts, free);
	free(callers->paths);
	free(callers->slots);
	free(callers->links);
	free(callers->walked);
	free(callers->placed);
	free(callers->parts);
	tool_tree_close(&callers->tree);
	free(callers->known);
	free(callers);
	report->callers = NULL;
}
