/* writer.h - writing into a perfring ring from one thread and the signal handlers that interrupt it, nested to any depth.
 *
 *     record = perfring_writer_reserve(writer, NULL, size, &claim);     contiguous space in the ring
 *     if (record) {                                                      NULL: full; counted
 *             ... encode in place ...
 *             perfring_writer_commit(writer, &claim);                    or perfring_writer_discard
 *     }
 *
 * The results are those of the kernel's algorithm (docs/abi.md 7.2 to 7.7): what fits, what is counted as lost, where LOST
 * records are, when the reader is woken.  It costs less:
 *
 *   - A record touches one private cache line: claimed, position, limit.  The reader's line is read only when the limit is
 *     reached.
 *   - Two words hold the state, and are accessed by plain loads and stores.  Records before `position` are committed; space up
 *     to `claimed` is reserved.  If claimed > position, a record is uncommitted, and a reserve at this time is nested.
 *
 *         outermost                                    a handler that interrupts here
 *           claimed, then position                       is outermost, commits, and has moved both:
 *           claimed := position + size                     so position is checked again
 *           position unchanged?  below the limit?        from here on it is nested: it reserves after `claimed`,
 *           ... the record ...                             and sets `again` when it commits
 *           data_head := claim's end
 *           position := claim's end                      from here on it is outermost again
 *           again?  then publish up to `claimed`
 *
 *     So data_head never covers an uncommitted record and never decreases, and of a handler and the code that it interrupts
 *     exactly one publishes.
 *   - `limit` reduces all conditions of the slow path to one comparison: the ring was full when last checked, a wakeup is due, a
 *     loss is to be reported, output is paused, a reader wants to be woken, wakeup_events are counted, the ring is backward, or
 *     this is a child after fork.  A stale limit is only ever too low: then the slow path checks and continues.
 *
 * Two results differ from the kernel's.  A handler that runs within the few instructions between a claim that does not fit
 * and the slow path's undoing of it is refused too, even if its own record would fit; both are counted.  If handlers cross
 * the watermark for records that precede theirs, the wakeup stamp counts that once.
 *
 * The writer belongs to the thread that opened it, and its handlers.  All functions but open, close and reset are
 * async-signal-safe, take no lock, do not allocate, and keep errno.
 *
 *              reserve commit discard begin take write | pause arm lost flush | reset close
 *   thread            yes                              |         yes          |    yes
 *   handler           yes                              |         yes          |    no
 *   other threads     no                               |         yes          |    no
 *
 * Fillers.  A ring may hold filler records of type 0 (ring.h).  libbpf's perf_buffer fails at them: for such a consumer use a
 * shared ring, STRICT with PERFRING_RING_LOST_FILLERS.
 *
 * fork: the child does not inherit the mapping (as with the kernel's), and its private line is zero.  There reserve returns
 * NULL and commit does nothing; encoding a record that the parent had reserved ends in SIGSEGV, and never changes the
 * parent's ring.  The child can create or attach a ring of its own.
 *
 * longjmp, swapcontext, pthread_exit or an exception that leaves a handler which interrupted a record, or leaves the record
 * itself, keeps that record uncommitted, so that nothing is published any more, until the thread calls perfring_writer_reset. */
#ifndef PERFRING_WRITER_H
#define PERFRING_WRITER_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

/* An event's part of the ring that it writes into, as the kernel's output.  Several outputs may share a writer: each has its
 * own id, trailer, wakeup_events and count of refused records; the ring's counters are common (docs/abi.md 7.9).  Several
 * writers may share an output too, if its trailer may run in several threads.  An output is used only from reserve to
 * commit. */
struct perfring_output {
	uint64_t id;            /* of a LOST record that this output writes */
	perfring_u64 lost;      /* its refused records, as PERF_FORMAT_LOST; never reset */
	uint32_t wakeup_events; /* wake after this number of samples; 0: only by the ring's watermark */
	uint32_t trailer_size;  /* bytes of the sample_id trailer of its LOST records: 0 to 48, a multiple of 8 */
	/* Writes the trailer into `buffer`.  Async-signal-safe; must not write records into the ring. */
	void (*trailer)(const struct perfring_output *output, void *buffer);
	void *data; /* the caller's */
	uint64_t reserved[2];
};

/* What reserve does if a record does not fit. */
enum perfring_writer_policy {
	PERFRING_WRITER_DROP, /* refuses and counts, as the kernel */
	PERFRING_WRITER_WAIT, /* publishes, and waits for the reader up to wait_ns; then refuses and counts.  If nested, it does
			       * not wait: the interrupted record cannot be published */
};

enum perfring_stamp {
	PERFRING_STAMP_NONE,    /* perfring_writer_stamp returns 0 */
	PERFRING_STAMP_CLOCK,   /* clock_gettime(clockid) */
	PERFRING_STAMP_COUNTER, /* the processor's counter, raw; perfring_page_to_time converts (perfring_ring_calibrate) */
	PERFRING_STAMP_TRANSACTION, /* clock_gettime once for each claim: all records of a transaction have that time */
};

struct perfring_writer_options {
	uint32_t policy; /* enum perfring_writer_policy */
	uint32_t stamp;  /* enum perfring_stamp */
	int32_t clockid;
	int32_t wake_fd; /* an eventfd (EFD_NONBLOCK) that a wakeup writes to (wakeup.h); -1: none */
	uint64_t wait_ns;
	struct perfring_output output; /* for calls with output NULL */
	uint64_t reserved[2];
};

/* A writer, in a page of its own of the writing process, which is zero in a child after fork.  The members are for the inlines:
 * callers only pass the pointer. */
struct perfring_writer {
	/* the cache line of the fast path.  Positions increase in backward rings too */
	perfring_u64 claimed;  /* end of the reserved space; not above `position`: no record is uncommitted */
	perfring_u64 position; /* end of the committed records */
	perfring_u64 limit;    /* a claim that ends above it takes the slow path */
	unsigned char *data;
	uint64_t mask; /* ring size - 1 */
	struct perf_event_mmap_page *page;
	uint8_t again; /* the outermost commit has more to do: to publish for a nested one, to wake */
	uint8_t call;  /* the next publication wakes an armed reader */
	uint8_t stamp; /* enum perfring_stamp */
	uint8_t padding1;
	int32_t clockid;
	const void *thread; /* of the owner, for PERFRING_DEBUG */

	/* the slow path (positions as above) */
	perfring_u64 lost;   /* refused records that no LOST record reports yet */
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
	struct perfring_ring ring; /* the mapping, which fork inherits again after close */
	perfring_u64 oldest; /* of a forward ring that overwrites: where its oldest whole record begins */
	uint64_t reserved[3];
};

/* A reserved, uncommitted record, in memory of the caller until it is committed or discarded. */
struct perfring_claim {
	uint64_t end; /* the position after it */
	uint64_t size;
	uint64_t taken; /* of a transaction: bytes taken */
	uint64_t time;  /* PERFRING_STAMP_TRANSACTION; 0: not taken yet */
	struct perfring_output *output;
	unsigned char *space;
	uint64_t state; /* 0: outermost; else enum perfring_claim_state */
};

enum perfring_claim_state {
	PERFRING_CLAIM_NESTED = 1,
	PERFRING_CLAIM_RARE = 2,     /* commit takes the slow path: a backward ring, or samples are counted */
	PERFRING_CLAIM_BACKWARD = 4, /* a transaction is filled from its upper end */
};

/* Opens the calling thread's writer of a ring that was created or attached by perfring (not STRICT or LEASED: use shared.h).
 * It continues at the ring's positions.  The ring must stay open until the writer is closed.  Returns 0; -EINVAL (not a
 * perfring ring, read-only, shared, a trailer_size that is not a multiple of 8 or above 48, an unknown clock); -EBADMSG
 * (impossible positions in the control page); -EBUSY (another live writer has it open, as far as this pid namespace shows; a
 * thread that was just joined may still count as live); -ENOMEM.  In a ring that overwrites, space that a dead writer had
 * reserved becomes a filler and counts as one loss; in other rings its uncommitted records leave no trace. */
PERFRING_API int perfring_writer_open(struct perfring_writer **writer, struct perfring_ring *ring,
				      const struct perfring_writer_options *options);

/* Closes the writer; its ring stays open.  All committed records are published already.  Refused records that no LOST record
 * reports yet are in perfring_ring_state.lost_total, and the next writer's first record reports them. */
PERFRING_API void perfring_writer_close(struct perfring_writer *writer);

/* For use after a jump out of a record: drops what was reserved and not published.  This counts as one loss: the records that
 * handlers committed between the jump and this call are dropped too, and are not counted.  Those that they commit during this
 * call are kept.  In a ring that overwrites, and before a kept record, the dropped space becomes a filler. */
PERFRING_API void perfring_writer_reset(struct perfring_writer *writer);

/* Pauses or resumes output; opening another writer resumes it too.  While paused, reserves are refused and counted
 * (docs/abi.md 7.3, step 2).  Records that were reserved before the return may still be committed; if membarrier(2) is refused
 * (seccomp), records may also be reserved after it, up to the old limit.  Context: any thread; handlers. */
PERFRING_EXPERIMENTAL void perfring_writer_pause(struct perfring_writer *writer, bool paused);

/* For a reader that is about to sleep (wakeup.h): the next record wakes it, whatever the watermark.  Returns whether a record
 * is uncommitted now; it may be published without a wakeup, so the reader must sleep only briefly.  The same holds for the next
 * record if membarrier(2) is refused (seccomp). */
PERFRING_API bool perfring_writer_arm(struct perfring_writer *writer);

/* The number of records refused since the ring was created, including those that no LOST record reports yet. */
PERFRING_EXPERIMENTAL uint64_t perfring_writer_lost(const struct perfring_writer *writer);

/* Wakes the reader if the ring has unread records, whatever the watermark. */
PERFRING_API void perfring_writer_flush(struct perfring_writer *writer);

/* ---- the slow paths, for the inlines below only.  A claim is passed by its members, so that its address is not taken and
 * compilers keep it in registers; the low bits of `end` are enum perfring_claim_state ---- */

struct perfring_place {
	unsigned char *space; /* NULL: refused */
	uint64_t end;
};

/* end: of the claim that went past the limit; 0: there is no claim. */
PERFRING_API struct perfring_place perfring_writer_reserve_slow(struct perfring_writer *writer,
								struct perfring_output *output, uint64_t size,
								uint64_t end);
PERFRING_API void perfring_writer_refuse(struct perfring_writer *writer, struct perfring_output *output,
					 uint64_t records);
PERFRING_API void perfring_writer_commit_slow(struct perfring_writer *writer, const struct perfring_output *output,
					      const unsigned char *space, uint64_t size, uint64_t end);
PERFRING_API void perfring_writer_settle(struct perfring_writer *writer);
PERFRING_API void perfring_writer_discard_slow(struct perfring_writer *writer, unsigned char *space, uint64_t size,
					       uint64_t end);
/* Frees the last `rest` bytes of a claim, at `space`, or makes them a filler.  Returns the end. */
PERFRING_API uint64_t perfring_writer_shrink(struct perfring_writer *writer, unsigned char *space, uint64_t rest,
					     uint64_t end);
PERFRING_API uint64_t perfring_writer_clock(const struct perfring_writer *writer);
/* The calling thread as in writer->thread, for PERFRING_DEBUG. */
PERFRING_API const void *perfring_writer_thread(void);

/* ---- one record ---- */

/* Claims `size` bytes, as drawn above. */
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
	PERFRING_FENCE_LOCAL(); /* in this order: a handler between the loads makes position too new, never too old */
	start = PERFRING_LOAD(&writer->position);
	end = start + size;
	if (PERFRING_LIKELY(claimed == start)) {
		PERFRING_POINT(writer_looked);
		PERFRING_STORE(&writer->claimed, end);
		PERFRING_FENCE_LOCAL(); /* claim, then check: after this, handlers are nested and do not move `position` */
		PERFRING_POINT(writer_claimed);
		if (PERFRING_LIKELY(PERFRING_LOAD(&writer->position) == start && end <= PERFRING_LOAD(&writer->limit) &&
				    !(output && output->wakeup_events))) {
			claim->end = end;
			claim->state = 0;
			claim->space = writer->data + (start & writer->mask);
			if (!claim->space)
				__builtin_unreachable(); /* spares the caller's test for NULL */
			return claim->space;
		}
	} else {
		end = 0; /* nested; or a handler ran between the two loads */
	}
	place = perfring_writer_reserve_slow(writer, output, size, end);
	claim->end = place.end & ~UINT64_C(7);
	claim->state = place.end & 7;
	claim->space = place.space;
	return place.space;
}

/* Reserves contiguous space of `size` bytes, aligned to 8, for one record.  The caller writes the record with its header,
 * which has this size.  output: NULL for the writer's own.  Each claim must be committed or discarded, in the reverse order
 * of reserving.  Returns NULL if the record is refused, and counted: the ring is full, output is paused, or the size is
 * invalid (0, not a multiple of 8, above 65528, or above the ring's size). */
PERFRING_INLINE void *perfring_writer_reserve(struct perfring_writer *writer, struct perfring_output *output,
					      uint64_t size, struct perfring_claim *claim)
{
	/* One comparison: a size that is too small wraps around, and one that is not a multiple of 8 rotates to the top. */
	if (PERFRING_UNLIKELY(((size - 8) >> 3 | (size - 8) << 61) > (PERFRING_RECORD_MAX - 8) / 8)) {
		perfring_writer_refuse(writer, output, 1);
		return NULL;
	}
	return perfring_writer_claim(writer, output, size, claim);
}

/* Commits the record.  The outermost commit publishes it, with all records that nested writers have committed meanwhile. */
PERFRING_INLINE void perfring_writer_commit(struct perfring_writer *writer, const struct perfring_claim *claim)
{
	struct perf_event_mmap_page *page;

	if (PERFRING_LIKELY(claim->state == 0)) {
		page = writer->page;
		if (PERFRING_UNLIKELY(!page)) /* a fork's child */
			return;
		PERFRING_POINT(writer_encoded);
		perfring_page_publish(page, claim->end); /* pairs with the reader's observe */
		PERFRING_FENCE_LOCAL(); /* a handler before the next store is nested: it must not find an old data_head */
		PERFRING_POINT(writer_published);
		/* Release, for perfring_writer_arm: a thread that sees this position sees what was published. */
		PERFRING_STORE_RELEASE(&writer->position, claim->end);
		PERFRING_FENCE_LOCAL(); /* leave, then check `again`: a handler from here on publishes for itself */
		PERFRING_POINT(writer_left);
		if (PERFRING_UNLIKELY(PERFRING_LOAD(&writer->again)))
			perfring_writer_settle(writer);
	} else if (claim->state == PERFRING_CLAIM_NESTED) {
		PERFRING_FENCE_LOCAL(); /* the record's bytes before the store of `again` */
		PERFRING_STORE(&writer->again, (uint8_t)1);
	} else {
		perfring_writer_commit_slow(writer, claim->output, claim->space, claim->size, claim->end | claim->state);
	}
}

/* Drops the record.  If nothing nested follows it, its space is free again; else, and always in a ring that overwrites (the oldest
 * records are gone by then), it becomes a filler, which perfring's readers skip.  Nothing is counted as lost. */
PERFRING_INLINE void perfring_writer_discard(struct perfring_writer *writer, const struct perfring_claim *claim)
{
	perfring_writer_discard_slow(writer, claim->space, claim->size, claim->end | claim->state);
}

/* Copies a whole record into the ring.  Returns whether it was accepted; refused records are counted. */
PERFRING_INLINE bool perfring_writer_write(struct perfring_writer *writer, struct perfring_output *output,
					   const void *record, uint64_t size)
{
	struct perfring_claim claim;
	void *space = perfring_writer_reserve(writer, output, size, &claim);

	if (PERFRING_UNLIKELY(!space))
		return false;
	/* A compiler that knows the size of a large copy spells it out, and the C library's own is twice as fast. */
	if (__builtin_constant_p(size) && size >= 256)
		__asm__("" : "+r"(size));
	memcpy(space, record, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

/* ---- several records, one publication ---- */

/* Claims `size` bytes (a multiple of 8) for a transaction of `records` records, which the reader sees all at once.  If
 * refused, all of them count.  Take the space of each record in turn; commit frees what was not taken.  Returns whether it
 * was accepted. */
PERFRING_INLINE bool perfring_writer_begin(struct perfring_writer *writer, struct perfring_output *output,
					   uint64_t size, uint64_t records, struct perfring_claim *claim)
{
	if (PERFRING_UNLIKELY(size == 0 || (size & 7) || size > writer->mask)) {
		perfring_writer_refuse(writer, output, records);
		return false;
	}
	if (PERFRING_UNLIKELY(!perfring_writer_claim(writer, output, size, claim))) {
		if (records > 1) /* the claim has counted one */
			perfring_writer_refuse(writer, output, records - 1);
		return false;
	}
	return true;
}

/* Space for the transaction's next record; NULL if `size` is invalid or more than is left. */
PERFRING_INLINE void *perfring_writer_take(struct perfring_claim *claim, uint64_t size)
{
	if (PERFRING_UNLIKELY(size < 8 || (size & 7) || size > PERFRING_RECORD_MAX ||
			      size > claim->size - claim->taken))
		return NULL;
	claim->taken += size;
	/* In a backward ring the first record is the oldest, at the highest address. */
	return claim->space +
	       (claim->state & PERFRING_CLAIM_BACKWARD ? claim->size - claim->taken : claim->taken - size);
}

/* Publishes the records that were taken. */
PERFRING_INLINE void perfring_writer_end(struct perfring_writer *writer, struct perfring_claim *claim)
{
	uint64_t rest = claim->size - claim->taken;
	unsigned char *space = claim->space;

	if (PERFRING_UNLIKELY(!claim->taken)) {
		perfring_writer_discard(writer, claim);
		return;
	}
	if (PERFRING_UNLIKELY(rest)) {
		if (claim->state & PERFRING_CLAIM_BACKWARD)
			claim->space += rest;
		else
			space += claim->taken;
		claim->size = claim->taken;
		claim->end = perfring_writer_shrink(writer, space, rest, claim->end | claim->state);
	}
	perfring_writer_commit(writer, claim);
}

/* ---- stamps ---- */

/* The processor's counter: raw, not ordered with other instructions. */
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

/* A time stamp for a record, by the writer's option `stamp`. */
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
