/* fill.c - a stream of items as a profile.
 *
 * The functions of profile_fill.h.  For each sample: filter.c says whether it counts, chains.c finds its stack, profile.c adds it up.
 * Samples of switches and of spans become intervals here (docs/formats.md).  What follows from an event's attr and name is found
 * once for each event.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/profile_fill.h>
#include <perfring/split.h>
#include <perfring/waits.h>

#include "chains.h"
#include "os/array.h"
#include "wakings.h"

enum {
	THREADS = 256,         /* remembered, by the end of their tid */
	COMM_TEXT = 16,
	EVENT_NAME = 256,
	TRACE_FLAGS_INTERRUPT = 0x18, /* of common_flags: in a hard or a soft interrupt (enum trace_flag_type of the kernel) */
};

/* What a wait's `own` is here: of the profile, and whether the stack begins with who ended the wait. */
enum {
	OWN_STACK,
	OWN_THREAD,
	OWN_CPU,
	OWN_WOKEN,
};

/* A thread as the profile has it. */
struct known_thread {
	uint32_t pid, tid;
	uint32_t index;
	uint32_t names; /* the fill's thread_names when it was added */
};

/* An event of the file or session. */
struct event {
	char *name; /* NULL until the first sample or perfring_profile_fill_name, which may come before is_known */
	bool is_known;
	bool is_wanted;
	bool is_switch, is_waking, is_interval, is_clock;
	uint32_t index;  /* in the profile; PERFRING_PROFILE_NONE: not yet */
	uint64_t period; /* of samples without one */
	struct perfring_waking_fields fields;
};

struct perfring_profile_fill {
	struct perfring_profile_fill_options options;
	struct perfring_filter filter;
	struct perfring_profile *profile;
	struct perfring_names *names, *own_names;
	struct perfring_chains *chains;
	struct perfring_split *split;
	const struct perfring_format_set *formats; /* NULL: neither file nor session */
	struct event *events;                      /* by their number */
	uint32_t event_count, event_capacity;
	struct known_thread threads[THREADS];
	uint32_t thread_names; /* changes with the names of threads, and is not 0 */
	struct perfring_waits *waits;
	uint64_t last;      /* time of the last sample or switch */
	struct perfring_profile_fill_counts counts;
};

/* ---- events ---- */

/* Whether a sample is an interval that ends at its time and is as many ns long as its period: perfring_soft_span_end, and --off-cpu of record
 * --soft and of perf. */
static bool is_interval(const char *name)
{
	return !strncmp(name, "span:", 5) || !strcmp(name, PERFRING_PROFILE_OFF_CPU);
}

static bool is_software(const struct perf_event_attr *attr, uint64_t config)
{
	return attr && attr->type == PERFRING_TYPE_SOFTWARE && attr->config == config;
}

/* Sets *name to a copy of the event's name.  Returns 0 or -ENOMEM. */
static int copy_name(const struct perfring_profile_fill *fill, uint32_t index, const struct perf_event_attr *attr,
		     char **name)
{
	const char *text = fill->options.file ? perfring_file_event_name(fill->options.file, index) : NULL;
	char own[EVENT_NAME] = "?";

	if (!text && attr && fill->options.session)
		perfring_event_name(attr, own, sizeof(own));
	*name = strdup(text ? text : own);
	return *name ? 0 : -ENOMEM;
}

/* Makes space for the event of this number.  Returns 0 or -ENOMEM. */
static int reserve_event(struct perfring_profile_fill *fill, uint32_t index)
{
	while (fill->event_count <= index) {
		if (perfring__os_array_grow(&fill->events, fill->event_count, &fill->event_capacity,
					    sizeof(*fill->events)))
			return -ENOMEM;
		fill->events[fill->event_count++] = (struct event){.index = PERFRING_PROFILE_NONE};
	}
	return 0;
}

/* What is known of an event; NULL: no memory.  Valid until: the next call. */
static struct event *event_of(struct perfring_profile_fill *fill, const struct perfring_format *format)
{
	const struct perf_event_attr *attr = perfring_format_set_attr(fill->formats, format->index);
	const char *events = fill->filter.events;
	struct event *event;

	if (reserve_event(fill, format->index))
		return NULL;
	event = &fill->events[format->index];
	if (event->is_known)
		return event;
	if (!event->name && copy_name(fill, format->index, attr, &event->name))
		return NULL;
	event->is_known = true;
	event->is_wanted = !events || perfring_filter_has_word(events, event->name);
	event->is_interval = is_interval(event->name);
	event->is_clock = is_software(attr, PERFRING_COUNT_SW_CPU_CLOCK) || is_software(attr, PERFRING_COUNT_SW_TASK_CLOCK);
	event->is_switch = perfring_waits_is_switch(attr);
	event->is_waking = attr && attr->type == PERFRING_TYPE_TRACEPOINT && !strcmp(event->name, PERFRING_PROFILE_WAKING);
	event->period = attr && !attr->freq && attr->sample_period ? attr->sample_period : 1;
	if (event->is_waking)
		perfring__waking_find(&event->fields, fill->options.file);
	return event;
}

/* The profile's event, which is added at its first use.  Returns its index; -ENOMEM. */
static int64_t add_event(struct perfring_profile_fill *fill, struct event *event)
{
	int64_t index = event->index;

	if (event->index != PERFRING_PROFILE_NONE)
		return index;
	index = perfring_profile_add_event(fill->profile, &(struct perfring_profile_event){
								  .name = event->name,
								  .unit = event->is_clock || event->is_interval ? "ns" : NULL,
								  .lasts = event->is_interval,
							  });
	if (index >= 0)
		event->index = (uint32_t)index;
	return index;
}

int perfring_profile_fill_name(struct perfring_profile_fill *fill, uint32_t event, const char *name)
{
	char *copy;

	if (!fill->options.session || event >= perfring_format_set_count(fill->formats))
		return -EINVAL;
	copy = strdup(name);
	if (!copy || reserve_event(fill, event)) {
		free(copy);
		return -ENOMEM;
	}
	free(fill->events[event].name);
	fill->events[event] = (struct event){.name = copy, .index = PERFRING_PROFILE_NONE};
	return 0;
}

/* Whether an event reports returns, of those that are known by now. */
static bool has_returns(const struct perfring_profile_fill *fill)
{
	return perfring_waits_has_returns(fill->waits, fill->formats);
}

/* ---- threads ---- */

static const char *comm_of(const struct perfring_profile_fill *fill, uint32_t tid, char text[COMM_TEXT])
{
	const char *comm = perfring_maps_comm(perfring_names_maps(fill->names), tid);

	if (comm)
		return comm;
	snprintf(text, COMM_TEXT, ":%" PRId32, (int32_t)tid);
	return text;
}

static const char *sample_comm(const struct perfring_profile_fill *fill, const struct perfring_sample *sample,
			       char text[COMM_TEXT])
{
	return sample->present & PERFRING_SAMPLE_TID ? comm_of(fill, sample->tid, text) : "[unknown]";
}

/* Returns the index of the sample's thread; -ENOMEM. */
static int64_t add_thread(struct perfring_profile_fill *fill, const struct perfring_sample *sample)
{
	bool has = sample->present & PERFRING_SAMPLE_TID;
	struct known_thread *known = &fill->threads[has ? sample->tid % THREADS : 0];
	uint32_t pid = has ? sample->pid : PERFRING_PROFILE_NONE, tid = has ? sample->tid : PERFRING_PROFILE_NONE;
	char comm[COMM_TEXT], process_comm[COMM_TEXT];
	int64_t index;

	if (known->names == fill->thread_names && known->pid == pid && known->tid == tid)
		return known->index;
	index = perfring_profile_add_thread(fill->profile, &(struct perfring_profile_thread){
								   .pid = pid,
								   .tid = tid,
								   .comm = sample_comm(fill, sample, comm),
								   .process_comm = has ? comm_of(fill, pid, process_comm) : NULL,
							   });
	if (index >= 0)
		*known = (struct known_thread){.pid = pid, .tid = tid, .names = fill->thread_names, .index = (uint32_t)index};
	return index;
}

/* Forgets them: their names or the profile are others. */
static void forget_threads(struct perfring_profile_fill *fill)
{
	if (!++fill->thread_names) {
		memset(fill->threads, 0, sizeof(fill->threads));
		fill->thread_names = 1;
	}
}

/* ---- time off the CPU: from a context switch's sample to the record of the thread's return ---- */

/* The sample of a switch: its thread waits from now on.  Returns 0; -ENOSPC: too many do; -ENOMEM. */
static int begin_wait(struct perfring_profile_fill *fill, const struct perfring_sample *sample,
		      const struct perfring_profile_sample *one)
{
	return perfring_waits_begin(fill->waits,
				    &(struct perfring_wait){.tid = sample->tid,
							    .begin = one->time,
							    .own = {[OWN_STACK] = one->stack, [OWN_THREAD] = one->thread, [OWN_CPU] = one->cpu}});
}

/* Who ends a wait, as the innermost frame of the stack that waits: the first one that wakes the thread.  Returns 0 or -ENOMEM. */
static int take_waking(struct perfring_profile_fill *fill, const struct event *event, const struct perfring_sample *sample)
{
	struct perfring_profile_frame frame = {.kind = PERFRING_PROFILE_UNKNOWN};
	char name[64], comm[COMM_TEXT];
	struct perfring_wait *wait;
	uint64_t flags = 0;
	int64_t index;
	uint32_t tid;

	if (!(sample->present & PERFRING_SAMPLE_RAW) ||
	    !perfring__waking_read(&event->fields, &sample->raw, &tid, &flags))
		return 0;
	wait = perfring_waits_find(fill->waits, tid);
	if (!wait || wait->is_ready || wait->own[OWN_WOKEN])
		return 0;
	snprintf(name, sizeof(name), "[woken by %s]",
		 flags & TRACE_FLAGS_INTERRUPT ? "an interrupt" : sample_comm(fill, sample, comm));
	frame.name = name;
	index = perfring_profile_add_frame(fill->profile, &frame);
	if (index >= 0)
		index = perfring_profile_add_stack(fill->profile, (uint32_t)wait->own[OWN_STACK], (uint32_t)index);
	if (index < 0)
		return (int)index;
	wait->own[OWN_STACK] = (uint64_t)index;
	wait->own[OWN_WOKEN] = true;
	return 0;
}

/* The thread runs again.  Returns 0 or -ENOMEM. */
static int add_wait(struct perfring_profile_fill *fill, const struct perfring_wait *wait, uint64_t time)
{
	struct perfring_profile_event event = {
		.name = wait->is_ready ? PERFRING_PROFILE_RUNQUEUE : PERFRING_PROFILE_OFF_CPU, .unit = "ns", .lasts = true};
	struct perfring_profile_sample one = {.time = wait->begin,
					      .weight = time > wait->begin ? time - wait->begin : 0,
					      .stack = (uint32_t)wait->own[OWN_STACK],
					      .thread = (uint32_t)wait->own[OWN_THREAD],
					      .cpu = (uint32_t)wait->own[OWN_CPU]};
	int64_t index;

	if (!one.weight || (fill->filter.events && !perfring_filter_has_word(fill->filter.events, event.name)))
		return 0;
	index = perfring_profile_add_event(fill->profile, &event);
	if (index < 0)
		return (int)index;
	one.event = (uint32_t)index;
	return perfring_profile_add_sample(fill->profile, &one);
}

static int take_switch(struct perfring_profile_fill *fill, const struct perfring_record *record, uint64_t time)
{
	const struct perfring_wait *ended = perfring_waits_take(fill->waits, record);

	return ended ? add_wait(fill, ended, time) : 0;
}

int perfring_profile_fill_end(struct perfring_profile_fill *fill)
{
	const struct perfring_wait *wait;
	int error = 0;

	while (!error && (wait = perfring_waits_next(fill->waits)))
		error = add_wait(fill, wait, fill->last);
	return error;
}

/* ---- samples ---- */

/* Whether the filter shows it: by its innermost function, of those that are kept.  Returns 1, 0, -ENOMEM. */
static int is_shown(struct perfring_profile_fill *fill, const struct perfring_sample *sample)
{
	const struct perfring_filter *filter = &fill->filter;
	struct perfring_name name = {.name = NULL};
	struct perfring_sample kept;
	char comm[COMM_TEXT];
	int found = 0;

	if ((filter->objects || filter->symbols) && filter->frames) {
		kept = *sample;
		sample = &kept;
		if (!perfring_stacks_innermost(&kept, perfring_filter_modes(filter)))
			return 0;
	}
	if ((filter->objects || filter->symbols) && sample->present & PERFRING_SAMPLE_IP)
		found = perfring_names_find(fill->names, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
					    sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0, sample->ip, &name);
	if (found < 0)
		return found;
	return perfring_filter_shows(filter, sample, filter->comms ? sample_comm(fill, sample, comm) : NULL, name.object,
				     name.name);
}

/* Adds a sample of one event.  Returns 0 or -ENOMEM. */
static int take_event(struct perfring_profile_fill *fill, const struct perfring_format *format,
		      const struct perfring_sample *sample)
{
	struct perfring_profile_sample one = {.time = sample->present & PERFRING_SAMPLE_TIME ? sample->time : 0};
	struct event *event = event_of(fill, format);
	bool begins, is_truncated = false;
	int64_t thread, index;
	int ret;

	if (!event)
		return -ENOMEM;
	begins = event->is_switch && has_returns(fill) && one.time && sample->present & PERFRING_SAMPLE_TID;
	if (!begins && !event->is_wanted)
		return 0;
	ret = is_shown(fill, sample);
	if (ret <= 0)
		return ret;
	ret = perfring__chains_find(fill->chains, fill->profile, sample, &one.stack, &is_truncated);
	if (ret || (one.stack == PERFRING_PROFILE_NONE && fill->filter.frames))
		return ret;
	thread = add_thread(fill, sample);
	if (thread < 0)
		return (int)thread;
	one.thread = (uint32_t)thread;
	one.cpu = sample->present & PERFRING_SAMPLE_CPU ? sample->cpu : PERFRING_PROFILE_NONE;
	ret = begins ? begin_wait(fill, sample, &one) : -ENOSPC;
	if (ret != -ENOSPC || !event->is_wanted) /* the switch is shown as its wait, when that ends */
		return ret == -ENOSPC ? 0 : ret;
	index = add_event(fill, event);
	if (index < 0)
		return (int)index;
	one.event = (uint32_t)index;
	one.weight = sample->present & PERFRING_SAMPLE_PERIOD ? sample->period : event->period;
	if (event->is_interval && one.time > one.weight)
		one.time -= one.weight; /* as of all intervals: their beginning */
	ret = perfring_profile_add_sample(fill->profile, &one);
	if (ret)
		return ret;
	if (is_truncated)
		perfring_profile_count_truncated(fill->profile);
	fill->counts.shown++;
	return 0;
}

static int take_sample(struct perfring_profile_fill *fill, const struct perfring_item *item, struct perfring_sample *sample)
{
	const struct perfring_format *format = NULL;
	const struct event *event = event_of(fill, item->format);
	int ret = event ? perfring_names_advance(fill->names, item->time) : -ENOMEM;
	bool counts = perfring_filter_counts(&fill->filter, sample);

	if (ret < 0)
		return ret;
	if (counts && sample->present & PERFRING_SAMPLE_TIME && sample->time > fill->last)
		fill->last = sample->time;
	if (event->is_waking && has_returns(fill)) {
		ret = take_waking(fill, event, sample);
		if (ret || !fill->filter.events) /* it is shown in what it ends */
			return ret;
	}
	if (!counts)
		return 0;
	perfring_split_begin(fill->split, item->format, sample);
	while ((ret = perfring_split_next(fill->split, &format)) == 1) {
		ret = take_event(fill, format, sample);
		if (ret)
			return ret;
	}
	return ret;
}

int perfring_profile_fill_stack(struct perfring_profile_fill *fill, const struct perfring_sample *sample, uint32_t *stack)
{
	bool is_truncated;

	return perfring__chains_find(fill->chains, fill->profile, sample, stack, &is_truncated);
}

/* ---- other records ---- */

static int add_loss(struct perfring_profile_fill *fill, const struct perfring_item *item,
		    const struct perfring_trailer *trailer, enum perfring_profile_loss_kind kind, uint64_t count)
{
	struct perfring_profile_loss loss = {.time = item->time,
					     .count = count,
					     .kind = kind,
					     .thread = PERFRING_PROFILE_NONE,
					     .event = PERFRING_PROFILE_NONE,
					     .cpu = PERFRING_PROFILE_NONE};

	if (item->format && kind != PERFRING_PROFILE_LOST_RECORDS && kind != PERFRING_PROFILE_UNREAD) {
		struct event *event = event_of(fill, item->format);
		int64_t index = event ? add_event(fill, event) : -ENOMEM;

		if (index < 0)
			return (int)index;
		loss.event = (uint32_t)index;
	}
	if (trailer && trailer->present & PERFRING_SAMPLE_CPU)
		loss.cpu = trailer->cpu;
	return perfring_profile_add_loss(fill->profile, &loss);
}

static int take_record(struct perfring_profile_fill *fill, const struct perfring_item *item,
		       const struct perfring_record *record)
{
	int error = perfring_names_take_record(fill->names, record);

	if (error)
		return error;
	switch (record->type) {
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
		forget_threads(fill);
		return has_returns(fill) ? take_switch(fill, record, item->time) : 0;
	case PERFRING_RECORD_LOST:
		return add_loss(fill, item, &record->trailer, PERFRING_PROFILE_LOST_RECORDS, record->is.lost.lost);
	case PERFRING_RECORD_LOST_SAMPLES:
		return add_loss(fill, item, &record->trailer, PERFRING_PROFILE_LOST_SAMPLES, record->is.lost_samples.lost);
	case PERFRING_RECORD_THROTTLE:
		return add_loss(fill, item, &record->trailer, PERFRING_PROFILE_THROTTLED, 1);
	case PERFRING_RECORD_SWITCH:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
		fill->last = item->time > fill->last ? item->time : fill->last;
		return take_switch(fill, record, item->time);
	default:
		return 0;
	}
}

int perfring_profile_fill_item(struct perfring_profile_fill *fill, const struct perfring_item *item,
			       struct perfring_fault *fault)
{
	struct perfring_record record;
	struct perfring_sample sample;
	int error, lost;

	if (fault)
		*fault = (struct perfring_fault){0, NULL};
	if (!fill->formats)
		return -EINVAL;
	if (item->record->type != PERFRING_RECORD_SAMPLE) {
		error = perfring_record_decode(item->format, item->record, &record, fault);
		return error ? error : take_record(fill, item, &record);
	}
	fill->counts.samples++;
	error = item->format ? perfring_sample_decode(item->format, item->record, &sample, fault) : -EBADMSG;
	if (!error)
		return take_sample(fill, item, &sample);
	lost = add_loss(fill, item, NULL, PERFRING_PROFILE_UNREAD, 1);
	return lost ? lost : error;
}

/* ---- all of it ---- */

struct perfring_names *perfring_profile_fill_names(const struct perfring_profile_fill *fill)
{
	return fill->names;
}

void perfring_profile_fill_count(const struct perfring_profile_fill *fill, struct perfring_profile_fill_counts *counts)
{
	*counts = fill->counts;
	counts->unknown = fill->split ? perfring_split_unknown(fill->split) : 0;
}

void perfring_profile_fill_renew(struct perfring_profile_fill *fill, struct perfring_profile *profile)
{
	fill->profile = profile;
	fill->counts = (struct perfring_profile_fill_counts){.samples = 0};
	perfring__chains_renew(fill->chains);
	forget_threads(fill);
	perfring_waits_forget(fill->waits);
	for (uint32_t i = 0; i < fill->event_count; i++)
		fill->events[i].index = PERFRING_PROFILE_NONE;
}

static bool is_valid_option(const struct perfring_profile_fill_options *options)
{
	const uint32_t flags = PERFRING_FILL_NO_INLINE | PERFRING_FILL_LINES | PERFRING_FILL_BUILD_IDS;

	return !(options->flags & ~flags) && options->addresses < PERFRING_FILL_ADDRESSES_COUNT &&
	       !(options->file && options->session) && (!options->filter || !perfring_filter_check(options->filter));
}

static int open_all(struct perfring_profile_fill *fill)
{
	struct perfring_names_options names = {.file = fill->options.file};
	int error = 0;

	if (!fill->options.names)
		error = perfring_names_open(&fill->own_names, &names);
	fill->names = fill->own_names ? fill->own_names : fill->options.names;
	if (fill->options.file)
		fill->formats = perfring_file_formats(fill->options.file);
	if (fill->options.session)
		fill->formats = perfring_session_formats(fill->options.session);
	if (!error)
		error = perfring_waits_open(&fill->waits);
	if (!error && fill->formats)
		error = perfring_split_open(&fill->split, fill->formats);
	return error ? error
		     : perfring__chains_open(&fill->chains, fill->names, &fill->options,
					     perfring_filter_modes(&fill->filter));
}

int perfring_profile_fill_open(struct perfring_profile_fill **result, struct perfring_profile *profile,
			       const struct perfring_profile_fill_options *options)
{
	static const struct perfring_profile_fill_options none;
	struct perfring_profile_fill *fill;
	int error;

	*result = NULL;
	options = options ? options : &none;
	if (!is_valid_option(options))
		return -EINVAL;
	fill = calloc(1, sizeof(*fill));
	if (!fill)
		return -ENOMEM;
	fill->options = *options;
	fill->profile = profile;
	fill->thread_names = 1;
	if (options->filter)
		fill->filter = *options->filter;
	error = open_all(fill);
	if (error) {
		perfring_profile_fill_close(fill);
		return error;
	}
	*result = fill;
	return 0;
}

void perfring_profile_fill_close(struct perfring_profile_fill *fill)
{
	if (!fill)
		return;
	perfring__chains_close(fill->chains);
	perfring_split_close(fill->split);
	perfring_names_close(fill->own_names);
	for (uint32_t i = 0; i < fill->event_count; i++)
		free(fill->events[i].name);
	free(fill->events);
	perfring_waits_close(fill->waits);
	free(fill);
}
