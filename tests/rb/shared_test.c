/* shared_test.c - shared writers: the kernel's numbers, nested handlers, many threads, processes killed and stopped.
 *
 * The code under test is compiled in here, with a strike at each of its named points: a nested write, SIGKILL, SIGSTOP.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static void strike(const char *name);
static bool barrier_refused; /* as by seccomp */

#define PERFRING_POINT(name) strike(#name)
#define syscall(...) (barrier_refused && (SYS_membarrier == first_of(__VA_ARGS__)) ? refused() : syscall(__VA_ARGS__))
#define first_of(...) first_of_all(__VA_ARGS__, 0)
#define first_of_all(first, ...) (first)

static long refused(void)
{
	errno = ENOSYS;
	return -1;
}

#include "rb/shared.c"

#undef syscall

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include <perfring/reader.h>

#include "machine.h"
#include "os/task.h"
#include "test.h"

TestSuite(shared, .timeout = 120);

/* ---- the board: what each writer did and what the reader saw, in memory that outlives a killed child ---- */

enum {
	WRITERS = 18,
	RECORDS = 1 << 20, /* of one writer */
	RECORD_TYPE = 100,
	PLAIN_TYPE = 1, /* write_plain */
	DEEPEST = 3,
};

enum outcome {
	NOTHING,
	BEGUN,
	RESERVED,
	DISCARDING,
	COMMITTED,
	REFUSED,
	DISCARDED,
};

struct story {
	uint8_t outcome;
	uint8_t seen;
	uint8_t depth; /* records of this writer open below it when it began */
	uint8_t padding;
	uint32_t base; /* the outermost of them; itself */
};

struct board {
	struct story story[WRITERS][RECORDS];
	uint32_t begun[WRITERS]; /* records */
	uint32_t highest[WRITERS];
	uint64_t told; /* by LOST records */
	uint64_t read;
	uint32_t wrong;
	uint32_t passes; /* of the point that is struck */
	uint32_t struck;
	uint32_t phase; /* between processes */
	char what[200];
};

static struct board *board;

static void board_make(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert(board != MAP_FAILED);
}

/* What was written of it: a new one of 150 MB for each case is dear, above all where a sanitizer has a shadow of it. */
static void board_clear(void)
{
	for (unsigned writer = 0; writer < WRITERS; writer++) {
		uint32_t last = board->begun[writer] > board->highest[writer] ? board->begun[writer] : board->highest[writer];

		memset(board->story[writer], 0, (last < RECORDS ? last + 1 : RECORDS) * sizeof(struct story));
	}
	memset(board->begun, 0, sizeof(*board) - offsetof(struct board, begun));
}

static void wrong(const char *what, unsigned writer, unsigned number)
{
	if (__atomic_fetch_add(&board->wrong, 1, __ATOMIC_RELAXED) == 0)
		snprintf(board->what, sizeof(board->what), "%s (writer %u, record %u)", what, writer, number);
}

/* ---- one writer ---- */

/* Records know who wrote them, and each of their bytes is told by that. */
struct author {
	struct perfring_shared *shared;
	unsigned writer;
	uint32_t open[DEEPEST * 4]; /* numbers of the records in the making */
	uint32_t depth;
};

static uint64_t word_of(unsigned writer, uint32_t number, uint32_t i)
{
	return (((uint64_t)writer << 32 | number) + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static void encode(void *room, unsigned writer, uint32_t number, uint32_t size)
{
	struct perf_event_header header = {RECORD_TYPE, (uint16_t)writer, (uint16_t)size};
	uint64_t word = number;
	uint32_t i;

	memcpy(room, &header, sizeof(header));
	if (size >= 16)
		memcpy((char *)room + 8, &word, 8);
	for (i = 2; i < size / 8; i++) {
		word = word_of(writer, number, i);
		memcpy((char *)room + 8 * i, &word, 8);
	}
}

struct piece {
	struct perfring_claim claim;
	uint32_t number;
	bool open;
};

static bool begin(struct author *author, uint32_t size, struct piece *piece)
{
	struct story *story;
	void *room;

	/* A handler in here is within this record: it finds a number that is at most its own. */
	author->open[author->depth] = __atomic_load_n(&board->begun[author->writer], __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	author->depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	piece->number = __atomic_fetch_add(&board->begun[author->writer], 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	author->open[author->depth - 1] = piece->number;
	story = &board->story[author->writer][piece->number];
	story->depth = (uint8_t)(author->depth - 1);
	story->base = author->open[0];
	__atomic_store_n(&story->outcome, BEGUN, __ATOMIC_RELAXED);
	room = perfring_shared_reserve(author->shared, NULL, size, &piece->claim);
	piece->open = room != NULL;
	__atomic_store_n(&story->outcome, room ? RESERVED : REFUSED, __ATOMIC_RELAXED);
	if (room)
		encode(room, author->writer, piece->number, size);
	else
		author->depth--;
	return room != NULL;
}

static void end(struct author *author, struct piece *piece, bool wanted)
{
	struct story *story = &board->story[author->writer][piece->number];

	if (!piece->open)
		return;
	if (wanted) {
		perfring_shared_commit(author->shared, &piece->claim);
	} else {
		__atomic_store_n(&story->outcome, DISCARDING, __ATOMIC_RELAXED);
		perfring_shared_discard(author->shared, &piece->claim);
	}
	__atomic_store_n(&story->outcome, wanted ? COMMITTED : DISCARDED, __ATOMIC_RELAXED);
	author->depth--;
}

static bool put(struct author *author, uint32_t size)
{
	struct piece piece;

	begin(author, size, &piece);
	end(author, &piece, true);
	return piece.open;
}

/* ---- the reader ---- */

static void see(const struct perf_event_header *record)
{
	unsigned writer = record->misc;
	struct story *story;
	uint64_t number, word, i;
	uint32_t later;

	if (record->type == PERF_RECORD_LOST) {
		memcpy(&word, (const char *)record + 16, 8);
		board->told += word;
		return;
	}
	if (record->type != RECORD_TYPE || writer >= WRITERS || record->size < 16) {
		wrong("no record of ours", record->type, record->size);
		return;
	}
	memcpy(&number, (const char *)record + 8, 8);
	if (number >= RECORDS) {
		wrong("no number of ours", writer, 0);
		return;
	}
	for (i = 2; i < record->size / 8; i++) {
		memcpy(&word, (const char *)record + 8 * i, 8);
		if (word != word_of(writer, (uint32_t)number, (uint32_t)i)) {
			wrong("torn", writer, (unsigned)number);
			break;
		}
	}
	story = &board->story[writer][number];
	if (story->seen++)
		wrong("doubled", writer, (unsigned)number);
	/* Later ones may come before it only if they began within it. */
	for (later = (uint32_t)number + 1; later <= board->highest[writer]; later++)
		if (board->story[writer][later].seen &&
		    (board->story[writer][later].base > number || board->story[writer][later].depth <= story->depth))
			wrong("overtaken by a later one", writer, (unsigned)number);
	if (number > board->highest[writer])
		board->highest[writer] = (uint32_t)number;
	board->read++;
}

static void drain(struct perfring_reader *reader)
{
	const struct perf_event_header *record;
	int64_t there = perfring_reader_observe(reader);

	if (there < 0)
		wrong("data_head makes no sense", 0, 0);
	while (there > 0 && perfring_reader_next(reader, &record) == 1)
		see(record);
	if (there > 0 && reader->position != reader->observed)
		wrong("the reader got stuck", 0, 0);
	perfring_reader_return(reader);
}

/* Everything of a writer that was not killed: what it committed is there, once, and nothing else. */
static void check_writer(unsigned writer, uint64_t *refused)
{
	uint32_t i;

	for (i = 0; i < board->begun[writer]; i++) {
		const struct story *story = &board->story[writer][i];

		if (story->seen != (story->outcome == COMMITTED))
			wrong(story->seen ? "seen, though not committed" : "committed, and not seen", writer, i);
		*refused += story->outcome == REFUSED;
	}
}

static void check_nothing_wrong(const char *where, unsigned i)
{
	cr_assert_eq(board->wrong, 0, "%s %u: %u times: %s", where, i, board->wrong, board->what);
}

/* ---- rings ---- */

static void make_ring(struct perfring_ring *ring, uint32_t flags, uint32_t pages, uint32_t chunk, uint32_t owners)
{
	struct perfring_ring_options options = {.pages = pages, .flags = flags, .owners = owners};

	if (flags & PERFRING_RING_LEASED)
		options.chunk = chunk;
	cr_assert_eq(perfring_ring_create(ring, &options), 0);
	cr_assert_eq(ring->flags & flags, flags);
}

static struct perfring_ring_state *state_of(const struct perfring_ring *ring)
{
	return perfring_ring_state_of(ring->page);
}

static const uint32_t modes[] = {PERFRING_RING_STRICT, PERFRING_RING_LEASED};

/* ---- strikes ---- */

enum action {
	NO_ACTION,
	COUNT,
	KILL,
	STOP,
	NEST, /* a record, by the point's thread, as a handler would */
	NEST_FLUSH,
	NEST_DISCARD,
	NEST_BIG,
	NEST_SEAL, /* and the limit is set to 0 then, or before, as a sealer does at any time */
	SEAL_NEST,
	NEST_FILL, /* until the ring is full */
	NEST_LAPS, /* with a reader: the ring goes round twice, if nothing holds it back */
	END_OTHER, /* the record that another writer has in the making */
	CALL,      /* striker.call, at each point */
};

static __thread struct {
	enum action action;
	const char *point;
	uint32_t pass; /* the one that is struck; 0: each */
	struct author *author;
	struct perfring_reader *reader;
	struct piece *piece;
	void (*call)(const char *name);
	unsigned depth;
} striker;

static void strike(const char *name)
{
	struct piece piece;
	uint32_t pass;
	unsigned i;

	if (striker.action == CALL)
		striker.call(name);
	if (!striker.action || striker.action == CALL || strcmp(name, striker.point) != 0)
		return;
	pass = ++board->passes;
	if (striker.action == COUNT || (striker.pass && pass != striker.pass && !striker.depth))
		return;
	if (striker.depth >= (striker.action >= NEST_FILL ? 1 : DEEPEST))
		return;
	board->struck++;
	striker.depth++;
	switch (striker.action) {
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case STOP:
		kill(getpid(), SIGSTOP);
		break;
	case NEST:
		put(striker.author, 40);
		break;
	case NEST_BIG:
		put(striker.author, 400);
		break;
	case NEST_FILL:
		while (put(striker.author, 600))
			;
		break;
	case NEST_LAPS:
		for (i = 0; i < 40; i++) {
			put(striker.author, 400);
			if (i % 8 == 7)
				drain(striker.reader);
		}
		break;
	case NEST_SEAL:
		put(striker.author, 24);
		PERFRING_STORE(&striker.author->shared->slot->limit, 0);
		break;
	case SEAL_NEST:
		PERFRING_STORE(&striker.author->shared->slot->limit, 0);
		put(striker.author, 24);
		break;
	case NEST_FLUSH:
		put(striker.author, 24);
		perfring_shared_flush(striker.author->shared);
		break;
	case END_OTHER:
		end(striker.author, striker.piece, true);
		break;
	case NEST_DISCARD:
		begin(striker.author, 48, &piece);
		end(striker.author, &piece, false);
		break;
	default:
		break;
	}
	striker.depth--;
}

/* What a record, a chunk switch, a refusal and an end pass. */
static const char *const strict_points[] = {
	"shared_asked",    "shared_looked",    "shared_claimed", "shared_moved",   "shared_given",
	"shared_encoded",  "shared_first",     "shared_helped",  "shared_done",    "shared_scanned",
	"shared_stamped",  "shared_published", "shared_woken",   "shared_counted", "shared_refused",
	"shared_relieved", "shared_lost_reported", "shared_opened",  "shared_alone",
};

static const char *const leased_points[] = {
	"shared_asked",     "shared_looked",    "shared_claimed",   "shared_moved",    "shared_given",
	"shared_encoded",   "shared_done",      "shared_scanned",   "shared_stamped",  "shared_published",
	"shared_woken",     "shared_counted",   "shared_refused",   "shared_relieved", "shared_lost_reported",
	"shared_busy",      "shared_added",     "shared_undone",    "shared_closing",  "shared_closed",
	"shared_chunkless", "shared_leased",    "shared_limit_set", "shared_nested",   "shared_settling",
	"shared_left",      "shared_committed", "shared_discarded", "shared_opened",   "shared_alone",
	"shared_first",     "shared_helped",
};

/* Writes all kinds of records, to the end of the ring and beyond; `reader`: gives room back in between. */
static void play(struct author *author, struct perfring_reader *reader, unsigned rounds)
{
	struct piece outer, middle, inner;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		put(author, 24 + i % 7 * 8);
		begin(author, 64, &outer);
		begin(author, 120, &middle);
		put(author, 96);
		end(author, &middle, i % 3 != 0);
		begin(author, 32, &inner);
		end(author, &inner, false);
		end(author, &outer, true);
		put(author, 400);
		if (i % 3 == 2)
			put(author, 800);
		if (i % 4 == 3)
			perfring_shared_flush(author->shared);
		if (reader && i % 12 == 11)
			drain(reader);
	}
}

/* ---- the kernel's numbers (docs/abi.md 7, 15) ---- */

static bool write_plain(struct perfring_shared *shared, struct perfring_output *output, uint32_t type, uint16_t size)
{
	uint64_t record[16] = {0};
	struct perf_event_header header = {type, 0, size};

	memcpy(record, &header, sizeof(header));
	return perfring_shared_write(shared, output, record, size);
}

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

static void put_trailer(const struct perfring_output *output, void *room)
{
	memset(room, 0xab, output->trailer_size);
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
		/* One record's room is not enough: the LOST record needs its own. */
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
	unsigned char *room;
	unsigned i, size;

	for (i = 0; i < 6; i++)
		for (size = 16; size < 65536; size = size == 16 ? 4088 : size == 4088 ? 4096 : size + 61432) {
			make_ring(&ring, PERFRING_RING_LEASED, 1, 1024, 2);
			cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
			PERFRING_STORE(&shared->slot->position, positions[i]);
			PERFRING_STORE(&shared->slot->limit, UINT64_MAX);
			room = perfring_shared_reserve(shared, NULL, size, &claim);
			cr_assert_eq(room == NULL, size > 4088, "%u at %u", size, i);
			if (room) {
				cr_assert_geq(room, ring.data);
				cr_assert_leq(room + size, ring.data + 8192);
				memset(room, 1, size);
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

static void *end_in_a_record(void *data)
{
	struct perfring_shared *shared;
	struct perfring_claim claim;

	if (perfring_shared_open(&shared, data, NULL) == 0)
		perfring_shared_reserve(shared, NULL, 64, &claim);
	return shared;
}

Test(shared, a_thread_that_ends_is_dead)
{
	struct perfring_shared *shared, *ended;
	struct perfring_owner owner;
	struct perfring_ring ring;
	pthread_t thread;
	unsigned i;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	for (i = 0; i < 2; i++) {
		make_ring(&ring, modes[i], 1, 512, 2);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		cr_assert_eq(pthread_create(&thread, NULL, end_in_a_record, &ring), 0);
		pthread_join(thread, (void **)&ended);
		cr_assert_not_null(ended);
		cr_assert_eq(perfring_shared_owner_at(&ring, 1, &owner), 1);
		cr_assert_not(owner.is_alive);
		cr_assert(write_plain(shared, NULL, 1, 24));
		/* In a strict ring the dead one holds it back. */
		cr_assert_eq(ring.page->data_head, 0);
		perfring_shared_flush(shared);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		cr_assert_eq(perfring_shared_lost(&ring), 1);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		munmap(ended, private_size());
		cr_assert_eq(perfring_shared_open(&ended, &ring, NULL), 0);
		perfring_shared_close(ended);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* As a consumer that calls every other type an error. */
static uint64_t read_known_types_alone(const struct perfring_ring *ring, uint64_t *lost, uint64_t *fillers)
{
	uint64_t position = ring->page->data_tail, records = 0;

	for (*lost = *fillers = 0; position != ring->page->data_head;) {
		const unsigned char *at = ring->data + (position & (ring->size - 1));
		struct perf_event_header header;
		uint64_t count, trailer[2];

		memcpy(&header, at, sizeof(header));
		cr_assert_geq(header.size, 24);
		cr_assert(header.type == RECORD_TYPE || header.type == PLAIN_TYPE || header.type == PERF_RECORD_LOST,
			  "type %u", header.type);
		records += header.type != PERF_RECORD_LOST;
		if (header.type == PERF_RECORD_LOST) {
			memcpy(&count, at + 16, 8);
			*lost += count;
			*fillers += perfring_ring_is_filler(&header);
			memcpy(trailer, at + header.size - 16, 16);
			if (header.size >= 40)
				cr_assert(!trailer[0] && !trailer[1], "a trailer of zeros");
		}
		position += header.size;
	}
	return records;
}

/* Space that is not used: discarded, and left by a writer that died. */
Test(shared, fillers_may_be_lost_records)
{
	static const uint32_t sizes[] = {24, 32, 40, 72, 4096, 65528};
	struct perfring_ring_options options = {
		.pages = 256, .flags = PERFRING_RING_STRICT | PERFRING_RING_LOST_FILLERS, .owners = 2};
	uint64_t lost, fillers;
	struct perfring_shared *shared, *ended;
	struct perfring_claim outer, inner;
	struct perfring_reader reader;
	const struct perf_event_header *record;
	struct perfring_ring ring, attached;
	pthread_t thread;
	unsigned seen = 0;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert(ring.flags & PERFRING_RING_LOST_FILLERS);
	cr_assert_eq(perfring_ring_attach(&attached, ring.fd, 0, NULL), 0);
	cr_assert_eq(attached.flags, ring.flags);
	cr_assert_eq(perfring_shared_open(&shared, &attached, NULL), 0);
	cr_assert_null(perfring_shared_reserve(shared, NULL, 16, &outer), "no filler is so small");
	cr_assert(write_plain(shared, NULL, 1, 24));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(ring.data + (ring.page->data_head & (ring.size - 1)), 0xa5, sizes[i]);
		cr_assert_not_null(perfring_shared_reserve(shared, NULL, sizes[i], &outer));
		cr_assert_not_null(perfring_shared_reserve(shared, NULL, 24, &inner));
		encode(inner.space, 1, 2, 24);
		perfring_shared_commit(shared, &inner);
		perfring_shared_discard(shared, &outer);
	}
	cr_assert_eq(read_known_types_alone(&ring, &lost, &fillers), 7);
	cr_assert_eq(lost, 1);
	cr_assert_eq(fillers, 6);
	if (deaths_are_seen()) {
		cr_assert_eq(pthread_create(&thread, NULL, end_in_a_record, &attached), 0);
		pthread_join(thread, (void **)&ended);
		perfring_shared_flush(shared);
		cr_assert(write_plain(shared, NULL, 1, 24));
		cr_assert_eq(read_known_types_alone(&ring, &lost, &fillers), 8);
		cr_assert_eq(lost, 2);
		cr_assert_eq(fillers, 7);
		munmap(ended, private_size());
	}
	/* Our reader passes over them, and not over those that lost something. */
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_gt(perfring_reader_observe(&reader), 0);
	while (perfring_reader_next(&reader, &record) == 1)
		seen += record->type == PERF_RECORD_LOST;
	cr_assert_eq(seen, deaths_are_seen() ? 2 : 1);
	perfring_reader_close(&reader);
	perfring_shared_close(shared);
	perfring_ring_close(&attached);
	perfring_ring_close(&ring);
}

/* Writes until the first record is seen lost with its writer, for at most 10 s. */
static void write_until_recovered(struct perfring_shared *shared, const struct perfring_ring *ring)
{
	for (unsigned tries = 0; tries < 1000 && !perfring_shared_abandoned(ring); tries++) {
		while (write_plain(shared, NULL, 1, 64))
			;
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	cr_assert_eq(perfring_shared_abandoned(ring), 1);
	cr_assert(write_plain(shared, NULL, 1, 64) || ring->page->data_head >= ring->size / 2);
}

/* In a child: reserves a record, and unmaps the ring. */
static bool reserve_and_unmap(int fd)
{
	struct perfring_shared *shared;
	struct perfring_claim claim;
	struct perfring_ring own;

	if (perfring_ring_attach(&own, fd, 0, NULL) < 0 || perfring_shared_open(&shared, &own, NULL) < 0 ||
	    !perfring_shared_reserve(shared, NULL, 64, &claim))
		return false;
	perfring_ring_close(&own);
	return true;
}

enum death {
	REAPED,
	NOT_REAPED,
	THREADS_GO_ON, /* the main thread ends by pthread_exit; its process does not */
	DEATHS,
};

static void *go_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static pid_t start_unmapped(int fd, enum death death)
{
	pid_t child = fork();
	pthread_t thread;

	if (child)
		return child;
	if (!reserve_and_unmap(fd))
		_exit(2);
	if (death == THREADS_GO_ON && !pthread_create(&thread, NULL, go_on, NULL))
		pthread_exit(NULL);
	_exit(death == THREADS_GO_ON ? 3 : 0);
}

/* Until its main thread is a zombie, for at most 10 s. */
static void await_zombie(pid_t child)
{
	struct perfring_os_task thread = {0};

	for (unsigned tries = 0; tries < 1000 && thread.state != 'Z'; tries++) {
		cr_assert_eq(perfring_os_task_stat((uint32_t)child, (uint32_t)child, &thread), 0);
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	}
	cr_assert_eq(thread.state, 'Z');
}

/* The kernel marks no mutex that it cannot reach. */
Test(shared, a_writer_that_dies_with_the_ring_unmapped_is_dead)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;
	int status;
	pid_t child;

	for (unsigned i = 0; i < 2 * DEATHS; i++) {
		enum death death = (enum death)(i / 2);

		make_ring(&ring, modes[i % 2], 4, 512, 2);
		child = start_unmapped(ring.fd, death);
		cr_assert_gt(child, 0);
		if (death == REAPED) {
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert_eq(status, 0);
		} else {
			await_zombie(child);
		}
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		/* In a full ring, without an open or a flush. */
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		write_until_recovered(shared, &ring);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
		if (death == REAPED)
			continue;
		if (death == THREADS_GO_ON)
			kill(child, SIGKILL);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(death == THREADS_GO_ON ? WIFSIGNALED(status) : status == 0, "status %x", status);
	}
}

/* ---- slots that change hands while another looks ---- */

/* Another process and what it is told, one byte each: it answers when it has done so. */
static struct {
	pid_t pid;
	int order[2], answer[2];
	int fd;                           /* of its ring, */
	const struct perfring_ring *ring; /* as this process has it */
	unsigned struck;
	bool died; /* the slot's owner was not alive, as strike_locked saw it */
} peer;

/* The peer: 'o' opens, 'w' writes a record, 'c' closes, 'u' reserves a record, unmaps the ring and ends.  Ends with the pipe. */
static void obey(int fd)
{
	struct perfring_shared *shared = NULL;
	struct perfring_claim claim;
	struct perfring_ring own;
	char order;

	if (perfring_ring_attach(&own, fd, 0, NULL) < 0)
		_exit(2);
	while (read(peer.order[0], &order, 1) == 1) {
		if (order == 'o' && perfring_shared_open(&shared, &own, NULL) < 0)
			_exit(3);
		if (order == 'w' && !write_plain(shared, NULL, 1, 24))
			_exit(4);
		if (order == 'c')
			perfring_shared_close(shared);
		if (order == 'u') {
			if (!perfring_shared_reserve(shared, NULL, 64, &claim))
				_exit(5);
			perfring_ring_close(&own);
			_exit(0);
		}
		if (write(peer.answer[1], &order, 1) != 1)
			_exit(6);
	}
	_exit(0);
}

static void start_peer(int fd)
{
	cr_assert_eq(pipe(peer.order), 0);
	cr_assert_eq(pipe(peer.answer), 0);
	peer.pid = fork();
	if (peer.pid) {
		close(peer.answer[1]); /* then its end ends a read */
		return;
	}
	striker.action = NO_ACTION;
	close(peer.order[1]);
	obey(fd);
}

static void tell_peer(char order)
{
	char answer = 0;

	cr_assert_eq(write(peer.order[1], &order, 1), 1);
	cr_assert_eq(read(peer.answer[0], &answer, 1), order == 'u' ? 0 : 1);
	cr_assert_eq(answer, order == 'u' ? 0 : order);
}

/* `status`: of its end. */
static void end_peer(int status)
{
	int ended;

	close(peer.order[1]);
	cr_assert_eq(waitpid(peer.pid, &ended, 0), peer.pid);
	cr_assert_eq(ended, status);
	close(peer.order[0]);
	close(peer.answer[0]);
}

static void strike_vanished(const char *name)
{
	if (strcmp(name, "shared_vanished") != 0 || peer.pid)
		return;
	start_peer(peer.fd);
	tell_peer('o');
	tell_peer('w');
}

/* Concurrent: mark_vanished, which has read the dead owner's lock word and identity; its partner is take_slot of another process,
 * which takes the slot between that and the exchange of the word.  The exchange compares: else it would mark the new owner's
 * mutex, and two threads would own one slot. */
Test(shared, who_marks_a_vanished_owner_late_takes_no_slot_of_the_living)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;
	int status;
	pid_t child;

	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		child = start_unmapped(ring.fd, REAPED);
		cr_assert_gt(child, 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		peer.fd = ring.fd;
		peer.pid = 0;
		striker.call = strike_vanished;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EUSERS);
		striker.action = NO_ACTION;
		cr_assert_gt(peer.pid, 0, "shared_vanished is never passed");
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert(owner.is_alive);
		cr_assert_eq(owner.pid, (uint32_t)peer.pid);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		tell_peer('w');
		tell_peer('c');
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		perfring_shared_flush(shared);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		perfring_shared_close(shared);
		end_peer(0);
		perfring_ring_close(&ring);
	}
}

/* Killed as it takes a dead owner's slot, when it has cleared the identity and has not locked the mutex: the next one still
 * finds the slot free, and recovers what its first owner left. */
Test(shared, killed_between_identity_and_lock_of_a_slot)
{
	struct perfring_shared *shared;
	struct perfring_ring ring, own;
	struct perfring_claim claim;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (unsigned i = 0; i < 6; i++) {
		unsigned kind = i / 2; /* of the slot: its owner was killed, vanished, has closed */

		board_clear();
		make_ring(&ring, modes[i % 2], 4, 512, 1);
		child = kind == 1 ? start_unmapped(ring.fd, REAPED) : fork();
		if (!child) {
			if (perfring_ring_attach(&own, ring.fd, 0, NULL) < 0 ||
			    perfring_shared_open(&shared, &own, NULL) < 0)
				_exit(2);
			if (kind == 2)
				perfring_shared_close(shared);
			else
				perfring_shared_reserve(shared, NULL, 64, &claim);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		for (unsigned k = 0; k < 2; k++) { /* the second time the identity is cleared already */
			child = fork();
			if (!child) {
				striker.point = "shared_cleared";
				striker.pass = 0;
				striker.action = KILL;
				if (perfring_ring_attach(&own, ring.fd, 0, NULL) < 0)
					_exit(2);
				perfring_shared_open(&shared, &own, NULL);
				_exit(3);
			}
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert(WIFSIGNALED(status), "kind %u: status %x", kind, status);
		}
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0, "kind %u", kind);
		cr_assert_eq(perfring_shared_abandoned(&ring), kind < 2);
		cr_assert_eq(perfring_shared_lost(&ring), kind < 2);
		cr_assert(write_plain(shared, NULL, 1, 24));
		perfring_shared_flush(shared);
		cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

static void strike_locked(const char *name)
{
	struct perfring_owner owner;

	if (strcmp(name, "shared_locked") != 0)
		return;
	peer.struck++;
	perfring_shared_owner_at(peer.ring, 0, &owner);
	peer.died |= !owner.is_alive;
}

/* The dead owner's thread had the number that this thread has now.  Concurrent: has_vanished in any process, between this
 * thread's lock of the mutex and the store of its identity; it must not take the dead one's identity for the word's. */
Test(shared, a_number_that_is_used_again_is_not_the_dead_owners)
{
	struct perfring_shared *shared;
	struct perfring_ring ring;
	uint32_t grain, owners;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		child = start_unmapped(ring.fd, REAPED);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
		tables_of(&ring, &grain, &owners)->identity =
			(uint64_t)child << 42 | (uint64_t)syscall(SYS_gettid) << 20 | 1;
		tables_of(&ring, &grain, &owners)->held.__data.__lock = (int)FUTEX_OWNER_DIED;
		peer.ring = &ring;
		peer.struck = 0;
		peer.died = false;
		striker.call = strike_locked;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		striker.action = NO_ACTION;
		cr_assert_eq(peer.struck, 1);
		cr_assert_not(peer.died);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

static void strike_reopened(const char *name)
{
	if (strcmp(name, "shared_sought") == 0 && peer.struck == 0) {
		peer.struck++;
		tell_peer('c');
	}
	if (strcmp(name, "shared_found") == 0 && peer.struck == 1) {
		peer.struck++;
		tell_peer('o');
	}
}

/* Concurrent: take_slot, which has read the identity of an owner; its partner is that owner, which closes the slot and opens it
 * again before the identity is cleared.  It keeps its name: else none would see it vanish. */
Test(shared, an_owner_that_reopens_keeps_its_identity)
{
	struct perfring_shared *shared;
	struct perfring_owner owner;
	struct perfring_ring ring;

	board_make();
	for (unsigned i = 0; i < 2; i++) {
		board_clear();
		make_ring(&ring, modes[i], 4, 512, 1);
		start_peer(ring.fd);
		tell_peer('o');
		peer.struck = 0;
		striker.call = strike_reopened;
		striker.action = CALL;
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), -EUSERS);
		striker.action = NO_ACTION;
		cr_assert_eq(peer.struck, 2);
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert(owner.is_alive);
		tell_peer('u');
		end_peer(0);
		cr_assert_eq(perfring_shared_owner_at(&ring, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
		cr_assert_eq(perfring_shared_abandoned(&ring), 1);
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* As a machine that went down leaves it: the ring's file, from another boot; here a copy of it. */
Test(shared, a_writer_of_another_boot_is_dead)
{
	for (unsigned i = 0; i < 2; i++) {
		struct perfring_shared *living, *shared;
		struct perfring_ring ring, copy;
		struct perfring_owner owner;
		struct perfring_claim claim;
		uint32_t grain, owners;
		char *bytes;
		size_t size;
		int fd;

		make_ring(&ring, modes[i], 4, 512, 2);
		cr_assert_eq(perfring_shared_open(&living, &ring, NULL), 0);
		cr_assert_not_null(perfring_shared_reserve(living, NULL, 64, &claim));

		size = (size_t)lseek(ring.fd, 0, SEEK_END);
		bytes = malloc(size);
		cr_assert_eq(pread(ring.fd, bytes, size, 0), (ssize_t)size);
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		cr_assert_geq(fd, 0);
		cr_assert_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
		free(bytes);

		cr_assert_eq(perfring_ring_attach(&copy, fd, 0, NULL), 0);
		/* The copy's owner is the thread that has the original: it lives, and what it has reserved is waited for. */
		cr_assert_eq(perfring_shared_owner_at(&copy, 0, &owner), 1);
		cr_assert(owner.is_alive);
		cr_assert_eq(perfring_shared_open(&shared, &copy, NULL), 0);
		cr_assert(write_plain(shared, NULL, 1, 64));
		perfring_shared_flush(shared);
		cr_assert_eq(perfring_shared_abandoned(&copy), 0);

		tables_of(&copy, &grain, &owners)->boot++;
		cr_assert_eq(perfring_shared_owner_at(&copy, 0, &owner), 1);
		cr_assert_not(owner.is_alive);
		write_until_recovered(shared, &copy);
		perfring_shared_close(shared);
		perfring_ring_close(&copy);
		close(fd);
		perfring_shared_commit(living, &claim);
		perfring_shared_close(living);
		perfring_ring_close(&ring);
	}
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

/* ---- killed and stopped at every point ---- */

/* In a child: attaches by the fd alone. */
static int attach_author(struct author *author, struct perfring_ring *ring, int fd, unsigned writer)
{
	memset(author, 0, sizeof(*author));
	author->writer = writer;
	if (perfring_ring_attach(ring, fd, 0, NULL) != 0)
		return -1;
	return perfring_shared_open(&author->shared, ring, NULL);
}

static pid_t start_victim(int fd, const char *point, enum action action, uint32_t pass)
{
	struct perfring_reader reader;
	struct perfring_ring ring;
	struct author author;
	pid_t child = fork();

	if (child)
		return child;
	if (attach_author(&author, &ring, fd, 1) != 0 || perfring_reader_open(&reader, &ring, 0) != 0)
		_exit(2);
	striker.point = point;
	striker.pass = pass;
	striker.author = &author;
	striker.action = action;
	play(&author, &reader, 13);
	striker.action = NO_ACTION;
	perfring_shared_close(author.shared);
	_exit(0);
}

/* What a killed writer left: what it had committed is there; what it was in is there whole, or counted as lost. */
static void check_victim(unsigned writer, bool leased, uint64_t *refused, uint64_t *must, uint64_t *may)
{
	uint32_t i;

	for (i = 0; i < board->begun[writer]; i++) {
		const struct story *story = &board->story[writer][i];
		bool in_another = story->base != i && board->story[writer][story->base].outcome <= DISCARDING &&
				  board->story[writer][story->base].outcome != NOTHING;

		switch (story->outcome) {
		case COMMITTED:
			/* In a lease, what handlers wrote is the interrupted record's. */
			if (!story->seen && !(leased && in_another))
				wrong("committed, and not seen", writer, i);
			*must += !story->seen;
			break;
		case RESERVED:
			*must += !story->seen;
			break;
		case DISCARDED:
		case REFUSED:
			if (story->seen)
				wrong("seen, though refused", writer, i);
			*refused += story->outcome == REFUSED;
			break;
		case BEGUN:
		case DISCARDING:
			*may += !story->seen;
			break;
		default:
			break;
		}
	}
}

static void kill_at(uint32_t mode, const char *point, uint32_t pass, uint32_t owners)
{
	struct author survivor = {.writer = 2}, reopened = {.writer = 3};
	uint64_t refused = 0, must = 0, may = 0;
	struct perfring_reader reader;
	struct perfring_ring ring;
	int status;
	pid_t child;
	unsigned i;

	board_clear();
	make_ring(&ring, mode, 2, 512, owners);
	child = start_victim(ring.fd, point, KILL, pass);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s %u: status %x", point, pass, status);
	/* One that comes later recovers when it opens; its reader goes on where the dead one's was. */
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	drain(&reader);
	for (i = 0; i < 30; i++) {
		put(&survivor, 16 + i % 5 * 80);
		if (i % 7 == 6) {
			perfring_shared_flush(survivor.shared);
			drain(&reader);
		}
	}
	if (owners > 1) {
		cr_assert_eq(perfring_shared_open(&reopened.shared, &ring, NULL), 0);
		put(&reopened, 40);
		perfring_shared_close(reopened.shared);
	}
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	check_victim(1, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	check_writer(2, &refused);
	check_writer(3, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	/* Killed between two words of a count, it is wrong by one. */
	if (strcmp(point, "shared_nested") == 0 || strcmp(point, "shared_committed") == 0)
		may++;
	cr_assert_geq(perfring_shared_lost(&ring), refused + must, "%s %u", point, pass);
	cr_assert_leq(perfring_shared_lost(&ring), refused + must + may, "%s %u", point, pass);
	cr_assert_leq(board->told + state_of(&ring)->lost, perfring_shared_lost(&ring));
	if (must)
		cr_assert_gt(perfring_shared_abandoned(&ring), 0, "%s %u", point, pass);
	cr_assert_leq(perfring_shared_abandoned(&ring), must + may, "%s %u", point, pass);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

static uint32_t passes_of(uint32_t mode, const char *point)
{
	struct perfring_ring ring;
	int status;
	pid_t child;

	board_clear();
	make_ring(&ring, mode, 2, 512, 2);
	child = start_victim(ring.fd, point, COUNT, 0);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_nothing_wrong(point, 0);
	perfring_ring_close(&ring);
	return board->passes;
}

static void kill_everywhere(uint32_t mode, const char *const *points, size_t count)
{
	uint32_t passes, pass;
	unsigned i;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (i = 0; i < count; i++) {
		passes = passes_of(mode, points[i]);
		cr_assert_gt(passes, 0, "%s is never passed", points[i]);
		for (pass = 1; pass <= passes; pass += passes / (30 / stride()) + 1)
			kill_at(mode, points[i], pass, pass % 2 ? 2 : 1);
	}
}

Test(shared, killed_at_every_point_strict)
{
	kill_everywhere(PERFRING_RING_STRICT, strict_points, sizeof(strict_points) / sizeof(strict_points[0]));
}

Test(shared, killed_at_every_point_leased)
{
	kill_everywhere(PERFRING_RING_LEASED, leased_points, sizeof(leased_points) / sizeof(leased_points[0]));
}

/* A crossing is told before it is told no more: by the one that is killed, or by the next. */
Test(shared, a_crossing_is_told_though_its_writer_is_killed)
{
	static const char *const points[] = {"shared_stamped", "shared_published"};
	struct perfring_ring_options options = {
		.pages = 2, .flags = PERFRING_RING_STRICT, .watermark = true, .wakeup = 600, .owners = 2};
	struct perfring_shared *shared;
	struct perfring_ring ring;
	struct author author;
	int status;
	unsigned i;
	pid_t child;

	board_make();
	for (i = 0; i < 2; i++) {
		board_clear();
		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		child = fork();
		if (!child) {
			struct perfring_ring own;

			if (attach_author(&author, &own, ring.fd, 1) != 0)
				_exit(2);
			put(&author, 600);
			striker.point = points[i];
			striker.pass = 0;
			striker.action = KILL;
			put(&author, 600);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFSIGNALED(status), "%s", points[i]);
		cr_assert_eq(ring.page->data_head, 1200);
		if (i == 1) {
			cr_assert_eq(perfring_wakeup_poll(&ring), 0);
			cr_assert_eq(perfring_shared_open(&shared, &ring, NULL), 0);
			cr_assert(write_plain(shared, NULL, 1, 24));
			perfring_shared_close(shared);
		}
		cr_assert_neq(perfring_wakeup_poll(&ring), 0, "%s", points[i]);
		perfring_ring_close(&ring);
	}
}

/* Stopped, it is waited for: nobody writes over it, or publishes past it, or waits in a call; then all is there. */
static void stop_at(uint32_t mode, const char *point, uint32_t pass)
{
	struct author survivor = {.writer = 2};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0;
	unsigned i, refusals = 0;
	int status;
	pid_t child;

	board_clear();
	make_ring(&ring, mode, 2, 512, 2);
	child = start_victim(ring.fd, point, STOP, pass);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert(WIFSTOPPED(status), "%s %u: status %x", point, pass, status);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	for (i = 0; i < 400; i++)
		refusals += !put(&survivor, 64);
	perfring_shared_flush(survivor.shared);
	cr_assert_gt(refusals, 0);
	cr_assert_eq(perfring_shared_abandoned(&ring), 0, "%s %u", point, pass);
	kill(child, SIGCONT);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s %u: status %x", point, pass, status);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	check_writer(1, &refused);
	check_writer(2, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	cr_assert_eq(perfring_shared_lost(&ring), refused, "%s %u", point, pass);
	cr_assert_eq(board->told + state_of(&ring)->lost, refused, "%s %u", point, pass);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

static void stop_everywhere(uint32_t mode, const char *const *points, size_t count)
{
	uint32_t passes, pass;
	unsigned i;

	board_make();
	for (i = 0; i < count; i++) {
		passes = passes_of(mode, points[i]);
		for (pass = 1; pass <= passes; pass += passes / trials(10) + 1)
			stop_at(mode, points[i], pass);
	}
}

Test(shared, stopped_at_every_point_strict)
{
	stop_everywhere(PERFRING_RING_STRICT, strict_points, sizeof(strict_points) / sizeof(strict_points[0]));
}

Test(shared, stopped_at_every_point_leased)
{
	stop_everywhere(PERFRING_RING_LEASED, leased_points, sizeof(leased_points) / sizeof(leased_points[0]));
}

/* ---- a recoverer and a sealer that are killed themselves ---- */

enum recoverer {
	BY_FLUSH, /* opens before the first dies */
	BY_OPEN,  /* opens afterwards, in a slot of its own */
	BY_SLOT,  /* opens in the dead one's slot: there is no other */
};

/* A writer dies in three records; a second dies while it recovers; the third finds all in order. */
static bool kill_recoverer(uint32_t mode, enum recoverer how, const char *point, uint32_t pass)
{
	struct author survivor = {.writer = 3};
	uint64_t refused = 0, must = 0, may = 0;
	struct piece outer, middle, inner;
	struct perfring_reader reader;
	struct perfring_ring ring, own;
	pid_t first, second;
	struct author author;
	int status;
	bool killed;

	board_clear();
	make_ring(&ring, mode, 2, 512, how == BY_SLOT ? 1 : 3);
	if (how == BY_OPEN) {
		/* Keeps the first slot, so that the dead one's is not the first to be looked at. */
		cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	}
	second = fork();
	if (!second) {
		if (how == BY_FLUSH && attach_author(&author, &own, ring.fd, 2) != 0)
			_exit(2);
		__atomic_store_n(&board->phase, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) != 2)
			usleep(100);
		striker.point = point;
		striker.pass = pass;
		striker.action = KILL;
		if (how != BY_FLUSH && attach_author(&author, &own, ring.fd, 2) != 0)
			_exit(2);
		perfring_shared_flush(author.shared);
		striker.action = NO_ACTION;
		put(&author, 48);
		perfring_shared_close(author.shared);
		_exit(0);
	}
	while (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) != 1)
		usleep(100);
	first = fork();
	if (!first) {
		if (attach_author(&author, &own, ring.fd, 1) != 0)
			_exit(2);
		put(&author, 200);
		begin(&author, 64, &outer);
		begin(&author, 72, &middle);
		begin(&author, 400, &inner);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(first, &status, 0), first);
	cr_assert(WIFSIGNALED(status));
	__atomic_store_n(&board->phase, 2, __ATOMIC_RELEASE);
	cr_assert_eq(waitpid(second, &status, 0), second);
	killed = WIFSIGNALED(status);
	cr_assert(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%s %u: %x", point, pass, status);
	if (!survivor.shared)
		cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	cr_assert(put(&survivor, 64));
	perfring_shared_flush(survivor.shared);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	drain(&reader);
	check_victim(1, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	cr_assert_eq(must, 3);
	cr_assert_eq(may, 0);
	check_victim(2, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	check_writer(3, &refused);
	check_nothing_wrong(point, pass);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head), "%s %u", point, pass);
	/* One that dies between taking a room and counting it does not count it; of a lease it may be two. */
	may = strcmp(point, "shared_taken") == 0 && killed ? (mode == PERFRING_RING_LEASED ? 2 : 1) : 0;
	cr_assert_leq(perfring_shared_lost(&ring), must + refused);
	cr_assert_geq(perfring_shared_lost(&ring) + may, must + refused, "%s %u: %llu", point, pass,
		      (unsigned long long)perfring_shared_lost(&ring));
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return killed;
}

static void kill_recoverers(uint32_t mode)
{
	static const char *const points[] = {
		"shared_locked", "shared_taken",     "shared_counted",   "shared_lost_counted",       "shared_filled",
		"shared_first",  "shared_reopening", "shared_recovered", "shared_consistent", "shared_published"};
	unsigned how, i, pass, killed[10] = {0};

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (how = BY_FLUSH; how <= BY_SLOT; how++)
		for (i = 0; i < 10; i++)
			for (pass = 1; pass <= 4 && kill_recoverer(mode, (enum recoverer)how, points[i], pass); pass++)
				killed[i]++;
	for (i = 0; i < 10; i++)
		cr_assert_gt(killed[i], 0, "%s is never passed", points[i]);
}

Test(shared, recoverers_killed_strict)
{
	kill_recoverers(PERFRING_RING_STRICT);
}

Test(shared, recoverers_killed_leased)
{
	kill_recoverers(PERFRING_RING_LEASED);
}

/* The writer lives, and is idle in a chunk; who seals it dies at each point, and so does the next. */
Test(shared, sealers_killed)
{
	static const char *const points[] = {"shared_limited", "shared_barred", "shared_idle",  "shared_taken",
					     "shared_lost_counted",    "shared_filled", "shared_first", "shared_published"};
	struct author author, sealer;
	struct perfring_reader reader;
	struct perfring_ring ring, own;
	uint64_t refused;
	unsigned i, round;
	int status;
	pid_t child;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	for (i = 0; i < 8; i++) {
		board_clear();
		make_ring(&ring, PERFRING_RING_LEASED, 2, 512, 4);
		cr_assert_eq(attach_author(&author, &own, ring.fd, 1), 0);
		for (round = 0; round < 3; round++) {
			cr_assert(put(&author, 64));
			cr_assert(put(&author, 72));
			child = fork();
			if (!child) {
				struct perfring_ring third;

				if (attach_author(&sealer, &third, ring.fd, 2) != 0)
					_exit(2);
				striker.point = points[i];
				striker.pass = 0;
				striker.action = KILL;
				perfring_shared_flush(sealer.shared);
				_exit(0);
			}
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert(WIFSIGNALED(status), "%s %u", points[i], round);
		}
		cr_assert(put(&author, 80));
		perfring_shared_flush(author.shared);
		cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
		drain(&reader);
		refused = 0;
		check_writer(1, &refused);
		check_nothing_wrong(points[i], 0);
		cr_assert_eq(board->read, 7);
		cr_assert_eq(perfring_shared_lost(&ring), 0);
		cr_assert_eq(perfring_shared_abandoned(&ring), 0);
		perfring_shared_close(author.shared);
		perfring_reader_close(&reader);
		perfring_ring_close(&own);
		perfring_ring_close(&ring);
	}
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
	/* The next that is refused seals it; what was read then makes room. */
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
/* A flush looks at the first room as its owner publishes it, and behind it lies a dead writer's. */
Test(shared, a_dead_writers_room_behind_one_just_published)
{
	struct author first = {.writer = 2}, third = {.writer = 3};
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t refused = 0, must = 0, may = 0;
	struct piece piece;
	pid_t child;
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	make_ring(&ring, PERFRING_RING_STRICT, 1, 0, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&first.shared, &ring, NULL), 0);
	cr_assert_eq(perfring_shared_open(&third.shared, &ring, NULL), 0);
	cr_assert(begin(&first, 40, &piece));
	child = start_victim(ring.fd, "shared_encoded", KILL, 0);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	cr_assert(put(&third, 64));
	cr_assert_eq(ring.page->data_head, 0);
	striker.point = "shared_recovering";
	board->passes = board->struck = 0;
	striker.pass = 1;
	striker.action = END_OTHER;
	striker.author = &first;
	striker.piece = &piece;
	perfring_shared_flush(third.shared);
	striker.action = NO_ACTION;
	cr_assert_eq(board->struck, 1);
	cr_assert_eq(perfring_shared_abandoned(&ring), 1);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
	drain(&reader);
	check_victim(1, false, &refused, &must, &may);
	check_writer(2, &refused);
	check_writer(3, &refused);
	check_nothing_wrong("behind", 0);
	perfring_shared_close(first.shared);
	perfring_shared_close(third.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

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
	uint64_t until = perfring_os_clock_now() + 20000000;

	pin_to(1);
	while (perfring_os_clock_now() < until)
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
		.wake_fd = -1, .policy = PERFRING_WRITER_WAIT, .wait_ns = UINT64_C(2000000000)};
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
		cr_assert_eq(pthread_create(&thread, NULL, give_back, &ring), 0);
		begun = perfring_os_clock_now();
		while (ring.page->data_head < 4200)
			cr_assert(write_plain(shared, NULL, 1, 120));
		cr_assert_lt(perfring_os_clock_now() - begun, UINT64_C(2000000000));
		cr_assert_gt(perfring_os_clock_now() - begun, UINT64_C(5000000));
		pthread_join(thread, NULL);
		cr_assert_eq(perfring_shared_lost(&ring), 0);
		/* Within a record it does not. */
		begun = perfring_os_clock_now();
		if (perfring_shared_reserve(shared, NULL, 24, &claim)) {
			while (write_plain(shared, NULL, 1, 120))
				;
			cr_assert_lt(perfring_os_clock_now() - begun, UINT64_C(1000000000));
			memcpy(claim.space, &(struct perf_event_header){1, 0, 24}, 8);
			perfring_shared_commit(shared, &claim);
			cr_assert_eq(perfring_shared_lost(&ring), 1);
		} else {
			cr_assert_fail("there was room");
		}
		perfring_shared_close(shared);
		perfring_ring_close(&ring);
	}
}

/* Its thread's room, claimed and not published: nobody else can give back what it waits for. */
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
			begun = perfring_os_clock_now();
			cr_assert(put(&author, 600));
			cr_assert_lt(perfring_os_clock_now() - begun, UINT64_C(2000000000), "%s", points[k]);
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
	for (i = 0; perfring_os_clock_now() < member->crowd->until && board->begun[author->writer] + 64 < RECORDS; i++) {
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
	crowd.until = perfring_os_clock_now() + UINT64_C(1000000000);
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
		cr_assert_gt(board->begun[i], 50);
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

/* ---- many processes, killed at random ---- */

static void run_massacre(uint32_t mode)
{
	uint64_t refused = 0, must = 0, may = 0, until;
	struct author survivor = {.writer = WRITERS - 1};
	struct perfring_reader reader;
	struct perfring_ring ring;
	unsigned i, generation;
	pid_t child[2];
	int status;

	if (!deaths_are_seen())
		cr_skip_test(NO_ROBUST);
	board_make();
	make_ring(&ring, mode, 4, 512, 4);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(perfring_shared_open(&survivor.shared, &ring, NULL), 0);
	for (generation = 0; generation < 8; generation++) {
		for (i = 0; i < 2; i++) {
			child[i] = fork();
			if (!child[i]) {
				struct perfring_ring own;
				struct author author;

				if (attach_author(&author, &own, ring.fd, generation * 2 + i) != 0)
					_exit(2);
				while (board->begun[author.writer] + 100 < RECORDS)
					play(&author, NULL, 1);
				_exit(0);
			}
			cr_assert_gt(child[i], 0);
		}
		until = perfring_os_clock_now() + 20000000 + generation * 777777;
		while (perfring_os_clock_now() < until || !board->begun[generation * 2] || !board->begun[generation * 2 + 1]) {
			if (board->begun[survivor.writer] + 10 < RECORDS)
				put(&survivor, 64);
			perfring_shared_flush(survivor.shared);
			drain(&reader);
		}
		for (i = 0; i < 2; i++) {
			kill(child[i], SIGKILL);
			cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
			cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "%x", status);
		}
	}
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	/* `claimed` stays where one died before it moved it, until the next claim. */
	cr_assert(put(&survivor, 64));
	perfring_shared_flush(survivor.shared);
	drain(&reader);
	for (i = 0; i < 16; i++) {
		cr_assert_gt(board->begun[i], 0, "writer %u", i);
		check_victim(i, mode == PERFRING_RING_LEASED, &refused, &must, &may);
	}
	check_writer(WRITERS - 1, &refused);
	check_nothing_wrong("massacre", 0);
	cr_assert_eq(ring.page->data_head, shared_claimed_of(&ring, ring.page->data_head));
	cr_assert_geq(perfring_shared_lost(&ring), refused + must);
	/* Each may have died in a count. */
	cr_assert_leq(perfring_shared_lost(&ring), refused + must + may + 16);
	perfring_shared_close(survivor.shared);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

Test(shared, processes_killed_at_random_strict)
{
	run_massacre(PERFRING_RING_STRICT);
}

Test(shared, processes_killed_at_random_leased)
{
	run_massacre(PERFRING_RING_LEASED);
}
