/* soft_account_test.c - what the kernel accounts to each thread, as events of the process, beside the kernel's events of that thread. */
#include "soft_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <perfring/soft.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft_account, .timeout = 120);

enum {
	PAGE = 4096,
	PAGES = 4000, /* of one turn */
	SWITCHES = 4000,
	MOVES = 300,
};

static const uint64_t configs[] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN,
				   PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_CONTEXT_SWITCHES,
				   PERF_COUNT_SW_CPU_MIGRATIONS};

enum {
	FAULTS,
	MINOR,
	MAJOR,
	SWITCHED,
	MOVED,
	KINDS,
};

static struct perf_event_attr attr_of_task(unsigned kind)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = configs[kind]};

	return attr;
}

/* ---- what a thread does ---- */

static void touch(size_t pages)
{
	unsigned char *region = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED)
		return;
	madvise(region, pages * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		((volatile unsigned char *)region)[i * PAGE] = 1;
	munmap(region, pages * PAGE);
}

static int ping[2], pong[2];

static void *answer(void *unused)
{
	char c;

	while (read(ping[0], &c, 1) == 1 && write(pong[1], &c, 1) == 1)
		;
	return unused;
}

/* Each read waits for the other thread. */
static void be_switched(unsigned times)
{
	pthread_t other;
	char c = 0;

	if (pipe(ping) || pipe(pong) || pthread_create(&other, NULL, answer, NULL))
		return;
	while (times-- && write(ping[1], &c, 1) == 1 && read(pong[0], &c, 1) == 1)
		;
	close(ping[1]);
	pthread_join(other, NULL);
	close(ping[0]);
	close(pong[0]);
	close(pong[1]);
}

static void move(unsigned times)
{
	cpu_set_t all, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2)
		return;
	while (times--) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET((size_t)cpu, &all));
		CPU_ZERO(&one);
		CPU_SET((size_t)cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

static void live(void)
{
	touch(PAGES);
	be_switched(SWITCHES);
	move(MOVES);
}

/* ---- beside the kernel's ---- */

static void open_kernels(int *fds, pid_t tid)
{
	struct perf_event_attr attr;

	for (unsigned i = 0; i < KINDS; i++) {
		attr = attr_of_task(i);
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid -1 or CAP_PERFMON",
				     strerror(errno));
	}
}

static uint64_t read_kernels(int fd)
{
	uint64_t count;

	cr_assert_eq(read(fd, &count, sizeof(count)), 8);
	return count;
}

static void open_ours(struct perfring_soft_event **events, unsigned scope)
{
	struct perf_event_attr attr;

	for (unsigned i = 0; i < KINDS; i++) {
		attr = attr_of_task(i);
		events[i] = open_event(&attr, scope, NULL);
	}
}

/* 3: what the calls between the two reads may add. */
static void compare(const uint64_t *kernels, const uint64_t *ours)
{
	static const char *const names[] = {"faults", "minor", "major", "switches", "migrations"};

	for (unsigned i = 0; i < KINDS; i++) {
		uint64_t most = kernels[i] > ours[i] ? kernels[i] : ours[i], least = kernels[i] + ours[i] - most;

		cr_assert_leq(most - least, most / 100 + 3, "%s: the kernel %lu, we %lu", names[i],
			      (unsigned long)kernels[i], (unsigned long)ours[i]);
	}
}

Test(soft_account, as_the_kernels_events_of_this_thread)
{
	struct perfring_soft_event *events[KINDS];
	uint64_t kernels[KINDS], ours[KINDS];
	int fds[KINDS];

	open_kernels(fds, 0);
	open_ours(events, PERFRING_SOFT_THREAD);
	for (unsigned i = 0; i < KINDS; i++) {
		perfring_soft_reset(events[i], false);
		kernels[i] = read_kernels(fds[i]);
	}
	live();
	for (unsigned i = 0; i < KINDS; i++) {
		ours[i] = value(events[i]);
		kernels[i] = read_kernels(fds[i]) - kernels[i];
	}
	compare(kernels, ours);
	cr_assert_geq(ours[FAULTS], PAGES);
	cr_assert_geq(ours[SWITCHED], SWITCHES / 4);
	for (unsigned i = 0; i < KINDS; i++) {
		perfring_soft_close(events[i]);
		close(fds[i]);
	}
}

/* Pages that the kernel fills by itself, before the thread touches them. */
Test(soft_account, pages_that_a_system_call_fills_are_in_the_account_alone)
{
	struct perf_event_attr attr = attr_of_task(MINOR);
	struct perfring_soft_event *event;
	uint64_t kernels, ours;
	int fds[KINDS];
	void *region;

	open_kernels(fds, 0);
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	kernels = read_kernels(fds[MINOR]);
	ours = value(event);
	region = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(region, MAP_FAILED);
	madvise(region, PAGES * PAGE, MADV_NOHUGEPAGE);
	if (madvise(region, PAGES * PAGE, 23)) /* MADV_POPULATE_WRITE */
		cr_skip_test("SKIP-ENV: madvise: MADV_POPULATE_WRITE: %s: needs Linux 5.14", strerror(errno));
	ours = value(event) - ours;
	kernels = read_kernels(fds[MINOR]) - kernels;
	cr_assert_geq(ours, PAGES);
	cr_assert_leq(kernels, PAGES / 4);
	munmap(region, PAGES * PAGE);
	perfring_soft_close(event);
	for (unsigned i = 0; i < KINDS; i++)
		close(fds[i]);
}

/* ---- of another thread ---- */

struct other {
	uint32_t tid, has_lived;
	int orders[2]; /* a byte each: live, end */
};

static void *live_when_told(void *of)
{
	struct other *other = of;
	char order;

	if (perfring_soft_join())
		return of;
	PERFRING_STORE_RELEASE(&other->tid, (uint32_t)syscall(SYS_gettid));
	if (read(other->orders[0], &order, 1) != 1)
		return of;
	live();
	PERFRING_STORE_RELEASE(&other->has_lived, 1);
	return read(other->orders[0], &order, 1) == 1 ? NULL : of;
}

/* A thread that sets `sign` before it blocks: its counts stand still from then on. */
static void wait_until_blocked(const struct other *other, const uint32_t *sign)
{
	char path[64], state = 0;

	while (!PERFRING_LOAD_ACQUIRE(sign))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", other->tid);
	for (unsigned left = 20000; left && state != 'S'; left--) {
		FILE *file = fopen(path, "r");

		cr_assert_not_null(file, "%s: %s", path, strerror(errno));
		cr_assert_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
		usleep(500);
	}
	cr_assert_eq(state, 'S');
}

/* By /proc, while it lives, and by its own account, when it has left. */
Test(soft_account, as_the_kernels_events_of_another_thread)
{
	struct other other = {0, 0, {-1, -1}};
	struct perfring_soft_event *events[KINDS];
	uint64_t kernels[KINDS], ours[KINDS];
	pthread_t thread;
	int fds[KINDS];
	void *failed;

	cr_assert_eq(pipe(other.orders), 0);
	cr_assert_eq(pthread_create(&thread, NULL, live_when_told, &other), 0);
	wait_until_blocked(&other, &other.tid);
	open_kernels(fds, (pid_t)other.tid);
	for (unsigned i = 0; i < KINDS; i++) {
		struct perf_event_attr attr = attr_of_task(i);

		cr_assert_eq(perfring_soft_open_on(&events[i], &attr, other.tid, NULL), 0);
	}
	cr_assert_eq(write(other.orders[1], "", 1), 1);
	wait_until_blocked(&other, &other.has_lived);
	for (unsigned i = 0; i < KINDS; i++) {
		ours[i] = value(events[i]);
		kernels[i] = read_kernels(fds[i]);
	}
	compare(kernels, ours);
	cr_assert_geq(ours[FAULTS], PAGES);
	cr_assert_eq(write(other.orders[1], "", 1), 1);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	close(other.orders[0]);
	close(other.orders[1]);
	for (unsigned i = 0; i < KINDS; i++) {
		ours[i] = value(events[i]);
		kernels[i] = read_kernels(fds[i]);
	}
	compare(kernels, ours);
	for (unsigned i = 0; i < KINDS; i++) {
		perfring_soft_close(events[i]);
		close(fds[i]);
	}
}

/* ---- without the kernel's ---- */

static void *touch_and_leave(void *of)
{
	if (perfring_soft_join())
		return of;
	touch(PAGES);
	return NULL;
}

Test(soft_account, counts_while_it_is_on)
{
	struct perfring_soft_event *events[KINDS], *mine;
	struct perf_event_attr attr = attr_of_task(FAULTS);
	uint64_t before, words[3];
	pthread_t thread;
	void *failed;

	open_ours(events, PERFRING_SOFT_PROCESS);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, touch_and_leave, events), 0);
		pthread_join(thread, &failed);
		cr_assert_null(failed);
	}
	cr_assert_geq(value(events[MINOR]), 3 * PAGES);
	if (!IS_SANITIZED) /* which writes shadow pages beside */
		cr_assert_leq(value(events[MINOR]), 3 * PAGES + 2000);
	cr_assert_geq(value(events[FAULTS]), value(events[MINOR]));
	perfring_soft_disable(events[FAULTS], false);
	before = value(events[FAULTS]);
	touch(PAGES);
	cr_assert_eq(value(events[FAULTS]), before);
	perfring_soft_enable(events[FAULTS], false);
	touch(PAGES);
	cr_assert_geq(value(events[FAULTS]), before + PAGES);
	if (!IS_SANITIZED)
		cr_assert_leq(value(events[FAULTS]), before + PAGES + 500);

	/* In a group, and with times. */
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	mine = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	touch(PAGES);
	cr_assert_eq(perfring_soft_read(mine, words, sizeof(words)), 24);
	cr_assert(words[0] >= PAGES && words[1] > 0 && words[1] == words[2]);
	perfring_soft_close(mine);
	for (unsigned i = 0; i < KINDS; i++)
		perfring_soft_close(events[i]);
}

/* A sampling point in a group with accounts: a raise reads them, also in a handler on a small stack. */
static struct perfring_soft_point *point;

static void on_signal(int number)
{
	(void)number;
	perfring_soft_raise(point, 1, 0, NULL, 0);
}

Test(soft_account, samples_of_a_group_have_them)
{
	static unsigned char stack[16384];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	struct perfring_soft_event *leader, *events[KINDS];
	struct perf_event_attr attr;
	const struct perf_event_header *record;
	struct perfring_set_ring *ring;
	uint64_t words[2][2 + KINDS];

	point = perfring_soft_define("soft_account");
	attr = attr_of(point);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	leader = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	for (unsigned i = 0; i < KINDS; i++) {
		attr = attr_of_task(i);
		attr.read_format = PERF_FORMAT_GROUP;
		events[i] = open_event(&attr, PERFRING_SOFT_THREAD, leader);
	}
	cr_assert_eq(perfring_soft_map(leader, 1, -1), 0);
	if (!IS_SANITIZED)
		cr_assert_eq(sigaltstack(&alternate, NULL), 0);
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	live();
	errno = 77;
	raise(SIGUSR1);
	cr_assert_eq(errno, 77);
	ring = perfring_set_next(perfring_soft_rings(leader), NULL);
	cr_assert_gt(perfring_reader_observe(&ring->reader), 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(perfring_reader_next(&ring->reader, &record), 1);
		cr_assert_eq(record->size, 8 + sizeof(words[0]));
		memcpy(words[i], record + 1, sizeof(words[i]));
		cr_assert(words[i][0] == 1 + KINDS && words[i][1] == i + 1);
	}
	perfring_reader_return(&ring->reader);
	cr_assert_geq(words[1][2 + FAULTS] - words[0][2 + FAULTS], PAGES);
	cr_assert_geq(words[1][2 + SWITCHED] - words[0][2 + SWITCHED], SWITCHES / 4);
	for (unsigned i = 0; i < KINDS; i++)
		perfring_soft_close(events[i]);
	perfring_soft_close(leader);
}
