/* shared_test.c - shared writers: the kernel's numbers, nested handlers, sealed chunks, many threads. */
#include "shared_rig.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/reader.h>
#include "machine.h"
#include "test.h"

TestSuite(shared, .timeout = 120);

/* ---- the kernel's numbers (docs/abi.md 7, 15) ---- */

Test(shared, fills_as_the_kernel)
{
	static const struct {
		uint16_t size;
		unsigned fit;
	} rows[] = {{24, 170}, {32, 127}, {40, 102}, {8, 511}};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	unsigned i, k, fit;

	for (i = 0; i < 4; i++) {
		make_ring(&ring, PERFRING_RING_STRICT, 1, 0, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		for (k = 0, fit = 0; k < 600; k++)
			fit += write_plain(shared, NULL, 9, rows[i].size);
		cr_assert_eq(fit, rows[i].fit);
		cr_assert_eq(ring.page->data_head, rows[i].fit * rows[i].size);
		cr_assert_eq(state_of(&ring)->lost, 600 - rows[i].fit);
		cr_assert_eq(perfring_shared_lost(&ring), 600 - rows[i].fit);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

static void put_trailer(const struct perfring_output *output, void *space)
{
	memset(space, 0xab, output->trailer_size);
}

Test(shared, tells_losses_as_the_kernel)
{
	struct perfring_output output = {.id = 77};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	uint64_t words[6];
	unsigned k, trailer;

	for (trailer = 0; trailer <= 24; trailer += 24) {
		output.lost = 0;
		output.trailer_size = trailer;
		output.trailer = put_trailer;
		make_ring(&ring, PERFRING_RING_STRICT, 1, 0, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		for (k = 0; k < 200; k++)
			write_plain(shared, &output, 1, 24);
		cr_assert_eq(ring.page->data_head, 4080);
		cr_assert_eq(output.lost, 30);
		/* One record's space is not enough: the LOST record needs its own. */
		perfring_page_return(ring.page, 24);
		cr_assert_not(write_plain(shared, &output, 1, 24));
		perfring_page_return(ring.page, 72 + trailer);
		cr_assert(write_plain(shared, &output, 1, 24));
		cr_assert_eq(ring.page->data_head, 4128 + trailer);
		memcpy(words, ring.data + 4080, 48);
		cr_assert_eq(words[0], header_word(2, (uint16_t)(24 + trailer)));
		cr_assert_eq(words[1], 77);
		cr_assert_eq(words[2], 31);
		if (trailer)
			cr_assert_eq(words[3], UINT64_C(0xabababababababab));
		else
			cr_assert_eq(words[3], header_word(1, 24));
		cr_assert_eq(output.lost, 31);
		cr_assert_eq(state_of(&ring)->lost, 0);
		cr_assert_eq(perfring_shared_lost(&ring), 31);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

Test(shared, pauses_as_the_kernel)
{
	struct perfring_shared *shared;
	struct perfring_ring ring;
	uint64_t lost;
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 4, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		state_of(&ring)->paused = 1;
		for (k = 0; k < 7; k++)
			cr_assert_not(write_plain(shared, NULL, 1, 24));
		cr_assert_eq(ring.page->data_head, 0);
		state_of(&ring)->paused = 0;
		cr_assert(write_plain(shared, NULL, 1, 24));
		perfring_shared_flush(shared);
		memcpy(&lost, ring.data + 16, 8);
		cr_assert_eq(lost, 7);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* S = 4096, 24-byte records, the consumer always empty, 400 records. */
Test(shared, wakes_as_the_kernel)
{
	static const struct {
		uint32_t watermark;
		uint64_t first;
		unsigned wakes;
	} rows[] = {{0, 2064, 4},   {1, 24, 400},    {23, 24, 400},   {24, 48, 399},    {48, 72, 199},
		    {100, 120, 95}, {2048, 2064, 4}, {4096, 4104, 2}, {100000, 4104, 2}};
	struct perfring_ring_options options = {.pages = 1, .flags = PERFRING_RING_STRICT, .watermark = true};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	uint64_t first;
	unsigned i, k, wakes;

	for (i = 0; i < 9; i++) {
		options.wakeup = rows[i].watermark;
		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		for (k = 0, wakes = 0, first = 0; k < 400; k++) {
			cr_assert(write_plain(shared, NULL, 1, 24));
			if (perfring_wakeup_poll(&ring) & POLLIN && !wakes++)
				first = ring.page->data_head;
			perfring_page_return(ring.page, ring.page->data_head);
		}
		cr_assert_eq(first, rows[i].first, "watermark %u: %llu", rows[i].watermark, (unsigned long long)first);
		cr_assert_eq(wakes, rows[i].wakes, "watermark %u: %u", rows[i].watermark, wakes);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

Test(shared, wakes_by_events)
{
	struct perfring_output sample = {.wakeup_events = 4}, side = {.wakeup_events = 4};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 16, 4096, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		for (k = 1; k <= 40; k++) {
			cr_assert(write_plain(shared, &sample, 9, 24));
			cr_assert_eq(perfring_wakeup_poll(&ring) != 0, k % 4 == 0, "step %u", k);
			cr_assert(write_plain(shared, &side, 1, 24));
			cr_assert_eq(perfring_wakeup_poll(&ring), 0);
			/* Visible when it wakes, in both modes. */
			if (k % 4 == 0)
				cr_assert_geq(ring.page->data_head, k * 48 - 24);
		}
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* A sample that wakes, held back by another's record, wakes when it is published. */
Test(shared, a_held_back_sample_wakes_later)
{
	struct perfring_output output = {.wakeup_events = 1};
	struct perfring_shared *first, *second;
	struct perfring_claim claim;
	struct perfring_ring ring;

	make_ring(&ring, PERFRING_RING_STRICT, 1, 0, 2);
	cr_assert_eq(perfring_shared_open(&first, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&second, &ring, NULL), 0);
	memset(perfring_shared_reserve(first, NULL, 24, &claim), 0, 24);
	cr_assert(write_plain(second, &output, 9, 24));
	cr_assert_eq(perfring_wakeup_poll(&ring), 0);
	perfring_shared_commit(first, &claim);
	cr_assert_neq(perfring_wakeup_poll(&ring), 0);
	perfring_shared_close(first);
	perfring_shared_close(second);
	perfring_ring_close(&ring);
}

Test(shared, refuses_sizes)
{
	static const uint64_t sizes[] = {0,     1,     4,    7,     9,        12,         65529,
					 65532, 65536, 4096, 65528, 1u << 31, UINT64_MAX, UINT64_MAX - 7};
	struct perfring_output output = {.id = 1};
	struct perfring_shared *shared;
	struct perfring_claim claim;
	struct perfring_ring ring;
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		output.lost = 0;
		make_ring(&ring, modes[i], 1, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
			cr_assert_null(perfring_shared_reserve(shared, &output, sizes[k], &claim), "%llu",
				       (unsigned long long)sizes[k]);
		cr_assert_eq(output.lost, k);
		cr_assert_eq(perfring_shared_lost(&ring), k);
		cr_assert_eq(ring.page->data_head, 0);
		cr_assert(write_plain(shared, &output, 1, 24));
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
		/* The largest, with the LOST record before it. */
		make_ring(&ring, modes[i], 64, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		cr_assert_null(perfring_shared_reserve(shared, NULL, 65536, &claim));
		cr_assert_not_null(perfring_shared_reserve(shared, NULL, 65528, &claim));
		memset(claim.space, 0, 65528);
		memcpy(claim.space, &(struct perf_event_header){1, 0, 65528}, 8);
		perfring_shared_commit(shared, &claim);
		cr_assert_geq(ring.page->data_head, 65528 + 24);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* A data_tail that no reader would store: nothing is written outside, and the writer ends. */
Test(shared, bears_a_wild_tail)
{
	static const uint64_t tails[] = {1000000, UINT64_MAX, 1, 4088, (uint64_t)1 << 63, 24};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	unsigned i, k, n;

	for (i = 0; i < 2; i++)
		for (k = 0; k < 6; k++) {
			make_ring(&ring, modes[i], 1, 512, 2);
			cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
			for (n = 0; n < 1000; n++) {
				write_plain(shared, NULL, 1, 40);
				ring.page->data_tail = tails[k] + n;
			}
			perfring_shared_close(shared);
			cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
			perfring_ring_close(&ring);
		}
}

/* The word up to which a chunk is given out, as a peer may store it: nothing is written outside, and no call faults. */
Test(shared, bears_a_wild_limit)
{
	static const uint64_t positions[] = {0, 24, 1020, 4095, UINT64_MAX, (uint64_t)1 << 63};
	struct perfring_shared *shared;
	struct perfring_claim claim;
	struct perfring_ring ring;
	unsigned char *space;
	unsigned i, size;

	for (i = 0; i < 6; i++)
		for (size = 16; size < 65536; size = size == 16 ? 4088 : size == 4088 ? 4096 : size + 61432) {
			make_ring(&ring, PERFRING_RING_LEASED, 1, 1024, 2);
			cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
			PERFRING_STORE(&shared->slot->position, positions[i]);
			PERFRING_STORE(&shared->slot->limit, UINT64_MAX);
			space = perfring_shared_reserve(shared, NULL, size, &claim);
			cr_assert_eq(space == NULL, size > 4088, "%u at %u", size, i);
			if (space) {
				cr_assert_geq(space, ring.data);
				cr_assert_leq(space + size, ring.data + 8192);
				memset(space, 1, size);
				perfring_shared_commit(shared, &claim);
			}
			perfring_shared_close(shared);
			perfring_ring_close(&ring);
		}
}

/* ---- opening ---- */

Test(shared, opens_what_is_its_own)
{
	struct perfring_writer_options options = {.wake_fd = -1};
	struct perfring_shared *shared, *more[4];
	struct perfring_ring ring, other;
	struct perfring_owner owner;
	uint64_t memory[2048] = {0};
	uint32_t grain, owners;

	memset(&ring, 0, sizeof(ring));
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), -EINVAL);
	cr_assert_eq(perfring_shared_lost(&ring), 0);
	cr_assert_eq(perfring_ring_wrap(&ring, memory, sizeof(memory) / 2 + 4096), 0);
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	make_ring(&ring, 0, 1, 0, 0);
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	cr_assert_null(shared);
	perfring_ring_close(&ring);

	make_ring(&ring, PERFRING_RING_LEASED, 1, 512, 3);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_eq(perfring_shared_open(&shared, &other, NULL), -EINVAL);
	perfring_ring_close(&other);
	options.output.trailer_size = 12;
	options.output.trailer = put_trailer;
	cr_assert_eq(perfring_shared_open(&shared, &ring, &options), -EINVAL);
	options.output.trailer_size = 56;
	cr_assert_eq(perfring_shared_open(&shared, &ring, &options), -EINVAL);
	options.output.trailer_size = 8;
	options.output.trailer = NULL;
	cr_assert_eq(perfring_shared_open(&shared, &ring, &options), -EINVAL);
	options.output.trailer_size = 0;
	options.policy = 2;
	cr_assert_eq(perfring_shared_open(&shared, &ring, &options), -EINVAL);
	/* The grain as scribbled over since. */
	state_of(&ring)->grain = 0;
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	state_of(&ring)->grain = 2048;
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	state_of(&ring)->grain = 512;
	state_of(&ring)->owners = 1000;
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	state_of(&ring)->owners = 3;
	/* Made by the other word size. */
	tables_of(&ring, &grain, &owners)->mutex_size ^= 1;
	cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EINVAL);
	tables_of(&ring, &grain, &owners)->mutex_size ^= 1;

	cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 0);
	cr_assert_eq(perfring_shared_open(&more[0], &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&more[1], &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&more[2], &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&more[3], &ring, NULL), -EUSERS);
	cr_assert_eq(perfring_shared_owner_at(&ring, 2, &owner), 1);
	cr_assert_eq(owner.pid, (uint32_t)getpid());
	cr_assert(owner.is_alive);
	cr_assert_eq(perfring_shared_owner_at(&ring, 3, &owner), -EINVAL);
	perfring_shared_close(more[1]);
	cr_assert_eq(perfring_shared_owner_at(&ring, 1, &owner), 0);
	cr_assert_eq(perfring_shared_open(&more[1], &ring, NULL), 0);
	perfring_shared_close(more[0]);
	perfring_shared_close(more[1]);
	perfring_shared_close(more[2]);
	perfring_shared_close(NULL);
	perfring_ring_close(&ring);
}

/* ---- nested writers at every point ---- */

static void nest_at(uint32_t mode, const char *point, enum action action, uint32_t pass)
{
	struct author author = {.writer = 1};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;

	board_clear();
	make_ring(&ring, mode, 2, 512, 2);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&author.shared, &ring, NULL), 0);
	striker.point = point;
	striker.pass = pass;
	striker.author = &author;
	striker.reader = &reader;
	striker.action = action;
	play(&author, &reader, 13);
	striker.action = NO_ACTION;
	perfring_shared_flush(author.shared);
	drain(&reader);
	check_writer(1, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	cr_assert_eq(perfring_shared_lost(&ring), refused, "%s %u", point, pass);
	cr_assert_eq(board->told + state_of(&ring)->lost, refused, "%s %u", point, pass);
	cr_assert_eq(perfring_shared_abandoned(&ring), 0);
	cr_assert_eq(author.depth, 0);
	perfring_shared_close(author.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

static void nest_everywhere(uint32_t mode, const char *const *points, size_t count)
{
	static const enum action actions[] = {NEST,      NEST_BIG,  NEST_FLUSH, NEST_DISCARD,
					      NEST_SEAL, SEAL_NEST, NEST_LAPS};
	uint32_t passes, pass, step;
	unsigned i, k;

	board_make();
	for (i = 0; i < count; i++) {
		nest_at(mode, points[i], COUNT, 0);
		passes = board->passes;
		cr_assert_gt(passes, 0, "%s is never passed", points[i]);
		for (k = 0; k < sizeof(actions) / sizeof(actions[0]); k++) {
			step = passes / (actions[k] == NEST_LAPS ? 6 : 40 / stride()) + 1;
			if (actions[k] != NEST_LAPS) {
				nest_at(mode, points[i], actions[k], 0); /* in chains of three */
				cr_assert_gt(board->struck, 0);
			}
			for (pass = 1; pass <= passes; pass += step) {
				nest_at(mode, points[i], actions[k], pass);
				cr_assert_gt(board->struck, 0);
			}
		}
	}
}

Test(shared, nested_at_every_point_strict)
{
	nest_everywhere(PERFRING_RING_STRICT, strict_points, sizeof(strict_points) / sizeof(strict_points[0]));
}

Test(shared, nested_at_every_point_leased)
{
	nest_everywhere(PERFRING_RING_LEASED, leased_points, sizeof(leased_points) / sizeof(leased_points[0]));
}

/* ---- sealing ---- */

Test(shared, seals_idle_chunks_and_no_others)
{
	struct author first = {.writer = 1}, second = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	struct piece piece;
	uint64_t refused = 0;

	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 4, 1024, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&second.shared, &ring, NULL), 0);
	put(&first, 40);
	put(&second, 48);
	put(&first, 56);
	cr_assert_eq(ring.page->data_head, 0);
	perfring_shared_flush(second.shared);
	cr_assert_eq(ring.page->data_head, 2048);
	drain(&reader);
	cr_assert_eq(board->read, 3);
	/* In a record: what is before it is shown, the rest when it goes on. */
	put(&first, 40);
	begin(&first, 64, &piece);
	put(&second, 48);
	perfring_shared_flush(second.shared);
	drain(&reader);
	cr_assert_eq(board->read, 4);
	cr_assert_eq(ring.page->data_head, 2048 + 40);
	end(&first, &piece, true);
	/* Its limit is down: the next record goes to a new chunk, and closes this one. */
	put(&first, 40);
	drain(&reader);
	cr_assert_eq(board->read, 6);
	perfring_shared_flush(second.shared);
	drain(&reader);
	cr_assert_eq(board->read, 7);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
	check_writer(1, &refused);
	check_writer(2, &refused);
	check_nothing_wrong("sealing", 0);
	cr_assert_eq(refused, 0);
	perfring_shared_close(first.shared);
	perfring_shared_close(second.shared);
	perfring_ring_close(&ring);
}

/* A chunk that is finished to its last byte, and not closed yet: data_head stays in it. */
Test(shared, a_full_chunk_is_not_passed_before_it_is_closed)
{
	struct author first = {.writer = 1}, second = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;
	unsigned i;

	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 1, 512, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&second.shared, &ring, NULL), 0);
	for (i = 0; i < 7; i++)
		cr_assert(put(&first, 64));
	for (i = 0; i < 9; i++)
		cr_assert(put(&second, 64));
	cr_assert_eq(ring.page->data_head, 448);
	drain(&reader);
	cr_assert(put(&first, 64));
	for (i = 0; i < 16; i++)
		cr_assert(put(&second, 64));
	cr_assert_eq(ring.page->data_head, 448);
	drain(&reader);
	cr_assert(put(&first, 64));
	cr_assert_eq(ring.page->data_head, 512 * 4 + 64);
	perfring_shared_close(first.shared);
	perfring_shared_close(second.shared);
	drain(&reader);
	check_writer(1, &refused);
	check_writer(2, &refused);
	check_nothing_wrong("full chunk", 0);
	cr_assert_eq(refused, 0);
	perfring_ring_close(&ring);
}

/* A ring that is full of others' idle chunks is sealed by who finds it so. */
Test(shared, a_full_ring_of_idle_chunks_goes_on)
{
	struct author authors[3] = {{.writer = 0}, {.writer = 1}, {.writer = 2}};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;
	unsigned i;

	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 1, 1024, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(perfring_shared_open(&authors[i].shared, &ring, NULL), 0);
		cr_assert(put(&authors[i], 40));
	}
	for (i = 0; i < 30; i++)
		put(&authors[2], 64);
	drain(&reader);
	cr_assert_geq(board->read, 3);
	cr_assert(put(&authors[2], 64));
	for (i = 0; i < 3; i++)
		perfring_shared_close(authors[i].shared);
	drain(&reader);
	for (i = 0; i < 3; i++)
		check_writer(i, &refused);
	check_nothing_wrong("full", 0);
	cr_assert_gt(refused, 0);
	perfring_ring_close(&ring);
}

/* Full behind a record in the making, and tried then: the ring goes on when that is closed, though its owner idles. */
Test(shared, a_ring_held_back_goes_on_when_the_record_is_closed)
{
	struct author first = {.writer = 1}, second = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	struct piece piece;
	uint64_t refused = 0;
	unsigned i;

	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 1, 1024, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&second.shared, &ring, NULL), 0);
	cr_assert(begin(&first, 64, &piece));
	while (put(&second, 64))
		;
	cr_assert_not(put(&second, 64));
	end(&first, &piece, true);
	/* The next that is refused seals it; what was read then makes space. */
	put(&second, 64);
	drain(&reader);
	for (i = 0; i < 100; i++) {
		cr_assert(put(&second, 64), "%u", i);
		drain(&reader);
	}
	perfring_shared_close(first.shared);
	perfring_shared_close(second.shared);
	drain(&reader);
	check_writer(1, &refused);
	check_writer(2, &refused);
	check_nothing_wrong("held back", 0);
	cr_assert_eq(perfring_shared_lost(&ring), refused);
	perfring_ring_close(&ring);
}

/* Its threads do not pass the sealer's barrier: its chunk stays its own, and what is in it is seen all the same. */
Test(shared, who_is_refused_the_barrier_seals_nothing)
{
	struct author first = {.writer = 1}, second = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	struct piece piece;
	uint64_t refusals = 0;

	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 4, 1024, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&second.shared, &ring, NULL), 0);
	cr_assert(put(&first, 40));
	cr_assert(put(&second, 48));
	barrier_refused = true;
	perfring_shared_flush(second.shared);
	cr_assert_eq(ring.page->data_head, 40);
	/* Its owner closes the chunk instead, and takes another. */
	cr_assert(begin(&first, 56, &piece));
	cr_assert_eq(piece.claim.end, 2048 + 56);
	perfring_shared_flush(second.shared);
	end(&first, &piece, true);
	cr_assert_eq(ring.page->data_head, 2048);
	barrier_refused = false;
	perfring_shared_flush(second.shared);
	cr_assert_eq(ring.page->data_head, 3072);
	drain(&reader);
	cr_assert_eq(board->read, 3);
	perfring_shared_close(first.shared);
	perfring_shared_close(second.shared);
	check_writer(1, &refusals);
	check_writer(2, &refusals);
	check_nothing_wrong("no barrier", 0);
	cr_assert_eq(perfring_shared_lost(&ring), 0);
	perfring_ring_close(&ring);
}

static void pin_to(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	cr_assert_eq(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
}

static void *run_on_the_second(void *data)
{
	uint64_t until = perfring__os_clock_now() + 20000000;

	pin_to(1);
	while (perfring__os_clock_now() < until)
		;
	return data;
}

struct sealed {
	struct author author;
	struct perfring_ring *ring;
	uint32_t asked, done; /* records: one at a time */
};

static void *write_on_the_second(void *data)
{
	struct sealed *sealed = data;
	uint32_t done = 0, asked;

	pin_to(1);
	cr_assert_eq(perfring_shared_open(&sealed->author.shared, sealed->ring, NULL), 0);
	while ((asked = PERFRING_LOAD_ACQUIRE(&sealed->asked)) != UINT32_MAX)
		if (asked != done) {
			put(&sealed->author, 64);
			PERFRING_STORE_RELEASE(&sealed->done, ++done);
		}
	perfring_shared_close(sealed->author.shared);
	return NULL;
}

/* How often the second CPU was interrupted to do something for the first; -1: the kernel does not say. */
static long calls_of_the_second(void)
{
	long calls = -1, first;
	char line[4096], *at;
	FILE *file = fopen("/proc/interrupts", "r");

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		if ((at = strstr(line, "CAL:")) && sscanf(at + 4, "%ld %ld", &first, &calls) != 2)
			calls = -1;
	fclose(file);
	return calls;
}

/* A barrier must reach a CPU that kept our memory map from before we registered for barriers: see bar_others. */
Test(shared, seals_on_a_cpu_that_was_idle_when_we_began, .timeout = 60)
{
	struct sealed sealed = {.author = {.writer = 1}};
	struct perfring_shared *sealer;
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;
	pthread_t thread;
	uint32_t i;
	long calls;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("SKIP-ENV: two CPUs are needed");
	if (calls_of_the_second() < 0)
		cr_skip_test("SKIP-ENV: /proc/interrupts has no line CAL");
	pin_to(0);
	board_make();
	make_ring(&ring, PERFRING_RING_LEASED, 4, 1024, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, run_on_the_second, NULL), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(perfring_shared_open(&sealer, &ring, NULL), 0);
	sealed.ring = &ring;
	cr_assert_eq(pthread_create(&thread, NULL, write_on_the_second, &sealed), 0);
	calls = calls_of_the_second();
	for (i = 1; i <= 500; i++) {
		PERFRING_STORE_RELEASE(&sealed.asked, i);
		while (PERFRING_LOAD_ACQUIRE(&sealed.done) != i)
			;
		perfring_shared_flush(sealer);
		cr_assert_eq(ring.page->data_head, i * UINT64_C(1024));
		drain(&reader);
	}
	/*
	 * The barrier that leaves the CPU out interrupts it never.  The right one may spare it a few: where another task
	 * had just taken it, and where one interrupt served a TLB flush too, which the kernel counts elsewhere.
	 */
	cr_assert_geq(calls_of_the_second() - calls, 250);
	PERFRING_STORE_RELEASE(&sealed.asked, UINT32_MAX);
	pthread_join(thread, NULL);
	perfring_shared_close(sealer);
	cr_assert_eq(board->read, 500);
	check_writer(1, &refused);
	check_nothing_wrong("sealed", 0);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

Test(shared, a_forks_child_writes_nothing)
{
	struct author author = {.writer = 1};
	struct perfring_claim claim;
	struct perfring_ring ring;
	struct piece piece;
	unsigned i;
	int status;
	pid_t child;

	if (!is_kept_from_child(MADV_WIPEONFORK))
		cr_skip_test(NO_WIPEONFORK);
	board_make();
	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 2, 512, 2);
		cr_assert_eq(perfring_shared_open(&author.shared, &ring, NULL), 0);
		put(&author, 40);
		cr_assert(begin(&author, 40, &piece));
		child = fork();
		if (!child) {
			if (perfring_shared_reserve(author.shared, NULL, 24, &claim))
				_exit(1);
			perfring_shared_commit(author.shared, &piece.claim);
			perfring_shared_discard(author.shared, &piece.claim);
			perfring_shared_flush(author.shared);
			perfring_shared_close(author.shared);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
		end(&author, &piece, true);
		perfring_shared_flush(author.shared);
		cr_assert_eq(ring.page->data_head, i ? 512 : 80);
		cr_assert_eq(perfring_shared_lost(&ring), 0);
		perfring_shared_close(author.shared);
		perfring_ring_close(&ring);
	}
}

static void *give_back(void *data)
{
	struct perfring_ring *ring = data;

	usleep(20000);
	perfring_page_return(ring->page, perfring_page_observe(ring->page));
	return NULL;
}

Test(shared, waits_when_asked_and_alone)
{
	struct perfring_writer_options options = {
		.wake_fd = -1, .policy = PERFRING_WRITER_WAIT, .wait_ns = UINT64_C(20000000000)};
	struct perfring_shared *shared;
	struct perfring_claim claim;
	struct perfring_ring ring;
	pthread_t thread;
	uint64_t begun;
	unsigned i;

	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 1, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, &options), 0);
		for (; ring.page->data_head < 3000;)
			write_plain(shared, NULL, 1, 120);
		begun = perfring__os_clock_now();
		cr_assert_eq(pthread_create(&thread, NULL, give_back, &ring), 0);
		while (ring.page->data_head < 4200)
			cr_assert(write_plain(shared, NULL, 1, 120));
		cr_assert_lt(perfring__os_clock_now() - begun, options.wait_ns);
		cr_assert_gt(perfring__os_clock_now() - begun, UINT64_C(5000000));
		pthread_join(thread, NULL);
		cr_assert_eq(perfring_shared_lost(&ring), 0);
		/* Within a record it does not. */
		begun = perfring__os_clock_now();
		if (perfring_shared_reserve(shared, NULL, 24, &claim)) {
			while (write_plain(shared, NULL, 1, 120))
				;
			cr_assert_lt(perfring__os_clock_now() - begun, UINT64_C(1000000000));
			memcpy(claim.space, &(struct perf_event_header){1, 0, 24}, 8);
			perfring_shared_commit(shared, &claim);
			cr_assert_eq(perfring_shared_lost(&ring), 1);
		} else {
			cr_assert_fail("there was space");
		}
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* Its thread's space, claimed and not published: nobody else can give back what it waits for. */
Test(shared, a_handler_waits_for_no_room_of_its_own_thread)
{
	static const char *const points[] = {"shared_moved", "shared_encoded", "shared_first"};
	struct perfring_writer_options options = {
		.wake_fd = -1, .policy = PERFRING_WRITER_WAIT, .wait_ns = UINT64_C(4000000000)};
	struct author author = {.writer = 1};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused, begun;
	unsigned i, k;

	board_make();
	for (i = 0; i < 2; i++)
		for (k = 0; k < 3; k++) {
			board_clear();
			make_ring(&ring, modes[i], 2, 512, 2);
			cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
			cr_assert_eq(perfring_shared_open(&author.shared, &ring, &options), 0);
			striker.point = points[k];
			striker.pass = 1;
			striker.author = &author;
			striker.action = NEST_FILL;
			begun = perfring__os_clock_now();
			cr_assert(put(&author, 600));
			cr_assert_lt(perfring__os_clock_now() - begun, UINT64_C(2000000000), "%s", points[k]);
			cr_assert_eq(board->struck, 1);
			striker.action = NO_ACTION;
			perfring_shared_flush(author.shared);
			drain(&reader);
			refused = 0;
			check_writer(1, &refused);
			check_nothing_wrong(points[k], i);
			cr_assert_eq(refused, 1);
			cr_assert_eq(perfring_shared_lost(&ring), 1);
			perfring_shared_close(author.shared);
			perfring_reader_close(&reader);
			perfring_ring_close(&ring);
		}
}

/* ---- many threads, each with handlers ---- */

static __thread struct author *interrupted;

static void on_timer(int number)
{
	uint32_t i = board->begun[interrupted->writer];

	(void)number;
	if (interrupted->depth + 2 >= DEEPEST * 4 || i + 8 >= RECORDS) {
		handler_ends();
		return;
	}
	put(interrupted, 24 + i % 9 * 8);
	if (i % 5 == 0) {
		struct piece piece;

		begin(interrupted, 40, &piece);
		end(interrupted, &piece, i % 2);
	}
	if (i % 64 == 0)
		perfring_shared_flush(interrupted->shared);
	handler_ends();
}

struct crowd {
	struct perfring_ring ring;
	uint64_t until;
	bool over;
	long interval;
};

struct member {
	struct author author;
	struct crowd *crowd;
	pthread_t thread;
	bool failed;
};

enum {
	ENOUGH = 50, /* records of a thread */
};

static void *write_and_be_interrupted(void *data)
{
	struct member *member = data;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	struct itimerspec often = {{0, member->crowd->interval}, {0, member->crowd->interval}},
			  never = {{0, 0}, {0, 0}};
	struct author *author = &member->author;
	uint32_t i;
	timer_t timer;

	interrupted = author;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (perfring_shared_open(&author->shared, &member->crowd->ring, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
		member->failed = true;
		return NULL;
	}
	timer_settime(timer, 0, &often, NULL);
	/* Beside busy neighbours it goes on until it has done something. */
	for (i = 0; (perfring__os_clock_now() < member->crowd->until || board->begun[author->writer] <= ENOUGH) &&
		    board->begun[author->writer] + 64 < RECORDS;
	     i++) {
		struct piece piece;

		begin(author, 16 + i % 23 * 8, &piece);
		end(author, &piece, i % 11 != 0);
		if (i % 17 == 0)
			put(author, 1000);
		if (i % 501 == 0)
			perfring_shared_flush(author->shared);
		if (!piece.open)
			usleep(50);
	}
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
	perfring_shared_close(author->shared);
	return NULL;
}

static void *read_all(void *data)
{
	struct crowd *crowd = data;
	struct perfring_reader reader;
	bool over;

	if (perfring_reader_open(&reader, &crowd->ring, 0) != 0)
		return NULL;
	do {
		over = __atomic_load_n(&crowd->over, __ATOMIC_ACQUIRE);
		drain(&reader);
		usleep(20);
	} while (!over);
	perfring_reader_close(&reader);
	return crowd;
}

static void run_crowd(uint32_t mode, unsigned threads, uint32_t pages, long interval)
{
	struct member members[8];
	struct crowd crowd;
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART | SA_NODEFER};
	uint64_t refused = 0, attempts = 0, closed = 0;
	pthread_t reader;
	void *read;
	unsigned i;
	uint32_t k;

	board_make();
	memset(&crowd, 0, sizeof(crowd));
	memset(members, 0, sizeof(members));
	make_ring(&crowd.ring, mode, pages, 512, 8);
	crowd.until = perfring__os_clock_now() + UINT64_C(1000000000);
	crowd.interval = interval;
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_all, &crowd), 0);
	for (i = 0; i < threads; i++) {
		members[i].crowd = &crowd;
		members[i].author.writer = i;
		cr_assert_eq(pthread_create(&members[i].thread, NULL, write_and_be_interrupted, &members[i]), 0);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(members[i].thread, NULL);
		cr_assert_not(members[i].failed);
	}
	__atomic_store_n(&crowd.over, true, __ATOMIC_RELEASE);
	pthread_join(reader, &read);
	cr_assert_not_null(read);
	for (i = 0; i < threads; i++) {
		check_writer(i, &refused);
		attempts += board->begun[i];
		cr_assert_gt(board->begun[i], ENOUGH);
		for (k = 0; k < board->begun[i]; k++)
			closed += board->story[i][k].outcome == DISCARDED;
	}
	check_nothing_wrong("crowd", threads);
	cr_assert_eq(board->read + refused + closed, attempts);
	cr_assert_eq(perfring_shared_lost(&crowd.ring), refused);
	cr_assert_eq(board->told + state_of(&crowd.ring)->lost, refused);
	cr_assert_eq(perfring_shared_abandoned(&crowd.ring), 0);
	cr_assert_eq(crowd.ring.page->data_head, shared_claimed_of(&crowd.ring, crowd.ring.page->data_head));
	perfring_ring_close(&crowd.ring);
}

Test(shared, two_threads_with_handlers_strict)
{
	run_crowd(PERFRING_RING_STRICT, 2, 2, 50000);
}

Test(shared, eight_threads_with_handlers_strict)
{
	run_crowd(PERFRING_RING_STRICT, 8, 16, 250000);
}

Test(shared, two_threads_with_handlers_leased)
{
	run_crowd(PERFRING_RING_LEASED, 2, 2, 50000);
}

Test(shared, eight_threads_with_handlers_leased)
{
	run_crowd(PERFRING_RING_LEASED, 8, 16, 250000);
}
