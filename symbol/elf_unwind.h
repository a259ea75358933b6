/* elf_unwind.h - the unwind tables of an ELF file.
 *
 * symbols.c frees them with the file.
 */
#ifndef PERFRING_SYMBOL_ELF_UNWIND_H
#define PERFRING_SYMBOL_ELF_UNWIND_H

#include <perfring/unwind.h>

enum {
	PERFRING_ELF_UNWIND_SECTIONS = 4
};

/* The sections are in memory of their own: a file that becomes shorter meanwhile does no harm. */
struct perfring_elf_unwind {
	struct perfring_unwind *unwind; /* NULL: there are none, they are damaged, or a bound is exceeded */
	unsigned char *sections[PERFRING_ELF_UNWIND_SECTIONS];
};

/* Reads them, from *left.  Returns 0 or -ENOMEM. */
int perfring__elf_unwind_read(struct perfring_elf_unwind *unwind, int fd, uint64_t *left);
void perfring__elf_unwind_close(struct perfring_elf_unwind *unwind);

#endif
