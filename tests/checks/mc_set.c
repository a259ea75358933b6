/* mc_set.c - a set of rings while threads join and leave, under the orders of memory that C11 allows (tests/checks/mc_orders.h), within
 * bounds: rb/set.c itself, over rings that are a control page each.
 *
 * Threads and a reader run as fibers.  Before each access to a shared word, and to the lock, another one may go on (PREEMPTIONS
 * times).  What is freed may not be touched any more, and who frees knows all that was stored there.
 *
 *     mc_set PREEMPTIONS WALKS THREAD...          every choice
 *     mc_set -r COUNT PREEMPTIONS WALKS ...       COUNT executions of random choices
 *
 * WALKS of the reader.  THREAD: what one does, a letter each: j join, w write a record, l leave.  Exit status: 0 and a line of
 * figures; 1 and the trace of what went wrong; 2 usage.
 *
 * Faults that tests/checks/mc_test puts into the source must be found.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum {
	MAX_DATA = 1,
	MAX_WORDS = 64,
	MAX_STORES = 64,
	MAX_RINGS = 8,
};

#include "tests/checks/mc_orders.h"

static int mc_lock(void);
static int mc_unlock(void);
static void *mc_calloc(size_t size);
static void mc_free(void *memory);
static int mc_setspecific(const void *value);
static void *mc_getspecific(void);

#define PERFRING_POINT(name) ((void)0)
#define pthread_mutex_lock(lock) ((void)(lock), mc_lock())
#define pthread_mutex_unlock(lock) ((void)(lock), mc_unlock())
#define pthread_sigmask(how, set, old) ((void)(set), (void)(old)) /* no handlers here */
#define pthread_setspecific(key, value) ((void)(key), mc_setspecific(value))
#define pthread_getspecific(key) ((void)(key), mc_getspecific())
#define calloc(count, size) mc_calloc(size)
#define free(memory) mc_free(memory)

#include "rb/set.c"

#undef calloc
#undef free

/* ---- one execution's memory ---- */

static struct {
	_Alignas(4096) unsigned char page[MAX_RINGS][4096];
	struct member member[MAX_RINGS];
	struct perfring_set set;
} memory;

static bool freed[MAX_RINGS];
static unsigned made;

static struct {
	unsigned preemptions, walks, threads;
	char **programs;
} bound;

static unsigned preemptions, dropped;
static uint64_t written, was_read;
static struct member *own[MAX_THREADS];
static int lock_of; /* the thread that has it; -1: none */
static bool waits[MAX_THREADS];
static struct view lock_view;

static const char *name_of_thread(int thread)
{
	static const char *const names[] = {"thread 0", "thread 1", "thread 2", "thread 3"};

	return thread == (int)bound.threads ? "reader" : names[thread];
}

/* Which ring's it is, or its member's; MAX_RINGS: of none. */
static unsigned ring_of(const void *word)
{
	if (is_in(word, memory.page, sizeof(memory.page)))
		return (unsigned)(((uintptr_t)word - (uintptr_t)memory.page) / sizeof(memory.page[0]));
	if (is_in(word, memory.member, sizeof(memory.member)))
		return (unsigned)(((uintptr_t)word - (uintptr_t)memory.member) / sizeof(memory.member[0]));
	return MAX_RINGS;
}

static const char *name_of(const void *word)
{
	unsigned i = ring_of(word);
	const struct member *member = &memory.member[i % MAX_RINGS];

	return i == MAX_RINGS            ? "first"
	       : word == &member->next   ? "next"
	       : word == &member->gone   ? "gone"
	       : word == &member->writer ? "writer"
					 : "a word of a ring";
}

static bool is_shared_word(const void *word)
{
	return is_in(word, &memory, sizeof(memory));
}

static bool is_data(const void *place)
{
	(void)place;
	return false;
}

static size_t data_word(const void *place)
{
	(void)place;
	return 0;
}

static void *folded(const void *place)
{
	(void)place;
	return NULL;
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
	return !threads[thread].done && !(waits[thread] && lock_of >= 0);
}

static void before_access(const void *word)
{
	unsigned others = 0, chosen, i;
	int me = now_runs;

	if (!at_rest && preemptions < bound.preemptions) {
		for (i = 0; i <= bound.threads; i++)
			others += (int)i != me && can_run(i);
		chosen = choose(others + 1);
		if (chosen) {
			preemptions++;
			for (i = 0; i <= bound.threads; i++)
				if ((int)i != me && can_run(i) && --chosen == 0)
					break;
			now_runs = (int)i;
			go_on(fibers[me], fibers[i]);
		}
	}
	i = ring_of(word);
	if (i != MAX_RINGS && freed[i])
		wrong("%s touches `%s` of ring %u, which is freed", name_of_thread(me), name_of(word), i);
}

static int mc_lock(void)
{
	int me = now_runs;

	before_access(NULL);
	while (lock_of >= 0) {
		waits[me] = true;
		go_on(fibers[me], home);
		waits[me] = false;
	}
	lock_of = me;
	join(&threads[me].view, &lock_view);
	tell("locks", "", 0);
	return 0;
}

static int mc_unlock(void)
{
	tell("unlocks", "", 0);
	lock_of = -1;
	lock_view = threads[now_runs].view;
	threads[now_runs].view.clock[now_runs]++;
	before_access(NULL);
	return 0;
}

static int mc_setspecific(const void *value)
{
	own[now_runs] = (struct member *)(uintptr_t)value;
	return 0;
}

static void *mc_getspecific(void)
{
	return own[now_runs];
}

/* ---- members and rings ---- */

static void *mc_calloc(size_t size)
{
	if (size != sizeof(struct member) || made == MAX_RINGS)
		beyond("too many rings: MAX_RINGS");
	return &memory.member[made++];
}

static void mc_free(void *place)
{
	unsigned ring = ring_of(place);

	if (!place) /* a ring without a file */
		return;
	if (ring == MAX_RINGS || freed[ring])
		wrong("what is not a ring's is freed");
	for (unsigned i = 0; i < word_count; i++)
		if (ring_of(words[i].word) == ring && threads[now_runs].view.store[i] != words[i].stores - 1)
			wrong("ring %u is freed, and its `%s` is still being stored", ring, name_of(words[i].word));
	freed[ring] = true;
	dropped++;
	tell("frees", "ring", ring);
}

int perfring_ring_create(struct perfring_ring *ring, const struct perfring_ring_options *options)
{
	(void)options;
	ring->page = (struct perf_event_mmap_page *)(void *)memory.page[made - 1];
	return 0;
}

void perfring_ring_close(struct perfring_ring *ring)
{
	(void)ring;
}

int perfring_reader_open(struct perfring_reader *reader, const struct perfring_ring *ring, unsigned flags)
{
	(void)flags;
	reader->page = ring->page;
	return 0;
}

void perfring_reader_close(struct perfring_reader *reader)
{
	(void)reader;
}

int perfring_writer_open(struct perfring_writer **writer, struct perfring_ring *ring,
			 const struct perfring_writer_options *options)
{
	(void)options;
	*writer = (struct perfring_writer *)(void *)ring->page;
	return 0;
}

void perfring_writer_close(struct perfring_writer *writer)
{
	if (writer)
		PERFRING_STORE_RELEASE(&perfring_ring_state_of((struct perf_event_mmap_page *)(void *)writer)->writer,
				       0);
}

void perfring__writer_hand_over(struct perfring_writer *writer, pthread_t thread, uint32_t tid)
{
	(void)writer;
	(void)thread;
	(void)tid;
	beyond("admit is not modelled");
}

/* ---- the programs ---- */

static void write_one(struct perfring_writer *writer)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)(void *)writer;

	written += 8;
	perfring_page_publish(page, PERFRING_LOAD(&page->data_head) + 8);
}

static void walk(void)
{
	struct perfring_set_ring *member;
	uint64_t head, number = 0;
	bool first = true;

	for (member = perfring_set_next(&memory.set, NULL); member;
	     member = perfring_set_next(&memory.set, member), first = false) {
		if (!first && member->number <= number)
			wrong("ring %llu after ring %llu", (unsigned long long)member->number,
			      (unsigned long long)number);
		number = member->number;
		head = perfring_page_observe(member->ring.page);
		was_read += head - PERFRING_LOAD(&member->ring.page->data_tail);
		tell("has read ring", "", number);
		perfring_page_return(member->ring.page, head);
	}
}

static void run(int thread)
{
	struct perfring_writer *writer = NULL;

	if (thread == (int)bound.threads)
		for (unsigned i = 0; i < bound.walks; i++)
			walk();
	else
		for (const char *how = bound.programs[thread]; *how; how++)
			if (*how == 'j')
				perfring_set_join(&memory.set, &writer);
			else if (*how == 'w')
				write_one(writer);
			else
				perfring_set_leave(&memory.set);
	threads[thread].done = true;
}

static void begin(void)
{
	memset(&memory, 0, sizeof(memory));
	memset(freed, 0, sizeof(freed));
	memset(own, 0, sizeof(own));
	memset(waits, 0, sizeof(waits));
	memset(&lock_view, 0, sizeof(lock_view));
	begin_orders();
	preemptions = made = dropped = 0;
	written = was_read = 0;
	lock_of = -1;
	memory.set.last = &memory.set.first;
	memory.set.limit = MAX_RINGS;
}

/* All have ended: the reader finds the rest. */
static void rest(void)
{
	unsigned left = 0;

	at_rest = true;
	now_runs = (int)bound.threads;
	know_all(now_runs);
	for (unsigned i = 0; i < 3; i++)
		walk();
	for (unsigned i = 0; i < bound.threads; i++)
		left += own[i] != NULL;
	if (was_read != written)
		wrong("%llu bytes were written, and %llu are in the rings of the set", (unsigned long long)written,
		      (unsigned long long)was_read);
	if (made - dropped != left || memory.set.rings != left)
		wrong("%u rings of %u are freed, %u threads have one, and the set has %u", dropped, made, left,
		      memory.set.rings);
	total.records += was_read / 8;
}

int main(int argc, char **argv)
{
	unsigned i;

	if (argc > 2 && !strcmp(argv[1], "-r")) {
		random_executions = strtoull(argv[2], NULL, 0);
		argc -= 2;
		argv += 2;
	}
	if (argc < 4 || argc > 3 + MAX_THREADS - 1) {
		fprintf(stderr, "usage: mc_set [-r COUNT] PREEMPTIONS WALKS THREAD...\n");
		return 2;
	}
	bound.preemptions = (unsigned)atoi(argv[1]);
	bound.walks = (unsigned)atoi(argv[2]);
	bound.programs = argv + 3;
	bound.threads = (unsigned)argc - 3;
	for (i = 0; i <= bound.threads; i++)
		open_fiber((int)i);
	do {
		begin();
		total.executions++;
		for (;;) {
			unsigned left = 0, chosen;

			for (i = 0; i <= bound.threads; i++)
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
