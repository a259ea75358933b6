/* soft.h - software events that this process raises itself: the kernel's software PMU (docs/abi.md 9), in user space.
 *
 *     point = perfring_soft_define("db:query_done");           named once, for good
 *     perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL);   attr: what perf_event_open takes
 *     perfring_soft_map(event, 128, -1);                        a ring for each thread
 *     perfring_soft_enable(event);
 *     ...
 *     perfring_soft_raise(point, 1, 0, text, size);             any thread, any handler
 *
 * Nothing of the kernel's is needed, and no privilege.  Records are the kernel's, byte for byte; readers walk the event's
 * set of rings (perfring_soft_rings) or put them into a session, beside kernel rings if they like.
 *
 * What can be opened: type SOFTWARE with the clocks (config CPU_CLOCK, TASK_CLOCK) and DUMMY, and type PERFRING_SOFT_TYPE
 * with a point's config.  attr means what it means to the kernel, is judged by the same rules (docs/abi.md 1.5), and is held
 * to what a process can know of itself: sample_type IP TID TIME ADDR READ CALLCHAIN ID CPU PERIOD STREAM_ID RAW REGS_USER
 * STACK_USER IDENTIFIER, else -EOPNOTSUPP; exclude_user counts nothing, exclude_kernel changes nothing.
 *
 * Threads.  A thread takes part from its perfring_soft_join on, which makes everything that its handlers will need; it
 * leaves at its end.  What threads raise that have not joined is counted, and where it would have been sampled, counted as
 * lost: no record is missed in silence.  The thread that opens an event joins by that.  A thread that ends unseen (the
 * system call exit) keeps its place among the 4096, and the time that it ran while an event was on is forgotten but for
 * what was read of it.
 *
 *              open close map set_output | enable disable reset refresh set_period | read lost id rings | raise | join leave
 *   threads              yes             |               yes                       |        yes         |  yes  |    yes
 *   handlers             no              |               yes                       |   id, rings        |  yes  |    no
 *
 * All may run at the same time.  A call with an event that is being closed is the caller's mistake; raising is not: points
 * live for ever, and an event is freed when no raise is in it any more (a grace period, which close waits for).  A raise
 * takes no lock and leaves the thread's signals as they were, in whatever state its thread is: before it joins, in the
 * destructors at its end, in a handler on top of any library's code.  No thread is started, no handler is installed but the
 * timers' (below).  A program's own sections of liburcu are not touched, nor waited for.
 *
 * Nesting.  A handler that raises on top of a raise, of the same event too, loses nothing: period arithmetic is done as the
 * kernel does it, by compare and swap.  The thread's own records in the making are finished by their owners (writer.h).
 * A jump out of a handler that had interrupted a raise leaves that raise for ever unfinished, and every close in another
 * thread waits for it: perfring_soft_leave, from the thread, is the way back.
 *
 * Frequency.  A point's event with attr.freq comes within a fifth of it in each thread, from the second of the kernel's ticks
 * on after each change of the rate (or the second half of a sample's time, if that is longer), as long as there are so many
 * occurrences; each sample's period is the count since the last one.  (The kernel's own loop takes longer: it counts on
 * being reloaded at each context switch.)
 *
 * Clocks.  CPU_CLOCK and TASK_CLOCK are one: the thread's CPU time, as the kernel counts both for a task.  A thread with
 * events on them that sample has one timer for all, which sends it PERFRING_SOFT_SIGNAL (perfring_soft_signal: a real-time
 * signal that nobody handles when the first clock is opened).  It goes off while the thread runs, and never while it sleeps
 * or waits for a processor: no system call is interrupted (but before Linux 5.11, and on processors whose kernel lacks
 * CONFIG_POSIX_CPU_TIMERS_TASK_WORK, one that is entered as the tick comes).
 *
 *     how often           at the kernel's ticks (CONFIG_HZ), whatever the period; no period is shorter than 10 us
 *     missed intervals    are in the next sample's period: the sum of all is the CPU time
 *     signal blocked      the thread is sampled late, or not.  Nothing is left pending when it leaves
 *
 * The handler runs on an alternate stack of 64 KiB and a guard page, which a thread gets when it joins, unless it has one,
 * and loses when it leaves.  So a thread may stand on a stack of any size, a coroutine's too, which is not touched.  Handlers
 * of the program's with SA_ONSTACK run there too.  An alternate stack of the program's is never replaced: ticks stand on it,
 * and are missed where it has less than 3 KB below the kernel's signal frame; one that is smaller than that frame
 * (AT_MINSIGSTKSZ) ends the process, as with any signal that comes there.  A thread without any (a handler has left it by a
 * jump) is sampled on its own stack alone.
 *
 * fork: the child has no events and has joined nothing: its raises do nothing, what it inherited may only be closed.
 * vfork's and posix_spawn's child may raise; the records are the parent thread's.
 * exec: everything ends with the old program.  dlclose of what raises: its points stay, they are perfring's.
 */
#ifndef PERFRING_SOFT_H
#define PERFRING_SOFT_H

#include <perfring/format.h>
#include <perfring/sample.h>
#include <perfring/set.h>

PERFRING_BEGIN

/* attr.type of named points, attr.config is the point's: a number that no PMU of Linux has. */
enum {
	PERFRING_SOFT_TYPE = 0x50465200
};

/* ---- points ---- */

struct perfring_soft_point {
	uint32_t active; /* events that are enabled on it */
	uint32_t type;
	uint64_t config;
	const char *name;
	const void *events; /* soft's own */
	uint64_t reserved[2];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_soft_point) == 48, "a point");

/* The point of that name, made if there is none.  Points are never freed.  Returns NULL without memory, and for a name that
 * is empty or longer than 255 bytes.  Context: a thread, not a handler. */
PERFRING_API struct perfring_soft_point *perfring_soft_define(const char *name);

/* The point of an attr's type and config; NULL: there is none. */
PERFRING_API struct perfring_soft_point *perfring_soft_point_of(uint32_t type, uint64_t config);

/* Where something was raised.  context: the ucontext_t of a handler, when the interrupted place is meant; NULL: here. */
struct perfring_soft_site {
	uint64_t addr;
	const void *raw; /* copied into the sample's RAW */
	uint32_t raw_size;
	uint32_t padding;
	const void *context;
	uint64_t reserved[2];
};

/* Bytes of the caller's stack that a raise takes at most, whatever its events' samples hold, in a build that is optimized:
 * for handlers on small alternate stacks, and coroutines. */
enum {
	PERFRING_SOFT_STACK = 2048
};

/* The slow half of the inlines below. */
PERFRING_API void perfring_soft_raise_active(struct perfring_soft_point *point, uint64_t nr,
					     const struct perfring_soft_site *site);

/* `nr` occurrences.  Nobody listens: one load and one predicted branch. */
PERFRING_INLINE void perfring_soft_raise_at(struct perfring_soft_point *point, uint64_t nr,
					    const struct perfring_soft_site *site)
{
	if (PERFRING_UNLIKELY(PERFRING_LOAD(&point->active))) /* no order: an event is enabled sooner or later */
		perfring_soft_raise_active(point, nr, site);
}

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

/* ---- threads ---- */

/* This thread takes part.  Returns 0 (also when it does already); -EUSERS (4096 do); -ENOMEM; what making a ring for one of
 * the events said.  With attr.task and attr.comm events write its FORK and COMM.  Context: a thread, not a handler. */
PERFRING_API int perfring_soft_join(void);

/* As its end does: what it counted stays in the events, what is unread stays in their rings; attr.task events write EXIT.
 * Context: as join. */
PERFRING_API void perfring_soft_leave(void);

/* From now on a thread that leaves makes no system call of perfring's: its timer, which is disarmed, stays until it ends, its
 * alternate stack until the process does.  For who is about to install a seccomp filter, and has closed all events.  Context:
 * any thread, not a handler. */
PERFRING_API void perfring_soft_confine(void);

/* Nothing: perfring does not use liburcu in a way that a fork could break.  Kept for programs that call it. */
PERFRING_API void perfring_soft_fork_hooks(bool wanted);

/* ---- events ---- */

struct perfring_soft_event;

enum perfring_soft_scope {
	PERFRING_SOFT_THREAD, /* the calling thread */
	PERFRING_SOFT_PROCESS, /* every thread that takes part, and will: as an inherited event, whose children they are */
};

/* As perf_event_open: disabled or not as attr says.  leader: of a group (of the same scope, and thread), or NULL.  Samples
 * go nowhere until the event has a ring.  Returns 0; -EINVAL, -EOPNOTSUPP, -EOVERFLOW, -E2BIG as the kernel judges attr
 * (docs/abi.md 1.5; sample_freq above the limit is -EINVAL); -ENOENT (no such point); -ENOMEM, -EUSERS;
 * of a clock that samples: -EBUSY (no real-time signal is free, or perfring_soft_signal is handled by somebody else now),
 * -EAGAIN (RLIMIT_SIGPENDING: each thread's timer counts). */
PERFRING_API int perfring_soft_open(struct perfring_soft_event **event, const struct perf_event_attr *attr,
				    unsigned scope, struct perfring_soft_event *leader);

/* Its siblings, if it is a leader, become events of their own; events that write into its rings write nowhere.  Its rings
 * and what is unread in them are gone.  Waits until nobody is in it. */
PERFRING_API void perfring_soft_close(struct perfring_soft_event *event);

/* A ring for each thread: pages as perfring_ring_create; the attr's wakeup_watermark or wakeup_events are theirs.  wake_fd
 * as in writer.h.  Returns 0; -EINVAL (it has rings, or writes into another's); what making a ring said. */
PERFRING_API int perfring_soft_map(struct perfring_soft_event *event, uint32_t pages, int32_t wake_fd);

/* The same with rings in files, FILE.0, FILE.1 ... (set.h), which outlive the process, for `perfring ring` and
 * perfring_ring_attach.  Files of these names are replaced. */
PERFRING_API int perfring_soft_map_files(struct perfring_soft_event *event, uint32_t pages, const char *file,
					 int32_t wake_fd);

/* The event's rings, each with the event's attr and id (perfring_ring_attr), for perfring_session_add_set: one reader at a time (set.h).  NULL: not mapped. */
PERFRING_API struct perfring_set *perfring_soft_rings(struct perfring_soft_event *event);

/* Writes into `other`'s rings from now on (NULL: its own, or nowhere), which keep the records apart by id: docs/abi.md 7.9.
 * Returns 0; -EINVAL (other is not mapped or is itself redirected; the event has rings; scopes or clocks differ). */
PERFRING_API int perfring_soft_set_output(struct perfring_soft_event *event, struct perfring_soft_event *other);

/* Siblings of a leader that is disabled do not count.  group: the leader's whole group, as PERF_IOC_FLAG_GROUP. */
PERFRING_API void perfring_soft_enable(struct perfring_soft_event *event, bool group);
PERFRING_API void perfring_soft_disable(struct perfring_soft_event *event, bool group);
PERFRING_API void perfring_soft_reset(struct perfring_soft_event *event, bool group);

/* limit += n, then enable: after so many overflows it disables itself (docs/abi.md 9.5).  0 just enables.  Returns -EINVAL for
 * an event that does not sample, and, as for an inherited event, for one of the process. */
PERFRING_API int perfring_soft_refresh(struct perfring_soft_event *event, uint32_t n);

/* The period, or the frequency of an event with attr.freq (docs/abi.md 9.2; -EINVAL as the kernel's ioctl). */
PERFRING_API int perfring_soft_set_period(struct perfring_soft_event *event, uint64_t period);

PERFRING_API uint64_t perfring_soft_id(const struct perfring_soft_event *event);

/* The bytes of read(2), by attr.read_format (docs/abi.md 2.2): take them apart by perfring_read_take or sample.h.  Values are of
 * all threads, those that have gone too.  Returns the size; -ENOSPC (room too small). */
PERFRING_API int64_t perfring_soft_read(struct perfring_soft_event *event, void *room, size_t size);

/* Samples of this event that found a ring full, or were raised by threads that have not joined (for periods above 1 and
 * weights above 1: at most one for each raise is counted there). */
PERFRING_API uint64_t perfring_soft_lost(const struct perfring_soft_event *event);

/* ---- what the process is: records for those who symbolise ---- */

/* Writes COMM and MMAP2 (of what is loaded, with build-ids where attr.build_id) into the ring that this thread has for the
 * event: for events opened after the program began.  Again after dlopen: only what is new is written.  Returns how many
 * records, or -errno.  Context: a thread that takes part, not a handler. */
PERFRING_API int perfring_soft_put_state(struct perfring_soft_event *event);

/* ---- limits ---- */

/* As kernel.perf_event_max_sample_rate and CONFIG_HZ: 100000 and 250 unless said.  Returns -EINVAL for 0. */
PERFRING_API int perfring_soft_limits(uint32_t max_sample_rate, uint32_t ticks_per_second);

/* The signal of the timers; 0 before the first clock that samples. */
PERFRING_API int perfring_soft_signal(void);

PERFRING_END

#endif
