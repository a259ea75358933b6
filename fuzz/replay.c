/* replay.c - a main for a fuzzer without an engine: runs it over its corpus in every test run.
 *
 *     replay FILE...      each file, and of the small ones every prefix and every single byte changed in three ways
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONGEST = 1 << 20,
	CHANGED = 4096, /* files up to this long are changed too */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* From memory of exactly that size, so that a sanitizer sees the first byte after it. */
static void run(const uint8_t *bytes, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

int main(int argc, char **argv)
{
	static const uint8_t changes[] = {0x01, 0x80, 0xff};
	static uint8_t bytes[LONGEST];
	unsigned long runs = 0;

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		size_t size;

		if (!file) {
			fprintf(stderr, "replay: %s: %s\n", argv[i], strerror(errno));
			return 1;
		}
		size = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		run(bytes, size);
		runs++;
		for (size_t at = 0; size <= CHANGED && at < size; at++) {
			run(bytes, at);
			for (size_t change = 0; change < sizeof(changes); change++) {
				bytes[at] ^= changes[change];
				run(bytes, size);
				bytes[at] ^= changes[change];
			}
			runs += 1 + sizeof(changes);
		}
	}
	printf("replay: %d files, %lu runs\n", argc - 1, runs);
	return runs ? 0 : 1;
}
