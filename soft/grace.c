/* grace.c - sections, in which a raise walks events, and grace periods, which wait for every section that has begun.
 *
 * The protocol is RCU's, but not liburcu's sections, because a raise may come in a handler, at any instruction of any thread:
 *   - liburcu-bp registers a thread at its first section, under a lock that its exit notifier holds with signals unblocked.
 *     A raise there would wait for its own thread.  The other flavours register a thread once, which is the program's to do.
 *   - A grace period would also wait for sections of the program, which may wait for a lock of ours.
 *
 *     a thread that has joined, with its handlers      grace (any thread, several at a time)
 *   1   before := inside                             a   unlinks a list or an instance
 *   2   inside := before + 1                         b   every thread passes a full barrier: membarrier(2)
 *   3   (a compiler barrier)                         c   first := inside of each thread that has joined
 *   4   ... walks lists, events, instances ...       d   waits until inside has depth 0, or counts other sections
 *   5   inside := before; at depth 0                     than `first`
 *       before + SOFT_SECTION                        e   frees what was unlinked
 *
 * `inside` counts ended sections; its bits below SOFT_SECTION are the depth: a raise, a handler that interrupts it, and so on.
 *
 *   2 and c   The barrier b falls between two instructions of the thread.  If 2 is before it, c sees the depth.  If 4 is
 *             after it, 4 does not find what a unlinked.  Without membarrier(2) the thread has a full barrier at 3.
 *   5 and d   5 releases, d acquires: e comes after the reads of 4.  2 releases too, because d may see the section that 5
 *             counted only in the 2 of a later section.
 *   handlers  A handler between 1 and 2, or within 5, leaves the depth of `inside` as it was.  Between 1 and 2 at depth 0 it
 *             counts a section, and 2 undoes that: d may wait for one section more, but never for one less, because
 *             handlers inside a section begin at depth 1 and count nothing.
 *   new raises do not delay a grace period: d waits for one section of each thread.
 *
 * The states of a raising thread:
 *
 *   not joined, joining        perfring__soft_self is NULL: a visitor (below)
 *   joined, in destructors     a section.  It takes no lock, so it may interrupt any library, even with a lock held
 *   leaving                    a section until perfring__soft_self is NULL, then a visitor.  Instances are freed after that
 *   child of fork              perfring__soft_self is NULL, each `inside` is 0, but of the thread that forked: if its handler
 *                              interrupted a raise, that raise goes on to its 5.  It uses inherited events only, which no
 *                              grace period frees (thread.c)
 *   child of vfork             the parent thread's section: the parent stands still
 *   ended in a section         pthread_exit in a handler: leave clears the depth.  The system call exit: d sees no such thread
 *   jumped out of a section    the depth stays until leave clears it.  The thread's own grace periods ignore it
 *
 * A visitor is a raise of a thread that has not joined.  It only counts, protected by two words:
 *
 *     visitor                                 grace (one at a time)
 *       p := phase                              a to d
 *       visitors[p] += 1                        phase := the other
 *       phase is still p?  else repeat          until visitors[the one before] = 0
 *       ... walks ...                           e
 *       visitors[p] -= 1
 *
 * All of it is ordered.  If the visitor's += 1 is before the change of phase, the grace period sees it; else the visitor
 * finds the new list.  New visitors count in the other word, so they do not delay a grace period.  Signals are blocked
 * meanwhile: a handler that ended the thread, jumped or forked would leave the count too high.
 */
#include <errno.h>
#include <sched.h>

#include "os/membarrier.h"
#include "os/signals.h"
#include "os/task.h"
#include "soft_private.h"

enum {
	YIELDS = 16,                 /* rounds before a sleep */
	PAUSE_NS = 50000,            /* ns */
	LOOKS = 20,                  /* sleeps before it checks again that the thread exists */
	STORES_VISIBLE_NS = 10000000 /* after that every CPU has stored what was in its store buffer */
};

uint32_t perfring__soft_fences = 1;

static pthread_mutex_t graces = PTHREAD_MUTEX_INITIALIZER;
static uint64_t visitors[2];
static uint32_t phase;

/* ---- the barrier ---- */

void perfring__soft_grace_prepare(void)
{
	PERFRING_STORE(&perfring__soft_fences, !perfring__os_membarrier_register());
}

static void sleep_for(long ns)
{
	struct timespec time = {0, ns};

	nanosleep(&time, NULL);
}

/* If membarrier is refused only now (by a new filter), sections have fences from here on.  Those that began before are
 * not ordered by anything, but their stores are visible long before STORES_VISIBLE_NS have passed. */
static void barrier_everywhere(void)
{
	PERFRING_FENCE();
	if (PERFRING_LOAD(&perfring__soft_fences))
		return;
	if (perfring__os_membarrier_process())
		return;
	PERFRING_EXCHANGE(&perfring__soft_fences, 1);
	sleep_for(STORES_VISIBLE_NS);
}

/* ---- waiting ---- */

/* The other thread may have a lower priority on the same CPU: yielding alone would never let it run. */
static void back_off(uint32_t round)
{
	PERFRING_POINT(grace_waits);
	if (round < YIELDS)
		sched_yield();
	else
		sleep_for(PAUSE_NS);
}

static void wait_for(const struct soft_thread *thread)
{
	uint64_t first = PERFRING_LOAD_ACQUIRE(&thread->inside), now = first; /* partner: exit's release */

	if (thread == perfring__soft_self || PERFRING_LOAD(&thread->raises_on))
		return;
	for (uint32_t round = 0; now % SOFT_SECTION && now / SOFT_SECTION == first / SOFT_SECTION; round++) {
		/* It ended by the system call exit; or this is a vfork child, which has none of these threads. */
		if (round > YIELDS && round % LOOKS == 0 && perfring__os_task_has_ended(PERFRING_LOAD(&thread->tid)))
			return;
		back_off(round);
		now = PERFRING_LOAD_ACQUIRE(&thread->inside);
	}
}

static void wait_for_visitors(void)
{
	uint32_t before;

	pthread_mutex_lock(&graces);
	before = PERFRING_LOAD(&phase); /* only changed here */
	PERFRING_EXCHANGE(&phase, before ^ 1);
	PERFRING_POINT(grace_turned);
	for (uint32_t round = 0; PERFRING_LOAD_ORDERED(&visitors[before]); round++)
		back_off(round);
	pthread_mutex_unlock(&graces);
}

void perfring__soft_grace(void)
{
	const struct soft_thread *block;
	int saved = errno, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	barrier_everywhere();
	for (uint32_t i = 0; i < SOFT_BLOCKS; i++) {
		block = PERFRING_LOAD_ACQUIRE(&perfring__soft_blocks[i]); /* partner: take_place */
		for (uint32_t k = 0; block && k < SOFT_BLOCK; k++)
			wait_for(&block[k]);
	}
	wait_for_visitors();
	pthread_setcancelstate(state, NULL);
	errno = saved;
}

/* ---- visitors ---- */

void perfring__soft_visit_begin(struct soft_visit *visit)
{
	uint32_t p;

	perfring__os_signals_block(&visit->signals);
	for (;;) {
		p = PERFRING_LOAD_ORDERED(&phase);
		PERFRING_POINT(visitor_looked);
		PERFRING_ADD(&visitors[p], 1);
		/* A phase changed before the += 1 means that this grace period did not see it.  Nor would the next one,
		 * which waits for the other word. */
		if (PERFRING_LIKELY(PERFRING_LOAD_ORDERED(&phase) == p))
			break;
		PERFRING_ADD(&visitors[p], UINT64_MAX);
	}
	visit->phase = p;
}

void perfring__soft_visit_end(const struct soft_visit *visit)
{
	PERFRING_ADD(&visitors[visit->phase], UINT64_MAX);
	perfring__soft_signals_restore(&visit->signals);
}

/* ---- fork ---- */

void perfring__soft_grace_forget(void)
{
	pthread_mutex_init(&graces, NULL);
	visitors[0] = visitors[1] = 0;
}
