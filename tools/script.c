/* script.c - `perfring script`: each sample as perf script shows it, and the records that are asked for.
 *
 * One pass over the file by input.c.  Fields are those of script_fields.c, for each event's type; names come from symbol_names.c,
 * tracepoints' fields from tracepoint_format.c.  The text is perf 6.1's, and compared with it by tests.  Output is gathered in out.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "filter_options.h"
#include "machine.h"
#include "options.h"
#include "out.h"
#include "progress.h"
#include "raw_dump.h"
#include "record_words.h"
#include "script_fields.h"
#include "symbol_names.h"
#include "tools.h"
#include "tracepoint_format.h"

/* Records beside the samples, by the options that show them. */
enum {
	SHOW_MMAPS = 1 << 0,
	SHOW_TASKS = 1 << 1,
	SHOW_SWITCHES = 1 << 2,
	SHOW_LOSSES = 1 << 3,
	SHOW_NAMESPACES = 1 << 4,
	SHOW_CGROUPS = 1 << 5,
	SHOW_BPF = 1 << 6,
	SHOW_POKES = 1 << 7,
};

/* An event, as it is known when its first record comes. */
struct event {
	bool has_chain;
	bool has_data_symbols; /* its addresses are places in memory that a symbol may name */
	unsigned shown;        /* fields */
};

struct script {
	struct tool_input input;
	struct tool_machine *machine;
	struct tool_symbols *symbols;
	struct tool_symbols_options symbols_options;
	struct tool_tracepoints *tracepoints;
	struct perfring_filter filter;
	struct tool_script_fields fields;
	unsigned records; /* SHOW_ bits */
	uint64_t max_stack;
	const char *stop_at; /* a list of symbols; NULL: none */
	bool no_chain;
	bool shows_inlines, whole_paths;
	bool nanoseconds;
	bool relative, delta;
	bool header, header_only, lists;
	bool is_raw; /* -D */
	struct tool_raw_dump raw;
	struct event *events;
	uint32_t event_count;
	int name_width;
	bool failed;
	bool has_first;
	uint64_t first; /* time of --reltime and --deltatime */
	bool saw_kernel;
	const struct perfring_sample *recorded; /* the sample, before it was moved to a frame that is kept */
};

/* ---- events ---- */

/* A stream may announce more events at any time; the width of their names is that of those known then. */
static void learn_events(struct script *script)
{
	uint32_t count = perfring_format_set_count(perfring_file_formats(script->input.data));

	if (count <= script->event_count)
		return;
	script->events = tool_allocate(script->events, count, sizeof(*script->events));
	for (; script->event_count < count; script->event_count++) {
		struct event *event = &script->events[script->event_count];
		const struct perf_event_attr *attr = perfring_file_attr(script->input.data, script->event_count);
		const char *name = perfring_file_event_name(script->input.data, script->event_count), *missing = NULL;
		int width = tool_print(NULL, name ? name : "?", 0, false);

		*event = (struct event){0};
		if (width > script->name_width)
			script->name_width = width;
		if (!attr)
			continue;
		event->has_chain = !script->no_chain && (attr->sample_type & PERFRING_SAMPLE_CALLCHAIN);
		event->has_data_symbols =
			attr->type == PERFRING_TYPE_SOFTWARE && (attr->config == PERFRING_COUNT_SW_PAGE_FAULTS ||
								 attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MIN ||
								 attr->config == PERFRING_COUNT_SW_PAGE_FAULTS_MAJ);
		event->shown = tool_script_fields_of(&script->fields, attr, &missing);
		if (event->has_chain && attr->type == PERFRING_TYPE_TRACEPOINT &&
		    !script->fields.wanted[TOOL_SCRIPT_TRACEPOINT])
			event->shown |= TOOL_SCRIPT_IP | TOOL_SCRIPT_SYM | TOOL_SCRIPT_SYMOFF | TOOL_SCRIPT_DSO;
		if (missing && tool_filter_wants(&script->filter, script->input.data, script->event_count) &&
		    !(attr->type == PERFRING_TYPE_SOFTWARE && attr->config == PERFRING_COUNT_SW_DUMMY)) {
			tool_complain("script: field '%s': the samples of event '%s' do not have it", missing,
				      name ? name : "?");
			script->failed = true;
		}
	}
}

static const struct event *event_of(struct script *script, const struct perfring_format *format)
{
	static const struct event none = {0};
	uint32_t index = format ? format->index : 0;

	if (index >= script->event_count)
		learn_events(script);
	return index < script->event_count ? &script->events[index] : &none;
}

/* ---- text ---- */

/* Prints a foreign text, right-aligned. */
static void put_right(const char *text, int width)
{
	for (int used = tool_print(NULL, text, 0, false); used < width; used++)
		tool_out_char(' ');
	tool_out_print(text, false);
}

/* Prints the source line of a frame, on a line of its own. */
static void put_line(struct script *script, const struct event *event, const struct perfring_symbol_frame *frame)
{
	char text[TOOL_SYMBOLS_LINE];

	if (!(event->shown & TOOL_SCRIPT_SRCLINE) || !*tool_symbols_line(frame, script->whole_paths, text))
		return;
	tool_out_text("\n  ");
	tool_out_print(text, false);
}

static void put_place(struct script *script, const struct event *event, const struct perfring_name *symbol)
{
	script->saw_kernel = script->saw_kernel || symbol->nameless == PERFRING_NAMELESS_KERNEL;
	if (event->shown & TOOL_SCRIPT_SYM) {
		tool_out_char(' ');
		tool_out_print(symbol->name ? symbol->name : "[unknown]", false);
		if (symbol->name && (event->shown & TOOL_SCRIPT_SYMOFF))
			tool_out_form("+0x%" PRIx64, symbol->offset);
	}
	if (event->shown & TOOL_SCRIPT_DSO) {
		tool_out_text(" (");
		tool_out_print(symbol->object ? symbol->object : "[unknown]", false);
		tool_out_char(')');
	}
}

static uint32_t pid_of(const struct perfring_sample *sample)
{
	return sample->present & PERFRING_SAMPLE_TID ? sample->pid : 0;
}

/* The address that is shown for a frame: that in its object, as in perf; without an object its own. */
static uint64_t address_in_object(const struct script *script, unsigned cpumode, uint32_t pid, uint64_t ip)
{
	const struct perfring_mapping *map =
		cpumode == PERFRING_RECORD_MISC_USER ? tool_machine_user(script->machine, pid, ip) : NULL;

	return map ? perfring_mapping_offset(map, ip) : ip;
}

static bool ends_chain(const struct script *script, const struct perfring_name *symbol)
{
	return script->stop_at && symbol->name && perfring_filter_has_word(script->stop_at, symbol->name);
}

/* Prints one address of a chain in perf's form: a line for each function that was inlined there, and one for the function. */
static void put_frames(struct script *script, const struct event *event, unsigned cpumode, uint32_t pid, uint64_t ip,
		       const struct perfring_name *symbol)
{
	uint64_t address = address_in_object(script, cpumode, pid, ip);
	struct perfring_symbol_frame frames[TOOL_SYMBOLS_FRAMES];
	unsigned count = 0;

	if (script->shows_inlines || (event->shown & TOOL_SCRIPT_SRCLINE))
		count = tool_symbols_frames(script->symbols, cpumode, pid, ip, frames, TOOL_SYMBOLS_FRAMES);
	for (unsigned i = 0; script->shows_inlines && i + 1 < count; i++) {
		struct event inner = {.shown = event->shown & ~(unsigned)TOOL_SCRIPT_DSO};
		struct perfring_name inlined = *symbol;

		inlined.name = frames[i].name;
		tool_out_form("\t%16" PRIx64, address);
		put_place(script, &inner, &inlined);
		put_line(script, event, &frames[i]);
		tool_out_text(" (inlined)\n");
	}
	tool_out_form("\t%16" PRIx64, address);
	put_place(script, event, symbol);
	if (count)
		put_line(script, event, &frames[script->shows_inlines ? count - 1 : 0]);
	tool_out_char('\n');
}

static void put_chain(struct script *script, const struct event *event)
{
	const struct perfring_sample *sample = script->recorded;
	unsigned cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	uint32_t modes = perfring_filter_modes(&script->filter);
	struct perfring_list chain;
	struct perfring_name symbol;
	uint64_t frames = 0;

	tool_out_char('\n');
	tool_symbols_chain(script->symbols, sample, script->max_stack, &chain);
	for (uint64_t i = 0; i < chain.nr && frames < script->max_stack; i++) {
		uint64_t ip = chain.words[i];

		if (!perfring_stacks_frame(ip, &cpumode) || !(modes >> cpumode & 1))
			continue;
		frames++;
		tool_symbols_find(script->symbols, cpumode, pid_of(sample), ip, &symbol);
		put_frames(script, event, cpumode, pid_of(sample), ip, &symbol);
		if (ends_chain(script, &symbol))
			break;
	}
}

static void put_registers(const struct perfring_regs *regs)
{
	uint64_t mask = regs->mask;
	const char *name;

	tool_out_form(" ABI:%" PRIu64 " ", regs->abi);
	for (uint32_t i = 0; i < regs->nr; i++, mask &= mask - 1) {
		name = perfring_register_name(regs->arch, (uint32_t)__builtin_ctzll(mask));
		tool_out_form("%5s:0x%" PRIx64 " ", name ? name : "unknown", (uint64_t)regs->values[i]);
	}
}

static void put_page_size(uint64_t size)
{
	static const char units[] = " KMGTPE";
	int unit = 0;

	for (; size >= 1024 && units[unit + 1]; size /= 1024)
		unit++;
	if (!size)
		tool_out_text(" N/A");
	else
		tool_out_form(" %" PRIu64 "%.*s", size, unit != 0, units + unit);
}

/* ---- the columns that samples and other records have ---- */

static uint64_t time_of(struct script *script, uint64_t time)
{
	uint64_t since;

	if (!script->relative && !script->delta)
		return time;
	if (!script->has_first) {
		script->has_first = true;
		script->first = time;
	}
	since = time - script->first;
	if (script->delta)
		script->first = time;
	return since;
}

/* has: what is known, of the fields' needs. */
static void put_start(struct script *script, const struct event *event, uint64_t has,
		      const struct perfring_sample *sample, const char *comm)
{
	static const char modes[] = "-KUHGg";
	unsigned shown = event->shown, cpumode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;

	if (shown & TOOL_SCRIPT_COMM) {
		put_right(comm, event->has_chain && (shown & TOOL_SCRIPT_IP) ? 0 : 16);
		tool_out_char(' ');
	}
	if ((shown & TOOL_SCRIPT_PID) && (shown & TOOL_SCRIPT_TID))
		tool_out_form("%5d/%-5d ", (int)sample->pid, (int)sample->tid);
	else if (shown & (TOOL_SCRIPT_PID | TOOL_SCRIPT_TID))
		tool_out_form("%5d ", (int)(shown & TOOL_SCRIPT_PID ? sample->pid : sample->tid));
	if (shown & TOOL_SCRIPT_CPU)
		tool_out_form("[%03d] ", (int)sample->cpu);
	if (shown & TOOL_SCRIPT_MISC)
		tool_out_form("%c     ", cpumode < sizeof(modes) - 1 ? modes[cpumode] : '-');
	if (shown & TOOL_SCRIPT_TIME) {
		uint64_t time = time_of(script, has & PERFRING_SAMPLE_TIME ? sample->time : 0);

		tool_out_form("%5" PRIu64 ".%0*" PRIu64 ": ", time / 1000000000, script->nanoseconds ? 9 : 6,
			      time % 1000000000 / (script->nanoseconds ? 1 : 1000));
	}
}

/* ---- samples ---- */

/* Moves the sample to the innermost frame that is kept. */
static bool is_shown(struct script *script, struct perfring_sample *sample, const char *comm,
		     struct perfring_name *symbol)
{
	if (!perfring_filter_counts(&script->filter, sample) ||
	    (script->filter.frames && !perfring_stacks_innermost(sample, perfring_filter_modes(&script->filter))))
		return false;
	*symbol = (struct perfring_name){.nameless = PERFRING_NAMELESS_MODE};
	if (sample->present & PERFRING_SAMPLE_IP)
		tool_symbols_find(script->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK, pid_of(sample),
				  sample->ip, symbol);
	return perfring_filter_shows(&script->filter, sample, comm, symbol->object, symbol->name);
}

static void put_data_address(struct script *script, const struct event *event, const struct perfring_sample *sample)
{
	unsigned mode = sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	struct perfring_name symbol;

	tool_out_form("%16" PRIx64, sample->addr);
	if (!event->has_data_symbols || !(event->shown & (TOOL_SCRIPT_SYM | TOOL_SCRIPT_DSO)))
		return;
	tool_symbols_find(script->symbols, mode, pid_of(sample), sample->addr, &symbol);
	/* The kernel touches data of user space. */
	if (!symbol.object && mode == PERFRING_RECORD_MISC_KERNEL)
		tool_symbols_find(script->symbols, PERFRING_RECORD_MISC_USER, pid_of(sample), sample->addr, &symbol);
	put_place(script, event, &symbol);
}

static void put_own_line(struct script *script, const struct event *event, const struct perfring_sample *sample)
{
	struct perfring_symbol_frame frame;

	if ((event->shown & TOOL_SCRIPT_SRCLINE) &&
	    tool_symbols_frames(script->symbols, sample->misc & PERFRING_RECORD_MISC_CPUMODE_MASK, pid_of(sample),
				sample->ip, &frame, 1))
		put_line(script, event, &frame);
}

static uint64_t weight_of(const struct perfring_sample *sample)
{
	return sample->present & PERFRING_SAMPLE_WEIGHT ? sample->weight : sample->weight_struct.var1;
}

/* format: of the event that this sample is shown for, one of the item's group. */
static void put_sample(struct script *script, const struct perfring_format *format,
		       const struct perfring_sample *sample, const char *comm, const struct perfring_name *symbol)
{
	const struct event *event = event_of(script, format);
	unsigned shown = event->shown;
	const char *text;

	if (!shown)
		return;
	put_start(script, event, sample->present, sample, comm);
	if (shown & TOOL_SCRIPT_PERIOD)
		tool_out_form("%10" PRIu64 " ", tool_input_period(&script->input, format, sample));
	if (shown & TOOL_SCRIPT_EVENT) {
		text = perfring_file_event_name(script->input.data, format->index);
		put_right(text ? text : "?", script->name_width);
		tool_out_text(": ");
	}
	if ((shown & TOOL_SCRIPT_TRACE) && (sample->present & PERFRING_SAMPLE_RAW)) {
		text = tool_tracepoints_print(script->tracepoints, format->index, sample);
		tool_out_print(text ? text : "", false);
	}
	if (shown & TOOL_SCRIPT_ADDR)
		put_data_address(script, event, sample);
	if (shown & TOOL_SCRIPT_WEIGHT)
		tool_out_form("%16" PRIu64, weight_of(sample));
	if ((shown & TOOL_SCRIPT_IP) && event->has_chain && (sample->present & PERFRING_SAMPLE_CALLCHAIN)) {
		put_chain(script, event);
	} else if (shown & TOOL_SCRIPT_IP) {
		tool_out_form(" %16" PRIx64, sample->ip);
		put_place(script, event, symbol);
		put_own_line(script, event, sample);
	}
	if (shown & TOOL_SCRIPT_IREGS)
		put_registers(&sample->regs_intr);
	if (shown & TOOL_SCRIPT_UREGS)
		put_registers(&sample->regs_user);
	if (shown & TOOL_SCRIPT_PHYS_ADDR)
		tool_out_form("%16" PRIx64, sample->phys_addr);
	if (shown & TOOL_SCRIPT_DATA_PAGE_SIZE)
		put_page_size(sample->data_page_size);
	if (shown & TOOL_SCRIPT_CODE_PAGE_SIZE)
		put_page_size(sample->code_page_size);
	tool_out_char('\n');
}

static void take_sample(struct script *script, const struct perfring_item *item, struct perfring_sample *sample)
{
	const char *comm =
		sample->present & PERFRING_SAMPLE_TID ? tool_machine_comm(script->machine, sample->tid) : "[unknown]";
	const struct perfring_format *format;
	struct perfring_sample recorded;
	struct perfring_name symbol;
	bool shown, more;

	script->recorded = sample;
	if (script->filter.frames) {
		recorded = *sample;
		script->recorded = &recorded;
	}
	tool_symbols_advance(script->symbols, item->time);
	shown = is_shown(script, sample, comm, &symbol);
	for (more = tool_input_event(&script->input, item->format, sample, &format); more;
	     more = tool_input_more(&script->input, &format))
		if (shown && tool_filter_wants(&script->filter, script->input.data, format->index))
			put_sample(script, format, sample, comm, &symbol);
}

/* ---- other records ---- */

static unsigned option_of(uint32_t type)
{
	switch (type) {
	case PERFRING_RECORD_MMAP:
	case PERFRING_RECORD_MMAP2:
		return SHOW_MMAPS;
	case PERFRING_RECORD_COMM:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_EXIT:
		return SHOW_TASKS;
	case PERFRING_RECORD_SWITCH:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
		return SHOW_SWITCHES;
	case PERFRING_RECORD_LOST:
		return SHOW_LOSSES;
	case PERFRING_RECORD_NAMESPACES:
		return SHOW_NAMESPACES;
	case PERFRING_RECORD_CGROUP:
		return SHOW_CGROUPS;
	case PERFRING_RECORD_BPF_EVENT:
	case PERFRING_RECORD_KSYMBOL:
		return SHOW_BPF;
	case PERFRING_RECORD_TEXT_POKE:
		return SHOW_POKES;
	default:
		return 0;
	}
}

/* The thread whose name is printed before a record. */
static uint32_t thread_of(const struct perfring_record *record)
{
	switch (record->type) {
	case PERFRING_RECORD_MMAP:
		return record->is.mmap.tid;
	case PERFRING_RECORD_MMAP2:
		return record->is.mmap2.tid;
	case PERFRING_RECORD_COMM:
		return record->is.comm.tid;
	case PERFRING_RECORD_FORK:
		return record->is.fork.tid;
	case PERFRING_RECORD_EXIT:
		return record->is.exit.tid;
	case PERFRING_RECORD_NAMESPACES:
		return record->is.namespaces.tid;
	default:
		return record->trailer.present & PERFRING_SAMPLE_TID ? record->trailer.tid : 0;
	}
}

static void take_record(struct script *script, const struct perfring_item *item, const struct perfring_record *record)
{
	const struct perfring_trailer *trailer = &record->trailer;
	struct perfring_sample sample = {.present = trailer->present, .misc = record->misc};
	const struct event *event;

	tool_symbols_learn(script->symbols, record);
	if (!(script->records & option_of(record->type)))
		return;
	event = event_of(script, item->format);
	sample.pid = trailer->pid;
	sample.tid = trailer->tid;
	sample.time = trailer->time;
	sample.cpu = trailer->cpu;
	if (!perfring_filter_takes_record(&script->filter, trailer))
		return;
	put_start(script, event, trailer->present, &sample, tool_machine_comm(script->machine, thread_of(record)));
	tool_out_text("PERF_RECORD_");
	tool_record_words(item, record, TOOL_WORDS_SCRIPT);
	tool_out_char('\n');
}

/* ---- the walk ---- */

static void take(struct script *script, const struct perfring_item *item)
{
	struct perfring_fault fault = {0, NULL};
	struct perfring_record record;
	struct perfring_sample sample;

	bool is_sample = item->record->type == PERFRING_RECORD_SAMPLE, is_whole;

	if (is_sample)
		is_whole = item->format && !perfring_sample_decode(item->format, item->record, &sample, &fault);
	else
		is_whole = !perfring_record_decode(item->format, item->record, &record, &fault);
	if (script->is_raw)
		tool_raw_dump(&script->raw, item, is_sample && is_whole ? &sample : NULL,
			      !is_sample && is_whole ? &record : NULL);
	if (is_whole && is_sample)
		take_sample(script, item, &sample);
	else if (is_whole)
		take_record(script, item, &record);
	if (fault.what)
		tool_input_fault(&script->input, &fault);
}

static int run(struct script *script)
{
	struct perfring_item item;

	learn_events(script);
	if (!script->is_raw)
		tool_input_join(&script->input);
	tool_progress_begin(&script->input, "script", TOOL_PROGRESS_LINES);
	while (!script->failed && !ferror(stdout) && tool_input_next(&script->input, &item)) {
		take(script, &item);
		if (tool_input_is_idle(&script->input))
			tool_flush();
	}
	if (!tool_flush() || script->failed)
		return TOOL_FAILED;
	if (script->saw_kernel)
		tool_complain("%s: warning: %s", script->input.path,
			      tool_symbols_why(script->symbols, PERFRING_NAMELESS_KERNEL));
	return tool_input_end(&script->input);
}

static int read_file(struct script *script, const struct tool_options *options, int argc, char **argv)
{
	int status = tool_input_open(&script->input, options, argc, argv);

	if (status)
		return status;
	script->input.tells_aux = true;
	if (script->header && !tool_header_print(script->input.data, script->input.path, script->lists))
		script->input.faults++;
	if (script->header_only)
		return tool_flush() ? tool_input_end(&script->input) : TOOL_FAILED;
	if (!tool_filter_open(&script->filter, "script", script->input.data))
		return TOOL_FAILED;
	script->machine = tool_machine_open();
	script->symbols = tool_symbols_open(&script->input, script->machine, &script->symbols_options);
	script->tracepoints = tool_tracepoints_open(script->input.data, script->symbols);
	script->raw =
		(struct tool_raw_dump){.input = &script->input, .machine = script->machine, .symbols = script->symbols};
	status = run(script);
	tool_tracepoints_close(script->tracepoints);
	tool_symbols_close(script->symbols);
	tool_machine_close(script->machine);
	return status;
}

enum {
	NS = TOOL_OPTION_LONG,
	HEADER,
	HEADER_ONLY,
	MAX_STACK,
	STOP_BT,
	RELTIME,
	DELTATIME,
	SHOW_MMAP_EVENTS,
	SHOW_TASK_EVENTS,
	SHOW_SWITCH_EVENTS,
	SHOW_LOST_EVENTS,
	SHOW_NAMESPACE_EVENTS,
	SHOW_CGROUP_EVENTS,
	SHOW_BPF_EVENTS,
	SHOW_POKE_EVENTS,
	INLINE,
	NO_INLINE,
	FULL_SOURCE_PATH,
	LOOKS,     /* taken, and nothing else */
	PERF_ONLY, /* rows that are refused */
};

#define NO_SCRIPTS "perfring runs no scripts: pipe its lines, or perfring convert --json, into yours"

/* Whether the arguments are those of perf script record NAME, or report NAME: no file of that name alone. */
static bool names_script(const struct tool_options *options, int argc, char **argv)
{
	return optind < argc && (!strcmp(argv[optind], "record") || !strcmp(argv[optind], "report")) &&
	       (options->input || argc - optind > 1 || access(argv[optind], F_OK));
}

static int script_command(int argc, char **argv)
{
	struct tool_options options = {.command = &tool_script};
	static struct script script = {.max_stack = UINT64_MAX};
	int found, status;

	tool_script_fields_default(&script.fields);
	while ((found = tool_options_next(&options, argc, argv)) > 0) {
		int taken = tool_filter_take(&script.filter, &options, found);

		if (!taken)
			taken = tool_symbols_take(&script.symbols_options, &options, found);
		if (taken < 0)
			return TOOL_MISUSED;
		if (taken)
			continue;
		switch (found) {
		case 'F':
			if (!tool_script_fields_take(&script.fields, options.value))
				return TOOL_MISUSED;
			break;
		case 'G':
			script.no_chain = true;
			break;
		case MAX_STACK:
			script.max_stack = options.number;
			break;
		case STOP_BT:
			script.stop_at = options.value;
			break;
		case NS:
			script.nanoseconds = true;
			break;
		case INLINE:
		case NO_INLINE:
			script.shows_inlines = found == INLINE;
			break;
		case FULL_SOURCE_PATH:
			script.whole_paths = true;
			break;
		case RELTIME:
			script.relative = true;
			break;
		case DELTATIME:
			script.delta = true;
			break;
		case HEADER_ONLY:
			script.header_only = true;
			/* fallthrough */
		case HEADER:
			script.header = true;
			break;
		case 'I':
			script.lists = true;
			break;
		case SHOW_MMAP_EVENTS:
		case SHOW_TASK_EVENTS:
		case SHOW_SWITCH_EVENTS:
		case SHOW_LOST_EVENTS:
		case SHOW_NAMESPACE_EVENTS:
		case SHOW_CGROUP_EVENTS:
		case SHOW_BPF_EVENTS:
		case SHOW_POKE_EVENTS:
			script.records |= 1u << (found - SHOW_MMAP_EVENTS);
			break;
		case 'D':
			script.is_raw = true;
			break;
		case 'f':
			script.symbols_options.is_forced = true;
			break;
		case 'a':
		case LOOKS:
			break;
		default:
			return tool_options_forgotten(&options, found);
		}
	}
	if (!found)
		return options.status;
	if (script.relative && script.delta) {
		tool_complain("script: --reltime and --deltatime exclude one another (perfring script --help)");
		return TOOL_MISUSED;
	}
	if (names_script(&options, argc, argv)) {
		tool_complain("script: %s: " NO_SCRIPTS, argv[optind]);
		return TOOL_MISUSED;
	}
	status = read_file(&script, &options, argc, argv);
	tool_input_close(&script.input);
	free(script.events);
	tool_out_close();
	return status;
}

#define AUX_REFUSED "decodes AUX areas, which perfring carries and does not decode: use perf script"

static const struct tool_option ROWS[] = {
	{'i', "input", .value = "FILE", .takes = "a perf.data file's name, or -", .is_input = true,
	 .help = "default perf.data; - is standard input: a file or a pipe, which is followed"},
	{'F', "fields", .value = "[TYPE:]LIST", .takes = "names of fields, such as comm,ip or +pid,-time",
	 .help = "these fields, of events of TYPE (hw, sw, trace, raw) or of all; +FIELD and -FIELD change what is "
		 "shown.  The order stays"},
	{'G', "hide-call-graph", .help = "no callchains: the sample's own address"},
	{MAX_STACK, "max-stack", .value = "N", .takes = "a number of frames", .max = UINT32_MAX,
	 .help = "at most N frames of a callchain"},
	{STOP_BT, "stop-bt", .value = "SYMBOL[,SYMBOL]", .takes = "names of functions",
	 .help = "callchains end at these functions"},
	{NS, "ns", .help = "times with nine digits instead of six"},
	{RELTIME, "reltime", .help = "times since the first line"},
	{DELTATIME, "deltatime", .help = "times since the line before"},
	{HEADER, "header", .help = "print the file's header first"},
	{HEADER_ONLY, "header-only", .help = "print nothing else"},
	{'I', "show-info", .help = "the header's long lists too"},
	{.heading = "samples"},
	TOOL_FILTER_ROWS,
	TOOL_FILTER_DSOS_ROW(TOOL_FILTER_DSOS),
	{.heading = "symbols"},
	TOOL_SYMBOLS_ROWS,
	{INLINE, "inline", .help = "functions that were inlined, in callchains, as far as debug files say"},
	{NO_INLINE, "no-inline", .help = "none (default)"},
	{FULL_SOURCE_PATH, "full-source-path", .help = "files of -F srcline with their folders"},
	{.heading = "other records"},
	{SHOW_MMAP_EVENTS, "show-mmap-events", .help = "mappings"},
	{SHOW_TASK_EVENTS, "show-task-events", .help = "names, forks and exits of tasks"},
	{SHOW_SWITCH_EVENTS, "show-switch-events", .help = "context switches"},
	{SHOW_LOST_EVENTS, "show-lost-events", .help = "losses"},
	{SHOW_NAMESPACE_EVENTS, "show-namespace-events", .help = "namespaces"},
	{SHOW_CGROUP_EVENTS, "show-cgroup-events", .help = "cgroups"},
	{SHOW_BPF_EVENTS, "show-bpf-events", .help = "BPF programs and kernel symbols"},
	{SHOW_POKE_EVENTS, "show-text-poke-events", .help = "changes of the kernel's code, as dump shows them"},
	{'D', "dump-raw-trace", .help = "all of them and the samples, each first as bytes and in perf's dump"},
	{.heading = "as perf spells them"},
	{'a', "all-cpus", .help = "taken: a file is always read whole"},
	{'f', "force", .help = "maps and dumps of code that belong to other users are read too"},
	{LOOKS, "show-kernel-path", .help = "taken: the kernel is always [kernel.kallsyms]"},
	{LOOKS, "show-round-events", .help = "taken: they have nothing to show"},
	{PERF_ONLY, "dump-unsorted-raw-trace", .refused = "use perfring dump --raw, which is in time order"},
	{'s', "script", .value = "NAME", .takes = "a name",
	 .refused = NO_SCRIPTS},
	{'g', "gen-script", .value = "LANG", .takes = "a language",
	 .refused = NO_SCRIPTS},
	{'l', "list", .refused = "perfring has no scripts"},
	{'d', "debug-mode", .refused = "use perfring check, which says what is wrong with a file, and where"},
	{'L', "Latency", .refused = "is of ftrace's flags, which events do not have"},
	{PERF_ONLY, "per-event-dump", .refused = "use one perfring script with -F event, and split its lines"},
	{PERF_ONLY, "demangle-kernel", .refused = "names of the kernel's symbols are shown as they are"},
	{PERF_ONLY, "addr-range", .value = "N", .takes = "a number of bytes",
	 .refused = "-S takes names of functions alone"},
	{PERF_ONLY, "switch-on", .value = "EVENT", .takes = "an event", .refused = "use --time FROM,TO"},
	{PERF_ONLY, "switch-off", .value = "EVENT", .takes = "an event", .refused = "use --time FROM,TO"},
	{PERF_ONLY, "show-on-off-events", .refused = "goes with --switch-on, which is not here"},
	{PERF_ONLY, "dlfilter", .value = "FILE", .takes = "a file's name", .refused = "perfring loads no filters"},
	{PERF_ONLY, "dlarg", .value = "WORD", .takes = "a word", .refused = "perfring loads no filters"},
	{PERF_ONLY, "list-dlfilters", .refused = "perfring loads no filters"},
	{PERF_ONLY, "itrace", .value = "OPTS", .is_optional = true, .takes = "options", .refused = AUX_REFUSED},
	{PERF_ONLY, "call-trace", .value = "OPTS", .is_optional = true, .takes = "options", .refused = AUX_REFUSED},
	{PERF_ONLY, "call-ret-trace", .value = "OPTS", .is_optional = true, .takes = "options", .refused = AUX_REFUSED},
	{PERF_ONLY, "insn-trace", .value = "OPTS", .is_optional = true, .takes = "options", .refused = AUX_REFUSED},
	{PERF_ONLY, "xed", .value = "OPTS", .is_optional = true, .takes = "options", .refused = AUX_REFUSED},
	{PERF_ONLY, "graph-function", .value = "LIST", .takes = "names of functions", .refused = AUX_REFUSED},
	{PERF_ONLY, "max-blocks", .value = "N", .takes = "a number", .refused = AUX_REFUSED},
	{PERF_ONLY, "stitch-lbr", .refused = "stacks of branches are shown as recorded, by perfring dump"},
	{PERF_ONLY, "guestmount", .value = "DIR", .takes = "a folder's name",
	 .refused = "guests' symbols are not read"},
	{PERF_ONLY, "guestkallsyms", .value = "FILE", .takes = "a file's name",
	 .refused = "guests' symbols are not read"},
	{PERF_ONLY, "guestmodules", .value = "FILE", .takes = "a file's name",
	 .refused = "guests' symbols are not read"},
	{PERF_ONLY, "guestvmlinux", .value = "FILE", .takes = "a file's name",
	 .refused = "guests' symbols are not read"},
	{PERF_ONLY, "guest-code", .refused = "guests' symbols are not read"},
	TOOL_OPTIONS_END,
};

static const struct tool_example EXAMPLES[] = {
	{"Each sample with its callchain:", "perfring script"},
	{"What one program did in the middle of a recording:", "perfring script --comms make --time 40%-60%"},
	{"Samples between the mappings and the tasks they belong to:",
	 "perfring script --show-mmap-events --show-task-events -G"},
	{0},
};

const struct tool_command tool_script = {
	.name = "script",
	.summary = "every sample of a perf.data file as perf script shows it",
	.usage = "[[-i] FILE] [-F [TYPE:]FIELDS] [OPTIONS]",
	.description =
		"Shows every sample of a perf.data file, in time order, in the columns of perf script, so that what "
		"reads those reads these: command, thread, [CPU], time, period, event, and the address with its symbol "
		"and object or, of a sample with a callchain, one frame a line.  A sample of a group ({a,b}:S) is shown "
		"for each event that counted since the last one.  perfring dump shows every record with all its members.",
	.options = ROWS,
	.names_heading = "fields",
	.names = tool_script_field_name,
	.exit_status = "0 done; 1 the file has faults or cannot be read; 2 usage error.",
	.examples = EXAMPLES,
	.see_also = "perfring-dump perfring-report perfring-record perfring",
	.run = script_command,
};
