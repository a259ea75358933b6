/* unwind_test.c - rules as written out by hand, as libdw has them at every row of the machine's objects, and as a live thread's
 * stack has them; truncated stacks; damaged and random bytes. */
#include "test.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>
#include <perfring/unwind.h>
#include "machine.h"

#ifdef HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#endif

/* ---- sections made by hand ---- */

enum {
	MOST = 1 << 12
};

struct section {
	uint8_t bytes[MOST];
	uint32_t size;
	uint64_t address;
};

static void put(struct section *section, const void *bytes, size_t size)
{
	cr_assert(section->size + size <= MOST);
	memcpy(section->bytes + section->size, bytes, size);
	section->size += (uint32_t)size;
}

static void put_number(struct section *section, uint64_t number, unsigned size)
{
	for (; size; size--, number >>= 8)
		put(section, (uint8_t[]){(uint8_t)number}, 1);
}

/* Begins an entry; `end_entry` pads it and writes its length. */
static uint32_t begin_entry(struct section *section, bool is_long)
{
	uint32_t at = section->size;

	if (is_long) {
		put_number(section, UINT32_MAX, 4);
		put_number(section, 0, 8);
	} else {
		put_number(section, 0, 4);
	}
	return at;
}

static void end_entry(struct section *section, uint32_t at, bool is_long)
{
	uint32_t head = is_long ? 12 : 4, i, size;

	while ((section->size - at) % 8)
		put_number(section, 0, 1);
	size = section->size - at - head;
	for (i = 0; i < 4; i++)
		section->bytes[at + head - (is_long ? 8 : 4) + i] = (uint8_t)(size >> (8 * i));
}

/* What the entries of one section have in common. */
struct shape {
	uint32_t machine;
	uint8_t version;
	uint8_t encoding; /* of the pointers */
	bool is_debug;
	bool is_long;
	bool is_signal;
	bool has_length; /* augmentation z */
};

static const uint8_t x86_initial[] = {0x0c, 7, 8, 0x80 | 16, 1}; /* def_cfa rsp+8; offset ra at cfa-8 */

static uint32_t put_shared(struct section *section, const struct shape *shape, const uint8_t *program, size_t size)
{
	bool is_x86 = shape->machine == PERFRING_UNWIND_X86_64;
	uint32_t at = begin_entry(section, shape->is_long);

	put_number(section, shape->is_debug ? UINT64_MAX : 0, shape->is_debug && shape->is_long ? 8 : 4);
	put_number(section, shape->version, 1);
	if (shape->has_length)
		put(section, shape->is_signal ? "zRS" : "zR", shape->is_signal ? 4 : 3);
	else
		put_number(section, 0, 1);
	if (shape->version == 4)
		put(section, (uint8_t[]){8, 0}, 2);
	put(section, (uint8_t[]){is_x86 ? 1 : 4, 0x78, is_x86 ? 16 : 30}, 3); /* factors 1 or 4, -8; ra */
	if (shape->has_length)
		put(section, (uint8_t[]){1, shape->encoding}, 2);
	put(section, program, size);
	end_entry(section, at, shape->is_long);
	return at;
}

static void put_function(struct section *section, const struct shape *shape, uint32_t shared, uint64_t start,
			 uint64_t length, const uint8_t *program, size_t size)
{
	uint32_t at = begin_entry(section, shape->is_long);
	static const unsigned sizes[16] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};
	unsigned width = sizes[shape->encoding & 15];

	if (shape->is_debug)
		put_number(section, shared, shape->is_long ? 8 : 4);
	else
		put_number(section, section->size - shared, 4);
	if (width) {
		put_number(section, (shape->encoding & 0x70) == 0x10 ? start - section->address - section->size : start,
			   width);
		put_number(section, length, width);
	} else { /* uleb: of three bytes, of addresses below 2 MiB */
		put(section, (uint8_t[]){(uint8_t)(start | 0x80), (uint8_t)(start >> 7 | 0x80), (uint8_t)(start >> 14)},
		    3);
		put(section, (uint8_t[]){(uint8_t)(length | 0x80), (uint8_t)(length >> 7 | 0x80), 0}, 3);
	}
	if (shape->has_length)
		put_number(section, 0, 1);
	put(section, program, size);
	end_entry(section, at, shape->is_long);
}

static struct perfring_unwind *open_section(const struct section *section, const struct shape *shape)
{
	struct perfring_unwind_section one = {section->bytes, section->size, section->address};
	struct perfring_unwind_sections sections = {.machine = shape->machine};
	struct perfring_unwind *unwind = NULL;

	if (shape->is_debug)
		sections.debug_frame = one;
	else
		sections.eh_frame = one;
	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), 0);
	return unwind;
}

/* One rule of text, for the eye: "sp+16 c-8 c-16 S": CFA, ra, fp, flags. */
static const char *text_of(const struct perfring_unwind_rule *rule, char text[64])
{
	static const char *const cfas[] = {"none", "sp", "fp", "*sp", "*fp", "plt", "other"};
	static const char *const places[] = {"same", "c", "s", "f", "undefined"};
	bool has_ra = rule->ra >= PERFRING_UNWIND_AT_CFA && rule->ra <= PERFRING_UNWIND_AT_FP;
	bool has_fp = rule->fp >= PERFRING_UNWIND_AT_CFA && rule->fp <= PERFRING_UNWIND_AT_FP;
	int at;

	if (rule->cfa == PERFRING_UNWIND_CFA_NONE)
		return "none";
	if (rule->ra == PERFRING_UNWIND_AT_UNDEFINED)
		return "end";
	at = snprintf(text, 64, "%s%+d %s", cfas[rule->cfa], rule->cfa_offset, places[rule->ra]);
	if (has_ra)
		at += snprintf(text + at, 64 - (size_t)at, "%+d", rule->ra_offset);
	at += snprintf(text + at, 64 - (size_t)at, " %s", places[rule->fp]);
	if (has_fp)
		at += snprintf(text + at, 64 - (size_t)at, "%+d", rule->fp_offset);
	if (rule->flags & PERFRING_UNWIND_SIGNAL)
		at += snprintf(text + at, 64 - (size_t)at, " signal");
	if (rule->flags & PERFRING_UNWIND_SIGNED)
		at += snprintf(text + at, 64 - (size_t)at, " signed");
	if (rule->flags >> PERFRING_UNWIND_MORE)
		snprintf(text + at, 64 - (size_t)at, " from %d", rule->flags >> PERFRING_UNWIND_MORE);
	return text;
}

/* The rows of what is at `start`, as "0:rule 4:rule ... 64:", first by the description, then by rows: they are the same. */
static void rows_are(struct perfring_unwind *unwind, uint64_t start, uint64_t length, const char *expected)
{
	char said[2][1024], text[64];
	struct perfring_unwind_rule rule;
	uint64_t at, end;
	int way, size;

	for (way = 0; way < 2; way++) {
		for (at = start, size = 0; at < start + length; at = end) {
			perfring_unwind_rule_at(unwind, at, &rule, &end);
			cr_assert_gt(end, at);
			size += snprintf(said[way] + size, sizeof(said[way]) - (size_t)size, "%s%u:%s",
					 size ? ", " : "", (unsigned)(at - start), text_of(&rule, text));
		}
		cr_assert_str_eq(said[way], expected);
		cr_assert_eq(perfring_unwind_make(unwind, start), 1);
	}
}

struct program {
	const char *expected;
	uint8_t bytes[40];
	uint32_t size;
	uint32_t machine;
	bool is_signal;
};

#define PROGRAM(...) .bytes = {__VA_ARGS__}, .size = sizeof((uint8_t[]){__VA_ARGS__})

static const struct program programs[] = {
	{"0:sp+8 c-8 same", PROGRAM(0)},
	/* push rbp; mov rbp, rsp; ...; leave */
	{"0:sp+8 c-8 same, 1:sp+16 c-8 c-16, 4:fp+16 c-8 c-16, 60:sp+8 c-8 c-16",
	 PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 2, 56, 0x0c, 7, 8)},
	/* restore puts the CIE's place back */
	{"0:sp+8 c-8 c-16, 16:sp+8 c-8 same", PROGRAM(0x86, 2, 3, 16, 0, 0xc6)},
	{"0:sp+8 c-8 c-16, 16:sp+8 c-8 same", PROGRAM(0x05, 6, 2, 4, 16, 0, 0, 0, 0x06, 6)},
	/* remember within remember; both have the CFA too */
	{"0:sp+16 c-8 same, 1:sp+24 c-8 same, 2:sp+32 c-8 same, 3:sp+24 c-8 same, 4:sp+16 c-8 same",
	 PROGRAM(0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x0a, 0x41, 0x0e, 32, 0x41, 0x0b, 0x41, 0x0b)},
	{"0:none", PROGRAM(0x0b)},                              /* nothing is remembered */
	{"0:sp+8 c-8 same, 2:none", PROGRAM(0x42, 0x3f)},       /* an unknown instruction */
	{"0:sp+8 c-8 same, 2:none", PROGRAM(0x42, 0x0f, 0x70)}, /* a block longer than the program */
	{"0:sp+8 c-8 same, 8:other+16 c-8 same from 3", PROGRAM(0x48, 0x0c, 3, 16)}, /* the CFA from rbx */
	{"0:none", PROGRAM(0x0c, 17, 16)},                                           /* from xmm0 */
	{"0:*fp-8 c-8 f+0", PROGRAM(0x0f, 3, 0x76, 0x78, 6, 0x10, 6, 2, 0x76, 0)},   /* a stack that was realigned */
	{"0:plt+8 c-8 same from 11", PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22)},
	{"0:none", PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2b, 0x33, 0x24, 0x22)}, /* gt for ge */
	{"0:*sp+64 c-8 same from 1", PROGRAM(0x0f, 6, 0x77, 0xc0, 0, 6, 0x23, 8)}, /* a word, and more */
	{"0:none", PROGRAM(0x0f, 6, 0x77, 0xc0, 0, 6, 0x23, 7)},
	{"0:other+0 c-8 same", PROGRAM(0x0f, 2, 0x70, 0)}, /* rax */
	{"0:none", PROGRAM(0x0f, 3, 0x70, 0, 6)},          /* a word at rax */
	{"0:*sp+160 s+168 s+120 signal",
	 PROGRAM(0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 16, 3, 0x77, 0xa8, 1), .is_signal = true},
	{"0:end", PROGRAM(0x07, 16)},
	{"0:sp+8 c-8 undefined", PROGRAM(0x09, 6, 3)}, /* fp is in another register */
	{"0:sp+8 c-8 undefined", PROGRAM(0x14, 6, 3)},
	{"0:sp+8 c-8 same, 4:sp+40 c-8 same",
	 PROGRAM(0x44, 0x2e, 16, 0x13, 0x7b)}, /* args_size; offset_sf: -5 times -8 */
	{"0:sp+8 c+8 c+16", PROGRAM(0x11, 16, 0x7f, 0x2f, 6, 2)},
	{"0:sp+8 c-8 same", PROGRAM(0x83, 2, 0x8c, 3, 0xc3)}, /* registers that are not followed */
	{"0:sp+8 c-8 same, 8:sp+16 c-8 same",
	 PROGRAM(0x48, 0x0e, 16, 3, 0xff, 0xff, 0x0e, 24)}, /* beyond the function */
	{"0:sp+0 same same, 4:sp+16 c-16 c-8, 60:sp+0 same same",
	 PROGRAM(0x41, 0x0e, 16, 0x9d, 1, 0x9e, 2, 0x4e, 0xdd, 0xde, 0x0e, 0), .machine = PERFRING_UNWIND_AARCH64},
	{"0:sp+0 same same, 4:sp+0 same same signed, 8:fp+16 c-8 c-16 signed, 12:sp+0 same same",
	 PROGRAM(0x41, 0x2d, 0x41, 0x0c, 29, 16, 0x9d, 2, 0x9e, 1, 0x41, 0x0c, 31, 0, 0xdd, 0xde, 0x2d),
	 .machine = PERFRING_UNWIND_AARCH64},
};

/* After `pop %rbp` gcc's rule names the place on the stack still, which is below sp and in no copy: fp has its value again. */
Test(unwind, fp_that_was_popped)
{
	static const uint64_t words[] = {0x1111, 0x2222, 0x3333, 0x4444};
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	struct perfring_unwind_rule rule = {.cfa = PERFRING_UNWIND_CFA_SP,
					    .ra = PERFRING_UNWIND_AT_CFA,
					    .fp = PERFRING_UNWIND_AT_CFA,
					    .flags = PERFRING_UNWIND_PLAIN,
					    .cfa_offset = 16,
					    .ra_offset = -8,
					    .fp_offset = -24};
	struct perfring_unwind_registers registers = {.ip = 0x100, .sp = 0x7000, .fp = 0x7654};

	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_STEPPED);
	cr_assert_eq(registers.ip, 0x2222);
	cr_assert_eq(registers.sp, 0x7010);
	cr_assert_eq(registers.fp, 0x7654);
	cr_assert(!registers.has_no_fp);
	/* one that was lost stays so */
	registers = (struct perfring_unwind_registers){.ip = 0x100, .sp = 0x7000, .has_no_fp = true};
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_STEPPED);
	cr_assert(registers.has_no_fp);
	/* a function that has called another has not popped it */
	registers = (struct perfring_unwind_registers){.ip = 0x100, .sp = 0x7000, .is_return = true};
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_BAD);
}

Test(unwind, programs, .timeout = 60)
{
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *program = &programs[i];
		struct shape shape = {.machine = program->machine ? program->machine : PERFRING_UNWIND_X86_64,
				      .version = 1,
				      .encoding = 0x1b,
				      .has_length = true,
				      .is_signal = program->is_signal};
		bool is_x86 = shape.machine == PERFRING_UNWIND_X86_64;
		struct section section = {.address = 0x10000};
		struct perfring_unwind *unwind;
		uint32_t shared =
			put_shared(&section, &shape, is_x86 ? x86_initial : (uint8_t[]){0x0c, 31, 0}, is_x86 ? 5 : 3);

		put_function(&section, &shape, shared, 0x4000, 64, program->bytes, program->size);
		unwind = open_section(&section, &shape);
		rows_are(unwind, 0x4000, 64, program->expected);
		perfring_unwind_close(unwind);
	}
}

/* Each form of section, length, version and pointer, and functions out of order: the same rows. */
Test(unwind, forms, .timeout = 60)
{
	static const uint8_t encodings[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0x0b, 0x0c, 0x1b, 0x1c, 0x13};
	static const uint8_t versions[] = {1, 3, 4};
	static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
	static const uint64_t starts[] = {0x3000, 0x1000, 0x2000};
	struct perfring_unwind_rule rule;
	unsigned e, v, bits, i, forms = 0;

	for (e = 0; e < sizeof(encodings); e++)
		for (v = 0; v < sizeof(versions); v++)
			for (bits = 0; bits < 4; bits++) {
				struct shape shape = {.machine = PERFRING_UNWIND_X86_64,
						      .version = versions[v],
						      .encoding = encodings[e],
						      .is_debug = bits & 1,
						      .is_long = bits & 2,
						      .has_length = encodings[e] != 0};
				struct section section = {.address = shape.is_debug ? 0 : 0x100};
				struct perfring_unwind *unwind;
				uint32_t shared = put_shared(&section, &shape, x86_initial, 5);

				for (i = 0; i < 3; i++)
					put_function(&section, &shape, shared, starts[i], 64, program, sizeof(program));
				unwind = open_section(&section, &shape);
				for (i = 0; i < 3; i++)
					rows_are(unwind, starts[i], 64,
						 "0:sp+8 c-8 same, 1:sp+16 c-8 c-16, 4:fp+16 c-8 c-16");
				cr_assert_not(perfring_unwind_rule_at(unwind, 0x0fff, &rule, NULL));
				cr_assert_not(perfring_unwind_rule_at(unwind, 0x1040, &rule, NULL));
				cr_assert_eq(rule.cfa, PERFRING_UNWIND_CFA_NONE);
				cr_assert_eq(perfring_unwind_make(unwind, 0x1040), 0);
				perfring_unwind_close(unwind);
				forms++;
			}
	cr_assert_eq(forms, 132);
}

/*
 * A function whose address is elsewhere (an indirect pointer, in memory that is not described) has no rule; of a personality, which is
 * skipped, the pointer may be. The functions of the next entry have theirs.
 */
Test(unwind, indirect_pointers, .timeout = 60)
{
	static const uint8_t program[] = {0x41, 0x0e, 16};
	static const uint8_t with_personality[] = {
		1, 'z', 'P', 'R', 0, 1, 0x78, 16, 6, 0x9b, 1, 2, 3, 4, 0x03, /* zPR; 1, -8, ra; an indirect one of 4 bytes */
	};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .has_length = true};
	struct perfring_unwind_rule rule;
	uint8_t encoding;

	for (encoding = 0x80; encoding <= 0x9c; encoding++) {
		struct section section = {.address = 0x100};
		struct perfring_unwind *unwind;
		uint32_t shared;

		if ((encoding & 15) > 4 && (encoding & 15) < 9)
			continue; /* none */
		shape.encoding = encoding;
		shared = put_shared(&section, &shape, x86_initial, 5);
		put_function(&section, &shape, shared, 0x1000, 64, program, sizeof(program));
		shape.encoding = 0x03;
		shared = begin_entry(&section, false);
		put_number(&section, 0, 4);
		put(&section, with_personality, sizeof(with_personality));
		put(&section, x86_initial, 5);
		end_entry(&section, shared, false);
		put_function(&section, &shape, shared, 0x2000, 64, program, sizeof(program));
		unwind = open_section(&section, &shape);
		cr_assert_not(perfring_unwind_rule_at(unwind, 0x1000, &rule, NULL), "%#x", encoding);
		rows_are(unwind, 0x2000, 64, "0:sp+8 c-8 same, 1:sp+16 c-8 same");
		perfring_unwind_close(unwind);
	}
}

/* .eh_frame_hdr is used where it is right; unsorted, cut or wrong, the section itself is searched. */
Test(unwind, sorted_index, .timeout = 60)
{
	static const uint8_t program[] = {0x41, 0x0e, 16};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x1b, .has_length = true};
	struct section section = {.address = 0x10000}, header;
	struct perfring_unwind_totals totals;
	struct perfring_unwind *unwind;
	uint32_t shared = put_shared(&section, &shape, x86_initial, 5), places[8];
	unsigned way, i;

	for (i = 0; i < 8; i++) {
		places[i] = section.size;
		put_function(&section, &shape, shared, 0x1000 + 64 * i, 64, program, sizeof(program));
	}
	for (way = 0; way < 6; way++) {
		struct perfring_unwind_sections sections = {.machine = shape.machine,
							    .eh_frame = {section.bytes, section.size, section.address}};

		memset(&header, 0, sizeof(header));
		header.address = 0x8000;
		put(&header, (uint8_t[]){1, 0x1b, 0x03, way == 1 ? 0x1b : 0x3b}, 4);
		put_number(&header, section.address - header.address - 4, 4);
		put_number(&header, way == 2 ? 9 : 8, 4);
		for (i = 0; i < 8; i++) {
			unsigned k = way == 3 ? 7 - i : i;

			put_number(&header, 0x1000 + 64 * k - header.address, 4);
			put_number(&header, section.address + places[way == 4 ? k ^ 1 : k] - header.address, 4);
		}
		if (way == 5)
			header.size = 11;
		sections.eh_frame_hdr = (struct perfring_unwind_section){header.bytes, header.size, header.address};
		cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), 0);
		for (i = 0; i < 8; i++)
			rows_are(unwind, 0x1000 + 64 * i, 64, "0:sp+8 c-8 same, 1:sp+16 c-8 same");
		perfring_unwind_count(unwind, &totals);
		cr_assert_eq(totals.has_sorted_index, way == 0);
		cr_assert_eq(totals.functions, 8);
		cr_assert_eq(totals.made, 8);
		cr_assert_eq(totals.rules, 2);
		perfring_unwind_close(unwind);
	}
}

Test(unwind, refusals, .timeout = 60)
{
	struct perfring_unwind_sections sections = {.machine = 3, .eh_frame = {"", 1, 0}};
	struct perfring_unwind *unwind = (void *)&sections;

	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), -EINVAL);
	cr_assert_null(unwind);
	sections.machine = PERFRING_UNWIND_X86_64;
	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), -ENODATA);
	sections.eh_frame.size = 0;
	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), -ENODATA);
	cr_assert_eq(perfring_unwind_open(&unwind, "\177ELF", 4), -EINVAL);
	perfring_unwind_close(NULL);
	perfring_unwind_cache_close(NULL);
}

static uint64_t random_state = 88172645463325252;

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* ---- one step ---- */

Test(unwind, ends_of_a_step, .timeout = 60)
{
	uint64_t words[8] = {0, 0x1111, 0x2222, 0x3333, 0, 0x5555, 0x6666, 0x7777};
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	struct perfring_unwind_rule rule = {.cfa = PERFRING_UNWIND_CFA_SP,
					    .ra = PERFRING_UNWIND_AT_CFA,
					    .fp = PERFRING_UNWIND_AT_CFA,
					    .cfa_offset = 32,
					    .ra_offset = -8,
					    .fp_offset = -16};
	const struct perfring_unwind_registers from = {.ip = 0x400000, .sp = 0x7000, .fp = 0x7020};
	struct perfring_unwind_registers now = from;

	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(now.ip == 0x3333 && now.sp == 0x7020 && now.fp == 0x2222 && now.is_return && !now.has_no_fp);
	/* The last word that is inside, and the first that is not whole. */
	rule.cfa_offset = 64;
	now = from;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert_eq(now.ip, 0x7777);
	rule.cfa_offset = 65;
	now = from;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_TRUNCATED);
	cr_assert_eq(memcmp(&now, &from, sizeof(now)), 0);
	rule.cfa_offset = 0; /* the ra would be below the stack */
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_BAD);
	rule.cfa_offset = 40; /* a return address of 0 */
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_WHOLE);
	rule.ra = PERFRING_UNWIND_AT_UNDEFINED;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_WHOLE);
	rule.cfa = PERFRING_UNWIND_CFA_NONE;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE);
	/* No progress. */
	rule = (struct perfring_unwind_rule){
		.cfa = PERFRING_UNWIND_CFA_FP, .ra = PERFRING_UNWIND_AT_SP, .ra_offset = 8};
	now.fp = now.sp;
	now.is_return = true;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_BAD);
	now.has_no_fp = true;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE);
	/* A leaf of aarch64, its address signed; and lr is not known of a function that has called. */
	rule = (struct perfring_unwind_rule){.cfa = PERFRING_UNWIND_CFA_SP, .flags = PERFRING_UNWIND_SIGNED};
	now = from;
	now.lr = 0x00d5000000401234;
	now.pac_mask = 0xffff000000000000;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(now.ip == 0x401234 && now.sp == 0x7000 && now.fp == 0x7020);
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_BAD);
	/* A PLT's entry, before and after its push. */
	rule = (struct perfring_unwind_rule){.cfa = PERFRING_UNWIND_CFA_PLT,
					     .ra = PERFRING_UNWIND_AT_CFA,
					     .flags = 11 << PERFRING_UNWIND_MORE,
					     .cfa_offset = 8,
					     .ra_offset = -8};
	for (unsigned i = 0; i < 2; i++) {
		now = from;
		now.sp += 8;
		now.ip = 0x40100a + i;
		cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
		cr_assert_eq(now.ip, i ? 0x2222 : 0x1111);
	}
	/* A signal's frame: to another stack, which is there or not. */
	rule = (struct perfring_unwind_rule){.cfa = PERFRING_UNWIND_CFA_DEREF_SP,
					     .ra = PERFRING_UNWIND_AT_SP,
					     .flags = PERFRING_UNWIND_SIGNAL,
					     .cfa_offset = 8,
					     .ra_offset = 16};
	now = from;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(now.ip == 0x2222 && now.sp == 0x1111 && !now.is_return);
	rule = (struct perfring_unwind_rule){
		.cfa = PERFRING_UNWIND_CFA_SP, .ra = PERFRING_UNWIND_AT_CFA, .cfa_offset = 8, .ra_offset = -8};
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_TRUNCATED);
	struct perfring_unwind_stack other = perfring_unwind_stack_init(words + 2, 0x1111, 16);
	stack.other = &other;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(now.ip == 0x2222 && now.sp == 0x1119 && now.is_return);
}

/* A plain rule is followed as the others are: by random registers and rules. */
Test(unwind, plain_is_slow, .timeout = 60)
{
	uint64_t words[32] = {0};
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	unsigned long plain = 0, stepped = 0, round;

	for (round = 0; round < 200000; round++) {
		struct perfring_unwind_registers now = {.ip = 0x400000,
							.sp = 0x7000 + 8 * (random_number() % 34),
							.fp = 0x7000 + 8 * (random_number() % 34),
							.lr = 5,
							.is_return = random_number() & 1,
							.has_no_fp = random_number() % 8 == 0},
						 other = now;
		struct perfring_unwind_rule rule = {.cfa = 1 + (uint8_t)(random_number() % 2),
						    .ra = PERFRING_UNWIND_AT_CFA,
						    .fp = (uint8_t)(random_number() % 2),
						    .flags = PERFRING_UNWIND_PLAIN,
						    .cfa_offset = 8 * (int32_t)(random_number() % 20) - 16,
						    .ra_offset = 8 * (int32_t)(random_number() % 4) - 16,
						    .fp_offset = 8 * (int32_t)(random_number() % 4) - 24};
		struct perfring_unwind_rule same = rule;
		enum perfring_unwind_end end;

		words[round % 32] = random_number() % 4 ? random_number() : 0;
		same.flags = 0;
		end = perfring_unwind_step(&rule, &stack, &now);
		cr_assert_eq(end, perfring_unwind_step_slow(&same, &stack, &other));
		cr_assert(now.ip == other.ip && now.sp == other.sp && now.fp == other.fp &&
			  now.is_return == other.is_return && now.has_no_fp == other.has_no_fp);
		plain += !other.has_no_fp;
		stepped += end == PERFRING_UNWIND_STEPPED;
	}
	cr_assert(plain > 100000 && stepped > 20000, "%lu %lu", plain, stepped);
}

/* A call that is the last instruction of its function: the return address is the next function's.  Below a signal's frame the
 * address is the interrupted instruction's.  One cache serves two address spaces. */
Test(unwind, addresses, .timeout = 60)
{
	static const uint8_t of_16[] = {0x0e, 16}, of_24[] = {0x0e, 24};
	static const uint8_t of_signal[] = {0x0f, 3, 0x77, 16, 6, 0x10, 16, 2, 0x77, 24};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x03, .has_length = true};
	struct section section = {.address = 0x10000};
	uint64_t words[16] = {0}, ips[16];
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	struct perfring_unwind_registers registers = {.ip = 0x1000, .sp = 0x7000};
	struct perfring_unwind_cache *rules;
	struct perfring_unwind *unwind;
	enum perfring_unwind_end end;
	uint32_t shared = put_shared(&section, &shape, x86_initial, 5);

	put_function(&section, &shape, shared, 0x1000, 0x40, of_16, sizeof(of_16));
	put_function(&section, &shape, shared, 0x1040, 0x40, of_24, sizeof(of_24));
	shape.is_signal = true;
	shared = put_shared(&section, &shape, x86_initial, 5);
	put_function(&section, &shape, shared, 0x1080, 0x40, of_signal, sizeof(of_signal));
	unwind = open_section(&section, &shape);
	cr_assert_eq(perfring_unwind_cache_open(&rules, 64), 0);

	const struct perfring_unwind_map one = {0x1000, 0x2000, 0, unwind},
					 moved = {0x1000, 0x2000, (uint64_t)-0x40, unwind};
	const struct perfring_unwind_space spaces[] = {{&one, 1, 1, true, false}, {&moved, 1, 2, true, false}};

	words[1] = 0x1040; /* of the frame of 16 bytes: called at 0x103f, whose frame has 16 too */
	words[3] = 0x1088; /* a signal's return: its CFA is the word at sp + 16, its ip at sp + 24 */
	words[4 + 2] = 0x7040;
	words[4 + 3] = 0x1040; /* interrupted at the first instruction of the frame of 24 */
	words[8 + 2] = 0x1010;
	for (unsigned again = 0; again < 3; again++) { /* the last time without a cache */
		struct perfring_unwind_cache *cached = again < 2 ? rules : NULL;

		registers = (struct perfring_unwind_registers){.ip = 0x1000, .sp = 0x7000};
		cr_assert_eq(perfring_unwind_walk(&spaces[0], cached, &registers, &stack, ips, 16, &end), 5);
		cr_assert(ips[0] == 0x1000 && ips[1] == 0x1040 && ips[2] == 0x1088 && ips[3] == 0x1040 &&
			  ips[4] == 0x1010);
		cr_assert_eq(end, PERFRING_UNWIND_WHOLE); /* a return address of 0 */
		/* Where the object lies 64 bytes lower, 0x1000 has the frame of 24. */
		registers = (struct perfring_unwind_registers){.ip = 0x1000, .sp = 0x7008};
		cr_assert_eq(perfring_unwind_walk(&spaces[1], cached, &registers, &stack, ips, 2, &end), 2);
		cr_assert_eq(ips[1], 0x1088);
	}
	/* lr is known of the innermost frame alone. */
	struct perfring_unwind_rule rule = {.cfa = PERFRING_UNWIND_CFA_SP,
					    .ra = PERFRING_UNWIND_AT_CFA,
					    .flags = PERFRING_UNWIND_SIGNAL,
					    .cfa_offset = 16,
					    .ra_offset = -8};
	registers = (struct perfring_unwind_registers){.ip = 0x1000, .sp = 0x7000, .lr = 0x1234};
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_STEPPED);
	rule = (struct perfring_unwind_rule){.cfa = PERFRING_UNWIND_CFA_SP};
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_NO_RULE);
	perfring_unwind_cache_close(rules);
	perfring_unwind_close(unwind);
}

/* ---- registers that are not followed ---- */

static bool get_one(const void *of, uint32_t number, uint64_t *value)
{
	*value = *(const uint64_t *)of;
	return number == 3;
}

/* A CFA in another register: of the innermost frame, if it is known; not of one that has called, nor below a signal's. */
Test(unwind, other_registers, .timeout = 60)
{
	static const uint64_t words[] = {0x1111, 0x2222, 0x3333, 0x4444}, place = 0x7000;
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	struct perfring_unwind_rule rule = {.cfa = PERFRING_UNWIND_CFA_OTHER,
					    .ra = PERFRING_UNWIND_AT_CFA,
					    .flags = 3 << PERFRING_UNWIND_MORE,
					    .cfa_offset = 16,
					    .ra_offset = -8};
	const struct perfring_unwind_registers from = {.ip = 0x100, .sp = 0x7000, .other = get_one, .of = &place};
	struct perfring_unwind_registers now = from;

	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(now.ip == 0x2222 && now.sp == 0x7010);
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE); /* it is a caller */
	now = from;
	now.other = NULL;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE);
	now = from;
	rule.flags = 4 << PERFRING_UNWIND_MORE; /* not known */
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE);
	rule.flags = 3 << PERFRING_UNWIND_MORE | PERFRING_UNWIND_SIGNAL;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_STEPPED);
	cr_assert(!now.is_return);
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &now), PERFRING_UNWIND_NO_RULE);
}

/* A caller's CFA in a register that those below it have saved, or left as it is: by a walk with a cache, without one, and in two such
 * frames; unknown where a frame has lost it, and after make_all, which leaves no descriptions. */
Test(unwind, other_registers_of_callers, .timeout = 60)
{
	static const uint8_t saves[] = {0x0e, 24, 0x80 | 3, 3};       /* CFA sp+24; rbx at CFA-24 */
	static const uint8_t leaves[] = {0x0e, 16};                   /* CFA sp+16 */
	static const uint8_t realigns[] = {0x0c, 3, 16, 0x80 | 3, 2}; /* CFA rbx+16; rbx at CFA-16 */
	static const uint8_t loses[] = {0x0e, 16, 0x07, 3};           /* CFA sp+16; rbx undefined */
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x03, .has_length = true};
	struct section section = {.address = 0x10000};
	uint64_t words[32] = {0}, ips[16];
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	struct perfring_unwind_cache *rules;
	struct perfring_unwind *unwind;
	uint32_t shared = put_shared(&section, &shape, x86_initial, 5);

	put_function(&section, &shape, shared, 0x1000, 0x40, saves, sizeof(saves));
	put_function(&section, &shape, shared, 0x1040, 0x40, leaves, sizeof(leaves));
	put_function(&section, &shape, shared, 0x1080, 0x40, realigns, sizeof(realigns));
	put_function(&section, &shape, shared, 0x10c0, 0x40, loses, sizeof(loses));
	unwind = open_section(&section, &shape);
	cr_assert_eq(perfring_unwind_cache_open(&rules, 64), 0);

	const struct perfring_unwind_map map = {0x1000, 0x2000, 0, unwind};
	const struct perfring_unwind_space space = {&map, 1, 1, true, false};

	words[0] = 0x7060; /* the first frame has saved rbx of the third */
	words[2] = 0x1050;
	words[4] = 0x1090;  /* the third's stack pointer says nothing: its CFA is 0x7070 */
	words[12] = 0x70a0; /* rbx of the fourth, which is such a one too */
	words[13] = 0x1098;
	words[20] = 0;
	words[21] = 0;
	for (unsigned way = 0; way < 4; way++) {
		struct perfring_unwind_registers registers = {.ip = 0x1008, .sp = 0x7000};
		enum perfring_unwind_end end;
		uint32_t nr;

		words[2] = way == 2 ? 0x10d0 : 0x1050; /* the second loses it */
		if (way == 3)
			cr_assert_eq(perfring_unwind_make_all(unwind), 0);
		nr = perfring_unwind_walk(&space, way == 0 ? rules : NULL, &registers, &stack, ips, 16, &end);
		if (way < 2) {
			cr_assert_eq(nr, 4, "%u", nr);
			cr_assert(ips[2] == 0x1090 && ips[3] == 0x1098);
			cr_assert_eq(end, PERFRING_UNWIND_WHOLE);
			cr_assert_eq(registers.sp, 0x7070);
		} else {
			cr_assert_eq(nr, 3);
			cr_assert_eq(end, PERFRING_UNWIND_NO_RULE);
		}
	}
	perfring_unwind_cache_close(rules);
	perfring_unwind_close(unwind);
}

static sigjmp_buf way_out;

static void leave_walk(int number)
{
	siglongjmp(way_out, number);
}

/* A handler of a fault at the description leaves the walk: when the bytes are there again, so is the rule. */
Test(unwind, a_walk_that_a_handler_leaves, .timeout = 60)
{
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x03, .has_length = true};
	static const uint8_t pushes[] = {0x0e, 16}; /* CFA sp+16 */
	uint64_t words[4] = {0, 0x1010, 0, 0}, ips[4];
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	const struct perfring_unwind_registers from = {.ip = 0x1008, .sp = 0x7000};
	size_t size = ((sizeof(struct section) - 1) / (size_t)getpagesize() + 1) * (size_t)getpagesize();
	struct section *section = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_handler = leave_walk}, before;
	struct perfring_unwind_registers registers = from;
	struct perfring_unwind_cache *rules;
	struct perfring_unwind *unwind;
	enum perfring_unwind_end end;
	volatile int faults = 0;
	uint32_t shared;

	cr_assert_neq(section, MAP_FAILED);
	section->address = 0x10000;
	shared = put_shared(section, &shape, x86_initial, 5);
	put_function(section, &shape, shared, 0x1000, 0x40, pushes, sizeof(pushes));
	unwind = open_section(section, &shape);
	cr_assert_eq(perfring_unwind_cache_open(&rules, 64), 0);

	const struct perfring_unwind_map map = {0x1000, 0x2000, 0, unwind};
	const struct perfring_unwind_space space = {&map, 1, 1, true, false};

	cr_assert_eq(sigaction(SIGSEGV, &action, &before), 0);
	cr_assert_eq(mprotect(section, size, PROT_NONE), 0);
	if (sigsetjmp(way_out, 1) == 0)
		perfring_unwind_walk(&space, rules, &registers, &stack, ips, 1, &end);
	else
		faults++;
	cr_assert_eq(mprotect(section, size, PROT_READ), 0);
	cr_assert_eq(sigaction(SIGSEGV, &before, NULL), 0);
	cr_assert_eq(faults, 1);
	registers = from;
	cr_assert_eq(perfring_unwind_walk(&space, rules, &registers, &stack, ips, 1, &end), 1);
	cr_assert_eq(end, PERFRING_UNWIND_FULL);
	cr_assert_eq(registers.ip, 0x1010);
	perfring_unwind_cache_close(rules);
	perfring_unwind_close(unwind);
	munmap(section, size);
}

/* The PLT that no entry describes: its first entry, others before and after their push, with endbr64 too; bytes before and after it are no
 * part of it. */
Test(unwind, undescribed_plt, .timeout = 60)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const struct {
		uint64_t at;
		const char *rule;
	} expected[2][6] = {
		{{0x1fff, "none"},
		 {0x2005, "sp+16 c-8 same"},
		 {0x2006, "sp+24 c-8 same"},
		 {0x2010, "plt+8 c-8 same from 11"},
		 {0x202f, "plt+8 c-8 same from 11"},
		 {0x2030, "none"}},
		{{0x1fff, "none"},
		 {0x2005, "sp+16 c-8 same"},
		 {0x2006, "sp+24 c-8 same"},
		 {0x2010, "plt+8 c-8 same from 9"},
		 {0x202f, "plt+8 c-8 same from 9"},
		 {0x2030, "none"}},
	};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x03, .has_length = true};
	uint8_t plt[48] = {0};

	for (unsigned with = 0; with < 2; with++) {
		struct section section = {.address = 0x10000};
		struct perfring_unwind_sections sections = {.machine = shape.machine};
		struct perfring_unwind *unwind;
		struct perfring_unwind_rule rule;
		char text[64];

		put_function(&section, &shape, put_shared(&section, &shape, x86_initial, 5), 0x1000, 0x40, x86_initial,
			     3);
		if (with)
			memcpy(plt + 16, endbr64, sizeof(endbr64));
		sections.eh_frame = (struct perfring_unwind_section){section.bytes, section.size, section.address};
		sections.plt = (struct perfring_unwind_section){plt, sizeof(plt), 0x2000};
		cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), 0);
		for (unsigned all = 0; all < 2; all++) {
			for (size_t i = 0; i < 6; i++) {
				perfring_unwind_rule_at(unwind, expected[with][i].at, &rule, NULL);
				cr_assert_str_eq(text_of(&rule, text), expected[with][i].rule, "%s", text);
			}
			cr_assert_eq(perfring_unwind_make_all(unwind), 0);
		}
		perfring_unwind_close(unwind);
	}
}

/* ---- words that the caller reads ---- */

static uint64_t read_words[8];
static uint32_t reads;

static enum perfring_unwind_end read_elsewhere(const struct perfring_unwind_stack *stack, uint64_t sp, uint64_t at,
					       uint64_t *word)
{
	(void)stack;
	reads++;
	if (at < sp)
		return PERFRING_UNWIND_BAD;
	if (at - 0x9000 >= sizeof(read_words))
		return PERFRING_UNWIND_TRUNCATED;
	*word = read_words[(at - 0x9000) / 8];
	return PERFRING_UNWIND_STEPPED;
}

/* A frame whose words are in no view; the same frame where there is none; and one with a word that lies in the view. */
Test(unwind, words_that_are_read, .timeout = 60)
{
	static const uint64_t words[2] = {0, 0x2222};
	struct perfring_unwind_stack stack = perfring_unwind_stack_init(words, 0x7000, sizeof(words));
	const struct perfring_unwind_rule rule = {.cfa = PERFRING_UNWIND_CFA_SP,
						  .ra = PERFRING_UNWIND_AT_CFA,
						  .flags = PERFRING_UNWIND_PLAIN,
						  .cfa_offset = 16,
						  .ra_offset = -8};
	struct perfring_unwind_registers registers = {.ip = 0x1000, .sp = 0x9000};

	read_words[1] = 0x1111;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_TRUNCATED);
	stack.read = read_elsewhere;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_STEPPED);
	cr_assert(registers.ip == 0x1111 && registers.sp == 0x9010 && reads == 1);
	registers.sp = 0x7000;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_STEPPED);
	cr_assert(registers.ip == 0x2222 && reads == 1);
	registers.sp = 0xa000;
	cr_assert_eq(perfring_unwind_step(&rule, &stack, &registers), PERFRING_UNWIND_TRUNCATED);
	cr_assert_eq(reads, 2);
}

/* ---- the same rows as libdw ---- */

struct image {
	uint8_t *bytes;
	size_t size;
};

static struct image map_file(const char *path)
{
	struct image image = {NULL, 0};
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return image;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0) {
		image.bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		image.size = (size_t)stat.st_size;
	}
	close(fd);
	if (image.bytes == MAP_FAILED)
		image = (struct image){NULL, 0};
	return image;
}

/* The vdso: as many bytes as its mapping has. */
static struct image map_vdso(void)
{
	struct image image = {(uint8_t *)getauxval(AT_SYSINFO_EHDR), 0};
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start == (unsigned long)image.bytes)
			image.size = end - start;
	if (maps)
		fclose(maps);
	if (!image.size)
		image.bytes = NULL;
	return image;
}

/* An image without headers of sections has the rules that it has with them; a file of debug information has none. */
Test(unwind, images, .timeout = 60)
{
	struct image image = map_file("/proc/self/exe");
	ElfW(Ehdr) *header = (void *)image.bytes;
	struct perfring_unwind *with = NULL, *without = NULL, *none;
	struct perfring_unwind_rule rules[2];
	struct perfring_unwind_totals totals;
	uint64_t start, end, ends[2], i, at;
	ElfW(Ehdr) saved;
	ElfW(Shdr) * sections;

	cr_assert_not_null(image.bytes);
#if !defined(__x86_64__) && !defined(__aarch64__)
	cr_assert_eq(perfring_unwind_open(&with, image.bytes, image.size), -EINVAL);
	return;
#endif
	cr_assert_eq(perfring_unwind_open(&with, image.bytes, image.size), 0);
	saved = *header;
	header->e_shoff = 0;
	header->e_shnum = 0;
	cr_assert_eq(perfring_unwind_open(&without, image.bytes, image.size), 0);
	perfring_unwind_count(with, &totals);
	cr_assert(totals.functions > 20 && totals.has_sorted_index);
	for (i = 0; i < totals.functions; i++) {
		cr_assert_eq(perfring_unwind_function(with, i, &start, &end), 1);
		for (at = start; at < end; at = ends[0]) {
			cr_assert_eq(perfring_unwind_rule_at(with, at, &rules[0], &ends[0]),
				     perfring_unwind_rule_at(without, at, &rules[1], &ends[1]));
			cr_assert(ends[0] == ends[1] && !memcmp(&rules[0], &rules[1], sizeof(rules[0])));
		}
	}
	perfring_unwind_close(with);
	perfring_unwind_close(without);
	*header = saved;
	sections = (void *)(image.bytes + saved.e_shoff);
	for (i = 0; i < saved.e_shnum; i++)
		if (sections[i].sh_flags & SHF_ALLOC)
			sections[i].sh_type = SHT_NOBITS;
		else if (sections[i].sh_type == SHT_PROGBITS)
			sections[i].sh_size = 0; /* .debug_frame, if there is one */
	cr_assert_eq(perfring_unwind_open(&none, image.bytes, image.size), -ENODATA);
	munmap(image.bytes, image.size);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* When all rows are made, the object's bytes may go: the rules stay, with and without .eh_frame_hdr. */
Test(unwind, all_rows_outlive_the_bytes, .timeout = 60)
{
	struct image image = map_file("/proc/self/exe"), other;
	struct perfring_unwind *with = NULL, *made = NULL;
	struct perfring_unwind_rule rules[2];
	struct perfring_unwind_totals totals;
	uint64_t starts[2], stops[2], ends[2], i, at, rows;

	cr_assert_not_null(image.bytes);
	cr_assert_eq(perfring_unwind_open(&with, image.bytes, image.size), 0);
	perfring_unwind_count(with, &totals);
	for (unsigned unsorted = 0; unsorted < 2; unsorted++) {
		struct perfring_unwind_sections sections = {.machine = ((ElfW(Ehdr) *)(void *)image.bytes)->e_machine};
		ElfW(Phdr) * header;

		other = map_file("/proc/self/exe");
		header = (void *)(other.bytes + ((ElfW(Ehdr) *)(void *)other.bytes)->e_phoff);
		while (header->p_type != PT_GNU_EH_FRAME)
			header++;
		/* The first segment that has it begins at offset 0: .eh_frame goes up to the end of the file here. */
		sections.eh_frame_hdr = (struct perfring_unwind_section){
			other.bytes + header->p_offset, unsorted ? 0 : header->p_filesz, header->p_vaddr};
		at = header->p_offset + 4 +
		     (uint64_t)(int64_t) * (int32_t *)(void *)(other.bytes + header->p_offset + 4);
		sections.eh_frame = (struct perfring_unwind_section){other.bytes + at, other.size - at,
								     header->p_vaddr + at - header->p_offset};
		cr_assert_eq(perfring_unwind_open_sections(&made, &sections), 0);
		cr_assert_eq(perfring_unwind_make_all(made), 0);
		munmap(other.bytes, other.size);
		for (i = rows = 0; i < totals.functions; i++) {
			cr_assert_eq(perfring_unwind_function(with, i, &starts[0], &stops[0]), 1);
			if (!unsorted) {
				cr_assert_eq(perfring_unwind_function(made, i, &starts[1], &stops[1]), 1);
				cr_assert(starts[0] == starts[1] && stops[0] == stops[1]);
			}
			cr_assert_eq(perfring_unwind_make(made, starts[0]), 1);
			for (at = starts[0]; at <= stops[0]; at = ends[0], rows++) {
				cr_assert_eq(perfring_unwind_rule_at(with, at, &rules[0], &ends[0]),
					     perfring_unwind_rule_at(made, at, &rules[1], &ends[1]));
				cr_assert(!memcmp(&rules[0], &rules[1], sizeof(rules[0])));
				while (ends[1] < ends[0]) { /* a row that is like the one before it is made once */
					cr_assert(perfring_unwind_rule_at(made, ends[1], &rules[1], &ends[1]) &&
						  !memcmp(&rules[0], &rules[1], sizeof(rules[0])));
				}
			}
		}
		cr_assert_gt(rows, totals.functions);
		perfring_unwind_count(made, &totals);
		cr_assert(totals.made == totals.functions && !totals.has_sorted_index);
		cr_assert_eq(perfring_unwind_make_all(made), 0);
		perfring_unwind_close(made);
	}
	perfring_unwind_close(with);
	munmap(image.bytes, image.size);
}
#endif

#ifdef HAVE_LIBDW

/* A thread's registers and memory, made up: what either side computes of them must be equal. */
enum {
	SP_VALUE = 0x7ff00000,
	FP_VALUE = 0x7ff00800,
	OTHER_VALUE = 0x7fe00000, /* and a page for each register */
};

static uint64_t memory_at(uint64_t at)
{
	return (at * 0x9e3779b97f4a7c15) ^ (at >> 7);
}

enum outcome {
	VALUE,
	SAME,
	UNDEFINED,
	UNKNOWN, /* needs what this evaluator, or the rules, do not have */
};

struct value {
	enum outcome outcome;
	uint64_t number;
};

static bool is_equal(struct value one, struct value other)
{
	return one.outcome == other.outcome && (one.outcome != VALUE || one.number == other.number);
}

struct columns {
	uint32_t machine;
	int sp;
	int fp;
	int ra;
	uint64_t ip;
};

static bool column_value(const struct columns *columns, uint64_t column, uint64_t *value)
{
	*value = column == (uint64_t)columns->sp   ? SP_VALUE
		 : column == (uint64_t)columns->fp ? FP_VALUE
		 : column < 16                     ? OTHER_VALUE + 4096 * column
						   : columns->ip;
	return column == (uint64_t)columns->sp || column == (uint64_t)columns->fp || column < 16 ||
	       (columns->machine == PERFRING_UNWIND_X86_64 && column == 16);
}

/* libdw's operators; `place`: their value is where it is, not what. */
static struct value evaluate(const struct columns *columns, const Dwarf_Op *ops, size_t count, uint64_t cfa,
			     bool is_place)
{
	uint64_t stack[8] = {0}, base;
	size_t depth = 0, i;

	for (i = 0; i < count; i++) {
		unsigned atom = ops[i].atom;

		if (depth == 8 ||
		    (depth < 2 && (atom == DW_OP_plus || atom == DW_OP_and || atom == DW_OP_ge || atom == DW_OP_shl)) ||
		    (depth < 1 && (atom == DW_OP_plus_uconst || atom == DW_OP_deref)))
			return (struct value){UNKNOWN, 0};
		if (atom == DW_OP_call_frame_cfa) {
			stack[depth++] = cfa;
		} else if ((atom >= DW_OP_breg0 && atom <= DW_OP_breg31) || atom == DW_OP_bregx) {
			bool is_x = atom == DW_OP_bregx;

			if (!column_value(columns, is_x ? ops[i].number : atom - DW_OP_breg0, &base))
				return (struct value){UNKNOWN, 0};
			stack[depth++] = base + (is_x ? ops[i].number2 : ops[i].number);
		} else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
			stack[depth++] = atom - DW_OP_lit0;
		} else if (atom == DW_OP_plus_uconst) {
			stack[depth - 1] += ops[i].number;
		} else if (atom == DW_OP_deref) {
			stack[depth - 1] = memory_at(stack[depth - 1]);
		} else if (atom == DW_OP_plus || atom == DW_OP_and || atom == DW_OP_ge || atom == DW_OP_shl) {
			uint64_t b = stack[--depth], a = stack[depth - 1];

			stack[depth - 1] = atom == DW_OP_plus  ? a + b
					   : atom == DW_OP_and ? a & b
					   : atom == DW_OP_ge  ? (int64_t)a >= (int64_t)b
							       : a << (b & 63);
		} else {
			return (struct value){UNKNOWN, 0};
		}
	}
	if (depth == 0)
		return (struct value){UNKNOWN, 0};
	return (struct value){VALUE, is_place ? memory_at(stack[depth - 1]) : stack[depth - 1]};
}

/* What libdw says of a column. */
static struct value libdw_column(Dwarf_Frame *frame, const struct columns *columns, int column, uint64_t cfa)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dwarf_frame_register(frame, column, memory, &ops, &count))
		return (struct value){UNKNOWN, 0};
	if (count == 0)
		return (struct value){ops == memory ? UNDEFINED : SAME, 0};
	return evaluate(columns, ops, count, cfa, true);
}

static struct value rule_column(uint8_t kind, int32_t offset, uint64_t cfa)
{
	uint64_t base = kind == PERFRING_UNWIND_AT_CFA ? cfa : kind == PERFRING_UNWIND_AT_SP ? SP_VALUE : FP_VALUE;

	if (kind == PERFRING_UNWIND_AT_SAME)
		return (struct value){SAME, 0};
	if (kind == PERFRING_UNWIND_AT_UNDEFINED)
		return (struct value){UNDEFINED, 0};
	return (struct value){VALUE, memory_at(base + (uint64_t)(int64_t)offset)};
}

static uint64_t rule_cfa(const struct perfring_unwind_rule *rule, uint64_t ip)
{
	uint64_t offset = (uint64_t)(int64_t)rule->cfa_offset, number = rule->flags >> PERFRING_UNWIND_MORE;

	switch (rule->cfa) {
	case PERFRING_UNWIND_CFA_SP:
		return SP_VALUE + offset;
	case PERFRING_UNWIND_CFA_FP:
		return FP_VALUE + offset;
	case PERFRING_UNWIND_CFA_DEREF_SP:
		return memory_at(SP_VALUE + offset) + 8 * number;
	case PERFRING_UNWIND_CFA_DEREF_FP:
		return memory_at(FP_VALUE + offset) + 8 * number;
	case PERFRING_UNWIND_CFA_OTHER:
		return OTHER_VALUE + 4096 * number + offset;
	default:
		return SP_VALUE + offset + ((ip & 15) >= number ? 8 : 0);
	}
}

struct shares {
	uint64_t rows;
	uint64_t equal;
	uint64_t missing; /* libdw has a rule, and there is none here */
	uint64_t neither;
	uint64_t wrong;
};

/* One row: equal, missing, or wrong. */
static void compare_row(struct shares *shares, Dwarf_Frame *frame, const struct columns *columns,
			const struct perfring_unwind_rule *rule, bool is_signal)
{
	Dwarf_Op *ops;
	size_t count;
	struct value cfa, ra, fp;
	uint64_t ours;
	bool has_cfa = !dwarf_frame_cfa(frame, &ops, &count) && count > 0;

	cfa = has_cfa ? evaluate(columns, ops, count, 0, false) : (struct value){UNKNOWN, 0};
	ra = libdw_column(frame, columns, columns->ra, cfa.number);
	fp = libdw_column(frame, columns, columns->fp, cfa.number);
	shares->rows++;
	if (rule->cfa == PERFRING_UNWIND_CFA_NONE) {
		shares->missing++;
		return;
	}
	if (rule->ra == PERFRING_UNWIND_AT_UNDEFINED) {
		shares->equal += ra.outcome == UNDEFINED;
		shares->wrong += ra.outcome != UNDEFINED;
		return;
	}
	ours = rule_cfa(rule, columns->ip);
	/* What libdw has in a register, or as a value, is undefined here. */
	if (fp.outcome == UNKNOWN)
		fp.outcome = UNDEFINED;
	if (cfa.outcome == VALUE && cfa.number == ours && is_equal(ra, rule_column(rule->ra, rule->ra_offset, ours)) &&
	    is_equal(fp, rule_column(rule->fp, rule->fp_offset, ours)) &&
	    is_signal == !!(rule->flags & PERFRING_UNWIND_SIGNAL))
		shares->equal++;
	else
		shares->wrong++;
}

/* Every `step`th function; by rows, which are made, or by the descriptions. */
static void compare_object(struct shares *shares, struct perfring_unwind *unwind, Dwarf_CFI *cfi,
			   struct columns columns, uint64_t step, bool makes)
{
	struct perfring_unwind_totals totals;
	struct perfring_unwind_rule rule;
	uint64_t i, at, start, end, our_end;
	Dwarf_Addr row_start, row_end;
	Dwarf_Frame *frame;
	bool is_signal;

	perfring_unwind_count(unwind, &totals);
	for (i = 0; i < totals.functions; i += step) {
		if (!perfring_unwind_function(unwind, i, &start, &end))
			continue;
		if (makes)
			cr_assert_eq(perfring_unwind_make(unwind, start), 1);
		for (at = start; at < end;) {
			bool found = perfring_unwind_rule_at(unwind, at, &rule, &our_end);

			if (dwarf_cfi_addrframe(cfi, at, &frame)) {
				shares->rows++;
				shares->neither += !found;
				shares->wrong += found;
				at = our_end;
				continue;
			}
			dwarf_frame_info(frame, &row_start, &row_end, &is_signal);
			columns.ip = at;
			compare_row(shares, frame, &columns, &rule, is_signal);
			free(frame);
			cr_assert(our_end > at && row_end > at);
			at = row_end < our_end ? row_end : our_end;
		}
	}
}

/* Prints a line, and asserts what holds of every object.  Returns whether the object is there. */
static bool compare_image(const char *name, struct image image)
{
	struct shares shares = {0};
	struct perfring_unwind_totals totals;
	struct perfring_unwind *unwind = NULL;
	struct columns columns;
	Dwarf *dwarf = NULL;
	Dwarf_CFI *cfi, *in_elf;
	Elf *elf;
	int ret;

	if (!image.bytes)
		return false;
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image.bytes, image.size);
	cfi = in_elf = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (elf && !cfi) { /* Go's linker writes .debug_frame alone */
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
	}
	ret = perfring_unwind_open(&unwind, image.bytes, image.size);
	if (!cfi || ret) {
		printf("unwind: %s: no unwind sections (%s, %s)\n", name, cfi ? "libdw: some" : "libdw: none",
		       strerror(-ret));
		cr_assert(!cfi && ret);
		dwarf_end(dwarf);
		elf_end(elf);
		return false;
	}
	columns.machine = image.bytes[18];
	columns.sp = columns.machine == PERFRING_UNWIND_X86_64 ? 7 : 31;
	columns.fp = columns.machine == PERFRING_UNWIND_X86_64 ? 6 : 29;
	columns.ra = columns.machine == PERFRING_UNWIND_X86_64 ? 16 : 30;
	compare_object(&shares, unwind, cfi, columns, 8, false);
	compare_object(&shares, unwind, cfi, columns, 1, true);
	perfring_unwind_count(unwind, &totals);
	printf("unwind: %s: %llu rows compared, %llu equal, %llu without a rule here (%.4f %%), %llu without one on either side, "
	       "%llu differ; %llu functions, %llu rules, %.2f bytes of rows a byte of description, %.2f of memory\n",
	       name, (unsigned long long)shares.rows, (unsigned long long)shares.equal,
	       (unsigned long long)shares.missing,
	       100.0 * (double)shares.missing / (double)(shares.rows ? shares.rows : 1),
	       (unsigned long long)shares.neither, (unsigned long long)shares.wrong,
	       (unsigned long long)totals.functions, (unsigned long long)totals.rules,
	       (double)totals.row_bytes / (double)(totals.described ? totals.described : 1),
	       (double)totals.memory / (double)(totals.described ? totals.described : 1));
	fflush(stdout);
	cr_assert_gt(shares.rows, 0);
	cr_assert_eq(shares.wrong, 0, "%s", name);
	cr_assert_leq(shares.missing * 10000, shares.rows + 160000, "%s: %llu", name,
		      (unsigned long long)shares.missing);
	cr_assert_leq(totals.row_bytes, 2 * totals.described + 256, "%s", name);
	cr_assert_leq(totals.rules, PERFRING_UNWIND_RULES_MAX);
	perfring_unwind_close(unwind);
	if (in_elf)
		dwarf_cfi_end(in_elf);
	dwarf_end(dwarf);
	elf_end(elf);
	return true;
}

static bool compare_file(const char *path)
{
	struct image image = map_file(path);
	bool is_there = compare_image(path, image);

	if (image.bytes)
		munmap(image.bytes, image.size);
	return is_there;
}

/* A program of Go's with its symbols: no package has one. False where Go is not installed. */
static bool compare_go_program(void)
{
	static const char build[] = "cd %s && printf 'package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n' >a.go && "
				    "HOME=%s GOFLAGS=-mod=mod go build -ldflags=-compressdwarf=false -o program a.go 2>log";
	char folder[] = "/tmp/unwind_XXXXXX", text[512];
	bool is_there;

	if (system("command -v go >/dev/null")) {
		printf("SKIP-ENV: go: not installed: apt-get install golang-go\n");
		return false;
	}
	cr_assert_not_null(mkdtemp(folder));
	snprintf(text, sizeof(text), build, folder, folder);
	cr_assert_eq(system(text), 0, "%s", text);
	snprintf(text, sizeof(text), "%s/program", folder);
	is_there = compare_file(text);
	snprintf(text, sizeof(text), "chmod -R u+w %s && rm -r %s", folder, folder);
	cr_assert_eq(system(text), 0);
	return is_there;
}

struct loaded {
	const char *name;
	char path[512];
};

static int find_loaded(struct dl_phdr_info *object, size_t size, void *data)
{
	struct loaded *loaded = data;

	(void)size;
	if (!loaded->path[0] && strstr(object->dlpi_name, loaded->name))
		snprintf(loaded->path, sizeof(loaded->path), "%s", object->dlpi_name);
	return 0;
}

Test(unwind, rows_are_libdws, .timeout = 600)
{
	static const char *const names[] = {"/libc.so", "/ld-linux"};
	const char *const more[] = {"/usr/lib/*/libstdc++.so.6",
				    "/usr/bin/python3",
				    "/usr/bin/node",
				    "/usr/lib/*/libnode.so.108",
				    "/usr/bin/perf_6.1",
				    "/usr/bin/perf",
				    "/usr/lib/*/libLLVM-14.so.1",
				    "/usr/lib/*/libclang-cpp.so.14",
				    "/usr/lib/*/libcrypto.so.3",
				    "/usr/bin/git",
				    "/usr/bin/gdb",
				    "/usr/lib/*/librustc_driver-*.so",
				    "/usr/lib/*/libstd-*.so",
				    "/usr/bin/bash",
				    "/proc/self/exe",
				    "/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
				    "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"};
	struct loaded loaded;
	unsigned compared = 0;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		loaded = (struct loaded){.name = names[i]};
		dl_iterate_phdr(find_loaded, &loaded);
		cr_assert(loaded.path[0] && compare_file(loaded.path), "%s", names[i]);
	}
	compare_image("vdso", map_vdso());
	compare_file("/usr/aarch64-linux-gnu/lib/libc.so.6");
	if (getenv("PERFRING_UNWIND_OBJECT")) /* one that no package has: a program of Go's with its symbols */
		cr_assert(compare_file(getenv("PERFRING_UNWIND_OBJECT")));
	if (!getenv("PERFRING_PROVE"))
		return;
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		glob_t found;

		if (!glob(more[i], 0, NULL, &found) && found.gl_pathc)
			compared += compare_file(found.gl_pathv[0]);
		globfree(&found);
	}
	compared += compare_go_program();
	cr_assert_geq(compared, 10, "%u of these objects have rows", compared);
}

#else

Test(unwind, rows_are_libdws, .timeout = 60)
{
	cr_skip_test("SKIP-ENV: libdw: not found when this was built: install libdw-dev");
}

#endif

/* ---- damaged and random bytes ---- */

/* A copy that ends where its memory ends, so that a sanitizer sees what is read after it. */
static struct perfring_unwind_section copy_of(const void *bytes, size_t size, uint64_t address)
{
	void *copy = malloc(size ? size : 1);

	cr_assert_not_null(copy);
	memcpy(copy, bytes, size);
	return (struct perfring_unwind_section){copy, size, address};
}

/* The rules are the same with rows and without; memory stays within its bound.  At most `most` functions are looked at. */
static void must_agree(struct perfring_unwind *unwind, uint64_t size, uint64_t most)
{
	struct perfring_unwind_totals totals;
	struct perfring_unwind_rule before[16], after;
	uint64_t i, k, start, end, at[16];

	perfring_unwind_count(unwind, &totals);
	for (i = 0; i < totals.functions && i < most; i++) {
		if (!perfring_unwind_function(unwind, i, &start, &end))
			continue;
		for (k = 0; k < 16; k++) {
			at[k] = start + (end > start ? random_number() % (k < 8 ? (end - start) : 64) : 0);
			perfring_unwind_rule_at(unwind, at[k], &before[k], NULL);
		}
		perfring_unwind_make(unwind, start);
		for (k = 0; k < 16; k++) {
			perfring_unwind_rule_at(unwind, at[k], &after, NULL);
			cr_assert_eq(memcmp(&before[k], &after, sizeof(after)), 0);
		}
	}
	perfring_unwind_count(unwind, &totals);
	cr_assert_leq(totals.memory, PERFRING_UNWIND_MEMORY_MAX * size + (1 << 16));
	cr_assert_leq(totals.rules, PERFRING_UNWIND_RULES_MAX);
}

/* The vdso, or this program: each byte of its headers and unwind sections, one at a time, in three ways. */
Test(unwind, damaged_bytes, .timeout = 300)
{
	static const uint8_t changes[] = {0x01, 0x80, 0xff};
	struct image image = map_vdso(), file = {NULL, 0};
	unsigned long opened = 0, tries = 0;
	struct perfring_unwind *unwind;
	size_t at, change;

	if (!image.bytes) {
		file = map_file("/proc/self/exe");
		image = file;
		image.size = image.size < 16384 ? image.size : 16384;
	}
	cr_assert_not_null(image.bytes);
	for (at = 0; at < image.size; at++)
		for (change = 0; change < sizeof(changes); change++) {
			struct perfring_unwind_section copy;

			if (at > 4096 && at % 7) /* most of it is code */
				continue;
			copy = copy_of(image.bytes, image.size, 0);
			((uint8_t *)(uintptr_t)copy.bytes)[at] ^= changes[change];
			tries++;
			if (!perfring_unwind_open(&unwind, copy.bytes, (size_t)copy.size)) {
				opened++;
				must_agree(unwind, copy.size, 16);
				perfring_unwind_close(unwind);
			}
			free((void *)(uintptr_t)copy.bytes);
		}
	printf("unwind: %lu damaged images, %lu opened\n", tries, opened);
	cr_assert_gt(tries, 1000);
	if (file.bytes)
		munmap(file.bytes, file.size);
}

/* Programs of random bytes, of which most are instructions of one operand. */
static uint32_t random_program(uint8_t *bytes, uint32_t most)
{
	static const uint8_t common[] = {0x0e, 0x0c, 0x0d, 0x86, 0x90, 0xc6, 0x41, 0x44,
					 0x0a, 0x0b, 0x0f, 0x10, 0x07, 0x08, 0x2e, 0x13};
	uint32_t size = (uint32_t)(random_number() % most), i;

	for (i = 0; i < size; i++) {
		uint64_t number = random_number();

		bytes[i] = number & 3          ? common[(number >> 8) % sizeof(common)]
			   : number & 4        ? (uint8_t)(number >> 16)
			   : (number >> 8) & 1 ? 16
					       : 6;
	}
	return size;
}

Test(unwind, random_programs, .timeout = 300)
{
	static const uint8_t encodings[] = {0x00, 0x02, 0x03, 0x0b, 0x1b, 0x1b, 0x1b};
	const unsigned rounds = getenv("PERFRING_PROVE") ? 200000 : 4000;
	unsigned long whole = 0, round;
	uint8_t program[256];

	for (round = 0; round < rounds; round++) {
		uint64_t number = random_number();
		struct shape shape = {.machine = number & 1 ? PERFRING_UNWIND_X86_64 : PERFRING_UNWIND_AARCH64,
				      .version = (uint8_t[]){1, 3, 4}[(number >> 1) % 3],
				      .encoding = encodings[(number >> 3) % sizeof(encodings)],
				      .is_debug = (number >> 8) & 1,
				      .is_long = (number >> 9) & 1,
				      .is_signal = (number >> 10) & 1,
				      .has_length = true};
		struct section section = {.address = 0x10000};
		struct perfring_unwind_section copy;
		struct perfring_unwind_sections sections = {.machine = shape.machine};
		struct perfring_unwind *unwind;
		uint32_t shared = put_shared(&section, &shape, program, random_program(program, 24)), i;
		bool is_damaged = (number >> 11) & 1;

		for (i = 0; i < 4; i++)
			put_function(&section, &shape, shared, 0x1000 + 256 * i, 1 + random_number() % 300, program,
				     random_program(program, sizeof(program)));
		for (i = 0; is_damaged && i < 1 + number % 4; i++)
			section.bytes[random_number() % section.size] = (uint8_t)random_number();
		copy = copy_of(section.bytes, section.size - (is_damaged ? random_number() % 8 : 0), section.address);
		*(shape.is_debug ? &sections.debug_frame : &sections.eh_frame) = copy;
		if (!perfring_unwind_open_sections(&unwind, &sections)) {
			must_agree(unwind, copy.size, 64);
			whole++;
			perfring_unwind_close(unwind);
		}
		free((void *)(uintptr_t)copy.bytes);
	}
	printf("unwind: %u random sections, %lu opened\n", rounds, whole);
	cr_assert_gt(whole, rounds / 2);
}

/* A section that is filled by `count` functions, each of which has the others after it in its program, in a block that is skipped;
 * what follows them is the program of all: advance 1, def_cfa_offset.  They start at 0x1000, 0x1040 ... */
static void fill_with(uint8_t *bytes, uint32_t size, uint32_t count)
{
	enum {
		ENTRY = 22 /* bytes before the next one */
	};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x03, .has_length = true};
	struct section head = {.address = 0};
	uint32_t shared = put_shared(&head, &shape, x86_initial, 5), i, at, rest;

	for (i = 0; i < count; i++) {
		at = head.size;
		rest = ENTRY * (count - 1 - i);
		put_number(&head, size - at - 4, 4);
		put_number(&head, at + 4 - shared, 4);
		put_number(&head, 0x1000 + 64 * i, 4);
		put_number(&head, 0x40000000, 4);
		put_number(&head, 0, 1);
		put(&head, (uint8_t[]){0x10, 3, (uint8_t)(rest | 0x80), (uint8_t)(rest >> 7 | 0x80), 0}, 5);
	}
	memset(bytes, 0, size);
	memcpy(bytes, head.bytes, head.size);
	for (at = head.size; at + 3 <= size; at += 3)
		memcpy(bytes + at, (uint8_t[]){0x41, 0x0e, (uint8_t)(8 + (at / 3) % 100)}, 3);
}

/* A program of 66 000 instructions: no rules beyond the bound.  Many that share their bytes: no rows beyond the bound of memory,
 * and the same rules without. */
Test(unwind, bounds, .timeout = 120)
{
	enum {
		SIZE = 100000,
		COUNT = 16,
		HEAD = 24,
		HEADER = 12 + 8 * COUNT
	};
	uint8_t *bytes = malloc(SIZE), *header = calloc(1, HEADER);
	struct perfring_unwind_sections sections = {.machine = PERFRING_UNWIND_X86_64, .eh_frame = {bytes, SIZE, 0}};
	struct perfring_unwind_totals totals;
	struct perfring_unwind_rule rule;
	struct perfring_unwind *unwind;
	uint32_t i;

	cr_assert(bytes && header);
	fill_with(bytes, SIZE, 1);
	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), 0);
	cr_assert_eq(perfring_unwind_rule_at(unwind, 0x1000 + 32000, &rule, NULL), 1);
	cr_assert_eq(perfring_unwind_rule_at(unwind, 0x1000 + 33000, &rule, NULL), 0);
	must_agree(unwind, SIZE, 4);
	perfring_unwind_close(unwind);

	/* An index that names them, since a search goes from the end of one to the next. */
	fill_with(bytes, SIZE, COUNT);
	memcpy(header, (uint8_t[]){1, 0x03, 0x03, 0x3b, 0, 0, 0, 0, COUNT, 0, 0, 0}, 12);
	for (i = 0; i < COUNT; i++)
		memcpy(header + 12 + 8 * i, (uint32_t[]){0x1000 + 64 * i, HEAD + 22 * i}, 8);
	sections.eh_frame_hdr = (struct perfring_unwind_section){header, HEADER, 0};
	cr_assert_eq(perfring_unwind_open_sections(&unwind, &sections), 0);
	must_agree(unwind, SIZE + HEADER, COUNT);
	perfring_unwind_count(unwind, &totals);
	cr_assert(totals.has_sorted_index && totals.made > 4 && totals.made < COUNT, "%d", (int)totals.made);
	cr_assert_eq(perfring_unwind_make(unwind, 0x1000 + 64 * (COUNT - 1)), -ENOSPC);
	cr_assert_eq(perfring_unwind_rule_at(unwind, 0x1000 + 64 * COUNT + 30000, &rule, NULL), 1);
	perfring_unwind_close(unwind);
	free(bytes);
	free(header);
}

/* ---- who looks up and who makes ---- */

static struct {
	struct perfring_unwind *unwind;
	uint64_t functions;
	bool is_done;
	unsigned long wrong;
	unsigned long looked;
} beside;

/* All functions again and again, until the maker has made all, and once more. */
static void *look_up_all(void *nothing)
{
	struct perfring_unwind_rule rule;
	uint64_t i, start, end, row_end;
	unsigned long wrong = 0, looked = 0;
	bool is_done;

	do {
		is_done = __atomic_load_n(&beside.is_done, __ATOMIC_ACQUIRE);
		for (i = 0; i < beside.functions; i++) {
			if (!perfring_unwind_function(beside.unwind, i, &start, &end))
				continue;
			perfring_unwind_rule_at(beside.unwind, start + (end - start) / 2, &rule, &row_end);
			wrong += row_end <= start || row_end > end ||
				 (rule.cfa == PERFRING_UNWIND_CFA_NONE && rule.flags);
			looked++;
		}
	} while (!is_done);
	__atomic_fetch_add(&beside.wrong, wrong, __ATOMIC_RELAXED);
	__atomic_fetch_add(&beside.looked, looked, __ATOMIC_RELAXED);
	return nothing;
}

/* Rows are made by one thread while two others look rules up: they find all of a function's rows, or none. */
Test(unwind, lookups_beside_makes, .timeout = 120)
{
	enum {
		COUNT = 40,
		ROUNDS = 200
	};
	static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
	struct shape shape = {.machine = PERFRING_UNWIND_X86_64, .version = 1, .encoding = 0x1b, .has_length = true};
	struct section section = {.address = 0x10000};
	uint32_t shared = put_shared(&section, &shape, x86_initial, 5), i, round;
	uint8_t each[sizeof(program)];
	pthread_t threads[2];

	for (i = 0; i < COUNT; i++) {
		memcpy(each, program, sizeof(each));
		each[2] = (uint8_t)(16 + i);
		put_function(&section, &shape, shared, 0x1000 + 64 * i, 64, each, sizeof(each));
	}
	for (round = 0; round < ROUNDS; round++) {
		beside.unwind = open_section(&section, &shape);
		beside.functions = COUNT;
		beside.is_done = false;
		for (i = 0; i < 2; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, look_up_all, NULL), 0);
		for (i = 0; i < COUNT; i++)
			cr_assert_eq(perfring_unwind_make(beside.unwind, 0x1000 + 64 * i), 1);
		__atomic_store_n(&beside.is_done, true, __ATOMIC_RELEASE);
		for (i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		perfring_unwind_close(beside.unwind);
	}
	cr_assert_eq(beside.wrong, 0);
	cr_assert_geq(beside.looked, 2 * COUNT * ROUNDS);
}

/* ---- a live thread ---- */

/* The thread sanitizer has frames and signals of its own. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !IS_THREAD_SANITIZED

enum {
	FRAMES_MOST = 256,
	MAPS_MOST = 64,
	DEPTH = 40
};

static struct perfring_unwind_map maps[MAPS_MOST];
static struct perfring_unwind_space space = {maps, 0, 1, true, false};
static struct perfring_unwind_cache *cache;

static int add_object(struct dl_phdr_info *object, size_t size, void *data)
{
	const char *path = object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe";
	struct image image = map_file(path), vdso = map_vdso();
	struct perfring_unwind *unwind;
	uint64_t start = UINT64_MAX, end = 0, i;

	(void)size;
	(void)data;
	for (i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && object->dlpi_addr + header->p_vaddr < start)
			start = object->dlpi_addr + header->p_vaddr;
		if (header->p_type == PT_LOAD && object->dlpi_addr + header->p_vaddr + header->p_memsz > end)
			end = object->dlpi_addr + header->p_vaddr + header->p_memsz;
	}
	if (!image.bytes && start == (uintptr_t)vdso.bytes)
		image = vdso;
	if (space.nr < MAPS_MOST && image.bytes && !perfring_unwind_open(&unwind, image.bytes, image.size))
		maps[space.nr++] = (struct perfring_unwind_map){start, end, object->dlpi_addr, unwind};
	return 0;
}

static int compare_maps(const void *one, const void *other)
{
	const struct perfring_unwind_map *a = one, *b = other;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void learn_objects(void)
{
	void *first[1];

	backtrace(first, 1); /* loads what it needs, before the objects are listed */
	dl_iterate_phdr(add_object, NULL);
	qsort(maps, space.nr, sizeof(maps[0]), compare_maps);
	cr_assert_gt(space.nr, 2);
	cr_assert_eq(perfring_unwind_cache_open(&cache, 1024), 0);
}

static struct perfring_unwind_registers registers_of(const ucontext_t *context)
{
#ifdef __x86_64__
	const greg_t *words = context->uc_mcontext.gregs;

	return (struct perfring_unwind_registers){
		.ip = (uint64_t)words[REG_RIP], .sp = (uint64_t)words[REG_RSP], .fp = (uint64_t)words[REG_RBP]};
#else
	return (struct perfring_unwind_registers){.ip = context->uc_mcontext.pc,
						  .sp = context->uc_mcontext.sp,
						  .fp = context->uc_mcontext.regs[29],
						  .lr = context->uc_mcontext.regs[30],
						  .pac_mask = 0xffff000000000000};
#endif
}

/* What was captured inside the deepest function: its registers, copies of its stack and of the one below, glibc's frames. */
static struct {
	struct perfring_unwind_registers registers;
	struct perfring_unwind_stack stack;
	struct perfring_unwind_stack below;
	void *expected[FRAMES_MOST];
	int nr;
} captured;

/* Without a sanitizer: it would see the spaces between other frames' variables.  Asserts are left to the test: this runs in threads
 * and handlers. */
static __attribute__((noinline, no_sanitize("address"))) struct perfring_unwind_stack copy_stack(uint64_t from,
												 uint64_t to)
{
	unsigned char *copy = malloc(to - from);

	for (uint64_t i = 0; copy && i < to - from; i += 8)
		*(volatile uint64_t *)(copy + i) = *(const volatile uint64_t *)(uintptr_t)(from + i);
	return perfring_unwind_stack_init(copy, from, copy ? to - from : 0);
}

/* Where the stack that an address is in ends. */
static uint64_t stack_end(uint64_t at)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start, end, found = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= at && at < end)
			found = end;
	if (file)
		fclose(file);
	return found;
}

static uint64_t alternate, alternate_end, interrupted_sp;

static __attribute__((noinline, no_sanitize("address"))) void capture(void)
{
	ucontext_t context;

	getcontext(&context);
	captured.registers = registers_of(&context);
	captured.nr = backtrace(captured.expected, FRAMES_MOST);
	if (captured.registers.sp >= alternate && captured.registers.sp < alternate_end) {
		captured.stack = copy_stack(captured.registers.sp & ~7ULL, alternate_end);
		captured.below = copy_stack(interrupted_sp & ~7ULL, stack_end(interrupted_sp));
	} else {
		captured.stack = copy_stack(captured.registers.sp & ~7ULL, stack_end(captured.registers.sp));
	}
}

/* Frames of different sizes, without frame pointers where the compiler follows the attribute. */
#if defined(__clang__)
#define NO_POINTER
#else
#define NO_POINTER __attribute__((optimize("omit-frame-pointer")))
#endif

static volatile int sink;

static NO_POINTER __attribute__((noinline)) void descend(int depth, void (*last)(void));

static NO_POINTER __attribute__((noinline)) void descend_by_array(int depth, void (*last)(void))
{
	volatile char *array = __builtin_alloca((size_t)depth * 8 + 16);

	array[0] = (char)depth;
	descend(depth, last);
	sink += array[0];
}

static NO_POINTER __attribute__((noinline)) void descend(int depth, void (*last)(void))
{
	volatile int words[16];

	words[depth % 16] = depth;
	if (depth == 0)
		last();
	else if (depth % 3 == 0)
		descend_by_array(depth - 1, last);
	else
		descend(depth - 1, last);
	sink += words[depth % 16];
}

static int compare_in_qsort(const void *one, const void *other)
{
	(void)one;
	(void)other;
	if (!captured.nr)
		descend(5, capture);
	return 0;
}

static void by_qsort(void)
{
	int pair[2] = {2, 1};

	qsort(pair, 2, sizeof(pair[0]), compare_in_qsort);
}

static void on_signal(int signal, siginfo_t *siginfo, void *context)
{
	(void)signal;
	(void)siginfo;
	interrupted_sp = registers_of(context).sp;
	descend(7, capture);
}

static void by_signal(void)
{
	raise(SIGUSR1);
}

/* The captured stack, of `size` bytes. */
static uint32_t walk(uint64_t size, const struct perfring_unwind_stack *below, uint64_t *ips,
		     enum perfring_unwind_end *end)
{
	struct perfring_unwind_stack stack =
		perfring_unwind_stack_init(captured.stack.bytes, captured.stack.start, size);
	struct perfring_unwind_registers registers = captured.registers;

	stack.other = below;
	return perfring_unwind_walk(&space, cache, &registers, &stack, ips, FRAMES_MOST, end);
}

/* glibc's frames are ours from capture's caller on, whatever a sanitizer puts before them; ours end with the thread's first. */
static void must_be_glibcs(void)
{
	const struct perfring_unwind_stack *below = captured.below.bytes ? &captured.below : NULL;
	uint64_t whole = captured.stack.limit + 7, size, ips[FRAMES_MOST], part[FRAMES_MOST];
	enum perfring_unwind_end end;
	uint32_t nr = walk(whole, below, ips, &end), cut, i;
	int first = 0, again;

	cr_assert_gt(nr, 8);
	while (first < captured.nr && (uintptr_t)captured.expected[first] != ips[1])
		first++;
	cr_assert_lt(first, captured.nr);
	for (i = 1; i < nr && first + (int)i - 1 < captured.nr; i++)
		cr_assert_eq(ips[i], (uintptr_t)captured.expected[first + (int)i - 1], "frame %u of %u", i, nr);
	cr_assert_eq(end, PERFRING_UNWIND_WHOLE, "%d after %u of %d frames", end, nr, captured.nr);
	/* glibc may have a last frame of address 0 or of the thread's start. */
	cr_assert(first + (int)nr - 1 <= captured.nr && first + (int)nr >= captured.nr, "%u frames, %d", nr,
		  captured.nr - first);
	for (again = 0; again < 2; again++) { /* from the cache */
		cr_assert_eq(walk(whole, below, part, &end), nr);
		cr_assert_eq(memcmp(ips, part, nr * sizeof(ips[0])), 0);
	}
	/* Cut anywhere: the same frames as far as they go, and it is said that they are cut. */
	for (size = 0; size < whole && size < 8192; size += 8) {
		cut = walk(size, below, part, &end);
		cr_assert(cut <= nr && !memcmp(ips, part, cut * sizeof(ips[0])));
		cr_assert(end == PERFRING_UNWIND_TRUNCATED || (cut == nr && end == PERFRING_UNWIND_WHOLE), "%d at %d",
			  end, (int)size);
	}
	/* In pieces of 3 frames, without anything left in the cache. */
	struct perfring_unwind_registers registers = captured.registers;
	struct perfring_unwind_stack stack = captured.stack;

	stack.other = below;
	space.id++;
	for (cut = 0, end = PERFRING_UNWIND_FULL; end == PERFRING_UNWIND_FULL; cut += i) {
		i = perfring_unwind_walk(&space, cache, &registers, &stack, part + cut, 3, &end);
		cr_assert(i > 0 && cut + i <= nr);
	}
	cr_assert(cut == nr && end == PERFRING_UNWIND_WHOLE && !memcmp(ips, part, nr * sizeof(ips[0])));
	if (below) {
		cut = walk(whole, NULL, part, &end);
		cr_assert(cut < nr && end == PERFRING_UNWIND_TRUNCATED);
	}
	cr_assert_eq(walk(whole, below, part, &end), nr);
	printf("unwind: %u frames as backtrace has them (%d)\n", nr, captured.nr - first);
}

Test(unwind, own_stack, .timeout = 60)
{
	learn_objects();
	descend(DEPTH, capture);
	must_be_glibcs();
}

Test(unwind, through_the_c_library, .timeout = 60)
{
	learn_objects();
	descend(DEPTH, by_qsort);
	must_be_glibcs();
}

static void on_other_stack(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = 1 << 17};

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	alternate = (uintptr_t)stack.ss_sp;
	alternate_end = alternate + stack.ss_size;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	descend(DEPTH, by_signal);
}

Test(unwind, alternate_stack, .timeout = 60)
{
	learn_objects();
	on_other_stack();
	must_be_glibcs();
}

static void *in_thread(void *nothing)
{
	on_other_stack();
	return nothing;
}

Test(unwind, threads, .timeout = 60)
{
	pthread_t thread;

	learn_objects();
	cr_assert_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	must_be_glibcs();
}

#endif
