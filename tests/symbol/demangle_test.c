/* demangle_test.c - names of C++ and Rust in objects, as symbol.h shows them: beside c++filt, and hostile ones. */
#include <perfring/config.h>
#include <perfring/symbol.h>
#include "hostile.h"

TestSuite(demangle, .timeout = 120);

static char folder[64];
static char object_path[128];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/demangle_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(object_path, sizeof(object_path), "%s/object", folder);
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

/* An object in which the i-th name is that of the 16 bytes at 0x2000 + 16 * i. */
static void write_names(const char *const *names, size_t count)
{
	struct hostile_symbol *symbols = calloc(count, sizeof(*symbols));
	struct hostile_bytes strings = {0};

	cr_assert_not_null(symbols);
	hostile_put(&strings, "", 1);
	for (size_t i = 0; i < count; i++) {
		symbols[i] = (struct hostile_symbol){(uint32_t)strings.size, 0x2000 + 16 * i, 16};
		hostile_put(&strings, names[i], strlen(names[i]) + 1);
	}
	hostile_write_elf(object_path, strings.bytes, strings.size, symbols, count);
	free(strings.bytes);
	free(symbols);
}

static struct perfring_symbols *symbols;
static struct perfring_symbol_object *object;

static void open_object(const char *path, uint32_t flags)
{
	const struct perfring_symbols_options options = {.flags = flags};

	cr_assert_eq(perfring_symbols_open(&symbols, &options), 0);
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object), 1);
}

static const char *name_of(size_t i)
{
	struct perfring_symbol symbol;

	cr_assert(perfring_symbol_find(object, 0x2000 + 16 * i, &symbol), "%zu", i);
	return symbol.name;
}

/* What perf report of Debian 12 shows. */
static const struct {
	const char *name, *shown;
} cases[] = {
	{"main", "main"},
	{"_init", "_init"},
	{"_ZN3foo3barEi", "foo::bar"},
	{"_ZN3fooC2Ev", "foo::foo"},
	{"_ZN3fooD0Ev", "foo::~foo"},
	{"_ZNK3fooclEv", "foo::operator()"},
	{"_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"},
	{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
	{"_Z3runv.cold", "run"},
	{"_Z3runi@plt", "run@plt"},
	{"_Z3runi@@VERSION_1.0", "run@@VERSION_1.0"},
	{"_ZTv0_n24_N3foo3barEv", "virtual thunk to foo::bar()"},
	{"_ZZN3foo3barEvENKUlvE_clEv", "foo::bar()::{lambda()#1}::operator()"},
	{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
	{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
	 "<Test + 'static as foo::Bar<Test>>::bar"},
	{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	{"_RNvC6_123foo3bar", "123foo::bar"},
	{"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
	/* what only begins so */
	{"_Z", "_Z"},
	{"_Zero", "_Zero"},
	{"_R", "_R"},
	{"_Reset_all", "_Reset_all"},
	{"_ZN3foo", "_ZN3foo"},
	{"_ZN999999999999foo3barEv", "_ZN999999999999foo3barEv"},
	{"@", "@"},
	{"_Z3runv", "run"},
};

enum {
	COUNT = sizeof(cases) / sizeof(cases[0])
};

Test(demangle, names)
{
	const char *names[COUNT];

	make_folder();
	for (size_t i = 0; i < COUNT; i++)
		names[i] = cases[i].name;
	write_names(names, COUNT);
	open_object(object_path, 0);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < COUNT; i++)
			cr_assert_str_eq(name_of(i), PERFRING_HAS_IBERTY ? cases[i].shown : cases[i].name, "%s",
					 name_of(i));
	perfring_symbols_close(symbols);
	open_object(object_path, PERFRING_SYMBOLS_MANGLED);
	for (size_t i = 0; i < COUNT; i++)
		cr_assert_str_eq(name_of(i), cases[i].name);
	perfring_symbols_close(symbols);
	cr_assert_eq(perfring_symbols_open(&symbols, &(struct perfring_symbols_options){.flags = 1u << 31}), -EINVAL);
	remove_folder();
}

/* Of two names of one address the longer one is shown: as they are shown. */
Test(demangle, aliases)
{
	/* one begins with fewer underscores and is longer as it is, the other as it is shown */
	static const char strings[] = "\0"
				      "_ZN1aIiE1bEv\0"
				      "an_alias_of_this";
	static const struct hostile_symbol both[] = {{1, 0x2000, 16}, {14, 0x2000, 16}};

	make_folder();
	hostile_write_elf(object_path, strings, sizeof(strings), both, 2);
	open_object(object_path, 0);
	cr_assert_str_eq(name_of(0), "an_alias_of_this");
	perfring_symbols_close(symbols);
	remove_folder();
}

/* 300 bytes that stand for some 2^33; thousands of them. */
Test(demangle, names_without_end)
{
	enum {
		LEVELS = 30,
		MANY = 1000
	};
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static char bombs[MANY][512];
	const char *names[MANY];
	struct timespec before, after;

	make_folder();
	for (int i = 0; i < MANY; i++) {
		char *at = bombs[i] + sprintf(bombs[i], "_Z4f%03dISt4pairIiiE", i);

		for (int level = 1; level < LEVELS; level++)
			at += sprintf(at, "S0_IS%c_S%c_E", digits[level], digits[level]);
		strcpy(at, "Evv");
		names[i] = bombs[i];
	}
	write_names(names, MANY);
	open_object(object_path, 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (size_t i = 0; i < MANY; i++)
		cr_assert_str_eq(name_of(i), names[i]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	cr_assert_lt((double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec), 10);
	perfring_symbols_close(symbols);
	remove_folder();
}

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Names that begin well, and go on with any bytes of well-formed ones. */
Test(demangle, damaged_names)
{
	enum {
		MANY = 4000
	};
	static char damaged[MANY][256];
	const char *names[MANY];
	uint64_t state = 88172645463325252;

	make_folder();
	for (int i = 0; i < MANY; i++) {
		const char *one = cases[random_number(&state) % COUNT].name;
		const char *other = cases[random_number(&state) % COUNT].name;
		int cut = (int)(random_number(&state) % (strlen(one) + 1));

		snprintf(damaged[i], sizeof(damaged[i]), "%.*s%s", cut, one,
			 other + random_number(&state) % strlen(other));
		if (damaged[i][0] && random_number(&state) % 2)
			damaged[i][random_number(&state) % strlen(damaged[i])] =
				(char)(1 + random_number(&state) % 255);
		if (!damaged[i][0])
			strcpy(damaged[i], "x");
		names[i] = damaged[i];
	}
	write_names(names, MANY);
	open_object(object_path, 0);
	for (size_t i = 0; i < MANY; i++)
		cr_assert_gt(strlen(name_of(i)), 0);
	perfring_symbols_close(symbols);
	remove_folder();
}

/* Each function that libstdc++ exports has the name that c++filt says of one of its symbols. */
Test(demangle, libstdcxx)
{
	static const char *const libraries[] = {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
						"/usr/lib/aarch64-linux-gnu/libstdc++.so.6"};
	const char *library = NULL;
	char command[512], line[8192];
	unsigned known = 0, wrong = 0;
	FILE *names;

	for (size_t i = 0; i < 2; i++)
		library = access(libraries[i], R_OK) ? library : libraries[i];
	if (!library || !PERFRING_HAS_IBERTY)
		cr_skip_test("SKIP-ENV: libstdc++.so.6 or libiberty: not here: install libstdc++6 and libiberty-dev");
	open_object(library, 0);
	/* "address<TAB>name" of each function; its segment of code has offsets that are its addresses */
	snprintf(
		command, sizeof(command),
		"nm -D --defined-only %s | awk '$2 ~ /^[TtWi]$/ { sub(/@.*/, \"\", $3); print $1 \"\\t\" $3 }' | c++filt -p -i | sort",
		library);
	names = popen(command, "r");
	cr_assert_not_null(names);
	{
		char shown[8192] = "";
		uint64_t last = 0;
		bool is_one = true;

		while (fgets(line, sizeof(line), names)) {
			char *tab = strchr(line, '\t');
			struct perfring_symbol symbol;
			uint64_t address = strtoull(line, NULL, 16);

			cr_assert_not_null(tab);
			tab[strcspn(tab, "\n")] = 0;
			if (address != last) {
				wrong += !is_one;
				is_one = false;
				known++;
				last = address;
				cr_assert(perfring_symbol_find(object, address, &symbol), "%s", tab + 1);
				cr_assert_eq(symbol.address, address);
				snprintf(shown, sizeof(shown), "%s", symbol.name);
			}
			is_one = is_one || !strcmp(shown, tab + 1);
			if (!is_one && wrong < 3)
				fprintf(stderr, "%s, and not %s\n", shown, tab + 1);
		}
		wrong += !is_one;
	}
	cr_assert_eq(pclose(names), 0);
	cr_assert_gt(known, 2000);
	cr_assert_eq(wrong, 0, "%u of %u", wrong, known);
	perfring_symbols_close(symbols);
}
