/* record_command.h - what the files of `perfring record` share: options, target, output.
 *
 * struct recording is the whole state of one run, on the stack of tool_record_run; functions are listed by the file that has
 * them.
 */
#ifndef PERFRING_TOOLS_RECORD_COMMAND_H
#define PERFRING_TOOLS_RECORD_COMMAND_H

#include <poll.h>
#include <time.h>
#include <perfring/command.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include "auxtrace.h"
#include "event_filter.h"
#include "outfile.h"
#include "soft_source.h"
#include "tools.h"

enum {
	MARK_MS = 100, /* how often what was written is settled in the file */
	TRIGGERS_MAX = 16,
};

/* Which state of the machine is written at the beginning of a file, beside the kernel's mappings. */
enum {
	SYNTHESIZE_TASKS = 1,
	SYNTHESIZE_MAPS = 2,
	SYNTHESIZE_CGROUPS = 4,
	SYNTHESIZE_ALL = 7,
};

/* Tasks and mappings, in memory: their state at some time, and the side records since. */
struct recorded_side {
	struct perfring_file_writer *writer;
	int file;
	uint64_t state;   /* offset in the file of the state's first record */
	uint64_t records; /* offset of the first side record after it */
};

struct recorded_pids {
	uint32_t *list;
	size_t count, capacity;
};

struct recorded_event {
	struct perf_event_attr attr;
	char name[256];
	uint32_t leader;                /* of its group; UINT32_MAX: in none */
	bool reads;                     /* its group is read by the leader's samples */
	uint32_t terms;                 /* PERFRING_TERM_ bits that its text has */
	char *cgroup;                   /* the cgroup whose members it observes; NULL: none */
	struct perfring_target *target; /* of that cgroup; NULL: the recording's */
	bool owns_target;
	bool is_side; /* it is for tasks and mappings alone */
	bool has_aux; /* its PMU has an AUX area */
	bool is_off;  /* -D, a range or --control has disabled it */
};

/* What a signal or a command of --control asks the recording to do. */
enum asked {
	GO_ON,
	SWITCH,
	END
};

/* A range of time in which events are enabled, in ms from the start. */
struct recorded_range {
	uint64_t from, to; /* UINT64_MAX: the end of the recording */
};

/* --control: the descriptors, and the beginning of a line whose end has not come yet. */
struct recorded_control {
	int fd, ack; /* -1: none */
	char line[256];
	size_t length; /* also of what did not fit */
	uint32_t unanswered;
};

struct recorded_trigger; /* record_trigger.c */

struct recording {
	/* as asked for */
	const char *output;
	uint64_t frequency;    /* 0: not asked for */
	uint64_t period;       /* 0: not asked for */
	const char *callchain; /* how: fp, dwarf or lbr; NULL: no call chains */
	uint32_t stack;        /* bytes of the user's stack in each sample of dwarf; 0: as many as by default */
	bool defers;           /* of fp: the user's part comes in records of its own */
	uint16_t max_stack;    /* frames of each call chain that the kernel writes; 0: as many as the kernel allows */
	bool all;
	bool inherit;
	bool soft; /* the command's processes raise the events themselves */
	bool strict;
	bool quiet;
	bool addresses;    /* -d */
	uint64_t extra;    /* more PERFRING_SAMPLE_ bits */
	uint64_t branches; /* -b, -j: branch_sample_type */
	bool raw;          /* -R */
	bool sample_cpu;
	uint64_t user_registers, interrupt_registers; /* which; 0: none */
	bool switches;
	bool off_cpu;
	bool wakers;
	bool has_switches_of_off_cpu; /* the last event was added by --off-cpu */
	bool is_waits_given;          /* --off-cpu=MS */
	uint32_t waits_ms;            /* of --soft: that a call waits at least */
	bool namespaces;
	bool cgroups;
	bool build_id_mmap;
	bool no_build_ids;
	bool all_build_ids; /* of objects that were not hit, too */
	bool verbose;
	bool no_samples;
	bool periods;      /* -P */
	bool thread_stats; /* -s */
	bool unwinds;      /* --unwind */
	bool running_times;
	bool grouped;
	bool kernel_chains, user_chains; /* of call chains only this part */
	bool no_bpf;
	uint32_t synthesis;    /* SYNTHESIZE_ bits */
	bool tail;             /* or at the end */
	uint32_t maps_ms;      /* for the mappings of one process; 0: no limit */
	uint32_t maps_cut;     /* how many had more */
	int real_time;         /* priority; 0: not */
	bool stamped;          /* the output's name has a time */
	uint32_t most_files;   /* of --switch-output; 0: all */
	char **switched_paths; /* those that are done and kept, the oldest first */
	uint32_t switched_count;
	bool dry;
	bool strict_rate;
	bool user_only, kernel_only;
	bool per_thread;
	bool snapshots;             /* rings overwrite; SIGUSR2 and the end write what is in them */
	bool any_snapshots;         /* --snapshot: of AUX areas, or, without one, that */
	bool aux_snapshots;         /* AUX areas overwrite; SIGUSR2 writes them into the file */
	bool aux_at_end;            /* and so does the end */
	uint64_t aux_snapshot_size; /* the newest bytes of each; 0: not asked for */
	uint32_t aux_pages;         /* 0: not asked for */
	bool is_aux_rounded;        /* it is more than was asked for */
	bool switched;              /* --switch-output */
	bool directory;             /* with a file for each ring */
	uint64_t switch_bytes, switch_ms;
	uint64_t most_bytes;
	bool is_delayed;               /* -D: events are not enabled at the start */
	struct recorded_range *ranges; /* but then */
	uint32_t range_count;
	const char *control_text; /* --control; NULL: none */
	int level;                /* of zstd; 0: none */
	int32_t clockid;
	bool has_clockid;
	char *pids, *tids, *cpus;
	char *cgroup;     /* -G, all of them */
	const char *user; /* -u */
	char *user_pids;  /* its processes */
	uint32_t pages;
	const char *rounded; /* the size that `pages` is larger than; NULL: none */
	char **command;
	char **arguments; /* our own */

	/* what is observed; the last event may be for tasks and mappings only, and in a snapshot has the session `side` */
	struct perfring_events *names;
	struct recorded_event *events;
	uint32_t event_count;
	uint32_t last_list; /* the first event of the last -e */
	struct tool_filters filters;
	struct perfring_target *target;
	struct perfring_session *session;
	struct perfring_session *side; /* of a snapshot's last event */
	struct tool_peers *peers;      /* when soft */
	struct perfring_command child;
	bool child_ended;
	int child_status;
	int signals;
	int ended_by; /* the signal that ended the recording; 0: none did */
	bool is_enabled;
	uint32_t range; /* the one that is open, or comes next */
	bool is_in_range;
	uint64_t ranges_at; /* ns: the start that ranges are counted from */
	struct recorded_control control;
	struct recorded_trigger *triggers;
	struct perfring_soft_watch *watch; /* of spans; NULL: none is a trigger */
	uint32_t trigger_count;
	bool has_trigger_pause;
	uint64_t trigger_pause;   /* ns */
	uint64_t triggered;       /* ns: when one saved the last snapshot; 0: none did */
	uint64_t trigger_skipped; /* how often it was too soon */

	/* output */
	struct perfring_file_writer *writer;
	struct tool_outfile out;
	int file; /* out's, or, of a directory, its `data` */
	int *ring_files;
	uint32_t ring_count;          /* of them; 0: no directory */
	uint32_t ring;                /* whose records were written last */
	char path[4096];              /* of the file that is open */
	struct recorded_side kept[2]; /* a snapshot's, the older first */
	uint64_t *reported;           /* of each fd: samples lost, as the files so far say */
	uint32_t reported_count;
	uint64_t lost;         /* the sum of that */
	bool is_pressed;       /* the rings fill so fast that wakeups are not needed */
	bool is_broken;        /* a write failed, which was reported */
	bool is_unsettled;     /* records were written after the file's last round */
	uint64_t settled;      /* ns: when that was */
	uint64_t looked;       /* ns: before the rings were looked at last */
	uint64_t opened;       /* ns: when the file was */
	uint64_t kept_records; /* that are in the file */
	uint64_t kept_samples;
	uint64_t kept_bytes;           /* in files that are done */
	bool has_aux;                  /* an event */
	struct tool_auxtrace auxtrace; /* of the first that has one */
	uint64_t aux_bytes;            /* of AUX areas, in the files */
	uint32_t files;
	struct recorded_unwinding *unwinding; /* NULL: stack copies are written */
};

/* record_command.c */
int tool_record_run(int argc, char **argv);

/* record_options.c: returns -1 to go on, else the exit status. */
int tool_record_read_options(struct recording *recording, int argc, char **argv);

/* record_values.c: the values of options.  False: not one.  size: `without` is what a number without a unit counts. */
bool tool_record_read_size(const char *text, uint64_t without, uint64_t *bytes);
bool tool_record_read_pages(struct recording *recording, const char *text); /* -m PAGES[,AUX] */
bool tool_record_read_call_graph(struct recording *recording, const char *how);
/* A list of names, or NULL for all that every machine of this kind has; the register of one of these, 0: none.  can_sample: false
 * after a complaint about XMM registers. */
bool tool_record_read_registers(const char *list, uint64_t *registers);
uint64_t tool_record_register(const char *name, size_t length);
void tool_record_list_registers(bool at_interrupt);
bool tool_record_can_sample(uint64_t registers, bool at_interrupt);
bool tool_record_read_synthesis(const char *list, uint32_t *what);
bool tool_record_read_clock(struct recording *recording, const char *name);
bool tool_record_read_branches(struct recording *recording, const char *kinds);
bool tool_record_is_threads(const char *spec);
bool tool_record_read_switch(struct recording *recording, const char *when);

/* record_control.c */
bool tool_record_read_delay(struct recording *recording, const char *text);
bool tool_record_is_control(const char *text);
bool tool_record_open_control(struct recording *recording);
void tool_record_close_control(struct recording *recording);
void tool_record_start_ranges(struct recording *recording);
/* Time until the next range begins or ends; UINT64_MAX: none will. */
uint64_t tool_record_next_edge_ms(const struct recording *recording);
/* Enables and disables events when it is time. */
bool tool_record_keep_ranges(struct recording *recording);
/* Reads and executes the commands that wait, up to one that the caller has to act on, which it returns. */
enum asked tool_record_take_commands(struct recording *recording);
/* Writes the answers, after the caller has done what the commands asked for. */
void tool_record_answer(struct recording *recording);

/* record_trigger.c: --trigger.  add, read_pause: whether the text is one.  open: of the target that was chosen; false after a
 * complaint. */
bool tool_record_add_trigger(struct recording *recording, const char *text);
bool tool_record_read_pause(struct recording *recording, const char *text);
bool tool_record_open_triggers(struct recording *recording);
/* Whether a trigger is a span; watch_spans: sets the environment for them, before the command is started. */
bool tool_record_has_span_trigger(const struct recording *recording);
bool tool_record_watch_spans(struct recording *recording);
void tool_record_close_triggers(struct recording *recording);
/* ready: TRIGGERS_MAX.  Returns how many are set. */
uint32_t tool_record_poll_triggers(const struct recording *recording, struct pollfd *ready);
/* Time until a count is to be read; UINT64_MAX: none will. */
uint64_t tool_record_next_reading_ms(const struct recording *recording);
/* Whether a snapshot is to be saved now.  ready: as the last poll left it. */
bool tool_record_is_triggered(struct recording *recording, struct pollfd *ready);
void tool_record_tell_triggers(const struct recording *recording);

/* record_target.c: false after a complaint. */
bool tool_record_observes_command(const struct recording *recording);
bool tool_record_choose_target(struct recording *recording);
const struct perfring_target *tool_record_target_of(const struct recording *recording,
						    const struct recorded_event *event);
void tool_record_close_target(struct recording *recording);

/* record_events.c: text to events, attrs, fds.  False after a complaint. */
bool tool_record_add_events(struct recording *recording, const char *list);
/* The terms overwrite and no-overwrite: all rings of a recording are of one kind. */
bool tool_record_take_overwrite(struct recording *recording);
/* The events of --off-cpu and --wakers, if they are not there. */
bool tool_record_add_off_cpu(struct recording *recording);
bool tool_record_add_filter(struct recording *recording, const char *filter);
/* --exclude-perf: of the tracepoints of the last -e what this process does is left out. */
bool tool_record_exclude_own(struct recording *recording);
/* --group */
void tool_record_group(struct recording *recording);
bool tool_record_is_soft(const struct recording *recording);
/* The reason why the options need the kernel, a sentence that names one of them; NULL: --soft can do what they ask for. */
const char *tool_record_not_soft(const struct recording *recording);
bool tool_record_open_events(struct recording *recording);
void tool_record_choose_soft(struct recording *recording);
bool tool_record_open_soft(struct recording *recording);
uint64_t tool_record_max_rate(void);
bool tool_record_can_unwind(void);
/* Whether samples of any event have call chains: by -g, --call-graph, --off-cpu, or by a term. */
bool tool_record_has_chains(const struct recording *recording);
/* Whether samples have copies of stacks: by --call-graph, or by a term. */
bool tool_record_copies_stacks(const struct recording *recording);

/* record_aux.c: AUX areas.  read_aux_snapshot: the value of -S, or NULL.  find_aux: the events whose PMU has one, before they are
 * opened.  map_aux: after that.  False after a complaint.  write_aux: what is unread, but in snapshots; *any becomes true if it was
 * anything.  put_aux_info: at the beginning of a file.  They return 0 or -errno. */
bool tool_record_read_aux_snapshot(struct recording *recording, const char *text);
bool tool_record_find_aux(struct recording *recording);
bool tool_record_map_aux(struct recording *recording);
int tool_record_write_aux(struct recording *recording, bool *any);
int tool_record_put_aux_info(struct recording *recording);
bool tool_record_aux_snapshot(struct recording *recording, bool is_last);

/* record_file.c: writes the sessions' spans into files.  Returns false after a complaint.  The file takes its name when the
 * recording begins; an existing file stays until then. */
bool tool_record_open_file(struct recording *recording);
bool tool_record_settle_file(struct recording *recording);
bool tool_record_write_round(struct recording *recording);
bool tool_record_switch_file(struct recording *recording);
bool tool_record_snapshot(struct recording *recording, bool is_last);
bool tool_record_finish_file(struct recording *recording);
void tool_record_close_file(struct recording *recording);

/* record_file.c, for record_side.c.  describe: the events with their ids.  put_state: tasks and mappings of the whole system,
 * or of the processes that were asked for and of `pids`, which then has all of them, sorted.  Return 0 or -errno. */
int tool_record_describe(const struct recording *recording, struct perfring_file_writer *writer);
int tool_record_put_state(const struct recording *recording, struct perfring_file_writer *writer,
			  struct recorded_pids *pids);
void tool_record_add_pid(struct recorded_pids *pids, uint32_t pid);

/* record_file.c, for record_unwind.c: whole records into a file, counted as kept.  Returns 0 or -errno. */
int tool_record_write_pieces(struct recording *recording, struct perfring_file_writer *writer, uint32_t into,
			     const struct iovec *pieces, int count, uint64_t records, uint64_t samples);

/* record_unwind.c: --unwind.  A round takes the spans of one look, then of a second one, and writes; is_last: all of them, of
 * which the others leave what came between the looks.  put_state: what runs already, into the file and for stacks.  write,
 * put_state: return 0 or -errno.  Spans are valid until write. */
bool tool_unwinding_open(struct recording *recording);
void tool_unwinding_close(struct recording *recording);
int tool_unwinding_put_state(struct recording *recording, struct recorded_pids *pids);
void tool_unwinding_take(struct recording *recording, const struct perfring_span *span, uint32_t into);
void tool_unwinding_look_again(struct recording *recording);
int tool_unwinding_write(struct recording *recording, bool is_last);
void tool_unwinding_tell(const struct recording *recording);

/* record_side.c: a writer of a file in memory, which has begun.  Return 0 or -errno; close it in any case. */
int tool_record_open_memory(struct recording *recording, struct recorded_side *side);
void tool_record_close_memory(struct recorded_side *side);

/* record_side.c: the beginning of a snapshot's files, in bounded memory.  Return 0 or -errno. */
int tool_record_open_side(struct recording *recording);
void tool_record_close_side(struct recording *recording);
/* Where side records go. */
struct perfring_file_writer *tool_record_side(const struct recording *recording);
/* After each round: drops what is too old. */
int tool_record_bound_side(struct recording *recording);
/* Writes all of it into the open file. */
int tool_record_put_side(const struct recording *recording);

/* record_build_ids.c: reads the file back, in time order.  Writes the feature BUILD_ID unless it is not wanted, and adds the
 * processes that still run to `living` unless it is NULL.  SIGINT, SIGTERM or SIGHUP, which are blocked, end it.  Returns 0 or
 * -errno of the writer. */
int tool_record_read_back(const struct recording *recording, struct recorded_pids *living);

/* record_living.c: the threads that run, by FORK, COMM and EXIT records in time order.  *tree is NULL at first.  end: adds
 * their processes to `pids` and frees the tree. */
void tool_living_take(void **tree, const struct perfring_record *record);
void tool_living_end(void **tree, struct recorded_pids *pids);

#endif
