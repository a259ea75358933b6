/* cpus.h - one ring for each CPU.
 *
 * A thread writes into the ring of the CPU that it runs on.  With restartable sequences, which the C library must have
 * registered (x86-64, __rseq_size > 0), space is claimed by such a sequence and published by a plain store; otherwise both
 * take locked instructions.  perfring_cpus_way says which.  A thread that is moved to another CPU between reserve and commit
 * commits on the first CPU; if an older record there is uncommitted, that costs a membarrier (about 10 us).
 *
 * Records are published in the order of their claims, each as soon as it and all before it are committed.  A thread that is
 * stopped between reserve and commit holds back later records of its CPU until it continues.  Other threads write until that
 * ring is full; then their records are refused and counted.  No writer waits for another.
 *
 *              reserve commit discard write | pause lost | at | close
 *   threads               yes               |    yes     | no |  no
 *   handlers              yes               |    yes     | no |  no
 *   the reader            yes               |    yes     | yes|  no     one at a time
 *
 * Fillers.  The rings may hold filler records of type 0 (ring.h).  libbpf's perf_buffer fails at them: for such a consumer use a
 * shared ring, STRICT with PERFRING_RING_LOST_FILLERS.
 *
 * fork: in a child, reserve returns NULL.  The child opens its own; closing the inherited one is optional and only unmaps it.
 *
 * vfork, and clone with CLONE_VM and without CLONE_SETTLS: the child and its handlers must not write.  They run in the parent's
 * memory with the parent's restartable sequence area, which the kernel does not update for them: a claim is not restarted, and
 * cpu_id may be wrong.  No instruction in user space shows this.  (A perfring_set may be written there: its ring is the parent
 * thread's, which is suspended.)
 *
 * open, way and close: threads, not handlers.  The protocol: docs/ring.md 7.  Readers: as set.h.
 */
#ifndef PERFRING_CPUS_H
#define PERFRING_CPUS_H

#include <perfring/set.h>

/* A model checker (PERFRING_SEQUENCES) defines perfring_cpus_here and perfring_cpus_claim itself. */
#if defined(__x86_64__) && defined(__LP64__) && defined(__GLIBC_PREREQ) && !defined(PERFRING_PORTABLE) && \
	!defined(PERFRING_SEQUENCES)
#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#define PERFRING_HAS_RSEQ 1
#endif
#endif

PERFRING_BEGIN

enum perfring_cpus_way {
	PERFRING_CPUS_LOCKED, /* the CPU by sched_getcpu, its ring by locked instructions */
	PERFRING_CPUS_RSEQ,
};

/* The state of one CPU's ring, for the inlines and rb/cpus.c. */
struct perfring_cpu {
	/* the cache line of the fast path */
	perfring_u64 claimed; /* end of the claimed space.  RSEQ: stored only by sequences on this CPU */
	perfring_u64 limit;   /* RSEQ: a claim that ends above it takes the slow path.  May be too low; 0: losses, pause */
	unsigned char *data;
	uint64_t mask;
	struct perf_event_mmap_page *page;
	perfring_u64 waiting; /* committed records that wait for an older one */
	perfring_u64 wake_at; /* data_head above it is a crossing */
	uint64_t *marks;

	uint64_t watermark;
	struct perfring_set_ring *member;
	uint64_t reserved[6];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_cpu) == 128, "two cache lines");

/* In pages that are zero in a child after fork (MADV_WIPEONFORK): count is 0 there, and reserve refuses. */
struct perfring_cpus {
	uint32_t count;
	uint32_t fast; /* CPUs on which the inlines claim: count or 0 */
	int32_t way;
	int32_t wake_fd;
	struct perfring_output output;
	uint64_t mapped; /* bytes of this table */
	uint64_t reserved[6];
	struct perfring_cpu cpu[1]; /* count of them */
};

static_assert(sizeof(void *) != 8 || offsetof(struct perfring_cpus, cpu) == 128, "no cache line is shared by two CPUs");

enum perfring_cpus_claim {
	PERFRING_CPUS_RARE = 1,  /* in perfring_claim.state: commit takes the slow path */
	PERFRING_CPUS_SHIFT = 1, /* the CPU's number is in the bits from here */
};

/* Creates a ring for each CPU up to the highest possible one (/sys/devices/system/cpu/possible, this thread's affinity).  On a
 * CPU with a higher number records are refused, and counted with CPU 0's.  ring: pages, HUGE, wakeup.  writer: output,
 * wake_fd, policy DROP; NULL for the defaults.  Returns 0; -EINVAL (other options), -ENOMEM, errors of
 * perfring_ring_create. */
PERFRING_API int perfring_cpus_open(struct perfring_cpus **cpus, const struct perfring_ring_options *ring,
				    const struct perfring_writer_options *writer);

/* Frees the rings and unread records.  No thread may use them any more. */
PERFRING_API void perfring_cpus_close(struct perfring_cpus *cpus);

/* enum perfring_cpus_way. */
PERFRING_API int perfring_cpus_way(const struct perfring_cpus *cpus);

/* The slow paths of the inlines.  Claims are passed by value, so that the compiler can keep them in registers. */
PERFRING_API struct perfring_claim perfring_cpus_reserve_slow(struct perfring_cpus *cpus,
							      struct perfring_output *output, uint64_t size);
PERFRING_API void perfring_cpus_commit_slow(struct perfring_cpus *cpus, struct perfring_claim claim);
PERFRING_API void perfring_cpus_settle(struct perfring_cpus *cpus, struct perfring_claim claim);

/* The state of CPU `number`, below count. */
PERFRING_INLINE struct perfring_cpu *perfring_cpus_of(struct perfring_cpus *cpus, uint32_t number)
{
	return &cpus->cpu[0] + number;
}

#if defined(PERFRING_HAS_RSEQ) && !defined(PERFRING_SEQUENCES)

/* The CPU that this thread runs on; a number above all CPUs if the C library has not registered the thread. */
PERFRING_INLINE uint32_t perfring_cpus_here(void)
{
	uint32_t number;

	__asm__ volatile("movl %%fs:4(%1), %0" : "=r"(number) : "r"(__rseq_offset) : "memory");
	return number;
}

/* Claims size bytes below the limit if the thread is on that CPU.  Returns the end of the claimed space, or 1.
 *
 * The sequence is from label 1 to 2; its last instruction is the store that commits.  When the kernel interrupts it (a signal,
 * another thread, another CPU), it continues at 4, after the signature that the C library has registered.  No
 * interrupt comes between the store of the descriptor and 1, which is the next instruction.  The descriptor is removed at the
 * end, because this code may be unloaded.  "?": both sections belong to the function that this is inlined into, of which a C++
 * linker keeps one. */
PERFRING_INLINE uint64_t perfring_cpus_claim(struct perfring_cpu *cpu, uint32_t number, uint64_t size)
{
	uint64_t end;

	__asm__ volatile(".pushsection __rseq_cs, \"aw?\"\n\t"
			 ".balign 32\n"
			 "3:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 4f\n\t"
			 ".popsection\n\t"
			 "leaq 3b(%%rip), %[end]\n\t"
			 "movq %[end], %%fs:8(%[area])\n"
			 "1:\n\t"
			 "cmpl %[number], %%fs:4(%[area])\n\t"
			 "jne 5f\n\t"
			 "movq %[claimed], %[end]\n\t"
			 "addq %[size], %[end]\n\t"
			 "cmpq %[limit], %[end]\n\t"
			 "ja 5f\n\t"
			 "movq %[end], %[claimed]\n"
			 "2:\n\t"
			 ".pushsection __rseq_failure, \"ax?\"\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long %c[signature]\n"
			 "4:\n"
			 "5:\n\t"
			 "movl $1, %k[end]\n\t"
			 "jmp 6f\n\t"
			 ".popsection\n"
			 "6:\n\t"
			 "movq $0, %%fs:8(%[area])"
			 : [end] "=&r"(end), [claimed] "+m"(cpu->claimed)
			 : [limit] "m"(cpu->limit), [number] "r"(number), [size] "er"(size), [area] "r"(__rseq_offset),
			   [signature] "i"(RSEQ_SIG)
			 : "memory", "cc");
	return end;
}

#endif

/* As perfring_writer_reserve: returns `size` bytes in the ring of the CPU that the thread runs on, or NULL: refused and counted.  The
 * thread that reserved commits or discards.  output: NULL: that of open.  Threads may share an output; its id, trailer and
 * wakeup_events must not change.  With PERFRING_CPUS_RSEQ a thread that the C library has not registered is refused. */
PERFRING_INLINE void *perfring_cpus_reserve(struct perfring_cpus *cpus, struct perfring_output *output, uint64_t size,
					    struct perfring_claim *claim)
{
#ifdef PERFRING_HAS_RSEQ
	uint32_t number = perfring_cpus_here();
	struct perfring_cpu *cpu;
	uint64_t end;

	/* The size in one compare, as in writer.h. */
	if (PERFRING_LIKELY(number < cpus->fast && ((size - 8) >> 3 | (size - 8) << 61) <= (PERFRING_RECORD_MAX - 8) / 8 &&
			    !(output && output->wakeup_events))) {
		PERFRING_POINT(cpus_chosen);
		cpu = perfring_cpus_of(cpus, number);
		end = perfring_cpus_claim(cpu, number, size);
		if (PERFRING_LIKELY(!(end & 1))) {
			PERFRING_POINT(cpus_claimed);
			claim->end = end;
			claim->size = size;
			claim->taken = size;
			claim->output = output;
			claim->state = (uint64_t)number << PERFRING_CPUS_SHIFT;
			claim->space = cpu->data + ((end - size) & cpu->mask);
			return claim->space;
		}
	}
#endif
	*claim = perfring_cpus_reserve_slow(cpus, output, size);
	return claim->space;
}

/* Commits the record: visible at once, or when the older ones of its ring are committed. */
PERFRING_INLINE void perfring_cpus_commit(struct perfring_cpus *cpus, const struct perfring_claim *claim)
{
#ifdef PERFRING_HAS_RSEQ
	uint32_t number = (uint32_t)(claim->state >> PERFRING_CPUS_SHIFT);
	struct perfring_cpu *cpu = perfring_cpus_of(cpus, number);
	struct perf_event_mmap_page *page = cpu->page;

	PERFRING_POINT(cpus_encoded);
	/* The acquire inside: what earlier writers published, our store publishes as well.  No page: a fork's child. */
	if (PERFRING_LIKELY(page && !(claim->state & PERFRING_CPUS_RARE) &&
			    perfring_page_observe(page) == claim->end - claim->size)) {
		perfring_page_publish(page, claim->end); /* pairs with the reader's observe */
		PERFRING_FENCE_LOCAL(); /* publish, then look where we are, then who waits: rb/cpus.c */
		PERFRING_POINT(cpus_published);
		if (PERFRING_UNLIKELY(perfring_cpus_here() != number))
			PERFRING_FENCE();
		PERFRING_FENCE_LOCAL();
		if (PERFRING_UNLIKELY(PERFRING_LOAD(&cpu->waiting) || claim->end > PERFRING_LOAD(&cpu->wake_at)))
			perfring_cpus_settle(cpus, *claim);
		return;
	}
#endif
	perfring_cpus_commit_slow(cpus, *claim);
}

/* Drops the record: its space becomes a filler. */
PERFRING_API void perfring_cpus_discard(struct perfring_cpus *cpus, const struct perfring_claim *claim);

/* Copies a whole record into the ring.  Returns whether it was accepted; refused ones are counted. */
PERFRING_INLINE bool perfring_cpus_write(struct perfring_cpus *cpus, struct perfring_output *output, const void *record,
					 uint64_t size)
{
	struct perfring_claim claim;
	void *space = perfring_cpus_reserve(cpus, output, size, &claim);

	if (PERFRING_UNLIKELY(!space))
		return false;
	memcpy(space, record, (size_t)size);
	perfring_cpus_commit(cpus, &claim);
	return true;
}

/* While paused, claims are refused and counted; one that is being made during the call may still succeed. */
PERFRING_EXPERIMENTAL void perfring_cpus_pause(struct perfring_cpus *cpus, bool paused);

/* The number of records refused since open, on all CPUs; 0 in a child after fork. */
PERFRING_EXPERIMENTAL uint64_t perfring_cpus_lost(struct perfring_cpus *cpus);

/* The ring of the i-th CPU, from 0; NULL after the last.  Read it by member->reader (reader.h), one reader at a time.  Valid until
 * close. */
PERFRING_API struct perfring_set_ring *perfring_cpus_at(struct perfring_cpus *cpus, uint32_t i);

PERFRING_END

#endif
