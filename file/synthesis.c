/* synthesis.c - the state of the machine as records, as perf writes them (docs/abi.md 10, its end).
 *
 * perfring_file_writer_put_ functions of file_writer.h: what ran and was mapped before a recording began, from /proc.  Called by
 * a recorder's thread, for each file.  Processes end meanwhile, and are skipped.  Build ids of files are kept, so that each file
 * is read once.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "build_id_private.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/file_identity.h"
#include "os/small_file.h"
#include "os/lines.h"
#include "os/map.h"
#include "os/task.h"
#include "sample/proc_map.h"
#include "synthesis.h"

enum {
	MAX_OBJECTS = 65536, /* in the cache of build ids, which is emptied then */
};

void perfring_file_writer_end_when(struct perfring_file_writer *writer, bool (*is_ending)(void *of), void *of)
{
	writer->is_ending = is_ending;
	writer->ending_of = of;
}

int perfring__synthesize(struct perfring_file_writer *writer, struct perfring_record *record, uint32_t pid,
			 uint32_t tid)
{
	struct perfring_trailer *trailer = &record->trailer;
	const struct perfring_written_event *event = writer->events;

	if (writer->is_ending && writer->is_ending(writer->ending_of))
		return -EINTR;
	memset(trailer, 0, sizeof(*trailer));
	trailer->pid = pid;
	trailer->tid = tid;
	trailer->cpu = UINT32_MAX;
	if (event && event->id_count)
		trailer->id = trailer->identifier = trailer->stream_id = event->ids[0];
	return perfring__file_batch(writer, 0, record);
}

static struct perfring_string string(const char *text, size_t limit)
{
	return (struct perfring_string){.data = text, .size = (uint32_t)strnlen(text, limit)};
}

/* After synthesis: writes the batch. */
static int end_batch(struct perfring_file_writer *writer, int error)
{
	int written = perfring__file_batch_write(writer);

	return error ? error : written;
}

bool perfring__synthesize_flag(const struct perfring_file_writer *writer, uint32_t flag)
{
	const struct perfring_format *format = perfring_format_set_at(writer->formats, writer->side);

	return format && format->flags >> flag & 1;
}

/* A file and its build id. */
struct object {
	struct perfring_os_identity identity;
	int64_t size; /* of the build id, or -errno */
	uint8_t id[PERFRING_BUILD_ID_SIZE];
};

static int compare_objects(const void *one, const void *other)
{
	return perfring__os_identity_compare(&((const struct object *)one)->identity,
					     &((const struct object *)other)->identity);
}

void perfring__file_free_objects(struct perfring_file_writer *writer)
{
	tdestroy(writer->objects, free);
	writer->objects = NULL;
	writer->object_count = 0;
}

/* Each file is read once, however many mappings it has; again only if there was no memory for the cache. */
static int64_t build_id_in_file(struct perfring_file_writer *writer, int fd, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	struct object key = {.size = 0}, *object;
	int error = perfring__os_identity_of(fd, &key.identity);
	void *at;

	if (error)
		return error;
	at = tfind(&key, &writer->objects, compare_objects);
	if (!at) {
		key.size = perfring_build_id_in(fd, key.id);
		if (writer->object_count == MAX_OBJECTS)
			perfring__file_free_objects(writer);
		object = malloc(sizeof(*object));
		if (object) {
			*object = key;
			if (tsearch(object, &writer->objects, compare_objects))
				writer->object_count++;
			else
				free(object);
		}
	} else {
		key = **(struct object **)at;
	}
	memcpy(id, key.id, sizeof(key.id));
	return key.size;
}

/* The build id of an object, opened as the process sees its path, which may be in another mount namespace. */
static int64_t build_id_of_object(struct perfring_file_writer *writer, int32_t pid, const char *name,
				  uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	int fd = perfring_object_open(pid, name);
	int64_t size = fd;

	if (fd >= 0) {
		size = build_id_in_file(writer, fd, id);
		close(fd);
	}
	return size;
}

/* Replaces device and inode by the build id, if any.  notes: of the kernel or a module; NULL: a process's file. */
static void identify(struct perfring_file_writer *writer, struct perfring_record *record, const char *notes)
{
	struct perfring_file_id *file = &record->is.mmap2.file;
	const char *name = record->is.mmap2.filename.data;
	int64_t size = -ENOENT;

	if (notes)
		size = perfring__build_id_of_notes(notes, file->build_id);
	else if (*name == '/' && file->ino)
		size = build_id_of_object(writer, (int32_t)record->is.mmap2.pid, name, file->build_id);
	file->has_build_id = size > 0;
	file->build_id_size = size > 0 ? (uint8_t)size : 0;
	if (size > 0)
		record->misc |= PERFRING_RECORD_MISC_MMAP_BUILD_ID;
}

/* Puts MMAP, or with the attr's flag `build_id` MMAP2, as perf. */
int perfring__synthesize_kernel_map(struct perfring_file_writer *writer, uint64_t addr, uint64_t len, uint64_t pgoff,
				    const char *name, const char *notes)
{
	bool has_id = perfring__synthesize_flag(writer, PERFRING_ATTR_FLAG_build_id);
	struct perfring_record record = {.type = has_id ? PERFRING_RECORD_MMAP2 : PERFRING_RECORD_MMAP,
					 .misc = PERFRING_RECORD_MISC_KERNEL};

	if (has_id) {
		record.is.mmap2 =
			(struct perfring_record_mmap2){.pid = UINT32_MAX, .addr = addr, .len = len, .pgoff = pgoff};
		record.is.mmap2.filename = string(name, PATH_MAX - 1);
		identify(writer, &record, notes);
	} else {
		record.is.mmap =
			(struct perfring_record_mmap){.pid = UINT32_MAX, .addr = addr, .len = len, .pgoff = pgoff};
		record.is.mmap.filename = string(name, PATH_MAX - 1);
	}
	return perfring__synthesize(writer, &record, 0, 0);
}

/* From _text, else _stext, to _etext; pgoff is the address of the symbol in the name.  Nothing, if kptr_restrict hides
 * the addresses, which are 0 then. */
static int put_kernel_text(struct perfring_file_writer *writer)
{
	struct perfring_os_lines lines;
	uint64_t text = 0, stext = 0, etext = 0;
	const char *line, *name;
	char *end;
	int error = perfring__os_lines_open(&lines, "/proc/kallsyms");

	if (error)
		return perfring__os_pass_over(error);
	while ((!text || !stext || !etext) && (line = perfring__os_lines_next(&lines))) {
		uint64_t addr = strtoull(line, &end, 16);

		if (*end != ' ' || !end[1] || end[2] != ' ')
			continue;
		name = end + 3;
		if (!strcmp(name, "_text"))
			text = addr;
		else if (!strcmp(name, "_stext"))
			stext = addr;
		else if (!strcmp(name, "_etext"))
			etext = addr;
	}
	perfring__os_lines_close(&lines);
	if (text && etext > text)
		return perfring__synthesize_kernel_map(writer, text, etext - text, text, "[kernel.kallsyms]_text",
						       PERFRING_KERNEL_NOTES);
	if (stext && etext > stext)
		return perfring__synthesize_kernel_map(writer, stext, etext - stext, stext, "[kernel.kallsyms]_stext",
						       PERFRING_KERNEL_NOTES);
	return perfring__os_pass_over(lines.error);
}

int perfring_file_writer_put_kernel(struct perfring_file_writer *writer)
{
	int error;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	error = put_kernel_text(writer);
	if (!error)
		error = perfring__file_put_modules(writer);
	if (!error)
		error = perfring__file_put_programs(writer);
	return end_batch(writer, error);
}

/* Puts NAMESPACES, in the kernel's order (PERF_NR_NAMESPACES). */
static int put_namespaces(struct perfring_file_writer *writer, uint32_t pid, uint32_t tid)
{
	static const char names[][8] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
	perfring_word links[2 * sizeof(names) / sizeof(names[0])] = {0};
	struct perfring_record record = {.type = PERFRING_RECORD_NAMESPACES};
	struct stat one;
	char path[128];
	int error;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u/ns/%s", pid, tid, names[i]);
		if (stat(path, &one)) {
			error = perfring__os_pass_over(-errno);
			if (error)
				return error;
			continue;
		}
		links[2 * i] = one.st_dev;
		links[2 * i + 1] = one.st_ino;
	}
	record.is.namespaces = (struct perfring_record_namespaces){.pid = pid, .tid = tid};
	record.is.namespaces.links.words = links;
	record.is.namespaces.links.nr = sizeof(names) / sizeof(names[0]);
	return perfring__synthesize(writer, &record, pid, tid);
}

/* FORK, COMM and NAMESPACES.  Returns 1, 0 if the task has ended, -errno. */
static int put_task(struct perfring_file_writer *writer, uint32_t pid, uint32_t tid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_FORK};
	struct perfring_os_task thread;
	uint32_t parent;
	int error = perfring__os_task_stat(pid, tid, &thread);

	if (error)
		return perfring__os_pass_over(error);
	/* as if the first thread of a process had created the others */
	parent = pid == tid ? thread.parent : pid;
	record.is.fork = (struct perfring_record_fork){.pid = pid, .ppid = parent, .tid = tid, .ptid = parent};
	error = perfring__synthesize(writer, &record, pid, tid);
	if (error)
		return error;
	record.type = PERFRING_RECORD_COMM;
	record.is.comm = (struct perfring_record_comm){.pid = pid, .tid = tid};
	record.is.comm.comm = string(thread.comm, sizeof(thread.comm));
	error = perfring__synthesize(writer, &record, pid, tid);
	if (!error && perfring__synthesize_flag(writer, PERFRING_ATTR_FLAG_namespaces))
		error = put_namespaces(writer, pid, tid);
	return error ? error : 1;
}

void perfring_file_writer_limit_maps(struct perfring_file_writer *writer, uint32_t ms, uint32_t *cut)
{
	writer->maps_ms = ms;
	writer->maps_cut = cut;
}

static int put_maps(struct perfring_file_writer *writer, uint32_t pid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2};
	struct perfring_os_lines lines;
	struct perfring_os_map map;
	char path[64], *line;
	uint64_t end = writer->maps_ms ? perfring__os_clock_now() + writer->maps_ms * UINT64_C(1000000) : UINT64_MAX;
	bool is_code, is_last = false, wants_ids = perfring__synthesize_flag(writer, PERFRING_ATTR_FLAG_build_id),
		      wants_data = writer->event_count && writer->events[writer->side].attr->mmap_data;
	int error;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/maps", pid, pid);
	error = perfring__os_lines_open(&lines, path);
	if (error)
		return perfring__os_pass_over(error);
	while (!error && !is_last && (line = perfring__os_lines_next(&lines))) {
		if (!perfring__os_map_parse(&map, line))
			continue;
		is_code = map.prot & PROT_EXEC;
		if (!is_code && !(wants_data && map.prot & PROT_READ))
			continue;
		record.is.mmap2 = perfring__proc_map_record(&map, pid);
		record.misc = PERFRING_RECORD_MISC_USER | (is_code ? 0 : PERFRING_RECORD_MISC_MMAP_DATA);
		is_last = writer->maps_ms && perfring__os_clock_now() > end;
		if (is_last) {
			record.misc |= PERFRING_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT;
			++*writer->maps_cut;
		}
		if (wants_ids)
			identify(writer, &record, NULL);
		error = perfring__synthesize(writer, &record, pid, pid);
	}
	perfring__os_lines_close(&lines);
	return error ? error : perfring__os_pass_over(lines.error);
}

static int put_process(struct perfring_file_writer *writer, uint32_t pid, bool has_maps)
{
	struct perfring_os_tasks threads;
	uint32_t tid;
	int error;

	/* the first thread before its children */
	error = put_task(writer, pid, pid);
	if (error <= 0)
		return error;
	error = perfring__os_tasks_open(&threads, pid);
	if (error)
		return perfring__os_pass_over(error);
	while (error >= 0 && (tid = perfring__os_tasks_next(&threads)))
		if (tid != pid)
			error = put_task(writer, pid, tid);
	if (error >= 0)
		error = perfring__os_pass_over(threads.error);
	perfring__os_tasks_close(&threads);
	return error < 0 || !has_maps ? error : put_maps(writer, pid);
}

static int put_processes(struct perfring_file_writer *writer, int32_t pid, bool has_maps)
{
	struct perfring_os_tasks processes;
	int error = 0;
	uint32_t one;

	if (!writer->is_begun || writer->is_finished || pid < -1 || !pid)
		return -EINVAL;
	if (pid > 0) {
		error = put_process(writer, (uint32_t)pid, has_maps);
	} else {
		error = perfring__os_tasks_open_processes(&processes);
		if (error)
			return error;
		while (!error && (one = perfring__os_tasks_next(&processes)))
			error = put_process(writer, one, has_maps);
		if (!error)
			error = processes.error;
		perfring__os_tasks_close(&processes);
	}
	return end_batch(writer, error);
}

int perfring_file_writer_put_process(struct perfring_file_writer *writer, int32_t pid)
{
	return put_processes(writer, pid, true);
}

int perfring_file_writer_put_tasks(struct perfring_file_writer *writer, int32_t pid)
{
	return put_processes(writer, pid, false);
}

/* ---- cgroups ---- */

/* A sample's cgroup id is the file handle of the cgroup's folder. */
static bool cgroup_id(int fd, uint64_t *id)
{
	union {
		struct file_handle handle;
		unsigned char bytes[sizeof(struct file_handle) + sizeof(*id)];
	} handle;
	int mount;

	handle.handle.handle_bytes = sizeof(*id);
	if (name_to_handle_at(fd, "", &handle.handle, &mount, AT_EMPTY_PATH))
		return false;
	memcpy(id, handle.handle.f_handle, sizeof(*id));
	return true;
}

/* A cgroup and those below it.  path: below the mount point, with space for one more name. */
static int put_cgroup(struct perfring_file_writer *writer, int fd, char *path, size_t used)
{
	struct perfring_record record = {.type = PERFRING_RECORD_CGROUP};
	struct dirent *entry;
	int error = 0;
	DIR *folder;

	record.is.cgroup = (struct perfring_record_cgroup){.path = string(used ? path : "/", PATH_MAX - 1)};
	if (cgroup_id(fd, &record.is.cgroup.id))
		error = perfring__synthesize(writer, &record, 0, 0);
	folder = fdopendir(fd);
	if (!folder) {
		error = error ? error : -errno;
		close(fd);
		return error;
	}
	while (!error && (errno = 0, entry = readdir(folder))) {
		size_t length = strlen(entry->d_name);
		int below;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || used + length + 2 > PATH_MAX)
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below < 0) {
			error = perfring__os_pass_over(-errno);
			if (error)
				break;
			continue;
		}
		path[used] = '/';
		memcpy(path + used + 1, entry->d_name, length + 1);
		error = put_cgroup(writer, below, path, used + 1 + length);
		path[used] = 0;
	}
	/* ENODEV: the cgroup was removed meanwhile */
	if (!error && errno != ENODEV)
		error = perfring__os_pass_over(-errno);
	closedir(folder);
	return error;
}

int perfring_file_writer_put_cgroups(struct perfring_file_writer *writer)
{
	char path[PATH_MAX + 1];
	int fd, error;

	if (!writer->is_begun || writer->is_finished)
		return -EINVAL;
	error = perfring__os_cgroup_mount("/proc/self/mountinfo", path, sizeof(path));
	if (error)
		return perfring__os_pass_over(error);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*path = 0;
	error = put_cgroup(writer, fd, path, 0);
	return end_batch(writer, error);
}
