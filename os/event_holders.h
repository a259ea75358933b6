/* event_holders.h - which other processes have perf events open.
 *
 * event/refusal.c names them when an event is refused as busy.
 */
#ifndef PERFRING_OS_EVENT_HOLDERS_H
#define PERFRING_OS_EVENT_HOLDERS_H

#include <stdint.h>

enum {
	PERFRING_OS_HOLDERS = 4,             /* at most */
	PERFRING_OS_HOLDERS_LOOKS = 1 << 20, /* at files and their folders, of all processes, at most */
};

struct perfring_os_holder {
	uint32_t pid;
	char comm[16]; /* NUL-terminated; what is not printable ASCII is ? */
};

/* The first of them that this process may look into, by the files of their first threads: a mapping whose file is closed is not seen.
 * Returns how many.  Context: not signal handlers. */
uint32_t perfring__os_event_holders(struct perfring_os_holder holders[PERFRING_OS_HOLDERS]);

#endif
