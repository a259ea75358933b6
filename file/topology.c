/* topology.c - processors, caches, nodes and PMUs of this machine, as features tell them (docs/abi.md 11.3). */
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
#include "os/file.h"
#include "sample/attr.h"
#include "file_writer_private.h"

#define CPUS "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"
#define NODES_MAX 1024
#define MEMORY "/sys/devices/system/memory"
#define PMUS "/sys/bus/event_source/devices"

static void take_error(struct perfring_byte_buffer *pile, int error)
{
	if (!pile->unread)
		pile->unread = perfring_os_pass_over(error);
}

static struct dirent *next_entry(struct perfring_byte_buffer *pile, DIR *folder)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(folder);
	if (!entry)
		take_error(pile, -errno);
	return entry;
}

/* The first line of a small file.  Returns false when there is none, or the pile knows why. */
static bool slurp(struct perfring_byte_buffer *pile, char *room, size_t size, const char *form, ...)
	__attribute__((format(printf, 4, 5)));

static bool slurp(struct perfring_byte_buffer *pile, char *room, size_t size, const char *form, ...)
{
	char path[320];
	va_list list;
	int64_t got;
	int length;

	va_start(list, form);
	length = vsnprintf(path, sizeof(path), form, list);
	va_end(list);
	if (length < 0 || (size_t)length >= sizeof(path))
		return false;
	got = perfring_os_file_read(path, room, size);
	take_error(pile, got < 0 ? (int)got : 0);
	return got >= 0;
}

static uint32_t number_in(struct perfring_byte_buffer *pile, const char *form, uint32_t cpu)
{
	char path[320], text[64];

	snprintf(path, sizeof(path), CPUS "/cpu%u/%s", cpu, form);
	return slurp(pile, text, sizeof(text), "%s", path) ? (uint32_t)strtoul(text, NULL, 0) : UINT32_MAX;
}

/* ---- processors ---- */

/* Strings, each once, in the order they are met. */
static void put_lists(struct perfring_byte_buffer *pile, const char *name, const char *older, uint32_t cpus)
{
	size_t count_at = pile->used, from;
	uint32_t count = 0;
	char text[512];

	perfring_byte_buffer_put_half(pile, 0);
	from = pile->used;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		size_t begun = pile->used, length, at;

		if (!slurp(pile, text, sizeof(text), CPUS "/cpu%u/topology/%s", cpu, name) &&
		    !(older && slurp(pile, text, sizeof(text), CPUS "/cpu%u/topology/%s", cpu, older)))
			continue;
		perfring_byte_buffer_put_string(pile, text);
		if (pile->error)
			return;
		length = pile->used - begun;
		for (at = from; at < begun; at += 4 + (size_t) * (uint32_t *)(void *)(pile->bytes + at))
			if (begun - at >= length && !memcmp(pile->bytes + at, pile->bytes + begun, length))
				break;
		if (at < begun)
			pile->used = begun;
		else
			count++;
	}
	memcpy(pile->bytes + count_at, &count, sizeof(count));
}

static int put_cpu_topology(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile, uint32_t cpus)
{
	pile->used = 0;
	put_lists(pile, "package_cpus_list", "core_siblings_list", cpus);
	put_lists(pile, "core_cpus_list", "thread_siblings_list", cpus);
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		perfring_byte_buffer_put_half(pile, number_in(pile, "topology/core_id", cpu));
		perfring_byte_buffer_put_half(pile, number_in(pile, "topology/physical_package_id", cpu));
	}
	put_lists(pile, "die_cpus_list", NULL, cpus);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		perfring_byte_buffer_put_half(pile, number_in(pile, "topology/die_id", cpu));
	return pile->error ? pile->error
			   : perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CPU_TOPOLOGY, pile->bytes, pile->used);
}

static int put_caches(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile, uint32_t cpus)
{
	uint32_t count = 0;

	pile->used = 0;
	perfring_byte_buffer_put_half(pile, 1);
	perfring_byte_buffer_put_half(pile, 0);
	for (uint32_t level = 0; level < 16; level++)
		for (uint32_t cpu = 0; cpu < cpus; cpu++) {
			char map[512], text[64], path[64];

			snprintf(path, sizeof(path), "cache/index%u", level);
			if (!slurp(pile, map, sizeof(map), CPUS "/cpu%u/%s/shared_cpu_list", cpu, path) ||
			    strtoul(map, NULL, 10) != cpu)
				continue; /* told by the first of those that share it */
			snprintf(path, sizeof(path), "cache/index%u/level", level);
			perfring_byte_buffer_put_half(pile, number_in(pile, path, cpu));
			snprintf(path, sizeof(path), "cache/index%u/coherency_line_size", level);
			perfring_byte_buffer_put_half(pile, number_in(pile, path, cpu));
			snprintf(path, sizeof(path), "cache/index%u/number_of_sets", level);
			perfring_byte_buffer_put_half(pile, number_in(pile, path, cpu));
			snprintf(path, sizeof(path), "cache/index%u/ways_of_associativity", level);
			perfring_byte_buffer_put_half(pile, number_in(pile, path, cpu));
			if (!slurp(pile, text, sizeof(text), CPUS "/cpu%u/cache/index%u/type", cpu, level))
				*text = 0;
			perfring_byte_buffer_put_string(pile, text);
			if (!slurp(pile, text, sizeof(text), CPUS "/cpu%u/cache/index%u/size", cpu, level))
				*text = 0;
			perfring_byte_buffer_put_string(pile, text);
			perfring_byte_buffer_put_string(pile, map);
			count++;
		}
	if (!count || pile->error)
		return pile->error;
	memcpy(pile->bytes + 4, &count, sizeof(count));
	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CACHE, pile->bytes, pile->used);
}

static int put_cpuid(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile)
{
	char text[128];
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c, d, family, model;
	char vendor[13] = {0};

	(void)pile;
	if (!__get_cpuid(0, &a, &b, &c, &d))
		return 0;
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return 0;
	family = (a >> 8 & 15) == 15 ? 15 + (a >> 20 & 255) : a >> 8 & 15;
	model = (a >> 4 & 15) + (family >= 6 ? (a >> 16 & 15) << 4 : 0);
	snprintf(text, sizeof(text), "%s,%u,%u,%u", vendor, family, model, a & 15);
#else
	if (!slurp(pile, text, sizeof(text), CPUS "/cpu0/regs/identification/midr_el1"))
		return 0;
#endif
	return perfring_file_writer_put_string(writer, PERFRING_FEATURE_CPUID, text);
}

/* ---- memory ---- */

/* How many numbers of nodes there can be: "0-3" is 4.  Looking for each of the 1024 that the kernel could be built for would
 * be 2000 calls for each recording. */
static unsigned count_nodes(struct perfring_byte_buffer *pile)
{
	uint32_t first, last = NODES_MAX;
	char text[512];
	const char *at = text;

	if (!slurp(pile, text, sizeof(text), NODES "/possible"))
		return NODES_MAX;
	while (perfring_os_range_next(&at, &first, &last) == 1)
		;
	return last < NODES_MAX ? last + 1 : NODES_MAX;
}

/* "Node 0 MemTotal:  123 kB" */
static uint64_t kilobytes_of(struct perfring_byte_buffer *pile, unsigned node, const char *name)
{
	char path[64], whole[64], number[32];
	int found;

	snprintf(path, sizeof(path), NODES "/node%u/meminfo", node);
	snprintf(whole, sizeof(whole), "Node %u %s", node, name);
	found = perfring_os_lines_find(path, whole, number, sizeof(number));
	take_error(pile, found < 0 ? found : 0);
	return found == 1 ? strtoull(number, NULL, 10) : 0;
}

static int put_nodes(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile)
{
	unsigned nodes = count_nodes(pile);
	uint32_t count = 0;
	char cpus[512];

	pile->used = 0;
	perfring_byte_buffer_put_half(pile, 0);
	for (unsigned node = 0; node < nodes; node++) {
		if (!slurp(pile, cpus, sizeof(cpus), NODES "/node%u/cpulist", node))
			continue;
		perfring_byte_buffer_put_half(pile, node);
		perfring_byte_buffer_put_word(pile, kilobytes_of(pile, node, "MemTotal"));
		perfring_byte_buffer_put_word(pile, kilobytes_of(pile, node, "MemFree"));
		perfring_byte_buffer_put_string(pile, cpus);
		count++;
	}
	if (!count || pile->error)
		return pile->error;
	memcpy(pile->bytes, &count, sizeof(count));
	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_NUMA_TOPOLOGY, pile->bytes, pile->used);
}

/* The blocks of memory of one node as a bitmap.  Returns false when it has none. */
static bool put_blocks(struct perfring_byte_buffer *pile, unsigned node)
{
	enum {
		MOST = 1 << 20
	};
	struct dirent *entry;
	uint64_t bits = 0, *words;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), NODES "/node%u", node);
	folder = opendir(path);
	if (!folder) {
		take_error(pile, -errno);
		return false;
	}
	words = calloc(MOST / 64, sizeof(*words));
	if (!words)
		pile->error = -ENOMEM;
	while (words && (entry = next_entry(pile, folder))) {
		unsigned long block;
		char *end;

		if (strncmp(entry->d_name, "memory", 6) || entry->d_name[6] < '0' || entry->d_name[6] > '9')
			continue;
		block = strtoul(entry->d_name + 6, &end, 10);
		if (*end || block >= MOST)
			continue;
		words[block / 64] |= UINT64_C(1) << block % 64;
		if (bits <= block)
			bits = block + 1;
	}
	closedir(folder);
	if (bits) {
		perfring_byte_buffer_put_word(pile, node);
		perfring_byte_buffer_put_word(pile, bits);
		perfring_byte_buffer_put_word(pile, bits);
		perfring_byte_buffer_put(pile, words, (size_t)(bits + 63) / 64 * 8);
	}
	free(words);
	return bits;
}

static int put_memory(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile)
{
	unsigned nodes = count_nodes(pile);
	uint64_t count = 0;
	char text[64];

	if (!slurp(pile, text, sizeof(text), MEMORY "/block_size_bytes"))
		return 0;
	pile->used = 0;
	perfring_byte_buffer_put_word(pile, 1);
	perfring_byte_buffer_put_word(pile, strtoull(text, NULL, 16));
	perfring_byte_buffer_put_word(pile, 0);
	for (unsigned node = 0; node < nodes; node++)
		count += put_blocks(pile, node);
	if (!count || pile->error)
		return pile->error;
	memcpy(pile->bytes + 16, &count, sizeof(count));
	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_MEM_TOPOLOGY, pile->bytes, pile->used);
}

/* ---- PMUs ---- */

static int put_pmus(struct perfring_file_writer *writer, struct perfring_byte_buffer *pile)
{
	struct dirent *entry;
	uint32_t count = 0;
	char text[64];
	DIR *folder = opendir(PMUS);

	if (!folder) {
		take_error(pile, -errno);
		return 0;
	}
	pile->used = 0;
	perfring_byte_buffer_put_half(pile, 0);
	while ((entry = next_entry(pile, folder))) {
		if (entry->d_name[0] == '.' || !slurp(pile, text, sizeof(text), PMUS "/%s/type", entry->d_name))
			continue;
		perfring_byte_buffer_put_half(pile, (uint32_t)strtoul(text, NULL, 10));
		perfring_byte_buffer_put_string(pile, entry->d_name);
		count++;
	}
	closedir(folder);
	if (!count || pile->error)
		return pile->error;
	memcpy(pile->bytes, &count, sizeof(count));
	return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_PMU_MAPPINGS, pile->bytes, pile->used);
}

int perfring_file_topology(struct perfring_file_writer *writer, int *unread)
{
	long available = sysconf(_SC_NPROCESSORS_CONF);
	uint32_t cpus = available > 0 ? (uint32_t)available : 0;
	struct perfring_byte_buffer pile = {0};
	int error = cpus ? put_cpu_topology(writer, &pile, cpus) : 0;

	if (!error)
		error = put_caches(writer, &pile, cpus);
	if (!error)
		error = put_cpuid(writer, &pile);
	if (!error)
		error = put_nodes(writer, &pile);
	if (!error)
		error = put_memory(writer, &pile);
	if (!error)
		error = put_pmus(writer, &pile);
	if (!*unread)
		*unread = pile.unread;
	perfring_byte_buffer_close(&pile);
	return error;
}

/* ---- clocks ---- */

/* Of events with a clock of their own: how fine it is, and what time of day it was at one moment of it. */
int perfring_file_clock(struct perfring_file_writer *writer)
{
	struct {
		uint32_t version, clockid;
		uint64_t wall, clock;
	} reference = {.version = 1};
	uint64_t nanoseconds;
	int error;

	for (uint32_t i = 0; i < writer->event_count; i++) {
		struct perf_event_attr attr = perfring_attr_whole(writer->events[i].attr);
		uint64_t before;

		nanoseconds = attr.use_clockid ? perfring_os_clock_step(attr.clockid) : 0;
		if (!nanoseconds)
			continue;
		error = perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CLOCKID, &nanoseconds, sizeof(nanoseconds));
		if (error)
			return error;
		reference.clockid = (uint32_t)attr.clockid;
		before = perfring_os_clock_of(attr.clockid);
		reference.wall = perfring_os_clock_of(CLOCK_REALTIME);
		reference.clock = before + (perfring_os_clock_of(attr.clockid) - before) / 2;
		return perfring_file_writer_put_feature(writer, PERFRING_FEATURE_CLOCK_DATA, &reference, sizeof(reference));
	}
	return 0;
}
