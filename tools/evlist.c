/* evlist.c - `perfring evlist`: the events of a perf.data file.
 *
 * Reads attrs and names from the file's header; of a stream the whole file, because events may be announced at any time.
 */
#include <inttypes.h>
#include "event_groups.h"
#include "options.h"
#include "progress.h"
#include "tracepoint_format.h"

enum {
	TRACE_FIELDS = TOOL_OPTION_LONG,
};

struct evlist {
	struct tool_input input;
	struct tool_tracepoints *tracepoints;
	bool attrs, frequencies, groups, trace_fields;
	bool has_tracepoints;
};

static void put_name(const struct evlist *evlist, uint32_t index)
{
	const char *name = perfring_file_event_name(evlist->input.data, index);

	tool_print(stdout, name ? name : "?", 0, false);
}

/* The names of a tracepoint's own fields. */
static void put_trace_fields(const struct evlist *evlist, uint32_t index, const struct perf_event_attr *attr)
{
	const struct tool_tracepoint *tracepoint = tool_tracepoints_of(evlist->tracepoints, index);
	const char *before = "trace_fields: ";

	if (attr->type != PERFRING_TYPE_TRACEPOINT) {
		printf("(not a tracepoint)");
		return;
	}
	for (uint32_t i = 0; tracepoint && i < tracepoint->nr; i++) {
		if (tracepoint->fields[i].is_header)
			continue;
		printf("%s", before);
		tool_print(stdout, tracepoint->fields[i].name, 0, false);
		before = ",";
	}
	if (*before != ',')
		printf("%s-", before);
}

static void put_event(struct evlist *evlist, uint32_t index, const struct perf_event_attr *attr)
{
	const char *before = ": ";

	put_name(evlist, index);
	evlist->has_tracepoints = evlist->has_tracepoints || attr->type == PERFRING_TYPE_TRACEPOINT;
	if (evlist->attrs)
		tool_attr_print(attr, before, ": ");
	else if (evlist->frequencies)
		printf("%ssample_%s=%" PRIu64, before, attr->freq ? "freq" : "period", (uint64_t)attr->sample_period);
	if (evlist->trace_fields) {
		printf("%s", evlist->attrs || evlist->frequencies ? ", " : before);
		put_trace_fields(evlist, index, attr);
	}
	putchar('\n');
}

static void put_groups(struct evlist *evlist)
{
	struct tool_groups groups;
	struct tool_group group;
	uint32_t index = 0;
	bool has_group;

	tool_groups_open(&groups, evlist->input.data);
	has_group = tool_groups_next(&groups, &group);
	while (perfring_file_attr(evlist->input.data, index)) {
		bool leads = has_group && group.leader == index;
		uint32_t members = leads ? group.members : 1;

		if (leads)
			tool_print(stdout, group.name, 0, false);
		for (uint32_t i = 0; i < members; i++) {
			if (leads)
				putchar(i ? ',' : '{');
			put_name(evlist, index + i);
		}
		printf(leads ? "}\n" : "\n");
		index += members;
		if (leads)
			has_group = tool_groups_next(&groups, &group);
	}
}

/* A stream announces events at any time. */
static int show(struct evlist *evlist)
{
	const struct perf_event_attr *attr;
	struct perfring_item item;

	tool_progress_begin(&evlist->input, "evlist", 0);
	while (perfring_file_is_pipe(evlist->input.data) && tool_input_next(&evlist->input, &item))
		;
	evlist->tracepoints = tool_tracepoints_open(evlist->input.data, NULL);
	if (evlist->groups)
		put_groups(evlist);
	for (uint32_t i = 0; !evlist->groups && (attr = perfring_file_attr(evlist->input.data, i)); i++)
		put_event(evlist, i, attr);
	if (evlist->has_tracepoints && !evlist->trace_fields)
		printf("# --trace-fields: what the tracepoints say\n");
	tool_tracepoints_close(evlist->tracepoints);
	return tool_flush() ? tool_input_end(&evlist->input) : TOOL_FAILED;
}

static int evlist_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_evlist};
	struct evlist evlist = {.attrs = false};
	int found, status;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case 'v':
			evlist.attrs = true;
			break;
		case 'F':
			evlist.frequencies = true;
			break;
		case 'g':
			evlist.groups = true;
			break;
		case TRACE_FIELDS:
			evlist.trace_fields = true;
			break;
		case 'f':
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (evlist.groups && (evlist.attrs || evlist.frequencies || evlist.trace_fields)) {
		tool_complain(
			"evlist: -g shows names alone: not with -v, -F or --trace-fields (perfring evlist --help)");
		return TOOL_MISUSED;
	}
	status = tool_input_open(&evlist.input, &options, argc, argv);
	if (status)
		return status;
	status = show(&evlist);
	tool_input_close(&evlist.input);
	return status;
}

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input"},
	{'v', "verbose", .help = "all members of the attrs that are not 0"},
	{'F', "freq", .help = "frequencies or periods"},
	{'g', "group", .help = "groups in braces"},
	{TRACE_FIELDS, "trace-fields", .help = "the names of the tracepoints' fields"},
	{'f', "force", .help = "taken: any file that can be read is read"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"What was recorded, and how:", "perfring evlist -v"},
	{0},
};

const struct tool_command tool_evlist = {
	.name = "evlist",
	.summary = "the events of a perf.data file",
	.usage = "[[-i] FILE] [-v | -F | -g] [--trace-fields]",
	.description = "Shows the names of the events of a perf.data file, one a line, as perf evlist does.",
	.options = ROWS,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-list perfring-dump perfring",
	.run = evlist_command,
};
