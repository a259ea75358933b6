/* report.h - what the files of `perfring report` share: its columns, its rows, and where samples go.
 *
 * struct tool_report is the state of one run.  A row is what samples of one key have in common; rows, names and trees live until
 * tool_report_end.  One thread.
 */
#ifndef PERFRING_TOOLS_REPORT_H
#define PERFRING_TOOLS_REPORT_H

#include <regex.h>
#include "call_tree.h"
#include "file_topology.h"
#include "filter_options.h"
#include "machine.h"
#include "symbol_names.h"
#include "terminal.h"
#include "tools.h"
#include "tracepoint_format.h"

/* The columns: NAME, perf's name, the title, the least width.  First sums, then (from PID on) the keys by which rows differ. */
#define TOOL_REPORT_COLUMNS(COLUMN) \
	COLUMN(CHILDREN, "overhead_children", "Children", 8) \
	COLUMN(OVERHEAD, "overhead", "Overhead", 8) \
	COLUMN(SYS, "overhead_sys", "sys", 8) \
	COLUMN(US, "overhead_us", "usr", 8) \
	COLUMN(GUEST_SYS, "overhead_guest_sys", "guest sys", 9) \
	COLUMN(GUEST_US, "overhead_guest_us", "guest usr", 9) \
	COLUMN(SAMPLES, "sample", "Samples", 12) \
	COLUMN(PERIOD, "period", "Period", 12) \
	COLUMN(OLD, "old", "Old", 8) \
	COLUMN(CHANGE, "change", "Change", 8) \
	COLUMN(PID, "pid", "    Pid:Command", 15) \
	COLUMN(TID, "tid", "    Pid:Command", 15) \
	COLUMN(COMM, "comm", "Command", 7) \
	COLUMN(DSO, "dso", "Shared Object", 13) \
	COLUMN(SYM, "symbol", "Symbol", 6) \
	COLUMN(PARENT, "parent", "Parent symbol", 13) \
	COLUMN(CPU, "cpu", "CPU", 3) \
	COLUMN(TRANSACTION, "transaction", "Transaction                ", 27) \
	COLUMN(TRACE, "trace", "Trace output", 12) \
	COLUMN(SYMBOL_SIZE, "symbol_size", "Symbol size", 11) \
	COLUMN(DSO_SIZE, "dso_size", "DSO size", 8) \
	COLUMN(TIME, "time", "Time", 12) \
	COLUMN(ADDR, "addr", "Address", 18) \
	COLUMN(SOCKET, "socket", "Socket", 6) \
	COLUMN(LOCAL_WEIGHT, "local_weight", "Local Weight", 12) \
	COLUMN(WEIGHT, "weight", "Weight", 12) \
	COLUMN(CGROUP, "cgroup", "Cgroup", 6) \
	COLUMN(CGROUP_ID, "cgroup_id", "cgroup id (dev/inode)", 21) \
	COLUMN(CODE_PAGE_SIZE, "code_page_size", "Code Page Size", 14) \
	COLUMN(LOCAL_INS_LAT, "local_ins_lat", "Local INSTR Latency", 19) \
	COLUMN(INS_LAT, "ins_lat", "INSTR Latency", 13) \
	COLUMN(SRCLINE, "srcline", "Source:Line", 11) \
	COLUMN(SRCFILE, "srcfile", "Source File", 11)

enum tool_report_column {
#define COLUMN(NAME, name, title, width) TOOL_REPORT_##NAME,
	TOOL_REPORT_COLUMNS(COLUMN)
#undef COLUMN
	TOOL_REPORT_COLUMN_COUNT,
	TOOL_REPORT_FIRST_KEY = TOOL_REPORT_PID,
};

#define TOOL_REPORT_THRESHOLD 0.5 /* percent: branches of trees that have less are not drawn */
#define TOOL_REPORT_PARENTS "^sys_|^do_page_fault" /* the pattern of parents without -p, as perf's */

/* Whether two samples of one address in one thread may have different values of the column. */
static inline bool tool_report_is_single(enum tool_report_column column)
{
	return column >= TOOL_REPORT_PARENT && column != TOOL_REPORT_ADDR && column != TOOL_REPORT_CGROUP_ID &&
	       column != TOOL_REPORT_SYMBOL_SIZE && column != TOOL_REPORT_DSO_SIZE;
}

/* A list of columns, each at most once. */
struct tool_report_list {
	size_t nr;
	enum tool_report_column columns[TOOL_REPORT_COLUMN_COUNT];
};

/* Sums of one event of a row. */
struct tool_report_cell {
	uint64_t samples;
	uint64_t weight;
	uint64_t children; /* the weight of the samples that have the row's function in their stacks */
	uint64_t old;      /* the weight in the recording that this one is compared with */
	uint64_t mode[4];  /* parts of weight: in the kernel, in user space, in a guest's kernel, in its user space */
};

/* A cgroup namespace. */
struct tool_report_place {
	uint64_t dev, ino;
};

/* A row of one event, or of a group of events that is shown as one table.  Members that no column shows are NULL or 0 in every row. */
struct tool_report_row {
	uint32_t event; /* the first of its group */
	uint32_t tid;
	uint32_t cpu;
	char mark;
	bool has_no_symbol; /* of its first sample */
	const char *comm;
	const char *last_comm; /* of its thread, at the last sample; NULL: no sample has a thread */
	const char *object;    /* short; NULL: unknown */
	const char *symbol;
	const char *trace;
	const char *line; /* of the source, or its file */
	const char *source;
	uint64_t address; /* of the symbol, or of the sample if it has no symbol */
	uint64_t time;
	uint64_t ip;
	int32_t socket;
	uint64_t weight, latency; /* of each of its samples */
	uint64_t cgroup;
	uint64_t page_size;
	uint64_t transaction;
	int64_t symbol_size, object_size; /* -1: unknown */
	const char *parent;               /* NULL: no name in the callchain matches */
	struct tool_report_place place;
	/* of report_callers.c */
	struct tool_report_row *context; /* the row with its keys but no place, for all rows that differ only in it; NULL: not yet */
	uint32_t paths;                  /* 1 + the last of its own paths, of a context that of all; 0: none */
	uint32_t parts;                  /* of the stacks of others' paths that its tree has, the first; 0: none */
	uint32_t open;                   /* the part at which the walk through all parts is, if it is the row's; 0: none */
	uint32_t first_path;             /* 1 + the oldest path that it is in; 0: none */
	uint32_t depth;                  /* the most frames from it to the innermost one of a stack */
	struct tool_report_cell cells[];       /* one for each event of the group */
};

enum tool_report_known {
	TOOL_REPORT_UNKNOWN,
	TOOL_REPORT_NO,
	TOOL_REPORT_YES,
};

enum {
	TOOL_REPORT_WAITS = 2, /* events of time off the CPU: of threads that wait, and that are ready */
};

struct tool_report_event {
	uint32_t leader, members; /* of its group; members: 1 of those that follow the leader */
	bool leads_group;         /* in the file: perf speaks of its "events" though it is shown alone */
	const char *group_name;   /* of a leader: NULL where the file has no group, "" without a name */
	uint64_t seen;            /* samples, whether they are shown or not */
	uint64_t samples;         /* those that are 100 % */
	uint64_t weight;
	uint64_t lost;
	uint64_t old_weight; /* of the recording that this one is compared with */
	const char *name;    /* of time off the CPU; NULL: an event of the file, which has its name */
	enum tool_report_known is_switch; /* each sample: a thread leaves its CPU */
};

static inline double tool_report_percent(const struct tool_report_event *event, uint64_t weight)
{
	return event->weight ? 100.0 * (double)weight / (double)event->weight : 0.0;
}

enum {
	TOOL_REPORT_RECENT_BITS = 12,
	TOOL_REPORT_TREE_BITS = 12,
	TOOL_REPORT_PAYLOAD_BITS = 10,
	TOOL_REPORT_MATCH_BITS = 10,
	TOOL_REPORT_PAYLOAD = 128, /* bytes; longer ones seldom come again */
	TOOL_REPORT_PATHS_MAX =
		1 << 22, /* stacks of rows; those beyond are in no tree, and in their callers' sums neither */
	TOOL_REPORT_CALLERS_MAX = 1 << 20, /* rows of functions that have no samples themselves */
	TOOL_REPORT_PARTS_MAX = 5 << 20,   /* different stacks, callers too, that trees are made of; those beyond are in the sums alone */
	TOOL_REPORT_BATCH_MAX = 4 << 20,   /* of paths that are summed up together, or are a row's own */
	TOOL_REPORT_WORK_MAX = 1 << 28,    /* frames that are walked for all trees of a report, and paths */
	TOOL_REPORT_LINES_MAX = 10000,     /* of one tree */
	TOOL_REPORT_MEMBERS = 64,          /* events of a group that is shown as one: each row has a cell for each */
};

/* Samples of one address in one thread go into one row, until a record changes tasks or mappings. */
struct tool_report_recent {
	bool is_known;
	struct tool_report_row *row; /* NULL: not shown */
	uint64_t change;
	uint64_t ip;
	uint64_t present;
	uint32_t pid, tid;
	uint32_t event;
	unsigned cpumode;
	unsigned nameless;
};

/* Payloads of the same bytes have one text, which is printed once as long as they come again soon. */
struct tool_report_payload {
	const char *text; /* NULL: the place is free */
	uint64_t change;
	uint32_t event;
	uint32_t size;
	unsigned char bytes[TOOL_REPORT_PAYLOAD];
};

/* Whether a name matches the pattern of parents. */
struct tool_report_match {
	const char *name; /* NULL: the place is free */
	bool matches;
};

enum tool_report_groups {
	TOOL_REPORT_GROUPS,    /* as the file has them */
	TOOL_REPORT_NO_GROUPS, /* each event for itself */
	TOOL_REPORT_ONE_GROUP, /* all events in one */
};

enum tool_report_print {
	TOOL_REPORT_GRAPH,   /* shares are of all samples */
	TOOL_REPORT_FRACTAL, /* of the caller's, or callee's */
	TOOL_REPORT_FOLDED,  /* each path on one line */
	TOOL_REPORT_NO_TREES,
};

enum tool_report_order {
	TOOL_REPORT_DEFAULT_ORDER, /* caller with --children, else callee: as perf */
	TOOL_REPORT_CALLER,
	TOOL_REPORT_CALLEE,
};

enum tool_report_value {
	TOOL_REPORT_PERCENT,
	TOOL_REPORT_PERIODS,
	TOOL_REPORT_COUNTS,
};

/* The call trees, of -g. */
struct tool_report_graph {
	bool is_asked; /* -g: without callchains that is an error */
	enum tool_report_print print;
	enum tool_report_order order;
	enum tool_report_value value;
	double threshold; /* percent */
	uint64_t limit;   /* of branches at each place; 0: all */
};

struct tool_report_callers;
struct perfring_waits;

struct tool_report {
	struct tool_input input;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct tool_symbols_options symbols_options;
	struct tool_tracepoints *tracepoints;
	struct perfring_filter filter;
	const char *symbol_part; /* of --symbol-filter */
	bool hides_unresolved;
	const char *parent_pattern; /* -p; NULL: perf's default */
	regex_t parents;
	bool hides_parentless; /* -x */
	uint64_t max_stack;    /* frames of a callchain that are looked at */
	bool whole_paths;      /* of sources */
	bool is_relative;      /* percentages are of what is shown */
	enum tool_report_groups groups;
	uint32_t group_index; /* of the event that a group is sorted by */
	bool has_long_group;  /* which was reported */
	uint64_t quantum;     /* ns of the time column */

	/* columns */
	const char *sort_words, *field_words; /* of the command line */
	bool shows_samples, shows_period, shows_modes;
	struct tool_report_list shown, sorted;
	bool has[TOOL_REPORT_COLUMN_COUNT]; /* whether it tells rows apart or is shown */
	bool has_singles;                   /* a column in which samples of one address in one thread may differ */

	/* looks */
	uint64_t limit;
	double percent_limit;
	const char *separator; /* NULL: columns of one width */
	uint32_t widths[TOOL_REPORT_COLUMN_COUNT];
	size_t width_count;
	bool nanoseconds;
	bool is_quiet;
	bool keeps_empty;
	bool has_header;
	bool is_json;
	bool has_colours;
	struct tool_pager pager;
	bool no_pager;
	uint64_t tables; /* written as JSON */

	/* callers */
	struct tool_report_graph graph;
	bool wants_children; /* not --no-children */
	bool cumulates;      /* a row's `children` includes its callees' samples */
	bool is_self;        /* the column overhead is called Self */
	bool no_inline;
	struct tool_report_callers *callers; /* NULL: no stacks are looked at */
	struct tool_report *old;             /* compared with; NULL: nothing */
	struct perfring_waits *waits;
	uint32_t waits_at;            /* the number of the first event of waits; 0: there are none */
	const struct perfring_sample *recorded; /* the sample, before it was moved to a frame that is kept */
	bool has_stack;                         /* of the sample */
	uint32_t stack;

	/* from other records than samples */
	struct tool_topology topology;
	void *cgroups; /* tsearch trees: names by id, */
	void *places;  /* namespaces by thread */

	/* rows */
	void *trees[1 << TOOL_REPORT_TREE_BITS]; /* of tsearch, each of some keys: so each is low */
	struct tool_report_row **rows;
	size_t nr;
	size_t capacity;
	struct tool_report_event *events;
	uint32_t event_count;
	uint64_t nameless[PERFRING_NAMELESS_COUNT];
	uint64_t lost_records;
	uint64_t throttles;
	uint64_t unread;
	uint64_t first, last;       /* ns: times of samples */
	uint64_t last_switch;       /* ns: time of the last record of a switch */
	uint64_t stacks, truncated; /* of samples; those that do not reach their thread's start */
	uint64_t change;            /* records of tasks or mappings */
	struct tool_report_recent recent[1 << TOOL_REPORT_RECENT_BITS];
	struct tool_report_payload payloads[1 << TOOL_REPORT_PAYLOAD_BITS];
	struct tool_report_match matches[1 << TOOL_REPORT_MATCH_BITS];
};

/* ---- report_waits.c ---- */

/* The name of an event of `events`, and whether --events has it. */
const char *tool_report_event_name(const struct tool_report *report, uint32_t number);
bool tool_report_wants(const struct tool_report *report, uint32_t number);

/* Whether an event of the file has a sample of each switch; whether one that is known by now reports returns: then waits end. */
enum tool_report_known tool_report_is_switch(const struct tool_report *report, const struct perfring_format *format);
bool tool_report_has_returns(const struct tool_report *report);

/* The thread of the sample waits from now on.  row: NULL: it is not shown.  With callers, the stack is report->stack. */
void tool_report_waits_begin(struct tool_report *report, const struct perfring_sample *sample,
			     const struct tool_report_row *row);

/* Takes the record of a switch or of a task. */
void tool_report_waits_take(struct tool_report *report, const struct perfring_item *item,
			    const struct perfring_record *record);

/* After the last item: those that still wait do until the last sample or switch. */
void tool_report_waits_end(struct tool_report *report);

/* ---- report_columns.c ---- */

const char *tool_report_column_name(enum tool_report_column column);
const char *tool_report_column_title(const struct tool_report *report, enum tool_report_column column);
int tool_report_column_width(enum tool_report_column column);

/* Chooses the columns of --sort and --fields and of the options that add one.  Returns false after a complaint. */
bool tool_report_choose(struct tool_report *report);

/* Takes what -g is followed by: "graph,0.5,caller".  Returns false if it is nothing of this. */
bool tool_report_take_graph(struct tool_report_graph *graph, const char *text);

/* Whether --sort's or --fields' value is one, before the file is open: complains if it is not. */
bool tool_report_is_list(const char *option, const char *words);

/* ---- report_rows.c ---- */

/* Reads the groups of the file. */
void tool_report_begin(struct tool_report *report);
void tool_report_take(struct tool_report *report, const struct perfring_item *item);

/* The number of an event of the file in `events`. */
static inline uint32_t tool_report_number(const struct tool_report *report, const struct perfring_format *format)
{
	return !report->waits_at || format->index < report->waits_at ? format->index : format->index + TOOL_REPORT_WAITS;
}

/* The number in the file of an event of `events`, which is none of waits. */
static inline uint32_t tool_report_index(const struct tool_report *report, uint32_t number)
{
	return !report->waits_at || number < report->waits_at ? number : number - TOOL_REPORT_WAITS;
}

/* Counts a sample of this weight: of an event, and of a cell of a row. */
void tool_report_count_event(struct tool_report_event *event, uint64_t weight);
void tool_report_count(struct tool_report_cell *cell, unsigned cpumode, uint64_t weight);

/* The event of this number; a stream may announce more at any time.  Valid until the next call. */
struct tool_report_event *tool_report_event_of(struct tool_report *report, uint32_t index);

/* The row of a key, which is added if there is none. */
struct tool_report_row *tool_report_row_of(struct tool_report *report, const struct tool_report_row *key);

/* The row of a key; NULL: there is none. */
struct tool_report_row *tool_report_find_row(const struct tool_report *report, const struct tool_report_row *key);

/* Compares the keys of two rows (pointers to struct tool_report_row), for qsort and tsearch. */
int tool_report_compare_keys(const void *a, const void *b);

/* An object's name as rows have it. */
const char *tool_report_short_name(struct tool_report *report, const char *object);

/* Sorts the rows as they are shown. */
void tool_report_sort(struct tool_report *report);
void tool_report_end(struct tool_report *report);

/* ---- report_places.c ---- */

/* Keeps what CGROUP and NAMESPACES records say. */
void tool_report_take_place(struct tool_report *report, const struct perfring_record *record);

/* A cgroup's name; as perf: N/A for none, unknown for one that no record names. */
const char *tool_report_cgroup(const struct tool_report *report, uint64_t id);

/* The cgroup namespace of a thread; 0, 0: not known. */
struct tool_report_place tool_report_place(const struct tool_report *report, uint32_t tid);
void tool_report_forget_places(struct tool_report *report);

/* ---- report_callers.c ---- */

void tool_report_callers_open(struct tool_report *report);
void tool_report_callers_close(struct tool_report *report);

/* stack: the sample's stack, an index of the callers' profile.  add: counts it for a cell of a row. */
uint32_t tool_report_callers_stack(struct tool_report *report, const struct perfring_sample *sample);
void tool_report_callers_add(struct tool_report *report, struct tool_report_row *row, uint32_t cell, uint32_t stack,
			     uint64_t weight);

/* After the last sample: sums up `children`, and makes the rows of callers. */
void tool_report_callers_sum(struct tool_report *report);

/* Makes the tree of a row, of the samples of its first cell; least: as tool_tree_sort.  Returns NULL beyond TOOL_REPORT_WORK_MAX: there
 * is no tree.  Valid until the next call. */
const struct tool_tree *tool_report_callers_tree(struct tool_report *report, const struct tool_report_row *row,
						 uint64_t least);

struct tool_report_frame {
	const char *name;   /* NULL: unknown */
	const char *object; /* likewise */
	uint64_t address;   /* of the function, or without a name its own */
	bool is_inlined;
};

/* The frame of a number in a tree. */
void tool_report_callers_frame(const struct tool_report *report, uint32_t index, struct tool_report_frame *frame);

/* What exceeded a bound. */
struct tool_report_missing {
	uint64_t pathless; /* samples of which callers are not known */
	uint64_t treeless; /* samples that the trees of their callers do not have */
	uint64_t rowless;  /* frames of stacks that have no row */
	bool is_too_much;  /* some trees were not made */
};

void tool_report_callers_missing(const struct tool_report *report, struct tool_report_missing *missing);

/* ---- report_tree.c ---- */

/* Prints the tree of a row; as objects of JSON, one for each branch, callers before what they call. */
void tool_report_tree_json(struct tool_report *report, const struct tool_report_row *row);
void tool_report_tree_print(struct tool_report *report, const struct tool_report_row *row);

/* ---- report_diff.c ---- */

static inline double tool_report_old_percent(const struct tool_report_event *event, const struct tool_report_cell *cell)
{
	return event->old_weight ? 100.0 * (double)cell->old / (double)event->old_weight : 0.0;
}

/* Puts the old report's weights into the rows, and adds rows for functions that only the old one has. */
void tool_report_diff(struct tool_report *report);

/* The change of a share since the old report, in percentage points. */
double tool_report_change(const struct tool_report_event *event, const struct tool_report_cell *cell);

enum tool_report_state {
	TOOL_REPORT_BOTH,
	TOOL_REPORT_NEW,
	TOOL_REPORT_VANISHED,
};

enum tool_report_state tool_report_state(const struct tool_report_cell *cell);

/* ---- report_facts.c ---- */

enum {
	TOOL_REPORT_COMMAND = 512, /* bytes of a command line, and its end */
};

/* What is known of the recording as a whole. */
struct tool_report_facts {
	char command[TOOL_REPORT_COMMAND]; /* "" if it is not known */
	const char *host;                  /* NULL likewise */
	double seconds;                    /* from the first sample to the last */
	uint64_t samples, lost;
	uint64_t named, nameless; /* samples whose address was looked up; those without a name */
	uint32_t events;          /* that have samples */
};

void tool_report_facts_read(const struct tool_report *report, struct tool_report_facts *facts);

/* Prints them as three lines. */
void tool_report_facts_print(const struct tool_report *report);

/* ---- report_json.c ---- */

/* Writes the object: its beginning, each table, its end. */
void tool_report_json_begin(const struct tool_report *report);
void tool_report_json_table(struct tool_report *report, uint32_t leader, struct tool_report_row *const *rows,
			    size_t nr);
void tool_report_json_end(const struct tool_report *report);

/* ---- report_print.c ---- */

/* The escape sequence for a share, if there are colours: one for 5 % and more, as perf, one for 0.5 % and more, "" for less; and
 * the one to print after it, PLAIN or "". */
const char *tool_report_colour(const struct tool_report *report, double percent);
const char *tool_report_no_colour(const struct tool_report *report, double percent);

/* Whether a row is not below --percent-limit. */
bool tool_report_is_above(const struct tool_report *report, const struct tool_report_row *row);

void tool_report_print(struct tool_report *report);

#endif
