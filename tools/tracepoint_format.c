/* tracepoint_format.c - formats of tracepoints: parsed by libtraceevent, in a child first; payloads read, turned and printed.
 *
 * dump, script, convert, report and evlist ask for fields by event.  The only file that includes libtraceevent; without it all is
 * unknown, and the commands show bytes.  Formats and payloads are foreign: lengths are compared with the payload, and a format's
 * size is bounded (format_limits.h).
 */
#include <ctype.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "format_limits.h"
#include "tools.h"
#include "tracepoint_format.h"

enum {
	MAX_FORMATS = 1 << 16, /* their numbers have 16 bits: common_type */
	MAX_PAYLOAD = 1 << 16, /* a record is shorter */
	/* offsets in a payload are 16 bits, counted from the end of a field at most; the page after that faults */
	PAYLOAD_SPACE = 3 * MAX_PAYLOAD,
	GUARD_ROOM = 1 << 20,
	SECONDS = 2, /* for one format, and for one payload */
	SECOND = 1000000000,
};

enum state {
	UNKNOWN,
	ABSENT,
	KNOWN,
	UNPRINTABLE
};

struct one {
	enum state state;
	uint32_t percents; /* in what it prints by */
	struct tool_tracepoint tracepoint;
};

/* One format as it stands in the file, or in this machine's tracefs. */
struct text {
	const char *system;
	const char *bytes; /* without a NUL at their end; NULL: there is none */
	uint64_t size;
};

/* The tracepoint of one id (attr.config), which several events may have. */
struct format {
	struct text text; /* in the file */
	struct one one;   /* of all of them, when a text was found, which is parsed once */
};

struct tool_tracepoints {
	const struct perfring_file *data;
	struct tool_symbols *symbols;
	struct one *ones;
	uint32_t count;
	bool is_foreign;        /* payloads stay in the file's byte order */
	bool has_told;          /* of a bound that was exceeded */
	bool has_texts;         /* of the file's formats */
	struct format *formats; /* by their numbers; NULL: none was asked for */
	uint64_t format_bytes;  /* that were parsed */
	uint64_t spent;         /* ns of processor time for that, here and in children */
	uint32_t breaks;        /* payloads whose printing was broken off */
	void *parser;           /* struct tep_handle */
	void *printer;          /* struct printer */
};

static bool is_tracepoint(const struct perfring_file *data, uint32_t index)
{
	const struct perf_event_attr *attr = perfring_file_attr(data, index);

	return attr && attr->type == PERFRING_TYPE_TRACEPOINT;
}

/* ---- values: whatever the format and the payload say, inside the payload ---- */

static uint64_t number_at(const unsigned char *bytes, uint32_t size, bool is_foreign)
{
	uint16_t half;
	uint32_t word;
	uint64_t number;

	switch (size) {
	case 1:
		return *bytes;
	case 2:
		memcpy(&half, bytes, sizeof(half));
		return is_foreign ? __builtin_bswap16(half) : half;
	case 4:
		memcpy(&word, bytes, sizeof(word));
		return is_foreign ? __builtin_bswap32(word) : word;
	default:
		memcpy(&number, bytes, sizeof(number));
		return is_foreign ? __builtin_bswap64(number) : number;
	}
}

static void find_value(const struct tool_tracepoint_field *field, const unsigned char *payload, uint32_t size,
		       bool is_foreign, struct tool_tracepoint_value *value)
{
	uint32_t offset = field->offset, length = field->size, where;

	memset(value, 0, sizeof(*value));
	if (offset > size || length > size - offset)
		return;
	if (field->is_dynamic) {
		if (length != 4)
			return;
		where = (uint32_t)number_at(payload + offset, 4, is_foreign);
		offset = (where & 0xffff) + (field->is_relative ? field->offset + field->size : 0);
		length = where >> 16;
		if (offset > size || length > size - offset)
			return;
	}
	value->bytes = payload + offset;
	value->size = length;
	value->count = length / field->element;
}

void tool_tracepoint_value(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint_field *field,
			   const struct perfring_raw *raw, struct tool_tracepoint_value *value)
{
	find_value(field, raw->data, raw->size, tracepoints->is_foreign, value);
}

uint64_t tool_tracepoint_number(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint_field *field,
				const struct tool_tracepoint_value *value, uint32_t i)
{
	uint64_t number = number_at(value->bytes + (size_t)i * field->element, field->element, tracepoints->is_foreign);
	unsigned unused = 64 - 8 * field->element;

	return field->kind == TOOL_TRACEPOINT_SIGNED ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

int64_t tool_tracepoint_text_size(const struct tool_tracepoint_value *value)
{
	uint32_t i;

	for (i = 0; i < value->size && value->bytes[i]; i++)
		if (!isprint(value->bytes[i]) && !isspace(value->bytes[i]))
			return -1;
	return i;
}

static void turn(unsigned char *bytes, uint32_t element, uint32_t count)
{
	for (; count; count--, bytes += element)
		for (uint32_t i = 0; i < element / 2; i++) {
			unsigned char one = bytes[i];

			bytes[i] = bytes[element - 1 - i];
			bytes[element - 1 - i] = one;
		}
}

void tool_tracepoint_turn(const struct tool_tracepoints *tracepoints, const struct tool_tracepoint *tracepoint,
			  void *payload, uint32_t size)
{
	struct tool_tracepoint_value value;
	unsigned char *bytes = payload;

	for (uint32_t i = 0; i < tracepoint->nr; i++) {
		const struct tool_tracepoint_field *field = &tracepoint->fields[i];

		/* In a bad file two fields may overlap: harmless, the values are nonsense. */
		find_value(field, bytes, size, tracepoints->is_foreign, &value);
		if (value.bytes)
			turn(bytes + (value.bytes - bytes), field->element, value.count);
		if (field->is_dynamic && field->offset + 4 <= size)
			turn(bytes + field->offset, 4, 1);
	}
}

#ifdef HAVE_TRACEEVENT
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

bool tool_tracepoints_are_known(void)
{
	return true;
}

/* ---- bounds ---- */

/* Reports a reason once, for the first tracepoint that it concerns. */
static void tell_exceeded(struct tool_tracepoints *tracepoints, uint32_t index, const char *what)
{
	const char *name = perfring_file_event_name(tracepoints->data, index);

	if (!tracepoints->has_told)
		tool_complain("warning: tracepoint '%s': more than %s: the rest is shown as bytes (docs/limits.md)",
			      name ? name : "?", what);
	tracepoints->has_told = true;
}

/* The bound that this format exceeds, or NULL. */
static const char *find_excess(const struct tool_tracepoints *tracepoints, const struct text *text)
{
	uint32_t depth = 0, percents = 0;

	if (tracepoints->spent >= (uint64_t)TOOL_LIMIT_FORMAT_SECONDS * SECOND)
		return "10 s of processor time for formats";
	if (text->size + strnlen(text->system, TOOL_LIMIT_FORMAT) > TOOL_LIMIT_FORMAT)
		return "256 KiB in one format";
	if (tracepoints->format_bytes + text->size > TOOL_LIMIT_FORMATS)
		return "8 MiB of formats";
	for (uint64_t i = 0; i < text->size; i++) {
		percents += text->bytes[i] == '%';
		/* libtraceevent recurses, for every operator too: true formats have few. */
		if (text->bytes[i] == '(' || text->bytes[i] == '[')
			depth++;
		else if ((text->bytes[i] == ')' || text->bytes[i] == ']') && depth)
			depth--;
		if (depth > TOOL_LIMIT_FORMAT_DEPTH)
			return "256 nested brackets in one format";
	}
	return percents > TOOL_LIMIT_FORMAT_PERCENTS ? "512 '%' in one format" : NULL;
}

static uint64_t processor_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* ---- texts of formats ---- */

static bool read_id(const struct text *text, uint64_t *id)
{
	const char *line = memmem(text->bytes, (size_t)text->size, "\nID:", 4);
	char number[32], *end;
	size_t length;

	if (!line)
		return false;
	line += 4;
	length = (size_t)(text->bytes + text->size - line);
	if (length >= sizeof(number))
		length = sizeof(number) - 1;
	memcpy(number, line, length);
	number[length] = 0;
	*id = strtoull(number, &end, 10);
	return *end == '\n';
}

/* Indexes the formats of the file's TRACING_DATA, the first text of each, when it is there: it does not change afterwards. */
static void find_texts(struct tool_tracepoints *tracepoints)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0, id;
	const void *payload = perfring_file_feature(tracepoints->data, PERFRING_FEATURE_TRACING_DATA, &size);
	struct text text = {.system = ""};

	if (!payload)
		return;
	tracepoints->has_texts = true;
	perfring_feature_open(&walk, PERFRING_FEATURE_TRACING_DATA, payload, size, 0);
	while (perfring_layout_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "system") && member.kind == PERFRING_LAYOUT_STRING)
			text.system = member.bytes;
		if (strcmp(member.name, "format") || member.kind != PERFRING_LAYOUT_BYTES || !*text.system)
			continue;
		text.bytes = member.bytes;
		text.size = strnlen(text.bytes, (size_t)member.size);
		if (read_id(&text, &id) && id < MAX_FORMATS && !tracepoints->formats[id].text.bytes)
			tracepoints->formats[id].text = text;
	}
}

/* A format that is too long is read up to one byte more than the bound, which shows that it is. */
static char *read_format(const char *path, uint64_t id)
{
	const size_t most = TOOL_LIMIT_FORMAT + 1;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t own = 0;
	size_t used = 0;
	ssize_t got = 1;
	char *format;

	if (file < 0) {
		/* tracefs may not be there, or not be for everybody */
		if (errno != ENOENT && errno != EACCES && errno != EPERM && errno != ENOTDIR)
			tool_complain("warning: %s: %s", path, strerror(errno));
		return NULL;
	}
	format = tool_allocate(NULL, most + 1, 1);
	while (used < most && (got = read(file, format + used, most - used)) > 0)
		used += (size_t)got;
	if (got < 0)
		tool_complain("warning: %s: %s", path, strerror(errno));
	close(file);
	format[used] = 0;
	if (!read_id(&(struct text){.bytes = format, .size = strlen(format)}, &own) || own != id) {
		free(format);
		return NULL;
	}
	return format;
}

/* Whether the file was written under the kernel that runs here, as far as it says. */
static bool is_this_kernel(const struct perfring_file *data)
{
	const char *release = perfring_file_string(data, PERFRING_FEATURE_OSRELEASE);
	struct utsname own;

	return !perfring_file_is_foreign(data) && (!release || (!uname(&own) && !strcmp(own.release, release)));
}

/* Reads the format from this machine's tracefs, of "system:event" if its id is the attr's. */
static char *machine_format(const char *event, uint64_t id, char *system, size_t capacity)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *name = event ? strchr(event, ':') : NULL;
	char *format = NULL;
	char path[512];

	if (!name || (size_t)(name - event) >= capacity || strchr(event, '/') || strstr(event, ".."))
		return NULL;
	memcpy(system, event, (size_t)(name - event));
	system[name - event] = 0;
	name++;
	for (size_t i = 0; !format && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/%s/%.*s/format", places[i], system, (int)strcspn(name, ":"),
			 name);
		format = read_format(path, id);
	}
	return format;
}

/* ---- parsing, in a child first ---- */

static char *resolve(void *of, unsigned long long *address, char **module)
{
	struct tool_tracepoints *tracepoints = of;
	struct perfring_name symbol;

	*module = NULL;
	if (!tracepoints->symbols)
		return NULL;
	tool_symbols_find(tracepoints->symbols, PERFRING_RECORD_MISC_KERNEL, 0, *address, &symbol);
	if (!symbol.name)
		return NULL;
	*address -= symbol.offset;
	if (symbol.object && *symbol.object == '[' && strncmp(symbol.object, "[kernel", 7) &&
	    strncmp(symbol.object, "[guest", 6))
		*module = (char *)(uintptr_t)symbol.object;
	return (char *)(uintptr_t)symbol.name;
}

static struct tep_handle *open_parser(struct tool_tracepoints *tracepoints)
{
	const enum tep_endian ours = tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN;
	const enum tep_endian other = tep_is_bigendian() ? TEP_LITTLE_ENDIAN : TEP_BIG_ENDIAN;
	struct tep_handle *parser = tep_alloc();
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	uint64_t size = 0;
	const void *payload = perfring_file_feature(tracepoints->data, PERFRING_FEATURE_TRACING_DATA, &size);
	int long_size = sizeof(long), page_size = 4096;
	struct text text = {.system = ""};
	char *page = NULL;

	if (!parser)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	if (payload) {
		perfring_feature_open(&walk, PERFRING_FEATURE_TRACING_DATA, payload, size, 0);
		while (perfring_layout_next(&walk, &member) == 1 && strcmp(member.name, "systems")) {
			if (!strcmp(member.name, "long_size") && (member.number == 4 || member.number == 8))
				long_size = (int)member.number;
			if (!strcmp(member.name, "page_size") && member.number < 1 << 24)
				page_size = (int)member.number;
			if (strcmp(member.name, "header_page") || page)
				continue;
			text.bytes = member.bytes;
			text.size = strnlen(text.bytes, (size_t)member.size);
			if (text.size && !find_excess(tracepoints, &text))
				page = strndup(text.bytes, (size_t)text.size);
		}
	}
	tep_set_file_bigendian(parser, tracepoints->is_foreign ? other : ours);
	tep_set_local_bigendian(parser, ours);
	tep_set_long_size(parser, long_size);
	tep_set_page_size(parser, page_size);
	if (page)
		tep_parse_header_page(parser, page, strlen(page), long_size);
	free(page);
	tep_set_function_resolver(parser, resolve, tracepoints);
	return parser;
}

/* Whether libtraceevent survives this format: tried in a child, where a crash does no harm. */
static bool survives(struct tool_tracepoints *tracepoints, const char *format, const char *system, uint64_t id)
{
	const struct rlimit seconds = {.rlim_cur = SECONDS, .rlim_max = SECONDS + 1};
	struct tep_handle *parser;
	struct rusage usage;
	bool is_parsed;
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0) {
		tool_complain("warning: the process that tries out a tracepoint's format: %s", strerror(errno));
		return false;
	}
	if (!child) {
		/* its messages are not shown */
		if (dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
			_exit(1);
		if (setrlimit(RLIMIT_CPU, &seconds))
			_exit(1);
		setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
		parser = open_parser(tracepoints);
		if (parser)
			tep_parse_event(parser, format, strlen(format), system);
		is_parsed = parser && tep_find_event(parser, (int)id);
		if (parser)
			tep_free(parser);
		_exit(!is_parsed);
	}
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return false;
	tracepoints->spent += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND +
			      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool is_word(unsigned size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool take_field(const struct tep_format_field *from, bool is_header, struct tool_tracepoint_field *field)
{
	unsigned long flags = from->flags;

	/* libtraceevent reads where a format says: not outside of what a payload can be */
	if (from->offset < 0 || from->size < 0 || from->offset > MAX_PAYLOAD ||
	    from->size > MAX_PAYLOAD - from->offset)
		return false;
	field->name = from->name;
	field->offset = (uint32_t)from->offset;
	field->size = (uint32_t)from->size;
	field->is_header = is_header;
	field->is_dynamic = flags & TEP_FIELD_IS_DYNAMIC;
	field->is_relative = flags & TEP_FIELD_IS_RELATIVE;
	field->is_list = flags & TEP_FIELD_IS_ARRAY;
	field->element = field->is_list ? from->elementsize : field->size;
	if (flags & TEP_FIELD_IS_STRING) {
		field->kind = TOOL_TRACEPOINT_TEXT;
		field->element = 1;
	} else if (!is_word(field->element)) {
		field->kind = TOOL_TRACEPOINT_TEXT;
		field->element = 1;
	} else if (flags & TEP_FIELD_IS_POINTER) {
		field->kind = TOOL_TRACEPOINT_HEX;
	} else if (flags & TEP_FIELD_IS_SIGNED) {
		field->kind = TOOL_TRACEPOINT_SIGNED;
	} else {
		field->kind =
			flags & (TEP_FIELD_IS_LONG | TEP_FIELD_IS_FLAG) ? TOOL_TRACEPOINT_HEX : TOOL_TRACEPOINT_DECIMAL;
	}
	return true;
}

/* Adds fields.  Returns how many there are then: the bound if there are more, and more than the bound if a field is impossible. */
static uint32_t take_fields(const struct tep_format_field *from, bool is_header, struct tool_tracepoint_field *fields,
			    uint32_t nr)
{
	for (; from && nr < TOOL_LIMIT_FORMAT_FIELDS; from = from->next)
		if (!take_field(from, is_header, &fields[nr++]))
			return TOOL_LIMIT_FORMAT_FIELDS + 1;
	return from ? TOOL_LIMIT_FORMAT_FIELDS : nr;
}

static void complain_damaged(const char *name)
{
	tool_complain("warning: the format of tracepoint '%s' is damaged: its fields are not shown", name ? name : "?");
}

/* Finds the text of a format, in the file or on this machine; then *own has it, which the caller frees.  Returns false: there is
 * none. */
static bool find_text(struct tool_tracepoints *tracepoints, uint64_t id, const char *name, struct text *text,
		      char *system, size_t capacity, char **own)
{
	if (!tracepoints->has_texts)
		find_texts(tracepoints);
	*own = NULL;
	*text = tracepoints->formats[id].text;
	if (text->bytes)
		return true;
	if (is_this_kernel(tracepoints->data))
		*own = machine_format(name, id, system, capacity);
	if (*own)
		*text = (struct text){system, *own, strlen(*own)};
	return *own;
}

static struct tep_event *parse(struct tool_tracepoints *tracepoints, const struct text *text, uint64_t id)
{
	struct tep_event *event = NULL;
	char *format = tool_allocate(NULL, (size_t)text->size + 1, 1);

	memcpy(format, text->bytes, (size_t)text->size);
	format[text->size] = 0;
	if (survives(tracepoints, format, text->system, id)) {
		if (!tracepoints->parser)
			tracepoints->parser = open_parser(tracepoints);
		if (tracepoints->parser)
			tep_parse_event(tracepoints->parser, format, (unsigned long)text->size, text->system);
		event = tracepoints->parser ? tep_find_event(tracepoints->parser, (int)id) : NULL;
	}
	free(format);
	return event;
}

static uint32_t count_percents(const char *format)
{
	uint32_t count = 0;

	for (; format && *format; format++)
		count += *format == '%';
	return count;
}

static void take_event(struct tool_tracepoints *tracepoints, uint32_t index, const struct tep_event *event,
		       struct one *one)
{
	struct tool_tracepoint_field *fields = tool_allocate(NULL, TOOL_LIMIT_FORMAT_FIELDS, sizeof(*fields));
	uint32_t nr;

	nr = take_fields(event->format.common_fields, true, fields, 0);
	if (nr < TOOL_LIMIT_FORMAT_FIELDS)
		nr = take_fields(event->format.fields, false, fields, nr);
	if (nr >= TOOL_LIMIT_FORMAT_FIELDS) {
		free(fields);
		if (nr == TOOL_LIMIT_FORMAT_FIELDS)
			tell_exceeded(tracepoints, index, "4095 fields in one format");
		else
			complain_damaged(perfring_file_event_name(tracepoints->data, index));
		return;
	}
	one->tracepoint.nr = nr;
	one->tracepoint.fields = tool_allocate(fields, nr + 1, sizeof(*fields));
	one->percents = count_percents(event->print_fmt.format);
	one->state = (unsigned)event->flags & TEP_EVENT_FL_FAILED ? UNPRINTABLE : KNOWN;
}

/* The first event that has this number, or the first for which there is a text. */
static void learn_format(struct tool_tracepoints *tracepoints, uint32_t index, uint64_t id)
{
	const char *name = perfring_file_event_name(tracepoints->data, index), *excess;
	struct one *one = &tracepoints->formats[id].one;
	const struct tep_event *event;
	char system[128], *own;
	struct text text;

	if (!find_text(tracepoints, id, name, &text, system, sizeof(system), &own))
		return;
	one->state = ABSENT;
	excess = find_excess(tracepoints, &text);
	if (excess) {
		tell_exceeded(tracepoints, index, excess);
	} else {
		tracepoints->format_bytes += text.size;
		event = parse(tracepoints, &text, id);
		if (event)
			take_event(tracepoints, index, event, one);
		else
			complain_damaged(name);
	}
	free(own);
}

static void learn(struct tool_tracepoints *tracepoints, uint32_t index)
{
	uint64_t id = perfring_file_attr(tracepoints->data, index)->config, begun;

	tracepoints->ones[index].state = ABSENT;
	if (id >= MAX_FORMATS)
		return;
	if (!tracepoints->formats) {
		tracepoints->formats = tool_allocate(NULL, MAX_FORMATS, sizeof(*tracepoints->formats));
		memset(tracepoints->formats, 0, MAX_FORMATS * sizeof(*tracepoints->formats));
	}
	if (tracepoints->formats[id].one.state == UNKNOWN) {
		begun = processor_time();
		learn_format(tracepoints, index, id);
		tracepoints->spent += processor_time() - begun;
	}
	if (tracepoints->formats[id].one.state != UNKNOWN)
		tracepoints->ones[index] = tracepoints->formats[id].one;
}

/* ---- print_fmt: libtraceevent trusts format and payload; a fault or a timeout in it ends by siglongjmp ---- */

struct printer {
	unsigned char *payload;
	uint32_t used; /* of it; zeros follow */
	struct trace_seq text;
	unsigned char *stack;
};

static sigjmp_buf way_back;
static volatile sig_atomic_t is_printing;
static volatile sig_atomic_t ticks;

static void on_fault(int signal_number)
{
	if (is_printing && (signal_number != SIGPROF || ++ticks > SECONDS))
		siglongjmp(way_back, 1);
	if (signal_number != SIGPROF)
		signal(signal_number, SIG_DFL);
}

static struct printer *open_printer(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGPROF};
	const struct itimerval each_second = {.it_interval = {.tv_sec = 1}, .it_value = {.tv_sec = 1}};
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
	struct printer *printer = tool_allocate(NULL, 1, sizeof(*printer));
	stack_t stack = {.ss_size = 1 << 16};

	printer->payload = mmap(NULL, PAYLOAD_SPACE + GUARD_ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (printer->payload == MAP_FAILED || mprotect(printer->payload, PAYLOAD_SPACE, PROT_READ | PROT_WRITE)) {
		free(printer);
		return NULL;
	}
	printer->used = 0;
	printer->stack = tool_allocate(NULL, 1, stack.ss_size);
	stack.ss_sp = printer->stack;
	sigaltstack(&stack, NULL);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, NULL);
	setitimer(ITIMER_PROF, &each_second, NULL);
	trace_seq_init(&printer->text);
	return printer;
}

const char *tool_tracepoints_print(struct tool_tracepoints *tracepoints, uint32_t index,
				   const struct perfring_sample *sample)
{
	const struct tool_tracepoint *tracepoint = tool_tracepoints_of(tracepoints, index);
	const struct perfring_raw *raw = &sample->raw;
	struct printer *printer = tracepoints->printer;
	struct tep_record record = {.ts = sample->time};
	uint32_t size;

	if (!tracepoint || tracepoints->ones[index].state != KNOWN || raw->size > MAX_PAYLOAD || raw->size < 8)
		return NULL;
	if ((uint64_t)raw->size * tracepoints->ones[index].percents > TOOL_LIMIT_TRACE_TEXT) {
		tell_exceeded(tracepoints, index, "4 MiB to print of one sample");
		return NULL;
	}
	if (tracepoints->breaks >= TOOL_LIMIT_TRACE_BREAKS)
		return NULL;
	if (!printer)
		tracepoints->printer = printer = open_printer();
	if (!printer)
		return NULL;
	size = raw->size;
	memcpy(printer->payload, raw->data, size);
	if (printer->used > size)
		memset(printer->payload + size, 0, printer->used - size);
	printer->used = size;
	record.data = printer->payload;
	record.size = (int)size;
	record.cpu = (int)sample->cpu;
	trace_seq_reset(&printer->text);
	ticks = 0;
	if (sigsetjmp(way_back, 0)) {
		is_printing = 0;
		tracepoints->ones[index].state = UNPRINTABLE;
		tracepoints->breaks++;
		/* its memory may be half changed: a new one */
		trace_seq_init(&printer->text);
		tool_complain("warning: the format of tracepoint '%s' is damaged: its text is not shown",
			      perfring_file_event_name(tracepoints->data, index));
		if (tracepoints->breaks == TOOL_LIMIT_TRACE_BREAKS)
			tool_complain("warning: %u such formats: no more texts are shown (docs/limits.md)",
				      TOOL_LIMIT_TRACE_BREAKS);
		return NULL;
	}
	is_printing = 1;
	tep_print_event(tracepoints->parser, &printer->text, &record, "%s", TEP_PRINT_INFO);
	is_printing = 0;
	trace_seq_terminate(&printer->text);
	return printer->text.state == TRACE_SEQ__GOOD ? printer->text.buffer : NULL;
}

static void close_parser(struct tool_tracepoints *tracepoints)
{
	static const struct itimerval never;
	struct printer *printer = tracepoints->printer;
	stack_t none = {.ss_flags = SS_DISABLE};

	if (printer) {
		setitimer(ITIMER_PROF, &never, NULL);
		sigaltstack(&none, NULL);
		trace_seq_destroy(&printer->text);
		munmap(printer->payload, PAYLOAD_SPACE + GUARD_ROOM);
		free(printer->stack);
		free(printer);
	}
	if (tracepoints->parser)
		tep_free(tracepoints->parser);
}

#else

bool tool_tracepoints_are_known(void)
{
	return false;
}

static void learn(struct tool_tracepoints *tracepoints, uint32_t index)
{
	tracepoints->ones[index].state = ABSENT;
}

static void close_parser(struct tool_tracepoints *tracepoints)
{
	(void)tracepoints;
}

const char *tool_tracepoints_print(struct tool_tracepoints *tracepoints, uint32_t index,
				   const struct perfring_sample *sample)
{
	(void)tracepoints;
	(void)index;
	(void)sample;
	return NULL;
}
#endif

struct tool_tracepoints *tool_tracepoints_open(const struct perfring_file *data, struct tool_symbols *symbols)
{
	struct tool_tracepoints *tracepoints = tool_allocate(NULL, 1, sizeof(*tracepoints));

	memset(tracepoints, 0, sizeof(*tracepoints));
	tracepoints->data = data;
	tracepoints->symbols = symbols;
	tracepoints->is_foreign = perfring_file_is_foreign(data);
	return tracepoints;
}

void tool_tracepoints_close(struct tool_tracepoints *tracepoints)
{
	for (uint32_t i = 0; tracepoints->formats && i < MAX_FORMATS; i++)
		free((void *)(uintptr_t)tracepoints->formats[i].one.tracepoint.fields);
	close_parser(tracepoints);
	free(tracepoints->ones);
	free(tracepoints->formats);
	free(tracepoints);
}

const struct tool_tracepoint *tool_tracepoints_of(struct tool_tracepoints *tracepoints, uint32_t index)
{
	if (index >= tracepoints->count) {
		/* a stream may announce more events at any time */
		tracepoints->ones = tool_allocate(tracepoints->ones, (size_t)index + 16, sizeof(*tracepoints->ones));
		memset(tracepoints->ones + tracepoints->count, 0,
		       ((size_t)index + 16 - tracepoints->count) * sizeof(*tracepoints->ones));
		tracepoints->count = index + 16;
	}
	if (tracepoints->ones[index].state == UNKNOWN) {
		if (is_tracepoint(tracepoints->data, index))
			learn(tracepoints, index);
		else
			tracepoints->ones[index].state = ABSENT;
	}
	return tracepoints->ones[index].state >= KNOWN ? &tracepoints->ones[index].tracepoint : NULL;
}
