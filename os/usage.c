/* usage.c - what a thread has used, by the kernel's accounts.
 *
 * soft/account.c counts by it what the kernel accounts to each thread.
 */
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "small_file.h"
#include "task.h"

enum {
	PIECE = 128,       /* small: handlers on small stacks ask too */
	LONGEST = 1 << 20, /* bytes of a file that are looked at */
};

/* ---- a number in a file of /proc ---- */

/* What is known of the line that is being read. */
struct search {
	const char *key; /* at the beginning of its line */
	uint32_t same;   /* bytes of it that the line begins with; UINT32_MAX: another line */
	bool found, counts;
	uint64_t number;
};

/* Returns whether the number has ended. */
static bool look_at(struct search *search, char c)
{
	if (search->found) {
		if (c >= '0' && c <= '9') {
			search->number = search->number * 10 + (uint64_t)(c - '0');
			search->counts = true;
			return false;
		}
		return search->counts || c == '\n';
	}
	if (c == '\n')
		search->same = 0;
	else if (search->same == UINT32_MAX || c != search->key[search->same])
		search->same = UINT32_MAX;
	else
		search->found = !search->key[++search->same];
	return false;
}

/* The first number after the key that begins a line of /proc/PID/task/TID/NAME.  Returns whether there is one. */
static bool find_number(uint32_t tid, const char *name, const char *key, uint64_t *number)
{
	struct search search = {.key = key};
	char piece[PIECE];
	bool ended = false;
	int saved = errno, fd;
	int64_t got;

	perfring__os_task_path(piece, (uint32_t)getpid(), tid, name);
	fd = open(piece, O_RDONLY | O_CLOEXEC);
	for (uint64_t at = 0; fd >= 0 && !ended && at < LONGEST; at += (uint64_t)got) {
		got = perfring__os_file_pread(fd, piece, sizeof(piece), at);
		if (got <= 0)
			break;
		for (int64_t i = 0; i < got && !ended; i++)
			ended = look_at(&search, piece[i]);
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
	*number = search.number;
	return search.counts;
}

/* ---- the accounts ---- */

uint64_t perfring__os_usage_faults(uint32_t tid, bool here, bool minor, bool major)
{
	struct perfring_os_task thread;
	struct rusage usage;
	int saved = errno, error;

	if (here && !getrusage(RUSAGE_THREAD, &usage))
		return 1 + (minor ? (uint64_t)usage.ru_minflt : 0) + (major ? (uint64_t)usage.ru_majflt : 0);
	error = perfring__os_task_stat((uint32_t)getpid(), tid, &thread);
	errno = saved;
	return error ? 0 : 1 + (minor ? thread.minor_faults : 0) + (major ? thread.major_faults : 0);
}

uint64_t perfring__os_usage_switches(uint32_t tid, bool here)
{
	struct rusage usage;
	uint64_t asked, forced;
	int saved = errno;

	if (here && !getrusage(RUSAGE_THREAD, &usage))
		return 1 + (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	errno = saved;
	if (!find_number(tid, "/status", "voluntary_ctxt_switches:", &asked) ||
	    !find_number(tid, "/status", "nonvoluntary_ctxt_switches:", &forced))
		return 0;
	return 1 + asked + forced;
}

uint64_t perfring__os_usage_migrations(uint32_t tid)
{
	uint64_t number;

	return find_number(tid, "/sched", "se.nr_migrations", &number) ? 1 + number : 0;
}

bool perfring__os_usage_has_migrations(void)
{
	uint64_t number;

	return find_number((uint32_t)getpid(), "/sched", "se.nr_migrations", &number);
}
