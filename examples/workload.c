/* workload.c - something to profile: three seconds in a few functions with names, 6 : 3 : 1.
 *
 * -fno-inline and frame pointers, so each of them shows with its callers.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint32_t table[4096];

static uint32_t mix(uint32_t word)
{
	word ^= word << 13;
	word ^= word >> 17;
	return word ^ word << 5;
}

static uint32_t sort_table(uint32_t seed)
{
	for (unsigned i = 0; i < 256; i++)
		table[i] = seed = mix(seed);
	for (unsigned i = 1; i < 256; i++) {
		uint32_t word = table[i];
		unsigned at = i;

		for (; at > 0 && table[at - 1] > word; at--)
			table[at] = table[at - 1];
		table[at] = word;
	}
	return table[128];
}

static uint32_t hash_table(uint32_t seed)
{
	for (unsigned round = 0; round < 4; round++)
		for (unsigned i = 0; i < 4096; i++)
			seed = (seed ^ table[i]) * 16777619u;
	return seed;
}

static uint32_t count_primes(uint32_t below)
{
	uint32_t count = 0, divisor;

	for (uint32_t number = 3; number < below; number += 2) {
		for (divisor = 3; divisor * divisor <= number && number % divisor; divisor += 2)
			;
		count += divisor * divisor > number;
	}
	return count;
}

/* For `share` hundredths of a second: by the clock, so the shares are the same on every machine. */
static uint32_t work(uint32_t (*function)(uint32_t), uint32_t argument, long share)
{
	struct timespec start, now;
	uint32_t sum = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		sum += function(argument);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 100 + (now.tv_nsec - start.tv_nsec) / 10000000 < share);
	return sum;
}

int main(void)
{
	uint32_t sum = 0;

	for (int round = 0; round < 10; round++) {
		sum += work(sort_table, 1u + (uint32_t)round, 18);
		sum += work(hash_table, sum, 9);
		sum += work(count_primes, 3000, 3);
	}
	printf("workload: 3 seconds of sort_table, hash_table and count_primes: %u\n", sum);
	return 0;
}
