/* report_json.c - a report as one JSON object: docs/formats.md.
 *
 * report_print.c calls it in place of a table.  Keys are stable; numbers of 64 bits are strings.
 */
#include <inttypes.h>
#include "json.h"
#include "report.h"

static void put_text(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (text)
		tool_json_text(stdout, text);
	else
		fputs("null", stdout);
}

/* ---- rows ---- */

static void put_cell(const struct tool_report *report, const struct tool_report_event *event,
		     const struct tool_report_cell *cell)
{
	static const char *const states[] = {"both", "new", "vanished"};

	if (report->cumulates)
		printf("\"children\":%.6f,", tool_report_percent(event, cell->children));
	if (report->old)
		printf("\"old\":%.6f,\"change\":%.6f,\"state\":\"%s\",", tool_report_old_percent(event, cell),
		       tool_report_change(event, cell), states[tool_report_state(cell)]);
	printf("\"self\":%.6f,\"samples\":%" PRIu64 ",\"weight\":\"%" PRIu64 "\"",
	       tool_report_percent(event, cell->weight), cell->samples, cell->weight);
}

/* A key by perf's name of its column.  Numbers of 64 bits are strings. */
static void put_key(const struct tool_report *report, const struct tool_report_row *row, enum tool_report_column column)
{
	const char *name = tool_report_column_name(column);

	switch (column) {
	case TOOL_REPORT_PID:
	case TOOL_REPORT_TID:
		printf(",\"%s\":%" PRId32, name, (int32_t)row->tid);
		break;
	case TOOL_REPORT_COMM:
		put_text(name, row->comm);
		break;
	case TOOL_REPORT_DSO:
		put_text(name, row->object);
		break;
	case TOOL_REPORT_SYM:
		put_text(name, row->symbol);
		printf(",\"address\":\"%#" PRIx64 "\",\"mode\":\"%c\"", row->address, row->mark);
		break;
	case TOOL_REPORT_PARENT:
		put_text(name, row->parent);
		break;
	case TOOL_REPORT_TRACE:
		put_text(name, row->trace);
		break;
	case TOOL_REPORT_SRCLINE:
		put_text(name, row->line);
		break;
	case TOOL_REPORT_SRCFILE:
		put_text(name, row->source);
		break;
	case TOOL_REPORT_CGROUP:
		put_text(name, tool_report_cgroup(report, row->cgroup));
		break;
	case TOOL_REPORT_CGROUP_ID:
		printf(",\"%s\":[\"%" PRIu64 "\",\"%" PRIu64 "\"]", name, row->place.dev, row->place.ino);
		break;
	case TOOL_REPORT_CPU:
		printf(",\"%s\":%" PRId32, name, (int32_t)row->cpu);
		break;
	case TOOL_REPORT_SOCKET:
		printf(",\"%s\":%" PRId32, name, row->socket);
		break;
	case TOOL_REPORT_SYMBOL_SIZE:
		printf(",\"%s\":%" PRId64, name, row->symbol_size);
		break;
	case TOOL_REPORT_DSO_SIZE:
		printf(",\"%s\":%" PRId64, name, row->object_size);
		break;
	case TOOL_REPORT_TIME:
		printf(",\"%s\":\"%" PRIu64 "\"", name, row->time);
		break;
	case TOOL_REPORT_ADDR:
		printf(",\"%s\":\"%#" PRIx64 "\"", name, row->ip);
		break;
	case TOOL_REPORT_TRANSACTION:
		printf(",\"%s\":\"%#" PRIx64 "\"", name, row->transaction);
		break;
	case TOOL_REPORT_CODE_PAGE_SIZE:
		printf(",\"%s\":\"%" PRIu64 "\"", name, row->page_size);
		break;
	case TOOL_REPORT_LOCAL_WEIGHT:
	case TOOL_REPORT_WEIGHT:
		printf(",\"local_weight\":\"%" PRIu64 "\"", row->weight);
		break;
	case TOOL_REPORT_LOCAL_INS_LAT:
	case TOOL_REPORT_INS_LAT:
		printf(",\"local_ins_lat\":\"%" PRIu64 "\"", row->latency);
		break;
	default: /* sums, which each row has */
		break;
	}
}

static void put_row(struct tool_report *report, const struct tool_report_row *row)
{
	const struct tool_report_event *events = &report->events[row->event];

	putchar('{');
	put_cell(report, events, &row->cells[0]);
	for (size_t i = 0; i < report->shown.nr; i++)
		put_key(report, row, report->shown.columns[i]);
	for (uint32_t i = 1; i < events->members; i++) {
		printf("%s{", i > 1 ? "," : ",\"others\":[");
		put_cell(report, &events[i], &row->cells[i]);
		printf("}%s", i + 1 == events->members ? "]" : "");
	}
	if (report->graph.print != TOOL_REPORT_NO_TREES) {
		printf(",\"tree\":[");
		tool_report_tree_json(report, row);
		putchar(']');
	}
	putchar('}');
}

/* ---- tables ---- */

static void put_events(const struct tool_report *report, uint32_t leader)
{
	const struct tool_report_event *events = &report->events[leader];

	for (uint32_t i = 0; i < events->members; i++) {
		printf("%s{\"samples\":%" PRIu64 ",\"weight\":\"%" PRIu64 "\",\"lost_samples\":%" PRIu64, i ? "," : "",
		       events[i].samples, events[i].weight, events[i].lost);
		put_text("name", tool_report_event_name(report, leader + i));
		putchar('}');
	}
}

void tool_report_json_table(struct tool_report *report, uint32_t leader, struct tool_report_row *const *rows, size_t nr)
{
	uint64_t samples = 0, left = 0, shown = 0;

	printf("%s\n{\"events\":[", report->tables++ ? "," : "");
	put_events(report, leader);
	printf("],\"rows\":[");
	for (size_t i = 0; i < nr; i++) {
		if (shown >= report->limit || !tool_report_is_above(report, rows[i])) {
			left++;
			samples += rows[i]->cells[0].samples;
			continue;
		}
		fputs(shown++ ? ",\n" : "\n", stdout);
		put_row(report, rows[i]);
	}
	printf("],\"more\":{\"rows\":%" PRIu64 ",\"samples\":%" PRIu64 "}}", left, samples);
}

/* ---- all of it ---- */

void tool_report_json_begin(const struct tool_report *report)
{
	struct tool_report_facts facts;
	const char *before = "";

	tool_report_facts_read(report, &facts);
	printf("{\"version\":1,\"recording\":{\"seconds\":%.9f,\"first\":\"%" PRIu64 "\",\"last\":\"%" PRIu64 "\"",
	       facts.seconds, report->first, report->last);
	put_text("file", report->input.path);
	put_text("command", *facts.command ? facts.command : NULL);
	put_text("host", facts.host);
	if (report->old) {
		printf("},\n\"old\":{\"lost_records\":%" PRIu64, report->old->lost_records);
		put_text("file", report->old->input.path);
	}
	printf("},\n\"counts\":{\"samples\":%" PRIu64 ",\"events\":%" PRIu32 ",\"lost_samples\":%" PRIu64
	       ",\"lost_records\":%" PRIu64 ",\"throttled\":%" PRIu64 ",\"unread\":%" PRIu64 ",\"nameless\":%" PRIu64
	       ",\"stacks\":%" PRIu64 ",\"truncated\":%" PRIu64 "},\n\"nameless\":[",
	       facts.samples, facts.events, facts.lost, report->lost_records, report->throttles, report->unread,
	       facts.nameless, report->stacks, report->truncated);
	for (unsigned i = PERFRING_NAMELESS_NONE + 1; i < PERFRING_NAMELESS_COUNT; i++) {
		if (!report->nameless[i])
			continue;
		printf("%s{\"samples\":%" PRIu64, before, report->nameless[i]);
		put_text("why", tool_symbols_why(report->symbols, (enum perfring_nameless)i));
		putchar('}');
		before = ",";
	}
	printf("],\n\"order\":\"%s\",\"tables\":[", report->graph.order == TOOL_REPORT_CALLER ? "caller" : "callee");
}

void tool_report_json_end(const struct tool_report *report)
{
	struct tool_report_missing missing = {0};

	if (report->callers)
		tool_report_callers_missing(report, &missing);
	printf("],\n\"beyond_bounds\":{\"samples\":%" PRIu64 ",\"tree_samples\":%" PRIu64 ",\"rows\":%" PRIu64
	       ",\"trees\":%s}}\n",
	       missing.pathless, missing.treeless, missing.rowless, missing.is_too_much ? "true" : "false");
}
