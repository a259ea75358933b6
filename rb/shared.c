/* shared.c - many threads and processes, and their handlers, writing one ring: shared.h has the protocol, docs/ring.md its
 * states and transitions.
 *
 * Why it holds.
 *
 *   One claim for each place.  `claimed` says the last room, so a swap from what was read gives the next one to one
 *   claimer only.  (It comes back to an old value after 2^43 bytes and more, and only if the last room has the same size
 *   and owner then: a claimer must stand between its load and its swap for exactly so long.)
 *
 *   A room has its mark before there is another behind it, unless it is published: mark_claimed, which every claimer
 *   passes first.  It reads the mark, then sees `claimed` still naming the room: so what it read is that room's or of a lap
 *   before, and its swap from that fails once anything newer is there.  A swap that comes so late that the room has been
 *   published without a mark leaves one that is behind data_head, in no scan, and is overwritten like any of an old lap.
 *
 *   Nothing is published unfinished.  Two move data_head from h.  The owner of the room at h, when that is finished: nobody
 *   else moves it out of a room whose mark is not done.  And a scan, which begins at h and goes over marks of the lap of
 *   their place in [h, h + size), done: its swap from h succeeds only if data_head has been h all the time (it only grows),
 *   and meanwhile nobody could claim beyond h + size: each of these marks was that very room's.
 *
 *   Nothing finished stays unpublished.  Let v be where data_head comes to rest, X who moved it there, Y the owner of the
 *   room at v, finished.  X has swapped data_head, then looks whether there is a room behind, then at its mark; Y has
 *   claimed by a swap, then looks at data_head, sets `done` by an exchange if that is not v, and looks again: all
 *   sequentially consistent, so in one order.  X sees no room behind: then Y's claim is later, and Y sees v when it looks: it publishes.
 *   X sees the room and not its `done`: then that is set later than X's swap, and Y sees v when it looks again.  One that
 *   dies between `done` and its scan, or between its swap and its look, leaves this to the next that commits, flushes or
 *   opens.
 *
 *   One finisher for each room.  Only its owner writes a room and sets `done`.  Another becomes its owner by a swap of
 *   the whole mark, if the owner before has ended (its robust mutex), or has left its chunk (below); the turn in the
 *   mark counts these swaps, so that a mark does not come back when a slot is used again.  (It counts to 8: eight
 *   successive owners of one room must die while a ninth stands between its load and its swap.)  A room that is not done
 *   stays in its lap, as data_head cannot pass it; so one that takes it over late writes into no other record.
 *
 *   Laps are compared modulo 2^35.  A mark can be taken for a newer one only if it was left alone for exactly a multiple
 *   of that many laps: 2^47 bytes through a ring of one page, and then a room that begins there in just that lap.
 *
 *   Leased: local writing.  The chunk's room is given out by an unlocked xadd on `position`, below `limit`.  Only the
 *   outermost (that found busy 0) ever raises the limit or changes the chunk; a nested claim that does not fit takes its
 *   xadd back, sets the limit to 0 and takes a room of its own: so no claim above the chunk is ever left behind, and the
 *   outermost that switches chunks finds everything below `position` finished.  One thread's
 *   records lie in the order of their claims: its rooms do, and nothing goes into a chunk any more when there is a room
 *   behind it.
 *
 *   Leased: sealing.  A sealer saw the owner's `lease` name this chunk (stored after the limit for it, release), then
 *   stored limit 0, then had every running thread pass a barrier, then saw busy 0 and nothing behind: a claim that saw
 *   the old limit had set busy before that barrier; it is seen, or is over, and then `committed` covers it.  A later one
 *   sees 0, and the owner comes to close_chunk, which tries to swap the mark as the sealer does: one of the two wins.
 */
#include <perfring/shared.h>

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <perfring/wakeup.h>

#include "filler.h"
#include "identity.h"
#include "lost.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "shared_private.h"

enum {
	PAUSES_FIRST = 64, /* of one that was late, doubled up to ... */
	PAUSES_LAST = 512,
	RECORD_LIMIT = 65536, /* records are smaller */
	OWNERS_LIMIT = 1024,
	SEALED_AT_ONCE = 32,
	LIMIT_PENDING = 1, /* below any claim's end, as 0 is */
	ASK_NS = 10000000, /* between two such questions */
	LINE_WORDS = 16,   /* words of the table between neighbours: two lines */
	LEASE = 1,         /* slot->lease is where the chunk begins, + this */
};

/* A mark, as drawn in shared.h. */
#define MARK_SIZE UINT64_C(0x3fff)
#define MARK_OWNER_AT 14
#define MARK_OWNER (UINT64_C(1023) << MARK_OWNER_AT)
#define MARK_TURN (UINT64_C(1) << 24)
#define MARK_TURNS (UINT64_C(7) << 24)
#define MARK_DONE (UINT64_C(1) << 27)
#define MARK_CALL (UINT64_C(1) << 28)
#define MARK_LAP_AT 29

/* Claims, in claim->state. */
enum {
	CLAIM_ROOM = 1,     /* has a mark of its own, at claim->taken */
	CLAIM_DEPTH_AT = 1, /* else: what `busy` was */
};

/* Private to the opening thread, in pages that a fork's child finds zeroed. */
struct perfring_shared {
	struct perfring_owner_slot *slot;
	uint64_t *committed; /* LEASED: its chunk's word in the table; `nowhere`: there is no chunk */
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t mask; /* ring size - 1 */
	struct perfring_ring_state *state;
	uint64_t largest; /* record, in words less 1: none reaches beyond the ring, whatever the slot's limit says */
	uint64_t lease;   /* LEASED: where the chunk begins */
	perfring_u64 nowhere; /* written for naught, should the slot's limit be scribbled over when there is no chunk */
	perfring_u64 freed;   /* the reader gave back everything below, when last looked at */
	uint64_t *marks;      /* (size >> grain_shift) of them */
	uint64_t *table;      /* LEASED: as many positions: what the chunk's owner has finished */
	struct perfring_owner_slot *slots;
	uint64_t watermark;
	uint64_t wait_ns;
	uint64_t namespaces;
	uint64_t boot;
	perfring_u64 asked_at;   /* CLOCK_MONOTONIC, ns: when /proc was last asked whether an owner lives */
	perfring_u64 refused_at; /* the mark that was tried last, when the ring was full */
	uint32_t size_shift;
	uint32_t grain_shift;
	uint32_t owners;
	uint32_t index; /* of the slot */
	uint32_t pid;
	uint32_t open; /* claims with a mark of their own, from before they are made until they are closed */
	uint32_t policy;
	int32_t wake_fd;
	bool leased;
	bool bars_own, bars_all; /* LEASED: what membarrier(2) does for us: for threads of this process, for all */
	bool call;               /* LEASED: a wakeup is due when the chunk is published */
	bool lost_fillers;       /* then records are at least as long as a LOST record */
	struct perfring_output output;
};

/* ---- marks ---- */

static uint64_t *mark_at(const struct perfring_shared *shared, uint64_t position)
{
	return &shared->marks[(position & shared->mask) >> shared->grain_shift];
}

/* Chunks that lie side by side, and are filled at the same time, have their words in different cache lines. */
static uint64_t *committed_at(const struct perfring_shared *shared, uint64_t position)
{
	uint64_t chunk = (position & shared->mask) >> shared->grain_shift;
	uint64_t lines = ((shared->mask + 1) >> shared->grain_shift) / LINE_WORDS;

	return &shared->table[lines ? chunk % lines * LINE_WORDS + chunk / lines : chunk];
}

static uint64_t lap_of(const struct perfring_shared *shared, uint64_t position)
{
	return ((position >> shared->size_shift) + 1) << MARK_LAP_AT;
}

/* Whether it is of the room that begins at `position` in this lap. */
static bool is_of(const struct perfring_shared *shared, uint64_t mark, uint64_t position)
{
	return mark >> MARK_LAP_AT << MARK_LAP_AT == lap_of(shared, position) && (mark & MARK_SIZE);
}

static uint64_t bytes_of(const struct perfring_shared *shared, uint64_t mark)
{
	return (mark & MARK_SIZE) << shared->grain_shift;
}

static uint32_t owner_of(uint64_t mark)
{
	return (uint32_t)((mark & MARK_OWNER) >> MARK_OWNER_AT);
}

static uint64_t new_mark(const struct perfring_shared *shared, uint64_t position, uint64_t bytes)
{
	return lap_of(shared, position) | (uint64_t)shared->index << MARK_OWNER_AT | bytes >> shared->grain_shift;
}

/* The same room, ours. */
static uint64_t taken_mark(const struct perfring_shared *shared, uint64_t mark)
{
	return (mark & ~(MARK_OWNER | MARK_TURNS)) | (uint64_t)shared->index << MARK_OWNER_AT |
	       ((mark + MARK_TURN) & MARK_TURNS);
}

/* `claimed`, by this owner. */
static uint64_t new_claimed(const struct perfring_shared *shared, uint64_t end, uint64_t bytes)
{
	return (end >> shared->grain_shift & SHARED_END) | bytes >> shared->grain_shift << SHARED_SIZE_AT |
	       (uint64_t)shared->index << SHARED_OWNER_AT;
}

static uint64_t end_of(const struct perfring_shared *shared, uint64_t claimed)
{
	return shared_claimed_end(claimed, perfring_page_observe(shared->page), shared->grain_shift);
}

static void fill(const struct perfring_shared *shared, uint64_t position, uint64_t size)
{
	unsigned char *room = shared->data + (position & shared->mask);

	if (shared->lost_fillers && size)
		filler_put_lost(room, size);
	else
		filler_put(room, size);
}

static uint64_t room_start(const struct perfring_shared *shared, uint64_t position)
{
	return position >> shared->grain_shift << shared->grain_shift;
}

/* How far the room of a chunk that is not done is finished: a position in it, or its start. */
static uint64_t finished_in(const struct perfring_shared *shared, uint64_t start, uint64_t bytes)
{
	uint64_t committed;

	if (!shared->leased)
		return start;
	/* Acquire: the records before the word; pairs with the release of the owner's commit.  Ordered: after the swap of
	 * data_head, it pairs with the fence of a commit that wakes. */
	committed = PERFRING_LOAD_ORDERED(committed_at(shared, start)) & ~UINT64_C(7);
	/* What an earlier lap left there is at most `start`. */
	return committed - start <= bytes ? committed : start;
}

/* ---- publishing ---- */

/* docs/abi.md 7.3, step 7, by who has moved data_head: the stamp grows once a room, the reader is woken once, and before the
 * stamp moves: of one that is killed or stopped in between the next tells again, and none is lost. */
static void wake(struct perfring_shared *shared, uint64_t position, uint64_t rooms, bool call)
{
	struct perfring_ring_state *state = shared->state;
	uint64_t stamp = PERFRING_LOAD(&state->wakeup);
	bool told = false;

	/* Signed: another may have published more, and moved the stamp past our position. */
	while (rooms && (int64_t)(position - stamp) > 0 && position - stamp > shared->watermark) {
		if (!told)
			perfring_wakeup_raise(shared->page, shared->wake_fd);
		told = true;
		if (!PERFRING_COMPARE_EXCHANGE(&state->wakeup, &stamp, stamp + shared->watermark))
			continue;
		PERFRING_POINT(shared_stamped);
		stamp += shared->watermark;
		rooms--;
	}
	/* After the swap of data_head, both ordered: a reader that armed itself later sees the records. */
	if (!told && (call || PERFRING_LOAD_ORDERED(&state->armed) & PERFRING_WAKEUP_RECORD))
		perfring_wakeup_raise(shared->page, shared->wake_fd);
}

/* Moves data_head over everything that is finished.  Returns whether it has moved. */
static bool publish(struct perfring_shared *shared)
{
	bool moved = false;

	for (;;) {
		/* Ordered, after the exchange of `done` or the swap of data_head: so are the looks at the marks. */
		__u64 published = PERFRING_LOAD_ORDERED(&shared->page->data_head);
		uint64_t end = published, start = room_start(shared, published), rooms = 0, bytes, mark, finished;
		bool call = false;

		for (;;) {
			/* Acquire: the record before `done`; pairs with the exchange in finish. */
			mark = PERFRING_LOAD_ORDERED(mark_at(shared, start));
			if (!is_of(shared, mark, start))
				break;
			bytes = bytes_of(shared, mark);
			if (start + bytes - published > shared->mask + 1)
				break; /* scribbled over */
			if (!(mark & MARK_DONE)) {
				/* Never to its end, even if all of it is finished: a room not done must stay ahead. */
				finished = finished_in(shared, start, bytes);
				if (finished > end && finished - start < bytes) {
					end = finished;
					rooms++;
				}
				break;
			}
			call |= mark & MARK_CALL;
			rooms++;
			start += bytes;
			end = start;
		}
		if (end == published)
			return moved;
		PERFRING_POINT(shared_scanned);
		/* Release: pairs with the reader's observe. */
		if (!PERFRING_COMPARE_EXCHANGE(&shared->page->data_head, &published, end))
			continue;
		PERFRING_POINT(shared_published);
		moved = true;
		wake(shared, end, rooms, call);
		PERFRING_POINT(shared_woken);
	}
}

/* The room is whole: `mark` is ours. */
static void finish(struct perfring_shared *shared, uint64_t start, uint64_t mark)
{
	uint64_t end = start + bytes_of(shared, mark);
	__u64 published = PERFRING_LOAD_ORDERED(&shared->page->data_head);

	/* First in the line: none but us moves data_head out of a room that is not done, so it needs no mark. */
	while (room_start(shared, published) == start) {
		PERFRING_POINT(shared_first);
		/* Release: pairs with the reader's observe.  It fails when another has published a part of the chunk. */
		if (!PERFRING_COMPARE_EXCHANGE(&shared->page->data_head, &published, end))
			continue;
		PERFRING_POINT(shared_published);
		wake(shared, end, 1, mark & MARK_CALL);
		PERFRING_POINT(shared_woken);
		/* Ordered, after the swap: who claims behind us later finds itself first. */
		if (((PERFRING_LOAD_ORDERED(&shared->state->claimed) ^ end >> shared->grain_shift) & SHARED_END) != 0)
			publish(shared);
		return;
	}
	PERFRING_EXCHANGE(mark_at(shared, start), mark | MARK_DONE);
	PERFRING_POINT(shared_done);
	publish(shared);
}

/* ---- who lives ---- */

#ifndef __GLIBC__
#error "where the lock word of a pthread_mutex_t is, is known of glibc alone"
#endif

/* The lock word alone says it, which a handler may read: the thread's id while it lives, FUTEX_OWNER_DIED in its stead
 * when the kernel has seen it end, 0 after close.  Acquire: what the dead had stored is seen. */
static bool has_gone(const struct perfring_owner_slot *slot)
{
	uint32_t word = (uint32_t)PERFRING_LOAD_ACQUIRE(&slot->held.__data.__lock);

	return (word & FUTEX_OWNER_DIED) || !(word & FUTEX_TID_MASK);
}

/* Whether the owner has ended where the kernel could not mark its mutex: the kernel marks what the thread can still reach,
 * so nothing after the thread has unmapped the ring, or when the machine went down (a ring in a file).  `word` is the
 * mutex's lock word that this holds for.
 *
 * The word and the identity are of one owner.  A thread that takes a slot clears the identity before it locks the mutex
 * (take_slot), and stores its own afterwards.  So if a thread of the same number has locked it since, the identity is 0
 * or that thread's own. */
static bool has_vanished(const struct perfring_owner_slot *slot, uint64_t namespaces, uint64_t boot, int *word)
{
	uint64_t identity, its_boot;

	*word = PERFRING_LOAD_ACQUIRE(&slot->held.__data.__lock);
	identity = PERFRING_LOAD_ACQUIRE(&slot->identity); /* pairs with take_slot: `boot` is the same owner's */
	its_boot = PERFRING_LOAD(&slot->boot);
	if (!identity || perfring_identity_tid(identity) != ((uint32_t)*word & FUTEX_TID_MASK))
		return false;
	if (its_boot && boot && its_boot != boot)
		return true;
	return namespaces && PERFRING_LOAD(&slot->namespaces) == namespaces && !perfring_identity_lives(identity);
}

/* Marks its mutex in the kernel's stead. */
static void mark_vanished(const struct perfring_shared *shared, struct perfring_owner_slot *slot)
{
	int word;

	if (!has_vanished(slot, shared->namespaces, shared->boot, &word))
		return;
	PERFRING_POINT(shared_vanished);
	PERFRING_COMPARE_EXCHANGE(&slot->held.__data.__lock, &word, (int)FUTEX_OWNER_DIED);
}

/* Whether it is time to ask /proc: a question costs some 20 us. */
static bool may_ask(struct perfring_shared *shared)
{
	uint64_t time = perfring_os_clock_now();

	if (time - PERFRING_LOAD(&shared->asked_at) < ASK_NS)
		return false;
	PERFRING_STORE(&shared->asked_at, time);
	return true;
}

static void count_lost(struct perfring_ring_state *state, uint64_t records)
{
	PERFRING_ADD(&state->lost_total, records);
	PERFRING_POINT(shared_counted);
	PERFRING_ADD(&state->lost, records);
}

/* Gives the room that was claimed last its mark, if it is not published: whoever wants to claim behind it, or to finish
 * it for the dead, must find it in the line.  Returns false when another was claimed since, which did the same. */
static bool mark_claimed(struct perfring_shared *shared, uint64_t claimed)
{
	uint64_t bytes = (claimed >> SHARED_SIZE_AT & SHARED_SIZE) << shared->grain_shift;
	uint64_t end = end_of(shared, claimed), start = end - bytes, mark, *place;

	if (!bytes || (int64_t)(end - perfring_page_observe(shared->page)) <= 0)
		return true;
	place = mark_at(shared, start);
	for (;;) {
		/* Acquire: before the look at `claimed`.  If that is still so, what was there is not of a later lap. */
		mark = PERFRING_LOAD_ACQUIRE(place);
		if (PERFRING_LOAD(&shared->state->claimed) != claimed)
			return false;
		PERFRING_POINT(shared_looked);
		if (is_of(shared, mark, start))
			return true;
		/* It fails by one that did the same, or by one that is late by a lap: look again. */
		PERFRING_COMPARE_EXCHANGE(place, &mark,
			      lap_of(shared, start) | claimed >> SHARED_OWNER_AT << MARK_OWNER_AT |
				      bytes >> shared->grain_shift);
		PERFRING_POINT(shared_helped);
	}
}

static void mark_last(struct perfring_shared *shared)
{
	while (!mark_claimed(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed)))
		;
}

/* Makes the room of another ours, if its mark is still `mark`, and finishes it by fillers.  Its first taker counts. */
static bool take(struct perfring_shared *shared, uint64_t start, uint64_t mark, bool sealing)
{
	const struct perfring_owner_slot *slot = &shared->slots[owner_of(mark)];
	uint64_t mine = taken_mark(shared, mark), bytes = bytes_of(shared, mark), from, lost = 1;

	/* Before the swap: a slot is not used again as long as one room has its number. */
	if (shared->leased && PERFRING_LOAD(&slot->lease) == start + LEASE)
		lost = PERFRING_LOAD(&slot->position) == PERFRING_LOAD(committed_at(shared, start))
			       ? 0
			       : PERFRING_LOAD(&slot->busy) +
					 (PERFRING_LOAD(&slot->behind) - PERFRING_LOAD(&slot->settled));
	if (!PERFRING_COMPARE_EXCHANGE(mark_at(shared, start), &mark, mine))
		return false;
	PERFRING_POINT(shared_taken);
	/* It was the first in the line, and its owner published it as we looked, and ended. */
	if ((int64_t)(start + bytes - perfring_page_observe(shared->page)) <= 0)
		return true;
	if (!sealing && !(mark & MARK_TURNS) && lost) {
		PERFRING_ADD(&shared->state->abandoned, 1);
		count_lost(shared->state, lost);
	}
	PERFRING_POINT(shared_told);
	from = finished_in(shared, start, bytes);
	fill(shared, from, start + bytes - from);
	PERFRING_POINT(shared_filled);
	finish(shared, start, mine);
	return true;
}

/* Whether the first room that is not published is a dead writer's, and is finished now. */
static bool recover_first(struct perfring_shared *shared, uint64_t start, bool ask)
{
	uint64_t mark = PERFRING_LOAD_ACQUIRE(mark_at(shared, start));
	struct perfring_owner_slot *slot;

	if (!is_of(shared, mark, start) || mark & MARK_DONE || owner_of(mark) >= shared->owners ||
	    owner_of(mark) == shared->index || bytes_of(shared, mark) > shared->mask)
		return false;
	slot = &shared->slots[owner_of(mark)];
	if (ask && !has_gone(slot))
		mark_vanished(shared, slot);
	return has_gone(slot) && take(shared, start, mark, false);
}

/* Publishes, and finishes for the dead what holds that back. */
static void recover(struct perfring_shared *shared)
{
	bool ask = may_ask(shared);
	uint64_t start, until;

	mark_last(shared);
	/* What is claimed later is others' to recover: we end while they write. */
	until = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	do {
		publish(shared);
		start = room_start(shared, perfring_page_observe(shared->page));
		PERFRING_POINT(shared_recovering);
		if (recover_first(shared, start, ask))
			continue;
		/* Published by its owner as we looked: what is behind may be a dead writer's, which the owner left. */
		if (room_start(shared, perfring_page_observe(shared->page)) == start)
			return;
	} while ((int64_t)(until - start) > 0);
}

/* Goes over the rooms that are not published yet, up to the one at `until`. */
static bool next_room(const struct perfring_shared *shared, uint64_t *start, uint64_t *mark, uint64_t until)
{
	uint64_t published;

	while (until - *start <= shared->mask + 1) {
		*mark = PERFRING_LOAD_ACQUIRE(mark_at(shared, *start));
		if (is_of(shared, *mark, *start))
			return bytes_of(shared, *mark) <= shared->mask;
		published = room_start(shared, perfring_page_observe(shared->page));
		/* Published since, and claimed again: go on where there may be some. */
		if (published - *start - 1 > shared->mask)
			return false;
		*start = published;
	}
	return false;
}

/* Before a dead writer's slot is used again: finishes all its rooms. */
static void recover_slot(struct perfring_shared *shared)
{
	uint64_t start = room_start(shared, perfring_page_observe(shared->page));
	uint64_t until, mark;

	mark_last(shared);
	until = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	for (; next_room(shared, &start, &mark, until); start += bytes_of(shared, mark))
		if (!(mark & MARK_DONE) && owner_of(mark) == shared->index) {
			take(shared, start, mark, false);
			PERFRING_POINT(shared_reopening);
		}
}

/* ---- sealing ---- */

/* Every running thread of this process, or of all, passes a full barrier.
 *
 * Of all, not by MEMBARRIER_CMD_GLOBAL_EXPEDITED: Linux (6.18, as seen) leaves out a CPU that ran a thread of a process
 * before this registered, has been idle since, and runs one again: it kept the process's memory map, so it was not told of
 * the registration.  PRIVATE_EXPEDITED looks at who runs; GLOBAL waits until every CPU has switched: 8 to 20 ms. */
static bool bar(bool foreign)
{
	return foreign ? perfring_os_membarrier_system() : perfring_os_membarrier_process();
}

/* Whether a thread of another process: then the barrier is the slow one.  So it is where ours was refused its own. */
static bool is_foreign(const struct perfring_shared *shared, const struct perfring_owner_slot *slot)
{
	return !shared->bars_own || PERFRING_LOAD(&slot->pid) != shared->pid ||
	       PERFRING_LOAD(&slot->namespaces) != shared->namespaces;
}

/* Finishes the chunks before `until` that living writers have left half full and are in no record in. */
static bool seal(struct perfring_shared *shared, uint64_t until)
{
	struct {
		uint64_t start, mark;
	} found[SEALED_AT_ONCE];
	uint64_t start = room_start(shared, perfring_page_observe(shared->page)), mark;
	struct perfring_owner_slot *slot;
	uint32_t count = 0, settled, i;
	bool sealed = false, foreign = false;
	int saved = errno;

	for (; count < SEALED_AT_ONCE && next_room(shared, &start, &mark, until); start += bytes_of(shared, mark)) {
		if (mark & MARK_DONE || owner_of(mark) == shared->index || owner_of(mark) >= shared->owners)
			continue;
		slot = &shared->slots[owner_of(mark)];
		/* Acquire: pairs with the release in reserve_rare, so that our 0 is not overwritten by the limit. */
		if (PERFRING_LOAD_ACQUIRE(&slot->lease) != start + LEASE)
			continue;
		if (is_foreign(shared, slot)) {
			if (!shared->bars_all)
				continue;
			foreign = true;
		}
		PERFRING_STORE(&slot->limit, 0);
		PERFRING_POINT(shared_limited);
		found[count].start = start;
		found[count].mark = mark;
		count++;
	}
	if (!count)
		return false;
	/* The owner's half, between its busy and its look at the limit, is a compiler barrier. */
	if (!bar(foreign))
		count = 0; /* they stay as they are */
	errno = saved;
	PERFRING_POINT(shared_barred);
	for (i = 0; i < count; i++) {
		slot = &shared->slots[owner_of(found[i].mark)];
		/* In this order: pairs with the releases of leave_chunk and settle_chunk. */
		if (PERFRING_LOAD_ACQUIRE(&slot->busy))
			continue;
		settled = PERFRING_LOAD_ACQUIRE(&slot->settled);
		if (settled != PERFRING_LOAD(&slot->behind))
			continue;
		PERFRING_POINT(shared_idle);
		sealed |= take(shared, found[i].start, found[i].mark, true);
	}
	return sealed;
}

/* ---- claiming a room with a mark of its own ---- */

/* Whether `bytes` more fit at `position` (docs/abi.md 7.2): a ring is never full to the last byte.  data_tail counts below
 * what is published, by its low bits alone, as in the kernel. */
static bool fits(struct perfring_shared *shared, uint64_t position, uint64_t bytes)
{
	uint64_t published, back, freed;

	if (position - PERFRING_LOAD(&shared->freed) <= shared->mask - bytes)
		return true; /* as last seen: stale only in the safe direction */
	do {
		published = perfring_page_observe(shared->page);
		back = perfring_page_reclaim(shared->page);
		/* The two of one moment: else a data_tail that has passed `published` would count as a lap behind. */
	} while (perfring_page_observe(shared->page) != published);
	freed = published - ((published - back) & shared->mask);
	PERFRING_STORE(&shared->freed, freed); /* over a handler's, which may be later */
	return position - freed <= shared->mask - bytes;
}

/* Claims `bytes`, a multiple of the grain below the ring's size.  Returns false when the ring is full. */
static bool claim_room(struct perfring_shared *shared, uint64_t bytes, uint64_t *start)
{
	uint64_t *word = &shared->state->claimed, position, claimed;
	int pauses = PAUSES_FIRST, i;

	for (;;) {
		claimed = PERFRING_LOAD_ACQUIRE(word);
		PERFRING_POINT(shared_asked);
		if (!mark_claimed(shared, claimed))
			continue;
		position = end_of(shared, claimed);
		if (PERFRING_UNLIKELY(!fits(shared, position, bytes))) {
			/* No refusal by a position of yesterday. */
			if (PERFRING_LOAD_ACQUIRE(word) == claimed)
				return false;
			continue;
		}
		if (PERFRING_COMPARE_EXCHANGE(word, &claimed, new_claimed(shared, position + bytes, bytes)))
			break;
		/* Another claims at this very moment: the lines that both need go to and fro less often when one of the two
		 * stands back.  Nothing is held meanwhile. */
		for (i = 0; i < pauses; i++)
			PERFRING_RELAX();
		if (pauses < PAUSES_LAST)
			pauses *= 2;
	}
	PERFRING_POINT(shared_claimed);
	/* A chunk is published in parts, and sealed: by its mark. */
	if (shared->leased)
		mark_claimed(shared, new_claimed(shared, position + bytes, bytes));
	PERFRING_POINT(shared_moved);
	*start = position;
	return true;
}

/* Before a record is refused: what can be published is, so that the reader can give room back.  Sealing is
 * tried for a room once, and again when it is an idle chunk: nobody spins for one whose owner is in a record. */
static void relieve(struct perfring_shared *shared)
{
	const struct perfring_owner_slot *slot;
	uint64_t start, mark;

	recover(shared);
	if (!shared->leased)
		return;
	start = room_start(shared, perfring_page_observe(shared->page));
	mark = PERFRING_LOAD_ACQUIRE(mark_at(shared, start));
	if (!is_of(shared, mark, start) || mark & MARK_DONE || owner_of(mark) >= shared->owners)
		return;
	slot = &shared->slots[owner_of(mark)];
	if (mark == PERFRING_LOAD(&shared->refused_at) &&
	    (PERFRING_LOAD(&slot->lease) != start + LEASE || PERFRING_LOAD(&slot->busy) ||
	     PERFRING_LOAD(&slot->settled) != PERFRING_LOAD(&slot->behind)))
		return;
	PERFRING_STORE(&shared->refused_at, mark);
	if (seal(shared, end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed))))
		recover(shared);
}

/* As claim_room, and what the policy says when it is full.  `alone`: in no record of this thread. */
static bool obtain(struct perfring_shared *shared, uint64_t bytes, bool alone, uint64_t *start)
{
	struct timespec nap = {0, 20000};
	uint64_t begun = 0;
	int saved = errno;

	if (claim_room(shared, bytes, start))
		return true;
	for (;;) {
		relieve(shared);
		PERFRING_POINT(shared_relieved);
		if (claim_room(shared, bytes, start))
			return true;
		if (shared->policy != PERFRING_WRITER_WAIT || !alone || PERFRING_LOAD(&shared->state->paused))
			return false;
		if (!begun) {
			begun = perfring_os_clock_now();
			/* It may sleep until a watermark that cannot be reached. */
			perfring_wakeup_raise(shared->page, shared->wake_fd);
		}
		if (perfring_os_clock_now() - begun >= shared->wait_ns)
			return false;
		nanosleep(&nap, NULL);
		errno = saved;
		if (nap.tv_nsec < 1000000)
			nap.tv_nsec *= 2;
	}
}

/* ---- LOST ---- */

static void refuse(struct perfring_shared *shared, struct perfring_output *output)
{
	count_lost(shared->state, 1);
	PERFRING_ADD(&output->lost, 1);
	PERFRING_POINT(shared_refused);
}

/* What a claim must have room for besides its record (docs/abi.md 7.3, step 3). */
static uint64_t lost_due(const struct perfring_shared *shared, const struct perfring_output *output)
{
	return PERFRING_UNLIKELY(PERFRING_LOAD(&shared->state->lost)) ? lost_size(output) : 0;
}

static void put_lost(struct perfring_shared *shared, const struct perfring_output *output, uint64_t position)
{
	/* Now, not when it was reserved: it may be 0 (docs/abi.md 7.3, step 8). */
	lost_put(output, PERFRING_EXCHANGE(&shared->state->lost, 0), shared->data + (position & shared->mask));
	PERFRING_POINT(shared_lost_told);
}

/* ---- rooms with a mark of their own: each record of a STRICT ring ---- */

static void *reserve_room(struct perfring_shared *shared, struct perfring_output *output, uint64_t size, bool alone,
			  struct perfring_claim *claim)
{
	uint64_t lost = lost_due(shared, output), grain = UINT64_C(1) << shared->grain_shift, start;
	uint64_t bytes = (size + lost + grain - 1) >> shared->grain_shift << shared->grain_shift;

	/* Before the claim: a handler behind it is not alone.  Handlers put back what they find. */
	PERFRING_STORE(&shared->open, PERFRING_LOAD(&shared->open) + 1);
	PERFRING_POINT(shared_opened);
	if (bytes > shared->mask || !obtain(shared, bytes, alone, &start)) {
		PERFRING_STORE(&shared->open, PERFRING_LOAD(&shared->open) - 1);
		refuse(shared, output);
		return NULL;
	}
	if (PERFRING_UNLIKELY(lost))
		put_lost(shared, output, start);
	fill(shared, start + lost + size, bytes - lost - size);
	claim->state = CLAIM_ROOM;
	claim->taken = start;
	claim->end = start + bytes;
	claim->size = size;
	claim->output = output;
	claim->room = shared->data + ((start + lost) & shared->mask);
	PERFRING_POINT(shared_given);
	return claim->room;
}

/* docs/abi.md 7.3, step 10.  Returns whether a wakeup is due. */
static bool count_sample(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	struct perfring_ring_state *state = shared->state;
	uint32_t every = claim->output->wakeup_events;
	struct perf_event_header header;
	uint64_t events, rest;

	if (PERFRING_LIKELY(!every))
		return false;
	memcpy(&header, claim->room, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE)
		return false;
	events = PERFRING_LOAD(&state->events);
	do
		rest = events + 1 >= every ? events + 1 - every : events + 1;
	while (!PERFRING_COMPARE_EXCHANGE(&state->events, &events, rest));
	if (events + 1 < every)
		return false;
	PERFRING_ADD(&state->wakeup, 1);
	return true;
}

static void commit_room(struct perfring_shared *shared, const struct perfring_claim *claim, bool call)
{
	uint64_t mark = new_mark(shared, claim->taken, claim->end - claim->taken);

	finish(shared, claim->taken, call ? mark | MARK_CALL : mark);
	PERFRING_STORE(&shared->open, PERFRING_LOAD(&shared->open) - 1);
	PERFRING_POINT(shared_alone);
}

/* ---- LEASED: the chunk ---- */

/* By the outermost, with `busy` set: what nested writers finished becomes part of what is. */
static void settle_chunk(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot = shared->slot;
	uint32_t behind = PERFRING_LOAD(&slot->behind);

	/* Nothing behind: then the chunk may be sealed, and its word another's. */
	if (behind == PERFRING_LOAD(&slot->settled))
		return;
	PERFRING_FENCE_LOCAL(); /* what is counted is below `position` */
	PERFRING_STORE_RELEASE(shared->committed, PERFRING_LOAD(&shared->slot->position));
	PERFRING_POINT(shared_settling);
	PERFRING_STORE_RELEASE(&slot->settled, behind);
}

/* By the outermost: clears `busy`.  Who comes above it is nested, and is seen in `behind`; who comes below settles for
 * itself, and for us. */
static void leave_chunk(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot = shared->slot;

	for (;;) {
		PERFRING_STORE_RELEASE(&slot->busy, (uint8_t)0); /* pairs with seal */
		PERFRING_FENCE_LOCAL();
		PERFRING_POINT(shared_left);
		if (PERFRING_LIKELY(PERFRING_LOAD(&slot->behind) == PERFRING_LOAD(&slot->settled)))
			return;
		PERFRING_STORE(&slot->busy, (uint8_t)1);
		PERFRING_FENCE_LOCAL();
		settle_chunk(shared);
	}
}

/* By the outermost: nothing is in the making in the chunk, and nothing more goes into it. */
static void close_chunk(struct perfring_shared *shared)
{
	uint64_t grain = UINT64_C(1) << shared->grain_shift, start = shared->lease, end, mark, mine;

	PERFRING_STORE(&shared->slot->limit, 0);
	PERFRING_FENCE_LOCAL(); /* a handler that fitted in is below the position we read now */
	PERFRING_POINT(shared_closing);
	if (shared->committed == &shared->nowhere)
		return;
	settle_chunk(shared);
	end = PERFRING_LOAD(&shared->slot->position);
	mark = new_mark(shared, start, grain);
	mine = taken_mark(shared, mark);
	if (PERFRING_COMPARE_EXCHANGE(mark_at(shared, start), &mark, mine)) {
		PERFRING_POINT(shared_closed);
		if (end - start < grain)
			fill(shared, end, start + grain - end);
		shared->committed = &shared->nowhere;
		if (shared->call)
			mine |= MARK_CALL;
		shared->call = false;
		finish(shared, start, mine);
	}
	shared->committed = &shared->nowhere;
	PERFRING_POINT(shared_chunkless);
}

static inline void *give_leased(struct perfring_shared *shared, struct perfring_output *output, uint64_t size,
				uint64_t end, uint8_t depth, struct perfring_claim *claim)
{
	claim->state = (uint64_t)depth << CLAIM_DEPTH_AT;
	claim->end = end;
	claim->size = size;
	claim->output = output;
	claim->room = shared->data + ((end - size) & shared->mask);
	return claim->room;
}

/* A claim of the chunk did not fit: it ends at `end`. */
static void *reserve_rare(struct perfring_shared *shared, struct perfring_output *output, uint64_t size, uint64_t end,
			  uint8_t depth, struct perfring_claim *claim)
{
	uint64_t grain = UINT64_C(1) << shared->grain_shift, lost, start;
	struct perfring_owner_slot *slot = shared->slot;
	void *room;

	/* Take it back.  That fails only when a handler has claimed behind us, below a limit that a sealer has since set to
	 * 0 under our eyes: so ours fits as well, and the sealer will find us busy. */
	if (!PERFRING_SWAP_LOCAL(&shared->slot->position, end, end - size)) {
		PERFRING_POINT(shared_kept);
		return give_leased(shared, output, size, end, depth, claim);
	}
	PERFRING_POINT(shared_undone);
	if (depth) {
		/* The chunk cannot be closed below a record in the making; but what comes after ours may not lie before
		 * it.  From here on our mark stands for us, not `busy`. */
		PERFRING_STORE(&slot->limit, 0);
		PERFRING_FENCE_LOCAL();
		PERFRING_STORE(&slot->busy, depth);
		PERFRING_FENCE_LOCAL();
		return reserve_room(shared, output, size, false, claim);
	}
	close_chunk(shared);
	lost = lost_due(shared, output);
	if (size + lost > grain) {
		room = reserve_room(shared, output, size, !PERFRING_LOAD(&shared->open), claim);
		leave_chunk(shared);
		return room;
	}
	PERFRING_STORE(&slot->limit, LIMIT_PENDING);
	PERFRING_FENCE_LOCAL();
	if (!obtain(shared, grain, !PERFRING_LOAD(&shared->open), &start)) {
		refuse(shared, output);
		leave_chunk(shared);
		return NULL;
	}
	shared->lease = start;
	shared->committed = committed_at(shared, start);
	if (lost) {
		put_lost(shared, output, start);
		start += lost;
		PERFRING_STORE_RELEASE(shared->committed, start);
	}
	/* First the position, with our room in it, then the limit: handlers come behind us.  One that came since we began,
	 * and has a room of its own behind this chunk, has set the limit to 0: what comes now may not lie before it.  (So
	 * may have a sealer that is late: that does no harm.) */
	PERFRING_STORE(&shared->slot->position, start + size);
	PERFRING_FENCE_LOCAL();
	PERFRING_POINT(shared_leased);
	PERFRING_SWAP_LOCAL(&slot->limit, LIMIT_PENDING, shared->lease + grain);
	/* Pairs with seal. */
	PERFRING_STORE_RELEASE(&slot->lease, shared->lease + LEASE);
	PERFRING_POINT(shared_limit_set);
	return give_leased(shared, output, size, start + size, 0, claim);
}

static void *reserve_leased(struct perfring_shared *shared, struct perfring_output *output, uint64_t size,
			    struct perfring_claim *claim)
{
	struct perfring_owner_slot *slot = shared->slot;
	uint64_t end;
	uint8_t depth;

	/* A handler between the load and the store is outermost, and has left when we go on. */
	depth = PERFRING_LOAD(&slot->busy);
	PERFRING_STORE(&slot->busy, (uint8_t)(depth + 1));
	PERFRING_FENCE_LOCAL(); /* busy before the look at the limit: pairs with the sealer's membarrier */
	PERFRING_POINT(shared_busy);
	end = PERFRING_ADD_LOCAL(&shared->slot->position, size) + size;
	PERFRING_POINT(shared_added);
	if (PERFRING_UNLIKELY(end > PERFRING_LOAD(&slot->limit)))
		return reserve_rare(shared, output, size, end, depth, claim);
	return give_leased(shared, output, size, end, depth, claim);
}

/* Closes this thread's own chunk, unless it is in a record there. */
static void close_own(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot = shared->slot;

	if (PERFRING_LOAD(&slot->busy))
		return;
	PERFRING_STORE(&slot->busy, (uint8_t)1);
	PERFRING_FENCE_LOCAL();
	close_chunk(shared);
	leave_chunk(shared);
}

static void commit_leased(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	struct perfring_owner_slot *slot = shared->slot;
	uint8_t depth = (uint8_t)(claim->state >> CLAIM_DEPTH_AT);

	if (PERFRING_UNLIKELY(count_sample(shared, claim)))
		shared->call = true;
	if (depth) {
		PERFRING_FENCE_LOCAL(); /* the record before the word that it is there */
		PERFRING_STORE(&slot->behind, PERFRING_LOAD(&slot->behind) + 1);
		PERFRING_FENCE_LOCAL();
		PERFRING_POINT(shared_behind);
		PERFRING_STORE(&slot->busy, depth);
		return;
	}
	PERFRING_STORE_RELEASE(shared->committed, claim->end); /* pairs with finished_in */
	PERFRING_POINT(shared_committed);
	leave_chunk(shared);
	if (PERFRING_UNLIKELY(shared->call)) {
		if (claim->end == shared->lease + (UINT64_C(1) << shared->grain_shift))
			close_own(shared);
		/* `committed` before the look at data_head: who swaps that later sees it.  Kept until the chunk is published
		 * whole, if other chunks hold it back. */
		PERFRING_FENCE();
		publish(shared);
		perfring_wakeup_raise(shared->page, shared->wake_fd);
		if (perfring_page_observe(shared->page) - claim->end <= shared->mask)
			shared->call = false;
	}
}

/* ---- the calls ---- */

void *perfring_shared_reserve(struct perfring_shared *shared, struct perfring_output *output, uint64_t size,
			      struct perfring_claim *claim)
{
	if (PERFRING_UNLIKELY(!shared->page)) /* a fork's child */
		return NULL;
	if (!output)
		output = &shared->output;
	/* One compare: what is too small wraps, what is no multiple of 8 rotates to the top. */
	if (PERFRING_UNLIKELY(((size - 8) >> 3 | (size - 8) << 61) > shared->largest ||
			      (shared->lost_fillers && size < LOST_SIZE) || PERFRING_LOAD(&shared->state->paused))) {
		refuse(shared, output);
		return NULL;
	}
	if (shared->leased)
		return reserve_leased(shared, output, size, claim);
	return reserve_room(shared, output, size, !PERFRING_LOAD(&shared->open), claim);
}

void perfring_shared_commit(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	if (PERFRING_UNLIKELY(!shared->page))
		return;
	PERFRING_POINT(shared_encoded);
	if (claim->state & CLAIM_ROOM)
		commit_room(shared, claim, count_sample(shared, claim));
	else
		commit_leased(shared, claim);
}

void perfring_shared_discard(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	uint8_t depth = (uint8_t)(claim->state >> CLAIM_DEPTH_AT);

	if (PERFRING_UNLIKELY(!shared->page))
		return;
	if (!(claim->state & CLAIM_ROOM) &&
	    PERFRING_SWAP_LOCAL(&shared->slot->position, claim->end, claim->end - claim->size)) {
		PERFRING_POINT(shared_discarded);
		if (depth)
			PERFRING_STORE(&shared->slot->busy, depth);
		else
			leave_chunk(shared);
		return;
	}
	fill(shared, (uint64_t)((unsigned char *)claim->room - shared->data), claim->size);
	if (claim->state & CLAIM_ROOM)
		commit_room(shared, claim, false);
	else if (depth) /* what follows it counts for both */
		PERFRING_STORE_RELEASE(&shared->slot->busy, depth);
	else
		commit_leased(shared, claim);
}

bool perfring_shared_write(struct perfring_shared *shared, struct perfring_output *output, const void *record,
			   uint64_t size)
{
	struct perfring_claim claim;
	void *room = perfring_shared_reserve(shared, output, size, &claim);

	if (PERFRING_UNLIKELY(!room))
		return false;
	memcpy(room, record, (size_t)size);
	perfring_shared_commit(shared, &claim);
	return true;
}

void perfring_shared_flush(struct perfring_shared *shared)
{
	uint64_t until;

	if (!shared->page)
		return;
	/* What is claimed later is not this flush's: it ends while others write. */
	until = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	if (shared->leased)
		close_own(shared);
	recover(shared);
	if (shared->leased)
		while (seal(shared, until))
			recover(shared);
	if (perfring_page_observe(shared->page) != perfring_page_reclaim(shared->page))
		perfring_wakeup_raise(shared->page, shared->wake_fd);
}

/* ---- what the ring says ---- */

static bool is_shared(const struct perfring_ring *ring)
{
	return ring->page && ring->flags & PERFRING_RING_OWN &&
	       ring->flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED);
}

uint64_t perfring_shared_lost(const struct perfring_ring *ring)
{
	return is_shared(ring) ? PERFRING_LOAD(&perfring_ring_state_of(ring->page)->lost_total) : 0;
}

uint64_t perfring_shared_abandoned(const struct perfring_ring *ring)
{
	return is_shared(ring) ? PERFRING_LOAD(&perfring_ring_state_of(ring->page)->abandoned) : 0;
}

/* The tables, by numbers that are read once and checked here against the mapping.  Returns the slots, or NULL. */
static struct perfring_owner_slot *tables_of(const struct perfring_ring *ring, uint32_t *grain, uint32_t *owners)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), marks;
	struct perfring_ring_state *state;

	if (!is_shared(ring))
		return NULL;
	state = perfring_ring_state_of(ring->page);
	*grain = PERFRING_LOAD(&state->grain);
	*owners = PERFRING_LOAD(&state->owners);
	if (*grain & (*grain - 1) || !*owners || *owners > OWNERS_LIMIT ||
	    (ring->flags & PERFRING_RING_LEASED ? *grain < 512 || *grain > ring->size / 4 : *grain != 8))
		return NULL;
	marks = ring->size / *grain * 8 * (ring->flags & PERFRING_RING_LEASED ? 2 : 1);
	marks = (marks + page - 1) & ~(page - 1);
	if (page + ring->span + marks + *owners * (uint64_t)PERFRING_OWNER_SIZE > ring->mapping_size)
		return NULL;
	return (struct perfring_owner_slot *)(void *)(ring->data + ring->span + marks);
}

int perfring_shared_owner_at(const struct perfring_ring *ring, uint32_t i, struct perfring_owner *owner)
{
	const struct perfring_owner_slot *slot;
	uint32_t grain, owners;
	int word;

	memset(owner, 0, sizeof(*owner));
	slot = tables_of(ring, &grain, &owners);
	if (!slot || i >= owners)
		return -EINVAL;
	slot += i;
	if (!PERFRING_LOAD_ACQUIRE(&slot->held.__data.__lock))
		return 0;
	owner->pid = PERFRING_LOAD(&slot->pid);
	owner->tid = PERFRING_LOAD(&slot->tid);
	owner->lives =
		!has_gone(slot) && !has_vanished(slot, perfring_identity_namespaces(), perfring_identity_boot(), &word);
	return 1;
}

int perfring_shared_prepare(const struct perfring_ring *ring)
{
	struct perfring_owner_slot *slots;
	pthread_mutexattr_t attr;
	uint32_t grain, owners, i;
	int error;

	slots = tables_of(ring, &grain, &owners);
	if (!slots)
		return -EINVAL;
	error = pthread_mutexattr_init(&attr);
	if (error)
		return -error;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (i = 0; i < owners && !error; i++) {
		slots[i].mutex_size = sizeof(slots[i].held);
		error = pthread_mutex_init(&slots[i].held, &attr);
	}
	pthread_mutexattr_destroy(&attr);
	return -error;
}

/* ---- opening and closing ---- */

/* Takes a free slot, or a dead writer's.  Its robust mutex stays locked by this thread until close. */
static int take_slot(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot;
	uint64_t before, none;
	bool cleared;
	uint32_t i;
	int error;

	for (i = 0; i < shared->owners; i++) {
		slot = &shared->slots[i];
		before = PERFRING_LOAD(&slot->identity);
		PERFRING_POINT(shared_sought);
		if (!has_gone(slot))
			continue;
		PERFRING_POINT(shared_found);
		/* Not the dead owner's any more, before the word is ours: mark_vanished.  It fails by one that was faster. */
		cleared = PERFRING_COMPARE_EXCHANGE(&slot->identity, &before, 0);
		PERFRING_POINT(shared_cleared);
		error = pthread_mutex_trylock(&slot->held);
		if (error && error != EOWNERDEAD) {
			/* Another has it.  If that is `before`, which has closed the slot and opened it again meanwhile, its
			 * identity is put back: without one nobody sees it vanish.  Only of a thread that lives: that is
			 * never taken for a vanished owner, whoever has the slot by now. */
			none = 0;
			if (cleared && before && perfring_identity_lives(before))
				PERFRING_COMPARE_EXCHANGE(&slot->identity, &none, before);
			continue;
		}
		PERFRING_POINT(shared_locked);
		shared->index = i;
		shared->slot = slot;
		/* Ours now, and to the others alive: if we end here, it is dead again, with what is left of its rooms. */
		recover_slot(shared);
		PERFRING_STORE(&slot->limit, 0);
		PERFRING_STORE(&slot->position, 0);
		PERFRING_STORE(&slot->lease, 0);
		PERFRING_STORE(&slot->behind, 0);
		PERFRING_STORE(&slot->settled, 0);
		PERFRING_STORE(&slot->busy, (uint8_t)0);
		PERFRING_STORE(&slot->since, perfring_os_clock_of(CLOCK_REALTIME));
		PERFRING_STORE(&slot->tid, (uint32_t)syscall(SYS_gettid));
		PERFRING_STORE(&slot->namespaces, shared->namespaces);
		PERFRING_STORE(&slot->pid, shared->pid);
		PERFRING_STORE(&slot->boot, shared->boot);
		PERFRING_STORE_RELEASE(&slot->identity, perfring_identity_own()); /* pairs with mark_vanished */
		PERFRING_POINT(shared_recovered);
		if (error)
			pthread_mutex_consistent(&slot->held);
		PERFRING_POINT(shared_consistent);
		return 0;
	}
	return -EUSERS;
}

static size_t private_size(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct perfring_shared) + page - 1) & ~(page - 1);
}

int perfring_shared_open(struct perfring_shared **result, struct perfring_ring *ring,
			 const struct perfring_writer_options *options)
{
	static const struct perfring_writer_options defaults = {.wake_fd = -1};
	struct perfring_owner_slot *slots;
	struct perfring_shared *shared;
	uint32_t grain, owners;
	int error;

	*result = NULL;
	if (!options)
		options = &defaults;
	slots = tables_of(ring, &grain, &owners);
	/* A process of the other word size has another mutex. */
	if (!slots || PERFRING_LOAD(&slots->mutex_size) != sizeof(slots->held) ||
	    ring->flags & PERFRING_RING_READ_ONLY || options->policy > PERFRING_WRITER_WAIT ||
	    !is_output(&options->output))
		return -EINVAL;
	shared = mmap(NULL, private_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -ENOMEM;
	madvise(shared, private_size(), MADV_WIPEONFORK);
	/* Not undone by close: other threads may have the ring open. */
	madvise(ring->mapping, (size_t)ring->mapping_size, MADV_DONTFORK);
	shared->data = ring->data;
	shared->mask = ring->size - 1;
	shared->largest = ((ring->size > RECORD_LIMIT ? RECORD_LIMIT : ring->size) - 8 - 8) / 8;
	shared->committed = &shared->nowhere;
	shared->state = perfring_ring_state_of(ring->page);
	shared->marks = (uint64_t *)(void *)(ring->data + ring->span);
	shared->table = shared->marks + ring->size / grain;
	shared->slots = slots;
	shared->owners = owners;
	shared->size_shift = (uint32_t)__builtin_ctzll(ring->size);
	shared->grain_shift = (uint32_t)__builtin_ctz(grain);
	shared->leased = ring->flags & PERFRING_RING_LEASED;
	shared->lost_fillers = ring->flags & PERFRING_RING_LOST_FILLERS;
	shared->watermark = PERFRING_LOAD(&shared->state->watermark);
	if (!shared->watermark || shared->watermark > ring->size)
		shared->watermark = ring->size / 2; /* scribbled over: the kernel's default */
	shared->policy = options->policy;
	shared->wait_ns = options->wait_ns;
	shared->wake_fd = options->wake_fd;
	shared->output = options->output;
	shared->output.lost = 0;
	shared->page = ring->page;
	shared->freed = perfring_page_observe(ring->page) - ring->size; /* nothing is known to be free */
	shared->pid = (uint32_t)getpid();
	shared->namespaces = perfring_identity_namespaces();
	if (shared->leased) {
		shared->bars_all = perfring_os_membarrier_has_system();
		shared->bars_own = shared->namespaces && perfring_os_membarrier_register();
	}
	shared->boot = perfring_identity_boot();
	error = take_slot(shared);
	if (error) {
		for (uint32_t i = 0; i < owners; i++)
			mark_vanished(shared, &slots[i]);
		error = take_slot(shared);
	}
	if (error) {
		munmap(shared, private_size());
		return error;
	}
	recover(shared);
	*result = shared;
	return 0;
}

void perfring_shared_close(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot;

	if (!shared)
		return;
	slot = shared->slot;
	if (shared->page) {
		if (shared->leased)
			close_own(shared);
		recover(shared);
		PERFRING_POINT(shared_ending);
		PERFRING_STORE(&slot->pid, 0);
		PERFRING_STORE(&slot->tid, 0);
		PERFRING_STORE(&slot->identity, 0);
		pthread_mutex_unlock(&slot->held);
	}
	munmap(shared, private_size());
}
