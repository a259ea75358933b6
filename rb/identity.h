/* identity.h - a thread, as other processes and later boots recognise it. */
#ifndef RB_IDENTITY_H
#define RB_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* pid << 42 | tid << 20 | start time, in clock ticks since boot modulo 2^20 (0: /proc does not say).  Never 0. */
uint64_t perfring_identity_of(uint32_t tid); /* of this process */
uint64_t perfring_identity_own(void);

static inline uint32_t perfring_identity_tid(uint64_t identity)
{
	return (uint32_t)(identity >> 20) & 0x3fffff;
}

/* Whether that thread still runs, as far as this pid namespace can see.  Context: also signal handlers. */
bool perfring_identity_lives(uint64_t identity);

/* The namespaces in which the numbers above were read: equal, if they can be compared.  0: /proc does not say. */
uint64_t perfring_identity_namespaces(void);

/* A number that differs between two boots of the machine; 0: /proc does not say. */
uint64_t perfring_identity_boot(void);

#endif
