/* counter_test.c - the processor's counter as a clock: calibrations that die, and several at a time. */
#include <signal.h>
#include <stdbool.h>

static void strike(const char *name);

#define PERFRING_POINT(name) strike(#name)

#include "rb/counter.c"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "test.h"

TestSuite(counter, .timeout = 60);

#define NO_COUNTER "SKIP-ENV: perfring_ring_calibrate: no steady counter on this processor"

static bool kills;

static void strike(const char *name)
{
	if (!kills || strcmp(name, "counter_locked") != 0)
		return;
	raise(SIGKILL);
	_exit(2); /* the first process of a pid namespace is not killed by itself */
}

/* The page converts what the counter says now to what the clock says now. */
static void check_conversion(const struct perfring_ring *ring)
{
	uint64_t before = perfring__os_clock_now(), time;

	cr_assert_eq(ring->page->lock & 1, 0);
	cr_assert_eq(perfring_page_to_time(ring->page, perfring_writer_counter(), &time), 0);
	cr_assert_geq(time + 1000000, before);
	cr_assert_leq(time, perfring__os_clock_now() + 1000000);
}

Test(counter, one_that_dies_leaves_a_page_that_the_next_mends)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perfring_ring ring;
	siginfo_t info;
	uint64_t time;
	int status;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	if (perfring_ring_calibrate(&ring) == -EOPNOTSUPP)
		cr_skip_test(NO_COUNTER);
	for (unsigned i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			kills = true;
			perfring_ring_calibrate(&ring);
			_exit(1);
		}
		/* Not reaped yet: it has ended all the same. */
		cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
		cr_assert_eq(ring.page->lock & 1, 1);
		cr_assert_eq(perfring_page_to_time(ring.page, 1, &time), -EAGAIN);
		cr_assert_eq(perfring_ring_calibrate(&ring), 0);
		check_conversion(&ring);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFSIGNALED(status));
	}
	perfring_ring_close(&ring);
}

struct rival {
	struct perfring_ring *ring;
	unsigned done, busy, wrong;
};

static void *compete(void *data)
{
	struct rival *rival = data;

	for (unsigned i = 0; i < 2000; i++)
		switch (perfring_ring_calibrate(rival->ring)) {
		case 0:
			rival->done++;
			break;
		case -EBUSY:
			rival->busy++;
			break;
		default:
			rival->wrong++;
		}
	return NULL;
}

Test(counter, several_at_a_time_leave_it_whole)
{
	struct perfring_ring_options options = {.pages = 1};
	struct rival rivals[3] = {{0}};
	pthread_t threads[3];
	struct perfring_ring ring;
	uint32_t before;
	unsigned done = 0;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	if (perfring_ring_calibrate(&ring) == -EOPNOTSUPP)
		cr_skip_test(NO_COUNTER);
	before = ring.page->lock;
	for (unsigned i = 0; i < 3; i++) {
		rivals[i].ring = &ring;
		cr_assert_eq(pthread_create(&threads[i], NULL, compete, &rivals[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		cr_assert_eq(rivals[i].wrong, 0);
		done += rivals[i].done;
	}
	cr_assert_gt(done, 0);
	/* Each that was let in has moved it by 2: no two were in together. */
	cr_assert_eq(ring.page->lock - before, 2 * done);
	check_conversion(&ring);
	perfring_ring_close(&ring);
}

/* Another that lives is at it: here this process's parent, by name. */
Test(counter, one_that_lives_is_left_alone)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perfring_ring ring;
	int status;
	pid_t child;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	if (perfring_ring_calibrate(&ring) == -EOPNOTSUPP)
		cr_skip_test(NO_COUNTER);
	perfring_ring_state_of(ring.page)->calibrator = perfring__identity_global();
	child = fork();
	if (!child)
		_exit(perfring_ring_calibrate(&ring) == -EBUSY ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(perfring_ring_calibrate(&ring), 0, "what this process has exec'd goes on");
	perfring_ring_close(&ring);
}

/* In a pid namespace of its own, where the numbers of this one name no thread, or another.  Returns its status, or -1: not
 * allowed. */
static int calibrate_elsewhere(struct perfring_ring *ring, bool killed)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(77);
		child = fork();
		if (!child) {
			kills = killed;
			_exit(perfring_ring_calibrate(ring) == -EBUSY ? 0 : 1);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			_exit(77);
		_exit(WEXITSTATUS(status));
	}
	return waitpid(child, &status, 0) == child && WEXITSTATUS(status) != 77 ? WEXITSTATUS(status) : -1;
}

Test(counter, one_of_another_namespace_is_left_alone)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perfring_ring_state *state;
	struct perfring_ring ring;
	int elsewhere;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	if (perfring_ring_calibrate(&ring) == -EOPNOTSUPP)
		cr_skip_test(NO_COUNTER);
	state = perfring_ring_state_of(ring.page);
	state->calibrator = perfring__identity_global();
	elsewhere = calibrate_elsewhere(&ring, false);
	if (elsewhere < 0)
		cr_skip_test("SKIP-ENV: unshare(CLONE_NEWPID): %s: user namespaces, or root", strerror(EPERM));
	cr_assert_eq(elsewhere, 0, "it takes the place of one that lives");
	cr_assert_eq(ring.page->lock & 1, 0);
	state->calibrator = 0;
	/* Nor is it known here that one there has ended: a thread of the same number may live. */
	cr_assert_eq(calibrate_elsewhere(&ring, true), 2);
	cr_assert_eq(perfring_ring_calibrate(&ring), -EBUSY);
	/* Of namespaces that are not known neither. */
	state->calibrator &= ~((UINT64_C(1) << 22) - 1);
	cr_assert_eq(perfring_ring_calibrate(&ring), -EBUSY);
	perfring_ring_close(&ring);
}
