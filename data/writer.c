/* writer.c - perf.data files, written (ABI.md 11).
 *
 * Everything is written at a place of our own counting, so a write that failed half-way is cut off and the next one
 * begins where the last whole one ended.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "writer.h"

#define BATCH_SIZE (1u << 18)
#define MOST_RECORD 65528

int perfring_data_create(struct perfring_data_writer **writer, int fd)
{
	struct perfring_data_writer *created;
	int flags = fcntl(fd, F_GETFL);

	*writer = NULL;
	if (flags < 0)
		return -errno;
	/* pwrite would append */
	if (flags & O_APPEND)
		return -EINVAL;
	if (lseek(fd, 0, SEEK_CUR) < 0)
		return -errno;
	created = calloc(1, sizeof(*created));
	if (!created)
		return -ENOMEM;
	if (perfring_format_set_open(&created->formats)) {
		free(created);
		return -ENOMEM;
	}
	created->fd = fd;
	*writer = created;
	return 0;
}

void perfring_data_writer_close(struct perfring_data_writer *writer)
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
	for (i = 0; i < PERFRING_DATA_FEATURES; i++)
		free(writer->feature[i].payload);
	perfring_pile_close(&writer->batch);
	perfring_format_set_close(writer->formats);
	free(writer);
}

int perfring_data_add_event(struct perfring_data_writer *writer, const struct perf_event_attr *attr, const char *name)
{
	uint32_t size = attr->size ? attr->size : PERF_ATTR_SIZE_VER0;
	struct perfring_written_event *event;
	int index;

	if (writer->is_begun || !name || size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (writer->event_count == writer->event_room) {
		uint32_t room = writer->event_room ? writer->event_room * 2 : 4;

		event = realloc(writer->events, room * sizeof(*event));
		if (!event)
			return -ENOMEM;
		writer->events = event;
		writer->event_room = room;
	}
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
	writer->event_count++;
	return index;
}

int perfring_data_add_id(struct perfring_data_writer *writer, uint32_t index, uint64_t id)
{
	struct perfring_written_event *event;
	int error;

	if (writer->is_begun || index >= writer->event_count)
		return -EINVAL;
	event = &writer->events[index];
	if (event->id_count == event->id_room) {
		uint32_t room = event->id_room ? event->id_room * 2 : 4;
		uint64_t *ids = realloc(event->ids, room * sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		event->ids = ids;
		event->id_room = room;
	}
	error = perfring_format_set_put(writer->formats, id, index);
	if (!error)
		event->ids[event->id_count++] = id;
	return error;
}

/* Writes at the end and moves it, or cuts off what was written of it. */
static int put(struct perfring_data_writer *writer, const struct iovec *pieces, int count)
{
	uint64_t at = writer->at, skip;
	ssize_t done;
	int i, error = 0;

	do
		done = pwritev(writer->fd, pieces, count, (off_t)at);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		error = -errno;
	/* seldom: the rest of a write that came out short, piece by piece */
	skip = done < 0 ? 0 : (uint64_t)done;
	for (i = 0; i < count && !error; i++) {
		uint64_t left = pieces[i].iov_len;
		const char *bytes = pieces[i].iov_base;

		at += pieces[i].iov_len;
		if (skip >= left) {
			skip -= left;
			continue;
		}
		bytes += skip;
		left -= skip;
		skip = 0;
		while (left) {
			done = pwrite(writer->fd, bytes, (size_t)left, (off_t)(at - left));
			if (done < 0 && errno == EINTR)
				continue;
			if (done <= 0) {
				error = done ? -errno : -EIO;
				break;
			}
			bytes += done;
			left -= (uint64_t)done;
		}
	}
	if (!error)
		writer->at = at;
	else if (ftruncate(writer->fd, (off_t)writer->at))
		/* no file, or a disk that is failing: nothing more can be done, and the write's own error tells more */
		return error;
	return error;
}

static int put_bytes(struct perfring_data_writer *writer, const void *bytes, size_t size)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};

	return put(writer, &piece, 1);
}

/* The header is written over itself, so a full disk has room for it; and in one piece, so a kill falls before or after
 * it. */
static int put_header(struct perfring_data_writer *writer)
{
	ssize_t done;

	do
		done = pwrite(writer->fd, &writer->header, sizeof(writer->header), 0);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	return done == (ssize_t)sizeof(writer->header) ? 0 : -EIO;
}

static void put_attr(const struct perfring_data_writer *writer, struct perfring_pile *pile, uint32_t index)
{
	const struct perfring_written_event *event = &writer->events[index];
	unsigned char attr[4096];

	memset(attr, 0, sizeof(attr));
	memcpy(attr, event->attr, event->own_size < writer->attr_size ? event->own_size : writer->attr_size);
	memcpy(attr + offsetof(struct perf_event_attr, size), &writer->attr_size, 4);
	perfring_pile_put(pile, attr, writer->attr_size);
}

int perfring_data_begin(struct perfring_data_writer *writer)
{
	struct perfring_file_header *header = &writer->header;
	struct perfring_pile pile = {0};
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
	memcpy(header->magic, PERFRING_FILE_MAGIC, sizeof(header->magic));
	header->size = sizeof(*header);
	header->attr_size = writer->attr_size + sizeof(struct perfring_section);
	perfring_pile_put(&pile, header, sizeof(*header));
	for (i = 0; i < writer->event_count; i++)
		perfring_pile_put(&pile, writer->events[i].ids, writer->events[i].id_count * sizeof(uint64_t));
	header->attrs.offset = pile.used;
	for (i = 0; i < writer->event_count; i++) {
		uint64_t size = writer->events[i].id_count * sizeof(uint64_t);

		put_attr(writer, &pile, i);
		perfring_pile_put_word(&pile, ids_at);
		perfring_pile_put_word(&pile, size);
		ids_at += size;
	}
	header->attrs.size = pile.used - header->attrs.offset;
	header->data.offset = pile.used;
	error = pile.error;
	if (!error) {
		memcpy(pile.bytes, header, sizeof(*header));
		/* what is left of an older file would read as records; a device has nothing to cut */
		if (ftruncate(writer->fd, 0) && errno != EINVAL)
			error = -errno;
	}
	if (!error)
		error = put_bytes(writer, pile.bytes, pile.used);
	perfring_pile_close(&pile);
	writer->is_begun = !error;
	return error;
}

int perfring_data_write(struct perfring_data_writer *writer, const struct iovec *pieces, int count)
{
	if (!writer->is_begun || writer->is_finished || count < 0 || count > IOV_MAX)
		return -EINVAL;
	return count ? put(writer, pieces, count) : 0;
}

int perfring_data_batch_write(struct perfring_data_writer *writer)
{
	int error = writer->batch.used ? put_bytes(writer, writer->batch.bytes, writer->batch.used) : 0;

	writer->batch.used = 0;
	return error;
}

int perfring_data_batch(struct perfring_data_writer *writer, uint32_t index, const struct perfring_record *record)
{
	const struct perfring_format *format = perfring_format_set_at(writer->formats, index);
	struct perfring_pile *batch = &writer->batch;
	int64_t size;
	int error = 0;

	if (!writer->is_begun || writer->is_finished || !format)
		return -EINVAL;
	if (!batch->bytes) {
		batch->bytes = malloc(BATCH_SIZE);
		if (!batch->bytes)
			return -ENOMEM;
		batch->room = BATCH_SIZE;
	}
	if (batch->room - batch->used < MOST_RECORD)
		error = perfring_data_batch_write(writer);
	if (error)
		return error;
	size = perfring_record_encode(format, record, batch->bytes + batch->used, batch->room - batch->used);
	if (size < 0)
		return (int)size;
	batch->used += (size_t)size;
	return 0;
}

int perfring_data_put(struct perfring_data_writer *writer, uint32_t index, const struct perfring_record *record)
{
	int error = perfring_data_batch(writer, index, record);

	return error ? error : perfring_data_batch_write(writer);
}

int perfring_data_round(struct perfring_data_writer *writer)
{
	struct perf_event_header round = {.type = PERFRING_RECORD_FINISHED_ROUND, .size = sizeof(round)};
	struct iovec piece = {.iov_base = &round, .iov_len = sizeof(round)};
	int error = perfring_data_write(writer, &piece, 1);

	if (error)
		return error;
	writer->header.data.size = writer->at - writer->header.data.offset;
	return put_header(writer);
}

int perfring_data_put_feature(struct perfring_data_writer *writer, uint32_t feature, const void *payload, uint64_t size)
{
	void *copy;

	if (!feature || feature >= PERFRING_DATA_FEATURES || size >= SIZE_MAX || writer->is_finished)
		return -EINVAL;
	copy = malloc((size_t)size + 1);
	if (!copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, payload, (size_t)size);
	free(writer->feature[feature].payload);
	writer->feature[feature].payload = copy;
	writer->feature[feature].size = size;
	return 0;
}

int perfring_data_put_string(struct perfring_data_writer *writer, uint32_t feature, const char *text)
{
	struct perfring_pile pile = {0};
	int error;

	perfring_pile_put_string(&pile, text);
	error = pile.error ? pile.error : perfring_data_put_feature(writer, feature, pile.bytes, pile.used);
	perfring_pile_close(&pile);
	return error;
}

int perfring_data_put_times(struct perfring_data_writer *writer, uint64_t first, uint64_t last)
{
	uint64_t times[2] = {first, last};

	return perfring_data_put_feature(writer, PERFRING_DATA_SAMPLE_TIME, times, sizeof(times));
}

static int put_event_desc(struct perfring_data_writer *writer)
{
	struct perfring_pile pile = {0};
	uint32_t i;
	int error;

	perfring_pile_put_half(&pile, writer->event_count);
	perfring_pile_put_half(&pile, writer->attr_size);
	for (i = 0; i < writer->event_count; i++) {
		const struct perfring_written_event *event = &writer->events[i];

		put_attr(writer, &pile, i);
		perfring_pile_put_half(&pile, event->id_count);
		perfring_pile_put_string(&pile, event->name);
		perfring_pile_put(&pile, event->ids, event->id_count * sizeof(uint64_t));
	}
	error = pile.error ? pile.error
			   : perfring_data_put_feature(writer, PERFRING_DATA_EVENT_DESC, pile.bytes, pile.used);
	perfring_pile_close(&pile);
	return error;
}

/* The index, then the payloads, as one write: all or nothing. */
static int put_features(struct perfring_data_writer *writer)
{
	struct iovec pieces[PERFRING_DATA_FEATURES + 1];
	struct perfring_section index[PERFRING_DATA_FEATURES];
	uint64_t bitmap[4] = {0}, at = writer->at;
	size_t nr = 0, i;
	uint32_t bit;
	int error;

	for (bit = 0; bit < PERFRING_DATA_FEATURES; bit++) {
		if (!writer->feature[bit].payload)
			continue;
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
	pieces[0].iov_base = index;
	pieces[0].iov_len = nr * sizeof(index[0]);
	error = put(writer, pieces, (int)nr + 1);
	if (!error)
		memcpy(writer->header.features, bitmap, sizeof(bitmap));
	return error;
}

int perfring_data_finish(struct perfring_data_writer *writer)
{
	int error, header_error;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	/* perf takes a data size of 0 for a killed writer's */
	error = writer->at == writer->header.data.offset ? perfring_data_round(writer) : 0;
	writer->header.data.size = writer->at - writer->header.data.offset;
	if (!error)
		error = put_event_desc(writer);
	if (!error)
		error = put_features(writer);
	header_error = put_header(writer);
	writer->is_finished = !header_error;
	return header_error ? header_error : error;
}

uint64_t perfring_data_size(const struct perfring_data_writer *writer)
{
	return writer->at;
}
