/* record_stream.c - the records of one file or pipe as they stand there.
 *
 * A block is 1 MiB of the file, from the start of a record on, in memory aligned to its size: a record's address
 * tells its block.  It is used again once none of its records waits or is in the user's hands.
 */
#include "record_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "inflate.h"

#define BLOCK_ROOM (PERFRING_BLOCK_SIZE - (uint32_t)sizeof(struct perfring_block))

/* What is read of a file at once: at least two of the largest record. */
#define PIECE (1u << 17)

/* Of a compressed record's records: far above those of any kernel and perf. */
#define MOST_TYPE 65535

static_assert(sizeof(struct perfring_block) % 8 == 0, "records in blocks are aligned");

static struct perfring_block *block_open(struct perfring_stock *stock)
{
	struct perfring_block *block = stock->spare;

	if (block)
		stock->spare = block->next;
	else
		block = aligned_alloc(PERFRING_BLOCK_SIZE, PERFRING_BLOCK_SIZE);
	if (!block)
		return NULL;
	block->next = NULL;
	block->from = 0;
	block->filled = 0;
	block->holders = 1;
	stock->blocks++;
	return block;
}

void perfring_stock_close(struct perfring_stock *stock)
{
	struct perfring_block *block;

	while ((block = stock->spare)) {
		stock->spare = block->next;
		free(block);
	}
}

int perfring_stock_wrong(struct perfring_stock *stock, uint64_t at, const char *what)
{
	stock->fault.at = (int64_t)at;
	stock->fault.what = what;
	return -EBADMSG;
}

int64_t perfring_stock_read(int fd, void *room, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, (char *)room + done, size - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

void perfring_stream_open(struct perfring_stream *stream, struct perfring_stock *stock, int fd, int64_t at)
{
	memset(stream, 0, sizeof(*stream));
	stream->stock = stock;
	stream->fd = fd;
	stream->at = at;
	stream->settled = at;
	stream->end = INT64_MAX;
	stream->stop = 1;
	stream->frame_at = -1;
}

void perfring_stream_close(struct perfring_stream *stream)
{
	struct perfring_order *order = &stream->order;

	for (size_t i = 0; i < order->run_count; i++)
		for (size_t at = order->runs[i].at; at < order->runs[i].end; at++)
			perfring_stock_leave(stream->stock, order->pending[at].record);
	perfring_order_close(order);
	perfring_stock_leave(stream->stock, stream->unread.record);
	perfring_block_leave(stream->stock, stream->block);
	perfring_block_leave(stream->stock, stream->loose);
	perfring_block_leave(stream->stock, stream->inflated);
	perfring_block_leave(stream->stock, stream->packed);
	perfring_inflater_close(stream->inflater);
	if (stream->is_ours)
		close(stream->fd);
}

/* ---- bytes ---- */

/* How many bytes of the block there are from the next record on. */
static int64_t at_hand(const struct perfring_stream *stream)
{
	const struct perfring_block *block = stream->block;

	return block && stream->at >= block->from ? block->from + block->filled - stream->at : -1;
}

/* A new block, beginning with what stands at `at`. */
static struct perfring_block *renew(struct perfring_stream *stream)
{
	struct perfring_block *block = block_open(stream->stock);
	int64_t kept = at_hand(stream);

	if (!block)
		return NULL;
	block->from = stream->at;
	if (stream->is_pipe && kept > 0) {
		memcpy(block->bytes, stream->block->bytes + (stream->at - stream->block->from), (size_t)kept);
		block->filled = (uint32_t)kept;
	}
	perfring_block_leave(stream->stock, stream->block);
	stream->block = block;
	return block;
}

/* `want` bytes from `at` on, as far as there are so many: at_hand tells.  Returns 0 or -errno. */
static int fill(struct perfring_stream *stream, uint32_t want)
{
	struct perfring_block *block = stream->block;
	uint64_t left;
	int64_t got;

	if (!stream->is_pipe) {
		uint64_t have = block && stream->at >= block->from ? block->filled : 0, room;

		if (at_hand(stream) < 0 || stream->at - block->from + want > BLOCK_ROOM) {
			/* first: a full block may be used again at once */
			perfring_block_leave(stream->stock, block);
			stream->block = NULL;
			block = renew(stream);
			if (!block)
				return -ENOMEM;
			have = 0;
		}
		/* A piece that the processor's cache still holds when its records are looked at. */
		left = (uint64_t)(stream->end - block->from) - have;
		room = BLOCK_ROOM - have < PIECE ? BLOCK_ROOM - have : PIECE;
		got = perfring_stock_read(stream->fd, block->bytes + have, (size_t)(left < room ? left : room),
					  (uint64_t)block->from + have);
		if (got < 0)
			return (int)got;
		block->filled = (uint32_t)(have + (uint64_t)got);
		return 0;
	}
	/* Of a pipe no more than there is: its writer may wait for what we do with it. */
	if (at_hand(stream) < 0 || stream->at - block->from + want > BLOCK_ROOM)
		block = renew(stream);
	if (!block)
		return -ENOMEM;
	while (at_hand(stream) < want) {
		got = read(stream->fd, block->bytes + block->filled, BLOCK_ROOM - block->filled);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		block->filled += (uint32_t)got;
	}
	return 0;
}

int64_t perfring_stream_read_behind(struct perfring_stream *stream, void *room, size_t size)
{
	int64_t got;

	if (size > stream->behind)
		size = (size_t)stream->behind;
	if (!size)
		return 0;
	if (stream->is_pipe) {
		if (at_hand(stream) <= 0) {
			int error = fill(stream, 1);

			if (error)
				return error;
		}
		got = at_hand(stream);
		if ((uint64_t)got > size)
			got = (int64_t)size;
		if (got > 0)
			memcpy(room, stream->block->bytes + (stream->at - stream->block->from), (size_t)got);
	} else {
		got = perfring_stock_read(stream->fd, room, size, (uint64_t)stream->at);
		if (got < 0)
			return got;
	}
	if (got <= 0)
		return perfring_stock_wrong(stream->stock, (uint64_t)stream->at,
					    "file ends inside the bytes after a record");
	stream->at += got;
	stream->behind -= (uint64_t)got;
	return got;
}

/* Moves to the next record.  Of a file, the last byte tells whether they are all there. */
static int pass_behind(struct perfring_stream *stream)
{
	char passed[4096];
	int64_t got = 1;

	if (!stream->is_pipe && stream->behind) {
		stream->at += (int64_t)stream->behind - 1;
		stream->behind = 1;
	}
	while (stream->behind && got > 0)
		got = perfring_stream_read_behind(stream, passed, sizeof(passed));
	return got < 0 ? (int)got : 0;
}

void *perfring_stream_room(struct perfring_stream *stream, uint32_t size)
{
	struct perfring_block *loose = stream->loose;
	void *room;

	if (!loose || BLOCK_ROOM - loose->filled < size) {
		perfring_block_leave(stream->stock, loose);
		stream->loose = loose = block_open(stream->stock);
		if (!loose)
			return NULL;
	}
	room = loose->bytes + loose->filled;
	/* BLOCK_ROOM is a multiple of 8 */
	loose->filled += (size + 7u) & ~7u;
	return room;
}

/* A copy at a multiple of 8: odd sizes leave every record behind them askew (docs/abi.md 14.36). */
static int straighten(struct perfring_stream *stream, const unsigned char *bytes, uint16_t size,
		      const struct perf_event_header **record)
{
	void *room = perfring_stream_room(stream, size);

	if (!room)
		return -ENOMEM;
	memcpy(room, bytes, size);
	*record = room;
	return 0;
}

/* ---- records ---- */

static struct perf_event_header header_at(const struct perfring_stream *stream, const unsigned char *bytes)
{
	struct perf_event_header header;

	memcpy(&header, bytes, sizeof(header));
	return stream->is_foreign ? perfring_header_to_native(&header) : header;
}

/* Bytes that stand behind the record and are not in its size (docs/abi.md 14.37). */
static bool behind(const struct perfring_stream *stream, const struct perf_event_header *header,
		   const unsigned char *body, uint64_t *extra)
{
	uint32_t half;

	*extra = 0;
	if (header->type == PERFRING_RECORD_HEADER_TRACING_DATA) {
		if (header->size < sizeof(*header) + sizeof(half))
			return false;
		memcpy(&half, body, sizeof(half));
		if (stream->is_foreign)
			half = __builtin_bswap32(half);
		*extra = perfring_tracing_is_inside(header->size, half) ? 0 : half;
	} else if (header->type == PERFRING_RECORD_AUXTRACE) {
		if (header->size < sizeof(*header) + sizeof(*extra))
			return false;
		memcpy(extra, body, sizeof(*extra));
		if (stream->is_foreign)
			*extra = __builtin_bswap64(*extra);
	}
	return true;
}

/* There is no record at `at`.  Behind what a killed writer has settled, that is where the file ends. */
static int no_record(struct perfring_stream *stream, const char *what)
{
	return stream->is_finished || stream->at < stream->settled
		       ? perfring_stock_wrong(stream->stock, (uint64_t)stream->at, what)
		       : 0;
}

/* The next record of the file itself.  Returns 1, 0, -errno; `at` is moved behind it. */
static int take_outer(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	struct perf_event_header again;
	int64_t left;
	uint64_t extra;
	int error = stream->behind ? pass_behind(stream) : 0;

	if (error)
		return error == -EBADMSG ? no_record(stream, "file ends inside the bytes after a record") : error;
	left = stream->end - stream->at;
	if (!left)
		return 0;
	if (left < (int64_t)sizeof(*header))
		return no_record(stream, "records end inside a header");
	if (at_hand(stream) < (int64_t)sizeof(*header)) {
		error = fill(stream, sizeof(*header));
		if (error)
			return error;
		if (stream->end == INT64_MAX && !at_hand(stream))
			return stream->at < stream->settled ? no_record(stream, "file ends inside its records") : 0;
		if (at_hand(stream) < (int64_t)sizeof(*header))
			return no_record(stream, "file ends inside its records");
	}
	*header = header_at(stream, stream->block->bytes + (stream->at - stream->block->from));
	if (header->size < sizeof(*header))
		return no_record(stream, "record shorter than its header");
	if (header->size > left)
		return no_record(stream, "record longer than what is left");
	if (at_hand(stream) < header->size) {
		error = fill(stream, header->size);
		if (error)
			return error;
		if (at_hand(stream) < header->size)
			return no_record(stream, "file ends inside a record");
		/* another writer's file may be another by now */
		again = header_at(stream, stream->block->bytes + (stream->at - stream->block->from));
		if (again.size != header->size || again.type != header->type)
			return no_record(stream, "record changed while it was read");
	}
	*bytes = stream->block->bytes + (stream->at - stream->block->from);
	if (PERFRING_UNLIKELY(header->type >= PERFRING_RECORD_OF_PERF)) {
		if (!behind(stream, header, *bytes + sizeof(*header), &extra))
			return no_record(stream, "record too short to tell what follows it");
		if (extra > (uint64_t)(left - header->size))
			return no_record(stream, "bytes after the record longer than what is left");
		stream->behind = extra;
	}
	stream->at += header->size;
	return 1;
}

/* ---- what is compressed ---- */

/* What is wrong there, in a compressed record or in what came out of it. */
static int cannot_read(struct perfring_stream *stream, const char *what)
{
	stream->unread_fault.at = stream->packed_at;
	stream->unread_fault.what = what;
	return -EBADMSG;
}

static const unsigned char *packed_record(const struct perfring_stream *stream)
{
	return stream->packed->bytes + (stream->packed_at - stream->packed->from);
}

static uint32_t left_inflated(const struct perfring_stream *stream)
{
	return stream->inflated ? stream->inflated->filled - stream->inflated_at : 0;
}

/* Begins with the bytes that the compressed record holds.  Returns whether it has as many as it says. */
static bool find_packed(struct perfring_stream *stream)
{
	const unsigned char *bytes = packed_record(stream);
	struct perf_event_header header = header_at(stream, bytes);
	uint64_t size = header.size - sizeof(header), own = 0;

	stream->packed_size = 0;
	bytes += sizeof(header);
	if (header.type == PERFRING_RECORD_COMPRESSED2) {
		if (size < sizeof(own))
			return false;
		memcpy(&own, bytes, sizeof(own));
		if (stream->is_foreign)
			own = __builtin_bswap64(own);
		if (own > size - sizeof(own))
			return false;
		bytes += sizeof(own);
		size = own;
	}
	stream->packed_bytes = bytes;
	stream->packed_size = (uint32_t)size;
	return true;
}

static void begin_frame(struct perfring_stream *stream)
{
	perfring_inflater_reset(stream->inflater);
	stream->frame_at = stream->packed_at;
	stream->is_inflating = true;
	stream->damage = NULL;
	stream->is_lost = false;
}

/* The compressed record is the next one to be taken, as it is.  One that begins a frame, which the frame before it did not
 * leave alone, is read behind that. */
static void lose(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes,
		 int64_t *at)
{
	*bytes = packed_record(stream);
	*header = header_at(stream, *bytes);
	*at = stream->packed_at;
	perfring_block_leave(stream->stock, stream->inflated);
	stream->inflated = NULL;
	stream->inflated_at = 0;
	stream->is_inflating = false;
	stream->is_lost = true;
	stream->stock->compression.lost++;
	if (stream->frame_at != stream->packed_at && find_packed(stream) &&
	    perfring_inflater_begins(stream->packed_bytes, stream->packed_size))
		begin_frame(stream);
}

/* Begins with a compressed record, which lies in the stream's block.  Returns 0, -EBADMSG with the stream's unread_fault,
 * -ENOMEM, -EOPNOTSUPP with the stock's fault. */
static int unpack(struct perfring_stream *stream, uint32_t type, int64_t at)
{
	struct perfring_file_compressed *compression = &stream->stock->compression;
	enum perfring_inflater_place place;
	int error;

	stream->is_special = true;
	if (!stream->inflater) {
		error = perfring_inflater_open(&stream->inflater, &stream->stock->windows);
		if (error == -EOPNOTSUPP)
			perfring_stock_wrong(stream->stock, (uint64_t)at,
					     "compressed records: this library was built without libzstd");
		if (error)
			return error;
	}
	perfring_block_leave(stream->stock, stream->packed);
	stream->packed = stream->block;
	stream->packed->holders++;
	stream->packed_at = at;
	if (type == PERFRING_RECORD_COMPRESSED)
		compression->compressed++;
	else
		compression->compressed2++;
	if (!find_packed(stream) && !stream->is_lost)
		return cannot_read(stream, "compressed record shorter than its bytes");
	compression->packed_bytes += stream->packed_size;
	place = perfring_inflater_place(stream->inflater);
	stream->is_inflating = !stream->is_lost;
	if (perfring_inflater_begins(stream->packed_bytes, stream->packed_size) &&
	    (stream->is_lost || place != PERFRING_INSIDE_A_BLOCK)) {
		/* Frames that are ended are one stream of bytes: a record may go on in the next. */
		if (place == PERFRING_BETWEEN_BLOCKS && left_inflated(stream))
			return cannot_read(stream, "compressed: the frame before this one ends inside a record");
		begin_frame(stream);
	} else if (stream->is_lost) {
		compression->lost++;
	}
	return 0;
}

/* More bytes behind those that are left of the inflated block.  Returns 0 or -ENOMEM. */
static int inflate_more(struct perfring_stream *stream)
{
	struct perfring_block *block = stream->inflated;
	uint32_t left = left_inflated(stream);
	size_t used = 0, packed = stream->packed_size;
	int error;

	if (!block || BLOCK_ROOM - block->filled < 1u << 16) {
		struct perfring_block *fresh = block_open(stream->stock);

		if (!fresh)
			return -ENOMEM;
		/* a record that goes on in the next compressed one */
		if (left)
			memcpy(fresh->bytes, block->bytes + stream->inflated_at, left);
		fresh->filled = left;
		perfring_block_leave(stream->stock, block);
		stream->inflated = block = fresh;
		stream->inflated_at = 0;
	}
	error = perfring_inflate(stream->inflater, &stream->packed_bytes, &packed, block->bytes + block->filled,
				 BLOCK_ROOM - block->filled, &used);
	if (error == -ENOMEM)
		return error;
	stream->packed_size = (uint32_t)packed;
	block->filled += (uint32_t)used;
	stream->stock->compression.plain_bytes += used;
	stream->damage = error == -EBADMSG   ? "compressed bytes are damaged"
			 : error == -EFBIG   ? "compressed: a zstd window of more than 128 MiB"
			 : error == -ENOBUFS ? "compressed: more than 512 MiB of zstd windows in one file or directory"
					     : NULL;
	/* zstd may hold back what found no room: asked again until it gives less than it could. */
	stream->is_inflating = error != 0;
	return 0;
}

/* The next record of those that came out.  Returns 1, 0 (not a whole one), -EBADMSG. */
static int take_out(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	const struct perfring_block *block = stream->inflated;
	uint32_t left = left_inflated(stream);
	uint64_t extra;

	if (left < sizeof(*header))
		return 0;
	*bytes = block->bytes + stream->inflated_at;
	*header = header_at(stream, *bytes);
	if (header->size < sizeof(*header))
		return cannot_read(stream, "compressed: record shorter than its header");
	/* before it is waited for: of damage that zstd does not see, this tells */
	if (header->type > MOST_TYPE)
		return cannot_read(stream, "compressed: a record that cannot be compressed");
	if (left < header->size)
		return 0;
	if (header->type == PERFRING_RECORD_COMPRESSED || header->type == PERFRING_RECORD_COMPRESSED2 ||
	    !behind(stream, header, *bytes + sizeof(*header), &extra) || extra)
		return cannot_read(stream, "compressed: a record that cannot be compressed");
	stream->inflated_at += header->size;
	return 1;
}

/* The next record of the compressed one.  Returns 1, 0 (it holds no more), -EBADMSG with the stream's unread_fault,
 * -ENOMEM. */
static int take_inflated(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	int one;

	for (;;) {
		one = take_out(stream, header, bytes);
		if (one || !stream->is_inflating)
			return one;
		if (stream->damage)
			return cannot_read(stream, stream->damage);
		one = inflate_more(stream);
		if (one)
			return one;
	}
}

/* Whether something is missing of what was compressed.  Of a killed writer's it is. */
static bool is_torn(const struct perfring_stream *stream)
{
	return stream->packed && !stream->is_lost && stream->is_finished &&
	       (left_inflated(stream) || perfring_inflater_place(stream->inflater) == PERFRING_INSIDE_A_BLOCK);
}

int perfring_stream_take(struct perfring_stream *stream, const struct perf_event_header **record, int64_t *at)
{
	struct perf_event_header header = {0};
	const unsigned char *bytes = NULL;
	int one;

	for (;;) {
		one = 0;
		if (PERFRING_UNLIKELY(stream->packed != NULL)) {
			*at = stream->packed_at;
			one = take_inflated(stream, &header, &bytes);
		}
		if (!one) {
			*at = stream->at + (int64_t)stream->behind;
			one = take_outer(stream, &header, &bytes);
			if (one < 0 || (!one && !is_torn(stream)))
				return one;
			if (!one)
				one = cannot_read(stream, "compressed records end inside a record");
			else if (header.type == PERFRING_RECORD_COMPRESSED ||
				 header.type == PERFRING_RECORD_COMPRESSED2)
				one = unpack(stream, header.type, *at);
		}
		if (one == 1)
			break;
		if (one == -EBADMSG) {
			lose(stream, &header, &bytes, at);
			break;
		}
		if (one < 0)
			return one;
	}
	*record = (const struct perf_event_header *)(const void *)bytes;
	if (PERFRING_UNLIKELY((uintptr_t)bytes & 7)) {
		one = straighten(stream, bytes, header.size, record);
		if (one)
			return one;
	}
	return 1;
}
