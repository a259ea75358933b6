/* interleave_test.c - shared writers, preempted at random between any two of their accesses: some are killed there, struck
 * by handlers there, or stand still there for long; slots are opened again; a reader goes along.
 *
 * The code under test is compiled in here, with the words of access.h replaced: before each access another fiber may go
 * on.  Memory is sequentially consistent here: weaker orders are mc.c's, and the real threads' of shared_test.c.
 *
 * A failure names its seed: PERFRING_SEED=n repeats that trial alone, and prints every access.  PERFRING_SOAK as in machine.h.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- the words of access.h ---- */

static uint64_t load(const void *word, size_t size, const char *function, int line);
static void store(void *word, size_t size, const char *function, int line, uint64_t value);
static uint64_t add(void *word, size_t size, const char *function, int line, uint64_t value);
static uint64_t exchange(void *word, size_t size, const char *function, int line, uint64_t value);
static bool swap(void *word, size_t size, const char *function, int line, void *expected, uint64_t value);
static bool swap_local(uint64_t *word, const char *function, int line, uint64_t expected, uint64_t value);
static void preempt(const void *word, const char *function, int line);

#define AT(word) (word), sizeof(*(word)), __func__, __LINE__
#define PERFRING_ACCESS
#define PERFRING_LOAD(word) ((__typeof__(*(word)))load(AT(word)))
#define PERFRING_LOAD_ACQUIRE(word) PERFRING_LOAD(word)
#define PERFRING_LOAD_ORDERED(word) PERFRING_LOAD(word)
#define PERFRING_STORE(word, value) store(AT(word), (value))
#define PERFRING_STORE_RELEASE(word, value) PERFRING_STORE(word, value)
#define PERFRING_ADD(word, value) ((__typeof__(*(word)))add(AT(word), (value)))
#define PERFRING_AND(word, bits) ((void)(word), (void)(bits), abort()) /* shared writers have no use for them */
#define PERFRING_OR(word, bits) ((void)(word), (void)(bits), abort())
#define PERFRING_EXCHANGE(word, value) ((__typeof__(*(word)))exchange(AT(word), (value)))
#define PERFRING_COMPARE_EXCHANGE(word, expected, value) swap(AT(word), (expected), (value))
#define PERFRING_FENCE() ((void)0)
#define PERFRING_FENCE_STORES() ((void)0)
#define PERFRING_FENCE_LOADS() ((void)0)
#define PERFRING_FENCE_LOCAL() ((void)0)
#define PERFRING_RELAX() ((void)0)
#define PERFRING_ADD_LOCAL(word, value) PERFRING_ADD(word, value)
#define PERFRING_COMPARE_EXCHANGE_LOCAL(word, expected, value) \
	swap_local((word), __func__, __LINE__, (expected), (value))
#define PERFRING_POINT(name) preempt(NULL, #name, __LINE__)

/* A fiber has no thread's id: the lock word of a slot says which fiber holds it, and is the kernel's to mark. */
static int try_slot(pthread_mutex_t *held);
static int leave_slot(pthread_mutex_t *held);
static long call_system(long number, ...);

#define pthread_mutex_trylock try_slot
#define pthread_mutex_unlock leave_slot
#define pthread_mutex_consistent(held) preempt((held), __func__, __LINE__)
#define syscall call_system

#include "rb/shared.c"

#undef pthread_mutex_trylock
#undef pthread_mutex_unlock
#undef pthread_mutex_consistent
#undef syscall

#include "machine.h"
#include "test.h"

/* The address sanitizer cleans both stacks at each switch: fewer trials.  The other sees one thread, and its stack. */
#define SHARE (IS_ADDRESS_SANITIZED ? 16 : 1)
#if IS_THREAD_SANITIZED
#define NO_FIBERS
#endif

TestSuite(interleave, .timeout = 120);

/* ---- one trial ---- */

enum {
	WRITERS = 3, /* at most */
	READER = WRITERS,
	FIBERS,
	SURVIVOR = FIBERS, /* no fiber: it flushes at the end, and nobody preempts it */
	RECORDS = 64,      /* of one writer */
	RECORD_TYPE = 100,
	NESTED = 2, /* handlers in one another */
	DEEPEST = 1 + NESTED,
	FIRST_ID = 100,
	ENDLESS = 400000, /* accesses */
	STACK = 128 * 1024,
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
	uint8_t depth;    /* records of this writer open below it when it began */
	uint8_t base;     /* the outermost of them; itself */
	uint8_t handlers; /* that it was written in */
};

static struct fiber {
	ucontext_t context;
	jmp_buf place; /* where it goes on, when it has begun */
	bool has_begun;
	struct perfring_shared *shared;
	struct story story[RECORDS];
	unsigned begun;         /* records */
	uint8_t open[DEEPEST];  /* numbers of those in the making */
	uint8_t depth;          /* of them */
	uint8_t handlers;       /* that run now */
	unsigned frozen;        /* for so many turns */
	bool ended, dead;       /* dead: killed */
	uint64_t first_at_look; /* data_head, as it last looked at a mark */
	const char *function;   /* where it stands */
	int line;
} fibers[FIBERS];

static struct {
	uint64_t seed, random;
	unsigned writers;
	uint32_t largest;            /* record */
	unsigned switches, handlers; /* in 1000 accesses */
	uint64_t accesses, kill_at;
	unsigned kills, last_killed;
	uint64_t read_to; /* by the reader */
	uint64_t told;    /* by LOST records */
	unsigned refused; /* of the survivor's */
	char wrong[200];
} trial;

static struct {
	uint64_t records, refused, handlers, kills;
} total;

static char stacks[FIBERS][STACK] __attribute__((__aligned__(64)));
#if IS_ADDRESS_SANITIZED
static ucontext_t home;
#else
static jmp_buf home;
#endif
static unsigned runs = SURVIVOR; /* which fiber */
static struct perfring_ring ring;
static unsigned char *pristine; /* the ring's memory as it was created */
static bool is_traced;

static uint32_t draw(uint32_t below)
{
	trial.random ^= trial.random << 13;
	trial.random ^= trial.random >> 7;
	trial.random ^= trial.random << 17;
	return (uint32_t)(trial.random >> 16) % below;
}

/* By jumps, from a fiber's second turn on: swapcontext makes a system call each time, for the mask of signals.  The address
 * sanitizer follows that alone. */
static __attribute__((noinline)) void go_home(void)
{
	unsigned which = runs;

	runs = SURVIVOR;
#if IS_ADDRESS_SANITIZED
	swapcontext(&fibers[which].context, &home);
#else
	if (!_setjmp(fibers[which].place))
		_longjmp(home, 1);
#endif
}

static __attribute__((noinline)) void go_on(struct fiber *fiber)
{
#if IS_ADDRESS_SANITIZED
	swapcontext(&home, &fiber->context);
#else
	if (_setjmp(home))
		return;
	if (fiber->has_begun)
		_longjmp(fiber->place, 1);
	fiber->has_begun = true;
	setcontext(&fiber->context);
#endif
}

/* The first is kept.  A fiber does not return from here: Criterion's jumps out of a test are for its own stack. */
__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
	va_list arguments;

	if (!trial.wrong[0]) {
		va_start(arguments, format);
		vsnprintf(trial.wrong, sizeof(trial.wrong), format, arguments);
		va_end(arguments);
	}
	if (runs != SURVIVOR)
		go_home();
}

/* ---- accesses ---- */

static void write_one(struct fiber *fiber);
static void flush(struct fiber *fiber);

static void handler(struct fiber *fiber)
{
	uint64_t look = fiber->first_at_look; /* of a flush that is interrupted: it took over nothing here */

	total.handlers++;
	fiber->handlers++;
	write_one(fiber);
	if (draw(8) == 0)
		flush(fiber);
	fiber->first_at_look = look;
	fiber->handlers--;
}

static bool is_mark(const struct fiber *fiber, const void *word)
{
	return fiber->shared &&
	       (uintptr_t)word - (uintptr_t)fiber->shared->marks < ring.size >> fiber->shared->grain_shift << 3;
}

/* Before an access to `word`: others go on, for good when it is killed here. */
static void preempt(const void *word, const char *function, int line)
{
	struct fiber *fiber = &fibers[runs];

	if (runs == SURVIVOR)
		return;
	trial.accesses++;
	if (is_traced)
		printf("%*s%u: %s:%d\n", (int)runs * 24, "", runs, function, line);
	if (trial.accesses > ENDLESS)
		wrong("no end");
	if (fiber->shared && fiber->handlers < NESTED && draw(1000) < trial.handlers)
		handler(fiber);
	fiber->function = function;
	fiber->line = line;
	if (trial.accesses >= trial.kill_at || draw(1000) < trial.switches)
		go_home();
	if (is_mark(fiber, word))
		fiber->first_at_look = ring.page->data_head;
}

static uint64_t get(const void *word, size_t size)
{
	uint64_t eight;
	uint32_t four;

	if (size == 8) {
		memcpy(&eight, word, 8);
		return eight;
	}
	if (size == 4) {
		memcpy(&four, word, 4);
		return four;
	}
	return *(const uint8_t *)word;
}

static void put(void *word, size_t size, uint64_t value)
{
	uint32_t four = (uint32_t)value;

	if (size == 8)
		memcpy(word, &value, 8);
	else if (size == 4)
		memcpy(word, &four, 4);
	else
		*(uint8_t *)word = (uint8_t)value;
}

static uint64_t load(const void *word, size_t size, const char *function, int line)
{
	preempt(word, function, line);
	return get(word, size);
}

static void store(void *word, size_t size, const char *function, int line, uint64_t value)
{
	preempt(word, function, line);
	put(word, size, value);
}

static uint64_t exchange(void *word, size_t size, const char *function, int line, uint64_t value)
{
	uint64_t before = load(word, size, function, line);

	put(word, size, value);
	return before;
}

static uint64_t add(void *word, size_t size, const char *function, int line, uint64_t value)
{
	uint64_t before = load(word, size, function, line);

	put(word, size, before + value);
	return before;
}

static bool swap(void *word, size_t size, const char *function, int line, void *expected, uint64_t value)
{
	uint64_t before = load(word, size, function, line);

	if (before == get(expected, size)) {
		put(word, size, value);
		return true;
	}
	put(expected, size, before);
	return false;
}

static bool swap_local(uint64_t *word, const char *function, int line, uint64_t expected, uint64_t value)
{
	return swap(word, sizeof(*word), function, line, &expected, value);
}

static int try_slot(pthread_mutex_t *held)
{
	uint32_t word;

	preempt(NULL, __func__, __LINE__);
	word = (uint32_t)held->__data.__lock;
	if (word && !(word & FUTEX_OWNER_DIED))
		return EBUSY;
	held->__data.__lock = FIRST_ID + (int)runs;
	return word ? EOWNERDEAD : 0;
}

static int leave_slot(pthread_mutex_t *held)
{
	preempt(NULL, __func__, __LINE__);
	held->__data.__lock = 0;
	return 0;
}

/* gettid and membarrier: where nothing is reordered, a barrier is a moment like any other. */
static long call_system(long number, ...)
{
	(void)number;
	preempt(NULL, __func__, __LINE__);
	return 0;
}

/* What the kernel does when a thread ends. */
static void die(unsigned writer)
{
	struct perfring_owner_slot *slots;
	uint32_t grain, owners, i;

	fibers[writer].dead = true;
	trial.last_killed = writer;
	trial.kills++;
	slots = tables_of(&ring, &grain, &owners);
	for (i = 0; i < owners; i++)
		if (slots[i].held.__data.__lock == FIRST_ID + (int)writer)
			slots[i].held.__data.__lock = FUTEX_OWNER_DIED;
}

/* ---- a writer ---- */

/* Records know who wrote them, and each of their bytes is told by that. */
static uint64_t word_of(unsigned writer, uint64_t number, uint32_t i)
{
	return (((uint64_t)writer << 32 | number) + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static void encode(unsigned char *space, unsigned writer, uint64_t number, uint32_t size)
{
	struct perf_event_header header = {RECORD_TYPE, (uint16_t)writer, (uint16_t)size};
	uint64_t word;
	uint32_t i;

	memcpy(space, &header, sizeof(header));
	memcpy(space + 8, &number, 8);
	for (i = 2; i < size / 8; i++) {
		word = word_of(writer, number, i);
		memcpy(space + (size_t)8 * i, &word, 8);
		if (i % 32 == 0)
			preempt(NULL, __func__, __LINE__);
	}
}

static void write_one(struct fiber *fiber)
{
	uint32_t size = 16 + draw(trial.largest / 8 - 1) * 8;
	struct perfring_claim claim;
	struct story *story;
	void *space;

	if (fiber->begun == RECORDS)
		return;
	if (fiber->handlers && size > 400)
		size = 40;
	fiber->open[fiber->depth] = (uint8_t)fiber->begun++;
	story = &fiber->story[fiber->open[fiber->depth]];
	story->base = fiber->open[0];
	story->depth = fiber->depth++;
	story->handlers = fiber->handlers;
	story->outcome = BEGUN;
	space = perfring_shared_reserve(fiber->shared, NULL, size, &claim);
	if (!space) {
		story->outcome = REFUSED;
	} else {
		story->outcome = RESERVED;
		encode(space, runs, (uint64_t)(story - fiber->story), size);
		if (draw(10) == 0) {
			story->outcome = DISCARDING;
			perfring_shared_discard(fiber->shared, &claim);
			story->outcome = DISCARDED;
		} else {
			perfring_shared_commit(fiber->shared, &claim);
			story->outcome = COMMITTED;
			if (!perfring__shared_is_valid(fiber->shared))
				wrong("not valid after the commit of %u bytes", (unsigned)size);
		}
	}
	fiber->depth--;
}

/* STRICT: a flush takes a dead writer's space over if that is the first when it looks at a mark for the last time: it has
 * to see that the space before was published meanwhile. */
static void flush(struct fiber *fiber)
{
	struct perfring_shared *shared = fiber->shared;
	uint64_t outer = fiber->first_at_look, first, mark;
	unsigned kills = trial.kills;

	fiber->first_at_look = UINT64_MAX;
	perfring_shared_flush(shared);
	first = fiber->first_at_look;
	fiber->first_at_look = outer;
	/* One that was killed while we flushed is the next flush's. */
	if (shared->leased || first != ring.page->data_head || kills != trial.kills)
		return;
	mark = shared->marks[(first & shared->mask) >> shared->grain_shift];
	if (is_of(shared, mark, first) && !(mark & MARK_DONE) &&
	    shared->slots[owner_of(mark)].held.__data.__lock & FUTEX_OWNER_DIED)
		wrong("flushed, and a dead writer's space holds back what follows: %llu", (unsigned long long)first);
}

static void run_writer(struct fiber *fiber)
{
	unsigned records = 2 + draw(5), opens = 1 + (draw(3) == 0), flushes = draw(3) ? 0 : 20, i;
	struct perfring_shared *shared;

	while (opens--) {
		if (perfring_shared_open(&shared, &ring, NULL) != 0)
			wrong("no slot is free");
		fiber->shared = shared;
		/* Some look again and again what the others left. */
		for (i = 0; i < flushes; i++)
			flush(fiber);
		for (i = 0; i < records; i++) {
			write_one(fiber);
			if (draw(6) == 0)
				flush(fiber);
		}
		if (draw(2)) /* the trial ends, and it stands idle */
			return;
		fiber->shared = NULL;
		perfring_shared_close(shared);
	}
}

/* ---- the reader ---- */

static void see(const unsigned char *record, const struct perf_event_header *header)
{
	unsigned writer = header->misc, later;
	struct story *story;
	uint64_t word, number;
	uint32_t i;

	memcpy(&number, record + 8, 8);
	if (writer >= trial.writers || number >= fibers[writer].begun) {
		wrong("no record of ours at %llu", (unsigned long long)trial.read_to);
		return;
	}
	for (i = 2; i < header->size / 8u; i++) {
		memcpy(&word, record + (size_t)8 * i, 8);
		if (word != word_of(writer, number, i))
			wrong("torn: writer %u, record %u, word %u", writer, (unsigned)number, i);
	}
	story = &fibers[writer].story[number];
	if (story->seen++)
		wrong("doubled: writer %u, record %u", writer, (unsigned)number);
	/* Later ones may come before it only if they began within it. */
	for (later = (unsigned)number + 1; later < fibers[writer].begun; later++)
		if (fibers[writer].story[later].seen &&
		    (fibers[writer].story[later].base > number || fibers[writer].story[later].depth <= story->depth))
			wrong("overtaken by a later one: writer %u, record %u", writer, (unsigned)number);
	total.records++;
}

static void drain(void)
{
	struct perf_event_header header;
	const unsigned char *record;
	uint64_t head, lost;

	preempt(NULL, __func__, __LINE__);
	head = ring.page->data_head;
	if (head - trial.read_to > ring.size)
		wrong("data_head makes no sense: %llu, read to %llu", (unsigned long long)head,
		      (unsigned long long)trial.read_to);
	while (trial.read_to != head && !trial.wrong[0]) {
		record = ring.data + (trial.read_to & (ring.size - 1));
		memcpy(&header, record, sizeof(header));
		if (header.size < 8 || header.size % 8 || header.size > head - trial.read_to) {
			wrong("a record of %u bytes at %llu", header.size, (unsigned long long)trial.read_to);
			return;
		}
		if (header.type == RECORD_TYPE && header.size >= 16) {
			see(record, &header);
		} else if (header.type == PERF_RECORD_LOST && header.size >= LOST_SIZE) {
			memcpy(&lost, record + 16, 8);
			trial.told += lost;
		} else if (header.type != PERFRING_FILLER_TYPE || header.misc != PERFRING_FILLER_MISC) {
			wrong("a record of type %u at %llu", header.type, (unsigned long long)trial.read_to);
		}
		trial.read_to += header.size;
	}
	preempt(NULL, __func__, __LINE__);
	ring.page->data_tail = trial.read_to;
}

static void run_reader(void)
{
	unsigned rounds, pauses;

	for (rounds = 0; rounds < 60; rounds++) {
		drain();
		for (pauses = draw(12); pauses; pauses--)
			preempt(NULL, __func__, __LINE__);
	}
}

/* ---- the trial's course ---- */

static void run(void)
{
	struct fiber *fiber = &fibers[runs];

	if (runs == READER)
		run_reader();
	else
		run_writer(fiber);
	fiber->ended = true;
	go_home();
}

static bool takes_part(unsigned which)
{
	return which < trial.writers || which == READER;
}

/* The ring as it is created, but at `start`. */
static void reset_ring(uint64_t start)
{
	struct perfring_ring_state *state = perfring_ring_state_of(ring.page);
	uint64_t *committed = (uint64_t *)(void *)(ring.data + ring.span) + ring.size / state->grain;
	uint64_t i;

	memcpy(ring.mapping, pristine, (size_t)ring.mapping_size);
	ring.page->data_head = ring.page->data_tail = trial.read_to = state->wakeup = start;
	state->claimed = start / state->grain & SHARED_END;
	/* What laps before this one would have left. */
	if (ring.flags & PERFRING_RING_LEASED)
		for (i = 0; i < ring.size / state->grain; i++)
			committed[i] = start - ring.size;
}

static void make_fiber(struct fiber *fiber, char *stack)
{
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = stack;
	fiber->context.uc_stack.ss_size = STACK;
	makecontext(&fiber->context, run, 0);
}

static void begin_trial(uint64_t seed)
{
	/* And where `claimed` comes round, and the laps of the marks. */
	static const uint64_t starts[] = {0, (UINT64_C(1) << 43) - 8192, (UINT64_C(1) << 47) - 8192};
	static const uint32_t sizes[] = {120, 600, 1600, 1600};
	static const unsigned switches[] = {600, 200, 50, 10};
	unsigned i;

	memset(fibers, 0, sizeof(fibers));
	memset(&trial, 0, sizeof(trial));
	trial.seed = seed;
	trial.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 12345;
	for (i = 0; i < 10; i++)
		draw(2);
	trial.writers = 2 + draw(WRITERS - 1);
	trial.largest = sizes[draw(4)];
	trial.switches = switches[draw(4)];
	trial.handlers = draw(2) ? 10 : 0;
	trial.kill_at = draw(3) ? 20 + draw(3000) : UINT64_MAX;
	reset_ring(starts[draw(3)]);
	for (i = 0; i < FIBERS; i++)
		make_fiber(&fibers[i], stacks[i]);
}

/* One that may go on, or SURVIVOR when all have ended.  Now and then one stands still for long. */
static unsigned next_fiber(void)
{
	unsigned ready[FIBERS], count, left, i;

	do {
		for (i = count = left = 0; i < FIBERS; i++) {
			if (!takes_part(i) || fibers[i].ended || fibers[i].dead)
				continue;
			left++;
			if (fibers[i].frozen)
				fibers[i].frozen--;
			else
				ready[count++] = i;
		}
	} while (left && !count);
	if (!left)
		return SURVIVOR;
	i = ready[draw(count)];
	if (draw(40) == 0)
		fibers[i].frozen = draw(trial.switches * 6 / 5 + 10);
	return i;
}

static void run_fibers(void)
{
	unsigned which;

	while (!trial.wrong[0] && (which = next_fiber()) != SURVIVOR) {
		runs = which;
		go_on(&fibers[which]);
		if (trial.accesses < trial.kill_at)
			continue;
		/* It comes to whoever runs just then; half of them are followed by another. */
		if (which != READER && !fibers[which].ended)
			die(which);
		trial.kill_at = draw(2) ? trial.accesses + 10 + draw(600) : UINT64_MAX;
	}
}

static uint64_t held_back(void)
{
	return shared_claimed_of(&ring, ring.page->data_head) - ring.page->data_head;
}

/* The last one alive. */
static void end_trial(struct perfring_shared *survivor)
{
	unsigned char record[400] = {0};
	unsigned i;

	/* STRICT: nothing finished waits for a flush. */
	if (!survivor->leased && !trial.kills && held_back())
		wrong("all is committed, and %llu bytes are not published", (unsigned long long)held_back());
	drain();
	/* Nothing is left even if it finds the ring full first. */
	if (draw(2))
		for (i = 0; i < 12; i++) {
			filler_put(record, sizeof(record));
			trial.refused += !perfring_shared_write(survivor, NULL, record, sizeof(record));
			drain();
		}
	perfring_shared_flush(survivor);
	drain();
	if (held_back())
		wrong("flushed, and %llu bytes are not published", (unsigned long long)held_back());
}

/* What all did adds up: each record is seen, or refused, or discarded, or lost with its writer as shared.h says. */
static void check_counts(bool leased)
{
	const struct perfring_ring_state *state = perfring_ring_state_of(ring.page);
	uint64_t lost = perfring_shared_lost(&ring), abandoned = perfring_shared_abandoned(&ring);
	/* Of the dead: `sure` is lost, of the last dead is so `sure_last`; `unsure` may be; `twice` may be counted twice. */
	uint64_t refused = trial.refused, sure = 0, sure_last = 0, unsure = 0,
		 twice = leased ? NESTED * trial.kills : 0;
	unsigned writer, i;

	for (writer = 0; writer < trial.writers; writer++)
		for (i = 0; i < fibers[writer].begun; i++) {
			const struct fiber *fiber = &fibers[writer];
			const struct story *story = &fiber->story[i];
			/* LEASED: in a handler, or within a record in the making. */
			bool within = leased && fiber->dead &&
				      (story->handlers || fiber->story[story->base].outcome <= DISCARDING);

			refused += story->outcome == REFUSED;
			if (story->seen && story->outcome >= REFUSED)
				wrong("seen, though not committed: writer %u, record %u", writer, i);
			if (story->outcome <= DISCARDING && !fiber->dead)
				wrong("never ended: writer %u, record %u", writer, i);
			if (story->outcome == COMMITTED && !story->seen && !within)
				wrong("committed, and not seen: writer %u, record %u", writer, i);
			twice += story->seen && within;
			if (story->seen || story->outcome >= REFUSED)
				continue;
			/* Of one killed as it changes chunks, before `lease`, all that handlers wrote there may count
			 * as one: less than shared.h says. */
			if ((story->outcome != RESERVED && story->outcome != COMMITTED) ||
			    (within && fiber->story[story->base].outcome == BEGUN))
				unsure++;
			else if (writer == trial.last_killed)
				sure_last++;
			else
				sure++;
		}
	total.refused += refused;
	total.kills += trial.kills;
	sure += sure_last;
	/* A recoverer that is killed may take the count of those that died before it along.  An owner that is killed in a
	 * chunk, as it commits or settles what lies within other records, may leave its own too high by these. */
	if (lost < refused + sure_last || lost > refused + sure + unsure + twice)
		wrong("%llu lost: %llu were refused, %llu (%llu by the last) or %llu more died with a writer",
		      (unsigned long long)lost, (unsigned long long)refused, (unsigned long long)sure,
		      (unsigned long long)sure_last, (unsigned long long)(sure + unsure));
	/* STRICT: a space for each record. */
	if (abandoned < (leased ? sure_last > 0 : sure_last) || abandoned > sure + unsure + twice)
		wrong("%llu spaces abandoned: %llu or %llu records died with a writer", (unsigned long long)abandoned,
		      (unsigned long long)sure, (unsigned long long)(sure + unsure));
	/* LOST records tell of each once; one killed as it tells takes that along. */
	if (trial.told + state->lost > lost || (!trial.kills && trial.told + state->lost != lost))
		wrong("%llu lost: LOST records tell of %llu, %llu are still to be told", (unsigned long long)lost,
		      (unsigned long long)trial.told, (unsigned long long)state->lost);
}

/* Where each of them stood. */
static const char *places(void)
{
	static char text[400];
	size_t length = 0;
	unsigned i;

	for (i = 0; i < FIBERS; i++)
		if (takes_part(i) && fibers[i].function && length < sizeof(text))
			length += (size_t)snprintf(text + length, sizeof(text) - length, "; %s %u %s at %s:%d",
						   i == READER ? "reader" : "writer", i,
						   fibers[i].dead    ? "killed"
						   : fibers[i].ended ? "ended"
								     : "is",
						   fibers[i].function, fibers[i].line);
	return text;
}

static void run_trial(uint64_t seed)
{
	struct perfring_shared *survivor = NULL;
	unsigned i;

	begin_trial(seed);
	/* Half of the survivors have been there from the beginning; the others recover a slot as well. */
	if (draw(2) && perfring_shared_open(&survivor, &ring, NULL) != 0)
		wrong("the first slot is not free");
	run_fibers();
	if (!trial.wrong[0] && !survivor && perfring_shared_open(&survivor, &ring, NULL) != 0)
		wrong("no slot is free for the survivor");
	if (!trial.wrong[0])
		end_trial(survivor);
	if (!trial.wrong[0])
		check_counts(survivor->leased);
	cr_assert(!trial.wrong[0], "PERFRING_SEED=%llu, access %llu, %u killed: %s%s", (unsigned long long)seed,
		  (unsigned long long)trial.accesses, trial.kills, trial.wrong, places());
	perfring_shared_close(survivor);
	for (i = 0; i < trial.writers; i++)
		if (fibers[i].shared)
			munmap(fibers[i].shared, private_size());
}

static void run_trials(uint32_t flags, uint32_t chunk, unsigned all)
{
	struct perfring_ring_options options = {.pages = 1, .flags = flags, .chunk = chunk, .owners = 6};
	const char *only = getenv("PERFRING_SEED");
	unsigned count = trials(all / SHARE), i;

#ifdef NO_FIBERS
	cr_skip_test("SKIP-ENV: swapcontext: the thread sanitizer follows no fibers: a build without it");
#endif
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	pristine = malloc((size_t)ring.mapping_size);
	cr_assert_not_null(pristine);
	memcpy(pristine, ring.mapping, (size_t)ring.mapping_size);
	is_traced = only != NULL;
	if (only) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		run_trial(strtoull(only, NULL, 0));
	} else {
		for (i = 1; i <= count; i++)
			run_trial(i);
		/* They have seen what they are about. */
		cr_assert_geq(total.records, count);
		cr_assert_geq(total.refused, count / 4);
		cr_assert_geq(total.handlers, count / 4);
		cr_assert_geq(total.kills, count / 8);
		printf("interleave: %u trials: %llu records read, %llu refused, %llu handlers, %llu killed\n", count,
		       (unsigned long long)total.records, (unsigned long long)total.refused,
		       (unsigned long long)total.handlers, (unsigned long long)total.kills);
	}
	free(pristine);
	perfring_ring_close(&ring);
}

Test(interleave, strict)
{
	run_trials(PERFRING_RING_STRICT, 0, 36000);
}

Test(interleave, leased_512)
{
	run_trials(PERFRING_RING_LEASED, 512, 25000);
}

Test(interleave, leased_1024)
{
	run_trials(PERFRING_RING_LEASED, 1024, 25000);
}
