/* profile.c - the tables of a profile.
 *
 * The functions of profile.h that fill and read a profile; views.c and flame.c write it.  Each kind of entry is a table of
 * table.h, texts are one copy each (symbol/intern.h).  All tables together have a budget: beyond it stacks become one, "[too many
 * stacks]".  One thread at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/profile.h>

#include "os/array.h"
#include "os/hash.h"
#include "symbol/intern.h"
#include "table.h"
#include "views.h"

enum {
	RECENT = 256, /* weights that are found by their stack alone; a power of two */
};

#define CROWDED "[too many stacks]"
#define CROWD "[too many threads]"

struct perfring_profile {
	struct perfring_table_budget budget;
	struct perfring_intern bytes; /* of texts */
	struct perfring_table texts, functions, frames, stacks, threads, events, weights;
	struct perfring_profile_sample *samples;
	uint64_t sample_count, sample_capacity;
	struct perfring_profile_loss *losses;
	uint32_t loss_count, loss_capacity;
	uint64_t lost[PERFRING_PROFILE_LOSS_COUNT];
	uint64_t nameless, truncated, crowded, unlisted;
	uint64_t first, last;
	uint32_t crowded_frame, crowded_stack; /* PERFRING_PROFILE_NONE: there is none yet */
	/* of each stack, 1 and more: the stack that was found last of those that it calls.  Stacks that were added one after the other are
	 * side by side, so a path is found in a few lines of memory, without its hashes */
	uint32_t *callees;
	uint32_t callee_capacity;
	uint32_t recent[RECENT]; /* 1 and more: indexes of weights, by the end of the number of the stack */
	bool lists;
	const char *command, *host;
	uint64_t epoch;
};

/* ---- texts and frames ---- */

/* The one copy of a text, and its index.  NULL stays NULL. */
static int add_text(struct perfring_profile *profile, const char *text, bool must, const char **copy, uint32_t *id)
{
	uint64_t max = profile->bytes.max;
	const void *bytes = NULL;
	int64_t index;
	int error;

	*copy = NULL;
	*id = PERFRING_PROFILE_NONE;
	if (!text)
		return 0;
	if (must)
		profile->bytes.max = UINT64_MAX;
	error = perfring__intern(&profile->bytes, text, strlen(text), &bytes);
	profile->bytes.max = max;
	if (error)
		return error;
	if (!bytes)
		return -ENOSPC;
	index = perfring__table_add(&profile->texts, &profile->budget, &bytes, must);
	if (index < 0)
		return (int)index;
	*copy = bytes;
	*id = (uint32_t)index;
	return 0;
}

static int64_t add_frame(struct perfring_profile *profile, const struct perfring_profile_frame *frame, bool must)
{
	struct perfring_profile_place place = {.line = frame->line, .address = frame->address};
	struct perfring_profile_function function;
	int64_t index;
	int error;

	memset(&function, 0, sizeof(function));
	function.kind = frame->kind;
	error = add_text(profile, frame->name, must, &function.name, &function.name_id);
	if (!error)
		error = add_text(profile, frame->object, must, &function.object, &function.object_id);
	if (!error)
		error = add_text(profile, frame->file, must, &function.file, &function.file_id);
	if (!error)
		error = add_text(profile, frame->build_id, must, &function.build_id, &function.build_id_id);
	if (error)
		return error;
	index = perfring__table_add(&profile->functions, &profile->budget, &function, must);
	if (index < 0)
		return index;
	place.function = (uint32_t)index;
	return perfring__table_add(&profile->frames, &profile->budget, &place, must);
}

/* Makes the stack "[too many stacks]", for samples beyond the bound.  Returns 0 or -ENOMEM. */
static int make_crowded(struct perfring_profile *profile)
{
	struct perfring_profile_stack stack = {.caller = PERFRING_PROFILE_NONE};
	int64_t index;

	if (profile->crowded_stack != PERFRING_PROFILE_NONE)
		return 0;
	index = add_frame(profile, &(struct perfring_profile_frame){.name = CROWDED}, true);
	if (index < 0)
		return (int)index;
	stack.frame = profile->crowded_frame = (uint32_t)index;
	index = perfring__table_add(&profile->stacks, &profile->budget, &stack, true);
	if (index < 0)
		return (int)index;
	profile->crowded_stack = (uint32_t)index;
	return 0;
}

int64_t perfring_profile_add_frame(struct perfring_profile *profile, const struct perfring_profile_frame *frame)
{
	int64_t index = frame->kind < PERFRING_PROFILE_KIND_COUNT ? add_frame(profile, frame, false) : -EINVAL;
	int error;

	if (index != -ENOSPC)
		return index;
	error = make_crowded(profile);
	return error ? error : (int64_t)profile->crowded_frame;
}

/* Remembers a callee.  Without memory it is found by its hash. */
static void keep_callee(struct perfring_profile *profile, uint32_t caller, uint32_t callee)
{
	uint32_t before = profile->callee_capacity, capacity = profile->stacks.capacity;

	if (caller >= before) {
		if (perfring__os_array_resize(&profile->callees, capacity, sizeof(*profile->callees)))
			return;
		memset(profile->callees + before, 0, (capacity - before) * sizeof(*profile->callees));
		profile->callee_capacity = capacity;
		profile->budget.used += (uint64_t)(capacity - before) * sizeof(*profile->callees);
	}
	profile->callees[caller] = callee + 1;
}

int64_t perfring_profile_add_stack(struct perfring_profile *profile, uint32_t caller, uint32_t frame)
{
	struct perfring_profile_stack stack = {caller, frame}, *callee;
	int64_t index = -ENOSPC;
	int error;

	if (frame >= profile->frames.count || (caller != PERFRING_PROFILE_NONE && caller >= profile->stacks.count))
		return -EINVAL;
	if (caller < profile->callee_capacity && profile->callees[caller]) {
		callee = perfring__table_at(&profile->stacks, profile->callees[caller] - 1);
		if (callee->frame == frame)
			return profile->callees[caller] - 1;
	}
	if (profile->crowded_stack == PERFRING_PROFILE_NONE ||
	    (frame != profile->crowded_frame && caller != profile->crowded_stack))
		index = perfring__table_add(&profile->stacks, &profile->budget, &stack, false);
	if (index >= 0 && caller != PERFRING_PROFILE_NONE)
		keep_callee(profile, caller, (uint32_t)index);
	if (index != -ENOSPC)
		return index;
	error = make_crowded(profile);
	return error ? error : (int64_t)profile->crowded_stack;
}

/* ---- what samples are of ---- */

int64_t perfring_profile_add_event(struct perfring_profile *profile, const struct perfring_profile_event *event)
{
	struct perfring_profile_event key;
	uint32_t id;
	int error;

	if (event->lasts > 1)
		return -EINVAL;
	memset(&key, 0, sizeof(key));
	key.lasts = event->lasts;
	error = add_text(profile, event->name, true, &key.name, &id);
	if (!error)
		error = add_text(profile, event->unit, true, &key.unit, &id);
	return error ? error : perfring__table_add(&profile->events, &profile->budget, &key, true);
}

static int64_t add_thread(struct perfring_profile *profile, const struct perfring_profile_thread *thread, bool must)
{
	struct perfring_profile_thread key;
	uint32_t id;
	int error;

	memset(&key, 0, sizeof(key));
	key.pid = thread->pid;
	key.tid = thread->tid;
	error = add_text(profile, thread->comm, must, &key.comm, &id);
	if (!error)
		error = add_text(profile, thread->process_comm, must, &key.process_comm, &id);
	return error ? error : perfring__table_add(&profile->threads, &profile->budget, &key, must);
}

int64_t perfring_profile_add_thread(struct perfring_profile *profile, const struct perfring_profile_thread *thread)
{
	static const struct perfring_profile_thread crowd = {.pid = UINT32_MAX, .tid = UINT32_MAX, .comm = CROWD};
	int64_t index = add_thread(profile, thread, false);

	return index == -ENOSPC ? add_thread(profile, &crowd, true) : index;
}

/* ---- samples ---- */

static void span(uint64_t *first, uint64_t *last, uint64_t time)
{
	if (!time)
		return;
	if (!*last || time < *first)
		*first = time;
	if (time > *last)
		*last = time;
}

static bool is_nameless(const struct perfring_profile *profile, uint32_t stack)
{
	const struct perfring_profile_stack *stacks = (const void *)profile->stacks.elements;
	const struct perfring_profile_place *frames = (const void *)profile->frames.elements;
	const struct perfring_profile_function *functions = (const void *)profile->functions.elements;

	return stack == PERFRING_PROFILE_NONE || !functions[frames[stacks[stack].frame].function].name;
}

/* Adds a sample to the list of samples, if there is space.  Returns 0 or -ENOMEM. */
static int list(struct perfring_profile *profile, const struct perfring_profile_sample *sample)
{
	uint64_t capacity = profile->sample_capacity ? 2 * profile->sample_capacity : 1024;
	uint64_t bytes = (capacity - profile->sample_capacity) * sizeof(*sample);

	if (profile->sample_count == profile->sample_capacity) {
		if (bytes > profile->budget.max || profile->budget.used > profile->budget.max - bytes) {
			profile->unlisted++;
			return 0;
		}
		if (perfring__os_array_resize(&profile->samples, (size_t)capacity, sizeof(*sample)))
			return -ENOMEM;
		profile->sample_capacity = capacity;
		profile->budget.used += bytes;
	}
	profile->samples[profile->sample_count++] = *sample;
	return 0;
}

/* The weights of this sample's stack, thread and event.  Returns 0 or -ENOMEM. */
static int find_weight(struct perfring_profile *profile, struct perfring_profile_sample *sample, int64_t *index)
{
	struct perfring_profile_weight key = {sample->stack, sample->thread, sample->event, 0, 0, 0};
	uint32_t *recent = &profile->recent[sample->stack % RECENT];
	const struct perfring_profile_weight *last;
	int error;

	if (*recent) {
		*index = *recent - 1;
		last = perfring__table_at(&profile->weights, (uint64_t)*index);
		if (last->stack == key.stack && last->thread == key.thread && last->event == key.event)
			return 0;
	}
	*index = perfring__table_add(&profile->weights, &profile->budget, &key, false);
	if (*index >= 0)
		*recent = (uint32_t)*index + 1;
	if (*index != -ENOSPC)
		return *index < 0 ? (int)*index : 0;
	error = make_crowded(profile);
	if (error)
		return error;
	key.stack = sample->stack = profile->crowded_stack;
	*index = perfring__table_add(&profile->weights, &profile->budget, &key, true);
	return *index < 0 ? (int)*index : 0;
}

int perfring_profile_add_sample(struct perfring_profile *profile, const struct perfring_profile_sample *given)
{
	struct perfring_profile_sample sample = *given;
	struct perfring_profile_weight *weight;
	struct perfring_profile_thread *thread;
	struct perfring_profile_event *event;
	int64_t index;
	int error;

	if (sample.thread >= profile->threads.count || sample.event >= profile->events.count ||
	    (sample.stack != PERFRING_PROFILE_NONE && sample.stack >= profile->stacks.count))
		return -EINVAL;
	error = find_weight(profile, &sample, &index);
	if (!error && profile->lists)
		error = list(profile, &sample);
	if (error)
		return error;
	weight = perfring__table_at(&profile->weights, (uint64_t)index);
	weight->samples++;
	weight->weight = perfring__view_plus(weight->weight, sample.weight);
	event = perfring__table_at(&profile->events, sample.event);
	event->samples++;
	event->weight = perfring__view_plus(event->weight, sample.weight);
	thread = perfring__table_at(&profile->threads, sample.thread);
	span(&thread->first, &thread->last, sample.time);
	span(&profile->first, &profile->last, sample.time);
	if (sample.stack != PERFRING_PROFILE_NONE && sample.stack == profile->crowded_stack)
		profile->crowded++;
	else if (is_nameless(profile, sample.stack))
		profile->nameless++;
	return 0;
}

void perfring_profile_count_truncated(struct perfring_profile *profile)
{
	profile->truncated++;
}

int perfring_profile_add_loss(struct perfring_profile *profile, const struct perfring_profile_loss *loss)
{
	struct perfring_profile_event *event;

	if (loss->kind >= PERFRING_PROFILE_LOSS_COUNT ||
	    (loss->event != PERFRING_PROFILE_NONE && loss->event >= profile->events.count) ||
	    (loss->thread != PERFRING_PROFILE_NONE && loss->thread >= profile->threads.count))
		return -EINVAL;
	if (profile->loss_count < PERFRING_PROFILE_LOSSES_MAX) {
		if (perfring__os_array_grow(&profile->losses, profile->loss_count, &profile->loss_capacity,
					    sizeof(*loss)))
			return -ENOMEM;
		profile->losses[profile->loss_count++] = *loss;
	}
	profile->lost[loss->kind] = perfring__view_plus(profile->lost[loss->kind], loss->count);
	if (loss->kind == PERFRING_PROFILE_LOST_SAMPLES && loss->event != PERFRING_PROFILE_NONE) {
		event = perfring__table_at(&profile->events, loss->event);
		event->lost_samples = perfring__view_plus(event->lost_samples, loss->count);
	}
	return 0;
}

/* ---- all of it ---- */

int perfring_profile_open(struct perfring_profile **result, const struct perfring_profile_options *given)
{
	static const struct perfring_profile_options none;
	const struct perfring_profile_options *options = given ? given : &none;
	struct perfring_profile *profile;
	uint32_t id;
	int error;

	*result = NULL;
	if (options->flags & ~(uint32_t)PERFRING_PROFILE_SAMPLES)
		return -EINVAL;
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return -ENOMEM;
	profile->budget.max = options->bytes_max ? options->bytes_max : PERFRING_PROFILE_BYTES_MAX;
	profile->budget.factor = perfring__os_hash_factor(profile);
	profile->bytes.max = profile->budget.max / 4;
	profile->budget.max -= profile->bytes.max;
	profile->texts.size = profile->texts.key_size = sizeof(const char *);
	profile->functions.size = profile->functions.key_size = sizeof(struct perfring_profile_function);
	profile->frames.size = profile->frames.key_size = sizeof(struct perfring_profile_place);
	profile->stacks.size = profile->stacks.key_size = sizeof(struct perfring_profile_stack);
	profile->threads.size = sizeof(struct perfring_profile_thread);
	profile->threads.key_size = offsetof(struct perfring_profile_thread, first);
	profile->events.size = sizeof(struct perfring_profile_event);
	profile->events.key_size = offsetof(struct perfring_profile_event, samples);
	profile->weights.size = sizeof(struct perfring_profile_weight);
	profile->weights.key_size = offsetof(struct perfring_profile_weight, samples);
	profile->crowded_frame = profile->crowded_stack = PERFRING_PROFILE_NONE;
	profile->lists = options->flags & PERFRING_PROFILE_SAMPLES;
	profile->epoch = options->epoch;
	error = add_text(profile, options->command, true, &profile->command, &id);
	if (!error)
		error = add_text(profile, options->host, true, &profile->host, &id);
	if (error) {
		perfring_profile_close(profile);
		return error;
	}
	*result = profile;
	return 0;
}

void perfring_profile_close(struct perfring_profile *profile)
{
	if (!profile)
		return;
	perfring__table_close(&profile->texts);
	perfring__table_close(&profile->functions);
	perfring__table_close(&profile->frames);
	perfring__table_close(&profile->stacks);
	perfring__table_close(&profile->threads);
	perfring__table_close(&profile->events);
	perfring__table_close(&profile->weights);
	perfring__intern_close(&profile->bytes);
	free(profile->callees);
	free(profile->samples);
	free(profile->losses);
	free(profile);
}

void perfring_profile_read(const struct perfring_profile *profile, struct perfring_profile_tables *tables)
{
	*tables = (struct perfring_profile_tables){
		.texts = (const void *)profile->texts.elements,
		.functions = (const void *)profile->functions.elements,
		.frames = (const void *)profile->frames.elements,
		.stacks = (const void *)profile->stacks.elements,
		.threads = (const void *)profile->threads.elements,
		.events = (const void *)profile->events.elements,
		.weights = (const void *)profile->weights.elements,
		.samples = profile->samples,
		.losses = profile->losses,
		.text_count = profile->texts.count,
		.function_count = profile->functions.count,
		.frame_count = profile->frames.count,
		.stack_count = profile->stacks.count,
		.thread_count = profile->threads.count,
		.event_count = profile->events.count,
		.weight_count = profile->weights.count,
		.loss_count = profile->loss_count,
		.sample_count = profile->sample_count,
		.nameless = profile->nameless,
		.truncated = profile->truncated,
		.crowded = profile->crowded,
		.unlisted = profile->unlisted,
		.first = profile->first,
		.last = profile->last,
		.command = profile->command,
		.host = profile->host,
		.epoch = profile->epoch,
	};
	memcpy(tables->lost, profile->lost, sizeof(tables->lost));
}
