/* uprobe.c - PATH:SYMBOL+OFFSET to an offset in the file, by a reader of ELF symbol tables that trusts no byte of it. */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/object.h"
#include "pmu.h"

enum {
	SECTIONS = 65536,       /* looked at in one file */
	PROGRAMS = 4096,        /* of its segments */
	STRINGS = 64 << 20,     /* bytes of names, and of a table */
	SYMBOLS_AT_ONCE = 1024, /* read together */
};

/* One file, and what its class makes of it.  All numbers in it are only compared, and reads end at the file's end. */
struct elf {
	int fd;
	bool wide;
	uint64_t size;
	uint64_t programs_at;
	uint64_t sections_at;
	uint32_t programs;
	uint32_t program_size;
	uint32_t sections;
	uint32_t section_size;
};

struct section {
	uint32_t type;
	uint32_t link;
	uint64_t at;
	uint64_t size;
	uint64_t entry;
};

struct symbol {
	uint32_t name;
	uint16_t section;
	uint8_t how;
	uint64_t value;
	uint64_t size;
};

static int read_at(const struct elf *elf, uint64_t at, void *room, size_t size)
{
	size_t got = 0;

	if (at > elf->size || size > elf->size - at)
		return -EBADMSG;
	while (got < size) {
		ssize_t more = pread(elf->fd, (char *)room + got, size - got, (off_t)(at + got));

		if (more < 0 && errno != EINTR)
			return -errno;
		if (!more)
			return -EBADMSG; /* it has become shorter */
		got += more > 0 ? (size_t)more : 0;
	}
	return 0;
}

/* Both forms of one of its structs. */
union header {
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
};
union program {
	Elf64_Phdr wide;
	Elf32_Phdr narrow;
};
union raw_section {
	Elf64_Shdr wide;
	Elf32_Shdr narrow;
};
union raw_symbol {
	Elf64_Sym wide;
	Elf32_Sym narrow;
};

#define MEMBER(elf, raw, member) ((elf)->wide ? (uint64_t)(raw).wide.member : (uint64_t)(raw).narrow.member)
#define FORM_SIZE(elf, raw) ((elf)->wide ? sizeof((raw).wide) : sizeof((raw).narrow))

static int read_section(const struct elf *elf, uint32_t i, struct section *section)
{
	union raw_section raw;
	int error = read_at(elf, elf->sections_at + (uint64_t)i * elf->section_size, &raw, FORM_SIZE(elf, raw));

	if (error)
		return error;
	section->type = (uint32_t)MEMBER(elf, raw, sh_type);
	section->link = (uint32_t)MEMBER(elf, raw, sh_link);
	section->at = MEMBER(elf, raw, sh_offset);
	section->size = MEMBER(elf, raw, sh_size);
	section->entry = MEMBER(elf, raw, sh_entsize);
	return 0;
}

static int open_elf(struct elf *elf, int fd)
{
	const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	struct section first;
	struct stat status;
	union header raw;
	int error;

	memset(elf, 0, sizeof(*elf));
	memset(&raw, 0, sizeof(raw));
	elf->fd = fd;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < 0)
		return -EBADMSG;
	elf->size = (uint64_t)status.st_size;
	error = read_at(elf, 0, &raw, sizeof(raw.narrow));
	if (error)
		return error;
	if (memcmp(raw.wide.e_ident, ELFMAG, SELFMAG) || raw.wide.e_ident[EI_DATA] != order ||
	    (raw.wide.e_ident[EI_CLASS] != ELFCLASS64 && raw.wide.e_ident[EI_CLASS] != ELFCLASS32))
		return -EBADMSG;
	elf->wide = raw.wide.e_ident[EI_CLASS] == ELFCLASS64;
	error = read_at(elf, 0, &raw, FORM_SIZE(elf, raw));
	if (error)
		return error;
	elf->programs_at = MEMBER(elf, raw, e_phoff);
	elf->programs = (uint32_t)MEMBER(elf, raw, e_phnum);
	elf->program_size = (uint32_t)MEMBER(elf, raw, e_phentsize);
	elf->sections_at = MEMBER(elf, raw, e_shoff);
	elf->sections = (uint32_t)MEMBER(elf, raw, e_shnum);
	elf->section_size = (uint32_t)MEMBER(elf, raw, e_shentsize);
	if (elf->programs_at > elf->size || elf->sections_at > elf->size)
		return -EBADMSG;
	if (elf->programs > PROGRAMS)
		elf->programs = PROGRAMS;
	/* More sections than 16 bits count: the first says how many. */
	if (!elf->sections && elf->sections_at && !read_section(elf, 0, &first))
		elf->sections = first.size > SECTIONS ? SECTIONS : (uint32_t)first.size;
	return 0;
}

/* Where in the file an address of its is: in the segment that holds it, rather one that is run. */
static int offset_of(const struct elf *elf, uint64_t address, uint64_t *offset)
{
	int found = -ENOENT;

	for (uint32_t i = 0; i < elf->programs; i++) {
		union program raw;
		uint64_t from, at, size;

		if (read_at(elf, elf->programs_at + (uint64_t)i * elf->program_size, &raw, FORM_SIZE(elf, raw)))
			return -EBADMSG;
		from = MEMBER(elf, raw, p_vaddr);
		at = MEMBER(elf, raw, p_offset);
		size = MEMBER(elf, raw, p_filesz);
		if (MEMBER(elf, raw, p_type) != PT_LOAD || address < from || address - from >= size || at > elf->size ||
		    address - from >= elf->size - at)
			continue;
		*offset = at + (address - from);
		found = 0;
		if (MEMBER(elf, raw, p_flags) & PF_X)
			break;
	}
	return found;
}

/* A function of this name: 2 is one that other files see, 1 is a static one, 0 is none. */
static unsigned fits(const struct symbol *symbol, const char *strings, uint64_t size, const char *name, size_t length)
{
	unsigned type = symbol->how & 15;

	if (symbol->section == SHN_UNDEF || symbol->section == SHN_ABS ||
	    (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) || symbol->name >= size ||
	    size - symbol->name <= length || memcmp(strings + symbol->name, name, length) ||
	    strings[symbol->name + length])
		return 0;
	return symbol->how >> 4 == STB_LOCAL ? 1 : 2;
}

/* Searches a symbol table; a better one than *best takes its place. */
static int search(const struct elf *elf, const struct section *table, const struct section *names, const char *name,
		  size_t length, unsigned *best, struct symbol *found)
{
	union raw_symbol raw;
	size_t each = FORM_SIZE(elf, raw), piece;
	uint64_t count = table->size / each;
	char *strings, *symbols;
	unsigned fit;
	int error;

	if (table->entry != each || names->size > STRINGS || table->size > STRINGS || table->at > elf->size ||
	    table->size > elf->size - table->at || names->size > elf->size)
		return -EBADMSG;
	strings = malloc((size_t)names->size + 1);
	symbols = malloc(SYMBOLS_AT_ONCE * each);
	error = strings && symbols ? read_at(elf, names->at, strings, (size_t)names->size) : -ENOMEM;
	for (uint64_t i = 0; !error && i < count && *best < 2; i += piece) {
		piece = count - i < SYMBOLS_AT_ONCE ? (size_t)(count - i) : SYMBOLS_AT_ONCE;
		error = read_at(elf, table->at + i * each, symbols, piece * each);
		for (size_t j = 0; !error && j < piece && *best < 2; j++) {
			struct symbol symbol;

			memcpy(&raw, symbols + j * each, each);
			symbol = (struct symbol){
				.name = (uint32_t)MEMBER(elf, raw, st_name),
				.section = (uint16_t)MEMBER(elf, raw, st_shndx),
				.how = (uint8_t)MEMBER(elf, raw, st_info),
				.value = MEMBER(elf, raw, st_value),
				.size = MEMBER(elf, raw, st_size),
			};
			fit = fits(&symbol, strings, names->size, name, length);
			if (fit > *best) {
				*best = fit;
				*found = symbol;
			}
		}
	}
	free(strings);
	free(symbols);
	return error;
}

int perfring_uprobe_symbol(int fd, const char *symbol, size_t length, uint64_t *offset, uint64_t *size)
{
	static const uint32_t TABLES[] = {SHT_SYMTAB, SHT_DYNSYM};
	struct symbol found = {0};
	unsigned best = 0;
	struct elf elf;
	int error = open_elf(&elf, fd);

	if (error)
		return error;
	for (unsigned t = 0; t < 2 && best < 2; t++) {
		bool seen = false; /* there is one of each */

		for (uint32_t i = 0; i < elf.sections && !seen; i++) {
			struct section table, names;

			error = read_section(&elf, i, &table);
			if (error)
				return error;
			if (table.type != TABLES[t] || !table.size)
				continue;
			seen = true;
			if (table.link >= elf.sections)
				return -EBADMSG;
			error = read_section(&elf, table.link, &names);
			if (!error)
				error = search(&elf, &table, &names, symbol, length, &best, &found);
			if (error)
				return error;
		}
	}
	if (!best)
		return -ENOENT;
	*size = found.size;
	return offset_of(&elf, found.value, offset);
}

/* ---- text ---- */

/* A number to its end: decimal, or hexadecimal behind 0x. */
static bool number(const char *text, size_t length, uint64_t *value)
{
	bool hexadecimal = length > 2 && text[0] == '0' && text[1] == 'x';
	char digits[32], *end;

	if (!length || length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	digits[length] = 0;
	if (strspn(digits + (hexadecimal ? 2 : 0), hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") !=
	    length - (hexadecimal ? 2 : 0))
		return false;
	errno = 0;
	*value = strtoull(digits, &end, hexadecimal ? 16 : 10);
	return !errno;
}

int perfring_uprobe_place(const char *text, size_t path, size_t place, size_t end, uint64_t *offset,
			  struct perfring_fault *fault)
{
	size_t length = place - 1 - path, plus = place;
	uint64_t more = 0, size = 0;
	char file[PATH_MAX];
	int fd, error;

	if (!length || length >= sizeof(file))
		return perfring_event_fault(fault, path, "no path, or one that is too long", -EINVAL);
	memcpy(file, text + path, length);
	file[length] = 0;
	fd = perfring_os_object_open(0, file);
	if (fd < 0) {
		error = fd;
		return perfring_event_fault(fault, path,
					    error == -ENOENT   ? "no such file"
					    : error == -EACCES ? "this file may not be read"
					    : error == -EINVAL ? "not an ELF file of this machine, or a damaged one"
							       : "this file cannot be opened",
					    error);
	}
	while (plus < end && text[plus] != '+')
		plus++;
	if (plus == place) {
		error = perfring_event_fault(fault, place, "no symbol", -EINVAL);
	} else if (text[place] >= '0' && text[place] <= '9') {
		error = text[place + 1] == 'x' && number(text + place, end - place, offset)
				? 0
				: perfring_event_fault(fault, place, "a symbol, or 0xOFFSET in the file, is expected",
						       -EINVAL);
	} else if (plus < end && !number(text + plus + 1, end - plus - 1, &more)) {
		error = perfring_event_fault(fault, plus + 1, "a number of bytes is expected after the +", -EINVAL);
	} else {
		error = perfring_uprobe_symbol(fd, text + place, plus - place, offset, &size);
		if (error == -ENOENT)
			perfring_event_fault(fault, place, "the file has no function with this name", error);
		else if (error == -EBADMSG)
			error = perfring_event_fault(fault, path, "not an ELF file of this machine, or a damaged one",
						     -EINVAL);
		else if (error)
			perfring_event_fault(fault, path, "this file cannot be read", error);
		else if (more && more >= size)
			error = perfring_event_fault(fault, plus + 1, "the offset is past the symbol's end", -EINVAL);
		else
			*offset += more;
	}
	close(fd);
	return error;
}
