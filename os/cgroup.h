/* cgroup.h - where the hierarchy of cgroups is mounted that perf events follow. */
#ifndef PERFRING_OS_CGROUP_H
#define PERFRING_OS_CGROUP_H

#include <stddef.h>

/* Looks in a file such as /proc/self/mountinfo for version 1's hierarchy with the controller perf_event, else for version 2's, the
 * first of them.  Returns 0 and its directory, -ENOENT, or -errno.  Context: also signal handlers, as lines.h. */
int perfring_os_cgroup_mount(const char *mounts, char *point, size_t size);

#endif
