/* symbol_test.c - names of functions by symbol.h: of real objects, of other builds, of many paths, of other processes'
 * files. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include <perfring/symbol.h>
#include "test.h"

TestSuite(symbol, .timeout = 60);

static struct perfring_symbols *symbols;
static char folder[64];

static void set_up(void)
{
	snprintf(folder, sizeof(folder), "/tmp/symbol_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
}

static void tear_down(void)
{
	char command[96];

	perfring_symbols_close(symbols);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static struct perfring_symbol_object *get(const char *path)
{
	struct perfring_symbol_object *object = NULL;

	cr_assert_geq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object), 0);
	return object;
}

static enum perfring_symbol_why why_of(const struct perfring_symbol_object *object)
{
	struct perfring_symbol_state state;

	perfring_symbol_state_of(object, &state);
	return state.why;
}

/* The offset of an address of this process in the file that is mapped there, whose path is put into `path`. */
static uint64_t offset_of(uint64_t address, char path[512])
{
	uint64_t start, end, offset, found = UINT64_MAX;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];

	cr_assert_not_null(maps);
	path[0] = 0;
	while (found == UINT64_MAX && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511s", &start, &end, &offset,
			   path) >= 3 &&
		    address >= start && address < end)
			found = address - start + offset;
	fclose(maps);
	return found;
}

static void copy(const char *from, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	cr_assert_eq(system(command), 0);
}

__attribute__((noinline, used)) static int first_function(int value)
{
	return value * 3 + 1;
}

__attribute__((noinline, used)) static int second_function(int value)
{
	return value * 5 + first_function(value);
}

/* ---- names ---- */

Test(symbol, own_functions)
{
	struct perfring_symbol_object *object, *again;
	struct perfring_symbol symbol;
	uint64_t offset;
	char path[512];

	set_up();
	offset = offset_of((uintptr_t)second_function, path);
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object), 1);
	cr_assert_eq(why_of(object), PERFRING_SYMBOL_KNOWN);
	cr_assert(perfring_symbol_find(object, offset, &symbol));
	cr_assert_str_eq(symbol.name, "second_function");
	cr_assert_eq(symbol.start, symbol.address);
	cr_assert(perfring_symbol_find(object, offset + 1, &symbol));
	cr_assert_str_eq(symbol.name, "second_function");
	cr_assert_eq(symbol.address, symbol.start + 1);
	cr_assert(perfring_symbol_find(object, offset_of((uintptr_t)first_function, path), &symbol));
	cr_assert_str_eq(symbol.name, "first_function");
	/* the ELF header is no function */
	cr_assert_not(perfring_symbol_find(object, 1, &symbol));
	cr_assert_eq(symbol.why, PERFRING_SYMBOL_NONE);
	cr_assert_null(symbol.name);
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &again), 0);
	cr_assert_eq(object, again);
	tear_down();
}

/* Each symbol of nm that has a size: its own name, or one of the same address. */
Test(symbol, as_nm_has_them)
{
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;
	char line[4096], command[1024], path[512], name[2048], digits[32], kind;
	uint64_t address, size, at = 0;
	unsigned known = 0;
	FILE *nm;

	set_up();
	cr_assert_neq(offset_of((uintptr_t)first_function, path), UINT64_MAX);
	object = get(path);
	/* addresses and offsets differ by what they differ for one function */
	cr_assert(perfring_symbol_find(object, offset_of((uintptr_t)first_function, path), &symbol));
	at = symbol.address - offset_of((uintptr_t)first_function, path);
	snprintf(command, sizeof(command), "nm -n -S --defined-only %s", path);
	nm = popen(command, "r");
	cr_assert_not_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%" SCNx64 " %31[0-9a-f] %c %2047s", &address, digits, &kind, name) != 4 ||
		    strlen(digits) != 16 || !strchr("tT", kind))
			continue;
		size = strtoull(digits, NULL, 16);
		known++;
		for (int last = 0; last < 2; last++) {
			uint64_t where = address + (last ? size - 1 : 0);

			cr_assert(perfring_symbol_find(object, where - at, &symbol), "%s: no name", name);
			cr_assert_eq(symbol.address, where, "%s", name);
			cr_assert_eq(symbol.start, address, "%s: %s begins elsewhere", name, symbol.name);
			cr_assert_eq(symbol.end, address + size, "%s: %s ends elsewhere", name, symbol.name);
		}
	}
	cr_assert_eq(pclose(nm), 0);
	cr_assert_geq(known, 20);
	tear_down();
}

__asm__(".text\n"
	".balign 16\n"
	".globl has_no_size\n"
	"has_no_size:\n"
	".skip 16\n"
	".type after_it, %function\n"
	"after_it:\n"
	".skip 16\n"
	".size after_it, 16\n"
	".previous\n");
void has_no_size(void);

Test(symbol, without_a_size_it_ends_where_the_next_one_begins)
{
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;
	char path[512];
	uint64_t offset;

	set_up();
	offset = offset_of((uintptr_t)has_no_size, path);
	object = get(path);
	cr_assert(perfring_symbol_find(object, offset + 15, &symbol));
	cr_assert_str_eq(symbol.name, "has_no_size");
	cr_assert_eq(symbol.end, symbol.start + 16);
	cr_assert(perfring_symbol_find(object, offset + 16, &symbol));
	cr_assert_str_eq(symbol.name, "after_it");
	tear_down();
}

Test(symbol, vdso)
{
	struct perfring_symbol_object *object;
	struct perfring_symbol_state state;
	struct perfring_symbol symbol;
	bool found = false;
	int fd;

	set_up();
	fd = perfring_vdso_open();
	if (fd == -ENOENT) {
		tear_down();
		cr_skip_test("SKIP-ENV: AT_SYSINFO_EHDR: none: a kernel with a vdso");
	}
	cr_assert_geq(fd, 0);
	close(fd);
	object = get("[vdso]");
	perfring_symbol_state_of(object, &state);
	cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
	for (uint64_t at = 0; at < 8192 && !found; at += 16)
		found = perfring_symbol_find(object, at, &symbol) && strstr(symbol.name, "clock_gettime");
	cr_assert(found);
	tear_down();
}

Test(symbol, no_object)
{
	static const struct {
		const char *path;
		enum perfring_symbol_why why;
		int error;
	} cases[] = {
		{"//anon", PERFRING_SYMBOL_ANONYMOUS, 0},
		{"[heap]", PERFRING_SYMBOL_ANONYMOUS, 0},
		{"", PERFRING_SYMBOL_ANONYMOUS, 0},
		{"anon_inode:[perf_event]", PERFRING_SYMBOL_ANONYMOUS, 0},
		{"/nowhere/to be found", PERFRING_SYMBOL_UNREADABLE, -ENOENT},
		{"/dev/zero", PERFRING_SYMBOL_UNREADABLE, -EINVAL},
		{"/proc/self/maps", PERFRING_SYMBOL_UNREADABLE, -EINVAL},
		{"/tmp", PERFRING_SYMBOL_UNREADABLE, -EINVAL},
	};
	struct perfring_symbol_state state;
	struct perfring_symbol symbol;
	uint8_t id[64] = {0};

	set_up();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		perfring_symbol_state_of(get(cases[i].path), &state);
		cr_assert_eq(state.why, cases[i].why, "%s: %d", cases[i].path, (int)state.why);
		cr_assert_eq(state.error, cases[i].error, "%s: %d", cases[i].path, state.error);
		cr_assert_not(perfring_symbol_find(get(cases[i].path), 0x1000, &symbol));
		cr_assert_eq(symbol.why, cases[i].why);
		cr_assert_eq(symbol.address, 0x1000);
	}
	cr_assert_eq(perfring_symbols_get(
			     symbols,
			     &(struct perfring_symbol_file){.path = "/bin/sh", .build_id = id, .build_id_size = 21},
			     &(struct perfring_symbol_object *){NULL}),
		     -EINVAL);
	tear_down();
}

/* ---- builds, paths, processes ---- */

static struct perfring_symbol_object *get_build(const char *path, const uint8_t *id, int64_t size, int32_t pid,
						int *ret)
{
	struct perfring_symbol_object *object = NULL;

	*ret = perfring_symbols_get(symbols,
				    &(struct perfring_symbol_file){
					    .path = path, .build_id = id, .build_id_size = (uint32_t)size, .pid = pid},
				    &object);
	cr_assert_geq(*ret, 0);
	return object;
}

/* The names of one file are one table, whatever leads to it. */
Test(symbol, one_file_of_many_paths)
{
	char path[512], hard[128], soft[128], other[128];
	struct perfring_symbol symbols_of[4];
	const char *paths[] = {path, hard, soft, other};
	uint64_t offset;

	set_up();
	offset = offset_of((uintptr_t)first_function, path);
	snprintf(other, sizeof(other), "%s/original", folder);
	snprintf(hard, sizeof(hard), "%s/hard", folder);
	snprintf(soft, sizeof(soft), "%s/soft", folder);
	copy(path, other);
	cr_assert_eq(link(other, hard), 0);
	cr_assert_eq(symlink(other, soft), 0);
	for (int i = 0; i < 4; i++) {
		cr_assert(perfring_symbol_find(get(paths[i]), offset, &symbols_of[i]), "%s", paths[i]);
		cr_assert_str_eq(symbols_of[i].name, "first_function");
	}
	cr_assert_eq(symbols_of[1].name, symbols_of[2].name);
	cr_assert_eq(symbols_of[1].name, symbols_of[3].name);
	tear_down();
}

Test(symbol, other_builds)
{
	struct perfring_symbol_object *object;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	struct perfring_symbol symbol;
	uint64_t offset;
	char path[512];
	int64_t size;
	int ret;

	set_up();
	offset = offset_of((uintptr_t)first_function, path);
	size = perfring_build_id_of(path, id);
	cr_assert_gt(size, 0, "the compiler makes no build ids");
	object = get_build(path, id, size, 0, &ret);
	cr_assert(perfring_symbol_find(object, offset, &symbol));
	/* a shorter id that was recorded is compared as far as it goes */
	cr_assert(perfring_symbol_find(get_build(path, id, 8, 0, &ret), offset, &symbol));
	/* ... but a few bytes prove nothing */
	cr_assert(!perfring_symbol_find(get_build(path, id, 7, 0, &ret), offset, &symbol));
	id[7] ^= 1;
	for (size = 8; size <= 20; size += 12) {
		object = get_build(path, id, size, 0, &ret);
		cr_assert_eq(ret, 1);
		cr_assert_not(perfring_symbol_find(object, offset, &symbol));
		cr_assert_eq(symbol.why, PERFRING_SYMBOL_OTHER_BUILD);
	}
	/* and without a process that has it, not by a process either */
	object = get_build(path, id, 20, getpid(), &ret);
	cr_assert_eq(ret, 1, "that process was looked at");
	cr_assert_eq(why_of(object), PERFRING_SYMBOL_OTHER_BUILD);
	get_build(path, id, 20, getpid(), &ret);
	cr_assert_eq(ret, 0, "and is not looked at again");
	tear_down();
}

/* Looks up a file by the inode that was recorded.  Returns whether the offset has a name. */
static bool has_name(const char *path, uint64_t ino, uint64_t generation, int32_t pid, uint64_t offset,
		     enum perfring_symbol_why *why)
{
	const struct perfring_symbol_file file = {
		.path = path, .pid = pid, .ino = ino, .ino_generation = generation};
	struct perfring_symbol_object *object = NULL;
	struct perfring_symbol symbol;
	bool is_found;

	cr_assert_geq(perfring_symbols_get(symbols, &file, &object), 0);
	is_found = perfring_symbol_find(object, offset, &symbol);
	*why = symbol.why;
	if (is_found)
		cr_assert_str_eq(symbol.name, "first_function");
	return is_found;
}

static uint64_t inode_of(const char *path)
{
	struct stat status;

	cr_assert_eq(stat(path, &status), 0);
	return status.st_ino;
}

Test(symbol, other_inodes)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	enum perfring_symbol_why why;
	char own[512], path[128], moved[128];
	uint64_t offset, ino;
	int64_t size;

	set_up();
	offset = offset_of((uintptr_t)first_function, own);
	snprintf(path, sizeof(path), "%s/replaced", folder);
	snprintf(moved, sizeof(moved), "%s/moved", folder);
	copy(own, path);
	ino = inode_of(path);
	cr_assert(has_name(path, ino, 0, 0, offset, &why));
	cr_assert(has_name(path, ino, 1, 0, offset, &why), "perf inject writes the generation 1");
	cr_assert_not(has_name(path, ino + 1, 0, 0, offset, &why));
	cr_assert_eq(why, PERFRING_SYMBOL_OTHER_BUILD);
	cr_assert(has_name(path, 0, 0, 0, offset, &why), "any file serves");
	cr_assert(has_name(path, 0, 7, 0, offset, &why));

	/* the file is replaced: the cache that has read it keeps it, another does not use the new one */
	cr_assert_eq(rename(path, moved), 0);
	copy(own, path);
	cr_assert_neq(inode_of(path), ino);
	cr_assert(has_name(path, ino, 0, 0, offset, &why));
	perfring_symbols_close(symbols);
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
	cr_assert_not(has_name(path, ino, 0, 0, offset, &why));
	cr_assert_eq(why, PERFRING_SYMBOL_OTHER_BUILD);
	cr_assert(has_name(moved, ino, 0, 0, offset, &why));
	cr_assert(has_name(path, inode_of(path), 0, 0, offset, &why));

	/* a build id that is known decides alone: the caller's, or that of the feature */
	size = perfring_build_id_of(own, id);
	cr_assert_gt(size, 0);
	cr_assert_eq(why_of(get_build(path, id, size, 0, &(int){0})), PERFRING_SYMBOL_KNOWN);
	cr_assert_eq(perfring_symbols_expect(symbols, path, id, (uint32_t)size), 0);
	cr_assert(has_name(path, ino, 0, 0, offset, &why));
	id[0] ^= 1;
	cr_assert_eq(perfring_symbols_expect(symbols, moved, id, (uint32_t)size), 0);
	cr_assert_not(has_name(moved, ino, 0, 0, offset, &why));
	cr_assert_eq(why, PERFRING_SYMBOL_OTHER_BUILD);
	tear_down();
}

/* Inode numbers are used again; the generation is another then. */
Test(symbol, other_generations)
{
	enum perfring_symbol_why why;
	char own[512], path[128];
	uint64_t offset, ino;
	uint64_t version = 0;
	int fd, error;

	set_up();
	offset = offset_of((uintptr_t)first_function, own);
	snprintf(path, sizeof(path), "%s/one", folder);
	copy(own, path);
	ino = inode_of(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	error = ioctl(fd, FS_IOC_GETVERSION, &version);
	close(fd);
	if (error) {
		tear_down();
		cr_skip_test("/tmp has no generations of inodes");
	}
	version = (uint32_t)version;
	cr_assert(has_name(path, ino, version, 0, offset, &why));
	cr_assert_not(has_name(path, ino, version ^ 2, 0, offset, &why));
	cr_assert_eq(why, PERFRING_SYMBOL_OTHER_BUILD);
	cr_assert_not(has_name(path, ino + 1, version, 0, offset, &why));
	tear_down();
}

/* Of another machine, and below a folder that stands for one, inodes mean nothing. */
Test(symbol, inodes_of_another_machine)
{
	static const uint32_t flags[] = {PERFRING_SYMBOLS_ELSEWHERE, 0};
	struct perfring_symbols_options options = {.flags = 0};
	enum perfring_symbol_why why;
	char own[512], path[512];
	uint64_t offset;

	set_up();
	offset = offset_of((uintptr_t)first_function, own);
	snprintf(path, sizeof(path), "%s/there", folder);
	copy(own, path);
	for (int i = 0; i < 2; i++) {
		perfring_symbols_close(symbols);
		options.flags = flags[i];
		options.symfs = i ? folder : NULL;
		cr_assert_eq(perfring_symbols_open(&symbols, &options), 0);
		cr_assert(has_name(i ? "/there" : path, inode_of(path) + 1, 5, 0, offset, &why), "%d", i);
	}
	cr_assert_eq(perfring_symbols_flags_for(NULL), 0);
	tear_down();
}

/* A process that sees another file by a path: its own is used, if it is of the recorded build. */
Test(symbol, of_another_root)
{
	struct perfring_symbol_object *object;
	char path[512], root[128], inner[256], byte;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	struct perfring_symbol symbol;
	enum perfring_symbol_why why;
	int ret, started[2], size;
	uint64_t offset;
	pid_t child;

	if (geteuid())
		cr_skip_test("SKIP-ENV: chroot: EPERM: needs CAP_SYS_CHROOT");
	set_up();
	offset = offset_of((uintptr_t)first_function, path);
	size = (int)perfring_build_id_of(path, id);
	cr_assert_gt(size, 0);
	snprintf(root, sizeof(root), "%s/root", folder);
	cr_assert_eq(mkdir(root, 0700), 0);
	snprintf(inner, sizeof(inner), "%s/only_there", root);
	copy(path, inner);
	cr_assert_eq(pipe(started), 0);
	child = fork();
	if (!child) {
		if (chroot(root) || chdir("/") || write(started[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(started[1]);
	cr_assert_eq(read(started[0], &byte, 1), 1);
	close(started[0]);
	object = get_build("/only_there", id, size, 0, &ret);
	cr_assert_eq(why_of(object), PERFRING_SYMBOL_UNREADABLE);
	object = get_build("/only_there", id, size, getpid(), &ret);
	cr_assert_eq(why_of(object), PERFRING_SYMBOL_UNREADABLE);
	object = get_build("/only_there", id, size, child, &ret);
	cr_assert_eq(ret, 1);
	cr_assert(perfring_symbol_find(object, offset, &symbol));
	cr_assert_str_eq(symbol.name, "first_function");
	/* where the build is not known, only what this process sees is used */
	object = NULL;
	cr_assert_eq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = "/only_there", .pid = child},
					  &object),
		     1);
	cr_assert_eq(why_of(object), PERFRING_SYMBOL_UNREADABLE);
	/* ... unless its inode is known */
	cr_assert_not(has_name("/only_there", inode_of(inner) + 1, 0, child, offset, &why));
	cr_assert_eq(why, PERFRING_SYMBOL_UNREADABLE);
	cr_assert_not(has_name("/only_there", inode_of(inner), 0, 0, offset, &why));
	cr_assert(has_name("/only_there", inode_of(inner), 0, child, offset, &why));
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	tear_down();
}

/* More paths than the table begins with. */
Test(symbol, many_paths)
{
	struct perfring_symbol_object *first = NULL, *object;
	char path[64];

	set_up();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			snprintf(path, sizeof(path), "/nowhere/%d", i);
			cr_assert_eq(
				perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = path}, &object),
				!round);
			if (!i && !round)
				first = object;
			cr_assert_eq(!i, object == first);
		}
	tear_down();
}

/* Beyond the bound one object stands for all, and says why; those before it stay what they are. */
Test(symbol, paths_are_bounded)
{
	struct perfring_symbol_object *beyond = NULL, *object;
	struct perfring_symbol_state state;
	struct perfring_symbol symbol;
	char path[64], own[512];
	unsigned wrong = 0;
	uint64_t offset;
	clock_t before;

	set_up();
	offset = offset_of((uintptr_t)second_function, own);
	get(own);
	before = clock();
	for (int i = 1; i < 65536 + 10; i++) {
		struct perfring_symbol_file file = {.path = path};

		snprintf(path, sizeof(path), "//%d", i); /* no file is looked for */
		wrong += perfring_symbols_get(symbols, &file, &object) != (i <= 65536);
		beyond = i == 65536 ? object : beyond;
		wrong += (object == beyond) != (i >= 65536);
	}
	cr_assert_eq(wrong, 0, "%u", wrong);
	/* took 3.4 s when paths that differ in their last bytes alone were in one list */
	cr_assert_lt(clock() - before, CLOCKS_PER_SEC, "%ld us", (long)(clock() - before));
	perfring_symbol_state_of(beyond, &state);
	cr_assert_eq(state.why, PERFRING_SYMBOL_LIMIT);
	cr_assert_str_eq(state.exceeded, "65536 paths of different builds");
	cr_assert_not(perfring_symbol_find(beyond, 0x1000, &symbol));
	cr_assert_eq(symbol.why, PERFRING_SYMBOL_LIMIT);
	cr_assert_eq(why_of(get("//65535")), PERFRING_SYMBOL_ANONYMOUS);
	cr_assert(perfring_symbol_find(get(own), offset, &symbol));
	cr_assert_eq(get("/proc/self/exe"), beyond);
	tear_down();
}
