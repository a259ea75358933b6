/* stat_cgroups.c - which cgroup each event of `perfring stat` is of: -G, --for-each-cgroup.
 *
 * stat_options.c reads -G, stat.c opens a cgroup's events.
 */
#include <stdlib.h>
#include "observed.h"
#include "stat.h"

/* The pointer of an equal name of an event before, or a new one after the last of the names. */
static const char *keep(const struct counting *counting, uint32_t event, const char *name, char **end)
{
	const char *kept = *end;

	for (uint32_t i = 0; i < event; i++)
		if (counting->cgroups[i] && !strcmp(counting->cgroups[i], name))
			return counting->cgroups[i];
	*end = stpcpy(*end, name) + 1;
	return kept;
}

/* Every event once more for each further cgroup. */
static bool repeat_events(struct counting *counting, bool (*add)(struct counting *, const char *))
{
	uint32_t count = tool_target_cgroup_count(counting->each), texts = counting->text_count;

	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = 0; j < texts; j++)
			if (!add(counting, counting->texts[j]))
				return false;
	return true;
}

static bool are_groups_of_one(const struct counting *counting)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		uint32_t leader = tool_stat_event(counting, i)->leader;

		if (leader == UINT32_MAX || counting->cgroups[leader] == counting->cgroups[i])
			continue;
		tool_complain("stat: -G: the events of a group are of one cgroup");
		return false;
	}
	return true;
}

bool tool_stat_name_cgroups(struct counting *counting, bool (*add)(struct counting *, const char *))
{
	const char *list = counting->cgroup ? counting->cgroup : counting->each;
	size_t size = list ? strlen(list) + 1 : 0;
	uint32_t events;
	char *name, *end;

	counting->event_count = perfring_events_count(counting->events);
	if (!list)
		return true;
	if (counting->each && !repeat_events(counting, add))
		return false;
	events = perfring_events_count(counting->events);
	if (counting->cgroup && tool_target_cgroup_count(list) > events) {
		tool_complain("stat: -G has more cgroups than there are events: one for each event, or one for all");
		return false;
	}
	/* each name once, its NUL in the place of the comma */
	end = counting->cgroup_names = tool_allocate(NULL, size, 1);
	name = tool_allocate(NULL, size, 1);
	counting->cgroups = tool_allocate(NULL, events + (size_t)1, sizeof(*counting->cgroups));
	for (uint32_t i = 0; i < events; i++) {
		const char *cgroup = tool_target_cgroup_of(list, counting->each ? i / counting->event_count : i, name);

		counting->cgroups[i] = cgroup ? keep(counting, i, cgroup, &end) : NULL;
	}
	free(name);
	return are_groups_of_one(counting);
}

struct perfring_target *tool_stat_open_cgroup(const struct counting *counting, const char *cgroup)
{
	struct perfring_target *target;

	if (perfring_target_open(&target)) {
		tool_complain("out of memory");
		return NULL;
	}
	if (tool_target_add_cpus("stat", target, counting->cpus) && tool_target_add_cgroup("stat", target, cgroup))
		return target;
	perfring_target_close(target);
	return NULL;
}
