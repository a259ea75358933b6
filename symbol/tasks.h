/* tasks.h - threads and processes by their numbers, in a table of bounded size.
 *
 * maps.c keeps what it knows of threads in it.  A hash table and two lists, by the time of the last record; bounds as in maps.h.
 * A pointer to a task is valid until the next perfring__tasks_get.
 */
#ifndef PERFRING_SYMBOL_TASKS_H
#define PERFRING_SYMBOL_TASKS_H

#include <perfring/maps.h>

#include "intervals.h"

/* A thread by its tid, and a process by its pid: maps, guest and threads are the process's. */
struct perfring_task {
	uint32_t id;
	uint32_t process; /* the pid of a thread that is counted there; 0: it is not */
	uint32_t threads; /* other than the first, that have not ended */
	bool is_old;      /* it was there when the recording began, and has not ended since */
	bool has_ended;
	bool is_listed_as_ended; /* it is in the list `ended`: it and all its threads have ended */
	const char *comm;
	const perfring_word *namespaces; /* pairs of device and inode */
	uint64_t namespace_count;
	struct perfring_interval *maps;
	uint64_t version;                /* of maps: equal ones are equal mappings; 0: none */
	struct perfring_interval *guest; /* of its kernel */
	struct perfring_task *older, *newer;
};

/* In the order of their last records. */
struct perfring_task_list {
	struct perfring_task *oldest, *newest;
	uint64_t count;
};

struct perfring_tasks {
	struct perfring_task **slots; /* by id: open addressing, at most half full */
	uint64_t slot_count;          /* a power of two */
	uint64_t factor;
	struct perfring_task_list living, ended;
	struct perfring_intervals intervals; /* the memory of their mappings */
	uint64_t forgotten;                  /* other than ended ones */
};

/* Returns 0 or -ENOMEM. */
int perfring__tasks_open(struct perfring_tasks *tasks);
void perfring__tasks_close(struct perfring_tasks *tasks);

/* The task of a number; NULL: there is none. */
struct perfring_task *perfring__tasks_find(const struct perfring_tasks *tasks, uint32_t id);

/* The task of a record's number, added if there is none; it becomes the newest.  Another task may be forgotten for it.  Returns NULL
 * without memory. */
struct perfring_task *perfring__tasks_get(struct perfring_tasks *tasks, uint32_t id);

/* Forgets one task: of those that have ended the first, else the one that no record has named for longest.  Returns false if there is
 * none. */
bool perfring__tasks_forget(struct perfring_tasks *tasks);

/* Removes the mappings of a process. */
void perfring__tasks_clear_maps(struct perfring_tasks *tasks, struct perfring_task *task);

/* Empties a task whose number is used by another thread or process from now on. */
void perfring__tasks_renew(struct perfring_tasks *tasks, struct perfring_task *task);

/* Counts the thread in its process.  Returns 0 or -ENOMEM. */
int perfring__tasks_join(struct perfring_tasks *tasks, uint32_t tid, uint32_t pid);

/* Marks a thread as ended, and its process too if that was its last. */
void perfring__tasks_end(struct perfring_tasks *tasks, uint32_t tid);

#endif
