/* cpus.c - a ring for each CPU, written by the threads that run there: restartable sequences, or locked instructions.
 *
 * docs/ring.md 7 has the words, who may store data_head, and why no record stays unpublished.  A is the writer of the
 * record at data_head, B one of a later record:
 *
 *     A                                           B
 *       data_head = my end                          waiting++, mark = my end, locked
 *       (1)                                         (2)
 *       waiting?  publish what is marked            data_head at a mark?  publish what is marked
 */
#include "cpus_private.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <perfring/cpus.h>
#include <perfring/wakeup.h>

#include "filler.h"
#include "output.h"
#include "os/small_file.h"
#include "os/membarrier.h"
#include "os/range.h"

enum {
	/* Restarts in a row after which a claim is refused: only stepping in a debugger causes more. */
	MAX_RESTARTS = 10000,
	MARK_WAKES = 1,
	MAX_CPUS = 8192, /* NR_CPUS is at most this */
};

static struct perfring_ring_state *state_of(const struct perfring_cpu *cpu)
{
	return perfring_ring_state_of(cpu->page);
}

/* ---- restartable sequences ---- */

#ifdef PERFRING_SEQUENCES
/* a model checker's (cpus.h) */
#elif defined(PERFRING_HAS_RSEQ)

/* Moves claimed from `from` to `to`. */
static bool sequence_swap(struct perfring_cpu *cpu, uint32_t number, uint64_t from, uint64_t to)
{
	uint64_t section = 0;

	/* As perfring_cpus_claim. */
	__asm__ volatile(".pushsection __rseq_cs, \"aw?\"\n\t"
			 ".balign 32\n"
			 "3:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 4f\n\t"
			 ".popsection\n\t"
			 "leaq 3b(%%rip), %[section]\n\t"
			 "movq %[section], %%fs:8(%[area])\n"
			 "1:\n\t"
			 "cmpl %[number], %%fs:4(%[area])\n\t"
			 "jne 5f\n\t"
			 "cmpq %[from], %[claimed]\n\t"
			 "jne 5f\n\t"
			 "movq %[to], %[claimed]\n"
			 "2:\n\t"
			 ".pushsection __rseq_failure, \"ax?\"\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long %c[signature]\n"
			 "4:\n"
			 "5:\n\t"
			 "xorl %k[section], %k[section]\n\t"
			 "jmp 6f\n\t"
			 ".popsection\n"
			 "6:\n\t"
			 "movq $0, %%fs:8(%[area])"
			 : [section] "=&r"(section), [claimed] "+m"(cpu->claimed)
			 : [number] "r"(number), [from] "r"(from), [to] "r"(to), [area] "r"(__rseq_offset),
			   [signature] "i"(RSEQ_SIG)
			 : "memory", "cc");
	return section != 0;
}

static bool can_sequence(void)
{
	return __rseq_size && perfring__os_membarrier_register();
}

#else

static uint32_t perfring_cpus_here(void)
{
	return UINT32_MAX;
}

static bool sequence_swap(struct perfring_cpu *cpu, uint32_t number, uint64_t from, uint64_t to)
{
	(void)cpu, (void)number, (void)from, (void)to;
	return false;
}

static bool can_sequence(void)
{
	return false;
}

#endif

static bool swap(const struct perfring_cpus *cpus, struct perfring_cpu *cpu, uint32_t number, uint64_t from,
		 uint64_t to)
{
	if (cpus->way == PERFRING_CPUS_RSEQ)
		return sequence_swap(cpu, number, from, to);
	return PERFRING_COMPARE_EXCHANGE(&cpu->claimed, &from, to);
}

bool perfring__cpus_is_valid(struct perfring_cpus *cpus)
{
	for (uint32_t i = 0; i < cpus->count; i++) {
		const struct perfring_cpu *cpu = perfring_cpus_of(cpus, i);
		/* Each word only grows, so what is loaded later may be larger. */
		uint64_t before = PERFRING_LOAD_ACQUIRE(&cpu->claimed), tail = perfring_page_reclaim(cpu->page);
		uint64_t head = perfring_page_observe(cpu->page), claimed = PERFRING_LOAD_ACQUIRE(&cpu->claimed);

		if ((int64_t)(head - tail) < 0 || (int64_t)(claimed - head) < 0 ||
		    (int64_t)(before - tail) > (int64_t)(cpu->mask + 1))
			return false;
	}
	return true;
}

/* ---- losses ---- */

static struct perfring_claim refuse(struct perfring_cpus *cpus, uint32_t number, struct perfring_output *output)
{
	struct perfring_cpu *cpu;

	if (!cpus->count) /* a child after fork */
		return (struct perfring_claim){0};
	/* A thread that the C library has not started has no number of a CPU. */
	cpu = perfring_cpus_of(cpus, number < cpus->count ? number : 0);
	PERFRING_ADD(&state_of(cpu)->lost_total, 1);
	PERFRING_ADD(&output->lost, 1);
	/* First the loss, then the limit, so that the next claim reports it: partner of raise_limit. */
	PERFRING_ADD(&state_of(cpu)->lost, 1);
	PERFRING_EXCHANGE(&cpu->limit, 0);
	return (struct perfring_claim){0};
}

/* Claims up to `limit` take the fast path.  Barrier: the loads see why it was set to 0, or that store is later. */
static void raise_limit(struct perfring_cpu *cpu, uint64_t limit)
{
	PERFRING_STORE(&cpu->limit, limit);
	PERFRING_FENCE();
	if (PERFRING_LOAD(&state_of(cpu)->lost) || PERFRING_LOAD(&state_of(cpu)->paused))
		PERFRING_STORE(&cpu->limit, 0);
}

/* ---- reserve ---- */

/* When the fast path cannot claim: the ring is full as last seen, a loss is to be reported, output is paused, samples
 * are counted, the claim was restarted, or the size is invalid.  LOCKED: always. */
struct perfring_claim perfring_cpus_reserve_slow(struct perfring_cpus *cpus, struct perfring_output *output,
						 uint64_t size)
{
	uint32_t number = 0;

	if (!output)
		output = &cpus->output;
	for (uint32_t tries = 0; tries < MAX_RESTARTS; tries++) {
		struct perfring_claim claim = {.output = output, .taken = size};
		struct perfring_cpu *cpu;
		uint64_t from, space, extra;

		number = cpus->way == PERFRING_CPUS_RSEQ ? perfring_cpus_here() : (uint32_t)sched_getcpu();
		if (number >= cpus->count || size < 8 || size & 7 || size > PERFRING_RECORD_MAX)
			break;
		cpu = perfring_cpus_of(cpus, number);
		if (PERFRING_LOAD(&state_of(cpu)->paused))
			break;
		extra = PERFRING_LOAD(&state_of(cpu)->lost) ? lost_size(output) : 0;
		/* Acquire: pairs with the store of the last claim, and comes with the data_tail that this claim was
		 * checked against.  With a data_tail of a lap before, a full ring would look empty. */
		from = PERFRING_LOAD_ACQUIRE(&cpu->claimed);
		PERFRING_POINT(cpus_looked);
		space = (perfring_page_reclaim(cpu->page) - (from + 1)) & cpu->mask; /* docs/abi.md 7.2 */
		claim.size = size + extra;
		if (claim.size > space) {
			/* else the two loads do not belong together */
			if (PERFRING_LOAD(&cpu->claimed) == from)
				break;
			continue;
		}
		claim.end = from + claim.size;
		if (!swap(cpus, cpu, number, from, claim.end))
			continue;
		PERFRING_POINT(cpus_claimed);
		claim.space = cpu->data + (from & cpu->mask);
		if (extra) {
			/* what is lost now: it may be 0 (docs/abi.md 7.3, step 8) */
			lost_put(output, PERFRING_EXCHANGE(&state_of(cpu)->lost, 0), claim.space);
			claim.space += extra; /* in one piece: the data are mapped twice */
		}
		claim.state = (uint64_t)number << PERFRING_CPUS_SHIFT;
		if (cpus->way == PERFRING_CPUS_RSEQ)
			raise_limit(cpu, from + space);
		if (cpus->way == PERFRING_CPUS_LOCKED || output->wakeup_events)
			claim.state |= PERFRING_CPUS_RARE;
		return claim;
	}
	return refuse(cpus, number, output);
}

/* ---- commit ---- */

/* data_head has reached `head`: wakes the reader if that is a crossing, or `wake`. */
static void crossed(const struct perfring_cpus *cpus, struct perfring_cpu *cpu, uint64_t head, bool wake)
{
	uint64_t at = PERFRING_LOAD(&cpu->wake_at);

	while ((int64_t)(head - at) > 0) {
		uint64_t steps = (head - at - 1) / cpu->watermark + 1;

		if (PERFRING_COMPARE_EXCHANGE(&cpu->wake_at, &at, at + steps * cpu->watermark)) {
			wake = true;
			break;
		}
	}
	if (wake)
		perfring_wakeup_raise(cpu->page, cpus->wake_fd);
}

/* Moves data_head over marked records.  Ordered: the load of data_head after this thread's mark, and of marks after its
 * data_head: it is A, above, for each record. */
static void publish_marked(const struct perfring_cpus *cpus, struct perfring_cpu *cpu)
{
	__u64 from = PERFRING_LOAD_ORDERED(&cpu->page->data_head);
	uint64_t mark, to;

	for (;;) {
		/* Acquire, too: that record is complete, and this publishes it for its writer. */
		mark = PERFRING_LOAD_ORDERED(&cpu->marks[(from & cpu->mask) >> 3]);
		to = mark & ~UINT64_C(7);
		if (to - from - 1 >= cpu->mask) /* not above its place: of an earlier lap */
			return;
		PERFRING_POINT(cpus_publishing);
		/* If data_head has moved meanwhile, the mark may be of a later lap: then this fails. */
		if (!PERFRING_COMPARE_EXCHANGE(&cpu->page->data_head, &from, to))
			continue;
		PERFRING_ADD(&cpu->waiting, -UINT64_C(1));
		crossed(cpus, cpu, to, mark & MARK_WAKES);
		from = to;
	}
}

static void leave_mark(const struct perfring_cpus *cpus, struct perfring_cpu *cpu, uint32_t number,
		       const struct perfring_claim *claim, bool wake)
{
	/* First, so that the thread that publishes the mark can subtract it. */
	PERFRING_ADD(&cpu->waiting, 1);
	PERFRING_POINT(cpus_waiting);
	PERFRING_EXCHANGE(&cpu->marks[((claim->end - claim->size) & cpu->mask) >> 3],
			  claim->end | (wake ? MARK_WAKES : 0));
	PERFRING_POINT(cpus_marked);
	if (cpus->way == PERFRING_CPUS_RSEQ && perfring_cpus_here() != number)
		perfring__os_membarrier_process();
	publish_marked(cpus, cpu);
}

/* When the output counts samples, in LOCKED, or when the record is not the oldest. */
void perfring_cpus_commit_slow(struct perfring_cpus *cpus, struct perfring_claim claim)
{
	uint32_t number = (uint32_t)(claim.state >> PERFRING_CPUS_SHIFT);
	struct perfring_cpu *cpu = perfring_cpus_of(cpus, number);
	bool wake;

	if (!cpu->page) /* a child after fork */
		return;
	PERFRING_POINT(cpus_encoded);
	wake = sample_is_due(claim.output ? claim.output->wakeup_events : 0, claim.space, &state_of(cpu)->events);
	if (perfring_page_observe(cpu->page) != claim.end - claim.size) {
		leave_mark(cpus, cpu, number, &claim, wake);
		return;
	}
	PERFRING_EXCHANGE(&cpu->page->data_head, claim.end);
	PERFRING_POINT(cpus_published);
	if (wake || claim.end > PERFRING_LOAD(&cpu->wake_at))
		crossed(cpus, cpu, claim.end, wake);
	if (PERFRING_LOAD_ORDERED(&cpu->waiting)) /* (1) */
		publish_marked(cpus, cpu);
}

/* After a plain publication: wakes, and publishes what waited for it. */
void perfring_cpus_settle(struct perfring_cpus *cpus, struct perfring_claim claim)
{
	struct perfring_cpu *cpu = perfring_cpus_of(cpus, (uint32_t)(claim.state >> PERFRING_CPUS_SHIFT));

	crossed(cpus, cpu, claim.end, false);
	publish_marked(cpus, cpu);
}

void perfring_cpus_discard(struct perfring_cpus *cpus, const struct perfring_claim *claim)
{
	if (cpus->count)
		filler_put(claim->space, claim->taken);
	perfring_cpus_commit(cpus, claim);
}

/* ---- open ---- */

/* One more than the highest CPU that the system can have, or that this thread may run on.  (get_nprocs_conf counts
 * CPUs, and their numbers have gaps.) */
static uint32_t count_cpus(void)
{
	unsigned long allowed[MAX_CPUS / (8 * sizeof(long))] = {0};
	uint32_t count = 1, first, last;
	char text[1024];
	const char *at = text;

	if (perfring__os_file_read("/sys/devices/system/cpu/possible", text, sizeof(text)) < 0)
		*text = 0;
	while (perfring__os_range_next(&at, &first, &last) == 1)
		if (last >= count && last < MAX_CPUS)
			count = last + 1;
	if (syscall(SYS_sched_getaffinity, 0, sizeof(allowed), allowed) > 0)
		for (uint32_t i = count; i < MAX_CPUS; i++)
			if (allowed[i / (8 * sizeof(long))] >> i % (8 * sizeof(long)) & 1)
				count = i + 1;
	return count;
}

static int open_cpu(struct perfring_cpus *cpus, uint32_t number, const struct perfring_ring_options *options)
{
	struct perfring_cpu *cpu = perfring_cpus_of(cpus, number);
	struct perfring_ring *ring;
	void *marks;
	int ret;

	cpu->member = calloc(1, sizeof(*cpu->member));
	if (!cpu->member)
		return -ENOMEM;
	ring = &cpu->member->ring;
	ret = perfring_ring_create(ring, options);
	if (!ret)
		ret = perfring_reader_open(&cpu->member->reader, ring, 0);
	if (ret)
		return ret;
	/* Written only where records are committed out of order. */
	marks = mmap(NULL, (size_t)ring->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (marks == MAP_FAILED)
		return -errno;
	cpu->marks = marks;
	madvise(ring->mapping, (size_t)ring->mapping_size, MADV_DONTFORK);
	cpu->member->number = number;
	cpu->member->cpu = (int32_t)number;
	cpu->data = ring->data;
	cpu->mask = ring->size - 1;
	cpu->page = ring->page;
	cpu->watermark = PERFRING_LOAD(&state_of(cpu)->watermark);
	cpu->wake_at = cpu->watermark;
	cpu->limit = cpu->mask;
	return 0;
}

int perfring__cpus_open_way(struct perfring_cpus **result, const struct perfring_ring_options *ring,
			    const struct perfring_writer_options *writer, int way)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped;
	struct perfring_cpus *cpus;
	uint32_t count;
	int ret = 0;

	*result = NULL;
	if (ring->file || ring->aux_pages ||
	    ring->flags &
		    (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD | PERFRING_RING_STRICT | PERFRING_RING_LEASED))
		return -EINVAL;
	if (writer && (writer->policy != PERFRING_WRITER_DROP || !is_output(&writer->output)))
		return -EINVAL;
	if (way == PERFRING_CPUS_RSEQ && !can_sequence())
		return -EOPNOTSUPP;
	count = count_cpus();
	mapped = (sizeof(*cpus) + count * sizeof(struct perfring_cpu) + page - 1) & ~(page - 1);
	cpus = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cpus == MAP_FAILED)
		return -ENOMEM;
	madvise(cpus, mapped, MADV_WIPEONFORK);
	cpus->mapped = mapped;
	cpus->way = way;
	cpus->wake_fd = -1;
	if (writer) {
		cpus->wake_fd = writer->wake_fd;
		cpus->output = writer->output;
		cpus->output.lost = 0;
	}
	for (uint32_t i = 0; !ret && i < count; i++) {
		cpus->count = i + 1;
		ret = open_cpu(cpus, i, ring);
	}
	if (ret) {
		perfring_cpus_close(cpus);
		return ret;
	}
	cpus->fast = way == PERFRING_CPUS_RSEQ && !cpus->output.wakeup_events ? cpus->count : 0;
	*result = cpus;
	return 0;
}

int perfring_cpus_open(struct perfring_cpus **cpus, const struct perfring_ring_options *ring,
		       const struct perfring_writer_options *writer)
{
	int ret = perfring__cpus_open_way(cpus, ring, writer, PERFRING_CPUS_RSEQ);

	return ret == -EOPNOTSUPP ? perfring__cpus_open_way(cpus, ring, writer, PERFRING_CPUS_LOCKED) : ret;
}

void perfring_cpus_close(struct perfring_cpus *cpus)
{
	if (!cpus)
		return;
	for (uint32_t i = 0; i < cpus->count; i++) {
		struct perfring_cpu *cpu = perfring_cpus_of(cpus, i);

		if (!cpu->member)
			continue;
		if (cpu->marks)
			munmap(cpu->marks, (size_t)cpu->member->ring.size);
		perfring_reader_close(&cpu->member->reader);
		perfring_ring_close(&cpu->member->ring);
		free(cpu->member);
	}
	if (cpus->mapped) /* not in a child after fork */
		munmap(cpus, (size_t)cpus->mapped);
}

int perfring_cpus_way(const struct perfring_cpus *cpus)
{
	return cpus->way;
}

/* ---- any thread's, and the reader's ---- */

uint64_t perfring_cpus_lost(struct perfring_cpus *cpus)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < cpus->count; i++)
		lost += PERFRING_LOAD(&state_of(perfring_cpus_of(cpus, i))->lost_total);
	return lost;
}

void perfring_cpus_pause(struct perfring_cpus *cpus, bool paused)
{
	for (uint32_t i = 0; i < cpus->count; i++) {
		PERFRING_EXCHANGE(&state_of(perfring_cpus_of(cpus, i))->paused, paused);
		if (paused) /* after the word: partner of raise_limit */
			PERFRING_EXCHANGE(&perfring_cpus_of(cpus, i)->limit, 0);
	}
}

struct perfring_set_ring *perfring_cpus_at(struct perfring_cpus *cpus, uint32_t i)
{
	return i < cpus->count ? perfring_cpus_of(cpus, i)->member : NULL;
}
