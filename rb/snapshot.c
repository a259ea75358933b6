/* snapshot.c - the records of a ring at one moment (docs/ring.md 5): a copy, and the walk over it.
 *
 * Only the copy is walked: a hostile writer can make its own records meaningless, but nothing else.
 *
 * Called by session/session_snapshot.c and by programs that keep the last moments of a ring.  Allocates the copy: not for signal
 * handlers.
 */
#include <perfring/snapshot.h>

#include <assert.h>
#include <stdlib.h>

#include "shared_private.h"

enum {
	TRIES = 16,
};

#define PASSED (UINT32_C(1) << 31) /* of a length, which is smaller */

/* The copy races with the writer.  Only that part is used which the positions, read after it, show to be unchanged. */
#if defined(__clang__) && __clang_major__ >= 14
#define RACES __attribute__((noinline, disable_sanitizer_instrumentation)) /* no_sanitize leaves atomics in */
#else
#define RACES __attribute__((noinline, no_sanitize("thread")))
#endif

/* The whole records in the copy. */
struct span {
	uint64_t begin;
	uint64_t end;
	bool exact; /* a record ends at `end`; else the oldest may reach beyond it */
};

static bool is_read_backward(const struct perfring_snapshot *snapshot)
{
	return snapshot->flags & PERFRING_RING_BACKWARD;
}

static bool overwrites(const struct perfring_snapshot *snapshot)
{
	return snapshot->flags & PERFRING_RING_OVERWRITE;
}

static bool is_own(const struct perfring_snapshot *snapshot)
{
	return snapshot->flags & PERFRING_RING_OWN;
}

/* The order of the words decides nothing: whatever was claimed until the copy's end is left out, also what was copied
 * before it was overwritten. */
RACES static void copy(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, uint64_t begin,
		       uint64_t end)
{
	uint64_t *copied = (uint64_t *)(void *)snapshot->data;
	uint64_t mask = ring->size - 1;

	for (uint64_t at = begin; at < end; at += 8)
		/* Relaxed: between the acquire of data_head and the load barrier. */
		copied[at / 8] = PERFRING_LOAD((const uint64_t __attribute__((
			__may_alias__)) *)(const void *)(ring->data + ((snapshot->from + at) & mask)));
}

static int corrupt(struct perfring_snapshot *snapshot, uint64_t at, const char *what)
{
	snapshot->fault.at = (int64_t)at;
	snapshot->fault.what = what;
	return -EBADMSG;
}

/* The end of the claimed space; of rings without that word, `published`.  Acquire: with a claim comes what was
 * published before it, so a data_head that has not moved cannot be more than a lap below. */
static uint64_t claimed_of(const struct perfring_ring *ring, uint64_t published)
{
	if (ring->flags & PERFRING_RING_OWN && ring->flags & PERFRING_RING_OVERWRITE)
		return PERFRING_LOAD_ACQUIRE(&perfring_ring_state_of(ring->page)->claimed);
	if (ring->flags & PERFRING_RING_OWN && ring->flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED))
		return shared_claimed_of(ring, published);
	return published;
}

/* One try at a backward ring.  -EAGAIN: the writer has lapped the copy.  Without OVERWRITE the writer
 * stops at data_tail. */
static int try_backward(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, struct span *span)
{
	static const char what[] = "more is said to be claimed than the ring holds";
	bool stops = !overwrites(snapshot), moved;
	uint64_t size = ring->size;
	uint64_t tail = perfring_page_reclaim(ring->page);
	uint64_t from = perfring_page_observe(ring->page); /* pairs with the writer's publish */
	uint64_t published = -from, unread = published + tail /* which is -(what was returned) */, uncommitted, taken,
		 returned;

	PERFRING_POINT(snapshot_observed);
	if (from & 7)
		return corrupt(snapshot, from, "data_head is between words");
	/* The kernel's data_head is negative for longer than a machine runs; on 32 bits it wraps.  Or the first record has
	 * come since try_once. */
	if (sizeof(long) == 8 && !is_own(snapshot) && (int64_t)from > 0)
		return ring->flags & PERFRING_RING_BACKWARD ? -EINVAL : -EAGAIN;
	/* Between the two loads the reader may have continued, and the writer with it. */
	if (stops && unread >= size && PERFRING_LOAD(&ring->page->data_tail) != tail)
		return -EAGAIN;
	uncommitted = claimed_of(ring, published) - published;
	if (uncommitted > size || uncommitted & 7)
		return PERFRING_LOAD(&ring->page->data_head) == from ? corrupt(snapshot, from, what) : -EAGAIN;

	snapshot->from = from;
	span->end = published < size - uncommitted ? published : size - uncommitted;
	/* Uncommitted bytes lie below data_head: at the copy's end, where perfring_snapshot_unfinished finds them. */
	copy(snapshot, ring, size - uncommitted, size);
	copy(snapshot, ring, 0, span->end);
	PERFRING_POINT(snapshot_copied);
	/* If the copy has a byte of a later record, the load below has a claim that includes it: pairs with the writer's
	 * barrier between its claim and the record's bytes. */
	PERFRING_FENCE_LOADS();
	taken = claimed_of(ring, published) - published;
	moved = PERFRING_LOAD(&ring->page->data_head) != from;
	if (moved && taken >= size)
		return -EAGAIN;
	if (taken > size || taken & 7)
		return corrupt(snapshot, from, what);

	if (span->end > size - taken)
		span->end = size - taken;
	span->exact = span->end == published;
	if (stops) {
		/* As in try_forward.  A wrong data_tail counts by its low bits, as for the writer (docs/abi.md 7.2). */
		unread &= size - 8;
		returned = tail - PERFRING_LOAD(&ring->page->data_tail);
		unread = returned < unread ? (unread - returned) & ~UINT64_C(7) : 0;
		if (span->end >= unread) {
			span->end = unread;
			span->exact = true;
		}
	}
	span->begin = 0;
	snapshot->published = published;
	/* if the writer has continued, the record that was uncommitted is published */
	snapshot->claimed = published + (moved ? 0 : uncommitted);
	return 0;
}

/* One try at a forward ring that knows where its first record begins: the reader has returned what is before, or, if it
 * overwrites, the writer has left it out. */
static int try_forward(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, struct span *span)
{
	const perfring_u64 *begin = overwrites(snapshot) ? &perfring_ring_state_of(ring->page)->oldest
							 : (const perfring_u64 *)&ring->page->data_tail;
	uint64_t returned = PERFRING_LOAD_ACQUIRE(begin); /* what was published before it comes with it */
	uint64_t published =
		is_own(snapshot) ? perfring_page_observe(ring->page) : perfring_page_observe_from(ring->page, returned);
	uint64_t now, claimed;

	PERFRING_POINT(snapshot_observed);
	if ((returned | published) & 7)
		return corrupt(snapshot, (returned & 7) ? returned : published,
			       "data_head, or where the first record begins, is between words");
	if (published - returned > ring->size) {
		/* Between the two loads the reader may have continued, and the writer with it. */
		if (PERFRING_LOAD(begin) != returned)
			return -EAGAIN;
		return corrupt(snapshot, published, "data_head is not between the first record and the ring's end");
	}
	snapshot->from = returned;
	span->begin = 0;
	span->end = published - returned;
	span->exact = true;
	copy(snapshot, ring, 0, span->end);
	PERFRING_POINT(snapshot_copied);
	/* The writer overwrites a byte of the copy only after it has loaded a data_tail above it; then the load below
	 * sees that data_tail or a later one, on every known processor.  `oldest` it stores itself, before a barrier. */
	PERFRING_FENCE_LOADS();
	claimed = claimed_of(ring, published);
	now = PERFRING_LOAD(begin);
	if (overwrites(snapshot) && now - returned >= span->end && now != returned)
		return -EAGAIN;
	span->begin = now - returned < span->end ? (now - returned) & ~UINT64_C(7) : span->end;
	snapshot->published = published;
	snapshot->claimed = claimed - published <= ring->size - (span->end - span->begin) ? claimed : published;
	if (overwrites(snapshot) && PERFRING_LOAD(&ring->page->data_head) != published)
		snapshot->claimed = published; /* the writer went on */
	return 0;
}

/* One try at a kernel's forward ring that overwrites: the bytes before data_head, at most a lap. */
static int try_kernel_forward(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, struct span *span)
{
	uint64_t published = perfring_page_observe(ring->page), passed;

	if (published & 7)
		return corrupt(snapshot, published, "data_head is between words");
	snapshot->from = published > ring->size ? published - ring->size : 0;
	span->end = published - snapshot->from;
	span->exact = true;
	copy(snapshot, ring, 0, span->end);
	PERFRING_POINT(snapshot_copied);
	PERFRING_FENCE_LOADS();
	passed = PERFRING_LOAD(&ring->page->data_head) - published;
	/* Of the lap's last bytes, free still, the writer takes some first. */
	span->begin = passed > ring->size - span->end ? passed - (ring->size - span->end) : 0;
	if (span->begin & 7 || (span->begin && span->begin >= span->end))
		return -EAGAIN;
	snapshot->published = snapshot->claimed = published;
	return 0;
}

/* ---- where the first record begins, which the kernel says nowhere ---- */

/* The size of a record that may begin there and end in the span; 0: none does. */
static uint64_t plausible_size(const struct perfring_snapshot *snapshot, uint64_t at, uint64_t end)
{
	struct perf_event_header header;

	memcpy(&header, snapshot->data + at, sizeof(header));
	if (!header.type || header.type >= PERFRING_RECORD_OF_PERF || header.size & 7 || header.size > end - at)
		return 0;
	return header.size;
}

/* Computes for each word how many records follow one another from there exactly to the span's end; 0: none. */
static void measure_chains(const struct perfring_snapshot *snapshot, const struct span *span, uint32_t *lengths)
{
	uint64_t size;

	for (uint64_t at = span->end; at > span->begin;) {
		at -= 8;
		size = plausible_size(snapshot, at, span->end);
		if (!size)
			lengths[at / 8] = 0;
		else if (at + size == span->end)
			lengths[at / 8] = 1;
		else
			lengths[at / 8] = lengths[(at + size) / 8] ? lengths[(at + size) / 8] + 1 : 0;
	}
}

/* The true chain begins at most a record's size after the span.  Where all that begin there have become one: what
 * follows is part of the true one. */
static uint64_t where_chains_meet(const struct perfring_snapshot *snapshot, const struct span *span, uint32_t *lengths)
{
	const uint64_t last = span->begin + PERFRING_RECORD_MAX - 8;
	uint64_t passing = 0, next; /* how many different records the chains that passed come to next */

	for (uint64_t at = span->begin; at < span->end; at += 8) {
		bool passed = lengths[at / 8] & PASSED;

		if (!passed && (at > last || !lengths[at / 8]))
			continue;
		passing -= passed;
		if (at > last && !passing)
			return at;
		next = at + plausible_size(snapshot, at, span->end);
		if (next == span->end)
			break;
		passing += !(lengths[next / 8] & PASSED);
		lengths[next / 8] |= PASSED;
	}
	return span->end;
}

/* The longest chain is taken for the true one.  Only bytes of a record that is partly overwritten can add to it, if they
 * look like headers whose sizes fit.  If no chain begins where the true one must, a record is damaged, and the
 * first chain after it is taken. */
static int find_first(struct perfring_snapshot *snapshot, struct span *span)
{
	static const char what[] = "records that do not follow one another up to data_head";
	uint64_t last = span->begin + PERFRING_RECORD_MAX - 8, first = span->begin, at;
	uint32_t *lengths;

	if (span->begin == span->end)
		return 0;
	lengths = span->end / 8 < PASSED ? calloc((size_t)(span->end / 8), sizeof(*lengths)) : NULL;
	if (!lengths)
		return -ENOMEM;
	measure_chains(snapshot, span, lengths);
	if (snapshot->from + span->begin == 0 && lengths[0]) {
		free(lengths); /* the first that was ever written */
		return 0;
	}
	for (at = span->begin; at < span->end && (at <= last || !lengths[first / 8]); at += 8)
		if (lengths[at / 8] > lengths[first / 8])
			first = at;
	if (!lengths[first / 8] || first > last || snapshot->from + span->begin == 0) {
		corrupt(snapshot, snapshot->from + span->begin, what);
		first = lengths[first / 8] ? first : span->end;
		snapshot->certain = snapshot->published;
	} else {
		snapshot->certain = snapshot->from + where_chains_meet(snapshot, span, lengths);
	}
	span->begin = first;
	free(lengths);
	return 0;
}

/* Walks over the records of the copy, and stores their places if there is memory for them.  Returns where it ended. */
static uint64_t walk(struct perfring_snapshot *snapshot, const struct span *span)
{
	struct perf_event_header header;
	uint64_t at = span->begin, left;
	const char *what = NULL;

	snapshot->count = 0;
	for (; (left = span->end - at) >= sizeof(header); at += header.size) {
		memcpy(&header, snapshot->data + at, sizeof(header));
		if (header.size == 0 && !is_own(snapshot))
			break; /* never written (docs/abi.md 7.8) */
		if (header.size < sizeof(header))
			what = "record smaller than its header";
		else if (header.size & 7)
			what = "record size is not a multiple of 8";
		else if (header.size > left && span->exact)
			what = "record longer than what was written";
		if (what || header.size > left)
			break;
		if (perfring_ring_is_filler(&header))
			continue;
		if (snapshot->places)
			snapshot->places[snapshot->count] = at;
		snapshot->count++;
	}
	if (what)
		corrupt(snapshot, snapshot->from + at, what);
	return at;
}

static void reverse(uint64_t *places, uint64_t count)
{
	uint64_t place, i;

	for (i = 0; i < count / 2; i++) {
		place = places[i];
		places[i] = places[count - 1 - i];
		places[count - 1 - i] = place;
	}
}

static int find(struct perfring_snapshot *snapshot, struct span *span)
{
	bool searched = overwrites(snapshot) && !is_read_backward(snapshot) && !is_own(snapshot);
	int ret = searched ? find_first(snapshot, span) : 0;
	uint64_t end;

	if (ret)
		return ret;
	end = walk(snapshot, span);
	if (snapshot->count) {
		snapshot->places = malloc((size_t)snapshot->count * sizeof(*snapshot->places));
		if (!snapshot->places)
			return -ENOMEM;
		walk(snapshot, span);
	}
	if (is_read_backward(snapshot)) {
		snapshot->oldest = snapshot->published - end;
	} else {
		snapshot->oldest = snapshot->from + span->begin;
		reverse(snapshot->places, snapshot->count);
	}
	if (!searched || snapshot->certain < snapshot->oldest)
		snapshot->certain = snapshot->oldest;
	return 0;
}

/* Whether the invariant holds: asserted after each snapshot, in builds without NDEBUG. */
static __attribute__((unused)) bool is_valid(const struct perfring_snapshot *snapshot)
{
	uint64_t published = snapshot->published - snapshot->oldest, claimed = snapshot->claimed - snapshot->oldest;

	if (published > claimed || claimed > snapshot->size || snapshot->certain - snapshot->oldest > published)
		return false;
	for (uint64_t i = 0; i < snapshot->count; i++)
		if (snapshot->places[i] + sizeof(struct perf_event_header) > snapshot->size)
			return false;
	return true;
}

/* A kernel's ring that overwrites is backward if its data_head is negative; on 32 bits, where that cannot be seen, always. */
static int try_once(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, struct span *span)
{
	if (is_own(snapshot) || !overwrites(snapshot))
		return is_read_backward(snapshot) ? try_backward(snapshot, ring, span)
						  : try_forward(snapshot, ring, span);
	snapshot->flags |= PERFRING_RING_BACKWARD;
	if (sizeof(long) != 8 || ring->flags & PERFRING_RING_BACKWARD ||
	    (int64_t)perfring_page_observe(ring->page) <= 0)
		return try_backward(snapshot, ring, span);
	snapshot->flags &= ~(uint64_t)PERFRING_RING_BACKWARD;
	return try_kernel_forward(snapshot, ring, span);
}

int perfring_snapshot_take(struct perfring_snapshot *snapshot, const struct perfring_ring *ring, unsigned tries)
{
	struct perfring_fault fault;
	struct span span;
	int ret;

	memset(snapshot, 0, sizeof(*snapshot));
	if (!ring->page || !ring->data || ring->size < 8)
		return -EINVAL;
	snapshot->size = ring->size;
	snapshot->flags = ring->flags;
	if (ring->size <= SIZE_MAX)
		snapshot->data = malloc((size_t)ring->size);
	if (!snapshot->data)
		return -ENOMEM;
	if (!tries)
		tries = TRIES;
	do
		ret = try_once(snapshot, ring, &span);
	while (ret == -EAGAIN && --tries);
	if (!ret)
		ret = find(snapshot, &span);
	if (ret) {
		fault = snapshot->fault;
		perfring_snapshot_close(snapshot);
		snapshot->fault = fault;
	}
	assert(ret || is_valid(snapshot));
	return ret;
}

void perfring_snapshot_close(struct perfring_snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->places);
	free(snapshot->data);
	memset(snapshot, 0, sizeof(*snapshot));
}

static const struct perf_event_header *record_at(const struct perfring_snapshot *snapshot, uint64_t place)
{
	return (const struct perf_event_header *)(const void *)(snapshot->data + place);
}

int perfring_snapshot_next(struct perfring_snapshot *snapshot, const struct perf_event_header **record)
{
	*record = NULL;
	if (!snapshot)
		return -EINVAL;
	if (snapshot->oldest_first == snapshot->count)
		return 0;
	*record = record_at(snapshot, snapshot->places[snapshot->count - ++snapshot->oldest_first]);
	return 1;
}

int perfring_snapshot_previous(struct perfring_snapshot *snapshot, const struct perf_event_header **record)
{
	*record = NULL;
	if (!snapshot)
		return -EINVAL;
	if (snapshot->newest_first == snapshot->count)
		return 0;
	*record = record_at(snapshot, snapshot->places[snapshot->newest_first++]);
	return 1;
}

int perfring_snapshot_unfinished(const struct perfring_snapshot *snapshot, uint64_t *position,
				 const struct perf_event_header **record, uint64_t *size)
{
	const struct perf_event_header *header;
	uint64_t left;

	*record = NULL;
	*size = 0;
	if (!snapshot)
		return -EINVAL;
	left = *position - snapshot->published;
	if (!left || left > snapshot->claimed - snapshot->published || left & 7)
		return 0;
	*size = left;
	if (is_read_backward(snapshot)) {
		header = record_at(snapshot, snapshot->size - left);
		if (header->size >= sizeof(*header) && !(header->size & 7) && header->size <= left &&
		    (header->type != PERFRING_FILLER_TYPE || header->misc == PERFRING_FILLER_MISC)) {
			*record = header;
			*size = header->size;
		}
	}
	*position -= *size;
	return 1;
}
