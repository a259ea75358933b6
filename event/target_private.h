/* target_private.h - the inside of a target: sorted numbers of threads and CPUs, processes, cgroups.
 *
 * opener.c, counts.c and session/ read targets by it.
 */
#ifndef PERFRING_EVENT_TARGET_PRIVATE_H
#define PERFRING_EVENT_TARGET_PRIVATE_H

#include <perfring/target.h>

/* Sorted, each once. */
struct perfring_numbers {
	int32_t *numbers;
	uint32_t count;
	uint32_t capacity;
};

struct perfring_process {
	int32_t pid;
	uint64_t start; /* ticks since boot: tells it from a later process with its pid */
};

struct perfring_target {
	struct perfring_numbers cpus;
	struct perfring_numbers tids;    /* all threads, those of processes too */
	struct perfring_numbers threads; /* added one by one */
	struct perfring_numbers cgroups; /* fds of their directories */
	struct perfring_process *processes;
	uint32_t process_count;
	uint32_t process_capacity;
	bool all_cpus; /* that are online */
};

int perfring__numbers_add(struct perfring_numbers *numbers, int32_t number);
bool perfring__numbers_have(const struct perfring_numbers *numbers, int32_t number);

/* Removes numbers that are not in `kept`. */
void perfring__numbers_keep(struct perfring_numbers *numbers, const struct perfring_numbers *kept);

/* Adds a list such as "0-3,6".  Returns 0, -EINVAL, or -ENODEV for a number that is not in `among` (or NULL). */
int perfring__numbers_add_list(struct perfring_numbers *numbers, const char *list,
			       const struct perfring_numbers *among);
int perfring__numbers_add_online(struct perfring_numbers *numbers);
bool perfring__cpu_is_offline(int32_t cpu);

/* Adds its threads.  Returns 0 or -errno; -ESRCH: the process has exited, even if its pid is another's now. */
int perfring__numbers_add_process(struct perfring_numbers *tids, const struct perfring_process *process);

int perfring__target_copy(struct perfring_target *copy, const struct perfring_target *target);
void perfring__target_empty(struct perfring_target *target);

#endif
