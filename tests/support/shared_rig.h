/* shared_rig.h - shared writers whose records are known, the board on which all write down what they did, and the strikes.
 *
 * The code under test is compiled in here, with a strike at each of its named points: a nested write, SIGKILL, SIGSTOP.
 */
#ifndef SHARED_RIG_H
#define SHARED_RIG_H

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

static inline long refused(void)
{
	errno = ENOSYS;
	return -1;
}

#include "rb/shared.c"

#undef syscall

#include <signal.h>
#include <stdio.h>

#include <perfring/reader.h>

#include "machine.h"
#include "test.h"

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

static inline void board_make(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert(board != MAP_FAILED);
}

/* What was written of it: a new one of 150 MB for each case is dear, above all where a sanitizer has a shadow of it. */
static inline void board_clear(void)
{
	for (unsigned writer = 0; writer < WRITERS; writer++) {
		uint32_t last =
			board->begun[writer] > board->highest[writer] ? board->begun[writer] : board->highest[writer];

		memset(board->story[writer], 0, (last < RECORDS ? last + 1 : RECORDS) * sizeof(struct story));
	}
	memset(board->begun, 0, sizeof(*board) - offsetof(struct board, begun));
}

static inline void wrong(const char *what, unsigned writer, unsigned number)
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

static inline uint64_t word_of(unsigned writer, uint32_t number, uint32_t i)
{
	return (((uint64_t)writer << 32 | number) + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static inline void encode(void *space, unsigned writer, uint32_t number, uint32_t size)
{
	struct perf_event_header header = {RECORD_TYPE, (uint16_t)writer, (uint16_t)size};
	uint64_t word = number;
	uint32_t i;

	memcpy(space, &header, sizeof(header));
	if (size >= 16)
		memcpy((char *)space + 8, &word, 8);
	for (i = 2; i < size / 8; i++) {
		word = word_of(writer, number, i);
		memcpy((char *)space + 8 * i, &word, 8);
	}
}

struct piece {
	struct perfring_claim claim;
	uint32_t number;
	bool open;
};

static inline bool begin(struct author *author, uint32_t size, struct piece *piece)
{
	struct story *story;
	void *space;

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
	space = perfring_shared_reserve(author->shared, NULL, size, &piece->claim);
	piece->open = space != NULL;
	__atomic_store_n(&story->outcome, space ? RESERVED : REFUSED, __ATOMIC_RELAXED);
	if (space)
		encode(space, author->writer, piece->number, size);
	else
		author->depth--;
	return space != NULL;
}

static inline void end(struct author *author, struct piece *piece, bool wanted)
{
	struct story *story = &board->story[author->writer][piece->number];

	if (!piece->open)
		return;
	if (wanted) {
		perfring_shared_commit(author->shared, &piece->claim);
		if (!perfring__shared_is_valid(author->shared))
			wrong("not valid after its commit", author->writer, piece->number);
	} else {
		__atomic_store_n(&story->outcome, DISCARDING, __ATOMIC_RELAXED);
		perfring_shared_discard(author->shared, &piece->claim);
	}
	__atomic_store_n(&story->outcome, wanted ? COMMITTED : DISCARDED, __ATOMIC_RELAXED);
	author->depth--;
}

static inline bool put(struct author *author, uint32_t size)
{
	struct piece piece;

	begin(author, size, &piece);
	end(author, &piece, true);
	return piece.open;
}

/* ---- the reader ---- */

static inline void see(const struct perf_event_header *record)
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

static inline void drain(struct perfring_reader *reader)
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
static inline void check_writer(unsigned writer, uint64_t *refused)
{
	uint32_t i;

	for (i = 0; i < board->begun[writer]; i++) {
		const struct story *story = &board->story[writer][i];

		if (story->seen != (story->outcome == COMMITTED))
			wrong(story->seen ? "seen, though not committed" : "committed, and not seen", writer, i);
		*refused += story->outcome == REFUSED;
	}
}

static inline void check_nothing_wrong(const char *where, unsigned i)
{
	cr_assert_eq(board->wrong, 0, "%s %u: %u times: %s", where, i, board->wrong, board->what);
}

/* ---- rings ---- */

static inline void make_ring(struct perfring_ring *ring, uint32_t flags, uint32_t pages, uint32_t chunk,
			     uint32_t owners)
{
	struct perfring_ring_options options = {.pages = pages, .flags = flags, .owners = owners};

	if (flags & PERFRING_RING_LEASED)
		options.chunk = chunk;
	cr_assert_eq(perfring_ring_create(ring, &options), 0);
	cr_assert_eq(ring->flags & flags, flags);
}

static inline struct perfring_ring_state *state_of(const struct perfring_ring *ring)
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

static inline void strike(const char *name)
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
	"shared_asked",    "shared_looked",        "shared_claimed", "shared_moved",   "shared_given",
	"shared_encoded",  "shared_first",         "shared_helped",  "shared_done",    "shared_scanned",
	"shared_stamped",  "shared_published",     "shared_woken",   "shared_counted", "shared_refused",
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

/* Writes all kinds of records, to the end of the ring and beyond; `reader`: gives space back in between. */
static inline void play(struct author *author, struct perfring_reader *reader, unsigned rounds)
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

static inline bool write_plain(struct perfring_shared *shared, struct perfring_output *output, uint32_t type,
			       uint16_t size)
{
	uint64_t record[16] = {0};
	struct perf_event_header header = {type, 0, size};

	memcpy(record, &header, sizeof(header));
	return perfring_shared_write(shared, output, record, size);
}

#endif
