/* file_swap.c - whole records in the other byte order (docs/abi.md 11.6).
 *
 * file_writer.c writes records by it after perfring_file_writer_make_foreign; the native input is not changed.
 */
#include <errno.h>
#include <perfring/record.h>
#include <perfring/swap.h>
#include "file_swap.h"

static int swap_record(struct perfring_format_set *formats, struct perfring_byte_buffer *buffer,
		       const struct perf_event_header *record)
{
	const struct perfring_format *format = NULL;
	unsigned char swapped[65536];
	int64_t size;

	if (record->type < PERFRING_RECORD_OF_PERF)
		perfring_format_set_of(formats, record, &format, NULL);
	/* a damaged record is swapped up to the damage */
	size = perfring_record_to_foreign(format, record, swapped, sizeof(swapped), NULL);
	if (size < 0 && size != -EBADMSG)
		return (int)size;
	perfring__byte_buffer_put(buffer, swapped, record->size);
	return buffer->error;
}

static int swap_piece(struct perfring_format_set *formats, struct perfring_byte_buffer *buffer,
		      const unsigned char *bytes, size_t left)
{
	union {
		struct perf_event_header header;
		unsigned char bytes[65536];
	} record;
	int error = 0;

	while (left && !error) {
		if (left < sizeof(record.header))
			return -EINVAL;
		memcpy(&record.header, bytes, sizeof(record.header));
		if (record.header.size < sizeof(record.header) || record.header.size > left)
			return -EINVAL;
		memcpy(record.bytes, bytes, record.header.size);
		bytes += record.header.size;
		left -= record.header.size;
		error = swap_record(formats, buffer, &record.header);
	}
	return error;
}

int perfring__file_swap_write(struct perfring_file_compress *file, struct perfring_format_set *formats,
			      struct perfring_byte_buffer *buffer, const struct iovec *pieces, int count)
{
	struct iovec swapped;
	int error = 0;

	buffer->used = 0;
	for (int i = 0; i < count && !error; i++)
		error = swap_piece(formats, buffer, pieces[i].iov_base, pieces[i].iov_len);
	if (error)
		return error;
	swapped.iov_base = buffer->bytes;
	swapped.iov_len = buffer->used;
	return perfring__file_compress_write(file, &swapped, 1);
}
