/* fallback_test.c - events that open with something given up: the ladder against kernels that are not here, and on this
 * one; and the sentences for each kind of refusal. */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/ring.h>

TestSuite(fallback, .timeout = 60);

/* ---- a kernel of our own: the test's syscall() comes before the C library's ---- */

static struct kernel {
	bool on;
	uint32_t size;         /* of its attr */
	uint32_t flags;        /* how many it knows */
	uint32_t sample_types; /* how many bits */
	uint32_t read_formats;
	uint32_t precise; /* its PMU's most */
	bool no_pmu;
	bool no_branches;
	bool no_clocks;
	bool no_exclusion; /* its PMU counts all */
	bool not_the_kernel; /* what it permits */
	int error;           /* says this to all */
	int calls;
	union {
		struct perf_event_attr attr;
		unsigned char bytes[4096];
	} last;
} kernel;

static uint64_t flags_of(const unsigned char *attr)
{
	uint64_t flags;

	memcpy(&flags, attr + 40, sizeof(flags));
	return flags;
}

/* In the order of the real one. */
static int answer(void *sent)
{
	struct perf_event_attr *attr = sent;
	uint32_t size = attr->size ? attr->size : 64;
	unsigned char *bytes = sent;

	kernel.calls++;
	if (kernel.error)
		return kernel.error;
	for (uint32_t i = kernel.size; size >= 64 && i < size; i++)
		if (bytes[i])
			size = 0;
	if (size < 64) {
		attr->size = kernel.size;
		return E2BIG;
	}
	memset(&kernel.last, 0, sizeof(kernel.last));
	memcpy(&kernel.last, attr, size);
	attr = &kernel.last.attr;
	if (flags_of(kernel.last.bytes) >> kernel.flags || attr->sample_type >> kernel.sample_types ||
	    attr->read_format >> kernel.read_formats)
		return EINVAL;
	if (!attr->exclude_kernel && kernel.not_the_kernel)
		return EACCES;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && kernel.not_the_kernel &&
	    (!attr->exclude_hv || attr->branch_sample_type & 6))
		return EACCES;
	if (kernel.no_pmu && (attr->type == 0 || attr->type == 3 || attr->type == 4))
		return ENOENT;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && (kernel.no_branches || attr->type == 1))
		return EOPNOTSUPP;
	if (attr->type != 1 && attr->precise_ip > kernel.precise)
		return EOPNOTSUPP;
	if (attr->use_clockid && kernel.no_clocks)
		return EINVAL;
	if (kernel.no_exclusion && (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv ||
				    attr->exclude_idle || attr->exclude_host || attr->exclude_guest))
		return EINVAL;
	return 0;
}

long syscall(long number, ...)
{
	long (*real)(long, ...);
	long a[6];
	va_list list;
	int error;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = number == SYS_perf_event_open && i == 5 ? 0 : va_arg(list, long);
	va_end(list);
	if (number != SYS_perf_event_open || !kernel.on) {
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
		return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	error = answer((void *)a[0]);
	if (!error)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	errno = error;
	return -1;
}

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.on = true;
	kernel.size = 136;
	kernel.flags = 38;
	kernel.sample_types = 25;
	kernel.read_formats = 5;
	kernel.precise = 3;
}

static struct perf_event_attr cycles(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = PERF_ATTR_SIZE_VER5};

	attr.sample_period = 100000;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	return attr;
}

static int lowest_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static char told[4096];

static const char *tell(uint64_t taken, const struct perf_event_attr *asked, const struct perf_event_attr *opened)
{
	int64_t length = perfring_fallback_explain(taken, asked, opened, told, sizeof(told));

	cr_assert_eq((int64_t)strlen(told), length);
	for (size_t size = 0; size < 20; size++) {
		char buffer[32];

		memset(buffer, 'z', sizeof(buffer));
		cr_assert_eq(perfring_fallback_explain(taken, asked, opened, buffer, size), length);
		cr_assert_eq(buffer[size], 'z');
	}
	cr_assert(taken == 0 || told[length - 1] == '.');
	return told;
}

static int try_it(struct perf_event_attr *attr, uint64_t allowed, uint64_t *taken)
{
	return perfring_event_open_fallback(attr, 0, -1, -1, 0, allowed, taken);
}

Test(fallback, nothing_to_give_up)
{
	struct perf_event_attr attr = cycles(), asked = attr;
	uint64_t taken = 99;
	int fd;

	begin();
	attr.precise_ip = asked.precise_ip = 3;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(taken, 0);
	cr_assert_eq(memcmp(&attr, &asked, sizeof(attr)), 0);
	cr_assert_eq(kernel.calls, 1);
	cr_assert_str_eq(tell(taken, &asked, &attr), "");
	close(fd);
}

/* What Linux 5.10 does not know is left out, and nothing that it knows. */
Test(fallback, an_older_kernel)
{
	struct perf_event_attr attr = cycles(), asked;
	uint64_t taken;
	int fd;

	begin();
	kernel.size = 120;
	kernel.flags = 34;
	kernel.sample_types = 24;
	kernel.read_formats = 4;
	attr.inherit = 1;
	attr.mmap2 = 1;
	attr.ksymbol = 1;
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_cgroup, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_text_poke, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_build_id, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_inherit_thread, true);
	attr.sample_type |= PERFRING_SAMPLE_WEIGHT_STRUCT | PERFRING_SAMPLE_CGROUP;
	attr.read_format = PERFRING_FORMAT_LOST | PERFRING_FORMAT_ID;
	asked = attr;
	cr_assert_eq(try_it(&attr, PERFRING_FALLBACK_ALL & ~PERFRING_FALLBACK_NEWER, &taken), -EINVAL);
	cr_assert_eq(memcmp(&attr, &asked, sizeof(attr)), 0);
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(taken, PERFRING_FALLBACK_NEWER);
	cr_assert_eq(attr.size, asked.size);
	cr_assert_eq(attr.read_format, PERFRING_FORMAT_ID);
	cr_assert_eq(attr.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERFRING_SAMPLE_CGROUP);
	cr_assert_eq(flags_of((unsigned char *)&attr),
		     1 << 1 | 1 << 23 | 1 << 29 | UINT64_C(1) << 32 | UINT64_C(1) << 33);
	cr_assert_eq(memcmp(&kernel.last.attr.sample_type, &attr.sample_type, 24), 0, "as it was opened");
	tell(taken, &asked, &attr);
	cr_assert_not_null(strstr(told, "build_id"));
	cr_assert_not_null(strstr(told, "inherit_thread"));
	cr_assert_not_null(strstr(told, "WEIGHT_STRUCT"));
	cr_assert_not_null(strstr(told, "FORMAT_LOST"));
	cr_assert_null(strstr(told, "text_poke"));
	cr_assert_null(strstr(told, "CGROUP"));
	close(fd);
}

/* What an event is, and what it does, is never given up. */
Test(fallback, what_cannot_be_left_out)
{
	union {
		struct perf_event_attr attr;
		unsigned char bytes[144];
	} wide;
	struct perf_event_attr attr = cycles();
	uint64_t taken;

	begin();
	kernel.size = 120;
	kernel.flags = 34;
	memset(&wide, 0, sizeof(wide));
	wide.attr = attr;
	wide.attr.size = 136;
	wide.bytes[128] = 1;
	cr_assert_eq(try_it(&wide.attr, PERFRING_FALLBACK_ALL, &taken), -E2BIG, "config3");
	cr_assert_eq(wide.bytes[128], 1);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_remove_on_exec, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_sigtrap, true);
	cr_assert_eq(try_it(&attr, PERFRING_FALLBACK_ALL, &taken), -EINVAL);
	cr_assert_eq(taken, 0);
}

Test(fallback, precise_by_one)
{
	for (uint32_t most = 0; most < 4; most++) {
		struct perf_event_attr attr = cycles(), asked;
		uint64_t taken;
		int fd;

		begin();
		kernel.precise = most;
		attr.precise_ip = 3;
		asked = attr;
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		cr_assert_geq(fd, 0);
		cr_assert_eq(attr.precise_ip, most);
		cr_assert_eq(taken, most == 3 ? 0 : PERFRING_FALLBACK_PRECISE);
		cr_assert(most == 3 || strstr(tell(taken, &asked, &attr), "precise_ip 3"));
		close(fd);
	}
}

/* No branch stacks is the same errno as too precise: that which was not in the way is given back. */
Test(fallback, no_more_than_must_be)
{
	struct perf_event_attr attr = cycles(), asked;
	uint64_t taken;
	int fd, before = lowest_fd();

	begin();
	kernel.no_branches = true;
	kernel.precise = 2;
	attr.precise_ip = 2;
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	asked = attr;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, before);
	cr_assert_eq(taken, PERFRING_FALLBACK_BRANCH_STACK);
	cr_assert_eq(attr.precise_ip, 2);
	cr_assert_eq(attr.branch_sample_type, 0);
	cr_assert_not_null(strstr(tell(taken, &asked, &attr), "branch stacks"));
	/* The counter is the last that goes: nothing else was wrong. */
	close(fd);
	attr = asked;
	kernel.precise = 1;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(taken, PERFRING_FALLBACK_BRANCH_STACK | PERFRING_FALLBACK_PRECISE);
	cr_assert_eq(attr.type, PERF_TYPE_HARDWARE);
	cr_assert_eq(attr.precise_ip, 1);
	close(fd);
	cr_assert_eq(lowest_fd(), before);
}

Test(fallback, all_at_once)
{
	struct perf_event_attr attr = cycles(), asked;
	uint64_t taken;
	int fd, before = lowest_fd();

	begin();
	kernel.read_formats = 4;
	kernel.no_pmu = true;
	kernel.no_clocks = true;
	kernel.not_the_kernel = true;
	attr.read_format = PERFRING_FORMAT_LOST;
	attr.use_clockid = 1;
	attr.clockid = 1;
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	attr.precise_ip = 1;
	asked = attr;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, before);
	cr_assert_eq(taken, PERFRING_FALLBACK_NEWER | PERFRING_FALLBACK_CLOCKID | PERFRING_FALLBACK_BRANCH_STACK |
				    PERFRING_FALLBACK_EXCLUDE_KERNEL | PERFRING_FALLBACK_CPU_CLOCK);
	cr_assert_eq(attr.type, PERF_TYPE_SOFTWARE);
	cr_assert_eq(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	cr_assert_eq(attr.sample_period, 1000000);
	cr_assert_eq(attr.exclude_kernel, 1);
	cr_assert_eq(attr.use_clockid, 0);
	cr_assert_eq(attr.read_format, 0);
	cr_assert_eq(attr.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	tell(taken, &asked, &attr);
	for (int i = 0; i < 5; i++) {
		static const char *const WORDS[] = {
			"FORMAT_LOST", "clock 1", "branch stacks",
			"user space only (the kernel needs CAP_PERFMON or perf_event_paranoid <= 1)",
			"no such hardware counter here: cpu-clock instead, a sample each ms"};

		cr_assert_not_null(strstr(told, WORDS[i]), "%s: %s", WORDS[i], told);
	}
	close(fd);
	/* Each of them can be refused: then what it stands for is the last obstacle, and the attr the one that meets it. */
	for (size_t i = 0; i < 5; i++) {
		static const struct {
			uint64_t bit;
			int error;
		} LAST[] = {
			{PERFRING_FALLBACK_NEWER, EINVAL},
			{PERFRING_FALLBACK_CLOCKID, EINVAL},
			{PERFRING_FALLBACK_BRANCH_STACK, EOPNOTSUPP},
			{PERFRING_FALLBACK_EXCLUDE_KERNEL, EACCES},
			{PERFRING_FALLBACK_CPU_CLOCK, ENOENT},
		};

		attr = asked;
		fd = try_it(&attr, PERFRING_FALLBACK_ALL & ~LAST[i].bit, &taken);
		cr_assert_eq(fd, -LAST[i].error, "%d: %d", (int)LAST[i].bit, fd);
		cr_assert_eq(taken & LAST[i].bit, 0);
		cr_assert_eq(perfring_event_open(&attr, 0, -1, -1, 0), fd, "%d", (int)LAST[i].bit);
		cr_assert_eq(!!(taken & PERFRING_FALLBACK_EXCLUDE_KERNEL), attr.exclude_kernel);
		cr_assert_eq(!!(taken & PERFRING_FALLBACK_CPU_CLOCK), attr.type == PERF_TYPE_SOFTWARE);
		cr_assert_eq(lowest_fd(), before);
	}
}

/* Without user space, and without the kernel, nothing is left to observe. */
Test(fallback, only_of_the_kernel)
{
	for (unsigned i = 0; i < 8; i++) {
		struct perf_event_attr attr = cycles(), asked;
		uint64_t taken = 99;
		int fd;

		begin();
		kernel.not_the_kernel = true;
		attr.exclude_user = 1;
		attr.exclude_hv = i & 1;
		attr.exclude_guest = !!(i & 2);
		attr.sample_type |= i & 4 ? PERF_SAMPLE_BRANCH_STACK : 0;
		attr.branch_sample_type = i & 4 ? PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL : 0;
		asked = attr;
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		cr_assert_eq(fd, -EACCES, "%u: %d", i, fd);
		cr_assert_eq(taken, 0);
		cr_assert_eq(memcmp(&attr, &asked, sizeof(attr)), 0);
		/* Both sides left out by the caller: there is nothing to give up, either. */
		attr.exclude_kernel = 1;
		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL;
		cr_assert_eq(try_it(&attr, PERFRING_FALLBACK_ALL, &taken), -EACCES);
		cr_assert_eq(taken, 0);
	}
}

/* As PMUs without exclusion: an event that leaves out guests counts them too, one of guests alone is refused. */
Test(fallback, guests_that_cannot_be_left_out)
{
	for (int i = 0; i < 8; i++) {
		struct perf_event_attr attr = cycles(), asked;
		char text[256];
		uint64_t taken = 99;
		int fd;

		begin();
		kernel.no_exclusion = true;
		attr.exclude_guest = (unsigned)i & 1;
		attr.exclude_host = (unsigned)i >> 1 & 1;
		attr.exclude_user = (unsigned)i >> 2 & 1;
		asked = attr;
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		cr_assert(i > 1 ? fd == -EINVAL : fd >= 0, "%d: %d", i, fd);
		if (i > 1)
			continue;
		close(fd);
		cr_assert_eq(taken, i ? PERFRING_FALLBACK_GUESTS : 0);
		cr_assert_eq(attr.exclude_guest, 0);
		perfring_fallback_explain(taken, &asked, &attr, text, sizeof(text));
		cr_assert_str_eq(text, i ? "cycles: its PMU cannot leave guests out: what they do is counted too." : "");
		cr_assert_eq(try_it(&asked, PERFRING_FALLBACK_ALL & ~PERFRING_FALLBACK_GUESTS, &taken) < 0, i > 0);
	}
}

/* A clock counts the time whatever its attr excludes. */
Test(fallback, no_clock_for_guests_or_a_hypervisor)
{
	for (int i = 0; i < 4; i++) {
		struct perf_event_attr attr = cycles(), asked;
		uint64_t taken = 99;
		int fd;

		begin();
		kernel.no_pmu = true;
		attr.exclude_host = (unsigned)i & 1;
		attr.exclude_user = attr.exclude_kernel = (unsigned)i >> 1 & 1;
		asked = attr;
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		cr_assert(i ? fd == -ENOENT : fd >= 0, "%d: %d", i, fd);
		cr_assert_eq(taken, i ? 0 : PERFRING_FALLBACK_CPU_CLOCK);
		cr_assert(!i || !memcmp(&attr, &asked, sizeof(attr)));
		if (fd >= 0)
			close(fd);
	}
}

/* The branches of the kernel are the kernel, those of a hypervisor too. */
Test(fallback, branches_of_user_space)
{
	static const uint64_t MASKS[] = {8, 8 | 1, 8 | 2, 8 | 7, 8 | 4};

	for (size_t i = 0; i < sizeof(MASKS) / sizeof(*MASKS); i++) {
		struct perf_event_attr attr = cycles();
		uint64_t taken;
		int fd;

		begin();
		kernel.not_the_kernel = true;
		attr.exclude_kernel = 1;
		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = MASKS[i];
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		cr_assert_geq(fd, 0);
		cr_assert_eq(taken, PERFRING_FALLBACK_EXCLUDE_KERNEL);
		cr_assert_eq(attr.exclude_hv, 1);
		cr_assert_eq(attr.branch_sample_type, 8 | (MASKS[i] & 1));
		close(fd);
	}
}

/* A frequency is one of the clock's, too. */
Test(fallback, a_frequency_stays)
{
	struct perf_event_attr attr = cycles();
	uint64_t taken;
	int fd;

	begin();
	kernel.no_pmu = true;
	attr.freq = 1;
	attr.sample_freq = 99;
	fd = try_it(&attr, PERFRING_FALLBACK_CPU_CLOCK, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(attr.freq, 1);
	cr_assert_eq(attr.sample_freq, 99);
	close(fd);
	attr = cycles();
	attr.sample_period = 0;
	fd = try_it(&attr, PERFRING_FALLBACK_CPU_CLOCK, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(attr.sample_period, 0, "it counts");
	close(fd);
}

/* What no step answers is said at once. */
Test(fallback, other_refusals)
{
	static const int ERRORS[] = {ESRCH, EMFILE, ENFILE, EBUSY, ENOSPC, ENOMEM, EBADF, ENOSYS, EINTR};

	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(*ERRORS); i++) {
		struct perf_event_attr attr = cycles();
		uint64_t taken;

		begin();
		kernel.error = ERRORS[i];
		cr_assert_eq(try_it(&attr, PERFRING_FALLBACK_ALL, &taken), -ERRORS[i]);
		cr_assert_leq(kernel.calls, 2);
	}
}

/* ---- on this kernel ---- */

/* A hardware event that this machine does not have, precisely. */
Test(fallback, no_counter_here)
{
	struct perf_event_attr attr = cycles(), asked;
	uint64_t taken, count = 0;
	int fd = 0;

	attr.exclude_kernel = attr.exclude_hv = 1;
	for (uint64_t config = 0; config < 10 && fd != -ENOENT; config++) {
		attr.config = config;
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd >= 0)
			close(fd);
	}
	if (fd != -ENOENT)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: a hardware event that is missing here",
			     strerror(fd < 0 ? -fd : 0));
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	attr.precise_ip = 3;
	asked = attr;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_assert_eq(taken, PERFRING_FALLBACK_CPU_CLOCK | PERFRING_FALLBACK_BRANCH_STACK, "%d", (int)taken);
	cr_assert_not_null(strstr(tell(taken, &asked, &attr), "no such hardware counter here"), "%s", told);
	for (volatile int i = 0; i < 100000;)
		i++;
	cr_assert_eq(read(fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	cr_assert_gt(count, 0);
	close(fd);
}

/* What is refused one by one is what is given up of all of it together. */
Test(fallback, the_counters_that_are_here)
{
	struct perf_event_attr attr = cycles(), one, asked;
	uint64_t taken, expected = 0;
	int fd;

	attr.exclude_kernel = attr.exclude_hv = 1;
	fd = perfring_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: this machine does not count cycles", strerror(-fd));
	close(fd);
	for (int i = 0; i < 3; i++) {
		one = attr;
		one.precise_ip = i == 0 ? 3 : 0;
		one.use_clockid = i == 1;
		one.sample_type |= i == 2 ? PERF_SAMPLE_BRANCH_STACK : 0;
		one.branch_sample_type = i == 2 ? PERF_SAMPLE_BRANCH_ANY : 0;
		fd = perfring_event_open(&one, 0, -1, -1, 0);
		expected |= fd >= 0  ? 0
			    : i == 0 ? PERFRING_FALLBACK_PRECISE
			    : i == 1 ? PERFRING_FALLBACK_CLOCKID
				     : PERFRING_FALLBACK_BRANCH_STACK;
		if (fd >= 0)
			close(fd);
	}
	attr.precise_ip = 3;
	attr.use_clockid = 1;
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	asked = attr;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0);
	cr_assert_eq(taken, expected, "%d instead of %d: %s", (int)taken, (int)expected, tell(taken, &asked, &attr));
	cr_assert_eq(attr.type, PERF_TYPE_HARDWARE);
	close(fd);
}

/* A breakpoint has no wall clock. */
Test(fallback, no_clock_here)
{
	struct perf_event_attr attr = cycles();
	uint64_t taken;
	int fd;

	attr.type = PERF_TYPE_BREAKPOINT;
	attr.bp_type = 2;
	attr.bp_len = 4;
	attr.bp_addr = (uintptr_t)&kernel.calls;
	attr.exclude_kernel = 1;
	fd = perfring_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: a breakpoint", strerror(-fd));
	close(fd);
	attr.use_clockid = 1;
	fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_assert_eq(taken, PERFRING_FALLBACK_CLOCKID);
	cr_assert_eq(attr.use_clockid, 0);
	close(fd);
}

static int status_of(pid_t child)
{
	int status = -1;

	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static uint64_t paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int value = -2;

	if (file && fscanf(file, "%d", &value) != 1)
		value = -2;
	if (file)
		fclose(file);
	return (uint64_t)(int64_t)value;
}

static struct perf_event_attr faults(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER5};

	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	return attr;
}

Test(fallback, nobody_sees_user_space)
{
	pid_t child;

	if (paranoid() != 2)
		cr_skip_test("SKIP-ENV: kernel.perf_event_paranoid is %d: 2 is wanted", (int)paranoid());
	child = fork();
	if (child == 0) {
		struct perf_event_attr attr = faults();
		uint64_t taken = 0;
		int fd;

		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(200);
		fd = try_it(&attr, PERFRING_FALLBACK_ALL & ~PERFRING_FALLBACK_EXCLUDE_KERNEL, &taken);
		if (fd != -EACCES || taken)
			_exit(1);
		fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		_exit(fd < 0 ? 2 : taken != PERFRING_FALLBACK_EXCLUDE_KERNEL ? 3 : !attr.exclude_kernel);
	}
	cr_assert_eq(status_of(child), 0);
}

/* ---- sentences ---- */

static char *shared_text(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void expect_words(const char *text, const char *const words[])
{
	for (; *words; words++)
		cr_assert_not_null(strstr(text, *words), "'%s' lacks '%s'", text, *words);
}

/* For a user who may not see the kernel, the first obstacle is the kernel; what is explained is the one behind it. */
Test(fallback, the_last_obstacle_is_told)
{
	static const struct {
		uint64_t allowed;
		bool of_kernel;
		bool of_another;
		int error;
		const char *word;
	} CASES[] = {
		{PERFRING_FALLBACK_ALL, false, true, EACCES, "is another user's"},
		{PERFRING_FALLBACK_EXCLUDE_KERNEL, false, false, ENOENT, "no PMU"},
		{0, false, true, EACCES, "page-faults:u, of user space alone"},
		{PERFRING_FALLBACK_ALL, true, false, EACCES, "this event leaves out user space"},
	};
	char *text = shared_text();

	if (geteuid() || paranoid() != 2)
		cr_skip_test("SKIP-ENV: setuid: run as root, with kernel.perf_event_paranoid 2");
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct perf_event_attr attr = faults();
			uint64_t taken = 0;
			int fd;

			if (!CASES[i].of_another)
				attr.type = 0x7ffffffe;
			attr.exclude_user = CASES[i].of_kernel;
			if (setgid(65534) || setuid(65534))
				_exit(200);
			fd = perfring_event_open_fallback(&attr, CASES[i].of_another ? getppid() : 0, -1, -1, 0,
							  CASES[i].allowed, &taken);
			perfring_event_explain(fd, &attr, CASES[i].of_another ? getppid() : 0, -1, text, 4096);
			_exit(fd < 0 ? -fd : 0);
		}
		cr_assert_eq(status_of(child), CASES[i].error, "%zu", i);
		expect_words(text, (const char *const[]){CASES[i].word, NULL});
	}
}

static bool filter_with(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Whatever a filter says, it is the filter that is named, and nothing that permissions could mend. */
Test(fallback, filters_are_told_from_permissions)
{
	static const int ERRORS[] = {EPERM, ENOSYS, EACCES, EINVAL, ENOENT};
	char *text = shared_text();

	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(*ERRORS); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct perf_event_attr attr = faults();
			uint64_t taken;
			int fd;

			attr.exclude_kernel = i & 1;
			if (!filter_with(ERRORS[i]))
				_exit(200);
			fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
			perfring_event_explain(fd, &attr, 0, -1, text, 4096);
			_exit(fd < 0 && fd == perfring_event_filtered() ? -fd : 0);
		}
		cr_assert_eq(status_of(child), ERRORS[i]);
		expect_words(text, (const char *const[]){"seccomp filter", "profile", NULL});
		cr_assert_null(strstr(text, "paranoid <="), "%s", text);
	}
}

/* Linux 5.10 of Debian at kernel.perf_event_paranoid 3: it says so before it looks at the attr, and after the flags. */
static bool refuse_as_debian(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 15, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Another number in the sysctl's file, for this process alone: the sysctl is the whole machine's. */
static bool show_paranoid(const char *text)
{
	char path[] = "/tmp/perfring-paranoid-XXXXXX";
	int fd = mkstemp(path);
	bool shown = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fchmod(fd, 0644) &&
		     !unshare(CLONE_NEWNS) && !mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) &&
		     !mount(path, "/proc/sys/kernel/perf_event_paranoid", NULL, MS_BIND, NULL);

	unlink(path);
	return shown;
}

/* Above 2 the mainline kernel refuses no more than at 2, and those of distributions everything: what to set it to is
 * another number. */
Test(fallback, above_paranoid_2)
{
	static const struct {
		bool debian;
		bool of_kernel;
		int error;
		const char *words[2];
		const char *lacks;
	} CASES[] = {
		{false, true, EACCES, {"perf_event_paranoid <= 1 (it is 4)", "page-faults:u"}, "2 or lower"},
		{true, true, EACCES, {"perf_event_paranoid is 4", "1 or lower"}, "seccomp"},
		{true, false, EACCES, {"perf_event_paranoid is 4", "2 or lower"}, "seccomp"},
		{false, false, 0, {"", ""}, "."},
	};
	char *text = shared_text();

	if (geteuid() || paranoid() != 2)
		cr_skip_test("SKIP-ENV: setuid: run as root, with kernel.perf_event_paranoid 2");
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		pid_t child;
		int status;

		*text = 0; /* before there is a child that writes it */
		child = fork();
		if (child == 0) {
			struct perf_event_attr attr = faults();
			int fd;

			attr.exclude_kernel = !CASES[i].of_kernel;
			if (!show_paranoid("4\n"))
				_exit(77);
			if (setgid(65534) || setuid(65534) || (CASES[i].debian && !refuse_as_debian()))
				_exit(200);
			fd = perfring_event_open(&attr, 0, -1, -1, 0);
			if (fd < 0)
				perfring_event_explain(fd, &attr, 0, -1, text, 4096);
			_exit(fd < 0 && !perfring_event_filtered() ? -fd : 0);
		}
		status = status_of(child);
		if (status == 77)
			cr_skip_test("SKIP-ENV: mount: no permission: CAP_SYS_ADMIN");
		cr_assert_eq(status, CASES[i].error, "%zu: %d: %s", i, status, text);
		expect_words(text, (const char *const[]){CASES[i].words[0], CASES[i].words[1], NULL});
		cr_assert_null(strstr(text, CASES[i].lacks), "%s", text);
	}
}

/* The same errno without a filter is the permission. */
Test(fallback, permissions_are_told_from_filters)
{
	char *text = shared_text();
	pid_t child = fork();

	if (child == 0) {
		struct perf_event_attr attr = faults();

		perfring_event_explain(-EPERM, &attr, 0, -1, text, 4096);
		_exit(0);
	}
	cr_assert_eq(status_of(child), 0);
	cr_assert_null(strstr(text, "seccomp"), "%s", text);
	expect_words(text, (const char *const[]){"CAP_PERFMON", NULL});
}

/* Every rule that perfring_event_check knows is the sentence. */
Test(fallback, rules_are_told)
{
	static const struct {
		uint64_t sample_type;
		uint64_t flags;
		uint32_t max_stack;
		int error;
		const char *words[2];
	} CASES[] = {
		{1 << 12, 0, 0, EINVAL, {"REGS_USER", "mask"}},
		{0, UINT64_C(1) << 40, 0, EINVAL, {"flag", "does not know"}},
		{UINT64_C(1) << 40, 0, 0, EINVAL, {"sample_type", "does not know"}},
		{0, UINT64_C(1) << 31, 0, EOPNOTSUPP, {"aux_output", "AUX area"}},
		{1 << 5, 0, 60000, EOVERFLOW, {"sample_max_stack", "kernel.perf_event_max_stack"}},
		{1 << 11, 0, 0, EINVAL, {"BRANCH_STACK", "branch_sample_type"}},
		{1 << 4, 1 << 1, 0, EINVAL, {"READ", "inherited"}},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		struct perf_event_attr attr = faults();
		int fd;

		attr.exclude_kernel = 1;
		attr.sample_type = CASES[i].sample_type;
		attr.sample_max_stack = (uint16_t)CASES[i].max_stack;
		for (uint32_t bit = 0; bit < 64; bit++)
			if (CASES[i].flags >> bit & 1)
				perfring_attr_set_flag(&attr, bit, true);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS)
			cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-fd));
		cr_assert_eq(fd, -CASES[i].error, "%zu: %d", i, fd);
		perfring_event_explain(fd, &attr, 0, -1, text, sizeof(text));
		expect_words(text, (const char *const[]){CASES[i].words[0], CASES[i].words[1], NULL});
	}
}

/* A rule that is broken is not told for an errno that it does not give. */
Test(fallback, no_rule_for_another_errno)
{
	struct perf_event_attr attr = faults();
	char text[1024];

	attr.sample_type = 1 << 12;
	perfring_event_explain(-ENOENT, &attr, 0, -1, text, sizeof(text));
	cr_assert_null(strstr(text, "REGS_USER"));
	perfring_event_explain(-EOPNOTSUPP, &attr, 0, -1, text, sizeof(text));
	cr_assert_null(strstr(text, "REGS_USER"), "%s", text);
	perfring_event_explain(-EINVAL, &attr, 0, -1, text, sizeof(text));
	cr_assert_not_null(strstr(text, "REGS_USER"), "%s", text);
	perfring_event_explain(-EBADF, &attr, 5, 0, text, sizeof(text));
	expect_words(text, (const char *const[]){"cgroup", "group_fd", NULL});
	perfring_event_explain(-ESRCH, &attr, 12345, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"no thread 12345", NULL});
	perfring_event_explain(-EBUSY, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"serves one user at a time", NULL});
	perfring_event_explain(-ENFILE, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"fs.file-max", NULL});
}

/* Who has events open is named, unless enough others are. */
Test(fallback, who_holds_a_pmu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY};
	char text[1024], who[64];
	int ready[2], over[2];
	char byte;
	pid_t child;

	attr.exclude_kernel = attr.exclude_hv = 1;
	cr_assert_eq(pipe(ready) | pipe(over), 0);
	child = fork();
	if (!child) {
		int fd;

		prctl(PR_SET_NAME, "hol\033der");
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		close(over[1]);
		if (write(ready[1], fd < 0 ? "n" : "y", 1) == 1 && read(over[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	close(over[0]);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	if (byte == 'y')
		perfring_event_explain(-EBUSY, &attr, 0, -1, text, sizeof(text));
	close(over[1]);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	if (byte != 'y')
		cr_skip_test("SKIP-ENV: perf_event_open: refused: a dummy event");
	snprintf(who, sizeof(who), "hol?der (%d)", (int)child);
	cr_assert(strstr(text, who) || strstr(text, "perhaps more"), "%s", text);
	cr_assert_not_null(strstr(text, "end what uses it"), "%s", text);
}

/* What locked memory is for is rings, not events. */
Test(fallback, no_locked_memory)
{
	char *text = shared_text();
	pid_t child;

	if (geteuid() || paranoid() != 2)
		cr_skip_test("SKIP-ENV: setuid: run as root, with kernel.perf_event_paranoid 2");
	child = fork();
	if (child == 0) {
		struct rlimit none = {0, 0};
		struct perf_event_attr attr = faults();
		struct perfring_ring ring;
		int fd, ret;

		attr.exclude_kernel = 1;
		if (setrlimit(RLIMIT_MEMLOCK, &none) || setgid(61235) || setuid(61235))
			_exit(200);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd < 0)
			_exit(201);
		ret = perfring_ring_map(&ring, fd, 4096, 0);
		perfring_ring_explain(ret, 4096, text, 4096);
		_exit(-ret);
	}
	cr_assert_eq(status_of(child), EPERM);
	expect_words(text, (const char *const[]){"perf_event_mlock_kb", "RLIMIT_MEMLOCK (0 KiB", NULL});
}

/* Files: how many, and how many more there could be. */
Test(fallback, no_files)
{
	char *text = shared_text();
	pid_t child = fork();

	if (child == 0) {
		struct rlimit few = {40, 41};
		struct perf_event_attr attr = faults();
		uint64_t taken;
		int fd;

		attr.exclude_kernel = 1;
		for (int i = 3; i < 64; i++)
			close(i);
		if (setrlimit(RLIMIT_NOFILE, &few))
			_exit(200);
		do
			fd = try_it(&attr, PERFRING_FALLBACK_ALL, &taken);
		while (fd >= 0);
		perfring_event_explain(fd, &attr, 0, -1, text, 4096);
		_exit(-fd);
	}
	cr_assert_eq(status_of(child), EMFILE);
	expect_words(text, (const char *const[]){"RLIMIT_NOFILE is 40", "at most 41", "ulimit -n", NULL});
}
