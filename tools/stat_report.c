/* stat_report.c - `perfring stat report`: the counts in a perf.data file of stat record, ours or perf's, printed as stat prints
 * them.  Counts beyond MAX_READ in one round are left out.
 *
 * Builds the rows that stat.c would have, from records of a file, which is foreign: numbers of threads and CPUs are compared with
 * what the file has.
 */
#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <perfring/feature.h>
#include "options.h"
#include "progress.h"
#include "stat.h"

enum {
	MAX_WORDS = 4096,   /* of the command line that is shown */
	MAX_READ = 1 << 16, /* counts of a round */
};

#define MAX_LOOKS (UINT64_C(1) << 28) /* at counts and rows, of all rounds */

int tool_stat_fd_at(const struct counting *counting, uint32_t i, struct perfring_counts_fd *fd)
{
	if (counting->counts)
		return perfring_counts_at(counting->counts, i, fd);
	if (i >= counting->read_count)
		return 0;
	*fd = counting->read[i];
	return 1;
}

/* ---- what is in the file ---- */

static bool add_events(struct counting *counting, const struct tool_input *input)
{
	const struct perfring_format_set *formats = perfring_file_formats(input->data);
	uint32_t count = perfring_format_set_count(formats);

	for (uint32_t i = 0; i < count; i++) {
		const struct perf_event_attr *attr = perfring_file_attr(input->data, i);
		const char *name = perfring_file_event_name(input->data, i);
		char own[256];

		if (!name || !*name) {
			perfring_event_name(attr, own, sizeof(own));
			name = own;
		}
		if (perfring_events_add_attr(counting->events, attr, name, false)) {
			tool_complain("stat report: %s: an event that cannot be named", input->path);
			return false;
		}
	}
	counting->read_events = tool_allocate(NULL, count + 1u, sizeof(*counting->read_events));
	memset(counting->read_events, 0, (count + 1u) * sizeof(*counting->read_events));
	counting->user_only = tool_allocate(NULL, count + 1u, sizeof(*counting->user_only));
	memset(counting->user_only, 0, (count + 1u) * sizeof(*counting->user_only));
	return true;
}

static void take_config(struct counting *counting, const struct perfring_record *record)
{
	const struct perfring_links *config = &record->is.stat_config.config;

	for (uint64_t i = 0; i < config->nr; i++) {
		uint64_t tag = config->words[2 * i], value = config->words[2 * i + 1];

		if (tag == PERFRING_STAT_CONFIG_INTERVAL)
			counting->interval = value;
		if (tag == PERFRING_STAT_CONFIG_SCALE)
			counting->unscaled = !value;
		if (tag == PERFRING_STAT_CONFIG_AGGR_MODE)
			counting->apart = value == TOOL_STAT_AGGR_NONE     ? APART_CPU
					  : value == TOOL_STAT_AGGR_SOCKET ? APART_SOCKET
					  : value == TOOL_STAT_AGGR_DIE    ? APART_DIE
					  : value == TOOL_STAT_AGGR_CORE   ? APART_CORE
					  : value == TOOL_STAT_AGGR_THREAD ? APART_THREAD
					  : value == TOOL_STAT_AGGR_NODE   ? APART_NODE
									   : APART_NOT;
	}
}

/* The words of the file's command line, for the title. */
static void take_command(struct counting *counting, const struct tool_input *input)
{
	uint64_t size;
	const unsigned char *at = perfring_file_feature(input->data, PERFRING_FEATURE_CMDLINE, &size);
	const unsigned char *end = at ? at + size : NULL;
	uint32_t count = 0, words = 0, length;

	if (at && size >= sizeof(count)) {
		memcpy(&count, at, sizeof(count));
		at += sizeof(count);
	}
	count = count < MAX_WORDS ? count : MAX_WORDS;
	counting->command = counting->words = tool_allocate(NULL, count + (size_t)2, sizeof(*counting->words));
	while (at && words < count && (size_t)(end - at) >= sizeof(length)) {
		memcpy(&length, at, sizeof(length));
		at += sizeof(length);
		if (length > (size_t)(end - at))
			break;
		counting->words[words++] = strndup((const char *)at, length);
		at += length;
		if (!counting->words[words - 1])
			break;
	}
	if (!words)
		counting->words[words++] = strdup(input->path);
	counting->words[words] = NULL;
}

/* The thread of each number in THREAD_MAP. */
static void take_threads(struct counting *counting, const struct perfring_record *record)
{
	const struct perfring_threads *threads = &record->is.thread_map.threads;

	counting->threads = tool_allocate(counting->threads, threads->nr + (size_t)1, sizeof(*counting->threads));
	counting->thread_count = (uint32_t)threads->nr;
	memcpy(counting->threads, threads->data, threads->nr * sizeof(*counting->threads));
}

/* Takes the unit or scale of an event, of which the last in the file counts. */
static void take_update(struct counting *counting, const struct tool_input *input, const struct perfring_record *record)
{
	const struct perfring_record_event_update *update = &record->is.event_update;
	const struct perfring_format *format = perfring_format_set_find(perfring_file_formats(input->data), update->id);
	struct read_event *event = format ? &counting->read_events[format->index] : NULL;
	double scale;

	if (event && update->type == PERFRING_EVENT_UPDATE_UNIT) {
		free(event->unit);
		event->unit = strndup(update->text.data, update->text.size);
	} else if (event && update->type == PERFRING_EVENT_UPDATE_SCALE) {
		memcpy(&scale, &update->scale, sizeof(scale));
		if (!isfinite(scale))
			return;
		event->scale = scale;
		event->has_scale = true;
	}
}

/* The key of a count in the tree of those that were read. */
struct read_key {
	uint64_t id;
	int32_t cpu, tid;
	uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
	const struct read_key *one = a, *other = b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	if (one->cpu != other->cpu)
		return one->cpu < other->cpu ? -1 : 1;
	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

/* Finds or adds the count of an fd.  Each round has them in one order, so the one after the last is tried first. */
static void take_stat(struct counting *counting, const struct tool_input *input, const struct perfring_record *record)
{
	const struct perfring_record_stat *stat = &record->is.stat;
	const struct perfring_format *format = perfring_format_set_find(perfring_file_formats(input->data), stat->id);
	int32_t tid = stat->thread < counting->thread_count ? (int32_t)counting->threads[stat->thread].tid : -1;
	struct read_key key = {.id = stat->id, .cpu = (int32_t)stat->cpu, .tid = tid};
	struct perfring_counts_fd *fd = NULL;

	if (!format)
		return;
	if (counting->read_next < counting->read_count) {
		struct perfring_counts_fd *next = &counting->read[counting->read_next];

		if (next->id == key.id && next->cpu == key.cpu && next->tid == key.tid)
			fd = next;
	}
	if (!fd) {
		struct read_key **known = tfind(&key, &counting->read_tree, compare_keys);

		fd = known ? &counting->read[(*known)->index] : NULL;
	}
	if (!fd && counting->read_count == MAX_READ) {
		counting->left_out++;
		return;
	}
	if (!fd) {
		struct read_key *added = tool_allocate(NULL, 1, sizeof(*added));

		key.index = counting->read_count;
		*added = key;
		tool_insert(added, &counting->read_tree, compare_keys);
		counting->read =
			tool_allocate(counting->read, counting->read_count + (size_t)1, sizeof(*counting->read));
		counting->read_fresh = tool_allocate(counting->read_fresh, counting->read_count + (size_t)1, 1);
		fd = &counting->read[counting->read_count++];
		*fd = (struct perfring_counts_fd){.fd = -1, .tid = tid, .cpu = (int32_t)stat->cpu, .id = stat->id};
		fd->event = format->index;
	}
	counting->read_fresh[fd - counting->read] = true;
	counting->read_next = (uint32_t)(fd - counting->read + 1) % counting->read_count;
	fd->count = (struct perfring_count){.value = stat->val, .enabled = stat->ena, .running = stat->run, .fds = 1};
}

/* ---- rounds ---- */

/* Chooses the view that the user asked for, if the counts are of single CPUs or threads; else warns. */
static void choose_view(struct counting *counting, const struct tool_input *input)
{
	bool has_cpus = false, has_threads = false;

	for (uint32_t i = 0; i < counting->read_count; i++) {
		has_cpus = has_cpus || counting->read[i].cpu >= 0;
		has_threads = has_threads || counting->read[i].tid > 0;
	}
	if (counting->view == APART_THREAD ? has_threads : has_cpus)
		counting->apart = counting->view;
	else
		tool_complain("stat report: %s: warning: its counts are not of single %s: they are shown as they were "
			      "counted",
			      input->path, counting->view == APART_THREAD ? "threads" : "CPUs");
}

static void take_round(struct counting *counting, const struct tool_input *input, const struct perfring_record *record)
{
	uint64_t at = record->is.stat_round.time, looks;
	bool is_final = record->is.stat_round.type == PERFRING_STAT_ROUND_FINAL;

	if (!counting->rows) {
		tool_topology_read(&counting->topology, input->data);
		if (counting->has_view)
			choose_view(counting, input);
		tool_stat_measure(counting);
		tool_stat_find_places(counting);
		tool_stat_print_head(counting);
	}
	/* Each round looks at all counts and rows, and prints the rows of which the file has new counts: what is printed grows with
	 * the file. */
	looks = counting->read_count + (uint64_t)perfring_events_count(counting->events) * counting->place_count + 1;
	if (counting->looks + looks > MAX_LOOKS) {
		if (counting->looks < MAX_LOOKS)
			tool_complain("stat report: the rounds after %.3f s are left out: there are too many",
				      (double)counting->printed / 1e9);
		counting->looks = MAX_LOOKS;
		return;
	}
	tool_stat_mark_fresh(counting);
	counting->looks += looks;
	tool_stat_take(counting, at > counting->printed ? at - counting->printed : 0);
	counting->printed = at;
	if (!is_final || counting->interval) {
		tool_stat_print_rows(counting, at);
		return;
	}
	if (tool_stat_is_plain(counting))
		tool_stat_print_title(counting);
	tool_stat_print_rows(counting, 0);
	if (tool_stat_is_plain(counting))
		tool_stat_print_times(counting);
}

static void take_item(struct counting *counting, const struct tool_input *input, const struct perfring_item *item)
{
	const struct perfring_format *format =
		item->format ? item->format : perfring_format_set_at(perfring_file_formats(input->data), 0);
	struct perfring_record record;

	if (!format || item->record->type < PERFRING_RECORD_THREAD_MAP ||
	    item->record->type > PERFRING_RECORD_EVENT_UPDATE ||
	    perfring_record_decode(format, item->record, &record, NULL))
		return;
	switch (record.type) {
	case PERFRING_RECORD_EVENT_UPDATE:
		take_update(counting, input, &record);
		break;
	case PERFRING_RECORD_THREAD_MAP:
		take_threads(counting, &record);
		break;
	case PERFRING_RECORD_STAT_CONFIG:
		take_config(counting, &record);
		break;
	case PERFRING_RECORD_STAT:
		take_stat(counting, input, &record);
		break;
	case PERFRING_RECORD_STAT_ROUND:
		take_round(counting, input, &record);
		break;
	}
}

/* ---- the command ---- */

/* In the order of the views. */
enum {
	PER_THREAD = TOOL_OPTION_LONG,
	PER_CORE,
	PER_DIE,
	PER_SOCKET,
	PER_NODE,
};

static const struct tool_option ROWS[] = {
	{.heading = "options"},
	{'i', "input", .value = "FILE", .takes = "a file's name, or -", .is_input = true,
	 .help = "(default: perf.data)"},
	{'x', "field-separator", .value = "SEP", .takes = "what stands between fields, such as a comma",
	 .help = "fields with SEP between them"},
	{'j', "json", .help = "one JSON object a line"},
	{'A', "no-aggr", .help = "each CPU separately, of counts with -a or -C"},
	{PER_CORE, "per-core", .help = "each core separately, likewise"},
	{PER_DIE, "per-die", .help = "each die separately"},
	{PER_SOCKET, "per-socket", .help = "each socket separately"},
	{PER_NODE, "per-node", .help = "each NUMA node separately"},
	{PER_THREAD, "per-thread", .help = "each thread separately, of counts of threads"},
	{'v', "verbose", .refused = "the counts are printed as stat prints them"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"A command's counts, kept and printed again:", "perfring stat record ./program\nperfring stat report"},
	{0},
};

const struct tool_command tool_stat_report_command = {
	.name = "stat report",
	.summary = "print the counts of a perf.data file of stat record",
	.usage = "[OPTIONS] [FILE]",
	.description =
		"Prints the counts in FILE as stat prints them.  CPUs belong to cores and sockets as FILE says, or, if it "
		"does not, as on this machine.",
	.options = ROWS,
	.exit_status = "0 done; 1 when FILE cannot be read or has no counts; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-stat perfring",
};

int tool_stat_report(struct counting *counting, int argc, char **argv)
{
	struct tool_options options = {.command = &tool_stat_report_command};
	struct tool_input input = {0};
	struct perfring_item item;
	int found, status;

	while ((found = tool_options_next(&options, argc, argv)) > 0)
		switch (found) {
		case 'x':
			counting->separator = strcmp(options.value, "\\t") ? options.value : "\t";
			break;
		case 'j':
			counting->json = true;
			break;
		case 'A':
			counting->view = APART_CPU;
			counting->has_view = true;
			break;
		case PER_THREAD:
		case PER_CORE:
		case PER_DIE:
		case PER_SOCKET:
		case PER_NODE:
			counting->view = (enum apart)(APART_THREAD + (found - PER_THREAD));
			counting->has_view = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	if (!found)
		return options.status;
	status = tool_input_open(&input, &options, argc, argv);
	if (status != TOOL_DONE)
		return status;
	counting->out = stdout;
	counting->repeat = 1;
	counting->is_read = true;
	if (add_events(counting, &input)) {
		take_command(counting, &input);
		tool_progress_begin(&input, "stat report", TOOL_PROGRESS_LINES);
		while (tool_input_next(&input, &item))
			take_item(counting, &input, &item);
		if (!counting->rows)
			tool_complain("stat report: %s: has no counts: stat record writes such files", input.path);
		if (counting->left_out)
			tool_complain("stat report: %s: %" PRIu64 " counts are left out: of CPUs or threads that the first "
				      "round does not have, or beyond %d in a round",
				      input.path, counting->left_out, MAX_READ);
		tdestroy(counting->read_tree, free);
		status = tool_input_end(&input);
		status = counting->rows ? status : TOOL_FAILED;
	} else {
		status = TOOL_FAILED;
	}
	tool_input_close(&input);
	return tool_flush() ? status : TOOL_FAILED;
}
