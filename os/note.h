/* note.h - the GNU build id among the notes of an ELF file. */
#ifndef PERFRING_OS_NOTE_H
#define PERFRING_OS_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERFRING_OS_BUILD_ID_MAX = 20, /* as the kernel's BUILD_ID_SIZE_MAX: longer ones are passed over */
};

/* notes: a segment or file of them, of any bytes.  is_foreign: of the other byte order; align: of the segment, 8 or what counts
 * as 4.  Returns the length of the id, 0: there is none.  Context: also signal handlers. */
uint32_t perfring_os_note_build_id(const void *notes, size_t size, bool is_foreign, uint64_t align,
				   uint8_t id[PERFRING_OS_BUILD_ID_MAX]);

#endif
