/* symbol_table.h - symbols sorted by address, one for each address.
 *
 * elf_symbols.c, plt.c and kernel.c fill tables, symbols.c searches.  Names point into memory of the object's.
 *
 * Of several symbols at one address one is kept, by perf's preferences in this order: a symbol with a size, a strong one, a global
 * one, fewer leading underscores, a longer name (as it is shown), the first one that was added.
 */
#ifndef PERFRING_SYMBOL_SYMBOL_TABLE_H
#define PERFRING_SYMBOL_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct perfring_symbol_entry {
	uint64_t start;
	uint64_t end;
	const char *name;
	uint8_t flags;
	bool is_shown;   /* the name is as it is shown: demangled, or not mangled */
	bool has_module; /* after the name and a NUL stands "[module]" */
};

struct perfring_symbol_table {
	struct perfring_symbol_entry *entries;
	uint32_t count;
	uint32_t capacity;
};

/* Flags of an entry; at one address the larger number is preferred. */
enum {
	PERFRING_ENTRY_GLOBAL = 1,
	PERFRING_ENTRY_STRONG = 2,
	PERFRING_ENTRY_SIZED = 4,
};

/* Adds a symbol.  name: is not copied.  flags: PERFRING_ENTRY_.  end: start if it is not known: then the symbol ends where the
 * next one begins, the last one at the end of the page after its own, as in perf.  Returns 0 or -ENOMEM. */
int perfring__symbol_table_add(struct perfring_symbol_table *table, uint64_t start, uint64_t end, const char *name,
			       unsigned flags);

/* Sorts the table, once, after the last addition.  demangles: names are shown demangled.  Returns 0 or -ENOMEM. */
int perfring__symbol_table_sort(struct perfring_symbol_table *table, bool demangles);

/* The same, but at one address the last addition is preferred. */
int perfring__symbol_table_sort_last(struct perfring_symbol_table *table);

/* The symbol at an address, or NULL. */
struct perfring_symbol_entry *perfring__symbol_table_find(const struct perfring_symbol_table *table, uint64_t address);

void perfring__symbol_table_close(struct perfring_symbol_table *table);

#endif
