/* file_header.c - a perf.data file without its records: header, attrs, ids, index of features (docs/abi.md 11).
 *
 * perfring_file_open and _close, and functions of file.h that ask for the state of a file.  Everything in the header is foreign:
 * sections other than the records' are compared with the file's size, counts with the bytes that could hold them, and memory is
 * bounded by a multiple of those bytes.
 * One thread; the file owns all that it returns.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "file_private.h"
#include "sample/attr.h"

enum {
	MAX_STREAMS = 1 << 16,
};

static_assert(sizeof(struct perfring_file_header) == 104, "header");

static int unsupported(struct perfring_file *file, const char *what)
{
	perfring__fault_at(&file->fault, 0, what);
	return -EOPNOTSUPP;
}

static bool is_inside(const struct perfring_section *section, uint64_t size)
{
	return section->offset <= size && section->size <= size - section->offset;
}

static int read_whole(struct perfring_file *file, int fd, void *buffer, size_t size, uint64_t at, const char *what)
{
	int64_t got = perfring__os_file_pread(fd, buffer, size, at);

	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : perfring__fault_at(&file->fault, at + (uint64_t)got, what);
}

/* Swaps the bitmap of the other byte order.  It is made of longs: if those of the writer had 32 bits, the halves of each word are
 * exchanged too.  Every writer sets the bit HOSTNAME, which shows which of the two it is (docs/abi.md 11.1). */
static void swap_bitmap(uint64_t *words)
{
	uint64_t hostname = UINT64_C(1) << PERFRING_FEATURE_HOSTNAME;

	perfring__swap_words(words, 4);
	if (words[0] & hostname || !(words[0] >> 32 & hostname))
		return;
	for (int i = 0; i < 4; i++)
		words[i] = words[i] << 32 | words[i] >> 32;
}

/* Whether an entry of the attrs section can have this size.  Version 1 has the same magic in both byte orders: a file's order is the
 * one in which the size is possible. */
static bool is_plausible(uint64_t attr_size)
{
	return attr_size >= PERFRING_ATTR_MIN + sizeof(struct perfring_section) &&
	       attr_size <= PERFRING_ATTR_MAX + sizeof(struct perfring_section);
}

static int check_header(struct perfring_file *file, int fd, struct perfring_file_header *header)
{
	bool is_first;
	int64_t got;

	memset(header, 0, sizeof(*header));
	got = perfring__os_file_pread(fd, header, sizeof(*header), 0);
	if (got < 0)
		return (int)got;
	is_first = got >= 24 && !memcmp(header->magic, PERFRING_FILE_MAGIC_1, 8);
	file->is_foreign = got >= 8 && (!memcmp(header->magic, PERFRING_FILE_MAGIC_FOREIGN, 8) ||
					(is_first && !is_plausible(header->attr_size)));
	if (got < 8 || (!is_first && !file->is_foreign && memcmp(header->magic, PERFRING_FILE_MAGIC, 8)))
		return perfring__fault_at(&file->fault, 0, "not a perf.data file");
	if (file->is_foreign) {
		perfring__swap_words(&header->size, (sizeof(*header) - 8) / 8 - 4); /* without magic and bitmap */
		swap_bitmap(header->features);
	}
	if (got >= 16 && header->size == 16) {
		file->is_pipe = true;
		return 0;
	}
	if (got < PERFRING_FILE_HEADER_OLD)
		return perfring__fault_at(&file->fault, (uint64_t)got, "file ends inside the header");
	if (header->size == PERFRING_FILE_HEADER_OLD)
		memset(header->features, 0, sizeof(header->features));
	else if (header->size < sizeof(*header))
		return perfring__fault_at(&file->fault, 8, "header size");
	else if (got < (int64_t)sizeof(*header))
		return perfring__fault_at(&file->fault, (uint64_t)got, "file ends inside the header");
	if (!is_plausible(header->attr_size))
		return perfring__fault_at(&file->fault, 16, "size of an attr");
	if (!is_inside(&header->attrs, file->file_size))
		return perfring__fault_at(&file->fault, 24, "attrs outside the file");
	if (header->attrs.size > PERFRING_MAX_ATTR_BYTES ||
	    header->attrs.size / header->attr_size > PERFRING_MAX_EVENTS)
		return perfring__fault_at(&file->fault, 32, "too many attrs");
	if (header->attrs.size % header->attr_size)
		return perfring__fault_at(&file->fault, 32, "attrs end inside an attr");
	if (header->data.offset > file->file_size || header->data.offset > INT64_MAX)
		return perfring__fault_at(&file->fault, 40, "records outside the file");
	if (header->data.size > INT64_MAX - header->data.offset)
		return perfring__fault_at(&file->fault, 48, "size of the records");
	return 0;
}

static int read_ids(struct perfring_file *file, int fd, const struct perfring_section *ids, uint32_t index,
		    uint64_t entry_at)
{
	uint64_t words[512], done, size;
	int error;

	if (ids->size % 8 || !is_inside(ids, file->file_size))
		return perfring__fault_at(&file->fault, entry_at, "ids outside the file");
	file->id_bytes += ids->size;
	if (file->id_bytes > PERFRING_MAX_ID_BYTES || file->id_bytes > file->file_size)
		return perfring__fault_at(&file->fault, entry_at, "too many ids");
	for (done = 0; done < ids->size; done += size) {
		size = ids->size - done < sizeof(words) ? ids->size - done : sizeof(words);
		error = read_whole(file, fd, words, (size_t)size, ids->offset + done, "file ends inside the ids");
		if (error)
			return error;
		if (file->is_foreign)
			perfring__swap_words(words, (size_t)size / 8);
		error = perfring__file_put_ids(file, words, size / 8, index, ids->offset + done);
		if (error)
			return error;
	}
	return 0;
}

/* The last 16 bytes of an entry are the section of its ids, whatever the attr's own size (docs/abi.md 11.1). */
static int read_attrs(struct perfring_file *file, int fd, const struct perfring_file_header *header)
{
	uint32_t count = (uint32_t)(header->attrs.size / header->attr_size), i;
	size_t entry = (size_t)header->attr_size, body = entry - sizeof(struct perfring_section);
	size_t stride = (body > sizeof(struct perf_event_attr) ? body : sizeof(struct perf_event_attr)) + 7;
	struct perfring_section ids;
	unsigned char *entries;
	int error;

	stride -= stride % 8;
	entries = malloc(count * entry + 1);
	file->attrs = calloc((size_t)count + 1, stride);
	error = entries && file->attrs ? 0 : -ENOMEM;
	if (!error)
		error = read_whole(file, fd, entries, count * entry, header->attrs.offset,
				   "file ends inside the attrs");
	for (i = 0; i < count && !error; i++) {
		struct perf_event_attr *attr = (struct perf_event_attr *)(void *)(file->attrs + i * stride);
		uint64_t at = header->attrs.offset + i * entry;

		memcpy(attr, entries + i * entry, body);
		if (file->is_foreign) {
			struct perf_event_attr *foreign = (struct perf_event_attr *)(void *)(entries + i * entry);
			uint32_t size = __builtin_bswap32(attr->size);

			/* entries of odd sizes are not aligned */
			memmove(entries, foreign, body);
			foreign = (struct perf_event_attr *)(void *)entries;
			if (size > body || perfring_attr_to_native(foreign, attr, body) < 0) {
				error = perfring__fault_at(&file->fault, at + 4, "attr.size");
				break;
			}
		}
		if (!attr->size)
			attr->size = PERFRING_ATTR_MIN;
		if (attr->size >= PERFRING_ATTR_MIN && attr->size < stride)
			/* the rest of the entry does not belong to the attr */
			memset((unsigned char *)attr + attr->size, 0, stride - attr->size);
		error = perfring__file_add_attr(file, attr, (uint32_t)body, at);
		if (error < 0)
			break;
		memcpy(&ids, entries + (i + 1) * entry - sizeof(ids), sizeof(ids));
		if (file->is_foreign)
			perfring__swap_words(&ids, 2);
		error = read_ids(file, fd, &ids, i, at + body);
	}
	free(entries);
	return error;
}

/* Reads the index of the features.  A feature that is not whole in the file is ignored: the records are still readable. */
static void read_index(struct perfring_file *file, int fd, const struct perfring_file_header *header)
{
	uint64_t at = header->data.offset + header->data.size, all = 0;
	uint32_t bit;

	/* reading the records will report this */
	if (at > file->file_size)
		return;
	for (bit = 0; bit < PERFRING_FEATURE_BITS; bit++) {
		struct perfring_section section;

		if (!(header->features[bit / 64] >> bit % 64 & 1))
			continue;
		file->lost_features++;
		if (perfring__os_file_pread(fd, &section, sizeof(section), at) != (int64_t)sizeof(section))
			continue;
		if (file->is_foreign)
			perfring__swap_words(&section, 2);
		at += sizeof(section);
		/* The sum is bounded too: sections that overlap could each be as large as the file. */
		if (!is_inside(&section, file->file_size) || section.size > PERFRING_MAX_FEATURE_BYTES ||
		    section.size > file->file_size - all)
			continue;
		all += section.size;
		file->features->feature[bit].section = section;
		file->features->feature[bit].is_there = true;
		file->lost_features--;
	}
}

static int add_stream(struct perfring_file *file, int fd, bool owns_fd)
{
	struct perfring_stream *stream;

	if (perfring__os_array_grow(&file->streams, file->stream_count, &file->stream_capacity, sizeof(*stream))) {
		if (owns_fd)
			close(fd);
		return -ENOMEM;
	}
	stream = &file->streams[file->stream_count++];
	perfring__stream_open(stream, &file->pool, fd, 0);
	stream->owns_fd = owns_fd;
	stream->is_foreign = stream->is_special = file->is_foreign;
	stream->is_finished = file->is_finished;
	return 0;
}

static int open_file(struct perfring_file *file, bool in_directory)
{
	struct perfring_stream *stream = file->streams;
	struct perfring_file_header header;
	int error;

	error = check_header(file, stream->fd, &header);
	stream->is_foreign = stream->is_special = file->is_foreign;
	if (error || file->is_pipe)
		return error;
	error = read_attrs(file, stream->fd, &header);
	if (error)
		return error;
	stream->at = (int64_t)header.data.offset;
	stream->settled = stream->at + (int64_t)header.data.size;
	/* A writer writes the features last.  A file without them was not finished: whole records may follow those that the header
	 * counts.  Two finished files look otherwise: the oldest header has no features, and `data` of a directory may have no
	 * records. */
	file->is_finished = (header.data.size || in_directory) &&
			    (header.size == PERFRING_FILE_HEADER_OLD ||
			     (header.features[0] | header.features[1] | header.features[2] | header.features[3]));
	stream->is_finished = file->is_finished;
	stream->end = file->is_finished ? stream->settled : INT64_MAX;
	if (!file->is_finished)
		return 0;
	read_index(file, stream->fd, &header);
	if (!in_directory && file->features->feature[PERFRING_FEATURE_DIR_FORMAT].is_there) {
		uint64_t size = 0, version = 0;
		const void *payload = perfring_file_feature(file, PERFRING_FEATURE_DIR_FORMAT, &size);

		/* version 0: a directory of one file (perf record --kcore) */
		if (payload && size >= sizeof(version))
			memcpy(&version, payload, sizeof(version));
		if (version)
			return unsupported(file, "one file of a directory of perf.data files: open the directory");
	}
	perfring__file_features_known(file);
	return 0;
}

/* A stream from a pipe.  A file from a pipe cannot be read. */
static int open_pipe(struct perfring_file *file)
{
	struct perfring_stream *stream = file->streams;
	struct {
		char magic[8];
		uint64_t size;
	} header;
	size_t done = 0;

	while (done < sizeof(header)) {
		ssize_t got = read(stream->fd, (char *)&header + done, sizeof(header) - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return perfring__fault_at(&file->fault, done, "stream ends inside the header");
		done += (size_t)got;
	}
	file->is_foreign = !memcmp(header.magic, PERFRING_FILE_MAGIC_FOREIGN, 8);
	if (!file->is_foreign && memcmp(header.magic, PERFRING_FILE_MAGIC, 8))
		return perfring__fault_at(&file->fault, 0, "not a perf.data stream");
	if (file->is_foreign)
		perfring__swap_words(&header.size, 1);
	if (header.size != sizeof(header))
		return unsupported(file, "a perf.data file cannot be read from a pipe; only streams (record -o -) can");
	file->is_pipe = true;
	stream->is_pipe = true;
	stream->is_foreign = stream->is_special = file->is_foreign;
	return 0;
}

/* Opens a file of a directory, if it is a regular one: to open a pipe would block, to open a device may do anything. */
static int open_member(struct perfring_file *file, int directory, const char *name)
{
	struct stat status;
	int fd;

	if (fstatat(directory, name, &status, 0))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return unsupported(file, "a directory whose data or data.N is not a file");
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* it may have been replaced since */
	if (!fstat(fd, &status) && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return unsupported(file, "a directory whose data or data.N is not a file");
}

/* The streams data.0, data.1, ... of a directory: records only. */
static int open_others(struct perfring_file *file, int directory)
{
	char name[32];
	int error = 0;

	for (unsigned i = 0; !error; i++) {
		int fd;

		snprintf(name, sizeof(name), "data.%u", i);
		fd = open_member(file, directory, name);
		if (fd == -ENOENT)
			return 0;
		if (fd < 0) {
			file->current_stream = i + 1;
			return fd;
		}
		if (i == MAX_STREAMS) {
			close(fd);
			return unsupported(file, "a directory of more than 65536 files data.N");
		}
		error = add_stream(file, fd, true);
	}
	return error;
}

static int open_path(struct perfring_file *file, const char *path)
{
	bool owns_fd = strcmp(path, "-") != 0;
	int fd = owns_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO, directory = -1;
	struct stat status;
	int error;

	if (fd < 0)
		return -errno;
	if (owns_fd && !fstat(fd, &status) && S_ISDIR(status.st_mode)) {
		directory = fd;
		fd = open_member(file, directory, "data");
		if (fd < 0) {
			close(directory);
			return fd == -ENOENT
				       ? perfring__fault_at(&file->fault, 0, "a directory without a file named data")
				       : fd;
		}
	}
	error = add_stream(file, fd, owns_fd);
	if (!error && fstat(fd, &status))
		error = -errno;
	if (!error && S_ISREG(status.st_mode)) {
		file->file_size = (uint64_t)status.st_size;
		error = open_file(file, directory >= 0);
	} else if (!error && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode))) {
		file->file_size = UINT64_MAX;
		error = open_pipe(file);
	} else if (!error) {
		error = unsupported(file, "neither a file nor a pipe");
	}
	if (!error && directory >= 0)
		error = open_others(file, directory);
	if (directory >= 0)
		close(directory);
	if (!error && file->stream_count > 1) {
		file->heap = malloc(file->stream_count * sizeof(*file->heap));
		error = file->heap ? 0 : -ENOMEM;
	}
	if (!error && file->is_pipe) {
		file->streams[0].at = 16;
		file->streams[0].settled = 16;
		file->streams[0].is_finished = true;
		file->is_finished = true;
		error = perfring__file_read_leading(file);
	}
	return error;
}

int perfring_file_open(struct perfring_file **file, const char *path)
{
	struct perfring_file *opened = calloc(1, sizeof(*opened));
	int error = -ENOMEM;

	*file = NULL;
	if (!opened)
		return error;
	opened->features = calloc(1, sizeof(*opened->features));
	if (!opened->features || perfring_format_set_open(&opened->formats)) {
		perfring_file_close(opened);
		return error;
	}
	error = open_path(opened, path);
	if (error == -ENOMEM) {
		perfring_file_close(opened);
		return error;
	}
	opened->open_error = error;
	*file = opened;
	return error;
}

void perfring_file_close(struct perfring_file *file)
{
	uint32_t i;

	if (!file)
		return;
	perfring__pool_release(&file->pool, file->current);
	perfring__pool_release(&file->pool, file->peeked.record);
	while (file->leading_first < file->leading_count)
		perfring__pool_release(&file->pool, file->leading[file->leading_first++].record);
	for (i = 0; i < file->stream_count; i++)
		perfring__stream_close(&file->streams[i]);
	perfring__pool_close(&file->pool);
	for (i = 0; file->features && i < PERFRING_FEATURE_BITS; i++)
		free(file->features->feature[i].payload);
	for (i = 0; i < file->event_count; i++) {
		free(file->events[i].own_attr);
		free(file->events[i].own_name);
		free(file->events[i].ids);
	}
	free(file->features);
	free(file->streams);
	free(file->heap);
	free(file->leading);
	free(file->attrs);
	free(file->events);
	perfring_format_set_close(file->formats);
	free(file);
}

struct perfring_fault perfring_file_fault(const struct perfring_file *file)
{
	return file ? file->fault : (struct perfring_fault){0, NULL};
}

bool perfring_file_is_finished(const struct perfring_file *file)
{
	return file->is_finished;
}

uint32_t perfring_file_lost_features(const struct perfring_file *file)
{
	return file->lost_features;
}

int perfring_file_feature_error(const struct perfring_file *file)
{
	return file->features->error;
}

bool perfring_file_is_pipe(const struct perfring_file *file)
{
	return file->is_pipe;
}

bool perfring_file_is_foreign(const struct perfring_file *file)
{
	return file->is_foreign;
}

const struct perfring_format_set *perfring_file_formats(const struct perfring_file *file)
{
	return file->formats;
}
