/* event_filter.c - --filter of `record` and `stat`.
 *
 * event.h sets them: perfring_event_set_filter on each fd.
 */
#include "event_filter.h"

#include <stdlib.h>

bool tool_filters_add(const char *command, struct tool_filters *filters, const struct perfring_events *events,
		      uint32_t from, const char *text)
{
	uint32_t count = events ? perfring_events_count(events) : 0;

	if (from >= count) {
		tool_complain("%s: --filter '%s': must follow the -e that it is for", command, text);
		return false;
	}
	for (uint32_t i = from; i < count; i++) {
		const struct perfring_events_one *one = perfring_events_at(events, i);

		if (one->attr->type == PERFRING_TYPE_TRACEPOINT || one->attr->type > PERFRING_TYPE_BREAKPOINT)
			continue;
		tool_complain("%s: --filter '%s': %s, of the -e before it, is not a tracepoint", command, text,
			      one->name);
		return false;
	}
	filters->texts = tool_allocate(filters->texts, count, sizeof(*filters->texts));
	while (filters->count < count)
		filters->texts[filters->count++] = NULL;
	for (uint32_t i = from; i < count; i++) {
		char **old = &filters->texts[i];
		size_t size = (*old ? strlen(*old) : 0) + strlen(text) + sizeof("() && ()");
		char *both = tool_allocate(NULL, size, 1);

		if (*old)
			snprintf(both, size, "(%s) && (%s)", *old, text);
		else
			snprintf(both, size, "%s", text);
		free(*old);
		*old = both;
	}
	return true;
}

bool tool_filters_set(const char *command, const struct tool_filters *filters, const struct perfring_events *events,
		      uint32_t i, int fd)
{
	const char *text = i < filters->count ? filters->texts[i] : NULL;
	int ret = text ? perfring_event_set_filter(fd, text) : 0;

	if (ret)
		tool_complain("%s: --filter '%s': %s does not take it: %s", command, text,
			      perfring_events_at(events, i)->name,
			      ret == -EINVAL ? "not a comparison of its fields" : strerror(-ret));
	return !ret;
}

void tool_filters_close(struct tool_filters *filters)
{
	for (uint32_t i = 0; i < filters->count; i++)
		free(filters->texts[i]);
	free(filters->texts);
}
