/* stat.h - what the files of `perfring stat` share: options, counts and their places.
 *
 *     stat_options.c   the command line
 *     stat.c           opens, runs, reads
 *     stat_cgroups.c   the cgroup of each event
 *     stat_places.c    what is summed: all, or each CPU, thread, core, die, socket, node
 *     stat_record.c    stat record
 *     stat_report.c    stat report
 *     stat_print.c     columns, fields, JSON
 *     stat_soft.c      --soft: counts without perf_event_open
 *
 * struct counting is the state of one run.
 */
#ifndef PERFRING_TOOLS_STAT_H
#define PERFRING_TOOLS_STAT_H

#include <signal.h>
#include <sys/resource.h>
#include <perfring/command.h>
#include <perfring/count.h>
#include "event_filter.h"
#include "file_topology.h"
#include "outfile.h"
#include "tools.h"

#define NS_PER_S UINT64_C(1000000000)

/* The mean and deviation of one number over several runs. */
struct spread {
	uint64_t runs;
	double mean;
	double squares; /* the sum of the squared distances from the mean */
};

/* One line of output: an event at one place. */
struct row {
	bool supported;
	bool counted;
	bool is_stale; /* stat report: the file had no count of it since the last round, and it is not printed again */
	struct perfring_count sum;    /* at this read of the counters */
	struct perfring_count before; /* at the last, for intervals */
	struct perfring_count count;  /* of this interval, or of the last run */
	struct perfring_estimate estimate;
	struct spread values;
	struct spread enabled;
	struct spread running;
};

/* The kind of place for which counts are shown separately (-A, --per-thread, --per-core ...). */
enum apart {
	APART_NOT,
	APART_CPU,
	APART_THREAD,
	APART_CORE,
	APART_DIE,
	APART_SOCKET,
	APART_NODE,
};

/* perf's numbers for these kinds, in STAT_CONFIG. */
enum {
	TOOL_STAT_AGGR_NONE,
	TOOL_STAT_AGGR_GLOBAL,
	TOOL_STAT_AGGR_SOCKET,
	TOOL_STAT_AGGR_DIE,
	TOOL_STAT_AGGR_CORE,
	TOOL_STAT_AGGR_THREAD,
	TOOL_STAT_AGGR_NODE = 7,
};

/* A place: a CPU, a thread, or a set of CPUs. */
struct place {
	int32_t which; /* CPU or thread */
	char comm[32];
	int32_t node, socket, die, core; /* -1: the place has several */
	uint32_t cpus;
};

/* The place of a CPU or thread. */
struct single {
	int32_t which;
	uint32_t place;
};

/* Members of an event that a file has in records of their own. */
struct read_event {
	char *unit; /* NULL: nothing */
	double scale;
	bool has_scale;
};

/* A thread of a file, with its name when it was counted; as THREAD_MAP has it. */
struct thread_entry {
	uint64_t tid;
	char comm[16]; /* may be without a NUL */
};

struct counting {
	struct perfring_events *events;
	const char *separator; /* NULL: columns */
	const char *output;
	char *pids, *tids, *cpus;
	const char *user;     /* -u */
	char *cgroup;         /* -G, all of them */
	const char *each;     /* --for-each-cgroup */
	const char **cgroups; /* by event: its cgroup, NULL: none; equal names are one pointer; NULL: no event has one */
	char *cgroup_names;   /* memory of these names */
	const char **texts;   /* of events */
	uint32_t text_count;
	uint32_t event_count; /* of the first cgroup of --for-each-cgroup */
	uint64_t interval;    /* ms; 0: at the end alone */
	uint64_t interval_count;
	uint64_t repeat;  /* 0: until a signal */
	uint64_t delay;   /* ms */
	uint64_t timeout; /* ms; 0: none */
	enum apart apart;
	unsigned details;           /* how often -d */
	const char *before, *after; /* of each run: lines for the shell */
	int log_fd;                 /* -1: none */
	struct tool_filters filters;
	bool all;
	bool soft;
	bool inherit;
	bool null;
	bool grouped;
	bool user_part, kernel_part; /* --all-user, --all-kernel */
	bool sync;
	bool table;
	bool quiet;
	bool summary;
	bool no_summary_mark;
	bool clear;
	bool unscaled;
	bool small_numbers; /* without thousands' separators */
	bool metric_only;
	bool json;
	bool append;
	bool verbose;
	char **command;
	const char *data; /* stat record: the perf.data file; NULL: none */
	char **arguments; /* our own */
	struct tool_outfile data_file;
	struct perfring_file_writer *writer;
	bool is_read;                    /* stat report: the counts are those of a file */
	bool has_view;                   /* counts are printed by `view`, not by the places at which they were counted */
	enum apart view;
	struct tool_topology topology; /* of the file's machine */
	struct perfring_counts_fd *read; /* each once */
	bool *read_fresh;                /* of each: since the last round */
	void *read_tree;                 /* of struct read_key */
	uint32_t read_count, read_next;
	uint64_t looks;    /* at counts and rows, of all rounds */
	uint64_t left_out; /* counts */
	struct read_event *read_events;
	struct thread_entry *threads; /* by their numbers in the file */
	uint32_t thread_count;
	char **words; /* of the file's command */

	FILE *out;
	int out_error;            /* of the first flush that failed */
	struct tool_outfile file; /* unless it is stderr, or appended to */
	struct perfring_target *target;
	struct perfring_counts *counts;
	struct perfring_command child;
	double *times; /* of each run, ns, for the table */
	bool has_timed_out;
	bool *user_only;  /* events that leave out the kernel because it may not be observed */
	struct row *rows; /* event by event, at each the places */
	struct place *places;
	uint32_t place_count;
	struct single *singles; /* by CPU or thread, if places are such */
	uint32_t single_count;
	uint32_t *place_of;     /* by CPU, if places are sets of CPUs */
	uint32_t cpu_count;     /* of place_of */
	int unit_width;
	int signals;
	struct rlimit files; /* the command's limit, if has_files */
	bool has_files;
	uint64_t run;
	uint64_t started, next, printed; /* ns */
	uint64_t intervals;
	bool in_summary;       /* after the intervals */
	struct spread elapsed; /* ns */
	struct rusage usage;  /* the command's */
	struct rusage family; /* --soft: of all that were waited for */
	int32_t *earlier;   /* --soft: children that are not of this run */
	uint32_t earlier_count;
	sigset_t mask;        /* before signals were blocked */
	bool child_ended;
	int child_status;
	int interrupts;
	bool is_broken; /* a write into the perf.data file failed, which was reported */
	int ended_by;   /* the signal that ended the counting; 0: none did */
};

static inline const struct perfring_events_one *tool_stat_event(const struct counting *counting, uint32_t event)
{
	return perfring_events_at(counting->events, event);
}

/* NULL: none. */
static inline const char *tool_stat_cgroup(const struct counting *counting, uint32_t event)
{
	return counting->cgroups ? counting->cgroups[event] : NULL;
}

static inline struct row *tool_stat_row(const struct counting *counting, uint32_t event, uint32_t place)
{
	return &counting->rows[(size_t)event * counting->place_count + place];
}

static inline bool tool_stat_is_plain(const struct counting *counting)
{
	return !counting->json && !counting->separator;
}

/* Whether a place is a set of CPUs. */
static inline bool tool_stat_is_of_sets(const struct counting *counting)
{
	return counting->apart >= APART_CORE;
}

static inline bool tool_stat_is_sibling(const struct counting *counting, uint32_t event)
{
	uint32_t leader = tool_stat_event(counting, event)->leader;

	return counting->grouped ? event > 0 : leader != UINT32_MAX && leader != event;
}

/* Whether only the command is observed: no other target is named. */
static inline bool tool_stat_is_of_command(const struct counting *counting)
{
	return counting->command && !counting->all && !counting->pids && !counting->tids && !counting->user;
}

/* stat.c */
int tool_stat_run(int argc, char **argv);
/* The event's attr as it is opened. */
struct perf_event_attr tool_stat_shape(const struct counting *counting, uint32_t event);

/* The width of the column of units. */
void tool_stat_measure(struct counting *counting);

/* Computes the rows' counts and rates from a new read of the counters, `ns` after the one before. */
void tool_stat_take(struct counting *counting, uint64_t ns);

/* stat_report.c: stat report.  Returns the exit status. */
int tool_stat_report(struct counting *counting, int argc, char **argv);
/* The i-th fd with its last read; for stat report, the i-th that the file has.  Returns 1, or 0 after the last. */
int tool_stat_fd_at(const struct counting *counting, uint32_t i, struct perfring_counts_fd *fd);

/* stat_record.c: stat record.  put_round: the last read, `ns` after the start.  False after a complaint. */
bool tool_stat_open_data(struct counting *counting);
bool tool_stat_put_round(struct counting *counting, uint64_t ns, bool is_final);
bool tool_stat_close_data(struct counting *counting);

/* stat_options.c: returns -1 to go on, else the exit status. */
int tool_stat_read_options(struct counting *counting, int argc, char **argv);

/* stat_cgroups.c: gives each event its cgroup; add: adds events of a text.  False after a complaint. */
bool tool_stat_name_cgroups(struct counting *counting, bool (*add)(struct counting *, const char *));
/* The CPUs of a cgroup's events.  NULL after a complaint. */
struct perfring_target *tool_stat_open_cgroup(const struct counting *counting, const char *cgroup);

/* stat_places.c: finds the places of the opened fds, and makes a row for each event at each place. */
void tool_stat_find_places(struct counting *counting);
/* stat report: marks the rows that have counts since the last round; counts that belong to no row are left out. */
void tool_stat_mark_fresh(struct counting *counting);
/* Sums the last read for each row.  fds and failed are 0 in a row for which the event has no fd. */
void tool_stat_sum(struct counting *counting);
/* The name of a thread that runs; "" if there is none. */
void tool_stat_read_comm(int32_t tid, char *comm, size_t size);
/* Such as S0-D0-C1. */
void tool_stat_name_place(const struct counting *counting, const struct place *place, char *buffer, size_t size);

/* stat_soft.c */
/* The first event that --soft does not count; NULL: it counts all. */
const struct perfring_events_one *tool_stat_soft_unknown(const struct counting *counting);
/* The event's sum over all processes that were waited for.  Returns false for an event that the kernel does not account. */
bool tool_stat_soft_sum(const struct counting *counting, uint32_t event, struct perfring_count *sum);
/* Runs the command.  Returns 0 or -errno. */
int tool_stat_soft_start(struct counting *counting);
/* Waits for every process that has ended, the command too. */
void tool_stat_soft_reap(struct counting *counting);

/* stat_print.c */
/* The unit and scale of an event; for stat report those in the file, if it has them. */
const char *tool_stat_unit(const struct counting *counting, uint32_t event);
double tool_stat_scale(const struct counting *counting, uint32_t event);
/* Writes the printed text. */
void tool_stat_flush(struct counting *counting);

void tool_stat_print_head(struct counting *counting);
void tool_stat_print_title(const struct counting *counting);
/* at: ns since the start, of an interval. */
void tool_stat_print_rows(struct counting *counting, uint64_t at);
void tool_stat_print_times(struct counting *counting);
/* With --table, before the times. */
void tool_stat_print_table(const struct counting *counting);
void tool_stat_print_raw(const struct counting *counting);

#endif
