/* file_topology.c - where the CPUs of a recorded machine are, as its perf.data file says.
 *
 * Walks CPU_TOPOLOGY and NUMA_TOPOLOGY; the numbers are a file's, and bounded by the feature's bytes.
 */
#include <stdlib.h>
#include <perfring/feature.h>
#include "file_topology.h"
#include "tools.h"

static bool begin(struct perfring_layout_walk *walk, const struct perfring_file *data, uint32_t feature)
{
	uint64_t size = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_NRCPUS, &size);
	uint32_t cpus = 0;

	if (payload && size >= sizeof(cpus))
		memcpy(&cpus, payload, sizeof(cpus));
	payload = perfring_file_feature(data, feature, &size);
	if (payload)
		perfring_feature_open(walk, feature, payload, size, cpus);
	return payload;
}

static struct tool_topology_cpu *add(struct tool_topology *topology)
{
	struct tool_topology_cpu *cpu;

	if (!(topology->count & (topology->count + 1)))
		topology->cpus =
			tool_allocate(topology->cpus, 2 * (topology->count + (size_t)1), sizeof(*topology->cpus));
	cpu = &topology->cpus[topology->count++];
	*cpu = (struct tool_topology_cpu){0};
	return cpu;
}

/* "0-3,6".  left: CPUs that no node has yet: each is of one. */
static void set_nodes(struct tool_topology *topology, const char *list, int32_t node, uint32_t *left)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = *end == '-' ? strtoul(end + 1, &end, 10) : from;

		for (unsigned long cpu = from; cpu <= to && cpu < topology->count && *left; cpu++, --*left)
			topology->cpus[cpu].node = node;
		list = end + (*end == ',');
	}
}

void tool_topology_read(struct tool_topology *topology, const struct perfring_file *data)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint32_t dies = 0, left;
	int32_t node = 0;

	*topology = (struct tool_topology){0, NULL};
	if (begin(&walk, data, PERFRING_FEATURE_CPU_TOPOLOGY))
		while (topology->count < TOOL_TOPOLOGY_CPUS && perfring_layout_next(&walk, &member) == 1) {
			if (!strcmp(member.name, "core"))
				add(topology)->core = (int32_t)member.number;
			else if (!strcmp(member.name, "socket") && topology->count)
				topology->cpus[topology->count - 1].socket = (int32_t)member.number;
			else if (!strcmp(member.name, "die") && dies < topology->count)
				topology->cpus[dies++].die = (int32_t)member.number;
		}
	left = topology->count;
	if (left && begin(&walk, data, PERFRING_FEATURE_NUMA_TOPOLOGY))
		while (left && perfring_layout_next(&walk, &member) == 1) {
			if (!strcmp(member.name, "node"))
				node = (int32_t)member.number;
			else if (!strcmp(member.name, "cpus"))
				set_nodes(topology, member.bytes, node, &left);
		}
}

void tool_topology_free(struct tool_topology *topology)
{
	free(topology->cpus);
	*topology = (struct tool_topology){0, NULL};
}
