/* dwarf_sections.c - reads the sections of DWARF of a file, and of the file that dwz has put shared entries into.
 *
 * Called by source_lines.c.  packed.c inflates sections that are packed (SHF_COMPRESSED); large ones that are not may be left to
 * dwarf_parts.c.  For each file, what is read, inflated and left counts against
 * PERFRING_LIMIT_INFLATED (limits.h).
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include "dwarf.h"
#include "elf_image.h"
#include "limits.h"
#include "packed.h"

enum {
	LARGE = 8 << 20,    /* bytes of sections from which on they are left in the file: each such file takes a descriptor */
	TABLE_RUNS = 16,    /* times that all tables of lines may be run: once is normal, units may share a table */
};

static const char *const names[PERFRING_DWARF_SECTIONS] = {"info",   "abbrev",   "line", "str",        "line_str",
							   "ranges", "rnglists", "addr", "str_offsets"};

struct perfring_dwarf_bytes perfring__dwarf_bytes_at(const struct perfring_dwarf_file *file,
						     enum perfring_dwarf_section_name name, uint64_t at)
{
	const struct perfring_dwarf_section *section = &file->sections[name];
	struct perfring_dwarf_bytes bytes = {.is_big = file->is_big};

	bytes.is_short = at >= section->size;
	if (!bytes.is_short) {
		bytes.at = section->bytes + at;
		bytes.end = section->bytes + section->size;
	}
	return bytes;
}

/* Whether a section can be left in the file. */
static bool is_plain(const struct perfring_elf_image *image, const struct perfring_elf_section *header)
{
	return !(header->flags & SHF_COMPRESSED) && header->type != SHT_NOBITS && header->offset <= image->size &&
	       header->size <= image->size - header->offset;
}

/* Whether the sections that may be left in the file are large together. */
static bool are_large(const struct perfring_elf_image *image)
{
	static const char *const left[] = {".debug_info", ".debug_line", ".debug_str"};
	uint64_t size = 0;

	for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		const struct perfring_elf_section *header = perfring__elf_section_find(image, left[i]);

		if (header && is_plain(image, header))
			size += header->size;
	}
	return size >= LARGE;
}

/* Reads one section; or notes where it is, if it may be left in the file.  Returns 0, also if there is none, or its place is not in
 * the file; -errno. */
static int read_section(const struct perfring_elf_image *image, const char *name,
			struct perfring_dwarf_section *section, bool may_be_left)
{
	const struct perfring_elf_section *header;
	char text[32];

	snprintf(text, sizeof(text), ".zdebug_%s", name);
	header = perfring__elf_section_find(image, text);
	if (!header) {
		snprintf(text, sizeof(text), ".debug_%s", name);
		header = perfring__elf_section_find(image, text);
		if (header && may_be_left && is_plain(image, header) &&
		    perfring__dwarf_section_leave(section, header->offset, header->size))
			return perfring__elf_charge(image->budget, header->size);
	}
	return header ? perfring__packed_read(image, header, text[1] == 'z', &section->bytes, &section->size) : 0;
}

/* The build id of the file with shared entries: .gnu_debugaltlink has it after that file's name.  Returns its size; 0: the object
 * names no such file; -errno. */
static int link_of(const struct perfring_elf_image *image, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	const struct perfring_elf_section *section = perfring__elf_section_find(image, ".gnu_debugaltlink");
	int error, result = -ENODATA;
	size_t length;
	char *text;

	if (!section)
		return 0;
	text = perfring__elf_section_read(image, section, &error);
	if (!text)
		return error == -EINVAL ? -ENODATA : error;
	length = strlen(text) + 1;
	if (length < section->size && section->size - length <= PERFRING_BUILD_ID_SIZE) {
		result = (int)(section->size - length);
		memcpy(id, text + length, (size_t)result);
	}
	free(text);
	return result;
}

/* The build ids of a file, and of the file with its shared entries; sizes in bytes, 0: none. */
struct ids {
	uint8_t own_id[PERFRING_BUILD_ID_SIZE], link[PERFRING_BUILD_ID_SIZE];
	int own_size, link_size;
};

static int read_file(struct perfring_dwarf *dwarf, struct perfring_dwarf_file *file, int fd, struct ids *ids)
{
	uint64_t left = PERFRING_LIMIT_INFLATED;
	struct perfring_elf_budget budget = {
		.all_left = &left, .left = PERFRING_LIMIT_INFLATED, .bound = "1 GiB in sections of DWARF"};
	struct perfring_elf_image image = {.budget = &budget, .fd = fd};
	int error = perfring__elf_image_open(&image);
	bool is_large = !error && are_large(&image) && perfring__dwarf_parts_open(&file->parts, fd);

	file->is_big = image.header[EI_DATA] == ELFDATA2MSB;
	for (int i = 0; !error && i < PERFRING_DWARF_SECTIONS; i++)
		error = read_section(
			&image, names[i], &file->sections[i],
			is_large && (i == PERFRING_DWARF_INFO || i == PERFRING_DWARF_LINE || i == PERFRING_DWARF_STR));
	if (!error) {
		ids->own_size = (int)perfring__elf_build_id_of(&image, ids->own_id);
		ids->link_size = link_of(&image, ids->link);
		error = ids->link_size < 0 ? ids->link_size : 0;
	}
	perfring__elf_image_close(&image);
	if (error == -E2BIG)
		dwarf->exceeded = budget.exceeded;
	file->rows_left = TABLE_RUNS * file->sections[PERFRING_DWARF_LINE].size;
	if (!error && !file->sections[PERFRING_DWARF_INFO].size)
		error = -ENODATA;
	return error == -EINVAL ? -ENODATA : error;
}

static void close_file(struct perfring_dwarf_file *file)
{
	perfring__dwarf_parts_close(&file->parts);
	if (file->memory)
		perfring__dwarf_free_units(file);
	for (int i = 0; i < PERFRING_DWARF_SECTIONS; i++)
		perfring__dwarf_section_close(&file->sections[i]);
	memset(file, 0, sizeof(*file));
}

/* Opens the file with shared entries, by its build id alone: the path in .gnu_debugaltlink is not trusted. */
static int open_shared(struct perfring_dwarf *dwarf, const struct ids *ids, const struct perfring_places *places,
		       const char *name)
{
	struct perfring_dwarf_entry first;
	char path[PATH_MAX];
	struct ids found;
	int error = -ENODATA;

	for (unsigned place = 0; place < PERFRING_PLACES_COUNT && error; place++) {
		int fd = perfring__places_open_build(places, PERFRING_PLACE_DEBUG_FILE, ids->link,
						     (uint32_t)ids->link_size, place, name, path);

		if (fd < 0)
			continue;
		dwarf->shared.memory = &dwarf->memory;
		dwarf->shared.looks = dwarf->own.looks;
		error = read_file(dwarf, &dwarf->shared, fd, &found);
		close(fd);
		if (!error &&
		    (found.own_size != ids->link_size || memcmp(found.own_id, ids->link, (size_t)ids->link_size)))
			error = -ENODATA;
		if (error)
			close_file(&dwarf->shared);
	}
	/* all its units: entries of any of them may be referred to */
	while (!error && perfring__dwarf_next_unit(&dwarf->shared, &first))
		;
	dwarf->own.shared = error ? NULL : &dwarf->shared;
	return error;
}

int perfring__dwarf_open(struct perfring_dwarf *dwarf, int fd, const struct perfring_places *places, const char *name)
{
	struct ids ids;
	int error;

	dwarf->own.memory = &dwarf->memory;
	dwarf->own.looks = PERFRING_LIMIT_RANGES;
	error = read_file(dwarf, &dwarf->own, fd, &ids);
	if (!error && dwarf->own.parts.is_open)
		perfring__dwarf_memory_open(&dwarf->memory);
	return error || !ids.link_size ? error : open_shared(dwarf, &ids, places, name);
}

void perfring__dwarf_close(struct perfring_dwarf *dwarf)
{
	close_file(&dwarf->own);
	close_file(&dwarf->shared);
	perfring__dwarf_memory_close(&dwarf->memory);
}
