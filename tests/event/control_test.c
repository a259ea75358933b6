/* control_test.c - what can be done to an open event: ioctl, signals, prctl, poll, read, and what each refuses; who may
 * open what. */
#include "test.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/page.h>
#include "machine.h"
#include "switches.h"
#include "watch.h"

TestSuite(control, .timeout = 60);

enum {
	PAGE = 4096,
	SAMPLE_OF_8 = 9,
};

/* Counts to the one. */
static struct perf_event_attr watch(volatile uint64_t *what)
{
	struct perf_event_attr attr = watch_hits(what);

	attr.size = PERF_ATTR_SIZE_VER5;
	attr.exclude_hv = 0;
	return attr;
}

static struct perf_event_attr dummy(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER5};

	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	return attr;
}

static int open_or_skip(const struct perf_event_attr *attr, int group_fd)
{
	int fd = perfring_event_open(attr, 0, -1, group_fd, 0);

	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-fd));
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t value[8] = {0};

	cr_assert_gt(read(fd, value, sizeof(value)), 0);
	return value[0];
}

static struct perf_event_mmap_page *map_ring(int fd)
{
	struct perf_event_mmap_page *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	cr_assert((void *)page != MAP_FAILED, "%s", strerror(errno));
	return page;
}

static uint64_t head_of(const struct perf_event_mmap_page *page)
{
	return ((volatile const struct perf_event_mmap_page *)page)->data_head;
}

static struct perf_event_attr tracepoint_or_skip(const char *name)
{
	struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER5};
	struct perfring_fault fault = {-1, ""};
	int ret = perfring_event_parse(name, &attr, &fault);

	if (ret)
		cr_skip_test("SKIP-ENV: tracefs: %s: %s", strerror(-ret), fault.what);
	return attr;
}

/* ---- on and off ---- */

Test(control, on_and_off)
{
	struct perf_event_attr attr = watch(&watched), other = watch(&watched_too);
	int leader, member;

	attr.disabled = other.disabled = 1;
	leader = open_or_skip(&attr, -1);
	member = open_or_skip(&other, leader);
	hit(&watched, 3);
	cr_assert_eq(count_of(leader), 0);
	/* The leader alone. */
	cr_assert_eq(perfring_event_enable(leader, false), 0);
	hit(&watched, 3);
	hit(&watched_too, 3);
	cr_assert_eq(count_of(leader), 3);
	cr_assert_eq(count_of(member), 0);
	/* All of them, from a member. */
	cr_assert_eq(perfring_event_enable(member, true), 0);
	hit(&watched, 2);
	hit(&watched_too, 2);
	cr_assert_eq(count_of(leader), 5);
	cr_assert_eq(count_of(member), 2);
	cr_assert_eq(perfring_event_reset(leader, false), 0);
	cr_assert_eq(count_of(leader), 0);
	cr_assert_eq(count_of(member), 2);
	hit(&watched, 1);
	cr_assert_eq(perfring_event_reset(member, true), 0);
	cr_assert_eq(count_of(leader), 0);
	cr_assert_eq(count_of(member), 0);
	cr_assert_eq(perfring_event_disable(member, true), 0);
	hit(&watched, 2);
	hit(&watched_too, 2);
	cr_assert_eq(count_of(leader), 0);
	cr_assert_eq(count_of(member), 0);
	/* A leader that is off stops the others, which stay on. */
	cr_assert_eq(perfring_event_enable(leader, true), 0);
	cr_assert_eq(perfring_event_disable(leader, false), 0);
	hit(&watched_too, 2);
	cr_assert_eq(count_of(member), 0);
	cr_assert_eq(perfring_event_enable(leader, false), 0);
	hit(&watched_too, 2);
	cr_assert_eq(count_of(member), 2);
	close(member);
	close(leader);
}

/* A reset is for the event and its living children: what the dead counted, and the times, stay. */
Test(control, reset_and_dead_children)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_attr apart = dummy();
	uint64_t before[3], after[3];
	int fd, other, pipes[2], status;
	pid_t child;
	char byte;

	attr.inherit = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = open_or_skip(&attr, -1);
	/* A switch between two tasks whose events are all inherited swaps their contexts: then what the child counts is in fd's
	 * own event.  With an event that the child does not inherit it never happens. */
	other = open_or_skip(&apart, -1);
	cr_assert_eq(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) == 0)
			hit(&watched, 118);
		_exit(0);
	}
	close(pipes[0]);
	close(pipes[1]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	hit(&watched, 7);
	close(other);
	cr_assert_eq(read(fd, before, sizeof(before)), (ssize_t)sizeof(before));
	cr_assert_eq(before[0], 125);
	cr_assert_eq(perfring_event_reset(fd, false), 0);
	cr_assert_eq(read(fd, after, sizeof(after)), (ssize_t)sizeof(after));
	cr_assert_eq(after[0], 118, "%d", (int)after[0]);
	cr_assert_gt(after[1], before[1]);
	cr_assert_gt(after[2], before[2]);
	close(fd);
}

Test(control, unknown_requests)
{
	struct perf_event_attr attr = dummy();
	int fd = open_or_skip(&attr, -1);
	uint64_t id = 0;

	cr_assert_eq(ioctl(fd, _IO('$', 99), 0), -1);
	cr_assert_eq(errno, ENOTTY);
	cr_assert_eq(perfring_event_id(fd, &id), 0);
	cr_assert_neq(id, 0);
	cr_assert_eq(perfring_event_enable(0, false) < 0, true, "no event");
	cr_assert_eq(perfring_event_disable(-1, false), -EBADF);
	close(fd);
}

/* ---- periods ---- */

Test(control, periods)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	uint64_t most = number_in("/proc/sys/kernel/perf_event_max_sample_rate"), head;
	int fd = open_or_skip(&attr, -1);

	cr_assert_eq(perfring_event_set_period(fd, 10), -EINVAL, "it counts");
	close(fd);
	attr.sample_period = 1000;
	fd = open_or_skip(&attr, -1);
	page = map_ring(fd);
	cr_assert_eq(perfring_event_set_period(fd, 0), -EINVAL);
	cr_assert_eq(perfring_event_set_period(fd, UINT64_C(1) << 63), -EINVAL);
	cr_assert_eq(perfring_event_set_period(fd, UINT64_MAX), -EINVAL);
	hit(&watched, 10);
	cr_assert_eq(head_of(page), 0);
	cr_assert_eq(perfring_event_set_period(fd, 4), 0);
	head = head_of(page);
	/* The first occurrence overflows, then the old period runs out once more, then it is the new one. */
	hit(&watched, 40);
	cr_assert_eq(head_of(page) - head, 8);
	hit(&watched, 1000);
	cr_assert_eq(head_of(page) - head, 12 * 8, "%d", (int)(head_of(page) - head));
	munmap(page, 2 * PAGE);
	close(fd);
	/* As a frequency. */
	attr.freq = 1;
	attr.sample_freq = 100;
	fd = open_or_skip(&attr, -1);
	cr_assert_eq(perfring_event_set_period(fd, 200), 0);
	if (most)
		cr_assert_eq(perfring_event_set_period(fd, UINT64_C(1) << 40), -EINVAL);
	close(fd);
}

/* ---- signals ---- */

enum {
	NUMBER = 50,
	SEEN = 64,
};

static struct {
	int code, fd;
	long band;
} seen[SEEN];

/* They queue up, for they are of the realtime kind and blocked: no handler, which a sanitizer would put off. */
static void block_them(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, NUMBER);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
}

/* What has come since: how many. */
static int take_them(void)
{
	struct timespec now = {0, 0};
	siginfo_t told;
	sigset_t set;
	int count = 0;

	sigemptyset(&set);
	sigaddset(&set, NUMBER);
	while (count < SEEN && sigtimedwait(&set, &told, &now) == NUMBER) {
		seen[count].code = told.si_code;
		seen[count].fd = told.si_fd;
		seen[count].band = told.si_band;
		count++;
	}
	return count;
}

static int32_t tid_of_self(void)
{
	return (int32_t)syscall(SYS_gettid);
}

Test(control, refresh_and_signals)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	int fd;

	attr.sample_period = 1;
	attr.disabled = 1;
	attr.wakeup_events = 1;
	fd = open_or_skip(&attr, -1);
	page = map_ring(fd);
	block_them();
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, tid_of_self()), 0);
	cr_assert_eq(perfring_event_refresh(fd, 0), -EINVAL);
	cr_assert_eq(perfring_event_refresh(fd, UINT32_MAX), -EINVAL);
	hit(&watched, 3);
	cr_assert_eq(count_of(fd), 0, "neither enabled it");
	cr_assert_eq(perfring_event_refresh(fd, 5), 0);
	hit(&watched, 20);
	cr_assert_eq(count_of(fd), 5);
	cr_assert_eq(head_of(page), 40);
	cr_assert_eq(take_them(), 5);
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(seen[i].code, i < 4 ? POLL_IN : POLL_HUP, "%d", i);
		cr_assert_eq(seen[i].fd, fd);
		cr_assert_eq(seen[i].band, i < 4 ? 0x41 : 0x18);
	}
	cr_assert_eq(perfring_event_set_signal(fd, -1, tid_of_self()), -EINVAL);
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, 0), -EINVAL);
	cr_assert_eq(perfring_event_set_signal(fd, 1000, tid_of_self()), -EINVAL);
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, 0x3fffffff), -ESRCH);
	cr_assert_eq(perfring_event_set_signal(-1, NUMBER, 1), -EBADF);
	munmap(page, 2 * PAGE);
	close(fd);
}

Test(control, budgets_add_up)
{
	struct perf_event_attr attr = dummy();
	uint64_t before;
	int fd;

	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = 1;
	attr.disabled = 1;
	fd = open_or_skip(&attr, -1);
	block_them();
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, tid_of_self()), 0);
	cr_assert_eq(perfring_event_refresh(fd, 5), 0);
	touch_pages(20);
	cr_assert_eq(take_them(), 5);
	cr_assert_eq(seen[4].code, POLL_HUP);
	cr_assert_eq(perfring_event_refresh(fd, 2), 0);
	cr_assert_eq(perfring_event_refresh(fd, 1), 0);
	touch_pages(20);
	cr_assert_eq(take_them(), 3);
	cr_assert_eq(seen[0].code, POLL_IN);
	cr_assert_eq(seen[1].code, POLL_IN);
	cr_assert_eq(seen[2].code, POLL_HUP);
	/* No more signals. */
	cr_assert(fcntl(fd, F_GETFL) & O_ASYNC);
	cr_assert_eq(perfring_event_set_signal(fd, 0, 0), 0);
	cr_assert_eq(fcntl(fd, F_GETFL) & O_ASYNC, 0);
	cr_assert_eq(perfring_event_refresh(fd, 5), 0);
	touch_pages(20);
	cr_assert_eq(take_them(), 0);
	before = count_of(fd);
	cr_assert_geq(before, 13);
	/* The kernel's own REFRESH 0 is no limit at all: what perfring_event_refresh keeps from happening. */
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_REFRESH, 0), 0);
	touch_pages(50);
	cr_assert_geq(count_of(fd) - before, 50);
	close(fd);
}

/* Linux 6.18 stops a breakpoint at the end of its budget in a way that enabling does not undo; IOC_PERIOD does. */
Test(control, a_breakpoint_is_refreshed_again)
{
	struct perf_event_attr attr = watch(&watched);
	int fd;

	need_breakpoints();
	attr.sample_period = 1;
	attr.disabled = 1;
	fd = open_or_skip(&attr, -1);
	cr_assert_eq(perfring_event_refresh(fd, 5), 0);
	hit(&watched, 20);
	cr_assert_eq(count_of(fd), 5);
	cr_assert_eq(perfring_event_refresh(fd, 3), 0);
	cr_assert_eq(perfring_event_set_period(fd, 1), 0);
	hit(&watched, 20);
	cr_assert_eq(count_of(fd), 8);
	close(fd);
}

Test(control, refresh_is_refused)
{
	struct perf_event_attr attr = dummy();
	int fd = open_or_skip(&attr, -1);

	cr_assert_eq(perfring_event_refresh(fd, 1), -EINVAL, "it counts");
	close(fd);
	attr.sample_period = 1;
	attr.inherit = 1;
	fd = open_or_skip(&attr, -1);
	cr_assert_eq(perfring_event_refresh(fd, 1), -EINVAL, "it is inherited");
	close(fd);
}

struct waiting {
	int32_t tid; /* 0: it may end */
	siginfo_t told;
	int number;
};

/* Waits for the signal that is blocked in all threads. */
static void *wait_in_thread(void *argument)
{
	struct timespec long_enough = {20, 0};
	struct waiting *waiting = argument;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, NUMBER);
	__atomic_store_n(&waiting->tid, tid_of_self(), __ATOMIC_RELEASE);
	waiting->number = sigtimedwait(&set, &waiting->told, &long_enough);
	return NULL;
}

/* The signal goes to the thread that was named, not to whoever counts. */
Test(control, signals_of_one_thread)
{
	struct perf_event_attr attr = watch(&watched);
	struct waiting waiting = {.tid = 0};
	pthread_t thread;
	int32_t other;
	int fd;

	attr.sample_period = 1;
	fd = open_or_skip(&attr, -1);
	block_them();
	cr_assert_eq(pthread_create(&thread, NULL, wait_in_thread, &waiting), 0);
	while (!(other = __atomic_load_n(&waiting.tid, __ATOMIC_ACQUIRE)))
		usleep(100);
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, other), 0);
	hit(&watched, 1);
	cr_assert_eq(take_them(), 0, "not of this thread");
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(waiting.number, NUMBER);
	cr_assert_eq(waiting.told.si_fd, fd);
	cr_assert_eq(waiting.told.si_code, POLL_IN);
	close(fd);
}

/* A record that is no sample wakes with a signal, too, on newer kernels. */
Test(control, signals_of_other_records)
{
	struct perf_event_attr attr = dummy();
	struct perf_event_mmap_page *page;
	void *code;
	int fd;

	if (!is_at_least(6, 18))
		cr_skip_test("SKIP-ENV: SIGIO for other records: Linux 6.18 is known to send it");
	attr.mmap = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	fd = open_or_skip(&attr, -1);
	page = map_ring(fd);
	block_them();
	cr_assert_eq(perfring_event_set_signal(fd, NUMBER, tid_of_self()), 0);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(code != MAP_FAILED);
	cr_assert_gt(head_of(page), 0);
	cr_assert_geq(take_them(), 1);
	cr_assert_eq(seen[0].code, POLL_IN);
	cr_assert_eq(seen[0].fd, fd);
	munmap(code, PAGE);
	munmap(page, 2 * PAGE);
	close(fd);
}

static unsigned char trapped[128];
static volatile int traps;

static void take_trap(int number, siginfo_t *told, void *context)
{
	(void)number;
	(void)context;
	memcpy(trapped, told, sizeof(trapped));
	traps++;
}

/* SIGTRAP in the very thread, before its next instruction, with words of ours. */
Test(control, sigtrap)
{
	union {
		struct perf_event_attr attr;
		unsigned char bytes[256];
	} wide;
	uint64_t data = UINT64_C(0x1122334455667788);
	struct sigaction action;
	siginfo_t told;
	uint64_t word;
	uint32_t half;
	int fd;

	need_breakpoints();
	memset(&wide, 0, sizeof(wide));
	wide.attr = watch(&watched);
	wide.attr.size = 128;
	wide.attr.sample_period = 1;
	wide.attr.sample_type = PERF_SAMPLE_ADDR;
	perfring_attr_set_flag(&wide.attr, PERFRING_ATTR_FLAG_sigtrap, true);
	perfring_attr_set_flag(&wide.attr, PERFRING_ATTR_FLAG_remove_on_exec, true);
	memcpy(wide.bytes + 120, &data, sizeof(data));
	if (!is_at_least(5, 13))
		cr_skip_test("SKIP-ENV: sigtrap: Linux 5.13");
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = take_trap;
	action.sa_flags = SA_SIGINFO;
	cr_assert_eq(sigaction(SIGTRAP, &action, NULL), 0);
	fd = open_or_skip(&wide.attr, -1);
	hit(&watched, 1);
	cr_assert_eq(traps, 1);
	hit(&watched, 2);
	cr_assert_eq(traps, 3);
	memcpy(&told, trapped, sizeof(told));
	cr_assert_eq(told.si_code, 6, "TRAP_PERF");
	cr_assert_eq((uintptr_t)told.si_addr, (uintptr_t)&watched);
	if (sizeof(long) == 8) {
		memcpy(&word, trapped + 24, sizeof(word));
		cr_assert_eq(word, data);
		memcpy(&half, trapped + 32, sizeof(half));
		cr_assert_eq(half, PERF_TYPE_BREAKPOINT);
		memcpy(&half, trapped + 36, sizeof(half));
		cr_assert_eq(half & ~1u, 0);
	}
	/* sig_data is one of the things that can be changed. */
	data = 5;
	memcpy(wide.bytes + 120, &data, sizeof(data));
	cr_assert_eq(perfring_event_modify(fd, &wide.attr), 0);
	hit(&watched, 1);
	if (sizeof(long) == 8) {
		memcpy(&word, trapped + 24, sizeof(word));
		cr_assert_eq(word, 5, "%lx traps %d", (long)word, traps);
	}
	close(fd);
	hit(&watched, 1);
	cr_assert_eq(traps, 4);
}

/* ---- rings ---- */

Test(control, pause_and_go_on)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	int fd;

	attr.sample_period = 1;
	fd = open_or_skip(&attr, -1);
	cr_assert_eq(perfring_event_pause(fd, true), -EINVAL, "no ring");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert((void *)page != MAP_FAILED);
	cr_assert_eq(perfring_event_pause(fd, true), -EINVAL, "no data pages");
	munmap(page, PAGE);
	page = map_ring(fd);
	hit(&watched, 2);
	cr_assert_eq(head_of(page), 16);
	cr_assert_eq(perfring_event_pause(fd, true), 0);
	hit(&watched, 7);
	cr_assert_eq(head_of(page), 16);
	cr_assert_eq(perfring_event_pause(fd, false), 0);
	hit(&watched, 1);
	cr_assert_eq(head_of(page), 16 + 24 + 8, "LOST, and the sample");
	cr_assert_eq(count_of(fd), 10);
	munmap(page, 2 * PAGE);
	close(fd);
}

/* docs/abi.md 7.9, one by one. */
Test(control, outputs)
{
	struct perf_event_attr attr = watch(&watched), other = dummy();
	struct perf_event_mmap_page *page, *mine;
	int fd, to, cpu;

	attr.sample_period = 1;
	fd = open_or_skip(&attr, -1);
	to = open_or_skip(&other, -1);
	cr_assert_eq(perfring_event_set_output(fd, to), -EINVAL, "its ring is not mapped");
	page = map_ring(to);
	cr_assert_eq(perfring_event_set_output(fd, to), 0);
	hit(&watched, 3);
	cr_assert_eq(head_of(page), 24);
	cr_assert_eq(perfring_event_set_output(fd, -1), 0);
	hit(&watched, 3);
	cr_assert_eq(head_of(page), 24, "nowhere");
	cr_assert_eq(perfring_event_set_output(fd, fd), -EINVAL, "itself");
	cr_assert_eq(perfring_event_set_output(fd, 0), -EBADF, "no event");
	cr_assert_eq(perfring_event_set_output(fd, 1 << 20), -EBADF, "no fd");
	/* Another clock, another direction, another CPU, another thread. */
	other = attr;
	other.use_clockid = 1;
	other.clockid = 1;
	cpu = open_or_skip(&other, -1);
	cr_assert_eq(perfring_event_set_output(cpu, to), -EINVAL);
	close(cpu);
	other = attr;
	other.write_backward = 1;
	cpu = open_or_skip(&other, -1);
	cr_assert_eq(perfring_event_set_output(cpu, to), -EINVAL);
	close(cpu);
	cpu = perfring_event_open(&attr, 0, 0, -1, 0);
	cr_assert_geq(cpu, 0);
	cr_assert_eq(perfring_event_set_output(cpu, to), -EINVAL);
	close(cpu);
	other = dummy();
	cpu = perfring_event_open(&other, getppid(), -1, -1, 0);
	if (cpu >= 0) {
		cr_assert_eq(perfring_event_set_output(cpu, to), -EINVAL);
		close(cpu);
	}
	/* One that is mapped itself. */
	mine = map_ring(fd);
	cr_assert_eq(perfring_event_set_output(fd, to), -EINVAL);
	munmap(mine, 2 * PAGE);
	munmap(page, 2 * PAGE);
	close(to);
	close(fd);
}

/* ---- filters, programs, other breakpoints ---- */

Test(control, filters)
{
	struct perf_event_attr attr = tracepoint_or_skip("sched:sched_switch"), software = dummy();
	char text[64];
	int fd, none;

	attr.sample_period = 1;
	attr.disabled = 1;
	fd = open_or_skip(&attr, -1);
	none = open_or_skip(&attr, -1);
	cr_assert_eq(perfring_event_set_filter(none, "no_such_field == 1"), -EINVAL);
	cr_assert_eq(perfring_event_set_filter(none, "0"), -EINVAL, "no filter at all is no filter");
	/* What failed has left nothing behind. */
	cr_assert_eq(perfring_event_set_filter(none, "prev_pid == 1 && prev_pid == 2"), 0);
	snprintf(text, sizeof(text), "prev_pid == %d", (int)tid_of_self());
	cr_assert_eq(perfring_event_set_filter(fd, text), 0);
	cr_assert_eq(perfring_event_enable(fd, false), 0);
	cr_assert_eq(perfring_event_enable(none, false), 0);
	switch_away(5);
	cr_assert_geq(count_of(fd), 5);
	cr_assert_eq(count_of(none), 0);
	/* There is one for the life of the event. */
	cr_assert_eq(perfring_event_set_filter(fd, "prev_pid == 2"), -EEXIST);
	cr_assert_eq(perfring_event_set_filter(fd, "0"), -EEXIST);
	cr_assert_eq(perfring_event_set_filter(fd, ""), -EEXIST);
	close(fd);
	close(none);
	fd = open_or_skip(&software, -1);
	cr_assert_eq(perfring_event_set_filter(fd, "prev_pid == 1"), -EINVAL);
	close(fd);
}

#define INSN(code_, dst, src, off_, imm_) \
	(struct bpf_insn) \
	{ \
		.code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_) \
	}

/* A program that returns a number: 0 lets no record through. */
static int program_or_skip(uint32_t type, int32_t answer)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, answer),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "Dual MIT/GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		cr_skip_test("SKIP-ENV: bpf(BPF_PROG_LOAD): %s: needs CAP_BPF and CAP_PERFMON", strerror(errno));
	return fd;
}

static uint32_t program_id(int fd)
{
	struct bpf_prog_info found;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	memset(&found, 0, sizeof(found));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(found);
	attr.info.info = (uintptr_t)&found;
	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) ? 0 : found.id;
}

/* Takes the name that it has. */
static void rename_self(int times)
{
	char name[17] = "";

	cr_assert_eq(prctl(PR_GET_NAME, name), 0);
	while (times--)
		cr_assert_eq(prctl(PR_SET_NAME, name), 0);
}

/* A tracepoint that no other test observes: its programs are asked for all processes (tests/CMakeLists.txt keeps them apart). */
Test(control, programs_of_a_tracepoint)
{
	struct perf_event_attr attr = tracepoint_or_skip("task:task_rename"), software = dummy();
	int fds[3], programs[3];
	uint32_t ids[100], count;

	attr.sample_period = 1;
	attr.disabled = 1;
	for (int i = 0; i < 3; i++) {
		programs[i] = program_or_skip(BPF_PROG_TYPE_TRACEPOINT, 0);
		fds[i] = open_or_skip(&attr, -1);
	}
	count = 100;
	cr_assert_eq(perfring_event_query_bpf(fds[0], ids, &count), 0);
	cr_assert_eq(count, 0);
	cr_assert_eq(perfring_event_enable(fds[0], false), 0);
	rename_self(5);
	cr_assert_eq(perfring_event_disable(fds[0], false), 0);
	cr_assert_eq(count_of(fds[0]), 5);
	cr_assert_eq(perfring_event_reset(fds[0], false), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(perfring_event_set_bpf(fds[i], programs[i]), 0);
	cr_assert_eq(perfring_event_set_bpf(fds[0], programs[1]), -EEXIST);
	cr_assert_eq(perfring_event_set_bpf(fds[0], -1), -EBADF);
	cr_assert_eq(perfring_event_set_bpf(fds[0], 0), -EINVAL);
	memset(ids, 0xff, sizeof(ids));
	count = 100;
	cr_assert_eq(perfring_event_query_bpf(fds[1], ids, &count), 0);
	cr_assert_eq(count, 3, "the tracepoint's, not the event's");
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ids[i], program_id(programs[i]));
	cr_assert_eq(ids[3], UINT32_MAX);
	memset(ids, 0xff, sizeof(ids));
	count = 2;
	cr_assert_eq(perfring_event_query_bpf(fds[1], ids, &count), -ENOSPC);
	cr_assert_eq(count, 3);
	cr_assert_eq(ids[2], UINT32_MAX);
	count = 0;
	cr_assert_eq(perfring_event_query_bpf(fds[1], ids, &count), -ENOSPC);
	cr_assert_eq(count, 3);
	/* It says 0: no event of this tracepoint counts. */
	cr_assert_eq(perfring_event_enable(fds[0], false), 0);
	rename_self(5);
	cr_assert_eq(count_of(fds[0]), 0);
	for (int i = 0; i < 3; i++) {
		close(fds[i]);
		close(programs[i]);
	}
	fds[0] = open_or_skip(&software, -1);
	count = 100;
	cr_assert_eq(perfring_event_query_bpf(fds[0], ids, &count), -EINVAL);
	close(fds[0]);
}

/* For others it is asked at each overflow whether there is to be a sample. */
Test(control, programs_of_overflows)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	int fd, program = program_or_skip(BPF_PROG_TYPE_PERF_EVENT, 0), other;

	need_breakpoints(); /* a uprobe is asked for in another place */
	attr.sample_period = 1;
	fd = open_or_skip(&attr, -1);
	page = map_ring(fd);
	hit(&watched, 3);
	cr_assert_eq(head_of(page), 24);
	other = program_or_skip(BPF_PROG_TYPE_TRACEPOINT, 0);
	cr_assert_eq(perfring_event_set_bpf(fd, other), -EINVAL, "of another kind");
	cr_assert_eq(perfring_event_set_bpf(fd, program), 0);
	hit(&watched, 3);
	cr_assert_eq(head_of(page), 24);
	cr_assert_eq(count_of(fd), 6);
	cr_assert_eq(perfring_event_set_bpf(fd, program), -EEXIST);
	munmap(page, 2 * PAGE);
	close(other);
	close(program);
	close(fd);
}

Test(control, another_breakpoint)
{
	struct perf_event_attr attr = watch(&watched), changed, software = dummy();
	union {
		struct perf_event_attr attr;
		unsigned char bytes[512];
	} longer;
	int fd;

	need_breakpoints();
	fd = open_or_skip(&attr, -1);
	changed = attr;
	changed.bp_addr = (uintptr_t)&watched_too;
	changed.bp_len = 4;
	cr_assert_eq(perfring_event_modify(fd, &changed), 0);
	hit(&watched, 3);
	cr_assert_eq(count_of(fd), 0);
	hit(&watched_too, 3);
	cr_assert_eq(count_of(fd), 3);
	changed.disabled = 1;
	cr_assert_eq(perfring_event_modify(fd, &changed), 0);
	hit(&watched_too, 3);
	cr_assert_eq(count_of(fd), 3);
	changed.disabled = 0;
	cr_assert_eq(perfring_event_modify(fd, &changed), 0);
	hit(&watched_too, 2);
	cr_assert_eq(count_of(fd), 5);
	/* Sent no longer than it must be: the header may be newer than the kernel. */
	memset(&longer, 0, sizeof(longer));
	longer.attr = changed;
	longer.attr.size = sizeof(longer);
	cr_assert_eq(perfring_event_modify(fd, &longer.attr), 0);
	for (int i = 0; i < 5; i++) {
		changed = attr;
		changed.sample_type = i == 0 ? PERF_SAMPLE_IP : 0;
		changed.read_format = i == 1;
		changed.sample_period = i == 2;
		changed.inherit = i == 3;
		changed.bp_len = i == 4 ? 3 : 8;
		cr_assert_eq(perfring_event_modify(fd, &changed), -EINVAL, "%d", i);
	}
	changed.size = 8;
	cr_assert_eq(perfring_event_modify(fd, &changed), -E2BIG);
	close(fd);
	fd = open_or_skip(&software, -1);
	cr_assert_eq(perfring_event_modify(fd, &software), -EOPNOTSUPP);
	close(fd);
}

/* ---- all of a thread's ---- */

static void *turn_off(void *argument)
{
	*(int *)argument = perfring_event_disable_all();
	return NULL;
}

Test(control, all_that_this_thread_opened)
{
	struct perf_event_attr attr = watch(&watched);
	pthread_t thread;
	int fd = open_or_skip(&attr, -1), ret = 1;

	hit(&watched, 1);
	cr_assert_eq(perfring_event_disable_all(), 0);
	hit(&watched, 1);
	cr_assert_eq(count_of(fd), 1);
	cr_assert_eq(perfring_event_enable_all(), 0);
	hit(&watched, 1);
	cr_assert_eq(count_of(fd), 2);
	/* Another thread opened nothing. */
	cr_assert_eq(pthread_create(&thread, NULL, turn_off, &ret), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(ret, 0);
	hit(&watched, 1);
	cr_assert_eq(count_of(fd), 3);
	close(fd);
}

/* By who opened it, not by whose it is. */
Test(control, what_another_process_counts)
{
	struct perf_event_attr attr = dummy();
	uint64_t times[2], before;
	int fd, pipes[2];
	pid_t child;
	char byte;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	cr_assert_eq(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		close(pipes[1]);
		_exit((int)read(pipes[0], &byte, 1));
	}
	close(pipes[0]);
	fd = perfring_event_open(&attr, child, -1, -1, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_event_disable_all(), 0);
	cr_assert_eq(read(fd, times, sizeof(times)), (ssize_t)sizeof(times));
	before = times[1];
	usleep(2000);
	cr_assert_eq(read(fd, times, sizeof(times)), (ssize_t)sizeof(times));
	cr_assert_eq(times[1], before);
	cr_assert_eq(perfring_event_enable_all(), 0);
	usleep(2000);
	close(pipes[1]);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_eq(read(fd, times, sizeof(times)), (ssize_t)sizeof(times));
	cr_assert_gt(times[1], before);
	close(fd);
}

/* ---- read and poll ---- */

static short polled(int fd)
{
	struct pollfd one = {fd, POLLIN | POLLRDNORM, 0};

	poll(&one, 1, 0);
	return one.revents;
}

Test(control, hung_up)
{
	struct perf_event_attr attr = watch(&watched);
	struct perf_event_mmap_page *page;
	uint64_t values[5];
	int fd, status;
	pid_t child;

	attr.sample_period = 1;
	attr.wakeup_events = 1;
	fd = open_or_skip(&attr, -1);
	cr_assert_eq(polled(fd), POLLHUP, "no ring");
	page = map_ring(fd);
	cr_assert_eq(polled(fd), 0);
	hit(&watched, 1);
	cr_assert_eq(polled(fd), POLLIN | POLLRDNORM);
	cr_assert_eq(polled(fd), 0, "once, though nothing was read");
	munmap(page, 2 * PAGE);
	cr_assert_eq(polled(fd), POLLHUP, "no ring any more");
	/* Larger than need be is fine. */
	cr_assert_eq(read(fd, values, sizeof(values)), 8);
	cr_assert_eq(values[0], 1);
	cr_assert_eq(read(fd, values, 7), -1);
	cr_assert_eq(errno, ENOSPC);
	close(fd);
	/* A thread that is no more. */
	child = fork();
	if (child == 0) {
		raise(SIGSTOP);
		hit(&watched, 9);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	fd = perfring_event_open(&attr, child, -1, -1, 0);
	cr_assert_geq(fd, 0);
	page = map_ring(fd);
	cr_assert_eq(polled(fd), 0);
	kill(child, SIGCONT);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(polled(fd) & POLLHUP);
	cr_assert_eq(count_of(fd), 9);
	cr_assert_eq(head_of(page), 72);
	cr_assert_eq(perfring_event_enable(fd, false), 0);
	munmap(page, 2 * PAGE);
	close(fd);
}

/* ---- who may ---- */

enum {
	OWN,
	CPU_WIDE,
	OF_INIT,
};

/* Opens as nobody, of which no capability is left. */
static int as_nobody(const void *attr, int whose)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		int fd;

		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(200);
		fd = perfring_event_open(attr,
					 whose == OF_INIT    ? 1
					 : whose == CPU_WIDE ? -1
							     : 0,
					 whose == CPU_WIDE ? 0 : -1, -1, 0);
		_exit(fd < 0 ? -fd : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

Test(control, permissions)
{
	static const struct {
		const char *what;
		int error;
		uint32_t type;
		uint64_t config;
		uint64_t sample_type;
		uint64_t flags;
		int whose;
	} CASES[] = {
#define FLAG(name) (UINT64_C(1) << PERFRING_ATTR_FLAG_##name)
		{"own thread", 0, 1, 2, 0, FLAG(exclude_kernel), OWN},
		{"ksymbol", 0, 1, 9, 0, FLAG(exclude_kernel) | FLAG(ksymbol), OWN},
		{"text_poke", 0, 1, 9, 0, FLAG(exclude_kernel) | FLAG(text_poke), OWN},
		{"REGS_INTR", 0, 1, 0, 1 << 18, FLAG(exclude_kernel), OWN},
		{"CALLCHAIN", 0, 1, 0, 1 << 5, FLAG(exclude_kernel), OWN},
		{"a breakpoint", 0, 5, 0, 0, FLAG(exclude_kernel), OWN},
		{"a tracepoint", 0, 2, 0, 0, FLAG(exclude_kernel), OWN},
		{"the kernel", EACCES, 1, 2, 0, 0, OWN},
		{"the kernel's dummy", EACCES, 1, 9, 0, 0, OWN},
		{"a tracepoint in the kernel", EACCES, 2, 0, 0, 0, OWN},
		{"a CPU", EACCES, 1, 0, 0, FLAG(exclude_kernel), CPU_WIDE},
		{"a CPU's dummy", EACCES, 1, 9, 0, FLAG(exclude_kernel), CPU_WIDE},
		{"namespaces", EACCES, 1, 9, 0, FLAG(exclude_kernel) | FLAG(namespaces), OWN},
		{"PHYS_ADDR", EACCES, 1, 9, 1 << 19, FLAG(exclude_kernel), OWN},
		{"init", EACCES, 1, 9, 0, FLAG(exclude_kernel), OF_INIT},
		{"a tracepoint's data", EPERM, 2, 0, 1 << 10, FLAG(exclude_kernel), OWN},
	};
	struct perf_event_attr found = tracepoint_or_skip("sched:sched_switch");
	char value[16] = "";
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");

	if (file) {
		if (fscanf(file, "%15s", value) != 1)
			value[0] = 0;
		fclose(file);
	}
	if (strcmp(value, "2") || !is_at_least(6, 18))
		cr_skip_test("SKIP-ENV: kernel.perf_event_paranoid is %s: 2 is wanted, and Linux 6.18", value);
	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		struct perf_event_attr attr = CASES[i].type == 5 ? watch_breakpoint(&watched) : dummy();

		attr.exclude_kernel = 0;
		attr.type = CASES[i].type;
		attr.config = CASES[i].type == 2 ? found.config : CASES[i].config;
		attr.sample_type = CASES[i].sample_type;
		attr.sample_regs_intr = CASES[i].sample_type == 1 << 18 ? 0xff : 0;
		attr.sample_period = CASES[i].sample_type ? 1000000 : 0;
		for (uint32_t bit = 0; bit < 64; bit++)
			if (CASES[i].flags >> bit & 1)
				perfring_attr_set_flag(&attr, bit, true);
		cr_assert_eq(as_nobody(&attr, CASES[i].whose), CASES[i].error, "%s: %d", CASES[i].what,
			     as_nobody(&attr, CASES[i].whose));
	}
}

/* Of a user that has no other ring: what is free, then RLIMIT_MEMLOCK, then no more. */
static int map_as_stranger(uint32_t pages, uint64_t limit)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		struct perf_event_attr attr = dummy();
		struct rlimit locked = {limit, limit};
		int fd;

		/* In a user namespace only few users may be mapped. */
		if (setrlimit(RLIMIT_MEMLOCK, &locked) || setgid(61234) ||
		    (setuid(0x60000000 + (uid_t)getpid()) && setuid(61234)))
			_exit(200);
		fd = perfring_event_open(&attr, 0, -1, -1, 0);
		if (fd < 0)
			_exit(201);
		_exit(mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? errno
														: 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

Test(control, ring_memory)
{
	uint64_t kb = number_in("/proc/sys/kernel/perf_event_mlock_kb");
	uint64_t free_pages = kb / 4 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t most = 1, over;

	if (geteuid() || sysconf(_SC_PAGESIZE) != PAGE || number_in("/proc/sys/kernel/perf_event_paranoid") != 2)
		cr_skip_test("SKIP-ENV: setuid: run as root, with kernel.perf_event_paranoid 2 and pages of 4 KiB");
	while ((most * 2 + 1) <= free_pages)
		most *= 2;
	over = most * 2 + 1;
	cr_assert_eq(map_as_stranger(most + 1, 0), 0, "%u of %u pages", most + 1, (unsigned)free_pages);
	cr_assert_eq(map_as_stranger(over, 0), EPERM);
	/* The rest is charged to the limit of locked memory. */
	cr_assert_eq(map_as_stranger(over, (over - free_pages) * PAGE), 0);
	cr_assert_eq(map_as_stranger(over, (over - free_pages - 1) * PAGE), EPERM);
}

/* ---- estimates ---- */

Test(control, estimates)
{
	static const struct {
		uint64_t value, enabled, running;
		double estimate, share, margin;
	} CASES[] = {
		{1000, 0, 0, 0, 0, 0},
		{1000, 500, 0, 0, 0, 0},
		{1000, 700, 700, 1000, 1, 0},
		{1000, 700, 701, 1000, 1, 0},
		/* Seen half of the time: 1000 of 2000, each tossed: sqrt(1000 * 0.5) / 0.5 * 1.96. */
		{1000, 200, 100, 2000, 0.5, 87.65386471799175},
		/* A quarter: sqrt(10000 * 0.75) / 0.25 * 1.96. */
		{10000, 4000000000, 1000000000, 40000, 0.25, 678.9638728224192},
		{0, 2, 1, 0, 0.5, 0},
		{1, 3, 2, 1.5, 2.0 / 3, 1.6974097915},
		/* value * enabled is 2^126. */
		{UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 62, 18446744073709551616.0, 0.5, 8418135900.16},
		{UINT64_MAX, UINT64_MAX, 1, 340282366920938463463374607431768211456.0, 5.421010862427522e-20,
		 1.55287e29},
	};

	for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		struct perfring_estimate got =
			perfring_event_estimate(CASES[i].value, CASES[i].enabled, CASES[i].running);

		cr_assert_leq(fabs(got.value - CASES[i].estimate), CASES[i].estimate * 1e-15, "%zu: %.20g", i,
			      got.value);
		cr_assert_leq(fabs(got.share - CASES[i].share), 1e-15, "%zu: %.20g", i, got.share);
		cr_assert_leq(fabs(got.margin - CASES[i].margin), CASES[i].margin * 1e-5, "%zu: %.20g", i, got.margin);
	}
}

/* 95 % of the intervals hold the truth, when occurrences are tossed one by one. */
Test(control, margins_hold)
{
	uint64_t state = 88172645463325252ULL;
	int held = 0;

	for (int round = 0; round < 2000; round++) {
		struct perfring_estimate got;
		uint64_t value = 0;

		for (int i = 0; i < 1000; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			value += (state >> 32) % 10 < 3;
		}
		got = perfring_event_estimate(value, 10, 3);
		held += fabs(got.value - 1000) <= got.margin;
	}
	cr_assert_geq(held, 1860, "%d", held);
	cr_assert_leq(held, 1940, "%d", held);
}
