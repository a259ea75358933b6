/* topology.c - the features of the processors, memory, PMUs and the events' clock (docs/abi.md 11.3).
 *
 * machine_info.c calls it.  Reads /proc and /sys, in bounds; what a machine does not have is left out.  Layouts of the payloads:
 * feature.def.
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include "os/lines.h"
#include "os/range.h"
#include "os/clock.h"
#include "os/small_file.h"
#include "sample/attr.h"
#include "file_writer_private.h"

#define CPUS "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"
#define NODES_MAX 1024
#define MEMORY "/sys/devices/system/memory"
#define PMUS "/sys/bus/event_source/devices"

static void take_error(struct perfring_byte_buffer *buffer, int error)
{
	if (!buffer->unread)
		buffer->unread = perfring__os_pass_over(error);
}

static struct dirent *next_entry(struct perfring_byte_buffer *buffer, DIR *folder)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(folder);
	if (!entry)
		take_error(buffer, -errno);
	return entry;
}

/* A small file.  Returns false if there is none, or it could not be read: `unread` has the error. */
static __attribute__((format(printf, 4, 5))) bool read_text(struct perfring_byte_buffer *buffer, char *text,
							    size_t size, const char *format, ...)
{
	char path[320];
	va_list list;
	int64_t got;
	int length;

	va_start(list, format);
	length = vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	if (length < 0 || (size_t)length >= sizeof(path))
		return false;
	got = perfring__os_file_read(path, text, size);
	take_error(buffer, got < 0 ? (int)got : 0);
	return got >= 0;
}

static uint32_t number_in(struct perfring_byte_buffer *buffer, const char *path, uint32_t cpu)
{
	char text[64];

	if (!read_text(buffer, text, sizeof(text), CPUS "/cpu%u/%s", cpu, path))
		return UINT32_MAX;
	return (uint32_t)strtoul(text, NULL, 0);
}

/* ---- processors ---- */

static uint32_t count_cpus(void)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);

	return count > 0 ? (uint32_t)count : 0;
}

/* The count of different strings, then the strings. */
static void put_lists(struct perfring_byte_buffer *buffer, const char *name, const char *older, uint32_t cpus)
{
	size_t count_at = buffer->used, from;
	uint32_t count = 0;
	char text[512];

	perfring__byte_buffer_put_u32(buffer, 0);
	from = buffer->used;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		size_t begun = buffer->used, length, at;

		if (!read_text(buffer, text, sizeof(text), CPUS "/cpu%u/topology/%s", cpu, name) &&
		    !(older && read_text(buffer, text, sizeof(text), CPUS "/cpu%u/topology/%s", cpu, older)))
			continue;
		perfring__byte_buffer_put_string(buffer, text);
		if (buffer->error)
			return;
		length = buffer->used - begun;
		for (at = from; at < begun; at += 4 + (size_t) * (uint32_t *)(void *)(buffer->bytes + at))
			if (begun - at >= length && !memcmp(buffer->bytes + at, buffer->bytes + begun, length))
				break;
		if (at < begun)
			buffer->used = begun;
		else
			count++;
	}
	perfring__byte_buffer_set(buffer, count_at, &count, sizeof(count));
}

static bool put_cpu_topology(struct perfring_byte_buffer *buffer)
{
	uint32_t cpus = count_cpus();

	put_lists(buffer, "package_cpus_list", "core_siblings_list", cpus);
	put_lists(buffer, "core_cpus_list", "thread_siblings_list", cpus);
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		perfring__byte_buffer_put_u32(buffer, number_in(buffer, "topology/core_id", cpu));
		perfring__byte_buffer_put_u32(buffer, number_in(buffer, "topology/physical_package_id", cpu));
	}
	put_lists(buffer, "die_cpus_list", NULL, cpus);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		perfring__byte_buffer_put_u32(buffer, number_in(buffer, "topology/die_id", cpu));
	return cpus;
}

static bool put_caches(struct perfring_byte_buffer *buffer)
{
	static const char *const numbers[] = {"level", "coherency_line_size", "number_of_sets",
					      "ways_of_associativity"};
	static const char *const texts[] = {"type", "size"};
	uint32_t count = 0, cpus = count_cpus();

	perfring__byte_buffer_put_u32(buffer, 1);
	perfring__byte_buffer_put_u32(buffer, 0);
	for (uint32_t level = 0; level < 16; level++)
		for (uint32_t cpu = 0; cpu < cpus; cpu++) {
			char map[512], text[64], path[64];

			snprintf(path, sizeof(path), "cache/index%u", level);
			if (!read_text(buffer, map, sizeof(map), CPUS "/cpu%u/%s/shared_cpu_list", cpu, path) ||
			    strtoul(map, NULL, 10) != cpu)
				continue; /* once: for the first of the CPUs that share it */
			for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
				snprintf(path, sizeof(path), "cache/index%u/%s", level, numbers[i]);
				perfring__byte_buffer_put_u32(buffer, number_in(buffer, path, cpu));
			}
			for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
				if (!read_text(buffer, text, sizeof(text), CPUS "/cpu%u/cache/index%u/%s", cpu, level,
					       texts[i]))
					*text = 0;
				perfring__byte_buffer_put_string(buffer, text);
			}
			perfring__byte_buffer_put_string(buffer, map);
			count++;
		}
	perfring__byte_buffer_set(buffer, 4, &count, sizeof(count));
	return count;
}

static bool put_cpuid(struct perfring_byte_buffer *buffer)
{
	char text[128];
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c, d, family, model;
	char vendor[13] = {0};

	if (!__get_cpuid(0, &a, &b, &c, &d))
		return false;
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return false;
	family = (a >> 8 & 15) == 15 ? 15 + (a >> 20 & 255) : a >> 8 & 15;
	model = (a >> 4 & 15) + (family >= 6 ? (a >> 16 & 15) << 4 : 0);
	snprintf(text, sizeof(text), "%s,%u,%u,%u", vendor, family, model, a & 15);
#else
	if (!read_text(buffer, text, sizeof(text), CPUS "/cpu0/regs/identification/midr_el1"))
		return false;
#endif
	perfring__byte_buffer_put_string(buffer, text);
	return true;
}

/* ---- memory ---- */

/* One more than the highest number of a node.  (Up to 1024 nodes: looking for each would take 2000 system calls.) */
static unsigned count_nodes(struct perfring_byte_buffer *buffer)
{
	uint32_t first, last = NODES_MAX;
	char text[512];
	const char *at = text;

	if (!read_text(buffer, text, sizeof(text), NODES "/possible"))
		return NODES_MAX;
	while (perfring__os_range_next(&at, &first, &last) == 1)
		;
	return last < NODES_MAX ? last + 1 : NODES_MAX;
}

/* "Node 0 MemTotal:  123 kB" */
static uint64_t kilobytes_of(struct perfring_byte_buffer *buffer, unsigned node, const char *name)
{
	char path[64], whole[64], number[32];
	int found;

	snprintf(path, sizeof(path), NODES "/node%u/meminfo", node);
	snprintf(whole, sizeof(whole), "Node %u %s", node, name);
	found = perfring__os_lines_find(path, whole, number, sizeof(number));
	take_error(buffer, found < 0 ? found : 0);
	return found == 1 ? strtoull(number, NULL, 10) : 0;
}

static bool put_nodes(struct perfring_byte_buffer *buffer)
{
	unsigned nodes = count_nodes(buffer);
	uint32_t count = 0;
	char cpus[512];

	perfring__byte_buffer_put_u32(buffer, 0);
	for (unsigned node = 0; node < nodes; node++) {
		if (!read_text(buffer, cpus, sizeof(cpus), NODES "/node%u/cpulist", node))
			continue;
		perfring__byte_buffer_put_u32(buffer, node);
		perfring__byte_buffer_put_u64(buffer, kilobytes_of(buffer, node, "MemTotal"));
		perfring__byte_buffer_put_u64(buffer, kilobytes_of(buffer, node, "MemFree"));
		perfring__byte_buffer_put_string(buffer, cpus);
		count++;
	}
	perfring__byte_buffer_set(buffer, 0, &count, sizeof(count));
	return count;
}

/* A bitmap of a node's memory blocks.  Returns false if it has none. */
static bool put_blocks(struct perfring_byte_buffer *buffer, unsigned node)
{
	enum {
		MAX_BLOCKS = 1 << 20
	};
	struct dirent *entry;
	uint64_t bits = 0, *words;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), NODES "/node%u", node);
	folder = opendir(path);
	if (!folder) {
		take_error(buffer, -errno);
		return false;
	}
	words = calloc(MAX_BLOCKS / 64, sizeof(*words));
	if (!words)
		buffer->error = -ENOMEM;
	while (words && (entry = next_entry(buffer, folder))) {
		unsigned long block;
		char *end;

		if (strncmp(entry->d_name, "memory", 6) || entry->d_name[6] < '0' || entry->d_name[6] > '9')
			continue;
		block = strtoul(entry->d_name + 6, &end, 10);
		if (*end || block >= MAX_BLOCKS)
			continue;
		words[block / 64] |= UINT64_C(1) << block % 64;
		if (bits <= block)
			bits = block + 1;
	}
	closedir(folder);
	if (bits) {
		perfring__byte_buffer_put_u64(buffer, node);
		perfring__byte_buffer_put_u64(buffer, bits);
		perfring__byte_buffer_put_u64(buffer, bits);
		perfring__byte_buffer_put(buffer, words, (size_t)(bits + 63) / 64 * 8);
	}
	free(words);
	return bits;
}

static bool put_memory(struct perfring_byte_buffer *buffer)
{
	unsigned nodes = count_nodes(buffer);
	uint64_t count = 0;
	char text[64];

	if (!read_text(buffer, text, sizeof(text), MEMORY "/block_size_bytes"))
		return false;
	perfring__byte_buffer_put_u64(buffer, 1);
	perfring__byte_buffer_put_u64(buffer, strtoull(text, NULL, 16));
	perfring__byte_buffer_put_u64(buffer, 0);
	for (unsigned node = 0; node < nodes; node++)
		count += put_blocks(buffer, node);
	perfring__byte_buffer_set(buffer, 16, &count, sizeof(count));
	return count;
}

/* ---- PMUs ---- */

/* A count, then what put_one puts of each entry of a folder.  Returns the count: 0, and nothing was put. */
static uint32_t put_folder(struct perfring_byte_buffer *buffer, const char *path,
			   bool (*put_one)(struct perfring_byte_buffer *buffer, const char *path, const char *name))
{
	size_t begin = buffer->used;
	struct dirent *entry;
	uint32_t count = 0;
	DIR *folder = opendir(path);

	if (!folder) {
		take_error(buffer, -errno);
		return 0;
	}
	perfring__byte_buffer_put_u32(buffer, 0);
	while ((entry = next_entry(buffer, folder)))
		count += entry->d_name[0] != '.' && put_one(buffer, path, entry->d_name);
	closedir(folder);
	if (count)
		perfring__byte_buffer_set(buffer, begin, &count, sizeof(count));
	else
		buffer->used = begin;
	return count;
}

static bool put_pmu(struct perfring_byte_buffer *buffer, const char *path, const char *name)
{
	char text[64];

	if (!read_text(buffer, text, sizeof(text), "%s/%s/type", path, name))
		return false;
	perfring__byte_buffer_put_u32(buffer, (uint32_t)strtoul(text, NULL, 10));
	perfring__byte_buffer_put_string(buffer, name);
	return true;
}

static bool put_pmus(struct perfring_byte_buffer *buffer)
{
	return put_folder(buffer, PMUS, put_pmu);
}

static bool put_capability(struct perfring_byte_buffer *buffer, const char *path, const char *name)
{
	char text[256];

	if (!read_text(buffer, text, sizeof(text), "%s/%s", path, name))
		return false;
	perfring__byte_buffer_put_string(buffer, name);
	perfring__byte_buffer_put_string(buffer, text);
	return true;
}

static bool put_cpu_capabilities(struct perfring_byte_buffer *buffer)
{
	return put_folder(buffer, PMUS "/cpu/caps", put_capability);
}

/* The capabilities of a PMU that is not "cpu", then its name. */
static bool put_pmu_with_capabilities(struct perfring_byte_buffer *buffer, const char *path, const char *name)
{
	char caps[320];

	snprintf(caps, sizeof(caps), "%s/%s/caps", path, name);
	if (!strcmp(name, "cpu") || !put_folder(buffer, caps, put_capability))
		return false;
	perfring__byte_buffer_put_string(buffer, name);
	return true;
}

static bool put_pmu_capabilities(struct perfring_byte_buffer *buffer)
{
	return put_folder(buffer, PMUS, put_pmu_with_capabilities);
}

/* The PMUs of unlike cores, each with its CPUs. */
static bool put_hybrid(struct perfring_byte_buffer *buffer)
{
	static const char *const pmus[] = {"cpu_core", "cpu_atom", "cpu_lowpower"};
	uint32_t count = 0;
	char text[4096];

	perfring__byte_buffer_put_u32(buffer, 0);
	for (size_t i = 0; i < sizeof(pmus) / sizeof(pmus[0]); i++) {
		if (!read_text(buffer, text, sizeof(text), PMUS "/%s/cpus", pmus[i]))
			continue;
		perfring__byte_buffer_put_string(buffer, pmus[i]);
		perfring__byte_buffer_put_string(buffer, text);
		count++;
	}
	perfring__byte_buffer_set(buffer, 0, &count, sizeof(count));
	return count;
}

/* The features.  put: appends the payload; returns false if the machine has nothing for it. */
static const struct {
	uint32_t feature;
	bool (*put)(struct perfring_byte_buffer *buffer);
} parts[] = {
	{PERFRING_FEATURE_CPU_TOPOLOGY, put_cpu_topology},
	{PERFRING_FEATURE_CACHE, put_caches},
	{PERFRING_FEATURE_CPUID, put_cpuid},
	{PERFRING_FEATURE_NUMA_TOPOLOGY, put_nodes},
	{PERFRING_FEATURE_MEM_TOPOLOGY, put_memory},
	{PERFRING_FEATURE_PMU_MAPPINGS, put_pmus},
	{PERFRING_FEATURE_CPU_PMU_CAPS, put_cpu_capabilities},
	{PERFRING_FEATURE_HYBRID_TOPOLOGY, put_hybrid},
	{PERFRING_FEATURE_PMU_CAPS, put_pmu_capabilities},
};

int perfring__file_topology(struct perfring_file_writer *writer, int *unread)
{
	int error = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !error; i++) {
		struct perfring_byte_buffer buffer = {0};
		bool is_there = parts[i].put(&buffer);

		error = buffer.error;
		if (!*unread)
			*unread = buffer.unread;
		if (is_there && !error)
			error = perfring__file_put_buffer(writer, parts[i].feature, &buffer);
		perfring__byte_buffer_close(&buffer);
	}
	return error;
}

/* ---- clocks ---- */

/* The resolution of the events' clock, and one moment of it in the time of day. */
int perfring__file_clock(struct perfring_file_writer *writer)
{
	struct {
		uint32_t version, clockid;
		uint64_t wall, clock;
	} reference = {.version = 1};
	uint64_t nanoseconds;
	int error;

	for (uint32_t i = 0; i < writer->event_count; i++) {
		struct perf_event_attr attr = perfring__attr_whole(writer->events[i].attr);
		uint64_t before;

		nanoseconds = attr.use_clockid ? perfring__os_clock_step(attr.clockid) : 0;
		if (!nanoseconds)
			continue;
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CLOCKID, &nanoseconds,
							 sizeof(nanoseconds));
		if (error)
			return error;
		reference.clockid = (uint32_t)attr.clockid;
		before = perfring__os_clock_of(attr.clockid);
		reference.wall = perfring__os_clock_of(CLOCK_REALTIME);
		reference.clock = before + (perfring__os_clock_of(attr.clockid) - before) / 2;
		return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CLOCK_DATA, &reference,
							sizeof(reference));
	}
	return 0;
}
