/* jit.c - names of code that a process made while it ran, by address; the files that have them.
 *
 * The functions of jit.h that are not of one format; perfmap.c and jitdump.c fill the table.  Files are foreign, and may be
 * another user's: owner and age are checked at open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_private.h"
#include "os/clock.h"
#include "os/lines.h"
#include "os/object.h"
#include "os/task.h"

int perfring__jit_make(struct perfring_jit **result)
{
	struct perfring_jit *jit = calloc(1, sizeof(*jit));

	*result = jit;
	if (!jit)
		return -ENOMEM;
	jit->fd = -1;
	jit->names.max = PERFRING_JIT_NAMES_MAX;
	perfring__intervals_open(&jit->intervals);
	return 0;
}

void perfring_jit_close(struct perfring_jit *jit)
{
	if (!jit)
		return;
	if (jit->fd >= 0)
		close(jit->fd);
	perfring__intervals_drop(&jit->intervals, jit->codes);
	perfring__intervals_close(&jit->intervals);
	perfring__intern_close(&jit->names);
	free(jit->window);
	free(jit);
}

/* The object that has this name; *object is NULL if there is no space for it. */
static int get_object(struct perfring_jit *jit, const char *name, size_t size,
		      const struct perfring_maps_object **object)
{
	struct perfring_maps_object key;
	const void *copy;
	int error;

	*object = NULL;
	memset(&key, 0, sizeof(key));
	error = perfring__intern(&jit->names, name, size, &copy);
	if (error || !copy)
		return error;
	key.name = copy;
	error = perfring__intern(&jit->names, &key, sizeof(key), &copy);
	*object = copy;
	return error;
}

/* The code in [start, end) has changed.  Pieces that overlap it are removed as a whole, so that their number does not grow. */
int perfring__jit_forget(struct perfring_jit *jit, uint64_t start, uint64_t end)
{
	const struct perfring_mapping *first, *last;

	if (end <= start)
		return 0;
	first = perfring__intervals_find(jit->codes, start);
	last = perfring__intervals_find(jit->codes, end - 1);
	return perfring__intervals_remove(&jit->intervals, &jit->codes, first ? first->addr : start,
					  last ? last->end : end);
}

int perfring__jit_put_code(struct perfring_jit *jit, const struct perfring_mapping *mapping)
{
	if (mapping->object && jit->intervals.count < PERFRING_JIT_CODES_MAX)
		return perfring__intervals_put(&jit->intervals, &jit->codes, mapping);
	jit->counts.exceeded++;
	return perfring__jit_forget(jit, mapping->addr, mapping->end);
}

int perfring__jit_put(struct perfring_jit *jit, uint64_t start, uint64_t size, const char *name, size_t name_size,
		      uint64_t debug)
{
	struct perfring_mapping mapping = {.addr = start,
					   .end = perfring__jit_end(start, size),
					   .pid = (uint32_t)debug,
					   .prot = (uint32_t)(debug >> 32)};
	int error = 0;

	if (jit->intervals.count < PERFRING_JIT_CODES_MAX)
		error = get_object(jit, name, name_size, &mapping.object);
	return error ? error : perfring__jit_put_code(jit, &mapping);
}

bool perfring_jit_find(const struct perfring_jit *jit, uint64_t ip, struct perfring_jit_symbol *symbol)
{
	const struct perfring_mapping *code = perfring__intervals_find(jit->codes, ip);

	if (!code)
		return false;
	*symbol = (struct perfring_jit_symbol){.name = code->object->name,
					       .start = code->addr - code->pgoff,
					       .debug = (uint64_t)code->prot << 32 | code->pid};
	return true;
}

void perfring_jit_count(const struct perfring_jit *jit, struct perfring_jit_counts *counts)
{
	*counts = jit->counts;
	counts->codes = jit->intervals.count;
}

/* ---- files ---- */

/* The pid of a living process in the innermost pid namespace that it is in. */
static unsigned long long pid_inside(int32_t pid)
{
	char path[32], rest[256], *last;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (perfring__os_lines_find(path, "NSpid", rest, sizeof(rest)) != 1)
		return (unsigned long long)pid;
	last = rest + strlen(rest);
	while (last > rest && last[-1] >= '0' && last[-1] <= '9')
		last--;
	return strtoull(last, NULL, 10);
}

/* When the process that has the pid now started, in ns of CLOCK_REALTIME; 0: there is none. */
static uint64_t start_of(int32_t pid)
{
	uint64_t boot = perfring__os_clock_of(CLOCK_REALTIME) - perfring__os_clock_of(CLOCK_BOOTTIME);
	struct perfring_os_task task;

	if (pid <= 0 || perfring__os_task_stat((uint32_t)pid, (uint32_t)pid, &task))
		return 0;
	return boot + task.start * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

enum {
	SLACK = 1000000000, /* ns: clocks of files and of processes are coarse, and the wall clock is set */
};

/* Refuses a file of another user, who could give any names to the process's code.  pid: of the living process, 0: it has ended. */
static int check_owner(int fd, int32_t pid)
{
	struct stat file, process;
	char path[32];

	if (fstat(fd, &file))
		return -errno;
	if (!file.st_uid || file.st_uid == geteuid())
		return 0;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid && !stat(path, &process) && process.st_uid == file.st_uid ? 0 : -EPERM;
}

/* Whether the file was made before another process started that has the pid now.  Where files have no time of birth, that of
 * the last write serves. */
static int check_age(int fd, uint64_t start)
{
	struct statx file;
	const struct statx_timestamp *birth;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &file))
		return -errno;
	birth = file.stx_mask & STATX_BTIME ? &file.stx_btime : &file.stx_mtime;
	return (uint64_t)birth->tv_sec * 1000000000 + birth->tv_nsec >= start - SLACK ? -ESTALE : 0;
}

static bool is_hidden(int error)
{
	return error == -ENOENT || error == -EACCES || error == -EPERM || error == -ESRCH || error == -ENOSYS;
}

/* Opens the file as the living process sees it, else as this one does.  name: of the map file here. */
static int open_file(int32_t pid, const char *path, const char *name)
{
	char inside[64];
	int fd = -ENOENT;

	if (pid) {
		snprintf(inside, sizeof(inside), "/tmp/perf-%llu.map", pid_inside(pid));
		fd = perfring__os_object_open_as(pid, path ? path : inside);
	}
	return is_hidden(fd) ? perfring__os_object_open(0, path ? path : name) : fd;
}

int perfring_jit_file_open(int32_t pid, const char *path, uint64_t until, uint32_t flags)
{
	uint64_t start = start_of(pid);
	bool is_another = start && until && start > until + SLACK;
	int32_t living = start && !is_another ? pid : 0;
	char name[32];
	int fd, error;

	snprintf(name, sizeof(name), "/tmp/perf-%d.map", pid);
	fd = open_file(living, path, name);
	if (fd < 0)
		return fd;
	error = flags & PERFRING_JIT_ANY_OWNER ? 0 : check_owner(fd, living);
	if (!error && is_another)
		error = check_age(fd, start);
	if (error)
		close(fd);
	return error ? error : fd;
}
