/* machine.c - names of threads and mappings of processes, from records.
 *
 * Wraps maps.h for the commands: ends the program without memory, keeps one pointer for each name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "machine.h"
#include "tools.h"

struct tool_machine {
	struct perfring_maps *maps;
};

static void must(int error)
{
	if (error)
		tool_out_of_memory();
}

void tool_machine_take(struct tool_machine *machine, const struct perfring_record *record)
{
	must(perfring_maps_take_record(machine->maps, record));
}

const char *tool_machine_name(struct tool_machine *machine, const char *text, size_t size)
{
	const char *name = perfring_maps_name(machine->maps, text, size);

	must(!name);
	return name;
}

const char *tool_machine_comm(struct tool_machine *machine, uint32_t tid)
{
	const char *comm = perfring_maps_comm(machine->maps, tid);
	char text[16];

	if (comm)
		return comm;
	snprintf(text, sizeof(text), ":%" PRId32, (int32_t)tid);
	return tool_machine_name(machine, text, sizeof(text));
}

bool tool_machine_knows(const struct tool_machine *machine, uint32_t tid)
{
	return perfring_maps_comm(machine->maps, tid);
}

struct perfring_maps *tool_machine_maps(const struct tool_machine *machine)
{
	return machine->maps;
}

const struct perfring_mapping *tool_machine_user(const struct tool_machine *machine, uint32_t pid, uint64_t addr)
{
	return perfring_maps_find(machine->maps, PERFRING_RECORD_MISC_USER, pid, addr);
}

const struct perfring_mapping *tool_machine_kernel(const struct tool_machine *machine, uint64_t addr)
{
	return perfring_maps_find(machine->maps, PERFRING_RECORD_MISC_KERNEL, 0, addr);
}

struct tool_machine *tool_machine_open(void)
{
	struct tool_machine *machine = tool_allocate(NULL, 1, sizeof(*machine));

	must(perfring_maps_open(&machine->maps));
	return machine;
}

void tool_machine_close(struct tool_machine *machine)
{
	struct perfring_maps_counts counts;

	if (!machine)
		return;
	perfring_maps_count(machine->maps, &counts);
	if (counts.forgotten)
		tool_complain("warning: names and mappings of %" PRIu64
			      " threads and processes did not stay known: there are more "
			      "than are kept at a time (docs/limits.md)",
			      counts.forgotten);
	if (counts.nameless)
		tool_complain("warning: %" PRIu64 " names are not known: there are more than are kept (docs/limits.md)",
			      counts.nameless);
	perfring_maps_close(machine->maps);
	free(machine);
}
