/* tracing_data.c - TRACING_DATA: the formats of the file's tracepoints, by system (docs/abi.md 11.3, version 0.6).
 *
 * machine_info.c calls it, if an event is a tracepoint.  Reads tracefs, which usually only root may; the formats are copied as
 * they are, for readers such as libtraceevent.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/lines.h"
#include "os/small_file.h"
#include "file_writer_private.h"

struct tracepoint {
	char system[128];
	char event[128];
};

static const char *tracefs(void)
{
	static const char *const places[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	return access(places[0], R_OK) && !access(places[1], R_OK) ? places[1] : places[0];
}

static bool is_used(const struct perfring_file_writer *writer, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < writer->event_count; i++)
		if (writer->events[i].attr->type == PERFRING_TYPE_TRACEPOINT && writer->events[i].attr->config == id)
			return true;
	return false;
}

/* Reads a tracepoint's id.  Returns 1, 0 (not a tracepoint) or -errno. */
static int read_id(const char *path, uint64_t *id)
{
	char text[32];
	int64_t got = perfring__os_file_read(path, text, sizeof(text));

	/* ENOTDIR: "enable" and "filter" */
	if (got < 0)
		return got == -ENOTDIR ? 0 : perfring__os_pass_over((int)got);
	*id = strtoull(text, NULL, 10);
	return got > 0;
}

/* Appends the file's tracepoints in events/SYSTEM. */
static int find_in(const struct perfring_file_writer *writer, const char *events, const char *system,
		   struct perfring_byte_buffer *found)
{
	struct tracepoint point = {0};
	struct dirent *entry;
	char path[512];
	uint64_t id = 0;
	int one = 0;
	DIR *folder;

	if ((size_t)snprintf(point.system, sizeof(point.system), "%s", system) >= sizeof(point.system))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", events, system);
	folder = opendir(path);
	if (!folder)
		return errno == ENOTDIR ? 0 : -errno;
	while (one >= 0 && (errno = 0, entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(point.event))
			continue;
		snprintf(path, sizeof(path), "%s/%s/%.127s/id", events, system, entry->d_name);
		one = read_id(path, &id);
		if (one <= 0 || !is_used(writer, id))
			continue;
		memset(point.event, 0, sizeof(point.event));
		memcpy(point.event, entry->d_name, strlen(entry->d_name));
		perfring__byte_buffer_put(found, &point, sizeof(point));
	}
	if (one >= 0)
		one = -errno;
	closedir(folder);
	return one < 0 ? one : found->error;
}

static int find_all(const struct perfring_file_writer *writer, const char *events, struct perfring_byte_buffer *found)
{
	struct dirent *entry;
	int error = 0;
	DIR *folder = opendir(events);

	if (!folder)
		return -errno;
	while (!error && (errno = 0, entry = readdir(folder)))
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			error = find_in(writer, events, entry->d_name, found);
	if (!error)
		error = -errno;
	closedir(folder);
	return error;
}

/* Puts a file: its size as a u64, then its bytes. */
static int put_sized(struct perfring_byte_buffer *buffer, const char *folder, const char *path)
{
	size_t at = buffer->used;
	uint64_t size;
	char whole[512];
	int error;

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	perfring__byte_buffer_put_u64(buffer, 0);
	error = perfring__byte_buffer_put_file(buffer, whole);
	if (error)
		return error;
	size = buffer->used - at - sizeof(size);
	perfring__byte_buffer_set(buffer, at, &size, sizeof(size));
	return 0;
}

static int put_formats(struct perfring_byte_buffer *buffer, const char *events, const struct tracepoint *points,
		       size_t count)
{
	uint32_t systems = 0, nr;
	size_t i, j;
	int error = 0;

	/* the events of a system are adjacent */
	for (i = 0; i < count; i++)
		systems += !i || strcmp(points[i].system, points[i - 1].system);
	perfring__byte_buffer_put_u32(buffer, systems);
	for (i = 0; i < count && !error; i = j) {
		for (j = i, nr = 0; j < count && !strcmp(points[i].system, points[j].system); j++)
			nr++;
		perfring__byte_buffer_put(buffer, points[i].system, strlen(points[i].system) + 1);
		perfring__byte_buffer_put_u32(buffer, nr);
		for (; nr && !error; nr--) {
			char path[300];

			snprintf(path, sizeof(path), "%s/%s/format", points[j - nr].system, points[j - nr].event);
			error = put_sized(buffer, events, path);
		}
	}
	return error;
}

static int put_all(struct perfring_byte_buffer *buffer, const char *events, const struct perfring_byte_buffer *found)
{
	static const unsigned char head[] = "\x17\x08\x44tracing0.6";
	unsigned char places[2] = {0, sizeof(long)};
	size_t at;
	uint32_t size;
	char path[512];
	int error;

	perfring__byte_buffer_put(buffer, head, sizeof(head));
	perfring__byte_buffer_put(buffer, places, sizeof(places));
	perfring__byte_buffer_put_u32(buffer, (uint32_t)sysconf(_SC_PAGESIZE));
	perfring__byte_buffer_put(buffer, "header_page", 12);
	error = put_sized(buffer, events, "header_page");
	if (error)
		return error;
	perfring__byte_buffer_put(buffer, "header_event", 13);
	error = put_sized(buffer, events, "header_event");
	if (error)
		return error;
	perfring__byte_buffer_put_u32(buffer, 0); /* ftrace's own events */
	error = put_formats(buffer, events, (const struct tracepoint *)(const void *)found->bytes,
			    found->used / sizeof(struct tracepoint));
	if (error)
		return error;
	perfring__byte_buffer_put_u32(buffer, 0); /* kallsyms */
	at = buffer->used;
	perfring__byte_buffer_put_u32(buffer, 0);
	snprintf(path, sizeof(path), "%s/../printk_formats", events);
	error = buffer->error ? buffer->error : perfring__os_pass_over(perfring__byte_buffer_put_file(buffer, path));
	if (error)
		return error;
	size = (uint32_t)(buffer->used - at - sizeof(size));
	perfring__byte_buffer_set(buffer, at, &size, sizeof(size));
	error = put_sized(buffer, events, "../saved_cmdlines");
	return error ? error : buffer->error;
}

int perfring__file_tracing(const struct perfring_file_writer *writer, struct perfring_byte_buffer *buffer)
{
	struct perfring_byte_buffer found = {0};
	const char *events = tracefs();
	bool has_tracepoint = false;
	uint32_t i;
	int error;

	for (i = 0; i < writer->event_count; i++)
		has_tracepoint = has_tracepoint || writer->events[i].attr->type == PERFRING_TYPE_TRACEPOINT;
	if (!has_tracepoint)
		return 0;
	error = find_all(writer, events, &found);
	if (!error)
		error = put_all(buffer, events, &found);
	perfring__byte_buffer_close(&found);
	return error;
}
