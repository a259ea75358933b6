/* record_target.c - which CPUs, processes, threads, cgroups or command `perfring record` observes.
 *
 * record_options.c has the words, observed.c the numbers; record_events.c and record_file.c ask for an event's target.
 */
#include <stdlib.h>
#include <perfring/command.h>
#include "record_command.h"
#include "observed.h"

/* Whether only the command is observed: no other target is named. */
bool tool_record_observes_command(const struct recording *recording)
{
	return recording->command && !recording->all && !recording->pids && !recording->tids && !recording->cgroup &&
	       !recording->user;
}

/* A target of its own for each name: the events of one are those of a target.  Bound: as many as events. */
static bool choose_cgroups(struct recording *recording)
{
	char *name = strdupa(recording->cgroup);

	for (uint32_t i = 0; i < recording->event_count; i++) {
		struct recorded_event *event = &recording->events[i];
		const char *cgroup = tool_target_cgroup_of(recording->cgroup, i, name);
		uint32_t like = i;

		for (uint32_t j = 0; cgroup && j < i && like == i; j++)
			if (recording->events[j].cgroup && !strcmp(recording->events[j].cgroup, cgroup))
				like = j;
		event->cgroup = cgroup ? strdup(cgroup) : NULL;
		event->target = NULL;
		if (!cgroup)
			continue;
		if (like != i) {
			event->target = recording->events[like].target;
			continue;
		}
		event->owns_target = true;
		if (perfring_target_open(&event->target)) {
			tool_complain("out of memory");
			return false;
		}
		if (!tool_target_add_cpus("record", event->target, recording->cpus) ||
		    !tool_target_add_cgroup("record", event->target, cgroup))
			return false;
	}
	for (uint32_t i = 0; i < recording->event_count; i++) {
		const struct recorded_event *event = &recording->events[i];

		if (event->leader != UINT32_MAX && recording->events[event->leader].target != event->target) {
			tool_complain("record: -G: the events of a group are of one cgroup");
			return false;
		}
	}
	return true;
}

const struct perfring_target *tool_record_target_of(const struct recording *recording,
						    const struct recorded_event *event)
{
	/* tasks and mappings: of the cgroup if all events are of it */
	if (event->is_side && recording->cgroup && tool_target_cgroup_count(recording->cgroup) == 1)
		event = &recording->events[0];
	return event->target ? event->target : recording->target;
}

void tool_record_close_target(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++) {
		if (recording->events[i].owns_target)
			perfring_target_close(recording->events[i].target);
		free(recording->events[i].cgroup);
	}
	perfring_target_close(recording->target);
	free(recording->cgroup);
	free(recording->user_pids);
}

bool tool_record_choose_target(struct recording *recording)
{
	int ret = perfring_target_open(&recording->target);

	if (ret) {
		tool_complain("out of memory");
		return false;
	}
	if (!recording->per_thread && !tool_target_add_cpus("record", recording->target, recording->cpus))
		return false;
	if (recording->cgroup && !choose_cgroups(recording))
		return false;
	if (recording->user) {
		recording->pids = recording->user_pids = tool_target_processes("record", recording->user);
		if (!recording->pids)
			return false;
	}
	if (recording->pids &&
	    !tool_target_add_processes("record", recording->target, recording->pids, recording->user))
		return false;
	if (recording->tids && !tool_target_add_threads("record", recording->target, recording->tids))
		return false;
	if (recording->command) {
		ret = perfring_command_open(&recording->child, recording->command);
		if (!ret && tool_record_observes_command(recording))
			ret = perfring_target_add_thread(recording->target, recording->child.pid);
		if (ret)
			tool_complain("record: %s: %s", recording->command[0], strerror(-ret));
	}
	return !ret;
}
