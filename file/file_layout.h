/* file_layout.h - the header of a perf.data file (docs/abi.md 11.1).
 *
 * file_header.c reads it, file_writer.c writes it.  Words are those of the file's byte order until they are swapped.
 */
#ifndef PERFRING_FILE_FILE_LAYOUT_H
#define PERFRING_FILE_FILE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perfring_section {
	uint64_t offset;
	uint64_t size;
};

struct perfring_file_header {
	char magic[8];
	uint64_t size;
	uint64_t attr_size; /* of one entry: an attr and the section of its ids */
	struct perfring_section attrs;
	struct perfring_section data;
	struct perfring_section event_types;
	uint64_t features[4];
};

#define PERFRING_FILE_MAGIC "PERFILE2"
#define PERFRING_FILE_MAGIC_FOREIGN "2ELIFREP"
#define PERFRING_FILE_MAGIC_1 "PERFFILE"
#define PERFRING_FILE_HEADER_OLD 72 /* without the bitmap of features */

/* Words of the other byte order, at any alignment. */
static inline void perfring__swap_words(void *bytes, size_t count)
{
	uint64_t word;

	for (size_t i = 0; i < count; i++) {
		memcpy(&word, (unsigned char *)bytes + i * 8, 8);
		word = __builtin_bswap64(word);
		memcpy((unsigned char *)bytes + i * 8, &word, 8);
	}
}

#endif
