/* attr.h - an attr's members, read by the attr's own size. */
#ifndef PERFRING_SAMPLE_ATTR_H
#define PERFRING_SAMPLE_ATTR_H

#include <perfring/format.h>

/* Every member as a word; those behind attr's size are 0.  The flag word has little-endian bit numbers. */
struct perfring_attr_members {
#define PERFRING_ATTR(member, offset, size, show) uint64_t member;
#include <perfring/values.def>
};

/* Returns 0, or -EINVAL for a size below 64 or above 4096. */
int perfring_attr_read(struct perfring_attr_members *members, const struct perf_event_attr *attr);

#endif
