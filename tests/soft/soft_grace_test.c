/* soft_grace_test.c - grace periods wait for what began before them, for no more, and in each state of a thread. */
/* Every named place of the files that are compiled here. */
static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include "soft/grace.c"
#include "soft/point.c"
#include "soft/thread.c"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "test.h"

TestSuite(soft_grace, .timeout = 60);

static __thread void (*struck)(const char *name); /* what comes in between there */

static void strike(const char *name)
{
	if (struck)
		struck(name);
}

/* ---- helpers ---- */

static struct perfring_soft_event *listen(struct perfring_soft_point *point, unsigned scope, uint64_t period)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};
	struct perfring_soft_event *event;

	attr.sample_period = period;
	cr_assert_eq(perfring_soft_open(&event, &attr, scope, NULL), 0);
	return event;
}

static uint64_t value(struct perfring_soft_event *event)
{
	uint64_t word = 0;

	cr_assert_eq(perfring_soft_read(event, &word, sizeof(word)), 8);
	return word;
}

static void raise_times(struct perfring_soft_point *point, int n)
{
	while (n--)
		perfring_soft_raise(point, 1, 0, NULL, 0);
}

/* Places at which a thread stands still, one after the other, until it may go. */
struct stand {
	const char *place;
	bool reached, may_go;
};

static struct stand stands[3 + 1]; /* the last has no place */
static __thread int standing;      /* the next of them */

static void stand_still(const char *name)
{
	struct stand *stand = &stands[standing];

	if (!stand->place || strcmp(name, stand->place) != 0)
		return;
	standing++;
	PERFRING_STORE_RELEASE(&stand->reached, true);
	while (!PERFRING_LOAD_ACQUIRE(&stand->may_go))
		sched_yield();
}

static void await(const bool *word)
{
	while (!PERFRING_LOAD_ACQUIRE(word))
		sched_yield();
}

struct raiser {
	pthread_t thread;
	struct perfring_soft_point *point;
	int joins, times, first;
};

static void *raise_standing(void *of)
{
	struct raiser *raiser = of;

	if (raiser->joins && perfring_soft_join())
		return of;
	standing = raiser->first;
	struck = stand_still;
	raise_times(raiser->point, raiser->times);
	struck = NULL;
	return NULL;
}

static void begin_raiser(struct raiser *raiser)
{
	cr_assert_eq(pthread_create(&raiser->thread, NULL, raise_standing, raiser), 0);
	await(&stands[raiser->first].reached);
}

static void end_raiser(const struct raiser *raiser)
{
	void *failed;

	pthread_join(raiser->thread, &failed);
	cr_assert_null(failed);
}

/* Who closes an event, and how often its grace periods have waited. */
struct closer {
	pthread_t thread;
	struct perfring_soft_event *event;
	uint32_t waits;
	bool holds, is_held; /* at one of them */
	bool ended;
};

static __thread struct closer *closing;

static void count_waits(const char *name)
{
	if (strcmp(name, "grace_waits") != 0)
		return;
	PERFRING_ADD(&closing->waits, 1);
	while (PERFRING_LOAD_ACQUIRE(&closing->holds)) {
		PERFRING_STORE_RELEASE(&closing->is_held, true);
		sched_yield();
	}
}

static void *close_event(void *of)
{
	closing = of;
	struck = count_waits;
	perfring_soft_close(closing->event);
	struck = NULL;
	PERFRING_STORE_RELEASE(&closing->ended, true);
	return NULL;
}

static void begin_closer(struct closer *closer)
{
	cr_assert_eq(pthread_create(&closer->thread, NULL, close_event, closer), 0);
}

/* It has waited for long enough to have looked at everything, or has not waited. */
static bool waits(const struct closer *closer)
{
	while (PERFRING_LOAD(&closer->waits) < 3 && !PERFRING_LOAD_ACQUIRE(&closer->ended))
		sched_yield();
	return !PERFRING_LOAD_ACQUIRE(&closer->ended);
}

static void end_closer(const struct closer *closer)
{
	pthread_join(closer->thread, NULL);
	cr_assert(closer->ended);
}

/* ---- what it waits for ---- */

static void wait_for_one(bool joins, const char *place)
{
	struct perfring_soft_point *point = perfring_soft_define("waits");
	struct raiser raiser = {.point = point, .joins = joins, .times = 1};
	struct closer closer = {.event = listen(point, PERFRING_SOFT_PROCESS, 0)};

	stands[0].place = place;
	begin_raiser(&raiser);
	begin_closer(&closer);
	cr_assert(waits(&closer), "the event is freed while a raise is in it");
	PERFRING_STORE_RELEASE(&stands[0].may_go, true);
	end_closer(&closer);
	end_raiser(&raiser);
}

Test(soft_grace, waits_for_a_raise)
{
	wait_for_one(true, "raise_found");
}

Test(soft_grace, waits_for_a_raise_without_join)
{
	wait_for_one(false, "visit_found");
}

/* The first raise ends, the next one stands still: no grace period waits for it. */
static void wait_for_the_first(bool joins, const char *place)
{
	struct perfring_soft_point *point = perfring_soft_define("waits:first");
	struct perfring_soft_event *stays = listen(point, PERFRING_SOFT_PROCESS, 0);
	struct raiser raiser = {.point = point, .joins = joins, .times = 2};
	struct closer closer = {.event = listen(point, PERFRING_SOFT_PROCESS, 0)};

	/* It stands still with `stays`, the first in the list, and so once in each raise. */
	stands[0].place = place;
	begin_raiser(&raiser);
	begin_closer(&closer);
	cr_assert(waits(&closer));
	PERFRING_STORE_RELEASE(&closer.holds, true); /* it does not see the moment between the two */
	await(&closer.is_held);
	stands[1].place = joins ? "section_begins" : "visitor_looked"; /* of the next raise */
	stands[2].place = place;
	PERFRING_STORE_RELEASE(&stands[0].may_go, true);
	await(&stands[1].reached);
	PERFRING_STORE_RELEASE(&stands[1].may_go, true);
	await(&stands[2].reached);
	PERFRING_STORE_RELEASE(&closer.holds, false);
	end_closer(&closer);
	PERFRING_STORE_RELEASE(&stands[2].may_go, true);
	end_raiser(&raiser);
	cr_assert_eq(value(stays), 2);
	perfring_soft_close(stays);
}

Test(soft_grace, new_raises_hold_nobody_up)
{
	wait_for_the_first(true, "raise_found");
}

Test(soft_grace, new_raises_without_join_hold_nobody_up)
{
	wait_for_the_first(false, "visit_found");
}

/* A raise has read the phase, a grace period turns it and ends.  Counted under the old one, it would be seen by that grace
 * period alone: the next one waits for the other word. */
Test(soft_grace, waits_for_a_raise_that_came_as_the_phase_turned)
{
	struct perfring_soft_point *point = perfring_soft_define("phase");
	struct perfring_soft_event *first = listen(point, PERFRING_SOFT_PROCESS, 0);
	struct raiser raiser = {.point = point, .times = 1};
	struct closer closer = {.event = listen(point, PERFRING_SOFT_PROCESS, 0)};

	stands[0].place = "visitor_looked";
	stands[1].place = "visit_found";
	begin_raiser(&raiser);
	perfring_soft_close(first);
	PERFRING_STORE_RELEASE(&stands[0].may_go, true);
	/* The place of `first` in the list is empty, and found first. */
	await(&stands[1].reached);
	begin_closer(&closer);
	cr_assert(waits(&closer), "the event is freed while a raise is in it");
	PERFRING_STORE_RELEASE(&stands[1].may_go, true);
	end_closer(&closer);
	end_raiser(&raiser);
}

/* ---- a point's number of events that are enabled ---- */

static struct perfring_soft_event *struck_event;

static void enable_as_it_stops(const char *name)
{
	if (strcmp(name, "point_looked") != 0)
		return;
	struck = NULL;
	perfring_soft_enable(struck_event, false);
}

/* An occurrence that stops its event has seen that it is off; a handler enables it again before the point is told. */
Test(soft_grace, an_event_that_is_enabled_as_it_stops_is_raised)
{
	struct perfring_soft_point *point = perfring_soft_define("looked");

	struck_event = listen(point, PERFRING_SOFT_THREAD, 1);
	cr_assert_eq(perfring_soft_refresh(struck_event, 1), 0);
	struck = enable_as_it_stops;
	raise_times(point, 1);
	cr_assert_null(struck);
	cr_assert_eq(point->active, 1);
	raise_times(point, 5);
	cr_assert_eq(value(struck_event), 6);
	perfring_soft_close(struck_event);
	cr_assert_eq(point->active, 0);
}

/* ---- handlers at each instruction that counts ---- */

static struct perfring_soft_point *struck_point;
static uint64_t nested;

static void raise_on_top(const char *name)
{
	struck = NULL;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	nested++;
	/* Those behind it have no handler's signals blocked. */
	if (strncmp(name, "section", 7) == 0 || strcmp(name, "raise_found") == 0)
		struck = raise_on_top;
}

Test(soft_grace, a_handler_leaves_the_depth_that_it_found)
{
	struct perfring_soft_event *event;

	struck_point = perfring_soft_define("depth");
	event = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
	for (int i = 0; i < 10; i++) {
		struck = raise_on_top;
		perfring_soft_raise(struck_point, 1, 0, NULL, 0);
		struck = NULL;
		cr_assert_eq(perfring__soft_self->inside % SOFT_SECTION, 0);
	}
	cr_assert_eq(nested, 30, "before, in and behind each section");
	cr_assert_eq(value(event), 40);
	perfring_soft_close(event);
}

/* ---- threads that come and go ---- */

static void raise_as_it_leaves(const char *name)
{
	if (strcmp(name, "thread_leaves") != 0)
		return;
	struck = NULL;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
}

static pthread_key_t early, late;
static __thread int rounds;

/* In each round of destructors, before perfring's and behind it; once it joins again. */
static void raise_at_the_end(void *of)
{
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	if (of == &early && rounds == 1 && perfring_soft_join())
		return;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	if (of == &early && ++rounds < 3)
		pthread_setspecific(early, &early);
	if (of == &late && rounds < 3)
		pthread_setspecific(late, &late);
}

static void *come_and_go(void *unused)
{
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	if (perfring_soft_join())
		return &early;
	pthread_setspecific(early, &early);
	pthread_setspecific(late, &late);
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	struck = raise_as_it_leaves;
	return unused;
}

Test(soft_grace, a_thread_raises_up_to_its_very_end)
{
	struct perfring_soft_event *event;
	uint64_t raised = 0, before;
	pthread_t thread;
	void *failed;

	cr_assert_eq(pthread_key_create(&early, raise_at_the_end), 0);
	struck_point = perfring_soft_define("ends");
	event = listen(struck_point, PERFRING_SOFT_PROCESS, 1);
	cr_assert_eq(pthread_key_create(&late, raise_at_the_end), 0);
	cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	for (int i = 0; i < 20; i++) {
		before = value(event);
		cr_assert_eq(pthread_create(&thread, NULL, come_and_go, NULL), 0);
		pthread_join(thread, &failed);
		cr_assert_null(failed);
		raised += value(event) - before;
	}
	/* Without join 1, joined 1, as it leaves 1, three rounds of two keys 12. */
	cr_assert_eq(raised, 20 * 15, "%d", (int)raised);
	perfring_soft_close(event);
}

/* ---- what never goes on ---- */

static uint32_t unseen; /* its tid */

static void end_unseen(const char *name)
{
	if (strcmp(name, "raise_found") != 0)
		return;
	PERFRING_STORE_RELEASE(&unseen, (uint32_t)syscall(SYS_gettid));
	syscall(SYS_exit, 0);
}

static void *raise_and_end_unseen(void *unused)
{
	if (perfring_soft_join())
		return &early;
	struck = end_unseen;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	return unused;
}

Test(soft_grace, does_not_wait_for_a_thread_that_has_ended_in_a_raise)
{
	struct perfring_soft_event *event;
	pthread_t thread;
	uint32_t tid;

	struck_point = perfring_soft_define("unseen");
	event = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
	cr_assert_eq(pthread_create(&thread, NULL, raise_and_end_unseen, NULL), 0);
	while (!(tid = PERFRING_LOAD_ACQUIRE(&unseen)) || !syscall(SYS_tgkill, getpid(), tid, 0))
		sched_yield();
	perfring_soft_close(event);
}

static void *close_when_the_first_thread_has_ended(void *event)
{
	uint32_t pid = (uint32_t)getpid();
	struct perfring_os_task first;

	do
		sched_yield();
	while (!PERFRING_LOAD_ACQUIRE(&unseen) || perfring__os_task_stat(pid, pid, &first) || first.state != 'Z');
	perfring_soft_close(event);
	syscall(SYS_exit_group, 0);
	return NULL;
}

/* The first thread of a process stays as a zombie, to which signals can be sent. */
Test(soft_grace, does_not_wait_for_a_first_thread_that_has_ended_in_a_raise)
{
	struct perfring_soft_event *event;
	pthread_t thread;
	pid_t child;
	int status;

	struck_point = perfring_soft_define("zombie");
	child = fork();
	if (!child) {
		alarm(30);
		event = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
		if (pthread_create(&thread, NULL, close_when_the_first_thread_has_ended, event))
			_exit(1);
		raise_and_end_unseen(NULL);
		_exit(2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
}

/* A handler jumps out of a raise: to close in the same thread is no deadlock, and to leave is the way back. */
static jmp_buf out;

static void jump_out(const char *name)
{
	if (strcmp(name, "raise_found") != 0)
		return;
	struck = NULL;
	longjmp(out, 1);
}

Test(soft_grace, a_thread_does_not_wait_for_what_it_has_left_by_a_jump)
{
	struct perfring_soft_event *one, *other;
	struct closer closer = {.event = NULL};

	struck_point = perfring_soft_define("jumps");
	one = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
	other = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
	closer.event = other;
	if (!setjmp(out)) {
		struck = jump_out;
		perfring_soft_raise(struck_point, 1, 0, NULL, 0);
		cr_assert_fail("goes on");
	}
	cr_assert_eq(perfring__soft_self->inside % SOFT_SECTION, 1);
	perfring_soft_close(one);
	begin_closer(&closer);
	cr_assert(waits(&closer));
	perfring_soft_leave();
	end_closer(&closer);
}

/* ---- fork, by a handler at each place of a raise ---- */

static const char *fork_place;
static pid_t forked;

static void fork_there(const char *name)
{
	if (strcmp(name, fork_place) != 0)
		return;
	struck = NULL;
	forked = fork();
}

/* The child has gone on with the raise that it was forked on top of. */
static int child_goes_on(struct perfring_soft_event *inherited)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = struck_point->type};
	struct perfring_soft_event *event;
	uint64_t word = 0;

	alarm(30);
	attr.config = struck_point->config;
	if (perfring__soft_self)
		return 1;
	for (uint32_t i = 0; perfring__soft_blocks[0] && i < SOFT_BLOCK; i++)
		if (perfring__soft_blocks[0][i].inside % SOFT_SECTION)
			return 2;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	perfring_soft_close(inherited);
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL))
		return 3;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	perfring_soft_leave();
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	if (perfring_soft_read(event, &word, sizeof(word)) != 8 || word != 2)
		return 4;
	perfring_soft_close(event);
	return 0;
}

Test(soft_grace, a_handler_may_fork_in_a_raise)
{
	static const char *const places[] = {"section_begins", "raise_found", "section_ends"};
	struct raiser other = {.joins = 1, .times = 1, .first = 0};
	struct perfring_soft_event *event;
	int status;

	struck_point = perfring_soft_define("forks");
	event = listen(struck_point, PERFRING_SOFT_PROCESS, 0);
	/* Another thread is in a raise, which does not go on in the child. */
	other.point = struck_point;
	stands[0].place = "raise_found";
	begin_raiser(&other);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fork_place = places[i];
		struck = fork_there;
		perfring_soft_raise(struck_point, 1, 0, NULL, 0);
		if (forked == 0)
			syscall(SYS_exit_group, child_goes_on(event));
		cr_assert_null(struck);
		cr_assert_eq(waitpid(forked, &status, 0), forked);
		cr_assert_eq(status, 0, "%s: %x", places[i], (unsigned)status);
	}
	PERFRING_STORE_RELEASE(&stands[0].may_go, true);
	end_raiser(&other);
	cr_assert_eq(value(event), 4);
	perfring_soft_close(event);
}

/* ---- without membarrier(2) ---- */

static int refuse_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* For all threads. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? -errno : 0;
}

static bool storm_over;

static void *raise_until_it_is_over(void *times)
{
	if (perfring_soft_join())
		return NULL;
	while (!PERFRING_LOAD_ACQUIRE(&storm_over)) {
		raise_times(struck_point, 100);
		*(uint64_t *)times += 100;
	}
	return times;
}

static int raise_and_close(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = struck_point->type};
	struct perfring_soft_event *event;
	uint64_t raised = 0, word = 0;
	pthread_t thread;
	void *joined;

	attr.config = struck_point->config;
	PERFRING_STORE(&storm_over, false);
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) ||
	    pthread_create(&thread, NULL, raise_until_it_is_over, &raised))
		return 1;
	for (int i = 0; i < 200; i++) {
		struct perfring_soft_event *other;

		if (perfring_soft_open(&other, &attr, PERFRING_SOFT_PROCESS, NULL))
			return 2;
		perfring_soft_close(other);
	}
	PERFRING_STORE_RELEASE(&storm_over, true);
	pthread_join(thread, &joined);
	if (!joined || perfring_soft_read(event, &word, sizeof(word)) != 8 || word != raised)
		return 3;
	perfring_soft_close(event);
	return 0;
}

/* when: 0 before the first event, 1 between two. */
static int without_membarrier(int when)
{
	int ret;

	if (when) {
		struck_point = perfring_soft_define("refused");
		ret = raise_and_close();
		if (ret)
			return ret;
		if (perfring__soft_fences)
			return 77; /* this kernel has none */
	}
	if (refuse_membarrier())
		return 77;
	struck_point = perfring_soft_define("refused");
	ret = raise_and_close();
	return ret ? ret : perfring__soft_fences ? 0 : 4;
}

Test(soft_grace, membarrier_may_be_refused)
{
	int status, skipped = 0;
	pid_t pid;

	for (int when = 0; when < 2; when++) {
		pid = fork();
		if (pid == 0)
			syscall(SYS_exit_group, without_membarrier(when));
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skipped++;
		else
			cr_assert_eq(status, 0, "%d: %x", when, (unsigned)status);
	}
	if (skipped)
		cr_skip_test("SKIP-ENV: seccomp: SECCOMP_FILTER_FLAG_TSYNC, membarrier: a kernel that has both");
}
