/* reader.c - the parts of reading that run once a ring, or once a lap. */
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
	/* To give room back is a store into the page, which kills in a read-only one. */
	if (!ring->page || !ring->data || ring->size < 8 ||
	    (ring->flags & (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD | PERFRING_RING_READ_ONLY)))
		return -EINVAL;
	reader->page = ring->page;
	reader->data = ring->data;
	reader->mask = ring->size - 1;
	reader->span = ring->span;
	reader->flags = flags;
	if (ring->span < 2 * ring->size || (flags & PERFRING_READER_COPY)) {
		reader->joint = malloc(JOINT_SIZE);
		if (!reader->joint)
			return -ENOMEM;
	}
	/* No order needed: data_tail is only ever written by this end. */
	tail = perfring_page_reclaim(ring->page) & ~UINT64_C(7);
	reader->position = tail;
	reader->observed = tail;
	reader->returned = tail;
	return 0;
}

void perfring_reader_close(struct perfring_reader *reader)
{
	free(reader->joint);
	memset(reader, 0, sizeof(*reader));
}

const struct perf_event_header *perfring_reader_join(struct perfring_reader *reader, uint16_t size)
{
	struct perf_event_header *record = (struct perf_event_header *)(void *)reader->joint;
	uint64_t from = reader->position & reader->mask;
	uint64_t row = reader->mask + 1 - from;
	uint64_t first = row < size ? row : size;

	memcpy(reader->joint, reader->data + from, (size_t)first);
	memcpy(reader->joint + first, reader->data, (size_t)(size - first));
	/* The size that was checked, whatever the memory says by now. */
	record->size = size;
	return record;
}

uint64_t perfring_reader_skip(struct perfring_reader *reader)
{
	uint64_t observed = perfring_page_observe(reader->page) & ~UINT64_C(7);
	uint64_t given_up = observed - reader->position;

	reader->position = observed;
	reader->observed = observed;
	perfring_reader_return(reader);
	return given_up <= reader->mask + 1 ? given_up : reader->mask + 1;
}
