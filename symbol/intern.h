/* intern.h - one copy of equal bytes.
 *
 * maps.c, jit.c and profile/profile.c keep names by it: equal ones have one pointer.  Bytes live until close.  One thread.
 */
#ifndef PERFRING_SYMBOL_INTERN_H
#define PERFRING_SYMBOL_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct perfring_interned;

/* All 0 but `max` (bytes) is an empty one. */
struct perfring_intern {
	struct perfring_interned **slots; /* open addressing, at most half full */
	uint64_t slot_count;              /* 0, or a power of two */
	uint64_t count;
	uint64_t factor;
	uint64_t bytes;   /* of copies and slots */
	uint64_t max;     /* of `bytes`; one growth of the slots may exceed it */
	uint64_t refused; /* how many had no space below `max` */
};

/* The one copy of these bytes, aligned to 8 and followed by a NUL.  *copy is NULL when there is no space below `max`.
 * Returns 0 or -ENOMEM. */
int perfring__intern(struct perfring_intern *intern, const void *bytes, size_t size, const void **copy);
void perfring__intern_close(struct perfring_intern *intern);

#endif
