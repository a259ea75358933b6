/* metadata.c - events, names and features, from the header or from the records of a pipe (docs/abi.md 11.4).
 *
 * Called by file_header.c at open and by file_reader.c for each record of a pipe that describes it; and the questions of file.h
 * about events and features.  Payloads are foreign, and walked by their layouts (feature.def).  Memory is bounded by the bytes
 * that the file has.
 */
#include <stdlib.h>

#include "file_private.h"
#include "sample/attr.h"

/* ---- events ---- */

int perfring__file_add_attr(struct perfring_file *file, const struct perf_event_attr *attr, uint32_t space, uint64_t at)
{
	struct perfring_file_event *event;
	int index;

	if (attr->size < PERFRING_ATTR_MIN || attr->size > space)
		return perfring__fault_at(&file->fault, at + PERFRING_ATTR_AT_size, "attr.size");
	if (perfring__os_array_grow(&file->events, file->event_count, &file->event_capacity, sizeof(*event)))
		return -ENOMEM;
	index = perfring_format_set_add(file->formats, attr);
	if (index < 0)
		return index;
	event = &file->events[file->event_count++];
	memset(event, 0, sizeof(*event));
	event->attr = attr;
	perfring__file_default_name(attr, event->default_name, sizeof(event->default_name));
	return index;
}

int perfring__file_put_ids(struct perfring_file *file, const void *ids, uint64_t count, uint32_t index, uint64_t at)
{
	struct perfring_file_event *event = &file->events[index];
	uint64_t i, id;
	int error;

	for (i = 0; i < count; i++) {
		if (perfring__os_array_grow(&event->ids, event->id_count, &event->id_capacity, sizeof(id)))
			return -ENOMEM;
		memcpy(&id, (const unsigned char *)ids + i * 8, 8);
		error = perfring_format_set_put(file->formats, id, index);
		/* old kernels leave 0: every event may have it */
		if (error == -EEXIST && id)
			return perfring__fault_at(&file->fault, at + i * 8, "id of two events");
		if (error && error != -EEXIST && id)
			return error;
		event->ids[event->id_count++] = id;
	}
	return 0;
}

int perfring_file_event_id(const struct perfring_file *file, uint32_t index, uint32_t i, uint64_t *id)
{
	if (index >= file->event_count || i >= file->events[index].id_count)
		return 0;
	*id = file->events[index].ids[i];
	return 1;
}

static int parse_attr(struct perfring_file *file, const struct perf_event_header *record, int64_t at)
{
	uint32_t space = record->size - (uint32_t)sizeof(*record), size;
	const unsigned char *body = (const unsigned char *)(record + 1);
	struct perf_event_attr *attr;
	size_t bytes;
	int index;

	/* a file's header has them */
	if (!file->is_pipe)
		return 0;
	if (space < PERFRING_ATTR_MIN)
		return perfring__fault_at(&file->fault, (uint64_t)at, "attr shorter than 64 bytes");
	size = perfring__attr_own_size(body);
	if (size < PERFRING_ATTR_MIN || size > space)
		return perfring__fault_at(&file->fault, (uint64_t)at + 12, "attr.size");
	file->attr_bytes += space;
	if (file->event_count >= PERFRING_MAX_EVENTS ||
	    file->attr_bytes > PERFRING_MAX_ATTR_BYTES + PERFRING_MAX_ID_BYTES)
		return perfring__fault_at(&file->fault, (uint64_t)at, "too many attrs");
	bytes = size > sizeof(*attr) ? size : sizeof(*attr);
	attr = calloc(1, bytes);
	if (!attr)
		return -ENOMEM;
	memcpy(attr, body, size);
	attr->size = size;
	index = perfring__file_add_attr(file, attr, size, (uint64_t)at + sizeof(*record));
	if (index < 0) {
		free(attr);
		return index;
	}
	file->events[index].own_attr = attr;
	return perfring__file_put_ids(file, body + size, (space - size) / 8, (uint32_t)index,
				      (uint64_t)at + sizeof(*record) + size);
}

static int parse_event_update(struct perfring_file *file, const struct perf_event_header *record)
{
	const unsigned char *body = (const unsigned char *)(record + 1);
	const struct perfring_format *format;
	struct perfring_file_event *event;
	uint64_t words[2];
	size_t length;
	char *name;

	if (record->size < sizeof(*record) + sizeof(words) + 1)
		return 0;
	memcpy(words, body, sizeof(words));
	format = words[0] == PERFRING_EVENT_UPDATE_NAME ? perfring_format_set_find(file->formats, words[1]) : NULL;
	if (!format || format->index >= file->event_count)
		return 0;
	length = record->size - sizeof(*record) - sizeof(words);
	name = strndup((const char *)body + sizeof(words), length);
	if (!name)
		return -ENOMEM;
	event = &file->events[format->index];
	free(event->own_name);
	event->own_name = name;
	event->name = name;
	return 0;
}

const char *perfring_file_event_name(const struct perfring_file *file, uint32_t index)
{
	if (index >= file->event_count)
		return NULL;
	return file->events[index].name ? file->events[index].name : file->events[index].default_name;
}

const struct perf_event_attr *perfring_file_attr(const struct perfring_file *file, uint32_t index)
{
	return index < file->event_count ? file->events[index].attr : NULL;
}

/* ---- features ---- */

static void swap_feature(const struct perfring_file *file, uint32_t feature)
{
	const void *nrcpus = NULL;
	uint64_t size = 0;
	uint32_t available = 0;

	if (!file->is_foreign || !file->features->feature[feature].payload)
		return;
	if (feature == PERFRING_FEATURE_CPU_TOPOLOGY)
		nrcpus = perfring_file_feature(file, PERFRING_FEATURE_NRCPUS, &size);
	if (nrcpus && size >= sizeof(available))
		memcpy(&available, nrcpus, sizeof(available));
	perfring_feature_swap(feature, file->features->feature[feature].payload,
			      file->features->feature[feature].section.size, available, false);
}

const void *perfring_file_feature(const struct perfring_file *file, uint32_t feature, uint64_t *size)
{
	struct perfring_file_features *features = file->features;
	size_t bytes;
	int64_t got;
	char *payload;

	if (feature >= PERFRING_FEATURE_BITS || !features->feature[feature].is_there)
		return NULL;
	bytes = (size_t)features->feature[feature].section.size;
	payload = features->feature[feature].payload;
	if (!payload) {
		payload = malloc(bytes + 1);
		got = payload ? perfring__os_file_pread(file->streams[0].fd, payload, bytes,
							features->feature[feature].section.offset)
			      : -ENOMEM;
		if (got != (int64_t)bytes) {
			features->error = got < 0 ? (int)got : -EBADMSG;
			free(payload);
			return NULL;
		}
		payload[bytes] = 0;
		features->feature[feature].payload = payload;
		swap_feature(file, feature);
	}
	if (size)
		*size = bytes;
	return payload;
}

const char *perfring_file_string(const struct perfring_file *file, uint32_t feature)
{
	uint64_t size = 0;
	const char *payload = perfring_file_feature(file, feature, &size);
	uint32_t length;

	if (!payload || size < sizeof(length))
		return NULL;
	memcpy(&length, payload, sizeof(length));
	if (length > size - sizeof(length) || !memchr(payload + sizeof(length), 0, length))
		return NULL;
	return payload + sizeof(length);
}

/* EVENT_DESC has the events again, in the same order, with their names. */
static void read_names(struct perfring_file *file)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0;
	const void *payload = perfring_file_feature(file, PERFRING_FEATURE_EVENT_DESC, &size);
	uint32_t event = 0;

	if (!payload)
		return;
	perfring_feature_open(&walk, PERFRING_FEATURE_EVENT_DESC, payload, size, 0);
	while (event < file->event_count && perfring_layout_next(&walk, &member) == 1) {
		if (member.kind != PERFRING_LAYOUT_STRING)
			continue;
		if (member.size)
			file->events[event].name = member.bytes;
		event++;
	}
}

/* The names of registers are those of the file's machine. */
static void read_arch(struct perfring_file *file)
{
	const char *machine = perfring_file_string(file, PERFRING_FEATURE_ARCH);

	if (machine)
		perfring_format_set_arch(file->formats, perfring_arch_of(machine));
}

void perfring__file_features_known(struct perfring_file *file)
{
	read_names(file);
	read_arch(file);
	perfring__file_name_tracepoints(file);
}

/* Adds bytes to a feature that comes in records. */
static int append(struct perfring_file *file, uint32_t feature, const void *bytes, size_t size)
{
	struct perfring_file_features *features = file->features;
	size_t old = features->feature[feature].payload ? (size_t)features->feature[feature].section.size : 0;
	char *payload;

	file->feature_bytes += size;
	if (file->feature_bytes > PERFRING_MAX_FEATURE_BYTES)
		return 0;
	payload = realloc(features->feature[feature].payload, old + size + 1);
	if (!payload)
		return -ENOMEM;
	memcpy(payload + old, bytes, size);
	payload[old + size] = 0;
	features->feature[feature].payload = payload;
	features->feature[feature].section.size = old + size;
	features->feature[feature].is_there = true;
	return 0;
}

static int parse_feature(struct perfring_file *file, const struct perf_event_header *record)
{
	const unsigned char *body = (const unsigned char *)(record + 1);
	uint64_t feature;
	size_t size;
	int error;

	if (record->size < sizeof(*record) + sizeof(feature))
		return 0;
	memcpy(&feature, body, sizeof(feature));
	size = record->size - sizeof(*record) - sizeof(feature);
	if (!feature || feature >= PERFRING_FEATURE_BITS || file->features->feature[feature].is_there)
		return 0;
	/* an empty one ends perf's: its number is the first that perf does not know */
	if (!size && feature != PERFRING_FEATURE_BRANCH_STACK && feature != PERFRING_FEATURE_STAT)
		return 0;
	error = append(file, (uint32_t)feature, body + sizeof(feature), size);
	if (error || !file->features->feature[feature].is_there)
		return error;
	swap_feature(file, (uint32_t)feature);
	if (feature == PERFRING_FEATURE_EVENT_DESC)
		read_names(file);
	if (feature == PERFRING_FEATURE_ARCH)
		read_arch(file);
	return 0;
}

static int parse_tracing_data(struct perfring_file *file, struct perfring_stream *stream,
			      const struct perf_event_header *record)
{
	const unsigned char *body = (const unsigned char *)(record + 1);
	unsigned char piece[16384];
	uint32_t size;
	int64_t got;
	int error;

	/* the stream has checked the record's size */
	memcpy(&size, body, sizeof(size));
	if (file->features->feature[PERFRING_FEATURE_TRACING_DATA].is_there)
		return 0;
	if (perfring__tracing_is_inside(record->size, size)) {
		error = append(file, PERFRING_FEATURE_TRACING_DATA, body + sizeof(size), size);
		if (error)
			return error;
	}
	while ((got = perfring__stream_read_trailing(stream, piece, sizeof(piece))) > 0) {
		error = append(file, PERFRING_FEATURE_TRACING_DATA, piece, (size_t)got);
		if (error)
			return error;
	}
	swap_feature(file, PERFRING_FEATURE_TRACING_DATA);
	perfring__file_name_tracepoints(file);
	if (got == -EBADMSG)
		file->fault = file->pool.fault;
	return (int)got;
}

int perfring__file_parse_metadata(struct perfring_file *file, struct perfring_stream *stream,
				  const struct perf_event_header *record, int64_t at)
{
	switch (record->type) {
	case PERFRING_RECORD_HEADER_ATTR:
		return parse_attr(file, record, at);
	case PERFRING_RECORD_EVENT_UPDATE:
		return parse_event_update(file, record);
	case PERFRING_RECORD_HEADER_FEATURE:
		return parse_feature(file, record);
	case PERFRING_RECORD_HEADER_BUILD_ID:
		return file->is_pipe ? append(file, PERFRING_FEATURE_BUILD_ID, record, record->size) : 0;
	case PERFRING_RECORD_HEADER_TRACING_DATA:
		return parse_tracing_data(file, stream, record);
	default:
		return 0;
	}
}
