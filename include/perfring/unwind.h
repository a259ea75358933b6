/* unwind.h - the callers of a thread, from its registers, a copy of its stack, and the unwind tables of its objects
 * (docs/unwind.md).
 *
 *     object's bytes --open--> functions --make--> rows: offset -> rule --step--> the caller's registers
 *
 *     perfring_unwind_open(&unwind, bytes, size);                     an ELF image; the bytes must stay
 *     maps[0] = (struct perfring_unwind_map){start, end, bias, unwind};
 *     stack = perfring_unwind_stack_init(sample.stack..., sp, size);
 *     nr = perfring_unwind_walk(&space, cache, &registers, &stack, ips, 128, &end);
 *
 * stacks.h does this for samples, soft.h for the process itself.  x86-64 and aarch64, little endian.  Three registers are
 * followed: ip, sp and fp.  Another one is known of the innermost frame; in a caller whose CFA depends on one, it is searched for
 * where it was saved.  The bytes of objects and stacks are foreign: each loop has a bound (docs/limits.md), and nothing outside
 * is read.
 *
 * Context: open, close, make and make_all allocate: not in signal handlers.  All others allocate nothing, take no lock, and may
 * run in signal handlers.  One thread at a time opens, makes in or closes an object; rules of it may be looked up meanwhile by
 * any thread and handler, except during close. */
#ifndef PERFRING_UNWIND_H
#define PERFRING_UNWIND_H

#include <perfring/base.h>

PERFRING_BEGIN

/* The machine of an object, as ELF numbers it. */
enum {
	PERFRING_UNWIND_X86_64 = 62,
	PERFRING_UNWIND_AARCH64 = 183
};

enum {
	PERFRING_UNWIND_RULES_MAX = 65535, /* different rules of one object */
	PERFRING_UNWIND_STEPS_MAX = 65536, /* instructions that describe one function */
	PERFRING_UNWIND_MEMORY_MAX = 16 /* bytes of memory for each byte of an object's unwind sections, plus 64 KiB */
};

/* How the canonical frame address (CFA: the sp of the caller) is computed, with the rule's cfa_offset. */
enum perfring_unwind_cfa {
	PERFRING_UNWIND_CFA_NONE,     /* there is no rule */
	PERFRING_UNWIND_CFA_SP,       /* sp + offset */
	PERFRING_UNWIND_CFA_FP,       /* fp + offset */
	PERFRING_UNWIND_CFA_DEREF_SP, /* the word at sp + offset, plus 8 * number: signal return on x86-64 */
	PERFRING_UNWIND_CFA_DEREF_FP, /* the word at fp + offset, plus 8 * number: functions that realign their stack */
	PERFRING_UNWIND_CFA_PLT,      /* sp + offset, and 8 more from byte `number` of each 16 bytes of code on */
	PERFRING_UNWIND_CFA_OTHER /* register `number`, by DWARF's numbers, + offset: a walk finds it where it was saved */
};

/* Where the caller's ip or fp is. */
enum perfring_unwind_at {
	PERFRING_UNWIND_AT_SAME,     /* not saved: fp is unchanged; the return address is in lr (aarch64) */
	PERFRING_UNWIND_AT_CFA,      /* in memory, at CFA + offset */
	PERFRING_UNWIND_AT_SP,       /* in memory, at sp + offset */
	PERFRING_UNWIND_AT_FP,       /* in memory, at fp + offset */
	PERFRING_UNWIND_AT_UNDEFINED /* nowhere: of ip: there is no caller; of fp: it is lost */
};

enum {
	/* The frame of a signal's return: its caller was interrupted at ip, which is not a return address. */
	PERFRING_UNWIND_SIGNAL = 1,
	/* The return address has a pointer authentication code (aarch64). */
	PERFRING_UNWIND_SIGNED = 2,
	/* The CFA is at sp or fp, ip is in memory at the CFA, fp too or unchanged, and no other flag is set.  A rule may lack it. */
	PERFRING_UNWIND_PLAIN = 4,
	/* The bits from here on are a number: see enum perfring_unwind_cfa. */
	PERFRING_UNWIND_MORE = 4
};

/* How to find the caller's registers, for a range of addresses. */
struct perfring_unwind_rule {
	uint8_t cfa;   /* enum perfring_unwind_cfa */
	uint8_t ra;    /* enum perfring_unwind_at, of ip */
	uint8_t fp;    /* enum perfring_unwind_at */
	uint8_t flags; /* and a number */
	int32_t cfa_offset;
	int32_t ra_offset;
	int32_t fp_offset;
};

static_assert(sizeof(struct perfring_unwind_rule) == 16, "unwind rule");

/* ---- objects ---- */

struct perfring_unwind;

/* Bytes of a section, and the address that the object's headers give it. */
struct perfring_unwind_section {
	const void *bytes;
	uint64_t size;
	uint64_t address;
};

/* The sections that are used; size 0: there is none. */
struct perfring_unwind_sections {
	uint32_t machine; /* PERFRING_UNWIND_X86_64 or PERFRING_UNWIND_AARCH64 */
	struct perfring_unwind_section eh_frame;
	struct perfring_unwind_section eh_frame_hdr; /* may be empty, unsorted or wrong: eh_frame is searched instead */
	struct perfring_unwind_section debug_frame;
	struct perfring_unwind_section plt; /* ".plt" of x86-64, which lld does not describe; may be empty */
};

/* Opens an ELF file's bytes, or sections of one.  The bytes must stay until close.  No function's rows are made yet.
 * Returns 0; -EINVAL (no ELF image, or one of another machine), -ENODATA (it has no unwind sections), -EOPNOTSUPP (a section of
 * 4 GiB or more), -ENOMEM.  close frees the rows; the bytes are the caller's. */
PERFRING_API int perfring_unwind_open(struct perfring_unwind **unwind, const void *image, size_t size);
PERFRING_API int perfring_unwind_open_sections(struct perfring_unwind **unwind,
					       const struct perfring_unwind_sections *sections);
PERFRING_API void perfring_unwind_close(struct perfring_unwind *unwind);

/* Makes the rows of the function at an address of the object (not of memory), once.  Returns 1 (they are made, now or
 * before), 0 (no function), -EBADMSG (its description is damaged), -ENOSPC (beyond PERFRING_UNWIND_MEMORY_MAX or
 * PERFRING_UNWIND_RULES_MAX: its rules are found without rows), -ENOMEM. */
PERFRING_API int perfring_unwind_make(struct perfring_unwind *unwind, uint64_t address);

/* Makes the rows of all functions.  From then on rules are found by rows alone, in 512 bytes of stack, and the object's bytes need
 * not stay: a function whose description is damaged, or for whose rows there was no space, has no rule.  Beyond
 * PERFRING_UNWIND_MEMORY_MAX it takes 16 bytes for each function of .eh_frame_hdr, instead of that section.  Returns 0; -ENOMEM (no
 * function has lost its rule; the bytes must stay).  Context: threads; no rule of the object is looked up meanwhile. */
PERFRING_API int perfring_unwind_make_all(struct perfring_unwind *unwind);

/* The rule at an address of the object, from its rows; without rows from its description, which takes longer.  `end`, or NULL:
 * where the row ends (for no function: the address after this one).  Returns 1, or 0: no rule, and rule->cfa is
 * PERFRING_UNWIND_CFA_NONE. */
PERFRING_API int perfring_unwind_rule_at(const struct perfring_unwind *unwind, uint64_t address,
					 struct perfring_unwind_rule *rule, uint64_t *end);

struct perfring_unwind_totals {
	uint64_t functions; /* that the object describes */
	uint64_t made;      /* of them have rows */
	uint64_t rows;
	uint64_t rules;        /* different ones */
	uint64_t row_bytes;    /* memory of the rows */
	uint64_t described;    /* bytes of the descriptions of the functions that have rows */
	uint64_t memory;       /* all memory of the object, in bytes */
	bool has_sorted_index; /* .eh_frame_hdr is used */
};

/* The totals now. */
PERFRING_API void perfring_unwind_count(const struct perfring_unwind *unwind, struct perfring_unwind_totals *totals);

/* The i-th function: its addresses, from start up to end.  Returns 1; 0: there is none, or its description is damaged (they are
 * those below totals.functions). */
PERFRING_API int perfring_unwind_function(const struct perfring_unwind *unwind, uint64_t i, uint64_t *start,
					  uint64_t *end);

/* ---- one step ---- */

/* The registers of a frame, 64 bits each. */
struct perfring_unwind_registers {
	uint64_t ip;
	uint64_t sp;
	uint64_t fp;       /* rbp, x29 */
	uint64_t lr;       /* x30; of the innermost frame alone */
	uint64_t pac_mask; /* bits of a signed return address that are no address */
	bool is_return;    /* ip is a return address: the call is before it */
	bool has_no_fp;    /* fp is lost */
	/* Of the innermost frame alone, or NULL: gives register `number` (DWARF's, up to 15), and returns whether it is known. */
	bool (*other)(const void *of, uint32_t number, uint64_t *value);
	const void *of; /* its argument */
};

/* Why a step or a walk ended. */
enum perfring_unwind_end {
	PERFRING_UNWIND_STEPPED,   /* not an end: the registers are the caller's */
	PERFRING_UNWIND_WHOLE,     /* the thread's first function has been reached */
	PERFRING_UNWIND_TRUNCATED, /* the next frame is outside the copy */
	PERFRING_UNWIND_NO_RULE,   /* no object at ip, or it has no rule there that could be followed */
	PERFRING_UNWIND_BAD,       /* the stack is not what the rules say: no progress, or a read below it */
	PERFRING_UNWIND_FULL       /* the caller's array is full */
};

/* A copy of a stack, at the addresses from start on.  `other`: a further stack, as that which an alternate signal stack was
 * entered from.  `read`, or NULL: reads a word that is in none of them, for a frame whose stack pointer is sp; it returns
 * PERFRING_UNWIND_STEPPED, _TRUNCATED or _BAD, as perfring_unwind_read_slow. */
struct perfring_unwind_stack {
	const unsigned char *bytes;
	uint64_t start;
	uint64_t limit; /* offsets below it begin a word that is inside */
	const struct perfring_unwind_stack *other;
	enum perfring_unwind_end (*read)(const struct perfring_unwind_stack *stack, uint64_t sp, uint64_t at,
					 uint64_t *word);
};

/* A stack of `size` bytes whose lowest address is `start`, without a further one.  The bytes are not copied. */
PERFRING_INLINE struct perfring_unwind_stack perfring_unwind_stack_init(const void *bytes, uint64_t start,
									uint64_t size)
{
	struct perfring_unwind_stack stack;

	stack.bytes = (const unsigned char *)bytes;
	stack.start = start;
	stack.limit = size < 8 ? 0 : size - 7;
	stack.other = NULL;
	stack.read = NULL;
	return stack;
}

/* A word of the stack.  Returns PERFRING_UNWIND_STEPPED, _TRUNCATED, or _BAD: the word is below a stack whose sp is inside.
 * At most 4 stacks are looked at, then `read` of the first. */
PERFRING_API enum perfring_unwind_end perfring_unwind_read_slow(const struct perfring_unwind_stack *stack, uint64_t sp,
								uint64_t at, uint64_t *word);

/* The same as perfring_unwind_read_slow, without a call where the word is in the first stack. */
PERFRING_INLINE enum perfring_unwind_end perfring_unwind_read(const struct perfring_unwind_stack *stack, uint64_t sp,
							      uint64_t at, uint64_t *word)
{
	if (PERFRING_UNLIKELY(at - stack->start >= stack->limit))
		return perfring_unwind_read_slow(stack, sp, at, word);
	memcpy(word, stack->bytes + (at - stack->start), 8);
	return PERFRING_UNWIND_STEPPED;
}

/* Steps to the caller by a rule.  An end leaves the registers as they are. */
PERFRING_API enum perfring_unwind_end perfring_unwind_step_slow(const struct perfring_unwind_rule *rule,
								const struct perfring_unwind_stack *stack,
								struct perfring_unwind_registers *registers);

/* The same of a plain rule alone, without a call: true if it has stepped, else nothing is changed. */
PERFRING_INNER bool perfring_unwind_step_plain(const struct perfring_unwind_rule *rule,
					       const struct perfring_unwind_stack *stack, uint64_t *ip, uint64_t *sp,
					       uint64_t *fp)
{
	uint64_t cfa = (uint64_t)(int64_t)rule->cfa_offset, ra_at, fp_at, ra;

	if (PERFRING_UNLIKELY(rule->flags != PERFRING_UNWIND_PLAIN))
		return false;
	cfa += rule->cfa == PERFRING_UNWIND_CFA_FP ? *fp : *sp;
	ra_at = cfa + (uint64_t)(int64_t)rule->ra_offset - stack->start;
	fp_at = cfa + (uint64_t)(int64_t)rule->fp_offset - stack->start;
	if (PERFRING_UNLIKELY(ra_at >= stack->limit || cfa <= *sp))
		return false;
	memcpy(&ra, stack->bytes + ra_at, 8);
	if (PERFRING_UNLIKELY(ra == 0))
		return false;
	if (rule->fp == PERFRING_UNWIND_AT_CFA) {
		if (PERFRING_UNLIKELY(fp_at >= stack->limit))
			return false;
		memcpy(fp, stack->bytes + fp_at, 8);
	}
	*ip = ra;
	*sp = cfa;
	return true;
}

/* The same as perfring_unwind_step_slow, without a call where the rule is plain. */
PERFRING_INLINE enum perfring_unwind_end perfring_unwind_step(const struct perfring_unwind_rule *rule,
							      const struct perfring_unwind_stack *stack,
							      struct perfring_unwind_registers *registers)
{
	if (PERFRING_UNLIKELY(registers->has_no_fp) ||
	    !perfring_unwind_step_plain(rule, stack, &registers->ip, &registers->sp, &registers->fp))
		return perfring_unwind_step_slow(rule, stack, registers);
	registers->lr = registers->ip;
	registers->is_return = true;
	return PERFRING_UNWIND_STEPPED;
}

/* The bit in sample_regs_user of the register that DWARF numbers `number`; UINT32_MAX: samples do not have it. */
PERFRING_INNER uint32_t perfring_unwind_register_bit(uint32_t machine, uint32_t number)
{
	static const uint8_t x86_64[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};

	if (machine != PERFRING_UNWIND_X86_64)
		return number;
	return number < sizeof(x86_64) ? x86_64[number] : UINT32_MAX;
}

/* ---- whole stacks ---- */

/* An object in an address space: memory address - bias is the object's address. */
struct perfring_unwind_map {
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	struct perfring_unwind *unwind;
};

/* The objects of an address space: a process's, in memory of the caller. */
struct perfring_unwind_space {
	const struct perfring_unwind_map *maps; /* sorted by start, without overlaps */
	uint32_t nr;
	uint32_t id; /* not 0; another one for each address space, and when its maps change */
	bool makes;  /* rows are made where they are missing: this allocates */
	bool calls;  /* a walk writes return addresses less 1, which is in the call */
};

/* The map of an address; NULL: none.  At most 32 turns. */
PERFRING_INNER const struct perfring_unwind_map *perfring_unwind_map_at(const struct perfring_unwind_space *space,
									uint64_t at)
{
	uint32_t low = 0, high = space->nr, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (space->maps[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < space->nr && space->maps[low].start <= at ? &space->maps[low] : NULL;
}

/* The rules that were used last, by address space and ip.  Of one thread, and not of a handler that interrupts its walk. */
struct perfring_unwind_cache;

/* entries: rounded up to a power of two, from 64 to 1 << 20; 32 bytes each.  Returns 0, -ENOMEM. */
PERFRING_API int perfring_unwind_cache_open(struct perfring_unwind_cache **cache, uint32_t entries);
PERFRING_API void perfring_unwind_cache_close(struct perfring_unwind_cache *cache);

/* Walks from the innermost frame, whose registers these are, outwards.  Writes the ip of each frame, the innermost first, and
 * returns how many; at most `most`.  `end` is why there are no more, and the registers are those of the last frame; after
 * PERFRING_UNWIND_FULL those of the next one, from which another walk goes on.  A return address is looked up one byte before
 * it, where the call is.  cache: NULL for a walk without one, which makes no rows. */
PERFRING_API uint32_t perfring_unwind_walk(const struct perfring_unwind_space *space,
					   struct perfring_unwind_cache *cache,
					   struct perfring_unwind_registers *registers,
					   const struct perfring_unwind_stack *stack, uint64_t *ips, uint32_t most,
					   enum perfring_unwind_end *end);

PERFRING_END

#endif
