/* elf_symbols.h - the symbols of an ELF object, its debug file's, or those in its .gnu_debugdata: read under the bounds
 * of limits.h.
 *
 * No server is asked, also when DEBUGINFOD_URLS is set.
 */
#ifndef PERFRING_TOOLS_ELF_SYMBOLS_H
#define PERFRING_TOOLS_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tool_elf_segment {
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
};

/* Of code.  end: start when it is not known.  name: of `length` bytes and a NUL; valid until tool_elf_close. */
struct tool_elf_symbol {
	uint64_t start;
	uint64_t end;
	const char *name;
	uint32_t length;
	bool is_sized;
	bool is_strong;
	bool is_global;
};

/* What was read of one object. */
struct tool_elf {
	struct tool_elf_segment *segments;
	uint32_t segment_count;
	void *texts[8]; /* that names point into: a table's of each of five files, of .gnu_debugdata, of the PLT */
	unsigned text_count;
	const char *exceeded; /* which bound of limits.h, the first one; NULL: none */
	int unread;           /* the first -errno of reading it or its debug file; 0: none */
	char *unread_path;    /* the debug file; NULL: the object itself */
};

/* Calls the function for each symbol.  path: beside which its debug file is looked for.  A debug file is used when its build id
 * is the object's, or, of an object without one, its checksum is right.  *left: what there is of
 * TOOL_LIMIT_ALL_BYTES, less what was read.  Returns 0, with `exceeded` or `unread` when some symbols were
 * not read; -EINVAL: it is no ELF object, or damaged; -E2BIG: a bound is exceeded and no symbol is known; -errno
 * of what reads it. */
int tool_elf_read(struct tool_elf *elf, int fd, const char *path, uint64_t *left,
		  void (*take)(void *to, const struct tool_elf_symbol *symbol), void *to);
void tool_elf_close(struct tool_elf *elf);

/* Its build id: of segments of notes, else of the section, for which no more than TOOL_LIMIT_LOOK bytes are
 * read, off *left.  id: PERFRING_BUILD_ID_SIZE bytes.  Returns its length, 0: it has none, or none within that, or is
 * no ELF object; -errno. */
int tool_elf_build_id(int fd, uint64_t *left, uint8_t *id);

#endif
