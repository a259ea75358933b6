/* reader.h - reading the records of one ring, the kernel's or our own.
 *
 *     perfring_reader_observe(&reader);                        how far: sampled once, so the drain below ends
 *     while (perfring_reader_next(&reader, &record) == 1)
 *             use(record);                                     valid until perfring_reader_return
 *     perfring_reader_return(&reader);                         gives the room back to the writer
 *
 * A record is read where it lies.  Only one that wraps around the end of a ring that is mapped once is joined in the
 * reader's own 64 KiB.  At most one record between two returns can wrap, so all records stay valid together until the
 * return.  A return costs the writer a cache line: once for many records, not for each.
 *
 * Invariant: returned <= position <= observed <= returned + size, as distances; positions are never compared.
 *
 *                 observe  next  return  skip        one reader belongs to one thread; the writer may write meanwhile
 */
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
	uint64_t observed;           /* the writer's position when last looked at */
	uint64_t returned;           /* what the writer was last told */
	unsigned char *joint;        /* 64 KiB for a record in two pieces; NULL when the data is mapped twice */
	struct perfring_fault fault; /* of the last -EBADMSG; `at` is a ring position */
	uint32_t flags;
	uint32_t padding;
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_reader) == 120, "reader");

/* A word of a ring: aligned, and of whatever type the record has there. */
typedef uint64_t perfring_ring_word __attribute__((__may_alias__));

enum perfring_reader_flag {
	/* The writer's process is not trusted: each record is copied out, and its size cannot change under the decoder.
	 * A record is then valid until the next perfring_reader_next. */
	PERFRING_READER_COPY = 1,

	/* Set with PERFRING_DEBUG alone: two readers return room of one ring, and each gives away what the other still
	 * reads.  observe is -EBADMSG from then on. */
	PERFRING_READER_DISTURBED = 2,
};

/* Starts where the control page's data_tail stands: closing loses no record, and the next reader goes on behind what was
 * returned.  One reader a ring at a time: two would give away what the other still reads (found out with PERFRING_DEBUG).
 * Returns 0; -EINVAL (no data pages; a ring that overwrites or falls: snapshot.h; a read-only mapping, into which nothing
 * can be given back); -ENOMEM (the joint). */
PERFRING_API int perfring_reader_open(struct perfring_reader *reader, const struct perfring_ring *ring, unsigned flags);
PERFRING_API void perfring_reader_close(struct perfring_reader *reader);

/* The record at the reader's position, of which perfring_reader_peek has read the header, in one piece in `room` (of
 * header->size bytes, aligned to 8): with that header, whatever another process writes into the ring meanwhile. */
PERFRING_API void perfring_reader_copy(const struct perfring_reader *reader, const struct perf_event_header *header,
				       void *room);

/* The same in the joint: for perfring_reader_next alone. */
PERFRING_API const struct perf_event_header *perfring_reader_join(struct perfring_reader *reader,
								  const struct perf_event_header *header);

/* Samples how far the writer is.  Returns the bytes there are to read, or -EBADMSG when the ring cannot be right: more
 * is said to be there than the ring holds, or a record would begin between words.  A corrupt ring is not moved in;
 * perfring_reader_skip goes on behind the fault. */
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
		reader->fault.what = "data_head is not between what was read and the ring's end";
		return -EBADMSG;
	}
	reader->observed = observed;
	return (int64_t)(observed - reader->position);
}

/* The size of the record at the reader's position, which stays there, but moves over fillers (ring.h): read once, and
 * checked.  0 when there is none before what was observed; -EBADMSG with reader->fault. */
PERFRING_INLINE int perfring_reader_peek(struct perfring_reader *reader, struct perf_event_header *header)
{
	uint64_t left, word;

again:
	left = reader->observed - reader->position;
	if (left == 0)
		return 0;
	/* No order: observe's acquire has made the record visible, and that it is one load is all that matters here. */
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

/* The next record of those observed, else NULL.  Returns 1, 0 when the drain is at its end, or -EBADMSG with
 * reader->fault, again on each call until perfring_reader_skip.  Valid until: perfring_reader_return (see
 * PERFRING_READER_COPY). */
PERFRING_INLINE int perfring_reader_next(struct perfring_reader *reader, const struct perf_event_header **record)
{
	struct perf_event_header header;
	int size = perfring_reader_peek(reader, &header);
	uint64_t from = reader->position & reader->mask;

	if (size <= 0) {
		*record = NULL;
		return size;
	}
	if (PERFRING_UNLIKELY((reader->flags & PERFRING_READER_COPY) || from + (uint64_t)size > reader->span))
		*record = perfring_reader_join(reader, &header);
	else
		*record = (const struct perf_event_header *)(const void *)(reader->data + from);
	reader->position += (uint64_t)size;
	return 1;
}

/* Gives the writer back everything before `position`, which lies between the last return and the reader's. */
PERFRING_INLINE void perfring_reader_return_to(struct perfring_reader *reader, uint64_t position)
{
	if (position == reader->returned)
		return;
#ifdef PERFRING_DEBUG
	/* data_tail is ours alone to move. */
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

/* Gives back every record that was handed out. */
PERFRING_INLINE void perfring_reader_return(struct perfring_reader *reader)
{
	perfring_reader_return_to(reader, reader->position);
}

/* Goes on behind a fault: gives up everything up to the writer's position now.  Returns the bytes given up, as far as
 * the ring's word on it can be believed: at most its size. */
PERFRING_API uint64_t perfring_reader_skip(struct perfring_reader *reader);

PERFRING_END

#endif
