/* kernel_test.c - samples of this kernel: every sample bit of every source that makes some (docs/abi.md 13), held against what
 * else can tell, and written again byte for byte. */
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include "kernel_rig.h"
#include "test.h"
#include "watch.h"

TestSuite(kernel, .timeout = 100);

#if defined(__x86_64__)
enum {
	SP_BIT = 7,
	IP_BIT = 8,
};
#define REGS_MASK UINT64_C(0xff0fff) /* all but DS ES FS GS */
#define REGS_NR 20
#elif defined(__aarch64__)
enum {
	SP_BIT = 31,
	IP_BIT = 32,
};
#define REGS_MASK ((UINT64_C(1) << 33) - 1)
#define REGS_NR 33
#else
/* What needs registers by name is left out. */
enum {
	SP_BIT = 0,
	IP_BIT = 0,
};
#define REGS_MASK UINT64_C(0)
#define REGS_NR 0
#endif

/* ---- the places where things happen: two sections, whose bounds the linker tells ---- */

/* Locals are to lie on the real stack, and frames to be chained. */
#define UNTOUCHED __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#define PLACED(section_) __attribute__((noinline, section(#section_))) UNTOUCHED
/* Before and behind the place: the frame is there, and stays. */
#define FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")

extern const char __start_kernel_test_act[], __stop_kernel_test_act[];
extern const char __start_kernel_test_caller[], __stop_kernel_test_caller[];
extern const char kernel_test_probe[]; /* the instruction that the uprobe is on */

static bool is_in_act(uint64_t address)
{
	return address >= (uintptr_t)__start_kernel_test_act && address < (uintptr_t)__stop_kernel_test_act;
}

static bool is_in_caller(uint64_t address)
{
	return address >= (uintptr_t)__start_kernel_test_caller && address < (uintptr_t)__stop_kernel_test_caller;
}

/* A system call from the very function that asks for it: libc's would stand between in the callchain. */
#define INLINED static inline __attribute__((always_inline)) UNTOUCHED
INLINED long trap(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
#if defined(__x86_64__)
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#else
	return syscall(nr, a, b, c, d, e, f);
#endif
}

static volatile uint64_t *head_of_ring;
static volatile unsigned char *fresh; /* TIMES pages never touched */
static const uint64_t arguments[6] = {0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x1006};
static const struct timespec nap = {0, 20000};
static union bpf_attr bpf_run;
static uint64_t bpf_payload;
static uintptr_t marked_at; /* the pattern in the caller's frame */
static unsigned char mark[MARK];

/* Runs until there is another record. */
PLACED(kernel_test_act) static void act_spin(unsigned i)
{
	uint64_t head = *head_of_ring;
	unsigned left = 200000000;

	(void)i;
	FRAME();
	while (*head_of_ring == head && --left)
		;
}

PLACED(kernel_test_act) static void act_touch(unsigned i)
{
	FRAME();
	fresh[(size_t)i * PAGE + 8 * (size_t)i] = 1;
	FRAME();
}

/* Sleeps until the thread has been switched away: a timer that has fired before the scheduler comes to it, as where the
 * hypervisor took the CPU meanwhile, ends a sleep that never was. */
PLACED(kernel_test_act) static void act_sleep(unsigned i)
{
	struct rusage before, now;

	(void)i;
	FRAME();
	trap(SYS_getrusage, RUSAGE_THREAD, (uintptr_t)&before, 0, 0, 0, 0);
	do {
		trap(SYS_nanosleep, (uintptr_t)&nap, 0, 0, 0, 0, 0);
		trap(SYS_getrusage, RUSAGE_THREAD, (uintptr_t)&now, 0, 0, 0, 0);
	} while (now.ru_nvcsw == before.ru_nvcsw && now.ru_nivcsw == before.ru_nivcsw);
}

PLACED(kernel_test_act) static void act_call(unsigned i)
{
	(void)i;
	FRAME();
	trap(SYS_getpid, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x1006);
}

PLACED(kernel_test_act) static void act_write(unsigned i)
{
	FRAME();
	watched = i;
	FRAME();
}

PLACED(kernel_test_act) static void act_probed(unsigned i)
{
	(void)i;
	FRAME();
	__asm__ volatile(".globl kernel_test_probe\nkernel_test_probe:\n\tnop");
	FRAME();
}

/* Payloads of 1 to 16 bytes. */
PLACED(kernel_test_act) static void act_output(unsigned i)
{
	FRAME();
	bpf_payload = 1 + i % 16;
	trap(SYS_bpf, BPF_PROG_TEST_RUN, (uintptr_t)&bpf_run, sizeof(bpf_run), 0, 0, 0);
}

PLACED(kernel_test_caller) static void occur(void (*act)(unsigned), unsigned times)
{
	volatile unsigned char pattern[MARK];
	unsigned i;

	FRAME();
	for (i = 0; i < MARK; i++)
		pattern[i] = mark[i];
	marked_at = (uintptr_t)pattern;
	for (i = 0; i < times; i++)
		act(i);
	__asm__ volatile("" : : "r"(pattern) : "memory");
}

/* ---- sources: what makes samples ---- */

static uint64_t tracepoint_type;

static void set_cpu_clock(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
}

static void set_page_faults(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_PAGE_FAULTS;
}

static void set_context_switches(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
}

static void set_tracepoint(struct perf_event_attr *attr)
{
	tracepoint_type = tracepoint_id("raw_syscalls/sys_enter");
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = tracepoint_type;
}

static void set_breakpoint(struct perf_event_attr *attr)
{
	need_breakpoints();
	watched = 1;
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = 2; /* writes */
	attr->bp_addr = (uintptr_t)&watched;
	attr->bp_len = 8;
}

static void set_uprobe(struct perf_event_attr *attr)
{
	static char path[512];
	const struct mapping *mapping;
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (!file)
		cr_skip_test("SKIP-ENV: uprobe: %s: needs CONFIG_UPROBE_EVENTS", strerror(errno));
	cr_assert_eq(fscanf(file, "%u", &attr->type), 1);
	fclose(file);
	cr_assert_gt(length, 0);
	path[length] = '\0';
	read_mappings();
	mapping = mapping_of((uintptr_t)kernel_test_probe);
	cr_assert_not_null(mapping);
	attr->uprobe_path = (uintptr_t)path;
	attr->probe_offset = (uintptr_t)kernel_test_probe - mapping->start + mapping->offset;
}

/* ---- BPF, by hand ---- */

/* 32 bytes, no two alike. */
static const uint64_t payload[4] = {UINT64_C(0x1122334455667788), UINT64_C(0x99aabbccddeeff01),
				    UINT64_C(0x0203040506070809), UINT64_C(0x0a0b0c0d0e0f1011)};
static int bpf_map = -1;
static int bpf_prog = -1;

/* A program that hands the first (its argument, at most 31) bytes of `payload` to the event in the map. */
static void set_bpf_output(struct perf_event_attr *attr)
{
	struct bpf_insn insns[32];
	union bpf_attr map;
	size_t nr = 0, i;

	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	if (bpf_prog >= 0)
		return;
	memset(&map, 0, sizeof(map));
	map.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	map.key_size = 4;
	map.value_size = 4;
	map.max_entries = 1;
	bpf_map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map));
	if (bpf_map < 0)
		cr_skip_test("SKIP-ENV: bpf(BPF_MAP_CREATE): %s: needs CAP_BPF", strerror(errno));
	insns[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	insns[nr++] = INSN(BPF_LDX | BPF_MEM | BPF_DW, 5, 6, 0, 0);
	insns[nr++] = INSN(BPF_ALU64 | BPF_AND | BPF_K, 5, 0, 0, 31);
	for (i = 0; i < 4; i++) {
		insns[nr++] = INSN(BPF_LD | BPF_DW | BPF_IMM, 2, 0, 0, (int32_t)payload[i]);
		insns[nr++] = INSN(0, 0, 0, 0, (int32_t)(payload[i] >> 32));
		insns[nr++] = INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 2, (int16_t)(8 * (int)i - 32), 0);
	}
	insns[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0);
	insns[nr++] = INSN(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0, bpf_map);
	insns[nr++] = INSN(0, 0, 0, 0, 0);
	insns[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 0); /* the map's entry 0 */
	insns[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 10, 0, 0);
	insns[nr++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, -32);
	insns[nr++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output);
	insns[nr++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	bpf_prog = bpf_load(insns, nr, "perfring_output");
	if (bpf_prog < 0)
		cr_skip_test("SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON", strerror(errno));
}

/* ---- what else can tell ---- */

/* Where cgroup v2 is mounted, or "". */
static const char *cgroup_mount(void)
{
	static char place[256];
	char line[1024], *kind;
	FILE *file = fopen("/proc/self/mountinfo", "r");

	place[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		kind = strstr(line, " - cgroup2 ");
		if (kind && sscanf(line, "%*s %*s %*s %*s %255s", place) == 1)
			break;
	}
	if (file)
		fclose(file);
	return place;
}

/* The id of this task's cgroup: its inode (docs/abi.md 5); 0 when it cannot be told. */
static uint64_t cgroup_id(void)
{
	char line[512], path[1024];
	FILE *file = fopen("/proc/self/cgroup", "r");
	uint64_t id = 0;
	struct stat stat_of;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, sizeof(path), "%s%s", cgroup_mount(), line + 3);
		if (strncmp(line, "0::", 3) == 0 && cgroup_mount()[0] && stat(path, &stat_of) == 0)
			id = stat_of.st_ino;
	}
	if (file)
		fclose(file);
	return id;
}

/* The physical address by /proc/self/pagemap; 0 when it does not say. */
static uint64_t physical(const volatile void *address)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (pread(fd, &entry, 8, (off_t)((uintptr_t)address / PAGE * 8)) != 8)
			entry = 0;
		close(fd);
	}
	entry &= (UINT64_C(1) << 55) - 1;
	return entry ? entry * PAGE + (uintptr_t)address % PAGE : 0;
}

static uint64_t reg_of(const struct perfring_regs *regs, unsigned bit)
{
	return regs->values[__builtin_popcountll(regs->mask & ((UINT64_C(1) << bit) - 1))];
}

static uint64_t word_at(const void *data, size_t at)
{
	uint64_t word;

	memcpy(&word, (const unsigned char *)data + at, 8);
	return word;
}

/* ---- the fields: each asserts what holds for every sample, and counts as a hit what holds for those that we made ---- */

static bool ip_hits(const struct run *run, const struct perfring_sample *sample)
{
	uint32_t mode = sample->misc & 7;
	const struct mapping *mapping;

	cr_assert(mode == PERF_RECORD_MISC_USER || mode == PERF_RECORD_MISC_KERNEL, "mode %u", mode);
	cr_assert(!run->source->mode || mode == run->source->mode || !run->source->is_exact, "mode %u", mode);
	if (mode == PERF_RECORD_MISC_KERNEL) {
		cr_assert(is_kernel(sample->ip), "%#llx", (unsigned long long)sample->ip);
		return run->source->mode == mode;
	}
	mapping = mapping_of(sample->ip);
	cr_assert_not_null(mapping, "%#llx is nowhere", (unsigned long long)sample->ip);
	cr_assert_eq(mapping->mode[2], 'x');
	if (run->source->act == act_probed)
		return sample->ip == (uintptr_t)kernel_test_probe;
	return is_in_act(sample->ip);
}

static bool addr_hits(const struct run *run, const struct perfring_sample *sample)
{
	uint64_t i = run->hits[3];

	if (run->source->act == act_touch)
		return sample->addr == (uintptr_t)fresh + i * PAGE + 8 * i;
	if (run->source->act == act_write)
		return sample->addr == (uintptr_t)&watched;
	return sample->addr == 0;
}

static bool read_hits(struct run *run, const struct perfring_sample *sample)
{
	const struct perfring_read *read = &sample->read;
	uint64_t format = run->attr.read_format, i;

	cr_assert_eq(read->nr, format & PERF_FORMAT_GROUP ? run->fds : 1);
	cr_assert_eq(read->read_format, format);
	for (i = 0; i < read->nr; i++) {
		uint64_t value = perfring_read_value(read, i);

		cr_assert_leq(value, run->value[i]);
		cr_assert_geq(value, run->last_value[i]);
		run->last_value[i] = value;
		cr_assert_eq(perfring_read_id(read, i), format & PERF_FORMAT_ID ? run->id[i] : 0);
		cr_assert_eq(perfring_read_lost(read, i), 0);
	}
	if (run->source->counts)
		cr_assert_eq(perfring_read_value(read, 0), run->samples);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED) {
		cr_assert_gt(read->enabled, run->last_enabled);
		cr_assert_leq(read->enabled, run->enabled);
		run->last_enabled = read->enabled;
	}
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING) {
		cr_assert_gt(read->running, run->last_running);
		cr_assert_leq(read->running, run->running);
		run->last_running = read->running;
	}
	/* Nothing is multiplexed. */
	if ((format & 3) == 3)
		cr_assert_eq(read->enabled, read->running);
	return true;
}

static bool callchain_hits(const struct run *run, const struct perfring_sample *sample)
{
	const struct perfring_list *chain = &sample->callchain;
	uint32_t mode = sample->misc & 7;
	uint64_t i;

	cr_assert_geq(chain->nr, 2);
	cr_assert_eq(chain->words[0],
		     (uint64_t)(mode == PERF_RECORD_MISC_USER ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL));
	if (run->attr.sample_type & PERF_SAMPLE_IP)
		cr_assert_eq(chain->words[1], sample->ip);
	for (i = 0; i < chain->nr && chain->words[i] != (uint64_t)PERF_CONTEXT_USER; i++)
		cr_assert(i == 0 || is_kernel(chain->words[i]), "%llx", (unsigned long long)chain->words[i]);
	if (i + 2 >= chain->nr)
		return false;
	if (run->attr.sample_type & PERF_SAMPLE_REGS_USER)
		cr_assert_eq(chain->words[i + 1], reg_of(&sample->regs_user, IP_BIT));
	return is_in_act(chain->words[i + 1]) && is_in_caller(chain->words[i + 2]);
}

static bool raw_hits(const struct run *run, const struct perfring_sample *sample)
{
	const void *data = sample->raw.data;
	uint32_t size = sample->raw.size;
	size_t bytes = 1 + run->hits[10] % 16;

	cr_assert_eq((size + 4) % 8, 0, "%u", size);
	if (run->source->act == act_call) {
		/* raw_syscalls:sys_enter: u16 type, u8 flags, u8 preempt_count, s32 pid, s64 id, u64 args[6]. */
		cr_assert_eq(size, 68);
		cr_assert_eq(half_at(data, 0) & 0xffff, tracepoint_type);
		cr_assert_eq(half_at(data, 4), thread_id());
		return word_at(data, 8) == SYS_getpid &&
		       memcmp((const char *)data + 16, arguments, sizeof(arguments)) == 0;
	}
	if (run->source->act == act_probed) {
		cr_assert_eq(size, 20);
		cr_assert_eq(half_at(data, 4), thread_id());
		return word_at(data, 8) == (uintptr_t)kernel_test_probe;
	}
	if (run->source->act == act_output) {
		/* docs/abi.md 15: 1..4 -> 4, 5..12 -> 12, 13..20 -> 20. */
		cr_assert_eq(size, bytes <= 4 ? 4 : bytes <= 12 ? 12 : 20, "%u for %zu", size, bytes);
		cr_assert_eq(memcmp(data, payload, bytes), 0);
		return true;
	}
	cr_assert_eq(size, 4);
	return half_at(data, 0) == 0;
}

static bool regs_user_hits(const struct run *run, const struct perfring_sample *sample)
{
	const struct perfring_regs *regs = &sample->regs_user;
	uint64_t sp, ip;

	cr_assert_eq(regs->abi, 2);
	cr_assert_eq(regs->nr, REGS_NR);
	cr_assert_eq(regs->mask, REGS_MASK);
	sp = reg_of(regs, SP_BIT);
	ip = reg_of(regs, IP_BIT);
	cr_assert(mapping_of(sp) && mapping_of(sp) == mapping_of(marked_at), "SP %#llx", (unsigned long long)sp);
	cr_assert_not_null(mapping_of(ip), "IP %#llx", (unsigned long long)ip);
	if ((run->attr.sample_type & PERF_SAMPLE_IP) && (sample->misc & 7) == PERF_RECORD_MISC_USER)
		cr_assert_eq(ip, sample->ip);
	if (!is_in_act(ip))
		return false;
	cr_assert_leq(sp, marked_at);
	cr_assert_lt(marked_at - sp, STACK - MARK);
#if defined(__x86_64__)
	/* CS of user mode; and the arguments of the system call: DI SI DX R10 R8 R9. */
	cr_assert_eq(reg_of(regs, 10), 0x33);
	if (run->source->act == act_call) {
		static const unsigned bits[6] = {5, 4, 3, 18, 16, 17};
		unsigned i;

		for (i = 0; i < 6; i++)
			cr_assert_eq(reg_of(regs, bits[i]), arguments[i], "register %u", bits[i]);
	}
#endif
	return true;
}

static bool regs_intr_hits(const struct run *run, const struct perfring_sample *sample)
{
	const struct perfring_regs *regs = &sample->regs_intr;
	bool is_user = (sample->misc & 7) == PERF_RECORD_MISC_USER;
	uint64_t ip;

	cr_assert_eq(regs->abi, 2);
	cr_assert_eq(regs->nr, REGS_NR);
	ip = reg_of(regs, IP_BIT);
	if (run->attr.sample_type & PERF_SAMPLE_IP)
		cr_assert_eq(ip, sample->ip);
	if (!is_user) {
		cr_assert(is_kernel(ip));
		cr_assert(is_kernel(reg_of(regs, SP_BIT)));
		return run->source->mode != PERF_RECORD_MISC_USER;
	}
	if (run->attr.sample_type & PERF_SAMPLE_REGS_USER)
		cr_assert_eq(memcmp(regs->values, sample->regs_user.values, 8 * REGS_NR), 0);
	return is_in_act(ip) && mapping_of(reg_of(regs, SP_BIT)) == mapping_of(marked_at);
}

static bool stack_hits(const struct run *run, const struct perfring_sample *sample)
{
	const struct perfring_stack *stack = &sample->stack_user;
	uint64_t sp, at;

	cr_assert_eq(stack->size, STACK);
	cr_assert_leq(stack->dyn_size, STACK);
	if (!(run->attr.sample_type & PERF_SAMPLE_REGS_USER))
		return memmem(stack->data, stack->dyn_size, mark, MARK) != NULL;
	sp = reg_of(&sample->regs_user, SP_BIT);
	at = marked_at - sp;
	return stack->dyn_size == STACK && at < STACK - MARK && memcmp((const char *)stack->data + at, mark, MARK) == 0;
}

static bool phys_hits(const struct run *run, const struct perfring_sample *sample)
{
	uint64_t phys = sample->phys_addr, told = physical(&watched);

	if (run->source->act != act_write)
		return phys == 0;
	cr_assert_neq(phys, 0);
	cr_assert_eq(phys % PAGE, (uintptr_t)&watched % PAGE);
	return !told || phys == told;
}

static bool is_page_size(uint64_t size)
{
	return size >= PAGE && (size & (size - 1)) == 0;
}

static bool code_page_hits(const struct run *run, const struct perfring_sample *sample)
{
	if ((sample->misc & 7) == PERF_RECORD_MISC_KERNEL) {
		cr_assert(is_page_size(sample->code_page_size), "%llu", (unsigned long long)sample->code_page_size);
		return run->source->mode != PERF_RECORD_MISC_USER;
	}
	return sample->code_page_size == PAGE;
}

static bool field_hits(struct run *run, const struct perfring_sample *sample, unsigned bit)
{
	switch (bit) {
	case 0:
		return ip_hits(run, sample);
	case 1:
		cr_assert_eq(sample->pid, (uint32_t)getpid());
		cr_assert_eq(sample->tid, thread_id());
		return true;
	case 2:
		if (run->attr.use_clockid) {
			cr_assert_geq(sample->time, run->begun);
			cr_assert_leq(sample->time, run->ended);
		}
		run->first_time = run->first_time ? run->first_time : sample->time;
		cr_assert_gt(run->first_time, 0);
		cr_assert_geq(sample->time, run->time);
		cr_assert_leq(sample->time - run->first_time, run->ended - run->begun);
		run->time = sample->time;
		return true;
	case 3:
		return addr_hits(run, sample);
	case 4:
		return read_hits(run, sample);
	case 5:
		return callchain_hits(run, sample);
	case 6:
		cr_assert_eq(sample->id, run->id[0]);
		return true;
	case 7:
		cr_assert_eq(sample->cpu, run->cpu);
		cr_assert_eq(sample->cpu_reserved, 0);
		return true;
	case 8:
		cr_assert_eq(sample->period, run->source->sampled_period);
		return true;
	case 9:
		cr_assert_eq(sample->stream_id, run->id[0]);
		return true;
	case 10:
		return raw_hits(run, sample);
	case 12:
		return regs_user_hits(run, sample);
	case 13:
		return stack_hits(run, sample);
	case 14:
		cr_assert_eq(sample->weight, 0);
		return true;
	case 15:
		cr_assert_eq(sample->data_src, UINT64_C(0x1e05080021));
		return true;
	case 16:
		cr_assert_eq(sample->identifier, run->id[0]);
		return true;
	case 17:
		cr_assert_eq(sample->transaction, 0);
		return true;
	case 18:
		return regs_intr_hits(run, sample);
	case 19:
		return phys_hits(run, sample);
	case 20:
		cr_assert_eq(sample->aux.size, 0);
		return true;
	case 21:
		cr_assert_eq(sample->cgroup, cgroup_id());
		return true;
	case 22:
		if (run->source->act == act_write)
			cr_assert_eq(sample->data_page_size, PAGE);
		else
			cr_assert(sample->data_page_size == 0 || is_page_size(sample->data_page_size));
		return run->source->act == act_write || sample->data_page_size == 0;
	case 23:
		return code_page_hits(run, sample);
	case 24:
		cr_assert_eq(sample->weight_struct.var1, 0);
		cr_assert_eq(sample->weight_struct.var2, 0);
		cr_assert_eq(sample->weight_struct.var3, 0);
		return true;
	default:
		return false;
	}
}

/* read(2), by the text of docs/abi.md 2.2. */
static void read_final(struct run *run)
{
	uint64_t words[32] = {0}, *word = words, format = run->attr.read_format, nr = 1, i;

	cr_assert_gt(read(run->fd[0], words, sizeof(words)), 0);
	if (format & PERF_FORMAT_GROUP)
		nr = *word++;
	else
		run->value[0] = *word++;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		run->enabled = *word++;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		run->running = *word++;
	cr_assert_leq(nr, 3);
	for (i = 0; i < nr; i++) {
		if (format & PERF_FORMAT_GROUP)
			run->value[i] = *word++;
		if (format & PERF_FORMAT_ID)
			cr_assert_eq(*word++, run->id[i]);
		if (format & PERF_FORMAT_LOST)
			cr_assert_eq(*word++, 0);
	}
}

static void set_sampling(struct run *run, const struct source *source, uint64_t sample_type)
{
	memset(run, 0, sizeof(*run));
	run->source = source;
	source->set(&run->attr);
	run->attr.sample_period = source->period;
	run->attr.sample_type = sample_type;
	run->attr.sample_regs_user = sample_type & PERF_SAMPLE_REGS_USER ? REGS_MASK : 0;
	run->attr.sample_regs_intr = sample_type & PERF_SAMPLE_REGS_INTR ? REGS_MASK : 0;
	run->attr.sample_stack_user = sample_type & PERF_SAMPLE_STACK_USER ? STACK : 0;
	run->attr.branch_sample_type = sample_type & PERF_SAMPLE_BRANCH_STACK ? PERF_SAMPLE_BRANCH_ANY : 0;
	run->attr.use_clockid = 1;
	run->attr.clockid = CLOCK_MONOTONIC;
}

static void add_siblings(struct run *run)
{
	static const uint64_t configs[2] = {PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS};
	struct perf_event_attr attr;
	unsigned i;

	for (i = 0; i < 2; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = configs[i];
		attr.use_clockid = run->attr.use_clockid;
		attr.clockid = run->attr.clockid;
		attr.read_format = run->attr.read_format;
		run->fd[run->fds] = open_event(&attr, 0, -1, run->fd[0]);
		cr_assert_geq(run->fd[run->fds], 0, "%s", strerror(errno));
		cr_assert_eq(ioctl(run->fd[run->fds], PERF_EVENT_IOC_ID, &run->id[run->fds]), 0);
		run->fds++;
	}
}

/* Lets it happen, and looks at every sample. */
static void record_samples(struct run *run)
{
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct perfring_record is;
	static unsigned char turn;
	unsigned bit, i;

	/* A pattern that was on no stack before. */
	turn++;
	for (i = 0; i < MARK; i++)
		mark[i] = (unsigned char)(i * 37 + turn * 11 + 1);
	fresh = mmap(NULL, TIMES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(fresh != MAP_FAILED);
	madvise((void *)(uintptr_t)fresh, TIMES * PAGE, MADV_NOHUGEPAGE);
	head_of_ring = (volatile uint64_t *)&run->ring.page->data_head;
	read_mappings();
	if (run->source->opened)
		run->source->opened(run);
	begin(run);
	occur(run->source->act, TIMES);
	end(run);
	read_final(run);
	while ((record = next_of(run))) {
		if (record->type != PERF_RECORD_SAMPLE) {
			decode_record(run, record, &is);
			continue;
		}
		decode_sample(run, record, &sample);
		for (bit = 0; bit < BITS; bit++)
			if (run->attr.sample_type >> bit & 1)
				run->hits[bit] += field_hits(run, &sample, bit);
	}
	cr_assert_geq(run->samples, TIMES, "%s: %u samples", run->source->name, run->samples);
	if (run->source->counts)
		cr_assert_eq(run->samples, run->value[0]);
	if (run->source->is_exact)
		cr_assert_eq(run->samples, TIMES);
	for (bit = 0; bit < BITS; bit++)
		if (run->attr.sample_type >> bit & 1)
			cr_assert_geq(run->hits[bit], run->source->least, "%s: bit %u: %u of %u samples as expected",
				      run->source->name, bit, run->hits[bit], run->samples);
	munmap((void *)(uintptr_t)fresh, TIMES * PAGE);
}

static void put_in_map(const struct run *run)
{
	union bpf_attr attr;
	uint32_t key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)bpf_map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&run->fd[0];
	cr_assert_eq(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)), 0, "%s", strerror(errno));
	memset(&bpf_run, 0, sizeof(bpf_run));
	bpf_run.test.prog_fd = (uint32_t)bpf_prog;
	bpf_run.test.ctx_in = (uintptr_t)&bpf_payload;
	bpf_run.test.ctx_size_in = sizeof(bpf_payload);
}

/* A sample of cpu-clock falls where it likes, and may find a frame half built; a task can be preempted anywhere; and
 * the ioctl that disables a tracepoint of system calls is one. */
static const struct source cpu_clock = {
	.name = "cpu-clock",
	.act = act_spin,
	.set = set_cpu_clock,
	.least = TIMES / 2,
	.period = 200000,
	.sampled_period = 200000,
};
static const struct source page_faults = {
	.name = "page-faults",
	.act = act_touch,
	.set = set_page_faults,
	.mode = PERF_RECORD_MISC_USER,
	.least = TIMES,
	.period = 1,
	.sampled_period = 1,
	.counts = true,
};
static const struct source context_switches = {
	.name = "context-switches",
	.act = act_sleep,
	.set = set_context_switches,
	.mode = PERF_RECORD_MISC_KERNEL,
	.least = TIMES,
	.period = 1,
	.sampled_period = 1,
	.counts = true,
};
static const struct source tracepoint = {
	.name = "raw_syscalls:sys_enter",
	.act = act_call,
	.set = set_tracepoint,
	.mode = PERF_RECORD_MISC_KERNEL,
	.least = TIMES,
	.period = 1,
	.sampled_period = 1,
	.counts = true,
};
static const struct source breakpoint = {
	.name = "breakpoint",
	.act = act_write,
	.set = set_breakpoint,
	.mode = PERF_RECORD_MISC_USER,
	.least = TIMES,
	.period = 1,
	.sampled_period = 1,
	.counts = true,
	.is_exact = true,
};
static const struct source uprobe = {
	.name = "uprobe",
	.act = act_probed,
	.set = set_uprobe,
	.mode = PERF_RECORD_MISC_USER,
	.least = TIMES,
	.period = 1,
	.sampled_period = 1,
	.counts = true,
	.is_exact = true,
};
static const struct source bpf_output = {
	.name = "bpf-output",
	.act = act_output,
	.set = set_bpf_output,
	.opened = put_in_map,
	.mode = PERF_RECORD_MISC_KERNEL,
	.least = TIMES,
	.period = 1,
	.is_exact = true,
};

/* docs/abi.md 13: this kernel takes 24 of the 25 bits, and BRANCH_STACK from no event. */
static void each_bit(const struct source *source)
{
	static struct run run;
	unsigned bit, taken = 0;
	int ret;

	for (bit = 0; bit < BITS; bit++) {
		if (!REGS_NR && (bit == 12 || bit == 18))
			continue;
		set_sampling(&run, source, UINT64_C(1) << bit);
		ret = run_open_pages(&run, 0, -1, PAGES);
		if (bit == 11 && ret == -EOPNOTSUPP)
			continue;
		must_be_open(&run.attr, ret);
		record_samples(&run);
		run_close(&run);
		taken++;
	}
	cr_assert_geq(taken, REGS_NR ? 24 : 22);
	say_compared(source->name, taken * TIMES);
}

static void all_bits(const struct source *source)
{
	const uint64_t all = (UINT64_C(1) << BITS) - 1 - PERF_SAMPLE_BRANCH_STACK;
	static struct run run;
	unsigned turn;

	if (!REGS_NR)
		cr_skip_test("SKIP-ENV: which registers are SP and IP is not known to this test");
	/* With WEIGHT or WEIGHT_STRUCT; by CLOCK_MONOTONIC or the default clock. */
	for (turn = 0; turn < 4; turn++) {
		set_sampling(&run, source, all & ~(UINT64_C(1) << (turn & 1 ? 14 : 24)));
		run.attr.read_format = 0x1f;
		if (turn & 2) {
			run.attr.use_clockid = 0;
			run.attr.clockid = 0;
		}
		must_open(&run, 0, -1);
		add_siblings(&run);
		record_samples(&run);
		run_close(&run);
	}
	say_compared(source->name, 4 * TIMES);
}

static void read_formats(const struct source *source)
{
	static struct run run;
	uint64_t format;
	unsigned group;

	for (format = 0; format < 32; format++) {
		for (group = 0; group < 2; group++) {
			set_sampling(&run, source, PERF_SAMPLE_READ | PERF_SAMPLE_TIME | PERF_SAMPLE_DATA_SRC);
			run.attr.read_format = format;
			must_open(&run, 0, -1);
			if (group)
				add_siblings(&run);
			record_samples(&run);
			if (group && (format & PERF_FORMAT_GROUP)) {
				/* The siblings counted: the clock always, faults as the source makes them. */
				cr_assert_gt(run.value[1], 0);
				if (source->act == act_touch)
					cr_assert_eq(run.value[2], run.value[0]);
			}
			run_close(&run);
		}
	}
	say_compared(source->name, 64 * TIMES);
}

#define SOURCE(source) \
	Test(kernel, source##_each_bit) \
	{ \
		each_bit(&source); \
	} \
	Test(kernel, source##_all_bits) \
	{ \
		all_bits(&source); \
	} \
	Test(kernel, source##_read_formats) \
	{ \
		read_formats(&source); \
	}

SOURCE(cpu_clock)
SOURCE(page_faults)
SOURCE(context_switches)
SOURCE(tracepoint)
SOURCE(breakpoint)
SOURCE(uprobe)
SOURCE(bpf_output)

/* Needs no permission: what the others stand on. */
Test(kernel, places_are_apart)
{
	cr_assert(is_in_act((uintptr_t)act_touch));
	cr_assert(is_in_act((uintptr_t)kernel_test_probe));
	cr_assert(is_in_caller((uintptr_t)occur));
	cr_assert_not(is_in_act((uintptr_t)occur));
	cr_assert_not(is_in_caller((uintptr_t)act_touch));
}

/* ---- records ---- */

static void touch_all(void *with)
{
	(void)with;
	occur(act_touch, TIMES);
}

/* TID, with two numbers. */
Test(kernel, page_faults_of_a_thread)
{
	static struct run run;
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct actor actor;

	set_sampling(&run, &page_faults, PERF_SAMPLE_TID | PERF_SAMPLE_ADDR);
	fresh = mmap(NULL, TIMES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(fresh != MAP_FAILED);
	madvise((void *)(uintptr_t)fresh, TIMES * PAGE, MADV_NOHUGEPAGE);
	actor_open(&actor, &run, touch_all, NULL);
	actor_acts(&actor, &run);
	while ((record = next_of(&run))) {
		decode_sample(&run, record, &sample);
		cr_assert_eq(sample.pid, (uint32_t)getpid());
		cr_assert_eq(sample.tid, actor.tid);
		run.hits[3] += addr_hits(&run, &sample);
	}
	cr_assert_eq(run.hits[3], TIMES);
	munmap((void *)(uintptr_t)fresh, TIMES * PAGE);
	run_close(&run);
	say_compared("page-faults", TIMES);
}

/* Moves this task; false when it may not. */
static bool move_to(const char *cgroup)
{
	char path[1024], pid[32];
	int fd, length = snprintf(pid, sizeof(pid), "%d", getpid());
	bool moved;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	moved = fd >= 0 && write(fd, pid, (size_t)length) == length;
	if (fd >= 0)
		close(fd);
	return moved;
}

/* Removes the cgroups of this test: our own, and those of runs that are no more. */
static void remove_cgroups(void)
{
	const char *mounted = cgroup_mount();
	char pattern[300];
	glob_t found;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/perfring_kernel_*", mounted);
	if (!mounted[0] || glob(pattern, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++) {
		int pid = atoi(strrchr(found.gl_pathv[i], '_') + 1);

		if (pid == getpid())
			move_to(mounted);
		if (pid == getpid() || (kill(pid, 0) && errno == ESRCH))
			rmdir(found.gl_pathv[i]);
	}
	globfree(&found);
}

/* CGROUP records, and samples of a cgroup that is not the root. */
Test(kernel, cgroups, .init = remove_cgroups, .fini = remove_cgroups)
{
	static struct run run;
	char name[64], place[512];
	struct stat root, stat_of;
	struct perfring_record is;
	unsigned turn, found;

	if (!cgroup_mount()[0] || stat(cgroup_mount(), &root))
		cr_skip_test("SKIP-ENV: cgroup2: not mounted: mount -t cgroup2");
	snprintf(name, sizeof(name), "/perfring_kernel_%d", getpid());
	snprintf(place, sizeof(place), "%s%s", cgroup_mount(), name);
	for (turn = 0; turn < 2; turn++) {
		set_dummy(&run, turn);
		run.attr.cgroup = 1;
		must_open(&run, 0, -1);
		begin(&run);
		if (mkdir(place, 0755))
			cr_skip_test("SKIP-ENV: mkdir in cgroup2: %s: needs root", strerror(errno));
		end(&run);
		cr_assert_eq(stat(place, &stat_of), 0);
		for (found = 0; next_record(&run, &is); found++) {
			cr_assert_eq(is.type, PERF_RECORD_CGROUP);
			cr_assert_eq(is.misc, 0);
			cr_assert_eq(is.is.cgroup.id, stat_of.st_ino);
			if (root.st_ino == 1)
				string_is(&is.is.cgroup.path, name);
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
		}
		cr_assert_eq(found, 1);
		run_close(&run);
		if (turn && cgroup_id() == root.st_ino && move_to(place)) {
			cr_assert_eq(cgroup_id(), stat_of.st_ino);
			set_sampling(&run, &page_faults, PERF_SAMPLE_CGROUP);
			must_open(&run, 0, -1);
			record_samples(&run);
			run_close(&run);
			cr_assert(move_to(cgroup_mount()));
		}
		cr_assert_eq(rmdir(place), 0);
	}
	say_compared("CGROUP", 2);
}

static void *touch_and_tell(void *tid)
{
	unsigned i;

	*(uint32_t *)tid = thread_id();
	for (i = 0; i < TIMES; i++)
		act_touch(i);
	return NULL;
}

/* READ: the count of a thread that is gone. */
Test(kernel, reads)
{
	static struct run run;
	struct perfring_record is;
	uint64_t format;
	unsigned turn;

	for (format = 0; format < 32; format++) {
		for (turn = 0; turn < 2; turn++) {
			unsigned found = 0;
			uint32_t tid = 0;
			pthread_t thread;

			set_dummy(&run, turn);
			run.attr.config = PERF_COUNT_SW_PAGE_FAULTS;
			run.attr.inherit_stat = 1;
			run.attr.read_format = format;
			open_inherited(&run);
			fresh = mmap(NULL, TIMES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			cr_assert(fresh != MAP_FAILED);
			madvise((void *)(uintptr_t)fresh, TIMES * PAGE, MADV_NOHUGEPAGE);
			begin(&run);
			cr_assert_eq(pthread_create(&thread, NULL, touch_and_tell, &tid), 0);
			cr_assert_eq(pthread_join(thread, NULL), 0);
			wait_for_thread(tid);
			end(&run);
			read_final(&run);
			while (next_record(&run, &is)) {
				const struct perfring_read *read = &is.is.read.read;

				cr_assert_eq(is.type, PERF_RECORD_READ);
				if (is.is.read.tid != tid)
					continue;
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(is.is.read.pid, (uint32_t)getpid());
				cr_assert_eq(read->nr, 1);
				cr_assert_geq(perfring_read_value(read, 0), TIMES);
				cr_assert_leq(perfring_read_value(read, 0), run.value[0]);
				cr_assert_eq(perfring_read_id(read, 0), format & PERF_FORMAT_ID ? run.id[0] : 0);
				cr_assert_eq(perfring_read_lost(read, 0), 0);
				if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
					cr_assert_gt(read->enabled, 0);
				cr_assert_leq(read->enabled, run.ended - run.begun);
				if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
					cr_assert_gt(read->running, 0);
				cr_assert_leq(read->running, run.ended - run.begun);
				trailer_is(&run, &is, (uint32_t)getpid(), tid, false);
				found++;
			}
			cr_assert_eq(found, 1);
			munmap((void *)(uintptr_t)fresh, TIMES * PAGE);
			run_close(&run);
		}
	}
	say_compared("READ", 64);
}
