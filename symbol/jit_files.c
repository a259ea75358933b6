/* jit_files.c - names of code that the recorded processes made while they ran.
 *
 * names.c gives it records of mappings and asks for addresses.  A process's map is opened when an address of it is first asked
 * for, its dump after the record of the dump's mapping.  Files are foreign, and bounded (jit.h, limits.h).  One thread.
 */
#include "jit_files.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "limits.h"
#include "os/array.h"

/* What is known of one process's code. */
struct perfring_jit_process {
	uint32_t pid;
	bool is_looked_up; /* its map file */
	char *dump_path;   /* NULL: it has none, or it is open or cannot be */
	char *dump_name;
	char *map_name;
	struct perfring_jit *dump;
	struct perfring_jit *map;
};

static int compare_processes(const void *a, const void *b)
{
	const struct perfring_jit_process *one = a, *other = b;

	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

/* NULL: no memory. */
static struct perfring_jit_process *get_process(struct perfring_jit_files *files, uint32_t pid)
{
	struct perfring_jit_process key = {.pid = pid}, *process;
	void *at;

	if (files->last && files->last->pid == pid)
		return files->last;
	at = tfind(&key, &files->processes, compare_processes);
	if (at)
		return files->last = *(struct perfring_jit_process **)at;
	process = malloc(sizeof(*process));
	if (!process)
		return NULL;
	*process = key;
	if (!tsearch(process, &files->processes, compare_processes)) {
		free(process);
		return NULL;
	}
	return files->last = process;
}

static void report(struct perfring_jit_files *files, const char *path, int error, uint64_t codes)
{
	if (files->report)
		files->report(files->to, path, error, codes);
}

static bool is_full(struct perfring_jit_files *files, const char *path)
{
	if (files->open_count < PERFRING_LIMIT_JITS && files->codes < PERFRING_LIMIT_JIT_CODES)
		return false;
	report(files, path, -E2BIG, 0);
	return true;
}

/* ---- maps ---- */

static int open_map(struct perfring_jit_files *files, struct perfring_jit_process *process)
{
	struct perfring_jit_counts counts;
	int fd, error;

	process->is_looked_up = true;
	if (asprintf(&process->map_name, "/tmp/perf-%d.map", (int)process->pid) < 0) {
		process->map_name = NULL;
		return -ENOMEM;
	}
	if (is_full(files, process->map_name))
		return 0;
	fd = perfring_jit_file_open((int32_t)process->pid, NULL, files->until, files->flags);
	error = fd < 0 ? fd : perfring_jit_open_map(&process->map, fd);
	if (fd >= 0)
		close(fd);
	if (error == -ENOMEM)
		return error;
	if (error) {
		report(files, process->map_name, error, 0);
		return 0;
	}
	perfring_jit_count(process->map, &counts);
	files->open_count++;
	files->codes += counts.codes;
	report(files, process->map_name, 0, counts.codes);
	if (counts.exceeded)
		report(files, process->map_name, -EFBIG, 0);
	return 0;
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

int perfring__jit_files_take(struct perfring_jit_files *files, const struct perfring_record *record)
{
	const struct perfring_string *name;
	struct perfring_jit_process *process;
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
		return 0;
	}
	if ((record->misc & PERFRING_RECORD_MISC_CPUMODE_MASK) != PERFRING_RECORD_MISC_USER || !is_dump(name))
		return 0;
	process = get_process(files, pid);
	if (!process)
		return -ENOMEM;
	if (process->dump_name) /* its first */
		return 0;
	process->dump_path = process->dump_name = strndup(name->data, name->size);
	if (!process->dump_name)
		return -ENOMEM;
	files->has_dumps = true;
	return 0;
}

static int open_dump(struct perfring_jit_files *files, struct perfring_jit_process *process)
{
	const char *path = process->dump_path;
	struct perfring_jit_dump about;
	int fd, error;

	process->dump_path = NULL;
	if (!files->is_monotonic) {
		report(files, path, -ETIME, 0);
		return 0;
	}
	if (is_full(files, path))
		return 0;
	if (perfring__os_array_grow(&files->dumps, files->dump_count, &files->dump_capacity,
				    sizeof(struct perfring_jit_process *)))
		return -ENOMEM;
	fd = perfring_jit_file_open((int32_t)process->pid, path, files->until, files->flags);
	error = fd < 0 ? fd : perfring_jit_open_dump(&process->dump, fd, &about);
	if (error && fd >= 0)
		close(fd);
	if (error == -ENOMEM)
		return error;
	report(files, path, error, 0);
	if (error)
		return 0;
	files->open_count++;
	files->dumps[files->dump_count++] = process;
	return 0;
}

/* Returns 1 if records were taken, 0, -ENOMEM. */
static int advance(struct perfring_jit_files *files, struct perfring_jit_process *process)
{
	struct perfring_jit_counts before, after;
	int error;

	perfring_jit_count(process->dump, &before);
	error = perfring_jit_advance(process->dump, files->time);
	perfring_jit_count(process->dump, &after);
	if (error == -ENOMEM)
		return error;
	if (error)
		report(files, process->dump_name, error, 0);
	if (after.exceeded && !before.exceeded)
		report(files, process->dump_name, -EFBIG, 0);
	return before.taken != after.taken;
}

int perfring__jit_files_advance(struct perfring_jit_files *files, uint64_t time)
{
	int has_changed = 0;

	if (!files->dump_count || time <= files->time) {
		files->time = time > files->time ? time : files->time;
		return 0;
	}
	files->time = time;
	for (size_t i = 0; i < files->dump_count; i++) {
		int one = advance(files, files->dumps[i]);

		if (one < 0)
			return one;
		has_changed |= one;
	}
	return has_changed;
}

/* ---- both ---- */

int perfring__jit_files_find(struct perfring_jit_files *files, uint32_t pid, const struct perfring_mapping *map,
			     uint64_t ip, struct perfring_jit_symbol *symbol, const char **object)
{
	struct perfring_jit_process *process = NULL;
	int error = 0;

	*object = NULL;
	if (!map && !files->has_dumps)
		return 0;
	process = get_process(files, map ? map->pid : pid);
	if (!process)
		return -ENOMEM;
	if (process->dump_path) {
		error = open_dump(files, process);
		if (!error && process->dump)
			error = advance(files, process);
		if (error < 0)
			return error;
	}
	if (process->dump && perfring_jit_find(process->dump, ip, symbol)) {
		*object = process->dump_name;
		return 1;
	}
	if (!map)
		return 0;
	if (!process->is_looked_up)
		error = open_map(files, process);
	if (error < 0)
		return error;
	*object = process->map_name;
	return process->map && perfring_jit_find(process->map, ip, symbol);
}

static void free_process(void *at)
{
	struct perfring_jit_process *process = at;

	perfring_jit_close(process->dump);
	perfring_jit_close(process->map);
	free(process->dump_name);
	free(process->map_name);
	free(process);
}

void perfring__jit_files_close(struct perfring_jit_files *files)
{
	tdestroy(files->processes, free_process);
	free(files->dumps);
	files->processes = NULL;
	files->dumps = NULL;
}
