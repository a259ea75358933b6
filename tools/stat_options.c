/* stat_options.c - the command line of `perfring stat`.
 *
 * The rows of stat, stat record and stat report, their checks, and `struct tool_command` of stat.
 */
#include <stdlib.h>
#include "observed.h"
#include "options.h"
#include "stat.h"

enum {
	INTERVAL_COUNT = TOOL_OPTION_LONG, /* options without a letter */
	PER_THREAD,
	PER_CORE,
	PER_DIE,
	PER_SOCKET,
	PER_NODE,
	APPEND,
	TIMEOUT,
	PRE,
	POST,
	LOG_FD,
	ALL_USER,
	ALL_KERNEL,
	FILTER,
	TABLE,
	QUIET,
	SUMMARY,
	INTERVAL_CLEAR,
	METRIC_ONLY,
	SCALE,
	NO_SCALE,
	NO_BIG_NUM,
	NO_MERGE,
	NO_CSV_SUMMARY,
	SOFT,
	FOR_EACH_CGROUP,
	JSON_OUTPUT,
	PERF_ONLY, /* rows that are refused */
};

#define DEFAULT_EVENTS \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

#define SOFT_EVENTS "task-clock,context-switches,page-faults"

/* What each -d adds. */
static const char *const DETAILS[] = {
	"L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
	"L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
	"L1-dcache-prefetches,L1-dcache-prefetch-misses",
};

static bool add_events(struct counting *counting, const char *text)
{
	/* As perf: without guests, unless modifiers say otherwise. */
	static const struct perf_event_attr BASE = {.size = sizeof(BASE), .exclude_guest = 1};
	struct perfring_fault fault = {0, "unknown event"};
	int ret = perfring_events_add(counting->events, text, &BASE, &fault);

	if (ret) {
		tool_options_refuse_event("stat", text, ret, &fault);
		return false;
	}
	counting->texts = tool_allocate(counting->texts, counting->text_count + (size_t)1, sizeof(*counting->texts));
	counting->texts[counting->text_count++] = text;
	return true;
}

static bool misused(const char *what)
{
	tool_complain("stat: %s (perfring stat --help)", what);
	return true;
}

/* Options that exclude one another. */
static bool is_misused(const struct counting *counting)
{
	bool tasks = counting->pids || counting->tids || counting->user;

	if (counting->all && tasks)
		return misused("-a and -p, -t or -u exclude one another");
	if (counting->repeat != 1 && !counting->command)
		return misused("-r repeats a COMMAND");
	if (counting->repeat != 1 && counting->interval)
		return misused("-I and -r exclude one another");
	if (counting->data && (counting->repeat != 1 || counting->null || counting->append))
		return misused("stat record does not go with -r, -n or --append");
	if (counting->timeout && counting->interval)
		return misused("-I and --timeout exclude one another");
	if (counting->interval_count && !counting->interval)
		return misused("--interval-count counts the intervals of -I");
	if (counting->summary && !counting->interval)
		return misused("--summary goes with -I");
	if (counting->table && counting->repeat < 2)
		return misused("--table goes with -r");
	if (counting->separator && counting->json)
		return misused("-x and --json exclude one another");
	if (counting->apart == APART_CPU && !counting->all && !counting->cpus)
		return misused("--no-aggr goes with -a or -C");
	if (tool_stat_is_of_sets(counting) && !counting->all && !counting->cpus)
		return misused("--per-core, --per-die, --per-socket and --per-node go with -a or -C");
	if (counting->apart == APART_THREAD && ((!counting->all && !tasks) || counting->cpus))
		return misused("--per-thread goes with -p, -t, -u or -a");
	if (counting->append && !counting->output)
		return misused("--append goes with -o");
	if (counting->log_fd >= 0 && counting->output)
		return misused("-o and --log-fd exclude one another");
	if (counting->cgroup && counting->each)
		return misused("-G and --for-each-cgroup exclude one another");
	if ((counting->cgroup || counting->each) && (!counting->all || counting->apart == APART_THREAD))
		return misused("-G and --for-each-cgroup go with -a or -C, and not with --per-thread");
	if ((counting->cgroup || counting->each) && (counting->null || counting->grouped))
		return misused("-G and --for-each-cgroup do not go with -n or -g");
	if (counting->user_part && counting->kernel_part)
		return misused("--all-user and --all-kernel exclude one another");
	return false;
}

/* What an account of the kernel does not have. */
static bool is_misused_soft(const struct counting *counting)
{
	const struct perfring_events_one *unknown;

	if (counting->pids || counting->tids || counting->user || counting->all)
		return misused("--soft counts a COMMAND that it starts: without perf_event_open nothing counts what runs already "
			       "(-p, -t, -u) or the system (-a, -C)");
	if (counting->interval || counting->delay)
		return misused("--soft counts COMMAND as a whole, when it has ended: not with -I or -D");
	if (!counting->inherit)
		return misused("--soft counts COMMAND and its children as one: not with -i");
	if (counting->user_part || counting->kernel_part)
		return misused("--soft counts the user's and the kernel's part as one: not with --all-user or --all-kernel");
	if (counting->data)
		return misused("stat record keeps the counts of perf_event_open: not with --soft");
	if (counting->details)
		return misused("-d adds the processor's events, which --soft does not have");
	unknown = tool_stat_soft_unknown(counting);
	if (unknown)
		tool_complain("stat: --soft does not count %s, only task-clock, cpu-clock, page-faults, minor-faults, "
			      "major-faults and context-switches, without modifiers (perfring stat --help)",
			      unknown->name);
	return unknown;
}

/* Returns -1 to go on, else the exit status. */
static int read_all(struct counting *counting, int argc, char **argv)
{
	struct tool_options options = {.command = &tool_stat};
	uint32_t from = 0; /* the events of the last -e */
	int found;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		char *value = options.value;
		bool good = true;

		switch (found) {
		case 'e':
			from = perfring_events_count(counting->events);
			if (!add_events(counting, value))
				return TOOL_MISUSED;
			break;
		case FILTER:
			if (!tool_filters_add("stat", &counting->filters, counting->events, from, value))
				return TOOL_MISUSED;
			break;
		case 'd':
			counting->details++;
			break;
		case 'n':
			counting->null = true;
			break;
		case 'g':
			counting->grouped = true;
			break;
		case ALL_USER:
			counting->user_part = true;
			break;
		case ALL_KERNEL:
			counting->kernel_part = true;
			break;
		case 'a':
			counting->all = true;
			break;
		case 'C':
			counting->cpus = value;
			good = tool_options_cpus(value);
			break;
		case 'p':
			counting->pids = value;
			good = tool_options_ids(value);
			break;
		case 't':
			counting->tids = value;
			good = tool_options_ids(value);
			break;
		case 'G':
			counting->cgroup = tool_target_cgroups_join(counting->cgroup, value);
			break;
		case FOR_EACH_CGROUP:
			counting->each = value;
			break;
		case 'u':
			counting->user = value;
			break;
		case 'i':
			counting->inherit = false;
			break;
		case 'D':
			counting->delay = options.number;
			break;
		case 'r':
			counting->repeat = options.number;
			break;
		case 'I':
			counting->interval = options.number;
			break;
		case INTERVAL_COUNT:
			counting->interval_count = options.number;
			break;
		case SUMMARY:
			counting->summary = true;
			break;
		case TIMEOUT:
			counting->timeout = options.number;
			break;
		case PRE:
			counting->before = value;
			break;
		case POST:
			counting->after = value;
			break;
		case 'S':
			counting->sync = true;
			break;
		case 'A':
			counting->apart = APART_CPU;
			break;
		case PER_THREAD:
			counting->apart = APART_THREAD;
			break;
		case PER_CORE:
			counting->apart = APART_CORE;
			break;
		case PER_DIE:
			counting->apart = APART_DIE;
			break;
		case PER_SOCKET:
			counting->apart = APART_SOCKET;
			break;
		case PER_NODE:
			counting->apart = APART_NODE;
			break;
		case 'x':
			counting->separator = strcmp(value, "\\t") ? value : "\t";
			break;
		case 'j':
		case JSON_OUTPUT:
			counting->json = true;
			break;
		case 'o':
			counting->output = value;
			break;
		case APPEND:
			counting->append = true;
			break;
		case LOG_FD:
			counting->log_fd = (int)options.number;
			break;
		case TABLE:
			counting->table = true;
			break;
		case METRIC_ONLY:
			counting->metric_only = true;
			break;
		case INTERVAL_CLEAR:
			counting->clear = true;
			break;
		case NO_SCALE:
		case SCALE:
			counting->unscaled = found == NO_SCALE;
			break;
		case 'B':
		case NO_BIG_NUM:
			counting->small_numbers = found == NO_BIG_NUM;
			break;
		case QUIET:
			counting->quiet = true;
			break;
		case NO_CSV_SUMMARY:
			counting->no_summary_mark = true;
			break;
		case NO_MERGE: /* events of one name are never merged */
			break;
		case SOFT:
			counting->soft = true;
			break;
		case 'v':
			counting->verbose = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
		if (!good)
			return tool_options_refuse(&options, found, value);
	}
	return found ? -1 : options.status;
}

int tool_stat_read_options(struct counting *counting, int argc, char **argv)
{
	int status;

	counting->inherit = true;
	counting->repeat = 1;
	counting->log_fd = -1;
	counting->arguments = argv;
	/* `stat record`: its options are those of stat, but for -o */
	if (argc > 1 && !strcmp(argv[1], "record")) {
		counting->data = "perf.data";
		argv++;
		argc--;
	}
	status = read_all(counting, argc, argv);
	if (status >= 0)
		return status;
	if (optind < argc)
		counting->command = argv + optind;
	if (counting->data && counting->output) {
		counting->data = counting->output;
		counting->output = NULL;
	}
	/* As perf: without a target the whole system. */
	if (!counting->pids && !counting->tids && !counting->user && (counting->cpus || !counting->command))
		counting->all = true;
	if (is_misused(counting) || (counting->soft && is_misused_soft(counting)))
		return TOOL_MISUSED;
	if (counting->null)
		return -1;
	if (!perfring_events_count(counting->events) &&
	    !add_events(counting, counting->soft ? SOFT_EVENTS : DEFAULT_EVENTS))
		return TOOL_FAILED;
	for (unsigned i = 0; i < counting->details && i < sizeof(DETAILS) / sizeof(DETAILS[0]); i++)
		if (!add_events(counting, DETAILS[i]))
			return TOOL_FAILED;
	return tool_stat_name_cgroups(counting, add_events) ? -1 : TOOL_MISUSED;
}

static const struct tool_option ROWS[] = {
	{.heading = "events"},
	{'e', "event", .value = "EVENT[,EVENT]", .takes = "events, as perfring list shows them",
	 .help = "what to count, as for perfring record; {EVENT,EVENT} is a group, counted together or not at all "
		 "(default: clock, switches, faults, and the processor's cycles, instructions and branches)"},
	{'d', "detailed",
	 .help = "also the caches' events; twice, more of them and of the TLBs; three times, prefetches"},
	{'n', "null", .help = "no events: only the time"},
	{'g', "group", .help = "all events in one group"},
	{FILTER, "filter", .value = "FILTER", .takes = "a comparison of fields of a tracepoint, such as count > 1",
	 .help = "count what the FILTER lets pass, of the tracepoints of the -e before it"},
	{ALL_USER, "all-user", .help = "of every event what happens in user space"},
	{ALL_KERNEL, "all-kernel", .help = "of every event what happens in the kernel"},
	{NO_SCALE, "no-scale", .help = "counts as they are, where events shared counters"},
	{SCALE, "scale", .help = "counts scaled to the whole time (default)"},
	{.heading = "target"},
	{'a', "all-cpus", .help = "the whole system, until COMMAND ends or ^C (default without a target)"},
	{'C', "cpu", .value = "LIST", .takes = "a list of CPUs, such as 0-3,6",
	 .help = "only on these CPUs, as in 0-3,6"},
	{'p', "pid", .value = "PID[,PID]", .takes = "ids of processes, such as 12,345",
	 .help = "these processes with all their threads"},
	{'t', "tid", .value = "TID[,TID]", .takes = "ids of threads, such as 12,345", .help = "these threads"},
	{'u', "uid", .value = "USER", .takes = "a user's name or number",
	 .help = "the processes that USER runs when counting begins"},
	{'G', "cgroup", .value = "NAME[,NAME]", .takes = "names of cgroups",
	 .help = "members of this cgroup, named from its mount on (/ is all), with -a; of several names one for each "
		 "event, nothing between commas for the whole system"},
	{FOR_EACH_CGROUP, "for-each-cgroup", .value = "NAME[,NAME]", .takes = "names of cgroups",
	 .help = "all events for each of these cgroups, with -a"},
	{'i', "no-inherit", .help = "not the children"},
	{SOFT, "soft",
	 .help = "COMMAND's clock, page faults and context switches without perf_event_open, from the accounts of processes "
		 "that the kernel keeps for wait4; not of what still runs when COMMAND has ended, nor of children of "
		 "processes that ignore SIGCHLD"},
	{.heading = "time"},
	{TIMEOUT, "timeout", .value = "MS", .takes = "a number of ms", .min = 10, .max = UINT32_MAX,
	 .help = "end after MS milliseconds (at least 10); COMMAND gets SIGTERM"},
	{'D', "delay", .value = "MS", .takes = "a number of ms", .max = UINT32_MAX,
	 .help = "begin to count MS milliseconds after the start"},
	{'r', "repeat", .value = "N", .takes = "a number of runs", .max = UINT32_MAX,
	 .help = "run COMMAND N times: means and their standard errors; 0: until ^C, each run for itself"},
	{PRE, "pre", .value = "LINE", .takes = "a line for the shell", .help = "run LINE by the shell before each run"},
	{POST, "post", .value = "LINE", .takes = "a line for the shell",
	 .help = "run LINE by the shell after each run"},
	{'S', "sync", .help = "call sync(2) before each run"},
	{'I', "interval-print", .value = "MS", .takes = "a number of ms", .min = 1, .max = UINT32_MAX,
	 .help = "the counts of every MS milliseconds (at least 1)"},
	{INTERVAL_COUNT, "interval-count", .value = "N", .takes = "a number of intervals", .min = 1, .max = UINT32_MAX,
	 .help = "end after N intervals"},
	{SUMMARY, "summary", .help = "after the intervals, the counts of the whole time"},
	{INTERVAL_CLEAR, "interval-clear", .help = "clear the terminal before each interval"},
	{.heading = "output"},
	{'A', "no-aggr", .help = "each CPU separately (with -a or -C)"},
	{PER_THREAD, "per-thread", .help = "each thread separately (with -p, -t or -a)"},
	{PER_CORE, "per-core", .help = "each core separately (with -a or -C)"},
	{PER_DIE, "per-die", .help = "each die separately"},
	{PER_SOCKET, "per-socket", .help = "each socket separately"},
	{PER_NODE, "per-node", .help = "each NUMA node separately"},
	{METRIC_ONLY, "metric-only", .help = "only what follows from the counts, such as instructions per cycle"},
	{TABLE, "table", .help = "each run's time (with -r)"},
	{'B', "big-num", .help = "thousands' separators, as the locale has them (default)"},
	{NO_BIG_NUM, "no-big-num", .help = "no thousands' separators"},
	{'x', "field-separator", .value = "SEP", .takes = "what stands between fields, such as a comma",
	 .help = "fields with SEP between them"},
	{'j', "json", .help = "one JSON object a line"},
	{JSON_OUTPUT, "json-output", .help = "the same as -j"},
	{'o', "output", .value = "FILE", .takes = "a file's name, or -",
	 .help = "(default: standard error); - is standard output; of stat record the perf.data file"},
	{APPEND, "append", .help = "append to FILE"},
	{LOG_FD, "log-fd", .value = "FD", .takes = "a file descriptor", .max = INT32_MAX, .help = "write to FD"},
	{QUIET, "quiet", .help = "print nothing"},
	{NO_MERGE, "no-merge", .help = "taken for perf's sake: events of one name are never merged"},
	{NO_CSV_SUMMARY, "no-csv-summary", .help = "no mark in the rows of a summary with -x"},
	{'v', "verbose", .help = "raw counts, the margin of estimates, and why an event is not supported"},
	{'M', "metrics", .value = "LIST", .takes = "metrics",
	 .refused =
		 "metrics are formulas of perf's own tables, which perfring does not have; count their events with -e"},
	{PERF_ONLY, "control", .value = "FDS", .takes = "fd:N[,ACK] or fifo:FILE[,ACK]",
	 .refused = "counts begin and end with the command; perfring record --control has it"},
	{PERF_ONLY, "metric-no-group", .refused = "goes with -M, which perfring does not have"},
	{PERF_ONLY, "metric-no-merge", .refused = "goes with -M, which perfring does not have"},
	{PERF_ONLY, "topdown",
	 .refused =
		 "is a metric of perf's own tables; count -e topdown-retiring and its siblings where perfring list shows them"},
	{PERF_ONLY, "td-level", .value = "N", .takes = "a level",
	 .refused = "goes with --topdown, which perfring does not have"},
	{'T', "transaction", .refused = "counts hardware transactions; name their events with -e, such as tx-start"},
	{PERF_ONLY, "smi-cost", .refused = "count -e msr/smi/,msr/aperf/,cycles"},
	{PERF_ONLY, "iostat", .value = "LIST", .takes = "ports", .is_optional = true,
	 .refused = "count the events of the uncore_iio PMUs with -e"},
	{PERF_ONLY, "cputype", .value = "TYPE", .takes = "a type",
	 .refused = "name the PMU in the event, such as cpu_core/cycles/"},
	{PERF_ONLY, "hybrid-merge", .refused = "events of two PMUs stay two rows"},
	{PERF_ONLY, "percore-show-thread", .refused = "--per-core sums up the threads of a core"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"The default events of a command, as the mean of five runs:", "perfring stat -r 5 ./program"},
	{"Two events of each CPU, every second:", "perfring stat -a -A -I 1000 -e cycles,instructions"},
	{"A process for ten seconds, for a spreadsheet:", "perfring stat -p 1234 -x , -o counts.csv sleep 10"},
	{0},
};

const struct tool_command tool_stat = {
	.name = "stat",
	.summary = "count the events of a command or the system",
	.usage =
		"[OPTIONS] [--] [COMMAND...]\nrecord [OPTIONS] [--] [COMMAND...]\nreport [-i FILE] [-A|--per-core|...] [-x SEP] [-j]",
	.description =
		"Counts the events of COMMAND and its children, of processes, of threads or of the whole system.  With "
		"record also into a perf.data file, which report prints, and perf stat report too.",
	.options = ROWS,
	.has_command = true,
	.notes = "A percentage in parentheses says that events shared counters: the count is an estimate from that "
		 "part of the time.  Its margin (-v, --json) is half of a 95 % interval if events occur independently "
		 "of one another.",
	.exit_status =
		"COMMAND's (128 + its signal when it was killed, else 128 + the signal, such as ^C, that ended the "
		"counting); 1 when counting failed; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-stat-report perfring-list perfring-record perfring",
	.run = tool_stat_run,
};
