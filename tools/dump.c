/* dump.c - `perfring dump`: every record as text, chosen fields of samples, or counts.
 *
 * One pass over the file by input.c: text.h makes the text of a record, tracepoint_format.c that of tracepoints' fields, symbol_names.c the
 * names of --symbols.  Output is gathered in out.h.  Columns of -F are rows of a table here or of fields.def.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <perfring/text.h>
#include "options.h"
#include "machine.h"
#include "out.h"
#include "progress.h"
#include "record_counts.h"
#include "symbol_names.h"
#include "tools.h"
#include "tracepoint_format.h"

/* Columns of -F that are not fields of a sample, or whose text differs from text.h's. */
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
#define LINE 4096 /* bytes of most of them */

struct dump {
	struct tool_input input;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct tool_tracepoints *tracepoints;
	const struct column *chosen[CHOSEN_MOST];
	size_t chosen_count;
	bool raw;
	bool stats;
	bool nanoseconds;
	bool header;
	bool header_only;
	bool lists; /* of the header */
	bool symbolises;
	char *field; /* a copy of one */
	struct tool_counts counts;
	bool seen[PERFRING_NAMELESS_COUNT];
	/* of the sample being shown */
	struct perfring_name symbol;
};

static bool is_listed(size_t i)
{
	size_t j;

	for (j = 0; j < i && strcmp(columns[j].name, columns[i].name); j++)
		;
	return j == i;
}

/* The i-th column that -F can name. */
static const char *column_name(size_t i)
{
	for (size_t j = 0; j < COLUMN_COUNT; j++)
		if (is_listed(j) && !i--)
			return columns[j].name;
	return NULL;
}

static void list_columns(char *text, size_t size)
{
	const char *name;
	size_t at = 0;

	for (size_t i = 0; at < size && (name = column_name(i)); i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " " : "", name);
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
			tool_complain("dump: unknown field '%s': the fields are %s", word, names);
			return false;
		}
		if (dump->chosen_count == CHOSEN_MOST) {
			tool_complain("dump: more than %d fields", CHOSEN_MOST);
			return false;
		}
		if (columns[i].kind == COLUMN_TRACE && !tool_tracepoints_are_known()) {
			tool_complain("dump: field 'trace': this perfring was built without libtraceevent");
			return false;
		}
		dump->chosen[dump->chosen_count++] = &columns[i];
		dump->symbolises =
			dump->symbolises || (columns[i].kind >= COLUMN_SYM && columns[i].kind <= COLUMN_CALLCHAIN);
	}
	if (!dump->chosen_count)
		tool_complain("dump: -F names no field");
	return dump->chosen_count;
}

/* ---- the fields of a tracepoint, after the record's text ---- */

static void print_number(uint64_t number, enum tool_tracepoint_kind kind)
{
	if (kind == TOOL_TRACEPOINT_SIGNED) {
		tool_out_signed((int64_t)number);
	} else if (kind == TOOL_TRACEPOINT_HEX) {
		if (number)
			tool_out_text("0x");
		tool_out_hex(number);
	} else {
		tool_out_decimal(number);
	}
}

static void print_value(struct dump *dump, const struct tool_tracepoint_field *field,
			const struct tool_tracepoint_value *value)
{
	int64_t length = field->kind == TOOL_TRACEPOINT_TEXT ? tool_tracepoint_text_size(value) : -1;
	static const char hex[] = "0123456789abcdef";

	if (!value->bytes) {
		tool_out_char('?');
		return;
	}
	if (length < 0 && field->kind != TOOL_TRACEPOINT_TEXT) {
		if (field->is_list)
			tool_out_char('[');
		for (uint32_t i = 0; i < value->count; i++) {
			if (i)
				tool_out_char(' ');
			print_number(tool_tracepoint_number(dump->tracepoints, field, value, i), field->kind);
		}
		if (field->is_list)
			tool_out_char(']');
		return;
	}
	for (uint32_t i = 0; i < (length < 0 ? value->size : (uint32_t)length); i++) {
		if (length >= 0 && value->bytes[i] != '\\') {
			tool_out.at += tool_escape(tool_out_space(4), value->bytes[i], false);
			continue;
		}
		if (length >= 0)
			tool_out_text("\\x");
		tool_out_char(hex[value->bytes[i] >> 4]);
		tool_out_char(hex[value->bytes[i] & 15]);
	}
}

static void print_fields(struct dump *dump, const struct perfring_item *item, const struct perfring_raw *raw)
{
	const struct tool_tracepoint *tracepoint = tool_tracepoints_of(dump->tracepoints, item->format->index);
	struct tool_tracepoint_value value;
	char before = '{';

	if (!tracepoint)
		return;
	tool_out_char(' ');
	for (uint32_t i = 0; i < tracepoint->nr; i++) {
		const struct tool_tracepoint_field *field = &tracepoint->fields[i];

		if (field->is_header)
			continue;
		tool_out_char(before);
		tool_out_print(field->name, true);
		tool_out_char('=');
		tool_tracepoint_value(dump->tracepoints, field, raw, &value);
		print_value(dump, field, &value);
		before = ' ';
	}
	if (before == '{')
		tool_out_char('{');
	tool_out_char('}');
}

/* ---- one line a record ---- */

/* Appends the output of a function like snprintf; grows the space and calls it again if it was too small. */
#define PRINT_TEXT(length, function, ...) \
	do { \
		char *buffer_ = tool_out_space(LINE); \
\
		(length) = function(__VA_ARGS__, buffer_, tool_out.capacity - tool_out.at); \
		if ((length) >= 0 && (size_t)(length) >= tool_out.capacity - tool_out.at) { \
			buffer_ = tool_out_space((size_t)(length) + 1); \
			(length) = function(__VA_ARGS__, buffer_, tool_out.capacity - tool_out.at); \
		} \
	} while (0)

/* sample and record: what was decoded, or NULL. */
static void print_record(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
			 const struct perfring_record *record)
{
	uint32_t stream = perfring_file_part(dump->input.data);
	const char *name;
	int64_t length;

	if (stream) {
		tool_out_text("data.");
		tool_out_decimal(stream - 1);
		tool_out_char(':');
	}
	tool_out_text("0x");
	tool_out_hex((uint64_t)perfring_file_position(dump->input.data));
	tool_out_text(" [0x");
	tool_out_hex(item->record->size);
	tool_out_text("] ");
	if (item->time)
		tool_out_time(item->time, true);
	else
		tool_out_char('-');
	tool_out_char(' ');
	if (item->record->type == PERFRING_RECORD_SAMPLE && item->format) {
		name = perfring_file_event_name(dump->input.data, item->format->index);
		tool_out_print(name ? name : "?", true);
		tool_out_char(' ');
	}
	if (sample)
		PRINT_TEXT(length, perfring_sample_text, sample);
	else if (record)
		PRINT_TEXT(length, perfring_record_decoded_text, record, item->record);
	else
		PRINT_TEXT(length, perfring_record_text, item->format, item->record);
	if (length < 0)
		tool_out_text(strerror((int)-length));
	else
		tool_out.at += (size_t)length;
	if (sample && length >= 0 && (sample->present & PERFRING_SAMPLE_RAW))
		print_fields(dump, item, &sample->raw);
	if (perfring_file_was_late(dump->input.data))
		tool_out_text(" (late)");
	tool_out_char('\n');
}

/* ---- -F ---- */

static void print_symbol(const struct perfring_name *symbol)
{
	tool_out_print(symbol->name ? symbol->name : "[unknown]", true);
}

static void find(struct dump *dump, unsigned cpumode, uint32_t pid, uint64_t ip, struct perfring_name *symbol)
{
	tool_symbols_find(dump->symbols, cpumode, pid, ip, symbol);
	dump->seen[symbol->nameless] = true;
}

static void print_chain(struct dump *dump, const struct perfring_sample *sample)
{
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct perfring_list chain;
	struct perfring_name symbol;
	bool first = true, calls = tool_symbols_chain(dump->symbols, sample, UINT64_MAX, &chain);

	for (uint64_t i = 0; i < chain.nr; i++) {
		uint64_t ip = chain.words[i];
		bool is_return = !first && !(calls && cpumode == PERFRING_RECORD_MISC_USER);

		if (!perfring_stacks_frame(ip, &cpumode))
			continue;
		/* Frames but the first are return addresses: the call stands before them.  Where nothing does, it is
		 * none. */
		find(dump, cpumode, sample->pid, ip - is_return, &symbol);
		if (!symbol.name && is_return)
			find(dump, cpumode, sample->pid, ip, &symbol);
		if (!first)
			tool_out_char(';');
		tool_out_hex(ip);
		tool_out_char(':');
		print_symbol(&symbol);
		first = false;
	}
	if (first)
		tool_out_char('-');
}

static void print_field(struct dump *dump, const struct perfring_sample *sample, uint64_t field)
{
	size_t begun;
	int64_t length;

	PRINT_TEXT(length, perfring_field_text, sample, field);
	if (length <= 0) {
		tool_out_char('-');
		return;
	}
	/* a text with blanks is copied, so that they can be escaped and the column stays one */
	begun = tool_out.at;
	if (!memchr(tool_out.text + begun, ' ', (size_t)length)) {
		tool_out.at += (size_t)length;
		return;
	}
	dump->field = tool_allocate(dump->field, (size_t)length + 1, 1);
	memcpy(dump->field, tool_out.text + begun, (size_t)length + 1);
	tool_out_print(dump->field, true);
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
		tool_out_decimal(sample->weight);
	else if (sample->present & PERFRING_SAMPLE_WEIGHT_STRUCT)
		tool_out_decimal(sample->weight_struct.var1);
	else
		tool_out_char('-');
}

static void print_registers(const struct perfring_regs *regs)
{
	uint64_t mask = regs->mask;
	const char *name;
	uint32_t i, bit;

	tool_out_text("ABI:");
	tool_out_decimal(regs->abi);
	for (i = 0; i < regs->nr; i++, mask &= mask - 1) {
		bit = (uint32_t)__builtin_ctzll(mask);
		name = perfring_register_name(regs->arch, bit);
		tool_out_char(';');
		if (name)
			tool_out_text(name);
		else
			tool_out_decimal(bit);
		tool_out_text(":0x");
		tool_out_hex(regs->values[i]);
	}
}

static void print_raw(const struct perfring_raw *raw)
{
	const unsigned char *bytes = raw->data;
	uint32_t i;

	for (i = 0; i < raw->size; i++) {
		tool_out_char("0123456789abcdef"[bytes[i] >> 4]);
		tool_out_char("0123456789abcdef"[bytes[i] & 15]);
	}
	if (!raw->size)
		tool_out_char('-');
}

static void print_trace(struct dump *dump, const struct perfring_item *item, const struct perfring_sample *sample,
			bool is_last)
{
	const char *text = tool_tracepoints_print(dump->tracepoints, item->format->index, sample);

	tool_out_print(text && *text ? text : "-", !is_last);
}

/* format: of the event that this sample is shown for, one of the item's group. */
static void print_column(struct dump *dump, const struct perfring_item *item, const struct perfring_format *format,
			 const struct perfring_sample *sample, const struct column *column, bool is_last)
{
	const struct perfring_name *symbol = &dump->symbol;
	const char *name;

	if ((sample->present & column->field) != column->field) {
		tool_out_char('-');
		return;
	}
	switch (column->kind) {
	case COLUMN_COMM:
		tool_out_print(tool_machine_comm(dump->machine, sample->tid), true);
		break;
	case COLUMN_PID:
		tool_out_signed((int32_t)sample->pid);
		break;
	case COLUMN_TID:
		tool_out_signed((int32_t)sample->tid);
		break;
	case COLUMN_TIME:
		tool_out_time(sample->time, dump->nanoseconds);
		break;
	case COLUMN_CPU:
		tool_out_signed((int32_t)sample->cpu);
		break;
	case COLUMN_EVENT:
		name = perfring_file_event_name(dump->input.data, format->index);
		tool_out_print(name ? name : "?", true);
		break;
	case COLUMN_IP:
		tool_out_hex(sample->ip);
		break;
	case COLUMN_ADDR:
		tool_out_hex(sample->addr);
		break;
	case COLUMN_PERIOD:
		tool_out_decimal(tool_input_period(&dump->input, format, sample));
		break;
	case COLUMN_SYM:
		print_symbol(symbol);
		break;
	case COLUMN_SYMOFF:
		print_symbol(symbol);
		if (symbol->name) {
			tool_out_text("+0x");
			tool_out_hex(symbol->offset);
		}
		break;
	case COLUMN_DSO:
		tool_out_print(symbol->object ? symbol->object : "[unknown]", true);
		break;
	case COLUMN_CALLCHAIN:
		print_chain(dump, sample);
		break;
	case COLUMN_MISC:
		tool_out_char(mode_of(sample->misc));
		break;
	case COLUMN_WEIGHT:
		print_weight(sample);
		break;
	case COLUMN_INS_LAT:
		tool_out_decimal(sample->weight_struct.var2);
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

static void print_sample(struct dump *dump, const struct perfring_item *item, const struct perfring_format *format,
			 const struct perfring_sample *sample)
{
	size_t i;

	if (dump->symbolises && (sample->present & PERFRING_SAMPLE_IP))
		find(dump, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK,
		     sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0, sample->ip, &dump->symbol);
	for (i = 0; i < dump->chosen_count; i++) {
		if (i)
			tool_out_char(' ');
		print_column(dump, item, format, sample, dump->chosen[i], i + 1 == dump->chosen_count);
	}
	tool_out_char('\n');
}

/* ---- the walk ---- */

/* Shows a sample once for each event of its group. */
static void take_sample(struct dump *dump, const struct perfring_item *item, struct perfring_sample *sample)
{
	const struct perfring_format *format;
	bool more;

	tool_symbols_advance(dump->symbols, item->time);
	for (more = tool_input_event(&dump->input, item->format, sample, &format); more;
	     more = tool_input_more(&dump->input, &format))
		print_sample(dump, item, format, sample);
}

static void take_record(struct dump *dump, const struct perfring_record *record)
{
	tool_symbols_learn(dump->symbols, record);
}

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
	if (!dump->chosen_count)
		print_record(dump, item, is_sample && whole ? &sample : NULL, !is_sample && whole ? &record : NULL);
	else if (!is_sample && whole)
		take_record(dump, &record);
	if (is_sample && whole && dump->chosen_count)
		take_sample(dump, item, &sample);
	if (dump->raw && (!dump->chosen_count || (is_sample && whole)))
		tool_print_bytes(item->record);
	if (!whole && fault.what)
		tool_input_fault(&dump->input, &fault);
}

static void complain_nameless(const struct dump *dump, enum perfring_nameless nameless)
{
	if (dump->seen[nameless])
		tool_complain("%s: warning: %s", dump->input.path, tool_symbols_why(dump->symbols, nameless));
}

static int run(struct dump *dump)
{
	struct perfring_item item;

	tool_progress_begin(&dump->input, "dump", dump->stats ? 0 : TOOL_PROGRESS_LINES);
	while (!ferror(stdout) && tool_input_next(&dump->input, &item)) {
		if (dump->stats)
			tool_counts_take(&dump->counts, &dump->input, &item);
		else
			take(dump, &item);
		if (tool_input_is_idle(&dump->input))
			tool_flush();
	}
	if (dump->stats)
		tool_counts_print(&dump->counts, dump->input.data);
	if (!tool_flush())
		return TOOL_FAILED;
	complain_nameless(dump, PERFRING_NAMELESS_KERNEL);
	return tool_input_end(&dump->input);
}

enum {
	RAW = TOOL_OPTION_LONG,
	STATS,
	NS,
	HEADER,
	HEADER_ONLY,
};

static int dump_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_dump};
	struct tool_symbols_options symbols = {0};
	struct dump dump = {0};
	int found, status;

	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		int taken = tool_symbols_take(&symbols, &options, found);

		if (taken < 0)
			return TOOL_MISUSED;
		if (taken)
			continue;
		switch (found) {
		case 'F':
			if (!choose(&dump, options.value))
				return TOOL_MISUSED;
			break;
		case RAW:
			dump.raw = true;
			break;
		case STATS:
			dump.stats = true;
			break;
		case NS:
			dump.nanoseconds = true;
			break;
		case HEADER_ONLY:
			dump.header_only = true;
			/* fallthrough */
		case HEADER:
			dump.header = true;
			break;
		case 'I':
			dump.lists = true;
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (dump.stats && (dump.raw || dump.chosen_count)) {
		tool_complain("dump: --stats does not go with -F or --raw");
		return TOOL_MISUSED;
	}
	status = tool_input_open(&dump.input, &options, argc, argv);
	if (status)
		return status;
	if (dump.header && !tool_header_print(dump.input.data, dump.input.path, dump.lists))
		dump.input.faults++;
	if (dump.header_only) {
		status = tool_input_end(&dump.input);
		tool_input_close(&dump.input);
		return tool_flush() ? status : TOOL_FAILED;
	}
	dump.machine = tool_machine_open();
	dump.symbols = tool_symbols_open(&dump.input, dump.machine, &symbols);
	dump.tracepoints = tool_tracepoints_open(dump.input.data, dump.symbols);
	status = run(&dump);
	tool_tracepoints_close(dump.tracepoints);
	tool_symbols_close(dump.symbols);
	tool_machine_close(dump.machine);
	tool_input_close(&dump.input);
	free(dump.counts.events);
	free(dump.field);
	tool_out_close();
	return status;
}

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input: a file or a pipe, which is followed"},
	{'F', "fields", .value = "LIST", .takes = "names of fields, such as comm,ip",
	 .help = "samples only, these fields in this order, one blank between them.  A field that a sample does not "
		 "have is -, blanks inside a field are \\x20.  A sample of a group ({a,b}:S) is one line for each "
		 "event that counted since the last, with the count as its period.  ip, addr and callchain are "
		 "hexadecimal as in perf script; callchain is ADDR:SYMBOL;... innermost first, iregs and uregs "
		 "ABI:2;AX:0x1;..., raw the bytes, misc the mode: K U H G g, trace the text of a tracepoint, with its "
		 "blanks when it comes last"},
	{NS, "ns", .help = "times of -F with nine digits instead of six"},
	{HEADER, "header", .help = "print the file's header first, as perf report --header does"},
	{HEADER_ONLY, "header-only", .help = "print nothing else"},
	{'I', NULL, .help = "the header's long lists too"},
	{RAW, "raw", .help = "the bytes of each record too"},
	{STATS, "stats", .help = "only how many records there are, by kind and by event"},
	{.heading = "symbols"},
	TOOL_SYMBOLS_ROWS,
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"Where each thread was, and when:", "perfring dump -F comm,tid,time,ip,sym,dso"},
	{"How many records there are of each kind:", "perfring dump --stats"},
	{"On which machine, and how, a file was recorded:", "perfring dump --header-only -I"},
	{0},
};

const struct tool_command tool_dump = {
	.name = "dump",
	.summary = "every record of a perf.data file as text",
	.usage = "[[-i] FILE] [-F FIELDS] [--raw] [--stats] [--header [-I]]",
	.description =
		"Shows every record of a perf.data file, stream or directory, in time order, one a line: offset in "
		"the file, [size], time, the event's name (samples), then each member and field by its name, {the "
		"fields of a tracepoint}, and (late) when it came after a younger one.",
	.options = ROWS,
	.names_heading = "fields",
	.names = column_name,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-report perfring-convert perfring-record perfring",
	.run = dump_command,
};
