/* elf_image.h - an ELF file, or the bytes of one: its headers, sections and segments, of any class and byte order.
 *
 * elf_symbols.c, debug_file.c, debugdata.c, plt.c, elf_unwind.c and dwarf_sections.c read by it.  One thread; memory that is
 * returned is the caller's.
 *
 * Offsets and sizes in an object are not trusted: each is checked against the file's size, charged to the budget, then read
 * once.
 */
#ifndef PERFRING_SYMBOL_ELF_IMAGE_H
#define PERFRING_SYMBOL_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What may still be read for one object, and what went wrong. */
struct perfring_elf_budget {
	uint64_t *all_left; /* of all objects */
	uint64_t left;
	const char *bound;    /* what `left` was at first, in words; NULL: PERFRING_LIMIT_OBJECT_BYTES */
	const char *exceeded; /* the first bound of limits.h that was exceeded; NULL: none */
	int error;            /* the first -errno of reading the object or its debug file; 0: none */
	char *error_path;     /* the debug file; NULL: the object itself */
	const char *path;     /* of the debug file that is being read, else NULL */
	bool no_memory;       /* an allocation failed */
};

/* Returns -E2BIG. */
int perfring__elf_exceed(struct perfring_elf_budget *budget, const char *what);

/* Keeps the first error of a file that should be readable, and returns `error`.  A file that is missing or is no object is
 * not an error. */
int perfring__elf_fail(struct perfring_elf_budget *budget, int error);

/* Takes bytes off the budget.  Returns 0 or -E2BIG. */
int perfring__elf_charge(struct perfring_elf_budget *budget, uint64_t bytes);

/* nr * size bytes, or NULL. */
void *perfring__elf_allocate(struct perfring_elf_budget *budget, size_t nr, size_t size);

struct perfring_elf_section {
	uint32_t name;
	uint32_t type;
	uint64_t flags;
	uint64_t addr;
	uint64_t offset;
	uint64_t size;
	uint32_t link;
};

struct perfring_elf_segment {
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
	bool is_code;
};

/* A file's image, or one that was inflated.  The caller sets the members up to `size`. */
struct perfring_elf_image {
	struct perfring_elf_budget *budget;
	int fd; /* -1: bytes */
	const unsigned char *bytes;
	uint64_t size; /* of the bytes; of a file it is found */
	bool is_long;
	uint32_t section_count;
	struct perfring_elf_section *sections;
	char *names; /* of sections; NULL: unknown */
	uint64_t names_size;
	unsigned char header[64];
};

/* Reads the headers.  Returns 0; -EINVAL (no ELF object, or damaged), -E2BIG, -ENOMEM, -errno.  Close it in any case. */
int perfring__elf_image_open(struct perfring_elf_image *image);
void perfring__elf_image_close(struct perfring_elf_image *image);

/* Numbers of the image's byte order.  member: in 64-bit images at `at`, in others at `at_short`; a word of the image's
 * class when size is 0. */
uint64_t perfring__elf_number(const struct perfring_elf_image *image, const unsigned char *bytes, unsigned size);
uint64_t perfring__elf_member(const struct perfring_elf_image *image, const unsigned char *entry, unsigned at,
			      unsigned at_short, unsigned size);

int perfring__elf_read(const struct perfring_elf_image *image, void *buffer, size_t size, uint64_t at);

/* All of a section and a NUL, or NULL with *error. */
void *perfring__elf_section_read(const struct perfring_elf_image *image, const struct perfring_elf_section *section,
				 int *error);

const struct perfring_elf_section *perfring__elf_section_find(const struct perfring_elf_image *image, const char *name);
const struct perfring_elf_section *perfring__elf_section_of_type(const struct perfring_elf_image *image, uint32_t type);

/* The segments that are loaded.  *segments: to be freed, also after an error. */
int perfring__elf_segments_read(const struct perfring_elf_image *image, struct perfring_elf_segment **segments,
				uint32_t *count);

/* The build id, of the section or of segments of notes.  id: PERFRING_BUILD_ID_SIZE bytes.  Returns its length, 0: none. */
uint32_t perfring__elf_build_id_of(const struct perfring_elf_image *image, uint8_t *id);

/* The build id of a file: of segments of notes, else of the section, for which no more than PERFRING_LIMIT_LOOK bytes are
 * read, off *left.  id: PERFRING_BUILD_ID_SIZE bytes.  Returns its length, 0: it has none, or none within that, or is
 * no ELF object; -errno. */
int perfring__elf_build_id(int fd, uint64_t *left, uint8_t *id);

#endif
