/* report.c - `perfring report`: samples by command, object and symbol, for each event. */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include "machine.h"
#include "symbols.h"
#include "options.h"
#include "tools.h"

enum key {
	KEY_COMM = 1 << 0,
	KEY_DSO = 1 << 1,
	KEY_SYM = 1 << 2,
};

static const struct {
	const char *name;
	unsigned key;
	const char *title;
} keys[] = {{"comm", KEY_COMM, "Command"}, {"dso", KEY_DSO, "Shared Object"}, {"sym", KEY_SYM, "Symbol"}};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

/* One line of the report.  What is not sorted by is NULL or 0 in every row. */
struct row {
	uint32_t event;
	char mark;
	const char *comm;
	const char *object;
	const char *symbol;
	uint64_t address; /* of a symbol without a name */
	uint64_t samples;
	uint64_t weight;
};

struct event {
	uint64_t samples;
	uint64_t weight;
	uint64_t lost;
};

enum {
	RECENT_BITS = 12
};

/* Samples of one address in one thread go into one row, until a record changes tasks or mappings. */
struct recent {
	struct row *row; /* NULL: not known yet */
	uint64_t change;
	uint64_t ip;
	uint64_t present;
	uint32_t pid, tid;
	uint32_t event;
	unsigned cpumode;
	unsigned nameless;
};

struct report {
	struct tool_input input;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	unsigned order[KEY_COUNT]; /* into keys */
	size_t order_count;
	unsigned sorted; /* KEY_ bits */
	uint64_t limit;
	void *tree;
	struct row **rows;
	size_t nr;
	size_t capacity;
	struct event *events;
	uint32_t event_count;
	uint64_t nameless[TOOL_NAMELESS_COUNT];
	uint64_t lost_records;
	uint64_t throttles;
	uint64_t unread;
	uint64_t change; /* records of tasks or mappings */
	struct recent recent[1 << RECENT_BITS];
};

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static int compare_text(const char *a, const char *b)
{
	if (a == b)
		return 0;
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_keys(const void *a, const void *b)
{
	const struct row *one = a, *other = b;
	int order;

	if (one->event != other->event)
		return one->event < other->event ? -1 : 1;
	if (one->mark != other->mark)
		return one->mark < other->mark ? -1 : 1;
	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	order = compare_text(one->symbol, other->symbol);
	if (!order)
		order = compare_text(one->object, other->object);
	return order ? order : compare_text(one->comm, other->comm);
}

/* By event, then the heaviest first. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *one = *(struct row *const *)a, *other = *(struct row *const *)b;

	if (one->event != other->event)
		return one->event < other->event ? -1 : 1;
	if (one->weight != other->weight)
		return one->weight > other->weight ? -1 : 1;
	if (one->samples != other->samples)
		return one->samples > other->samples ? -1 : 1;
	return compare_keys(one, other);
}

static struct row *get_row(struct report *report, const struct row *key)
{
	struct row *row;
	void *at = tfind(key, &report->tree, compare_keys);

	if (at)
		return *(struct row **)at;
	row = tool_allocate(NULL, 1, sizeof(*row));
	*row = *key;
	tool_insert(row, &report->tree, compare_keys);
	if (report->nr == report->capacity) {
		report->capacity *= 2;
		report->rows = tool_allocate(report->rows, report->capacity, sizeof(struct row *));
	}
	return report->rows[report->nr++] = row;
}

/* ---- taking ---- */

static const char *short_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return *path == '/' && slash[1] ? slash + 1 : path;
}

/* A stream may announce more events at any time. */
static struct event *event_of(struct report *report, uint32_t index)
{
	if (index >= report->event_count) {
		report->events = tool_allocate(report->events, (size_t)index + 1, sizeof(*report->events));
		memset(report->events + report->event_count, 0,
		       (index + 1 - report->event_count) * sizeof(*report->events));
		report->event_count = index + 1;
	}
	return &report->events[index];
}

/* The entry of `recent` for this address and thread: known, or new since names or mappings changed. */
static struct recent *find_recent(struct report *report, uint32_t event, const struct perfring_sample *sample)
{
	struct recent key = {
		.change = report->change,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.event = event,
		.cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
		.present = sample->present & (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID),
	};
	uint64_t hash = (key.ip ^ (uint64_t)key.tid << 32 ^ key.event ^ (uint64_t)key.cpumode << 29) *
			UINT64_C(0x9e3779b97f4a7c15);
	struct recent *recent = &report->recent[hash >> (64 - RECENT_BITS)];

	if (recent->row && recent->change == key.change && recent->ip == key.ip && recent->pid == key.pid &&
	    recent->tid == key.tid && recent->event == key.event && recent->cpumode == key.cpumode &&
	    recent->present == key.present)
		return recent;
	*recent = key;
	return recent;
}

static struct row *find_row(struct report *report, uint32_t event, const struct perfring_sample *sample,
			    unsigned *nameless)
{
	struct tool_symbol symbol = {.nameless = TOOL_NAMELESS_MODE};
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	bool has_task = sample->present & PERFRING_SAMPLE_TID;
	struct row key = {.event = event};

	if (sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(report->symbols, cpumode, has_task ? sample->pid : 0, sample->ip, &symbol);
	*nameless = symbol.nameless;
	if (report->sorted & KEY_COMM)
		key.comm = has_task ? tool_machine_comm(report->machine, sample->tid) : "[unknown]";
	if (report->sorted & KEY_DSO)
		key.object = symbol.object ? short_name(symbol.object) : "[unknown]";
	if (report->sorted & KEY_SYM) {
		key.mark = cpumode < 6 ? "!k.Hgu"[cpumode] : '!';
		key.symbol = symbol.name;
		key.address = symbol.name ? 0 : symbol.address;
	}
	return get_row(report, &key);
}

static void take_sample(struct report *report, const struct perfring_format *format,
			const struct perfring_sample *sample)
{
	struct event *event = event_of(report, format->index);
	struct recent *recent = find_recent(report, format->index, sample);
	uint64_t weight = tool_input_period(&report->input, format, sample);
	struct row *row;

	if (!recent->row)
		recent->row = find_row(report, format->index, sample, &recent->nameless);
	row = recent->row;
	report->nameless[recent->nameless]++;
	row->samples++;
	row->weight = plus(row->weight, weight);
	event->samples++;
	event->weight = plus(event->weight, weight);
}

static void take_record(struct report *report, const struct perfring_item *item, const struct perfring_record *record)
{
	struct event *event;

	tool_machine_take(report->machine, record);
	report->change++;
	switch (record->type) {
	case PERFRING_RECORD_LOST:
		/* Its id is of the event that wrote next, not of the one that lost (docs/abi.md 14.12). */
		report->lost_records = plus(report->lost_records, record->is.lost.lost);
		break;
	case PERFRING_RECORD_LOST_SAMPLES:
		if (item->format) {
			event = event_of(report, item->format->index);
			event->lost = plus(event->lost, record->is.lost_samples.lost);
		}
		break;
	case PERFRING_RECORD_THROTTLE:
		report->throttles++;
		break;
	}
}

static void take(struct report *report, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	const struct perfring_format *format;
	struct perfring_record record;
	struct perfring_sample sample;

	if (item->record->type != PERFRING_RECORD_SAMPLE) {
		if (!perfring_record_decode(item->format, item->record, &record, &fault))
			take_record(report, item, &record);
	} else if (!item->format) {
		report->unread++;
	} else if (!perfring_sample_decode(item->format, item->record, &sample, &fault)) {
		perfring_split_begin(report->input.split, item->format, &sample);
		while (tool_input_event(&report->input, &format))
			take_sample(report, format, &sample);
	} else {
		report->unread++;
	}
	if (fault.what)
		tool_input_fault(&report->input, &fault);
}

/* ---- printing ---- */

static void print_sym(const struct row *row)
{
	printf("[%c] ", row->mark);
	if (row->symbol)
		tool_print(stdout, row->symbol, 0, false);
	else
		printf("0x%016" PRIx64, row->address);
}

static double percent_of(const struct event *event, uint64_t weight)
{
	return event->weight ? 100.0 * (double)weight / (double)event->weight : 0.0;
}

static void print_row(const struct report *report, const struct row *row, const int *widths)
{
	const struct event *event = &report->events[row->event];
	size_t i;

	printf("%8.2f%%  %10" PRIu64, percent_of(event, row->weight), row->samples);
	for (i = 0; i < report->order_count; i++) {
		unsigned key = keys[report->order[i]].key;

		fputs("  ", stdout);
		if (key == KEY_SYM)
			print_sym(row);
		else
			tool_print(stdout, key == KEY_COMM ? row->comm : row->object,
				   i + 1 < report->order_count ? widths[report->order[i]] : 0, false);
	}
	putchar('\n');
}

static int wider(int a, int b)
{
	return a > b ? a : b;
}

/* An event that is there for its side records has no samples to report. */
static bool is_silent(const struct report *report, uint32_t index)
{
	const struct perf_event_attr *attr = perfring_file_attr(report->input.data, index);

	return report->event_count > 1 && attr && attr->type == PERFRING_TYPE_SOFTWARE &&
	       attr->config == PERFRING_COUNT_SW_DUMMY && !report->events[index].samples && !report->events[index].lost;
}

/* The lines beyond the limit, so that none is left out in silence. */
static void print_more(const struct event *event, struct row *const *rows, size_t nr)
{
	uint64_t weight = 0, samples = 0;

	for (size_t i = 0; i < nr; i++) {
		weight = plus(weight, rows[i]->weight);
		samples += rows[i]->samples;
	}
	printf("# %zu more lines: %.2f%%, %" PRIu64 " samples\n", nr, percent_of(event, weight), samples);
}

static void print_event(const struct report *report, uint32_t index, struct row *const *rows, size_t all)
{
	size_t nr = all < report->limit ? all : (size_t)report->limit;
	const struct event *event = &report->events[index];
	const char *name = perfring_file_event_name(report->input.data, index);
	int widths[KEY_COUNT];
	size_t i;

	printf("# Event '");
	tool_print(stdout, name ? name : "?", 0, false);
	printf("': %" PRIu64 " samples, %" PRIu64 " lost, total period %" PRIu64 "\n", event->samples, event->lost,
	       event->weight);
	if (!all) {
		putchar('\n');
		return;
	}
	for (i = 0; i < KEY_COUNT; i++)
		widths[i] = (int)strlen(keys[i].title);
	for (i = 0; i < nr; i++) {
		widths[0] = wider(widths[0], tool_print(NULL, rows[i]->comm ? rows[i]->comm : "", 0, false));
		widths[1] = wider(widths[1], tool_print(NULL, rows[i]->object ? rows[i]->object : "", 0, false));
		/* "[.] " and 0x with 16 digits */
		widths[2] = wider(widths[2], 4 + (rows[i]->symbol ? tool_print(NULL, rows[i]->symbol, 0, false) : 18));
	}
	printf("#\n# Overhead     Samples");
	for (i = 0; i < report->order_count; i++)
		printf("  %-*s", i + 1 < report->order_count ? widths[report->order[i]] : 0,
		       keys[report->order[i]].title);
	printf("\n#\n");
	for (i = 0; i < nr; i++)
		print_row(report, rows[i], widths);
	if (nr < all)
		print_more(event, rows + nr, all - nr);
	putchar('\n');
}

static void print_nameless(const struct report *report)
{
	uint64_t all = 0, nameless = 0;
	unsigned i;

	for (i = 0; i < TOOL_NAMELESS_COUNT; i++)
		all += report->nameless[i];
	nameless = all - report->nameless[TOOL_NAMELESS_NONE];
	if (!nameless)
		return;
	printf("# %" PRIu64 " of %" PRIu64 " samples have no symbol:\n", nameless, all);
	for (i = TOOL_NAMELESS_NONE + 1; i < TOOL_NAMELESS_COUNT; i++)
		if (report->nameless[i])
			printf("#   %10" PRIu64 "  %s\n", report->nameless[i],
			       tool_symbols_why(report->symbols, (enum tool_nameless)i));
}

static void print_report(struct report *report)
{
	size_t at = 0, end;
	uint32_t i;

	qsort(report->rows, report->nr, sizeof(struct row *), compare_rows);
	for (i = 0; i < report->event_count; i++) {
		if (is_silent(report, i))
			continue;
		for (end = at; end < report->nr && report->rows[end]->event == i; end++)
			;
		print_event(report, i, report->rows + at, end - at);
		at = end;
	}
	print_nameless(report);
	if (report->lost_records)
		printf("# %" PRIu64 " records were lost\n", report->lost_records);
	if (report->throttles)
		printf("# throttled %" PRIu64 " times\n", report->throttles);
	if (report->unread)
		printf("# %" PRIu64 " samples could not be read\n", report->unread);
}

/* ---- the command ---- */

/* False: a word is no column or is there twice, or there is none. */
static bool choose(struct report *report, const char *list)
{
	char *words = strdupa(list), *word, *rest;
	unsigned i;

	report->order_count = 0;
	report->sorted = 0;
	for (word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		for (i = 0; i < KEY_COUNT && strcmp(word, keys[i].name); i++)
			;
		if (i == KEY_COUNT || (report->sorted & keys[i].key))
			return false;
		report->sorted |= keys[i].key;
		report->order[report->order_count++] = i;
	}
	return report->order_count;
}

static int run(struct report *report)
{
	struct perfring_item item;

	while (tool_input_next(&report->input, &item))
		take(report, &item);
	print_report(report);
	if (!tool_flush())
		return TOOL_FAILED;
	return tool_input_end(&report->input);
}

static int report_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_report};
	static struct report report = {.limit = UINT64_MAX, .capacity = 256};
	const char *path = NULL;
	int found, status;

	choose(&report, "comm,dso,sym");
	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		switch (found) {
		case 'i':
			path = options.value;
			break;
		case 's':
			if (!choose(&report, options.value))
				return tool_options_refuse(&options, found, options.value);
			break;
		case 'n':
			report.limit = options.number;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	status = tool_input_open(&report.input, path, argc, argv, optind);
	if (status)
		return status;
	report.event_count = perfring_format_set_count(perfring_file_formats(report.input.data));
	report.events = tool_allocate(NULL, report.event_count + 1u, sizeof(*report.events));
	memset(report.events, 0, (report.event_count + 1u) * sizeof(*report.events));
	report.rows = tool_allocate(NULL, report.capacity, sizeof(struct row *));
	report.machine = tool_machine_open();
	report.symbols = tool_symbols_open(report.input.data, report.machine);
	status = run(&report);
	tdestroy(report.tree, free);
	free(report.rows);
	free(report.events);
	tool_symbols_close(report.symbols);
	tool_machine_close(report.machine);
	tool_input_close(&report.input);
	return status;
}

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -",
	 .help = "default perf.data; - is standard input"},
	{'s', "sort", .value = "LIST", .takes = "comm, dso, sym, each at most once, such as comm,sym",
	 .help = "columns of a line, from comm, dso and sym, in this order (default: all)"},
	{'n', "limit", .value = "LINES", .takes = "a number of lines", .max = UINT64_MAX,
	 .help = "at most LINES lines for each event"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"The twenty functions with the most samples:", "perfring report --sort sym --limit 20"},
	{"Of a recording that is not kept:", "perfring record -o - ./program | perfring report -"},
	{0},
};

const struct tool_command tool_report = {
	.name = "report",
	.summary = "samples of a perf.data file by command, object and symbol",
	.usage = "[[-i] FILE] [--sort comm,dso,sym] [--limit LINES]",
	.description =
		"Shows the samples of a perf.data file by command, object and symbol, most first, for each event.  A "
		"sample weighs its period; one of a group ({a,b}:S) is a sample of each event that counted since the "
		"last one.  [.] is user, [k] kernel, [g] guest kernel, [u] guest user, [H] hypervisor, [!] unknown.",
	.options = ROWS,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-record perfring-dump perfring",
	.run = report_command,
};
