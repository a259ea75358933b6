/* file_reader.c - the records of a perf.data file, pipe or directory in time order.
 *
 * perfring_file_next, and what is known of its last item.  record_stream.c reads, file_order.c orders; here records are matched
 * with their events, swapped if they are foreign, and bounded while they wait.  A fault is delivered after all records before it.
 *
 * A stream is the file, the pipe, or one file of a directory.  It puts its records in order (file_order.c); they are due when no
 * older one can follow.  The next item is the oldest record that is due in any stream.
 *
 * Context: as file.h: one thread at a time for each file.
 */
#include <assert.h>
#include <stdlib.h>
#include "file_private.h"
#include "sample/lengthened.h"
#include "sample/rows_fill.h"

/* Bounds on the records that wait for their turn: two rounds of the rings of a large machine.  The files of a directory have no
 * rounds, so they always wait up to theirs. */
#define WINDOW_BLOCKS ((128u << 20) / PERFRING_BLOCK_SIZE)
#define WINDOW_RECORDS (1u << 20)
#define FOLDER_BLOCKS 24
#define FOLDER_RECORDS (1u << 18)
/* Bounds on a pipe's leading records. */
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
	*compression = file->pool.compression;
}

uint64_t perfring_file_late(const struct perfring_file *file)
{
	return file->late;
}

bool perfring_file_was_late(const struct perfring_file *file)
{
	return file->was_late;
}

int64_t perfring_file_read_trace(struct perfring_file *file, void *buffer, size_t size)
{
	int64_t got;

	if (!file)
		return -EINVAL;
	/* The stream may still be at the trace of an earlier item. */
	if (!file->current || file->current->type != PERFRING_RECORD_AUXTRACE)
		return 0;
	got = perfring__stream_read_trailing(&file->streams[file->current_stream], buffer, size);
	if (got == -EBADMSG)
		file->fault = file->pool.fault;
	return got;
}

/* Makes a pending record, which its stream holds in memory, the current item. */
static void deliver(struct perfring_file *file, uint32_t stream, struct perfring_item *item,
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

/* Replaces a foreign record by a native copy.  First all words of the copy are swapped, only to find the format by the id;
 * then the whole copy is written again, from `foreign`. */
static int make_native(struct perfring_file *file, struct perfring_stream *stream,
		       const struct perf_event_header **record)
{
	const struct perf_event_header *foreign = *record;
	struct perf_event_header header = perfring_header_to_native(foreign);
	const struct perfring_format *format = NULL;
	unsigned char *copy = perfring__stream_space(stream, header.size);

	if (!copy)
		return -ENOMEM;
	if (header.type < PERFRING_RECORD_OF_PERF && file->event_count > 1) {
		memcpy(copy, foreign, header.size);
		memcpy(copy, &header, sizeof(header));
		perfring__swap_words(copy + sizeof(header), (header.size - sizeof(header)) / 8);
		perfring_format_set_of(file->formats, (const struct perf_event_header *)(void *)copy, &format, NULL);
	} else if (header.type < PERFRING_RECORD_OF_PERF) {
		format = perfring_format_set_at(file->formats, 0);
	}
	/* A damaged record is swapped up to the damage; decoding it reports the fault. */
	perfring_record_to_native(format, foreign, copy, header.size, NULL);
	*record = (const struct perf_event_header *)(void *)copy;
	return 0;
}

/* The next record of a stream, native and held.  Returns 1, 0, -errno with the fault. */
static int take(struct perfring_file *file, struct perfring_stream *stream, struct perfring_pending *pending)
{
	int one;

	if (PERFRING_UNLIKELY(file->peeked.record != NULL) && stream == file->streams) {
		*pending = file->peeked;
		file->peeked.record = NULL;
		return 1;
	}
	if (PERFRING_LIKELY(perfring__stream_take_plain(stream, &pending->record, &pending->at))) {
		perfring__pool_hold(pending->record);
		return 1;
	}
	one = perfring__stream_take(stream, &pending->record, &pending->at);
	if (PERFRING_UNLIKELY(one < 0) && (one == -EBADMSG || one == -EOPNOTSUPP))
		file->fault = file->pool.fault;
	if (one <= 0)
		return one;
	if (PERFRING_UNLIKELY(file->is_foreign)) {
		one = make_native(file, stream, &pending->record);
		if (one)
			return one;
	}
	perfring__pool_hold(pending->record);
	return 1;
}

/* Takes no more records of a stream. */
static void stop(struct perfring_file *file, uint32_t number, int error)
{
	file->streams[number].stop = error;
	if (!error || file->end_error)
		return;
	file->end_error = error;
	file->end_fault = file->fault;
	file->end_stream = number;
}

/* Delivers a compressed record that could not be inflated, when all records before it have been delivered. */
static int deliver_unread(struct perfring_file *file, uint32_t number, struct perfring_item *item)
{
	struct perfring_stream *stream = &file->streams[number];

	deliver(file, number, item, &stream->unread);
	stream->unread.record = NULL;
	stream->stop = 1;
	file->fault = stream->unread_fault;
	return -EBADMSG;
}

/* Reads a stream until a record of it is due.  Returns 1 for an item without a time, which is not ordered; 0 when a
 * record is due or the stream has ended; -EBADMSG with an item whose id is in no attr, or which could not be read. */
static int advance(struct perfring_file *file, uint32_t number, struct perfring_item *item)
{
	struct perfring_stream *stream = &file->streams[number];
	struct perfring_order *order = &stream->order;
	uint32_t max_blocks = WINDOW_BLOCKS, max_records = WINDOW_RECORDS;
	struct perfring_pending pending;
	struct perfring_fault fault;
	int error;

	if (PERFRING_UNLIKELY(file->stream_count > 1)) {
		/* Each file of a directory is nearly in order: perf writes no rounds into them. */
		max_records = FOLDER_RECORDS / file->stream_count;
		max_blocks = FOLDER_BLOCKS + 4 * file->stream_count;
		if (max_records < 1024)
			max_records = 1024;
	}
	for (;;) {
		if (perfring__order_has_due(order))
			return 0;
		if (stream->stop <= 0) {
			if (perfring__order_waiting(order)) {
				perfring__order_all(order);
				continue;
			}
			return stream->unread.record ? deliver_unread(file, number, item) : 0;
		}
		if (PERFRING_UNLIKELY(file->pool.blocks >= max_blocks ||
				      perfring__order_waiting(order) >= max_records) &&
		    perfring__order_waiting(order)) {
			perfring__order_half(order);
			continue;
		}
		error = take(file, stream, &pending);
		if (PERFRING_UNLIKELY(error <= 0)) {
			stop(file, number, error);
			continue;
		}
		pending.time = 0;
		/* (In the other byte order the trailer could not be distinguished from the name.) */
		if (PERFRING_UNLIKELY(perfring__lengthened_may_be(pending.record)) && !file->is_foreign)
			perfring__lengthened_mend(file->formats, pending.record, (void *)(uintptr_t)pending.record);
		error = perfring_format_set_of(file->formats, pending.record, &pending.format, &fault);
		if (!error && pending.format)
			pending.time = perfring_format_time_of(pending.format, pending.record);
		if (PERFRING_LIKELY(pending.time)) {
			error = perfring__order_push(order, &pending);
			if (PERFRING_UNLIKELY(error)) {
				perfring__pool_release(&file->pool, pending.record);
				stop(file, number, error);
			}
			continue;
		}
		if (error)
			pending.format = NULL;
		if (PERFRING_UNLIKELY(perfring__is_compressed(pending.record->type))) {
			stream->unread = pending;
			stream->stop = 0;
			continue;
		}
		deliver(file, number, item, &pending);
		if (error)
			return perfring__fault_at(&file->fault, (uint64_t)(pending.at + fault.at), fault.what);
		if (pending.record->type == PERFRING_RECORD_FINISHED_ROUND)
			perfring__order_round(order);
		else if (pending.record->type >= PERFRING_RECORD_OF_PERF) {
			error = perfring__file_parse_metadata(file, stream, pending.record, pending.at);
			if (error < 0)
				stop(file, number, error);
		}
		return 1;
	}
}

/* ---- several streams ---- */

static uint64_t time_of(const struct perfring_file *file, uint32_t stream)
{
	return perfring__order_first(&file->streams[stream].order)->time;
}

/* The oldest record that is due in any stream.  Returns as advance does, and 0 when all streams have ended. */
static int merge(struct perfring_file *file, struct perfring_item *item)
{
	struct perfring_heap_entry *heap = file->heap;
	bool is_first = file->primed < file->stream_count;
	struct perfring_order *order;
	int one;

	for (; file->primed < file->stream_count; file->primed++) {
		one = advance(file, file->primed, item);
		if (one)
			return one;
		if (perfring__order_has_due(&file->streams[file->primed].order))
			heap[file->heap_count++] =
				(struct perfring_heap_entry){time_of(file, file->primed), file->primed};
	}
	if (is_first)
		perfring__heap_make(heap, file->heap_count);
	if (file->head_delivered) {
		one = advance(file, heap->number, item);
		if (one)
			return one;
		file->head_delivered = false;
		if (perfring__order_has_due(&file->streams[heap->number].order))
			heap->key = time_of(file, heap->number);
		else
			*heap = heap[--file->heap_count];
		perfring__heap_down(heap, file->heap_count, 0);
		assert(perfring__heap_is_valid(file->heap, file->heap_count));
	}
	if (!file->heap_count)
		return 0;
	order = &file->streams[heap->number].order;
	deliver(file, heap->number, item, perfring__order_pop(order));
	file->head_delivered = true;
	return 1;
}

/* ---- all records ---- */

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
	perfring__pool_release(&file->pool, file->current);
	file->current = NULL;
	if (PERFRING_UNLIKELY(file->leading_first < file->leading_count)) {
		deliver(file, 0, item, &file->leading[file->leading_first++]);
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
	if (!perfring__order_has_due(order))
		return at_end(file);
	deliver(file, 0, item, perfring__order_pop(order));
	return 1;
}

static int next_of(void *file, struct perfring_item *item)
{
	return perfring_file_next(file, item);
}

int perfring_file_fill(struct perfring_file *file, struct perfring_rows *rows, struct perfring_item *item)
{
	struct perfring_fault fault = {0};
	bool is_fault;
	int one = perfring__rows_fill(rows, item, next_of, file, &fault, &is_fault);

	return is_fault ? perfring__fault_at(&file->fault, (uint64_t)(file->position + fault.at), fault.what) : one;
}

/* Whether a record describes the stream, and may come before those of its events. */
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

int perfring__file_read_leading(struct perfring_file *file)
{
	struct perfring_stream *stream = file->streams;
	struct perfring_pending pending;
	int one;

	while (file->pool.blocks < LEADING_BLOCKS && file->leading_count < LEADING_RECORDS) {
		if (perfring__os_array_grow(&file->leading, file->leading_count, &file->leading_capacity,
					    sizeof(*file->leading)))
			return -ENOMEM;
		one = take(file, stream, &pending);
		if (one == 1 && !is_leading(pending.record)) {
			file->peeked = pending;
			break;
		}
		if (one == 1) {
			pending.time = 0;
			pending.format = NULL;
			file->leading[file->leading_count++] = pending;
			one = perfring__file_parse_metadata(file, stream, pending.record, pending.at);
			if (!one)
				continue;
		}
		/* perfring_file_next reports the error, after the leading records. */
		stop(file, 0, one);
		break;
	}
	return stream->stop == -ENOMEM ? -ENOMEM : 0;
}
