/* symbols.c - from an address to a name: which object is mapped there, and which build of it the file saw.
 *
 * tool_symbols_ functions: for script, dump, report, top, flame, html, export and record --unwind.  maps.h says what is mapped
 * (machine.h), symbol.h names it, jits.c names code that was made.  Complaints come once for each kind.
 *
 * symbol.h reads the objects.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <perfring/config.h>
#include <perfring/stacks.h>
#include <perfring/symbol.h>
#include "jits.h"
#include "package.h"
#include "symbols.h"
#include "tools.h"

#define VDSO TOOL_SYMBOLS_VDSO
#define KERNEL "[kernel.kallsyms]"

enum {
	MAX_FRAMES = 127
}; /* of a stack, as perf's: the kernel's count too */

struct tool_symbols {
	struct tool_machine *machine;
	struct tool_jits *jits;
	struct perfring_symbols *cache;
	struct perfring_stacks *stacks;
	/* the object of this mapping in this process, the last one that was found */
	const char *name;
	struct perfring_file_id file;
	uint32_t pid;
	struct perfring_symbol_object *object;
	bool has_told;     /* of a bound that was exceeded */
	bool is_truncated; /* the last chain */
	struct perfring_symbol_object *kernel;
	uint8_t kernel_id[PERFRING_BUILD_ID_SIZE];
	uint32_t kernel_id_size; /* 0: not known */
	const char *release;     /* of the recorded kernel */
	const char *kallsyms, *vmlinux;
	bool is_placed; /* it was opened with a place of a symbol of it */
	bool is_kernel_told;
	bool is_unread; /* an object that could not be read was complained of */
	bool is_partly; /* so was one of which something could not, or its debug file */
	bool is_packed; /* so was one whose debug file is packed by what this build does not have */
	bool is_verbose;
	bool is_mangled, saw_mangled;
	const char *asked; /* of servers, the last path */
	bool has_progress; /* a line of it stands on the terminal */
	bool foreign;      /* recorded under another kernel release */
	void *builds;      /* a tree by name: struct build */
};

/* A build that the file's feature names. */
struct build {
	const char *name;
	uint32_t size;
	uint8_t id[PERFRING_BUILD_ID_SIZE];
};

static int compare_builds(const void *a, const void *b)
{
	const struct build *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* ---- what the file knows of builds: the BUILD_ID feature (docs/abi.md 11.3) ---- */

/* Adds a build of the feature; only the first of a name counts.  Their number is bounded by the feature's bytes. */
static void add_build(struct tool_symbols *symbols, const char *name, const unsigned char *id, uint32_t size)
{
	struct build key = {.name = name, .size = size}, *build;

	if (!size || tfind(&key, &symbols->builds, compare_builds))
		return;
	memcpy(key.id, id, size);
	build = tool_allocate(NULL, 1, sizeof(*build));
	*build = key;
	tool_insert(build, &symbols->builds, compare_builds);
}

static void read_builds(struct tool_symbols *symbols, const struct perfring_file *data)
{
	uint64_t space = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_BUILD_ID, &space);
	struct perfring_layout_walk walk;
	struct perfring_feature_build_id one;
	const char *name;

	if (payload)
		perfring_feature_open(&walk, PERFRING_FEATURE_BUILD_ID, payload, space, 0);
	while (payload && perfring_feature_next_build_id(&walk, &one) == 1) {
		uint32_t size = one.id_size < PERFRING_BUILD_ID_SIZE ? (uint32_t)one.id_size : PERFRING_BUILD_ID_SIZE;

		name = tool_machine_name(symbols->machine, one.name, one.name_size);
		if (perfring_symbols_expect(symbols->cache, name, one.id, size) == -ENOMEM)
			tool_out_of_memory();
		add_build(symbols, name, one.id, size);
		if (!symbols->kernel_id_size && !strcmp(name, KERNEL)) {
			memcpy(symbols->kernel_id, one.id, size);
			symbols->kernel_id_size = size;
		}
	}
}

/* ---- user objects ---- */

bool tool_symbols_knows_vdso(const struct perfring_mapping *map)
{
	return (map->addr > UINT32_MAX) == (sizeof(void *) == 8);
}

static void end_progress(struct tool_symbols *symbols)
{
	if (symbols->has_progress)
		fprintf(stderr, "\r\033[K");
	symbols->has_progress = false;
}

static enum tool_nameless nameless_of(enum perfring_symbol_why why)
{
	static const enum tool_nameless of[] = {
		[PERFRING_SYMBOL_KNOWN] = TOOL_NAMELESS_NONE,
		[PERFRING_SYMBOL_NONE] = TOOL_NAMELESS_SYMBOL,
		[PERFRING_SYMBOL_ANONYMOUS] = TOOL_NAMELESS_ANONYMOUS,
		[PERFRING_SYMBOL_UNREADABLE] = TOOL_NAMELESS_OBJECT,
		[PERFRING_SYMBOL_OTHER_BUILD] = TOOL_NAMELESS_CHANGED,
		[PERFRING_SYMBOL_LIMIT] = TOOL_NAMELESS_LIMIT,
		[PERFRING_SYMBOL_HIDDEN] = TOOL_NAMELESS_KERNEL,
		[PERFRING_SYMBOL_OTHER_BOOT] = TOOL_NAMELESS_KERNEL,
	};

	static_assert(sizeof(of) / sizeof(of[0]) == PERFRING_SYMBOL_WHY_COUNT, "a word for each");
	return of[why];
}

/* Reports an error once, unless it is usual, as that of a missing object is: others repeat for each object. */
static void complain_unread(struct tool_symbols *symbols, const char *name, int error)
{
	bool is_usual = error == ENOENT || error == ENOTDIR || error == EINVAL || error == EPERM || error == ELOOP;

	if (is_usual || symbols->is_unread)
		return;
	symbols->is_unread = true;
	tool_complain("%s: %s: its symbols are not known", name, strerror(error));
}

/* Reports once that some symbols of an object are missing. */
static void complain_partly(struct tool_symbols *symbols, const char *name, const struct perfring_symbol_state *state)
{
	if (symbols->is_partly)
		return;
	symbols->is_partly = true;
	tool_complain("%s: %s: not all symbols of %s are known", state->error_path ? state->error_path : name,
		      strerror(-state->error), name);
}

/* Reports the first object that exceeds a bound. */
static void tell_exceeded(struct tool_symbols *symbols, const char *name, const char *what)
{
	if (!symbols->has_told)
		tool_complain(
			"warning: %s: more than %s: symbols that are not read are shown as numbers, lines and inlined functions not at all (docs/limits.md)",
			name, what);
	symbols->has_told = true;
}

static const char *kernel_why(enum perfring_symbol_why why)
{
	switch (why) {
	case PERFRING_SYMBOL_UNREADABLE:
		return "/proc/kallsyms cannot be read: kernel symbols are not resolved";
	case PERFRING_SYMBOL_HIDDEN:
		return "/proc/kallsyms hides its addresses (kernel.kptr_restrict): kernel symbols are not resolved";
	case PERFRING_SYMBOL_OTHER_BOOT:
		return "the machine was rebooted since: kernel symbols are not resolved";
	default:
		return "recorded under another kernel: its symbols are not known";
	}
}

/* -v: reports the file from which the names are. */
static void say_place(struct tool_symbols *symbols, const char *name, const struct perfring_symbol_state *state)
{
	char package[256];

	if (state->why != PERFRING_SYMBOL_KNOWN)
		tool_complain("%s: no symbols: %s", name, tool_symbols_why(symbols, nameless_of(state->why)));
	else if (state->debug_path || strcmp(state->path, name))
		tool_complain("%s: symbols of %s", name, state->debug_path ? state->debug_path : state->path);
	else if (!state->has_exports_only)
		tool_complain("%s: its own symbols", name);
	else if (tool_package_of(name, package, sizeof(package)))
		tool_complain("%s: what it exports alone: %s may have the rest", name, package);
	else
		tool_complain("%s: what it exports alone: its debug file is not here", name);
}

/* Reports what happened when the object was read. */
static void complain(struct tool_symbols *symbols, const char *name, const struct perfring_symbol_object *object)
{
	struct perfring_symbol_state state;

	perfring_symbol_state_of(object, &state);
	end_progress(symbols);
	if (symbols->is_verbose)
		say_place(symbols, name, &state);
	if (state.exceeded)
		tell_exceeded(symbols, name, state.exceeded);
	if (state.error && state.why == PERFRING_SYMBOL_KNOWN)
		complain_partly(symbols, name, &state);
	else if (state.error)
		complain_unread(symbols, name, -state.error);
}

/* The object of a mapping; NULL: its recorded build id is too long. */
static struct perfring_symbol_object *get_object(struct tool_symbols *symbols, const struct perfring_mapping *map,
						 uint32_t pid)
{
	struct perfring_symbol_file file = {.path = map->object->name,
					    .build_id = map->object->file.build_id,
					    .build_id_size = map->object->file.build_id_size,
					    .pid = (int32_t)pid};
	int ret;

	if (symbols->object && symbols->name == map->object->name && symbols->pid == pid &&
	    !memcmp(&symbols->file, &map->object->file, sizeof(map->object->file)))
		return symbols->object;
	ret = perfring_symbols_get(symbols->cache, &file, &symbols->object);
	if (ret == -ENOMEM)
		tool_out_of_memory();
	if (ret < 0)
		return symbols->object = NULL;
	symbols->name = map->object->name;
	symbols->file = map->object->file;
	symbols->pid = pid;
	if (ret)
		complain(symbols, map->object->name, symbols->object);
	return symbols->object;
}

/* Finds code that the process made.  map: NULL: nothing is known to be mapped there. */
static void find_made(struct tool_symbols *symbols, uint32_t pid, const struct perfring_mapping *map, uint64_t ip,
		      struct tool_symbol *found)
{
	struct perfring_jit_symbol code;

	found->nameless = map ? TOOL_NAMELESS_MADE : TOOL_NAMELESS_UNMAPPED;
	if (!tool_jits_find(symbols->jits, pid, map, ip, &code, &found->object))
		return;
	found->name = code.name;
	found->offset = ip - code.start;
	found->nameless = TOOL_NAMELESS_NONE;
}

unsigned tool_symbols_frames(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			     struct perfring_symbol_frame *frames, uint32_t most)
{
	const struct perfring_mapping *map =
		cpumode == PERFRING_RECORD_MISC_USER ? tool_machine_user(symbols->machine, pid, ip) : NULL;
	struct perfring_symbol_object *object = NULL;
	struct perfring_symbol_state state;
	int count;

	if (map && strcmp(map->object->name, VDSO))
		object = get_object(symbols, map, pid);
	count = object ? perfring_symbol_frames(object, ip - map->addr + map->pgoff, frames, most) : 0;
	end_progress(symbols);
	if (count == -ENOMEM)
		tool_out_of_memory();
	/* its DWARF is read only now, and it may be the last object that is looked up */
	if (object && !symbols->has_told) {
		perfring_symbol_state_of(object, &state);
		if (state.exceeded)
			tell_exceeded(symbols, map->object->name, state.exceeded);
	}
	if (count == -EOPNOTSUPP && !symbols->is_packed) {
		symbols->is_packed = true;
		tool_complain(
			"%s: its debug file is packed, and this perfring was built without %s: no lines, no inlined functions",
			map->object->name, PERFRING_HAS_ZLIB ? "libzstd" : "zlib");
	}
	return count > 0 ? (unsigned)count : 0;
}

const char *tool_symbols_line(const struct perfring_symbol_frame *frame, bool whole, char text[TOOL_SYMBOLS_LINE])
{
	const char *slash = frame->file && !whole ? strrchr(frame->file, '/') : NULL;

	text[0] = 0;
	if (frame->file && frame->line)
		snprintf(text, TOOL_SYMBOLS_LINE, "%.4095s:%" PRIu32, slash ? slash + 1 : frame->file, frame->line);
	return text;
}

static void find_user(struct tool_symbols *symbols, uint32_t pid, uint64_t ip, struct tool_symbol *found)
{
	const struct perfring_mapping *map = tool_machine_user(symbols->machine, pid, ip);
	struct perfring_symbol_object *object;
	struct perfring_symbol symbol;

	/* a dump may also have code of an object: that was copied, or is its process's own */
	find_made(symbols, pid, map && tool_jits_may_be_in(map) ? map : NULL, ip, found);
	if (found->name || !map || tool_jits_may_be_in(map))
		return;
	found->object = map->object->name;
	found->nameless = TOOL_NAMELESS_OBJECT;
	if (!strcmp(map->object->name, VDSO) && (symbols->foreign || !tool_symbols_knows_vdso(map)))
		return;
	object = get_object(symbols, map, pid);
	found->nameless = TOOL_NAMELESS_CHANGED;
	if (!object)
		return;
	if (perfring_symbol_find(object, ip - map->addr + map->pgoff, &symbol)) {
		found->name = symbol.name;
		found->offset = symbol.address - symbol.start;
		found->size = (int64_t)(symbol.end - symbol.start);
		if (!PERFRING_HAS_IBERTY && symbol.name[0] == '_' && (symbol.name[1] == 'Z' || symbol.name[1] == 'R'))
			symbols->saw_mangled = true;
	}
	found->nameless = nameless_of(symbol.why);
	if (symbol.why == PERFRING_SYMBOL_KNOWN || symbol.why == PERFRING_SYMBOL_NONE)
		found->address = symbol.address;
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

static void open_kernel(struct tool_symbols *symbols, const struct perfring_mapping *map)
{
	struct perfring_symbol_kernel kernel = {.kallsyms = symbols->kallsyms,
						.vmlinux = symbols->vmlinux,
						.release = symbols->release,
						.build_id = symbols->kernel_id,
						.build_id_size = symbols->kernel_id_size,
						.reference = reference_of(map)};
	struct perfring_symbol_state state;
	const char *named = symbols->kallsyms ? symbols->kallsyms : symbols->vmlinux;
	int error;

	if (kernel.reference)
		kernel.address = map->pgoff;
	symbols->is_placed = kernel.reference;
	error = perfring_symbols_get_kernel(symbols->cache, &kernel, &symbols->kernel);
	if (error == -ENOMEM)
		tool_out_of_memory();
	if (error)
		return;
	perfring_symbol_state_of(symbols->kernel, &state);
	if (named && state.why != PERFRING_SYMBOL_KNOWN && !symbols->is_kernel_told)
		tool_complain("%s: %s", named,
			      state.error ? strerror(-state.error)
			      : state.why == PERFRING_SYMBOL_OTHER_BUILD
				      ? "another kernel's: it is not used"
				      : "it hides its addresses, or has too many symbols");
	symbols->is_kernel_told = true;
}

static void find_kernel(struct tool_symbols *symbols, uint64_t ip, struct tool_symbol *found)
{
	const struct perfring_mapping *map = tool_machine_kernel(symbols->machine, ip);
	struct perfring_symbol symbol;

	/* BPF programs come and go: what the recording says of them holds, whatever is there now */
	if (map && map->object->kind == PERFRING_MAPS_KSYMBOL) {
		found->object = found->name = map->object->name;
		found->offset = perfring_mapping_offset(map, ip);
		found->size = (int64_t)(map->end - map->addr);
		found->nameless = TOOL_NAMELESS_NONE;
		return;
	}
	/* again, when its place is known */
	if (!symbols->kernel || (!symbols->is_placed && reference_of(map)))
		open_kernel(symbols, map);
	if (map)
		found->object = !strncmp(map->object->name, KERNEL, strlen(KERNEL))
					? KERNEL
					: tool_machine_short_module(symbols->machine, map->object->name);
	found->nameless = TOOL_NAMELESS_KERNEL;
	if (!symbols->kernel)
		return;
	/* neither the kernel nor a module was there: what is after the last symbol is not its */
	if (!map && symbols->is_placed) {
		found->nameless = TOOL_NAMELESS_UNMAPPED;
		return;
	}
	if (perfring_symbol_find(symbols->kernel, ip, &symbol)) {
		const char *object = symbol.module ? symbol.module : KERNEL;

		found->nameless = TOOL_NAMELESS_SYMBOL;
		/* Another module, or the kernel, was there. */
		if (map && tool_machine_is_module(map->object->name) && strcmp(object, found->object))
			return;
		found->name = symbol.name;
		found->object = object;
		found->offset = ip - symbol.start;
		found->size = (int64_t)(symbol.end - symbol.start);
		found->nameless = TOOL_NAMELESS_NONE;
	} else if (symbol.why == PERFRING_SYMBOL_NONE) {
		found->nameless = TOOL_NAMELESS_SYMBOL;
	}
}

/* ---- both ---- */

void tool_symbols_recorded(struct tool_symbols *symbols, const char *path)
{
	tool_jits_recorded(symbols->jits, path);
}

void tool_symbols_learn(struct tool_symbols *symbols, const struct perfring_record *record)
{
	tool_jits_take(symbols->jits, record);
}

bool tool_symbols_advance(struct tool_symbols *symbols, uint64_t time)
{
	return tool_jits_advance(symbols->jits, time);
}

void tool_symbols_find(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
		       struct tool_symbol *found)
{
	*found = (struct tool_symbol){.address = ip, .size = -1, .nameless = TOOL_NAMELESS_MODE};
	if (cpumode == PERFRING_RECORD_MISC_USER)
		find_user(symbols, pid, ip, found);
	else if (cpumode == PERFRING_RECORD_MISC_KERNEL)
		find_kernel(symbols, ip, found);
}

uint32_t tool_symbols_build_id(const struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			       const char *object, uint8_t id[PERFRING_BUILD_ID_SIZE])
{
	bool is_kernel = cpumode == PERFRING_RECORD_MISC_KERNEL;
	const struct perfring_mapping *map = is_kernel ? tool_machine_kernel(symbols->machine, ip)
					     : cpumode == PERFRING_RECORD_MISC_USER
						     ? tool_machine_user(symbols->machine, pid, ip)
						     : NULL;
	const struct build key = {.name = is_kernel || !map ? object : map->object->name};
	struct build *const *found = NULL;

	if (!object || (!is_kernel && (!map || strcmp(map->object->name, object))))
		return 0; /* code that was made there */
	if (!is_kernel && map->object->file.build_id_size) {
		memcpy(id, map->object->file.build_id, map->object->file.build_id_size);
		return map->object->file.build_id_size;
	}
	found = tfind(&key, &symbols->builds, compare_builds);
	if (found)
		memcpy(id, (*found)->id, (*found)->size);
	return found ? (*found)->size : 0;
}

bool tool_symbols_frame(uint64_t word, unsigned *cpumode)
{
	bool cookie = *cpumode == (unsigned)PERFRING_CONTEXT_USER_DEFERRED;

	if (!perfring_list_is_marker(word)) {
		if (cookie)
			*cpumode = PERFRING_RECORD_MISC_USER;
		return !cookie;
	}
	switch ((int64_t)word) {
	case PERFRING_CONTEXT_KERNEL:
		*cpumode = PERFRING_RECORD_MISC_KERNEL;
		break;
	case PERFRING_CONTEXT_USER:
		*cpumode = PERFRING_RECORD_MISC_USER;
		break;
	case PERFRING_CONTEXT_USER_DEFERRED:
		*cpumode = (unsigned)PERFRING_CONTEXT_USER_DEFERRED;
		break;
	default:
		*cpumode = PERFRING_RECORD_MISC_CPUMODE_UNKNOWN;
		break;
	}
	return false;
}

static enum perfring_symbol_why why_of(const struct perfring_symbol_object *object)
{
	struct perfring_symbol_state state;

	perfring_symbol_state_of(object, &state);
	return state.why;
}

uint32_t tool_symbols_user_frames(const struct perfring_sample *sample, uint64_t frames)
{
	uint32_t left = frames < MAX_FRAMES ? (uint32_t)frames : MAX_FRAMES;
	uint64_t nr = sample->present & PERFRING_SAMPLE_CALLCHAIN ? sample->callchain.nr : 0;

	for (uint64_t i = 0; i < nr && left && sample->callchain.words[i] != (uint64_t)(int64_t)PERFRING_CONTEXT_USER;
	     i++)
		left -= !perfring_list_is_marker(sample->callchain.words[i]);
	return left;
}

bool tool_symbols_chain(struct tool_symbols *symbols, const struct perfring_sample *sample, uint64_t frames,
			struct perfring_list *chain)
{
	enum perfring_unwind_end end = PERFRING_UNWIND_WHOLE;
	int ret = perfring_stacks_chain(symbols->stacks, sample, tool_symbols_user_frames(sample, frames), chain, &end);

	if (ret < 0)
		tool_out_of_memory();
	symbols->is_truncated = ret && end != PERFRING_UNWIND_WHOLE;
	return ret;
}

bool tool_symbols_is_truncated(const struct tool_symbols *symbols)
{
	return symbols->is_truncated;
}

const char *tool_symbols_why(const struct tool_symbols *symbols, enum tool_nameless nameless)
{
	switch (nameless) {
	case TOOL_NAMELESS_UNMAPPED:
		return "nothing is known to be mapped there";
	case TOOL_NAMELESS_MODE:
		return "neither user nor kernel, or without an address";
	case TOOL_NAMELESS_ANONYMOUS:
		return "in memory without a file";
	case TOOL_NAMELESS_OBJECT:
		return "the object cannot be read";
	case TOOL_NAMELESS_CHANGED:
		return "the object is a different build now";
	case TOOL_NAMELESS_SYMBOL:
		return "the object has no symbol there";
	case TOOL_NAMELESS_KERNEL:
		return kernel_why(symbols->kernel ? why_of(symbols->kernel) : PERFRING_SYMBOL_OTHER_BUILD);
	case TOOL_NAMELESS_MADE:
		return "code that its process made: no /tmp/perf-PID.map and no jitdump file names it";
	case TOOL_NAMELESS_LIMIT:
		return "the object exceeds the limits of what is read (docs/limits.md)";
	case TOOL_NAMELESS_NONE:
	case TOOL_NAMELESS_COUNT:
		break;
	}
	return "";
}

/* ---- options ---- */

static bool is_folder(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* Words that are separated by blanks. */
static bool are_servers(const char *text)
{
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8) || !strncmp(text, "file://", 7);
}

int tool_symbols_take(struct tool_symbols_options *symbols, const struct tool_options *options, int found)
{
	bool good = true;

	switch (found) {
	case TOOL_SYMBOLS_DEMANGLE:
	case TOOL_SYMBOLS_NO_DEMANGLE:
		symbols->is_mangled = found == TOOL_SYMBOLS_NO_DEMANGLE;
		break;
	case TOOL_SYMBOLS_SYMFS:
		symbols->symfs = options->value;
		good = is_folder(symbols->symfs);
		break;
	case TOOL_SYMBOLS_DEBUGINFOD:
		symbols->asks_servers = true;
		symbols->servers = options->value;
		good = !symbols->servers || are_servers(symbols->servers);
		break;
	case TOOL_SYMBOLS_KALLSYMS:
		symbols->kallsyms = options->value;
		break;
	case 'k':
		symbols->vmlinux = options->value;
		break;
	case 'v':
		symbols->is_verbose = true;
		break;
	default:
		return 0;
	}
	if (good)
		return 1;
	tool_options_refuse(options, found, options->value);
	return -1;
}

/* Shows the progress of downloads: on a terminal one line that changes, else a line for each file. */
static bool show_progress(void *to, const char *path, int64_t done, int64_t all)
{
	struct tool_symbols *symbols = to;

	if (isatty(STDERR_FILENO)) {
		fprintf(stderr, "\r\033[Kperfring: ");
		tool_print(stderr, path, 0, false);
		fprintf(stderr, ": %" PRId64 " of %" PRId64 " KiB from servers", done >> 10, all >> 10);
		symbols->has_progress = true;
	} else if (symbols->asked != path) {
		tool_complain("%s: asking servers", path);
	}
	symbols->asked = path;
	return true;
}

static void open_cache(struct tool_symbols *symbols, const struct tool_symbols_options *options)
{
	struct perfring_symbols_options cache = {.symfs = options->symfs, .progress = show_progress, .to = symbols};
	int error;

	if (options->is_mangled)
		cache.flags |= PERFRING_SYMBOLS_MANGLED;
	if (symbols->foreign)
		cache.flags |= PERFRING_SYMBOLS_FOREIGN;
	if (options->asks_servers) {
		const char *servers = getenv("DEBUGINFOD_URLS");

		if (options->servers)
			setenv("DEBUGINFOD_URLS", options->servers, 1);
		else if (!servers || !*servers) {
			tool_complain("--debuginfod: no server is named: --debuginfod=URL, or DEBUGINFOD_URLS");
			exit(TOOL_MISUSED);
		}
		cache.flags |= PERFRING_SYMBOLS_SERVERS;
	}
	error = perfring_symbols_open(&symbols->cache, &cache);
	if (error == -EOPNOTSUPP) {
		tool_complain(
			"--debuginfod: libdebuginfod.so.1 cannot be loaded: install it (apt-get install libdebuginfod1)");
		exit(TOOL_FAILED);
	}
	if (error)
		tool_out_of_memory();
}

struct tool_symbols *tool_symbols_open(const struct perfring_file *data, struct tool_machine *machine,
				       const struct tool_symbols_options *options)
{
	struct tool_symbols *symbols = tool_allocate(NULL, 1, sizeof(*symbols));
	const char *release = perfring_file_string(data, PERFRING_FEATURE_OSRELEASE);
	struct utsname here;

	memset(symbols, 0, sizeof(*symbols));
	symbols->machine = machine;
	symbols->is_mangled = options->is_mangled;
	symbols->is_verbose = options->is_verbose;
	symbols->jits = tool_jits_open(data, options->is_forced, options->is_verbose);
	symbols->kallsyms = options->kallsyms;
	symbols->vmlinux = options->vmlinux;
	symbols->release = release;
	symbols->foreign = release && !uname(&here) && strcmp(release, here.release);
	open_cache(symbols, options);
	read_builds(symbols, data);
	if (perfring_stacks_open(&symbols->stacks, tool_machine_maps(machine), symbols->cache))
		tool_out_of_memory();
	return symbols;
}

/* Reports how many copied stacks do not reach their thread's start. */
void tool_symbols_complain_of_stacks(const struct perfring_stacks *stacks)
{
	struct perfring_stacks_counts counts;
	uint64_t truncated, stuck, all = 0;

	perfring_stacks_count(stacks, &counts);
	for (size_t i = 0; i < sizeof(counts.ends) / sizeof(counts.ends[0]); i++)
		all += counts.ends[i];
	truncated = counts.ends[PERFRING_UNWIND_TRUNCATED];
	stuck = counts.ends[PERFRING_UNWIND_NO_RULE] + counts.ends[PERFRING_UNWIND_BAD];
	if (truncated)
		tool_complain("%" PRIu64 " of %" PRIu64
			      " stacks are longer than their copies: record --call-graph dwarf,65528 copies more",
			      truncated, all);
	if (stuck)
		tool_complain("%" PRIu64 " of %" PRIu64 " stacks end where no unwind table says who called", stuck,
			      all);
}

void tool_symbols_close(struct tool_symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->saw_mangled && !symbols->is_mangled)
		tool_complain("names of C++ and Rust are shown as they are: this perfring was built without libiberty");
	tool_symbols_complain_of_stacks(symbols->stacks);
	perfring_stacks_close(symbols->stacks);
	perfring_symbols_close(symbols->cache);
	tool_jits_close(symbols->jits);
	tdestroy(symbols->builds, free);
	free(symbols);
}
