/* thread.c - threads that take part: how they come and go; the locks; fork; numbers that are everybody's.
 *
 * A thread leaves by itself, or by its end: a destructor of a pthread key.  It is in no occurrence then, for leave is not
 * for handlers.  (What a handler has left by a jump or by pthread_exit will never be gone on with: what was in the making
 * is dropped, and nobody waits for it any more.)  A handler may still come at any instruction of leave:
 *
 *     its timers deleted       a signal that is on its way finds none
 *     EXIT written             handlers count and sample as ever
 *     perfring_soft_self = 0   from here on a handler is a stranger's: counted, and where it samples, lost (point.c)
 *     instances folded         nobody finds them any more but by the locks that we hold
 *
 * Destructors that run behind ours raise as strangers; one that joins again has ours run once more, as often as the C
 * library goes round (4).
 *
 * fork.  The child has one thread, the one that forked, and it takes no part.  Everything it could reach its parent's
 * rings or timers by is cut: points have no listeners, the thread is a stranger, events are inert.  The memory stays,
 * because what forked may have been a handler on top of an occurrence, which goes on in the child.  (Such a handler may
 * not fork while another thread closes an event, whose locks wait for the occurrence below, nor on top of what is not for
 * handlers.  vfork and posix_spawn run no hooks and may.)
 */
#include <urcu/urcu-bp.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own.h"

enum {
	SECOND = 1000000000,
	WORD_BITS = 64,
};

__thread struct soft_thread *perfring_soft_self __attribute__((tls_model("initial-exec")));
pthread_mutex_t perfring_soft_lock = PTHREAD_MUTEX_INITIALIZER;
struct perfring_soft_event *perfring_soft_events;
struct soft_thread *perfring_soft_threads;
uint32_t perfring_soft_max_rate = 100000;
uint32_t perfring_soft_hz = 250;
uint64_t perfring_soft_tick = SECOND / 250;

static pthread_mutex_t the_switch = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken[SOFT_THREADS / WORD_BITS]; /* indices; perfring_soft_lock */
static uint64_t last_id;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor is a thread's end */
static int prepared;      /* 0 or -errno */

static bool urcu_hooks = true;
static bool urcu_hooked;        /* in the fork that is being made */
static sigset_t forked_signals; /* what was blocked before it */

/* ---- locks ---- */

/* In a handler too: whoever it has interrupted does not hold the switch, because nobody who does is interrupted, and who
 * waits inside pthread_mutex_lock has blocked signals before. */
void perfring_soft_switch_take(sigset_t *signals)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, signals);
	pthread_mutex_lock(&the_switch);
}

void perfring_soft_switch_give(const sigset_t *signals)
{
	pthread_mutex_unlock(&the_switch);
	pthread_sigmask(SIG_SETMASK, signals, NULL);
}

/* ---- numbers ---- */

/* Above the kernel's, which count from 1, and another process's: samples of all may meet in one file. */
static void ids_begin(void)
{
	PERFRING_STORE(&last_id, UINT64_C(1) << 62 | (uint64_t)getpid() << 40);
}

uint64_t perfring_soft_next_id(void)
{
	return PERFRING_ADD(&last_id, 1) + 1;
}

uint64_t perfring_soft_thread_time(const struct soft_thread *thread)
{
	struct timespec time = {0, 0};

	clock_gettime(thread == perfring_soft_self ? CLOCK_THREAD_CPUTIME_ID : thread->clock, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

int perfring_soft_limits(uint32_t max_sample_rate, uint32_t ticks_per_second)
{
	if (!max_sample_rate || !ticks_per_second || ticks_per_second > SECOND)
		return -EINVAL;
	PERFRING_STORE(&perfring_soft_max_rate, max_sample_rate);
	PERFRING_STORE(&perfring_soft_hz, ticks_per_second);
	PERFRING_STORE(&perfring_soft_tick, SECOND / ticks_per_second);
	return 0;
}

/* ---- leave ---- */

static void leave(void *of)
{
	struct soft_thread *thread = of;
	struct perfring_soft_event *event;
	struct soft_instance *instance;

	/* After a jump out of an occurrence. */
	while (urcu_bp_read_ongoing()) /* who holds a lock may be waiting for us */
		perfring_soft_read_unlock();
	perfring_soft_lock_take();
	for (event = perfring_soft_events; event; event = event->all) {
		instance = event->instances[thread->index];
		if (!instance)
			continue;
		perfring_soft_timer_delete(instance);
		if (event->set)
			perfring_writer_reset(instance->writer); /* likewise: EXIT would lie behind what was begun */
	}
	perfring_soft_put_exit(thread);
	perfring_soft_self = NULL;
	PERFRING_FENCE_LOCAL(); /* before anything goes: a handler finds all of it, or is a stranger's */
	PERFRING_POINT(thread_leaves);
	for (event = perfring_soft_events; event; event = event->all)
		perfring_soft_instance_fold(event, thread);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	taken[thread->index / WORD_BITS] &= ~(UINT64_C(1) << thread->index % WORD_BITS);
	perfring_soft_lock_give();
	free(thread);
}

void perfring_soft_leave(void)
{
	struct soft_thread *thread = perfring_soft_self;

	if (!thread)
		return;
	pthread_setspecific(key, NULL); /* cannot fail: it has its place */
	leave(thread);
}

/* ---- the lock ---- */

static __thread int cancel_state __attribute__((tls_model("initial-exec"))); /* before it was taken */

void perfring_soft_lock_take(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&perfring_soft_lock);
	cancel_state = state;
}

void perfring_soft_lock_give(void)
{
	int state = cancel_state;

	pthread_mutex_unlock(&perfring_soft_lock);
	pthread_setcancelstate(state, NULL);
}

/* ---- fork ---- */

/* Whoever waits for a grace period holds liburcu's locks, and what it waits for may be a handler on top of a raise, which
 * wants the switch: so liburcu's first, then the switch, under which nobody waits for a grace period. */
static void before_fork(void)
{
	sigset_t all;

	pthread_mutex_lock(&perfring_soft_lock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &forked_signals);
	urcu_hooked = PERFRING_LOAD(&urcu_hooks);
	if (urcu_hooked)
		urcu_bp_before_fork();
	pthread_mutex_lock(&the_switch);
}

static void after_fork_in_parent(void)
{
	sigset_t signals = forked_signals;

	pthread_mutex_unlock(&the_switch);
	if (urcu_hooked)
		urcu_bp_after_fork_parent();
	pthread_mutex_unlock(&perfring_soft_lock); /* before signals: a handler that forks */
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

static void after_fork_in_child(void)
{
	struct perfring_soft_event *event;
	sigset_t signals = forked_signals;

	if (urcu_hooked)
		urcu_bp_after_fork_child();
	pthread_mutex_init(&the_switch, NULL);
	pthread_mutex_init(&perfring_soft_lock, NULL);
	pthread_setspecific(key, NULL);
	perfring_soft_self = NULL;
	perfring_soft_points_forget();
	for (event = perfring_soft_events; event; event = event->all) {
		event->inert = true;
		event->on = event->limit = event->counted = 0;
	}
	perfring_soft_events = NULL;
	perfring_soft_threads = NULL;
	memset(taken, 0, sizeof(taken));
	ids_begin();
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

void perfring_soft_fork_hooks(bool wanted)
{
	PERFRING_STORE(&urcu_hooks, wanted);
}

static void prepare(void)
{
	ids_begin();
	prepared = -pthread_key_create(&key, leave);
	if (!prepared)
		prepared = -pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int perfring_soft_prepare(void)
{
	pthread_once(&once, prepare);
	return prepared;
}

/* ---- join ---- */

static struct soft_thread *make_thread(void)
{
	struct soft_thread *thread = calloc(1, sizeof(*thread));
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (!thread)
		return NULL;
	thread->pthread = pthread_self();
	thread->tid = (uint32_t)syscall(SYS_gettid);
	thread->pid = (uint32_t)getpid();
	pthread_getcpuclockid(thread->pthread, &thread->clock);
	if (!pthread_getattr_np(thread->pthread, &attr)) {
		if (!pthread_attr_getstack(&attr, &low, &size)) {
			thread->stack_low = (uintptr_t)low;
			thread->stack_high = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attr);
	}
	return thread;
}

/* perfring_soft_lock. */
static int take_index(uint32_t *index)
{
	for (uint32_t i = 0; i < SOFT_THREADS / WORD_BITS; i++) {
		if (~taken[i]) {
			*index = i * WORD_BITS + (uint32_t)__builtin_ctzll(~taken[i]);
			taken[i] |= UINT64_C(1) << *index % WORD_BITS;
			return 0;
		}
	}
	return -EUSERS;
}

/* perfring_soft_lock. */
static int make_instances(struct soft_thread *thread)
{
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	int ret;

	for (event = perfring_soft_events; event; event = event->all) {
		if (event->scope != PERFRING_SOFT_PROCESS)
			continue;
		ret = perfring_soft_instance_make(event, thread);
		if (ret)
			return ret;
	}
	/* Events that write into rings whose turn came later. */
	for (event = perfring_soft_events; event; event = event->all) {
		instance = event->instances[thread->index];
		if (instance && event->output)
			PERFRING_STORE_RELEASE(&instance->writer, event->output->instances[thread->index]->writer);
	}
	return 0;
}

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* Before the destructors of thread-specific data, which go by the age of their keys: liburcu-bp's is older than ours, and
 * takes its init_lock with signals open.  A tick on top of it would register the thread anew, under the same lock. */
static void end_soon(void *unused)
{
	(void)unused;
	if (perfring_soft_self)
		PERFRING_STORE(&perfring_soft_self->ends, 1);
}

int perfring_soft_join(void)
{
	struct soft_thread *thread;
	sigset_t all, signals;
	int ret;

	if (perfring_soft_self)
		return 0;
	ret = perfring_soft_prepare();
	if (ret)
		return ret;
	thread = make_thread();
	if (!thread)
		return -ENOMEM;
	perfring_soft_read_lock(); /* liburcu gets to know us here, and not in a handler */
	perfring_soft_read_unlock();

	perfring_soft_lock_take();
	ret = take_index(&thread->index);
	if (ret) {
		perfring_soft_lock_give();
		free(thread);
		return ret;
	}
	ret = make_instances(thread);
	if (!ret)
		ret = -pthread_setspecific(key, thread);
	if (ret) {
		for (struct perfring_soft_event *event = perfring_soft_events; event; event = event->all)
			perfring_soft_instance_fold(event, thread);
		taken[thread->index / WORD_BITS] &= ~(UINT64_C(1) << thread->index % WORD_BITS);
		perfring_soft_lock_give();
		free(thread);
		return ret;
	}
	thread->link = &perfring_soft_threads;
	thread->next = perfring_soft_threads;
	if (thread->next)
		thread->next->link = &thread->next;
	perfring_soft_threads = thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &signals); /* FORK before what handlers raise */
	perfring_soft_self = thread;
	perfring_soft_put_fork(thread);
	perfring_soft_lock_give();
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	/* Of the first thread they run in exit(), and its handlers are sampled as well.  Without them (no glibc) nothing is
	 * lost but safety against that tick. */
	if (__cxa_thread_atexit_impl && gettid() != getpid())
		__cxa_thread_atexit_impl(end_soon, NULL, &__dso_handle);
	return 0;
}
