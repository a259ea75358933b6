/* event_test.c - events by name, opened, read, refused with a reason. */
#include "test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/ring.h>

TestSuite(event, .timeout = 60);

/* ---- open and read ---- */

static struct perf_event_attr fault_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
	};

	return attr;
}

Test(event, read_in_every_format)
{
	for (uint64_t read_format = 0; read_format < 32; read_format++) {
		struct perf_event_attr attr = fault_attr();
		struct perfring_format format;
		struct perfring_read values;
		uint64_t buffer[32], id, before, after;
		volatile char *memory;
		int fd, error;

		attr.read_format = read_format;
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd == -EINVAL && (read_format & 16))
			cr_skip_test("SKIP-ENV: FORMAT_LOST: EINVAL: Linux 6.0");
		if (fd < 0)
			cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-fd));
		cr_assert_eq(perfring_event_id(fd, &id), 0);
		cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
		error = perfring_event_read(fd, &format, &values, buffer, sizeof(buffer));
		cr_assert_eq(error, 0);
		cr_assert_eq(values.nr, 1);
		before = perfring_read_value(&values, 0);
		memory = mmap(NULL, 10 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise((void *)memory, 10 * 4096, MADV_NOHUGEPAGE);
		for (int i = 0; i < 10; i++)
			memory[i * 4096] = 1;
		cr_assert_eq(perfring_event_read(fd, &format, &values, buffer, sizeof(buffer)), 0);
		after = perfring_read_value(&values, 0);
		cr_assert_geq(after, before + 10);
		cr_assert_lt(after, before + 1000);
		cr_assert_eq(perfring_read_id(&values, 0), read_format & PERF_FORMAT_ID ? id : 0);
		cr_assert_eq(perfring_read_lost(&values, 0), 0);
		cr_assert_eq(values.enabled != 0, (read_format & 1) != 0);
		cr_assert_eq(values.running != 0, (read_format & 2) != 0);
		cr_assert_eq(perfring_event_read(fd, &format, &values, buffer, 0), -ENOSPC);
		munmap((void *)memory, 10 * 4096);
		close(fd);
	}
}

Test(event, an_attr_newer_than_the_header)
{
	struct {
		struct perf_event_attr attr;
		unsigned char rest[256];
	} newer;
	uint64_t one = 1;
	int fd;

	/* All zero behind what the kernel knows: sent no longer than it must be. */
	memset(&newer, 0, sizeof(newer));
	newer.attr = fault_attr();
	newer.attr.size = 200;
	fd = perfring_event_open(&newer.attr, 0, -1, -1, 0);
	if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-fd));
	cr_assert_geq(fd, 0);
	cr_assert_eq(newer.attr.size, 200);
	close(fd);
	/* Something no kernel knows. */
	memcpy((unsigned char *)&newer + 192, &one, 8);
	cr_assert_eq(perfring_event_open(&newer.attr, 0, -1, -1, 0), -E2BIG);
}

/* ---- refusals: tests themselves, never skipped.  Each in a child that gives something up. ---- */

static char *shared_text(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int status_of(pid_t child)
{
	int status = -1;

	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static void expect_words(const char *text, const char *const words[])
{
	for (; *words; words++)
		cr_assert_not_null(strstr(text, *words), "'%s' lacks '%s'", text, *words);
}

static bool become_nobody(void)
{
	return setgid(65534) == 0 && setuid(65534) == 0;
}

static int paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int value = 2;

	if (file && fscanf(file, "%d", &value) != 1)
		value = 2;
	if (file)
		fclose(file);
	return value;
}

/* 0: there is none. */
static uint32_t pmu_type(const char *name)
{
	char path[128];
	unsigned type = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	file = fopen(path, "r");
	if (file && fscanf(file, "%u", &type) != 1)
		type = 0;
	if (file)
		fclose(file);
	return type;
}

/* Opens as nobody.  The child's exit code is the errno, its text the explanation. */
static int open_as_nobody(struct perf_event_attr attr, int32_t pid, int32_t cpu, char *text)
{
	pid_t child = fork();

	if (child == 0) {
		int fd;

		if (geteuid() == 0 && !become_nobody())
			_exit(200);
		fd = perfring_event_open(&attr, pid, cpu, -1, 0);
		if (fd < 0)
			perfring_event_explain(fd, &attr, pid, cpu, text, 4096);
		_exit(fd < 0 ? -fd : 0);
	}
	return status_of(child);
}

Test(event, refused_to_nobody)
{
	char *text = shared_text();
	struct perf_event_attr attr = fault_attr();

	if (paranoid() != 2)
		cr_skip_test("SKIP-ENV: kernel.perf_event_paranoid is %d: 2 is wanted", paranoid());
	/* What is permitted. */
	cr_assert_eq(open_as_nobody(attr, 0, -1, text), 0);
	/* The whole of a CPU. */
	cr_assert_eq(open_as_nobody(attr, -1, 0, text), EACCES);
	expect_words(text,
		     (const char *const[]){"page-faults", "CPU 0", "perf_event_paranoid", "2", "CAP_PERFMON", NULL});
	/* Another user's thread. */
	cr_assert_eq(open_as_nobody(attr, 1, -1, text), EACCES);
	expect_words(text, (const char *const[]){"CAP_SYS_PTRACE", "another user", NULL});
	/* The kernel. */
	attr.exclude_kernel = 0;
	cr_assert_eq(open_as_nobody(attr, 0, -1, text), EACCES);
	expect_words(text, (const char *const[]){"perf_event_paranoid <= 1", "CAP_PERFMON", ":u", NULL});
	/* A probe, whatever it excludes. */
	attr = fault_attr();
	attr.type = pmu_type("uprobe");
	attr.config = 0;
	if (attr.type) {
		cr_assert_eq(open_as_nobody(attr, 0, -1, text), EACCES);
		expect_words(text, (const char *const[]){"uprobe", "CAP_PERFMON", NULL});
		cr_assert_null(strstr(text, ":u,"));
	}
	/* No such thread. */
	attr = fault_attr();
	cr_assert_eq(open_as_nobody(attr, 0x3fffffff, -1, text), ESRCH);
	expect_words(text, (const char *const[]){"no thread 1073741823", NULL});
}

Test(event, refused_by_seccomp)
{
	char *text = shared_text();
	pid_t child = fork();

	if (child == 0) {
		struct sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
		struct perf_event_attr attr = fault_attr();
		int fd;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(200);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		perfring_event_explain(fd, &attr, 0, -1, text, 4096);
		_exit(fd < 0 ? -fd : 0);
	}
	cr_assert_eq(status_of(child), EPERM);
	expect_words(text, (const char *const[]){"seccomp", "container", "CAP_PERFMON", NULL});
}

/* What paranoid already permits is not what was in the way.  The sysctl is the whole system's: here its file alone is
 * another one. */
Test(event, refused_for_another_reason)
{
	static const struct {
		const char *paranoid;
		int32_t pid;
		const char *word;
	} CASES[] = {
		{"1\n", 1, "thread 1 is another user's"},
		{"2\n", 1, "observing the kernel"},
		{"1\n", -1, "paranoid <= 0 (it is 1)"},
		{"3\n", -1, "paranoid <= 0 (it is 3)"},
	};
	char *text = shared_text();

	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			char path[] = "/tmp/perfring-paranoid-XXXXXX";
			struct perf_event_attr attr = fault_attr();
			int fd = mkstemp(path);
			bool mounted;

			if (fd < 0 || write(fd, CASES[i].paranoid, 2) != 2)
				_exit(200);
			attr.exclude_kernel = 0;
			mounted = !unshare(CLONE_NEWNS) && !mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) &&
				  !mount(path, "/proc/sys/kernel/perf_event_paranoid", NULL, MS_BIND, NULL);
			if (mounted)
				perfring_event_explain(-EACCES, &attr, CASES[i].pid, CASES[i].pid == -1 ? 0 : -1, text,
						       4096);
			unlink(path);
			_exit(mounted ? 0 : 77);
		}
		status = status_of(child);
		if (status == 77)
			cr_skip_test("SKIP-ENV: mount: no permission: run as root");
		cr_assert_eq(status, 0);
		expect_words(text, (const char *const[]){CASES[i].word, "CAP_PERFMON", NULL});
	}
}

/* A filter that says ENOSYS, where the kernel has perf events all the same. */
Test(event, hidden_by_seccomp)
{
	struct perf_event_attr attr = fault_attr();
	char text[1024];

	if (access("/proc/sys/kernel/perf_event_paranoid", F_OK))
		cr_skip_test("SKIP-ENV: this kernel has no perf events");
	perfring_event_explain(-ENOSYS, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"seccomp", "container", NULL});
}

Test(event, refused_for_want_of_files)
{
	char *text = shared_text();
	pid_t child = fork();

	if (child == 0) {
		struct rlimit limit = {3, 1000};
		struct perf_event_attr attr = fault_attr();
		int fd;

		for (int i = 3; i < 64; i++)
			close(i);
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(200);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		perfring_event_explain(fd, &attr, 0, -1, text, 4096);
		_exit(fd < 0 ? -fd : 0);
	}
	cr_assert_eq(status_of(child), EMFILE);
	expect_words(text, (const char *const[]){"RLIMIT_NOFILE is 3", "1000", "CAP_SYS_RESOURCE", NULL});
}

Test(event, refused_ring_memory)
{
	char *text = shared_text();
	pid_t child;

	if (paranoid() == -1)
		cr_skip_test("SKIP-ENV: kernel.perf_event_paranoid is -1: ring memory is not limited");
	child = fork();
	if (child == 0) {
		struct rlimit limit = {8 << 20, 8 << 20};
		struct perf_event_attr attr = fault_attr();
		struct perfring_ring ring;
		int fd, ret;

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || (geteuid() == 0 && !become_nobody()))
			_exit(200);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd < 0)
			_exit(201);
		ret = perfring_ring_map(&ring, fd, 16384, 0);
		perfring_ring_explain(ret, 16384, text, 4096);
		_exit(-ret);
	}
	cr_assert_eq(status_of(child), EPERM);
	expect_words(text, (const char *const[]){"65540 KiB", "perf_event_mlock_kb", "RLIMIT_MEMLOCK (8192 KiB",
						 "CAP_IPC_LOCK", NULL});
}

/* Error numbers by what the kernel itself answers here. */
Test(event, refused_for_what_it_is)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_ring ring;
	char text[1024];
	int fd, ret;

	attr.config = 9999;
	ret = perfring_event_open(&attr, 0, -1, -1, 0);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-ret));
	cr_assert_eq(ret, -ENOENT);
	perfring_event_explain(ret, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"does not know", "9999", NULL});

	attr.type = 4711;
	cr_assert_eq(perfring_event_open(&attr, 0, -1, -1, 0), -ENOENT);
	perfring_event_explain(-ENOENT, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"no PMU on this machine has type 4711", NULL});

	attr = fault_attr();
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	cr_assert_eq(perfring_event_open(&attr, 0, -1, -1, 0), -EOPNOTSUPP);
	perfring_event_explain(-EOPNOTSUPP, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"BRANCH_STACK", NULL});

	attr = fault_attr();
	attr.freq = 1;
	attr.sample_freq = 1u << 30;
	cr_assert_eq(perfring_event_open(&attr, 0, -1, -1, 0), -EINVAL);
	perfring_event_explain(-EINVAL, &attr, 0, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"1073741824 Hz", "perf_event_max_sample_rate", NULL});

	attr = fault_attr();
	cr_assert_eq(perfring_event_open(&attr, -1, -1, -1, 0), -EINVAL);
	perfring_event_explain(-EINVAL, &attr, -1, -1, text, sizeof(text));
	expect_words(text, (const char *const[]){"pid -1 with cpu -1", NULL});

	attr.inherit = 1;
	fd = perfring_event_open(&attr, 0, -1, -1, 0);
	cr_assert_geq(fd, 0);
	ret = perfring_ring_map(&ring, fd, 1, 0);
	cr_assert_eq(ret, -EINVAL);
	perfring_ring_explain(ret, 1, text, sizeof(text));
	expect_words(text, (const char *const[]){"inherited", "bound to a CPU", NULL});
	close(fd);
}

Test(event, every_errno_has_a_sentence)
{
	struct perf_event_attr attr = fault_attr();
	char text[1024];

	for (int error = 1; error < 134; error++) {
		int64_t length = perfring_event_explain(-error, &attr, 1, 0, text, sizeof(text));

		cr_assert_gt(length, 20);
		cr_assert_lt(length, (int64_t)sizeof(text));
		cr_assert_eq((int64_t)strlen(text), length);
		cr_assert_eq(text[length - 1], '.');
		for (size_t size = 0; size < 40; size++) {
			int64_t again;

			memset(text, 'z', sizeof(text));
			again = perfring_event_explain(-error, &attr, 1, 0, text, size);
			/* of EBUSY: who has events open by then */
			cr_assert(error == EBUSY ? again > 20 : again == length);
			cr_assert_eq(text[size], 'z');
		}
	}
}
