/* cost_test.c - what hostile objects and files cost: time and memory have bounds that their authors do not choose
 * (docs/limits.md, which names the tests here).
 *
 * Bounds are a tenth of what the same input took without them, or less, and several times what it takes. */
#include <sys/inotify.h>
#include "hostile.h"

TestSuite(cost, .timeout = 240);

static char folder[64];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/cost_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- objects ---- */

/* 4096 segments of notes, each all of the same MiB of notes that say nothing: 4 GiB to look through. */
static void write_notes(const char *path)
{
	struct hostile_bytes image = {0};
	Elf64_Ehdr header = {
		.e_type = ET_DYN, .e_phoff = sizeof(header), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 4096};
	Elf64_Phdr note = {.p_type = PT_NOTE, .p_filesz = 1 << 20, .p_align = 4};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	hostile_put(&image, &header, sizeof(header));
	note.p_offset = sizeof(header) + 4096 * sizeof(note);
	for (unsigned i = 0; i < 4096; i++)
		hostile_put(&image, &note, sizeof(note));
	hostile_put(&image, NULL, 1 << 20);
	hostile_write(path, &image);
	free(image.bytes);
}

/* Took 12 s. */
Test(cost, notes)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	char path[96];
	double before;

	make_folder();
	snprintf(path, sizeof(path), "%s/notes", folder);
	write_notes(path);
	before = cpu_seconds();
	cr_assert_eq(perfring_build_id_of(path, id), -ENODATA);
	cr_assert_lt(cpu_seconds() - before, 0.5, "%.3f s", cpu_seconds() - before);
	remove_folder();
}

/* 30 000 build ids of one file: at each of them all were copied, 45 GB. */
Test(cost, build_ids)
{
	enum {
		COUNT = 30000,
		LENGTH = 8 + 4 + 24 + 64
	};
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	int fd = memfd_create("build ids", MFD_CLOEXEC);
	struct perfring_file_writer *writer;
	const uint8_t id[20] = {1};
	struct perfring_file *data;
	double before;
	char name[32];
	uint64_t size;

	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "made"), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	/* what is put whole takes the place of those before */
	cr_assert_eq(perfring_file_writer_put_build_id(writer, PERFRING_RECORD_MISC_USER, -1, "/first", id, 20), 0);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_BUILD_ID, "", 0), 0);
	before = cpu_seconds();
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "/%u", i);
		cr_assert_eq(perfring_file_writer_put_build_id(writer, PERFRING_RECORD_MISC_USER, -1, name, id, 20), 0);
	}
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	cr_assert_lt(cpu_seconds() - before, 1, "%.3f s", cpu_seconds() - before);
	perfring_file_writer_close(writer);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	cr_assert_eq(perfring_file_open(&data, name), 0);
	cr_assert_not_null(perfring_file_feature(data, PERFRING_FEATURE_BUILD_ID, &size));
	cr_assert_eq(size, COUNT * (uint64_t)LENGTH, "%llu", (unsigned long long)size);
	perfring_file_close(data);
	close(fd);
}

/* ---- symbols: what `report` reads of objects ---- */

enum {
	MOST_RSS = 128 << 10, /* KiB: a tool that does nothing has 5 MiB */
	SANITIZED = 6,        /* times as much */
};

static long most_rss(long most)
{
	const char *sanitize = getenv("PERFRING_SANITIZE");

	return sanitize && *sanitize ? SANITIZED * most : most;
}

/* Reports on `count` names of objects, with a sample at 0x2010 in each; the caller leaves the run. */
static void report(struct hostile_run *run, char *const names[], size_t count)
{
	char data[96];

	snprintf(data, sizeof(data), "%s/data", folder);
	hostile_write_recording(data, names, count, 0x2010, NULL, false);
	hostile_tool(run, 60, (char *[]){"report", data, NULL});
	cr_assert_eq(run->status, 0, "status %d: %s", run->status, (char *)run->err);
}

static bool says(const struct hostile_run *run, const char *text)
{
	return strstr((const char *)run->out, text);
}

/* One sentence, and nothing else. */
static bool complains(const struct hostile_run *run, const char *text)
{
	const char *line = strchr((const char *)run->err, '\n');

	return strstr((const char *)run->err, text) && line && !line[1];
}

/* 8000 symbols that share one string of 800 KB; it took 6.3 GB.  What is sound beside them is named. */
Test(cost, names)
{
	enum {
		COUNT = 8000,
		LENGTH = 800000
	};
	struct hostile_symbol *symbols = calloc(COUNT, sizeof(*symbols));
	char *strings = malloc(LENGTH), path[96];
	struct hostile_run run;

	make_folder();
	snprintf(path, sizeof(path), "%s/names", folder);
	memset(strings, 'a', LENGTH);
	memcpy(strings, "\0sound", 7);
	strings[LENGTH - 1] = 0;
	for (uint32_t i = 0; i < COUNT; i++)
		symbols[i] = (struct hostile_symbol){7 + i, 0x4000 + i, 1};
	symbols[0] = (struct hostile_symbol){1, 0x2000, 0x100};
	hostile_write_elf(path, strings, LENGTH, symbols, COUNT);
	report(&run, (char *[]){path}, 1);
	cr_assert_lt(run.rss, most_rss(MOST_RSS), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 5, "%.3f s", run.cpu);
	cr_assert(says(&run, "sound"), "%s", (char *)run.out);
	cr_assert(complains(&run, "/names: more than 16 KiB in one name: "), "%s", (char *)run.err);
	hostile_leave(&run);
	free(strings);
	free(symbols);
	remove_folder();
}

/* 1000 names of one object of 2 MB: it is read once; it took memory and time for each. */
Test(cost, spellings)
{
	enum {
		COUNT = 40000,
		NAMES = 1000
	};
	struct hostile_symbol *symbols = calloc(COUNT, sizeof(*symbols));
	char *strings = calloc(COUNT, 16), *names[NAMES];
	size_t used = 1;
	struct hostile_run run;

	make_folder();
	for (uint32_t i = 0; i < COUNT; i++) {
		symbols[i] = (struct hostile_symbol){(uint32_t)used, 0x2010 + i, 1};
		used += (size_t)sprintf(strings + used, "symbol_%u", i) + 1;
	}
	for (size_t i = 0; i < NAMES; i++) {
		char dots[2 * NAMES + 3];

		memset(dots, '/', sizeof(dots));
		for (size_t j = 0; j <= i; j++)
			dots[2 * j + 1] = '.';
		dots[2 * i + 2] = 0;
		cr_assert_geq(asprintf(&names[i], "%s%s/object", folder, dots), 0);
	}
	hostile_write_elf(names[0], strings, used, symbols, COUNT);
	report(&run, names, NAMES);
	cr_assert_lt(run.rss, most_rss(MOST_RSS), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 5, "%.3f s", run.cpu);
	cr_assert(says(&run, " 1000  "), "%s", (char *)run.out);
	cr_assert(says(&run, "[.] symbol_0\n"), "%s", (char *)run.out);
	hostile_leave(&run);
	for (size_t i = 0; i < NAMES; i++)
		free(names[i]);
	free(strings);
	free(symbols);
	remove_folder();
}

/* A file of a TiB, nearly all of it a hole, whose tables are all of that. */
Test(cost, sizes_that_lie)
{
	static const uint64_t sizes[] = {24 << 5,           24 << 15,  24 << 24, UINT64_C(24) << 35,
					 UINT64_MAX - 4096, UINT64_MAX};
	static const struct hostile_symbol symbol = {1, 0x2000, 0x100};
	struct hostile_bytes table = hostile_table(&symbol, 1);
	struct hostile_section sections[] = {
		{".symtab", SHT_SYMTAB, table.bytes, table.size, 3, 0, 0, 0},
		{".strtab", SHT_STRTAB, "\0sound", 7, 0, 0, 0, 0},
	};
	struct hostile_run run;
	char path[96];

	make_folder();
	snprintf(path, sizeof(path), "%s/lies", folder);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		sections[0].size_told = i % 2 ? table.size : sizes[i / 2];
		sections[1].size_told = i % 2 ? sizes[i / 2] : 7;
		hostile_write_object(path, sections, 2);
		cr_assert_eq(truncate(path, INT64_C(1) << 40), 0);
		report(&run, (char *[]){path}, 1);
		/* of a table, what is in it; of strings, as many as are read */
		cr_assert_lt(run.rss, most_rss(600 << 10), "%zu: %ld KiB", i, run.rss);
		cr_assert_lt(run.cpu, 15, "%zu: %.3f s", i, run.cpu);
		if (sizes[i / 2] <= 24 << 24)
			cr_assert(says(&run, "sound"), "%zu: %s", i, (char *)run.out);
		else if (sizes[i / 2] <= UINT64_C(24) << 35)
			cr_assert(complains(&run, "/lies: more than 512 MiB to read from one object: "), "%zu: %s", i,
				  (char *)run.err);
		else
			cr_assert(says(&run, "the object cannot be read"), "%zu: %s", i, (char *)run.out);
		hostile_leave(&run);
	}
	free(table.bytes);
	remove_folder();
}

/* Headers that count as many sections as 32 bits can; segments without a section. */
Test(cost, sections)
{
	static const uint32_t counts[] = {0, 1, 65536, 65537, UINT32_MAX};
	Elf64_Shdr first = {0};
	Elf64_Ehdr header;
	struct hostile_run run;
	char path[96];
	int fd;

	make_folder();
	snprintf(path, sizeof(path), "%s/sections", folder);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		hostile_write_object(path, NULL, 0);
		fd = open(path, O_RDWR);
		cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
		header.e_shnum = 0;
		header.e_shstrndx = SHN_XINDEX;
		first.sh_size = counts[i];
		first.sh_link = counts[i] - 1;
		cr_assert_eq(pwrite(fd, &first, sizeof(first), (off_t)header.e_shoff), sizeof(first));
		cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
		cr_assert_eq(ftruncate(fd, INT64_C(1) << 40), 0);
		close(fd);
		report(&run, (char *[]){path}, 1);
		cr_assert_lt(run.rss, most_rss(MOST_RSS), "%u: %ld KiB", counts[i], run.rss);
		cr_assert_lt(run.cpu, 5, "%u: %.3f s", counts[i], run.cpu);
		cr_assert_eq(complains(&run, "/sections: more than 65536 sections: "), counts[i] > 65536, "%u: %s",
			     counts[i], (char *)run.err);
		hostile_leave(&run);
	}
	remove_folder();
}

/* Files that are holes, without a build id, which are said to have 500 MiB of names of sections: which builds they
 * are was read for each of them, beside the bounds; it took 42 s. */
Test(cost, many_files)
{
	enum {
		COUNT = 12
	};
	char *names[COUNT];
	struct hostile_run run;
	Elf64_Ehdr header;
	Elf64_Shdr own;

	make_folder();
	for (size_t i = 0; i < COUNT; i++) {
		int fd;
		off_t at;

		cr_assert_geq(asprintf(&names[i], "%s/file%zu", folder, i), 0);
		hostile_write_object(names[i], NULL, 0);
		fd = open(names[i], O_RDWR);
		cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
		at = (off_t)(header.e_shoff + header.e_shstrndx * sizeof(own));
		cr_assert_eq(pread(fd, &own, sizeof(own), at), sizeof(own));
		own.sh_size = 500 << 20;
		cr_assert_eq(pwrite(fd, &own, sizeof(own), at), sizeof(own));
		cr_assert_eq(ftruncate(fd, 600 << 20), 0);
		close(fd);
	}
	report(&run, names, COUNT);
	cr_assert_lt(run.rss, most_rss(MOST_RSS), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 5, "%.3f s", run.cpu);
	cr_assert(complains(&run, "/file0: more than 16 MiB of names of sections: "), "%s", (char *)run.err);
	hostile_leave(&run);
	for (size_t i = 0; i < COUNT; i++)
		free(names[i]);
	remove_folder();
}

/* One more than are opened: the last one is not. */
Test(cost, files)
{
	enum {
		COUNT = 10001
	};
	Elf64_Ehdr header = {.e_ident = ELFMAG, .e_type = ET_DYN};
	const struct hostile_bytes image = {(unsigned char *)&header, sizeof(header), sizeof(header)};
	char **names = calloc(COUNT, sizeof(*names)), told[4096];
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct hostile_run run;

	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	make_folder();
	for (size_t i = 0; i < COUNT; i++) {
		cr_assert_geq(asprintf(&names[i], "%s/%zu", folder, i), 0);
		hostile_write(names[i], &image);
	}
	cr_assert_geq(inotify_add_watch(watch, names[COUNT - 1], IN_OPEN), 0);
	report(&run, names, COUNT);
	cr_assert(says(&run, " 10000  the object has no symbol there\n"));
	cr_assert(says(&run, " 1  the object exceeds the limits of what is read"));
	cr_assert(complains(&run, "/10000: more than 10000 objects: "), "%s", (char *)run.err);
	cr_assert_eq(read(watch, told, sizeof(told)), -1, "the last one was opened");
	hostile_leave(&run);
	for (size_t i = 0; i < COUNT; i++)
		free(names[i]);
	free(names);
	close(watch);
	remove_folder();
}

/* 400 MB of zeros in 60 KB: inflated as far as the bound says; 1.5 GB in a report of one object before. */
Test(cost, debugdata)
{
	char path[96], command[256];
	struct hostile_section section = {".gnu_debugdata", SHT_PROGBITS, NULL, 0, 0, 0, 0, 0};
	struct hostile_run run;
	size_t size;
	unsigned char *packed;

	make_folder();
	snprintf(path, sizeof(path), "%s/packed", folder);
	snprintf(command, sizeof(command), "head -c 400000000 /dev/zero | xz -0 >%s", path);
	if (system("command -v xz >/dev/null") || system(command))
		cr_skip_test("SKIP-ENV: xz: not installed");
	packed = hostile_read(open(path, O_RDONLY), &size);
	section.bytes = packed;
	section.size = size;
	hostile_write_object(path, &section, 1);
	report(&run, (char *[]){path}, 1);
	cr_assert_lt(run.rss, most_rss(200 << 10), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 10, "%.3f s", run.cpu);
	cr_assert(!*run.err || complains(&run, "/packed: more than 64 MiB in .gnu_debugdata: "), "%s", (char *)run.err);
	hostile_leave(&run);
	free(packed);
	remove_folder();
}

/* Headers that count as many segments as 16 bits can. */
Test(cost, segments)
{
	static const uint16_t counts[] = {4096, 4097, 65534};
	Elf64_Ehdr header;
	struct hostile_run run;
	char path[96];
	int fd;

	make_folder();
	snprintf(path, sizeof(path), "%s/segments", folder);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		hostile_write_object(path, NULL, 0);
		fd = open(path, O_RDWR);
		cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
		header.e_phnum = counts[i];
		cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
		cr_assert_eq(ftruncate(fd, INT64_C(1) << 40), 0);
		close(fd);
		report(&run, (char *[]){path}, 1);
		cr_assert_lt(run.rss, most_rss(MOST_RSS), "%u: %ld KiB", counts[i], run.rss);
		cr_assert_lt(run.cpu, 5, "%u: %.3f s", counts[i], run.cpu);
		cr_assert_eq(complains(&run, "/segments: more than 4096 segments: "), counts[i] > 4096, "%u: %s",
			     counts[i], (char *)run.err);
		hostile_leave(&run);
	}
	remove_folder();
}

/* ---- tracepoints: what `dump` parses of formats and prints by them ---- */

enum {
	LARGE = 60004, /* bytes of a payload, nearly as large as a record can be */
	SMALL = 44,
};

/* That of tracepoint `id`, with this between the common field and the text, and this to print. */
static char *make_format(unsigned id, const char *fields, const char *print)
{
	char *text;

	cr_assert_geq(asprintf(&text,
			       "name: n%u\nID: %u\nformat:\n"
			       "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n%s"
			       "\tfield:char text[%d];\toffset:8;\tsize:%d;\tsigned:0;\n\n"
			       "print fmt: %s\n",
			       id, id, fields, LARGE - 8, LARGE - 8, print),
		      0);
	return text;
}

/* `count` times `piece`, then the end. */
static char *repeat(const char *begin, size_t count, const char *piece, const char *end)
{
	char *text = malloc(strlen(begin) + count * strlen(piece) + strlen(end) + 1), *at = text;

	at = stpcpy(at, begin);
	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, piece);
	strcpy(at, end);
	return text;
}

/* One string that prints the text so many times. */
static char *print_often(size_t count)
{
	char *first = repeat("\"", count, "%s", "\""), *whole = repeat(first, count, ", REC->text", "");

	free(first);
	return whole;
}

/* A recording of tracepoints 1 to `count`, with these formats, which it frees, and a sample of each, of `size` bytes. */
static void write_tracepoints(const char *path, char **formats, size_t count, uint32_t size)
{
	static unsigned char payload[LARGE], buffer[1 << 16];
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_TRACEPOINT, .sample_period = 1};
	struct perfring_sample sample = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct perfring_file_writer *writer;
	struct iovec piece = {.iov_base = buffer};
	struct perfring_format format;
	struct hostile_bytes to = {0};
	char name[32];

	memset(payload, 'x', sizeof(payload));
	memcpy(payload + 8, "sound", 5);
	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW;
	attr.sample_id_all = 1;
	hostile_put(&to, "\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0", 20);
	hostile_put(&to, "header_page", 12);
	hostile_put_number(&to, 0, 8);
	hostile_put(&to, "header_event", 13);
	hostile_put_number(&to, 0, 8);
	hostile_put_number(&to, 0, 4);
	hostile_put_number(&to, 1, 4);
	hostile_put(&to, "made", 5);
	hostile_put_number(&to, count, 4);
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	for (size_t i = 0; i < count; i++) {
		attr.config = i + 1;
		snprintf(name, sizeof(name), "made:n%zu", i + 1);
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, name), (int)i);
		cr_assert_eq(perfring_file_writer_add_id(writer, (uint32_t)i, 1000 + i), 0);
		hostile_put_number(&to, strlen(formats[i]), 8);
		hostile_put(&to, formats[i], strlen(formats[i]));
		free(formats[i]);
	}
	hostile_put_number(&to, 0, 4);
	hostile_put_number(&to, 0, 4);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, to.bytes, to.size), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	for (size_t i = 0; i < count; i++) {
		sample.identifier = 1000 + i;
		sample.time = i + 1;
		memcpy(payload, &(const uint16_t){(uint16_t)(i + 1)}, sizeof(uint16_t));
		sample.raw = perfring_raw_of(payload, size);
		piece.iov_len = (size_t)perfring_sample_encode(&format, &sample, buffer, sizeof(buffer));
		cr_assert_leq(piece.iov_len, sizeof(buffer));
		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
	}
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	free(to.bytes);
	close(fd);
}

static void dump_trace(struct hostile_run *run, const char *path)
{
	hostile_tool(run, 60, (char *[]){"dump", "-F", "event,trace", (char *)(uintptr_t)path, NULL});
	if (run->status && strstr((const char *)run->err, "libtraceevent"))
		cr_skip_test("SKIP-ENV: libtraceevent: not built in: needs libtraceevent-dev");
	cr_assert_eq(run->status, 0, "status %d: %s", run->status, (char *)run->err);
}

/* 2000 of them, 8 MB in all: each event went through all of them; it took 39 s. */
Test(cost, formats)
{
	enum {
		COUNT = 2000
	};
	char *print = repeat("\"", 3700, "a", " is %s\", REC->text"), path[96];
	char **formats = calloc(COUNT, sizeof(*formats));
	struct hostile_run run;

	make_folder();
	snprintf(path, sizeof(path), "%s/formats", folder);
	for (unsigned i = 0; i < COUNT; i++)
		formats[i] = make_format(i + 1, "", print);
	write_tracepoints(path, formats, COUNT, SMALL);
	dump_trace(&run, path);
	cr_assert_lt(run.rss, most_rss(MOST_RSS), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 16, "%.3f s", run.cpu);
	/* where a fork takes some milliseconds, 10 s are not enough for all */
	if (!*run.err)
		cr_assert(strstr((char *)run.out, "made:n2000 ") && says(&run, "a is soundxxx"), "%zu bytes",
			  run.out_size);
	else
		cr_assert(complains(&run, ": more than 10 s of processor time for formats: "), "%s", (char *)run.err);
	hostile_leave(&run);
	free(print);
	free(formats);
	remove_folder();
}

/* One beyond each bound costs no more than a sound one, keeps its bytes, and is told in one sentence; the sound one
 * beside it is shown.  15000 times 60 KB were printed of one sample. */
Test(cost, formats_beyond)
{
	static const struct {
		const char *told; /* NULL: within the bound */
		const char *fields, *begin, *piece, *end;
		size_t count;
		uint32_t size;
		bool is_often; /* prints its text so often */
	} rows[] = {
		{"256 KiB in one format", "", "\"", "a", "%s\", REC->text", 256 << 10, SMALL, false},
		{NULL, "", "\"", "a", "%s\", REC->text", 255 << 10, SMALL, false},
		{"512 '%' in one format", "", NULL, NULL, NULL, 513, SMALL, true},
		{"512 '%' in one format", "", NULL, NULL, NULL, 15000, LARGE, true},
		{NULL, "", NULL, NULL, NULL, 512, SMALL, true},
		{"256 nested brackets in one format", "", "\"%d\", ", "(", "1", 257, SMALL, false},
		{"4 MiB to print of one sample", "", NULL, NULL, NULL, 70, LARGE, true},
		{NULL, "", NULL, NULL, NULL, 69, LARGE, true},
		{"4095 fields in one format", "\tfield:u8 a;\toffset:2;\tsize:1;\tsigned:0;\n", "", "",
		 "\"%s\", REC->text", 4095, SMALL, false},
	};
	char path[96], expected[128], *formats[2], *print, *fields;
	struct hostile_run run;

	make_folder();
	snprintf(path, sizeof(path), "%s/formats", folder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print = rows[i].is_often ? print_often(rows[i].count)
					 : repeat(rows[i].begin, rows[i].count, rows[i].piece, rows[i].end);
		fields = repeat("", *rows[i].fields ? rows[i].count : 0, rows[i].fields, "");
		formats[0] = make_format(1, fields, print);
		formats[1] = make_format(2, "", "\"it is %s\", REC->text");
		write_tracepoints(path, formats, 2, rows[i].size);
		dump_trace(&run, path);
		cr_assert_lt(run.rss, most_rss(MOST_RSS), "%zu: %ld KiB", i, run.rss);
		cr_assert_lt(run.cpu, 5, "%zu: %.3f s", i, run.cpu);
		cr_assert(says(&run, "it is soundxxx"), "%zu", i);
		snprintf(expected, sizeof(expected),
			 "tracepoint 'made:n1': more than %s: ", rows[i].told ? rows[i].told : "");
		if (rows[i].told)
			cr_assert(complains(&run, expected) && says(&run, "made:n1 -\n"), "%zu: %s", i,
				  (char *)run.err);
		else
			cr_assert(!*run.err && !says(&run, "made:n1 -\n"), "%zu: %s", i, (char *)run.err);
		hostile_leave(&run);
		free(print);
		free(fields);
	}
	remove_folder();
}

/* Formats of 255 KiB each: 32 of them are parsed, the others are told of once. */
Test(cost, formats_in_all)
{
	char *formats[40], *print = repeat("\"", 255 << 10, "a", "%s\", REC->text"), path[96];
	struct hostile_run run;
	unsigned bare = 0;

	make_folder();
	snprintf(path, sizeof(path), "%s/formats", folder);
	for (unsigned i = 0; i < 40; i++)
		formats[i] = make_format(i + 1, "", print);
	write_tracepoints(path, formats, 40, SMALL);
	dump_trace(&run, path);
	cr_assert_lt(run.rss, most_rss(2 * MOST_RSS), "%ld KiB", run.rss);
	cr_assert_lt(run.cpu, 16, "%.3f s", run.cpu);
	cr_assert(complains(&run, "tracepoint 'made:n33': more than 8 MiB of formats: "), "%s", (char *)run.err);
	for (const char *at = (const char *)run.out; (at = strstr(at, " -\n")); at++)
		bare++;
	cr_assert_eq(bare, 8, "%u", bare);
	hostile_leave(&run);
	free(print);
	remove_folder();
}

/* ---- zstd: what is held to inflate ---- */

enum {
	STREAMS = 20,
	FILLERS = 2400,    /* samples of LARGE bytes in each: more than the largest window */
	LARGEST = 17 << 3, /* windows as a frame's header has them: 128 MiB, */
	TOO_LARGE = 18 << 3,
};

/* A directory with one compressed stream, which says that its window has so many bytes.  False: built without libzstd. */
static bool write_stream(const char *path, unsigned char window)
{
	static unsigned char payload[LARGE], buffer[1 << 16], front[1024];
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	struct perfring_file_writer *writer;
	struct perfring_sample sample = {0};
	struct iovec piece = {.iov_base = buffer};
	struct perfring_format format;
	unsigned char *frame;
	int fds[2], error;
	char name[128];

	attr.sample_type = PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW;
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, i ? "data.0" : "data");
		fds[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	}
	cr_assert_eq(perfring_file_writer_open(&writer, fds[0]), 0);
	cr_assert_eq(perfring_file_writer_add_part(writer, fds[1]), 1);
	error = perfring_file_writer_compress(writer, 1);
	if (!error) {
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "made"), 0);
		cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		sample.raw = perfring_raw_of(payload, sizeof(payload));
		for (unsigned i = 0; i < FILLERS; i++) {
			sample.time = i + 1;
			piece.iov_len = (size_t)perfring_sample_encode(&format, &sample, buffer, sizeof(buffer));
			cr_assert_leq(piece.iov_len, sizeof(buffer));
			cr_assert_eq(perfring_file_writer_write_to(writer, 1, &piece, 1), 0);
		}
		cr_assert_eq(perfring_file_writer_finish(writer), 0);
		cr_assert_eq(pread(fds[1], front, sizeof(front), 0), sizeof(front));
		frame = memmem(front, sizeof(front), "\x28\xb5\x2f\xfd", 5);
		cr_assert_not_null(frame, "a frame that does not tell its size");
		frame[5] = window;
		cr_assert_eq(pwrite(fds[1], front, sizeof(front), 0), sizeof(front));
	}
	perfring_file_writer_close(writer);
	close(fds[0]);
	close(fds[1]);
	return error != -EOPNOTSUPP;
}

/* Of each stream's samples, those of the streams that have a window are shown: four have.  It took 2.7 GB. */
Test(cost, windows)
{
	static const struct {
		unsigned char window;
		unsigned streams, read;
		const char *told;
	} rows[] = {
		{LARGEST, 1, 1, NULL},
		{LARGEST, 4, 4, NULL},
		{LARGEST, STREAMS, 4, "more than 512 MiB of zstd windows in one file or directory"},
		{TOO_LARGE, 1, 0, "a zstd window of more than 128 MiB"},
	};
	char path[96], first[128], name[128], command[192];
	struct hostile_run run;

	make_folder();
	snprintf(path, sizeof(path), "%s/streams", folder);
	snprintf(first, sizeof(first), "%s/data.0", path);
	snprintf(command, sizeof(command), "rm -rf %s", path);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned samples = 0;

		if (!write_stream(path, rows[i].window)) {
			remove_folder();
			cr_skip_test("SKIP-ENV: libzstd: not built in: needs libzstd-dev");
		}
		for (unsigned j = 1; j < rows[i].streams; j++) {
			snprintf(name, sizeof(name), "%s/data.%u", path, j);
			cr_assert_eq(link(first, name), 0);
		}
		hostile_tool(&run, 100, (char *[]){"dump", "-F", "event", path, NULL});
		cr_assert_lt(run.rss, most_rss(800 << 10), "%zu: %ld KiB", i, run.rss);
		cr_assert_eq(run.status, rows[i].told ? 1 : 0, "%zu: status %d: %s", i, run.status, (char *)run.err);
		cr_assert(rows[i].told ? strstr((char *)run.err, rows[i].told) != NULL : !*run.err, "%zu: %s", i,
			  (char *)run.err);
		for (const char *at = (const char *)run.out; (at = strstr(at, "made\n")); at++)
			samples++;
		cr_assert_eq(samples, rows[i].read * FILLERS, "%zu: %u", i, samples);
		hostile_leave(&run);
		cr_assert_eq(system(command), 0);
	}
	remove_folder();
}

/* In a directory windows are as much smaller as it takes to have those of all streams at once. */
Test(cost, windows_that_are_written)
{
	static const struct {
		int level, log;
		uint32_t files;
	} rows[] = {{1, 19, 700}, {3, 21, 500}, {3, 20, 700}, {9, 22, 100}, {9, 21, 200}};
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERFRING_TYPE_SOFTWARE, .sample_period = 1};
	struct perfring_sample sample = {.time = 1};
	struct perfring_file_writer *writer = NULL;
	struct perfring_format format;
	unsigned char buffer[64], front[64];
	struct iovec piece = {.iov_base = buffer};
	int fds[701], error;

	attr.sample_type = PERFRING_SAMPLE_TIME;
	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	piece.iov_len = (size_t)perfring_sample_encode(&format, &sample, buffer, sizeof(buffer));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned char *frame;
		ssize_t size;

		for (uint32_t j = 0; j <= rows[i].files; j++) {
			fds[j] = memfd_create("stream", MFD_CLOEXEC);
			cr_assert_geq(fds[j], 0);
			cr_assert_eq(j ? perfring_file_writer_add_part(writer, fds[j]) : perfring_file_writer_open(&writer, fds[j]),
				     (int)j);
		}
		error = perfring_file_writer_compress(writer, rows[i].level);
		if (error == -EOPNOTSUPP)
			cr_skip_test("SKIP-ENV: libzstd: not built in: needs libzstd-dev");
		cr_assert_eq(error, 0);
		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "made"), 0);
		cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		cr_assert_eq(perfring_file_writer_write_to(writer, 1, &piece, 1), 0);
		cr_assert_eq(perfring_file_writer_finish(writer), 0);
		perfring_file_writer_close(writer);
		size = pread(fds[1], front, sizeof(front), 0);
		cr_assert_gt(size, 16);
		frame = memmem(front, (size_t)size, "\x28\xb5\x2f\xfd", 5);
		cr_assert_not_null(frame, "a frame that does not tell its size");
		cr_assert_eq(frame[5], (rows[i].log - 10) << 3, "%zu: %d", i, frame[5]);
		for (uint32_t j = 0; j <= rows[i].files; j++)
			close(fds[j]);
	}
}

/* ---- what is no file ---- */

/* What is no file is not opened, not for a moment: the kernel would tell of it. */
Test(cost, nothing_but_files_is_opened)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	char fifo[96], link[96], file[96], told[4096];
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	make_folder();
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(file, sizeof(file), "%s/file", folder);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_assert_eq(symlink(fifo, link), 0);
	cr_assert_geq(inotify_add_watch(watch, fifo, IN_OPEN), 0);
	cr_assert_eq(perfring_build_id_of(fifo, id), -EINVAL);
	cr_assert_eq(perfring_build_id_of(link, id), -EINVAL);
	cr_assert_eq(perfring_object_open(getpid(), link), -EINVAL);
	cr_assert_eq(perfring_object_open(0, "/dev/ptmx"), -EINVAL);
	cr_assert_eq(perfring_object_open(0, folder), -EINVAL);
	cr_assert_eq(read(watch, told, sizeof(told)), -1, "the pipe was opened");
	/* and a file is told of, so that this would be */
	write_notes(file);
	cr_assert_geq(inotify_add_watch(watch, file, IN_OPEN), 0);
	cr_assert_eq(perfring_build_id_of(file, id), -ENODATA);
	cr_assert_gt(read(watch, told, sizeof(told)), 0);
	close(watch);
	remove_folder();
}
