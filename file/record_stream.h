/* record_stream.h - the records of one file or pipe as they stand there: read block by block, inflated, straightened.
 *
 *     fd  --pread, read-->  block  --records-->  taken
 *                             |                    ^
 *                             +--COMPRESSED--> inflated
 *
 * Where what is compressed is damaged, the rest of its frame is lost.  The next record that begins a frame is read again.
 */
#ifndef PERFRING_FEATURE_STREAM_H
#define PERFRING_FEATURE_STREAM_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/record.h>
#include <perfring/swap.h>
#include "file_order.h"

struct perfring_inflater;

/* 1 MiB of the file, from the start of a record on, in memory aligned to its size: a record's address tells its block.  It
 * is used again once none of its records waits or is in the user's hands. */
#ifndef PERFRING_BLOCK_SIZE /* smaller with the address sanitizer (CMakeLists.txt) */
#define PERFRING_BLOCK_SIZE (1u << 20)
#endif
struct perfring_block {
	struct perfring_block *next;
	_Alignas(8) int64_t from; /* place in the file; i386 has 64 bits at 4 too */
	uint32_t filled;
	uint32_t holders;
	uint64_t padding[5];
	unsigned char bytes[];
};

/* Blocks that no record lies in any more, to be used again; and what went wrong last. */
struct perfring_stock {
	struct perfring_block *spare;
	uint32_t blocks; /* in use */
	struct perfring_fault fault;
	struct perfring_file_compressed compression;
	uint64_t windows; /* of the streams' inflaters */
};

struct perfring_stream {
	struct perfring_stock *stock;
	int fd;
	bool is_ours; /* the fd */
	bool is_pipe;
	bool is_foreign;  /* the other byte order */
	bool is_special;  /* foreign, or a compressed record was met */
	bool is_finished; /* its writer said how much there is; else it ends where records stop making sense */
	int64_t at;       /* of the next record */
	int64_t settled;  /* end of the records that the header counts */
	int64_t end;      /* of the records; INT64_MAX: nobody knows */
	uint64_t behind;  /* bytes from `at` on that stand behind the last record and are none */
	int stop;         /* 1, or what every take returns from now on */

	struct perfring_block *block; /* that `at` lies in */
	struct perfring_block *loose; /* copies */

	struct perfring_inflater *inflater; /* once a compressed record was met */
	struct perfring_block *inflated;
	uint32_t inflated_at;          /* of the next record in it */
	struct perfring_block *packed; /* where the last compressed record lies */
	const unsigned char *packed_bytes;
	uint32_t packed_size; /* that are not inflated */
	int64_t packed_at;    /* that record's place */
	int64_t frame_at;     /* of the record before which the inflater was reset */
	bool is_inflating;    /* there may be more to come of that record, */
	bool is_lost;         /* the rest of the frame */
	const char *damage;   /* why no more than came is to come of it, or NULL */
	struct perfring_fault unread_fault;
	struct perfring_pending unread; /* a compressed record, until all that came before it was handed out */

	struct perfring_order order;
};

/* `is_finished`, `settled` and `end` are the caller's to set. */
void perfring_stream_open(struct perfring_stream *stream, struct perfring_stock *stock, int fd, int64_t at);
void perfring_stream_close(struct perfring_stream *stream);
void perfring_stock_close(struct perfring_stock *stock);

/* The next record in the order of the file, at a multiple of 8, in the byte order of the file; what is compressed comes
 * inflated.  *at: its place, of an inflated one that of the compressed record it came out of.  A compressed record comes
 * itself where it could not be read, or not to its end: unread_fault says why.  Returns 1; 0 at the end; -EBADMSG with the
 * stock's fault; -EOPNOTSUPP (compressed, and built without libzstd); -errno.  Valid as long as the block is held. */
int perfring_stream_take(struct perfring_stream *stream, const struct perf_event_header **record, int64_t *at);

/* Room at a multiple of 8 for a copy of at most 64 KiB; it lies in a block. */
void *perfring_stream_room(struct perfring_stream *stream, uint32_t size);

/* Up to `size` of the bytes behind the last record.  Returns how many, 0 when all were read, -errno, -EBADMSG (the file
 * ends before). */
int64_t perfring_stream_read_behind(struct perfring_stream *stream, void *room, size_t size);

static inline struct perfring_block *perfring_block_of(const void *in_block)
{
	return (struct perfring_block *)((uintptr_t)in_block & ~(uintptr_t)(PERFRING_BLOCK_SIZE - 1));
}

static inline void perfring_block_leave(struct perfring_stock *stock, struct perfring_block *block)
{
	if (!block || --block->holders)
		return;
	block->next = stock->spare;
	stock->spare = block;
	stock->blocks--;
}

/* A record, or anything else in a block, keeps its block. */
static inline void perfring_stock_hold(const void *in_block)
{
	perfring_block_of(in_block)->holders++;
}

static inline void perfring_stock_leave(struct perfring_stock *stock, const void *in_block)
{
	if (in_block)
		perfring_block_leave(stock, perfring_block_of(in_block));
}

/* Whether a HEADER_TRACING_DATA of this size holds its `size` bytes of data itself, after its 12 bytes, as simpleperf
 * (Android) writes it.  perf's have 12 or 16 bytes, and their data follow the record. */
static inline bool perfring_tracing_is_inside(uint32_t record_size, uint32_t size)
{
	return record_size > 16 && size <= record_size - 12;
}

/* The next record where nothing is special about it: it lies in the block as a whole, aligned, a kernel's, in our byte
 * order and not compressed.  Returns false to take it by perfring_stream_take. */
static inline bool perfring_stream_take_plain(struct perfring_stream *stream, const struct perf_event_header **record,
					      int64_t *at)
{
	const struct perfring_block *block = stream->block;
	const perfring_header *header;
	uint64_t place, left;

	if (!block || stream->is_special || stream->behind || stream->at < block->from)
		return false;
	place = (uint64_t)(stream->at - block->from);
	left = block->filled - place;
	if (place + sizeof(*header) > block->filled || place & 7 || left > (uint64_t)(stream->end - stream->at))
		return false;
	header = (const perfring_header *)(const void *)(block->bytes + place);
	if (header->size < sizeof(*header) || header->size > left || header->type >= PERFRING_RECORD_OF_PERF)
		return false;
	*record = (const struct perf_event_header *)(const void *)(block->bytes + place);
	*at = stream->at;
	stream->at += header->size;
	return true;
}

/* -EBADMSG with the fault noted. */
int perfring_stock_wrong(struct perfring_stock *stock, uint64_t at, const char *what);

/* The whole of it, or less at the end of the file.  Returns the bytes read or -errno. */
int64_t perfring_stock_read(int fd, void *room, size_t size, uint64_t at);

#endif
