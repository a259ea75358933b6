/* elf_symbols.c - the symbols of an ELF object: read under the bounds of limits.h.
 *
 *     the object's .symtab, else its debug file's, else its .dynsym and the .symtab in its .gnu_debugdata; then its PLT
 *
 * Offsets and sizes in an object are not trusted: each is checked against the file's size, charged to the budget, then read
 * once.  Names stay where they were read, also when symbols share one.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif
#include <perfring/build_id.h>
#include <perfring/file.h>
#include "elf_symbols.h"
#include "limits.h"
#include "tools.h"

/* Where separate debug files are. */
#define DEBUG_FOLDER "/usr/lib/debug"

enum {
	CHUNK = 1 << 16, /* of a table or a file, read at once */
	MAX_LINK = 512,  /* bytes of .gnu_debuglink: a file's name and its checksum */
};

struct section {
	uint32_t name;
	uint32_t type;
	uint64_t addr;
	uint64_t offset;
	uint64_t size;
	uint32_t link;
};

/* What is left for one object, and where its symbols go. */
struct reading {
	struct tool_elf *elf;
	uint64_t *all_left;
	uint64_t left;
	uint64_t names_left;
	uint32_t symbols_left;
	void (*take)(void *to, const struct tool_elf_symbol *symbol);
	void *to;
	const char *debug_path; /* of the debug file that is read, else NULL */
};

/* One image: a file's, or one that was inflated. */
struct image {
	struct reading *reading;
	int fd; /* -1: bytes */
	const unsigned char *bytes;
	uint64_t size;
	bool is_long;
	bool is_foreign;
	uint32_t section_count;
	struct section *sections;
	char *names; /* of sections */
	uint64_t names_size;
	unsigned char header[64];
};

/* ---- reading ---- */

static int exceed(struct reading *reading, const char *what)
{
	if (!reading->elf->exceeded)
		reading->elf->exceeded = what;
	return -E2BIG;
}

/* Keeps the first error of a file that should be readable.  A file that is missing or is no object is not an error. */
static int fail(struct reading *reading, int error)
{
	bool is_usual = error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EINVAL || error == -ENODATA;

	if (error >= 0 || is_usual || reading->elf->unread)
		return error;
	reading->elf->unread = error;
	if (reading->debug_path) {
		reading->elf->unread_path = tool_allocate(NULL, strlen(reading->debug_path) + 1, 1);
		strcpy(reading->elf->unread_path, reading->debug_path);
	}
	return error;
}

static int charge(struct reading *reading, uint64_t bytes)
{
	if (bytes > reading->left)
		return exceed(reading, "512 MiB to read from one object");
	if (bytes > *reading->all_left)
		return exceed(reading, "2 GiB to read from all objects");
	reading->left -= bytes;
	*reading->all_left -= bytes;
	return 0;
}

static uint64_t number(const struct image *image, const unsigned char *bytes, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)bytes[image->header[EI_DATA] == ELFDATA2MSB ? size - 1 - i : i] << 8 * i;
	return value;
}

/* A member: of 64-bit images at `at`, of others at `at_short`; a word of the image's class when size is 0. */
static uint64_t member(const struct image *image, const unsigned char *entry, unsigned at, unsigned at_short,
		       unsigned size)
{
	return number(image, entry + (image->is_long ? at : at_short), size ? size : image->is_long ? 8 : 4);
}

static int read_at(const struct image *image, void *buffer, size_t size, uint64_t at)
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
			return fail(image->reading, -errno);
		if (!got)
			return -EINVAL; /* it became shorter */
		done += (size_t)got;
	}
	return 0;
}

/* All of a section and a NUL, or NULL with *error. */
static void *read_section(const struct image *image, const struct section *section, int *error)
{
	char *buffer;

	*error = -EINVAL;
	if (section->type == SHT_NOBITS || section->offset > image->size ||
	    section->size > image->size - section->offset)
		return NULL;
	*error = charge(image->reading, section->size + 1);
	if (*error)
		return NULL;
	buffer = tool_allocate(NULL, (size_t)section->size + 1, 1);
	*error = read_at(image, buffer, (size_t)section->size, section->offset);
	if (*error) {
		free(buffer);
		return NULL;
	}
	buffer[section->size] = 0;
	return buffer;
}

static void parse_section(const struct image *image, const unsigned char *entry, struct section *section)
{
	section->name = (uint32_t)number(image, entry, 4);
	section->type = (uint32_t)number(image, entry + 4, 4);
	section->addr = member(image, entry, 16, 12, 0);
	section->offset = member(image, entry, 24, 16, 0);
	section->size = member(image, entry, 32, 20, 0);
	section->link = (uint32_t)member(image, entry, 40, 24, 4);
}

static int read_sections(struct image *image)
{
	const unsigned size = image->is_long ? 64 : 40;
	uint64_t at = member(image, image->header, 40, 32, 0), count = member(image, image->header, 60, 48, 2);
	uint64_t names = member(image, image->header, 62, 50, 2);
	unsigned char entry[64];
	struct section first;
	unsigned char *table;
	int error;

	if (!at)
		return 0;
	if (member(image, image->header, 58, 46, 2) != size)
		return -EINVAL;
	error = read_at(image, entry, size, at);
	if (error)
		return error;
	parse_section(image, entry, &first);
	if (!count)
		count = first.size;
	if (names == SHN_XINDEX)
		names = first.link;
	if (count > TOOL_LIMIT_SECTIONS)
		return exceed(image->reading, "65536 sections");
	error = charge(image->reading, count * size);
	if (error)
		return error;
	table = tool_allocate(NULL, (size_t)count + 1, size);
	error = read_at(image, table, (size_t)count * size, at);
	if (!error) {
		image->sections = tool_allocate(NULL, (size_t)count + 1, sizeof(*image->sections));
		for (uint64_t i = 0; i < count; i++)
			parse_section(image, table + i * size, &image->sections[i]);
		image->section_count = (uint32_t)count;
	}
	free(table);
	if (error || names >= count)
		return error;
	if (image->sections[names].size > TOOL_LIMIT_SECTION_NAMES)
		return exceed(image->reading, "16 MiB of names of sections");
	image->names_size = image->sections[names].size;
	image->names = read_section(image, &image->sections[names], &error);
	/* without names there are still tables of symbols */
	return error == -EINVAL ? 0 : error;
}

static int open_image(struct image *image)
{
	struct stat file;
	int error;

	if (image->fd >= 0) {
		if (fstat(image->fd, &file))
			return fail(image->reading, -errno);
		if (file.st_size < 0)
			return -EINVAL;
		image->size = (uint64_t)file.st_size;
	}
	error = read_at(image, image->header, 52, 0);
	if (error || memcmp(image->header, ELFMAG, SELFMAG))
		return error ? error : -EINVAL;
	image->is_long = image->header[EI_CLASS] == ELFCLASS64;
	error = image->is_long ? read_at(image, image->header, 64, 0) : 0;
	return error ? error : read_sections(image);
}

static void close_image(struct image *image)
{
	free(image->sections);
	free(image->names);
}

static const struct section *find_section(const struct image *image, const char *name)
{
	for (uint32_t i = 0; i < image->section_count; i++)
		if (image->names && image->sections[i].name < image->names_size &&
		    !strcmp(image->names + image->sections[i].name, name))
			return &image->sections[i];
	return NULL;
}

static const struct section *find_type(const struct image *image, uint32_t type)
{
	for (uint32_t i = 0; i < image->section_count; i++)
		if (image->sections[i].type == type)
			return &image->sections[i];
	return NULL;
}

static int read_segments(const struct image *image)
{
	const unsigned size = image->is_long ? 56 : 32;
	uint64_t at = member(image, image->header, 32, 28, 0), count = member(image, image->header, 56, 44, 2);
	struct tool_elf *elf = image->reading->elf;
	unsigned char entry[56];
	int error;

	if (!at || !count)
		return 0;
	if (member(image, image->header, 54, 42, 2) != size)
		return -EINVAL;
	if (count > TOOL_LIMIT_SEGMENTS)
		return exceed(image->reading, "4096 segments");
	elf->segments = tool_allocate(NULL, (size_t)count, sizeof(*elf->segments));
	for (uint64_t i = 0; i < count; i++) {
		error = at > image->size ? -EINVAL : read_at(image, entry, size, at + i * size);
		if (error)
			return error;
		if (number(image, entry, 4) == PT_LOAD)
			elf->segments[elf->segment_count++] = (struct tool_elf_segment){
				.offset = member(image, entry, 8, 4, 0),
				.size = member(image, entry, 32, 16, 0),
				.vaddr = member(image, entry, 16, 8, 0),
			};
	}
	return 0;
}

/* ---- symbols ---- */

/* The name at this offset of the strings, or NULL: none, or a bound is exceeded. */
static const char *name_at(struct reading *reading, const char *strings, uint64_t size, uint64_t at, uint32_t *length)
{
	size_t buffer, found;

	if (at >= size)
		return NULL;
	buffer = size - at < TOOL_LIMIT_NAME + 1 ? (size_t)(size - at) : TOOL_LIMIT_NAME + 1;
	if (buffer > reading->names_left) {
		exceed(reading, "1 GiB of names in one object");
		return NULL;
	}
	found = strnlen(strings + at, buffer);
	reading->names_left -= found;
	if (found > TOOL_LIMIT_NAME) {
		exceed(reading, "16 KiB in one name");
		return NULL;
	}
	*length = (uint32_t)found;
	return strings + at;
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
static uint64_t space_after(const struct image *image, uint32_t section, uint64_t value)
{
	const struct section *of = section < image->section_count ? &image->sections[section] : NULL;

	return of && value >= of->addr && value - of->addr < of->size ? of->size - (value - of->addr) : 0;
}

static int take_symbol(const struct image *image, const unsigned char *entry, const char *strings, uint64_t size)
{
	struct reading *reading = image->reading;
	unsigned info = (unsigned)member(image, entry, 4, 12, 1), other = (unsigned)member(image, entry, 5, 13, 1);
	uint32_t section = (uint32_t)member(image, entry, 6, 14, 2);
	uint64_t length = member(image, entry, 16, 8, 0);
	struct tool_elf_symbol symbol = {
		.start = member(image, entry, 8, 4, 0),
		.is_sized = length,
		.is_strong = info >> 4 != STB_WEAK,
		.is_global = info >> 4 == STB_GLOBAL,
	};

	if (!is_code(info, other, section))
		return 0;
	if (!reading->symbols_left)
		return exceed(reading, "4194304 symbols in one object");
	symbol.name = name_at(reading, strings, size, number(image, entry, 4), &symbol.length);
	if (!symbol.name || !symbol.length)
		return 0;
	if (!length)
		length = space_after(image, section, symbol.start);
	symbol.end = length > UINT64_MAX - symbol.start ? UINT64_MAX : symbol.start + length;
	reading->symbols_left--;
	reading->take(reading->to, &symbol);
	return 0;
}

/* Keeps what names point into. */
static void *keep(struct reading *reading, void *text)
{
	reading->elf->texts[reading->elf->text_count++] = text;
	return text;
}

/* A table and its strings, which are kept. */
static int read_table(const struct image *image, const struct section *table)
{
	const unsigned size = image->is_long ? 24 : 16;
	unsigned char *entries;
	uint64_t count, at;
	char *strings;
	int error;

	if (table->type == SHT_NOBITS || table->link >= image->section_count || table->offset > image->size ||
	    table->size > image->size - table->offset)
		return -EINVAL;
	error = charge(image->reading, table->size);
	if (error)
		return error;
	strings = read_section(image, &image->sections[table->link], &error);
	if (!strings)
		return error;
	keep(image->reading, strings);
	entries = tool_allocate(NULL, CHUNK / size, size);
	count = table->size / size;
	for (at = 0; at < count && !error; at += CHUNK / size) {
		size_t some = count - at < CHUNK / size ? (size_t)(count - at) : CHUNK / size;

		error = read_at(image, entries, some * size, table->offset + at * size);
		for (size_t i = 0; i < some && !error; i++)
			error = take_symbol(image, entries + i * size, strings, image->sections[table->link].size);
	}
	free(entries);
	return error;
}

/* ---- .gnu_debugdata ---- */

#ifdef HAVE_LZMA
/* Inflates into *buffer, which grows as it fills.  Returns how much came out, or -errno. */
static int64_t inflate(struct reading *reading, const unsigned char *bytes, uint64_t size, unsigned char **buffer)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t space = 1 << 20;
	int64_t got = -EINVAL;
	lzma_ret ret;

	*buffer = NULL;
	ret = lzma_stream_decoder(&stream, TOOL_LIMIT_DECODER, 0);
	if (ret != LZMA_OK)
		return ret == LZMA_MEM_ERROR ? fail(reading, -ENOMEM) : -EINVAL;
	stream.next_in = bytes;
	stream.avail_in = (size_t)size;
	for (ret = LZMA_OK; ret == LZMA_OK; space *= 2) {
		if (space > TOOL_LIMIT_DEBUGDATA) {
			got = exceed(reading, "64 MiB in .gnu_debugdata");
			break;
		}
		*buffer = tool_allocate(*buffer, space, 1);
		stream.next_out = *buffer + stream.total_out;
		stream.avail_out = space - (size_t)stream.total_out;
		ret = lzma_code(&stream, LZMA_FINISH);
	}
	if (ret == LZMA_STREAM_END)
		got = (int64_t)stream.total_out;
	else if (ret == LZMA_MEMLIMIT_ERROR)
		got = exceed(reading, "72 MiB to inflate .gnu_debugdata");
	else if (ret == LZMA_MEM_ERROR)
		got = fail(reading, -ENOMEM);
	/* what did not come to its end was inflated as well */
	if (!charge(reading, stream.total_out) && got >= 0) {
		lzma_end(&stream);
		return got;
	}
	lzma_end(&stream);
	free(*buffer);
	*buffer = NULL;
	return got < 0 ? got : -E2BIG;
}

static void read_debugdata(const struct image *image)
{
	const struct section *section = find_section(image, ".gnu_debugdata"), *table;
	struct image inner = {.reading = image->reading, .fd = -1};
	unsigned char *packed, *buffer;
	int64_t size;
	int error;

	packed = section ? read_section(image, section, &error) : NULL;
	if (!packed)
		return;
	size = inflate(image->reading, packed, section->size, &buffer);
	free(packed);
	if (size < 0)
		return;
	inner.bytes = buffer;
	inner.size = (uint64_t)size;
	if (!open_image(&inner) && (table = find_type(&inner, SHT_SYMTAB)))
		read_table(&inner, table);
	close_image(&inner);
	free(buffer);
}
#else
static void read_debugdata(const struct image *image)
{
	(void)image;
}
#endif

/* ---- debug files ---- */

/* The note of a section: the program headers of a debug file describe the object, not the file. */
static uint32_t read_note(const struct image *image, uint8_t *id)
{
	const struct section *section = find_section(image, ".note.gnu.build-id");
	unsigned char note[16 + PERFRING_BUILD_ID_SIZE];
	uint64_t length;

	if (!section || section->type != SHT_NOTE || section->size < 16 || read_at(image, note, 16, section->offset))
		return 0;
	length = number(image, note + 4, 4);
	if (number(image, note, 4) != 4 || number(image, note + 8, 4) != NT_GNU_BUILD_ID ||
	    memcmp(note + 12, "GNU", 4) || !length || length > PERFRING_BUILD_ID_SIZE || length > section->size - 16 ||
	    read_at(image, note, 16 + (size_t)length, section->offset))
		return 0;
	memcpy(id, note + 16, (size_t)length);
	return (uint32_t)length;
}

static uint32_t build_id_of(const struct image *image, uint8_t *id)
{
	int64_t length = read_note(image, id);

	if (!length && image->fd >= 0)
		length = fail(image->reading, (int)perfring_build_id_in(image->fd, id));
	return length > 0 ? (uint32_t)length : 0;
}

int tool_elf_build_id(int fd, uint64_t *left, uint8_t *id)
{
	struct tool_elf elf = {0};
	struct reading reading = {.elf = &elf, .all_left = left, .left = TOOL_LIMIT_LOOK};
	struct image image = {.reading = &reading, .fd = fd};
	int length = fail(&reading, (int)perfring_build_id_in(fd, id));

	if (length <= 0 && !elf.unread) {
		length = open_image(&image) ? 0 : (int)read_note(&image, id);
		close_image(&image);
	}
	return elf.unread ? elf.unread : length;
}

/* The checksum that .gnu_debuglink has of its file: CRC-32, as zlib's. */
static int sum_up(const struct image *image, uint32_t *sum)
{
	static uint32_t table[256];
	unsigned char *buffer;
	int error = charge(image->reading, image->size);

	if (error)
		return error;
	for (uint32_t i = 0; i < 256 && !table[255]; i++) {
		uint32_t word = i;

		for (int bit = 0; bit < 8; bit++)
			word = word >> 1 ^ (word & 1 ? UINT32_C(0xedb88320) : 0);
		table[i] = word;
	}
	buffer = tool_allocate(NULL, CHUNK, 1);
	*sum = UINT32_MAX;
	for (uint64_t at = 0; at < image->size && !error; at += CHUNK) {
		size_t some = image->size - at < CHUNK ? (size_t)(image->size - at) : CHUNK;

		error = read_at(image, buffer, some, at);
		for (size_t i = 0; i < some; i++)
			*sum = table[(*sum ^ buffer[i]) & 0xff] ^ *sum >> 8;
	}
	*sum = ~*sum;
	free(buffer);
	return error;
}

/* The debug file that the object names. */
struct debug_link {
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t id_size;
	char name[MAX_LINK]; /* "": none */
	uint32_t sum;
};

/* Whether it is the name of a file, without a directory. */
static void read_link(const struct image *image, struct debug_link *link)
{
	const struct section *section = find_section(image, ".gnu_debuglink");
	unsigned char bytes[MAX_LINK];
	size_t length;

	link->name[0] = 0;
	if (!section || section->type == SHT_NOBITS || section->size > sizeof(bytes) || section->size < 8 ||
	    read_at(image, bytes, (size_t)section->size, section->offset))
		return;
	length = strnlen((const char *)bytes, (size_t)section->size);
	if (length > NAME_MAX || (length + 4) / 4 * 4 + 4 > section->size || memchr(bytes, '/', length) ||
	    !strcmp((const char *)bytes, ".") || !strcmp((const char *)bytes, ".."))
		return;
	memcpy(link->name, bytes, length + 1);
	link->sum = (uint32_t)number(image, bytes + (length + 4) / 4 * 4, 4);
}

/* Reads the symbols of that file, if it is the object's.  Returns whether it has some. */
static bool read_debug_file(struct reading *reading, const struct debug_link *link, const char *path)
{
	struct image image = {.reading = reading, .fd = perfring_object_open(0, path)};
	const struct section *table = NULL;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	bool is_its = false;
	uint32_t sum;

	reading->debug_path = path;
	fail(reading, image.fd);
	if (image.fd < 0) {
		reading->debug_path = NULL;
		return false;
	}
	if (!open_image(&image) && (table = find_type(&image, SHT_SYMTAB))) {
		if (link->id_size)
			is_its = build_id_of(&image, id) == link->id_size && !memcmp(id, link->id, link->id_size);
		else
			is_its = !sum_up(&image, &sum) && sum == link->sum;
		is_its = is_its && !read_table(&image, table);
	}
	close_image(&image);
	close(image.fd);
	reading->debug_path = NULL;
	return is_its;
}

static bool find_debug_file(const struct image *image, const char *path)
{
	static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {DEBUG_FOLDER, ""}};
	const char *slash = strrchr(path, '/');
	char file[PATH_MAX], text[2 * PERFRING_BUILD_ID_SIZE + 1];
	struct debug_link link;
	int size;

	link.id_size = build_id_of(image, link.id);
	for (uint32_t i = 0; i < link.id_size; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", link.id[i]);
	if (link.id_size > 1) {
		snprintf(file, sizeof(file), DEBUG_FOLDER "/.build-id/%.2s/%s.debug", text, text + 2);
		if (read_debug_file(image->reading, &link, file))
			return true;
	}
	read_link(image, &link);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && *path == '/' && link.name[0]; i++) {
		size = snprintf(file, sizeof(file), "%s%.*s%s/%s", places[i][0], (int)(slash - path), path,
				places[i][1], link.name);
		if (size < (int)sizeof(file) && read_debug_file(image->reading, &link, file))
			return true;
	}
	return false;
}

/* ---- the PLT ---- */

/* It has no symbols: entry i jumps to what relocation i of .rela.plt is about.  x86-64 and arm64 have 16 bytes an entry; a
 * PLT of the plain kind begins with a header. */
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

static uint64_t count_stubs(const struct image *image, struct stubs *stubs)
{
	const struct section *relocations = find_section(image, ".rela.plt"), *symbols, *strings;
	int error;

	memset(stubs, 0, sizeof(*stubs));
	if (!relocations || relocations->link >= image->section_count)
		return 0;
	symbols = &image->sections[relocations->link];
	if (symbols->link >= image->section_count)
		return 0;
	strings = &image->sections[symbols->link];
	stubs->relocations = read_section(image, relocations, &error);
	stubs->symbols = stubs->relocations ? read_section(image, symbols, &error) : NULL;
	stubs->strings = stubs->symbols ? read_section(image, strings, &error) : NULL;
	stubs->symbols_size = symbols->size;
	stubs->strings_size = strings->size;
	return stubs->strings ? relocations->size / (image->is_long ? 24 : 12) : 0;
}

static const char *stub_name(const struct image *image, const struct stubs *stubs, uint64_t i, uint32_t *length)
{
	uint64_t info = member(image, stubs->relocations + i * (image->is_long ? 24 : 12), 8, 4, 0);
	uint64_t symbol = (image->is_long ? info >> 32 : info >> 8) * (image->is_long ? 24 : 16);

	*length = 0;
	if (stubs->symbols_size < 24 || symbol > stubs->symbols_size - 24)
		return "";
	return name_at(image->reading, stubs->strings, stubs->strings_size, number(image, stubs->symbols + symbol, 4),
		       length);
}

/* Of each entry's name, "NAME@plt": written twice, the first time to count them. */
static uint64_t put_stub_names(const struct image *image, const struct stubs *stubs, uint64_t count,
			       const struct section *plt, uint64_t head, char *buffer)
{
	uint64_t used = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct tool_elf_symbol symbol = {.is_sized = true, .is_strong = true};
		const char *name = stub_name(image, stubs, i, &symbol.length);

		if (!name)
			continue;
		symbol.length += 4;
		if (used + symbol.length + 1 > TOOL_LIMIT_STUB_NAMES) {
			exceed(image->reading, "16 MiB of names in the PLT");
			break;
		}
		if (buffer) {
			memcpy(buffer + used, name, symbol.length - 4);
			memcpy(buffer + used + symbol.length - 4, "@plt", 5);
			symbol.name = buffer + used;
			symbol.start = plt->addr + head + i * STUB;
			symbol.end = symbol.start + STUB;
			image->reading->take(image->reading->to, &symbol);
		}
		used += symbol.length + 1;
	}
	return used;
}

static void read_stubs(const struct image *image)
{
	const struct section *plt = find_section(image, ".plt.sec");
	struct stubs stubs;
	uint64_t head = 0, count, used;
	char *buffer;

	if (!plt) {
		plt = find_section(image, ".plt");
		head = STUB_HEAD;
	}
	if (!plt || plt->size < head + STUB)
		return;
	count = count_stubs(image, &stubs);
	if (count > (plt->size - head) / STUB)
		count = (plt->size - head) / STUB;
	used = put_stub_names(image, &stubs, count, plt, head, NULL);
	if (used) {
		buffer = keep(image->reading, tool_allocate(NULL, (size_t)used, 1));
		put_stub_names(image, &stubs, count, plt, head, buffer);
	}
	free(stubs.relocations);
	free(stubs.symbols);
	free(stubs.strings);
}

/* ---- all of it ---- */

static int read_image(const struct image *image, const char *path)
{
	const struct section *table = find_type(image, SHT_SYMTAB);
	int error = read_segments(image);

	if (error)
		return error;
	if (table)
		error = read_table(image, table);
	else if (!find_debug_file(image, path)) {
		table = find_type(image, SHT_DYNSYM);
		error = table ? read_table(image, table) : 0;
		if (!error)
			read_debugdata(image);
	}
	if (!error)
		read_stubs(image);
	return error;
}

int tool_elf_read(struct tool_elf *elf, int fd, const char *path, uint64_t *left,
		  void (*take)(void *to, const struct tool_elf_symbol *symbol), void *to)
{
	struct reading reading = {
		.elf = elf,
		.all_left = left,
		.left = TOOL_LIMIT_OBJECT_BYTES,
		.names_left = TOOL_LIMIT_NAMES,
		.symbols_left = TOOL_LIMIT_SYMBOLS,
		.take = take,
		.to = to,
	};
	struct image image = {.reading = &reading, .fd = fd};
	int error;

	memset(elf, 0, sizeof(*elf));
	error = open_image(&image);
	if (!error)
		error = read_image(&image, path);
	close_image(&image);
	return error;
}

void tool_elf_close(struct tool_elf *elf)
{
	free(elf->segments);
	free(elf->unread_path);
	for (unsigned i = 0; i < elf->text_count; i++)
		free(elf->texts[i]);
	memset(elf, 0, sizeof(*elf));
}
