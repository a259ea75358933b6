/* maps.c - names of threads and mappings of processes and of the kernel, from records.
 *
 * The functions of maps.h.  tasks.c has the threads, intervals.c their mappings, intern.c names and objects.  Records are
 * foreign: each table has a bound (docs/limits.md).
 */
#include <stdlib.h>
#include <perfring/maps.h>

#include "intern.h"
#include "intervals.h"
#include "tasks.h"

/* A test has lower ones. */
#ifndef MAPPINGS_MAX
#define MAPPINGS_MAX PERFRING_MAPS_MAPPINGS_MAX
#define NAME_BYTES_MAX PERFRING_MAPS_NAME_BYTES_MAX
#endif

struct perfring_maps {
	struct perfring_tasks tasks;
	struct perfring_interval *kernel;
	struct perfring_intern intern;
	const char *idle; /* the name of thread 0 */
	uint64_t forgotten;
	uint64_t versions; /* so far, of all processes */
};

/* ---- names and objects ---- */

const char *perfring_maps_name(struct perfring_maps *maps, const char *text, size_t size)
{
	const void *copy;

	if (perfring__intern(&maps->intern, text, strnlen(text, size), &copy))
		return NULL;
	return copy ? copy : "";
}

static bool starts_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

static uint32_t kind_of(const char *name)
{
	static const char *const memory[] = {"//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "[heap]", "[stack"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (starts_with(name, memory[i]))
			return PERFRING_MAPS_MEMORY;
	if (!strcmp(name, "[vdso]"))
		return PERFRING_MAPS_VDSO;
	return name[0] == '/' && name[1] != '/' ? PERFRING_MAPS_FILE : PERFRING_MAPS_OTHER;
}

/* The kernel writes zeros after an id.  Where it has left the bit of another event's record set (docs/abi.md 14.24), a device is
 * where the size is, and an inode and its generation are where the id is. */
static bool has_build_id(const struct perfring_file_id *file)
{
	static const uint8_t zeros[sizeof(file->build_id)];

	return file->has_build_id && file->build_id_size <= sizeof(file->build_id) &&
	       !memcmp(file->build_id + file->build_id_size, zeros, sizeof(file->build_id) - file->build_id_size);
}

static const struct perfring_maps_object *get_object(struct perfring_maps *maps, struct perfring_string name,
						     const struct perfring_file_id *file, int kind)
{
	static const struct perfring_maps_object none = {.name = "", .kind = PERFRING_MAPS_OTHER};
	struct perfring_maps_object key;
	const void *copy;

	memset(&key, 0, sizeof(key)); /* what is compared has no bytes of chance between its members */
	key.name = perfring_maps_name(maps, name.data, name.size);
	if (!key.name)
		return NULL;
	key.kind = kind < 0 ? kind_of(key.name) : (uint32_t)kind;
	if (file && has_build_id(file)) {
		key.file.has_build_id = true;
		key.file.build_id_size = file->build_id_size;
		memcpy(key.file.build_id, file->build_id, sizeof(file->build_id));
	} else if (file && !file->has_build_id) {
		key.file.maj = file->maj;
		key.file.min = file->min;
		key.file.ino = file->ino;
		key.file.ino_generation = file->ino_generation;
	}
	if (perfring__intern(&maps->intern, &key, sizeof(key), &copy))
		return NULL;
	return copy ? copy : &none;
}

/* ---- records ---- */

/* Forgets tasks, ended ones first, then the oldest, and at last the kernel's mappings, until the mappings are within their bound. */
static void bound_mappings(struct perfring_maps *maps)
{
	while (maps->tasks.intervals.count > MAPPINGS_MAX && perfring__tasks_forget(&maps->tasks))
		;
	if (maps->tasks.intervals.count <= MAPPINGS_MAX)
		return;
	perfring__intervals_drop(&maps->tasks.intervals, maps->kernel);
	maps->kernel = NULL;
	maps->forgotten++;
}

static int put(struct perfring_maps *maps, struct perfring_interval **tree, const struct perfring_mapping *mapping)
{
	if (perfring__intervals_put(&maps->tasks.intervals, tree, mapping))
		return -ENOMEM;
	bound_mappings(maps);
	return 0;
}

static uint64_t end_of(uint64_t addr, uint64_t len)
{
	return len > UINT64_MAX - addr ? UINT64_MAX : addr + len;
}

static int take_kernel_mapping(struct perfring_maps *maps, struct perfring_interval **tree, struct perfring_string name,
			       const struct perfring_file_id *file, struct perfring_mapping *mapping)
{
	static const char kernel[] = "[kernel.kallsyms]", guest[] = "[guest.kernel.kallsyms";
	bool is_kernel = (name.size >= sizeof(kernel) - 1 && !memcmp(name.data, kernel, sizeof(kernel) - 1)) ||
			 (name.size >= sizeof(guest) - 1 && !memcmp(name.data, guest, sizeof(guest) - 1));

	mapping->object = get_object(maps, name, file, is_kernel ? PERFRING_MAPS_KERNEL : PERFRING_MAPS_MODULE);
	return mapping->object ? put(maps, tree, mapping) : -ENOMEM;
}

/* Puts a mapping, whose object is found by its name. */
static int take_mapping(struct perfring_maps *maps, uint16_t misc, struct perfring_string name,
			const struct perfring_file_id *file, struct perfring_mapping *mapping)
{
	struct perfring_task *process;

	switch (misc & PERFRING_RECORD_MISC_CPUMODE_MASK) {
	case PERFRING_RECORD_MISC_KERNEL:
		return take_kernel_mapping(maps, &maps->kernel, name, file, mapping);
	case PERFRING_RECORD_MISC_GUEST_KERNEL:
		process = perfring__tasks_get(&maps->tasks, mapping->pid);
		return process ? take_kernel_mapping(maps, &process->guest, name, file, mapping) : -ENOMEM;
	case PERFRING_RECORD_MISC_USER:
		process = perfring__tasks_get(&maps->tasks, mapping->pid);
		mapping->object = get_object(maps, name, file, -1);
		if (!process || !mapping->object)
			return -ENOMEM;
		if (mapping->object->kind ==
		    PERFRING_MAPS_VDSO) /* it is an object of its own, whatever its pages are */
			mapping->pgoff = 0;
		process->version = ++maps->versions; /* before the process may be forgotten */
		return put(maps, &process->maps, mapping);
	default:
		return 0;
	}
}

static int take_mmap(struct perfring_maps *maps, uint16_t misc, const struct perfring_record_mmap *mmap)
{
	struct perfring_mapping mapping = {.addr = mmap->addr,
					   .end = end_of(mmap->addr, mmap->len),
					   .pgoff = mmap->pgoff,
					   .pid = mmap->pid,
					   .prot = misc & PERFRING_RECORD_MISC_MMAP_DATA ? 0 : 4};

	return take_mapping(maps, misc, mmap->filename, NULL, &mapping);
}

static int take_mmap2(struct perfring_maps *maps, uint16_t misc, const struct perfring_record_mmap2 *mmap)
{
	struct perfring_mapping mapping = {.addr = mmap->addr,
					   .end = end_of(mmap->addr, mmap->len),
					   .pgoff = mmap->pgoff,
					   .pid = mmap->pid,
					   .prot = mmap->prot};

	return take_mapping(maps, misc, mmap->filename, &mmap->file, &mapping);
}

/* KSYMBOL has u32 len. */
static int take_ksymbol(struct perfring_maps *maps, const struct perfring_record_ksymbol *symbol)
{
	const struct perfring_mapping *there = perfring__intervals_find(maps->kernel, symbol->addr);
	struct perfring_mapping mapping = {
		.addr = symbol->addr, .end = end_of(symbol->addr, symbol->len), .pid = UINT32_MAX, .prot = 4};

	if (there && there->object->kind != PERFRING_MAPS_KSYMBOL)
		return 0;
	if (symbol->flags & PERFRING_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return there ? perfring__intervals_remove(&maps->tasks.intervals, &maps->kernel, there->addr,
							  there->end)
			     : 0;
	mapping.object = get_object(maps, symbol->name, NULL, PERFRING_MAPS_KSYMBOL);
	return mapping.object ? put(maps, &maps->kernel, &mapping) : -ENOMEM;
}

static int take_comm(struct perfring_maps *maps, uint16_t misc, const struct perfring_record_comm *comm)
{
	const char *name = perfring_maps_name(maps, comm->comm.data, comm->comm.size);
	struct perfring_task *task = perfring__tasks_get(&maps->tasks, comm->tid);

	if (!name || !task)
		return -ENOMEM;
	task->comm = name;
	task->has_ended = false;
	if (misc & PERFRING_RECORD_MISC_COMM_EXEC) {
		task = perfring__tasks_get(&maps->tasks, comm->pid);
		if (!task)
			return -ENOMEM;
		perfring__tasks_clear_maps(&maps->tasks, task);
	}
	return perfring__tasks_join(&maps->tasks, comm->tid, comm->pid);
}

/* What a child inherits from its parent. */
struct heritage {
	const char *comm;
	const perfring_word *namespaces;
	uint64_t namespace_count;
};

static struct heritage heritage_of(const struct perfring_maps *maps, uint32_t tid)
{
	const struct perfring_task *parent = perfring__tasks_find(&maps->tasks, tid);
	struct heritage heritage = {perfring_maps_comm(maps, tid), NULL, 0};

	if (parent) {
		heritage.namespaces = parent->namespaces;
		heritage.namespace_count = parent->namespace_count;
	}
	return heritage;
}

static void inherit(struct perfring_task *task, const struct heritage *heritage)
{
	task->comm = heritage->comm;
	task->namespaces = heritage->namespaces;
	task->namespace_count = heritage->namespace_count;
}

static int share_maps(struct perfring_maps *maps, uint32_t pid, uint32_t parent_pid)
{
	struct perfring_task *process = perfring__tasks_get(&maps->tasks, pid);
	const struct perfring_task *parent = perfring__tasks_find(&maps->tasks, parent_pid);

	if (!process)
		return -ENOMEM;
	perfring__tasks_clear_maps(&maps->tasks, process);
	process->maps = parent ? perfring__intervals_share(parent->maps) : NULL;
	process->version = parent ? parent->version : 0;
	return 0;
}

/* A FORK of a task that was there when the recording began (misc bit 13, or time 0) shares nothing: COMM and MMAP of the
 * task are in the file too, before or after it.  A task that started while these were being written has two FORKs; its
 * COMM and MMAP, which may follow an exec, are newer than the second. */
static int take_fork(struct perfring_maps *maps, uint16_t misc, const struct perfring_record_fork *fork)
{
	struct heritage heritage = heritage_of(maps, fork->ptid);
	struct perfring_task *child = perfring__tasks_get(&maps->tasks, fork->tid);
	bool was_old;

	if (!child)
		return -ENOMEM;
	was_old = child->is_old;
	child->has_ended = false;
	child->is_old = (misc & PERFRING_RECORD_MISC_FORK_EXEC) || !fork->time;
	if (!child->is_old && !was_old) {
		perfring__tasks_renew(&maps->tasks, child);
		inherit(child, &heritage);
		if (fork->pid != fork->ppid && share_maps(maps, fork->pid, fork->ppid))
			return -ENOMEM;
	} else if (child->is_old && !child->comm) {
		inherit(child, &heritage);
	}
	return perfring__tasks_join(&maps->tasks, fork->tid, fork->pid);
}

static int take_namespaces(struct perfring_maps *maps, const struct perfring_record_namespaces *namespaces)
{
	uint64_t count = namespaces->links.nr < 16 ? namespaces->links.nr : 16;
	struct perfring_task *task = perfring__tasks_get(&maps->tasks, namespaces->tid);
	const void *copy;

	if (!task || perfring__intern(&maps->intern, namespaces->links.words, (size_t)count * 16, &copy))
		return -ENOMEM;
	task->namespaces = copy;
	task->namespace_count = copy ? count : 0;
	return perfring__tasks_join(&maps->tasks, namespaces->tid, namespaces->pid);
}

int perfring_maps_take_record(struct perfring_maps *maps, const struct perfring_record *record)
{
	switch (record->type) {
	case PERFRING_RECORD_MMAP:
		return take_mmap(maps, record->misc, &record->is.mmap);
	case PERFRING_RECORD_MMAP2:
		return take_mmap2(maps, record->misc, &record->is.mmap2);
	case PERFRING_RECORD_COMM:
		return take_comm(maps, record->misc, &record->is.comm);
	case PERFRING_RECORD_FORK:
		return take_fork(maps, record->misc, &record->is.fork);
	case PERFRING_RECORD_EXIT:
		perfring__tasks_end(&maps->tasks, record->is.exit.tid);
		return 0;
	case PERFRING_RECORD_KSYMBOL:
		return take_ksymbol(maps, &record->is.ksymbol);
	case PERFRING_RECORD_NAMESPACES:
		return take_namespaces(maps, &record->is.namespaces);
	default:
		return 0;
	}
}

int perfring_maps_take(struct perfring_maps *maps, const struct perfring_item *item)
{
	struct perfring_record record;
	int error;

	switch (item->record->type) {
	case PERFRING_RECORD_MMAP:
	case PERFRING_RECORD_MMAP2:
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
	case PERFRING_RECORD_KSYMBOL:
	case PERFRING_RECORD_NAMESPACES:
		error = perfring_record_decode(item->format, item->record, &record, NULL);
		return error ? error : perfring_maps_take_record(maps, &record);
	default:
		return 0;
	}
}

/* ---- questions ---- */

const struct perfring_mapping *perfring_maps_find(const struct perfring_maps *maps, unsigned cpumode, uint32_t pid,
						  uint64_t ip)
{
	const struct perfring_task *process;

	switch (cpumode) {
	case PERFRING_RECORD_MISC_KERNEL:
		return perfring__intervals_find(maps->kernel, ip);
	case PERFRING_RECORD_MISC_USER:
		process = perfring__tasks_find(&maps->tasks, pid);
		return process ? perfring__intervals_find(process->maps, ip) : NULL;
	case PERFRING_RECORD_MISC_GUEST_KERNEL:
		process = perfring__tasks_find(&maps->tasks, pid);
		if (!process || !process->guest)
			process = perfring__tasks_find(&maps->tasks, 0);
		return process ? perfring__intervals_find(process->guest, ip) : NULL;
	default:
		return NULL;
	}
}

uint64_t perfring_maps_version(const struct perfring_maps *maps, uint32_t pid)
{
	const struct perfring_task *process = perfring__tasks_find(&maps->tasks, pid);

	return process ? process->version : 0;
}

uint64_t perfring_mapping_offset(const struct perfring_mapping *mapping, uint64_t ip)
{
	return mapping->object->kind == PERFRING_MAPS_MEMORY ? ip : ip - mapping->addr + mapping->pgoff;
}

const char *perfring_maps_comm(const struct perfring_maps *maps, uint32_t tid)
{
	const struct perfring_task *task = perfring__tasks_find(&maps->tasks, tid);

	if (task && task->comm)
		return task->comm;
	return tid ? NULL : maps->idle;
}

uint64_t perfring_maps_namespace(const struct perfring_maps *maps, uint32_t tid, unsigned index)
{
	const struct perfring_task *task = perfring__tasks_find(&maps->tasks, tid);

	return task && index < task->namespace_count ? task->namespaces[2 * index + 1] : 0;
}

void perfring_maps_count(const struct perfring_maps *maps, struct perfring_maps_counts *counts)
{
	*counts = (struct perfring_maps_counts){
		.tasks = maps->tasks.living.count + maps->tasks.ended.count,
		.ended = maps->tasks.ended.count,
		.mappings = maps->tasks.intervals.count,
		.bytes = maps->intern.bytes,
		.forgotten = maps->tasks.forgotten + maps->forgotten,
		.nameless = maps->intern.refused,
	};
}

int perfring_maps_open(struct perfring_maps **result)
{
	struct perfring_maps *maps = calloc(1, sizeof(*maps));

	*result = NULL;
	if (!maps)
		return -ENOMEM;
	maps->intern.max = NAME_BYTES_MAX;
	if (!perfring__tasks_open(&maps->tasks))
		maps->idle = perfring_maps_name(maps, "swapper", 8);
	if (!maps->idle) {
		perfring_maps_close(maps);
		return -ENOMEM;
	}
	*result = maps;
	return 0;
}

void perfring_maps_close(struct perfring_maps *maps)
{
	if (!maps)
		return;
	perfring__intervals_drop(&maps->tasks.intervals, maps->kernel);
	perfring__tasks_close(&maps->tasks);
	perfring__intern_close(&maps->intern);
	free(maps);
}
