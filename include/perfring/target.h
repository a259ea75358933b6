/* target.h - which threads, CPUs and cgroups are observed.
 *
 * A target belongs to one thread at a time.  Not signal handlers. */
#ifndef PERFRING_TARGET_H
#define PERFRING_TARGET_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Threads x CPUs.  No thread means everything on those CPUs; no CPU means those threads wherever they run, each with a
 * ring of its own. */
struct perfring_target;

PERFRING_API int perfring_target_open(struct perfring_target **target);
PERFRING_API void perfring_target_close(struct perfring_target *target);

/* CPUs as in "0-3,6"; NULL means all that are online now.  Returns 0, -EINVAL (not a list), -ENODEV (a CPU that is not
 * online), -ENOMEM. */
PERFRING_API int perfring_target_add_cpus(struct perfring_target *target, const char *list);

/* Every thread of the process now (-ESRCH when there is none), or one thread. */
PERFRING_API int perfring_target_add_process(struct perfring_target *target, int32_t pid);
PERFRING_API int perfring_target_add_thread(struct perfring_target *target, int32_t tid);

/* Members of a cgroup, named by its directory (absolute, or below the cgroup2 mount), on each CPU of the target (all that
 * are online when none was added).  Not together with threads.  Returns 0, -errno of opening the directory, -EINVAL. */
PERFRING_API int perfring_target_add_cgroup(struct perfring_target *target, const char *path);

PERFRING_END

#endif
