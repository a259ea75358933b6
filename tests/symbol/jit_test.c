/* jit_test.c - maps and dumps of code that was made while a process ran: their forms, times, owners and bounds. */
#include "test.h"
#include "machine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <perfring/jit.h>

TestSuite(jit, .timeout = 120);

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	return fd;
}

/* "NAME+OFFSET"; "-": nothing. */
static const char *at(const struct perfring_jit *jit, uint64_t ip)
{
	static char text[2][256];
	static unsigned next;
	struct perfring_jit_symbol symbol;
	char *to = text[next++ % 2];

	if (!perfring_jit_find(jit, ip, &symbol))
		return "-";
	snprintf(to, sizeof(text[0]), "%.200s+%llx", symbol.name, (unsigned long long)(ip - symbol.start));
	return to;
}

static struct perfring_jit_counts counts_of(const struct perfring_jit *jit)
{
	struct perfring_jit_counts counts;

	perfring_jit_count(jit, &counts);
	return counts;
}

/* ---- maps ---- */

static struct perfring_jit *open_map(const char *text, size_t size)
{
	struct perfring_jit *jit;
	int fd = file_of(text, size);

	cr_assert_eq(perfring_jit_open_map(&jit, fd), 0);
	close(fd);
	return jit;
}

Test(jit, lines_of_a_map)
{
	static const char text[] = "1000 10 first\n"
				   "0x1010 0x10 with 0x and  blanks \n"
				   "\n"
				   "00000000000000001020 10 zeros before: too long\n"
				   "0000000000001020 0010 zeros\r\n"
				   "FFFFFFFFFFFFFFF0 ff upper\n"
				   "g000 10 no number\n"
				   "2000 no_number\n"
				   "2000 10\n"
				   "2000 10 \n"
				   "2000  10 two blanks\n"
				   "2000 0 empty\n"
				   "3000 8 last without newline";
	struct perfring_jit *jit = open_map(text, sizeof(text) - 1);

	cr_assert_str_eq(at(jit, 0xfff), "-");
	cr_assert_str_eq(at(jit, 0x1000), "first+0");
	cr_assert_str_eq(at(jit, 0x100f), "first+f");
	cr_assert_str_eq(at(jit, 0x1010), "with 0x and  blanks +0");
	cr_assert_str_eq(at(jit, 0x102f), "zeros+f");
	cr_assert_str_eq(at(jit, 0x1030), "-");
	cr_assert_str_eq(at(jit, UINT64_MAX - 1), "upper+e");
	cr_assert_str_eq(at(jit, 0x2000), "-");
	cr_assert_str_eq(at(jit, 0x3007), "last without newline+7");
	cr_assert_eq(counts_of(jit).malformed, 7);
	cr_assert_eq(counts_of(jit).codes, 5);
	cr_assert_eq(perfring_jit_advance(jit, UINT64_MAX), 0);
	perfring_jit_close(jit);
}

/* Memory is used again: what was written last is there. */
Test(jit, the_last_entry_wins)
{
	static const char text[] = "1000 100 old\n"
				   "1040 20 middle\n"
				   "1050 8 new\n"
				   "10f0 20 end\n"
				   "2000 10 gone\n"
				   "2000 10 stays\n";
	struct perfring_jit *jit = open_map(text, sizeof(text) - 1);

	cr_assert_str_eq(at(jit, 0x103f), "old+3f");
	cr_assert_str_eq(at(jit, 0x104f), "middle+f");
	cr_assert_str_eq(at(jit, 0x1050), "new+0");
	cr_assert_str_eq(at(jit, 0x1058), "middle+18");
	cr_assert_str_eq(at(jit, 0x1060), "old+60");
	cr_assert_str_eq(at(jit, 0x10f1), "end+1");
	cr_assert_str_eq(at(jit, 0x2000), "stays+0");
	perfring_jit_close(jit);
}

/* Lines longer than a name may be, and than the reader's memory; the next ones are read. */
Test(jit, long_lines)
{
	static char text[(1 << 20) + 65536];
	struct perfring_jit *jit;
	size_t size = 0;

	for (unsigned length = 16383; length <= 16385; length++) {
		size += (size_t)sprintf(text + size, "%x 10 ", length << 8);
		memset(text + size, 'n', length);
		size += length;
		text[size++] = '\n';
	}
	size += (size_t)sprintf(text + size, "1000 10 ");
	for (unsigned i = 0; i < 700000; i += 10) /* whose rest looks like lines */
		size += (size_t)sprintf(text + size, "2000 10 x ");
	size += (size_t)sprintf(text + size, "\n3000 10 after\n");
	jit = open_map(text, size);
	cr_assert_str_neq(at(jit, 16383 << 8), "-");
	cr_assert_str_neq(at(jit, 16384 << 8), "-");
	cr_assert_str_eq(at(jit, 16385 << 8), "-");
	cr_assert_str_eq(at(jit, 0x1000), "-");
	cr_assert_str_eq(at(jit, 0x2000), "-");
	cr_assert_str_eq(at(jit, 0x3000), "after+0");
	cr_assert_eq(counts_of(jit).malformed, 2);
	perfring_jit_close(jit);
}

Test(jit, codes_are_bounded)
{
	size_t size = 0, count = PERFRING_JIT_CODES_MAX + 10000;
	char *text = malloc(32 * count);
	struct perfring_jit *jit;

	cr_assert_not_null(text);
	for (size_t i = 0; i < count; i++)
		size += (size_t)sprintf(text + size, "%zx 8 f%zu\n", (i + 1) * 16, i % 1000);
	jit = open_map(text, size);
	cr_assert_eq(counts_of(jit).codes, PERFRING_JIT_CODES_MAX);
	cr_assert_eq(counts_of(jit).exceeded, 10000);
	cr_assert_str_eq(at(jit, 16), "f0+0");
	perfring_jit_close(jit);
	free(text);
}

/* What is written over older code, and cannot have its own name, does not have the older one. */
Test(jit, no_older_name_for_a_name_too_long)
{
	static char text[(1 << 17) + 65536];
	struct perfring_jit *jit;
	size_t size = (size_t)sprintf(text, "1000 100 old\n2000 100 old\n3000 100 old\n1010 10 ");

	memset(text + size, 'n', PERFRING_JIT_NAME_MAX + 1);
	size += PERFRING_JIT_NAME_MAX + 1;
	size += (size_t)sprintf(text + size, "\n2010 10 ");
	memset(text + size, 'n', 1 << 17); /* more than the reader's memory */
	size += 1 << 17;
	size += (size_t)sprintf(text + size, "\n3010 10 new\n");
	jit = open_map(text, size);
	cr_assert_str_eq(at(jit, 0x1010), "-");
	cr_assert_str_eq(at(jit, 0x2010), "-");
	cr_assert_str_eq(at(jit, 0x3010), "new+0");
	cr_assert_str_eq(at(jit, 0x3020), "old+20");
	cr_assert_eq(counts_of(jit).malformed, 2);
	perfring_jit_close(jit);
}

/* Of as much code as there may be; pieces are 16 bytes apart. */
static size_t write_codes(char *text, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += (size_t)sprintf(text + size, "%zx 8 old\n", (i + 1) * 16);
	return size;
}

Test(jit, no_older_name_beyond_the_bound_of_codes)
{
	char *text = malloc(32 * (size_t)PERFRING_JIT_CODES_MAX + 4096);
	struct perfring_jit *jit;
	size_t size;

	cr_assert_not_null(text);
	size = write_codes(text, PERFRING_JIT_CODES_MAX);
	size += (size_t)sprintf(text + size, "14 18 over two\n42 1 is there space again\n");
	jit = open_map(text, size);
	cr_assert_str_eq(at(jit, 0x10), "-");
	cr_assert_str_eq(at(jit, 0x14), "-");
	cr_assert_str_eq(at(jit, 0x27), "-");
	cr_assert_str_eq(at(jit, 0x30), "old+0");
	cr_assert_str_eq(at(jit, 0x42), "is there space again+0");
	cr_assert_eq(counts_of(jit).exceeded, 1);
	perfring_jit_close(jit);
	free(text);
}

Test(jit, no_older_name_beyond_the_bound_of_names)
{
	size_t count = PERFRING_JIT_NAMES_MAX / (PERFRING_JIT_NAME_MAX - 8) + 2, size;
	char *text = malloc((count + 1) * (PERFRING_JIT_NAME_MAX + 64));
	struct perfring_jit *jit;

	cr_assert_not_null(text);
	size = (size_t)sprintf(text, "10 8 old\n20 8 old\n");
	/* different names, until no more can be kept; the file is within its own bound */
	for (size_t i = 0; i + 1 < count && size < PERFRING_JIT_FILE_MAX - PERFRING_JIT_NAME_MAX; i++) {
		size += (size_t)sprintf(text + size, "10 8 %08zu", i);
		memset(text + size, 'n', PERFRING_JIT_NAME_MAX - 8);
		size += PERFRING_JIT_NAME_MAX - 8;
		text[size++] = '\n';
	}
	jit = open_map(text, size);
	cr_assert_gt(counts_of(jit).exceeded, 0);
	cr_assert_str_eq(at(jit, 0x10), "-");
	cr_assert_str_eq(at(jit, 0x20), "old+0");
	perfring_jit_close(jit);
	free(text);
}

/* A file of holes: as long as one likes. */
Test(jit, maps_are_bounded)
{
	struct perfring_jit *jit;
	int fd = file_of("1000 10 first\n", 14);

	cr_assert_eq(ftruncate(fd, (off_t)1 << 40), 0);
	cr_assert_eq(perfring_jit_open_map(&jit, fd), 0);
	cr_assert_str_eq(at(jit, 0x1000), "first+0");
	cr_assert_eq(counts_of(jit).exceeded, 1);
	perfring_jit_close(jit);
	close(fd);
}

/* ---- dumps ---- */

static unsigned char dump[65536];
static size_t dump_size;
static bool is_swapped;

static void put32(uint32_t value)
{
	value = is_swapped ? __builtin_bswap32(value) : value;
	memcpy(dump + dump_size, &value, 4);
	dump_size += 4;
}

static void put64(uint64_t value)
{
	value = is_swapped ? __builtin_bswap64(value) : value;
	memcpy(dump + dump_size, &value, 8);
	dump_size += 8;
}

static void put_text(const char *text)
{
	memcpy(dump + dump_size, text, strlen(text) + 1);
	dump_size += strlen(text) + 1;
}

static void begin_dump(uint32_t version, uint64_t flags)
{
	dump_size = 0;
	put32(0x4A695444);
	put32(version);
	put32(48); /* with something new at its end */
	put32(62);
	put32(0);
	put32(77);
	put64(5);
	put64(flags);
	put64(0);
}

static void begin_record(uint32_t id, uint32_t size, uint64_t time)
{
	put32(id);
	put32(size);
	put64(time);
}

static void load(uint64_t time, uint64_t address, uint32_t size, const char *name)
{
	begin_record(0, 56 + (uint32_t)strlen(name) + 1 + size, time);
	put32(77);
	put32(77);
	put64(address);
	put64(address);
	put64(size);
	put64(1);
	put_text(name);
	memset(dump + dump_size, 0x90, size);
	dump_size += size;
}

static void move(uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	begin_record(1, 64, time);
	put32(77);
	put32(77);
	put64(to);
	put64(from);
	put64(to);
	put64(size);
	put64(1);
}

static struct perfring_jit *open_dump(void)
{
	struct perfring_jit_dump about;
	struct perfring_jit *jit;

	cr_assert_eq(perfring_jit_open_dump(&jit, file_of(dump, dump_size), &about), 0);
	cr_assert_eq(about.pid, 77);
	cr_assert_eq(about.machine, 62);
	cr_assert_eq(about.time, 5);
	cr_assert_eq(about.is_foreign, is_swapped);
	return jit;
}

static void advance(struct perfring_jit *jit, uint64_t time)
{
	cr_assert_eq(perfring_jit_advance(jit, time), 0);
}

Test(jit, a_dump_has_times)
{
	for (int turn = 0; turn < 2; turn++) {
		struct perfring_jit *jit;

		is_swapped = turn;
		begin_dump(1, 0);
		load(10, 0x1000, 0x40, "first");
		load(20, 0x2000, 0x40, "second");
		begin_record(4, 40, 25); /* UNWINDING_INFO */
		dump_size += 24;
		begin_record(99, 16, 25); /* what nobody knows yet */
		load(30, 0x1020, 0x40, "third");
		move(40, 0x2000, 0x3000, 0x40);
		move(41, 0x9000, 0x1000, 0x20); /* what no record has named */
		begin_record(3, 16, 50);
		load(60, 0x5000, 0x40, "after the end");
		jit = open_dump();
		cr_assert_str_eq(at(jit, 0x1000), "-");
		advance(jit, 9);
		cr_assert_str_eq(at(jit, 0x1000), "-");
		advance(jit, 10);
		cr_assert_str_eq(at(jit, 0x1020), "first+20");
		cr_assert_str_eq(at(jit, 0x2000), "-");
		advance(jit, 29);
		cr_assert_str_eq(at(jit, 0x1020), "first+20");
		advance(jit, 39);
		cr_assert_str_eq(at(jit, 0x1020), "third+0");
		cr_assert_str_eq(at(jit, 0x101f), "first+1f");
		cr_assert_str_eq(at(jit, 0x203f), "second+3f");
		advance(jit, UINT64_MAX);
		cr_assert_str_eq(at(jit, 0x203f), "-");
		cr_assert_str_eq(at(jit, 0x303f), "second+3f");
		cr_assert_str_eq(at(jit, 0x1000), "-");
		cr_assert_str_eq(at(jit, 0x1020), "third+0");
		cr_assert_str_eq(at(jit, 0x5000), "-");
		cr_assert_eq(counts_of(jit).malformed, 0);
		perfring_jit_close(jit);
	}
	is_swapped = false;
}

/* By less than its size, in both directions. */
Test(jit, a_move_onto_itself)
{
	struct perfring_jit *jit;

	begin_dump(1, 0);
	load(1, 0x1000, 0x100, "f");
	move(2, 0x1000, 0x1040, 0x100);
	move(3, 0x1040, 0x1000, 0x100);
	move(4, 0x1000, 0x1000, 0x100);
	jit = open_dump();
	advance(jit, 2);
	cr_assert_str_eq(at(jit, 0x103f), "-");
	cr_assert_str_eq(at(jit, 0x1040), "f+0");
	cr_assert_str_eq(at(jit, 0x113f), "f+ff");
	for (uint64_t time = 3; time < 5; time++) {
		advance(jit, time);
		cr_assert_str_eq(at(jit, 0x1000), "f+0");
		cr_assert_str_eq(at(jit, 0x10ff), "f+ff");
		cr_assert_str_eq(at(jit, 0x1100), "-");
	}
	perfring_jit_close(jit);
}

/* What is moved, and is not known, has no name at its new place, and what was named at the old one is not there. */
Test(jit, no_older_name_where_unknown_code_moved)
{
	struct perfring_jit *jit;

	begin_dump(1, 0);
	load(1, 0x1000, 0x100, "a");
	load(1, 0x2000, 0x100, "b");
	load(1, 0x3000, 0x100, "c");
	load(1, 0x4000, 0x100, "d");
	load(1, 0x5000, 0x40, "short");
	load(1, 0x6000, 0x100, "e");
	load(1, 0x7000, 0x100, "f");
	load(1, 0x5040, 0x100, "g");
	move(2, 0x9000, 0x1000, 0x100); /* no piece is there */
	move(3, 0x2080, 0x3000, 0x10);  /* a piece is there that began before */
	move(4, 0x5000, 0x6000, 0x140); /* it is longer than the piece that begins there */
	move(5, 0x4000, 0x7000, 0);
	jit = open_dump();
	advance(jit, 1);
	cr_assert_str_eq(at(jit, 0x1000), "a+0");
	advance(jit, 2);
	cr_assert_str_eq(at(jit, 0x1000), "-");
	cr_assert_str_eq(at(jit, 0x10ff), "-");
	cr_assert_str_eq(at(jit, 0x2080), "b+80");
	advance(jit, 3);
	cr_assert_str_eq(at(jit, 0x2080), "-");
	cr_assert_str_eq(at(jit, 0x3000), "-");
	cr_assert_str_eq(at(jit, 0x300f), "-");
	advance(jit, 4);
	cr_assert_str_eq(at(jit, 0x5000), "-");
	cr_assert_str_eq(at(jit, 0x5040), "-");
	cr_assert_str_eq(at(jit, 0x6000), "short+0");
	cr_assert_str_eq(at(jit, 0x603f), "short+3f");
	cr_assert_str_eq(at(jit, 0x6040), "-");
	cr_assert_str_eq(at(jit, 0x60ff), "-");
	advance(jit, 5);
	cr_assert_str_eq(at(jit, 0x4000), "-", "it is nowhere");
	cr_assert_str_eq(at(jit, 0x7000), "f+0");
	cr_assert_eq(counts_of(jit).malformed, 0);
	perfring_jit_close(jit);
}

/* A LOAD whose name has no end, over older code. */
Test(jit, no_older_name_for_a_load_without_one)
{
	struct perfring_jit *jit;

	begin_dump(1, 0);
	load(1, 0x1000, 0x100, "old");
	load(2, 0x1010, 0x10, "x");
	dump[dump_size - 0x11] = 'x'; /* its NUL */
	jit = open_dump();
	advance(jit, 1);
	cr_assert_str_eq(at(jit, 0x1010), "old+10");
	advance(jit, 2);
	cr_assert_str_eq(at(jit, 0x1010), "-");
	cr_assert_eq(counts_of(jit).malformed, 1);
	perfring_jit_close(jit);
}

static void flush_dump(FILE *to)
{
	cr_assert_eq(fwrite(dump, 1, dump_size, to), dump_size);
	dump_size = 0;
}

/* A move takes its piece from the old place first: at the bound there is space for it.  Where it divides another there is one piece
 * too many; the next move has no space, and neither of its places has an older name. */
Test(jit, moves_at_the_bound_of_codes)
{
	struct perfring_jit_dump about;
	struct perfring_jit *jit;
	FILE *file = tmpfile();

	cr_assert_not_null(file);
	begin_dump(1, 0);
	load(1, 1 << 30, 16, "large");
	for (uint64_t i = 1; i < PERFRING_JIT_CODES_MAX; i++) {
		load(1, 16 * i, 1, "small");
		flush_dump(file);
	}
	move(2, 16, (1 << 30) + 4, 1);
	move(3, 32, 48, 1);
	move(4, 64, 80, 1);
	flush_dump(file);
	fflush(file);
	cr_assert_eq(perfring_jit_open_dump(&jit, dup(fileno(file)), &about), 0);
	fclose(file);
	advance(jit, 1);
	cr_assert_eq(counts_of(jit).codes, PERFRING_JIT_CODES_MAX);
	advance(jit, 2);
	cr_assert_str_eq(at(jit, 16), "-");
	cr_assert_str_eq(at(jit, (1 << 30) + 4), "small+0");
	cr_assert_str_eq(at(jit, (1 << 30) + 5), "large+5");
	cr_assert_eq(counts_of(jit).codes, PERFRING_JIT_CODES_MAX + 1);
	cr_assert_eq(counts_of(jit).exceeded, 0);
	advance(jit, 3);
	cr_assert_str_eq(at(jit, 32), "-");
	cr_assert_str_eq(at(jit, 48), "-");
	cr_assert_eq(counts_of(jit).exceeded, 1);
	advance(jit, 4);
	cr_assert_str_eq(at(jit, 64), "-");
	cr_assert_str_eq(at(jit, 80), "small+0");
	perfring_jit_close(jit);
}

static void put_lines(uint64_t address)
{
	size_t from = dump_size;
	uint32_t size;

	begin_record(2, 0, 1);
	put64(address);
	put64(3);
	put64(address);
	put32(10);
	put32(0);
	put_text("a.js");
	put64(address + 0x10);
	put32(20);
	put32(0);
	put_text("\xff");
	put64(address + 0x20);
	put32(5);
	put32(0);
	put_text("b.js");
	size = (uint32_t)(dump_size - from);
	size = is_swapped ? __builtin_bswap32(size) : size;
	memcpy(dump + from + 4, &size, 4);
}

Test(jit, lines_of_sources)
{
	struct perfring_jit_symbol symbol;
	struct perfring_jit *jit;
	char file[8];
	uint32_t line;

	for (int turn = 0; turn < 2; turn++) {
		is_swapped = turn;
		begin_dump(1, 0);
		put_lines(0x1000);
		load(2, 0x1000, 0x40, "with lines");
		load(3, 0x2000, 0x40, "without");
		move(4, 0x1000, 0x4000, 0x40);
		jit = open_dump();
		advance(jit, 3);
		cr_assert(perfring_jit_find(jit, 0x1000, &symbol));
		cr_assert_eq(perfring_jit_line(jit, &symbol, 0x100f, file, sizeof(file), &line), 1);
		cr_assert_str_eq(file, "a.js");
		cr_assert_eq(line, 10);
		cr_assert_eq(perfring_jit_line(jit, &symbol, 0x1010, file, 3, &line), 1);
		cr_assert_str_eq(file, "a.");
		cr_assert_eq(line, 20);
		cr_assert(perfring_jit_find(jit, 0x2000, &symbol));
		cr_assert_eq(perfring_jit_line(jit, &symbol, 0x2000, file, sizeof(file), &line), 0);
		advance(jit, 4);
		cr_assert(perfring_jit_find(jit, 0x4020, &symbol));
		cr_assert_eq(perfring_jit_line(jit, &symbol, 0x4020, file, sizeof(file), &line), 1);
		cr_assert_str_eq(file, "b.js");
		cr_assert_eq(line, 5);
		perfring_jit_close(jit);
	}
	is_swapped = false;
}

Test(jit, what_is_no_dump)
{
	struct perfring_jit_dump about;
	struct perfring_jit *jit;
	int fd;

	begin_dump(1, 0);
	fd = file_of(dump, 39);
	cr_assert_eq(perfring_jit_open_dump(&jit, fd, &about), -EBADMSG);
	cr_assert_null(jit);
	cr_assert_eq(close(fd), 0, "it is the caller's");
	fd = file_of("1000 10 a map is no dump, however long it may be", 48);
	cr_assert_eq(perfring_jit_open_dump(&jit, fd, &about), -EBADMSG);
	close(fd);
	for (unsigned i = 0; i < 2; i++) {
		begin_dump(i ? 1 : 2, i);
		fd = file_of(dump, dump_size);
		cr_assert_eq(perfring_jit_open_dump(&jit, fd, &about), -EOPNOTSUPP);
		close(fd);
	}
}

Test(jit, damage_ends_a_dump)
{
	struct perfring_jit *jit;

	begin_dump(1, 0);
	load(1, 0x1000, 0x40, "sound");
	begin_record(0, 20, 2); /* shorter than a LOAD: passed over */
	dump_size += 4;
	load(3, 0x2000, 0x40, "sound too");
	dump[dump_size - 0x41] = 'x'; /* its NUL */
	begin_record(0, 15, 4);
	load(5, 0x3000, 0x40, "after it");
	jit = open_dump();
	cr_assert_eq(perfring_jit_advance(jit, 10), -EBADMSG);
	cr_assert_eq(perfring_jit_advance(jit, 10), 0);
	cr_assert_str_eq(at(jit, 0x1000), "sound+0");
	cr_assert_str_eq(at(jit, 0x2000), "-");
	cr_assert_str_eq(at(jit, 0x3000), "-");
	cr_assert_eq(counts_of(jit).malformed, 3);
	perfring_jit_close(jit);
}

/* Its process still writes it. */
Test(jit, a_dump_that_grows)
{
	struct perfring_jit_dump about;
	struct perfring_jit *jit;
	size_t first;
	int fd;

	begin_dump(1, 0);
	load(1, 0x1000, 0x40, "first");
	first = dump_size;
	load(2, 0x2000, 0x40, "second");
	for (size_t cut = first; cut < dump_size; cut++) {
		fd = file_of(dump, cut);
		cr_assert_eq(perfring_jit_open_dump(&jit, fd, &about), 0);
		advance(jit, 10);
		cr_assert_str_eq(at(jit, 0x1000), "first+0");
		cr_assert_str_eq(at(jit, 0x2000), "-");
		cr_assert_eq(pwrite(fd, dump + cut, dump_size - cut, (off_t)cut), (ssize_t)(dump_size - cut));
		advance(jit, 10);
		cr_assert_str_eq(at(jit, 0x203f), "second+3f");
		cr_assert_eq(counts_of(jit).malformed, 0);
		perfring_jit_close(jit);
	}
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(jit, whose_file)
{
	int fd, ready[2];
	char path[64], byte;
	pid_t child;

	if (geteuid())
		cr_skip_test("SKIP-ENV: chown: EPERM: needs root");
	cr_assert_eq(pipe(ready), 0);
	child = fork();
	if (!child) {
		if (setuid(12345) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", child);
	cr_assert_eq(perfring_jit_file_open(child, NULL, 0, 0), -ENOENT);
	write_file(path, "1000 10 own\n");
	fd = perfring_jit_file_open(child, NULL, 0, 0);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(chown(path, 12345, 0), 0);
	fd = perfring_jit_file_open(child, NULL, 0, 0);
	cr_assert_geq(fd, 0, "the living process's");
	close(fd);
	cr_assert_eq(chown(path, 12346, 0), 0);
	cr_assert_eq(perfring_jit_file_open(child, NULL, 0, 0), -EPERM);
	cr_assert_eq(chown(path, 12345, 0), 0);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	fd = perfring_jit_file_open(child, NULL, 0, PERFRING_JIT_ANY_OWNER);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(perfring_jit_file_open(child, NULL, 0, 0), -EPERM, "whose it was is not known any more");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(perfring_jit_file_open(child, NULL, 0, 0), -EINVAL);
	cr_assert_eq(unlink(path), 0);
	close(ready[0]);
	close(ready[1]);
}

/* A number is used again: what the new process wrote has no names for the old one. */
Test(jit, a_later_process_of_that_number)
{
	struct timespec now;
	uint64_t until;
	char path[64];
	pid_t child;
	int fd;

	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", child);
	write_file(path, "1000 10 new\n");
	clock_gettime(CLOCK_REALTIME, &now);
	until = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	fd = perfring_jit_file_open(child, NULL, until, 0);
	cr_assert_geq(fd, 0, "it is the process that was seen");
	close(fd);
	cr_assert_eq(perfring_jit_file_open(child, NULL, until - 3600 * UINT64_C(1000000000), 0), -ESTALE);
	fd = perfring_jit_file_open(child, NULL, 0, 0);
	cr_assert_geq(fd, 0);
	close(fd);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	fd = perfring_jit_file_open(child, NULL, until - 3600 * UINT64_C(1000000000), 0);
	cr_assert_geq(fd, 0, "no other process has the number now");
	close(fd);
	cr_assert_eq(unlink(path), 0);
}

/* A process that is 1 in its own namespace writes perf-1.map, into a /tmp of its own. */
static void run_inside(int done)
{
	int fd = -1;

	if (!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) && !mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
		fd = open("/tmp/perf-1.map", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "1000 10 inside\n", 15) != 15 || write(done, "", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

Test(jit, the_pid_in_a_container)
{
	struct perfring_jit *jit;
	int numbers[2], done[2], fd, status;
	pid_t keeper, child;
	char byte;

	cr_assert_eq(pipe(numbers) | pipe(done), 0);
	keeper = fork();
	if (!keeper) {
		close(done[0]);
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		child = fork();
		if (!child)
			run_inside(done[1]);
		close(done[1]);
		_exit(write(numbers[1], &child, sizeof(child)) != sizeof(child) || waitpid(child, &status, 0) != child);
	}
	close(numbers[1]);
	close(done[1]);
	if (read(numbers[0], &child, sizeof(child)) != sizeof(child) || read(done[0], &byte, 1) != 1) {
		cr_assert_eq(waitpid(keeper, &status, 0), keeper);
		cr_skip_test("SKIP-ENV: unshare(CLONE_NEWPID), mount: EPERM: needs CAP_SYS_ADMIN");
	}
	fd = perfring_jit_file_open(child, NULL, 0, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_jit_open_map(&jit, fd), 0);
	close(fd);
	cr_assert_str_eq(at(jit, 0x1001), "inside+1");
	perfring_jit_close(jit);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(keeper, &status, 0), keeper);
	close(numbers[0]);
	close(done[0]);
}
