/* opener.c - the opener of events x threads x CPUs x groups, for sessions and counting.
 *
 * perfring__opener_open opens each event of a list for each place of a target, and undoes all of it on an error.
 * session/session_open.c and counts.c give it a callback that takes the fds of one place.  Threads exit and fork meanwhile: what
 * passes is tried again.  One thread; nothing is shared.
 */
#include "opener.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "os/small_file.h"
#include "os/lines.h"

enum {
	TRIES = 32,       /* of opening, and of a read in between: some 25 ms */
	READ_TRIES = 256, /* of reading a whole group: a child may be preempted while it exits */
	NONE = UINT32_MAX,
};

/* ---- limits ---- */

/* The number of open fds below the limit.  The limit bounds the fds' numbers: those above it, after it was lowered, do
 * not count. */
static uint64_t count_below(uint64_t limit)
{
	DIR *files = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t count = 0;

	/* EMFILE: all fds are in use. */
	if (!files)
		return errno == EMFILE ? limit : 0;
	while ((entry = readdir(files)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') {
			unsigned long fd = strtoul(entry->d_name, NULL, 10);

			count += fd < limit && fd != (unsigned long)dirfd(files);
		}
	closedir(files);
	return count;
}

/* An upper bound of the fds; UINT32_MAX: unknown.  To count every fd at each opening would be quadratic work. */
static uint64_t table_size(void)
{
	return perfring__os_lines_number("/proc/self/status", "FDSize", 10, UINT32_MAX);
}

static bool fits(uint64_t more, uint64_t open, uint64_t limit)
{
	return more <= limit && open <= limit - more;
}

int perfring__opener_files(uint64_t more, bool raise, char *refusal, size_t size)
{
	struct perfring_words text = {refusal, size, 0};
	struct rlimit limit, raised;
	uint64_t open, most;

	if (!more)
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (fits(more, table_size(), limit.rlim_cur))
		return 0;
	open = count_below(limit.rlim_cur);
	if (fits(more, open, limit.rlim_cur))
		return 0;
	/* Up to the hard limit: the caller opens files of its own too. */
	raised.rlim_cur = raised.rlim_max = limit.rlim_max;
	if (raise && limit.rlim_cur < limit.rlim_max && !setrlimit(RLIMIT_NOFILE, &raised))
		return perfring__opener_files(more, false, refusal, size);
	most = perfring__os_file_number("/proc/sys/fs/nr_open", 0);
	perfring__say(&text, "%" PRIu64 " files are to be opened besides the %" PRIu64 " that are open, and ", more,
		      open);
	if (fits(more, open, limit.rlim_max))
		perfring__say(&text,
			      "the soft RLIMIT_NOFILE is %" PRIu64 ": raise it (ulimit -n %" PRIu64
			      "), let the session raise it, or take fewer events, threads or CPUs.",
			      (uint64_t)limit.rlim_cur, open + more);
	else if (most && !fits(more, open, most))
		perfring__say(&text,
			      "/proc/sys/fs/nr_open lets a process have %" PRIu64
			      ": take fewer events, threads or CPUs, or raise nr_open and then LimitNOFILE=.",
			      most);
	else
		perfring__say(&text,
			      "the hard RLIMIT_NOFILE is %" PRIu64 ": as root raise it (ulimit -Hn %" PRIu64
			      ", LimitNOFILE= of the service), or take fewer events, threads or CPUs.",
			      (uint64_t)limit.rlim_max, open + more);
	return -EMFILE;
}

/* ---- groups of threads that exit or have children meanwhile ---- */

/* Sleeps longer at each try, at most a millisecond. */
static void nap(int tried)
{
	struct timespec time = {0, tried < 8 ? 1000L << tried : 1000000};

	nanosleep(&time, NULL);
}

static int read_in(int tries, int fd, const struct perfring_format *format, struct perfring_read *values, void *space,
		   size_t size)
{
	int ret = -ECHILD;

	for (int tried = 0; ret == -ECHILD && tried < tries; tried++) {
		if (tried)
			nap(tried);
		ret = perfring_event_read(fd, format, values, space, size);
	}
	return ret;
}

int perfring__opener_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *space,
			  size_t size)
{
	return read_in(READ_TRIES, fd, format, values, space, size);
}

int perfring__opener_check_group(int fd, uint64_t read_format)
{
	struct perfring_format format = {.read_format = read_format};
	uint64_t space[PERFRING_OPENER_READ_WORDS];
	struct perfring_read values;

	return read_in(TRIES, fd, &format, &values, space, sizeof(space)) == -ECHILD ? -ECHILD : 0;
}

int perfring__opener_retry(int (*open)(void *of, bool *joining), void *of, bool is_thread)
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

/* ---- one place ---- */

struct opening {
	const struct perfring_opener *by;
	const struct perfring_target *target;
	struct perfring_open_place place;
	bool skips_gone;           /* a thread that has exited is no error */
	uint32_t refused;          /* the event that the kernel refused; NONE: another error */
	union perfring_attr tried; /* its attr, as it was refused last, */
	uint64_t dropped;          /* without these */
	int *fds;                  /* one for each event, or -1 */
};

static struct perfring_opener_event *event_of(const struct opening *opening, uint32_t i)
{
	return opening->by->event(opening->by->of, opening->by->first + i);
}

static bool is_member(const struct opening *opening, uint32_t i)
{
	return perfring__opener_joins(event_of(opening, i), opening->by->first + i);
}

static int open_event(struct opening *opening, uint32_t i)
{
	struct perfring_opener_event *event = event_of(opening, i);
	int leader = is_member(opening, i) ? opening->fds[event->leader - opening->by->first] : -1;
	uint64_t flags = opening->place.is_cgroup ? PERFRING_FLAG_PID_CGROUP : 0;
	uint32_t bytes = perfring__attr_own_size(event->attr);
	uint64_t allowed = event->is_decided ? 0 : opening->by->allowed;
	int fd;

	memcpy(&opening->tried, event->attr, bytes);
	fd = allowed ? perfring_event_open_fallback(&opening->tried.attr, opening->place.who, opening->place.cpu,
						    leader, flags, allowed, &opening->dropped)
		     : perfring_event_open(event->attr, opening->place.who, opening->place.cpu, leader, flags);
	if (!allowed)
		opening->dropped = event->dropped;
	if (fd < 0)
		return fd;
	memcpy(event->attr, &opening->tried, bytes);
	event->dropped = opening->dropped;
	event->is_decided = true;
	return fd;
}

/* Checks inherited groups, each by its first event that reads the whole group. */
static int check_groups(const struct opening *opening)
{
	uint32_t checked = PERFRING_NO_GROUP;
	int ret = 0;

	for (uint32_t i = 0; !ret && opening->by->count > 1 && i < opening->by->count; i++) {
		const struct perfring_opener_event *event = event_of(opening, i);

		if (opening->fds[i] < 0 || event->leader == checked || !event->attr->inherit ||
		    !(event->attr->read_format & PERFRING_FORMAT_GROUP))
			continue;
		checked = event->leader;
		ret = perfring__opener_check_group(opening->fds[i], event->attr->read_format);
	}
	return ret;
}

/* Newest first: closing a leader before its siblings would make events of their own of them. */
static void close_fds(struct opening *opening)
{
	for (uint32_t i = opening->by->count; i-- > 0;) {
		if (opening->fds[i] >= 0)
			close(opening->fds[i]);
		opening->fds[i] = -1;
	}
}

static int open_once(void *of, bool *joining)
{
	struct opening *opening = of;
	int ret = 0;

	opening->refused = NONE;
	for (uint32_t i = 0; ret >= 0 && i < opening->by->count; i++) {
		if (event_of(opening, i)->is_absent)
			continue;
		ret = opening->fds[i] = open_event(opening, i);
		if (ret < 0) {
			*joining = is_member(opening, i);
			opening->refused = i;
		}
	}
	if (ret >= 0)
		ret = check_groups(opening);
	if (ret < 0)
		close_fds(opening);
	return ret;
}

/* Errors that no permission would change. */
static bool is_missing(int error)
{
	return error == -ENOENT || error == -EOPNOTSUPP || error == -ENXIO || error == -ENODEV || error == -EINVAL;
}

/* Leaves out the refused event, and with a leader its group.  Returns false when that is not allowed. */
static bool leave_out(struct opening *opening, int error)
{
	if (!(opening->by->allowed & PERFRING_FALLBACK_MISSING) || opening->refused == NONE || !is_missing(error))
		return false;
	for (uint32_t i = opening->refused; i < opening->by->count; i++) {
		struct perfring_opener_event *event = event_of(opening, i);

		if (i != opening->refused && event->leader != opening->by->first + opening->refused)
			continue;
		event->is_absent = true;
		event->error = event->is_taken ? 0 : error;
		event->cpu = opening->place.cpu;
		event->tried = i == opening->refused ? opening->tried.attr : *event->attr;
		if (i == opening->refused && !event->is_decided)
			event->dropped = opening->dropped;
	}
	return true;
}

static bool is_skipped(const struct opening *opening, int error)
{
	return (error == -ESRCH && opening->skips_gone) ||
	       (error == -ENODEV && opening->target->all_cpus && opening->place.cpu >= 0 &&
		perfring__cpu_is_offline(opening->place.cpu));
}

/* Returns 1 when the place is skipped. */
static int open_place(struct opening *opening)
{
	bool is_thread = opening->place.who >= 0 && !opening->place.is_cgroup;
	int ret;

	/* CPUs differ in their PMUs, threads do not. */
	for (uint32_t i = 0; opening->place.cpu >= 0 && i < opening->by->count; i++)
		event_of(opening, i)->is_absent = false;
	do {
		ret = perfring__opener_retry(open_once, opening, is_thread);
		if (is_skipped(opening, ret))
			return 1;
	} while (ret && leave_out(opening, ret));
	for (uint32_t i = 0; !ret && i < opening->by->count; i++) {
		struct perfring_opener_event *event = event_of(opening, i);

		if (event->is_absent)
			continue;
		ret = opening->by->take(opening->by->of, &opening->place, opening->by->first + i, opening->fds[i]);
		if (ret)
			break;
		opening->fds[i] = -1;
		event->is_taken = true;
		event->error = 0;
	}
	close_fds(opening);
	return ret;
}

/* ---- all places ---- */

static const struct perfring_numbers ANY = {(int32_t[]){-1}, 1, 1};

const struct perfring_numbers *perfring__target_who(const struct perfring_target *target)
{
	if (target->cgroups.count)
		return &target->cgroups;
	return target->threads.count || target->process_count ? &target->tids : &ANY;
}

const struct perfring_numbers *perfring__target_where(const struct perfring_target *target)
{
	return target->cpus.count || target->all_cpus ? &target->cpus : &ANY;
}

static void explain(const struct opening *opening, int error)
{
	struct perfring_words text = {opening->by->refusal, opening->by->size, 0};
	bool joins = is_member(opening, opening->refused);

	text.length = (size_t)perfring_event_explain(error, &opening->tried.attr,
						     opening->place.is_cgroup ? -1 : opening->place.who,
						     opening->place.cpu, opening->by->refusal, opening->by->size);
	if (opening->place.is_cgroup && (error == -EBADF || error == -ENOENT))
		perfring__say(&text, " Or the directory is not that of a cgroup, or its hierarchy has no perf_event "
				     "controller.");
	else if (joins && error == -E2BIG)
		perfring__say(&text, " Or its group is larger than what one read can hold, 16 KiB.");
	else if (joins && error == -EINVAL)
		perfring__say(&text, " Or it cannot be in one group with its leader.");
}

int perfring__opener_open(const struct perfring_opener *opener, const struct perfring_target *target,
			  const struct perfring_numbers *who, const struct perfring_numbers *cpus)
{
	struct perfring_words text = {opener->refusal, opener->size, 0};
	uint64_t places = (uint64_t)who->count * cpus->count, skipped = 0;
	struct opening opening = {.by = opener,
				  .target = target,
				  .place.is_cgroup = target->cgroups.count,
				  .skips_gone = opener->is_late || who->count > 1};
	int ret = 0;

	opening.fds = malloc(opener->count * sizeof(*opening.fds));
	if (!opening.fds)
		return -ENOMEM;
	memset(opening.fds, 0xff, opener->count * sizeof(*opening.fds));
	for (uint64_t i = 0; ret >= 0 && i < places; i++) {
		opening.place.who = who->numbers[i / cpus->count];
		opening.place.cpu = cpus->numbers[i % cpus->count];
		ret = open_place(&opening);
		skipped += ret == 1;
	}
	free(opening.fds);
	if (ret < 0) {
		if (opening.refused != NONE)
			explain(&opening, ret);
		return ret;
	}
	if (skipped < places || opener->is_late)
		return 0;
	if (who->count && who->numbers[0] >= 0 && !opening.place.is_cgroup)
		perfring__say(&text, "there is no thread %d, nor one of the others.", who->numbers[who->count - 1]);
	else
		perfring__say(&text, "none of these CPUs is online any more.");
	return -ESRCH;
}
