/* conformance.c - what each binding must say of the same files and rings: one line for each record.  conformance.cc, the crate's
 * example conformance.rs and python_dump.py say the same in their language, by their binding.
 *
 *     conformance file FILE...      each record of perf.data files, the events' names, and how each file ended
 *     conformance ring              20 000 samples through a ring of 64 KiB, which is full at times
 *     conformance make FILE         a ring in a file, with 300 of these samples
 *     conformance fill FILE         a full ring in a file, with LOST
 *     conformance attach FILE       what such a file holds
 *     conformance session FILE      the same by a session
 *     conformance sum FILE PASSES   the sum of the samples' periods, and the least CPU time of a pass in ns
 *     conformance profile FILE      collapsed stacks of one frame, the sample's address, by threads' names (not Rust)
 *
 * and for Python, whose lines have threads' names, and the records' text instead of their members:
 *
 *     conformance items|samples FILE...     to the first error     conformance ring FILE     conformance layout
 *
 * A line: kind, time, size, event, then each member that the record has; of lists and bytes their number and a sum. */
#include <fcntl.h>
#include <inttypes.h>
#include <perfring/build_id.h>
#include <perfring/callchain.h>
#include <perfring/config.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/profile.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/rows.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/symbol.h>
#include <perfring/text.h>
#include <perfring/writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if PERFRING_HAS_SOFT
#include <perfring/soft.h>
#endif

static const struct perfring_format own = {.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
							  PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD |
							  PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_RAW};

/* For Python; else NULL. */
static struct perfring_maps *maps;

static void print_number(bool has, const char *name, uint32_t number)
{
	if (has)
		printf(" %s=%" PRId32, name, (int32_t)number);
}

static void print_word(bool has, const char *name, uint64_t word)
{
	if (has)
		printf(" %s=%" PRIu64, name, word);
}

static void print_words(bool has, const char *name, const struct perfring_list *list)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; has && i < list->nr; i++)
		sum = sum * 31 + list->words[i];
	if (has)
		printf(" %s=%" PRIu64 "/%" PRIu64, name, list->nr, sum);
}

static void print_bytes(bool has, const char *name, const unsigned char *bytes, uint64_t size)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; has && i < size; i++)
		sum = sum * 31 + bytes[i];
	if (has)
		printf(" %s=%" PRIu64 "/%" PRIu64, name, size, sum);
}

static void print_frames(const struct perfring_sample *sample)
{
	struct perfring_callchain chain = perfring_callchain_init(&sample->callchain);
	struct perfring_frame frame;
	uint64_t nr = 0, sum = 0;
	int one;

	for (; (one = perfring_callchain_next(&chain, &frame)) == 1; nr++)
		sum = (sum * 31 + frame.context) * 31 + frame.ip;
	printf(" frames=%" PRIu64 "/%" PRIu64, nr, sum);
	if (one < 0)
		printf(" at %" PRIu64 " deferred marker without a cookie", chain.at - 1);
}

static void print_sample(const struct perfring_sample *sample)
{
	uint64_t has = sample->present;
	const char *comm;

	if (maps && has & PERFRING_SAMPLE_TID) {
		comm = perfring_maps_comm(maps, sample->tid);
		if (comm)
			printf(" comm=%s", comm);
		else
			printf(" comm=:%" PRId32, (int32_t)sample->tid);
	}
	print_number(has & PERFRING_SAMPLE_TID, "pid", sample->pid);
	print_number(has & PERFRING_SAMPLE_TID, "tid", sample->tid);
	print_number(has & PERFRING_SAMPLE_CPU, "cpu", sample->cpu);
	print_word(has & PERFRING_SAMPLE_TIME, "time", sample->time);
	print_word(has & PERFRING_SAMPLE_IP, "ip", sample->ip);
	print_word(has & PERFRING_SAMPLE_ADDR, "addr", sample->addr);
	print_word(has & PERFRING_SAMPLE_PERIOD, "period", sample->period);
	print_words(has & PERFRING_SAMPLE_CALLCHAIN, "callchain", &sample->callchain);
	print_word(has & PERFRING_SAMPLE_IDENTIFIER, "identifier", sample->identifier);
	print_word(has & PERFRING_SAMPLE_ID, "id", sample->id);
	print_word(has & PERFRING_SAMPLE_STREAM_ID, "stream_id", sample->stream_id);
	print_word(has & PERFRING_SAMPLE_WEIGHT, "weight", sample->weight);
	print_word(has & PERFRING_SAMPLE_DATA_SRC, "data_src", sample->data_src);
	print_word(has & PERFRING_SAMPLE_TRANSACTION, "transaction", sample->transaction);
	print_word(has & PERFRING_SAMPLE_PHYS_ADDR, "phys_addr", sample->phys_addr);
	print_word(has & PERFRING_SAMPLE_CGROUP, "cgroup", sample->cgroup);
	print_word(has & PERFRING_SAMPLE_DATA_PAGE_SIZE, "data_page_size", sample->data_page_size);
	print_word(has & PERFRING_SAMPLE_CODE_PAGE_SIZE, "code_page_size", sample->code_page_size);
	print_word(true, "present", has);
	print_word(true, "misc", sample->misc);
	print_bytes(has & PERFRING_SAMPLE_RAW, "raw", sample->raw.data, sample->raw.size);
	if (maps)
		return;
	print_bytes(has & PERFRING_SAMPLE_STACK_USER, "stack", sample->stack_user.data, sample->stack_user.dyn_size);
	if (has & PERFRING_SAMPLE_WEIGHT_STRUCT)
		printf(" weight_struct=%" PRIu32 "/%u/%u", sample->weight_struct.var1, sample->weight_struct.var2,
		       sample->weight_struct.var3);
	if (has & PERFRING_SAMPLE_CALLCHAIN)
		print_frames(sample);
}

static void print_string(const char *name, const struct perfring_string *text)
{
	printf(" %s=%.*s", name, (int)text->size, text->data);
}

/* What the record itself says, of kinds that each binding has. */
static void print_members(const struct perfring_record *record)
{
	if (record->type == PERFRING_RECORD_COMM)
		print_string("comm", &record->is.comm.comm);
	if (record->type == PERFRING_RECORD_FORK || record->type == PERFRING_RECORD_EXIT)
		printf(" ppid=%" PRIu32 " ptid=%" PRIu32 " time=%" PRIu64, record->is.fork.ppid, record->is.fork.ptid,
		       record->is.fork.time);
	if (record->type == PERFRING_RECORD_MMAP || record->type == PERFRING_RECORD_MMAP2) {
		bool is_2 = record->type == PERFRING_RECORD_MMAP2;

		print_word(true, "addr", is_2 ? record->is.mmap2.addr : record->is.mmap.addr);
		print_word(true, "len", is_2 ? record->is.mmap2.len : record->is.mmap.len);
		print_word(true, "pgoff", is_2 ? record->is.mmap2.pgoff : record->is.mmap.pgoff);
		print_bytes(is_2 && record->is.mmap2.file.has_build_id, "build_id", record->is.mmap2.file.build_id,
			    record->is.mmap2.file.build_id_size);
		print_string("filename", is_2 ? &record->is.mmap2.filename : &record->is.mmap.filename);
	}
	print_word(record->type == PERFRING_RECORD_LOST, "lost", record->is.lost.lost);
}

static void print_other(const struct perfring_record *record)
{
	bool has_thread = record->trailer.present & PERFRING_SAMPLE_TID;
	uint32_t pid = record->trailer.pid, tid = record->trailer.tid;

	switch (record->type) {
#define OF(NAME, noun) \
	case PERFRING_RECORD_##NAME: \
		has_thread = true; \
		pid = record->is.noun.pid; \
		tid = record->is.noun.tid; \
		break;
		OF(COMM, comm)
		OF(FORK, fork)
		OF(EXIT, exit)
		OF(MMAP, mmap)
		OF(MMAP2, mmap2)
	}
	print_number(has_thread, "pid", pid);
	print_number(has_thread, "tid", tid);
	print_number(record->trailer.present & PERFRING_SAMPLE_CPU, "cpu", record->trailer.cpu);
}

static void print_event(const char *name, const struct perfring_format *format)
{
	if (name)
		printf(" event=%s", name);
	else if (format && !maps)
		printf(" event=%" PRIu32, format->index);
}

static void print_head(const struct perfring_item *item)
{
	const perfring_header *header = (const perfring_header *)item->record;
	const char *name = perfring_record_name(header->type);

	if (name)
		printf("%s", name);
	else
		printf("%" PRIu32, header->type);
	printf(" at=%" PRIu64 " size=%u", item->time, header->size);
}

/* event: its name; NULL: not known.  For Python a damaged sample is an error, and another damaged record has a text that says so. */
static int print(const struct perfring_item *item, const char *event, bool samples_only, struct perfring_fault *fault)
{
	uint32_t type = ((const perfring_header *)item->record)->type;
	bool is_sample = type == PERFRING_RECORD_SAMPLE, is_decoded = !is_sample || item->format;
	static char text[1 << 20];
	struct perfring_record record;
	struct perfring_sample sample;
	int ret = 0;

	if (is_decoded)
		ret = is_sample ? perfring_sample_decode(item->format, item->record, &sample, fault)
				: perfring_record_decode(item->format, item->record, &record, fault);
	if (ret && !maps)
		printf("damaged %" PRIu32 " %d %" PRId64 " %s\n", type, ret, fault->at, fault->what);
	if (ret && (!maps || is_sample))
		return ret;
	is_decoded = is_decoded && !ret;
	if (maps && is_decoded && !is_sample)
		perfring_maps_take_record(maps, &record);
	if (samples_only && !(is_sample && is_decoded))
		return 0;
	print_head(item);
	if (is_decoded && !is_sample)
		print_other(&record);
	print_event(event, item->format);
	if (is_decoded && is_sample)
		print_sample(&sample);
	else if (is_decoded && !maps)
		print_members(&record);
	if (maps && !(is_sample && is_decoded)) {
		perfring_record_text(item->format, item->record, text, sizeof(text));
		printf(" %s", text);
	}
	printf("\n");
	return 0;
}

static void ended(const char *how, int code, const struct perfring_fault *fault)
{
	bool has_place = code == -EBADMSG || code == -EOPNOTSUPP;

	if (maps && code)
		has_place ? printf("at 0x%" PRIx64 ": %s\n", (uint64_t)fault->at, fault->what)
			  : printf("%s\n", strerror(-code));
	else if (!maps && has_place)
		printf("%s %d %" PRId64 " %s\n", how, code, fault->at, fault->what);
	else if (!maps)
		printf("%s %d\n", how, code);
}

/* A record with an error is skipped; for Python an error is the end. */
static void of_file(const char *path, bool samples_only)
{
	struct perfring_file *file;
	struct perfring_fault fault = {0, ""};
	struct perfring_item item;
	int ret = perfring_file_open(&file, path), one = ret;

	if (ret && file)
		fault = perfring_file_fault(file);
	while (!ret) {
		item.record = NULL;
		one = perfring_file_next(file, &item);
		if (one == 1) {
			one = print(&item, item.format ? perfring_file_event_name(file, item.format->index) : NULL,
				    samples_only, &fault);
			if (!one || !maps)
				continue;
			fault.at += perfring_file_position(file);
			break;
		}
		if (one < 0)
			fault = perfring_file_fault(file);
		if (one == 0 || !item.record || maps)
			break;
		printf("skipped %" PRIu32 " %u, ", ((const perfring_header *)item.record)->type,
		       ((const perfring_header *)item.record)->size);
		ended("why", one, &fault);
	}
	for (uint32_t i = 0; !ret && !maps && perfring_file_event_name(file, i); i++)
		printf("event %" PRIu32 " %s\n", i, perfring_file_event_name(file, i));
	ended(ret ? "open" : "end", one, &fault);
	perfring_file_close(file);
}

/* Sample i of every ring: of 80 to 164 bytes. */
static int put(struct perfring_writer *writer, uint64_t i)
{
	uint64_t words[8], n = i % 9;
	unsigned char bytes[13];
	struct perfring_sample sample;
	struct perfring_claim claim;
	int64_t size;
	void *space;

	for (uint64_t k = 0; k < 8; k++)
		words[k] = k ? i * 31 + k : (uint64_t)PERFRING_CONTEXT_USER;
	for (uint64_t k = 0; k < sizeof(bytes); k++)
		bytes[k] = (unsigned char)(i + k);
	sample.misc = PERFRING_RECORD_MISC_USER;
	sample.trailing_size = 0;
	sample.ip = i * 4099;
	sample.pid = 1;
	sample.tid = (uint32_t)(i % 7);
	sample.time = i * 10 + 1;
	sample.period = i ^ 0x55;
	sample.callchain.words = words;
	sample.callchain.nr = n > 8 ? 8 : n;
	sample.raw = perfring_raw_of(bytes, (uint32_t)(i % 14));
	size = perfring_sample_size(&own, &sample);
	if (size < 0 || !(space = perfring_writer_reserve(writer, NULL, (uint64_t)size, &claim)))
		return 0;
	perfring_sample_encode(&own, &sample, space, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return 1;
}

static void drain(struct perfring_reader *reader, bool shows)
{
	struct perfring_item item = {.format = &own};
	int64_t there = perfring_reader_observe(reader);
	int one = there < 0 ? (int)there : 0;
	struct perfring_fault fault;

	while (there >= 0 && (one = perfring_reader_next(reader, &item.record)) == 1) {
		item.time = perfring_format_time_of(&own, item.record);
		if (shows)
			print(&item, NULL, false, &fault);
	}
	if (one < 0)
		printf("corrupt %d %" PRId64 " %s\n", one, reader->fault.at, reader->fault.what);
	perfring_reader_return(reader);
}

static int of_ring(void)
{
	struct perfring_ring_options options = {.pages = 16};
	struct perfring_writer *writer;
	struct perfring_reader reader;
	struct perfring_ring ring;
	int accepted = 0;

	if (perfring_ring_create(&ring, &options) || perfring_writer_open(&writer, &ring, NULL) ||
	    perfring_reader_open(&reader, &ring, 0))
		return 1;
	for (uint64_t i = 0; i < 20000; i++) {
		accepted += put(writer, i);
		if (i % 700 == 699)
			drain(&reader, true);
	}
	drain(&reader, true);
	printf("accepted %d\n", accepted);
	perfring_reader_close(&reader);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return 0;
}

/* What is more than a ring holds is read from time to time, and the ring is full at the end. */
static int make(const char *path, int count)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
					     .size = sizeof(attr),
					     .config = PERF_COUNT_SW_BPF_OUTPUT,
					     .sample_type = own.sample_type,
					     .sample_id_all = 1,
					     .use_clockid = 1,
					     .clockid = CLOCK_MONOTONIC};
	struct perfring_ring_options options = {
		.pages = 16, .file = path, .flags = PERFRING_RING_REPLACE, .attr = &attr, .id = 7};
	struct perfring_writer *writer;
	struct perfring_reader reader;
	struct perfring_ring ring;
	int accepted = 0;

	if (perfring_ring_create(&ring, &options) || perfring_writer_open(&writer, &ring, NULL) ||
	    perfring_reader_open(&reader, &ring, 0))
		return 1;
	for (int i = 0; i < count; i++) {
		accepted += put(writer, (uint64_t)i);
		if (i % 1000 == 999 && i + 1 < count)
			drain(&reader, false);
	}
	perfring_reader_close(&reader);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return count == 300 ? accepted != 300 : accepted == count;
}

static int attach(const char *path)
{
	struct perfring_reader reader;
	struct perfring_fault fault = {0, ""};
	struct perfring_ring ring;
	int fd = open(path, O_RDWR | O_CLOEXEC), ret = perfring_ring_attach(&ring, fd, 0, &fault);

	close(fd);
	if (ret) {
		printf("attach %d %" PRId64 " %s\n", ret, fault.at, fault.what);
		return 0;
	}
	if (perfring_reader_open(&reader, &ring, 0))
		return 1;
	drain(&reader, true);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return 0;
}

static int of_session(const char *path)
{
	struct perfring_session *session;
	struct perfring_totals totals;
	struct perfring_fault fault;
	struct perfring_ring ring;
	struct perfring_item item;
	int fd = open(path, O_RDWR | O_CLOEXEC), event, number, one;
	char name[256];

	if (perfring_ring_attach(&ring, fd, 0, NULL) || perfring_session_open(&session, 0))
		return 1;
	close(fd);
	event = perfring_session_describe_ring(session, &ring);
	number = perfring_session_add_ring(session, &ring, -1, PERFRING_READER_COPY);
	if (event < 0 || number < 0)
		return 1;
	if (!maps) {
		printf("event %d, ring %d\n", event, number);
		event = perfring_session_describe_ring(session, &ring);
		printf("once more %d %s\n", event, perfring_session_refusal(session));
	}
	perfring_session_flush(session);
	while ((one = perfring_session_next(session, &item)) == 1) {
		if (item.format)
			perfring_event_name(
				perfring_format_set_attr(perfring_session_formats(session), item.format->index), name,
				sizeof(name));
		print(&item, maps && item.format ? name : NULL, false, &fault);
	}
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	if (!maps)
		printf("end %d, %" PRIu64 " records, %" PRIu64 " samples\n", one, totals.records, totals.samples);
	perfring_session_close(session);
	perfring_ring_close(&ring);
	return one != 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int sum_up(const char *path, int passes)
{
	uint64_t least = UINT64_MAX, sum = 0, begin, took;
	struct perfring_sample sample;
	struct perfring_file *file;
	struct perfring_item item;

	for (int i = 0; i < passes; i++) {
		sum = 0;
		begin = now();
		if (perfring_file_open(&file, path))
			return 1;
		while (perfring_file_next(file, &item) == 1)
			if (item.record->type == PERFRING_RECORD_SAMPLE && item.format &&
			    !perfring_sample_decode(item.format, item.record, &sample, NULL))
				sum += sample.period;
		perfring_file_close(file);
		took = now() - begin;
		least = took < least ? took : least;
	}
	printf("%" PRIu64 " %" PRIu64 "\n", sum, least);
	return 0;
}

static int profile(const char *path)
{
	const uint64_t needed =
		PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD;
	struct perfring_profile *profile;
	struct perfring_sample sample;
	struct perfring_file *file;
	struct perfring_maps *maps;
	struct perfring_item item;
	int64_t event, thread, frame, stack;
	char name[32];
	int ret;

	if (perfring_file_open(&file, path) || perfring_maps_open(&maps) || perfring_profile_open(&profile, NULL))
		return 1;
	event = perfring_profile_add_event(profile, &(struct perfring_profile_event){.name = "all", .unit = "ns"});
	while (perfring_file_next(file, &item) == 1) {
		if (item.record->type != PERFRING_RECORD_SAMPLE) {
			perfring_maps_take(maps, &item);
			continue;
		}
		if (!item.format || perfring_sample_decode(item.format, item.record, &sample, NULL))
			continue;
		if ((sample.present & needed) != needed)
			continue;
		snprintf(name, sizeof(name), "0x%" PRIx64, sample.ip);
		thread = perfring_profile_add_thread(
			profile, &(struct perfring_profile_thread){.pid = sample.pid,
								   .tid = sample.tid,
								   .comm = perfring_maps_comm(maps, sample.tid)});
		frame = perfring_profile_add_frame(
			profile, &(struct perfring_profile_frame){.name = name, .address = sample.ip});
		stack = perfring_profile_add_stack(profile, PERFRING_PROFILE_NONE, (uint32_t)frame);
		if (perfring_profile_add_sample(profile,
						&(struct perfring_profile_sample){.time = sample.time,
										  .weight = sample.period,
										  .stack = (uint32_t)stack,
										  .thread = (uint32_t)thread,
										  .event = (uint32_t)event,
										  .cpu = PERFRING_PROFILE_NONE}))
			return 1;
	}
	ret = perfring_profile_write(profile, PERFRING_PROFILE_COLLAPSED, NULL, stdout);
	perfring_profile_close(profile);
	perfring_maps_close(maps);
	perfring_file_close(file);
	return ret != 0;
}

/* ---- layout ---- */

#define SIZE(noun) printf("%s %zu\n", #noun, sizeof(struct perfring_##noun))
#define AT(noun, member) \
	printf("%s.%s %zu %zu\n", #noun, #member, offsetof(struct perfring_##noun, member), \
	       sizeof(((struct perfring_##noun *)0)->member))
#define ATTR(member) \
	printf("attr.%s %zu %zu\n", #member, offsetof(struct perf_event_attr, member), \
	       sizeof(((struct perf_event_attr *)0)->member))
#define NUMBER(name) printf("%s %ld\n", #name, (long)PERFRING_##name)
#define FLAG(name) printf("FLAG %s %d\n", #name, (int)PERFRING_ATTR_FLAG_##name)
#define COLUMN(bit, a) printf("COLUMN %d %s %zu\n", bit, #a, sizeof(*((struct perfring_columns *)0)->a));
#define COLUMN_number(bit, a, b) COLUMN(bit, a)
#define COLUMN_numbers(bit, a, b) COLUMN(bit, a) COLUMN(bit, b)
#define COLUMN_own(bit, a, b)

static void layout(void)
{
	/* In the order of struct perfring_columns, which is theirs but for fields that were added. */
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#include <perfring/fields.def>
	SIZE(fault), AT(fault, at), AT(fault, what);
	SIZE(format), AT(format, sample_type), AT(format, read_format), AT(format, branch_sample_type);
	AT(format, sample_regs_user), AT(format, sample_regs_intr), AT(format, flags), AT(format, index),
		AT(format, least);
	AT(format, trailer), AT(format, sample_id_at), AT(format, sample_time_at), AT(format, trailer_id_back);
	AT(format, trailer_time_back), AT(format, sample_regs_user_nr), AT(format, sample_regs_intr_nr),
		AT(format, arch);
	AT(format, sample_stack_user), AT(format, reserved);
	SIZE(item), AT(item, record), AT(item, format), AT(item, time);
	SIZE(columns);
#undef COLUMN
#define COLUMN(bit, a) AT(columns, a);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(COLUMN_, PERFRING_FIELD_KIND_##kind)(bit, a, b)
#include <perfring/fields.def>
	AT(columns, reserved);
	SIZE(rows), AT(rows, columns), AT(rows, present), AT(rows, event), AT(rows, misc), AT(rows, chain_at),
		AT(rows, chain);
	AT(rows, raw_at), AT(rows, raw), AT(rows, capacity), AT(rows, chain_capacity), AT(rows, raw_capacity);
	AT(rows, count), AT(rows, stops), AT(rows, reserved);
	SIZE(trailer), AT(trailer, present), AT(trailer, identifier), AT(trailer, pid), AT(trailer, tid),
		AT(trailer, time);
	AT(trailer, id), AT(trailer, stream_id), AT(trailer, cpu), AT(trailer, cpu_reserved), AT(trailer, reserved);
	SIZE(string), AT(string, data), AT(string, size), AT(string, space);
	SIZE(file_id), AT(file_id, maj), AT(file_id, min), AT(file_id, ino), AT(file_id, ino_generation);
	AT(file_id, build_id), AT(file_id, build_id_size), AT(file_id, has_build_id);
	SIZE(record), AT(record, type), AT(record, misc), AT(record, size), AT(record, trailing),
		AT(record, trailing_size);
	AT(record, padding), AT(record, trailer);
	printf("record.is_ %zu %zu\n", offsetof(struct perfring_record, is), sizeof(((struct perfring_record *)0)->is));
	SIZE(record_comm), AT(record_comm, reserved_), AT(record_comm, pid), AT(record_comm, tid),
		AT(record_comm, comm);
	SIZE(record_fork), AT(record_fork, reserved_), AT(record_fork, pid), AT(record_fork, ppid),
		AT(record_fork, tid);
	AT(record_fork, ptid), AT(record_fork, time);
	SIZE(record_exit), AT(record_exit, reserved_), AT(record_exit, pid), AT(record_exit, ppid),
		AT(record_exit, tid);
	AT(record_exit, ptid), AT(record_exit, time);
	SIZE(record_lost), AT(record_lost, reserved_), AT(record_lost, id), AT(record_lost, lost);
	SIZE(record_lost_samples), AT(record_lost_samples, reserved_), AT(record_lost_samples, lost);
	SIZE(record_mmap), AT(record_mmap, reserved_), AT(record_mmap, pid), AT(record_mmap, tid),
		AT(record_mmap, addr);
	AT(record_mmap, len), AT(record_mmap, pgoff), AT(record_mmap, filename);
	SIZE(record_mmap2), AT(record_mmap2, reserved_), AT(record_mmap2, pid), AT(record_mmap2, tid),
		AT(record_mmap2, addr);
	AT(record_mmap2, len), AT(record_mmap2, pgoff), AT(record_mmap2, file), AT(record_mmap2, prot),
		AT(record_mmap2, flags);
	AT(record_mmap2, filename);
	SIZE(ring), AT(ring, page), AT(ring, data), AT(ring, size), AT(ring, span), AT(ring, mapping),
		AT(ring, mapping_size);
	AT(ring, flags), AT(ring, fd), AT(ring, padding);
	SIZE(totals), AT(totals, records), AT(totals, samples), AT(totals, bytes), AT(totals, lost),
		AT(totals, lost_samples);
	AT(totals, throttles), AT(totals, unthrottles), AT(totals, late), AT(totals, unknown_ids), AT(totals, corrupt);
	AT(totals, skipped), AT(totals, first_time), AT(totals, last_time), AT(totals, aux), AT(totals, aux_truncated);
	AT(totals, aux_partial), AT(totals, aux_collisions);
	SIZE(maps_object), AT(maps_object, name), AT(maps_object, file), AT(maps_object, kind), AT(maps_object, reserved);
	SIZE(mapping), AT(mapping, addr), AT(mapping, end), AT(mapping, pgoff), AT(mapping, object), AT(mapping, pid);
	AT(mapping, prot);
	SIZE(symbol_file), AT(symbol_file, path), AT(symbol_file, build_id), AT(symbol_file, build_id_size);
	AT(symbol_file, pid), AT(symbol_file, ino), AT(symbol_file, ino_generation), AT(symbol_file, reserved);
	SIZE(symbol), AT(symbol, name), AT(symbol, module), AT(symbol, start), AT(symbol, end), AT(symbol, address);
	AT(symbol, why), AT(symbol, reserved);
	SIZE(symbol_kernel), AT(symbol_kernel, kallsyms), AT(symbol_kernel, vmlinux), AT(symbol_kernel, release);
	AT(symbol_kernel, build_id), AT(symbol_kernel, build_id_size), AT(symbol_kernel, reserved_word);
	AT(symbol_kernel, reference), AT(symbol_kernel, address), AT(symbol_kernel, reserved);
	ATTR(type), ATTR(size), ATTR(config), ATTR(sample_period), ATTR(sample_type), ATTR(read_format),
		ATTR(wakeup_events);
	ATTR(bp_type), ATTR(config1), ATTR(config2), ATTR(branch_sample_type), ATTR(sample_regs_user),
		ATTR(sample_stack_user);
	ATTR(clockid), ATTR(sample_regs_intr), ATTR(aux_watermark), ATTR(sample_max_stack), ATTR(aux_sample_size);
	FLAG(disabled), FLAG(inherit), FLAG(exclude_kernel), FLAG(exclude_hv), FLAG(mmap), FLAG(comm), FLAG(freq),
		FLAG(task);
	FLAG(sample_id_all), FLAG(mmap2), FLAG(comm_exec), FLAG(use_clockid);
	NUMBER(RECORD_MMAP), NUMBER(RECORD_COMM), NUMBER(RECORD_EXIT), NUMBER(RECORD_FORK), NUMBER(RECORD_SAMPLE);
	NUMBER(RECORD_LOST), NUMBER(RECORD_LOST_SAMPLES), NUMBER(RECORD_MISC_FORK_EXEC), NUMBER(RECORD_MMAP2), NUMBER(RECORD_OF_PERF), NUMBER(RECORD_MAX),
		NUMBER(ROWS_CHAIN_MIN), NUMBER(ROWS_RAW_MIN);
	NUMBER(READER_COPY), NUMBER(SESSION_SHRINK), NUMBER(SESSION_RAISE_FILES), NUMBER(FALLBACK_ALL);
#if PERFRING_HAS_SOFT
	NUMBER(SOFT_PROCESS);
#endif
	NUMBER(FEATURE_HOSTNAME), NUMBER(FEATURE_OSRELEASE), NUMBER(SYMBOLS_ELSEWHERE), NUMBER(FEATURE_VERSION), NUMBER(FEATURE_ARCH);
	NUMBER(FEATURE_CPUDESC), NUMBER(FEATURE_CPUID), NUMBER(FEATURE_BUILD_ID);
	NUMBER(RECORD_MISC_KERNEL), NUMBER(RECORD_MISC_USER), NUMBER(MAPS_FILE), NUMBER(MAPS_VDSO), NUMBER(MAPS_KERNEL);
	NUMBER(BUILD_ID_SIZE);
	printf("CALLCHAIN %d\nRAW %d\n", __builtin_ctz(PERFRING_SAMPLE_CALLCHAIN), __builtin_ctz(PERFRING_SAMPLE_RAW));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool samples_only = !strcmp(what, "samples");

	if (argc >= 3 && !strcmp(what, "file")) {
		for (int i = 2; i < argc; i++)
			of_file(argv[i], false);
		return 0;
	}
	if (argc >= 3 && (samples_only || !strcmp(what, "items"))) {
		for (int i = 2; i < argc; i++) {
			if (argc > 3)
				printf("== %s\n", argv[i]);
			perfring_maps_open(&maps);
			of_file(argv[i], samples_only);
			perfring_maps_close(maps);
		}
		return 0;
	}
	if (argc == 2 && !strcmp(what, "ring"))
		return of_ring();
	if (argc == 3 && !strcmp(what, "ring"))
		return perfring_maps_open(&maps) || of_session(argv[2]);
	if (argc == 3 && !strcmp(what, "make"))
		return make(argv[2], 300);
	if (argc == 3 && !strcmp(what, "fill"))
		return make(argv[2], 2000);
	if (argc == 3 && !strcmp(what, "attach"))
		return attach(argv[2]);
	if (argc == 3 && !strcmp(what, "session"))
		return of_session(argv[2]);
	if (argc == 4 && !strcmp(what, "sum"))
		return sum_up(argv[2], atoi(argv[3]));
	if (argc == 3 && !strcmp(what, "profile"))
		return profile(argv[2]);
	if (argc == 2 && !strcmp(what, "layout")) {
		layout();
		return 0;
	}
	fprintf(stderr,
		"usage: conformance file|items|samples FILE... | ring [FILE] | make|fill|attach|session|profile FILE | "
		"sum FILE PASSES | layout\n");
	return 2;
}
