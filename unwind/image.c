/* image.c - finds the unwind sections of an ELF image: a file's bytes, or the vdso's.
 *
 * perfring_unwind_open calls it.  Offsets in headers are foreign, and compared with the image's size.
 */
#include <elf.h>

#include "bytes.h"
#include "image.h"

/* Members of ELF's structs, as their places: the image may be unaligned, and the machine of the other byte order. */
#define TAKE(image, at, struct_, member) \
	take((image), (at) + offsetof(struct_, member), sizeof(((struct_ *)NULL)->member))

struct image {
	const uint8_t *bytes;
	uint64_t size;
};

/* 0 outside. */
static uint64_t take(const struct image *image, uint64_t at, unsigned size)
{
	struct bytes bytes;

	if (at > image->size)
		return 0;
	bytes = bytes_init(image->bytes + at, image->bytes + image->size);
	return bytes_take(&bytes, size);
}

static bool holds(const struct image *image, uint64_t at, uint64_t size)
{
	return at <= image->size && size <= image->size - at;
}

static bool has_name(const struct image *image, uint64_t at, uint64_t end, const char *name)
{
	size_t length = strlen(name) + 1;

	return at < end && length <= end - at && !memcmp(image->bytes + at, name, length);
}

/* Returns false: there are no headers of sections. */
static bool read_sections(const struct image *image, struct perfring_unwind_sections *sections)
{
	static const char *const names[] = {".eh_frame", ".eh_frame_hdr", ".debug_frame", ".plt"};
	struct perfring_unwind_section *const wanted[] = {&sections->eh_frame, &sections->eh_frame_hdr,
							  &sections->debug_frame, &sections->plt};
	uint64_t headers = TAKE(image, 0, Elf64_Ehdr, e_shoff), count = TAKE(image, 0, Elf64_Ehdr, e_shnum);
	uint64_t of_names = TAKE(image, 0, Elf64_Ehdr, e_shstrndx), texts, texts_end, i, at, offset, size;
	size_t k;

	if (TAKE(image, 0, Elf64_Ehdr, e_shentsize) != sizeof(Elf64_Shdr) || of_names >= count ||
	    !holds(image, headers, count * sizeof(Elf64_Shdr)))
		return false;
	at = headers + of_names * sizeof(Elf64_Shdr);
	texts = TAKE(image, at, Elf64_Shdr, sh_offset);
	size = TAKE(image, at, Elf64_Shdr, sh_size);
	if (!holds(image, texts, size))
		return false;
	texts_end = texts + size;
	for (i = 0, at = headers; i < count; i++, at += sizeof(Elf64_Shdr)) {
		offset = TAKE(image, at, Elf64_Shdr, sh_offset);
		size = TAKE(image, at, Elf64_Shdr, sh_size);
		/* Of a file of debug information alone what is loaded has no bytes. */
		if (TAKE(image, at, Elf64_Shdr, sh_type) == SHT_NOBITS || !holds(image, offset, size) ||
		    (TAKE(image, at, Elf64_Shdr, sh_flags) & SHF_COMPRESSED))
			continue;
		for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (!wanted[k]->size &&
			    has_name(image, texts + TAKE(image, at, Elf64_Shdr, sh_name), texts_end, names[k]))
				*wanted[k] = (struct perfring_unwind_section){image->bytes + offset, size,
									      TAKE(image, at, Elf64_Shdr, sh_addr)};
	}
	return true;
}

/* The bytes from an address to the end of its segment in the image. */
static struct perfring_unwind_section rest_of_segment(const struct image *image, uint64_t headers, uint64_t count,
						      uint64_t address)
{
	uint64_t i, at, offset, start, size;

	for (i = 0, at = headers; i < count; i++, at += sizeof(Elf64_Phdr)) {
		start = TAKE(image, at, Elf64_Phdr, p_vaddr);
		size = TAKE(image, at, Elf64_Phdr, p_filesz);
		offset = TAKE(image, at, Elf64_Phdr, p_offset);
		if (TAKE(image, at, Elf64_Phdr, p_type) == PT_LOAD && address - start < size &&
		    holds(image, offset, size))
			return (struct perfring_unwind_section){image->bytes + offset + (address - start),
								size - (address - start), address};
	}
	return (struct perfring_unwind_section){NULL, 0, 0};
}

static void read_segments(const struct image *image, struct perfring_unwind_sections *sections)
{
	uint64_t headers = TAKE(image, 0, Elf64_Ehdr, e_phoff), count = TAKE(image, 0, Elf64_Ehdr, e_phnum), i, at,
		 offset, size;
	struct perfring_unwind_section *header = &sections->eh_frame_hdr;

	if (TAKE(image, 0, Elf64_Ehdr, e_phentsize) != sizeof(Elf64_Phdr) ||
	    !holds(image, headers, count * sizeof(Elf64_Phdr)))
		return;
	for (i = 0, at = headers; i < count; i++, at += sizeof(Elf64_Phdr)) {
		offset = TAKE(image, at, Elf64_Phdr, p_offset);
		size = TAKE(image, at, Elf64_Phdr, p_filesz);
		if (TAKE(image, at, Elf64_Phdr, p_type) != PT_GNU_EH_FRAME || !holds(image, offset, size) || size < 8)
			continue;
		*header = (struct perfring_unwind_section){image->bytes + offset, size,
							   TAKE(image, at, Elf64_Phdr, p_vaddr)};
		/* The pointer to .eh_frame: relative to itself, of 4 bytes, as all linkers write it. */
		if (take(image, offset, 1) == 1 && take(image, offset + 1, 1) == 0x1b)
			sections->eh_frame =
				rest_of_segment(image, headers, count,
						header->address + 4 + (uint64_t)(int32_t)take(image, offset + 4, 4));
		return;
	}
}

int perfring__unwind_image(const uint8_t *bytes, size_t size, struct perfring_unwind_sections *sections)
{
	struct image image = {bytes, size};
	uint32_t machine;

	memset(sections, 0, sizeof(*sections));
	if (size < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) || bytes[EI_CLASS] != ELFCLASS64 ||
	    bytes[EI_DATA] != ELFDATA2LSB)
		return -EINVAL;
	machine = (uint32_t)TAKE(&image, 0, Elf64_Ehdr, e_machine);
	if (machine != PERFRING_UNWIND_X86_64 && machine != PERFRING_UNWIND_AARCH64)
		return -EINVAL;
	sections->machine = machine;
	/* The segments of a file of debug information are in another file: headers of sections are preferred where there are any. */
	if (!read_sections(&image, sections))
		read_segments(&image, sections);
	return 0;
}
