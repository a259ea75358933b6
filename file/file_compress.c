/* file_compress.c - whole records in compressed records (docs/abi.md 11.5).
 *
 * Between file_swap.c and file_sink.c, for one file; without a deflater the records are written as they are.  Each write is
 * flushed, so that a file whose writer was killed can be read up to its last write.
 */
#include <perfring/record.h>
#include "file_compress.h"

enum {
	BODY_MAX = 65535 - (int)sizeof(struct perf_event_header) - 1,
};

/* The end of a zstd frame: an empty block, the last one (RFC 8878, 3.1.1.2). */
static const unsigned char FRAME_END[] = {1, 0, 0};

/* From the deflater into the buffer, one record for each 64 KiB.  The end of an older frame goes into the first of
 * them: perf stops reading at a record without plain bytes. */
static int deflate(struct perfring_file_compress *file, const unsigned char *bytes, size_t size, bool flush)
{
	struct perfring_byte_buffer *buffer = &file->buffer;
	int more;

	do {
		unsigned char space[16384];
		struct perf_event_header header = {.type = PERFRING_RECORD_COMPRESSED};
		size_t start = buffer->used, used, end = file->ends_frame ? sizeof(FRAME_END) : 0, put = end;

		perfring__byte_buffer_put(buffer, &header, sizeof(header));
		perfring__byte_buffer_put(buffer, FRAME_END, end);
		do {
			more = perfring__deflate(file->deflater, &bytes, &size, flush, space,
						 BODY_MAX - put < sizeof(space) ? BODY_MAX - put : sizeof(space),
						 &used);
			if (more < 0)
				return more;
			perfring__byte_buffer_put(buffer, space, used);
			put += used;
		} while (more && put < BODY_MAX);
		if (buffer->error)
			return buffer->error;
		if (put == end) {
			buffer->used = start;
			continue;
		}
		file->ends_frame = false;
		header.size = (uint16_t)(sizeof(header) + put);
		file->compressed_bytes += put;
		if (file->is_foreign) {
			header.type = __builtin_bswap32(header.type);
			header.size = __builtin_bswap16(header.size);
		}
		memcpy(buffer->bytes + start, &header, sizeof(header));
	} while (more);
	return 0;
}

static int deflate_pieces(struct perfring_file_compress *file, const struct iovec *pieces, int count)
{
	int error = 0;

	for (int i = 0; i < count && !error; i++) {
		const unsigned char *bytes = pieces[i].iov_base;
		size_t left = pieces[i].iov_len, size;

		for (; left && !error; bytes += size, left -= size) {
			uint64_t space = PERFRING_COMPRESS_CHUNK - file->unflushed;
			bool is_full;

			size = space < left ? (size_t)space : left;
			file->unflushed += size;
			file->plain_bytes += size;
			is_full = file->unflushed == PERFRING_COMPRESS_CHUNK;
			error = deflate(file, bytes, size, is_full);
			if (is_full)
				file->unflushed = 0;
		}
	}
	/* all that is written can be read without what follows */
	if (!error && file->unflushed) {
		error = deflate(file, (const unsigned char *)"", 0, true);
		file->unflushed = 0;
	}
	return error;
}

int perfring__file_compress_write(struct perfring_file_compress *file, const struct iovec *pieces, int count)
{
	uint64_t plain_bytes = file->plain_bytes, compressed_bytes = file->compressed_bytes;
	struct iovec compressed;
	int error;

	if (!file->deflater)
		return perfring__file_sink_append(&file->sink, pieces, count);
	if (file->error)
		return file->error;
	error = deflate_pieces(file, pieces, count);
	if (!error) {
		compressed = (struct iovec){.iov_base = file->buffer.bytes, .iov_len = file->buffer.used};
		error = perfring__file_sink_append(&file->sink, &compressed, 1);
	}
	if (!error) {
		file->has_frame = file->has_frame || file->buffer.used;
	} else {
		/* The deflater's window contains bytes that are not in the file: the next write begins a new frame. */
		perfring__deflater_reset(file->deflater);
		file->buffer.error = 0;
		file->unflushed = 0;
		file->ends_frame = file->has_frame;
		file->plain_bytes = plain_bytes;
		file->compressed_bytes = compressed_bytes;
		if (file->sink.is_pipe)
			file->error = error;
	}
	file->buffer.used = 0;
	return error;
}

void perfring__file_compress_close(struct perfring_file_compress *file)
{
	perfring__byte_buffer_close(&file->buffer);
	perfring__deflater_close(file->deflater);
}
