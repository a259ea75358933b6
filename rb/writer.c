/* writer.c - the slow paths of a writer (docs/ring.md 3): the kernel's algorithm (docs/abi.md 7.2 to 7.7).
 *
 * A handler may interrupt any line and run the same code.  They share words that are private to the thread, so program
 * order is enough (access.h).  Comments say what a handler at that place finds, or leaves.
 *
 * The inlines of writer.h come here when a comparison with `limit` fails.  In this order: losses, leaving, the limit, reserving,
 * committing, calls from other threads, opening and closing.
 */
#include <perfring/writer.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <perfring/wakeup.h>

#include "filler.h"
#include "identity.h"
#include "output.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "writer_private.h"

enum {
	STATE = 7, /* enum perfring_claim_state, the low three bits of `end` */
};

static struct perfring_ring_state *state_of(const struct perfring_writer *writer)
{
	return perfring_ring_state_of(writer->page);
}

static bool is_backward(const struct perfring_writer *writer)
{
	return writer->flags & PERFRING_RING_BACKWARD;
}

/* Every running thread of this process passes a full barrier.  If membarrier is refused: no barrier; a record may pass the old
 * limit. */
static void barrier_everywhere(void)
{
	if (!perfring__os_membarrier_process())
		perfring__os_membarrier_system(); /* slow; for kernels before 4.14 */
}

/* ---- counting what is refused ---- */

static void count_refused(struct perfring_writer *writer, struct perfring_output *output, uint64_t records)
{
	/* One instruction each: a handler's count is not lost.  Other threads may count in the same output. */
	PERFRING_ADD_LOCAL(&writer->lost, records);
	PERFRING_ADD(&output->lost, records);
	/* For readers that do not have the writer. */
	PERFRING_ADD(&state_of(writer)->lost_total, records);
	PERFRING_STORE(&writer->limit, 0); /* LOST precedes the next record that fits */
}

static uint64_t take_lost(struct perfring_writer *writer)
{
	uint64_t lost;

	do
		lost = PERFRING_LOAD(&writer->lost);
	while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->lost, lost, 0)); /* a handler counted, or took it */
	return lost;
}

/* ---- leaving ---- */

static void wake(struct perfring_writer *writer)
{
	perfring_wakeup_raise(writer->page, writer->wake_fd);
}

/* By the outermost, when its record is committed or refused: publishes up to `claimed`.  Handlers that claimed have
 * ended, so all of it is committed. */
static void leave(struct perfring_writer *writer)
{
	uint64_t claimed, position, wakeup;

	do {
		PERFRING_STORE(&writer->again, (uint8_t)0);
		PERFRING_FENCE_LOCAL(); /* a handler before this line is in `claimed`; one after it sets `again` */
		claimed = PERFRING_LOAD(&writer->claimed);
		PERFRING_FENCE_LOCAL(); /* in this order: a handler that is outermost here moves `position` above what we saw */
		position = PERFRING_LOAD(&writer->position);
		PERFRING_POINT(leave_looked);
		if (claimed <= position)
			continue; /* nothing is left to publish; a handler may have published since */
		/* While claimed > position handlers are nested, and only this code stores data_head. */
		perfring_page_publish(writer->page, is_backward(writer) ? -claimed : claimed);
		PERFRING_FENCE_LOCAL();
		PERFRING_POINT(leave_published);
		PERFRING_STORE_RELEASE(&writer->position, claimed);
		PERFRING_FENCE_LOCAL(); /* leave, then look: as in perfring_writer_commit */
		PERFRING_POINT(leave_left);
	} while (PERFRING_LOAD(&writer->again));
	/* Once for all these records (docs/abi.md 7.5).  A handler here is outermost, and may wake the reader too. */
	wakeup = PERFRING_LOAD(&writer->wakeup);
	if (wakeup != PERFRING_LOAD(&writer->woken) || PERFRING_LOAD(&writer->call)) {
		PERFRING_STORE(&writer->woken, wakeup);
		PERFRING_STORE(&writer->call, (uint8_t)0);
		PERFRING_POINT(leave_wakes);
		wake(writer);
	}
}

static void leave_if_outermost(struct perfring_writer *writer, uint64_t state)
{
	if (!(state & PERFRING_CLAIM_NESTED))
		leave(writer);
}

/* After a commit that found `again`. */
void perfring_writer_settle(struct perfring_writer *writer)
{
	leave(writer);
}

/* ---- the limit ---- */

/* Bytes that may be written at `position` into a ring that stops (docs/abi.md 7.2).  As in the kernel, only the low
 * bits of data_tail count, so a wrong one harms its author only.  The tail is measured from data_head, because an uncommitted
 * claim may lie between data_head and `position`. */
static uint64_t unread_space(const struct perfring_writer *writer, uint64_t position, uint64_t *returned)
{
	const struct perf_event_mmap_page *page = writer->page;
	uint64_t tail = perfring_page_reclaim(page); /* acquire: the reader has read what will be overwritten */
	uint64_t published = PERFRING_LOAD(&page->data_head); /* only this thread stores it; never below data_tail */
	uint64_t used;

	if (is_backward(writer)) {
		tail = -tail;
		published = -published;
	}
	*returned = published - ((published - tail) & writer->mask);
	used = position - *returned;
	return used > writer->mask ? 0 : writer->mask - used;
}

/* What docs/ring.md 3 says of the words, between the calls of the writer's thread and its handlers. */
bool perfring__writer_is_valid(const struct perfring_writer *writer)
{
	uint64_t claimed = PERFRING_LOAD(&writer->claimed), position = PERFRING_LOAD(&writer->position), returned;
	uint64_t published = PERFRING_LOAD(&writer->page->data_head), limit = PERFRING_LOAD(&writer->limit);
	uint64_t end = claimed > position ? claimed : position;

	if ((is_backward(writer) ? -published : published) != position)
		return false;
	if (writer->flags & PERFRING_RING_OVERWRITE)
		return end - position <= writer->mask &&
		       (is_backward(writer) || end - PERFRING_LOAD(&writer->oldest) <= writer->mask + 1);
	unread_space(writer, end, &returned);
	return end - returned <= writer->mask && limit <= returned + writer->mask &&
	       limit <= PERFRING_LOAD(&writer->wakeup) + writer->watermark;
}

/* The same, of any ring.  A ring that overwrites takes every record, but nested records may not overwrite the outermost
 * one, which is uncommitted (the kernel does not check). */
static uint64_t space_at(const struct perfring_writer *writer, uint64_t position, uint64_t *returned)
{
	uint64_t published, used;

	if (!(writer->flags & PERFRING_RING_OVERWRITE))
		return unread_space(writer, position, returned);
	published = PERFRING_LOAD(&writer->page->data_head);
	used = position - (is_backward(writer) ? -published : published);
	return used > writer->mask ? 0 : writer->mask - used;
}

/* Opens the fast path up to where something is due.  The limit may be too low, not too high: a handler between the
 * loads and the store has moved the positions up.  Losses, a pause and armed readers are checked after the store, so
 * that the 0 that each of them stores is not lost. */
static void open_limit(struct perfring_writer *writer, uint64_t returned)
{
	struct perfring_ring_state *state = state_of(writer);
	uint64_t full = returned + writer->mask;
	uint64_t due = PERFRING_LOAD(&writer->wakeup) + writer->watermark;

	if (is_backward(writer) || writer->output.wakeup_events)
		return; /* every record takes the slow path */
	PERFRING_STORE(&writer->limit, full < due ? full : due);
	PERFRING_FENCE_LOCAL();
	PERFRING_POINT(limit_opened);
	if (PERFRING_LOAD(&writer->lost) || PERFRING_LOAD(&state->paused) ||
	    PERFRING_LOAD(&state->armed) & PERFRING_WAKEUP_RECORD)
		PERFRING_STORE(&writer->limit, 0);
}

/* ---- reserving ---- */

void perfring_writer_refuse(struct perfring_writer *writer, struct perfring_output *output, uint64_t records)
{
	if (writer->page) /* not a child after fork */
		count_refused(writer, output ? output : &writer->output, records);
}

/* The record after the oldest one of a forward ring that overwrites, by the header of the oldest.  A peer that damages it, or
 * data_head, makes fewer records whole. */
static uint64_t after_oldest(const struct perfring_writer *writer, uint64_t oldest, uint64_t claimed)
{
	uint64_t published = PERFRING_LOAD(&writer->page->data_head), left = published - oldest;
	struct perf_event_header header;
	uint64_t word;

	if (claimed - published > writer->mask)
		return claimed;
	word = PERFRING_LOAD((const uint64_t
			      __attribute__((__may_alias__)) *)(const void *)(writer->data + (oldest & writer->mask)));
	memcpy(&header, &word, sizeof(header));
	return header.size < sizeof(header) || header.size & 7 || header.size > left ? published : oldest + header.size;
}

/* For a forward ring that overwrites: drops the records that the claims overwrite, and stores where the oldest of the others begins.
 * All records that are overwritten are published: space_at accepts no claim that reaches an uncommitted one. */
static void leave_out_oldest(struct perfring_writer *writer)
{
	struct perfring_ring_state *state = state_of(writer);
	uint64_t claimed, oldest, next, reported;

	for (;;) {
		oldest = PERFRING_LOAD(&writer->oldest);
		claimed = PERFRING_LOAD(&writer->claimed);
		if (claimed - oldest <= writer->mask + 1)
			break;
		next = after_oldest(writer, oldest, claimed);
		PERFRING_POINT(oldest_looked);
		/* If a handler has overwritten the header, it has moved the word. */
		PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->oldest, oldest, next);
	}
	PERFRING_FENCE_STORES(); /* what was published before the claim comes before it; pairs with the acquire of try_forward */
	do {                     /* as below */
		reported = PERFRING_LOAD(&state->oldest);
		oldest = PERFRING_LOAD(&writer->oldest);
	} while (oldest > reported && !PERFRING_COMPARE_EXCHANGE_LOCAL(&state->oldest, reported, oldest));
}

/* Stores the end of the claimed space for readers of a ring that overwrites (snapshot.h).  It never decreases. */
static void report_claimed(struct perfring_writer *writer)
{
	struct perfring_ring_state *state = state_of(writer);
	uint64_t claimed, reported;

	if (!is_backward(writer))
		leave_out_oldest(writer);
	/* Orders what was published before this claim before state->claimed; pairs with the acquire of claimed_of (snapshot.c). */
	PERFRING_FENCE_STORES();
	do { /* only this thread and its handlers store it */
		reported = PERFRING_LOAD(&state->claimed);
		claimed = PERFRING_LOAD(&writer->claimed);
		PERFRING_POINT(claimed_looked);
	} while (claimed > reported && !PERFRING_COMPARE_EXCHANGE_LOCAL(&state->claimed, reported, claimed));
	PERFRING_POINT(claimed_reported);
	PERFRING_FENCE_STORES(); /* before the record's bytes; pairs with the load barrier of perfring_snapshot_take */
}

/* docs/abi.md 7.3, step 7.  The outermost compares the stamp when it leaves.  At most once for a record: if a handler has
 * stamped for a later record, the test is repeated, because a second stamp would suppress the next crossing. */
static void stamp_watermark(struct perfring_writer *writer, uint64_t end)
{
	uint64_t wakeup;

	do {
		wakeup = PERFRING_LOAD(&writer->wakeup);
		if ((int64_t)(end - wakeup) <= (int64_t)writer->watermark)
			return;
		PERFRING_POINT(watermark_due);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->wakeup, wakeup, wakeup + writer->watermark));
	PERFRING_STORE(&writer->again, (uint8_t)1);
}

/* Returns where the next claim begins, and loads `claimed`, in the order of perfring_writer_claim. */
static uint64_t beginning(const struct perfring_writer *writer, uint64_t *claimed)
{
	uint64_t position;

	*claimed = PERFRING_LOAD(&writer->claimed);
	PERFRING_FENCE_LOCAL();
	position = PERFRING_LOAD(&writer->position);
	return *claimed > position ? *claimed : position;
}

static unsigned char *address_of(const struct perfring_writer *writer, uint64_t start, uint64_t end)
{
	return writer->data + ((is_backward(writer) ? -end : start) & writer->mask);
}

/* Waits for the reader to return `size` bytes.  Returns whether to try again.  A handler that runs meanwhile finds no
 * uncommitted record. */
static bool wait_for(struct perfring_writer *writer, uint64_t size, int64_t *until)
{
	struct timespec nap = {0, 20000};
	uint64_t claimed, returned;
	int saved = errno;
	bool fits = false;

	if (size > writer->mask)
		return false;
	if (!*until) {
		if (writer->wait_ns > INT64_MAX ||
		    __builtin_add_overflow(perfring__os_clock_now(), writer->wait_ns, until))
			*until = INT64_MAX;
		wake(writer); /* the reader may sleep until a watermark that cannot be reached */
	}
	while (!fits && (int64_t)perfring__os_clock_now() < *until && !PERFRING_LOAD(&state_of(writer)->paused)) {
		fits = unread_space(writer, beginning(writer, &claimed), &returned) >= size;
		if (!fits)
			nanosleep(&nap, NULL);
		if (nap.tv_nsec < 1000000)
			nap.tv_nsec *= 2;
	}
	errno = saved;
	return fits;
}

static struct perfring_place place(unsigned char *space, uint64_t end, uint64_t state)
{
	return (struct perfring_place){space, end | state};
}

/* Undoes the claim of the fast path.  Returns false if the claim stays, because a handler has claimed after it: by the slow
 * path, so it has found space for both, and has written any due LOST record. */
static bool take_back(struct perfring_writer *writer, uint64_t size, uint64_t end)
{
	uint64_t position = PERFRING_LOAD(&writer->position);

	/* The claim does not stand if end <= position: between the test `claimed == position` and the store a handler was
	 * outermost and wrote beyond it. */
	if (end <= position || PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->claimed, end, position))
		return true;
	PERFRING_POINT(rare_kept);
	if (end - size == position)
		return false;
	/* Two handlers: the first was outermost, so this claim begins in its record; the second claimed after this
	 * claim. The space between them becomes a filler, and the record is claimed after both. */
	filler_put(address_of(writer, position, end), end - position);
	return true;
}

/* A claim of the slow path. */
struct attempt {
	uint64_t start, end;
	uint64_t lost;     /* records that its LOST record reports, as seen before the claim; 0: it has none */
	uint64_t extra;    /* bytes of the LOST record */
	uint64_t returned; /* the reader has returned what is below */
};

/* Claims space for the record and a due LOST record.  Returns false if output is paused, or the ring is full. */
static bool claim_space(struct perfring_writer *writer, const struct perfring_output *output, uint64_t size,
			bool nested, struct attempt *attempt)
{
	bool timed_out = false;
	uint64_t claimed;
	int64_t until = 0;

	for (;;) {
		if (PERFRING_LOAD(&state_of(writer)->paused))
			return false;
		attempt->lost = PERFRING_LOAD(&writer->lost);
		attempt->extra = attempt->lost ? lost_size(output) : 0;
		attempt->start = beginning(writer, &claimed);
		if (space_at(writer, attempt->start, &attempt->returned) < size + attempt->extra) {
			if (beginning(writer, &claimed) != attempt->start)
				continue; /* a handler wrote and published between the loads of position and data_head */
			if (timed_out || writer->policy != PERFRING_WRITER_WAIT || nested)
				return false;
			leave(writer); /* publishes what handlers wrote meanwhile, for the reader */
			timed_out = !wait_for(writer, size + attempt->extra, &until);
			continue;
		}
		attempt->end = attempt->start + size + attempt->extra;
		PERFRING_POINT(rare_fits);
		if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->claimed, claimed, attempt->end))
			continue; /* a handler wrote: start again, as the kernel does */
		PERFRING_POINT(rare_swapped);
		/* Claim, then check again: a later perfring_writer_pause sees the claim after its barrier. */
		if (PERFRING_LIKELY(!PERFRING_LOAD(&state_of(writer)->paused)))
			return true;
		if (PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->claimed, attempt->end, claimed))
			return false;
		return true; /* a handler has claimed after it: it stays */
	}
}

/* After the claim: stamp, LOST record, new limit.  Returns the record's space, which ends at attempt->end. */
static unsigned char *begin_record(struct perfring_writer *writer, struct perfring_output *output,
				   struct attempt *attempt)
{
	unsigned char *space;

	PERFRING_POINT(rare_claimed);
	stamp_watermark(writer, attempt->end);
	if (writer->flags & PERFRING_RING_OVERWRITE)
		report_claimed(writer);
	space = address_of(writer, attempt->start, attempt->end);
	if (attempt->extra) {
		lost_put(output, take_lost(writer), space); /* what is lost now: it may be 0 */
		PERFRING_POINT(rare_lost_reported);
		space += attempt->extra;
		if (is_backward(writer)) /* LOST has the lower address, so the higher position */
			attempt->end -= attempt->extra;
	}
	if (!(writer->flags & PERFRING_RING_OVERWRITE))
		open_limit(writer, attempt->returned);
	return space;
}

/* The last step of a reserve: a reader that waits for the next record is woken by its commit. */
static struct perfring_place finish_reserve(struct perfring_writer *writer, unsigned char *space, uint64_t size,
					    uint64_t end, uint64_t state)
{
	if (PERFRING_LOAD(&state_of(writer)->armed) & PERFRING_WAKEUP_RECORD) {
		PERFRING_STORE(&writer->call, (uint8_t)1);
		PERFRING_STORE(&writer->again, (uint8_t)1);
	}
	if (writer->flags & PERFRING_RING_OVERWRITE)
		filler_put(space, size); /* after a kill it shows what was being written */
	PERFRING_POINT(rare_given);
	return place(space, end, state);
}

/* Whether the caller interrupted a record, which continues only after the caller has returned. */
static bool is_nested(const struct perfring_writer *writer)
{
	uint64_t claimed = PERFRING_LOAD(&writer->claimed);

	PERFRING_FENCE_LOCAL(); /* the order is that of perfring_writer_claim */
	return claimed > PERFRING_LOAD(&writer->position);
}

struct perfring_place perfring_writer_reserve_slow(struct perfring_writer *writer, struct perfring_output *output,
						   uint64_t size, uint64_t end)
{
	struct attempt attempt;
	unsigned char *space;
	uint64_t state = 0;

	if (!writer->page) /* a child after fork: zeros */
		return place(NULL, 0, 0);
	if (!output)
		output = &writer->output;
	if (is_backward(writer))
		state |= PERFRING_CLAIM_RARE | PERFRING_CLAIM_BACKWARD;
	if (output->wakeup_events)
		state |= PERFRING_CLAIM_RARE;
	PERFRING_POINT(rare_entered);
	if (!end) {
		if (is_nested(writer))
			state |= PERFRING_CLAIM_NESTED;
	} else if (!take_back(writer, size, end)) {
		stamp_watermark(writer, end);
		if (writer->flags & PERFRING_RING_OVERWRITE)
			report_claimed(writer);
		return finish_reserve(writer, address_of(writer, end - size, end), size, end, state);
	}
	PERFRING_POINT(rare_undone);
	if (!claim_space(writer, output, size, state & PERFRING_CLAIM_NESTED, &attempt)) {
		count_refused(writer, output, 1);
		PERFRING_POINT(rare_refused);
		/* A handler may have committed while this claim stood, and left the publication to this code. */
		leave_if_outermost(writer, state);
		return place(NULL, 0, 0);
	}
	space = begin_record(writer, output, &attempt);
	return finish_reserve(writer, space, size, attempt.end, state);
}

/* ---- committing, discarding ---- */

static void count_sample(struct perfring_writer *writer, uint32_t wakeup_events)
{
	uint64_t events, left;

	do { /* a handler counts, too */
		events = PERFRING_LOAD(&writer->events);
		left = events + 1 >= wakeup_events ? events + 1 - wakeup_events : events + 1;
		PERFRING_POINT(events_looked);
	} while (!PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->events, events, left));
	if (left <= events)
		PERFRING_ADD_LOCAL(&writer->wakeup, 1);
}

/* Counts the samples of a claim for wakeup_events, in the ring's counter (docs/abi.md 7.3, step 10). */
static void count_samples(struct perfring_writer *writer, uint32_t wakeup_events, const unsigned char *space,
			  uint64_t size)
{
	struct perf_event_header header;

	while (size >= sizeof(header)) {
		memcpy(&header, space, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			return; /* the caller's record is wrong: it counts as none */
		if (header.type == PERF_RECORD_SAMPLE)
			count_sample(writer, wakeup_events);
		space += header.size;
		size -= header.size;
	}
}

void perfring_writer_commit_slow(struct perfring_writer *writer, const struct perfring_output *output,
				 const unsigned char *space, uint64_t size, uint64_t end)
{
	if (!writer->page)
		return;
	if (!output)
		output = &writer->output;
	PERFRING_FENCE_LOCAL(); /* the record's bytes before the store of `again` */
	if (output->wakeup_events)
		count_samples(writer, output->wakeup_events, space, size);
	PERFRING_POINT(commit_counted);
	if (end & PERFRING_CLAIM_NESTED)
		PERFRING_STORE(&writer->again, (uint8_t)1);
	else
		leave(writer);
}

/* Frees `size` bytes that end at `end`, if they are the last; never in a ring that overwrites. */
static bool give_back(struct perfring_writer *writer, uint64_t size, uint64_t end)
{
	end &= ~(uint64_t)STATE;
	return !(writer->flags & PERFRING_RING_OVERWRITE) &&
	       PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->claimed, end, end - size);
}

void perfring_writer_discard_slow(struct perfring_writer *writer, unsigned char *space, uint64_t size, uint64_t end)
{
	if (!writer->page)
		return;
	if (!give_back(writer, size, end)) {
		filler_put(space, size);
		PERFRING_POINT(discard_filled);
	}
	PERFRING_POINT(discarded);
	PERFRING_FENCE_LOCAL();
	if (end & PERFRING_CLAIM_NESTED)
		/* The outermost must publish the filler, or the LOST record before it. */
		PERFRING_STORE(&writer->again, (uint8_t)1);
	else
		leave(writer);
}

uint64_t perfring_writer_shrink(struct perfring_writer *writer, unsigned char *space, uint64_t rest, uint64_t end)
{
	if (!writer->page)
		return end & ~(uint64_t)STATE;
	/* In a backward ring the first record has the highest address, so the lower end is freed. */
	if (give_back(writer, rest, end))
		end -= rest;
	else
		filler_put(space, rest);
	return end & ~(uint64_t)STATE;
}

/* ---- from other threads ---- */

void perfring_writer_pause(struct perfring_writer *writer, bool paused)
{
	struct perfring_ring_state *state;

	if (!writer->page)
		return;
	state = state_of(writer);
	PERFRING_STORE(&state->paused, paused);
	if (!paused)
		return;
	/* Partner: open_limit, which has no fence.  Between the barriers the writer has seen `paused` after it opened
	 * its limit, or opened it before the store of 0 below.  By the second one, a record that passed the old limit
	 * is in `claimed`. */
	barrier_everywhere();
	PERFRING_POINT(pause_told);
	PERFRING_STORE(&writer->limit, 0);
	barrier_everywhere();
}

bool perfring_writer_arm(struct perfring_writer *writer)
{
	uint64_t claimed;

	if (!writer->page)
		return false;
	/* As in perfring_writer_pause. */
	PERFRING_OR(&state_of(writer)->armed, (uint32_t)PERFRING_WAKEUP_RECORD);
	barrier_everywhere();
	PERFRING_POINT(arm_told);
	PERFRING_STORE(&writer->limit, 0);
	barrier_everywhere();
	/* Partner: perfring_writer_claim, which claims, then checks the limit.  Acquire: a position that has reached
	 * the claim comes with what was published before. */
	claimed = PERFRING_LOAD(&writer->claimed);
	return claimed > PERFRING_LOAD_ACQUIRE(&writer->position);
}

uint64_t perfring_writer_lost(const struct perfring_writer *writer)
{
	return writer->page ? PERFRING_LOAD(&state_of(writer)->lost_total) : 0;
}

/* ---- wakeup and stamps ---- */

void perfring_writer_flush(struct perfring_writer *writer)
{
	const struct perf_event_mmap_page *page = writer->page;

	if (page && PERFRING_LOAD(&page->data_head) != PERFRING_LOAD(&page->data_tail))
		wake(writer);
}

uint64_t perfring_writer_clock(const struct perfring_writer *writer)
{
	return perfring__os_clock_of(writer->clockid);
}

const void *perfring_writer_thread(void)
{
	return (const void *)pthread_self();
}

/* ---- opening and closing ---- */

/* Identifies this program among those that one process runs in turn (exec). */
static uint64_t own_image(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t image = 0;

	if (random)
		memcpy(&image, random, sizeof(image));
	return image;
}

/* Whether the thread that the ring names lives, as far as this pid namespace shows. */
static bool lives(const struct perfring_ring_state *state, uint64_t identity)
{
	if (!identity)
		return false;
	/* Same image: it is open twice.  Another image: the old writer exec'd this program. */
	if (identity == perfring__identity_own())
		return PERFRING_LOAD(&state->writer_image) == own_image();
	return perfring__identity_lives(identity);
}

/* Makes claimed space that will not be committed a filler; counts one loss.  Returns false if there is no such space. */
static bool abandon(struct perfring_writer *writer, uint64_t published, uint64_t claimed)
{
	uint64_t size = claimed - published;

	if (!size || size > writer->mask || size & 7)
		return false;
	filler_put(address_of(writer, published, claimed), size);
	PERFRING_ADD(&state_of(writer)->abandoned, 1);
	count_refused(writer, &writer->output, 1);
	return true;
}

/* The oldest record of a forward ring that overwrites, which its last writer stored before its claim.  If the word is impossible, no
 * record is whole. */
static uint64_t oldest_of(const struct perfring_writer *writer, uint64_t published)
{
	uint64_t oldest = PERFRING_LOAD(&state_of(writer)->oldest);

	return oldest & 7 || published - oldest > writer->mask + 1 ? published : oldest;
}

int perfring_writer_open(struct perfring_writer **result, struct perfring_ring *ring,
			 const struct perfring_writer_options *options)
{
	static const struct perfring_writer_options defaults = {.wake_fd = -1};
	struct perfring_ring_state *state;
	uint64_t published, claimed, identity;
	struct perfring_writer *writer;

	*result = NULL;
	if (!options)
		options = &defaults;
	if (!(ring->flags & PERFRING_RING_OWN) ||
	    ring->flags & (PERFRING_RING_READ_ONLY | PERFRING_RING_STRICT | PERFRING_RING_LEASED) ||
	    !is_output(&options->output) || options->policy > PERFRING_WRITER_WAIT ||
	    options->stamp > PERFRING_STAMP_TRANSACTION ||
	    ((options->stamp == PERFRING_STAMP_CLOCK || options->stamp == PERFRING_STAMP_TRANSACTION) &&
	     !perfring__os_clock_of(options->clockid)))
		return -EINVAL;
	state = perfring_ring_state_of(ring->page);
	published = PERFRING_LOAD(&ring->page->data_head);
	if (ring->flags & PERFRING_RING_BACKWARD)
		published = -published;
	claimed = ring->flags & PERFRING_RING_OVERWRITE ? PERFRING_LOAD(&state->claimed) : published;
	if (published & 7 || published > INT64_MAX || claimed > INT64_MAX)
		return -EBADMSG; /* positions are compared, so they may not wrap */
	writer = mmap(NULL, sizeof(*writer), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (writer == MAP_FAILED)
		return -ENOMEM;
	/* Of several that find the last writer dead, one takes its place. */
	identity = PERFRING_LOAD(&state->writer);
	if (lives(state, identity) || !PERFRING_COMPARE_EXCHANGE(&state->writer, &identity, perfring__identity_own())) {
		munmap(writer, sizeof(*writer));
		return -EBUSY;
	}
	PERFRING_STORE(&state->writer_image, own_image());
	madvise(writer, sizeof(*writer), MADV_WIPEONFORK);
	madvise(ring->mapping, (size_t)ring->mapping_size, MADV_DONTFORK);
	perfring__os_membarrier_register();

	writer->data = ring->data;
	writer->mask = ring->size - 1;
	writer->page = ring->page;
	writer->stamp = (uint8_t)options->stamp;
	writer->clockid = options->clockid;
	writer->thread = perfring_writer_thread();
	writer->policy = options->policy;
	writer->wait_ns = options->wait_ns;
	writer->wake_fd = options->wake_fd;
	writer->flags = (uint32_t)ring->flags;
	writer->watermark = PERFRING_LOAD(&state->watermark);
	if (!writer->watermark || writer->watermark > ring->size)
		writer->watermark = ring->size / 2; /* the shared word was damaged; use the kernel's default */
	writer->output = options->output;
	writer->output.lost = 0;
	writer->ring = *ring;

	writer->position = published;
	writer->oldest = oldest_of(writer, published);
	if (writer->flags & PERFRING_RING_OVERWRITE && !is_backward(writer))
		PERFRING_STORE(&state->oldest, writer->oldest);
	if (abandon(writer, published, claimed)) {
		writer->position = claimed;
		/* only a ring that overwrites comes here */
		perfring_page_publish(ring->page, is_backward(writer) ? -claimed : claimed);
	}
	/* these were for the last writer */
	PERFRING_STORE(&state->paused, 0);
	PERFRING_AND(&state->armed, ~(uint32_t)PERFRING_WAKEUP_RECORD);
	writer->claimed = writer->position;
	PERFRING_STORE(&state->claimed, writer->position); /* from here on it only increases */
	/* what the last writer has not reported */
	writer->lost += PERFRING_EXCHANGE(&state->lost, 0);
	/* The kernel's stamp increases by whole watermarks. */
	writer->wakeup = published / writer->watermark * writer->watermark;
	writer->woken = writer->wakeup;
	PERFRING_STORE(&state->writer_tid, (uint32_t)syscall(SYS_gettid));
	PERFRING_STORE(&state->writer_pid, (uint32_t)getpid());
	*result = writer;
	return 0;
}

void perfring__writer_hand_over(struct perfring_writer *writer, pthread_t thread, uint32_t tid)
{
	writer->thread = (const void *)thread;
	PERFRING_STORE(&state_of(writer)->writer, perfring__identity_of(tid));
	PERFRING_STORE(&state_of(writer)->writer_tid, tid);
}

/* Frees what was reserved from `position` to `claimed`, or makes it a filler.  Handlers here are nested: they only move
 * `claimed` upwards, and what they commit stays. */
static void drop_reserved(struct perfring_writer *writer, uint64_t position, uint64_t claimed)
{
	/* A claim larger than the ring never passed the space check, so nothing was written. */
	if (writer->flags & PERFRING_RING_OVERWRITE && claimed - position <= writer->mask) {
		/* It may have overwritten the oldest records. */
		report_claimed(writer);
		if (abandon(writer, position, claimed))
			return;
	} else {
		PERFRING_ADD(&state_of(writer)->abandoned, 1);
		count_refused(writer, &writer->output, 1);
	}
	PERFRING_POINT(reset_counted);
	/* As in a discard, it stays if a handler has reserved after it, for which it has checked the space. */
	if (!PERFRING_COMPARE_EXCHANGE_LOCAL(&writer->claimed, claimed, position)) {
		PERFRING_POINT(reset_kept);
		filler_put(address_of(writer, position, claimed), claimed - position);
	}
}

void perfring_writer_reset(struct perfring_writer *writer)
{
	uint64_t claimed, position;

	if (!writer->page)
		return;
	claimed = PERFRING_LOAD(&writer->claimed);
	PERFRING_FENCE_LOCAL(); /* in this order: what a handler publishes between the loads is not dropped */
	PERFRING_POINT(reset_began);
	position = PERFRING_LOAD(&writer->position);
	PERFRING_POINT(reset_looked);
	if (claimed > position)
		drop_reserved(writer, position, claimed);
	leave(writer);
}

void perfring_writer_close(struct perfring_writer *writer)
{
	struct perfring_ring_state *state;

	if (!writer)
		return;
	if (writer->page) {
		state = state_of(writer);
		PERFRING_ADD(&state->lost, PERFRING_LOAD(&writer->lost)); /* the next writer's LOST record reports it */
		PERFRING_STORE(&state->writer_pid, 0);
		PERFRING_STORE(&state->writer_tid, 0);
		/* The next open's compare-exchange sees what this writer stored. */
		PERFRING_STORE_RELEASE(&state->writer, 0);
		madvise(writer->ring.mapping, (size_t)writer->ring.mapping_size, MADV_DOFORK);
	}
	munmap(writer, sizeof(*writer));
}
