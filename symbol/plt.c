/* plt.c - names for the entries of the PLT, which have no symbols: entry i jumps to what relocation i of .rela.plt is about.
 *
 * elf_symbols.c calls it last.  Sections are foreign: relocations and names are counted first, and bounded by limits.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "elf_symbols.h"
#include "limits.h"

/* x86-64 and arm64 have 16 bytes an entry; a PLT of the plain kind begins with a header. */
#define STUB 16
#ifdef __aarch64__
#define STUB_HEAD 32
#else
#define STUB_HEAD 16
#endif

/* .rela.plt, and .dynsym with its names. */
struct stubs {
	unsigned char *relocations;
	unsigned char *symbols;
	uint64_t symbols_size;
	char *strings;
	uint64_t strings_size;
};

static uint64_t count_stubs(const struct perfring_elf_image *image, struct stubs *stubs)
{
	const struct perfring_elf_section *relocations = perfring__elf_section_find(image, ".rela.plt");
	const struct perfring_elf_section *symbols, *strings;
	int error;

	memset(stubs, 0, sizeof(*stubs));
	if (!relocations || relocations->link >= image->section_count)
		return 0;
	symbols = &image->sections[relocations->link];
	if (symbols->link >= image->section_count)
		return 0;
	strings = &image->sections[symbols->link];
	stubs->relocations = perfring__elf_section_read(image, relocations, &error);
	stubs->symbols = stubs->relocations ? perfring__elf_section_read(image, symbols, &error) : NULL;
	stubs->strings = stubs->symbols ? perfring__elf_section_read(image, strings, &error) : NULL;
	stubs->symbols_size = symbols->size;
	stubs->strings_size = strings->size;
	return stubs->strings ? relocations->size / (image->is_long ? 24 : 12) : 0;
}

static const char *stub_name(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
			     const struct stubs *stubs, uint64_t i, uint32_t *length)
{
	const unsigned char *relocation = stubs->relocations + i * (image->is_long ? 24 : 12);
	uint64_t word = perfring__elf_member(image, relocation, 8, 4, 0);
	uint64_t symbol = (image->is_long ? word >> 32 : word >> 8) * (image->is_long ? 24 : 16);

	*length = 0;
	if (stubs->symbols_size < 24 || symbol > stubs->symbols_size - 24)
		return "";
	return perfring__elf_name(reading, stubs->strings, stubs->strings_size,
				  perfring__elf_number(image, stubs->symbols + symbol, 4), length);
}

/* Writes the name of each entry, "NAME@plt", at most `most` bytes, and adds its symbol; with buffer NULL it only counts the
 * bytes.  The second time the bound of names may exclude others: so `most` is checked again. */
static int put_stubs(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
		     const struct stubs *stubs, uint64_t count, uint64_t first, char *buffer, uint64_t most,
		     uint64_t *used)
{
	*used = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = first + i * STUB;
		uint32_t length;
		const char *name = stub_name(reading, image, stubs, i, &length);
		char *text = buffer + (buffer ? *used : 0);

		if (!name)
			continue;
		if (*used + length + 5 > most) {
			perfring__elf_exceed(&reading->budget, "16 MiB of names in the PLT");
			break;
		}
		if (buffer) {
			memcpy(text, name, length);
			memcpy(text + length, "@plt", 5);
			if (perfring__symbol_table_add(&reading->symbols->table, start, start + STUB, text,
						       PERFRING_ENTRY_SIZED | PERFRING_ENTRY_STRONG)) {
				reading->budget.no_memory = true;
				return -ENOMEM;
			}
		}
		*used += length + 5;
	}
	return 0;
}

static int read_stubs(struct perfring_elf_reading *reading, const struct perfring_elf_image *image,
		      const struct stubs *stubs, uint64_t count, uint64_t first)
{
	uint64_t used, most;
	char *buffer;

	put_stubs(reading, image, stubs, count, first, NULL, PERFRING_LIMIT_STUB_NAMES, &used);
	if (!used)
		return 0;
	buffer = perfring__elf_allocate(&reading->budget, (size_t)used, 1);
	if (!buffer)
		return -ENOMEM;
	perfring__elf_keep(reading, buffer);
	most = used;
	return put_stubs(reading, image, stubs, count, first, buffer, most, &used);
}

int perfring__elf_stubs_read(struct perfring_elf_reading *reading, const struct perfring_elf_image *image)
{
	const struct perfring_elf_section *plt = perfring__elf_section_find(image, ".plt.sec");
	struct stubs stubs;
	uint64_t head = 0, count;
	int error;

	if (!plt) {
		plt = perfring__elf_section_find(image, ".plt");
		head = STUB_HEAD;
	}
	if (!plt || plt->size < head + STUB)
		return 0;
	count = count_stubs(image, &stubs);
	if (count > (plt->size - head) / STUB)
		count = (plt->size - head) / STUB;
	error = read_stubs(reading, image, &stubs, count, plt->addr + head);
	free(stubs.relocations);
	free(stubs.symbols);
	free(stubs.strings);
	return error;
}
