/* note.h - the GNU build id among the notes of an ELF file.
 *
 * file/build_id.c and soft/process_state.c.
 */
#ifndef PERFRING_OS_NOTE_H
#define PERFRING_OS_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERFRING_OS_BUILD_ID_MAX = 20, /* as the kernel's BUILD_ID_SIZE_MAX: longer ones are ignored */
};

/* notes: a segment or file of notes; any bytes are safe.  is_foreign: of the other byte order; align: the segment's,
 * where all but 8 count as 4.  Returns the length of the id, or 0.  Context: also signal handlers. */
uint32_t perfring__os_note_build_id(const void *notes, size_t size, bool is_foreign, uint64_t align,
				    uint8_t id[PERFRING_OS_BUILD_ID_MAX]);

#endif
