/* soft.h - software events that this process raises itself: the kernel's software PMU (docs/abi.md 9) in user space.
 *
 *     point = perfring_soft_define("db:query_done");           defined once, never freed
 *     perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL);   attr: as for perf_event_open
 *     perfring_soft_map(event, 128, -1);                        one ring for each thread
 *     perfring_soft_enable(event, false);
 *     perfring_session_add_set(session, perfring_soft_rings(event), -1, 0);
 *     ...
 *     perfring_soft_raise(point, 1, 0, text, size);             any thread, any handler
 *
 * It needs no perf_event_open and no privilege.  Records are byte for byte as the kernel writes them.
 *
 * Events.  Type SOFTWARE with the clocks (config CPU_CLOCK, TASK_CLOCK), DUMMY, and what the kernel accounts to each thread
 * (PAGE_FAULTS, PAGE_FAULTS_MIN, PAGE_FAULTS_MAJ, CONTEXT_SWITCHES, CPU_MIGRATIONS: below), type PERFRING_SOFT_TYPE with a point's
 * config, and those of PMUs of the program (perfring_soft_pmu_register).  Members of attr mean what they mean to the kernel, under
 * the same rules (docs/abi.md 1.5; exceptions below).  A process cannot supply every field: sample_type may have IP TID TIME ADDR
 * READ CALLCHAIN ID CPU PERIOD STREAM_ID RAW REGS_USER STACK_USER IDENTIFIER, else -EOPNOTSUPP, which perfring_soft_explain
 * explains.  The same errno have enable_on_exec, context_switch, aux_action, and the flags for records that only the kernel writes
 * (namespaces, cgroup, ksymbol, bpf_event, text_poke, sigtrap ...).  With exclude_user no occurrence of a point is counted;
 * exclude_kernel changes nothing there.
 *
 * Threads.  perfring_soft_join allocates what a thread and its handlers need.  The thread's end, or perfring_soft_leave,
 * frees it.  The thread that opens an event joins.  What a thread raises before it joins is counted; a sample that it would
 * have made is counted as lost.  A thread that ends by the raw system call exit, not pthread_exit, keeps its place (at most
 * 4096 threads); of the time that it ran while an event was enabled, only what was read of it is kept.
 *
 *                                                           threads   handlers
 *   open close map set_output set_handler                    yes       no
 *   set_unwind, unwind_load, set_id                          yes       no
 *   enable disable reset refresh set_period set_signal       yes       yes
 *   read lost                                                yes       no
 *   id rings, raise, span_begin span_end                     yes       yes
 *   watch_ (of another process)                              yes       no
 *   join leave thread_create                                 yes       no
 *
 * All calls may run at the same time, except on an event that is being closed.  A raise may run meanwhile: points are never
 * freed, and close waits until no raise uses the event.  A raise takes no lock and does not change the thread's signal mask.
 * It works before the thread joins, in destructors at the thread's end, and in a handler that interrupted any library.
 * perfring starts no thread, and installs no handler but that of the timers (below).  It uses no code of liburcu at run time.
 *
 * Inheritance.  A thread that perfring_soft_thread_create creates has joined before it runs, and inherits the events of scope
 * THREAD with attr.inherit that its creator has.  What pthread_create or fork creates inherits none of them: nothing says whose
 * child it is.  Unlike the kernel's, such an event may have rings, one for each thread.  Also unlike the
 * kernel's: an event with attr.task but without inherit writes no FORK of threads that its thread creates; in a group's READ an
 * inherited event has an entry, of 0, for a sibling that was opened after it.  With attr.inherit_stat a thread that
 * leaves writes READ with its values, unless it is the event's first (of scope PROCESS: the opener).
 *
 * In a group, the kernel schedules all members in anew when one is enabled, and a period that was set takes effect then
 * (set_period below); here enabling one member changes no other.
 *
 * Refused, because a process cannot know it: the moment of each context switch, fault or migration (their counts are known);
 * anything after an exec,
 * which ends all events (enable_on_exec); what other processes or the kernel do.  pinned and exclusive hold by themselves: a
 * group of software events always fits, so none is ever in error state, as in the kernel.
 *
 * Nesting.  A handler that raises while it interrupts a raise, of the same event too, loses nothing: period arithmetic uses
 * compare-exchange, as the kernel's does, and uncommitted records of the thread are finished by the code that reserved them
 * (writer.h).  If a handler that interrupted a raise leaves by a jump, that raise never ends, and every close and
 * every perfring_soft_unwind_load in another thread waits for it, until the thread calls perfring_soft_leave or ends.
 *
 * Frequency.  With attr.freq, from the second tick (CONFIG_HZ) after a change of the rate (or, if longer, half a sample's
 * time), each thread samples within 20 % of attr.sample_freq, if it has that many occurrences.  The period of each sample is
 * the count since the last one.  (The kernel takes longer: it relies on being reloaded at each context switch.)
 *
 * Clocks.  CPU_CLOCK and TASK_CLOCK are the same here: the thread's CPU time, as the kernel counts both for a task.  A thread
 * with sampling clock events has one timer, which sends it PERFRING_SOFT_SIGNAL (perfring_soft_signal: a real-time signal
 * that had no handler when the first clock was opened).  The timer expires only while the thread runs, so it interrupts no
 * sleep and no system call.  (Before Linux 5.11, and without CONFIG_POSIX_CPU_TIMERS_TASK_WORK, it can interrupt a system
 * call that is entered during the tick.)
 *
 *     how often           at most once in each kernel tick (CONFIG_HZ), far less beside more busy threads than CPUs
 *                         (docs/abi.md 9.4); no period is shorter than 10 us
 *     missed intervals    are in the next sample's period: the sum of all periods is the CPU time
 *     signal blocked      the thread is sampled late, or not.  No signal is pending after the thread has left
 *
 * The handler runs on an alternate stack of 64 KiB and a guard page, which join gives the thread unless it has one, and leave
 * removes.  So the thread's own stack may have any size, as a coroutine's, and is not written.  Handlers of the program with
 * SA_ONSTACK run on the alternate stack too.  An alternate stack of the program is never replaced: ticks run on it, and are
 * missed if it has less than 3 KB below the kernel's signal frame.  If it is smaller than that frame (AT_MINSIGSTKSZ), the
 * kernel ends the process, as with any signal on it.  A thread without an alternate stack (a handler left it by a jump) is
 * sampled on its own stack only.
 *
 * Accounts.  Page faults, context switches and migrations are counted from the kernel's account of each thread, and not sampled:
 * a process does not see one occur.  exclude_user and exclude_kernel are refused.  Unlike the kernel's event, page faults include
 * the pages that a system call fills before the thread touches them (MAP_POPULATE, mlock).  A read costs a system call in the
 * thread itself, and reading a file of /proc for each other one, and for migrations; those need a kernel with /proc/PID/sched.
 * What a thread that ends by the system call exit has had since the last read is not known.
 *
 * write_backward.  The event's rings are backward and overwrite their oldest records, as a kernel's event that is mapped
 * read-only: nothing is lost, and a reader copies them (perfring_soft_rings, perfring_snapshot_take).  set.h says how long the ring
 * of a thread that has left stays.
 *
 * Fillers.  Its rings may hold filler records of type 0 (ring.h).  libbpf's perf_buffer fails at them: for such a consumer use a
 * shared ring, STRICT with PERFRING_RING_LOST_FILLERS.
 *
 * fork: the child has no events and has not joined.  Its raises do nothing; of what it inherited it may only close.  It may
 * join, and open events of its own.  If a handler has forked in the middle of a raise, that raise goes on in the child, and what the
 * child closes meanwhile is freed by its next close after the raise; if it was writing a record into a ring, the child ends by
 * SIGSEGV (writer.h).  If another thread was in the loader at the fork (dlopen, dl_iterate_phdr, unwind_load), its lock stays taken in
 * the child (glibc 2.36): dlopen, unwind_load and put_state with attr.build_id wait there without end.  vfork, posix_spawn: the
 * child may raise; the records are the parent thread's.  exec: ends
 * all events.  dlclose of the code that raises: its points stay. */
#ifndef PERFRING_SOFT_H
#define PERFRING_SOFT_H

#ifdef __has_include
#if __has_include(<perfring/config.h>)
#include <perfring/config.h>
#endif
#endif
#if defined(PERFRING_HAS_SOFT) && !PERFRING_HAS_SOFT
#error "this perfring was built without liburcu, so it has no soft.h: install liburcu (liburcu-dev) and build perfring again"
#endif

#include <pthread.h>
#include <perfring/format.h>
#include <perfring/sample.h>
#include <perfring/set.h>

PERFRING_BEGIN

/* attr.type of named points: a number that no PMU of Linux has.  attr.config is the point's. */
enum {
	PERFRING_SOFT_TYPE = 0x50465200
};

/* ---- points ---- */

/* A place in the program that raises occurrences.  The members are perfring's: callers only pass the pointer. */
struct perfring_soft_point {
	uint32_t active; /* number of events that are enabled on it */
	uint32_t type;
	uint64_t config;
	const char *name;
	const void *events; /* soft's own */
	uint64_t reserved[2];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_soft_point) == 48, "size of struct perfring_soft_point");

enum {
	PERFRING_SOFT_NAME_MAX = 255, /* bytes of a point's name */
};

/* The point of that name, which is copied; created if there is none.  Valid until the process ends.  Returns NULL without memory,
 * and for a name that is empty or longer than PERFRING_SOFT_NAME_MAX.  Context: threads, not handlers. */
PERFRING_API struct perfring_soft_point *perfring_soft_define(const char *name);

/* The point of an attr's type and config, or NULL: there is none.  Valid as that.  Context: threads, not handlers. */
PERFRING_EXPERIMENTAL struct perfring_soft_point *perfring_soft_point_of(uint32_t type, uint64_t config);

/* Where an event occurred, and what its samples say of it.  Used during the raise only. */
struct perfring_soft_site {
	uint64_t addr;   /* the sample's ADDR */
	const void *raw; /* raw_size bytes, copied into the sample's RAW; NULL with size 0: none */
	uint32_t raw_size;
	uint32_t padding;
	const void *context; /* a handler's ucontext_t: IP, registers and callchain are those of what it interrupted; NULL: the caller's */
	uint64_t reserved[2];
};

/* The maximal number of bytes that a raise takes of the caller's stack in an optimised build, whatever the samples hold, without
 * what a handler (set_handler) or a signal (set_signal) takes: for handlers on small alternate stacks, and for coroutines. */
enum {
	PERFRING_SOFT_STACK = 2048
};

/* The slow path of the inlines below: counts and samples for each event that is enabled on the point. */
PERFRING_API void perfring_soft_raise_active(struct perfring_soft_point *point, uint64_t nr,
					     const struct perfring_soft_site *site);

/* `nr` occurrences at `site`.  Without an enabled event: one load and one predicted branch.  Loses nothing without counting it: a
 * sample that finds its ring full, or its thread not joined, counts in perfring_soft_lost.  Keeps errno.  Context: any thread;
 * handlers. */
PERFRING_INLINE void perfring_soft_raise_at(struct perfring_soft_point *point, uint64_t nr,
					    const struct perfring_soft_site *site)
{
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&point->active))) /* relaxed: an event may be seen as enabled later */
		perfring_soft_raise_active(point, nr, site);
}

/* The same at the caller, with ADDR and `raw_size` bytes of RAW. */
PERFRING_INLINE void perfring_soft_raise(struct perfring_soft_point *point, uint64_t nr, uint64_t addr, const void *raw,
					 uint32_t raw_size)
{
	struct perfring_soft_site site;

	if (PERFRING_UNLIKELY(PERFRING_LOAD(&point->active))) {
		site.addr = addr;
		site.raw = raw;
		site.raw_size = raw_size;
		site.padding = 0;
		site.context = NULL;
		site.reserved[0] = site.reserved[1] = 0;
		perfring_soft_raise_active(point, nr, &site);
	}
}

/* ---- spans: what lasts from a begin to an end ----
 *
 *     query = perfring_soft_define("span:query");
 *     begin = perfring_soft_span_begin(query);
 *     ...
 *     perfring_soft_span_end(query, begin, sql, size);
 *
 * The end raises the point with as many occurrences as the span had ns, and with its begin as ADDR (CLOCK_MONOTONIC).  So the point's
 * count is the sum of all spans, and an event with sample_period 1 and PERF_SAMPLE_PERIOD makes one sample of each, whose period is
 * how long it lasted before the sample's TIME.  In a perf.data file, an event whose name begins with "span:" is shown as intervals
 * (docs/formats.md).  Spans may nest, overlap, and end in another thread, whose they are then. */

/* ns of CLOCK_MONOTONIC.  Context: any thread; handlers. */
PERFRING_API uint64_t perfring_soft_span_now(void);

/* Returns what end takes; 0 without an enabled event: then the span is not raised, even if one is enabled before its end. */
PERFRING_INLINE uint64_t perfring_soft_span_begin(const struct perfring_soft_point *point)
{
	return PERFRING_UNLIKELY(PERFRING_LOAD(&point->active)) ? perfring_soft_span_now() : 0; /* as perfring_soft_raise_at */
}

/* raw: copied into the sample's RAW. */
PERFRING_INLINE void perfring_soft_span_end(struct perfring_soft_point *point, uint64_t begin, const void *raw,
					    uint32_t raw_size)
{
	uint64_t now;

	if (PERFRING_UNLIKELY(begin != 0)) {
		now = perfring_soft_span_now();
		perfring_soft_raise(point, now > begin ? now - begin : 1, begin, raw, raw_size);
	}
}

/* ---- long spans, counted for another process ----
 *
 *     the observer                                            the program that it starts, or a child of that
 *       perfring_soft_watch_open(&watch);
 *       perfring_soft_watch_add(watch, "span:query", 20000000);
 *       setenv(PERFRING_SOFT_WATCH, perfring_soft_watch_path(watch), 1);
 *       fork, exec                                   ---->      query = perfring_soft_define("span:query");
 *                                                               perfring_soft_span_end(query, begin, ...): lasted 25 ms
 *       perfring_soft_watch_count(watch, 0)          <----
 *
 * `perfring record --snapshot --trigger 'span:query>20ms' -- PROGRAM` is such an observer.  The program opens no event for it, its
 * threads need not join, and the end of a long span makes no system call: it adds 1 in memory of both.  It costs what a span costs
 * that is counted.  The program must be of the observer's user, and without more privilege (secure_getenv(3)); it looks when it
 * defines its first point.  Points that it has defined before an exec are not its points any more. */
#define PERFRING_SOFT_WATCH "PERFRING_SOFT_WATCH" /* the variable */

enum {
	PERFRING_SOFT_WATCHES_MAX = 16, /* names */
};

struct perfring_soft_watch;

/* Makes a file of 4 368 bytes in /dev/shm, else in /tmp, which close removes.  Returns 0; -ENOMEM; -errno of making it.  Context: threads,
 * one at a time for each watch, as all of these. */
PERFRING_API int perfring_soft_watch_open(struct perfring_soft_watch **watch);
PERFRING_API void perfring_soft_watch_close(struct perfring_soft_watch *watch);

/* Adds a name, before the program starts: spans of that point that last longer than ns count.  Returns its number, from 0; -EINVAL (empty,
 * or longer than PERFRING_SOFT_NAME_MAX); -ENOSPC (PERFRING_SOFT_WATCHES_MAX names). */
PERFRING_API int perfring_soft_watch_add(struct perfring_soft_watch *watch, const char *name, uint64_t ns);

/* The file's path, for the program's environment.  Valid until close. */
PERFRING_API const char *perfring_soft_watch_path(const struct perfring_soft_watch *watch);

/* How many spans of name i were longer so far, in all programs: a number that they may set to any value.  0 for an i of no name. */
PERFRING_API uint64_t perfring_soft_watch_count(const struct perfring_soft_watch *watch, uint32_t i);

/* ---- threads ---- */

/* Joins the calling thread: allocates what its raises need (Threads, above).  Events with attr.task and attr.comm write its FORK
 * and COMM.  Returns 0 (also if it has joined); -EUSERS (4096 threads have joined); -ENOMEM; -errno of creating a ring for one of
 * the events.  Context: threads, not handlers. */
PERFRING_API int perfring_soft_join(void);

/* Leaves, as the thread's end does.  Its counts stay in the events, its unread records in their rings; events with attr.task
 * write EXIT.  Context: as join. */
PERFRING_API void perfring_soft_leave(void);

/* As pthread_create, for a thread that joins first; returns when it has.  No handler runs in it before that; but a mask of
 * pthread_attr_setsigmask_np lets the handlers of the signals run that it does not block.  Returns 0 or -errno, of pthread_create
 * or of join; then
 * no thread is left.  Context: threads, not handlers. */
PERFRING_EXPERIMENTAL int perfring_soft_thread_create(pthread_t *thread, const pthread_attr_t *attr,
						      void *(*run)(void *argument), void *argument);

/* From now on leaving makes no system call: the disarmed timer stays until the thread ends, the alternate stack until the
 * process ends.  For a program that has closed all events and is about to install a seccomp filter.  Context: threads, not
 * handlers. */
PERFRING_API void perfring_soft_confine(void);

/* Does nothing; kept for old callers. */
PERFRING_EXPERIMENTAL void perfring_soft_fork_hooks(bool wanted);

/* ---- events ---- */

struct perfring_soft_event;

/* Which threads an event counts. */
enum perfring_soft_scope {
	PERFRING_SOFT_THREAD, /* the calling thread; of perfring_soft_open_on: that thread */
	PERFRING_SOFT_PROCESS, /* all threads that have joined or will join: as an inherited event and its children */
};

/* As perf_event_open; enabled unless attr.disabled.  attr is copied.  scope: enum perfring_soft_scope.  leader: of a group of the
 * same scope and thread, or NULL.  Samples are dropped until the event has a ring.  Returns 0; -EINVAL, -EOPNOTSUPP, -EOVERFLOW,
 * -E2BIG as the kernel does for attr (docs/abi.md 1.5; sample_freq above the limit is -EINVAL); -ENOENT (no such event); -errno
 * of a PMU of the program; -ENOMEM, -EUSERS; for a sampling clock -EBUSY (no real-time signal is free, or the program now handles
 * perfring_soft_signal) and -EAGAIN (RLIMIT_SIGPENDING: each thread's timer counts). */
PERFRING_API int perfring_soft_open(struct perfring_soft_event **event, const struct perf_event_attr *attr,
				    unsigned scope, struct perfring_soft_event *leader);

/* The same for another thread of the process, with scope THREAD.  tid: gettid() of a thread that has joined; 0: the caller.
 * leader: of the same thread, or NULL.  Also returns -ESRCH: no thread with that tid has joined. */
PERFRING_EXPERIMENTAL int perfring_soft_open_on(struct perfring_soft_event **event, const struct perf_event_attr *attr,
						uint32_t tid, struct perfring_soft_event *leader);

/* Why open returned -EOPNOTSUPP or -ENOENT: one sentence that names the attr's bit, and what to use instead where there is something;
 * "" if nothing of it is refused.  Like snprintf: returns the length of the whole text. */
PERFRING_API int64_t perfring_soft_explain(const struct perf_event_attr *attr, char *buffer, size_t size);

/* Frees the event, its rings and their unread records; a session or snapshot must not read them meanwhile.  Siblings of a leader
 * become events of their own.  Events that write into its rings lose their ring.  Waits for raises that use it. */
PERFRING_API void perfring_soft_close(struct perfring_soft_event *event);

/* One ring for each thread, with the attr's wakeup_watermark or wakeup_events.  pages: as perfring_ring_create.  wake_fd: as
 * in writer.h.  Returns 0; -EINVAL (it has rings, or writes into another event's); -errno of creating a ring. */
PERFRING_API int perfring_soft_map(struct perfring_soft_event *event, uint32_t pages, int32_t wake_fd);

/* The same with rings in files, FILE.0, FILE.1 ... (set.h), which outlive the process, for `perfring ring` and
 * perfring_ring_attach.  Files of these names are replaced.  Context: threads, not handlers. */
PERFRING_API int perfring_soft_map_files(struct perfring_soft_event *event, uint32_t pages, const char *file,
					 int32_t wake_fd);

/* The event's rings, each with the event's attr and id (perfring_ring_attr), for perfring_session_add_set: one reader at a
 * time (set.h).  With write_backward: for perfring_snapshot_take, not for a session.  Returns NULL: not mapped.  The set is the
 * event's, and valid until it is closed. */
PERFRING_API struct perfring_set *perfring_soft_rings(struct perfring_soft_event *event);

/* From now on writes into the rings of `other`, where ids tell the records apart (docs/abi.md 7.9); NULL: into its own, or none.
 * Samples of an heir that is older than `other` are lost, and counted.  Returns 0; -EINVAL (other is not mapped, or redirected
 * itself; the event has rings; scopes, clocks or write_backward differ; the event has heirs, and other has not; of scope THREAD:
 * its thread has left). */
PERFRING_API int perfring_soft_set_output(struct perfring_soft_event *event, struct perfring_soft_event *other);

/* An overflow that would have been a sample. */
struct perfring_soft_overflow {
	struct perfring_soft_event *event;
	uint64_t stream_id;
	uint64_t period;
	uint64_t ip;
	const struct perfring_soft_site *site;
	uint64_t reserved[3];
};

/* Instead of a ring: from now on each overflow calls `handler` in the thread that raises, with `data`; NULL: no more, and none is
 * running in another thread when this returns.  It is called in the middle of a raise, also of one in a signal handler: it may
 * call what signal handlers may.  For a clock it is called in the timer's handler, with all signals blocked; on an alternate
 * stack of the program (Clocks) it may assume 1 KiB, on perfring's own 32 KiB.  If it raises a point of its own event, it is
 * called again in itself.  If it forks, the overflows left of that occurrence call it in the parent only.  Returns 0; -EINVAL
 * (the event has rings, or writes into another event's); -EBUSY (it has a handler, or another thread is about to return from
 * taking it away). */
PERFRING_EXPERIMENTAL int perfring_soft_set_handler(struct perfring_soft_event *event,
						    void (*handler)(const struct perfring_soft_overflow *overflow,
								    void *data),
						    void *data);

/* As O_ASYNC, F_SETSIG and F_SETOWN_EX of a perf event's fd: from now on each occurrence that overflows, with or without a ring,
 * sends `signal` to the thread `tid` (0: the thread that raises), once, when all events of the point have counted.  0: none.  Its
 * handler in the thread that raises interrupts that raise: if it leaves by a jump, the raise never ends (Nesting); if it forks, the
 * child sends no more signals.  siginfo has si_fd = fd, si_band, and si_code POLL_IN, or POLL_HUP when
 * the event's limit is spent (refresh); for another thread than the one that raises si_code is SI_SIGIO, and si_band POLLHUP tells.
 * If the signal cannot be queued (RLIMIT_SIGPENDING), SIGIO is sent, as the kernel does.  Returns 0; -EINVAL: no such signal, or a
 * tid above 2^24 - 1. */
PERFRING_EXPERIMENTAL int perfring_soft_set_signal(struct perfring_soft_event *event, int signal, uint32_t tid,
						   int32_t fd);

/* As the ioctls of these names (docs/abi.md 2.1).  group: also all siblings, as PERF_IOC_FLAG_GROUP.  Siblings of a disabled leader
 * do not count.  reset sets the count to 0; what threads that have left had counted stays, as times and losses do. */
PERFRING_API void perfring_soft_enable(struct perfring_soft_event *event, bool group);
PERFRING_API void perfring_soft_disable(struct perfring_soft_event *event, bool group);
PERFRING_EXPERIMENTAL void perfring_soft_reset(struct perfring_soft_event *event, bool group);

/* Adds n to the event's limit and enables it; after that number of overflows it disables itself (docs/abi.md 9.5).  0 only
 * enables.  Returns 0; -EINVAL: the event does not sample, or has scope PROCESS, or n is 2^31 or more. */
PERFRING_EXPERIMENTAL int perfring_soft_refresh(struct perfring_soft_event *event, uint32_t n);

/* Sets the period, or the frequency if attr.freq (docs/abi.md 9.2).  With a fixed period the next occurrence makes a sample; the
 * kernel's does not if the thread was switched in between, because each switch-in loads the period anew.  Returns 0, or
 * -EINVAL as the kernel's ioctl. */
PERFRING_EXPERIMENTAL int perfring_soft_set_period(struct perfring_soft_event *event, uint64_t period);

/* The id in the event's records and reads, unique in the process; as PERF_EVENT_IOC_ID. */
PERFRING_API uint64_t perfring_soft_id(const struct perfring_soft_event *event);

/* From now on its records have this ID and IDENTIFIER, and those of its opener this STREAM_ID, instead of a number that no other
 * process has: for a file in which an event has one id, whichever process raises it.  The caller sees to it that no two events of a
 * ring have the same.  Returns 0; -EINVAL (id is 0, or the event has rings, writes into another event's, or has a handler). */
PERFRING_API int perfring_soft_set_id(struct perfring_soft_event *event, uint64_t id);

/* ---- callchains by unwind tables ----
 *
 * A callchain is found by frame pointers, which most programs are built without.  By unwind tables it is found in them too:
 *
 *     perfring_soft_set_unwind(event, true);
 *     ...
 *     dlopen(...), perfring_soft_unwind_load();
 *
 * Samples keep their shape: PERF_SAMPLE_CALLCHAIN, without a copy of the stack.  The tables (.eh_frame) of all that is loaded are
 * read, and the rows of their functions made (unwind.h), by load, in a thread; a raise looks them up.  Rows are memory of the
 * process until another load: at most 17 bytes for each byte of .eh_frame and .eh_frame_hdr, and 64 KiB for each object; 18 KB more
 * for each thread of the event.  A chain on the thread's own stack makes no system call.  Other stacks (alternate ones,
 * coroutines') are read by process_vm_readv; the chain ends where the kernel refuses that.  It ends in code for which an object's
 * tables have no rule; through code of no object that has tables, as a JIT's, it goes by frame pointers.  Code that was
 * loaded since the last load counts as such.  After a dlclose a chain through code that has taken the place of the old one may have
 * wrong frames until the next load.
 *
 * On aarch64 the chain of a raise without a context is by frame pointers, that of a tick or a raise with one by tables. */

/* Reads the tables of what is loaded now; what has been read before stays.  Takes the loader's lock (dl_iterate_phdr) while it
 * copies the new objects' .eh_frame, and at its end waits for the raises that have begun.  Objects that dlmopen has loaded into
 * another namespace than this library's are not among them: through their code chains go by frame pointers, and their MMAP2 records
 * (perfring_soft_put_state) have device and inode, no build id.  Returns 0; -EOPNOTSUPP (neither x86-64 nor aarch64 of 64 bits);
 * -ENOMEM (what was read before
 * stays).  Context: threads, not handlers, nor a callback of dl_iterate_phdr. */
PERFRING_API int perfring_soft_unwind_load(void);

/* From now on the event's callchains are by unwind tables (true), or by frame pointers.  If no tables have been read in this process,
 * it reads them.  Returns 0; -EINVAL (its samples have no CALLCHAIN); as perfring_soft_unwind_load.  Context: as that. */
PERFRING_API int perfring_soft_set_unwind(struct perfring_soft_event *event, bool by_tables);

/* The bytes of read(2) for attr.read_format (docs/abi.md 2.2): of one event with read_format 0 a uint64_t.  Values are of all
 * threads, also of those that have left.  Returns the size; -ENOSPC (`size` is too small). */
PERFRING_API int64_t perfring_soft_read(struct perfring_soft_event *event, void *buffer, size_t size);

/* The number of samples so far that found a ring full, or that threads raised before they joined.  A raise before joining counts at
 * most one lost sample if its period or weight is above 1. */
PERFRING_EXPERIMENTAL uint64_t perfring_soft_lost(const struct perfring_soft_event *event);

/* ---- PMUs ---- */

/* An event in one thread, as its PMU sees it. */
struct perfring_soft_counter {
	struct perfring_soft_event *event;
	const struct perf_event_attr *attr; /* the event's */
	uint32_t tid;                       /* the thread's */
	uint32_t padding;
	void *data; /* the PMU's own; initially NULL */
	uint64_t reserved[2];
};

/* A source of counts, as the kernel's struct pmu; the points and the clocks are such PMUs.  Its events are opened by their
 * attr.type.  All functions but init may be NULL.
 *
 *   init    Whether attr is an event of this PMU: 0; -ENOENT: the next PMU of the type is asked; other errors are open's.  *point
 *           is set to a point of which each occurrence counts, and is sampled (raise); or left NULL, for an event that counts what
 *           `read` says, and does not sample.
 *   add     The event comes to a thread, which may be another than the calling one.  Returns 0 or -errno, of open or join.
 *   start   The event counts in that thread from now on.  stop: not any more.  Each may be called twice in a row.  If a limit
 *           (refresh) ends a group, its siblings are not stopped before the next call that enables or disables one of them.
 *   read    The counter's value, which never falls, and is below 2^63.  The event counts by how much it grows while the event is
 *           on.  0: it is not known any more; what was read last stays.  here: the calling thread is the counter's.
 *   del     The event leaves the thread: the last call for this counter.  Also in a child after fork, for what it closes.
 *
 *                 called by                                      signals   may
 *   init          open                                                     allocate, lock, define points
 *   add del       open close join leave, one at a time           blocked   allocate, lock; call nothing of soft.h
 *   start stop    those, enable, disable ..., one at a time      blocked   what handlers may; call nothing of soft.h, nor raise
 *   read          raise and read too, several at a time                    the same */
struct perfring_soft_pmu {
	uint32_t type; /* of its events */
	uint32_t padding;
	int (*init)(const struct perf_event_attr *attr, struct perfring_soft_point **point);
	int (*add)(struct perfring_soft_counter *counter);
	void (*del)(struct perfring_soft_counter *counter);
	void (*start)(struct perfring_soft_counter *counter);
	void (*stop)(struct perfring_soft_counter *counter);
	uint64_t (*read)(struct perfring_soft_counter *counter, bool here);
	const void *reserved[2];
};

/* Registers a PMU, for the life of the process: *pmu must stay.  pmu->type: PERFRING_SOFT_TYPE is replaced by a number of its
 * own, above it; else a number such as PERF_TYPE_HARDWARE, whose PMUs are asked in the order in which they were registered,
 * perfring's own first.  Returns 0; -EINVAL (no init; a number that another PMU may be given); -EUSERS (with perfring's there are
 * 64); -ENOMEM, -EAGAIN.  Context: threads, not handlers. */
PERFRING_API int perfring_soft_pmu_register(struct perfring_soft_pmu *pmu);

/* ---- the process's state, for symbolisation ---- */

/* Writes COMM and an MMAP2 for each loaded object (with build ids if attr.build_id) into this thread's ring of the event: for
 * events opened after the program started.  Call it again after dlopen: only new objects are written (with write_backward all).
 * Returns the number of records, or -errno.  Context: threads that have joined, not handlers. */
PERFRING_API int perfring_soft_put_state(struct perfring_soft_event *event);

/* ---- limits ---- */

/* As kernel.perf_event_max_sample_rate and CONFIG_HZ; the defaults are 100000 and 250.  Returns 0; -EINVAL if an argument is 0,
 * or ticks_per_second above 10^9.  Context: any thread. */
PERFRING_EXPERIMENTAL int perfring_soft_limits(uint32_t max_sample_rate, uint32_t ticks_per_second);

/* The timers' signal; 0 before the first sampling clock.  Context: any thread; handlers. */
PERFRING_API int perfring_soft_signal(void);

PERFRING_END

#endif
