/* functions.c - the functions of an object, found by address, and their rows, made on demand (docs/unwind.md).
 *
 * The functions of unwind.h on one object.
 *
 * Concurrency.  One thread makes rows; its handlers and other threads look rules up meanwhile.  Rules and rows
 * are written first, then the pointer to the function's rows is published by a release store (publish_rows), which pairs with the
 * acquire load in rows_of: a reader that sees the pointer sees the rows and their rules.  Nothing that was published is changed
 * or moved before close.
 */
#include <stdlib.h>

#include "cfi.h"
#include "image.h"

/* A function's rows, in the order of their offsets: `offsets`, then as many numbers of rules, of 16 bits.  6 bytes a row. */
struct rows {
	uint32_t count;
	uint32_t offsets[];
};

/* An entry of an index that is made here, for a section without a usable .eh_frame_hdr. */
struct place {
	uint64_t start;
	uint32_t offset;
};

/* The functions of a section, sorted by their starts. */
struct table {
	struct perfring_cfi_section section;
	const uint8_t *sorted; /* .eh_frame_hdr's pairs of 32 bits; NULL: places */
	uint64_t sorted_base;
	struct place *places;
	struct rows **made; /* for each function its rows, or NULL */
	uint32_t count;
};

enum {
	EH_FRAME,
	DEBUG_FRAME,
	TABLES,
};

enum {
	BLOCK_SIZE = 1 << 14, /* bytes of memory for rows that are taken at once */
	BLOCK_HEAD = 16,
	MEMORY_LEAST = 1 << 16,
	PROBES = 256,     /* functions of .eh_frame_hdr that are compared with .eh_frame */
	HEADER_SIZE = 12, /* of .eh_frame_hdr, before its table */
	NO_RULE = 0xffff,
};

#define FP UINT32_MAX

struct block {
	struct block *next;
	uint64_t used;
};

/* x86-64's PLT: entries of 16 bytes, each of which pushes its number or nothing, and jumps; the first one pushes one word more. */
struct plt {
	uint64_t address, size; /* 0: there is none */
	uint8_t pushed;         /* the byte of an entry from which its number is on the stack */
};

struct perfring_unwind {
	struct table tables[TABLES];
	struct plt plt;
	struct perfring_unwind_rule *rules;
	uint16_t *slots; /* numbers of rules and 1, by their hashes; 0: free */
	uint32_t rule_count;
	uint32_t rule_capacity; /* half of slot_mask + 1, at most PERFRING_UNWIND_RULES_MAX */
	uint32_t slot_mask;
	struct block *blocks;
	uint64_t memory;
	uint64_t memory_most;
	uint64_t made;
	uint64_t rows;
	uint64_t row_bytes;
	uint64_t described;
	bool is_complete; /* make_all: no description is read any more, and no section is there */
};

/* ---- the index ---- */

static uint32_t word_at(const uint8_t *at)
{
	/* one load, where the compiler sees it */
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t start_of(const struct table *table, uint32_t i)
{
	if (table->sorted)
		return table->sorted_base + (uint64_t)(int32_t)word_at(table->sorted + 8 * (uint64_t)i);
	return table->places[i].start;
}

/* The offset in the section of the i-th description; at or beyond its size: damaged. */
static uint64_t offset_of(const struct table *table, uint32_t i)
{
	if (table->sorted)
		return table->sorted_base + (uint64_t)(int32_t)word_at(table->sorted + 8 * (uint64_t)i + 4) -
		       table->section.address;
	return table->places[i].offset;
}

/* Returns false: what the index names is no function that starts there. */
static bool read_function(const struct table *table, uint32_t i, struct perfring_cfi_function *function)
{
	uint64_t offset = offset_of(table, i);
	uint32_t next;

	return offset < table->section.size &&
	       perfring__cfi_parse(&table->section, (uint32_t)offset, function, &next) == 1 &&
	       function->start == start_of(table, i);
}

/* Takes .eh_frame_hdr if its table is the one that linkers write (pairs of 32 bits relative to the header), is inside, is sorted,
 * and PROBES of its functions are as .eh_frame has them. */
static void take_sorted(struct table *table, const struct perfring_unwind_section *header)
{
	struct perfring_cfi_section section = {header->bytes, (uint32_t)header->size, header->address, 0, false};
	struct perfring_cfi_function function;
	struct bytes bytes;
	uint64_t pointer, count;
	uint32_t i, step;

	if (header->size < HEADER_SIZE || section.bytes[0] != 1 || section.bytes[3] != 0x3b)
		return;
	bytes = bytes_init(section.bytes + 4, section.bytes + header->size);
	if (!perfring__cfi_pointer(&section, &bytes, section.bytes[1], &pointer) ||
	    !perfring__cfi_pointer(&section, &bytes, section.bytes[2], &count) || count == 0 ||
	    count > bytes_left(&bytes) / 8)
		return;
	table->sorted = bytes.at;
	table->sorted_base = header->address;
	table->count = (uint32_t)count;
	for (i = 1; i < table->count && start_of(table, i - 1) <= start_of(table, i); i++)
		;
	step = table->count / PROBES + 1;
	if (i == table->count)
		for (i = 0; i < table->count && read_function(table, i, &function); i += step)
			;
	if (i < table->count) {
		table->sorted = NULL;
		table->count = 0;
	}
}

static int compare_places(const void *one, const void *other)
{
	const struct place *a = one, *b = other;

	return a->start != b->start ? (a->start < b->start ? -1 : 1)
				    : (a->offset > b->offset) - (a->offset < b->offset);
}

/* Functions of a section, which are damaged if they cannot be read; those of length 0 are none.  places: where to, or NULL. */
static uint32_t list_functions(const struct perfring_cfi_section *section, struct place *places)
{
	struct perfring_cfi_function function;
	uint32_t at = 0, next, count = 0;

	for (; at < section->size; at = next) { /* at most one turn for 4 bytes */
		uint32_t offset = at;

		if (perfring__cfi_parse(section, offset, &function, &next) != 1 || function.length == 0)
			continue;
		if (places)
			places[count] = (struct place){function.start, offset};
		count++;
	}
	return count;
}

static int make_places(struct perfring_unwind *unwind, struct table *table)
{
	table->count = list_functions(&table->section, NULL);
	if (!table->count)
		return 0;
	table->places = calloc(table->count, sizeof(*table->places));
	if (!table->places)
		return -ENOMEM;
	unwind->memory += table->count * sizeof(*table->places);
	list_functions(&table->section, table->places);
	qsort(table->places, table->count, sizeof(*table->places), compare_places);
	return 0;
}

static int open_table(struct perfring_unwind *unwind, int which, const struct perfring_unwind_section *from,
		      uint32_t machine, const struct perfring_unwind_section *header)
{
	struct table *table = &unwind->tables[which];
	int ret;

	table->section = (struct perfring_cfi_section){from->bytes, (uint32_t)from->size, from->address, machine,
						       which == DEBUG_FRAME};
	if (!from->size)
		return 0;
	if (header)
		take_sorted(table, header);
	ret = table->sorted ? 0 : make_places(unwind, table);
	if (ret || !table->count)
		return ret;
	table->made = calloc(table->count, sizeof(*table->made));
	unwind->memory += table->count * sizeof(*table->made);
	return table->made ? 0 : -ENOMEM;
}

/* The last function of a table that starts at or below an address: 1, or 0 (there is none). */
static bool find(const struct table *table, uint64_t address, uint32_t *found)
{
	uint32_t low = 0, high = table->count, middle;

	while (low < high) { /* 32 turns at most */
		middle = low + (high - low) / 2;
		if (start_of(table, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low - 1;
	return low > 0;
}

/* ---- rules and rows ---- */

static uint32_t hash_of(const struct perfring_unwind_rule *rule)
{
	uint64_t words[2];

	memcpy(words, rule, sizeof(words));
	return (uint32_t)(((words[0] * 0x9e3779b97f4a7c15) ^ (words[1] + (words[0] >> 7))) * 0xff51afd7ed558ccd >> 32);
}

/* The number of a rule, which is kept if it is new.  NO_RULE: it is none.  Returns -ENOSPC: no number is free.  At most as
 * many turns as slots: at most half of them are taken. */
static int number_of(struct perfring_unwind *unwind, const struct perfring_unwind_rule *rule, uint16_t *number)
{
	uint32_t slot = hash_of(rule) & unwind->slot_mask;

	*number = NO_RULE;
	if (rule->cfa == PERFRING_UNWIND_CFA_NONE)
		return 0;
	for (; unwind->slots[slot]; slot = (slot + 1) & unwind->slot_mask) {
		*number = (uint16_t)(unwind->slots[slot] - 1);
		if (!memcmp(&unwind->rules[*number], rule, sizeof(*rule)))
			return 0;
	}
	if (unwind->rule_count == unwind->rule_capacity)
		return -ENOSPC;
	*number = (uint16_t)unwind->rule_count++;
	unwind->rules[*number] = *rule;
	unwind->slots[slot] = (uint16_t)(*number + 1);
	return 0;
}

static uint16_t *rules_of(const struct rows *rows)
{
	return (uint16_t *)(uintptr_t)(rows->offsets + rows->count);
}

static const struct rows *rows_of(const struct table *table, uint32_t i)
{
	return __atomic_load_n(&table->made[i], __ATOMIC_ACQUIRE); /* pairs with publish_rows */
}

static uint32_t length_of(const struct rows *rows)
{
	return rows->offsets[rows->count - 1];
}

static void publish_rows(struct table *table, uint32_t i, struct rows *rows)
{
	__atomic_store_n(&table->made[i], rows, __ATOMIC_RELEASE); /* pairs with rows_of */
}

/* Memory for rows, aligned for words of 4 bytes.  NULL: *ret says why. */
static void *take_memory(struct perfring_unwind *unwind, uint64_t size, int *ret)
{
	struct block *block = unwind->blocks;
	uint64_t whole;

	size = (size + 3) & ~(uint64_t)3;
	if (!block || block->used + size > BLOCK_SIZE) {
		whole = size + BLOCK_HEAD > BLOCK_SIZE ? size + BLOCK_HEAD : BLOCK_SIZE;
		*ret = -ENOSPC;
		if (unwind->memory > unwind->memory_most || whole > unwind->memory_most - unwind->memory)
			return NULL;
		*ret = -ENOMEM;
		block = malloc((size_t)whole);
		if (!block)
			return NULL;
		unwind->memory += whole;
		block->used = BLOCK_HEAD;
		block->next = unwind->blocks;
		unwind->blocks = block;
	}
	block->used += size;
	return (uint8_t *)block + block->used - size;
}

/* Rows that follow one another with one rule are one.  rows: where to, or NULL to count.  Returns the count, or -ENOSPC.  At
 * most as many turns as the function's program has bytes. */
static int64_t list_rows(struct perfring_unwind *unwind, const struct perfring_cfi_function *function,
			 struct rows *rows)
{
	struct perfring_unwind_rule rule;
	struct perfring_cfi_walk walk;
	uint64_t start, end;
	uint16_t number, last = 0;
	uint32_t count = 0;

	perfring__cfi_walk_init(&walk, function);
	while (perfring__cfi_next(&walk, &start, &end, &rule)) {
		if (number_of(unwind, &rule, &number))
			return -ENOSPC;
		if (count && number == last)
			continue;
		if (rows) {
			rows->offsets[count] = (uint32_t)start;
			rules_of(rows)[count] = number;
		}
		last = number;
		count++;
	}
	return count;
}

/* The rows of one function, which end with a row without a rule. */
static int make_rows(struct perfring_unwind *unwind, struct table *table, uint32_t i)
{
	struct perfring_cfi_function function;
	struct rows *rows;
	int64_t count;
	int ret;

	if (!read_function(table, i, &function))
		return -EBADMSG;
	if (function.length >= UINT32_MAX)
		return -ENOSPC;
	count = list_rows(unwind, &function, NULL);
	if (count < 0)
		return (int)count;
	rows = take_memory(unwind, sizeof(*rows) + (uint64_t)(count + 1) * 6, &ret);
	if (!rows)
		return ret;
	rows->count = (uint32_t)count + 1;
	list_rows(unwind, &function, rows);
	rows->offsets[count] = (uint32_t)function.length;
	rules_of(rows)[count] = NO_RULE;
	unwind->made++;
	unwind->rows += (uint64_t)count;
	unwind->row_bytes += sizeof(*rows) + (uint64_t)(count + 1) * 6;
	unwind->described += (uint64_t)(function.own_end - (function.section->bytes + offset_of(table, i)));
	publish_rows(table, i, rows);
	return 1;
}

/* The rule at an offset: 1, or 0.  `end`: where its row ends, from the start. */
static bool look_up(const struct perfring_unwind *unwind, const struct rows *rows, uint64_t offset,
		    struct perfring_unwind_rule *rule, uint64_t *end)
{
	uint32_t low = 0, high = rows->count, middle;

	while (low < high) { /* 32 turns at most */
		middle = low + (high - low) / 2;
		if (rows->offsets[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	*end = low == rows->count ? offset + 1 : rows->offsets[low];
	if (low == 0 || rules_of(rows)[low - 1] == NO_RULE)
		return false;
	*rule = unwind->rules[rules_of(rows)[low - 1]];
	return true;
}

/* The same without rows: by the description.  column: of the register that is `fp` in the rule; FP: fp itself. */
static bool look_through(const struct perfring_cfi_function *function, uint64_t offset, uint32_t column,
			 struct perfring_unwind_rule *rule, uint64_t *end)
{
	struct perfring_cfi_walk walk;
	uint64_t start;

	perfring__cfi_walk_init(&walk, function);
	if (column != FP)
		perfring__cfi_walk_follow(&walk, column);
	while (perfring__cfi_next(&walk, &start, end, rule))
		if (offset < *end)
			return rule->cfa != PERFRING_UNWIND_CFA_NONE;
	*end = offset + 1;
	return false;
}

/* The same of the i-th function of a table.  Returns false: the offset is beyond it.  Its own function: a walk takes 3 KB of
 * stack. */
static __attribute__((noinline)) bool look_into(const struct table *table, uint32_t i, uint64_t offset, uint32_t column,
						struct perfring_unwind_rule *rule, uint64_t *end, bool *found)
{
	struct perfring_cfi_function function;

	if (!read_function(table, i, &function) || offset >= function.length)
		return false;
	*found = look_through(&function, offset, column, rule, end);
	return true;
}

/* ---- x86-64's PLT ---- */

enum {
	PLT_ENTRY = 16,
};

static struct plt take_plt(const struct perfring_unwind_sections *sections)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const struct perfring_unwind_section *plt = &sections->plt;
	const uint8_t *entries = plt->bytes;

	if (sections->machine != PERFRING_UNWIND_X86_64 || plt->size < 2 * PLT_ENTRY)
		return (struct plt){0, 0, 0};
	/* jmp of 6 bytes, push of 5; with endbr64: that, and the push */
	return (struct plt){plt->address, plt->size, memcmp(entries + PLT_ENTRY, endbr64, sizeof(endbr64)) ? 11 : 9};
}

static bool find_plt(const struct plt *plt, uint64_t address, struct perfring_unwind_rule *rule)
{
	uint64_t offset = address - plt->address;

	if (offset >= plt->size)
		return false;
	*rule = (struct perfring_unwind_rule){.cfa = PERFRING_UNWIND_CFA_PLT,
					      .ra = PERFRING_UNWIND_AT_CFA,
					      .flags = (uint8_t)(plt->pushed << PERFRING_UNWIND_MORE),
					      .cfa_offset = 8,
					      .ra_offset = -8};
	if (offset < PLT_ENTRY) { /* an entry's number is there; the push has 6 bytes */
		rule->cfa = PERFRING_UNWIND_CFA_SP;
		rule->flags = PERFRING_UNWIND_PLAIN;
		rule->cfa_offset = offset < 6 ? 16 : 24;
	}
	return true;
}

/* Copies what .eh_frame_hdr has of functions' starts. */
static int keep_starts(struct perfring_unwind *unwind, struct table *table)
{
	struct place *places;
	uint64_t offset;
	uint32_t i;

	if (!table->sorted)
		return 0;
	places = calloc(table->count, sizeof(*places));
	if (!places)
		return -ENOMEM;
	unwind->memory += table->count * sizeof(*places);
	for (i = 0; i < table->count; i++) {
		offset = offset_of(table, i);
		places[i].start = start_of(table, i);
		places[i].offset = offset < table->section.size ? (uint32_t)offset : table->section.size;
	}
	table->places = places;
	table->sorted = NULL;
	return 0;
}

/* ---- what is public ---- */

int perfring_unwind_open_sections(struct perfring_unwind **unwind, const struct perfring_unwind_sections *sections)
{
	const struct perfring_unwind_section *eh = &sections->eh_frame, *debug = &sections->debug_frame;
	struct perfring_unwind *opened;
	int ret;

	*unwind = NULL;
	if (sections->machine != PERFRING_UNWIND_X86_64 && sections->machine != PERFRING_UNWIND_AARCH64)
		return -EINVAL;
	if (eh->size > UINT32_MAX || debug->size > UINT32_MAX || sections->eh_frame_hdr.size > UINT32_MAX)
		return -EOPNOTSUPP;
	if (!eh->size && !debug->size)
		return -ENODATA;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	ret = open_table(opened, EH_FRAME, eh, sections->machine, &sections->eh_frame_hdr);
	if (!ret)
		ret = open_table(opened, DEBUG_FRAME, debug, sections->machine, NULL);
	if (!ret && !opened->tables[EH_FRAME].count && !opened->tables[DEBUG_FRAME].count)
		ret = -ENODATA;
	opened->plt = take_plt(sections);
	opened->rule_capacity = PERFRING_UNWIND_RULES_MAX - 1;
	if (opened->rule_capacity > 16 + (eh->size + debug->size) / 8)
		opened->rule_capacity = (uint32_t)(16 + (eh->size + debug->size) / 8);
	opened->slot_mask = 31;
	while (opened->slot_mask < 2 * opened->rule_capacity)
		opened->slot_mask = 2 * opened->slot_mask + 1;
	if (!ret) {
		opened->rules = calloc(opened->rule_capacity, sizeof(*opened->rules));
		opened->slots = calloc((size_t)opened->slot_mask + 1, sizeof(*opened->slots));
		ret = opened->rules && opened->slots ? 0 : -ENOMEM;
	}
	if (ret) {
		perfring_unwind_close(opened);
		return ret;
	}
	opened->memory += sizeof(*opened) + opened->rule_capacity * sizeof(*opened->rules) +
			  (opened->slot_mask + 1) * sizeof(*opened->slots);
	opened->memory_most =
		PERFRING_UNWIND_MEMORY_MAX * (eh->size + debug->size + sections->eh_frame_hdr.size) + MEMORY_LEAST;
	if (opened->memory_most < opened->memory)
		opened->memory_most = opened->memory;
	*unwind = opened;
	return 0;
}

int perfring_unwind_open(struct perfring_unwind **unwind, const void *image, size_t size)
{
	struct perfring_unwind_sections sections;
	int ret = perfring__unwind_image(image, size, &sections);

	*unwind = NULL;
	return ret ? ret : perfring_unwind_open_sections(unwind, &sections);
}

void perfring_unwind_close(struct perfring_unwind *unwind)
{
	struct block *block;
	int i;

	if (!unwind)
		return;
	while ((block = unwind->blocks)) {
		unwind->blocks = block->next;
		free(block);
	}
	for (i = 0; i < TABLES; i++) {
		free(unwind->tables[i].places);
		free(unwind->tables[i].made);
	}
	free(unwind->rules);
	free(unwind->slots);
	free(unwind);
}

int perfring_unwind_make(struct perfring_unwind *unwind, uint64_t address)
{
	struct perfring_cfi_function function;
	uint32_t i;
	int which, ret = 0;

	for (which = 0; which < TABLES && ret == 0; which++) {
		struct table *table = &unwind->tables[which];

		if (!find(table, address, &i))
			continue;
		if (rows_of(table, i))
			ret = address - start_of(table, i) < length_of(rows_of(table, i));
		else if (unwind->is_complete)
			continue;
		else if (!read_function(table, i, &function))
			ret = -EBADMSG;
		else if (address - function.start < function.length)
			ret = make_rows(unwind, table, i);
	}
	return ret;
}

int perfring_unwind_make_all(struct perfring_unwind *unwind)
{
	struct perfring_cfi_function function;
	uint32_t i;
	int which, ret = 0;

	for (which = 0; which < TABLES; which++) {
		struct table *table = &unwind->tables[which];

		for (i = 0; i < table->count; i++) {
			if (!rows_of(table, i) && read_function(table, i, &function))
				ret = make_rows(unwind, table, i);
			if (ret == -ENOMEM)
				return ret;
		}
	}
	for (which = 0; which < TABLES; which++) {
		ret = keep_starts(unwind, &unwind->tables[which]);
		if (ret)
			return ret;
	}
	for (which = 0; which < TABLES; which++)
		unwind->tables[which].section = (struct perfring_cfi_section){.bytes = NULL};
	unwind->is_complete = true;
	return 0;
}

int perfring_unwind_rule_at(const struct perfring_unwind *unwind, uint64_t address, struct perfring_unwind_rule *rule,
			    uint64_t *end)
{
	const struct rows *rows;
	uint64_t row_end = 0;
	bool found = false;
	uint32_t i;
	int which;

	if (end)
		*end = address + 1;
	for (which = 0; which < TABLES && !found; which++) {
		const struct table *table = &unwind->tables[which];
		uint64_t offset;

		if (!find(table, address, &i))
			continue;
		offset = address - start_of(table, i);
		rows = rows_of(table, i);
		if (rows)
			found = look_up(unwind, rows, offset, rule, &row_end);
		else if (unwind->is_complete || !look_into(table, i, offset, FP, rule, &row_end, &found))
			continue;
		if (end)
			*end = start_of(table, i) + row_end;
	}
	if (!found)
		found = find_plt(&unwind->plt, address, rule);
	if (!found)
		memset(rule, 0, sizeof(*rule));
	return found;
}

int perfring__unwind_register_at(const struct perfring_unwind *unwind, uint64_t address, uint32_t column,
				 struct perfring_unwind_rule *rule)
{
	bool found = false;
	uint64_t end;
	uint32_t i;

	for (int which = 0; which < TABLES && !found && !unwind->is_complete; which++) {
		const struct table *table = &unwind->tables[which];

		if (find(table, address, &i))
			look_into(table, i, address - start_of(table, i), column, rule, &end, &found);
	}
	return found;
}

void perfring_unwind_count(const struct perfring_unwind *unwind, struct perfring_unwind_totals *totals)
{
	totals->functions = (uint64_t)unwind->tables[EH_FRAME].count + unwind->tables[DEBUG_FRAME].count;
	totals->made = unwind->made;
	totals->rows = unwind->rows;
	totals->rules = unwind->rule_count;
	totals->row_bytes = unwind->row_bytes;
	totals->described = unwind->described;
	totals->memory = unwind->memory;
	totals->has_sorted_index = unwind->tables[EH_FRAME].sorted != NULL; /* not after make_all, which copies it */
}

int perfring_unwind_function(const struct perfring_unwind *unwind, uint64_t i, uint64_t *start, uint64_t *end)
{
	const struct table *table = &unwind->tables[EH_FRAME];
	struct perfring_cfi_function function;

	if (i >= table->count) {
		i -= table->count;
		table = &unwind->tables[DEBUG_FRAME];
	}
	if (i >= table->count)
		return 0;
	if (unwind->is_complete) {
		*start = start_of(table, (uint32_t)i);
		*end = *start + (rows_of(table, (uint32_t)i) ? length_of(rows_of(table, (uint32_t)i)) : 0);
		return *end > *start;
	}
	if (!read_function(table, (uint32_t)i, &function))
		return 0;
	*start = function.start;
	*end = function.start + function.length;
	return 1;
}
