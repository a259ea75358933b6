/* header.c - what stands around the records of a perf.data file: header, attrs, ids, features (ABI.md 11). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reader.h"

/* More than any machine has, little enough for a file that lies. */
#define MOST_EVENTS (1u << 16)
#define MOST_ATTR_BYTES (1u << 24)
#define MOST_ID_BYTES (1u << 25)
#define MOST_FEATURE_BYTES (1u << 28)
#define MOST_ATTR_SIZE 4096

static_assert(sizeof(struct perfring_file_header) == 104, "header");

int perfring_data_wrong(struct perfring_data *data, uint64_t at, const char *what)
{
	data->fault.at = (int64_t)at;
	data->fault.what = what;
	return -EBADMSG;
}

static int unsupported(struct perfring_data *data, const char *what)
{
	perfring_data_wrong(data, 0, what);
	return -EOPNOTSUPP;
}

int64_t perfring_data_read(const struct perfring_data *data, void *room, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(data->fd, (char *)room + done, size - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

static bool is_inside(const struct perfring_section *section, uint64_t size)
{
	return section->offset <= size && section->size <= size - section->offset;
}

/* All of it or an error. */
static int read_whole(struct perfring_data *data, void *room, size_t size, uint64_t at, const char *what)
{
	int64_t got = perfring_data_read(data, room, size, at);

	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : perfring_data_wrong(data, at + (uint64_t)got, what);
}

static int check_header(struct perfring_data *data, struct perfring_file_header *header)
{
	int64_t got;

	memset(header, 0, sizeof(*header));
	got = perfring_data_read(data, header, sizeof(*header), 0);
	if (got < 0)
		return (int)got;
	if (got >= 8 && !memcmp(header->magic, "2ELIFREP", 8))
		return unsupported(data, "a file of the other byte order is not read yet");
	if (got >= 8 && !memcmp(header->magic, "PERFFILE", 8))
		return unsupported(data, "a file of version 1 is not read");
	if (got < 8 || memcmp(header->magic, PERFRING_FILE_MAGIC, 8))
		return perfring_data_wrong(data, 0, "no perf.data file");
	if (got >= 16 && header->size == 16)
		return unsupported(data, "a pipe stream is not read yet");
	if (got < PERFRING_FILE_HEADER_OLD)
		return perfring_data_wrong(data, (uint64_t)got, "file ends inside the header");
	if (header->size == PERFRING_FILE_HEADER_OLD)
		memset(header->features, 0, sizeof(header->features));
	else if (header->size < sizeof(*header))
		return perfring_data_wrong(data, 8, "header size");
	else if (got < (int64_t)sizeof(*header))
		return perfring_data_wrong(data, (uint64_t)got, "file ends inside the header");
	if (header->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perfring_section) ||
	    header->attr_size > MOST_ATTR_SIZE + sizeof(struct perfring_section))
		return perfring_data_wrong(data, 16, "size of an attr");
	if (!is_inside(&header->attrs, data->file_size))
		return perfring_data_wrong(data, 24, "attrs outside the file");
	if (header->attrs.size > MOST_ATTR_BYTES || header->attrs.size / header->attr_size > MOST_EVENTS)
		return perfring_data_wrong(data, 32, "too many attrs");
	if (header->attrs.size % header->attr_size)
		return perfring_data_wrong(data, 32, "attrs end inside an attr");
	if (header->data.offset > data->file_size || header->data.offset > INT64_MAX)
		return perfring_data_wrong(data, 40, "records outside the file");
	if (header->data.size > INT64_MAX - header->data.offset)
		return perfring_data_wrong(data, 48, "size of the records");
	return 0;
}

static int read_ids(struct perfring_data *data, const struct perfring_section *ids, uint32_t index, uint64_t entry_at,
		    uint64_t *id_bytes)
{
	uint64_t words[512], done, i, size;
	int error;

	if (ids->size % 8 || !is_inside(ids, data->file_size))
		return perfring_data_wrong(data, entry_at, "ids outside the file");
	*id_bytes += ids->size;
	if (*id_bytes > MOST_ID_BYTES || *id_bytes > data->file_size)
		return perfring_data_wrong(data, entry_at, "too many ids");
	for (done = 0; done < ids->size; done += size) {
		size = ids->size - done < sizeof(words) ? ids->size - done : sizeof(words);
		error = read_whole(data, words, (size_t)size, ids->offset + done, "file ends inside the ids");
		if (error)
			return error;
		for (i = 0; i < size / 8; i++) {
			error = perfring_format_set_put(data->formats, words[i], index);
			/* 0 is what a kernel that knows no ids leaves: every event may have it */
			if (error == -EEXIST && words[i])
				return perfring_data_wrong(data, ids->offset + done + i * 8, "id of two events");
			if (error && error != -EEXIST)
				return error;
		}
	}
	return 0;
}

/* The section of its ids stands in an entry's last 16 bytes, whatever the attr's own size (ABI.md 11.1). */
static int read_attrs(struct perfring_data *data, const struct perfring_file_header *header)
{
	uint32_t count = (uint32_t)(header->attrs.size / header->attr_size), i;
	size_t entry = (size_t)header->attr_size, body = entry - sizeof(struct perfring_section);
	size_t stride = (body > sizeof(struct perf_event_attr) ? body : sizeof(struct perf_event_attr)) + 7;
	struct perfring_section ids;
	unsigned char *entries;
	uint64_t id_bytes = 0;
	int error;

	stride -= stride % 8;
	entries = malloc(count * entry + 1);
	data->attrs = calloc((size_t)count + 1, stride);
	data->events = calloc((size_t)count + 1, sizeof(*data->events));
	error = entries && data->attrs && data->events ? 0 : -ENOMEM;
	if (!error)
		error = read_whole(data, entries, count * entry, header->attrs.offset, "file ends inside the attrs");
	for (i = 0; i < count && !error; i++) {
		struct perf_event_attr *attr = (struct perf_event_attr *)(void *)(data->attrs + i * stride);
		uint64_t at = header->attrs.offset + i * entry;

		memcpy(attr, entries + i * entry, body);
		if (!attr->size)
			attr->size = PERF_ATTR_SIZE_VER0;
		if (attr->size < PERF_ATTR_SIZE_VER0 || attr->size > body) {
			error = perfring_data_wrong(data, at + 4, "attr.size");
			break;
		}
		/* what lies behind its own size is not the attr's */
		memset((unsigned char *)attr + attr->size, 0, stride - attr->size);
		error = perfring_format_set_add(data->formats, attr);
		if (error < 0)
			break;
		perfring_data_name(attr, data->events[i].made_up, sizeof(data->events[i].made_up));
		data->events[i].name = data->events[i].made_up;
		data->events[i].attr = attr;
		data->event_count = i + 1;
		memcpy(&ids, entries + (i + 1) * entry - sizeof(ids), sizeof(ids));
		error = read_ids(data, &ids, i, at + body, &id_bytes);
	}
	free(entries);
	return error;
}

/* Where the features are.  One that is not whole is not there: the records are worth more. */
static void read_index(struct perfring_data *data, const struct perfring_file_header *header)
{
	uint64_t at = header->data.offset + header->data.size;
	uint32_t bit;

	for (bit = 0; bit < PERFRING_DATA_FEATURES; bit++) {
		struct perfring_section section;

		if (!(header->features[bit / 64] >> bit % 64 & 1))
			continue;
		if (perfring_data_read(data, &section, sizeof(section), at) != (int64_t)sizeof(section))
			return;
		at += sizeof(section);
		if (!is_inside(&section, data->file_size) || section.size > MOST_FEATURE_BYTES)
			continue;
		data->features->feature[bit].section = section;
		data->features->feature[bit].is_there = true;
	}
}

/* EVENT_DESC tells the events again, in the same order, with their names. */
static void read_names(struct perfring_data *data)
{
	const unsigned char *payload;
	uint64_t size = 0, at = 8;
	uint32_t count, attr_size, i;

	payload = perfring_data_feature(data, PERFRING_DATA_EVENT_DESC, &size);
	if (!payload || size < at)
		return;
	memcpy(&count, payload, 4);
	memcpy(&attr_size, payload + 4, 4);
	for (i = 0; i < count && i < data->event_count; i++) {
		uint32_t nr_ids, length;

		if (size - at < (uint64_t)attr_size + 8)
			return;
		at += attr_size;
		memcpy(&nr_ids, payload + at, 4);
		memcpy(&length, payload + at + 4, 4);
		at += 8;
		if (size - at < length + (uint64_t)nr_ids * 8)
			return;
		if (length && payload[at] && memchr(payload + at, 0, length))
			data->events[i].name = (const char *)payload + at;
		at += length + (uint64_t)nr_ids * 8;
	}
}

/* Another machine's registers have its own names. */
static void read_arch(struct perfring_data *data)
{
	const char *machine = perfring_data_string(data, PERFRING_DATA_ARCH);

	if (machine)
		perfring_format_set_arch(data->formats, perfring_arch_of(machine));
}

static int open_file(struct perfring_data *data, const char *path)
{
	struct perfring_file_header header;
	struct stat file;
	int error;

	data->is_ours = strcmp(path, "-") != 0;
	data->fd = data->is_ours ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (data->fd < 0 || fstat(data->fd, &file))
		return -errno;
	if (S_ISDIR(file.st_mode))
		return unsupported(data, "a directory is not read yet");
	if (!S_ISREG(file.st_mode))
		return unsupported(data, "only a file can be read, no pipe or device");
	data->file_size = (uint64_t)file.st_size;
	error = check_header(data, &header);
	if (!error)
		error = read_attrs(data, &header);
	if (error)
		return error;
	data->at = (int64_t)header.data.offset;
	data->settled = data->at + (int64_t)header.data.size;
	/* Features are what a writer writes last.  Behind the rounds that a killed one has settled in the header, whole
	 * records may follow.  (Files of the oldest header have none.) */
	data->is_finished = header.data.size &&
			    (header.size == PERFRING_FILE_HEADER_OLD ||
			     (header.features[0] | header.features[1] | header.features[2] | header.features[3]));
	data->end = data->is_finished ? data->settled : INT64_MAX;
	data->stop = 1;
	if (!data->is_finished)
		return 0;
	read_index(data, &header);
	if (data->features->feature[PERFRING_DATA_DIR_FORMAT].is_there)
		return unsupported(data, "one file of a directory is not read yet");
	read_names(data);
	read_arch(data);
	return 0;
}

int perfring_data_open(struct perfring_data **data, const char *path)
{
	struct perfring_data *opened = calloc(1, sizeof(*opened));
	int error = -ENOMEM;

	*data = NULL;
	if (!opened)
		return error;
	opened->fd = -1;
	opened->features = calloc(1, sizeof(*opened->features));
	if (!opened->features || perfring_format_set_open(&opened->formats)) {
		perfring_data_close(opened);
		return error;
	}
	error = open_file(opened, path);
	if (error == -ENOMEM) {
		perfring_data_close(opened);
		return error;
	}
	*data = opened;
	return error;
}

void perfring_data_close(struct perfring_data *data)
{
	uint32_t bit;

	if (!data)
		return;
	perfring_data_blocks_close(data);
	for (bit = 0; data->features && bit < PERFRING_DATA_FEATURES; bit++)
		free(data->features->feature[bit].payload);
	free(data->features);
	free(data->attrs);
	free(data->events);
	perfring_format_set_close(data->formats);
	if (data->is_ours && data->fd >= 0)
		close(data->fd);
	free(data);
}

struct perfring_fault perfring_data_fault(const struct perfring_data *data)
{
	return data->fault;
}

bool perfring_data_is_finished(const struct perfring_data *data)
{
	return data->is_finished;
}

const struct perfring_format_set *perfring_data_formats(const struct perfring_data *data)
{
	return data->formats;
}

const struct perf_event_attr *perfring_data_attr(const struct perfring_data *data, uint32_t index)
{
	return index < data->event_count ? data->events[index].attr : NULL;
}

const char *perfring_data_event_name(const struct perfring_data *data, uint32_t index)
{
	return index < data->event_count ? data->events[index].name : NULL;
}

const void *perfring_data_feature(const struct perfring_data *data, uint32_t feature, uint64_t *size)
{
	struct perfring_data_features *features = data->features;
	size_t bytes;
	char *payload;

	if (feature >= PERFRING_DATA_FEATURES || !features->feature[feature].is_there)
		return NULL;
	bytes = (size_t)features->feature[feature].section.size;
	payload = features->feature[feature].payload;
	if (!payload) {
		payload = malloc(bytes + 1);
		if (!payload)
			return NULL;
		if (perfring_data_read(data, payload, bytes, features->feature[feature].section.offset) !=
		    (int64_t)bytes) {
			free(payload);
			return NULL;
		}
		payload[bytes] = 0;
		features->feature[feature].payload = payload;
	}
	if (size)
		*size = bytes;
	return payload;
}

const char *perfring_data_string(const struct perfring_data *data, uint32_t feature)
{
	uint64_t size = 0;
	const char *payload = perfring_data_feature(data, feature, &size);
	uint32_t length;

	if (!payload || size < sizeof(length))
		return NULL;
	memcpy(&length, payload, sizeof(length));
	if (length > size - sizeof(length) || !memchr(payload + sizeof(length), 0, length))
		return NULL;
	return payload + sizeof(length);
}

void perfring_data_name(const struct perf_event_attr *attr, char *room, size_t size)
{
	static const struct {
		char name[32];
		uint32_t type;
		uint32_t config;
	} known[] = {
#define PERFRING_EVENT(name, alias, type, config) {name, type, config},
#include <perfring/values.def>
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (attr->type == known[i].type && attr->config == known[i].config) {
			snprintf(room, size, "%s", known[i].name);
			return;
		}
	}
	snprintf(room, size, "type=%u,config=0x%llx", attr->type, (unsigned long long)attr->config);
}
