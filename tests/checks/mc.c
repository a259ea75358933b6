/* mc.c - the writer and the reader under every order of memory that C11 allows, within bounds.
 *
 * What is checked is the source that ships: writer.h, reader.h, page.h, rb/writer.c and rb/reader.c are compiled in, with
 * the words of access.h replaced.  Two threads run as fibers.  Before each shared access the other thread may go on, before
 * each access of the writer a signal handler may write, to a depth, and a load gives any store that C11 lets it see.
 * Every choice is tried, depth first: the program runs again and again from its beginning, and takes the next choices.
 *
 * A store has an index in its word's order of modification, and a view: what an acquire that reads it must see from
 * then on.  That is exact where each word has one thread that stores into it, as here.  The bytes of records are plain:
 * two accesses of which one is a store must be ordered, or it is a race; so stale bytes need not be tried.
 *
 *     mc RING WATERMARK MAIN HANDLERS DEPTH PREEMPTIONS ROUNDS WORDS
 *
 * RING: bytes of data, from 32.  MAIN: what the thread does, HANDLERS: what the handlers do, the first that strikes the
 * first; a letter each: c commit, d discard, e commit for an event
 * with wakeup_events = 1, t a transaction of two of which one is taken.  ROUNDS of the reader; WORDS in a
 * record.  Exit status: 0 and a line of figures; 1 and the trace of what went wrong; 2 usage.
 *
 * MC_FAULT is one of the faults below, which must be found.
 */
#include <errno.h>

#include "tests/checks/mc_model.h"

enum fault {
	NO_FAULT,
	RELAXED_PUBLISH,
	RELAXED_OBSERVE,
	RELAXED_RETURN,
	RELAXED_RECLAIM,
	LEAVES_BEFORE_PUBLISH,   /* `position`, then data_head */
	NO_LOOK_AT_AGAIN,        /* having left */
	LOOKS_BEFORE_LEAVING,    /* at `again` */
	NO_LOOK_AT_POSITION,     /* having claimed */
	POSITION_BEFORE_CLAIMED, /* the two looks of a claim in the other order */
	NESTED_SAYS_NOTHING,     /* `again` is not set */
};

#ifndef MC_FAULT
#define MC_FAULT NO_FAULT
#endif

/* ---- the words of access.h ---- */

static uint64_t mc_load(const void *word, size_t size, enum order order);
static void mc_store(void *word, size_t size, uint64_t value, enum order order);
static uint64_t mc_add(void *word, size_t size, uint64_t value);
static bool mc_swap(uint64_t *word, uint64_t expected, uint64_t value);
static void mc_fence(enum order order);
static void mc_point(const char *name);
static void *mc_copy(void *to, const void *from, size_t size);

#define PERFRING_ACCESS
#define PERFRING_LOAD_ACQUIRE(word) ((__typeof__(*(word)))mc_load((word), sizeof(*(word)), ACQUIRE))
#define PERFRING_LOAD(word) ((__typeof__(*(word)))mc_load((word), sizeof(*(word)), RELAXED))
#define PERFRING_LOAD_ORDERED(word) (abort(), *(word))
#define PERFRING_STORE_RELEASE(word, value) mc_store((word), sizeof(*(word)), (uint64_t)(value), RELEASE)
#define PERFRING_STORE(word, value) mc_store((word), sizeof(*(word)), (uint64_t)(value), RELAXED)
#define PERFRING_ADD(word, value) ((__typeof__(*(word)))mc_add((word), sizeof(*(word)), (uint64_t)(value)))
#define PERFRING_AND(word, bits) ((void)(word), (void)(bits), abort())
#define PERFRING_OR(word, bits) ((void)(word), (void)(bits), abort())
#define PERFRING_EXCHANGE(word, value) (abort(), *(word)) /* neither end uses them */
#define PERFRING_COMPARE_EXCHANGE(word, expected, value) (abort(), false)
#define PERFRING_FENCE() mc_fence(ACQUIRE | RELEASE)
#define PERFRING_FENCE_STORES() mc_fence(RELEASE)
#define PERFRING_FENCE_LOADS() mc_fence(ACQUIRE)
#define PERFRING_FENCE_LOCAL() \
	((void)0) /* nothing is reordered between a thread and its handlers here: tests/step does that */
#define PERFRING_ADD_LOCAL(word, value) mc_add((word), sizeof(*(word)), (uint64_t)(value))
#define PERFRING_COMPARE_EXCHANGE_LOCAL(word, expected, value) mc_swap((word), (expected), (value))
#define PERFRING_POINT(name) mc_point(#name)
#define memcpy mc_copy

#include "os/small_file.c"
#include "os/task.c"
#include "rb/identity.c"
#include "rb/reader.c"
#include "rb/writer.c"

#undef memcpy

/* ---- one execution's memory ---- */

enum {
	WRITER = 0,
	READER = 1,
	MAX_WORDS = 8,    /* shared words that were touched */
	MAX_STORES = 64,  /* into each */
	MAX_DATA = 128,   /* words of ring */
	MAX_RECORDS = 32, /* attempts */
	MAX_DEPTH = 8,    /* of handlers */
};

static struct {
	_Alignas(4096) unsigned char page[4096];
	_Alignas(4096) unsigned char data[2 * MAX_DATA *
					  8]; /* the second half is never touched: it is the first again */
} memory;

static struct perfring_writer writer;
static struct perfring_reader reader;
static unsigned char joint[65536];

/* What is known of the other thread, and of each shared word. */
struct view {
	uint32_t clock[2];
	uint8_t store[MAX_WORDS]; /* the oldest that can still be seen */
};

static struct shared {
	const void *word;
	unsigned stores;
	struct {
		uint64_t value;
		struct view view;
	} store[MAX_STORES];
} shared[MAX_WORDS];
static unsigned shared_words;

static struct thread {
	struct view view;
	struct view released; /* by its last release fence */
	struct view seen;     /* by relaxed loads: an acquire fence takes it */
	bool done;
} threads[2];

static struct {
	uint32_t wrote; /* by the writer: readers do not */
	uint32_t read[2];
} plain[MAX_DATA];

static unsigned preemptions, handlers_run;
static uint64_t due; /* the watermark was crossed by a claim up to here, and the reader not woken; 0: none */

/* ---- what was asked for ---- */

static struct {
	uint64_t ring, watermark;
	const char *main, *handlers;
	unsigned depth, preemptions, rounds, words;
} bound;

static const char *name_of_thread(int thread)
{
	return thread == READER ? "reader" : "writer";
}

/* ---- threads ---- */

static void other_goes_on(void)
{
	int me = now_runs;

	if (threads[!me].done || at_rest)
		return;
	now_runs = !me;
	go_on(fibers[me], fibers[!me]);
}

static void handler(void);

static void handlers_strike(void)
{
	while (now_runs == WRITER && !at_rest && level < bound.depth && bound.handlers[handlers_run] && choose(2)) {
		level++;
		handler();
		level--;
	}
}

static void threads_change(void)
{
	if (!threads[!now_runs].done && preemptions < bound.preemptions && choose(2)) {
		preemptions++;
		other_goes_on();
	}
}

/* ---- accesses ---- */

static const char *name_of(const void *word)
{
	const struct perf_event_mmap_page *page = (const void *)memory.page;
	const struct perfring_ring_state *state = perfring_ring_state_of(page);

	return word == &page->data_head     ? "data_head"
	       : word == &page->data_tail   ? "data_tail"
	       : word == &writer.claimed    ? "claimed"
	       : word == &writer.again      ? "again"
	       : word == &writer.position   ? "position"
	       : word == &writer.limit      ? "limit"
	       : word == &writer.lost       ? "lost"
	       : word == &writer.wakeup     ? "wakeup"
	       : word == &writer.woken      ? "woken"
	       : word == &state->paused     ? "paused"
	       : word == &state->armed      ? "armed"
	       : word == &state->lost_total ? "lost_total"
					    : "other";
}

static struct shared *shared_of(const void *word, size_t size)
{
	unsigned i;

	if (!is_in(word, memory.page, sizeof(memory.page)))
		return NULL;
	for (i = 0; i < shared_words; i++)
		if (shared[i].word == word)
			return &shared[i];
	if (i == MAX_WORDS)
		beyond("too many shared words: MAX_WORDS");
	shared[i].word = word;
	shared[i].stores = 1;
	shared[i].store[0].value = get(word, size);
	memset(&shared[i].store[0].view, 0, sizeof(struct view));
	shared_words++;
	return &shared[i];
}

static void join(struct view *into, const struct view *view)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		if (into->clock[i] < view->clock[i])
			into->clock[i] = view->clock[i];
	for (i = 0; i < MAX_WORDS; i++)
		if (into->store[i] < view->store[i])
			into->store[i] = view->store[i];
}

static enum order weakened(const void *word, enum order order, bool is_store)
{
	const struct perf_event_mmap_page *page = (const void *)memory.page;

	if ((MC_FAULT == RELAXED_PUBLISH && word == &page->data_head && is_store) ||
	    (MC_FAULT == RELAXED_OBSERVE && word == &page->data_head && !is_store) ||
	    (MC_FAULT == RELAXED_RETURN && word == &page->data_tail && is_store) ||
	    (MC_FAULT == RELAXED_RECLAIM && word == &page->data_tail && !is_store))
		return RELAXED;
	return order;
}

/* A record's word: to be ordered with what the other thread did to it. */
static void touch(const void *place, bool is_store)
{
	size_t word = ((uintptr_t)place - (uintptr_t)memory.data) % bound.ring / 8;
	const struct view *view = &threads[now_runs].view;

	total.accesses++;
	if (now_runs == WRITER && is_store) {
		if (plain[word].read[READER] > view->clock[READER])
			wrong("race: the writer stores into ring + %zu, which the reader may still read", word * 8);
		plain[word].wrote = view->clock[WRITER];
	} else {
		if (now_runs == READER && is_store)
			wrong("the reader stores into ring + %zu", word * 8);
		if (now_runs == READER && plain[word].wrote > view->clock[WRITER])
			wrong("race: the reader reads ring + %zu, which the writer may not have written yet", word * 8);
		plain[word].read[now_runs] = view->clock[now_runs];
	}
}

static bool is_data(const void *place)
{
	return is_in(place, memory.data, sizeof(memory.data));
}

/* Where it really lies: the data are mapped twice in a row. */
static void *folded(const void *place)
{
	return memory.data + ((uintptr_t)place - (uintptr_t)memory.data) % bound.ring;
}

static void *mc_copy(void *to, const void *from, size_t size)
{
	size_t at, piece;

	if (!is_data(to) && !is_data(from))
		return memcpy(to, from, size);
	for (at = 0; at < size; at += piece) {
		void *here = (char *)to + at;
		const void *there = (const char *)from + at;

		piece = size - at < 8 ? size - at : 8;
		handlers_strike();
		if (is_data(there)) {
			touch(there, false);
			there = folded(there);
		}
		if (is_data(here)) {
			touch(here, true);
			here = folded(here);
		}
		memcpy(here, there, piece);
	}
	return to;
}

/* For faults: the next load of this word, by this handler, gives a value of now. */
static struct {
	const void *word;
	uint64_t value;
} sampled[MAX_DEPTH + 1];
static uint64_t last_position[MAX_DEPTH + 1];

static void sample(const void *word, uint64_t value)
{
	sampled[level].word = word;
	sampled[level].value = value;
}

static uint64_t mc_load(const void *word, size_t size, enum order order)
{
	struct thread *thread;
	struct shared *is;
	unsigned index, oldest, store;
	uint64_t value;

	if (MC_FAULT == NO_LOOK_AT_AGAIN && word == &writer.again)
		return 0;
	if (sampled[level].word == word) {
		sampled[level].word = NULL;
		tell("looked long ago at", name_of(word), sampled[level].value);
		return sampled[level].value;
	}
	if (MC_FAULT == POSITION_BEFORE_CLAIMED && word == &writer.claimed)
		sample(&writer.position, writer.position);
	handlers_strike();
	total.accesses++;
	if (is_data(word)) {
		touch(word, false);
		return get(folded(word), size);
	}
	is = shared_of(word, size);
	if (!is) {
		value = get(word, size);
		tell("load", name_of(word), value);
		if (word == &writer.position)
			last_position[level] = value;
		return value;
	}
	if (word == &((struct perf_event_mmap_page *)(void *)memory.page)->data_head ||
	    word == &((struct perf_event_mmap_page *)(void *)memory.page)->data_tail)
		threads_change();
	thread = &threads[now_runs];
	order = weakened(word, order, false);
	index = (unsigned)(is - shared);
	oldest = thread->view.store[index];
	/* The newest first. */
	store = is->stores - 1 - choose(is->stores - oldest);
	if (store != is->stores - 1)
		total.stale++;
	value = is->store[store].value;
	thread->view.store[index] = (uint8_t)store;
	if (order & ACQUIRE)
		join(&thread->view, &is->store[store].view);
	else
		join(&thread->seen, &is->store[store].view);
	tell(order & ACQUIRE ? "acquire" : "load", name_of(word), value);
	return value;
}

static void store_now(struct shared *is, void *word, size_t size, uint64_t value, enum order order)
{
	struct thread *thread = &threads[now_runs];
	unsigned index = (unsigned)(is - shared);

	if (is->stores == MAX_STORES)
		beyond("too many stores: MAX_STORES");
	put(word, size, value);
	is->store[is->stores].value = value;
	thread->view.store[index] = (uint8_t)is->stores;
	is->store[is->stores].view = order & RELEASE ? thread->view : thread->released;
	is->store[is->stores].view.store[index] = (uint8_t)is->stores;
	is->stores++;
	/* What the thread does from here on is not in that view. */
	thread->view.clock[now_runs]++;
}

static void mc_store(void *word, size_t size, uint64_t value, enum order order)
{
	struct perf_event_mmap_page *page = (void *)memory.page;
	struct shared *is;

	if (MC_FAULT == NESTED_SAYS_NOTHING && word == &writer.again)
		return;
	if (MC_FAULT == LEAVES_BEFORE_PUBLISH && word == &page->data_head) {
		handlers_strike();
		tell("store", "position", value);
		writer.position = value;
	}
	handlers_strike();
	total.accesses++;
	is = shared_of(word, size);
	if (!is) {
		put(word, size, value);
		tell("store", name_of(word), value);
		return;
	}
	if (word == &page->data_head || word == &page->data_tail)
		threads_change();
	order = weakened(word, order, true);
	tell(order & RELEASE ? "release" : "store", name_of(word), value);
	if (word == &page->data_head && (now_runs != WRITER || value < page->data_head))
		wrong("data_head goes back from %llu to %llu", (unsigned long long)page->data_head,
		      (unsigned long long)value);
	if (word == &page->data_tail && (now_runs != READER || value < page->data_tail))
		wrong("data_tail goes back");
	store_now(is, word, size, value, order);
}

/* Read-modify-writes are of words that only the writer changes, so what it reads is the newest. */
static uint64_t mc_add(void *word, size_t size, uint64_t value)
{
	struct shared *is;
	uint64_t before;

	handlers_strike();
	total.accesses++;
	before = get(word, size);
	tell("add to", name_of(word), before);
	if (word == &writer.wakeup)
		due = writer.claimed;
	is = shared_of(word, size);
	if (is)
		store_now(is, word, size, before + value, ACQUIRE | RELEASE);
	else
		put(word, size, before + value);
	return before;
}

static bool mc_swap(uint64_t *word, uint64_t expected, uint64_t value)
{
	handlers_strike();
	total.accesses++;
	tell(*word == expected ? "swap" : "swap refused:", name_of(word), *word == expected ? value : *word);
	if (*word != expected)
		return false;
	*word = value;
	return true;
}

static void mc_fence(enum order order)
{
	struct thread *thread = &threads[now_runs];

	if (order & ACQUIRE)
		join(&thread->view, &thread->seen);
	if (order & RELEASE) {
		thread->released = thread->view;
		thread->view.clock[now_runs]++;
	}
}

static void mc_point(const char *name)
{
	if (MC_FAULT == LOOKS_BEFORE_LEAVING &&
	    (strcmp(name, "writer_published") == 0 || strcmp(name, "leave_published") == 0))
		sample(&writer.again, writer.again);
	if (MC_FAULT == NO_LOOK_AT_POSITION && strcmp(name, "writer_claimed") == 0)
		sample(&writer.position, last_position[level]);
}

void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd)
{
	(void)wake_fd;
	tell("wakes", "", 0);
	total.wakeups++;
	/* Before the record is published the reader would find nothing and sleep again. */
	if (page->data_head >= due || page->data_head == writer.claimed)
		due = 0;
}

/* ---- the two programs ---- */

static struct {
	uint64_t end; /* of its claim */
	unsigned size;
	bool committed;
	bool read;
} records[MAX_RECORDS];
static unsigned attempts, refused;
static uint64_t told_lost, read_records;

static void encode(unsigned char *space, unsigned id)
{
	struct perf_event_header header = {9, (uint16_t)level, (uint16_t)(8 * bound.words)};
	uint64_t word = id;
	unsigned i;

	mc_copy(space, &header, 8);
	for (i = 1; i < bound.words; i++)
		mc_copy(space + (size_t)8 * i, &word, 8);
}

static struct perfring_output event = {.id = 2, .wakeup_events = 1};

static void write_one(char how)
{
	uint64_t size = 8 * (uint64_t)bound.words;
	struct perfring_claim claim;
	unsigned id = attempts++;
	void *space;

	if (attempts > MAX_RECORDS)
		beyond("too many records: MAX_RECORDS");
	if (how == 't') {
		if (!perfring_writer_begin(&writer, NULL, 2 * size, 1, &claim))
			space = NULL;
		else
			space = perfring_writer_take(&claim, size);
	} else {
		space = perfring_writer_reserve(&writer, how == 'e' ? &event : NULL, size, &claim);
	}
	if (!space) {
		tell("refused", "", id);
		refused++;
		return;
	}
	tell("space for", "record", id);
	records[id].size = (unsigned)size;
	encode(space, id);
	if (how == 'd') {
		perfring_writer_discard(&writer, &claim);
		return;
	}
	records[id].committed = true;
	if (how == 't')
		perfring_writer_end(&writer, &claim);
	else
		perfring_writer_commit(&writer, &claim);
}

static void handler(void)
{
	write_one(bound.handlers[handlers_run++]);
}

static void run_writer(void)
{
	const char *how;
	unsigned before;

	for (how = bound.main; *how; how++) {
		before = refused;
		write_one(*how);
		if (refused != before)
			other_goes_on(); /* it costs no preemption */
	}
	/* After the last. */
	handlers_strike();
	threads[WRITER].done = true;
}

static void check_record(const struct perf_event_header *record)
{
	uint64_t words[64];
	unsigned i;

	if (record->size > sizeof(words))
		wrong("a record of %u bytes", record->size);
	mc_copy(words, record, record->size);
	tell("reads", "record", words[1]);
	if (record->type == 2) {
		told_lost += words[2];
		return;
	}
	if (record->type != 9 || record->size != 8 * bound.words)
		wrong("a record of type %u and %u bytes", record->type, record->size);
	if (words[1] >= attempts || !records[words[1]].committed || records[words[1]].read)
		wrong("record %llu, which was not committed, or read before", (unsigned long long)words[1]);
	for (i = 1; i < bound.words; i++)
		if (words[i] != words[1])
			wrong("record %llu is torn", (unsigned long long)words[1]);
	records[words[1]].read = true;
	read_records++;
}

static void drain(void)
{
	const struct perf_event_header *record;
	int64_t left = perfring_reader_observe(&reader);
	int got;

	if (left < 0)
		wrong("observe: %s", reader.fault.what);
	if (left == 0) {
		other_goes_on();
		return;
	}
	while ((got = perfring_reader_next(&reader, &record)) == 1)
		check_record(record);
	if (got < 0)
		wrong("next: %s", reader.fault.what);
	perfring_reader_return(&reader);
}

static void run_reader(void)
{
	unsigned round;

	for (round = 0; round < bound.rounds; round++)
		drain();
	threads[READER].done = true;
}

static void run(int thread)
{
	if (thread == WRITER)
		run_writer();
	else
		run_reader();
}

static void begin(void)
{
	struct perf_event_mmap_page *page = (void *)memory.page;

	memset(memory.page + 1024, 0, 16);
	memset(perfring_ring_state_of(page), 0, sizeof(struct perfring_ring_state));
	memset(memory.data, 0xa5, bound.ring);
	memset(&writer, 0, sizeof(writer));
	memset(&reader, 0, sizeof(reader));
	memset(threads, 0, sizeof(threads));
	memset(plain, 0, sizeof(plain));
	memset(records, 0, sizeof(records));
	memset(sampled, 0, sizeof(sampled));
	shared_words = traced = choice_at = level = preemptions = handlers_run = attempts = refused = 0;
	told_lost = read_records = due = 0;
	at_rest = false;
	writer.page = page;
	writer.data = memory.data;
	writer.mask = bound.ring - 1;
	writer.watermark = bound.watermark;
	writer.wake_fd = -1;
	reader.page = page;
	reader.data = memory.data;
	reader.mask = reader.span = bound.ring - 1;
	reader.span = bound.ring;
	reader.joint = joint;
	threads[WRITER].view.clock[WRITER] = threads[READER].view.clock[READER] = 1;
}

/* Both have ended, and each knows what the other did. */
static void rest(void)
{
	struct perf_event_mmap_page *page = (void *)memory.page;
	unsigned i;

	at_rest = true;
	now_runs = READER;
	join(&threads[READER].view, &threads[WRITER].view);
	for (i = 0; i < shared_words; i++)
		threads[READER].view.store[i] = (uint8_t)(shared[i].stores - 1);
	if (writer.claimed > writer.position || writer.again)
		wrong("at rest claimed is %llu, position %llu, again %u", (unsigned long long)writer.claimed,
		      (unsigned long long)writer.position, writer.again);
	if (page->data_head != writer.position)
		wrong("at rest data_head is %llu, position %llu", (unsigned long long)page->data_head,
		      (unsigned long long)writer.position);
	if (due)
		wrong("at rest a wakeup is due since %llu", (unsigned long long)due);
	drain();
	for (i = 0; i < attempts; i++)
		if (records[i].committed != records[i].read)
			wrong("record %u was committed and is not in the ring", i);
	if (told_lost + writer.lost != refused)
		wrong("%u were refused; LOST told of %llu, %llu are still to be told", refused,
		      (unsigned long long)told_lost, (unsigned long long)writer.lost);
	if (perfring_ring_state_of(page)->lost_total != refused)
		wrong("%u were refused, in all %llu", refused,
		      (unsigned long long)perfring_ring_state_of(page)->lost_total);
	if (reader.returned != writer.position)
		wrong("the reader stands at %llu, the writer at %llu", (unsigned long long)reader.returned,
		      (unsigned long long)writer.position);
	total.records += read_records;
	total.refused += refused;
}

int main(int argc, char **argv)
{
	if (argc != 9) {
		fprintf(stderr, "usage: mc RING WATERMARK MAIN HANDLERS DEPTH PREEMPTIONS ROUNDS WORDS\n");
		return 2;
	}
	bound.ring = strtoull(argv[1], NULL, 0);
	bound.watermark = strtoull(argv[2], NULL, 0);
	bound.main = argv[3];
	bound.handlers = argv[4];
	bound.depth = (unsigned)atoi(argv[5]);
	bound.preemptions = (unsigned)atoi(argv[6]);
	bound.rounds = (unsigned)atoi(argv[7]);
	bound.words = (unsigned)atoi(argv[8]);
	if (bound.ring < 32 || bound.ring > 8 * MAX_DATA || bound.ring & (bound.ring - 1) || bound.words < 2 ||
	    bound.words > 64 || bound.depth > MAX_DEPTH) {
		fprintf(stderr, "mc: RING is a power of two from 32 to %d, WORDS are 2 to 64, DEPTH is up to %d\n",
			8 * MAX_DATA, MAX_DEPTH);
		return 2;
	}
	open_fiber(WRITER);
	open_fiber(READER);
	do {
		begin();
		total.executions++;
		now_runs = choose(2) ? READER : WRITER;
		do {
			go_on(home, fibers[now_runs]);
			now_runs = !now_runs;
		} while (!threads[WRITER].done || !threads[READER].done);
		rest();
	} while (next_choices());
	print_total();
	return 0;
}
