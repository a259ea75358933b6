/* shared.h - many threads and processes writing into one ring, each with signal handlers; lock-free; a writer that is
 * killed or stopped in mid record harms no other's.
 *
 * Each thread opens a perfring_shared of its own on the ring (created with STRICT or LEASED), which is its slot in the
 * ring's owner table.  Reading is as ever: data_head moves over finished records only, in the order of their claims.
 *
 *   STRICT  each record is visible at its commit, unless an earlier one is still in the making.
 *   LEASED  a writer takes a chunk with a few locked instructions and fills it with unlocked ones; a chunk becomes
 *           visible when it is full, or by anyone's perfring_shared_flush.  Chunks lie in the order they were taken, so
 *           records of different writers are out of order by at most a chunk each: readers sort by time.
 *
 * ---- the marks ----
 *
 * A table behind the data holds one 64-bit mark for each `grain` bytes of ring (STRICT: 8; LEASED: a chunk), for the
 * place at which a room begins:
 *
 *     bits  0..13  size of the room, in grains
 *     bits 14..23  owner: slot in the owner table
 *     bits 24..26  turn: counts who took the room over
 *     bit  27      done
 *     bit  28      a sample in it is the one that wakeup_events waits for
 *     bits 29..63  lap: position / ring size + 1, modulo 2^35.  A mark of another lap is stale
 *
 * The ring's `claimed` is the room that was given out last: bits 0..39 where it ends, in grains, modulo 2^40; 40..53 its
 * size, in grains; 54..63 its owner.
 *
 * claim    by one swap: `claimed` names the room that was given out last (where it ends, its size, its owner), so that
 *          these are known from this instant on, whatever becomes of the claimer.  Before it, the claimer gives that last
 *          room its mark {lap, owner, size}, if it is still in the making: a room that another follows has a mark.  Two
 *          that claim at the same moment: the one that was late pauses for some microseconds, so that the cache lines
 *          that both need do not go to and fro for each record.  It holds nothing meanwhile.
 * commit   the first in the line (data_head is where its room begins) moves data_head over it: alone, a record needs two
 *          locked instructions and no mark.  Any other sets its mark to done (an exchange).  Then both look again, and
 *          publish: from data_head over all marks that are done, swap data_head, and look again.  Of two that finish
 *          together one sees the other: each of these accesses is sequentially consistent.
 * publish  is anyone's: nobody waits for the one that was first.  A room not done holds back what follows, until it is
 *          done or its owner is dead.
 * recover  a mark not done at data_head whose owner is dead (its slot's robust mutex says so: the kernel marks it when
 *          a thread ends, of whatever cause): take the room over (swap the owner in the mark for oneself), write a filler
 *          into it, count it, commit it.  A recoverer that dies is recovered from alike.  An owner that is only stopped
 *          (SIGSTOP, a debugger) is never overtaken: it could still write.  Until it goes on the others write until the
 *          ring is full, and are then refused and counted; nobody spins for it.
 *
 * LEASED: a chunk is a room.  Behind the marks lies a table of as many positions: how far its owner has finished a chunk,
 * which publish and recover go by while it is not done.  A record larger than a chunk, and one of a handler for which the
 * interrupted record's chunk has no room, gets a room of its own of as many chunks as it needs.
 *
 * An idle chunk is sealed by who flushes or finds the ring full; not by a process that is refused membarrier(2) (seccomp;
 * for chunks of other processes also a kernel with nohz_full CPUs): what is in such a chunk is visible when its owner fills,
 * flushes or closes it, and holds back what follows until then.
 *
 * An owner that ended with the ring unmapped, or with the machine (a ring in a file), has no mark of the kernel's: open,
 * flush, and reserve when the ring is full find it by its start time in /proc and by the boot's id, at most every 10 ms.
 * In another pid or time namespace only the boot's id shows it.
 *
 * Bounds, stated: a claim is retried only when another claimed (lock-free); recovery is one walk over the unpublished
 * rooms; it is tried by every reserve that finds the ring full, and by flush and open.  A reserve that finds it full behind
 * an idle chunk of another process seals that, once, which takes 8 to 20 ms (of this process: 6 to 14 us).  If every writer is dead, someone
 * must open to recover.
 *
 * What a kill costs: in a STRICT ring the records in the making, in a LEASED one also those that handlers had committed
 * within one of them, or within a flush or a change of chunks.  Each counts as lost, and is in the next LOST record.
 * Exceptions: one killed between two words of a count leaves that one wrong (a recoverer: too low by what it had taken
 * over; an owner of a chunk: too high by up to two as it commits one of records that lie within one another, too low by
 * what handlers had committed in a chunk that it was just taking), and refusals that it was just telling in a LOST record
 * are told by no other (perfring_shared_lost has them).  One killed after it has moved data_head, and before it wakes the
 * reader, leaves a crossing of the watermark to the next that publishes; a wakeup by wakeup_events is told by no other.
 * To jump out of a record (longjmp, an exception) is to stop in it until the thread ends.
 *
 * A reader that trusts its writers less than this uses PERFRING_READER_COPY.  A writer trusts those it shares the memory
 * with: a process that scribbles over the marks or the owner table can spoil the others' records and keep them from
 * publishing, never make them write outside the ring; but the C library links a thread's robust mutexes by pointers in
 * them, so one that scribbles over the owner table can make open and close write anywhere.
 *
 *              reserve commit discard write flush | close
 *   thread                    yes                 |  yes
 *   handler                   yes                 |  no
 *   others          no (they open their own)      |  no
 *
 * WAIT waits in no record of this thread only: a handler that interrupted one, from before its room was claimed to after
 * it was published, is refused at once when the ring is full.
 *
 * fork: as in writer.h: a child's calls do nothing.  It opens, after attaching the ring by its fd, its own.  The mapping
 * stays closed to children after perfring_shared_close too: other threads may have it open.  So perfring_shared_lost,
 * _abandoned and _owner_at of the parent's ring fault in a child.
 */
#ifndef PERFRING_SHARED_H
#define PERFRING_SHARED_H

#include <perfring/page.h>
#include <perfring/ring.h>
#include <perfring/writer.h>

PERFRING_BEGIN

struct perfring_shared;

/* What the owner table says of one writer, for people: who died, who is stopped. */
struct perfring_owner {
	uint32_t pid, tid; /* as its own pid namespace sees them */
	bool lives;
	uint8_t padding[7];
};

/* Takes a slot.  options as in writer.h: policy DROP, or WAIT.  Returns 0; -EINVAL (no STRICT or LEASED ring of ours, or
 * read-only, or made by a process of the other word size, whose mutexes are others); -EUSERS (every slot is taken by a
 * thread that lives); -ENOMEM.  Slots of the dead are recovered and taken.  Context: a thread, not a handler. */
PERFRING_API int perfring_shared_open(struct perfring_shared **shared, struct perfring_ring *ring,
				      const struct perfring_writer_options *options);

/* Seals and publishes what is left, and gives the slot back.  From the thread that opened it. */
PERFRING_API void perfring_shared_close(struct perfring_shared *shared);

/* As in writer.h: room for one record, or NULL, counted.  Claims are closed in the reverse order of reserving. */
PERFRING_API void *perfring_shared_reserve(struct perfring_shared *shared, struct perfring_output *output,
					   uint64_t size, struct perfring_claim *claim);
PERFRING_API void perfring_shared_commit(struct perfring_shared *shared, const struct perfring_claim *claim);
/* Its room is free again where nothing follows it (LEASED), else a filler. */
PERFRING_API void perfring_shared_discard(struct perfring_shared *shared, const struct perfring_claim *claim);
PERFRING_API bool perfring_shared_write(struct perfring_shared *shared, struct perfring_output *output,
					const void *record, uint64_t size);

/* Makes everything that is finished visible: publishes, seals the half-filled chunks of other writers that are in no
 * record now (LEASED; for the sealer 6 to 14 us of membarrier, or 8 to 20 ms when one of them is of another process;
 * nothing for them), recovers from the dead.  Wakes the reader if anything came of it. */
PERFRING_API void perfring_shared_flush(struct perfring_shared *shared);

/* Of this ring: refused or lost with a writer since it was made (those in no LOST record yet are in it), and rooms that
 * writers died in mid record in.  Not in a fork's child (above). */
PERFRING_API uint64_t perfring_shared_lost(const struct perfring_ring *ring);
PERFRING_API uint64_t perfring_shared_abandoned(const struct perfring_ring *ring);

/* The i-th slot, from 0.  Returns 1, 0 for a free one, -EINVAL behind the last or for a ring that has none.  Not in a
 * fork's child (above). */
PERFRING_API int perfring_shared_owner_at(const struct perfring_ring *ring, uint32_t i, struct perfring_owner *owner);

PERFRING_END

#endif
