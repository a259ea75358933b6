/* hash.h - a multiplicative hash with a secret factor.
 *
 * For tables whose keys come from files, records or other processes.  Inline; perfring__os_hash may run in signal handlers.
 */
#ifndef PERFRING_OS_HASH_H
#define PERFRING_OS_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* An odd random factor, so that no input can choose keys that collide.  owner: the address of the table, which serves
 * where the system has no random numbers yet. */
static inline uint64_t perfring__os_hash_factor(const void *owner)
{
	uint64_t factor;

	if (getrandom(&factor, sizeof(factor), GRND_NONBLOCK) != sizeof(factor))
		factor = (uintptr_t)owner * UINT64_C(0x9e3779b97f4a7c15);
	return factor | 1;
}

/* Of bytes, by words. */
static inline uint64_t perfring__os_hash(uint64_t factor, const void *of, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)of;
	uint64_t hash = size, word;

	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, bytes, size);
	hash = (hash ^ word) * factor;
	return (hash ^ hash >> 32) * factor;
}

#endif
