/* dump.c - `perfring dump`: every record as text, chosen fields of samples, or counts. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/text.h>
#include "machine.h"
#include "symbols.h"
#include "tools.h"

/* Columns of -F that are no field of a sample, or are shown otherwise than text.h does. */
enum column_kind {
	COLUMN_FIELD,
	COLUMN_COMM,
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_TIME,
	COLUMN_CPU,
	COLUMN_EVENT,
	COLUMN_IP,
	COLUMN_ADDR,
	COLUMN_PERIOD,
	COLUMN_SYM,
	COLUMN_SYMOFF,
	COLUMN_DSO,
	COLUMN_CALLCHAIN,
	COLUMN_MISC,
	COLUMN_WEIGHT,
	COLUMN_INS_LAT,
	COLUMN_IREGS,
	COLUMN_UREGS,
	COLUMN_RAW,
};

static const struct column {
	const char *name;
	enum column_kind kind;
	uint64_t field;
} columns[] = {
	{"comm", COLUMN_COMM, PERFRING_SAMPLE_TID},
	{"pid", COLUMN_PID, PERFRING_SAMPLE_TID},
	{"tid", COLUMN_TID, PERFRING_SAMPLE_TID},
	{"time", COLUMN_TIME, PERFRING_SAMPLE_TIME},
	{"cpu", COLUMN_CPU, PERFRING_SAMPLE_CPU},
	{"event", COLUMN_EVENT, 0},
	{"ip", COLUMN_IP, PERFRING_SAMPLE_IP},
	{"sym", COLUMN_SYM, PERFRING_SAMPLE_IP},
	{"symoff", COLUMN_SYMOFF, PERFRING_SAMPLE_IP},
	{"dso", COLUMN_DSO, PERFRING_SAMPLE_IP},
	{"period", COLUMN_PERIOD, 0},
	{"addr", COLUMN_ADDR, PERFRING_SAMPLE_ADDR},
	{"callchain", COLUMN_CALLCHAIN, PERFRING_SAMPLE_CALLCHAIN},
	{"misc", COLUMN_MISC, 0},
	{"weight", COLUMN_WEIGHT, 0},
	{"ins_lat", COLUMN_INS_LAT, PERFRING_SAMPLE_WEIGHT_STRUCT},
	{"iregs", COLUMN_IREGS, PERFRING_SAMPLE_REGS_INTR},
	{"uregs", COLUMN_UREGS, PERFRING_SAMPLE_REGS_USER},
	{"raw", COLUMN_RAW, PERFRING_SAMPLE_RAW},
/* The fields above are in fields.def too; the first of a name is taken. */
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) {script, COLUMN_FIELD, PERFRING_SAMPLE_##NAME},
#include <perfring/fields.def>
};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))
#define CHOSEN_MOST 64
#define TYPES 128 /* kinds counted one by one: more than there are */

struct event_counts {
	uint64_t samples;
	uint64_t lost;
};

struct dump {
	struct perfring_input input;
	struct perfring_machine *machine;
	struct perfring_symbols *symbols;
	const struct column *chosen[CHOSEN_MOST];
	size_t chosen_count;
	bool raw;
	bool stats;
	bool nanoseconds;
	bool symbolises;
	char *text;
	size_t room;
	struct event_counts *events;
	uint64_t records;
	uint64_t counts[TYPES + 1];
	uint64_t lost;
	bool seen[PERFRING_NAMELESS_COUNT];
	/* of the sample being shown */
	struct perfring_symbol symbol;
};

static bool is_listed(size_t i)
{
	size_t j;

	for (j = 0; j < i && strcmp(columns[j].name, columns[i].name); j++)
		;
	return j == i;
}

static void list_columns(char *text, size_t size)
{
	size_t i, at = 0;

	for (i = 0; i < COLUMN_COUNT && at < size; i++)
		if (is_listed(i))
			at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " " : "", columns[i].name);
}

static void help(void)
{
	char names[1024];

	list_columns(names, sizeof(names));
	printf("usage: perfring dump [[-i] FILE] [-F FIELDS] [--raw] [--stats]\n"
	       "\n"
	       "Every record of a perf.data file, in time order, one a line: place in the file, [size], time, the\n"
	       "event's name (samples), then each member and field by its name.\n"
	       "\n"
	       "  -i, --input FILE    default perf.data; - is standard input, redirected from a file\n"
	       "  -F, --fields LIST   samples only, these fields in this order, one blank between them.  What a "
	       "sample\n"
	       "                      does not have is -, blanks inside a field are \\x20.  ip, addr and callchain "
	       "are\n"
	       "                      hexadecimal as in perf script; callchain is ADDR:SYMBOL;... innermost first,\n"
	       "                      iregs and uregs ABI:2;AX:0x1;..., raw its bytes, misc the mode: K U H G g\n"
	       "      --ns            times of -F with nine digits instead of six\n"
	       "      --raw           the bytes of each record too\n"
	       "      --stats         only how many records there are, by kind and by event\n"
	       "\n"
	       "fields: %s\n"
	       "\n"
	       "Exit status: 0 done, 1 the file has faults or is not to be read, 2 misused.\n",
	       names);
}

static bool choose(struct dump *dump, char *list)
{
	char names[1024], *word, *rest;
	size_t i;

	for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		for (i = 0; i < COLUMN_COUNT && strcmp(word, columns[i].name); i++)
			;
		if (i == COLUMN_COUNT) {
			list_columns(names, sizeof(names));
			perfring_tool_complain("dump: unknown field '%s'; there are: %s", word, names);
			return false;
		}
		if (dump->chosen_count == CHOSEN_MOST) {
			perfring_tool_complain("dump: more than %d fields", CHOSEN_MOST);
			return false;
		}
		dump->chosen[dump->chosen_count++] = &columns[i];
		dump->symbolises =
			dump->symbolises || (columns[i].kind >= COLUMN_SYM && columns[i].kind <= COLUMN_CALLCHAIN);
	}
	if (!dump->chosen_count)
		perfring_tool_complain("dump: -F names no field");
	return dump->chosen_count;
}

/* ---- one line a record ---- */

static void grow(struct dump *dump, int64_t length)
{
	if (length < 0 || (size_t)length < dump->room)
		return;
	dump->room = (size_t)length + 1;
	dump->text = perfring_tool_room(dump->text, dump->room, 1);
}

static void print_time(uint64_t time, bool nanoseconds)
{
	if (nanoseconds)
		printf("%" PRIu64 ".%09" PRIu64, time / 1000000000, time % 1000000000);
	else
		printf("%" PRIu64 ".%06" PRIu64, time / 1000000000, time % 1000000000 / 1000);
}

static void print_record(struct dump *dump, const struct perfring_item *item)
{
	const char *name;
	int64_t length;

	length = perfring_record_text(item->format, item->record, dump->text, dump->room);
	if (length >= 0 && (size_t)length >= dump->room) {
		grow(dump, length);
		length = perfring_record_text(item->format, item->record, dump->text, dump->room);
	}
	printf("0x%" PRIx64 " [0x%x] ", (uint64_t)perfring_data_position(dump->input.data), item->record->size);
	if (item->time)
		print_time(item->time, true);
	else
		putchar('-');
	if (item->record->type == PERFRING_RECORD_SAMPLE && item->format) {
		name = perfring_data_event_name(dump->input.data, item->format->index);
		putchar(' ');
		perfring_tool_print(stdout, name ? name : "?", 0, true);
	}
	putchar(' ');
	fputs(length < 0 ? strerror((int)-length) : dump->text, stdout);
	putchar('\n');
}

/* ---- -F ---- */

static void print_symbol(const struct perfring_symbol *symbol)
{
	perfring_tool_print(stdout, symbol->name ? symbol->name : "[unknown]", 0, true);
}

static void find(struct dump *dump, unsigned cpumode, uint32_t pid, uint64_t ip, struct perfring_symbol *symbol)
{
	perfring_symbols_find(dump->symbols, cpumode, pid, ip, symbol);
	dump->seen[symbol->nameless] = true;
}

static void print_chain(struct dump *dump, const struct perfring_sample *sample)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct perfring_symbol symbol;
	bool first = true;
	uint64_t i;

	for (i = 0; i < sample->callchain.nr; i++) {
		if (!perfring_symbols_frame(sample->callchain.words[i], &cpumode))
			continue;
		/* Frames but the first are return addresses: the call stands before them.  Where nothing does, it is
		 * none. */
		find(dump, cpumode, sample->pid, sample->callchain.words[i] - !first, &symbol);
		if (!symbol.name && !first)
			find(dump, cpumode, sample->pid, sample->callchain.words[i], &symbol);
		printf("%s%" PRIx64 ":", first ? "" : ";", sample->callchain.words[i]);
		print_symbol(&symbol);
		first = false;
	}
	if (first)
		putchar('-');
}

static void print_field(struct dump *dump, const struct perfring_sample *sample, uint64_t field)
{
	int64_t length = perfring_field_text(sample, field, dump->text, dump->room);

	if (length >= 0 && (size_t)length >= dump->room) {
		grow(dump, length);
		length = perfring_field_text(sample, field, dump->text, dump->room);
	}
	perfring_tool_print(stdout, length < 0 || !*dump->text ? "-" : dump->text, 0, true);
}

/* The mode the CPU was in, by perf's letters. */
static char mode_of(uint16_t misc)
{
	static const char letters[] = {
		[PERFRING_RECORD_MISC_KERNEL] = 'K',     [PERFRING_RECORD_MISC_USER] = 'U',
		[PERFRING_RECORD_MISC_HYPERVISOR] = 'H', [PERFRING_RECORD_MISC_GUEST_KERNEL] = 'G',
		[PERFRING_RECORD_MISC_GUEST_USER] = 'g', [PERFRING_RECORD_MISC_CPUMODE_MASK] = 0,
	};
	char letter = letters[misc & PERFRING_RECORD_MISC_CPUMODE_MASK];

	return letter ? letter : '-';
}

/* The first of the three numbers of a WEIGHT_STRUCT is what WEIGHT alone holds. */
static void print_weight(const struct perfring_sample *sample)
{
	if (sample->present & PERFRING_SAMPLE_WEIGHT)
		printf("%" PRIu64, sample->weight);
	else if (sample->present & PERFRING_SAMPLE_WEIGHT_STRUCT)
		printf("%" PRIu32, sample->weight_struct.var1);
	else
		putchar('-');
}

static void print_registers(const struct perfring_regs *regs)
{
	uint64_t mask = regs->mask;
	const char *name;
	uint32_t i, bit;

	printf("ABI:%" PRIu64, regs->abi);
	for (i = 0; i < regs->nr; i++, mask &= mask - 1) {
		bit = (uint32_t)__builtin_ctzll(mask);
		name = perfring_register_name(regs->arch, bit);
		if (name)
			printf(";%s:0x%" PRIx64, name, regs->values[i]);
		else
			printf(";%" PRIu32 ":0x%" PRIx64, bit, regs->values[i]);
	}
}

static void print_raw(const struct perfring_raw *raw)
{
	const unsigned char *bytes = raw->data;
	uint32_t i;

	for (i = 0; i < raw->size; i++)
		printf("%02x", bytes[i]);
	if (!raw->size)
		putchar('-');
}

static void print_column(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
			 const struct column *column)
{
	const struct perfring_symbol *symbol = &dump->symbol;
	const char *name;

	if ((sample->present & column->field) != column->field) {
		putchar('-');
		return;
	}
	switch (column->kind) {
	case COLUMN_COMM:
		perfring_tool_print(stdout, perfring_machine_comm(dump->machine, sample->tid), 0, true);
		break;
	case COLUMN_PID:
		printf("%" PRId32, (int32_t)sample->pid);
		break;
	case COLUMN_TID:
		printf("%" PRId32, (int32_t)sample->tid);
		break;
	case COLUMN_TIME:
		print_time(sample->time, dump->nanoseconds);
		break;
	case COLUMN_CPU:
		printf("%" PRId32, (int32_t)sample->cpu);
		break;
	case COLUMN_EVENT:
		name = perfring_data_event_name(dump->input.data, item->format->index);
		perfring_tool_print(stdout, name ? name : "?", 0, true);
		break;
	case COLUMN_IP:
		printf("%" PRIx64, sample->ip);
		break;
	case COLUMN_ADDR:
		printf("%" PRIx64, sample->addr);
		break;
	case COLUMN_PERIOD:
		printf("%" PRIu64, perfring_input_period(&dump->input, item, sample));
		break;
	case COLUMN_SYM:
		print_symbol(symbol);
		break;
	case COLUMN_SYMOFF:
		print_symbol(symbol);
		if (symbol->name)
			printf("+0x%" PRIx64, symbol->offset);
		break;
	case COLUMN_DSO:
		perfring_tool_print(stdout, symbol->object ? symbol->object : "[unknown]", 0, true);
		break;
	case COLUMN_CALLCHAIN:
		print_chain(dump, sample);
		break;
	case COLUMN_MISC:
		putchar(mode_of(sample->misc));
		break;
	case COLUMN_WEIGHT:
		print_weight(sample);
		break;
	case COLUMN_INS_LAT:
		printf("%" PRIu16, sample->weight_struct.var2);
		break;
	case COLUMN_IREGS:
		print_registers(&sample->regs_intr);
		break;
	case COLUMN_UREGS:
		print_registers(&sample->regs_user);
		break;
	case COLUMN_RAW:
		print_raw(&sample->raw);
		break;
	case COLUMN_FIELD:
		print_field(dump, sample, column->field);
		break;
	}
}

static void print_sample(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample)
{
	size_t i;

	if (dump->symbolises && (sample->present & PERFRING_SAMPLE_IP))
		find(dump, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
		     sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0, sample->ip, &dump->symbol);
	for (i = 0; i < dump->chosen_count; i++) {
		if (i)
			putchar(' ');
		print_column(dump, item, sample, dump->chosen[i]);
	}
	putchar('\n');
}

/* ---- --stats ---- */

static void count(struct dump *dump, const struct perfring_item *item, const struct perfring_record *record)
{
	uint32_t type = item->record->type;

	dump->records++;
	dump->counts[type < TYPES ? type : TYPES]++;
	if (type == PERFRING_RECORD_SAMPLE && item->format)
		dump->events[item->format->index].samples++;
	if (record && type == PERFRING_RECORD_LOST)
		dump->lost += record->is.lost.lost;
	if (record && type == PERFRING_RECORD_LOST_SAMPLES && item->format)
		dump->events[item->format->index].lost += record->is.lost_samples.lost;
}

static void print_count(const char *name, uint64_t nr, uint64_t of)
{
	printf("%16s events: %10" PRIu64, name, nr);
	if (of)
		printf("  (%4.1f%%)", 100.0 * (double)nr / (double)of);
	putchar('\n');
}

static void print_stats(const struct dump *dump)
{
	uint32_t events = perfring_format_set_count(perfring_data_formats(dump->input.data)), i;
	const char *name;
	char number[24];

	printf("\nAggregated stats:\n");
	print_count("TOTAL", dump->records, 0);
	for (i = 0; i < TYPES; i++) {
		name = perfring_record_name(i);
		snprintf(number, sizeof(number), "RECORD_%" PRIu32, i);
		if (dump->counts[i])
			print_count(name ? name : number, dump->counts[i], dump->records);
	}
	if (dump->counts[TYPES])
		print_count("UNKNOWN", dump->counts[TYPES], dump->records);
	if (dump->lost)
		printf("%16s records: %9" PRIu64 "\n", "lost", dump->lost);
	/* As perf: an event that nothing happened to is not shown, and LOST_SAMPLES is what was lost, not how many
	 * records say so. */
	for (i = 0; i < events; i++) {
		if (!dump->events[i].samples && !dump->events[i].lost)
			continue;
		name = perfring_data_event_name(dump->input.data, i);
		perfring_tool_print(stdout, name ? name : "?", 0, false);
		printf(" stats:\n");
		if (dump->events[i].samples)
			print_count("SAMPLE", dump->events[i].samples, 0);
		if (dump->events[i].lost)
			print_count("LOST_SAMPLES", dump->events[i].lost, 0);
	}
}

/* ---- the walk ---- */

static void take(struct dump *dump, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	struct perfring_record record;
	struct perfring_sample sample;
	bool is_sample = item->record->type == PERFRING_RECORD_SAMPLE;
	bool whole = false;

	if (!is_sample)
		whole = !perfring_record_decode(item->format, item->record, &record, &fault);
	else if (item->format)
		whole = !perfring_sample_decode(item->format, item->record, &sample, &fault);
	if (dump->stats)
		count(dump, item, whole && !is_sample ? &record : NULL);
	else if (!dump->chosen_count)
		print_record(dump, item);
	else if (is_sample && whole)
		print_sample(dump, item, &sample);
	else if (!is_sample && whole)
		perfring_machine_take(dump->machine, &record);
	if (dump->raw && (!dump->chosen_count || (is_sample && whole)))
		perfring_tool_print_bytes(item->record);
	if (!whole && fault.what)
		perfring_input_fault(&dump->input, &fault);
}

static void complain_nameless(const struct dump *dump, enum perfring_nameless nameless)
{
	if (dump->seen[nameless])
		perfring_tool_complain("%s: warning: %s", dump->input.path,
				       perfring_symbols_why(dump->symbols, nameless));
}

static int run(struct dump *dump)
{
	struct perfring_item item;

	while (!ferror(stdout) && perfring_input_next(&dump->input, &item))
		take(dump, &item);
	if (dump->stats)
		print_stats(dump);
	if (!perfring_tool_flush())
		return PERFRING_TOOL_FAILED;
	complain_nameless(dump, PERFRING_NAMELESS_KERNEL);
	complain_nameless(dump, PERFRING_NAMELESS_LIBDW);
	return perfring_input_end(&dump->input);
}

int perfring_tool_dump(int argc, char **argv)
{
	static const struct option options[] = {
		{"input", required_argument, NULL, 'i'},
		{"fields", required_argument, NULL, 'F'},
		{"raw", no_argument, NULL, 'r'},
		{"stats", no_argument, NULL, 's'},
		{"ns", no_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct dump dump = {.room = 1 << 16};
	const char *path = NULL;
	uint32_t events;
	int found, status;

	opterr = 0;
	while ((found = getopt_long(argc, argv, ":i:F:h", options, NULL)) != -1) {
		switch (found) {
		case 'i':
			path = optarg;
			break;
		case 'F':
			if (!choose(&dump, optarg))
				return PERFRING_TOOL_MISUSED;
			break;
		case 'r':
			dump.raw = true;
			break;
		case 's':
			dump.stats = true;
			break;
		case 'n':
			dump.nanoseconds = true;
			break;
		case 'h':
			help();
			return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
		default:
			return perfring_tool_misused(found, argv);
		}
	}
	if (dump.stats && (dump.raw || dump.chosen_count)) {
		perfring_tool_complain("dump: --stats stands alone, without -F and --raw");
		return PERFRING_TOOL_MISUSED;
	}
	status = perfring_input_open(&dump.input, path, argc, argv, optind);
	if (status)
		return status;
	dump.text = perfring_tool_room(NULL, dump.room, 1);
	events = perfring_format_set_count(perfring_data_formats(dump.input.data));
	dump.events = perfring_tool_room(NULL, events + 1, sizeof(*dump.events));
	memset(dump.events, 0, (events + 1) * sizeof(*dump.events));
	dump.machine = perfring_machine_open();
	dump.symbols = perfring_symbols_open(dump.input.data, dump.machine);
	status = run(&dump);
	perfring_symbols_close(dump.symbols);
	perfring_machine_close(dump.machine);
	perfring_input_close(&dump.input);
	free(dump.events);
	free(dump.text);
	return status;
}
