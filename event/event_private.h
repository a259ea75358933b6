/* event_private.h - what the files of this room share. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <perfring/event.h>

#include "sample/attr.h"

/* An attr with room behind it for every member there will be. */
union perfring_attr {
	struct perf_event_attr attr;
	unsigned char bytes[PERFRING_ATTR_MAX];
};

/* As the kernel is sent it: no longer than what is not 0, for the caller's struct may be newer than the kernel, or than
 * our header.  Returns 0, or -E2BIG for a size that no kernel takes. */
int perfring_attr_pack(union perfring_attr *packed, const struct perf_event_attr *attr);

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
