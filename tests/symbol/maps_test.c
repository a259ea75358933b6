/* maps_test.c - mappings and names from records, against a model of a page each; their bounds; without memory. */
#include "test.h"
#include "machine.h"

#include <perfring/maps.h>

/* The sources again, with low bounds, over allocations that can be made to fail; and so not linked from the library. */
static long allocations_left = -1;

static bool may_allocate(void)
{
	if (!allocations_left)
		return false;
	allocations_left -= allocations_left > 0;
	return true;
}

static void *counted_malloc(size_t size)
{
	return may_allocate() ? malloc(size) : NULL;
}

static void *counted_calloc(size_t nr, size_t size)
{
	return may_allocate() ? calloc(nr, size) : NULL;
}

#define malloc counted_malloc
#define calloc counted_calloc
#define TASKS_MAX 4096
#define ENDED_MAX 1024
#define MAPPINGS_MAX 20000
#define NAME_BYTES_MAX (1 << 20)
#define SPARE_MAX 1
#include "symbol/intern.c"
#include "symbol/intervals.c"
#include "symbol/tasks.c"
#include "symbol/maps.c"
#undef malloc
#undef calloc

TestSuite(maps, .timeout = 120);

enum {
	USER = PERFRING_RECORD_MISC_USER,
	KERNEL = PERFRING_RECORD_MISC_KERNEL,
	EXEC = PERFRING_RECORD_MISC_COMM_EXEC,
	PAGE = 0x1000,
};

static struct perfring_maps *maps;

static void begin(void)
{
	allocations_left = -1;
	cr_assert_eq(perfring_maps_open(&maps), 0);
}

static void end(void)
{
	allocations_left = -1;
	perfring_maps_close(maps);
}

/* ---- records ---- */

static struct perfring_string string(const char *text)
{
	return (struct perfring_string){.data = text, .size = (uint32_t)strlen(text)};
}

static int map_in(uint16_t misc, uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff, const char *name)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = misc};

	record.is.mmap2 = (struct perfring_record_mmap2){
		.pid = pid, .tid = pid, .addr = addr, .len = len, .pgoff = pgoff, .prot = 5, .filename = string(name)};
	return perfring_maps_take_record(maps, &record);
}

static int map_user(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff, const char *name)
{
	return map_in(USER, pid, addr, len, pgoff, name);
}

static int fork_at(uint64_t time, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_FORK};

	record.is.fork =
		(struct perfring_record_fork){.pid = pid, .tid = tid, .ppid = ppid, .ptid = ptid, .time = time};
	return perfring_maps_take_record(maps, &record);
}

static int fork_process(uint32_t pid, uint32_t ppid)
{
	return fork_at(1, pid, pid, ppid, ppid);
}

static int comm(uint16_t misc, uint32_t pid, uint32_t tid, const char *name)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM, .misc = misc};

	record.is.comm = (struct perfring_record_comm){.pid = pid, .tid = tid, .comm = string(name)};
	return perfring_maps_take_record(maps, &record);
}

static int end_task(uint32_t pid, uint32_t tid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_EXIT};

	record.is.exit = (struct perfring_record_exit){.pid = pid, .tid = tid, .time = 1};
	return perfring_maps_take_record(maps, &record);
}

static int ksymbol(uint64_t addr, uint32_t len, uint16_t flags, const char *name)
{
	struct perfring_record record = {.type = PERFRING_RECORD_KSYMBOL};

	record.is.ksymbol = (struct perfring_record_ksymbol){
		.addr = addr, .len = len, .ksym_type = 1, .flags = flags, .name = string(name)};
	return perfring_maps_take_record(maps, &record);
}

static void expect(int error)
{
	cr_assert_eq(error, 0, "%d", error);
}

/* "NAME+OFFSET" of what is there; "-": nothing. */
static const char *at_in(unsigned cpumode, uint32_t pid, uint64_t ip)
{
	static char text[2][128];
	static unsigned next;
	const struct perfring_mapping *map = perfring_maps_find(maps, cpumode, pid, ip);
	char *to = text[next++ % 2];

	snprintf(to, sizeof(text[0]), map ? "%s+%llx" : "-", map ? map->object->name : "",
		 map ? (unsigned long long)perfring_mapping_offset(map, ip) : 0);
	return to;
}

static const char *at(uint32_t pid, uint64_t ip)
{
	return at_in(USER, pid, ip);
}

static struct perfring_maps_counts counts(void)
{
	struct perfring_maps_counts now;

	perfring_maps_count(maps, &now);
	return now;
}

/* ---- what each record does ---- */

Test(maps, later_mappings_win_and_the_rest_stays)
{
	begin();
	expect(map_user(1, 0x10000, 0x10000, 0x5000, "/a"));
	cr_assert_str_eq(at(1, 0xffff), "-");
	cr_assert_str_eq(at(1, 0x10000), "/a+5000");
	cr_assert_str_eq(at(1, 0x1ffff), "/a+14fff");
	cr_assert_str_eq(at(1, 0x20000), "-");
	cr_assert_str_eq(at(2, 0x10000), "-");
	expect(map_user(1, 0x14000, 0x2000, 0, "/b"));
	cr_assert_str_eq(at(1, 0x13fff), "/a+8fff");
	cr_assert_str_eq(at(1, 0x14000), "/b+0");
	cr_assert_str_eq(at(1, 0x15fff), "/b+1fff");
	cr_assert_str_eq(at(1, 0x16000), "/a+b000");
	cr_assert_eq(counts().mappings, 3);
	expect(map_user(1, 0x8000, 0xd000, 0, "/c"));
	cr_assert_str_eq(at(1, 0x14fff), "/c+cfff");
	cr_assert_str_eq(at(1, 0x15000), "/b+1000");
	expect(map_user(1, 0, UINT64_MAX, 0, "/all"));
	cr_assert_str_eq(at(1, 0x15000), "/all+15000");
	cr_assert_str_eq(at(1, UINT64_MAX - 1), "/all+fffffffffffffffe");
	cr_assert_eq(counts().mappings, 1);
	expect(map_user(1, 0x1000, 0, 0, "/empty"));
	expect(map_user(1, UINT64_MAX - 5, 100, 0, "/last"));
	cr_assert_str_eq(at(1, UINT64_MAX - 1), "/last+4");
	end();
}

Test(maps, a_fork_has_what_its_parent_had)
{
	begin();
	expect(comm(0, 1, 1, "parent"));
	expect(map_user(1, 0x1000, 0x1000, 0, "/a"));
	expect(fork_process(2, 1));
	cr_assert_eq(counts().mappings, 1);
	cr_assert_eq(perfring_maps_comm(maps, 2), perfring_maps_comm(maps, 1));
	expect(map_user(1, 0x1000, 0x1000, 0, "/parents"));
	expect(map_user(2, 0x2000, 0x1000, 0, "/childs"));
	cr_assert_str_eq(at(1, 0x1000), "/parents+0");
	cr_assert_str_eq(at(1, 0x2000), "-");
	cr_assert_str_eq(at(2, 0x1000), "/a+0");
	cr_assert_str_eq(at(2, 0x2000), "/childs+0");
	cr_assert_eq(perfring_maps_find(maps, USER, 2, 0x1000)->pid, 1);
	/* a thread is its process */
	expect(fork_at(1, 2, 3, 2, 2));
	cr_assert_str_eq(at(2, 0x2000), "/childs+0");
	cr_assert_str_eq(perfring_maps_comm(maps, 3), "parent");
	/* of a parent that nothing is known of */
	expect(fork_process(4, 99));
	cr_assert_str_eq(at(4, 0x1000), "-");
	cr_assert_null(perfring_maps_comm(maps, 4));
	cr_assert_str_eq(perfring_maps_comm(maps, 0), "swapper");
	end();
}

Test(maps, an_exec_starts_anew)
{
	begin();
	expect(map_user(1, 0x1000, 0x1000, 0, "/a"));
	expect(fork_process(2, 1));
	expect(comm(EXEC, 2, 2, "new"));
	cr_assert_str_eq(at(2, 0x1000), "-");
	cr_assert_str_eq(at(1, 0x1000), "/a+0");
	cr_assert_str_eq(perfring_maps_comm(maps, 2), "new");
	expect(map_user(2, 0x1000, 0x1000, 0, "/new"));
	expect(comm(0, 2, 2, "renamed"));
	cr_assert_str_eq(at(2, 0x1000), "/new+0");
	end();
}

Test(maps, what_ran_before_shares_nothing)
{
	begin();
	expect(map_user(1, 0x1000, 0x1000, 0, "/a"));
	expect(comm(0, 1, 1, "one"));
	expect(fork_at(0, 2, 2, 1, 1));
	cr_assert_str_eq(at(2, 0x1000), "-");
	/* it started while these were being written: its own mappings are newer than its second FORK */
	expect(map_user(2, 0x1000, 0x1000, 0, "/own"));
	expect(comm(0, 2, 2, "two"));
	expect(fork_at(5, 2, 2, 1, 1));
	cr_assert_str_eq(at(2, 0x1000), "/own+0");
	cr_assert_str_eq(perfring_maps_comm(maps, 2), "two");
	/* the number is another process's */
	expect(end_task(2, 2));
	expect(fork_at(9, 2, 2, 1, 1));
	cr_assert_str_eq(at(2, 0x1000), "/a+0");
	cr_assert_str_eq(perfring_maps_comm(maps, 2), "one");
	end();
}

Test(maps, an_end_is_known_until_there_are_many)
{
	begin();
	expect(map_user(1, 0x1000, 0x1000, 0, "/a"));
	expect(fork_at(1, 1, 2, 1, 1));
	expect(end_task(1, 1));
	cr_assert_eq(counts().ended, 0, "another thread of it goes on");
	for (uint32_t pid = 100; pid < 100 + 2 * ENDED_MAX; pid++) {
		expect(fork_process(pid, 1));
		cr_assert_str_eq(at(pid, 0x1000), "/a+0");
		expect(end_task(pid, pid));
		cr_assert_str_eq(at(pid, 0x1000), "/a+0");
	}
	cr_assert_str_eq(at(1, 0x1000), "/a+0", "the other thread still goes on");
	cr_assert_eq(counts().ended, ENDED_MAX);
	cr_assert_str_eq(at(100, 0x1000), "-");
	expect(end_task(1, 2));
	cr_assert_eq(counts().ended, ENDED_MAX);
	cr_assert_str_eq(at(1, 0x1000), "/a+0");
	cr_assert_eq(counts().forgotten, 0);
	for (uint32_t pid = 5000; pid < 5000 + ENDED_MAX; pid++)
		expect(fork_process(pid, 1) || end_task(pid, pid));
	cr_assert_str_eq(at(1, 0x1000), "-");
	end();
}

Test(maps, the_kernel_its_modules_and_its_symbols)
{
	const struct perfring_mapping *map;

	begin();
	expect(map_in(KERNEL, UINT32_MAX, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text"));
	expect(map_in(KERNEL, UINT32_MAX, 0xffffffffc0000000, 0x4000, 0, "[ext4]"));
	expect(ksymbol(0xffffffffc0100000, 0x100, 0, "bpf_prog_1"));
	map = perfring_maps_find(maps, KERNEL, 77, 0xffffffff81000010);
	cr_assert_eq(map->object->kind, PERFRING_MAPS_KERNEL);
	cr_assert_eq(map->pgoff, 0xffffffff81000000);
	cr_assert_eq(perfring_maps_find(maps, KERNEL, 0, 0xffffffffc0000010)->object->kind, PERFRING_MAPS_MODULE);
	map = perfring_maps_find(maps, KERNEL, 0, 0xffffffffc01000ff);
	cr_assert_eq(map->object->kind, PERFRING_MAPS_KSYMBOL);
	cr_assert_str_eq(at_in(KERNEL, 0, 0xffffffffc01000ff), "bpf_prog_1+ff");
	/* of two that the recording did not see the end of, the later one; inside of a module, the module */
	expect(ksymbol(0xffffffffc0100040, 0x100, 0, "bpf_prog_2"));
	cr_assert_str_eq(at_in(KERNEL, 0, 0xffffffffc0100041), "bpf_prog_2+1");
	expect(ksymbol(0xffffffffc0000040, 0x100, 0, "inside"));
	cr_assert_str_eq(at_in(KERNEL, 0, 0xffffffffc0000041), "[ext4]+41");
	expect(ksymbol(0xffffffffc0100040, 0x100, PERFRING_RECORD_KSYMBOL_FLAGS_UNREGISTER, "bpf_prog_2"));
	cr_assert_str_eq(at_in(KERNEL, 0, 0xffffffffc0100041), "-");
	expect(ksymbol(0xffffffff81000000, 0x100, PERFRING_RECORD_KSYMBOL_FLAGS_UNREGISTER, "the kernel"));
	cr_assert_str_eq(at_in(KERNEL, 0, 0xffffffff81000000), "[kernel.kallsyms]_text+ffffffff81000000");
	/* guests, by the process that runs them */
	expect(map_in(PERFRING_RECORD_MISC_GUEST_KERNEL, 0, 0x1000, 0x1000, 0, "[guest.kernel.kallsyms]"));
	expect(map_in(PERFRING_RECORD_MISC_GUEST_KERNEL, 5, 0x1000, 0x1000, 0, "[guest.kernel.kallsyms.5]"));
	cr_assert_str_eq(at_in(PERFRING_RECORD_MISC_GUEST_KERNEL, 5, 0x1001), "[guest.kernel.kallsyms.5]+1");
	cr_assert_str_eq(at_in(PERFRING_RECORD_MISC_GUEST_KERNEL, 6, 0x1001), "[guest.kernel.kallsyms]+1");
	cr_assert_str_eq(at_in(KERNEL, 5, 0x1001), "-");
	cr_assert_null(perfring_maps_find(maps, PERFRING_RECORD_MISC_HYPERVISOR, 0, 0x1000));
	end();
}

Test(maps, kinds_of_objects)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} rows[] = {
		{"/usr/bin/true", PERFRING_MAPS_FILE},
		{"/tmp/gone (deleted)", PERFRING_MAPS_FILE},
		{"/memfd:code (deleted)", PERFRING_MAPS_FILE},
		{"//anon", PERFRING_MAPS_MEMORY},
		{"/anon_hugepage (deleted)", PERFRING_MAPS_MEMORY},
		{"/dev/zero (deleted)", PERFRING_MAPS_MEMORY},
		{"/SYSV00000000 (deleted)", PERFRING_MAPS_MEMORY},
		{"[heap]", PERFRING_MAPS_MEMORY},
		{"[stack]", PERFRING_MAPS_MEMORY},
		{"[vdso]", PERFRING_MAPS_VDSO},
		{"[vvar]", PERFRING_MAPS_OTHER},
		{"anon_inode:[io_uring]", PERFRING_MAPS_OTHER},
		{"", PERFRING_MAPS_OTHER},
	};
	const struct perfring_mapping *map;

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect(map_user(1, PAGE * (i + 1), PAGE, 0x7000, rows[i].name));
		map = perfring_maps_find(maps, USER, 1, PAGE * (i + 1) + 1);
		cr_assert_eq(map->object->kind, rows[i].kind, "%s", rows[i].name);
		cr_assert_eq(perfring_mapping_offset(map, PAGE * (i + 1) + 1),
			     rows[i].kind == PERFRING_MAPS_MEMORY ? PAGE * (i + 1) + 1
			     : rows[i].kind == PERFRING_MAPS_VDSO ? 1
								  : 0x7001);
	}
	end();
}

Test(maps, an_object_is_its_name_and_its_file)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = USER};
	const struct perfring_maps_object *objects[7];

	begin();
	for (unsigned i = 0; i < 7; i++) {
		memset(&record.is, 0xa5, sizeof(record.is)); /* the other half of a file's id is any bytes */
		record.is.mmap2 = (struct perfring_record_mmap2){
			.pid = 1, .tid = 1, .addr = PAGE * (i + 1), .len = PAGE, .filename = string("/a")};
		record.is.mmap2.file.has_build_id = i >= 3;
		record.is.mmap2.file.build_id_size = i == 5 ? 16 : i == 6 ? 8 : 20;
		record.is.mmap2.file.ino = i == 2 ? 9 : i < 2 ? 8 : i;
		memset(record.is.mmap2.file.build_id, i < 3 ? (int)i : 7, i == 5 ? 16 : 20);
		expect(perfring_maps_take_record(maps, &record));
		objects[i] = perfring_maps_find(maps, USER, 1, PAGE * (i + 1))->object;
	}
	cr_assert_eq(objects[0], objects[1]);
	cr_assert_neq(objects[1], objects[2]);
	cr_assert_neq(objects[2], objects[3]);
	cr_assert_eq(objects[3], objects[4]);
	cr_assert_neq(objects[4], objects[5]);
	cr_assert_eq(objects[0]->name, objects[5]->name);
	cr_assert_eq(objects[0]->name, perfring_maps_name(maps, "/a and more", 2));
	cr_assert(objects[4]->file.has_build_id);
	cr_assert_eq(objects[2]->file.ino, 9);
	/* of the device 8:1: an inode and its generation, where zeros follow an id */
	cr_assert(!objects[6]->file.has_build_id);
	cr_assert_eq(objects[6]->file.build_id_size, 0);
	cr_assert_eq(objects[6]->file.ino, 0);
	end();
}

Test(maps, namespaces_are_inherited)
{
	const perfring_word links[14] = {3, 100, 3, 101, 3, 102, 3, 103, 3, 104, 3, 105, 3, 106};
	struct perfring_record record = {.type = PERFRING_RECORD_NAMESPACES};

	begin();
	record.is.namespaces = (struct perfring_record_namespaces){.pid = 1, .tid = 1, .links = {links, 7}};
	expect(perfring_maps_take_record(maps, &record));
	expect(fork_process(2, 1));
	cr_assert_eq(perfring_maps_namespace(maps, 2, PERFRING_MAPS_NS_MNT), 105);
	cr_assert_eq(perfring_maps_namespace(maps, 1, PERFRING_MAPS_NS_NET), 100);
	cr_assert_eq(perfring_maps_namespace(maps, 1, 7), 0);
	cr_assert_eq(perfring_maps_namespace(maps, 3, PERFRING_MAPS_NS_MNT), 0);
	end();
}

/* ---- against a model ---- */

enum {
	PROCESSES = 8,
	PAGES = 64,
	OBJECTS = 5,
};

/* What each page of each process has: 1 + object * 65536 + offset in pages; 0: nothing. */
static uint32_t model[PROCESSES][PAGES];

static unsigned draw_below(unsigned *seed, unsigned limit)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % limit;
}

static void model_map(unsigned process, unsigned page, unsigned count, unsigned object, unsigned offset)
{
	for (unsigned i = 0; i < count; i++)
		model[process][page + i] = 1 + object * 65536 + offset + i;
}

static void compare(unsigned process)
{
	for (unsigned page = 0; page < PAGES; page++) {
		uint32_t value = model[process][page];
		char wanted[64] = "-";

		if (value)
			snprintf(wanted, sizeof(wanted), "/%u+%x", (value - 1) / 65536, (value - 1) % 65536 * PAGE + 7);
		cr_assert_str_eq(at(process + 1, page * PAGE + 7), wanted, "process %u, page %u", process, page);
	}
}

/* One change of the model and of the maps.  Returns the error of the latter; then no mapping of the model changed. */
static int change(unsigned *seed)
{
	unsigned process = draw_below(seed, PROCESSES), other = draw_below(seed, PROCESSES),
		 page = draw_below(seed, PAGES), count = 1 + draw_below(seed, PAGES - page),
		 object = draw_below(seed, OBJECTS), offset = draw_below(seed, 100), what = draw_below(seed, 20);
	char name[16];
	int error;

	snprintf(name, sizeof(name), "/%u", object);
	if (what == 0) {
		error = comm(EXEC, process + 1, process + 1, "exec");
		if (!error)
			memset(model[process], 0, sizeof(model[process]));
	} else if (what < 4 && process != other) {
		error = fork_process(other + 1, process + 1);
		if (!error)
			memcpy(model[other], model[process], sizeof(model[other]));
	} else {
		count = what < 8 ? count : 1 + count / 8;
		error = map_user(process + 1, page * PAGE, count * PAGE, offset * PAGE, name);
		if (!error)
			model_map(process, page, count, object, offset);
	}
	return error;
}

Test(maps, changes_are_those_of_a_model)
{
	unsigned seed = 1, nodes = 0;

	begin();
	memset(model, 0, sizeof(model));
	for (unsigned i = 0; i < 40000; i++) {
		expect(change(&seed));
		compare(i % PROCESSES);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		compare(i);
	/* what is shared is counted once; when all is gone, none is left */
	for (unsigned i = 0; i < PROCESSES; i++) {
		nodes = (unsigned)counts().mappings;
		cr_assert_leq(nodes, PROCESSES * PAGES);
		expect(comm(EXEC, i + 1, i + 1, "exec"));
	}
	cr_assert_eq(counts().mappings, 0);
	end();
}

/* Each allocation fails once: then the record has changed no mapping, and the next try does. */
Test(maps, without_memory_nothing_changes)
{
	unsigned seed = 7, failures = 0;

	begin();
	memset(model, 0, sizeof(model));
	for (unsigned i = 0; i < 3000; i++) {
		for (long left = 0;; left++) {
			unsigned before = seed;
			int error;

			allocations_left = left;
			error = change(&seed);
			allocations_left = -1;
			if (!error)
				break;
			cr_assert_eq(error, -ENOMEM);
			failures++;
			compare(i % PROCESSES);
			seed = before;
		}
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		compare(i);
	cr_assert_gt(failures, 1000);
	end();
	for (long left = 0; left < 5; left++) {
		allocations_left = left;
		cr_assert_eq(perfring_maps_open(&maps), left < 4 ? -ENOMEM : 0, "%ld", left);
		allocations_left = -1;
		perfring_maps_close(maps);
	}
}

/* ---- bounds ---- */

/* 1000000 processes come and go: each forks from one of 500 mappings, or execs and maps 30 objects of its own. */
Test(maps, processes_come_and_go_in_bounded_memory)
{
	uint64_t most = 0;
	char name[32];

	begin();
	for (unsigned i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "/lib/%u", i);
		expect(map_user(1, (i + 1) * PAGE, PAGE, 0, name));
	}
	cr_assert_eq(counts().mappings, 500);
	for (uint32_t i = 0; i < 1000000; i++) {
		uint32_t pid = 2 + i % 30000;

		expect(fork_process(pid, 1));
		if (i % 10 == 0) {
			expect(comm(EXEC, pid, pid, "other"));
			for (unsigned at_page = 1; at_page <= 10; at_page++)
				expect(map_user(pid, at_page * PAGE, PAGE, 0, "/lib/3"));
		} else if (i % 10 == 1) {
			expect(map_user(pid, 1000 * PAGE, PAGE, 0, "/lib/3"));
		}
		expect(end_task(pid, pid));
		most = counts().mappings > most ? counts().mappings : most;
	}
	/* of each 10 that have ended one has 10 mappings, and one a path of copies down the tree of 501 */
	cr_assert_lt(most, 500 + ENDED_MAX / 10 * (10 + 40));
	cr_assert_eq(counts().tasks, 1 + ENDED_MAX);
	cr_assert_eq(counts().forgotten, 0);
	cr_assert_str_eq(at(1, 500 * PAGE), "/lib/499+0");
	end();
}

/* Forks cost nothing that depends on how much is mapped: not one node. */
Test(maps, forks_copy_nothing)
{
	begin();
	for (unsigned i = 0; i < 500; i++)
		expect(map_user(1, (i + 1) * PAGE, PAGE, 0, "/lib/3"));
	for (uint32_t i = 0; i < 1000000; i++) {
		if (i == 2000)
			allocations_left = 0; /* the numbers are known by then */
		expect(fork_process(2 + i % 1000, 1));
	}
	cr_assert_eq(counts().mappings, 500);
	cr_assert_str_eq(at(1001, 500 * PAGE), "/lib/3+0");
	end();
}

Test(maps, tasks_without_an_end_are_bounded)
{
	begin();
	for (uint32_t tid = 1; tid <= 3 * TASKS_MAX; tid++) {
		expect(comm(0, tid, tid, "a"));
		expect(map_user(1, 0x1000, 0x1000, 0, "/a"));
	}
	cr_assert_eq(counts().tasks, TASKS_MAX);
	cr_assert_eq(counts().forgotten, 2 * TASKS_MAX);
	cr_assert_str_eq(at(1, 0x1000), "/a+0", "what records name stays");
	cr_assert_null(perfring_maps_comm(maps, 2));
	cr_assert_str_eq(perfring_maps_comm(maps, 3 * TASKS_MAX), "a");
	end();
}

Test(maps, mappings_are_bounded)
{
	begin();
	expect(map_in(KERNEL, UINT32_MAX, 0x1000, 0x1000, 0, "[module]"));
	for (uint32_t i = 0; i < 3 * MAPPINGS_MAX; i++) {
		expect(map_user(1 + i / 1000, (i + 1) * 2 * PAGE, PAGE, 0, "/a"));
		cr_assert_leq(counts().mappings, MAPPINGS_MAX);
	}
	cr_assert_gt(counts().forgotten, 39);
	cr_assert_str_eq(at(3 * MAPPINGS_MAX / 1000, 3 * MAPPINGS_MAX * 2 * PAGE), "/a+0");
	cr_assert_str_eq(at(1, 2 * PAGE), "-");
	cr_assert_str_eq(at_in(KERNEL, 0, 0x1000), "[module]+0");
	/* one process alone, and the kernel alone */
	for (uint32_t i = 0; i < 2 * MAPPINGS_MAX; i++)
		expect(map_user(1, (i + 1) * 2 * PAGE, PAGE, 0, "/a"));
	cr_assert_leq(counts().mappings, MAPPINGS_MAX);
	for (uint32_t i = 0; i < 2 * MAPPINGS_MAX; i++)
		expect(map_in(KERNEL, UINT32_MAX, (i + 1) * 2 * PAGE, PAGE, 0, "[module]"));
	cr_assert_leq(counts().mappings, MAPPINGS_MAX);
	cr_assert_str_eq(at_in(KERNEL, 0, 2 * MAPPINGS_MAX * 2 * PAGE), "[module]+0");
	end();
}

Test(maps, names_are_bounded)
{
	char name[256];

	begin();
	expect(map_user(1, PAGE, PAGE, 0, "/known"));
	for (uint32_t i = 0; i < 40000; i++) {
		snprintf(name, sizeof(name), "/a/long/name/of/a/file/%u", i);
		expect(map_user(1, 2 * PAGE, PAGE, 0, name));
		cr_assert_lt(counts().bytes, NAME_BYTES_MAX * 3 / 2);
	}
	cr_assert_gt(counts().nameless, 20000);
	cr_assert_str_eq(at(1, 2 * PAGE), "+0");
	expect(map_user(2, PAGE, PAGE, 0, "/known"));
	cr_assert_str_eq(at(2, PAGE), "/known+0");
	memset(name, 'x', sizeof(name));
	cr_assert_str_eq(perfring_maps_name(maps, name, sizeof(name)), "");
	end();
}
