/* explain.c - why perf_event_open refused, and what to change. */
#include <perfring/event.h>

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event.h"

/* Text that grows as snprintf counts: what does not fit is still measured. */
struct text {
	char *room;
	size_t size;
	size_t length;
};

static void __attribute__((format(printf, 2, 3))) say(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->length < text->size ? text->room + text->length : NULL,
			   text->length < text->size ? text->size - text->length : 0, format, arguments);
	va_end(arguments);
	text->length += length > 0 ? (size_t)length : 0;
}

/* A sysctl's number as text, "?" when it cannot be read. */
static const char *sysctl_text(const char *path, char *room, size_t size)
{
	if (perfring_event_slurp(path, room, size) <= 0)
		snprintf(room, size, "?");
	return room;
}

/* Whether a filter, not the kernel's own check, says no: a seccomp filter refuses what can never be permitted too. */
static bool is_filtered(void)
{
	/* A size that no kernel takes is E2BIG from the kernel, before any permission is looked at. */
	uint32_t attr[16] = {0, 8};

	return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0UL) < 0 && errno == EPERM;
}

/* The name that sysfs gives the PMU of this type. */
static bool find_pmu(uint32_t type, char *name, size_t size)
{
	struct dirent *entry;
	char path[300], number[32];
	bool found = false;
	DIR *devices = opendir("/sys/bus/event_source/devices");

	while (devices && !found && (entry = readdir(devices))) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", entry->d_name);
		found = entry->d_name[0] != '.' && perfring_event_slurp(path, number, sizeof(number)) > 0 &&
			strtoul(number, NULL, 10) == type;
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (devices)
		closedir(devices);
	return found;
}

static void explain_access(struct text *text, const struct perf_event_attr *attr, int32_t pid, int32_t cpu)
{
	char number[32], pmu[256];
	int paranoid;

	if (is_filtered()) {
		say(text,
		    "a seccomp filter refuses perf_event_open (containers have one by default): allow that system call "
		    "in the container's seccomp profile and give CAP_PERFMON.");
		return;
	}
	sysctl_text("/proc/sys/kernel/perf_event_paranoid", number, sizeof(number));
	paranoid = *number == '?' ? 2 : atoi(number);
	if (paranoid > 2)
		say(text,
		    "kernel.perf_event_paranoid is %s: above 2 some distributions' kernels refuse every event without "
		    "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8); set it to 2 or lower.",
		    number);
	else if (attr->type > PERFRING_TYPE_BREAKPOINT && find_pmu(attr->type, pmu, sizeof(pmu)) &&
		 (!strcmp(pmu, "uprobe") || !strcmp(pmu, "kprobe")))
		say(text,
		    "a %s writes into running code: it needs CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), whatever "
		    "kernel.perf_event_paranoid is.",
		    pmu);
	else if (pid == -1 && paranoid > 0)
		say(text,
		    "observing everything on CPU %d needs kernel.perf_event_paranoid <= 0 (it is %s) or CAP_PERFMON "
		    "(CAP_SYS_ADMIN before Linux 5.8).",
		    cpu, number);
	else if (attr->type == PERFRING_TYPE_TRACEPOINT)
		say(text,
		    "a tracepoint needs kernel.perf_event_paranoid <= -1 for its raw data and <= 1 for the kernel's "
		    "part "
		    "(it is %s), or CAP_PERFMON.",
		    number);
	else if (!attr->exclude_kernel && paranoid > 1)
		say(text,
		    "observing the kernel needs kernel.perf_event_paranoid <= 1 (it is %s) or CAP_PERFMON; without "
		    "either, only user space can be observed: exclude_kernel, or the modifier :u.",
		    number);
	else if (pid > 0)
		say(text,
		    "thread %d is not yours to trace: observing another user's threads needs CAP_PERFMON and "
		    "CAP_SYS_PTRACE (kernel.perf_event_paranoid is %s).",
		    pid, number);
	else
		say(text,
		    "this event asks for more than kernel.perf_event_paranoid = %s gives without CAP_PERFMON (physical "
		    "addresses, namespaces and branch stacks of the kernel need it).",
		    number);
}

static void explain_limit(struct text *text)
{
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_NOFILE, &limit);
	say(text,
	    "too many open files: each event takes one for each CPU and thread, and RLIMIT_NOFILE is %llu (at most "
	    "%llu "
	    "without CAP_SYS_RESOURCE): raise it (ulimit -n), or observe fewer events, CPUs or threads.",
	    (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void explain_invalid(struct text *text, const struct perf_event_attr *attr, int32_t pid, int32_t cpu)
{
	char number[32];

	sysctl_text("/proc/sys/kernel/perf_event_max_sample_rate", number, sizeof(number));
	if (pid == -1 && cpu == -1)
		say(text, "pid -1 with cpu -1 observes nothing: name one of the two.");
	else if (attr->freq && *number != '?' && attr->sample_freq > strtoull(number, NULL, 10))
		say(text, "%llu Hz is above kernel.perf_event_max_sample_rate = %s: lower the frequency or raise that.",
		    (unsigned long long)attr->sample_freq, number);
	else if (!attr->freq && attr->sample_period >> 63)
		say(text, "the sample period has bit 63 set.");
	else if ((attr->sample_type & PERFRING_SAMPLE_WEIGHT) && (attr->sample_type & PERFRING_SAMPLE_WEIGHT_STRUCT))
		say(text, "WEIGHT and WEIGHT_STRUCT exclude one another.");
	else if ((attr->sample_type & PERFRING_SAMPLE_READ) && attr->inherit)
		say(text, "READ in samples of an inherited event needs Linux 6.13 and TID in sample_type.");
	else if ((attr->sample_type & PERFRING_SAMPLE_STACK_USER) &&
		 (attr->sample_stack_user >= 65535 || attr->sample_stack_user % 8))
		say(text, "sample_stack_user must be a multiple of 8 below 65535.");
	else if ((attr->sample_type & PERFRING_SAMPLE_REGS_USER) && !attr->sample_regs_user)
		say(text, "REGS_USER needs a mask in sample_regs_user.");
	else if ((attr->sample_type & PERFRING_SAMPLE_REGS_INTR) && !attr->sample_regs_intr)
		say(text, "REGS_INTR needs a mask in sample_regs_intr.");
	else if (attr->type == PERFRING_TYPE_BREAKPOINT)
		say(text,
		    "this processor has no such breakpoint: x86 knows w, rw and x (of length 8), and 1, 2, 4 or 8 "
		    "bytes that do not cross such a boundary.");
	else
		say(text, "the kernel does not take this attr (EINVAL): a sample_type, read_format or flag bit that it "
			  "does not know or does not take together, or a CPU that does not exist.");
}

int64_t perfring_event_explain(int error, const struct perf_event_attr *from, int32_t pid, int32_t cpu, char *room,
			       size_t size)
{
	struct text text = {room, size, 0};
	struct perf_event_attr attr = perfring_attr_whole(from);
	char name[256];

	attr.size = sizeof(attr);
	if (size)
		room[0] = 0;
	perfring_event_name(&attr, name, sizeof(name));
	error = error < 0 ? -error : error;
	say(&text, "%s: ", name);
	switch (error) {
	case EACCES:
	case EPERM:
		explain_access(&text, &attr, pid, cpu);
		break;
	case EMFILE:
		explain_limit(&text);
		break;
	case ENFILE:
		say(&text, "the system's table of open files is full: raise fs.file-max.");
		break;
	case ENOENT:
		if (attr.type == PERFRING_TYPE_HARDWARE || attr.type == PERFRING_TYPE_HW_CACHE ||
		    attr.type == PERFRING_TYPE_RAW)
			say(&text,
			    "this machine shows no hardware counter for it (a virtual machine without a PMU, or an "
			    "event that this processor lacks): use cpu-clock instead.");
		else if (attr.type == PERFRING_TYPE_SOFTWARE || attr.type == PERFRING_TYPE_TRACEPOINT)
			say(&text, "this kernel does not know the event's number %llu.",
			    (unsigned long long)attr.config);
		else if (!find_pmu(attr.type, name, sizeof(name)))
			say(&text, "no PMU on this machine has type %u.", attr.type);
		else
			say(&text, "its PMU does not know config 0x%llx.", (unsigned long long)attr.config);
		break;
	case ENODEV:
		say(&text, "CPU %d is offline, or the event's PMU does not count there.", cpu);
		break;
	case EOPNOTSUPP:
		if (attr.sample_type & PERFRING_SAMPLE_BRANCH_STACK)
			say(&text, "its PMU cannot sample branch stacks: drop BRANCH_STACK.");
		else if (attr.sample_period && (attr.type == PERFRING_TYPE_HARDWARE || attr.type >= 6))
			say(&text, "its PMU has no interrupt and so cannot sample: count it, or sample cpu-clock.");
		else
			say(&text,
			    "its PMU cannot do what the attr asks for (precise_ip, AUX, XMM registers or a filter).");
		break;
	case E2BIG:
		say(&text, "the attr uses members that this kernel does not know: leave the newer ones 0.");
		break;
	case EOVERFLOW:
		say(&text, "sample_max_stack is above kernel.perf_event_max_stack.");
		break;
	case ENOSPC:
		if (attr.type == PERFRING_TYPE_BREAKPOINT)
			say(&text, "all of the processor's breakpoint registers are in use (x86 has 4).");
		else
			say(&text, "the PMU has no room for this event.");
		break;
	case ESRCH:
		say(&text, "there is no thread %d.", pid);
		break;
	case EBUSY:
		say(&text, "another user holds the PMU exclusively.");
		break;
	case ENOSYS:
		if (access("/proc/sys/kernel/perf_event_paranoid", F_OK) == 0)
			say(&text, "a seccomp filter hides perf_event_open (containers can have one): allow that "
				   "system call in the container's seccomp profile.");
		else
			say(&text, "this kernel was built without CONFIG_PERF_EVENTS.");
		break;
	case ENOMEM:
		say(&text, "the kernel has no memory for it.");
		break;
	case EINVAL:
		explain_invalid(&text, &attr, pid, cpu);
		break;
	default:
		say(&text, "perf_event_open failed: %s.", strerror(error));
		break;
	}
	return (int64_t)text.length;
}
