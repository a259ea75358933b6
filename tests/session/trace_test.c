/* trace_test.c - AUX areas read by a session.
 *
 * No PMU of the machines that this was made on has an AUX area, so all of them are synthetic here: a ring of ours with an
 * area and its producer (aux.h), and memory laid out as the kernel's mapping is, once, positions written by hand. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "session/session_private.h"
#include "stream.h"

TestSuite(trace, .timeout = 60);

enum {
	PAGE = 4096
};

/* What stands at a position, whatever lap it is of. */
static unsigned char byte_of(uint64_t position)
{
	return (unsigned char)(position * 37 + (position >> 12) * 11 + 3);
}

static bool is_right(const struct perfring_aux_piece *piece)
{
	for (uint64_t i = 0; i < piece->size; i++)
		if (piece->bytes[i] != byte_of(piece->position + i))
			return false;
	return true;
}

/* ---- an area of ours ---- */

struct rig {
	struct perfring_session *session;
	struct stream stream;
	struct perfring_aux_area aux; /* the producer's and the session's: one enables the other */
};

static void rig_open(struct rig *rig, unsigned flags)
{
	memset(rig, 0, sizeof(*rig));
	rig->session = stream_session(100, 1, 0);
	stream_open(&rig->stream, rig->session, 8, 0, 2, -1);
	cr_assert_eq(perfring_aux_open(&rig->aux, &rig->stream.ring, flags), 0);
	cr_assert_eq(perfring_session_add_aux(rig->session, rig->stream.number, &rig->aux), 0);
	cr_assert_eq(perfring_session_add_aux(rig->session, rig->stream.number, &rig->aux), -EEXIST);
	rig->stream.id = 100;
	stream_begin(&rig->stream);
	cr_assert_eq(perfring_aux_produce(&rig->aux, rig->stream.writer, NULL, 0), 0);
}

static void rig_close(struct rig *rig)
{
	perfring_session_close(rig->session);
	perfring_aux_close(&rig->aux);
	stream_close(&rig->stream);
}

/* A transaction; returns what begin said. */
static int64_t produce(struct perfring_aux_area *aux, uint64_t size, uint64_t flags)
{
	unsigned char *buffer;
	int64_t n = perfring_aux_begin(aux, &buffer);

	if (n <= 0)
		return n;
	if ((int64_t)size > n && !(aux->flags & PERFRING_RING_OVERWRITE))
		size = (uint64_t)n;
	cr_assert(buffer == aux->data + (aux->position & (aux->size - 1)));
	for (uint64_t i = 0; i < size; i++)
		aux->data[(aux->position + i) & (aux->size - 1)] = byte_of(aux->position + i);
	cr_assert_eq(perfring_aux_end(aux, size, flags), 0);
	return n;
}

/* Records of the round: how many bytes they tell of; *end: behind the last. */
static uint64_t told(struct perfring_session *session, uint64_t *end)
{
	struct perfring_item item;
	uint64_t sum = 0;

	while (perfring_session_next(session, &item) == 1)
		if (item.record->type == 11 /* AUX */) {
			uint64_t words[4];

			memcpy(words, item.record, sizeof(words));
			sum += words[2];
			*end = words[1] + words[2];
		}
	return sum;
}

Test(trace, positions_run_freely_over_laps)
{
	uint64_t next = 0, records = 0, end = 0, wrapped = 0;
	struct perfring_aux_piece piece;
	struct rig rig;

	rig_open(&rig, 0);
	for (uint64_t round = 0; next < 20 * 2 * PAGE; round++) {
		cr_assert_gt(produce(&rig.aux, 1000 + round % 7 * 300, 0), 0);
		cr_assert_gt(produce(&rig.aux, 500, 0), 0);
		perfring_session_flush(rig.session);
		records += told(rig.session, &end);
		while (perfring_session_next_aux(rig.session, &piece) == 1) {
			cr_assert_eq(piece.position, next, "nothing twice, nothing left out");
			cr_assert_eq(piece.ring, rig.stream.number);
			cr_assert(is_right(&piece));
			next += piece.size;
			wrapped += piece.position / (2 * PAGE) != (next - 1) / (2 * PAGE);
		}
		cr_assert_eq(next, end, "the records tell of these bytes");
		cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0);
		/* Looked at again before the return: nothing new. */
		perfring_session_flush(rig.session);
		cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0);
		perfring_session_return(rig.session);
		cr_assert_eq(rig.stream.ring.page->aux_tail, next);
	}
	cr_assert_eq(records, next);
	cr_assert_gt(wrapped, 10, "ours are mapped twice: one piece");
	rig_close(&rig);
}

Test(trace, a_stopped_producer_goes_on_after_a_return)
{
	struct perfring_aux_piece piece;
	struct rig rig;

	rig_open(&rig, 0);
	/* TRUNCATED: there is space, and yet it is stopped. */
	cr_assert_gt(produce(&rig.aux, 100, PERFRING_AUX_TRUNCATED), 0);
	cr_assert_eq(produce(&rig.aux, 100, 0), -EAGAIN);
	perfring_session_flush(rig.session);
	cr_assert_eq(produce(&rig.aux, 100, 0), -EAGAIN, "a look is no return");
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.size, 100);
	cr_assert_eq(produce(&rig.aux, 100, 0), -EAGAIN);
	perfring_session_return(rig.session);
	cr_assert_gt(produce(&rig.aux, 100, 0), 0);
	/* No space: no record tells of it. */
	cr_assert_gt(produce(&rig.aux, 2 * PAGE, 0), 0);
	cr_assert_eq(produce(&rig.aux, 1, 0), 0);
	cr_assert_eq(produce(&rig.aux, 1, 0), -EAGAIN);
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.size, 2 * PAGE - 1, "one byte stays free");
	perfring_session_return(rig.session);
	cr_assert_gt(produce(&rig.aux, 10, 0), 0);
	/* It stopped just before the space came back: there is nothing left to read. */
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	perfring_session_return(rig.session);
	rig.aux.stopped = 1;
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0);
	perfring_session_return(rig.session);
	cr_assert_gt(produce(&rig.aux, 10, 0), 0);
	rig_close(&rig);
}

/* Only what was taken is given back. */
Test(trace, a_piece_that_was_not_taken_stays)
{
	struct perfring_aux_piece piece;
	struct rig rig;

	rig_open(&rig, 0);
	cr_assert_gt(produce(&rig.aux, 700, 0), 0);
	perfring_session_flush(rig.session);
	perfring_session_return(rig.session);
	cr_assert_eq(rig.stream.ring.page->aux_tail, 0);
	cr_assert_gt(produce(&rig.aux, 300, 0), 0);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.size, 700, "the round's");
	cr_assert_eq(perfring_session_remove_ring(rig.session, rig.stream.number), -EBUSY);
	perfring_session_return(rig.session);
	cr_assert_eq(rig.stream.ring.page->aux_tail, 700);
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.position, 700);
	cr_assert_eq(piece.size, 300);
	perfring_session_return(rig.session);
	for (struct perfring_item item; perfring_session_next(rig.session, &item) == 1;)
		;
	perfring_session_return(rig.session);
	cr_assert_eq(perfring_session_remove_ring(rig.session, rig.stream.number), 0);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0);
	rig_close(&rig);
}

Test(trace, snapshot_mode)
{
	struct perfring_aux_piece piece;
	struct rig rig;

	rig_open(&rig, PERFRING_RING_OVERWRITE);
	cr_assert_gt(produce(&rig.aux, 3000, 0), 0);
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.position, 0);
	cr_assert_eq(piece.size, 3000);
	cr_assert(is_right(&piece));
	perfring_session_return(rig.session);
	cr_assert_eq(rig.stream.ring.page->aux_tail, 0, "nothing is given back");
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0, "each once");
	/* Two laps and a half, then the last of them. */
	for (int i = 0; i < 5; i++)
		cr_assert_gt(produce(&rig.aux, PAGE, 0), 0);
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.size, 2 * PAGE, "the whole area");
	cr_assert_eq(piece.position, 3000 + 3 * PAGE);
	cr_assert(is_right(&piece));
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 0);
	/* Gone over while it was out. */
	cr_assert_gt(produce(&rig.aux, 5 * PAGE, 0), 0);
	perfring_session_flush(rig.session);
	cr_assert_eq(perfring_session_next_aux(rig.session, &piece), 1);
	cr_assert_eq(piece.position, 3000 + 8 * PAGE);
	cr_assert(is_right(&piece));
	perfring_session_return(rig.session);
	rig_close(&rig);
}

Test(trace, random_sizes_and_returns)
{
	uint64_t next = 0, stops = 0;
	unsigned seed = 4;
	struct rig rig;

	rig_open(&rig, 0);
	for (int round = 0; round < 20000; round++) {
		struct perfring_aux_piece piece;

		for (int i = rand_r(&seed) % 4; i > 0; i--) {
			int64_t n = produce(&rig.aux, 1 + (uint64_t)rand_r(&seed) % 3000,
					    rand_r(&seed) % 16 ? 0 : PERFRING_AUX_TRUNCATED);

			stops += n == -EAGAIN;
			cr_assert_neq(n, -EBUSY);
		}
		if (rand_r(&seed) % 2)
			perfring_session_flush(rig.session);
		while (rand_r(&seed) % 8 && perfring_session_next_aux(rig.session, &piece) == 1) {
			cr_assert_eq(piece.position, next);
			cr_assert(is_right(&piece));
			next += piece.size;
		}
		if (rand_r(&seed) % 2) {
			for (struct perfring_item item; perfring_session_next(rig.session, &item) == 1;)
				;
			perfring_session_return(rig.session);
			cr_assert_eq(rig.stream.ring.page->aux_tail, next);
		}
	}
	cr_assert_gt(next, 1000 * PAGE);
	cr_assert_gt(stops, 100);
	rig_close(&rig);
}

/* ---- as the kernel's: mapped once ---- */

struct flat {
	struct perfring_session *session;
	unsigned char *memory;
	unsigned char *bytes;
	struct perfring_ring ring;
	struct perfring_aux_area aux;
	uint32_t number;
};

static void flat_open(struct flat *flat, uint64_t start, unsigned flags)
{
	int number;

	memset(flat, 0, sizeof(*flat));
	flat->session = stream_session(100, 1, 0);
	flat->memory = aligned_alloc(PAGE, 2 * PAGE);
	flat->bytes = aligned_alloc(PAGE, 2 * PAGE);
	memset(flat->memory, 0, 2 * PAGE);
	cr_assert_eq(perfring_ring_wrap(&flat->ring, flat->memory, 2 * PAGE), 0);
	flat->ring.page->aux_head = flat->ring.page->aux_tail = start;
	number = perfring_session_add_ring(flat->session, &flat->ring, -1, 0);
	cr_assert_eq(number, 0);
	cr_assert_eq(perfring_aux_wrap(&flat->aux, flat->ring.page, flat->bytes, 2 * PAGE, flags), 0);
	cr_assert_eq(perfring_session_add_aux(flat->session, 0, &flat->aux), 0);
}

static void flat_close(struct flat *flat)
{
	perfring_session_close(flat->session);
	free(flat->memory);
	free(flat->bytes);
}

static void flat_write(struct flat *flat, uint64_t size)
{
	uint64_t head = flat->ring.page->aux_head;

	for (uint64_t i = 0; i < size; i++)
		flat->bytes[(head + i) % (2 * PAGE)] = byte_of(head + i);
	perfring_page_publish_aux(flat->ring.page, head + size);
}

/* As Intel PT's, in snapshots: the position is reduced by the size. */
Test(trace, laps_that_are_not_counted)
{
	struct perfring_aux_piece piece;
	struct flat flat;

	flat_open(&flat, 0, PERFRING_RING_OVERWRITE);
	flat.session->rings[0]->aux->fd = INT32_MAX; /* as if the session had mapped it */
	flat_write(&flat, 3000);
	perfring_session_flush(flat.session);
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
	cr_assert_eq(piece.position, 0);
	cr_assert_eq(piece.size, 3000, "the rest was never written");
	perfring_session_return(flat.session);
	for (uint64_t round = 0; round < 3; round++) {
		uint64_t head = 2 * PAGE + 1000 + round * 500;

		for (uint64_t i = head - 2 * PAGE; i < head; i++)
			flat.bytes[i % (2 * PAGE)] = byte_of(i);
		flat.ring.page->aux_head = head - 2 * PAGE;
		perfring_session_flush(flat.session);
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
		cr_assert_eq(piece.position, head - 2 * PAGE);
		cr_assert_eq(piece.size, 2 * PAGE - piece.position);
		cr_assert(is_right(&piece));
		perfring_session_flush(flat.session); /* in the middle: nothing is lost or twice */
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
		cr_assert_eq(piece.position, 2 * PAGE);
		cr_assert_eq(piece.size, head - 2 * PAGE);
		cr_assert(is_right(&piece));
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 0);
		perfring_session_return(flat.session);
	}
	flat_close(&flat);
}

Test(trace, what_runs_over_the_end_comes_in_two)
{
	struct perfring_aux_piece piece;
	struct flat flat;

	/* And where positions wrap. */
	flat_open(&flat, 0 - (uint64_t)PAGE - 100, 0);
	flat_write(&flat, PAGE);
	perfring_session_flush(flat.session);
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
	cr_assert_eq(piece.size, PAGE);
	perfring_session_return(flat.session);
	flat_write(&flat, 5000);
	perfring_session_flush(flat.session);
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
	cr_assert_eq(piece.position, 0 - UINT64_C(100));
	cr_assert_eq(piece.size, 100);
	cr_assert(is_right(&piece));
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
	cr_assert_eq(piece.position, 0);
	cr_assert_eq(piece.size, 4900);
	cr_assert(piece.bytes == flat.bytes);
	cr_assert(is_right(&piece));
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 0);
	perfring_session_return(flat.session);
	cr_assert_eq(flat.ring.page->aux_tail, 4900);
	/* Not while a piece is out, though there are no records. */
	flat_write(&flat, 1);
	perfring_session_flush(flat.session);
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
	cr_assert_eq(perfring_session_remove_ring(flat.session, 0), -EBUSY);
	perfring_session_return(flat.session);
	cr_assert_eq(perfring_session_remove_ring(flat.session, 0), 0);
	flat_close(&flat);
}

Test(trace, positions_that_cannot_be)
{
	static const uint64_t HEADS[] = {1000 + 2 * PAGE + 1, 999, 0, UINT64_MAX, UINT64_C(1) << 63};

	for (size_t i = 0; i < sizeof(HEADS) / sizeof(*HEADS); i++) {
		struct perfring_aux_piece piece;
		struct perfring_totals totals;
		struct perfring_fault fault;
		struct perfring_item item;
		uint32_t ring = 9;
		struct flat flat;

		flat_open(&flat, 0, 0);
		flat_write(&flat, 1000);
		perfring_session_flush(flat.session);
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
		perfring_session_return(flat.session);
		perfring_page_publish_aux(flat.ring.page, HEADS[i]);
		perfring_session_flush(flat.session);
		perfring_session_flush(flat.session);
		/* Told by whoever asks first, once. */
		cr_assert_eq(i % 2 ? perfring_session_next(flat.session, &item)
				   : perfring_session_next_aux(flat.session, &piece),
			     -EBADMSG);
		fault = perfring_session_fault(flat.session, &ring);
		cr_assert_eq(ring, 0);
		cr_assert_eq(fault.at, (int64_t)HEADS[i]);
		cr_assert_str_eq(fault.what, "aux_head is not between what was read and the area's end");
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 0);
		cr_assert_eq(perfring_session_next(flat.session, &item), 0);
		perfring_session_flush(flat.session);
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 0);
		perfring_session_totals(flat.session, &totals);
		cr_assert_eq(totals.corrupt, 1);
		/* It goes on from where it says that it is. */
		perfring_session_return(flat.session);
		cr_assert_eq(flat.ring.page->aux_tail, HEADS[i]);
		perfring_session_totals(flat.session, &totals);
		cr_assert_leq(totals.skipped, 2 * PAGE);
		flat_write(&flat, 50);
		perfring_session_flush(flat.session);
		cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 1);
		cr_assert_eq(piece.position, HEADS[i]);
		cr_assert_leq(piece.size, 50);
		cr_assert(is_right(&piece));
		flat_close(&flat);
	}
}

/* In snapshot mode any head will do: there is no tail that it could contradict. */
Test(trace, any_head_of_an_area_that_overwrites)
{
	struct perfring_aux_piece piece;
	uint64_t sum = 0;
	struct flat flat;

	flat_open(&flat, 0, PERFRING_RING_OVERWRITE);
	perfring_page_publish_aux(flat.ring.page, UINT64_C(1) << 63 | 77);
	perfring_session_flush(flat.session);
	while (perfring_session_next_aux(flat.session, &piece) == 1) {
		cr_assert(piece.bytes >= flat.bytes && piece.bytes + piece.size <= flat.bytes + 2 * PAGE);
		sum += piece.size;
	}
	cr_assert_eq(sum, 2 * PAGE);
	cr_assert_eq(flat.ring.page->aux_tail, 0);
	flat_close(&flat);
}

Test(trace, wrong_calls)
{
	struct perfring_aux_area none;
	struct perfring_aux_piece piece;
	struct flat flat, other;

	flat_open(&flat, 0, 0);
	flat_open(&other, 0, 0);
	memset(&none, 0, sizeof(none));
	cr_assert_eq(perfring_session_add_aux(flat.session, 1, &flat.aux), -EINVAL, "no such ring");
	cr_assert_eq(perfring_session_add_aux(flat.session, 0, &other.aux), -EINVAL, "another ring's");
	cr_assert_eq(perfring_session_add_aux(flat.session, 0, &none), -EINVAL);
	cr_assert_eq(perfring_session_map_aux(flat.session, 3, false), -EINVAL);
	cr_assert_eq(perfring_session_map_aux(flat.session, 0, false), -EINVAL);
	cr_assert_eq(perfring_session_map_aux(flat.session, 4, false), -EOPNOTSUPP, "no event at all");
	cr_assert_eq(perfring_session_next_aux(flat.session, &piece), 0);
	flat_close(&flat);
	flat_close(&other);
}

/* ---- a producer that runs meanwhile ---- */

struct runner {
	struct rig rig;
	bool stop;
	bool ready;
};

static void *run(void *of)
{
	struct runner *runner = of;

	rig_open(&runner->rig, 0);
	__atomic_store_n(&runner->ready, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&runner->stop, __ATOMIC_ACQUIRE))
		if (produce(&runner->rig.aux, 64, 0) <= 0)
			sched_yield();
	stream_end(&runner->rig.stream);
	return NULL;
}

/* The area is looked at before the ring: what a round hands out of it is told of in the same round, or was before. */
Test(trace, records_come_no_later_than_their_bytes)
{
	struct runner runner = {.stop = false};
	struct perfring_aux_piece piece;
	uint64_t end = 0, next = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, run, &runner), 0);
	while (!__atomic_load_n(&runner.ready, __ATOMIC_ACQUIRE))
		sched_yield();
	while (next < 2000 * PAGE) {
		perfring_session_flush(runner.rig.session);
		told(runner.rig.session, &end);
		while (perfring_session_next_aux(runner.rig.session, &piece) == 1) {
			cr_assert_eq(piece.position, next);
			cr_assert(is_right(&piece));
			next += piece.size;
		}
		cr_assert_leq(next, end, "bytes that no record has told of");
		perfring_session_return(runner.rig.session);
	}
	__atomic_store_n(&runner.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	rig_close(&runner.rig);
}

/* ---- the kernel's refusal ---- */

Test(trace, a_kernel_event_without_an_area)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.exclude_kernel = 1,
	};
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_aux_piece piece;
	int event;

	for (uint32_t options = 0; options <= PERFRING_SESSION_BACKWARD; options += PERFRING_SESSION_BACKWARD) {
		cr_assert_eq(perfring_session_open(&session, 1), 0);
		cr_assert_eq(perfring_session_configure(session, options, 0), 0);
		cr_assert_eq(perfring_target_open(&target), 0);
		cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
		event = perfring_session_add(session, &attr, target);
		perfring_target_close(target);
		if (event == -EACCES || event == -EPERM || event == -ENOSYS)
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		cr_assert_eq(event, 0, "%s", perfring_session_refusal(session));
		if (options) {
			cr_assert_eq(perfring_session_map_aux(session, 4, false), -EINVAL,
				     "an area is described in the control page, which is read-only here");
		} else {
			cr_assert_eq(perfring_session_map_aux(session, 4, false), -EOPNOTSUPP);
			cr_assert_eq(perfring_session_map_aux(session, 4, true), -EOPNOTSUPP);
			cr_assert_eq(session->rings[0]->ring.page->aux_size, 0, "the page says nothing of it");
			cr_assert_eq(session->rings[0]->ring.page->aux_offset, 0);
			cr_assert_eq(perfring_session_add_aux(session, 0, &(struct perfring_aux_area){0}), -EINVAL);
		}
		cr_assert_eq(perfring_session_next_aux(session, &piece), 0);
		perfring_session_close(session);
	}
}
