/* elf_unwind.c - the unwind tables of an ELF file: which sections unwind.h is given.
 *
 * perfring__symbols_unwind, for stacks.c: an object's tables are read at the first walk through it, from the same file as its
 * symbols.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf_image.h"
#include "elf_unwind.h"
#include "limits.h"
#include "packed.h"
#include "symbols.h"

static int read_section(const struct perfring_elf_image *image, const char *name, unsigned char **bytes,
			struct perfring_unwind_section *section)
{
	const struct perfring_elf_section *found = perfring__elf_section_find(image, name);
	bool is_gnu = !found && !strcmp(name, ".debug_frame");
	uint64_t size;
	int error;

	if (is_gnu)
		found = perfring__elf_section_find(image, ".zdebug_frame");
	if (!found || found->type == SHT_NOBITS)
		return 0;
	error = perfring__packed_read(image, found, is_gnu, bytes, &size);
	if (error == -EINVAL || error == -EOPNOTSUPP) /* damaged, or packed by what this library is built without */
		return 0;
	if (!error && *bytes)
		*section = (struct perfring_unwind_section){*bytes, size, found->addr};
	return error;
}

static int read_sections(struct perfring_elf_unwind *unwind, const struct perfring_elf_image *image)
{
	static const char *const names[] = {".eh_frame", ".eh_frame_hdr", ".debug_frame", ".plt"};
	struct perfring_unwind_sections sections = {
		.machine = (uint32_t)perfring__elf_number(image, image->header + 18, 2)};
	struct perfring_unwind_section *parts[] = {&sections.eh_frame, &sections.eh_frame_hdr, &sections.debug_frame,
						   &sections.plt};

	static_assert(sizeof(names) / sizeof(names[0]) == PERFRING_ELF_UNWIND_SECTIONS, "memory for each");
	if (!image->is_long || image->header[EI_DATA] != ELFDATA2LSB)
		return -EINVAL;
	for (size_t i = 0; i < PERFRING_ELF_UNWIND_SECTIONS; i++) {
		int error = read_section(image, names[i], &unwind->sections[i], parts[i]);

		if (error)
			return error;
	}
	return perfring_unwind_open_sections(&unwind->unwind, &sections);
}

int perfring__elf_unwind_read(struct perfring_elf_unwind *unwind, int fd, uint64_t *left)
{
	struct perfring_elf_budget budget = {.all_left = left, .left = PERFRING_LIMIT_OBJECT_BYTES};
	struct perfring_elf_image image = {.budget = &budget, .fd = fd};
	int error;

	memset(unwind, 0, sizeof(*unwind));
	error = perfring__elf_image_open(&image);
	if (!error)
		error = read_sections(unwind, &image);
	perfring__elf_image_close(&image);
	free(budget.error_path);
	if (error)
		perfring__elf_unwind_close(unwind);
	return error == -ENOMEM || budget.no_memory ? -ENOMEM : 0;
}

void perfring__elf_unwind_close(struct perfring_elf_unwind *unwind)
{
	perfring_unwind_close(unwind->unwind);
	for (size_t i = 0; i < PERFRING_ELF_UNWIND_SECTIONS; i++)
		free(unwind->sections[i]);
	memset(unwind, 0, sizeof(*unwind));
}

/* ---- of an object ---- */

int perfring__symbols_unwind(struct perfring_symbols *symbols, struct perfring_symbol_object *object,
			     struct perfring_unwind **unwind)
{
	struct perfring_symbols_file *file = object->file;
	int fd, error;

	*unwind = NULL;
	if (!file || !file->path)
		return 0;
	if (!file->has_unwind) {
		fd = perfring__symbols_open_again(symbols, file);
		if (fd == -ESTALE && object->why == PERFRING_SYMBOL_KNOWN && !object->error) {
			object->error = fd;
			object->is_news = true;
		}
		if (fd < 0)
			return fd == -ENOMEM ? fd : 0;
		error = perfring__elf_unwind_read(&file->unwind, fd, &symbols->bytes_left);
		close(fd);
		if (error)
			return error;
		file->has_unwind = true;
	}
	*unwind = file->unwind.unwind;
	return 0;
}

uint64_t perfring__symbols_bias(const struct perfring_symbol_object *object, uint64_t start, uint64_t end,
				uint64_t pgoff)
{
	const struct perfring_elf_symbols *symbols = object->file ? &object->file->symbols : NULL;

	for (uint32_t i = 0; symbols && i < symbols->segment_count; i++) {
		const struct perfring_elf_segment *segment = &symbols->segments[i];

		if (segment->is_code &&
		    (segment->offset - pgoff < end - start || pgoff - segment->offset < segment->size))
			return start - (pgoff - segment->offset + segment->vaddr);
	}
	return start - pgoff;
}
