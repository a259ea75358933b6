/* writer.h - writing into a ring of ours: one thread, and whatever signal handlers interrupt it, to any depth.
 *
 *     record = perfring_writer_reserve(writer, NULL, size, &claim);     room in one piece, in the ring
 *     if (record) {                                                      NULL: full; it is counted
 *             ... encode in place ...
 *             perfring_writer_commit(writer, &claim);                    or perfring_writer_discard
 *     }
 *
 * Everything the kernel's algorithm does (docs/abi.md 7.2 to 7.7) happens here, to the number: what fits, what is counted as
 * lost, where LOST records lie, when a reader is woken.  How it costs less:
 *
 *   - A record touches one private line: claimed, position, limit.  The reader's line is looked at only when the limit is
 *     reached: an idle or slow reader costs nothing.
 *   - Two words say all, with plain loads and stores.  Records below `position` are finished; room up to `claimed` was
 *     given out.  claimed > position: a record is in the making, and who comes now is nested.
 *
 *         outermost                                    a handler in this place
 *           claimed, then position                       is outermost, is done, and has moved both:
 *           claimed := position + size                     so look whether position still stands
 *           position still?  below the limit?            from here on is nested: claims behind us, in `claimed`,
 *           ... the record ...                             and sets `again` when its record is finished
 *           data_head := claim's end
 *           position := claim's end                      from here on is outermost again
 *           again?  then publish up to `claimed`
 *
 *     So data_head never covers a record in the making and never goes back, and of a handler and the one that it
 *     interrupts one publishes.
 *   - `limit` folds every rare case into one compare: the ring is full as last seen, a wakeup is due, a loss is to be
 *     told, output is paused, a reader wants to be woken, wakeup_events are counted, the ring falls, we are a fork's
 *     child.  It may be stale only downwards: then the slow path looks, and goes on.
 *
 * Two things go otherwise than in the kernel.  A handler that comes just after a claim that does not fit, and before the
 * slow path has taken it back (a few instructions), is refused with it, though its own record might have fitted: both are
 * counted.  And where handlers cross the watermark for records that lie before theirs, the stamp counts it once.
 *
 * Which calls may run together: the writer belongs to the thread that opened it (and to its handlers); all functions but
 * open, close and reset are async-signal-safe, take no lock, allocate nothing and leave errno alone.  Another thread may
 * call perfring_writer_pause, perfring_writer_arm and perfring_writer_lost.
 *
 *              reserve commit discard begin take write | pause arm lost | reset close
 *   thread            yes                              |      yes       |    yes
 *   handler           yes                              |      yes       |    no
 *   others            no                               |      yes       |    no
 *
 * fork: the mapping is not inherited (as the kernel's are not), and the private line reads as zeros in the child: there a
 * reserve gives NULL, a commit does nothing, and a child that goes on encoding a record its parent had begun is ended by
 * SIGSEGV before it can touch the parent's ring.  A child that wants to write makes or attaches a ring of its own.
 *
 * longjmp, swapcontext, pthread_exit or an exception out of a handler that interrupted a record, or out of the record
 * itself, leave it in the making for ever and nothing is published any more: perfring_writer_reset, from the thread, is
 * the way back.
 */
#ifndef PERFRING_WRITER_H
#define PERFRING_WRITER_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

/* What one event brings to a ring that it writes into: the kernel's output.  Several may share a writer; each has its own
 * id, trailer, wakeup_events and count of refusals, and the ring's counters are common (docs/abi.md 7.9).  An output is looked
 * at from reserve to commit only: attach and detach are the caller's, at any other time. */
struct perfring_output {
	uint64_t id;            /* LOST.id when this output is the next to write */
	perfring_u64 lost;      /* its refusals, as PERF_FORMAT_LOST counts them: never taken back */
	uint32_t wakeup_events; /* wake after so many samples; 0: by the ring's watermark alone */
	uint32_t trailer_size;  /* bytes of the sample_id trailer of its LOST records: 0 to 48, a multiple of 8 */
	/* Writes the trailer into `room`.  Async-signal-safe; may not write into the ring itself. */
	void (*trailer)(const struct perfring_output *output, void *room);
	void *data; /* the caller's */
	uint64_t reserved[2];
};

/* What a writer does when a record does not fit. */
enum perfring_writer_policy {
	PERFRING_WRITER_DROP, /* refuses and counts: the kernel's way */
	PERFRING_WRITER_WAIT, /* waits for the reader, at most wait_ns, then refuses and counts; what is complete is published
			       * first.  Nested in a record it does not wait: the reader could not be given that record */
};

enum perfring_stamp {
	PERFRING_STAMP_NONE,    /* perfring_writer_stamp gives 0 */
	PERFRING_STAMP_CLOCK,   /* clock_gettime(clockid) */
	PERFRING_STAMP_COUNTER, /* the processor's counter, raw; perfring_page_to_time converts (perfring_ring_calibrate) */
	PERFRING_STAMP_TRANSACTION, /* clock_gettime once for a claim: all records of a transaction have that time */
};

struct perfring_writer_options {
	uint32_t policy; /* enum perfring_writer_policy */
	uint32_t stamp;  /* enum perfring_stamp */
	int32_t clockid;
	int32_t wake_fd; /* an eventfd, EFD_NONBLOCK, that a wakeup writes to (wakeup.h); -1: none */
	uint64_t wait_ns;
	struct perfring_output output; /* used where a call gives NULL */
	uint64_t reserved[2];
};

/* Private to the writing process, in a page of its own that a fork's child finds zeroed. */
struct perfring_writer {
	/* all that a record touches.  Positions count up in rings that fall too */
	perfring_u64 claimed;  /* room was given out up to here; not above `position`: nobody is writing */
	perfring_u64 position; /* finished up to here */
	perfring_u64 limit;    /* a claim that ends above it takes the slow path */
	unsigned char *data;
	uint64_t mask; /* ring size - 1 */
	struct perf_event_mmap_page *page;
	uint8_t again; /* the outermost has something to do when it has left: to publish for a nested one, to wake */
	uint8_t call;  /* an armed reader is to be woken at the next publication */
	uint8_t stamp; /* enum perfring_stamp */
	uint8_t padding1;
	int32_t clockid;
	const void *thread; /* of the owner, for PERFRING_DEBUG */

	/* the slow path's (positions as above) */
	perfring_u64 lost;   /* refused, and in no LOST record yet */
	perfring_u64 wakeup; /* the kernel's stamp: grows by the watermark, and by one for wakeup_events */
	perfring_u64 woken;  /* the stamp at the last wakeup */
	perfring_u64 events; /* samples towards wakeup_events */
	uint64_t watermark;
	uint64_t wait_ns;
	uint32_t policy;
	int32_t wake_fd;
	uint32_t flags; /* of the ring */
	uint32_t padding;
	struct perfring_output output;
	struct perfring_ring ring; /* the mapping, which close gives back to fork */
	uint64_t reserved[4];
};

/* One record in the making.  `state` is the writer's. */
struct perfring_claim {
	uint64_t end; /* position behind it */
	uint64_t size;
	uint64_t taken; /* of a transaction: bytes handed out */
	uint64_t time;  /* PERFRING_STAMP_TRANSACTION; 0: not taken yet */
	struct perfring_output *output;
	unsigned char *room;
	uint64_t state; /* 0: outermost; else enum perfring_claim_state */
};

enum perfring_claim_state {
	PERFRING_CLAIM_NESTED = 1,
	PERFRING_CLAIM_RARE = 2,     /* commit has more to do: the ring falls, or samples are counted */
	PERFRING_CLAIM_BACKWARD = 4, /* a transaction is filled from its upper end */
};

/* Opens the writer of a ring made by perfring_ring_create or attached (not STRICT or LEASED: shared.h), for this thread.
 * Goes on where the ring stands.  The ring must outlive it.  Returns 0; -EINVAL (no ring of ours, read-only, shared, a
 * trailer that is no multiple of 8 or above 48, a clock that is none); -EBADMSG (the control page's positions cannot be);
 * -EBUSY (another writer that lives has it open, as far as this pid
 * namespace can tell; the kernel may still name a thread that was just joined); -ENOMEM.  In a ring that overwrites, room
 * that a writer before us had claimed and died in becomes a filler, and counts as one loss; elsewhere what was not
 * published leaves no trace. */
PERFRING_API int perfring_writer_open(struct perfring_writer **writer, struct perfring_ring *ring,
				      const struct perfring_writer_options *options);

/* Publishes nothing more: with no record in the making, everything is published already.  What was refused and no LOST
 * record tells yet is in perfring_ring_state.lost_total, and the next writer's first record tells it. */
PERFRING_API void perfring_writer_close(struct perfring_writer *writer);

/* After a jump out of a record: what was claimed and not published is dropped (in a ring that overwrites it becomes a
 * filler), with what handlers wrote behind it, and counts as one loss. */
PERFRING_API void perfring_writer_reset(struct perfring_writer *writer);

/* Output paused, until it is resumed or the ring has another writer: reserves are refused and counted (docs/abi.md 7.3, step 2).  On return every record that is not refused has
 * been claimed; one in the making may still be encoded and committed.  Context: any thread; handlers. */
PERFRING_API void perfring_writer_pause(struct perfring_writer *writer, bool paused);

/* From the thread that is about to sleep for more (wakeup.h): the next record wakes it, whatever the watermark.  Returns
 * whether a record is in the making now, that may be published without a wakeup: sleep short. */
PERFRING_API bool perfring_writer_arm(struct perfring_writer *writer);

/* Refused since the ring was made; those that no LOST record tells yet are in it. */
PERFRING_API uint64_t perfring_writer_lost(const struct perfring_writer *writer);

/* Wakes the reader now if there is anything that it was not woken for, whatever the watermark. */
PERFRING_API void perfring_writer_flush(struct perfring_writer *writer);

/* ---- the slow paths, for the inlines below alone.  A claim goes by its members, so that its address is never taken and a
 * compiler keeps it in registers; `end` carries enum perfring_claim_state in its low bits ---- */

struct perfring_place {
	unsigned char *room; /* NULL: refused */
	uint64_t end;
};

/* end: of the claim that was made past the limit; 0: none was made. */
PERFRING_API struct perfring_place perfring_writer_reserve_slow(struct perfring_writer *writer,
								struct perfring_output *output, uint64_t size,
								uint64_t end);
PERFRING_API void perfring_writer_refuse(struct perfring_writer *writer, struct perfring_output *output,
					 uint64_t records);
PERFRING_API void perfring_writer_commit_slow(struct perfring_writer *writer, const struct perfring_output *output,
					      const unsigned char *room, uint64_t size, uint64_t end);
PERFRING_API void perfring_writer_settle(struct perfring_writer *writer);
PERFRING_API void perfring_writer_discard_slow(struct perfring_writer *writer, unsigned char *room, uint64_t size,
					       uint64_t end);
/* The last `rest` bytes of a claim are given back, or become a filler; `room` is where they lie.  Returns the end. */
PERFRING_API uint64_t perfring_writer_shrink(struct perfring_writer *writer, unsigned char *room, uint64_t rest,
					     uint64_t end);
PERFRING_API uint64_t perfring_writer_clock(const struct perfring_writer *writer);
/* The calling thread, as writer->thread has it: for PERFRING_DEBUG. */
PERFRING_API const void *perfring_writer_thread(void);

/* ---- one record ---- */

/* Claims `size` bytes: the drawing above. */
PERFRING_INLINE unsigned char *perfring_writer_claim(struct perfring_writer *writer, struct perfring_output *output,
						     uint64_t size, struct perfring_claim *claim)
{
	uint64_t claimed, start, end;
	struct perfring_place place;

#ifdef PERFRING_DEBUG
	if (writer->thread != perfring_writer_thread()) {
		perfring_writer_refuse(writer, output, 1);
		return NULL;
	}
#endif
	claim->size = size;
	claim->taken = 0;
	claim->time = 0;
	claim->output = output;
	claimed = PERFRING_LOAD(&writer->claimed);
	PERFRING_FENCE_LOCAL(); /* in this order: of a handler between them we see a position that is too new, never too old */
	start = PERFRING_LOAD(&writer->position);
	end = start + size;
	if (PERFRING_LIKELY(claimed == start)) {
		PERFRING_POINT(writer_looked);
		PERFRING_STORE(&writer->claimed, end);
		PERFRING_FENCE_LOCAL(); /* claim, then look: after this handlers are nested, and `position` stands */
		PERFRING_POINT(writer_claimed);
		if (PERFRING_LIKELY(PERFRING_LOAD(&writer->position) == start && end <= PERFRING_LOAD(&writer->limit) &&
				    !(output && output->wakeup_events))) {
			claim->end = end;
			claim->state = 0;
			claim->room = writer->data + (start & writer->mask);
			if (!claim->room)
				__builtin_unreachable(); /* spares the caller's look */
			return claim->room;
		}
	} else {
		end = 0; /* nested; or a handler ran between the two looks */
	}
	place = perfring_writer_reserve_slow(writer, output, size, end);
	claim->end = place.end & ~UINT64_C(7);
	claim->state = place.end & 7;
	claim->room = place.room;
	return place.room;
}

/* Room for one record of `size` bytes, in one piece and 8-aligned; its header is the caller's to write, with this size.
 * NULL: it was refused and counted, because the ring is full, output is paused, or the size is not that of a record (0,
 * no multiple of 8, above 65 528, above what the ring can hold).  `output` says who writes; NULL: the writer's own.
 * Each claim is committed or discarded, in the reverse order of reserving. */
PERFRING_INLINE void *perfring_writer_reserve(struct perfring_writer *writer, struct perfring_output *output,
					      uint64_t size, struct perfring_claim *claim)
{
	/* One compare: what is too small wraps, and what is no multiple of 8 rotates to the top. */
	if (PERFRING_UNLIKELY(((size - 8) >> 3 | (size - 8) << 61) > (PERFRING_RECORD_MAX - 8) / 8)) {
		perfring_writer_refuse(writer, output, 1);
		return NULL;
	}
	return perfring_writer_claim(writer, output, size, claim);
}

/* The record is whole.  The outermost publishes it, and everything that nested writers finished meanwhile. */
PERFRING_INLINE void perfring_writer_commit(struct perfring_writer *writer, const struct perfring_claim *claim)
{
	struct perf_event_mmap_page *page;

	if (PERFRING_LIKELY(claim->state == 0)) {
		page = writer->page;
		if (PERFRING_UNLIKELY(!page)) /* a fork's child */
			return;
		PERFRING_POINT(writer_encoded);
		perfring_page_publish(page, claim->end); /* pairs with the reader's observe */
		PERFRING_FENCE_LOCAL(); /* a handler before the next store is nested: it may not find data_head behind */
		PERFRING_POINT(writer_published);
		/* Release, for perfring_writer_arm: who sees that we have left sees what we published. */
		PERFRING_STORE_RELEASE(&writer->position, claim->end);
		PERFRING_FENCE_LOCAL(); /* leave, then look: a handler from here on publishes for itself */
		PERFRING_POINT(writer_left);
		if (PERFRING_UNLIKELY(PERFRING_LOAD(&writer->again)))
			perfring_writer_settle(writer);
	} else if (claim->state == PERFRING_CLAIM_NESTED) {
		PERFRING_FENCE_LOCAL(); /* the record before the word that it is there */
		PERFRING_STORE(&writer->again, (uint8_t)1);
	} else {
		perfring_writer_commit_slow(writer, claim->output, claim->room, claim->size, claim->end | claim->state);
	}
}

/* The record is not wanted.  Where nothing nested follows it, its room is free again without a trace; else, and always in
 * a ring that overwrites (the oldest records are gone by then), it becomes a filler, which our readers pass over.  Nothing
 * is counted as lost. */
PERFRING_INLINE void perfring_writer_discard(struct perfring_writer *writer, const struct perfring_claim *claim)
{
	perfring_writer_discard_slow(writer, claim->room, claim->size, claim->end | claim->state);
}

/* Copies a whole record in.  Returns whether it was taken; refused ones are counted. */
PERFRING_INLINE bool perfring_writer_write(struct perfring_writer *writer, struct perfring_output *output,
					   const void *record, uint64_t size)
{
	struct perfring_claim claim;
	void *room = perfring_writer_reserve(writer, output, size, &claim);

	if (PERFRING_UNLIKELY(!room))
		return false;
	/* A compiler that knows the size of a large copy spells it out, and the C library's own is twice as fast. */
	if (__builtin_constant_p(size) && size >= 256)
		__asm__("" : "+r"(size));
	memcpy(room, record, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

/* ---- several records, one publication ---- */

/* Claims `size` bytes (a multiple of 8) for `records` records, which the reader will see all at once, or not at all:
 * refused, they count as so many.  Take each record's room in turn; commit, and what was not taken is given back. */
PERFRING_INLINE bool perfring_writer_begin(struct perfring_writer *writer, struct perfring_output *output,
					   uint64_t size, uint64_t records, struct perfring_claim *claim)
{
	if (PERFRING_UNLIKELY(size == 0 || (size & 7) || size > writer->mask)) {
		perfring_writer_refuse(writer, output, records);
		return false;
	}
	if (PERFRING_UNLIKELY(!perfring_writer_claim(writer, output, size, claim))) {
		if (records > 1) /* the claim itself has counted one */
			perfring_writer_refuse(writer, output, records - 1);
		return false;
	}
	return true;
}

/* Room for the transaction's next record; NULL where it is no record's size or more than is left. */
PERFRING_INLINE void *perfring_writer_take(struct perfring_claim *claim, uint64_t size)
{
	if (PERFRING_UNLIKELY(size < 8 || (size & 7) || size > PERFRING_RECORD_MAX ||
			      size > claim->size - claim->taken))
		return NULL;
	claim->taken += size;
	/* In a ring that falls the first lies highest: it is the oldest. */
	return claim->room +
	       (claim->state & PERFRING_CLAIM_BACKWARD ? claim->size - claim->taken : claim->taken - size);
}

/* Publishes the records taken. */
PERFRING_INLINE void perfring_writer_end(struct perfring_writer *writer, struct perfring_claim *claim)
{
	uint64_t rest = claim->size - claim->taken;
	unsigned char *room = claim->room;

	if (PERFRING_UNLIKELY(!claim->taken)) {
		perfring_writer_discard(writer, claim);
		return;
	}
	if (PERFRING_UNLIKELY(rest)) {
		if (claim->state & PERFRING_CLAIM_BACKWARD)
			claim->room += rest;
		else
			room += claim->taken;
		claim->size = claim->taken;
		claim->end = perfring_writer_shrink(writer, room, rest, claim->end | claim->state);
	}
	perfring_writer_commit(writer, claim);
}

/* ---- stamps ---- */

/* The processor's counter: raw, and not ordered with what stands around it. */
PERFRING_INLINE uint64_t perfring_writer_counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return 0;
#endif
}

/* A time for the record in the making, in the writer's way. */
PERFRING_INLINE uint64_t perfring_writer_stamp(struct perfring_writer *writer, struct perfring_claim *claim)
{
	switch (writer->stamp) {
	case PERFRING_STAMP_COUNTER:
		return perfring_writer_counter();
	case PERFRING_STAMP_CLOCK:
		return perfring_writer_clock(writer);
	case PERFRING_STAMP_TRANSACTION:
		if (!claim->time)
			claim->time = perfring_writer_clock(writer);
		return claim->time;
	default:
		return 0;
	}
}

PERFRING_END

#endif
