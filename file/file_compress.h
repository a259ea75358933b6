/* file_compress.h - the layer over the sink: whole records in compressed records (docs/abi.md 11.5).
 *
 * file_writer.c and file_swap.c write records by it.
 */
#ifndef PERFRING_FILE_FILE_COMPRESS_H
#define PERFRING_FILE_FILE_COMPRESS_H

#include "byte_buffer.h"
#include "file_sink.h"
#include "inflate.h"

/* Bytes between two flushes, and so in one compressed record: the feature's mmap_len. */
enum {
	PERFRING_COMPRESS_CHUNK = 1 << 19,
};

struct perfring_file_compress {
	struct perfring_file_sink sink;
	struct perfring_deflater *deflater; /* NULL: records go into the sink as they are */
	bool is_foreign;                    /* the byte order of the compressed records' headers */
	bool has_frame;                     /* the sink has a frame, which has not ended */
	bool ends_frame;                    /* the next compressed record ends it and begins another */
	int error;          /* of a pipe, in which a write has failed: how much it has of it is unknown */
	uint64_t unflushed; /* bytes in the deflater since it was flushed */
	uint64_t plain_bytes, compressed_bytes;
	struct perfring_byte_buffer buffer; /* compressed records */
};

/* Writes whole records.  Returns 0 or -errno. */
int perfring__file_compress_write(struct perfring_file_compress *file, const struct iovec *pieces, int count);

void perfring__file_compress_close(struct perfring_file_compress *file);

#endif
