/* symbol_names.c - from an address to a name, for the commands: names.h, and what it reports in words.
 *
 * tool_symbols_ functions: for script, dump, report, top, flame, html, export and record --unwind.  Complaints come once for each
 * kind.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/config.h>
#include <perfring/names.h>
#include "package.h"
#include "symbol_names.h"
#include "tools.h"

/* Why an address has no name, and an object no names. */
#define NAMELESS_ANONYMOUS "in memory without a file"
#define NAMELESS_OBJECT "the object cannot be read"
#define NAMELESS_CHANGED "the object is another build or file now"
#define NAMELESS_SYMBOL "the object has no symbol there"
#define NAMELESS_LIMIT "the object exceeds the limits of what is read (docs/limits.md)"

struct tool_symbols {
	struct perfring_names *names;
	struct perfring_symbols *cache;
	bool has_told;     /* of a bound that was exceeded */
	bool is_truncated; /* the last chain */
	const char *kallsyms, *vmlinux;
	bool is_kernel_told;
	bool is_unread; /* an object that could not be read was complained of */
	bool is_partly; /* so was one of which something could not, or its debug file */
	bool is_packed; /* so was one whose debug file is packed by what this build does not have */
	bool is_code_told; /* so was a file of code that a process made */
	bool is_verbose;
	bool is_mangled, saw_mangled;
	const char *asked; /* of servers, the last path */
	bool has_progress; /* a line of it stands on the terminal */
};

/* ---- what is reported ---- */

static void end_progress(struct tool_symbols *symbols)
{
	if (symbols->has_progress)
		fprintf(stderr, "\r\033[K");
	symbols->has_progress = false;
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
	if (state->error == -ESTALE && !state->error_path)
		tool_complain("%s: the file was replaced or written after its symbols were read: call chains end in it",
			      name);
	else
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

/* Why an object of user space has no symbols. */
static const char *object_why(enum perfring_symbol_why why)
{
	switch (why) {
	case PERFRING_SYMBOL_ANONYMOUS:
		return NAMELESS_ANONYMOUS;
	case PERFRING_SYMBOL_OTHER_BUILD:
		return NAMELESS_CHANGED;
	case PERFRING_SYMBOL_LIMIT:
		return NAMELESS_LIMIT;
	case PERFRING_SYMBOL_NONE:
		return NAMELESS_SYMBOL;
	default:
		return NAMELESS_OBJECT;
	}
}

/* -v: reports the file from which the names are. */
static void say_place(const char *name, const struct perfring_symbol_state *state)
{
	char package[256];

	if (state->why != PERFRING_SYMBOL_KNOWN)
		tool_complain("%s: no symbols: %s", name, object_why(state->why));
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
	if (symbols->is_verbose)
		say_place(name, &state);
	if (state.exceeded)
		tell_exceeded(symbols, name, state.exceeded);
	if (state.error && state.why == PERFRING_SYMBOL_KNOWN)
		complain_partly(symbols, name, &state);
	else if (state.error)
		complain_unread(symbols, name, -state.error);
}

/* Reports what happened to the DWARF of an object. */
static void complain_lines(struct tool_symbols *symbols, const struct perfring_names_report *report)
{
	struct perfring_symbol_state state;

	perfring_symbol_state_of(report->object, &state);
	if (state.exceeded)
		tell_exceeded(symbols, report->path, state.exceeded);
	if (report->error && !symbols->is_packed) {
		symbols->is_packed = true;
		tool_complain(
			"%s: its debug file is packed, and this perfring was built without %s: no lines, no inlined functions",
			report->path, PERFRING_HAS_ZLIB ? "libzstd" : "zlib");
	}
}

/* Reports that the file that the user named for the kernel is not used. */
static void complain_kernel(struct tool_symbols *symbols, const struct perfring_symbol_object *kernel)
{
	const char *named = symbols->kallsyms ? symbols->kallsyms : symbols->vmlinux;
	struct perfring_symbol_state state;

	perfring_symbol_state_of(kernel, &state);
	if (named && state.why != PERFRING_SYMBOL_KNOWN && !symbols->is_kernel_told)
		tool_complain("%s: %s", named,
			      state.error ? strerror(-state.error)
			      : state.why == PERFRING_SYMBOL_OTHER_BUILD
				      ? "another kernel's: it is not used"
				      : "it hides its addresses, or has too many symbols");
	symbols->is_kernel_told = true;
}

/* Warns of the first file of code only; verbose: of each. */
static void tell_code(struct tool_symbols *symbols, const char *path, const char *what)
{
	if (!symbols->is_code_told || symbols->is_verbose)
		tool_complain("warning: %s: %s: code that its process made has no names", path, what);
	symbols->is_code_told = true;
}

static void complain_code(struct tool_symbols *symbols, const struct perfring_names_report *report)
{
	switch (report->error) {
	case 0:
		if (symbols->is_verbose && report->codes)
			tool_complain("%s: %" PRIu64 " pieces of code", report->path, report->codes);
		else if (symbols->is_verbose)
			tool_complain("%s: names of code", report->path);
		break;
	case -ENOENT: /* most processes have none */
		if (symbols->is_verbose)
			tool_complain("%s: there is none", report->path);
		break;
	case -EPERM:
		tell_code(symbols, report->path, "it belongs to another user (-f reads it)");
		break;
	case -ESTALE:
		tell_code(symbols, report->path, "it is that of a later process");
		break;
	case -EBADMSG:
		tell_code(symbols, report->path, "no jitdump file, or damaged");
		break;
	case -EOPNOTSUPP:
		tell_code(symbols, report->path, "a jitdump file of another version, or with times of a processor's counter");
		break;
	case -ETIME:
		tell_code(symbols, report->path,
			  "its times are of CLOCK_MONOTONIC, the recording's of another clock (record -k mono)");
		break;
	case -E2BIG:
		tell_code(symbols, report->path, "more files of code than are read (docs/limits.md)");
		break;
	case -EFBIG:
		tell_code(symbols, report->path, "more than is read of one file of code (docs/limits.md)");
		break;
	default:
		tell_code(symbols, report->path, strerror(-report->error));
		break;
	}
}

static void take_report(void *to, const struct perfring_names_report *report)
{
	struct tool_symbols *symbols = to;

	end_progress(symbols);
	switch (report->event) {
	case PERFRING_NAMES_OBJECT:
		complain(symbols, report->path, report->object);
		break;
	case PERFRING_NAMES_LINES:
		complain_lines(symbols, report);
		break;
	case PERFRING_NAMES_KERNEL:
		complain_kernel(symbols, report->object);
		break;
	case PERFRING_NAMES_CODE:
		complain_code(symbols, report);
		break;
	case PERFRING_NAMES_MANGLED:
		symbols->saw_mangled = true;
		break;
	}
}

/* ---- names ---- */

unsigned tool_symbols_frames(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
			     struct perfring_symbol_frame *frames, uint32_t most)
{
	int count = perfring_names_frames(symbols->names, cpumode, pid, ip, frames, most);

	end_progress(symbols);
	if (count < 0)
		tool_out_of_memory();
	return (unsigned)count;
}

const char *tool_symbols_line(const struct perfring_symbol_frame *frame, bool whole, char text[TOOL_SYMBOLS_LINE])
{
	const char *slash = frame->file && !whole ? strrchr(frame->file, '/') : NULL;

	text[0] = 0;
	if (frame->file && frame->line)
		snprintf(text, TOOL_SYMBOLS_LINE, "%.4095s:%" PRIu32, slash ? slash + 1 : frame->file, frame->line);
	return text;
}

void tool_symbols_end_progress(struct tool_symbols *symbols)
{
	end_progress(symbols);
}

struct perfring_names *tool_symbols_names(const struct tool_symbols *symbols)
{
	return symbols->names;
}

void tool_symbols_learn(struct tool_symbols *symbols, const struct perfring_record *record)
{
	if (perfring_names_take_record(symbols->names, record))
		tool_out_of_memory();
}

bool tool_symbols_advance(struct tool_symbols *symbols, uint64_t time)
{
	int one = perfring_names_advance(symbols->names, time);

	if (one < 0)
		tool_out_of_memory();
	return one;
}

void tool_symbols_find(struct tool_symbols *symbols, unsigned cpumode, uint32_t pid, uint64_t ip,
		       struct perfring_name *found)
{
	if (perfring_names_find(symbols->names, cpumode, pid, ip, found) < 0)
		tool_out_of_memory();
}

static enum perfring_symbol_why why_of(const struct perfring_symbol_object *object)
{
	struct perfring_symbol_state state = {.why = PERFRING_SYMBOL_OTHER_BUILD};

	if (object)
		perfring_symbol_state_of(object, &state);
	return state.why;
}

bool tool_symbols_chain(struct tool_symbols *symbols, const struct perfring_sample *sample, uint64_t frames,
			struct perfring_list *chain)
{
	enum perfring_unwind_end end = PERFRING_UNWIND_WHOLE;
	int ret = perfring_stacks_chain(perfring_names_stacks(symbols->names), sample,
					perfring_stacks_user_frames(sample, frames), chain, &end);

	if (ret < 0)
		tool_out_of_memory();
	symbols->is_truncated = ret && end != PERFRING_UNWIND_WHOLE;
	return ret;
}

bool tool_symbols_is_truncated(const struct tool_symbols *symbols)
{
	return symbols->is_truncated;
}

const char *tool_symbols_why(const struct tool_symbols *symbols, enum perfring_nameless nameless)
{
	switch (nameless) {
	case PERFRING_NAMELESS_UNMAPPED:
		return "nothing is known to be mapped there";
	case PERFRING_NAMELESS_MODE:
		return "neither user nor kernel, or without an address";
	case PERFRING_NAMELESS_ANONYMOUS:
		return NAMELESS_ANONYMOUS;
	case PERFRING_NAMELESS_OBJECT:
		return NAMELESS_OBJECT;
	case PERFRING_NAMELESS_CHANGED:
		return NAMELESS_CHANGED;
	case PERFRING_NAMELESS_SYMBOL:
		return NAMELESS_SYMBOL;
	case PERFRING_NAMELESS_KERNEL:
		return kernel_why(why_of(perfring_names_kernel(symbols->names)));
	case PERFRING_NAMELESS_MADE:
		return "code that its process made: no /tmp/perf-PID.map and no jitdump file names it";
	case PERFRING_NAMELESS_LIMIT:
		return NAMELESS_LIMIT;
	case PERFRING_NAMELESS_NONE:
	case PERFRING_NAMELESS_COUNT:
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

static void open_cache(struct tool_symbols *symbols, const struct tool_symbols_options *options,
		       const struct perfring_file *data)
{
	struct perfring_symbols_options cache = {.flags = perfring_symbols_flags_for(data),
						 .symfs = options->symfs,
						 .progress = show_progress,
						 .to = symbols};
	int error;

	if (options->is_mangled)
		cache.flags |= PERFRING_SYMBOLS_MANGLED;
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

/* When the processes of a recording were last seen: the time of its file, ns of CLOCK_REALTIME; 0: that is not known. */
static uint64_t time_of(const char *path)
{
	struct stat file;

	if (stat(path, &file) || !S_ISREG(file.st_mode))
		return 0;
	return (uint64_t)file.st_mtim.tv_sec * 1000000000 + (uint64_t)file.st_mtim.tv_nsec;
}

struct tool_symbols *tool_symbols_open(const struct tool_input *input, struct tool_machine *machine,
				       const struct tool_symbols_options *options)
{
	struct tool_symbols *symbols = tool_allocate(NULL, 1, sizeof(*symbols));
	struct perfring_names_options names = {
		.flags = options->is_forced ? PERFRING_NAMES_ANY_OWNER : 0,
		.maps = tool_machine_maps(machine),
		.file = input->data,
		.kallsyms = options->kallsyms,
		.vmlinux = options->vmlinux,
		.until = time_of(input->path),
		.report = take_report,
		.to = symbols,
	};

	*symbols = (struct tool_symbols){.is_mangled = options->is_mangled,
					 .is_verbose = options->is_verbose,
					 .kallsyms = options->kallsyms,
					 .vmlinux = options->vmlinux};
	open_cache(symbols, options, input->data);
	names.symbols = symbols->cache;
	if (perfring_names_open(&symbols->names, &names))
		tool_out_of_memory();
	return symbols;
}

/* Reports how many copied stacks do not reach their thread's start. */
void tool_symbols_complain_of_stacks(const struct perfring_stacks *stacks)
{
	struct perfring_stacks_counts counts;
	uint64_t truncated, stuck, narrow, all = 0;

	perfring_stacks_count(stacks, &counts);
	for (size_t i = 0; i < sizeof(counts.ends) / sizeof(counts.ends[0]); i++)
		all += counts.ends[i];
	truncated = counts.ends[PERFRING_UNWIND_TRUNCATED];
	stuck = counts.ends[PERFRING_UNWIND_NO_RULE] + counts.ends[PERFRING_UNWIND_BAD];
	narrow = counts.ends[PERFRING_UNWIND_STEPPED];
	if (truncated)
		tool_complain("%" PRIu64 " of %" PRIu64
			      " stacks are longer than their copies: record --call-graph dwarf,65528 copies more",
			      truncated, all);
	if (stuck)
		tool_complain("%" PRIu64 " of %" PRIu64 " stacks end where no unwind table says who called", stuck,
			      all);
	if (narrow)
		tool_complain("%" PRIu64 " of %" PRIu64 " stacks are of 32-bit processes, which are not unwound: their callers are "
			      "those by frame pointers, if the recording has any",
			      narrow, all);
}

void tool_symbols_close(struct tool_symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->saw_mangled && !symbols->is_mangled)
		tool_complain("names of C++ and Rust are shown as they are: this perfring was built without libiberty");
	tool_symbols_complain_of_stacks(perfring_names_stacks(symbols->names));
	end_progress(symbols);
	perfring_names_close(symbols->names);
	perfring_symbols_close(symbols->cache);
	free(symbols);
}
