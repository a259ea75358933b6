/* report_columns.c - the columns of `perfring report`: perf's --sort and --fields. */
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

/* Columns that perf has, and we do not. */
static const struct {
	const char *names; /* with a blank before and after each */
	const char *instead;
} PERFS[] = {
	{" overhead_children ", "callers' shares are not summed up: perfring script has the callchain of each sample"},
	{" p_stage_cyc local_p_stage_cyc ",
	 "POWER alone has stages of its pipeline: perfring dump -F weight has all weights"},
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

const char *tool_report_column_title(enum tool_report_column column)
{
	return COLUMNS[column].title;
}

int tool_report_column_width(enum tool_report_column column)
{
	return COLUMNS[column].width;
}

/* A name, or how it begins, as perf takes it; the keys are looked at first. */
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

/* What to use in place of a column of perf's; NULL: it has none of this name. */
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

/* Files of tracepoints alone are sorted by what those say. */
static const char *default_keys(const struct tool_report *report)
{
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(report->input.data, i)); i++)
		if (attr->type != PERFRING_TYPE_TRACEPOINT)
			break;
	return i && !attr && tool_tracepoints_are_known() ? "trace" : "comm,dso,symbol";
}

/* Whether the samples of an event have callchains.  The events of a stream are not known yet. */
static bool has_chains(const struct tool_report *report)
{
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(report->input.data, i)); i++)
		if (attr->sample_type & PERFRING_SAMPLE_CALLCHAIN)
			return true;
	return !i;
}

/* A column of which the filter leaves one value is not shown, but for the last one. */
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

	if (!sort || *sort == '+')
		add_words(&keys, NULL, default_keys(report));
	if (sort && !add_words(&keys, "-s", sort))
		return false;
	if (report->parent_pattern)
		add(&keys, TOOL_REPORT_PARENT);
	if (replaces && !add_words(shown, "-F", fields))
		return false;
	if (!replaces) {
		add(shown, TOOL_REPORT_OVERHEAD);
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
	if ((report->has[TOOL_REPORT_PARENT] || report->hides_parentless) && !has_chains(report)) {
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
