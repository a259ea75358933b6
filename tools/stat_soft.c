/* stat_soft.c - `perfring stat --soft`: what the kernel counts of every process, without perf_event_open.
 *
 * Why not by soft.h, which counts the same of the threads of one process: the command is another program, in which nothing of ours
 * runs, and its account has every thread and child of it.
 *
 * The kernel adds what a process has used to its parent's account when the parent waits for it (getrusage(2)).  The command's
 * account has itself and its descendants.  This process is their subreaper (prctl(2)): it also waits for those whose parents have
 * ended.  Not counted is what still runs when the command has ended, and a child of a process that ignores SIGCHLD, whose
 * account the kernel drops.
 *
 * Earlier children, which this process had before the command, are noted before each run, and not counted: those of --pre and
 * --post, of an earlier run, of the program that has become this one by exec.  Their descendants look like the command's: one
 * that this process gets during the run is counted.
 *
 * The command is started by vfork: before its exec it uses next to nothing, and nothing observes it, so its privileges
 * (set-user-ID, file capabilities) are its own.  stat.c starts and reaps by it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "stat.h"

enum {
	NS_PER_US = 1000,
	LOOKS = 16, /* at the list of children: it may lack some if others end meanwhile */
};

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * NS_PER_US;
}

/* Returns false for an event that no account has. */
static bool read_usage(const struct rusage *usage, uint64_t config, uint64_t *value)
{
	switch (config) {
	case PERFRING_COUNT_SW_CPU_CLOCK:
	case PERFRING_COUNT_SW_TASK_CLOCK:
		*value = ns_of(&usage->ru_utime) + ns_of(&usage->ru_stime);
		return true;
	case PERFRING_COUNT_SW_PAGE_FAULTS:
		*value = (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt;
		return true;
	case PERFRING_COUNT_SW_PAGE_FAULTS_MIN:
		*value = (uint64_t)usage->ru_minflt;
		return true;
	case PERFRING_COUNT_SW_PAGE_FAULTS_MAJ:
		*value = (uint64_t)usage->ru_majflt;
		return true;
	case PERFRING_COUNT_SW_CONTEXT_SWITCHES:
		*value = (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw;
		return true;
	default:
		return false;
	}
}

static bool knows(const struct perf_event_attr *attr)
{
	static const struct rusage NONE;
	uint64_t value;

	return attr->type == PERFRING_TYPE_SOFTWARE && !attr->exclude_user && !attr->exclude_kernel &&
	       read_usage(&NONE, attr->config, &value);
}

const struct perfring_events_one *tool_stat_soft_unknown(const struct counting *counting)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		const struct perfring_events_one *one = tool_stat_event(counting, i);

		if (!knows(one->attr))
			return one;
	}
	return NULL;
}

bool tool_stat_soft_sum(const struct counting *counting, uint32_t event, struct perfring_count *sum)
{
	const struct perf_event_attr *attr = tool_stat_event(counting, event)->attr;

	*sum = (struct perfring_count){.fds = 1};
	(void)read_usage(&counting->family, PERFRING_COUNT_SW_TASK_CLOCK, &sum->enabled);
	sum->running = sum->enabled;
	return read_usage(&counting->family, attr->config, &sum->value);
}

/* ---- earlier children ---- */

/* Returns 0 or -errno. */
static int list_earlier(struct counting *counting)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	char *line = NULL, *rest, *end;
	size_t capacity = 0;
	ssize_t length;

	counting->earlier_count = 0;
	if (!file)
		return -errno;
	length = getline(&line, &capacity, file);
	fclose(file);
	free(counting->earlier);
	/* A child takes two characters or more. */
	counting->earlier = calloc(length > 0 ? (size_t)length : 1, sizeof(*counting->earlier));
	for (rest = line; counting->earlier && length > 0; rest = end) {
		long pid = strtol(rest, &end, 10);

		if (end == rest)
			break;
		counting->earlier[counting->earlier_count++] = (int32_t)pid;
	}
	free(line);
	return counting->earlier ? 0 : -ENOMEM;
}

/* Waits for the earlier children that have ended, and notes the others. */
static void note_earlier(struct counting *counting)
{
	int ret = 0;

	for (unsigned look = 0; look < LOOKS && !ret; look++) {
		bool have_ended = false;
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			have_ended = true;
		if (pid < 0) { /* no children */
			counting->earlier_count = 0;
			return;
		}
		if (look && !have_ended)
			return;
		ret = list_earlier(counting);
	}
	if (ret && !counting->run)
		tool_complain("stat: --soft: /proc/thread-self/children: %s: children that this process had before the command are "
			      "counted too",
			      strerror(-ret));
}

/* Also forgets it: another process may get its pid. */
static bool was_earlier(struct counting *counting, pid_t pid)
{
	for (uint32_t i = 0; i < counting->earlier_count; i++) {
		if (counting->earlier[i] != pid)
			continue;
		counting->earlier[i] = counting->earlier[--counting->earlier_count];
		return true;
	}
	return false;
}

/* ---- the command ---- */

int tool_stat_soft_start(struct counting *counting)
{
	volatile int error = 0; /* the child has this memory */
	sigset_t ours;
	pid_t pid;

	memset(&counting->family, 0, sizeof(counting->family));
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	note_earlier(counting);
	/* The child must run no handler: it has this stack. */
	sigprocmask(SIG_SETMASK, NULL, &ours);
	pid = vfork();
	if (!pid) {
		sigprocmask(SIG_SETMASK, &counting->mask, NULL);
		execvp(counting->command[0], counting->command);
		error = errno;
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	sigprocmask(SIG_SETMASK, &ours, NULL);
	if (error) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return -error;
	}
	counting->child.pid = pid;
	return 0;
}

static void add_time(struct timeval *sum, const struct timeval *time)
{
	sum->tv_sec += time->tv_sec + (sum->tv_usec + time->tv_usec) / 1000000;
	sum->tv_usec = (sum->tv_usec + time->tv_usec) % 1000000;
}

void tool_stat_soft_reap(struct counting *counting)
{
	struct rusage *family = &counting->family, usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (was_earlier(counting, pid))
			continue;
		add_time(&family->ru_utime, &usage.ru_utime);
		add_time(&family->ru_stime, &usage.ru_stime);
		family->ru_minflt += usage.ru_minflt;
		family->ru_majflt += usage.ru_majflt;
		family->ru_nvcsw += usage.ru_nvcsw;
		family->ru_nivcsw += usage.ru_nivcsw;
		if (pid != counting->child.pid || counting->child_ended)
			continue;
		counting->child_ended = true;
		counting->child_status = status;
		counting->usage = usage;
	}
}
