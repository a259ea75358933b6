/* nest.h - writes that interrupt one another in one ring, in every mode, and a reader of our own that judges what they
 * leave: for step.c, which interrupts the compiled writer at each instruction, and nested_test.c, at each named point.
 *
 * A run: the ring and the writer are set as they were when the mode began, one operation is performed, and it is stopped
 * at one boundary after another, each time for another operation.  A plan says where: the n-th boundary counted from the
 * stop before, in the operation that interrupts (a chain) or in the rest of the one that was interrupted (in sequence).
 *
 * Who includes this calls nest_boundary at each boundary, or nest_strike at the one that nest_arm was told, and defines
 *     nest_subjects[]       the operations
 *     nest_arm(stop)        from here on boundaries count; stop == nest_plan.stops: to the end, for nest_traced
 *     nest_disarm()         boundaries do not count any more
 *     nest_around(subject)  calls it
 */
#ifndef NEST_H
#define NEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <perfring/ring.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>

enum {
	NEST_SIZE = 4096,
	NEST_STOPS = 3,
	NEST_TRAILER = 16,
	NEST_OPS = NEST_STOPS + 1,
};

/* ---- records, and the operations that write them ---- */

enum nest_kind {
	NEST_WRITE,   /* 24 bytes */
	NEST_LONG,    /* 40 */
	NEST_DISCARD, /* 24, not wanted */
	NEST_THREE,   /* a transaction of three */
	NEST_TWO,     /* of three, two taken */
	NEST_SUBJECTS,
	NEST_NONE,   /* of three, nothing taken */
	NEST_PAUSE,  /* pause, then a write */
	NEST_RESUME, /* pause, resume, a write */
	NEST_CALL,   /* the reader is about to sleep: perfring_writer_arm */
	NEST_DRAIN,  /* the reader gives everything back, then a write */
};

typedef uint64_t nest_subject(struct perfring_writer *writer, uint64_t id);

#define NEST_INLINE static inline __attribute__((__always_inline__, unused))

NEST_INLINE uint64_t nest_word(uint64_t id, uint64_t index)
{
	return (id + 1) * UINT64_C(0x9e3779b97f4a7c15) + index;
}

NEST_INLINE void nest_encode(void *space, uint16_t size, uint64_t id)
{
	struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, size};
	uint64_t *words = space;
	unsigned i;

	memcpy(words, &header, sizeof(header));
	words[1] = id;
	for (i = 2; i < size / 8; i++)
		words[i] = nest_word(id, i);
}

/* Each gives how many records were taken. */
NEST_INLINE uint64_t nest_write(struct perfring_writer *writer, uint64_t id, uint16_t size)
{
	struct perfring_claim claim;
	void *space = perfring_writer_reserve(writer, NULL, size, &claim);

	if (!space)
		return 0;
	nest_encode(space, size, id);
	perfring_writer_commit(writer, &claim);
	return 1;
}

NEST_INLINE uint64_t nest_discard(struct perfring_writer *writer, uint64_t id)
{
	struct perfring_claim claim;
	void *space = perfring_writer_reserve(writer, NULL, 24, &claim);

	if (!space)
		return 0;
	nest_encode(space, 24, id);
	perfring_writer_discard(writer, &claim);
	return 1;
}

NEST_INLINE uint64_t nest_transaction(struct perfring_writer *writer, uint64_t id, unsigned records)
{
	struct perfring_claim claim;
	unsigned i;

	if (!perfring_writer_begin(writer, NULL, 72, 3, &claim))
		return 0;
	for (i = 0; i < records; i++)
		nest_encode(perfring_writer_take(&claim, 24), 24, id + i);
	perfring_writer_end(writer, &claim);
	return 1;
}

extern nest_subject *const nest_subjects[NEST_SUBJECTS + 1];

#ifndef STEP_SUBJECT

/* ---- modes ---- */

struct nest_mode {
	const char *name;
	uint32_t flags;  /* of the ring */
	uint32_t at;     /* bytes before the end of the data, where the next record goes */
	int32_t free;    /* bytes that are free, as the space test counts (S - 1 when nothing is unread); -1: all */
	uint32_t lost;   /* refused before */
	uint32_t due;    /* a wakeup is due when so many bytes more have been written; 0: far away */
	uint32_t events; /* wakeup_events; one short of them before */
	bool armed;      /* the reader sleeps on its eventfd */
	bool paused;
	int32_t fit; /* so many records fit, the first of those that are tried; -1: it depends */
	uint8_t kinds[NEST_OPS];
};

#define NEST_BACKWARD PERFRING_RING_BACKWARD
#define NEST_OVERWRITE (PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE)
#define NEST_FORWARD PERFRING_RING_OVERWRITE

/* LOST with its trailer: 40 bytes. */
static const struct nest_mode nest_modes[] = {
	{"large", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {0}},
	{"mixed sizes", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_LONG, NEST_WRITE, NEST_LONG}},
	{"mixed sizes, longer inside", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_LONG, NEST_WRITE, NEST_LONG}},
	{"full", 0, 2048, 7, 0, 0, 0, 0, 0, 0, {0}},
	{"space for 1", 0, 2048, 31, 0, 0, 0, 0, 0, 1, {0}},
	{"space for 2", 0, 2048, 55, 0, 0, 0, 0, 0, 2, {0}},
	{"space for 3", 0, 2048, 79, 0, 0, 0, 0, 0, 3, {0}},
	{"space for 2, mixed", 0, 2048, 71, 0, 0, 0, 0, 0, -1, {NEST_LONG, NEST_WRITE, NEST_LONG}},
	{"full, drained meanwhile", 0, 2048, 7, 0, 0, 0, 0, 0, -1, {NEST_WRITE, NEST_DRAIN, NEST_WRITE, NEST_DRAIN}},
	{"space for 1, drained meanwhile", 0, 2048, 31, 0, 0, 0, 0, 0, -1, {NEST_WRITE, NEST_WRITE, NEST_DRAIN}},
	{"wrapping", 0, 16, -1, 0, 0, 0, 0, 0, 4, {0}},
	{"wrapping, transactions", 0, 32, -1, 0, 0, 0, 0, 0, 4, {NEST_THREE, NEST_THREE, NEST_WRITE, NEST_THREE}},
	{"loss pending", 0, 2048, -1, 5, 0, 0, 0, 0, 4, {0}},
	{"loss pending, wrapping", 0, 32, -1, 5, 0, 0, 0, 0, 4, {0}},
	{"loss pending, space for the record alone", 0, 2048, 63, 5, 0, 0, 0, 0, 0, {0}},
	{"loss pending, space for both", 0, 2048, 71, 5, 0, 0, 0, 0, -1, {0}},
	{"loss pending, space for one more", 0, 2048, 95, 5, 0, 0, 0, 0, -1, {0}},
	{"loss pending, space for a short one more", 0, 2048, 95, 5, 0, 0, 0, 0, -1, {NEST_WRITE, NEST_LONG, NEST_LONG}},
	{"loss pending, paused meanwhile", 0, 2048, -1, 5, 0, 0, 0, 0, -1, {NEST_WRITE, NEST_PAUSE, NEST_WRITE}},
	{"loss pending, before the watermark", 0, 2048, -1, 5, 64, 0, 0, 0, 4, {0}},
	{"loss pending, called", 0, 2048, -1, 5, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_CALL, NEST_WRITE}},
	{"loss pending, discards", 0, 2048, -1, 5, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"loss pending, a discard first", 0, 2048, -1, 5, 0, 0, 0, 0, 4, {NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"at the watermark", 0, 2048, -1, 0, 8, 0, 0, 0, 4, {0}},
	{"before the watermark", 0, 2048, -1, 0, 24, 0, 0, 0, 4, {0}},
	{"at the watermark, armed", 0, 2048, -1, 0, 32, 0, 1, 0, 4, {0}},
	{"at the watermark, full", 0, 2048, 55, 0, 8, 0, 0, 0, 2, {0}},
	{"wakeup_events", 0, 2048, -1, 0, 0, 2, 0, 0, 4, {0}},
	{"wakeup_events, transactions", 0, 2048, -1, 0, 0, 3, 0, 0, 4, {NEST_THREE, NEST_WRITE, NEST_TWO}},
	{"wakeup_events, nothing taken", 0, 2048, -1, 0, 0, 3, 0, 0, 4, {NEST_NONE, NEST_WRITE, NEST_NONE}},
	{"called", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_CALL, NEST_WRITE}},
	{"paused", 0, 2048, -1, 0, 0, 0, 0, 1, 0, {0}},
	{"paused meanwhile", 0, 2048, -1, 0, 0, 0, 0, 0, -1, {NEST_WRITE, NEST_PAUSE, NEST_WRITE}},
	{"resumed meanwhile", 0, 2048, -1, 0, 0, 0, 0, 1, -1, {NEST_WRITE, NEST_RESUME, NEST_WRITE}},
	{"discarded", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_DISCARD, NEST_WRITE, NEST_WRITE}},
	{"discards nested", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_DISCARD, NEST_DISCARD}},
	{"discarded, space for 1", 0, 2048, 31, 0, 0, 0, 0, 0, -1, {NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"transaction", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_THREE, NEST_WRITE, NEST_THREE}},
	{"transaction, partly taken", 0, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_TWO, NEST_WRITE, NEST_TWO}},
	{"transaction, space for 2", 0, 2048, 55, 0, 0, 0, 0, 0, -1, {NEST_THREE, NEST_WRITE, NEST_TWO}},
	{"backward", NEST_BACKWARD, 2048, -1, 0, 0, 0, 0, 0, 4, {0}},
	{"backward, space for 1", NEST_BACKWARD, 2048, 31, 0, 0, 0, 0, 0, 1, {0}},
	{"backward, space for 2", NEST_BACKWARD, 2048, 55, 0, 0, 0, 0, 0, 2, {0}},
	{"backward, loss pending, wrapping", NEST_BACKWARD, 16, -1, 5, 0, 0, 0, 0, 4, {NEST_LONG, NEST_WRITE}},
	{"backward, loss pending, discards",
	 NEST_BACKWARD,
	 2048,
	 -1,
	 5,
	 0,
	 0,
	 0,
	 0,
	 4,
	 {NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"backward, transactions", NEST_BACKWARD, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_TWO, NEST_THREE, NEST_WRITE}},
	{"backward, before the watermark", NEST_BACKWARD, 2048, -1, 0, 24, 0, 0, 0, 4, {0}},
	{"backward, at the watermark", NEST_BACKWARD, 2048, -1, 0, 8, 0, 0, 0, 4, {0}},
	{"overwriting", NEST_OVERWRITE, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_LONG, NEST_WRITE}},
	{"overwriting, wrapping", NEST_OVERWRITE, 16, -1, 0, 0, 0, 0, 0, 4, {NEST_LONG, NEST_WRITE, NEST_LONG}},
	{"overwriting, at the watermark", NEST_OVERWRITE, 2048, -1, 0, 8, 0, 1, 0, 4, {0}},
	{"overwriting, discards", NEST_OVERWRITE, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"overwriting, transactions", NEST_OVERWRITE, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_TWO, NEST_THREE, NEST_WRITE}},
	{"overwriting forward", NEST_FORWARD, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_WRITE, NEST_LONG, NEST_WRITE}},
	{"overwriting forward, wrapping", NEST_FORWARD, 16, -1, 0, 0, 0, 0, 0, 4, {NEST_LONG, NEST_WRITE, NEST_LONG}},
	{"overwriting forward, at the watermark", NEST_FORWARD, 2048, -1, 0, 8, 0, 1, 0, 4, {0}},
	{"overwriting forward, discards", NEST_FORWARD, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_DISCARD, NEST_WRITE, NEST_DISCARD}},
	{"overwriting forward, transactions", NEST_FORWARD, 2048, -1, 0, 0, 0, 0, 0, 4, {NEST_TWO, NEST_THREE, NEST_WRITE}},
};

enum {
	NEST_MODES = sizeof(nest_modes) / sizeof(nest_modes[0])
};

/* ---- the run ---- */

struct nest_plan {
	unsigned stops;
	unsigned at[NEST_STOPS];
	bool rest[NEST_STOPS]; /* what follows this stop is counted in the rest of what it interrupted */
	bool trace;            /* count the boundaries behind the last stop */
};

struct nest_op {
	uint8_t kind;
	bool begun, ended;
	uint64_t taken; /* what the subject said */
};

/* All of it is a handler's as well. */
static volatile struct nest_plan nest_plan;
static volatile struct nest_op nest_ops[NEST_OPS + 2];
static volatile unsigned nest_count; /* operations begun */
static volatile unsigned nest_next;  /* the stop that is armed */
static volatile bool nest_armed;
static volatile bool nest_looks; /* at every boundary */
static volatile unsigned nest_traced;
static unsigned nest_left;
static uint64_t nest_runs, nest_looked, nest_boundaries;

static const struct nest_mode *nest_mode;
static struct perfring_ring nest_ring;
static struct perfring_writer *nest_writer;
static int nest_fd = -1;

/* As the mode began. */
static struct perfring_writer nest_writer_image;
static unsigned char nest_page_image[NEST_SIZE], nest_data_image[NEST_SIZE];
static uint64_t nest_start; /* data_head */
static uint64_t nest_position;
static uint64_t nest_lost_start;
static uint64_t nest_seen; /* data_head, as last looked at */

static volatile uint64_t nest_paused_at; /* how far space was given out when pause returned */

static unsigned nest_failures;
static char nest_first[512];

static void nest_arm(unsigned stop);
static void nest_disarm(void);
static uint64_t nest_around(nest_subject *subject, uint64_t id);

static void nest_fail(const char *what, uint64_t got, uint64_t expected)
{
	if (nest_failures++)
		return;
	snprintf(nest_first, sizeof(nest_first), "%s: %s: %#llx, not %#llx (stops %u: %u%s %u%s %u, %u operations%s)",
		 nest_mode ? nest_mode->name : "?", what, (unsigned long long)got, (unsigned long long)expected,
		 nest_plan.stops, nest_plan.at[0], nest_plan.rest[0] ? " then" : "", nest_plan.at[1],
		 nest_plan.rest[1] ? " then" : "", nest_plan.at[2], nest_count, nest_looks ? ", looking" : "");
}

static void nest_expect(const char *what, uint64_t got, uint64_t expected)
{
	if (got != expected)
		nest_fail(what, got, expected);
}

static struct perfring_ring_state *nest_state(void)
{
	return perfring_ring_state_of(nest_ring.page);
}

static void nest_trailer(const struct perfring_output *output, void *space)
{
	uint64_t words[2] = {output->id * 3, output->id * 5};

	memcpy(space, words, sizeof(words));
}

static bool nest_falls(void)
{
	return nest_mode->flags & PERFRING_RING_BACKWARD;
}

static bool nest_overwrites(void)
{
	return nest_mode->flags & PERFRING_RING_OVERWRITE;
}

/* ---- the reader: nothing of perfring's but where the bytes are ---- */

/* What was found by a walk. */
struct nest_found {
	unsigned records[NEST_OPS + 2][3];
	uint64_t order[NEST_OPS * 3 + 4]; /* ids, by address */
	unsigned count;
	uint64_t lost; /* the sum of LOST values */
	unsigned losts, fillers;
	unsigned last; /* type of the last */
};

enum {
	NEST_OLD = 0x40000000
}; /* ids of what stood in the ring before */

/* One record at `at`, before `end`.  Returns its size, or 0 when it is none that could be there. */
static unsigned nest_record(uint64_t at, uint64_t end, struct nest_found *found)
{
	const unsigned char *bytes = nest_ring.data + (at & (NEST_SIZE - 1));
	struct perf_event_header header;
	uint64_t words[8], op;
	unsigned i;

	memcpy(&header, bytes, sizeof(header));
	if (header.size < 8 || header.size & 7 || header.size > end - at) {
		nest_fail("record size", header.size, end - at);
		return 0;
	}
	found->last = header.type;
	if (header.type == PERFRING_FILLER_TYPE && header.misc == PERFRING_FILLER_MISC) {
		found->fillers++;
		return header.size;
	}
	if (header.size > sizeof(words)) {
		nest_fail("record size", header.size, 24);
		return 0;
	}
	memcpy(words, bytes, header.size);
	if (header.type == PERF_RECORD_LOST) {
		if (header.size != 24 + NEST_TRAILER || words[1] != 77 || words[3] != 77 * 3 || words[4] != 77 * 5) {
			nest_fail("LOST", words[1], 77);
			return 0;
		}
		found->lost += words[2];
		found->losts++;
		return header.size;
	}
	if (header.type != PERF_RECORD_SAMPLE || header.size < 24) {
		nest_fail("record type", header.type, PERF_RECORD_SAMPLE);
		return 0;
	}
	for (i = 2; i < header.size / 8u; i++)
		if (words[i] != nest_word(words[1], i)) {
			nest_fail("torn: id", words[1], i);
			return 0;
		}
	if (words[1] >= NEST_OLD)
		return nest_overwrites() ? header.size : (nest_fail("an old record", words[1], 0), 0u);
	op = words[1] / 4;
	if (op > NEST_OPS + 1 || words[1] % 4 > 2 || !nest_ops[op].begun || nest_ops[op].kind == NEST_DISCARD ||
	    header.size != (nest_ops[op].kind == NEST_LONG ? 40 : 24)) {
		nest_fail("a record that nobody wrote", words[1], header.size);
		return 0;
	}
	found->records[op][words[1] % 4]++;
	if (found->count < sizeof(found->order) / sizeof(found->order[0]))
		found->order[found->count++] = words[1];
	return header.size;
}

/* From address `at` up to `end`.  Returns whether whole records fill it. */
static bool nest_walk(uint64_t at, uint64_t end, struct nest_found *found)
{
	unsigned size;

	while (at != end) {
		size = nest_record(at, end, found);
		if (!size)
			return false;
		at += size;
	}
	return true;
}

/* All three records of a transaction, or none. */
static void nest_together(const struct nest_found *found)
{
	unsigned op;

	for (op = 0; op < nest_count && op < NEST_OPS + 2; op++) {
		if (nest_ops[op].kind == NEST_THREE &&
		    (found->records[op][0] != found->records[op][2] || found->records[op][0] != found->records[op][1]))
			nest_fail("half a transaction: operation", op, 0);
		if (nest_ops[op].kind == NEST_TWO && found->records[op][0] != found->records[op][1])
			nest_fail("half a transaction: operation", op, 0);
	}
}

/* What another thread may see, now. */
static void nest_look(void)
{
	uint64_t head = nest_ring.page->data_head, at, end;
	struct perf_event_header header;
	struct nest_found found;
	unsigned size;

	nest_looked++;
	memset(&found, 0, sizeof(found));
	if (nest_falls()) {
		if ((int64_t)(nest_seen - head) < 0 || nest_seen - head > 512) {
			nest_fail("data_head went back", head, nest_seen);
			return;
		}
	} else if ((int64_t)(head - nest_seen) < 0 || head - nest_seen > 512) {
		nest_fail("data_head went back", head, nest_seen);
		return;
	}
	if (nest_overwrites() && !nest_falls()) {
		/* snapshot.h: from the oldest that the writer spares */
		if (nest_state()->claimed - head > 512)
			nest_fail("claimed", nest_state()->claimed, head);
		if (head - nest_state()->oldest > NEST_SIZE || head - nest_state()->oldest < NEST_SIZE / 2)
			nest_fail("oldest", nest_state()->oldest, head);
		else
			nest_walk(nest_state()->oldest, head, &found);
	} else if (nest_overwrites()) {
		/* snapshot.h: from the newest to what may be overwritten by now, which may cut one in two */
		end = -nest_state()->claimed + NEST_SIZE;
		if (nest_state()->claimed + head > 512)
			nest_fail("claimed", nest_state()->claimed, -head);
		for (at = head; end - at >= sizeof(header); at += size) {
			memcpy(&header, nest_ring.data + (at & (NEST_SIZE - 1)), sizeof(header));
			if (header.size > end - at && header.size <= 48)
				break;
			size = nest_record(at, end, &found);
			if (!size)
				return;
		}
	} else if (head == nest_seen) {
		return;
	} else if (nest_falls()) {
		nest_walk(head, nest_seen, &found);
	} else {
		nest_walk(nest_seen, head, &found);
	}
	nest_together(&found);
	nest_seen = head;
}

/* ---- performing ---- */

static unsigned nest_subject_of(unsigned kind)
{
	switch (kind) {
	case NEST_PAUSE:
	case NEST_RESUME:
	case NEST_CALL:
	case NEST_DRAIN:
		return NEST_WRITE;
	case NEST_NONE:
		return NEST_SUBJECTS;
	default:
		return kind;
	}
}

static void nest_perform(unsigned kind)
{
	unsigned n = nest_count++;
	volatile struct nest_op *op = &nest_ops[n];

	op->kind = (uint8_t)kind;
	op->ended = false;
	op->begun = true;
	switch (op->kind) {
	case NEST_PAUSE:
		perfring_writer_pause(nest_writer, true);
		nest_paused_at =
			nest_writer->claimed > nest_writer->position ? nest_writer->claimed : nest_writer->position;
		break;
	case NEST_RESUME:
		perfring_writer_pause(nest_writer, false);
		break;
	case NEST_CALL:
		perfring_writer_arm(nest_writer);
		break;
	case NEST_DRAIN:
		nest_ring.page->data_tail = nest_ring.page->data_head;
		break;
	default:
		break;
	}
	op->taken = nest_around(nest_subjects[nest_subject_of(op->kind)], n * 4);
	op->ended = true;
}

/* The armed stop is reached: the interrupting context. */
static void nest_strike(void)
{
	unsigned stop = nest_next, next = stop + 1;
	bool more = next < nest_plan.stops || nest_plan.trace;

	nest_look();
	nest_disarm();
	nest_armed = false;
	nest_next = next;
	if (more && !nest_plan.rest[stop]) {
		nest_armed = true;
		nest_traced = 0;
		nest_arm(next);
	}
	nest_perform(nest_mode->kinds[nest_count]);
	if (more && !nest_plan.rest[stop]) {
		if (nest_armed && nest_next < nest_plan.stops)
			nest_fail("a stop was not reached", nest_next, nest_plan.stops);
		nest_disarm();
		nest_armed = false;
	}
	nest_look();
	if (more && nest_plan.rest[stop]) {
		/* here again is the first of the rest's boundaries */
		nest_armed = true;
		nest_traced = 1;
		if (next < nest_plan.stops && nest_plan.at[next] == 0)
			nest_strike();
		else
			nest_arm(next);
	}
}

/* Counts one boundary, where boundaries are counted and not planted. */
static __attribute__((unused)) void nest_boundary(void)
{
	if (nest_looks)
		nest_look();
	if (!nest_armed)
		return;
	if (nest_next == nest_plan.stops) {
		nest_traced++;
		return;
	}
	if (nest_left-- == 0)
		nest_strike();
}

static void nest_restore(void)
{
	uint64_t count;

	memcpy(nest_writer, &nest_writer_image, sizeof(*nest_writer));
	memcpy(nest_ring.page, nest_page_image, NEST_SIZE);
	memcpy(nest_ring.data, nest_data_image, NEST_SIZE);
	memset((void *)nest_ops, 0, sizeof(nest_ops));
	if (nest_mode->armed && read(nest_fd, &count, sizeof(count)) < 0) {
	}
	nest_count = 0;
	nest_next = 0;
	nest_armed = false;
	nest_traced = 0;
	nest_seen = nest_start;
	nest_paused_at = UINT64_MAX;
}

/* ---- judging ---- */

static uint64_t nest_records_of(unsigned kind)
{
	return kind == NEST_THREE ? 3 : kind == NEST_TWO ? 2 : kind == NEST_DISCARD || kind == NEST_NONE ? 0 : 1;
}

/* All operations have ended, and nothing is in the making. */
static void nest_judge(void)
{
	struct perfring_ring_state *state = nest_state();
	uint64_t head = nest_ring.page->data_head, refused = 0, wakeups = 0, samples = 0, fits = 0, count = 0;
	unsigned crossed; /* 2: either is right */
	struct nest_found found;
	unsigned op, i, fit;
	bool discards = false, called = false, mixed = false;

	memset(&found, 0, sizeof(found));
	if (nest_writer->claimed > nest_writer->position)
		nest_fail("in the making", nest_writer->claimed, nest_writer->position);
	nest_expect("again", nest_writer->again, 0);
	nest_expect("data_head at rest", nest_falls() ? -head : head, nest_writer->position);
	if (nest_overwrites())
		nest_expect("claimed at rest", state->claimed, nest_writer->position);
	if (nest_falls() ? !nest_walk(head, nest_start, &found) : !nest_walk(nest_start, head, &found))
		return;
	for (op = 0; op < nest_count; op++) {
		uint64_t kind = nest_ops[op].kind;
		uint64_t want = nest_ops[op].taken ? nest_records_of((unsigned)kind) : 0;

		if (!nest_ops[op].ended)
			nest_fail("an operation that did not end", op, nest_count);
		for (i = 0; i < 3; i++)
			nest_expect("copies of a record", found.records[op][i], i < want);
		if (!nest_ops[op].taken)
			refused += kind == NEST_THREE || kind == NEST_TWO || kind == NEST_NONE ? 3 : 1;
		samples += want;
		discards |= kind == NEST_DISCARD || kind == NEST_TWO || kind == NEST_NONE;
		fits += nest_ops[op].taken;
		called |= kind == NEST_CALL;
		mixed |= kind == NEST_LONG || kind == NEST_THREE;
	}
	/* One that interrupts, and is refused, between a claim and its look at the limit makes that claim refused as well. */
	fit = (unsigned)nest_mode->fit;
	if (nest_mode->fit >= 0 && (nest_count == 1 || fit >= nest_count || fits > fit))
		nest_expect("what fits", fits, fit < nest_count ? fit : nest_count);
	if (found.fillers && !discards && !mixed)
		nest_fail("a filler", found.fillers, 0);
	if (found.fillers && !nest_falls() && !nest_overwrites() && found.last == PERFRING_FILLER_TYPE)
		nest_fail("a filler that nothing follows", found.fillers, 0);
	/* records of one transaction in their order */
	for (i = 1; i < found.count; i++)
		if (found.order[i] / 4 == found.order[i - 1] / 4 &&
		    (nest_falls() ? found.order[i] > found.order[i - 1] : found.order[i] < found.order[i - 1]))
			nest_fail("order in a transaction", found.order[i], found.order[i - 1]);
	/* operations in sequence, in their order */
	if (nest_plan.stops == 2 && nest_plan.rest[0]) {
		unsigned one = ~0u, two = ~0u;

		for (i = 0; i < found.count; i++) {
			if (found.order[i] / 4 == 1 && one == ~0u)
				one = i;
			if (found.order[i] / 4 == 2 && two == ~0u)
				two = i;
		}
		if (one != ~0u && two != ~0u && (one > two) != nest_falls())
			nest_fail("out of order", one, two);
	}
	/* refusals: counted once each, told once each */
	nest_expect("lost", perfring_writer_lost(nest_writer), nest_lost_start + refused);
	nest_expect("the output's lost", nest_writer->output.lost, nest_writer_image.output.lost + refused);
	nest_expect("LOST values and what is pending", found.lost + nest_writer->lost, nest_mode->lost + refused);
	if (nest_writer->position > nest_paused_at)
		nest_fail("claimed after pause has returned", nest_writer->position, nest_paused_at);
	/* wakeups: whether the kernel would have woken at the end of the section */
	crossed = nest_writer->position - nest_writer_image.wakeup > nest_writer->watermark;
	if (nest_mode->events) {
		wakeups = nest_writer->wakeup - nest_writer_image.wakeup;
		nest_expect("samples towards wakeup_events", nest_writer->events + wakeups * nest_mode->events,
			    nest_writer_image.events + samples);
		if (nest_writer->events >= nest_mode->events)
			nest_fail("samples towards wakeup_events", nest_writer->events, nest_mode->events - 1);
		crossed = wakeups != 0;
	} else if ((int64_t)(nest_writer->position - nest_writer->wakeup) < 0) {
		nest_fail("the wakeup's stamp is ahead of what is written", nest_writer->wakeup, nest_writer->position);
	}
	if (called)
		crossed = 1;
	if (discards && crossed == 0 && nest_writer->wakeup != nest_writer_image.wakeup)
		crossed = 2; /* what crossed was discarded */
	if (crossed != 2)
		nest_expect("pending", state->pending, crossed != 0);
	if (nest_mode->armed) {
		if (read(nest_fd, &count, sizeof(count)) < 0)
			count = 0;
		nest_expect("wakeups by the eventfd", count, crossed != 0);
	}
}

/* One more write, when the reader has read everything: what is pending is told, and all is well. */
static void nest_after(void)
{
	struct perfring_ring_state *state = nest_state();
	uint64_t head = nest_ring.page->data_head, pending, size, after;
	bool called = state->armed & PERFRING_WAKEUP_RECORD;
	struct nest_found found;

	if (!nest_overwrites())
		nest_ring.page->data_tail = head;
	if (state->paused) {
		nest_perform(NEST_WRITE);
		nest_expect("a write while paused", nest_ops[nest_count - 1].taken, 0);
		perfring_writer_pause(nest_writer, false);
	}
	pending = nest_writer->lost;
	size = 24 + (pending ? 24 + NEST_TRAILER : 0);
	state->pending = 0;
	nest_seen = head;
	nest_perform(NEST_WRITE);
	nest_expect("a write afterwards", nest_ops[nest_count - 1].taken, 1);
	memset(&found, 0, sizeof(found));
	after = nest_ring.page->data_head;
	if (nest_falls() ? nest_walk(after, head, &found) : nest_walk(head, after, &found)) {
		nest_expect("bytes afterwards", nest_falls() ? head - after : after - head, size);
		nest_expect("LOST afterwards", found.lost, pending);
		nest_expect("records afterwards", found.count, 1);
		if (called)
			nest_expect("a reader that called is woken", state->pending, 1);
	}
}

static void nest_run(void)
{
	nest_restore();
	nest_runs++;
	if (nest_plan.stops || nest_plan.trace) {
		nest_armed = true;
		nest_arm(0);
	}
	nest_perform(nest_mode->kinds[0]);
	if (nest_armed && nest_next < nest_plan.stops)
		nest_fail("a stop was not reached", nest_next, nest_plan.stops);
	nest_disarm();
	nest_armed = false;
	nest_look();
	nest_judge();
	nest_after();
}

/* ---- every plan ---- */

static uint64_t nest_random = 88172645463325252u;

static uint64_t nest_dice(void)
{
	nest_random ^= nest_random << 13;
	nest_random ^= nest_random >> 7;
	nest_random ^= nest_random << 17;
	return nest_random;
}

static uint64_t nest_roots = 1; /* of the first stops of chains of three, 1 in so many */

/* Every plan of `deep` stops; of the last level's families 1 in `of`, of each family 1 in `leaf`.  rests: bit n, the stop
 * after n is counted in the rest of what n interrupted. */
static void nest_every(unsigned depth, unsigned deep, unsigned rests, uint64_t of, uint64_t leaf)
{
	unsigned i, boundaries;

	if (nest_failures)
		return;
	nest_plan.stops = depth;
	nest_plan.trace = true;
	nest_run();
	boundaries = nest_traced;
	if (depth == 0 && deep == 1 && !nest_looks)
		nest_boundaries += boundaries;
	nest_plan.rest[depth] = rests >> depth & 1;
	for (i = 0; i < boundaries && !nest_failures; i++) {
		nest_plan.at[depth] = i;
		if (depth + 1 == deep) {
			if (leaf > 1 && nest_dice() % leaf)
				continue;
			nest_plan.stops = deep;
			nest_plan.trace = false;
			nest_run();
		} else if (nest_dice() % (depth + 2 == deep ? of : nest_roots) == 0) {
			nest_every(depth + 1, deep, rests, of, leaf);
		}
	}
	nest_plan.at[depth] = 0;
	nest_plan.rest[depth] = false;
}

/* ---- beginning a mode ---- */

/* Writes `bytes`, in records of no sample's type; the reader drains when told. */
static void nest_put(uint64_t bytes, bool drain)
{
	static uint64_t old = NEST_OLD;
	struct perfring_claim claim;
	uint64_t size;
	void *space;

	while (bytes) {
		size = nest_overwrites() ? bytes >= 48 || bytes == 24 ? 24 : bytes : bytes > 256 ? 128 : bytes;
		space = perfring_writer_reserve(nest_writer, NULL, size, &claim);
		if (!space) {
			nest_fail("before the mode: no space for", size, bytes);
			return;
		}
		memset(space, 0, size);
		if (size >= 24)
			nest_encode(space, (uint16_t)size, old++);
		else
			memcpy(space,
			       &(struct perf_event_header){PERFRING_FILLER_TYPE, PERFRING_FILLER_MISC, (uint16_t)size},
			       8);
		if (!nest_overwrites())
			((struct perf_event_header *)space)->type = PERF_RECORD_THROTTLE; /* counts towards nothing */
		perfring_writer_commit(nest_writer, &claim);
		if (drain && !nest_overwrites())
			nest_ring.page->data_tail = nest_ring.page->data_head;
		bytes -= size;
	}
}

static void nest_open(const struct nest_mode *mode)
{
	struct perfring_ring_options options = {.pages = 1, .flags = mode->flags};
	struct perfring_writer_options writer = {.wake_fd = -1};
	/* Several laps, then so that `at` bytes are left; where space is short the unread ones end there. */
	uint64_t goal = 3 * NEST_SIZE - mode->at, used = 0, i;
	int error;

	nest_mode = mode;
	nest_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	/* The stamp is a whole number of watermarks: so the eighth is due `due` bytes behind goal. */
	options.watermark = true;
	options.wakeup = mode->due ? (uint32_t)(goal + mode->due) / 8 : NEST_SIZE;
	writer.wake_fd = nest_fd;
	writer.output.id = 77;
	writer.output.trailer_size = NEST_TRAILER;
	writer.output.trailer = nest_trailer;
	memset((void *)&nest_plan, 0, sizeof(nest_plan));
	error = perfring_ring_create(&nest_ring, &options);
	if (!error)
		error = perfring_writer_open(&nest_writer, &nest_ring, &writer);
	if (error) {
		nest_fail("opening", (uint64_t)-error, 0);
		return;
	}
	if (mode->free >= 0 || mode->lost)
		used = NEST_SIZE - 1 - (mode->lost ? 7 : (uint64_t)mode->free);
	nest_put(goal - used, true);
	if (used) {
		nest_put(used, false);
		for (i = 0; i < mode->lost; i++) {
			nest_subject *write = nest_subjects[NEST_WRITE];

			nest_expect("before the mode: refused", write(nest_writer, NEST_OLD), 0);
		}
		if (mode->lost) {
			uint64_t given = mode->free < 0 ? used : (uint64_t)mode->free - 7;

			nest_ring.page->data_tail += nest_falls() ? -given : given;
		}
	}
	nest_writer->output.wakeup_events = mode->events;
	if (mode->events)
		nest_writer->limit = 0;
	nest_writer->events = mode->events ? mode->events - 1 : 0;
	nest_writer->woken = nest_writer->wakeup;
	if (mode->paused)
		perfring_writer_pause(nest_writer, true);
	nest_state()->pending = 0;
	if (mode->armed)
		perfring_wakeup_arm(&nest_ring, 0, PERFRING_WAKEUP_EVENTFD);

	nest_start = nest_ring.page->data_head;
	nest_position = nest_writer->position;
	nest_expect("before the mode: position", nest_position, goal);
	nest_expect("before the mode: data_head", nest_start, nest_falls() ? -goal : goal);
	if (mode->due)
		nest_expect("before the mode: the next wakeup",
			    nest_writer->wakeup + nest_writer->watermark - nest_position, mode->due);
	nest_lost_start = perfring_writer_lost(nest_writer);
	memcpy(&nest_writer_image, nest_writer, sizeof(nest_writer_image));
	memcpy(nest_page_image, nest_ring.page, NEST_SIZE);
	/* Poison where nothing is to be read: a record published too soon is not by chance an old one. */
	if (nest_overwrites())
		memcpy(nest_data_image, nest_ring.data, NEST_SIZE);
	else
		memset(nest_data_image, 0xa5, NEST_SIZE);
}

static void nest_close(void)
{
	perfring_writer_close(nest_writer);
	perfring_ring_close(&nest_ring);
	close(nest_fd);
	nest_writer = NULL;
}

#endif /* STEP_SUBJECT */

#endif
