/* report_waits.c - time off the CPU in a report: events of its own, after those of the file.
 *
 * A wait begins with a sample of context-switches and has its row and stack.  When the thread returns, the time goes to the same row of
 * "offcpu-time", or of "runqueue-time" if the thread was preempted.  report_rows.c calls this for samples and records.
 */
#include <perfring/profile_fill.h>
#include <perfring/waits.h>
#include "report.h"

/* What a wait's `own` is here. */
enum {
	OWN_ROW, /* of the sample; 0: it is not shown */
	OWN_STACK,
	OWN_CPUMODE,
};

static const char *const NAMES[TOOL_REPORT_WAITS] = {PERFRING_PROFILE_OFF_CPU, PERFRING_PROFILE_RUNQUEUE};

/* ---- events ---- */

const char *tool_report_event_name(const struct tool_report *report, uint32_t number)
{
	const char *name = report->events[number].name;

	if (!name)
		name = perfring_file_event_name(report->input.data, tool_report_index(report, number));
	return name ? name : "?";
}

bool tool_report_wants(const struct tool_report *report, uint32_t number)
{
	const char *name = report->events[number].name, *events = report->filter.events;

	if (!name)
		return tool_filter_wants(&report->filter, report->input.data, tool_report_index(report, number));
	return !events || perfring_filter_has_word(events, name);
}

static void add_events(struct tool_report *report)
{
	report->waits_at = perfring_format_set_count(perfring_file_formats(report->input.data));
	for (uint32_t i = 0; i < TOOL_REPORT_WAITS; i++)
		tool_report_event_of(report, report->waits_at + i)->name = NAMES[i];
}

enum tool_report_known tool_report_is_switch(const struct tool_report *report, const struct perfring_format *format)
{
	return perfring_waits_is_switch(perfring_file_attr(report->input.data, format->index)) ? TOOL_REPORT_YES : TOOL_REPORT_NO;
}

bool tool_report_has_returns(const struct tool_report *report)
{
	return perfring_waits_has_returns(report->waits, perfring_file_formats(report->input.data));
}

/* ---- waits ---- */

void tool_report_waits_begin(struct tool_report *report, const struct perfring_sample *sample,
			     const struct tool_report_row *row)
{
	struct perfring_wait wait = {
		.tid = sample->tid,
		.begin = sample->time,
		.own = {[OWN_ROW] = (uintptr_t)row,
			[OWN_STACK] = report->stack,
			[OWN_CPUMODE] = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK},
	};

	if (!(sample->present & PERFRING_SAMPLE_TIME) || !(sample->present & PERFRING_SAMPLE_TID) || !sample->time)
		return;
	if (!report->waits_at)
		add_events(report);
	/* without space for it, it is a switch alone */
	if (perfring_waits_begin(report->waits, &wait) == -ENOMEM)
		tool_out_of_memory();
}

/* The row for time off the CPU beside that of the switch. */
static struct tool_report_row *row_of(struct tool_report *report, const struct tool_report_row *row, uint32_t number)
{
	struct tool_report_row key = *row;

	key.event = number;
	return tool_report_row_of(report, &key);
}

static void add(struct tool_report *report, const struct perfring_wait *wait, uint64_t time)
{
	const struct tool_report_row *row = (const struct tool_report_row *)(uintptr_t)wait->own[OWN_ROW];
	uint64_t weight = time > wait->begin ? time - wait->begin : 0;
	uint32_t number = report->waits_at + (wait->is_ready != 0);
	struct tool_report_event *event = &report->events[number];
	struct tool_report_row *its;

	if (!weight || !tool_report_wants(report, number))
		return;
	event->seen++;
	if (row || !report->is_relative)
		tool_report_count_event(event, weight);
	if (!row)
		return;
	its = row_of(report, row, number);
	tool_report_count(&its->cells[0], (unsigned)wait->own[OWN_CPUMODE], weight);
	if (report->callers)
		tool_report_callers_add(report, its, 0, (uint32_t)wait->own[OWN_STACK], weight);
}

void tool_report_waits_take(struct tool_report *report, const struct perfring_item *item,
			    const struct perfring_record *record)
{
	const struct perfring_wait *wait = tool_report_has_returns(report) ? perfring_waits_take(report->waits, record) : NULL;

	if (wait)
		add(report, wait, item->time);
}

void tool_report_waits_end(struct tool_report *report)
{
	uint64_t last = report->last_switch > report->last ? report->last_switch : report->last;
	const struct perfring_wait *wait;

	while ((wait = perfring_waits_next(report->waits)))
		add(report, wait, last);
}
