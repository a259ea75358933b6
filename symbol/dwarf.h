/* dwarf.h - DWARF 2 to 5 of an ELF file: its units, entries, names, ranges of addresses and rows of lines.
 *
 * source_lines.c is the user; the six dwarf_ files have the parts below.  One thread for each file.  Sections count against
 * PERFRING_LIMIT_INFLATED; memory of what is computed from them is counted in perfring_dwarf_memory.  perfring__dwarf_close frees
 * both.
 *
 * Sections are read once, and inflated: what happens to the file after that is not seen.  Large ones are left in the file, and their
 * parts are read when they are needed, as long as the file is not written.  Bytes are not trusted: each offset
 * is checked where it is followed, and each chain of references has a bound.  Split DWARF and type units are not read; of files
 * that are not linked, no relocations are applied.
 */
#ifndef PERFRING_SYMBOL_DWARF_H
#define PERFRING_SYMBOL_DWARF_H

#include "dwarf_bytes.h"
#include "os/file_identity.h"
#include "places.h"

enum perfring_dwarf_section_name {
	PERFRING_DWARF_INFO,
	PERFRING_DWARF_ABBREV,
	PERFRING_DWARF_LINE,
	PERFRING_DWARF_STR,
	PERFRING_DWARF_LINE_STR,
	PERFRING_DWARF_RANGES,
	PERFRING_DWARF_RNGLISTS,
	PERFRING_DWARF_ADDR,
	PERFRING_DWARF_STR_OFFSETS,
	PERFRING_DWARF_SECTIONS
};

/* Addresses of which the kernel gives memory, by huge pages, when it is first written. */
struct perfring_dwarf_space {
	void *map; /* NULL: none */
	size_t size;
};

/* A NUL follows the bytes.  Of one that is left in the file they are addresses, of which some have been loaded. */
struct perfring_dwarf_section {
	unsigned char *bytes;
	uint64_t size;
	/* of one that is left in the file: */
	bool is_left;
	uint64_t from;   /* where it is in the file */
	uint8_t *loaded; /* a bit for each chunk of the bytes */
	struct perfring_dwarf_space space;
};

/* The file of sections that are left in it, and what is loaded of them. */
struct perfring_dwarf_parts {
	bool is_open;
	bool is_checked, has_changed;
	int fd;
	struct perfring_os_identity identity;        /* of what was read first */
	struct perfring_dwarf_unit *oldest, *newest; /* of those that are loaded */
	uint64_t held;                               /* bytes of units that are loaded */
	uint64_t kept;                               /* the most of them */
	uint64_t read;                               /* bytes of units that were read since `kept` was set */
	struct {
		unsigned char *bytes;
		uint64_t space;
	} spares[2]; /* memory for parts */
};

enum {
	PERFRING_DWARF_CLASSES = 30,
};

/* The memory of what is computed from the sections: units, tables, rows, texts.  It counts against PERFRING_LIMIT_LINES. */
struct perfring_dwarf_memory {
	uint64_t bytes;
	bool is_short; /* an allocation failed */
	struct perfring_dwarf_space space;
	unsigned char *at, *end; /* what is left of the space; NULL: it is malloc's */
	struct perfring_dwarf_block
		*free[PERFRING_DWARF_CLASSES]; /* blocks of the space, by the logarithm of their size */
	struct perfring_dwarf_texts *texts;
};

/* The value of an attribute: a number, an offset or a reference, as `form` says (DW_FORM_; 0: there is none). */
struct perfring_dwarf_value {
	uint64_t number;
	uint8_t form;
};

struct perfring_dwarf_unit {
	struct perfring_dwarf_file *file;
	struct perfring_dwarf_table *table; /* of abbreviations; NULL: not made yet */
	uint64_t at, first, end;            /* in .debug_info: its header, its first entry */
	uint64_t abbreviations, lines;      /* in their sections */
	uint64_t strings, addresses, lists; /* where those of this unit begin in their sections */
	uint64_t base;                      /* of addresses in lists of ranges */
	struct perfring_dwarf_value folder; /* of the compiler */
	uint8_t version, address_size, offset_size;
	bool has_lines;
	unsigned char *bytes; /* from its header on; NULL: it is not loaded */
	/* if the section is left in the file: */
	uint64_t space;                    /* of the bytes */
	struct perfring_dwarf_unit *newer; /* that was loaded after it */
};

enum {
	PERFRING_DWARF_TABLE_PLACES = 1024,
	PERFRING_DWARF_NAMED = 4096,
};

/* A cache of names: of the function that an inlined call is a copy of. */
struct perfring_dwarf_named {
	uint64_t at; /* of its entry; 0: the place is free */
	const char *name;
};

struct perfring_dwarf_file {
	struct perfring_dwarf_section sections[PERFRING_DWARF_SECTIONS];
	struct perfring_dwarf_parts parts;
	bool is_big;
	struct perfring_dwarf_memory *memory;
	struct perfring_dwarf_file *shared; /* with which it shares entries and texts (dwz); NULL: none */
	struct perfring_dwarf_unit *units;  /* in the order of their places */
	uint32_t count, capacity;
	uint64_t next;                        /* the unit that is read next */
	struct perfring_dwarf_table *scratch; /* for first entries */
	uint64_t rows_left;                   /* bytes of tables of lines that may still be run */
	uint64_t looks;                       /* abbreviations that may still be read for units' first entries */
	struct perfring_dwarf_table *tables[PERFRING_DWARF_TABLE_PLACES]; /* by their places */
	struct perfring_dwarf_named named[PERFRING_DWARF_NAMED];          /* likewise */
};

/* The DWARF of an object, and that of the file with which it shares entries (dwz). */
struct perfring_dwarf {
	struct perfring_dwarf_file own, shared;
	struct perfring_dwarf_memory memory;
	const char *exceeded; /* a bound that a file exceeded; of meaning if perfring__dwarf_open failed */
};

/* ---- dwarf_sections.c ---- */

/* Opens *dwarf, which is all zeros.  Arguments and results as perfring__lines_open.  To be closed in any case. */
int perfring__dwarf_open(struct perfring_dwarf *dwarf, int fd, const struct perfring_places *places, const char *name);
void perfring__dwarf_close(struct perfring_dwarf *dwarf);

/* A section's bytes from an offset on, in the file's byte order; `is_short` is set if the section ends before.  Of a section that is
 * left in the file, what perfring__dwarf_load has loaded before; valid until the file is closed or its units are let go. */
struct perfring_dwarf_bytes perfring__dwarf_bytes_at(const struct perfring_dwarf_file *file,
						     enum perfring_dwarf_section_name name, uint64_t at);

/* ---- dwarf_memory.c ---- */

/* Takes memory from a space, from now on: before anything grows.  Without it memory is malloc's. */
void perfring__dwarf_memory_open(struct perfring_dwarf_memory *memory);

/* Frees all texts, and of a space all arrays. */
void perfring__dwarf_memory_close(struct perfring_dwarf_memory *memory);

/* Frees an array that has grown to a capacity; NULL: none. */
void perfring__dwarf_free(struct perfring_dwarf_memory *memory, void *array, uint32_t capacity, size_t size);

/* Memory for bytes that stay until the end, not aligned; NULL: as perfring__dwarf_grow. */
char *perfring__dwarf_text_space(struct perfring_dwarf_memory *memory, size_t size);

bool perfring__dwarf_grow_slow(struct perfring_dwarf_memory *memory, void *array, uint32_t *capacity, size_t size);

/* Makes space in an array for one element more than `count`; `memory` counts it.  Returns false without memory, or beyond its
 * bound. */
static inline bool perfring__dwarf_grow(struct perfring_dwarf_memory *memory, void *array, uint32_t count,
					uint32_t *capacity, size_t size)
{
	return count < *capacity || perfring__dwarf_grow_slow(memory, array, capacity, size);
}

/* ---- dwarf_parts.c ---- */

/* Returns the first of `size` bytes, all zeros, or NULL. */
unsigned char *perfring__dwarf_space_open(struct perfring_dwarf_space *space, uint64_t size);
void perfring__dwarf_space_close(struct perfring_dwarf_space *space);

/* Opens parts of a file, which stays the caller's.  Returns false: there is no space for a descriptor of its own.  Close it in any case. */
bool perfring__dwarf_parts_open(struct perfring_dwarf_parts *parts, int fd);
void perfring__dwarf_parts_close(struct perfring_dwarf_parts *parts);

/* Looks at the file again, whether it was written, before the next part is read. */
void perfring__dwarf_parts_renew(struct perfring_dwarf_parts *parts);

/* Leaves a section in the file.  Returns false: there is no space for it. */
bool perfring__dwarf_section_leave(struct perfring_dwarf_section *section, uint64_t from, uint64_t size);
void perfring__dwarf_section_close(struct perfring_dwarf_section *section);

/* Reads bytes of a section that is left in the file.  Returns how many: fewer at the section's end, and of a file that was written. */
uint64_t perfring__dwarf_read_part(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name, uint64_t at,
				   void *buffer, uint64_t size);

bool perfring__dwarf_load_slow(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name, uint64_t at,
			       uint64_t size);

/* Makes sure that these bytes of a section are there.  Returns false: they cannot be read. */
static inline bool perfring__dwarf_load(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name,
					uint64_t at, uint64_t size)
{
	return !file->sections[name].is_left || perfring__dwarf_load_slow(file, name, at, size);
}

/* Memory of `size` bytes at least for a part: *space bytes, or NULL.  It is to be returned, and is then used again. */
unsigned char *perfring__dwarf_space_take(struct perfring_dwarf_parts *parts, uint64_t size, uint64_t *space);
void perfring__dwarf_space_return(struct perfring_dwarf_parts *parts, unsigned char *bytes, uint64_t space);

/* Lets go the bytes of a unit that is left in the file. */
void perfring__dwarf_unit_rest(struct perfring_dwarf_unit *unit);

bool perfring__dwarf_unit_load_slow(struct perfring_dwarf_unit *unit);

/* Makes sure that the bytes of a unit are there, until another unit is loaded.  Returns false: they cannot be read. */
static inline bool perfring__dwarf_unit_load(struct perfring_dwarf_unit *unit)
{
	return unit->bytes || perfring__dwarf_unit_load_slow(unit);
}

/* Reads texts, which are named by their places, in ascending order: in .debug_str, or in units (.debug_info).  take: is called with each
 * place and its text, which is valid during the call; NULL: it cannot be read, or is longer than PERFRING_LIMIT_NAME. */
void perfring__dwarf_read_texts(struct perfring_dwarf_file *file, const char *const *places, uint32_t count,
				void (*take)(void *to, const char *place, const char *text), void *to);

/* Whether a text is the place of one in such a section, if that is left in the file. */
static inline bool perfring__dwarf_is_in(const struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name,
					 const char *text)
{
	const struct perfring_dwarf_section *section = &file->sections[name];

	return section->is_left && (uintptr_t)text - (uintptr_t)section->bytes < section->size;
}

static inline bool perfring__dwarf_is_place(const struct perfring_dwarf_file *file, const char *text)
{
	return perfring__dwarf_is_in(file, PERFRING_DWARF_STR, text) ||
	       perfring__dwarf_is_in(file, PERFRING_DWARF_INFO, text);
}

/* A copy of a text that is in bytes which do not stay, with which a section is left in the file; else the text itself.  NULL: there is no
 * memory, or it is longer than PERFRING_LIMIT_NAME. */
const char *perfring__dwarf_keep(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name,
				 const char *text);

/* ---- dwarf_entries.c ---- */

enum {
	PERFRING_DWARF_CLASS = 0x02,
	PERFRING_DWARF_ENUMERATION = 0x04,
	PERFRING_DWARF_LEXICAL_BLOCK = 0x0b,
	PERFRING_DWARF_COMPILE_UNIT = 0x11,
	PERFRING_DWARF_STRUCTURE = 0x13,
	PERFRING_DWARF_UNION = 0x17,
	PERFRING_DWARF_INLINED = 0x1d,
	PERFRING_DWARF_MODULE = 0x1e,
	PERFRING_DWARF_CATCH_BLOCK = 0x25,
	PERFRING_DWARF_SUBPROGRAM = 0x2e,
	PERFRING_DWARF_TRY_BLOCK = 0x32,
	PERFRING_DWARF_NAMESPACE = 0x39,
};

/* The attributes that are read, each with a place in perfring_dwarf_entry.values. */
enum perfring_dwarf_slot {
	PERFRING_DWARF_IGNORED,
	PERFRING_DWARF_SIBLING,
	PERFRING_DWARF_NAME,
	PERFRING_DWARF_LINKAGE_NAME,
	PERFRING_DWARF_LOW,
	PERFRING_DWARF_HIGH,
	PERFRING_DWARF_LIST, /* of ranges */
	PERFRING_DWARF_ORIGIN,
	PERFRING_DWARF_SPECIFICATION,
	PERFRING_DWARF_CALL_FILE,
	PERFRING_DWARF_CALL_LINE,
	/* of a unit's first entry */
	PERFRING_DWARF_LINES,
	PERFRING_DWARF_FOLDER,
	PERFRING_DWARF_ENTRY,
	PERFRING_DWARF_STRINGS_BASE,
	PERFRING_DWARF_ADDRESSES_BASE,
	PERFRING_DWARF_LISTS_BASE,
	PERFRING_DWARF_SLOTS
};

struct perfring_dwarf_entry {
	uint64_t at;
	uint16_t tag;
	uint32_t seen; /* a bit for each slot that has a value */
	struct perfring_dwarf_value values[PERFRING_DWARF_SLOTS];
};

static inline bool perfring__dwarf_has(const struct perfring_dwarf_entry *entry, enum perfring_dwarf_slot slot)
{
	return entry->seen >> slot & 1;
}

/* Reads the file's next unit into its array of units, and its first entry into *first.  Returns false at the end.  The array moves
 * until all units are read. */
bool perfring__dwarf_next_unit(struct perfring_dwarf_file *file, struct perfring_dwarf_entry *first);
void perfring__dwarf_free_units(struct perfring_dwarf_file *file);

/* Reads one value of a form, in a unit or a table of lines.  *form: after DW_FORM_indirect, the form that it names.  constant: the
 * offset in .debug_abbrev of the value of DW_FORM_implicit_const. */
uint64_t perfring__dwarf_take_value(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_bytes *bytes,
				    uint8_t *form, uint64_t constant);

/* The form of a number in a file; GNU's own forms become those of DWARF 5 that are read alike.  0: not known. */
uint8_t perfring__dwarf_form_of(uint64_t number, unsigned offset_size);

/* Reads the entry at an offset of the unit.  Returns false: there is none, or it is damaged. */
bool perfring__dwarf_read(struct perfring_dwarf_unit *unit, uint64_t at, struct perfring_dwarf_entry *entry);

enum {
	PERFRING_DWARF_DEPTH_MAX = 128, /* of entries within entries: what is in deeper ones is left out */
};

enum perfring_dwarf_wanted {
	PERFRING_DWARF_FUNCTIONS, /* that may have code: in a unit, and in the scopes in it */
	PERFRING_DWARF_CALLS,     /* inlined ones: in a function, and in the blocks and calls in it */
};

/* A walk over the entries below one.  It returns those that are wanted, with the attributes for ranges, origins and calls. */
struct perfring_dwarf_walk {
	struct perfring_dwarf_unit *unit;
	enum perfring_dwarf_wanted wanted;
	uint64_t *steps;     /* entries that may still be read; several walks may share it */
	uint64_t at;         /* of the entry that is read next */
	uint32_t next_depth; /* of that entry; 1: a child of the first one */
	uint32_t depth;      /* of the entry that was returned last, at most PERFRING_DWARF_DEPTH_MAX */
	uint32_t least;  /* the least since the one before: entries of that depth or more, but this one, have ended */
	uint32_t hidden; /* entries below this depth are left out */
};

bool perfring__dwarf_walk_begin(struct perfring_dwarf_walk *walk, struct perfring_dwarf_unit *unit, uint64_t at,
				enum perfring_dwarf_wanted wanted, uint64_t *steps);
bool perfring__dwarf_walk_next(struct perfring_dwarf_walk *walk, struct perfring_dwarf_entry *entry);

/* The linkage name of a function or call, else its name in the source: its own, or that of its abstract origin or specification;
 * NULL: it has none.  Of a section that is left in the file it is the place of the text (perfring__dwarf_read_texts). */
const char *perfring__dwarf_name(struct perfring_dwarf_unit *unit, uint64_t at);

/* The offset of the entry that has the name of an inlined call (as a walk returns it): its abstract origin, or itself. */
uint64_t perfring__dwarf_named_by(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_entry *entry);

/* The text of an attribute, in the file's sections; NULL: it is none, or longer than PERFRING_LIMIT_NAME. */
const char *perfring__dwarf_string(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value);

/* ---- dwarf_ranges.c ---- */

/* The ranges of addresses of an entry: one by low_pc and high_pc, or those of a list. */
struct perfring_dwarf_ranges {
	const struct perfring_dwarf_unit *unit;
	struct perfring_dwarf_bytes bytes;
	uint64_t base;
	uint64_t start, end; /* the range that was returned last */
	enum {
		PERFRING_DWARF_NO_RANGES,
		PERFRING_DWARF_ONE_RANGE,
		PERFRING_DWARF_LIST_4,
		PERFRING_DWARF_LIST_5
	} kind;
};

void perfring__dwarf_ranges_begin(struct perfring_dwarf_ranges *ranges, const struct perfring_dwarf_unit *unit,
				  const struct perfring_dwarf_entry *entry);

/* Reads the next entry of the list.  Returns whether there was one.  An entry that is no range has a start that is not below end. */
bool perfring__dwarf_ranges_next(struct perfring_dwarf_ranges *ranges);

/* The address in an attribute, which may be an index of .debug_addr.  Returns false: it is none. */
bool perfring__dwarf_address(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value,
			     uint64_t *address);

/* ---- dwarf_rows.c ---- */

/* Code from this address on belongs to that line, up to the next row's address or the end of its sequence. */
struct perfring_dwarf_row {
	uint64_t address;
	uint32_t file;
	uint32_t line;
};

/* The rows of a contiguous run of code, sorted by address. */
struct perfring_dwarf_sequence {
	uint64_t start, end;
	uint32_t first, count;
};

struct perfring_dwarf_source {
	const char *name;
	char *path; /* NULL: not asked for yet */
	uint32_t folder;
};

/* A unit's table of lines. */
struct perfring_dwarf_rows {
	struct perfring_dwarf_memory *memory;
	struct perfring_dwarf_row *rows;
	struct perfring_dwarf_sequence *sequences; /* by their addresses */
	struct perfring_dwarf_source *files;
	const char **folders;
	uint32_t row_count, row_capacity, sequence_count, sequence_capacity;
	uint32_t file_count, file_capacity, folder_count, folder_capacity;
	bool has_files; /* and folders: the table is run again */
	uint64_t size;  /* of the table */
};

/* Opens *rows, which are all zeros.  Returns 0, -ENODATA, or -E2BIG (PERFRING_LIMIT_TABLE).  Close it in any case. */
int perfring__dwarf_rows_open(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit);
void perfring__dwarf_rows_close(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit);

/* Frees the rows, but not the files.  They may be opened again. */
void perfring__dwarf_rows_rest(struct perfring_dwarf_rows *rows, const struct perfring_dwarf_unit *unit);

/* The row of an address, or NULL. */
const struct perfring_dwarf_row *perfring__dwarf_rows_find(const struct perfring_dwarf_rows *rows, uint64_t address);

/* A file's name with its folder, or NULL. */
const char *perfring__dwarf_rows_file(struct perfring_dwarf_rows *rows, uint64_t number);

#endif
