/* report_rows.c - the samples of a report: into which row each goes.
 *
 * report.c calls take for each record, begin before and sort after.  A sample's row is found by its key: the values of the chosen
 * columns, in one of many trees (tree_of).  Names come from symbol_names.c, filters from filter.h.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <perfring/waits.h>
#include "event_groups.h"
#include "report.h"

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

/* Makes events a group.  members: at least 1, all of them known events that are in no group yet. */
static void make_group(struct tool_report *report, const struct tool_group *group)
{
	struct tool_report_event *events = &report->events[group->leader];

	if (group->members > TOOL_REPORT_MEMBERS && report->groups != TOOL_REPORT_NO_GROUPS &&
	    !report->has_long_group) {
		tool_complain("report: a group of %" PRIu32 " events, which is more than %d, has a table for each",
			      group->members, TOOL_REPORT_MEMBERS);
		report->has_long_group = true; /* one line is enough */
	}
	if (group->members < 2 || group->members > TOOL_REPORT_MEMBERS)
		return;
	for (uint32_t i = 0; i < group->members; i++)
		if (!tool_filter_wants(&report->filter, report->input.data, group->leader + i))
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
	if (perfring_waits_open(&report->waits))
		tool_out_of_memory();
	if (report->has[TOOL_REPORT_SOCKET])
		tool_topology_read(&report->topology, report->input.data);
	for (int i = 0; i < TOOL_REPORT_COLUMN_COUNT; i++)
		report->has_singles =
			report->has_singles || (report->has[i] && tool_report_is_single((enum tool_report_column)i));
	report->has_singles = report->has_singles || report->hides_parentless;
	if (report->cumulates || report->graph.print != TOOL_REPORT_NO_TREES)
		tool_report_callers_open(report);
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

static int compare_signed(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_places(const struct tool_report_place *a, const struct tool_report_place *b)
{
	int order = compare_numbers(a->dev, b->dev);

	return order ? order : compare_numbers(a->ino, b->ino);
}

int tool_report_compare_keys(const void *a, const void *b)
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
	order = order ? order : compare_text(one->trace, other->trace);
	order = order ? order : compare_numbers(one->weight, other->weight);
	order = order ? order : compare_numbers(one->latency, other->latency);
	order = order ? order : compare_numbers(one->cgroup, other->cgroup);
	order = order ? order : compare_numbers(one->page_size, other->page_size);
	order = order ? order : compare_numbers(one->transaction, other->transaction);
	order = order ? order : compare_signed(one->symbol_size, other->symbol_size);
	order = order ? order : compare_signed(one->object_size, other->object_size);
	order = order ? order : compare_text(one->parent, other->parent);
	order = order ? order : compare_numbers((uint32_t)one->socket, (uint32_t)other->socket);
	order = order ? order : compare_places(&one->place, &other->place);
	order = order ? order : compare_text(one->line, other->line);
	return order ? order : compare_text(one->source, other->source);
}

/* The number of the tree for a key: by the members that mostly differ, and are no texts. */
static uint64_t tree_of(const struct tool_report_row *key)
{
	uint64_t hash = key->address ^ (uint64_t)key->tid << 32 ^ key->event ^ key->ip ^ key->time;

	return hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TOOL_REPORT_TREE_BITS);
}

struct tool_report_row *tool_report_find_row(const struct tool_report *report, const struct tool_report_row *key)
{
	void *at = tfind(key, &report->trees[tree_of(key)], tool_report_compare_keys);

	return at ? *(struct tool_report_row **)at : NULL;
}

struct tool_report_row *tool_report_row_of(struct tool_report *report, const struct tool_report_row *key)
{
	size_t cells = report->events[key->event].members * sizeof(struct tool_report_cell);
	struct tool_report_row *row;
	struct tool_report_row *known = tool_report_find_row(report, key);

	if (known)
		return known;
	row = tool_allocate(NULL, 1, sizeof(*row) + cells);
	*row = *key;
	memset(row->cells, 0, cells);
	tool_insert(row, &report->trees[tree_of(row)], tool_report_compare_keys);
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

	if (recent->is_known && !report->has_singles && recent->change == key.change && recent->ip == key.ip &&
	    recent->pid == key.pid && recent->tid == key.tid && recent->event == key.event &&
	    recent->cpumode == key.cpumode && recent->present == key.present)
		return recent;
	*recent = key;
	return recent;
}

/* The place in the cache for a payload's text; NULL: the payload is too long. */
static struct tool_report_payload *find_payload(struct tool_report *report, uint32_t event,
						const struct perfring_raw *raw)
{
	struct tool_report_payload *payload;
	uint64_t hash = event;

	if (raw->size > TOOL_REPORT_PAYLOAD)
		return NULL;
	for (uint32_t i = 0; i < raw->size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, raw->data + i, raw->size - i < 8 ? raw->size - i : 8);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	payload = &report->payloads[hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TOOL_REPORT_PAYLOAD_BITS)];
	if (payload->text && payload->change == report->change && payload->event == event &&
	    payload->size == raw->size && !memcmp(payload->bytes, raw->data, raw->size))
		return payload;
	payload->text = NULL;
	payload->change = report->change;
	payload->event = event;
	payload->size = raw->size;
	memcpy(payload->bytes, raw->data, raw->size);
	return payload;
}

/* The text of a tracepoint, of which the machine keeps one copy. */
static const char *trace_of(struct tool_report *report, uint32_t event, const struct perfring_sample *sample)
{
	uint32_t index = tool_report_index(report, event);
	const struct perf_event_attr *attr = perfring_file_attr(report->input.data, index);
	struct tool_report_payload *payload;
	const char *text;

	if (!attr || attr->type != PERFRING_TYPE_TRACEPOINT || !(sample->present & PERFRING_SAMPLE_RAW))
		return "N/A";
	payload = find_payload(report, event, &sample->raw);
	if (payload && payload->text)
		return payload->text;
	text = tool_tracepoints_print(report->tracepoints, index, sample);
	text = text ? tool_machine_name(report->machine, text, strlen(text)) : "";
	if (payload)
		payload->text = text;
	return text;
}

/* The line of the sample, and its file; perf's words where they are not known. */
static void fill_line(struct tool_report *report, struct tool_report_row *key, const struct perfring_sample *sample,
		      const struct perfring_name *symbol)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct perfring_symbol_frame frame = {.name = NULL};
	char text[TOOL_SYMBOLS_LINE], *colon;

	tool_symbols_frames(report->symbols, cpumode, sample->pid, sample->ip, &frame, 1);
	if (!*tool_symbols_line(&frame, report->whole_paths, text)) {
		if (cpumode == PERFRING_RECORD_MISC_KERNEL && symbol->name)
			snprintf(text, sizeof(text), "%.4000s+%" PRIu64, symbol->name, symbol->offset);
		else
			snprintf(text, sizeof(text), "??:0");
		frame.file = NULL;
	}
	if (report->has[TOOL_REPORT_SRCLINE])
		key->line = tool_machine_name(report->machine, text, strlen(text));
	colon = frame.file ? strrchr(text, ':') : text;
	if (report->has[TOOL_REPORT_SRCFILE])
		key->source = tool_machine_name(report->machine, text, colon ? (size_t)(colon - text) : 0);
}

static bool is_shown(const struct tool_report *report, const struct perfring_sample *sample, const char *comm,
		     const struct perfring_name *symbol)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;

	/* without a frame that is kept it was not moved to one */
	if (report->filter.frames && !(sample->present & PERFRING_SAMPLE_IP &&
				       perfring_filter_modes(&report->filter) >> cpumode & 1))
		return false;
	if (!perfring_filter_shows(&report->filter, sample, comm, symbol->object, symbol->name))
		return false;
	return !report->symbol_part || (symbol->name && strstr(symbol->name, report->symbol_part));
}

/* The size in bytes of the mapping that has the address. */
static int64_t object_size(const struct tool_report *report, unsigned cpumode, const struct perfring_sample *sample)
{
	const struct perfring_mapping *map = NULL;

	if (sample->present & PERFRING_SAMPLE_IP && cpumode == PERFRING_RECORD_MISC_KERNEL)
		map = tool_machine_kernel(report->machine, sample->ip);
	else if (sample->present & PERFRING_SAMPLE_IP && cpumode == PERFRING_RECORD_MISC_USER)
		map = tool_machine_user(report->machine, sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0,
					sample->ip);
	return map ? (int64_t)(map->end - map->addr) : -1;
}

/* ---- callers ---- */

static bool is_parent(struct tool_report *report, const char *name)
{
	uint64_t hash = (uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15);
	struct tool_report_match *match = &report->matches[hash >> (64 - TOOL_REPORT_MATCH_BITS)];

	if (match->name != name) /* equal names of one object are one pointer */
		*match = (struct tool_report_match){name, !regexec(&report->parents, name, 0, NULL, 0)};
	return match->matches;
}

/* The first function of the callchain, from the sample on, whose name matches; NULL: none does. */
static const char *parent_of(struct tool_report *report)
{
	const struct perfring_sample *sample = report->recorded;
	uint32_t modes = perfring_filter_modes(&report->filter);
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	uint32_t pid = sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0;
	struct perfring_list chain;
	struct perfring_name symbol;
	uint64_t frames = 0;

	tool_symbols_chain(report->symbols, sample, report->max_stack, &chain);
	for (uint64_t i = 0; i < chain.nr && frames < report->max_stack; i++) {
		uint64_t ip = chain.words[i];

		if (!perfring_stacks_frame(ip, &cpumode) || !(modes >> cpumode & 1))
			continue;
		frames++;
		tool_symbols_find(report->symbols, cpumode, pid, ip, &symbol);
		if (symbol.name && is_parent(report, symbol.name))
			return symbol.name;
	}
	return NULL;
}

/* ---- rows ---- */

/* Sets the columns that may differ for each sample (tool_report_is_single). */
static void take_singles(const struct tool_report *report, const struct perfring_sample *sample,
			 struct tool_report_row *key)
{
	const bool *has = report->has;
	uint64_t present = sample->present;

	if (has[TOOL_REPORT_SOCKET])
		key->socket = !(present & PERFRING_SAMPLE_CPU)       ? -1
			      : sample->cpu < report->topology.count ? report->topology.cpus[sample->cpu].socket
								     : -1;
	if ((has[TOOL_REPORT_WEIGHT] || has[TOOL_REPORT_LOCAL_WEIGHT]) && present & PERFRING_SAMPLE_WEIGHT)
		key->weight = sample->weight;
	else if ((has[TOOL_REPORT_WEIGHT] || has[TOOL_REPORT_LOCAL_WEIGHT]) && present & PERFRING_SAMPLE_WEIGHT_STRUCT)
		key->weight = sample->weight_struct.var1;
	if ((has[TOOL_REPORT_INS_LAT] || has[TOOL_REPORT_LOCAL_INS_LAT]) && present & PERFRING_SAMPLE_WEIGHT_STRUCT)
		key->latency = sample->weight_struct.var2;
	if (has[TOOL_REPORT_CGROUP] && present & PERFRING_SAMPLE_CGROUP)
		key->cgroup = sample->cgroup;
	if (has[TOOL_REPORT_TRANSACTION] && present & PERFRING_SAMPLE_TRANSACTION)
		key->transaction = sample->transaction;
	if (has[TOOL_REPORT_CODE_PAGE_SIZE] && present & PERFRING_SAMPLE_CODE_PAGE_SIZE)
		key->page_size = sample->code_page_size;
	if (has[TOOL_REPORT_CGROUP_ID] && present & PERFRING_SAMPLE_TID)
		key->place = tool_report_place(report, sample->tid);
}

/* A name that filter.h composes, for code of a JIT, is kept by the machine. */
const char *tool_report_short_name(struct tool_report *report, const char *object)
{
	const char *name = tool_filter_short_name(object);

	return strncmp(object, "/tmp/", 5) ? name : tool_machine_name(report->machine, name, strlen(name));
}

/* The row of a sample; NULL: it is not shown.  Samples without a symbol are counted in both cases. */
static struct tool_report_row *find_row(struct tool_report *report, uint32_t event,
					const struct perfring_sample *sample, const char *comm,
					const struct perfring_name *symbol)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct tool_report_row key = {.event = report->events[event].leader, .has_no_symbol = !symbol->name};
	const bool *has = report->has;

	if (!is_shown(report, sample, comm, symbol))
		return NULL;
	if (has[TOOL_REPORT_PARENT] || report->hides_parentless)
		key.parent = parent_of(report);
	if (report->hides_parentless && !key.parent)
		return NULL;
	if (has[TOOL_REPORT_COMM])
		key.comm = comm;
	if (has[TOOL_REPORT_PID] || has[TOOL_REPORT_TID])
		key.tid = sample->present & PERFRING_SAMPLE_TID ? sample->tid : UINT32_MAX;
	if (has[TOOL_REPORT_DSO] || has[TOOL_REPORT_SYM])
		key.object = symbol->object ? tool_report_short_name(report, symbol->object) : "[unknown]";
	if (has[TOOL_REPORT_SYM]) {
		key.mark = cpumode < 6 ? "!k.Hgu"[cpumode] : '!';
		key.symbol = symbol->name;
		key.address = symbol->name ? symbol->address - symbol->offset
					   : perfring_names_place(
						     tool_symbols_names(report->symbols), cpumode,
						     sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0, sample->ip);
	}
	if (has[TOOL_REPORT_CPU])
		key.cpu = sample->present & PERFRING_SAMPLE_CPU ? sample->cpu : UINT32_MAX;
	if (has[TOOL_REPORT_TIME])
		key.time = sample->present & PERFRING_SAMPLE_TIME ? sample->time - sample->time % report->quantum : 0;
	if (has[TOOL_REPORT_TRACE])
		key.trace = trace_of(report, event, sample);
	if (has[TOOL_REPORT_ADDR])
		key.ip = sample->ip;
	if (has[TOOL_REPORT_SYMBOL_SIZE])
		key.symbol_size = symbol->size;
	if (has[TOOL_REPORT_DSO_SIZE])
		key.object_size = object_size(report, cpumode, sample);
	take_singles(report, sample, &key);
	if (has[TOOL_REPORT_SRCLINE] || has[TOOL_REPORT_SRCFILE])
		fill_line(report, &key, sample, symbol);
	return tool_report_row_of(report, &key);
}

static void learn(struct tool_report *report, uint32_t event, const struct perfring_sample *sample,
		  struct tool_report_recent *recent)
{
	struct perfring_name symbol = {.size = -1, .nameless = PERFRING_NAMELESS_MODE};
	bool has_task = sample->present & PERFRING_SAMPLE_TID;
	const char *comm = has_task ? tool_machine_comm(report->machine, sample->tid) : "[unknown]";

	if (sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(report->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
				  has_task ? sample->pid : 0, sample->ip, &symbol);
	recent->is_known = true;
	recent->nameless = symbol.nameless;
	recent->row =
		report->hides_unresolved && symbol.nameless ? NULL : find_row(report, event, sample, comm, &symbol);
	if (recent->row && has_task)
		recent->row->last_comm = comm;
}

void tool_report_count_event(struct tool_report_event *event, uint64_t weight)
{
	event->samples++;
	event->weight = tool_plus(event->weight, weight);
}

void tool_report_count(struct tool_report_cell *cell, unsigned cpumode, uint64_t weight)
{
	static const signed char places[] = {
		[PERFRING_RECORD_MISC_KERNEL] = 1,
		[PERFRING_RECORD_MISC_USER] = 2,
		[PERFRING_RECORD_MISC_GUEST_KERNEL] = 3,
		[PERFRING_RECORD_MISC_GUEST_USER] = 4,
	};
	int place = cpumode < sizeof(places) ? places[cpumode] : 0;

	cell->samples++;
	cell->weight = tool_plus(cell->weight, weight);
	if (place)
		cell->mode[place - 1] = tool_plus(cell->mode[place - 1], weight);
}

static void take_stack(struct tool_report *report)
{
	report->stack = tool_report_callers_stack(report, report->recorded);
	report->has_stack = true;
	report->stacks++;
	report->truncated += tool_symbols_is_truncated(report->symbols);
}

static void take_time(struct tool_report *report, uint64_t time)
{
	if (!time)
		return;
	if (!report->last || time < report->first)
		report->first = time;
	if (time > report->last)
		report->last = time;
}

static void take_sample(struct tool_report *report, const struct perfring_format *format,
			const struct perfring_sample *sample)
{
	uint32_t number = tool_report_number(report, format), cell;
	struct tool_report_event *event = tool_report_event_of(report, number);
	bool is_wanted = !report->filter.events || tool_report_wants(report, number), is_switch;
	struct tool_report_recent *recent;
	uint64_t weight;

	if (event->is_switch == TOOL_REPORT_UNKNOWN)
		event->is_switch = tool_report_is_switch(report, format);
	is_switch = event->is_switch == TOOL_REPORT_YES && tool_report_has_returns(report);
	if (!is_wanted && !is_switch)
		return;
	recent = find_recent(report, number, sample);
	weight = tool_input_period(&report->input, format, sample);
	if (!recent->is_known)
		learn(report, number, sample, recent);
	if (report->hides_unresolved && recent->nameless)
		return;
	cell = number - event->leader;
	event->seen += is_wanted;
	if (is_wanted && (recent->row || !report->is_relative)) {
		report->nameless[recent->nameless]++;
		tool_report_count_event(event, weight);
	}
	if (recent->row && report->callers && !report->has_stack)
		take_stack(report);
	if (recent->row && is_wanted) {
		tool_report_count(&recent->row->cells[cell], sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK, weight);
		if (report->callers)
			tool_report_callers_add(report, recent->row, cell, report->stack, weight);
	}
	if (is_switch)
		tool_report_waits_begin(report, sample, recent->row);
}

static void take_record(struct tool_report *report, const struct perfring_item *item,
			const struct perfring_record *record)
{
	struct tool_report_event *event;

	tool_report_take_place(report, record);
	tool_symbols_learn(report->symbols, record);
	report->change++;
	switch (record->type) {
	case PERFRING_RECORD_LOST:
		/* Its id is of the event that wrote next, not of the one that lost (docs/abi.md 14.12). */
		report->lost_records = tool_plus(report->lost_records, record->is.lost.lost);
		break;
	case PERFRING_RECORD_LOST_SAMPLES:
		if (item->format) {
			event = tool_report_event_of(report, tool_report_number(report, item->format));
			event->lost = tool_plus(event->lost, record->is.lost_samples.lost);
		}
		break;
	case PERFRING_RECORD_THROTTLE:
		report->throttles++;
		break;
	case PERFRING_RECORD_SWITCH:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
		report->last_switch = item->time > report->last_switch ? item->time : report->last_switch;
		tool_report_waits_take(report, item, record);
		break;
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
		tool_report_waits_take(report, item, record);
		break;
	}
}

void tool_report_take(struct tool_report *report, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	const struct perfring_format *format;
	struct perfring_record record;
	struct perfring_sample sample, moved;

	if (item->record->type != PERFRING_RECORD_SAMPLE) {
		if (!perfring_record_decode(item->format, item->record, &record, &fault))
			take_record(report, item, &record);
	} else if (!item->format) {
		report->unread++;
	} else if (!perfring_sample_decode(item->format, item->record, &sample, &fault)) {
		bool counts = perfring_filter_counts(&report->filter, &sample);
		const struct perfring_sample *shown = report->recorded = &sample;
		bool more;

		if (report->filter.frames) {
			moved = sample;
			perfring_stacks_innermost(&moved, perfring_filter_modes(&report->filter));
			shown = &moved;
		}
		if (tool_symbols_advance(report->symbols, item->time))
			report->change++;
		report->has_stack = false;
		if (counts && sample.present & PERFRING_SAMPLE_TIME)
			take_time(report, sample.time);
		for (more = tool_input_event(&report->input, item->format, &sample, &format); more;
		     more = tool_input_more(&report->input, &format))
			if (counts)
				take_sample(report, format, shown);
	} else {
		report->unread++;
	}
	if (fault.what)
		tool_input_fault(&report->input, &fault);
}

/* ---- order ---- */

static int compare_cell(const struct tool_report_cell *a, const struct tool_report_cell *b,
			enum tool_report_column column)
{
	if (column == TOOL_REPORT_SAMPLES)
		return compare_numbers(b->samples, a->samples);
	if (column == TOOL_REPORT_CHILDREN)
		return compare_numbers(b->children, a->children);
	if (column == TOOL_REPORT_OLD)
		return compare_numbers(b->old, a->old);
	if (column == TOOL_REPORT_OVERHEAD || column == TOOL_REPORT_PERIOD)
		return compare_numbers(b->weight, a->weight);
	return compare_numbers(b->mode[column - TOOL_REPORT_SYS], a->mode[column - TOOL_REPORT_SYS]);
}

/* Compares two rows by the weights of the group's events in their order.  With --group-sort-idx N, as perf: by event N, then by the
 * others but the first; by the first only, if there is no event N. */
static int compare_cells(const struct tool_report *report, const struct tool_report_row *one,
			 const struct tool_report_row *other, enum tool_report_column column)
{
	uint32_t members = report->events[one->event].members, first = report->group_index;
	int order;

	first = first < members ? first : 0;
	order = compare_cell(&one->cells[first], &other->cells[first], column);
	if (report->group_index && !first)
		return order;
	for (uint32_t i = 1; !order && i < members; i++)
		order = compare_cell(&one->cells[i], &other->cells[i], column);
	return order;
}

/* Compares changes by their size, whatever their sign, the largest first. */
static int compare_changes(const struct tool_report_event *event, const struct tool_report_cell *one,
			   const struct tool_report_cell *other)
{
	double its = tool_report_change(event, one), others = tool_report_change(event, other);

	its = its < 0 ? -its : its;
	others = others < 0 ? -others : others;
	return its < others ? 1 : its > others ? -1 : 0;
}

static int compare_column(const struct tool_report *report, const struct tool_report_row *one,
			  const struct tool_report_row *other, enum tool_report_column column)
{
	int order;

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
	case TOOL_REPORT_SRCLINE:
		return compare_text(one->line, other->line);
	case TOOL_REPORT_SRCFILE:
		return compare_text(one->source, other->source);
	case TOOL_REPORT_TIME:
		return compare_numbers(one->time, other->time);
	case TOOL_REPORT_SOCKET:
		return compare_signed(one->socket, other->socket);
	case TOOL_REPORT_PARENT:
		return compare_text(one->parent, other->parent);
	case TOOL_REPORT_TRANSACTION:
		return compare_numbers(other->transaction, one->transaction);
	case TOOL_REPORT_SYMBOL_SIZE:
		return compare_signed(one->symbol_size, other->symbol_size);
	case TOOL_REPORT_DSO_SIZE:
		return compare_signed(one->object_size, other->object_size);
	case TOOL_REPORT_WEIGHT:
	case TOOL_REPORT_LOCAL_WEIGHT:
		return compare_numbers(other->weight, one->weight);
	case TOOL_REPORT_INS_LAT:
	case TOOL_REPORT_LOCAL_INS_LAT:
		return compare_numbers(other->latency, one->latency);
	case TOOL_REPORT_CGROUP:
		return compare_numbers(one->cgroup, other->cgroup);
	case TOOL_REPORT_CGROUP_ID: /* as perf: the largest first */
		return compare_places(&other->place, &one->place);
	case TOOL_REPORT_CODE_PAGE_SIZE:
		return compare_numbers(one->page_size, other->page_size);
	case TOOL_REPORT_ADDR: /* as signed numbers, as perf: the kernel's are below those of user space */
		return compare_signed((int64_t)one->ip, (int64_t)other->ip);
	case TOOL_REPORT_CHANGE:
		return compare_changes(&report->events[one->event], &one->cells[0], &other->cells[0]);
	case TOOL_REPORT_CHILDREN: /* as perf: of equal ones, where trees are drawn, a caller is before what it calls */
		order = compare_cells(report, one, other, column);
		if (order || report->graph.print == TOOL_REPORT_NO_TREES)
			return order;
		return report->graph.order == TOOL_REPORT_CALLEE ? compare_numbers(one->depth, other->depth)
								 : compare_numbers(other->depth, one->depth);
	default:
		return compare_cells(report, one, other, column);
	}
}

/* Compares two rows by group, then by the columns of --sort's order, then by their keys. */
static int compare_rows(const void *a, const void *b, void *of)
{
	const struct tool_report_row *one = *(struct tool_report_row *const *)a;
	const struct tool_report_row *other = *(struct tool_report_row *const *)b;
	const struct tool_report *report = of;
	int order = compare_numbers(one->event, other->event);

	for (size_t i = 0; !order && i < report->sorted.nr; i++)
		order = compare_column(report, one, other, report->sorted.columns[i]);
	return order ? order : tool_report_compare_keys(one, other);
}

void tool_report_sort(struct tool_report *report)
{
	qsort_r(report->rows, report->nr, sizeof(*report->rows), compare_rows, report);
}

void tool_report_end(struct tool_report *report)
{
	tool_report_callers_close(report);
	perfring_waits_close(report->waits);
	tool_report_forget_places(report);
	tool_topology_free(&report->topology);
	for (size_t i = 0; i < 1 << TOOL_REPORT_TREE_BITS; i++)
		tdestroy(report->trees[i], free);
	free(report->rows);
	free(report->events);
}
