/* names.c - from an address to its function: which object is mapped there, and which build of it the recording saw.
 *
 * The functions of names.h.  maps.c says what is mapped, symbols.c and kernel.c name it, jit_files.c names code that was made.
 * Records and files are foreign; those files bound what is read of them.  One thread.
 */
#include <perfring/names.h>

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "demangle.h"
#include "jit_files.h"
#include "os/lines.h"
#include "os/map.h"
#include "os/task.h"
#include "sample/proc_map.h"

#define VDSO "[vdso]"
#define KERNEL "[kernel.kallsyms]"

/* A build that the file's feature names. */
struct build {
	const char *name;
	uint32_t size;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
};

struct perfring_names {
	struct perfring_names_options options;
	struct perfring_maps *maps, *own_maps;
	struct perfring_symbols *cache, *own_cache;
	struct perfring_stacks *stacks;
	struct perfring_jit_files jits;
	uint64_t version;
	/* the object of this mapping in this process, the last one that was found */
	const char *name;
	struct perfring_file_id file;
	uint32_t pid;
	struct perfring_symbol_object *object;
	struct perfring_symbol_object *kernel;
	uint8_t kernel_id[PERFRING_BUILD_ID_SIZE];
	uint32_t kernel_id_size; /* 0: not known */
	char *release;           /* of the recorded kernel; NULL: not known */
	bool is_placed;          /* the kernel was opened with a place of a symbol of it */
	bool is_foreign;         /* recorded under another kernel release */
	bool saw_mangled;        /* and this was reported */
	void *builds;            /* a tree by name: struct build */
};

static void report(struct perfring_names *names, enum perfring_names_event event, const char *path,
		   const struct perfring_symbol_object *object, int error)
{
	if (names->options.report)
		names->options.report(names->options.to, &(struct perfring_names_report){.event = event,
											 .error = error,
											 .path = path,
											 .object = object});
}

static void report_code(void *to, const char *path, int error, uint64_t codes)
{
	struct perfring_names *names = to;

	if (names->options.report)
		names->options.report(names->options.to, &(struct perfring_names_report){.event = PERFRING_NAMES_CODE,
											 .error = error,
											 .path = path,
											 .codes = codes});
}

/* ---- what the file knows of builds: the BUILD_ID feature (docs/abi.md 11.3) ---- */

static int compare_builds(const void *a, const void *b)
{
	const struct build *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* Adds a build of the feature; only the first of a name counts.  Their number is bounded by the feature's bytes. */
static int add_build(struct perfring_names *names, const char *name, const unsigned char *id, uint32_t size)
{
	struct build key = {.name = name, .size = size}, *build;

	if (!size || tfind(&key, &names->builds, compare_builds))
		return 0;
	memcpy(key.id, id, size);
	build = malloc(sizeof(*build));
	if (!build)
		return -ENOMEM;
	*build = key;
	if (tsearch(build, &names->builds, compare_builds))
		return 0;
	free(build);
	return -ENOMEM;
}

static int read_builds(struct perfring_names *names, const struct perfring_file *file)
{
	uint64_t space = 0;
	const void *payload = perfring_file_feature(file, PERFRING_FEATURE_BUILD_ID, &space);
	struct perfring_feature_build_id one;
	struct perfring_layout_walk walk;
	const char *name;

	if (payload)
		perfring_feature_open(&walk, PERFRING_FEATURE_BUILD_ID, payload, space, 0);
	while (payload && perfring_feature_next_build_id(&walk, &one) == 1) {
		uint32_t size = one.id_size < PERFRING_BUILD_ID_SIZE ? (uint32_t)one.id_size : PERFRING_BUILD_ID_SIZE;

		name = perfring_maps_name(names->maps, one.name, one.name_size);
		if (!name || perfring_symbols_expect(names->cache, name, one.id, size) == -ENOMEM ||
		    add_build(names, name, one.id, size))
			return -ENOMEM;
		if (!names->kernel_id_size && !strcmp(name, KERNEL)) {
			memcpy(names->kernel_id, one.id, size);
			names->kernel_id_size = size;
		}
	}
	return 0;
}

/* ---- user objects ---- */

/* Whether the vdso that is mapped there is this process's own (perfring_vdso_open), if the kernel is: a 64-bit kernel has another
 * one for 32-bit processes, whose addresses end at 4 GiB. */
static bool is_own_vdso(const struct perfring_mapping *map)
{
	return (map->addr > UINT32_MAX) == (sizeof(void *) == 8);
}

static enum perfring_nameless nameless_of(enum perfring_symbol_why why)
{
	static const enum perfring_nameless of[] = {
		[PERFRING_SYMBOL_KNOWN] = PERFRING_NAMELESS_NONE,
		[PERFRING_SYMBOL_NONE] = PERFRING_NAMELESS_SYMBOL,
		[PERFRING_SYMBOL_ANONYMOUS] = PERFRING_NAMELESS_ANONYMOUS,
		[PERFRING_SYMBOL_UNREADABLE] = PERFRING_NAMELESS_OBJECT,
		[PERFRING_SYMBOL_OTHER_BUILD] = PERFRING_NAMELESS_CHANGED,
		[PERFRING_SYMBOL_LIMIT] = PERFRING_NAMELESS_LIMIT,
		[PERFRING_SYMBOL_HIDDEN] = PERFRING_NAMELESS_KERNEL,
		[PERFRING_SYMBOL_OTHER_BOOT] = PERFRING_NAMELESS_KERNEL,
	};

	static_assert(sizeof(of) / sizeof(of[0]) == PERFRING_SYMBOL_WHY_COUNT, "a word for each");
	return of[why];
}

/* Sets *object to that of a mapping; NULL: its recorded build id is too long.  Returns 0 or -ENOMEM. */
static int get_object(struct perfring_names *names, const struct perfring_mapping *map, uint32_t pid,
		      struct perfring_symbol_object **object)
{
	struct perfring_symbol_file file = {.path = map->object->name,
					    .build_id = map->object->file.build_id,
					    .build_id_size = map->object->file.build_id_size,
					    .pid = (int32_t)pid,
					    .ino = map->object->file.ino,
					    .ino_generation = map->object->file.ino_generation};
	int ret = 0;

	if (!names->object || names->name != map->object->name || names->pid != pid ||
	    memcmp(&names->file, &map->object->file, sizeof(map->object->file)) != 0) {
		ret = perfring_symbols_get(names->cache, &file, &names->object);
		if (ret < 0)
			names->object = NULL;
		names->name = map->object->name;
		names->file = map->object->file;
		names->pid = pid;
	}
	*object = names->object;
	if (ret > 0)
		report(names, PERFRING_NAMES_OBJECT, map->object->name, names->object, 0);
	return ret == -ENOMEM ? ret : 0;
}

/* Finds code that the process made.  map: NULL: nothing is known to be mapped there. */
static int find_made(struct perfring_names *names, uint32_t pid, const struct perfring_mapping *map, uint64_t ip,
		     struct perfring_name *found)
{
	struct perfring_jit_symbol code;
	int one;

	found->nameless = map ? PERFRING_NAMELESS_MADE : PERFRING_NAMELESS_UNMAPPED;
	one = perfring__jit_files_find(&names->jits, pid, map, ip, &code, &found->object);
	if (one <= 0)
		return one;
	found->name = code.name;
	found->offset = ip - code.start;
	found->nameless = PERFRING_NAMELESS_NONE;
	return 0;
}

int perfring_names_frames(struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip,
			  struct perfring_symbol_frame *frames, uint32_t most)
{
	const struct perfring_mapping *map = cpumode == PERFRING_RECORD_MISC_USER
						     ? perfring_maps_find(names->maps, cpumode, pid, ip)
						     : NULL;
	struct perfring_symbol_object *object = NULL;
	struct perfring_symbol_state state;
	int count, error = 0;

	if (map && strcmp(map->object->name, VDSO))
		error = get_object(names, map, pid, &object);
	if (error || !object)
		return error;
	count = perfring_symbol_frames(object, ip - map->addr + map->pgoff, frames, most);
	if (count == -ENOMEM)
		return count;
	/* its DWARF is read only now, and it may be the last object that is looked up */
	perfring_symbol_state_of(object, &state);
	if (state.exceeded || count == -EOPNOTSUPP)
		report(names, PERFRING_NAMES_LINES, map->object->name, object, count < 0 ? count : 0);
	return count > 0 ? count : 0;
}

/* Reports once that names are shown as they are in objects: this library cannot demangle. */
static void look_for_mangled(struct perfring_names *names, const char *name)
{
	if (perfring__demangles() || names->saw_mangled || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return;
	names->saw_mangled = true;
	report(names, PERFRING_NAMES_MANGLED, name, NULL, 0);
}

static int find_user(struct perfring_names *names, uint32_t pid, uint64_t ip, struct perfring_name *found)
{
	const struct perfring_mapping *map = perfring_maps_find(names->maps, PERFRING_RECORD_MISC_USER, pid, ip);
	bool may_be_made = map && perfring__jit_files_may_be_in(map);
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;
	/* a dump may also have code of an object: that was copied, or is its process's own */
	int error = find_made(names, pid, may_be_made ? map : NULL, ip, found);

	if (error || found->name || !map || may_be_made)
		return error;
	found->object = map->object->name;
	found->nameless = PERFRING_NAMELESS_OBJECT;
	if (!strcmp(map->object->name, VDSO) && (names->is_foreign || !is_own_vdso(map)))
		return 0;
	error = get_object(names, map, pid, &object);
	found->nameless = PERFRING_NAMELESS_CHANGED;
	if (error || !object)
		return error;
	if (perfring_symbol_find(object, ip - map->addr + map->pgoff, &symbol)) {
		found->name = symbol.name;
		found->offset = symbol.address - symbol.start;
		found->size = (int64_t)(symbol.end - symbol.start);
		look_for_mangled(names, symbol.name);
	}
	found->nameless = nameless_of(symbol.why);
	if (symbol.why == PERFRING_SYMBOL_KNOWN || symbol.why == PERFRING_SYMBOL_NONE)
		found->address = symbol.address;
	return 0;
}

/* ---- the kernel ---- */

/* Where a symbol of the kernel was: its mapping is named after one, "[kernel.kallsyms]_text", and has its address as pgoff. */
static const char *reference_of(const struct perfring_mapping *map)
{
	const char *name = map ? map->object->name : "";

	if (strncmp(name, KERNEL, strlen(KERNEL)))
		return NULL;
	name += strlen(KERNEL);
	return *name ? name : NULL;
}

static int open_kernel(struct perfring_names *names, const struct perfring_mapping *map)
{
	struct perfring_symbol_kernel kernel = {.kallsyms = names->options.kallsyms,
						.vmlinux = names->options.vmlinux,
						.release = names->release,
						.build_id = names->kernel_id,
						.build_id_size = names->kernel_id_size,
						.reference = reference_of(map)};
	int error;

	if (kernel.reference)
		kernel.address = map->pgoff;
	names->is_placed = kernel.reference;
	error = perfring_symbols_get_kernel(names->cache, &kernel, &names->kernel);
	if (!error)
		report(names, PERFRING_NAMES_KERNEL, KERNEL, names->kernel, 0);
	return error == -ENOMEM ? error : 0;
}

/* Whether a mapping of the kernel is a module's, whose name is "[zram]" or the path of its file. */
static bool is_module(const char *name)
{
	const char *slash = strrchr(name, '/');

	if (slash)
		return strstr(slash, ".ko");
	return *name == '[' && strncmp(name, "[kernel", 7) && strncmp(name, "[guest", 6);
}

/* "[zram]" of a module; other names as they are.  NULL: no memory. */
static const char *short_module(struct perfring_names *names, const char *name)
{
	const char *slash = strrchr(name, '/'), *end = slash ? strstr(slash, ".ko") : NULL;
	char text[64];

	if (!end || (size_t)(end - slash) > sizeof(text) - 2)
		return name;
	snprintf(text, sizeof(text), "[%.*s]", (int)(end - slash - 1), slash + 1);
	for (char *at = text; *at; at++)
		*at = *at == '-' ? '_' : *at;
	return perfring_maps_name(names->maps, text, strlen(text));
}

static int find_kernel(struct perfring_names *names, uint64_t ip, struct perfring_name *found)
{
	const struct perfring_mapping *map = perfring_maps_find(names->maps, PERFRING_RECORD_MISC_KERNEL, 0, ip);
	struct perfring_symbol symbol;
	int error = 0;

	/* BPF programs come and go: what the recording says of them holds, whatever is there now */
	if (map && map->object->kind == PERFRING_MAPS_KSYMBOL) {
		found->object = found->name = map->object->name;
		found->offset = perfring_mapping_offset(map, ip);
		found->size = (int64_t)(map->end - map->addr);
		found->nameless = PERFRING_NAMELESS_NONE;
		return 0;
	}
	/* again, when its place is known */
	if (!names->kernel || (!names->is_placed && reference_of(map)))
		error = open_kernel(names, map);
	if (map) {
		found->object = !strncmp(map->object->name, KERNEL, strlen(KERNEL))
					? KERNEL
					: short_module(names, map->object->name);
		error = found->object ? error : -ENOMEM;
	}
	found->nameless = PERFRING_NAMELESS_KERNEL;
	if (error || !names->kernel)
		return error;
	/* neither the kernel nor a module was there: what is after the last symbol is not its */
	if (!map && names->is_placed) {
		found->nameless = PERFRING_NAMELESS_UNMAPPED;
		return 0;
	}
	if (perfring_symbol_find(names->kernel, ip, &symbol)) {
		const char *object = symbol.module ? symbol.module : KERNEL;

		found->nameless = PERFRING_NAMELESS_SYMBOL;
		/* Another module, or the kernel, was there. */
		if (map && is_module(map->object->name) && strcmp(object, found->object))
			return 0;
		found->name = symbol.name;
		found->object = object;
		found->offset = ip - symbol.start;
		found->size = (int64_t)(symbol.end - symbol.start);
		found->nameless = PERFRING_NAMELESS_NONE;
	} else if (symbol.why == PERFRING_SYMBOL_NONE) {
		found->nameless = PERFRING_NAMELESS_SYMBOL;
	} else { /* more of its symbols may have been read now */
		struct perfring_symbol_state state;

		perfring_symbol_state_of(names->kernel, &state);
		return state.error == -ENOMEM ? -ENOMEM : 0;
	}
	return 0;
}

/* ---- both ---- */

int perfring_names_find(struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip,
			struct perfring_name *found)
{
	int error = 0;

	*found = (struct perfring_name){.address = ip, .size = -1, .nameless = PERFRING_NAMELESS_MODE};
	if (cpumode == PERFRING_RECORD_MISC_USER)
		error = find_user(names, pid, ip, found);
	else if (cpumode == PERFRING_RECORD_MISC_KERNEL)
		error = find_kernel(names, ip, found);
	return error ? error : found->name != NULL;
}

uint64_t perfring_names_place(const struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip)
{
	const struct perfring_mapping *map =
		cpumode == PERFRING_RECORD_MISC_USER ? perfring_maps_find(names->maps, cpumode, pid, ip) : NULL;

	return map ? perfring_mapping_offset(map, ip) : ip;
}

uint32_t perfring_names_build_id(const struct perfring_names *names, unsigned cpumode, uint32_t pid, uint64_t ip,
				 const char *object, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	bool is_kernel = cpumode == PERFRING_RECORD_MISC_KERNEL, is_user = cpumode == PERFRING_RECORD_MISC_USER;
	const struct perfring_mapping *map =
		is_kernel || is_user ? perfring_maps_find(names->maps, cpumode, is_user ? pid : 0, ip) : NULL;
	const struct build key = {.name = is_kernel || !map ? object : map->object->name};
	struct build *const *found = NULL;

	if (!object || (!is_kernel && (!map || strcmp(map->object->name, object))))
		return 0; /* code that was made there */
	if (!is_kernel && map->object->file.build_id_size) {
		memcpy(id, map->object->file.build_id, map->object->file.build_id_size);
		return map->object->file.build_id_size;
	}
	found = tfind(&key, &names->builds, compare_builds);
	if (found)
		memcpy(id, (*found)->id, (*found)->size);
	return found ? (*found)->size : 0;
}

const struct perfring_maps *perfring_names_maps(const struct perfring_names *names)
{
	return names->maps;
}

struct perfring_stacks *perfring_names_stacks(struct perfring_names *names)
{
	return names->stacks;
}

const struct perfring_symbol_object *perfring_names_kernel(const struct perfring_names *names)
{
	return names->kernel;
}

/* ---- records ---- */

int perfring_names_take_record(struct perfring_names *names, const struct perfring_record *record)
{
	bool is_map = record->type == PERFRING_RECORD_MMAP || record->type == PERFRING_RECORD_MMAP2;
	int error = perfring_maps_take_record(names->maps, record);

	/* Only mappings of the kernel and of files jit-PID.dump count: processes' own mappings have versions. */
	if (record->type == PERFRING_RECORD_KSYMBOL ||
	    (is_map && (record->type == PERFRING_RECORD_MMAP ||
			(record->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) != PERFRING_RECORD_MISC_USER)))
		names->version++;
	return error ? error : perfring__jit_files_take(&names->jits, record);
}

int perfring_names_take(struct perfring_names *names, const struct perfring_item *item)
{
	struct perfring_record record;
	int error = perfring_record_decode(item->format, item->record, &record, NULL);

	return error ? error : perfring_names_take_record(names, &record);
}

int perfring_names_advance(struct perfring_names *names, uint64_t time)
{
	int one = perfring__jit_files_advance(&names->jits, time);

	names->version += one > 0;
	return one;
}

uint64_t perfring_names_version(const struct perfring_names *names)
{
	return names->version;
}

/* ---- what runs now ---- */

static int take_thread(struct perfring_names *names, uint32_t pid, uint32_t tid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_COMM};
	struct perfring_os_task thread;
	int error = perfring__os_task_stat(pid, tid, &thread);

	if (error)
		return perfring__os_pass_over(error);
	record.is.comm = (struct perfring_record_comm){.pid = pid, .tid = tid};
	record.is.comm.comm = (struct perfring_string){
		.data = thread.comm, .size = (uint32_t)strnlen(thread.comm, sizeof(thread.comm))};
	return perfring_names_take_record(names, &record);
}

static int take_threads(struct perfring_names *names, uint32_t pid)
{
	struct perfring_os_tasks threads;
	int error = perfring__os_tasks_open(&threads, pid);
	uint32_t tid;

	if (error)
		return perfring__os_pass_over(error);
	while (!error && (tid = perfring__os_tasks_next(&threads)))
		error = take_thread(names, pid, tid);
	perfring__os_tasks_close(&threads);
	return error ? error : perfring__os_pass_over(threads.error);
}

int perfring_names_take_process(struct perfring_names *names, uint32_t pid)
{
	struct perfring_record record = {.type = PERFRING_RECORD_MMAP2, .misc = PERFRING_RECORD_MISC_USER};
	struct perfring_os_lines lines;
	struct perfring_os_map map;
	char path[64], *line;
	int error = take_threads(names, pid);

	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/maps", pid, pid);
	error = perfring__os_lines_open(&lines, path);
	if (error)
		return perfring__os_pass_over(error);
	while (!error && (line = perfring__os_lines_next(&lines))) {
		if (!perfring__os_map_parse(&map, line) || !(map.prot & PROT_EXEC))
			continue;
		record.is.mmap2 = perfring__proc_map_record(&map, pid);
		error = perfring_names_take_record(names, &record);
	}
	perfring__os_lines_close(&lines);
	return error ? error : perfring__os_pass_over(lines.error);
}

/* ---- all of it ---- */

/* Whether each event was recorded by the clock of dumps. */
static bool is_monotonic(const struct perfring_file *file)
{
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(file, i)); i++)
		if (!attr->use_clockid || attr->clockid != CLOCK_MONOTONIC)
			return false;
	return i > 0;
}

static int open_all(struct perfring_names *names)
{
	const struct perfring_file *file = names->options.file;
	const char *release = file ? perfring_file_string(file, PERFRING_FEATURE_OSRELEASE) : NULL;
	struct perfring_symbols_options cache = {.flags = perfring_symbols_flags_for(file)};
	struct utsname here;
	int error = 0;

	if (uname(&here))
		return -errno;
	if (!file)
		release = here.release;
	names->is_foreign = cache.flags & PERFRING_SYMBOLS_FOREIGN;
	if (release && !(names->release = strdup(release)))
		return -ENOMEM;
	if (!names->options.maps)
		error = perfring_maps_open(&names->own_maps);
	if (!error && !names->options.symbols)
		error = perfring_symbols_open(&names->own_cache, &cache);
	names->maps = names->own_maps ? names->own_maps : names->options.maps;
	names->cache = names->own_cache ? names->own_cache : names->options.symbols;
	if (!error)
		error = perfring_stacks_open(&names->stacks, names->maps, names->cache);
	if (!error && file)
		error = read_builds(names, file);
	return error;
}

int perfring_names_open(struct perfring_names **names, const struct perfring_names_options *options)
{
	static const struct perfring_names_options none;
	struct perfring_names *one;
	int error;

	*names = NULL;
	options = options ? options : &none;
	if (options->flags & ~(uint32_t)PERFRING_NAMES_ANY_OWNER)
		return -EINVAL;
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->options = *options;
	one->jits = (struct perfring_jit_files){
		.report = report_code,
		.to = one,
		.until = options->until,
		.flags = options->flags & PERFRING_NAMES_ANY_OWNER ? PERFRING_JIT_ANY_OWNER : 0,
		.is_monotonic = !options->file || is_monotonic(options->file),
	};
	error = open_all(one);
	if (error) {
		perfring_names_close(one);
		return error;
	}
	*names = one;
	return 0;
}

void perfring_names_close(struct perfring_names *names)
{
	if (!names)
		return;
	perfring__jit_files_close(&names->jits);
	perfring_stacks_close(names->stacks);
	perfring_symbols_close(names->own_cache);
	perfring_maps_close(names->own_maps);
	tdestroy(names->builds, free);
	free(names->release);
	free(names);
}
