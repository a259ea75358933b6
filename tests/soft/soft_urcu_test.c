/* soft_urcu_test.c - a program that uses liburcu-bp itself: its read-side sections are its own, and its locks no trap. */
#include "sanitizers.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <urcu/urcu-bp.h>

#include <perfring/soft.h>

TestSuite(soft_urcu, .timeout = 60);

static struct perfring_soft_point *point;

static void raise_once(void)
{
	perfring_soft_raise(point, 1, 0, NULL, 0);
}

static struct perfring_soft_event *listen(uint64_t period)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = point->type, .config = point->config};
	struct perfring_soft_event *event;

	attr.sample_period = period;
	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL), 0);
	if (period)
		cr_assert_eq(perfring_soft_map(event, 1, -1), 0);
	return event;
}

static uint64_t value(struct perfring_soft_event *event)
{
	uint64_t word = 0;

	cr_assert_eq(perfring_soft_read(event, &word, sizeof(word)), 8);
	return word;
}

/* ---- its sections ---- */

static int cut_off, synchronized;

static void *synchronize(void *unused)
{
	__atomic_store_n(&cut_off, 1, __ATOMIC_RELEASE);
	urcu_bp_synchronize_rcu();
	__atomic_store_n(&synchronized, 1, __ATOMIC_RELEASE);
	return unused;
}

/* Every call of a thread's, in a section of its own. */
static void *read_and_take_part(void *unused)
{
	pthread_t synchronizer;
	int ongoing;

	urcu_bp_read_lock();
	if (pthread_create(&synchronizer, NULL, synchronize, NULL))
		return &point;
	while (!__atomic_load_n(&cut_off, __ATOMIC_ACQUIRE))
		sched_yield();
	ongoing = urcu_bp_read_ongoing();
	raise_once();
	if (perfring_soft_join())
		return &point;
	raise_once();
	urcu_bp_read_lock();
	perfring_soft_leave();
	raise_once();
	if (perfring_soft_join())
		return &point;
	perfring_soft_leave();
	urcu_bp_read_unlock();
	if (urcu_bp_read_ongoing() != ongoing || __atomic_load_n(&synchronized, __ATOMIC_ACQUIRE))
		return &point;
	urcu_bp_read_unlock();
	if (urcu_bp_read_ongoing())
		return &point;
	pthread_join(synchronizer, NULL); /* it ends */
	return unused;
}

Test(soft_urcu, its_sections_last_as_long_as_it_wants)
{
	struct perfring_soft_event *event;
	pthread_t thread;
	void *failed;

	point = perfring_soft_define("urcu:sections");
	event = listen(1);
	cr_assert_eq(pthread_create(&thread, NULL, read_and_take_part, NULL), 0);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	cr_assert_eq(value(event), 3);
	perfring_soft_close(event);
	cr_assert_eq(urcu_bp_read_ongoing(), 0);
	urcu_bp_synchronize_rcu();
}

/* In a section of its own a thread waits for another, which closes events; and joins while others do. */
static void *close_it(void *event)
{
	perfring_soft_close(event);
	return NULL;
}

Test(soft_urcu, its_sections_hold_no_event_up)
{
	struct perfring_soft_event *event;
	pthread_t closer;

	point = perfring_soft_define("urcu:closes");
	event = listen(0);
	urcu_bp_read_lock();
	cr_assert_eq(pthread_create(&closer, NULL, close_it, event), 0);
	pthread_join(closer, NULL);
	event = listen(1);
	raise_once();
	perfring_soft_close(event);
	cr_assert_neq(urcu_bp_read_ongoing(), 0);
	urcu_bp_read_unlock();
	cr_assert_eq(urcu_bp_read_ongoing(), 0);
}

/* ---- its fork: with or without hooks of its own ---- */

static void *synchronize_until(void *over)
{
	while (!__atomic_load_n((int *)over, __ATOMIC_ACQUIRE))
		urcu_bp_synchronize_rcu();
	return NULL;
}

Test(soft_urcu, it_leads_its_sections_over_a_fork_itself)
{
	struct perfring_soft_event *event;
	int status, over = 0;
	pthread_t thread;
	pid_t pid;

	point = perfring_soft_define("urcu:forks");
	event = listen(0);
	cr_assert_eq(pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent, urcu_bp_after_fork_child), 0);
	cr_assert_eq(pthread_create(&thread, NULL, synchronize_until, &over), 0);
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (pid == 0) {
			alarm(20);
			urcu_bp_synchronize_rcu();
			perfring_soft_close(event);
			_exit(perfring_soft_join());
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "%x", (unsigned)status);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	perfring_soft_close(event);
}

/* ---- its end of a thread: liburcu-bp holds a lock of its own there, and handlers may come ---- */

/* The sanitizer has a pthread_mutex_unlock of its own. */
#if !IS_THREAD_SANITIZED

static uintptr_t code_low, code_high; /* liburcu-bp's */
static uint64_t raised_there;
static __thread bool ends;

static int find_code(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!strstr(object->dlpi_name, "liburcu-bp"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			code_low = object->dlpi_addr + part->p_vaddr;
			code_high = code_low + part->p_memsz;
		}
	}
	return 1;
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *lock)
{
	static int (*real)(pthread_mutex_t *);
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	sigset_t blocked;

	if (!real) {
		void *found = dlsym(RTLD_NEXT, "pthread_mutex_unlock");

		memcpy(&real, &found, sizeof(real));
	}
	/* Where a handler may come, for signals are open. */
	if (ends && caller - code_low < code_high - code_low && !pthread_sigmask(SIG_SETMASK, NULL, &blocked) &&
	    !sigismember(&blocked, SIGUSR1)) {
		raise_once();
		raised_there++;
	}
	return real(lock);
}

static void *use_both(void *unused)
{
	urcu_bp_read_lock();
	urcu_bp_read_unlock();
	if (perfring_soft_join())
		return &point;
	raise_once();
	ends = true;
	return unused;
}

Test(soft_urcu, a_handler_in_its_end_of_a_thread_may_raise)
{
	struct perfring_soft_event *event;
	pthread_t thread;
	void *failed;

	dl_iterate_phdr(find_code, NULL);
	cr_assert_neq(code_low, 0);
	point = perfring_soft_define("urcu:ends");
	event = listen(1);
	cr_assert_eq(pthread_create(&thread, NULL, use_both, NULL), 0);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	cr_assert_geq(raised_there, 1, "no lock is given back there: is liburcu another one?");
	cr_assert_eq(value(event), 1 + raised_there);
	perfring_soft_close(event);
}

#endif
