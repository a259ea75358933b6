/* cpus.h - one ring for each CPU, written by whatever thread runs there.
 *
 * Any thread writes into the ring of the CPU that it runs on.  Where the C library has registered restartable sequences
 * (x86-64, __rseq_size > 0; perfring registers none of its own) room is claimed by such a sequence and published by a
 * plain store; elsewhere both by locked instructions: perfring_cpus_way says which.  A writer may be moved to another CPU
 * in mid record: it finishes where it began, for a membarrier (about 10 us) if it is not the oldest there.
 *
 * Records are published in the order of their claims, each as soon as it and all before it are committed.  A thread that
 * is stopped in mid record holds back what follows on its CPU until it goes on; the others write until that ring is full,
 * and are then refused and counted.  Nobody waits, and no record stays behind once the one before it is finished.
 *
 *              reserve commit discard write | pause lost | at | close
 *   threads               yes               |    yes     | no |  no
 *   handlers              yes               |    yes     | no |  no
 *   the reader            yes               |    yes     | yes|  no     one at a time
 *
 * fork: a child finds no CPUs: its reserves give NULL.  It closes what it inherited, which gives nothing back, or not, and
 * opens its own.
 *
 * vfork, and clone with CLONE_VM without CLONE_SETTLS: the child, and handlers in it, must not write here.  It runs in its
 * parent's memory with its parent's restartable sequence area, which the kernel no longer updates: its claims are not
 * restarted, and cpu_id may be another CPU's.  No user-space instruction shows this.  (A perfring_set may be written there:
 * the ring is the parent thread's, which is suspended.)
 */
#ifndef PERFRING_CPUS_H
#define PERFRING_CPUS_H

#include <perfring/set.h>

/* A checker that has sequences of its own (PERFRING_SEQUENCES) declares perfring_cpus_here and perfring_cpus_claim. */
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

/* One CPU's, for the inlines and rb/cpus.c. */
struct perfring_cpu {
	/* all that a record touches */
	perfring_u64 claimed; /* how far room was given out.  RSEQ: stored by sequences on this CPU alone */
	perfring_u64 limit;   /* RSEQ: a claim that ends above is slow.  Stale only downwards; 0: a loss, a pause */
	unsigned char *data;
	uint64_t mask;
	struct perf_event_mmap_page *page;
	perfring_u64 waiting; /* records finished before one that was claimed earlier */
	perfring_u64 wake_at; /* data_head above this is a crossing */
	uint64_t *marks;

	uint64_t watermark;
	struct perfring_set_ring *member;
	uint64_t reserved[6];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_cpu) == 128, "two lines");

/* In pages of its own that a fork's child finds zeroed: it has no CPUs there, and refuses. */
struct perfring_cpus {
	uint32_t count;
	uint32_t fast; /* CPUs that the inlines may claim on: all, or none */
	int32_t way;
	int32_t wake_fd;
	struct perfring_output output;
	uint64_t mapped; /* bytes of this table */
	uint64_t reserved[6];
	struct perfring_cpu cpu[1]; /* count of them */
};

static_assert(sizeof(void *) != 8 || offsetof(struct perfring_cpus, cpu) == 128, "no line is two CPUs'");

enum perfring_cpus_claim {
	PERFRING_CPUS_RARE = 1,  /* in perfring_claim.state: commit has more to do */
	PERFRING_CPUS_SHIFT = 1, /* above it the CPU's number */
};

/* A ring for each CPU up to the highest that the system can have (/sys/devices/system/cpu/possible) or that this thread
 * may run on.  On one above, of which neither told, records are refused, and counted with CPU 0's.  ring: pages; HUGE,
 * wakeup.  writer (NULL: the defaults): output, wake_fd; policy DROP.  Else -EINVAL.  -ENOMEM; what perfring_ring_create
 * said. */
PERFRING_API int perfring_cpus_open(struct perfring_cpus **cpus, const struct perfring_ring_options *ring,
				    const struct perfring_writer_options *writer);
PERFRING_API void perfring_cpus_close(struct perfring_cpus *cpus);
PERFRING_API int perfring_cpus_way(const struct perfring_cpus *cpus);

/* The slow paths, for the inlines alone: claims go by value, so that a compiler can keep them in registers. */
PERFRING_API struct perfring_claim perfring_cpus_reserve_slow(struct perfring_cpus *cpus,
							      struct perfring_output *output, uint64_t size);
PERFRING_API void perfring_cpus_commit_slow(struct perfring_cpus *cpus, struct perfring_claim claim);
PERFRING_API void perfring_cpus_settle(struct perfring_cpus *cpus, struct perfring_claim claim);

PERFRING_INLINE struct perfring_cpu *perfring_cpus_of(struct perfring_cpus *cpus, uint32_t number)
{
	return &cpus->cpu[0] + number;
}

#if defined(PERFRING_HAS_RSEQ) && !defined(PERFRING_SEQUENCES)

/* The CPU that this thread runs on; above all numbers when the C library has not registered it. */
PERFRING_INLINE uint32_t perfring_cpus_here(void)
{
	uint32_t number;

	__asm__ volatile("movl %%fs:4(%1), %0" : "=r"(number) : "r"(__rseq_offset) : "memory");
	return number;
}

/* Claims size bytes up to the limit, if we are on that CPU: gives where they end, or 1.
 *
 * The sequence runs from 1 to 2, and its last instruction is the store that counts.  What the kernel lets come between
 * (a signal, another thread, another CPU) ends it at 4, behind the signature that the C library has registered.  No
 * interrupt falls between its announcement and 1.  It is withdrawn in the end, because this code may be unloaded.
 * "?": both sections go with the function that this is inlined into, of which a linker keeps one (C++). */
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

/* As in writer.h: a claim is closed by the thread that made it.  An output may be shared by threads; its id, trailer and
 * wakeup_events do not change.  A thread that the C library has not registered is refused where others use sequences. */
PERFRING_INLINE void *perfring_cpus_reserve(struct perfring_cpus *cpus, struct perfring_output *output, uint64_t size,
					    struct perfring_claim *claim)
{
#ifdef PERFRING_HAS_RSEQ
	uint32_t number = perfring_cpus_here();
	struct perfring_cpu *cpu;
	uint64_t end;

	/* The size in one compare, as in writer.h. */
	if (PERFRING_LIKELY(number < cpus->fast && ((size - 8) >> 3 | (size - 8) << 61) <= (65528 - 8) / 8 &&
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
			claim->room = cpu->data + ((end - size) & cpu->mask);
			return claim->room;
		}
	}
#endif
	*claim = perfring_cpus_reserve_slow(cpus, output, size);
	return claim->room;
}

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

/* The record is not wanted: a filler. */
PERFRING_API void perfring_cpus_discard(struct perfring_cpus *cpus, const struct perfring_claim *claim);

PERFRING_INLINE bool perfring_cpus_write(struct perfring_cpus *cpus, struct perfring_output *output, const void *record,
					 uint64_t size)
{
	struct perfring_claim claim;
	void *room = perfring_cpus_reserve(cpus, output, size, &claim);

	if (PERFRING_UNLIKELY(!room))
		return false;
	memcpy(room, record, (size_t)size);
	perfring_cpus_commit(cpus, &claim);
	return true;
}

/* Claims are refused and counted; one that is being made at this moment may still succeed. */
PERFRING_API void perfring_cpus_pause(struct perfring_cpus *cpus, bool paused);

PERFRING_API uint64_t perfring_cpus_lost(struct perfring_cpus *cpus);

/* The ring of the i-th CPU, from 0; NULL behind the last.  One reader at a time. */
PERFRING_API struct perfring_set_ring *perfring_cpus_at(struct perfring_cpus *cpus, uint32_t i);

PERFRING_END

#endif
