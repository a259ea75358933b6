/* metadata.c - events, their names and the features, from the header or from the records of a pipe (docs/abi.md 11.4). */
#include <stdlib.h>

#include "file_private.h"
#include "sample/attr.h"

int perfring_file_wrong(struct perfring_file *file, uint64_t at, const char *what)
{
	file->fault.at = (int64_t)at;
	file->fault.what = what;
	return -EBADMSG;
}

/* ---- events ---- */

int perfring_file_add_attr(struct perfring_file *file, const struct perf_event_attr *attr, uint32_t room, uint64_t at)
{
	struct perfring_file_event *event;
	int index;

	if (attr->size < PERFRING_ATTR_MIN || attr->size > room)
		return perfring_file_wrong(file, at + PERFRING_ATTR_AT_size, "attr.size");
	if (file->event_count == file->event_room) {
		uint32_t grown = file->event_room ? file->event_room * 2 : 8;

		event = realloc(file->events, grown * sizeof(*event));
		if (!event)
			return -ENOMEM;
		file->events = event;
		file->event_room = grown;
	}
	index = perfring_format_set_add(file->formats, attr);
	if (index < 0)
		return index;
	event = &file->events[file->event_count++];
	memset(event, 0, sizeof(*event));
	event->attr = attr;
	perfring_file_make_up_name(attr, event->made_up, sizeof(event->made_up));
	return index;
}

int perfring_file_put_ids(struct perfring_file *file, const void *ids, uint64_t count, uint32_t index, uint64_t at)
{
	struct perfring_file_event *event = &file->events[index];
	uint64_t i, id;
	int error;

	if (event->id_room - event->id_count < count) {
		uint64_t room = event->id_count + (count > event->id_count ? count : event->id_count);
		uint64_t *grown = realloc(event->ids, (size_t)room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		event->ids = grown;
		event->id_room = (uint32_t)room;
	}
	for (i = 0; i < count; i++) {
		memcpy(&id, (const unsigned char *)ids + i * 8, 8);
		error = perfring_format_set_put(file->formats, id, index);
		/* 0 is what a kernel that knows no ids leaves: every event may have it */
		if (error == -EEXIST && id)
			return perfring_file_wrong(file, at + i * 8, "id of two events");
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

static int learn_attr(struct perfring_file *file, const struct perf_event_header *record, int64_t at)
{
	uint32_t room = record->size - (uint32_t)sizeof(*record), size;
	const unsigned char *body = (const unsigned char *)(record + 1);
	struct perf_event_attr *attr;
	size_t bytes;
	int index;

	/* A file's header has them already. */
	if (!file->is_pipe)
		return 0;
	if (room < PERFRING_ATTR_MIN)
		return perfring_file_wrong(file, (uint64_t)at, "attr shorter than any");
	size = perfring_attr_own_size(body);
	if (size < PERFRING_ATTR_MIN || size > room)
		return perfring_file_wrong(file, (uint64_t)at + 12, "attr.size");
	file->attr_bytes += room;
	if (file->event_count >= PERFRING_MOST_EVENTS ||
	    file->attr_bytes > PERFRING_MOST_ATTR_BYTES + PERFRING_MOST_ID_BYTES)
		return perfring_file_wrong(file, (uint64_t)at, "too many attrs");
	bytes = size > sizeof(*attr) ? size : sizeof(*attr);
	attr = calloc(1, bytes);
	if (!attr)
		return -ENOMEM;
	memcpy(attr, body, size);
	attr->size = size;
	index = perfring_file_add_attr(file, attr, size, (uint64_t)at + sizeof(*record));
	if (index < 0) {
		free(attr);
		return index;
	}
	file->events[index].own_attr = attr;
	return perfring_file_put_ids(file, body + size, (room - size) / 8, (uint32_t)index,
				     (uint64_t)at + sizeof(*record) + size);
}

static int learn_name(struct perfring_file *file, const struct perf_event_header *record)
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
	return file->events[index].name ? file->events[index].name : file->events[index].made_up;
}

const struct perf_event_attr *perfring_file_attr(const struct perfring_file *file, uint32_t index)
{
	return index < file->event_count ? file->events[index].attr : NULL;
}

/* ---- features ---- */

static uint32_t cpus_of(const struct perfring_file *file)
{
	uint64_t size = 0;
	const void *payload = perfring_file_feature(file, PERFRING_FEATURE_NRCPUS, &size);
	uint32_t available = 0;

	if (payload && size >= sizeof(available))
		memcpy(&available, payload, sizeof(available));
	return available;
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
		got = payload ? perfring_stock_read(file->streams[0].fd, payload, bytes,
						    features->feature[feature].section.offset)
			      : -ENOMEM;
		if (got != (int64_t)bytes) {
			features->error = got < 0 ? (int)got : -EBADMSG; /* the file has become shorter */
			free(payload);
			return NULL;
		}
		payload[bytes] = 0;
		if (file->is_foreign)
			perfring_feature_swap(feature, payload, bytes,
					      feature == PERFRING_FEATURE_CPU_TOPOLOGY ? cpus_of(file) : 0, false);
		features->feature[feature].payload = payload;
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

/* EVENT_DESC tells the events again, in the same order, with their names. */
static void take_names(struct perfring_file *file)
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

/* Another machine's registers have its own names. */
static void take_arch(struct perfring_file *file)
{
	const char *machine = perfring_file_string(file, PERFRING_FEATURE_ARCH);

	if (machine)
		perfring_format_set_arch(file->formats, perfring_arch_of(machine));
}

void perfring_file_features_known(struct perfring_file *file)
{
	take_names(file);
	take_arch(file);
	perfring_file_name_tracepoints(file);
}

/* More of a feature that comes in pieces, or the whole of it. */
static int append(struct perfring_file *file, uint32_t feature, const void *bytes, size_t size)
{
	struct perfring_file_features *features = file->features;
	size_t old = features->feature[feature].payload ? (size_t)features->feature[feature].section.size : 0;
	char *payload;

	file->learned_bytes += size;
	if (file->learned_bytes > PERFRING_MOST_FEATURE_BYTES)
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

static int learn_feature(struct perfring_file *file, const struct perf_event_header *record)
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
	/* perf ends them with an empty one, whose number is the first that it does not know itself. */
	if (!size && feature != PERFRING_FEATURE_BRANCH_STACK && feature != PERFRING_FEATURE_STAT)
		return 0;
	error = append(file, (uint32_t)feature, body + sizeof(feature), size);
	if (error || !file->features->feature[feature].is_there)
		return error;
	if (file->is_foreign)
		perfring_feature_swap((uint32_t)feature, file->features->feature[feature].payload, size,
				      feature == PERFRING_FEATURE_CPU_TOPOLOGY ? cpus_of(file) : 0, false);
	if (feature == PERFRING_FEATURE_EVENT_DESC)
		take_names(file);
	if (feature == PERFRING_FEATURE_ARCH)
		take_arch(file);
	return 0;
}

static int learn_tracing(struct perfring_file *file, struct perfring_stream *stream,
			 const struct perf_event_header *record)
{
	const unsigned char *body = (const unsigned char *)(record + 1);
	unsigned char piece[16384];
	uint32_t size;
	int64_t got;
	int error;

	/* shorter ones are no records of the stream's */
	memcpy(&size, body, sizeof(size));
	if (file->features->feature[PERFRING_FEATURE_TRACING_DATA].is_there)
		return 0;
	if (perfring_tracing_is_inside(record->size, size)) {
		error = append(file, PERFRING_FEATURE_TRACING_DATA, body + sizeof(size), size);
		if (error)
			return error;
	}
	while ((got = perfring_stream_read_behind(stream, piece, sizeof(piece))) > 0) {
		error = append(file, PERFRING_FEATURE_TRACING_DATA, piece, (size_t)got);
		if (error)
			return error;
	}
	if (file->is_foreign && file->features->feature[PERFRING_FEATURE_TRACING_DATA].is_there)
		perfring_feature_swap(PERFRING_FEATURE_TRACING_DATA,
				      file->features->feature[PERFRING_FEATURE_TRACING_DATA].payload,
				      file->features->feature[PERFRING_FEATURE_TRACING_DATA].section.size, 0, false);
	perfring_file_name_tracepoints(file);
	if (got == -EBADMSG)
		file->fault = file->stock.fault;
	return (int)got;
}

int perfring_file_learn(struct perfring_file *file, struct perfring_stream *stream,
			const struct perf_event_header *record, int64_t at)
{
	switch (record->type) {
	case PERFRING_RECORD_HEADER_ATTR:
		return learn_attr(file, record, at);
	case PERFRING_RECORD_EVENT_UPDATE:
		return learn_name(file, record);
	case PERFRING_RECORD_HEADER_FEATURE:
		return learn_feature(file, record);
	case PERFRING_RECORD_HEADER_BUILD_ID:
		return file->is_pipe ? append(file, PERFRING_FEATURE_BUILD_ID, record, record->size) : 0;
	case PERFRING_RECORD_HEADER_TRACING_DATA:
		return learn_tracing(file, stream, record);
	default:
		return 0;
	}
}
