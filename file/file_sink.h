/* file_sink.h - the lowest layer of writing: bytes at the end of a file or pipe.
 *
 *     file_writer.c    records, header, features
 *     file_swap.c      records in the other byte order
 *     file_compress.c  records in compressed records
 *     file_sink.c      bytes
 *
 * Each layer calls only those below it. */
#ifndef PERFRING_FILE_FILE_SINK_H
#define PERFRING_FILE_FILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct perfring_file_sink {
	int fd;
	bool is_pipe; /* nothing is written twice or cut off */
	uint64_t end; /* of the last whole write; of a pipe, of all bytes written */
};

/* Returns 0, -EBADF, -ESPIPE or -EINVAL (O_APPEND); neither of the last two for a pipe. */
int perfring__file_sink_open(struct perfring_file_sink *sink, int fd, bool is_pipe);

/* Empties the file: old bytes would be read as records.  Returns 0 or -errno. */
int perfring__file_sink_clear(const struct perfring_file_sink *sink);

/* Appends the pieces.  Returns 0 or -errno; after an error a file is truncated to the last whole write. */
int perfring__file_sink_append(struct perfring_file_sink *sink, const struct iovec *pieces, int count);

/* Writes over the first bytes of a file, with one call.  Returns 0 or -errno. */
int perfring__file_sink_overwrite(const struct perfring_file_sink *sink, const void *bytes, size_t size);

#endif
