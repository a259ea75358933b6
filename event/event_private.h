/* event_private.h - shared by the files of this directory.
 *
 * What the files that open events and explain refusals share: attrs packed for the kernel, questions to the kernel by a dummy
 * event, sentences in a buffer of fixed size.
 */
#ifndef PERFRING_EVENT_EVENT_PRIVATE_H
#define PERFRING_EVENT_EVENT_PRIVATE_H

#include <perfring/event.h>

#include "sample/attr.h"

/* An attr of the largest size. */
union perfring_attr {
	struct perf_event_attr attr;
	unsigned char bytes[PERFRING_ATTR_MAX];
};

/* Copies an attr for the kernel, without zeros at its end: the caller's struct may be newer than the kernel, or than
 * our header.  Returns 0, or -E2BIG for a size that no kernel accepts. */
int perfring__attr_pack(union perfring_attr *packed, const struct perf_event_attr *attr);

/* A software event that counts nothing and needs no permission: with one member changed, the kernel's answer is about
 * that member. */
void perfring__probe_begin(union perfring_attr *probe);

/* Opens and closes.  Returns 0 or -errno. */
int perfring__probe(const union perfring_attr *probe);

/* The size of the kernel's own attr; 0: unknown, because a filter intercepts the call. */
uint32_t perfring__probe_size(void);

/* The bits of attr's word at `at` (sample_type, read_format, flags) that this kernel does not know. */
uint64_t perfring__probe_unknown(const struct perf_event_attr *attr, uint32_t at);

/* A text in a buffer: what does not fit is still counted, as by snprintf. */
struct perfring_words {
	char *buffer;
	size_t size;
	size_t length;
};

/* Begins an empty text. */
static inline struct perfring_words perfring__words_in(char *buffer, size_t size)
{
	if (size)
		buffer[0] = 0;
	return (struct perfring_words){buffer, size, 0};
}

int64_t perfring__say(struct perfring_words *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* perfring_event_name, for sentences: without an H, which events have that leave guests out by default. */
void perfring__event_plain_name(const struct perf_event_attr *attr, char *buffer, size_t size);

/* Opens a file under tracefs, at either of its mount points.  Returns an fd; or -errno, of the two rather one that is
 * not ENOENT. */
int perfring__event_tracefs(const char *path);

#endif
