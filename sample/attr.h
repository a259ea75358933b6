/* attr.h - an attr by its own size: the places and values of its members.  Other directories include "sample/attr.h".
 *
 * An attr may be shorter or longer than the installed header's struct, unaligned, and foreign: nothing beyond its `size` is read.
 * Nothing is allocated; signal handlers may call all of it.
 */
#ifndef PERFRING_SAMPLE_ATTR_H
#define PERFRING_SAMPLE_ATTR_H

#include <perfring/format.h>

enum {
#define PERFRING_ATTR_SIZE(version, size) PERFRING_ATTR_SIZE_##version = (size),
#include <perfring/values.def>
	PERFRING_ATTR_MIN = PERFRING_ATTR_SIZE_0,
	PERFRING_ATTR_MAX = 4096, /* more, no kernel accepts */
};

/* The place of each member, also of one that the installed header lacks. */
enum {
#define PERFRING_ATTR(member, offset, size, show) \
	PERFRING_ATTR_AT_##member = (offset), PERFRING_ATTR_LAST_##member = (offset) + (size)-1,
#include <perfring/values.def>
	PERFRING_ATTR_KNOWN, /* bytes, up to the last member */
};

/* The size of an attr in native order, which need not be aligned.  0 stands for the oldest size (docs/abi.md 1.3). */
static inline uint32_t perfring__attr_own_size(const void *attr)
{
	uint32_t size;

	memcpy(&size, (const unsigned char *)attr + PERFRING_ATTR_AT_size, sizeof(size));
	return size ? size : PERFRING_ATTR_MIN;
}

/* The installed header's struct: members beyond the attr's end are 0. */
static inline struct perf_event_attr perfring__attr_whole(const struct perf_event_attr *attr)
{
	struct perf_event_attr whole;
	uint32_t own = perfring__attr_own_size(attr);

	memset(&whole, 0, sizeof(whole));
	memcpy(&whole, attr, own < sizeof(whole) ? own : sizeof(whole));
	return whole;
}

/* The flag word with little-endian bit numbers. */
uint64_t perfring__attr_flags(const struct perf_event_attr *attr);

/* Every member as a word; members beyond the attr's end are 0.  The flag word has little-endian bit numbers. */
struct perfring_attr_members {
#define PERFRING_ATTR(member, offset, size, show) uint64_t member;
#include <perfring/values.def>
};

/* Returns 0, or -EINVAL for a size below 64 or above 4096. */
int perfring__attr_read(struct perfring_attr_members *members, const struct perf_event_attr *attr);

#endif
