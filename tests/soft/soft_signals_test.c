/* soft_signals_test.c - what perfring blocks of a thread's signals is open again when its call has returned. */
#include "test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <perfring/soft.h>

TestSuite(soft_signals, .timeout = 60);

static struct perfring_soft_point *point;

static void raise_once(void)
{
	perfring_soft_raise(point, 1, 0, NULL, 0);
}

/* As the kernel has it for this thread; UINT64_MAX: not to be had. */
static uint64_t blocked_now(void)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	unsigned long long blocked = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
			break;
	if (file)
		fclose(file);
	return blocked;
}

static struct perfring_soft_event *listen(uint64_t period)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};
	struct perfring_soft_event *event;

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_TID;
	attr.comm = attr.task = attr.mmap2 = 1;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	if (period)
		cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	return event;
}

/* ---- a thread that has not joined ---- */

static volatile sig_atomic_t terms;

static void on_term(int number)
{
	(void)number;
	terms++;
}

static void *raise_unjoined(void *unused)
{
	static uint64_t blocked[2];
	sigset_t some;

	(void)unused;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &some, NULL);
	blocked[0] = blocked_now();
	raise_once();
	blocked[1] = blocked_now();
	pthread_kill(pthread_self(), SIGTERM);
	return blocked;
}

Test(soft_signals, a_raise_without_join_leaves_them_as_they_were)
{
	struct sigaction action = {.sa_handler = on_term};
	struct perfring_soft_event *event;
	const uint64_t *blocked;
	pthread_t thread;
	void *result;

	point = perfring_soft_define("signals");
	event = listen(1);
	cr_assert_eq(sigaction(SIGTERM, &action, NULL), 0);
	cr_assert_eq(pthread_create(&thread, NULL, raise_unjoined, NULL), 0);
	pthread_join(thread, &result);
	blocked = result;
	cr_assert_eq(blocked[0], UINT64_C(1) << (SIGUSR2 - 1));
	cr_assert_eq(blocked[1], blocked[0], "%llx", (unsigned long long)blocked[1]);
	cr_assert_eq(terms, 1, "its own SIGTERM has come");
	/* The main thread, when it takes no part: SIGTERM ends a process, and what it execs begins with its mask. */
	perfring_soft_leave();
	raise_once();
	cr_assert_eq(blocked_now(), 0, "%llx", (unsigned long long)blocked_now());
	cr_assert_eq(kill(getpid(), SIGTERM), 0);
	cr_assert_eq(terms, 2);
	cr_assert_eq(perfring_soft_lost(event), 2);
	perfring_soft_close(event);
}

/* A process begins with the mask of the one that executes it. */
Test(soft_signals, what_is_executed_after_a_raise_can_be_ended)
{
	static char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)"kill -TERM $$; exit 0", NULL};
	struct perfring_soft_event *event;
	int status;
	pid_t pid;

	point = perfring_soft_define("signals:exec");
	event = listen(0);
	perfring_soft_leave();
	raise_once();
	pid = fork();
	if (pid == 0) {
		execv("/bin/sh", arguments);
		_exit(127);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%x", (unsigned)status);
	perfring_soft_close(event);
}

/* ---- every call, each of its ways out ---- */

struct call {
	const char *name;
	void (*make)(void);
};

static struct perfring_soft_event *event, *leader;

static void call_define(void)
{
	perfring_soft_define("signals:another");
	perfring_soft_define("");
	perfring_soft_point_of(PERFRING_SOFT_TYPE, 1);
}

static void call_open(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};
	struct perfring_soft_event *other;

	cr_assert_eq(perfring_soft_open(&other, &attr, PERFRING_SOFT_PROCESS, leader), 0);
	cr_assert_eq(perfring_soft_set_output(other, event), 0);
	raise_once();
	perfring_soft_close(other);
	attr.pinned = 1;
	cr_assert_eq(perfring_soft_open(&other, &attr, PERFRING_SOFT_PROCESS, leader), -EINVAL);
	attr.read_format = 32;
	cr_assert_eq(perfring_soft_open(&other, &attr, PERFRING_SOFT_PROCESS, NULL), -EINVAL);
	cr_assert_eq(perfring_soft_map(event, 1, -1), -EINVAL);
	cr_assert_eq(perfring_soft_set_output(event, event), -EINVAL);
}

static void call_clock(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .sample_period = 1000000000};
	struct perfring_soft_event *clock;

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	cr_assert_eq(perfring_soft_open(&clock, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	perfring_soft_disable(clock, false);
	perfring_soft_close(clock);
}

static void call_switches(void)
{
	uint64_t words[4];

	perfring_soft_disable(event, true);
	perfring_soft_enable(event, false);
	perfring_soft_reset(event, true);
	cr_assert_eq(perfring_soft_refresh(event, 1), -EINVAL);
	cr_assert_eq(perfring_soft_set_period(event, 2), 0);
	cr_assert_eq(perfring_soft_set_period(event, 0), -EINVAL);
	cr_assert_eq(perfring_soft_read(event, words, sizeof(words)), 8);
	cr_assert_eq(perfring_soft_read(event, words, 1), -ENOSPC);
	perfring_soft_lost(event);
}

static void call_put_state(void)
{
	cr_assert_geq(perfring_soft_put_state(event), 0);
	cr_assert_eq(perfring_soft_put_state(leader), -EINVAL, "no ring");
}

static void call_leave_and_join(void)
{
	perfring_soft_leave();
	raise_once();
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_put_state(event), -EINVAL, "takes no part");
	cr_assert_eq(perfring_soft_join(), 0);
	cr_assert_eq(perfring_soft_join(), 0);
}

static void call_fork(void)
{
	uint64_t before = blocked_now();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		raise_once();
		perfring_soft_enable(event, true);
		perfring_soft_close(event);
		syscall(SYS_exit_group, blocked_now() == before ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
}

static void *make_calls(void *unused)
{
	static const struct call calls[] = {
		{"define", call_define},   {"open", call_open},           {"clock", call_clock},
		{"switch", call_switches}, {"put_state", call_put_state}, {"leave", call_leave_and_join},
		{"fork", call_fork},
	};
	static const uint64_t masks[] = {0, UINT64_C(1) << (SIGUSR1 - 1), 0xfffffffe7ffbfeff /* all that can be */};
	sigset_t set;

	cr_assert_eq(perfring_soft_join(), 0);
	for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
		sigemptyset(&set);
		for (int number = 1; number <= 64; number++)
			if (masks[m] >> (number - 1) & 1)
				sigaddset(&set, number);
		cr_assert_eq(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			calls[i].make();
			cr_assert_eq(blocked_now(), masks[m], "%s: %llx", calls[i].name,
				     (unsigned long long)blocked_now());
		}
	}
	return unused;
}

Test(soft_signals, each_call_leaves_them_as_they_were)
{
	pthread_t thread;

	point = perfring_soft_define("signals:calls");
	leader = listen(0);
	event = listen(1);
	make_calls(NULL);
	cr_assert_eq(pthread_create(&thread, NULL, make_calls, NULL), 0);
	pthread_join(thread, NULL);
	perfring_soft_close(event);
	perfring_soft_close(leader);
}

/* ---- a sandbox that answers system calls by SIGSYS ---- */

#if defined(__x86_64__)

/* Each trapped call returns 0. */
static volatile sig_atomic_t trapped;

static void answer(int number, siginfo_t *from, void *of)
{
	ucontext_t *context = of;

	(void)number;
	(void)from;
	trapped++;
	context->uc_mcontext.gregs[REG_RAX] = 0;
}

static int live_in_a_sandbox(struct perfring_soft_event *clock)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_settime, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};

	if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	perfring_soft_enable(clock, false);
	perfring_soft_disable(clock, false);
	return trapped >= 2 ? 0 : 1;
}

static int in_a_child(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .sample_period = 1000000000};
	struct perfring_soft_event *clock;

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.disabled = 1;
	if (perfring_soft_open(&clock, &attr, PERFRING_SOFT_THREAD, NULL))
		return 2;
	return live_in_a_sandbox(clock);
}

/* The kernel ends who blocks SIGSYS there. */
Test(soft_signals, a_sandbox_may_answer_our_system_calls)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		syscall(SYS_exit_group, in_a_child());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		cr_skip_test("SKIP-ENV: prctl: PR_SET_SECCOMP: a kernel with CONFIG_SECCOMP_FILTER");
	cr_assert_eq(status, 0, "%x", (unsigned)status);
}

#endif
