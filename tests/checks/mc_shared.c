/* mc_shared.c - shared writers under the orders of memory that C11 allows, within bounds: rb/shared.c itself, with the words
 * of access.h replaced.
 *
 * Writers and a reader run as fibers.  Before each access to a shared word another thread may go on (PREEMPTIONS times), a
 * writer may be killed (KILLS times), and a load gives any store that C11 lets it see (tests/checks/mc_orders.h).  Every choice is
 * tried.
 *
 *     mc_shared MODE RING PREEMPTIONS KILLS ROUNDS WRITER...          every choice
 *     mc_shared -r COUNT MODE RING PREEMPTIONS ...                  COUNT executions of random choices
 *     mc_shared [-r COUNT] -s THREAD:POINT,... MODE ...             first the thread of that number, until it comes to a point
 *                                                                   of rb/shared.c, or to a word, of that name; then the next
 *
 * MODE: strict, or leased (chunks of 32 bytes: a model's, the library makes none below 512).  RING: bytes of data.  ROUNDS of
 * the reader.  WRITER: what one writer does, a letter each: c commit, d discard, e commit for an output with wakeup_events =
 * 1, f flush.  Exit status: 0 and a line of figures; 1 and the trace of what went wrong; 2 usage.
 *
 * MC_FAULT is one of the faults below, which must be found; so must those that tests/checks/mc_test puts into rb/shared.c.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_DATA = 64,   /* words of ring */
	MAX_WORDS = 64,  /* shared words that were touched */
	MAX_STORES = 64, /* into each */
	MAX_RECORDS = 16,
	WORDS = 2, /* of a record, as in tests/checks/mc.c's smallest */
	FIRST_ID = 100,
	CHUNK = 32,
};

#define MC_OWN_ACCESS
#include "tests/checks/mc_orders.h"

/* Each is an access that is made weaker, or a look that gives an old value. */
enum fault {
	NO_FAULT,
	DONE_IS_A_RELEASE,     /* the mark's `done`: a store, not an exchange */
	SCAN_WITHOUT_ORDER,    /* publish looks at marks by relaxed loads */
	SCAN_BY_ACQUIRE,       /* ... by acquire loads */
	HEAD_WITHOUT_ORDER,    /* finish and publish look at data_head by relaxed loads */
	CLAIMED_WITHOUT_ORDER, /* having published, the first looks at `claimed` by a relaxed load */
	TAIL_NOT_ACQUIRED,     /* fits looks at data_tail by a relaxed load */
	NO_BARRIER,            /* seal: membarrier does nothing */
	SEAL_LOOKS_AT_BUSY_RELAXED,
	COMMITTED_NOT_RELEASED,
	BUSY_NOT_RELEASED,
};

#ifndef MC_FAULT
#define MC_FAULT NO_FAULT
#endif

/* ---- the words of access.h ---- */

static uint64_t mc_load(const void *word, size_t size, enum order order, const char *function);
static void mc_store(void *word, size_t size, uint64_t value, enum order order, const char *function);
static uint64_t mc_exchange(void *word, size_t size, uint64_t value);
static bool mc_swap(void *word, size_t size, void *expected, uint64_t value);
static void *mc_fill(void *to, int byte, size_t size);
static long mc_system(long number, ...);
static void mc_point(const char *name);

#define PERFRING_ACCESS
#define PERFRING_LOAD_ACQUIRE(word) ((__typeof__(*(word)))mc_load((word), sizeof(*(word)), ACQUIRE, __func__))
#define PERFRING_LOAD(word) ((__typeof__(*(word)))mc_load((word), sizeof(*(word)), RELAXED, __func__))
#define PERFRING_LOAD_ORDERED(word) ((__typeof__(*(word)))mc_load((word), sizeof(*(word)), ORDERED, __func__))
#define PERFRING_STORE_RELEASE(word, value) mc_store((word), sizeof(*(word)), (uint64_t)(value), RELEASE, __func__)
#define PERFRING_STORE(word, value) mc_store((word), sizeof(*(word)), (uint64_t)(value), RELAXED, __func__)
#undef PERFRING_EXCHANGE
#define PERFRING_EXCHANGE(word, value) ((__typeof__(*(word)))mc_exchange((word), sizeof(*(word)), (uint64_t)(value)))
#undef PERFRING_COMPARE_EXCHANGE
#define PERFRING_COMPARE_EXCHANGE(word, expected, value) mc_swap((word), sizeof(*(word)), (expected), (uint64_t)(value))
#define PERFRING_POINT(name) mc_point(#name)
#define memcpy mc_copy
#define memset mc_fill
#define syscall mc_system
#define clock_gettime(clock, time) ((void)(clock), (void)(time)) /* stands still, so nobody asks /proc who lives */

#include "rb/reader.c"
#include "rb/shared.c"

#undef memcpy
#undef memset

/* ---- one execution's memory ---- */

static struct {
	_Alignas(4096) unsigned char page[4096];
	_Alignas(4096) unsigned char data[2 * MAX_DATA * 8]; /* the second half is the first again */
	uint64_t marks[2 * MAX_DATA];
	struct perfring_owner_slot slots[MAX_THREADS];
} memory;

static struct perfring_shared writers[MAX_THREADS];
static struct perfring_reader reader;
static unsigned char joint[65536];

static unsigned preemptions, kills;
static const char *schedule; /* what is left of it */

static struct {
	bool leased;
	uint64_t ring;
	unsigned preemptions, kills, rounds, writers;
	char **programs;
	const char *schedule;
} bound;

/* ---- records, and when there was space ---- */

static struct {
	uint8_t writer;
	bool committed, read, given;
} records[MAX_RECORDS];
static unsigned attempts, refused;
static uint64_t told_lost, read_records;
static bool always_space[MAX_THREADS]; /* since the thread has last looked at `claimed` */
static bool lost_seen[MAX_THREADS];   /* since its reserve began: it may ask for the space of a LOST record */

static struct perf_event_mmap_page *page_of(void)
{
	return (struct perf_event_mmap_page *)(void *)memory.page;
}

static const char *name_of_thread(int thread)
{
	static const char *const names[] = {"writer 0", "writer 1", "writer 2", "writer 3"};

	return thread == (int)bound.writers ? "reader" : names[thread];
}

static const char *name_of(const void *word)
{
	const struct perf_event_mmap_page *page = page_of();
	const struct perfring_ring_state *state = perfring_ring_state_of(page);
	static char names[8][24];
	static unsigned next;
	const struct perfring_owner_slot *slot;
	size_t at;

	if (word == &page->data_head)
		return "data_head";
	if (word == &page->data_tail)
		return "data_tail";
	if (word == &state->claimed)
		return "claimed";
	if (word == &state->lost)
		return "lost";
	if (word == &state->wakeup)
		return "wakeup";
	at = (size_t)((uintptr_t)word - (uintptr_t)memory.marks);
	if (at < sizeof(memory.marks)) {
		next = (next + 1) % 8;
		snprintf(names[next], sizeof(names[next]), "mark %zu", at / 8);
		return names[next];
	}
	at = (size_t)((uintptr_t)word - (uintptr_t)memory.slots);
	if (at < sizeof(memory.slots)) {
		slot = &memory.slots[at / sizeof(*slot)];
		return word == &slot->busy       ? "busy"
		       : word == &slot->limit    ? "limit"
		       : word == &slot->position ? "position"
		       : word == &slot->lease    ? "lease"
		       : word == &slot->settled  ? "settled"
		       : word == &slot->nested   ? "nested"
						 : "slot";
	}
	return "other";
}

/* Whether one more record fits, as the words are now, by the oldest data_tail that the thread may still see. */
static bool has_space(unsigned thread)
{
	struct perf_event_mmap_page *page = page_of();
	const struct perfring_ring_state *state = perfring_ring_state_of(page);
	const struct word *tail = word_of(&page->data_tail, 8);
	uint64_t end = shared_claimed_end(state->claimed, page->data_head, bound.leased ? 5 : 3);
	uint64_t needs = 8u * WORDS + (lost_seen[thread] ? 24u : 0u);

	if (bound.leased)
		needs = (needs + CHUNK - 1) / CHUNK * CHUNK;

	return end - tail->store[threads[thread].view.store[tail - words]].value + needs < bound.ring;
}

static void after_store(void)
{
	for (unsigned i = 0; i < bound.writers; i++) {
		lost_seen[i] |= perfring_ring_state_of(page_of())->lost != 0;
		always_space[i] = always_space[i] && has_space(i);
	}
}

/* ---- accesses ---- */

static void threads_change(void)
{
	unsigned others = 0, chosen, i;
	int me = now_runs;

	if (at_rest || preemptions >= bound.preemptions)
		return;
	for (i = 0; i <= bound.writers; i++)
		others += (int)i != me && !threads[i].done;
	chosen = choose(others + 1);
	if (!chosen)
		return;
	preemptions++;
	for (i = 0; i <= bound.writers; i++)
		if ((int)i != me && !threads[i].done && --chosen == 0)
			break;
	now_runs = (int)i;
	go_on(fibers[me], fibers[i]);
}

/* The next of the schedule that goes on; -1: there is none. */
static int scheduled(void)
{
	while (*schedule && threads[*schedule - '0'].done)
		schedule += strcspn(schedule, ",") + (schedule[strcspn(schedule, ",")] != 0);
	return *schedule ? *schedule - '0' : -1;
}

static void mc_point(const char *name)
{
	size_t length = strcspn(schedule, ",");
	int me = now_runs, next;

	if (at_rest || !length || *schedule - '0' != me || strncmp(name, schedule + 2, length - 2) != 0)
		return;
	schedule += length + (schedule[length] != 0);
	next = scheduled();
	if (next < 0 || next == me)
		return;
	now_runs = next;
	go_on(fibers[me], fibers[next]);
}

/* The kernel marks the mutex of a thread that ends, after all that the thread did. */
static void may_die(void)
{
	int *lock;

	if (at_rest || now_runs == (int)bound.writers || kills >= bound.kills || !choose(2))
		return;
	kills++;
	tell("is killed", "", 0);
	threads[now_runs].dead = threads[now_runs].done = true;
	lock = &memory.slots[now_runs].held.__data.__lock;
	store_now(word_of(lock, sizeof(*lock)), lock, sizeof(*lock), FUTEX_OWNER_DIED, ORDERED);
	leave_fiber();
}

static bool is_data(const void *place)
{
	return is_in(place, memory.data, sizeof(memory.data));
}

static bool is_shared_word(const void *word)
{
	return is_in(word, &memory, sizeof(memory));
}

static size_t data_word(const void *place)
{
	return ((uintptr_t)place - (uintptr_t)memory.data) % bound.ring / 8;
}

static void *folded(const void *place)
{
	return memory.data + 8 * data_word(place) + (uintptr_t)place % 8;
}

static void before_access(const void *word)
{
	mc_point(name_of(word));
	threads_change();
	may_die();
}

static void *mc_fill(void *to, int byte, size_t size)
{
	if (is_data(to))
		beyond("no trailer is written here");
	return memset(to, byte, size);
}

static bool is_function(const char *function, const char *name)
{
	return !strcmp(function, name);
}

static bool is_mark(const void *word)
{
	return is_in(word, memory.marks, bound.ring / (bound.leased ? CHUNK : 8) * 8);
}

static enum order weakened_load(const void *word, enum order order, const char *function)
{
	const struct perf_event_mmap_page *page = page_of();
	const struct perfring_ring_state *state = perfring_ring_state_of(page);
	bool in_publish = is_function(function, "publish"), in_finish = is_function(function, "finish");

	switch (MC_FAULT) {
	case SCAN_WITHOUT_ORDER:
		return in_publish && is_mark(word) ? RELAXED : order;
	case SCAN_BY_ACQUIRE:
		return in_publish && is_mark(word) ? ACQUIRE : order;
	case HEAD_WITHOUT_ORDER:
		return (in_publish || in_finish) && word == &page->data_head ? RELAXED : order;
	case CLAIMED_WITHOUT_ORDER:
		return in_finish && word == &state->claimed ? RELAXED : order;
	case TAIL_NOT_ACQUIRED:
		return word == &page->data_tail ? RELAXED : order;
	case SEAL_LOOKS_AT_BUSY_RELAXED:
		return is_function(function, "seal") ? RELAXED : order;
	default:
		return order;
	}
}

static void after_load(const void *word)
{
	if (word == &perfring_ring_state_of(page_of())->claimed && now_runs < (int)bound.writers)
		always_space[now_runs] = has_space((unsigned)now_runs);
}

static uint64_t mc_load(const void *word, size_t size, enum order order, const char *function)
{
	return word_load(word, size, weakened_load(word, order, function));
}

static void mc_store(void *word, size_t size, uint64_t value, enum order order, const char *function)
{
	if ((MC_FAULT == COMMITTED_NOT_RELEASED && is_function(function, "commit_leased") && size == 8) ||
	    (MC_FAULT == BUSY_NOT_RELEASED && is_function(function, "leave_chunk")))
		order = RELAXED;
	word_store(word, size, value, order);
}

static uint64_t mc_exchange(void *word, size_t size, uint64_t value)
{
	uint64_t before;

	if (MC_FAULT != DONE_IS_A_RELEASE || !is_mark(word))
		return word_modify(word, size, '=', value);
	before = get(word, size);
	word_store(word, size, value, RELEASE);
	return before;
}

static bool mc_swap(void *word, size_t size, void *expected, uint64_t value)
{
	uint64_t before = get(expected, size);
	bool swapped = word_swap(word, size, expected, value);

	if (swapped && word == &page_of()->data_head && value <= before)
		wrong("data_head goes back from %llu to %llu", (unsigned long long)before, (unsigned long long)value);
	return swapped;
}

static long mc_system(long number, ...)
{
	if (number != SYS_membarrier)
		beyond("a system call that the model does not know");
	if (MC_FAULT != NO_BARRIER)
		barrier_of_all(bound.writers + 1);
	return 0;
}

void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd)
{
	(void)page;
	(void)wake_fd;
	total.wakeups++;
}

/* For the parts of rb/shared.c that no thread comes to here. */
uint64_t perfring__identity_own(void)
{
	beyond("open is not modelled");
}

bool perfring__identity_lives(uint64_t identity)
{
	(void)identity;
	beyond("the clock stands still");
}

uint64_t perfring__identity_namespaces(void)
{
	beyond("open is not modelled");
}

uint64_t perfring__identity_boot(void)
{
	beyond("open is not modelled");
}

/* ---- the programs ---- */

static struct perfring_output event = {.id = 2, .wakeup_events = 1};

static void write_one(struct perfring_shared *shared, char how)
{
	struct perf_event_header header = {9, 0, 8 * WORDS};
	struct perfring_claim claim;
	unsigned id = attempts++;
	uint64_t word = id;
	unsigned char *space;

	if (attempts > MAX_RECORDS)
		beyond("too many records: MAX_RECORDS");
	records[id].writer = (uint8_t)now_runs;
	lost_seen[now_runs] = may_see(now_runs, &perfring_ring_state_of(page_of())->lost);
	space = perfring_shared_reserve(shared, how == 'e' ? &event : NULL, 8 * WORDS, &claim);
	if (!space) {
		tell("refused", "", id);
		if (always_space[now_runs])
			wrong("record %u was refused though there was space all the time", id);
		refused++;
		return;
	}
	tell("space for", "record", id);
	records[id].given = true;
	mc_copy(space, &header, 8);
	for (unsigned i = 1; i < WORDS; i++)
		mc_copy(space + (size_t)8 * i, &word, 8);
	if (how == 'd') {
		perfring_shared_discard(shared, &claim);
	} else {
		records[id].committed = true;
		perfring_shared_commit(shared, &claim);
	}
	records[id].given = false;
}

static void drain(void)
{
	const struct perf_event_header *record;
	uint64_t content[8];
	int got;

	if (perfring_reader_observe(&reader) < 0)
		wrong("observe: %s", reader.fault.what);
	while ((got = perfring_reader_next(&reader, &record)) == 1) {
		if (record->size > sizeof(content))
			wrong("a record of %u bytes", record->size);
		mc_copy(content, record, record->size);
		tell("reads", "record", content[1]);
		if (record->type == 2) {
			told_lost += content[2];
			continue;
		}
		if (record->type != 9 || record->size != 8 * WORDS)
			wrong("a record of type %u and %u bytes", record->type, record->size);
		if (content[1] >= attempts || !records[content[1]].committed || records[content[1]].read)
			wrong("record %llu, which was not committed, or read before", (unsigned long long)content[1]);
		for (unsigned i = (unsigned)content[1] + 1; i < attempts; i++)
			if (records[i].writer == records[content[1]].writer && records[i].read)
				wrong("record %u of one writer came before record %llu", i,
				      (unsigned long long)content[1]);
		records[content[1]].read = true;
		read_records++;
	}
	if (got < 0)
		wrong("next: %s", reader.fault.what);
	perfring_reader_return(&reader);
}

static void run(int thread)
{
	if (thread == (int)bound.writers) {
		for (unsigned round = 0; round < bound.rounds; round++) {
			drain();
			mc_point("drained");
		}
	} else {
		for (const char *how = bound.programs[thread]; *how; how++)
			if (*how == 'f')
				perfring_shared_flush(&writers[thread]);
			else
				write_one(&writers[thread], *how);
	}
	threads[thread].done = true;
}

static void open_writer(struct perfring_shared *shared, unsigned index)
{
	memset(shared, 0, sizeof(*shared));
	shared->slot = &memory.slots[index];
	shared->slot->held.__data.__lock = FIRST_ID + (int)index;
	shared->page = page_of();
	shared->data = memory.data;
	shared->mask = bound.ring - 1;
	shared->state = perfring_ring_state_of(shared->page);
	shared->largest = (bound.ring - 16) / 8;
	shared->committed = &shared->nowhere;
	shared->marks = memory.marks;
	shared->grain_shift = bound.leased ? 5 : 3;
	shared->table = memory.marks + (bound.ring >> shared->grain_shift);
	shared->slots = memory.slots;
	shared->watermark = bound.ring / 2;
	shared->size_shift = (uint32_t)__builtin_ctzll(bound.ring);
	shared->owners = MAX_THREADS;
	shared->index = index;
	shared->wake_fd = -1;
	shared->leased = bound.leased;
	shared->bars_own = shared->bars_all = true;
	shared->freed = 0 - bound.ring;
}

static void begin(void)
{
	memset(&memory, 0, sizeof(memory));
	memset(memory.data, 0xa5, bound.ring);
	memset(records, 0, sizeof(records));
	begin_orders();
	preemptions = kills = attempts = refused = 0;
	schedule = bound.schedule;
	told_lost = read_records = 0;
	for (unsigned i = 0; i < bound.writers; i++)
		open_writer(&writers[i], i);
	memset(&reader, 0, sizeof(reader));
	reader.page = page_of();
	reader.data = memory.data;
	reader.mask = bound.ring - 1;
	reader.span = 2 * bound.ring;
	reader.joint = joint;
}

static uint64_t end_of_claims(void)
{
	return shared_claimed_end(perfring_ring_state_of(page_of())->claimed, page_of()->data_head,
				  bound.leased ? 5 : 3);
}

/* All have ended, and the reader knows what they did. */
static void rest(void)
{
	const struct perfring_ring_state *state = perfring_ring_state_of(page_of());
	unsigned i, k;

	at_rest = true;
	now_runs = (int)bound.writers;
	for (k = 0; k <= bound.writers; k++)
		know_all((int)k);
	if (!bound.leased && !kills && page_of()->data_head != end_of_claims())
		wrong("at rest data_head is %llu, and %llu is claimed", (unsigned long long)page_of()->data_head,
		      (unsigned long long)end_of_claims());
	drain();
	/* One that lives publishes what idle and dead ones left. */
	for (i = 0; i < bound.writers && threads[i].dead; i++)
		;
	if (i == bound.writers) {
		/* None does: another opens. */
		memory.slots[MAX_THREADS - 1].held.__data.__lock = FIRST_ID + MAX_THREADS;
		i = MAX_THREADS - 1;
		open_writer(&writers[i], i);
	}
	now_runs = (int)i;
	perfring_shared_flush(&writers[i]);
	now_runs = (int)bound.writers;
	know_all(now_runs);
	drain();
	if (page_of()->data_head != end_of_claims())
		wrong("flushed, and data_head is %llu, and %llu is claimed", (unsigned long long)page_of()->data_head,
		      (unsigned long long)end_of_claims());
	for (i = 0; i < attempts; i++)
		if (records[i].committed && !records[i].read && !(records[i].given && threads[records[i].writer].dead))
			wrong("record %u was committed and is not in the ring", i);
	/* A kill may fall between the refusal and its count. */
	if (!kills && (state->lost_total != refused || told_lost + state->lost != refused))
		wrong("%u were refused, %llu are counted, LOST records hold %llu, %llu are not in one yet", refused,
		      (unsigned long long)state->lost_total, (unsigned long long)told_lost,
		      (unsigned long long)state->lost);
	if (state->abandoned > kills)
		wrong("%llu records of %u dead writers", (unsigned long long)state->abandoned, kills);
	total.records += read_records;
	total.refused += refused;
}

int main(int argc, char **argv)
{
	unsigned i;

	if (argc > 2 && !strcmp(argv[1], "-r")) {
		random_executions = strtoull(argv[2], NULL, 0);
		argc -= 2;
		argv += 2;
	}
	bound.schedule = "";
	if (argc > 2 && !strcmp(argv[1], "-s")) {
		bound.schedule = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc < 7 || argc > 6 + MAX_THREADS - 1 || (strcmp(argv[1], "strict") && strcmp(argv[1], "leased"))) {
		fprintf(stderr,
			"usage: mc_shared [-r COUNT] [-s THREAD:POINT,...] strict|leased RING PREEMPTIONS KILLS "
			"ROUNDS WRITER...\n");
		return 2;
	}
	bound.leased = !strcmp(argv[1], "leased");
	bound.ring = strtoull(argv[2], NULL, 0);
	bound.preemptions = (unsigned)atoi(argv[3]);
	bound.kills = (unsigned)atoi(argv[4]);
	bound.rounds = (unsigned)atoi(argv[5]);
	bound.programs = argv + 6;
	bound.writers = (unsigned)argc - 6;
	if (bound.ring < 32 || bound.ring > 8 * MAX_DATA || bound.ring & (bound.ring - 1)) {
		fprintf(stderr, "mc_shared: RING is a power of two from 32 to %d\n", 8 * MAX_DATA);
		return 2;
	}
	for (i = 0; i <= bound.writers; i++)
		open_fiber((int)i);
	do {
		begin();
		total.executions++;
		for (;;) {
			unsigned left = 0, chosen;

			for (i = 0; i <= bound.writers; i++)
				left += !threads[i].done;
			if (!left)
				break;
			chosen = scheduled() < 0 ? choose(left) : 0;
			for (i = 0; threads[i].done || chosen; i++)
				chosen -= !threads[i].done;
			if (scheduled() >= 0)
				i = (unsigned)scheduled();
			now_runs = (int)i;
			go_on(home, fibers[i]);
		}
		rest();
	} while (next_choices());
	print_total();
	return 0;
}
