/* jit_files.h - names of code that the recorded processes made while they ran: of their maps and dumps, by jit.h.
 *
 * Private to names.c.  One thread; names are valid until perfring__jit_files_close.
 */
#ifndef PERFRING_SYMBOL_JIT_FILES_H
#define PERFRING_SYMBOL_JIT_FILES_H

#include <perfring/jit.h>
#include <perfring/maps.h>

/* All 0 but the first members is an empty one. */
struct perfring_jit_files {
	/* Called for each file that is read, or is not: `codes` pieces of code, of a dump 0; an -errno as perfring_names_report has it. */
	void (*report)(void *to, const char *path, int error, uint64_t codes);
	void *to;
	uint64_t until;    /* when the processes were seen last, as perfring_jit_file_open's; 0: now */
	uint32_t flags;    /* of perfring_jit_file_open */
	bool is_monotonic; /* the recording's clock is that of dumps */
	/* private: */
	bool has_dumps;  /* some process has */
	void *processes; /* a tree by pid */
	struct perfring_jit_process *last;
	struct perfring_jit_process **dumps;
	uint32_t dump_count, dump_capacity;
	uint32_t open_count; /* of maps and dumps */
	uint64_t codes;      /* in maps */
	uint64_t time;
};

void perfring__jit_files_close(struct perfring_jit_files *files);

/* Takes a record that is no sample: a process that maps a file jit-N.dump has a dump.  Returns 0 or -ENOMEM. */
int perfring__jit_files_take(struct perfring_jit_files *files, const struct perfring_record *record);

/* Reads the dumps up to this time (ns).  Returns 1 if names may have changed, 0, -ENOMEM. */
int perfring__jit_files_advance(struct perfring_jit_files *files, uint64_t time);

/* Whether a mapping is memory without a file that may be executed: only there maps are asked. */
static inline bool perfring__jit_files_may_be_in(const struct perfring_mapping *map)
{
	return map->object->kind == PERFRING_MAPS_MEMORY && (map->prot & 4);
}

/* The code at an address.  map: what is mapped there, where perfring__jit_files_may_be_in; or NULL: only dumps are looked at.
 * *object: the file that the name is of; of memory without a name "/tmp/perf-PID.map", as perf has it; else NULL.  Valid until:
 * perfring__jit_files_close.  Returns 1; 0 without a name; -ENOMEM. */
int perfring__jit_files_find(struct perfring_jit_files *files, uint32_t pid, const struct perfring_mapping *map,
			     uint64_t ip, struct perfring_jit_symbol *symbol, const char **object);

#endif
