/* snapshot.h - a copy of a ring's records at one moment, which does not disturb the writer.
 *
 * For rings that overwrite, of the kernel and of perfring: live, paused, or after the writer's death.  Of other rings it copies
 * the unread records.  Backward rings (write_backward) should be preferred:
 *
 *     address     -claimed      -published = data_head                        -claimed + size
 *                 | being       | newest record | ... | oldest whole record |  being overwritten
 *                 |   written   |<---------- returned by a snapshot ------->|
 *
 * The order of accesses that excludes torn records; its partner is in rb/writer.c:
 *
 *     writer                                          snapshot
 *       store barrier                                   published := data_head (acquire)
 *       claimed := position, never back                 claimed (acquire); at most a lap ahead of data_head
 *       store barrier                                   copy the data
 *       write the record                                load barrier
 *       data_head := -position (release)                claimed; records above -claimed + size are dropped
 *
 * A kernel ring has no `claimed`: pause its output first (PERF_EVENT_IOC_PAUSE_OUTPUT; docs/abi.md 7.8).
 *
 * The caller owns the ring (it must stay open during perfring_snapshot_take only) and the struct; the copy is freed by close.
 * Context: take and close allocate: any thread, not signal handlers.  The other functions make no system call and use the copy
 * alone: one thread at a time for each snapshot.
 *
 * A forward ring that overwrites ends with its newest record.  A writer of perfring reports where the oldest begins
 * (perfring_ring_state.oldest).  The kernel does not: after its first lap the snapshot takes the longest chain of headers that ends at
 * data_head (docs/ring.md 5).  The bytes that are left of a record whose beginning was overwritten may look like whole records: a
 * snapshot may return them, but none at or after `certain`.
 */
#ifndef PERFRING_SNAPSHOT_H
#define PERFRING_SNAPSHOT_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

/* Filled by take, all 0 after close.  Positions are free-running bytes, as in perfring_ring_state; offsets count from data[0].
 * Invariant: oldest <= published <= claimed <= oldest + size, as distances (a hostile writer's positions wrap around). */
struct perfring_snapshot {
	unsigned char *data; /* the copy; records are returned from it */
	uint64_t size;       /* of the ring */
	uint64_t from;       /* free-running address of data[0]; data_head of a backward ring */
	uint64_t published;  /* records below this position are returned */
	uint64_t oldest;     /* records from this position on are whole */
	uint64_t claimed;    /* == published if no record was being written, or the writer went on meanwhile */
	uint64_t *places;    /* offsets of whole records in `data`, newest first, without fillers */
	uint64_t count;
	uint64_t oldest_first; /* records returned by each of the two walks */
	uint64_t newest_first;
	struct perfring_fault
		fault;  /* the first damaged record, an address like `from`; `what` NULL: no damage */
	uint64_t flags; /* of the ring; BACKWARD as found */
	/* Records from this position on were written as records.  `oldest`: all are, in every ring but a kernel's forward ring
	 * that overwrites, after its first lap.  There it is at least 64 KiB after the oldest byte; `published`: none is known to be. */
	uint64_t certain;
	uint64_t reserved[3];
};

/* Copies the ring and finds its whole records.  *snapshot is overwritten: close an earlier one first.  Memory: the ring's size, 8
 * bytes for each record, and during the call half the ring's size for a kernel's forward ring.  Records that the writer
 * overwrites meanwhile are left out; if it laps the copy, the copy is made again, up to `tries` times (0: 16).  Of a ring that
 * does not overwrite the unread records are copied, except those that its reader returns meanwhile.
 *
 * Returns 0; -EINVAL (no ring; a kernel ring called BACKWARD that is not); -ENOMEM; -EAGAIN (lapped each time: pause the output);
 * -EBADMSG with `fault` (impossible positions in the control page).  After an error nothing is to be freed.  A damaged record is
 * no error: the walk ends there, with `fault`, and records nearer to data_head (of a forward ring: to data_tail or `oldest`) are
 * returned; of a kernel's forward ring that overwrites those after it, and `certain` is `published`. */
PERFRING_API int perfring_snapshot_take(struct perfring_snapshot *snapshot, const struct perfring_ring *ring,
					unsigned tries);

/* Frees the copy.  NULL, and a snapshot that is all 0, are allowed. */
PERFRING_API void perfring_snapshot_close(struct perfring_snapshot *snapshot);

/* The next whole record, from old to new, without fillers.  Returns 1; 0 after the last, with *record NULL; -EINVAL (snapshot is
 * NULL).  The record is aligned to 8, and valid until close. */
PERFRING_API int perfring_snapshot_next(struct perfring_snapshot *snapshot, const struct perf_event_header **record);

/* The same from new to old, the order of kernel rings.  The two walks are independent. */
PERFRING_API int perfring_snapshot_previous(struct perfring_snapshot *snapshot,
					    const struct perf_event_header **record);

/* Reservations that were claimed and not published, newest first.  *position: initially `claimed`; moves down to `published`.
 * *record: a reservation with a plausible header; its other bytes may be anything, and with type PERFRING_FILLER_TYPE its header
 * is unwritten too.  NULL: *size bytes without a plausible header, as always in a forward ring.  Returns 1; 0 after the last, and
 * for a *position outside; -EINVAL (snapshot is NULL).  Valid until close. */
PERFRING_API int perfring_snapshot_unfinished(const struct perfring_snapshot *snapshot, uint64_t *position,
					      const struct perf_event_header **record, uint64_t *size);

PERFRING_END

#endif
