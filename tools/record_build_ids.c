/* record_build_ids.c - reads a recording back when its file ends: build ids of the objects that were hit, living processes.
 *
 * A name does not identify a file: other mount namespaces have other files by it, and a process may have ended.  So the file
 * that a name leads to, here or where the process sees it, is used only when its device, inode and generation are those of
 * the record of the mapping.  When files of several build ids were hit by one name, none is written.
 *
 * record_file.c calls it once for each file, with signals blocked.  Names and mappings are the recording's, and foreign.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include <perfring/event.h>
#include <perfring/file_writer.h>
#include <perfring/reader.h>
#include <perfring/symbol.h>
#include "machine.h"
#include "record_command.h"
#include "symbol_names.h"

#define VDSO "[vdso]"

/* An object's name, and the build id that is written for it. */
struct named {
	const char *name;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
	uint32_t size; /* 0: not known */
	bool is_known; /* size and id are those of the name's first file */
	bool is_module; /* a module of the kernel, whose id is looked for in another way */
	bool is_torn;  /* files of the name have different ids, or one has no known id: nothing is written */
};

/* A file that was hit. */
struct hit {
	struct named *named;
	struct perfring_file_id file;
	uint32_t pid; /* the last process that hit it: the likeliest to be there still */
};

struct hits {
	struct tool_machine *machine;
	struct hit **list; /* each once */
	size_t count, capacity;
	struct named **names;
	size_t name_count, name_buffer;
	struct hit *last;
	void *known;   /* the hits, a tree */
	void *called;  /* the names, a tree */
	void *objects; /* struct object, a tree */
	bool wants_ids;
	bool wants_all; /* --buildid-all: of objects that were not hit, too */
	bool kernel;
	void *living; /* threads, a tree */
	int error;    /* the first error of reading that is not usual; 0: none */
	char *unread; /* what could not be read then */

	/* an event of this process, for records of the files that it maps itself */
	int event;
	int event_error; /* why there is none */
	struct perfring_ring ring;
	struct perfring_reader reader;
	struct perfring_format format;
};

/* A file that was looked into, however many names it has. */
struct object {
	dev_t dev;
	ino_t ino;
	struct perfring_file_id recorded; /* its device and inode in records of the kernel; ino 0: not known */
	struct perfring_file_id listed;   /* those in /proc/PID/maps, which records of running processes have */
	int64_t size; /* of the id, or -errno */
	int error;    /* why `recorded` is not known */
	uint8_t id[PERFRING_BUILD_ID_SIZE];
};

/* Whether the error is usual: the object is gone, no ELF file, or has no id. */
static bool is_usual(int64_t error)
{
	return error >= 0 || error == -ENOENT || error == -ENOTDIR || error == -ESRCH || error == -ELOOP ||
	       error == -EINVAL || error == -ENODATA;
}

/* Keeps the first error that is not usual, to be reported. */
static void take_error(struct hits *hits, const char *name, int64_t error)
{
	if (is_usual(error) || hits->error)
		return;
	hits->error = (int)error;
	hits->unread = tool_allocate(NULL, strlen(name) + 1, 1);
	strcpy(hits->unread, name);
}

/* Compares pointers: equal names are one pointer of the machine. */
static int compare_names(const void *a, const void *b)
{
	const struct named *one = a, *other = b;

	return one->name < other->name ? -1 : one->name > other->name;
}

static bool is_one_file(const struct perfring_file_id *one, const struct perfring_file_id *other)
{
	return one->has_build_id == other->has_build_id && one->maj == other->maj && one->min == other->min &&
	       one->ino == other->ino && one->ino_generation == other->ino_generation &&
	       one->build_id_size == other->build_id_size &&
	       !memcmp(one->build_id, other->build_id, sizeof(one->build_id));
}

static int compare_words(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

static int compare_hits(const void *a, const void *b)
{
	const struct hit *one = a, *other = b;
	const struct perfring_file_id *file = &one->file, *another = &other->file;
	int order = compare_names(one->named, other->named);

	if (!order)
		order = compare_words(file->ino, another->ino);
	if (!order)
		order = compare_words(file->ino_generation, another->ino_generation);
	if (!order)
		order = compare_words((uint64_t)file->maj << 32 | file->min,
				      (uint64_t)another->maj << 32 | another->min);
	if (!order)
		order = compare_words(file->build_id_size, another->build_id_size);
	return order ? order : memcmp(file->build_id, another->build_id, sizeof(file->build_id));
}

static int compare_objects(const void *a, const void *b)
{
	const struct object *one = a, *other = b;

	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	return one->ino < other->ino ? -1 : one->ino > other->ino;
}

/* Puts it in, unless there is one.  Returns what is there. */
static void *keep(const void *key, void **tree, int (*compare)(const void *, const void *))
{
	void *at = tsearch(key, tree, compare);

	if (!at) {
		tool_complain("out of memory");
		exit(TOOL_FAILED);
	}
	return *(void **)at;
}

/* ---- what was hit ---- */

static struct named *get_named(struct hits *hits, const char *name)
{
	struct named key = {.name = name}, *named;
	void *at = tfind(&key, &hits->called, compare_names);

	if (at)
		return *(struct named **)at;
	named = tool_allocate(NULL, 1, sizeof(*named));
	*named = key;
	keep(named, &hits->called, compare_names);
	if (hits->name_count == hits->name_buffer) {
		hits->name_buffer = hits->name_buffer ? 2 * hits->name_buffer : 64;
		hits->names = tool_allocate(hits->names, hits->name_buffer, sizeof(struct named *));
	}
	hits->names[hits->name_count++] = named;
	return named;
}

static void hit(struct hits *hits, const struct perfring_mapping *mapping, uint32_t pid)
{
	struct hit key = {.file = mapping->object->file, .pid = pid}, *last = hits->last;
	void *at;

	if (last && last->named->name == mapping->object->name && is_one_file(&last->file, &mapping->object->file)) {
		last->pid = pid;
		return;
	}
	/* i386 and x32 processes have different ones below 4 GiB */
	if (mapping->object->kind == PERFRING_MAPS_VDSO ? sizeof(void *) < 8 || mapping->addr <= UINT32_MAX
							   : *mapping->object->name != '/')
		return;
	key.named = get_named(hits, mapping->object->name);
	at = tfind(&key, &hits->known, compare_hits);
	if (at) {
		hits->last = *(struct hit **)at;
		hits->last->pid = pid;
		return;
	}
	last = tool_allocate(NULL, 1, sizeof(*last));
	*last = key;
	hits->last = keep(last, &hits->known, compare_hits);
	if (hits->count == hits->capacity) {
		hits->capacity = hits->capacity ? 2 * hits->capacity : 64;
		hits->list = tool_allocate(hits->list, hits->capacity, sizeof(struct hit *));
	}
	hits->list[hits->count++] = last;
}

/* Notes that the kernel, or one of its modules, was hit. */
static void hit_kernel(struct hits *hits, uint64_t addr)
{
	const struct perfring_mapping *mapping = tool_machine_kernel(hits->machine, addr);

	if (mapping && mapping->object->kind == PERFRING_MAPS_MODULE)
		get_named(hits, mapping->object->name)->is_module = true;
	else
		hits->kernel = true;
}

static void hit_sample(struct hits *hits, const struct perfring_item *item)
{
	const struct perfring_mapping *mapping;
	struct perfring_sample sample;

	if (perfring_sample_decode(item->format, item->record, &sample, NULL))
		return;
	if (perfring_record_cpumode(item->record) == PERFRING_RECORD_MISC_KERNEL) {
		hit_kernel(hits, sample.ip);
		return;
	}
	mapping = tool_machine_user(hits->machine, sample.pid, sample.ip);
	if (mapping)
		hit(hits, mapping, sample.pid);
}

/* --buildid-all: as if each mapping had been hit when it was made. */
static void hit_mapped(struct hits *hits, const struct perfring_record *record)
{
	const struct perfring_record_mmap2 *map = &record->is.mmap2;
	const struct perfring_mapping *mapping;

	if ((record->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) == PERFRING_RECORD_MISC_KERNEL) {
		hit_kernel(hits, record->type == PERFRING_RECORD_MMAP2 ? map->addr : record->is.mmap.addr);
		return;
	}
	if (record->type != PERFRING_RECORD_MMAP2)
		return;
	mapping = tool_machine_user(hits->machine, map->pid, map->addr);
	if (mapping)
		hit(hits, mapping, map->pid);
}

static void take(struct hits *hits, const struct perfring_item *item, bool wants_living)
{
	struct perfring_record record;

	if (item->record->type == PERFRING_RECORD_SAMPLE) {
		if (hits->wants_ids)
			hit_sample(hits, item);
		return;
	}
	if (perfring_record_decode(item->format, item->record, &record, NULL))
		return;
	if (hits->wants_ids)
		tool_machine_take(hits->machine, &record);
	if (hits->wants_ids && hits->wants_all &&
	    (record.type == PERFRING_RECORD_MMAP2 || record.type == PERFRING_RECORD_MMAP))
		hit_mapped(hits, &record);
	if (wants_living)
		tool_living_take(&hits->living, &record);
}

/* Reads the file back, as perf does.  Returns false when interrupted: there may be any number of objects, signals are
 * blocked meanwhile, and a pending one that would end the command ends the search. */
static bool find_hits(const struct recording *recording, struct hits *hits, bool wants_living)
{
	struct perfring_file *data;
	struct perfring_item item;
	uint32_t items = 0;
	uint64_t since = tool_now();
	bool goes_on = true;
	char path[64];
	int one;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording->out.fd);
	one = perfring_file_open(&data, path);
	while (one >= 0 && goes_on) {
		memset(&item, 0, sizeof(item));
		one = perfring_file_next(data, &item);
		/* a record of no event is passed over */
		if (!one || (one < 0 && !(one == -EBADMSG && item.record)))
			break;
		one = 1;
		if (item.format)
			take(hits, &item, wants_living);
		goes_on = ++items % 1024 || !tool_is_cut(since);
	}
	perfring_file_close(data);
	/* the reason why a broken recording ended was reported */
	if (one < 0 && !recording->is_broken)
		take_error(hits, "reading it back", one == -ENOENT || one == -EINVAL ? -EIO : one);
	return goes_on;
}

/* ---- which file it was ---- */

/* On overlayfs, btrfs and others the device and inode of records differ from those of stat.  So this process maps the file
 * and observes its own record. */
static void open_own_event(struct hits *hits)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .mmap = 1,
				       .mmap_data = 1,
				       .mmap2 = 1};

	int ret;

	hits->event = perfring_event_open(&attr, 0, -1, -1, 0);
	hits->event_error = hits->event < 0 ? hits->event : 0;
	if (hits->event < 0)
		return;
	ret = perfring_format_from_attr(&hits->format, &attr);
	/* two pages: a record with a path may have more than one has */
	if (!ret)
		ret = perfring_ring_map(&hits->ring, hits->event, 2, 0);
	if (!ret) {
		ret = perfring_reader_open(&hits->reader, &hits->ring, 0);
		if (!ret)
			return;
		perfring_ring_close(&hits->ring);
	}
	close(hits->event);
	hits->event = -1;
	hits->event_error = ret;
}

static void close_own_event(struct hits *hits)
{
	if (hits->event < 0)
		return;
	perfring_reader_close(&hits->reader);
	perfring_ring_close(&hits->ring);
	close(hits->event);
}

static void find_recorded(struct hits *hits, uintptr_t addr, struct perfring_file_id *file)
{
	const struct perf_event_header *bytes;
	struct perfring_record record;

	if (hits->event < 0 || perfring_reader_observe(&hits->reader) < 0)
		return;
	while (perfring_reader_next(&hits->reader, &bytes) == 1)
		if (bytes->type == PERFRING_RECORD_MMAP2 &&
		    !perfring_record_decode(&hits->format, bytes, &record, NULL) && record.is.mmap2.addr == addr)
			*file = record.is.mmap2.file;
	perfring_reader_return(&hits->reader);
}

/* Returns 0 or -errno. */
static int find_listed(uintptr_t addr, struct perfring_file_id *file)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL, *end;
	size_t capacity = 0;
	int error = 0;

	if (!maps)
		return -errno;
	while (!file->ino && !error) {
		errno = 0;
		if (getline(&line, &capacity, maps) <= 0) {
			error = errno ? -errno : -EIO;
			break;
		}
		if (strtoull(line, &end, 16) != addr || *end != '-')
			continue;
		if (sscanf(end, "-%*x %*s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64, &file->maj, &file->min, &file->ino) !=
		    3)
			file->ino = 0;
		break;
	}
	free(line);
	fclose(maps);
	return error;
}

static void identify(struct hits *hits, int fd, struct object *object)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	/* what was mapped since takes no space */
	find_recorded(hits, 0, &object->recorded);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		object->error = -errno;
		return;
	}
	find_recorded(hits, (uintptr_t)map, &object->recorded);
	object->error = find_listed((uintptr_t)map, &object->listed);
	munmap(map, page);
	if (!object->recorded.ino && !object->error)
		object->error = hits->event_error;
}

/* Opens a name, and finds or reads the file's build id; a file is read once, whatever its names are.  NULL: *error is why. */
static const struct object *look_into(struct hits *hits, int32_t pid, const char *name, int *error)
{
	int fd = perfring_object_open(pid, name);
	struct object *object, *known;
	struct stat file;

	if (fd < 0 || fstat(fd, &file)) {
		*error = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	object = tool_allocate(NULL, 1, sizeof(*object));
	*object = (struct object){.dev = file.st_dev, .ino = file.st_ino};
	known = keep(object, &hits->objects, compare_objects);
	if (known == object) {
		object->size = perfring_build_id_in(fd, object->id);
		identify(hits, fd, object);
	} else {
		free(object);
	}
	close(fd);
	return known;
}

/* Whether the object is the file of a record.  /proc/PID/maps has no generation of inodes: so it is not compared if it is unknown. */
static bool is_of(const struct object *object, const struct perfring_file_id *file)
{
	const struct perfring_file_id *listed = &object->listed;

	return is_one_file(&object->recorded, file) ||
	       ((!object->recorded.ino || !file->ino_generation) && listed->maj == file->maj &&
		listed->min == file->min && listed->ino == file->ino);
}

static uint32_t find_vdso(struct hits *hits, uint8_t *id)
{
	int fd = perfring_vdso_open();
	int64_t size = fd < 0 ? fd : perfring_build_id_in(fd, id);

	if (fd >= 0)
		close(fd);
	take_error(hits, VDSO, size);
	return size > 0 ? (uint32_t)size : 0;
}

/* The file that was hit, by its name here or where process `pid` sees it; NULL: *error may be why. */
static const struct object *find_object(struct hits *hits, const struct hit *hit, int32_t pid, int *error)
{
	int failed = 0;
	const struct object *object = look_into(hits, pid, hit->named->name, &failed);

	if (object && is_of(object, &hit->file))
		return object;
	failed = object ? object->error : failed;
	if (!is_usual(failed))
		*error = failed;
	return NULL;
}

/* Finds the id of a file that was hit: by its name here, then where the process sees it.  Returns the id's bytes; 0: not known. */
static uint32_t find_id(struct hits *hits, const struct hit *hit, uint8_t *id)
{
	const char *name = hit->named->name;
	const struct object *object;
	int error = 0;

	if (*name != '/')
		return find_vdso(hits, id);
	if (hit->file.has_build_id) {
		memcpy(id, hit->file.build_id, sizeof(hit->file.build_id));
		return hit->file.build_id_size;
	}
	if (!hit->file.ino)
		return 0;
	object = find_object(hits, hit, 0, &error);
	if (!object && hit->pid && hit->pid <= INT32_MAX)
		object = find_object(hits, hit, (int32_t)hit->pid, &error);
	take_error(hits, name, object ? object->size : error);
	if (!object || object->size <= 0)
		return 0;
	memcpy(id, object->id, sizeof(object->id));
	return (uint32_t)object->size;
}

static void take_id(struct named *named, const uint8_t *id, uint32_t size)
{
	if (!named->is_known) {
		named->is_known = true;
		named->size = size;
		memcpy(named->id, id, size);
	} else if (named->size != size || memcmp(named->id, id, size)) {
		named->is_torn = true;
	}
}

/* ---- written ---- */

static int write_ids(const struct recording *recording, struct hits *hits, bool *goes_on)
{
	uint8_t id[PERFRING_BUILD_ID_SIZE] = {0};
	int64_t size = hits->kernel ? perfring_build_id_of_kernel(id) : 0;
	uint64_t since = tool_now();
	int ret = 0;

	/* a kernel may hide it */
	if (size != -EACCES && size != -EPERM)
		take_error(hits, "the kernel", size);
	if (size > 0)
		ret = perfring_file_writer_put_build_id(recording->writer, PERFRING_RECORD_MISC_KERNEL, -1,
						 "[kernel.kallsyms]", id, (uint32_t)size);
	if (!recording->soft)
		open_own_event(hits);
	for (size_t i = 0; i < hits->count; i++) {
		/* a name of which not every file was looked at is not known */
		uint32_t found = *goes_on ? find_id(hits, hits->list[i], id) : 0;

		take_id(hits->list[i]->named, id, found);
		*goes_on = *goes_on && !tool_is_cut(since);
	}
	close_own_event(hits);
	for (size_t i = 0; !ret && i < hits->name_count; i++) {
		const struct named *named = hits->names[i];

		if (named->is_module && (size = perfring_build_id_of_module(named->name, id)) > 0)
			ret = perfring_file_writer_put_build_id(recording->writer, PERFRING_RECORD_MISC_KERNEL, -1,
								named->name, id, (uint32_t)size);
		if (!ret && named->size && !named->is_torn)
			ret = perfring_file_writer_put_build_id(recording->writer, PERFRING_RECORD_MISC_USER, -1, named->name,
							 named->id, named->size);
	}
	return ret;
}

int tool_record_read_back(const struct recording *recording, struct recorded_pids *living)
{
	struct hits hits = {.machine = tool_machine_open(), .wants_ids = !recording->no_build_ids, .wants_all = recording->all_build_ids, .event = -1};
	bool goes_on = find_hits(recording, &hits, living);
	int ret = hits.wants_ids ? write_ids(recording, &hits, &goes_on) : 0;

	if (!goes_on && hits.wants_ids)
		tool_complain("record: %s: warning: interrupted: not every build id is in it", recording->path);
	else if (hits.error)
		tool_complain("record: %s: warning: %s: %s: not %s is known in %s", recording->path, hits.unread,
			      strerror(-hits.error), hits.wants_ids ? "every build id" : "every process",
			      hits.wants_ids ? "it" : "the next file");
	if (living)
		tool_living_end(&hits.living, living);
	tdestroy(hits.known, free);
	tdestroy(hits.called, free);
	tdestroy(hits.objects, free);
	free(hits.list);
	free(hits.names);
	free(hits.unread);
	tool_machine_close(hits.machine);
	return ret;
}
