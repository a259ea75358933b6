/* conformance.c - what each binding must say of the same files and rings: one line for each item or record.  conformance.cc and
 * the crate's example conformance.rs say the same in their language, by their binding.
 *
 *     conformance file FILE...      each item of a perf.data file, the events' names, and how it ended
 *     conformance ring              20 000 samples through a ring of 64 KiB, which is full at times
 *     conformance make FILE         a ring in a file, with 300 of these samples
 *     conformance attach FILE       what such a file holds
 *     conformance session FILE      the same by a session
 *     conformance sum FILE PASSES   the sum of the samples' periods, and the least CPU time of a pass in ns
 *     conformance profile FILE      collapsed stacks of one frame, the sample's address, by threads' names (not Rust)
 *
 * A line: kind, event, time, pid, tid, address, period, sum of the callchain, sum of the raw bytes, text. */
#include <fcntl.h>
#include <inttypes.h>
#include <perfring/callchain.h>
#include <perfring/file.h>
#include <perfring/maps.h>
#include <perfring/profile.h>
#include <perfring/reader.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct perfring_format own = {.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
							  PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD |
							  PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_RAW};

static void print(const struct perf_event_header *header, const struct perfring_format *format, uint64_t time)
{
	uint32_t type = ((const perfring_header *)header)->type, pid = 0, tid = 0;
	uint64_t ip = 0, period = 0, chain = 0, raw = 0;
	struct perfring_record record;
	struct perfring_sample sample;
	struct perfring_fault fault = {0, ""};
	struct perfring_string text = {"", 0, 0};
	const char *name = perfring_record_name(type);
	int ret = 0;

	if (type != PERFRING_RECORD_SAMPLE) {
		ret = perfring_record_decode(format, header, &record, &fault);
		if (!ret && (record.trailer.present & PERFRING_SAMPLE_TID)) {
			pid = record.trailer.pid;
			tid = record.trailer.tid;
		}
		if (!ret && type == PERFRING_RECORD_COMM)
			text = record.is.comm.comm;
		if (!ret && type == PERFRING_RECORD_MMAP2) {
			ip = record.is.mmap2.addr;
			text = record.is.mmap2.filename;
		}
		if (!ret && type == PERFRING_RECORD_LOST)
			period = record.is.lost.lost;
	} else if (format) {
		ret = perfring_sample_decode(format, header, &sample, &fault);
		if (!ret && (sample.present & PERFRING_SAMPLE_TID)) {
			pid = sample.pid;
			tid = sample.tid;
		}
		if (!ret && (sample.present & PERFRING_SAMPLE_IP))
			ip = sample.ip;
		if (!ret && (sample.present & PERFRING_SAMPLE_PERIOD))
			period = sample.period;
		if (!ret && (sample.present & PERFRING_SAMPLE_CALLCHAIN)) {
			struct perfring_callchain frames = perfring_callchain_init(&sample.callchain);
			struct perfring_frame frame;

			while (perfring_callchain_next(&frames, &frame) == 1)
				chain += frame.ip ^ frame.context;
			for (uint64_t i = 0; i < sample.callchain.nr; i++)
				chain += sample.callchain.words[i] * (i + 1);
		}
		if (!ret && (sample.present & PERFRING_SAMPLE_RAW))
			for (uint32_t i = 0; i < sample.raw.size; i++)
				raw += ((const unsigned char *)sample.raw.data)[i];
	}
	if (ret) {
		printf("damaged %" PRIu32 " %d %" PRId64 " %s\n", type, ret, fault.at, fault.what);
		return;
	}
	printf("%s %" PRId64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " 0x%" PRIx64 " %" PRIu64 " 0x%" PRIx64 " %" PRIu64
	       " %.*s\n",
	       name ? name : "unknown", format ? (int64_t)format->index : -1, time, pid, tid, ip, period, chain, raw,
	       (int)text.size, text.data);
}

static void of_file(const char *path)
{
	struct perfring_file *file;
	struct perfring_fault fault;
	struct perfring_item item;
	int ret = perfring_file_open(&file, path), one = ret;

	while (!ret && (one = perfring_file_next(file, &item)) == 1)
		print(item.record, item.format, item.time);
	for (uint32_t i = 0; !ret && perfring_file_event_name(file, i); i++)
		printf("event %" PRIu32 " %s\n", i, perfring_file_event_name(file, i));
	if (one == -EBADMSG || one == -EOPNOTSUPP) {
		fault = perfring_file_fault(file);
		printf("%s %d %" PRId64 " %s\n", ret ? "open" : "end", one, fault.at, fault.what);
	} else {
		printf("%s %d\n", ret ? "open" : "end", one);
	}
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

static void drain(struct perfring_reader *reader)
{
	const struct perf_event_header *record;
	int64_t there = perfring_reader_observe(reader);
	int one = there < 0 ? (int)there : 0;

	while (there >= 0 && (one = perfring_reader_next(reader, &record)) == 1)
		print(record, &own, perfring_format_time_of(&own, record));
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
			drain(&reader);
	}
	drain(&reader);
	printf("accepted %d\n", accepted);
	perfring_reader_close(&reader);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return 0;
}

static int make(const char *path)
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
	struct perfring_ring ring;
	int accepted = 0;

	if (perfring_ring_create(&ring, &options) || perfring_writer_open(&writer, &ring, NULL))
		return 1;
	for (uint64_t i = 0; i < 300; i++)
		accepted += put(writer, i);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return accepted != 300;
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
	drain(&reader);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return 0;
}

static int of_session(const char *path)
{
	struct perfring_session *session;
	struct perfring_totals totals;
	struct perfring_ring ring;
	struct perfring_item item;
	int fd = open(path, O_RDWR | O_CLOEXEC), event, number, one;

	if (perfring_ring_attach(&ring, fd, 0, NULL) || perfring_session_open(&session, 0))
		return 1;
	close(fd);
	event = perfring_session_describe_ring(session, &ring);
	number = perfring_session_add_ring(session, &ring, -1, PERFRING_READER_COPY);
	printf("event %d, ring %d\n", event, number);
	event = perfring_session_describe_ring(session, &ring);
	printf("once more %d %s\n", event, perfring_session_refusal(session));
	perfring_session_flush(session);
	while ((one = perfring_session_next(session, &item)) == 1)
		print(item.record, item.format, item.time);
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	printf("end %d, %" PRIu64 " records, %" PRIu64 " samples\n", one, totals.records, totals.samples);
	perfring_session_close(session);
	perfring_ring_close(&ring);
	return 0;
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

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc >= 3 && !strcmp(what, "file")) {
		for (int i = 2; i < argc; i++)
			of_file(argv[i]);
		return 0;
	}
	if (argc == 2 && !strcmp(what, "ring"))
		return of_ring();
	if (argc == 3 && !strcmp(what, "make"))
		return make(argv[2]);
	if (argc == 3 && !strcmp(what, "attach"))
		return attach(argv[2]);
	if (argc == 3 && !strcmp(what, "session"))
		return of_session(argv[2]);
	if (argc == 4 && !strcmp(what, "sum"))
		return sum_up(argv[2], atoi(argv[3]));
	if (argc == 3 && !strcmp(what, "profile"))
		return profile(argv[2]);
	fprintf(stderr,
		"usage: conformance file FILE... | ring | make FILE | attach FILE | session FILE | sum FILE PASSES | profile FILE\n");
	return 2;
}
