/* event_groups.c - the groups of events that a file describes.
 *
 * The feature's bytes are a file's, and walked by its layout (feature.h).
 */
#include "event_groups.h"

void tool_groups_open(struct tool_groups *groups, const struct perfring_file *data)
{
	uint64_t size = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_GROUP_DESC, &size);

	*groups = (struct tool_groups){.is_open = payload};
	if (!payload)
		return;
	groups->events = perfring_format_set_count(perfring_file_formats(data));
	perfring_feature_open(&groups->walk, PERFRING_FEATURE_GROUP_DESC, payload, size, 0);
}

bool tool_groups_next(struct tool_groups *groups, struct tool_group *group)
{
	struct perfring_layout_member member;
	uint64_t leader = 0;

	*group = (struct tool_group){"", 0, 0};
	while (groups->is_open && perfring_layout_next(&groups->walk, &member) == 1) {
		if (!strcmp(member.name, "name"))
			group->name = strcmp(member.bytes, "{anon_group}") ? member.bytes : "";
		else if (!strcmp(member.name, "leader"))
			leader = member.number;
		if (strcmp(member.name, "members") || leader < groups->next || leader >= groups->events)
			continue;
		group->leader = (uint32_t)leader;
		group->members = member.number < groups->events - leader ? (uint32_t)member.number
									 : groups->events - (uint32_t)leader;
		groups->next = leader + group->members;
		if (group->members)
			return true;
	}
	return false;
}
