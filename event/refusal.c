/* refusal.c - why perf_event_open refused, and what to change.
 *
 * perfring_event_explain and perfring_event_filtered of event.h.  The kernel returns one errno for many reasons: the rules
 * (rules.c), the limits of /proc/sys/kernel and a few harmless calls tell them apart.  Sentences name what to change.  No state;
 * threads only.
 */
#include <perfring/event.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/event_holders.h"
#include "os/small_file.h"
#include "os/lines.h"
#include "pmu.h"

int64_t perfring__say(struct perfring_words *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->length < text->size ? text->buffer + text->length : NULL,
			   text->length < text->size ? text->size - text->length : 0, format, arguments);
	va_end(arguments);
	text->length += length > 0 ? (size_t)length : 0;
	return (int64_t)text->length;
}

/* A sysctl's number as text, "?" when it cannot be read. */
static const char *sysctl_text(const char *path, char *buffer, size_t size)
{
	if (perfring__os_file_read(path, buffer, size) <= 0)
		snprintf(buffer, size, "?");
	return buffer;
}

static bool has_perf_events(void)
{
	return access("/proc/sys/kernel/perf_event_paranoid", F_OK) == 0;
}

/* What the kernel says before it checks any permission: EINVAL to unknown flags, then E2BIG to an unknown size.  A
 * security module, or a distribution's level 3 or 4 of perf_event_paranoid, may come between the two. */
int perfring_event_filtered(void)
{
	uint32_t attr[16] = {0, 8};
	int error;

	error = syscall(SYS_perf_event_open, attr, 0, -1, -1, ~0UL) < 0 ? errno : 0;
	if (error == EINVAL)
		return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0UL) < 0 && errno == EINVAL ? -EINVAL : 0;
	/* A kernel without perf events says ENOSYS too. */
	if (error == ENOSYS && !has_perf_events() && prctl(PR_GET_SECCOMP) <= 0)
		return 0;
	return -error;
}

/* Why a process that has the capability was refused all the same. */
static void explain_capable(struct perfring_words *text)
{
	enum {
		CAPABILITY_SYS_ADMIN = 21,
		CAPABILITY_PERFMON = 38,
	};
	uint64_t capabilities = perfring__os_lines_number("/proc/self/status", "CapEff", 16, 0);
	unsigned long long first = 0, of = 0, count = 0;
	char map[128];

	if (!(capabilities & (UINT64_C(1) << CAPABILITY_SYS_ADMIN | UINT64_C(1) << CAPABILITY_PERFMON)))
		return;
	if (perfring__os_file_read("/proc/self/uid_map", map, sizeof(map)) > 0 &&
	    sscanf(map, "%llu %llu %llu", &first, &of, &count) == 3 && (first || of || count != UINT32_MAX))
		perfring__say(text,
			      " This process has the capability only in a user namespace, where it does not count.");
	else
		perfring__say(text,
			      " This process has the capability now: if it had it then, a security module (SELinux, "
			      "kernel lockdown) refused.");
}

static void explain_access(struct perfring_words *text, int error, const struct perf_event_attr *attr, int32_t pid,
			   int32_t cpu)
{
	char number[32], pmu[PERFRING_PMU_NAME], user[256];
	struct perf_event_attr user_only = *attr;
	union perfring_attr probe;
	int paranoid;

	sysctl_text("/proc/sys/kernel/perf_event_paranoid", number, sizeof(number));
	paranoid = *number == '?' ? 2 : atoi(number);
	perfring__probe_begin(&probe);
	if (paranoid > 2 && perfring__probe(&probe) == -error) {
		perfring__say(
			text,
			"kernel.perf_event_paranoid is %s, and above 2 this kernel permits no event without "
			"CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8): set it to 2 or lower to observe user space, "
			"to 1 or lower to observe the kernel too.",
			number);
	} else if (attr->type > PERFRING_TYPE_BREAKPOINT &&
		   !perfring__pmu_of_type(PERFRING_PMU_ROOT, attr->type, pmu) &&
		   (!strcmp(pmu, "uprobe") || !strcmp(pmu, "kprobe"))) {
		perfring__say(text,
			      "a %s writes into running code: it needs CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), "
			      "whatever kernel.perf_event_paranoid is.",
			      pmu);
	} else if (error == EPERM && attr->type == PERFRING_TYPE_BREAKPOINT && !attr->exclude_kernel) {
		perfring__say(text, "a breakpoint in the kernel needs CAP_SYS_ADMIN.");
	} else if (pid == -1 && paranoid > 0) {
		perfring__say(text,
			      "observing everything on CPU %d needs kernel.perf_event_paranoid <= 0 (it is %s) or "
			      "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8).",
			      cpu, number);
	} else if (attr->type == PERFRING_TYPE_TRACEPOINT) {
		perfring__say(text,
			      "a tracepoint needs kernel.perf_event_paranoid <= -1 for its raw data and <= 1 for the "
			      "kernel's part (it is %s), or CAP_PERFMON.",
			      number);
	} else if (!attr->exclude_kernel && paranoid > 1) {
		perfring__say(text,
			      "observing the kernel needs kernel.perf_event_paranoid <= 1 (it is %s) or CAP_PERFMON",
			      number);
		user_only.exclude_kernel = user_only.exclude_hv = 1;
		perfring__event_plain_name(&user_only, user, sizeof(user));
		if (attr->exclude_user)
			perfring__say(text, ", and this event leaves out user space, which needs neither.");
		else
			perfring__say(text, "; %s, of user space alone, needs neither.", user);
	} else if (perfring__attr_flags(attr) >> PERFRING_ATTR_FLAG_namespaces & 1) {
		perfring__say(text, "records of namespaces need CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), whatever "
				    "kernel.perf_event_paranoid is.");
	} else if (attr->sample_type & PERFRING_SAMPLE_PHYS_ADDR && paranoid > 1) {
		perfring__say(text,
			      "physical addresses need kernel.perf_event_paranoid <= 1 (it is %s) or CAP_PERFMON.",
			      number);
	} else if (pid > 0) {
		perfring__say(text,
			      "thread %d is another user's, or its program may not be traced: observing it needs "
			      "CAP_PERFMON (CAP_SYS_PTRACE before Linux 5.8).",
			      pid);
	} else {
		perfring__say(text,
			      "this event asks for more than kernel.perf_event_paranoid = %s gives without CAP_PERFMON "
			      "(branch stacks of the kernel or a hypervisor need it: exclude_hv).",
			      number);
	}
	explain_capable(text);
}

static int64_t explain_limit(struct perfring_words *text)
{
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return perfring__say(
		text,
		"too many open files: each event takes one for each CPU and thread, and RLIMIT_NOFILE is "
		"%llu (at most %llu without CAP_SYS_RESOURCE): raise it (ulimit -n), or observe fewer events, "
		"CPUs or threads.",
		(unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static int64_t explain_unknown(struct perfring_words *text, const struct perf_event_attr *attr, const char *rule)
{
	char pmu[PERFRING_PMU_NAME];

	if (attr->type == PERFRING_TYPE_HARDWARE || attr->type == PERFRING_TYPE_HW_CACHE ||
	    attr->type == PERFRING_TYPE_RAW)
		return perfring__say(
			text,
			"this machine shows no hardware counter for it (a virtual machine without a PMU, or an "
			"event that this processor lacks)%s.",
			attr->sample_period ? ": sample cpu-clock instead" : "");
	if (attr->type == PERFRING_TYPE_SOFTWARE && rule)
		return perfring__say(text, "this kernel does not know the event's number %llu.",
				     (unsigned long long)attr->config);
	if (attr->type <= PERFRING_TYPE_BREAKPOINT)
		return perfring__say(text,
				     "the cgroup is of a hierarchy that perf events do not follow: it must be cgroup "
				     "v2, or v1 with the perf_event controller.");
	if (perfring__pmu_of_type(PERFRING_PMU_ROOT, attr->type, pmu))
		return perfring__say(text, "no PMU on this machine has type %u.", attr->type);
	return perfring__say(text, "its PMU does not know config 0x%llx.", (unsigned long long)attr->config);
}

static int64_t explain_unsupported(struct perfring_words *text, const struct perf_event_attr *attr, const char *rule)
{
	if (attr->sample_type & PERFRING_SAMPLE_BRANCH_STACK)
		return perfring__say(text, "its PMU cannot sample branch stacks: drop BRANCH_STACK.");
	if (rule)
		return perfring__say(text, "%s.", rule);
	if (attr->type == PERFRING_TYPE_BREAKPOINT)
		return perfring__say(text, "this processor has no breakpoints of %llu bytes: it has 1, 2, 4 and 8.",
				     (unsigned long long)attr->bp_len);
	if (attr->sample_period && (attr->type == PERFRING_TYPE_HARDWARE || attr->type >= 6))
		return perfring__say(text,
				     "its PMU has no interrupt and so cannot sample: count it, or sample cpu-clock.");
	return perfring__say(text,
			     "its PMU cannot do what the attr asks for (precise_ip, AUX, XMM registers or a filter).");
}

static int64_t explain_invalid(struct perfring_words *text, const struct perf_event_attr *attr, const char *rule,
			       const char *name)
{
	char number[32];

	sysctl_text("/proc/sys/kernel/perf_event_max_sample_rate", number, sizeof(number));
	if (rule && attr->freq && *number != '?' && attr->sample_freq > strtoull(number, NULL, 10))
		return perfring__say(
			text,
			"%llu Hz is above kernel.perf_event_max_sample_rate = %s: lower the frequency or raise that.",
			(unsigned long long)attr->sample_freq, number);
	if (rule)
		return perfring__say(text, "%s.", rule);
	if (attr->type == PERFRING_TYPE_TRACEPOINT && !strncmp(name, "type=", 5))
		return perfring__say(text, "tracefs shows no tracepoint with the number %llu.",
				     (unsigned long long)attr->config);
	if (attr->type == PERFRING_TYPE_BREAKPOINT)
		return perfring__say(text,
				     "this processor has no such breakpoint: x86 knows w, rw and x (of length 8), and "
				     "1, 2, 4 or 8 bytes that do not cross such a boundary.");
	if (attr->type > PERFRING_TYPE_BREAKPOINT)
		return perfring__say(text,
				     "its PMU rejects this attr (EINVAL): it may lack the config, an exclude_ bit, the "
				     "period or the target (a thread, where it counts whole CPUs).");
	return perfring__say(text,
			     "the kernel rejects this attr (EINVAL): a group whose members differ in CPU or thread, a "
			     "group_fd that is not a leader, or an output to a ring that does not exist.");
}

/* The name of the member at this offset. */
static const char *member_at(int64_t at)
{
	const char *name = "a member newer than this library";

#define PERFRING_ATTR(member, offset, size, show) \
	if (at >= (offset) && at < (offset) + (size)) \
		name = #member;
#include <perfring/values.def>
	return name;
}

/* A PMU that the kernel calls exclusive: an event of it, or what events of it share, is taken. */
static int64_t explain_busy(struct perfring_words *text, const struct perf_event_attr *attr)
{
	struct perfring_os_holder holders[PERFRING_OS_HOLDERS];
	uint32_t count = perfring__os_event_holders(holders);
	char pmu[PERFRING_PMU_NAME] = "";

	if (attr->type <= PERFRING_TYPE_BREAKPOINT || perfring__pmu_of_type(PERFRING_PMU_ROOT, attr->type, pmu))
		*pmu = 0;
	perfring__say(text, "its PMU%s%s serves one user at a time, threads or whole CPUs, and is in use",
		      *pmu ? " " : "", pmu);
	if (!count)
		return perfring__say(text, ", by this process or by one that it may not look into: end that.");
	for (uint32_t i = 0; i < count; i++)
		perfring__say(text, "%s %s (%u)", i ? "," : ": perf events are open in", holders[i].comm,
			      holders[i].pid);
	return perfring__say(text, "%s: end what uses it.", count == PERFRING_OS_HOLDERS ? " and perhaps more" : "");
}

int64_t perfring_event_explain(int error, const struct perf_event_attr *from, int32_t pid, int32_t cpu, char *buffer,
			       size_t size)
{
	struct perfring_words text = perfring__words_in(buffer, size);
	struct perf_event_attr attr = perfring__attr_whole(from);
	struct perfring_fault fault = {-1, NULL};
	char name[256], number[32];
	const char *rule;

	attr.size = sizeof(attr);
	perfring__event_plain_name(&attr, name, sizeof(name));
	error = error < 0 ? -error : error;
	perfring__say(&text, "%s: ", name);
	if (perfring_event_filtered() == -error)
		return perfring__say(&text,
				     "a seccomp filter refuses perf_event_open (containers have one by default): allow "
				     "that system call in the container's seccomp profile and give CAP_PERFMON.");
	/* A broken rule that gives another errno is not why it was refused. */
	rule = perfring_event_check(from, pid, cpu, 0, NULL, &fault) == -error ? fault.what : NULL;
	switch (error) {
	case EACCES:
	case EPERM:
		explain_access(&text, error, &attr, pid, cpu);
		return (int64_t)text.length;
	case EMFILE:
		return explain_limit(&text);
	case ENFILE:
		return perfring__say(&text, "the system's table of open files is full: raise fs.file-max (it is %s).",
				     sysctl_text("/proc/sys/fs/file-max", number, sizeof(number)));
	case ENOENT:
		return explain_unknown(&text, &attr, rule);
	case ENODEV:
		return perfring__say(
			&text, rule ? "CPU %d is offline." : "the event's PMU does not count on CPU %d, or is gone.",
			cpu);
	case EOPNOTSUPP:
		return explain_unsupported(&text, &attr, rule);
	case E2BIG:
		if (rule && fault.at == PERFRING_ATTR_AT_size)
			return perfring__say(&text, "%s.", rule);
		if (rule)
			return perfring__say(&text, "this kernel's attr has %u bytes and no %s: leave it 0.",
					     perfring__probe_size(), member_at(fault.at));
		return perfring__say(&text,
				     "a read of the whole group would not fit in 16 KiB: make two groups of it.");
	case EOVERFLOW:
		return perfring__say(&text, "sample_max_stack %u is above kernel.perf_event_max_stack = %s.",
				     (unsigned)attr.sample_max_stack,
				     sysctl_text("/proc/sys/kernel/perf_event_max_stack", number, sizeof(number)));
	case ENOSPC:
		return perfring__say(&text,
				     attr.type == PERFRING_TYPE_BREAKPOINT
					     ? "all of the processor's breakpoint registers are in use (x86 has 4)."
					     : "the PMU has no counter left for this event.");
	case ESRCH:
		return perfring__say(&text, "there is no thread %d.", pid);
	case EBADF:
		return perfring__say(
			&text, "group_fd is not an event's, or, for a cgroup, pid %d is not the fd of its directory.",
			pid);
	case EBUSY:
		return explain_busy(&text, &attr);
	case ENOSYS:
		if (!has_perf_events())
			return perfring__say(&text, "this kernel was built without CONFIG_PERF_EVENTS.");
		if (attr.sample_type & PERFRING_SAMPLE_STACK_USER)
			return perfring__say(&text, "this architecture cannot copy user stacks: drop STACK_USER.");
		return perfring__say(&text,
				     "a seccomp filter hides perf_event_open (containers can have one): allow that "
				     "system call in the container's seccomp profile.");
	case ENOMEM:
		return perfring__say(&text, "the kernel has no memory for it.");
	case EINVAL:
		return explain_invalid(&text, &attr, rule, name);
	default:
		return perfring__say(&text, "perf_event_open failed: %s.", strerror(error));
	}
}
