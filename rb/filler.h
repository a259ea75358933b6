/* filler.h - room that was given out and is not used, made readable: filler records (ring.h). */
#ifndef RB_FILLER_H
#define RB_FILLER_H

#include "lost.h"

/* Fills `size` bytes, a multiple of 8, with as few fillers as there can be.  Their bodies stay what they were. */
static inline void filler_put(unsigned char *room, uint64_t size)
{
	struct perf_event_header header = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, 0};

	while (size) {
		header.size = size > PERFRING_RECORD_MAX ? PERFRING_RECORD_MAX : (uint16_t)size;
		memcpy(room, &header, sizeof(header));
		room += header.size;
		size -= header.size;
	}
}

/* The same with LOST records that lost nothing (PERFRING_RING_LOST_FILLERS): 24 to 65 528 bytes.  The words of the record and
 * of any trailer (docs/abi.md 4.2: at most 48 bytes) are 0. */
static inline void filler_put_lost(unsigned char *room, uint64_t size)
{
	struct perf_event_header header = {PERF_RECORD_LOST, PERFRING_FILLER_MISC, (uint16_t)size};
	size_t zeros = size < LOST_SIZE + TRAILER_MOST ? (size_t)size : TRAILER_MOST;

	memset(room, 0, LOST_SIZE);
	memset(room + size - zeros, 0, zeros);
	memcpy(room, &header, sizeof(header));
}

#endif
