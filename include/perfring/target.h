/* target.h - which threads, CPUs and cgroups are observed.
 *
 * For perfring_session_add and perfring_counts_add, which keep no pointer to it.  Context: one thread at a time for each target; not
 * signal handlers. */
#ifndef PERFRING_TARGET_H
#define PERFRING_TARGET_H

#include <perfring/base.h>

PERFRING_BEGIN

/* Each event is opened for every pair of a thread and a CPU.  Without threads: for everything that runs on the CPUs.  Without
 * CPUs: for the threads on any CPU, each with its own ring; an event that inherits cannot be mapped then (docs/abi.md 7.10).
 * With neither, the add of an event refuses (-EINVAL). */
struct perfring_target;

/* An empty target.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_target_open(struct perfring_target **target);
PERFRING_API void perfring_target_close(struct perfring_target *target);

/* Adds CPUs.  list: as in "0-3,6"; NULL: all that are online now.  Returns 0, -EINVAL (not a list of CPUs), -ENODEV (a CPU is
 * not online), -ENOMEM, -errno of reading sysfs.  After an error of this or any function below a part may have been
 * added: close the target. */
PERFRING_API int perfring_target_add_cpus(struct perfring_target *target, const char *list);

/* Adds all threads that the process has now (perfring_session_update opens events on later ones), or one thread; tid 0: the
 * thread that opens the events.  Returns 0, -EINVAL (a negative number, or the target has cgroups), -ENOMEM; of a process also
 * -ESRCH (there is none) and -errno of reading /proc.  Whether there is such a thread shows when the events are opened. */
PERFRING_API int perfring_target_add_process(struct perfring_target *target, int32_t pid);
PERFRING_API int perfring_target_add_thread(struct perfring_target *target, int32_t tid);

/* Adds the members of a cgroup, on each CPU of the target (all online CPUs if none was added).  path: the cgroup's directory,
 * absolute or below the mount of the hierarchy that perf uses: perf_event's, else cgroup2's.  Returns 0, -EINVAL (an empty or
 * too long path, or the target has threads), -ENOMEM, -errno of opening the directory. */
PERFRING_API int perfring_target_add_cgroup(struct perfring_target *target, const char *path);

PERFRING_END

#endif
