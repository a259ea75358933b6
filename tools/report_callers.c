/* report_callers.c - callers in a report: what each function's callees add to it, and the call trees of rows.
 *
 * Samples of one row, stack and event are one path.  When all samples are known, the stacks of all paths whose rows differ in their
 * places alone (a context) become one tree of parts, and each part has the sum of the paths through it:
 *
 *     main 9 -- run 8 -- sum 5           a part is a frame and its callers; its row is the row of that frame
 *                  `---- copy 3 -- sum 1
 *
 * A row's `children` is the sum of its outermost parts, and of its own paths that have none of its parts: each path counts once,
 * however often a function calls itself.  The tree of a row is made from its own paths and from what is below its outermost parts;
 * its callees' tree from what is above its innermost ones.
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
	uint32_t next; /* 1 + the next of the list that it is in: of its context and cell, later of its row; 0: none */
	uint32_t end;  /* the part at which it ends, and its row's outermost part in it; 0: none */
	uint32_t top;
};

/* A stack in the tree of parts that is being made: so what paths have in common is walked once. */
struct placed {
	uint32_t tree; /* the number of that tree */
	uint32_t at;   /* its part; where the tree goes to callers, its node */
};

/* A stack whose frame is shown, and the paths that go through it.  Parts of contexts are kept for all trees; after them are those that a
 * row's own paths have, for its tree alone. */
struct part {
	uint32_t stack;
	uint32_t parent, first, next; /* parts; 0: none */
	uint32_t member;              /* the next part of its node; 0: none */
	uint32_t more;                /* the next of its row's parts; 0: none */
	uint64_t weight, samples;
	/* of paths that end here; where trees go to callers, of others' paths in which this is the innermost part of its row */
	uint64_t self, self_samples;
};

/* Paths of a context and a cell that are summed up at a time: those of a list, from one to before another; 1 + their numbers. */
struct batch {
	const struct tool_report_row *context;
	uint32_t cell;
	uint32_t from, end;
	uint32_t first; /* of their parts */
};

/* While a batch is summed up: what its parts are. */
struct call {
	struct tool_report_row *row; /* NULL: there are too many */
	uint32_t outer;              /* the nearest caller of the same row, and the outermost one or itself; parts */
	uint32_t top;
	uint32_t level; /* frames from the outermost to this one */
	uint32_t path;  /* the oldest one through it */
	/* frames to the innermost of a path through it: the most, and the most of another row's path */
	struct height {
		uint32_t path;
		uint32_t frames; /* 0: there is none */
	} highest, second;
};

/* A cache of the rows of frames, by context. */
struct known {
	const struct tool_report_row *context;
	struct tool_report_row *row; /* NULL: the place is free */
	uint32_t frame;
};

struct tool_report_callers {
	struct perfring_profile_fill *fill;
	struct perfring_profile *profile; /* of which stacks and frames are used */
	struct perfring_profile_tables tables;
	struct path *paths;
	uint32_t *slots; /* paths + 1; 0: free */
	uint32_t path_count, path_capacity, slot_count;
	uint64_t pathless, treeless, rowless; /* samples, and frames of stacks, of which there were too many */
	bool is_too_much;                     /* a tree was not made */
	size_t self_rows;                     /* rows before those of callers */
	uint64_t work;
	uint32_t *walked; /* the stacks of the last walk */
	uint32_t capacity;
	struct tool_tree tree;
	struct placed *placed; /* by stack */
	uint32_t tree_number;  /* of the last tree; 0: none yet */
	struct part *parts;    /* each after its parent; the first is none */
	uint32_t part_count, part_capacity;
	uint32_t kept; /* parts of contexts */
	struct call *calls;
	uint32_t call_capacity;
	struct known *known;
	void *contexts; /* a tree */
	struct tool_report_row *first_context;
};

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
		row->cells[cell].children = tool_plus(row->cells[cell].children, weight);
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
	path->weight = tool_plus(path->weight, weight);
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

/* A row without its place: all rows that differ in that alone have one.  A guest's frame has the mark of its sample. */
static struct tool_report_row *context_of(struct tool_report *report, const struct tool_report_row *row,
					  bool has_guests)
{
	struct tool_report_callers *callers = report->callers;
	struct tool_report_row key = *row, *context;
	void *at;

	if (!has_guests)
		key.mark = 0;
	key.symbol = key.object = key.line = key.source = NULL;
	key.address = 0;
	key.symbol_size = key.object_size = -1;
	key.paths = key.parts = key.first_path = key.depth = 0;
	at = tfind(&key, &callers->contexts, tool_report_compare_keys);
	if (at)
		return *(struct tool_report_row **)at;
	context = tool_allocate(NULL, 1, sizeof(*context));
	*context = key;
	context->context = callers->first_context;
	callers->first_context = context;
	tool_insert(context, &callers->contexts, tool_report_compare_keys);
	return context;
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

static char mark_of(const struct tool_report_row *context, uint32_t kind)
{
	switch (kind) {
	case PERFRING_PROFILE_KERNEL:
		return 'k';
	case PERFRING_PROFILE_USER:
	case PERFRING_PROFILE_INLINED:
	case PERFRING_PROFILE_MADE:
		return '.';
	default:
		return kind == PERFRING_PROFILE_GUEST ? context->mark : '!';
	}
}

/* The row of a frame in paths of a context; NULL: there are too many. */
static struct tool_report_row *row_of(struct tool_report *report, const struct tool_report_row *context, uint32_t index)
{
	struct tool_report_callers *callers = report->callers;
	uint64_t hash = ((uint64_t)(uintptr_t)context ^ (uint64_t)index << 32) * UINT64_C(0x9e3779b97f4a7c15);
	struct known *known = &callers->known[hash >> (64 - KNOWN_BITS)];
	const struct perfring_profile_place *frame = &callers->tables.frames[index];
	const struct perfring_profile_function *function = &callers->tables.functions[frame->function];
	struct tool_report_row key = *context, *row;

	if (known->row && known->context == context && known->frame == index)
		return known->row;
	key.context = NULL;
	key.paths = 0;
	key.mark = 0;
	key.has_no_symbol = !function->name;
	if (report->has[TOOL_REPORT_DSO] || report->has[TOOL_REPORT_SYM])
		key.object = function->object ? tool_report_short_name(report, function->object) : "[unknown]";
	if (report->has[TOOL_REPORT_SYM]) {
		key.mark = mark_of(context, function->kind);
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
		*known = (struct known){context, row, index};
	return row;
}

static uint32_t add_part(struct tool_report_callers *callers, uint32_t parent, uint32_t stack)
{
	callers->parts = grow(callers->parts, callers->part_count, &callers->part_capacity, sizeof(*callers->parts));
	callers->parts[callers->part_count] = (struct part){.stack = stack, .parent = parent};
	return callers->part_count++;
}

/* The part of a stack, made with those of its callers unless they are there, below a root; the root, if no frame is shown.  Returns
 * PERFRING_PROFILE_NONE beyond a number of parts. */
static uint32_t part_of(struct tool_report *report, uint32_t stack, uint32_t root, uint32_t most)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t count = 0, part = root;

	for (; stack != PERFRING_PROFILE_NONE; stack = callers->tables.stacks[stack].caller) {
		if (callers->placed[stack].tree == callers->tree_number) {
			part = callers->placed[stack].at;
			break;
		}
		note_walked(callers, count++, stack);
	}
	if (callers->part_count > most || count > most - callers->part_count)
		return PERFRING_PROFILE_NONE;
	while (count--) {
		stack = callers->walked[count];
		if (!is_hidden(report, stack))
			part = add_part(callers, part, stack);
		callers->placed[stack] = (struct placed){callers->tree_number, part};
	}
	return part;
}

static uint32_t frame_of(const struct tool_report_callers *callers, const struct part *part)
{
	return callers->tables.stacks[part->stack].frame;
}

static void count_part(struct part *part, const struct path *path)
{
	part->self = tool_plus(part->self, path->weight);
	part->self_samples = tool_plus(part->self_samples, path->samples);
}

/* Sums up the parts from one on, and makes lists of their children, which are after them, by their order. */
static void sum_parts(struct tool_report_callers *callers, uint32_t first)
{
	for (uint32_t i = callers->part_count; i-- > first;) {
		struct part *part = &callers->parts[i], *parent = &callers->parts[part->parent];

		part->weight = tool_plus(part->weight, part->self);
		part->samples = tool_plus(part->samples, part->self_samples);
		parent->weight = tool_plus(parent->weight, part->weight);
		parent->samples = tool_plus(parent->samples, part->samples);
		part->next = parent->first;
		parent->first = i;
	}
}

/* Adds a path through a call. */
static void raise_call(const struct path *paths, struct call *call, struct height height)
{
	bool is_same = call->highest.frames && paths[call->highest.path].row == paths[height.path].row;
	struct height *place = is_same ? &call->highest : &call->second;

	if (place->frames >= height.frames)
		return;
	*place = height;
	if (call->second.frames > call->highest.frames) {
		call->second = call->highest;
		call->highest = height;
	}
}

/* Finds the row of each part of a batch, and what is known of its paths. */
static void find_rows(struct tool_report *report, const struct batch *batch)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t first = batch->first, count = callers->part_count - first;

	if (count > callers->call_capacity) {
		callers->call_capacity = callers->part_capacity;
		callers->calls = tool_allocate(callers->calls, callers->call_capacity, sizeof(*callers->calls));
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct part *part = &callers->parts[first + i];

		callers->calls[i] = (struct call){
			.row = row_of(report, batch->context, frame_of(callers, part)),
			.level = part->parent ? callers->calls[part->parent - first].level + 1 : 1,
			.path = PERFRING_PROFILE_NONE,
		};
		callers->rowless += !callers->calls[i].row;
	}
	for (uint32_t i = batch->from; i != batch->end; i = callers->paths[i - 1].next) {
		const struct path *path = &callers->paths[i - 1];
		struct call *call;

		if (!path->end)
			continue;
		call = &callers->calls[path->end - first];
		raise_call(callers->paths, call, (struct height){i - 1, 1});
		call->path = i - 1; /* the list has the newest first */
	}
	for (uint32_t i = count; i--;) {
		const struct call *call = &callers->calls[i];
		uint32_t parent = callers->parts[first + i].parent;
		struct call *caller;

		if (!parent)
			continue;
		caller = &callers->calls[parent - first];
		raise_call(callers->paths, caller, (struct height){call->highest.path, call->highest.frames + 1});
		if (call->second.frames)
			raise_call(callers->paths, caller, (struct height){call->second.path, call->second.frames + 1});
		if (call->path < caller->path)
			caller->path = call->path;
	}
}

/* Finds the callers of each part that have its row: goes through the parts, each after its caller and before the next part. */
static void find_repeats(struct tool_report_callers *callers, uint32_t first)
{
	uint32_t at = callers->parts[0].first, next;

	while (at) {
		struct call *call = &callers->calls[at - first];

		if (call->row) {
			call->outer = call->row->open;
			call->top = call->outer ? callers->calls[call->outer - first].top : at;
			call->row->open = at;
		}
		for (next = callers->parts[at].first; !next && at; at = callers->parts[at].parent) {
			call = &callers->calls[at - first];
			if (call->row)
				call->row->open = call->outer;
			next = callers->parts[at].next;
		}
		at = next;
	}
}

/* Whether trees are made of a cell's parts. */
static bool has_tree(const struct tool_report *report, uint32_t cell)
{
	return !cell && report->graph.print != TOOL_REPORT_NO_TREES;
}

/* Gives each part's weight to its row. */
static void sum_rows(struct tool_report *report, uint32_t cell, uint32_t first)
{
	struct tool_report_callers *callers = report->callers;

	for (uint32_t i = first; i < callers->part_count; i++) {
		const struct call *call = &callers->calls[i - first];
		const struct part *part = &callers->parts[i];
		struct tool_report_row *row = call->row;
		uint32_t depth = 0;

		if (!row)
			continue;
		if (!call->outer) {
			row->cells[cell].children = tool_plus(row->cells[cell].children, part->weight);
			depth = callers->paths[call->highest.path].row == row ? call->second.frames
									      : call->highest.frames;
		}
		if (report->graph.order == TOOL_REPORT_CALLEE)
			depth = part->self_samples ? call->level : 0;
		row->depth = depth > row->depth ? depth : row->depth;
		if (!row->first_path || call->path + 1 < row->first_path)
			row->first_path = call->path + 1;
	}
}

/* Where trees go to callers: what paths have in each part as the innermost of its row. */
static void find_innermost(struct tool_report_callers *callers, uint32_t first)
{
	for (uint32_t i = first; i < callers->part_count; i++) {
		struct part *part = &callers->parts[i], *outer = &callers->parts[callers->calls[i - first].outer];

		part->self = part->weight;
		part->self_samples = part->samples;
		if (callers->calls[i - first].outer) { /* which is before it */
			outer->self -= part->weight;
			outer->self_samples -= part->samples;
		}
	}
}

/* Gives a path's weight to its row, unless one of its parts does: own paths are no callers' ones. */
static void sum_path(struct tool_report *report, struct path *path, uint32_t first)
{
	struct tool_report_callers *callers = report->callers;
	struct tool_report_cell *cell = &path->row->cells[path->cell];
	bool by_caller = report->graph.order == TOOL_REPORT_CALLER;
	uint32_t at = path->end, depth = by_caller ? 1 : at ? callers->calls[at - first].level : 0;

	while (at && callers->calls[at - first].row != path->row)
		at = callers->parts[at].parent;
	path->top = at ? callers->calls[at - first].top : 0;
	if (!at)
		cell->children = tool_plus(cell->children, path->weight);
	if (at && !by_caller) {
		callers->parts[at].self -= path->weight;
		callers->parts[at].self_samples -= path->samples;
	}
	path->row->depth = depth > path->row->depth ? depth : path->row->depth;
}

/* The rows of these parts get them for their trees. */
static void keep_parts(struct tool_report *report, uint32_t first)
{
	struct tool_report_callers *callers = report->callers;
	bool by_caller = report->graph.order == TOOL_REPORT_CALLER;

	for (uint32_t i = callers->part_count; i-- > first;) {
		struct call *call = &callers->calls[i - first];

		if (!call->row || (by_caller ? call->outer : !callers->parts[i].self_samples))
			continue;
		callers->parts[i].more = call->row->parts;
		call->row->parts = i;
	}
	callers->kept = callers->part_count;
}

/* The trees of their rows are without the paths of a batch but their own ones. */
static void drop_parts(struct tool_report *report, const struct batch *batch)
{
	struct tool_report_callers *callers = report->callers;

	callers->part_count = batch->first;
	if (!has_tree(report, batch->cell))
		return;
	for (uint32_t i = batch->from; i != batch->end; i = callers->paths[i - 1].next) {
		callers->paths[i - 1].end = callers->paths[i - 1].top = 0;
		callers->treeless = tool_plus(callers->treeless, callers->paths[i - 1].samples);
	}
}

/* Makes the parts of a batch: of as many paths as there is space for, at least one. */
static void make_parts(struct tool_report *report, struct batch *batch)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t most = batch->first + TOOL_REPORT_BATCH_MAX;

	callers->tree_number++;
	callers->parts[0] = (struct part){0};
	for (; batch->end; batch->end = callers->paths[batch->end - 1].next) {
		struct path *path = &callers->paths[batch->end - 1];

		path->end = part_of(report, path->stack, 0, batch->end == batch->from ? UINT32_MAX : most);
		if (path->end == PERFRING_PROFILE_NONE)
			break;
		if (path->end)
			count_part(&callers->parts[path->end], path);
	}
}

/* Sums up the paths of a list: all of a context and a cell. */
static void sum_list(struct tool_report *report, const struct tool_report_row *context, uint32_t cell, uint32_t list)
{
	struct tool_report_callers *callers = report->callers;

	while (list) {
		struct batch batch = {context, cell, list, list, callers->part_count};

		make_parts(report, &batch);
		sum_parts(callers, batch.first);
		find_rows(report, &batch);
		find_repeats(callers, batch.first);
		if (report->graph.order == TOOL_REPORT_CALLEE)
			find_innermost(callers, batch.first);
		for (uint32_t i = batch.from; i != batch.end; i = callers->paths[i - 1].next)
			sum_path(report, &callers->paths[i - 1], batch.first);
		sum_rows(report, cell, batch.first);
		if (has_tree(report, cell) && callers->part_count <= TOOL_REPORT_PARTS_MAX)
			keep_parts(report, batch.first);
		else
			drop_parts(report, &batch);
		list = batch.end;
	}
}

/* Sums up the paths of a context, of each cell for itself. */
static void sum_context(struct tool_report *report, const struct tool_report_row *context)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t lists[TOOL_REPORT_MEMBERS] = {0};

	/* from the oldest on: so a cell's list has the newest first */
	for (uint32_t i = context->paths, next; i; i = next) {
		struct path *path = &callers->paths[i - 1];

		next = path->next;
		path->next = lists[path->cell];
		lists[path->cell] = i;
	}
	for (uint32_t cell = 0; cell < TOOL_REPORT_MEMBERS; cell++)
		sum_list(report, context, cell, lists[cell]);
}

/* Without callers' sums a row has its own paths alone. */
static void sum_own(struct tool_report_callers *callers)
{
	for (uint32_t i = 0; i < callers->path_count; i++) {
		struct path *path = &callers->paths[i];
		struct tool_report_cell *cell = &path->row->cells[path->cell];

		cell->children = tool_plus(cell->children, path->weight);
	}
}

static void sum_contexts(struct tool_report *report)
{
	struct tool_report_callers *callers = report->callers;
	bool has_guests = false;

	for (uint32_t i = 0; i < callers->tables.function_count; i++)
		has_guests = has_guests || callers->tables.functions[i].kind == PERFRING_PROFILE_GUEST;
	for (uint32_t i = callers->path_count; i; i--) {
		struct path *path = &callers->paths[i - 1];

		if (!path->row->context)
			path->row->context = context_of(report, path->row, has_guests);
		path->next = path->row->context->paths;
		path->row->context->paths = i;
	}
	for (const struct tool_report_row *context = callers->first_context; context; context = context->context)
		sum_context(report, context);
	for (size_t i = 0; i < report->nr; i++)
		if (!report->rows[i]->last_comm && report->rows[i]->first_path)
			report->rows[i]->last_comm = callers->paths[report->rows[i]->first_path - 1].row->last_comm;
	free(callers->calls);
	callers->calls = NULL;
}

void tool_report_callers_sum(struct tool_report *report)
{
	struct tool_report_callers *callers = report->callers;
	size_t stacks;

	callers->self_rows = report->nr;
	perfring_profile_read(callers->profile, &callers->tables);
	stacks = (size_t)callers->tables.stack_count + 1;
	callers->known = tool_allocate(NULL, (size_t)1 << KNOWN_BITS, sizeof(*callers->known));
	memset(callers->known, 0, sizeof(*callers->known) << KNOWN_BITS);
	callers->placed = tool_allocate(NULL, stacks, sizeof(*callers->placed));
	memset(callers->placed, 0, stacks * sizeof(*callers->placed));
	callers->kept = add_part(callers, 0, PERFRING_PROFILE_NONE) + 1;
	if (report->cumulates)
		sum_contexts(report);
	else
		sum_own(callers);
	for (uint32_t i = 0; i < callers->path_count; i++) {
		struct path *path = &callers->paths[i];

		if (!has_tree(report, path->cell))
			continue;
		path->next = path->row->paths;
		path->row->paths = i + 1;
	}
}

/* ---- trees ---- */

/* Makes a part one of a node's. */
static void join_part(struct tool_report_callers *callers, uint32_t index, uint32_t part)
{
	struct tool_tree_node *node = &callers->tree.nodes[index];
	struct part *one = &callers->parts[part];

	one->member = 0;
	if (!node->members)
		node->members = part;
	else
		callers->parts[node->last].member = part;
	if (node->members == part || part < node->order)
		node->order = part;
	node->last = part;
	node->weight = tool_plus(node->weight, one->weight);
	node->samples = tool_plus(node->samples, one->samples);
	node->self = tool_plus(node->self, one->self);
	node->self_samples = tool_plus(node->self_samples, one->self_samples);
}

/* Makes a part one of the node's child for its frame, unless only the row's own paths go through it: they are elsewhere. */
static void join_child(struct tool_report_callers *callers, uint32_t node, uint32_t part)
{
	uint32_t child = 0;

	callers->work++;
	if (callers->parts[part].samples)
		child = tool_tree_child(&callers->tree, node, frame_of(callers, &callers->parts[part]));
	if (child)
		join_part(callers, child, part);
}

/* Makes the children of a node: those of all of its parts, equal ones together. */
static void make_children(struct tool_report_callers *callers, uint32_t node, uint32_t members)
{
	uint32_t at = members;

	do {
		for (uint32_t part = callers->parts[at].first; part; part = callers->parts[part].next)
			join_child(callers, node, part);
		at = callers->parts[at].member;
	} while (at);
}

/* Takes a path of a row out of the parts from its end to the row's outermost one, or puts it back. */
static void move_path(struct tool_report_callers *callers, const struct path *path, bool back)
{
	/* exact, unless sums have reached UINT64_MAX: then shares of that event mean nothing */
	const uint64_t sign = back ? 1 : UINT64_MAX;

	if (!path->top)
		return;
	callers->parts[path->end].self += sign * path->weight;
	callers->parts[path->end].self_samples += sign * path->samples;
	for (uint32_t at = path->end; at; at = at == path->top ? 0 : callers->parts[at].parent) {
		callers->parts[at].weight += sign * path->weight;
		callers->parts[at].samples += sign * path->samples;
		callers->work++;
	}
}

/* Puts back those before one of the row's list. */
static void put_back(struct tool_report_callers *callers, const struct tool_report_row *row, uint32_t until)
{
	for (uint32_t i = row->paths; i != until; i = callers->paths[i - 1].next)
		move_path(callers, &callers->paths[i - 1], true);
}

/* A row's own paths are in its tree from their outermost frames on, not from its own.  Returns false, and has done nothing, beyond
 * TOOL_REPORT_WORK_MAX. */
static bool take_own(struct tool_report_callers *callers, const struct tool_report_row *row)
{
	for (uint32_t i = row->paths; i; i = callers->paths[i - 1].next) {
		if (callers->work > TOOL_REPORT_WORK_MAX) {
			put_back(callers, row, i);
			return false;
		}
		move_path(callers, &callers->paths[i - 1], false);
	}
	return true;
}

/* Makes the nodes below the root: of the row's own paths, and of its outermost parts. */
static void make_first(struct tool_report_callers *callers, const struct tool_report_row *row, uint32_t own)
{
	struct tool_tree *tree = &callers->tree;

	join_part(callers, TOOL_TREE_ROOT, own);
	tree->nodes[TOOL_TREE_ROOT].order = 0; /* it is before all others */
	make_children(callers, TOOL_TREE_ROOT, own);
	for (uint32_t at = row->parts; at; at = callers->parts[at].more) {
		struct tool_tree_node *root = &tree->nodes[TOOL_TREE_ROOT];

		root->weight = tool_plus(root->weight, callers->parts[at].weight);
		root->samples = tool_plus(root->samples, callers->parts[at].samples);
		join_child(callers, TOOL_TREE_ROOT, at); /* may move the nodes */
	}
}

/* Makes parts of the row's own paths, below one.  Returns false beyond TOOL_REPORT_WORK_MAX. */
static bool make_own(struct tool_report *report, const struct tool_report_row *row, uint32_t own)
{
	struct tool_report_callers *callers = report->callers;

	for (uint32_t i = row->paths; i; i = callers->paths[i - 1].next) {
		const struct path *path = &callers->paths[i - 1];
		uint32_t count = callers->part_count;
		uint32_t end = part_of(report, path->stack, own, own + TOOL_REPORT_BATCH_MAX); /* may move the parts */

		callers->work += callers->part_count - count + 1;
		if (callers->work > TOOL_REPORT_WORK_MAX)
			return false;
		if (end == PERFRING_PROFILE_NONE) {
			callers->tree.crowded++;
			end = own;
		}
		count_part(&callers->parts[end], path);
	}
	sum_parts(callers, own);
	return true;
}

/* Makes all nodes that can be drawn, and the children of those.  Returns false as make_own. */
static bool make_callees(struct tool_report *report, const struct tool_report_row *row, uint64_t least)
{
	struct tool_report_callers *callers = report->callers;
	struct tool_tree *tree = &callers->tree;
	uint32_t own;

	callers->part_count = callers->kept;
	own = add_part(callers, 0, PERFRING_PROFILE_NONE);
	if (!make_own(report, row, own) || !take_own(callers, row))
		return false;
	make_first(callers, row, own);
	for (uint32_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].weight >= least)
			make_children(callers, i, tree->nodes[i].members);
	put_back(callers, row, 0);
	return true;
}

/* Counts paths that begin at a row's frame and go on to its callers: one node for all with that stack. */
static void count_callers(struct tool_report *report, uint32_t from, uint64_t weight, uint64_t samples)
{
	struct tool_report_callers *callers = report->callers;
	uint32_t node = TOOL_TREE_ROOT, count, child = 0;

	callers->work++;
	if (from != PERFRING_PROFILE_NONE && callers->placed[from].tree == callers->tree_number) {
		tool_tree_count(&callers->tree, callers->placed[from].at, weight, samples);
		return;
	}
	count = walk(report, from);
	callers->work += count;
	for (uint32_t i = 0; i < count; i++) {
		child = tool_tree_child(&callers->tree, node, callers->tables.stacks[callers->walked[i]].frame);
		if (!child)
			break; /* not noted: each path that is cut counts */
		node = child;
	}
	if (child)
		callers->placed[from] = (struct placed){callers->tree_number, node};
	tool_tree_count(&callers->tree, node, weight, samples);
}

/* Makes the nodes of the row's own paths and of its innermost parts.  Returns false as make_own. */
static bool make_callers(struct tool_report *report, const struct tool_report_row *row)
{
	struct tool_report_callers *callers = report->callers;

	for (uint32_t i = row->paths; i; i = callers->paths[i - 1].next) {
		const struct path *path = &callers->paths[i - 1];

		count_callers(report, path->stack, path->weight, path->samples);
		if (callers->work > TOOL_REPORT_WORK_MAX)
			return false;
	}
	for (uint32_t at = row->parts; at; at = callers->parts[at].more) {
		const struct part *part = &callers->parts[at];

		count_callers(report, part->stack, part->self, part->self_samples);
		if (callers->work > TOOL_REPORT_WORK_MAX)
			return false;
	}
	tool_tree_sum(&callers->tree);
	return true;
}

const struct tool_tree *tool_report_callers_tree(struct tool_report *report, const struct tool_report_row *row,
						 uint64_t least)
{
	struct tool_report_callers *callers = report->callers;

	callers->tree_number++;
	tool_tree_clear(&callers->tree);
	if (callers->work > TOOL_REPORT_WORK_MAX ||
	    !(report->graph.order == TOOL_REPORT_CALLER ? make_callees(report, row, least)
							: make_callers(report, row))) {
		callers->is_too_much = true;
		return NULL;
	}
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
		.rowless = report->callers->rowless,
		.treeless = report->callers->treeless,
		.is_too_much = report->callers->is_too_much,
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
	free(callers->walked);
	free(callers->placed);
	free(callers->parts);
	tool_tree_close(&callers->tree);
	free(callers->known);
	free(callers);
	report->callers = NULL;
}
