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

/* Whether that thread still runs, as far as this pid namespace can see; a zombie does not.  Context: also signal handlers. */
bool perfring_identity_lives(uint64_t identity);

/* The calling thread in one word that threads of other namespaces do not mistake: tid << 42 | start time << 22 | 22 bits of a
 * hash of its namespaces (0: not known).  Never 0. */
uint64_t perfring_identity_global(void);

/* Whether that thread has ended.  False if it is of other namespaces, or /proc does not say: then nothing is known of it. */
bool perfring_identity_global_ended(uint64_t identity);

/* The namespaces in which the numbers above were read: equal, if they can be compared.  0: /proc does not say. */
uint64_t perfring_identity_namespaces(void);

/* A number that differs between two boots of the machine; 0: /proc does not say. */
uint64_t perfring_identity_boot(void);

#endif
