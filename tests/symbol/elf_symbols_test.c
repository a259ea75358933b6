/* elf_symbols_test.c - objects made to meet the bounds of what is read of symbols where memory was taken for less. */
#include <perfring/config.h>
#include <perfring/symbol.h>
#include "hostile.h"

TestSuite(elf_symbols, .timeout = 120);

static char folder[64];

static const char *in_folder(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/elf_symbols_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

/* `count` symbols of one name, which begins at byte 1 of the strings. */
static struct hostile_bytes table_of(size_t count, uint16_t section)
{
	Elf64_Sym symbol = {.st_name = 1,
			    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			    .st_shndx = section,
			    .st_value = 0x2000,
			    .st_size = 1};
	struct hostile_bytes table = {0};

	hostile_put(&table, NULL, sizeof(symbol));
	for (size_t i = 0; i < count; i++)
		hostile_put(&table, &symbol, sizeof(symbol));
	return table;
}

static void put_relocation(struct hostile_bytes *to, uint64_t symbol)
{
	Elf64_Rela relocation = {.r_info = ELF64_R_INFO(symbol, 7)};

	hostile_put(to, &relocation, sizeof(relocation));
}

enum {
	NAME = 16384,                    /* bytes of the longest name */
	ALL_NAMES = 65536,               /* so many of them are what one object may have */
	STUBS = (16 << 20) / (NAME + 5), /* so many of them are what a PLT may have: 1023 */
	PLT = 0x8000,                    /* its address */
};

/* Names of the PLT are counted, then written.  Here the first pass ends at the bound of the PLT's names, and takes so much of the
 * bound of all names that the second leaves out a long one, and has space for many short ones instead. */
Test(elf_symbols, a_plt_whose_names_change)
{
	struct hostile_bytes symtab = table_of(ALL_NAMES - (2 * STUBS + 1), HOSTILE_TEXT),
			     dynsym = table_of(1, SHN_UNDEF);
	struct hostile_bytes relocations = {0};
	struct perfring_symbol_object *object;
	struct perfring_symbol_state state;
	struct perfring_symbols *symbols;
	struct perfring_symbol symbol;
	char strings[NAME + 2] = {0};
	unsigned longs = 0, shorts = 0;

	make_folder();
	memset(strings + 1, 'n', NAME);
	for (unsigned i = 0; i < STUBS + 1; i++)
		put_relocation(&relocations, 1);
	for (unsigned i = 0; i < 8000; i++)
		put_relocation(&relocations, 1000); /* there is no such symbol: its name is empty */
	hostile_write_object(in_folder("plt"),
			     (struct hostile_section[]){
				     {".symtab", SHT_SYMTAB, symtab.bytes, symtab.size, 3, 0, 0, 0},
				     {".strtab", SHT_STRTAB, strings, sizeof(strings), 0, 0, 0, 0},
				     {".dynsym", SHT_DYNSYM, dynsym.bytes, dynsym.size, 5, 0, 0, 0},
				     {".dynstr", SHT_STRTAB, strings, sizeof(strings), 0, 0, 0, 0},
				     {".rela.plt", SHT_RELA, relocations.bytes, relocations.size, 4, 0, 0, 0},
				     {".plt.sec", SHT_PROGBITS, strings, 1, 0, 0, 16 * 9100, PLT},
			     },
			     6);
	cr_assert_eq(
		perfring_symbols_open(&symbols, &(struct perfring_symbols_options){.flags = PERFRING_SYMBOLS_MANGLED}),
		0);
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = in_folder("plt")}, &object),
		     1);
	perfring_symbol_state_of(object, &state);
	cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(state.exceeded, "16 MiB of names in the PLT");
	for (unsigned i = 0; i < 9024; i++)
		if (perfring_symbol_find(object, PLT + 16 * i, &symbol)) {
			size_t length = strlen(symbol.name);

			cr_assert(length == NAME + 4 || length == 4, "%u: %zu", i, length);
			cr_assert_str_eq(symbol.name + length - 4, "@plt");
			longs += length > 4;
			shorts += length == 4;
		}
	cr_assert_eq(longs, STUBS - 1, "%u long names", longs);
	/* in place of the one that is not there */
	cr_assert_eq(shorts, (NAME + 5) / 5, "%u short names", shorts);
	perfring_symbols_close(symbols);
	free(symtab.bytes);
	free(dynsym.bytes);
	free(relocations.bytes);
	remove_folder();
}

/* ---- texts ---- */

static unsigned char note[36] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U'};

#define ID_SECTION \
	{ \
		".note.gnu.build-id", SHT_NOTE, note, sizeof(note), 0, 0, 0, 0x400 \
	}

static void write_debug_file(const char *path, size_t count)
{
	struct hostile_bytes table = table_of(count, HOSTILE_TEXT);

	hostile_write_object(path,
			     (struct hostile_section[]){
				     {".symtab", SHT_SYMTAB, table.bytes, table.size, 3, 0, 0, 0},
				     {".strtab", SHT_STRTAB, "\0name", 6, 0, 0, 0, 0},
				     ID_SECTION,
			     },
			     3);
	free(table.bytes);
}

/* As many debug files as there can be, each of the right build, none of which can be read to its end: the first has more symbols than
 * are kept.  The strings of each stay: the names of what was read point into them. */
Test(elf_symbols, texts_of_many_debug_files)
{
	static const char *const places[] = {
		"root/usr/lib/debug/.build-id/42/42424242424242424242424242424242424242.debug",
		"root/here/a.debug",
		"root/here/.debug/a.debug",
		"root/usr/lib/debug/here/a.debug",
		"perf/.build-id/42/42424242424242424242424242424242424242/debug",
		"debuginfod/4242424242424242424242424242424242424242/debuginfo",
	};
	struct hostile_bytes dynsym = table_of(1, SHN_UNDEF), relocations = {0};
	struct perfring_symbol_object *object;
	struct perfring_symbol_state state;
	struct perfring_symbols *symbols;
	struct perfring_symbol symbol;
	char command[1024], root[128];
	unsigned char *packed;
	size_t packed_size;

	if (!PERFRING_HAS_LZMA || system("command -v xz >/dev/null"))
		cr_skip_test("SKIP-ENV: xz: not here: install xz-utils and liblzma-dev");
	make_folder();
	memset(note + 16, 0x42, 20);
	write_debug_file(in_folder("small"), 1);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(command, sizeof(command), "cd %s && mkdir -p \"$(dirname %s)\" && ln small %s", folder,
			 places[i], places[i]);
		cr_assert_eq(system(command), 0);
	}
	cr_assert_eq(unlink(in_folder(places[0])), 0);
	write_debug_file(in_folder(places[0]), (4 << 20) + 1);
	snprintf(command, sizeof(command), "cd %s && xz -k small", folder);
	cr_assert_eq(system(command), 0);
	packed = hostile_read(open(in_folder("small.xz"), O_RDONLY), &packed_size);
	put_relocation(&relocations, 1);
	hostile_write_object(in_folder("root/here/object"),
			     (struct hostile_section[]){
				     ID_SECTION,
				     {".gnu_debuglink", SHT_PROGBITS, "a.debug\0\0\0\0", 12, 0, 0, 0, 0},
				     {".dynsym", SHT_DYNSYM, dynsym.bytes, dynsym.size, 5, 0, 0, 0},
				     {".dynstr", SHT_STRTAB, "\0far", 5, 0, 0, 0, 0},
				     {".gnu_debugdata", SHT_PROGBITS, packed, packed_size, 0, 0, 0, 0},
				     {".rela.plt", SHT_RELA, relocations.bytes, relocations.size, 4, 0, 0, 0},
				     {".plt.sec", SHT_PROGBITS, relocations.bytes, 16, 0, 0, 0, PLT},
			     },
			     7);
	setenv("PERF_BUILDID_DIR", in_folder("perf"), 1);
	setenv("DEBUGINFOD_CACHE_PATH", in_folder("debuginfod"), 1);
	snprintf(root, sizeof(root), "%s/root", folder);
	cr_assert_eq(
		perfring_symbols_open(
			&symbols, &(struct perfring_symbols_options){.flags = PERFRING_SYMBOLS_MANGLED, .symfs = root}),
		0);
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = "/here/object"}, &object), 1);
	perfring_symbol_state_of(object, &state);
	cr_assert_str_eq(state.exceeded, "4194304 symbols in one object");
	cr_assert(perfring_symbol_find(object, 0x2000, &symbol));
	cr_assert_str_eq(symbol.name, "name");
	cr_assert(perfring_symbol_find(object, PLT, &symbol));
	cr_assert_str_eq(symbol.name, "far@plt");
	perfring_symbols_close(symbols);
	free(dynsym.bytes);
	free(relocations.bytes);
	free(packed);
	remove_folder();
}
