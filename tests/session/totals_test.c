/* totals_test.c - what went by, event by event: samples, throttles and what was lost. */
#include "test.h"

#include <stdlib.h>
#include <time.h>
#include "session/session_private.h"
#include "clocks.h"
#include "stream.h"
#include "storm.h"

TestSuite(totals, .timeout = 60);

/* A record of `type` with these words, and a trailer of TIME and IDENTIFIER. */
static void write_record(struct stream *stream, uint32_t type, const uint64_t *words, uint16_t count, uint64_t time,
			 uint64_t id)
{
	struct perf_event_header header = {.type = type, .size = (uint16_t)(8 + 8 * count + 16)};
	struct perfring_claim claim;
	unsigned char *buffer;

	stream_begin(stream);
	buffer = perfring_writer_reserve(stream->writer, NULL, header.size, &claim);
	cr_assert_not_null(buffer);
	memcpy(buffer, &header, 8);
	memcpy(buffer + 8, words, 8u * count);
	memcpy(buffer + 8 + 8 * count, &time, 8);
	memcpy(buffer + 16 + 8 * count, &id, 8);
	perfring_writer_commit(stream->writer, &claim);
}

static void drain(struct perfring_session *session, bool spans)
{
	struct perfring_span span;
	struct perfring_item item;

	perfring_session_flush(session);
	if (spans)
		while (perfring_session_next_span(session, &span) == 1)
			;
	else
		while (perfring_session_next(session, &item) == 1)
			;
	perfring_session_return(session);
}

/* By next and by spans alike. */
Test(totals, event_by_event)
{
	for (int spans = 0; spans < 2; spans++) {
		static const uint64_t throttle[3] = {1, 100, 100}, lost[2] = {101, 7}, lost_samples[1] = {5};
		struct perfring_session *session = stream_session(100, 3, 0);
		struct perfring_totals totals;
		struct stream streams[2];

		for (int i = 0; i < 2; i++)
			stream_open(&streams[i], session, 4, 0, 0, -1);
		for (uint64_t i = 0; i < 30; i++) {
			stream_write(&streams[i % 2], 100, 1000 + i, i);
			if (i % 3 == 0)
				stream_write(&streams[i % 2], 101, 2000 + i, i);
		}
		write_record(&streams[0], PERF_RECORD_THROTTLE, throttle, 3, 1100, 100);
		write_record(&streams[1], PERF_RECORD_THROTTLE, throttle, 3, 1200, 100);
		write_record(&streams[1], PERF_RECORD_UNTHROTTLE, throttle, 3, 1300, 101);
		write_record(&streams[1], PERF_RECORD_LOST, lost, 2, 2100, 101);
		write_record(&streams[0], PERF_RECORD_LOST_SAMPLES, lost_samples, 1, 2200, 101);
		/* Strangers: an id of nobody. */
		stream_write(&streams[0], 4711, 3000, 1);
		write_record(&streams[0], PERF_RECORD_THROTTLE, throttle, 3, 3000, 4711);
		drain(session, spans);

		cr_assert_eq(perfring_session_event_totals(session, 0, &totals), 0);
		cr_assert_eq(totals.samples, 30);
		cr_assert_eq(totals.records, 32);
		cr_assert_eq(totals.bytes, 30 * 32 + 2 * 48);
		cr_assert_eq(totals.throttles, 2);
		cr_assert_eq(totals.unthrottles, 0);
		cr_assert_eq(totals.first_time, 1000);
		cr_assert_eq(totals.last_time, 1029);
		cr_assert_eq(totals.lost + totals.lost_samples, 0);
		cr_assert_eq(perfring_session_event_totals(session, 1, &totals), 0);
		cr_assert_eq(totals.samples, 10);
		cr_assert_eq(totals.records, 13);
		cr_assert_eq(totals.throttles, 0);
		cr_assert_eq(totals.unthrottles, 1);
		cr_assert_eq(totals.lost, 0, "a LOST record names no loser");
		cr_assert_eq(totals.lost_samples, 5);
		cr_assert_eq(totals.first_time, 2000);
		cr_assert_eq(totals.last_time, 2027);
		cr_assert_eq(perfring_session_event_totals(session, 2, &totals), 0);
		cr_assert_eq(totals.records, 0);
		cr_assert_eq(perfring_session_event_totals(session, 3, &totals), -EINVAL);
		perfring_session_totals(session, &totals);
		cr_assert_eq(totals.samples, 41);
		cr_assert_eq(totals.records, 47);
		cr_assert_eq(totals.lost, 7);
		cr_assert_eq(totals.throttles, 3);
		if (!spans)
			cr_assert_eq(totals.unknown_ids, 2);
		perfring_session_close(session);
		for (int i = 0; i < 2; i++)
			stream_close(&streams[i]);
	}
}

/* An only event has what the session has, and keeps it when it is no longer alone. */
Test(totals, a_second_event_later)
{
	struct perfring_session *session = stream_session(100, 1, 0);
	struct perf_event_attr attr = stream_attr();
	struct perfring_totals totals;
	struct stream stream;
	uint64_t id = 200;

	stream_open(&stream, session, 4, 0, 0, -1);
	for (uint64_t i = 0; i < 20; i++)
		stream_write(&stream, 100, 1000 + i, i);
	drain(session, true);
	cr_assert_eq(perfring_session_event_totals(session, 0, &totals), 0);
	cr_assert_eq(totals.samples, 20);
	cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 1);
	for (uint64_t i = 0; i < 5; i++) {
		stream_write(&stream, 100, 2000 + i, i);
		stream_write(&stream, 200, 2000 + i, i);
	}
	drain(session, true);
	cr_assert_eq(perfring_session_event_totals(session, 0, &totals), 0);
	cr_assert_eq(totals.samples, 25);
	cr_assert_eq(totals.first_time, 1000);
	cr_assert_eq(totals.last_time, 2004);
	cr_assert_eq(perfring_session_event_totals(session, 1, &totals), 0);
	cr_assert_eq(totals.samples, 5);
	cr_assert_eq(totals.first_time, 2000);
	/* The ring goes: what the events have had stays. */
	cr_assert_eq(perfring_session_remove_ring(session, stream.number), 0);
	cr_assert_eq(perfring_session_event_totals(session, 0, &totals), 0);
	cr_assert_eq(totals.samples, 25);
	perfring_session_close(session);
	stream_close(&stream);
}

/* Many rings, each with a span: a round asks each once. */
Test(totals, spans_of_many_rings)
{
	enum {
		MANY = 200
	};
	struct perfring_session *session = stream_session(100, 2, 0);
	struct stream *streams = calloc(MANY, sizeof(*streams));
	struct perfring_span span;
	uint32_t next = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		stream_open(&streams[i], session, 1, 0, 0, -1);
		stream_write(&streams[i], 100, i, i);
	}
	for (int round = 0; round < 3; round++) {
		perfring_session_flush(session);
		for (next = (uint32_t)round; perfring_session_next_span(session, &span) == 1; next++) {
			cr_assert_eq(span.ring, next);
			cr_assert_eq(span.records, 1);
			/* Written meanwhile: the next round's. */
			if (span.ring)
				stream_write(&streams[span.ring], 101, 100 + next, next);
			if (next == 100)
				perfring_session_return(session); /* and go on */
		}
		cr_assert_eq(next, MANY);
		perfring_session_return(session);
		/* What it was written meanwhile nobody has seen. */
		cr_assert_eq(perfring_session_remove_ring(session, (uint32_t)round), 0);
	}
	perfring_session_close(session);
	for (uint32_t i = 0; i < MANY; i++)
		stream_close(&streams[i]);
	free(streams);
}

/* ---- the kernel's ---- */

/* Two events in one ring that is too small: which of them lost how much only read(2) tells. */
Test(totals, lost_by_event)
{
	struct perf_event_attr attr = storm_attr();
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals[2], all;
	struct storm storms[2];

	for (int i = 0; i < 2; i++)
		if (!storm_open(&storms[i]))
			cr_skip_test("%s", storms[i].reason);
	storm_pin(0);
	cr_assert_eq(perfring_session_open(&session, 8), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, "0"), 0);
	for (int i = 0; i < 2; i++) {
		int event = perfring_session_add(session, &attr, target);

		if (event == -EACCES || event == -EPERM || event == -ENOSYS)
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		cr_assert_eq(event, i, "%s", perfring_session_refusal(session));
		cr_assert_eq(perfring_session_put_map(session, (uint32_t)i, storms[i].map), 0);
	}
	perfring_target_close(target);
	cr_assert_eq(perfring_session_ring_count(session), 1);
	for (int round = 0; round < 20; round++) {
		/* 32 KiB hold about 190 records. */
		for (int i = 0; i < 10 + round % 7; i++) {
			cr_assert_geq(storm_run(&storms[0]), 0);
			if (i % 3 == 0)
				cr_assert_geq(storm_run(&storms[1]), 0);
		}
		drain(session, round % 2);
	}
	cr_assert_gt(storms[0].refused, 20);
	cr_assert_gt(storms[1].refused, 10);
	/* The last loss is told by what comes behind it. */
	cr_assert_eq(storm_run(&storms[0]), 0);
	drain(session, false);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(perfring_session_event_totals(session, i, &totals[i]), 0);
		cr_assert_eq(totals[i].lost, storms[i].refused, "event %u", i);
		cr_assert_eq(totals[i].samples, storms[i].number - storms[i].refused, "event %u", i);
	}
	perfring_session_totals(session, &all);
	cr_assert_eq(all.lost, totals[0].lost + totals[1].lost, "by the ring's own records");
	cr_assert_eq(all.samples, totals[0].samples + totals[1].samples);
	cr_assert_eq(all.unknown_ids, 0);
	perfring_session_close(session);
	for (int i = 0; i < 2; i++)
		storm_close(&storms[i]);
}

/* Of a group with FORMAT_GROUP each fd tells of all; a throttled event is told by its name. */
Test(totals, a_group_that_is_throttled)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(clock),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 10000, /* ns: 100 kHz, above what is allowed */
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | 1 << 4 /* LOST */,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	struct perf_event_attr dummy = clock;
	const struct perf_event_attr *attrs[2] = {&clock, &dummy};
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals;
	int event;

	dummy.config = PERF_COUNT_SW_DUMMY;
	dummy.sample_period = 1;
	dummy.disabled = 0;
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	event = perfring_session_add_group(session, attrs, 2, target);
	perfring_target_close(target);
	if (event == -EACCES || event == -EPERM || event == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(event, 0, "%s", perfring_session_refusal(session));
	cr_assert_eq(perfring_session_enable(session), 0);
	burn_by(CLOCK_THREAD_CPUTIME_ID, 200000000);
	cr_assert_eq(perfring_session_disable(session), 0);
	drain(session, true);
	cr_assert_eq(perfring_session_event_totals(session, 0, &totals), 0);
	/* A page holds about 170. */
	cr_assert_geq(totals.samples, 100);
	cr_assert_gt(totals.lost, 100);
	cr_assert_eq(perfring_session_event_totals(session, 1, &totals), 0);
	cr_assert_eq(totals.samples + totals.lost + totals.throttles, 0, "the other has lost nothing");
	perfring_session_close(session);
}
