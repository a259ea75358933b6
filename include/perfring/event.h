/* event.h - perf_event_open fds: naming what to observe, opening it with or without fallbacks, steering and reading it,
 * and why it was refused.
 *
 * Context: any thread unless said; not signal handlers.
 */
#ifndef PERFRING_EVENT_H
#define PERFRING_EVENT_H

#include <perfring/base.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* ---- names ---- */

/* Text to attr, in perf's syntax: software, hardware and cache events by name, `rHEX` raw ones, `PMU/TERM[=VALUE],.../`
 * (terms and events as sysfs describes that PMU; also config, config1..4, period, freq, name; of the others period, freq
 * and name: `cycles/period=1000/`), an event of sysfs's alone (`tsc`: of the first PMU that has it), `subsys:name`
 * tracepoints (through tracefs), `mem:ADDR[/LEN][:rwx]`; what libpfm4 names, when it is built in; each with modifiers
 * behind a last colon (behind a last slash: with or without it): u k h (only there), p pp ppp P (precise_ip; P: 3, for
 * PERFRING_FALLBACK_PRECISE to lower), G H (guest, host), I (not idle), S (read the group), D (pinned), e (exclusive).
 * Sets type, config.., bp_*, the exclude_ flags, precise_ip, and the period or freq that a term gives; the rest of *attr
 * stays, all of it on failure.  S changes no attr: perfring_events_one tells it.  attr->size is to be set: what the event
 * needs behind it (config2 and bp_len: 72, config3: 136, config4: 144) is a fault, where it is not 0.  Probes of user
 * code are texts for perfring_events_add alone, which keeps their path.  Returns 0; -EINVAL with *fault (may be NULL)
 * telling where in the text; -ENOENT and -EACCES as tracefs or sysfs said, with *fault. */
PERFRING_API int perfring_event_parse(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault);

/* Several events, some of them in groups, as a command line names them. */
struct perfring_events;

struct perfring_events_one {
	const struct perf_event_attr *attr;
	const char *name; /* as it was written; its `name=` term when it has one */
	/* Of a group: the number of its leader, its own for the leader itself; UINT32_MAX: in none. */
	uint32_t leader;
	bool reads;          /* S: the leader's samples read the group, the others do not sample */
	double scale;        /* of a PMU's event: what a count is worth, 1.0 without one */
	const char *unit;    /* "" without one */
	const char *cpus;    /* "0,64": where its PMU counts for all CPUs (sysfs's cpumask); "" for one that has each CPU */
};

PERFRING_API int perfring_events_open(struct perfring_events **events);
PERFRING_API void perfring_events_close(struct perfring_events *events);

/* Appends "EVENT,{EVENT,EVENT}:MODIFIERS,...", each EVENT as perfring_event_parse takes it, begun from *base (which is
 * what the caller wants of every one: sample_type, period ...).  Modifiers behind a group are those of each of its
 * events, besides its own; D and e those of its leader.  Also `SUBSYS:GLOB` and `SUBSYS:*` for all tracepoints that
 * match, and `uprobe:PATH:PLACE` and `uretprobe:PATH:PLACE`, PLACE = SYMBOL, SYMBOL+OFFSET (bytes) or 0xOFFSET (in the
 * file), through the uprobe PMU; no comma or brace is in PATH.  Returns 0, or as perfring_event_parse, -ENOENT also for a
 * symbol that the file does not have, -ENOMEM; then nothing was appended. */
PERFRING_API int perfring_events_add(struct perfring_events *events, const char *text,
				     const struct perf_event_attr *base, struct perfring_fault *fault);

/* Appends one that the caller made.  A group goes on with the one before when `joins`. */
PERFRING_API int perfring_events_add_attr(struct perfring_events *events, const struct perf_event_attr *attr,
					  const char *name, bool joins);

PERFRING_API uint32_t perfring_events_count(const struct perfring_events *events);

/* Valid until close; the pointers in it too.  The attr may be changed through perfring_events_attr. */
PERFRING_API const struct perfring_events_one *perfring_events_at(const struct perfring_events *events, uint32_t i);
PERFRING_API struct perf_event_attr *perfring_events_attr(struct perfring_events *events, uint32_t i);

/* What can be named on this machine, kind by kind and sorted within one. */
enum perfring_event_kind {
	PERFRING_EVENT_HARDWARE,
	PERFRING_EVENT_SOFTWARE,
	PERFRING_EVENT_CACHE,
	PERFRING_EVENT_PMU,        /* an event that sysfs names: "cpu/branch-misses/" */
	PERFRING_EVENT_TRACEPOINT,
	PERFRING_EVENT_PFM,        /* a name of libpfm4's */
	PERFRING_EVENT_FORM,       /* a way to write others: "rNNN", "mem:ADDR[/LEN][:rwx]", a PMU's terms */
};

struct perfring_event_listed {
	enum perfring_event_kind kind;
	const char *name;
	const char *alias; /* another name for it, or "" */
	const char *text;  /* a description, or "" */
	bool opens;        /* HARDWARE, SOFTWARE, CACHE: perf_event_open took it, counting this thread (tried when asked) */
	int error;         /* what it said, when it was tried and did not: -errno; else 0 */
};

struct perfring_event_names;

/* glob: NULL for all, else only names or aliases that match (fnmatch).  try_open: sets `opens`.  Returns 0 or -errno;
 * what cannot be listed (tracefs refused) is left out. */
PERFRING_API int perfring_event_names_open(struct perfring_event_names **names, const char *glob, bool try_open);
PERFRING_API int perfring_event_names_next(struct perfring_event_names *names, struct perfring_event_listed *name);
PERFRING_API void perfring_event_names_close(struct perfring_event_names *names);

/* ---- opening ---- */

/* perf_event_open(2), FD_CLOEXEC always added.  pid, cpu, group_fd and flags as in docs/abi.md 1.1.  attr is not modified:
 * the size handed to the kernel is the smallest that holds it, so old kernels take it.  Returns an fd or -errno. */
PERFRING_API int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd,
				     uint64_t flags);

/* Whether the kernel can take these arguments at all: the rules of docs/abi.md 1.1 and 1.5 that need no kernel to be asked.
 * group: the leader's attr, or NULL.  Returns 0, or the errno (negative) that the kernel gives, with *fault (may be
 * NULL) saying which rule and `at` the offset of the attr's member, -1 for an argument. */
PERFRING_API int perfring_event_check(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, uint64_t flags,
				      const struct perf_event_attr *group, struct perfring_fault *fault);

/* What may be given up so that an event opens, in this order.  Each bit is one step; all of them are honest: what was
 * given up is told. */
enum perfring_fallback {
	PERFRING_FALLBACK_NEWER = 1,           /* members and flags that this kernel does not know (E2BIG, EINVAL), newest first:
						  read_format LOST, inherit_thread, build_id, cgroup, text_poke, bpf_event, ksymbol, namespaces... */
	PERFRING_FALLBACK_PRECISE = 2,         /* precise_ip, one less at a time */
	PERFRING_FALLBACK_CLOCKID = 4,         /* use_clockid: back to perf's clock */
	PERFRING_FALLBACK_BRANCH_STACK = 8,    /* where the PMU has none */
	PERFRING_FALLBACK_EXCLUDE_KERNEL = 16, /* user space only, where the kernel is not ours to see; never of an event that
						  excludes user space */
	PERFRING_FALLBACK_CPU_CLOCK = 32,      /* cpu-clock for a hardware or raw event without a PMU; `freq` stays, a fixed
						  period becomes 1 ms; never for an event of guests or of a hypervisor alone */
	PERFRING_FALLBACK_MISSING = 64,        /* counting sets (count.h) alone: an event that this machine does not have is
						  not counted, and the others of its list are */
	PERFRING_FALLBACK_ALL = 127,
};

/* perfring_event_open, with what `allowed` permits given up one by one until the kernel takes it; *attr is changed
 * accordingly (its size stays) and *taken says which.  Returns an fd, or -errno of the last try: then *attr is as the
 * kernel refused it last, and *taken what had been given up by then.  So perfring_event_explain of this errno and this
 * attr names the obstacle that is left when everything permitted has been given up. */
PERFRING_API int perfring_event_open_fallback(struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd,
					      uint64_t flags, uint64_t allowed, uint64_t *taken);

/* One sentence for the user: what is not as asked, for each bit of `taken`, and why.  "" when nothing was given up.  Like
 * snprintf. */
PERFRING_API int64_t perfring_fallback_explain(uint64_t taken, const struct perf_event_attr *asked,
					       const struct perf_event_attr *opened, char *room, size_t size);

/* The id that records carry for this fd.  Returns 0 or -errno. */
PERFRING_API int perfring_event_id(int fd, uint64_t *id);

/* read(2) into room, told apart by the event's read_format (sample.h).  Returns 0, -ENOSPC (room too small), -EBADMSG,
 * -ENODATA (an event in error state reads as end of file), or -errno.  Valid until: room changes. */
PERFRING_API int perfring_event_read(int fd, const struct perfring_format *format, struct perfring_read *read,
				     void *room, size_t size);

/* Why perfring_event_open said `error` for these arguments, and what to change: one or more sentences that name the
 * event, the sysctl and its value now, the limit, the capability or the attr's bit.  Like snprintf: returns the length
 * of the whole text.  */
PERFRING_API int64_t perfring_event_explain(int error, const struct perf_event_attr *attr, int32_t pid, int32_t cpu,
					    char *room, size_t size);

/* Whether a seccomp filter refuses perf_event_open, whatever is asked of it, which no permission mends: the -errno that
 * it says, else 0.  Tried by two calls that open nothing. */
PERFRING_API int perfring_event_filtered(void);

/* The event's name as perfring_event_parse takes it ("cpu-clock:u", "sched:sched_switch", "mem:0x10/4:w"); for what
 * has none "type=N,config=N".  Like snprintf. */
PERFRING_API int64_t perfring_event_name(const struct perf_event_attr *attr, char *room, size_t size);

/* ---- controls: ioctl(2) without its traps (docs/abi.md 2.1) ---- */

/* group: every event of fd's group, whichever of them fd is. */
PERFRING_API int perfring_event_enable(int fd, bool group);
PERFRING_API int perfring_event_disable(int fd, bool group);

/* The count becomes 0; times, lost and what dead children counted stay. */
PERFRING_API int perfring_event_reset(int fd, bool group);

/* Enabled for n more overflows.  n 0: -EINVAL, for the kernel would enable without an end.  A breakpoint whose budget has
 * run out once needs perfring_event_set_period behind it on Linux 6.18. */
PERFRING_API int perfring_event_refresh(int fd, uint32_t n);

/* period, or the frequency of an event with `freq`; ns for the clocks.  Events of the kernel's own (software,
 * tracepoints, breakpoints) sample once at once, then after the old period, from then on after the new one. */
PERFRING_API int perfring_event_set_period(int fd, uint64_t period);

/* Records go into the ring of fd `to`; -1: nowhere. */
PERFRING_API int perfring_event_set_output(int fd, int to);

/* A tracepoint's filter or an AUX event's address filter.  -EEXIST: a tracepoint has one already, and the kernel neither
 * replaces it nor takes it away: open the event anew. */
PERFRING_API int perfring_event_set_filter(int fd, const char *filter);

/* No record goes into fd's ring while it is paused; they count as lost. */
PERFRING_API int perfring_event_pause(int fd, bool paused);

PERFRING_API int perfring_event_set_bpf(int fd, int program);

/* The ids of the programs on a tracepoint.  *count: room in, programs out.  -ENOSPC: more than that. */
PERFRING_API int perfring_event_query_bpf(int fd, uint32_t *ids, uint32_t *count);

/* A breakpoint's bp_*, disabled and sig_data; all else as it was opened. */
PERFRING_API int perfring_event_modify(int fd, const struct perf_event_attr *attr);

/* Signal `number` to thread `tid` of this process at each overflow: POLL_IN, and POLL_HUP at the last of a refresh,
 * si_fd the fd; what a wakeup for other records sends too on newer kernels.  number 0: no more.  Context of the
 * handler: the thread, at an instruction behind the overflow. */
PERFRING_API int perfring_event_set_signal(int fd, int number, int32_t tid);

/* Every event that the calling thread opened, by prctl(2). */
PERFRING_API int perfring_event_enable_all(void);
PERFRING_API int perfring_event_disable_all(void);

/* ---- counting ---- */

/* How far a multiplexed count can be trusted.  estimate = value * enabled / running; the count was seen for `share` of
 * the time.  margin: half of the width of a 95 % interval around the estimate if occurrences came independently of
 * one another; for a program in phases nothing bounds the error but 1 - share of it all, which is why it is told. */
struct perfring_estimate {
	double value;
	double share;  /* running / enabled: 1.0 means it is no estimate; 0: never counted, value is 0 */
	double margin;
};

PERFRING_API struct perfring_estimate perfring_event_estimate(uint64_t value, uint64_t enabled, uint64_t running);

/* How perfring_event_count_self came to its answer. */
enum perfring_count_way {
	PERFRING_COUNT_RDPMC,  /* in user space, from the control page and the counter */
	PERFRING_COUNT_READ,   /* read(2): the page says that user space cannot */
};

struct perfring_self_count {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
	enum perfring_count_way way;
};

/* The count of an event of the calling thread, which is what the page's counter is of; `page` is fd's control page
 * (ring.h, no data pages are needed), in whose ring no other event writes.  read_format of fd: the two times, not GROUP.
 * By RDPMC the times are those of the kernel's last update where the page has no user_time, and the event has always
 * counted then.  Returns 0 or -errno of read(2), -ENODATA for a pinned event without a counter, -EINVAL for another
 * read_format.  Context: that thread, and its signal handlers. */
PERFRING_API int perfring_event_count_self(int fd, const struct perf_event_mmap_page *page,
					   struct perfring_self_count *count);

PERFRING_END

#endif
