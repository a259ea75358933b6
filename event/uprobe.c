/* uprobe.c - PATH:SYMBOL+OFFSET to an offset in the file, by its ELF symbol tables, of which no byte is trusted.
 *
 * event_list.c asks for the place of `uprobe:PATH:PLACE`.  Offsets and counts of the ELF file are compared with its size before
 * they are used; the search reads symbol tables once, in pieces, and their names whole.
 */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/object.h"
#include "pmu.h"

enum {
	SECTIONS = 65536,       /* headers of sections that are read */
	PROGRAMS = 4096,        /* headers of segments */
	STRINGS = 64 << 20,     /* bytes of names, and of a symbol table */
	SYMBOLS_AT_ONCE = 1024, /* by one read */
};

/* A file and its ELF header.  The numbers in it are only compared; reads are bounded by the file's size. */
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

static int read_at(const struct elf *elf, uint64_t at, void *buffer, size_t size)
{
	size_t got = 0;

	if (at > elf->size || size > elf->size - at)
		return -EBADMSG;
	while (got < size) {
		ssize_t more = pread(elf->fd, (char *)buffer + got, size - got, (off_t)(at + got));

		if (more < 0 && errno != EINTR)
			return -errno;
		if (!more)
			return -EBADMSG; /* the file was truncated */
		got += more > 0 ? (size_t)more : 0;
	}
	return 0;
}

/* A struct of the file, by its class: of 64 or 32 bits. */
#define FORMS(name, type) \
	union name { \
		Elf64_##type wide; \
		Elf32_##type narrow; \
	}
FORMS(header, Ehdr);
FORMS(program, Phdr);
FORMS(raw_section, Shdr);
FORMS(raw_symbol, Sym);

#define MEMBER(elf, raw, member) ((elf)->wide ? (uint64_t)(raw).wide.member : (uint64_t)(raw).narrow.member)
#define FORM_SIZE(elf, raw) ((elf)->wide ? sizeof((raw).wide) : sizeof((raw).narrow))

static int read_section(const struct elf *elf, uint32_t i, Elf64_Shdr *section)
{
	union raw_section raw;
	int error = read_at(elf, elf->sections_at + (uint64_t)i * elf->section_size, &raw, FORM_SIZE(elf, raw));

	if (error)
		return error;
	*section = (Elf64_Shdr){
		.sh_type = (uint32_t)MEMBER(elf, raw, sh_type),
		.sh_link = (uint32_t)MEMBER(elf, raw, sh_link),
		.sh_offset = MEMBER(elf, raw, sh_offset),
		.sh_size = MEMBER(elf, raw, sh_size),
		.sh_entsize = MEMBER(elf, raw, sh_entsize),
	};
	return 0;
}

static int open_elf(struct elf *elf, int fd)
{
	const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	Elf64_Shdr first;
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
	/* More than 16 bits can count: the first section has the number. */
	if (!elf->sections && elf->sections_at && !read_section(elf, 0, &first))
		elf->sections = first.sh_size > SECTIONS ? SECTIONS : (uint32_t)first.sh_size;
	return 0;
}

/* The offset of an address in the file: in an executable segment that holds it, else in another one. */
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

/* 2: a function of this name that is global or weak, 1: a static one, 0: none. */
static unsigned match(const Elf64_Sym *symbol, const char *strings, uint64_t size, const char *name, size_t length)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
	    (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) || symbol->st_name >= size ||
	    size - symbol->st_name <= length || memcmp(strings + symbol->st_name, name, length) ||
	    strings[symbol->st_name + length])
		return 0;
	return ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? 1 : 2;
}

/* Searches a symbol table; a better one than *best takes its place. */
static int search(const struct elf *elf, const Elf64_Shdr *table, const Elf64_Shdr *names, const char *name,
		  size_t length, unsigned *best, Elf64_Sym *found)
{
	union raw_symbol raw;
	size_t each = FORM_SIZE(elf, raw), piece;
	uint64_t count = table->sh_size / each;
	char *strings, *symbols;
	unsigned fit;
	int error;

	if (table->sh_entsize != each || names->sh_size > STRINGS || table->sh_size > STRINGS ||
	    table->sh_offset > elf->size || table->sh_size > elf->size - table->sh_offset || names->sh_size > elf->size)
		return -EBADMSG;
	strings = malloc((size_t)names->sh_size + 1);
	symbols = malloc(SYMBOLS_AT_ONCE * each);
	error = strings && symbols ? read_at(elf, names->sh_offset, strings, (size_t)names->sh_size) : -ENOMEM;
	for (uint64_t i = 0; !error && i < count && *best < 2; i += piece) {
		piece = count - i < SYMBOLS_AT_ONCE ? (size_t)(count - i) : SYMBOLS_AT_ONCE;
		error = read_at(elf, table->sh_offset + i * each, symbols, piece * each);
		for (size_t j = 0; !error && j < piece && *best < 2; j++) {
			Elf64_Sym symbol;

			memcpy(&raw, symbols + j * each, each);
			symbol = (Elf64_Sym){
				.st_name = (uint32_t)MEMBER(elf, raw, st_name),
				.st_shndx = (uint16_t)MEMBER(elf, raw, st_shndx),
				.st_info = (uint8_t)MEMBER(elf, raw, st_info),
				.st_value = MEMBER(elf, raw, st_value),
				.st_size = MEMBER(elf, raw, st_size),
			};
			fit = match(&symbol, strings, names->sh_size, name, length);
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

int perfring__uprobe_symbol(int fd, const char *symbol, size_t length, uint64_t *offset, uint64_t *size)
{
	static const uint32_t TABLES[] = {SHT_SYMTAB, SHT_DYNSYM};
	Elf64_Sym found = {0};
	unsigned best = 0;
	struct elf elf;
	int error = open_elf(&elf, fd);

	if (error)
		return error;
	for (unsigned t = 0; t < 2 && best < 2; t++) {
		bool seen = false; /* a file has one table of each type */

		for (uint32_t i = 0; i < elf.sections && !seen; i++) {
			Elf64_Shdr table, names;

			error = read_section(&elf, i, &table);
			if (error)
				return error;
			if (table.sh_type != TABLES[t] || !table.sh_size)
				continue;
			seen = true;
			if (table.sh_link >= elf.sections)
				return -EBADMSG;
			error = read_section(&elf, table.sh_link, &names);
			if (!error)
				error = search(&elf, &table, &names, symbol, length, &best, &found);
			if (error)
				return error;
		}
	}
	if (!best)
		return -ENOENT;
	*size = found.st_size;
	return offset_of(&elf, found.st_value, offset);
}

/* ---- text ---- */

int perfring__uprobe_place(const char *text, size_t path, size_t place, size_t end, uint64_t *offset,
			   struct perfring_fault *fault)
{
	size_t length = place - 1 - path, plus = place;
	uint64_t more = 0, size = 0;
	char file[PATH_MAX];
	int fd, error;

	if (!length || length >= sizeof(file))
		return perfring__event_invalid(fault, path, "no path, or one that is too long");
	memcpy(file, text + path, length);
	file[length] = 0;
	fd = perfring__os_object_open(0, file);
	if (fd < 0)
		return perfring__event_fault(fault, path,
					     fd == -ENOENT   ? "no such file"
					     : fd == -EACCES ? "this file may not be read"
					     : fd == -EINVAL ? "not an ELF file of this machine, or a damaged one"
							     : "this file cannot be opened",
					     fd);
	while (plus < end && text[plus] != '+')
		plus++;
	if (plus == place) {
		error = perfring__event_invalid(fault, place, "no symbol");
	} else if (text[place] >= '0' && text[place] <= '9') {
		error = 0;
		if (text[place + 1] != 'x' || !perfring__event_number(text + place, end - place, offset))
			error = perfring__event_invalid(fault, place, "a symbol, or 0xOFFSET in the file, is expected");
	} else if (plus < end && !perfring__event_number(text + plus + 1, end - plus - 1, &more)) {
		error = perfring__event_invalid(fault, plus + 1, "a number of bytes is expected after the +");
	} else {
		error = perfring__uprobe_symbol(fd, text + place, plus - place, offset, &size);
		if (error == -ENOENT)
			perfring__event_fault(fault, place, "the file has no function with this name", error);
		else if (error == -EBADMSG)
			error = perfring__event_invalid(fault, path,
							"not an ELF file of this machine, or a damaged one");
		else if (error)
			perfring__event_fault(fault, path, "this file cannot be read", error);
		else if (more && more >= size)
			error = perfring__event_invalid(fault, plus + 1, "the offset is past the symbol's end");
		else
			*offset += more;
	}
	close(fd);
	return error;
}
