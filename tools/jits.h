/* jits.h - names of code that the recorded processes made while they ran: of their maps and dumps, by jit.h.
 *
 * One thread; names are valid until tool_jits_close.
 */
#ifndef PERFRING_TOOLS_JITS_H
#define PERFRING_TOOLS_JITS_H

#include <perfring/file.h>
#include <perfring/jit.h>
#include <perfring/maps.h>

struct tool_jits;

/* data: its attrs have the clock, which must be that of dumps.  is_forced: other users' files are read too.  is_verbose: each
 * file that is read, or is missing, is reported. */
struct tool_jits *tool_jits_open(const struct perfring_file *data, bool is_forced, bool is_verbose);
void tool_jits_close(struct tool_jits *jits);

/* Sets the recording's path: its time is when the processes were last seen.  To be called before the first find. */
void tool_jits_recorded(struct tool_jits *jits, const char *path);

/* Takes a record that is no sample: a process that maps a file jit-N.dump has a dump. */
void tool_jits_take(struct tool_jits *jits, const struct perfring_record *record);

/* Reads the dumps up to this time.  Returns whether names may have changed. */
bool tool_jits_advance(struct tool_jits *jits, uint64_t time);

/* Whether a mapping is memory without a file that may be executed: only there maps are asked. */
static inline bool tool_jits_may_be_in(const struct perfring_mapping *map)
{
	return map->object->kind == PERFRING_MAPS_MEMORY && (map->prot & 4);
}

/* The code at an address.  map: what is mapped there, where tool_jits_may_be_in; or NULL: only dumps are looked at.  *object: the
 * file that the name is of; of memory without a name "/tmp/perf-PID.map", as perf has it; else NULL.  Valid until:
 * tool_jits_close.  Returns false without a name. */
bool tool_jits_find(struct tool_jits *jits, uint32_t pid, const struct perfring_mapping *map, uint64_t ip,
		    struct perfring_jit_symbol *symbol, const char **object);

#endif
