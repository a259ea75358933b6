/* reader.h - the records of one ring, of the kernel or of perfring.
 *
 *     perfring_reader_observe(&reader);                        reads the writer's position once, so that the loop ends
 *     while (perfring_reader_next(&reader, &record) == 1)
 *             use(record);                                     valid until perfring_reader_return
 *     perfring_reader_return(&reader);                         returns the space to the writer
 *
 * Records are read in place, unless the reader is opened with PERFRING_READER_COPY.  One kind of record is copied without it, into
 * 64 KiB of the reader: a record that wraps around the end of a ring that is mapped once.  At most one record between two returns
 * can wrap, so all records are valid together until the return, but for copies without PERFRING_READER_KEEP.  A return costs the writer a cache miss: call it once for many
 * records.
 *
 * The ring must stay mapped until the reader is closed.  The bytes are foreign: sizes are checked, but records are not decoded
 * (record.h, sample.h) nor checked (check.h).
 *
 * Invariant: returned <= position <= observed <= returned + size, as distances (positions wrap around).
 *
 * Context: one thread or signal handler at a time for each reader; open and close: threads.  The writer may write at the same
 * time. */
#ifndef PERFRING_READER_H
#define PERFRING_READER_H

#include <perfring/page.h>
#include <perfring/ring.h>

PERFRING_BEGIN

struct perfring_reader {
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t mask;               /* ring size - 1 */
	uint64_t span;               /* as in perfring_ring */
	uint64_t position;           /* the next record */
	uint64_t observed;           /* the writer's position at the last observe */
	uint64_t returned;           /* data_tail as last stored */
	unsigned char *joint;        /* where records are copied to; NULL: none is (data mapped twice, no COPY) */
	struct perfring_fault fault; /* of the last -EBADMSG; `at` is a ring position */
	uint32_t flags;
	uint32_t padding;
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_reader) == 120, "reader");

/* Whether the invariant holds. */
PERFRING_INNER bool perfring_reader_is_valid(const struct perfring_reader *reader)
{
	uint64_t position = reader->position - reader->returned, observed = reader->observed - reader->returned;

	return position <= observed && observed <= reader->mask + 1;
}

/* An aligned word of a ring, which may alias any type. */
typedef uint64_t perfring_ring_word __attribute__((__may_alias__));

/* flags of perfring_reader_open, and one that the reader sets. */
enum perfring_reader_flag {
	/* The writer's process is not trusted: each record is copied, so that nothing changes during the decoding.
	 * A record is then valid until the next perfring_reader_take or next. */
	PERFRING_READER_COPY = 1,

	/* Set by the reader, with PERFRING_DEBUG only (a macro that callers define before these headers): a second reader returned space of this ring.  observe returns
	 * -EBADMSG from then on. */
	PERFRING_READER_DISTURBED = 2,

	/* With COPY: each copy has a place of its own and is valid until perfring_reader_return.  Takes the ring's size and
	 * 64 KiB of memory.  Without COPY it has no effect. */
	PERFRING_READER_KEEP = 4,
};

/* Opens a reader at the control page's data_tail.  Closing it loses no record: the next reader starts after what was returned.
 * Only one reader of a ring may be open: with two, each would free space that the other is still reading (detected with
 * PERFRING_DEBUG).  flags: COPY, KEEP.  Returns 0; -EINVAL (no data pages; a ring that overwrites or is backward: use snapshot.h;
 * a read-only mapping); -ENOMEM.  close frees the copies; it returns no space.  Context of both: threads. */
PERFRING_API int perfring_reader_open(struct perfring_reader *reader, const struct perfring_ring *ring, unsigned flags);
PERFRING_API void perfring_reader_close(struct perfring_reader *reader);

/* Copies the record at the reader's position.  header: as perfring_reader_peek read it; the copy has this header, even if
 * another process changes the one in the ring.  buffer: header->size bytes, aligned to 8. */
PERFRING_EXPERIMENTAL void perfring_reader_copy(const struct perfring_reader *reader, const struct perf_event_header *header,
				       void *buffer);

/* The same into `joint`; for perfring_reader_take. */
PERFRING_API const struct perf_event_header *perfring_reader_join(struct perfring_reader *reader,
								  const struct perf_event_header *header);

/* Reads the writer's position.  Returns the number of bytes to read; -EBADMSG, with reader->fault, if the position is
 * impossible (more than the ring holds, less than what was read, or not a multiple of 8, which all sizes are), or after
 * PERFRING_READER_DISTURBED.  After an impossible position only the fault has changed, and perfring_reader_skip continues. */
PERFRING_INLINE int64_t perfring_reader_observe(struct perfring_reader *reader)
{
	uint64_t observed = perfring_page_observe_from(reader->page, reader->returned);

#ifdef PERFRING_DEBUG
	if (reader->flags & PERFRING_READER_DISTURBED)
		return -EBADMSG;
#endif
	if (PERFRING_UNLIKELY(observed - reader->returned > reader->mask + 1 ||
			      observed - reader->returned < reader->position - reader->returned || (observed & 7))) {
		reader->fault.at = (int64_t)observed;
		reader->fault.what = "data_head is not between what was read and what the ring holds";
		return -EBADMSG;
	}
	reader->observed = observed;
	return (int64_t)(observed - reader->position);
}

/* Reads the header at the reader's position once, and checks it.  Moves the position past fillers (ring.h), but not past the
 * record whose header it returns.  Returns that record's size; 0 if there is no record before the observed position; -EBADMSG with
 * reader->fault. */
PERFRING_INLINE int perfring_reader_peek(struct perfring_reader *reader, struct perf_event_header *header)
{
	uint64_t left, word;

again:
	left = reader->observed - reader->position;
	if (left == 0)
		return 0;
	/* Relaxed: observe's acquire made the record visible.  One load, so that what is checked is what is used. */
	word = PERFRING_LOAD(
		(const perfring_ring_word *)(const void *)(reader->data + (reader->position & reader->mask)));
	memcpy(header, &word, sizeof(word));
	if (PERFRING_UNLIKELY(header->size < sizeof(*header) || header->size > left || (header->size & 7))) {
		reader->fault.at = (int64_t)reader->position;
		reader->fault.what = header->size < sizeof(*header) ? "record smaller than its header"
				     : header->size & 7             ? "record size is not a multiple of 8"
								    : "record longer than what was written";
		return -EBADMSG;
	}
	if (PERFRING_UNLIKELY(perfring_ring_is_filler(header))) {
		reader->position += header->size;
		goto again;
	}
	return header->size;
}

/* Takes the record that perfring_reader_peek found, whose header it read.  Returns it in one piece.  Valid until
 * perfring_reader_return (but see PERFRING_READER_COPY). */
PERFRING_INLINE const struct perf_event_header *perfring_reader_take(struct perfring_reader *reader,
								     const struct perf_event_header *header)
{
	uint64_t at = reader->position & reader->mask;
	const struct perf_event_header *record = (const struct perf_event_header *)(const void *)(reader->data + at);

	if (PERFRING_UNLIKELY((reader->flags & PERFRING_READER_COPY) || at + header->size > reader->span))
		record = perfring_reader_join(reader, header);
	PERFRING_POINT(reader_taken);
	reader->position += header->size;
	return record;
}

/* Sets *record to the next record before the observed position; to NULL if there is none.  Returns 1; 0 at the end; -EBADMSG with
 * reader->fault, at each call until perfring_reader_skip.  The record is valid as long as one of perfring_reader_take. */
PERFRING_INLINE int perfring_reader_next(struct perfring_reader *reader, const struct perf_event_header **record)
{
	struct perf_event_header header;
	int size = perfring_reader_peek(reader, &header);

	*record = size > 0 ? perfring_reader_take(reader, &header) : NULL;
	return size > 0 ? 1 : size;
}

/* Gives the space before `position` back to the writer.  position: where a record begins, between the last return and the reader's
 * position; it is not checked. */
PERFRING_INLINE void perfring_reader_return_to(struct perfring_reader *reader, uint64_t position)
{
	if (position == reader->returned)
		return;
#ifdef PERFRING_DEBUG
	/* Only this reader may store data_tail. */
	if (PERFRING_LOAD(&reader->page->data_tail) != reader->returned) {
		reader->fault.at = (int64_t)reader->returned;
		reader->fault.what = "a second reader has moved data_tail";
		reader->observed = reader->position;
		reader->flags |= PERFRING_READER_DISTURBED;
		return;
	}
#endif
	reader->returned = position;
	perfring_page_return(reader->page, position);
}

/* Gives the space of all records that were taken back to the writer. */
PERFRING_INLINE void perfring_reader_return(struct perfring_reader *reader)
{
	perfring_reader_return_to(reader, reader->position);
}

/* Continues after a fault, but for PERFRING_READER_DISTURBED: drops everything up to the writer's present position, and gives all
 * space back: records that were taken are no longer valid.  Returns the number of bytes dropped, at most the ring's size. */
PERFRING_API uint64_t perfring_reader_skip(struct perfring_reader *reader);

PERFRING_END

#endif
