/* session_plan_test.c - planning a set: groups, fallbacks, limits, and threads and CPUs that come and go. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/command.h>
#include <perfring/record.h>
#include <perfring/session.h>
#include "event/opener.h"
#include "session/session_private.h"
#include "os/cgroup.h"
#include "machine.h"

TestSuite(session_plan, .timeout = 120);

enum {
	PAGE = 4096,
	NOBODY = 65534,
};

/* ---- lists ---- */

Test(session_plan, ten_thousand_threads_in_any_order)
{
	struct perfring_target *target;
	struct perfring_numbers kept = {NULL, 0, 0};

	cr_assert_eq(perfring_target_open(&target), 0);
	/* 7919 and 10007 have no factor in common: every number below 10007 once, twice over. */
	for (int64_t i = 0; i < 20014; i++)
		cr_assert_eq(perfring_target_add_thread(target, (int32_t)(i * 7919 % 10007)), 0);
	cr_assert_eq(target->tids.count, 10007);
	for (int32_t i = 0; i < 10007; i++)
		cr_assert_eq(target->tids.numbers[i], i);
	cr_assert(perfring__numbers_have(&target->tids, 10006));
	cr_assert_not(perfring__numbers_have(&target->tids, 10007));
	cr_assert_eq(perfring__numbers_add_list(&kept, "3-4,9999-10010", NULL), 0);
	perfring__numbers_keep(&target->tids, &kept);
	cr_assert_eq(target->tids.count, 2 + 8);
	cr_assert_eq(target->tids.numbers[1], 4);
	cr_assert_eq(target->tids.numbers[2], 9999);
	cr_assert_eq(perfring__numbers_add_list(&kept, "5,6", &target->tids), -ENODEV);
	free(kept.numbers);
	perfring_target_close(target);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

Test(session_plan, where_cgroups_are_mounted)
{
	char path[] = "/tmp/perfring-mounts-XXXXXX", point[64];
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	write_file(path, "22 1 0:20 / /proc rw shared:5 - proc proc rw\n"
			 "30 25 0:26 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n"
			 "31 25 0:27 /deep /a\\040b\\134 rw - cgroup2 cgroup2 rw\n"
			 "32 25 0:27 / /later rw - cgroup2 cgroup2 rw\n");
	cr_assert_eq(perfring__os_cgroup_mount(path, point, sizeof(point)), 0);
	cr_assert_str_eq(point, "/a b\\");
	/* Where version 1 has the controller, version 2 has it not. */
	write_file(path, "31 25 0:27 / /two rw - cgroup2 cgroup2 rw\n"
			 "33 25 0:29 / /one rw shared:1 master:2 - cgroup cgroup rw,perf_event\n");
	cr_assert_eq(perfring__os_cgroup_mount(path, point, sizeof(point)), 0);
	cr_assert_str_eq(point, "/one");
	write_file(path, "nothing - cgroup2\n - cgroup2 \n\n22 1 0:20 / /proc rw - proc proc rw\n");
	cr_assert_eq(perfring__os_cgroup_mount(path, point, sizeof(point)), -ENOENT);
	unlink(path);
	cr_assert_eq(perfring__os_cgroup_mount(path, point, sizeof(point)), -ENOENT);
}

/* ---- events ---- */

static struct perf_event_attr software(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
		.sample_id_all = 1,
		.exclude_kernel = 1,
	};

	return attr;
}

static void skip_refused(const struct perfring_session *session, int ret)
{
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_geq(ret, 0, "%d: %s", ret, perfring_session_refusal(session));
}

static struct perfring_session *open_session(uint32_t pages, uint32_t options, uint64_t allowed)
{
	struct perfring_session *session;

	cr_assert_eq(perfring_session_open(&session, pages), 0);
	cr_assert_eq(perfring_session_configure(session, options, allowed), 0);
	return session;
}

static struct perfring_target *this_thread(void)
{
	struct perfring_target *target;

	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	return target;
}

/* The value of the i-th fd, and for how long it was enabled. */
static uint64_t value_of(const struct perfring_session *session, uint32_t i, uint64_t *enabled)
{
	struct perfring_session_event opened;
	uint64_t words[2] = {0, 0};

	cr_assert_eq(perfring_session_event_at(session, i, &opened), 1);
	cr_assert_eq(read(opened.fd, words, sizeof(words)), (ssize_t)sizeof(words));
	if (enabled)
		*enabled = words[1];
	return words[0];
}

/* What every fd of event number `event` counted. */
static uint64_t sum_of(const struct perfring_session *session, uint32_t event)
{
	struct perfring_session_event opened;
	uint64_t sum = 0;

	for (uint32_t i = 0; perfring_session_event_at(session, i, &opened); i++)
		if (opened.event == event)
			sum += value_of(session, i, NULL);
	return sum;
}

/* Hands out everything. */
static uint64_t drain(struct perfring_session *session)
{
	struct perfring_item item;
	uint64_t count = 0;

	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		count += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	return count;
}

/* ---- groups ---- */

/* {page-faults, minor-faults, major-faults}:S.  Every one is `disabled`, as an attr that serves for all would be. */
Test(session_plan, a_group_starts_as_one_and_reads_as_one)
{
	struct perf_event_attr leader = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr minor = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	struct perf_event_attr major = software(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	const struct perf_event_attr *attrs[] = {&leader, &minor, &major};
	struct perfring_session *session = open_session(64, 0, 0);
	struct perfring_target *target = this_thread();
	struct perfring_session_event opened;
	struct perfring_item item;
	uint64_t enabled[3], samples = 0, before;
	int ret;

	leader.sample_type |= PERF_SAMPLE_READ;
	leader.read_format = minor.read_format = major.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	minor.sample_period = major.sample_period = 0;
	ret = perfring_session_add_group(session, attrs, 3, target);
	skip_refused(session, ret);
	cr_assert_eq(ret, 0);
	cr_assert_eq(perfring_session_ring_count(session), 1);
	touch_pages(1000);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(100);
	cr_assert_eq(perfring_session_disable(session), 0);
	touch_pages(1000);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		struct perfring_sample sample;

		if (item.record->type != PERF_RECORD_SAMPLE)
			continue;
		cr_assert_not_null(item.format);
		cr_assert_eq(item.format->index, 0);
		cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
		cr_assert_eq(sample.read.nr, 3);
		samples++;
		for (uint64_t i = 0; i < sample.read.nr; i++) {
			const struct perfring_format *format = perfring_format_set_find(
				perfring_session_formats(session), perfring_read_id(&sample.read, i));

			cr_assert_not_null(format, "the id of each member is known");
			cr_assert_eq(format->index, i);
			if (i == 0)
				cr_assert_eq(perfring_read_value(&sample.read, 0), samples,
					     "the leader's n-th occurrence");
		}
	}
	perfring_session_return(session);
	cr_assert_geq(samples, 100);
	cr_assert_lt(samples, 1000, "not what was before and after");
	/* The group's whole state by one read of its leader. */
	{
		uint64_t words[1 + 3 * 2];

		cr_assert_eq(perfring_session_event_at(session, 0, &opened), 1);
		cr_assert_eq(read(opened.fd, words, sizeof(words)), (ssize_t)sizeof(words));
		cr_assert_eq(words[0], 3);
		cr_assert_eq(words[1], samples);
		cr_assert_eq(words[3] + words[5], words[1], "every member counted the same span");
		cr_assert_geq(words[3], 100);
		before = words[1];
	}
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(50);
	cr_assert_eq(perfring_session_disable(session), 0);
	{
		uint64_t words[1 + 3 * 2];

		cr_assert_eq(read(opened.fd, words, sizeof(words)), (ssize_t)sizeof(words));
		cr_assert_geq(words[1], before + 50);
		cr_assert_eq(words[3] + words[5], words[1], "and does when it is started again");
	}
	perfring_session_close(session);

	/* Apart, to see the times: siblings were never enabled for longer than the leader. */
	leader = software(PERF_COUNT_SW_PAGE_FAULTS);
	minor = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	major = software(PERF_COUNT_SW_DUMMY);
	session = open_session(1, 0, 0);
	skip_refused(session, perfring_session_add_group(session, attrs, 3, target));
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(10);
	cr_assert_eq(perfring_session_disable(session), 0);
	for (uint32_t i = 0; i < 3; i++)
		value_of(session, i, &enabled[i]);
	cr_assert_gt(enabled[0], 0);
	cr_assert_eq(enabled[1], enabled[0]);
	cr_assert_eq(enabled[2], enabled[0]);
	perfring_target_close(target);
	perfring_session_close(session);
}

/* An exec enables the leader: siblings that were `disabled` must not stay so. */
Test(session_plan, a_group_starts_with_an_exec)
{
	struct perf_event_attr leader = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr minor = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	struct perf_event_attr major = software(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	const struct perf_event_attr *attrs[] = {&leader, &minor, &major};
	struct perfring_session *session = open_session(8, 0, 0);
	struct perfring_command command;
	struct perfring_target *target;
	uint64_t faults;
	int status = 0;

	leader.enable_on_exec = 1;
	cr_assert_eq(perfring_command_open(&command, (char *[]){"true", NULL}), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_process(target, command.pid), 0);
	skip_refused(session, perfring_session_add_group(session, attrs, 3, target));
	cr_assert_not(perfring_session_attr(session, 1)->disabled, "as it was opened");
	cr_assert_eq(perfring_command_release(&command), 0);
	cr_assert_eq(waitpid(command.pid, &status, 0), command.pid);
	faults = value_of(session, 0, NULL);
	cr_assert_gt(faults, 10);
	cr_assert_eq(value_of(session, 1, NULL) + value_of(session, 2, NULL), faults);
	while (!perfring_session_is_over(session))
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session_plan, groups_that_cannot_be)
{
	struct perf_event_attr leader = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr sibling = software(PERF_COUNT_SW_DUMMY);
	const struct perf_event_attr *attrs[] = {&leader, &sibling};
	struct perfring_session *session = open_session(1, 0, 0);
	struct perfring_target *target = this_thread();
	struct perfring_session_event opened;

	cr_assert_eq(perfring_session_add_group(session, attrs, 0, target), -EINVAL);
	sibling.pinned = 1;
	cr_assert_eq(perfring_session_add_group(session, attrs, 2, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "only its leader can be"));
	sibling.pinned = 0;
	sibling.inherit = 1;
	cr_assert_eq(perfring_session_add_group(session, attrs, 2, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "`inherit`"));
	sibling.inherit = 0;
	/* The leader was open by then. */
	sibling.config = 9999;
	skip_refused(session, perfring_session_add_group(session, attrs, 1, target));
	cr_assert_eq(perfring_session_add_group(session, attrs, 2, target), -ENOENT);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "number 9999"));
	cr_assert_eq(perfring_session_event_at(session, 1, &opened), 0);
	cr_assert_eq(perfring_format_set_count(perfring_session_formats(session)), 1);
	cr_assert_null(perfring_session_attr(session, 1));
	sibling.config = PERF_COUNT_SW_DUMMY;
	cr_assert_eq(perfring_session_add_group(session, attrs, 2, target), 1);
	cr_assert_str_eq(perfring_session_refusal(session), "");
	cr_assert_eq(perfring_session_attr(session, 2)->config, PERF_COUNT_SW_DUMMY);
	perfring_target_close(target);
	perfring_session_close(session);
}

/* ---- fallbacks ---- */

static bool has_pmu(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .exclude_kernel = 1};
	int fd = perfring_event_open(&attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What this kernel does not know goes from the attr, and so from the format. */
Test(session_plan, what_is_given_up_is_told)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	struct perfring_session *session = open_session(1, 0, 0);
	struct perfring_target *target = this_thread();
	struct perfring_session_event opened;

	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	skip_refused(session, perfring_session_add(session, &attr, target));
	attr.read_format |= UINT64_C(1) << 40;
	cr_assert_eq(perfring_session_add(session, &attr, target), -EINVAL, "nothing may be given up");
	cr_assert_eq(perfring_session_configure(session, 0, 0), -EBUSY);
	perfring_session_close(session);

	session = open_session(1, 0, PERFRING_FALLBACK_NEWER);
	cr_assert_eq(perfring_session_add(session, &attr, target), 0, "%s", perfring_session_refusal(session));
	cr_assert_eq(perfring_session_given_up(session, 0), PERFRING_FALLBACK_NEWER);
	cr_assert_eq(perfring_session_attr(session, 0)->read_format, PERF_FORMAT_TOTAL_TIME_ENABLED);
	cr_assert_eq(perfring_format_set_at(perfring_session_formats(session), 0)->read_format,
		     PERF_FORMAT_TOTAL_TIME_ENABLED);
	for (uint32_t i = 0; i < (uint32_t)sysconf(_SC_NPROCESSORS_ONLN); i++)
		cr_assert_eq(perfring_session_event_at(session, i, &opened), 1);
	cr_assert_eq(perfring_session_event_at(session, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), &opened), 0);
	attr.read_format = 0;
	cr_assert_eq(perfring_session_add(session, &attr, target), 1);
	cr_assert_eq(perfring_session_given_up(session, 1), 0);
	cr_assert_eq(perfring_session_given_up(session, 2), 0, "there is none");
	cr_assert_null(perfring_session_attr(session, 2));
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session_plan, a_clock_where_there_is_no_pmu)
{
	struct perf_event_attr attr = software(PERF_COUNT_HW_CPU_CYCLES);
	struct perfring_session *session = open_session(1, 0, PERFRING_FALLBACK_CPU_CLOCK);
	struct perfring_target *target = this_thread();
	bool here = has_pmu();

	attr.type = PERF_TYPE_HARDWARE;
	attr.sample_period = 1000000;
	skip_refused(session, perfring_session_add(session, &attr, target));
	cr_assert_eq(perfring_session_given_up(session, 0), here ? 0 : PERFRING_FALLBACK_CPU_CLOCK);
	cr_assert_eq(perfring_session_attr(session, 0)->type, here ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE);
	perfring_target_close(target);
	perfring_session_close(session);
}

/* A breakpoint fires in NMIs, where CLOCK_REALTIME cannot be read; the other event of the session has it. */
Test(session_plan, a_clock_given_up_by_one_of_two)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY), other = software(0);
	struct perfring_session *session = open_session(1, 0, PERFRING_FALLBACK_CLOCKID);
	struct perfring_target *target = this_thread();
	struct perfring_session_event opened;
	static int watched;
	int ret;

	attr.use_clockid = 1;
	attr.clockid = CLOCK_REALTIME;
	skip_refused(session, perfring_session_add(session, &attr, target));
	cr_assert_eq(perfring_session_given_up(session, 0), 0);
	other.type = PERF_TYPE_BREAKPOINT;
	other.bp_type = 3; /* read and write */
	other.bp_addr = (uintptr_t)&watched;
	other.bp_len = 4;
	other.use_clockid = 1;
	other.clockid = CLOCK_REALTIME;
	ret = perfring_session_add(session, &other, target);
	if (ret == -ENOSPC || ret == -ENOENT || ret == -ENODEV || ret == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: breakpoint registers", strerror(-ret));
	cr_assert_eq(ret, -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "several clocks"), "%s",
			   perfring_session_refusal(session));
	cr_assert_eq(perfring_session_event_at(session, 1, &opened), 0);
	cr_assert_eq(perfring_session_add(session, &attr, target), 1, "the first one's clock is the session's still");
	perfring_target_close(target);
	perfring_session_close(session);
}

/* ---- the mlock budget ---- */

/* What a child found out: it runs as another user, or under other limits, and tells the test. */
struct told {
	int line; /* where it stopped; 0: it came to its end */
	int ret;
	char text[1024];
	uint64_t numbers[8];
};

#define STOP_UNLESS(condition) \
	do { \
		if (!(condition)) { \
			told->line = __LINE__; \
			return; \
		} \
	} while (0)

/* Runs it in a child; tells what it told. */
static struct told in_child(void (*run)(struct told *told))
{
	struct told *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		    told;
	pid_t child;
	int status = 0;

	cr_assert_neq(shared, MAP_FAILED);
	child = fork();
	if (child == 0) {
		run(shared);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	told = *shared;
	munmap(shared, sizeof(*shared));
	cr_assert(WIFEXITED(status), "the child died by signal %d", WTERMSIG(status));
	if (told.ret == -EACCES || told.ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", told.text);
	cr_assert_eq(told.line, 0, "line %d of the child: %d: %s", told.line, told.ret, told.text);
	return told;
}

static bool become_nobody(void)
{
	struct rlimit none = {0, 0};

	return !setrlimit(RLIMIT_MEMLOCK, &none) && !setgid(NOBODY) && !setuid(NOBODY);
}

static bool all_rings_have(const struct perfring_session *session, uint32_t pages)
{
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i]->ring.size != (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE))
			return false;
	return true;
}

/* What the first fd had to give up, none of the others asks for. */
static void user_space_alone(struct told *told)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_session *session;
	struct perfring_target *cpus;

	attr.exclude_kernel = 0;
	STOP_UNLESS(become_nobody());
	STOP_UNLESS(!perfring_target_open(&cpus) && !perfring_target_add_thread(cpus, getpid()) &&
		    !perfring_target_add_cpus(cpus, NULL));
	STOP_UNLESS(!perfring_session_open(&session, 1));
	told->numbers[0] = (uint64_t)-perfring_session_add(session, &attr, cpus);
	STOP_UNLESS(!perfring_session_configure(session, 0, PERFRING_FALLBACK_EXCLUDE_KERNEL));
	told->ret = perfring_session_add(session, &attr, cpus);
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	STOP_UNLESS(told->ret == 0 && session->event_count == cpus->cpus.count);
	told->numbers[1] = perfring_session_given_up(session, 0);
	told->numbers[2] = perfring_session_attr(session, 0)->exclude_kernel;
	perfring_target_close(cpus);
	perfring_session_close(session);
}

Test(session_plan, user_space_alone_where_the_kernel_is_not_ours)
{
	struct told told;

	if (geteuid() != 0 || number_in("/proc/sys/kernel/perf_event_paranoid") != 2)
		cr_skip_test("SKIP-ENV: setuid: EPERM: root, and kernel.perf_event_paranoid = 2");
	told = in_child(user_space_alone);
	cr_assert_eq(told.numbers[0], EACCES);
	cr_assert_eq(told.numbers[1], PERFRING_FALLBACK_EXCLUDE_KERNEL);
	cr_assert_eq(told.numbers[2], 1);
}

/* One ring would fit with 256 pages, the second does not: both are made smaller, and both events of each still write. */
static void shrink(struct told *told)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS), dummy = software(PERF_COUNT_SW_DUMMY);
	struct perf_event_attr bad = software(9999), minor = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	const struct perf_event_attr *group[] = {&dummy, &bad};
	struct perfring_session *session, *refused;
	struct perfring_target *cpus, *self;
	uint32_t pages;

	STOP_UNLESS(become_nobody());
	STOP_UNLESS(!perfring_target_open(&cpus) && !perfring_target_add_thread(cpus, getpid()) &&
		    !perfring_target_add_cpus(cpus, NULL));
	STOP_UNLESS(!perfring_target_open(&self) && !perfring_target_add_thread(self, getpid()));
	/* Without leave to shrink: refused, with the sentence. */
	STOP_UNLESS(!perfring_session_open(&refused, 4096));
	told->ret = perfring_session_add(refused, &attr, cpus);
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(refused));
	STOP_UNLESS(told->ret == -EPERM && strstr(told->text, "perf_event_mlock_kb"));
	STOP_UNLESS(perfring_session_ring_count(refused) == 0);
	perfring_session_close(refused);

	STOP_UNLESS(!perfring_session_open(&session, 4096));
	STOP_UNLESS(!perfring_session_configure(session, PERFRING_SESSION_SHRINK, 0));
	told->ret = perfring_session_add(session, &attr, cpus);
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	STOP_UNLESS(told->ret == 0 && !*told->text);
	pages = perfring_session_pages(session);
	told->numbers[0] = pages;
	STOP_UNLESS(pages < 4096 && pages >= 1 && (pages & (pages - 1)) == 0);
	STOP_UNLESS(all_rings_have(session, pages));
	STOP_UNLESS(perfring_session_add(session, &minor, cpus) == 1);
	/* A ring of its own for this thread, whichever CPU: the others become smaller again, and events that were
	 * redirected are so again. */
	told->ret = perfring_session_add(session, &dummy, self);
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	STOP_UNLESS(told->ret == 2);
	told->numbers[1] = pages = perfring_session_pages(session);
	STOP_UNLESS(all_rings_have(session, pages));
	STOP_UNLESS(!perfring_session_enable(session));
	touch_pages(20);
	STOP_UNLESS(!perfring_session_disable(session));
	told->numbers[2] = drain(session);
	told->numbers[3] = sum_of(session, 0) + sum_of(session, 1);

	/* What failed after it had made rings smaller leaves them as they were. */
	STOP_UNLESS(!perfring_session_open(&refused, 8192));
	STOP_UNLESS(!perfring_session_configure(refused, PERFRING_SESSION_SHRINK, 0));
	perfring_session_close(session);
	told->ret = perfring_session_add_group(refused, group, 2, self);
	STOP_UNLESS(told->ret == -ENOENT && perfring_session_pages(refused) == 8192);
	perfring_session_close(refused);

	STOP_UNLESS(!perfring_session_open(&session, 128));
	STOP_UNLESS(!perfring_session_configure(session, PERFRING_SESSION_SHRINK, 0));
	told->ret = perfring_session_add(session, &attr, cpus);
	STOP_UNLESS(told->ret == 0);
	pages = perfring_session_pages(session);
	told->ret = perfring_session_add_group(session, group, 2, self);
	STOP_UNLESS(told->ret == -ENOENT && perfring_session_pages(session) == pages && all_rings_have(session, pages));
	STOP_UNLESS(!perfring_session_enable(session));
	touch_pages(20);
	STOP_UNLESS(!perfring_session_disable(session));
	told->numbers[4] = drain(session);
	perfring_session_close(session);
	told->ret = 0;
	perfring_target_close(cpus);
	perfring_target_close(self);
}

Test(session_plan, rings_shrink_before_they_are_refused)
{
	uint64_t mlock_kb = number_in("/proc/sys/kernel/perf_event_mlock_kb");
	struct told told;

	if (geteuid() != 0)
		cr_skip_test("SKIP-ENV: setuid: EPERM: root");
	if (mlock_kb > 8192)
		cr_skip_test("SKIP-ENV: mmap: kernel.perf_event_mlock_kb <= 8192");
	told = in_child(shrink);
	cr_assert_leq(told.numbers[0] * PAGE / 1024, mlock_kb, "the budget is for all CPUs' rings");
	cr_assert_leq(told.numbers[1], told.numbers[0]);
	cr_assert_geq(told.numbers[2], 40, "20 faults, and each is a minor one too");
	cr_assert_eq(told.numbers[2], told.numbers[3], "every one that was counted was recorded");
	cr_assert_geq(told.numbers[4], 20);
}

/* ---- threads and CPUs that come and go ---- */

struct worker {
	pthread_t thread;
	int go[2];
	int done[2];
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	char byte;

	while (read(worker->go[0], &byte, 1) == 1 && byte) {
		touch_pages(byte);
		(void)!write(worker->done[1], &byte, 1);
	}
	return NULL;
}

static void start(struct worker *worker)
{
	cr_assert_eq(pipe(worker->go), 0);
	cr_assert_eq(pipe(worker->done), 0);
	cr_assert_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void let_touch(struct worker *worker, char pages)
{
	char byte;

	cr_assert_eq(write(worker->go[1], &pages, 1), 1);
	cr_assert_eq(read(worker->done[0], &byte, 1), 1);
}

static void stop(struct worker *worker)
{
	char byte = 0;

	cr_assert_eq(write(worker->go[1], &byte, 1), 1);
	pthread_join(worker->thread, NULL);
	for (int i = 0; i < 2; i++) {
		close(worker->go[i]);
		close(worker->done[i]);
	}
}

Test(session_plan, threads_that_are_born_are_found)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS), second = software(PERF_COUNT_SW_DUMMY);
	struct perfring_session *session = open_session(8, 0, 0);
	struct perfring_target *target;
	struct perfring_totals totals, left;
	struct worker workers[3];
	uint64_t before;
	uint32_t fds, live;

	/* A sanitizer's own thread comes with the first of ours. */
	start(&workers[0]);
	stop(&workers[0]);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	skip_refused(session, perfring_session_add(session, &attr, target));
	cr_assert_eq(perfring_session_add(session, &second, target), 1);
	fds = session->event_count;
	cr_assert_eq(perfring_session_update(session), 0);
	for (int i = 0; i < 3; i++)
		start(&workers[i]);
	cr_assert_eq(perfring_session_update(session), 3 * 2);
	cr_assert_eq(perfring_session_ring_count(session), fds / 2 + 3);
	cr_assert_eq(perfring_session_update(session), 0, "once");
	/* Nothing runs before it is enabled; then the late ones do, and those that come now. */
	before = sum_of(session, 0);
	let_touch(&workers[0], 20);
	cr_assert_eq(sum_of(session, 0), before);
	cr_assert_eq(perfring_session_enable(session), 0);
	let_touch(&workers[0], 20);
	cr_assert_geq(
		value_of(session, fds, NULL) + value_of(session, fds + 2, NULL) + value_of(session, fds + 4, NULL), 20);
	stop(&workers[2]);
	start(&workers[2]);
	fds = session->event_count;
	cr_assert_eq(perfring_session_update(session), 2);
	let_touch(&workers[2], 50);
	cr_assert_geq(value_of(session, fds, NULL), 50);
	cr_assert_eq(perfring_session_disable(session), 0);
	stop(&workers[1]);
	start(&workers[1]);
	fds = session->event_count;
	cr_assert_eq(perfring_session_update(session), 2);
	let_touch(&workers[1], 50);
	cr_assert_eq(value_of(session, fds, NULL), 0, "it is as the others are");
	cr_assert_geq(drain(session), 70);
	for (int i = 0; i < 3; i++)
		stop(&workers[i]);
	/* Their fds and rings go, their ids and totals stay. */
	perfring_session_totals(session, &totals);
	live = session->live - 3;
	for (int turns = 0; session->live > live && turns < 1000; turns++)
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	drain(session);
	cr_assert_eq(perfring_session_update(session), 0, "%s", perfring_session_refusal(session));
	for (uint32_t i = fds - 4 * 2; i < session->event_count; i++) {
		cr_assert_eq(session->events[i].fd, -1);
		cr_assert_not_null(perfring_format_set_find(perfring_session_formats(session), session->events[i].id));
		cr_assert_null(session->rings[session->events[i].ring]);
	}
	perfring_session_totals(session, &left);
	cr_assert_geq(left.samples, totals.samples);
	cr_assert_eq(perfring_session_enable(session), 0, "what is closed is passed over");
	perfring_session_close(session);

	/* What is inherited has them already. */
	session = open_session(1, 0, 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	attr.inherit = 1;
	cr_assert_eq(perfring_session_add(session, &attr, target), 0, "%s", perfring_session_refusal(session));
	start(&workers[0]);
	cr_assert_eq(perfring_session_update(session), 0);
	stop(&workers[0]);
	perfring_session_close(session);
	perfring_target_close(target);
}

/* A process that is gone is not the next one with its number. */
Test(session_plan, a_number_that_was_given_again)
{
	struct perfring_process process = {getpid(), 0};
	struct perfring_numbers tids = {NULL, 0, 0};
	struct perfring_target *target;

	cr_assert_eq(perfring__numbers_add_process(&tids, &process), -ESRCH, "it did not begin with the machine");
	cr_assert_eq(tids.count, 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	cr_assert_eq(target->process_count, 1);
	cr_assert_gt(target->processes[0].start, 0);
	cr_assert_eq(perfring__numbers_add_process(&tids, &target->processes[0]), 0);
	cr_assert(perfring__numbers_have(&tids, getpid()));
	free(tids.numbers);
	perfring_target_close(target);
}

static int update_with(struct perfring_session *session, const char *list)
{
	struct perfring_numbers online = {NULL, 0, 0};
	int ret = perfring__numbers_add_list(&online, list, NULL);

	ret = ret ? ret : perfring__session_update_on(session, &online);
	free(online.numbers);
	return ret;
}

/* No CPU is taken away here: the list says so. */
Test(session_plan, cpus_that_come_back)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_MIGRATIONS), second = software(PERF_COUNT_SW_DUMMY);
	struct perfring_session *session = open_session(1, 0, 0);
	struct perfring_target *all, *mine, *one;
	const struct perf_event_attr *group[] = {&attr, &second};
	uint32_t rings;

	if (sysconf(_SC_NPROCESSORS_ONLN) != 2)
		cr_skip_test("SKIP-ENV: sysconf: two CPUs, 0 and 1");
	cr_assert_eq(perfring_target_open(&all), 0);
	cr_assert_eq(perfring_target_add_cpus(all, NULL), 0);
	skip_refused(session, perfring_session_add_group(session, group, 2, all));
	cr_assert_eq(session->event_count, 4);
	rings = perfring_session_ring_count(session);
	cr_assert_eq(update_with(session, "0-1"), 0);
	cr_assert_eq(update_with(session, "0"), 0);
	cr_assert_eq(update_with(session, "0-1"), 2, "%s", perfring_session_refusal(session));
	cr_assert_eq(session->events[4].cpu, 1);
	cr_assert_eq(session->events[4].event, 0);
	cr_assert_eq(session->events[5].event, 1);
	cr_assert_eq(perfring_session_ring_count(session), rings, "the CPU's ring is there");
	cr_assert_not_null(perfring_format_set_find(perfring_session_formats(session), session->events[5].id));
	/* A thread's events were asleep: opened again, they would count twice.  Nor does a list of CPUs grow. */
	cr_assert_eq(perfring_target_open(&mine), 0);
	cr_assert_eq(perfring_target_add_cpus(mine, NULL), 0);
	cr_assert_eq(perfring_target_add_thread(mine, getpid()), 0);
	cr_assert_eq(perfring_session_add(session, &second, mine), 2);
	cr_assert_eq(perfring_target_open(&one), 0);
	cr_assert_eq(perfring_target_add_cpus(one, "0"), 0);
	cr_assert_eq(perfring_session_add(session, &second, one), 3);
	cr_assert_eq(update_with(session, "0"), 0);
	cr_assert_eq(update_with(session, "0-1"), 2, "the group, and nothing else");
	/* There is no CPU 4000: what the kernel says is told, what was open stays. */
	cr_assert_lt(update_with(session, "0-1,4000"), 0);
	cr_assert_neq(perfring_session_refusal(session)[0], 0);
	cr_assert_eq(perfring_session_update(session), 0);
	cr_assert_str_eq(perfring_session_refusal(session), "");
	perfring_target_close(all);
	perfring_target_close(mine);
	perfring_target_close(one);
	perfring_session_close(session);
}

/* ---- cgroups ---- */

static bool write_to(const char *directory, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

Test(session_plan, members_of_a_cgroup_are_counted)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	char point[PATH_MAX - 64], path[PATH_MAX], name[64], number[32], byte = 0;
	struct perfring_session *session = open_session(64, 0, 0);
	struct perfring_target *target;
	int pair[2], answer[2], status, ret;
	pid_t child;

	ret = perfring__os_cgroup_mount("/proc/self/mountinfo", point, sizeof(point));
	if (ret)
		cr_skip_test("SKIP-ENV: mountinfo: %s: a cgroup2 mount", strerror(-ret));
	snprintf(name, sizeof(name), "perfring-test-%d", getpid());
	snprintf(path, sizeof(path), "%s/%s", point, name);
	if (mkdir(path, 0755))
		cr_skip_test("SKIP-ENV: mkdir %s: %s: a cgroup that may be written to", path, strerror(errno));
	cr_assert_eq(pipe(pair), 0);
	cr_assert_eq(pipe(answer), 0);
	child = fork();
	if (child == 0) {
		while (read(pair[0], &byte, 1) == 1 && byte) {
			touch_pages(100);
			(void)!write(answer[1], &byte, 1);
		}
		_exit(0);
	}
	snprintf(number, sizeof(number), "%d", child);
	if (!write_to(path, "cgroup.procs", number)) {
		ret = errno;
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		rmdir(path);
		cr_skip_test("SKIP-ENV: cgroup.procs: %s: a cgroup that may be written to", strerror(ret));
	}
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cgroup(target, "perfring-no-such-cgroup"), -ENOENT);
	cr_assert_eq(perfring_target_add_cgroup(target, ""), -EINVAL);
	cr_assert_eq(perfring_target_add_cgroup(target, name), 0, "below the mount");
	cr_assert_eq(perfring_target_add_thread(target, getpid()), -EINVAL);
	cr_assert_eq(perfring_target_add_process(target, getpid()), -EINVAL);
	ret = perfring_session_add(session, &attr, target);
	if (ret < 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		rmdir(path);
	}
	skip_refused(session, ret);
	cr_assert_eq(session->event_count, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	cr_assert_eq(session->events[0].tid, -1);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(3000);
	byte = 1;
	cr_assert_eq(write(pair[1], &byte, 1), 1);
	cr_assert_eq(read(answer[0], &byte, 1), 1);
	cr_assert_eq(perfring_session_disable(session), 0);
	cr_assert_geq(sum_of(session, 0), 100);
	cr_assert_lt(sum_of(session, 0), 2000, "not ours");
	cr_assert_eq(drain(session), sum_of(session, 0));
	cr_assert_eq(perfring_session_update(session), 0);
	perfring_session_close(session);
	perfring_target_close(target);

	/* By its whole name; and a directory that is no cgroup is told. */
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cgroup(target, path), 0);
	session = open_session(1, 0, 0);
	cr_assert_eq(perfring_session_add(session, &attr, target), 0, "%s", perfring_session_refusal(session));
	perfring_session_close(session);
	perfring_target_close(target);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cgroup(target, "/tmp"), 0);
	session = open_session(1, 0, 0);
	cr_assert_lt(perfring_session_add(session, &attr, target), 0);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "not that of a cgroup"), "%s",
			   perfring_session_refusal(session));
	perfring_session_close(session);
	perfring_target_close(target);
	byte = 0;
	cr_assert_eq(write(pair[1], &byte, 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(rmdir(path), 0);
	for (int i = 0; i < 2; i++) {
		close(pair[i]);
		close(answer[i]);
	}
}

/* ---- 64 events, all CPUs, 500 threads ---- */

enum {
	EVENTS = 64,
	ALIVE = 500,
};

static uint32_t alive = ALIVE;
static uint64_t asked_of_child;
static long slow = 1; /* how much longer each thread lives, where the machine takes longer to open its events */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* the storm holds it until it has all its threads */

static void *live_shortly(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	struct timespec a_while = {0, 1000000 + rand_r(&seed) % 300000000};

	/* The first ones wait until there are all of them; asleep, for 500 that look now and then take all the time there is. */
	pthread_rwlock_rdlock(&gate);
	pthread_rwlock_unlock(&gate);
	for (long i = 0; i < slow; i++)
		nanosleep(&a_while, NULL);
	touch_pages(1);
	return NULL;
}

/* A process that has `alive` threads at any time, each for at most 0.3 s, or `slow` times as long. */
static void __attribute__((noreturn)) storm(int tell)
{
	pthread_t threads[ALIVE];
	uintptr_t born = 0;
	pthread_attr_t small;

	/* It ends with the child that observes it, wherever that stops. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	pthread_rwlock_wrlock(&gate);
	for (uint32_t i = 0;; i = (i + 1) % alive) {
		if (born >= alive)
			pthread_join(threads[i], NULL);
		if (pthread_create(&threads[i], &small, live_shortly, (void *)born++))
			_exit(1);
		if (born == alive) {
			(void)!write(tell, "x", 1);
			pthread_rwlock_unlock(&gate);
		}
	}
}

static pid_t begin_storm(void)
{
	int tell[2];
	char byte;
	pid_t child;

	if (pipe(tell))
		return -1;
	child = fork();
	if (child == 0)
		storm(tell[1]);
	if (read(tell[0], &byte, 1) != 1)
		return -1;
	close(tell[0]);
	close(tell[1]);
	return child;
}

/* All mappings, and those of rings. */
static uint64_t mappings(uint64_t *rings)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	uint64_t count = 0;

	*rings = 0;
	while (file && fgets(line, sizeof(line), file)) {
		count++;
		*rings += strstr(line, "perf_event") != NULL;
	}
	if (file)
		fclose(file);
	return count;
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The 64: dummies, that sample nothing, and faults. */
static struct perf_event_attr one_of_many(uint32_t i)
{
	static const uint64_t CONFIGS[] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_CONTEXT_SWITCHES,
					   PERF_COUNT_SW_CPU_MIGRATIONS, PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	struct perf_event_attr attr = software(i < 4 ? CONFIGS[i] : PERF_COUNT_SW_DUMMY);

	attr.exclude_kernel = 0;
	attr.task = i == 4;
	attr.comm = i == 4;
	if (i)
		attr.sample_period = 0;
	return attr;
}

static int add_many(struct perfring_session *session, uint32_t count, const struct perfring_target *target,
		    struct told *told)
{
	int ret = 0;

	for (uint32_t i = 0; ret >= 0 && i < count; i++) {
		struct perf_event_attr attr = one_of_many(i);

		ret = perfring_session_add(session, &attr, target);
	}
	told->ret = ret < 0 ? ret : 0;
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	return told->ret;
}

static void run_for(struct perfring_session *session, uint64_t ms)
{
	uint64_t end = milliseconds() + ms;
	struct perfring_item item;

	while (milliseconds() < end) {
		perfring_session_wait(session, 20);
		while (perfring_session_next(session, &item) == 1)
			;
		perfring_session_return(session);
	}
}

/* One session: 64 events on all CPUs; and `many` of them on each thread of the process on each CPU, which is what the
 * hard limit has space for, twice: for the threads that are, and those that have gone since the last look. */
static void through_the_storm(struct told *told)
{
	uint64_t files, maps, rings, many = asked_of_child;
	struct perfring_session *session;
	struct perfring_target *all, *process = NULL;
	struct perfring_totals totals;
	struct rlimit limit;
	pid_t stormy;
	int found = 0, born = 0;

	STOP_UNLESS(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 256;
	STOP_UNLESS(!setrlimit(RLIMIT_NOFILE, &limit));
	stormy = begin_storm();
	STOP_UNLESS(stormy > 0);
	files = open_files();
	maps = mappings(&rings);
	STOP_UNLESS(rings == 0);
	told->numbers[0] = milliseconds();
	STOP_UNLESS(!perfring_session_open(&session, 64));
	STOP_UNLESS(!perfring_session_configure(session, PERFRING_SESSION_RAISE_FILES | PERFRING_SESSION_SHRINK, 0));
	STOP_UNLESS(!perfring_target_open(&all) && !perfring_target_add_cpus(all, NULL));
	/* Beside busy neighbours many have ended before the next ones are born. */
	for (int i = 0; i < 50 && (!process || process->tids.count <= alive / 2); i++) {
		perfring_target_close(process);
		STOP_UNLESS(!perfring_target_open(&process) && !perfring_target_add_process(process, stormy) &&
			    !perfring_target_add_cpus(process, NULL));
	}
	STOP_UNLESS(process->tids.count > alive / 2);
	STOP_UNLESS(add_many(session, EVENTS, all, told) == 0);
	STOP_UNLESS(session->event_count == EVENTS * all->cpus.count);
	STOP_UNLESS(!perfring_session_enable(session));
	STOP_UNLESS(add_many(session, (uint32_t)many, process, told) == 0);
	STOP_UNLESS(!perfring_session_enable(session));
	run_for(session, 100);
	/* On a busy machine the next ones take their time to be born. */
	for (int i = 0; found >= 0 && (i < 3 || (!born && i < 50)); i++) {
		found = perfring_session_update(session);
		born += found;
		run_for(session, 100);
	}
	told->ret = found < 0 ? found : 0;
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	STOP_UNLESS(found >= 0 && born > 0);
	mappings(&rings);
	STOP_UNLESS(rings == all->cpus.count && rings == perfring_session_ring_count(session));
	told->numbers[1] = session->event_count;
	told->numbers[2] = session->live;
	perfring_session_totals(session, &totals);
	told->numbers[3] = totals.samples;
	STOP_UNLESS(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > 256);
	/* The storm is over: its threads hang up, the CPUs' events do not. */
	STOP_UNLESS(!kill(stormy, SIGKILL) && waitpid(stormy, NULL, 0) == stormy);
	for (int i = 0; i < 50 && (!i || session->live != all->cpus.count); i++)
		run_for(session, 200);
	told->numbers[4] = session->live;
	STOP_UNLESS(!perfring_session_is_over(session));
	/* What they had is closed: the epoll set, and 64 events on each CPU. */
	STOP_UNLESS(perfring_session_update(session) == 0);
	STOP_UNLESS(open_files() == files + 1 + EVENTS * all->cpus.count);
	perfring_session_close(session);
	perfring_target_close(all);
	perfring_target_close(process);
	told->numbers[0] = milliseconds() - told->numbers[0];
	STOP_UNLESS(open_files() == files);
	told->numbers[5] = mappings(&rings) - maps;
	STOP_UNLESS(rings == 0);
}

/* How many events may have an fd for each of so many threads on each CPU, at most 64: under the hard limit as it is, or
 * as root may have it. */
static uint64_t events_for(uint64_t threads)
{
	uint64_t most;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 1u << 18) {
		struct rlimit higher = {limit.rlim_cur, 1u << 18};

		if (!setrlimit(RLIMIT_NOFILE, &higher))
			limit = higher;
	}
	most = (limit.rlim_max - 1000) / (2 * threads * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	return most < EVENTS ? most : EVENTS;
}

static void expect_through_the_storm(uint32_t threads)
{
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), many = events_for(threads);
	struct told told;

	if (!many)
		cr_skip_test("SKIP-ENV: setrlimit: EPERM: a hard RLIMIT_NOFILE of 4000 and more");
	alive = threads;
	asked_of_child = many;
	/* Most threads live when their events are opened: they are born and die meanwhile, on a machine of any speed. */
	for (slow = 1;; slow *= 3) {
		told = in_child(through_the_storm);
		if (getenv("SESSION_PLAN_SHOW"))
			fprintf(stderr,
				"%lu events, %lu ms, %lu fds, %lu watched, %lu samples, %lu watched after, %ld more mappings\n",
				many, told.numbers[0], told.numbers[1], told.numbers[2], told.numbers[3], told.numbers[4],
				(long)told.numbers[5]);
		if (told.numbers[1] >= EVENTS * cpus + many * cpus * threads / 2 || slow > 20)
			break;
	}
	cr_assert_geq(told.numbers[1], EVENTS * cpus + many * cpus * threads / 2);
	cr_assert_leq(told.numbers[2], told.numbers[1] / many + cpus, "one of each thread and CPU is watched");
	cr_assert_gt(told.numbers[3], 0);
	cr_assert_eq(told.numbers[4], cpus);
}

Test(session_plan, sixty_four_events_on_all_cpus_and_five_hundred_threads)
{
	expect_through_the_storm(ALIVE);
}

/* As many threads as there may be with all 64 on each. */
Test(session_plan, sixty_four_events_on_every_thread)
{
	expect_through_the_storm((uint32_t)(events_for(1) < EVENTS ? 1 : 70));
}

static void under_a_hard_limit(struct told *told)
{
	struct rlimit limit = {256, 256};
	struct perfring_session *session;
	struct perfring_target *process;
	uint64_t files, maps, rings;
	pid_t stormy = begin_storm();

	STOP_UNLESS(stormy > 0);
	STOP_UNLESS(!setrlimit(RLIMIT_NOFILE, &limit));
	files = open_files();
	maps = mappings(&rings);
	STOP_UNLESS(!perfring_session_open(&session, 1));
	STOP_UNLESS(!perfring_session_configure(session, PERFRING_SESSION_RAISE_FILES, 0));
	STOP_UNLESS(!perfring_target_open(&process) && !perfring_target_add_process(process, stormy));
	told->numbers[0] = process->tids.count;
	told->numbers[1] = (uint64_t)-add_many(session, EVENTS, process, told);
	told->ret = 0;
	/* It was seen before the first one was opened. */
	told->numbers[2] = session->event_count;
	told->numbers[3] = open_files() - files;
	perfring_session_close(session);
	perfring_target_close(process);
	kill(stormy, SIGKILL);
	waitpid(stormy, NULL, 0);
	STOP_UNLESS(open_files() == files);
	told->numbers[4] = mappings(&rings) - maps;
	STOP_UNLESS(rings == 0);
}

Test(session_plan, a_hard_limit_is_explained)
{
	struct told told = in_child(under_a_hard_limit);
	char needed[64];

	cr_assert_eq(told.numbers[1], EMFILE, "%s", told.text);
	cr_assert_eq(told.numbers[2], 0);
	cr_assert_eq(told.numbers[3], 1, "the epoll set");
	snprintf(needed, sizeof(needed), "%lu files are to be opened", told.numbers[0]);
	cr_assert_not_null(strstr(told.text, needed), "%s", told.text);
	cr_assert_not_null(strstr(told.text, "the hard RLIMIT_NOFILE is 256"), "%s", told.text);
	cr_assert_not_null(strstr(told.text, "LimitNOFILE="), "%s", told.text);
}

/* event/opener.h alone: what is open counts, the soft limit is left alone unless raising is allowed, and goes up all the way. */
static void limits(struct told *told)
{
	struct rlimit limit = {100, 300};
	uint64_t open;
	int high;

	for (int i = 3; i < 1000; i++)
		close(i);
	high = fcntl(0, F_DUPFD, 120); /* above the limit to come: it takes no place below */
	STOP_UNLESS(high >= 120 && !setrlimit(RLIMIT_NOFILE, &limit));
	open = open_files() - 2; /* without the high one, and the directory */
	told->ret = perfring__opener_files(100 - open, false, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == 0);
	told->ret = perfring__opener_files(101 - open, false, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == -EMFILE && strstr(told->text, "soft RLIMIT_NOFILE is 100") &&
		    strstr(told->text, "ulimit -n 101)"));
	STOP_UNLESS(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == 100);
	told->ret = perfring__opener_files(101 - open, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == 0);
	STOP_UNLESS(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == 300 && limit.rlim_max == 300);
	/* The high one counts now. */
	told->ret = perfring__opener_files(300 - open - 1, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == 0);
	told->ret = perfring__opener_files(300 - open, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == -EMFILE && strstr(told->text, "hard RLIMIT_NOFILE is 300"));
	told->ret = perfring__opener_files(UINT64_MAX, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == -EMFILE && strstr(told->text, "nr_open"));
	/* Not one is left to look with. */
	while (dup(0) >= 0)
		;
	told->ret = perfring__opener_files(1, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == -EMFILE && strstr(told->text, "the 300 that are open"));
	told->ret = perfring__opener_files(0, true, told->text, sizeof(told->text));
	STOP_UNLESS(told->ret == 0);
}

Test(session_plan, limits_of_files)
{
	in_child(limits);
}

/* ---- groups on threads that die or have children meanwhile ---- */

struct tries {
	int errors[4];
	bool joining;
	int count;
};

static int try_once(void *of, bool *joining)
{
	struct tries *tries = of;

	*joining = tries->joining;
	return tries->errors[tries->count < 3 ? tries->count++ : 3];
}

Test(session_plan, what_passes_is_tried_again)
{
	static const struct {
		struct tries tries;
		bool is_thread;
		int ret, count;
	} ROWS[] = {
		{{{0}, true, 0}, true, 0, 1},
		{{{-EINVAL, -ENODEV, -ESRCH}, true, 0}, true, -ESRCH, 3},
		{{{-ECHILD, -ECHILD, 0}, false, 0}, true, 0, 3},
		{{{-EINVAL, 0}, false, 0}, true, -EINVAL, 1},
		{{{-EINVAL, 0}, true, 0}, false, -EINVAL, 1},
		{{{-ECHILD, 0}, true, 0}, false, -ECHILD, 1},
		{{{-EACCES, 0}, true, 0}, true, -EACCES, 1},
		{{{-ENODEV, -ENODEV, -ENODEV, -ENODEV}, true, 0}, true, -ENODEV, 3}, /* and so on, not for ever */
	};

	for (size_t i = 0; i < sizeof(ROWS) / sizeof(*ROWS); i++) {
		struct tries tries = ROWS[i].tries;

		cr_assert_eq(perfring__opener_retry(try_once, &tries, ROWS[i].is_thread), ROWS[i].ret, "%zu", i);
		cr_assert_eq(tries.count, ROWS[i].count, "%zu", i);
	}
}

/* A leader that is inherited, and READs of the whole. */
static struct perf_event_attr inherited(uint64_t config)
{
	struct perf_event_attr attr = software(config);

	attr.inherit = 1;
	attr.sample_period = 0;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	return attr;
}

struct half {
	struct perf_event_attr leader, sibling;
	struct worker worker;
	int fds[2];
};

/* Opens a leader, then starts a thread, then opens the leader's sibling.  A switch between the two threads swaps their contexts
 * (perf_event_context_sched_out); where both then stay off the CPU, the leader is in the other thread's context and takes no
 * sibling any more: -EINVAL, until it is opened anew. */
static int open_half_a_group(void *of, bool *joining)
{
	struct half *half = of;
	int ret;

	half->fds[0] = perfring_event_open(&half->leader, 0, -1, -1, 0);
	if (half->fds[0] < 0)
		return half->fds[0];
	start(&half->worker);
	ret = half->fds[1] = perfring_event_open(&half->sibling, 0, -1, half->fds[0], 0);
	if (ret >= 0)
		return 0;
	*joining = true;
	stop(&half->worker);
	close(half->fds[0]);
	return ret;
}

/* The thread has the leader and not its sibling: as long as it lives there is no whole to read. */
Test(session_plan, half_a_group_is_no_group)
{
	struct half half = {.leader = inherited(PERF_COUNT_SW_PAGE_FAULTS),
			    .sibling = inherited(PERF_COUNT_SW_DUMMY)};
	struct worker worker;
	int ret;

	/* A sanitizer's own thread comes with the first of ours. */
	start(&worker);
	stop(&worker);
	half.sibling.disabled = 0;
	ret = perfring__opener_retry(open_half_a_group, &half, true);
	if (half.fds[0] == -EACCES || half.fds[0] == -ENOSYS)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-half.fds[0]));
	cr_assert_eq(ret, 0, "%s", strerror(-ret));
	cr_assert_eq(perfring__opener_check_group(half.fds[0], half.leader.read_format), -ECHILD);
	cr_assert_eq(perfring__opener_check_group(half.fds[1], half.sibling.read_format), -ECHILD);
	stop(&half.worker);
	cr_assert_eq(perfring__opener_check_group(half.fds[0], half.leader.read_format), 0);
	close(half.fds[1]);
	close(half.fds[0]);
}

static void *live_long(void *unused)
{
	struct timespec time = {0, 80000000};

	nanosleep(&time, NULL);
	return unused;
}

struct mother {
	pthread_t thread;
	int32_t tid;
	bool ends;
};

static void *bear(void *argument)
{
	enum {
		MOST = 256
	};
	struct mother *mother = argument;
	pthread_t threads[MOST];
	uint32_t born = 0, gone = 0;

	__atomic_store_n(&mother->tid, (int32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&mother->ends, __ATOMIC_RELAXED)) {
		if (born - gone < MOST && !pthread_create(&threads[born % MOST], NULL, live_long, NULL))
			born++;
		else if (gone < born)
			pthread_join(threads[gone++ % MOST], NULL);
	}
	while (gone < born)
		pthread_join(threads[gone++ % MOST], NULL);
	return NULL;
}

/* However the births fall between the opening of its members, a group that is there can be read. */
Test(session_plan, groups_of_a_thread_that_has_children)
{
	struct perf_event_attr attrs[6];
	const struct perf_event_attr *group[6];
	struct mother mother = {.ends = false};
	struct perfring_target *target;
	uint64_t begun;

	for (int i = 0; i < 6; i++) {
		attrs[i] = inherited(i ? PERF_COUNT_SW_DUMMY : PERF_COUNT_SW_PAGE_FAULTS);
		group[i] = &attrs[i];
	}
	cr_assert_eq(pthread_create(&mother.thread, NULL, bear, &mother), 0);
	while (!__atomic_load_n(&mother.tid, __ATOMIC_ACQUIRE))
		sched_yield();
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, mother.tid), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	begun = milliseconds();
	do {
		struct perfring_session *session = open_session(1, 0, 0);

		skip_refused(session, perfring_session_add_group(session, group, 6, target));
		cr_assert_eq(session->event_count, 6 * target->cpus.count);
		for (uint32_t i = 0; i < session->event_count; i += 6)
			cr_assert_eq(perfring__opener_check_group(session->events[i].fd, attrs[0].read_format), 0);
		perfring_session_close(session);
	} while (milliseconds() - begun < 1000);
	__atomic_store_n(&mother.ends, true, __ATOMIC_RELAXED);
	pthread_join(mother.thread, NULL);
	perfring_target_close(target);
}

static void *live_shortest(void *unused)
{
	return unused;
}

static void *bear_mayflies(void *argument)
{
	struct mother *mother = argument;
	pthread_t threads[8];

	while (!__atomic_load_n(&mother->ends, __ATOMIC_RELAXED)) {
		int count = 0;

		while (count < 8 && !pthread_create(&threads[count], NULL, live_shortest, NULL))
			count++;
		while (count)
			pthread_join(threads[--count], NULL);
	}
	return NULL;
}

/* However the deaths fall, an add of a group passes over who is gone. */
Test(session_plan, groups_of_threads_that_die)
{
	struct perf_event_attr attrs[4];
	const struct perf_event_attr *group[4];
	struct mother mother = {.ends = false};
	uint64_t begun = milliseconds();

	for (int i = 0; i < 4; i++) {
		attrs[i] = software(i ? PERF_COUNT_SW_DUMMY : PERF_COUNT_SW_PAGE_FAULTS);
		group[i] = &attrs[i];
	}
	cr_assert_eq(pthread_create(&mother.thread, NULL, bear_mayflies, &mother), 0);
	do {
		struct perfring_session *session = open_session(1, 0, 0);
		struct perfring_target *target;

		cr_assert_eq(perfring_target_open(&target), 0);
		cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
		skip_refused(session, perfring_session_add_group(session, group, 4, target));
		cr_assert_eq(session->event_count % 4, 0, "all of a group or nothing");
		perfring_target_close(target);
		perfring_session_close(session);
	} while (milliseconds() - begun < 1000);
	__atomic_store_n(&mother.ends, true, __ATOMIC_RELAXED);
	pthread_join(mother.thread, NULL);
}

/* ---- the number of a thread that is gone ---- */

/* The next thread or process of this namespace gets number `tid`. */
static bool next_is(int32_t tid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", tid - 1);
	return write_to("/proc/sys/kernel", "ns_last_pid", text);
}

/* pthread_join, and the thread's disappearance, come before its number is free: another process must get it. */
static bool becomes_free(int32_t tid)
{
	pid_t child = -1;

	for (int i = 0; i < 5000 && child != tid; i++) {
		if (!next_is(tid))
			return false;
		child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		usleep(1000);
	}
	return child == tid;
}

/* In a namespace of its own, where numbers are ours to give.  A thread dies, its ring is not read; another one with its
 * number comes. */
static void number_again(struct told *told)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS), second = software(PERF_COUNT_SW_DUMMY);
	struct perfring_session *session;
	struct perfring_target *target;
	struct worker worker;
	uint32_t before;
	int32_t tid;

	STOP_UNLESS(!mount("proc", "/proc", "proc", 0, NULL));
	start(&worker);
	stop(&worker);
	for (int is_known = 0; is_known < 2; is_known++) {
		STOP_UNLESS(!perfring_target_open(&target) && !perfring_target_add_process(target, getpid()));
		STOP_UNLESS(!perfring_session_open(&session, 8));
		told->ret = perfring_session_add(session, &attr, target);
		snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
		STOP_UNLESS(told->ret == 0 && perfring_session_add(session, &second, target) == 1);
		STOP_UNLESS(!perfring_session_enable(session));
		start(&worker);
		STOP_UNLESS(perfring_session_update(session) == 2);
		tid = session->events[session->event_count - 1].tid;
		let_touch(&worker, 10);
		stop(&worker);
		STOP_UNLESS(becomes_free(tid));
		/* Once before the session has seen its end, once behind it. */
		before = session->live;
		for (int i = 0; is_known && session->live == before && i < 1000; i++)
			perfring_session_wait(session, 10);
		before = session->live;
		STOP_UNLESS(perfring_session_update(session) == 0);
		told->numbers[0] = next_is(tid);
		start(&worker);
		told->ret = perfring_session_update(session);
		snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
		STOP_UNLESS(told->ret == 2);
		told->ret = 0;
		STOP_UNLESS(session->events[session->event_count - 1].tid == tid);
		STOP_UNLESS(session->live == before + 1);
		let_touch(&worker, 20);
		stop(&worker);
		for (int i = 0; session->live > before - !is_known && i < 1000; i++)
			perfring_session_wait(session, 10);
		STOP_UNLESS(session->live == before - !is_known);
		/* The faults of starting and ending are more. */
		STOP_UNLESS(drain(session) >= 30);
		perfring_session_close(session);
		perfring_target_close(target);
	}
}

static void in_a_namespace(struct told *told)
{
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		told->ret = -EACCES;
		snprintf(told->text, sizeof(told->text), "unshare: %s: CAP_SYS_ADMIN", strerror(errno));
		return;
	}
	child = fork();
	if (child == 0) {
		number_again(told);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (!told->line && (!WIFEXITED(status) || WEXITSTATUS(status)))
		told->line = __LINE__;
}

Test(session_plan, a_thread_with_the_number_of_a_dead_one)
{
	struct told told = in_child(in_a_namespace);

	cr_assert_eq(told.numbers[0], 1, "ns_last_pid can be written");
}

/* ---- what else is promised ---- */

/* One that cannot be started is told of; the others run. */
Test(session_plan, enable_tries_all)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perfring_session *session = open_session(8, 0, 0);
	struct perfring_target *self = this_thread();
	int null;

	skip_refused(session, perfring_session_add(session, &attr, self));
	cr_assert_eq(perfring_session_add(session, &attr, self), 1);
	null = open("/dev/null", O_RDONLY);
	cr_assert_geq(null, 0);
	cr_assert_eq(dup2(null, session->events[0].fd), session->events[0].fd);
	close(null);
	cr_assert_eq(perfring_session_enable(session), -ENOTTY);
	touch_pages(10);
	cr_assert_eq(perfring_session_disable(session), -ENOTTY);
	cr_assert_geq(value_of(session, 1, NULL), 10);
	perfring_target_close(self);
	perfring_session_close(session);
}

/* A copy of the target holds its cgroups open. */
static void no_file_for_a_cgroup(struct told *told)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	const struct perf_event_attr *none = &attr;
	struct perfring_session *session;
	struct perfring_target *target;
	struct rlimit limit = {64, 64};

	STOP_UNLESS(!perfring_target_open(&target) && !perfring_target_add_cgroup(target, "/tmp"));
	STOP_UNLESS(!perfring_session_open(&session, 1));
	STOP_UNLESS(perfring_session_add_group(session, &none, 0, target) == -EINVAL);
	STOP_UNLESS(*perfring_session_refusal(session));
	STOP_UNLESS(!setrlimit(RLIMIT_NOFILE, &limit));
	while (dup(0) >= 0)
		;
	told->ret = perfring_session_add(session, &attr, target);
	snprintf(told->text, sizeof(told->text), "%s", perfring_session_refusal(session));
	STOP_UNLESS(told->ret == -EMFILE && strstr(told->text, "RLIMIT_NOFILE"));
	perfring_session_close(session);
	perfring_target_close(target);
}

Test(session_plan, every_refusal_has_a_sentence)
{
	in_child(no_file_for_a_cgroup);
}
