/* file_topology.h - where the CPUs of a recorded machine are, as its perf.data file says.
 *
 * report_rows.c, stat.c and stat_report.c sum by socket, die, core and node.  The caller frees the array.
 */
#ifndef PERFRING_TOOLS_FILE_TOPOLOGY_H
#define PERFRING_TOOLS_FILE_TOPOLOGY_H

#include <perfring/file.h>

enum {
	TOOL_TOPOLOGY_CPUS = 1 << 16, /* at most */
};

struct tool_topology {
	uint32_t count; /* of CPUs, from 0 on; 0: the file does not say */
	struct tool_topology_cpu {
		int32_t core, socket, die, node;
	} * cpus;
};

/* From the features CPU_TOPOLOGY and NUMA_TOPOLOGY.  A number that they do not have is 0. */
void tool_topology_read(struct tool_topology *topology, const struct perfring_file *data);
void tool_topology_free(struct tool_topology *topology);

#endif
