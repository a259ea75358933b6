/* reader.c - the parts of a reader that run once a ring, or once a lap.
 *
 * reader.h has the rest as inlines.  sessions, sets and per-CPU rings open readers.  One thread at a time for each reader; the
 * ring's bytes may change meanwhile, so each is read once.
 */
#include <perfring/reader.h>

#include <stdlib.h>

/* The largest record: its size is a u16. */
enum {
	JOINT_SIZE = 65536
};

int perfring_reader_open(struct perfring_reader *reader, const struct perfring_ring *ring, unsigned flags)
{
	uint64_t tail;

	memset(reader, 0, sizeof(*reader));
	/* Returning space stores into the page, which is a SIGSEGV if that is read-only. */
	if (!ring->page || !ring->data || ring->size < 8 ||
	    (ring->flags & (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD | PERFRING_RING_READ_ONLY)))
		return -EINVAL;
	reader->page = ring->page;
	reader->data = ring->data;
	reader->mask = ring->size - 1;
	reader->span = ring->span;
	/* a record that wraps is at the beginning of `joint`, unless it is one of many copies */
	reader->flags = flags & PERFRING_READER_COPY ? flags : flags & ~(unsigned)PERFRING_READER_KEEP;
	if (ring->span < 2 * ring->size || (flags & PERFRING_READER_COPY)) {
		reader->joint = malloc(JOINT_SIZE + (reader->flags & PERFRING_READER_KEEP ? (size_t)ring->size : 0));
		if (!reader->joint) {
			memset(reader, 0, sizeof(*reader));
			return -ENOMEM;
		}
	}
	/* No order needed: only this end stores data_tail. */
	tail = perfring_page_reclaim(ring->page) & ~UINT64_C(7);
	reader->position = tail;
	reader->observed = tail;
	reader->returned = tail;
	return 0;
}

void perfring_reader_close(struct perfring_reader *reader)
{
	if (!reader)
		return;
	free(reader->joint);
	memset(reader, 0, sizeof(*reader));
}

void perfring_reader_copy(const struct perfring_reader *reader, const struct perf_event_header *header, void *buffer)
{
	unsigned char *bytes = buffer;
	uint64_t word;

	memcpy(bytes, header, sizeof(*header));
	/* Each word is read once.  No order needed: observe's acquire has made them visible. */
	for (uint64_t at = sizeof(*header); at < header->size; at += sizeof(word)) {
		word = PERFRING_LOAD(
			(const perfring_ring_word *)(const void *)(reader->data +
								   ((reader->position + at) & reader->mask)));
		memcpy(bytes + at, &word, sizeof(word));
	}
}

const struct perf_event_header *perfring_reader_join(struct perfring_reader *reader,
						     const struct perf_event_header *header)
{
	/* in this copy, a record may reach beyond the ring's end */
	uint64_t at = reader->flags & PERFRING_READER_KEEP ? reader->position & reader->mask : 0;

	perfring_reader_copy(reader, header, reader->joint + at);
	return (const struct perf_event_header *)(void *)(reader->joint + at);
}

uint64_t perfring_reader_skip(struct perfring_reader *reader)
{
	uint64_t observed = perfring_page_observe_from(reader->page, reader->returned) & ~UINT64_C(7);
	uint64_t skipped = observed - reader->position;

	reader->position = observed;
	reader->observed = observed;
	perfring_reader_return(reader);
	return skipped <= reader->mask + 1 ? skipped : reader->mask + 1;
}
