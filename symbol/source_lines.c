/* source_lines.c - lines of sources and inlined functions.
 *
 * The functions of source_lines.h, for frames.c.  dwarf.h reads the file.
 *
 *     ranges of units --> unit: ranges of functions --> function: spans of inlined calls
 *
 * All three are sorted or in the order of nesting, and made on demand.  Bytes of DWARF are not trusted: walks over a unit's entries
 * have as many steps as it has bytes, twice, and each nesting a bound.
 */
#include <errno.h>
#include <stdlib.h>
#include "dwarf.h"
#include "limits.h"
#include "os/heap.h"
#include "source_lines.h"

/* Addresses [start, end) belong to that unit, function or call, by its index. */
struct range {
	uint64_t start, end;
	uint32_t of;
};

struct ranges {
	struct range *list;
	uint32_t count, capacity;
};

/* An inlined call.  named_by: the offset in the unit of the entry that has its name; 0: `name` has been read, which is done on demand.
 * parent: the index of the call that it is in, or NONE.  file: a number of the table of lines. */
struct call {
	const char *name;
	uint32_t named_by, parent;
	uint32_t file, line;
};

enum {
	NONE = UINT32_MAX,
	ASKED_MANY = 8, /* addresses of a function, after which its spans are made flat */
};

/* A function.  first, count: its spans, nested as its calls are; after many questions they are flattened: side by side, each of the
 * innermost call there. */
struct function {
	uint64_t entry;
	const char *name;
	uint32_t first, count;
	uint8_t asked;
	bool is_flat;
};

struct unit {
	struct perfring_dwarf_unit *dwarf;
	uint32_t number;      /* its own, of the file's units, until all are read and have their place */
	uint64_t steps;       /* of walks over its entries */
	uint64_t range_steps; /* of inlined calls */
	bool is_made, has_rows;
	struct perfring_dwarf_rows rows;
	struct function *functions;
	uint32_t count, capacity;
	struct ranges ranges;
	struct call *calls;  /* of all functions that were made */
	struct ranges spans; /* likewise */
	uint32_t call_count, call_capacity;
};

struct perfring_lines {
	struct perfring_dwarf dwarf;
	struct unit *units;
	uint32_t count, capacity;
	struct ranges ranges;
	uint64_t range_steps; /* left: empty ranges take no memory */
	const char *exceeded;
};

static bool grow(struct perfring_lines *lines, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
	return perfring__dwarf_grow(&lines->dwarf.memory, array, count, capacity, size);
}

static void release(struct perfring_lines *lines, void *array, uint32_t capacity, size_t size)
{
	perfring__dwarf_free(&lines->dwarf.memory, array, capacity, size);
}

/* Adds the ranges of an entry to the list.  Returns whether it has any. */
static bool add_ranges(struct perfring_lines *lines, struct ranges *ranges, const struct perfring_dwarf_unit *unit,
		       const struct perfring_dwarf_entry *entry, uint32_t of)
{
	struct perfring_dwarf_ranges its;
	bool has = false;

	perfring__dwarf_ranges_begin(&its, unit, entry);
	while (lines->range_steps && lines->range_steps-- && perfring__dwarf_ranges_next(&its)) {
		if (its.start >= its.end)
			continue;
		if (!grow(lines, &ranges->list, ranges->count, &ranges->capacity, sizeof(*ranges->list)))
			break;
		ranges->list[ranges->count++] = (struct range){its.start, its.end, of};
		has = true;
	}
	return has;
}

static bool is_before(const struct range *one, const struct range *other)
{
	return one->start < other->start || (one->start == other->start && one->of < other->of);
}

enum {
	FEW = 16, /* ranges that are sorted by insertion */
};

static void insert(struct range *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct range moved = list[i];
		uint32_t at = i;

		for (; at && is_before(&moved, &list[at - 1]); at--)
			list[at] = list[at - 1];
		list[at] = moved;
	}
}

/* Merges two sorted runs.  merged: space for all their elements. */
static void merge(struct range *list, uint32_t first, uint32_t count, struct range *merged)
{
	uint32_t i = 0, j = first, at = 0;

	while (i < first && j < count)
		merged[at++] = is_before(&list[j], &list[i]) ? list[j++] : list[i++];
	while (i < first)
		merged[at++] = list[i++];
	memcpy(list, merged, at * sizeof(*list));
}

/* Sorts ranges by their starts, then by their index.  Without memory they are dropped. */
static void sort(struct perfring_lines *lines, struct ranges *ranges)
{
	uint32_t count = ranges->count;
	struct range *merged = count > FEW ? reallocarray(NULL, count, sizeof(*merged)) : NULL;

	if (count > FEW && !merged) {
		lines->dwarf.memory.is_short = true;
		ranges->count = 0;
		return;
	}
	for (uint32_t at = 0; at < count; at += FEW)
		insert(ranges->list + at, count - at < FEW ? count - at : FEW);
	for (uint64_t run = FEW; run < count; run *= 2)
		for (uint64_t at = 0; at + run < count; at += 2 * run)
			merge(ranges->list + at, (uint32_t)run, (uint32_t)(count - at < 2 * run ? count - at : 2 * run),
			      merged);
	free(merged);
}

/* The index of the last range that begins at or below the address and covers it, or NONE. */
static uint32_t find(const struct range *list, uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < list[low - 1].end ? list[low - 1].of : NONE;
}

/* ---- units ---- */

/* Steps of all walks over its entries. */
static uint64_t steps_of(const struct perfring_dwarf_unit *unit)
{
	return 2 * (unit->end - unit->first);
}

/* Collects the functions of a unit, in namespaces and classes too. */
static void add_functions(struct perfring_lines *lines, struct unit *unit)
{
	struct perfring_dwarf_walk walk;
	struct perfring_dwarf_entry entry;

	if (!perfring__dwarf_walk_begin(&walk, unit->dwarf, unit->dwarf->first, PERFRING_DWARF_FUNCTIONS, &unit->steps))
		return;
	while (perfring__dwarf_walk_next(&walk, &entry)) {
		if (!add_ranges(lines, &unit->ranges, unit->dwarf, &entry, unit->count))
			continue;
		if (!grow(lines, &unit->functions, unit->count, &unit->capacity, sizeof(*unit->functions)))
			return;
		unit->functions[unit->count++] = (struct function){.entry = entry.at};
	}
}

static void make_unit(struct perfring_lines *lines, struct unit *unit)
{
	unit->is_made = true;
	add_functions(lines, unit);
	/* without memory for a function its ranges are dropped */
	while (unit->ranges.count && unit->ranges.list[unit->ranges.count - 1].of >= unit->count)
		unit->ranges.count--;
	sort(lines, &unit->ranges);
}

static void make_rows(struct perfring_lines *lines, struct unit *unit)
{
	unit->has_rows = true;
	if (perfring__dwarf_rows_open(&unit->rows, unit->dwarf) == -E2BIG)
		lines->exceeded = "4 MiB in a unit's table of lines";
}

/* ---- inlined calls ---- */

static uint32_t number_of(const struct perfring_dwarf_entry *entry, enum perfring_dwarf_slot slot, uint32_t unknown)
{
	uint64_t number = perfring__dwarf_has(entry, slot) ? entry->values[slot].number : unknown;

	return number < NONE ? (uint32_t)number : unknown;
}

static struct call call_of(const struct unit *unit, const struct perfring_dwarf_entry *entry, uint32_t parent)
{
	return (struct call){.named_by = (uint32_t)(perfring__dwarf_named_by(unit->dwarf, entry) - unit->dwarf->at),
			     .parent = parent,
			     .file = number_of(entry, PERFRING_DWARF_CALL_FILE, NONE),
			     .line = number_of(entry, PERFRING_DWARF_CALL_LINE, 0)};
}

/* Collects the inlined calls in a function, in blocks and other calls too. */
static void add_calls(struct perfring_lines *lines, struct unit *unit, const struct function *function)
{
	struct perfring_dwarf_walk walk;
	struct perfring_dwarf_entry entry;
	struct {
		uint32_t depth, call;
	} within[PERFRING_DWARF_DEPTH_MAX]; /* the calls in which the walk is: their depths ascend */
	uint32_t count = 0;

	if (!perfring__dwarf_walk_begin(&walk, unit->dwarf, function->entry, PERFRING_DWARF_CALLS, &unit->steps))
		return;
	while (perfring__dwarf_walk_next(&walk, &entry)) {
		while (count && within[count - 1].depth >= walk.least)
			count--;
		if (!grow(lines, &unit->calls, unit->call_count, &unit->call_capacity, sizeof(*unit->calls)))
			return;
		unit->calls[unit->call_count] = call_of(unit, &entry, count ? within[count - 1].call : NONE);
		add_ranges(lines, &unit->spans, unit->dwarf, &entry, unit->call_count);
		within[count].depth = walk.depth;
		within[count++].call = unit->call_count++;
	}
}

/* The calls that are open at an address, a heap with the innermost first.  One that has ended stays until it is the first. */
struct open_calls {
	const struct ranges *spans;
	struct perfring_heap_entry *heap; /* key: the call, negated; number: its span */
	uint32_t count;
};

static void open_call(struct open_calls *open, uint32_t span)
{
	uint32_t at = open->count++;
	struct perfring_heap_entry entry = {UINT32_MAX - open->spans->list[span].of, span};

	for (; at && perfring__heap_is_before(entry, open->heap[(at - 1) / 2]); at = (at - 1) / 2)
		open->heap[at] = open->heap[(at - 1) / 2];
	open->heap[at] = entry;
}

static void close_calls(struct open_calls *open, uint64_t address)
{
	while (open->count && open->spans->list[open->heap[0].number].end <= address) {
		open->heap[0] = open->heap[--open->count];
		perfring__heap_down(open->heap, open->count, 0);
	}
}

/* Adds the flat spans of the innermost calls up to the address.  Returns false without memory. */
static bool cover(struct perfring_lines *lines, struct open_calls *open, struct ranges *result, uint64_t from,
		  uint64_t to)
{
	for (close_calls(open, from); open->count && from < to; close_calls(open, from)) {
		const struct range *span = &open->spans->list[open->heap[0].number];
		uint64_t end = span->end < to ? span->end : to;

		if (!grow(lines, &result->list, result->count, &result->capacity, sizeof(*result->list)))
			return false;
		result->list[result->count++] = (struct range){from, end, span->of};
		from = end;
	}
	return true;
}

/* Flattens nested spans to spans side by side, at most twice as many, which can be searched by halves. */
static void flatten(struct perfring_lines *lines, struct unit *unit, struct function *function)
{
	struct ranges spans = {unit->spans.list + function->first, function->count, 0}, flat = {0};
	struct open_calls open = {.spans = &spans};
	bool is_done = true;

	sort(lines, &spans);
	open.heap = calloc((size_t)spans.count + 1, sizeof(*open.heap));
	if (!open.heap)
		lines->dwarf.memory.is_short = true;
	for (uint32_t i = 0; open.heap && is_done && i < spans.count; i++) {
		uint64_t next = i + 1 < spans.count ? spans.list[i + 1].start : UINT64_MAX;

		open_call(&open, i);
		is_done = cover(lines, &open, &flat, spans.list[i].start, next);
	}
	free(open.heap);
	if (!is_done && !lines->dwarf.memory.is_short)
		lines->exceeded = "256 MiB of inlined calls";
	function->is_flat = true;
	function->first = unit->spans.count;
	function->count = 0;
	for (uint32_t i = 0; i < flat.count; i++) {
		if (!grow(lines, &unit->spans.list, unit->spans.count, &unit->spans.capacity, sizeof(*flat.list)))
			break;
		unit->spans.list[unit->spans.count++] = flat.list[i];
		function->count++;
	}
	release(lines, flat.list, flat.capacity, sizeof(*flat.list));
}

static void make_function(struct perfring_lines *lines, struct unit *unit, struct function *function)
{
	uint64_t before = lines->range_steps;

	function->name = perfring__dwarf_name(unit->dwarf, function->entry);
	function->first = unit->spans.count;
	add_calls(lines, unit, function);
	unit->range_steps += before - lines->range_steps;
	function->count = unit->spans.count - function->first;
}

/* The innermost call at the address, or NONE. */
static uint32_t find_call(struct perfring_lines *lines, struct unit *unit, struct function *function, uint64_t address)
{
	uint32_t call = NONE;

	if (!function->asked)
		make_function(lines, unit, function);
	if (function->asked < ASKED_MANY)
		function->asked++;
	else if (!function->is_flat && function->count)
		flatten(lines, unit, function);
	if (function->is_flat)
		return find(unit->spans.list + function->first, function->count, address);
	for (uint32_t i = 0; i < function->count; i++) {
		const struct range *span = &unit->spans.list[function->first + i];

		if (address - span->start < span->end - span->start)
			call = span->of; /* calls within it come after it */
	}
	return call;
}

int perfring__lines_find(struct perfring_lines *lines, uint64_t address, struct perfring_line_frame *frames,
			 uint32_t most)
{
	uint32_t number = find(lines->ranges.list, lines->ranges.count, address), place, count = 0, line = 0;
	struct unit *unit = number == NONE ? NULL : &lines->units[number];
	const struct perfring_dwarf_row *row;
	struct function *function;
	const char *file = NULL;

	if (!unit || !most)
		return 0;
	if (!unit->is_made)
		make_unit(lines, unit);
	if (!unit->has_rows)
		make_rows(lines, unit);
	place = find(unit->ranges.list, unit->ranges.count, address);
	function = place == NONE ? NULL : &unit->functions[place];
	row = perfring__dwarf_rows_find(&unit->rows, address);
	if (row) {
		file = perfring__dwarf_rows_file(&unit->rows, row->file);
		line = row->line;
	}
	place = function ? find_call(lines, unit, function, address) : NONE;
	for (; place != NONE && count + 1 < most; place = unit->calls[place].parent) {
		struct call *call = &unit->calls[place];

		if (call->named_by)
			call->name = perfring__dwarf_name(unit->dwarf, unit->dwarf->at + call->named_by);
		call->named_by = 0;
		frames[count++] = (struct perfring_line_frame){call->name, file, line};
		file = perfring__dwarf_rows_file(&unit->rows, call->file);
		line = call->line;
	}
	if (lines->dwarf.memory.is_short)
		return -ENOMEM;
	frames[count++] = (struct perfring_line_frame){function ? function->name : NULL, file, line};
	return (int)count;
}

/* ---- all of it ---- */

static void add_units(struct perfring_lines *lines)
{
	struct perfring_dwarf_file *file = &lines->dwarf.own;
	struct perfring_dwarf_entry first;

	while (perfring__dwarf_next_unit(file, &first)) {
		const struct perfring_dwarf_unit *unit = &file->units[file->count - 1];

		if (first.tag != PERFRING_DWARF_COMPILE_UNIT ||
		    !add_ranges(lines, &lines->ranges, unit, &first, lines->count))
			continue;
		if (!grow(lines, &lines->units, lines->count, &lines->capacity, sizeof(*lines->units)))
			break;
		lines->units[lines->count++] = (struct unit){.number = file->count - 1, .steps = steps_of(unit)};
	}
	for (uint32_t i = 0; i < lines->count; i++)
		lines->units[i].dwarf = &file->units[lines->units[i].number];
	while (lines->ranges.count && lines->ranges.list[lines->ranges.count - 1].of >= lines->count)
		lines->ranges.count--;
	sort(lines, &lines->ranges);
}

int perfring__lines_open(struct perfring_lines **result, int fd, const struct perfring_places *places, const char *name,
			 const char **exceeded)
{
	struct perfring_lines *lines = calloc(1, sizeof(*lines));
	int error;

	*result = NULL;
	if (!lines)
		return -ENOMEM;
	lines->range_steps = PERFRING_LIMIT_RANGES;
	error = perfring__dwarf_open(&lines->dwarf, fd, places, name);
	if (!error) {
		add_units(lines);
		error = lines->dwarf.memory.is_short ? -ENOMEM : lines->count ? 0 : -ENODATA;
	}
	if (error) {
		*exceeded = lines->dwarf.exceeded ? lines->dwarf.exceeded : *exceeded;
		perfring__lines_close(lines);
		return error;
	}
	*result = lines;
	return 0;
}

void perfring__lines_close(struct perfring_lines *lines)
{
	if (!lines)
		return;
	for (uint32_t i = 0; i < lines->count; i++) {
		struct unit *unit = &lines->units[i];

		release(lines, unit->functions, unit->capacity, sizeof(*unit->functions));
		release(lines, unit->ranges.list, unit->ranges.capacity, sizeof(*unit->ranges.list));
		release(lines, unit->calls, unit->call_capacity, sizeof(*unit->calls));
		release(lines, unit->spans.list, unit->spans.capacity, sizeof(*unit->spans.list));
		perfring__dwarf_rows_close(&unit->rows, unit->dwarf);
	}
	release(lines, lines->units, lines->capacity, sizeof(*lines->units));
	release(lines, lines->ranges.list, lines->ranges.capacity, sizeof(*lines->ranges.list));
	perfring__dwarf_close(&lines->dwarf);
	free(lines);
}

uint32_t perfring__lines_unit(const struct perfring_lines *lines, uint64_t address)
{
	return find(lines->ranges.list, lines->ranges.count, address);
}

void perfring__lines_rest(struct perfring_lines *lines, uint32_t number)
{
	struct unit *unit = number < lines->count ? &lines->units[number] : NULL;

	if (!unit || !unit->is_made)
		return;
	for (uint32_t i = 0; i < unit->count; i++)
		unit->functions[i] = (struct function){.entry = unit->functions[i].entry};
	release(lines, unit->calls, unit->call_capacity, sizeof(*unit->calls));
	release(lines, unit->spans.list, unit->spans.capacity, sizeof(*unit->spans.list));
	unit->calls = NULL;
	unit->spans = (struct ranges){NULL, 0, 0};
	unit->call_count = unit->call_capacity = 0;
	unit->steps = steps_of(unit->dwarf);
	lines->range_steps += unit->range_steps;
	unit->range_steps = 0;
	perfring__dwarf_unit_rest(unit->dwarf);
	perfring__dwarf_rows_rest(&unit->rows, unit->dwarf);
	unit->has_rows = false;
}

char *perfring__lines_text(struct perfring_lines *lines, size_t size)
{
	return perfring__dwarf_text_space(&lines->dwarf.memory, size);
}

bool perfring__lines_is_place(const struct perfring_lines *lines, const char *name)
{
	return perfring__dwarf_is_place(&lines->dwarf.own, name) ||
	       perfring__dwarf_is_place(&lines->dwarf.shared, name);
}

void perfring__lines_read_places(struct perfring_lines *lines, const char *const *places, uint32_t count,
				 void (*take)(void *to, const char *place, const char *text), void *to)
{
	for (uint32_t i = 0, next; i < count; i = next) {
		bool is_own = perfring__dwarf_is_place(&lines->dwarf.own, places[i]);
		struct perfring_dwarf_file *file = is_own ? &lines->dwarf.own : &lines->dwarf.shared;

		for (next = i + 1; next < count && perfring__dwarf_is_place(file, places[next]); next++)
			;
		perfring__dwarf_read_texts(file, places + i, next - i, take, to);
	}
}

void perfring__lines_renew(struct perfring_lines *lines)
{
	perfring__dwarf_parts_renew(&lines->dwarf.own.parts);
	perfring__dwarf_parts_renew(&lines->dwarf.shared.parts);
}

uint64_t perfring__lines_memory(const struct perfring_lines *lines)
{
	return lines->dwarf.memory.bytes;
}

uint64_t perfring__lines_size(const struct perfring_lines *lines)
{
	uint64_t size = 0;

	for (int i = 0; i < PERFRING_DWARF_SECTIONS; i++)
		size += lines->dwarf.own.sections[i].size + lines->dwarf.shared.sections[i].size;
	return size;
}

const char *perfring__lines_exceeded(const struct perfring_lines *lines)
{
	return lines->exceeded;
}
