/* filter.c - which samples of a file a command shows.
 *
 * The options are parsed here, for all commands.  Times are compared in ns of the file's clock; percentages are of its first and
 * last sample.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "filter.h"

/* ---- lists ---- */

/* Decimal numbers with commas, 0 too: the idle task has that pid. */
static bool is_ids(const char *text)
{
	uint64_t id;
	char word[16];

	for (;; text++) {
		size_t length = strcspn(text, ",");

		if (!length || length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = 0;
		if (word[1] == 'x' || !tool_options_number(word, 0, INT32_MAX, &id))
			return false;
		text += length;
		if (!*text)
			return true;
	}
}

/* Whether a number is in a list that is_ids accepts. */
static bool has_id(const char *list, uint32_t id)
{
	char *end;

	for (;; list = end + 1) {
		if (strtoul(list, &end, 10) == id)
			return true;
		if (!*end)
			return false;
	}
}

/* Whether a CPU is in a list that tool_options_cpus accepts. */
static bool has_cpu(const char *list, uint32_t cpu)
{
	unsigned long first, last;
	char *end;

	for (;; list = end + 1) {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
		if (!*end)
			return false;
	}
}

bool tool_filter_has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (;;) {
		size_t here = strcspn(list, ",");

		if (here == length && !memcmp(list, word, length))
			return true;
		list += here;
		if (!*list++)
			return false;
	}
}

const char *tool_filter_only(const char *list)
{
	return list && !strchr(list, ',') ? list : NULL;
}

const char *tool_filter_short_name(const char *path)
{
	static char made[32];
	const char *slash = strrchr(path, '/');
	int pid, end = 0;

	if (!strncmp(path, "/tmp/perf-", 10) && sscanf(path, "/tmp/perf-%d.map%n", &pid, &end) == 1 && end &&
	    !path[end]) {
		snprintf(made, sizeof(made), "[JIT] tid %d", pid);
		return made;
	}
	return *path == '/' && slash[1] ? slash + 1 : path;
}

/* ---- --time ---- */

/* "12.5": ns, of at most nine digits after the point.  Returns what follows the number, or NULL. */
static const char *read_time(const char *text, uint64_t *time)
{
	uint64_t unit = 1000000000;
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	errno = 0;
	*time = strtoull(text, &end, 10);
	if (errno || *time > UINT64_MAX / unit - 1)
		return NULL;
	*time *= unit;
	text = end;
	if (*text != '.')
		return text;
	for (text++; *text >= '0' && *text <= '9'; text++) {
		unit /= 10;
		*time += unit * (uint64_t)(*text - '0');
	}
	return text;
}

/* Reads "FROM,TO", of which either may be empty. */
static const char *read_span(const char *text, struct tool_filter_span *span)
{
	*span = (struct tool_filter_span){0, UINT64_MAX};
	if (*text != ',')
		text = read_time(text, &span->first);
	if (!text || *text != ',')
		return NULL;
	text++;
	if (*text && *text != ' ')
		text = read_time(text, &span->last);
	return text && span->first <= span->last ? text : NULL;
}

/* Reads "12.5%" as a share, 0 to 1. */
static const char *read_percent(const char *text, double *share)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*share = strtod(text, &end) / 100;
	return *end == '%' && *share <= 1 ? end + 1 : NULL;
}

static uint64_t part_of(uint64_t first, uint64_t last, double share)
{
	return share >= 1 ? last : first + (uint64_t)(share * (double)(last - first));
}

/* Reads "10%", "10%/2" or "0%-10%" of the time [first, last]. */
static const char *read_part(const char *text, uint64_t first, uint64_t last, struct tool_filter_span *span)
{
	double from = 0, to;
	char *end;

	text = read_percent(text, &to);
	if (!text)
		return NULL;
	if (*text == '-') {
		from = to;
		text = read_percent(text + 1, &to);
	} else if (*text == '/') {
		unsigned long nr = text[1] >= '1' && text[1] <= '9' ? strtoul(text + 1, &end, 10) : 0;

		if (!nr || (double)(nr - 1) * to >= 1)
			return NULL;
		from = to * (double)(nr - 1);
		to = from + to;
		text = end;
	}
	if (!text || from > to)
		return NULL;
	span->first = part_of(first, last, from);
	span->last = part_of(first, last, to);
	return text;
}

/* Reads all of --time.  Percentages are of the time from the file's first sample to its last. */
static bool read_spans(struct tool_filter *filter, uint64_t first, uint64_t last)
{
	const char *text = filter->time;
	bool parts = strchr(text, '%');

	for (filter->span_count = 0; filter->span_count < TOOL_FILTER_SPANS; text++) {
		struct tool_filter_span *span = &filter->spans[filter->span_count++];

		text = parts ? read_part(text, first, last, span) : read_span(text, span);
		if (!text || (*text && *text != (parts ? ',' : ' ')))
			return false;
		if (!*text)
			return true;
	}
	return false;
}

/* ---- options ---- */

int tool_filter_take(struct tool_filter *filter, const struct tool_options *options, int found)
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
		good = is_ids(value);
		break;
	case TOOL_FILTER_TID:
		filter->tids = value;
		good = is_ids(value);
		break;
	case 'C':
		filter->cpus = value;
		good = tool_options_cpus(value);
		break;
	case TOOL_FILTER_TIME:
		filter->time = value;
		good = read_spans(filter, 0, UINT64_MAX);
		break;
	default:
		return 0;
	}
	if (good)
		return 1;
	tool_options_refuse(options, found, value);
	return -1;
}

bool tool_filter_open(struct tool_filter *filter, const char *command, const struct perfring_file *data)
{
	const struct perf_event_attr *attr;
	uint64_t times[2], size = 0;
	const void *payload;

	for (uint32_t i = 0; filter->cpus && (attr = perfring_file_attr(data, i)); i++) {
		bool is_dummy = attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_DUMMY;
		const char *name = perfring_file_event_name(data, i);

		if ((attr->sample_type & PERFRING_SAMPLE_CPU) || is_dummy || !attr->sample_period)
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
	return read_spans(filter, times[0], times[1] < times[0] ? times[0] : times[1]);
}

/* ---- samples ---- */

bool tool_filter_counts(const struct tool_filter *filter, const struct perfring_sample *sample)
{
	bool inside = !filter->time || !(sample->present & PERFRING_SAMPLE_TIME) || !sample->time;

	if (filter->cpus && !((sample->present & PERFRING_SAMPLE_CPU) && has_cpu(filter->cpus, sample->cpu)))
		return false;
	for (uint32_t i = 0; !inside && i < filter->span_count; i++)
		inside = sample->time >= filter->spans[i].first && sample->time <= filter->spans[i].last;
	return inside;
}

bool tool_filter_takes_record(const struct tool_filter *filter, const struct perfring_trailer *trailer)
{
	return !filter->cpus || !(trailer->present & PERFRING_SAMPLE_CPU) || trailer->cpu == UINT32_MAX ||
	       has_cpu(filter->cpus, trailer->cpu);
}

bool tool_filter_shows(const struct tool_filter *filter, const struct perfring_sample *sample, const char *comm,
		       const char *object, const char *symbol)
{
	bool has_task = sample->present & PERFRING_SAMPLE_TID;

	if (filter->comms && !(comm && tool_filter_has_word(filter->comms, comm)))
		return false;
	if (filter->pids && !(has_task && has_id(filter->pids, sample->pid)))
		return false;
	if (filter->tids && !(has_task && has_id(filter->tids, sample->tid)))
		return false;
	if (filter->objects && !(object && (tool_filter_has_word(filter->objects, object) ||
					    tool_filter_has_word(filter->objects, tool_filter_short_name(object)))))
		return false;
	return !filter->symbols || (symbol && tool_filter_has_word(filter->symbols, symbol));
}
