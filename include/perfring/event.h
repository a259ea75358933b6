/* event.h - perf_event_open fds: event names, opening with or without fallbacks, controls, reading, and why an event was
 * refused.
 *
 * session.h and count.h open events through these; a program calls them for fds of its own.  Fds are plain perf_event_open fds, and
 * the caller's: close(2) them.  "Like snprintf": writes at most `size` bytes with a NUL, and returns the length of the whole text.
 *
 * Context: any thread unless stated otherwise; not signal handlers.  Names read sysfs and tracefs, and allocate. */
#ifndef PERFRING_EVENT_H
#define PERFRING_EVENT_H

#include <perfring/base.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* ---- names ---- */

/* Parses an event in perf's syntax into an attr:
 *
 *     cycles, page-faults, L1-dcache-loads    hardware, software and cache events
 *     rHEX                                    a raw event
 *     PMU/TERM[=VALUE],.../                   terms and events that sysfs describes for the PMU; also config, config1 to 4,
 *                                             those of any event
 *     EVENT/TERM[=VALUE],.../                 terms of any event, and of tracepoints:
 *                                             period=N, freq=N, name=TEXT, call-graph=no|fp|dwarf|lbr, stack-size=BYTES,
 *                                             max-stack=N (frames), inherit, no-inherit, time=0|1, overwrite, no-overwrite,
 *                                             branch_type=KIND|KIND, aux-output, aux-sample-size=BYTES, percore
 *     NAME                                    an event that sysfs names, of the first PMU that has it
 *     SUBSYS:NAME                             a tracepoint (through tracefs)
 *     mem:ADDR[/LEN][:rwx]                    a breakpoint
 *     a name of libpfm4, if it is built in
 *
 * Modifiers follow a last colon (after a slash the colon is optional): u k h (user, kernel, hypervisor only), p pp ppp P
 * (precise_ip; P is 3, which PERFRING_FALLBACK_PRECISE may lower), G H (guest, host), I (not idle), S (read the group; in
 * perfring_events_one, not in the attr), D (pinned), e (exclusive).  An exclude_guest that the attr has before stays without a
 * modifier, and as in perf with u or p; other modifiers alone clear it.
 *
 * Sets type, config to config4, bp_*, the exclude_ flags, precise_ip, and of terms what they say: the period or freq, flags, bits
 * of sample_type and their members (branch_sample_type, sample_regs_user, sample_stack_user, sample_max_stack, aux_sample_size);
 * keeps all other members; changes nothing on failure.  attr->size must be set: a member that the event needs beyond it (config2
 * and bp_len: 72, config3: 136, config4: 144) is a fault unless it is 0.  uprobes need perfring_events_add, which keeps their
 * path.  Returns 0; -EINVAL with the place in *fault (may be NULL); -ENOENT, -EACCES of tracefs or sysfs, with *fault. */
PERFRING_API int perfring_event_parse(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault);

/* Terms that the text of an event had (perfring_events_one.terms): a caller that adds settings afterwards, as of its command line,
 * leaves these as they are.  PERCORE is not in the attr: the caller sums by core. */
enum perfring_event_term {
	PERFRING_TERM_CALLCHAIN = 1, /* call-graph, max-stack */
	PERFRING_TERM_INHERIT = 2,
	PERFRING_TERM_TIME = 4,
	PERFRING_TERM_OVERWRITE = 8,
	PERFRING_TERM_BRANCHES = 16,
	PERFRING_TERM_PERCORE = 32,
	PERFRING_TERM_GUESTS = 64, /* the modifiers G and H */
};

/* Reads kinds of branches, separated by , or |, as bits of branch_sample_type, into *types: u k hv any any_call any_ret ind_call
 * ind_jmp call cond abort_tx in_tx no_tx save_type stack priv counter; u, k and hv alone are of any kind.  Returns 0 or
 * -EINVAL. */
PERFRING_API int perfring_event_branches(const char *text, size_t length, uint64_t *types);

/* Sets in *attr what the term call-graph=HOW sets: no, fp, dwarf (with sample_stack_user bytes, 8192 if that is 0) or lbr.  attr:
 * a whole struct of the installed header, whatever its size says.  Returns 0; or -EINVAL: HOW is none of them, or dwarf, for
 * which this machine's registers are not known. */
PERFRING_API int perfring_event_callchain(const char *how, size_t length, struct perf_event_attr *attr);

/* The sample_regs_user that call-graph=dwarf asks for; 0: not known for this machine. */
PERFRING_API uint64_t perfring_event_unwind_registers(void);

/* A list of events and groups, as on a command line.  Context: one thread at a time for each list. */
struct perfring_events;

/* One event of a list. */
struct perfring_events_one {
	const struct perf_event_attr *attr;
	const char *name; /* as written, or its `name=` term */
	/* In a group: the leader's number, also in the leader itself; else UINT32_MAX. */
	uint32_t leader;
	bool reads;          /* modifier S: the leader's samples read the group, the siblings do not sample */
	double scale;        /* of a PMU's event: the factor from the count to `unit`; else 1.0 */
	const char *unit;    /* or "" */
	const char *cpus;    /* the PMU's cpumask, such as "0,64", on which it counts for all CPUs; "": it counts on each CPU */
	uint32_t terms;      /* PERFRING_TERM_ bits of its terms, whose values are in attr */
};

/* open: an empty list.  Returns 0 or -ENOMEM.  close frees it; NULL is allowed. */
PERFRING_API int perfring_events_open(struct perfring_events **events);
PERFRING_API void perfring_events_close(struct perfring_events *events);

/* Appends "EVENT,{EVENT,EVENT}:MODIFIERS,...", with each EVENT as in perfring_event_parse.  base: the attr that each event
 * starts from (sample_type, period ...).  Modifiers after a group apply to each of its events; D and e to its leader.  More
 * forms:
 *
 *     SUBSYS:GLOB                                 all matching tracepoints
 *     uprobe:PATH:PLACE, uretprobe:PATH:PLACE     PLACE: SYMBOL, SYMBOL+OFFSET (bytes) or 0xOFFSET (in the file); PATH
 *                                                 without commas and braces
 *
 * Returns 0; as perfring_event_parse, -ENOENT also for an unknown symbol, -ENOMEM: then nothing is appended. */
PERFRING_API int perfring_events_add(struct perfring_events *events, const char *text,
				     const struct perf_event_attr *base, struct perfring_fault *fault);

/* Appends an attr, which is copied as its name is.  joins: to the group of the event before it, which becomes a leader.  Returns 0;
 * -EINVAL (joins in an empty list, an attr above 4096 bytes), -ENOMEM. */
PERFRING_API int perfring_events_add_attr(struct perfring_events *events, const struct perf_event_attr *attr,
					  const char *name, bool joins);

/* The number of events in the list. */
PERFRING_API uint32_t perfring_events_count(const struct perfring_events *events);

/* The i-th event, from 0; NULL after the last.  Valid until close, its pointers too.  perfring_events_attr: its attr, for changes. */
PERFRING_API const struct perfring_events_one *perfring_events_at(const struct perfring_events *events, uint32_t i);
PERFRING_EXPERIMENTAL struct perf_event_attr *perfring_events_attr(struct perfring_events *events, uint32_t i);

/* The events of this machine, by kind, sorted within each kind. */
enum perfring_event_kind {
	PERFRING_EVENT_HARDWARE,
	PERFRING_EVENT_SOFTWARE,
	PERFRING_EVENT_CACHE,
	PERFRING_EVENT_PMU,        /* an event that sysfs names: "cpu/branch-misses/" */
	PERFRING_EVENT_TRACEPOINT,
	PERFRING_EVENT_PFM,        /* a name of libpfm4 */
	PERFRING_EVENT_FORM,       /* a form for other events: "rNNN", "mem:ADDR[/LEN][:rwx]", a PMU's terms */
};

/* One name; the texts are the list's. */
struct perfring_event_listed {
	enum perfring_event_kind kind;
	const char *name;
	const char *alias; /* another name for it, or "" */
	const char *text;  /* a description, or "" */
	bool opens;        /* with try_open: perf_event_open accepts it for this thread (HARDWARE, SOFTWARE, CACHE) */
	int error;         /* with try_open: its -errno; else 0 */
};

struct perfring_event_names;

/* Lists events.  glob: matches names and aliases (fnmatch); NULL: all.  try_open: sets `opens` and `error`.  Events that
 * cannot be listed (tracefs refused) are left out.  next returns 1, or 0 after the last; valid until the next call.  Returns
 * 0 or -errno. */
PERFRING_API int perfring_event_names_open(struct perfring_event_names **names, const char *glob, bool try_open);
PERFRING_API int perfring_event_names_next(struct perfring_event_names *names, struct perfring_event_listed *name);
PERFRING_API void perfring_event_names_close(struct perfring_event_names *names);

/* ---- opening ---- */

/* perf_event_open(2) with FD_CLOEXEC.  pid, cpu, group_fd, flags: docs/abi.md 1.1.  The kernel is given the smallest size
 * that holds attr, so that old kernels accept it; attr is not modified.  Returns an fd or -errno. */
PERFRING_API int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd,
				     uint64_t flags);

/* Checks the arguments by the rules of docs/abi.md 1.1 and 1.5, without a system call.  group: the leader's attr, or NULL.
 * Returns 0, or the -errno of the first rule that is broken, with the rule in *fault (may be NULL); fault->at is the offset
 * of the attr's member, or -1 for an argument.  It is the kernel's errno, unless what it does not know comes first (1.5). */
PERFRING_API int perfring_event_check(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, uint64_t flags,
				      const struct perf_event_attr *group, struct perfring_fault *fault);

/* The features that may be dropped so that an event opens, tried in this order.  The result says which were dropped. */
enum perfring_fallback {
	PERFRING_FALLBACK_NEWER = 1,           /* members and flags that this kernel does not know (E2BIG, EINVAL), newest first:
						  read_format LOST, inherit_thread, build_id, cgroup, text_poke, bpf_event,
						  ksymbol, namespaces ... */
	PERFRING_FALLBACK_PRECISE = 2,         /* lower precise_ip, step by step */
	PERFRING_FALLBACK_CLOCKID = 4,         /* use_clockid: perf's clock instead */
	PERFRING_FALLBACK_BRANCH_STACK = 8,    /* BRANCH_STACK, if the PMU has none */
	PERFRING_FALLBACK_EXCLUDE_KERNEL = 16, /* user space only, without permission to observe the kernel; not for an event that
						  excludes user space */
	PERFRING_FALLBACK_CPU_CLOCK = 32,      /* cpu-clock for a hardware or raw event without a PMU; `freq` stays, a fixed
						  period becomes 1 ms; not for an event of guests or a hypervisor only */
	PERFRING_FALLBACK_MISSING = 64,        /* count.h only: an event that this machine lacks is not counted, the others of its
						  list are */
	PERFRING_FALLBACK_GUESTS = 128,        /* exclude_guest, if the PMU cannot leave guests out; tried after CLOCKID */
	PERFRING_FALLBACK_ALL = 255,
};

/* perfring_event_open that drops features of *attr, one by one, until the kernel accepts it.  allowed: which may be dropped.
 * *taken: which were.  attr->size stays.  Returns an fd, or -errno of the last try, with *attr and *taken as in that try:
 * perfring_event_explain of both names the obstacle that no fallback removes. */
PERFRING_API int perfring_event_open_fallback(struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd,
					      uint64_t flags, uint64_t allowed, uint64_t *taken);

/* One sentence for the user for each bit of `taken`: what differs, and why.  "" for 0.  Like snprintf. */
PERFRING_API int64_t perfring_fallback_explain(uint64_t taken, const struct perf_event_attr *asked,
					       const struct perf_event_attr *opened, char *buffer, size_t size);

/* The id that records of this fd carry (PERF_EVENT_IOC_ID).  Returns 0 or -errno. */
PERFRING_API int perfring_event_id(int fd, uint64_t *id);

/* read(2) into `buffer`, decoded by the event's read_format (sample.h).  Returns 0; -ENOSPC (`size` is too small); -EBADMSG;
 * -ENODATA (end of file: the event is in error state); or -errno.  Valid while `buffer` is. */
PERFRING_API int perfring_event_read(int fd, const struct perfring_format *format, struct perfring_read *read,
				     void *buffer, size_t size);

/* Why perfring_event_open returned `error` for these arguments, and what to change: sentences that name the event, the sysctl
 * and its value, the limit, the capability or the attr's bit.  Like snprintf: returns the length of the whole text. */
PERFRING_API int64_t perfring_event_explain(int error, const struct perf_event_attr *attr, int32_t pid, int32_t cpu,
					    char *buffer, size_t size);

/* Whether a seccomp filter refuses every perf_event_open, which no permission changes.  Makes two calls that open nothing.
 * Returns the filter's -errno, or 0. */
PERFRING_API int perfring_event_filtered(void);

/* The event's name in the syntax of perfring_event_parse ("cpu-clock:u", "sched:sched_switch", "mem:0x10/4:w");
 * "type=N,config=N" if it has none.  Like snprintf. */
PERFRING_API int64_t perfring_event_name(const struct perf_event_attr *attr, char *buffer, size_t size);

/* ---- controls: ioctl(2) without its traps (docs/abi.md 2.1) ----
 *
 * Each returns 0 or -errno of the system call. */

/* Starts and stops the event's counting.  group: that of all events of the group that fd is in. */
PERFRING_API int perfring_event_enable(int fd, bool group);
PERFRING_API int perfring_event_disable(int fd, bool group);

/* Sets the count to 0.  The times, `lost` and the counts of exited children stay. */
PERFRING_API int perfring_event_reset(int fd, bool group);

/* Enables the event for n more overflows.  0 is -EINVAL: the kernel would enable it without a limit.  On Linux 6.18 a
 * breakpoint that has reached its limit once also needs perfring_event_set_period afterwards. */
PERFRING_EXPERIMENTAL int perfring_event_refresh(int fd, uint32_t n);

/* Sets the period (ns for clocks), or the frequency of an event with `freq`.  Software events, tracepoints and breakpoints
 * sample once immediately, then after the old period, then after the new one. */
PERFRING_EXPERIMENTAL int perfring_event_set_period(int fd, uint64_t period);

/* Sends records into the ring of fd `to`; -1: into none. */
PERFRING_EXPERIMENTAL int perfring_event_set_output(int fd, int to);

/* Sets a tracepoint's filter, or an AUX event's address filter.  -EEXIST: a tracepoint's filter can neither be replaced nor
 * removed; open the event again. */
PERFRING_API int perfring_event_set_filter(int fd, const char *filter);

/* While paused, no record is written into fd's ring; refused records count as lost. */
PERFRING_EXPERIMENTAL int perfring_event_pause(int fd, bool paused);

/* Attaches a BPF program, by its fd, to a tracepoint, kprobe or uprobe event, or as the overflow handler of others. */
PERFRING_EXPERIMENTAL int perfring_event_set_bpf(int fd, int program);

/* The ids of the BPF programs on a tracepoint.  *count: before, the capacity of ids; after, the number of programs.  -ENOSPC: ids was
 * too small. */
PERFRING_EXPERIMENTAL int perfring_event_query_bpf(int fd, uint32_t *ids, uint32_t *count);

/* Changes bp_*, disabled and sig_data of a breakpoint; all other members must be as it was opened. */
PERFRING_EXPERIMENTAL int perfring_event_modify(int fd, const struct perf_event_attr *attr);

/* Sends signal `number` to thread `tid` of this process at each overflow, with si_code POLL_IN, or POLL_HUP at the last one
 * of a refresh, and si_fd; newer kernels send it for wakeups of other records too.  number 0: stops that.  The handler runs
 * in that thread, some instructions after the overflow. */
PERFRING_EXPERIMENTAL int perfring_event_set_signal(int fd, int number, int32_t tid);

/* Starts, stops all events that the calling thread opened, by prctl(2). */
PERFRING_EXPERIMENTAL int perfring_event_enable_all(void);
PERFRING_EXPERIMENTAL int perfring_event_disable_all(void);

/* ---- counting ---- */

/* The estimate of a multiplexed count: value * enabled / running.  margin: half the width of the 95 % interval around it if
 * occurrences are independent.  For a program with phases they are not; then only 1 - share bounds the error. */
struct perfring_estimate {
	double value;
	double share;  /* running / enabled; 1.0: exact; 0: never counted, value is 0 */
	double margin;
};

/* enabled, running: ns, as read.  Context: any thread, also signal handlers. */
PERFRING_API struct perfring_estimate perfring_event_estimate(uint64_t value, uint64_t enabled, uint64_t running);

/* How perfring_event_count_self read the count. */
enum perfring_count_way {
	PERFRING_COUNT_RDPMC,  /* in user space, from the control page and the counter */
	PERFRING_COUNT_READ,   /* by read(2): the page does not permit user space to */
};

/* A count, with its times in ns. */
struct perfring_self_count {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
	enum perfring_count_way way;
};

/* The count of an event of the calling thread.  page: the control page of fd (ring.h; data pages are not needed), into whose
 * ring no other event writes.  read_format of fd: the two times, not GROUP.  By RDPMC and without user_time the times are
 * those of the kernel's last update.  Returns 0; -errno of read(2); -ENODATA for a pinned event without a counter; -EINVAL
 * for another read_format.  Context: that thread and its signal handlers. */
PERFRING_EXPERIMENTAL int perfring_event_count_self(int fd, const struct perf_event_mmap_page *page,
					   struct perfring_self_count *count);

PERFRING_END

#endif
