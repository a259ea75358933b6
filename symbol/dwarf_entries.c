/* dwarf_entries.c - units and entries of DWARF: abbreviations, values of attributes, references, texts and names.
 *
 * A unit's abbreviations are made into a table when an entry of it is first read; of its first entry alone when units are read.
 *
 * source_lines.c walks units and entries by it; sections 7.5 of the DWARF standard have the forms.  Loops end with the unit's
 * bytes; references are followed a bounded number of times.
 */
#include <stdlib.h>
#include "dwarf.h"
#include "limits.h"

/* Forms by their numbers (DWARF 5, 7.5.6). */
enum {
	FORM_STRING = 0x08,
	FORM_STRP = 0x0e,
	FORM_REF_ADDR = 0x10,
	FORM_REF1 = 0x11,
	FORM_REF_UDATA = 0x15,
	FORM_INDIRECT = 0x16,
	FORM_STRX = 0x1a,
	FORM_ADDRX = 0x1b,
	FORM_REF_SUP4 = 0x1c,
	FORM_STRP_SUP = 0x1d,
	FORM_LINE_STRP = 0x1f,
	FORM_IMPLICIT_CONST = 0x21,
	FORM_REF_SUP8 = 0x24,
	FORM_STRX1 = 0x25,
	FORM_STRX4 = 0x28,
	FORMS = 0x2d,
};

/* How a value is written. */
enum way {
	UNKNOWN,
	NUMBER, /* of `size` bytes */
	SKIPPED,
	ADDRESS,
	OFFSET,
	REFERENCE, /* of DWARF 2 like an address, else like an offset */
	LEB,
	SIGNED_LEB,
	TEXT,
	BLOCK, /* after a number of `size` bytes, 0: a LEB */
	INDIRECT,
	CONSTANT, /* in the abbreviation */
};

static const struct {
	uint8_t way, size;
} forms[FORMS] = {
	[0x01] = {ADDRESS, 0},
	[0x03] = {BLOCK, 2},
	[0x04] = {BLOCK, 4},
	[0x05] = {NUMBER, 2},
	[0x06] = {NUMBER, 4},
	[0x07] = {NUMBER, 8},
	[FORM_STRING] = {TEXT, 0},
	[0x09] = {BLOCK, 0},
	[0x0a] = {BLOCK, 1},
	[0x0b] = {NUMBER, 1},
	[0x0c] = {NUMBER, 1},
	[0x0d] = {SIGNED_LEB, 0},
	[FORM_STRP] = {OFFSET, 0},
	[0x0f] = {LEB, 0},
	[FORM_REF_ADDR] = {REFERENCE, 0},
	[FORM_REF1] = {NUMBER, 1},
	[0x12] = {NUMBER, 2},
	[0x13] = {NUMBER, 4},
	[0x14] = {NUMBER, 8},
	[FORM_REF_UDATA] = {LEB, 0},
	[FORM_INDIRECT] = {INDIRECT, 0},
	[0x17] = {OFFSET, 0},
	[0x18] = {BLOCK, 0},
	[0x19] = {SKIPPED, 0},
	[FORM_STRX] = {LEB, 0},
	[FORM_ADDRX] = {LEB, 0},
	[FORM_REF_SUP4] = {NUMBER, 4},
	[FORM_STRP_SUP] = {OFFSET, 0},
	[0x1e] = {SKIPPED, 16},
	[FORM_LINE_STRP] = {OFFSET, 0},
	[0x20] = {SKIPPED, 8},
	[FORM_IMPLICIT_CONST] = {CONSTANT, 0},
	[0x22] = {LEB, 0},
	[0x23] = {LEB, 0},
	[FORM_REF_SUP8] = {NUMBER, 8},
	[FORM_STRX1] = {NUMBER, 1},
	[0x26] = {NUMBER, 2},
	[0x27] = {NUMBER, 3},
	[FORM_STRX4] = {NUMBER, 4},
	[0x29] = {NUMBER, 1},
	[0x2a] = {NUMBER, 2},
	[0x2b] = {NUMBER, 3},
	[0x2c] = {NUMBER, 4},
};

enum {
	VARIABLE = 0xff,
	ENTRY_VARIABLE = 0xffff,
	WALKED = 1 << PERFRING_DWARF_SIBLING | 1 << PERFRING_DWARF_LOW | 1 << PERFRING_DWARF_HIGH |
		 1 << PERFRING_DWARF_LIST | 1 << PERFRING_DWARF_ORIGIN | 1 << PERFRING_DWARF_CALL_FILE |
		 1 << PERFRING_DWARF_CALL_LINE,
	ATTRIBUTES_MAX = 256, /* of one abbreviation */
	STEP_ATTRIBUTES = 16, /* that one step of a walk may read: constants and flags take no bytes */
	LINKS_MAX = 16,       /* of an entry to what it is made from */
	CHAIN_LOOKS = 64,     /* at tables of one place in the hash table: then a table is made again */
};

/* An attribute of an abbreviation.  constant: the offset in .debug_abbrev of the value of DW_FORM_implicit_const; of those for walks,
 * the value. */
struct attribute {
	uint8_t form, slot;
	uint8_t size; /* of the value, or VARIABLE */
	uint16_t at;  /* the offset of the value after the entry's code, if the sizes of all values are known */
	uint32_t constant;
};

/* If the sizes of all values are known, walks read only the values that they need. */
struct abbreviation {
	uint32_t code;
	uint32_t first, walk_first; /* of its attributes; of those for walks */
	uint16_t count, walk_count;
	uint16_t size; /* of all values, or ENTRY_VARIABLE */
	uint16_t tag;
	uint8_t is; /* IS_ and HAS_ */
	uint8_t sibling; /* which of its attributes refers to the next sibling, counted from 1; 0: none, or not one of the first */
};

/* What walks do with an entry. */
enum {
	HAS_CHILDREN = 1,
	IS_FUNCTION = 2, /* that may have code */
	IS_SCOPE = 4,    /* of functions */
	IS_CALL = 8,     /* inlined */
	IS_BLOCK = 16,
};

struct perfring_dwarf_table {
	struct perfring_dwarf_table *next;
	uint64_t at;
	uint8_t version, address_size, offset_size;
	struct abbreviation *list; /* by their codes */
	struct attribute *attributes;
	uint32_t count, capacity, attribute_count, attribute_capacity;
};

/* ---- values ---- */

uint8_t perfring__dwarf_form_of(uint64_t number, unsigned offset_size)
{
	switch (number) {
	case 0x1f01:
		return FORM_ADDRX;
	case 0x1f02:
		return FORM_STRX;
	case 0x1f20:
		return offset_size == 8 ? FORM_REF_SUP8 : FORM_REF_SUP4;
	case 0x1f21:
		return FORM_STRP_SUP;
	default:
		return number < FORMS && forms[number].way != UNKNOWN ? (uint8_t)number : 0;
	}
}

/* The size of a value of this form; VARIABLE: the value has it. */
static uint8_t size_of(const struct perfring_dwarf_unit *unit, uint8_t form)
{
	switch (forms[form].way) {
	case NUMBER:
		return forms[form].size;
	case SKIPPED: /* no number is as long as the longest */
		return forms[form].size <= 8 ? forms[form].size : VARIABLE;
	case ADDRESS:
		return unit->address_size;
	case OFFSET:
		return unit->offset_size;
	case REFERENCE:
		return unit->version == 2 ? unit->address_size : unit->offset_size;
	case CONSTANT:
		return 0;
	default:
		return VARIABLE;
	}
}

uint64_t perfring__dwarf_take_value(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_bytes *bytes,
				    uint8_t *form, uint64_t constant)
{
	struct perfring_dwarf_bytes abbreviations;

	if (forms[*form].way == INDIRECT) {
		*form = perfring__dwarf_form_of(perfring__dwarf_leb(bytes), unit->offset_size);
		if (*form == FORM_IMPLICIT_CONST || *form == FORM_INDIRECT)
			*form = 0;
	}
	switch (forms[*form].way) {
	case NUMBER:
	case ADDRESS:
	case OFFSET:
	case REFERENCE:
		return perfring__dwarf_take(bytes, size_of(unit, *form));
	case SKIPPED:
		perfring__dwarf_skip(bytes, forms[*form].size);
		return 0;
	case LEB:
		return perfring__dwarf_leb(bytes);
	case SIGNED_LEB:
		return (uint64_t)perfring__dwarf_leb_signed(bytes);
	case TEXT:
		return (uintptr_t)perfring__dwarf_text(bytes);
	case BLOCK:
		perfring__dwarf_skip(bytes, forms[*form].size ? perfring__dwarf_take(bytes, forms[*form].size)
							      : perfring__dwarf_leb(bytes));
		return 0;
	case CONSTANT:
		abbreviations = perfring__dwarf_bytes_at(unit->file, PERFRING_DWARF_ABBREV, constant);
		return (uint64_t)perfring__dwarf_leb_signed(&abbreviations);
	default:
		perfring__dwarf_skip(bytes, UINT64_MAX);
		return 0;
	}
}

/* A text of at most PERFRING_LIMIT_NAME bytes; or its place, if that is enough and the section is left in the file. */
static const char *text_at(struct perfring_dwarf_file *file, enum perfring_dwarf_section_name name, uint64_t at,
			   bool is_place)
{
	const struct perfring_dwarf_section *section = file ? &file->sections[name] : NULL;
	const char *text;
	uint64_t most;

	if (!section || at >= section->size)
		return NULL;
	text = (const char *)section->bytes + at;
	if (section->is_left && is_place)
		return text;
	most = section->size - at < PERFRING_LIMIT_NAME + 1 ? section->size - at : PERFRING_LIMIT_NAME + 1;
	if (!perfring__dwarf_load(file, name, at, most))
		return NULL;
	return strnlen(text, (size_t)most) <= PERFRING_LIMIT_NAME ? text : NULL;
}

static const char *string_of(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value,
			     bool is_place)
{
	struct perfring_dwarf_file *file = unit->file;
	struct perfring_dwarf_bytes bytes;
	uint64_t at = value->number;

	switch (value->form) {
	case FORM_STRING:
		return (const char *)(uintptr_t)at;
	case FORM_STRP:
		return text_at(file, PERFRING_DWARF_STR, at, is_place);
	case FORM_LINE_STRP:
		return text_at(file, PERFRING_DWARF_LINE_STR, at, is_place);
	case FORM_STRP_SUP:
		return text_at(file->shared, PERFRING_DWARF_STR, at, is_place);
	default:
		if (value->form != FORM_STRX && (value->form < FORM_STRX1 || value->form > FORM_STRX4))
			return NULL;
		if (at > file->sections[PERFRING_DWARF_STR_OFFSETS].size)
			return NULL;
		bytes = perfring__dwarf_bytes_at(file, PERFRING_DWARF_STR_OFFSETS,
						 unit->strings + at * unit->offset_size);
		at = perfring__dwarf_take(&bytes, unit->offset_size);
		return bytes.is_short ? NULL : text_at(file, PERFRING_DWARF_STR, at, is_place);
	}
}

const char *perfring__dwarf_string(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value)
{
	return string_of(unit, value, false);
}

/* ---- abbreviations ---- */

static uint8_t slot_of(uint64_t name)
{
	switch (name) {
	case 0x01:
		return PERFRING_DWARF_SIBLING;
	case 0x03:
		return PERFRING_DWARF_NAME;
	case 0x10:
		return PERFRING_DWARF_LINES;
	case 0x11:
		return PERFRING_DWARF_LOW;
	case 0x12:
		return PERFRING_DWARF_HIGH;
	case 0x1b:
		return PERFRING_DWARF_FOLDER;
	case 0x31:
		return PERFRING_DWARF_ORIGIN;
	case 0x47:
		return PERFRING_DWARF_SPECIFICATION;
	case 0x52:
		return PERFRING_DWARF_ENTRY;
	case 0x55:
		return PERFRING_DWARF_LIST;
	case 0x58:
		return PERFRING_DWARF_CALL_FILE;
	case 0x59:
		return PERFRING_DWARF_CALL_LINE;
	case 0x6e:
	case 0x2007: /* MIPS_linkage_name */
		return PERFRING_DWARF_LINKAGE_NAME;
	case 0x72:
		return PERFRING_DWARF_STRINGS_BASE;
	case 0x73:
	case 0x2133: /* GNU_addr_base */
		return PERFRING_DWARF_ADDRESSES_BASE;
	case 0x74:
		return PERFRING_DWARF_LISTS_BASE;
	default:
		return PERFRING_DWARF_IGNORED;
	}
}

static bool add_attribute(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_table *table,
			  struct attribute attribute)
{
	if (!perfring__dwarf_grow(unit->file->memory, &table->attributes, table->attribute_count,
				  &table->attribute_capacity, sizeof(*table->attributes)))
		return false;
	table->attributes[table->attribute_count++] = attribute;
	return true;
}

/* Adds the attributes that walks need, if all sizes are known. */
static bool add_walk(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_table *table,
		     struct abbreviation *abbreviation)
{
	uint16_t at = 0;

	abbreviation->walk_first = table->attribute_count;
	for (uint32_t i = 0; i < abbreviation->count && abbreviation->size != ENTRY_VARIABLE; i++) {
		struct attribute attribute = table->attributes[abbreviation->first + i];

		attribute.at = table->attributes[abbreviation->first + i].at = at;
		if (WALKED >> attribute.slot & 1) {
			uint8_t form = attribute.form;

			if (form == FORM_IMPLICIT_CONST)
				attribute.constant =
					(uint32_t)perfring__dwarf_take_value(unit, NULL, &form, attribute.constant);
			if (!add_attribute(unit, table, attribute))
				return false;
		}
		at = (uint16_t)(at + attribute.size);
	}
	abbreviation->walk_count = (uint16_t)(table->attribute_count - abbreviation->walk_first);
	return true;
}

/* What an entry with this tag and these attributes is to walks. */
static uint8_t is_by_tag(uint16_t tag, uint32_t seen)
{
	switch (tag) {
	case PERFRING_DWARF_SUBPROGRAM:
		return seen & (1 << PERFRING_DWARF_LOW | 1 << PERFRING_DWARF_LIST) ? IS_FUNCTION : 0;
	case PERFRING_DWARF_NAMESPACE:
	case PERFRING_DWARF_MODULE:
	case PERFRING_DWARF_STRUCTURE:
	case PERFRING_DWARF_CLASS:
	case PERFRING_DWARF_UNION:
	case PERFRING_DWARF_ENUMERATION:
		return IS_SCOPE;
	case PERFRING_DWARF_INLINED:
		return IS_CALL;
	case PERFRING_DWARF_LEXICAL_BLOCK:
	case PERFRING_DWARF_TRY_BLOCK:
	case PERFRING_DWARF_CATCH_BLOCK:
		return IS_BLOCK;
	default:
		return 0;
	}
}

/* Adds the attributes of an abbreviation.  Returns false if they are damaged: then no later abbreviation can be read. */
static bool add_attributes(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_bytes *bytes,
			   struct perfring_dwarf_table *table, struct abbreviation *abbreviation)
{
	const unsigned char *section = unit->file->sections[PERFRING_DWARF_ABBREV].bytes;
	uint64_t size = 0;
	uint32_t seen = 0;

	for (;;) {
		uint64_t name = perfring__dwarf_leb(bytes), number = perfring__dwarf_leb(bytes);
		struct attribute attribute = {.form = perfring__dwarf_form_of(number, unit->offset_size),
					      .slot = slot_of(name)};

		if (bytes->is_short || (number && !attribute.form) ||
		    table->attribute_count - abbreviation->first >= ATTRIBUTES_MAX)
			return false;
		if (!number)
			break;
		attribute.size = size_of(unit, attribute.form);
		attribute.constant = (uint32_t)(bytes->at - section);
		if (attribute.form == FORM_IMPLICIT_CONST)
			perfring__dwarf_leb_signed(bytes);
		if (!add_attribute(unit, table, attribute))
			return false;
		size = attribute.size == VARIABLE ? ENTRY_VARIABLE : size + attribute.size;
		size = size < ENTRY_VARIABLE ? size : ENTRY_VARIABLE;
		if (attribute.slot == PERFRING_DWARF_SIBLING &&
		    table->attribute_count - abbreviation->first <= UINT8_MAX)
			abbreviation->sibling = (uint8_t)(table->attribute_count - abbreviation->first);
		seen |= UINT32_C(1) << attribute.slot;
	}
	abbreviation->count = (uint16_t)(table->attribute_count - abbreviation->first);
	abbreviation->size = (uint16_t)size;
	abbreviation->is |= is_by_tag(abbreviation->tag, seen);
	return add_walk(unit, table, abbreviation);
}

/* Adds the next abbreviation.  Returns false at the end. */
static bool add_abbreviation(const struct perfring_dwarf_unit *unit, struct perfring_dwarf_bytes *bytes,
			     struct perfring_dwarf_table *table)
{
	uint64_t code = perfring__dwarf_leb(bytes), tag = perfring__dwarf_leb(bytes);
	struct abbreviation abbreviation = {.code = (uint32_t)code,
					    .first = table->attribute_count,
					    .tag = tag > UINT16_MAX ? 0 : (uint16_t)tag,
					    .is = perfring__dwarf_take(bytes, 1) ? HAS_CHILDREN : 0};

	if (!code || code > UINT32_MAX || !add_attributes(unit, bytes, table, &abbreviation) ||
	    !perfring__dwarf_grow(unit->file->memory, &table->list, table->count, &table->capacity,
				  sizeof(*table->list)))
		return false;
	table->list[table->count++] = abbreviation;
	return true;
}

static int compare_codes(const void *a, const void *b)
{
	const struct abbreviation *one = a, *other = b;

	return one->code < other->code ? -1 : one->code > other->code;
}

static const struct abbreviation *find_slow(const struct perfring_dwarf_table *table, uint64_t code)
{
	const struct abbreviation wanted = {.code = (uint32_t)code};

	if (code > UINT32_MAX || !table->count)
		return NULL;
	return bsearch(&wanted, table->list, table->count, sizeof(wanted), compare_codes);
}

/* Codes are numbers from 1 on, as compilers write them. */
static inline const struct abbreviation *find(const struct perfring_dwarf_table *table, uint64_t code)
{
	if (code - 1 < table->count && table->list[code - 1].code == code)
		return &table->list[code - 1];
	return find_slow(table, code);
}

static bool is_for(const struct perfring_dwarf_table *table, const struct perfring_dwarf_unit *unit)
{
	return table->at == unit->abbreviations && table->version == unit->version &&
	       table->address_size == unit->address_size && table->offset_size == unit->offset_size;
}

static struct perfring_dwarf_table *open_table(const struct perfring_dwarf_unit *unit)
{
	struct perfring_dwarf_table *table = calloc(1, sizeof(*table));

	if (!table) {
		unit->file->memory->is_short = true;
		return NULL;
	}
	unit->file->memory->bytes += sizeof(*table);
	table->at = unit->abbreviations;
	table->version = unit->version;
	table->address_size = unit->address_size;
	table->offset_size = unit->offset_size;
	return table;
}

/* Finds or makes the table of a unit's abbreviations; units with the same abbreviations share it. */
static struct perfring_dwarf_table *table_of(struct perfring_dwarf_unit *unit)
{
	uint64_t hash = unit->abbreviations * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct perfring_dwarf_table **place = &unit->file->tables[hash % PERFRING_DWARF_TABLE_PLACES], *table = *place;
	struct perfring_dwarf_bytes bytes;
	bool is_sorted = true;

	if (unit->table)
		return unit->table;
	for (int i = 0; table && i < CHAIN_LOOKS && !is_for(table, unit); i++)
		table = table->next;
	if (!table || !is_for(table, unit)) {
		table = open_table(unit);
		if (!table)
			return NULL;
		table->next = *place;
		*place = table;
		bytes = perfring__dwarf_bytes_at(unit->file, PERFRING_DWARF_ABBREV, unit->abbreviations);
		while (add_abbreviation(unit, &bytes, table))
			is_sorted = is_sorted && (table->count < 2 || table->list[table->count - 2].code <
									      table->list[table->count - 1].code);
		if (!is_sorted)
			qsort(table->list, table->count, sizeof(*table->list), compare_codes);
	}
	unit->table = table;
	return table;
}

static void free_table(struct perfring_dwarf_memory *memory, struct perfring_dwarf_table *table)
{
	if (table) {
		perfring__dwarf_free(memory, table->list, table->capacity, sizeof(*table->list));
		perfring__dwarf_free(memory, table->attributes, table->attribute_capacity, sizeof(*table->attributes));
	}
	free(table);
}

/* ---- entries ---- */

/* The bytes from an offset of .debug_info on, in a unit that is loaded. */
static struct perfring_dwarf_bytes bytes_in(const struct perfring_dwarf_unit *unit, uint64_t at)
{
	return (struct perfring_dwarf_bytes){unit->bytes + (at - unit->at), unit->bytes + (unit->end - unit->at),
					     unit->file->is_big, false};
}

/* The values of attributes. */
static bool take_values(const struct perfring_dwarf_unit *unit, const struct attribute *attributes, uint32_t count,
			struct perfring_dwarf_bytes *bytes, struct perfring_dwarf_entry *entry)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct attribute *attribute = &attributes[i];
		struct perfring_dwarf_value value;

		if (attribute->size != VARIABLE && !attribute->slot) {
			perfring__dwarf_skip(bytes, attribute->size);
			continue;
		}
		value.form = attribute->form;
		value.number = attribute->size != VARIABLE && attribute->form != FORM_IMPLICIT_CONST
				       ? perfring__dwarf_take(bytes, attribute->size)
				       : perfring__dwarf_take_value(unit, bytes, &value.form, attribute->constant);
		if (attribute->slot) {
			entry->values[attribute->slot] = value;
			entry->seen |= UINT32_C(1) << attribute->slot;
		}
	}
	return !bytes->is_short;
}

static bool take_entry(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_table *table,
		       const struct abbreviation *abbreviation, struct perfring_dwarf_bytes *bytes,
		       struct perfring_dwarf_entry *entry)
{
	entry->tag = abbreviation->tag;
	entry->seen = 0;
	return !abbreviation->count ||
	       take_values(unit, &table->attributes[abbreviation->first], abbreviation->count, bytes, entry);
}

/* The values that walks need. */
static inline bool take_walked(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_table *table,
			       const struct abbreviation *abbreviation, struct perfring_dwarf_bytes *bytes,
			       struct perfring_dwarf_entry *entry)
{
	const unsigned char *from = bytes->at;

	if (abbreviation->size == ENTRY_VARIABLE)
		return take_entry(unit, table, abbreviation, bytes, entry);
	perfring__dwarf_skip(bytes, abbreviation->size);
	if (bytes->is_short)
		return false;
	entry->tag = abbreviation->tag;
	entry->seen = 0;
	for (uint32_t i = 0; i < abbreviation->walk_count; i++) {
		const struct attribute *attribute = &table->attributes[abbreviation->walk_first + i];

		entry->values[attribute->slot] = (struct perfring_dwarf_value){
			attribute->form == FORM_IMPLICIT_CONST
				? attribute->constant
				: perfring__dwarf_number(from + attribute->at, attribute->size, bytes->is_big),
			attribute->form};
		entry->seen |= UINT32_C(1) << attribute->slot;
	}
	return true;
}

bool perfring__dwarf_read(struct perfring_dwarf_unit *unit, uint64_t at, struct perfring_dwarf_entry *entry)
{
	const struct perfring_dwarf_table *table = table_of(unit);
	const struct abbreviation *abbreviation;
	struct perfring_dwarf_bytes bytes;

	if (!table || at < unit->first || at >= unit->end || !perfring__dwarf_unit_load(unit))
		return false;
	bytes = bytes_in(unit, at);
	abbreviation = find(table, perfring__dwarf_leb(&bytes));
	entry->at = at;
	return abbreviation && take_entry(unit, table, abbreviation, &bytes, entry);
}

/* ---- walks ---- */

static const uint8_t returned[] = {[PERFRING_DWARF_FUNCTIONS] = IS_FUNCTION, [PERFRING_DWARF_CALLS] = IS_CALL};
static const uint8_t entered[] = {[PERFRING_DWARF_FUNCTIONS] = IS_SCOPE, [PERFRING_DWARF_CALLS] = IS_CALL | IS_BLOCK};

bool perfring__dwarf_walk_begin(struct perfring_dwarf_walk *walk, struct perfring_dwarf_unit *unit, uint64_t at,
				enum perfring_dwarf_wanted wanted, uint64_t *steps)
{
	const struct perfring_dwarf_table *table = table_of(unit);
	const struct abbreviation *abbreviation;
	struct perfring_dwarf_entry entry;
	struct perfring_dwarf_bytes bytes;

	if (!table || at < unit->first || at >= unit->end || !perfring__dwarf_unit_load(unit))
		return false;
	bytes = bytes_in(unit, at);
	abbreviation = find(table, perfring__dwarf_leb(&bytes));
	if (!abbreviation || !(abbreviation->is & HAS_CHILDREN) ||
	    !take_walked(unit, table, abbreviation, &bytes, &entry))
		return false;
	*walk = (struct perfring_dwarf_walk){
		.unit = unit, .wanted = wanted, .steps = steps, .next_depth = 1, .hidden = UINT32_MAX};
	walk->at = unit->at + (uint64_t)(bytes.at - unit->bytes);
	return true;
}

/* Moves over the first attributes of an entry. */
static void skip_values(const struct perfring_dwarf_unit *unit, const struct attribute *attributes, uint32_t count,
			struct perfring_dwarf_bytes *bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t form = attributes[i].form;

		if (attributes[i].size != VARIABLE)
			perfring__dwarf_skip(bytes, attributes[i].size);
		else
			perfring__dwarf_take_value(unit, bytes, &form, attributes[i].constant);
	}
}

/* Moves over an entry whose values have no known size.  Returns where they end, or NULL. */
static const unsigned char *skip_variable(const struct perfring_dwarf_unit *unit,
					  const struct perfring_dwarf_table *table,
					  const struct abbreviation *abbreviation, const unsigned char *values,
					  const unsigned char *end)
{
	struct perfring_dwarf_bytes bytes = {values, end, unit->file->is_big, false};

	skip_values(unit, &table->attributes[abbreviation->first], abbreviation->count, &bytes);
	return bytes.is_short ? NULL : bytes.at;
}

/* The next sibling of an entry with these values, if that is after `at`, else NULL. */
static const unsigned char *sibling_of(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_table *table,
				       const struct abbreviation *abbreviation, const unsigned char *values,
				       const unsigned char *at)
{
	struct perfring_dwarf_bytes bytes = {values, unit->bytes + (unit->end - unit->at), unit->file->is_big, false};
	const struct attribute *attribute;
	uint64_t sibling;
	uint8_t form;

	if (!abbreviation->sibling)
		return NULL;
	attribute = &table->attributes[abbreviation->first + abbreviation->sibling - 1];
	form = attribute->form;
	if (abbreviation->size == ENTRY_VARIABLE)
		skip_values(unit, &table->attributes[abbreviation->first], abbreviation->sibling - 1u, &bytes);
	else
		bytes.at += attribute->at;
	sibling = perfring__dwarf_take_value(unit, &bytes, &form, attribute->constant);
	return sibling > (uint64_t)(at - unit->bytes) && sibling < unit->end - unit->at ? unit->bytes + sibling : NULL;
}

bool perfring__dwarf_walk_next(struct perfring_dwarf_walk *walk, struct perfring_dwarf_entry *entry)
{
	struct perfring_dwarf_unit *unit = walk->unit;
	const struct perfring_dwarf_table *table = unit->table;
	const unsigned char *at, *next, *values, *end;
	const uint8_t wanted = returned[walk->wanted], inner = entered[walk->wanted];
	uint32_t depth = walk->next_depth, hidden = walk->hidden, least = UINT32_MAX;
	uint64_t steps = *walk->steps;
	bool is_found = false;

	if (!perfring__dwarf_unit_load(unit))
		return false;
	at = unit->bytes + (walk->at - unit->at);
	end = unit->bytes + (unit->end - unit->at);
	while (depth && at < end && steps && !is_found) {
		const struct abbreviation *abbreviation;
		uint64_t code = *at;

		steps--;
		if (!code) { /* the end of children */
			at++;
			depth--;
			hidden = depth <= hidden ? UINT32_MAX : hidden;
			continue;
		}
		values = at + 1;
		if (code >= 0x80) {
			struct perfring_dwarf_bytes bytes = {at, end, false, false};

			code = perfring__dwarf_leb(&bytes);
			values = bytes.at;
		}
		abbreviation = find(table, code);
		if (!abbreviation)
			break;
		steps -= steps < abbreviation->count / STEP_ATTRIBUTES ? steps : abbreviation->count / STEP_ATTRIBUTES;
		next = abbreviation->size != ENTRY_VARIABLE
			       ? abbreviation->size <= end - values ? values + abbreviation->size : NULL
			       : skip_variable(unit, table, abbreviation, values, end);
		if (!next)
			break;
		if (depth <= hidden && abbreviation->is & (wanted | inner)) {
			least = depth < least ? depth : least;
			is_found = abbreviation->is & wanted;
			if (is_found) {
				struct perfring_dwarf_bytes bytes = {values, end, unit->file->is_big, false};

				entry->at = unit->at + (uint64_t)(at - unit->bytes);
				take_walked(unit, table, abbreviation, &bytes, entry);
				walk->depth = depth;
			}
		}
		at = next;
		if (!(abbreviation->is & HAS_CHILDREN))
			continue;
		if (depth > hidden || !(abbreviation->is & inner) || depth >= PERFRING_DWARF_DEPTH_MAX) {
			next = sibling_of(unit, table, abbreviation, values, at);
			if (next) {
				at = next;
				continue;
			}
			hidden = depth < hidden ? depth : hidden;
		}
		depth++;
	}
	*walk->steps = steps;
	walk->hidden = hidden;
	walk->next_depth = is_found ? depth : 0;
	walk->least = least;
	walk->at = unit->at + (uint64_t)(at - unit->bytes);
	return is_found;
}

/* ---- references and names ---- */

/* The unit that has the entry at this offset of .debug_info. */
static struct perfring_dwarf_unit *unit_of(struct perfring_dwarf_file *file, uint64_t at)
{
	uint32_t low = 0, high = file ? file->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (file->units[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &file->units[low - 1] : NULL;
}

/* Follows a reference.  Returns the unit that it leads into, at an offset that may be no entry; or NULL. */
static struct perfring_dwarf_unit *follow(struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value,
					  uint64_t *at)
{
	*at = value->number;
	if (value->form == FORM_REF_ADDR)
		return unit_of(unit->file, *at);
	if (value->form == FORM_REF_SUP4 || value->form == FORM_REF_SUP8)
		return unit_of(unit->file->shared, *at);
	if (value->form < FORM_REF1 || value->form > FORM_REF_UDATA)
		return NULL;
	*at += unit->at;
	return unit;
}

/* A name in an entry, or its place: the unit's bytes do not stay. */
static const char *name_in(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_value *value)
{
	const struct perfring_dwarf_section *section = &unit->file->sections[PERFRING_DWARF_INFO];
	const char *name = string_of(unit, value, true);

	if (value->form != FORM_STRING || !section->is_left || !name)
		return name;
	return (const char *)section->bytes + unit->at + ((uintptr_t)name - (uintptr_t)unit->bytes);
}

/* The entry's own names: *linked, for the linker, and *name, in the source. */
static void take_names(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_entry *entry,
		       const char **linked, const char **name)
{
	if (perfring__dwarf_has(entry, PERFRING_DWARF_LINKAGE_NAME))
		*linked = name_in(unit, &entry->values[PERFRING_DWARF_LINKAGE_NAME]);
	if (!*name && perfring__dwarf_has(entry, PERFRING_DWARF_NAME))
		*name = name_in(unit, &entry->values[PERFRING_DWARF_NAME]);
}

/* The abstract origin or specification of an entry.  Returns its unit, or NULL. */
static struct perfring_dwarf_unit *origin_of(struct perfring_dwarf_unit *unit, const struct perfring_dwarf_entry *entry,
					     uint64_t *at)
{
	enum perfring_dwarf_slot slot = perfring__dwarf_has(entry, PERFRING_DWARF_ORIGIN)
						? PERFRING_DWARF_ORIGIN
						: PERFRING_DWARF_SPECIFICATION;

	return perfring__dwarf_has(entry, slot) ? follow(unit, &entry->values[slot], at) : NULL;
}

const char *perfring__dwarf_name(struct perfring_dwarf_unit *unit, uint64_t at)
{
	struct perfring_dwarf_named *named =
		&unit->file->named[at * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (PERFRING_DWARF_NAMED - 1)];
	const char *linked = NULL, *name = NULL;
	struct perfring_dwarf_entry entry;

	if (named->at == at)
		return named->name;
	named->at = at;
	for (int i = 0; i < LINKS_MAX && unit && !linked && perfring__dwarf_read(unit, at, &entry); i++) {
		take_names(unit, &entry, &linked, &name);
		unit = origin_of(unit, &entry, &at);
	}
	named->name = linked ? linked : name;
	return named->name;
}

uint64_t perfring__dwarf_named_by(const struct perfring_dwarf_unit *unit, const struct perfring_dwarf_entry *entry)
{
	const struct perfring_dwarf_value *origin = &entry->values[PERFRING_DWARF_ORIGIN];
	bool is_near = perfring__dwarf_has(entry, PERFRING_DWARF_ORIGIN) && origin->form >= FORM_REF1 &&
		       origin->form <= FORM_REF_UDATA && origin->number < unit->end - unit->at;

	return is_near ? unit->at + origin->number : entry->at;
}

/* ---- units ---- */

enum {
	UNIT_COMPILE = 1,
	UNIT_PARTIAL = 3,
	UNIT_SKELETON = 4,
};

/* Reads a unit's header.  Returns whether it is of a kind that is read; then *bytes are its entries. */
static bool take_header(struct perfring_dwarf_bytes *bytes, struct perfring_dwarf_unit *unit)
{
	uint64_t type = UNIT_COMPILE;

	unit->version = (uint8_t)perfring__dwarf_take(bytes, 2);
	if (unit->version == 5) {
		type = perfring__dwarf_take(bytes, 1);
		unit->address_size = (uint8_t)perfring__dwarf_take(bytes, 1);
	}
	unit->abbreviations = perfring__dwarf_take(bytes, unit->offset_size);
	if (unit->version < 5)
		unit->address_size = (uint8_t)perfring__dwarf_take(bytes, 1);
	if (type == UNIT_SKELETON)
		perfring__dwarf_skip(bytes, 8);
	return !bytes->is_short && unit->version >= 2 && unit->version <= 5 &&
	       (unit->address_size == 4 || unit->address_size == 8) &&
	       (type == UNIT_COMPILE || type == UNIT_PARTIAL || type == UNIT_SKELETON);
}

/* Reads the first entry of a unit.  All abbreviations before its own are read: perfring_dwarf_file.looks bounds them. */
static bool take_first(struct perfring_dwarf_unit *unit, struct perfring_dwarf_bytes *bytes,
		       struct perfring_dwarf_entry *first)
{
	struct perfring_dwarf_file *file = unit->file;
	struct perfring_dwarf_bytes abbreviations =
		perfring__dwarf_bytes_at(file, PERFRING_DWARF_ABBREV, unit->abbreviations);
	struct perfring_dwarf_table *table = file->scratch ? file->scratch : (file->scratch = open_table(unit));
	uint64_t code = perfring__dwarf_leb(bytes);

	if (!table)
		return false;
	table->count = table->attribute_count = 0;
	while (file->looks && file->looks-- && add_abbreviation(unit, &abbreviations, table)) {
		const struct abbreviation *abbreviation = &table->list[table->count - 1];

		file->looks -= file->looks < abbreviation->count ? file->looks : abbreviation->count;
		if (abbreviation->code == code)
			return take_entry(unit, table, abbreviation, bytes, first);
	}
	return false;
}

static uint64_t number_of(const struct perfring_dwarf_entry *entry, enum perfring_dwarf_slot slot)
{
	return perfring__dwarf_has(entry, slot) ? entry->values[slot].number : 0;
}

static void set_bases(struct perfring_dwarf_unit *unit, const struct perfring_dwarf_entry *first)
{
	unit->has_lines = perfring__dwarf_has(first, PERFRING_DWARF_LINES);
	unit->lines = number_of(first, PERFRING_DWARF_LINES);
	unit->strings = number_of(first, PERFRING_DWARF_STRINGS_BASE);
	unit->addresses = number_of(first, PERFRING_DWARF_ADDRESSES_BASE);
	unit->lists = number_of(first, PERFRING_DWARF_LISTS_BASE);
	if (perfring__dwarf_has(first, PERFRING_DWARF_FOLDER))
		unit->folder = first->values[PERFRING_DWARF_FOLDER];
	if (unit->folder.form == FORM_STRING)
		unit->folder.number = (uintptr_t)perfring__dwarf_keep(unit->file, PERFRING_DWARF_INFO,
								      (const char *)(uintptr_t)unit->folder.number);
	if ((!perfring__dwarf_has(first, PERFRING_DWARF_LOW) ||
	     !perfring__dwarf_address(unit, &first->values[PERFRING_DWARF_LOW], &unit->base)) &&
	    perfring__dwarf_has(first, PERFRING_DWARF_ENTRY))
		perfring__dwarf_address(unit, &first->values[PERFRING_DWARF_ENTRY], &unit->base);
}

/* Reads the header and the first entry of a unit, of which `size` bytes are there. */
static bool read_first(struct perfring_dwarf_unit *unit, uint64_t size, struct perfring_dwarf_entry *first)
{
	struct perfring_dwarf_bytes bytes = {unit->bytes, unit->bytes + size, unit->file->is_big, false};
	uint64_t length;

	perfring__dwarf_take_length(&bytes, &length);
	if (!take_header(&bytes, unit))
		return false;
	first->at = unit->first = unit->at + (uint64_t)(bytes.at - unit->bytes);
	if (!take_first(unit, &bytes, first))
		return false;
	set_bases(unit, first);
	return true;
}

/* The same of a unit that is left in the file. */
static bool read_first_slow(struct perfring_dwarf_unit *unit, struct perfring_dwarf_entry *first)
{
	uint64_t size = unit->end - unit->at;
	unsigned char *whole = malloc((size_t)size);
	bool is_read;

	unit->file->memory->is_short = unit->file->memory->is_short || !whole;
	unit->bytes = whole;
	is_read = whole &&
		  perfring__dwarf_read_part(unit->file, PERFRING_DWARF_INFO, unit->at, whole, (size_t)size) == size &&
		  read_first(unit, size, first);
	free(whole);
	return is_read;
}

enum {
	FIRST = 4096, /* bytes of a unit that is left in the file, which mostly have its first entry */
};

bool perfring__dwarf_next_unit(struct perfring_dwarf_file *file, struct perfring_dwarf_entry *first)
{
	const struct perfring_dwarf_section *section = &file->sections[PERFRING_DWARF_INFO];
	unsigned char some[FIRST];

	/* each takes 4 bytes at least */
	while (file->next < section->size) {
		struct perfring_dwarf_unit unit = {.file = file, .at = file->next};
		uint64_t left = section->size - file->next, length, size = left;
		struct perfring_dwarf_bytes bytes;

		unit.bytes = section->is_left ? some : section->bytes + unit.at;
		if (section->is_left)
			size = perfring__dwarf_read_part(file, PERFRING_DWARF_INFO, unit.at, some, sizeof(some));
		bytes = (struct perfring_dwarf_bytes){unit.bytes, unit.bytes + size, file->is_big, false};
		unit.offset_size = (uint8_t)perfring__dwarf_take_length(&bytes, &length);
		left -= (uint64_t)(bytes.at - unit.bytes);
		if (!unit.offset_size || length > left)
			break;
		file->next = unit.end = section->size - left + length;
		size = size < unit.end - unit.at ? size : unit.end - unit.at;
		if (!read_first(&unit, size, first) && (size == unit.end - unit.at || !read_first_slow(&unit, first)))
			continue;
		unit.bytes = section->is_left ? NULL : section->bytes + unit.at;
		if (!perfring__dwarf_grow(file->memory, &file->units, file->count, &file->capacity, sizeof(unit)))
			break;
		file->units[file->count++] = unit;
		return true;
	}
	free_table(file->memory, file->scratch);
	file->scratch = NULL;
	file->next = section->size;
	return false;
}

void perfring__dwarf_free_units(struct perfring_dwarf_file *file)
{
	for (int i = 0; i < PERFRING_DWARF_TABLE_PLACES; i++)
		for (struct perfring_dwarf_table *table = file->tables[i], *next; table; table = next) {
			next = table->next;
			free_table(file->memory, table);
		}
	free_table(file->memory, file->scratch);
	perfring__dwarf_free(file->memory, file->units, file->capacity, sizeof(*file->units));
}
