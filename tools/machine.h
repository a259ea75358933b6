/* machine.h - the state of the recorded machine at the time of the record last taken: names and mappings, by maps.h.
 *
 * symbol_names.c and the commands that show names use it.  One thread; texts are valid until tool_machine_close.
 *
 * Without memory the program ends with one line.
 */
#ifndef PERFRING_TOOLS_MACHINE_H
#define PERFRING_TOOLS_MACHINE_H

#include <perfring/maps.h>

struct tool_machine;

struct tool_machine *tool_machine_open(void);

/* Frees it; reports what exceeded a bound. */
void tool_machine_close(struct tool_machine *machine);

/* Takes a record that is no sample. */
void tool_machine_take(struct tool_machine *machine, const struct perfring_record *record);

/* The thread's name; ":TID" if no record named it. */
const char *tool_machine_comm(struct tool_machine *machine, uint32_t tid);

/* Whether a record named the thread; names of threads that ended long ago are forgotten. */
bool tool_machine_knows(const struct tool_machine *machine, uint32_t tid);

/* The mapping at this address, or NULL.  Valid until: the next take. */
const struct perfring_mapping *tool_machine_user(const struct tool_machine *machine, uint32_t pid, uint64_t addr);
const struct perfring_mapping *tool_machine_kernel(const struct tool_machine *machine, uint64_t addr);

/* The mappings themselves. */
struct perfring_maps *tool_machine_maps(const struct tool_machine *machine);

/* Copies a name of at most `size` bytes, and returns the one pointer of equal names. */
const char *tool_machine_name(struct tool_machine *machine, const char *text, size_t size);

#endif
