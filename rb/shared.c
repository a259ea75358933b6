/* shared.c - many threads and processes, and their signal handlers, write into one ring: shared.h has the words,
 * docs/ring.md 8 the states, the transitions, and why the protocol holds.
 *
 * In this order: marks, publishing, who lives, recovery, sealing, claims, the calls of STRICT and of LEASED rings, open and
 * close.  All but open and close run in signal handlers too: they allocate nothing and take no lock.  Words in the ring are
 * shared with other processes, whose writers are trusted, but may die at any instruction.
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
#include "output.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "shared_private.h"

enum {
	PAUSES_FIRST = 64, /* of the later of two claimers, doubled up to ... */
	PAUSES_LAST = 512,
	RECORD_LIMIT = 65536, /* records are smaller */
	SEALED_AT_ONCE = 32,
	LIMIT_PENDING = 1, /* below any record's end, as 0 is */
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
	CLAIM_SPACE = 1,    /* has a mark of its own, at claim->taken */
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
	uint64_t largest;     /* record, in words - 1: below the ring's size, even if the slot's limit is overwritten */
	uint64_t lease;       /* LEASED: where the chunk begins */
	perfring_u64 nowhere; /* `committed` without a chunk: written only if the slot's limit was overwritten */
	perfring_u64 freed;   /* the reader has returned what is below, as last seen */
	uint64_t *marks;      /* (size >> grain_shift) of them */
	uint64_t *table;      /* LEASED: as many positions: how far the chunk's owner has committed */
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
	uint32_t open; /* claims that are spaces, from before they are made until they are closed */
	uint32_t policy;
	int32_t wake_fd;
	bool leased;
	bool bars_own, bars_all; /* LEASED: membarrier(2) works for threads of this process, of all */
	bool call;               /* LEASED: a wakeup is due when the chunk is published */
	bool lost_fillers;       /* then records are at least as long as a LOST record */
	struct perfring_output output;
};

/* ---- marks ---- */

static uint64_t *mark_at(const struct perfring_shared *shared, uint64_t position)
{
	return &shared->marks[(position & shared->mask) >> shared->grain_shift];
}

/* Adjacent chunks, which are filled at the same time, have their words in different cache lines. */
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

/* Whether a mark is of the space that begins at `position`, in its lap. */
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

/* The mark of the same space with this slot as its owner, after a take-over. */
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
	unsigned char *space = shared->data + (position & shared->mask);

	if (shared->lost_fillers && size)
		filler_put_lost(space, size);
	else
		filler_put(space, size);
}

static uint64_t space_start(const struct perfring_shared *shared, uint64_t position)
{
	return position >> shared->grain_shift << shared->grain_shift;
}

/* How far a chunk that is not done is complete: a position in it, or its start. */
static uint64_t finished_in(const struct perfring_shared *shared, uint64_t start, uint64_t bytes)
{
	uint64_t committed;

	if (!shared->leased)
		return start;
	/* Acquire: the records; pairs with the release of the owner's commit.  Ordered, after the exchange of
	 * data_head: pairs with the fence of a commit that wakes. */
	committed = PERFRING_LOAD_ORDERED(committed_at(shared, start)) & ~UINT64_C(7);
	/* What an earlier lap left there is at most `start`. */
	return committed - start <= bytes ? committed : start;
}

/* ---- publishing ---- */

bool perfring__shared_is_valid(const struct perfring_shared *shared)
{
	/* Each word only grows, so what is loaded later may be larger: data_tail <= data_head <= claimed, and before them claimed <=
	 * data_tail + size - 8. */
	uint64_t before = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	uint64_t tail = perfring_page_reclaim(shared->page), head = perfring_page_observe(shared->page);
	uint64_t end = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));

	return (int64_t)(head - tail) >= 0 && (int64_t)(end - head) >= 0 &&
	       (int64_t)(before - tail) <= (int64_t)(shared->mask + 1 - 8);
}

/* docs/abi.md 7.3, step 7, after data_head has moved: the stamp grows once for each space.  The reader is woken before
 * the stamp moves, so that no wakeup is lost if this thread is killed or stopped in between. */
static void wake(struct perfring_shared *shared, uint64_t position, uint64_t spaces, bool call)
{
	struct perfring_ring_state *state = shared->state;
	uint64_t stamp = PERFRING_LOAD(&state->wakeup);
	bool woken = false;

	/* Signed: another may have published more, and moved the stamp past our position. */
	while (spaces && (int64_t)(position - stamp) > 0 && position - stamp > shared->watermark) {
		if (!woken)
			perfring_wakeup_raise(shared->page, shared->wake_fd);
		woken = true;
		if (!PERFRING_COMPARE_EXCHANGE(&state->wakeup, &stamp, stamp + shared->watermark))
			continue;
		PERFRING_POINT(shared_stamped);
		stamp += shared->watermark;
		spaces--;
	}
	/* After the exchange of data_head, both ordered: a reader that armed itself later sees the records. */
	if (!woken && (call || PERFRING_LOAD_ORDERED(&state->armed) & PERFRING_WAKEUP_RECORD))
		perfring_wakeup_raise(shared->page, shared->wake_fd);
}

/* Moves data_head over everything that is finished.  Returns whether it has moved. */
static bool publish(struct perfring_shared *shared)
{
	bool moved = false;

	for (;;) {
		/* Ordered, after the exchange of `done` or of data_head: so are the loads of the marks. */
		__u64 published = PERFRING_LOAD_ORDERED(&shared->page->data_head);
		uint64_t end = published, start = space_start(shared, published), spaces = 0, bytes, mark, finished;
		bool call = false;

		for (;;) {
			/* Acquire: the record before `done`; pairs with the exchange in finish. */
			mark = PERFRING_LOAD_ORDERED(mark_at(shared, start));
			if (!is_of(shared, mark, start))
				break;
			bytes = bytes_of(shared, mark);
			if (start + bytes - published > shared->mask + 1)
				break; /* overwritten */
			if (!(mark & MARK_DONE)) {
				/* Never to its end: data_head stays below the end of a space that is not done. */
				finished = finished_in(shared, start, bytes);
				if (finished > end && finished - start < bytes) {
					end = finished;
					spaces++;
				}
				break;
			}
			call |= mark & MARK_CALL;
			spaces++;
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
		wake(shared, end, spaces, call);
		PERFRING_POINT(shared_woken);
	}
}

/* The space is complete, and `mark` says that it is ours. */
static void finish(struct perfring_shared *shared, uint64_t start, uint64_t mark)
{
	uint64_t end = start + bytes_of(shared, mark);
	__u64 published = PERFRING_LOAD_ORDERED(&shared->page->data_head);

	/* The first unpublished space needs no mark: only its owner moves data_head out of it. */
	while (space_start(shared, published) == start) {
		PERFRING_POINT(shared_first);
		/* Release: pairs with the reader's observe.  Fails if another has published a part of the chunk. */
		if (!PERFRING_COMPARE_EXCHANGE(&shared->page->data_head, &published, end))
			continue;
		PERFRING_POINT(shared_published);
		wake(shared, end, 1, mark & MARK_CALL);
		PERFRING_POINT(shared_woken);
		/* Ordered, after the exchange: who claims the next space later finds it the first. */
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

/* By the lock word, which a handler may read: the owner's thread id, FUTEX_OWNER_DIED if the kernel has seen it end, 0
 * after close.  Acquire: what the dead thread stored is seen. */
static bool has_gone(const struct perfring_owner_slot *slot)
{
	uint32_t word = (uint32_t)PERFRING_LOAD_ACQUIRE(&slot->held.__data.__lock);

	return (word & FUTEX_OWNER_DIED) || !(word & FUTEX_TID_MASK);
}

/* Whether the owner has ended and the kernel could not mark its mutex: the ring was unmapped, or the machine went down.
 * `word`: the lock word that this holds for.  Word and identity belong to one owner: docs/ring.md 8. */
static bool has_vanished(const struct perfring_owner_slot *slot, uint64_t namespaces, uint64_t boot, int *word)
{
	uint64_t identity, its_boot;

	*word = PERFRING_LOAD_ACQUIRE(&slot->held.__data.__lock);
	identity = PERFRING_LOAD_ACQUIRE(&slot->identity); /* pairs with take_slot: `boot` is the same owner's */
	its_boot = PERFRING_LOAD(&slot->boot);
	if (!identity || perfring__identity_tid(identity) != ((uint32_t)*word & FUTEX_TID_MASK))
		return false;
	if (its_boot && boot && its_boot != boot)
		return true;
	return namespaces && PERFRING_LOAD(&slot->namespaces) == namespaces && !perfring__identity_lives(identity);
}

/* Marks its mutex as the kernel would. */
static void mark_vanished(const struct perfring_shared *shared, struct perfring_owner_slot *slot)
{
	int word;

	if (!has_vanished(slot, shared->namespaces, shared->boot, &word))
		return;
	PERFRING_POINT(shared_vanished);
	PERFRING_COMPARE_EXCHANGE(&slot->held.__data.__lock, &word, (int)FUTEX_OWNER_DIED);
}

/* Whether it is time to ask /proc again, which takes some 20 us. */
static bool may_ask(struct perfring_shared *shared)
{
	uint64_t time = perfring__os_clock_now();

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

/* Gives the last space its mark, unless it is published: before another space follows it, and before it is completed
 * for a dead owner.  Returns false if another was claimed since, whose claimer did the same. */
static bool mark_claimed(struct perfring_shared *shared, uint64_t claimed)
{
	uint64_t bytes = (claimed >> SHARED_SIZE_AT & SHARED_SIZE) << shared->grain_shift;
	uint64_t end = end_of(shared, claimed), start = end - bytes, mark, *place;

	if (!bytes || (int64_t)(end - perfring_page_observe(shared->page)) <= 0)
		return true;
	place = mark_at(shared, start);
	for (;;) {
		/* Acquire: before the look at `claimed`.  If that has not changed, the mark is not of a later lap. */
		mark = PERFRING_LOAD_ACQUIRE(place);
		if (PERFRING_LOAD(&shared->state->claimed) != claimed)
			return false;
		PERFRING_POINT(shared_looked);
		if (is_of(shared, mark, start))
			return true;
		/* It fails if another thread did the same, or was late by a lap: check again. */
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

/* Takes over a space whose mark is `mark`, and completes it by fillers.  The first to do so counts the loss. */
static bool take(struct perfring_shared *shared, uint64_t start, uint64_t mark, bool sealing)
{
	const struct perfring_owner_slot *slot = &shared->slots[owner_of(mark)];
	uint64_t mine = taken_mark(shared, mark), bytes = bytes_of(shared, mark), from, lost = 1;

	/* Before the exchange: a slot is not used again as long as one space has its number. */
	if (shared->leased && PERFRING_LOAD(&slot->lease) == start + LEASE)
		lost = PERFRING_LOAD(&slot->position) == PERFRING_LOAD(committed_at(shared, start))
			       ? 0
			       : PERFRING_LOAD(&slot->busy) +
					 (PERFRING_LOAD(&slot->nested) - PERFRING_LOAD(&slot->settled));
	if (!PERFRING_COMPARE_EXCHANGE(mark_at(shared, start), &mark, mine))
		return false;
	PERFRING_POINT(shared_taken);
	/* It was the first unpublished space; its owner published it before the exchange, and ended. */
	if ((int64_t)(start + bytes - perfring_page_observe(shared->page)) <= 0)
		return true;
	if (!sealing && !(mark & MARK_TURNS) && lost) {
		PERFRING_ADD(&shared->state->abandoned, 1);
		count_lost(shared->state, lost);
	}
	PERFRING_POINT(shared_lost_counted);
	from = finished_in(shared, start, bytes);
	fill(shared, from, start + bytes - from);
	PERFRING_POINT(shared_filled);
	finish(shared, start, mine);
	return true;
}

/* Whether the first unpublished space was a dead writer's, and is complete now. */
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

/* Publishes, and completes what dead writers hold back. */
static void recover(struct perfring_shared *shared)
{
	bool ask = may_ask(shared);
	uint64_t start, until;

	mark_last(shared);
	/* not what is claimed later: so this ends while others write */
	until = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	do {
		publish(shared);
		start = space_start(shared, perfring_page_observe(shared->page));
		PERFRING_POINT(shared_recovering);
		if (recover_first(shared, start, ask))
			continue;
		/* if its owner has published it meanwhile, a dead writer's space may follow */
		if (space_start(shared, perfring_page_observe(shared->page)) == start)
			return;
	} while ((int64_t)(until - start) > 0);
}

/* Walks over the spaces that are not published yet, up to the one at `until`. */
static bool next_space(const struct perfring_shared *shared, uint64_t *start, uint64_t *mark, uint64_t until)
{
	uint64_t published;

	while (until - *start <= shared->mask + 1) {
		*mark = PERFRING_LOAD_ACQUIRE(mark_at(shared, *start));
		if (is_of(shared, *mark, *start))
			return bytes_of(shared, *mark) <= shared->mask;
		published = space_start(shared, perfring_page_observe(shared->page));
		/* Published since, and claimed again: continue at data_head. */
		if (published - *start - 1 > shared->mask)
			return false;
		*start = published;
	}
	return false;
}

/* Before a dead writer's slot is used again: completes all its spaces. */
static void recover_slot(struct perfring_shared *shared)
{
	uint64_t start = space_start(shared, perfring_page_observe(shared->page));
	uint64_t until, mark;

	mark_last(shared);
	until = end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed));
	for (; next_space(shared, &start, &mark, until); start += bytes_of(shared, mark))
		if (!(mark & MARK_DONE) && owner_of(mark) == shared->index) {
			take(shared, start, mark, false);
			PERFRING_POINT(shared_reopening);
		}
}

/* ---- sealing ---- */

/* Whether the slow barrier is needed: the slot is another process's, or this process may not use the fast one. */
static bool is_foreign(const struct perfring_shared *shared, const struct perfring_owner_slot *slot)
{
	return !shared->bars_own || PERFRING_LOAD(&slot->pid) != shared->pid ||
	       PERFRING_LOAD(&slot->namespaces) != shared->namespaces;
}

/* Completes the chunks before `until` of living writers that have no uncommitted record in them. */
static bool seal(struct perfring_shared *shared, uint64_t until)
{
	struct {
		uint64_t start, mark;
	} found[SEALED_AT_ONCE];
	uint64_t start = space_start(shared, perfring_page_observe(shared->page)), mark;
	struct perfring_owner_slot *slot;
	uint32_t count = 0, settled, i;
	bool sealed = false, foreign = false;
	int saved = errno;

	for (; count < SEALED_AT_ONCE && next_space(shared, &start, &mark, until); start += bytes_of(shared, mark)) {
		if (mark & MARK_DONE || owner_of(mark) == shared->index || owner_of(mark) >= shared->owners)
			continue;
		slot = &shared->slots[owner_of(mark)];
		/* Acquire: pairs with the release in reserve_leased_slow, which comes after its store of the limit. */
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
	/* docs/ring.md 8.  Partner: the owner's compiler barrier between its store of busy and load of the limit. */
	if (!(foreign ? perfring__os_membarrier_system() : perfring__os_membarrier_process()))
		count = 0;
	errno = saved;
	PERFRING_POINT(shared_barred);
	for (i = 0; i < count; i++) {
		slot = &shared->slots[owner_of(found[i].mark)];
		/* In this order: pairs with the releases of leave_chunk and settle_nested. */
		if (PERFRING_LOAD_ACQUIRE(&slot->busy))
			continue;
		settled = PERFRING_LOAD_ACQUIRE(&slot->settled);
		if (settled != PERFRING_LOAD(&slot->nested))
			continue;
		PERFRING_POINT(shared_idle);
		sealed |= take(shared, found[i].start, found[i].mark, true);
	}
	return sealed;
}

/* ---- claiming a space ---- */

/* Whether `bytes` more fit at `position` (docs/abi.md 7.2): a ring is never full to the last byte.  As in the kernel,
 * only the low bits of data_tail count, below what is published. */
static bool fits(struct perfring_shared *shared, uint64_t position, uint64_t bytes)
{
	uint64_t published, back, freed;

	if (position - PERFRING_LOAD(&shared->freed) <= shared->mask - bytes)
		return true; /* as last seen, which can only be too low */
	do {
		published = perfring_page_observe(shared->page);
		back = perfring_page_reclaim(shared->page);
		/* both of one moment: a data_tail that has passed `published` would count as a lap less */
	} while (perfring_page_observe(shared->page) != published);
	freed = published - ((published - back) & shared->mask);
	PERFRING_STORE(&shared->freed, freed); /* it may replace a handler's later value, and is too low then */
	return position - freed <= shared->mask - bytes;
}

/* Claims `bytes`, a multiple of the grain below the ring's size.  Returns false when the ring is full. */
static bool claim_space(struct perfring_shared *shared, uint64_t bytes, uint64_t *start)
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
			/* not by a stale position */
			if (PERFRING_LOAD_ACQUIRE(word) == claimed)
				return false;
			continue;
		}
		if (PERFRING_COMPARE_EXCHANGE(word, &claimed, new_claimed(shared, position + bytes, bytes)))
			break;
		/* Another thread claims at the same time: cache lines move less often if one of the two pauses. */
		for (i = 0; i < pauses; i++)
			PERFRING_RELAX();
		if (pauses < PAUSES_LAST)
			pauses *= 2;
	}
	PERFRING_POINT(shared_claimed);
	/* to publish a part of a chunk, and to seal it, needs its mark */
	if (shared->leased)
		mark_claimed(shared, new_claimed(shared, position + bytes, bytes));
	PERFRING_POINT(shared_moved);
	*start = position;
	return true;
}

/* Before a record is refused: publishes what can be, so that the reader can return space.  Seals once for a space, and
 * again only if it is an idle chunk: no writer spins for an owner that is in a record. */
static void relieve(struct perfring_shared *shared)
{
	const struct perfring_owner_slot *slot;
	uint64_t start, mark;

	recover(shared);
	if (!shared->leased)
		return;
	start = space_start(shared, perfring_page_observe(shared->page));
	mark = PERFRING_LOAD_ACQUIRE(mark_at(shared, start));
	if (!is_of(shared, mark, start) || mark & MARK_DONE || owner_of(mark) >= shared->owners)
		return;
	slot = &shared->slots[owner_of(mark)];
	if (mark == PERFRING_LOAD(&shared->refused_at) &&
	    (PERFRING_LOAD(&slot->lease) != start + LEASE || PERFRING_LOAD(&slot->busy) ||
	     PERFRING_LOAD(&slot->settled) != PERFRING_LOAD(&slot->nested)))
		return;
	PERFRING_STORE(&shared->refused_at, mark);
	if (seal(shared, end_of(shared, PERFRING_LOAD_ACQUIRE(&shared->state->claimed))))
		recover(shared);
}

/* As claim_space, then by the policy when the ring is full.  `alone`: this thread has no uncommitted record. */
static bool obtain(struct perfring_shared *shared, uint64_t bytes, bool alone, uint64_t *start)
{
	struct timespec nap = {0, 20000};
	uint64_t begun = 0;
	int saved = errno;

	if (claim_space(shared, bytes, start))
		return true;
	for (;;) {
		relieve(shared);
		PERFRING_POINT(shared_relieved);
		if (claim_space(shared, bytes, start))
			return true;
		if (shared->policy != PERFRING_WRITER_WAIT || !alone || PERFRING_LOAD(&shared->state->paused))
			return false;
		if (!begun) {
			begun = perfring__os_clock_now();
			/* The reader may sleep until a watermark that cannot be reached. */
			perfring_wakeup_raise(shared->page, shared->wake_fd);
		}
		if (perfring__os_clock_now() - begun >= shared->wait_ns)
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

/* Bytes that a claim needs besides its record (docs/abi.md 7.3, step 3). */
static uint64_t lost_due(const struct perfring_shared *shared, const struct perfring_output *output)
{
	return PERFRING_UNLIKELY(PERFRING_LOAD(&shared->state->lost)) ? lost_size(output) : 0;
}

static void put_lost(struct perfring_shared *shared, const struct perfring_output *output, uint64_t position)
{
	/* Now, not when it was reserved: it may be 0 (docs/abi.md 7.3, step 8). */
	lost_put(output, PERFRING_EXCHANGE(&shared->state->lost, 0), shared->data + (position & shared->mask));
	PERFRING_POINT(shared_lost_reported);
}

/* ---- records that are spaces: each of a STRICT ring ---- */

static void *reserve_space(struct perfring_shared *shared, struct perfring_output *output, uint64_t size, bool alone,
			   struct perfring_claim *claim)
{
	uint64_t lost = lost_due(shared, output), grain = UINT64_C(1) << shared->grain_shift, start;
	uint64_t bytes = (size + lost + grain - 1) >> shared->grain_shift << shared->grain_shift;

	/* Before the claim: a handler after it is not alone.  Handlers restore the value that they find. */
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
	claim->state = CLAIM_SPACE;
	claim->taken = start;
	claim->end = start + bytes;
	claim->size = size;
	claim->output = output;
	claim->space = shared->data + ((start + lost) & shared->mask);
	PERFRING_POINT(shared_given);
	return claim->space;
}

/* Counts a record that is a sample.  Returns whether a wakeup is due. */
static bool count_sample(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	if (!sample_is_due(claim->output->wakeup_events, claim->space, &shared->state->events))
		return false;
	PERFRING_ADD(&shared->state->wakeup, 1);
	return true;
}

static void commit_space(struct perfring_shared *shared, const struct perfring_claim *claim, bool call)
{
	uint64_t mark = new_mark(shared, claim->taken, claim->end - claim->taken);

	finish(shared, claim->taken, call ? mark | MARK_CALL : mark);
	PERFRING_STORE(&shared->open, PERFRING_LOAD(&shared->open) - 1);
	PERFRING_POINT(shared_alone);
}

/* ---- LEASED: the chunk ---- */

/* Called by the outermost writer, with `busy` set: moves `committed` over what nested writers committed. */
static void settle_nested(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot = shared->slot;
	uint32_t nested = PERFRING_LOAD(&slot->nested);

	/* Nothing nested: then the chunk may be sealed already, and its word another owner's. */
	if (nested == PERFRING_LOAD(&slot->settled))
		return;
	PERFRING_FENCE_LOCAL(); /* what is counted is below `position` */
	PERFRING_STORE_RELEASE(shared->committed, PERFRING_LOAD(&shared->slot->position));
	PERFRING_POINT(shared_settling);
	PERFRING_STORE_RELEASE(&slot->settled, nested);
}

/* Called by the outermost writer: clears `busy`.  A handler before that is nested, and is seen in `nested`; one after it settles for
 * itself and for the interrupted record. */
static void leave_chunk(struct perfring_shared *shared)
{
	struct perfring_owner_slot *slot = shared->slot;

	for (;;) {
		PERFRING_STORE_RELEASE(&slot->busy, (uint8_t)0); /* pairs with seal */
		PERFRING_FENCE_LOCAL();
		PERFRING_POINT(shared_left);
		if (PERFRING_LIKELY(PERFRING_LOAD(&slot->nested) == PERFRING_LOAD(&slot->settled)))
			return;
		PERFRING_STORE(&slot->busy, (uint8_t)1);
		PERFRING_FENCE_LOCAL();
		settle_nested(shared);
	}
}

/* Called by the outermost writer, when the chunk has no uncommitted record: ends it, so that it takes no more. */
static void close_chunk(struct perfring_shared *shared)
{
	uint64_t grain = UINT64_C(1) << shared->grain_shift, start = shared->lease, end, mark, mine;

	PERFRING_STORE(&shared->slot->limit, 0);
	PERFRING_FENCE_LOCAL(); /* a handler whose record still fitted is below the position that is read now */
	PERFRING_POINT(shared_closing);
	if (shared->committed == &shared->nowhere)
		return;
	settle_nested(shared);
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
	claim->space = shared->data + ((end - size) & shared->mask);
	return claim->space;
}

/* A record that ends at `end` did not fit into the chunk. */
static void *reserve_leased_slow(struct perfring_shared *shared, struct perfring_output *output, uint64_t size,
				 uint64_t end, uint8_t depth, struct perfring_claim *claim)
{
	uint64_t grain = UINT64_C(1) << shared->grain_shift, lost, start;
	struct perfring_owner_slot *slot = shared->slot;
	void *space;

	/* Take it back.  That fails only if a handler has reserved after it, below a limit that a sealer has since set
	 * to 0: then this record fits as well, and the sealer will find `busy` set. */
	if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&shared->slot->position, end, end - size)) {
		PERFRING_POINT(shared_kept);
		return give_leased(shared, output, size, end, depth, claim);
	}
	PERFRING_POINT(shared_undone);
	if (depth) {
		/* The chunk has an uncommitted record, so it cannot be closed, but later records may not go into it.
		 * From here on this record is protected by its mark, not by `busy`. */
		PERFRING_STORE(&slot->limit, 0);
		PERFRING_FENCE_LOCAL();
		PERFRING_STORE(&slot->busy, depth);
		PERFRING_FENCE_LOCAL();
		return reserve_space(shared, output, size, false, claim);
	}
	close_chunk(shared);
	lost = lost_due(shared, output);
	if (size + lost > grain) {
		space = reserve_space(shared, output, size, !PERFRING_LOAD(&shared->open), claim);
		leave_chunk(shared);
		return space;
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
	/* First the position, with this record's space, then the limit: handlers come after it.  A handler that has
	 * since taken a space of its own after this chunk has set the limit to 0: later records may not go into the
	 * chunk.  (A late sealer may have done so too, which does no harm.) */
	PERFRING_STORE(&shared->slot->position, start + size);
	PERFRING_FENCE_LOCAL();
	PERFRING_POINT(shared_leased);
	PERFRING_COMPARE_EXCHANGE_LOCAL(&slot->limit, LIMIT_PENDING, shared->lease + grain);
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

	/* a handler between the load and the store is outermost, and has left when this continues */
	depth = PERFRING_LOAD(&slot->busy);
	PERFRING_STORE(&slot->busy, (uint8_t)(depth + 1));
	PERFRING_FENCE_LOCAL(); /* busy before the load of the limit: pairs with the sealer's membarrier */
	PERFRING_POINT(shared_busy);
	end = PERFRING_ADD_LOCAL(&shared->slot->position, size) + size;
	PERFRING_POINT(shared_added);
	if (PERFRING_UNLIKELY(end > PERFRING_LOAD(&slot->limit)))
		return reserve_leased_slow(shared, output, size, end, depth, claim);
	return give_leased(shared, output, size, end, depth, claim);
}

/* Closes this thread's own chunk, unless it has an uncommitted record there. */
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
		PERFRING_STORE(&slot->nested, PERFRING_LOAD(&slot->nested) + 1);
		PERFRING_FENCE_LOCAL();
		PERFRING_POINT(shared_nested);
		PERFRING_STORE(&slot->busy, depth);
		return;
	}
	PERFRING_STORE_RELEASE(shared->committed, claim->end); /* pairs with finished_in */
	PERFRING_POINT(shared_committed);
	leave_chunk(shared);
	if (PERFRING_UNLIKELY(shared->call)) {
		if (claim->end == shared->lease + (UINT64_C(1) << shared->grain_shift))
			close_own(shared);
		/* `committed` before the load of data_head: a thread that exchanges data_head later sees it.  `call`
		 * stays set until the whole chunk is published. */
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
	/* One comparison: a size that is too small, or not a multiple of 8, becomes large. */
	if (PERFRING_UNLIKELY(((size - 8) >> 3 | (size - 8) << 61) > shared->largest ||
			      (shared->lost_fillers && size < LOST_SIZE) || PERFRING_LOAD(&shared->state->paused))) {
		refuse(shared, output);
		return NULL;
	}
	if (shared->leased)
		return reserve_leased(shared, output, size, claim);
	return reserve_space(shared, output, size, !PERFRING_LOAD(&shared->open), claim);
}

void perfring_shared_commit(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	if (PERFRING_UNLIKELY(!shared->page))
		return;
	PERFRING_POINT(shared_encoded);
	if (claim->state & CLAIM_SPACE)
		commit_space(shared, claim, count_sample(shared, claim));
	else
		commit_leased(shared, claim);
}

void perfring_shared_discard(struct perfring_shared *shared, const struct perfring_claim *claim)
{
	uint8_t depth = (uint8_t)(claim->state >> CLAIM_DEPTH_AT);

	if (PERFRING_UNLIKELY(!shared->page))
		return;
	if (!(claim->state & CLAIM_SPACE) &&
	    PERFRING_COMPARE_EXCHANGE_LOCAL(&shared->slot->position, claim->end, claim->end - claim->size)) {
		PERFRING_POINT(shared_discarded);
		if (depth)
			PERFRING_STORE(&shared->slot->busy, depth);
		else
			leave_chunk(shared);
		return;
	}
	fill(shared, (uint64_t)((unsigned char *)claim->space - shared->data), claim->size);
	if (claim->state & CLAIM_SPACE)
		commit_space(shared, claim, false);
	else if (depth) /* the record that follows covers both */
		PERFRING_STORE_RELEASE(&shared->slot->busy, depth);
	else
		commit_leased(shared, claim);
}

bool perfring_shared_write(struct perfring_shared *shared, struct perfring_output *output, const void *record,
			   uint64_t size)
{
	struct perfring_claim claim;
	void *space = perfring_shared_reserve(shared, output, size, &claim);

	if (PERFRING_UNLIKELY(!space))
		return false;
	memcpy(space, record, (size_t)size);
	perfring_shared_commit(shared, &claim);
	return true;
}

void perfring_shared_flush(struct perfring_shared *shared)
{
	uint64_t until;

	if (!shared->page)
		return;
	/* not what is claimed later: so this ends while others write */
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

/* ---- the ring's counts and owners ---- */

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

/* The slots, or NULL.  The sizes of the tables are read once, and checked against the mapping. */
static struct perfring_owner_slot *tables_of(const struct perfring_ring *ring, uint32_t *grain, uint32_t *owners)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), marks;
	struct perfring_ring_state *state;

	if (!is_shared(ring))
		return NULL;
	state = perfring_ring_state_of(ring->page);
	*grain = PERFRING_LOAD(&state->grain);
	*owners = PERFRING_LOAD(&state->owners);
	if (!*owners || *owners > PERFRING_OWNERS_MAX || !perfring__ring_is_grain(ring->flags, *grain, ring->size))
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
	owner->is_alive = !has_gone(slot) &&
			  !has_vanished(slot, perfring__identity_namespaces(), perfring__identity_boot(), &word);
	return 1;
}

int perfring__shared_prepare(const struct perfring_ring *ring)
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

/* Takes a free slot, or a dead writer's.  This thread holds its robust mutex until close. */
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
		/* see has_vanished; it fails if another thread was faster */
		cleared = PERFRING_COMPARE_EXCHANGE(&slot->identity, &before, 0);
		PERFRING_POINT(shared_cleared);
		error = pthread_mutex_trylock(&slot->held);
		if (error && error != EOWNERDEAD) {
			/* Another thread has it.  It may be `before`, which has closed the slot and opened it again:
			 * its identity is put back, without which no thread sees it vanish.  Only while it lives: then
			 * it is not taken for a vanished owner, even if the slot has another owner by now. */
			none = 0;
			if (cleared && before && perfring__identity_lives(before))
				PERFRING_COMPARE_EXCHANGE(&slot->identity, &none, before);
			continue;
		}
		PERFRING_POINT(shared_locked);
		shared->index = i;
		shared->slot = slot;
		/* If this thread ends here, the slot is a dead owner's again, with the spaces that are left. */
		recover_slot(shared);
		PERFRING_STORE(&slot->limit, 0);
		PERFRING_STORE(&slot->position, 0);
		PERFRING_STORE(&slot->lease, 0);
		PERFRING_STORE(&slot->nested, 0);
		PERFRING_STORE(&slot->settled, 0);
		PERFRING_STORE(&slot->busy, (uint8_t)0);
		PERFRING_STORE(&slot->since, perfring__os_clock_of(CLOCK_REALTIME));
		PERFRING_STORE(&slot->tid, (uint32_t)syscall(SYS_gettid));
		PERFRING_STORE(&slot->namespaces, shared->namespaces);
		PERFRING_STORE(&slot->pid, shared->pid);
		PERFRING_STORE(&slot->boot, shared->boot);
		PERFRING_STORE_RELEASE(&slot->identity, perfring__identity_own()); /* pairs with mark_vanished */
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
	/* mutex_size: a process of the other word size has another mutex */
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
		shared->watermark = ring->size / 2; /* overwritten: the kernel's default */
	shared->policy = options->policy;
	shared->wait_ns = options->wait_ns;
	shared->wake_fd = options->wake_fd;
	shared->output = options->output;
	shared->output.lost = 0;
	shared->page = ring->page;
	shared->freed = perfring_page_observe(ring->page) - ring->size; /* no space is known to be free */
	shared->pid = (uint32_t)getpid();
	shared->namespaces = perfring__identity_namespaces();
	if (shared->leased) {
		shared->bars_all = perfring__os_membarrier_has_system();
		shared->bars_own = shared->namespaces && perfring__os_membarrier_register();
	}
	shared->boot = perfring__identity_boot();
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
