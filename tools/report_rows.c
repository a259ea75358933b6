/* report_rows.c - the samples of a report: into which row each goes. */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include "event_groups.h"
#include "report.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* ---- events ---- */

struct tool_report_event *tool_report_event_of(struct tool_report *report, uint32_t index)
{
	if (index >= report->event_count)
		report->events = tool_allocate(report->events, index + (size_t)1, sizeof(*report->events));
	for (; index >= report->event_count; report->event_count++)
		report->events[report->event_count] =
			(struct tool_report_event){.leader = report->event_count, .members = 1};
	return &report->events[index];
}

/* members: at least 1, all of them known events that are in no group yet. */
static void make_group(struct tool_report *report, const struct tool_group *group)
{
	struct tool_report_event *events = &report->events[group->leader];

	if (group->members > TOOL_REPORT_MEMBERS && report->groups != TOOL_REPORT_NO_GROUPS && !report->has_long_group) {
		tool_complain("report: a group of %" PRIu32 " events, which is more than %d, has a table for each",
			      group->members, TOOL_REPORT_MEMBERS);
		report->has_long_group = true; /* one line is enough */
	}
	if (group->members < 2 || group->members > TOOL_REPORT_MEMBERS)
		return;
	events->leads_group = true;
	if (report->groups == TOOL_REPORT_NO_GROUPS)
		return;
	for (uint32_t i = 0; i < group->members; i++)
		events[i].leader = group->leader;
	events->members = group->members;
	events->group_name = group->name;
}

void tool_report_begin(struct tool_report *report)
{
	uint32_t count = perfring_format_set_count(perfring_file_formats(report->input.data));
	struct tool_groups groups;
	struct tool_group group;
	bool has_groups = false;

	report->rows = tool_allocate(NULL, report->capacity, sizeof(*report->rows));
	if (!count)
		return;
	tool_report_event_of(report, count - 1);
	for (tool_groups_open(&groups, report->input.data); tool_groups_next(&groups, &group); has_groups = true)
		make_group(report, &group);
	if (report->groups == TOOL_REPORT_ONE_GROUP && !has_groups)
		make_group(report, &(struct tool_group){NULL, 0, count});
}

/* ---- rows ---- */

static int compare_text(const char *a, const char *b)
{
	if (a == b)
		return 0;
	return !a ? 1 : !b ? -1 : strcmp(a, b);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* What tells rows apart. */
static int compare_keys(const void *a, const void *b)
{
	const struct tool_report_row *one = a, *other = b;
	int order = compare_numbers(one->event, other->event);

	order = order ? order : compare_numbers(one->address, other->address);
	order = order ? order : compare_numbers(one->tid, other->tid);
	order = order ? order : compare_numbers(one->ip, other->ip);
	order = order ? order : compare_numbers(one->cpu, other->cpu);
	order = order ? order : compare_numbers(one->time, other->time);
	order = order ? order : compare_numbers((unsigned char)one->mark, (unsigned char)other->mark);
	order = order ? order : compare_text(one->symbol, other->symbol);
	order = order ? order : compare_text(one->object, other->object);
	order = order ? order : compare_text(one->comm, other->comm);
	return order ? order : compare_text(one->trace, other->trace);
}

static struct tool_report_row *get_row(struct tool_report *report, const struct tool_report_row *key)
{
	size_t cells = report->events[key->event].members * sizeof(struct tool_report_cell);
	struct tool_report_row *row;
	void *at = tfind(key, &report->tree, compare_keys);

	if (at)
		return *(struct tool_report_row **)at;
	row = tool_allocate(NULL, 1, sizeof(*row) + cells);
	*row = *key;
	memset(row->cells, 0, cells);
	tool_insert(row, &report->tree, compare_keys);
	if (report->nr == report->capacity) {
		report->capacity *= 2;
		report->rows = tool_allocate(report->rows, report->capacity, sizeof(*report->rows));
	}
	return report->rows[report->nr++] = row;
}

/* ---- samples ---- */

/* The entry of `recent` for this address and thread: known, or new since names or mappings changed. */
static struct tool_report_recent *find_recent(struct tool_report *report, uint32_t event,
					      const struct perfring_sample *sample)
{
	struct tool_report_recent key = {
		.change = report->change,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.event = event,
		.cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
		.present = sample->present & (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID),
	};
	uint64_t hash = (key.ip ^ (uint64_t)key.tid << 32 ^ key.event ^ (uint64_t)key.cpumode << 29) *
			UINT64_C(0x9e3779b97f4a7c15);
	struct tool_report_recent *recent = &report->recent[hash >> (64 - TOOL_REPORT_RECENT_BITS)];

	/* Others of one address may differ in what these columns show. */
	if (recent->is_known && !report->has[TOOL_REPORT_CPU] && !report->has[TOOL_REPORT_TIME] &&
	    !report->has[TOOL_REPORT_TRACE] && recent->change == key.change && recent->ip == key.ip &&
	    recent->pid == key.pid && recent->tid == key.tid && recent->event == key.event &&
	    recent->cpumode == key.cpumode && recent->present == key.present)
		return recent;
	*recent = key;
	return recent;
}

/* The text of a tracepoint, of which the machine keeps one copy. */
static const char *trace_of(struct tool_report *report, uint32_t event, const struct perfring_sample *sample)
{
	const struct perf_event_attr *attr = perfring_file_attr(report->input.data, event);
	const char *text;

	if (!attr || attr->type != PERFRING_TYPE_TRACEPOINT || !(sample->present & PERFRING_SAMPLE_RAW))
		return "N/A";
	text = tool_tracepoints_print(report->tracepoints, event, sample);
	return text ? tool_machine_name(report->machine, text, strlen(text)) : "";
}

static bool is_shown(const struct tool_report *report, const struct perfring_sample *sample, const char *comm,
		     const struct tool_symbol *symbol)
{
	if (!tool_filter_shows(&report->filter, sample, comm, symbol->object, symbol->name))
		return false;
	return !report->symbol_part || (symbol->name && strstr(symbol->name, report->symbol_part));
}

/* Where an address without a symbol is: in its object's file, where that is known. */
static uint64_t address_of(const struct tool_report *report, unsigned cpumode, const struct perfring_sample *sample)
{
	const struct tool_mapping *map = cpumode == PERFRING_RECORD_MISC_USER && (sample->present & PERFRING_SAMPLE_TID)
						 ? tool_machine_user(report->machine, sample->pid, sample->ip)
						 : NULL;

	return map && tool_mapping_has_file(map) ? sample->ip - map->addr + map->pgoff : sample->ip;
}

/* The row of a sample; NULL: it is not shown.  Which samples have no symbol is counted of all. */
static struct tool_report_row *find_row(struct tool_report *report, uint32_t event,
					const struct perfring_sample *sample, const char *comm,
					const struct tool_symbol *symbol)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct tool_report_row key = {.event = report->events[event].leader, .has_no_symbol = !symbol->name};
	const bool *has = report->has;

	if (!is_shown(report, sample, comm, symbol))
		return NULL;
	if (has[TOOL_REPORT_COMM])
		key.comm = comm;
	if (has[TOOL_REPORT_PID] || has[TOOL_REPORT_TID])
		key.tid = sample->present & PERFRING_SAMPLE_TID ? sample->tid : UINT32_MAX;
	if (has[TOOL_REPORT_DSO] || has[TOOL_REPORT_SYM])
		key.object = symbol->object ? tool_filter_short_name(symbol->object) : "[unknown]";
	if (has[TOOL_REPORT_SYM]) {
		key.mark = cpumode < 6 ? "!k.Hgu"[cpumode] : '!';
		key.symbol = symbol->name;
		key.address = symbol->name ? symbol->address - symbol->offset : address_of(report, cpumode, sample);
	}
	if (has[TOOL_REPORT_CPU])
		key.cpu = sample->present & PERFRING_SAMPLE_CPU ? sample->cpu : UINT32_MAX;
	if (has[TOOL_REPORT_TIME])
		key.time = sample->present & PERFRING_SAMPLE_TIME ? sample->time - sample->time % report->quantum : 0;
	if (has[TOOL_REPORT_TRACE])
		key.trace = trace_of(report, event, sample);
	if (has[TOOL_REPORT_ADDR])
		key.ip = sample->ip;
	return get_row(report, &key);
}

static void learn(struct tool_report *report, uint32_t event, const struct perfring_sample *sample,
		  struct tool_report_recent *recent)
{
	struct tool_symbol symbol = {.nameless = TOOL_NAMELESS_MODE};
	bool has_task = sample->present & PERFRING_SAMPLE_TID;
	const char *comm = has_task ? tool_machine_comm(report->machine, sample->tid) : "[unknown]";

	if (sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(report->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
				  has_task ? sample->pid : 0, sample->ip, &symbol);
	recent->is_known = true;
	recent->nameless = symbol.nameless;
	recent->row =
		report->hides_unresolved && symbol.nameless ? NULL : find_row(report, event, sample, comm, &symbol);
}

static void add_to_cell(struct tool_report_cell *cell, const struct perfring_sample *sample, uint64_t weight)
{
	static const signed char places[] = {
		[PERFRING_RECORD_MISC_KERNEL] = 1,
		[PERFRING_RECORD_MISC_USER] = 2,
		[PERFRING_RECORD_MISC_GUEST_KERNEL] = 3,
		[PERFRING_RECORD_MISC_GUEST_USER] = 4,
	};
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	int place = cpumode < sizeof(places) ? places[cpumode] : 0;

	cell->samples++;
	cell->weight = plus(cell->weight, weight);
	if (place)
		cell->mode[place - 1] = plus(cell->mode[place - 1], weight);
}

static void take_sample(struct tool_report *report, const struct perfring_format *format,
			const struct perfring_sample *sample)
{
	struct tool_report_event *event = tool_report_event_of(report, format->index);
	struct tool_report_recent *recent = find_recent(report, format->index, sample);
	uint64_t weight = tool_input_period(&report->input, format, sample);

	if (!recent->is_known)
		learn(report, format->index, sample, recent);
	if (report->hides_unresolved && recent->nameless)
		return;
	event->seen++;
	if (recent->row || !report->is_relative) {
		report->nameless[recent->nameless]++;
		event->samples++;
		event->weight = plus(event->weight, weight);
	}
	if (recent->row)
		add_to_cell(&recent->row->cells[format->index - event->leader], sample, weight);
}

static void take_record(struct tool_report *report, const struct perfring_item *item,
			const struct perfring_record *record)
{
	struct tool_report_event *event;

	tool_machine_take(report->machine, record);
	report->change++;
	switch (record->type) {
	case PERFRING_RECORD_LOST:
		/* Its id is of the event that wrote next, not of the one that lost (docs/abi.md 14.12). */
		report->lost_records = plus(report->lost_records, record->is.lost.lost);
		break;
	case PERFRING_RECORD_LOST_SAMPLES:
		if (item->format) {
			event = tool_report_event_of(report, item->format->index);
			event->lost = plus(event->lost, record->is.lost_samples.lost);
		}
		break;
	case PERFRING_RECORD_THROTTLE:
		report->throttles++;
		break;
	}
}

void tool_report_take(struct tool_report *report, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	const struct perfring_format *format;
	struct perfring_record record;
	struct perfring_sample sample;

	if (item->record->type != PERFRING_RECORD_SAMPLE) {
		if (!perfring_record_decode(item->format, item->record, &record, &fault))
			take_record(report, item, &record);
	} else if (!item->format) {
		report->unread++;
	} else if (!perfring_sample_decode(item->format, item->record, &sample, &fault)) {
		bool counts = tool_filter_counts(&report->filter, &sample);

		perfring_split_begin(report->input.split, item->format, &sample);
		while (tool_input_event(&report->input, &format))
			if (counts)
				take_sample(report, format, &sample);
	} else {
		report->unread++;
	}
	if (fault.what)
		tool_input_fault(&report->input, &fault);
}

/* ---- order ---- */

static int compare_cells(const struct tool_report *report, const struct tool_report_row *one,
			 const struct tool_report_row *other, enum tool_report_column column)
{
	for (uint32_t i = 0; i < report->events[one->event].members; i++) {
		const struct tool_report_cell *a = &one->cells[i], *b = &other->cells[i];
		int order;

		if (column == TOOL_REPORT_SAMPLES)
			order = compare_numbers(b->samples, a->samples);
		else if (column == TOOL_REPORT_OVERHEAD || column == TOOL_REPORT_PERIOD)
			order = compare_numbers(b->weight, a->weight);
		else
			order = compare_numbers(b->mode[column - TOOL_REPORT_SYS], a->mode[column - TOOL_REPORT_SYS]);
		if (order)
			return order;
	}
	return 0;
}

static int compare_column(const struct tool_report *report, const struct tool_report_row *one,
			  const struct tool_report_row *other, enum tool_report_column column)
{
	switch (column) {
	case TOOL_REPORT_PID:
	case TOOL_REPORT_TID:
		return compare_numbers(one->tid, other->tid);
	case TOOL_REPORT_COMM:
		return compare_text(one->comm, other->comm);
	case TOOL_REPORT_DSO:
		return compare_text(one->object, other->object);
	case TOOL_REPORT_SYM:
		return compare_text(one->symbol, other->symbol);
	case TOOL_REPORT_CPU:
		return compare_numbers(one->cpu, other->cpu);
	case TOOL_REPORT_TRACE:
		return compare_text(one->trace, other->trace);
	case TOOL_REPORT_TIME:
		return compare_numbers(one->time, other->time);
	case TOOL_REPORT_ADDR: /* as signed numbers, as perf: the kernel's are below those of user space */
		return (int64_t)one->ip < (int64_t)other->ip ? -1 : (int64_t)one->ip > (int64_t)other->ip;
	default:
		return compare_cells(report, one, other, column);
	}
}

/* By group, then by the columns that are sorted by; what is equal by what tells it apart. */
static int compare_rows(const void *a, const void *b, void *of)
{
	const struct tool_report_row *one = *(struct tool_report_row *const *)a;
	const struct tool_report_row *other = *(struct tool_report_row *const *)b;
	const struct tool_report *report = of;
	int order = compare_numbers(one->event, other->event);

	for (size_t i = 0; !order && i < report->sorted.nr; i++)
		order = compare_column(report, one, other, report->sorted.columns[i]);
	return order ? order : compare_keys(one, other);
}

void tool_report_sort(struct tool_report *report)
{
	qsort_r(report->rows, report->nr, sizeof(*report->rows), compare_rows, report);
}

void tool_report_end(struct tool_report *report)
{
	tdestroy(report->tree, free);
	free(report->rows);
	free(report->events);
}
