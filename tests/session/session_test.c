/* session_test.c - many rings as one stream: the merge on rings made by hand, and sessions on the kernel's. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/command.h>
#include <perfring/record.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/wakeup.h>
#include "session/session_private.h"

TestSuite(session, .timeout = 120);

enum {
	PAGE = 4096
};

/* ---- rings made by hand: the session's own merge, without a kernel ---- */

/* One sample: IDENTIFIER, TIME, and a number of its own. */
struct handmade {
	struct perf_event_header header;
	uint64_t identifier;
	uint64_t time;
	uint64_t number;
};

struct hand {
	struct perfring_session *session;
	unsigned char *memory[8];
	uint64_t head[8];
};

/* Rings whose positions begin at `start`. */
static void hand_open_at(struct hand *hand, uint32_t rings, uint64_t size, uint64_t start)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
	};

	memset(hand, 0, sizeof(*hand));
	cr_assert_eq(perfring_session_open(&hand->session, 0), 0);
	cr_assert_eq(perfring_format_set_add(hand->session->formats, &attr), 0);
	cr_assert_eq(perfring_format_set_add(hand->session->formats, &attr), 1);
	cr_assert_eq(perfring_format_set_put(hand->session->formats, 77, 0), 0);
	cr_assert_eq(perfring_format_set_put(hand->session->formats, 78, 1), 0);
	hand->session->sample_time_at = 16;
	hand->session->rings = calloc(rings, sizeof(*hand->session->rings));
	hand->session->heap = calloc(rings, sizeof(*hand->session->heap));
	hand->session->ring_capacity = rings;
	for (uint32_t i = 0; i < rings; i++) {
		struct perfring_session_ring *ring = calloc(1, sizeof(*ring));

		ring->ops = &perfring_session_forward;
		hand->memory[i] = aligned_alloc(PAGE, PAGE + size);
		memset(hand->memory[i], 0, PAGE + size);
		cr_assert_eq(perfring_ring_wrap(&ring->ring, hand->memory[i], PAGE + size), 0);
		ring->ring.page->data_head = ring->ring.page->data_tail = hand->head[i] = start;
		cr_assert_eq(perfring_reader_open(&ring->reader, &ring->ring, 0), 0);
		hand->session->rings[hand->session->ring_count++] = ring;
	}
}

static void hand_open(struct hand *hand, uint32_t rings, uint64_t size)
{
	hand_open_at(hand, rings, size, 0);
}

static void hand_close(struct hand *hand)
{
	perfring_session_close(hand->session);
	for (size_t i = 0; i < sizeof(hand->memory) / sizeof(*hand->memory); i++)
		free(hand->memory[i]);
}

static void hand_bytes(struct hand *hand, uint32_t ring, const void *bytes, size_t size)
{
	struct perfring_session_ring *to = hand->session->rings[ring];

	for (size_t i = 0; i < size; i++)
		to->ring.data[(hand->head[ring] + i) % to->ring.size] = ((const unsigned char *)bytes)[i];
	hand->head[ring] += size;
	cr_assert_leq(hand->head[ring] - to->ring.page->data_tail, to->ring.size, "the test overran its ring");
	perfring_page_publish(to->ring.page, hand->head[ring]);
}

static void hand_sample(struct hand *hand, uint32_t ring, uint64_t id, uint64_t time, uint64_t number)
{
	struct handmade sample = {{.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)}, id, time, number};

	hand_bytes(hand, ring, &sample, sizeof(sample));
}

/* Hands out what the round gives; returns how many, checks that times never fall unless `late` says so. */
static uint64_t hand_take(struct hand *hand, uint64_t *times, uint64_t room)
{
	struct perfring_item item;
	uint64_t count = 0;

	while (perfring_session_next(hand->session, &item) == 1) {
		cr_assert_lt(count, room);
		times[count++] = item.time;
	}
	return count;
}

Test(session, merges_rings_and_holds_back_one_round)
{
	struct perfring_totals totals;
	uint64_t times[32];
	struct hand hand;

	hand_open(&hand, 3, PAGE);
	for (uint64_t i = 0; i < 4; i++) {
		hand_sample(&hand, 0, 77, 100 + 10 * i, i);
		hand_sample(&hand, 1, 78, 105 + 10 * i, i);
	}
	/* Seen for the first time: an older one may still come from ring 2. */
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 32), 0);
	hand_sample(&hand, 2, 77, 107, 9);
	hand_sample(&hand, 2, 77, 133, 9);
	hand_sample(&hand, 2, 77, 500, 9);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 32), 10);
	for (uint64_t i = 0; i < 10; i++) {
		static const uint64_t WANTED[] = {100, 105, 107, 110, 115, 120, 125, 130, 133, 135};

		cr_assert_eq(times[i], WANTED[i], "%lu is %lu", i, times[i]);
	}
	/* Given back: all of rings 0 and 1, not the one that waits in ring 2. */
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 4 * sizeof(struct handmade));
	cr_assert_eq(hand.session->rings[1]->ring.page->data_tail, 4 * sizeof(struct handmade));
	cr_assert_eq(hand.session->rings[2]->ring.page->data_tail, 2 * sizeof(struct handmade));
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 32), 1);
	cr_assert_eq(times[0], 500);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.samples, 11);
	cr_assert_eq(totals.late, 0);
	cr_assert_eq(totals.first_time, 100);
	cr_assert_eq(totals.last_time, 500);
	hand_close(&hand);
}

Test(session, sorts_what_is_nearly_sorted)
{
	struct perfring_totals totals;
	uint64_t times[128], last = 0, count;
	struct hand hand;

	hand_open(&hand, 1, 2 * PAGE);
	/* Each eighth record was stamped 30 records ago. */
	for (uint64_t i = 1; i <= 120; i++)
		hand_sample(&hand, 0, 77, i % 8 ? 1000 * i : 1000 * i - 30 * 1000 + 1, i);
	perfring_session_flush(hand.session);
	count = hand_take(&hand, times, 128);
	cr_assert_eq(count, 120);
	for (uint64_t i = 0; i < count; i++) {
		cr_assert_geq(times[i], last);
		last = times[i];
	}
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late, 0);
	hand_close(&hand);
}

Test(session, counts_what_comes_too_late)
{
	struct perfring_totals totals;
	uint64_t times[128];
	struct hand hand;

	hand_open(&hand, 2, 2 * PAGE);
	for (uint64_t i = 1; i <= 100; i++)
		hand_sample(&hand, 0, 77, 1000 * i, i);
	hand_sample(&hand, 0, 77, 500, 101); /* 100 records late: beyond the window */
	perfring_session_flush(hand.session);
	cr_assert_eq(hand_take(&hand, times, 128), 101, "late, not lost");
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late, 1);
	/* And a ring that tells of the past in a later round. */
	hand_sample(&hand, 1, 77, 700, 1);
	perfring_session_flush(hand.session);
	cr_assert_eq(hand_take(&hand, times, 128), 1);
	cr_assert_eq(times[0], 700);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late, 2);
	hand_close(&hand);
}

Test(session, gives_back_no_more_than_was_handed_out)
{
	struct perfring_item item;
	uint64_t times[64];
	struct hand hand;

	/* The younger record lies before the older one in the ring. */
	hand_open(&hand, 1, PAGE);
	hand_sample(&hand, 0, 77, 200, 1);
	hand_sample(&hand, 0, 77, 100, 2);
	hand_sample(&hand, 0, 77, 300, 3);
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 100);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 0, "200 is still to come");
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 200);
	cr_assert_eq(((const struct handmade *)(const void *)item.record)->number, 1);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 2 * sizeof(struct handmade));
	cr_assert_eq(hand_take(&hand, times, 64), 1);
	hand_close(&hand);
}

/* What is behind the oldest of the window, and what lies below it in the ring, are two things. */
Test(session, gives_back_below_the_lowest_that_waits)
{
	struct perfring_item item;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_sample(&hand, 0, 77, 300, 1);
	hand_sample(&hand, 0, 77, 100, 2);
	hand_sample(&hand, 0, 77, 200, 3);
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 100);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 0, "300 lies there");
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 0);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 300);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, hand.head[0]);
	hand_close(&hand);
}

Test(session, equal_times_come_by_ring)
{
	struct perfring_item item;
	struct hand hand;

	hand_open(&hand, 4, PAGE);
	for (uint64_t i = 0; i < 20; i++)
		hand_sample(&hand, 3 - (uint32_t)i % 4, 77, 100, i);
	perfring_session_flush(hand.session);
	for (uint64_t i = 0; i < 20; i++) {
		cr_assert_eq(perfring_session_next(hand.session, &item), 1);
		cr_assert_eq(((const struct handmade *)(const void *)item.record)->number, 3 - i / 5 + i % 5 * 4);
	}
	hand_close(&hand);
}

Test(session, positions_wrap)
{
	struct perfring_item item;
	uint64_t times[64];
	struct hand hand;

	/* 400 and 100 before the wrap, 200 and 300 behind it. */
	hand_open_at(&hand, 1, PAGE, 0 - 2 * sizeof(struct handmade));
	hand_sample(&hand, 0, 77, 400, 1);
	hand_sample(&hand, 0, 77, 100, 2);
	hand_sample(&hand, 0, 77, 200, 3);
	hand_sample(&hand, 0, 77, 300, 4);
	perfring_session_look(hand.session, false);
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 100);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 0 - 2 * sizeof(struct handmade));
	cr_assert_eq(hand_take(&hand, times, 64), 3, "all are old");
	cr_assert_eq(times[2], 400);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, 2 * sizeof(struct handmade));
	hand_close(&hand);
}

/* A head that falls back to where we are is believed (kernels before 5.2 did that for an instant); the others' new
 * records are held back all the same. */
Test(session, a_head_that_falls_back)
{
	struct perfring_totals totals;
	uint64_t times[64];
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 0, 77, 110, 2);
	perfring_session_look(hand.session, false);
	perfring_page_publish(hand.session->rings[0]->ring.page, 0);
	hand_sample(&hand, 1, 77, 200, 3);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 0, "200 is new");
	perfring_page_publish(hand.session->rings[0]->ring.page, hand.head[0]);
	perfring_session_look(hand.session, false);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 3);
	cr_assert_eq(times[0], 100);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late + totals.corrupt, 0);
	hand_close(&hand);
}

/* Long random traffic over tiny rings, with and without returns in time: everything comes once, in order, whole. */
Test(session, random_traffic)
{
	struct hand hand;
	uint64_t sent = 0, got = 0, clock = 1, last = 0, sum_sent = 0, sum_got = 0;
	unsigned seed = 12345;

	/* Some laps before the positions wrap. */
	hand_open_at(&hand, 5, PAGE, UINT64_MAX - 30 * PAGE + 1);
	for (int round = 0; round < 20000; round++) {
		struct perfring_item item;

		for (int i = 0; i < 12; i++) {
			uint32_t ring = (uint32_t)rand_r(&seed) % 5;
			struct perfring_session_ring *to = hand.session->rings[ring];

			if (hand.head[ring] + sizeof(struct handmade) - to->ring.page->data_tail > to->ring.size)
				continue;
			/* A pad record now and then, so that samples wrap at every place. */
			if (rand_r(&seed) % 3 == 0 &&
			    hand.head[ring] + 48 + sizeof(struct handmade) - to->ring.page->data_tail <=
				    to->ring.size) {
				struct perf_event_header pad = {.type = 77777, .size = 8};

				hand_bytes(&hand, ring, &pad, sizeof(pad));
			}
			clock += (uint64_t)rand_r(&seed) % 3;
			hand_sample(&hand, ring, 77 + (uint64_t)rand_r(&seed) % 2, clock, ++sent);
			sum_sent += sent * clock;
		}
		perfring_session_look(hand.session, round == 19999);
		while (perfring_session_next(hand.session, &item) == 1) {
			const struct handmade *sample = (const void *)item.record;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			got++;
			sum_got += sample->number * sample->time;
			cr_assert_eq(item.time, sample->time);
			cr_assert_eq(item.format->index, sample->identifier - 77);
			cr_assert_geq(item.time, last);
			last = item.time;
		}
		if (rand_r(&seed) % 4)
			perfring_session_return(hand.session);
	}
	cr_assert_eq(got, sent);
	cr_assert_eq(sum_got, sum_sent);
	cr_assert_gt(got, 50000);
	hand_close(&hand);
}

Test(session, a_corrupt_ring_is_told_once_and_left_behind)
{
	struct perf_event_header broken = {.type = 9, .size = 0};
	struct perfring_totals totals;
	struct perfring_fault fault;
	struct perfring_item item;
	uint64_t times[64];
	uint32_t ring = 99;
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 1, 77, 110, 1);
	hand_bytes(&hand, 1, &broken, sizeof(broken));
	hand_sample(&hand, 1, 77, 120, 2);
	hand_sample(&hand, 0, 77, 130, 2);
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), -EBADMSG);
	fault = perfring_session_fault(hand.session, &ring);
	cr_assert_eq(ring, 1);
	cr_assert_eq(fault.at, sizeof(struct handmade));
	cr_assert_str_eq(fault.what, "record smaller than its header");
	cr_assert_eq(hand_take(&hand, times, 64), 3, "what is sound comes out");
	cr_assert_eq(times[1], 110);
	perfring_session_return(hand.session);
	hand_sample(&hand, 1, 77, 140, 3);
	perfring_session_flush(hand.session);
	cr_assert_eq(hand_take(&hand, times, 64), 1, "the ring goes on");
	cr_assert_eq(times[0], 140);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.corrupt, 1);
	cr_assert_eq(totals.skipped, 8 + sizeof(struct handmade));
	hand_close(&hand);
}

/* The head itself is wrong while records wait: they come out, what was behind them is given up after that. */
Test(session, a_head_that_cannot_be)
{
	struct perfring_totals totals;
	struct perfring_fault fault;
	struct perfring_item item;
	uint64_t times[64];
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 1, 77, 100, 1);
	hand_sample(&hand, 1, 77, 120, 2);
	hand_sample(&hand, 0, 77, 110, 3);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 0);
	perfring_page_publish(hand.session->rings[1]->ring.page, 3 * PAGE);
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next(hand.session, &item), -EBADMSG);
	fault = perfring_session_fault(hand.session, NULL);
	cr_assert_eq(fault.at, 3 * PAGE);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 100);
	/* Told once, however many rounds and returns there are; and nothing that waits is given up. */
	for (int i = 0; i < 3; i++) {
		perfring_session_return(hand.session);
		cr_assert_eq(hand.session->rings[1]->ring.page->data_tail, sizeof(struct handmade));
		perfring_session_look(hand.session, false);
	}
	cr_assert_eq(hand_take(&hand, times, 64), 2);
	cr_assert_eq(times[0], 110);
	cr_assert_eq(times[1], 120);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[1]->ring.page->data_tail, 3 * PAGE);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.corrupt, 1);
	cr_assert_eq(totals.skipped, PAGE, "at most the ring's size");
	hand.head[1] = 3 * PAGE;
	hand_sample(&hand, 1, 77, 130, 4);
	perfring_session_flush(hand.session);
	cr_assert_eq(hand_take(&hand, times, 64), 1);
	cr_assert_eq(times[0], 130);
	hand_close(&hand);
}

/* A fault met in the middle of a round, behind more records than a window holds: the other ring is not held up. */
Test(session, a_fault_in_the_middle_of_a_round)
{
	struct perf_event_header broken = {.type = 9, .size = 12};
	struct perfring_item item;
	uint64_t last = 0, taken = 0, faults = 0;
	struct hand hand;
	int one;

	hand_open(&hand, 2, 2 * PAGE);
	for (uint64_t i = 1; i <= 100; i++) {
		hand_sample(&hand, 0, 77, 10 * i, i);
		hand_sample(&hand, 1, 77, 10 * i + 5, i);
	}
	hand_bytes(&hand, 1, &broken, sizeof(broken));
	hand_sample(&hand, 1, 77, 5000, 1);
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next(hand.session, &item), 0);
	perfring_session_look(hand.session, false);
	while ((one = perfring_session_next(hand.session, &item))) {
		faults += one < 0;
		taken += one > 0;
		if (one > 0)
			cr_assert_geq(item.time, last);
		last = one > 0 ? item.time : last;
	}
	cr_assert_eq(taken, 200);
	cr_assert_eq(faults, 1);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[1]->ring.page->data_tail, hand.head[1]);
	hand_close(&hand);
}

/* Spans of a ring whose fault was not fetched in its round: it is told in the next one. */
Test(session, a_fault_that_nobody_asked_for)
{
	struct perf_event_header broken = {.type = 9, .size = 0};
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_bytes(&hand, 0, &broken, sizeof(broken));
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, sizeof(struct handmade));
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), -EBADMSG);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 0);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, hand.head[0]);
	hand_close(&hand);
}

/* A ring's records without a time stay where they are among its own; there is no saying that they are late. */
Test(session, records_without_a_time)
{
	struct perf_event_header bare = {.type = 77777, .size = 8};
	struct perfring_totals totals;
	struct perfring_item item;
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 1, 77, 500, 1);
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	hand_bytes(&hand, 0, &bare, sizeof(bare));
	hand_sample(&hand, 0, 77, 600, 2);
	hand_bytes(&hand, 0, &bare, sizeof(bare));
	hand_sample(&hand, 1, 77, 550, 2);
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.record->type, 77777);
	cr_assert_eq(item.time, 0);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 550);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 600);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.record->type, 77777);
	cr_assert_eq(perfring_session_next(hand.session, &item), 0);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late, 0);
	hand_close(&hand);
}

/* More old records than a window holds, in one ring: the round goes on to the last of them, and not beyond. */
Test(session, a_round_is_longer_than_a_window)
{
	uint64_t times[512];
	struct hand hand;

	hand_open(&hand, 2, 4 * PAGE);
	for (uint64_t i = 1; i <= 200; i++)
		hand_sample(&hand, 0, 77, 10 * i, i);
	perfring_session_look(hand.session, false);
	cr_assert(perfring_session_holds(hand.session), "seen, not yet in a window");
	cr_assert_eq(hand_take(&hand, times, 512), 0);
	for (uint64_t i = 201; i <= 300; i++)
		hand_sample(&hand, 0, 77, 10 * i, i);
	for (uint64_t i = 1; i <= 300; i++)
		hand_sample(&hand, 1, 77, 10 * i + 1, i);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 512), 399, "200 old ones and the 199 that lie between them");
	cr_assert_eq(times[398], 2000);
	cr_assert(perfring_session_holds(hand.session));
	/* Taken in bits, over looks. */
	perfring_session_look(hand.session, false);
	for (int i = 0; i < 50; i++) {
		struct perfring_item item;

		cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	}
	perfring_session_return(hand.session);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 512), 151);
	cr_assert_eq(times[150], 3001);
	perfring_session_return(hand.session);
	cr_assert_not(perfring_session_holds(hand.session), "traffic has stopped, nothing waits");
	hand_close(&hand);
}

/* A record that was not there a round ago is not old because a filler before it was. */
Test(session, a_record_behind_an_old_filler_is_new)
{
	struct perf_event_header filler = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, sizeof(filler)};
	uint64_t times[8];
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	perfring_session_look(hand.session, false);
	hand_sample(&hand, 0, 77, 100, 1);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 8), 0);
	perfring_session_return(hand.session);
	hand_sample(&hand, 1, 77, 99, 1);
	perfring_session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 8), 2);
	cr_assert_eq(times[0], 99);
	cr_assert_eq(times[1], 100);
	hand_close(&hand);
}

/* The header that was checked is what counts: not what the memory says once the body is read. */
static unsigned char *body_page;

static void grow_at_the_body(int signal)
{
	struct perf_event_header *header = (void *)(body_page - sizeof(*header));

	(void)signal;
	header->size = 65528;
	mprotect(body_page, PAGE, PROT_READ | PROT_WRITE);
}

Test(session, a_size_is_read_once)
{
	struct perf_event_header filler = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, PAGE - 8};
	struct sigaction action = {.sa_handler = grow_at_the_body}, before;
	unsigned char bytes[PAGE - 8] = {0};
	struct perfring_totals totals;
	uint64_t times[8];
	struct hand hand;

	hand_open(&hand, 1, 2 * PAGE);
	memcpy(bytes, &filler, sizeof(filler));
	hand_bytes(&hand, 0, bytes, sizeof(bytes));
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 0, 77, 101, 2);
	body_page = hand.session->rings[0]->ring.data + PAGE;
	cr_assert_eq(sigaction(SIGSEGV, &action, &before), 0);
	cr_assert_eq(mprotect(body_page, PAGE, PROT_NONE), 0);
	perfring_session_look(hand.session, true);
	cr_assert_eq(hand_take(&hand, times, 8), 2);
	cr_assert_eq(sigaction(SIGSEGV, &before, NULL), 0);
	cr_assert_eq(((struct perf_event_header *)(void *)(body_page - 8))->size, 65528, "it struck");
	cr_assert_eq(times[1], 101);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.bytes, 2 * sizeof(struct handmade));
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, hand.head[0]);
	hand_close(&hand);
}

/* Threads that write while the session reads, stamped by one clock: what a thread sanitizer judges. */
enum {
	WRITERS = 3,
	WRITTEN = 60000
};

struct stamping {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t *clock;
	uint64_t number;
};

static void *write_stamped(void *argument)
{
	struct stamping *to = argument;
	uint64_t head = 0;

	for (uint64_t i = 0; i < WRITTEN; i++) {
		struct handmade sample = {{.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)}, 77, 0, 0};

		while (head + sizeof(sample) - perfring_page_reclaim(to->page) > PAGE)
			sched_yield();
		sample.time = __atomic_add_fetch(to->clock, 1, __ATOMIC_SEQ_CST);
		sample.number = to->number + i;
		for (size_t at = 0; at < sizeof(sample); at++)
			to->data[(head + at) % PAGE] = ((unsigned char *)&sample)[at];
		head += sizeof(sample);
		perfring_page_publish(to->page, head);
	}
	return NULL;
}

Test(session, against_writing_threads)
{
	uint64_t clock = 0, last = 0, falls = 0, got = 0, next[WRITERS] = {0};
	struct stamping stampings[WRITERS];
	struct perfring_totals totals;
	struct perfring_item item;
	pthread_t threads[WRITERS];
	struct hand hand;

	hand_open(&hand, WRITERS, PAGE);
	for (uint32_t i = 0; i < WRITERS; i++) {
		stampings[i] = (struct stamping){hand.session->rings[i]->ring.page, hand.session->rings[i]->ring.data,
						 &clock, (uint64_t)i * WRITTEN};
		cr_assert_eq(pthread_create(&threads[i], NULL, write_stamped, &stampings[i]), 0);
	}
	while (got < WRITERS * WRITTEN) {
		perfring_session_look(hand.session, false);
		while (perfring_session_next(hand.session, &item) == 1) {
			const struct handmade *sample = (const void *)item.record;
			uint64_t writer = sample->number / WRITTEN;

			cr_assert_lt(writer, WRITERS);
			cr_assert_eq(sample->number % WRITTEN, next[writer], "each once, a ring's in its order");
			next[writer]++;
			falls += item.time < last;
			if (item.time > last)
				last = item.time;
			got++;
		}
		perfring_session_return(hand.session);
		sched_yield();
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late, falls);
	cr_assert_eq(totals.corrupt, 0);
	hand_close(&hand);
}

Test(session, spans_end_before_a_fault)
{
	struct perf_event_header broken = {.type = 9, .size = 4};
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_bytes(&hand, 0, &broken, sizeof(broken));
	hand_sample(&hand, 1, 77, 110, 1);
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	cr_assert_eq(span.ring, 0);
	cr_assert_eq(span.size, sizeof(struct handmade));
	cr_assert_eq(perfring_session_next_span(hand.session, &span), -EBADMSG);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	cr_assert_eq(span.ring, 1);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 0);
	hand_close(&hand);
}

/* A sample too short for its time lends none from the record behind it. */
Test(session, a_short_sample_in_a_span)
{
	struct {
		struct perf_event_header header;
		uint64_t identifier;
	} brief = {{.type = PERF_RECORD_SAMPLE, .size = sizeof(brief)}, 77};
	struct perfring_totals totals;
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_bytes(&hand, 0, &brief, sizeof(brief));
	hand_sample(&hand, 0, 77, 100, 1);
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.samples, 2);
	cr_assert_eq(totals.first_time, 100);
	cr_assert_eq(totals.last_time, 100);
	hand_close(&hand);
}

/* Room that a writer gave back: no span has it, and what follows is a span of its own. */
Test(session, a_span_ends_at_a_filler)
{
	struct {
		struct perf_event_header header;
		uint64_t stale;
	} filler = {{PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, sizeof(filler)}, 0x6b6b6b6b6b6b6b6b};
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 0, 77, 101, 2);
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	hand_sample(&hand, 0, 77, 102, 3);
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	perfring_session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	cr_assert_eq(span.size, 2 * sizeof(struct handmade));
	cr_assert_eq(span.samples, 2);
	cr_assert_eq(((const struct perf_event_header *)span.pieces[0].iov_base)->type, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	cr_assert_eq(span.size, sizeof(struct handmade));
	cr_assert_eq(((const struct perf_event_header *)span.pieces[0].iov_base)->type, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 0);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, hand.head[0]);
	hand_close(&hand);
}

Test(session, a_span_wraps_in_two_pieces)
{
	struct perfring_span span;
	struct hand hand;
	uint64_t seen = 0;

	hand_open(&hand, 1, PAGE);
	for (int lap = 0; lap < 100; lap++) {
		uint64_t before = hand.head[0];

		for (uint64_t i = 0; i < 90; i++)
			hand_sample(&hand, 0, 77, 1 + seen + i, seen + i);
		perfring_session_look(hand.session, false);
		cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
		cr_assert_eq(span.size, 90 * sizeof(struct handmade));
		cr_assert_eq(span.records, 90);
		cr_assert_eq(span.samples, 90);
		cr_assert_eq(span.count, before % PAGE + span.size > PAGE ? 2u : 1u);
		for (uint32_t p = 0; p < span.count; p++)
			for (size_t at = 0; at < span.pieces[p].iov_len; at += 8) {
				uint64_t offset = p * span.pieces[0].iov_len + at;
				uint64_t word;

				memcpy(&word, (char *)span.pieces[p].iov_base + at, 8);
				if (offset % sizeof(struct handmade) == 24) {
					cr_assert_eq(word, seen);
					seen++;
				}
			}
		perfring_session_return(hand.session);
	}
	cr_assert_eq(seen, 9000);
	hand_close(&hand);
}

Test(session, strangers_and_loss_are_counted)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost, addr_time, identifier;
	} lost = {{.type = PERF_RECORD_LOST, .size = sizeof(lost)}, 77, 41, 150, 77};
	struct {
		struct perf_event_header header;
		uint64_t time, id, stream_id, trailer_time, identifier;
	} throttle = {{.type = PERF_RECORD_THROTTLE, .size = sizeof(throttle)}, 160, 77, 77, 160, 77};
	struct perfring_totals totals;
	struct perfring_item item;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_sample(&hand, 0, 4711, 100, 1);
	hand_bytes(&hand, 0, &lost, sizeof(lost));
	hand_bytes(&hand, 0, &throttle, sizeof(throttle));
	perfring_session_flush(hand.session);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_null(item.format, "an id in no attr");
	cr_assert_eq(item.time, 0);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.record->type, PERF_RECORD_LOST);
	cr_assert_eq(item.time, 150);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 160);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.unknown_ids, 1);
	cr_assert_eq(totals.lost, 41);
	cr_assert_eq(totals.throttles, 1);
	cr_assert_eq(totals.records, 3);
	hand_close(&hand);
}

/* ---- targets ---- */

Test(session, targets)
{
	struct perfring_target *target;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(target->cpus.count, (uint32_t)online);
	cr_assert_eq(perfring_target_add_cpus(target, "0"), 0);
	cr_assert_eq(target->cpus.count, (uint32_t)online, "once");
	cr_assert_eq(perfring_target_add_cpus(target, ""), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "0-"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "3-1"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "-1"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "0,x"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "99999999999999999999"), -EINVAL);
	cr_assert_eq(perfring_target_add_cpus(target, "100000"), -ENODEV);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	cr_assert_geq(target->tids.count, 1);
	cr_assert_eq(perfring_target_add_process(target, 0x3fffffff), -ESRCH);
	perfring_target_close(target);
}

/* ---- commands ---- */

static int exit_of(int32_t pid)
{
	int status = 0;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(session, commands)
{
	struct perfring_command command;

	cr_assert_eq(perfring_command_open(&command, (char *[]){"sh", "-c", "exit 7", NULL}), 0);
	cr_assert_eq(perfring_command_release(&command), 0);
	cr_assert_eq(exit_of(command.pid), 7);
	perfring_command_close(&command);

	cr_assert_eq(perfring_command_open(&command, (char *[]){"/no/such/command", NULL}), 0);
	cr_assert_eq(perfring_command_release(&command), -ENOENT);
	cr_assert_eq(exit_of(command.pid), 127);

	/* Killed while it waits: no SIGPIPE for us. */
	cr_assert_eq(perfring_command_open(&command, (char *[]){"true", NULL}), 0);
	kill(command.pid, SIGKILL);
	cr_assert_eq(exit_of(command.pid), 1000 + SIGKILL);
	cr_assert_eq(perfring_command_release(&command), -ESRCH);

	/* Never released: not left behind. */
	cr_assert_eq(perfring_command_open(&command, (char *[]){"true", NULL}), 0);
	perfring_command_close(&command);
	cr_assert_eq(waitpid(command.pid, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

/* ---- sessions on kernel rings ---- */

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct perf_event_attr fault_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			       PERF_SAMPLE_CPU,
		.disabled = 1,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.inherit = 1,
	};

	return attr;
}

/* A session on this process with its threads to come; skips where the kernel refuses. */
static struct perfring_session *open_self(uint32_t pages, const struct perf_event_attr *attrs, int count)
{
	struct perfring_session *session;
	struct perfring_target *target;

	cr_assert_eq(perfring_session_open(&session, pages), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	for (int i = 0; i < count; i++) {
		int index = perfring_session_add(session, &attrs[i], target);

		if (index == -EACCES || index == -EPERM || index == -ENOSYS) {
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		}
		cr_assert_eq(index, i, "%s", perfring_session_refusal(session));
	}
	perfring_target_close(target);
	return session;
}

static void touch_pages(int pages)
{
	char *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		((volatile char *)memory)[(size_t)i * PAGE] = 1;
	munmap(memory, (size_t)pages * PAGE);
}

enum {
	THREADS = 4,
	TOUCHES = 20000,
	TURN = 500
};

/* Moves between the CPUs as it goes. */
static void *touch_on_all_cpus(void *argument)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	for (long i = 0; i < TOUCHES / TURN; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)(((intptr_t)argument + i) % online), &set);
		sched_setaffinity(0, sizeof(set), &set);
		touch_pages(TURN);
	}
	return NULL;
}

Test(session, threads_on_all_cpus_in_time_order)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session = open_self(1024, &attr, 1);
	struct perfring_totals totals;
	struct perfring_item item;
	uint64_t last = 0, samples = 0, falls = 0, turns = 0;
	pthread_t threads[THREADS];
	bool over = false;

	cr_assert_eq(perfring_session_enable(session), 0);
	for (intptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, touch_on_all_cpus, (void *)i), 0);
	while (!over) {
		over = samples >= THREADS * TOUCHES || turns++ > 6000;
		cr_assert_geq(perfring_session_wait(session, 20), 0);
		if (over)
			perfring_session_flush(session);
		while (perfring_session_next(session, &item) == 1) {
			struct perfring_sample sample;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			cr_assert_not_null(item.format);
			cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
			cr_assert_eq(sample.time, item.time);
			cr_assert_eq(sample.pid, (uint32_t)getpid());
			falls += item.time < last;
			if (item.time > last)
				last = item.time;
			samples += sample.addr % PAGE == 0;
		}
		perfring_session_return(session);
	}
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	perfring_session_disable(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.late, falls, "what is out of order is counted");
	cr_assert_leq(falls, samples / 1000);
	cr_assert_eq(totals.corrupt, 0);
	cr_assert_eq(totals.unknown_ids, 0);
	cr_assert_geq(samples + totals.lost, THREADS * TOUCHES);
	cr_assert_eq(perfring_session_ring_count(session), (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	perfring_session_close(session);
}

/* Ten seconds of 4000 Hz on every CPU, each kept busy by a process of its own. */
Test(session, the_whole_system_under_load)
{
	enum {
		BURNERS = 16
	};
	const unsigned seconds = getenv("PERFRING_PROVE") ? 10 : 3;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 4000,
		.sample_type =
			PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.disabled = 1,
		.context_switch = 1,
		.comm = 1,
		.task = 1,
	};
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals, of_ring;
	struct perfring_item item;
	struct timespec start, now;
	pid_t burners[BURNERS];
	uint64_t last = 0, falls = 0, samples = 0, records = 0, sum = 0;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	bool over = false;
	int index;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	for (long i = 0; i < online && i < BURNERS; i++) {
		burners[i] = fork();
		if (burners[i] == 0) {
			alarm(seconds * 6);
			for (;;)
				sched_yield();
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	cr_assert_eq(perfring_session_enable(session), 0);
	while (!over) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		over = now.tv_sec - start.tv_sec >= seconds;
		if (over)
			perfring_session_disable(session);
		cr_assert_geq(perfring_session_wait(session, 50), 0);
		if (over)
			perfring_session_flush(session);
		while (perfring_session_next(session, &item) == 1) {
			cr_assert_not_null(item.format);
			records++;
			samples += item.record->type == PERF_RECORD_SAMPLE;
			falls += item.time < last;
			if (item.time > last)
				last = item.time;
		}
		perfring_session_return(session);
	}
	for (long i = 0; i < online && i < BURNERS; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.late, falls, "late ones are counted");
	cr_assert_leq(falls * 1000, records, "and few");
	cr_assert_eq(totals.records, records);
	cr_assert_eq(totals.samples, samples);
	cr_assert_gt(samples, 4000u * seconds * (uint64_t)online / 10);
	cr_assert_eq(totals.unknown_ids + totals.corrupt, 0);
	for (uint32_t i = 0; perfring_session_ring_totals(session, i, &of_ring) == 0; i++) {
		cr_assert_gt(of_ring.samples, 0);
		sum += of_ring.records;
	}
	cr_assert_eq(sum, records);
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session, what_finds_the_ring_full_is_counted)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_totals totals;
	struct perfring_span span;
	uint64_t lost = 0;
	cpu_set_t set;

	/* On one CPU: a ring's losses are told by its own next record. */
	CPU_ZERO(&set);
	CPU_SET((unsigned)sched_getcpu(), &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	session = open_self(1, &attr, 1);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(5000);
	cr_assert_eq(perfring_session_disable(session), 0);
	/* What was dropped is told by the next record that finds room, here after the drain. */
	perfring_session_flush(session);
	while (perfring_session_next_span(session, &span) == 1)
		;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_gt(totals.samples, 50);
	cr_assert_lt(totals.samples, 1000);
	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(20);
	cr_assert_eq(perfring_session_disable(session), 0);
	perfring_session_flush(session);
	while (perfring_session_next_span(session, &span) == 1)
		;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	for (uint32_t i = 0; perfring_session_event_at(session, i, &opened); i++) {
		uint64_t room[4];
		struct perfring_read values;

		cr_assert_eq(perfring_event_read(opened.fd,
						 perfring_format_set_at(perfring_session_formats(session), 0), &values,
						 room, sizeof(room)),
			     0);
		cr_assert_eq(perfring_read_id(&values, 0), opened.id);
		lost += perfring_read_lost(&values, 0);
	}
	cr_assert_gt(lost, 3500);
	cr_assert_leq(totals.lost, lost);
	cr_assert_geq(totals.samples + lost, 5020);
	cr_assert_gt(totals.lost, 0);
	perfring_session_close(session);
}

Test(session, several_events_share_a_ring)
{
	struct perf_event_attr attrs[3] = {fault_attr(), fault_attr(), fault_attr()};
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_item item;
	uint64_t by_event[3] = {0, 0, 0}, fds = 0, began, ended;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	attrs[1].sample_type &= ~(uint64_t)PERF_SAMPLE_ADDR;
	attrs[2].config = PERF_COUNT_SW_DUMMY;
	attrs[2].comm = 1;
	attrs[2].mmap = attrs[2].mmap2 = attrs[2].mmap_data = 1;
	for (int i = 0; i < 3; i++) {
		attrs[i].use_clockid = 1;
		attrs[i].clockid = CLOCK_MONOTONIC;
	}
	session = open_self(64, attrs, 3);
	cr_assert_eq(perfring_session_ring_count(session), (uint32_t)online);
	while (perfring_session_event_at(session, (uint32_t)fds, &opened)) {
		cr_assert_lt(opened.ring, (uint32_t)online);
		fds++;
	}
	cr_assert_geq(fds, 3 * (uint64_t)online);
	cr_assert_eq(perfring_session_enable(session), 0);
	/* Events are enabled and disabled one after the other: a fault in between is counted by some of them. */
	began = monotonic_ns();
	touch_pages(300);
	ended = monotonic_ns();
	cr_assert_eq(perfring_session_disable(session), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		cr_assert_not_null(item.format);
		if (item.record->type == PERF_RECORD_SAMPLE) {
			by_event[item.format->index] += item.time >= began && item.time <= ended;
			cr_assert_eq(item.record->size, item.format->index == 0 ? 48 : 40);
		} else if (item.record->type == PERF_RECORD_MMAP2) {
			struct perfring_record record;

			cr_assert_eq(perfring_record_decode(item.format, item.record, &record, NULL), 0);
			cr_assert_eq(record.is.mmap2.pid, (uint32_t)getpid());
			cr_assert_eq(record.trailer.time, item.time);
			by_event[2] += item.format->index == 2;
		}
	}
	perfring_session_return(session);
	cr_assert_geq(by_event[0], 300);
	cr_assert_eq(by_event[1], by_event[0]);
	cr_assert_geq(by_event[2], 1);
	perfring_session_close(session);
}

/* In spans only headers are looked at: of events that have their time at different places there is none to tell. */
Test(session, times_of_spans)
{
	for (int differ = 0; differ < 2; differ++) {
		struct perf_event_attr attrs[3] = {fault_attr(), fault_attr(), fault_attr()};
		struct perfring_session *session;
		struct perfring_totals totals;
		struct perfring_span span;

		if (differ)
			attrs[1].sample_type |= PERF_SAMPLE_IP;
		attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
		attrs[2].config = PERF_COUNT_SW_DUMMY;
		session = open_self(16, attrs, 3);
		cr_assert_eq(perfring_session_enable(session), 0);
		touch_pages(10);
		cr_assert_eq(perfring_session_disable(session), 0);
		perfring_session_flush(session);
		while (perfring_session_next_span(session, &span) == 1)
			;
		perfring_session_totals(session, &totals);
		cr_assert_geq(totals.samples, 20);
		cr_assert_eq(totals.first_time != 0, !differ);
		cr_assert_leq(totals.first_time, totals.last_time);
		cr_assert_lt(totals.last_time - totals.first_time, 60000000000);
		perfring_session_close(session);
	}
}

Test(session, a_command_from_exec_to_exit)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_command command;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_item item;
	uint64_t comms = 0, execs = 0, exits = 0, samples = 0;
	int index;

	attr.enable_on_exec = 1;
	attr.comm = attr.comm_exec = attr.task = attr.mmap = attr.mmap2 = 1;
	cr_assert_eq(perfring_command_open(&command, (char *[]){"sh", "-c", "true; exit 3", NULL}), 0);
	cr_assert_eq(perfring_session_open(&session, 16), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_thread(target, command.pid), 0);
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	cr_assert_eq(perfring_command_release(&command), 0);
	cr_assert_eq(exit_of(command.pid), 3);
	perfring_command_close(&command);
	for (int turns = 0; !perfring_session_is_over(session) && turns < 1000; turns++)
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	cr_assert(perfring_session_is_over(session), "every fd has hung up");
	cr_assert_eq(perfring_session_wait(session, 1000000), 0, "an end is not waited for");
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1) {
		samples += item.record->type == PERF_RECORD_SAMPLE;
		comms += item.record->type == PERF_RECORD_COMM;
		execs += item.record->type == PERF_RECORD_COMM && (item.record->misc & PERF_RECORD_MISC_COMM_EXEC);
		exits += item.record->type == PERF_RECORD_EXIT;
	}
	perfring_session_return(session);
	cr_assert_not(perfring_session_holds(session));
	cr_assert_eq(perfring_session_wait(session, -1), 0, "nor when nothing is held back");
	cr_assert_gt(samples, 10);
	cr_assert_eq(comms, 1);
	cr_assert_eq(execs, 1);
	cr_assert_eq(exits, 1);
	perfring_target_close(target);
	perfring_session_close(session);
}

Test(session, attrs_that_do_not_fit)
{
	struct perf_event_attr attr = fault_attr(), second;
	struct perfring_session *session;
	struct perfring_target *target, *other;
	struct perfring_session_event opened;
	int index;

	cr_assert_eq(perfring_session_open(&session, 3), -EINVAL);
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_session_add(session, &attr, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "neither a thread nor a CPU"));
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_process(target, getpid()), 0);
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_TIME;
	cr_assert_eq(perfring_session_add(session, &attr, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "TIME"));
	attr = fault_attr();
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, 0, "%s", perfring_session_refusal(session));
	second = fault_attr();
	second.sample_type &= ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "IDENTIFIER"));
	/* Another clock cannot share the ring: nothing of it stays. */
	second = fault_attr();
	second.use_clockid = 1;
	second.clockid = 1;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "clockid"));
	/* Nor can two clocks be put in order when they have rings of their own. */
	cr_assert_eq(perfring_target_open(&other), 0);
	cr_assert_eq(perfring_target_add_thread(other, 0), 0);
	second.inherit = 0;
	cr_assert_eq(perfring_session_add(session, &second, other), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "clockid"));
	perfring_target_close(other);
	second = fault_attr();
	second.write_backward = 1;
	cr_assert_eq(perfring_session_add(session, &second, target), -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "write_backward"));
	cr_assert_eq(perfring_session_event_at(session, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) * target->tids.count,
					       &opened),
		     0);
	second = fault_attr();
	second.config = 9999;
	cr_assert_eq(perfring_session_add(session, &second, target), -ENOENT);
	/* The next number is free. */
	second.config = PERF_COUNT_SW_DUMMY;
	cr_assert_eq(perfring_session_add(session, &second, target), 1);
	cr_assert_str_eq(perfring_session_refusal(session), "");
	perfring_target_close(target);
	perfring_session_close(session);
}

static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* Without CPUs each thread has its own ring; more fds hang up at once than one look at the epoll set can tell. */
Test(session, threads_with_rings_of_their_own)
{
	enum {
		MANY = 100
	};
	struct perf_event_attr attr = fault_attr();
	struct perfring_session_event opened;
	struct perfring_session *session;
	struct perfring_target *target, *gone;
	int pair[2], index, status;
	uint32_t fds = 0;
	pid_t child;
	char byte;

	cr_assert_eq(pipe(pair), 0);
	child = fork();
	if (child == 0) {
		pthread_t thread;

		alarm(60);
		for (int i = 0; i < MANY; i++)
			if (pthread_create(&thread, NULL, wait_for_ever, NULL))
				_exit(1);
		(void)!write(pair[1], "", 1);
		wait_for_ever(NULL);
	}
	cr_assert_eq(read(pair[0], &byte, 1), 1);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_process(target, child), 0);
	/* Gone by the time it is opened: passed over. */
	cr_assert_eq(perfring_target_add_thread(target, 0x3fffffff), 0);
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	/* An inherited event has no ring without a CPU. */
	index = perfring_session_add(session, &attr, target);
	if (index == -EACCES || index == -EPERM || index == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(index, -EINVAL);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "bound to a CPU"));
	cr_assert_eq(perfring_session_ring_count(session), 0);
	attr.inherit = 0;
	cr_assert_eq(perfring_session_add(session, &attr, target), 0, "%s", perfring_session_refusal(session));
	/* When all have gone there is nothing to pass over to. */
	cr_assert_eq(perfring_target_open(&gone), 0);
	cr_assert_eq(perfring_target_add_thread(gone, 0x3fffffff), 0);
	cr_assert_eq(perfring_target_add_thread(gone, 0x3ffffffe), 0);
	cr_assert_eq(perfring_session_add(session, &attr, gone), -ESRCH);
	cr_assert_not_null(strstr(perfring_session_refusal(session), "no thread 1073741823"));
	perfring_target_close(gone);
	cr_assert_eq(perfring_session_add(session, &attr, target), 1, "%s", perfring_session_refusal(session));
	cr_assert_geq(perfring_session_ring_count(session), MANY + 1);
	while (perfring_session_event_at(session, fds, &opened)) {
		cr_assert_eq(opened.cpu, -1);
		cr_assert_eq(opened.ring, fds % perfring_session_ring_count(session), "one ring for a thread's events");
		fds++;
	}
	cr_assert_eq(fds, 2 * perfring_session_ring_count(session));
	cr_assert_not(perfring_session_is_over(session));
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	for (int turns = 0; !perfring_session_is_over(session) && turns < 1000; turns++)
		cr_assert_geq(perfring_session_wait(session, 10), 0);
	cr_assert(perfring_session_is_over(session));
	perfring_target_close(target);
	perfring_session_close(session);
	close(pair[0]);
	close(pair[1]);
}

static int64_t milliseconds(void)
{
	return (int64_t)(monotonic_ns() / 1000000);
}

static void take_signal(int number)
{
	(void)number;
}

/* Records that are held back are not held for long, although no ring wakes us any more. */
Test(session, a_wait_that_holds_records_back_is_short)
{
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *session = open_self(16, &attr, 1);
	struct perfring_item item;
	uint64_t samples = 0;
	int64_t began;

	cr_assert_eq(perfring_session_enable(session), 0);
	touch_pages(3);
	cr_assert_eq(perfring_session_disable(session), 0);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	cr_assert_eq(perfring_session_next(session, &item), 0, "seen for the first time");
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, -1), 0);
	cr_assert_lt(milliseconds() - began, 5000);
	while (perfring_session_next(session, &item) == 1)
		samples += item.record->type == PERF_RECORD_SAMPLE;
	cr_assert_geq(samples, 3);
	perfring_session_return(session);
	/* A signal ends a wait. */
	cr_assert_eq(sigaction(SIGALRM, &(struct sigaction){.sa_handler = take_signal}, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 100000}, NULL), 0);
	cr_assert_eq(perfring_session_wait(session, 20000), -EINTR);
	/* Nothing is held back now: the time is waited for. */
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 300), 0);
	cr_assert_geq(milliseconds() - began, 250);
	perfring_session_close(session);
}

/* When the limit of files is met in the middle of an add, what was opened before is closed again. */
Test(session, refused_in_the_middle)
{
	char *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct perf_event_attr attr = fault_attr();
		struct perfring_session_event opened;
		struct perfring_session *session;
		struct perfring_target *target;
		struct rlimit limit = {200, 200};
		int ret, fd, last = 0;
		long spare;

		for (int i = 3; i < 1000; i++)
			close(i);
		if (setrlimit(RLIMIT_NOFILE, &limit) || perfring_session_open(&session, 1) ||
		    perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) ||
		    perfring_target_add_thread(target, getpid()))
			_exit(200);
		ret = perfring_session_add(session, &attr, target);
		/* Room for another one but its last CPU. */
		for (spare = 0; ret >= 0 && (fd = dup(0)) >= 0; spare++)
			last = fd;
		for (long i = 0; i < spare && i < sysconf(_SC_NPROCESSORS_ONLN) - 1; i++)
			close(last--);
		if (ret >= 0)
			ret = perfring_session_add(session, &attr, target);
		snprintf(text, 4096, "%s", perfring_session_refusal(session));
		if (ret != -EMFILE)
			_exit(ret < 0 ? -ret : 201);
		if (sysconf(_SC_NPROCESSORS_ONLN) *
				    (long)(perfring_format_set_count(perfring_session_formats(session))) !=
			    (long)session->event_count ||
		    perfring_session_event_at(session, session->event_count, &opened))
			_exit(202);
		perfring_session_close(session);
		fd = dup(0);
		_exit(fd == 3 ? 0 : 203);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == EACCES || WEXITSTATUS(status) == EPERM || WEXITSTATUS(status) == ENOSYS)
		cr_skip_test("SKIP-ENV: %s", text);
	cr_assert_eq(WEXITSTATUS(status), 0, "%d: %s", WEXITSTATUS(status), text);
	cr_assert_not_null(strstr(text, "RLIMIT_NOFILE is 200"));
}

/* ---- rings that were added ---- */

enum {
	OURS = 4,
	OUR_SAMPLES = 20000,
	OUR_ID = 4711,
};

static struct perf_event_attr our_attr(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return attr;
}

static const struct perfring_format our_format = {
	.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ADDR,
	.flags = 1 << PERFRING_ATTR_FLAG_sample_id_all,
};

static bool write_sample(struct perfring_writer *writer, uint64_t number)
{
	struct perfring_sample sample = {.identifier = OUR_ID, .pid = (uint32_t)getpid(), .addr = number};
	struct perfring_claim claim;
	int64_t size;
	void *room;

	sample.tid = (uint32_t)syscall(SYS_gettid);
	size = perfring_sample_size(&our_format, &sample);
	room = perfring_writer_reserve(writer, NULL, (uint64_t)size, &claim);
	if (!room)
		return false;
	sample.time = perfring_writer_stamp(writer, &claim);
	perfring_sample_encode(&our_format, &sample, room, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

static void *write_samples(void *of)
{
	struct perfring_set *set = of;
	struct perfring_writer *writer;
	uint64_t failed = 0;

	if (perfring_set_join(set, &writer))
		return (void *)-1;
	for (uint64_t i = 0; i < OUR_SAMPLES; i++) {
		failed += !write_sample(writer, i);
		if (i % 2048 == 2047)
			usleep(1000);
	}
	return (void *)(intptr_t)failed;
}

/* How many mappings of this process are of rings. */
static uint32_t rings_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint32_t count = 0;
	char line[512];

	cr_assert(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:perfring") != NULL;
	fclose(maps);
	return count;
}

static uint32_t read_round(struct perfring_session *session)
{
	struct perfring_item item;
	uint32_t count = 0;

	cr_assert_geq(perfring_session_wait(session, 0), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		count += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	return count;
}

static void *write_some(void *set)
{
	struct perfring_writer *writer;

	if (perfring_set_join(set, &writer))
		return (void *)-1;
	for (uint64_t i = 0; i < 10; i++)
		if (!write_sample(writer, i))
			return (void *)-1;
	return NULL;
}

/* Whoever forgets to take drained rings out of the session has their memory until its end, and no less. */
Test(session, rings_whose_set_freed_them, .timeout = 60)
{
	struct perfring_writer_options writer = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_ring_options ring = {.pages = 4};
	struct perf_event_attr ours = our_attr();
	struct perfring_session *session;
	struct perfring_set_ring *member;
	struct perfring_set *set;
	uint64_t id = OUR_ID;
	pthread_t thread;
	void *ret;

	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &ours, &id, 1), 0);
	for (uint32_t round = 0; round < 20; round++) {
		cr_assert_eq(pthread_create(&thread, NULL, write_some, set), 0);
		cr_assert_eq(pthread_join(thread, &ret), 0);
		cr_assert_null(ret);
		for (member = NULL; (member = perfring_set_next(set, member));)
			if (!member->data) {
				int number = perfring_session_add_ring(session, &member->ring, -1,
								       round & 1 ? PERFRING_READER_COPY : 0);

				cr_assert_eq(number, (int)round);
				member->data = set;
			}
		cr_assert_eq(read_round(session), 10);
	}
	/* All are drained; a walk frees them. */
	for (int walk = 0; walk < 2; walk++)
		for (member = NULL; (member = perfring_set_next(set, member));)
			cr_assert(member->drained);
	cr_assert_null(perfring_set_next(set, NULL));
	cr_assert_eq(read_round(session), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 3), 0);
	perfring_set_close(set);
	cr_assert_eq(read_round(session), 0);
	cr_assert_gt(rings_mapped(), 0);
	perfring_session_close(session);
	cr_assert_eq(rings_mapped(), 0);
}

Test(session, a_ring_that_its_owner_closed, .timeout = 60)
{
	struct perfring_writer_options options = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_ring_options shape = {.pages = 4};
	struct perfring_ring ring, again, none = {.fd = -1};
	struct perf_event_attr ours = our_attr();
	struct perfring_session *session, *other;
	struct perfring_writer *writer;
	uint64_t id = OUR_ID;

	cr_assert_eq(perfring_ring_create(&ring, &shape), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	for (uint64_t i = 0; i < 10; i++)
		cr_assert(write_sample(writer, i));
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &ours, &id, 1), 0);
	cr_assert_eq(perfring_session_add_ring(session, &ring, -1, 0), 0);
	/* Handles of handles, closed in any order; an add that fails holds none. */
	cr_assert_eq(perfring_ring_share(&again, &ring), 0);
	cr_assert_eq(again.fd, -1);
	cr_assert_eq(perfring_session_open(&other, 0), 0);
	cr_assert_eq(perfring_session_add_ring(other, &again, STDIN_FILENO + 1000, 0), -EBADF);
	perfring_session_close(other);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	cr_assert_eq(perfring_ring_share(&ring, &none), -EINVAL);
	perfring_ring_close(&again);
	cr_assert_eq(read_round(session), 10, "the session has it still");
	cr_assert_gt(rings_mapped(), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(rings_mapped(), 0);
	perfring_session_close(session);
}

static void writers_as_one_stream(bool mixed)
{
	struct perf_event_attr ours = our_attr(), theirs = fault_attr();
	struct perfring_ring_options ring = {.pages = 512, .attr = &ours, .id = OUR_ID};
	struct perfring_writer_options writer = {.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC};
	uint64_t next[OURS] = {0}, last = 0, fallen = 0, faults = 0, touched = 0, changes = 0;
	uint32_t tids[OURS] = {0}, tid_before = 0;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals;
	struct perfring_set *set;
	pthread_t threads[OURS];
	struct perfring_item item;
	bool began = false;
	int event, more = 3;

	writer.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, set, writer.wake_fd, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, set, writer.wake_fd, 0), -EEXIST);
	cr_assert(!perfring_session_is_over(session));
	if (mixed) {
		theirs.use_clockid = 1;
		theirs.clockid = CLOCK_MONOTONIC;
		theirs.inherit = 0;
		cr_assert_eq(perfring_target_open(&target), 0);
		cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
		event = perfring_session_add(session, &theirs, target);
		perfring_target_close(target);
		if (event < 0)
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		cr_assert_eq(perfring_session_enable(session), 0);
	}
	for (int i = 0; i < OURS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_samples, set), 0);
	while (more) {
		cr_assert_geq(perfring_session_wait(session, 20), 0);
		if (mixed) {
			char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			*(volatile char *)page = 1;
			touched++;
			munmap(page, 4096);
		}
		while (perfring_session_next(session, &item) == 1) {
			struct perfring_sample sample;
			uint32_t who = 0;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			fallen += item.time < last;
			if (item.time > last)
				last = item.time;
			cr_assert_not_null(item.format);
			if (item.format->index != (uint32_t)mixed) { /* the set's event is described by its first ring */
				faults++;
				continue;
			}
			cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
			cr_assert_eq(sample.time, item.time);
			cr_assert_eq(sample.identifier, OUR_ID);
			changes += sample.tid != tid_before;
			tid_before = sample.tid;
			while (who < OURS && tids[who] && tids[who] != sample.tid)
				who++;
			cr_assert_lt(who, OURS);
			tids[who] = sample.tid;
			cr_assert_eq(sample.addr, next[who]++, "each thread's own order");
		}
		perfring_session_return(session);
		/* Every thread has joined, written and gone; then two rounds for the last. */
		began |= tids[OURS - 1] != 0;
		if (began && !session->added)
			more--;
	}
	for (int i = 0; i < OURS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		cr_assert_null(failed, "thread %d: %lld", i, (long long)(intptr_t)failed);
		cr_assert_eq(next[i], OUR_SAMPLES);
	}
	/* The last rounds' page faults. */
	perfring_session_disable(session);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		faults += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.samples, OURS * OUR_SAMPLES + faults, "the rings are gone, what they counted is not");
	cr_assert_eq(totals.unknown_ids, 0);
	cr_assert_eq(totals.late, fallen, "whatever fell behind was counted");
	/* A thread that is held up between stamp and commit; seldom. */
	cr_assert_lt(fallen, OURS * OUR_SAMPLES / 100);
	cr_assert_gt(changes, OURS, "one after the other is no merge");
	if (mixed)
		cr_assert_geq(faults, touched);
	cr_assert_eq(perfring_session_remove_set(session, set), 0);
	cr_assert_eq(perfring_session_remove_set(session, set), -EINVAL);
	perfring_session_close(session);
	perfring_set_close(set);
	close(writer.wake_fd);
}

Test(session, writers_of_a_set_as_one_stream)
{
	writers_as_one_stream(false);
}

Test(session, writers_of_a_set_and_a_kernel_event_as_one_stream)
{
	writers_as_one_stream(true);
}

static void *join_and_write(void *set)
{
	struct perfring_writer *writer;

	usleep(50000);
	return (void *)(intptr_t)(perfring_set_join(set, &writer) || !write_sample(writer, 9));
}

/* Nobody wakes it, and a thread that joins while it waits is found. */
Test(session, a_wait_for_rings_that_wake_nobody_is_as_long_as_asked)
{
	struct perf_event_attr attr = our_attr();
	struct perfring_ring_options ring = {.pages = 1, .attr = &attr, .id = OUR_ID};
	struct perfring_writer_options writer = {.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_session *session;
	struct perfring_item item;
	struct timespec from, to;
	struct perfring_set *set;
	pthread_t thread;
	uint64_t now = 0;
	void *failed;

	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_now(session, &now), -EINVAL);
	cr_assert_eq(perfring_session_add_set(session, set, -1, 0), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_assert_eq(perfring_session_wait(session, 120), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_assert_geq((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 119);
	cr_assert_eq(pthread_create(&thread, NULL, join_and_write, set), 0);
	cr_assert_eq(perfring_session_wait(session, -1), 0);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	cr_assert_eq(item.format->index, 0);
	cr_assert_eq(perfring_session_now(session, &now), 0);
	cr_assert_gt(now, item.time);
	cr_assert_lt(now - item.time, UINT64_C(60000000000), "one clock");
	perfring_session_return(session);
	/* The set goes first. */
	cr_assert_eq(perfring_session_remove_set(session, set), 0);
	perfring_set_close(set);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	perfring_session_close(session);
}

Test(session, rings_are_added_and_removed)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writers[2];
	struct perfring_ring rings[2], broken;
	struct perfring_totals totals;
	struct perfring_item item;
	uint64_t ids[2] = {OUR_ID, OUR_ID + 1}, zero = 0;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_ring_create(&rings[i], &options), 0);
		cr_assert_eq(perfring_writer_open(&writers[i], &rings[i], NULL), 0);
	}
	cr_assert_eq(perfring_session_describe(session, &attr, &zero, 1), -EINVAL);
	cr_assert_str_eq(perfring_session_refusal(session), "0 is no id.");
	cr_assert_eq(perfring_session_describe(session, &attr, ids, 2), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, ids + 1, 1), -EEXIST);
	attr.clockid = CLOCK_REALTIME;
	ids[0] = 5;
	cr_assert_eq(perfring_session_describe(session, &attr, ids, 1), -EINVAL);
	broken = rings[0];
	broken.flags |= PERFRING_RING_READ_ONLY;
	cr_assert_eq(perfring_session_add_ring(session, &broken, -1, 0), -EINVAL);

	cr_assert_eq(perfring_session_add_ring(session, &rings[0], -1, 0), 0);
	cr_assert_eq(perfring_session_add_ring(session, &rings[1], -1, 0), 1);
	cr_assert(!perfring_session_is_over(session));
	cr_assert(write_sample(writers[0], 1));
	cr_assert(write_sample(writers[1], 2));
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EBUSY, "seen, not handed out");
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EBUSY, "handed out, not returned");
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	cr_assert(write_sample(writers[0], 3));
	cr_assert_eq(perfring_session_remove_ring(session, 2), -EINVAL);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EINVAL);
	cr_assert_eq(perfring_session_ring_totals(session, 0, &totals), -EINVAL);
	/* What was not seen stays in the ring, for the next reader. */
	cr_assert_eq(perfring_page_observe(rings[0].page) - perfring_page_reclaim(rings[0].page), 40);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 0);
	perfring_session_return(session);
	cr_assert_eq(perfring_session_add_ring(session, &rings[0], -1, 0), 0, "the free place");
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.samples, 3);
	cr_assert_eq(totals.bytes, 120);
	perfring_session_close(session);
	/* The rings are the caller's. */
	for (int i = 0; i < 2; i++) {
		cr_assert(write_sample(writers[i], 4));
		perfring_writer_close(writers[i]);
		perfring_ring_close(&rings[i]);
	}
}

static void *write_later(void *of)
{
	usleep(50000);
	for (uint64_t i = 0; i < 30; i++)
		write_sample(of, i);
	return NULL;
}

Test(session, rings_that_were_added_end_a_wait)
{
	/* 2048 bytes are the watermark: 51 of our 40-byte samples are below it. */
	struct perfring_ring_options options = {.pages = 1};
	struct perfring_writer_options with = {.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writers[2];
	struct perfring_ring rings[2];
	struct pollfd polled;
	uint64_t id = OUR_ID;
	int64_t began;
	pthread_t thread;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_ring_create(&rings[i], &options), 0);
		cr_assert_eq(perfring_writer_open(&writers[i], &rings[i], &with), 0);
		cr_assert_eq(perfring_session_add_ring(session, &rings[i], with.wake_fd, 0), i);
	}
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 100), 0, "nothing is there");
	cr_assert_geq(milliseconds() - began, 80);
	/* 30 below the watermark; the thread writes 30 more. */
	for (uint64_t i = 0; i < 30; i++)
		cr_assert(write_sample(writers[1], i));
	cr_assert_eq(perfring_wakeup_poll(&rings[1]), 0);
	cr_assert_eq(pthread_create(&thread, NULL, write_later, writers[1]), 0);
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert_lt(milliseconds() - began, 10000);
	pthread_join(thread, NULL);
	/* Told once: no second wait ends by it. (The records are held back, so the wait is short.) */
	cr_assert_eq(perfring_session_wait(session, 20000), 0);

	/* A crossing before the wait ends it at once. */
	for (uint64_t i = 0; i < 52; i++)
		cr_assert(write_sample(writers[0], i));
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert_lt(milliseconds() - began, 10000);
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);

	/* An event loop of one's own: armed by a wait with 0. */
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	polled = (struct pollfd){.fd = perfring_session_fd(session), .events = POLLIN};
	cr_assert_eq(poll(&polled, 1, 0), 0);
	for (uint64_t i = 0; i < 60; i++)
		cr_assert(write_sample(writers[0], i));
	cr_assert_eq(poll(&polled, 1, 0), 1);
	cr_assert_eq(perfring_session_wait(session, 0), 1);
	cr_assert_eq(poll(&polled, 1, 0), 0);

	/* Shared by two, gone with the last. */
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	for (uint64_t i = 0; i < 60; i++)
		cr_assert(write_sample(writers[1], i));
	cr_assert_eq(poll(&polled, 1, 0), 1);
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 1), 0);
	cr_assert_eq(perfring_session_add_ring(session, &rings[1], with.wake_fd, 0), 0);
	perfring_session_close(session);
	for (int i = 0; i < 2; i++) {
		perfring_writer_close(writers[i]);
		perfring_ring_close(&rings[i]);
	}
	close(with.wake_fd);
}

/* An fd that hangs up wakes no more: its ring is looked at now and then, as one without. */
Test(session, a_ring_whose_fd_has_hung_up_is_silent)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	struct perfring_item item;
	uint64_t id = OUR_ID;
	int64_t began;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 0);
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	cr_assert_eq(perfring_session_add_ring(session, &ring, ends[0], 0), 0);
	close(ends[1]);
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert(write_sample(writer, 1));
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 0);
	cr_assert_lt(milliseconds() - began, 10000);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	perfring_session_close(session);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	close(ends[0]);
}
