/* machine.h - the state of the recorded machine at the time of the record last taken: names and mappings. */
#ifndef PERFRING_TOOLS_MACHINE_H
#define PERFRING_TOOLS_MACHINE_H

#include <string.h>
#include <perfring/record.h>

/* [addr, end) shows the file from pgoff on.  The name lives as long as the machine, and equal names are one pointer.
 * file: all 0 where the record of the mapping had none. */
struct tool_mapping {
	uint64_t addr;
	uint64_t end;
	uint64_t pgoff;
	const char *name;
	struct perfring_file_id file;
};

/* Whether a file or the vdso is mapped there: addresses in other memory are their own. */
static inline bool tool_mapping_has_file(const struct tool_mapping *map)
{
	static const char *const memory[] = {"//anon", "/dev/zero", "/anon_hugepage", "[stack", "/SYSV", "[heap]"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (!strncmp(map->name, memory[i], strlen(memory[i])))
			return false;
	return true;
}

struct tool_machine;

struct tool_machine *tool_machine_open(void);
void tool_machine_close(struct tool_machine *machine);

/* Updates the state by COMM, FORK, MMAP, MMAP2 and KSYMBOL records, in time order. */
void tool_machine_take(struct tool_machine *machine, const struct perfring_record *record);

/* ":TID" when nothing named it. */
const char *tool_machine_comm(struct tool_machine *machine, uint32_t tid);

/* The mapping at this address, or NULL.  Valid until: the next take. */
const struct tool_mapping *tool_machine_user(const struct tool_machine *machine, uint32_t pid, uint64_t addr);
const struct tool_mapping *tool_machine_kernel(const struct tool_machine *machine, uint64_t addr);

/* The one pointer of a name. */
const char *tool_machine_name(struct tool_machine *machine, const char *text, size_t size);

#endif
