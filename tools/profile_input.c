/* profile_input.c - the samples of a perf.data file as a profile.
 *
 * flame, html, export and top read by it.  For each sample: filter.h says whether it counts, chains.c finds its stack, profile.h
 * adds it up.  Samples of switches and of spans become intervals here (docs/formats.md).  Memory is bounded by the profile's.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <perfring/feature.h>
#include <perfring/record.h>
#include "chains.h"
#include "machine.h"
#include "off_cpu.h"
#include "options.h"
#include "profile_input.h"
#include "progress.h"
#include "tracepoint.h"

enum {
	THREADS = 256,         /* remembered, by the end of their tid */
	WAITING_MAX = 1 << 20, /* threads that are off their CPUs; switches of more stay events of their own */
	TRACE_FLAGS_INTERRUPT = 0x18, /* of common_flags: in a hard or a soft interrupt (enum trace_flag_type of the kernel) */
};

/* A thread that left its CPU: since when, and where it waits. */
struct waiting {
	uint32_t tid;
	uint32_t cpu;
	uint32_t stack, thread;
	uint64_t time;
	bool is_ready; /* the kernel put another one in its place */
	bool is_woken; /* the stack begins with who did it */
};

/* A thread as the profile has it. */
struct known_thread {
	uint32_t pid, tid;
	uint32_t index;
	uint32_t names; /* the reader's number, at that time */
};

struct reader {
	struct tool_profile_input *to;
	struct tool_profile_options *options;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct tool_chains *chains;
	struct tool_chains_options chain_options;
	uint32_t *events; /* of the profile, by the file's index; PERFRING_PROFILE_NONE: not yet */
	uint32_t event_count;
	struct known_thread threads[THREADS];
	uint32_t names; /* changes with the names of threads, and is not 0 */
	void *waiting; /* a tree by tid: struct waiting */
	uint32_t waiting_count;
	uint64_t last;      /* time of the last sample or switch */
	uint32_t looked_at; /* events of the file */
	bool has_switches;
	struct tool_tracepoints *tracepoints; /* NULL: not yet needed */
};

static uint32_t must(int64_t index)
{
	if (index < 0)
		tool_out_of_memory();
	return (uint32_t)index;
}

/* ---- options ---- */

int tool_profile_take(struct tool_profile_options *profile, const struct tool_options *options, int found)
{
	int taken = tool_filter_take(&profile->filter, options, found);

	if (!taken)
		taken = tool_symbols_take(&profile->symbols, options, found);
	if (taken)
		return taken;
	switch (found) {
	case 'q':
		profile->is_quiet = true;
		return 1;
	case TOOL_PROFILE_EVENTS:
		profile->events = options->value;
		return 1;
	case TOOL_PROFILE_KERNEL:
		profile->kernel_only = true;
		return 1;
	case TOOL_PROFILE_USER:
		profile->user_only = true;
		return 1;
	case TOOL_PROFILE_NO_INLINE:
		profile->no_inline = true;
		return 1;
	case TOOL_PROFILE_MAX_STACK:
		profile->max_stack = options->number;
		return 1;
	case TOOL_PROFILE_FORCE:
		profile->symbols.is_forced = true;
		return 1;
	default:
		return 0;
	}
}

/* ---- samples ---- */

/* Whether a sample is an interval that ends at its time and is as many ns long as its period: perfring_soft_span_end, and --off-cpu of record
 * --soft and of perf. */
static bool is_interval(const char *name)
{
	return name && (!strncmp(name, "span:", 5) || !strcmp(name, TOOL_OFF_CPU));
}

static const char *unit_of(const struct perf_event_attr *attr, const char *name)
{
	bool is_clock = attr && attr->type == PERFRING_TYPE_SOFTWARE &&
			(attr->config == PERFRING_COUNT_SW_CPU_CLOCK || attr->config == PERFRING_COUNT_SW_TASK_CLOCK);

	return is_clock || is_interval(name) ? "ns" : NULL;
}

/* The profile's event of a format. */
static uint32_t event_of(struct reader *reader, uint32_t index)
{
	const struct perfring_file *data = reader->to->input.data;
	const char *name;

	if (index >= reader->event_count) {
		uint32_t count = index + 16;

		reader->events = tool_allocate(reader->events, count, sizeof(*reader->events));
		while (reader->event_count < count)
			reader->events[reader->event_count++] = PERFRING_PROFILE_NONE;
	}
	if (reader->events[index] == PERFRING_PROFILE_NONE) {
		name = perfring_file_event_name(data, index);
		reader->events[index] = must(perfring_profile_add_event(
			reader->to->profile, &(struct perfring_profile_event){
						     .name = name ? name : "?",
						     .unit = unit_of(perfring_file_attr(data, index), name),
						     .lasts = is_interval(name),
					     }));
	}
	return reader->events[index];
}

static bool is_event_wanted(struct reader *reader, uint32_t index)
{
	const char *name = perfring_file_event_name(reader->to->input.data, index);

	return !reader->options->events || (name && perfring_filter_has_word(reader->options->events, name));
}

static const char *comm_of(struct reader *reader, const struct perfring_sample *sample)
{
	return sample->present & PERFRING_SAMPLE_TID ? tool_machine_comm(reader->machine, sample->tid) : "[unknown]";
}

static uint32_t thread_of(struct reader *reader, const struct perfring_sample *sample)
{
	bool has = sample->present & PERFRING_SAMPLE_TID;
	struct known_thread *known = &reader->threads[has ? sample->tid % THREADS : 0];
	uint32_t pid = has ? sample->pid : PERFRING_PROFILE_NONE, tid = has ? sample->tid : PERFRING_PROFILE_NONE;

	if (known->names != reader->names || known->pid != pid || known->tid != tid)
		*known = (struct known_thread){
			.pid = pid,
			.tid = tid,
			.names = reader->names,
			.index = must(perfring_profile_add_thread(
				reader->to->profile,
				&(struct perfring_profile_thread){
					.pid = pid,
					.tid = tid,
					.comm = comm_of(reader, sample),
					.process_comm = has ? tool_machine_comm(reader->machine, pid) : NULL,
				})),
		};
	return known->index;
}

/* Forgets them: their names or the profile are others. */
static void forget_threads(struct reader *reader)
{
	if (!++reader->names) {
		memset(reader->threads, 0, sizeof(reader->threads));
		reader->names = 1;
	}
}

/* ---- time off the CPU: from a context switch's sample to the record of the thread's return ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct waiting *one = a, *other = b;

	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static struct waiting *find_waiting(struct reader *reader, uint32_t tid)
{
	const struct waiting key = {.tid = tid};
	void *found = tfind(&key, &reader->waiting, compare_tids);

	return found ? *(struct waiting **)found : NULL;
}

static bool is_switch(const struct perf_event_attr *attr)
{
	return attr && attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_CONTEXT_SWITCHES &&
	       !attr->freq && attr->sample_period == 1;
}

/* The sample of a switch: its thread waits from now on.  Returns false if too many do. */
static bool begin_waiting(struct reader *reader, const struct perfring_sample *sample,
			  const struct perfring_profile_sample *one)
{
	struct waiting *waiting = find_waiting(reader, sample->tid);

	if (!waiting && reader->waiting_count == WAITING_MAX)
		return false;
	if (!waiting) {
		waiting = tool_allocate(NULL, 1, sizeof(*waiting));
		waiting->tid = sample->tid;
		tool_insert(waiting, &reader->waiting, compare_tids);
		reader->waiting_count++;
	}
	*waiting = (struct waiting){sample->tid, one->cpu, one->stack, one->thread, one->time, false, false};
	return true;
}

static bool is_waking(const struct reader *reader, uint32_t index)
{
	const struct perf_event_attr *attr = perfring_file_attr(reader->to->input.data, index);
	const char *name;

	if (!attr || attr->type != PERFRING_TYPE_TRACEPOINT)
		return false;
	name = perfring_file_event_name(reader->to->input.data, index);
	return name && !strcmp(name, TOOL_WAKING);
}

/* A number of a tracepoint's sample.  Returns false if the file does not say where it is, or the sample is too short. */
static bool read_field(struct reader *reader, uint32_t index, const struct perfring_sample *sample, const char *name,
		       uint64_t *number)
{
	const struct tool_tracepoint *tracepoint;
	struct tool_tracepoint_value value;

	if (!reader->tracepoints)
		reader->tracepoints = tool_tracepoints_open(reader->to->input.data, reader->symbols);
	tracepoint = tool_tracepoints_of(reader->tracepoints, index);
	for (uint32_t i = 0; tracepoint && i < tracepoint->nr; i++)
		if (!strcmp(tracepoint->fields[i].name, name)) {
			tool_tracepoint_value(reader->tracepoints, &tracepoint->fields[i], &sample->raw, &value);
			if (!value.count)
				return false;
			*number = tool_tracepoint_number(reader->tracepoints, &tracepoint->fields[i], &value, 0);
			return true;
		}
	return false;
}

/* Who ends a wait, as the innermost frame of the stack that waits: the first one that wakes the thread. */
static void take_waking(struct reader *reader, uint32_t index, const struct perfring_sample *sample)
{
	struct perfring_profile_frame frame = {.kind = PERFRING_PROFILE_UNKNOWN};
	uint64_t tid, flags = 0;
	struct waiting *waiting;
	char name[64];

	if (!(sample->present & PERFRING_SAMPLE_RAW) || !read_field(reader, index, sample, "pid", &tid))
		return;
	waiting = find_waiting(reader, (uint32_t)tid);
	if (!waiting || !waiting->time || waiting->is_ready || waiting->is_woken)
		return;
	read_field(reader, index, sample, "common_flags", &flags);
	snprintf(name, sizeof(name), "[woken by %s]",
		 flags & TRACE_FLAGS_INTERRUPT ? "an interrupt" : comm_of(reader, sample));
	frame.name = name;
	waiting->stack = must(perfring_profile_add_stack(reader->to->profile, waiting->stack,
							 must(perfring_profile_add_frame(reader->to->profile, &frame))));
	waiting->is_woken = true;
}

static void end_waiting(struct reader *reader, struct waiting *waiting, uint64_t time)
{
	struct perfring_profile_event event = {
		.name = waiting->is_ready ? "runqueue-time" : TOOL_OFF_CPU, .unit = "ns", .lasts = true};
	struct perfring_profile_sample one = {.time = waiting->time,
					      .weight = time > waiting->time ? time - waiting->time : 0,
					      .stack = waiting->stack,
					      .thread = waiting->thread,
					      .cpu = waiting->cpu};

	if (waiting->time && one.weight &&
	    (!reader->options->events || perfring_filter_has_word(reader->options->events, event.name))) {
		one.event = must(perfring_profile_add_event(reader->to->profile, &event));
		if (perfring_profile_add_sample(reader->to->profile, &one))
			tool_out_of_memory();
	}
	waiting->time = 0; /* it runs */
}

static void take_switch(struct reader *reader, const struct perfring_record *record, uint64_t time)
{
	struct waiting *waiting =
		record->trailer.present & PERFRING_SAMPLE_TID ? find_waiting(reader, record->trailer.tid) : NULL;

	reader->last = time > reader->last ? time : reader->last;
	if (!waiting)
		return;
	if (!(record->misc & PERFRING_RECORD_MISC_SWITCH_OUT))
		end_waiting(reader, waiting, time);
	else if (record->misc & PERFRING_RECORD_MISC_SWITCH_OUT_PREEMPT)
		waiting->is_ready = true;
}

/* Who waits at the end has waited until then. */
static struct reader *ending;

static void end_one(const void *node, VISIT visit, int depth)
{
	(void)depth;
	if (visit == postorder || visit == leaf)
		end_waiting(ending, *(struct waiting *const *)node, ending->last);
}

static void end_all_waiting(struct reader *reader)
{
	ending = reader;
	twalk(reader->waiting, end_one);
}

/* ---- samples, again ---- */

/* Whether the filters show it: by its innermost function. */
static bool is_shown(struct reader *reader, const struct perfring_sample *sample)
{
	const struct perfring_filter *filter = &reader->options->filter;
	struct tool_symbol symbol = {.name = NULL};

	if ((filter->objects || filter->symbols) && sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(reader->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
				  sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0, sample->ip, &symbol);
	return perfring_filter_shows(filter, sample, filter->comms ? comm_of(reader, sample) : NULL, symbol.object,
				 symbol.name);
}

/* Whether an event reports switches: without those returns are not known. */
static bool has_switches(struct reader *reader)
{
	const struct perf_event_attr *attr;
	struct perfring_format format;

	for (; !reader->has_switches && (attr = perfring_file_attr(reader->to->input.data, reader->looked_at));
	     reader->looked_at++)
		if (!perfring_format_from_attr(&format, attr))
			reader->has_switches = format.flags >> PERFRING_ATTR_FLAG_context_switch & 1;
	return reader->has_switches;
}

static void take_sample(struct reader *reader, const struct perfring_format *format,
			const struct perfring_sample *sample)
{
	struct perfring_profile_sample one = {.time = sample->present & PERFRING_SAMPLE_TIME ? sample->time : 0};
	bool is_weighed;

	bool begins = has_switches(reader) && is_switch(perfring_file_attr(reader->to->input.data, format->index)) &&
		      one.time && sample->present & PERFRING_SAMPLE_TID;

	if (one.time > reader->last)
		reader->last = one.time;
	if ((!begins && !is_event_wanted(reader, format->index)) || !is_shown(reader, sample))
		return;
	one.stack = tool_chains_find(reader->chains, reader->to->profile, sample);
	is_weighed =
		one.stack != PERFRING_PROFILE_NONE || !(reader->options->kernel_only || reader->options->user_only);
	if (!is_weighed)
		return;
	one.thread = thread_of(reader, sample);
	one.cpu = sample->present & PERFRING_SAMPLE_CPU ? sample->cpu : PERFRING_PROFILE_NONE;
	if (begins && begin_waiting(reader, sample, &one)) /* it is shown as what follows it */
		return;
	one.event = event_of(reader, format->index);
	one.weight = tool_input_period(&reader->to->input, format, sample);
	if (one.time > one.weight && is_interval(perfring_file_event_name(reader->to->input.data, format->index)))
		one.time -= one.weight; /* as of all intervals: their beginning */
	if (perfring_profile_add_sample(reader->to->profile, &one))
		tool_out_of_memory();
	if (tool_symbols_is_truncated(reader->symbols))
		perfring_profile_count_truncated(reader->to->profile);
	reader->to->shown++;
}

/* ---- other records ---- */

static void add_loss(struct reader *reader, const struct perfring_item *item, const struct perfring_trailer *trailer,
		     enum perfring_profile_loss_kind kind, uint64_t count)
{
	struct perfring_profile_loss loss = {.time = item->time,
					     .count = count,
					     .kind = kind,
					     .thread = PERFRING_PROFILE_NONE,
					     .event = PERFRING_PROFILE_NONE,
					     .cpu = PERFRING_PROFILE_NONE};

	if (item->format && kind != PERFRING_PROFILE_LOST_RECORDS)
		loss.event = event_of(reader, item->format->index);
	if (trailer && trailer->present & PERFRING_SAMPLE_CPU)
		loss.cpu = trailer->cpu;
	if (perfring_profile_add_loss(reader->to->profile, &loss))
		tool_out_of_memory();
}

static void take_record(struct reader *reader, const struct perfring_item *item, const struct perfring_record *record)
{
	tool_machine_take(reader->machine, record);
	tool_symbols_learn(reader->symbols, record);
	tool_chains_take(reader->chains, record);
	if (record->type == PERFRING_RECORD_COMM || record->type == PERFRING_RECORD_FORK ||
	    record->type == PERFRING_RECORD_EXIT)
		forget_threads(reader);
	switch (record->type) {
	case PERFRING_RECORD_LOST:
		add_loss(reader, item, &record->trailer, PERFRING_PROFILE_LOST_RECORDS, record->is.lost.lost);
		break;
	case PERFRING_RECORD_LOST_SAMPLES:
		add_loss(reader, item, &record->trailer, PERFRING_PROFILE_LOST_SAMPLES, record->is.lost_samples.lost);
		break;
	case PERFRING_RECORD_THROTTLE:
		add_loss(reader, item, &record->trailer, PERFRING_PROFILE_THROTTLED, 1);
		break;
	case PERFRING_RECORD_SWITCH:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
		take_switch(reader, record, item->time);
		break;
	}
}

static void take(struct reader *reader, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	const struct perfring_format *format;
	struct perfring_record record;
	struct perfring_sample sample;

	if (item->record->type != PERFRING_RECORD_SAMPLE) {
		if (!perfring_record_decode(item->format, item->record, &record, &fault))
			take_record(reader, item, &record);
	} else if (item->format && !perfring_sample_decode(item->format, item->record, &sample, &fault)) {
		if (tool_symbols_advance(reader->symbols, item->time))
			tool_chains_change(reader->chains);
		reader->to->all++;
		if (has_switches(reader) && is_waking(reader, item->format->index)) {
			take_waking(reader, item->format->index, &sample);
			if (!reader->options->events) /* it is shown in what it ends */
				return;
		}
		if (perfring_filter_counts(&reader->options->filter, &sample)) {
			perfring_split_begin(reader->to->input.split, item->format, &sample);
			while (tool_input_event(&reader->to->input, &format))
				take_sample(reader, format, &sample);
		}
	} else {
		reader->to->all++;
		add_loss(reader, &(struct perfring_item){.time = item->time}, NULL, PERFRING_PROFILE_UNREAD, 1);
	}
	if (fault.what)
		tool_input_fault(&reader->to->input, &fault);
}

/* ---- all of it ---- */

/* The time of day at time 0 of the events' clock, in ns since 1970; 0: the file does not say. */
static uint64_t find_epoch(const struct perfring_file *data)
{
	struct perfring_layout_walk walk;
	struct perfring_layout_member member;
	uint64_t size = 0, wall = 0, clock = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_CLOCK_DATA, &size);

	if (!payload)
		return 0;
	perfring_feature_open(&walk, PERFRING_FEATURE_CLOCK_DATA, payload, size, 0);
	while (perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "wall_clock"))
			wall = member.number;
		else if (!strcmp(member.name, "clock"))
			clock = member.number;
	}
	return wall > clock ? wall - clock : 0;
}

static void open_profile(struct tool_profile_input *input)
{
	const struct perfring_file *data = input->input.data;
	struct perfring_profile_options options = {
		.flags = input->options.lists ? PERFRING_PROFILE_SAMPLES : 0,
		.host = perfring_file_string(data, PERFRING_FEATURE_HOSTNAME),
		.epoch = find_epoch(data),
	};

	if (perfring_profile_open(&input->profile, &options))
		tool_out_of_memory();
}

/* Opens what is read from an open file. */
static void open_reader(struct tool_profile_input *input)
{
	struct reader *reader = tool_allocate(NULL, 1, sizeof(*reader));

	*reader = (struct reader){.to = input, .options = &input->options, .names = 1};
	input->reader = reader;
	open_profile(input);
	reader->machine = tool_machine_open();
	reader->symbols = tool_symbols_open(input->input.data, reader->machine, &input->options.symbols);
	tool_symbols_recorded(reader->symbols, input->input.path);
	reader->chain_options = (struct tool_chains_options){
		.has_builds = input->options.has_builds,
		.addresses = input->options.has_addresses ? TOOL_CHAINS_ADDRESSES : TOOL_CHAINS_NO_ADDRESSES,
		.max_stack = input->options.max_stack,
		.kernel_only = input->options.kernel_only,
		.user_only = input->options.user_only,
		.no_inline = input->options.no_inline,
		.has_lines = input->options.has_lines,
	};
	reader->chains = tool_chains_open(reader->machine, reader->symbols, &reader->chain_options);
}

static void close_reader(struct tool_profile_input *input)
{
	struct reader *reader = input->reader;

	if (!reader)
		return;
	tool_chains_close(reader->chains);
	free(reader->events);
	tdestroy(reader->waiting, free);
	if (reader->tracepoints)
		tool_tracepoints_close(reader->tracepoints);
	tool_symbols_close(reader->symbols);
	tool_machine_close(reader->machine);
	free(reader);
	input->reader = NULL;
}

int tool_profile_open(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv)
{
	int status = tool_input_open(&input->input, options, argc, argv);

	if (status)
		return status;
	if (!tool_filter_open(&input->options.filter, command, input->input.data)) {
		tool_input_close(&input->input);
		return TOOL_FAILED;
	}
	open_reader(input);
	return TOOL_DONE;
}

void tool_profile_take_item(struct tool_profile_input *input, const struct perfring_item *item)
{
	take(input->reader, item);
}

bool tool_profile_next(struct tool_profile_input *input)
{
	struct perfring_item item;

	if (!tool_input_next(&input->input, &item))
		return false;
	take(input->reader, &item);
	return true;
}

void tool_profile_renew(struct tool_profile_input *input)
{
	struct reader *reader = input->reader;

	perfring_profile_close(input->profile);
	open_profile(input);
	input->shown = input->all = 0;
	tool_chains_renew(reader->chains);
	forget_threads(reader);
	for (uint32_t i = 0; i < reader->event_count; i++)
		reader->events[i] = PERFRING_PROFILE_NONE;
	tdestroy(reader->waiting, free);
	reader->waiting = NULL;
	reader->waiting_count = 0;
}

int tool_profile_read(struct tool_profile_input *input, const char *command, const struct tool_options *options,
		      int argc, char **argv)
{
	int status = tool_profile_open(input, command, options, argc, argv);
	struct reader *reader = input->reader;

	if (status)
		return status;
	tool_progress_begin(&input->input, command, input->options.is_quiet ? TOOL_PROGRESS_QUIET : 0);
	while (tool_profile_next(input))
		;
	end_all_waiting(reader);
	close_reader(input);
	return TOOL_DONE;
}

int tool_profile_close(struct tool_profile_input *input)
{
	int status = tool_input_end(&input->input);

	close_reader(input);
	perfring_profile_close(input->profile);
	tool_input_close(&input->input);
	return status;
}
