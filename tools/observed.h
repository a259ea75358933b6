/* observed.h - which CPUs, processes, threads, users and cgroups `record` and `stat` observe, as their options name them.
 *
 * record_target.c, record_options.c, stat.c and stat_options.c use it.  Errors are complaints on stderr.
 */
#ifndef PERFRING_TOOLS_OBSERVED_H
#define PERFRING_TOOLS_OBSERVED_H

#include <perfring/file_writer.h>
#include <perfring/target.h>
#include "tools.h"

/* Adds the CPUs of -C; NULL: all that are online.  Returns false after a complaint of `command`. */
bool tool_target_add_cpus(const char *command, struct perfring_target *target, const char *list);

/* Adds processes, or threads, of a list "1,23".  gone_is_well: those that have ended are skipped.  Returns false after a complaint. */
bool tool_target_add_processes(const char *command, struct perfring_target *target, const char *list,
			       bool gone_is_well);
bool tool_target_add_threads(const char *command, struct perfring_target *target, const char *list);

/* Every process there is, or (user) those of one user: NAME or a number.  Returns "1,23", which the caller frees, or NULL after
 * a complaint: there is none, or no such user. */
char *tool_target_processes(const char *command, const char *user);

/* Adds a cgroup.  Its name begins at the mount, as in perf, or is a path of the file system.  Returns false after a complaint. */
bool tool_target_add_cgroup(const char *command, struct perfring_target *target, const char *name);

/* The cgroup of event i in the list of -G: its i-th name, or its only one for every event; an empty name is no cgroup.  Writes it
 * into `name`, which has as many bytes as the list, and returns that; NULL: none. */
const char *tool_target_cgroup_of(const char *list, uint32_t i, char *name);

/* How many names a list has. */
uint32_t tool_target_cgroup_count(const char *list);

/* Joins the lists of two -G: "a" and "b" become "a,b".  old: NULL, or from this function.  The caller frees the result. */
char *tool_target_cgroups_join(char *old, const char *more);

/* Writes CPU_MAP: the CPUs that are observed.  Returns as perfring_file_writer_put. */
int tool_target_put_cpus(struct perfring_file_writer *writer, const uint16_t *cpus, uint16_t count);

#endif
