/* source_lines.h - lines of sources and inlined functions of an object, from its DWARF.
 *
 * frames.c opens one for each file, closes it when its memory exceeds a bound, and opens it again.  One thread.
 *
 * A unit's functions are indexed when an address of it is first asked for, a function's inlined calls likewise.
 */
#ifndef PERFRING_SYMBOL_SOURCE_LINES_H
#define PERFRING_SYMBOL_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "places.h"

struct perfring_lines;

/* One function at an address.  Texts are valid until the next find of any address, or close. */
struct perfring_line_frame {
	const char *function; /* as the linker names it, or as the source does, or its place; NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
};

/* Reads the DWARF of an object or debug file.  fd: stays the caller's, who may close it afterwards.  A file with which it shares
 * entries (dwz) is looked for in `places` by its build id.  name: the object's, for the progress of a download.  Returns 0;
 * -ENODATA (it has no DWARF, or shares it with a file that is not found), -E2BIG (*exceeded names the bound), -EOPNOTSUPP (it is packed,
 * and this library is built without zlib or zstd), -ENOMEM, -errno. */
int perfring__lines_open(struct perfring_lines **lines, int fd, const struct perfring_places *places, const char *name,
			 const char **exceeded);
void perfring__lines_close(struct perfring_lines *lines);

/* The functions at an address, innermost first: the last is the one that was not inlined.  Returns how many there are, at most
 * `most`; 0: nothing is known of the address; -ENOMEM. */
int perfring__lines_find(struct perfring_lines *lines, uint64_t address, struct perfring_line_frame *frames,
			 uint32_t most);

/* Lets go what takes most memory of a unit: its rows and calls, which are made again when an address of it is asked for. */
void perfring__lines_rest(struct perfring_lines *lines, uint32_t unit);

/* Memory for a text, which stays until close; NULL: there is none, or too much is used. */
char *perfring__lines_text(struct perfring_lines *lines, size_t size);

/* Whether a function's name is the place of a text that was not read. */
bool perfring__lines_is_place(const struct perfring_lines *lines, const char *name);

/* Reads the texts of places, in ascending order: many together take less time.  take: is called with each place and its text, which is valid
 * during the call; NULL: it is not known. */
void perfring__lines_read_places(struct perfring_lines *lines, const char *const *places, uint32_t count,
				 void (*take)(void *to, const char *place, const char *text), void *to);

/* Looks at the file again, whether it was written, before more of it is read. */
void perfring__lines_renew(struct perfring_lines *lines);

/* The number of the unit at an address: addresses of one are found faster one after another.  UINT32_MAX: none. */
uint32_t perfring__lines_unit(const struct perfring_lines *lines, uint64_t address);

/* Bytes of memory that it holds: for what was computed from the sections (memory), and for the sections (size), with those that are
 * left in the file. */
uint64_t perfring__lines_memory(const struct perfring_lines *lines);
uint64_t perfring__lines_size(const struct perfring_lines *lines);

/* The last bound of limits.h that was exceeded, so that lines are missing, as a text; NULL: none. */
const char *perfring__lines_exceeded(const struct perfring_lines *lines);

#endif
