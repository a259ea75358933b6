/* soft_private.h - what the files of soft/ share.
 *
 *     point.c           points by (type, config) and name; who listens; raise
 *     grace.c           sections of raises, and grace periods that wait for them (RCU)
 *     soft_event.c      events: open, close, enable, read, groups, rings, redirection
 *     thread.c          threads that take part; fork
 *     period.c          an occurrence: docs/abi.md 9.2, 9.5, 9.6; frequency
 *     emit.c            one overflow as a SAMPLE; THROTTLE, UNTHROTTLE
 *     unwind.c          call chains by frame pointers; registers; the stack's bounds
 *     timer.c           the clocks' timers and their signal
 *     stack.c           the stack that the clocks' handler runs on
 *     process_state.c   COMM, FORK, EXIT, MMAP2
 *
 * Who writes what.  An instance is one event in one thread: what an occurrence changes in it is changed by that thread and
 * its handlers alone, by the local accesses of access.h; others only read it, or store the words marked "from outside".
 * Occurrences find instances by RCU: a point's list of events, and an event's instance for the thread's index.  Both are
 * published by a release store; events are freed after a grace period, an instance also by its own thread.
 *
 * Two locks for the rest, which no occurrence needs.
 *     perfring_soft_lock   what there is: events, threads, groups, lists, rings.  Threads alone; may allocate and wait
 *                          for a grace period.  All signals are blocked: a handler that forks takes it too.
 *     the switch           what is on, times, timers that run, bases of counts; what there is changes under it too.
 *                          Handlers take it as well (enable, disable ...): all signals are blocked while it is held, so
 *                          nobody is interrupted who holds it; nothing is allocated under it and nobody waited for.
 *                          Inside perfring_soft_lock, or alone.
 */
#ifndef SOFT_OWN_H
#define SOFT_OWN_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <perfring/access.h>
#include <perfring/soft.h>

enum {
	SOFT_THREADS = 4096, /* that take part at a time */
	SOFT_BLOCK = 64,     /* of them are allocated at a time */
	SOFT_BLOCKS = SOFT_THREADS / SOFT_BLOCK,
};

/* In soft_thread->inside: one section that has ended; below it, the depth. */
#define SOFT_SECTION UINT64_C(0x10000)

/* In event->limit: the last one was taken, which ends the event until somebody enables it. */
#define SOFT_LIMIT_SPENT 0x80000000u

#define SOFT_TIME_RUNS (UINT64_C(1) << 63)

struct soft_instance;

/* A thread that takes part.  Its memory is never freed, but another thread's later: grace periods look at it without a
 * lock. */
struct soft_thread {
	/* grace.c's; by the thread and its handlers alone */
	_Alignas(64) uint64_t inside;
	uint32_t index; /* among them: an event's instance for it */
	uint32_t tid, pid;
	pthread_t pthread;
	clockid_t clock;                  /* its CPU time */
	struct soft_thread *next, **link; /* perfring_soft_lock */
	uintptr_t stack_low, stack_high;  /* of its own stack, no guard in it; 0, 0: not known */
	/* timer.c's */
	void *clocks; /* that sample */
	timer_t timer;
	uint32_t changes; /* of when it has to go off */
	bool has_timer;
	unsigned char *stack; /* stack.c's: lowest byte of perfring's alternate stack, or NULL */
};

/* This thread, or NULL.  Initial-exec: no allocation at its first use in a handler. */
extern __thread struct soft_thread *perfring_soft_self __attribute__((tls_model("initial-exec")));

/* One event in one thread. */
struct soft_instance {
	struct perfring_soft_event *event;
	struct soft_thread *thread;
	uint64_t id; /* STREAM_ID: the event's own in the thread that opened it, else one of its own */

	perfring_u64 count; /* ADD_LOCAL */
	perfring_u64 base;  /* the count at the last reset.  The switch: a count is never stored to from outside */

	/* docs/abi.md 9.2: P, L, V */
	perfring_u64 period; /* from outside: perfring_soft_period_set */
	perfring_u64 last_period;
	perfring_u64 left;     /* V, as two's complement; of a clock: timer.c's, under the switch or in its handler */
	perfring_u64 throttle; /* tick << 32 | overflows in it */
	perfring_u64 resumed;  /* P at the last schedule-in.  From outside */
	uint32_t kept;         /* V is 0 by an order, and no occurrence has added to it: P = 1 leaves it so */
	uint32_t orders;       /* from outside, taken by the next occurrence: period.c's; exchange, compare and swap */
	int32_t clock;         /* that tells the tick where no other time is known */
	/* Of the group, whose leader's in this thread are looked at (docs/abi.md 9.6) */
	perfring_u64 tick; /* that it was at the last look */
	perfring_u64 shut; /* the tick in which it was throttled, + 1; 0: it is not */
	/* period.c's frequency */
	perfring_u64 freq;         /* 0: a period.  From outside: perfring_soft_period_set */
	perfring_u64 freq_phase;   /* of 2^64 to the next sample */
	perfring_u64 freq_share;   /* of it that one occurrence brings; 0: all, each is a sample */
	perfring_u64 freq_taken;   /* count up to which there are samples */
	perfring_u64 freq_tick;    /* tick of the last measurement */
	perfring_u64 freq_stamp;   /* ns of the last measurement; 0: none yet */
	perfring_u64 freq_count;   /* count then */
	perfring_u64 freq_again;   /* count at which it is made again, in whatever tick */
	perfring_u64 freq_sampled; /* tick of the last sample */

	/* Time enabled, in ns of the thread's CPU clock: as a task's context, it runs while its thread does (docs/abi.md 9.7).
	 * Off: the sum.  On: when it would have begun, had it never been off since, and SOFT_TIME_RUNS.  By PERFRING_COMPARE_EXCHANGE;
	 * asked for by perfring_soft_time_enabled. */
	perfring_u64 time;
	perfring_u64 told; /* the most that anybody was told.  From outside: compare and swap */

	/* Its ring in its thread, of the event that it writes into; NULL: nowhere.  From outside: release, under RCU. */
	struct perfring_writer *writer;
	struct perfring_output output; /* id and trailer of LOST records, lost */

	void *timer; /* timer.c's; NULL: the event is no sampling clock */
};

struct perfring_soft_event {
	struct perf_event_attr attr;
	struct perfring_format format; /* of attr */
	struct perfring_soft_point *point;
	uint64_t id;
	unsigned scope;
	bool is_clock; /* CPU_CLOCK, TASK_CLOCK */
	bool samples;  /* sample_period is not 0 */
	bool tells;    /* its samples' times are CLOCK_MONOTONIC's */
	uint32_t on;   /* enabled itself.  Changed by PERFRING_EXCHANGE: event_limit disables from occurrences */
	/* event_limit: overflows left, 0: no limit.  By compare and swap, or PERFRING_AND.  SOFT_LIMIT_SPENT */
	uint32_t limit;
	uint32_t threads;           /* places in `instances` that were used */
	uint32_t counted;           /* it is in point->active.  By PERFRING_EXCHANGE */
	bool inert;                 /* a fork's child has inherited it */
	struct soft_thread *opener; /* THREAD: the only one; NULL: it has left */

	/* perfring_soft_lock */
	struct perfring_soft_event *leader;           /* itself, or its group's */
	struct perfring_soft_event *next;             /* the next sibling; of a leader: the first */
	struct perfring_soft_event *all;              /* the next of all events */
	struct perfring_soft_event *output;           /* whose rings it writes into; NULL: none, or its own */
	struct perfring_set *set;                     /* its own rings */
	uint64_t gone_count, gone_enabled, gone_lost; /* of instances whose threads have left; the switch */
	uint64_t own_count;                           /* of the opener's, if it has left: a reset clears it */
	void *state;                                  /* process_state.c's: what put_state has written */

	perfring_u64 stray_count; /* raised by threads that have not joined: PERFRING_ADD */
	perfring_u64 stray_lost;

	/* By the thread's index; release, RCU. */
	struct soft_instance *instances[SOFT_THREADS];
};

/* A point's listeners, with empty places.  One that has become too small is replaced, and freed after a grace period. */
struct soft_list {
	uint32_t count;
	struct perfring_soft_event *events[];
};

extern pthread_mutex_t perfring_soft_lock;
/* With cancellation put off: what is done under it opens and reads files.  With signals blocked: a handler may fork. */
extern sigset_t perfring_soft_lock_signals; /* perfring_soft_lock; what its holder had blocked before */
void perfring_soft_lock_take(void);
void perfring_soft_lock_give(void);
extern struct perfring_soft_event *perfring_soft_events; /* perfring_soft_lock */
extern struct soft_thread *perfring_soft_threads;        /* perfring_soft_lock */
/* All that ever took part: released by take_place. */
extern struct soft_thread *perfring_soft_blocks[SOFT_BLOCKS];

/* What was interrupted, or raised here: filled by perfring_soft_registers. */
struct soft_registers {
	uint64_t ip, sp, bp;
	const void *context; /* has the others; NULL: they are not known */
	uint32_t abi;        /* PERF_SAMPLE_REGS_ABI_; NONE: this architecture's words are not known */
};

/* Whether it counts: on, and its leader on.  Handlers. */
PERFRING_INLINE bool perfring_soft_is_active(const struct perfring_soft_event *event)
{
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&event->leader);

	/* Ordered: point_update and the times of instances look behind what they have changed. */
	return PERFRING_LOAD_ORDERED(&event->on) && (leader == event || PERFRING_LOAD_ORDERED(&leader->on));
}

/* ---- point.c ---- */

/* perfring_soft_lock.  Its point finds the event, or no longer: for what an occurrence can count.  *old: a list to be freed
 * after a grace period, or NULL.  0 or -ENOMEM. */
int perfring_soft_point_add(struct perfring_soft_event *event, struct soft_list **old);
void perfring_soft_point_remove(struct perfring_soft_event *event);
/* The event may have begun or ceased to count: keeps point->active.  Handlers. */
void perfring_soft_point_update(struct perfring_soft_event *event);
/* In a fork's child: nobody listens. */
void perfring_soft_points_forget(void);

/* ---- grace.c ---- */

extern uint32_t perfring_soft_fences; /* membarrier(2) is refused: sections begin with a fence */

/* A section: around what an occurrence finds, in a thread that has joined.  enter gives what exit takes.  Handlers. */
PERFRING_INLINE uint64_t perfring_soft_enter(struct soft_thread *self)
{
	uint64_t before = PERFRING_LOAD(&self->inside);

	PERFRING_POINT(section_begins);
	PERFRING_STORE_RELEASE(&self->inside, before + 1); /* partner: wait_for */
	PERFRING_FENCE_LOCAL();
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&perfring_soft_fences))) /* behind the store: barrier_everywhere */
		PERFRING_FENCE();
	return before;
}

PERFRING_INLINE void perfring_soft_exit(struct soft_thread *self, uint64_t before)
{
	PERFRING_POINT(section_ends);
	PERFRING_STORE_RELEASE(&self->inside, before % SOFT_SECTION ? before : before + SOFT_SECTION); /* as above */
}

/* The same in a thread that has not joined: signals are blocked until its end. */
struct soft_visit {
	sigset_t signals;
	uint32_t phase;
};

void perfring_soft_visit_begin(struct soft_visit *visit);
void perfring_soft_visit_end(const struct soft_visit *visit);

/* Waits until no section that began before is still open.  No lock is held that a handler or a joining thread may wait for. */
void perfring_soft_grace(void);
/* Before the first section. */
void perfring_soft_grace_prepare(void);
/* In a fork's child: nobody is in a section. */
void perfring_soft_grace_forget(void);

/* ---- soft_event.c ---- */

/* perfring_soft_lock.  Makes the event's instance (and its ring, if the event writes into one) for a thread; 0 or -errno. */
int perfring_soft_instance_make(struct perfring_soft_event *event, struct soft_thread *thread);
/* perfring_soft_lock.  By the thread itself at its end: its numbers are folded into the event's, its ring is left. */
void perfring_soft_instance_fold(struct perfring_soft_event *event, struct soft_thread *thread);
/* By an occurrence: event_limit has run out.  Handlers. */
void perfring_soft_event_stop(struct perfring_soft_event *event);
/* Time enabled until now; any thread that keeps the instance from going away. */
uint64_t perfring_soft_time_enabled(struct soft_instance *instance);
/* The READ field (docs/abi.md 2.2) of the group as this thread sees it, into room; bytes.  Handlers: its own values and those of
 * its siblings in the same thread, as the kernel's sample has them.  0: more than `most` bytes. */
uint32_t perfring_soft_read_in_thread(const struct soft_instance *instance, void *room, uint32_t most);
/* Its size now: another thread may change the group meanwhile. */
uint32_t perfring_soft_read_size(const struct soft_instance *instance);

/* ---- thread.c ---- */

/* Before anything else: fork's hooks.  0 or -errno. */
int perfring_soft_prepare(void);
/* What perfring_os_signals_block blocked.  Handlers. */
void perfring_soft_signals_restore(const sigset_t *before);
/* The switch; `signals` keeps what was blocked.  Handlers. */
void perfring_soft_switch_take(sigset_t *signals);
void perfring_soft_switch_give(const sigset_t *signals);

uint64_t perfring_soft_next_id(void);
/* ns of the thread's CPU clock; any thread of the process may ask, handlers may. */
uint64_t perfring_soft_thread_time(const struct soft_thread *thread);
extern uint32_t perfring_soft_max_rate;
extern uint32_t perfring_soft_hz;
extern uint64_t perfring_soft_tick; /* ns: SECOND / hz.  Ticks are counted from CLOCK_MONOTONIC's 0 */

/* ---- period.c: all in the instance's thread, handlers too ---- */

/* P, L, V as at open and the first schedule-in, from attr.  Before the instance is published: any thread. */
void perfring_soft_period_start(struct soft_instance *instance);
/* Under perfring_soft_lock, any thread.  ioctl PERIOD: V := 0, and no longer throttled, from the instance's next
 * occurrence on.  value, not 0, is a frequency where instance->freq is not 0.  A clock: between timer_stop and
 * timer_start. */
void perfring_soft_period_set(struct soft_instance *instance, uint64_t value);
/* Likewise: it was enabled, or its leader was: schedule-in again (docs/abi.md 9.2 keeps a negative V). */
void perfring_soft_period_resume(struct soft_instance *instance);
/* An occurrence of weight nr: counts, and samples what overflows. */
void perfring_soft_occur(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
			 const void *frame, const void *caller);
/* A clock's timer went off, for the first time in so many intervals. */
void perfring_soft_tick_of_clock(struct soft_instance *instance, uint64_t intervals,
				 const struct perfring_soft_site *site);
/* ---- emit.c ---- */

/* One sample into the instance's ring; false: refused, which is counted.  No ring: true.  *time: the sample's, if it has one;
 * else untouched. */
bool perfring_soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			      const void *frame, const void *caller, uint64_t *time);
/* THROTTLE or UNTHROTTLE of a group, whose leader's instance it is, into its ring. */
void perfring_soft_put_throttle(struct soft_instance *group, bool unthrottle);
/* The trailer of a record that is not a sample, as the event's attr wants it, into room; bytes. */
uint32_t perfring_soft_put_trailer(const struct soft_instance *instance, unsigned char *room, uint64_t time);
/* What instance->output must say before a ring is written: id, trailer. */
void perfring_soft_output_init(struct soft_instance *instance);
/* attr's clock, ns. */
uint64_t perfring_soft_now(const struct perfring_soft_event *event);

/* ---- unwind.c ---- */

/* context: a ucontext_t; NULL: registers as they are in the caller of the function whose frame is given. */
void perfring_soft_registers(struct soft_registers *registers, const void *context, const void *frame,
			     const void *caller);
/* The word of perf's number; 0: not known. */
uint64_t perfring_soft_register(const struct soft_registers *registers, unsigned number);
/* Return addresses from ip and bp upwards, the place itself first, behind PERF_CONTEXT_USER; at most `most` words; how many.
 * words NULL: only how many.  Never faults. */
uint32_t perfring_soft_unwind(perfring_word *words, uint32_t most, const struct soft_registers *registers,
			      const struct soft_thread *thread);
/* Copies from sp upwards, at most `most` bytes, to the end of the stack that sp is in; how many.  Never faults. */
uint64_t perfring_soft_stack_copy(void *room, uint64_t sp, uint64_t most, const struct soft_thread *thread);

/* ---- timer.c ---- */

/* A sampling clock in a thread: made stopped; started; stopped; deleted (then nobody is in it).  make, delete:
 * perfring_soft_lock.  start, stop: the switch, or the instance's own thread; handlers. */
int perfring_soft_timer_make(struct soft_instance *instance);
void perfring_soft_timer_start(struct soft_instance *instance);
void perfring_soft_timer_stop(struct soft_instance *instance);
/* Started, if its handler has stopped it.  The switch. */
void perfring_soft_timer_resume(struct soft_instance *instance);
void perfring_soft_timer_delete(struct soft_instance *instance);
/* Those of all threads, with one grace period. */
void perfring_soft_timers_delete(struct perfring_soft_event *event);
/* By the thread itself as it leaves, when it has no clock any more: nothing of its timer's stays pending. */
void perfring_soft_timer_end(struct soft_thread *thread);
/* What a clock event has counted: its time while it was on. */
uint64_t perfring_soft_clock_count(struct soft_instance *instance);

/* ---- stack.c ---- */

/* By the thread itself, as it joins and leaves. */
void perfring_soft_stack_make(struct soft_thread *thread);
void perfring_soft_stack_free(struct soft_thread *thread);
/* In a fork's child, which has none of the threads but its own. */
void perfring_soft_stacks_forget(void);
/* Whether a tick, which is called by the caller, has space on the stack that it stands on.  alternate: the signal frame's. */
bool perfring_soft_stack_fits(const struct soft_thread *thread, const stack_t *alternate);

/* ---- process_state.c ---- */

/* perfring_soft_lock.  By the thread itself, which has its instances: FORK and COMM when it joins; EXIT when it leaves. */
void perfring_soft_put_fork(struct soft_thread *thread);
void perfring_soft_put_exit(struct soft_thread *thread);
/* By perfring_soft_close: frees event->state. */
void perfring_soft_state_forget(struct perfring_soft_event *event);

#endif
