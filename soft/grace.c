/* grace.c - sections, in which a raise walks events, and grace periods, which wait until every section has ended that
 * began before them.
 *
 * The protocol is RCU's.  It does not use liburcu's sections: a raise may come in a handler, at any instruction of any
 * thread.  liburcu-bp registers a thread at its first section and takes a lock for that, which its exit notifier holds
 * while handlers can run; a raise there would wait for its own thread.  The other flavours let a thread register once,
 * and the program may do so itself.  And a section of liburcu's is also the program's: a grace period of ours would wait
 * for the sections of the program, which may be waiting for a lock of ours.
 *
 *     a thread that has joined, with its handlers      grace (any thread, several at a time)
 *   1   before := inside                             a   a list or an instance is cut off
 *   2   inside := before + 1                         b   every thread passes a full barrier: membarrier(2)
 *   3   (the compiler moves nothing across)          c   first := inside of each thread that has joined
 *   4   ... walks lists, events, instances ...       d   waits until inside has depth 0, or has other sections
 *   5   inside := before; at depth 0                     than `first`
 *       before + SOFT_SECTION                        e   what was cut off is freed
 *
 * `inside` holds the sections that have ended, and below SOFT_SECTION the depth: a raise, a handler on top of it, and so on.
 *
 *   2 and c   The barrier b strikes the thread at one of its instructions.  Before it is 2: then c sees the depth.  Behind it
 *             is 4: then 4 finds what a has left.  Without membarrier(2) the thread has a full barrier at 3.
 *   5 and d   5 releases, d acquires: what 4 has read was read before e.  2 releases as well, because d may find the number
 *             that 5 has counted first in a later section's 2.
 *   handlers  One that runs between 1 and 2, or within 5, leaves `inside` at the depth that it found.  Between 1 and 2
 *             at depth 0 it counts a section, which 2 takes back: d then may wait for one section more, and never for one
 *             less, for while a section lasts its handlers begin at depth 1 and count nothing.
 *   new raises do not hold a grace period up: d waits for one section of each thread.
 *
 * What a raise meets in each state of its thread:
 *
 *   not joined, joining          perfring_soft_self is NULL: it counts as a visitor (below)
 *   joined                       a section
 *   in destructors, in exit code of other libraries, on top of their locks: as before and behind; we take none of their locks
 *   leaving                      a section until perfring_soft_self is NULL, then a visitor.  Only then instances are freed
 *   has forked, the child        perfring_soft_self is NULL, each `inside` is 0.  A raise that the handler which forked has
 *                                interrupted goes on, and its 5 stores a depth of 0: it does not count below 0
 *   is a child of vfork          its parent's: the parent stands still
 *   ended in a section           by pthread_exit in a handler: leave clears the depth.  By the system call exit: d finds that
 *                                there is no such thread
 *   jumped out of a section      the depth stays: leave clears it.  The thread's own grace periods do not look at it
 *
 * A visitor is a raise of a thread that has not joined.  It only counts, under two words of our own:
 *
 *     visitor                                 grace (one at a time)
 *       p := phase                              a to d
 *       visitors[p] += 1                        phase := the other
 *       phase is still p?  else again           until visitors[the one before] = 0
 *       ... walks ...                           e
 *       visitors[p] -= 1
 *
 * All ordered: a visitor that finds the phase unchanged behind its += 1 is seen by the grace that changes it, and one that
 * comes behind the change finds the new list.  New visitors cannot hold a grace up: they count in the other word.  Signals
 * are blocked for as long: a handler that ended, jumped or forked would leave the count up for ever.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/membarrier.h"
#include "os/signals.h"
#include "soft_private.h"

enum {
	YIELDS = 16,         /* turns before a pause is slept */
	PAUSE = 50000,       /* ns */
	LOOKS = 20,          /* pauses before the next look whether a thread has ended unseen */
	STORED_BY = 10000000 /* ns: behind which each processor has stored what it had on its way */
};

uint32_t perfring_soft_fences = 1;

static pthread_mutex_t graces = PTHREAD_MUTEX_INITIALIZER;
static uint64_t visitors[2];
static uint32_t phase;

/* ---- the barrier ---- */

void perfring_soft_grace_prepare(void)
{
	PERFRING_STORE(&perfring_soft_fences, !perfring_os_membarrier_register());
}

static void sleep_for(long ns)
{
	struct timespec time = {0, ns};

	nanosleep(&time, NULL);
}

/* Refused now, where it was allowed before (a filter was installed): raises that begin from here on have fences.  Nothing
 * orders those that have begun; but what they have stored is seen by everyone long before the end of STORED_BY. */
static void barrier_everywhere(void)
{
	PERFRING_FENCE();
	if (PERFRING_LOAD(&perfring_soft_fences))
		return;
	if (perfring_os_membarrier_process())
		return;
	PERFRING_EXCHANGE(&perfring_soft_fences, 1);
	sleep_for(STORED_BY);
}

/* ---- waiting ---- */

/* Another thread is waited for, which may be of lower priority and on the same processor: not by turns alone. */
static void wait_a_turn(uint32_t turn)
{
	PERFRING_POINT(grace_waits);
	if (turn < YIELDS)
		sched_yield();
	else
		sleep_for(PAUSE);
}

/* By the system call exit, or with a process of its own (vfork). */
static bool has_ended(const struct soft_thread *thread)
{
	return syscall(SYS_tgkill, getpid(), PERFRING_LOAD(&thread->tid), 0) < 0 && errno == ESRCH;
}

static void wait_for(const struct soft_thread *thread)
{
	uint64_t first = PERFRING_LOAD_ACQUIRE(&thread->inside), now = first; /* partner: exit's release */

	if (thread == perfring_soft_self)
		return;
	for (uint32_t turn = 0; now % SOFT_SECTION && now / SOFT_SECTION == first / SOFT_SECTION; turn++) {
		if (turn > YIELDS && turn % LOOKS == 0 && has_ended(thread))
			return;
		wait_a_turn(turn);
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
	for (uint32_t turn = 0; PERFRING_LOAD_ORDERED(&visitors[before]); turn++)
		wait_a_turn(turn);
	pthread_mutex_unlock(&graces);
}

void perfring_soft_grace(void)
{
	const struct soft_thread *block;
	int saved = errno, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	barrier_everywhere();
	for (uint32_t i = 0; i < SOFT_BLOCKS; i++) {
		block = PERFRING_LOAD_ACQUIRE(&perfring_soft_blocks[i]); /* partner: take_place */
		for (uint32_t k = 0; block && k < SOFT_BLOCK; k++)
			wait_for(&block[k]);
	}
	wait_for_visitors();
	pthread_setcancelstate(state, NULL);
	errno = saved;
}

/* ---- visitors ---- */

void perfring_soft_visit_begin(struct soft_visit *visit)
{
	uint32_t p;

	perfring_os_signals_block(&visit->signals);
	for (;;) {
		p = PERFRING_LOAD_ORDERED(&phase);
		PERFRING_POINT(visitor_looked);
		PERFRING_ADD(&visitors[p], 1);
		/* Turned before the += 1, that grace has not seen us.  The next one would not either: it waits for the other word. */
		if (PERFRING_LIKELY(PERFRING_LOAD_ORDERED(&phase) == p))
			break;
		PERFRING_ADD(&visitors[p], UINT64_MAX);
	}
	visit->phase = p;
}

void perfring_soft_visit_end(const struct soft_visit *visit)
{
	PERFRING_ADD(&visitors[visit->phase], UINT64_MAX);
	perfring_soft_signals_restore(&visit->signals);
}

/* ---- fork ---- */

void perfring_soft_grace_forget(void)
{
	struct soft_thread *block;

	pthread_mutex_init(&graces, NULL);
	visitors[0] = visitors[1] = 0;
	for (uint32_t i = 0; i < SOFT_BLOCKS; i++) {
		block = perfring_soft_blocks[i];
		for (uint32_t k = 0; block && k < SOFT_BLOCK; k++)
			block[k].inside = 0;
	}
}
