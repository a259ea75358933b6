/* observed.c - which CPUs, processes, threads, users and cgroups `record` and `stat` observe.
 *
 * event.h and target.h take numbers; here are the users' words for them: lists, users, patterns of cgroups.  Reads /proc and the
 * cgroup mount.
 */
#include "observed.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "options.h"

bool tool_target_add_cpus(const char *command, struct perfring_target *target, const char *list)
{
	int ret = perfring_target_add_cpus(target, list);

	if (ret)
		tool_complain("%s: %s%s: %s", command, list ? "-C " : "", list ? list : "the CPUs that are online",
			      ret == -EINVAL   ? "not a list of CPUs such as 0-3,6"
			      : ret == -ENODEV ? "not all of these CPUs are online"
					       : strerror(-ret));
	return !ret;
}

static bool add_ids(const char *command, struct perfring_target *target, const char *list,
		    int (*add)(struct perfring_target *, int32_t), bool gone_is_well)
{
	char *copy = strdup(list), *rest = copy, *word;
	int ret = copy ? 0 : -ENOMEM;

	if (ret)
		tool_complain("out of memory");
	while (!ret && (word = strsep(&rest, ","))) {
		ret = add(target, (int32_t)strtol(word, NULL, 10));
		if (gone_is_well && (ret == -ESRCH || ret == -ENOENT))
			ret = 0;
		if (ret)
			tool_complain("%s: %s: %s", command, word, strerror(-ret));
	}
	free(copy);
	return !ret;
}

bool tool_target_add_processes(const char *command, struct perfring_target *target, const char *list, bool gone_is_well)
{
	return add_ids(command, target, list, perfring_target_add_process, gone_is_well);
}

bool tool_target_add_threads(const char *command, struct perfring_target *target, const char *list)
{
	return add_ids(command, target, list, perfring_target_add_thread, false);
}

/* ---- users ---- */

static bool find_user(const char *command, const char *name, uid_t *uid)
{
	const struct passwd *user = getpwnam(name);
	uint64_t number;

	if (user) {
		*uid = user->pw_uid;
	} else if (tool_options_number(name, 0, UINT32_MAX - 1, &number)) {
		*uid = (uid_t)number;
	} else {
		tool_complain("%s: -u %s: no such user", command, name);
		return false;
	}
	return true;
}

char *tool_target_processes(const char *command, const char *user)
{
	uid_t uid = 0;
	char *list = NULL;
	size_t length = 0, space = 0;
	const struct dirent *entry;
	DIR *processes;

	if (user && !find_user(command, user, &uid))
		return NULL;
	processes = opendir("/proc");
	if (!processes) {
		tool_complain("%s: /proc: %s", command, strerror(errno));
		return NULL;
	}
	while ((entry = readdir(processes))) {
		struct stat owner;
		uint64_t pid;

		if (!tool_options_number(entry->d_name, 1, INT32_MAX, &pid) ||
		    (user && (fstatat(dirfd(processes), entry->d_name, &owner, 0) || owner.st_uid != uid)))
			continue;
		if (space - length < 16) {
			space = space ? 2 * space : 1024;
			list = tool_allocate(list, space, 1);
		}
		length += (size_t)snprintf(list + length, space - length, length ? ",%s" : "%s", entry->d_name);
	}
	closedir(processes);
	if (!list)
		tool_complain("%s: -u %s: runs no process", command, user ? user : "");
	return list;
}

/* ---- cgroups ---- */

bool tool_target_add_cgroup(const char *command, struct perfring_target *target, const char *name)
{
	const char *below = name + strspn(name, "/");
	int ret = perfring_target_add_cgroup(target, *below ? below : ".");

	if (ret == -ENOENT && *name == '/')
		ret = perfring_target_add_cgroup(target, name);
	if (ret)
		tool_complain("%s: -G %s: %s", command, name, strerror(-ret));
	return !ret;
}

uint32_t tool_target_cgroup_count(const char *list)
{
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

const char *tool_target_cgroup_of(const char *list, uint32_t i, char *name)
{
	size_t length;

	if (tool_target_cgroup_count(list) > 1)
		for (; list && i; i--) {
			list = strchr(list, ',');
			list = list ? list + 1 : NULL;
		}
	length = list ? strcspn(list, ",") : 0;
	if (!length)
		return NULL;
	memcpy(name, list, length);
	name[length] = 0;
	return name;
}

char *tool_target_cgroups_join(char *old, const char *more)
{
	size_t size = (old ? strlen(old) + 1 : 0) + strlen(more) + 1;
	char *both = tool_allocate(NULL, size, 1);

	snprintf(both, size, "%s%s%s", old ? old : "", old ? "," : "", more);
	free(old);
	return both;
}

int tool_target_put_cpus(struct perfring_file_writer *writer, const uint16_t *cpus, uint16_t count)
{
	struct perfring_record record = {.type = PERFRING_RECORD_CPU_MAP};

	record.is.cpu_map.cpus.type = PERFRING_CPU_MAP_CPUS;
	record.is.cpu_map.cpus.nr = count;
	record.is.cpu_map.cpus.data = cpus;
	record.is.cpu_map.cpus.size = count * (uint32_t)sizeof(cpus[0]);
	return perfring_file_writer_put(writer, 0, &record);
}
