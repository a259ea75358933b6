/* mc_calls.c - what other threads do to a writer's ring, under the orders of memory that C11 allows (tests/checks/mc_orders.h), within
 * bounds: pause, arm and sleep, snapshots: rb/writer.c, rb/wakeup.c and rb/snapshot.c themselves.
 *
 * One writer and those who call run as fibers.  Before each access to a word that more than one of them touches another one
 * may go on (PREEMPTIONS times).  FUTEX_WAIT compares and falls asleep in one step.  In a ring that stops the bytes of records
 * are plain; in one that overwrites they are words, as a snapshot reads them while they are written, and says which it believes.
 *
 *     mc_calls KIND RING WATERMARK PREEMPTIONS WRITES CALLER...          every choice
 *     mc_calls -r COUNT KIND RING ...                                    COUNT executions of random choices
 *
 * KIND: stops, overwrites (backward) or forward (overwrites).  RING: bytes of data.  WRITES: the words of each record, a digit each, from 2.  CALLER: what a
 * thread does, a letter each: p pause, u resume, w sleep until a crossing, r arm for the next record and sleep until it comes, R
 * the same, and drain in between, d drain, s snapshot.  Exit status: 0 and a line of figures; 1 and the trace of what went wrong; 2 usage.
 *
 * Faults that tests/checks/mc_test puts into the source must be found.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_DATA = 32,
	MAX_WORDS = 64,
	MAX_STORES = 64,
	MAX_RECORDS = 16,
	MAX_WORDS_EACH = 9,
	WRITER = 0,
};

#include "tests/checks/mc_orders.h"

static long mc_system(long number, ...);
static void *calls_copy(void *to, const void *from, size_t size);

#define PERFRING_POINT(name) ((void)0)
#define memcpy calls_copy
#define syscall mc_system

#define state_of wakeup_state_of
#include "rb/wakeup.c"
#undef state_of
#include "rb/reader.c"
#include "rb/writer.c"
#define place snapshot_place
#include "rb/snapshot.c"
#undef place

#undef memcpy
#undef syscall

/* ---- one execution's memory ---- */

static struct {
	_Alignas(4096) unsigned char page[4096];
	_Alignas(4096) unsigned char data[2 * MAX_DATA * 8]; /* the second half is the first again */
} memory;

static struct perfring_writer writer;
static struct perfring_reader reader;
static struct perfring_ring ring;
static unsigned char joint[65536];

static struct {
	bool overwrites, forward;
	uint64_t ring, watermark;
	unsigned preemptions, callers;
	char **programs; /* of the writer, then of callers */
} bound;

static unsigned preemptions, attempts, refused;
static bool asleep[MAX_THREADS];
static uint64_t sleeps_at[MAX_THREADS]; /* its position */
static bool for_record[MAX_THREADS];    /* it sleeps for the next record, not for a crossing */
static uint64_t woken_at;               /* data_head at the last crossing */
static bool paused;
static uint64_t paused_at, granted; /* ends of claims */

static struct perf_event_mmap_page *page_of(void)
{
	return (struct perf_event_mmap_page *)(void *)memory.page;
}

static const char *name_of_thread(int thread)
{
	static const char *const names[] = {"writer", "caller 1", "caller 2", "caller 3"};

	return names[thread];
}

static const char *name_of(const void *word)
{
	const struct perf_event_mmap_page *page = page_of();
	const struct perfring_ring_state *state = perfring_ring_state_of(page);

	return word == &page->data_head   ? "data_head"
	       : word == &page->data_tail ? "data_tail"
	       : word == &writer.claimed  ? "claimed"
	       : word == &writer.position ? "position"
	       : word == &writer.limit    ? "limit"
	       : word == &state->claimed  ? "state's claimed"
	       : word == &state->oldest   ? "oldest"
	       : word == &state->pending  ? "pending"
	       : word == &state->armed    ? "armed"
	       : word == &state->paused   ? "paused"
					  : "other";
}

static bool is_shared_word(const void *word)
{
	return is_in(word, memory.page, sizeof(memory.page)) || is_in(word, memory.data, sizeof(memory.data)) ||
	       word == &writer.claimed || word == &writer.position || word == &writer.limit;
}

static bool is_data(const void *place)
{
	return !bound.overwrites && is_in(place, memory.data, sizeof(memory.data));
}

static size_t data_word(const void *place)
{
	return ((uintptr_t)place - (uintptr_t)memory.data) % bound.ring / 8;
}

static void *folded(const void *place)
{
	return memory.data + ((uintptr_t)place - (uintptr_t)memory.data) % bound.ring;
}

static void *calls_copy(void *to, const void *from, size_t size)
{
	uint64_t word;

	if (!bound.overwrites || !is_in(to, memory.data, sizeof(memory.data)))
		return mc_copy(to, from, size);
	for (size_t at = 0; at < size; at += 8) {
		memcpy(&word, (const char *)from + at, 8);
		word_store(folded((char *)to + at), 8, word, RELAXED);
	}
	return to;
}

static void after_load(const void *word)
{
	(void)word;
}

static void after_store(void)
{
}

/* ---- threads ---- */

static bool can_run(unsigned thread)
{
	return !threads[thread].done && !asleep[thread];
}

static void before_access(const void *word)
{
	unsigned others = 0, chosen, i;
	int me = now_runs;

	(void)word;
	if (at_rest || preemptions >= bound.preemptions)
		return;
	for (i = 0; i <= bound.callers; i++)
		others += (int)i != me && can_run(i);
	chosen = choose(others + 1);
	if (!chosen)
		return;
	preemptions++;
	for (i = 0; i <= bound.callers; i++)
		if ((int)i != me && can_run(i) && --chosen == 0)
			break;
	now_runs = (int)i;
	go_on(fibers[me], fibers[i]);
}

static long futex_wait(uint32_t *word, uint32_t value)
{
	static uint64_t execution[MAX_THREADS];
	int me = now_runs;

	/* An exchange that does not change it: what it sees is the newest. */
	if ((uint32_t)word_modify(word, sizeof(*word), '|', 0) != value) {
		errno = EAGAIN;
		return -1;
	}
	tell("falls asleep", "", value);
	asleep[me] = true;
	execution[me] = total.executions;
	go_on(fibers[me], home);
	if (execution[me] != total.executions)
		_longjmp(restarts[me], 1); /* nobody woke it: the next execution */
	return 0;
}

static long mc_system(long number, ...)
{
	uint32_t *word;
	va_list arguments;
	uint32_t value;
	int operation;

	if (number == SYS_membarrier) {
		before_access(NULL);
		barrier_of_all(bound.callers + 1);
		return 0;
	}
	if (number != SYS_futex)
		beyond("a system call that the model does not know");
	va_start(arguments, number);
	word = va_arg(arguments, uint32_t *);
	operation = va_arg(arguments, int);
	value = va_arg(arguments, uint32_t);
	va_end(arguments);
	if (operation == FUTEX_WAIT)
		return futex_wait(word, value);
	total.wakeups++;
	tell("wakes all", "", 0);
	for (unsigned i = 0; i <= bound.callers; i++)
		asleep[i] = false;
	return 0;
}

/* For the parts of rb/writer.c that no thread comes to here. */
uint64_t perfring__identity_own(void)
{
	beyond("open is not modelled");
}

uint64_t perfring__identity_of(uint32_t tid)
{
	(void)tid;
	beyond("open is not modelled");
}

bool perfring__identity_lives(uint64_t identity)
{
	(void)identity;
	beyond("open is not modelled");
}

/* ---- the programs ---- */

static void write_one(uint64_t size)
{
	struct perf_event_header header = {9, 0, (uint16_t)size};
	uint64_t word = attempts++, woken;
	struct perfring_claim claim;
	unsigned char *space;

	if (attempts > MAX_RECORDS)
		beyond("too many records: MAX_RECORDS");
	space = perfring_writer_reserve(&writer, NULL, size, &claim);
	if (!space) {
		tell("refused", "", word);
		refused++;
		return;
	}
	tell("space for", "record", word);
	granted = claim.end;
	if (paused && granted > paused_at)
		wrong("record %llu was taken after the pause", (unsigned long long)word);
	calls_copy(space, &header, 8);
	for (uint64_t at = 8; at < size; at += 8)
		calls_copy(space + at, &word, 8);
	woken = writer.woken;
	perfring_writer_commit(&writer, &claim);
	if (writer.woken != woken) /* a crossing */
		woken_at = page_of()->data_head;
	total.records++;
}

static void drain(void)
{
	const struct perf_event_header *record;
	uint64_t content[MAX_WORDS_EACH];
	int got;

	if (perfring_reader_observe(&reader) < 0)
		wrong("observe: %s", reader.fault.what);
	while ((got = perfring_reader_next(&reader, &record)) == 1)
		mc_copy(content, record, record->size);
	if (got < 0)
		wrong("next: %s", reader.fault.what);
	perfring_reader_return(&reader);
}

static void sleep_for(char what)
{
	bool in_the_making = what != 'w' && perfring_writer_arm(&writer);

	if (what == 'R')
		drain();
	for_record[now_runs] = what != 'w';
	sleeps_at[now_runs] = reader.position;
	if (!in_the_making)
		perfring_wakeup_wait(&ring, reader.position, -1);
}

static void take_snapshot(void)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	uint64_t content, last = UINT64_MAX;
	int ret = perfring_snapshot_take(&snapshot, &ring, 1);

	if (ret == -EAGAIN)
		return;
	if (ret)
		wrong("snapshot: %d: %s", ret, snapshot.fault.what ? snapshot.fault.what : "");
	if (snapshot.fault.what)
		wrong("snapshot: a record makes no sense: %s", snapshot.fault.what);
	while (perfring_snapshot_previous(&snapshot, &record) == 1) {
		if (record->type != 9)
			wrong("snapshot: a record of type %u and %u bytes", record->type, record->size);
		memcpy(&content, (const char *)record + 8, 8);
		tell("has", "record", content);
		for (unsigned at = 8; at < record->size; at += 8)
			if (memcmp((const char *)record + at, &content, 8) != 0)
				wrong("snapshot: record %llu is torn", (unsigned long long)content);
		if (content >= attempts || (last != UINT64_MAX && content != last - 1))
			wrong("snapshot: record %llu before record %llu", (unsigned long long)content,
			      (unsigned long long)last);
		last = content;
		total.records++;
	}
	perfring_snapshot_close(&snapshot);
}

static void run(int thread)
{
	if (thread == WRITER)
		for (const char *how = bound.programs[WRITER]; *how; how++)
			write_one(8 * (uint64_t)(*how - '0'));
	else
		for (const char *how = bound.programs[thread]; *how; how++)
			switch (*how) {
			case 'p':
				perfring_writer_pause(&writer, true);
				paused_at = word_load(&writer.claimed, 8, RELAXED);
				paused = true;
				tell("has paused at", "", paused_at);
				if (granted > paused_at)
					wrong("a record up to %llu was taken, and not in `claimed`",
					      (unsigned long long)granted);
				break;
			case 'u':
				paused = false;
				perfring_writer_pause(&writer, false);
				break;
			case 'd':
				drain();
				break;
			case 's':
				take_snapshot();
				break;
			default:
				sleep_for(*how);
			}
	threads[thread].done = true;
}

static void begin(void)
{
	memset(&memory, 0, sizeof(memory));
	memset(&writer, 0, sizeof(writer));
	memset(&reader, 0, sizeof(reader));
	memset(asleep, 0, sizeof(asleep));
	begin_orders();
	preemptions = attempts = refused = 0;
	woken_at = granted = 0;
	paused = false;
	ring.page = page_of();
	ring.data = memory.data;
	ring.size = bound.ring;
	ring.span = 2 * bound.ring;
	ring.fd = -1;
	ring.flags = PERFRING_RING_OWN | (bound.overwrites ? PERFRING_RING_OVERWRITE : 0u) |
		     (bound.overwrites && !bound.forward ? PERFRING_RING_BACKWARD : 0u);
	writer.page = page_of();
	writer.data = memory.data;
	writer.mask = bound.ring - 1;
	writer.watermark = bound.watermark;
	writer.wake_fd = -1;
	writer.flags = (uint32_t)ring.flags;
	reader.page = page_of();
	reader.data = memory.data;
	reader.mask = bound.ring - 1;
	reader.span = 2 * bound.ring;
	reader.joint = joint;
}

/* All have ended, or sleep. */
static void rest(void)
{
	uint64_t head = page_of()->data_head;

	at_rest = true;
	for (unsigned i = 1; i <= bound.callers; i++) {
		if (asleep[i] && for_record[i] && head != sleeps_at[i])
			wrong("%s sleeps for the next record, and there is one", name_of_thread((int)i));
		if (asleep[i] && !for_record[i] && woken_at > sleeps_at[i])
			wrong("%s has slept through a crossing", name_of_thread((int)i));
	}
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
	bound.forward = argc > 1 && !strcmp(argv[1], "forward");
	bound.overwrites = bound.forward || (argc > 1 && !strcmp(argv[1], "overwrites"));
	if (argc < 7 || argc > 5 + MAX_THREADS || (strcmp(argv[1], "stops") && !bound.overwrites)) {
		fprintf(stderr,
			"usage: mc_calls [-r COUNT] stops|overwrites|forward RING WATERMARK PREEMPTIONS WRITES CALLER...\n");
		return 2;
	}
	bound.ring = strtoull(argv[2], NULL, 0);
	bound.watermark = strtoull(argv[3], NULL, 0);
	bound.preemptions = (unsigned)atoi(argv[4]);
	bound.programs = argv + 5;
	bound.callers = (unsigned)argc - 6;
	if (bound.ring < 32 || bound.ring > 8 * MAX_DATA || bound.ring & (bound.ring - 1)) {
		fprintf(stderr, "mc_calls: RING is a power of two from 32 to %d\n", 8 * MAX_DATA);
		return 2;
	}
	for (i = 0; i <= bound.callers; i++)
		open_fiber((int)i);
	do {
		begin();
		total.executions++;
		for (;;) {
			unsigned left = 0, chosen;

			for (i = 0; i <= bound.callers; i++)
				left += can_run(i);
			if (!left)
				break;
			chosen = choose(left);
			for (i = 0; !can_run(i) || chosen; i++)
				chosen -= can_run(i);
			now_runs = (int)i;
			go_on(home, fibers[i]);
		}
		rest();
	} while (next_choices());
	print_total();
	return 0;
}
