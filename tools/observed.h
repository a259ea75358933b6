/* observed.h - which CPUs, processes, threads, users and cgroups `record` and `stat` observe, as their options name them.
 *
 * record_target.c, record_options.c, stat.c and stat_options.c use it.  Errors are complaints on stderr.
 */
#ifndef PERFRING_TOOLS_OBSERVED_H
#define PERFRING_TOOLS_OBSERVED_H

#include <perfring/file_writer.h>
#include <perfring/target.h>
#include "tools.h"

/* The CPUs of -C; NULL: all that are online.  False after a complaint of `command`. */
bool tool_target_add_cpus(const char *command, struct perfring_target *target, const char *list);

/* "1,23": processes, or threads.  gone_is_well: one that has ended is passed over.  False after a complaint. */
bool tool_target_add_processes(const char *command, struct perfring_target *target, const char *list,
			       bool gone_is_well);
bool tool_target_add_threads(const char *command, struct perfring_target *target, const char *list);

/* Every process there is, or (user) those of one user: NAME or a number.  Returns "1,23", which the caller frees, or NULL after
 * a complaint: there is none, or no such user. */
char *tool_target_processes(const char *command, const char *user);

/* A cgroup: as in perf its name begins at the mount, else it is a path of the file system.  False after a complaint. */
bool tool_target_add_cgroup(const char *command, struct perfring_target *target, const char *name);

/* -G: a list of cgroups, the i-th for event i; one alone is for every event; empty: of event i everything is observed.
 * The name for event i of `count`, in `name`, which has as many bytes as the list; NULL: none.  */
const char *tool_target_cgroup_of(const char *list, uint32_t i, char *name);

/* How many names a list has. */
uint32_t tool_target_cgroup_count(const char *list);

/* "a" and "b" of two -G: "a,b".  old: NULL or from this function; the caller frees the result. */
char *tool_target_cgroups_join(char *old, const char *more);

/* Writes CPU_MAP: the CPUs that are observed.  Returns as perfring_file_writer_put. */
int tool_target_put_cpus(struct perfring_file_writer *writer, const uint16_t *cpus, uint16_t count);

#endif
