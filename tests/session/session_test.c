/* session_test.c - sessions on the kernel's rings: targets, commands, threads on all CPUs, what is refused. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/command.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include "session/session_private.h"
#include "session_rig.h"
#include "test.h"

TestSuite(session, .timeout = 120);

enum {
	PAGE = 4096
};

/* ---- targets ---- */

Test(session, targets)
{
	struct perfring_target *target;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(target->cpus.count, (uint32_t)online);
	cr_assert_eq(perfring_target_add_cpus(target, "0"), 0);
	cr_assert_eq(target->cpus.count, (uint32_t)online, "once");
	cr_assert_eq(perfring_target_add_cpus(target, ""), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "0-"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "3-1"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "-1"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "0,x"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "99999999999999999999"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "100000"), -ENODEV);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	cr_assert_geq(target->tids.count, 1);
	cr_assert_eq(perfring_target_add_process(target, 0x3fffffff), -ESRCH);
	perfring_target_close(target);
}

/* ---- commands ---- */

static int exit_of(int32_t pid)
{
	int status = 0;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(session, commands)
{
	struct perfring_command command;

	cr_assert_eq(perfring_command_open(&command, (char *[]){"sh", "-c", "exit 7", NULL}), 0);
	cr_assert_eq(perfring_command_release(&command), 0);
	cr_assert_eq(exit_of(command.pid), 7);
	perfring_command_close(&command);

	cr_assert_eq(perfring_command_open(&command, (char *[]){"/no/such/command", NULL}), 0);
	cr_assert_eq(perfring_command_release(&command), -ENOENT);
	cr_assert_eq(exit_of(command.pid), 127);

	/* Killed while it waits: no SIGPIPE for us. */
	cr_assert_eq(perfring_command_open(&command, (char *[]){"true", NULL}), 0);
	kill(command.pid, SIGKILL);
	cr_assert_eq(exit_of(command.pid), 1000 + SIGKILL);
	cr_assert_eq(perfring_command_release(&command), -ESRCH);

	/* Never released: not left behind. */
	cr_assert_eq(perfring_command_open(&command, (char *[]){"true", NULL}), 0);
	perfring_command_close(&command);
	cr_assert_eq(waitpid(command.pid, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

/* ---- sessions on kernel rings ---- */

/* A session on this process with its threads to come; skips where the kernel refuses. */
static struct perfring_session *open_self(uint32_t pages, const struct perf_event_attr *attrs, int count)
{
	struct perfring_session *session;
	struct perfring_target *target;

	cr_assert_eq(perfring_session_open(&session, pages), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	for (int i = 0; i < count; i++) {
		int index = perfring_session_add(session, &attrs[i], target);

		if (index == -EACCES || index == -EPERM || index == -ENOSYS) {
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		}
		cr_assert_eq(index, i, "%s", perfring_session_refusal(session));
	}
	perfring_target_close(target);
	return session;
}

static void touch_pages(int pages)
{
	char *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		((volatile char *)memory)[(size_t)i * PAGE] = 1;
	munmap(memory, (size_t)pages * PAGE);
}

enum {
	THREADS = 4,
	TOUCHES = 20000,
	TURN = 500
};

/* Moves between the CPUs as it goes. */
static void *touch_on_all_cpus(void *argument)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	for (long i = 0; i < TOUCHES / TURN; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)(((intptr_t)argument + i) % online), &set);
		sched_setaffinity(0, sizeof(set), &set);
		touch_pages(TURN);
	}
	return NULL;
}

Test(session, threads_on_all_cpus_in_time_order)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session = open_self(1024, &attr, 1);
	struct perfring_totals totals;
	struct perfring_item item;
	uint64_t last = 0, samples = 0, falls = 0, turns = 0;
	pthread_t threads[THREADS];
	bool over = false;

	cr_assert_eq(perfring_session_enable(session), 0);
	for (intptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, touch_on_all_cpus, (void *)i), 0);
	while (!over) {
		over = samples >= THREADS * TOUCHES || turns++ > 6000;
		cr_assert_geq(perfring_session_wait(session, 20), 0);
		if (over)
			perfring_session_flush(session);
		while (perfring_session_next(session, &item) == 1) {
			struct perfring_sample sample;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			cr_assert_not_null(item.format);
			cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
			cr_assert_eq(sample.time, item.time);
			cr_assert_eq(sample.pid, (uint32_t)getpid());
			falls += item.time < last;
			if (item.time > last)
				last = item.time;
			samples += sample.addr % PAGE == 0;
		}
		perfring_session_return(session);
	}
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	perfring_session_disable(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.late, falls, "what is out of order is counted");
	cr_assert_leq(falls, samples / 1000);
	cr_assert_eq(totals.corrupt, 0);
	cr_assert_eq(totals.unknown_ids, 0);
	cr_assert_geq(samples + totals.lost, THREADS * TOUCHES);
	cr_assert_eq(perfring_session_ring_count(session), (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	perfring_session_close(session);
}

/* Ten seconds of 4000 Hz on every CPU, each kept busy by a process of its own. */
Test(session, the_whole_system_under_load)
{
	enum {
		BURNERS = 16
	};
	const unsigned seconds = getenv("PERFRING_PROVE") ? 10 : 3;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 4000,
		.sample_type =
			PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.disabled = 1,
		.context_switch = 1,
		.comm = 1,
		.task = 1,
	};
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals, of_ring;
	struct perfring_item item;
	struct timespec start, now;
	pid_t burners[BURNERS];
	uint64_t last = 0, falls = 0, samples = 0, records = 0, sum = 0;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	bool over = false;
	int index;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	for (long i = 0; i < online && i < BURNERS; i++) {
		burners[i] = fork();
		if (burners[i] == 0) {
			alarm(seconds * 6);
			for (;;)
				sched_yield();
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	cr_assert_eq(perfring_session_enable(session), 0);
	while (!over) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		over = now.tv_sec - start.tv_sec >= seconds;
		if (over)
			perfring_session_disable(session);
		cr_assert_geq(perfring_session_wait(session, 50), 0);
		if (over)
			perfring_session_flush(session);
		while (perfring_session_next(session, &item) == 1) {
			cr_assert_not_null(item.format);
			records++;
			samples += item.record->type == PERF_RECORD_SAMPLE;
			falls += item.time < last;
			if (item.time > last)
				last = item.time;
		}
		perfring_session_return(session);
	}
	for (long i = 0; i < online && i < BURNERS; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.late, falls, "late ones are counted");
	cr_assert_leq(falls * 1000, records, "and few");
	cr_assert_eq(totals.records, records);
	cr_assert_eq(totals.samples, samples);
	cr_assert_gt(samples, 4000u * seconds * (uint64_t)online / 10);
	cr_assert_eq(totals.unknown_ids + totals.corrupt, 0);
	for (uint32_t i = 0; perfring_session_ring_totals(session, i, &of_ring) == 0; i++) {
		cr_assert_gt(of_ring.samples, 0);
		sum += of_ring.records;
	}
	cr_assert_eq(sum, records);
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session, what_finds_the_ring_full_is_counted)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_totals totals;
	struct perfring_span span;
	uint64_t lost = 0;
	cpu_set_t set;

	/* On one CPU: a ring's losses are told by its own next record. */
	CPU_ZERO(&set);
	CPU_SET((unsigned)sched_getcpu(), &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	session = open_self(1, &attr, 1);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(5000);
	cr_assert_eq(perfring_session_disable(session), 0);
	/* What was dropped is told by the next record that finds space, here after the drain. */
	perfring_session_flush(session);
	while (perfring_session_next_span(session, &span) == 1)
		;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_gt(totals.samples, 50);
	cr_assert_lt(totals.samples, 1000);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(20);
	cr_assert_eq(perfring_session_disable(session), 0);
	perfring_session_flush(session);
	while (perfring_session_next_span(session, &span) == 1)
		;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	for (uint32_t i = 0; perfring_session_event_at(session, i, &opened); i++) {
		uint64_t buffer[4];
		struct perfring_read values;

		cr_assert_eq(perfring_event_read(opened.fd,
						 perfring_format_set_at(perfring_session_formats(session), 0), &values,
						 buffer, sizeof(buffer)),
			     0);
		cr_assert_eq(perfring_read_id(&values, 0), opened.id);
		lost += perfring_read_lost(&values, 0);
	}
	cr_assert_gt(lost, 3500);
	cr_assert_leq(totals.lost, lost);
	cr_assert_geq(totals.samples + lost, 5020);
	cr_assert_gt(totals.lost, 0);
	perfring_session_close(session);
}

Test(session, several_events_share_a_ring)
{
	struct perf_event_attr attrs[4] = {fault_attr(), fault_attr(), fault_attr(), fault_attr()};
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_item item;
	uint64_t by_event[4] = {0, 0, 0, 0}, fds = 0, began, ended;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	attrs[1].sample_type &= ~(uint64_t)PERF_SAMPLE_ADDR;
	attrs[2].config = PERF_COUNT_SW_DUMMY;
	attrs[2].comm = 1;
	attrs[2].mmap = attrs[2].mmap2 = attrs[2].mmap_data = 1;
	attrs[3].config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	attrs[3].sample_type = attrs[1].sample_type;
	for (int i = 0; i < 4; i++) {
		attrs[i].use_clockid = 1;
		attrs[i].clockid = CLOCK_MONOTONIC;
	}
	session = open_self(64, attrs, 4);
	cr_assert_eq(perfring_session_ring_count(session), (uint32_t)online);
	while (perfring_session_event_at(session, (uint32_t)fds, &opened)) {
		cr_assert_lt(opened.ring, (uint32_t)online);
		fds++;
	}
	cr_assert_geq(fds, 4 * (uint64_t)online);
	cr_assert_eq(perfring_session_enable(session), 0);
	/* Events are enabled and disabled one after the other: a fault in between is counted by some of them. */
	began = monotonic_ns();
	touch_pages(300);
	ended = monotonic_ns();
	cr_assert_eq(perfring_session_disable(session), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		cr_assert_not_null(item.format);
		if (item.record->type == PERF_RECORD_SAMPLE) {
			by_event[item.format->index] += item.time >= began && item.time <= ended;
			cr_assert_eq(item.record->size, item.format->index == 0 ? 48 : 40);
		} else if (item.record->type == PERF_RECORD_MMAP2) {
			struct perfring_record record;

			cr_assert_eq(perfring_record_decode(item.format, item.record, &record, NULL), 0);
			cr_assert_eq(record.is.mmap2.pid, (uint32_t)getpid());
			cr_assert_eq(record.trailer.time, item.time);
			by_event[2] += item.format->index == 2;
		}
	}
	perfring_session_return(session);
	cr_assert_geq(by_event[0], 300);
	cr_assert_eq(by_event[1] + by_event[3], by_event[0], "minor and major");
	cr_assert_geq(by_event[2], 1);
	perfring_session_close(session);
}

/* In spans only headers are looked at: of events that have their time at different places there is none to tell. */
Test(session, times_of_spans)
{
	for (int differ = 0; differ < 2; differ++) {
		struct perf_event_attr attrs[3] = {fault_attr(), fault_attr(), fault_attr()};
		struct perfring_session *session;
		struct perfring_totals totals;
		struct perfring_span span;

		if (differ)
			attrs[1].sample_type |= PERF_SAMPLE_IP;
		attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
		attrs[2].config = PERF_COUNT_SW_DUMMY;
		session = open_self(16, attrs, 3);
		cr_assert_eq(perfring_session_enable(session), 0);
		touch_pages(10);
		cr_assert_eq(perfring_session_disable(session), 0);
		perfring_session_flush(session);
		while (perfring_session_next_span(session, &span) == 1)
			;
		perfring_session_totals(session, &totals);
		cr_assert_geq(totals.samples, 20);
		cr_assert_eq(totals.first_time != 0, !differ);
		cr_assert_leq(totals.first_time, totals.last_time);
		cr_assert_lt(totals.last_time - totals.first_time, 60000000000);
		perfring_session_close(session);
	}
}

Test(session, a_command_from_exec_to_exit)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_command command;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_item item;
	uint64_t comms = 0, execs = 0, exits = 0, samples = 0;
	int index;

	attr.enable_on_exec = 1;
	attr.comm = attr.comm_exec = attr.task = attr.mmap = attr.mmap2 = 1;
	cr_assert_eq(perfring_command_open(&command, (char *[]){"sh", "-c", "true; exit 3", NULL}), 0);
	cr_assert_eq(perfring_session_open(&session, 16), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_thread(target, command.pid), 0);
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	cr_assert_eq(perfring_command_release(&command), 0);
	cr_assert_eq(exit_of(command.pid), 3);
	perfring_command_close(&command);
	for (int turns = 0; !perfring_session_is_over(session) && turns < 1000; turns++)
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	cr_assert(perfring_session_is_over(session), "every fd has hung up");
	cr_assert_eq(perfring_session_wait(session, 1000000), 0, "an end is not waited for");
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		samples += item.record->type == PERF_RECORD_SAMPLE;
		comms += item.record->type == PERF_RECORD_COMM;
		execs += item.record->type == PERF_RECORD_COMM && (item.record->misc & PERF_RECORD_MISC_COMM_EXEC);
		exits += item.record->type == PERF_RECORD_EXIT;
	}
	perfring_session_return(session);
	cr_assert_not(perfring__session_holds(session));
	cr_assert_eq(perfring_session_wait(session, -1), 0, "nor when nothing is held back");
	cr_assert_gt(samples, 10);
	cr_assert_eq(comms, 1);
	cr_assert_eq(execs, 1);
	cr_assert_eq(exits, 1);
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session, attrs_that_do_not_fit)
{
	struct perf_event_attr attr = fault_attr(), second;
	struct perfring_session *session;
	struct perfring_target *target, *other;
	struct perfring_session_event opened;
	int index;

	cr_assert_eq(perfring_session_open(&session, 3), -EINVAL);
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_session_add(session, &attr, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "neither a thread nor a CPU"));
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_TIME;
	cr_assert_eq(perfring_session_add(session, &attr, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "TIME"));
	attr = fault_attr();
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	second = fault_attr();
	second.sample_type &= ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "IDENTIFIER"));
	/* Another clock cannot share the ring: nothing of it stays. */
	second = fault_attr();
	second.use_clockid = 1;
	second.clockid = 1;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "clockid"));
	/* Nor can two clocks be put in order when they have rings of their own. */
	cr_assert_eq(perfring_target_open(&other), 0);
	cr_assert_eq(perfring_target_add_thread(other, 0), 0);
	second.inherit = 0;
	cr_assert_eq(perfring_session_add(session, &second, other), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "clockid"));
	perfring_target_close(other);
	second = fault_attr();
	second.write_backward = 1;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "write_backward"));
	cr_assert_eq(perfring_session_event_at(session, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) * target->tids.count,
					       &opened),
		     0);
	second = fault_attr();
	second.config = 9999;
	cr_assert_eq(perfring_session_add(session, &second, target), -ENOENT);
	/* The next number is free. */
	second.config = PERF_COUNT_SW_DUMMY;
	cr_assert_eq(perfring_session_add(session, &second, target), 1);
	cr_assert_str_eq(perfring_session_refusal(session), "");
	perfring_target_close(target);
	perfring_session_close(session);
}

static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* Without CPUs each thread has its own ring; more fds hang up at once than one look at the epoll set can tell. */
Test(session, threads_with_rings_of_their_own)
{
	enum {
		MANY = 100
	};
	struct perf_event_attr attr = fault_attr();
	struct perfring_session_event opened;
	struct perfring_session *session;
	struct perfring_target *target, *gone;
	int pair[2], index, status;
	uint32_t fds = 0;
	pid_t child;
	char byte;

	cr_assert_eq(pipe(pair), 0);
	child = fork();
	if (child == 0) {
		pthread_t thread;

		alarm(60);
		for (int i = 0; i < MANY; i++)
			if (pthread_create(&thread, NULL, wait_for_ever, NULL))
				_exit(1);
		(void)!write(pair[1], "", 1);
		wait_for_ever(NULL);
	}
	cr_assert_eq(read(pair[0], &byte, 1), 1);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_process(target, child), 0);
	/* Gone by the time it is opened: passed over. */
	cr_assert_eq(perfring_target_add_thread(target, 0x3fffffff), 0);
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	/* An inherited event has no ring without a CPU. */
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "bound to a CPU"));
	cr_assert_eq(perfring_session_ring_count(session), 0);
	attr.inherit = 0;
	cr_assert_eq(perfring_session_add(session, &attr, target), 0, "%s", perfring_session_refusal(session));
	/* When all have gone there is nothing to pass over to. */
	cr_assert_eq(perfring_target_open(&gone), 0);
	cr_assert_eq(perfring_target_add_thread(gone, 0x3fffffff), 0);
	cr_assert_eq(perfring_target_add_thread(gone, 0x3ffffffe), 0);
	cr_assert_eq(perfring_session_add(session, &attr, gone), -ESRCH);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "no thread 1073741823"));
	perfring_target_close(gone);
	cr_assert_eq(perfring_session_add(session, &attr, target), 1, "%s", perfring_session_refusal(session));
	cr_assert_geq(perfring_session_ring_count(session), MANY + 1);
	while (perfring_session_event_at(session, fds, &opened)) {
		cr_assert_eq(opened.cpu, -1);
		cr_assert_eq(opened.ring, fds % perfring_session_ring_count(session), "one ring for a thread's events");
		fds++;
	}
	cr_assert_eq(fds, 2 * perfring_session_ring_count(session));
	cr_assert_not(perfring_session_is_over(session));
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	for (int turns = 0; !perfring_session_is_over(session) && turns < 1000; turns++)
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	cr_assert(perfring_session_is_over(session));
	perfring_target_close(target);
	perfring_session_close(session);
	close(pair[0]);
	close(pair[1]);
}

static void take_signal(int number)
{
	(void)number;
}

/* Records that are held back are not held for long, although no ring wakes us any more. */
Test(session, a_wait_that_holds_records_back_is_short)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session = open_self(16, &attr, 1);
	struct perfring_item item;
	uint64_t samples = 0;
	int64_t began;

	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(3);
	cr_assert_eq(perfring_session_disable(session), 0);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	cr_assert_eq(perfring_session_next(session, &item), 0, "seen for the first time");
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, -1), 0);
	cr_assert_lt(milliseconds() - began, 5000);
	while (perfring_session_next(session, &item) == 1)
		samples += item.record->type == PERF_RECORD_SAMPLE;
	cr_assert_geq(samples, 3);
	perfring_session_return(session);
	/* A signal ends a wait; the first one may come before it. */
	cr_assert_eq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = take_signal}, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &(struct itimerval){{.tv_usec = 100000}, {.tv_usec = 100000}}, NULL), 0);
	cr_assert_eq(perfring_session_wait(session, 20000), -EINTR);
	cr_assert_eq(setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 0}, NULL), 0);
	/* Nothing is held back now: the time is waited for. */
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 300), 0);
	cr_assert_geq(milliseconds() - began, 250);
	perfring_session_close(session);
}

/* When the limit of files is met in the middle of an add, what was opened before is closed again. */
Test(session, refused_in_the_middle)
{
	char *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct perf_event_attr attr = fault_attr();
		struct perfring_session_event opened;
		struct perfring_session *session;
		struct perfring_target *target;
		struct rlimit limit = {200, 200};
		int ret, fd, last = 0;
		long spare;

		for (int i = 3; i < 1000; i++)
			close(i);
		if (setrlimit(RLIMIT_NOFILE, &limit) || perfring_session_open(&session, 1) ||
		    perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) ||
		    perfring_target_add_thread(target, getpid()))
			_exit(200);
		ret = perfring_session_add(session, &attr, target);
		/* Room for another one but its last CPU. */
		for (spare = 0; ret >= 0 && (fd = dup(0)) >= 0; spare++)
			last = fd;
		for (long i = 0; i < spare && i < sysconf(_SC_NPROCESSORS_ONLN) - 1; i++)
			close(last--);
		if (ret >= 0)
			ret = perfring_session_add(session, &attr, target);
		snprintf(text, 4096, "%s", perfring_session_refusal(session));
		if (ret != -EMFILE)
			_exit(ret < 0 ? -ret : 201);
		if (sysconf(_SC_NPROCESSORS_ONLN) *
				    (long)(perfring_format_set_count(perfring_session_formats(session))) !=
			    (long)session->event_count ||
		    perfring_session_event_at(session, session->event_count, &opened))
			_exit(202);
		perfring_session_close(session);
		fd = dup(0);
		_exit(fd == 3 ? 0 : 203);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == EACCES || WEXITSTATUS(status) == EPERM || WEXITSTATUS(status) == ENOSYS)
		cr_skip_test("SKIP-ENV: %s", text);
	cr_assert_eq(WEXITSTATUS(status), 0, "%d: %s", WEXITSTATUS(status), text);
	cr_assert_not_null(strstr(text, "RLIMIT_NOFILE is 200"));
}
