/* stat_soft.c - `perfring stat --soft`: what the kernel counts of every process, without perf_event_open.
 *
 * The kernel adds what a process has used to its parent's account when the parent waits for it (getrusage(2)).  The command's
 * account has itself and its descendants.  This process is their subreaper (prctl(2)): it also waits for those whose parents have
 * ended.  Not counted is what still runs when the command has ended, and a child of a process that ignores SIGCHLD, whose
 * account the kernel drops.
 *
 * The command is started by vfork: before its exec it uses next to nothing, and nothing observes it, so its privileges
 * (set-user-ID, file capabilities) are its own. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "stat.h"

enum {
	NS_PER_US = 1000,
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

bool tool_stat_soft_knows(const struct perf_event_attr *attr)
{
	static const struct rusage NONE;
	uint64_t value;

	return attr->type == PERFRING_TYPE_SOFTWARE && !attr->exclude_user && !attr->exclude_kernel &&
	       read_usage(&NONE, attr->config, &value);
}

bool tool_stat_soft_sum(const struct counting *counting, uint32_t event, struct perfring_count *sum)
{
	const struct perf_event_attr *attr = tool_stat_event(counting, event)->attr;

	*sum = (struct perfring_count){.fds = 1};
	(void)read_usage(&counting->family, PERFRING_COUNT_SW_TASK_CLOCK, &sum->enabled);
	sum->running = sum->enabled;
	return read_usage(&counting->family, attr->config, &sum->value);
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
