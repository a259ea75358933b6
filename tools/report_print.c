/* report_print.c - a report as text, in perf's layout.
 *
 * tool_report_print, for each event after the samples are counted and sorted.  Texts of others are escaped; colours only on a
 * terminal.
 */
#include <inttypes.h>
#include "report.h"

enum {
	CELL = 64,        /* bytes of the text of a number */
	TRANSACTION = 32, /* columns, as perf, where a sample has flags */
};

/* Of one event or group: its rows, and how wide the columns are. */
struct table {
	const struct tool_report *report;
	const struct tool_report_event *events; /* the leader and its members */
	uint32_t members;
	struct tool_report_row *const *rows;
	size_t nr;
	int widths[TOOL_REPORT_COLUMN_COUNT];
};

static bool is_sum(enum tool_report_column column)
{
	return column < TOOL_REPORT_FIRST_KEY;
}

/* ---- columns ---- */

/* The name of the row's thread: the last one that it had. */
static const char *thread_name(const struct tool_report *report, const struct tool_report_row *row)
{
	if (row->last_comm && !tool_machine_knows(report->machine, row->tid))
		return row->last_comm;
	return tool_machine_comm(report->machine, row->tid);
}

static int width_of(const struct tool_report *report, const struct tool_report_row *row, enum tool_report_column column)
{
	int used;

	switch (column) {
	case TOOL_REPORT_PID:
	case TOOL_REPORT_TID:
		return 8 + tool_print(NULL, thread_name(report, row), 0, false);
	case TOOL_REPORT_COMM:
		return tool_print(NULL, row->comm, 0, false);
	case TOOL_REPORT_DSO:
		used = tool_print(NULL, row->object, 0, false);
		/* as perf: space for an address, where no symbol is known */
		if (row->has_no_symbol && !report->separator && !report->filter.objects && !report->width_count &&
		    used < 16)
			return 16;
		return used;
	case TOOL_REPORT_SYM:
		/* "[.] " and 0x with 16 digits */
		return 4 + (row->symbol ? tool_print(NULL, row->symbol, 0, false) : 18);
	case TOOL_REPORT_PARENT:
		return row->parent ? tool_print(NULL, row->parent, 0, false) : 0;
	case TOOL_REPORT_TRANSACTION:
		return row->transaction ? TRANSACTION : 0;
	case TOOL_REPORT_TRACE:
		return tool_print(NULL, row->trace, 0, false);
	case TOOL_REPORT_SRCLINE:
		return tool_print(NULL, row->line, 0, false);
	case TOOL_REPORT_SRCFILE:
		return tool_print(NULL, row->source, 0, false);
	case TOOL_REPORT_TIME:
		return report->nanoseconds ? 16 : 12;
	case TOOL_REPORT_CGROUP:
		return row->cgroup ? tool_print(NULL, tool_report_cgroup(report, row->cgroup), 0, false) : 0;
	default:
		return 0;
	}
}

/* The width of a column: that of the widest value and the title; or that of -w, which only sums exceed if their title is longer. */
static void measure(struct table *table)
{
	const struct tool_report *report = table->report;

	for (size_t i = 0; i < report->shown.nr; i++) {
		enum tool_report_column column = report->shown.columns[i];
		int *width = &table->widths[i], least = tool_report_column_width(column), wanted = 0;

		*width = least;
		if (i < report->width_count)
			wanted = (int)report->widths[i];
		if (is_sum(column)) {
			*width = (wanted ? wanted : least) * (int)table->members;
			continue;
		}
		for (size_t j = 0; j < table->nr; j++) {
			int its = width_of(report, table->rows[j], column);

			*width = its > *width ? its : *width;
		}
		/* perf measures the text of a tracepoint when it compares two of them */
		if (column == TOOL_REPORT_TRACE && table->events->samples < 2)
			*width = least;
		if (wanted)
			*width = wanted;
	}
}

static int padded_width(const struct table *table, size_t i)
{
	enum tool_report_column column = table->report->shown.columns[i];
	int title = (int)strlen(tool_report_column_title(table->report, column));

	return is_sum(column) && table->widths[i] < title ? title : table->widths[i];
}

/* At most `width` columns of a text; the separator inside becomes a dot.  Returns the columns used. */
static int put_cut(const struct tool_report *report, const char *text, int width)
{
	char buffer[4];
	int used = 0;

	for (; *text && used < width; text++) {
		char c = report->separator && *text == *report->separator ? '.' : *text;
		int size = (int)tool_escape(buffer, (unsigned char)c, false);

		used += size;
		for (int i = 0; i < size; i++)
			putc_unlocked(buffer[i], stdout);
	}
	return used;
}

static void put_blanks(int nr)
{
	for (; nr > 0; nr--)
		putc_unlocked(' ', stdout);
}

const char *tool_report_colour(const struct tool_report *report, double percent)
{
	if (!report->has_colours || (percent < 0.5 && percent > -0.5))
		return "";
	return percent >= 5 || percent <= -5 ? TOOL_TERMINAL_RED : TOOL_TERMINAL_GREEN;
}

const char *tool_report_no_colour(const struct tool_report *report, double percent)
{
	return *tool_report_colour(report, percent) ? TOOL_TERMINAL_PLAIN : "";
}

/* Puts a share as "%.2f" does, if it is not so near to the middle of two of those that this may round otherwise.  Returns the
 * columns used; 0: it was not put. */
static int put_hundredths(double percent, int width)
{
	double hundredths = percent * 100;
	char text[16], *end = text + sizeof(text), *at = end;
	uint32_t number;
	int used;

	if (!(hundredths >= 0 && hundredths < 1e9))
		return 0;
	number = (uint32_t)hundredths;
	hundredths -= number;
	if (hundredths > 0.499999 && hundredths < 0.500001)
		return 0;
	number += hundredths > 0.5;
	for (int digits = 0; digits < 3 || number; digits++, number /= 10) {
		if (digits == 2)
			*--at = '.';
		*--at = (char)('0' + number % 10);
	}
	used = (int)(end - at);
	put_blanks(width - used);
	fwrite(at, 1, (size_t)used, stdout);
	return used < width ? width : used;
}

/* Returns the columns used. */
static int put_percent(const struct tool_report *report, double percent, int width, bool has_sign)
{
	int used;

	fputs(tool_report_colour(report, percent), stdout);
	putc_unlocked(' ', stdout);
	used = has_sign ? 0 : put_hundredths(percent, width - 2);
	if (!used)
		used = printf(has_sign ? "%+*.2f" : "%*.2f", width > 2 ? width - 2 : 0, percent);
	putc_unlocked('%', stdout);
	used += 2;
	fputs(tool_report_no_colour(report, percent), stdout);
	return used;
}

/* Prints a column of --diff; a share that one file lacks is a word.  Returns the columns used; 0: the column is another one. */
static int put_compared(const struct tool_report *report, const struct tool_report_event *event,
			const struct tool_report_cell *cell, enum tool_report_column column, int width)
{
	enum tool_report_state state = tool_report_state(cell);

	if (column == TOOL_REPORT_CHANGE)
		return put_percent(report, tool_report_change(event, cell), width, true);
	if (column == TOOL_REPORT_OLD && state == TOOL_REPORT_NEW)
		return printf("%*s", width, "new");
	if (column == TOOL_REPORT_OLD)
		return put_percent(report, tool_report_old_percent(event, cell), width, false);
	return column == TOOL_REPORT_OVERHEAD && state == TOOL_REPORT_VANISHED ? printf("%*s", width, "vanished") : 0;
}

static int put_plain_sum(const struct table *table, const struct tool_report_cell *cell,
			 const struct tool_report_event *event, enum tool_report_column column, int width)
{
	bool is_number = column == TOOL_REPORT_SAMPLES || column == TOOL_REPORT_PERIOD;
	uint64_t number = column == TOOL_REPORT_SAMPLES                 ? cell->samples
			  : column == TOOL_REPORT_CHILDREN              ? cell->children
			  : is_number || column == TOOL_REPORT_OVERHEAD ? cell->weight
									: cell->mode[column - TOOL_REPORT_SYS];

	if (table->report->separator)
		width = 0;
	if (is_number)
		return printf(" %*" PRIu64, width > 1 ? width - 1 : 0, number);
	return put_percent(table->report, tool_report_percent(event, number), width, false);
}

static int put_sum(const struct table *table, const struct tool_report_cell *cell,
		   const struct tool_report_event *event, enum tool_report_column column, int width)
{
	int used = 0;

	if (table->report->old)
		used = put_compared(table->report, event, cell, column, table->report->separator ? 0 : width);
	return used ? used : put_plain_sum(table, cell, event, column, width);
}

static int put_symbol(const struct tool_report *report, const struct tool_report_row *row, int width)
{
	char mark[] = {'[', row->mark, ']', ' ', 0};

	fputs(mark, stdout);
	/* An address is not cut: it would be another one. */
	if (!row->symbol)
		return 4 + printf("%#.16" PRIx64, row->address);
	return 4 + put_cut(report, row->symbol, width > 4 ? width - 4 : 0);
}

static int put_page_size(uint64_t size, int width)
{
	static const char units[] = " KMGTPE";
	char text[CELL] = "N/A";
	int unit = 0;

	for (; size >= 1024 && units[unit + 1]; size /= 1024)
		unit++;
	if (size)
		snprintf(text, sizeof(text), "%" PRIu64 "%.*s", size, unit != 0, units + unit);
	return printf("%-*s", width, text);
}

static int put_size(int64_t size, int width)
{
	return size < 0 ? printf("%*s", width, "unknown") : printf("%*" PRId64, width, size);
}

/* Prints the flags of a transaction, and the code with which it was aborted. */
static int put_transaction(uint64_t transaction)
{
	static const char *const names[] = {"EL", "TX", "SYNC", "ASYNC", "RETRY", "CON", "CAP-WRITE", "CAP-READ"};
	const uint64_t kinds = 1 << 2 | 1 << 3; /* of which a sample has one */
	uint64_t code = transaction >> 32;
	int used = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (transaction >> i & 1)
			used += printf("%s ", names[i]);
	if (transaction && !(transaction & kinds))
		used += printf("NEITHER ");
	return code ? used + printf(":%" PRIx64, code) : used;
}

/* Returns the columns used. */
static int put_key(const struct tool_report *report, const struct tool_report_row *row, enum tool_report_column column,
		   int width)
{
	char text[CELL];

	switch (column) {
	case TOOL_REPORT_PID:
	case TOOL_REPORT_TID:
		snprintf(text, sizeof(text), "%7d:", (int)row->tid);
		return put_cut(report, text, width) +
		       put_cut(report, thread_name(report, row), width > 8 ? width - 8 : 0);
	case TOOL_REPORT_COMM:
		return put_cut(report, row->comm, width);
	case TOOL_REPORT_DSO:
		return put_cut(report, row->object, width);
	case TOOL_REPORT_SYM:
		return put_symbol(report, row, width);
	case TOOL_REPORT_PARENT:
		return put_cut(report, row->parent ? row->parent : "[other]", width);
	case TOOL_REPORT_TRANSACTION:
		return put_transaction(row->transaction);
	case TOOL_REPORT_SYMBOL_SIZE:
		return put_size(row->symbol_size, width);
	case TOOL_REPORT_DSO_SIZE:
		return put_size(row->object_size, width);
	case TOOL_REPORT_TRACE:
		return put_cut(report, row->trace, width);
	case TOOL_REPORT_SRCLINE:
		return put_cut(report, row->line, width);
	case TOOL_REPORT_SRCFILE:
		return put_cut(report, row->source, width);
	case TOOL_REPORT_CPU:
		return printf("%.3d", (int)row->cpu);
	case TOOL_REPORT_TIME:
		return printf("%" PRIu64 ".%0*" PRIu64, row->time / 1000000000, report->nanoseconds ? 9 : 6,
			      row->time % 1000000000 / (report->nanoseconds ? 1 : 1000));
	case TOOL_REPORT_SOCKET:
		return printf("%*.*d", width, width > 3 ? width - 3 : 0, row->socket);
	case TOOL_REPORT_LOCAL_WEIGHT:
		return printf("%" PRIu64, row->weight);
	case TOOL_REPORT_WEIGHT:
		return printf("%" PRIu64, row->weight * row->cells[0].samples);
	case TOOL_REPORT_LOCAL_INS_LAT:
		return printf("%" PRIu64, row->latency);
	case TOOL_REPORT_INS_LAT:
		return printf("%" PRIu64, row->latency * row->cells[0].samples);
	case TOOL_REPORT_CGROUP:
		return put_cut(report, tool_report_cgroup(report, row->cgroup), INT32_MAX);
	case TOOL_REPORT_CGROUP_ID:
		return printf("%" PRIu64 "/0x%" PRIx64, row->place.dev, row->place.ino);
	case TOOL_REPORT_CODE_PAGE_SIZE:
		return put_page_size(row->page_size, width);
	default:
		return printf("%#" PRIx64, row->ip);
	}
}

/* Whether perf pads this column even if it is the last one. */
static bool is_padded(enum tool_report_column column)
{
	return column == TOOL_REPORT_WEIGHT || column == TOOL_REPORT_LOCAL_WEIGHT || column == TOOL_REPORT_INS_LAT ||
	       column == TOOL_REPORT_LOCAL_INS_LAT || column == TOOL_REPORT_PARENT || column == TOOL_REPORT_TRANSACTION;
}

static void put_row(const struct table *table, const struct tool_report_row *row)
{
	const struct tool_report *report = table->report;

	if (!report->separator)
		fputs("  ", stdout);
	for (size_t i = 0; i < report->shown.nr; i++) {
		enum tool_report_column column = report->shown.columns[i];
		bool is_last = i + 1 == report->shown.nr;
		int used = 0, width = table->widths[i];

		if (i)
			fputs(report->separator ? report->separator : "  ", stdout);
		for (uint32_t j = 0; is_sum(column) && j < table->members; j++)
			used += put_sum(table, &row->cells[j], &table->events[j], column, width / (int)table->members);
		if (!is_sum(column))
			used = put_key(report, row, column, width);
		/* names are as wide as their column in the last one too */
		if (!is_last || (column >= TOOL_REPORT_PID && column <= TOOL_REPORT_DSO) ||
		    column == TOOL_REPORT_ADDR || is_padded(column))
			put_blanks(padded_width(table, i) - used);
	}
	putchar('\n');
}

static void put_titles(const struct table *table)
{
	const struct tool_report *report = table->report;

	printf("#\n# ");
	for (size_t i = 0; i < report->shown.nr; i++) {
		enum tool_report_column column = report->shown.columns[i];
		const char *title = tool_report_column_title(report, column);
		int width = padded_width(table, i);

		if (i)
			fputs(report->separator ? report->separator : "  ", stdout);
		if (is_sum(column))
			printf("%*s", width, title);
		else
			printf("%-*.*s", width, width, title);
	}
	putchar('\n');
	if (report->separator)
		return;
	printf("# ");
	for (size_t i = 0; i < report->shown.nr; i++) {
		if (i)
			fputs("  ", stdout);
		for (int at = padded_width(table, i); at; at--)
			putchar('.');
	}
	printf("\n#\n");
}

/* ---- events ---- */

/* 'cpu-clock', 'anon group { a, b }', 'a, b'. */
static void put_name(const struct tool_report *report, uint32_t leader)
{
	const struct tool_report_event *event = &report->events[leader];
	bool is_named = event->members > 1 && event->group_name;

	putchar('\'');
	if (is_named) {
		tool_print(stdout, *event->group_name ? event->group_name : "anon group", 0, false);
		printf(" { ");
	}
	for (uint32_t i = 0; i < event->members; i++) {
		if (i)
			printf(", ");
		tool_print(stdout, tool_report_event_name(report, leader + i), 0, false);
	}
	printf("%s'", is_named ? " }" : "");
}

/* The sums of a group; numbers of samples as perf has them: 12K. */
static void put_event(const struct tool_report *report, uint32_t leader)
{
	const struct tool_report_event *events = &report->events[leader];
	uint64_t samples = 0, weight = 0;
	const char *unit = " KMG";

	for (uint32_t i = 0; i < events->members; i++) {
		samples += events[i].samples;
		weight = weight + events[i].weight < weight ? UINT64_MAX : weight + events[i].weight;
	}
	for (; samples > 1000 && unit[1]; unit++)
		samples /= 1000;
	printf("# Samples: %" PRIu64 "%c of event%s ", samples, *unit, events->leads_group ? "s" : "");
	put_name(report, leader);
	if (report->filter.time) {
		printf(" (time slices: ");
		tool_print(stdout, report->filter.time, 0, false);
		putchar(')');
	}
	printf("\n# Event count (approx.): %" PRIu64 "%s\n", weight, events->name ? " ns" : "");
	if (report->old && !events->old_weight)
		printf("# The old recording has no samples of it: all is new\n");
}

/* Prints how many rows are beyond the limits.  perf does not print those of --percent-limit. */
static void put_more(const struct table *table, size_t from)
{
	uint64_t weight = 0, samples = 0;

	for (size_t i = from; i < table->nr; i++) {
		weight = tool_plus(weight, table->rows[i]->cells[0].weight);
		samples = tool_plus(samples, table->rows[i]->cells[0].samples);
	}
	printf("# %zu more lines: %.2f%%, %" PRIu64 " samples\n", table->nr - from,
	       tool_report_percent(table->events, weight), samples);
}

bool tool_report_is_above(const struct tool_report *report, const struct tool_report_row *row)
{
	const struct tool_report_cell *cell = &row->cells[0];
	const struct tool_report_event *event = &report->events[row->event];

	if (report->old && tool_report_old_percent(event, cell) >= report->percent_limit)
		return true;
	return tool_report_percent(event, report->cumulates ? cell->children : cell->weight) >= report->percent_limit;
}

static void put_table(struct tool_report *report, uint32_t leader, struct tool_report_row *const *rows, size_t nr)
{
	struct table table = {report, &report->events[leader], report->events[leader].members, rows, nr, {0}};
	size_t i, shown = 0;

	measure(&table);
	if (!report->is_quiet) {
		put_event(report, leader);
		put_titles(&table);
	}
	for (i = 0; i < nr && shown < report->limit; i++) {
		if (!tool_report_is_above(report, rows[i]))
			continue;
		put_row(&table, rows[i]);
		if (report->graph.print != TOOL_REPORT_NO_TREES)
			tool_report_tree_print(report, rows[i]);
		shown++;
	}
	if (i < nr && !report->is_quiet)
		put_more(&table, i);
	printf("\n\n");
}

/* Whether an event has no samples, and is one of several. */
static bool is_empty(const struct tool_report *report, uint32_t leader)
{
	const struct tool_report_event *events = &report->events[leader];

	for (uint32_t i = 0; i < events->members; i++)
		if (events[i].seen || events[i].lost)
			return false;
	return report->event_count > 1;
}

/* Whether no sample was read, or none of the CPUs, times and events that were asked for, and none was lost. */
static bool has_nothing(const struct tool_report *report)
{
	for (uint32_t i = 0; i < report->event_count; i++)
		if (tool_report_wants(report, i) &&
		    (report->events[i].seen || report->events[i].lost))
			return false;
	return true;
}

/* ---- all of it ---- */

static void put_filter(const char *what, const char *list)
{
	if (!tool_filter_only(list))
		return;
	printf("# %s: ", what);
	tool_print(stdout, list, 0, false);
	putchar('\n');
}

static void put_head(const struct tool_report *report)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < report->event_count; i++)
		lost += report->events[i].lost;
	if (report->has[TOOL_REPORT_COMM])
		put_filter("comm", report->filter.comms);
	if (report->has[TOOL_REPORT_DSO])
		put_filter("dso", report->filter.objects);
	if (report->has[TOOL_REPORT_SYM])
		put_filter("symbol", report->filter.symbols);
	printf("#\n# Total Lost Samples: %" PRIu64 "\n#\n", lost);
}

static void put_nameless(const struct tool_report *report)
{
	uint64_t all = 0, nameless = 0;
	unsigned i;

	for (i = 0; i < PERFRING_NAMELESS_COUNT; i++)
		all += report->nameless[i];
	nameless = all - report->nameless[PERFRING_NAMELESS_NONE];
	if (!nameless || report->hides_unresolved)
		return;
	printf("# %" PRIu64 " of %" PRIu64 " samples have no symbol:\n", nameless, all);
	for (i = PERFRING_NAMELESS_NONE + 1; i < PERFRING_NAMELESS_COUNT; i++)
		if (report->nameless[i])
			printf("#   %10" PRIu64 "  %s\n", report->nameless[i],
			       tool_symbols_why(report->symbols, (enum perfring_nameless)i));
}

/* Prints what is missing because a bound of report_callers.c was exceeded. */
static void put_missing(const struct tool_report *report)
{
	struct tool_report_missing missing;

	tool_report_callers_missing(report, &missing);
	if (missing.pathless)
		printf("# %" PRIu64 " samples have too many different stacks: their callers are not in this\n",
		       missing.pathless);
	if (missing.treeless)
		printf("# %" PRIu64 " samples have too many different stacks: they are in no tree of their callers\n",
		       missing.treeless);
	if (missing.rowless)
		printf("# %" PRIu64 " frames are of too many different functions: they have no rows\n",
		       missing.rowless);
	if (missing.is_too_much)
		printf("# the last trees are not drawn: all stacks have too many frames (docs/limits.md)\n");
}

static void put_foot(const struct tool_report *report)
{
	if (report->callers)
		put_missing(report);
	put_nameless(report);
	if (report->lost_records)
		printf("# %" PRIu64 " records were lost\n", report->lost_records);
	if (report->throttles)
		printf("# throttled %" PRIu64 " times\n", report->throttles);
	if (report->unread)
		printf("# %" PRIu64 " samples could not be read\n", report->unread);
}

/* Removes the column Children, for a stream whose samples had no callchains. */
static void leave_children(struct tool_report *report)
{
	struct tool_report_list *lists[] = {&report->shown, &report->sorted};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct tool_report_list kept = {0};

		for (size_t j = 0; j < lists[i]->nr; j++)
			if (lists[i]->columns[j] != TOOL_REPORT_CHILDREN)
				kept.columns[kept.nr++] = lists[i]->columns[j];
		*lists[i] = kept;
	}
	report->cumulates = report->is_self = false;
	report->graph.print = TOOL_REPORT_NO_TREES;
}

static void put_tables(struct tool_report *report)
{
	size_t at = 0, end;
	bool is_wanted;

	for (uint32_t i = 0; i < report->event_count; i++) {
		if (report->events[i].leader != i)
			continue;
		for (end = at; end < report->nr && report->rows[end]->event == i; end++)
			;
		/* rows of an event that is not wanted: of switches, of which only the time that follows is shown */
		is_wanted = tool_report_wants(report, i);
		if (is_wanted && report->is_json)
			tool_report_json_table(report, i, report->rows + at, end - at);
		else if (is_wanted && (report->keeps_empty || !is_empty(report, i)))
			put_table(report, i, report->rows + at, end - at);
		at = end;
	}
}

void tool_report_print(struct tool_report *report)
{
	if (report->callers)
		tool_report_callers_sum(report);
	if (report->is_self && !tool_input_has_chains(&report->input))
		leave_children(report);
	if (report->old)
		tool_report_diff(report);
	tool_report_sort(report);
	if (report->is_json) {
		tool_report_json_begin(report);
		put_tables(report);
		tool_report_json_end(report);
		return;
	}
	if (!report->is_quiet)
		tool_report_facts_print(report);
	if (has_nothing(report) && !report->keeps_empty) {
		printf("# no samples\n");
		put_foot(report);
		return;
	}
	if (!report->is_quiet)
		put_head(report);
	put_tables(report);
	if (!report->is_quiet)
		put_foot(report);
}
