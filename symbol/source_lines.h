/* source_lines.h - lines of sources and inlined functions of an object, from its DWARF.
 *
 * frames.c opens one for each file, closes it when its memory exceeds a bound, and opens it again.  One thread.
 *
 * A unit's functions are indexed when an address of it is first asked for, a function's inlined calls likewise.
 */
#ifndef PERFRING_SYMBOL_SOURCE_LINES_H
#define PERFRING_SYMBOL_SOURCE_LINES_H

#include <stdint.h>
#include "places.h"

struct perfring_lines;

/* One function at an address.  Texts are valid until the next find of any address, or close. */
struct perfring_line_frame {
	const char *function; /* as the linker names it, or as the source does; NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
};

/* Reads the DWARF of an object's or debug file, of which the descriptor stays the caller's and may be closed then.  A file with which
 * it shares entries (dwz) is looked for by its build id in those places.  name: of the object, in words.  Returns 0; -ENODATA (it has
 * none, or shares it with a file that is not found), -E2BIG (it is more than a bound), -EOPNOTSUPP (it is packed by what this
 * library is built without), -ENOMEM, -errno. */
int perfring_lines_open(struct perfring_lines **lines, int fd, const struct perfring_places *places, const char *name);
void perfring_lines_close(struct perfring_lines *lines);

/* The functions at an address, innermost first: the last is the one that was not inlined.  Returns how many there are, at most
 * `most`; 0: nothing is known of the address; -ENOMEM. */
int perfring_lines_find(struct perfring_lines *lines, uint64_t address, struct perfring_line_frame *frames,
			uint32_t most);

/* Bytes of memory that it holds for what is made of the sections, and for the sections. */
uint64_t perfring_lines_memory(const struct perfring_lines *lines);
uint64_t perfring_lines_size(const struct perfring_lines *lines);

/* Which bound of limits.h left lines of sources out, the last one; NULL: none. */
const char *perfring_lines_exceeded(const struct perfring_lines *lines);

#endif
