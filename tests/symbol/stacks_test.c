/* stacks_test.c - callchains from registers and stack copies: this process's own stacks, beside backtrace(3). */
#include "test.h"
#include "sanitizers.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <perfring/stacks.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

TestSuite(stacks, .timeout = 60);

#ifdef __x86_64__

enum {
	FRAMES = 64,
	IP = 8,
	SP = 7,
	BP = 6,
	MASK = 1 << IP | 1 << SP | 1 << BP,
	ABI_64 = 2,
};

static struct perfring_maps *maps;
static struct perfring_symbols *symbols;
static struct perfring_stacks *stacks;

static struct perfring_string string_of(const char *text)
{
	return (struct perfring_string){.data = text, .size = (uint32_t)strlen(text) + 1};
}

/* What is mapped here, as a recorder would say it.  wrong: with a build id that no file has. */
static void take_maps(bool wrong)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[1024], path[1024], rights[8];
	uint64_t start, end, offset;

	cr_assert(file);
	while (fgets(line, sizeof(line), file)) {
		struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};
		struct perfring_record_mmap2 *map = &record.is.mmap2;

		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %1023s", &start, &end, rights,
			   &offset, path) < 4 ||
		    rights[2] != 'x')
			continue;
		map->pid = map->tid = (uint32_t)getpid();
		map->addr = start;
		map->len = end - start;
		map->pgoff = offset;
		map->prot = 5;
		map->filename = string_of(path[0] ? path : "//anon");
		map->file.has_build_id = wrong;
		map->file.build_id_size = wrong ? 20 : 0;
		cr_assert_eq(perfring_maps_take_record(maps, &record), 0);
	}
	fclose(file);
}

static void begin(bool wrong)
{
	cr_assert_eq(perfring_maps_open(&maps), 0);
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
	cr_assert_eq(perfring_stacks_open(&stacks, maps, symbols), 0);
	take_maps(wrong);
}

static void end_all(void)
{
	perfring_stacks_close(stacks);
	perfring_symbols_close(symbols);
	perfring_maps_close(maps);
}

/* ---- a stack ---- */

static struct {
	uint64_t values[3]; /* BP, SP, IP: in rising order of their bits */
	unsigned char bytes[1 << 16];
	uint64_t size;
	void *expected[FRAMES];
	int nr;
} captured;

static uint64_t stack_end;

static __attribute__((noinline, no_sanitize("address"))) void capture(void)
{
	ucontext_t context;

	getcontext(&context);
	captured.values[0] = (uint64_t)context.uc_mcontext.gregs[REG_RBP];
	captured.values[1] = (uint64_t)context.uc_mcontext.gregs[REG_RSP] & ~UINT64_C(7);
	captured.values[2] = (uint64_t)context.uc_mcontext.gregs[REG_RIP];
	captured.size = stack_end - captured.values[1];
	if (captured.size > sizeof(captured.bytes))
		captured.size = sizeof(captured.bytes);
	for (uint64_t i = 0; i < captured.size; i += 8)
		*(volatile uint64_t *)(void *)(captured.bytes + i) =
			*(const volatile uint64_t *)(uintptr_t)(captured.values[1] + i);
	captured.nr = backtrace(captured.expected, FRAMES);
	/* a sanitizer's own function may be above this one: the second frame is to be our caller */
	for (int i = 1; i < captured.nr; i++)
		if (captured.expected[i] == __builtin_return_address(0)) {
			captured.nr -= i - 1;
			memmove(captured.expected, captured.expected + i - 1,
				(size_t)captured.nr * sizeof(captured.expected[0]));
			break;
		}
}

static volatile int sink;

static __attribute__((noinline)) void descend(int depth)
{
	volatile char array[64];

	array[0] = (char)depth;
	if (depth)
		descend(depth - 1);
	else
		capture();
	sink += array[0];
}

static void capture_deep(void)
{
	void *first[1];

	backtrace(first, 1); /* loads what it needs */
	stack_end = ((uint64_t)(uintptr_t)__builtin_frame_address(0) | 0xfff) + 1;
	descend(12);
}

static struct perfring_sample sample_of(uint64_t size, const uint64_t *chain, uint64_t nr)
{
	struct perfring_sample sample = {
		.present = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER |
			   PERFRING_SAMPLE_CALLCHAIN,
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)getpid(),
		.regs_user = {.values = (const perfring_word *)captured.values,
			      .abi = ABI_64,
			      .mask = MASK,
			      .nr = 3,
			      .arch = PERFRING_ARCH_X86},
		.stack_user = {.data = captured.bytes, .size = size, .dyn_size = size},
		.callchain = {.words = (const perfring_word *)chain, .nr = nr},
	};

	return sample;
}

/* Those above `capture`: backtrace's own frame is not in it.  Returns how many of them the chain has. */
static uint64_t compare(const struct perfring_list *chain, uint64_t from)
{
	uint64_t nr = 1;

	cr_assert_eq(chain->words[from], captured.values[2]);
	for (int i = 1; i < captured.nr && from + nr < chain->nr; i++, nr++)
		cr_assert_eq(chain->words[from + nr], (uint64_t)(uintptr_t)captured.expected[i] - 1, "frame %d", i);
	return nr;
}

Test(stacks, whole)
{
	static const uint64_t kernel[] = {(uint64_t)(int64_t)PERFRING_CONTEXT_KERNEL, 0xffffffff81000000,
					  0xffffffff81000010};
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;

	begin(false);
	capture_deep();
	sample = sample_of(captured.size, kernel, 3);
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(chain.words[i], kernel[i]);
		cr_assert_eq(chain.words[3], (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
		cr_assert_geq(compare(&chain, 4), 12); /* the stack may end with another page */
		sample.regs_user.arch = 0;             /* this build's own: of samples that no file said a machine of */
	}
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, 5, &chain, &why), 1);
	cr_assert_eq(chain.nr, 4 + 5);
	cr_assert_eq(why, PERFRING_UNWIND_FULL);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, 0, &chain, &why), 1);
	cr_assert_eq(chain.nr, 4);
	end_all();
}

/* The frames by frame pointers go on where the copy ends. */
Test(stacks, joined)
{
	struct perfring_stacks_counts counts;
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;
	uint64_t words[FRAMES + 1] = {(uint64_t)(int64_t)PERFRING_CONTEXT_USER, 0}, nr;

	begin(false);
	capture_deep();
	for (int i = 0; i < captured.nr; i++)
		words[1 + i] = (uint64_t)(uintptr_t)captured.expected[i];
	/* half of the stack is copied */
	sample = sample_of(captured.size / 2 & ~UINT64_C(7), words, 1 + (uint64_t)captured.nr);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_eq(why, PERFRING_UNWIND_TRUNCATED);
	cr_assert_eq(compare(&chain, 1), (uint64_t)captured.nr);
	perfring_stacks_count(stacks, &counts);
	cr_assert_eq(counts.joined, 1);
	cr_assert_eq(counts.ends[PERFRING_UNWIND_TRUNCATED], 1);
	/* without a common frame it ends there */
	for (int i = 0; i < captured.nr; i++)
		words[1 + i] += 0x1000;
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	nr = chain.nr;
	cr_assert_lt(nr, 1 + (uint64_t)captured.nr);
	cr_assert_eq(compare(&chain, 1), nr - 1);
	end_all();
}

/* Frames of a recursion have one address: wherever the copy ends, each frame is there once. */
Test(stacks, joined_in_a_recursion)
{
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;
	uint64_t words[FRAMES + 1] = {(uint64_t)(int64_t)PERFRING_CONTEXT_USER, 0};
	int recurring = 0, joined = 0;

	begin(false);
	capture_deep();
	for (int i = 0; i < captured.nr; i++)
		words[1 + i] = i ? (uint64_t)(uintptr_t)captured.expected[i] : captured.values[2];
	for (int i = 2; i < captured.nr; i++)
		recurring += captured.expected[i] == captured.expected[i - 1];
	cr_assert_geq(recurring, 10);
	for (uint64_t size = 8; size < captured.size; size += 8) {
		sample = sample_of(size, words, 1 + (uint64_t)captured.nr);
		cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
		cr_assert_eq(chain.nr, 1 + (uint64_t)captured.nr, "%d frames of %d", (int)chain.nr - 1, captured.nr);
		cr_assert_eq(compare(&chain, 1), (uint64_t)captured.nr);
		joined += why == PERFRING_UNWIND_TRUNCATED;
	}
	cr_assert_geq(joined, 20);
	end_all();
}

static int find_code(struct dl_phdr_info *object, size_t size, void *to)
{
	(void)size;
	for (unsigned i = 0; strstr(object->dlpi_name, "/stacks_test.") && i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X)
			*(ElfW(Phdr) *)to = object->dlpi_phdr[i];
	return 0;
}

static char folder[32];

/* Makes an object whose function `through` calls what it is given, in a folder of its own, and loads it. */
static int (*open_through(const char *options))(void (*)(void))
{
	static const char source[] = "int through(void (*f)(void)) { volatile char a[200] = {1}; f(); return a[0]; }";
	int (*through)(void (*)(void));
	char command[1024];
	void *object;

	strcpy(folder, "/tmp/stacks_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "cd %s && echo '%s' >a.c && gcc -shared -fPIC %s -O2 -fomit-frame-pointer -o a.so a.c", folder, source,
		 options);
	cr_assert_eq(system(command), 0);
	snprintf(command, sizeof(command), "%s/a.so", folder);
	object = dlopen(command, RTLD_NOW);
	cr_assert_not_null(object);
	*(void **)&through = dlsym(object, "through");
	return through;
}

/* Captures the stack through that object, and has its chain.  Returns how many of its frames are those of backtrace(3). */
static uint64_t walk_through(int (*through)(void (*)(void)))
{
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;
	void *first[1];

	backtrace(first, 1);
	stack_end = ((uint64_t)(uintptr_t)__builtin_frame_address(0) | 0xfff) + 1;
	cr_assert_eq(through(capture), 1);
	sample = sample_of(captured.size, NULL, 0);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	return compare(&chain, 1);
}

static void remove_folder(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

/* After the names of an object were read, and before its tables are: a hard link to it changes the time of its change and no byte
 * (perf record makes one of each object, for its cache); another file in its place is of the same build if its build id says so. */
Test(stacks, of_an_object_that_is_opened_again)
{
	static const char *const options[] = {"-Wl,--build-id", "-Wl,--build-id=none"};

	for (unsigned i = 0; i < 4; i++) {
		bool is_replaced = i & 1, is_lost = i == 3;
		int (*through)(void (*)(void)) = open_through(options[i / 2]);
		struct perfring_symbol_object *object;
		struct perfring_symbol_state state;
		struct perfring_symbol_file file;
		char path[64], other[64], command[320];

		begin(false);
		snprintf(path, sizeof(path), "%s/a.so", folder);
		snprintf(other, sizeof(other), "%s/b.so", folder);
		file = (struct perfring_symbol_file){.path = path, .pid = getpid()};
		cr_assert_eq(perfring_symbols_get(symbols, &file, &object), 1);
		usleep(20000); /* times of files are of the clock's ticks */
		snprintf(command, sizeof(command), "cp %s %s && mv %s %s", path, other, other, path);
		cr_assert_eq(is_replaced ? system(command) : link(path, other), 0);
		if (is_lost)
			cr_assert_lt(walk_through(through), 3);
		else
			cr_assert_geq(walk_through(through), 3, "a frame, that of the object, its caller");
		cr_assert_eq(perfring_symbols_get(symbols, &file, &object), is_lost);
		perfring_symbol_state_of(object, &state);
		cr_assert_eq(state.why, PERFRING_SYMBOL_KNOWN);
		cr_assert_eq(state.error, is_lost ? -ESTALE : 0);
		remove_folder();
		end_all();
	}
}

/* lld begins the code within a page, whose first bytes are those of the segment before, at another distance from their addresses. */
Test(stacks, of_an_object_by_lld)
{
	int (*through)(void (*)(void));
	ElfW(Phdr) code = {0};

	if (system("command -v ld.lld >/dev/null"))
		cr_skip_test("SKIP-ENV: ld.lld: not installed: install lld");
	through = open_through("-fuse-ld=lld");
	dl_iterate_phdr(find_code, &code);
	cr_assert_neq(code.p_offset % 4096, 0, "the code begins at a page: the test shows nothing");
	begin(false);
	cr_assert_geq(walk_through(through), 3, "a frame, that of the object, its caller");
	remove_folder();
	end_all();
}

Test(stacks, what_is_not_unwound)
{
	static const uint64_t own[] = {(uint64_t)(int64_t)PERFRING_CONTEXT_USER, 0x1234};
	struct perfring_stacks_counts counts;
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;

	begin(false);
	capture_deep();
	for (int i = 0; i < 6; i++) {
		sample = sample_of(captured.size, own, 2);
		if (i == 0)
			sample.regs_user.abi = 1; /* of 32 bits */
		else if (i == 1)
			sample.regs_user.arch = PERFRING_ARCH_S390;
		else if (i == 2)
			sample.stack_user.dyn_size = 0;
		else if (i == 3)
			sample.regs_user.mask = 1 << IP;
		else if (i == 4)
			sample.regs_user.abi = 1, sample.stack_user.dyn_size = 0;
		else
			sample.present &= ~(uint64_t)PERFRING_SAMPLE_STACK_USER;
		cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 0, "%d", i);
		cr_assert(chain.words == sample.callchain.words && chain.nr == 2, "%d", i);
		perfring_stacks_count(stacks, &counts);
		cr_assert_eq(counts.ends[PERFRING_UNWIND_STEPPED], 1, "%d: the copy of 32 bits alone", i);
	}
	end_all();
}

static void innermost_is(struct perfring_sample sample, uint32_t modes, uint64_t ip, unsigned cpumode)
{
	cr_assert(perfring_stacks_innermost(&sample, modes));
	cr_assert(sample.present & PERFRING_SAMPLE_IP);
	cr_assert_eq(sample.ip, ip);
	cr_assert_eq(sample.misc, (PERFRING_RECORD_MISC_EXACT_IP | cpumode));
}

Test(stacks, innermost)
{
	static const uint64_t chain[] = {(uint64_t)(int64_t)PERFRING_CONTEXT_KERNEL,
					 0xffffffff81000000,
					 0xffffffff81000010,
					 (uint64_t)(int64_t)PERFRING_CONTEXT_USER,
					 0x1234,
					 0x5678};
	const uint32_t kernel = 1u << PERFRING_RECORD_MISC_KERNEL, user = 1u << PERFRING_RECORD_MISC_USER;
	struct perfring_sample sample, before;

	captured.values[2] = 0x9abc;
	sample = sample_of(8, chain, 6);
	sample.present |= PERFRING_SAMPLE_IP;
	sample.ip = 0xffffffff81000004;
	sample.misc = PERFRING_RECORD_MISC_EXACT_IP | PERFRING_RECORD_MISC_KERNEL;
	innermost_is(sample, kernel, sample.ip, PERFRING_RECORD_MISC_KERNEL);
	innermost_is(sample, UINT32_MAX, sample.ip, PERFRING_RECORD_MISC_KERNEL);
	innermost_is(sample, user, 0x9abc, PERFRING_RECORD_MISC_USER); /* where the registers are */
	sample.present &= ~(uint64_t)PERFRING_SAMPLE_STACK_USER;
	innermost_is(sample, user, 0x1234, PERFRING_RECORD_MISC_USER);
	sample.present &= ~(uint64_t)PERFRING_SAMPLE_IP;
	innermost_is(sample, UINT32_MAX, 0xffffffff81000000, PERFRING_RECORD_MISC_KERNEL);
	innermost_is(sample, user, 0x1234, PERFRING_RECORD_MISC_USER);
	sample.callchain.nr = 4;
	before = sample;
	cr_assert(!perfring_stacks_innermost(&sample, user) && !perfring_stacks_innermost(&sample, 0));
	cr_assert(!memcmp(&sample, &before, sizeof(sample)), "unchanged");
	sample.callchain.nr = 0;
	cr_assert(!perfring_stacks_innermost(&sample, UINT32_MAX));
}

/* Tables of another build than was recorded would give wrong callers. */
Test(stacks, another_build)
{
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;

	begin(true);
	capture_deep();
	sample = sample_of(captured.size, NULL, 0);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_eq(why, PERFRING_UNWIND_NO_RULE);
	cr_assert_eq(chain.nr, 2);
	end_all();
	/* what a file says of a path counts as well */
	cr_assert_eq(perfring_maps_open(&maps), 0);
	cr_assert_eq(perfring_symbols_open(&symbols, NULL), 0);
	cr_assert_eq(perfring_stacks_open(&stacks, maps, symbols), 0);
	take_maps(false);
	{
		char path[1024];
		ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

		cr_assert_gt(length, 0);
		path[length] = 0;
		cr_assert_eq(perfring_symbols_expect(symbols, path, (const uint8_t *)"another build's id..", 20), 0);
		cr_assert_eq(perfring_symbols_expect(symbols, path, (const uint8_t *)"", 0), -EINVAL);
		cr_assert_eq(perfring_symbols_expect(symbols, path, (const uint8_t *)"", 21), -EINVAL);
	}
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_eq(chain.nr, 2);
	end_all();
}

/* Mappings that change are looked at again; a fork's are its parent's. */
Test(stacks, versions)
{
	struct perfring_record fork = {.type = PERFRING_RECORD_FORK};
	struct perfring_record exec = {.type = PERFRING_RECORD_COMM, .misc = PERFRING_RECORD_MISC_COMM_EXEC};
	uint32_t pid = (uint32_t)getpid(), child = pid + 1;
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;

	begin(false);
	capture_deep();
	cr_assert_neq(perfring_maps_version(maps, pid), 0);
	cr_assert_eq(perfring_maps_version(maps, child), 0);
	fork.is.fork = (struct perfring_record_fork){.pid = child, .ppid = pid, .tid = child, .ptid = pid, .time = 1};
	cr_assert_eq(perfring_maps_take_record(maps, &fork), 0);
	cr_assert_eq(perfring_maps_version(maps, child), perfring_maps_version(maps, pid));
	sample = sample_of(captured.size, NULL, 0);
	sample.pid = sample.tid = child;
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_geq(compare(&chain, 1), 12);
	exec.is.comm = (struct perfring_record_comm){.pid = child, .tid = child, .comm = string_of("other")};
	cr_assert_eq(perfring_maps_take_record(maps, &exec), 0);
	cr_assert_eq(perfring_maps_version(maps, child), 0);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_eq(chain.nr, 2);
	cr_assert_eq(why, PERFRING_UNWIND_NO_RULE);
	end_all();
}

/* Each maps something of its own. */
Test(stacks, more_processes_than_spaces)
{
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;
	uint32_t pid = (uint32_t)getpid();

	begin(false);
	capture_deep();
	sample = sample_of(captured.size, NULL, 0);
	for (uint32_t i = 1; i < 2 * PERFRING_STACKS_SPACES_MAX; i++) {
		struct perfring_record fork = {.type = PERFRING_RECORD_FORK};
		struct perfring_record map = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};

		fork.is.fork = (struct perfring_record_fork){
			.pid = pid + i, .ppid = pid, .tid = pid + i, .ptid = pid, .time = i};
		map.is.mmap2.pid = map.is.mmap2.tid = pid + i;
		map.is.mmap2.addr = 0x1000;
		map.is.mmap2.len = 0x1000;
		map.is.mmap2.filename = string_of("//anon");
		cr_assert_eq(perfring_maps_take_record(maps, &fork), 0);
		cr_assert_eq(perfring_maps_take_record(maps, &map), 0);
	}
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 2 * PERFRING_STACKS_SPACES_MAX; i++) {
			sample.pid = pid + i;
			cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
			cr_assert_geq(compare(&chain, 1), 12);
		}
	end_all();
}

/* ---- samples without copies ---- */

static void formats_of(struct perf_event_attr *attr, struct perfring_format *with, struct perfring_format *without)
{
	*attr = (struct perf_event_attr){.size = sizeof(*attr)};
	attr->sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME |
			    PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_RAW | PERFRING_SAMPLE_REGS_USER |
			    PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_WEIGHT;
	attr->sample_regs_user = MASK;
	attr->sample_stack_user = 4096;
	attr->exclude_callchain_user = 1;
	cr_assert_eq(perfring_format_from_attr(with, attr), 0);
	cr_assert(perfring_stacks_attr(attr));
	cr_assert_eq(perfring_format_from_attr(without, attr), 0);
}

Test(stacks, attr_without_copies)
{
	struct perfring_format with, without;
	struct perf_event_attr attr, same;

	formats_of(&attr, &with, &without);
	cr_assert_eq(with.sample_type & ~without.sample_type, PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER);
	cr_assert_eq(without.sample_type & ~with.sample_type, 0);
	cr_assert(!attr.sample_regs_user && !attr.sample_stack_user && !attr.exclude_callchain_user);
	same = attr;
	cr_assert(!perfring_stacks_attr(&attr));
	cr_assert_eq(memcmp(&attr, &same, sizeof(attr)), 0);
	/* registers alone are no copies: who asked for them keeps them */
	attr.sample_type |= PERFRING_SAMPLE_REGS_USER;
	attr.sample_regs_user = MASK;
	cr_assert(!perfring_stacks_attr(&attr));
	cr_assert_eq(attr.sample_regs_user, MASK);
	/* what had no callchain has one */
	attr.sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER;
	cr_assert(perfring_stacks_attr(&attr));
	cr_assert_eq(attr.sample_type, PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CALLCHAIN);
}

Test(stacks, encoded)
{
	static const uint64_t kernel[] = {(uint64_t)(int64_t)PERFRING_CONTEXT_KERNEL, 0xffffffff81000000};
	static unsigned char record[1 << 16], huge[65400];
	struct perfring_format with, without;
	struct perfring_sample sample, back;
	struct perf_event_attr attr;
	enum perfring_unwind_end why;
	int64_t size;

	begin(false);
	capture_deep();
	formats_of(&attr, &with, &without);
	sample = sample_of(captured.size, kernel, 2);
	sample.misc = PERFRING_RECORD_MISC_KERNEL;
	sample.time = 77;
	sample.ip = kernel[1];
	sample.weight = 99;
	sample.raw = perfring_raw_of("payload....", 12);
	size = perfring_stacks_encode(stacks, &sample, FRAMES, &without, record, sizeof(record), &why);
	cr_assert_gt(size, 0);
	cr_assert_eq(perfring_sample_decode_any(&without, (const void *)record, &back, NULL), 0);
	cr_assert(!(back.present & (PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER)));
	cr_assert_eq(back.misc, PERFRING_RECORD_MISC_KERNEL);
	cr_assert(back.time == 77 && back.ip == kernel[1] && back.weight == 99 && back.pid == sample.pid);
	cr_assert_eq(memcmp(back.raw.data, "payload....", 12), 0);
	cr_assert(back.callchain.words[0] == kernel[0] && back.callchain.words[1] == kernel[1] &&
		  back.callchain.words[2] == (uint64_t)(int64_t)PERFRING_CONTEXT_USER);
	cr_assert_geq(compare(&back.callchain, 3), 12);
	cr_assert_eq(perfring_stacks_encode(stacks, &sample, FRAMES, &without, record, (size_t)size - 8, &why),
		     -ENOSPC);
	/* what cannot be unwound keeps its own chain, also where the record has no space */
	sample.regs_user.abi = 1;
	cr_assert_gt(perfring_stacks_encode(stacks, &sample, FRAMES, &without, record, sizeof(record), &why), 0);
	cr_assert_eq(perfring_sample_decode_any(&without, (const void *)record, &back, NULL), 0);
	cr_assert_eq(back.callchain.nr, 2);
	sample.regs_user.abi = ABI_64;
	sample.raw = perfring_raw_of(huge, sizeof(huge));
	cr_assert_gt(perfring_stacks_encode(stacks, &sample, FRAMES, &without, record, sizeof(record), &why), 0);
	cr_assert_eq(perfring_sample_decode_any(&without, (const void *)record, &back, NULL), 0);
	cr_assert_eq(back.callchain.nr, 2);
	cr_assert_geq(back.raw.size, sizeof(huge));
	end_all();
}

/* A cache that is for unwinding alone reads no symbols, and leads to the same frames. */
Test(stacks, without_names)
{
	static const struct perfring_symbols_options nameless = {.flags = PERFRING_SYMBOLS_NAMELESS};
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;
	enum perfring_unwind_end why;
	struct perfring_list chain;
	struct perfring_sample sample;
	uint64_t offset;

	begin(false);
	perfring_stacks_close(stacks);
	perfring_symbols_close(symbols);
	cr_assert_eq(perfring_symbols_open(&symbols, &nameless), 0);
	cr_assert_eq(perfring_stacks_open(&stacks, maps, symbols), 0);
	capture_deep();
	sample = sample_of(captured.size, NULL, 0);
	cr_assert_eq(perfring_stacks_chain(stacks, &sample, FRAMES, &chain, &why), 1);
	cr_assert_geq(compare(&chain, 1), 12);
	offset = perfring_mapping_offset(
		perfring_maps_find(maps, PERFRING_RECORD_MISC_USER, sample.pid, captured.values[2]),
		captured.values[2]);
	cr_assert_geq(perfring_symbols_get(symbols, &(struct perfring_symbol_file){.path = "/proc/self/exe"}, &object),
		      0);
	cr_assert(!perfring_symbol_find(object, offset, &symbol));
	cr_assert_eq(symbol.why, PERFRING_SYMBOL_NONE);
	end_all();
}

#else

Test(stacks, whole)
{
	cr_skip_test("SKIP-ENV: this test's registers are x86-64's");
}

#endif
