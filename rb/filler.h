/* filler.h - filler records (ring.h), for space that was claimed and is not used.
 *
 * writer.c, shared.c and cpus.c put them, in the thread or handler that owns the space.
 */
#ifndef PERFRING_RB_FILLER_H
#define PERFRING_RB_FILLER_H

#include "output.h"

/* Fills `size` bytes, a multiple of 8, with as few fillers as possible.  Their bodies are not changed. */
static inline void filler_put(unsigned char *space, uint64_t size)
{
	struct perf_event_header header = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, 0};

	while (size) {
		header.size = size > PERFRING_RECORD_MAX ? PERFRING_RECORD_MAX : (uint16_t)size;
		memcpy(space, &header, sizeof(header));
		space += header.size;
		size -= header.size;
	}
}

/* The same with LOST records that lost nothing (PERFRING_RING_LOST_FILLERS): 24 to 65 528 bytes.  The words of the
 * record and of any trailer (docs/abi.md 4.2: at most 48 bytes) are 0. */
static inline void filler_put_lost(unsigned char *space, uint64_t size)
{
	struct perf_event_header header = {PERF_RECORD_LOST, PERFRING_FILLER_MISC, (uint16_t)size};
	size_t zeros = size < LOST_SIZE + TRAILER_MAX ? (size_t)size : TRAILER_MAX;

	memset(space, 0, LOST_SIZE);
	memset(space + size - zeros, 0, zeros);
	memcpy(space, &header, sizeof(header));
}

#endif
