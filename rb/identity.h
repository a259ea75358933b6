/* identity.h - a number of a thread that other processes, and later boots, can compare.
 *
 * A number is reused, a pair of number and start time is not.  shared.c and writer.c find out by it whether the owner of a
 * reservation still lives, counter.c who holds the page's lock.  Context: also signal handlers; errno may change,
 * but for lives and global_ended.
 */
#ifndef PERFRING_RB_IDENTITY_H
#define PERFRING_RB_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* pid << 42 | tid << 20 | start time, in clock ticks since boot modulo 2^20 (0: unknown).  Never 0. */
uint64_t perfring__identity_of(uint32_t tid); /* of this process */
uint64_t perfring__identity_own(void);

static inline uint32_t perfring__identity_tid(uint64_t identity)
{
	return (uint32_t)(identity >> 20) & 0x3fffff;
}

/* Whether that thread, of this pid namespace, still runs; a zombie does not.  Context: also signal handlers. */
bool perfring__identity_lives(uint64_t identity);

/* The calling thread, for all namespaces: tid << 42 | start time << 22 | 22 bits of a hash of its namespaces (0:
 * unknown).  Never 0. */
uint64_t perfring__identity_global(void);

/* Whether that thread has ended.  False if that is unknown: it is of other namespaces, or they are unknown. */
bool perfring__identity_global_ended(uint64_t identity);

/* A number of this process's pid and time namespaces: identities of equal ones can be compared.  0: unknown. */
uint64_t perfring__identity_namespaces(void);

/* A number that differs between two boots of the machine; 0: unknown. */
uint64_t perfring__identity_boot(void);

#endif
