/* session_order_test.c - many rings as one stream: the merge on rings made by hand. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <perfring/session.h>
#include "session/session_private.h"
#include "test.h"

TestSuite(session_order, .timeout = 120);

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

		ring->ops = &perfring__session_forward;
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
static uint64_t hand_take(struct hand *hand, uint64_t *times, uint64_t buffer)
{
	struct perfring_item item;
	uint64_t count = 0;

	while (perfring_session_next(hand->session, &item) == 1) {
		cr_assert_lt(count, buffer);
		times[count++] = item.time;
	}
	return count;
}

Test(session_order, merges_rings_and_holds_back_one_round)
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
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 32), 0);
	hand_sample(&hand, 2, 77, 107, 9);
	hand_sample(&hand, 2, 77, 133, 9);
	hand_sample(&hand, 2, 77, 500, 9);
	perfring__session_look(hand.session, false);
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
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 32), 1);
	cr_assert_eq(times[0], 500);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.samples, 11);
	cr_assert_eq(totals.late, 0);
	cr_assert_eq(totals.first_time, 100);
	cr_assert_eq(totals.last_time, 500);
	hand_close(&hand);
}

Test(session_order, sorts_what_is_nearly_sorted)
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

Test(session_order, counts_what_comes_too_late)
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

Test(session_order, gives_back_no_more_than_was_handed_out)
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
Test(session_order, gives_back_below_the_lowest_that_waits)
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

Test(session_order, equal_times_come_by_ring)
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

Test(session_order, positions_wrap)
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
	perfring__session_look(hand.session, false);
	perfring__session_look(hand.session, false);
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
Test(session_order, a_head_that_falls_back)
{
	struct perfring_totals totals;
	uint64_t times[64];
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_sample(&hand, 0, 77, 110, 2);
	perfring__session_look(hand.session, false);
	perfring_page_publish(hand.session->rings[0]->ring.page, 0);
	hand_sample(&hand, 1, 77, 200, 3);
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 0, "200 is new");
	perfring_page_publish(hand.session->rings[0]->ring.page, hand.head[0]);
	perfring__session_look(hand.session, false);
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 3);
	cr_assert_eq(times[0], 100);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.late + totals.corrupt, 0);
	hand_close(&hand);
}

/* Long random traffic over tiny rings, with and without returns in time: everything comes once, in order, whole. */
Test(session_order, random_traffic)
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
		perfring__session_look(hand.session, round == 19999);
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

Test(session_order, a_corrupt_ring_is_told_once_and_left_behind)
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
Test(session_order, a_head_that_cannot_be)
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
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 64), 0);
	perfring_page_publish(hand.session->rings[1]->ring.page, 3 * PAGE);
	perfring__session_look(hand.session, false);
	cr_assert_eq(perfring_session_next(hand.session, &item), -EBADMSG);
	fault = perfring_session_fault(hand.session, NULL);
	cr_assert_eq(fault.at, 3 * PAGE);
	cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	cr_assert_eq(item.time, 100);
	/* Told once, however many rounds and returns there are; and nothing that waits is given up. */
	for (int i = 0; i < 3; i++) {
		perfring_session_return(hand.session);
		cr_assert_eq(hand.session->rings[1]->ring.page->data_tail, sizeof(struct handmade));
		perfring__session_look(hand.session, false);
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
Test(session_order, a_fault_in_the_middle_of_a_round)
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
	perfring__session_look(hand.session, false);
	cr_assert_eq(perfring_session_next(hand.session, &item), 0);
	perfring__session_look(hand.session, false);
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
Test(session_order, a_fault_that_nobody_asked_for)
{
	struct perf_event_header broken = {.type = 9, .size = 0};
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 1, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_bytes(&hand, 0, &broken, sizeof(broken));
	perfring__session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, sizeof(struct handmade));
	perfring__session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), -EBADMSG);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 0);
	perfring_session_return(hand.session);
	cr_assert_eq(hand.session->rings[0]->ring.page->data_tail, hand.head[0]);
	hand_close(&hand);
}

/* A ring's records without a time stay where they are among its own; there is no saying that they are late. */
Test(session_order, records_without_a_time)
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
Test(session_order, a_round_is_longer_than_a_window)
{
	uint64_t times[512];
	struct hand hand;

	hand_open(&hand, 2, 4 * PAGE);
	for (uint64_t i = 1; i <= 200; i++)
		hand_sample(&hand, 0, 77, 10 * i, i);
	perfring__session_look(hand.session, false);
	cr_assert(perfring__session_holds(hand.session), "seen, not yet in a window");
	cr_assert_eq(hand_take(&hand, times, 512), 0);
	for (uint64_t i = 201; i <= 300; i++)
		hand_sample(&hand, 0, 77, 10 * i, i);
	for (uint64_t i = 1; i <= 300; i++)
		hand_sample(&hand, 1, 77, 10 * i + 1, i);
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 512), 399, "200 old ones and the 199 that lie between them");
	cr_assert_eq(times[398], 2000);
	cr_assert(perfring__session_holds(hand.session));
	/* Taken in bits, over looks. */
	perfring__session_look(hand.session, false);
	for (int i = 0; i < 50; i++) {
		struct perfring_item item;

		cr_assert_eq(perfring_session_next(hand.session, &item), 1);
	}
	perfring_session_return(hand.session);
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 512), 151);
	cr_assert_eq(times[150], 3001);
	perfring_session_return(hand.session);
	cr_assert_not(perfring__session_holds(hand.session), "traffic has stopped, nothing waits");
	hand_close(&hand);
}

/* A record that was not there a round ago is not old because a filler before it was. */
Test(session_order, a_record_behind_an_old_filler_is_new)
{
	struct perf_event_header filler = {PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, sizeof(filler)};
	uint64_t times[8];
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_bytes(&hand, 0, &filler, sizeof(filler));
	perfring__session_look(hand.session, false);
	hand_sample(&hand, 0, 77, 100, 1);
	perfring__session_look(hand.session, false);
	cr_assert_eq(hand_take(&hand, times, 8), 0);
	perfring_session_return(hand.session);
	hand_sample(&hand, 1, 77, 99, 1);
	perfring__session_look(hand.session, false);
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

Test(session_order, a_size_is_read_once)
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
	perfring__session_look(hand.session, true);
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

Test(session_order, against_writing_threads)
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
		perfring__session_look(hand.session, false);
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

Test(session_order, spans_end_before_a_fault)
{
	struct perf_event_header broken = {.type = 9, .size = 4};
	struct perfring_span span;
	struct hand hand;

	hand_open(&hand, 2, PAGE);
	hand_sample(&hand, 0, 77, 100, 1);
	hand_bytes(&hand, 0, &broken, sizeof(broken));
	hand_sample(&hand, 1, 77, 110, 1);
	perfring__session_look(hand.session, false);
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
Test(session_order, a_short_sample_in_a_span)
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
	perfring__session_look(hand.session, false);
	cr_assert_eq(perfring_session_next_span(hand.session, &span), 1);
	perfring_session_totals(hand.session, &totals);
	cr_assert_eq(totals.samples, 2);
	cr_assert_eq(totals.first_time, 100);
	cr_assert_eq(totals.last_time, 100);
	hand_close(&hand);
}

/* Room that a writer gave back: no span has it, and what follows is a span of its own. */
Test(session_order, a_span_ends_at_a_filler)
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
	perfring__session_look(hand.session, false);
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

Test(session_order, a_span_wraps_in_two_pieces)
{
	struct perfring_span span;
	struct hand hand;
	uint64_t seen = 0;

	hand_open(&hand, 1, PAGE);
	for (int lap = 0; lap < 100; lap++) {
		uint64_t before = hand.head[0];

		for (uint64_t i = 0; i < 90; i++)
			hand_sample(&hand, 0, 77, 1 + seen + i, seen + i);
		perfring__session_look(hand.session, false);
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

Test(session_order, strangers_and_loss_are_counted)
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
