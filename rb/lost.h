/* lost.h - the LOST record that begins the next record after a refusal (docs/abi.md 7.3, step 8). */
#ifndef RB_LOST_H
#define RB_LOST_H

#include <perfring/writer.h>

enum {
	LOST_SIZE = 24,   /* without its trailer */
	TRAILER_MAX = 48, /* six words of 8: docs/abi.md 4.2 */
};

/* Bytes, of this output.  Outputs are the caller's, given with each call: a size that no trailer can have is reduced. */
static inline uint64_t lost_size(const struct perfring_output *output)
{
	uint64_t trailer = output->trailer ? output->trailer_size & ~7u : 0;

	return LOST_SIZE + (trailer < TRAILER_MAX ? trailer : TRAILER_MAX);
}

static inline void lost_put(const struct perfring_output *output, uint64_t lost, unsigned char *space)
{
	struct perf_event_header header = {PERF_RECORD_LOST, 0, (uint16_t)lost_size(output)};

	memcpy(space, &header, sizeof(header));
	memcpy(space + 8, &output->id, 8);
	memcpy(space + 16, &lost, 8);
	if (header.size > LOST_SIZE) {
		memset(space + LOST_SIZE, 0, header.size - (size_t)LOST_SIZE);
		output->trailer(output, space + LOST_SIZE);
	}
}

/* Whether the output of an open's options is valid. */
static inline bool is_output(const struct perfring_output *output)
{
	return output->trailer_size <= TRAILER_MAX && !(output->trailer_size & 7) &&
	       (!output->trailer_size || output->trailer);
}

#endif
