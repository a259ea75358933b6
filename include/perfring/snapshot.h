/* snapshot.h - what a ring holds at one moment, without disturbing it: rings that overwrite, the kernel's
 * write_backward and our own, live, paused, or after the writer's death; of a ring that stops, what is unread.
 *
 *     address     -claimed      -published = data_head                        -claimed + size
 *                 | being       | newest record | ... | oldest whole record |  overwritten by what is being written
 *                 |   written   |<---------- what a snapshot hands out ---->|
 *
 * A snapshot is a copy.  The order that makes a torn record impossible, with the partner in rb/writer.c:
 *
 *     writer                                          snapshot
 *       store barrier                                   published := data_head (acquire)
 *       claimed := position, never back                 claimed (acquire); not a lap ahead while data_head stands
 *       store barrier                                   copy the data
 *       write the record                                load barrier
 *       data_head := -position (release)                claimed; what lies above -claimed + size is not believed
 *
 * A kernel ring has no `claimed`: pause its output first (PERF_EVENT_IOC_PAUSE_OUTPUT; docs/abi.md 7.8).
 */
#ifndef PERFRING_SNAPSHOT_H
#define PERFRING_SNAPSHOT_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

/* Nothing in it is shared: a snapshot belongs to who took it.
 * Invariant: oldest <= published <= claimed <= oldest + size. */
struct perfring_snapshot {
	unsigned char *data; /* the copy; what is handed out lies here */
	uint64_t size;       /* of the ring */
	uint64_t from;       /* address in the ring, free-running, of data[0]; data_head in a ring that falls */
	uint64_t published;  /* records below this position, counted up, are handed out */
	uint64_t oldest;     /* from this position on they are whole */
	uint64_t claimed;    /* == published when nothing was being written, or the writer went on meanwhile */
	uint64_t *places;    /* of whole records in `data`, newest first; fillers are not among them */
	uint64_t count;
	uint64_t oldest_first; /* how many each of the two walks has handed out */
	uint64_t newest_first;
	struct perfring_fault
		fault;  /* where the records stop making sense, an address like `from`; `what` NULL: nowhere */
	uint64_t flags; /* of the ring */
	uint64_t reserved[4];
};

/* Copies the ring and finds the whole records in it.  A writer that goes on meanwhile takes away the oldest, never a
 * byte of what is handed out; one that laps the copy makes it begin again, at most `tries` times (0: 16).  A ring that
 * stops gives what is unread; what its reader returns meanwhile is left out.  Returns 0; -EINVAL (no ring, or one that
 * overwrites and does not fall); -ENOMEM; -EAGAIN (lapped each time: pause the output); -EBADMSG with `fault` (the
 * control page's positions cannot be right).  A record that makes no sense ends the walk there, with `fault`: that is
 * no error, and what is nearer to data_head (of a ring that does not fall: to data_tail) is handed out.  Context: any
 * thread. */
PERFRING_API int perfring_snapshot_take(struct perfring_snapshot *snapshot, const struct perfring_ring *ring,
					unsigned tries);
PERFRING_API void perfring_snapshot_close(struct perfring_snapshot *snapshot);

/* The next whole record.  Returns 1, or 0 behind the last.  Valid until close. */
PERFRING_API int perfring_snapshot_next(struct perfring_snapshot *snapshot, const struct perf_event_header **record);
/* The same from new to old, as the kernel's rings are read.  The two walks are independent. */
PERFRING_API int perfring_snapshot_previous(struct perfring_snapshot *snapshot,
					    const struct perf_event_header **record);

/* What was being written: rooms that were claimed and not published, newest first, as far as their headers can be
 * believed.  *position is `claimed` before the first call, and moves down to `published`.  `record` is a room whose
 * type and size were there, the rest of it may be anything (type PERFRING_FILLER_TYPE: not even its header was
 * encoded); NULL: `size` bytes in which no header makes sense (always so in a ring that does not fall).  Returns 1,
 * or 0. */
PERFRING_API int perfring_snapshot_unfinished(const struct perfring_snapshot *snapshot, uint64_t *position,
					      const struct perf_event_header **record, uint64_t *size);

PERFRING_END

#endif
