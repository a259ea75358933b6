/* elf_symbols.c - the symbols of an ELF object.
 *
 * symbols.c reads each object by it once, frames.c compares files by their identity.
 *
 *     the object's .symtab, else its debug file's where its system keeps it, else its .dynsym and
 *         the .symtab in its .gnu_debugdata, else a debug file's in caches or of servers;
 *     then its PLT
 *
 * Names stay where they were read, also when symbols share one.
 */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "elf_symbols.h"
#include "limits.h"

enum {
	CHUNK = 1 << 16, /* of a table, read at once */
};

const char *perfring__elf_name(struct perfring_elf_reading *reading, const char *strings, uint64_t size, uint64_t at,
			       uint32_t *length)
{
	size_t space, found;

	if (at >= size)
		return NULL;
	space = size - at < PERFRING_LIMIT_NAME + 1 ? (size_t)(size - at) : PERFRING_LIMIT_NAME + 1;
	if (space > reading->names_left) {
		perfring__elf_exceed(&reading->budget, "1 GiB of names in one object");
		return NULL;
	}
	found = strnlen(strings + at, space);
	reading->names_left -= found;
	if (found > PERFRING_LIMIT_NAME) {
		perfring__elf_exceed(&reading->budget, "16 KiB in one name");
		return NULL;
	}
	*length = (uint32_t)found;
	return strings + at;
}

void perfring__elf_keep(struct perfring_elf_reading *reading, void *text)
{
	assert(reading->symbols->text_count < sizeof(reading->symbols->texts) / sizeof(reading->symbols->texts[0]));
	reading->symbols->texts[reading->symbols->text_count++] = text;
}

static bool is_code(unsigned info, unsigned other, uint32_t section)
{
	unsigned type = info & 15, seen = other & 3;

	if (section == SHN_UNDEF || section == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && seen != STV_HIDDEN && seen != STV_INTERNAL);
}

/* A symbol without a size (_init) ends with its section at the latest: what follows is the PLT. */
static uint64_t space_after(const struct perfring_elf_image *image, uint32_t section, uint64_t value)
{
	const struct perfring_elf_section *of = section < image->section_count ? &image->sections[section] : NULL;

	return of && value >= of->addr && value - of->addr < of->size ? of->size - (value - of->addr) : 0;
}

static int take_symbol(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
		       const unsigned char *entry, const char *strings, uint64_t size)
{
	unsigned info = (unsigned)perfring__elf_member(image, entry, 4, 12, 1);
	unsigned other = (unsigned)perfring__elf_member(image, entry, 5, 13, 1);
	uint32_t section = (uint32_t)perfring__elf_member(image, entry, 6, 14, 2), length;
	uint64_t space = perfring__elf_member(image, entry, 16, 8, 0);
	uint64_t start = perfring__elf_member(image, entry, 8, 4, 0);
	unsigned flags = space ? PERFRING_ENTRY_SIZED : 0;
	const char *name;
	int error;

	if (!is_code(info, other, section))
		return 0;
	if (!reading->symbols_left)
		return perfring__elf_exceed(&reading->budget, "4194304 symbols in one object");
	name = perfring__elf_name(reading, strings, size, perfring__elf_number(image, entry, 4), &length);
	if (!name || !length)
		return 0;
	if (reading->symbols->reference && !strcmp(name, reading->symbols->reference)) {
		reading->symbols->has_reference = true;
		reading->symbols->reference_address = start;
	}
	if (info >> 4 != STB_WEAK)
		flags |= PERFRING_ENTRY_STRONG;
	if (info >> 4 == STB_GLOBAL)
		flags |= PERFRING_ENTRY_GLOBAL;
	if (!space)
		space = space_after(image, section, start);
	reading->symbols_left--;
	error = perfring__symbol_table_add(&reading->symbols->table, start,
					   space > UINT64_MAX - start ? UINT64_MAX : start + space, name, flags);
	reading->budget.no_memory = reading->budget.no_memory || error;
	return error;
}

int perfring__elf_table_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
			     const struct perfring_elf_section *table)
{
	const unsigned size = image->is_long ? 24 : 16;
	const struct perfring_elf_section *names;
	unsigned char *entries;
	uint64_t count, at;
	char *strings;
	int error;

	if (table->type == SHT_NOBITS || table->link >= image->section_count || table->offset > image->size ||
	    table->size > image->size - table->offset)
		return -EINVAL;
	error = perfring__elf_charge(&reading->budget, table->size);
	if (error)
		return error;
	names = &image->sections[table->link];
	strings = perfring__elf_section_read(image, names, &error);
	if (!strings)
		return error;
	perfring__elf_keep(reading, strings);
	entries = perfring__elf_allocate(&reading->budget, CHUNK / size, size);
	if (!entries)
		return -ENOMEM;
	count = table->size / size;
	for (at = 0; at < count && !error; at += CHUNK / size) {
		size_t some = count - at < CHUNK / size ? (size_t)(count - at) : CHUNK / size;

		error = perfring__elf_read(image, entries, some * size, table->offset + at * size);
		for (size_t i = 0; i < some && !error; i++)
			error = take_symbol(reading, image, entries + i * size, strings, names->size);
	}
	free(entries);
	return error;
}

/* ---- all of it ---- */

static int read_image(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	struct perfring_elf_symbols *symbols = reading->symbols;
	const struct perfring_elf_section *table = perfring__elf_section_of_type(image, SHT_SYMTAB);
	int error = perfring__elf_segments_read(image, &symbols->segments, &symbols->segment_count);

	if (error)
		return error;
	if (table)
		error = perfring__elf_table_read(reading, image, table);
	else if (!perfring__elf_debug_file_read(reading, image)) {
		table = perfring__elf_section_of_type(image, SHT_DYNSYM);
		error = table ? perfring__elf_table_read(reading, image, table) : 0;
		if (!error)
			symbols->has_exports_only = !perfring__elf_debugdata_read(reading, image) &&
						    !perfring__elf_cached_debug_file_read(reading, image);
	}
	return error ? error : perfring__elf_stubs_read(reading, image);
}

int perfring__elf_symbols_read(struct perfring_elf_symbols *symbols, int fd, const char *path,
			       const struct perfring_places *places, bool demangles, uint64_t *left)
{
	struct perfring_elf_reading reading = {
		.budget = {.all_left = left, .left = PERFRING_LIMIT_OBJECT_BYTES},
		.names_left = PERFRING_LIMIT_NAMES,
		.symbols_left = PERFRING_LIMIT_SYMBOLS,
		.places = places,
		.path = path,
		.symbols = symbols,
	};
	struct perfring_elf_image image = {.budget = &reading.budget, .fd = fd};
	int error;

	*symbols = (struct perfring_elf_symbols){.reference = symbols->reference};
	error = perfring__elf_image_open(&image);
	if (!error)
		error = read_image(&reading, &image);
	perfring__elf_image_close(&image);
	symbols->exceeded = reading.budget.exceeded;
	symbols->error = reading.budget.error;
	symbols->error_path = reading.budget.error_path;
	if (reading.budget.no_memory)
		return -ENOMEM;
	return error ? error : perfring__symbol_table_sort(&symbols->table, demangles);
}

int perfring__elf_symbols_read_segments(struct perfring_elf_symbols *symbols, int fd, uint64_t *left)
{
	struct perfring_elf_budget budget = {.all_left = left, .left = PERFRING_LIMIT_OBJECT_BYTES};
	struct perfring_elf_image image = {.budget = &budget, .fd = fd};
	int error;

	*symbols = (struct perfring_elf_symbols){.reference = NULL};
	error = perfring__elf_image_open(&image);
	if (!error)
		error = perfring__elf_segments_read(&image, &symbols->segments, &symbols->segment_count);
	perfring__elf_image_close(&image);
	symbols->exceeded = budget.exceeded;
	symbols->error = budget.error;
	symbols->error_path = budget.error_path;
	return budget.no_memory ? -ENOMEM : error;
}

void perfring__elf_symbols_close(struct perfring_elf_symbols *symbols)
{
	perfring__symbol_table_close(&symbols->table);
	free(symbols->segments);
	free(symbols->debug_path);
	free(symbols->error_path);
	for (unsigned i = 0; i < symbols->text_count; i++)
		free(symbols->texts[i]);
	memset(symbols, 0, sizeof(*symbols));
}

uint64_t perfring__elf_symbols_address(const struct perfring_elf_symbols *symbols, uint64_t offset)
{
	for (uint32_t i = 0; i < symbols->segment_count; i++) {
		const struct perfring_elf_segment *segment = &symbols->segments[i];

		if (offset >= segment->offset && offset - segment->offset < segment->size)
			return offset - segment->offset + segment->vaddr;
	}
	return offset;
}
