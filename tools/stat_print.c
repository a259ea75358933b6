/* stat_print.c - what `perfring stat` counted, as columns, as fields, as JSON.
 *
 * Called by stat.c, stat_report.c and stat_record.c with rows whose counts are known.  Columns and words are perf 6.1's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include "json.h"
#include "stat.h"

enum {
	NAME_WIDTH = 32, /* perf's columns */
	METRIC_WIDTH = 23,
	METRIC_ONLY_WIDTH = 20,
};

/* ---- spreads ---- */

/* By Newton's method, from above: avoids libm. */
static double root(double square)
{
	double guess = square > 1 ? square : 1, better;

	if (!(square > 0))
		return 0;
	for (;;) {
		better = (guess + square / guess) / 2;
		if (better >= guess)
			return guess;
		guess = better;
	}
}

/* The standard error of the mean. */
static double spread_error(const struct spread *spread)
{
	double runs = (double)spread->runs;

	return spread->runs < 2 ? 0 : root(spread->squares / (runs - 1) / runs);
}

static double spread_percent(const struct spread *spread)
{
	return spread->mean > 0 ? 100 * spread_error(spread) / spread->mean : 0;
}

/* ---- rows ---- */

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERFRING_TYPE_SOFTWARE &&
	       (attr->config == PERFRING_COUNT_SW_CPU_CLOCK || attr->config == PERFRING_COUNT_SW_TASK_CLOCK);
}

/* The event's name, with a modifier for what was dropped (:u). */
static const char *name_of(const struct counting *counting, uint32_t event, char *buffer, size_t size)
{
	const char *name = tool_stat_event(counting, event)->name;

	if (!counting->user_only[event])
		return name;
	snprintf(buffer, size, "%s%su", name, strchr(name, ':') ? "" : ":");
	return buffer;
}

const char *tool_stat_unit(const struct counting *counting, uint32_t event)
{
	const struct perfring_events_one *one = tool_stat_event(counting, event);

	if (counting->is_read && counting->read_events[event].unit)
		return counting->read_events[event].unit;
	return is_clock(one->attr) ? "msec" : one->unit;
}

double tool_stat_scale(const struct counting *counting, uint32_t event)
{
	const struct perfring_events_one *one = tool_stat_event(counting, event);

	if (counting->is_read && counting->read_events[event].has_scale)
		return counting->read_events[event].scale;
	return is_clock(one->attr) ? 1e-6 : one->scale;
}

/* ---- derived columns ---- */

struct metric {
	double value;
	int decimals;
	const char *join;  /* between the number and the words */
	const char *words; /* NULL: there is none */
};

/* The mean of the first row of this event at this place, and of the cgroup of event `like`; false: none was counted. */
static bool find_mean(const struct counting *counting, uint32_t like, uint32_t place, uint32_t type, uint64_t config,
		      double *mean)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		const struct perf_event_attr *attr = tool_stat_event(counting, i)->attr;
		const struct row *row = tool_stat_row(counting, i, place);

		if (attr->type != type || attr->config != config || !row->values.runs || row->values.mean <= 0 ||
		    tool_stat_cgroup(counting, i) != tool_stat_cgroup(counting, like))
			continue;
		*mean = row->values.mean;
		return true;
	}
	return false;
}

static bool find_hardware(const struct counting *counting, uint32_t like, uint32_t place, uint64_t config, double *mean)
{
	return find_mean(counting, like, place, PERFRING_TYPE_HARDWARE, config, mean);
}

static bool find_clock(const struct counting *counting, uint32_t like, uint32_t place, double *ns)
{
	return find_mean(counting, like, place, PERFRING_TYPE_SOFTWARE, PERFRING_COUNT_SW_TASK_CLOCK, ns) ||
	       find_mean(counting, like, place, PERFRING_TYPE_SOFTWARE, PERFRING_COUNT_SW_CPU_CLOCK, ns);
}

/* The metric that relates a hardware event to another one. */
static struct metric relate(const struct counting *counting, uint32_t like, const struct perf_event_attr *attr,
			    double value, uint32_t place)
{
	static const struct metric NONE = {0, 0, NULL, NULL};
	double other;

	switch (attr->config) {
	case PERFRING_COUNT_HW_CPU_CYCLES:
		if (find_clock(counting, like, place, &other))
			return (struct metric){value / other, 3, " ", "GHz"};
		break;
	case PERFRING_COUNT_HW_INSTRUCTIONS:
		if (find_hardware(counting, like, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
			return (struct metric){value / other, 2, "  ", "insn per cycle"};
		break;
	case PERFRING_COUNT_HW_BRANCH_MISSES:
		if (find_hardware(counting, like, place, PERFRING_COUNT_HW_BRANCH_INSTRUCTIONS, &other))
			return (struct metric){100 * value / other, 2, "% ", "of all branches"};
		break;
	case PERFRING_COUNT_HW_CACHE_MISSES:
		if (find_hardware(counting, like, place, PERFRING_COUNT_HW_CACHE_REFERENCES, &other))
			return (struct metric){100 * value / other, 2, "% ", "of all cache refs"};
		break;
	case PERFRING_COUNT_HW_STALLED_CYCLES_FRONTEND:
		if (find_hardware(counting, like, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
			return (struct metric){100 * value / other, 2, "% ", "frontend cycles idle"};
		break;
	case PERFRING_COUNT_HW_STALLED_CYCLES_BACKEND:
		if (find_hardware(counting, like, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
			return (struct metric){100 * value / other, 2, "% ", "backend cycles idle"};
		break;
	default:
		break;
	}
	return NONE;
}

static struct metric metric_of(const struct counting *counting, uint32_t event, uint32_t place)
{
	static const struct {
		double per_s;
		const char *words;
	} RATES[] = {{1e9, "G/sec"}, {1e6, "M/sec"}, {1e3, "K/sec"}, {0, "/sec"}};
	const struct perf_event_attr *attr = tool_stat_event(counting, event)->attr;
	double value = tool_stat_row(counting, event, place)->values.mean, other;
	struct metric metric = {0, 3, " ", NULL};
	size_t i = 0;

	if (is_clock(attr) && counting->elapsed.mean > 0)
		return (struct metric){value / counting->elapsed.mean, 3, " ", "CPUs utilized"};
	if (attr->type == PERFRING_TYPE_HARDWARE)
		metric = relate(counting, event, attr, value, place);
	if (metric.words || is_clock(attr) || !find_clock(counting, event, place, &other))
		return metric;
	value = value / other * 1e9;
	while (value < RATES[i].per_s)
		i++;
	return (struct metric){i < 3 ? value / RATES[i].per_s : value, 3, " ", RATES[i].words};
}

/* ---- printing ---- */

/* The count as text; that of one run that was counted all the time has all its digits. */
static void write_value(const struct counting *counting, uint32_t event, const struct row *row, char *buffer,
			size_t size)
{
	double scale = tool_stat_scale(counting, event);
	bool whole = scale == 1.0;

	if (!row->supported)
		snprintf(buffer, size, "<not supported>");
	else if (!row->values.runs)
		snprintf(buffer, size, "<not counted>");
	else if (whole && row->values.runs == 1 && (counting->unscaled || row->count.running == row->count.enabled))
		snprintf(buffer, size, tool_stat_is_plain(counting) ? "%'" PRIu64 : "%" PRIu64, row->count.value);
	else
		snprintf(buffer, size, tool_stat_is_plain(counting) ? "%'.*f" : "%.*f",
			 whole            ? 0
			 : counting->json ? 6
					  : 2,
			 row->values.mean * scale);
}

static double share_of(const struct row *row)
{
	return row->enabled.mean > 0 ? row->running.mean / row->enabled.mean : 1;
}

/* The names of the kinds of places: in JSON, and as the title of the column. */
static const struct {
	const char *key, *head;
} APARTS[] = {
	[APART_NOT] = {NULL, ""},
	[APART_CPU] = {"cpu", "CPU        "},
	[APART_THREAD] = {"thread", "           comm-pid       "},
	[APART_CORE] = {"core", "core            cpus "},
	[APART_DIE] = {"die", "die          cpus "},
	[APART_SOCKET] = {"socket", "socket cpus "},
	[APART_NODE] = {"node", "node   cpus "},
};

/* Prints the time at which the interval ended; nothing for a summary. */
static void print_stamp(const struct counting *counting, uint64_t at, const char *before, int width, const char *after)
{
	if (counting->interval && !counting->in_summary)
		fprintf(counting->out, "%s%*" PRIu64 ".%09" PRIu64 "%s", before, width, at / NS_PER_S, at % NS_PER_S,
			after);
}

static void print_place_in_json(const struct counting *counting, const struct place *place, const char *name,
				uint64_t at)
{
	FILE *out = counting->out;

	print_stamp(counting, at, "\"interval\" : ", 0, ", ");
	if (!counting->apart)
		return;
	fprintf(out, "\"%s\" : ", APARTS[counting->apart].key);
	tool_json_text(out, counting->apart == APART_CPU ? name + strlen("CPU") : name);
	fputs(", ", out);
	if (tool_stat_is_of_sets(counting))
		fprintf(out, "\"aggregate-number\" : %u, ", place->cpus);
}

static void print_place_in_fields(const struct counting *counting, const struct place *place, const char *name,
				  uint64_t at)
{
	const char *separator = counting->separator;
	FILE *out = counting->out;

	if (counting->in_summary && !counting->no_summary_mark)
		fprintf(out, "%16s%s", "summary", separator);
	print_stamp(counting, at, "", 6, separator);
	if (!counting->apart)
		return;
	tool_print(out, name, 0, false); /* a thread names itself */
	fputs(separator, out);
	if (tool_stat_is_of_sets(counting))
		fprintf(out, "%u%s", place->cpus, separator);
}

/* The widths are perf's. */
static void print_place(const struct counting *counting, const struct place *place, uint64_t at)
{
	FILE *out = counting->out;
	char name[64];

	tool_stat_name_place(counting, place, name, sizeof(name));
	if (counting->json) {
		print_place_in_json(counting, place, name, at);
		return;
	}
	if (counting->separator) {
		print_place_in_fields(counting, place, name, at);
		return;
	}
	print_stamp(counting, at, "", 6, " ");
	switch (counting->apart) {
	case APART_NOT:
		break;
	case APART_THREAD: /* it names itself */
		tool_print_right(out, place->comm, 16);
		fprintf(out, "-%-8d ", place->which);
		break;
	case APART_CPU:
		fprintf(out, "CPU%-8d", place->which);
		break;
	case APART_CORE:
		fprintf(out, "S%d-D%d-C%-8d%5u ", place->socket, place->die, place->core, place->cpus);
		break;
	case APART_DIE:
		fprintf(out, "S%d-D%-8d%5u ", place->socket, place->die, place->cpus);
		break;
	default:
		fprintf(out, "%-6s%5u ", name, place->cpus);
	}
}

static void print_json(const struct counting *counting, uint32_t event, uint32_t place, const char *value)
{
	const struct row *row = tool_stat_row(counting, event, place);
	char name[512];
	FILE *out = counting->out;

	fputs("\"counter-value\" : ", out);
	tool_json_text(out, value);
	fputs(", \"unit\" : ", out);
	tool_json_text(out, tool_stat_unit(counting, event));
	fputs(", \"event\" : ", out);
	tool_json_text(out, name_of(counting, event, name, sizeof(name)));
	if (counting->cgroups) {
		fputs(", \"cgroup\" : ", out);
		tool_json_text(out, tool_stat_cgroup(counting, event) ? tool_stat_cgroup(counting, event) : "");
	}
	if (counting->repeat > 1)
		fprintf(out, ", \"variance\" : %.2f", spread_percent(&row->values));
	fprintf(out, ", \"event-runtime\" : %.0f, \"pcnt-running\" : %.2f", row->running.mean, 100 * share_of(row));
	if (row->values.runs) {
		struct metric metric = metric_of(counting, event, place);

		fprintf(out, ", \"margin\" : %.6g", row->estimate.margin * tool_stat_scale(counting, event));
		if (row->count.failed)
			fprintf(out, ", \"failed\" : %u", row->count.failed);
		if (metric.words)
			fprintf(out, ", \"metric-value\" : %.6f, \"metric-unit\" : \"%s\"", metric.value, metric.words);
	}
}

static void print_fields(const struct counting *counting, uint32_t event, uint32_t place, const char *value)
{
	const struct row *row = tool_stat_row(counting, event, place);
	const char *separator = counting->separator;
	struct metric metric = {0, 0, NULL, NULL};
	char name[512];
	FILE *out = counting->out;

	/* the separator is as the user wants it */
	fprintf(out, "%s%s", value, separator);
	tool_print(out, tool_stat_unit(counting, event), 0, false);
	fputs(separator, out);
	tool_print(out, name_of(counting, event, name, sizeof(name)), 0, false);
	fputs(separator, out);
	if (counting->cgroups) {
		if (tool_stat_cgroup(counting, event))
			tool_print(out, tool_stat_cgroup(counting, event), 0, false);
		fputs(separator, out);
	}
	if (counting->repeat > 1)
		fprintf(out, "%.2f%%%s", spread_percent(&row->values), separator);
	fprintf(out, "%.0f%s%.2f%s", row->running.mean, separator, 100 * share_of(row), separator);
	if (row->values.runs)
		metric = metric_of(counting, event, place);
	if (metric.words)
		fprintf(out, "%.*f%s%s", metric.decimals, metric.value, separator, metric.words);
	else
		fputs(separator, out);
}

static void print_columns(const struct counting *counting, uint32_t event, uint32_t place, const char *value)
{
	const struct row *row = tool_stat_row(counting, event, place);
	struct metric metric = {0, 0, NULL, NULL};
	char words[64] = "", tail[160] = "";
	char name[512];
	FILE *out = counting->out;
	int used;

	if (row->values.runs)
		metric = metric_of(counting, event, place);
	if (metric.words)
		snprintf(words, sizeof(words), "# %*.*f%s%s", metric.decimals + 5, metric.decimals, metric.value,
			 metric.join, metric.words);
	if (row->values.runs && counting->repeat > 1)
		snprintf(tail, sizeof(tail), "  ( +-%6.2f%% )", spread_percent(&row->values));
	if (!row->values.runs && row->supported && row->count.enabled && !row->count.running)
		snprintf(tail, sizeof(tail), "  (0.00%%)"); /* it never had a counter */
	if (row->values.runs && share_of(row) < 1) {
		size_t length = strlen(tail);

		if (counting->verbose)
			snprintf(tail + length, sizeof(tail) - length, "  (%.2f%%, +- %.*f)", 100 * share_of(row),
				 tool_stat_scale(counting, event) == 1.0 ? 0 : 2, row->estimate.margin * tool_stat_scale(counting, event));
		else
			snprintf(tail + length, sizeof(tail) - length, "  (%.2f%%)", 100 * share_of(row));
	}
	fprintf(out, "%18s ", value);
	tool_print(out, tool_stat_unit(counting, event), counting->unit_width, false);
	putc(' ', out);
	used = tool_print(out, name_of(counting, event, name, sizeof(name)), counting->cgroups ? NAME_WIDTH : 0, false);
	if (tool_stat_cgroup(counting, event)) {
		fputc(' ', out);
		used += 1 + tool_print(out, tool_stat_cgroup(counting, event), 0, false);
	}
	if (*words || *tail)
		fprintf(out, "%*s", used < NAME_WIDTH ? NAME_WIDTH - used + 1 : 1, "");
	if (*tail)
		fprintf(out, "%-*s%s", METRIC_WIDTH + 11, words, tail);
	else
		fputs(words, out);
}

void tool_stat_flush(struct counting *counting)
{
	if (fflush(counting->out) && !counting->out_error)
		counting->out_error = errno;
}

static void print_row(const struct counting *counting, uint32_t event, uint32_t place, uint64_t at)
{
	char value[64];

	if (tool_stat_row(counting, event, place)->is_stale)
		return;
	write_value(counting, event, tool_stat_row(counting, event, place), value, sizeof(value));
	if (counting->json)
		fputc('{', counting->out);
	print_place(counting, &counting->places[place], at);
	if (counting->json)
		print_json(counting, event, place, value);
	else if (counting->separator)
		print_fields(counting, event, place, value);
	else
		print_columns(counting, event, place, value);
	fputs(counting->json ? "}\n" : "\n", counting->out);
}

static int compare_values(const void *a, const void *b, void *with)
{
	const struct row *rows = with;
	double one = rows[*(const uint32_t *)a].values.mean, other = rows[*(const uint32_t *)b].values.mean;

	return one > other ? -1 : one < other;
}

/* Prints the threads of an event by their counts, the largest first, as perf; with -a those without a count are left out. */
static void print_threads(const struct counting *counting, uint32_t event, uint64_t at)
{
	uint32_t *order = tool_allocate(NULL, counting->place_count, sizeof(*order));

	for (uint32_t i = 0; i < counting->place_count; i++)
		order[i] = i;
	qsort_r(order, counting->place_count, sizeof(*order), compare_values, tool_stat_row(counting, event, 0));
	for (uint32_t i = 0; i < counting->place_count; i++)
		if (!counting->all || tool_stat_row(counting, event, order[i])->values.mean > 0)
			print_row(counting, event, order[i], at);
	free(order);
}

/* The metric that relates an event to another one; rates over time are none. */
static struct metric relation_of(const struct counting *counting, uint32_t event, uint32_t place)
{
	static const struct metric NONE = {0, 0, NULL, NULL};
	const struct perf_event_attr *attr = tool_stat_event(counting, event)->attr;
	const struct row *row = tool_stat_row(counting, event, place);

	if (attr->type != PERFRING_TYPE_HARDWARE || !row->values.runs)
		return NONE;
	return relate(counting, event, attr, row->values.mean, place);
}

/* --metric-only: a line for each place. */
static void print_metrics(const struct counting *counting, uint64_t at)
{
	const char *separator = counting->separator;
	FILE *out = counting->out;
	bool is_first = true;

	if (tool_stat_is_plain(counting) && (!counting->interval || !counting->intervals)) {
		for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
			struct metric metric = relation_of(counting, i, 0);

			if (metric.words)
				fprintf(out, "%*s ", METRIC_ONLY_WIDTH, metric.words);
		}
		fputc('\n', out);
	}
	for (uint32_t j = 0; j < counting->place_count; j++, is_first = true) {
		if (counting->json)
			fputc('{', out);
		print_place(counting, &counting->places[j], at);
		for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
			struct metric metric = relation_of(counting, i, j);

			if (!metric.words)
				continue;
			if (counting->json)
				fprintf(out, "%s\"%s\" : \"%.*f\"", is_first ? "" : ", ", metric.words, metric.decimals,
					metric.value);
			else if (separator)
				fprintf(out, "%.*f%s", metric.decimals, metric.value, separator);
			else
				fprintf(out, "%*.*f ", METRIC_ONLY_WIDTH, metric.decimals, metric.value);
			is_first = false;
		}
		fputs(counting->json ? "}\n" : "\n", out);
	}
}

void tool_stat_print_rows(struct counting *counting, uint64_t at)
{
	uint32_t events = perfring_events_count(counting->events);

	if (counting->metric_only)
		print_metrics(counting, at);
	else if (tool_stat_is_of_sets(counting)) /* as perf: set by set, in it each event */
		for (uint32_t j = 0; j < counting->place_count; j++)
			for (uint32_t i = 0; i < events; i++)
				print_row(counting, i, j, at);
	else
		for (uint32_t i = 0; i < events; i++) {
			if (counting->apart == APART_THREAD)
				print_threads(counting, i, at);
			else
				for (uint32_t j = 0; j < counting->place_count; j++)
					print_row(counting, i, j, at);
		}
	tool_stat_flush(counting);
}

void tool_stat_print_head(struct counting *counting)
{
	FILE *out = counting->out;

	if (counting->output && !counting->json) {
		time_t clock = time(NULL);
		char date[64];

		strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", localtime(&clock));
		fprintf(out, "# started on %s\n\n", date);
	}
	if (counting->interval && tool_stat_is_plain(counting))
		fprintf(out,
			counting->metric_only ? "#           time \n"
					      : "#           time %s            counts unit events\n",
			APARTS[counting->apart].head);
	tool_stat_flush(counting);
}

void tool_stat_print_title(const struct counting *counting)
{
	FILE *out = counting->out;

	fputs("\n Performance counter stats for ", out);
	if (counting->cpus && counting->all) {
		fputs("'CPU(s) ", out);
		tool_print(out, counting->cpus, 0, false);
	} else if (counting->all) {
		fputs("'system wide", out);
	} else if (counting->pids) {
		fputs("process id '", out);
		tool_print(out, counting->pids, 0, false);
	} else if (counting->tids) {
		fputs("thread id '", out);
		tool_print(out, counting->tids, 0, false);
	} else if (counting->user) {
		fputs("user '", out);
		tool_print(out, counting->user, 0, false);
	} else {
		for (char **word = counting->command; *word; word++) {
			fputc(word == counting->command ? '\'' : ' ', out);
			tool_print(out, *word, 0, false);
		}
	}
	fputc('\'', out);
	if (counting->elapsed.runs > 1)
		fprintf(out, " (%" PRIu64 " runs)", counting->elapsed.runs);
	fputs(":\n\n", out);
}

/* Each run's time, how far it is from the mean, and a #, with one more for each 5 % of its time that it is. */
void tool_stat_print_table(const struct counting *counting)
{
	double mean = counting->elapsed.mean / 1e9;
	FILE *out = counting->out;

	if (!counting->table || counting->elapsed.runs < 2)
		return;
	fprintf(out, "\n%12s# Table of individual measurements:\n", "");
	for (uint64_t i = 0; i < counting->elapsed.runs; i++) {
		double time = counting->times[i] / 1e9, away = time - mean;
		int marks = 1 + abs((int)(time > 0 ? 100 * away / time : 0) / 5);

		fprintf(out, "%12s%.4f (%+.4f) ", "", time, away);
		while (marks--)
			fputc('#', out);
		fputc('\n', out);
	}
	fprintf(out, "\n%12s# Final result:", "");
}

void tool_stat_print_times(struct counting *counting)
{
	double error = spread_error(&counting->elapsed) / 1e9, unit = 1;
	FILE *out = counting->out;
	int decimals = 2;

	if (perfring_events_count(counting->events))
		fputc('\n', out);
	if (counting->elapsed.runs < 2) {
		fprintf(out, " %17.9f seconds time elapsed\n\n", counting->elapsed.mean / 1e9);
	} else {
		/* Three digits of the error, and the mean to the same place. */
		while (error < unit && decimals < 9) {
			unit /= 10;
			decimals++;
		}
		fprintf(out, " %17.*f +- %.*f seconds time elapsed  ( +-%6.2f%% )\n\n", decimals,
			counting->elapsed.mean / 1e9, decimals, error, spread_percent(&counting->elapsed));
	}
	if (counting->elapsed.runs == 1 && tool_stat_is_of_command(counting) && !counting->is_read)
		fprintf(out, " %7jd.%06ld000 seconds user\n %7jd.%06ld000 seconds sys\n\n\n",
			(intmax_t)counting->usage.ru_utime.tv_sec, (long)counting->usage.ru_utime.tv_usec,
			(intmax_t)counting->usage.ru_stime.tv_sec, (long)counting->usage.ru_stime.tv_usec);
	tool_stat_flush(counting);
}

/* The raw counts of each event, summed over its fds. */
void tool_stat_print_raw(const struct counting *counting)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		struct perfring_count sum;
		char name[512];

		if (perfring_counts_sum(counting->counts, i, PERFRING_COUNTS_ALL, 0, &sum))
			continue;
		tool_print(stderr, name_of(counting, i, name, sizeof(name)), 0, false);
		fprintf(stderr, ": %" PRIu64 " %" PRIu64 " %" PRIu64, sum.value, sum.enabled, sum.running);
		if (sum.failed)
			fprintf(stderr, " (%u of %u could not be read)", sum.failed, sum.failed + sum.fds);
		fputc('\n', stderr);
	}
}
