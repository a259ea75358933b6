/* tracepoint.c - formats of tracepoints: parsed by libtraceevent, in a child first; payloads read, turned and printed. */
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
#include <unistd.h>
#include "tools.h"
#include "tracepoint.h"

enum {
	MOST_FORMAT = 1 << 20,  /* bytes of one format */
	MOST_FIELDS = 4096,     /* of one format */
	MOST_NESTING = 256,     /* parentheses in one: libtraceevent recurses */
	MOST_PAYLOAD = 1 << 16, /* a record is shorter */
	/* offsets in a payload are 16 bits, counted from the end of a field at most; what is behind it faults */
	PAYLOAD_ROOM = 3 * MOST_PAYLOAD,
	GUARD_ROOM = 1 << 20,
	SECONDS = 2, /* for one format, and for one payload */
};

enum state {
	UNKNOWN,
	ABSENT,
	KNOWN,
	UNPRINTABLE
};

struct one {
	enum state state;
	struct perfring_tracepoint tracepoint;
};

struct perfring_tracepoints {
	const struct perfring_data *data;
	struct perfring_symbols *symbols;
	struct one *ones;
	uint32_t count;
	bool is_foreign; /* payloads stay in the file's byte order */
	void *parser;    /* struct tep_handle */
	void *printer;   /* struct printer */
};

static bool is_tracepoint(const struct perfring_data *data, uint32_t index)
{
	const struct perf_event_attr *attr = perfring_data_attr(data, index);

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

static void find_value(const struct perfring_tracepoint_field *field, const unsigned char *payload, uint32_t size,
		       bool is_foreign, struct perfring_tracepoint_value *value)
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

void perfring_tracepoint_value(const struct perfring_tracepoints *tracepoints,
			       const struct perfring_tracepoint_field *field, const struct perfring_raw *raw,
			       struct perfring_tracepoint_value *value)
{
	find_value(field, raw->data, raw->size, tracepoints->is_foreign, value);
}

uint64_t perfring_tracepoint_number(const struct perfring_tracepoints *tracepoints,
				    const struct perfring_tracepoint_field *field,
				    const struct perfring_tracepoint_value *value, uint32_t i)
{
	uint64_t number = number_at(value->bytes + (size_t)i * field->element, field->element, tracepoints->is_foreign);
	unsigned unused = 64 - 8 * field->element;

	return field->kind == PERFRING_TRACEPOINT_SIGNED ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

int64_t perfring_tracepoint_text_size(const struct perfring_tracepoint_value *value)
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

void perfring_tracepoint_turn(const struct perfring_tracepoints *tracepoints,
			      const struct perfring_tracepoint *tracepoint, void *payload, uint32_t size)
{
	struct perfring_tracepoint_value value;
	unsigned char *bytes = payload;

	for (uint32_t i = 0; i < tracepoint->nr; i++) {
		const struct perfring_tracepoint_field *field = &tracepoint->fields[i];

		/* Two fields may lie over one another in what a file says: nothing but nonsense comes of that. */
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

bool perfring_tracepoints_are_known(void)
{
	return true;
}

/* ---- texts of formats ---- */

/* What libtraceevent is given: no NUL but at the end, and nothing that it could recurse into for long. */
static char *bounded(const void *bytes, uint64_t size)
{
	const char *text = bytes;
	char *copy;
	int depth = 0;

	if (size > MOST_FORMAT || !size)
		return NULL;
	size = strnlen(text, (size_t)size);
	for (uint64_t i = 0; i < size; i++) {
		/* every unary or binary operator, and every ?:, is a call deeper, too: they are few in what is true */
		depth += text[i] == '(' || text[i] == '[';
		depth -= text[i] == ')' || text[i] == ']';
		if (depth > MOST_NESTING)
			return NULL;
	}
	copy = perfring_tool_room(NULL, (size_t)size + 1, 1);
	memcpy(copy, text, (size_t)size);
	copy[size] = 0;
	return copy;
}

static bool has_id(const char *format, uint64_t id)
{
	const char *line = strstr(format, "\nID:");
	char *end;

	return line && strtoull(line + 4, &end, 10) == id && *end == '\n';
}

/* Of the file's own tracing data.  system points into the payload. */
static char *file_format(const struct perfring_data *data, uint64_t id, const char **system)
{
	struct perfring_feature_member member;
	struct perfring_feature_walk walk;
	uint64_t size = 0;
	const void *payload = perfring_data_feature(data, PERFRING_DATA_TRACING_DATA, &size);
	char *format;

	*system = "";
	if (!payload)
		return NULL;
	perfring_feature_open(&walk, PERFRING_DATA_TRACING_DATA, payload, size, 0);
	while (perfring_feature_next(&walk, &member) == 1) {
		if (!strcmp(member.name, "system") && member.kind == PERFRING_FEATURE_STRING)
			*system = member.bytes;
		if (strcmp(member.name, "format") || member.kind != PERFRING_FEATURE_BYTES || !**system)
			continue;
		format = bounded(member.bytes, member.size);
		if (format && has_id(format, id))
			return format;
		free(format);
	}
	return NULL;
}

static char *read_format(const char *path, uint64_t id)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char *text, *format;
	size_t used = 0;
	ssize_t got;

	if (file < 0)
		return NULL;
	text = perfring_tool_room(NULL, MOST_FORMAT, 1);
	while (used < MOST_FORMAT && (got = read(file, text + used, MOST_FORMAT - used)) > 0)
		used += (size_t)got;
	close(file);
	format = bounded(text, used);
	free(text);
	if (format && !has_id(format, id)) {
		free(format);
		format = NULL;
	}
	return format;
}

/* Whether the file was written under the kernel that runs here, as far as it says. */
static bool is_this_kernel(const struct perfring_data *data)
{
	const char *release = perfring_data_string(data, PERFRING_DATA_OSRELEASE);
	struct utsname own;

	return !perfring_data_is_foreign(data) && (!release || (!uname(&own) && !strcmp(own.release, release)));
}

/* Of this machine: "system:event" whose id is the attr's. */
static char *machine_format(const char *event, uint64_t id, char *system, size_t room)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *name = event ? strchr(event, ':') : NULL;
	char *format = NULL;
	char path[512];

	if (!name || (size_t)(name - event) >= room || strchr(event, '/') || strstr(event, ".."))
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
	struct perfring_tracepoints *tracepoints = of;
	struct perfring_symbol symbol;

	*module = NULL;
	if (!tracepoints->symbols)
		return NULL;
	perfring_symbols_find(tracepoints->symbols, PERFRING_RECORD_MISC_KERNEL, 0, *address, &symbol);
	if (!symbol.name)
		return NULL;
	*address -= symbol.offset;
	if (symbol.object && *symbol.object == '[' && strncmp(symbol.object, "[kernel", 7) &&
	    strncmp(symbol.object, "[guest", 6))
		*module = (char *)(uintptr_t)symbol.object;
	return (char *)(uintptr_t)symbol.name;
}

static struct tep_handle *open_parser(struct perfring_tracepoints *tracepoints)
{
	const enum tep_endian ours = tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN;
	const enum tep_endian other = tep_is_bigendian() ? TEP_LITTLE_ENDIAN : TEP_BIG_ENDIAN;
	struct tep_handle *parser = tep_alloc();
	struct perfring_feature_member member;
	struct perfring_feature_walk walk;
	uint64_t size = 0;
	const void *payload = perfring_data_feature(tracepoints->data, PERFRING_DATA_TRACING_DATA, &size);
	int long_size = sizeof(long), page_size = 4096;
	char *page = NULL;

	if (!parser)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	if (payload) {
		perfring_feature_open(&walk, PERFRING_DATA_TRACING_DATA, payload, size, 0);
		while (perfring_feature_next(&walk, &member) == 1 && strcmp(member.name, "systems")) {
			if (!strcmp(member.name, "long_size") && (member.number == 4 || member.number == 8))
				long_size = (int)member.number;
			if (!strcmp(member.name, "page_size") && member.number < 1 << 24)
				page_size = (int)member.number;
			if (!strcmp(member.name, "header_page") && !page)
				page = bounded(member.bytes, member.size);
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

/* Whether libtraceevent survives what it is given: it is asked where nothing is lost. */
static bool survives(struct perfring_tracepoints *tracepoints, const char *format, const char *system, uint64_t id)
{
	const struct rlimit seconds = {.rlim_cur = SECONDS, .rlim_max = SECONDS + 1};
	struct tep_handle *parser;
	bool is_parsed;
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return false;
	if (!child) {
		/* what it says of it is for nobody */
		if (dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
			_exit(1);
		setrlimit(RLIMIT_CPU, &seconds);
		setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
		parser = open_parser(tracepoints);
		if (parser)
			tep_parse_event(parser, format, strlen(format), system);
		is_parsed = parser && tep_find_event(parser, (int)id);
		if (parser)
			tep_free(parser);
		_exit(!is_parsed);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool is_word(unsigned size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool take_field(const struct tep_format_field *from, bool is_header, struct perfring_tracepoint_field *field)
{
	unsigned long flags = from->flags;

	/* libtraceevent reads where a format says: not outside of what a payload can be */
	if (from->offset < 0 || from->size < 0 || from->offset > MOST_PAYLOAD ||
	    from->size > MOST_PAYLOAD - from->offset)
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
		field->kind = PERFRING_TRACEPOINT_TEXT;
		field->element = 1;
	} else if (!is_word(field->element)) {
		field->kind = PERFRING_TRACEPOINT_TEXT;
		field->element = 1;
	} else if (flags & TEP_FIELD_IS_POINTER) {
		field->kind = PERFRING_TRACEPOINT_HEX;
	} else if (flags & TEP_FIELD_IS_SIGNED) {
		field->kind = PERFRING_TRACEPOINT_SIGNED;
	} else {
		field->kind = flags & (TEP_FIELD_IS_LONG | TEP_FIELD_IS_FLAG) ? PERFRING_TRACEPOINT_HEX
									      : PERFRING_TRACEPOINT_DECIMAL;
	}
	return true;
}

static uint32_t take_fields(const struct tep_format_field *from, bool is_header,
			    struct perfring_tracepoint_field *fields, uint32_t nr)
{
	for (; from && nr < MOST_FIELDS; from = from->next)
		if (!take_field(from, is_header, &fields[nr++]))
			return MOST_FIELDS;
	return from ? MOST_FIELDS : nr;
}

static void learn(struct perfring_tracepoints *tracepoints, uint32_t index)
{
	const char *name = perfring_data_event_name(tracepoints->data, index), *system;
	uint64_t id = perfring_data_attr(tracepoints->data, index)->config;
	struct one *one = &tracepoints->ones[index];
	struct perfring_tracepoint_field *fields;
	struct tep_event *event;
	char own_system[128];
	char *format = file_format(tracepoints->data, id, &system);
	uint32_t nr;

	one->state = ABSENT;
	if (!format && is_this_kernel(tracepoints->data) && id <= INT32_MAX) {
		format = machine_format(name, id, own_system, sizeof(own_system));
		system = own_system;
	}
	if (!format)
		return;
	event = tracepoints->parser ? tep_find_event(tracepoints->parser, (int)id) : NULL;
	if (!event && survives(tracepoints, format, system, id)) {
		if (!tracepoints->parser)
			tracepoints->parser = open_parser(tracepoints);
		if (tracepoints->parser)
			tep_parse_event(tracepoints->parser, format, strlen(format), system);
		event = tracepoints->parser ? tep_find_event(tracepoints->parser, (int)id) : NULL;
	}
	free(format);
	if (!event) {
		perfring_tool_complain("warning: the format of tracepoint '%s' is damaged: its fields are not shown",
				       name ? name : "?");
		return;
	}
	fields = perfring_tool_room(NULL, MOST_FIELDS, sizeof(*fields));
	nr = take_fields(event->format.common_fields, true, fields, 0);
	nr = take_fields(event->format.fields, false, fields, nr);
	if (nr >= MOST_FIELDS) {
		free(fields);
		return;
	}
	one->tracepoint.nr = nr;
	one->tracepoint.fields = perfring_tool_room(fields, nr + 1, sizeof(*fields));
	one->state = (unsigned)event->flags & TEP_EVENT_FL_FAILED ? UNPRINTABLE : KNOWN;
}

/* ---- print_fmt: libtraceevent follows whatever format and payload say; where that leads nowhere, it is brought back ---- */

struct printer {
	unsigned char *payload;
	uint32_t used; /* of it; behind that are zeros */
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
	struct printer *printer = perfring_tool_room(NULL, 1, sizeof(*printer));
	stack_t stack = {.ss_size = 1 << 16};

	printer->payload = mmap(NULL, PAYLOAD_ROOM + GUARD_ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (printer->payload == MAP_FAILED || mprotect(printer->payload, PAYLOAD_ROOM, PROT_READ | PROT_WRITE)) {
		free(printer);
		return NULL;
	}
	printer->used = 0;
	printer->stack = perfring_tool_room(NULL, 1, stack.ss_size);
	stack.ss_sp = printer->stack;
	sigaltstack(&stack, NULL);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, NULL);
	setitimer(ITIMER_PROF, &each_second, NULL);
	trace_seq_init(&printer->text);
	return printer;
}

const char *perfring_tracepoints_print(struct perfring_tracepoints *tracepoints, uint32_t index,
				       const struct perfring_sample *sample)
{
	const struct perfring_tracepoint *tracepoint = perfring_tracepoints_of(tracepoints, index);
	const struct perfring_raw *raw = &sample->raw;
	struct printer *printer = tracepoints->printer;
	struct tep_record record = {.ts = sample->time};
	uint32_t size;

	if (!tracepoint || tracepoints->ones[index].state != KNOWN || raw->size > MOST_PAYLOAD || raw->size < 8)
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
		/* what it was about to do with its memory is not known: a new one */
		trace_seq_init(&printer->text);
		perfring_tool_complain("warning: the format of tracepoint '%s' is damaged: its text is not shown",
				       perfring_data_event_name(tracepoints->data, index));
		return NULL;
	}
	is_printing = 1;
	tep_print_event(tracepoints->parser, &printer->text, &record, "%s", TEP_PRINT_INFO);
	is_printing = 0;
	trace_seq_terminate(&printer->text);
	return printer->text.state == TRACE_SEQ__GOOD ? printer->text.buffer : NULL;
}

static void close_parser(struct perfring_tracepoints *tracepoints)
{
	static const struct itimerval never;
	struct printer *printer = tracepoints->printer;
	stack_t none = {.ss_flags = SS_DISABLE};

	if (printer) {
		setitimer(ITIMER_PROF, &never, NULL);
		sigaltstack(&none, NULL);
		trace_seq_destroy(&printer->text);
		munmap(printer->payload, PAYLOAD_ROOM + GUARD_ROOM);
		free(printer->stack);
		free(printer);
	}
	if (tracepoints->parser)
		tep_free(tracepoints->parser);
}

#else

bool perfring_tracepoints_are_known(void)
{
	return false;
}

static void learn(struct perfring_tracepoints *tracepoints, uint32_t index)
{
	tracepoints->ones[index].state = ABSENT;
}

static void close_parser(struct perfring_tracepoints *tracepoints)
{
	(void)tracepoints;
}

const char *perfring_tracepoints_print(struct perfring_tracepoints *tracepoints, uint32_t index,
				       const struct perfring_sample *sample)
{
	(void)tracepoints;
	(void)index;
	(void)sample;
	return NULL;
}
#endif

struct perfring_tracepoints *perfring_tracepoints_open(const struct perfring_data *data,
						       struct perfring_symbols *symbols)
{
	struct perfring_tracepoints *tracepoints = perfring_tool_room(NULL, 1, sizeof(*tracepoints));

	memset(tracepoints, 0, sizeof(*tracepoints));
	tracepoints->data = data;
	tracepoints->symbols = symbols;
	tracepoints->is_foreign = perfring_data_is_foreign(data);
	return tracepoints;
}

void perfring_tracepoints_close(struct perfring_tracepoints *tracepoints)
{
	for (uint32_t i = 0; i < tracepoints->count; i++)
		free((void *)(uintptr_t)tracepoints->ones[i].tracepoint.fields);
	close_parser(tracepoints);
	free(tracepoints->ones);
	free(tracepoints);
}

const struct perfring_tracepoint *perfring_tracepoints_of(struct perfring_tracepoints *tracepoints, uint32_t index)
{
	if (index >= tracepoints->count) {
		/* a stream may tell of more events as it goes */
		tracepoints->ones =
			perfring_tool_room(tracepoints->ones, (size_t)index + 16, sizeof(*tracepoints->ones));
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
