/* thread.c - threads that join and leave; locks; fork; ids and limits.
 *
 * A thread leaves by perfring_soft_leave or at its end, by a pthread key's destructor.  It is in no occurrence then: leave is
 * not for handlers, and an occurrence that a handler left by a jump or pthread_exit is dropped.  A handler may interrupt leave
 * at any instruction:
 *
 *     ends its section             grace.c
 *     deletes its timer            and takes its pending signal
 *     writes EXIT                  handlers count and sample
 *     perfring__soft_self = 0       from here on a handler is a visitor: counted; samples count as lost (grace.c)
 *     folds its instances          they are reachable only under locks that are held here
 *     frees its place              for the next thread that joins
 *
 * Destructors after this one raise as visitors.  If one joins again, the destructor runs again, up to the C library's limit
 * of 4 rounds.
 *
 * fork.  The child has one thread, which has not joined.  All ways to the parent's rings and timers are cut: points have no
 * events, and events are marked as inherited.  If the forking handler has interrupted an occurrence, that goes on in the child,
 * in the place that its thread had in the parent: the place stays taken (`raises_on`), its depth stays, and until it is 0 no
 * inherited event is freed.  vfork and posix_spawn run no hooks and are allowed.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/signals.h"
#include "soft_private.h"

__thread struct soft_thread *perfring__soft_self __attribute__((tls_model("initial-exec")));
pthread_mutex_t perfring__soft_lock = PTHREAD_MUTEX_INITIALIZER;
struct perfring_soft_event *perfring__soft_events;
struct soft_thread *perfring__soft_threads;
uint32_t perfring__soft_max_rate = 100000;
uint32_t perfring__soft_hz = 250;
uint64_t perfring__soft_tick = SECOND / 250;

struct soft_thread *perfring__soft_blocks[SOFT_BLOCKS];

static pthread_mutex_t the_switch = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken[SOFT_BLOCKS]; /* places; a bit for each, perfring__soft_lock */
static uint64_t last_id, forks; /* forks before this process; as last_id: no number was asked for yet */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor runs at a thread's end */
static int prepared;      /* 0 or -errno */

static uint32_t confined;

/* ---- locks ---- */

void perfring__soft_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* In a handler too: signals are blocked before the lock is taken, so the interrupted code does not hold it. */
void perfring__soft_switch_take(sigset_t *signals)
{
	perfring__os_signals_block(signals);
	pthread_mutex_lock(&the_switch);
}

void perfring__soft_switch_give(const sigset_t *signals)
{
	pthread_mutex_unlock(&the_switch);
	perfring__soft_signals_restore(signals);
}

/* ---- numbers ---- */

/* Above the kernel's ids, which count from 1, and unlike another process's: one file may have samples of all.  The pid is asked for with
 * the first one: a fork's child may have a seccomp filter that kills for it.  Partner of the exchange: other threads', and that of a
 * handler which forks here; its child finds another value, and takes its own pid. */
uint64_t perfring__soft_next_id(void)
{
	uint64_t id = PERFRING_LOAD(&last_id), next;

	do
		next = (id >> 62 ? id : UINT64_C(1) << 62 | (uint64_t)getpid() << 40) + 1;
	while (!PERFRING_COMPARE_EXCHANGE(&last_id, &id, next));
	return next;
}

uint64_t perfring__soft_thread_time(const struct soft_thread *thread)
{
	return perfring__os_clock_of(thread == perfring__soft_self ? CLOCK_THREAD_CPUTIME_ID : thread->clock);
}

int perfring_soft_limits(uint32_t max_sample_rate, uint32_t ticks_per_second)
{
	if (!max_sample_rate || !ticks_per_second || ticks_per_second > SECOND)
		return -EINVAL;
	PERFRING_STORE(&perfring__soft_max_rate, max_sample_rate);
	PERFRING_STORE(&perfring__soft_hz, ticks_per_second);
	PERFRING_STORE(&perfring__soft_tick, SECOND / ticks_per_second);
	return 0;
}

/* ---- places ---- */

static int take_place(struct soft_thread **place)
{
	struct soft_thread *block;
	uint32_t i, k;

	for (i = 0; i < SOFT_BLOCKS && !~taken[i]; i++)
		;
	if (i == SOFT_BLOCKS)
		return -EUSERS;
	block = perfring__soft_blocks[i];
	if (!block) {
		block = aligned_alloc(_Alignof(struct soft_thread), SOFT_BLOCK * sizeof(*block));
		if (!block)
			return -ENOMEM;
		memset(block, 0, SOFT_BLOCK * sizeof(*block));
		PERFRING_STORE_RELEASE(&perfring__soft_blocks[i], block); /* partner: perfring__soft_grace */
	}
	k = (uint32_t)__builtin_ctzll(~taken[i]);
	taken[i] |= UINT64_C(1) << k;
	*place = &block[k];
	(*place)->index = i * SOFT_BLOCK + k;
	return 0;
}

static void give_place(const struct soft_thread *place)
{
	taken[place->index / SOFT_BLOCK] &= ~(UINT64_C(1) << place->index % SOFT_BLOCK);
}

/* ---- leave ---- */

static void leave(void *value)
{
	struct soft_thread *thread = value;
	struct perfring_soft_event *event;
	struct soft_instance *instance;

	/* A jump may have left an occurrence open, for which a lock's holder may be waiting. */
	perfring__soft_exit(thread, thread->inside / SOFT_SECTION * SOFT_SECTION);
	perfring__soft_lock_take();
	for (event = perfring__soft_events; event; event = event->all) {
		instance = event->instances[thread->index];
		if (instance && event->set)
			perfring_writer_reset(instance->writer); /* drops its uncommitted records, before EXIT */
	}
	if (!PERFRING_LOAD(&confined))
		perfring__soft_timer_end(thread);
	perfring__soft_put_exit(thread);
	perfring__soft_self = NULL;
	PERFRING_FENCE_LOCAL(); /* before the folds: a handler finds all instances or none */
	PERFRING_POINT(thread_leaves);
	for (event = perfring__soft_events; event; event = event->all)
		perfring__soft_instance_fold(event, thread);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	if (!PERFRING_LOAD(&confined))
		perfring__soft_stack_free(thread);
	give_place(thread);
	perfring__soft_lock_give();
}

void perfring_soft_confine(void)
{
	PERFRING_STORE(&confined, 1); /* no order: the caller sees to threads that leave meanwhile */
}

void perfring_soft_leave(void)
{
	struct soft_thread *thread = perfring__soft_self;

	if (!thread)
		return;
	pthread_setspecific(key, NULL); /* cannot fail: the key has its slot */
	leave(thread);
}

/* ---- the lock ---- */

sigset_t perfring__soft_lock_signals;
static int cancel_state; /* before the lock was taken */

/* Signals first: a handler that interrupts the holder might fork, and before_fork would wait for the holder. */
void perfring__soft_lock_take(void)
{
	sigset_t signals;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	perfring__os_signals_block(&signals);
	pthread_mutex_lock(&perfring__soft_lock);
	perfring__soft_lock_signals = signals;
	cancel_state = state;
	PERFRING_POINT(lock_taken);
}

void perfring__soft_lock_give(void)
{
	sigset_t signals = perfring__soft_lock_signals;
	int state = cancel_state;

	PERFRING_POINT(lock_given);
	pthread_mutex_unlock(&perfring__soft_lock);
	perfring__soft_signals_restore(&signals);
	pthread_setcancelstate(state, NULL);
}

/* ---- fork ---- */

static void before_fork(void)
{
	perfring__soft_lock_take();
	pthread_mutex_lock(&the_switch);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&the_switch);
	perfring__soft_lock_give();
}

static void after_fork_in_child(void)
{
	struct soft_thread *self = perfring__soft_self, *thread;
	struct perfring_soft_event *event;

	pthread_mutex_unlock(&the_switch); /* by its owner: the thread that forked */
	pthread_setspecific(key, NULL);
	perfring__soft_self = NULL;
	perfring__soft_grace_forget();
	perfring__soft_tables_forget();
	for (thread = perfring__soft_threads; thread; thread = thread->next) {
		thread->raises_on = thread == self && thread->inside % SOFT_SECTION;
		if (thread->raises_on)
			continue;
		thread->inside = 0;
		give_place(thread);
	}
	perfring__soft_points_forget();
	for (event = perfring__soft_events; event; event = event->all) {
		event->is_inherited = true;
		event->on = event->limit = event->is_counted = 0;
	}
	perfring__soft_events = NULL;
	perfring__soft_stacks_forget();
	perfring__soft_threads = NULL;
	PERFRING_STORE(&last_id, ++forks);
	perfring__soft_lock_give(); /* likewise */
}

/* Also gives the places of those that have ended. */
bool perfring__soft_raise_is_inherited(void)
{
	struct soft_thread *block, *place;
	bool is = false;

	for (uint32_t i = 0; i < SOFT_BLOCKS; i++) {
		block = perfring__soft_blocks[i];
		for (uint32_t k = 0; block && k < SOFT_BLOCK; k++) {
			place = &block[k];
			if (!place->raises_on)
				continue;
			if (PERFRING_LOAD_ACQUIRE(&place->inside) % SOFT_SECTION) { /* partner: perfring__soft_exit */
				is = true;
				continue;
			}
			PERFRING_STORE(&place->raises_on, false); /* no order: wait_for finds depth 0 */
			give_place(place);
		}
	}
	return is;
}

void perfring_soft_fork_hooks(bool wanted)
{
	(void)wanted;
}

static void prepare(void)
{
	perfring__soft_grace_prepare();
	prepared = -pthread_key_create(&key, leave);
	if (!prepared)
		prepared = -pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int perfring__soft_prepare(void)
{
	pthread_once(&once, prepare);
	return prepared;
}

/* ---- join ---- */

/* The calling thread's stack, asked for once: it is the same after fork, and pthread_getattr_np allocates, which a
 * child must not if a handler forked. */
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

/* Fills the place for the calling thread. */
static void describe(struct soft_thread *thread)
{
	thread->clocks = NULL;
	thread->has_timer = false;
	thread->stack = NULL;
	thread->pthread = pthread_self();
	find_stack(thread->pthread);
	thread->stack_low = stack.low;
	thread->stack_high = stack.high;
	PERFRING_STORE(&thread->tid, (uint32_t)syscall(SYS_gettid)); /* no order: a grace period may read it */
	thread->pid = (uint32_t)getpid();
	pthread_getcpuclockid(thread->pthread, &thread->clock);
}

/* Whether a thread that `creator` (NULL: unknown) has created gets an instance. */
static bool is_inherited(const struct perfring_soft_event *event, const struct soft_thread *creator)
{
	return event->scope == PERFRING_SOFT_PROCESS ||
	       (event->has_heirs && creator && event->instances[creator->index]);
}

static int make_instances(struct soft_thread *thread, const struct soft_thread *creator)
{
	struct soft_instance *instance, *owner;
	struct perfring_soft_event *event;
	int ret;

	for (event = perfring__soft_events; event; event = event->all) {
		if (!is_inherited(event, creator))
			continue;
		ret = perfring__soft_instance_make(event, thread);
		if (ret)
			return ret;
	}
	/* The owner of the rings may have got its instance after this one. */
	for (event = perfring__soft_events; event; event = event->all) {
		instance = event->instances[thread->index];
		owner = instance && event->output ? event->output->instances[thread->index] : NULL;
		if (owner)
			PERFRING_STORE_RELEASE(&instance->writer, owner->writer);
	}
	return 0;
}

static int join(const struct soft_thread *creator)
{
	struct soft_thread *thread;
	int ret;

	if (perfring__soft_self)
		return 0;
	ret = perfring__soft_prepare();
	if (ret)
		return ret;
	perfring__soft_lock_take();
	ret = take_place(&thread);
	if (ret) {
		perfring__soft_lock_give();
		return ret;
	}
	describe(thread);
	ret = make_instances(thread, creator);
	if (!ret)
		ret = -pthread_setspecific(key, thread);
	if (ret) {
		for (struct perfring_soft_event *event = perfring__soft_events; event; event = event->all)
			perfring__soft_instance_fold(event, thread);
		perfring__soft_timer_end(thread);
		give_place(thread);
		perfring__soft_lock_give();
		return ret;
	}
	perfring__soft_stack_make(thread);
	thread->link = &perfring__soft_threads;
	thread->next = perfring__soft_threads;
	if (thread->next)
		thread->next->link = &thread->next;
	perfring__soft_threads = thread;
	perfring__soft_self = thread;
	perfring__soft_put_fork(thread, creator); /* before what handlers raise, which begins with lock_give */
	perfring__soft_lock_give();
	return 0;
}

int perfring_soft_join(void)
{
	return join(NULL);
}

/* ---- threads that are created ---- */

/* On the creator's stack, until `joined` is posted. */
struct creation {
	void *(*run)(void *);
	void *argument;
	const struct soft_thread *creator; /* it waits, so it cannot leave; NULL: it has not joined */
	sigset_t signals;                  /* the creator's */
	bool has_mask;                     /* the attr's, which the thread has from its beginning on */
	int ret;
	sem_t joined;
};

static bool has_mask(const pthread_attr_t *attr)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
	sigset_t mask;

	return attr && !pthread_attr_getsigmask_np(attr, &mask);
#else
	(void)attr;
	return false;
#endif
}

/* No handler runs before the thread has joined, for it would raise as a visitor (of signals that a mask of the attr's lets through,
 * one may run first).  Nor is the thread cancelled. */
static void *begin(void *of)
{
	struct creation *creation = of, mine = *creation;
	sigset_t own;
	int state, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	perfring__os_signals_block(&own);
	creation->ret = ret = join(mine.creator);
	sem_post(&creation->joined); /* the last access */
	if (ret)
		return NULL;
	perfring__soft_signals_restore(mine.has_mask ? &own : &mine.signals);
	pthread_setcancelstate(state, NULL);
	return mine.run(mine.argument);
}

int perfring_soft_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
	struct creation creation = {.run = run, .argument = argument, .creator = perfring__soft_self};
	int detached = PTHREAD_CREATE_JOINABLE, state, ret;

	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	creation.has_mask = has_mask(attr);
	sem_init(&creation.joined, 0, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	perfring__os_signals_block(&creation.signals);
	ret = -pthread_create(thread, attr, begin, &creation);
	if (!ret) {
		while (sem_wait(&creation.joined))
			;
		ret = creation.ret;
		if (ret && detached == PTHREAD_CREATE_JOINABLE)
			pthread_join(*thread, NULL);
	}
	perfring__soft_signals_restore(&creation.signals);
	pthread_setcancelstate(state, NULL);
	sem_destroy(&creation.joined);
	return ret;
}
