/* jits.c - names of code that the recorded processes made while they ran.
 *
 * symbols.c gives it records of mappings and asks for addresses.  A process's map is opened when an address of it is first asked
 * for, its dump after the record of the dump's mapping.  Files are foreign, and bounded (jit.h, limits.h).
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "jits.h"
#include "limits.h"
#include "tools.h"

/* What is known of one process's code. */
struct process {
	uint32_t pid;
	bool is_looked_up; /* its map file */
	char *dump_path;   /* NULL: it has none, or it is open or cannot be */
	char *dump_name;
	char *map_name;
	struct perfring_jit *dump;
	struct perfring_jit *map;
};

struct tool_jits {
	void *processes; /* by pid */
	struct process *last;
	struct process **dumps;
	size_t dump_count;
	uint32_t open_count; /* of maps and dumps */
	uint64_t codes;      /* in maps */
	uint64_t time;
	uint64_t until; /* when the file was written, by the clock of files; 0: that is not known */
	uint32_t flags; /* of perfring_jit_file_open */
	bool has_dumps; /* some process has */
	bool is_monotonic;
	bool is_verbose;
	bool has_told; /* of a file that could not be read, or a bound */
};

static int compare_processes(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static struct process *get_process(struct tool_jits *jits, uint32_t pid)
{
	struct process key = {.pid = pid}, *process;
	void *at;

	if (jits->last && jits->last->pid == pid)
		return jits->last;
	at = tfind(&key, &jits->processes, compare_processes);
	if (at)
		return jits->last = *(struct process **)at;
	process = tool_allocate(NULL, 1, sizeof(*process));
	*process = key;
	tool_insert(process, &jits->processes, compare_processes);
	return jits->last = process;
}

/* Warns of the first file only; verbose: of each. */
static void tell(struct tool_jits *jits, const char *path, const char *what)
{
	if (!jits->has_told || jits->is_verbose)
		tool_complain("warning: %s: %s: code that its process made has no names", path, what);
	jits->has_told = true;
}

static void tell_error(struct tool_jits *jits, const char *path, int error)
{
	switch (error) {
	case -ENOMEM:
		tool_out_of_memory();
		break;
	case -ENOENT: /* most processes have none */
		if (jits->is_verbose)
			tool_complain("%s: there is none", path);
		break;
	case -EPERM:
		tell(jits, path, "it belongs to another user (-f reads it)");
		break;
	case -ESTALE:
		tell(jits, path, "it is that of a later process");
		break;
	case -EBADMSG:
		tell(jits, path, "no jitdump file, or damaged");
		break;
	case -EOPNOTSUPP:
		tell(jits, path, "a jitdump file of another version, or with times of a processor's counter");
		break;
	default:
		tell(jits, path, strerror(-error));
		break;
	}
}

static bool is_full(struct tool_jits *jits, const char *path)
{
	if (jits->open_count < TOOL_LIMIT_JITS && jits->codes < TOOL_LIMIT_JIT_CODES)
		return false;
	tell(jits, path, "more files of code than are read (docs/limits.md)");
	return true;
}

/* ---- maps ---- */

static void open_map(struct tool_jits *jits, struct process *process)
{
	struct perfring_jit_counts counts;
	int fd, error;

	process->is_looked_up = true;
	process->map_name = tool_allocate(NULL, 1, sizeof("/tmp/perf-.map") + 11);
	sprintf(process->map_name, "/tmp/perf-%d.map", (int)process->pid);
	if (is_full(jits, process->map_name))
		return;
	fd = perfring_jit_file_open((int32_t)process->pid, NULL, jits->until, jits->flags);
	error = fd < 0 ? fd : perfring_jit_open_map(&process->map, fd);
	if (fd >= 0)
		close(fd);
	if (error) {
		tell_error(jits, process->map_name, error);
		return;
	}
	perfring_jit_count(process->map, &counts);
	jits->open_count++;
	jits->codes += counts.codes;
	if (jits->is_verbose)
		tool_complain("%s: %" PRIu64 " pieces of code", process->map_name, counts.codes);
	if (counts.exceeded)
		tell(jits, process->map_name, "more than is read of one map (docs/limits.md)");
}

/* ---- dumps ---- */

/* "/PATH/jit-N.dump" */
static bool is_dump(const struct perfring_string *name)
{
	const char *start = name->data, *at = start + name->size;
	const char *digits;

	if (name->size < 10 || *start != '/' || memcmp(at - 5, ".dump", 5))
		return false;
	for (digits = at -= 5; at > start && at[-1] >= '0' && at[-1] <= '9'; at--)
		;
	return at < digits && at - start >= 5 && !memcmp(at - 5, "/jit-", 5);
}

void tool_jits_take(struct tool_jits *jits, const struct perfring_record *record)
{
	const struct perfring_string *name;
	struct process *process;
	uint32_t pid;

	switch (record->type) {
	case PERFRING_RECORD_MMAP:
		name = &record->is.mmap.filename;
		pid = record->is.mmap.pid;
		break;
	case PERFRING_RECORD_MMAP2:
		name = &record->is.mmap2.filename;
		pid = record->is.mmap2.pid;
		break;
	default:
		return;
	}
	if ((record->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) != PERFRING_RECORD_MISC_USER || !is_dump(name))
		return;
	process = get_process(jits, pid);
	if (process->dump_name) /* its first */
		return;
	process->dump_name = tool_allocate(NULL, name->size + 1, 1);
	memcpy(process->dump_name, name->data, name->size);
	process->dump_name[name->size] = 0;
	process->dump_path = process->dump_name;
	jits->has_dumps = true;
}

static void open_dump(struct tool_jits *jits, struct process *process)
{
	const char *path = process->dump_path;
	struct perfring_jit_dump about;
	int fd, error;

	process->dump_path = NULL;
	if (!jits->is_monotonic) {
		tell(jits, path, "its times are of CLOCK_MONOTONIC, the recording's of another clock (record -k mono)");
		return;
	}
	if (is_full(jits, path))
		return;
	fd = perfring_jit_file_open((int32_t)process->pid, path, jits->until, jits->flags);
	error = fd < 0 ? fd : perfring_jit_open_dump(&process->dump, fd, &about);
	if (error && fd >= 0)
		close(fd);
	if (error) {
		tell_error(jits, path, error);
		return;
	}
	jits->open_count++;
	if (jits->is_verbose)
		tool_complain("%s: names of code", path);
	jits->dumps = tool_allocate(jits->dumps, jits->dump_count + 1, sizeof(struct process *));
	jits->dumps[jits->dump_count++] = process;
}

static bool advance(struct tool_jits *jits, struct process *process)
{
	struct perfring_jit_counts before, after;
	int error;

	perfring_jit_count(process->dump, &before);
	error = perfring_jit_advance(process->dump, jits->time);
	perfring_jit_count(process->dump, &after);
	if (error)
		tell_error(jits, process->dump_name, error);
	if (after.exceeded && !before.exceeded)
		tell(jits, process->dump_name, "more than is read of one dump (docs/limits.md)");
	return before.taken != after.taken;
}

bool tool_jits_advance(struct tool_jits *jits, uint64_t time)
{
	bool has_changed = false;

	if (!jits->dump_count || time <= jits->time) {
		jits->time = time > jits->time ? time : jits->time;
		return false;
	}
	jits->time = time;
	for (size_t i = 0; i < jits->dump_count; i++)
		has_changed = advance(jits, jits->dumps[i]) || has_changed;
	return has_changed;
}

/* ---- both ---- */

bool tool_jits_find(struct tool_jits *jits, uint32_t pid, const struct perfring_mapping *map, uint64_t ip,
		    struct perfring_jit_symbol *symbol, const char **object)
{
	struct process *process = NULL;

	*object = NULL;
	if (map || jits->has_dumps)
		process = get_process(jits, map ? map->pid : pid);
	if (process && process->dump_path) {
		open_dump(jits, process);
		if (process->dump)
			advance(jits, process);
	}
	if (process && process->dump && perfring_jit_find(process->dump, ip, symbol)) {
		*object = process->dump_name;
		return true;
	}
	if (!map)
		return false;
	if (!process->is_looked_up)
		open_map(jits, process);
	*object = process->map_name;
	return process->map && perfring_jit_find(process->map, ip, symbol);
}

/* Whether each event was recorded by the clock of dumps. */
static bool is_monotonic(const struct perfring_file *data)
{
	const struct perf_event_attr *attr;
	uint32_t i;

	for (i = 0; (attr = perfring_file_attr(data, i)); i++)
		if (!attr->use_clockid || attr->clockid != CLOCK_MONOTONIC)
			return false;
	return i > 0;
}

struct tool_jits *tool_jits_open(const struct perfring_file *data, bool is_forced, bool is_verbose)
{
	struct tool_jits *jits = tool_allocate(NULL, 1, sizeof(*jits));

	memset(jits, 0, sizeof(*jits));
	jits->is_monotonic = is_monotonic(data);
	jits->is_verbose = is_verbose;
	jits->flags = is_forced ? PERFRING_JIT_ANY_OWNER : 0;
	return jits;
}

void tool_jits_recorded(struct tool_jits *jits, const char *path)
{
	struct stat file;

	if (!stat(path, &file) && S_ISREG(file.st_mode))
		jits->until = (uint64_t)file.st_mtim.tv_sec * 1000000000 + (uint64_t)file.st_mtim.tv_nsec;
}

static void free_process(void *at)
{
	struct process *process = at;

	perfring_jit_close(process->dump);
	perfring_jit_close(process->map);
	free(process->dump_name);
	free(process->map_name);
	free(process);
}

void tool_jits_close(struct tool_jits *jits)
{
	if (!jits)
		return;
	tdestroy(jits->processes, free_process);
	free(jits->dumps);
	free(jits);
}
