/* kernel_symbols_test.c - the symbols of the kernel that was recorded, and of no other, by symbol.h. */
#include <errno.h>
#include <inttypes.h>
#include <perfring/build_id.h>
#include <perfring/symbol.h>
#include "hostile.h"

TestSuite(kernel_symbols, .timeout = 60);

static char folder[64];
static struct perfring_symbols *symbols;
static struct perfring_symbol_object *kernel;

static const char *in_folder(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void set_up(void)
{
	snprintf(folder, sizeof(folder), "/tmp/kernel_symbols.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	setenv("HOME", folder, 1);
	unsetenv("PERF_BUILDID_DIR");
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
}

static void tear_down(void)
{
	char command[96];

	perfring_symbols_close(symbols);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
	cr_assert_eq(fclose(file), 0);
}

static enum perfring_symbol_why why(const struct perfring_symbol_kernel *which)
{
	struct perfring_symbol_state state;

	cr_assert_eq(perfring_symbols_get_kernel(symbols, which, &kernel), 0);
	perfring_symbol_state_of(kernel, &state);
	return state.why;
}

/* "name+offset[module]", or "" */
static const char *at(uint64_t address)
{
	static char text[256];
	struct perfring_symbol symbol;

	if (!perfring_symbol_find(kernel, address, &symbol)) {
		cr_assert_null(symbol.name);
		return "";
	}
	snprintf(text, sizeof(text), "%s+%" PRIu64 "%s", symbol.name, address - symbol.start,
		 symbol.module ? symbol.module : "");
	return text;
}

static const char some[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 T startup_64\n"
			   "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000100 t do_one\n"
			   "ffffffff81000200 W weak_one\n"
			   "ffffffff81000300 D data\n"
			   "ffffffff81000400 T last_one\n"
			   "ffffffff82000000 B _end\n"
			   "ffffffffc0000000 t in_module\t[ext4]\n"
			   "ffffffffc0000080 t twice\t[ext4]\n"
			   "ffffffffc0002000 t of_bpf\t[bpf]\n"
			   "line without an address\n"
			   "ffffffffc0003000\n"
			   "ffffffffc0003000 t\n";

Test(kernel_symbols, of_a_file)
{
	set_up();
	write_text(in_folder("kallsyms"), some);
	cr_assert_eq(why(&(struct perfring_symbol_kernel){.kallsyms = in_folder("kallsyms")}), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffff81000000), "_text+0"); /* the last one */
	cr_assert_str_eq(at(0xffffffff810000ff), "_text+255");
	cr_assert_str_eq(at(0xffffffff81000104), "do_one+4");
	cr_assert_str_eq(at(0xffffffff81000200), "weak_one+0");
	cr_assert_str_eq(at(0xffffffff810002ff), "weak_one+255");
	cr_assert_str_eq(at(0xffffffff81000300), "data+0");
	cr_assert_str_eq(at(0xffffffff81000fff), "last_one+3071");
	cr_assert_str_eq(at(0xffffffffc0000001), "in_module+1[ext4]");
	cr_assert_str_eq(at(0xffffffffc0001000), "twice+3968[ext4]");
	cr_assert_str_eq(at(0xffffffffc0002010), "of_bpf+16[bpf]");
	/* before the first, long after the kernel's last, and after the last of all */
	cr_assert_str_eq(at(0xffffffff80ffffff), "");
	cr_assert_str_eq(at(0xffffffff82000fff), "_end+4095");
	cr_assert_str_eq(at(0xffffffff82001000), "");
	cr_assert_str_eq(at(0xffffffffc0009000), "");
	cr_assert_str_eq(at(UINT64_MAX), "");
	cr_assert_str_eq(at(0x400000), "");
	tear_down();
}

/* Of another boot: the kernel itself was elsewhere by one distance, modules anywhere. */
Test(kernel_symbols, of_another_boot)
{
	struct perfring_symbol_kernel which = {.reference = "_text", .address = 0xffffffff90000000};

	set_up();
	write_text(in_folder("kallsyms"), some);
	which.kallsyms = in_folder("kallsyms");
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffff90000104), "do_one+4");
	cr_assert_str_eq(at(0xffffffff81000104), "");
	cr_assert_str_eq(at(0xffffffffc0000001), "");
	cr_assert_str_eq(at(0xffffffffcf000001), "");
	which.address = 0xffffffff70000000; /* below */
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffff70000200), "weak_one+0");
	which.address = 0xffffffff81000000; /* where it is */
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffffc0000001), "in_module+1[ext4]");
	tear_down();
}

Test(kernel_symbols, hidden_or_no_list)
{
	struct perfring_symbol_kernel which = {.kallsyms = NULL};
	uint8_t id[24] = {0};

	set_up();
	write_text(in_folder("hidden"), "0000000000000000 T _text\n0000000000000000 T do_one\n");
	which.kallsyms = in_folder("hidden");
	cr_assert_eq(why(&which), PERFRING_SYMBOL_HIDDEN);
	cr_assert_str_eq(at(0xffffffff81000104), "");
	which.kallsyms = "/nowhere/kallsyms";
	cr_assert_eq(why(&which), PERFRING_SYMBOL_UNREADABLE);
	which.kallsyms = folder;
	cr_assert_eq(why(&which), PERFRING_SYMBOL_UNREADABLE);
	which.kallsyms = NULL;
	which.vmlinux = in_folder("hidden"); /* no ELF image */
	cr_assert_eq(why(&which), PERFRING_SYMBOL_UNREADABLE);
	which = (struct perfring_symbol_kernel){.build_id = id, .build_id_size = 21};
	cr_assert_eq(perfring_symbols_get_kernel(symbols, &which, &kernel), -EINVAL);
	tear_down();
}

/* A kernel of another build or release is not this one, whatever this one is. */
Test(kernel_symbols, of_another_build)
{
	struct perfring_symbol_kernel which = {.release = "2.4.18"};
	uint8_t id[20];
	char command[1024];

	set_up();
	cr_assert_eq(why(&which), PERFRING_SYMBOL_OTHER_BUILD);
	memset(id, 'a', sizeof(id));
	which = (struct perfring_symbol_kernel){.build_id = id, .build_id_size = sizeof(id)};
	if (perfring_build_id_of_kernel((uint8_t[20]){0}) > 0)
		cr_assert_eq(why(&which), PERFRING_SYMBOL_OTHER_BUILD);
	else
		which.release = "2.4.18";
	/* but perf's cache may have it */
	snprintf(command, sizeof(command), "mkdir -p %s/.debug/.build-id/61/61616161616161616161616161616161616161",
		 folder);
	cr_assert_eq(system(command), 0);
	write_text(in_folder(".debug/.build-id/61/61616161616161616161616161616161616161/kallsyms"), some);
	perfring_symbols_close(symbols);
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
	which.reference = "_stext";
	which.address = 0xffffffffa0000000;
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffffa0000104), "do_one+4");
	cr_assert_str_eq(at(0xffffffffc0000001), "");
	tear_down();
}

/* An image, which is linked to one address and loaded to another. */
Test(kernel_symbols, of_an_image)
{
	static const char strings[] = "\0_text\0start_of_all\0do_one";
	static const struct hostile_symbol here[] = {{1, 0x1000, 0}, {7, 0x1000, 0x100}, {20, 0x1100, 0x80}};
	const uint32_t head[3] = {4, 20, NT_GNU_BUILD_ID};
	struct perfring_symbol_kernel which = {.reference = "_text", .address = 0xffffffff81000000};
	struct hostile_bytes table = hostile_table(here, 3);
	unsigned char note[36];
	uint8_t id[20];

	set_up();
	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memset(note + 16, 'a', 20);
	hostile_write_object(in_folder("vmlinux"),
			     (struct hostile_section[]){
				     {".note.gnu.build-id", SHT_NOTE, note, sizeof(note), 0, 0, 0, 0x200},
				     {".symtab", SHT_SYMTAB, table.bytes, table.size, 4, 0, 0, 0},
				     {".strtab", SHT_STRTAB, strings, sizeof(strings), 0, 0, 0, 0},
			     },
			     3);
	which.vmlinux = in_folder("vmlinux");
	which.build_id = id;
	which.build_id_size = sizeof(id);
	memset(id, 'a', sizeof(id));
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(0xffffffff81000010), "start_of_all+16");
	cr_assert_str_eq(at(0xffffffff81000110), "do_one+16");
	cr_assert_str_eq(at(0xffffffff81000180), "");
	cr_assert_str_eq(at(0x1110), "");
	id[3] = 'b';
	cr_assert_eq(why(&which), PERFRING_SYMBOL_OTHER_BUILD);
	cr_assert_str_eq(at(0xffffffff81000110), "");
	free(table.bytes);
	tear_down();
}

/* The running kernel: where it is, and where it was not. */
Test(kernel_symbols, running)
{
	struct perfring_symbol_kernel which = {.reference = "_text"};
	uint64_t address = 0, place = 0;
	char line[1024], name[512];
	uint8_t id[20];
	int64_t size = perfring_build_id_of_kernel(id);
	FILE *list = fopen("/proc/kallsyms", "r");

	while (list && fgets(line, sizeof(line), list))
		if (sscanf(line, "%" SCNx64 " %*c %511s", &address, name) == 2) {
			if (!strcmp(name, "_text"))
				which.address = address;
			else if (!strcmp(name, "__do_sys_getppid") || strstr(name, "_sys_getppid"))
				place = address;
		}
	if (list)
		fclose(list);
	if (!which.address || !place)
		cr_skip_test("SKIP-ENV: /proc/kallsyms: hidden: needs kernel.kptr_restrict=0, or root");
	set_up();
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert(strstr(at(place), "sys_getppid+0"), "%s", at(place));
	/* another boot of a build that is not known */
	which.address += 0x1000000;
	cr_assert_eq(why(&which), PERFRING_SYMBOL_OTHER_BOOT);
	cr_assert_str_eq(at(place), "");
	/* and of this one */
	if (size > 0) {
		which.build_id = id;
		which.build_id_size = (uint32_t)size;
		cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
		cr_assert(strstr(at(place + 0x1000000), "sys_getppid+0"), "%s", at(place + 0x1000000));
	}
	tear_down();
}

/* ---- the text of the running kernel, of perf's cache ---- */

/* How a list in the cache differs from /proc/kallsyms. */
struct cached {
	uint64_t moved;  /* its addresses, as in another boot */
	bool has_no_end; /* it is cut before _etext */
	bool hides;      /* its addresses are 0 */
};

static struct {
	uint64_t text, end, beyond; /* _text, _etext, a symbol after it */
	uint64_t place;             /* of a function in the text */
	char name[256], name_beyond[256];
} running;

/* Writes the list of the running kernel into the cache, with "cached_" before the names of functions.  Returns false: it cannot be read. */
static bool write_cached(const uint8_t *id, int64_t size, const struct cached *how)
{
	char line[1024], path[512] = "", text[64] = "", type;
	FILE *list = fopen("/proc/kallsyms", "r"), *file;
	uint64_t address;
	int name_at;

	for (int64_t i = 0; i < size; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
	snprintf(path, sizeof(path), "mkdir -p %s/.debug/.build-id/%.2s/%s", folder, text, text + 2);
	cr_assert_eq(system(path), 0);
	snprintf(path, sizeof(path), "%s/.debug/.build-id/%.2s/%s/kallsyms", folder, text, text + 2);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	memset(&running, 0, sizeof(running));
	while (list && fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%" SCNx64 " %c %n", &address, &type, &name_at) != 2)
			continue;
		if (!strcmp(line + name_at, "_text"))
			running.text = address;
		if (!strcmp(line + name_at, "_etext"))
			running.end = address;
		if (strstr(line + name_at, "_sys_getppid") && strchr("tT", type)) {
			running.place = address;
			snprintf(running.name, sizeof(running.name), "%s+0", line + name_at);
		}
		if (running.end && address > running.end + 4096 && strchr("tTdD", type) && !strchr(line, '[')) {
			running.beyond = address;
			snprintf(running.name_beyond, sizeof(running.name_beyond), "%s+0", line + name_at);
		}
		if (how->has_no_end && running.end)
			continue;
		fprintf(file, "%016" PRIx64 " %c %s%s\n", how->hides ? 0 : address + how->moved, type,
			line[name_at] == '_' && line[name_at + 1] != '_' ? "" : "cached_", line + name_at);
	}
	if (list)
		fclose(list);
	cr_assert_eq(fclose(file), 0);
	return running.text && running.end && running.place && running.beyond;
}

Test(kernel_symbols, text_of_the_cache)
{
	static const struct cached all = {0}, moved = {.moved = 0x7000000}, cut = {.has_no_end = true},
				   hidden = {.hides = true};
	struct perfring_symbol_kernel which = {.reference = "_text"};
	struct perfring_symbol_state state;
	char cached[300];
	uint8_t id[20];
	int64_t size = perfring_build_id_of_kernel(id);

	set_up();
	if (size <= 0 || !write_cached(id, size, &all))
		cr_skip_test("SKIP-ENV: /proc/kallsyms: hidden: needs kernel.kptr_restrict=0, or root");
	which.build_id = id;
	which.build_id_size = (uint32_t)size;
	which.address = running.text;
	snprintf(cached, sizeof(cached), "cached_%s", running.name);
	/* the text is the cache's, until an address is looked up that is not in it: then all is /proc/kallsyms' */
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), cached);
	cr_assert_str_eq(at(running.beyond), running.name_beyond);
	cr_assert_str_eq(at(running.place), running.name);
	cr_assert_str_eq(at(1), "");
	/* below it */
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), cached);
	cr_assert_str_eq(at(running.text - 1), "");
	cr_assert_str_eq(at(running.place), running.name);
	perfring_symbol_state_of(kernel, &state);
	cr_assert(state.why == PERFRING_SYMBOL_KNOWN && !state.error);
	/* of another boot, and recorded in a third */
	cr_assert(write_cached(id, size, &moved));
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), cached);
	cr_assert_str_eq(at(running.beyond), running.name_beyond);
	which.address += 0x1000000;
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place + 0x1000000), cached);
	cr_assert_str_eq(at(running.beyond + 0x1000000), running.name_beyond);
	cr_assert_str_eq(at(running.place + 0x1000000), running.name);
	which.address -= 0x1000000;
	/* no list: /proc/kallsyms at once */
	cr_assert(write_cached(id, size, &cut));
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), running.name);
	cr_assert(write_cached(id, size, &hidden));
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), running.name);
	/* nor if the recorded build is not known */
	cr_assert(write_cached(id, size, &all));
	which.build_id_size = 0;
	cr_assert_eq(why(&which), PERFRING_SYMBOL_KNOWN);
	cr_assert_str_eq(at(running.place), running.name);
	tear_down();
}
