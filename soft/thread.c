/* thread.c - threads that take part: how they come and go; the locks; fork; numbers that are everybody's.
 *
 * A thread leaves by itself, or by its end: a destructor of a pthread key.  It is in no occurrence then, for leave is not
 * for handlers.  (What a handler has left by a jump or by pthread_exit will never be gone on with: what was in the making
 * is dropped, and nobody waits for it any more.)  A handler may still come at any instruction of leave:
 *
 *     its section, if any, ended   grace.c
 *     its timer deleted            a signal that is on its way is taken back
 *     EXIT written                 handlers count and sample as ever
 *     perfring_soft_self = 0       from here on a handler is a visitor: counted, and where it samples, lost (grace.c)
 *     instances folded             nobody finds them any more but by the locks that we hold
 *     its place given back         to the next thread that joins
 *
 * Destructors that run behind ours raise as visitors; one that joins again has ours run once more, as often as the C
 * library goes round (4).
 *
 * fork.  The child has one thread, the one that forked, and it takes no part.  Everything it could reach its parent's
 * rings or timers by is cut: points have no listeners, the thread has not joined, events are inert.  The memory stays,
 * because what forked may have been a handler on top of an occurrence, which goes on in the child.  (Such a handler may
 * not fork while another thread closes an event, whose locks wait for the occurrence below, nor on top of what is not for
 * handlers.  vfork and posix_spawn run no hooks and may.)
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/signals.h"
#include "soft_private.h"

enum {
	SECOND = 1000000000,
};

__thread struct soft_thread *perfring_soft_self __attribute__((tls_model("initial-exec")));
pthread_mutex_t perfring_soft_lock = PTHREAD_MUTEX_INITIALIZER;
struct perfring_soft_event *perfring_soft_events;
struct soft_thread *perfring_soft_threads;
uint32_t perfring_soft_max_rate = 100000;
uint32_t perfring_soft_hz = 250;
uint64_t perfring_soft_tick = SECOND / 250;

struct soft_thread *perfring_soft_blocks[SOFT_BLOCKS];

static pthread_mutex_t the_switch = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken[SOFT_BLOCKS]; /* places, a word for a block; perfring_soft_lock */
static uint64_t last_id;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor is a thread's end */
static int prepared;      /* 0 or -errno */

static uint32_t confined; /* by perfring_soft_confine */

/* ---- locks ---- */

void perfring_soft_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* In a handler too: whoever it has interrupted does not hold the switch, because nobody who does is interrupted, and who
 * waits inside pthread_mutex_lock has blocked signals before. */
void perfring_soft_switch_take(sigset_t *signals)
{
	perfring_os_signals_block(signals);
	pthread_mutex_lock(&the_switch);
}

void perfring_soft_switch_give(const sigset_t *signals)
{
	pthread_mutex_unlock(&the_switch);
	perfring_soft_signals_restore(signals);
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
	return perfring_os_clock_of(thread == perfring_soft_self ? CLOCK_THREAD_CPUTIME_ID : thread->clock);
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

/* ---- places ---- */

/* perfring_soft_lock. */
static int take_place(struct soft_thread **place)
{
	struct soft_thread *block;
	uint32_t i, k;

	for (i = 0; i < SOFT_BLOCKS && !~taken[i]; i++)
		;
	if (i == SOFT_BLOCKS)
		return -EUSERS;
	block = perfring_soft_blocks[i];
	if (!block) {
		block = aligned_alloc(_Alignof(struct soft_thread), SOFT_BLOCK * sizeof(*block));
		if (!block)
			return -ENOMEM;
		memset(block, 0, SOFT_BLOCK * sizeof(*block));
		PERFRING_STORE_RELEASE(&perfring_soft_blocks[i], block); /* partner: perfring_soft_grace */
	}
	k = (uint32_t)__builtin_ctzll(~taken[i]);
	taken[i] |= UINT64_C(1) << k;
	*place = &block[k];
	(*place)->index = i * SOFT_BLOCK + k;
	return 0;
}

/* perfring_soft_lock. */
static void give_place(const struct soft_thread *place)
{
	taken[place->index / SOFT_BLOCK] &= ~(UINT64_C(1) << place->index % SOFT_BLOCK);
}

/* ---- leave ---- */

static void leave(void *of)
{
	struct soft_thread *thread = of;
	struct perfring_soft_event *event;
	struct soft_instance *instance;

	/* After a jump out of an occurrence: who holds a lock may be waiting for us. */
	perfring_soft_exit(thread, thread->inside / SOFT_SECTION * SOFT_SECTION);
	perfring_soft_lock_take();
	for (event = perfring_soft_events; event; event = event->all) {
		instance = event->instances[thread->index];
		if (!instance)
			continue;
		perfring_soft_timer_delete(instance);
		if (event->set)
			perfring_writer_reset(instance->writer); /* likewise: EXIT would lie behind what was begun */
	}
	if (!PERFRING_LOAD(&confined))
		perfring_soft_timer_end(thread);
	perfring_soft_put_exit(thread);
	perfring_soft_self = NULL;
	PERFRING_FENCE_LOCAL(); /* before anything goes: a handler finds all of it, or is a stranger's */
	PERFRING_POINT(thread_leaves);
	for (event = perfring_soft_events; event; event = event->all)
		perfring_soft_instance_fold(event, thread);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	if (!PERFRING_LOAD(&confined))
		perfring_soft_stack_free(thread);
	give_place(thread);
	perfring_soft_lock_give();
}

void perfring_soft_confine(void)
{
	PERFRING_STORE(&confined, 1); /* no order: threads that leave at the same time are the caller's concern */
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

sigset_t perfring_soft_lock_signals;
static int cancel_state; /* before the lock was taken */

/* Signals first: a handler of whoever holds it may fork, and would wait for it in before_fork for ever. */
void perfring_soft_lock_take(void)
{
	sigset_t signals;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	perfring_os_signals_block(&signals);
	pthread_mutex_lock(&perfring_soft_lock);
	perfring_soft_lock_signals = signals;
	cancel_state = state;
	PERFRING_POINT(lock_taken);
}

void perfring_soft_lock_give(void)
{
	sigset_t signals = perfring_soft_lock_signals;
	int state = cancel_state;

	PERFRING_POINT(lock_given);
	pthread_mutex_unlock(&perfring_soft_lock);
	perfring_soft_signals_restore(&signals);
	pthread_setcancelstate(state, NULL);
}

/* ---- fork ---- */

static void before_fork(void)
{
	perfring_soft_lock_take();
	pthread_mutex_lock(&the_switch);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&the_switch);
	perfring_soft_lock_give();
}

static void after_fork_in_child(void)
{
	struct perfring_soft_event *event;

	pthread_mutex_unlock(&the_switch); /* by the thread that took it: it is the one that is here */
	pthread_setspecific(key, NULL);
	perfring_soft_self = NULL;
	perfring_soft_grace_forget();
	perfring_soft_points_forget();
	for (event = perfring_soft_events; event; event = event->all) {
		event->inert = true;
		event->on = event->limit = event->counted = 0;
	}
	perfring_soft_events = NULL;
	perfring_soft_stacks_forget();
	perfring_soft_threads = NULL;
	memset(taken, 0, sizeof(taken));
	ids_begin();
	perfring_soft_lock_give(); /* likewise */
}

void perfring_soft_fork_hooks(bool wanted)
{
	(void)wanted;
}

static void prepare(void)
{
	ids_begin();
	perfring_soft_grace_prepare();
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

/* This thread's, asked for once: in the child of a fork it is the same, and the C library's answer takes memory, which a
 * handler that forks may not. */
static __thread struct {
	uintptr_t low, high;
} stack __attribute__((tls_model("initial-exec")));

static void find_stack(pthread_t self)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (stack.high || pthread_getattr_np(self, &attr))
		return;
	if (!pthread_attr_getstack(&attr, &low, &size)) {
		stack.low = (uintptr_t)low;
		stack.high = (uintptr_t)low + size;
	}
	pthread_attr_destroy(&attr);
}

/* This thread, in its place. */
static void describe(struct soft_thread *thread)
{
	thread->clocks = NULL;
	thread->has_timer = false;
	thread->stack = NULL;
	thread->pthread = pthread_self();
	find_stack(thread->pthread);
	thread->stack_low = stack.low;
	thread->stack_high = stack.high;
	PERFRING_STORE(&thread->tid, (uint32_t)syscall(SYS_gettid)); /* no order: a grace period's look at a place */
	thread->pid = (uint32_t)getpid();
	pthread_getcpuclockid(thread->pthread, &thread->clock);
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

int perfring_soft_join(void)
{
	struct soft_thread *thread;
	int ret;

	if (perfring_soft_self)
		return 0;
	ret = perfring_soft_prepare();
	if (ret)
		return ret;
	perfring_soft_lock_take();
	ret = take_place(&thread);
	if (ret) {
		perfring_soft_lock_give();
		return ret;
	}
	describe(thread);
	ret = make_instances(thread);
	if (!ret)
		ret = -pthread_setspecific(key, thread);
	if (ret) {
		for (struct perfring_soft_event *event = perfring_soft_events; event; event = event->all)
			perfring_soft_instance_fold(event, thread);
		perfring_soft_timer_end(thread);
		give_place(thread);
		perfring_soft_lock_give();
		return ret;
	}
	perfring_soft_stack_make(thread);
	thread->link = &perfring_soft_threads;
	thread->next = perfring_soft_threads;
	if (thread->next)
		thread->next->link = &thread->next;
	perfring_soft_threads = thread;
	perfring_soft_self = thread;
	perfring_soft_put_fork(thread); /* before what handlers raise: they come when the lock is given */
	perfring_soft_lock_give();
	return 0;
}
