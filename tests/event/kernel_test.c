/* kernel_test.c - bytes from this kernel: every sample bit and every kind of record that it writes (docs/abi.md 13), held
 * against what else can tell, and written again byte for byte. */
#include "test.h"
#include "watch.h"

#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <perfring/check.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/sample.h>

TestSuite(kernel, .timeout = 100);

/* Events may signal.  Criterion says that a signal came and not which: once one ended breakpoint_read_formats under the
 * address sanitizer, and nothing was known of it. */
static void name_signal(int number, siginfo_t *info, void *context)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "signal %d, code %d, of pid %d, address %p\n", number, info->si_code,
			      info->si_code > 0 ? 0 : (int)info->si_pid, info->si_code > 0 ? info->si_addr : NULL);

	(void)context;
	if (write(2, text, (size_t)length) < 0)
		_exit(1);
	raise(number); /* SA_RESETHAND: it ends the test as it would have without this handler */
}

__attribute__((constructor)) static void name_signals(void)
{
	static const int numbers[] = {SIGTRAP, SIGIO, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE};
	struct sigaction action = {.sa_sigaction = name_signal, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

enum {
	TIMES = 16,  /* occurrences in each recording */
	PAGES = 64,  /* of each ring */
	PAGE = 4096, /* pin looks */
	MARK = 64,
	STACK = 1024,
	BITS = 25,
	TRAILER = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 16, /* all six fields */
};

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

struct run;

struct source {
	const char *name;
	void (*act)(unsigned i);
	void (*set)(struct perf_event_attr *attr); /* fills type and config, or skips */
	void (*opened)(const struct run *run);
	uint32_t mode;  /* cpumode of every sample; 0: either */
	unsigned least; /* of the TIMES occurrences, how many are seen where they were made */
	uint64_t period;
	uint64_t sampled_period; /* what PERIOD says */
	bool counts;             /* each sample is one more in the count */
	bool is_exact;           /* nothing but what we do makes samples */
};

static uint64_t tracepoint_type;

/* 0, with errno, when it is not there. */
static uint64_t read_number(const char *path)
{
	unsigned long long number = 0;
	FILE *file = fopen(path, "r");

	if (file && fscanf(file, "%llu", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

/* The id of a tracepoint.  Where tracefs is not mounted, it is for as long as that takes. */
static uint64_t tracepoint_id(const char *name)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[256];
	uint64_t id;
	int error;
	size_t i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/id", places[i], name);
		id = read_number(path);
		if (id)
			return id;
		if (errno != ENOENT)
			cr_skip_test("SKIP-ENV: %s: %s: needs root", path, strerror(errno));
	}
	if (mount("tracefs", places[0], "tracefs", 0, NULL))
		cr_skip_test("SKIP-ENV: mount of tracefs: %s: needs CAP_SYS_ADMIN, or tracefs at %s", strerror(errno),
			     places[0]);
	snprintf(path, sizeof(path), "%s/events/%s/id", places[0], name);
	id = read_number(path);
	error = errno;
	cr_assert_eq(umount(places[0]), 0, "%s: %s", places[0], strerror(errno));
	if (!id)
		cr_skip_test("SKIP-ENV: %s: %s: needs CONFIG_FTRACE_SYSCALLS, CONFIG_SCHEDSTATS", path,
			     strerror(error));
	return id;
}

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

struct mapping {
	uint64_t start, end, offset, inode;
	unsigned maj, min;
	char mode[8];
	char path[512];
};

static struct mapping mappings[512];
static size_t mappings_nr;

static void read_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[1024];

	cr_assert_not_null(file);
	mappings_nr = 0;
	while (mappings_nr < sizeof(mappings) / sizeof(mappings[0]) && fgets(line, sizeof(line), file)) {
		struct mapping *one = &mappings[mappings_nr];
		unsigned long long start, end, offset, inode;

		one->path[0] = '\0';
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %511[^\n]", &start, &end, one->mode, &offset, &one->maj,
			   &one->min, &inode, one->path) < 7)
			continue;
		one->start = start;
		one->end = end;
		one->offset = offset;
		one->inode = inode;
		mappings_nr++;
	}
	fclose(file);
}

static const struct mapping *mapping_of(uint64_t address)
{
	size_t i;

	for (i = 0; i < mappings_nr; i++)
		if (mappings[i].start <= address && address < mappings[i].end)
			return &mappings[i];
	return NULL;
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

#define INSN(code_, dst, src, off_, imm_) \
	(struct bpf_insn) \
	{ \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_) \
	}

/* 32 bytes, no two alike. */
static const uint64_t payload[4] = {UINT64_C(0x1122334455667788), UINT64_C(0x99aabbccddeeff01),
				    UINT64_C(0x0203040506070809), UINT64_C(0x0a0b0c0d0e0f1011)};
static int bpf_map = -1;
static int bpf_prog = -1;

static int bpf_load(const struct bpf_insn *insns, size_t nr, const char *name)
{
	static const char license[] = "Dual MIT/GPL";
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)nr;
	attr.license = (uintptr_t)license;
	memcpy(attr.prog_name, name, strlen(name));
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

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

/* ---- a recording ---- */

struct run {
	const struct source *source;
	struct perf_event_attr attr;
	struct perfring_format format;
	struct perfring_ring ring;
	struct perfring_reader reader;
	int fd[3];
	uint64_t id[3];
	unsigned fds;
	uint32_t cpu;
	uint64_t begun, ended; /* CLOCK_MONOTONIC */
	/* What read(2) says in the end: docs/abi.md 2.2. */
	uint64_t value[3], enabled, running;
	/* So far. */
	unsigned samples, records;
	unsigned hits[BITS];
	uint64_t time, first_time;
	uint64_t last_value[3], last_enabled, last_running;
};

static unsigned compared; /* samples and records, by this test */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* On one CPU from now on, and children with it. */
static uint32_t pin(void)
{
	static int cpu = -1;
	cpu_set_t set;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		cr_skip_test("SKIP-ENV: pages of %ld bytes: what is expected here is counted in pages of 4096",
			     sysconf(_SC_PAGESIZE));
	if (cpu < 0)
		cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	cr_assert_eq(sched_getcpu(), cpu);
	return (uint32_t)cpu;
}

static int open_event(struct perf_event_attr *attr, int pid, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

/* Opens run->attr.  Returns 0 or -errno of the open. */
static int run_open_pages(struct run *run, int pid, int cpu, uint32_t pages)
{
	int ret;

	run->attr.disabled = 1;
	run->cpu = pin();
	run->fd[0] = open_event(&run->attr, pid, cpu, -1);
	if (run->fd[0] < 0)
		return -errno;
	run->fds = 1;
	ret = perfring_ring_map(&run->ring, run->fd[0], pages, 0);
	if (ret == -EPERM)
		cr_skip_test("SKIP-ENV: mmap of %u pages: %s: needs CAP_IPC_LOCK or RLIMIT_MEMLOCK", pages,
			     strerror(-ret));
	cr_assert_eq(ret, 0, "mmap: %s", strerror(-ret));
	cr_assert_eq(perfring_reader_open(&run->reader, &run->ring, 0), 0);
	cr_assert_eq(perfring_format_from_attr(&run->format, &run->attr), 0);
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_ID, &run->id[0]), 0);
	cr_assert_neq(run->id[0], 0);
	return 0;
}

/* The Linux that first takes what the attr asks for, 5.12 as 512; 0 for those older than what perfring needs. */
static unsigned linux_of(const struct perf_event_attr *attr)
{
	if (attr->read_format & PERF_FORMAT_LOST)
		return 600;
	if (attr->build_id || attr->sample_type & PERF_SAMPLE_WEIGHT_STRUCT)
		return 512;
	if (attr->sample_type & (PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE))
		return 511;
	if (attr->cgroup || attr->sample_type & PERF_SAMPLE_CGROUP)
		return 507;
	if (attr->sample_type & PERF_SAMPLE_AUX)
		return 505;
	return attr->ksymbol || attr->bpf_event ? 501 : 0;
}

static unsigned linux_here(void)
{
	unsigned major_ = 0, minor_ = 0;
	struct utsname name;

	cr_assert_eq(uname(&name), 0);
	cr_assert_eq(sscanf(name.release, "%u.%u", &major_, &minor_), 2, "%s", name.release);
	return major_ * 100 + minor_;
}

/* What perf_event_open said: skips where this machine refuses, fails where it is wrong. */
static void must_be_open(const struct perf_event_attr *attr, int ret)
{
	unsigned needs = linux_of(attr);

	if (ret == -EACCES || ret == -EPERM)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs CAP_PERFMON", strerror(-ret));
	if (ret == -ENOSYS || ret == -EOPNOTSUPP || ret == -ENOENT)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs a kernel and a CPU with event %u:%llu",
			     strerror(-ret), attr->type, (unsigned long long)attr->config);
	if (ret == -ENOSPC && attr->type == PERF_TYPE_BREAKPOINT)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs a free debug register", strerror(-ret));
	if (ret == -EINVAL && linux_here() < needs)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs Linux %u.%u", strerror(-ret), needs / 100,
			     needs % 100);
	cr_assert_eq(ret, 0, "perf_event_open: %s", strerror(-ret));
}

static void must_open(struct run *run, int pid, int cpu)
{
	must_be_open(&run->attr, run_open_pages(run, pid, cpu, PAGES));
}

static void begin(struct run *run)
{
	run->begun = now();
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_ENABLE, 0), 0);
}

static void end(struct run *run)
{
	cr_assert_eq(ioctl(run->fd[0], PERF_EVENT_IOC_DISABLE, 0), 0);
	run->ended = now();
}

static void run_close(struct run *run)
{
	perfring_reader_close(&run->reader);
	perfring_ring_close(&run->ring);
	while (run->fds)
		close(run->fd[--run->fds]);
}

/* The next record, which stays valid until run_close: the ring is larger than what is written. */
static const struct perf_event_header *next_of(struct run *run)
{
	const struct perf_event_header *record;
	int ret;

	perfring_reader_observe(&run->reader);
	ret = perfring_reader_next(&run->reader, &record);
	cr_assert_geq(ret, 0, "%s", run->reader.fault.what);
	return ret ? record : NULL;
}

static void is_sound(const struct run *run, const struct perf_event_header *record)
{
	struct perfring_finding finding;

	cr_assert_eq(perfring_record_examine(&run->format, record, record->size, &finding), 0, "type %u: %s at %lld",
		     record->type, finding.what, (long long)finding.at);
	compared++;
}

/* Says where two records differ. */
static void is_same(const struct perf_event_header *record, const unsigned char *room, int64_t size)
{
	const unsigned char *bytes = (const void *)record;
	size_t i;

	cr_assert_eq(size, record->size, "type %u: %lld of %u bytes", record->type, (long long)size, record->size);
	for (i = 0; i < record->size; i++)
		cr_assert_eq(bytes[i], room[i], "type %u of %u bytes: byte %zu is %02x, was %02x", record->type,
			     record->size, i, room[i], bytes[i]);
}

/* Decodes any record but SAMPLE, and writes it again. */
static void decode_record(struct run *run, const struct perf_event_header *record, struct perfring_record *is)
{
	static unsigned char room[65536];
	struct perfring_fault fault = {-1, "?"};

	memset(is, 0xa5, sizeof(*is));
	memset(room, 0x5a, record->size);
	cr_assert_eq(perfring_record_decode(&run->format, record, is, &fault), 0, "type %u: %s at %lld", record->type,
		     fault.what, (long long)fault.at);
	cr_assert_eq(is->type, record->type);
	cr_assert_eq(is->misc, record->misc);
	cr_assert_eq(is->trailing_size, 0, "type %u: %u bytes behind its members", record->type, is->trailing_size);
	cr_assert_eq(perfring_record_size(&run->format, is), record->size);
	is_same(record, room, perfring_record_encode(&run->format, is, room, record->size));
	is_sound(run, record);
	run->records++;
}

static void decode_sample(struct run *run, const struct perf_event_header *record, struct perfring_sample *sample)
{
	static unsigned char room[65536];
	struct perfring_fault fault = {-1, "?"};

	memset(sample, 0xa5, sizeof(*sample));
	memset(room, 0x5a, record->size);
	cr_assert_eq(perfring_sample_decode(&run->format, record, sample, &fault), 0, "%s at %lld", fault.what,
		     (long long)fault.at);
	cr_assert_eq(sample->present, run->attr.sample_type);
	cr_assert_eq(sample->misc, record->misc);
	cr_assert_eq(sample->trailing_size, 0, "%u bytes behind the last field", sample->trailing_size);
	cr_assert_eq(perfring_sample_size(&run->format, sample), record->size);
	is_same(record, room, perfring_sample_encode(&run->format, sample, room, record->size));
	is_sound(run, record);
	run->samples++;
}

/* ---- what else can tell ---- */

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

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

static bool is_kernel(uint64_t address)
{
	return address >> 63;
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

static uint32_t half_at(const void *data, size_t at)
{
	uint32_t half;

	memcpy(&half, (const unsigned char *)data + at, 4);
	return half;
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

static void say_compared(const char *what, unsigned least)
{
	fprintf(stderr, "kernel: %s: %u samples and records came back\n", what, compared);
	cr_assert_geq(compared, least);
}

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

/* A dummy event, for the records beside samples: with all six fields behind them, or with none. */
static void set_dummy(struct run *run, bool trailer)
{
	memset(run, 0, sizeof(*run));
	run->attr.type = PERF_TYPE_SOFTWARE;
	run->attr.config = PERF_COUNT_SW_DUMMY;
	run->attr.sample_type = TRAILER;
	run->attr.sample_id_all = trailer;
	run->attr.use_clockid = 1;
	run->attr.clockid = CLOCK_MONOTONIC;
}

static void is_in_time(const struct run *run, uint64_t time)
{
	cr_assert_geq(time, run->begun);
	cr_assert_leq(time, run->ended);
}

/* is_own: the record is of the event itself, not of a copy that a child has inherited. */
static void trailer_is(const struct run *run, const struct perfring_record *is, uint32_t pid, uint32_t tid, bool is_own)
{
	const struct perfring_trailer *trailer = &is->trailer;

	if (!run->attr.sample_id_all) {
		cr_assert_eq(trailer->present, 0);
		return;
	}
	cr_assert_eq(trailer->present, TRAILER);
	cr_assert_eq(trailer->pid, pid);
	cr_assert_eq(trailer->tid, tid);
	is_in_time(run, trailer->time);
	cr_assert_eq(trailer->id, run->id[0]);
	cr_assert_eq(trailer->identifier, run->id[0]);
	cr_assert_eq(trailer->cpu, run->cpu);
	cr_assert_eq(trailer->cpu_reserved, 0);
	if (is_own)
		cr_assert_eq(trailer->stream_id, run->id[0]);
	else
		cr_assert_neq(trailer->stream_id, run->id[0]);
}

static bool next_record(struct run *run, struct perfring_record *is)
{
	const struct perf_event_header *record = next_of(run);

	if (record)
		decode_record(run, record, is);
	return record != NULL;
}

static void string_is(const struct perfring_string *string, const char *text)
{
	cr_assert_eq(string->size, strlen(text), "%.*s, not %s", (int)string->size, string->data, text);
	cr_assert_eq(memcmp(string->data, text, string->size + 1), 0, "%.*s, not %s", (int)string->size, string->data,
		     text);
}

static uint32_t size_with(const struct run *run, uint32_t size)
{
	return size + (run->attr.sample_id_all ? 48 : 0);
}

/* A thread that acts when it is told to: its pid and its tid are not the same number. */
struct actor {
	pthread_t thread;
	pthread_barrier_t gate;
	uint32_t tid;
	void (*act)(void *with);
	void *with;
};

static void *actor_runs(void *of)
{
	struct actor *actor = of;

	actor->tid = thread_id();
	pthread_barrier_wait(&actor->gate);
	pthread_barrier_wait(&actor->gate);
	actor->act(actor->with);
	pthread_barrier_wait(&actor->gate);
	/* Nothing of its end is recorded. */
	pthread_barrier_wait(&actor->gate);
	return NULL;
}

static void actor_open(struct actor *actor, struct run *run, void (*act)(void *), void *with)
{
	pin();
	actor->act = act;
	actor->with = with;
	cr_assert_eq(pthread_barrier_init(&actor->gate, NULL, 2), 0);
	cr_assert_eq(pthread_create(&actor->thread, NULL, actor_runs, actor), 0);
	pthread_barrier_wait(&actor->gate);
	cr_assert_neq(actor->tid, (uint32_t)getpid());
	must_open(run, (int)actor->tid, -1);
}

static void actor_acts(struct actor *actor, struct run *run)
{
	begin(run);
	pthread_barrier_wait(&actor->gate);
	pthread_barrier_wait(&actor->gate);
	end(run);
	pthread_barrier_wait(&actor->gate);
	cr_assert_eq(pthread_join(actor->thread, NULL), 0);
	pthread_barrier_destroy(&actor->gate);
}

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

struct build_id {
	unsigned char bytes[20];
	uint32_t size;
	char path[512];
};

/* The build id of the first library that has one, out of its notes in memory. */
static int find_build_id(struct dl_phdr_info *object, size_t size, void *to)
{
	struct build_id *id = to;
	int i;

	(void)size;
	if (object->dlpi_name[0] != '/')
		return 0;
	for (i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		const unsigned char *note = (const unsigned char *)(object->dlpi_addr + part->p_vaddr);
		const unsigned char *last = note + part->p_memsz;

		while (part->p_type == PT_NOTE && part->p_align <= 4 && note + 12 <= last) {
			uint32_t name = (half_at(note, 0) + 3) & ~3u, desc = half_at(note, 4);

			if (half_at(note, 8) == NT_GNU_BUILD_ID && name == 4 && desc <= sizeof(id->bytes)) {
				memcpy(id->bytes, note + 16, desc);
				id->size = desc;
				snprintf(id->path, sizeof(id->path), "%s", object->dlpi_name);
				return 1;
			}
			note += 12 + name + ((desc + 3) & ~3u);
		}
	}
	return 0;
}

struct place {
	size_t size;
	int prot;
	int flags;
	off_t offset;
	uint16_t misc;
	unsigned char *at;
};

struct places {
	struct place place[4];
	int fd;
};

static void map_all(void *with)
{
	struct places *places = with;
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct place *place = &places->place[i];

		place->at = mmap(NULL, place->size, place->prot, place->flags,
				 place->flags & MAP_ANONYMOUS ? -1 : places->fd, place->offset);
	}
}

static void mapping_is(const struct run *run, const struct perfring_record *is, const struct place *place,
		       const struct build_id *id, int fd, uint32_t tid)
{
	const struct perfring_record_mmap2 *map = &is->is.mmap2;
	const struct mapping *mapping = mapping_of((uintptr_t)place->at);
	bool is_file = !(place->flags & MAP_ANONYMOUS);
	int generation = 0;

	cr_assert_not_null(mapping);
	trailer_is(run, is, (uint32_t)getpid(), tid, true);
	if (is->type == PERF_RECORD_MMAP) {
		cr_assert_eq(is->misc, place->misc);
		cr_assert_eq(is->is.mmap.pid, (uint32_t)getpid());
		cr_assert_eq(is->is.mmap.tid, tid);
		cr_assert_eq(is->is.mmap.len, place->size);
		cr_assert_eq(is->is.mmap.pgoff, is_file ? (uint64_t)place->offset : (uintptr_t)place->at);
		string_is(&is->is.mmap.filename, is_file ? mapping->path : "//anon");
		return;
	}
	cr_assert_eq(map->pid, (uint32_t)getpid());
	cr_assert_eq(map->tid, tid);
	cr_assert_eq(map->len, place->size);
	cr_assert_eq(map->pgoff, is_file ? (uint64_t)place->offset : (uintptr_t)place->at);
	cr_assert_eq(map->prot, (uint32_t)place->prot);
	cr_assert_eq(map->flags, (uint32_t)place->flags & (MAP_SHARED | MAP_PRIVATE));
	string_is(&map->filename, is_file ? mapping->path : "//anon");
	cr_assert_eq(map->file.has_build_id, is_file && run->attr.build_id);
	cr_assert_eq(is->misc, place->misc | (is_file && run->attr.build_id ? 0x4000 : 0));
	if (map->file.has_build_id) {
		cr_assert_eq(map->file.build_id_size, id->size);
		cr_assert_eq(memcmp(map->file.build_id, id->bytes, id->size), 0);
		return;
	}
	cr_assert_eq(map->file.maj, is_file ? mapping->maj : 0);
	cr_assert_eq(map->file.min, is_file ? mapping->min : 0);
	cr_assert_eq(map->file.ino, is_file ? mapping->inode : 0);
	if (is_file && ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
		cr_assert_eq(map->file.ino_generation, (uint32_t)generation);
}

/* MMAP and both variants of MMAP2. */
Test(kernel, mappings)
{
	struct places places = {{
					{2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0, 2, NULL},
					{3 * PAGE, PROT_READ, MAP_PRIVATE, PAGE, 0x2002, NULL},
					{PAGE, PROT_READ, MAP_SHARED, 0, 0x2002, NULL},
					{5 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, 0, 2, NULL},
				},
				-1};
	static struct build_id id;
	static struct run run;
	struct perfring_record is;
	struct actor actor;
	unsigned turn, found, i;

	cr_assert_eq(dl_iterate_phdr(find_build_id, &id), 1);
	places.fd = open(id.path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(places.fd, 0, "%s: %s", id.path, strerror(errno));
	for (turn = 0; turn < 6; turn++) {
		set_dummy(&run, turn & 1);
		run.attr.mmap = 1;
		run.attr.mmap_data = 1;
		run.attr.mmap2 = turn / 2 > 0;
		run.attr.build_id = turn / 2 > 1;
		actor_open(&actor, &run, map_all, &places);
		actor_acts(&actor, &run);
		for (i = 0; i < 4; i++)
			cr_assert(places.place[i].at != MAP_FAILED);
		read_mappings();
		found = 0;
		while (next_record(&run, &is)) {
			cr_assert_eq(is.type, run.attr.mmap2 ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP);
			for (i = 0; i < 4; i++) {
				uint64_t addr = is.type == PERF_RECORD_MMAP ? is.is.mmap.addr : is.is.mmap2.addr;

				if (addr == (uintptr_t)places.place[i].at) {
					mapping_is(&run, &is, &places.place[i], &id, places.fd, actor.tid);
					found++;
				}
			}
		}
		cr_assert_eq(found, 4);
		for (i = 0; i < 4; i++)
			munmap(places.place[i].at, places.place[i].size);
		run_close(&run);
	}
	close(places.fd);
	say_compared("MMAP, MMAP2", 24);
}

static const char *const names_given[4] = {"a", "abcdefg", "abcdefgh", "fifteen letters"};

static void take_names(void *with)
{
	unsigned i;

	(void)with;
	for (i = 0; i < 4; i++)
		prctl(PR_SET_NAME, names_given[i]);
}

Test(kernel, names)
{
	static const uint16_t sizes[] = {24, 24, 32, 32};
	static struct run run;
	struct perfring_record is;
	struct actor actor;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		set_dummy(&run, turn);
		run.attr.comm = 1;
		actor_open(&actor, &run, take_names, NULL);
		actor_acts(&actor, &run);
		for (i = 0; next_record(&run, &is); i++) {
			cr_assert_lt(i, 4);
			cr_assert_eq(is.type, PERF_RECORD_COMM);
			cr_assert_eq(is.misc, 0);
			cr_assert_eq(is.size, size_with(&run, sizes[i]));
			cr_assert_eq(is.is.comm.pid, (uint32_t)getpid());
			cr_assert_eq(is.is.comm.tid, actor.tid);
			string_is(&is.is.comm.comm, names_given[i]);
			trailer_is(&run, &is, (uint32_t)getpid(), actor.tid, true);
		}
		cr_assert_eq(i, 4);
		run_close(&run);
	}
	say_compared("COMM", 8);
}

/* Opens for this task and its children, on this CPU: the one way to have them all in one ring.  A second event, not
 * inherited, keeps the scheduler from swapping the events of parent and child when it switches between them. */
static void open_inherited(struct run *run)
{
	struct perf_event_attr attr;

	run->attr.inherit = 1;
	must_open(run, 0, (int)pin());
	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	run->fd[run->fds++] = open_event(&attr, 0, -1, -1);
	cr_assert_geq(run->fd[1], 0, "%s", strerror(errno));
}

static pid_t wait_for(pid_t child)
{
	int status = -1;

	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
	return child;
}

static void *tell_tid(void *to)
{
	*(uint32_t *)to = thread_id();
	return NULL;
}

/* A thread is joined before it is gone. */
static void wait_for_thread(uint32_t tid)
{
	char path[64];
	unsigned left;

	snprintf(path, sizeof(path), "/proc/self/task/%u", tid);
	for (left = 20000; left && access(path, F_OK) == 0; left--)
		usleep(500);
}

/* FORK, EXIT, COMM of an exec: one child that becomes a shell, and one thread.  The thread sanitizer starts others. */
Test(kernel, tasks)
{
	static struct run run;
	struct perfring_record is;
	unsigned turn;

	for (turn = 0; turn < 2; turn++) {
		uint32_t me = (uint32_t)getpid(), tid = thread_id(), child, thread_tid = 0;
		unsigned forks = 0, exits = 0, execs = 0;
		pthread_t thread;
		pid_t pid;

		set_dummy(&run, turn);
		run.attr.task = 1;
		run.attr.comm = 1;
		run.attr.comm_exec = 1;
		open_inherited(&run);
		begin(&run);
		pid = fork();
		if (pid == 0) {
			execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
			_exit(1);
		}
		child = (uint32_t)wait_for(pid);
		cr_assert_eq(pthread_create(&thread, NULL, tell_tid, &thread_tid), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		wait_for_thread(thread_tid);
		end(&run);
		while (next_record(&run, &is)) {
			const struct perfring_record_fork *fork_ = &is.is.fork;
			const struct perfring_record_exit *exit_ = &is.is.exit;

			if (is.type == PERF_RECORD_FORK) {
				bool is_child = fork_->pid == child;

				if (fork_->tid != child && fork_->tid != thread_tid)
					continue;
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(is.size, size_with(&run, 32));
				cr_assert_eq(fork_->pid, is_child ? child : me);
				cr_assert_eq(fork_->tid, is_child ? child : thread_tid);
				cr_assert_eq(fork_->ppid, me);
				cr_assert_eq(fork_->ptid, tid);
				is_in_time(&run, fork_->time);
				trailer_is(&run, &is, me, tid, true);
				forks++;
			} else if (is.type == PERF_RECORD_EXIT) {
				bool is_child = exit_->pid == child;
				uint32_t parent = is_child ? me : (uint32_t)getppid();

				if (exit_->tid != child && exit_->tid != thread_tid)
					continue;
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(exit_->pid, is_child ? child : me);
				cr_assert_eq(exit_->tid, is_child ? child : thread_tid);
				cr_assert_eq(exit_->ppid, parent);
				cr_assert_eq(exit_->ptid, parent, "docs/abi.md 14.30");
				is_in_time(&run, exit_->time);
				trailer_is(&run, &is, exit_->pid, exit_->tid, false);
				exits++;
			} else if (is.type == PERF_RECORD_COMM && is.misc == PERF_RECORD_MISC_COMM_EXEC) {
				cr_assert_eq(is.is.comm.pid, child);
				cr_assert_eq(is.is.comm.tid, child);
				string_is(&is.is.comm.comm, "sh");
				trailer_is(&run, &is, child, child, false);
				execs++;
			}
		}
		cr_assert_eq(forks, 2);
		cr_assert_eq(exits, 2);
		cr_assert_eq(execs, 1);
		run_close(&run);
	}
	say_compared("FORK, EXIT, COMM", 10);
}

Test(kernel, switches)
{
	static struct run run;
	struct perfring_record is;
	struct rusage before, now;
	unsigned turn, i, sleeps;

	for (turn = 0; turn < 2; turn++) {
		set_dummy(&run, turn);
		run.attr.context_switch = 1;
		must_open(&run, 0, -1);
		begin(&run);
		/* Who is preempted on the way to sleep finds the time over, and sleeps not: the kernel counts what it switched. */
		getrusage(RUSAGE_THREAD, &before);
		do {
			usleep(100);
			getrusage(RUSAGE_THREAD, &now);
		} while (now.ru_nvcsw - before.ru_nvcsw < TIMES);
		end(&run);
		sleeps = 0;
		for (i = 0; next_record(&run, &is); i++) {
			cr_assert_eq(is.type, PERF_RECORD_SWITCH);
			cr_assert_eq(is.size, size_with(&run, 8));
			/* Out and in, in turn; preempted now and then. */
			cr_assert(i & 1 ? is.misc == 0 : is.misc == 0x2000 || is.misc == 0x6000, "%u: %#x", i, is.misc);
			sleeps += is.misc == 0x2000;
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
		}
		cr_assert_geq(sleeps, TIMES);
		run_close(&run);
	}
	say_compared("SWITCH", 4 * TIMES);
}

struct pipes {
	int there[2], back[2];
	uint32_t tid;
};

static void *answer(void *with)
{
	struct pipes *pipes = with;
	char byte;

	pipes->tid = thread_id();
	while (read(pipes->there[0], &byte, 1) == 1 && write(pipes->back[1], &byte, 1) == 1)
		;
	return NULL;
}

/* Who is switched away for good has no number any more: a thread of another process, that ended on this CPU. */
static void is_task(uint32_t is, uint32_t wanted, uint32_t other)
{
	if (is != UINT32_MAX || wanted == thread_id() || wanted == other)
		cr_assert_eq(is, wanted, "%u, not %u", is, wanted);
}

/* Two threads on one CPU hand a byte to and fro. */
Test(kernel, switches_of_a_cpu)
{
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;
	struct pipes pipes;
	pthread_t thread;

	for (turn = 0; turn < 2; turn++) {
		/*
		 * The task that runs, and the one that comes next. Who runs first is this thread. A task that is ending has no
		 * number any more (UINT32_MAX), and is switched in and out even so.
		 */
		uint32_t next = thread_id(), current = UINT32_MAX, other_tid;
		unsigned to_other = 0, to_me = 0;
		char byte = 0;

		cr_assert_eq(pipe(pipes.there), 0);
		cr_assert_eq(pipe(pipes.back), 0);
		set_dummy(&run, turn);
		run.attr.context_switch = 1;
		must_open(&run, -1, (int)pin());
		cr_assert_eq(pthread_create(&thread, NULL, answer, &pipes), 0);
		begin(&run);
		for (i = 0; i < TIMES; i++) {
			cr_assert_eq(write(pipes.there[1], &byte, 1), 1);
			cr_assert_eq(read(pipes.back[0], &byte, 1), 1);
		}
		end(&run);
		close(pipes.there[1]);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		other_tid = pipes.tid;
		for (i = 0; next_record(&run, &is); i++) {
			const struct perfring_record_switch_cpu_wide *other = &is.is.switch_cpu_wide;

			cr_assert_eq(is.type, PERF_RECORD_SWITCH_CPU_WIDE);
			cr_assert_eq(is.size, size_with(&run, 16));
			if (other->next_prev_tid == other_tid || other->next_prev_tid == thread_id())
				cr_assert_eq(other->next_prev_pid, (uint32_t)getpid());
			if (is.misc & PERF_RECORD_MISC_SWITCH_OUT) {
				cr_assert(is.misc == 0x2000 || is.misc == 0x6000);
				cr_assert_eq(i & 1, 0);
				if (turn && current != UINT32_MAX)
					is_task(is.trailer.tid, current, other_tid);
				current = next;
				if (turn)
					is_task(is.trailer.tid, current, other_tid);
				next = other->next_prev_tid;
				to_other += next == other_tid;
				to_me += next == thread_id();
			} else {
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(i & 1, 1);
				is_task(other->next_prev_tid, current, other_tid);
				if (turn)
					cr_assert_eq(is.trailer.tid, next);
				current = next;
			}
			if (turn)
				trailer_is(&run, &is, is.trailer.pid, is.trailer.tid, true);
		}
		cr_assert_geq(to_other, TIMES);
		cr_assert_geq(to_me, TIMES);
		run_close(&run);
		close(pipes.there[0]);
		close(pipes.back[0]);
		close(pipes.back[1]);
	}
	say_compared("SWITCH_CPU_WIDE", 8 * TIMES);
}

static const char *const namespaces[7] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

struct unshared {
	uint64_t told[14];
	uint32_t tid;
	int error;
};

/* A thread that leaves two namespaces, and tells which it is in then. */
static void *leave(void *with)
{
	struct unshared *unshared = with;
	struct stat stat_of;
	char path[64];
	unsigned i;

	unshared->tid = thread_id();
	if (unshare(CLONE_NEWUTS | CLONE_NEWIPC))
		unshared->error = errno;
	for (i = 0; i < 7; i++) {
		uint32_t at;

		snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", namespaces[i]);
		if (stat(path, &stat_of))
			memset(&stat_of, 0, sizeof(stat_of));
		at = minor(stat_of.st_dev);
		unshared->told[2 * i] = (at & 0xff) | major(stat_of.st_dev) << 8 | (at & ~0xffu) << 12;
		unshared->told[2 * i + 1] = stat_of.st_ino;
	}
	return NULL;
}

Test(kernel, namespaces)
{
	static struct run run;
	struct unshared unshared;
	const uint64_t *told = unshared.told;
	pthread_t thread;
	struct perfring_record is;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		unsigned started = 0, left = 0;

		set_dummy(&run, turn);
		run.attr.namespaces = 1;
		open_inherited(&run);
		begin(&run);
		memset(&unshared, 0, sizeof(unshared));
		cr_assert_eq(pthread_create(&thread, NULL, leave, &unshared), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		if (unshared.error)
			cr_skip_test("SKIP-ENV: unshare: %s: needs CAP_SYS_ADMIN", strerror(unshared.error));
		end(&run);
		while (next_record(&run, &is)) {
			const struct perfring_record_namespaces *ns = &is.is.namespaces;
			bool is_new;

			cr_assert_eq(is.type, PERF_RECORD_NAMESPACES);
			if (ns->tid != unshared.tid)
				continue;
			is_new = ns->links.words[3] == told[3];
			cr_assert_eq(is.misc, 0);
			cr_assert_eq(is.size, size_with(&run, 24 + 112), "docs/abi.md 15");
			cr_assert_eq(ns->pid, (uint32_t)getpid());
			cr_assert_eq(ns->links.nr, 7);
			for (i = 0; i < 7; i++) {
				cr_assert_eq(ns->links.words[2 * i], told[2 * i], "%s", namespaces[i]);
				/* uts and ipc are the thread's own only after the unshare. */
				if (i == 1 || i == 2)
					cr_assert_eq(ns->links.words[2 * i + 1] == told[2 * i + 1], is_new);
				else
					cr_assert_eq(ns->links.words[2 * i + 1], told[2 * i + 1], "%s", namespaces[i]);
			}
			if (is_new)
				trailer_is(&run, &is, (uint32_t)getpid(), unshared.tid, false);
			else
				trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			started += !is_new;
			left += is_new;
		}
		cr_assert_eq(started, 1);
		cr_assert_eq(left, 1);
		run_close(&run);
	}
	say_compared("NAMESPACES", 4);
}

/* The next KSYMBOL or BPF_EVENT.  Where another observes the programs of the whole system, Linux (6.18, as seen) makes ours
 * longer: it adds each observer's sample_id to the size in the one header that it writes to all of them.  The words are
 * behind what is ours, and nobody has written them: without them the record is what it is where nobody observes. */
static bool next_of_program(struct run *run, const char *name, struct perfring_record *is)
{
	static uint64_t room[512];
	const struct perf_event_header *record = next_of(run);
	struct perf_event_header header;
	uint32_t ours;

	if (!record)
		return false;
	header = *record;
	ours = size_with(run, 24 + (header.type == PERF_RECORD_KSYMBOL ? ((uint32_t)strlen(name) + 8) / 8 * 8 : 0));
	if (header.size > ours) {
		cr_assert_eq((header.size - ours) % 8, 0, "%u bytes, not %u", header.size, ours);
		header.size = (uint16_t)ours;
		memcpy(room, record, ours);
		memcpy(room, &header, sizeof(header));
		record = (const struct perf_event_header *)(const void *)room;
	}
	decode_record(run, record, is);
	return true;
}

/* KSYMBOL and BPF_EVENT: a program comes and goes. */
Test(kernel, bpf_programs)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		unsigned symbols[2] = {0, 0}, events[2] = {0, 0};
		struct bpf_prog_info told;
		uint64_t symbol = 0;
		uint32_t length = 0;
		union bpf_attr attr;
		char name[64];
		int prog, at;

		set_dummy(&run, turn);
		run.attr.ksymbol = 1;
		run.attr.bpf_event = 1;
		must_open(&run, 0, -1);
		begin(&run);
		prog = bpf_load(insns, 2, "perfring_none");
		if (prog < 0)
			cr_skip_test("SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON",
				     strerror(errno));
		memset(&told, 0, sizeof(told));
		told.jited_ksyms = (uintptr_t)&symbol;
		told.nr_jited_ksyms = 1;
		told.jited_func_lens = (uintptr_t)&length;
		told.nr_jited_func_lens = 1;
		memset(&attr, 0, sizeof(attr));
		attr.info.bpf_fd = (uint32_t)prog;
		attr.info.info_len = sizeof(told);
		attr.info.info = (uintptr_t)&told;
		cr_assert_eq(syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)), 0, "%s", strerror(errno));
		close(prog);
		end(&run);
		at = snprintf(name, sizeof(name), "bpf_prog_");
		for (i = 0; i < 8; i++)
			at += snprintf(name + at, sizeof(name) - (size_t)at, "%02x", told.tag[i]);
		snprintf(name + at, sizeof(name) - (size_t)at, "_perfring_none");
		while (next_of_program(&run, name, &is)) {
			const struct perfring_record_ksymbol *ksymbol = &is.is.ksymbol;
			const struct perfring_record_bpf_event *event = &is.is.bpf_event;

			cr_assert_eq(is.misc, 0);
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			if (is.type == PERF_RECORD_KSYMBOL) {
				cr_assert_leq(ksymbol->flags, 1);
				cr_assert_eq(ksymbol->ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
				string_is(&ksymbol->name, name);
				cr_assert(is_kernel(ksymbol->addr));
				if (symbol)
					cr_assert_eq(ksymbol->addr, symbol);
				cr_assert_eq(ksymbol->len, length ? length : told.jited_prog_len);
				symbols[ksymbol->flags]++;
			} else {
				cr_assert_eq(is.type, PERF_RECORD_BPF_EVENT);
				cr_assert_eq(is.size, size_with(&run, 24));
				cr_assert(event->type == 1 || event->type == 2);
				cr_assert_eq(event->flags, 0);
				cr_assert_eq(event->id, told.id);
				cr_assert_eq(memcmp(event->tag.bytes, told.tag, 8), 0);
				cr_assert_eq(symbols[event->type - 1], 1, "KSYMBOL comes first");
				events[event->type - 1]++;
			}
		}
		cr_assert_eq(symbols[0], 1);
		cr_assert_eq(events[0], 1);
		cr_assert_eq(symbols[1], 1);
		cr_assert_eq(events[1], 1);
		run_close(&run);
	}
	say_compared("KSYMBOL, BPF_EVENT", 8);
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

/* An occurrence that weighs many periods is throttled (docs/abi.md 9.6): the run time that the scheduler accounts when a
 * task goes to sleep.  One of each an event: Linux 6.18 leaves a tracepoint's event stopped for good when the task
 * sleeps while it is throttled. */
Test(kernel, throttling)
{
	static struct run run;
	const struct perf_event_header *record;
	struct perfring_sample sample;
	struct perfring_record is;
	uint64_t id = tracepoint_id("sched/sched_stat_runtime"), last, slept;
	unsigned turn;

	for (turn = 0; turn < 8; turn++) {
		unsigned throttles = 0, unthrottles = 0;

		set_dummy(&run, turn & 1);
		run.attr.type = PERF_TYPE_TRACEPOINT;
		run.attr.config = id;
		run.attr.sample_period = 100; /* ns */
		must_open(&run, 0, -1);
		begin(&run);
		last = run.begun;
		while (unthrottles < 1 && now() < run.begun + UINT64_C(5000000000)) {
			for (slept = now(); now() < slept + 1000000;)
				;
			usleep(50);
			run.ended = now();
			while ((record = next_of(&run))) {
				if (record->type == PERF_RECORD_SAMPLE) {
					decode_sample(&run, record, &sample);
					cr_assert_eq(sample.tid, thread_id());
					continue;
				}
				decode_record(&run, record, &is);
				trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
				if (is.type == PERF_RECORD_LOST)
					continue;
				cr_assert_eq(is.type,
					     throttles == unthrottles ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE);
				cr_assert_eq(is.misc, 0);
				cr_assert_eq(is.size, size_with(&run, 32), "docs/abi.md 15");
				if (is.type == PERF_RECORD_THROTTLE)
					throttles++;
				else
					unthrottles++;
				/* Two kinds of the same members. */
				cr_assert_geq(is.is.throttle.time, last);
				last = is.is.throttle.time;
				cr_assert_leq(last, run.ended);
				cr_assert_eq(is.is.throttle.id, run.id[0]);
				cr_assert_eq(is.is.throttle.stream_id, run.id[0]);
			}
			perfring_reader_return(&run.reader);
		}
		end(&run);
		cr_assert_geq(throttles, 1);
		cr_assert_geq(unthrottles, 1);
		run_close(&run);
	}
	say_compared("THROTTLE, UNTHROTTLE", 16);
}

/* One page of records: docs/abi.md 15. */
Test(kernel, lost)
{
	static const struct {
		uint32_t size, fit, lost;
	} expected[2] = {{24, 170, 31}, {72, 56, 145}};
	static struct run run;
	struct perfring_record is;
	unsigned turn, i;
	char before[17] = "";

	cr_assert_eq(prctl(PR_GET_NAME, before), 0);
	for (turn = 0; turn < 2; turn++) {
		uint32_t size = expected[turn].size, fit = expected[turn].fit;

		set_dummy(&run, turn);
		run.attr.comm = 1;
		must_be_open(&run.attr, run_open_pages(&run, 0, -1, 1));
		begin(&run);
		for (i = 0; i < 200; i++)
			cr_assert_eq(prctl(PR_SET_NAME, "a"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit);
		for (i = 0; i < 3; i++)
			cr_assert_not_null(next_of(&run));
		/* There is room by now, but not for a LOST too. */
		run.reader.position = size;
		perfring_reader_return(&run.reader);
		cr_assert_eq(prctl(PR_SET_NAME, "a"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit);
		run.reader.position = 3 * size;
		perfring_reader_return(&run.reader);
		cr_assert_eq(prctl(PR_SET_NAME, "b"), 0);
		cr_assert_eq(run.ring.page->data_head, size * fit + size_with(&run, 24) + size);
		end(&run);
		for (i = 3; next_record(&run, &is); i++) {
			trailer_is(&run, &is, (uint32_t)getpid(), thread_id(), true);
			cr_assert_eq(is.misc, 0);
			if (i == fit) {
				cr_assert_eq(is.type, PERF_RECORD_LOST);
				cr_assert_eq(is.size, size_with(&run, 24));
				cr_assert_eq(is.is.lost.id, run.id[0]);
				cr_assert_eq(is.is.lost.lost, expected[turn].lost);
			} else {
				cr_assert_eq(is.type, PERF_RECORD_COMM);
				string_is(&is.is.comm.comm, i < fit ? "a" : "b");
			}
		}
		cr_assert_eq(i, fit + 2);
		run_close(&run);
	}
	cr_assert_eq(prctl(PR_SET_NAME, before), 0);
	say_compared("LOST", 2);
}
