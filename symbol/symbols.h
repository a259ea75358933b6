/* symbols.h - the cache of objects, as the files of it see it.
 *
 * Private to symbols.c, frames.c, kernel.c, elf_unwind.c and stacks.c.
 */
#ifndef PERFRING_SYMBOL_SYMBOLS_H
#define PERFRING_SYMBOL_SYMBOLS_H

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <perfring/build_id.h>
#include <perfring/symbol.h>
#include "builds.h"
#include "elf_symbols.h"
#include "elf_unwind.h"
#include "places.h"

struct perfring_lines;

/* A name as it is shown, that is demangled. */
struct perfring_shown_name {
	struct perfring_shown_name *next;
	char text[];
};

/* Its place in a table.  of: the mangled name; NULL: it is free. */
struct perfring_shown_place {
	const char *of;
	const char *text;
};

/* A file, by its identity: several paths may lead to it. */
struct perfring_symbols_file {
	struct perfring_symbols_file *next; /* in the same place of the table */
	struct perfring_os_identity identity;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t id_size;
	bool is_read;
	enum perfring_symbol_why why; /* KNOWN, or why it has no symbols; valid if is_read */
	int error;
	char *path;
	int32_t pid; /* the process that sees it by the path; 0: it is here */
	struct perfring_elf_symbols symbols;
	bool has_unwind; /* its tables were looked for */
	struct perfring_elf_unwind unwind;
	/* its DWARF */
	bool has_no_lines;    /* there is none, or it cannot be read, or takes too much memory */
	uint32_t lines_large; /* how often it took too much */
	struct perfring_lines *lines;
	struct perfring_shown_place *name_table; /* of names of its DWARF, by the mangled name's address */
	uint32_t name_count, name_places;        /* a power of two */
};

struct perfring_symbol_object {
	struct perfring_symbol_object *next;
	struct perfring_symbols *symbols;
	struct perfring_symbols_file *file; /* NULL: none, or none of the recorded build */
	enum perfring_symbol_why why;
	int error;
	const char *exceeded;
	/* the kernel's own code, if only its symbols were read (kernel.c): text_end is 0 of other objects */
	uint64_t text_start, text_end;
	bool was_sought; /* by its build id */
	bool is_news;    /* perfring_symbols_get has not returned 1 for it yet */
	int32_t *pids;   /* in whose namespaces the path was tried */
	uint32_t pid_count;
	uint32_t pid_capacity;
	uint64_t hash;
	uint64_t ino; /* 0: not compared: not known, or a build id is, or it is of another machine */
	uint64_t ino_generation;
	uint32_t id_size;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	char path[];
};

enum {
	PERFRING_FILE_PLACES = 4096,
};

struct perfring_symbols {
	uint32_t flags;
	char *symfs;
	struct perfring_places places;
	struct perfring_builds builds;
	struct perfring_shown_name *shown;
	uint64_t shown_left;
	uint64_t lines_bytes; /* of sections of DWARF that is open */
	uint64_t factor;
	uint64_t bytes_left;
	unsigned file_count;
	struct perfring_symbols_file *files[PERFRING_FILE_PLACES];
	struct perfring_symbol_object **objects;
	size_t object_places; /* a power of two */
	size_t object_count;
	struct perfring_symbol_object *beyond; /* the one object that stands for all beyond the bound */
	struct perfring_symbol_object *kernels;
	struct perfring_symbol_frame *frames; /* of the last perfring_symbol_stacks */
	uint32_t frame_capacity;
};

/* Whether the file is of another build than the one recorded, whose id has `size` bytes; 0: not known, then it is not.  A file
 * without a build id is of another build if one was recorded. */
bool perfring__symbols_is_other(const struct perfring_symbols_file *file, const uint8_t *id, uint32_t size);

/* The unwind tables of an object, which are read when they are first asked for; NULL: it has none, or cannot be read.  Returns 0 or
 * -ENOMEM: then they are read again the next time.  Valid until: perfring_symbols_close. */
int perfring__symbols_unwind(struct perfring_symbols *symbols, struct perfring_symbol_object *object,
			     struct perfring_unwind **unwind);

/* The difference between an address in the mapping [start, end), which has the object's file from pgoff on, and the address in the
 * object's tables.  Mappings begin at pages: the bytes before the segment of code may be another segment's. */
uint64_t perfring__symbols_bias(const struct perfring_symbol_object *object, uint64_t start, uint64_t end,
				uint64_t pgoff);

/* As perfring_symbols_get, for the library's own use: the next perfring_symbols_get still returns 1 if something is new. */
int perfring__symbols_look_up(struct perfring_symbols *symbols, const struct perfring_symbol_file *file,
			      struct perfring_symbol_object **object);

/* Whether a descriptor's file is the one that was read: by its build id; where there is none, by its identity.  Returns 1, 0 or
 * -errno. */
int perfring__symbols_is_its(struct perfring_symbols *symbols, const struct perfring_symbols_file *file, int fd);

/* Opens a file that was read before.  Returns a descriptor or -errno; -ESTALE: where it was read there is another file by now. */
int perfring__symbols_open_again(struct perfring_symbols *symbols, const struct perfring_symbols_file *file);

/* Reads all symbols of the running kernel, of which those of the text were known; object->why and object->error if they cannot be read. */
void perfring__symbols_read_beyond(struct perfring_symbol_object *object);
void perfring__symbols_close_kernel(struct perfring_symbol_object *object);

/* Closes the DWARF of a file. */
void perfring__symbols_close_lines(struct perfring_symbols *symbols, struct perfring_symbols_file *file);

/* Frees a list of names. */
void perfring__shown_names_close(struct perfring_shown_name **names);

#endif
