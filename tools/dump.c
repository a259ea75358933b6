/* dump.c - `perfring dump`: every record as text, chosen fields of samples, or counts. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/text.h>
#include "machine.h"
#include "symbols.h"
#include "tools.h"
#include "tracepoint.h"

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
	COLUMN_TRACE,
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
	{"trace", COLUMN_TRACE, PERFRING_SAMPLE_RAW},
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
	struct perfring_tracepoints *tracepoints;
	const struct column *chosen[CHOSEN_MOST];
	size_t chosen_count;
	bool raw;
	bool stats;
	bool nanoseconds;
	bool header;
	bool header_only;
	bool lists; /* of the header */
	bool symbolises;
	char *text;
	size_t room;
	struct event_counts *events;
	uint32_t event_room;
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
	printf("usage: perfring dump [[-i] FILE] [-F FIELDS] [--raw] [--stats] [--header [-I]]\n"
	       "\n"
	       "Every record of a perf.data file, stream or directory, in time order, one a line: place in the file,\n"
	       "[size], time, the event's name (samples), then each member and field by its name, {the fields of a\n"
	       "tracepoint}, and (late) when it came after a younger one.\n"
	       "\n"
	       "  -i, --input FILE    default perf.data; - is standard input: a file or a pipe, which is followed\n"
	       "  -F, --fields LIST   samples only, these fields in this order, one blank between them.  What a "
	       "sample\n"
	       "                      does not have is -, blanks inside a field are \\x20.  ip, addr and callchain "
	       "are\n"
	       "                      hexadecimal as in perf script; callchain is ADDR:SYMBOL;... innermost first,\n"
	       "                      iregs and uregs ABI:2;AX:0x1;..., raw its bytes, misc the mode: K U H G g,\n"
	       "                      trace what a tracepoint says, with its blanks when it comes last\n"
	       "      --ns            times of -F with nine digits instead of six\n"
	       "      --header        first what the file says of itself, as perf report --header does\n"
	       "      --header-only   nothing else\n"
	       "  -I                  the header's long lists too\n"
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
		if (columns[i].kind == COLUMN_TRACE && !perfring_tracepoints_are_known()) {
			perfring_tool_complain("dump: field 'trace': built without libtraceevent");
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

/* Numbers are what a dump is made of: printf takes four times as long as all else. */
static char *put_decimal(char *end, uint64_t number, unsigned digits)
{
	for (unsigned i = 0; i < digits || number; i++, number /= 10)
		*--end = (char)('0' + number % 10);
	return end;
}

static void print_decimal(int64_t number)
{
	char room[24], *end = room + sizeof(room);
	char *text = put_decimal(end, number < 0 ? -(uint64_t)number : (uint64_t)number, 1);

	if (number < 0)
		*--text = '-';
	fwrite_unlocked(text, 1, (size_t)(end - text), stdout);
}

static void print_hex(uint64_t number)
{
	char room[16], *end = room + sizeof(room), *text = end;

	do
		*--text = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	fwrite_unlocked(text, 1, (size_t)(end - text), stdout);
}

static void print_time(uint64_t time, bool nanoseconds)
{
	char room[32], *end = room + sizeof(room), *text;

	text = nanoseconds ? put_decimal(end, time % 1000000000, 9) : put_decimal(end, time % 1000000000 / 1000, 6);
	*--text = '.';
	text = put_decimal(text, time / 1000000000, 1);
	fwrite_unlocked(text, 1, (size_t)(end - text), stdout);
}

/* ---- the fields of a tracepoint, behind the record's text ---- */

static void put_char(struct dump *dump, size_t *at, char c)
{
	if (*at + 1 >= dump->room)
		grow(dump, (int64_t)dump->room * 2);
	dump->text[(*at)++] = c;
	dump->text[*at] = 0;
}

static void put_text(struct dump *dump, size_t *at, const char *text)
{
	while (*text)
		put_char(dump, at, *text++);
}

static void put_number(struct dump *dump, size_t *at, uint64_t number, enum perfring_tracepoint_kind kind)
{
	unsigned base = kind == PERFRING_TRACEPOINT_HEX ? 16 : 10;
	char digits[24];
	size_t n = sizeof(digits) - 1;

	if (kind == PERFRING_TRACEPOINT_SIGNED && (int64_t)number < 0) {
		put_char(dump, at, '-');
		number = 0 - number;
	}
	if (base == 16 && number)
		put_text(dump, at, "0x");
	digits[n] = 0;
	do {
		digits[--n] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	put_text(dump, at, digits + n);
}

static void put_value(struct dump *dump, size_t *at, const struct perfring_tracepoint_field *field,
		      const struct perfring_tracepoint_value *value)
{
	int64_t length = field->kind == PERFRING_TRACEPOINT_TEXT ? perfring_tracepoint_text_size(value) : -1;
	static const char hex[] = "0123456789abcdef";

	if (!value->bytes) {
		put_char(dump, at, '?');
		return;
	}
	if (length < 0 && field->kind != PERFRING_TRACEPOINT_TEXT) {
		if (field->is_list)
			put_char(dump, at, '[');
		for (uint32_t i = 0; i < value->count; i++) {
			if (i)
				put_char(dump, at, ' ');
			put_number(dump, at, perfring_tracepoint_number(dump->tracepoints, field, value, i),
				   field->kind);
		}
		if (field->is_list)
			put_char(dump, at, ']');
		return;
	}
	for (uint32_t i = 0; i < (length < 0 ? value->size : (uint32_t)length); i++) {
		bool is_plain = length >= 0 && value->bytes[i] >= 0x20 && value->bytes[i] != '\\';

		if (is_plain) {
			put_char(dump, at, (char)value->bytes[i]);
			continue;
		}
		if (length >= 0)
			put_text(dump, at, "\\x");
		put_char(dump, at, hex[value->bytes[i] >> 4]);
		put_char(dump, at, hex[value->bytes[i] & 15]);
	}
}

static void put_fields(struct dump *dump, size_t at, const struct perfring_item *item, const struct perfring_raw *raw)
{
	const struct perfring_tracepoint *tracepoint = perfring_tracepoints_of(dump->tracepoints, item->format->index);
	struct perfring_tracepoint_value value;
	char before = '{';

	if (!tracepoint)
		return;
	put_char(dump, &at, ' ');
	for (uint32_t i = 0; i < tracepoint->nr; i++) {
		const struct perfring_tracepoint_field *field = &tracepoint->fields[i];

		if (field->is_header)
			continue;
		put_char(dump, &at, before);
		put_text(dump, &at, field->name);
		put_char(dump, &at, '=');
		perfring_tracepoint_value(dump->tracepoints, field, raw, &value);
		put_value(dump, &at, field, &value);
		before = ' ';
	}
	if (before == '{')
		put_char(dump, &at, '{');
	put_char(dump, &at, '}');
}

/* sample is NULL when it is none, or damaged. */
static void print_record(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample)
{
	uint32_t stream = perfring_data_stream(dump->input.data);
	const char *name;
	int64_t length;

	length = perfring_record_text(item->format, item->record, dump->text, dump->room);
	if (length >= 0 && (size_t)length >= dump->room) {
		grow(dump, length);
		length = perfring_record_text(item->format, item->record, dump->text, dump->room);
	}
	if (sample && length >= 0 && (sample->present & PERFRING_SAMPLE_RAW))
		put_fields(dump, (size_t)length, item, &sample->raw);
	if (stream)
		printf("data.%" PRIu32 ":", stream - 1);
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
	fputs(perfring_data_was_late(dump->input.data) ? " (late)\n" : "\n", stdout);
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
		if (!first)
			putchar_unlocked(';');
		print_hex(sample->callchain.words[i]);
		putchar_unlocked(':');
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

static void print_trace(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
			bool is_last)
{
	const char *text = perfring_tracepoints_print(dump->tracepoints, item->format->index, sample);

	perfring_tool_print(stdout, text && *text ? text : "-", 0, !is_last);
}

static void print_column(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
			 const struct column *column, bool is_last)
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
		print_decimal((int32_t)sample->pid);
		break;
	case COLUMN_TID:
		print_decimal((int32_t)sample->tid);
		break;
	case COLUMN_TIME:
		print_time(sample->time, dump->nanoseconds);
		break;
	case COLUMN_CPU:
		print_decimal((int32_t)sample->cpu);
		break;
	case COLUMN_EVENT:
		name = perfring_data_event_name(dump->input.data, item->format->index);
		perfring_tool_print(stdout, name ? name : "?", 0, true);
		break;
	case COLUMN_IP:
		print_hex(sample->ip);
		break;
	case COLUMN_ADDR:
		print_hex(sample->addr);
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
	case COLUMN_TRACE:
		print_trace(dump, item, sample, is_last);
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
			putchar_unlocked(' ');
		print_column(dump, item, sample, dump->chosen[i], i + 1 == dump->chosen_count);
	}
	putchar_unlocked('\n');
}

/* ---- --stats ---- */

/* A stream may tell of more events as it goes. */
static struct event_counts *counts_of(struct dump *dump, uint32_t index)
{
	if (index >= dump->event_room) {
		dump->events = perfring_tool_room(dump->events, (size_t)index + 16, sizeof(*dump->events));
		memset(dump->events + dump->event_room, 0, (index + 16 - dump->event_room) * sizeof(*dump->events));
		dump->event_room = index + 16;
	}
	return &dump->events[index];
}

static void count(struct dump *dump, const struct perfring_item *item, const struct perfring_record *record)
{
	uint32_t type = item->record->type;

	dump->records++;
	dump->counts[type < TYPES ? type : TYPES]++;
	if (type == PERFRING_RECORD_SAMPLE && item->format)
		counts_of(dump, item->format->index)->samples++;
	if (record && type == PERFRING_RECORD_LOST)
		dump->lost += record->is.lost.lost;
	if (record && type == PERFRING_RECORD_LOST_SAMPLES && item->format)
		counts_of(dump, item->format->index)->lost += record->is.lost_samples.lost;
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
	for (i = 0; i < events && i < dump->event_room; i++) {
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
		print_record(dump, item, is_sample && whole ? &sample : NULL);
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

	while (!ferror(stdout) && perfring_input_next(&dump->input, &item)) {
		take(dump, &item);
		if (perfring_input_is_idle(&dump->input))
			fflush(stdout);
	}
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
		{"header", no_argument, NULL, 'H'},
		{"header-only", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct dump dump = {.room = 1 << 16};
	const char *path = NULL;
	int found, status;

	opterr = 0;
	while ((found = getopt_long(argc, argv, ":i:F:Ih", options, NULL)) != -1) {
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
		case 'o':
			dump.header_only = true;
			/* fallthrough */
		case 'H':
			dump.header = true;
			break;
		case 'I':
			dump.lists = true;
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
	if (dump.header)
		perfring_header_print(dump.input.data, dump.input.path, dump.lists);
	if (dump.header_only) {
		perfring_input_close(&dump.input);
		return perfring_tool_flush() ? PERFRING_TOOL_DONE : PERFRING_TOOL_FAILED;
	}
	dump.text = perfring_tool_room(NULL, dump.room, 1);
	dump.machine = perfring_machine_open();
	dump.symbols = perfring_symbols_open(dump.input.data, dump.machine);
	dump.tracepoints = perfring_tracepoints_open(dump.input.data, dump.symbols);
	status = run(&dump);
	perfring_tracepoints_close(dump.tracepoints);
	perfring_symbols_close(dump.symbols);
	perfring_machine_close(dump.machine);
	perfring_input_close(&dump.input);
	free(dump.events);
	free(dump.text);
	return status;
}
