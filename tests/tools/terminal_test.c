/* terminal_test.c - what files, objects and processes call themselves never reaches a terminal that obeys it. */
#include <sys/prctl.h>
#include "hostile.h"

TestSuite(terminal, .timeout = 120);

static char folder[64];
static char object[512]; /* an ELF file whose path and symbol are every byte */
static char plain[128];  /* a recording that is all names */
static char odd[512];    /* the same under a name like that */

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static void write_object(void)
{
	const char *name = hostile_name();
	struct hostile_symbol symbol = {1, 0x2000, 0x100};
	char strings[512];

	memset(strings, 0, sizeof(strings));
	memcpy(strings + 1, name, strlen(name));
	hostile_write_elf(object, strings, strlen(name) + 2, &symbol, 1);
}

/* ---- a recording ---- */

#define FIELDS (PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER)

static struct perf_event_attr attr_of(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = type, .config = config, .sample_period = 1, .sample_id_all = 1};

	attr.sample_type = FIELDS | (type == PERFRING_TYPE_TRACEPOINT ? PERFRING_SAMPLE_RAW : 0);
	return attr;
}

static void put_format(struct hostile_bytes *to, const char *name, unsigned id, const char *field)
{
	char format[4096];
	int length = snprintf(format, sizeof(format),
			      "name: %s\nID: %u\nformat:\n"
			      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
			      "\tfield:char %s[252];\toffset:8;\tsize:252;\tsigned:0;\n\n"
			      "print fmt: \"%%s\", REC->%s\n",
			      name, id, field, field);

	hostile_put_number(to, (uint64_t)length, 8);
	hostile_put(to, format, (size_t)length);
}

static void put_tracing_data(struct perfring_file_writer *writer)
{
	struct hostile_bytes to = {0};

	hostile_put(&to, "\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0", 20);
	hostile_put(&to, "header_page", 12);
	hostile_put_number(&to, 0, 8);
	hostile_put(&to, "header_event", 13);
	hostile_put_number(&to, 0, 8);
	hostile_put_number(&to, 0, 4);
	hostile_put_number(&to, 1, 4);
	hostile_put(&to, hostile_name(), strlen(hostile_name()) + 1);
	hostile_put_number(&to, 2, 4);
	put_format(&to, "sound", 4242, "text");
	hostile_put_number(&to, 34, 8);
	hostile_put(&to, "nemo: damaged\nID: 4343\nformat:\n\tx", 34);
	hostile_put_number(&to, 0, 4);
	hostile_put_number(&to, 0, 4);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, to.bytes, to.size), 0);
	free(to.bytes);
}

static void put_features(struct perfring_file_writer *writer)
{
	for (size_t i = 0; i < HOSTILE_COUNT; i++) {
		struct hostile_bytes to = {0};
		uint32_t feature = hostile_features[i].feature;

		/* what the reader goes by; and the two that the writer makes */
		if (feature == PERFRING_FEATURE_DIR_FORMAT || feature == PERFRING_FEATURE_EVENT_DESC ||
		    feature == PERFRING_FEATURE_GROUP_DESC || feature == PERFRING_FEATURE_TRACING_DATA ||
		    feature == PERFRING_FEATURE_COMPRESSED || feature == PERFRING_FEATURE_OSRELEASE)
			continue;
		hostile_fill(&to, hostile_features[i].layout, hostile_name());
		if (feature == PERFRING_FEATURE_NRCPUS)
			memcpy(to.bytes, (uint32_t[]){HOSTILE_CPUS, HOSTILE_CPUS}, 8);
		cr_assert_eq(
			perfring_file_writer_put_feature(writer, feature, to.size ? to.bytes : (unsigned char[]){0}, to.size),
			0, "%s", hostile_features[i].name);
		free(to.bytes);
	}
	put_tracing_data(writer);
}

/* ---- every kind of record that has a string ---- */

static struct perfring_string string_of(const char *text)
{
	return (struct perfring_string){.data = text, .size = (uint32_t)strlen(text)};
}

static struct perfring_string every_byte;

#define IS_string(place) ((place) = every_byte, is_text = true)
/* no more fits there */
#define IS_text64(place) ((place) = every_byte, (place).size = 60, is_text = true)
#define IS_text512(place) IS_string(place)
#define IS_u16(place) (void)0
#define IS_u32(place) (void)0
#define IS_u64(place) (void)0
#define IS_id128(place) (void)0
#define IS_tag(place) (void)0
#define IS_list(place) (void)0
#define IS_links(place) (void)0
#define IS_read(place) (void)0
#define IS_poke(place) (void)0
#define IS_rest(place) (void)0
#define IS_words(place) (void)0
#define IS_attr(place) (void)0
#define IS_build_id(place) (void)0
#define IS_blob(place) (void)0
#define IS_index(place) (void)0
#define IS_threads(place) (void)0
#define IS_cpu_map(place) (void)0
#define IS_conv(place) (void)0
#define IS_metadata(place) (void)0

static void put(struct perfring_file_writer *writer, const struct perfring_record *record)
{
	cr_assert_eq(perfring_file_writer_put(writer, 0, record), 0, "a record of kind %u", record->type);
}

static void put_records(struct perfring_file_writer *writer)
{
	struct perfring_record record;

#define PERFRING_RECORD(NAME, number, noun) \
	{ \
		struct perfring_record_##noun *is = &record.is.noun; \
		bool is_text = false; \
\
		memset(&record, 0, sizeof(record)); \
		record.type = number; \
		if (number == PERFRING_RECORD_EVENT_UPDATE) \
			record.is.event_update.type = PERFRING_EVENT_UPDATE_UNIT; \
		(void)is;
#define PERFRING_MEMBER(kind, member, show) IS_##kind(is->member);
#define PERFRING_RECORD_END(NAME, number, noun) \
	if (is_text) \
		put(writer, &record); \
	}
#include <perfring/records.def>
}

/* Threads by every part of the name that fits into a comm. */
static void put_comms(struct perfring_file_writer *writer, const struct perfring_format *format)
{
	const char *name = hostile_name();
	struct perfring_record record;
	struct perfring_sample sample = {.ip = 0x7f0000002010, .pid = 100, .time = 1000};
	unsigned char buffer[512];
	struct iovec piece = {.iov_base = buffer};

	memset(&record, 0, sizeof(record));
	record.type = PERFRING_RECORD_MMAP2;
	record.misc = PERFRING_RECORD_MISC_USER;
	record.is.mmap2.pid = record.is.mmap2.tid = 100;
	record.is.mmap2.addr = 0x7f0000000000;
	record.is.mmap2.len = 0x10000;
	record.is.mmap2.prot = 5;
	record.is.mmap2.filename = string_of(object);
	put(writer, &record);
	for (uint32_t i = 0; i * 15 < strlen(name); i++) {
		char comm[16] = "";

		strncat(comm, name + i * 15, 15);
		memset(&record, 0, sizeof(record));
		record.type = PERFRING_RECORD_COMM;
		record.is.comm.pid = 100;
		record.is.comm.tid = 100 + i;
		record.is.comm.comm = string_of(comm);
		put(writer, &record);
		sample.tid = 100 + i;
		sample.id = sample.identifier = 7;
		sample.misc = PERFRING_RECORD_MISC_USER;
		piece.iov_len = (size_t)perfring_sample_encode(format, &sample, buffer, sizeof(buffer));
		cr_assert_leq(piece.iov_len, sizeof(buffer));
		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
	}
}

static void put_tracepoints(struct perfring_file_writer *writer, const struct perfring_format *format)
{
	unsigned char payload[8 + 252] = {0}, buffer[1024];
	struct perfring_sample sample = {.ip = 0xffffffff81000000, .pid = 100, .tid = 100, .time = 2000};
	struct iovec piece = {.iov_base = buffer};

	memcpy(payload, &(uint16_t){4242}, 2);
	memcpy(payload + 8, hostile_name(), 251);
	sample.misc = PERFRING_RECORD_MISC_KERNEL;
	sample.raw.data = payload;
	sample.raw.size = sizeof(payload);
	for (uint64_t id = 8; id < 10; id++) {
		sample.id = sample.identifier = id;
		piece.iov_len = (size_t)perfring_sample_encode(format, &sample, buffer, sizeof(buffer));
		cr_assert_leq(piece.iov_len, sizeof(buffer));
		cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
	}
}

static void write_recording(void)
{
	struct perf_event_attr clock = attr_of(PERFRING_TYPE_SOFTWARE, PERFRING_COUNT_SW_CPU_CLOCK),
			       sound = attr_of(PERFRING_TYPE_TRACEPOINT, 4242),
			       damaged = attr_of(PERFRING_TYPE_TRACEPOINT, 4343);
	struct perfring_file_writer *writer;
	struct perfring_format formats[2];
	int fd = open(plain, O_RDWR | O_CREAT | O_TRUNC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_format_from_attr(&formats[0], &clock), 0);
	cr_assert_eq(perfring_format_from_attr(&formats[1], &sound), 0);
	cr_assert_eq(perfring_file_writer_open(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &clock, hostile_name()), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &sound, hostile_name()), 1);
	cr_assert_eq(perfring_file_writer_add_id(writer, 1, 8), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &damaged, hostile_name()), 2);
	cr_assert_eq(perfring_file_writer_add_id(writer, 2, 9), 0);
	cr_assert_eq(perfring_file_writer_add_group(writer, hostile_name(), 0, 3), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	every_byte = string_of(hostile_name());
	put_records(writer);
	put_comms(writer, &formats[0]);
	put_tracepoints(writer, &formats[1]);
	put_features(writer);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	close(fd);
	cr_assert_eq(symlink(plain, odd), 0);
}

static void make(void)
{
	snprintf(folder, sizeof(folder), "/tmp/terminal_test.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(plain, sizeof(plain), "%s/plain.data", folder);
	snprintf(object, sizeof(object), "%s/o%s", folder, hostile_name());
	object[strlen(object) - 1] = 0; /* 255 bytes are the longest name */
	snprintf(odd, sizeof(odd), "%s/%s", folder, hostile_name());
	write_object();
	write_recording();
}

/* ---- what the tool says ---- */

static void show(const unsigned char *bytes, size_t size, size_t at)
{
	size_t from = at > 60 ? at - 60 : 0;

	fprintf(stderr, "byte %02x at %zu, after: ", bytes[at], at);
	for (; from < at && from < size; from++)
		fputc(bytes[from] >= 0x20 && bytes[from] < 0x7f ? bytes[from] : '.', stderr);
	fputc('\n', stderr);
}

/* Lines of printable ASCII; of JSON, of UTF-8 without a character that a terminal obeys. */
static bool is_harmless(const unsigned char *bytes, size_t size, bool is_json)
{
	for (size_t at = 0; at < size; at++) {
		unsigned char byte = bytes[at];

		if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f))
			continue;
		if (is_json && byte >= 0xc2 && byte < 0xe0 && at + 1 < size && bytes[at + 1] >= 0x80 &&
		    bytes[at + 1] < 0xc0 && !(byte == 0xc2 && bytes[at + 1] < 0xa0)) {
			at++;
			continue;
		}
		show(bytes, size, at);
		return false;
	}
	return true;
}

/* Runs the tool, and holds stdout and stderr to that; `out` and `err` must be in them (NULL: anything, even nothing). */
static void says(int line, const char *out, const char *err, bool is_json, char *const arguments[])
{
	struct hostile_run run;

	hostile_tool(&run, 60, arguments);
	cr_assert_lt(run.status, 3, "line %d: status %d: %s", line, run.status, (char *)run.err);
	cr_assert(is_harmless(run.out, run.out_size, is_json), "line %d: stdout", line);
	cr_assert(is_harmless(run.err, run.err_size, false), "line %d: stderr", line);
	cr_assert(!out || strstr((char *)run.out, out), "line %d: %s", line, (char *)run.out);
	cr_assert(!err || strstr((char *)run.err, err), "line %d: %s", line, (char *)run.err);
	hostile_leave(&run);
}

#define SAYS(out, err, is_json, ...) says(__LINE__, out, err, is_json, (char *[]){__VA_ARGS__, NULL})

/* Of a file, an event or an argument; and as it is shown. */
#define NAME \
	"\033]0;T\a\xc2\x9b" \
	"31m\b\x7f"
#define ESCAPED "\\x1b]0;T\\x07\\xc2\\x9b31m\\x08\\x7f"

Test(terminal, names_in_a_file)
{
	make();
	SAYS(ESCAPED, NULL, false, "dump", "--header-only", "-I", plain);
	SAYS(ESCAPED, NULL, false, "dump", "--header-only", plain);
	SAYS(ESCAPED, "tracepoint '\\x01", false, "dump", plain);
	SAYS(ESCAPED, NULL, false, "dump", "--raw", plain);
	SAYS(ESCAPED, NULL, false, "dump", "--stats", plain);
	SAYS(ESCAPED, NULL, false, "dump", "-F", "comm,dso,sym,symoff,event,callchain,raw,trace", plain);
	SAYS(ESCAPED, NULL, false, "dump", "-F", "trace", plain);
	SAYS(ESCAPED, NULL, false, "report", plain);
	SAYS(ESCAPED, NULL, false, "report", "--sort", "dso", plain);
	SAYS(NULL, NULL, false, "report", "--sort", "pid,trace", "-w", "0,9,9", plain);
	SAYS(ESCAPED, "tracepoint '\\x01", false, "script", "--show-mmap-events", "--show-task-events", plain);
	SAYS(NULL, NULL, false, "script", "--show-namespace-events", "--show-bpf-events", "--show-cgroup-events", plain);
	SAYS(ESCAPED, NULL, false, "evlist", plain);
	SAYS(ESCAPED, NULL, false, "buildid-list", plain);
	SAYS(NULL, NULL, false, "check", "--all", plain);
	remove_folder();
}

Test(terminal, names_in_json)
{
	char out[128];

	make();
	snprintf(out, sizeof(out), "%s/out.json", folder);
	SAYS(NULL, NULL, false, "convert", "--json", plain, out);
	SAYS("\\u001b]0;T\\u0007\\u009b31m\\u0008\\u007f", NULL, true, "convert", "--json", plain, "-");
	remove_folder();
}

Test(terminal, the_files_own_name)
{
	char absent[512], out[128], named[512], event[128];

	make();
	snprintf(absent, sizeof(absent), "%s/absent " NAME "\x9b", folder);
	snprintf(out, sizeof(out), "%s/out.data", folder);
	SAYS(NULL, ESCAPED, false, "dump", absent);
	SAYS(NULL, ESCAPED, false, "report", absent);
	SAYS(NULL, ESCAPED, false, "script", absent);
	SAYS(NULL, ESCAPED, false, "buildid-list", absent);
	SAYS(NULL, ESCAPED, false, "check", absent);
	SAYS(NULL, ESCAPED, false, "convert", absent, out);
	SAYS(NULL, ESCAPED, false, "ring", absent);
	SAYS(NULL, ESCAPED, false, "record", "-e", "cpu-clock", "-o", out, "--", absent);
	SAYS(NULL, ESCAPED, false, "record", "-e", absent, "-o", out, "--", "true");
	SAYS(NULL, ESCAPED, false, "stat", "-e", "page-faults", "--", absent);
	SAYS(NULL, ESCAPED, false, absent);
	/* one that is written */
	snprintf(named, sizeof(named), "%s/out" NAME ".data", folder);
	snprintf(event, sizeof(event), "page-faults/name=e" NAME "/u");
	SAYS(NULL, "bytes in ", false, "record", "-e", "page-faults:u", "-o", named, "--", "true");
	SAYS(NULL, ESCAPED ".data; lost", false, "record", "-e", "page-faults:u", "-o", named, "--", "true");
	SAYS(NULL, ESCAPED ".data.2", false, "record", "-e", "page-faults:u", "--switch-output=1s", "-o", named, "--", "sleep",
	     "1.2");
	SAYS(NULL, ESCAPED ".data.2", false, "record", "-e", "page-faults:u", "--snapshot", "-o", named, "--", "sh", "-c",
	     "sleep 0.3; kill -USR2 $PPID; sleep 0.3");
	/* what is counted */
	SAYS(NULL, ESCAPED "':", false, "stat", "-e", "page-faults:u", "--", "sh", "-c", "true", "argument" NAME);
	SAYS(NULL, "     e\\x1b]0;T", false, "stat", "-e", event, "--", "true");
	SAYS(NULL, ",,e" ESCAPED ",", false, "stat", "-x,", "-e", event, "--", "true");
	SAYS(NULL, "e" ESCAPED ": ", false, "stat", "-v", "-e", event, "--", "true");
	SAYS(NULL, "e" ESCAPED, false, "record", "-e", event, "--filter", "x > 1", "-o", out, "--", "true");
	SAYS(ESCAPED, NULL, false, "check", odd);
	SAYS(NULL, NULL, false, "dump", "--header", odd);
	SAYS(NULL, NULL, false, "report", odd);
	SAYS(NULL, NULL, false, "ring", odd);
	/* one that is damaged */
	cr_assert_eq(truncate(plain, 1500), 0);
	SAYS(NULL, ESCAPED, false, "dump", odd);
	SAYS(ESCAPED, NULL, false, "check", odd);
	SAYS(NULL, ESCAPED, false, "report", odd);
	remove_folder();
}

/* A thread names itself. */
Test(terminal, the_name_of_a_process)
{
	const char *name = hostile_name();
	char pid[16];

	for (size_t at = 0; at < strlen(name); at += 15) {
		int ready[2];
		char byte;
		pid_t child;

		cr_assert_eq(pipe(ready), 0);
		child = fork();
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, name + at);
			if (write(ready[1], "", 1) == 1)
				pause();
			_exit(1);
		}
		cr_assert_eq(read(ready[0], &byte, 1), 1);
		close(ready[0]);
		close(ready[1]);
		snprintf(pid, sizeof(pid), "%d", child);
		SAYS(NULL, pid, false, "stat", "--per-thread", "-p", pid, "-e", "page-faults", "--", "true");
		SAYS(NULL, pid, false, "stat", "-x,", "--per-thread", "-p", pid, "-e", "page-faults", "--", "true");
		SAYS(NULL, pid, false, "stat", "--json", "--per-thread", "-p", pid, "-e", "page-faults", "--", "true");
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, NULL, 0), child);
	}
}
