/* event.h - what the files of this room share. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <perfring/event.h>

/* Room for the newest attr there is. */
enum {
#define PERFRING_ATTR_SIZE(version, size) PERFRING_ATTR_SIZE_##version = (size),
#include <perfring/values.def>
	PERFRING_ATTR_ROOM = 4096,
};

/* The bytes that attr says it has. */
static inline uint32_t perfring_attr_bytes(const struct perf_event_attr *attr)
{
	return attr->size ? attr->size : 64;
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

/* The text of a small file of /proc or /sys, NUL-terminated, its line end cut.  Returns its length or -errno. */
int64_t perfring_event_slurp(const char *path, char *room, size_t size);

/* Opens a file under tracefs, wherever that is mounted.  Returns an fd, or -errno of the better of the two tries. */
int perfring_event_tracefs(const char *path);

#endif
