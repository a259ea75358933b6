/* pprof.c - a profile.proto of pprof, as it is without gzip: docs/formats.md.
 *
 * Messages are built inside out: each knows its size when it is put into the next.
 */
#include <inttypes.h>
#include <string.h>

#include "views.h"

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
		snprintf(text, sizeof(text), "%s: %" PRIu64, perfring_view_loss_name(kind), tables->lost[kind]);
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

static void put_samples(struct writer *writer, const uint64_t *comms)
{
	const struct perfring_profile_tables *tables = writer->tables;
	uint64_t thread_key = comms[tables->thread_count], pid_key = comms[tables->thread_count + 1],
		 tid_key = comms[tables->thread_count + 2];

	for (uint32_t i = 0; i < tables->weight_count; i++) {
		const struct perfring_profile_weight *weight = &tables->weights[i];
		const struct perfring_profile_thread *thread = &tables->threads[weight->thread];

		for (uint32_t stack = weight->stack; stack != PERFRING_PROFILE_NONE;
		     stack = tables->stacks[stack].caller)
			put_varint(&writer->inner, (uint64_t)tables->stacks[stack].frame + 1);
		put_message(&writer->one, 1, &writer->inner);
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

static void put_places(struct writer *writer)
{
	const struct perfring_profile_tables *tables = writer->tables;
	bool *is_object = calloc((size_t)tables->text_count + 1, sizeof(*is_object));

	writer->out.failed = writer->out.failed || !is_object;
	for (uint32_t i = 0; is_object && i < tables->function_count; i++) {
		const struct perfring_profile_function *function = &tables->functions[i];
		uint32_t name = function->name_id == PERFRING_PROFILE_NONE ? function->object_id : function->name_id;

		put_number(&writer->one, 1, (uint64_t)i + 1);
		put_number(&writer->one, 2, text_of(writer, name));
		put_number(&writer->one, 3, text_of(writer, name));
		put_number(&writer->one, 4, text_of(writer, function->file_id));
		put_message(&writer->out, 5, &writer->one);
		if (function->object_id == PERFRING_PROFILE_NONE || is_object[function->object_id])
			continue;
		is_object[function->object_id] = true;
		put_number(&writer->one, 1, (uint64_t)function->object_id + 1);
		put_number(&writer->one, 5, text_of(writer, function->object_id));
		put_number(&writer->one, 7, 1); /* its functions have names here */
		put_message(&writer->out, 3, &writer->one);
	}
	free(is_object);
	for (uint32_t i = 0; i < tables->frame_count; i++) {
		const struct perfring_profile_place *frame = &tables->frames[i];
		const struct perfring_profile_function *function = &tables->functions[frame->function];

		put_number(&writer->one, 1, (uint64_t)i + 1);
		if (function->object_id != PERFRING_PROFILE_NONE)
			put_number(&writer->one, 2, (uint64_t)function->object_id + 1);
		put_number(&writer->one, 3, frame->address);
		put_number(&writer->inner, 1, (uint64_t)frame->function + 1);
		put_number(&writer->inner, 2, frame->line);
		put_message(&writer->one, 4, &writer->inner);
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

int perfring_write_pprof(const struct perfring_profile_tables *tables, const struct perfring_profile_view *view,
			 FILE *out)
{
	struct writer writer = {.tables = tables};
	uint64_t *comms;

	(void)view; /* all events, samples and weights, are in one file */
	add_text(&writer, "");
	put_types(&writer);
	put_comments(&writer);
	comms = add_comms(&writer);
	writer.out.failed = writer.out.failed || !comms;
	if (comms)
		put_samples(&writer, comms);
	put_places(&writer);
	put_bytes(&writer.out, writer.more.bytes, writer.more.size);
	for (uint32_t i = 0; i < tables->text_count; i++)
		put_field(&writer.out, 6, tables->texts[i], strlen(tables->texts[i]));
	writer.out.failed = writer.out.failed || writer.more.failed;
	if (!writer.out.failed)
		fwrite(writer.out.bytes, 1, writer.out.size, out);
	free(comms);
	free(writer.one.bytes);
	free(writer.inner.bytes);
	free(writer.more.bytes);
	free(writer.out.bytes);
	return writer.out.failed ? -ENOMEM : 0;
}
