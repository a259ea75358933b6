/* packed.h - sections that are packed, by zlib or zstd.
 *
 * For dwarf_sections.c and elf_unwind.c.  Any thread.
 */
#ifndef PERFRING_SYMBOL_PACKED_H
#define PERFRING_SYMBOL_PACKED_H

#include <stdbool.h>
#include <stdint.h>

struct perfring_elf_image;
struct perfring_elf_section;

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

/* All of a section and a NUL, from malloc, inflated if it is packed: by its flags, or is_gnu (.zdebug_) and by its first bytes.
 * Returns 0, also if its place is not in the file (*bytes is NULL); or -errno, where *bytes may be memory to free, *size is then
 * not its size. */
int perfring_packed_read(const struct perfring_elf_image *image, const struct perfring_elf_section *section, bool is_gnu,
			 unsigned char **bytes, uint64_t *size);

#endif
