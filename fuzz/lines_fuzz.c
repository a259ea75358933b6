/* lines_fuzz.c - any bytes as the sections of DWARF of an object.
 *
 *     byte 0          bit 0: 32 bits; bit 1: the first byte of a number is the highest; bit 2: .debug_str has LARGE bytes more, all
 *                     zero, so that it and others stay in the file
 *     byte 1          a bit for each of the first eight sections: it is packed
 *     bytes 2 to 17   sizes of those, two bytes each, the first the lowest
 *     the rest        the sections, as SECTIONS names them; the last one has what is left
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/symbol.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
	COUNT = 9, /* of sections of DWARF */
	OTHERS = 5,
	HEAD = 18,
	TEXT_AT = 0x1000,
	TEXT_SIZE = 0x1000,
	NAMES_SIZE = 256,
	IMAGE_MAX = 1 << 21,
	FRAMES = 16,
	TEXTS = 3, /* which section .debug_str is */
	LARGE = 8 << 20,
};

static const char *const SECTIONS[OTHERS + COUNT] = {
	"",
	".text",
	".symtab",
	".strtab",
	".shstrtab",
	".debug_info",
	".debug_abbrev",
	".debug_line",
	".debug_str",
	".debug_line_str",
	".debug_ranges",
	".debug_rnglists",
	".debug_addr",
	".debug_str_offsets",
};

static void must(bool held)
{
	if (!held)
		abort();
}

/* An object that grows. */
struct image {
	uint8_t bytes[IMAGE_MAX];
	size_t size;
	bool is_short, is_big, is_large;
};

/* size: up to 8. */
static void put(struct image *image, uint64_t number, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		image->bytes[image->size++] = (uint8_t)(number >> 8 * (image->is_big ? size - 1 - i : i));
}

/* A number of the class's size. */
static void put_word(struct image *image, uint64_t number)
{
	put(image, number, image->is_short ? 4 : 8);
}

static void put_section(struct image *image, uint32_t name, uint32_t type, uint64_t flags, uint64_t at, uint64_t size,
			uint32_t link, uint64_t entry)
{
	put(image, name, 4);
	put(image, type, 4);
	put_word(image, flags);
	put_word(image, type == SHT_NOBITS ? TEXT_AT : 0);
	put_word(image, at);
	put_word(image, size);
	put(image, link, 4);
	put(image, 0, 4);
	put_word(image, 1);
	put_word(image, entry);
}

static void put_header(struct image *image, uint64_t sections)
{
	static const unsigned short_sizes[] = {52, 32, 1, 40}, sizes[] = {64, 56, 1, 64};

	image->size = 0;
	put(image, 0, 8);
	put(image, 0, 8);
	memcpy(image->bytes, ELFMAG, SELFMAG);
	image->bytes[EI_CLASS] = image->is_short ? ELFCLASS32 : ELFCLASS64;
	image->bytes[EI_DATA] = image->is_big ? ELFDATA2MSB : ELFDATA2LSB;
	image->bytes[EI_VERSION] = EV_CURRENT;
	put(image, ET_DYN, 2);
	put(image, image->is_short ? EM_386 : EM_X86_64, 2);
	put(image, 1, 4);
	put_word(image, 0);
	put_word(image, image->is_short ? 52 : 64);
	put_word(image, sections);
	put(image, 0, 4);
	for (unsigned i = 0; i < 4; i++)
		put(image, image->is_short ? short_sizes[i] : sizes[i], 2);
	put(image, OTHERS + COUNT, 2);
	put(image, 4, 2);
	/* the segment: offsets are addresses */
	put(image, PT_LOAD, 4);
	if (!image->is_short)
		put(image, PF_R | PF_X, 4);
	for (unsigned i = 0; i < 3; i++)
		put_word(image, 0);
	put_word(image, 2 * TEXT_AT);
	put_word(image, 2 * TEXT_AT);
	if (image->is_short)
		put(image, PF_R | PF_X, 4);
	put_word(image, TEXT_AT);
}

static void put_symbols(struct image *image)
{
	put(image, 0, 8);
	put_word(image, 0);
	put_word(image, 0);
	put(image, 1, 4);
	if (image->is_short) {
		put(image, TEXT_AT, 4);
		put(image, TEXT_SIZE, 4);
	}
	put(image, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1);
	put(image, 0, 1);
	put(image, 1, 2);
	if (!image->is_short) {
		put(image, TEXT_AT, 8);
		put(image, TEXT_SIZE, 8);
	}
}

static void make(struct image *image, const uint8_t *bytes, size_t size)
{
	uint64_t places[COUNT], sizes[COUNT], symbols, names, strings, at = HEAD;
	uint32_t name_at[OTHERS + COUNT];
	const uint8_t *texts = bytes;
	size_t end = 0;

	image->is_short = bytes[0] & 1;
	image->is_big = bytes[0] & 2;
	image->is_large = bytes[0] & 4;
	put_header(image, 0);
	symbols = image->size;
	put_symbols(image);
	strings = image->size;
	memcpy(image->bytes + strings, "\0f", 3);
	names = image->size = strings + 3;
	for (unsigned i = 0; i < OTHERS + COUNT; i++) {
		name_at[i] = (uint32_t)(image->size - names);
		image->size += (size_t)sprintf((char *)image->bytes + image->size, "%s", SECTIONS[i]) + 1;
	}
	for (unsigned i = 0; i < COUNT; i++) {
		sizes[i] = i + 1 < COUNT ? bytes[2 + 2 * i] | (uint64_t)bytes[3 + 2 * i] << 8 : size - at;
		if (sizes[i] > size - at)
			sizes[i] = size - at;
		places[i] = image->size;
		texts = i == TEXTS ? bytes + at : texts;
		if (i != TEXTS || !image->is_large) {
			memcpy(image->bytes + image->size, bytes + at, sizes[i]);
			image->size += sizes[i];
		}
		at += sizes[i];
	}
	at = image->size;
	if (image->is_large) {
		places[TEXTS] = at + (uint64_t)(OTHERS + COUNT) * (image->is_short ? 40u : 64u);
		memcpy(image->bytes + places[TEXTS], texts, sizes[TEXTS]);
		end = places[TEXTS] + sizes[TEXTS];
		sizes[TEXTS] += LARGE;
	}
	put_section(image, 0, SHT_NULL, 0, 0, 0, 0, 0);
	put_section(image, name_at[1], SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, TEXT_SIZE, 0, 0);
	put_section(image, name_at[2], SHT_SYMTAB, 0, symbols, strings - symbols, 3, image->is_short ? 16 : 24);
	put_section(image, name_at[3], SHT_STRTAB, 0, strings, 3, 0, 0);
	put_section(image, name_at[4], SHT_STRTAB, 0, names, places[0] - names, 0, 0);
	for (unsigned i = 0; i < COUNT; i++)
		put_section(image, name_at[OTHERS + i], SHT_PROGBITS, i < 8 && bytes[1] >> i & 1 ? SHF_COMPRESSED : 0,
			    places[i], sizes[i], 0, 0);
	size = image->is_large ? end : image->size;
	put_header(image, at);
	image->size = size;
}

/* Each text ends, and the innermost frames are first. */
static int ask(struct perfring_symbol_object *object, uint64_t offset, uint32_t most, uint32_t *line)
{
	struct perfring_symbol_frame frames[FRAMES];
	int count = perfring_symbol_frames(object, offset, frames, most);
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		must(frames[i].is_inlined == (i + 1 < count));
		length += frames[i].name ? strlen(frames[i].name) : 0;
		length += frames[i].file ? strlen(frames[i].file) : 0;
	}
	must(count <= (int)most && length < FRAMES * (uint64_t)IMAGE_MAX);
	*line = count > 0 ? frames[0].line : 0;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct image image;
	static int fd = -1;
	struct perfring_symbol_object *object;
	struct perfring_symbols *symbols;
	uint32_t line, again;
	char path[64];

	if (size < HEAD || size > IMAGE_MAX / 2)
		return 0;
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	make(&image, bytes, size);
	must(!ftruncate(fd, 0) && pwrite(fd, image.bytes, image.size, 0) == (ssize_t)image.size &&
	     !ftruncate(fd, (off_t)image.size + (image.is_large ? LARGE : 0)));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(!perfring_symbols_open(&symbols, NULL));
	must(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object) >= 0);
	for (uint64_t i = 0; i < 48; i++) {
		uint64_t at = TEXT_AT + (i < 32 ? i : 32 * (i - 31));
		int count = ask(object, at, FRAMES, &line);

		must(ask(object, at, 1, &again) == (count > 0) && again == line);
	}
	perfring_symbols_close(symbols);
	return 0;
}
