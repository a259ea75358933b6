/* shared.h - many threads and processes write into one ring, each with its signal handlers; lock-free; a writer that is
 * killed or stopped between reserve and commit damages no record of others.
 *
 * Each thread opens its own perfring_shared on the ring (created with STRICT or LEASED), which takes one slot in the owner
 * table.  Readers are as for any ring: data_head covers committed records only, in the order of their claims.
 *
 *   STRICT  Each record is visible at its commit, unless an earlier one is uncommitted.
 *   LEASED  A writer takes a chunk by a few locked instructions and fills it without any.  A chunk becomes visible when it is
 *           full, or by anyone's perfring_shared_flush.  Records of different writers can be out of order by one chunk each:
 *           readers sort by time.
 *
 * docs/ring.md has the protocol with its states and transitions.  Its parts:
 *
 * marks    A table after the data, one 64-bit mark for each `grain` bytes of ring (STRICT: 8; LEASED: a chunk).  The mark at a
 *          reservation's first byte:
 *
 *              bits  0..13  size, in grains
 *              bits 14..23  owner: slot in the owner table
 *              bits 24..26  turn: counts take-overs
 *              bit  27      done
 *              bit  28      its sample completes wakeup_events: the commit wakes the reader
 *              bits 29..63  lap: position / ring size + 1, modulo 2^35.  A mark of another lap is stale
 *
 *          The ring's `claimed` is the last reservation: bits 0..39 its end, in grains, modulo 2^40; 40..53 its size, in grains;
 *          54..63 its owner.
 *
 * claim    One compare-exchange of `claimed`, so that the last reservation is known from this instant on, whatever happens to its
 *          owner.  Before it, the claimer writes the previous reservation's mark {lap, owner, size} if that is uncommitted: each
 *          reservation that another one follows has a mark.  Of two that claim at the same time, the later one pauses for some
 *          microseconds, so that the cache lines do not move between CPUs at each record; while it pauses it has claimed
 *          nothing.
 * commit   If data_head is at the reservation's start, commit moves data_head over it: without other writers a record takes two
 *          locked instructions and no mark.  Else commit sets its mark to done (an exchange).  After either, the committer
 *          looks again, and publishes: it walks from data_head over all marks that are done, moves data_head there by
 *          compare-exchange, and looks once more.  Of two commits at the same time one sees the other, because these accesses
 *          are sequentially consistent.
 * publish  Any writer publishes for all: none waits for the first.  A reservation that is not done holds back later ones until
 *          it is done or its owner is dead.
 * recover  A reservation at data_head that is not done, and whose owner is dead (the robust mutex of its slot, which the kernel
 *          marks when a thread ends): take it over (compare-exchange the owner in the mark), write a filler, count it, commit it.
 *          A recoverer that dies is recovered from in the same way.  An owner that is only stopped (SIGSTOP, a debugger) may
 *          still write: its reservation is never taken over.  Until it continues, others write until the ring is full; then
 *          their records are refused and counted.  No writer spins for it.
 *
 * LEASED: a chunk is a reservation.  For each chunk a second table says how far its owner has committed.  Publish and recover
 * use it while the chunk is not done.  A record larger than a chunk, and a handler's record that does not fit into the
 * interrupted record's chunk, gets as many chunks of its own as it needs.
 *
 * Sealing: another writer ends a chunk early.  Idle: its owner has no uncommitted record in it.  A writer that flushes or finds
 * the ring full seals idle chunks of others, unless its process is refused membarrier(2) (seccomp; for chunks of other
 * processes also a kernel with nohz_full CPUs).  Then the records of such a chunk are visible, and later records too, only when
 * its owner fills, flushes or closes it.
 *
 * If a thread ends after the ring was unmapped, or the machine stops (a ring in a file), the kernel does not mark its slot.
 * open, flush, and reserve on a full ring find such an owner by its start time in /proc and the boot's id, at most every 10 ms;
 * in another pid or time namespace only by the boot's id.
 *
 * Bounds.  A claim is retried only if another succeeded (lock-free).  Recovery is one walk over the unpublished reservations,
 * by flush, open, and each reserve that finds the ring full.  If an idle chunk blocks a full ring, reserve seals that chunk
 * once; this takes 8 to 20 ms for another process's chunk, 6 to 14 us for one of this process.  If all writers are dead,
 * someone must open to recover.
 *
 * Losses by a kill.  What is lost is counted, and is in the next LOST record, which precedes the next record; if none follows,
 * perfring_shared_lost alone has it:
 *
 *   STRICT  The uncommitted records.
 *   LEASED  The same, and records that handlers had committed within an uncommitted one, or within a flush or a change of
 *           chunks.
 *
 * A writer killed before its claim has reserved nothing: that attempt is neither written nor lost.  A writer killed between two
 * words of a count leaves that count wrong:
 *
 *   a recoverer              too low by what it had taken over
 *   an owner of a chunk      killed while it commits a nested record: up to two too many; while it takes a chunk: too low by what
 *                            handlers had committed in that chunk
 *   a writer of a LOST       the refusals that it was reporting are in no other record (perfring_shared_lost includes them)
 *
 * A writer killed after it moved data_head, and before it wakes the reader, leaves a crossing of the watermark to the next that
 * publishes; a wakeup by wakeup_events is not repeated.
 *
 * A jump out of a record (longjmp, an exception) leaves the record uncommitted until the thread ends; there is no reset.
 *
 * Fillers.  Both kinds of ring may hold filler records of type 0 (ring.h).  libbpf's perf_buffer fails at them: for such a
 * consumer use STRICT with PERFRING_RING_LOST_FILLERS.
 *
 * Trust.  A reader that does not trust the writers uses PERFRING_READER_COPY.  Writers trust each other.  A process that
 * overwrites the marks can damage other records and stop publication, but not make others write outside the ring.  One that
 * overwrites the owner table can make open and close write anywhere, because the C library links robust mutexes by pointers
 * inside them.
 *
 *              reserve commit discard write flush | close
 *   thread                    yes                 |  yes
 *   handler                   yes                 |  no
 *   other threads   no (they open their own)      |  no
 *
 * PERFRING_WRITER_WAIT waits only if no record of this thread is uncommitted: a handler that interrupted one is refused at once
 * if the ring is full.
 *
 * fork: as in writer.h, calls of the child do nothing.  It attaches the ring by its fd and opens its own.  The mapping is not
 * inherited after perfring_shared_close either: other threads may have it open.  So perfring_shared_lost, _abandoned and
 * _owner_at of the parent's ring crash with SIGSEGV in a child. */
#ifndef PERFRING_SHARED_H
#define PERFRING_SHARED_H

#include <perfring/page.h>
#include <perfring/ring.h>
#include <perfring/writer.h>

PERFRING_BEGIN

/* One thread's handle on a ring: its slot and its chunk. */
struct perfring_shared;

/* A writer in the owner table, for diagnosis. */
struct perfring_owner {
	uint32_t pid, tid; /* in its own pid namespace */
	bool is_alive;
	uint8_t padding[7];
};

/* Takes a slot; recovers slots of dead threads.  options: as in writer.h; stamp and clockid are ignored.  Returns 0; -EINVAL
 * (not a STRICT or LEASED ring of perfring, read-only, or created by a process of the other word size, whose mutexes differ;
 * invalid options); -EUSERS (live threads have all slots); -ENOMEM.  The ring must stay open until close.  Context: threads, not
 * handlers. */
PERFRING_API int perfring_shared_open(struct perfring_shared **shared, struct perfring_ring *ring,
				      const struct perfring_writer_options *options);

/* Seals and publishes what is left, and frees the slot.  Context: the thread that opened it. */
PERFRING_API void perfring_shared_close(struct perfring_shared *shared);

/* Returns space for one record; NULL if it is refused, which is counted.  Claims are committed or discarded in the reverse
 * order of reserving. */
PERFRING_API void *perfring_shared_reserve(struct perfring_shared *shared, struct perfring_output *output,
					   uint64_t size, struct perfring_claim *claim);

/* Commits the record: visible as above (STRICT, LEASED). */
PERFRING_API void perfring_shared_commit(struct perfring_shared *shared, const struct perfring_claim *claim);

/* Drops the record.  STRICT: makes the space a filler.  LEASED: frees it if no record follows, else makes it a filler. */
PERFRING_API void perfring_shared_discard(struct perfring_shared *shared, const struct perfring_claim *claim);

/* Copies a whole record into the ring.  Returns whether it was accepted; refused ones are counted. */
PERFRING_API bool perfring_shared_write(struct perfring_shared *shared, struct perfring_output *output,
					const void *record, uint64_t size);

/* Makes all committed records visible: publishes, recovers from dead writers, and (LEASED) seals half-filled chunks whose
 * owners have no uncommitted record.  Sealing costs the caller a membarrier of 6 to 14 us, or 8 to 20 ms for chunks of another
 * process; it costs their owners nothing.  Wakes the reader if anything became visible. */
PERFRING_API void perfring_shared_flush(struct perfring_shared *shared);

/* Of this ring, since its creation: records refused, or lost with a writer, including those that no LOST record reports yet;
 * and reservations of writers that died before commit.  Context: any thread; handlers; not a child after fork (above). */
PERFRING_API uint64_t perfring_shared_lost(const struct perfring_ring *ring);
PERFRING_EXPERIMENTAL uint64_t perfring_shared_abandoned(const struct perfring_ring *ring);

/* The i-th slot, from 0.  Returns 1; 0 for a free slot; -EINVAL after the last, or for a ring without slots.  Context: any
 * thread; not a child after fork (above). */
PERFRING_API int perfring_shared_owner_at(const struct perfring_ring *ring, uint32_t i, struct perfring_owner *owner);

PERFRING_END

#endif
