/* filter_options.c - the options that say which samples of a file a command shows.
 *
 * report, script, flame, html and export take them; filter.h of the library compares.
 */
#include "filter_options.h"
#include <string.h>

const char *tool_filter_only(const char *list)
{
	return list && !strchr(list, ',') ? list : NULL;
}

const char *tool_filter_short_name(const char *path)
{
	static char made[PERFRING_FILTER_SHORT_NAME];

	return perfring_filter_short_name(path, made);
}

int tool_filter_take(struct perfring_filter *filter, const struct tool_options *options, int found)
{
	const char *value = options->value;
	bool good = true;

	switch (found) {
	case 'c':
		filter->comms = value;
		break;
	case 'd':
	case TOOL_FILTER_DSOS:
		filter->objects = value;
		break;
	case 'S':
		filter->symbols = value;
		break;
	case TOOL_FILTER_PID:
		filter->pids = value;
		break;
	case TOOL_FILTER_TID:
		filter->tids = value;
		break;
	case 'C':
		filter->cpus = value;
		break;
	case TOOL_FILTER_EVENTS:
		filter->events = value;
		break;
	case TOOL_FILTER_KERNEL:
		filter->frames = PERFRING_FILTER_KERNEL;
		break;
	case TOOL_FILTER_USER:
		filter->frames = PERFRING_FILTER_USER;
		break;
	case TOOL_FILTER_TIME:
		good = !perfring_filter_set_time(filter, value, 0, UINT64_MAX);
		break;
	default:
		return 0;
	}
	if (good && !perfring_filter_check(filter))
		return 1;
	tool_options_refuse(options, found, value);
	return -1;
}

bool tool_filter_wants(const struct perfring_filter *filter, const struct perfring_file *data, uint32_t event)
{
	const char *name = filter->events ? perfring_file_event_name(data, event) : NULL;

	return !filter->events || (name && perfring_filter_has_word(filter->events, name));
}

bool tool_filter_open(struct perfring_filter *filter, const char *command, const struct perfring_file *data)
{
	const struct perf_event_attr *attr;
	uint64_t times[2], size = 0;
	const void *payload;

	for (uint32_t i = 0; filter->cpus && (attr = perfring_file_attr(data, i)); i++) {
		bool is_dummy = attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_DUMMY;
		const char *name = perfring_file_event_name(data, i);

		if ((attr->sample_type & PERFRING_SAMPLE_CPU) || is_dummy || !attr->sample_period ||
		    !tool_filter_wants(filter, data, i))
			continue;
		tool_complain("%s: -C: event '%s' does not say on which CPU it was: record with --sample-cpu", command,
			      name ? name : "?");
		return false;
	}
	if (!filter->time || !strchr(filter->time, '%'))
		return true;
	payload = perfring_file_feature(data, PERFRING_FEATURE_SAMPLE_TIME, &size);
	if (!payload || size < sizeof(times)) {
		tool_complain("%s: --time %s: the file does not say when its samples begin and end: use --time FROM,TO",
			      command, filter->time);
		return false;
	}
	memcpy(times, payload, sizeof(times));
	return !perfring_filter_set_time(filter, filter->time, times[0], times[1]);
}
