/* output.h - what every kind of writer does for an output: LOST records, and wakeups by samples (docs/abi.md 7.3).
 *
 * Step numbers are those of docs/abi.md 7.3.  Included by writer.c, shared.c and cpus.c; no allocation, no system call: handlers
 * run it.
 */
#ifndef PERFRING_RB_OUTPUT_H
#define PERFRING_RB_OUTPUT_H

#include <perfring/writer.h>

enum {
	LOST_SIZE = 24,   /* without its trailer */
	TRAILER_MAX = 48, /* six words of 8: docs/abi.md 4.2 */
};

/* Bytes of a LOST record (step 8).  The caller may change an output: a size that no trailer can have is reduced. */
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

/* Step 10, for several writers: counts a record that is a sample.  Returns whether it completes wakeup_events. */
static inline bool sample_is_due(uint32_t wakeup_events, const void *record, uint64_t *events)
{
	struct perf_event_header header;
	uint64_t counted, next;

	if (PERFRING_LIKELY(!wakeup_events))
		return false;
	memcpy(&header, record, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE)
		return false;
	counted = PERFRING_LOAD(events);
	do
		next = counted + 1 >= wakeup_events ? counted + 1 - wakeup_events : counted + 1;
	while (!PERFRING_COMPARE_EXCHANGE(events, &counted, next));
	return next <= counted;
}

/* Whether the output of an open's options is valid. */
static inline bool is_output(const struct perfring_output *output)
{
	return output->trailer_size <= TRAILER_MAX && !(output->trailer_size & 7) &&
	       (!output->trailer_size || output->trailer);
}

#endif
