/* event_private.h - what the files of this room share. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <perfring/event.h>

/* Room for the newest attr there is. */
enum {
#define PERFRING_ATTR_SIZE(version, size) PERFRING_ATTR_SIZE_##version = (size),
#include <perfring/values.def>
	PERFRING_ATTR_MAX = 4096,
	PERFRING_ATTR_MIN = 64,
};

/* Where a member lies: also one that the installed header's struct does not name. */
enum {
#define PERFRING_ATTR(member, offset, size, show) PERFRING_ATTR_AT_##member = (offset),
#include <perfring/values.def>
};

/* An attr with room behind it for every member there will be. */
union perfring_attr {
	struct perf_event_attr attr;
	unsigned char bytes[PERFRING_ATTR_MAX];
};

/* The bytes that attr says it has. */
static inline uint32_t perfring_attr_bytes(const struct perf_event_attr *attr)
{
	return attr->size ? attr->size : PERFRING_ATTR_MIN;
}

/* All members of the installed header's struct: an attr of an older size ends before some, which are 0 then. */
static inline struct perf_event_attr perfring_attr_whole(const struct perf_event_attr *attr)
{
	struct perf_event_attr whole;
	uint32_t bytes = perfring_attr_bytes(attr);

	memset(&whole, 0, sizeof(whole));
	memcpy(&whole, attr, bytes < sizeof(whole) ? bytes : sizeof(whole));
	return whole;
}

/* As the kernel is sent it: no longer than what is not 0, for the caller's struct may be newer than the kernel, or than
 * our header.  Returns 0, or -E2BIG for a size that no kernel takes. */
int perfring_attr_pack(union perfring_attr *packed, const struct perf_event_attr *attr);

/* The flag word with little-endian bit numbers. */
uint64_t perfring_attr_flags(const struct perf_event_attr *attr);

/* A software event that counts nothing and needs no permission: what the kernel says to it with one member changed is
 * what it says to that member. */
void perfring_probe_begin(union perfring_attr *probe);

/* Opens and closes.  Returns 0 or -errno. */
int perfring_probe(const union perfring_attr *probe);

/* How long the kernel's own attr is; 0: it does not say (a filter is in the way). */
uint32_t perfring_probe_size(void);

/* Those of the bits of attr's word at `at` (sample_type, read_format, flags) that this kernel says it does not know. */
uint64_t perfring_probe_unknown(const struct perf_event_attr *attr, uint32_t at);

/* Text that grows as snprintf counts: what does not fit is still measured. */
struct perfring_words {
	char *room;
	size_t size;
	size_t length;
};

void perfring_say(struct perfring_words *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens a file under tracefs, wherever that is mounted.  Returns an fd, or -errno of the better of the two tries. */
int perfring_event_tracefs(const char *path);

#endif
