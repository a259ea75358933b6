/* stat_print.c - what `perfring stat` counted, as columns, as fields, as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include "json.h"
#include "stat.h"

enum {
	NAME_WIDTH = 32, /* perf's columns */
	METRIC_WIDTH = 23,
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

/* Its name, with the modifier that says what was dropped. */
static const char *name_of(const struct counting *counting, uint32_t event, char *buffer, size_t size)
{
	const char *name = tool_stat_event(counting, event)->name;

	if (!counting->user_only[event])
		return name;
	snprintf(buffer, size, "%s%su", name, strchr(name, ':') ? "" : ":");
	return buffer;
}

const char *tool_stat_unit(const struct perfring_events_one *one)
{
	return is_clock(one->attr) ? "msec" : one->unit;
}

static double scale_of(const struct perfring_events_one *one)
{
	return is_clock(one->attr) ? 1e-6 : one->scale;
}

/* ---- derived columns ---- */

struct metric {
	double value;
	int decimals;
	const char *join;  /* between the number and the words */
	const char *words; /* NULL: there is none */
};

/* The mean of the first row at this place that `is` the event; false: none was counted. */
static bool find_mean(const struct counting *counting, uint32_t place, uint32_t type, uint64_t config, double *mean)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++) {
		const struct perf_event_attr *attr = tool_stat_event(counting, i)->attr;
		const struct row *row = tool_stat_row(counting, i, place);

		if (attr->type != type || attr->config != config || !row->values.runs || row->values.mean <= 0)
			continue;
		*mean = row->values.mean;
		return true;
	}
	return false;
}

static bool find_hardware(const struct counting *counting, uint32_t place, uint64_t config, double *mean)
{
	return find_mean(counting, place, PERFRING_TYPE_HARDWARE, config, mean);
}

static bool find_clock(const struct counting *counting, uint32_t place, double *ns)
{
	return find_mean(counting, place, PERFRING_TYPE_SOFTWARE, PERFRING_COUNT_SW_TASK_CLOCK, ns) ||
	       find_mean(counting, place, PERFRING_TYPE_SOFTWARE, PERFRING_COUNT_SW_CPU_CLOCK, ns);
}

/* A hardware event that has a meaning beside another one. */
static struct metric relate(const struct counting *counting, const struct perf_event_attr *attr, double value,
			    uint32_t place)
{
	static const struct metric NONE = {0, 0, NULL, NULL};
	double other;

	switch (attr->config) {
	case PERFRING_COUNT_HW_CPU_CYCLES:
		if (find_clock(counting, place, &other))
			return (struct metric){value / other, 3, " ", "GHz"};
		break;
	case PERFRING_COUNT_HW_INSTRUCTIONS:
		if (find_hardware(counting, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
			return (struct metric){value / other, 2, "  ", "insn per cycle"};
		break;
	case PERFRING_COUNT_HW_BRANCH_MISSES:
		if (find_hardware(counting, place, PERFRING_COUNT_HW_BRANCH_INSTRUCTIONS, &other))
			return (struct metric){100 * value / other, 2, "% ", "of all branches"};
		break;
	case PERFRING_COUNT_HW_CACHE_MISSES:
		if (find_hardware(counting, place, PERFRING_COUNT_HW_CACHE_REFERENCES, &other))
			return (struct metric){100 * value / other, 2, "% ", "of all cache refs"};
		break;
	case PERFRING_COUNT_HW_STALLED_CYCLES_FRONTEND:
		if (find_hardware(counting, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
			return (struct metric){100 * value / other, 2, "% ", "frontend cycles idle"};
		break;
	case PERFRING_COUNT_HW_STALLED_CYCLES_BACKEND:
		if (find_hardware(counting, place, PERFRING_COUNT_HW_CPU_CYCLES, &other))
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
		metric = relate(counting, attr, value, place);
	if (metric.words || is_clock(attr) || !find_clock(counting, place, &other))
		return metric;
	value = value / other * 1e9;
	while (value < RATES[i].per_s)
		i++;
	return (struct metric){i < 3 ? value / RATES[i].per_s : value, 3, " ", RATES[i].words};
}

/* ---- printing ---- */

/* The count as text: a lone, complete one to the last digit. */
static void write_value(const struct counting *counting, const struct perfring_events_one *one, const struct row *row,
			char *buffer, size_t size)
{
	double scale = scale_of(one);
	bool whole = scale == 1.0;

	if (!row->supported)
		snprintf(buffer, size, "<not supported>");
	else if (!row->values.runs)
		snprintf(buffer, size, "<not counted>");
	else if (whole && row->values.runs == 1 && row->count.running == row->count.enabled)
		snprintf(buffer, size, "%" PRIu64, row->count.value);
	else
		snprintf(buffer, size, "%.*f", whole ? 0 : counting->json ? 6 : 2, row->values.mean * scale);
}

static double share_of(const struct row *row)
{
	return row->enabled.mean > 0 ? row->running.mean / row->enabled.mean : 1;
}

static void print_place(const struct counting *counting, const struct place *place, uint64_t at)
{
	const char *separator = counting->separator;
	FILE *out = counting->out;
	char thread[64];

	snprintf(thread, sizeof(thread), "%s-%d", place->comm, place->which);
	if (counting->json) {
		if (counting->interval)
			fprintf(out, "\"interval\" : %" PRIu64 ".%09" PRIu64 ", ", at / NS_PER_S, at % NS_PER_S);
		if (counting->apart)
			fprintf(out, "\"cpu\" : \"%d\", ", place->which);
		if (counting->per_thread) {
			fputs("\"thread\" : ", out);
			tool_json_text(out, thread);
			fputs(", ", out);
		}
		return;
	}
	if (counting->interval)
		fprintf(out, "%6" PRIu64 ".%09" PRIu64 "%s", at / NS_PER_S, at % NS_PER_S, separator ? separator : " ");
	if (counting->apart && separator)
		fprintf(out, "CPU%d%s", place->which, separator);
	else if (counting->apart)
		fprintf(out, "CPU%-8d", place->which);
	/* a thread names itself */
	if (counting->per_thread && separator) {
		tool_print(out, thread, 0, false);
		fputs(separator, out);
	} else if (counting->per_thread) {
		tool_print_right(out, place->comm, 16);
		fprintf(out, "-%-8d ", place->which);
	}
}

static void print_json(const struct counting *counting, uint32_t event, uint32_t place, const char *value)
{
	const struct perfring_events_one *one = tool_stat_event(counting, event);
	const struct row *row = tool_stat_row(counting, event, place);
	char name[512];
	FILE *out = counting->out;

	fputs("\"counter-value\" : ", out);
	tool_json_text(out, value);
	fputs(", \"unit\" : ", out);
	tool_json_text(out, tool_stat_unit(one));
	fputs(", \"event\" : ", out);
	tool_json_text(out, name_of(counting, event, name, sizeof(name)));
	if (counting->repeat > 1)
		fprintf(out, ", \"variance\" : %.2f", spread_percent(&row->values));
	fprintf(out, ", \"event-runtime\" : %.0f, \"pcnt-running\" : %.2f", row->running.mean, 100 * share_of(row));
	if (row->values.runs) {
		struct metric metric = metric_of(counting, event, place);

		fprintf(out, ", \"margin\" : %.6g", row->estimate.margin * scale_of(one));
		if (row->count.failed)
			fprintf(out, ", \"failed\" : %u", row->count.failed);
		if (metric.words)
			fprintf(out, ", \"metric-value\" : %.6f, \"metric-unit\" : \"%s\"", metric.value, metric.words);
	}
}

static void print_fields(const struct counting *counting, uint32_t event, uint32_t place, const char *value)
{
	const struct perfring_events_one *one = tool_stat_event(counting, event);
	const struct row *row = tool_stat_row(counting, event, place);
	const char *separator = counting->separator;
	struct metric metric = {0, 0, NULL, NULL};
	char name[512];
	FILE *out = counting->out;

	/* the separator is as the user wants it */
	fprintf(out, "%s%s", value, separator);
	tool_print(out, tool_stat_unit(one), 0, false);
	fputs(separator, out);
	tool_print(out, name_of(counting, event, name, sizeof(name)), 0, false);
	fputs(separator, out);
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
	const struct perfring_events_one *one = tool_stat_event(counting, event);
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
	if (row->values.runs && share_of(row) < 1) {
		size_t length = strlen(tail);

		if (counting->verbose)
			snprintf(tail + length, sizeof(tail) - length, "  (%.2f%%, +- %.*f)", 100 * share_of(row),
				 scale_of(one) == 1.0 ? 0 : 2, row->estimate.margin * scale_of(one));
		else
			snprintf(tail + length, sizeof(tail) - length, "  (%.2f%%)", 100 * share_of(row));
	}
	fprintf(out, "%18s ", value);
	tool_print(out, tool_stat_unit(one), counting->unit_width, false);
	putc(' ', out);
	used = tool_print(out, name_of(counting, event, name, sizeof(name)), 0, false);
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

void tool_stat_print_rows(struct counting *counting, uint64_t at)
{
	for (uint32_t i = 0; i < perfring_events_count(counting->events); i++)
		for (uint32_t j = 0; j < counting->place_count; j++) {
			const struct perfring_events_one *one = tool_stat_event(counting, i);
			const struct row *row = tool_stat_row(counting, i, j);
			char value[64];

			write_value(counting, one, row, value, sizeof(value));
			if (counting->json)
				fputc('{', counting->out);
			print_place(counting, &counting->places[j], at);
			if (counting->json)
				print_json(counting, i, j, value);
			else if (counting->separator)
				print_fields(counting, i, j, value);
			else
				print_columns(counting, i, j, value);
			fputs(counting->json ? "}\n" : "\n", counting->out);
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
		fprintf(out, "#           time %s            counts unit events\n",
			counting->apart        ? "CPU        "
			: counting->per_thread ? "           comm-pid       "
					       : "");
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

void tool_stat_print_times(struct counting *counting)
{
	double error = spread_error(&counting->elapsed) / 1e9, unit = 1;
	FILE *out = counting->out;
	int decimals = 2;

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
	if (counting->elapsed.runs == 1 && tool_stat_is_of_command(counting))
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
