/* record_stream.h - the records of one file or pipe in their order there: read block by block, inflated, aligned.
 *
 * Used by file_header.c, metadata.c and file_reader.c, in the file's one thread.  A block stays as long as a record in it is
 * held.
 *
 *     fd  --pread, read-->  block  --records-->  taken
 *                             |                    ^
 *                             +--COMPRESSED--> inflated
 *
 * If compressed bytes are damaged, the rest of their frame is lost.  Reading continues at the next record that begins
 * a frame.
 */
#ifndef PERFRING_FILE_RECORD_STREAM_H
#define PERFRING_FILE_RECORD_STREAM_H

#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/record.h>
#include <perfring/swap.h>
#include "file_order.h"

struct perfring_inflater;

/* 1 MiB of the file, from the start of a record on, in memory aligned to its size: a record's address gives its block.
 * It is used again once no record in it is held. */
#ifndef PERFRING_BLOCK_SIZE /* smaller with the address sanitizer (CMakeLists.txt) */
#define PERFRING_BLOCK_SIZE (1u << 20)
#endif
struct perfring_block {
	struct perfring_block *next;
	_Alignas(8) int64_t from; /* offset in the file; i386 aligns 64 bits to 4 */
	uint32_t filled;
	uint32_t holders;
	uint64_t padding[5];
	unsigned char bytes[];
};

/* Of all streams of a file: free blocks, the last fault, and counts. */
struct perfring_block_pool {
	struct perfring_block *spare;
	uint32_t blocks; /* in use */
	struct perfring_fault fault;
	struct perfring_file_compressed compression;
	uint64_t windows; /* of the streams' inflaters */
};

struct perfring_stream {
	struct perfring_block_pool *pool;
	int fd;
	bool owns_fd;
	bool is_pipe;
	bool is_foreign;  /* the other byte order */
	bool is_special;  /* foreign, or it has compressed records */
	bool is_finished; /* the end of the records is known; else it is the first one that is not whole */
	int64_t at;       /* of the next record */
	int64_t settled;  /* end of the records that the header counts */
	int64_t end;      /* of the records; INT64_MAX: unknown */
	uint64_t trailing; /* bytes at `at` that follow the last record and are not in its size */
	int stop;          /* 1, or what every take returns from now on */

	struct perfring_block *block;  /* that `at` lies in */
	struct perfring_block *copies; /* of records that are not aligned, or foreign */

	struct perfring_inflater *inflater; /* NULL before the first compressed record */
	struct perfring_block *inflated;
	uint32_t inflated_at;          /* of the next record in it */
	struct perfring_block *packed; /* that the last compressed record lies in */
	const unsigned char *packed_bytes;
	uint32_t packed_size; /* bytes of it that are not inflated yet */
	int64_t packed_at;    /* offset of that record */
	int64_t frame_at;     /* offset of the record at which the inflater was last reset */
	bool is_inflating;    /* that record may give more bytes */
	bool is_lost;         /* the rest of the frame */
	const char *damage;   /* why the inflater gives no more bytes, or NULL */
	struct perfring_fault unread_fault;
	struct perfring_pending unread; /* a compressed record that is delivered after all records before it */

	struct perfring_order order;
};

/* The caller sets `is_finished`, `settled` and `end`. */
void perfring__stream_open(struct perfring_stream *stream, struct perfring_block_pool *pool, int fd, int64_t at);
void perfring__stream_close(struct perfring_stream *stream);
void perfring__pool_close(struct perfring_block_pool *pool);

/* The next record, of at least 8 bytes, at a multiple of 8, in the byte order of the file.  *at: its offset; of an inflated
 * record, that of its compressed record.  A compressed record is returned itself only if it could not be read to its
 * end: unread_fault says why.  Returns 1; 0 at the end; -EBADMSG with the pool's fault; -EOPNOTSUPP (compressed, and built without
 * libzstd); -errno.  Valid while the block is held. */
int perfring__stream_take(struct perfring_stream *stream, const struct perf_event_header **record, int64_t *at);

/* Space in a block, at a multiple of 8, for a copy of at most 64 KiB.  NULL: no memory. */
void *perfring__stream_space(struct perfring_stream *stream, uint32_t size);

/* Reads trailing bytes of the last record.  Returns how many, 0 (no more), -EBADMSG (the file ends before), -errno. */
int64_t perfring__stream_read_trailing(struct perfring_stream *stream, void *buffer, size_t size);

static inline struct perfring_block *perfring__block_of(const void *in_block)
{
	return (struct perfring_block *)((uintptr_t)in_block & ~(uintptr_t)(PERFRING_BLOCK_SIZE - 1));
}

static inline void perfring__block_release(struct perfring_block_pool *pool, struct perfring_block *block)
{
	if (!block || --block->holders)
		return;
	block->next = pool->spare;
	pool->spare = block;
	pool->blocks--;
}

/* Keeps the block that a record lies in. */
static inline void perfring__pool_hold(const void *in_block)
{
	perfring__block_of(in_block)->holders++;
}

static inline void perfring__pool_release(struct perfring_block_pool *pool, const void *in_block)
{
	if (in_block)
		perfring__block_release(pool, perfring__block_of(in_block));
}

/* Whether a HEADER_TRACING_DATA record contains its `size` bytes of data, after its first 12, as simpleperf (Android)
 * writes it. perf's have 12 or 16 bytes, and their data follow the record. */
static inline bool perfring__tracing_is_inside(uint32_t record_size, uint32_t size)
{
	return record_size > 16 && size <= record_size - 12;
}

/* The fast path of perfring__stream_take: the next record if it is whole in the block, aligned, one of the kernel's,
 * native and not compressed.  Returns false if it is not. */
static inline bool perfring__stream_take_plain(struct perfring_stream *stream, const struct perf_event_header **record,
					       int64_t *at)
{
	const struct perfring_block *block = stream->block;
	const perfring_header *header;
	uint64_t place, left;

	if (!block || stream->is_special || stream->trailing || stream->at < block->from)
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

static inline bool perfring__is_compressed(uint32_t type)
{
	return type == PERFRING_RECORD_COMPRESSED || type == PERFRING_RECORD_COMPRESSED2;
}

/* Stores a fault.  Returns -EBADMSG. */
static inline int perfring__fault_at(struct perfring_fault *fault, uint64_t at, const char *what)
{
	fault->at = (int64_t)at;
	fault->what = what;
	return -EBADMSG;
}

#endif
