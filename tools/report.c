/* report.c - `perfring report`: samples by command, object and symbol, for each event.
 *
 * tool_report: options, the pass over the file, and the order of what is printed.  report_rows.c counts samples, report_callers.c
 * their callers, report_columns.c has the columns, report_print.c and report_json.c the output, report_diff.c the comparison.
 */
#include <stdlib.h>
#include "event_groups.h"
#include "options.h"
#include "out.h"
#include "progress.h"
#include "raw_dump.h"
#include "record_counts.h"
#include "report.h"

enum {
	LIMIT = TOOL_OPTION_LONG,
	HEADER,
	HEADER_ONLY,
	STATS,
	PERCENT_LIMIT,
	PERCENTAGE,
	SHOW_TOTAL_PERIOD,
	SHOW_CPU_UTILIZATION,
	SYMBOL_FILTER,
	GROUP,
	NO_GROUP,
	GROUP_SORT_IDX,
	SKIP_EMPTY,
	NO_SKIP_EMPTY,
	NS,
	TIME_QUANTUM,
	MAX_STACK,
	CHILDREN,
	NO_CHILDREN,
	NO_INLINE,
	JSON,
	DIFF,
	NO_PAGER,
	STDIO_COLOR,
	FULL_SOURCE_PATH,
	LOOKS,     /* taken, and nothing else */
	PERF_ONLY, /* rows that are refused */
};

/* What only the command line says. */
struct request {
	bool header, header_only, lists;
	bool stats;
	bool raw;        /* -D */
	const char *old; /* --diff; NULL: no other recording */
};

/* "5,0,20": columns; 0 as wide as it must be. */
static bool read_widths(struct tool_report *report, const char *text)
{
	char *end;

	for (report->width_count = 0; report->width_count < TOOL_REPORT_COLUMN_COUNT; text = end + 1) {
		unsigned long width = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : UINT32_MAX;

		if (width > UINT16_MAX)
			return false;
		report->widths[report->width_count++] = (uint32_t)width;
		if (*end != ',')
			return !*end;
	}
	return false;
}

static bool read_percent(const char *text, double *percent)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*percent = strtod(text, &end);
	return (!*end || !strcmp(end, "%")) && *percent <= 100;
}

/* "100ms": ns. */
static bool read_quantum(const char *text, uint64_t *quantum)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	char *end;
	unsigned long long number = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;

	for (size_t i = 0; number && number <= UINT32_MAX && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name)) {
			*quantum = number * units[i].ns;
			return true;
		}
	return false;
}

/* As perf: -g alone, or with what it is followed by as the next word too. */
static bool take_graph(struct tool_report *report, struct tool_options *options, int argc, char **argv)
{
	if (options->value)
		return tool_report_take_graph(&report->graph, options->value);
	if (optind < argc && tool_report_take_graph(&report->graph, argv[optind]))
		optind++;
	report->graph.is_asked = true;
	return true;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct tool_report *report, struct request *request, struct tool_options *options, int argc,
			char **argv)
{
	int found;

	while ((found = tool_options_next(options, argc, argv)) > 0) {
		char *value = options->value;
		bool good = true;
		int taken = tool_filter_take(&report->filter, options, found);

		if (!taken)
			taken = tool_symbols_take(&report->symbols_options, options, found);
		if (taken < 0)
			return TOOL_MISUSED;
		if (taken)
			continue;
		switch (found) {
		case 's':
			if (!tool_report_is_list("-s", value))
				return TOOL_MISUSED;
			report->sort_words = value;
			break;
		case 'F':
			if (!tool_report_is_list("-F", value))
				return TOOL_MISUSED;
			report->field_words = value;
			break;
		case LIMIT:
			report->limit = options->number;
			break;
		case 'n':
			report->shows_samples = true;
			break;
		case SHOW_TOTAL_PERIOD:
			report->shows_period = true;
			break;
		case SHOW_CPU_UTILIZATION:
			report->shows_modes = true;
			break;
		case PERCENT_LIMIT:
			good = read_percent(value, &report->percent_limit);
			break;
		case PERCENTAGE:
			report->is_relative = !strcmp(value, "relative");
			good = report->is_relative || !strcmp(value, "absolute");
			break;
		case SYMBOL_FILTER:
			report->symbol_part = value;
			break;
		case 'U':
			report->hides_unresolved = true;
			break;
		case 't':
			report->separator = strcmp(value, "\\t") ? value : "\t";
			good = strcmp(value, ".") != 0;
			break;
		case 'w':
			good = read_widths(report, value);
			break;
		case 'q':
			report->is_quiet = true;
			break;
		case GROUP:
			report->groups = TOOL_REPORT_ONE_GROUP;
			break;
		case NO_GROUP:
			report->groups = TOOL_REPORT_NO_GROUPS;
			break;
		case GROUP_SORT_IDX:
			report->group_index = (uint32_t)options->number;
			break;
		case SKIP_EMPTY:
		case NO_SKIP_EMPTY:
			report->keeps_empty = found == NO_SKIP_EMPTY;
			break;
		case NS:
			report->nanoseconds = true;
			break;
		case TIME_QUANTUM:
			good = read_quantum(value, &report->quantum);
			break;
		case FULL_SOURCE_PATH:
			report->whole_paths = true;
			break;
		case HEADER_ONLY:
			request->header_only = true;
			/* fallthrough */
		case HEADER:
			request->header = true;
			break;
		case 'I':
			request->lists = true;
			break;
		case STATS:
			request->stats = true;
			break;
		case 'D':
			request->raw = true;
			break;
		case 'g':
			good = take_graph(report, options, argc, argv);
			break;
		case 'G':
			report->graph.order = TOOL_REPORT_CALLER;
			break;
		case CHILDREN:
		case NO_CHILDREN:
			report->wants_children = found == CHILDREN;
			break;
		case NO_PAGER:
			report->no_pager = true;
			break;
		case DIFF:
			request->old = value;
			good = *value;
			break;
		case JSON:
			report->is_json = true;
			break;
		case NO_INLINE:
			report->no_inline = true;
			break;
		case 'p':
			if (report->parent_pattern)
				regfree(&report->parents);
			report->parent_pattern = value;
			good = !regcomp(&report->parents, value, REG_EXTENDED | REG_NOSUB);
			break;
		case 'x':
			report->hides_parentless = true;
			break;
		case MAX_STACK:
			report->max_stack = options->number;
			break;
		case STDIO_COLOR:
			report->has_colours =
				!strcmp(value, "always") || (!strcmp(value, "auto") && tool_terminal_has_colours());
			good = report->has_colours || !strcmp(value, "never") || !strcmp(value, "auto");
			break;
		case 'f':
			report->symbols_options.is_forced = true;
			break;
		case LOOKS:
			break;
		default:
			return tool_options_forgotten(options, found);
		}
		if (!good)
			return tool_options_refuse(options, found, value);
	}
	return found ? -1 : options->status;
}

/* A record in perf's dump.  What is wrong with it is reported when it is counted. */
static void dump(struct tool_raw_dump *raw, const struct perfring_item *item)
{
	bool is_sample = item->record->type == PERFRING_RECORD_SAMPLE;
	struct perfring_record record;
	struct perfring_sample sample;

	if (is_sample) {
		bool is_whole = item->format && !perfring_sample_decode(item->format, item->record, &sample, NULL);

		tool_raw_dump(raw, item, is_whole ? &sample : NULL, NULL);
		return;
	}
	if (perfring_record_decode(item->format, item->record, &record, NULL)) {
		tool_raw_dump(raw, item, NULL, NULL);
		return;
	}
	tool_raw_dump(raw, item, NULL, &record);
	tool_machine_take(raw->machine, &record);
}

/* --stats, and -D, which has them at its end. */
static int count(struct tool_report *report, bool is_raw)
{
	struct tool_raw_dump raw = {.input = &report->input};
	struct tool_counts counts = {0};
	struct perfring_item item;

	if (is_raw) {
		raw.machine = tool_machine_open();
		raw.symbols = tool_symbols_open(&report->input, raw.machine, &report->symbols_options);
	}
	tool_progress_begin(&report->input, "report",
			    (report->is_quiet ? TOOL_PROGRESS_QUIET : 0) | (is_raw ? TOOL_PROGRESS_LINES : 0));
	while (tool_input_next(&report->input, &item)) {
		if (is_raw)
			dump(&raw, &item);
		tool_counts_take(&counts, &report->input, &item);
	}
	tool_out_flush(0);
	tool_counts_print(&counts, report->input.data);
	free(counts.events);
	if (is_raw) {
		tool_symbols_close(raw.symbols);
		tool_machine_close(raw.machine);
	}
	return tool_flush() ? tool_input_end(&report->input) : TOOL_FAILED;
}

/* Reads all samples. */
static void take_all(struct tool_report *report)
{
	struct perfring_item item;

	report->machine = tool_machine_open();
	report->symbols = tool_symbols_open(&report->input, report->machine, &report->symbols_options);
	report->tracepoints = tool_tracepoints_open(report->input.data, report->symbols);
	tool_report_begin(report);
	tool_input_join(&report->input);
	tool_progress_begin(&report->input, "report", report->is_quiet ? TOOL_PROGRESS_QUIET : 0);
	while (tool_input_next(&report->input, &item))
		tool_report_take(report, &item);
	tool_report_waits_end(report);
}

static void close_all(struct tool_report *report)
{
	tool_report_end(report);
	tool_tracepoints_close(report->tracepoints);
	tool_symbols_close(report->symbols);
	tool_machine_close(report->machine);
}

static void open_pager(struct tool_report *report)
{
	if (!report->no_pager)
		tool_pager_open(&report->pager);
}

static int run(struct tool_report *report)
{
	int status;

	take_all(report);
	open_pager(report);
	tool_report_print(report);
	/* who leaves a pager early has seen enough */
	status = tool_flush() || report->pager.pid ? tool_input_end(&report->input) : TOOL_FAILED;
	close_all(report);
	return status;
}

/* Prepares for the samples of the open file.  Returns an exit status, after a complaint when it is not TOOL_DONE. */
static int prepare(struct tool_report *report)
{
	if (!tool_filter_open(&report->filter, "report", report->input.data))
		return TOOL_FAILED;
	if (!tool_report_choose(report))
		return TOOL_MISUSED;
	if (!report->parent_pattern && (report->has[TOOL_REPORT_PARENT] || report->hides_parentless) &&
	    regcomp(&report->parents, TOOL_REPORT_PARENTS, REG_EXTENDED | REG_NOSUB))
		tool_out_of_memory();
	return TOOL_DONE;
}

static int read_file(struct tool_report *report, const struct request *request)
{
	struct tool_groups groups;
	struct tool_group group;
	int status;

	if (report->is_json && (request->header || request->stats || request->raw)) {
		tool_complain("report: --json is of rows: not with --header, --stats or -D");
		return TOOL_MISUSED;
	}
	if (request->header)
		open_pager(report);
	if (request->header && !tool_header_print(report->input.data, report->input.path, request->lists))
		report->input.faults++;
	if (request->header_only)
		return tool_flush() || report->pager.pid ? tool_input_end(&report->input) : TOOL_FAILED;
	if (request->stats || request->raw)
		return count(report, request->raw);
	tool_groups_open(&groups, report->input.data);
	if (report->group_index && report->groups == TOOL_REPORT_GROUPS && !tool_groups_next(&groups, &group)) {
		tool_complain("report: --group-sort-idx: the events of %s are in no group: add --group",
			      report->input.path);
		return TOOL_MISUSED;
	}
	status = prepare(report);
	return status ? status : run(report);
}

/* Reads the recording that is compared with.  Returns an exit status, after a complaint when it is not TOOL_DONE: then there is none. */
static int open_old(struct tool_report *report, struct tool_report *old, const char *path)
{
	int status;

	if (report->graph.is_asked && report->graph.print != TOOL_REPORT_NO_TREES) {
		tool_complain("report: --diff has no call trees: perfring flame --diff shows callers");
		return TOOL_MISUSED;
	}
	report->groups = TOOL_REPORT_NO_GROUPS;
	report->wants_children = false;
	report->graph.print = TOOL_REPORT_NO_TREES;
	report->old = old;
	*old = *report;
	status = tool_input_open_path(&old->input, path);
	if (status)
		return status;
	old->input.tells_aux = true;
	status = prepare(old);
	if (status)
		tool_input_close(&old->input);
	else
		take_all(old);
	return status;
}

static int close_old(struct tool_report *old)
{
	int status = tool_input_end(&old->input);

	close_all(old);
	tool_input_close(&old->input);
	if (!old->parent_pattern) /* that of -p is shared */
		regfree(&old->parents);
	return status;
}

static int report_command(int argc, char **argv)
{
	static struct tool_report old, report = {.limit = UINT64_MAX,
						 .capacity = 256,
						 .quantum = 100 * NS_PER_MS,
						 .max_stack = UINT64_MAX,
						 .wants_children = true,
						 .graph.threshold = TOOL_REPORT_THRESHOLD};
	struct tool_options options = {.command = &tool_report};
	struct request request = {.header = false};
	int status, end = TOOL_DONE;

	report.has_colours = tool_terminal_has_colours();
	status = read_options(&report, &request, &options, argc, argv);
	if (status >= 0)
		return status;
	status = request.old ? open_old(&report, &old, request.old) : TOOL_DONE;
	if (status) {
		regfree(&report.parents);
		return status;
	}
	status = tool_input_open(&report.input, &options, argc, argv);
	if (!status) {
		report.input.tells_aux = true;
		if (report.is_json && !report.graph.is_asked)
			report.graph.print = TOOL_REPORT_NO_TREES;
		report.has_header = request.header;
		status = read_file(&report, &request);
		tool_pager_close(&report.pager);
		tool_input_close(&report.input);
	}
	if (request.old)
		end = close_old(&old);
	regfree(&report.parents);
	tool_out_close();
	return status ? status : end;
}

#define LINES "the text of sources is not shown: perf annotate has it"
#define GRAPH \
	"graph, fractal, folded or none; a percentage, and a number of branches; caller or callee; percent, period or count"
#define BRANCHES "stacks of branches are not shown: perfring dump -F brstack has them"
#define SYMBOLS "modules' symbols are those of the kernel's list"

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input"},
	{.heading = "columns"},
	{'s', "sort", .value = "LIST", .takes = "names of columns, such as comm,sym",
	 .help = "what tells rows apart, and in which order they are (default: comm,dso,symbol, of tracepoints alone "
		 "trace); +LIST: beside the default"},
	{'F', "fields", .value = "LIST", .takes = "names of columns, such as overhead,sample,sym",
	 .help = "these columns, in this order; +LIST: more of them"},
	{'n', "show-nr-samples", .help = "numbers of samples"},
	{SHOW_TOTAL_PERIOD, "show-total-period", .help = "sums of periods"},
	{SHOW_CPU_UTILIZATION, "show-cpu-utilization", .help = "shares of the kernel and of user space"},
	{TIME_QUANTUM, "time-quantum", .value = "TIME", .takes = "a time, such as 10ms (ns, us, ms, s)",
	 .help = "the column time in steps of TIME (default 100ms)"},
	{NS, "ns", .help = "the column time with nine digits instead of six"},
	{'w', "column-widths", .value = "N[,N]", .takes = "numbers of characters, such as 0,10,20",
	 .help = "columns of these widths; 0: as wide as their texts"},
	{'t', "field-separator", .value = "SEP", .takes = "what stands between columns, such as a comma, and no dot",
	 .help = "SEP between columns; in them it becomes a dot"},
	{.heading = "samples"},
	TOOL_FILTER_ROWS,
	TOOL_FILTER_DSOS_ROW('d'),
	{SYMBOL_FILTER, "symbol-filter", .value = "TEXT", .takes = "a part of a function's name",
	 .help = "samples in functions in whose names TEXT is"},
	{PERCENTAGE, "percentage", .value = "OF", .takes = "relative or absolute",
	 .help = "relative: shares are of the samples shown; absolute: of all (default)"},
	{'U', "hide-unresolved", .help = "only what has a symbol"},
	{'p', "parent", .value = "REGEX", .takes = "an extended regular expression",
	 .help = "the column parent has the first function of the callchain, from the sample on, whose name matches "
		 "(default: " TOOL_REPORT_PARENTS ", system calls and page faults of old kernels)"},
	{'x', "exclude-other", .help = "only samples that have a parent"},
	{.heading = "symbols"},
	TOOL_SYMBOLS_ROWS,
	{FULL_SOURCE_PATH, "full-source-path", .help = "files of the columns srcline and srcfile with their folders"},
	{.heading = "callers"},
	{CHILDREN, "children",
	 .help = "a column with what a function has together with what it calls, by which rows are sorted, and rows of callers "
		 "(default, if samples have callchains)"},
	{NO_CHILDREN, "no-children", .help = "only what functions have themselves"},
	{'g', "call-graph", .value = "HOW", .is_optional = true, .takes = "a list of " GRAPH,
	 .help = "call trees of rows (default: graph,0.5,caller,percent; with --no-children callee): graph: shares are of all "
		 "samples; fractal: of what they are a branch of; folded: a line for each path; none.  Branches below 0.5%, "
		 "or beyond a number of them at one place, are only counted"},
	{'G', "inverted", .help = "as -g caller"},
	{NO_INLINE, "no-inline", .help = "functions that were inlined are not frames of their own"},
	{MAX_STACK, "max-stack", .value = "N", .takes = "a number of frames", .min = 1, .max = UINT32_MAX,
	 .help = "the innermost N frames of each stack (default: all)"},
	{.heading = "rows"},
	{LIMIT, "limit", .value = "LINES", .takes = "a number of lines", .max = UINT64_MAX,
	 .help = "at most LINES lines for each event"},
	{PERCENT_LIMIT, "percent-limit", .value = "PERCENT", .takes = "a percentage, up to 100",
	 .help = "no rows below PERCENT"},
	{GROUP, "group", .help = "all events in one table"},
	{NO_GROUP, "no-group", .help = "events of a group in tables of their own"},
	{GROUP_SORT_IDX, "group-sort-idx", .value = "N", .takes = "the number of an event, from 0 on",
	 .max = UINT32_MAX, .help = "a group's rows by event N of the group (default: by its events in their order)"},
	{SKIP_EMPTY, "skip-empty", .help = "no tables of events without samples (default)"},
	{NO_SKIP_EMPTY, "no-skip-empty", .help = "those too"},
	{.heading = "other views"},
	{STDIO_COLOR, "stdio-color", .value = "WHEN", .takes = "always, never or auto",
	 .help = "shares in colours; auto (default): on a terminal, unless NO_COLOR is set"},
	{NO_PAGER, "no-pager",
	 .help = "on a terminal too, not through a pager: that of PERFRING_PAGER, else of PAGER, else less -R"},
	{HEADER, "header", .help = "print the file's header first"},
	{HEADER_ONLY, "header-only", .help = "print nothing else"},
	{'I', "show-info", .help = "the header's long lists too"},
	{STATS, "stats", .help = "only how many records there are, by kind and by event"},
	{'D', "dump-raw-trace", .help = "only every record, as bytes and in perf's dump, and how many there are"},
	{'q', "quiet", .help = "rows alone"},
	{DIFF, "diff", .value = "OLD", .takes = "a perf.data file's name",
	 .help = "what functions have themselves, beside their shares in the recording OLD; the largest change first, new and vanished "
		 "ones are named so (rows: --sort, default dso,symbol)"},
	{JSON, "json", .help = "a JSON object (docs/formats.md); call trees are in it with -g"},
	{.heading = "as perf spells them"},
	{LOOKS, "stdio", .help = "taken: it is what is printed"},
	{LOOKS, "inline", .help = "taken: it is what is shown"},
	{'f', "force", .help = "maps and dumps of code that belong to other users are read too"},
	{PERF_ONLY, "hierarchy", .refused = "one table with --sort has the same rows"},
	{PERF_ONLY, "show-ref-call-graph", .refused = "the trees of an event are of its own samples"},
	{PERF_ONLY, "ignore-callees", .value = "REGEX", .takes = "a pattern",
	 .refused = "perfring export --collapsed has stacks to be cut"},
	{PERF_ONLY, "disable-order", .refused = "goes with -D; perfring dump shows records in time order"},
	{PERF_ONLY, "tasks", .refused = "use perfring script --show-task-events"},
	{PERF_ONLY, "mmaps", .refused = "use perfring script --show-mmap-events"},
	{'T', "threads", .refused = "counts of threads are perfring stat --per-thread's"},
	{PERF_ONLY, "pretty", .value = "KEY", .takes = "normal or raw", .refused = "goes with -T, which is not here"},
	{PERF_ONLY, "tui", .refused = "there is no window: the table is printed"},
	{PERF_ONLY, "gtk", .refused = "there is no window: the table is printed"},
	{PERF_ONLY, "samples", .value = "N", .takes = "a number", .refused = "there is no window to browse samples in"},
	{PERF_ONLY, "percent-type", .value = "TYPE", .takes = "a type", .refused = LINES},
	{PERF_ONLY, "socket-filter", .value = "N", .takes = "a number", .refused = "use -C with the socket's CPUs"},
	{'b', "branch-stack", .refused = BRANCHES},
	{PERF_ONLY, "branch-history", .refused = BRANCHES},
	{PERF_ONLY, "total-cycles", .refused = BRANCHES},
	{PERF_ONLY, "stitch-lbr", .refused = BRANCHES},
	{PERF_ONLY, "mem-mode", .refused = "perfring dump -F addr,data_src,weight has what memory samples say"},
	{PERF_ONLY, "raw-trace", .refused = "perfring dump has the fields of tracepoints"},
	{PERF_ONLY, "itrace", .value = "OPTS", .is_optional = true, .takes = "options",
	 .refused = "AUX areas are carried and not decoded: use perf report"},
	{'m', "modules", .refused = SYMBOLS},
	{LOOKS, "ignore-vmlinux", .help = "taken: an image is used only when -k names it"},
	{PERF_ONLY, "demangle-kernel", .refused = "names of the kernel's symbols are shown as they are"},
	{PERF_ONLY, "source", .refused = LINES},
	{PERF_ONLY, "asm-raw", .refused = LINES},
	{'M', "disassembler-style", .value = "STYLE", .takes = "a style", .refused = LINES},
	{PERF_ONLY, "objdump", .value = "FILE", .takes = "a file's name", .refused = LINES},
	{PERF_ONLY, "prefix", .value = "DIR", .takes = "a folder's name", .refused = LINES},
	{PERF_ONLY, "prefix-strip", .value = "N", .takes = "a number", .refused = LINES},
	{PERF_ONLY, "switch-on", .value = "EVENT", .takes = "an event", .refused = "use --time FROM,TO"},
	{PERF_ONLY, "switch-off", .value = "EVENT", .takes = "an event", .refused = "use --time FROM,TO"},
	{PERF_ONLY, "show-on-off-events", .refused = "goes with --switch-on, which is not here"},
	TOOL_OPTIONS_END,
};

static const char *column_name(size_t i)
{
	return i < TOOL_REPORT_COLUMN_COUNT ? tool_report_column_name((enum tool_report_column)i) : NULL;
}

static const struct tool_example EXAMPLES[] = {
	{"The twenty functions with the most samples:", "perfring report --sort sym --limit 20"},
	{"What one command did in the kernel, with numbers of samples:",
	 "perfring report --comms make --dsos '[kernel.kallsyms]' -n"},
	{"For a program: the ten functions in which, with what they call, most time was spent, and their call trees:",
	 "perfring report --json -g --sort sym --limit 10"},
	{"Of a recording that is not kept:", "perfring record -o - ./program | perfring report -"},
	{0},
};

const struct tool_command tool_report = {
	.name = "report",
	.summary = "samples of a perf.data file by command, object and symbol, with their callers",
	.usage = "[[-i] FILE] [--sort LIST] [OPTIONS]",
	.description =
		"Shows the samples of a perf.data file by command, object and symbol, most first, for each event, in the "
		"columns of perf report --stdio.  A sample weighs its period; one of a group ({a,b}:S) is a sample of "
		"each event that counted since the last one, and a group is one table with a column for each event.  [.] "
		"is user, [k] kernel, [g] guest kernel, [u] guest user, [H] hypervisor, [!] unknown.",
	.options = ROWS,
	.names_heading = "columns",
	.names = column_name,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-script perfring-dump perfring",
	.run = report_command,
};
