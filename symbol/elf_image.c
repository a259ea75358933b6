/* elf_image.c - an ELF file's headers, sections and segments, read under the bounds of limits.h.
 *
 * The functions of elf_image.h, which every file of symbol/ that reads ELF uses.  Descriptors are the caller's.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include "elf_image.h"
#include "limits.h"
#include "os/huge_pages.h"

/* ---- the budget ---- */

int perfring__elf_exceed(struct perfring_elf_budget *budget, const char *what)
{
	if (!budget->exceeded)
		budget->exceeded = what;
	return -E2BIG;
}

int perfring__elf_fail(struct perfring_elf_budget *budget, int error)
{
	bool is_usual =
		error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EINVAL || error == -ENODATA;

	if (error >= 0 || is_usual || budget->error)
		return error;
	budget->error = error;
	if (budget->path) {
		budget->error_path = strdup(budget->path);
		budget->no_memory = budget->no_memory || !budget->error_path;
	}
	return error;
}

int perfring__elf_charge(struct perfring_elf_budget *budget, uint64_t bytes)
{
	if (bytes > budget->left)
		return perfring__elf_exceed(budget, budget->bound ? budget->bound : "512 MiB to read from one object");
	if (bytes > *budget->all_left)
		return perfring__elf_exceed(budget, "2 GiB to read from all objects");
	budget->left -= bytes;
	*budget->all_left -= bytes;
	return 0;
}

void *perfring__elf_allocate(struct perfring_elf_budget *budget, size_t nr, size_t size)
{
	void *memory = reallocarray(NULL, nr, size);

	budget->no_memory = budget->no_memory || !memory;
	return memory;
}

/* ---- bytes ---- */

uint64_t perfring__elf_number(const struct perfring_elf_image *image, const unsigned char *bytes, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)bytes[image->header[EI_DATA] == ELFDATA2MSB ? size - 1 - i : i] << 8 * i;
	return value;
}

uint64_t perfring__elf_member(const struct perfring_elf_image *image, const unsigned char *entry, unsigned at,
			      unsigned at_short, unsigned size)
{
	return perfring__elf_number(image, entry + (image->is_long ? at : at_short),
				    size             ? size
				    : image->is_long ? 8
						     : 4);
}

int perfring__elf_read(const struct perfring_elf_image *image, void *buffer, size_t size, uint64_t at)
{
	size_t done = 0;

	if (at > image->size || size > image->size - at)
		return -EINVAL;
	if (image->fd < 0) {
		memcpy(buffer, image->bytes + at, size);
		return 0;
	}
	while (done < size) {
		ssize_t got = pread(image->fd, (char *)buffer + done, size - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return perfring__elf_fail(image->budget, -errno);
		if (!got)
			return -EINVAL; /* it became shorter */
		done += (size_t)got;
	}
	return 0;
}

/* ---- sections ---- */

void *perfring__elf_section_read(const struct perfring_elf_image *image, const struct perfring_elf_section *section,
				 int *error)
{
	char *buffer;

	*error = -EINVAL;
	if (section->type == SHT_NOBITS || section->offset > image->size ||
	    section->size > image->size - section->offset)
		return NULL;
	*error = perfring__elf_charge(image->budget, section->size + 1);
	if (*error)
		return NULL;
	buffer = perfring__elf_allocate(image->budget, (size_t)section->size + 1, 1);
	if (buffer)
		perfring__os_use_huge_pages(buffer, (size_t)section->size); /* 41 MB are read in 24 ms, not in 33 */
	*error = buffer ? perfring__elf_read(image, buffer, (size_t)section->size, section->offset) : -ENOMEM;
	if (*error) {
		free(buffer);
		return NULL;
	}
	buffer[section->size] = 0;
	return buffer;
}

static void parse_section(const struct perfring_elf_image *image, const unsigned char *entry,
			  struct perfring_elf_section *section)
{
	section->name = (uint32_t)perfring__elf_number(image, entry, 4);
	section->type = (uint32_t)perfring__elf_number(image, entry + 4, 4);
	section->flags = perfring__elf_member(image, entry, 8, 8, 0);
	section->addr = perfring__elf_member(image, entry, 16, 12, 0);
	section->offset = perfring__elf_member(image, entry, 24, 16, 0);
	section->size = perfring__elf_member(image, entry, 32, 20, 0);
	section->link = (uint32_t)perfring__elf_member(image, entry, 40, 24, 4);
}

static int read_headers(struct perfring_elf_image *image, uint64_t at, uint64_t count, unsigned size)
{
	unsigned char *table;
	int error = perfring__elf_charge(image->budget, count * size);

	if (error)
		return error;
	table = perfring__elf_allocate(image->budget, (size_t)count + 1, size);
	image->sections = perfring__elf_allocate(image->budget, (size_t)count + 1, sizeof(*image->sections));
	error = table && image->sections ? perfring__elf_read(image, table, (size_t)count * size, at) : -ENOMEM;
	if (!error) {
		for (uint64_t i = 0; i < count; i++)
			parse_section(image, table + i * size, &image->sections[i]);
		image->section_count = (uint32_t)count;
	}
	free(table);
	return error;
}

static int read_sections(struct perfring_elf_image *image)
{
	const unsigned size = image->is_long ? 64 : 40;
	uint64_t at = perfring__elf_member(image, image->header, 40, 32, 0);
	uint64_t count = perfring__elf_member(image, image->header, 60, 48, 2);
	uint64_t names = perfring__elf_member(image, image->header, 62, 50, 2);
	struct perfring_elf_section first;
	unsigned char entry[64];
	int error;

	if (!at)
		return 0;
	if (perfring__elf_member(image, image->header, 58, 46, 2) != size)
		return -EINVAL;
	error = perfring__elf_read(image, entry, size, at);
	if (error)
		return error;
	parse_section(image, entry, &first);
	if (!count)
		count = first.size;
	if (names == SHN_XINDEX)
		names = first.link;
	if (count > PERFRING_LIMIT_SECTIONS)
		return perfring__elf_exceed(image->budget, "65536 sections");
	error = read_headers(image, at, count, size);
	if (error || names >= count)
		return error;
	if (image->sections[names].size > PERFRING_LIMIT_SECTION_NAMES)
		return perfring__elf_exceed(image->budget, "16 MiB of names of sections");
	image->names_size = image->sections[names].size;
	image->names = perfring__elf_section_read(image, &image->sections[names], &error);
	/* without names there are still tables of symbols */
	return error == -EINVAL ? 0 : error;
}

int perfring__elf_image_open(struct perfring_elf_image *image)
{
	struct stat file;
	int error;

	if (image->fd >= 0) {
		if (fstat(image->fd, &file))
			return perfring__elf_fail(image->budget, -errno);
		if (file.st_size < 0)
			return -EINVAL;
		image->size = (uint64_t)file.st_size;
	}
	error = perfring__elf_read(image, image->header, 52, 0);
	if (error || memcmp(image->header, ELFMAG, SELFMAG))
		return error ? error : -EINVAL;
	image->is_long = image->header[EI_CLASS] == ELFCLASS64;
	error = image->is_long ? perfring__elf_read(image, image->header, 64, 0) : 0;
	return error ? error : read_sections(image);
}

void perfring__elf_image_close(struct perfring_elf_image *image)
{
	free(image->sections);
	free(image->names);
}

const struct perfring_elf_section *perfring__elf_section_find(const struct perfring_elf_image *image, const char *name)
{
	for (uint32_t i = 0; i < image->section_count; i++)
		if (image->names && image->sections[i].name < image->names_size &&
		    !strcmp(image->names + image->sections[i].name, name))
			return &image->sections[i];
	return NULL;
}

const struct perfring_elf_section *perfring__elf_section_of_type(const struct perfring_elf_image *image, uint32_t type)
{
	for (uint32_t i = 0; i < image->section_count; i++)
		if (image->sections[i].type == type)
			return &image->sections[i];
	return NULL;
}

/* ---- segments ---- */

int perfring__elf_segments_read(const struct perfring_elf_image *image, struct perfring_elf_segment **segments,
				uint32_t *loaded)
{
	const unsigned size = image->is_long ? 56 : 32;
	uint64_t at = perfring__elf_member(image, image->header, 32, 28, 0);
	uint64_t count = perfring__elf_member(image, image->header, 56, 44, 2);
	unsigned char entry[56];
	int error;

	*segments = NULL;
	*loaded = 0;
	if (!at || !count)
		return 0;
	if (perfring__elf_member(image, image->header, 54, 42, 2) != size)
		return -EINVAL;
	if (count > PERFRING_LIMIT_SEGMENTS)
		return perfring__elf_exceed(image->budget, "4096 segments");
	*segments = perfring__elf_allocate(image->budget, (size_t)count, sizeof(**segments));
	if (!*segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		error = at > image->size ? -EINVAL : perfring__elf_read(image, entry, size, at + i * size);
		if (error)
			return error;
		if (perfring__elf_number(image, entry, 4) == PT_LOAD)
			(*segments)[(*loaded)++] = (struct perfring_elf_segment){
				.offset = perfring__elf_member(image, entry, 8, 4, 0),
				.size = perfring__elf_member(image, entry, 32, 16, 0),
				.vaddr = perfring__elf_member(image, entry, 16, 8, 0),
				.is_code = perfring__elf_member(image, entry, 4, 24, 4) & PF_X,
			};
	}
	return 0;
}

/* ---- build ids ---- */

/* The note of a section: the program headers of a debug file describe the object, not the file. */
static uint32_t read_note(const struct perfring_elf_image *image, uint8_t *id)
{
	const struct perfring_elf_section *section = perfring__elf_section_find(image, ".note.gnu.build-id");
	unsigned char note[16 + PERFRING_BUILD_ID_SIZE];
	uint64_t length;

	if (!section || section->type != SHT_NOTE || section->size < 16 ||
	    perfring__elf_read(image, note, 16, section->offset))
		return 0;
	length = perfring__elf_number(image, note + 4, 4);
	if (perfring__elf_number(image, note, 4) != 4 || perfring__elf_number(image, note + 8, 4) != NT_GNU_BUILD_ID ||
	    memcmp(note + 12, "GNU", 4) || !length || length > PERFRING_BUILD_ID_SIZE || length > section->size - 16 ||
	    perfring__elf_read(image, note, 16 + (size_t)length, section->offset))
		return 0;
	memcpy(id, note + 16, (size_t)length);
	return (uint32_t)length;
}

uint32_t perfring__elf_build_id_of(const struct perfring_elf_image *image, uint8_t *id)
{
	int64_t length = read_note(image, id);

	if (!length && image->fd >= 0)
		length = perfring__elf_fail(image->budget, (int)perfring_build_id_in(image->fd, id));
	return length > 0 ? (uint32_t)length : 0;
}

int perfring__elf_build_id(int fd, uint64_t *left, uint8_t *id)
{
	struct perfring_elf_budget budget = {.all_left = left, .left = PERFRING_LIMIT_LOOK};
	struct perfring_elf_image image = {.budget = &budget, .fd = fd};
	int length = perfring__elf_fail(&budget, (int)perfring_build_id_in(fd, id));

	if (length <= 0 && !budget.error) {
		length = perfring__elf_image_open(&image) ? 0 : (int)read_note(&image, id);
		perfring__elf_image_close(&image);
	}
	if (budget.no_memory)
		return -ENOMEM;
	return budget.error ? budget.error : length;
}
