/* process_state.c - the state of the process as records: COMM, FORK and EXIT of threads, MMAP2 of mappings.
 *
 *                  written by              for events with
 *   FORK, EXIT     a thread that joins,    task, comm, mmap, mmap2 or mmap_data, if they are on (docs/abi.md 5)
 *                  leaves
 *   COMM           a thread that joins     comm, if they are on
 *   READ           a thread that leaves    inherit_stat, on or off, if the thread is not the event's own (docs/abi.md 9.7)
 *   COMM, MMAP(2)  put_state               comm; mmap or mmap2 (executable mappings), mmap_data (the others)
 *
 * The first thread has no FORK, because no thread of the process created it.  Who created the others is known of
 * perfring_soft_thread_create's: their FORK names that thread, the FORK of others the first one.
 *
 * put_state remembers a hash of each thing that is in the ring.  Each call replaces the hashes by those of what exists now,
 * so what was unmapped and is mapped again at the same address is new.  What found the ring full is tried again.  Into a ring
 * that overwrites each call writes all.
 */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/array.h"
#include "os/small_file.h"
#include "os/map.h"
#include "os/note.h"
#include "sample/proc_map.h"
#include "soft_private.h"

enum {
	COMM_SIZE = 16,
};

static struct perfring_string string_of(const char *text, size_t max)
{
	struct perfring_string string = {.data = text, .size = (uint32_t)strnlen(text, max)};

	return string;
}

static bool put_comm(struct soft_instance *instance, uint32_t tid, const char *comm)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM};

	record.is.comm.pid = instance->thread->pid;
	record.is.comm.tid = tid;
	record.is.comm.comm = string_of(comm, COMM_SIZE - 1);
	return perfring__soft_put_record(instance, &record);
}

/* ---- threads ---- */

/* The thread's instance of an event that writes FORK and EXIT now, or NULL. */
static struct soft_instance *task_instance(const struct perfring_soft_event *event, const struct soft_thread *thread)
{
	const struct perf_event_attr *attr = &event->attr;
	bool has_tasks = attr->task || attr->comm || attr->mmap || attr->mmap2 || attr->mmap_data;

	return has_tasks && PERFRING_LOAD(&event->on) ? event->instances[thread->index] : NULL;
}

void perfring__soft_put_fork(struct soft_thread *thread, const struct soft_thread *creator)
{
	struct perfring_record record = {.type = PERFRING_RECORD_FORK};
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	char comm[COMM_SIZE] = "";

	prctl(PR_GET_NAME, comm);
	record.is.fork.pid = record.is.fork.ppid = thread->pid;
	record.is.fork.ptid = creator ? creator->tid : thread->pid;
	record.is.fork.tid = thread->tid;
	for (event = perfring__soft_events; event; event = event->all) {
		instance = task_instance(event, thread);
		if (instance && thread->tid != thread->pid)
			perfring__soft_put_record(instance, &record);
		if (instance && event->attr.comm)
			put_comm(instance, thread->tid, comm);
	}
}

void perfring__soft_put_exit(struct soft_thread *thread)
{
	struct perfring_record record = {.type = PERFRING_RECORD_EXIT};
	struct perfring_soft_event *event;
	struct soft_instance *instance;

	record.is.exit.pid = thread->pid;
	record.is.exit.tid = thread->tid;
	for (event = perfring__soft_events; event; event = event->all) {
		instance = task_instance(event, thread);
		if (!instance)
			continue;
		/* Only here: without such events a thread makes no system call. */
		record.is.exit.ppid = record.is.exit.ptid = (uint32_t)getppid();
		perfring__soft_put_record(instance, &record);
	}
	for (event = perfring__soft_events; event; event = event->all) { /* from the last to the first: read_at_exit */
		instance = event->attr.inherit_stat && event->has_heirs ? event->instances[thread->index] : NULL;
		if (instance && event->opener != thread)
			perfring__soft_put_read(instance);
	}
}

/* ---- build ids: from the notes of loaded objects ---- */

struct segment {
	uint64_t low, high; /* executable */
	uint8_t id[PERFRING_OS_BUILD_ID_MAX];
	uint8_t size; /* of the id, or 0 */
};

struct segments {
	struct segment *array;
	uint32_t count, capacity;
	int error;
};

/* Whether these bytes are in a readable segment of the object. */
static bool is_readable(const struct dl_phdr_info *object, const ElfW(Phdr) * part)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *load = &object->dlpi_phdr[i];

		if (load->p_type == PT_LOAD && (load->p_flags & PF_R) && part->p_vaddr >= load->p_vaddr &&
		    part->p_vaddr - load->p_vaddr <= load->p_filesz &&
		    part->p_memsz <= load->p_filesz - (part->p_vaddr - load->p_vaddr))
			return true;
	}
	return false;
}

static int add_object(struct dl_phdr_info *object, size_t size, void *to)
{
	struct segments *segments = to;
	struct segment segment = {0};

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && !segment.size; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_NOTE && is_readable(object, part))
			segment.size =
				(uint8_t)perfring__os_note_build_id((const void *)(object->dlpi_addr + part->p_vaddr),
								    part->p_memsz, false, part->p_align, segment.id);
	}
	for (int i = 0; i < object->dlpi_phnum && segment.size; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		segments->error = perfring__os_array_grow(&segments->array, segments->count, &segments->capacity,
							  sizeof(*segments->array));
		if (segments->error)
			return 1;
		segment.low = object->dlpi_addr + part->p_vaddr;
		segment.high = segment.low + part->p_memsz;
		segments->array[segments->count++] = segment;
	}
	return 0;
}

static const struct segment *segment_at(const struct segments *segments, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < segments->count; i++)
		if (segments->array[i].low < high && low < segments->array[i].high)
			return &segments->array[i];
	return NULL;
}

/* ---- mappings ---- */

/* A line of maps.  As in the kernel's records, a mapping without a file has its address for an offset. */
static bool read_map(const char *line, struct perfring_record_mmap2 *to)
{
	struct perfring_os_map map;

	if (!perfring__os_map_parse(&map, line))
		return false;
	*to = perfring__proc_map_record(&map, 0);
	if (!*map.name)
		to->pgoff = map.low;
	return true;
}

static bool put_map(struct soft_instance *instance, const struct perfring_record_mmap2 *map,
		    const struct segments *segments)
{
	struct perfring_record record = {.misc = PERFRING_RECORD_MISC_USER};
	const struct segment *segment = segment_at(segments, map->addr, map->addr + map->len);

	if (!(map->prot & PROT_EXEC))
		record.misc |= PERFRING_RECORD_MISC_MMAP_DATA;
	if (instance->event->attr.mmap2) {
		record.type = PERFRING_RECORD_MMAP2;
		record.is.mmap2 = *map;
		record.is.mmap2.pid = instance->thread->pid;
		record.is.mmap2.tid = instance->thread->tid;
		if (segment) {
			record.is.mmap2.file.has_build_id = true;
			record.is.mmap2.file.build_id_size = segment->size;
			memcpy(record.is.mmap2.file.build_id, segment->id, sizeof(segment->id));
		}
	} else {
		record.type = PERFRING_RECORD_MMAP;
		record.is.mmap.pid = instance->thread->pid;
		record.is.mmap.tid = instance->thread->tid;
		record.is.mmap.addr = map->addr;
		record.is.mmap.len = map->len;
		record.is.mmap.pgoff = map->pgoff;
		record.is.mmap.filename = map->filename;
	}
	return perfring__soft_put_record(instance, &record);
}

/* ---- what was written ---- */

static bool contains(const struct soft_hashes *hashes, uint64_t hash)
{
	for (uint32_t i = 0; i < hashes->count; i++)
		if (hashes->array[i] == hash)
			return true;
	return false;
}

/* One call of put_state. */
struct pass {
	struct soft_instance *instance;
	const struct segments *segments;
	struct soft_hashes there; /* in the ring after this pass */
	int written;
};

/* Notes a thing that is in the ring.  Returns 0 or -ENOMEM. */
static int remember(struct pass *pass, uint64_t hash, bool is_new)
{
	struct soft_hashes *there = &pass->there;
	int ret = perfring__os_array_grow(&there->array, there->count, &there->capacity, sizeof(*there->array));

	if (ret)
		return ret;
	there->array[there->count++] = hash;
	pass->written += is_new;
	return 0;
}

static int put_comms(struct pass *pass)
{
	const struct soft_thread *thread;
	char path[64], comm[COMM_SIZE + 1];
	uint64_t hash;
	bool is_new;
	int ret = 0;

	for (thread = perfring__soft_threads; !ret && thread; thread = thread->next) {
		snprintf(path, sizeof(path), "/proc/self/task/%u/comm", thread->tid);
		if (perfring__os_file_read(path, comm, sizeof(comm)) < 0)
			continue;
		hash = perfring__soft_hash(comm, thread->tid);
		is_new = !contains(&pass->instance->event->state, hash);
		if (!is_new || put_comm(pass->instance, thread->tid, comm))
			ret = remember(pass, hash, is_new);
	}
	return ret;
}

static int put_maps(struct pass *pass, char *text)
{
	const struct perf_event_attr *attr = &pass->instance->event->attr;
	struct perfring_record_mmap2 map;
	uint64_t hash;
	bool is_new;
	int ret = 0;
	char *line;

	while (!ret && (line = strsep(&text, "\n"))) {
		if (!read_map(line, &map))
			continue;
		if (map.prot & PROT_EXEC ? !attr->mmap && !attr->mmap2 : !attr->mmap_data)
			continue;
		hash = perfring__soft_hash(line, 0);
		is_new = !contains(&pass->instance->event->state, hash);
		if (!is_new || put_map(pass->instance, &map, pass->segments))
			ret = remember(pass, hash, is_new);
	}
	return ret;
}

static int put_all(struct perfring_soft_event *event, char *maps, const struct segments *segments)
{
	struct soft_thread *self = perfring__soft_self;
	struct pass pass = {.instance = self ? event->instances[self->index] : NULL, .segments = segments};
	int ret = 0;

	if (!pass.instance || !pass.instance->writer)
		return -EINVAL;
	if (event->attr.write_backward) /* the ring overwrites, so what was written may be gone */
		event->state.count = 0;
	if (event->attr.comm)
		ret = put_comms(&pass);
	if (!ret)
		ret = put_maps(&pass, maps);
	if (ret) {
		free(pass.there.array); /* the next call repeats some records */
		return ret;
	}
	free(event->state.array);
	event->state = pass.there;
	return pass.written;
}

int perfring_soft_put_state(struct perfring_soft_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	struct segments segments = {0};
	char *maps = NULL;
	size_t size;
	int ret = 0;

	/* Before our lock: the loader has its own. thread-self: the process's first thread may have ended. */
	if (attr->mmap || attr->mmap2 || attr->mmap_data)
		ret = perfring__os_file_load("/proc/thread-self/maps", &maps, &size);
	if (!ret && event->format.flags & UINT64_C(1) << PERFRING_ATTR_FLAG_build_id && attr->mmap2) {
		dl_iterate_phdr(add_object, &segments);
		ret = segments.error;
	}
	if (!ret) {
		perfring__soft_lock_take();
		ret = put_all(event, maps, &segments);
		perfring__soft_lock_give();
	}
	free(maps);
	free(segments.array);
	return ret;
}
