/* stream.h - rings of our own in sessions: samples with the times and numbers that a test chooses. */
#ifndef STREAM_H
#define STREAM_H

#include <stdlib.h>
#include <string.h>
#include <perfring/session.h>
#include <perfring/writer.h>

/* IDENTIFIER, TIME, ADDR. */
struct stream_sample {
	struct perf_event_header header;
	uint64_t identifier;
	uint64_t time;
	uint64_t number;
};

static inline struct perf_event_attr stream_attr(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = 1, /* CLOCK_MONOTONIC */
	};

	return attr;
}

struct stream {
	struct perfring_ring ring;
	struct perfring_writer *writer; /* NULL: nobody has written yet; it belongs to who writes first */
	uint32_t number;                /* in its session */
	int wake_fd;
	uint64_t id; /* of the last sample that was tried, and its time: what LOST records carry */
	uint64_t time;
};

/* A session that knows ids first .. first + events - 1, each an event of its own. */
static inline struct perfring_session *stream_session(uint64_t first, uint32_t events, uint32_t options)
{
	struct perf_event_attr attr = stream_attr();
	struct perfring_session *session;

	if (perfring_session_open(&session, 0) || perfring_session_configure(session, options, 0))
		abort();
	for (uint32_t i = 0; i < events; i++) {
		uint64_t id = first + i;

		if (perfring_session_describe(session, &attr, &id, 1) != (int)i)
			abort();
	}
	return session;
}

/* A ring of `pages` in the session. */
static inline void stream_open(struct stream *stream, struct perfring_session *session, uint32_t pages, uint32_t flags,
			       uint32_t aux_pages, int wake_fd)
{
	struct perfring_ring_options memory = {.pages = pages, .flags = flags, .aux_pages = aux_pages};
	int number;

	memset(stream, 0, sizeof(*stream));
	stream->wake_fd = wake_fd;
	if (perfring_ring_create(&stream->ring, &memory))
		abort();
	number = perfring_session_add_ring(session, &stream->ring, wake_fd, 0);
	if (number < 0)
		abort();
	stream->number = (uint32_t)number;
}

static inline void stream_trailer(const struct perfring_output *output, void *buffer)
{
	const struct stream *stream = output->data;

	memcpy(buffer, &stream->time, 8);
	memcpy((unsigned char *)buffer + 8, &stream->id, 8);
}

static inline void stream_begin(struct stream *stream)
{
	struct perfring_writer_options writing = {.wake_fd = stream->wake_fd};

	writing.output.id = stream->id;
	writing.output.trailer_size = 16;
	writing.output.trailer = stream_trailer;
	writing.output.data = stream;

	if (!stream->writer && perfring_writer_open(&stream->writer, &stream->ring, &writing))
		abort();
}

static inline void stream_end(struct stream *stream)
{
	if (stream->writer)
		perfring_writer_close(stream->writer);
	stream->writer = NULL;
}

static inline void stream_close(struct stream *stream)
{
	stream_end(stream);
	perfring_ring_close(&stream->ring);
}

/* Whether there was space. */
static inline bool stream_write(struct stream *stream, uint64_t id, uint64_t time, uint64_t number)
{
	struct stream_sample sample = {{.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)}, id, time, number};
	struct perfring_claim claim;
	void *buffer;

	stream->id = id;
	stream->time = time;
	stream_begin(stream);
	buffer = perfring_writer_reserve(stream->writer, NULL, sizeof(sample), &claim);
	if (!buffer)
		return false;
	memcpy(buffer, &sample, sizeof(sample));
	perfring_writer_commit(stream->writer, &claim);
	return true;
}

#endif
