/* packed.h - sections that are packed, by zlib or zstd.
 *
 * For dwarf_sections.c.  Any thread; memory is the caller's.
 */
#ifndef PERFRING_SYMBOL_PACKED_H
#define PERFRING_SYMBOL_PACKED_H

#include <stdint.h>

/* ch_type of ELF. */
enum perfring_packed_by {
	PERFRING_PACKED_ZLIB = 1,
	PERFRING_PACKED_ZSTD = 2,
};

/* Inflates all of the bytes, to exactly `size`.  Returns 0; -EINVAL (they are damaged, or of another size), -EOPNOTSUPP (by
 * another packer, or one that this library is built without), -ENOMEM. */
int perfring_packed_inflate(uint64_t by, const unsigned char *packed, uint64_t packed_size, unsigned char *bytes,
			    uint64_t size);

/* Whether bytes can inflate to that size, which a header names.  Returns 0 or -EINVAL. */
int perfring_packed_check(uint64_t by, uint64_t packed_size, uint64_t size);

#endif
