/* filter.c - which samples count.
 *
 * The functions of filter.h: fill.c and the commands ask for each sample.  Times are compared in ns of the recording's clock;
 * percentages are of its first and last sample.  Lists are parsed for each question, and nothing is allocated.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <perfring/filter.h>

/* ---- lists ---- */

/* Decimal numbers with commas, 0 too: the idle task has that pid. */
static bool is_ids(const char *text)
{
	for (;; text++) {
		size_t length = strspn(text, "0123456789");

		if (!length || length > 10 || strtoul(text, NULL, 10) > INT32_MAX)
			return false;
		text += length;
		if (*text != ',')
			return !*text;
	}
}

/* Decimal numbers and ranges with commas. */
static bool is_cpus(const char *text)
{
	unsigned long long first, last;
	char *end;

	do {
		if (*text < '0' || *text > '9')
			return false;
		first = last = strtoull(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoull(end + 1, &end, 10);
		if (last < first || last > INT32_MAX)
			return false;
		text = end + 1;
	} while (*end == ',');
	return !*end;
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

/* Whether a CPU is in a list that is_cpus accepts. */
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

bool perfring_filter_has_word(const char *list, const char *word)
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

const char *perfring_filter_short_name(const char *path, char made[PERFRING_FILTER_SHORT_NAME])
{
	const char *slash = strrchr(path, '/');
	int pid, end = 0;

	if (!strncmp(path, "/tmp/perf-", 10) && sscanf(path, "/tmp/perf-%d.map%n", &pid, &end) == 1 && end &&
	    !path[end]) {
		snprintf(made, PERFRING_FILTER_SHORT_NAME, "[JIT] tid %d", pid);
		return made;
	}
	return *path == '/' && slash[1] ? slash + 1 : path;
}

/* ---- times ---- */

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
static const char *read_span(const char *text, struct perfring_filter_span *span)
{
	*span = (struct perfring_filter_span){0, UINT64_MAX};
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
static const char *read_part(const char *text, uint64_t first, uint64_t last, struct perfring_filter_span *span)
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

int perfring_filter_set_time(struct perfring_filter *filter, const char *text, uint64_t first, uint64_t last)
{
	struct perfring_filter made = *filter;
	bool parts = strchr(text, '%');

	made.time = text;
	for (made.span_count = 0; made.span_count < PERFRING_FILTER_SPANS_MAX; text++) {
		struct perfring_filter_span *span = &made.spans[made.span_count++];

		text = parts ? read_part(text, first, last < first ? first : last, span) : read_span(text, span);
		if (!text || (*text && *text != (parts ? ',' : ' ')))
			return -EINVAL;
		if (!*text) {
			*filter = made;
			return 0;
		}
	}
	return -EINVAL;
}

int perfring_filter_check(const struct perfring_filter *filter)
{
	return (!filter->pids || is_ids(filter->pids)) && (!filter->tids || is_ids(filter->tids)) &&
			       (!filter->cpus || is_cpus(filter->cpus)) &&
			       filter->frames < PERFRING_FILTER_FRAMES_COUNT && filter->span_count <= PERFRING_FILTER_SPANS_MAX
		       ? 0
		       : -EINVAL;
}

/* ---- samples ---- */

uint32_t perfring_filter_modes(const struct perfring_filter *filter)
{
	switch (filter->frames) {
	case PERFRING_FILTER_KERNEL:
		return 1u << PERFRING_RECORD_MISC_KERNEL | 1u << PERFRING_RECORD_MISC_GUEST_KERNEL;
	case PERFRING_FILTER_USER:
		return 1u << PERFRING_RECORD_MISC_USER | 1u << PERFRING_RECORD_MISC_GUEST_USER;
	default:
		return UINT32_MAX;
	}
}

bool perfring_filter_counts(const struct perfring_filter *filter, const struct perfring_sample *sample)
{
	bool inside = !filter->span_count || !(sample->present & PERFRING_SAMPLE_TIME) || !sample->time;

	if (filter->cpus && !((sample->present & PERFRING_SAMPLE_CPU) && has_cpu(filter->cpus, sample->cpu)))
		return false;
	for (uint32_t i = 0; !inside && i < filter->span_count; i++)
		inside = sample->time >= filter->spans[i].first && sample->time <= filter->spans[i].last;
	return inside;
}

bool perfring_filter_takes_record(const struct perfring_filter *filter, const struct perfring_trailer *trailer)
{
	return !filter->cpus || !(trailer->present & PERFRING_SAMPLE_CPU) || trailer->cpu == UINT32_MAX ||
	       has_cpu(filter->cpus, trailer->cpu);
}

bool perfring_filter_shows(const struct perfring_filter *filter, const struct perfring_sample *sample, const char *comm,
		       const char *object, const char *symbol)
{
	bool has_task = sample->present & PERFRING_SAMPLE_TID;
	char made[PERFRING_FILTER_SHORT_NAME];

	if (filter->comms && !(comm && perfring_filter_has_word(filter->comms, comm)))
		return false;
	if (filter->pids && !(has_task && has_id(filter->pids, sample->pid)))
		return false;
	if (filter->tids && !(has_task && has_id(filter->tids, sample->tid)))
		return false;
	if (filter->objects && !(object && (perfring_filter_has_word(filter->objects, object) ||
					    perfring_filter_has_word(filter->objects, perfring_filter_short_name(object, made)))))
		return false;
	return !filter->symbols || (symbol && perfring_filter_has_word(filter->symbols, symbol));
}
