/* attr.h - an attr's size, and its members, read by that size. */
#ifndef PERFRING_SAMPLE_ATTR_H
#define PERFRING_SAMPLE_ATTR_H

#include <perfring/format.h>

enum {
	PERFRING_ATTR_MIN = 64,
	PERFRING_ATTR_MAX = 4096,
};

/* Of an attr in our order, which need not be aligned.  0 stands for the oldest size (docs/abi.md 1.3). */
static inline uint32_t perfring_attr_own_size(const void *attr)
{
	uint32_t size;

	memcpy(&size, (const unsigned char *)attr + offsetof(struct perf_event_attr, size), sizeof(size));
	return size ? size : PERFRING_ATTR_MIN;
}

/* Every member as a word; those behind attr's size are 0.  The flag word has little-endian bit numbers. */
struct perfring_attr_members {
#define PERFRING_ATTR(member, offset, size, show) uint64_t member;
#include <perfring/values.def>
};

/* Returns 0, or -EINVAL for a size below 64 or above 4096. */
int perfring_attr_read(struct perfring_attr_members *members, const struct perf_event_attr *attr);

#endif
