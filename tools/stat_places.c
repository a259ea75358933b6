/* stat_places.c - what `perfring stat` sums up: all fds of an event, those of a CPU, of a thread, or of a set of CPUs.
 *
 * stat.c finds the places when counters are open, stat_report.c when a file is read; stat_print.c names them.  Topology comes
 * from sysfs or the file (file_topology.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "stat.h"

enum {
	CPUS_MAX = 1 << 16,
	MAX_ROWS = 1 << 18, /* of stat report: a file says how many events and places there are, of which most may have no count */
};

/* A number in a file of sysfs; 0 if there is none, as perf. */
static int32_t topology_of(int32_t cpu, const char *name)
{
	char path[128];
	int32_t number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &number) != 1 || number < 0)
		number = 0;
	fclose(file);
	return number;
}

/* Each CPU's directory has a link to its node. */
static int32_t node_of(int32_t cpu)
{
	char path[128];

	for (int32_t node = 0; node < 1024; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
		if (!access(path, F_OK))
			return node;
	}
	return 0;
}

/* Reads where a CPU is.  A CPU that this machine does not have, which a file may name, gets 0 for each number without a look. */
static struct tool_topology_cpu look_at(enum apart apart, int32_t cpu)
{
	struct tool_topology_cpu at = {0};
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	if (access(path, F_OK))
		return at;
	if (apart == APART_NODE) {
		at.node = node_of(cpu);
		return at;
	}
	at.socket = topology_of(cpu, "physical_package_id");
	if (apart <= APART_DIE)
		at.die = topology_of(cpu, "die_id");
	if (apart == APART_CORE)
		at.core = topology_of(cpu, "core_id");
	return at;
}

/* Where a CPU is: from the file's features; without them as on this machine. */
static struct place set_of(const struct counting *counting, int32_t cpu)
{
	struct place place = {.which = cpu, .node = -1, .socket = -1, .die = -1, .core = -1};
	struct tool_topology_cpu at = {0};

	if (!counting->topology.count)
		at = look_at(counting->apart, cpu);
	else if ((uint32_t)cpu < counting->topology.count)
		at = counting->topology.cpus[cpu];
	if (counting->apart == APART_NODE) {
		place.node = at.node;
		return place;
	}
	place.socket = at.socket;
	if (counting->apart <= APART_DIE)
		place.die = at.die;
	if (counting->apart == APART_CORE)
		place.core = at.core;
	return place;
}

static int compare_sets(const struct place *one, const struct place *other)
{
	if (one->node != other->node)
		return one->node < other->node ? -1 : 1;
	if (one->socket != other->socket)
		return one->socket < other->socket ? -1 : 1;
	if (one->die != other->die)
		return one->die < other->die ? -1 : 1;
	return one->core < other->core ? -1 : one->core > other->core;
}

static int compare_places(const void *a, const void *b)
{
	return compare_sets(a, b);
}

void tool_stat_read_comm(int32_t tid, char *comm, size_t size)
{
	char path[64];
	FILE *file;

	*comm = 0;
	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(comm, (int)size, file))
		comm[strcspn(comm, "\n")] = 0;
	else
		*comm = 0;
	fclose(file);
}

static void add_place(struct counting *counting, const struct place *place)
{
	counting->places = tool_allocate(counting->places, counting->place_count + 1u, sizeof(*counting->places));
	counting->places[counting->place_count++] = *place;
}

static int compare_singles(const void *a, const void *b)
{
	const struct single *one = a, *other = b;

	if (one->which != other->which)
		return one->which < other->which ? -1 : 1;
	return one->place < other->place ? -1 : one->place > other->place;
}

static int compare_turns(const void *a, const void *b)
{
	const struct single *one = a, *other = b;

	return one->place < other->place ? -1 : one->place > other->place;
}

static int compare_which(const void *a, const void *b)
{
	const struct single *one = a, *other = b;

	return one->which < other->which ? -1 : one->which > other->which;
}

static const struct single *find_single(const struct counting *counting, int32_t which)
{
	struct single key = {.which = which};

	return bsearch(&key, counting->singles, counting->single_count, sizeof(key), compare_which);
}

static void sort_singles(struct counting *counting)
{
	counting->singles = tool_allocate(NULL, counting->place_count + 1u, sizeof(*counting->singles));
	for (uint32_t i = 0; i < counting->place_count; i++)
		counting->singles[i] = (struct single){counting->places[i].which, i};
	qsort(counting->singles, counting->place_count, sizeof(*counting->singles), compare_singles);
	counting->single_count = counting->place_count;
}

/* Threads by the names that they have, or had when a file was written. */
static void name_threads(struct counting *counting)
{
	for (uint32_t i = 0; !counting->is_read && i < counting->place_count; i++)
		tool_stat_read_comm(counting->places[i].which, counting->places[i].comm,
				    sizeof(counting->places[i].comm));
	for (uint32_t i = 0; i < counting->thread_count; i++) {
		const struct thread_entry *thread = &counting->threads[i];
		const struct single *single = find_single(counting, (int32_t)thread->tid);

		if (single)
			snprintf(counting->places[single->place].comm, sizeof(thread->comm) + 1, "%.*s",
				 (int)sizeof(thread->comm), thread->comm);
	}
}

/* The CPUs or threads that have fds, once each, in the order of their first fds. */
static void find_singles(struct counting *counting)
{
	struct perfring_counts_fd fd;
	struct single *all;
	uint32_t count = 0, kept = 0;

	while (tool_stat_fd_at(counting, count, &fd))
		count++;
	all = tool_allocate(NULL, count + (size_t)1, sizeof(*all));
	for (uint32_t i = 0; i < count && tool_stat_fd_at(counting, i, &fd); i++)
		all[i] = (struct single){counting->apart == APART_CPU ? fd.cpu : fd.tid, i};
	qsort(all, count, sizeof(*all), compare_singles);
	for (uint32_t i = 0; i < count; i++)
		if (!i || all[i].which != all[kept - 1].which)
			all[kept++] = all[i];
	qsort(all, kept, sizeof(*all), compare_turns);
	for (uint32_t i = 0; i < kept; i++)
		add_place(counting, &(struct place){.which = all[i].which});
	free(all);
	if (!kept)
		return;
	sort_singles(counting);
	if (counting->apart == APART_THREAD)
		name_threads(counting);
}

/* The sets of the CPUs that have fds, in the order of their numbers. */
static void find_sets(struct counting *counting)
{
	struct place *sets = NULL;
	struct perfring_counts_fd fd;
	uint32_t cpus = 0;

	for (uint32_t i = 0; tool_stat_fd_at(counting, i, &fd); i++)
		if (fd.cpu >= 0 && fd.cpu < CPUS_MAX && (uint32_t)fd.cpu >= cpus)
			cpus = (uint32_t)fd.cpu + 1;
	counting->cpu_count = cpus;
	counting->place_of = tool_allocate(NULL, cpus + 1u, sizeof(*counting->place_of));
	memset(counting->place_of, 0xff, (cpus + 1u) * sizeof(*counting->place_of));
	for (uint32_t i = 0; tool_stat_fd_at(counting, i, &fd); i++)
		if (fd.cpu >= 0 && (uint32_t)fd.cpu < cpus)
			counting->place_of[fd.cpu] = 0; /* it has fds */
	sets = tool_allocate(NULL, cpus + 1u, sizeof(*sets));
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		uint32_t j = 0;

		if (counting->place_of[cpu] == UINT32_MAX)
			continue;
		sets[cpu] = set_of(counting, (int32_t)cpu);
		while (j < counting->place_count && compare_sets(&counting->places[j], &sets[cpu]))
			j++;
		if (j == counting->place_count)
			add_place(counting, &sets[cpu]);
		counting->places[j].cpus++;
	}
	if (counting->place_count)
		qsort(counting->places, counting->place_count, sizeof(*counting->places), compare_places);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		for (uint32_t j = 0; counting->place_of[cpu] != UINT32_MAX && j < counting->place_count; j++)
			if (!compare_sets(&counting->places[j], &sets[cpu]))
				counting->place_of[cpu] = j;
	free(sets);
}

void tool_stat_find_places(struct counting *counting)
{
	static const struct place ALL = {.which = -1};
	size_t rows;

	if (tool_stat_is_of_sets(counting))
		find_sets(counting);
	else if (counting->apart)
		find_singles(counting);
	if (!counting->place_count)
		add_place(counting, &ALL);
	rows = (size_t)perfring_events_count(counting->events) * counting->place_count;
	if (counting->is_read && rows > MAX_ROWS) {
		counting->place_count = MAX_ROWS / perfring_events_count(counting->events);
		rows = (size_t)perfring_events_count(counting->events) * counting->place_count;
		tool_complain("stat report: more than %d rows: the first %" PRIu32 " CPUs, threads or sets alone",
			      MAX_ROWS, counting->place_count);
	}
	counting->rows = tool_allocate(NULL, rows + 1, sizeof(*counting->rows));
	memset(counting->rows, 0, (rows + 1) * sizeof(*counting->rows));
}

/* The place of an fd; UINT32_MAX: none. */
static uint32_t place_of(const struct counting *counting, const struct perfring_counts_fd *fd)
{
	const struct single *single;

	if (tool_stat_is_of_sets(counting) && counting->cpu_count)
		return fd->cpu >= 0 && (uint32_t)fd->cpu < counting->cpu_count ? counting->place_of[fd->cpu]
									       : UINT32_MAX;
	if (!counting->singles)
		return 0;
	single = find_single(counting, counting->apart == APART_CPU ? fd->cpu : fd->tid);
	return single ? single->place : UINT32_MAX;
}

void tool_stat_mark_fresh(struct counting *counting)
{
	uint32_t events = perfring_events_count(counting->events);

	for (size_t i = 0; i < (size_t)events * counting->place_count; i++)
		counting->rows[i].is_stale = counting->looks; /* the first round shows all */
	for (uint32_t i = 0; i < counting->read_count; i++) {
		const struct perfring_counts_fd *fd = &counting->read[i];
		uint32_t place = counting->read_fresh[i] ? place_of(counting, fd) : 0;

		if (counting->read_fresh[i] && place < counting->place_count && fd->event < events)
			tool_stat_row(counting, fd->event, place)->is_stale = false;
		else if (counting->read_fresh[i])
			counting->left_out++;
		counting->read_fresh[i] = false;
	}
}

void tool_stat_sum(struct counting *counting)
{
	uint32_t events = perfring_events_count(counting->events);
	struct perfring_counts_fd fd;

	for (size_t i = 0; i < (size_t)events * counting->place_count; i++)
		memset(&counting->rows[i].sum, 0, sizeof(counting->rows[i].sum));
	for (uint32_t i = 0; tool_stat_fd_at(counting, i, &fd); i++) {
		uint32_t place = place_of(counting, &fd);
		struct perfring_count *sum;

		if (place >= counting->place_count || fd.event >= events)
			continue;
		sum = &tool_stat_row(counting, fd.event, place)->sum;
		sum->value += fd.count.value;
		sum->enabled += fd.count.enabled;
		sum->running += fd.count.running;
		sum->lost += fd.count.lost;
		sum->fds += fd.count.fds;
		sum->failed += fd.count.failed;
	}
}

void tool_stat_name_place(const struct counting *counting, const struct place *place, char *buffer, size_t size)
{
	switch (counting->apart) {
	case APART_CORE:
		snprintf(buffer, size, "S%d-D%d-C%d", place->socket, place->die, place->core);
		break;
	case APART_DIE:
		snprintf(buffer, size, "S%d-D%d", place->socket, place->die);
		break;
	case APART_SOCKET:
		snprintf(buffer, size, "S%d", place->socket);
		break;
	case APART_NODE:
		snprintf(buffer, size, "N%d", place->node);
		break;
	case APART_THREAD:
		snprintf(buffer, size, "%s-%d", place->comm, place->which);
		break;
	default:
		snprintf(buffer, size, "CPU%d", place->which);
	}
}
