/* cgroup.h - the mount point of the cgroup hierarchy that perf events follow.
 *
 * event/target.c opens cgroups below it, file/synthesis.c walks it.
 */
#ifndef PERFRING_OS_CGROUP_H
#define PERFRING_OS_CGROUP_H

#include <stddef.h>

/* Looks in a file such as /proc/self/mountinfo for the first hierarchy of version 1 with the controller perf_event,
 * else for the first of version 2.  Returns 0 and its directory, -ENOENT, or -errno.  Context: also signal handlers, as
 * lines.h. */
int perfring__os_cgroup_mount(const char *mounts, char *point, size_t size);

#endif
