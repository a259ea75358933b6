/* report_diff.c - a report beside that of an older recording: which functions have a larger share now, and which a smaller one.
 *
 * Rows are the same if what they show is: addresses of functions differ between builds, so a function goes by its name.  Each file's
 * weights are shares of its own sum: recordings of any length compare.
 *
 * report_print.c and report_json.c show what is found.  Called once, after both files are read.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/profile.h>
#include "report.h"

/* ---- events ---- */

/* The only event that has samples; PERFRING_PROFILE_NONE: there are several, or none. */
static uint32_t only_event(const struct tool_report *report)
{
	uint32_t found = PERFRING_PROFILE_NONE, count = 0;

	for (uint32_t i = 0; i < report->event_count; i++)
		if (report->events[i].seen && !report->events[i].name && !count++)
			found = i;
	return count == 1 ? found : PERFRING_PROFILE_NONE;
}

/* The event of the old file that this one is compared with: that of its name, or the only one of both. */
static uint32_t old_event(const struct tool_report *report, uint32_t index)
{
	const struct tool_report *old = report->old;

	for (uint32_t i = 0; i < old->event_count; i++)
		if (!strcmp(tool_report_event_name(old, i), tool_report_event_name(report, index)))
			return i;
	return only_event(report) == index ? only_event(old) : PERFRING_PROFILE_NONE;
}

/* ---- rows ---- */

static int compare_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : !a - !b;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares what two rows show, except sums: without the column dso, functions of one name are equal in all objects. */
static int compare(const void *a, const void *b, void *of)
{
	const struct tool_report *report = of;
	const struct tool_report_row *one = *(struct tool_report_row *const *)a;
	const struct tool_report_row *other = *(struct tool_report_row *const *)b;
	int order = compare_numbers(one->event, other->event);

	order = order ? order : compare_text(one->symbol, other->symbol);
	if (report->has[TOOL_REPORT_DSO] || !one->symbol)
		order = order ? order : compare_text(one->object, other->object);
	order = order ? order : compare_text(one->comm, other->comm);
	order = order ? order : compare_numbers((unsigned char)one->mark, (unsigned char)other->mark);
	if (!one->symbol)
		order = order ? order : compare_numbers(one->address, other->address);
	order = order ? order : compare_numbers(one->tid, other->tid);
	order = order ? order : compare_numbers(one->cpu, other->cpu);
	order = order ? order : compare_text(one->parent, other->parent);
	order = order ? order : compare_text(one->trace, other->trace);
	order = order ? order : compare_text(one->line, other->line);
	order = order ? order : compare_text(one->source, other->source);
	order = order ? order : compare_numbers((uint32_t)one->socket, (uint32_t)other->socket);
	order = order ? order : compare_numbers(one->time, other->time);
	order = order ? order : compare_numbers(one->cgroup, other->cgroup);
	return order ? order : compare_numbers(one->ip, other->ip);
}

static void add(struct tool_report_cell *cell, const struct tool_report_cell *more)
{
	cell->samples = tool_plus(cell->samples, more->samples);
	cell->weight = tool_plus(cell->weight, more->weight);
	for (unsigned i = 0; i < sizeof(cell->mode) / sizeof(cell->mode[0]); i++)
		cell->mode[i] = tool_plus(cell->mode[i], more->mode[i]);
}

/* Merges rows that show the same into the first of them. */
static size_t merge(struct tool_report *report, struct tool_report_row **rows, size_t nr)
{
	size_t kept = 0;

	qsort_r(rows, nr, sizeof(*rows), compare, report);
	for (size_t i = 0; i < nr; i++) {
		if (kept && !compare(&rows[kept - 1], &rows[i], report))
			add(&rows[kept - 1]->cells[0], &rows[i]->cells[0]);
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

/* Adds a row for one of the old file that the new one does not have. */
static void add_vanished(struct tool_report *report, const struct tool_report_row *row)
{
	struct tool_report_row key = *row;

	tool_report_row_of(report, &key)->cells[0].old = row->cells[0].weight;
}

void tool_report_diff(struct tool_report *report)
{
	struct tool_report *old = report->old;
	size_t at = 0, nr, old_nr;
	uint32_t *events = tool_allocate(NULL, old->event_count + (size_t)1, sizeof(*events));

	for (uint32_t i = 0; i < old->event_count; i++)
		events[i] = PERFRING_PROFILE_NONE;
	for (uint32_t i = 0; i < report->event_count; i++) {
		uint32_t its = old_event(report, i);

		if (its == PERFRING_PROFILE_NONE || events[its] != PERFRING_PROFILE_NONE)
			continue;
		events[its] = i;
		report->events[i].old_weight = old->events[its].weight;
	}
	/* the rows of the old file as of the events of the new one */
	for (size_t i = old_nr = 0; i < old->nr; i++) {
		if (events[old->rows[i]->event] == PERFRING_PROFILE_NONE)
			continue;
		old->rows[old_nr] = old->rows[i];
		old->rows[old_nr]->event = events[old->rows[old_nr]->event];
		old_nr++;
	}
	old_nr = merge(report, old->rows, old_nr);
	nr = report->nr = merge(report, report->rows, report->nr);
	for (size_t i = 0; i < old_nr; i++) {
		while (at < nr && compare(&report->rows[at], &old->rows[i], report) < 0)
			at++;
		if (at < nr && !compare(&report->rows[at], &old->rows[i], report))
			report->rows[at]->cells[0].old = old->rows[i]->cells[0].weight;
		else
			add_vanished(report, old->rows[i]);
	}
	free(events);
}

double tool_report_change(const struct tool_report_event *event, const struct tool_report_cell *cell)
{
	return tool_report_percent(event, cell->weight) - tool_report_old_percent(event, cell);
}

enum tool_report_state tool_report_state(const struct tool_report_cell *cell)
{
	return !cell->old ? TOOL_REPORT_NEW : !cell->weight ? TOOL_REPORT_VANISHED : TOOL_REPORT_BOTH;
}
