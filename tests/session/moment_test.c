/* moment_test.c - snapshots of rings that overwrite: the newest records, whole, in order; what the pause costs is counted. */
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include "session/session_private.h"
#include "machine.h"
#include "stream.h"
#include "storm.h"

TestSuite(moment, .timeout = 120);

enum {
	PAGE = 4096,
	FALLS = PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE
};

/* ---- rings of ours ---- */

struct rig {
	struct perfring_session *session;
	struct stream streams[2];
};

/* second: the flags of the second ring. */
static void rig_open_as(struct rig *rig, uint32_t second)
{
	rig->session = stream_session(100, 2, PERFRING_SESSION_BACKWARD);
	stream_open(&rig->streams[0], rig->session, 1, FALLS, 0, -1);
	stream_open(&rig->streams[1], rig->session, 1, second, 0, -1);
}

static void rig_open(struct rig *rig)
{
	rig_open_as(rig, FALLS);
}

static void rig_close(struct rig *rig)
{
	perfring_session_close(rig->session);
	for (int i = 0; i < 2; i++)
		stream_close(&rig->streams[i]);
}

static uint64_t number_of(const struct perfring_item *item)
{
	return ((const struct stream_sample *)(const void *)item->record)->number;
}

static void count_once(uint32_t second)
{
	struct perfring_totals totals;
	struct perfring_item item;
	struct rig rig;

	rig_open_as(&rig, second);
	/* The ring holds 128 of 32 bytes. */
	for (uint64_t i = 0; i < 300; i++)
		cr_assert(stream_write(&rig.streams[i % 2], 100 + i % 2, 1000 + i, i));
	cr_assert_eq(perfring_session_next(rig.session, &item), 0, "before any snapshot");
	cr_assert_eq(perfring_session_wait(rig.session, 0), 0);
	cr_assert_eq(perfring_session_next(rig.session, &item), 0, "a wait is none");
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(perfring_session_snapshot(rig.session), 0);
		for (uint64_t i = 44; i < 300; i++) {
			cr_assert_eq(perfring_session_next(rig.session, &item), 1, "%lu", i);
			cr_assert_eq(number_of(&item), i);
			cr_assert_eq(item.time, 1000 + i);
			cr_assert_eq(item.format->index, i % 2);
		}
		cr_assert_eq(perfring_session_next(rig.session, &item), 0);
		perfring_session_return(rig.session);
		cr_assert_eq(perfring_session_next(rig.session, &item), 0, "until return");
		perfring_session_totals(rig.session, &totals);
		cr_assert_eq(totals.samples, 256, "each was counted once");
		cr_assert_eq(totals.first_time, 1044);
		cr_assert_eq(totals.late, 0);
	}
	/* Three more in one, none in the other. */
	for (uint64_t i = 300; i < 303; i++)
		cr_assert(stream_write(&rig.streams[0], 100, 1000 + i, i));
	cr_assert_eq(perfring_session_snapshot(rig.session), 0);
	for (uint64_t left = 256; left; left--) {
		cr_assert_eq(perfring_session_next(rig.session, &item), 1);
		if (left == 3)
			perfring_session_wait(rig.session, 0); /* in the middle: nothing is lost or doubled */
	}
	cr_assert_eq(number_of(&item), 302);
	cr_assert_eq(perfring_session_next(rig.session, &item), 0);
	perfring_session_return(rig.session);
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.samples, 259);
	cr_assert_eq(perfring_session_event_totals(rig.session, 0, &totals), 0);
	cr_assert_eq(totals.samples, 131);
	cr_assert_eq(perfring_session_event_totals(rig.session, 1, &totals), 0);
	cr_assert_eq(totals.samples, 128);
	rig_close(&rig);
}

Test(moment, in_time_order_and_each_counted_once)
{
	count_once(FALLS);
	count_once(PERFRING_RING_OVERWRITE);
}

Test(moment, sorts_what_is_nearly_sorted)
{
	struct perfring_totals totals;
	struct perfring_item item;
	uint64_t last = 0;
	struct rig rig;

	rig_open(&rig);
	for (uint64_t i = 1; i <= 120; i++)
		stream_write(&rig.streams[0], 100, i % 8 ? 1000 * i : 1000 * i - 30 * 1000 + 1, i);
	cr_assert_eq(perfring_session_snapshot(rig.session), 0);
	for (int i = 0; i < 120; i++) {
		cr_assert_eq(perfring_session_next(rig.session, &item), 1);
		cr_assert_geq(item.time, last);
		last = item.time;
	}
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.late, 0);
	rig_close(&rig);
}

/* A snapshot whose only span is the second ring's, with a page of samples. */
static void take_page(struct rig *rig, struct perfring_span *span)
{
	cr_assert_eq(perfring_session_snapshot(rig->session), 0);
	cr_assert_eq(perfring_session_next_span(rig->session, span), 1);
	cr_assert_eq(span->ring, 1);
	cr_assert_eq(span->count, 1);
	cr_assert_eq(span->size, PAGE);
	cr_assert_eq(span->records, 128);
	cr_assert_eq(span->samples, 128);
}

/* As the writer wrote them. */
Test(moment, spans_of_forward_rings_are_oldest_first)
{
	struct perfring_totals totals;
	struct perfring_span span;
	struct rig rig;

	rig_open_as(&rig, PERFRING_RING_OVERWRITE);
	for (uint64_t i = 0; i < 200; i++)
		stream_write(&rig.streams[1], 101, 1000 + i, i);
	for (int again = 0; again < 2; again++) {
		take_page(&rig, &span);
		for (uint64_t i = 0; i < 128; i++)
			cr_assert_eq(((const struct stream_sample *)span.pieces[0].iov_base)[i].number, 72 + i);
		cr_assert_eq(perfring_session_next_span(rig.session, &span), 0);
		perfring_session_return(rig.session);
		perfring_session_totals(rig.session, &totals);
		cr_assert_eq(totals.samples, 128);
		cr_assert_eq(totals.bytes, PAGE);
		cr_assert_eq(totals.first_time, 1072);
	}
	/* Two more: counted once, they alone. */
	stream_write(&rig.streams[1], 101, 1200, 200);
	stream_write(&rig.streams[1], 101, 1201, 201);
	cr_assert_eq(perfring_session_snapshot(rig.session), 0);
	cr_assert_eq(perfring_session_next_span(rig.session, &span), 1);
	perfring_session_return(rig.session);
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.samples, 130);
	rig_close(&rig);
}

Test(moment, spans_are_newest_first)
{
	struct perfring_totals totals;
	struct perfring_span span;
	struct rig rig;

	rig_open(&rig);
	for (uint64_t i = 0; i < 200; i++)
		stream_write(&rig.streams[1], 101, 1000 + i, i);
	for (int again = 0; again < 2; again++) {
		take_page(&rig, &span);
		for (uint64_t i = 0; i < 128; i++)
			cr_assert_eq(((const struct stream_sample *)span.pieces[0].iov_base)[i].number, 199 - i);
		cr_assert_eq(perfring_session_next_span(rig.session, &span), 0);
		perfring_session_return(rig.session);
		cr_assert_eq(perfring_session_next_span(rig.session, &span), 0);
		perfring_session_totals(rig.session, &totals);
		cr_assert_eq(totals.samples, 128);
		cr_assert_eq(totals.bytes, PAGE);
		cr_assert_eq(totals.first_time, 1072);
	}
	cr_assert_eq(perfring_session_event_totals(rig.session, 1, &totals), 0);
	cr_assert_eq(totals.samples, 128);
	rig_close(&rig);
}

/* A record that was given up leaves a filler: a span ends before it, another begins behind it. */
Test(moment, spans_leave_fillers_out)
{
	struct perfring_claim outer;
	struct perfring_span span;
	struct rig rig;

	rig_open(&rig);
	stream_write(&rig.streams[0], 100, 1, 1);
	cr_assert_not_null(perfring_writer_reserve(rig.streams[0].writer, NULL, 64, &outer));
	stream_write(&rig.streams[0], 100, 2, 2);
	perfring_writer_discard(rig.streams[0].writer, &outer);
	stream_write(&rig.streams[0], 100, 3, 3);
	cr_assert_eq(perfring_session_snapshot(rig.session), 0);
	cr_assert_eq(perfring_session_next_span(rig.session, &span), 1);
	cr_assert_eq(span.records, 2);
	cr_assert_eq(((const struct stream_sample *)span.pieces[0].iov_base)[0].number, 3);
	cr_assert_eq(((const struct stream_sample *)span.pieces[0].iov_base)[1].number, 2);
	cr_assert_eq(perfring_session_next_span(rig.session, &span), 1);
	cr_assert_eq(span.records, 1);
	cr_assert_eq(((const struct stream_sample *)span.pieces[0].iov_base)[0].number, 1);
	cr_assert_eq(perfring_session_next_span(rig.session, &span), 0);
	rig_close(&rig);
}

Test(moment, what_makes_no_sense_is_told_once)
{
	struct perfring_totals totals;
	struct perfring_fault fault;
	struct perfring_item item;
	uint32_t ring = 9;
	struct rig rig;

	rig_open(&rig);
	for (uint64_t i = 0; i < 10; i++) {
		stream_write(&rig.streams[0], 100, 100 + i, i);
		stream_write(&rig.streams[1], 101, 200 + i, i);
	}
	/* Number 5 of the second. */
	((struct perf_event_header *)(void *)(rig.streams[1].ring.data + PAGE - 6 * 32))->size = 12;
	cr_assert_eq(perfring_session_snapshot(rig.session), 0, "a fault within is no error");
	cr_assert_eq(perfring_session_next(rig.session, &item), -EBADMSG);
	fault = perfring_session_fault(rig.session, &ring);
	cr_assert_eq(ring, 1);
	cr_assert_eq(fault.at, -6 * 32);
	cr_assert_str_eq(fault.what, "record size is not a multiple of 8");
	for (uint64_t i = 0; i < 14; i++) {
		cr_assert_eq(perfring_session_next(rig.session, &item), 1);
		cr_assert_eq(item.time, i < 10 ? 100 + i : 206 + i - 10, "the newest of it are handed out");
	}
	cr_assert_eq(perfring_session_next(rig.session, &item), 0);
	perfring_session_return(rig.session);
	/* The head itself: of this ring there is no copy, of the other there is one. */
	rig.streams[0].ring.page->data_head += 3;
	cr_assert_eq(perfring_session_snapshot(rig.session), -EBADMSG);
	fault = perfring_session_fault(rig.session, &ring);
	cr_assert_eq(ring, 0);
	cr_assert_str_eq(fault.what, "data_head is between words");
	cr_assert_eq(perfring_session_next(rig.session, &item), -EBADMSG, "the other's record is still what it was");
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(perfring_session_next(rig.session, &item), 1);
	cr_assert_eq(perfring_session_next(rig.session, &item), 0);
	perfring_session_return(rig.session);
	perfring_session_totals(rig.session, &totals);
	cr_assert_eq(totals.corrupt, 3);
	cr_assert_eq(totals.samples, 14);
	rig_close(&rig);
}

Test(moment, rings_and_sessions_that_do_not_go_together)
{
	struct perfring_session *forward = stream_session(100, 1, 0);
	struct perfring_session *backward = stream_session(100, 1, PERFRING_SESSION_BACKWARD);
	struct perfring_ring_options falls = {.pages = 1, .flags = FALLS}, rises = {.pages = 1};
	struct perfring_ring one, other;

	cr_assert_eq(perfring_ring_create(&one, &falls), 0);
	cr_assert_eq(perfring_ring_create(&other, &rises), 0);
	cr_assert_eq(perfring_session_add_ring(forward, &one, -1, 0), -EINVAL);
	cr_assert_eq(perfring_session_add_ring(backward, &other, -1, 0), -EINVAL);
	cr_assert_eq(perfring_session_snapshot(forward), -EINVAL, "it does not overwrite");
	cr_assert_eq(perfring_session_snapshot(backward), -EINVAL, "nothing is in it");
	cr_assert_eq(perfring_session_add_ring(backward, &one, -1, 0), 0);
	cr_assert_eq(perfring_session_snapshot(backward), 0);
	perfring_session_return(backward);
	cr_assert_eq(perfring_session_remove_ring(backward, 0), 0);
	cr_assert_eq(perfring_session_snapshot(backward), -EINVAL);
	perfring_session_close(forward);
	perfring_session_close(backward);
	perfring_ring_close(&one);
	perfring_ring_close(&other);
}

/* A writer of ours is not paused: it says what it writes over. */
static void *write_on(void *of)
{
	struct stream *stream = of;

	for (uint64_t i = 0; !__atomic_load_n(&stream->number, __ATOMIC_ACQUIRE); i++) {
		stream_write(stream, 100, i, i);
		if (i % 64 == 0)
			sched_yield();
	}
	stream_end(stream);
	return NULL;
}

Test(moment, against_a_writing_thread)
{
	struct perfring_session *session = stream_session(100, 1, PERFRING_SESSION_BACKWARD);
	struct perfring_item item;
	struct stream stream;
	uint64_t newest = 0, taken = 0;
	pthread_t thread;

	stream_open(&stream, session, 4, FALLS, 0, -1);
	cr_assert_eq(stream.number, 0);
	cr_assert_eq(pthread_create(&thread, NULL, write_on, &stream), 0);
	for (int i = 0; i < 1000 || newest < 20000; i++) {
		uint64_t next = 0;
		int ret = perfring_session_snapshot(session);

		if (ret == -EAGAIN)
			continue;
		cr_assert_eq(ret, 0);
		for (bool first = true; perfring_session_next(session, &item) == 1; first = false, next++) {
			next = first ? number_of(&item) : next;
			cr_assert_eq(number_of(&item), next);
			cr_assert_eq(item.time, next);
		}
		cr_assert_geq(next, newest);
		newest = next;
		perfring_session_return(session);
		taken++;
	}
	__atomic_store_n(&stream.number, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert_gt(taken, 500);
	perfring_session_close(session);
	stream_close(&stream);
}

/* ---- the kernel's, in a storm ---- */

struct weather {
	struct perfring_session *session;
	struct storm storm;
	int cpu; /* where it storms */
	uint32_t ring;
};

static void weather_open(struct weather *weather, uint32_t pages, uint32_t options)
{
	struct perf_event_attr attr = storm_attr();
	struct perfring_session_event opened;
	struct perfring_target *target;
	int event;

	memset(weather, 0, sizeof(*weather));
	if (!storm_open(&weather->storm))
		cr_skip_test("%s", weather->storm.reason);
	cr_assert_eq(perfring_session_open(&weather->session, pages), 0);
	cr_assert_eq(perfring_session_configure(weather->session, options, 0), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	event = perfring_session_add(weather->session, &attr, target);
	perfring_target_close(target);
	if (event == -EACCES || event == -EPERM || event == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(weather->session));
	cr_assert_eq(event, 0, "%s", perfring_session_refusal(weather->session));
	cr_assert_eq(perfring_session_put_map(weather->session, 0, weather->storm.map), 0);
	/* The last CPU, and this thread on the first. */
	for (uint32_t i = 0; perfring_session_event_at(weather->session, i, &opened) == 1; i++)
		if (opened.cpu >= weather->cpu) {
			weather->cpu = opened.cpu;
			weather->ring = opened.ring;
		}
	storm_pin(0);
}

static void weather_close(struct weather *weather)
{
	perfring_session_close(weather->session);
	storm_close(&weather->storm);
}

static uint64_t record_size(uint64_t number)
{
	return STORM_OVERHEAD + 8 * (1 + number % STORM_WORDS);
}

enum {
	LOST_SIZE = 8 + 16 + 16, /* and its trailer of TIME and IDENTIFIER */
};

struct seen {
	uint64_t samples;
	uint64_t bytes;
	uint64_t first;
	uint64_t last;
	uint64_t torn;
	uint64_t disorder;
	uint64_t unexplained; /* numbers that are missing, and no LOST tells of */
};

/* One snapshot's items.  What was lost in a pause before stands in the ring, behind the record that came after it: the
 * kernel stamps a sample before the LOST record that it brings. */
static void look_through(struct perfring_session *session, uint64_t ring_size, struct seen *seen)
{
	struct perfring_item item;
	int64_t missing = 0;
	int one;

	memset(seen, 0, sizeof(*seen));
	while ((one = perfring_session_next(session, &item))) {
		uint64_t number, words[5];

		if (one < 0) {
			seen->torn++;
			continue;
		}
		seen->bytes += item.record->size;
		if (item.record->type == PERF_RECORD_LOST) {
			memcpy(words, item.record, sizeof(words));
			if (item.record->size != LOST_SIZE)
				seen->torn++;
			else if (seen->samples > 1) /* else: before the oldest */
				missing -= (int64_t)words[2];
			continue;
		}
		if (item.record->type != PERF_RECORD_SAMPLE || !item.format || !storm_is_whole(item.record, &number)) {
			seen->torn++;
			continue;
		}
		if (!seen->samples++)
			seen->first = number;
		else if (number <= seen->last)
			seen->disorder++;
		else
			missing += (int64_t)(number - seen->last - 1);
		seen->last = number;
	}
	seen->unexplained = (uint64_t)(missing < 0 ? -missing : missing);
	cr_assert_leq(seen->bytes, ring_size);
}

/* The measure.  This kernel's backward ring, paused a thousand times (trials) in the middle of a storm. */
Test(moment, a_thousand_in_a_storm)
{
	enum {
		PAGES = 8,
		SIZE = PAGES * PAGE
	};
	int snapshots = (int)trials(1000);
	uint64_t expected = 0, refused, newest = 0;
	struct perfring_totals totals;
	struct weather weather;
	struct seen seen;

	weather_open(&weather, PAGES, PERFRING_SESSION_BACKWARD);
	if (weather.cpu == 0)
		cr_skip_test("SKIP-ENV: one CPU: a storm on another one needs two");
	cr_assert(storm_begin(&weather.storm, weather.cpu));
	/* Until the ring is full: from then on it stays so. */
	while (__atomic_load_n(&weather.storm.written, __ATOMIC_ACQUIRE) < 1000)
		usleep(100);
	for (int i = 0; i < snapshots; i++) {
		uint64_t before, after;

		/* The pauses are longer than what is between them. */
		while ((before = __atomic_load_n(&weather.storm.written, __ATOMIC_ACQUIRE)) < newest + 50)
			usleep(20);
		cr_assert_eq(perfring_session_snapshot(weather.session), 0);
		after = __atomic_load_n(&weather.storm.number, __ATOMIC_ACQUIRE) + 2 * STORM_RUN;
		look_through(weather.session, SIZE, &seen);
		perfring_session_return(weather.session);
		cr_assert_eq(seen.torn, 0, "snapshot %d: %lu torn of %lu", i, seen.torn, seen.samples);
		cr_assert_eq(seen.disorder, 0, "snapshot %d", i);
		cr_assert_eq(seen.unexplained, 0, "snapshot %d: %lu", i, seen.unexplained);
		cr_assert_geq(seen.last + 1, before, "snapshot %d: %lu was written before, %lu is its newest", i,
			      before - 1, seen.last);
		cr_assert_lt(seen.last, after);
		/* What is left out at the old end is less than a record, with its LOST. */
		cr_assert_gt(seen.bytes, SIZE - (STORM_OVERHEAD + 8 * STORM_WORDS) - LOST_SIZE, "snapshot %d: %lu", i,
			     seen.bytes);
		cr_assert_gt(seen.last, newest);
		newest = seen.last;
	}
	cr_assert(storm_end(&weather.storm));
	/* It is calm: the newest to the number, and as many as fit. */
	cr_assert_eq(perfring_session_event_totals(weather.session, 0, &totals), 0);
	refused = weather.storm.refused;
	cr_assert_gt(refused, 0, "the pauses cost something");
	cr_assert_eq(totals.lost, refused, "and it is told to the number");
	storm_pin(weather.cpu);
	for (int i = 0; i < 1000 / STORM_RUN; i++)
		cr_assert_eq(storm_run(&weather.storm), 0);
	cr_assert_eq(perfring_session_snapshot(weather.session), 0);
	{
		struct perfring_session_ring *ring = weather.session->rings[weather.ring];
		uint64_t number = weather.storm.number, bytes = 0;

		while (bytes + record_size(number - 1) <= SIZE)
			bytes += record_size(--number);
		expected = weather.storm.number - number;
		cr_assert_eq(ring->snapshot.copy.count, expected, "%lu of %lu", ring->snapshot.copy.count, expected);
		for (uint64_t i = 0; i < expected; i++) {
			const struct perf_event_header *record;
			uint64_t which;

			cr_assert_eq(perfring_snapshot_previous(&ring->snapshot.copy, &record), 1);
			cr_assert(storm_is_whole(record, &which));
			cr_assert_eq(which, weather.storm.number - 1 - i);
		}
	}
	weather_close(&weather);
}

/* Spans of the same: newest first. */
Test(moment, spans_in_a_storm)
{
	struct weather weather;
	uint64_t all = 0;

	weather_open(&weather, 4, PERFRING_SESSION_BACKWARD);
	cr_assert(storm_begin(&weather.storm, weather.cpu));
	while (__atomic_load_n(&weather.storm.written, __ATOMIC_ACQUIRE) < 1000)
		usleep(100);
	for (int i = 0; i < 50; i++) {
		struct perfring_span span;

		cr_assert_eq(perfring_session_snapshot(weather.session), 0);
		while (perfring_session_next_span(weather.session, &span) == 1) {
			const unsigned char *at = span.pieces[0].iov_base;
			uint64_t left = span.size, records = 0, samples = 0, last = UINT64_MAX;

			while (left) {
				struct perf_event_header header;
				uint64_t number;

				memcpy(&header, at, sizeof(header));
				cr_assert(header.size >= 8 && header.size <= left);
				records++;
				if (header.type == PERF_RECORD_SAMPLE) {
					samples++;
					cr_assert(storm_is_whole((const void *)at, &number));
					cr_assert_lt(number, last);
					last = number;
				}
				at += header.size;
				left -= header.size;
			}
			cr_assert_eq(span.records, records);
			cr_assert_eq(span.samples, samples);
			all += samples;
		}
		perfring_session_return(weather.session);
	}
	cr_assert(storm_end(&weather.storm));
	cr_assert_gt(all, 1000);
	weather_close(&weather);
}

/* Where no grace period can be had, the oldest are left out: they may be what somebody writes over. */
static void without_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

Test(moment, without_a_grace_period)
{
	enum {
		PAGES = 4,
		SIZE = PAGES * PAGE
	};
	struct weather weather;
	struct seen seen;

	weather_open(&weather, PAGES, PERFRING_SESSION_BACKWARD);
	without_membarrier();
	cr_assert(storm_begin(&weather.storm, weather.cpu));
	while (__atomic_load_n(&weather.storm.written, __ATOMIC_ACQUIRE) < 1000)
		usleep(100);
	for (int i = 0; i < 20000; i++) {
		cr_assert_eq(perfring_session_snapshot(weather.session), 0);
		look_through(weather.session, SIZE, &seen);
		perfring_session_return(weather.session);
		cr_assert_eq(seen.torn + seen.disorder + seen.unexplained, 0, "snapshot %d: %lu %lu %lu", i, seen.torn,
			     seen.disorder, seen.unexplained);
		cr_assert_leq(seen.bytes, SIZE / 2);
		cr_assert_gt(seen.bytes, SIZE / 2 - (STORM_OVERHEAD + 8 * STORM_WORDS) - LOST_SIZE);
	}
	cr_assert(storm_end(&weather.storm));
	weather_close(&weather);
}

/* A ring that goes on under a copy would be torn: none is made of one that cannot be paused. */
Test(moment, what_cannot_be_paused_is_not_copied)
{
	struct perf_event_attr attr = storm_attr();
	struct perfring_session_event opened;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_item item;
	int ret, null;

	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = 1;
	attr.exclude_kernel = 1;
	attr.disabled = 0;
	cr_assert_eq(perfring_session_open(&session, 8), 0);
	cr_assert_eq(perfring_session_configure(session, PERFRING_SESSION_BACKWARD, 0), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	ret = perfring_session_add(session, &attr, target);
	if (ret == -EACCES || ret == -EPERM || ret == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(ret, 0, "%s", perfring_session_refusal(session));
	for (int i = 0; i < 8; i++) {
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		*(volatile char *)page = 1;
		munmap(page, PAGE);
	}
	cr_assert_eq(perfring_session_snapshot(session), 0);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	cr_assert_eq(perfring_session_event_at(session, 0, &opened), 1);
	null = open("/dev/null", O_RDONLY);
	cr_assert_eq(dup2(null, opened.fd), opened.fd);
	close(null);
	cr_assert_eq(perfring_session_snapshot(session), -ENOTTY);
	cr_assert_eq(perfring_session_next(session, &item), 0);
	perfring_target_close(target);
	perfring_session_close(session);
}

/* ---- BPF output, forwards ---- */

Test(moment, bpf_output_is_consumed_to_the_last)
{
	struct perfring_totals totals;
	struct perfring_item item;
	struct weather weather;
	uint64_t next = 0, number;

	weather_open(&weather, 64, 0);
	storm_pin(weather.cpu);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 20; i++)
			cr_assert_eq(storm_run(&weather.storm), 0);
		perfring_session_wait(weather.session, 0);
		while (perfring_session_next(weather.session, &item) == 1) {
			cr_assert(storm_is_whole(item.record, &number));
			cr_assert_eq(number, next++);
		}
		perfring_session_return(weather.session);
	}
	perfring_session_flush(weather.session);
	while (perfring_session_next(weather.session, &item) == 1)
		next += storm_is_whole(item.record, &number) && number == next;
	cr_assert_eq(next, 200 * 20 * STORM_RUN);
	cr_assert_eq(perfring_session_event_totals(weather.session, 0, &totals), 0);
	cr_assert_eq(totals.samples, next);
	cr_assert_eq(totals.lost, 0);
	weather_close(&weather);
}

Test(moment, maps_that_do_not_fit)
{
	struct perf_event_attr dummy = storm_attr(), attr = storm_attr();
	struct perfring_target *target;
	struct weather weather;
	union bpf_attr map;
	int small, event;

	weather_open(&weather, 1, 0);
	cr_assert_eq(perfring_session_put_map(weather.session, 1, weather.storm.map), -EINVAL, "no such event");
	cr_assert_eq(perfring_session_put_map(weather.session, 0, -1), -EBADF);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	dummy.config = PERF_COUNT_SW_DUMMY;
	event = perfring_session_add(weather.session, &dummy, target);
	cr_assert_eq(event, 1, "%s", perfring_session_refusal(weather.session));
	cr_assert_eq(perfring_session_put_map(weather.session, 1, weather.storm.map), -EINVAL, "not BPF_OUTPUT");
	event = perfring_session_add(weather.session, &attr, target);
	cr_assert_eq(event, 2, "%s", perfring_session_refusal(weather.session));
	cr_assert_eq(perfring_session_put_map(weather.session, 2, weather.storm.map), -EINVAL, "of a thread");
	perfring_target_close(target);
	/* Room for CPU 0 alone: that one is taken out again. */
	memset(&map, 0, sizeof(map));
	map.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	map.key_size = map.value_size = 4;
	map.max_entries = 1;
	small = (int)storm_bpf(BPF_MAP_CREATE, &map);
	cr_assert_geq(small, 0);
	if (weather.cpu > 0) {
		uint32_t key = 0;

		cr_assert_eq(perfring_session_put_map(weather.session, 0, small), -E2BIG);
		memset(&map, 0, sizeof(map));
		map.map_fd = (uint32_t)small;
		map.key = (uintptr_t)&key;
		cr_assert_eq(storm_bpf(BPF_MAP_DELETE_ELEM, &map), -1);
		cr_assert_eq(errno, ENOENT, "nothing is left in it");
	}
	close(small);
	weather_close(&weather);
}
