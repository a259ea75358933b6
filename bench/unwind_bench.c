/* unwind_bench.c - a frame found by unwind tables, beside one found by frame pointers, over the same bytes.
 *
 * The stacks are made up: 64 of 32 frames, of 512 functions, each of which is called by 3 others, by one of them in 11 of 12
 * cases, and has saved rbp, so that both ways find the same frames.  Of one function in four the tables say that the CFA is at rbp, of the others at rsp. */
#include <stdlib.h>
#include <perfring/unwind.h>
#include "bench.h"

enum {
	FUNCTIONS = 512,
	LENGTH = 256, /* bytes of a function */
	CALLERS = 3,
	STACKS = 64,
	FRAMES = 32,
	CODE_AT = 0x100000,
	FRAME_MOST = 128,
	STACK_SIZE = FRAMES * FRAME_MOST,
	ENTRY = 32, /* bytes of a description */
};

struct made {
	uint8_t eh_frame[24 + FUNCTIONS * ENTRY];
	struct perfring_unwind *unwind;
	struct perfring_unwind_map map;
	struct perfring_unwind_space space;
	struct perfring_unwind_cache *cache;
	unsigned char stacks[STACKS][STACK_SIZE];
	struct perfring_unwind_registers registers[STACKS];
	uint64_t ips[STACKS][FRAMES]; /* what must be found */
};

static uint32_t random_number(void)
{
	static uint32_t state = 2463534242;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static uint32_t frame_size(uint32_t function)
{
	return 16 + 16 * (function % 7);
}

static void describe(struct made *made)
{
	static const uint8_t shared[24] = {20, 0,    0,  0, 0, 0,    0, 0, 1,    'z', 'R', 0,
					   1,  0x78, 16, 1, 3, 0x0c, 7, 8, 0x90, 1,   0,   0};
	uint32_t i;

	memcpy(made->eh_frame, shared, sizeof(shared));
	for (i = 0; i < FUNCTIONS; i++) {
		uint8_t *entry = made->eh_frame + sizeof(shared) + i * ENTRY;
		/* push rbp; mov rbp, rsp; sub rsp: rbp + 16, or rsp + size */
		uint8_t program[] = {
			0x41, 0x0e, 16, 0x86, 2, 0x43, i % 4 ? 0x0e : 0x0d, (uint8_t)(i % 4 ? frame_size(i) : 6)};
		uint32_t words[] = {ENTRY - 4, (uint32_t)(entry + 4 - made->eh_frame), CODE_AT + i * LENGTH, LENGTH};

		memset(entry, 0, ENTRY);
		memcpy(entry, words, sizeof(words));
		memcpy(entry + sizeof(words) + 1, program, sizeof(program));
	}
}

/* Frame by frame upwards: locals, the caller's rbp, the return address. */
static void fill(struct made *made, uint32_t s)
{
	uint64_t base = 0x7ffe00000000, at = base, fp = 0;
	uint32_t function = random_number() % 8, i, size;
	uint64_t call = CODE_AT + function * LENGTH + 64;

	made->registers[s].ip = call;
	made->registers[s].sp = base;
	made->registers[s].is_return = true;
	for (i = 0; i < FRAMES; i++) {
		uint64_t caller_fp;
		uint32_t caller = (function * CALLERS + (random_number() % 8 ? 0 : random_number() % CALLERS) + 8) % FUNCTIONS;

		made->ips[s][i] = call;
		size = frame_size(function);
		fp = at + size - 16;
		if (i == 0)
			made->registers[s].fp = fp;
		caller_fp = at + size + frame_size(caller) - 16;
		call = i + 1 == FRAMES ? 0 : CODE_AT + caller * LENGTH + 32 + 8 * (function % 8);
		memcpy(made->stacks[s] + (fp - base), &caller_fp, 8);
		memcpy(made->stacks[s] + (fp + 8 - base), &call, 8);
		at += size;
		function = caller;
	}
}

/* NULL: no memory. */
static struct made *make(void)
{
	static struct made *made;
	struct perfring_unwind_sections sections;
	uint32_t s;

	if (made)
		return made;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	describe(made);
	for (s = 0; s < STACKS; s++)
		fill(made, s);
	memset(&sections, 0, sizeof(sections));
	sections.machine = PERFRING_UNWIND_X86_64;
	sections.eh_frame = (struct perfring_unwind_section){made->eh_frame, sizeof(made->eh_frame), 0};
	if (perfring_unwind_open_sections(&made->unwind, &sections) || perfring_unwind_cache_open(&made->cache, 4096)) {
		free(made);
		made = NULL;
		return NULL;
	}
	made->map = (struct perfring_unwind_map){CODE_AT, CODE_AT + FUNCTIONS * LENGTH, 0, made->unwind};
	made->space = (struct perfring_unwind_space){&made->map, 1, 1, true, false};
	return made;
}

static __attribute__((noinline)) uint32_t walk_pointers(const struct perfring_unwind_stack *stack, uint64_t ip,
							uint64_t fp, uint64_t *ips)
{
	uint64_t frame[2];
	uint32_t nr = 0;

	while (nr < FRAMES) {
		ips[nr++] = ip;
		if (fp - stack->start >= stack->limit - 8)
			break;
		memcpy(frame, stack->bytes + (fp - stack->start), sizeof(frame));
		if (frame[0] <= fp || !frame[1])
			break;
		fp = frame[0];
		ip = frame[1];
	}
	return nr;
}

static void run(struct bench *bench, bool by_tables)
{
	struct made *made = make();
	uint64_t ips[FRAMES];
	bool is_right = true;
	uint32_t s;

	if (!made) {
		bench_skip(bench, "no memory");
		return;
	}
	bench_items(bench, STACKS * FRAMES);
	while (bench_keep(bench, 1))
		for (s = 0; s < STACKS; s++) {
			struct perfring_unwind_stack stack =
				perfring_unwind_stack_init(made->stacks[s], 0x7ffe00000000, STACK_SIZE);
			struct perfring_unwind_registers registers = made->registers[s];
			enum perfring_unwind_end end;
			uint32_t nr;

			if (by_tables)
				nr = perfring_unwind_walk(&made->space, made->cache, &registers, &stack, ips, FRAMES,
							  &end);
			else
				nr = walk_pointers(&stack, registers.ip, registers.fp, ips);
			bench_use((uintptr_t)ips);
			is_right = is_right && nr == FRAMES && ips[FRAMES - 1] == made->ips[s][FRAMES - 1];
		}
	if (!is_right || memcmp(ips, made->ips[STACKS - 1], sizeof(ips)))
		bench_skip(bench, "a stack is not the one that was made");
}

static void run_pointers(struct bench *bench)
{
	run(bench, false);
}

static void run_tables(struct bench *bench)
{
	run(bench, true);
}

/* Without the cache's help: the rule of a return address, from rows. */
static void run_lookup(struct bench *bench)
{
	struct made *made = make();
	struct perfring_unwind_rule rule;
	uint32_t s, i;
	int found = 1;

	if (!made) {
		bench_skip(bench, "no memory");
		return;
	}
	for (i = 0; i < FUNCTIONS; i++)
		perfring_unwind_make(made->unwind, CODE_AT + i * LENGTH);
	bench_items(bench, STACKS * FRAMES);
	while (bench_keep(bench, 1))
		for (s = 0; s < STACKS; s++)
			for (i = 0; i < FRAMES; i++) {
				found &= perfring_unwind_rule_at(made->unwind, made->ips[s][i] - 1, &rule, NULL);
				bench_use(rule.cfa);
			}
	if (!found)
		bench_skip(bench, "no rule");
}

const struct bench_row bench_rows[] = {
	{"frame", "pointers", run_pointers, 0, 0},
	{"frame", "tables", run_tables, 3, 0},
	{"frame", "lookup", run_lookup, 0, 0},
	{NULL, NULL, NULL, 0, 0},
};
