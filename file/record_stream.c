/* record_stream.c - the records of one file or pipe in their order there.
 *
 * The functions of record_stream.h: file_reader.c takes records, file_header.c opens the streams.  A stream reads 1 MiB blocks;
 * sizes in headers are foreign, and a record is taken only if it is whole.
 */
#include "record_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "inflate.h"
#include "os/small_file.h"

#define BLOCK_SPACE (PERFRING_BLOCK_SIZE - (uint32_t)sizeof(struct perfring_block))

/* Bytes of one read of a file: at least two of the largest record, few enough for the processor's cache. */
#define PIECE (1u << 17)

/* The largest type of a record that was compressed: far above those of any kernel and perf. */
#define MAX_TYPE 65535

static_assert(sizeof(struct perfring_block) % 8 == 0, "records in blocks are aligned");

static struct perfring_block *block_open(struct perfring_block_pool *pool)
{
	struct perfring_block *block = pool->spare;

	if (block)
		pool->spare = block->next;
	else
		block = aligned_alloc(PERFRING_BLOCK_SIZE, PERFRING_BLOCK_SIZE);
	if (!block)
		return NULL;
	block->next = NULL;
	block->from = 0;
	block->filled = 0;
	block->holders = 1;
	pool->blocks++;
	return block;
}

void perfring__pool_close(struct perfring_block_pool *pool)
{
	struct perfring_block *block;

	while ((block = pool->spare)) {
		pool->spare = block->next;
		free(block);
	}
}

void perfring__stream_open(struct perfring_stream *stream, struct perfring_block_pool *pool, int fd, int64_t at)
{
	memset(stream, 0, sizeof(*stream));
	stream->pool = pool;
	stream->fd = fd;
	stream->at = at;
	stream->settled = at;
	stream->end = INT64_MAX;
	stream->stop = 1;
	stream->frame_at = -1;
}

void perfring__stream_close(struct perfring_stream *stream)
{
	struct perfring_order *order = &stream->order;

	for (size_t i = 0; i < order->run_count; i++)
		for (size_t at = order->runs[i].at; at < order->runs[i].end; at++)
			perfring__pool_release(stream->pool, order->pending[at].record);
	perfring__order_close(order);
	perfring__pool_release(stream->pool, stream->unread.record);
	perfring__block_release(stream->pool, stream->block);
	perfring__block_release(stream->pool, stream->copies);
	perfring__block_release(stream->pool, stream->inflated);
	perfring__block_release(stream->pool, stream->packed);
	perfring__inflater_close(stream->inflater);
	if (stream->owns_fd)
		close(stream->fd);
}

/* ---- bytes ---- */

/* How many bytes of the block there are at the next record; negative: it is not in the block. */
static int64_t available(const struct perfring_stream *stream)
{
	const struct perfring_block *block = stream->block;

	return block && stream->at >= block->from ? block->from + block->filled - stream->at : -1;
}

static const unsigned char *next_bytes(const struct perfring_stream *stream)
{
	return stream->block->bytes + (stream->at - stream->block->from);
}

/* A new block, whose first byte is that at `at`. */
static struct perfring_block *next_block(struct perfring_stream *stream)
{
	struct perfring_block *block = block_open(stream->pool);
	int64_t kept = available(stream);

	if (!block)
		return NULL;
	block->from = stream->at;
	if (stream->is_pipe && kept > 0) {
		memcpy(block->bytes, next_bytes(stream), (size_t)kept);
		block->filled = (uint32_t)kept;
	}
	perfring__block_release(stream->pool, stream->block);
	stream->block = block;
	return block;
}

/* Makes `want` bytes at `at` available, or all that there are.  Returns 0 or -errno. */
static int fill(struct perfring_stream *stream, uint32_t want)
{
	struct perfring_block *block = stream->block;
	uint64_t left, space;
	int64_t got;

	if (available(stream) < 0 || stream->at - block->from + want > BLOCK_SPACE) {
		/* First: a file's block may be used again at once.  A pipe's has bytes that are kept. */
		if (!stream->is_pipe) {
			perfring__block_release(stream->pool, block);
			stream->block = NULL;
		}
		block = next_block(stream);
		if (!block)
			return -ENOMEM;
	}
	if (!stream->is_pipe) {
		left = (uint64_t)(stream->end - block->from) - block->filled;
		space = BLOCK_SPACE - block->filled < PIECE ? BLOCK_SPACE - block->filled : PIECE;
		got = perfring__os_file_pread(stream->fd, block->bytes + block->filled,
					      (size_t)(left < space ? left : space),
					      (uint64_t)block->from + block->filled);
		if (got < 0)
			return (int)got;
		block->filled += (uint32_t)got;
		return 0;
	}
	/* Of a pipe no more than is needed: its writer may wait for what we do with it. */
	while (available(stream) < want) {
		got = read(stream->fd, block->bytes + block->filled, BLOCK_SPACE - block->filled);
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

int64_t perfring__stream_read_trailing(struct perfring_stream *stream, void *buffer, size_t size)
{
	int64_t got;

	if (size > stream->trailing)
		size = (size_t)stream->trailing;
	if (!size)
		return 0;
	if (stream->is_pipe) {
		if (available(stream) <= 0) {
			int error = fill(stream, 1);

			if (error)
				return error;
		}
		got = available(stream);
		if ((uint64_t)got > size)
			got = (int64_t)size;
		if (got > 0)
			memcpy(buffer, next_bytes(stream), (size_t)got);
	} else {
		got = perfring__os_file_pread(stream->fd, buffer, size, (uint64_t)stream->at);
		if (got < 0)
			return got;
	}
	if (got <= 0)
		return perfring__fault_at(&stream->pool->fault, (uint64_t)stream->at,
					  "file ends inside the bytes after a record");
	stream->at += got;
	stream->trailing -= (uint64_t)got;
	return got;
}

/* Moves to the next record.  Of a file, reading the last byte shows that all of them are there. */
static int skip_trailing(struct perfring_stream *stream)
{
	char passed[4096];
	int64_t got = 1;

	if (!stream->is_pipe && stream->trailing) {
		stream->at += (int64_t)stream->trailing - 1;
		stream->trailing = 1;
	}
	while (stream->trailing && got > 0)
		got = perfring__stream_read_trailing(stream, passed, sizeof(passed));
	return got < 0 ? (int)got : 0;
}

void *perfring__stream_space(struct perfring_stream *stream, uint32_t size)
{
	struct perfring_block *block = stream->copies;
	void *space;

	if (!block || BLOCK_SPACE - block->filled < size) {
		perfring__block_release(stream->pool, block);
		stream->copies = block = block_open(stream->pool);
		if (!block)
			return NULL;
	}
	space = block->bytes + block->filled;
	/* BLOCK_SPACE is a multiple of 8 */
	block->filled += (size + 7u) & ~7u;
	return space;
}

/* ---- records ---- */

static struct perf_event_header header_at(const struct perfring_stream *stream, const unsigned char *bytes)
{
	struct perf_event_header header;

	memcpy(&header, bytes, sizeof(header));
	return stream->is_foreign ? perfring_header_to_native(&header) : header;
}

/* *extra: the bytes that follow the record and are not in its size (docs/abi.md 14.37).  Returns false if the record is
 * too short to give their number. */
static bool trailing_bytes(const struct perfring_stream *stream, const struct perf_event_header *header,
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
		*extra = perfring__tracing_is_inside(header->size, half) ? 0 : half;
	} else if (header->type == PERFRING_RECORD_AUXTRACE) {
		if (header->size < sizeof(*header) + sizeof(*extra))
			return false;
		memcpy(extra, body, sizeof(*extra));
		if (stream->is_foreign)
			*extra = __builtin_bswap64(*extra);
	}
	return true;
}

/* There is no whole record at `at`.  If a killed writer has not counted it in the header, the file ends there. */
static int end_or_fault(struct perfring_stream *stream, const char *what)
{
	return stream->is_finished || stream->at < stream->settled
		       ? perfring__fault_at(&stream->pool->fault, (uint64_t)stream->at, what)
		       : 0;
}

/* The next record of the file itself.  Returns 1, 0, -errno. */
static int take_outer(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	struct perf_event_header reread;
	int64_t left;
	uint64_t extra;
	int error = stream->trailing ? skip_trailing(stream) : 0;

	if (error)
		return error == -EBADMSG ? end_or_fault(stream, "file ends inside the bytes after a record") : error;
	left = stream->end - stream->at;
	if (!left)
		return 0;
	if (left < (int64_t)sizeof(*header))
		return end_or_fault(stream, "records end inside a header");
	if (available(stream) < (int64_t)sizeof(*header)) {
		error = fill(stream, sizeof(*header));
		if (error)
			return error;
		if (stream->end == INT64_MAX && !available(stream) && stream->at >= stream->settled)
			return 0;
		if (available(stream) < (int64_t)sizeof(*header))
			return end_or_fault(stream, "file ends inside its records");
	}
	*header = header_at(stream, next_bytes(stream));
	if (header->size < sizeof(*header))
		return end_or_fault(stream, "record shorter than its header");
	if (header->size > left)
		return end_or_fault(stream, "record longer than what is left");
	if (available(stream) < header->size) {
		error = fill(stream, header->size);
		if (error)
			return error;
		if (available(stream) < header->size)
			return end_or_fault(stream, "file ends inside a record");
		/* the file may have been written to since */
		reread = header_at(stream, next_bytes(stream));
		if (reread.size != header->size || reread.type != header->type)
			return end_or_fault(stream, "record changed while it was read");
	}
	*bytes = next_bytes(stream);
	if (PERFRING_UNLIKELY(header->type >= PERFRING_RECORD_OF_PERF)) {
		if (!trailing_bytes(stream, header, *bytes + sizeof(*header), &extra))
			return end_or_fault(stream, "record too short for the size of the bytes after it");
		if (extra > (uint64_t)(left - header->size))
			return end_or_fault(stream, "bytes after the record longer than what is left");
		stream->trailing = extra;
	}
	stream->at += header->size;
	return 1;
}

/* ---- compressed records ---- */

/* A fault of the last compressed record, or of the records in it. */
static int unreadable(struct perfring_stream *stream, const char *what)
{
	return perfring__fault_at(&stream->unread_fault, (uint64_t)stream->packed_at, what);
}

static const unsigned char *packed_record(const struct perfring_stream *stream)
{
	return stream->packed->bytes + (stream->packed_at - stream->packed->from);
}

static uint32_t left_inflated(const struct perfring_stream *stream)
{
	return stream->inflated ? stream->inflated->filled - stream->inflated_at : 0;
}

/* Finds the compressed bytes of the record.  Returns false if it is shorter than its data_size says. */
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
	perfring__inflater_reset(stream->inflater);
	stream->frame_at = stream->packed_at;
	stream->is_inflating = true;
	stream->damage = NULL;
	stream->is_lost = false;
}

/* After a fault: returns the compressed record itself, and loses the rest of its frame.  If the fault was of the frame
 * before and the record begins another, that one is read next. */
static void lose_frame(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes,
		       int64_t *at)
{
	*bytes = packed_record(stream);
	*header = header_at(stream, *bytes);
	*at = stream->packed_at;
	perfring__block_release(stream->pool, stream->inflated);
	stream->inflated = NULL;
	stream->inflated_at = 0;
	stream->is_inflating = false;
	stream->is_lost = true;
	stream->pool->compression.lost++;
	if (stream->frame_at != stream->packed_at && find_packed(stream) &&
	    perfring__inflater_begins(stream->packed_bytes, stream->packed_size))
		begin_frame(stream);
}

/* Begins a compressed record, which lies in the stream's block.  Returns 0, -EBADMSG with the stream's unread_fault,
 * -ENOMEM, -EOPNOTSUPP with the pool's fault. */
static int unpack(struct perfring_stream *stream, uint32_t type, int64_t at)
{
	struct perfring_file_compressed *compression = &stream->pool->compression;
	enum perfring_inflater_state state;
	int error;

	stream->is_special = true;
	if (!stream->inflater) {
		error = perfring__inflater_open(&stream->inflater, &stream->pool->windows);
		if (error == -EOPNOTSUPP)
			perfring__fault_at(&stream->pool->fault, (uint64_t)at,
					   "compressed records: this library was built without libzstd");
		if (error)
			return error;
	}
	perfring__block_release(stream->pool, stream->packed);
	stream->packed = stream->block;
	stream->packed->holders++;
	stream->packed_at = at;
	if (type == PERFRING_RECORD_COMPRESSED)
		compression->compressed++;
	else
		compression->compressed2++;
	if (!find_packed(stream) && !stream->is_lost)
		return unreadable(stream, "compressed record shorter than its data_size");
	compression->packed_bytes += stream->packed_size;
	state = perfring__inflater_state(stream->inflater);
	stream->is_inflating = !stream->is_lost;
	if (perfring__inflater_begins(stream->packed_bytes, stream->packed_size) &&
	    (stream->is_lost || state != PERFRING_INSIDE_A_BLOCK)) {
		/* Frames that have ended are one stream of bytes: a record may continue in the next frame. */
		if (state == PERFRING_BETWEEN_BLOCKS && left_inflated(stream))
			return unreadable(stream, "compressed: the frame before this one ends inside a record");
		begin_frame(stream);
	} else if (stream->is_lost) {
		compression->lost++;
	}
	return 0;
}

/* Appends more bytes to the inflated block.  Returns 0 or -ENOMEM. */
static int inflate_more(struct perfring_stream *stream)
{
	struct perfring_block *block = stream->inflated;
	uint32_t left = left_inflated(stream);
	size_t used = 0, packed = stream->packed_size;
	int error;

	if (!block || BLOCK_SPACE - block->filled < 1u << 16) {
		struct perfring_block *fresh = block_open(stream->pool);

		if (!fresh)
			return -ENOMEM;
		/* a record that continues in the next compressed one */
		if (left)
			memcpy(fresh->bytes, block->bytes + stream->inflated_at, left);
		fresh->filled = left;
		perfring__block_release(stream->pool, block);
		stream->inflated = block = fresh;
		stream->inflated_at = 0;
	}
	error = perfring__inflate(stream->inflater, &stream->packed_bytes, &packed, block->bytes + block->filled,
				  BLOCK_SPACE - block->filled, &used);
	if (error == -ENOMEM)
		return error;
	stream->packed_size = (uint32_t)packed;
	block->filled += (uint32_t)used;
	stream->pool->compression.plain_bytes += used;
	stream->damage = error == -EBADMSG   ? "compressed bytes are damaged"
			 : error == -EFBIG   ? "compressed: a zstd window of more than 128 MiB"
			 : error == -ENOBUFS ? "compressed: more than 512 MiB of zstd windows in one file or directory"
					     : NULL;
	/* zstd may keep bytes that found no space */
	stream->is_inflating = error != 0;
	return 0;
}

/* The next record in the inflated block.  Returns 1, 0 (not whole), -EBADMSG. */
static int next_inflated(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	const struct perfring_block *block = stream->inflated;
	uint32_t left = left_inflated(stream);
	uint64_t extra;

	if (left < sizeof(*header))
		return 0;
	*bytes = block->bytes + stream->inflated_at;
	*header = header_at(stream, *bytes);
	if (header->size < sizeof(*header))
		return unreadable(stream, "compressed: record shorter than its header");
	/* before waiting for the rest of it: finds damage that zstd does not see */
	if (header->type > MAX_TYPE)
		return unreadable(stream, "compressed: a record that cannot be compressed");
	if (left < header->size)
		return 0;
	if (perfring__is_compressed(header->type) ||
	    !trailing_bytes(stream, header, *bytes + sizeof(*header), &extra) || extra)
		return unreadable(stream, "compressed: a record that cannot be compressed");
	stream->inflated_at += header->size;
	return 1;
}

/* The next record of the compressed one.  Returns 1, 0 (no more), -EBADMSG with the stream's unread_fault, -ENOMEM. */
static int take_inflated(struct perfring_stream *stream, struct perf_event_header *header, const unsigned char **bytes)
{
	int one;

	for (;;) {
		one = next_inflated(stream, header, bytes);
		if (one || !stream->is_inflating)
			return one;
		if (stream->damage)
			return unreadable(stream, stream->damage);
		one = inflate_more(stream);
		if (one)
			return one;
	}
}

/* Whether the compressed records end inside a record or block, though their writer was not killed. */
static bool is_torn(const struct perfring_stream *stream)
{
	return stream->packed && !stream->is_lost && stream->is_finished &&
	       (left_inflated(stream) || perfring__inflater_state(stream->inflater) == PERFRING_INSIDE_A_BLOCK);
}

int perfring__stream_take(struct perfring_stream *stream, const struct perf_event_header **record, int64_t *at)
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
			*at = stream->at + (int64_t)stream->trailing;
			one = take_outer(stream, &header, &bytes);
			if (one < 0 || (!one && !is_torn(stream)))
				return one;
			if (!one)
				one = unreadable(stream, "compressed records end inside a record");
			else if (perfring__is_compressed(header.type))
				one = unpack(stream, header.type, *at);
		}
		if (one == 1)
			break;
		if (one == -EBADMSG) {
			lose_frame(stream, &header, &bytes, at);
			break;
		}
		if (one < 0)
			return one;
	}
	*record = (const struct perf_event_header *)(const void *)bytes;
	/* odd sizes leave every record after them unaligned (docs/abi.md 14.36) */
	if (PERFRING_UNLIKELY((uintptr_t)bytes & 7)) {
		void *copy = perfring__stream_space(stream, header.size);

		if (!copy)
			return -ENOMEM;
		memcpy(copy, bytes, header.size);
		*record = copy;
	}
	return 1;
}
