/* report_columns.c - the columns of `perfring report`: perf's --sort and --fields.
 *
 * A column is a row of TOOL_REPORT_COLUMNS (report.h).  Called once, before samples are read: a column that is chosen may need
 * names, callchains or branches.
 */
#include <stdlib.h>
#include <strings.h>
#include "nearest.h"
#include "options.h"
#include "report.h"

static const struct {
	const char *name;
	const char *title;
	int width;
} COLUMNS[] = {
#define COLUMN(NAME, name, title, width) {name, title, width},
	TOOL_REPORT_COLUMNS(COLUMN)
#undef COLUMN
};

/* Columns that users may look for, most of them perf's, and that there are not. */
static const struct {
	const char *names; /* with a blank before and after each */
	const char *instead;
} PERFS[] = {
	{" p_stage_cyc local_p_stage_cyc ",
	 "POWER alone has stages of its pipeline: perfring dump -F weight has all weights"},
	{" event ", "each event has a table of its own; --group makes one of all"},
	{" dso_from dso_to symbol_from symbol_to mispredict abort in_tx cycles srcline_from srcline_to addr_from addr_to "
	 "ipc_lbr ipc_null ",
	 "stacks of branches are not shown: perfring dump -F brstack has them"},
	{" symbol_daddr dso_daddr symbol_iaddr locked tlb mem snoop dcacheline phys_daddr data_page_size blocked ",
	 "memory accesses are not shown: perfring dump -F addr,data_src,phys_addr,data_page_size has them"},
};

const char *tool_report_column_name(enum tool_report_column column)
{
	return COLUMNS[column].name;
}

const char *tool_report_column_title(const struct tool_report *report, enum tool_report_column column)
{
	return column != TOOL_REPORT_OVERHEAD ? COLUMNS[column].title
	       : report->old                  ? "New"
	       : report->is_self              ? "Self"
					      : COLUMNS[column].title;
}

int tool_report_column_width(enum tool_report_column column)
{
	return COLUMNS[column].width;
}

/* Finds a column by its name, or the beginning of it, as perf does: keys first, then sums. */
static int column_of(const char *word)
{
	size_t length = strlen(word);

	for (int i = TOOL_REPORT_FIRST_KEY; length && i < TOOL_REPORT_COLUMN_COUNT; i++)
		if (!strncasecmp(COLUMNS[i].name, word, length))
			return i;
	for (int i = 0; length && i < TOOL_REPORT_FIRST_KEY; i++)
		if (!strcasecmp(COLUMNS[i].name, word))
			return i;
	return -1;
}

static bool has(const struct tool_report_list *list, enum tool_report_column column)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->columns[i] == column)
			return true;
	return false;
}

static void add(struct tool_report_list *list, enum tool_report_column column)
{
	if (!has(list, column))
		list->columns[list->nr++] = column;
}

/* A sentence for a column that perf has and this report does not; NULL: perf has none of this name. */
static const char *perfs_column(const char *word)
{
	char spaced[40];

	snprintf(spaced, sizeof(spaced), " %.36s ", word);
	for (size_t i = 0; i < sizeof(PERFS) / sizeof(PERFS[0]); i++)
		if (strstr(PERFS[i].names, spaced))
			return PERFS[i].instead;
	return NULL;
}

/* Adds the words of a list.  option: NULL if they are known to be right.  Returns false after a complaint. */
static bool add_words(struct tool_report_list *list, const char *option, const char *words)
{
	char *word, *rest, *copy = strdupa(words + (*words == '+'));
	struct tool_nearest nearest = {.distance = 0};
	int column;

	for (word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		column = column_of(word);
		if (column >= 0) {
			add(list, (enum tool_report_column)column);
			continue;
		}
		if (perfs_column(word)) {
			tool_complain("report: option '%s': column '%s': %s", option, word, perfs_column(word));
			return false;
		}
		for (int i = 0; i < TOOL_REPORT_COLUMN_COUNT; i++)
			tool_nearest_offer(&nearest, word, COLUMNS[i].name);
		tool_complain("report: option '%s': unknown column '%s'%s (perfring report --help)", option, word,
			      tool_nearest_hint(&nearest));
		return false;
	}
	if (!list->nr)
		tool_complain("report: option '%s': '%s' names no column (perfring report --help)", option, words);
	return list->nr;
}

bool tool_report_is_list(const char *option, const char *words)
{
	struct tool_report_list list = {0};

	return add_words(&list, option, words);
}

/* The default of --sort: if all events are tracepoints, by their fields. */
static const char *default_keys(const struct tool_report *report)
{
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(report->input.data, i)); i++)
		if (attr->type != PERFRING_TYPE_TRACEPOINT)
			break;
	return i && !attr && tool_tracepoints_are_known() ? "trace" : report->old ? "dso,symbol" : "comm,dso,symbol";
}

/* ---- call trees ---- */

/* Takes one word of -g's value.  numbers: how many of its words before were numbers. */
static bool take_word(struct tool_report_graph *graph, const char *word, unsigned *numbers)
{
	static const char *const prints[] = {"graph", "fractal", "folded", "none"};
	static const char *const orders[] = {"caller", "callee"};
	static const char *const values[] = {"percent", "period", "count"};
	uint64_t limit;
	char *end;

	for (unsigned i = 0; i < sizeof(prints) / sizeof(*prints); i++)
		if (!strcmp(word, prints[i])) {
			graph->print = (enum tool_report_print)i;
			return true;
		}
	for (unsigned i = 0; i < sizeof(orders) / sizeof(*orders); i++)
		if (!strcmp(word, orders[i])) {
			graph->order = (enum tool_report_order)(TOOL_REPORT_CALLER + i);
			return true;
		}
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (!strcmp(word, values[i])) {
			graph->value = (enum tool_report_value)i;
			return true;
		}
	if (!strcmp(word, "function")) /* functions are what trees are of */
		return true;
	if (++*numbers == 2 && tool_options_number(word, 0, UINT32_MAX, &limit)) {
		graph->limit = limit;
		return true;
	}
	if (*numbers != 1 || *word < '0' || *word > '9')
		return false;
	graph->threshold = strtod(word, &end);
	return (!*end || !strcmp(end, "%")) && graph->threshold <= 100;
}

bool tool_report_take_graph(struct tool_report_graph *graph, const char *text)
{
	struct tool_report_graph taken = {.is_asked = true, .threshold = TOOL_REPORT_THRESHOLD};
	char *word, *rest, *copy = strdupa(text);
	unsigned numbers = 0, words = 0;

	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest), words++)
		if (!take_word(&taken, word, &numbers))
			return false;
	if (words)
		*graph = taken;
	return words;
}

/* ---- all of them ---- */

/* Leaves out columns for which the filter leaves one value only, but not the last column. */
static void leave_out(struct tool_report *report)
{
	const struct {
		enum tool_report_column column;
		const char *list;
	} rows[] = {
		{TOOL_REPORT_COMM, report->filter.comms},
		{TOOL_REPORT_DSO, report->filter.objects},
		{TOOL_REPORT_SYM, report->filter.symbols},
	};
	struct tool_report_list kept = {0};
	bool has_key = false;

	for (size_t i = 0; i < report->shown.nr; i++) {
		enum tool_report_column column = report->shown.columns[i];
		bool left_out = false;

		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
			left_out = left_out || (rows[j].column == column && tool_filter_only(rows[j].list));
		if (left_out)
			continue;
		add(&kept, column);
		has_key = has_key || column >= TOOL_REPORT_FIRST_KEY;
	}
	if (has_key)
		report->shown = kept;
}

bool tool_report_choose(struct tool_report *report)
{
	const char *sort = report->sort_words, *fields = report->field_words;
	struct tool_report_list keys = {0}, *shown = &report->shown;
	bool replaces = fields && *fields != '+';
	bool has_chains = tool_input_has_chains(&report->input);

	report->cumulates = report->is_self = report->wants_children && has_chains && !replaces;
	if (report->graph.is_asked && report->graph.print != TOOL_REPORT_NO_TREES && !has_chains) {
		tool_complain("report: -g: %s has no callchains: record them with -g", report->input.path);
		return false;
	}
	if (!has_chains)
		report->graph.print = TOOL_REPORT_NO_TREES;
	if (!sort || *sort == '+')
		add_words(&keys, NULL, default_keys(report));
	if (sort && !add_words(&keys, "-s", sort))
		return false;
	if (report->parent_pattern)
		add(&keys, TOOL_REPORT_PARENT);
	if (replaces && !add_words(shown, "-F", fields))
		return false;
	if (!replaces) {
		if (report->cumulates)
			add(shown, TOOL_REPORT_CHILDREN);
		if (report->old)
			add(shown, TOOL_REPORT_OLD);
		add(shown, TOOL_REPORT_OVERHEAD);
		if (report->old)
			add(shown, TOOL_REPORT_CHANGE);
		if (report->shows_modes) {
			add(shown, TOOL_REPORT_SYS);
			add(shown, TOOL_REPORT_US);
		}
		if (report->shows_samples)
			add(shown, TOOL_REPORT_SAMPLES);
		if (report->shows_period)
			add(shown, TOOL_REPORT_PERIOD);
		if (fields && !add_words(shown, "-F", fields))
			return false;
	}
	if (replaces && !sort) {
		report->sorted = *shown;
	} else {
		if (report->old && !has(&keys, TOOL_REPORT_CHANGE))
			add(&report->sorted, TOOL_REPORT_CHANGE);
		if (report->cumulates && !has(&keys, TOOL_REPORT_CHILDREN))
			add(&report->sorted, TOOL_REPORT_CHILDREN);
		if (!replaces && !has(&keys, TOOL_REPORT_OVERHEAD))
			add(&report->sorted, TOOL_REPORT_OVERHEAD);
		for (size_t i = 0; i < keys.nr; i++) {
			add(&report->sorted, keys.columns[i]);
			add(shown, keys.columns[i]);
		}
		for (size_t i = 0; i < shown->nr; i++)
			add(&report->sorted, shown->columns[i]);
	}
	for (size_t i = 0; i < shown->nr; i++)
		report->has[shown->columns[i]] = true;
	if (!report->old && (report->has[TOOL_REPORT_OLD] || report->has[TOOL_REPORT_CHANGE])) {
		tool_complain("report: columns 'old' and 'change' are of --diff OLD");
		return false;
	}
	report->cumulates = report->cumulates || report->has[TOOL_REPORT_CHILDREN];
	if (report->graph.order == TOOL_REPORT_DEFAULT_ORDER)
		report->graph.order = report->cumulates ? TOOL_REPORT_CALLER : TOOL_REPORT_CALLEE;
	if ((report->has[TOOL_REPORT_PARENT] || report->hides_parentless) && !has_chains) {
		tool_complain("report: %s: %s has no callchains: record them with -g",
			      report->has[TOOL_REPORT_PARENT] ? "column 'parent'" : "-x", report->input.path);
		return false;
	}
	if (report->has[TOOL_REPORT_TRACE] && !tool_tracepoints_are_known()) {
		tool_complain("report: column 'trace': this perfring was built without libtraceevent");
		return false;
	}
	leave_out(report);
	return true;
}
