/* compress.c - records on their way to the file: into the other byte order, and compressed (docs/abi.md 11.5, 11.6). */
#include <limits.h>
#include <stdlib.h>

#include <perfring/feature.h>
#include <perfring/file_writer.h>
#include <perfring/swap.h>

#include "file_writer_private.h"

enum {
	/* Plain bytes between two flushes, and so in one compressed record: what the feature says as mmap_len. */
	CHUNK = 1 << 19,
	MOST_PACKED = 65535 - (int)sizeof(struct perf_event_header) - 1,
};

/* The end of a zstd frame: an empty block, the last one (RFC 8878, 3.1.1.2). */
static const unsigned char FRAME_END[] = {1, 0, 0};

static int put_packed(struct perfring_file_writer *writer, struct perfring_written_file *file)
{
	struct perfring_byte_buffer *pile = &file->packed;
	struct iovec piece = {.iov_base = pile->bytes, .iov_len = pile->used};
	int error = pile->error ? pile->error : pile->used ? perfring_file_put_pieces(writer, file, &piece, 1) : 0;

	pile->used = 0;
	return error;
}

/* ---- compressed ---- */

int perfring_file_put_ratio(struct perfring_file_writer *writer)
{
	uint64_t ratio =
		writer->packed_bytes ? (writer->plain_bytes + writer->packed_bytes / 2) / writer->packed_bytes : 0;
	uint32_t members[5] = {0, 1, (uint32_t)writer->level, (uint32_t)ratio, CHUNK};

	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_COMPRESSED, members, sizeof(members));
}

int perfring_file_writer_compress(struct perfring_file_writer *writer, int level)
{
	int error;

	if (writer->is_begun || writer->level)
		return -EINVAL;
	error = perfring_deflater_open(&writer->files[0].deflater, level, 1);
	if (error)
		return error;
	writer->level = level;
	return perfring_file_put_ratio(writer);
}

/* From the deflater into the pile, a record for each 64 KiB.  The end of an older frame goes into the first one: a record of
 * which nothing comes out ends perf's reading. */
static int deflate(struct perfring_file_writer *writer, struct perfring_written_file *file, const unsigned char *bytes,
		   size_t size, bool flush)
{
	struct perfring_byte_buffer *packed = &file->packed;
	int more;

	do {
		unsigned char room[16384];
		struct perf_event_header header = {.type = PERFRING_RECORD_COMPRESSED};
		size_t begun = packed->used, used, end = file->ends_frame ? sizeof(FRAME_END) : 0, put = end;

		perfring_byte_buffer_put(packed, &header, sizeof(header));
		perfring_byte_buffer_put(packed, FRAME_END, end);
		do {
			more = perfring_deflate(file->deflater, &bytes, &size, flush, room,
						MOST_PACKED - put < sizeof(room) ? MOST_PACKED - put : sizeof(room),
						&used);
			if (more < 0)
				return more;
			perfring_byte_buffer_put(packed, room, used);
			put += used;
		} while (more && put < MOST_PACKED);
		if (packed->error)
			return packed->error;
		if (put == end) {
			packed->used = begun;
			continue;
		}
		file->ends_frame = false;
		header.size = (uint16_t)(sizeof(header) + put);
		writer->packed_bytes += put;
		if (writer->is_foreign) {
			header.type = __builtin_bswap32(header.type);
			header.size = __builtin_bswap16(header.size);
		}
		memcpy(packed->bytes + begun, &header, sizeof(header));
	} while (more);
	return 0;
}

static int deflate_pieces(struct perfring_file_writer *writer, struct perfring_written_file *file,
			  const struct iovec *pieces, int count)
{
	int error = 0;

	for (int i = 0; i < count && !error; i++) {
		const unsigned char *bytes = pieces[i].iov_base;
		size_t left = pieces[i].iov_len, size;

		for (; left && !error; bytes += size, left -= size) {
			bool is_full;

			size = CHUNK - file->unflushed < left ? (size_t)(CHUNK - file->unflushed) : left;
			file->unflushed += size;
			writer->plain_bytes += size;
			is_full = file->unflushed == CHUNK;
			error = deflate(writer, file, bytes, size, is_full);
			if (is_full)
				file->unflushed = 0;
		}
	}
	/* What was written is in the file, and can be read without what follows. */
	if (!error && file->unflushed) {
		error = deflate(writer, file, (const unsigned char *)"", 0, true);
		file->unflushed = 0;
	}
	return error;
}

static int pack(struct perfring_file_writer *writer, struct perfring_written_file *file, const struct iovec *pieces,
		int count)
{
	uint64_t plain = writer->plain_bytes, packed = writer->packed_bytes;
	int error = deflate_pieces(writer, file, pieces, count);
	bool any = file->packed.used;

	if (!error)
		error = put_packed(writer, file);
	if (!error) {
		file->has_frame = file->has_frame || any;
		return 0;
	}
	/* What was cut off is still in the deflater's window: it begins anew, behind what was written before. */
	perfring_deflater_reset(file->deflater);
	file->packed.used = 0;
	file->packed.error = 0;
	file->unflushed = 0;
	file->ends_frame = file->has_frame;
	writer->plain_bytes = plain;
	writer->packed_bytes = packed;
	if (writer->is_pipe)
		file->pack_error = error;
	return error;
}

/* ---- the other byte order ---- */

static int turn(struct perfring_file_writer *writer, const struct perf_event_header *record)
{
	const struct perfring_format *format = NULL;
	unsigned char room[65536];
	int64_t size;

	if (record->type < PERFRING_RECORD_OF_PERF)
		perfring_format_set_of(writer->formats, record, &format, NULL);
	/* one that is damaged is turned as far as it goes */
	size = perfring_record_to_foreign(format, record, room, sizeof(room), NULL);
	if (size < 0 && size != -EBADMSG)
		return (int)size;
	perfring_byte_buffer_put(&writer->turned, room, record->size);
	return writer->turned.error;
}

static int turn_pieces(struct perfring_file_writer *writer, const struct iovec *pieces, int count)
{
	union {
		struct perf_event_header header;
		unsigned char bytes[65536];
	} record;
	int error = 0;

	writer->turned.used = 0;
	for (int i = 0; i < count && !error; i++) {
		const unsigned char *bytes = pieces[i].iov_base;
		size_t left = pieces[i].iov_len;

		while (left && !error) {
			if (left < sizeof(record.header))
				return -EINVAL;
			memcpy(&record.header, bytes, sizeof(record.header));
			if (record.header.size < sizeof(record.header) || record.header.size > left)
				return -EINVAL;
			memcpy(record.bytes, bytes, record.header.size);
			bytes += record.header.size;
			left -= record.header.size;
			error = turn(writer, &record.header);
		}
	}
	return error;
}

int perfring_file_pack(struct perfring_file_writer *writer, struct perfring_written_file *file,
		       const struct iovec *pieces, int count)
{
	struct iovec turned;
	int error;

	if (PERFRING_UNLIKELY(writer->is_foreign)) {
		error = turn_pieces(writer, pieces, count);
		if (error)
			return error;
		turned.iov_base = writer->turned.bytes;
		turned.iov_len = writer->turned.used;
		pieces = &turned;
		count = 1;
	}
	if (!file->deflater)
		return perfring_file_put_pieces(writer, file, pieces, count);
	return file->pack_error ? file->pack_error : pack(writer, file, pieces, count);
}

int perfring_file_put_own(struct perfring_file_writer *writer, uint32_t type, const void *body, size_t size,
			  const void *behind, size_t behind_size)
{
	union {
		struct perf_event_header header;
		unsigned char bytes[65536];
	} record, turned;
	struct iovec pieces[2];
	int error;

	if (size > sizeof(record) - sizeof(record.header) - 1)
		return -E2BIG;
	error = perfring_file_batch_write(writer);
	if (error)
		return error;
	memset(&record.header, 0, sizeof(record.header));
	record.header.type = type;
	record.header.size = (uint16_t)(sizeof(record.header) + size);
	if (size)
		memcpy(record.bytes + sizeof(record.header), body, size);
	pieces[0].iov_base = record.bytes;
	pieces[0].iov_len = record.header.size;
	pieces[1].iov_base = (void *)(uintptr_t)behind;
	pieces[1].iov_len = behind_size;
	if (writer->is_foreign) {
		perfring_record_to_foreign(NULL, &record.header, turned.bytes, sizeof(turned), NULL);
		pieces[0].iov_base = turned.bytes;
	}
	return perfring_file_put_pieces(writer, writer->files, pieces, behind_size ? 2 : 1);
}

int perfring_file_writer_put_auxtrace(struct perfring_file_writer *writer, const struct perf_event_header *record,
			       const void *trace, uint64_t size)
{
	struct perfring_section place = {.size = record->size};
	uint64_t own;
	int error;

	if (!writer->is_begun || writer->is_finished || record->type != PERFRING_RECORD_AUXTRACE ||
	    record->size < sizeof(*record) + sizeof(own))
		return -EINVAL;
	memcpy(&own, record + 1, sizeof(own));
	if (own != size || size > SIZE_MAX / 2)
		return -EINVAL;
	error = perfring_file_batch_write(writer);
	place.offset = writer->files->at;
	if (!error)
		error = perfring_file_put_own(writer, record->type, record + 1, record->size - sizeof(*record), trace,
					      (size_t)size);
	if (!error)
		perfring_byte_buffer_put(&writer->auxtrace, &place, sizeof(place));
	return error ? error : writer->auxtrace.error;
}
