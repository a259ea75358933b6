/* recorder.c - a flight recorder: the last 64 KiB of what a program noted, found after it died.
 *
 *     recorder FILE             notes each line of standard input, until it ends or is killed
 *     perfring ring FILE        shows what was noted last, also after kill -9
 *     perfring dump FILE        as any file of perf's, and so do convert, check and report
 */
#include <stdio.h>
#include <time.h>
#include <perfring/sample.h>
#include <perfring/writer.h>

/* A note: when, and what.  The ring has this attr in it, for those who read it. */
static const struct perf_event_attr attr = {
	.type = PERF_TYPE_SOFTWARE,
	.size = sizeof(attr),
	.config = PERF_COUNT_SW_BPF_OUTPUT,
	.sample_type = PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
};
static const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW};

/* In place, in the ring.  Also for signal handlers: a note that they make in the middle of another follows it. */
static bool take_note(struct perfring_writer *writer, const char *text, uint32_t length)
{
	struct perfring_sample sample;
	struct perfring_claim claim;
	int64_t size;
	void *buffer;

	sample.misc = PERFRING_RECORD_MISC_USER;
	sample.time = 0;
	sample.raw = perfring_raw_of(text, length);
	sample.trailing_size = 0;
	size = perfring_sample_size(&format, &sample);
	if (size < 0 || !(buffer = perfring_writer_reserve(writer, NULL, (uint64_t)size, &claim)))
		return false;
	sample.time = perfring_writer_stamp(writer, &claim);
	perfring_sample_encode(&format, &sample, buffer, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

int main(int argc, char **argv)
{
	struct perfring_ring_options options = {
		.pages = 16,
		.flags = PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE | PERFRING_RING_REPLACE,
		.attr = &attr,
	};
	struct perfring_writer_options how = {.stamp = PERFRING_STAMP_CLOCK, .clockid = attr.clockid, .wake_fd = -1};
	struct perfring_writer *writer;
	struct perfring_ring ring;
	char text[1024];
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: recorder FILE\n");
		return 1;
	}
	options.file = argv[1];
	if ((ret = perfring_ring_create(&ring, &options)) || (ret = perfring_writer_open(&writer, &ring, &how))) {
		fprintf(stderr, "recorder: %s: %s\n", argv[1], strerror(-ret));
		return 1;
	}
	while (fgets(text, sizeof(text), stdin))
		if (!take_note(writer, text, (uint32_t)strcspn(text, "\n")))
			fprintf(stderr, "recorder: no space\n");
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return 0;
}
