/* shared_private.h - the owner table of a ring for shared writers: what ring.c must know of it.
 *
 * ring.c lays the tables out, snapshot.c asks how far space is claimed.
 */
#ifndef PERFRING_RB_SHARED_PRIVATE_H
#define PERFRING_RB_SHARED_PRIVATE_H

#include <pthread.h>
#include <stddef.h>

#include <perfring/access.h>
#include <perfring/ring.h>

enum {
	PERFRING_OWNER_SIZE = 256, /* bytes a slot */
	PERFRING_OWNERS_MAX = 1024,
};

/* One shared writer.  The last line is for LEASED rings: the owner's thread and its handlers write it with local
 * instructions; a sealer of the chunk sets `limit` to 0, too. */
struct perfring_owner_slot {
	pthread_mutex_t held; /* robust: held as long as the thread has the slot, marked by the kernel when it ends */
	uint32_t pid, tid;
	perfring_u64 since;      /* CLOCK_REALTIME, ns */
	perfring_u64 namespaces; /* rb/identity.h: in which pid names the process */
	perfring_u64 boot;
	perfring_u64 identity; /* of the thread that has the slot; 0: not known (yet) */

	perfring_u64 position __attribute__((__aligned__(128))); /* end of the reserved space in the chunk */
	perfring_u64 limit;                                      /* a claim that ends above it takes the slow path */
	perfring_u64 lease;                                      /* position of the chunk that limit is for, + 1 */
	uint32_t nested;                                         /* records that nested writers committed ... */
	uint32_t settled;   /* ... and how many of them are below `committed` of the chunk */
	uint8_t busy;       /* uncommitted records in the chunk */
	uint8_t mutex_size; /* of the ring's creator: another word size has another pthread_mutex_t */
};

static_assert(sizeof(struct perfring_owner_slot) == PERFRING_OWNER_SIZE, "a slot of the owner table");
static_assert(offsetof(struct perfring_owner_slot, mutex_size) == 161, "read by processes of the other word size");

struct perfring_shared;

/* Whether the first of what must hold in every state does (docs/ring.md 8), whatever others do.  For tests. */
bool perfring__shared_is_valid(const struct perfring_shared *shared);

/* The ring's `claimed`, as drawn in shared.h. */
#define SHARED_END ((UINT64_C(1) << 40) - 1)
#define SHARED_SIZE_AT 40
#define SHARED_SIZE UINT64_C(0x3fff)
#define SHARED_OWNER_AT 54

/* Where it ends; `near` is a position less than 2^39 grains away, as data_head is. */
static inline uint64_t shared_claimed_end(uint64_t claimed, uint64_t near, uint32_t grain_shift)
{
	uint64_t from = near >> grain_shift, ahead = (claimed - from) & SHARED_END;

	if (ahead > SHARED_END / 2)
		ahead -= SHARED_END + 1;
	return (from + ahead) << grain_shift;
}

/* The end of the claimed space of a ring for shared writers, if its words are plausible; else `near`. */
static inline uint64_t shared_claimed_of(const struct perfring_ring *ring, uint64_t near)
{
	const struct perfring_ring_state *state = perfring_ring_state_of(ring->page);
	uint64_t claimed = PERFRING_LOAD_ACQUIRE(&state->claimed);
	uint32_t grain = PERFRING_LOAD(&state->grain);

	return grain ? shared_claimed_end(claimed, near, (uint32_t)__builtin_ctz(grain)) : near;
}

/* Whether a ring with these flags and this size, or one that is not shared, may have this grain. */
static inline bool perfring__ring_is_grain(uint64_t flags, uint32_t grain, uint64_t size)
{
	if (flags & PERFRING_RING_STRICT)
		return grain == 8;
	return !(flags & PERFRING_RING_LEASED) || (grain >= 512 && grain <= size / 4 && !(grain & (grain - 1)));
}

/* Initializes the slots of a new ring.  Returns 0 or -errno. */
int perfring__shared_prepare(const struct perfring_ring *ring);

#endif
