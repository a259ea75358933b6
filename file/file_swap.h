/* file_swap.h - the layer over compression: whole records in the other byte order (docs/abi.md 11.6).
 *
 * file_writer.c writes records by it after perfring_file_writer_make_foreign.
 */
#ifndef PERFRING_FILE_FILE_SWAP_H
#define PERFRING_FILE_FILE_SWAP_H

#include <perfring/format.h>
#include "file_compress.h"

/* Writes whole records in the other byte order.  formats: of the file's events; buffer: overwritten.  Returns 0,
 * -EINVAL (not whole records), -ENOMEM, or as the write. */
int perfring__file_swap_write(struct perfring_file_compress *file, struct perfring_format_set *formats,
			      struct perfring_byte_buffer *buffer, const struct iovec *pieces, int count);

#endif
