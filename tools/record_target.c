/* record_target.c - whom `perfring record` observes: CPUs, processes, threads, a cgroup, a command. */
#include <stdlib.h>
#include <perfring/command.h>
#include <perfring/target.h>
#include "record_command.h"

static bool add_ids(struct recording *recording, char *list, int (*add)(struct perfring_target *, int32_t))
{
	char *rest = list, *word;

	while ((word = strsep(&rest, ","))) {
		int ret = add(recording->target, (int32_t)strtol(word, NULL, 10));

		if (ret) {
			tool_complain("record: %s: %s", word, strerror(-ret));
			return false;
		}
	}
	return true;
}

/* Whether only the command is observed: no other target is named. */
bool tool_record_observes_command(const struct recording *recording)
{
	return recording->command && !recording->all && !recording->pids && !recording->tids && !recording->cgroup;
}

/* As in perf, a name begins at the mount; else it is a path of the file system. */
static int add_cgroup(struct recording *recording)
{
	const char *name = recording->cgroup + strspn(recording->cgroup, "/");
	int ret = perfring_target_add_cgroup(recording->target, *name || !*recording->cgroup ? name : ".");

	if (ret == -ENOENT && *recording->cgroup == '/')
		ret = perfring_target_add_cgroup(recording->target, recording->cgroup);
	return ret;
}

bool tool_record_choose_target(struct recording *recording)
{
	int ret = perfring_target_open(&recording->target);

	if (!ret && !recording->per_thread)
		ret = perfring_target_add_cpus(recording->target, recording->cpus);
	if (ret) {
		tool_complain("record: %s%s: %s", recording->cpus ? "-C " : "",
			      recording->cpus ? recording->cpus : "the CPUs that are online",
			      ret == -EINVAL   ? "not a list of CPUs such as 0-3,6"
			      : ret == -ENODEV ? "not all of these CPUs are online"
					       : strerror(-ret));
		return false;
	}
	if (recording->cgroup) {
		ret = add_cgroup(recording);
		if (ret) {
			tool_complain("record: -G %s: %s", recording->cgroup, strerror(-ret));
			return false;
		}
	}
	if (recording->pids && !add_ids(recording, strdupa(recording->pids), perfring_target_add_process))
		return false;
	if (recording->tids && !add_ids(recording, strdupa(recording->tids), perfring_target_add_thread))
		return false;
	if (recording->command) {
		ret = perfring_command_open(&recording->child, recording->command);
		if (!ret && tool_record_observes_command(recording))
			ret = perfring_target_add_thread(recording->target, recording->child.pid);
		if (ret)
			tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	}
	return !ret;
}
