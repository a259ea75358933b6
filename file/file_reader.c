/* file_reader.c - the records of a perf.data file, pipe or directory in time order.
 *
 * Each stream orders its own; of several streams, whose records are due, the oldest comes first.
 */
#include <stdlib.h>
#include "file_private.h"

/* What may wait in all streams when no round ends: memory stays bounded whatever the file says. */
#define WINDOW_BLOCKS 24
#define WINDOW_RECORDS (1u << 18)
/* And of a pipe's records about itself. */
#define LEADING_BLOCKS 24
#define LEADING_RECORDS (1u << 18)

int64_t perfring_file_position(const struct perfring_file *file)
{
	return file->position;
}

uint32_t perfring_file_part(const struct perfring_file *file)
{
	return file ? file->current_stream : 0;
}

void perfring_file_compression(const struct perfring_file *file, struct perfring_file_compressed *compression)
{
	*compression = file->stock.compression;
}

uint64_t perfring_file_late(const struct perfring_file *file)
{
	return file->late;
}

bool perfring_file_was_late(const struct perfring_file *file)
{
	return file->was_late;
}

int64_t perfring_file_read_trace(struct perfring_file *file, void *room, size_t size)
{
	int64_t got;

	if (!file)
		return -EINVAL;
	/* Other items may be handed out while these bytes still wait to be passed over. */
	if (!file->current || file->current->type != PERFRING_RECORD_AUXTRACE)
		return 0;
	got = perfring_stream_read_behind(&file->streams[file->current_stream], room, size);
	if (got == -EBADMSG)
		file->fault = file->stock.fault;
	return got;
}

static void leave(struct perfring_file *file)
{
	perfring_stock_leave(&file->stock, file->current);
	file->current = NULL;
}

/* The record is held already. */
static void hand_out(struct perfring_file *file, uint32_t stream, struct perfring_item *item,
		     const struct perfring_pending *pending)
{
	item->record = pending->record;
	item->format = pending->format;
	item->time = pending->time;
	file->position = pending->at;
	file->current = pending->record;
	file->current_stream = stream;
	file->was_late = pending->time && pending->time < file->newest;
	file->late += file->was_late;
	if (pending->time > file->newest)
		file->newest = pending->time;
}

/* The other byte order's record as a copy in ours.  Its format must be known first, so its words are turned before all
 * else: ids are words. */
static int make_native(struct perfring_file *file, struct perfring_stream *stream,
		       const struct perf_event_header **record)
{
	const struct perf_event_header *foreign = *record;
	struct perf_event_header header = perfring_header_to_native(foreign);
	const struct perfring_format *format = NULL;
	unsigned char *room = perfring_stream_room(stream, header.size);
	uint32_t at = sizeof(header);
	uint64_t word;

	if (!room)
		return -ENOMEM;
	if (header.type < PERFRING_RECORD_OF_PERF && file->event_count > 1) {
		memcpy(room, &header, sizeof(header));
		for (; at + 8u <= header.size; at += 8) {
			memcpy(&word, (const unsigned char *)foreign + at, 8);
			word = __builtin_bswap64(word);
			memcpy(room + at, &word, 8);
		}
		/* a damaged one's id may be looked for in here, and must not be what the room held before */
		memcpy(room + at, (const unsigned char *)foreign + at, header.size - at);
		perfring_format_set_of(file->formats, (const struct perf_event_header *)(void *)room, &format, NULL);
	} else if (header.type < PERFRING_RECORD_OF_PERF) {
		format = perfring_format_set_at(file->formats, 0);
	}
	/* One that is damaged is handed out as far as it could be turned: whoever decodes it meets the fault. */
	perfring_record_to_native(format, foreign, room, header.size, NULL);
	*record = (const struct perf_event_header *)(void *)room;
	return 0;
}

/* The next record of a stream as it stands there, in our byte order, held.  Returns 1, 0, -errno with the fault. */
static int take(struct perfring_file *file, struct perfring_stream *stream, struct perfring_pending *pending)
{
	int one;

	if (PERFRING_UNLIKELY(file->peeked.record != NULL) && stream == file->streams) {
		*pending = file->peeked;
		file->peeked.record = NULL;
		return 1;
	}
	if (PERFRING_LIKELY(perfring_stream_take_plain(stream, &pending->record, &pending->at))) {
		perfring_stock_hold(pending->record);
		return 1;
	}
	one = perfring_stream_take(stream, &pending->record, &pending->at);
	if (PERFRING_UNLIKELY(one < 0) && (one == -EBADMSG || one == -EOPNOTSUPP))
		file->fault = file->stock.fault;
	if (one <= 0)
		return one;
	if (PERFRING_UNLIKELY(file->is_foreign)) {
		one = make_native(file, stream, &pending->record);
		if (one)
			return one;
	}
	perfring_stock_hold(pending->record);
	return 1;
}

/* No more of a stream is taken. */
static void stop(struct perfring_file *file, uint32_t number, int error)
{
	file->streams[number].stop = error;
	if (error == 0 || file->end_error)
		return;
	file->end_error = error;
	file->end_fault = file->fault;
	file->end_stream = number;
}

/* A compressed record that could not be read, once all that came before it was handed out. */
static int tell_unread(struct perfring_file *file, uint32_t number, struct perfring_item *item)
{
	struct perfring_stream *stream = &file->streams[number];

	hand_out(file, number, item, &stream->unread);
	stream->unread.record = NULL;
	stream->stop = 1;
	file->fault = stream->unread_fault;
	return -EBADMSG;
}

static bool is_compressed(const struct perf_event_header *record)
{
	return record->type == PERFRING_RECORD_COMPRESSED || record->type == PERFRING_RECORD_COMPRESSED2;
}

/* Moves a stream on until a record of it is due.  Returns 1 for an item that is handed out at once, 0 when one is due or
 * the stream has ended (stop tells), -EBADMSG with an item whose id is in no attr, or which could not be read. */
static int advance(struct perfring_file *file, uint32_t number, struct perfring_item *item)
{
	struct perfring_stream *stream = &file->streams[number];
	struct perfring_order *order = &stream->order;
	uint32_t most_blocks = WINDOW_BLOCKS, most_records = WINDOW_RECORDS;
	struct perfring_pending pending;
	struct perfring_fault fault;
	int error;

	if (PERFRING_UNLIKELY(file->stream_count > 1)) {
		/* The files of a directory are nearly in order each: perf writes no rounds into them. */
		most_records = WINDOW_RECORDS / file->stream_count;
		most_blocks = WINDOW_BLOCKS + 4 * file->stream_count;
		if (most_records < 1024)
			most_records = 1024;
	}
	for (;;) {
		if (perfring_order_has_due(order))
			return 0;
		if (stream->stop <= 0) {
			if (perfring_order_waiting(order)) {
				perfring_order_all(order);
				continue;
			}
			return stream->unread.record ? tell_unread(file, number, item) : 0;
		}
		if (PERFRING_UNLIKELY(file->stock.blocks >= most_blocks ||
				      perfring_order_waiting(order) >= most_records) &&
		    perfring_order_waiting(order)) {
			perfring_order_half(order);
			continue;
		}
		error = take(file, stream, &pending);
		if (PERFRING_UNLIKELY(error <= 0)) {
			stop(file, number, error);
			continue;
		}
		pending.time = 0;
		error = perfring_format_set_of(file->formats, pending.record, &pending.format, &fault);
		if (!error && pending.format)
			pending.time = perfring_format_time_of(pending.format, pending.record);
		if (PERFRING_LIKELY(pending.time)) {
			error = perfring_order_push(order, &pending);
			if (PERFRING_UNLIKELY(error)) {
				perfring_stock_leave(&file->stock, pending.record);
				stop(file, number, error);
			}
			continue;
		}
		if (error)
			pending.format = NULL;
		if (PERFRING_UNLIKELY(is_compressed(pending.record))) {
			stream->unread = pending;
			stream->stop = 0;
			continue;
		}
		hand_out(file, number, item, &pending);
		if (error)
			return perfring_file_wrong(file, (uint64_t)(pending.at + fault.at), fault.what);
		if (pending.record->type == PERFRING_RECORD_FINISHED_ROUND)
			perfring_order_round(order);
		else if (pending.record->type >= PERFRING_RECORD_OF_PERF) {
			error = perfring_file_learn(file, stream, pending.record, pending.at);
			if (error < 0)
				stop(file, number, error);
		}
		return 1;
	}
}

/* ---- several streams ---- */

static uint64_t time_of(const struct perfring_file *file, uint32_t stream)
{
	return perfring_order_first(&file->streams[stream].order)->time;
}

/* The oldest of what is due in all streams.  Returns as advance does, and 0 when every stream has ended. */
static int merge(struct perfring_file *file, struct perfring_item *item)
{
	struct perfring_heap_entry *heap = file->heap;
	bool is_first = file->asked < file->stream_count;
	struct perfring_order *order;
	int one;

	for (; file->asked < file->stream_count; file->asked++) {
		one = advance(file, file->asked, item);
		if (one)
			return one;
		if (perfring_order_has_due(&file->streams[file->asked].order))
			heap[file->heap_count++] =
				(struct perfring_heap_entry){time_of(file, file->asked), file->asked};
	}
	if (is_first)
		perfring_heap_make(heap, file->heap_count);
	if (file->has_left) {
		one = advance(file, heap->number, item);
		if (one)
			return one;
		file->has_left = false;
		if (perfring_order_has_due(&file->streams[heap->number].order))
			heap->key = time_of(file, heap->number);
		else
			*heap = heap[--file->heap_count];
		perfring_heap_down(heap, file->heap_count, 0);
	}
	if (!file->heap_count)
		return 0;
	order = &file->streams[heap->number].order;
	hand_out(file, heap->number, item, perfring_order_pop(order));
	file->has_left = true;
	return 1;
}

/* ---- all of it ---- */

static int at_end(struct perfring_file *file)
{
	if (file->end_error) {
		file->fault = file->end_fault;
		file->current_stream = file->end_stream;
	}
	return file->end_error;
}

int perfring_file_next(struct perfring_file *file, struct perfring_item *item)
{
	struct perfring_order *order;
	int one;

	if (PERFRING_UNLIKELY(!file))
		return -EINVAL;
	if (PERFRING_UNLIKELY(file->open_error))
		return file->open_error;
	leave(file);
	if (PERFRING_UNLIKELY(file->leading_first < file->leading_count)) {
		hand_out(file, 0, item, &file->leading[file->leading_first++]);
		return 1;
	}
	if (PERFRING_UNLIKELY(file->stream_count > 1)) {
		one = merge(file, item);
		return one ? one : at_end(file);
	}
	order = &file->streams[0].order;
	one = advance(file, 0, item);
	if (one)
		return one;
	if (!perfring_order_has_due(order))
		return at_end(file);
	hand_out(file, 0, item, perfring_order_pop(order));
	return 1;
}

/* Whether a record tells of the stream, before its events'. */
static bool is_leading(const struct perf_event_header *record)
{
	switch (record->type) {
	case PERFRING_RECORD_HEADER_ATTR:
	case PERFRING_RECORD_HEADER_EVENT_TYPE:
	case PERFRING_RECORD_HEADER_TRACING_DATA:
	case PERFRING_RECORD_HEADER_BUILD_ID:
	case PERFRING_RECORD_HEADER_FEATURE:
	case PERFRING_RECORD_EVENT_UPDATE:
	case PERFRING_RECORD_ID_INDEX:
	case PERFRING_RECORD_AUXTRACE_INFO:
	case PERFRING_RECORD_THREAD_MAP:
	case PERFRING_RECORD_CPU_MAP:
	case PERFRING_RECORD_STAT_CONFIG:
	case PERFRING_RECORD_TIME_CONV:
		return true;
	default:
		return false;
	}
}

int perfring_file_lead(struct perfring_file *file)
{
	struct perfring_stream *stream = file->streams;
	struct perfring_pending pending;
	int one;

	while (file->stock.blocks < LEADING_BLOCKS && file->leading_count < LEADING_RECORDS) {
		if (file->leading_count == file->leading_room) {
			size_t room = file->leading_room ? file->leading_room * 2 : 64;
			struct perfring_pending *leading = realloc(file->leading, room * sizeof(*leading));

			if (!leading)
				return -ENOMEM;
			file->leading = leading;
			file->leading_room = room;
		}
		one = take(file, stream, &pending);
		if (one == 1 && !is_leading(pending.record)) {
			file->peeked = pending;
			break;
		}
		if (one == 1) {
			pending.time = 0;
			pending.format = NULL;
			file->leading[file->leading_count++] = pending;
			one = perfring_file_learn(file, stream, pending.record, pending.at);
			if (!one)
				continue;
		}
		/* told by next, in its turn */
		stop(file, 0, one);
		break;
	}
	return stream->stop == -ENOMEM ? -ENOMEM : 0;
}
