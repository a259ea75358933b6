/* counts_test.c - counting sets: opened as one, read as one, summed as asked, and what cannot be read is told. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/count.h>
#include "machine.h"

TestSuite(counts, .timeout = 60);

#define PLAIN __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

/* Faults exactly `pages` times in user space: a sanitizer's own memory would add to it. */
PLAIN static void touch(uint32_t pages)
{
	long size = sysconf(_SC_PAGESIZE);
	volatile char *memory =
		mmap(NULL, pages * (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)memory, pages * (size_t)size, MADV_NOHUGEPAGE);
	for (uint32_t i = 0; i < pages; i++)
		memory[i * size] = 1;
	munmap((void *)memory, pages * (size_t)size);
}

static struct perfring_events *list_of(const char *text, bool inherit)
{
	struct perf_event_attr base = {.size = sizeof(base), .disabled = 1, .inherit = inherit};
	struct perfring_fault fault = {0, ""};
	struct perfring_events *events;

	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add(events, text, &base, &fault), 0, "%s: %s", text, fault.what);
	return events;
}

static struct perfring_target *target_of(int32_t tid)
{
	struct perfring_target *target;

	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, tid), 0);
	return target;
}

/* A set with these events of the calling thread, disabled. */
static struct perfring_counts *counts_of(const char *text, bool inherit)
{
	struct perfring_events *events = list_of(text, inherit);
	struct perfring_target *target = target_of((int32_t)gettid());
	struct perfring_counts *counts;
	int ret;

	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", perfring_counts_refusal(counts));
	cr_assert_eq(ret, 0, "%s: %s", text, perfring_counts_refusal(counts));
	cr_assert_str_eq(perfring_counts_refusal(counts), "");
	/* They hold what they need. */
	perfring_events_close(events);
	perfring_target_close(target);
	touch(1);
	return counts;
}

static struct perfring_count sum_of(const struct perfring_counts *counts, uint32_t event)
{
	struct perfring_count sum;

	cr_assert_eq(perfring_counts_sum(counts, event, PERFRING_COUNTS_ALL, 0, &sum), 0);
	return sum;
}

/* ---- one thread ---- */

Test(counts, only_while_enabled)
{
	struct perfring_counts *counts = counts_of("page-faults:u,task-clock:u", false);
	struct perfring_count sum;

	cr_assert_eq(perfring_counts_count(counts), 2);
	cr_assert_eq(perfring_counts_attr(counts, 1)->config, PERF_COUNT_SW_TASK_CLOCK);
	cr_assert_null(perfring_counts_attr(counts, 2));
	touch(7);
	cr_assert_eq(perfring_counts_enable(counts), 0);
	touch(19);
	cr_assert_eq(perfring_counts_disable(counts), 0);
	touch(5);
	cr_assert_eq(sum_of(counts, 0).fds, 0, "nothing was read");
	cr_assert_eq(perfring_counts_read(counts), 0);
	sum = sum_of(counts, 0);
	cr_assert_eq(sum.value, 19, "%lu", (unsigned long)sum.value);
	cr_assert_eq(sum.fds, 1);
	cr_assert_eq(sum.failed, 0);
	cr_assert_eq(sum.lost, 0);
	cr_assert_gt(sum.enabled, 0);
	cr_assert_eq(sum.running, sum.enabled);
	cr_assert_gt(sum_of(counts, 1).value, 0);
	cr_assert_eq(perfring_counts_sum(counts, 2, PERFRING_COUNTS_ALL, 0, &sum), -EINVAL);
	cr_assert_eq(perfring_counts_sum(counts, 0, PERFRING_COUNTS_CPU, 0, &sum), -ENOENT);
	cr_assert_eq(perfring_counts_sum(counts, 0, PERFRING_COUNTS_THREAD, 1, &sum), -ENOENT);
	cr_assert_eq(perfring_counts_sum(counts, 0, PERFRING_COUNTS_THREAD, (int32_t)gettid(), &sum), 0);
	cr_assert_eq(sum.value, 19);
	perfring_counts_close(counts);
	perfring_counts_close(NULL);
}

Test(counts, reset_leaves_the_times)
{
	struct perfring_counts *counts = counts_of("page-faults:u,{minor-faults:u,page-faults:u}", false);
	uint64_t enabled;

	cr_assert_eq(perfring_counts_enable(counts), 0);
	touch(11);
	cr_assert_eq(perfring_counts_disable(counts), 0);
	perfring_counts_read(counts);
	enabled = sum_of(counts, 0).enabled;
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(sum_of(counts, i).value, 11, "event %u", i);
	cr_assert_eq(perfring_counts_reset(counts), 0);
	perfring_counts_read(counts);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(sum_of(counts, i).value, 0, "event %u", i);
	cr_assert_eq(sum_of(counts, 0).enabled, enabled);
	perfring_counts_close(counts);
}

/* ---- groups ---- */

Test(counts, groups_stay_together_among_others)
{
	/* The list wants every event disabled, members too: ENABLE of their leader would leave them (docs/abi.md trap 32). */
	struct perfring_counts *counts = counts_of(
		"task-clock:u,{page-faults:u,major-faults:u,minor-faults:u},{minor-faults:u,dummy:u},page-faults:u",
		false);
	static const uint64_t WANTED[] = {0, 23, 0, 23, 23, 0, 23};
	struct perfring_counts_fd fd;

	cr_assert_eq(perfring_counts_count(counts), 7);
	cr_assert_eq(perfring_counts_enable(counts), 0);
	touch(23);
	cr_assert_eq(perfring_counts_disable(counts), 0);
	cr_assert_eq(perfring_counts_read(counts), 0);
	for (uint32_t i = 1; i < 7; i++) {
		cr_assert_eq(sum_of(counts, i).value, WANTED[i], "event %u: %lu", i,
			     (unsigned long)sum_of(counts, i).value);
		cr_assert_eq(sum_of(counts, i).fds, 1);
	}
	cr_assert_eq(sum_of(counts, 1).enabled, sum_of(counts, 3).enabled, "one read, one time");
	cr_assert_eq(perfring_counts_attr(counts, 0)->read_format & PERF_FORMAT_GROUP, 0);
	cr_assert_neq(perfring_counts_attr(counts, 1)->read_format & PERF_FORMAT_GROUP, 0);
	for (uint32_t i = 0; i < 7; i++) {
		uint64_t id;

		cr_assert_eq(perfring_counts_at(counts, i, &fd), 1);
		cr_assert_eq(fd.event, i);
		cr_assert_eq(fd.tid, (int32_t)gettid());
		cr_assert_eq(fd.cpu, -1);
		cr_assert_eq(perfring_event_id(fd.fd, &id), 0);
		cr_assert_eq(fd.id, id);
		cr_assert_neq(fcntl(fd.fd, F_GETFD) & FD_CLOEXEC, 0);
	}
	cr_assert_eq(perfring_counts_at(counts, 7, &fd), 0);
	perfring_counts_close(counts);
}

Test(counts, a_group_of_dead_children)
{
	struct perfring_counts *counts = counts_of("{page-faults:u,minor-faults:u,major-faults:u},page-faults:u", true);
	uint64_t own;

	cr_assert_eq(perfring_counts_enable(counts), 0);
	perfring_counts_read(counts);
	own = sum_of(counts, 0).value;
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (!pid) {
			touch(50);
			syscall(SYS_exit_group, 0);
		}
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
	}
	cr_assert_eq(perfring_counts_disable(counts), 0);
	perfring_counts_read(counts);
	/* Children copy pages of the parent's besides. */
	cr_assert_geq(sum_of(counts, 0).value - own, 100 * 50);
	cr_assert_eq(sum_of(counts, 0).value, sum_of(counts, 1).value + sum_of(counts, 2).value);
	cr_assert_eq(sum_of(counts, 0).value, sum_of(counts, 3).value);
	cr_assert_eq(sum_of(counts, 0).failed, 0);
	perfring_counts_close(counts);
}

/* ---- several threads and CPUs ---- */

struct worker {
	pthread_t thread;
	pthread_barrier_t *barrier;
	uint32_t pages;
	int32_t tid;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	worker->tid = (int32_t)gettid();
	touch(1);
	pthread_barrier_wait(worker->barrier); /* tid is known */
	pthread_barrier_wait(worker->barrier); /* counters run */
	touch(worker->pages);
	pthread_barrier_wait(worker->barrier); /* they may be stopped */
	pthread_barrier_wait(worker->barrier);
	return NULL;
}

Test(counts, threads_one_by_one_and_all)
{
	struct perfring_events *events = list_of("{minor-faults:u,page-faults:u},page-faults:u", false);
	struct worker workers[3] = {{.pages = 10}, {.pages = 200}, {.pages = 3000}};
	struct perfring_target *target;
	struct perfring_counts *counts;
	struct perfring_count sum;
	pthread_barrier_t barrier;
	struct perfring_counts_fd fd;
	uint32_t fds = 0;
	int ret;

	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++) {
		workers[i].barrier = &barrier;
		cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	pthread_barrier_wait(&barrier);
	cr_assert_eq(perfring_target_open(&target), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(perfring_target_add_thread(target, workers[i].tid), 0);
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", perfring_counts_refusal(counts));
	cr_assert_eq(ret, 0, "%s", perfring_counts_refusal(counts));
	cr_assert_eq(perfring_counts_enable(counts), 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	while (perfring_counts_at(counts, fds, &fd)) {
		cr_assert_eq(fd.tid, workers[fds / 3].tid, "place by place");
		cr_assert_eq(fd.event, fds % 3);
		fds++;
	}
	cr_assert_eq(fds, 9);
	/* A thread's barrier may fault once more, on its stack. */
	for (uint32_t event = 0; event < 3; event++) {
		uint64_t all = 0;

		for (int i = 0; i < 3; i++) {
			cr_assert_eq(perfring_counts_sum(counts, event, PERFRING_COUNTS_THREAD, workers[i].tid, &sum),
				     0);
			cr_assert_geq(sum.value, workers[i].pages);
			cr_assert_lt(sum.value, workers[i].pages + 9);
			cr_assert_eq(sum.fds, 1);
			all += sum.value;
		}
		sum = sum_of(counts, event);
		cr_assert_eq(sum.value, all);
		cr_assert_eq(sum.fds, 3);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	/* What the dead counted stays. */
	cr_assert_eq(perfring_counts_read(counts), 0);
	cr_assert_geq(sum_of(counts, 2).value, 3210);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
	pthread_barrier_destroy(&barrier);
}

Test(counts, cpus_one_by_one)
{
	struct perfring_events *events = list_of("page-faults:u,{minor-faults:u,page-faults:u}", false);
	struct perfring_target *target = target_of((int32_t)gettid());
	struct perfring_counts *counts;
	struct perfring_count sum;
	cpu_set_t before, set;
	int32_t cpus[2] = {-1, -1};
	uint32_t fds = 0, online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct perfring_counts_fd fd;
	int ret;

	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", perfring_counts_refusal(counts));
	cr_assert_eq(ret, 0, "%s", perfring_counts_refusal(counts));
	sched_getaffinity(0, sizeof(before), &before);
	for (size_t cpu = 0, found = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &before))
			cpus[found++] = (int32_t)cpu;
	if (cpus[1] < 0)
		cr_skip_test("SKIP-ENV: sched_getaffinity: one CPU: a machine with two");
	touch(1);
	for (int i = 0; i < 2; i++) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpus[i], &set);
		cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
		cr_assert_eq(perfring_counts_enable(counts), 0);
		touch(i ? 400 : 30);
		cr_assert_eq(perfring_counts_disable(counts), 0);
	}
	perfring_counts_read(counts);
	while (perfring_counts_at(counts, fds, &fd))
		fds++;
	cr_assert_eq(fds, 3 * online);
	for (uint32_t event = 0; event < 3; event++) {
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(perfring_counts_sum(counts, event, PERFRING_COUNTS_CPU, cpus[i], &sum), 0);
			cr_assert_eq(sum.value, i ? 400 : 30, "CPU %d: %lu", cpus[i], (unsigned long)sum.value);
		}
		cr_assert_eq(sum_of(counts, event).value, 430);
		cr_assert_eq(sum_of(counts, event).fds, online);
	}
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

/* ---- what does not open ---- */

static void *note_tid(void *tid)
{
	*(int32_t *)tid = (int32_t)gettid();
	return NULL;
}

/* The number of a thread that was. */
static int32_t dead_thread(void)
{
	int32_t tid = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, note_tid, &tid), 0);
	pthread_join(thread, NULL);
	return tid;
}

Test(counts, the_dead_are_passed_over)
{
	struct perfring_counts *counts = counts_of("page-faults:u", false);
	struct perfring_events *events = list_of("{page-faults:u,minor-faults:u}", false);
	struct perfring_target *target = target_of(dead_thread());
	struct perfring_counts_fd fd;
	uint64_t files = open_files();

	cr_assert_eq(perfring_counts_add(counts, events, target), -ESRCH);
	cr_assert_not_null(strstr(perfring_counts_refusal(counts), "no thread"), "%s", perfring_counts_refusal(counts));
	cr_assert_eq(perfring_counts_count(counts), 1);
	cr_assert_eq(open_files(), files);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)gettid()), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
	cr_assert_str_eq(perfring_counts_refusal(counts), "", "nothing was given up");
	cr_assert_eq(perfring_counts_count(counts), 3);
	cr_assert_eq(open_files(), files + 2);
	cr_assert_eq(perfring_counts_at(counts, 1, &fd), 1);
	cr_assert_eq(fd.event, 1);
	cr_assert_eq(fd.tid, (int32_t)gettid());
	perfring_counts_enable(counts);
	touch(6);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(sum_of(counts, i).value, 6);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

Test(counts, what_fails_leaves_nothing)
{
	struct perfring_counts *counts = counts_of("page-faults:u", false);
	struct perfring_events *events = list_of("{page-faults:u,minor-faults:u},page-faults:u", false);
	struct perf_event_attr stranger = {.type = 0x7ffffffe, .size = sizeof(stranger)};
	struct perfring_target *target = target_of((int32_t)gettid()), *nobody;
	struct perfring_events *none;
	uint64_t files = open_files();

	cr_assert_eq(perfring_events_add_attr(events, &stranger, "stranger", false), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), -ENOENT);
	cr_assert_not_null(strstr(perfring_counts_refusal(counts), "no PMU"), "%s", perfring_counts_refusal(counts));
	cr_assert_eq(open_files(), files);
	cr_assert_eq(perfring_counts_count(counts), 1);
	cr_assert_eq(perfring_events_open(&none), 0);
	cr_assert_eq(perfring_counts_add(counts, none, target), -EINVAL);
	cr_assert_neq(*perfring_counts_refusal(counts), 0);
	cr_assert_eq(perfring_target_open(&nobody), 0);
	cr_assert_eq(perfring_counts_add(counts, events, nobody), -EINVAL);
	cr_assert_not_null(strstr(perfring_counts_refusal(counts), "neither a thread nor a CPU"));
	/* The one that was there still counts. */
	perfring_counts_enable(counts);
	touch(6);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	cr_assert_eq(sum_of(counts, 0).value, 6);
	perfring_counts_close(counts);
	cr_assert_eq(open_files(), files - 1);
	perfring_events_close(none);
	perfring_events_close(events);
	perfring_target_close(nobody);
	perfring_target_close(target);
}

Test(counts, more_files_than_the_soft_limit)
{
	struct perfring_counts *counts = counts_of("page-faults:u", false);
	struct perfring_events *events = list_of("page-faults:u", false);
	struct perfring_target *target = target_of((int32_t)gettid());
	struct rlimit limit = {open_files() + 10, 200};
	char number[16];

	for (int i = 1; i < 40; i++)
		cr_assert_eq(
			perfring_events_add_attr(events, perfring_events_at(events, 0)->attr, "page-faults:u", false),
			0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
	cr_assert_eq(perfring_counts_count(counts), 41);
	/* As far as the hard limit goes, and no further. */
	for (int i = 40; i < 250; i++)
		cr_assert_eq(
			perfring_events_add_attr(events, perfring_events_at(events, 0)->attr, "page-faults:u", false),
			0);
	cr_assert_eq(perfring_counts_add(counts, events, target), -EMFILE);
	snprintf(number, sizeof(number), "%d", 200);
	cr_assert_not_null(strstr(perfring_counts_refusal(counts), number), "%s", perfring_counts_refusal(counts));
	cr_assert_eq(perfring_counts_count(counts), 41);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

/* A hardware event that this machine does not have; -1: it has them all, or none may be opened. */
static int missing_hardware(void)
{
	for (int config = PERF_COUNT_HW_REF_CPU_CYCLES; config >= 0; config--) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .config = (uint32_t)config};
		int fd = perfring_event_open(&attr, 0, -1, -1, 0);

		if (fd == -ENOENT)
			return config;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

Test(counts, what_was_given_up_is_told)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .disabled = 1};
	struct perfring_target *target = target_of((int32_t)gettid());
	struct perfring_events *events;
	struct perfring_counts *counts;
	int config = missing_hardware();

	if (config < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: a hardware event that is ENOENT");
	attr.config = (uint32_t)config;
	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add_attr(events, &attr, "missing", false), 0);
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), -ENOENT);
	cr_assert_not_null(strstr(perfring_counts_refusal(counts), "hardware counter"), "%s",
			   perfring_counts_refusal(counts));
	perfring_counts_close(counts);
	/* A clock is no count of it. */
	cr_assert_eq(perfring_counts_open(&counts, PERFRING_FALLBACK_ALL & ~PERFRING_FALLBACK_MISSING), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), -ENOENT);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

/* An event of a PMU that no machine has: ENOENT. */
static void add_missing(struct perfring_events *events, bool joins)
{
	struct perf_event_attr attr = {.type = 0x7ffffffe, .size = sizeof(attr), .disabled = 1};

	cr_assert_eq(perfring_events_add_attr(events, &attr, "missing", joins), 0);
}

static void add_faults(struct perfring_events *events, bool joins)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .disabled = 1};

	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.exclude_kernel = attr.exclude_hv = 1;
	cr_assert_eq(perfring_events_add_attr(events, &attr, "page-faults:u", joins), 0);
}

/* What is missing is told event by event, and the others count: one alone, a group's member, a group's leader, on each of
 * several threads and CPUs. */
Test(counts, what_is_missing_leaves_the_others)
{
	/* "{faults,missing,faults},missing,faults,{missing,faults}" */
	static const bool MISSING[] = {false, true, false, true, false, true, true};
	struct perfring_events *events = list_of("{page-faults:u}", false);
	struct perfring_counts *counts;
	struct perfring_counts_fd fd;
	char text[512];

	add_missing(events, true);
	add_faults(events, true);
	add_missing(events, false);
	add_faults(events, false);
	add_missing(events, false);
	add_faults(events, true);
	for (int places = 0; places < 3; places++) {
		struct perfring_target *target = target_of((int32_t)gettid());
		uint64_t files = open_files();
		uint32_t fds = 0, cpus = 1;

		if (places == 1)
			cr_assert_eq(perfring_target_add_thread(target, (int32_t)getppid()), 0);
		if (places == 2) {
			cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
			cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
		}
		cr_assert_eq(perfring_counts_open(&counts, 0), 0);
		cr_assert_eq(perfring_counts_add(counts, events, target), -ENOENT, "nothing may be given up");
		perfring_counts_close(counts);
		cr_assert_eq(perfring_counts_open(&counts, PERFRING_FALLBACK_MISSING), 0);
		cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
		cr_assert_str_eq(perfring_counts_refusal(counts), "");
		cr_assert_eq(perfring_counts_count(counts), 7);
		touch(1);
		cr_assert_eq(perfring_counts_enable(counts), 0);
		touch(23);
		cr_assert_eq(perfring_counts_disable(counts), 0);
		cr_assert_eq(perfring_counts_read(counts), 0);
		while (perfring_counts_at(counts, fds, &fd))
			fds++;
		cr_assert_eq(fds, 3 * cpus * (places == 1 ? 2 : 1));
		for (uint32_t i = 0; i < 7; i++) {
			struct perfring_count sum;
			int ret = perfring_counts_sum(counts, i, PERFRING_COUNTS_ALL, 0, &sum);

			cr_assert_eq(perfring_counts_error(counts, i), MISSING[i] ? -ENOENT : 0, "%u", i);
			cr_assert_eq(perfring_counts_given_up(counts, i), 0);
			cr_assert_eq(ret, MISSING[i] ? -ENOENT : 0, "%u", i);
			cr_assert(MISSING[i] ||
				  perfring_counts_sum(counts, i, PERFRING_COUNTS_THREAD, (int32_t)gettid(), &sum) == 0);
			cr_assert(MISSING[i] || sum.value == 23, "%u: %lu", i, (unsigned long)sum.value);
			cr_assert_eq(perfring_counts_explain(counts, i, text, sizeof(text)), (int64_t)strlen(text));
			cr_assert_eq(*text != 0, MISSING[i], "%u: %s", i, text);
		}
		cr_assert_eq(perfring_counts_error(counts, 7), -EINVAL);
		cr_assert_eq(perfring_counts_explain(counts, 7, text, sizeof(text)), 0);
		perfring_counts_explain(counts, 3, text, sizeof(text));
		cr_assert_not_null(strstr(text, "no PMU"), "%s", text);
		perfring_counts_explain(counts, 6, text, sizeof(text));
		cr_assert_not_null(strstr(text, "leader"), "%s", text);
		perfring_counts_close(counts);
		cr_assert_eq(open_files(), files);
		perfring_target_close(target);
	}
	perfring_events_close(events);
}

/* All of them missing is no error; a thread that is gone is. */
Test(counts, nothing_of_it_is_there)
{
	struct perfring_target *target = target_of((int32_t)gettid()), *gone = target_of(0x3fffffff);
	struct perfring_events *events;
	struct perfring_counts *counts;
	struct perfring_counts_fd fd;

	cr_assert_eq(perfring_events_open(&events), 0);
	add_missing(events, false);
	cr_assert_eq(perfring_counts_open(&counts, PERFRING_FALLBACK_ALL), 0);
	cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
	cr_assert_eq(perfring_counts_at(counts, 0, &fd), 0);
	cr_assert_eq(perfring_counts_error(counts, 0), -ENOENT);
	cr_assert_eq(perfring_counts_enable(counts), 0);
	cr_assert_eq(perfring_counts_read(counts), 0);
	cr_assert_eq(perfring_counts_disable(counts), 0);
	add_faults(events, false);
	cr_assert_eq(perfring_counts_add(counts, events, gone), -ESRCH);
	cr_assert_eq(perfring_counts_count(counts), 1);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(gone);
	perfring_target_close(target);
}

/* As a user who may not see the kernel: what is missing in user space too is missing, what is of the kernel alone refuses
 * the list. */
Test(counts, missing_for_nobody)
{
	int paranoid = (int)number_in("/proc/sys/kernel/perf_event_paranoid"), status = -1;
	pid_t child;

	if (geteuid() || paranoid != 2)
		cr_skip_test("SKIP-ENV: setuid: run as root, with kernel.perf_event_paranoid 2");
	child = fork();
	if (child == 0) {
		struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};
		struct perf_event_attr missing = {.type = 0x7ffffffe, .size = sizeof(missing)};
		struct perfring_target *target;
		struct perfring_events *events;
		struct perfring_counts *counts;
		char text[512];

		if (setgid(65534) || setuid(65534) || perfring_target_open(&target) ||
		    perfring_target_add_thread(target, (int32_t)gettid()) || perfring_events_open(&events) ||
		    perfring_events_add_attr(events, &missing, "missing", false) ||
		    perfring_events_add_attr(events, &attr, "cpu-clock", false) ||
		    perfring_counts_open(&counts, PERFRING_FALLBACK_ALL))
			_exit(100);
		if (perfring_counts_add(counts, events, target))
			_exit(1);
		if (perfring_counts_error(counts, 0) != -ENOENT || perfring_counts_error(counts, 1))
			_exit(2);
		if (perfring_counts_given_up(counts, 0) != PERFRING_FALLBACK_EXCLUDE_KERNEL ||
		    perfring_counts_given_up(counts, 1) != PERFRING_FALLBACK_EXCLUDE_KERNEL)
			_exit(3);
		if (*perfring_counts_refusal(counts)) /* add did not fail */
			_exit(7);
		perfring_counts_explain(counts, 0, text, sizeof(text));
		if (!strstr(text, "no PMU"))
			_exit(4);
		perfring_counts_explain(counts, 1, text, sizeof(text));
		if (!strstr(text, "user space only") || !perfring_counts_attr(counts, 1)->exclude_kernel)
			_exit(5);
		attr.exclude_user = 1;
		if (perfring_events_add_attr(events, &attr, "cpu-clock:k", false) ||
		    perfring_counts_add(counts, events, target) != -EACCES || perfring_counts_count(counts) != 2 ||
		    !strstr(perfring_counts_refusal(counts), "leaves out user space"))
			_exit(6);
		perfring_counts_close(counts);
		perfring_events_close(events);
		perfring_target_close(target);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", WEXITSTATUS(status));
}

/* Threads that come and go all the while: none of them is an error. */
static void *live(void *unused)
{
	struct timespec time = {0, 3000000};

	nanosleep(&time, NULL);
	return unused;
}

static void *breed(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		pthread_t threads[8];
		int32_t tids[8];
		int count = 0;

		while (count < 8 && !pthread_create(&threads[count], NULL, count % 2 ? live : note_tid, &tids[count]))
			count++;
		while (count)
			pthread_join(threads[--count], NULL);
	}
	return NULL;
}

Test(counts, threads_that_are_born_and_die_meanwhile)
{
	struct perfring_counts *counts = counts_of("page-faults:u", false);
	struct perfring_events *events = list_of("{page-faults:u,minor-faults:u},dummy:u", true);
	uint64_t before = open_files();
	pthread_t breeders[2];
	int stop = 0;

	perfring_counts_close(counts);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&breeders[i], NULL, breed, &stop), 0);
	for (int i = 0; i < 300; i++) {
		struct perfring_target *target;

		cr_assert_eq(perfring_target_open(&target), 0);
		cr_assert_eq(perfring_target_add_process(target, (int32_t)getpid()), 0);
		cr_assert_eq(perfring_counts_open(&counts, 0), 0);
		cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
		cr_assert_eq(perfring_counts_enable(counts), 0);
		cr_assert_eq(perfring_counts_disable(counts), 0);
		cr_assert_eq(perfring_counts_read(counts), 0);
		for (uint32_t event = 0; event < 3; event++) {
			cr_assert_eq(sum_of(counts, event).failed, 0);
			cr_assert_eq(sum_of(counts, event).fds, sum_of(counts, 0).fds,
				     "each thread wholly or not at all");
		}
		perfring_counts_close(counts);
		perfring_target_close(target);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(breeders[i], NULL);
	cr_assert_eq(open_files(), before - 1);
	perfring_events_close(events);
}

/* Longer than a read waits for it. */
static void *live_long(void *unused)
{
	struct timespec time = {0, 80000000};

	nanosleep(&time, NULL);
	return unused;
}

static void *bear(void *argument)
{
	enum {
		MOST = 512
	};
	struct worker *worker = argument;
	pthread_t threads[MOST];
	uint32_t born = 0, gone = 0;

	worker->tid = (int32_t)gettid();
	pthread_barrier_wait(worker->barrier);
	while (!__atomic_load_n(&worker->pages, __ATOMIC_RELAXED)) {
		if (born - gone < MOST && !pthread_create(&threads[born % MOST], NULL, live_long, NULL))
			born++;
		else if (gone < born)
			pthread_join(threads[gone++ % MOST], NULL);
	}
	while (gone < born)
		pthread_join(threads[gone++ % MOST], NULL);
	return NULL;
}

/* A child that is born between the opening of a leader and that of its last member has half a group, and for as long
 * as it lives the whole cannot be read (ECHILD): such a group is opened again. */
Test(counts, half_a_group_is_inherited)
{
	struct perfring_counts *counts = counts_of("page-faults:u", false);
	struct perfring_events *events = list_of("{page-faults:u,dummy:u,dummy:u,dummy:u,dummy:u,dummy:u}", true);
	struct timespec start, time;
	struct worker worker = {0};
	pthread_barrier_t barrier;

	perfring_counts_close(counts);
	pthread_barrier_init(&barrier, NULL, 2);
	worker.barrier = &barrier;
	cr_assert_eq(pthread_create(&worker.thread, NULL, bear, &worker), 0);
	pthread_barrier_wait(&barrier);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		struct perfring_target *target = target_of(worker.tid);

		cr_assert_eq(perfring_counts_open(&counts, 0), 0);
		cr_assert_eq(perfring_counts_add(counts, events, target), 0, "%s", perfring_counts_refusal(counts));
		perfring_counts_read(counts);
		cr_assert_eq(sum_of(counts, 0).failed, 0);
		perfring_counts_close(counts);
		perfring_target_close(target);
		clock_gettime(CLOCK_MONOTONIC, &time);
	} while (time.tv_sec - start.tv_sec < 2);
	__atomic_store_n(&worker.pages, 1, __ATOMIC_RELAXED);
	pthread_join(worker.thread, NULL);
	pthread_barrier_destroy(&barrier);
	perfring_events_close(events);
}

Test(counts, members_of_a_cgroup)
{
	struct perfring_events *events = list_of("{page-faults:u,page-faults:u}", false);
	uint32_t online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct perfring_target *target;
	struct perfring_counts *counts;
	struct perfring_count sum;
	int ret;

	cr_assert_eq(perfring_target_open(&target), 0);
	ret = perfring_target_add_cgroup(target, "");
	cr_assert_eq(ret, -EINVAL);
	ret = perfring_target_add_cgroup(target, ".");
	if (ret)
		cr_skip_test("SKIP-ENV: cgroup: %s: a cgroup2 mount", strerror(-ret));
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOENT || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", perfring_counts_refusal(counts));
	cr_assert_eq(ret, 0, "%s", perfring_counts_refusal(counts));
	perfring_counts_enable(counts);
	touch(77);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	/* Everybody is in the root.  Whoever faults meanwhile, a group starts and stops at one moment. */
	cr_assert_geq(sum_of(counts, 0).value, 77);
	cr_assert_eq(sum_of(counts, 0).value, sum_of(counts, 1).value);
	cr_assert_eq(sum_of(counts, 1).fds, online);
	cr_assert_eq(perfring_counts_sum(counts, 0, PERFRING_COUNTS_CPU, 0, &sum), 0);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

/* ---- what cannot be read ---- */

/* An event in error state reads as end of file, as /dev/null does. */
static void put_into_error(const struct perfring_counts *counts, uint32_t i)
{
	struct perfring_counts_fd fd;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	cr_assert_eq(perfring_counts_at(counts, i, &fd), 1);
	cr_assert_eq(dup2(null, fd.fd), fd.fd);
	close(null);
}

Test(counts, in_error_state)
{
	struct perfring_counts *counts = counts_of("page-faults:u,{page-faults:u,minor-faults:u},page-faults:u", false);

	perfring_counts_enable(counts);
	touch(12);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	cr_assert_eq(sum_of(counts, 2).value, 12);
	put_into_error(counts, 0);
	put_into_error(counts, 1);
	cr_assert_eq(perfring_counts_read(counts), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct perfring_count sum = sum_of(counts, i);

		cr_assert_eq(sum.failed, 1, "event %u", i);
		cr_assert_eq(sum.fds, 0);
		cr_assert_eq(sum.value, 0, "what an earlier read said is not handed out");
		cr_assert_eq(sum.enabled, 0);
		cr_assert_eq(sum.running, 0);
	}
	cr_assert_eq(sum_of(counts, 3).value, 12);
	cr_assert_eq(sum_of(counts, 3).failed, 0);
	perfring_counts_close(counts);
}

/* More pinned hardware events than the processor has counters: those that find no space are in error state. */
Test(counts, pinned_without_room)
{
	struct perfring_events *events = list_of("cycles:uD", false);
	struct perfring_target *target = target_of((int32_t)gettid());
	struct perfring_counts *counts;
	uint32_t failed = 0, read = 0;
	int ret;

	for (int i = 1; i < 40; i++)
		cr_assert_eq(perfring_events_add_attr(events, perfring_events_at(events, 0)->attr, "cycles:uD", false),
			     0);
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: a hardware PMU", perfring_counts_refusal(counts));
	perfring_counts_enable(counts);
	for (volatile uint64_t i = 0; i < 20000000; i++)
		;
	perfring_counts_read(counts);
	for (uint32_t i = 0; i < 40; i++) {
		failed += sum_of(counts, i).failed;
		read += sum_of(counts, i).fds;
		cr_assert(sum_of(counts, i).failed || sum_of(counts, i).running == sum_of(counts, i).enabled,
			  "pinned is never shared");
	}
	cr_assert_eq(failed + read, 40);
	cr_assert_gt(failed, 0);
	cr_assert_gt(read, 0);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}

Test(counts, lost_records)
{
	long page = sysconf(_SC_PAGESIZE);
	struct perf_event_attr base = {.size = sizeof(base), .disabled = 1, .sample_period = 1};
	struct perfring_target *target = target_of((int32_t)gettid());
	struct perfring_events *events;
	struct perfring_counts *counts;
	struct perfring_counts_fd fd;
	void *ring;
	int ret;

	base.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	cr_assert_eq(perfring_events_open(&events), 0);
	cr_assert_eq(perfring_events_add(events, "page-faults:u,dummy:u", &base, NULL), 0);
	cr_assert_eq(perfring_counts_open(&counts, 0), 0);
	ret = perfring_counts_add(counts, events, target);
	if (ret)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", perfring_counts_refusal(counts));
	if (!(perfring_counts_attr(counts, 0)->read_format & 16))
		cr_skip_test("SKIP-ENV: FORMAT_LOST: EINVAL: Linux 6.0");
	cr_assert_eq(perfring_counts_at(counts, 0, &fd), 1);
	ring = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd.fd, 0);
	if (ring == MAP_FAILED)
		cr_skip_test("SKIP-ENV: mmap: %s: buffer in kernel.perf_event_mlock_kb", strerror(errno));
	touch(1);
	perfring_counts_enable(counts);
	touch(300);
	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	cr_assert_eq(sum_of(counts, 0).value, 300);
	/* Of 24 bytes each, 170 fit into 4096 (docs/abi.md 15). */
	if (page == 4096)
		cr_assert_eq(sum_of(counts, 0).lost, 130, "%lu", (unsigned long)sum_of(counts, 0).lost);
	cr_assert_eq(sum_of(counts, 1).lost, 0);
	munmap(ring, 2 * (size_t)page);
	perfring_counts_close(counts);
	perfring_events_close(events);
	perfring_target_close(target);
}
