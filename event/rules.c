/* rules.c - the rules of perf_event_open that hold for any caller, as sentences: docs/abi.md 1.1 and 1.5.
 *
 * perfring_event_check of event.h, for refusal.c, and the questions to the kernel (perfring__probe) for fallback.c too.  Rules are
 * tested in the kernel's order, because the first that is broken decides the errno; tests/event/rules_test.c asks the kernel for
 * each row.  What kernels differ in is asked of the kernel by a dummy event.
 */
#include <perfring/event.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event_private.h"
#include "os/small_file.h"
#include "os/range.h"

/* ---- probes: where kernels differ, the kernel is asked ---- */

enum {
	/* Bits known since Linux 3.19 are not probed. */
	OLD_SAMPLE_TYPE = 0x7ffff,
	OLD_READ_FORMAT = 0xf,
	OLD_FLAGS = 0x1fffff,
};

int perfring__attr_pack(union perfring_attr *packed, const struct perf_event_attr *attr)
{
	uint32_t own = perfring__attr_own_size(attr), size;

	if (own < PERFRING_ATTR_MIN || own > PERFRING_ATTR_MAX)
		return -E2BIG;
	size = perfring_attr_size(attr);
	memset(packed, 0, sizeof(*packed));
	memcpy(packed, attr, own < size ? own : size);
	packed->attr.size = size;
	return 0;
}

void perfring__probe_begin(union perfring_attr *probe)
{
	memset(probe, 0, sizeof(*probe));
	probe->attr.type = PERFRING_TYPE_SOFTWARE;
	probe->attr.config = PERFRING_COUNT_SW_DUMMY;
	probe->attr.size = PERFRING_ATTR_MAX;
	probe->attr.disabled = 1;
	probe->attr.exclude_kernel = 1;
	probe->attr.exclude_hv = 1;
}

int perfring__probe(const union perfring_attr *probe)
{
	int fd = perfring_event_open(&probe->attr, 0, -1, -1, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

uint32_t perfring__probe_size(void)
{
	uint32_t attr[16] = {0, 8};

	/* For a size that is too small the kernel stores its own (docs/abi.md 1.3). */
	return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0UL) < 0 && errno == E2BIG && attr[1] > 8 ? attr[1] : 0;
}

/* Whether the kernel says EINVAL to this bit, with all that the bit stands on. */
static bool is_unknown(uint32_t at, uint32_t bit)
{
	union perfring_attr probe;
	uint64_t word = UINT64_C(1) << bit;

	perfring__probe_begin(&probe);
	if (at != PERFRING_ATTR_AT_flags) {
		memcpy(probe.bytes + at, &word, sizeof(word));
	} else {
		perfring_attr_set_flag(&probe.attr, bit, true);
		if (bit == PERFRING_ATTR_FLAG_inherit_thread)
			probe.attr.inherit = 1;
		else if (bit == PERFRING_ATTR_FLAG_sigtrap)
			perfring_attr_set_flag(&probe.attr, PERFRING_ATTR_FLAG_remove_on_exec, true);
		else if (bit == PERFRING_ATTR_FLAG_defer_callchain)
			probe.attr.sample_type = PERFRING_SAMPLE_CALLCHAIN;
	}
	return perfring__probe(&probe) == -EINVAL;
}

uint64_t perfring__probe_unknown(const struct perf_event_attr *attr, uint32_t at)
{
	uint64_t word, unknown = 0;

	if (at == PERFRING_ATTR_AT_flags)
		word = perfring__attr_flags(attr) & ~(uint64_t)OLD_FLAGS;
	else if (at == PERFRING_ATTR_AT_sample_type)
		word = attr->sample_type & ~(uint64_t)OLD_SAMPLE_TYPE;
	else
		word = attr->read_format & ~(uint64_t)OLD_READ_FORMAT;
	for (uint32_t bit = 0; bit < 64; bit++)
		if (word >> bit & 1 && is_unknown(at, bit))
			unknown |= UINT64_C(1) << bit;
	return unknown;
}

/* ---- the rules ---- */

struct ask {
	struct perf_event_attr attr; /* what the installed header names of it */
	const struct perf_event_attr *group;
	uint64_t attr_flags;
	uint64_t flags;
	uint32_t aux_action;
	int32_t pid;
	int32_t cpu;
	struct perfring_fault *fault;
};

static bool has(const struct ask *ask, uint32_t flag)
{
	return ask->attr_flags >> flag & 1;
}

static bool samples(const struct ask *ask, uint64_t sample_type)
{
	return (ask->attr.sample_type & sample_type) == sample_type;
}

/* Whether the event is of a thread, not of a CPU. */
static bool is_of_task(const struct ask *ask)
{
	return ask->pid != -1 && !(ask->flags & PERFRING_FLAG_PID_CGROUP);
}

/* PMUs of the kernel itself, whose abilities do not depend on the machine. */
static bool is_of_kernel(uint32_t type)
{
	return type == PERFRING_TYPE_SOFTWARE || type == PERFRING_TYPE_TRACEPOINT || type == PERFRING_TYPE_BREAKPOINT;
}

/* Whether the list in this file has the CPU; *highest: its last number. */
static bool cpus_have(const char *path, int32_t cpu, uint32_t *highest)
{
	const char *at;
	char text[4096];
	bool found = false;
	uint32_t first, last;

	*highest = INT32_MAX;
	if (perfring__os_file_read(path, text, sizeof(text)) <= 0)
		return true;
	for (at = text; perfring__os_range_next(&at, &first, &last) == 1; *highest = last)
		found = found || (first <= (uint32_t)cpu && (uint32_t)cpu <= last);
	return found;
}

/* The answer to a dummy event with these members of ask. */
static int probe_with(const struct ask *ask, uint64_t sample_type, bool clock)
{
	union perfring_attr probe;

	perfring__probe_begin(&probe);
	probe.attr.sample_type = ask->attr.sample_type & sample_type;
	probe.attr.sample_regs_user = ask->attr.sample_regs_user;
	probe.attr.sample_regs_intr = ask->attr.sample_regs_intr;
	probe.attr.branch_sample_type = ask->attr.branch_sample_type;
	probe.attr.use_clockid = clock;
	probe.attr.clockid = clock ? ask->attr.clockid : 0;
	return perfring__probe(&probe);
}

/* Some kernels accept inherit with READ and TID, some do not. */
static bool inherits_no_reads(void)
{
	union perfring_attr probe;

	perfring__probe_begin(&probe);
	probe.attr.inherit = 1;
	probe.attr.sample_type = PERFRING_SAMPLE_READ | PERFRING_SAMPLE_TID;
	return perfring__probe(&probe) == -EINVAL;
}

/* The answer to a dummy event with these bytes at an offset. */
static int probe_at(uint32_t at, const void *bytes, size_t size)
{
	union perfring_attr probe;

	perfring__probe_begin(&probe);
	memcpy(probe.bytes + at, bytes, size);
	return perfring__probe(&probe);
}

static bool is_unknown_action(uint32_t action)
{
	return probe_at(PERFRING_ATTR_AT_aux_action, &action, sizeof(action)) == -EINVAL;
}

static bool is_unknown_open_flag(uint64_t flags)
{
	union perfring_attr probe;
	int fd;

	perfring__probe_begin(&probe);
	fd = perfring_event_open(&probe.attr, 0, -1, -1, flags & ~UINT64_C(15));
	if (fd >= 0)
		close(fd);
	return fd == -EINVAL;
}

#ifdef __x86_64__
/* The end of user space depends on the levels of the page tables. */
static bool is_kernel_address(const struct ask *ask)
{
	union perfring_attr probe;
	uint64_t last = ask->attr.bp_addr + ask->attr.bp_len - 1;

	if (ask->attr.bp_addr >> 46 == 0)
		return false;
	perfring__probe_begin(&probe);
	probe.attr.type = PERFRING_TYPE_BREAKPOINT;
	probe.attr.config = 0;
	probe.attr.bp_type = 2;
	probe.attr.bp_len = 1;
	probe.attr.bp_addr = last > ask->attr.bp_addr ? last : ask->attr.bp_addr;
	return perfring__probe(&probe) == -EINVAL;
}
#endif

#define RULE(error, member, condition, text) \
	do { \
		if (condition) \
			return refuse(ask, error, PERFRING_ATTR_AT_##member, text); \
	} while (0)
#define ARGUMENT_RULE(error, condition, text) RULE(error, none, condition, text)
enum {
	PERFRING_ATTR_AT_none = -1,
};

static int refuse(const struct ask *ask, int error, int64_t at, const char *what)
{
	if (ask->fault)
		*ask->fault = (struct perfring_fault){at, what};
	return -error;
}

/* Checked while the kernel copies the attr. */
static int check_attr(const struct ask *ask)
{
	enum {
		PRIVILEGES = PERFRING_SAMPLE_BRANCH_USER | PERFRING_SAMPLE_BRANCH_KERNEL | PERFRING_SAMPLE_BRANCH_HV,
	};
	const struct perf_event_attr *attr = &ask->attr;

	RULE(EINVAL, flags, perfring__probe_unknown(attr, PERFRING_ATTR_AT_flags),
	     "a flag that this kernel does not know");
	RULE(EINVAL, reserved_2, attr->__reserved_2, "reserved bytes that are not 0");
	RULE(EINVAL, aux_action, ask->aux_action >> 3 && is_unknown_action(ask->aux_action & ~UINT32_C(7)),
	     "a bit of aux_action that this kernel does not know");
	RULE(EINVAL, aux_action, ask->aux_action & 1 && is_unknown_action(1), "this kernel knows no aux_start_paused");
	RULE(EINVAL, sample_type, perfring__probe_unknown(attr, PERFRING_ATTR_AT_sample_type),
	     "a bit of sample_type that this kernel does not know");
	RULE(EINVAL, read_format, perfring__probe_unknown(attr, PERFRING_ATTR_AT_read_format),
	     "a bit of read_format that this kernel does not know");
	if (samples(ask, PERFRING_SAMPLE_BRANCH_STACK)) {
		RULE(EINVAL, branch_sample_type, !(attr->branch_sample_type & ~(uint64_t)PRIVILEGES),
		     "branch_sample_type has only privilege levels: BRANCH_STACK needs a kind of branch too");
		RULE(EINVAL, branch_sample_type, probe_with(ask, PERFRING_SAMPLE_BRANCH_STACK, false) == -EINVAL,
		     "a bit of branch_sample_type that this kernel does not know");
	}
	if (samples(ask, PERFRING_SAMPLE_REGS_USER)) {
		RULE(EINVAL, sample_regs_user, !attr->sample_regs_user, "REGS_USER needs a mask in sample_regs_user");
		RULE(EINVAL, sample_regs_user, probe_with(ask, PERFRING_SAMPLE_REGS_USER, false) == -EINVAL,
		     "a bit of sample_regs_user that is not a register here");
	}
	RULE(EINVAL, sample_stack_user,
	     samples(ask, PERFRING_SAMPLE_STACK_USER) &&
		     (attr->sample_stack_user >= 65535 || attr->sample_stack_user % 8),
	     "sample_stack_user must be a multiple of 8 below 65535");
	if (samples(ask, PERFRING_SAMPLE_REGS_INTR)) {
		RULE(EINVAL, sample_regs_intr, !attr->sample_regs_intr, "REGS_INTR needs a mask in sample_regs_intr");
		RULE(EINVAL, sample_regs_intr, probe_with(ask, PERFRING_SAMPLE_REGS_INTR, false) == -EINVAL,
		     "a bit of sample_regs_intr that is not a register here");
	}
	RULE(EINVAL, sample_type, samples(ask, PERFRING_SAMPLE_WEIGHT | PERFRING_SAMPLE_WEIGHT_STRUCT),
	     "WEIGHT and WEIGHT_STRUCT exclude one another");
	RULE(EINVAL, flags, has(ask, PERFRING_ATTR_FLAG_inherit_thread) && !attr->inherit,
	     "inherit_thread needs inherit");
	RULE(EINVAL, flags, has(ask, PERFRING_ATTR_FLAG_remove_on_exec) && attr->enable_on_exec,
	     "remove_on_exec and enable_on_exec exclude one another");
	RULE(EINVAL, flags, has(ask, PERFRING_ATTR_FLAG_sigtrap) && !has(ask, PERFRING_ATTR_FLAG_remove_on_exec),
	     "sigtrap needs remove_on_exec");
	RULE(EINVAL, sample_period,
	     attr->freq && attr->sample_freq >
				   perfring__os_file_number("/proc/sys/kernel/perf_event_max_sample_rate", UINT64_MAX),
	     "the frequency is above kernel.perf_event_max_sample_rate");
	RULE(EINVAL, sample_period, !attr->freq && attr->sample_period >> 63, "the sample period has bit 63 set");
	return 0;
}

static int check_arguments(const struct ask *ask)
{
	const struct perf_event_attr *attr = &ask->attr;
	uint32_t last;

	ARGUMENT_RULE(EINVAL, ask->flags & PERFRING_FLAG_PID_CGROUP && (ask->pid == -1 || ask->cpu == -1),
		      "a cgroup is observed CPU by CPU: name its directory's fd and a CPU");
	ARGUMENT_RULE(ESRCH, is_of_task(ask) && ask->pid < -1, "a thread id is not negative");
	RULE(EINVAL, flags, is_of_task(ask) && ask->group && ask->group->inherit != attr->inherit,
	     "a group is inherited as a whole or not at all");
	ARGUMENT_RULE(EINVAL, ask->pid == -1 && ask->cpu == -1,
		      "pid -1 with cpu -1 observes nothing: name one of the two");
	if (ask->cpu != -1) {
		cpus_have("/sys/devices/system/cpu/possible", ask->cpu, &last);
		ARGUMENT_RULE(EINVAL, ask->cpu < 0 || (uint32_t)ask->cpu > last,
			      "no such CPU is possible on this machine");
	}
	RULE(EINVAL, flags, has(ask, PERFRING_ATTR_FLAG_sigtrap) && !is_of_task(ask),
	     "sigtrap is for events of a thread, not of a CPU or cgroup");
	RULE(EINVAL, sample_type,
	     attr->inherit && samples(ask, PERFRING_SAMPLE_READ) && !samples(ask, PERFRING_SAMPLE_TID),
	     "READ in samples of an inherited event needs Linux 6.13 and TID in sample_type");
	RULE(EINVAL, sample_type,
	     attr->inherit && samples(ask, PERFRING_SAMPLE_READ | PERFRING_SAMPLE_TID) && inherits_no_reads(),
	     "READ in samples of an inherited event needs Linux 6.13, and this kernel is older");
	return 0;
}

#if defined(__x86_64__) || defined(__i386__)
static int check_breakpoint(const struct ask *ask)
{
	uint64_t len = ask->attr.bp_len;

	RULE(EINVAL, bp_type, ask->attr.bp_type < 2 || ask->attr.bp_type > 4,
	     "breakpoints are w, rw or x: this processor has none for reads alone");
	RULE(EINVAL, config2, ask->attr.bp_type == 4 && len != sizeof(long),
	     "a breakpoint on code has the length of a long");
	RULE(EINVAL, config2, !len || len & (len - 1), "a breakpoint's length is 1, 2, 4 or 8");
	RULE(EINVAL, config1, ask->attr.bp_type != 4 && ask->attr.bp_addr & (len - 1),
	     "a breakpoint's address must be a multiple of its length");
#ifdef __x86_64__
	/* Longer ones are AMD's alone. */
	RULE(EINVAL, config1, len <= 8 && ask->attr.exclude_kernel && is_kernel_address(ask),
	     "a breakpoint in the kernel excludes the kernel");
#endif
	return 0;
}
#endif

/* Rules that depend on the PMU and its event. */
static int check_pmu(const struct ask *ask)
{
	const struct perf_event_attr *attr = &ask->attr;
	bool ours = is_of_kernel(attr->type);
	int ret = 0;

	RULE(EOPNOTSUPP, sample_type, ours && samples(ask, PERFRING_SAMPLE_BRANCH_STACK),
	     "only a processor's PMU has branch stacks");
	RULE(ENOENT, config,
	     attr->type == PERFRING_TYPE_SOFTWARE && attr->config > PERFRING_COUNT_SW_DUMMY &&
		     probe_at(PERFRING_ATTR_AT_config, &attr->config, sizeof(attr->config)) == -ENOENT,
	     "a software event that this kernel does not know");
#if defined(__x86_64__) || defined(__i386__)
	if (attr->type == PERFRING_TYPE_BREAKPOINT)
		ret = check_breakpoint(ask);
	if (ret)
		return ret;
#endif
	/* The masks are checked even if samples have no registers. */
	RULE(EOPNOTSUPP, sample_regs_user,
	     ours && (attr->sample_regs_user | attr->sample_regs_intr) >> 32 &&
		     probe_with(ask, 0, false) == -EOPNOTSUPP,
	     "registers that only a processor's PMU can sample");
	RULE(EOPNOTSUPP, flags, ours && has(ask, PERFRING_ATTR_FLAG_aux_output),
	     "aux_output is for PMUs with an AUX area");
	RULE(EINVAL, aux_action, (ask->aux_action & 6) == 6, "aux_pause and aux_resume exclude one another");
	RULE(EOPNOTSUPP, aux_action, ours && ask->aux_action & 1, "aux_start_paused is for PMUs with an AUX area");
	RULE(EOVERFLOW, sample_max_stack,
	     samples(ask, PERFRING_SAMPLE_CALLCHAIN) &&
		     attr->sample_max_stack >
			     perfring__os_file_number("/proc/sys/kernel/perf_event_max_stack", UINT64_MAX),
	     "sample_max_stack is above kernel.perf_event_max_stack");
	if (attr->use_clockid && attr->clockid != 1 && attr->clockid != 4) {
		RULE(EINVAL, clockid, probe_with(ask, 0, true) == -EINVAL, "not a clock that events can use");
		RULE(EINVAL, clockid, attr->type == PERFRING_TYPE_BREAKPOINT || attr->type == PERFRING_TYPE_TRACEPOINT,
		     "breakpoints and tracepoints, which may occur in an NMI, must use CLOCK_MONOTONIC or "
		     "CLOCK_MONOTONIC_RAW");
	}
	return ret;
}

static int check_group(const struct ask *ask)
{
	const struct perf_event_attr *attr = &ask->attr, *group = ask->group;
	uint32_t last;

	ARGUMENT_RULE(ENODEV, !is_of_task(ask) && !cpus_have("/sys/devices/system/cpu/online", ask->cpu, &last),
		      "the CPU is offline");
	if (group) {
		RULE(EINVAL, clockid,
		     group->use_clockid != attr->use_clockid || (attr->use_clockid && group->clockid != attr->clockid),
		     "a group has one clock");
		RULE(EINVAL, flags, attr->pinned || attr->exclusive, "pinned and exclusive are for a group's leader");
	}
	/* Another leader may have an AUX area: only the kernel knows. */
	if (!group || is_of_kernel(group->type)) {
		RULE(EINVAL, aux_action, ask->aux_action & 6,
		     "aux_pause and aux_resume need a leader with an AUX area");
		RULE(EINVAL, aux_sample_size, attr->aux_sample_size, "aux_sample_size needs a leader with an AUX area");
		RULE(EINVAL, flags, has(ask, PERFRING_ATTR_FLAG_aux_output),
		     "aux_output needs a leader with an AUX area");
	}
	return 0;
}

/* In the kernel's order, for the first broken rule gives the errno; permissions, which the kernel checks in between,
 * are not checked. */
int perfring_event_check(const struct perf_event_attr *from, int32_t pid, int32_t cpu, uint64_t flags,
			 const struct perf_event_attr *group, struct perfring_fault *fault)
{
	struct ask asked = {.flags = flags, .pid = pid, .cpu = cpu, .fault = fault}, *ask = &asked;
	uint32_t size = perfring__attr_own_size(from), known;
	const unsigned char *bytes = (const unsigned char *)from;
	struct perf_event_attr leader;
	int ret;

	ARGUMENT_RULE(EINVAL, flags & ~UINT64_C(15) && is_unknown_open_flag(flags),
		      "a flag of perf_event_open that this kernel does not know");
	RULE(E2BIG, size, size < PERFRING_ATTR_MIN || size > PERFRING_ATTR_MAX,
	     "the attr's size must be 0 (which is 64), or from 64 to 4096");
	known = perfring__probe_size();
	for (uint32_t i = known; known && i < size; i++)
		if (bytes[i])
			return refuse(ask, E2BIG, i, "a member that this kernel does not know is not 0");
	ask->attr = perfring__attr_whole(from);
	ask->attr_flags = perfring__attr_flags(from);
	if (size >= PERFRING_ATTR_AT_aux_action + sizeof(ask->aux_action))
		memcpy(&ask->aux_action, bytes + PERFRING_ATTR_AT_aux_action, sizeof(ask->aux_action));
	if (group && !(flags & PERFRING_FLAG_FD_NO_GROUP)) {
		leader = perfring__attr_whole(group);
		ask->group = &leader;
	}
	ret = check_attr(ask);
	ret = ret ? ret : check_arguments(ask);
	ret = ret ? ret : check_pmu(ask);
	return ret ? ret : check_group(ask);
}
