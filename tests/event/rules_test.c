/* rules_test.c - what perf_event_open refuses, known beforehand: perfring_event_check against the kernel itself. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include "machine.h"
#include "watch.h"

TestSuite(rules, .timeout = 60);

enum {
	ROOM = 8192,
	SOFTWARE = 1,
	TRACEPOINT = 2,
	BREAKPOINT = 5,
	DUMMY = 9,
};

/* The members by docs/abi.md 1.2, whatever the installed header names. */
union wide {
	struct perf_event_attr attr;
	unsigned char bytes[ROOM];
};


static void put32(union wide *wide, size_t at, uint32_t value)
{
	memcpy(wide->bytes + at, &value, sizeof(value));
}

static void put64(union wide *wide, size_t at, uint64_t value)
{
	memcpy(wide->bytes + at, &value, sizeof(value));
}

static uint64_t get64(const union wide *wide, size_t at)
{
	uint64_t value;

	memcpy(&value, wide->bytes + at, sizeof(value));
	return value;
}

static void flag(union wide *wide, uint32_t bit)
{
	perfring_attr_set_flag(&wide->attr, bit, true);
}

static void plain(union wide *wide, uint32_t type, uint64_t config)
{
	memset(wide, 0, sizeof(*wide));
	wide->attr.type = type;
	wide->attr.size = 136;
	wide->attr.config = config;
	wide->attr.disabled = 1;
	if (type == BREAKPOINT) {
		wide->attr.bp_type = 2;
		wide->attr.bp_addr = (uintptr_t)&watched;
		wide->attr.bp_len = 4;
	}
}

/* The kernel itself, with not one byte changed. */
static int raw_open(const union wide *wide, int32_t pid, int32_t cpu, int group_fd, uint64_t flags)
{
	union wide copy = *wide;
	long fd = syscall(SYS_perf_event_open, &copy, pid, cpu, group_fd, (unsigned long)flags);

	return fd < 0 ? -errno : (int)fd;
}

static int verdict(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void need_kernel(void)
{
	union wide wide;
	int fd;

	plain(&wide, SOFTWARE, DUMMY);
	fd = verdict(raw_open(&wide, 0, -1, -1, 0));
	/* An older kernel takes fewer members. */
	if (fd == -E2BIG || fd == 0)
		fd = (wide.attr.size = 64, verdict(raw_open(&wide, -1, 0, -1, 0)));
	if (fd)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: run as root, where no filter is in the way",
			     strerror(-fd));
}

static uint64_t tracepoint_id(const char *name)
{
	char path[128];
	uint64_t id;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	id = number_in(path);
	if (id)
		return id;
	snprintf(path, sizeof(path), "/sys/kernel/debug/tracing/events/%s/id", name);
	return number_in(path);
}

/* A directory of the hierarchy that perf events follow; -1: there is none. */
static int open_cgroup(void)
{
	static const char *const PLACES[] = {"/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	union wide wide;
	int fd, event;

	plain(&wide, SOFTWARE, DUMMY);
	wide.attr.size = 64;
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(*PLACES); i++) {
		fd = open(PLACES[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		event = fd < 0 ? -1 : raw_open(&wide, fd, 0, -1, PERFRING_FLAG_PID_CGROUP);
		if (event >= 0) {
			close(event);
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* ---- the difference to the kernel, over attrs around the rules ---- */

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t roll(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % sides;
}

static bool seldom(void)
{
	return roll(12) == 0;
}

static uint64_t one_of(const uint64_t *values, uint32_t count)
{
	return values[roll(count)];
}
#define ONE_OF(...) \
	one_of((const uint64_t[]){__VA_ARGS__}, (uint32_t)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

static void random_flags(union wide *wide)
{
	static const uint8_t BITS[] = {
		PERFRING_ATTR_FLAG_inherit,        PERFRING_ATTR_FLAG_pinned,         PERFRING_ATTR_FLAG_exclusive,
		PERFRING_ATTR_FLAG_enable_on_exec, PERFRING_ATTR_FLAG_remove_on_exec, PERFRING_ATTR_FLAG_remove_on_exec,
		PERFRING_ATTR_FLAG_sigtrap,        PERFRING_ATTR_FLAG_inherit_thread, PERFRING_ATTR_FLAG_aux_output,
		PERFRING_ATTR_FLAG_exclude_kernel, PERFRING_ATTR_FLAG_inherit,
	};

	for (size_t i = 0; i < sizeof(BITS); i++)
		if (roll(6) == 0)
			flag(wide, BITS[i]);
	if (seldom())
		flag(wide, roll(64));
	if (roll(3) == 0)
		flag(wide, roll(38));
}

static void random_sampling(union wide *wide)
{
	static const uint64_t MASKS[] = {0,
					 1,
					 0xff,
					 0xf00,
					 0xfff,
					 0x1000,
					 0x8000,
					 0xff0000,
					 0x1000000,
					 0x80000000,
					 UINT64_C(1) << 32,
					 UINT64_C(1) << 40 | 1,
					 UINT64_C(1) << 63,
					 UINT64_MAX};

	if (roll(2))
		put64(wide, 24, get64(wide, 24) | 1ull << roll(25));
	for (int i = 0; i < 4; i++)
		if (roll(4) == 0)
			put64(wide, 24,
			      get64(wide, 24) | ONE_OF(PERFRING_SAMPLE_READ, PERFRING_SAMPLE_TID,
						       PERFRING_SAMPLE_CALLCHAIN, PERFRING_SAMPLE_REGS_USER,
						       PERFRING_SAMPLE_REGS_INTR, PERFRING_SAMPLE_STACK_USER,
						       PERFRING_SAMPLE_BRANCH_STACK, PERFRING_SAMPLE_WEIGHT,
						       PERFRING_SAMPLE_WEIGHT_STRUCT, PERFRING_SAMPLE_AUX));
	if (roll(30) == 0)
		put64(wide, 24, get64(wide, 24) | 1ull << roll(64));
	wide->attr.sample_regs_user = one_of(MASKS, sizeof(MASKS) / sizeof(*MASKS));
	wide->attr.sample_regs_intr = one_of(MASKS, sizeof(MASKS) / sizeof(*MASKS));
	wide->attr.sample_stack_user = (uint32_t)ONE_OF(0, 8, 12, 4096, 65528, 65534, 65535, 65536, 1u << 31);
	wide->attr.branch_sample_type = ONE_OF(0, 1, 7, 8, 9, 1 << 11 | 8, 1 << 19 | 8, 1 << 20 | 8, UINT64_MAX);
	if (roll(4) == 0)
		wide->attr.sample_max_stack = (uint16_t)ONE_OF(1, 127, 128, 65535, 126);
}

static void random_rest(union wide *wide)
{
	wide->attr.read_format = roll(32);
	if (roll(30) == 0)
		wide->attr.read_format |= 1ull << roll(64);
	wide->attr.sample_period = ONE_OF(0, 1000, 1, UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX);
	if (roll(3) == 0) {
		wide->attr.freq = 1;
		wide->attr.sample_freq = ONE_OF(0, 1, 100, 1u << 30, UINT64_MAX);
	}
	if (roll(4) == 0) {
		wide->attr.use_clockid = 1;
		wide->attr.clockid = (int32_t)ONE_OF(0, 1, 4, 7, 11, 2, 3, 5, 6, 12, 0xffffffff);
	} else if (roll(4) == 0) {
		wide->attr.clockid = 99;
	}
	if (seldom())
		put32(wide, 104, roll(1 << 30));
	if (roll(60) == 0)
		wide->bytes[110 + roll(2)] = 1;
	if (roll(30) == 0)
		put32(wide, 112, (uint32_t)ONE_OF(1, 64, 4096));
	if (roll(8) == 0)
		put32(wide, 116, roll(8));
	if (roll(60) == 0)
		put32(wide, 116, 1u << roll(32));
	if (seldom())
		put64(wide, 120, state);
	if (seldom())
		put64(wide, 128, state);
}

static void random_breakpoint(union wide *wide)
{
	static const uint64_t TOPS[] = {0,
					UINT64_C(1) << 46,
					(UINT64_C(1) << 47) - 8192,
					UINT64_C(1) << 47,
					UINT64_C(1) << 55,
					UINT64_C(1) << 56,
					UINT64_C(1) << 63,
					UINT64_MAX - 4095};

	if (seldom())
		wide->attr.bp_type = roll(9);
	if (roll(6) == 0) {
		wide->attr.bp_type = 4;
		wide->attr.bp_len = sizeof(long);
	}
	if (roll(4) == 0)
		wide->attr.bp_len = ONE_OF(0, 1, 2, 3, 4, 5, 7, 8, 9, 24);
	if (roll(4) == 0)
		wide->attr.bp_addr += roll(9);
	/* In the kernel only where it is excluded: a trap on what a handler of traps reads would be refused, or worse. */
	if (seldom()) {
		wide->attr.exclude_kernel = 1;
		wide->attr.bp_addr = TOPS[roll(sizeof(TOPS) / sizeof(*TOPS))] + roll(16);
	}
	wide->attr.sample_period = wide->attr.sample_period == 1 ? 1000 : wide->attr.sample_period;
}

static void random_arguments(int32_t *pid, int32_t *cpu, uint64_t *flags, int cgroup)
{
	*pid = 0;
	*cpu = -1;
	*flags = 0;
	if (seldom())
		*pid = -1;
	if (roll(60) == 0)
		*pid = (int32_t)ONE_OF(0xfffffffe, 0x80000000);
	if (roll(6) == 0 || (*pid == -1 && roll(8)))
		*cpu = (int32_t)roll(2);
	if (roll(40) == 0)
		*cpu = (int32_t)ONE_OF(9999, 0xfffffffe, 0x80000000, 0x7fffffff);
	if (roll(60) == 0)
		*flags = UINT64_C(1) << ONE_OF(0, 3, 4, 17, 40);
	if (roll(100) == 0) {
		*flags |= PERFRING_FLAG_PID_CGROUP;
		*pid = *pid == 0 ? cgroup : *pid;
	}
}

/* Leaders that stand for those that a group may have. */
static int open_leaders(union wide *leaders, int *fds)
{
	static const int32_t CLOCKS[] = {-1, -1, 1, 0};
	int count = 0;

	for (int i = 0; i < 4; i++) {
		plain(&leaders[count], SOFTWARE, DUMMY);
		leaders[count].attr.size = 64;
		if (i == 1)
			leaders[count].attr.inherit = 1;
		if (CLOCKS[i] >= 0) {
			leaders[count].attr.size = 96;
			leaders[count].attr.use_clockid = 1;
			leaders[count].attr.clockid = CLOCKS[i];
		}
		fds[count] = raw_open(&leaders[count], 0, -1, -1, 0);
		count += fds[count] >= 0;
	}
	return count;
}

Test(rules, as_the_kernel_says, .timeout = 110)
{
	static const char *const TRACEPOINTS[] = {"sched/sched_switch", "raw_syscalls/sys_enter"};
	unsigned all = trials(12000), taken = 0, refused = 0, wrong = 0, errors[134] = {0}, places[ROOM + 1] = {0};
	union wide leaders[4];
	int leader_fds[4], leader_count;
	char text[2048] = "";
	size_t length = 0;
	int cgroup;

	need_kernel();
	leader_count = open_leaders(leaders, leader_fds);
	cgroup = open_cgroup();
	for (unsigned i = 0; i < all; i++) {
		struct perfring_fault fault = {-2, NULL};
		int32_t pid, cpu;
		uint64_t flags;
		union wide wide;
		int leader = -1, group_fd, ours, kernels;

		switch (roll(24) ? roll(7) : 7) {
		case 7:
			plain(&wide, TRACEPOINT, tracepoint_id(TRACEPOINTS[roll(2)]));
			break;
		case 0:
		case 1:
		case 2:
			plain(&wide, BREAKPOINT, 0);
			break;
		default:
			plain(&wide, SOFTWARE, seldom() ? ONE_OF(10, 11, 12, 13, 99, UINT64_C(1) << 32 | 2) : roll(10));
			break;
		}
		if (wide.attr.type == TRACEPOINT && !wide.attr.config)
			continue;
		if (roll(3))
			random_flags(&wide);
		if (roll(2))
			random_sampling(&wide);
		if (roll(2))
			random_rest(&wide);
		if (wide.attr.type == BREAKPOINT)
			random_breakpoint(&wide);
		wide.attr.disabled = 1;
		if (seldom())
			wide.attr.size =
				(uint32_t)ONE_OF(0, 8, 63, 64, 65, 72, 100, 136, 137, 144, 200, 4096, 4097, 0x80000000);
		if (roll(60) == 0)
			wide.bytes[136 + roll(64)] = 1;
		random_arguments(&pid, &cpu, &flags, cgroup);
		if (cpu == -1 && pid == 0 && leader_count && roll(4) == 0)
			leader = (int)roll((uint32_t)leader_count);
		group_fd = leader < 0 ? -1 : leader_fds[leader];
		ours = perfring_event_check(&wide.attr, pid, cpu, flags, leader < 0 ? NULL : &leaders[leader].attr,
					    &fault);
		kernels = verdict(raw_open(&wide, pid, cpu, group_fd, flags));
		/* Registers that others hold are no rule. */
		if (kernels == -ENOSPC && wide.attr.type == BREAKPOINT)
			continue;
		if (kernels < 0) {
			errors[-kernels]++;
			refused++;
		} else {
			taken++;
		}
		if (ours)
			places[fault.at + 1]++;
		if (ours == kernels && (!ours || (fault.what && fault.at >= -1)))
			continue;
		if (wrong++ < 8)
			length += (size_t)snprintf(
				text + length, sizeof(text) - length,
				"\n%u: check %d (%s) kernel %d: type %u config %llx sample_type %llx "
				"flags %llx period %llx pid %d cpu %d leader %d clock %d act %llx bp %u "
				"%llx/%llx size %u",
				i, ours, fault.what ? fault.what : "", kernels, wide.attr.type,
				(unsigned long long)wide.attr.config, (unsigned long long)wide.attr.sample_type,
				(unsigned long long)get64(&wide, 40), (unsigned long long)wide.attr.sample_period, pid,
				cpu, leader, wide.attr.use_clockid ? wide.attr.clockid : -1,
				(unsigned long long)get64(&wide, 112), wide.attr.bp_type,
				(unsigned long long)wide.attr.bp_addr, (unsigned long long)wide.attr.bp_len,
				wide.attr.size);
	}
	if (getenv("RULES_TOLD"))
		for (int i = 0; i < 134; i++)
			if (errors[i])
				printf("%s: %u\n", strerror(i), errors[i]);
	if (getenv("RULES_TOLD"))
		for (int i = 0; i <= ROOM; i++)
			if (places[i])
				printf("at %d: %u\n", i - 1, places[i]);
	if (getenv("RULES_TOLD"))
		printf("taken %u refused %u\n", taken, refused);
	cr_assert_eq(wrong, 0, "%u of %u: %s", wrong, taken + refused, text);
	cr_assert_gt(taken, all / 50);
	cr_assert_gt(errors[EINVAL], all / 50);
	for (int i = 0; i < leader_count; i++)
		close(leader_fds[i]);
}

/* ---- row by row: what this kernel said, written down by hand ---- */

struct row {
	const char *what;
	int error;
	int64_t at;
	unsigned since[2];  /* the kernel that says so */
	unsigned before[2]; /* the first that no longer does; 0: none */
	uint32_t type;
	uint64_t config;
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags;
	struct {
		uint16_t at;
		uint16_t size;
		uint64_t value;
	} put[2];
	bool cpu_wide;
};

#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)

static const struct row ROWS[] = {
	/* 1.4 */
	{"bit 38", EINVAL, 40, {5, 12}, {6, 19}, .type = 1, .config = 9, .flags = UINT64_C(1) << 38},
	{"bit 39", EINVAL, 40, {5, 12}, {6, 19}, .type = 1, .config = 9, .flags = UINT64_C(1) << 39},
	{"bit 40", EINVAL, 40, {3, 0}, {6, 19}, .type = 1, .config = 9, .flags = UINT64_C(1) << 40},
	{"bit 63", EINVAL, 40, .type = 1, .config = 9, .flags = UINT64_C(1) << 63},
	/* 1.5 */
	{"sample_type bit 25", EINVAL, 24, {3, 0}, {6, 19}, .type = 1, .config = 9, .sample_type = 1 << 25},
	{"sample_type bit 63", EINVAL, 24, .type = 1, .config = 9, .sample_type = UINT64_C(1) << 63},
	{"read_format bit 5", EINVAL, 32, {3, 0}, {6, 19}, .type = 1, .config = 9, .read_format = 1 << 5},
	{"reserved_2", EINVAL, 110, {4, 8}, .type = 1, .config = 9, .put = {{110, 2, 1}}},
	{"aux_action bit 3", EINVAL, 116, {5, 5}, {6, 19}, .type = 1, .config = 9, .put = {{116, 4, 8}}},
	{"period bit 63", EINVAL, 16, {3, 15}, .type = 1, .config = 9, .put = {{16, 8, UINT64_C(1) << 63}}},
	{"period bit 62", 0, 0, .type = 1, .config = 9, .put = {{16, 8, UINT64_C(1) << 62}}},
	{"freq too high", EINVAL, 16, .type = 1, .config = 9, .flags = FLAG(freq), .put = {{16, 8, 1 << 30}}},
	{"branches: unknown",
	 EINVAL,
	 72,
	 {3, 4},
	 {6, 19},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 11,
	 .put = {{72, 8, 1 << 20 | 8}}},
	{"branches: none", EINVAL, 72, {3, 4}, .type = 1, .config = 9, .sample_type = 1 << 11},
	{"branches: only privileges",
	 EINVAL,
	 72,
	 {3, 4},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 11,
	 .put = {{72, 8, 7}}},
	{"branches: software",
	 EOPNOTSUPP,
	 24,
	 {3, 4},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 11,
	 .put = {{72, 8, 8}}},
	{"branches: tracepoint",
	 EOPNOTSUPP,
	 24,
	 {3, 4},
	 .type = 2,
	 .config = 1,
	 .sample_type = 1 << 11,
	 .put = {{72, 8, 8}}},
	{"branches: breakpoint", EOPNOTSUPP, 24, {3, 4}, .type = 5, .sample_type = 1 << 11, .put = {{72, 8, 8}}},
	{"user registers: none", EINVAL, 80, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 12},
	{"interrupt registers: none", EINVAL, 96, {3, 19}, .type = 1, .config = 9, .sample_type = 1 << 18},
#ifdef __x86_64__
	{"registers: DS",
	 EINVAL,
	 80,
	 {3, 7},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 12,
	 .put = {{80, 8, 1 << 12}}},
	{"registers: bit 24",
	 EINVAL,
	 96,
	 {3, 19},
	 {6, 19},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 18,
	 .put = {{96, 8, 1 << 24}}},
	{"registers: XMM",
	 EOPNOTSUPP,
	 80,
	 {5, 3},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 18,
	 .put = {{96, 8, UINT64_C(1) << 32}}},
	{"registers: XMM, not sampled",
	 EOPNOTSUPP,
	 80,
	 {5, 3},
	 .type = 1,
	 .config = 9,
	 .put = {{80, 8, UINT64_C(1) << 32}}},
	{"registers: all others",
	 0,
	 0,
	 {3, 7},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 12,
	 .put = {{80, 8, 0xff0fff}}},
#endif
	{"stack 65535", EINVAL, 88, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 13, .put = {{88, 4, 65535}}},
	{"stack 65536", EINVAL, 88, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 13, .put = {{88, 4, 65536}}},
	{"stack 12", EINVAL, 88, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 13, .put = {{88, 4, 12}}},
	{"stack 0", 0, 0, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 13},
	{"stack 65528", 0, 0, {3, 7}, .type = 1, .config = 9, .sample_type = 1 << 13, .put = {{88, 4, 65528}}},
	{"max_stack", EOVERFLOW, 108, {4, 8}, .type = 1, .config = 9, .sample_type = 1 << 5, .put = {{108, 2, 65535}}},
	{"max_stack without CALLCHAIN", 0, 0, {4, 8}, .type = 1, .config = 9, .put = {{108, 2, 65535}}},
	{"two weights", EINVAL, 24, {5, 12}, .type = 1, .config = 9, .sample_type = 1 << 14 | 1 << 24},
	{"inherit_thread", EINVAL, 40, {5, 13}, .type = 1, .config = 9, .flags = FLAG(inherit_thread)},
	{"inherit_thread and inherit",
	 0,
	 0,
	 {5, 13},
	 .type = 1,
	 .config = 9,
	 .flags = FLAG(inherit_thread) | FLAG(inherit)},
	{"removed and enabled on exec",
	 EINVAL,
	 40,
	 {5, 13},
	 .type = 1,
	 .config = 9,
	 .flags = FLAG(remove_on_exec) | FLAG(enable_on_exec)},
	{"sigtrap alone", EINVAL, 40, {5, 13}, .type = 1, .config = 9, .flags = FLAG(sigtrap)},
	{"sigtrap, removed on exec",
	 0,
	 0,
	 {5, 13},
	 .type = 1,
	 .config = 9,
	 .flags = FLAG(sigtrap) | FLAG(remove_on_exec)},
	{"sigtrap of a CPU",
	 EINVAL,
	 40,
	 {5, 13},
	 .type = 1,
	 .config = 9,
	 .flags = FLAG(sigtrap) | FLAG(remove_on_exec),
	 .cpu_wide = true},
	{"inherit, READ", EINVAL, 24, {4, 16}, .type = 1, .config = 9, .sample_type = 1 << 4, .flags = FLAG(inherit)},
	{"inherit, READ and TID, before 6.13",
	 EINVAL,
	 24,
	 {4, 16},
	 {6, 13},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 4 | 1 << 1,
	 .flags = FLAG(inherit)},
	{"inherit, READ and TID",
	 0,
	 0,
	 {6, 13},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 4 | 1 << 1,
	 .flags = FLAG(inherit)},
	{"inherit, READ, TID and GROUP",
	 0,
	 0,
	 {6, 13},
	 .type = 1,
	 .config = 9,
	 .sample_type = 1 << 4 | 1 << 1,
	 .read_format = 8,
	 .flags = FLAG(inherit)},
#define CLOCK(type_, config_, clock, error_) \
	{ \
		"clock " #clock " of type " #type_, error_, 92, {4, 1}, .type = (type_), .config = (config_), \
									.flags = FLAG(use_clockid), \
									.put = { {92, 4, (clock)} } \
	}
	CLOCK(1, 9, 0, 0),
	CLOCK(1, 9, 1, 0),
	CLOCK(1, 9, 4, 0),
	CLOCK(1, 9, 7, 0),
	CLOCK(1, 9, 11, 0),
	CLOCK(1, 9, 2, EINVAL),
	CLOCK(1, 9, 3, EINVAL),
	CLOCK(1, 9, 5, EINVAL),
	CLOCK(1, 9, 6, EINVAL),
	CLOCK(1, 9, 8, EINVAL),
	CLOCK(1, 9, 12, EINVAL),
	CLOCK(1, 9, UINT32_MAX, EINVAL),
	CLOCK(5, 0, 0, EINVAL),
	CLOCK(5, 0, 1, 0),
	CLOCK(5, 0, 4, 0),
	CLOCK(5, 0, 7, EINVAL),
	CLOCK(5, 0, 11, EINVAL),
	CLOCK(2, 1, 0, EINVAL),
	CLOCK(2, 1, 1, 0),
	CLOCK(2, 1, 4, 0),
	CLOCK(2, 1, 7, EINVAL),
	CLOCK(2, 1, 11, EINVAL),
	{"a clock that is not used", 0, 0, {4, 1}, .type = 1, .config = 9, .put = {{92, 4, 99}}},
	{"aux_output", EOPNOTSUPP, 40, {5, 4}, .type = 1, .config = 9, .flags = FLAG(aux_output)},
	{"aux_start_paused", EOPNOTSUPP, 116, {6, 13}, .type = 1, .config = 9, .put = {{116, 4, 1}}},
	{"aux_pause", EINVAL, 116, {5, 5}, .type = 1, .config = 9, .put = {{116, 4, 2}}},
	{"aux_resume", EINVAL, 116, {5, 5}, .type = 1, .config = 9, .put = {{116, 4, 4}}},
	{"aux_pause and aux_resume", EINVAL, 116, {5, 5}, .type = 1, .config = 9, .put = {{116, 4, 6}}},
	{"aux_action of all three", EINVAL, 116, {5, 5}, .type = 1, .config = 9, .put = {{116, 4, 7}}},
	{"AUX with a size", EINVAL, 112, {5, 5}, .type = 1, .config = 9, .sample_type = 1 << 20, .put = {{112, 4, 64}}},
	{"an AUX size alone", EINVAL, 112, {5, 5}, .type = 1, .config = 9, .put = {{112, 4, 64}}},
	{"AUX without a size", 0, 0, {5, 5}, .type = 1, .config = 9, .sample_type = 1 << 20},
	{"aux_watermark", 0, 0, {4, 1}, .type = 1, .config = 9, .put = {{104, 4, 4096}}},
	/* 1.6 */
	{"software event 12", ENOENT, 8, {5, 13}, {6, 19}, .type = 1, .config = 12},
	{"the upper half of a config", ENOENT, 8, .type = 1, .config = UINT64_C(1) << 32 | 2},
#if defined(__x86_64__)
	{"breakpoint r", EINVAL, 52, .type = 5, .put = {{52, 4, 1}}},
	{"breakpoint of no kind", EINVAL, 52, .type = 5, .put = {{52, 4, 0}}},
	{"breakpoint of all kinds", EINVAL, 52, .type = 5, .put = {{52, 4, 7}}},
	{"breakpoint w", 0, 0, .type = 5, .put = {{52, 4, 2}}},
	{"breakpoint rw", 0, 0, .type = 5, .put = {{52, 4, 3}}},
	{"breakpoint x of 8", 0, 0, .type = 5, .put = {{52, 4, 4}, {64, 8, 8}}},
	{"breakpoint x of 4", EINVAL, 64, .type = 5, .put = {{52, 4, 4}, {64, 8, 4}}},
	{"breakpoint of 0 bytes", EINVAL, 64, .type = 5, .put = {{64, 8, 0}}},
	{"breakpoint of 3 bytes", EINVAL, 64, .type = 5, .put = {{64, 8, 3}}},
	{"breakpoint of 5 bytes", EINVAL, 64, .type = 5, .put = {{64, 8, 5}}},
	{"breakpoint askew", EINVAL, 56, .type = 5, .put = {{56, 8, 0x1002}, {64, 8, 4}}},
	{"breakpoint in the kernel, which is not excluded", 0, 0, .type = 5,
	 .put = {{56, 8, UINT64_C(0xffffffff81000000)}}},
	{"breakpoint in the kernel", EINVAL, 56, .type = 5, .flags = FLAG(exclude_kernel),
	 .put = {{56, 8, UINT64_C(0xffffffff81000000)}}},
#endif
};

Test(rules, rows)
{
	int tried = 0;

	need_kernel();
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(*ROWS); i++) {
		const struct row *row = &ROWS[i];
		struct perfring_fault fault = {-2, NULL};
		uint64_t config = row->config;
		int32_t pid = row->cpu_wide ? -1 : 0, cpu = row->cpu_wide ? 0 : -1;
		union wide wide;
		int kernels, ours;

		if (!is_at_least(row->since[0], row->since[1]) ||
		    (row->before[0] && is_at_least(row->before[0], row->before[1])))
			continue;
		if (row->type == TRACEPOINT)
			config = tracepoint_id("sched/sched_switch");
		if (row->type == TRACEPOINT && !config)
			continue;
		plain(&wide, row->type, config);
		wide.attr.sample_type = row->sample_type;
		wide.attr.read_format = row->read_format;
		for (uint32_t bit = 0; bit < 64; bit++)
			if (row->flags >> bit & 1)
				flag(&wide, bit);
		for (int k = 0; k < 2; k++) {
			if (row->put[k].size == 8)
				put64(&wide, row->put[k].at, row->put[k].value);
			else if (row->put[k].size == 4)
				put32(&wide, row->put[k].at, (uint32_t)row->put[k].value);
			else if (row->put[k].size)
				wide.bytes[row->put[k].at] = (unsigned char)row->put[k].value;
		}
		wide.attr.size = perfring_attr_size(&wide.attr);
		kernels = verdict(raw_open(&wide, pid, cpu, -1, 0));
		ours = perfring_event_check(&wide.attr, pid, cpu, 0, NULL, &fault);
		cr_assert_eq(kernels, -row->error, "%s: %s", row->what, strerror(-kernels));
		cr_assert_eq(ours, -row->error, "%s: check says %s", row->what, strerror(-ours));
		if (row->error) {
			cr_assert_eq(fault.at, row->at, "%s: at %d: %s", row->what, (int)fault.at, fault.what);
			cr_assert_gt(strlen(fault.what), 10);
		} else {
			cr_assert_null(fault.what, "%s: %s", row->what, fault.what);
		}
		tried++;
	}
	cr_assert_gt(tried, 20);
}

/* 1.1 */
Test(rules, who_and_where)
{
	static const struct {
		int32_t pid, cpu;
		uint64_t flags;
		int error;
	} CASES[] = {
		{0, -1, 0, 0},
		{0, 0, 0, 0},
		{-1, 0, 0, 0},
		{-1, -1, 0, EINVAL},
		{-2, -1, 0, ESRCH},
		{-2, 0, 0, ESRCH},
		{INT32_MIN, -1, 0, ESRCH},
		{0, -2, 0, EINVAL},
		{0, 100000, 0, EINVAL},
		{-1, 100000, 0, EINVAL},
		{0, -1, 16, EINVAL},
		{0, -1, UINT64_C(1) << 31, EINVAL},
		{0, -1, 1, 0},
		{0, -1, 8, 0},
		{-1, 0, 4, EINVAL},
		{0, -1, 4, EINVAL},
	};
	union wide wide;

	need_kernel();
	plain(&wide, SOFTWARE, DUMMY);
	wide.attr.size = 64;
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		int32_t pid = CASES[i].pid, cpu = CASES[i].cpu;
		struct perfring_fault fault = {-2, NULL};
		int fd = raw_open(&wide, pid, cpu, -1, CASES[i].flags);

		/* FD_CLOEXEC is what the caller says, here as nowhere else. */
		if (fd >= 0)
			cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, CASES[i].flags & 8 ? FD_CLOEXEC : 0);
		if (fd >= 0)
			cr_assert_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
		cr_assert_eq(verdict(fd), -CASES[i].error, "%zu: %s", i, strerror(-fd));
		cr_assert_eq(perfring_event_check(&wide.attr, pid, cpu, CASES[i].flags, NULL, &fault), -CASES[i].error,
			     "%zu: %s", i, fault.what);
		if (CASES[i].error)
			cr_assert_eq(fault.at, -1);
	}
	cr_assert_eq(verdict(raw_open(&wide, 0x3fffffff, -1, -1, 0)), -ESRCH);
	cr_assert_eq(verdict(raw_open(&wide, 0, -1, 0, 0)), -EBADF, "not an event");
	cr_assert_eq(verdict(raw_open(&wide, 0, -1, 1 << 20, 0)), -EBADF, "not an fd");
	cr_assert_eq(verdict(perfring_event_open(&wide.attr, 1, -1, -1, 0)), 0, "another process' thread, as root");
}

/* Whether the thread is there, and a PMU of this type, the kernel alone knows: it says so before it comes to the clock or to
 * what the PMU refuses, and after the rules of the attr alone. */
Test(rules, who_is_gone_comes_first)
{
	static const struct {
		const char *what;
		uint32_t type;
		uint64_t config, sample_type;
		int32_t clockid; /* 0: none */
		bool is_gone;
		int check, kernel;
	} CASES[] = {
		{"a thread that is gone", SOFTWARE, DUMMY, 0, 0, true, 0, ESRCH},
		{"... and no such clock", SOFTWARE, DUMMY, 0, 99, true, EINVAL, ESRCH},
		{"... and no such event", SOFTWARE, 99, 0, 0, true, ENOENT, ESRCH},
		{"... and no such field", SOFTWARE, DUMMY, UINT64_C(1) << 40, 0, true, EINVAL, EINVAL},
		{"no such PMU, and no such clock", 0x7ffffffe, 0, 0, 99, false, EINVAL, ENOENT},
	};
	union wide wide;
	pid_t gone;

	need_kernel();
	gone = fork();
	if (!gone)
		_exit(0);
	cr_assert_eq(waitpid(gone, NULL, 0), gone);
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		int32_t pid = CASES[i].is_gone ? gone : 0;

		plain(&wide, CASES[i].type, CASES[i].config);
		wide.attr.size = sizeof(wide.attr);
		wide.attr.sample_type = CASES[i].sample_type;
		wide.attr.use_clockid = !!CASES[i].clockid;
		wide.attr.clockid = CASES[i].clockid;
		cr_assert_eq(perfring_event_check(&wide.attr, pid, -1, 0, NULL, NULL), -CASES[i].check, "%s",
			     CASES[i].what);
		cr_assert_eq(verdict(raw_open(&wide, pid, -1, -1, 0)), -CASES[i].kernel, "%s", CASES[i].what);
	}
}

Test(rules, cgroups)
{
	int fd = open_cgroup(), other = open("/sys/fs/cgroup/pids", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct perfring_fault fault = {-2, NULL};
	union wide wide;
	uint64_t time = 0;
	int event;

	need_kernel();
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: PID_CGROUP: no hierarchy that events follow is mounted");
	plain(&wide, SOFTWARE, 0);
	wide.attr.size = 64;
	wide.attr.disabled = 0;
	cr_assert_eq(verdict(raw_open(&wide, fd, -1, -1, 4)), -EINVAL);
	cr_assert_eq(perfring_event_check(&wide.attr, fd, -1, 4, NULL, &fault), -EINVAL);
	cr_assert_not_null(strstr(fault.what, "cgroup"));
	event = perfring_event_open(&wide.attr, fd, 0, -1, 4);
	cr_assert_geq(event, 0);
	usleep(20000);
	cr_assert_eq(read(event, &time, sizeof(time)), (ssize_t)sizeof(time));
	close(event);
	/* No directory of a cgroup at all. */
	event = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(verdict(raw_open(&wide, event, 0, -1, 4)), -EBADF);
	close(event);
	/* A hierarchy of version 1 without perf_event. */
	if (other >= 0)
		cr_assert_eq(verdict(raw_open(&wide, other, 0, -1, 4)), -ENOENT);
	close(other);
	close(fd);
}

/* 1.3: what this kernel says of sizes, and that perfring_event_open never trips over one. */
Test(rules, sizes)
{
	static const uint32_t GOOD[] = {0,   64,  65,  68,  71,  72,  80,  96,   100,
					104, 111, 112, 120, 128, 136, 144, 4095, 4096};
	static const uint32_t BAD[] = {1, 8, 56, 63, 4097, 65536, UINT32_MAX};
	union wide wide;
	uint32_t own;
	int fd;

	need_kernel();
	for (size_t i = 0; i < sizeof(GOOD) / sizeof(*GOOD); i++) {
		plain(&wide, SOFTWARE, DUMMY);
		wide.attr.size = GOOD[i];
		fd = (int)syscall(SYS_perf_event_open, &wide, 0, -1, -1, 0UL);
		cr_assert_geq(fd, 0, "%u: %s", GOOD[i], strerror(errno));
		close(fd);
		cr_assert_eq(wide.attr.size, GOOD[i], "not touched");
		cr_assert_eq(perfring_event_check(&wide.attr, 0, -1, 0, NULL, NULL), 0);
		cr_assert_eq(verdict(perfring_event_open(&wide.attr, 0, -1, -1, 0)), 0);
	}
	own = 0;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct perfring_fault fault = {-2, NULL};

		plain(&wide, SOFTWARE, DUMMY);
		wide.attr.size = BAD[i];
		cr_assert_eq(syscall(SYS_perf_event_open, &wide, 0, -1, -1, 0UL), -1L);
		cr_assert_eq(errno, E2BIG);
		cr_assert_geq(wide.attr.size, 64);
		cr_assert(!own || own == wide.attr.size);
		own = wide.attr.size;
		wide.attr.size = BAD[i];
		cr_assert_eq(perfring_event_check(&wide.attr, 0, -1, 0, NULL, &fault), -E2BIG);
		cr_assert_eq(fault.at, 4);
		cr_assert_eq(perfring_event_open(&wide.attr, 0, -1, -1, 0), -E2BIG);
		cr_assert_eq(wide.attr.size, BAD[i]);
	}
	if (is_at_least(6, 18) && !is_at_least(6, 19))
		cr_assert_eq(own, 136);
	/* What lies behind the kernel's own must be 0. */
	for (uint32_t at = own; at < own + 20; at++) {
		struct perfring_fault fault = {-2, NULL};

		plain(&wide, SOFTWARE, DUMMY);
		wide.attr.size = own + 64;
		wide.bytes[at] = 1;
		cr_assert_eq(perfring_event_check(&wide.attr, 0, -1, 0, NULL, &fault), -E2BIG);
		cr_assert_eq(fault.at, at);
		cr_assert_eq(syscall(SYS_perf_event_open, &wide, 0, -1, -1, 0UL), -1L);
		cr_assert_eq(errno, E2BIG);
		cr_assert_eq(wide.attr.size, own, "its own");
	}
	/* An attr that ends in the middle of a member: what is missing is 0. */
	plain(&wide, SOFTWARE, DUMMY);
	wide.attr.sample_type = PERFRING_SAMPLE_STACK_USER;
	wide.attr.sample_stack_user = 0x10008;
	wide.attr.size = 90;
	cr_assert_eq(verdict(raw_open(&wide, 0, -1, -1, 0)), 0, "8, for the upper half is not sent");
}

/* 1.5: groups. */
Test(rules, groups)
{
	union wide leader, sibling;
	struct perfring_fault fault;
	struct rlimit limit;
	int fd, second, member, siblings;
	static int fds[700];

	need_kernel();
	plain(&leader, SOFTWARE, DUMMY);
	leader.attr.size = 136;
	fd = raw_open(&leader, 0, -1, -1, 0);
	cr_assert_geq(fd, 0);
	for (int i = 0; i < 5; i++) {
		static const uint32_t PLACES[] = {40, 40, 40, 92, 92};
		static const char *const WORDS[] = {"pinned", "pinned", "inherited", "clock", "clock"};

		sibling = leader;
		sibling.attr.pinned = i == 0;
		sibling.attr.exclusive = i == 1;
		sibling.attr.inherit = i == 2;
		sibling.attr.use_clockid = i >= 3;
		sibling.attr.clockid = i == 3 ? 1 : 0;
		cr_assert_eq(verdict(raw_open(&sibling, 0, -1, fd, 0)), -EINVAL, "%d", i);
		cr_assert_eq(perfring_event_check(&sibling.attr, 0, -1, 0, &leader.attr, &fault), -EINVAL);
		cr_assert_eq(fault.at, PLACES[i]);
		cr_assert_not_null(strstr(fault.what, WORDS[i]), "%s", fault.what);
		/* With NO_GROUP it is nobody's sibling. */
		cr_assert_eq(verdict(raw_open(&sibling, 0, -1, fd, 1)), 0);
		cr_assert_eq(perfring_event_check(&sibling.attr, 0, -1, 1, &leader.attr, &fault), 0);
	}
	/* Other CPU, other thread, and a member is no leader: what the two attrs do not say. */
	sibling = leader;
	cr_assert_eq(verdict(raw_open(&sibling, 0, 0, fd, 0)), -EINVAL);
	cr_assert_eq(verdict(raw_open(&sibling, 1, -1, fd, 0)), -EINVAL);
	member = raw_open(&sibling, 0, -1, fd, 0);
	cr_assert_geq(member, 0);
	cr_assert_eq(verdict(raw_open(&sibling, 0, -1, member, 0)), -EINVAL);
	close(member);
	close(fd);
	/* A read of it all must fit in 16 KiB: 3 words and 681 times 3 of 8 bytes are 16368, another 24 are too many. */
	limit = (struct rlimit){2048, 4096};
	if (!is_at_least(6, 0) || setrlimit(RLIMIT_NOFILE, &limit))
		return;
	leader.attr.read_format = 31;
	sibling.attr.read_format = 0;
	fd = raw_open(&leader, 0, -1, -1, 0);
	for (siblings = 0; siblings < 700; siblings++) {
		fds[siblings] = raw_open(&sibling, 0, -1, fd, 0);
		if (fds[siblings] < 0)
			break;
	}
	cr_assert_eq(siblings, 680);
	cr_assert_eq(fds[680], -E2BIG);
	while (siblings)
		close(fds[--siblings]);
	/* A member's own format counts, too. */
	second = raw_open(&sibling, 0, -1, fd, 0);
	cr_assert_geq(second, 0);
	close(second);
	close(fd);
}

/* The flags that say whose ring: FD_OUTPUT, alone and with NO_GROUP. */
Test(rules, output_of_another)
{
	for (uint64_t flags = 2; flags <= 3; flags++) {
		volatile struct perf_event_mmap_page *page;
		uint64_t head, values[8] = {0};
		union wide wide;
		int fd, other;

		need_kernel();
		plain(&wide, SOFTWARE, 0);
		wide.attr = watch_hits(&watched);
		wide.attr.disabled = 1;
		wide.attr.sample_period = 1;
		wide.attr.read_format = PERFRING_FORMAT_GROUP;
		fd = raw_open(&wide, 0, -1, -1, 0);
		if (fd < 0)
			cr_skip_test("SKIP-ENV: perf_event_open: %s: a breakpoint", strerror(-fd));
		page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		cr_assert((void *)page != MAP_FAILED);
		wide.attr.disabled = 0;
		other = perfring_event_open(&wide.attr, 0, -1, fd, flags);
		cr_assert_geq(other, 0, "%s", strerror(-other));
		cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		head = page->data_head;
		hit(&watched, 1);
		cr_assert_eq(page->data_head - head, 16, "two samples of 8 bytes");
		/* Without NO_GROUP it is a sibling besides. */
		cr_assert_eq(read(other, values, sizeof(values)), flags == 2 ? 24 : 16);
		cr_assert_eq(values[0], flags == 2 ? 2 : 1);
		close(other);
		munmap((void *)page, 2 * 4096);
		close(fd);
	}
	/* Whose ring is not there. */
	{
		union wide wide;
		int fd;

		plain(&wide, SOFTWARE, DUMMY);
		fd = raw_open(&wide, 0, -1, -1, 0);
		cr_assert_geq(fd, 0);
		cr_assert_eq(verdict(raw_open(&wide, 0, -1, fd, 3)), -EINVAL);
		cr_assert_eq(verdict(raw_open(&wide, 0, -1, -1, 3)), 0, "without a group_fd it is nothing");
		close(fd);
	}
}

/* 1.6: breakpoint registers are few; and longer ones are another processor's. */
Test(rules, breakpoint_registers)
{
	union wide wide;
	int fds[8], opened = 0, ret;
	char text[1024];

	need_kernel();
	plain(&wide, BREAKPOINT, 0);
	wide.attr.exclude_kernel = 1;
	while (opened < 8 && (fds[opened] = raw_open(&wide, 0, -1, -1, 0)) >= 0)
		opened++;
	cr_assert_gt(opened, 0);
	cr_assert_lt(opened, 8);
	cr_assert_eq(fds[opened], -ENOSPC);
#if defined(__x86_64__)
	cr_assert_leq(opened, 4);
#endif
	perfring_event_explain(-ENOSPC, &wide.attr, 0, -1, text, sizeof(text));
	cr_assert_not_null(strstr(text, "breakpoint registers"), "%s", text);
	while (opened)
		close(fds[--opened]);
#if defined(__x86_64__)
	wide.attr.bp_addr = 0x1000;
	wide.attr.bp_len = 16;
	ret = verdict(raw_open(&wide, 0, -1, -1, 0));
	cr_assert(ret == -EOPNOTSUPP || ret == 0, "%d: only AMD has them", ret);
#else
	(void)ret;
#endif
}

/* A PMU that cannot interrupt cannot sample. */
Test(rules, sampling_without_interrupts)
{
	uint32_t type = (uint32_t)number_in("/sys/bus/event_source/devices/msr/type");
	union wide wide;
	int ret;

	need_kernel();
	if (!type)
		cr_skip_test("SKIP-ENV: msr: this machine has no such PMU");
	plain(&wide, type, 0);
	ret = verdict(raw_open(&wide, -1, 0, -1, 0));
	cr_assert(ret == 0 || ret == -EINVAL);
	wide.attr.sample_period = 1000;
	ret = verdict(raw_open(&wide, -1, 0, -1, 0));
	cr_assert(ret == -EINVAL || ret == -EOPNOTSUPP, "%d", ret);
}

/* No kernel need be there: nothing is refused that could be taken, and no errno is set. */
Test(rules, nothing_but_what_it_is)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .sample_period = 100000};
	struct perfring_fault fault = {-2, NULL};

	attr.precise_ip = 3;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	cr_assert_eq(perfring_event_check(&attr, 0, -1, 0, NULL, &fault), 0, "%s", fault.what);
	cr_assert_null(fault.what);
	cr_assert_eq(perfring_event_check(&attr, -1, -1, 0, NULL, NULL), -EINVAL);
	attr.sample_period = UINT64_MAX;
	cr_assert_eq(perfring_event_check(&attr, 0, -1, 0, NULL, &fault), -EINVAL);
	cr_assert_eq(fault.at, 16);
}
