/* filler.h - room that was given out and is not used, made readable: filler records (ring.h). */
#ifndef RB_FILLER_H
#define RB_FILLER_H

#include <perfring/ring.h>

/* Fills `size` bytes, a multiple of 8, with as few fillers as there can be.  Their bodies stay what they were. */
static inline void filler_put(unsigned char *room, uint64_t size)
{
	struct perf_event_header header = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, 0};

	while (size) {
		header.size = size > 65528 ? 65528 : (uint16_t)size;
		memcpy(room, &header, sizeof(header));
		room += header.size;
		size -= header.size;
	}
}

#endif
