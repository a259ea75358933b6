/* hostile.h - files and objects whose names are every byte, or whose sizes lie; and the tool, run on them and measured. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/sample.h>
#include "test.h"

/* ---- names ---- */

/* What a terminal obeys: a title, a colour, the same begun by C1 as UTF-8 has it and as a byte, BEL, BS, DEL; then every
 * byte but NUL and '/', so that it is a file's name too. */
static inline const char *hostile_name(void)
{
	static char name[255];
	size_t at = 0;

	if (!*name) {
		for (unsigned byte = 1; byte < 256; byte++)
			if (byte != '/')
				name[at++] = (char)byte;
		/* in place of letters, which need no test */
		memcpy(&name['a'],
		       "\033]0;T\a\xc2\x9b"
		       "31m\b\x7f\x9b",
		       14);
	}
	return name;
}

/* ---- bytes in memory ---- */

struct hostile_bytes {
	unsigned char *bytes;
	size_t size;
	size_t buffer;
};

static inline void *hostile_put(struct hostile_bytes *to, const void *from, size_t size)
{
	void *at;

	if (to->size + size > to->buffer) {
		to->buffer = 2 * (to->size + size);
		to->bytes = realloc(to->bytes, to->buffer);
		if (!to->bytes)
			abort();
	}
	at = to->bytes + to->size;
	if (from)
		memcpy(at, from, size);
	else
		memset(at, 0, size);
	to->size += size;
	return at;
}

static inline void hostile_put_number(struct hostile_bytes *to, uint64_t number, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? size - 1 - i : i] = (unsigned char)(number >> 8 * i);
	hostile_put(to, bytes, size);
}

static inline void hostile_write(const char *path, const struct hostile_bytes *from)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	size_t done = 0;

	if (fd < 0)
		abort();
	while (done < from->size) {
		ssize_t one = write(fd, from->bytes + done, from->size - done);

		if (one <= 0)
			abort();
		done += (size_t)one;
	}
	close(fd);
}

/* ---- payloads of features, filled as feature.def lays them out ---- */

struct hostile_feature {
	const char *name;
	uint32_t feature;
	const char *layout;
};

static const struct hostile_feature hostile_features[] = {
#define PERFRING_FEATURE(NAME, bit, layout) {#NAME, bit, layout},
#include <perfring/feature.def>
};

enum {
	HOSTILE_TIMES = 3, /* each list */
	HOSTILE_CPUS = 2,
	HOSTILE_COUNT = sizeof(hostile_features) / sizeof(hostile_features[0])
};

/* What a number kept in `letter` must be: bytes, or how often a list goes. */
static inline uint64_t hostile_kept(const char *rest, char letter, const char *text)
{
	for (; *rest; rest++) {
		if ((rest[0] == 'b' || rest[0] == 'a') && rest[1] == letter)
			return rest[0] == 'a' ? sizeof(struct perf_event_attr) : strlen(text) + 1;
		if (rest[0] == '{' && rest[1] == letter)
			return HOSTILE_TIMES;
	}
	return HOSTILE_TIMES;
}

static inline const char *hostile_fill(struct hostile_bytes *to, const char *part, const char *text);

/* From behind the brace on, so many times.  Returns what stands behind its end. */
static inline const char *hostile_fill_list(struct hostile_bytes *to, const char *part, const char *text)
{
	char times = *part;
	const char *end;

	part += 2;
	end = part;
	for (unsigned i = 0; i < (times == 'C' ? HOSTILE_CPUS : HOSTILE_TIMES); i++)
		end = hostile_fill(to, part, text);
	return end;
}

/* One walk over the layout, up to its end or a closing brace. */
static inline const char *hostile_fill(struct hostile_bytes *to, const char *part, const char *text)
{
	uint64_t size = strlen(text) + 1;

	while (*part && *part != '}') {
		char kind = *part++;
		char letter = 0;
		uint64_t number = 1;

		switch (kind) {
		case '{':
			part = hostile_fill_list(to, part, text);
			part += *part == '}';
			part += *part == ' ';
			continue;
		case 'y':
		case 'o':
		case 'h':
		case 'w':
		case 'd':
			if (*part == '=') {
				uint64_t other = 0;
				char sign;

				letter = part[1];
				part += 2;
				number = hostile_kept(strchr(part, ' '), letter, text);
				sign = *part == '-' || *part == '/' ? *part++ : 0;
				while (*part >= '0' && *part <= '9')
					other = other * 10 + (uint64_t)(*part++ - '0');
				number = sign == '-' ? number + other : sign == '/' ? number * other : number;
			} else if (!strncmp(part, ":length", 7)) {
				number = 20;
			} else if (kind == 'o') {
				number = 0;
			}
			hostile_put_number(to, number, kind == 'd' ? 8 : kind == 'w' ? 4 : kind == 'h' ? 2 : 1);
			break;
		case 's':
			/* perf pads them, and counts on it */
			hostile_put_number(to, (size + 63) / 64 * 64, 4);
			hostile_put(to, text, size);
			hostile_put(to, NULL, (64 - size % 64) % 64);
			break;
		case 'z':
			hostile_put(to, text, size);
			break;
		case 'a': {
			struct perf_event_attr attr = {.size = sizeof(attr)};

			hostile_put(to, &attr, sizeof(attr));
			break;
		}
		case 'b':
			if (*part >= '0' && *part <= '9')
				hostile_put(to, NULL, (size_t)strtoul(part, NULL, 10));
			else
				hostile_put(to, text, size);
			break;
		case 'r':
			hostile_put(to, text, size);
			break;
		}
		part += strcspn(part, " }");
		part += *part == ' ';
	}
	return part;
}

/* ---- ELF objects ---- */

struct hostile_symbol {
	uint32_t name; /* its place among the strings */
	uint64_t value;
	uint64_t size;
};

/* One section.  Those of an object are numbered from 2 on, in their order. */
struct hostile_section {
	const char *name;
	uint32_t type;
	const void *bytes;
	size_t size;
	uint32_t link;
	uint64_t offset_told, size_told; /* what its header says instead, unless they are 0 */
	uint64_t address;
};

enum {
	HOSTILE_SECTIONS = 16,
	HOSTILE_TEXT = 1, /* the section of the code */
};

/* A shared object of one segment, whose code is all of the first 64 KiB, and of those sections. */
static inline void hostile_write_object(const char *path, const struct hostile_section *sections, size_t count)
{
	struct hostile_bytes image = {0}, names = {0};
	Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 1 << 16, .p_memsz = 1 << 16, .p_align = 4096};
	Elf64_Shdr headers[HOSTILE_SECTIONS] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = 4096,
		 .sh_offset = 4096,
		 .sh_size = (1 << 16) - 4096,
		 .sh_addralign = 16},
	};
	Elf64_Ehdr *header;

	hostile_put(&names, "\0.text", 7);
	hostile_put(&image, NULL, sizeof(*header));
	hostile_put(&image, &load, sizeof(load));
	hostile_put(&image, NULL, (1 << 16) - image.size);
	for (size_t i = 0; i <= count && i < HOSTILE_SECTIONS - 2; i++) {
		struct hostile_section own = {".shstrtab", SHT_STRTAB, NULL, 0, 0, 0, 0, 0};
		const struct hostile_section *from = i < count ? &sections[i] : &own;
		Elf64_Shdr *to = &headers[2 + i];

		to->sh_name = (uint32_t)names.size;
		hostile_put(&names, from->name, strlen(from->name) + 1);
		hostile_put(&image, NULL, (8 - image.size % 8) % 8);
		to->sh_type = from->type;
		to->sh_addr = from->address;
		to->sh_flags = from->address ? SHF_ALLOC : 0;
		to->sh_link = from->link;
		to->sh_info = from->type == SHT_SYMTAB || from->type == SHT_DYNSYM;
		to->sh_addralign = 4;
		to->sh_entsize = from->type == SHT_SYMTAB || from->type == SHT_DYNSYM ? sizeof(Elf64_Sym) : 0;
		to->sh_offset = from->offset_told ? from->offset_told : image.size;
		to->sh_size = from->size_told ? from->size_told : i < count ? from->size : names.size;
		hostile_put(&image, i < count ? from->bytes : names.bytes, i < count ? from->size : names.size);
	}
	hostile_put(&image, NULL, (8 - image.size % 8) % 8);
	header = (Elf64_Ehdr *)(void *)image.bytes;
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_version = EV_CURRENT;
	header->e_phoff = sizeof(*header);
	header->e_shoff = image.size;
	header->e_ehsize = sizeof(*header);
	header->e_phentsize = sizeof(load);
	header->e_phnum = 1;
	header->e_shentsize = sizeof(headers[0]);
	header->e_shnum = (uint16_t)(3 + count);
	header->e_shstrndx = (uint16_t)(2 + count);
	hostile_put(&image, headers, header->e_shnum * sizeof(headers[0]));
	hostile_write(path, &image);
	free(image.bytes);
	free(names.bytes);
}

/* The bytes of a table of symbols. */
static inline struct hostile_bytes hostile_table(const struct hostile_symbol *symbols, size_t count)
{
	struct hostile_bytes table = {0};

	hostile_put(&table, NULL, sizeof(Elf64_Sym));
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol = {.st_name = symbols[i].name,
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				    .st_shndx = HOSTILE_TEXT,
				    .st_value = symbols[i].value,
				    .st_size = symbols[i].size};

		hostile_put(&table, &symbol, sizeof(symbol));
	}
	return table;
}

/* An object of these symbols and nothing else. */
static inline void hostile_write_elf(const char *path, const void *strings, size_t strings_size,
				     const struct hostile_symbol *symbols, size_t count)
{
	struct hostile_bytes table = hostile_table(symbols, count);

	hostile_write_object(path,
			     (struct hostile_section[]){
				     {".symtab", SHT_SYMTAB, table.bytes, table.size, 3, 0, 0, 0},
				     {".strtab", SHT_STRTAB, strings, strings_size, 0, 0, 0, 0},
			     },
			     2);
	free(table.bytes);
}

/* ---- a recording of code in objects ---- */

#define HOSTILE_FIELDS (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME)

/* Each object is mapped 64 KiB after the one before, under its name, and has one sample at `at`.  id: 20 bytes, the
 * build id of all of them, or NULL; is_in_records: in the records of the mappings, else in the feature. */
static inline void hostile_write_recording(const char *path, char *const names[], size_t count, uint64_t at,
					   const void *id, bool is_in_records)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERFRING_TYPE_SOFTWARE,
				       .sample_period = 1,
				       .sample_type = HOSTILE_FIELDS};
	struct perfring_sample sample = {.pid = 100, .tid = 100, .misc = PERFRING_RECORD_MISC_USER};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct perfring_file_writer *writer;
	struct perfring_record record;
	struct perfring_format format;
	unsigned char buffer[512];
	struct iovec piece = {.iov_base = buffer};

	if (perfring_format_from_attr(&format, &attr) || perfring_file_writer_open(&writer, fd) ||
	    perfring_file_writer_add_event(writer, &attr, "clock") || perfring_file_writer_add_id(writer, 0, 7) ||
	    perfring_file_writer_begin(writer))
		abort();
	for (size_t i = 0; i < count; i++) {
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_MMAP2;
		record.misc = PERFRING_RECORD_MISC_USER;
		record.is.mmap2.pid = record.is.mmap2.tid = 100;
		record.is.mmap2.addr = UINT64_C(0x7f0000000000) + (i << 16);
		record.is.mmap2.len = 0x10000;
		record.is.mmap2.prot = 5;
		if (id && is_in_records) {
			record.misc |= PERFRING_RECORD_MISC_MMAP_BUILD_ID;
			record.is.mmap2.file.has_build_id = true;
			record.is.mmap2.file.build_id_size = 20;
			memcpy(record.is.mmap2.file.build_id, id, 20);
		}
		record.is.mmap2.filename.data = names[i];
		record.is.mmap2.filename.size = (uint32_t)strlen(names[i]);
		sample.ip = record.is.mmap2.addr + at;
		sample.time = i + 1;
		piece.iov_len = (size_t)perfring_sample_encode(&format, &sample, buffer, sizeof(buffer));
		if (perfring_file_writer_put(writer, 0, &record) || perfring_file_writer_write(writer, &piece, 1) ||
		    (id && !is_in_records &&
		     perfring_file_writer_put_build_id(writer, PERFRING_RECORD_MISC_USER, -1, names[i], id, 20)))
			abort();
	}
	if (perfring_file_writer_finish(writer))
		abort();
	perfring_file_writer_close(writer);
	close(fd);
}

/* ---- the tool ---- */

struct hostile_run {
	int status; /* as the shell tells it: 128 + the signal */
	long rss;   /* KiB at most */
	double cpu; /* seconds, of it and of what it ran */
	unsigned char *out;
	size_t out_size;
	unsigned char *err;
	size_t err_size;
};

static inline unsigned char *hostile_read(int fd, size_t *size)
{
	struct stat file;
	unsigned char *bytes;

	if (fstat(fd, &file))
		abort();
	*size = (size_t)file.st_size;
	bytes = malloc(*size + 1);
	if (!bytes || pread(fd, bytes, *size, 0) != (ssize_t)*size)
		abort();
	bytes[*size] = 0;
	close(fd);
	return bytes;
}

/* Runs `perfring ARGUMENTS`, NULL-terminated, for so many seconds of CPU time at most. */
static inline void hostile_tool(struct hostile_run *run, unsigned seconds, char *const arguments[])
{
	const char *tool = getenv("PERFRING_TOOL");
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status;
	char *words[64] = {(char *)(uintptr_t)tool};
	struct rlimit limit = {seconds, seconds + 1}, bytes = {1 << 28, 1 << 28};
	struct rusage usage;
	pid_t child;

	if (!tool)
		cr_skip_test("SKIP-ENV: PERFRING_TOOL is not set: ctest sets it");
	for (size_t i = 0; i < 62 && arguments[i]; i++)
		words[i + 1] = arguments[i];
	fflush(NULL);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CPU, &limit);
		setrlimit(RLIMIT_FSIZE, &bytes);
		if (dup2(open("/dev/null", O_RDONLY), 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(126);
		execv(tool, words);
		_exit(127);
	}
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			abort();
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	run->rss = usage.ru_maxrss;
	run->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	run->out = hostile_read(out, &run->out_size);
	run->err = hostile_read(err, &run->err_size);
}

static inline void hostile_leave(struct hostile_run *run)
{
	free(run->out);
	free(run->err);
	memset(run, 0, sizeof(*run));
}

#endif
