/* wakings.h - where a sample of sched:sched_waking says who is woken.
 *
 * Private to fill.c.  One thread.
 */
#ifndef PERFRING_PROFILE_WAKINGS_H
#define PERFRING_PROFILE_WAKINGS_H

#include <perfring/file.h>

/* A number in the payload; size 0: it is not known where. */
struct perfring_waking_field {
	uint32_t offset, size;
};

struct perfring_waking_fields {
	struct perfring_waking_field tid, flags;
	bool is_foreign; /* in the other byte order */
};

/* Finds the fields in the tracepoint's format: of the file, or where it is NULL of the kernel that runs. */
void perfring__waking_find(struct perfring_waking_fields *fields, const struct perfring_file *file);

/* Reads the thread that is woken, and common_flags, which stay where they are not known.  Returns false if the format does not say
 * where the thread is, or the payload is too short. */
bool perfring__waking_read(const struct perfring_waking_fields *fields, const struct perfring_raw *raw, uint32_t *tid,
			   uint64_t *flags);

#endif
