/* opening.c - what opening many fds shares: limits looked at and raised before the kernel refuses, and groups on threads
 * that die or have children meanwhile. */
#include "opening.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "event_private.h"
#include "os/file.h"
#include "os/lines.h"

enum {
	TRIES = 32,       /* openings, and reads between them: some 25 ms */
	READ_TRIES = 256, /* reads of a group that was whole: a child may be preempted in the middle of its end */
};

/* The limit bounds the numbers of fds, not how many there are: those above it (it was lowered) take no place below. */
static void count_below(rlim_t limit, uint64_t *count)
{
	DIR *files = opendir("/proc/self/fd");
	struct dirent *entry;

	*count = 0;
	/* No fd is left to look with: all are taken. */
	if (!files && errno == EMFILE)
		*count = limit;
	if (!files)
		return;
	while ((entry = readdir(files)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') {
			unsigned long fd = strtoul(entry->d_name, NULL, 10);

			*count += fd < limit && fd != (unsigned long)dirfd(files);
		}
	closedir(files);
}

/* The highest number that an fd of ours ever had, or somewhat more; UINT32_MAX when that is not told.  Looking at every
 * fd whenever some are to be opened would be quadratic work. */
static uint64_t table_size(void)
{
	return perfring_os_lines_number("/proc/self/status", "FDSize", 10, UINT32_MAX);
}

int perfring_plan_files(uint64_t more, bool raise, char *refusal, size_t size)
{
	struct rlimit limit;
	uint64_t open, most;

	if (!more)
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur == RLIM_INFINITY || (more <= limit.rlim_cur && table_size() <= limit.rlim_cur - more))
		return 0;
	count_below(limit.rlim_cur, &open);
	if (more <= limit.rlim_cur && open <= limit.rlim_cur - more)
		return 0;
	most = limit.rlim_max;
	if (raise && limit.rlim_cur < limit.rlim_max) {
		/* All the way: the caller has files of its own to open behind these. */
		limit.rlim_cur = limit.rlim_max;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return perfring_plan_files(more, false, refusal, size);
	}
	if (limit.rlim_max == RLIM_INFINITY || (more <= most && open <= most - more)) {
		snprintf(refusal, size,
			 "%" PRIu64 " files are to be opened beside the %" PRIu64
			 " that are open, and the soft RLIMIT_NOFILE is %" PRIu64 ": raise it (ulimit -n %" PRIu64
			 "), let the session raise it, or take fewer events, threads or CPUs.",
			 more, open, (uint64_t)limit.rlim_cur, open + more);
		return -EMFILE;
	}
	most = perfring_os_file_number("/proc/sys/fs/nr_open", 0);
	if (most && (more > most || open > most - more))
		snprintf(refusal, size,
			 "%" PRIu64 " files are to be opened beside the %" PRIu64
			 " that are open, and /proc/sys/fs/nr_open lets a process "
			 "have %" PRIu64
			 ": take fewer events, threads or CPUs, or raise nr_open and then LimitNOFILE=.",
			 more, open, most);
	else
		snprintf(refusal, size,
			 "%" PRIu64 " files are to be opened beside the %" PRIu64
			 " that are open, and the hard RLIMIT_NOFILE is %" PRIu64
			 ": as root raise it (ulimit -Hn %" PRIu64
			 ", LimitNOFILE= of the service), or take fewer events, threads or CPUs.",
			 more, open, (uint64_t)limit.rlim_max, open + more);
	return -EMFILE;
}

/* ---- groups ---- */

/* The longer it takes, the longer; at most a millisecond. */
static void nap(int tried)
{
	struct timespec time = {0, tried < 8 ? 1000L << tried : 1000000};

	nanosleep(&time, NULL);
}

static int read_in(int tries, int fd, const struct perfring_format *format, struct perfring_read *values, void *room,
		   size_t size)
{
	int ret = -ECHILD;

	for (int tried = 0; ret == -ECHILD && tried < tries; tried++) {
		if (tried)
			nap(tried);
		ret = perfring_event_read(fd, format, values, room, size);
	}
	return ret;
}

int perfring_plan_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *room,
		       size_t size)
{
	return read_in(READ_TRIES, fd, format, values, room, size);
}

int perfring_plan_group(int fd, uint64_t read_format)
{
	struct perfring_format format = {.read_format = read_format};
	uint64_t room[PERFRING_PLAN_READ_WORDS];
	struct perfring_read values;

	return read_in(TRIES, fd, &format, &values, room, sizeof(room)) == -ECHILD ? -ECHILD : 0;
}

int perfring_plan_place(int (*open)(void *of, bool *joining), void *of, bool is_thread)
{
	bool joining = false;
	int ret = open(of, &joining);

	for (int tried = 1; is_thread && tried < TRIES; tried++) {
		if (ret != -ECHILD && !(joining && (ret == -EINVAL || ret == -ENODEV)))
			break;
		nap(tried);
		joining = false;
		ret = open(of, &joining);
	}
	return ret;
}
