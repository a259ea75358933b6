/* hash.h - the factor of a multiplicative hash. */
#ifndef PERFRING_OS_HASH_H
#define PERFRING_OS_HASH_H

#include <stdint.h>
#include <sys/random.h>

/* An odd random factor, so that no input can choose keys that collide.  owner: the address of the table, which serves
 * where the system has no random numbers yet. */
static inline uint64_t perfring_os_hash_factor(const void *owner)
{
	uint64_t factor;

	if (getrandom(&factor, sizeof(factor), GRND_NONBLOCK) != sizeof(factor))
		factor = (uintptr_t)owner * UINT64_C(0x9e3779b97f4a7c15);
	return factor | 1;
}

#endif
