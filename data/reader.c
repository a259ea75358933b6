/* reader.c - the records of a perf.data file, block by block, in time order.
 *
 * A block is 1 MiB of the file, from the start of a record on, in memory aligned to its size: a record's address
 * tells its block.  It is used again once none of its records waits or is in the user's hands.
 */
#include <stdlib.h>
#include "reader.h"

#define BLOCK_SIZE (1u << 20)

/* What may wait when no round ends: memory stays bounded whatever the file says. */
#define WINDOW_BLOCKS 64
#define WINDOW_RECORDS (1u << 20)

struct perfring_block {
	struct perfring_block *next;
	_Alignas(8) int64_t from; /* place in the file; i386 has 64 bits at 4 too */
	uint32_t filled;
	uint32_t holders;
	uint64_t padding[5];
	unsigned char bytes[];
};

#define BLOCK_ROOM (BLOCK_SIZE - (uint32_t)sizeof(struct perfring_block))

static_assert(sizeof(struct perfring_block) % 8 == 0, "records in blocks are aligned");

static struct perfring_block *block_of(const struct perf_event_header *record)
{
	return (struct perfring_block *)((uintptr_t)record & ~(uintptr_t)(BLOCK_SIZE - 1));
}

static struct perfring_block *block_open(struct perfring_data *data)
{
	struct perfring_block *block = data->spare;

	if (block)
		data->spare = block->next;
	else
		block = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
	if (!block)
		return NULL;
	block->next = NULL;
	block->filled = 0;
	block->holders = 1;
	data->blocks++;
	return block;
}

static void block_leave(struct perfring_data *data, struct perfring_block *block)
{
	if (!block || --block->holders)
		return;
	block->next = data->spare;
	data->spare = block;
	data->blocks--;
}

void perfring_data_blocks_close(struct perfring_data *data)
{
	struct perfring_block *block;

	block_leave(data, data->current);
	while (data->order.first < data->order.count)
		block_leave(data, block_of(data->order.pending[data->order.first++].record));
	block_leave(data, data->block);
	block_leave(data, data->loose);
	while ((block = data->spare)) {
		data->spare = block->next;
		free(block);
	}
	perfring_order_close(&data->order);
}

/* A new block, beginning with the next record.  Returns 0 or -errno. */
static int fill(struct perfring_data *data)
{
	uint64_t left = (uint64_t)(data->end - data->at);
	struct perfring_block *block;
	int64_t got;

	block_leave(data, data->block);
	data->block = NULL;
	block = block_open(data);
	if (!block)
		return -ENOMEM;
	data->block = block;
	block->from = data->at;
	got = perfring_data_read(data, block->bytes, left < BLOCK_ROOM ? (size_t)left : BLOCK_ROOM, (uint64_t)data->at);
	if (got < 0)
		return (int)got;
	block->filled = (uint32_t)got;
	return 0;
}

/* How many bytes of the block there are from the next record on. */
static int64_t at_hand(const struct perfring_data *data)
{
	const struct perfring_block *block = data->block;

	return block ? block->from + block->filled - data->at : -1;
}

/* A copy at a multiple of 8: odd sizes leave every record behind them askew (ABI.md 14.36). */
static int straighten(struct perfring_data *data, const unsigned char *bytes, uint16_t size,
		      const struct perf_event_header **record)
{
	struct perfring_block *loose = data->loose;

	if (!loose || BLOCK_ROOM - loose->filled < size) {
		block_leave(data, loose);
		data->loose = loose = block_open(data);
		if (!loose)
			return -ENOMEM;
	}
	memcpy(loose->bytes + loose->filled, bytes, size);
	*record = (const struct perf_event_header *)(void *)(loose->bytes + loose->filled);
	/* BLOCK_ROOM is a multiple of 8 */
	loose->filled += (size + 7u) & ~7u;
	return 0;
}

/* Bytes that stand behind the record and are not in its size (ABI.md 14.37). */
static bool behind(const struct perf_event_header *record, uint64_t *extra)
{
	const unsigned char *body = (const unsigned char *)(record + 1);
	uint32_t half;

	*extra = 0;
	if (record->type == PERFRING_RECORD_HEADER_TRACING_DATA) {
		if (record->size < sizeof(*record) + sizeof(half))
			return false;
		memcpy(&half, body, sizeof(half));
		*extra = half;
	} else if (record->type == PERFRING_RECORD_AUXTRACE) {
		if (record->size < sizeof(*record) + sizeof(*extra))
			return false;
		memcpy(extra, body, sizeof(*extra));
	}
	return true;
}

/* The file has no record at `at`.  Behind what a killed writer has settled, that is where the file ends. */
static int no_record(struct perfring_data *data, const char *what)
{
	return data->is_finished || data->at < data->settled ? perfring_data_wrong(data, (uint64_t)data->at, what) : 0;
}

/* The next record in file order, aligned.  Returns 1, 0, -errno; `at` is moved behind it. */
static int take(struct perfring_data *data, const struct perf_event_header **record)
{
	int64_t left = data->end - data->at;
	struct perf_event_header header;
	const unsigned char *bytes;
	uint64_t extra = 0;
	int error;

	if (!left)
		return 0;
	if (left < (int64_t)sizeof(header))
		return no_record(data, "records end inside a header");
	if (at_hand(data) < (int64_t)sizeof(header)) {
		error = fill(data);
		if (error)
			return error;
		if (at_hand(data) < (int64_t)sizeof(header))
			return no_record(data, "file ends inside its records");
	}
	memcpy(&header, data->block->bytes + (data->at - data->block->from), sizeof(header));
	if (header.size < sizeof(header))
		return no_record(data, "record shorter than its header");
	if (header.size > left)
		return no_record(data, "record longer than what is left");
	if (at_hand(data) < header.size) {
		error = fill(data);
		if (error)
			return error;
		if (at_hand(data) < header.size)
			return no_record(data, "file ends inside a record");
	}
	bytes = data->block->bytes + (data->at - data->block->from);
	*record = (const struct perf_event_header *)(const void *)bytes;
	if (PERFRING_UNLIKELY((uintptr_t)bytes & 7)) {
		error = straighten(data, bytes, header.size, record);
		if (error)
			return error;
	}
	if (PERFRING_UNLIKELY(header.type >= 64)) {
		if (header.type == PERFRING_RECORD_COMPRESSED || header.type == PERFRING_RECORD_COMPRESSED2) {
			perfring_data_wrong(data, (uint64_t)data->at, "compressed records are not read yet");
			return -EOPNOTSUPP;
		}
		if (!behind(*record, &extra))
			return no_record(data, "record too short to tell what follows it");
		if (extra > (uint64_t)(left - header.size))
			return no_record(data, "bytes behind the record longer than what is left");
	}
	data->at += header.size + (int64_t)extra;
	return 1;
}

static void hand_out(struct perfring_data *data, struct perfring_item *item, const struct perfring_pending *pending)
{
	item->record = pending->record;
	item->format = pending->format;
	item->time = pending->time;
	data->position = pending->at;
	data->current = block_of(pending->record);
	if (!pending->time)
		return;
	if (pending->time < data->newest)
		data->late++;
	else
		data->newest = pending->time;
}

int perfring_data_next(struct perfring_data *data, struct perfring_item *item)
{
	struct perfring_order *order = &data->order;
	struct perfring_pending pending;
	struct perfring_fault fault;
	int error;

	block_leave(data, data->current);
	data->current = NULL;
	for (;;) {
		if (perfring_order_has_due(order)) {
			hand_out(data, item, &order->pending[order->first++]);
			return 1;
		}
		if (data->stop <= 0) {
			if (!perfring_order_waiting(order))
				return data->stop;
			perfring_order_all(order);
			continue;
		}
		if (PERFRING_UNLIKELY(data->blocks >= WINDOW_BLOCKS ||
				      perfring_order_waiting(order) >= WINDOW_RECORDS) &&
		    perfring_order_waiting(order)) {
			perfring_order_half(order);
			continue;
		}
		pending.at = data->at;
		data->stop = take(data, &pending.record);
		if (data->stop <= 0)
			continue;
		pending.time = 0;
		error = perfring_format_set_of(data->formats, pending.record, &pending.format, &fault);
		if (!error && pending.format)
			pending.time = perfring_format_time_of(pending.format, pending.record);
		if (PERFRING_LIKELY(pending.time)) {
			data->stop = perfring_order_push(order, &pending);
			if (PERFRING_UNLIKELY(data->stop))
				continue;
			data->stop = 1;
			block_of(pending.record)->holders++;
			continue;
		}
		if (error)
			pending.format = NULL;
		block_of(pending.record)->holders++;
		hand_out(data, item, &pending);
		if (error)
			return perfring_data_wrong(data, (uint64_t)(pending.at + fault.at), fault.what);
		if (pending.record->type == PERFRING_RECORD_FINISHED_ROUND)
			perfring_order_round(order);
		return 1;
	}
}

int64_t perfring_data_position(const struct perfring_data *data)
{
	return data->position;
}

uint64_t perfring_data_late(const struct perfring_data *data)
{
	return data->late;
}
