/* generate.c - random attrs, samples and records, drawn by shape from the tables. */
#include <perfring/generate.h>

#include "attr.h"
#include "layout.h"
#include "members.h"

/* ---- numbers: splitmix64.  One draw a statement: the order of operands is the compiler's choice ---- */

void perfring_generator_seed(struct perfring_generator *generator, uint64_t seed)
{
	memset(generator, 0, sizeof(*generator));
	generator->state = seed;
}

static uint64_t next(struct perfring_generator *generator)
{
	uint64_t word = generator->state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

/* Off from even by less than one in 2^32 for what fits 32 bits. */
uint64_t perfring_generator_draw(struct perfring_generator *generator, uint64_t below)
{
	uint64_t word = next(generator);

	if (!below)
		return word;
	return below <= UINT32_MAX ? (word >> 32) * below >> 32 : word % below;
}

static uint64_t draw(struct perfring_generator *generator, uint64_t below)
{
	return perfring_generator_draw(generator, below);
}

static bool coin(struct perfring_generator *generator)
{
	return next(generator) >> 63;
}

/* Small, large, at a power of two, or anything.  mask: all bits that the number has. */
static uint64_t number(struct perfring_generator *generator, uint64_t mask)
{
	uint64_t word = next(generator), value = word >> 8;

	switch (word & 3) {
	case 0:
		return value & (word & 4 ? 3 : 255);
	case 1:
		return mask - (value & 255 & mask);
	case 2:
		return ((UINT64_C(1) << (value & 63)) - 1 + (value >> 6) % 3) & mask;
	default:
		return next(generator) & mask;
	}
}

/* How many of something, at most `most`. */
static uint64_t count(struct perfring_generator *generator, uint64_t most)
{
	static const uint16_t boundaries[] = {7, 15, 16, 63, 64, 127, 128, 135, 255, 256, 512, 1024, 4095, 4096};
	uint64_t nr;

	switch (draw(generator, 7)) {
	case 0:
		nr = 0;
		break;
	case 1:
		nr = 1;
		break;
	case 2:
		nr = 2;
		break;
	case 3:
		nr = 3 + draw(generator, 13);
		break;
	case 4:
		nr = boundaries[draw(generator, sizeof(boundaries) / sizeof(boundaries[0]))];
		break;
	case 5:
		nr = most;
		break;
	default:
		nr = draw(generator, most + 1);
		break;
	}
	return nr < most ? nr : most;
}

/* ---- groups of values.def.  With a literal for a group, all of it folds ---- */

/* All bits of the group. */
PERFRING_FOLDED uint64_t bits_in(const char *group)
{
	uint64_t bits = 0;

#define PERFRING_VALUE(of, NAME, value) \
	if (!strcmp(group, #of)) \
		bits |= (uint64_t)(value);
#include <perfring/values.def>
	return bits;
}

/* One number of the group. */
PERFRING_FOLDED uint64_t draw_in(struct perfring_generator *generator, const char *group)
{
	uint64_t nr = 0, skip;

#define PERFRING_VALUE(of, NAME, value) nr += !strcmp(group, #of);
#include <perfring/values.def>
	skip = draw(generator, nr);
#define PERFRING_VALUE(of, NAME, value) \
	if (!strcmp(group, #of) && !skip--) \
		return (uint64_t)(value);
#include <perfring/values.def>
	return 0;
}

/* ---- attrs ---- */

/* None, one, a few, all or any of these bits. */
static uint64_t bits_of(struct perfring_generator *generator, uint64_t mask)
{
	uint64_t word = next(generator);

	switch (draw(generator, 5)) {
	case 0:
		word = UINT64_C(1) << (word & 63);
		break;
	case 1:
		word &= next(generator);
		word &= next(generator);
		break;
	case 2:
		word |= next(generator);
		word |= next(generator);
		break;
	case 3:
		word = UINT64_MAX;
		break;
	default:
		break;
	}
	return word & mask;
}

static uint64_t registers_of(uint64_t arch)
{
	uint64_t mask = 0;

#define PERFRING_REGISTER(of, bit, NAME) \
	if (arch == PERFRING_ARCH_##of) \
		mask |= UINT64_C(1) << (bit);
#include <perfring/values.def>
	return mask;
}

/* Registers that there are on some machine, or any; the kernel takes no empty mask. */
static uint64_t draw_mask(struct perfring_generator *generator)
{
	uint64_t mask = registers_of(draw_in(generator, "arch")), bits;

	if (!mask)
		mask = UINT64_MAX;
	bits = bits_of(generator, mask);
	return bits ? bits : mask & -mask;
}

/* Big-endian compilers lay bit-fields out from the other end of the word (docs/abi.md 1.4). */
static uint64_t flag_word(uint64_t flags)
{
	uint64_t word = 0;

	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		return flags;
#define PERFRING_ATTR_FLAG(flag, bit, width) \
	word |= (flags >> (bit) & ((UINT64_C(1) << (width)) - 1)) << (64 - (bit) - (width));
#include <perfring/values.def>
	return word;
}

static uint64_t draw_flags(struct perfring_generator *generator)
{
	uint64_t known = 0, flags;

#define PERFRING_ATTR_FLAG(flag, bit, width) known |= ((UINT64_C(1) << (width)) - 1) << (bit);
#include <perfring/values.def>
	flags = bits_of(generator, known);
	if (draw(generator, 4))
		flags |= UINT64_C(1) << PERFRING_ATTR_FLAG_sample_id_all;
	/* The kernel refuses one without the other. */
	if (flags >> PERFRING_ATTR_FLAG_sigtrap & 1)
		flags |= UINT64_C(1) << PERFRING_ATTR_FLAG_remove_on_exec;
	if (flags >> PERFRING_ATTR_FLAG_inherit_thread & 1)
		flags |= UINT64_C(1) << PERFRING_ATTR_FLAG_inherit;
	return flags;
}

/* A field whose shape is told by a member that the attr does not reach was not asked for by anybody. */
static uint64_t draw_fields(struct perfring_generator *generator, size_t size)
{
	uint64_t fields = bits_of(generator, PERFRING_SAMPLE_KNOWN);

	if (fields & PERFRING_SAMPLE_WEIGHT_STRUCT)
		fields &= ~(uint64_t)(coin(generator) ? PERFRING_SAMPLE_WEIGHT : PERFRING_SAMPLE_WEIGHT_STRUCT);
	if (size < 80)
		fields &= ~(uint64_t)PERFRING_SAMPLE_BRANCH_STACK;
	if (size < 96)
		fields &= ~(uint64_t)(PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER);
	if (size < 104)
		fields &= ~(uint64_t)PERFRING_SAMPLE_REGS_INTR;
	if (size < 120)
		fields &= ~(uint64_t)PERFRING_SAMPLE_AUX;
	return fields;
}

static void draw_members(struct perfring_generator *generator, struct perfring_attr_members *members, size_t size)
{
	static const uint8_t clocks[] = {0, 1, 4, 7, 11}; /* those that perf_event_open takes (docs/abi.md 1.5) */

#define PERFRING_ATTR(member, offset, size, show) members->member = number(generator, UINT64_MAX >> (64 - 8 * (size)));
#include <perfring/values.def>
	members->type = draw_in(generator, "type");
	members->size = size;
	members->flags = draw_flags(generator);
	members->sample_type = draw_fields(generator, size);
	members->read_format = next(generator) & bits_in("read_format");
	members->branch_sample_type = bits_of(generator, bits_in("branch_sample")) | PERFRING_SAMPLE_BRANCH_ANY;
	members->sample_regs_user = draw_mask(generator);
	members->sample_regs_intr = draw_mask(generator);
	members->sample_stack_user = 8 * count(generator, 65520 / 8);
	members->clockid = clocks[draw(generator, sizeof(clocks))];
	members->sample_max_stack = count(generator, 127);
	members->reserved_2 = 0;
	members->aux_action = 0;
}

int perfring_generate_attr(struct perfring_generator *generator, struct perf_event_attr *attr, size_t size)
{
	struct perfring_attr_members members;

	if (size < PERFRING_ATTR_MIN || size > PERFRING_ATTR_MAX)
		return -EINVAL;
	draw_members(generator, &members, size);
	memset(attr, 0, size);
	/* Members of 2, 4 and 8 bytes: the low ones of the word, wherever this machine has them. */
#define PERFRING_ATTR(member, offset, bytes, show) \
	if ((offset) + (bytes) <= size) { \
		uint64_t word = (offset) == 40 ? flag_word(members.member) : members.member; \
\
		if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) \
			word <<= 64 - 8 * (bytes); \
		memcpy((unsigned char *)(void *)attr + (offset), &word, bytes); \
	}
#include <perfring/values.def>
	return 0;
}

/* ---- members ---- */

/* What the members of a sample point to, or the bytes of another record, lie in the room, one behind the other.  `left` is what
 * the record can still grow beyond the least of every member, `allowance` how much of that the field being drawn may take. */
struct pencil {
	struct perfring_generator *generator;
	const struct perfring_format *format;
	unsigned char *room;
	size_t used;
	uint64_t left;
	uint64_t allowance;
	uint64_t field;    /* PERFRING_SAMPLE_ of what is drawn */
	uint64_t variants; /* of which the number being drawn chooses one, or 0 */
	uint64_t promised; /* bytes whose lengths are drawn already */
	uint64_t text_at;  /* the last member, if it is a text that may be cut at the record's end, or 0 */
	enum show show;
	enum perfring_kind kind;
	uint16_t misc;
	bool is_bare; /* neither registers nor stack of the user */
	bool is_open; /* the last member has all bytes that are left: nothing can trail */
};

static void *place(struct pencil *pencil, uint64_t size)
{
	void *bytes = pencil->room + pencil->used;

	pencil->used += (size_t)size;
	return bytes;
}

static void spend(struct pencil *pencil, uint64_t size)
{
	pencil->left -= size;
	pencil->allowance -= size;
}

static void put_word(void *words, uint64_t i, uint64_t word)
{
	memcpy((unsigned char *)words + 8 * i, &word, 8);
}

static void random_bytes(struct pencil *pencil, unsigned char *bytes, uint64_t size)
{
	uint64_t word, at;

	if (!draw(pencil->generator, 8)) {
		memset(bytes, 0, (size_t)size);
		return;
	}
	for (at = 0; at < size; at += 8) {
		word = next(pencil->generator);
		memcpy(bytes + at, &word, size - at < 8 ? (size_t)(size - at) : 8);
	}
}

static void *draw_bytes(struct pencil *pencil, uint64_t size)
{
	unsigned char *bytes = place(pencil, size);

	random_bytes(pencil, bytes, size);
	return bytes;
}

/* Numbers of every size. */
static void *draw_numbers(struct pencil *pencil, uint64_t nr)
{
	void *words = place(pencil, 8 * nr);
	uint64_t i;

	for (i = 0; i < nr; i++)
		put_word(words, i, number(pencil->generator, UINT64_MAX));
	return words;
}

/* As paths have them, or any but NUL. */
static void draw_chars(struct pencil *pencil, unsigned char *chars, uint64_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ_012345./89";
	bool odd = !draw(pencil->generator, 8);
	uint64_t word = 0, i;

	for (i = 0; i < size; i++, word >>= 8) {
		if (i % 8 == 0)
			word = next(pencil->generator);
		chars[i] = odd ? (unsigned char)(word % 255 + 1) : (unsigned char)plain[word & 63];
	}
}

/* In room of `size` bytes, with its NUL and zeros behind it. */
static void draw_name(struct pencil *pencil, unsigned char *room, uint64_t size)
{
	uint64_t length = count(pencil->generator, size - 1);

	draw_chars(pencil, room, length);
	memset(room + length, 0, (size_t)(size - length));
}

/* One of the numbers of the group, or false. */
static bool draw_named(struct pencil *pencil, uint64_t *value)
{
	static const struct {
		enum show group;
		int value;
	} rows[] = {
#define PERFRING_VALUE(group, NAME, value) {SHOW_##group, value},
#include <perfring/values.def>
	};
	uint64_t nr = 0;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (pencil->show == rows[i].group && !draw(pencil->generator, ++nr))
			*value = (uint64_t)rows[i].value;
	return nr;
}

static uint64_t draw_number(struct pencil *pencil, uint64_t mask)
{
	uint64_t value = 0;

	if (pencil->variants)
		return draw(pencil->generator, pencil->variants);
	if (pencil->show < SHOW_dec && draw(pencil->generator, 8) && draw_named(pencil, &value))
		return value & mask;
	return number(pencil->generator, mask);
}

enum {
	VARYING = 0
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	| (PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) ? 0 : PERFRING_SAMPLE_##NAME)
#include <perfring/fields.def>
};

/* ---- one function a kind of field ---- */

static void draw_u64(struct pencil *pencil, uint64_t *value)
{
	*value = draw_number(pencil, UINT64_MAX);
}

static void draw_pair(struct pencil *pencil, uint32_t *first, uint32_t *second)
{
	*first = (uint32_t)number(pencil->generator, UINT32_MAX);
	*second = (uint32_t)number(pencil->generator, UINT32_MAX);
}

static void draw_weight(struct pencil *pencil, struct perfring_weight *weight)
{
	weight->var1 = (uint32_t)number(pencil->generator, UINT32_MAX);
	weight->var2 = (uint16_t)number(pencil->generator, UINT16_MAX);
	weight->var3 = (uint16_t)number(pencil->generator, UINT16_MAX);
}

/* Without GROUP the times stand inside the only entry. */
static void draw_read(struct pencil *pencil, struct perfring_read *read, uint64_t read_format)
{
	uint32_t entry = perfring_format_read_entry(read_format) / 8;
	uint64_t words, at = 1;
	void *entries;

	read->read_format = read_format;
	read->nr = 1;
	read->enabled = 0;
	read->running = 0;
	if (read_format & PERFRING_FORMAT_GROUP) {
		read->nr = count(pencil->generator, pencil->allowance / (8 * entry));
		words = read->nr * entry;
		spend(pencil, 8 * words);
	} else {
		words = perfring_format_read_least(read_format) / 8;
	}
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		read->enabled = number(pencil->generator, UINT64_MAX);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		read->running = number(pencil->generator, UINT64_MAX);
	read->entries = entries = draw_numbers(pencil, words);
	if (read_format & PERFRING_FORMAT_GROUP)
		return;
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		put_word(entries, at++, read->enabled);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		put_word(entries, at, read->running);
}

/* No address looks like a marker. */
static uint64_t draw_address(struct perfring_generator *generator)
{
	uint64_t word = next(generator);

	switch (word & 3) {
	case 0:
		return 0xffffffff81000000 | (word >> 40);
	case 1:
		return 0x00007f0000000000 | (word >> 24);
	case 2:
		return 0x400000 | (word >> 44);
	default:
		word = number(generator, UINT64_MAX);
		return perfring_list_is_marker(word) ? word << 12 : word;
	}
}

/* CONTEXT_MAX bounds the markers and is none, and a deferred one has its own place. */
static uint64_t draw_marker(struct perfring_generator *generator)
{
	static const int markers[] = {
		PERFRING_CONTEXT_HV,    PERFRING_CONTEXT_KERNEL,       PERFRING_CONTEXT_USER,
		PERFRING_CONTEXT_GUEST, PERFRING_CONTEXT_GUEST_KERNEL, PERFRING_CONTEXT_GUEST_USER,
	};

	return (uint64_t)(int64_t)markers[draw(generator, sizeof(markers) / sizeof(markers[0]))];
}

/* Parts that each begin with a marker, at most eight; a sample's last part may be still to come: marker and cookie. */
static void draw_list(struct pencil *pencil, struct perfring_list *list)
{
	struct perfring_generator *generator = pencil->generator;
	uint64_t parts = PERFRING_MAX_CONTEXTS_PER_STACK, until = 0, nr, i;
	void *words;

	list->nr = nr = count(generator, pencil->allowance / 8);
	spend(pencil, 8 * nr);
	list->words = words = place(pencil, 8 * nr);
	if (pencil->field && nr >= 2 && !draw(generator, 4)) {
		put_word(words, --nr, draw_address(generator));
		put_word(words, --nr, (uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED);
	}
	if (!draw(generator, 8))
		until = nr;
	for (i = 0; i < nr; i++) {
		if (i != until || !parts) {
			put_word(words, i, draw_address(generator));
			continue;
		}
		put_word(words, i, draw_marker(generator));
		until += 2 + draw(generator, nr);
		parts--;
	}
}

/* As the kernel transmits it: the next field is aligned, and nothing tells padding from data. */
static void draw_raw(struct pencil *pencil, struct perfring_raw *raw)
{
	uint64_t words = count(pencil->generator, pencil->allowance / 8);

	spend(pencil, 8 * words);
	raw->size = (uint32_t)(4 + 8 * words);
	raw->padding = 0;
	raw->data = draw_bytes(pencil, raw->size);
}

/* The decoder takes the shape that uses up the record, so hw_idx or counters may only be missing where no other shape
 * does: when every field behind the branches has one word, the full shape is too long by just what is missing.  With a
 * field of varying length behind, it may fit by chance. */
static bool is_branch_free(const struct perfring_format *format)
{
	uint64_t behind = 0;

#define PERFRING_FIELD(NAME, bit, kind, ...) \
	behind = PERFRING_SAMPLE_##NAME == PERFRING_SAMPLE_BRANCH_STACK ? 0 : behind | PERFRING_SAMPLE_##NAME;
#include <perfring/fields.def>
	return !(format->sample_type & behind & VARYING);
}

static bool needs_hw_idx(const struct perfring_format *format)
{
	return (format->sample_type & PERFRING_SAMPLE_BRANCH_STACK) &&
	       (format->branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && !is_branch_free(format);
}

static void draw_branch(struct pencil *pencil, struct perfring_branch_stack *stack, uint64_t branch_sample_type,
			unsigned shape)
{
	bool has_counters = branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS;
	bool is_free = is_branch_free(pencil->format);
	uint64_t flags = (UINT64_C(1) << 33) - 1, i;
	void *entries;

	(void)shape;
	stack->has_hw_idx = branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX;
	stack->hw_idx = 0;
	stack->counters = NULL;
	if (stack->has_hw_idx && is_free && (pencil->allowance < 8 || !draw(pencil->generator, 4)))
		stack->has_hw_idx = false;
	else if (stack->has_hw_idx && is_free)
		spend(pencil, 8);
	stack->nr = count(pencil->generator, pencil->allowance / (has_counters ? 32 : 24));
	if (stack->has_hw_idx)
		stack->hw_idx = number(pencil->generator, UINT64_MAX);
	else if (branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX)
		stack->nr = 0;
	if (stack->nr && is_free && !draw(pencil->generator, 4))
		has_counters = false;
	spend(pencil, stack->nr * (has_counters ? 32 : 24));
	stack->entries = entries = place(pencil, 24 * stack->nr);
	for (i = 0; i < stack->nr; i++) {
		put_word(entries, 3 * i, draw_address(pencil->generator));
		put_word(entries, 3 * i + 1, draw_address(pencil->generator));
		put_word(entries, 3 * i + 2, number(pencil->generator, flags));
	}
	if (has_counters)
		stack->counters = draw_numbers(pencil, stack->nr);
}

static void draw_regs(struct pencil *pencil, struct perfring_regs *regs, uint64_t mask, uint32_t nr, uint32_t arch)
{
	regs->abi = draw_in(pencil->generator, "regs_abi");
	regs->mask = mask;
	regs->arch = arch;
	if (8 * nr > pencil->allowance || (pencil->field == PERFRING_SAMPLE_REGS_USER && pencil->is_bare))
		regs->abi = PERFRING_SAMPLE_REGS_ABI_NONE;
	regs->nr = regs->abi == PERFRING_SAMPLE_REGS_ABI_NONE ? 0 : nr;
	spend(pencil, 8 * regs->nr);
	regs->values = draw_numbers(pencil, regs->nr);
}

static void draw_stack(struct pencil *pencil, struct perfring_stack *stack)
{
	uint64_t most = pencil->allowance < 16 ? 0 : (pencil->allowance - 8) / 8;

	if (pencil->format->sample_stack_user && most > pencil->format->sample_stack_user / 8)
		most = pencil->format->sample_stack_user / 8;
	stack->size = pencil->is_bare ? 0 : 8 * count(pencil->generator, most);
	if (!stack->size && !pencil->is_bare && !pencil->format->sample_stack_user)
		stack->size = 8;
	stack->dyn_size = count(pencil->generator, stack->size);
	spend(pencil, stack->size + (stack->size ? 8 : 0));
	stack->data = draw_bytes(pencil, stack->size);
}

static void draw_aux(struct pencil *pencil, struct perfring_aux *aux)
{
	aux->size = 8 * count(pencil->generator, pencil->allowance / 8);
	spend(pencil, aux->size);
	aux->data = draw_bytes(pencil, aux->size);
}

/* ---- samples ---- */

/* One of the set bits. */
static uint64_t one_of(struct perfring_generator *generator, uint64_t set)
{
	uint64_t skip = draw(generator, (uint64_t)__builtin_popcountll(set));

	for (; skip; skip--)
		set &= set - 1;
	return set & -set;
}

static uint16_t draw_misc(struct perfring_generator *generator)
{
	uint16_t misc = (uint16_t)draw_in(generator, "cpumode");

	if (coin(generator))
		misc |= (uint16_t)(draw(generator, 4) << 13);
	if (!draw(generator, 16))
		misc |= (uint16_t)(1 << (3 + draw(generator, 13)));
	return misc;
}

/* Words behind what we know, as a newer kernel may have them: one time in `seldom`. */
static const void *draw_trailing(struct pencil *pencil, uint64_t seldom, uint32_t *size)
{
	*size = 0;
	pencil->allowance = pencil->left;
	if (!draw(pencil->generator, seldom))
		*size = (uint32_t)(8 * count(pencil->generator, pencil->allowance / 8));
	spend(pencil, *size);
	return draw_bytes(pencil, *size);
}

static uint64_t least_of_sample(const struct perfring_format *format)
{
	uint64_t least = perfring_format_least(format);

	if (format->sample_type & PERFRING_SAMPLE_RAW)
		least += 4;
	if (needs_hw_idx(format))
		least += 8;
	return least;
}

int64_t perfring_generate_sample(struct perfring_generator *generator, const struct perfring_format *format,
				 struct perfring_sample *sample, void *room, size_t size, uint32_t most)
{
	uint64_t least = least_of_sample(format);
	uint64_t varying = format->sample_type & VARYING, last = 0, share = 0, now;
	struct pencil pencil = {.generator = generator, .format = format, .room = room, .show = SHOW_dec};
	const unsigned shape = 0; /* all that can be there */
	int pass;

	if (most > PERFRING_RECORD_MAX)
		most = PERFRING_RECORD_MAX;
	most &= ~7u;
	if (size < most || most < least)
		return -ENOSPC;
	pencil.left = most - least;
	/* Each field of varying length has an even share, but one may take all that the others left. */
	if (varying) {
		last = one_of(generator, varying);
		share = pencil.left / (uint64_t)__builtin_popcountll(varying) & ~UINT64_C(7);
	}
	/* With registers and nothing asked for, a stack of size 0 is one of which the kernel writes more than it says
	 * (docs/abi.md 14.3).  Formats made by hand do not know what was asked for. */
	pencil.is_bare =
		(varying & PERFRING_SAMPLE_STACK_USER) && !format->sample_stack_user && (coin(generator) || share < 16);
	sample->misc = draw_misc(generator);
	sample->padding = 0;
	sample->present = format->sample_type & PERFRING_SAMPLE_KNOWN;
	for (pass = 0; pass < 2; pass++) {
		now = pass ? last : sample->present & ~last;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (now & PERFRING_SAMPLE_##NAME) { \
		pencil.allowance = pass ? pencil.left : share; \
		pencil.field = PERFRING_SAMPLE_##NAME; \
		draw_##kind(&pencil, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b)); \
	}
#include <perfring/fields.def>
	}
	/* Beside a branch stack of more than one shape, trailing bytes may make the wrong one fit. */
	if (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS))
		pencil.left = 0;
	sample->trailing = draw_trailing(&pencil, 8, &sample->trailing_size);
	return (int64_t)pencil.used;
}

/* ---- members, by their layouts ---- */

/* What a walk over the member's layout asks for, where it is going to read it: bytes[at] up to bytes[size - 1] are free. */

static void fill_number(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	struct pencil *pencil = walk->filler;
	uint64_t left = walk->size - walk->at - part->size, mask = UINT64_MAX >> (64 - 8 * part->size), value, other;

	switch (part->use) {
	case PERFRING_LAYOUT_COUNT:
		/* Where entries differ, their size and padding come first. */
		other = part->entry ? 0 : 6;
		value = left < other ? 0 : count(pencil->generator, (left - other) / (part->entry ? part->entry : 8));
		break;
	case PERFRING_LAYOUT_LENGTH:
		/* Of two lengths of 2 bytes each, half for each as likely as all for one. */
		other = pencil->promised + (part->size == 2 ? 2 : 0);
		left = left < other ? 0 : left - other;
		if (part->size == 2 && !pencil->promised && coin(pencil->generator))
			left /= 2;
		value = count(pencil->generator, left < mask ? left : mask);
		pencil->promised += value;
		break;
	case PERFRING_LAYOUT_CHOICE:
		if (part->number)
			value = left >= 4 && coin(pencil->generator) ? 2 * part->number : part->number;
		else
			value = draw(pencil->generator, 4);
		if (!part->number && value == 3)
			value += number(pencil->generator, 0xff);
		break;
	default:
		if (part->most < mask)
			value = coin(pencil->generator) ? part->most : draw(pencil->generator, part->most + 1);
		else if (!part->depth)
			value = draw_number(pencil, mask);
		else if (pencil->kind == PERFRING_KIND_list)
			value = draw(pencil->generator, 16) ? draw_address(pencil->generator)
							    : draw_marker(pencil->generator);
		else
			value = number(pencil->generator, mask);
		break;
	}
	part->number = value & mask;
}

static void fill_string(struct perfring_layout_walk *walk, const struct perfring_layout_member *part)
{
	struct pencil *pencil = walk->filler;
	unsigned char *bytes = (unsigned char *)(uintptr_t)part->bytes;
	uint64_t most = part->space & ~UINT64_C(7), size, space;

	if (!part->is_open) {
		draw_name(pencil, bytes, part->space);
		pencil->text_at = part->depth ? 0 : walk->at;
		return;
	}
	/* Padded to 8, and sometimes more than that. */
	size = count(pencil->generator, most - 1);
	space = (size + 8) & ~UINT64_C(7);
	if (!draw(pencil->generator, 8) && space + 16 <= most)
		space += 8 + 8 * draw(pencil->generator, 2);
	memset(bytes, 0, (size_t)space);
	draw_chars(pencil, bytes, size);
	walk->size = walk->at + space;
	pencil->is_open = true;
}

static void fill_bytes(struct perfring_layout_walk *walk, const struct perfring_layout_member *part)
{
	struct pencil *pencil = walk->filler;
	uint64_t size = part->size;

	if (part->is_open) {
		size = count(pencil->generator, size);
		walk->size = walk->at + size;
		pencil->is_open = true;
	}
	if (pencil->promised)
		pencil->promised -= size;
	random_bytes(pencil, (unsigned char *)(uintptr_t)part->bytes, size);
}

static void fill_attr(struct perfring_layout_walk *walk, const struct perfring_layout_member *part)
{
	static const uint16_t sizes[] = {
#define PERFRING_ATTR_SIZE(version, size) size,
#include <perfring/values.def>
	};
	struct pencil *pencil = walk->filler;
	uint64_t most = walk->size - walk->at, size;

	if (most > PERFRING_ATTR_MAX)
		most = PERFRING_ATTR_MAX;
	size = sizes[draw(pencil->generator, sizeof(sizes) / sizeof(sizes[0]))];
	if (!draw(pencil->generator, 4))
		size = PERFRING_ATTR_MIN + 8 * count(pencil->generator, (most - PERFRING_ATTR_MIN) / 8);
	if (size > most)
		size = PERFRING_ATTR_MIN;
	perfring_generate_attr(pencil->generator, (void *)(uintptr_t)part->bytes, (size_t)size);
}

/* How many entries there are up to the end, and whether parts are there that may be missing. */
static void fill_parts(struct perfring_layout_walk *walk, struct perfring_layout_member *parts)
{
	struct pencil *pencil = walk->filler;
	uint64_t left = walk->size - walk->at;

	if (parts->use == PERFRING_LAYOUT_COUNT) {
		walk->size = walk->at + parts->entry * count(pencil->generator, left / parts->entry);
		pencil->is_open = true;
		return;
	}
	parts->number = left >= parts->size && coin(pencil->generator);
	if (parts->number)
		return;
	walk->size = walk->at;
	pencil->is_open = true;
}

static void fill_part(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	switch (part->kind) {
	case PERFRING_LAYOUT_NUMBER:
		fill_number(walk, part);
		break;
	case PERFRING_LAYOUT_STRING:
		fill_string(walk, part);
		break;
	case PERFRING_LAYOUT_BYTES:
		fill_bytes(walk, part);
		break;
	case PERFRING_LAYOUT_ATTR:
		fill_attr(walk, part);
		break;
	case PERFRING_LAYOUT_PADDING:
		memset((void *)(uintptr_t)part->bytes, 0, (size_t)part->size);
		break;
	case PERFRING_LAYOUT_PARTS:
		fill_parts(walk, part);
		break;
	}
}

/* Without a format nothing says how the block lies, and it has no bytes. */
static void draw_block(struct pencil *pencil)
{
	uint64_t entry, words, read_format;
	unsigned char *first;

	if (!pencil->format)
		return;
	read_format = pencil->format->read_format;
	entry = perfring_format_read_entry(read_format);
	words = perfring_format_read_least(read_format) / 8;
	first = draw_numbers(pencil, words);
	if (!(read_format & PERFRING_FORMAT_GROUP))
		return;
	words = count(pencil->generator, pencil->left / entry);
	put_word(first, 0, words);
	draw_numbers(pencil, words * entry / 8);
	pencil->left -= words * entry;
}

/* One member, at pencil->used: of the record's bytes `least` are its, and pencil->left for it and all that follow. */
static void draw_member(struct pencil *pencil, enum perfring_kind kind, uint64_t least)
{
	const uint16_t bit = kind == PERFRING_KIND_id128      ? PERFRING_RECORD_MISC_MMAP_BUILD_ID
			     : kind == PERFRING_KIND_build_id ? PERFRING_RECORD_MISC_BUILD_ID_SIZE
							      : 0;
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	pencil->kind = kind;
	pencil->text_at = 0;
	pencil->misc &= (uint16_t)~bit;
	if (bit && coin(pencil->generator))
		pencil->misc |= bit;
	if (kind == PERFRING_KIND_read) {
		draw_block(pencil);
		return;
	}
	perfring_layout_open_member(&walk, kind, pencil->misc, pencil->room, pencil->used,
				    pencil->used + least + pencil->left);
	walk.fill = fill_part;
	walk.filler = pencil;
	while (perfring_layout_next(&walk, &part) == 1)
		;
	pencil->left += least - (walk.at - pencil->used);
	pencil->used = (size_t)walk.at;
}

/* ---- every other record ---- */

/* How many variants of what follows hang on this member, or 0. */
static uint64_t variants_of(const struct perfring_record *record, const void *member)
{
	if (record->type == PERFRING_RECORD_AUXTRACE_ERROR && member == &record->is.auxtrace_error.fmt)
		return 3;
	if (record->type == PERFRING_RECORD_EVENT_UPDATE && member == &record->is.event_update.type)
		return 4;
	return 0;
}

static uint64_t least_of_member(const struct perfring_format *format, const struct member_row *row)
{
	if (row->kind == PERFRING_KIND_read)
		return format ? perfring_format_read_least(format->read_format) : 0;
	return perfring_layout_least((enum perfring_kind)row->kind);
}

/* The least of the members that are always there. */
static uint64_t least_of(const struct perfring_format *format, uint32_t type)
{
	const struct member_row *row;
	uint64_t least = 0;

	for (row = perfring_members_of(type); row->kind != PERFRING_KINDS; row++)
		if (!row->is_conditional)
			least += least_of_member(format, row);
	return least;
}

/* One try: false when a member that this draw asks for does not fit. */
static bool draw_members_of(struct pencil *pencil, uint32_t type)
{
	struct perfring_record record = {.type = type};
	const struct member_row *row;
	uint64_t least;
	void *member;

	for (row = perfring_members_of(type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring_members_has(&record, row))
			continue;
		least = least_of_member(pencil->format, row);
		if (row->is_conditional && pencil->left < least)
			return false;
		pencil->left -= row->is_conditional ? least : 0;
		member = perfring_member_in(&record, row);
		pencil->variants = variants_of(&record, member);
		pencil->show = (enum show)row->show;
		draw_member(pencil, (enum perfring_kind)row->kind, least);
		/* Others may hang on a number. */
		if (row->kind <= PERFRING_KIND_u64)
			memcpy(member, pencil->room + pencil->used - row->size, row->size);
	}
	pencil->variants = 0;
	pencil->show = SHOW_dec;
	return true;
}

/* The bytes of a record, in `room`.  Returns how many, or -ENOSPC. */
static int64_t draw_record(struct perfring_generator *generator, const struct perfring_format *format, uint32_t type,
			   unsigned char *room, uint32_t most)
{
	uint32_t trailer = format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(format) : 0;
	uint64_t least = sizeof(struct perf_event_header) + trailer + least_of(format, type);
	struct perf_event_header header = {.type = type};
	struct pencil pencil;
	uint32_t trailing = 0;
	int tries = 64; /* the shortest variant is one of four */

	most &= ~7u;
	if (most < least)
		return -ENOSPC;
	do {
		if (!tries--)
			return -ENOSPC;
		memset(&pencil, 0, sizeof(pencil));
		pencil.generator = generator;
		pencil.format = format;
		pencil.room = room;
		pencil.used = sizeof(header);
		pencil.left = most - least;
		pencil.misc = draw_misc(generator);
	} while (!draw_members_of(&pencil, type));
	if (!pencil.is_open)
		draw_trailing(&pencil, perfring_record_name(type) ? 8 : 1, &trailing);
	/* perf cuts a text at the record's end behind its padding. */
	if (pencil.text_at && !trailing && coin(generator))
		pencil.used = (size_t)(pencil.text_at + ((strlen((char *)room + pencil.text_at) + 8) & ~(size_t)7));
	draw_numbers(&pencil, trailer / 8);
	header.misc = pencil.misc;
	header.size = (uint16_t)pencil.used;
	memcpy(room, &header, sizeof(header));
	return header.size;
}

int64_t perfring_generate_members(struct perfring_generator *generator, const struct perfring_format *format,
				  uint32_t type, struct perfring_record *record, void *room, size_t size, uint32_t most)
{
	int64_t used;

	if (type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	if (most > PERFRING_RECORD_MAX)
		most = PERFRING_RECORD_MAX;
	if (size < (most & ~7u))
		return -ENOSPC;
	used = draw_record(generator, format, type, room, most);
	return used < 0 ? used : perfring_record_decode(format, room, record, NULL) ? -EINVAL : used;
}

/* ---- whole records ---- */

static uint32_t draw_type(struct perfring_generator *generator, bool has_format)
{
	static const uint8_t types[] = {
#define PERFRING_RECORD(NAME, type, noun) type,
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
	};
	uint32_t type;

	do {
		type = types[draw(generator, sizeof(types))];
	} while (type >= PERFRING_RECORD_OF_PERF || (type == PERFRING_RECORD_SAMPLE && !has_format));
	return type;
}

/* What members point to must not lie where they are encoded, so it lies on the stack. */
int64_t perfring_generate_record(struct perfring_generator *generator, const struct perfring_format *format,
				 uint32_t type, void *room, size_t size)
{
	uint32_t most = size < PERFRING_RECORD_MAX ? (uint32_t)size : PERFRING_RECORD_MAX;
	unsigned char drawn[PERFRING_RECORD_MAX];
	struct perfring_sample sample;
	int64_t used;

	if (!type)
		type = draw_type(generator, format);
	if (type == PERFRING_RECORD_SAMPLE) {
		if (!format)
			return -EINVAL;
		used = perfring_generate_sample(generator, format, &sample, drawn, sizeof(drawn), most);
		return used < 0 ? used : perfring_sample_encode(format, &sample, room, size);
	}
	return draw_record(generator, format, type, room, most);
}
