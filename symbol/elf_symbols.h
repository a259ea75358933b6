/* elf_symbols.h - the symbols of code of an ELF object: its own, its debug file's, or those in its .gnu_debugdata, and the
 * entries of its PLT.
 *
 * Read under the bounds of limits.h.
 *
 * Results are the owner's (struct perfring_elf_symbols) until perfring__elf_symbols_close.  One thread.
 */
#ifndef PERFRING_SYMBOL_ELF_SYMBOLS_H
#define PERFRING_SYMBOL_ELF_SYMBOLS_H

#include <sys/stat.h>
#include "elf_image.h"
#include "os/file_identity.h"
#include "places.h"
#include "symbol_table.h"

/* What was read of one object. */
struct perfring_elf_symbols {
	struct perfring_symbol_table table;
	struct perfring_elf_segment *segments;
	uint32_t segment_count;
	/* Memory that names point into: strings of the object, of up to seven debug files, of .gnu_debugdata, of the PLT. */
	void *texts[10];
	unsigned text_count;
	const char *reference; /* set before: a symbol that is looked for by its name */
	uint64_t reference_address;
	bool has_reference;
	bool has_exports_only; /* no .symtab was found */
	char *debug_path;      /* the file that .symtab was read from; NULL: the object itself has all that is known */
	struct perfring_os_identity debug_file;
	const char *exceeded; /* which bound of limits.h, the first one; NULL: none */
	int error;            /* the first -errno of reading it or its debug file; 0: none */
	char *error_path;     /* the debug file; NULL: the object itself */
};

/* A reading in progress. */
struct perfring_elf_reading {
	struct perfring_elf_budget budget;
	uint64_t names_left;
	uint32_t symbols_left;
	const struct perfring_places *places;
	const char *path; /* of the object */
	struct perfring_elf_symbols *symbols;
};

/* Reads it.  path: beside which its debug file is looked for, in those places.  demangles: names are shown demangled.  A debug
 * file is used when its build id is the object's, or, of an object without one, its checksum is right.  *left: what there is of
 * PERFRING_LIMIT_ALL_BYTES, less what was read.  Returns 0, with `exceeded` or `error` when some symbols were not read; -EINVAL:
 * it is no ELF object, or damaged; -E2BIG: a bound is exceeded and no symbol is known; -ENOMEM; -errno of what reads it.  Close
 * it in any case. */
int perfring__elf_symbols_read(struct perfring_elf_symbols *symbols, int fd, const char *path,
			       const struct perfring_places *places, bool demangles, uint64_t *left);
void perfring__elf_symbols_close(struct perfring_elf_symbols *symbols);

/* Reads the segments only, without symbols: for unwinding. */
int perfring__elf_symbols_read_segments(struct perfring_elf_symbols *symbols, int fd, uint64_t *left);

/* Mappings have file offsets, symbols have addresses: the program headers relate the two.  Returns the offset where they
 * do not say. */
uint64_t perfring__elf_symbols_address(const struct perfring_elf_symbols *symbols, uint64_t offset);

/* ---- parts of it ---- */

/* Reads a symbol table, whose strings are kept. */
int perfring__elf_table_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
			     const struct perfring_elf_section *table);

/* Adds a symbol for each entry of the PLT. */
int perfring__elf_stubs_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image);

/* The name at this offset of the strings, or NULL: none, or a bound is exceeded. */
const char *perfring__elf_name(struct perfring_elf_reading *reading, const char *strings, uint64_t size, uint64_t at,
			       uint32_t *length);

/* Keeps memory that names point into until close. */
void perfring__elf_keep(struct perfring_elf_reading *reading, void *text);

/* Adds the symbols of .gnu_debugdata; without liblzma none.  Returns whether there were any. */
bool perfring__elf_debugdata_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image);

/* Symbols of the object's debug file: where its system keeps it; and, of a build id, in caches and of servers.  Returns whether there
 * is one. */
bool perfring__elf_debug_file_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image);
bool perfring__elf_cached_debug_file_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image);

#endif
