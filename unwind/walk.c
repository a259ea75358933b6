/* walk.c - whole stacks, and the cache of rules in front of them (docs/unwind.md).
 *
 * perfring_unwind_walk of unwind.h, which symbol/stacks.c calls for samples and soft/ in raises, in handlers too: no allocation
 * unless the space says so (`makes`), no lock.  Each walk is bounded by its array of addresses.
 */
#include <stdlib.h>

#include "cfi.h"

enum {
	ENTRIES_MIN = 64,
	ENTRIES_MAX = 1 << 20,
	STACKS_MAX = 4,
	RECOVERED_MAX = 4, /* frames of a walk whose CFA is at a register that is searched for */
};

/* `next` is the entry that was used after this one.  A stack is mostly left the way it was left the last time, so that entry is
 * loaded while its ip still comes from the stack: the two loads do not wait for one another, and only the comparison does. */
struct entry {
	uint64_t at; /* the address that was looked up */
	uint32_t space;
	uint32_t next;
	struct perfring_unwind_rule rule; /* CFA_NONE: it was looked up, and there is none */
};

static_assert(sizeof(struct entry) == 32, "two entries a cache line");

struct perfring_unwind_cache {
	struct entry *entries;
	uint32_t mask;
	uint32_t first; /* the entry of the last walk's first frame */
};

int perfring_unwind_cache_open(struct perfring_unwind_cache **cache, uint32_t entries)
{
	struct perfring_unwind_cache *opened = calloc(1, sizeof(*opened));
	uint32_t count = ENTRIES_MIN;

	*cache = NULL;
	if (!opened)
		return -ENOMEM;
	while (count < entries && count < ENTRIES_MAX)
		count *= 2;
	opened->mask = count - 1;
	opened->entries = aligned_alloc(64, count * sizeof(*opened->entries));
	if (!opened->entries) {
		free(opened);
		return -ENOMEM;
	}
	memset(opened->entries, 0, count * sizeof(*opened->entries)); /* space 0 is none */
	*cache = opened;
	return 0;
}

void perfring_unwind_cache_close(struct perfring_unwind_cache *cache)
{
	if (!cache)
		return;
	free(cache->entries);
	free(cache);
}

static void find_rule(const struct perfring_unwind_map *map, uint64_t at, struct perfring_unwind_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	if (map && map->unwind)
		perfring_unwind_rule_at(map->unwind, at - map->bias, rule, NULL);
}

/* Fills the entry of an address.  The rule is found before the entry is changed: a handler that leaves the walk by longjmp, as one
 * of SIGBUS when the object's file was truncated, leaves no address with another's rule. */
static __attribute__((noinline)) void fill_entry(const struct perfring_unwind_space *space, struct entry *entry,
						 uint64_t at)
{
	const struct perfring_unwind_map *map = perfring_unwind_map_at(space, at);
	struct perfring_unwind_rule rule;

	if (space->makes && map && map->unwind) /* what cannot be made is found without rows */
		perfring_unwind_make(map->unwind, at - map->bias);
	find_rule(map, at, &rule);
	entry->space = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	entry->at = at;
	entry->rule = rule;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	entry->space = space->id;
}

static struct entry *find_entry(const struct perfring_unwind_space *space, struct perfring_unwind_cache *cache,
				uint64_t at)
{
	uint64_t hash = (at ^ space->id) * 0x9e3779b97f4a7c15;
	struct entry *entry = &cache->entries[(hash >> 32) & cache->mask];

	if (PERFRING_UNLIKELY(entry->at != at || entry->space != space->id))
		fill_entry(space, entry, at);
	return entry;
}

/* other: the register that the rule's CFA is at; NULL: what the registers know of it. */
static enum perfring_unwind_end step(const struct perfring_unwind_rule *rule, const struct perfring_unwind_stack *stack,
				     struct perfring_unwind_registers *registers, const uint64_t *other)
{
	enum perfring_unwind_end end = PERFRING_UNWIND_STEPPED;
	uint64_t sp = registers->sp, fp = registers->fp, cfa, ra = 0, base;
	bool has_no_fp = registers->has_no_fp, lost;

	cfa = (uint64_t)(int64_t)rule->cfa_offset;
	switch (rule->cfa) {
	case PERFRING_UNWIND_CFA_SP:
		cfa += sp;
		break;
	case PERFRING_UNWIND_CFA_FP:
		if (PERFRING_UNLIKELY(has_no_fp))
			return PERFRING_UNWIND_NO_RULE;
		cfa += fp;
		break;
	case PERFRING_UNWIND_CFA_DEREF_SP:
		end = perfring_unwind_read(stack, sp, sp + cfa, &cfa);
		break;
	case PERFRING_UNWIND_CFA_DEREF_FP:
		if (has_no_fp)
			return PERFRING_UNWIND_NO_RULE;
		end = perfring_unwind_read(stack, sp, fp + cfa, &cfa);
		break;
	case PERFRING_UNWIND_CFA_PLT:
		cfa += sp + ((registers->ip & 15) >= (uint64_t)(rule->flags >> PERFRING_UNWIND_MORE) ? 8 : 0);
		break;
	case PERFRING_UNWIND_CFA_OTHER:
		if (!other && (registers->is_return || !registers->other ||
			       !registers->other(registers->of, rule->flags >> PERFRING_UNWIND_MORE, &base)))
			return PERFRING_UNWIND_NO_RULE;
		cfa += other ? *other : base;
		break;
	default:
		return PERFRING_UNWIND_NO_RULE;
	}
	if (PERFRING_UNLIKELY(end != PERFRING_UNWIND_STEPPED))
		return end;
	if (PERFRING_UNLIKELY(rule->cfa == PERFRING_UNWIND_CFA_DEREF_SP || rule->cfa == PERFRING_UNWIND_CFA_DEREF_FP))
		cfa += 8 * (uint64_t)(rule->flags >> PERFRING_UNWIND_MORE);

	if (PERFRING_LIKELY(rule->ra == PERFRING_UNWIND_AT_CFA)) {
		base = cfa;
	} else if (rule->ra == PERFRING_UNWIND_AT_SP) {
		base = sp;
	} else if (rule->ra == PERFRING_UNWIND_AT_UNDEFINED) {
		return PERFRING_UNWIND_WHOLE;
	} else if (rule->ra == PERFRING_UNWIND_AT_FP) {
		if (has_no_fp)
			return PERFRING_UNWIND_NO_RULE;
		base = fp;
	} else { /* a function that has called another has lost lr */
		if (registers->is_return)
			return PERFRING_UNWIND_BAD;
		if (!registers->lr)
			return PERFRING_UNWIND_NO_RULE;
		base = 0;
		ra = registers->lr;
	}
	if (PERFRING_LIKELY(rule->ra != PERFRING_UNWIND_AT_SAME))
		end = perfring_unwind_read(stack, sp, base + (uint64_t)(int64_t)rule->ra_offset, &ra);
	if (PERFRING_UNLIKELY(end != PERFRING_UNWIND_STEPPED))
		return end;

	if (rule->fp != PERFRING_UNWIND_AT_SAME) {
		base = rule->fp == PERFRING_UNWIND_AT_CFA ? cfa : rule->fp == PERFRING_UNWIND_AT_SP ? sp : fp;
		base += (uint64_t)(int64_t)rule->fp_offset;
		lost = rule->fp == PERFRING_UNWIND_AT_UNDEFINED || (rule->fp == PERFRING_UNWIND_AT_FP && has_no_fp);
		if (PERFRING_LIKELY(!lost))
			end = perfring_unwind_read(stack, sp, base, &fp);
		/* Where a function has popped fp before it returns, its rule may name the place still, which is below sp: the
		 * register has it again. */
		if (end == PERFRING_UNWIND_BAD && !registers->is_return && base < sp) {
			end = PERFRING_UNWIND_STEPPED;
			lost = has_no_fp;
		}
		if (PERFRING_UNLIKELY(end != PERFRING_UNWIND_STEPPED))
			return end;
		has_no_fp = lost;
	}
	/* Upwards, but for a signal's frame, which may lead to another stack, and a leaf function of aarch64. */
	if (PERFRING_UNLIKELY(cfa <= sp) && !(rule->flags & PERFRING_UNWIND_SIGNAL) &&
	    (cfa < sp || registers->is_return))
		return PERFRING_UNWIND_BAD;
	if (PERFRING_UNLIKELY(rule->flags & PERFRING_UNWIND_SIGNED))
		ra &= ~registers->pac_mask;
	if (PERFRING_UNLIKELY(ra == 0))
		return PERFRING_UNWIND_WHOLE;
	registers->ip = ra;
	registers->sp = cfa;
	registers->fp = fp;
	registers->lr = rule->flags & PERFRING_UNWIND_SIGNAL ? 0 : ra;
	registers->is_return = !(rule->flags & PERFRING_UNWIND_SIGNAL);
	registers->has_no_fp = has_no_fp;
	if (rule->flags & PERFRING_UNWIND_SIGNAL)
		registers->other = NULL;
	return PERFRING_UNWIND_STEPPED;
}

enum perfring_unwind_end perfring_unwind_step_slow(const struct perfring_unwind_rule *rule,
						   const struct perfring_unwind_stack *stack,
						   struct perfring_unwind_registers *registers)
{
	return step(rule, stack, registers, NULL);
}

/* ---- a CFA at another register of a caller ---- */

struct known {
	uint32_t number; /* of the register */
	bool is_known;
	uint64_t value;
};

/* Computes the register's value in the frame's caller.  rule: the frame's, with the register's place as fp.  cfa: the frame's. */
static void follow(struct known *known, const struct perfring_unwind_rule *rule,
		   const struct perfring_unwind_stack *stack, const struct perfring_unwind_registers *frame,
		   uint64_t cfa)
{
	uint64_t base = rule->fp == PERFRING_UNWIND_AT_CFA  ? cfa
			: rule->fp == PERFRING_UNWIND_AT_SP ? frame->sp
							    : frame->fp;

	if (rule->fp == PERFRING_UNWIND_AT_SAME)
		return;
	known->is_known =
		rule->fp != PERFRING_UNWIND_AT_UNDEFINED && !(rule->fp == PERFRING_UNWIND_AT_FP && frame->has_no_fp) &&
		perfring_unwind_read(stack, frame->sp, base + (uint64_t)(int64_t)rule->fp_offset, &known->value) ==
			PERFRING_UNWIND_STEPPED;
}

/* Finds the value of register `number` in a frame that has called others, which may have saved it.  Walks these `nr` frames again
 * from the innermost one, by their descriptions; a walk does so for at most RECOVERED_MAX frames.  A frame on the way whose own
 * CFA is at the same register uses the value known by then. */
static __attribute__((noinline)) bool recover(const struct perfring_unwind_space *space,
					      const struct perfring_unwind_registers *innermost,
					      const struct perfring_unwind_stack *stack, uint32_t nr, uint32_t number,
					      uint64_t *value)
{
	struct perfring_unwind_registers registers = *innermost, before;
	struct known known = {.number = number};
	struct perfring_unwind_rule rule, place;

	known.is_known = !registers.is_return && registers.other && registers.other(registers.of, number, &known.value);
	while (nr--) {
		uint64_t at = registers.ip - registers.is_return;
		const struct perfring_unwind_map *map = perfring_unwind_map_at(space, at);
		bool is_there;

		find_rule(map, at, &rule);
		if (!map || !map->unwind || !perfring__unwind_register_at(map->unwind, at - map->bias, number, &place))
			return false;
		is_there = rule.cfa == PERFRING_UNWIND_CFA_OTHER &&
			   (uint32_t)(rule.flags >> PERFRING_UNWIND_MORE) == number && known.is_known;
		before = registers;
		if (step(&rule, stack, &registers, is_there ? &known.value : NULL) != PERFRING_UNWIND_STEPPED)
			return false;
		follow(&known, &place, stack, &before, registers.sp);
	}
	*value = known.value;
	return known.is_known;
}

/* Steps as perfring_unwind_step_slow, for the frame that has called `nr` others.  left: for how many frames recover may still be
 * called. */
static enum perfring_unwind_end step_or_recover(const struct perfring_unwind_space *space,
						const struct perfring_unwind_rule *rule,
						const struct perfring_unwind_stack *stack,
						struct perfring_unwind_registers *registers,
						const struct perfring_unwind_registers *innermost, uint32_t nr,
						uint32_t *left)
{
	uint64_t value;

	if (PERFRING_LIKELY(rule->cfa != PERFRING_UNWIND_CFA_OTHER || !registers->is_return) || !*left)
		return step(rule, stack, registers, NULL);
	--*left;
	return recover(space, innermost, stack, nr, rule->flags >> PERFRING_UNWIND_MORE, &value)
		       ? step(rule, stack, registers, &value)
		       : PERFRING_UNWIND_NO_RULE;
}

/* ---- whole stacks ---- */

static __attribute__((noinline)) uint32_t walk_without_cache(const struct perfring_unwind_space *space,
							     struct perfring_unwind_registers *registers,
							     const struct perfring_unwind_stack *stack, uint64_t *ips,
							     uint32_t most, enum perfring_unwind_end *end)
{
	const struct perfring_unwind_registers innermost = *registers;
	struct perfring_unwind_rule rule;
	uint32_t nr = 0, left = RECOVERED_MAX;

	while (nr < most) {
		uint64_t before = registers->is_return, at = registers->ip - before;

		ips[nr++] = registers->ip - (before & (uint64_t)space->calls);
		find_rule(perfring_unwind_map_at(space, at), at, &rule);
		*end = step_or_recover(space, &rule, stack, registers, &innermost, nr - 1, &left);
		if (*end != PERFRING_UNWIND_STEPPED)
			return nr;
	}
	*end = PERFRING_UNWIND_FULL;
	return nr;
}

uint32_t perfring_unwind_walk(const struct perfring_unwind_space *space, struct perfring_unwind_cache *cache,
			      struct perfring_unwind_registers *registers, const struct perfring_unwind_stack *stack,
			      uint64_t *ips, uint32_t most, enum perfring_unwind_end *end)
{
	/* In registers of the machine: `registers` has what they were before a step that is not plain. */
	uint64_t ip = registers->ip, sp = registers->sp, fp = registers->fp, before = registers->is_return;
	uint64_t *next = ips, *last = ips + most;
	uint64_t less = space->calls; /* of a return address */
	const struct perfring_unwind_registers innermost = *registers;
	uint32_t *guess, id = space->id, left = RECOVERED_MAX;
	struct entry *entries, *entry;

	if (PERFRING_UNLIKELY(!cache))
		return walk_without_cache(space, registers, stack, ips, most, end);
	entries = cache->entries;
	guess = &cache->first;
	*end = PERFRING_UNWIND_FULL;
	while (next < last) {
		uint64_t at = ip - before;

		entry = (struct entry *)(void *)((char *)entries + *guess);
		*next++ = ip - (before & less);
		if (PERFRING_UNLIKELY(entry->at != at || entry->space != id)) {
			entry = find_entry(space, cache, at);
			*guess = (uint32_t)((char *)entry - (char *)entries);
		}
		guess = &entry->next;
		before = 1;
		if (PERFRING_LIKELY(!registers->has_no_fp &&
				    perfring_unwind_step_plain(&entry->rule, stack, &ip, &sp, &fp)))
			continue;
		registers->lr = next == ips + 1 ? registers->lr : at != ip ? ip : 0;
		registers->ip = ip;
		registers->sp = sp;
		registers->fp = fp;
		registers->is_return = at != ip;
		*end = step_or_recover(space, &entry->rule, stack, registers, &innermost, (uint32_t)(next - ips) - 1,
				       &left);
		if (*end != PERFRING_UNWIND_STEPPED)
			return (uint32_t)(next - ips);
		*end = PERFRING_UNWIND_FULL;
		ip = registers->ip;
		sp = registers->sp;
		fp = registers->fp;
		before = registers->is_return;
	}
	registers->ip = ip;
	registers->sp = sp;
	registers->fp = fp;
	registers->lr = !most ? registers->lr : before ? ip : 0;
	registers->is_return = before;
	return (uint32_t)(next - ips);
}

enum perfring_unwind_end perfring_unwind_read_slow(const struct perfring_unwind_stack *stack, uint64_t sp, uint64_t at,
						   uint64_t *word)
{
	const struct perfring_unwind_stack *one = stack;
	int i;

	for (i = 0; one && i < STACKS_MAX; i++, one = one->other) {
		if (at - one->start < one->limit) {
			memcpy(word, one->bytes + (at - one->start), 8);
			return PERFRING_UNWIND_STEPPED;
		}
		/* Below a copy is what the thread had left, unless it came from another stack. */
		if (at < one->start && sp - one->start < one->limit)
			return PERFRING_UNWIND_BAD;
	}
	return stack->read ? stack->read(stack, sp, at, word) : PERFRING_UNWIND_TRUNCATED;
}
