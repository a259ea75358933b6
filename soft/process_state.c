/* process_state.c - what the process is, as records: COMM, FORK and EXIT of its threads, MMAP2 of what is mapped.
 *
 *                      written by                      for events that
 *   FORK, EXIT         the thread, as it joins, leaves  are on, and have task, comm, mmap, mmap2 or mmap_data (docs/abi.md 5)
 *   COMM               the thread, as it joins          are on, and have comm
 *   COMM, MMAP(2)      put_state                        have comm; mmap or mmap2 (what is executable), mmap_data (the rest)
 *
 * A process's first thread was not made by one of its threads: it has no FORK.  Of the others it is not known who made
 * them, and the first is named.
 *
 * put_state remembers what it has written as one number for each thing.  Each time the numbers of what is there now take
 * the old ones' place, so what was unmapped and comes back at its old place is new.  What found the ring full is not
 * remembered: it is tried again.
 */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <perfring/record.h>

#include "os/file.h"
#include "os/map.h"
#include "os/note.h"
#include "soft_private.h"

enum {
	COMM_SIZE = 16,
	SMALL = 128, /* bytes of a FORK, EXIT or COMM with its trailer, and more */
	LARGE = PATH_MAX + 256,
};

static struct perfring_string string_of(const char *text, size_t most)
{
	struct perfring_string string = {.data = text, .size = (uint32_t)strnlen(text, most)};

	return string;
}

/* Into the instance's ring, with a trailer of now.  Returns whether it was taken; what is refused is counted. */
static bool put(struct soft_instance *instance, struct perfring_record *record, void *room, size_t size)
{
	const struct perfring_soft_event *event = instance->event;
	struct perfring_trailer *trailer = &record->trailer;
	int64_t used;

	trailer->pid = instance->thread->pid;
	trailer->tid = instance->thread->tid;
	trailer->time = perfring_soft_now(event);
	trailer->id = trailer->identifier = event->id;
	trailer->stream_id = instance->id;
	trailer->cpu = (uint32_t)sched_getcpu();
	if (record->type == PERFRING_RECORD_FORK || record->type == PERFRING_RECORD_EXIT)
		record->is.fork.time = trailer->time; /* EXIT's members are the same */
	used = perfring_record_encode(&event->format, record, room, size);
	return used > 0 && perfring_writer_write(instance->writer, &instance->output, room, (uint64_t)used);
}

static bool put_comm(struct soft_instance *instance, uint32_t tid, const char *comm)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM};
	unsigned char room[SMALL];

	record.is.comm.pid = instance->thread->pid;
	record.is.comm.tid = tid;
	record.is.comm.comm = string_of(comm, COMM_SIZE - 1);
	return put(instance, &record, room, sizeof(room));
}

/* ---- threads ---- */

static bool tells_tasks(const struct perf_event_attr *attr)
{
	return attr->task || attr->comm || attr->mmap || attr->mmap2 || attr->mmap_data;
}

/* The thread's instance of an event that tells of it now. */
static struct soft_instance *teller(const struct perfring_soft_event *event, const struct soft_thread *thread)
{
	struct soft_instance *instance = event->instances[thread->index];

	return PERFRING_LOAD(&event->on) && tells_tasks(&event->attr) && instance && instance->writer ? instance : NULL;
}

void perfring_soft_put_fork(struct soft_thread *thread)
{
	struct perfring_soft_event *event;
	struct perfring_record record = {.type = PERFRING_RECORD_FORK};
	struct soft_instance *instance;
	unsigned char room[SMALL];
	char comm[COMM_SIZE] = "";

	prctl(PR_GET_NAME, comm);
	record.is.fork.pid = record.is.fork.ppid = record.is.fork.ptid = thread->pid;
	record.is.fork.tid = thread->tid;
	for (event = perfring_soft_events; event; event = event->all) {
		instance = teller(event, thread);
		if (instance && thread->tid != thread->pid)
			put(instance, &record, room, sizeof(room));
		if (instance && event->attr.comm)
			put_comm(instance, thread->tid, comm);
	}
}

void perfring_soft_put_exit(struct soft_thread *thread)
{
	struct perfring_record record = {.type = PERFRING_RECORD_EXIT};
	struct perfring_soft_event *event;
	struct soft_instance *instance;
	unsigned char room[SMALL];

	record.is.exit.pid = thread->pid;
	record.is.exit.tid = thread->tid;
	for (event = perfring_soft_events; event; event = event->all) {
		instance = teller(event, thread);
		if (!instance)
			continue;
		/* Here: a thread that has no events any more makes no system call for them. */
		record.is.exit.ppid = record.is.exit.ptid = (uint32_t)getppid();
		put(instance, &record, room, sizeof(room));
	}
}

/* ---- build-ids: from the notes of what the loader has loaded ---- */

struct segment {
	uint64_t low, high; /* executable */
	uint8_t id[PERFRING_OS_BUILD_ID_MAX];
	uint8_t size; /* of the id; 0: none */
};

struct segments {
	struct segment *of;
	size_t count, room;
	bool failed;
};

/* Whether the object's own program headers have it mapped and readable. */
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

static int take_object(struct dl_phdr_info *object, size_t size, void *to)
{
	struct segments *segments = to;
	struct segment segment = {0};

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && !segment.size; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_NOTE && is_readable(object, part))
			segment.size =
				(uint8_t)perfring_os_note_build_id((const void *)(object->dlpi_addr + part->p_vaddr),
								   part->p_memsz, false, part->p_align, segment.id);
	}
	for (int i = 0; i < object->dlpi_phnum && segment.size; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		if (segments->count == segments->room) {
			size_t more = segments->room ? 2 * segments->room : 64;
			struct segment *grown = reallocarray(segments->of, more, sizeof(*grown));

			if (!grown) {
				segments->failed = true;
				return 1;
			}
			segments->of = grown;
			segments->room = more;
		}
		segment.low = object->dlpi_addr + part->p_vaddr;
		segment.high = segment.low + part->p_memsz;
		segments->of[segments->count++] = segment;
	}
	return 0;
}

static const struct segment *segment_at(const struct segments *segments, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < segments->count; i++)
		if (segments->of[i].low < high && low < segments->of[i].high)
			return &segments->of[i];
	return NULL;
}

/* ---- mappings ---- */

/* What a line of maps says.  A mapping without a file has its address for an offset, as in the kernel's own records. */
static bool read_map(const char *line, struct perfring_record_mmap2 *to)
{
	struct perfring_os_map map;

	if (!perfring_os_map_parse(&map, line))
		return false;
	*to = (struct perfring_record_mmap2){
		.addr = map.low,
		.len = map.high - map.low,
		.pgoff = *map.name ? map.offset : map.low,
		.file = {.maj = map.major, .min = map.minor, .ino = map.inode},
		.prot = map.prot,
		.flags = map.flags,
		.filename = string_of(*map.name ? map.name : "//anon", PATH_MAX - 1),
	};
	return true;
}

/* Returns whether it was taken. */
static bool put_map(struct soft_instance *instance, const struct perfring_record_mmap2 *map,
		    const struct segments *segments, void *room)
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
	return put(instance, &record, room, LARGE);
}

/* ---- what was written ---- */

struct state {
	size_t count, room;
	uint64_t number[];
};

/* Of a thing's text (FNV-1a). */
static uint64_t number_of(const char *text, uint64_t tid)
{
	uint64_t number = UINT64_C(0xcbf29ce484222325) ^ tid;

	for (; *text; text++)
		number = (number ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return number;
}

static bool knows(const struct state *state, uint64_t number)
{
	for (size_t i = 0; state && i < state->count; i++)
		if (state->number[i] == number)
			return true;
	return false;
}

static bool remember(struct state **state, uint64_t number)
{
	size_t room = *state ? (*state)->room : 0;
	struct state *grown;

	if (!*state || (*state)->count == room) {
		room = 2 * room + 64;
		grown = realloc(*state, sizeof(*grown) + room * sizeof(grown->number[0]));
		if (!grown)
			return false;
		if (!*state)
			grown->count = 0;
		grown->room = room;
		*state = grown;
	}
	(*state)->number[(*state)->count++] = number;
	return true;
}

void perfring_soft_state_forget(struct perfring_soft_event *event)
{
	free(event->state);
	event->state = NULL;
}

static int put_comms(struct soft_instance *instance, const struct state *old, struct state **now)
{
	const struct soft_thread *thread;
	char path[64], comm[COMM_SIZE + 1];
	bool known, there;
	uint64_t number;
	int written = 0;

	for (thread = perfring_soft_threads; thread; thread = thread->next) {
		snprintf(path, sizeof(path), "/proc/self/task/%u/comm", thread->tid);
		if (perfring_os_file_read(path, comm, sizeof(comm)) < 0)
			continue;
		number = number_of(comm, thread->tid);
		known = knows(old, number);
		there = known || put_comm(instance, thread->tid, comm);
		if (there && !remember(now, number))
			return -ENOMEM;
		written += there && !known;
	}
	return written;
}

static int put_maps(struct soft_instance *instance, const struct state *old, struct state **now, char *text,
		    const struct segments *segments, void *room)
{
	const struct perf_event_attr *attr = &instance->event->attr;
	struct perfring_record_mmap2 map;
	bool known, there;
	uint64_t number;
	int written = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (!read_map(line, &map))
			continue;
		if (map.prot & PROT_EXEC ? !attr->mmap && !attr->mmap2 : !attr->mmap_data)
			continue;
		number = number_of(line, 0);
		known = knows(old, number);
		there = known || put_map(instance, &map, segments, room);
		if (there && !remember(now, number))
			return -ENOMEM;
		written += there && !known;
	}
	return written;
}

static int put_all(struct perfring_soft_event *event, char *maps, const struct segments *segments, void *room)
{
	struct soft_thread *self = perfring_soft_self;
	struct soft_instance *instance = self ? event->instances[self->index] : NULL;
	struct state *now = NULL;
	int comms = 0, written;

	if (!instance || !instance->writer)
		return -EINVAL;
	if (event->attr.comm)
		comms = put_comms(instance, event->state, &now);
	written = comms < 0 ? comms : put_maps(instance, event->state, &now, maps, segments, room);
	if (written < 0) {
		free(now); /* some will be written twice */
		return written;
	}
	free(event->state);
	event->state = now;
	return comms + written;
}

int perfring_soft_put_state(struct perfring_soft_event *event)
{
	struct segments segments = {0};
	char *maps = NULL;
	size_t size;
	void *room;
	int ret = 0;

	/* Before the lock: the loader has one of its own.  Not /proc/self: its first thread may have ended. */
	room = malloc(LARGE);
	if (!room)
		ret = -ENOMEM;
	else if (event->attr.mmap || event->attr.mmap2 || event->attr.mmap_data)
		ret = perfring_os_file_load("/proc/thread-self/maps", &maps, &size);
	if (!ret && event->format.flags & UINT64_C(1) << PERFRING_ATTR_FLAG_build_id && event->attr.mmap2) {
		dl_iterate_phdr(take_object, &segments);
		ret = segments.failed ? -ENOMEM : 0;
	}
	if (!ret) {
		perfring_soft_lock_take();
		ret = put_all(event, maps, &segments, room);
		perfring_soft_lock_give();
	}
	free(room);
	free(maps);
	free(segments.of);
	return ret;
}
