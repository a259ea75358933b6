/* frames.c - the functions at an address: those that were inlined there, and their lines.
 *
 * perfring_symbol_frames of symbol.h.  source_lines.c reads the DWARF: of the object, of its debug file, or of one of its build
 * id.
 *
 * The DWARF of a file is opened at the first question, and closed when its memory, or that of all open files, exceeds a bound.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "demangle.h"
#include "limits.h"
#include "source_lines.h"
#include "os/array.h"
#include "os/object.h"
#include "symbols.h"

enum {
	FRAMES_MAX = 64,
	STACKS_MAX = 1 << 16, /* offsets that are looked up at once */
	FRAMES_USUAL = 4,     /* of one of them */
};

void perfring__shown_names_close(struct perfring_shown_name **names)
{
	for (struct perfring_shown_name *name = *names, *next; name; name = next) {
		next = name->next;
		free(name);
	}
	*names = NULL;
}

void perfring__symbols_close_lines(struct perfring_symbols *symbols, struct perfring_symbols_file *file)
{
	if (!file->lines)
		return;
	symbols->lines_bytes -= perfring__lines_size(file->lines);
	perfring__lines_close(file->lines);
	file->lines = NULL;
	free(file->name_table);
	file->name_table = NULL;
	file->name_count = file->name_places = 0;
}

/* Closes DWARF, and counts how often for each file: large files that are asked in turn are not read without end. */
static void let_go(struct perfring_symbols *symbols, struct perfring_symbols_file *file)
{
	if (!file->lines)
		return;
	perfring__symbols_close_lines(symbols, file);
	file->has_no_lines = ++file->lines_large > PERFRING_LIMIT_REOPENED;
}

static void let_go_all(struct perfring_symbols *symbols)
{
	for (size_t i = 0; i < PERFRING_FILE_PLACES; i++)
		for (struct perfring_symbols_file *file = symbols->files[i]; file; file = file->next)
			let_go(symbols, file);
}

/* Whether a descriptor leads to the file itself, to its debug file, or to one of its build id. */
static bool is_its(struct perfring_symbols *symbols, const struct perfring_symbols_file *file, int fd)
{
	return (file->symbols.debug_path && perfring__os_identity_is(&file->symbols.debug_file, fd)) ||
	       perfring__symbols_is_its(symbols, file, fd) > 0;
}

/* Opens the DWARF of a descriptor's file, if it is the object's, else closes it.  Returns 0 or -errno, and of -E2BIG why. */
static int take_lines(struct perfring_symbols *symbols, struct perfring_symbols_file *file, int fd,
		      const char **exceeded)
{
	int error;

	if (fd < 0)
		return fd;
	error = is_its(symbols, file, fd)
			? perfring__lines_open(&file->lines, fd, &symbols->places, file->path, exceeded)
			: -ENODATA;
	close(fd);
	if (!error)
		symbols->lines_bytes += perfring__lines_size(file->lines);
	return error;
}

/* Whether it is worth trying another file after this result. */
static bool is_open_to_others(int error)
{
	return error && error != -ENOMEM && error != -EOPNOTSUPP;
}

/* Notes which bound has left out something of the object. */
static void exceed(struct perfring_symbol_object *object, const char *what)
{
	if (!what || object->file->symbols.exceeded)
		return;
	object->file->symbols.exceeded = what;
	object->is_news = true;
}

static int open_lines(struct perfring_symbol_object *object)
{
	struct perfring_symbols *symbols = object->symbols;
	struct perfring_symbols_file *file = object->file;
	struct perfring_places places = symbols->places;
	const char *exceeded = NULL;
	char path[PATH_MAX];
	int error = -ENODATA;

	places.pid = file->pid;
	if (symbols->lines_bytes > PERFRING_LIMIT_OPEN)
		let_go_all(symbols);
	if (file->symbols.debug_path) {
		error = take_lines(symbols, file, perfring__places_open_path(&places, file->symbols.debug_path),
				   &exceeded);
		if (is_open_to_others(error))
			error = take_lines(symbols, file, perfring__os_object_open(0, file->symbols.debug_path),
					   &exceeded);
	}
	if (is_open_to_others(error))
		error = take_lines(symbols, file, perfring__symbols_open_again(symbols, file), &exceeded);
	for (unsigned place = 0; place < PERFRING_PLACES_COUNT && is_open_to_others(error); place++)
		error = take_lines(symbols, file,
				   perfring__places_open_build(&symbols->places, PERFRING_PLACE_DEBUG_FILE, file->id,
							       file->id_size, place, file->path, path),
				   &exceeded);
	if (error)
		exceed(object, exceeded);
	file->has_no_lines = error && error != -ENOMEM;
	return error;
}

/* The place in the table of a name, by its address; the table is never full. */
static struct perfring_shown_place *place_of(const struct perfring_symbols *symbols, struct perfring_shown_place *table,
					     uint32_t places, const char *name)
{
	uint64_t hash = (uintptr_t)name * symbols->factor;

	for (uint32_t i = (uint32_t)(hash >> 32);; i++)
		if (!table[i & (places - 1)].of || table[i & (places - 1)].of == name)
			return &table[i & (places - 1)];
}

/* Keeps a quarter of the places free.  Returns false without memory. */
static bool grow(const struct perfring_symbols *symbols, struct perfring_symbols_file *file)
{
	uint32_t places = file->name_places ? 2 * file->name_places : 256;
	struct perfring_shown_place *table;

	if (file->name_count < file->name_places / 4 * 3)
		return true;
	table = calloc(places, sizeof(*table));
	if (!table)
		return false;
	for (uint32_t i = 0; i < file->name_places; i++)
		if (file->name_table[i].of)
			*place_of(symbols, table, places, file->name_table[i].of) = file->name_table[i];
	free(file->name_table);
	file->name_table = table;
	file->name_places = places;
	return true;
}

/* The demangled name in a place of the table; else the name itself, or a copy. */
static void fill(const struct perfring_symbols *symbols, struct perfring_symbols_file *file,
		 struct perfring_shown_place *place, const char *name, bool is_copied)
{
	bool is_mangled = symbols->flags & PERFRING_SYMBOLS_MANGLED;
	char text[PERFRING_LIMIT_SHOWN_NAME], *shown;
	size_t length = is_mangled ? 0 : perfring__demangle(name, text, sizeof(text));
	const char *from = length ? text : name;

	place->text = is_copied ? NULL : name;
	if (!length && !is_copied)
		return;
	length = length ? length : strlen(name);
	shown = perfring__lines_text(file->lines, length + 1);
	if (shown)
		place->text = memcpy(shown, from, length + 1);
}

/* Names of a cache and a file. */
struct names {
	const struct perfring_symbols *symbols;
	struct perfring_symbols_file *file;
};

/* Takes the text of a name's place. */
static void take_text(void *to, const char *name, const char *text)
{
	const struct names *names = to;
	struct perfring_symbols_file *file = names->file;
	struct perfring_shown_place *place = place_of(names->symbols, file->name_table, file->name_places, name);

	if (text)
		fill(names->symbols, file, place, text, true);
}

/* Adds a name to the table, whose place is free, with its text if that is not to be read. */
static void add(const struct perfring_symbols *symbols, struct perfring_symbols_file *file,
		struct perfring_shown_place *place, const char *name)
{
	*place = (struct perfring_shown_place){name, NULL};
	file->name_count++;
	if (!perfring__lines_is_place(file->lines, name))
		fill(symbols, file, place, name, false);
}

/* The name as it is shown: each is read and demangled once.  Valid while the file's DWARF is open. */
static const char *show(const struct perfring_symbols *symbols, struct perfring_symbols_file *file, const char *name)
{
	struct perfring_shown_place *place;

	if (!grow(symbols, file))
		return NULL;
	place = place_of(symbols, file->name_table, file->name_places, name);
	if (!place->of) {
		add(symbols, file, place, name);
		if (perfring__lines_is_place(file->lines, name))
			perfring__lines_read_places(file->lines, &name, 1, take_text, &(struct names){symbols, file});
	}
	return place->text;
}

static bool is_large(const struct perfring_symbols_file *file)
{
	return perfring__lines_memory(file->lines) + file->name_places * sizeof(*file->name_table) >
	       PERFRING_LIMIT_LINES;
}

/* Opens the DWARF of the object's file, if it is not open.  Returns 1; 0: there is none; -ENOMEM, -EOPNOTSUPP. */
static int have_lines(struct perfring_symbol_object *object)
{
	struct perfring_symbols_file *file = object->file;
	int error;

	if (object->why != PERFRING_SYMBOL_KNOWN || file->has_no_lines)
		return 0;
	if (file->lines && is_large(file)) {
		let_go(object->symbols, file);
		if (file->has_no_lines) {
			exceed(object, "16 times 256 MiB made of its DWARF");
			return 0;
		}
	}
	if (!file->lines) {
		error = open_lines(object);
		if (error)
			return error == -ENOMEM || error == -EOPNOTSUPP ? error : 0;
	}
	perfring__lines_renew(file->lines);
	return 1;
}

/* A name that is to be shown; if its text is to be read, later, it is returned, and has a place in the table. */
static const char *show_later(const struct perfring_symbols *symbols, struct perfring_symbols_file *file,
			      const char *name)
{
	struct perfring_shown_place *place;

	if (!perfring__lines_is_place(file->lines, name))
		return show(symbols, file, name);
	if (!grow(symbols, file))
		return NULL;
	place = place_of(symbols, file->name_table, file->name_places, name);
	if (!place->of)
		add(symbols, file, place, name);
	return name;
}

/* The frames of an offset of a file whose DWARF is open.  Returns how many, or -ENOMEM. */
static int find(struct perfring_symbol_object *object, uint64_t offset, struct perfring_symbol_frame *frames,
		uint32_t most,
		const char *(*name_of)(const struct perfring_symbols *symbols, struct perfring_symbols_file *file,
				       const char *name))
{
	struct perfring_symbols_file *file = object->file;
	struct perfring_line_frame found[FRAMES_MAX];
	struct perfring_symbol symbol;
	int count = perfring__lines_find(file->lines, perfring__elf_symbols_address(&file->symbols, offset), found,
					 most < FRAMES_MAX ? most : FRAMES_MAX);

	for (int i = 0; i < count; i++) {
		frames[i] = (struct perfring_symbol_frame){
			.file = found[i].file, .line = found[i].line, .is_inlined = i + 1 < count};
		/* A copy of a function that the compiler made (.part, .cold) has no name of its own in the DWARF. */
		if (!frames[i].is_inlined && perfring_symbol_find(object, offset, &symbol))
			frames[i].name = symbol.name;
		else if (found[i].function)
			frames[i].name = name_of(object->symbols, file, found[i].function);
	}
	return count;
}

int perfring_symbol_frames(struct perfring_symbol_object *object, uint64_t offset, struct perfring_symbol_frame *frames,
			   uint32_t most)
{
	int count = have_lines(object);

	if (count <= 0)
		return count;
	count = find(object, offset, frames, most, show);
	exceed(object, perfring__lines_exceeded(object->file->lines));
	return count;
}

/* ---- many offsets ---- */

/* An offset, and which it is of those that were asked for. */
struct question {
	uint64_t offset;
	uint32_t unit;
	uint32_t number;
};

/* Sorts by a byte of the offsets, or of the units.  Returns the sorted list: `other`, or the same if that byte is equal in all. */
static struct question *sort_by(struct question *list, struct question *other, uint32_t count, unsigned shift,
				bool by_unit)
{
	uint32_t places[256] = {0}, at = 0;

	for (uint32_t i = 0; i < count; i++)
		places[(by_unit ? list[i].unit : list[i].offset) >> shift & 0xff]++;
	if (places[(by_unit ? list[0].unit : list[0].offset) >> shift & 0xff] == count)
		return list;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t these = places[i];

		places[i] = at;
		at += these;
	}
	for (uint32_t i = 0; i < count; i++)
		other[places[(by_unit ? list[i].unit : list[i].offset) >> shift & 0xff]++] = list[i];
	return other;
}

/* Sorts by units, then by offsets: from the lowest byte on.  list: twice the space. */
static const struct question *sort(struct question *list, uint32_t count)
{
	struct question *other = list + count;

	for (unsigned i = 0; i < 12; i++) {
		struct question *sorted = sort_by(list, other, count, i % 8 * 8, i >= 8);

		other = sorted == list ? other : list;
		list = sorted;
	}
	return list;
}

/* Reads and demangles the names of places in the table that have no texts.  Returns 0 or -ENOMEM. */
static int read_names(const struct perfring_symbols *symbols, struct perfring_symbols_file *file)
{
	struct names names = {symbols, file};
	const struct question *sorted;
	struct question *list;
	const char **places;
	uint32_t count = 0;
	bool has_memory;

	list = reallocarray(NULL, file->name_count + 1, 2 * sizeof(*list));
	places = reallocarray(NULL, file->name_count + 1, sizeof(*places));
	for (uint32_t i = 0; i < file->name_places && list && places; i++) {
		const struct perfring_shown_place *place = &file->name_table[i];

		if (place->of && !place->text && perfring__lines_is_place(file->lines, place->of)) {
			list[count] = (struct question){(uintptr_t)place->of, 0, count};
			places[count++] = place->of;
		}
	}
	if (count) {
		sorted = sort(list, count);
		for (uint32_t i = 0; i < count; i++)
			places[i] = (const char *)(uintptr_t)sorted[i].offset;
		perfring__lines_read_places(file->lines, places, count, take_text, &names);
	}
	has_memory = places && list;
	free(places);
	free(list);
	return has_memory ? 0 : -ENOMEM;
}

static int grow_frames(struct perfring_symbols *symbols, uint32_t capacity)
{
	int error = perfring__os_array_resize(&symbols->frames, capacity, sizeof(*symbols->frames));

	symbols->frame_capacity = error ? symbols->frame_capacity : capacity;
	return error;
}

/* Looks up questions in their order.  Returns 1; 0: that took too much memory; -ENOMEM. */
static int answer(struct perfring_symbol_object *object, const struct question *list, uint32_t count,
		  struct perfring_symbol_stack *stacks)
{
	struct perfring_symbols *symbols = object->symbols;
	uint32_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct perfring_symbol_stack *stack = &stacks[list[i].number];
		int found;

		if (symbols->frame_capacity < used + FRAMES_MAX &&
		    grow_frames(symbols, used + FRAMES_MAX + (count - i) * FRAMES_USUAL))
			return -ENOMEM;
		found = i && list[i].offset == list[i - 1].offset
				? -1
				: find(object, list[i].offset, symbols->frames + used, FRAMES_MAX, show_later);
		if (found == -ENOMEM)
			return found;
		if (i + 1 == count || list[i + 1].unit != list[i].unit)
			perfring__lines_rest(object->file->lines, list[i].unit);
		if (i + 1 < count && is_large(object->file))
			return 0;
		*stack = found < 0 ? stacks[list[i - 1].number]
				   : (struct perfring_symbol_stack){.count = (uint32_t)found, .reserved_word = used};
		used += found < 0 ? 0 : (uint32_t)found;
	}
	if (read_names(symbols, object->file))
		return -ENOMEM;
	if (count > 1 && is_large(object->file))
		return 0;
	for (uint32_t i = 0; i < used; i++) {
		struct perfring_symbol_frame *frame = &symbols->frames[i];

		if (frame->name && perfring__lines_is_place(object->file->lines, frame->name))
			frame->name = show(symbols, object->file, frame->name);
	}
	/* now that they do not move any more */
	for (uint32_t i = 0; i < count; i++) {
		stacks[i].frames = symbols->frames + stacks[i].reserved_word;
		stacks[i].reserved_word = 0;
	}
	return 1;
}

int64_t perfring_symbol_stacks(struct perfring_symbol_object *object, const uint64_t *offsets, uint64_t count,
			       struct perfring_symbol_stack *stacks)
{
	uint32_t some = count < STACKS_MAX ? (uint32_t)count : STACKS_MAX;
	struct question *list = some ? reallocarray(NULL, some, 2 * sizeof(*list)) : NULL;
	int error;

	if (!some)
		return 0;
	if (!list)
		return -ENOMEM;
	do {
		memset(stacks, 0, some * sizeof(*stacks));
		error = have_lines(object);
		if (error <= 0)
			break;
		for (uint32_t i = 0; i < some; i++)
			list[i] = (struct question){
				offsets[i],
				perfring__lines_unit(object->file->lines,
						     perfring__elf_symbols_address(&object->file->symbols, offsets[i])),
				i};
		error = answer(object, sort(list, some), some, stacks);
		exceed(object, perfring__lines_exceeded(object->file->lines));
		some -= error ? 0 : some / 2;
	} while (!error);
	free(list);
	return error < 0 ? error : (int64_t)some;
}
