/* pprof.c - a profile.proto of pprof: docs/formats.md.
 *
 * Messages are built inside out: each knows its size when it is put into the next.
 *
 * A location is an address: a frame, and what was inlined there.
 *
 *     stack       main <- f <- g inlined <- h inlined
 *     locations   1        4 = f, 3 = f + g, 4 = f + g + h
 *
 * Each beginning of what is inlined at an address is a location of its own; those that no sample has are not written.
 *
 * Called by perfring_profile_write (views.h).  The whole message is made in memory, then packed by gzip.c; -ENOMEM comes before
 * anything is written.
 */
#include <inttypes.h>
#include <string.h>

#include "gzip.h"
#include "os/hash.h"
#include "table.h"
#include "views.h"

#define INLINED_MAX 128 /* frames of one location; more are another location */
#define COMM_MAX 15     /* bytes of a thread's name */

/* A growing message. */
struct message {
	unsigned char *bytes;
	size_t size, capacity;
	bool failed;
};

static void put_bytes(struct message *message, const void *bytes, size_t size)
{
	if (message->capacity - message->size < size) {
		size_t capacity = 2 * message->capacity + size + 256;
		unsigned char *more = realloc(message->bytes, capacity);

		if (!more) {
			message->failed = true;
			return;
		}
		message->bytes = more;
		message->capacity = capacity;
	}
	if (size)
		memcpy(message->bytes + message->size, bytes, size);
	message->size += size;
}

static void put_varint(struct message *message, uint64_t number)
{
	unsigned char bytes[10];
	size_t size = 0;

	do {
		bytes[size] = (unsigned char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
		number >>= 7;
		size++;
	} while (number);
	put_bytes(message, bytes, size);
}

static void put_number(struct message *message, unsigned field, uint64_t number)
{
	put_varint(message, field << 3);
	put_varint(message, number);
}

static void put_field(struct message *message, unsigned field, const void *bytes, size_t size)
{
	put_varint(message, field << 3 | 2);
	put_varint(message, size);
	put_bytes(message, bytes, size);
}

/* Puts a message into another, and empties it. */
static void put_message(struct message *message, unsigned field, struct message *inner)
{
	put_field(message, field, inner->bytes, inner->size);
	message->failed = message->failed || inner->failed;
	inner->size = 0;
}

/* Texts of the file: the profile's own, by their ids, after a few more. */
struct writer {
	const struct perfring_profile_tables *tables;
	struct message out, one, inner;
	struct message more; /* texts */
	uint32_t more_count;
	struct perfring_view_groups objects;
	struct perfring_table locations;
	uint32_t *location_of; /* by stack */
};

/* An element of the table of locations, by `outer` and `frame`. */
struct location {
	uint32_t outer; /* the location without its innermost frame; PERFRING_PROFILE_NONE: that is its only one */
	uint32_t frame;
	uint32_t inlined; /* frames but the outermost */
	bool is_used;     /* a sample has it */
};

enum {
	EMPTY, /* the first must be "" */
};

static uint64_t add_text(struct writer *writer, const char *text)
{
	put_field(&writer->more, 6, text, strlen(text));
	return writer->more_count++;
}

/* Ids of the profile's texts follow those that were added before the first of them. */
static uint64_t text_of(const struct writer *writer, uint32_t id)
{
	return id == PERFRING_PROFILE_NONE ? EMPTY : (uint64_t)writer->more_count + id;
}

static void put_types(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	uint64_t count = add_text(writer, "count"), samples = add_text(writer, "samples"),
		 nanoseconds = add_text(writer, "nanoseconds");

	put_number(&writer->one, 1, samples);
	put_number(&writer->one, 2, count);
	put_message(&writer->out, 1, &writer->one);
	for (uint32_t i = 0; i < tables->event_count; i++) {
		put_number(&writer->one, 1, add_text(writer, tables->events[i].name));
		put_number(&writer->one, 2, tables->events[i].unit ? nanoseconds : count);
		put_message(&writer->out, 1, &writer->one);
	}
	if (tables->event_count)
		put_number(&writer->out, 14, add_text(writer, tables->events[0].name)); /* what is shown first */
}

static void put_comments(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	char text[96];

	for (unsigned kind = 0; kind < PERFRING_PROFILE_LOSS_COUNT; kind++) {
		if (!tables->lost[kind])
			continue;
		snprintf(text, sizeof(text), "%s: %" PRIu64, perfring__view_loss_name(kind), tables->lost[kind]);
		put_number(&writer->out, 13, add_text(writer, text));
	}
	if (tables->epoch)
		put_number(&writer->out, 9, tables->epoch + tables->first);
	put_number(&writer->out, 10, tables->last - tables->first);
}

/* A label's name, a text or a number. */
static void put_label(struct writer *writer, uint64_t key, unsigned field, uint64_t value)
{
	put_number(&writer->inner, 1, key);
	put_number(&writer->inner, field, value);
	put_message(&writer->one, 3, &writer->inner);
}

static struct location *location_at(const struct writer *writer, uint32_t i)
{
	return perfring__table_at(&writer->locations, i);
}

static bool is_inlined(const struct perfring_profile_tables *tables, uint32_t frame)
{
	return tables->functions[tables->frames[frame].function].kind == PERFRING_PROFILE_INLINED;
}

/* Finds the location of each stack.  Returns 0 or -ENOMEM. */
static int find_locations(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	struct perfring_table_budget budget = {.max = UINT64_MAX, .factor = perfring__os_hash_factor(writer)};

	writer->locations = (struct perfring_table){.size = sizeof(struct location),
						    .key_size = offsetof(struct location, inlined)};
	writer->location_of = calloc((size_t)tables->stack_count + 1, sizeof(*writer->location_of));
	if (!writer->location_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < tables->stack_count; i++) {
		const struct perfring_profile_stack *stack = &tables->stacks[i];
		struct location key = {.outer = PERFRING_PROFILE_NONE, .frame = stack->frame};
		int64_t location;

		if (stack->caller != PERFRING_PROFILE_NONE && is_inlined(tables, stack->frame)) {
			key.outer = writer->location_of[stack->caller];
			key.inlined = location_at(writer, key.outer)->inlined + 1;
		}
		if (key.inlined == INLINED_MAX) {
			key.outer = PERFRING_PROFILE_NONE;
			key.inlined = 0;
		}
		location = perfring__table_add(&writer->locations, &budget, &key, true);
		if (location < 0)
			return -ENOMEM;
		writer->location_of[i] = (uint32_t)location;
		location_at(writer, (uint32_t)location)->inlined = key.inlined;
	}
	return 0;
}

/* The locations of a stack, the innermost first. */
static void put_stack(struct writer *writer, uint32_t stack)
{
	const struct perfring_profile_stack *stacks = writer->tables->stacks;

	while (stack != PERFRING_PROFILE_NONE) {
		uint32_t index = writer->location_of[stack];
		struct location *location = location_at(writer, index);

		put_varint(&writer->inner, (uint64_t)index + 1);
		location->is_used = true;
		for (uint32_t i = 0; i <= location->inlined; i++)
			stack = stacks[stack].caller;
	}
	put_message(&writer->one, 1, &writer->inner);
}

static void put_samples(struct writer *writer, const uint64_t *comms)
{
	const struct perfring_profile_tables *tables = writer->tables;
	uint64_t thread_key = comms[tables->thread_count], pid_key = comms[tables->thread_count + 1],
		 tid_key = comms[tables->thread_count + 2];

	for (uint32_t i = 0; i < tables->weight_count; i++) {
		const struct perfring_profile_weight *weight = &tables->weights[i];
		const struct perfring_profile_thread *thread = &tables->threads[weight->thread];

		put_stack(writer, weight->stack);
		put_varint(&writer->inner, weight->samples);
		for (uint32_t event = 0; event < tables->event_count; event++)
			put_varint(&writer->inner, event == weight->event ? weight->weight : 0);
		put_message(&writer->one, 2, &writer->inner);
		put_label(writer, thread_key, 2, comms[weight->thread]);
		if (thread->tid != PERFRING_PROFILE_NONE) {
			put_label(writer, pid_key, 3, thread->pid);
			put_label(writer, tid_key, 3, thread->tid);
		}
		put_message(&writer->out, 2, &writer->one);
	}
}

static void put_functions(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;

	for (uint32_t i = 0; i < tables->function_count; i++) {
		const struct perfring_profile_function *function = &tables->functions[i];
		uint32_t name = function->name_id == PERFRING_PROFILE_NONE ? function->object_id : function->name_id;

		put_number(&writer->one, 1, (uint64_t)i + 1);
		put_number(&writer->one, 2, text_of(writer, name));
		put_number(&writer->one, 3, text_of(writer, name));
		put_number(&writer->one, 4, text_of(writer, function->file_id));
		put_message(&writer->out, 5, &writer->one);
	}
}

/* The object of the first process's program, which the kernel has named the process after; else as many as there are. */
static uint32_t find_main(const struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	const struct perfring_profile_thread *first = tables->thread_count ? tables->threads : NULL;
	const char *comm = !first ? NULL : first->process_comm ? first->process_comm : first->comm;
	uint32_t i = 0;

	while (i < writer->objects.count &&
	       !(comm && !strncmp(perfring__view_short_name(tables->functions[writer->objects.first[i]].object), comm,
				  COMM_MAX)))
		i++;
	return i;
}

/* Puts a mapping, with flags for what pprof need not look up: functions, and, if has_lines, files, lines and inlined functions. */
static void put_object(struct writer *writer, uint32_t i, bool has_lines)
{
	const struct perfring_profile_function *function = &writer->tables->functions[writer->objects.first[i]];

	put_number(&writer->one, 1, (uint64_t)i + 1);
	put_number(&writer->one, 5, text_of(writer, function->object_id));
	put_number(&writer->one, 6, text_of(writer, function->build_id_id));
	put_number(&writer->one, 7, 1);
	for (unsigned field = 8; field <= 10 && has_lines; field++)
		put_number(&writer->one, field, 1);
	put_message(&writer->out, 3, &writer->one);
}

/* Puts the mappings; the program's first, because pprof takes the first one for that. */
static void put_objects(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	bool *has_lines = calloc((size_t)writer->objects.count + 1, sizeof(*has_lines));
	uint32_t main = find_main(writer);

	writer->out.failed = writer->out.failed || !has_lines;
	for (uint32_t i = 0; has_lines && i < tables->function_count; i++)
		if (tables->functions[i].file && writer->objects.of[i] != PERFRING_PROFILE_NONE)
			has_lines[writer->objects.of[i]] = true;
	if (has_lines && main < writer->objects.count)
		put_object(writer, main, has_lines[main]);
	for (uint32_t i = 0; has_lines && i < writer->objects.count; i++)
		if (i != main)
			put_object(writer, i, has_lines[i]);
	free(has_lines);
}

static void put_locations(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;

	for (uint32_t i = 0; i < writer->locations.count; i++) {
		const struct location *location = location_at(writer, i);
		uint32_t object = writer->objects.of[tables->frames[location->frame].function];

		if (!location->is_used)
			continue;
		put_number(&writer->one, 1, (uint64_t)i + 1);
		if (object != PERFRING_PROFILE_NONE)
			put_number(&writer->one, 2, (uint64_t)object + 1);
		put_number(&writer->one, 3, tables->frames[location->frame].address);
		for (;;) {
			const struct perfring_profile_place *frame = &tables->frames[location->frame];

			put_number(&writer->inner, 1, (uint64_t)frame->function + 1);
			put_number(&writer->inner, 2, frame->line);
			put_message(&writer->one, 4, &writer->inner);
			if (location->outer == PERFRING_PROFILE_NONE)
				break;
			location = location_at(writer, location->outer);
		}
		put_message(&writer->out, 4, &writer->one);
	}
}

/* The texts of threads, which are not in the table of texts' ids, and of labels. */
static uint64_t *add_comms(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	uint64_t *comms = calloc((size_t)tables->thread_count + 3, sizeof(*comms));

	for (uint32_t i = 0; comms && i < tables->thread_count; i++)
		comms[i] = add_text(writer, tables->threads[i].comm ? tables->threads[i].comm : "");
	if (comms) {
		comms[tables->thread_count] = add_text(writer, "thread");
		comms[tables->thread_count + 1] = add_text(writer, "pid");
		comms[tables->thread_count + 2] = add_text(writer, "tid");
	}
	return comms;
}

int perfring__write_pprof(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			  FILE *out)
{
	struct writer writer = {.tables = tables};
	uint64_t *comms;
	int error;

	(void)view; /* all events, samples and weights, are in one file */
	error = perfring__view_group(&writer.objects, tables, perfring__view_object_key);
	if (!error)
		error = find_locations(&writer);
	writer.out.failed = error;
	add_text(&writer, "");
	put_types(&writer);
	put_comments(&writer);
	comms = add_comms(&writer);
	writer.out.failed = writer.out.failed || !comms;
	if (comms && !error) {
		put_samples(&writer, comms);
		put_functions(&writer);
		put_objects(&writer);
		put_locations(&writer);
	}
	put_bytes(&writer.out, writer.more.bytes, writer.more.size);
	for (uint32_t i = 0; i < tables->text_count; i++)
		put_field(&writer.out, 6, tables->texts[i], strlen(tables->texts[i]));
	writer.out.failed = writer.out.failed || writer.more.failed;
	error = writer.out.failed ? -ENOMEM : perfring__gzip_write(out, writer.out.bytes, writer.out.size);
	free(comms);
	free(writer.location_of);
	perfring__table_close(&writer.locations);
	perfring__view_ungroup(&writer.objects);
	free(writer.one.bytes);
	free(writer.inner.bytes);
	free(writer.more.bytes);
	free(writer.out.bytes);
	return error;
}
