/* soft_fork_test.c - handlers that fork, wherever they strike in who holds a lock of soft/ or of a set of rings. */
#include "test.h"

/* Every named place of soft/thread.c and rb/set.c, which are compiled here for that. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soft/thread.c"
#define leave leave_set
#define stack stack_of_set
#include "rb/set.c"
#undef leave
#undef stack

TestSuite(soft_fork, .timeout = 240);

static volatile int held;              /* locks, by this thread */
static volatile unsigned came, inside; /* handlers; while a lock was held */
static volatile bool strikes, handles;

static void strike(const char *name)
{
	if (!strikes || handles)
		return;
	if (!strcmp(name, "lock_taken") || !strcmp(name, "set_locked"))
		held++;
	if (held)
		pthread_kill(pthread_self(), SIGUSR1);
	if (!strcmp(name, "lock_given") || !strcmp(name, "set_unlocks"))
		held--;
}

/* As the C library does it, but for its heap, which it locks too: a handler that forks on top of malloc waits for itself. */
static void fork_here(void)
{
	int status = -1;
	pid_t child;

	before_fork();
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		after_fork_in_child();
		_exit(7);
	}
	after_fork_in_parent();
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		_exit(99);
}

/* Once, in 3 ms: the handler that ends asks for the next, so that one that takes longer leaves time for what it interrupts. */
static timer_t timer;

static void handle_soon(void)
{
	struct itimerspec soon = {.it_value = {0, 3000000}};

	timer_settime(timer, 0, &soon, NULL);
}

static void on_signal(int number)
{
	int saved = errno;

	came++;
	inside += held != 0;
	handles = true;
	if (!held) /* else it would wait for ever */
		fork_here();
	handles = false;
	if (number == SIGALRM)
		handle_soon();
	errno = saved;
}

static void handle(int number)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

/* All that takes a lock: names, threads, events, rings, what the process is, the reader. */
static void do_all(unsigned turn)
{
	struct perfring_soft_point *point = perfring_soft_define(turn % 2 ? "fork:a" : "fork:b");
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	struct perfring_soft_event *event, *other;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.comm = attr.mmap = turn % 16 == 0;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	cr_assert_eq(perfring_soft_open(&other, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	cr_assert_eq(perfring_soft_set_output(other, event), 0);
	if (turn % 16 == 0)
		cr_assert_geq(perfring_soft_put_state(event), 0);
	perfring_soft_raise(point, 1, 0, NULL, 0);
	perfring_soft_leave();
	cr_assert_eq(perfring_soft_join(), 0);
	for (unsigned i = 0; i < 2; i++) { /* reads; then finds that one has gone, and drops it */
		while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
			cr_assert_geq(perfring_reader_observe(&member->reader), 0);
			while (perfring_reader_next(&member->reader, &record) == 1)
				;
			perfring_reader_return(&member->reader);
		}
	}
	(void)perfring_set_lost(perfring_soft_rings(event));
	perfring_soft_close(other);
	perfring_soft_close(event);
}

/* A signal at each place inside: it comes when the lock was given. */
Test(soft_fork, no_handler_comes_while_a_lock_is_held)
{
	handle(SIGUSR1);
	cr_assert_eq(perfring_soft_join(), 0);
	strikes = true;
	for (unsigned turn = 0; turn < 4; turn++)
		do_all(turn);
	strikes = false;
	cr_assert_gt(came, 20u);
	cr_assert_eq(inside, 0u);
	cr_assert_eq(held, 0);
}

/* At any instruction. */
Test(soft_fork, handlers_fork_anywhere)
{
	unsigned turn = 0;
	time_t begin;

	handle(SIGALRM);
	cr_assert_eq(perfring_soft_join(), 0);
	begin = time(NULL);
	cr_assert_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0); /* SIGALRM */
	handle_soon();
	/* Longer on a busy machine. */
	while (time(NULL) < begin + 3 || ((came <= 20 || turn <= 10) && time(NULL) < begin + 40))
		do_all(turn++);
	timer_delete(timer);
	cr_assert_gt(came, 20u);
	cr_assert_gt(turn, 10u);
}
