/* note.c - the GNU build id among the notes of an ELF file.
 *
 * Notes are foreign: sizes are compared with the bytes that are left.
 */
#include "note.h"

#include <elf.h>
#include <string.h>

uint32_t perfring__os_note_build_id(const void *notes, size_t size, bool is_foreign, uint64_t align,
				    uint8_t id[PERFRING_OS_BUILD_ID_MAX])
{
	const unsigned char *bytes = notes;
	size_t at = 0;

	align = align == 8 ? 8 : 4;
	while (size - at >= 12) {
		uint32_t words[3];
		uint64_t name, length, next;

		memcpy(words, bytes + at, sizeof(words));
		for (int i = 0; i < 3; i++)
			words[i] = is_foreign ? __builtin_bswap32(words[i]) : words[i];
		name = words[0];
		length = words[1];
		/* 64-bit sums of 32-bit numbers */
		next = (12 + name + align - 1) / align * align;
		if (next + length > size - at)
			return 0;
		if (words[2] == NT_GNU_BUILD_ID && name == 4 && !memcmp(bytes + at + 12, "GNU", 4) && length &&
		    length <= PERFRING_OS_BUILD_ID_MAX) {
			memcpy(id, bytes + at + next, (size_t)length);
			return (uint32_t)length;
		}
		next = (next + length + align - 1) / align * align;
		if (next > size - at)
			return 0;
		at += (size_t)next;
	}
	return 0;
}
