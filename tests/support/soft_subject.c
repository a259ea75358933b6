/* soft_subject.c - functions whose callchains are known, as two modules: soft_subject_bare, without frame pointers, and
 * soft_subject_framed, with them.  soft_unwind_test loads both. */
#include <stdint.h>
#include <stdlib.h>
#include "clocks.h"

/* Exported, so that dladdr names it.  What comes after a call keeps it from being a jump. */
#define NAMED __attribute__((noinline, noclone, visibility("default")))

typedef void reached_function(void);

static volatile uint64_t sink;

void subject_walk(uint32_t seed, reached_function *reached);
void subject_sort(reached_function *reached);
void subject_burn(uint64_t ns);
void subject_call(reached_function *reached);
void subject_leaf(uint32_t *state, uint32_t depth, reached_function *reached);
void subject_registers(uint32_t *state, uint32_t depth, reached_function *reached);
void subject_alloca(uint32_t *state, uint32_t depth, reached_function *reached);
void subject_aligned(uint32_t *state, uint32_t depth, reached_function *reached);
void subject_large(uint32_t *state, uint32_t depth, reached_function *reached);
void subject_arguments(uint32_t *state, uint32_t depth, reached_function *reached);
uint64_t subject_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint32_t *state,
		      uint32_t depth, reached_function *reached);
int subject_compare(const void *one, const void *other);
void subject_spin(uint64_t ns);
void subject_inner(uint64_t ns);
void subject_middle(uint64_t ns);

static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* One of the functions below, by the seed. */
static inline __attribute__((always_inline)) void descend(uint32_t *state, uint32_t depth, reached_function *reached)
{
	static void (*const ways[])(uint32_t *, uint32_t, reached_function *) = {
		subject_registers, subject_alloca, subject_aligned, subject_large, subject_arguments};

	if (!depth)
		subject_leaf(state, depth, reached);
	else
		ways[next(state) % (sizeof(ways) / sizeof(ways[0]))](state, depth - 1, reached);
	sink += depth;
}

NAMED void subject_leaf(uint32_t *state, uint32_t depth, reached_function *reached)
{
	reached();
	sink += *state + depth;
}

/* Its values stay in registers across the call, rbp too where it is no frame pointer. */
NAMED void subject_registers(uint32_t *state, uint32_t depth, reached_function *reached)
{
	uint64_t a = sink, b = a * 3, c = b ^ a, d = c * 5, e = d + b, f = e ^ c;

	descend(state, depth, reached);
	sink += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6;
}

NAMED void subject_alloca(uint32_t *state, uint32_t depth, reached_function *reached)
{
	volatile char *bytes = __builtin_alloca(next(state) % 200 + 1);

	bytes[0] = 1;
	descend(state, depth, reached);
	sink += (uint64_t)bytes[0];
}

NAMED void subject_aligned(uint32_t *state, uint32_t depth, reached_function *reached)
{
	volatile char bytes[128] __attribute__((aligned(64)));

	bytes[3] = 1;
	descend(state, depth, reached);
	sink += (uint64_t)bytes[3];
}

NAMED void subject_large(uint32_t *state, uint32_t depth, reached_function *reached)
{
	volatile char bytes[1500];

	bytes[700] = 1;
	descend(state, depth, reached);
	sink += (uint64_t)bytes[700];
}

NAMED uint64_t subject_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint32_t *state,
			    uint32_t depth, reached_function *reached)
{
	descend(state, depth, reached);
	return a + b + c + d + e + f;
}

NAMED void subject_arguments(uint32_t *state, uint32_t depth, reached_function *reached)
{
	sink += subject_many(1, 2, 3, 4, 5, 6, state, depth, reached);
}

NAMED void subject_walk(uint32_t seed, reached_function *reached)
{
	uint32_t state = seed * 2654435761u + 1;

	descend(&state, next(&state) % 20, reached);
	sink++;
}

static __thread reached_function *in_compare;

NAMED int subject_compare(const void *one, const void *other)
{
	reached_function *reached = in_compare;

	in_compare = NULL;
	if (reached)
		reached();
	sink++;
	return *(const int *)one - *(const int *)other;
}

NAMED void subject_sort(reached_function *reached)
{
	int numbers[] = {3, 1, 2};

	in_compare = reached;
	qsort(numbers, 3, sizeof(numbers[0]), subject_compare);
	sink += (uint64_t)numbers[0];
}

NAMED void subject_call(reached_function *reached)
{
	reached();
	sink++;
}

#ifdef __x86_64__
/* As assembly of libraries of ciphers: a stack of its own alignment, the CFA in another register; and a breakpoint. */
void subject_cipher(void);
__asm__(".pushsection .text\n"
	".globl subject_cipher\n"
	".type subject_cipher, @function\n"
	"subject_cipher:\n"
	".cfi_startproc\n"
	"	movq %rsp, %rax\n"
	"	.cfi_def_cfa_register rax\n"
	"	pushq %rbp\n"
	"	.cfi_offset rbp, -16\n"
	"	andq $-64, %rsp\n"
	"	subq $192, %rsp\n"
	"	xorl %ebp, %ebp\n"
	"	int3\n"
	"	movq -8(%rax), %rbp\n"
	"	.cfi_restore rbp\n"
	"	movq %rax, %rsp\n"
	"	.cfi_def_cfa_register rsp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size subject_cipher, . - subject_cipher\n"
	".popsection\n");
#endif

/* Nearly all of the time is in its loop; it looks at the CPU's clock seldom (docs/abi.md 9.4).  The thread sanitizer handles a
 * signal where it asks for a time. */
NAMED void subject_spin(uint64_t ns)
{
	uint64_t end = now_of(CLOCK_THREAD_CPUTIME_ID) + ns, now;

	while ((now = now_of(CLOCK_THREAD_CPUTIME_ID)) < end)
		for (uint64_t until = now_of(CLOCK_MONOTONIC) + (end - now); now_of(CLOCK_MONOTONIC) < until;)
			for (uint32_t i = 0; i < 1000000; i++)
				sink += i;
}

NAMED void subject_inner(uint64_t ns)
{
	volatile char bytes[300];

	bytes[100] = 1;
	subject_spin(ns);
	sink += (uint64_t)bytes[100];
}

NAMED void subject_middle(uint64_t ns)
{
	uint64_t a = sink, b = a * 3;

	subject_inner(ns);
	sink += a + b * 2;
}

NAMED void subject_burn(uint64_t ns)
{
	volatile char *bytes = __builtin_alloca(ns % 64 + 1);

	bytes[0] = 1;
	subject_middle(ns);
	sink += (uint64_t)bytes[0];
}
