/* lost.h - the LOST record that begins the next record after a refusal (docs/abi.md 7.3, step 8). */
#ifndef RB_LOST_H
#define RB_LOST_H

#include <perfring/writer.h>

enum {
	LOST_SIZE = 24,    /* without its trailer */
	TRAILER_MOST = 48, /* six words of 8: docs/abi.md 4.2 */
};

/* Bytes, of this output.  Outputs are the caller's, given with each call: what cannot be a trailer's size is cut down. */
static inline uint64_t lost_size(const struct perfring_output *output)
{
	uint64_t trailer = output->trailer ? output->trailer_size & ~7u : 0;

	return LOST_SIZE + (trailer < TRAILER_MOST ? trailer : TRAILER_MOST);
}

static inline void lost_put(const struct perfring_output *output, uint64_t lost, unsigned char *room)
{
	struct perf_event_header header = {PERF_RECORD_LOST, 0, (uint16_t)lost_size(output)};

	memcpy(room, &header, sizeof(header));
	memcpy(room + 8, &output->id, 8);
	memcpy(room + 16, &lost, 8);
	if (header.size > LOST_SIZE) {
		memset(room + LOST_SIZE, 0, header.size - (size_t)LOST_SIZE);
		output->trailer(output, room + LOST_SIZE);
	}
}

/* What an open's options may say of their output. */
static inline bool is_output(const struct perfring_output *output)
{
	return output->trailer_size <= TRAILER_MOST && !(output->trailer_size & 7) &&
	       (!output->trailer_size || output->trailer);
}

#endif
