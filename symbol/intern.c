/* intern.c - one copy of equal bytes.
 *
 * A hash table of pointers into blocks that never move.  The hash factor is random, because names are foreign.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "os/hash.h"

struct perfring_interned {
	uint64_t hash;
	uint64_t size;
	uint64_t bytes[]; /* size, and a NUL */
};

/* Where the entry is, or would be. */
static struct perfring_interned **slot_of(const struct perfring_intern *intern, uint64_t hash, const void *bytes,
					  size_t size)
{
	uint64_t mask = intern->slot_count - 1, i = hash >> __builtin_clzll(mask);
	struct perfring_interned *at;

	for (; (at = intern->slots[i]); i = (i + 1) & mask)
		if (at->hash == hash && at->size == size && !memcmp(at->bytes, bytes, size))
			break;
	return &intern->slots[i];
}

static int grow(struct perfring_intern *intern)
{
	uint64_t old_count = intern->slot_count;
	struct perfring_interned **old = intern->slots, *one;
	struct perfring_interned **slots =
		calloc(old_count ? (size_t)old_count * 2 : 64, sizeof(struct perfring_interned *));

	if (!slots)
		return -ENOMEM;
	if (!intern->factor)
		intern->factor = perfring__os_hash_factor(intern);
	intern->slots = slots;
	intern->slot_count = old_count ? old_count * 2 : 64;
	intern->bytes += (intern->slot_count - old_count) * sizeof(struct perfring_interned *);
	for (uint64_t i = 0; i < old_count; i++) {
		one = old[i];
		if (one)
			*slot_of(intern, one->hash, one->bytes, (size_t)one->size) = one;
	}
	free(old);
	return 0;
}

int perfring__intern(struct perfring_intern *intern, const void *bytes, size_t size, const void **copy)
{
	struct perfring_interned **slot, *one;
	size_t whole = sizeof(*one) + (size / 8 + 1) * 8;
	uint64_t hash;

	*copy = NULL;
	if (intern->count * 2 >= intern->slot_count && grow(intern))
		return -ENOMEM;
	hash = perfring__os_hash(intern->factor, bytes, size);
	slot = slot_of(intern, hash, bytes, size);
	if (!*slot) {
		if (whole > intern->max || intern->bytes > intern->max - whole) {
			intern->refused++;
			return 0;
		}
		one = calloc(1, whole);
		if (!one)
			return -ENOMEM;
		one->hash = hash;
		one->size = size;
		memcpy(one->bytes, bytes, size);
		*slot = one;
		intern->count++;
		intern->bytes += whole;
	}
	*copy = (*slot)->bytes;
	return 0;
}

void perfring__intern_close(struct perfring_intern *intern)
{
	for (uint64_t i = 0; i < intern->slot_count; i++)
		free(intern->slots[i]);
	free(intern->slots);
}
