/* mc_cpus.c - rings for each CPU under the orders of memory that C11 allows (tests/checks/mc_orders.h), within bounds: rb/cpus.c and
 * set.h themselves, with the words of access.h and the restartable sequences replaced.
 *
 * Two CPUs.  Writers and a reader run as fibers.  Before each access to a shared word another thread may go on (PREEMPTIONS
 * times), or the writer may be moved to the other CPU (MOVES times).  A CPU that changes its thread passes a full barrier
 * before and after.  A restartable sequence is one step: whatever comes in between starts it again.  Its store is a release, as each
 * is on the one processor that has them here.  The reader has a CPU of its own.
 *
 *     mc_cpus WAY RING PREEMPTIONS MOVES ROUNDS WRITER...          every choice
 *     mc_cpus -r COUNT WAY RING ...                                 COUNT executions of random choices
 *
 * WAY: rseq, or locked.  RING: bytes of data.  ROUNDS of the reader.  WRITER: the CPU where it begins, 0 or 1, then what it
 * does, a letter each: c commit, d discard, e commit for an output with wakeup_events = 1, p pause, u resume.  Exit status: 0
 * and a line of figures; 1 and the trace of what went wrong; 2 usage.
 *
 * Faults that tests/checks/mc_test puts into the source must be found.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CPUS = 2,
	MAX_RING = 256,
	MAX_DATA = CPUS * MAX_RING / 8,
	MAX_WORDS = 64,
	MAX_STORES = 64,
	MAX_RECORDS = 16,
	WORDS = 2, /* of a record */
};

#include "tests/checks/mc_orders.h"

static uint32_t cpu_now(void);
static long mc_system(long number, ...);

#define PERFRING_POINT(name) ((void)0)
#define PERFRING_HAS_RSEQ 1
#define PERFRING_SEQUENCES
#define memcpy mc_copy
#define syscall mc_system
#define sched_getcpu() ((int)cpu_now())

struct perfring_cpu;
static uint32_t perfring_cpus_here(void);
static uint64_t perfring_cpus_claim(struct perfring_cpu *cpu, uint32_t number, uint64_t size);
static bool sequence_swap(struct perfring_cpu *cpu, uint32_t number, uint64_t from, uint64_t to);
static bool can_sequence(void);

#include "rb/cpus.c"
#include "rb/reader.c"

#undef memcpy
#undef syscall

#include "os/small_file.c"
#include "os/range.c"

/* ---- one execution's memory ---- */

static struct {
	_Alignas(4096) unsigned char page[CPUS][4096];
	_Alignas(4096) unsigned char data[CPUS][2 * MAX_RING]; /* the second half is
                                                            the first again */
	uint64_t marks[CPUS][MAX_RING / 8];
	struct perfring_cpus cpus;
	struct perfring_cpu others[CPUS - 1];
} memory;

static struct perfring_reader readers[CPUS];
static unsigned char joint[65536];

static struct {
	int way;
	uint64_t ring;
	unsigned preemptions, moves, rounds, writers;
	char **programs;
	bool pauses;
} bound;

static unsigned preemptions, moves;
static uint32_t cpu_of[MAX_THREADS]; /* where the thread is */
static int on_cpu[CPUS];             /* which one that is there ran last; -1: it has left */
static struct view cpu_view[CPUS];   /* what those who ran there knew */
static bool in_sequence;

static struct {
	bool committed, read;
} records[MAX_RECORDS];
static unsigned attempts, refused;
static uint64_t told_lost, read_records;
static bool always_space[MAX_THREADS]; /* since the thread has last looked at a
                                         ring's `claimed` */
static uint32_t looked_at[MAX_THREADS];
static bool lost_seen[MAX_THREADS][CPUS];

static struct perfring_cpus *cpus_of(void)
{
	return &memory.cpus;
}

static struct perfring_cpu *cpu_at(uint32_t number)
{
	return perfring_cpus_of(cpus_of(), number);
}

static const char *name_of_thread(int thread)
{
	static const char *const names[] = {"writer 0", "writer 1", "writer 2", "writer 3"};

	return thread == (int)bound.writers ? "reader" : names[thread];
}

static const char *name_of(const void *word)
{
	static char names[64][24];
	static unsigned next;
	const char *is = "other";
	uint32_t i;

	for (i = 0; i < CPUS; i++) {
		const struct perfring_cpu *cpu = cpu_at(i);
		const struct perfring_ring_state *state = state_of(cpu);

		is = word == &cpu->page->data_head                           ? "data_head"
		     : word == &cpu->page->data_tail                         ? "data_tail"
		     : word == &cpu->claimed                                 ? "claimed"
		     : word == &cpu->limit                                   ? "limit"
		     : word == &cpu->waiting                                 ? "waiting"
		     : word == &cpu->wake_at                                 ? "wake_at"
		     : word == &state->lost                                  ? "lost"
		     : word == &state->paused                                ? "paused"
		     : is_in(word, memory.marks[i], sizeof(memory.marks[i])) ? "mark"
									     : NULL;
		if (is)
			break;
	}
	if (!is)
		return "other";
	next = (next + 1) % 64;
	snprintf(names[next], sizeof(names[next]), "%s of %u", is, i);
	return names[next];
}

/* Whether one more record fits, as the words are now, by the oldest data_tail
 * that the thread may still see. */
static bool has_space(int thread)
{
	const struct perfring_cpu *cpu = cpu_at(looked_at[thread]);
	const struct word *tail = word_of(&cpu->page->data_tail, 8);
	uint64_t used = cpu->claimed - tail->store[threads[thread].view.store[tail - words]].value;

	return used + 8 * WORDS + (lost_seen[thread][looked_at[thread]] ? 24 : 0) < bound.ring;
}

static void after_load(const void *word)
{
	int me = now_runs;

	for (uint32_t k = 0; k < CPUS && me < (int)bound.writers; k++)
		if (word == &state_of(cpu_at(k))->lost) { /* a try begins */
			looked_at[me] = k;
			always_space[me] = has_space(me);
		} else if (word == &cpu_at(k)->claimed) {
			always_space[me] = always_space[me] && has_space(me);
		}
}

static void after_store(void)
{
	for (unsigned i = 0; i < bound.writers; i++) {
		for (uint32_t k = 0; k < CPUS; k++)
			lost_seen[i][k] |= state_of(cpu_at(k))->lost != 0;
		always_space[i] = always_space[i] && has_space((int)i);
	}
	for (uint32_t k = 0; k < CPUS; k++)
		if ((int64_t)cpu_at(k)->waiting < 0)
			wrong("a mark was taken back before it was counted");
}

/* ---- CPUs and threads ---- */

static void leave_cpu(uint32_t number)
{
	int thread = on_cpu[number];

	fence(thread, ORDERED);
	join(&cpu_view[number], &threads[thread].view);
	on_cpu[number] = -1;
}

static void enter_cpu(void)
{
	uint32_t number = cpu_of[now_runs];

	if (now_runs == (int)bound.writers || on_cpu[number] == now_runs)
		return;
	if (on_cpu[number] >= 0)
		leave_cpu(number);
	join(&threads[now_runs].view, &cpu_view[number]);
	fence(now_runs, ORDERED);
	on_cpu[number] = now_runs;
}

static void before_access(const void *word)
{
	unsigned others = 0, chosen, i;
	int me = now_runs;

	(void)word;
	if (at_rest || in_sequence)
		return;
	if (preemptions < bound.preemptions) {
		for (i = 0; i <= bound.writers; i++)
			others += (int)i != me && !threads[i].done;
		chosen = choose(others + 1);
		if (chosen) {
			preemptions++;
			for (i = 0; i <= bound.writers; i++)
				if ((int)i != me && !threads[i].done && --chosen == 0)
					break;
			now_runs = (int)i;
			go_on(fibers[me], fibers[i]);
		}
	}
	if (me != (int)bound.writers && moves < bound.moves && choose(2)) {
		moves++;
		if (on_cpu[cpu_of[me]] == me)
			leave_cpu(cpu_of[me]);
		cpu_of[me] ^= 1;
		tell("is moved to", "CPU", cpu_of[me]);
	}
	enter_cpu();
}

static uint32_t cpu_now(void)
{
	before_access(NULL);
	return cpu_of[now_runs];
}

static uint32_t perfring_cpus_here(void)
{
	return cpu_now();
}

static uint64_t perfring_cpus_claim(struct perfring_cpu *cpu, uint32_t number, uint64_t size)
{
	uint64_t end = 1;

	before_access(NULL);
	in_sequence = true;
	if (cpu_of[now_runs] == number) {
		end = word_load(&cpu->claimed, 8, RELAXED) + size;
		if (end <= word_load(&cpu->limit, 8, RELAXED))
			word_store(&cpu->claimed, 8, end, RELEASE);
		else
			end = 1;
	}
	in_sequence = false;
	return end;
}

static bool sequence_swap(struct perfring_cpu *cpu, uint32_t number, uint64_t from, uint64_t to)
{
	bool swapped = false;

	before_access(NULL);
	in_sequence = true;
	if (cpu_of[now_runs] == number && word_load(&cpu->claimed, 8, RELAXED) == from) {
		word_store(&cpu->claimed, 8, to, RELEASE);
		swapped = true;
	}
	in_sequence = false;
	return swapped;
}

static bool can_sequence(void)
{
	return true;
}

static long mc_system(long number, ...)
{
	if (number != SYS_membarrier)
		beyond("a system call that the model does not know");
	barrier_of_all(bound.writers + 1);
	return 0;
}

/* ---- memory ---- */

static bool is_shared_word(const void *word)
{
	return is_in(word, &memory, sizeof(memory));
}

static bool is_data(const void *place)
{
	return is_in(place, memory.data, sizeof(memory.data));
}

static size_t data_word(const void *place)
{
	size_t at = (uintptr_t)place - (uintptr_t)memory.data;

	return at / sizeof(memory.data[0]) * (MAX_RING / 8) + at % sizeof(memory.data[0]) % bound.ring / 8;
}

static void *folded(const void *place)
{
	size_t at = (uintptr_t)place - (uintptr_t)memory.data, cpu = at / sizeof(memory.data[0]);

	return memory.data[cpu] + at % sizeof(memory.data[0]) % bound.ring;
}

void perfring_wakeup_raise(struct perf_event_mmap_page *page, int wake_fd)
{
	(void)page;
	(void)wake_fd;
	total.wakeups++;
}

/* For the parts that no thread comes to here. */
int perfring_ring_create(struct perfring_ring *ring, const struct perfring_ring_options *options)
{
	(void)ring;
	(void)options;
	beyond("open is not modelled");
}

void perfring_ring_close(struct perfring_ring *ring)
{
	(void)ring;
	beyond("close is not modelled");
}

/* ---- the programs ---- */

static struct perfring_output event = {.id = 2, .wakeup_events = 1};

static void write_one(char how)
{
	struct perf_event_header header = {9, 0, 8 * WORDS};
	struct perfring_claim claim;
	unsigned id = attempts++;
	uint64_t word = id;
	unsigned char *space;
	int me = now_runs;

	if (attempts > MAX_RECORDS)
		beyond("too many records: MAX_RECORDS");
	for (uint32_t k = 0; k < CPUS; k++)
		lost_seen[me][k] = may_see(me, &state_of(cpu_at(k))->lost);
	space = perfring_cpus_reserve(cpus_of(), how == 'e' ? &event : NULL, 8 * WORDS, &claim);
	if (!space) {
		tell("refused", "", id);
		if (always_space[me] && !bound.pauses)
			wrong("record %u was refused though there was space all the time", id);
		refused++;
		return;
	}
	tell("space for", "record", id);
	mc_copy(space, &header, 8);
	for (unsigned i = 1; i < WORDS; i++)
		mc_copy(space + (size_t)8 * i, &word, 8);
	if (how == 'd') {
		perfring_cpus_discard(cpus_of(), &claim);
	} else {
		records[id].committed = true;
		perfring_cpus_commit(cpus_of(), &claim);
	}
}

static void drain(uint32_t number)
{
	struct perfring_reader *reader = &readers[number];
	const struct perf_event_header *record;
	uint64_t content[8];
	int got;

	if (perfring_reader_observe(reader) < 0)
		wrong("observe: %s", reader->fault.what);
	while ((got = perfring_reader_next(reader, &record)) == 1) {
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
		records[content[1]].read = true;
		read_records++;
	}
	if (got < 0)
		wrong("next: %s", reader->fault.what);
	perfring_reader_return(reader);
}

static void run(int thread)
{
	if (thread == (int)bound.writers) {
		for (unsigned round = 0; round < bound.rounds; round++)
			for (uint32_t i = 0; i < CPUS; i++)
				drain(i);
	} else {
		enter_cpu();
		for (const char *how = bound.programs[thread] + 1; *how; how++)
			if (*how == 'p' || *how == 'u')
				perfring_cpus_pause(cpus_of(), *how == 'p');
			else
				write_one(*how);
	}
	threads[thread].done = true;
}

static void begin(void)
{
	struct perfring_cpus *cpus = cpus_of();

	memset(&memory, 0, sizeof(memory));
	memset(memory.data, 0xa5, sizeof(memory.data));
	memset(records, 0, sizeof(records));
	memset(cpu_view, 0, sizeof(cpu_view));
	memset(readers, 0, sizeof(readers));
	begin_orders();
	preemptions = moves = attempts = refused = 0;
	told_lost = read_records = 0;
	in_sequence = false;
	cpus->count = CPUS;
	cpus->fast = bound.way == PERFRING_CPUS_RSEQ ? CPUS : 0;
	cpus->way = bound.way;
	cpus->wake_fd = -1;
	for (uint32_t i = 0; i < CPUS; i++) {
		struct perfring_cpu *cpu = cpu_at(i);

		on_cpu[i] = -1;
		cpu->page = (struct perf_event_mmap_page *)(void *)memory.page[i];
		cpu->data = memory.data[i];
		cpu->mask = bound.ring - 1;
		cpu->marks = memory.marks[i];
		cpu->watermark = cpu->wake_at = bound.ring / 2;
		cpu->limit = cpu->mask;
		readers[i].page = cpu->page;
		readers[i].data = cpu->data;
		readers[i].mask = bound.ring - 1;
		readers[i].span = 2 * bound.ring;
		readers[i].joint = joint;
	}
	for (unsigned i = 0; i < bound.writers; i++)
		cpu_of[i] = (uint32_t)(bound.programs[i][0] - '0');
}

/* All have ended, and the reader knows what they did. */
static void rest(void)
{
	uint64_t lost = 0, lost_total = 0;
	unsigned i;

	at_rest = true;
	now_runs = (int)bound.writers;
	know_all(now_runs);
	for (uint32_t k = 0; k < CPUS; k++) {
		const struct perfring_cpu *cpu = cpu_at(k);
		const struct perfring_ring_state *state = state_of(cpu);

		if (cpu->page->data_head != cpu->claimed)
			wrong("at rest data_head of %u is %llu, and %llu is claimed", k,
			      (unsigned long long)cpu->page->data_head, (unsigned long long)cpu->claimed);
		if (cpu->waiting)
			wrong("at rest %llu records of %u wait", (unsigned long long)cpu->waiting, k);
		if ((int64_t)(cpu->page->data_head - cpu->wake_at) > 0)
			wrong("at rest data_head of %u has crossed the watermark, and nobody was "
			      "woken",
			      k);
		if (bound.way == PERFRING_CPUS_RSEQ && (state->lost || state->paused) && cpu->limit)
			wrong("at rest the limit of %u is open over a %s", k, state->lost ? "loss" : "pause");
		drain(k);
		lost += state->lost;
		lost_total += state->lost_total;
	}
	for (i = 0; i < attempts; i++)
		if (records[i].committed && !records[i].read)
			wrong("record %u was committed and is not in the ring", i);
	if (lost_total != refused || told_lost + lost != refused)
		wrong("%u were refused, %llu are counted, LOST records hold %llu, %llu are "
		      "not in one yet",
		      refused, (unsigned long long)lost_total, (unsigned long long)told_lost, (unsigned long long)lost);
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
	if (argc < 7 || argc > 6 + MAX_THREADS - 1 || (strcmp(argv[1], "rseq") && strcmp(argv[1], "locked"))) {
		fprintf(stderr, "usage: mc_cpus [-r COUNT] rseq|locked RING PREEMPTIONS "
				"MOVES ROUNDS WRITER...\n");
		return 2;
	}
	bound.way = strcmp(argv[1], "rseq") ? PERFRING_CPUS_LOCKED : PERFRING_CPUS_RSEQ;
	bound.ring = strtoull(argv[2], NULL, 0);
	bound.preemptions = (unsigned)atoi(argv[3]);
	bound.moves = (unsigned)atoi(argv[4]);
	bound.rounds = (unsigned)atoi(argv[5]);
	bound.programs = argv + 6;
	bound.writers = (unsigned)argc - 6;
	if (bound.ring < 32 || bound.ring > MAX_RING || bound.ring & (bound.ring - 1)) {
		fprintf(stderr, "mc_cpus: RING is a power of two from 32 to %d\n", MAX_RING);
		return 2;
	}
	for (i = 0; i < bound.writers; i++)
		bound.pauses |= strchr(bound.programs[i], 'p') != NULL;
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
			chosen = choose(left);
			for (i = 0; threads[i].done || chosen; i++)
				chosen -= !threads[i].done;
			now_runs = (int)i;
			go_on(home, fibers[i]);
		}
		rest();
	} while (next_choices());
	print_total();
	return 0;
}
