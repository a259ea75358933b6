/* symbol_table.h - symbols sorted by address, one for each address.
 *
 * elf_symbols.c, plt.c and kernel.c fill tables, symbols.c searches.  Names point into memory of the object's.
 *
 * Of several symbols at one address the order of preference is: with a size, strong, global, without leading underscores, long,
 * as perf has it: of names as they are shown; then the first one that was added.
 */
#ifndef PERFRING_SYMBOL_SYMBOL_TABLE_H
#define PERFRING_SYMBOL_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* name: not owned. */
struct perfring_symbol_entry {
	uint64_t start;
	uint64_t end;
	const char *name;
	uint32_t order; /* of the additions */
	uint8_t flags;
	bool is_shown;   /* the name is what is shown of it: it was demangled, or need not be */
	bool has_module; /* after the name and a NUL stands "[module]" */
};

struct perfring_symbol_table {
	struct perfring_symbol_entry *entries;
	uint32_t count;
	uint32_t capacity;
};

/* What is preferred: the larger number. */
enum {
	PERFRING_ENTRY_GLOBAL = 1,
	PERFRING_ENTRY_STRONG = 2,
	PERFRING_ENTRY_SIZED = 4,
};

/* flags: PERFRING_ENTRY_.  end: start when it is not known; such a symbol ends where the next one begins, the last one a page
 * after its own, as in perf.  Returns 0 or -ENOMEM. */
int perfring_symbol_table_add(struct perfring_symbol_table *table, uint64_t start, uint64_t end, const char *name,
			      unsigned flags);

/* After the last addition.  demangles: names are shown demangled. */
void perfring_symbol_table_sort(struct perfring_symbol_table *table, bool demangles);

/* The same of a table in which the last addition of an address is preferred. */
void perfring_symbol_table_sort_last(struct perfring_symbol_table *table);

/* The symbol at an address, or NULL. */
struct perfring_symbol_entry *perfring_symbol_table_find(const struct perfring_symbol_table *table, uint64_t address);

void perfring_symbol_table_close(struct perfring_symbol_table *table);

#endif
