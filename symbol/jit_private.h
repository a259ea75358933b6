/* jit_private.h - code by its addresses, which maps (perfmap.c) and dumps (jitdump.c) fill.
 *
 * Private to jit.c, jitdump.c and perfmap.c.
 */
#ifndef PERFRING_SYMBOL_JIT_PRIVATE_H
#define PERFRING_SYMBOL_JIT_PRIVATE_H

#include <perfring/jit.h>

#include "intern.h"
#include "intervals.h"

enum {
	PERFRING_JIT_WINDOW = 1 << 16, /* bytes of the dump in memory */
};

/* The object of a mapping is an interned one of that name; pgoff is 0 at the start of the code; pid and prot have the place
 * of its DEBUG_INFO record in the dump, low and high half. */
struct perfring_jit {
	struct perfring_intervals intervals;
	struct perfring_interval *codes;
	struct perfring_intern names;
	struct perfring_jit_counts counts;
	/* of a dump */
	int fd; /* -1: it is a map */
	bool is_foreign;
	bool is_over; /* CLOSE was read, or something is damaged */
	uint64_t at;  /* of the next record */
	uint64_t file_size;
	uint64_t debug_at; /* of the DEBUG_INFO before the next LOAD; 0: none */
	uint64_t debug_of; /* the address of its code */
	uint64_t window_at;
	uint64_t window_size;
	unsigned char *window;
};

int perfring__jit_make(struct perfring_jit **jit);

/* The code there has changed, and has no name any more.  Returns 0 or -ENOMEM. */
int perfring__jit_forget(struct perfring_jit *jit, uint64_t start, uint64_t end);

/* Puts a piece of code, which replaces what it overlaps.  Without an object, or beyond the bound of pieces, it has no name, and
 * what it overlaps is forgotten.  Returns 0 or -ENOMEM. */
int perfring__jit_put_code(struct perfring_jit *jit, const struct perfring_mapping *mapping);

/* The same, with a name of `name_size` bytes, which is copied. */
int perfring__jit_put(struct perfring_jit *jit, uint64_t start, uint64_t size, const char *name, size_t name_size,
		      uint64_t debug);

static inline uint64_t perfring__jit_end(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

#endif
