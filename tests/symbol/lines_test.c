/* lines_test.c - lines and inlined functions by symbol.h: beside addr2line at each address, and of damaged DWARF. */
#include <perfring/config.h>
#include <perfring/symbol.h>
#include "hostile.h"
#include "symbol/source_lines.h"
#ifdef HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <link.h>
#include <perfring/build_id.h>
#include "machine.h"
#endif

TestSuite(lines, .timeout = 120);

static char folder[64];
static struct perfring_symbols *symbols;

static const char *in_folder(const char *name)
{
	static char paths[4][512];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* Runs the three parts as one command in the folder. */
static void run(const char *first, const char *second, const char *third)
{
	char command[2048];

	snprintf(command, sizeof(command), "cd %s && %s%s%s", folder, first, second, third);
	cr_assert_eq(system(command), 0, "%s", command);
}

static void set_up(void)
{
	snprintf(folder, sizeof(folder), "/tmp/lines_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	setenv("HOME", folder, 1); /* no caches */
	cr_assert_eq(
		perfring_symbols_open(&symbols, &(struct perfring_symbols_options){.flags = PERFRING_SYMBOLS_MANGLED}),
		0);
}

static void tear_down(void)
{
	perfring_symbols_close(symbols);
	run("rm -rf ", folder, "");
}

static const char c_source[] = "static inline __attribute__((always_inline)) unsigned deep(unsigned n)\n"
			       "{\n"
			       "	unsigned x = 1;\n"
			       "	for (unsigned i = 0; i < n; i++)\n"
			       "		x = x * 1103515245 + 12345;\n"
			       "	return x;\n"
			       "}\n"
			       "static inline __attribute__((always_inline)) unsigned middle(unsigned n)\n"
			       "{\n"
			       "	return deep(n) + 1;\n"
			       "}\n"
			       "__attribute__((noinline)) unsigned outer(unsigned n)\n"
			       "{\n"
			       "	unsigned a = middle(n);\n"
			       "	{\n"
			       "		unsigned b = deep(a);\n"
			       "		return a + b + deep(n);\n"
			       "	}\n"
			       "}\n"
			       "__attribute__((noinline)) unsigned plain(unsigned n)\n"
			       "{\n"
			       "	return n * 7;\n"
			       "}\n"
			       "unsigned both(unsigned n)\n"
			       "{\n"
			       "	return outer(n) + plain(n) + middle(n);\n"
			       "}\n";

static const char cxx_source[] =
	"#include <algorithm>\n"
	"#include <map>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"namespace space {\n"
	"template <typename T> struct Box {\n"
	"	std::vector<T> all;\n"
	"	void add(T one) { all.push_back(one); }\n"
	"	T sum() const { T s{}; for (auto &one : all) s += one; return s; }\n"
	"};\n"
	"namespace { inline int twice(int n) { return 2 * n; } }\n"
	"int use(int n)\n"
	"{\n"
	"	Box<int> box;\n"
	"	for (int i = 0; i < n; i++)\n"
	"		box.add(twice(i));\n"
	"	std::sort(box.all.begin(), box.all.end(), [](int a, int b) { return b < a; });\n"
	"	return box.sum();\n"
	"}\n"
	"}\n"
	"std::map<std::string, int> count(const std::vector<std::string> &all)\n"
	"{\n"
	"	std::map<std::string, int> counts;\n"
	"	for (auto &one : all)\n"
	"		counts[one + \"!\"]++;\n"
	"	return counts;\n"
	"}\n";

static void write_source(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");

	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
	cr_assert_eq(fclose(file), 0);
}

static struct perfring_symbol_object *get(const char *path)
{
	struct perfring_symbol_object *object;

	cr_assert_geq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object), 0);
	return object;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

enum {
	MOST = 32,
	TEXT = 8192
};

/* "function" and "file:line" of each frame at an address. */
struct chain {
	int count;
	char functions[MOST][TEXT];
	char places[MOST][64];
};

static void describe(struct perfring_symbol_object *object, uint64_t address, struct chain *chain)
{
	struct perfring_symbol_frame frames[MOST];

	chain->count = perfring_symbol_frames(object, address, frames, MOST);
	cr_assert_geq(chain->count, 0);
	for (int i = 0; i < chain->count; i++) {
		snprintf(chain->functions[i], TEXT, "%s", frames[i].name ? frames[i].name : "??");
		snprintf(chain->places[i], 64, "%.50s:%u", frames[i].file ? base(frames[i].file) : "??",
			 frames[i].line);
		cr_assert_eq(frames[i].is_inlined, i + 1 < chain->count);
	}
}

/* What addr2line says of one address.  Returns false at the end. */
static bool read_addr2line(FILE *from, struct chain *chain)
{
	static char line[TEXT]; /* the address of the next one, which was read already */

	chain->count = 0;
	if (strncmp(line, "0x", 2) && !(fgets(line, sizeof(line), from) && !strncmp(line, "0x", 2)))
		return false;
	line[0] = 0;
	while (fgets(line, sizeof(line), from) && strncmp(line, "0x", 2)) {
		line[strcspn(line, "\n")] = 0;
		strcpy(chain->functions[chain->count], line);
		cr_assert_not_null(fgets(line, sizeof(line), from));
		line[strcspn(line, "\n ")] = 0; /* and its discriminator */
		snprintf(chain->places[chain->count++], 64, "%.60s", base(line));
		cr_assert_lt(chain->count, MOST);
		line[0] = 0;
	}
	return true;
}

/* The outermost function has its symbol's name: "f.cold" of a part of f, and of what has no linkage name ("f<int>") too. */
static bool is_named(const char *ours, const char *theirs, bool is_outermost)
{
	size_t length = strlen(theirs);

	return !strcmp(ours, theirs) ||
	       (is_outermost && ((!strncmp(ours, theirs, length) && ours[length] == '.') || strchr(theirs, '<')));
}

/* addr2line (binutils 2.40) differs in two ways of the innermost frame.  Of a function without a linkage name it says the symbol
 * of the outermost one; of several rows of the table of lines at one address it takes one that covers nothing. */
static bool is_same(const struct chain *ours, const struct chain *theirs, bool has_rows)
{
	bool is_symbol = theirs->count && !strcmp(theirs->functions[0], theirs->functions[theirs->count - 1]);

	if (ours->count != theirs->count)
		return false;
	for (int i = 0; i < ours->count; i++)
		if ((!is_named(ours->functions[i], theirs->functions[i], i + 1 == ours->count) && (i || !is_symbol)) ||
		    (strcmp(ours->places[i], theirs->places[i]) && (i || has_rows)))
			return false;
	return true;
}

/* Each address of its functions, whose offsets are their addresses.  has_rows: each has one row of the table of lines. */
static unsigned compare(const char *path, bool has_rows)
{
	static struct chain ours, theirs;
	struct perfring_symbol_object *object = get(path);
	char line[4096];
	FILE *symbols_of, *list = fopen(in_folder("addresses"), "w"), *told;
	unsigned same = 0, different = 0;
	uint64_t start, size;
	char kind;

	snprintf(line, sizeof(line), "nm -S --defined-only %s", path);
	symbols_of = popen(line, "r");
	cr_assert(list && symbols_of);
	while (fgets(line, sizeof(line), symbols_of))
		if (sscanf(line, "%lx %lx %c", &start, &size, &kind) == 3 && strchr("tTW", kind))
			for (uint64_t at = start; at < start + size; at++)
				fprintf(list, "%lx\n", at);
	pclose(symbols_of);
	fclose(list);
	snprintf(line, sizeof(line), "addr2line -a -i -f -e %s <%s", path, in_folder("addresses"));
	told = popen(line, "r");
	list = fopen(in_folder("addresses"), "r");
	cr_assert(told && list);
	while (read_addr2line(told, &theirs)) {
		cr_assert_not_null(fgets(line, sizeof(line), list));
		describe(object, strtoull(line, NULL, 16), &ours);
		if (is_same(&ours, &theirs, has_rows)) {
			same++;
			continue;
		}
		for (int i = 0; i < MOST && different < 4; i++)
			if (i < ours.count || i < theirs.count)
				fprintf(stderr, "%.6s %s %s, addr2line %s %s\n", line,
					i < ours.count ? ours.functions[i] : "", i < ours.count ? ours.places[i] : "",
					i < theirs.count ? theirs.functions[i] : "",
					i < theirs.count ? theirs.places[i] : "");
		different++;
	}
	cr_assert_null(fgets(line, sizeof(line), list), "addr2line ends early");
	pclose(told);
	fclose(list);
	cr_assert_eq(different, 0, "%u of %u", different, same + different);
	return same;
}

Test(lines, of_c)
{
	static const char *const options[] = {"-O0 -g", "-O1 -g", "-O2 -g -gdwarf-4",
					      PERFRING_HAS_ZLIB ? "-O2 -g -ffunction-sections -gz"
								: "-O2 -g -ffunction-sections"};
	char name[64];

	set_up();
	write_source("inlined.c", c_source);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		snprintf(name, sizeof(name), " inlined.c -o %zu.so", i);
		run("gcc -shared -fPIC ", options[i], name);
		cr_assert_geq(compare(in_folder(strrchr(name, ' ') + 1), !i), 100);
	}
	tear_down();
}

Test(lines, of_cxx)
{
	static const char *const options[] = {"-O2 -g", "-O1 -g -gdwarf-4"};
	char name[64];

	set_up();
	if (system("command -v g++ >/dev/null"))
		cr_skip_test("SKIP-ENV: g++: not installed");
	write_source("inlined.cc", cxx_source);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		snprintf(name, sizeof(name), " inlined.cc -o %zu.so", i);
		run("g++ -shared -fPIC ", options[i], name);
		cr_assert_geq(compare(in_folder(strrchr(name, ' ') + 1), false), 1000);
	}
	tear_down();
}

static void take_text(void *to, const char *place, const char *text)
{
	(void)place;
	strcpy(to, text ? text : "??");
}

/* A function's name, which may be a place; valid until the next call. */
static const char *text_of(struct perfring_lines *lines, const char *name)
{
	static char text[(16 << 10) + 1];

	if (!name || !perfring__lines_is_place(lines, name))
		return name;
	perfring__lines_read_places(lines, &name, 1, take_text, text);
	return text;
}

/* ---- the same lines as libdw ---- */

#ifdef HAVE_LIBDW

/* libdw's frames of an address.  Functions are looked for in namespaces and types too, which dwarf_getscopes does not do, and calls in
 * blocks that have no ranges, as compilers write them in DWARF 2. */
struct oracle {
	Dwarf *dwarf;
	Dwarf_Die unit;
	Dwarf_Die functions[4096];
	unsigned function_count;
	struct perfring_line_frame frames[MOST];
	int count;
};

static const char *oracle_name(Dwarf_Die *entry)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(entry, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(entry, DW_AT_MIPS_linkage_name, &attribute))
		return dwarf_formstring(&attribute);
	return dwarf_diename(entry);
}

/* Of no number, or of 0 before DWARF 5, libdw's name is "???". */
static const char *known(const char *file)
{
	return file && !strcmp(file, "???") ? NULL : file;
}

static void ask_line(struct oracle *oracle, uint64_t address, struct perfring_line_frame *frame)
{
	Dwarf_Line *row = dwarf_getsrc_die(&oracle->unit, address);
	int line = 0;

	*frame = (struct perfring_line_frame){0};
	if (row && !dwarf_lineno(row, &line)) {
		frame->file = known(dwarf_linesrc(row, NULL, NULL));
		frame->line = (uint32_t)line;
	}
}

static void ask_call(struct oracle *oracle, Dwarf_Die *call, struct perfring_line_frame *frame)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	*frame = (struct perfring_line_frame){0};
	if (dwarf_attr(call, DW_AT_call_line, &attribute) && !dwarf_formudata(&attribute, &number))
		frame->line = (uint32_t)number;
	if (dwarf_attr(call, DW_AT_call_file, &attribute) && !dwarf_formudata(&attribute, &number) &&
	    !dwarf_getsrcfiles(&oracle->unit, &files, &count) && number < count)
		frame->file = known(dwarf_filesrc(files, number, NULL, NULL));
}

static void add_oracle_functions(struct oracle *oracle, Dwarf_Die *entry)
{
	Dwarf_Die child;

	if (dwarf_child(entry, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_namespace:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			add_oracle_functions(oracle, &child);
			break;
		case DW_TAG_subprogram:
			cr_assert_lt(oracle->function_count, 4096);
			if (dwarf_hasattr(&child, DW_AT_low_pc) || dwarf_hasattr(&child, DW_AT_ranges))
				oracle->functions[oracle->function_count++] = child;
		}
	} while (!dwarf_siblingof(&child, &child));
}

/* Adds the calls at an address among the children, the outermost first.  Returns how many there are. */
static int ask_calls(Dwarf_Die *entry, uint64_t address, Dwarf_Die *calls)
{
	Dwarf_Die child;
	int count = 0;

	if (dwarf_child(entry, &child))
		return 0;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_inlined_subroutine && dwarf_haspc(&child, address) > 0) {
			calls[0] = child;
			return 1 + ask_calls(&child, address, calls + 1);
		}
		if (tag == DW_TAG_lexical_block)
			count = ask_calls(&child, address, calls);
	} while (!count && !dwarf_siblingof(&child, &child));
	return count;
}

static void ask(struct oracle *oracle, uint64_t address)
{
	struct perfring_line_frame next;
	Dwarf_Die *function = NULL, calls[MOST];
	int count;

	/* of functions of one range, the aliases of an assembler's source, the last */
	for (unsigned i = 0; i < oracle->function_count; i++)
		if (dwarf_haspc(&oracle->functions[i], address) > 0)
			function = &oracle->functions[i];
	ask_line(oracle, address, &next);
	count = function ? ask_calls(function, address, calls) : 0;
	for (oracle->count = 0; oracle->count < count; oracle->count++) {
		Dwarf_Die *call = &calls[count - 1 - oracle->count];

		oracle->frames[oracle->count] = next;
		oracle->frames[oracle->count].function = oracle_name(call);
		ask_call(oracle, call, &next);
	}
	next.function = function ? oracle_name(function) : NULL;
	oracle->frames[oracle->count++] = next;
}

static bool is_equal_text(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

struct comparison {
	const char *path;
	struct perfring_lines *lines;
	struct oracle *oracle;
	unsigned long frames, addresses, different;
};

static void show_frames(const char *whose, const struct perfring_line_frame *frames, int count)
{
	for (int i = 0; i < count; i++)
		fprintf(stderr, "    %s %s %s:%u\n", whose, frames[i].function ? frames[i].function : "-",
			frames[i].file ? frames[i].file : "-", frames[i].line);
}

static void compare_at(struct comparison *comparison, uint64_t address)
{
	struct perfring_line_frame ours[MOST];
	struct oracle *oracle = comparison->oracle;
	int count = perfring__lines_find(comparison->lines, address, ours, MOST);
	bool is_same_frame = true;

	ask(oracle, address);
	for (int i = 0; i < count && i < oracle->count; i++)
		is_same_frame =
			is_same_frame &&
			is_equal_text(text_of(comparison->lines, ours[i].function), oracle->frames[i].function) &&
			is_equal_text(ours[i].file, oracle->frames[i].file) && ours[i].line == oracle->frames[i].line;
	comparison->addresses++;
	comparison->frames += (unsigned long)count;
	if (count == oracle->count && is_same_frame)
		return;
	if (comparison->different++ < 4) {
		fprintf(stderr, "%s %#lx:\n", comparison->path, (unsigned long)address);
		show_frames("ours", ours, count);
		show_frames("libdw", oracle->frames, oracle->count);
	}
}

/* Addresses of the unit in `steps` steps, and each stride-th row of its table with the addresses beside. */
static void compare_unit(struct comparison *comparison, unsigned long steps, size_t stride)
{
	Dwarf_Addr base, start, end;
	Dwarf_Lines *rows;
	size_t count;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(&comparison->oracle->unit, at, &base, &start, &end)) > 0)
		for (uint64_t i = start; i < end; i += (end - start) / steps + 1)
			compare_at(comparison, i);
	if (dwarf_getsrclines(&comparison->oracle->unit, &rows, &count))
		return;
	for (size_t i = 0; i < count; i += stride) {
		Dwarf_Addr address;

		if (dwarf_lineaddr(dwarf_onesrcline(rows, i), &address))
			continue;
		for (int beside = -1; beside <= 1; beside++)
			if (dwarf_haspc(&comparison->oracle->unit, address + (uint64_t)(int64_t)beside) > 0)
				compare_at(comparison, address + (uint64_t)(int64_t)beside);
	}
}

/* frames: that many at least.  units: each such unit of the file is compared. */
static void compare_with_libdw(const char *path, unsigned long frames, unsigned long steps, size_t stride,
			       unsigned units)
{
	static const struct perfring_places nowhere;
	static struct comparison comparison;
	static struct oracle oracle;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *exceeded = NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die entry;
	unsigned number = 0;

	comparison = (struct comparison){.path = path, .oracle = &oracle};
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(perfring__lines_open(&comparison.lines, fd, &nowhere, path, &exceeded), 0, "%s", path);
	oracle.dwarf = dwarf_begin(fd, DWARF_C_READ);
	cr_assert_not_null(oracle.dwarf);
	while (!dwarf_get_units(oracle.dwarf, unit, &unit, NULL, NULL, &entry, NULL)) {
		oracle.unit = entry;
		oracle.function_count = 0;
		if (dwarf_tag(&entry) != DW_TAG_compile_unit || number++ % units)
			continue;
		add_oracle_functions(&oracle, &entry);
		compare_unit(&comparison, steps, stride);
	}
	printf("lines: %s: %lu frames at %lu addresses, %lu differ\n", base(path), comparison.frames,
	       comparison.addresses, comparison.different);
	cr_assert_eq(comparison.different, 0, "%s: %lu of %lu", path, comparison.different, comparison.addresses);
	cr_assert_geq(comparison.frames, frames, "%s", path);
	dwarf_end(oracle.dwarf);
	perfring__lines_close(comparison.lines);
	close(fd);
}

/* ---- the same frames as addr2line ---- */

/* Reads numbers in hexadecimal, one a line.  Returns how many. */
static uint32_t read_numbers(const char *path, uint64_t *numbers, uint32_t most)
{
	FILE *file = fopen(path, "r");
	uint32_t count = 0;
	char line[64];

	cr_assert_not_null(file);
	while (count < most && fgets(line, sizeof(line), file))
		numbers[count++] = strtoull(line, NULL, 16);
	fclose(file);
	return count;
}

/* Whether addr2line -C has the name of a frame: with types and parameters of what is mangled, `raw`, else as it is.  In place of the
 * innermost or outermost function without a linkage name it may have the symbol of the outermost one.  A copy of a function (.isra,
 * .part) is its original there. */
static bool is_their_name(const char *theirs, const char *raw, const struct perfring_symbol_stack *stack, uint32_t i)
{
	const char *symbol = stack->frames[stack->count - 1].name;
	size_t length = strcspn(symbol, "[");
	char plain[TEXT];

	snprintf(plain, sizeof(plain), "%.*s", (int)(symbol[length] ? length - 1 : length), symbol);
	if (!strncmp(raw, "_Z", 2))
		return strstr(theirs, i + 1 == stack->count ? plain : stack->frames[i].name);
	return !strcmp(theirs, raw) || ((!i || i + 1 == stack->count) && strstr(theirs, plain));
}

struct templates {
	struct comparison comparison;
	struct oracle oracles[8]; /* of each unit */
	uint32_t unit_count;
	uint64_t offsets[20000];
	struct perfring_symbol_stack stacks[20000];
	unsigned names, files; /* that differ */
};

/* Whether addr2line 2.40 means the same place: where a table of DWARF 5 has not set the file's number, it is 1 (section 6.2.2), but there
 * it is 0.  The line is the same.  Of a function that several units have, it may take another unit. */
static bool is_their_file(struct templates *templates, uint64_t at, const char *theirs,
			  const struct perfring_symbol_frame *frame)
{
	const char *one, *zero;
	Dwarf_Files *files;
	char place[TEXT];
	size_t count;

	for (uint32_t i = 0; i < templates->unit_count; i++) {
		Dwarf_Die *unit = &templates->oracles[i].unit;

		if (dwarf_haspc(unit, at) <= 0)
			continue;
		cr_assert_eq(dwarf_getsrcfiles(unit, &files, &count), 0);
		cr_assert_gt(count, 1);
		zero = dwarf_filesrc(files, 0, NULL, NULL);
		one = dwarf_filesrc(files, 1, NULL, NULL);
		snprintf(place, sizeof(place), "%s:%u", base(zero), frame->line);
		if (!strcmp(frame->file, one) && !strcmp(theirs, place))
			return true;
	}
	return false;
}

static void open_units(struct templates *all, const char *path, int fd)
{
	static const struct perfring_places nowhere;
	const char *exceeded = NULL;
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *unit = NULL;
	Dwarf_Die entry;

	cr_assert_not_null(dwarf);
	all->comparison.path = path;
	cr_assert_eq(perfring__lines_open(&all->comparison.lines, fd, &nowhere, path, &exceeded), 0);
	while (!dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &entry, NULL)) {
		struct oracle *oracle = &all->oracles[all->unit_count++];

		cr_assert_leq(all->unit_count, 8);
		oracle->dwarf = dwarf;
		oracle->unit = entry;
		add_oracle_functions(oracle, &entry);
	}
}

static void close_units(struct templates *all)
{
	perfring__lines_close(all->comparison.lines);
	dwarf_end(all->oracles[0].dwarf);
}

/* Holds our frames at an address against addr2line's, in the unit of the oracle. */
static void compare_with_addr2line(struct templates *templates, uint32_t number, const struct chain *theirs)
{
	const struct perfring_symbol_stack *stack = &templates->stacks[number];
	struct perfring_line_frame raw[MOST];
	uint64_t at = templates->offsets[number];
	char place[TEXT];

	for (uint32_t i = 0; i < templates->unit_count; i++)
		if (dwarf_haspc(&templates->oracles[i].unit, at) > 0)
			templates->comparison.oracle = &templates->oracles[i];
	compare_at(&templates->comparison, at);
	cr_assert_eq(perfring__lines_find(templates->comparison.lines, at, raw, MOST), (int)stack->count);
	cr_assert_eq(theirs->count, (int)stack->count, "%lx", (unsigned long)at);
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct perfring_symbol_frame *frame = &stack->frames[i];
		const char *name = text_of(templates->comparison.lines, raw[i].function);

		cr_assert(is_their_name(theirs->functions[i], name, stack, i), "%lx, %u: %.200s, addr2line %.200s",
			  (unsigned long)at, i, frame->name, theirs->functions[i]);
		templates->names += strstr(theirs->functions[i], frame->name) == NULL;
		snprintf(place, sizeof(place), "%s:%u", base(frame->file), frame->line);
		if (!strcmp(place, theirs->places[i]))
			continue;
		templates->files++;
		cr_assert(!i && is_their_file(templates, at, theirs->places[i], frame), "%lx, %u: %s, addr2line %s",
			  (unsigned long)at, i, place, theirs->places[i]);
	}
}

/* Each frame of a library of templates.  libdw has what we have at each address, so that the DWARF decides where addr2line differs; how it
 * may differ is said above. */
Test(lines, of_templates_are_addr2lines, .timeout = 1200)
{
	static struct templates all;
	static struct chain theirs;
	struct perfring_symbol_object *object;
	struct perfring_symbols *shown;
	char command[1400], path[600];
	uint32_t count, number = 0;
	FILE *told;
	int fd;

	set_up();
	if (system("command -v g++ >/dev/null"))
		cr_skip_test("SKIP-ENV: g++: not installed");
	cr_assert_not_null(getenv("PERFRING_SOURCE"), "the folder of the sources");
	snprintf(command, sizeof(command), "%s/tests/support/inlined_library %s %s", getenv("PERFRING_SOURCE"), folder,
		 is_long()      ? "6 20 20000"
		 : IS_SANITIZED ? "1 1 1000"
				: "2 2 4000");
	cr_assert_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s", in_folder("library.so"));
	count = read_numbers(in_folder("addresses"), all.offsets, 20000);
	cr_assert_eq(perfring_symbols_open(&shown, NULL), 0);
	cr_assert_geq(perfring_symbols_get(shown, &(struct perfring_symbol_file){.path = path}, &object), 0);
	cr_assert_eq(perfring_symbol_stacks(object, all.offsets, count, all.stacks), count);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	open_units(&all, path, fd);
	snprintf(command, sizeof(command), "addr2line -C -a -i -f -e %s <%s", path, in_folder("addresses"));
	told = popen(command, "r");
	cr_assert_not_null(told);
	while (read_addr2line(told, &theirs)) {
		cr_assert_lt(number, count);
		compare_with_addr2line(&all, number++, &theirs);
	}
	pclose(told);
	cr_assert_eq(number, count, "addr2line ends early");
	cr_assert_eq(all.comparison.different, 0, "%lu of %u", all.comparison.different, count);
	printf("lines: templates: %lu frames at %u addresses; of addr2line %u names and %u files differ\n",
	       all.comparison.frames, count, all.names, all.files);
	cr_assert_geq(all.comparison.frames, 3 * count);
	close_units(&all);
	close(fd);
	perfring_symbols_close(shown);
	tear_down();
}

/* Whether the compiler, with these options, makes a library of the source. */
static bool compiles(const char *compiler, const char *options, const char *source)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && %s -w -shared -fPIC %s -o a.so %s 2>/dev/null", folder, compiler,
		 options, source);
	return !system(command);
}

Test(lines, are_libdws, .timeout = 300)
{
	static const char *const options[] = {
		"-gdwarf-2 -O2",
		"-gdwarf-3 -O2",
		"-gdwarf-4 -O0",
		"-gdwarf-4 -O2",
		"-gdwarf-5 -O0",
		"-gdwarf-5 -O1",
		"-gdwarf-5 -O2 -ffunction-sections",
		"-gdwarf-5 -O3 -gdwarf64",
		"-gdwarf-4 -O2 -fdebug-types-section",
		"-gdwarf-5 -O2 -fdebug-types-section",
		"-g -O2 -gz=zlib",
		"-g -O2 -gz=zlib-gnu",
		"-g -O2 -flto",
		"-g1 -O2",
		"-gdwarf-5 -O2 -gno-as-locview-support",
	};
	/* the last ones where they are installed: both byte orders, 32 and 64 bits */
	static const char *const compilers[] = {
		"gcc", "g++", "clang", "clang++", "s390x-linux-gnu-gcc", "i686-linux-gnu-gcc", "aarch64-linux-gnu-gcc"};
	unsigned compared = 0;
	char command[600];

	set_up();
	write_source("inlined.c", c_source);
	write_source("inlined.cc", cxx_source);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (size_t j = 0; j < sizeof(compilers) / sizeof(compilers[0]); j++) {
			bool is_cxx = compilers[j][strlen(compilers[j]) - 1] == '+';

			if (!PERFRING_HAS_ZLIB && strstr(options[i], "-gz"))
				continue;
			/* the short form: C++ of one compiler in turn */
			if (is_cxx && !is_long() && i % 4 != j)
				continue;
			if (!compiles(compilers[j], options[i], is_cxx ? "inlined.cc" : "inlined.c"))
				continue;
			printf("lines: %s %s\n", compilers[j], options[i]);
			compare_with_libdw(in_folder("a.so"), is_cxx ? 1000 : 100, 256, is_cxx ? 8 : 1, 1);
			compared++;
			snprintf(command, sizeof(command), "rm %s", in_folder("a.so"));
			cr_assert_eq(system(command), 0);
		}
	cr_assert_geq(compared, 24, "%u", compared);
	tear_down();
}

/* The debug file of the libc that runs, where it is installed. */
static int find_libc(struct dl_phdr_info *object, size_t size, void *path)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	int64_t length = 0;
	char *at = path;

	(void)size;
	if (!strstr(object->dlpi_name, "/libc.so.6"))
		return 0;
	length = perfring_build_id_of(object->dlpi_name, id);
	at += sprintf(at, "/usr/lib/debug/.build-id/");
	for (int64_t i = 0; i < length; i++)
		at += sprintf(at, i ? "%02x" : "%02x/", id[i]);
	sprintf(at, ".debug");
	return 1;
}

/* Of the test itself, which has many units, and of libc. */
Test(lines, of_objects_are_libdws, .timeout = 300)
{
	char path[256] = "";

	set_up();
	compare_with_libdw("/proc/self/exe", 100, is_long() ? 512 : 16, is_long() ? 1 : 16, is_long() ? 1 : 4);
	if (dl_iterate_phdr(find_libc, path) == 1 && !access(path, R_OK))
		compare_with_libdw(path, 1000, is_long() ? 512 : 16, is_long() ? 1 : 16, is_long() ? 1 : 8);
	tear_down();
}
#else
Test(lines, are_libdws)
{
	cr_skip_test("SKIP-ENV: libdw: not found when this was built: install libdw-dev");
}
#endif

/* ---- what packs them, and what becomes of the file ---- */

static int open_in_folder(const char *name, struct perfring_lines **lines)
{
	static const struct perfring_places nowhere;
	int fd = open(in_folder(name), O_RDONLY | O_CLOEXEC), error;
	const char *exceeded = NULL;

	cr_assert_geq(fd, 0, "%s", name);
	error = perfring__lines_open(lines, fd, &nowhere, name, &exceeded);
	close(fd);
	return error;
}

/* Returns how many addresses have functions, which are the same in both. */
static unsigned compare_lines(struct perfring_lines *one, struct perfring_lines *other)
{
	struct perfring_line_frame ours[MOST], theirs[MOST];
	unsigned found = 0;

	for (uint64_t at = 0x1000; at < 0x2000; at++) {
		int count = perfring__lines_find(one, at, ours, MOST);

		cr_assert_eq(perfring__lines_find(other, at, theirs, MOST), count);
		for (int i = 0; i < count; i++) {
			cr_assert_eq(ours[i].line, theirs[i].line);
			cr_assert_eq(!ours[i].function, !theirs[i].function);
			if (ours[i].function)
				cr_assert_str_eq(ours[i].function, theirs[i].function);
			cr_assert_str_eq(ours[i].file, theirs[i].file);
		}
		found += count > 0;
	}
	return found;
}

Test(lines, packed)
{
	static const struct {
		const char *by;
		bool is_known;
	} cases[] = {{"zlib", PERFRING_HAS_ZLIB}, {"zlib-gnu", PERFRING_HAS_ZLIB}, {"zstd", PERFRING_HAS_ZSTD}};
	struct perfring_lines *plain, *packed;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -O2 -g -o c.so inlined.c", "", "");
	cr_assert_eq(open_in_folder("c.so", &plain), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run("objcopy --compress-debug-sections=", cases[i].by, " c.so packed.so");
		cr_assert_eq(open_in_folder("packed.so", &packed), cases[i].is_known ? 0 : -EOPNOTSUPP, "%s",
			     cases[i].by);
		if (cases[i].is_known)
			cr_assert_geq(compare_lines(plain, packed), 100);
		perfring__lines_close(packed);
	}
	perfring__lines_close(plain);
	tear_down();
}

/* What was read stays, and what is not there any more is not read. */
Test(lines, files_become_shorter)
{
	struct perfring_lines *whole, *shorter;
	unsigned opened = 0;
	struct stat status;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -O2 -g -gz=none -o c.so inlined.c && cp c.so d.so", "", "");
	cr_assert_eq(open_in_folder("c.so", &whole), 0);
	cr_assert_eq(open_in_folder("d.so", &shorter), 0);
	cr_assert_eq(stat(in_folder("d.so"), &status), 0);
	cr_assert_eq(truncate(in_folder("d.so"), 0), 0);
	cr_assert_geq(compare_lines(whole, shorter), 100);
	perfring__lines_close(shorter);
	for (off_t size = 0; size < status.st_size; size += 61) {
		run("cp c.so d.so", "", "");
		cr_assert_eq(truncate(in_folder("d.so"), size), 0);
		opened += !open_in_folder("d.so", &shorter);
		perfring__lines_close(shorter);
	}
	/* the headers of sections stand last */
	cr_assert_eq(opened, 0, "%u", opened);
	perfring__lines_close(whole);
	tear_down();
}

/* The debug file that its link names; without it there is nothing. */
Test(lines, of_a_debug_file)
{
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol symbol;
	uint64_t at = 0;
	int count;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -Wl,--build-id -O2 -g -o whole.so inlined.c",
	    " && objcopy --only-keep-debug whole.so c.debug && strip -o c.so whole.so",
	    " && strip -o bare.so whole.so && objcopy --add-gnu-debuglink=c.debug c.so");
	for (uint64_t i = 0; i < 1 << 16 && !at; i++)
		if (perfring_symbol_find(get(in_folder("whole.so")), i, &symbol) && !strcmp(symbol.name, "outer"))
			at = i + 8;
	cr_assert_neq(at, 0);
	count = perfring_symbol_frames(get(in_folder("c.so")), at, frames, 8);
	cr_assert_geq(count, 2);
	cr_assert_str_eq(frames[count - 1].name, "outer");
	cr_assert_str_eq(base(frames[0].file), "inlined.c");
	/* as many as are wanted: the innermost ones */
	cr_assert_eq(perfring_symbol_frames(get(in_folder("c.so")), at, frames, 1), 1);
	cr_assert_eq(perfring_symbol_frames(get(in_folder("c.so")), at, frames, 0), 0);
	cr_assert_eq(perfring_symbol_frames(get(in_folder("bare.so")), at, frames, 8), 0);
	cr_assert_eq(perfring_symbol_frames(get("/nowhere"), at, frames, 8), 0);
	cr_assert_eq(perfring_symbol_frames(get("//anon"), at, frames, 8), 0);
	cr_assert_eq(perfring_symbol_frames(get(in_folder("whole.so")), UINT64_MAX, frames, 8), 0);
	tear_down();
}

/* Without a build id the debug file is known by its checksum, and then by its inode: another file there is not it. */
Test(lines, of_a_debug_file_by_its_sum)
{
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol symbol;
	uint64_t at = 0;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -Wl,--build-id=none -O2 -g -o whole.so inlined.c",
	    " && objcopy --only-keep-debug whole.so c.debug && strip -o c.so whole.so",
	    " && objcopy --add-gnu-debuglink=c.debug c.so && cp c.so d.so");
	for (uint64_t i = 0; i < 1 << 16 && !at; i++)
		if (perfring_symbol_find(get(in_folder("c.so")), i, &symbol) && !strcmp(symbol.name, "outer"))
			at = i + 8;
	cr_assert_neq(at, 0);
	cr_assert(perfring_symbol_find(get(in_folder("d.so")), at, &symbol));
	cr_assert_geq(perfring_symbol_frames(get(in_folder("c.so")), at, frames, 8), 2);
	cr_assert_str_eq(base(frames[0].file), "inlined.c");
	run("cp c.debug other && mv other c.debug", "", "");
	cr_assert_eq(perfring_symbol_frames(get(in_folder("d.so")), at, frames, 8), 0);
	tear_down();
}

/* The first table of lines of the file, made longer by rows that say nothing. */
static void lengthen(const char *from, const char *to, uint32_t rows)
{
	char command[256];
	unsigned char *bytes;
	uint32_t length, old;
	FILE *file;
	size_t size;

	snprintf(command, sizeof(command), "objcopy --dump-section .debug_line=table %s", from);
	run(command, "", "");
	bytes = hostile_read(open(in_folder("table"), O_RDONLY), &size);
	memcpy(&old, bytes, 4);
	cr_assert_eq(old + 4, size, "one table");
	length = old + rows;
	memcpy(bytes, &length, 4);
	file = fopen(in_folder("table"), "w");
	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, size, file), size);
	for (uint32_t i = 0; i < rows; i++)
		putc(1, file); /* DW_LNS_copy */
	cr_assert_eq(fclose(file), 0);
	free(bytes);
	snprintf(command, sizeof(command), "objcopy --update-section .debug_line=table %s %s", from, to);
	run(command, "", "");
}

/* A table that may take too much memory is not read: there are names, and the reason why there are no lines. */
Test(lines, tables_are_bounded)
{
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol_state state;
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;
	uint64_t at = 0;
	int count;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -O2 -g -nostdlib -o c.so inlined.c", "", "");
	lengthen("c.so", "long.so", 1 << 20);
	lengthen("c.so", "longer.so", 4 << 20);
	for (uint64_t i = 0; i < 1 << 16 && !at; i++)
		if (perfring_symbol_find(get(in_folder("c.so")), i, &symbol) && !strcmp(symbol.name, "outer"))
			at = i + 8;
	cr_assert_neq(at, 0);
	for (int turn = 0; turn < 2; turn++) {
		object = get(in_folder(turn ? "longer.so" : "long.so"));
		count = perfring_symbol_frames(object, at, frames, 8);
		cr_assert_geq(count, 2);
		cr_assert_str_eq(frames[count - 1].name, "outer");
		cr_assert_eq(!frames[0].file, turn);
		cr_assert_eq(!frames[count - 1].file, turn);
		perfring_symbol_state_of(object, &state);
		cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
		cr_assert_eq(!!state.exceeded, turn);
		if (turn)
			cr_assert_str_eq(state.exceeded, "4 MiB in a unit's table of lines");
		cr_assert_eq(perfring_symbols_get(
				     symbols,
				     &(struct perfring_symbol_file){.path = in_folder(turn ? "longer.so" : "long.so")},
				     &object),
			     turn, "it is news");
	}
	tear_down();
}

/* Moves .debug_str to the end of the file, where it has that many bytes; those that follow its own take no space on the disk. */
static void move_texts(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Shdr section, names;
	Elf64_Ehdr header;
	struct stat status;
	char name[16], *texts;

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &status), 0);
	cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
	cr_assert_eq(pread(fd, &names, sizeof(names), (off_t)(header.e_shoff + header.e_shstrndx * sizeof(names))),
		     sizeof(names));
	for (unsigned i = 0; i < header.e_shnum; i++) {
		off_t at = (off_t)(header.e_shoff + i * sizeof(section));

		cr_assert_eq(pread(fd, &section, sizeof(section), at), sizeof(section));
		cr_assert_gt(pread(fd, name, sizeof(name), (off_t)(names.sh_offset + section.sh_name)), 0);
		if (strcmp(name, ".debug_str"))
			continue;
		texts = malloc(section.sh_size);
		cr_assert_eq(pread(fd, texts, section.sh_size, (off_t)section.sh_offset), (ssize_t)section.sh_size);
		cr_assert_eq(pwrite(fd, texts, section.sh_size, status.st_size), (ssize_t)section.sh_size);
		free(texts);
		section.sh_offset = (uint64_t)status.st_size;
		section.sh_size = bytes;
		cr_assert_eq(pwrite(fd, &section, sizeof(section), at), sizeof(section));
		cr_assert_eq(ftruncate(fd, status.st_size + (off_t)bytes), 0);
		bytes = 0;
	}
	cr_assert_eq(bytes, 0, "it has no .debug_str");
	close(fd);
}

/* Sections that may take too much memory are not read: there are symbols, and the reason why there are no lines. */
Test(lines, sections_are_bounded)
{
	struct perfring_symbol_file file = {.path = NULL};
	struct perfring_symbol_object *object;
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol_state state;
	struct perfring_symbol symbol;
	uint64_t at = 0;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -O2 -g -gz=none -Wl,--build-id -o small.so inlined.c && cp small.so large.so", "", "");
	move_texts(in_folder("small.so"), 1 << 20);
	move_texts(in_folder("large.so"), (1 << 30) + 1);
	for (int turn = 0; turn < 2; turn++) {
		file.path = in_folder(turn ? "large.so" : "small.so");
		object = get(file.path);
		for (at = 0;
		     at < 1 << 16 && (!perfring_symbol_find(object, at, &symbol) || strcmp(symbol.name, "outer") != 0);
		     at++)
			;
		cr_assert_lt(at, 1 << 16);
		cr_assert_eq(perfring_symbol_frames(object, at + 8, frames, 8) == 0, turn);
		perfring_symbol_state_of(object, &state);
		cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
		cr_assert_eq(!!state.exceeded, turn);
		if (turn)
			cr_assert_str_eq(state.exceeded, "1 GiB in sections of DWARF");
		cr_assert_eq(perfring_symbols_get(symbols, &file, &object), turn, "it is news");
	}
	tear_down();
}

/* Returns how many addresses have the same functions, lines and files in both. */
static unsigned compare_objects(struct perfring_symbol_object *one, struct perfring_symbol_object *other)
{
	static struct chain ours, theirs;
	unsigned found = 0;

	for (uint64_t at = 0x1000; at < 0x2000; at++) {
		describe(one, at, &ours);
		describe(other, at, &theirs);
		cr_assert_eq(ours.count, theirs.count, "%lx", (unsigned long)at);
		for (int i = 0; i < ours.count; i++) {
			cr_assert_str_eq(ours.functions[i], theirs.functions[i]);
			cr_assert_str_eq(ours.places[i], theirs.places[i]);
		}
		found += ours.count > 1;
	}
	return found;
}

/* Large sections stay in the file, and units, tables and texts are read when they are needed: with the same result, for as long as the
 * file is not written.  A link more is no write. */
Test(lines, large_sections_stay_in_the_file)
{
	static const char *const options[] = {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gdwarf64",
					      "-g -flto -flto-partition=max"};
	struct perfring_symbol_frame frames[MOST];
	char names[3][16];
	int fd;

	set_up();
	write_source("inlined.c", c_source);
	run("sed 's/both/fun/; s/outer/two_outer/; s/plain/two_plain/; s/middle/mid/; s/deep/dee/' inlined.c >two.c",
	    "", "");
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		for (unsigned j = 0; j < 3; j++)
			snprintf(names[j], sizeof(names[j]), "%c%u.so", "cde"[j], i);
		run("gcc -w -shared -fPIC -O2 -gz=none ", options[i], " -o c.so inlined.c two.c");
		run("mv c.so ", names[0], "");
		for (unsigned j = 1; j < 3; j++) {
			run("cp c?.so ", names[j], "");
			move_texts(in_folder(names[j]), 9 << 20);
		}
		cr_assert_eq(perfring_symbol_frames(get(in_folder(names[1])), 0, frames, MOST), 0);
		usleep(20000); /* times of files are of the clock's ticks */
		run("ln ", names[1], " c.link");
		cr_assert_geq(compare_objects(get(in_folder(names[0])), get(in_folder(names[1]))), 100);
		/* its units are known, but not read */
		cr_assert_eq(perfring_symbol_frames(get(in_folder(names[2])), 0, frames, MOST), 0);
		usleep(20000);
		fd = open(in_folder(names[2]), O_WRONLY | O_CLOEXEC);
		cr_assert_eq(pwrite(fd, "", 1, 15), 1);
		close(fd);
		for (uint64_t at = 0x1000; at < 0x2000; at++) {
			int count = perfring_symbol_frames(get(in_folder(names[2])), at, frames, MOST);

			cr_assert_leq(count, 1);
			cr_assert(!count || (!frames[0].file && !frames[0].line));
		}
		run("rm c?.so d?.so e?.so c.link", "", "");
	}
	tear_down();
}

/* Two units of 40 MiB, each with two functions that have an inlined call. */
static const char units_source[] =
	".text\n"
	".irp name, f1, f2, f3, f4\n"
	".globl \\name\n"
	".type \\name, @function\n"
	"\\name: .fill 32, 1, 0x90\n"
	".size \\name, 32\n"
	".endr\n"
	".section .debug_abbrev, \"\", @progbits\n"
	".Labbrev: .byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n" /* unit: low_pc, high_pc */
	".byte 2, 0x2e, 1, 0x11, 1, 0x12, 6, 0, 0\n"           /* function */
	".byte 3, 0x1d, 0, 3, 8, 0x11, 1, 0x12, 6, 0, 0, 0\n"  /* inlined call, with its name */
	".section .debug_info, \"\", @progbits\n"
	".macro function name, call\n"
	".byte 2\n"
	".quad \\name\n"
	".long 32\n"
	".byte 3\n"
	".asciz \"\\call\"\n"
	".quad \\name\n"
	".long 32\n"
	".byte 0\n"
	".endm\n"
	".macro unit first, one, second, other\n"
	".long 2f - 1f\n"
	"1: .value 4\n"
	".long .Labbrev\n"
	".byte 8, 1\n"
	".quad \\first\n"
	".long 64\n"
	"function \\first, \\one\n"
	"function \\second, \\other\n"
	".zero 40 << 20\n"
	"2:\n"
	".endm\n"
	"unit f1, c1, f2, c2\n"
	"unit f3, c3, f4, c4\n";

/* No more than 64 MiB of units are held, at first: those that are asked in turn are read again. */
Test(lines, large_units_are_read_again)
{
	static const unsigned order[] = {0, 2, 1, 3, 0, 2};
	struct perfring_symbol_object *object;
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol_stack stacks[4];
	struct perfring_symbol symbol;
	uint64_t at = 0, offsets[4];
	char name[8];

	set_up();
	write_source("units.s", units_source);
	run("gcc -shared -nostdlib -o units.so units.s", "", "");
	object = get(in_folder("units.so"));
	while (at < 1 << 16 && !perfring_symbol_find(object, at, &symbol))
		at++;
	cr_assert_str_eq(symbol.name, "f1");
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(perfring_symbol_frames(object, at + 32 * order[i] + 8, frames, 8), 2, "%u", i);
		snprintf(name, sizeof(name), "c%u", order[i] + 1);
		cr_assert_str_eq(frames[0].name, name);
		snprintf(name, sizeof(name), "f%u", order[i] + 1);
		cr_assert_str_eq(frames[1].name, name);
		offsets[order[i]] = at + 32 * order[i] + 8;
	}
	cr_assert_eq(perfring_symbol_stacks(object, offsets, 4, stacks), 4);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(stacks[i].count, 2);
		snprintf(name, sizeof(name), "c%u", i + 1);
		cr_assert_str_eq(stacks[i].frames[0].name, name);
	}
	tear_down();
}

/* Many offsets at once, in no order, some of them twice, some of nothing: the same as one after another. */
Test(lines, stacks_are_frames)
{
	enum {
		COUNT = 70000,
	};
	static uint64_t offsets[COUNT];
	static struct perfring_symbol_stack stacks[COUNT];
	struct perfring_symbol_frame frames[64];
	struct perfring_symbol_object *object;
	uint64_t state = 88172645463325252;
	unsigned known = 0;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -shared -fPIC -O2 -g -o c.so inlined.c && strip -o bare.so c.so", "", "");
	object = get(in_folder("c.so"));
	for (size_t i = 0; i < COUNT; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		offsets[i] = i % 16 ? 0x1000 + state % 0x400 : state;
	}
	cr_assert_eq(perfring_symbol_stacks(object, offsets, 0, stacks), 0);
	cr_assert_eq(perfring_symbol_stacks(object, offsets, 1, stacks), 1);
	cr_assert_eq(perfring_symbol_stacks(object, offsets, COUNT, stacks), 65536);
	for (size_t i = 0; i < 65536; i++) {
		int count = (int)stacks[i].count;

		cr_assert_eq(perfring_symbol_frames(object, offsets[i], frames, 64), count, "%zx", (size_t)offsets[i]);
		for (int j = 0; j < count; j++) {
			cr_assert_eq(stacks[i].frames[j].name, frames[j].name);
			cr_assert_eq(stacks[i].frames[j].file, frames[j].file);
			cr_assert_eq(stacks[i].frames[j].line, frames[j].line);
			cr_assert_eq(stacks[i].frames[j].is_inlined, frames[j].is_inlined);
		}
		known += count > 1;
	}
	cr_assert_gt(known, 5000);
	memset(stacks, 0xff, sizeof(stacks));
	cr_assert_eq(perfring_symbol_stacks(get(in_folder("bare.so")), offsets, 9, stacks), 9);
	for (int i = 0; i < 9; i++)
		cr_assert_eq(stacks[i].count, 0);
	tear_down();
}

/* Functions of which each has the same list of empty ranges; then one that is there, with an inlined call. */
static const char ranges_source[] = ".text\n"
				    ".globl f\n"
				    ".type f, @function\n"
				    "f: .fill 32, 1, 0x90\n"
				    ".size f, 32\n"
				    ".section .debug_abbrev, \"\", @progbits\n"
				    ".Labbrev: .byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n" /* unit: low_pc, high_pc */
				    ".byte 2, 0x2e, 0, 0x55, 0x17, 0, 0\n"                 /* function: ranges */
				    ".byte 3, 0x2e, 1, 0x11, 1, 0x12, 6, 0, 0\n"           /* function, with children */
				    ".byte 4, 0x1d, 0, 0x11, 1, 0x12, 6, 0, 0, 0\n"        /* inlined call */
				    ".section .debug_info, \"\", @progbits\n"
				    ".long .Llast - .Lfirst\n"
				    ".Lfirst: .value 4\n"
				    ".long .Labbrev\n"
				    ".byte 8, 1\n"
				    ".quad f\n"
				    ".long 32\n"
				    ".rept 65536\n"
				    ".byte 2, 0, 0, 0, 0\n"
				    ".endr\n"
				    ".byte 3\n"
				    ".quad f\n"
				    ".long 32\n"
				    ".byte 4\n"
				    ".quad f\n"
				    ".long 32\n"
				    ".byte 0, 0\n"
				    ".Llast: .section .debug_ranges, \"\", @progbits\n"
				    ".rept COUNT\n"
				    ".quad 1, 1\n"
				    ".endr\n"
				    ".quad 0, 0\n";

/* They take no memory, and are counted all the same: 65 536 times 1025 are more than 2^26. */
Test(lines, empty_ranges_are_bounded)
{
	static const char *const counts[] = {"16", "1025"};
	struct perfring_symbol_object *object;
	struct perfring_symbol_frame frames[8];
	struct perfring_symbol symbol;
	uint64_t at;

	set_up();
	write_source("ranges.s", ranges_source);
	for (int turn = 0; turn < 2; turn++) {
		run("sed s/COUNT/", counts[turn], "/ ranges.s >a.s && gcc -shared -nostdlib -o a.so a.s");
		run("mv a.so ", counts[turn], "");
		object = get(in_folder(counts[turn]));
		for (at = 0; at < 1 << 16 && !perfring_symbol_find(object, at, &symbol); at++)
			;
		cr_assert_str_eq(symbol.name, "f");
		cr_assert_eq(perfring_symbol_frames(object, at + 8, frames, 8), turn ? 1 : 2);
	}
	tear_down();
}

/* Any byte of the DWARF may be any other: it ends, and stays in bounds. */
Test(lines, damaged)
{
	struct perfring_symbol_stack stacks[256];
	struct perfring_symbol_frame frames[8];
	uint64_t offsets[256];
	uint64_t state = 88172645463325252;
	unsigned char *whole, *bytes;
	size_t size, first;
	unsigned known = 0;
	int fd;

	set_up();
	write_source("inlined.c", c_source);
	run("gcc -c -fPIC -O2 -g -o c.o inlined.c", " && ld -shared -o c.so c.o", "");
	whole = hostile_read(open(in_folder("c.so"), O_RDONLY), &size);
	bytes = malloc(size);
	/* what follows the code: all of its sections that are not loaded, and the tables of symbols and sections */
	first = 0x2000 < size / 2 ? 0x2000 : size / 2;
	for (unsigned round = 0; round < 400; round++) {
		char path[600];

		memcpy(bytes, whole, size);
		for (unsigned i = 0; i < 1 + round % 8; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			bytes[first + state % (size - first)] = (unsigned char)(state >> 40);
		}
		snprintf(path, sizeof(path), "%s/%u.so", folder, round);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
		close(fd);
		for (uint64_t at = 0; at < 256; at++) {
			offsets[at] = 0x1000 + at;
			known += perfring_symbol_frames(get(path), offsets[at], frames, 8) > 0;
		}
		cr_assert_eq(perfring_symbol_stacks(get(path), offsets, 256, stacks), 256);
		unlink(path);
	}
	cr_assert_gt(known, 1000, "%u", known);
	free(bytes);
	free(whole);
	tear_down();
}
