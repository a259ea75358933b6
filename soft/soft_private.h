/* soft_private.h - what the files of soft/ share.
 *
 *     soft_pmu.c        sources of counts: which events there are
 *     point.c           points by (type, config) and by name, their events; raise
 *     watch.c           spans that another process watches for
 *     grace.c           sections around raises, and grace periods that wait for them (RCU)
 *     soft_event.c      events: open, close, enable, groups, rings, redirection
 *     soft_attr.c       the rules of attrs
 *     soft_read.c       what read(2) gives
 *     thread.c          threads that join and leave; locks; fork
 *     period.c          an occurrence: docs/abi.md 9.2, 9.5, 9.6; frequency
 *     emit.c            samples and other records, encoded into the ring
 *     unwind.c          call chains, by frame pointers or unwind tables; registers; the stack's bytes
 *     tables.c          unwind tables of what is loaded, made outside handlers
 *     timer.c           the clocks' timers and their signal
 *     account.c         what the kernel accounts to each thread
 *     stack.c           the stack that the clocks' handler runs on
 *     process_state.c   COMM, FORK, EXIT, MMAP2, READ
 *     soft_refusal.c    what a process cannot know, each with its sentence
 *
 * Writers.  An instance is one event in one thread.  Only that thread and its handlers change it, by the local accesses of
 * access.h.  Other threads read it, and store the members marked "from outside".  An occurrence finds instances by RCU: a
 * point's list of events, then the event's instance for the thread's index.  Both are published by a release store.  Events
 * are freed after a grace period; an instance also by its own thread.
 *
 * Locks, of which an occurrence takes neither:
 *     perfring__soft_lock   lists of events, threads and rings, groups.  Threads only.  Its holder may allocate.  It waits for
 *                          no grace period, and blocks all signals, because a handler that forks takes it too.
 *     the switch           what is enabled, times, timers, bases of counts.  The lists change only with both locks held.
 *                          Threads and handlers (enable, disable ...).  It blocks all signals, so no handler interrupts its
 *                          holder.  Its holder neither allocates nor waits.  Order: perfring__soft_lock, the switch.
 */
#ifndef PERFRING_SOFT_SOFT_PRIVATE_H
#define PERFRING_SOFT_SOFT_PRIVATE_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include <perfring/access.h>
#include <perfring/record.h>
#include <perfring/soft.h>
#include <perfring/unwind.h>

enum {
	SOFT_THREADS = 4096, /* joined at one time */
	SOFT_BLOCK = 64,     /* allocated at one time */
	SOFT_BLOCKS = SOFT_THREADS / SOFT_BLOCK,
	SOFT_CHAIN_MAX = 127, /* kernel.perf_event_max_stack */
	SECOND = 1000000000,  /* ns */
};

/* In soft_thread->inside: one section that has ended.  The bits below it are the depth. */
#define SOFT_SECTION UINT64_C(0x10000)

/* In event->limit: the last overflow was used.  The event stays off until it is enabled. */
#define SOFT_LIMIT_SPENT 0x80000000u

#define SOFT_RUNS (UINT64_C(1) << 63)

/* In instance->pending: one signal; the last of them is POLL_HUP. */
#define SOFT_SIGNAL UINT64_C(2)
#define SOFT_SIGNAL_HUP UINT64_C(1)

/* Architectures of which unwind tables are followed. */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define SOFT_HAS_TABLES true
#else
#define SOFT_HAS_TABLES false
#endif

struct soft_instance;

/* Of what is loaded: tables.c.  It never changes. */
struct soft_tables {
	struct perfring_unwind_space space;
	struct perfring_unwind_map maps[];
};

/* What walks by tables need, of an event in a thread.  Only that thread and its handlers use it. */
struct soft_frames {
	struct perfring_unwind_cache *cache;
	bool is_used; /* by the thread, or a handler that it is in: a further one does without */
	uint32_t nr;
	uint64_t words[SOFT_CHAIN_MAX + 1];
};

/* The call chain of one sample.  Both NULL: by frame pointers. */
struct soft_chain {
	const struct soft_tables *tables;
	struct soft_frames *frames; /* NULL: walked each time that it is asked for */
};

/* A thread that has joined.  Its memory is never freed, only reused: grace periods read it without a lock. */
struct soft_thread {
	/* grace.c's; the thread and its handlers only */
	_Alignas(64) uint64_t inside;
	uint32_t index; /* of an event's instance for it */
	uint32_t tid, pid;
	pthread_t pthread;
	clockid_t clock;
	struct soft_thread *next, **link; /* perfring__soft_lock */
	uintptr_t stack_low, stack_high;  /* of the thread's own stack, without a guard page; 0, 0: unknown */
	/* timer.c's */
	struct soft_instance *clocks; /* sampling */
	timer_t timer;
	uint32_t changes; /* of the next expiry */
	bool has_timer;
	bool raises_on;       /* in a fork's child: of the parent's thread that forked in a raise, which goes on here */
	unsigned char *stack; /* stack.c's: the lowest byte of the alternate stack that perfring made, or NULL */
};

/* The calling thread, or NULL.  Initial-exec: its first use in a handler allocates nothing. */
extern __thread struct soft_thread *perfring__soft_self __attribute__((tls_model("initial-exec")));

/* By how much something that only grows has grown while the event counted in a thread. */
struct soft_meter {
	perfring_u64
		word; /* Stopped: the sum.  Running: (value at the start - sum) | SOFT_RUNS.  By compare-exchange */
	perfring_u64 reported; /* the largest sum that was returned.  From outside: compare-exchange */
};

/* One event in one thread. */
struct soft_instance {
	struct perfring_soft_event *event;
	struct soft_thread *thread;
	uint64_t id; /* STREAM_ID: in the thread that opened the event, the event's id */

	perfring_u64 count; /* ADD_LOCAL */
	perfring_u64 base;  /* the count at the last reset.  The switch: no other thread stores to `count` */

	/* docs/abi.md 9.2: P, L, V */
	perfring_u64 period; /* from outside */
	perfring_u64 last_period;
	perfring_u64 left;     /* V, as two's complement; for a clock timer.c's, under the switch or in its handler */
	perfring_u64 throttle; /* tick << 32 | overflows in that tick */
	perfring_u64 resumed;  /* from outside: P at the last schedule-in */
	uint32_t zero_kept;    /* a request set V to 0, and no occurrence has added to it: P = 1 leaves it so */
	uint32_t requests;     /* from outside: period.c's, taken by the next occurrence; exchange, compare-exchange */
	int32_t clock;         /* for the tick, if no other time is known */
	perfring_u64 pending;  /* SOFT_SIGNAL for each occurrence that is to send one; SOFT_SIGNAL_HUP.  One cmpxchg */
	/* Of the group: those of the leader's instance in this thread count (docs/abi.md 9.6) */
	perfring_u64 tick;      /* last seen */
	perfring_u64 throttled; /* the tick in which it was throttled, + 1; 0: it is not */
	/* period.c's frequency */
	perfring_u64 freq;         /* from outside; 0: a period */
	perfring_u64 freq_phase;   /* in 2^-64 samples */
	perfring_u64 freq_share;   /* added to it by one occurrence; 0: each occurrence is a sample */
	perfring_u64 freq_taken;   /* the count that samples cover */
	perfring_u64 freq_tick;    /* tick of the last measurement */
	perfring_u64 freq_stamp;   /* ns of the last measurement; 0: none yet */
	perfring_u64 freq_count;   /* at the last measurement */
	perfring_u64 freq_next;    /* count at which to measure again, in any tick */
	perfring_u64 freq_sampled; /* tick of the last sample */

	/* Enabled, in ns of the thread's CPU clock: as a task's context it runs while its thread does (docs/abi.md 9.7). */
	struct soft_meter time;
	struct soft_meter value; /* of a PMU that has `read` */

	/* From outside (release, RCU): the ring that it writes into, or NULL. */
	struct perfring_writer *writer;
	struct perfring_output output; /* id and trailer of LOST records; lost */

	/* timer.c's, of a sampling clock; the list of the thread's clocks changes under both locks */
	struct soft_instance *next_clock;  /* read by the thread's handlers, and under the switch */
	struct soft_instance **clock_link; /* NULL: not a sampling clock */
	perfring_u64 due; /* ns of the CPU clock, the interval's end; 0: stopped.  By compare-exchange and exchange */

	struct soft_frames *frames; /* from outside (release, RCU): NULL without unwind tables */

	struct perfring_soft_counter counter; /* what the PMU sees */
};

struct soft_hashes {
	uint64_t *array;
	uint32_t count, capacity;
};

struct perfring_soft_event {
	struct perf_event_attr attr;
	struct perfring_format format;
	const struct perfring_soft_pmu *pmu;
	struct perfring_soft_point *point; /* NULL: it has no occurrences */
	uint64_t id;
	unsigned scope;
	bool is_clock;     /* CPU_CLOCK, TASK_CLOCK: it counts the time that it is enabled, and samples by timers */
	bool samples;      /* sample_period is not 0 */
	bool is_monotonic; /* its samples' times are of CLOCK_MONOTONIC */
	uint32_t on;       /* by PERFRING_EXCHANGE: event_limit disables it in occurrences */
	/* event_limit: overflows left, 0: no limit.  By compare-exchange or PERFRING_AND.  SOFT_LIMIT_SPENT */
	uint32_t limit;
	perfring_u64 signal; /* fd << 32 | tid << 8 | signal: one word, so that all three are one caller's; 0: none */
	/* Release, after handler_data; RCU. */
	void (*handler)(const struct perfring_soft_overflow *overflow, void *data);
	void *handler_data;
	uint32_t
		handlers_going; /* perfring__soft_lock: calls of set_handler that wait until no call of the old one is left */
	uint32_t threads;       /* places of `instances` that were used */
	uint32_t is_counted; /* in point->active.  By PERFRING_EXCHANGE */
	bool is_inherited;   /* by a fork's child */
	bool by_tables;      /* from outside: call chains */
	bool has_heirs;      /* PROCESS; THREAD with attr.inherit: threads that its threads create have instances too */
	struct soft_thread *opener; /* THREAD: its first thread; NULL: it has left */

	/* perfring__soft_lock */
	struct perfring_soft_event *leader; /* of its group; itself if it leads or has none */
	struct perfring_soft_event *next;   /* the next sibling; of a leader: the first */
	struct perfring_soft_event *all;    /* the next of all events */
	struct perfring_soft_event
		*output; /* it writes into that event's rings; NULL: into its own, or none.  Occurrences look */
	struct perfring_set *set;                           /* its own rings */
	uint64_t exited_count, exited_enabled, exited_lost; /* of threads that have left; the switch */
	uint64_t own_count;                                 /* of the opener, if it has left: reset clears it */
	struct soft_hashes state;                           /* process_state.c's: what put_state has written */

	perfring_u64 unjoined_count; /* by threads that have not joined: PERFRING_ADD */
	perfring_u64 unjoined_lost;

	/* By the thread's index; release, RCU. */
	struct soft_instance *instances[SOFT_THREADS];
};

/* The events of a point in the order in which they were opened, with free places.  A list without a place at its end is replaced,
 * and freed after a grace period. */
struct soft_list {
	uint32_t count;
	struct perfring_soft_event *events[];
};

extern pthread_mutex_t perfring__soft_lock;
/* Its holder cannot be cancelled (it opens and reads files), and has all signals blocked (a handler may fork). */
extern sigset_t perfring__soft_lock_signals; /* perfring__soft_lock; those that its holder had blocked before */
void perfring__soft_lock_take(void);
void perfring__soft_lock_give(void);
extern struct perfring_soft_event *perfring__soft_events; /* perfring__soft_lock */
extern struct soft_thread *perfring__soft_threads;        /* perfring__soft_lock */
/* Every thread that has joined, ever: released by take_place. */
extern struct soft_thread *perfring__soft_blocks[SOFT_BLOCKS];

/* Of the interrupted code or of the caller: filled by perfring__soft_registers. */
struct soft_registers {
	uint64_t ip, sp, bp;
	const void *context; /* has the other registers; NULL: they are unknown */
	uint32_t abi;        /* PERF_SAMPLE_REGS_ABI_; NONE: this architecture's registers are unknown */
	bool has_sp;         /* it is exactly that of the place */
};

/* Whether it counts: it and its leader are on.  Handlers. */
PERFRING_INLINE bool perfring__soft_is_active(const struct perfring_soft_event *event)
{
	const struct perfring_soft_event *leader = PERFRING_LOAD_ACQUIRE(&event->leader);

	/* Ordered: point_update and settle_meter look here after their own change. */
	return PERFRING_LOAD_ORDERED(&event->on) && (leader == event || PERFRING_LOAD_ORDERED(&leader->on));
}

/* FNV-1a. */
PERFRING_INLINE uint64_t perfring__soft_hash(const char *text, uint64_t seed)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* ---- soft_pmu.c ---- */

/* The event's PMU and its point.  Returns 0 or -errno. */
int perfring__soft_pmu_find(const struct perf_event_attr *attr, const struct perfring_soft_pmu **pmu,
			    struct perfring_soft_point **point);

PERFRING_INLINE struct soft_instance *perfring__soft_instance_of(struct perfring_soft_counter *counter)
{
	return (void *)((unsigned char *)counter - offsetof(struct soft_instance, counter));
}

/* ---- point.c ---- */

extern const struct perfring_soft_pmu perfring__soft_points, perfring__soft_dummy;

/* perfring__soft_lock.  *old: a list to free after a grace period, or NULL.  Returns 0 or -ENOMEM. */
int perfring__soft_point_add(struct perfring_soft_event *event, struct soft_list **old);
void perfring__soft_point_remove(struct perfring_soft_event *event);
/* Updates point->active after a change of event->on.  Handlers. */
void perfring__soft_point_update(struct perfring_soft_event *event);
/* In a fork's child: removes all events. */
void perfring__soft_points_forget(void);

/* ---- grace.c ---- */

extern uint32_t perfring__soft_fences; /* membarrier(2) is refused: sections begin with a fence */

/* A section, only in threads that have joined; handlers.  exit takes what enter returns. */
PERFRING_INLINE uint64_t perfring__soft_enter(struct soft_thread *self)
{
	uint64_t before = PERFRING_LOAD(&self->inside);

	PERFRING_POINT(section_begins);
	PERFRING_STORE_RELEASE(&self->inside, before + 1); /* partner: wait_for */
	PERFRING_FENCE_LOCAL();
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&perfring__soft_fences))) /* after the store: barrier_everywhere */
		PERFRING_FENCE();
	return before;
}

PERFRING_INLINE void perfring__soft_exit(struct soft_thread *self, uint64_t before)
{
	PERFRING_POINT(section_ends);
	PERFRING_STORE_RELEASE(&self->inside, before % SOFT_SECTION ? before : before + SOFT_SECTION); /* as above */
}

/* The same in a thread that has not joined.  Signals are blocked until its end. */
struct soft_visit {
	sigset_t signals;
	uint32_t phase;
};

void perfring__soft_visit_begin(struct soft_visit *visit);
void perfring__soft_visit_end(const struct soft_visit *visit);

/* Waits for every section that has begun.  The caller holds no lock that a handler or a joining thread takes. */
void perfring__soft_grace(void);
/* Before the first section. */
void perfring__soft_grace_prepare(void);
/* In a fork's child: no grace period goes on, and there are no visitors. */
void perfring__soft_grace_forget(void);

/* ---- soft_event.c ---- */

/* perfring__soft_lock.  Makes the thread's instance and its ring, if the event has rings.  Returns 0 or -errno. */
int perfring__soft_instance_make(struct perfring_soft_event *event, struct soft_thread *thread);
/* perfring__soft_lock.  By the leaving thread: adds its counts to the event's and frees the instance. */
void perfring__soft_instance_fold(struct perfring_soft_event *event, struct soft_thread *thread);
/* By an occurrence that has used up event_limit.  Handlers. */
void perfring__soft_event_stop(struct perfring_soft_event *event);
/* Until now.  Any thread that keeps the instance from being freed. */
uint64_t perfring__soft_time_enabled(struct soft_instance *instance);
/* What it has counted in its thread since the last reset. */
uint64_t perfring__soft_counted(struct soft_instance *instance);
/* The event's next instance from thread index *i on, or NULL.  The switch, or perfring__soft_lock. */
PERFRING_INLINE struct soft_instance *perfring__soft_instance_from(const struct perfring_soft_event *event, uint32_t *i)
{
	while (*i < event->threads && !event->instances[*i])
		++*i;
	return *i < event->threads ? event->instances[*i] : NULL;
}

/* ---- soft_attr.c ---- */

/* Sets the members of the event that attr gives.  Returns 0 or -errno. */
int perfring__soft_judge(struct perfring_soft_event *event, const struct perf_event_attr *from, unsigned scope);

/* ---- soft_read.c ---- */

/* Of READ, if the group has that number of members. */
uint32_t perfring__soft_read_size_of(const struct perfring_soft_event *event, uint32_t members);
/* Encodes READ (docs/abi.md 2.2) with the values in this thread.  Returns its size; 0: more than `max`. Handlers. */
uint32_t perfring__soft_read_in_thread(const struct soft_instance *instance, void *to, uint32_t max);
/* perfring__soft_lock.  The same for the READ of a leaving thread.  to NULL: only its size. */
uint32_t perfring__soft_read_at_exit(const struct soft_instance *instance, void *to, uint32_t max);
/* Its size now.  Another thread may change the group at any time. */
uint32_t perfring__soft_read_size(const struct soft_instance *instance);

/* ---- soft_refusal.c ---- */

/* The sentence for the first thing of the attr that a process cannot know of itself; NULL: all can be had. */
const char *perfring__soft_refused(const struct perf_event_attr *attr, uint64_t flags,
				   const struct perfring_soft_pmu *pmu, const struct perfring_soft_point *point);

/* ---- thread.c ---- */

/* watch.c: where spans of a new point of that name are counted that are longer than *limit ns; NULL: no process watches for them.
 * Context: with perfring__soft_lock. */
perfring_u64 *perfring__soft_watched(const char *name, uint64_t *limit);

/* Installs the fork hooks; before all else.  Returns 0 or -errno. */
int perfring__soft_prepare(void);
/* Undoes perfring__os_signals_block.  Handlers. */
void perfring__soft_signals_restore(const sigset_t *before);
/* The switch.  Handlers. */
void perfring__soft_switch_take(sigset_t *signals);
void perfring__soft_switch_give(const sigset_t *signals);

/* perfring__soft_lock.  Whether a raise goes on that was begun before a fork: its events are inherited. */
bool perfring__soft_raise_is_inherited(void);
uint64_t perfring__soft_next_id(void);
/* CPU time in ns.  Any thread of the process; handlers. */
uint64_t perfring__soft_thread_time(const struct soft_thread *thread);
extern uint32_t perfring__soft_max_rate;
extern uint32_t perfring__soft_hz;
extern uint64_t perfring__soft_tick; /* ns: SECOND / hz.  Ticks count from CLOCK_MONOTONIC's 0 */

/* ---- period.c: start, set, resume in any thread; the others in the instance's thread, and handlers ---- */

/* P, L and V after open and the first schedule-in.  Any thread, before the (zeroed) instance is published. */
void perfring__soft_period_start(struct soft_instance *instance);
/* The switch.  ioctl PERIOD: from the next occurrence on V is 0, and throttling ends.  value: not 0; a frequency if
 * instance->freq is not 0.  A clock's timer must be stopped. */
void perfring__soft_period_set(struct soft_instance *instance, uint64_t value);
/* Likewise after an enable: a schedule-in, which keeps a negative V (docs/abi.md 9.2). */
void perfring__soft_period_resume(struct soft_instance *instance);
/* Counts an occurrence of weight nr, and samples its overflows.  Returns whether perfring__soft_send has to send a signal. */
bool perfring__soft_occur(struct soft_instance *instance, uint64_t nr, const struct perfring_soft_site *site,
			  const void *frame, const void *caller);
/* A clock's timer has expired, after that number of intervals. */
void perfring__soft_tick_of_clock(struct soft_instance *instance, uint64_t intervals,
				  const struct perfring_soft_site *site);
/* ---- emit.c ---- */

/* Returns false if the sample was refused, which is counted.  *time: of the sample, if it was written and has one. */
bool perfring__soft_put_sample(struct soft_instance *instance, uint64_t period, const struct perfring_soft_site *site,
			       const void *frame, const void *caller, uint64_t *time);
/* After an occurrence, when all events of the point have counted: the signals that are pending. */
void perfring__soft_send(struct soft_instance *instance);
/* group: the leader's instance. */
void perfring__soft_put_throttle(struct soft_instance *group, bool unthrottle);
/* perfring__soft_lock.  READ of the leaving thread (docs/abi.md 9.7). */
void perfring__soft_put_read(struct soft_instance *instance);
/* Encodes the trailer of a record other than SAMPLE.  Returns its size. */
uint32_t perfring__soft_put_trailer(const struct soft_instance *instance, unsigned char *to, uint64_t time);
/* A record other than SAMPLE, with the time of FORK, EXIT, THROTTLE and UNTHROTTLE.  Returns false if it was refused,
 * which is counted, or there is no ring. */
bool perfring__soft_put_record(struct soft_instance *instance, struct perfring_record *record);
/* Sets what LOST records need: id, trailer. */
void perfring__soft_output_init(struct soft_instance *instance);
/* ns of attr's clock. */
uint64_t perfring__soft_now(const struct perfring_soft_event *event);

/* ---- unwind.c: in the thread itself; handlers ---- */

/* context: a ucontext_t; NULL: the registers of the function that called the one with this frame. */
void perfring__soft_registers(struct soft_registers *registers, const void *context, const void *frame,
			      const void *caller);
/* By perf's number; 0: unknown. */
uint64_t perfring__soft_register(const struct soft_registers *registers, unsigned number);
/* Writes PERF_CONTEXT_USER, ip and the return addresses above it, at most `max` words.  words NULL: counts them.
 * Returns their number.  Never faults. */
uint32_t perfring__soft_unwind(perfring_word *words, uint32_t max, const struct soft_registers *registers,
			       const struct soft_thread *thread);
/* The same by unwind tables, where registers->has_sp; else by frame pointers.  frames: whose words are written instead, by their
 * cache; or NULL. */
uint32_t perfring__soft_unwind_by_tables(perfring_word *words, struct soft_frames *frames, uint32_t max,
					 const struct soft_registers *registers, const struct soft_thread *thread,
					 const struct soft_tables *tables);
/* Copies at most `max` bytes from sp on, up to the end of that stack.  Returns their number.  Never faults. */
uint64_t perfring__soft_stack_copy(void *to, uint64_t sp, uint64_t max, const struct soft_thread *thread);

/* ---- tables.c ---- */

/* perfring__soft_lock.  Returns 0, also if it has them; -ENOMEM. */
int perfring__soft_frames_make(struct soft_instance *instance);
/* Before the instance is freed. */
void perfring__soft_frames_free(struct soft_instance *instance);
/* In a fork's child: no load goes on. */
void perfring__soft_tables_forget(void);
/* How this sample's chain is found, in a section; if by tables, at most `max` words of it are found now.  Handlers. */
void perfring__soft_chain_begin(struct soft_chain *chain, const struct soft_instance *instance, uint32_t max,
				const struct soft_registers *registers);
void perfring__soft_chain_end(struct soft_chain *chain);

/* ---- timer.c ---- */

/* A handler of the timer that has begun may use the instance until a grace period after `del`. */
extern const struct perfring_soft_pmu perfring__soft_clocks;
/* By the leaving thread: deletes its timer and takes its pending signal.  Its clocks start no more. */
void perfring__soft_timer_end(struct soft_thread *thread);

/* ---- account.c ---- */

extern const struct perfring_soft_pmu perfring__soft_accounts;
/* Of its events, why the attr cannot be had; NULL: it can. */
const char *perfring__soft_account_refused(const struct perf_event_attr *attr);

/* ---- stack.c ---- */

/* By the joining or leaving thread. */
void perfring__soft_stack_make(struct soft_thread *thread);
void perfring__soft_stack_free(struct soft_thread *thread);
/* In a fork's child: unmaps the stacks of the other threads. */
void perfring__soft_stacks_forget(void);
/* Whether the caller's stack has space for a tick.  alternate: uc_stack of the signal frame. */
bool perfring__soft_stack_fits(const struct soft_thread *thread, const stack_t *alternate);

/* ---- process_state.c ---- */

/* perfring__soft_lock.  By the thread that has its instances: FORK and COMM as it joins; EXIT and READ as it leaves.
 * creator: the thread that created it, or NULL. */
void perfring__soft_put_fork(struct soft_thread *thread, const struct soft_thread *creator);
void perfring__soft_put_exit(struct soft_thread *thread);

#endif
