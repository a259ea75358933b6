/* doctor.c - `perfring doctor`: what this machine, kernel, container and user allow, by trial, and how to change the rest.
 *
 * Each finding is a function that tries something small (opens an event, maps a ring, reads a sysctl) and prints whether it
 * works, why not, and what to change; --json has the same.  Changes nothing on the machine.  tests/tools has a machine for each
 * refusal.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <perfring/access.h>
#include <perfring/cpus.h>
#include <perfring/event.h>
#include <perfring/ring.h>
#include <perfring/set.h>
#include "json.h"
#include "options.h"
#include "soft_source.h"
#include "terminal.h"
#include "tools.h"

enum {
	TEXT = 1024,
	WIDTH = 20,           /* of a finding's name */
	DEFAULT_PAGES = 128,  /* perf's ring, and ours */
	TRY_BYTES = 64 << 20, /* of rings, all CPUs' together */
	ENOUGH_EVENTS = 16,   /* on each CPU */
	PLENTY_EVENTS = 64,
	USUAL_RATE = 4000, /* samples a second that perf asks for */
	NO_PARANOID = INT_MIN,
	TRACEFS = 0x74726163,
	USER_RDPMC = 4, /* of a control page's capabilities (docs/abi.md 3.2) */
	USER_TIME = 8,
	USER_TIME_ZERO = 16,
};

/* The numbers of the first namespaces, the same on every kernel. */
#define FIRST_PIDS 0xEFFFFFFCu
#define FIRST_USERS 0xEFFFFFFDu

enum mark {
	GOOD,
	BAD,  /* comes with what mends it */
	CARE, /* may be as wanted */
};

struct finding {
	const char *group, *name;
	enum mark mark;
	char *text, *mend;
};

struct doctor {
	struct finding *found;
	size_t count;
	const char *group;
	/* for later findings */
	bool is_filtered; /* a seccomp filter refuses perf_event_open */
	int refused;      /* errno of an event of this process, 0: it opens */
	bool is_mapped;   /* a ring could be mapped */
	int paranoid;
	bool is_locking; /* locked memory has no limit */
	uint64_t capabilities;
	bool in_user_namespace;
	uint32_t cpus;
};

static void __attribute__((format(printf, 5, 6)))
note(struct doctor *doctor, enum mark mark, const char *name, const char *mend, const char *form, ...)
{
	struct finding *one;
	va_list list;

	doctor->found = tool_allocate(doctor->found, doctor->count + 1, sizeof(*doctor->found));
	one = &doctor->found[doctor->count++];
	*one = (struct finding){doctor->group, name, mark, NULL, NULL};
	one->text = tool_allocate(NULL, 1, TEXT);
	va_start(list, form);
	vsnprintf(one->text, TEXT, form, list);
	va_end(list);
	if (mend)
		one->mend = strcpy(tool_allocate(NULL, 1, strlen(mend) + 1), mend);
}

/* ---- what the system says of itself ---- */

/* The beginning of a file, up to the end of its line.  False: it cannot be read, or is empty. */
static bool read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[got > 0 ? got : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	return *line;
}

static bool read_number(const char *path, long long *number)
{
	char line[64];
	char *end;

	if (!read_line(path, line, sizeof(line)))
		return false;
	*number = strtoll(line, &end, 10);
	return end != line;
}

static void append(char *list, size_t size, const char *word)
{
	size_t length = strlen(list);

	snprintf(list + length, size - length, "%s%s", length ? " " : "", word);
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool has_capability(const struct doctor *doctor, unsigned number)
{
	return doctor->capabilities >> number & 1;
}

/* ---- events to try ---- */

static struct perf_event_attr attr_of(uint64_t config)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERFRING_TYPE_SOFTWARE;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

/* Opens and closes an event.  Returns 0 or -errno. */
static int try_event(const struct perf_event_attr *attr, int32_t pid, int32_t cpu)
{
	int fd = perfring_event_open(attr, pid, cpu, -1, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Writes how to change a refusal; paranoid: the value of kernel.perf_event_paranoid that would allow it. */
static const char *mend_of(const struct doctor *doctor, int error, int paranoid)
{
	if (doctor->is_filtered)
		return "docker run --cap-add PERFMON (or a seccomp profile that allows perf_event_open)";
	switch (-error) {
	case ENOSYS:
		return "a kernel with CONFIG_PERF_EVENTS=y";
	case EPERM:
	case EACCES:
		return paranoid < 0    ? "sysctl kernel.perf_event_paranoid=-1"
		       : paranoid == 0 ? "sysctl kernel.perf_event_paranoid=0"
		       : paranoid == 1 ? "sysctl kernel.perf_event_paranoid=1"
				       : "sysctl kernel.perf_event_paranoid=2";
	case EMFILE:
		return "ulimit -n 1024";
	case ENFILE:
		return "sysctl fs.file-max=1000000";
	case ENOENT:
		return "-e cpu-clock instead, or a machine whose processor shows its counters (vPMU)";
	default:
		return "-e cpu-clock";
	}
}

/* The reason without the event's name, because the finding has one. */
static const char *explain(int error, const struct perf_event_attr *attr, int32_t pid, int32_t cpu, char text[TEXT])
{
	const char *said;

	perfring_event_explain(error, attr, pid, cpu, text, TEXT);
	said = strstr(text, ": ");
	return said ? said + 2 : text;
}

static void try_and_tell(struct doctor *doctor, const char *name, const struct perf_event_attr *attr, int32_t pid,
			 int32_t cpu, int paranoid, const char *good)
{
	int error = try_event(attr, pid, cpu);
	char text[TEXT];

	note(doctor, error ? BAD : GOOD, name, error ? mend_of(doctor, error, paranoid) : NULL, "%s",
	     error ? explain(error, attr, pid, cpu, text) : good);
}

/* ---- kernel and container ---- */

static bool is_first_namespace(const char *path, uint32_t number, bool *known)
{
	char link[64];
	ssize_t length = readlink(path, link, sizeof(link) - 1);
	const char *digits;

	*known = length > 0;
	if (length <= 0)
		return true;
	link[length] = 0;
	digits = strchr(link, '[');
	return !digits || strtoul(digits + 1, NULL, 10) == number;
}

static void find_kernel(struct doctor *doctor)
{
	char facts[256] = "", line[128];
	const char *variable = getenv("container");
	struct utsname name;
	bool known;
	int mode;

	doctor->group = "kernel and container";
	if (uname(&name) == 0)
		note(doctor, GOOD, "kernel", NULL, "%s %s %s", name.sysname, name.release, name.machine);
	if (!is_first_namespace("/proc/self/ns/pid", FIRST_PIDS, &known))
		append(facts, sizeof(facts), "its own process numbers,");
	if (access("/.dockerenv", F_OK) == 0)
		append(facts, sizeof(facts), "/.dockerenv,");
	if (access("/run/.containerenv", F_OK) == 0)
		append(facts, sizeof(facts), "/run/.containerenv,");
	if (variable && *variable) {
		snprintf(line, sizeof(line), "$container=%.40s,", variable);
		append(facts, sizeof(facts), line);
	}
	if (read_line("/proc/1/cgroup", line, sizeof(line)) &&
	    (strstr(line, "docker") || strstr(line, "kubepods") || strstr(line, "libpod") || strstr(line, "lxc")))
		append(facts, sizeof(facts), "the cgroup of process 1,");
	if (*facts) {
		facts[strlen(facts) - 1] = 0;
		note(doctor, CARE, "container", NULL,
		     "looks like one (%s): sysctls are the host's, and capabilities must be given to the container",
		     facts);
	} else if (known) {
		note(doctor, GOOD, "container", NULL, "nothing looks like one");
	} else {
		note(doctor, CARE, "container", "mount -t proc proc /proc",
		     "not known: /proc/self/ns cannot be read; without /proc much of what follows is missing too");
	}
	doctor->in_user_namespace = !is_first_namespace("/proc/self/ns/user", FIRST_USERS, &known);
	if (doctor->in_user_namespace)
		note(doctor, CARE, "user namespace", NULL,
		     "not the first one: capabilities inside it do not count for perf_event_open");
	mode = prctl(PR_GET_SECCOMP);
	if (mode > 0)
		note(doctor, doctor->is_filtered ? BAD : GOOD, "seccomp",
		     doctor->is_filtered ? mend_of(doctor, 0, 0) : NULL, "a filter is there, and %s",
		     doctor->is_filtered ? "refuses perf_event_open" : "lets perf_event_open pass");
	else
		note(doctor, GOOD, "seccomp", NULL, "no filter");
}

/* ---- perf_event_open ---- */

/* A size that no kernel takes is E2BIG from the kernel, with the size that it knows, before the event's own permissions are
 * looked at; 0: it does not say. */
static uint32_t known_size(void)
{
	uint32_t attr[16] = {PERFRING_TYPE_SOFTWARE, 8};

	return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0UL) < 0 && errno == E2BIG ? attr[1] : 0;
}

static void find_paranoid(struct doctor *doctor)
{
	static const char *const ALLOWS[] = {
		"everything, raw tracepoint data and rings without a limit too",
		"every CPU and the kernel, but no raw tracepoint data",
		"the user's own threads, with the kernel's part",
		"the user's own threads in user space",
		"nothing",
	};
	/* Mainline knows no level above 2; with some distributions' patches nothing opens at 3, or at 4. */
	bool is_known = doctor->refused == -EACCES || doctor->refused == -EPERM;
	int most = is_known && !doctor->is_filtered ? 3 : 2;
	int level = doctor->paranoid < -1 ? -1 : doctor->paranoid > most ? most : doctor->paranoid;

	if (doctor->paranoid == NO_PARANOID)
		note(doctor, CARE, "paranoid level", "mount -t proc proc /proc",
		     "/proc/sys/kernel/perf_event_paranoid cannot be read");
	else if (has_capability(doctor, CAP_SYS_ADMIN) || has_capability(doctor, CAP_PERFMON))
		note(doctor, GOOD, "paranoid level", NULL,
		     "kernel.perf_event_paranoid is %d; CAP_PERFMON or CAP_SYS_ADMIN overrides it", doctor->paranoid);
	else
		note(doctor,
		     level > 2   ? BAD
		     : level > 1 ? CARE
				 : GOOD,
		     "paranoid level",
		     level > 2   ? "sysctl kernel.perf_event_paranoid=2"
		     : level > 1 ? "sysctl kernel.perf_event_paranoid=1"
				 : NULL,
		     "kernel.perf_event_paranoid is %d: without CAP_PERFMON it allows %s", doctor->paranoid,
		     ALLOWS[level + 1]);
}

static void find_opening(struct doctor *doctor, uint32_t size)
{
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_SW_CPU_CLOCK);

	doctor->group = "perf_event_open";
	attr.sample_period = 1000000;
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME;
	doctor->refused = try_event(&attr, 0, -1);
	try_and_tell(doctor, "own programs", &attr, 0, -1, 2, "can be sampled in user space");
	find_paranoid(doctor);
	if (doctor->refused)
		return;
	attr.exclude_kernel = attr.exclude_hv = 0;
	try_and_tell(doctor, "kernel code", &attr, 0, -1, 1, "the kernel's part of your own programs can be sampled");
	try_and_tell(doctor, "whole system", &attr, -1, 0, 0, "every CPU can be sampled");
	if (size)
		note(doctor, GOOD, "attr size", NULL, "the kernel knows %u bytes", size);
}

/* ---- capabilities ---- */

static void find_capabilities(struct doctor *doctor)
{
	static const struct {
		unsigned number;
		const char *name, *gives, *mend;
	} WANTED[] = {
		{CAP_PERFMON, "CAP_PERFMON", "the kernel, every CPU, others' programs",
		 "setcap cap_perfmon+ep $(command -v perfring)"},
		{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "the same before Linux 5.8", NULL},
		{CAP_BPF, "CAP_BPF", "loading BPF programs", "setcap cap_bpf,cap_perfmon+ep $(command -v perfring)"},
		{CAP_IPC_LOCK, "CAP_IPC_LOCK", "rings without a limit",
		 "setcap cap_ipc_lock+ep $(command -v perfring)"},
		{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "other users' programs",
		 "setcap cap_sys_ptrace+ep $(command -v perfring)"},
	};

	doctor->group = "capabilities";
	for (size_t i = 0; i < sizeof(WANTED) / sizeof(WANTED[0]); i++) {
		bool has = has_capability(doctor, WANTED[i].number);

		note(doctor, has ? GOOD : CARE, WANTED[i].name, has ? NULL : WANTED[i].mend, "%s: %s",
		     !has                        ? "not effective"
		     : doctor->in_user_namespace ? "effective, but only in this user namespace"
						 : "effective",
		     WANTED[i].gives);
	}
}

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	if (syscall(SYS_capget, &header, data))
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

/* ---- memory for rings ---- */

/* Maps a ring of `pages` pages for each CPU, all at once.  Returns 0, or the errno of the first that was refused. */
static int try_rings(const struct doctor *doctor, uint32_t pages)
{
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_SW_DUMMY);
	struct perfring_ring *rings = tool_allocate(NULL, doctor->cpus, sizeof(*rings));
	long all = sysconf(_SC_NPROCESSORS_CONF);
	uint32_t made = 0;
	int error = 0;

	for (int32_t cpu = 0; cpu < all && made < doctor->cpus && !error; cpu++) {
		int fd = perfring_event_open(&attr, 0, cpu, -1, 0);

		if (fd == -ENODEV)
			continue; /* offline */
		error = fd < 0 ? fd : perfring_ring_map(&rings[made], fd, pages, 0);
		made += !error;
		if (fd >= 0)
			close(fd);
	}
	for (uint32_t i = 0; i < made; i++)
		perfring_ring_close(&rings[i]);
	free(rings);
	return error;
}

static uint32_t power_below(uint64_t number)
{
	uint32_t power = 1;

	while (power * UINT64_C(2) <= number && power < 1u << 30)
		power *= 2;
	return number ? power : 0;
}

/* docs/abi.md 2.5 */
static void find_memory(struct doctor *doctor)
{
	uint64_t each = UINT64_MAX, extra, kib = page_bytes() / 1024;
	uint32_t computed = 0, pages, most;
	struct rlimit limit = {0, 0};
	char text[TEXT], size[64];
	long long budget = -1;
	bool has_allowance;
	int error = 0;

	doctor->group = "memory for rings";
	getrlimit(RLIMIT_MEMLOCK, &limit);
	extra = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur / 1024;
	has_allowance = read_number("/proc/sys/kernel/perf_event_mlock_kb", &budget);
	doctor->is_locking = (has_capability(doctor, CAP_IPC_LOCK) && !doctor->in_user_namespace) ||
			     doctor->paranoid == -1 || extra == UINT64_MAX;
	if (has_allowance)
		note(doctor, GOOD, "allowance", NULL,
		     "kernel.perf_event_mlock_kb is %lld KiB for each CPU, for all rings of this user together",
		     budget);
	else
		note(doctor, CARE, "allowance", "mount -t proc proc /proc",
		     "/proc/sys/kernel/perf_event_mlock_kb cannot be read");
	if (doctor->is_locking)
		note(doctor, GOOD, "locked memory", NULL, "no limit: %s",
		     extra == UINT64_MAX      ? "RLIMIT_MEMLOCK is unlimited"
		     : doctor->paranoid == -1 ? "kernel.perf_event_paranoid is -1"
					      : "CAP_IPC_LOCK is effective");
	else if (extra)
		note(doctor, GOOD, "locked memory", NULL, "RLIMIT_MEMLOCK adds %llu KiB, for this process alone",
		     (unsigned long long)extra);
	else
		note(doctor, CARE, "locked memory", "ulimit -l unlimited", "RLIMIT_MEMLOCK is 0 KiB and adds nothing");
	if (doctor->refused) {
		note(doctor, CARE, "ring", NULL, "not tried: perf_event_open is refused");
		return;
	}
	most = power_below(TRY_BYTES / page_bytes() / doctor->cpus);
	if (!doctor->is_locking && has_allowance) {
		each = ((uint64_t)budget * doctor->cpus + extra) / kib / doctor->cpus;
		computed = each ? power_below(each - 1) : 0;
	}
	most = most ? most : 1;
	pages = doctor->is_locking || !has_allowance || computed > most ? most : computed ? computed : 1;
	for (; pages; pages /= 2) {
		error = try_rings(doctor, pages);
		if (!error || (error != -EPERM && error != -ENOMEM))
			break;
	}
	doctor->is_mapped = pages && !error;
	if (!doctor->is_mapped) {
		perfring_ring_explain(error, 1, text, sizeof(text));
		note(doctor, BAD, "ring", "ulimit -l unlimited", "%s", text);
		return;
	}
	if (doctor->is_locking || !has_allowance)
		snprintf(size, sizeof(size), "larger was not tried");
	else
		snprintf(size, sizeof(size), "computed: %llu KiB", (unsigned long long)(computed * kib));
	if (pages < DEFAULT_PAGES && pages < most)
		note(doctor, BAD, "ring", computed > pages ? "close this user's other rings" : "ulimit -l unlimited",
		     "only %llu KiB for each of %u CPUs at once (tried; %s); perfring wants %llu KiB",
		     (unsigned long long)(pages * kib), doctor->cpus, size, (unsigned long long)(DEFAULT_PAGES * kib));
	else
		note(doctor, computed > pages && pages < most ? CARE : GOOD, "ring", NULL,
		     "%llu KiB for each of %u CPUs at once (tried; %s)", (unsigned long long)(pages * kib),
		     doctor->cpus, size);
}

/* ---- open files ---- */

static void find_files(struct doctor *doctor)
{
	struct rlimit limit = {0, 0};
	uint64_t used = 0, fits, fits_soft;

	doctor->group = "open files";
	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 0; fd < 4096 && (rlim_t)fd < limit.rlim_max; fd++)
		used += fcntl(fd, F_GETFD) >= 0;
	fits = limit.rlim_max > used ? (limit.rlim_max - used) / doctor->cpus : 0;
	fits_soft = limit.rlim_cur > used ? (limit.rlim_cur - used) / doctor->cpus : 0;
	note(doctor,
	     fits < ENOUGH_EVENTS        ? BAD
	     : fits_soft < PLENTY_EVENTS ? CARE
					 : GOOD,
	     "open files",
	     fits < PLENTY_EVENTS        ? "LimitNOFILE=65536 in the service, or as root: ulimit -Hn 65536"
	     : fits_soft < PLENTY_EVENTS ? "ulimit -n $(ulimit -Hn)"
					 : NULL,
	     "RLIMIT_NOFILE is %llu, at most %llu: of events that take one for each of %u CPUs, %llu fit%s",
	     (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max, doctor->cpus,
	     (unsigned long long)fits_soft, fits > fits_soft ? ", more when perfring raises it" : "");
}

/* ---- PMUs ---- */

#define DEVICES "/sys/bus/event_source/devices"

static void find_user_counting(struct doctor *doctor, uint64_t capabilities, bool has_counters)
{
	if (!has_counters)
		note(doctor, CARE, "user rdpmc", NULL, "no counter to read in user space: counts are read by read(2)");
	else if (capabilities & USER_RDPMC)
		note(doctor, GOOD, "user rdpmc", NULL, "counters can be read in user space, without a system call");
	else
		note(doctor, CARE, "user rdpmc", "echo 1 >" DEVICES "/cpu/rdpmc",
		     "not allowed: counts are read by read(2)");
	if (capabilities & USER_TIME)
		note(doctor, GOOD, "user time", NULL, "the page converts cycles to times%s",
		     capabilities & USER_TIME_ZERO ? ", and to time stamps" : "");
	else
		note(doctor, CARE, "user time", NULL,
		     "the page does not convert cycles (no stable clock of the processor, as in many virtual "
		     "machines)");
}

/* In some virtual machines a breakpoint opens and counts nothing: only a store shows it. */
static void find_breakpoints(struct doctor *doctor)
{
	static volatile uint64_t word;
	struct perf_event_attr attr = attr_of(0);
	char text[TEXT];
	uint64_t count = 0;
	int fd;

	attr.type = PERFRING_TYPE_BREAKPOINT;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (uintptr_t)&word;
	attr.bp_len = sizeof(word);
	attr.disabled = 0;
	fd = perfring_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0) {
		note(doctor, CARE, "breakpoints", NULL, "%s", explain(fd, &attr, 0, -1, text));
		return;
	}
	word = 1;
	if (read(fd, &count, sizeof(count)) == sizeof(count) && count)
		note(doctor, GOOD, "breakpoints", NULL, "mem:ADDR counts stores and loads");
	else
		note(doctor, CARE, "breakpoints", NULL,
		     "mem:ADDR opens and counts nothing: the debug registers of this virtual machine do not work");
	close(fd);
}

static void find_pmus(struct doctor *doctor)
{
	static const char *const TRACERS[] = {"intel_pt", "intel_bts", "arm_spe_", "cs_etm", "hisi_ptt"};
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_HW_INSTRUCTIONS);
	char list[TEXT] = "", aux[TEXT] = "", text[TEXT];
	DIR *devices = opendir(DEVICES);
	uint64_t capabilities = 0;
	struct perfring_ring ring;
	struct dirent *entry;
	int fd, error;

	doctor->group = "PMUs";
	while (devices && (entry = readdir(devices))) {
		if (entry->d_name[0] == '.')
			continue;
		append(list, sizeof(list), entry->d_name);
		for (size_t i = 0; i < sizeof(TRACERS) / sizeof(TRACERS[0]); i++)
			if (strncmp(entry->d_name, TRACERS[i], strlen(TRACERS[i])) == 0)
				append(aux, sizeof(aux), entry->d_name);
	}
	if (*list)
		note(doctor, GOOD, "PMUs", NULL, "%s", list);
	else
		note(doctor, CARE, "PMUs", "mount -t sysfs sysfs /sys", "%s cannot be listed: %s", DEVICES,
		     devices ? "it is empty" : strerror(errno));
	if (devices)
		closedir(devices);
	if (doctor->refused) {
		note(doctor, CARE, "hardware counters", NULL, "not tried: perf_event_open is refused");
		return;
	}
	attr.type = PERFRING_TYPE_HARDWARE;
	fd = error = perfring_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0) {
		note(doctor, BAD, "hardware counters", mend_of(doctor, error, 2), "%s",
		     explain(error, &attr, 0, -1, text));
		attr = attr_of(PERFRING_COUNT_SW_DUMMY);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
	} else {
		note(doctor, GOOD, "hardware counters", NULL, "there: instructions opens");
	}
	if (fd >= 0 && perfring_ring_map(&ring, fd, 0, 0) == 0) {
		capabilities = PERFRING_LOAD(&ring.page->capabilities);
		perfring_ring_close(&ring);
		find_user_counting(doctor, capabilities, !error || error > 0);
	}
	if (fd >= 0)
		close(fd);
	find_breakpoints(doctor);
	if (*aux)
		note(doctor, GOOD, "AUX traces", NULL, "%s", aux);
	else
		note(doctor, CARE, "AUX traces", NULL,
		     "no PMU that traces into an AUX area (Intel PT, Arm SPE, CoreSight)");
}

/* ---- clocks ---- */

static void find_clocks(struct doctor *doctor)
{
	static const struct {
		int id;
		const char *name;
	} CLOCKS[] = {{CLOCK_MONOTONIC, "monotonic"},
		      {CLOCK_MONOTONIC_RAW, "monotonic_raw"},
		      {CLOCK_REALTIME, "realtime"},
		      {CLOCK_BOOTTIME, "boottime"},
		      {CLOCK_TAI, "tai"}};
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_SW_DUMMY);
	char good[128] = "", bad[128] = "";

	doctor->group = "clocks";
	attr.use_clockid = 1;
	for (size_t i = 0; i < sizeof(CLOCKS) / sizeof(CLOCKS[0]); i++) {
		attr.clockid = CLOCKS[i].id;
		if (try_event(&attr, 0, -1) == 0)
			append(good, sizeof(good), CLOCKS[i].name);
		else
			append(bad, sizeof(bad), CLOCKS[i].name);
	}
	if (*good)
		note(doctor, GOOD, "clockid", NULL, "%s", good);
	if (*bad)
		note(doctor, BAD, "clockid", "boot Linux 4.1 or newer", "refused: %s", bad);
}

/* ---- tracepoints and symbols ---- */

static void find_tracepoints(struct doctor *doctor)
{
	static const char *const PLACES[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	struct perf_event_attr attr = attr_of(0);
	const char *place = NULL;
	struct statfs about;
	int error = ENOENT;

	doctor->group = "tracepoints and symbols";
	for (int i = 0; i < 2 && !place; i++) {
		if (statfs(PLACES[i], &about) == 0 && (unsigned long)about.f_type == TRACEFS)
			place = PLACES[i];
		else if (errno == EACCES)
			error = EACCES;
	}
	if (!place) {
		note(doctor, BAD, "tracefs",
		     error == EACCES ? "mount -o remount,mode=755 /sys/kernel/debug"
				     : "mount -t tracefs tracefs /sys/kernel/tracing",
		     error == EACCES ? "this user may not search the places where it could be mounted" : "not mounted");
		return;
	}
	error = perfring_event_parse("sched:sched_switch", &attr, NULL);
	if (error == -EACCES || error == -EPERM) {
		note(doctor, BAD, "tracefs", "mount -o remount,mode=755 /sys/kernel/tracing",
		     "mounted at %s, but this user may not read it: tracepoints have no names", place);
		return;
	}
	note(doctor, GOOD, "tracefs", NULL, "mounted at %s, readable", place);
	if (error || doctor->refused)
		return;
	attr.sample_period = 1;
	attr.sample_type = PERFRING_SAMPLE_RAW;
	attr.exclude_kernel = 0;
	try_and_tell(doctor, "tracepoints", &attr, 0, -1, -1, "can be sampled with their data");
}

static void find_symbols(struct doctor *doctor)
{
	long long restricted = -1;
	char line[128];
	bool known = read_number("/proc/sys/kernel/kptr_restrict", &restricted);

	if (!read_line("/proc/kallsyms", line, sizeof(line)))
		note(doctor, CARE, "kernel symbols", "mount -t proc proc /proc", "/proc/kallsyms cannot be read");
	else if (strspn(line, "0") >= 8)
		note(doctor, BAD, "kernel symbols",
		     known && restricted == 0 ? "sysctl kernel.perf_event_paranoid=1" : "sysctl kernel.kptr_restrict=0",
		     "/proc/kallsyms shows this user no addresses (kernel.kptr_restrict is %lld): kernel code has no "
		     "names",
		     restricted);
	else
		note(doctor, GOOD, "kernel symbols", NULL,
		     "/proc/kallsyms shows addresses (kernel.kptr_restrict is %lld)", restricted);
}

/* ---- limits of sampling ---- */

static void find_limits(struct doctor *doctor)
{
	long long number;

	doctor->group = "limits of sampling";
	if (!read_number("/proc/sys/kernel/perf_event_max_sample_rate", &number)) {
		note(doctor, CARE, "limits", "mount -t proc proc /proc", "/proc/sys/kernel cannot be read");
		return;
	}
	note(doctor, number < USUAL_RATE ? BAD : GOOD, "sample rate",
	     number < USUAL_RATE ? "sysctl kernel.perf_event_max_sample_rate=100000" : NULL,
	     "at most %lld samples a second for each CPU%s", number,
	     number < 100000 ? " (the kernel lowers it when sampling took too long)" : "");
	if (read_number("/proc/sys/kernel/perf_cpu_time_max_percent", &number))
		note(doctor, GOOD, "CPU time", NULL,
		     number == 0 || number == 100
			     ? "sampling may take all of it (kernel.perf_cpu_time_max_percent is %lld)"
			     : "sampling may take %lld %% of it before its rate is lowered",
		     number);
	if (read_number("/proc/sys/kernel/perf_event_max_stack", &number))
		note(doctor, number < 64 ? CARE : GOOD, "callchains",
		     number < 64 ? "sysctl kernel.perf_event_max_stack=127" : NULL, "at most %lld entries deep",
		     number);
}

/* ---- without the kernel ---- */

static void find_own(struct doctor *doctor)
{
	struct perfring_ring_options options = {.pages = 1};
	long barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	struct perfring_cpus *cpus;
	char path[PATH_MAX];
	int error;

	doctor->group = "rings of perfring's own";
	error = perfring_cpus_open(&cpus, &options, NULL);
	if (error) {
		note(doctor, BAD, "rings",
		     error == -EMFILE ? "ulimit -n 1024" : "a seccomp profile that allows memfd_create",
		     "one for each CPU cannot be made: %s", strerror(-error));
	} else {
		if (perfring_cpus_way(cpus) == PERFRING_CPUS_RSEQ)
			note(doctor, GOOD, "rseq", NULL,
			     "writers of a CPU's ring reserve space by restartable sequences");
		else
			note(doctor, CARE, "rseq", NULL,
			     "not registered by the C library (x86-64 and glibc 2.35 have it): writers of CPU rings use "
			     "locked instructions");
		perfring_cpus_close(cpus);
	}
	if (barriers > 0 && barriers & MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		note(doctor, GOOD, "membarrier", NULL, "private expedited%s",
		     barriers & MEMBARRIER_CMD_GLOBAL ? ", and global for rings of several processes" : "");
	else
		note(doctor, BAD, "membarrier", "a seccomp profile that allows membarrier, Linux 4.14 or newer",
		     "refused (%s): idle chunks of shared rings are not flushed, writers of CPU rings use locked instructions",
		     barriers < 0 ? strerror(errno) : "no expedited one");
	if (tool_peers_find(path))
		note(doctor, GOOD, "record --soft", NULL, "samples programs from inside, without perf_event_open: %s",
		     path);
	else
		note(doctor, BAD, "record --soft", "apt-get install liburcu-dev, and build perfring again",
		     "no " SOFT_OBJECT " beside this command");
}

/* ---- attr features ---- */

/* What is newer than Linux 3.12, by the bits that ask for it: flags as 1 + their number. */
static const struct feature {
	const char *kind, *name, *since;
	unsigned flag, with;
	uint64_t sample_type, read_format;
} FEATURES[] = {
#define FLAG(name, since) \
	{ \
		"flags", #name, since, 1 + PERFRING_ATTR_FLAG_##name, 0, 0, 0 \
	}
#define FLAG_WITH(name, other, since) \
	{ \
		"flags", #name, since, 1 + PERFRING_ATTR_FLAG_##name, 1 + PERFRING_ATTR_FLAG_##other, 0, 0 \
	}
#define SAMPLE(name, since) \
	{ \
		"sample_type", #name, since, 0, 0, PERFRING_SAMPLE_##name, 0 \
	}
	FLAG(mmap2, "3.16"),
	FLAG(comm_exec, "3.16"),
	FLAG(use_clockid, "4.1"),
	FLAG(context_switch, "4.3"),
	FLAG(write_backward, "4.7"),
	FLAG(namespaces, "4.12"),
	FLAG(ksymbol, "5.1"),
	FLAG(bpf_event, "5.1"),
	FLAG(aux_output, "5.4"),
	FLAG(cgroup, "5.7"),
	FLAG(text_poke, "5.8"),
	FLAG(build_id, "5.12"),
	FLAG_WITH(inherit_thread, inherit, "5.13"),
	FLAG(remove_on_exec, "5.13"),
	FLAG_WITH(sigtrap, remove_on_exec, "5.13"),
	FLAG(defer_callchain, "6.19"),
	FLAG(defer_output, "6.19"),
	SAMPLE(IDENTIFIER, "3.12"),
	SAMPLE(TRANSACTION, "3.13"),
	SAMPLE(REGS_INTR, "3.19"),
	SAMPLE(PHYS_ADDR, "4.14"),
	SAMPLE(AUX, "5.5"),
	SAMPLE(CGROUP, "5.7"),
	SAMPLE(DATA_PAGE_SIZE, "5.11"),
	SAMPLE(CODE_PAGE_SIZE, "5.11"),
	SAMPLE(WEIGHT_STRUCT, "5.12"),
	{"sample_type", "READ+inherit", "6.13", 1 + PERFRING_ATTR_FLAG_inherit, 0,
	 PERFRING_SAMPLE_READ | PERFRING_SAMPLE_TID, 0},
	{"read_format", "LOST", "6.0", 0, 0, 0, PERFRING_FORMAT_LOST},
#undef FLAG
#undef FLAG_WITH
#undef SAMPLE
};

/* A bit that is refused for lack of permission or of a PMU is known to the kernel: it refuses unknown bits first, by EINVAL
 * or E2BIG. */
static bool is_known(const struct feature *feature)
{
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_SW_DUMMY);
	int error;

	if (feature->flag)
		perfring_attr_set_flag(&attr, feature->flag - 1, true);
	if (feature->with)
		perfring_attr_set_flag(&attr, feature->with - 1, true);
	if (feature->flag == 1 + PERFRING_ATTR_FLAG_use_clockid)
		attr.clockid = CLOCK_MONOTONIC;
	attr.sample_type = feature->sample_type;
	if (feature->sample_type & PERFRING_SAMPLE_REGS_INTR)
		attr.sample_regs_intr = 1;
	attr.read_format = feature->read_format;
	error = try_event(&attr, 0, -1);
	return error != -EINVAL && error != -E2BIG;
}

static void find_controls(struct doctor *doctor)
{
	struct perf_event_attr attr = attr_of(PERFRING_COUNT_SW_DUMMY);
	/* Each with an argument that changes nothing: what the kernel does not know is ENOTTY. */
	uint32_t query[2] = {0, 0};
	uint64_t id;
	const struct {
		const char *name, *mend;
		unsigned long number, argument;
	} CONTROLS[] = {
		{"ID", "boot Linux 3.12 or newer", PERF_EVENT_IOC_ID, (unsigned long)(uintptr_t)&id},
		{"SET_BPF", "boot Linux 4.1 or newer", PERF_EVENT_IOC_SET_BPF, (unsigned long)-1},
		{"PAUSE_OUTPUT", "boot Linux 4.7 or newer", PERF_EVENT_IOC_PAUSE_OUTPUT, 0},
		{"QUERY_BPF", "boot Linux 4.16 or newer", PERF_EVENT_IOC_QUERY_BPF, (unsigned long)(uintptr_t)query},
		{"MODIFY_ATTRIBUTES", "boot Linux 4.17 or newer", PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
		 (unsigned long)(uintptr_t)&attr},
	};
	int fd = perfring_event_open(&attr, 0, -1, -1, 0);
	char list[TEXT] = "";

	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(CONTROLS) / sizeof(CONTROLS[0]); i++)
		if (ioctl(fd, CONTROLS[i].number, CONTROLS[i].argument) == 0 || errno != ENOTTY)
			append(list, sizeof(list), CONTROLS[i].name);
		else
			note(doctor, BAD, "ioctl", CONTROLS[i].mend, "not known: %s", CONTROLS[i].name);
	close(fd);
	note(doctor, GOOD, "ioctl", NULL, "%s", list);
}

static void find_features(struct doctor *doctor)
{
	const size_t nr = sizeof(FEATURES) / sizeof(FEATURES[0]);
	char list[TEXT], mend[64];

	doctor->group = "what the kernel knows";
	if (doctor->refused) {
		note(doctor, CARE, "attr", NULL, "not tried: perf_event_open is refused");
		return;
	}
	for (size_t i = 0, next; i < nr; i = next) {
		*list = 0;
		for (next = i; next < nr && strcmp(FEATURES[next].kind, FEATURES[i].kind) == 0; next++)
			if (is_known(&FEATURES[next]))
				append(list, sizeof(list), FEATURES[next].name);
		if (*list)
			note(doctor, GOOD, FEATURES[i].kind, NULL, "%s", list);
		for (size_t j = i; j < next; j++)
			if (!is_known(&FEATURES[j])) {
				snprintf(mend, sizeof(mend), "boot Linux %s or newer", FEATURES[j].since);
				note(doctor, BAD, FEATURES[j].kind, mend, "not known: %s", FEATURES[j].name);
			}
	}
	find_controls(doctor);
}

/* ---- output ---- */

static const char *const MARKS[] = {"ok", "no", "!"};

static void tell(const struct doctor *doctor, bool can_record)
{
	static const char *const COLOURS[] = {TOOL_TERMINAL_GREEN, TOOL_TERMINAL_RED, TOOL_TERMINAL_YELLOW};
	bool is_coloured = tool_terminal_has_colours();
	const char *group = NULL;

	for (size_t i = 0; i < doctor->count; i++) {
		const struct finding *one = &doctor->found[i];

		if (one->group != group)
			printf("%s%s\n", i ? "\n" : "", one->group);
		group = one->group;
		printf("  %s%-2s%s  ", is_coloured ? COLOURS[one->mark] : "", MARKS[one->mark],
		       is_coloured ? TOOL_TERMINAL_PLAIN : "");
		printf("%-*s ", WIDTH, one->name);
		tool_print(stdout, one->text, 0, false);
		if (one->mend) {
			fputs(" -> ", stdout);
			tool_print(stdout, one->mend, 0, false);
		}
		putchar('\n');
	}
	printf("\nKernel events of your own programs can%s be recorded.\n", can_record ? "" : "not");
}

static void tell_json(const struct doctor *doctor, bool can_record)
{
	printf("{\"version\":\"%s\",\"can_record\":%s,\"findings\":[", perfring_version(),
	       can_record ? "true" : "false");
	for (size_t i = 0; i < doctor->count; i++) {
		const struct finding *one = &doctor->found[i];

		printf("%s\n{\"group\":", i ? "," : "");
		tool_json_text(stdout, one->group);
		printf(",\"name\":");
		tool_json_text(stdout, one->name);
		printf(",\"mark\":\"%s\",\"text\":", MARKS[one->mark]);
		tool_json_text(stdout, one->text);
		printf(",\"mend\":");
		if (one->mend)
			tool_json_text(stdout, one->mend);
		else
			printf("null");
		putchar('}');
	}
	printf("\n]}\n");
}

enum {
	JSON = TOOL_OPTION_LONG,
};

static int doctor_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_doctor};
	struct doctor doctor = {.paranoid = NO_PARANOID};
	bool json = false, can_record;
	long long number;
	uint32_t size;
	long online;
	int found;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case JSON:
			json = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (optind < argc) {
		tool_complain("doctor: unexpected argument '%s' (perfring doctor --help)", argv[optind]);
		return TOOL_MISUSED;
	}
	online = sysconf(_SC_NPROCESSORS_ONLN);
	doctor.cpus = online > 0 ? (uint32_t)online : 1;
	if (read_number("/proc/sys/kernel/perf_event_paranoid", &number))
		doctor.paranoid = (int)number;
	doctor.capabilities = effective_capabilities();
	doctor.is_filtered = perfring_event_filtered() != 0;
	size = known_size();
	find_kernel(&doctor);
	find_opening(&doctor, size);
	find_capabilities(&doctor);
	find_memory(&doctor);
	find_files(&doctor);
	find_pmus(&doctor);
	if (!doctor.refused)
		find_clocks(&doctor);
	find_tracepoints(&doctor);
	find_symbols(&doctor);
	find_limits(&doctor);
	find_own(&doctor);
	find_features(&doctor);
	can_record = !doctor.refused && doctor.is_mapped;
	(json ? tell_json : tell)(&doctor, can_record);
	for (size_t i = 0; i < doctor.count; i++) {
		free(doctor.found[i].text);
		free(doctor.found[i].mend);
	}
	free(doctor.found);
	return tool_flush() && can_record ? TOOL_DONE : TOOL_FAILED;
}

static const struct tool_option ROWS[] = {
	{JSON, "json", .help = "one object: can_record, and findings of group, name, mark, text, mend"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"All findings:", "perfring doctor"},
	{"In a script, what to do without the kernel:",
	 "perfring doctor >/dev/null || echo 'recording will be by --soft'"},
	{0},
};

const struct tool_command tool_doctor = {
	.name = "doctor",
	.summary = "what this machine, kernel, container and user allow",
	.usage = "[--json]",
	.description =
		"Shows what this machine, kernel, container and user allow, tried and not guessed from a version: one "
		"finding a line, with `ok`, `no`, or `!` for what may be intended.  After -> stands what changes it.  "
		"Nothing is changed.",
	.options = ROWS,
	.exit_status = "0 kernel events of your own programs can be recorded; 1 they cannot; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-list perfring",
	.run = doctor_command,
};
