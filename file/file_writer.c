/* file_writer.c - writes perf.data files (docs/abi.md 11): the top of the layers listed in file_sink.h.
 *
 * The functions of file_writer.h but for the machine's description (machine_info.c, topology.c, tracing_data.c) and its state
 * (synthesis.c).  Small records gather in a batch of 256 KiB; features are kept in memory until finish, or, in a stream, until
 * begin.  One thread; fds are the caller's.
 */
#include <limits.h>
#include <stdlib.h>
#include <perfring/feature.h>
#include <perfring/file_writer.h>
#include <perfring/swap.h>
#include "os/array.h"
#include "sample/attr.h"
#include "file_private.h"
#include "file_writer_private.h"

#define BATCH_SIZE (1u << 18)
#define RECORD_MAX 65535 /* a record of perf's own; PERFRING_RECORD_MAX is that of the others */
#define EVENT_NAME_MAX 128
#define PIECES_MAX 4 /* after a record */

static int add_file(struct perfring_file_writer *writer, int fd)
{
	struct perfring_file_compress file = {0};
	int error = perfring__file_sink_open(&file.sink, fd, writer->is_pipe);

	if (!error)
		error = perfring__os_array_grow(&writer->files, writer->file_count, &writer->file_capacity,
						sizeof(file));
	if (!error)
		writer->files[writer->file_count++] = file;
	return error;
}

static int create(struct perfring_file_writer **writer, int fd, bool is_pipe)
{
	struct perfring_file_writer *created;
	int error;

	*writer = NULL;
	created = calloc(1, sizeof(*created));
	if (!created)
		return -ENOMEM;
	created->is_pipe = is_pipe;
	error = add_file(created, fd);
	if (!error)
		error = perfring_format_set_open(&created->formats);
	if (error)
		perfring_file_writer_close(created);
	else
		*writer = created;
	return error;
}

int perfring_file_writer_open(struct perfring_file_writer **writer, int fd)
{
	return create(writer, fd, false);
}

int perfring_file_writer_open_stream(struct perfring_file_writer **writer, int fd)
{
	return create(writer, fd, true);
}

int perfring_file_writer_add_part(struct perfring_file_writer *writer, int fd)
{
	int error = writer->is_begun || writer->is_pipe ? -EINVAL : add_file(writer, fd);

	return error ? error : (int)writer->file_count - 1;
}

int perfring_file_writer_make_foreign(struct perfring_file_writer *writer)
{
	if (writer->is_begun)
		return -EINVAL;
	writer->is_foreign = true;
	return 0;
}

/* Puts the feature COMPRESSED: version 0, type 1 (zstd), level, ratio so far, size of mmap. */
static int put_ratio(struct perfring_file_writer *writer)
{
	uint64_t plain = 0, compressed = 0;
	uint32_t members[5] = {0, 1, (uint32_t)writer->level, 0, PERFRING_COMPRESS_CHUNK};

	for (uint32_t i = 0; i < writer->file_count; i++) {
		plain += writer->files[i].plain_bytes;
		compressed += writer->files[i].compressed_bytes;
	}
	members[3] = compressed ? (uint32_t)((plain + compressed / 2) / compressed) : 0;
	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_COMPRESSED, members, sizeof(members));
}

int perfring_file_writer_compress(struct perfring_file_writer *writer, int level)
{
	int error;

	if (writer->is_begun || writer->level)
		return -EINVAL;
	error = perfring__deflater_open(&writer->files[0].deflater, level, 1);
	if (error)
		return error;
	writer->level = level;
	return put_ratio(writer);
}

void perfring_file_writer_close(struct perfring_file_writer *writer)
{
	uint32_t i;

	if (!writer)
		return;
	for (i = 0; i < writer->event_count; i++) {
		free(writer->events[i].attr);
		free(writer->events[i].name);
		free(writer->events[i].ids);
	}
	free(writer->events);
	for (i = 0; i < PERFRING_FEATURE_BITS; i++)
		free(writer->feature[i].payload);
	for (i = 0; i < writer->group_count; i++)
		free(writer->groups[i].name);
	free(writer->groups);
	perfring__byte_buffer_close(&writer->batch);
	perfring__byte_buffer_close(&writer->swapped);
	perfring__byte_buffer_close(&writer->auxtrace);
	perfring__byte_buffer_close(&writer->build_ids);
	perfring__file_free_objects(writer);
	for (i = 0; i < writer->file_count; i++)
		perfring__file_compress_close(&writer->files[i]);
	free(writer->files);
	perfring_format_set_close(writer->formats);
	free(writer);
}

int perfring_file_writer_add_event(struct perfring_file_writer *writer, const struct perf_event_attr *attr,
				   const char *name)
{
	uint32_t size = perfring__attr_own_size(attr);
	struct perfring_written_event *event;
	char generated[EVENT_NAME_MAX];
	int index;

	if (writer->is_begun || size < PERFRING_ATTR_MIN)
		return -EINVAL;
	if (!name) {
		perfring__file_default_name(attr, generated, sizeof(generated));
		name = generated;
	}
	if (perfring__os_array_grow(&writer->events, writer->event_count, &writer->event_capacity, sizeof(*event)))
		return -ENOMEM;
	event = &writer->events[writer->event_count];
	memset(event, 0, sizeof(*event));
	event->name = strdup(name);
	event->attr = malloc(size);
	event->own_size = size;
	index = event->name && event->attr ? perfring_format_set_add(writer->formats, attr) : -ENOMEM;
	if (index < 0) {
		free(event->name);
		free(event->attr);
		return index;
	}
	memcpy(event->attr, attr, size);
	event->attr->size = size;
	if (attr->mmap && !writer->events[writer->side].attr->mmap)
		writer->side = writer->event_count;
	writer->event_count++;
	return index;
}

int perfring_file_writer_add_id(struct perfring_file_writer *writer, uint32_t index, uint64_t id)
{
	const struct perfring_format *known = perfring_format_set_find(writer->formats, id);
	struct perfring_written_event *event;
	int error;

	if (writer->is_begun || index >= writer->event_count)
		return -EINVAL;
	if (known)
		return known->index == index ? 0 : -EEXIST;
	event = &writer->events[index];
	error = perfring__os_array_grow(&event->ids, event->id_count, &event->id_capacity, sizeof(id));
	if (!error)
		error = perfring_format_set_put(writer->formats, id, index);
	if (!error)
		event->ids[event->id_count++] = id;
	return error;
}

int perfring_file_writer_add_formats(struct perfring_file_writer *writer, const struct perfring_format_set *formats)
{
	uint32_t before = writer->event_count, index = 0;
	uint64_t id;
	int ret = 0;

	for (uint32_t i = 0; ret >= 0 && i < perfring_format_set_count(formats); i++)
		ret = perfring_file_writer_add_event(writer, perfring_format_set_attr(formats, i), NULL);
	for (uint32_t i = 0; ret >= 0 && perfring_format_set_id_at(formats, i, &id, &index); i++)
		ret = perfring_file_writer_add_id(writer, before + index, id);
	return ret < 0 ? ret : 0;
}

static int write_whole(struct perfring_file_writer *writer, uint32_t file, const struct iovec *pieces, int count)
{
	return writer->is_foreign ? perfring__file_swap_write(&writer->files[file], writer->formats, &writer->swapped,
							      pieces, count)
				  : perfring__file_compress_write(&writer->files[file], pieces, count);
}

/* A failed write drops the batch. */
int perfring__file_batch_write(struct perfring_file_writer *writer)
{
	struct iovec piece = {.iov_base = writer->batch.bytes, .iov_len = writer->batch.used};

	writer->batch.used = 0;
	return piece.iov_len ? write_whole(writer, 0, &piece, 1) : 0;
}

/* Writes one record of a type from 64 up, and the bytes after it, into the first file; never compressed. */
static int put_perf_pieces(struct perfring_file_writer *writer, uint32_t type, const void *body, size_t size,
			   const struct iovec *after, int count)
{
	union {
		struct perf_event_header header;
		unsigned char bytes[65536];
	} record, swapped;
	struct iovec pieces[1 + PIECES_MAX];
	int error;

	if (size > sizeof(record) - sizeof(record.header) - 1)
		return -E2BIG;
	error = perfring__file_batch_write(writer);
	if (error)
		return error;
	memset(&record.header, 0, sizeof(record.header));
	record.header.type = type;
	record.header.size = (uint16_t)(sizeof(record.header) + size);
	if (size)
		memcpy(record.bytes + sizeof(record.header), body, size);
	pieces[0].iov_base = record.bytes;
	pieces[0].iov_len = record.header.size;
	if (count)
		memcpy(pieces + 1, after, (size_t)count * sizeof(*after));
	if (writer->is_foreign) {
		perfring_record_to_foreign(NULL, &record.header, swapped.bytes, sizeof(swapped), NULL);
		pieces[0].iov_base = swapped.bytes;
	}
	return perfring__file_sink_append(&writer->files->sink, pieces, 1 + count);
}

static int put_perf_record(struct perfring_file_writer *writer, uint32_t type, const void *body, size_t size,
			   const void *after, size_t after_size)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)after, .iov_len = after_size};

	return put_perf_pieces(writer, type, body, size, &piece, after_size ? 1 : 0);
}

static int put_perf_buffer(struct perfring_file_writer *writer, uint32_t type, const struct perfring_byte_buffer *body)
{
	return body->error ? body->error : put_perf_record(writer, type, body->bytes, body->used, NULL, 0);
}

static int put_bytes(struct perfring_file_writer *writer, const void *bytes, size_t size)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};

	return perfring__file_sink_append(&writer->files->sink, &piece, 1);
}

static uint64_t file_u64(const struct perfring_file_writer *writer, uint64_t word)
{
	return writer->is_foreign ? __builtin_bswap64(word) : word;
}

/* Overwriting needs no new disk space; one call, so that the header is never half written. */
static int put_header(struct perfring_file_writer *writer)
{
	struct perfring_file_header header = writer->header;

	if (writer->is_foreign)
		perfring__swap_words(&header, sizeof(header) / 8);
	return perfring__file_sink_overwrite(&writer->files->sink, &header, sizeof(header));
}

static void put_attr(const struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer, uint32_t index,
		     bool is_foreign)
{
	const struct perfring_written_event *event = &writer->events[index];
	_Alignas(8) unsigned char attr[4096], swapped[4096];

	memset(attr, 0, sizeof(attr));
	memcpy(attr, event->attr, event->own_size < writer->attr_size ? event->own_size : writer->attr_size);
	memcpy(attr + PERFRING_ATTR_AT_size, &writer->attr_size, 4);
	if (is_foreign)
		perfring_attr_to_foreign((const struct perf_event_attr *)(void *)attr, swapped, sizeof(swapped));
	perfring__byte_buffer_put(buffer, is_foreign ? swapped : attr, writer->attr_size);
}

int perfring_file_writer_add_group(struct perfring_file_writer *writer, const char *name, uint32_t leader,
				   uint32_t members)
{
	struct perfring_written_group *group;
	char *copy;

	if (writer->is_finished || (writer->is_begun && writer->is_pipe) || !name || members < 2 || leader >= writer->event_count ||
	    members > writer->event_count - leader)
		return -EINVAL;
	if (perfring__os_array_grow(&writer->groups, writer->group_count, &writer->group_capacity, sizeof(*group)))
		return -ENOMEM;
	copy = strdup(*name ? name : "{anon_group}");
	if (!copy)
		return -ENOMEM;
	writer->groups[writer->group_count++] = (struct perfring_written_group){copy, leader, members};
	return 0;
}

static int put_group_desc(struct perfring_file_writer *writer)
{
	struct perfring_byte_buffer buffer = {0};

	perfring__byte_buffer_put_u32(&buffer, writer->group_count);
	for (uint32_t i = 0; i < writer->group_count; i++) {
		perfring__byte_buffer_put_string(&buffer, writer->groups[i].name);
		perfring__byte_buffer_put_u32(&buffer, writer->groups[i].leader);
		perfring__byte_buffer_put_u32(&buffer, writer->groups[i].members);
	}
	return perfring__file_put_buffer(writer, PERFRING_FEATURE_GROUP_DESC, &buffer);
}

static int put_event_desc(struct perfring_file_writer *writer)
{
	struct perfring_byte_buffer buffer = {0};
	uint32_t i;

	perfring__byte_buffer_put_u32(&buffer, writer->event_count);
	perfring__byte_buffer_put_u32(&buffer, writer->attr_size);
	for (i = 0; i < writer->event_count; i++) {
		const struct perfring_written_event *event = &writer->events[i];

		put_attr(writer, &buffer, i, false);
		perfring__byte_buffer_put_u32(&buffer, event->id_count);
		perfring__byte_buffer_put_string(&buffer, event->name);
		perfring__byte_buffer_put(&buffer, event->ids, event->id_count * sizeof(uint64_t));
	}
	return perfring__file_put_buffer(writer, PERFRING_FEATURE_EVENT_DESC, &buffer);
}

/* Puts the feature AUXTRACE: the number of its records, and their sections. */
static int put_auxtrace_index(struct perfring_file_writer *writer)
{
	struct perfring_byte_buffer buffer = {0};

	perfring__byte_buffer_put_u64(&buffer, writer->auxtrace.used / sizeof(struct perfring_section));
	perfring__byte_buffer_put(&buffer, writer->auxtrace.bytes, writer->auxtrace.used);
	return perfring__file_put_buffer(writer, PERFRING_FEATURE_AUXTRACE, &buffer);
}

/* Returns `available` of NRCPUS: the number of entries in other features. */
static uint32_t cpus_of(const struct perfring_file_writer *writer)
{
	uint32_t available = 0;

	if (writer->feature[PERFRING_FEATURE_NRCPUS].size >= sizeof(available))
		memcpy(&available, writer->feature[PERFRING_FEATURE_NRCPUS].payload, sizeof(available));
	return available;
}

/* Writes the record of 12 bytes, then the payload: every perf reads it, and hotspot reads no other.  A payload that is too
 * large is left out. */
static int put_tracing_data(struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer,
			    const unsigned char *payload, size_t size)
{
	uint64_t padded = (size + 7) / 8 * 8;
	uint32_t body = (uint32_t)padded;

	if (padded > UINT32_MAX)
		return 0;
	perfring__byte_buffer_put(buffer, payload, size);
	perfring__byte_buffer_put(buffer, "\0\0\0\0\0\0\0", (size_t)padded - size);
	if (buffer->error)
		return buffer->error;
	if (writer->is_foreign)
		perfring_feature_swap(PERFRING_FEATURE_TRACING_DATA, buffer->bytes, size, 0, true);
	return put_perf_record(writer, PERFRING_RECORD_HEADER_TRACING_DATA, &body, sizeof(body), buffer->bytes,
			       (size_t)padded);
}

/* The payload is records whose type is 0. */
static int put_build_id_records(struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer,
				const unsigned char *payload, size_t size)
{
	struct perf_event_header header;
	struct iovec piece;

	for (; size >= sizeof(header); payload += header.size, size -= header.size) {
		memcpy(&header, payload, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			break;
		header.type = PERFRING_RECORD_HEADER_BUILD_ID;
		perfring__byte_buffer_put(buffer, &header, sizeof(header));
		perfring__byte_buffer_put(buffer, payload + sizeof(header), header.size - sizeof(header));
	}
	piece = (struct iovec){.iov_base = buffer->bytes, .iov_len = buffer->used};
	return buffer->error ? buffer->error : perfring_file_writer_write(writer, &piece, 1);
}

/* Writes a feature as a record.  Left out: one that is too large for a record (EVENT_DESC: the events have names of their own),
 * and an empty one, which ends perf's reading of features. */
static int put_feature_record(struct perfring_file_writer *writer, uint32_t feature)
{
	const unsigned char *payload = writer->feature[feature].payload;
	size_t size = (size_t)writer->feature[feature].size;
	struct perfring_byte_buffer buffer = {0};
	int error = 0;

	if (feature == PERFRING_FEATURE_TRACING_DATA) {
		error = put_tracing_data(writer, &buffer, payload, size);
	} else if (feature == PERFRING_FEATURE_BUILD_ID) {
		error = put_build_id_records(writer, &buffer, payload, size);
	} else if (size && size <= 65535 - 16 - 8) { /* 16: header and feature number; 8 are spare */
		perfring__byte_buffer_put_u64(&buffer, feature);
		perfring__byte_buffer_put(&buffer, payload, size);
		if (writer->is_foreign && !buffer.error)
			perfring_feature_swap(feature, buffer.bytes + 8, size, cpus_of(writer), true);
		error = put_perf_buffer(writer, PERFRING_RECORD_HEADER_FEATURE, &buffer);
	}
	perfring__byte_buffer_close(&buffer);
	return error;
}

/* Whether perf cannot read the feature: it accepts these in its own byte order only, and fails for others, even empty ones. */
static bool is_unreadable(const struct perfring_file_writer *writer, uint32_t feature)
{
	return writer->is_foreign && (feature == PERFRING_FEATURE_BPF_PROG_INFO || feature == PERFRING_FEATURE_BPF_BTF);
}

/* A stream: a short header, then records about the events and the machine (docs/abi.md 11.4). */
static int begin_stream(struct perfring_file_writer *writer)
{
	uint64_t header[2];
	struct perfring_byte_buffer buffer = {0};
	uint32_t i;
	int error;

	memcpy(header, PERFRING_FILE_MAGIC, 8);
	header[1] = sizeof(header);
	if (writer->is_foreign)
		perfring__swap_words(header, 2);
	error = put_bytes(writer, header, sizeof(header));
	for (i = 0; i < writer->event_count && !error; i++) {
		const struct perfring_written_event *event = &writer->events[i];

		buffer.used = 0;
		put_attr(writer, &buffer, i, false);
		perfring__byte_buffer_put(&buffer, event->ids, event->id_count * sizeof(uint64_t));
		/* as many ids as the record can hold: the event's name needs the first only */
		if (buffer.used > 65520)
			buffer.used = 65520 - (65520 - writer->attr_size) % 8;
		error = put_perf_buffer(writer, PERFRING_RECORD_HEADER_ATTR, &buffer);
		if (error || !event->id_count)
			continue;
		buffer.used = 0;
		perfring__byte_buffer_put_u64(&buffer, PERFRING_EVENT_UPDATE_NAME);
		perfring__byte_buffer_put_u64(&buffer, event->ids[0]);
		perfring__byte_buffer_put(&buffer, event->name, strlen(event->name) + 1);
		perfring__byte_buffer_put(&buffer, "\0\0\0\0\0\0\0", (8 - buffer.used % 8) % 8);
		error = put_perf_buffer(writer, PERFRING_RECORD_EVENT_UPDATE, &buffer);
	}
	perfring__byte_buffer_close(&buffer);
	if (!error)
		error = put_event_desc(writer);
	if (!error && writer->group_count)
		error = put_group_desc(writer);
	for (i = 1; i < PERFRING_FEATURE_BITS && !error; i++) /* 0 is no feature */
		if (writer->feature[i].payload && i != PERFRING_FEATURE_BUILD_ID && !is_unreadable(writer, i))
			error = put_feature_record(writer, i);
	writer->is_begun = !error;
	return error;
}

int perfring_file_writer_begin(struct perfring_file_writer *writer)
{
	struct perfring_file_header *header = &writer->header;
	struct perfring_byte_buffer buffer = {0};
	uint64_t ids_at = sizeof(*header);
	uint32_t i;
	int error;

	if (writer->is_begun || !writer->event_count)
		return -EINVAL;
	for (i = 0; i < writer->event_count; i++) {
		uint32_t size = perfring_attr_size(writer->events[i].attr);

		if (size > writer->attr_size)
			writer->attr_size = size;
	}
	/* perf up to 6.1 expects a stream's ids after an attr of the size that it knows (docs/abi.md 11.4) */
	if (writer->is_pipe && writer->attr_size < PERFRING_ATTR_SIZE_7)
		writer->attr_size = PERFRING_ATTR_SIZE_7;
	for (i = 0; i < writer->file_count; i++)
		writer->files[i].is_foreign = writer->is_foreign;
	if (writer->is_pipe)
		return begin_stream(writer);
	memcpy(header->magic, PERFRING_FILE_MAGIC, sizeof(header->magic));
	header->size = sizeof(*header);
	header->attr_size = writer->attr_size + sizeof(struct perfring_section);
	perfring__byte_buffer_put(&buffer, header, sizeof(*header));
	for (i = 0; i < writer->event_count; i++)
		for (uint32_t id = 0; id < writer->events[i].id_count; id++)
			perfring__byte_buffer_put_u64(&buffer, file_u64(writer, writer->events[i].ids[id]));
	header->attrs.offset = buffer.used;
	for (i = 0; i < writer->event_count; i++) {
		uint64_t size = writer->events[i].id_count * sizeof(uint64_t);

		put_attr(writer, &buffer, i, writer->is_foreign);
		perfring__byte_buffer_put_u64(&buffer, file_u64(writer, ids_at));
		perfring__byte_buffer_put_u64(&buffer, file_u64(writer, size));
		ids_at += size;
	}
	header->attrs.size = buffer.used - header->attrs.offset;
	header->data.offset = buffer.used;
	error = buffer.error;
	if (!error) {
		memcpy(buffer.bytes, header, sizeof(*header));
		if (writer->is_foreign)
			perfring__swap_words(buffer.bytes, sizeof(*header) / 8);
		for (i = 0; i < writer->file_count && !error; i++)
			error = perfring__file_sink_clear(&writer->files[i].sink);
	}
	/* As perf: `data` is not compressed, so that it can be opened after its writer was killed. */
	if (writer->file_count > 1) {
		perfring__deflater_close(writer->files->deflater);
		writer->files->deflater = NULL;
	}
	for (i = 1; i < writer->file_count && writer->level && !error; i++)
		if (!writer->files[i].deflater)
			error = perfring__deflater_open(&writer->files[i].deflater, writer->level,
							writer->file_count - 1);
	if (!error)
		error = put_bytes(writer, buffer.bytes, buffer.used);
	/* perf needs this feature to decompress, and a killed writer's file has no other */
	if (!error && writer->files->deflater)
		error = put_feature_record(writer, PERFRING_FEATURE_COMPRESSED);
	perfring__byte_buffer_close(&buffer);
	writer->is_begun = !error;
	return error;
}

int perfring_file_writer_write_to(struct perfring_file_writer *writer, uint32_t file, const struct iovec *pieces,
				  int count)
{
	int error;

	if (!writer->is_begun || writer->is_finished || file >= writer->file_count || count < 0 || count > IOV_MAX)
		return -EINVAL;
	error = file ? 0 : perfring__file_batch_write(writer);
	return error || !count ? error : write_whole(writer, file, pieces, count);
}

int perfring_file_writer_write(struct perfring_file_writer *writer, const struct iovec *pieces, int count)
{
	return perfring_file_writer_write_to(writer, 0, pieces, count);
}

/* Makes space in the batch for one record of any size: writes the batch first if the record may not fit. */
static int batch_space(struct perfring_file_writer *writer)
{
	struct perfring_byte_buffer *batch = &writer->batch;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	if (!batch->bytes) {
		batch->bytes = malloc(BATCH_SIZE);
		if (!batch->bytes)
			return -ENOMEM;
		batch->capacity = BATCH_SIZE;
	}
	return batch->capacity - batch->used < RECORD_MAX ? perfring__file_batch_write(writer) : 0;
}

int perfring__file_batch(struct perfring_file_writer *writer, uint32_t index, const struct perfring_record *record)
{
	const struct perfring_format *format = perfring_format_set_at(writer->formats, index);
	struct perfring_byte_buffer *batch = &writer->batch;
	int error = format ? batch_space(writer) : -EINVAL;
	int64_t size;

	if (error)
		return error;
	size = perfring_record_encode(format, record, batch->bytes + batch->used, batch->capacity - batch->used);
	if (size < 0)
		return (int)size;
	batch->used += (size_t)size;
	return 0;
}

int perfring_file_writer_put(struct perfring_file_writer *writer, uint32_t index, const struct perfring_record *record)
{
	int error = perfring__file_batch(writer, index, record);

	return error ? error : perfring__file_batch_write(writer);
}

int perfring_file_writer_put_item(struct perfring_file_writer *writer, const struct perfring_item *item)
{
	struct perfring_byte_buffer *batch = &writer->batch;
	uint16_t size = item->record->size;
	int error = size < sizeof(*item->record) ? -EINVAL : batch_space(writer);

	if (error)
		return error;
	memcpy(batch->bytes + batch->used, item->record, size);
	batch->used += size;
	return 0;
}

int perfring_file_writer_put_auxtrace(struct perfring_file_writer *writer, const struct perf_event_header *record,
				      const struct iovec *pieces, int count)
{
	struct perfring_section place = {.size = record->size};
	uint64_t own, size = 0;
	int error;

	if (!writer->is_begun || writer->is_finished || record->type != PERFRING_RECORD_AUXTRACE ||
	    record->size < sizeof(*record) + sizeof(own) || count < 0 || count > PIECES_MAX)
		return -EINVAL;
	memcpy(&own, record + 1, sizeof(own));
	for (int i = 0; i < count; i++)
		size += pieces[i].iov_len;
	if (own != size || size > SIZE_MAX / 2)
		return -EINVAL;
	error = perfring__file_batch_write(writer); /* first, so that sink.end is the record's offset */
	place.offset = writer->files->sink.end;
	if (!error)
		error = put_perf_pieces(writer, record->type, record + 1, record->size - sizeof(*record), pieces,
					count);
	if (!error)
		perfring__byte_buffer_put(&writer->auxtrace, &place, sizeof(place));
	return error ? error : writer->auxtrace.error;
}

int perfring_file_writer_end_round(struct perfring_file_writer *writer)
{
	uint64_t size;
	int error;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	error = perfring__file_batch_write(writer);
	/* As perf: no rounds in directories, where one file's would end those of the others. */
	if (!error && writer->file_count == 1)
		error = put_perf_record(writer, PERFRING_RECORD_FINISHED_ROUND, NULL, 0, NULL, 0);
	size = writer->files->sink.end - writer->header.data.offset;
	if (error || writer->is_pipe || size == writer->header.data.size)
		return error;
	writer->header.data.size = size;
	return put_header(writer);
}

int perfring_file_writer_put_feature(struct perfring_file_writer *writer, uint32_t feature, const void *payload,
				     uint64_t size)
{
	/* Of a begun stream the record is due now; BUILD_ID is written by finish, and EVENT_DESC is the writer's own. */
	bool is_due = writer->is_begun && writer->is_pipe && feature != PERFRING_FEATURE_BUILD_ID &&
		      feature != PERFRING_FEATURE_EVENT_DESC && !is_unreadable(writer, feature);
	struct perfring_written_feature *kept;
	void *copy;

	if (!feature || feature >= PERFRING_FEATURE_BITS || size >= SIZE_MAX || writer->is_finished)
		return -EINVAL;
	kept = &writer->feature[feature];
	if (is_due && kept->payload && kept->size == size && size && !memcmp(kept->payload, payload, (size_t)size))
		return 0; /* the stream has it already */
	copy = malloc((size_t)size + 1);
	if (!copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, payload, (size_t)size);
	free(kept->payload);
	kept->payload = copy;
	kept->size = size;
	if (feature == PERFRING_FEATURE_BUILD_ID)
		writer->build_ids.used = 0;
	return is_due ? put_feature_record(writer, feature) : 0;
}

int perfring__file_put_buffer(struct perfring_file_writer *writer, uint32_t feature,
			      struct perfring_byte_buffer *buffer)
{
	int error = buffer->error ? buffer->error
				  : perfring_file_writer_put_feature(writer, feature, buffer->bytes, buffer->used);

	perfring__byte_buffer_close(buffer);
	return error;
}

int perfring_file_writer_put_string(struct perfring_file_writer *writer, uint32_t feature, const char *text)
{
	struct perfring_byte_buffer buffer = {0};

	perfring__byte_buffer_put_string(&buffer, text);
	return perfring__file_put_buffer(writer, feature, &buffer);
}

int perfring_file_writer_put_times(struct perfring_file_writer *writer, uint64_t first, uint64_t last)
{
	uint64_t times[2] = {first, last};

	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_SAMPLE_TIME, times, sizeof(times));
}

/* The index and the payloads, by one write. */
static int put_features(struct perfring_file_writer *writer)
{
	struct iovec pieces[PERFRING_FEATURE_BITS + 1];
	struct perfring_section index[PERFRING_FEATURE_BITS];
	uint64_t bitmap[4] = {0}, at = writer->files->sink.end;
	size_t nr = 0, i;
	uint32_t bit;
	int error;

	/* CPU_TOPOLOGY first: its swap needs NRCPUS, which is still native here. */
	if (writer->is_foreign && writer->feature[PERFRING_FEATURE_CPU_TOPOLOGY].payload)
		perfring_feature_swap(PERFRING_FEATURE_CPU_TOPOLOGY,
				      writer->feature[PERFRING_FEATURE_CPU_TOPOLOGY].payload,
				      writer->feature[PERFRING_FEATURE_CPU_TOPOLOGY].size, cpus_of(writer), true);
	for (bit = 0; bit < PERFRING_FEATURE_BITS; bit++) {
		if (!writer->feature[bit].payload || is_unreadable(writer, bit))
			continue;
		if (writer->is_foreign && bit != PERFRING_FEATURE_CPU_TOPOLOGY)
			perfring_feature_swap(bit, writer->feature[bit].payload, writer->feature[bit].size, 0, true);
		bitmap[bit / 64] |= UINT64_C(1) << bit % 64;
		index[nr].size = writer->feature[bit].size;
		nr++;
		pieces[nr].iov_base = writer->feature[bit].payload;
		pieces[nr].iov_len = (size_t)writer->feature[bit].size;
	}
	at += nr * sizeof(index[0]);
	for (i = 0; i < nr; i++) {
		index[i].offset = at;
		at += index[i].size;
	}
	if (writer->is_foreign)
		perfring__swap_words(index, 2 * nr);
	pieces[0].iov_base = index;
	pieces[0].iov_len = nr * sizeof(index[0]);
	error = perfring__file_sink_append(&writer->files->sink, pieces, (int)nr + 1);
	if (!error)
		memcpy(writer->header.features, bitmap, sizeof(bitmap));
	return error;
}

int perfring_file_writer_finish(struct perfring_file_writer *writer)
{
	uint64_t version = 1; /* of directories */
	int error, header_error;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	error = perfring__file_batch_write(writer);
	if (!error && writer->build_ids.used)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_BUILD_ID, writer->build_ids.bytes,
							 writer->build_ids.used);
	if (writer->is_pipe) {
		if (!error && writer->feature[PERFRING_FEATURE_BUILD_ID].payload)
			error = put_feature_record(writer, PERFRING_FEATURE_BUILD_ID);
		writer->is_finished = true;
		return error;
	}
	/* to perf, a data size of 0 means that the writer was killed */
	if (!error && writer->files->sink.end == writer->header.data.offset)
		error = put_perf_record(writer, PERFRING_RECORD_FINISHED_ROUND, NULL, 0, NULL, 0);
	writer->header.data.size = writer->files->sink.end - writer->header.data.offset;
	if (!error && writer->level)
		error = put_ratio(writer);
	if (!error && writer->file_count > 1)
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_DIR_FORMAT, &version,
							 sizeof(version));
	if (!error && writer->auxtrace.used)
		error = put_auxtrace_index(writer);
	if (!error)
		error = put_event_desc(writer);
	if (!error && writer->group_count)
		error = put_group_desc(writer);
	/* By HOSTNAME perf finds the word order of another machine's bitmap.  "(none)": a host without a name. */
	if (!error && writer->is_foreign && !writer->feature[PERFRING_FEATURE_HOSTNAME].payload)
		error = perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "(none)");
	if (!error)
		error = put_features(writer);
	header_error = put_header(writer);
	writer->is_finished = true;
	return header_error ? header_error : error;
}

uint64_t perfring_file_writer_size(const struct perfring_file_writer *writer)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < writer->file_count; i++)
		size += writer->files[i].sink.end;
	return size;
}
