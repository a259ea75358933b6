/* target.h - which threads, CPUs and cgroups are observed.
 *
 * A target belongs to one thread at a time.  Not signal handlers. */
#ifndef PERFRING_TARGET_H
#define PERFRING_TARGET_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Threads x CPUs.  Without threads: everything that runs on the CPUs.  Without CPUs: the threads on any CPU, each with its own
 * ring. */
struct perfring_target;

PERFRING_API int perfring_target_open(struct perfring_target **target);
PERFRING_API void perfring_target_close(struct perfring_target *target);

/* Adds CPUs.  list: as in "0-3,6"; NULL: all that are online now.  Returns 0, -EINVAL (no such list), -ENODEV (a CPU is not
 * online), -ENOMEM. */
PERFRING_API int perfring_target_add_cpus(struct perfring_target *target, const char *list);

/* Adds all threads that the process has now, or one thread.  Returns 0, -ESRCH (no such process or thread), -ENOMEM. */
PERFRING_API int perfring_target_add_process(struct perfring_target *target, int32_t pid);
PERFRING_API int perfring_target_add_thread(struct perfring_target *target, int32_t tid);

/* Adds the members of a cgroup, on each CPU of the target (all online CPUs if none was added).  path: the cgroup's directory,
 * absolute or below the cgroup2 mount.  Returns 0, -EINVAL (the target has threads), -errno of opening the directory. */
PERFRING_API int perfring_target_add_cgroup(struct perfring_target *target, const char *path);

PERFRING_END

#endif
