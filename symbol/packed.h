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

/* All of a section and a NUL, from malloc, inflated if it is packed: by its flags, or is_gnu (.zdebug_) and by its first bytes.
 * Returns 0, also if its place is not in the file (*bytes is NULL); or -errno, where *bytes may be memory to free, *size is then
 * not its size. */
int perfring__packed_read(const struct perfring_elf_image *image, const struct perfring_elf_section *section,
			  bool is_gnu, unsigned char **bytes, uint64_t *size);

#endif
