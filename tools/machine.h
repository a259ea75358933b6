/* machine.h - the state of the recorded machine at the time of the record last taken: names and mappings, by maps.h.
 *
 * symbols.c and the commands that show names use it.  One thread; texts are valid until tool_machine_close.
 *
 * Without memory the program ends with one line.
 */
#ifndef PERFRING_TOOLS_MACHINE_H
#define PERFRING_TOOLS_MACHINE_H

#include <perfring/maps.h>

struct tool_machine;

struct tool_machine *tool_machine_open(void);

/* Reports what exceeded a bound. */
void tool_machine_close(struct tool_machine *machine);

void tool_machine_take(struct tool_machine *machine, const struct perfring_record *record);

/* ":TID" when nothing named it. */
const char *tool_machine_comm(struct tool_machine *machine, uint32_t tid);

/* Whether something named it: of threads that ended long ago it is forgotten. */
bool tool_machine_knows(const struct tool_machine *machine, uint32_t tid);

/* The mapping at this address, or NULL.  Valid until: the next take. */
const struct perfring_mapping *tool_machine_user(const struct tool_machine *machine, uint32_t pid, uint64_t addr);
const struct perfring_mapping *tool_machine_kernel(const struct tool_machine *machine, uint64_t addr);

/* The mappings themselves. */
const struct perfring_maps *tool_machine_maps(const struct tool_machine *machine);

/* Whether a mapping of the kernel is that of a module, "[zram]" or the path of its file.  short: "[zram]" for both; other names stay. */
bool tool_machine_is_module(const char *name);
const char *tool_machine_short_module(struct tool_machine *machine, const char *name);

/* The one pointer of a name. */
const char *tool_machine_name(struct tool_machine *machine, const char *text, size_t size);

#endif
