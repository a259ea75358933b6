/* generate.c - random attrs, samples and records, drawn by shape from the tables. */
#include <perfring/generate.h>

#include "attr.h"

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

/* What a member may point to lies in the room, one behind the other.  `left` is what the record can still grow
 * beyond the least of every member, `allowance` how much of that the member being drawn may take. */
struct pencil {
	struct perfring_generator *generator;
	const struct perfring_format *format;
	unsigned char *room;
	size_t used;
	uint64_t left;
	uint64_t allowance;
	uint64_t field;               /* PERFRING_SAMPLE_ of what is drawn; 0: a member of another record */
	uint64_t variants;            /* of which the number being drawn chooses one, or 0 */
	const char *group;            /* of values.def, or NULL */
	struct perfring_string *last; /* the last member, if it is one whose room may be cut */
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

static void *draw_bytes(struct pencil *pencil, uint64_t size)
{
	unsigned char *bytes = place(pencil, size);
	uint64_t word, at;

	if (!draw(pencil->generator, 8)) {
		memset(bytes, 0, (size_t)size);
		return bytes;
	}
	for (at = 0; at < size; at += 8) {
		word = next(pencil->generator);
		memcpy(bytes + at, &word, size - at < 8 ? (size_t)(size - at) : 8);
	}
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
		const char *group;
		int value;
	} rows[] = {
#define PERFRING_VALUE(group, NAME, value) {#group, value},
#include <perfring/values.def>
	};
	uint64_t nr = 0;
	size_t i;

	for (i = 0; pencil->group && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(pencil->group, rows[i].group) && !draw(pencil->generator, ++nr))
			*value = (uint64_t)rows[i].value;
	return nr;
}

static uint64_t draw_number(struct pencil *pencil, uint64_t mask)
{
	uint64_t value = 0;

	if (pencil->variants)
		return draw(pencil->generator, pencil->variants);
	if (pencil->group && draw(pencil->generator, 8) && draw_named(pencil, &value))
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
	struct pencil pencil = {.generator = generator, .format = format, .room = room};
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

/* ---- one function a kind of member, and the least that it takes up ---- */

#define LEAST_u16 2
#define LEAST_u32 4
#define LEAST_u64 8
#define LEAST_id128 24
#define LEAST_tag 8
#define LEAST_string 8
#define LEAST_list 8
#define LEAST_links 8
#define LEAST_read (format ? perfring_format_read_least(format->read_format) : 0)
#define LEAST_poke 8
#define LEAST_rest 0
#define LEAST_words 0
#define LEAST_text64 64
#define LEAST_text512 512
#define LEAST_attr 64
#define LEAST_build_id 24
#define LEAST_blob 8
#define LEAST_index 8
#define LEAST_threads 8
#define LEAST_cpu_map 8
#define LEAST_conv 0
#define LEAST_metadata 8

static void draw_u16(struct pencil *pencil, uint16_t *value)
{
	*value = (uint16_t)draw_number(pencil, UINT16_MAX);
}

static void draw_u32(struct pencil *pencil, uint32_t *value)
{
	*value = (uint32_t)draw_number(pencil, UINT32_MAX);
}

static void draw_20_bytes(struct pencil *pencil, uint8_t *bytes)
{
	uint64_t words[3];
	int i;

	for (i = 0; i < 3; i++)
		words[i] = next(pencil->generator);
	memcpy(bytes, words, 20);
}

static uint8_t draw_build_id_size(struct pencil *pencil)
{
	return (uint8_t)(coin(pencil->generator) ? 20 : draw(pencil->generator, 21));
}

static void draw_id128(struct pencil *pencil, struct perfring_file_id *file)
{
	memset(file, 0, sizeof(*file));
	file->has_build_id = coin(pencil->generator);
	pencil->misc &= (uint16_t)~PERFRING_RECORD_MISC_MMAP_BUILD_ID;
	if (file->has_build_id) {
		pencil->misc |= PERFRING_RECORD_MISC_MMAP_BUILD_ID;
		file->build_id_size = draw_build_id_size(pencil);
		draw_20_bytes(pencil, file->build_id);
		return;
	}
	draw_pair(pencil, &file->maj, &file->min);
	file->ino = number(pencil->generator, UINT64_MAX);
	file->ino_generation = number(pencil->generator, UINT64_MAX);
}

static void draw_tag(struct pencil *pencil, struct perfring_tag *tag)
{
	uint64_t word = next(pencil->generator);

	memcpy(tag->bytes, &word, sizeof(tag->bytes));
}

/* Padded to 8, and sometimes more than that. */
static void draw_string(struct pencil *pencil, struct perfring_string *string)
{
	uint64_t most = (LEAST_string + pencil->allowance) & ~UINT64_C(7);
	unsigned char *chars;

	string->size = (uint32_t)count(pencil->generator, most - 1);
	string->room = (string->size + 8) & ~7u;
	if (!draw(pencil->generator, 8) && string->room + 16 <= most)
		string->room += 8 + 8 * (uint32_t)draw(pencil->generator, 2);
	spend(pencil, string->room - LEAST_string);
	chars = place(pencil, string->room);
	memset(chars, 0, string->room);
	draw_chars(pencil, chars, string->size);
	string->data = (const char *)chars;
	pencil->is_open = true;
}

static void draw_links(struct pencil *pencil, struct perfring_links *links)
{
	links->nr = count(pencil->generator, pencil->allowance / 16);
	spend(pencil, 16 * links->nr);
	links->words = draw_numbers(pencil, 2 * links->nr);
}

/* Without a format nobody can tell how the block lies. */
static void draw_read_member(struct pencil *pencil, struct perfring_read *read)
{
	if (pencil->format)
		draw_read(pencil, read, pencil->format->read_format);
	else
		memset(read, 0, sizeof(*read));
}

/* 4 bytes of code are free, the rest goes by 8. */
static void draw_poke(struct pencil *pencil, struct perfring_poke *poke)
{
	uint64_t most = 4 + (pencil->allowance & ~UINT64_C(7));

	poke->old_len = (uint16_t)count(pencil->generator, coin(pencil->generator) ? most / 2 : most);
	poke->new_len = (uint16_t)count(pencil->generator, most - poke->old_len);
	spend(pencil, ((4u + poke->old_len + poke->new_len + 7u) & ~7u) - LEAST_poke);
	poke->old_bytes = draw_bytes(pencil, poke->old_len);
	poke->new_bytes = draw_bytes(pencil, poke->new_len);
}

static void draw_rest(struct pencil *pencil, struct perfring_bytes *bytes)
{
	bytes->size = count(pencil->generator, pencil->allowance);
	spend(pencil, bytes->size);
	bytes->data = draw_bytes(pencil, bytes->size);
	pencil->is_open = true;
}

static void draw_words(struct pencil *pencil, struct perfring_list *list)
{
	list->nr = count(pencil->generator, pencil->allowance / 8);
	spend(pencil, 8 * list->nr);
	list->words = draw_numbers(pencil, list->nr);
	pencil->is_open = true;
}

static void draw_text(struct pencil *pencil, struct perfring_string *string, uint32_t room)
{
	unsigned char *chars = place(pencil, room);

	draw_name(pencil, chars, room);
	string->data = (const char *)chars;
	string->size = (uint32_t)strlen(string->data);
	string->room = room;
	pencil->last = string;
}

static void draw_text64(struct pencil *pencil, struct perfring_string *string)
{
	draw_text(pencil, string, 64);
}

static void draw_text512(struct pencil *pencil, struct perfring_string *string)
{
	draw_text(pencil, string, 512);
}

static void draw_attr(struct pencil *pencil, struct perfring_bytes *attr)
{
	static const uint16_t sizes[] = {
#define PERFRING_ATTR_SIZE(version, size) size,
#include <perfring/values.def>
	};
	uint64_t most = pencil->allowance < PERFRING_ATTR_MAX - PERFRING_ATTR_MIN
				? PERFRING_ATTR_MIN + pencil->allowance
				: PERFRING_ATTR_MAX;
	void *bytes;

	attr->size = sizes[draw(pencil->generator, sizeof(sizes) / sizeof(sizes[0]))];
	if (!draw(pencil->generator, 4))
		attr->size = PERFRING_ATTR_MIN + 8 * count(pencil->generator, (most - PERFRING_ATTR_MIN) / 8);
	if (attr->size > most)
		attr->size = PERFRING_ATTR_MIN;
	spend(pencil, attr->size - PERFRING_ATTR_MIN);
	attr->data = bytes = place(pencil, attr->size);
	perfring_generate_attr(pencil->generator, bytes, (size_t)attr->size);
}

static void draw_build_id(struct pencil *pencil, struct perfring_build_id *id)
{
	draw_20_bytes(pencil, id->bytes);
	id->has_size = coin(pencil->generator);
	id->size = id->has_size ? draw_build_id_size(pencil) : 20;
	pencil->misc &= (uint16_t)~PERFRING_RECORD_MISC_EXT_RESERVED;
	if (id->has_size)
		pencil->misc |= PERFRING_RECORD_MISC_EXT_RESERVED;
}

static void draw_blob(struct pencil *pencil, struct perfring_bytes *bytes)
{
	bytes->size = count(pencil->generator, pencil->allowance & ~UINT64_C(7));
	spend(pencil, (bytes->size + 7) & ~UINT64_C(7));
	bytes->data = draw_bytes(pencil, bytes->size);
}

/* The second array is there when the record is long enough for it. */
static void draw_index(struct pencil *pencil, struct perfring_index *index)
{
	bool has_machines = coin(pencil->generator);

	index->nr = count(pencil->generator, pencil->allowance / (has_machines ? 48 : 32));
	index->entries = draw_numbers(pencil, 4 * index->nr);
	index->machines = NULL;
	spend(pencil, 32 * index->nr);
	if (!index->nr)
		return;
	pencil->is_open = !has_machines;
	if (!has_machines)
		return;
	spend(pencil, 16 * index->nr);
	index->machines = draw_numbers(pencil, 2 * index->nr);
}

static void draw_threads(struct pencil *pencil, struct perfring_threads *threads)
{
	unsigned char *entries;
	uint64_t i;

	threads->nr = count(pencil->generator, pencil->allowance / 24);
	spend(pencil, 24 * threads->nr);
	threads->data = entries = place(pencil, 24 * threads->nr);
	for (i = 0; i < threads->nr; i++, entries += 24) {
		put_word(entries, 0, number(pencil->generator, UINT32_MAX));
		draw_name(pencil, entries + 8, 16);
	}
}

/* Each form as likely as another, one that has no name yet too; 8 bytes in all are free. */
static void draw_cpu_map(struct pencil *pencil, struct perfring_cpu_map *map)
{
	uint64_t spare = pencil->allowance & ~UINT64_C(7), before = 4;

	memset(map, 0, sizeof(*map));
	map->type = (uint16_t)draw(pencil->generator, 4);
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		map->nr = (uint16_t)count(pencil->generator, (spare + 4) / 2);
		map->size = map->nr * 2u;
		break;
	case PERFRING_CPU_MAP_MASK:
		map->long_size = spare >= 8 && coin(pencil->generator) ? 8 : 4;
		before = map->long_size == 8 ? 10 : 6;
		map->nr = (uint16_t)count(pencil->generator, (spare + 8 - before) / map->long_size);
		map->size = (uint32_t)map->nr * map->long_size;
		break;
	case PERFRING_CPU_MAP_RANGE_CPUS:
		map->any_cpu = (uint8_t)draw(pencil->generator, 2);
		map->first = (uint16_t)number(pencil->generator, UINT16_MAX);
		map->last = (uint16_t)number(pencil->generator, UINT16_MAX);
		break;
	default:
		map->type = (uint16_t)(map->type + number(pencil->generator, 0xff));
		map->size = (uint32_t)(6 + 8 * count(pencil->generator, spare / 8));
		before = 2;
		pencil->is_open = true;
		break;
	}
	spend(pencil, ((before + map->size + 7) & ~UINT64_C(7)) - LEAST_cpu_map);
	map->data = draw_bytes(pencil, map->size);
}

static void draw_conv(struct pencil *pencil, struct perfring_conv *conv)
{
	memset(conv, 0, sizeof(*conv));
	conv->is_there = pencil->allowance >= 24 && coin(pencil->generator);
	pencil->is_open = !conv->is_there;
	if (!conv->is_there)
		return;
	spend(pencil, 24);
	conv->cap_zero = (uint8_t)draw(pencil->generator, 2);
	conv->cap_short = (uint8_t)draw(pencil->generator, 2);
	conv->cycles = number(pencil->generator, UINT64_MAX);
	conv->mask = number(pencil->generator, UINT64_MAX);
}

static void draw_metadata(struct pencil *pencil, struct perfring_metadata *metadata)
{
	unsigned char *entries;
	uint64_t i;

	metadata->nr = count(pencil->generator, pencil->allowance / 320);
	spend(pencil, 320 * metadata->nr);
	metadata->data = entries = place(pencil, 320 * metadata->nr);
	for (i = 0; i < metadata->nr; i++, entries += 320) {
		draw_name(pencil, entries, 64);
		draw_name(pencil, entries + 64, 256);
	}
}

static void draw_member(struct pencil *pencil, enum perfring_kind kind, void *member)
{
	switch (kind) {
	case PERFRING_KIND_read:
		draw_read_member(pencil, member);
		break;
	case PERFRING_KIND_u16:
		draw_u16(pencil, member);
		break;
	case PERFRING_KIND_u32:
		draw_u32(pencil, member);
		break;
	case PERFRING_KIND_u64:
		draw_u64(pencil, member);
		break;
	case PERFRING_KIND_id128:
		draw_id128(pencil, member);
		break;
	case PERFRING_KIND_tag:
		draw_tag(pencil, member);
		break;
	case PERFRING_KIND_string:
		draw_string(pencil, member);
		break;
	case PERFRING_KIND_list:
		draw_list(pencil, member);
		break;
	case PERFRING_KIND_links:
		draw_links(pencil, member);
		break;
	case PERFRING_KIND_poke:
		draw_poke(pencil, member);
		break;
	case PERFRING_KIND_rest:
		draw_rest(pencil, member);
		break;
	case PERFRING_KIND_words:
		draw_words(pencil, member);
		break;
	case PERFRING_KIND_text64:
		draw_text64(pencil, member);
		break;
	case PERFRING_KIND_text512:
		draw_text512(pencil, member);
		break;
	case PERFRING_KIND_attr:
		draw_attr(pencil, member);
		break;
	case PERFRING_KIND_build_id:
		draw_build_id(pencil, member);
		break;
	case PERFRING_KIND_blob:
		draw_blob(pencil, member);
		break;
	case PERFRING_KIND_index:
		draw_index(pencil, member);
		break;
	case PERFRING_KIND_threads:
		draw_threads(pencil, member);
		break;
	case PERFRING_KIND_cpu_map:
		draw_cpu_map(pencil, member);
		break;
	case PERFRING_KIND_conv:
		draw_conv(pencil, member);
		break;
	case PERFRING_KIND_metadata:
		draw_metadata(pencil, member);
		break;
	default:
		break;
	}
}

/* ---- every other record ---- */

static void draw_trailer(struct pencil *pencil, struct perfring_trailer *trailer)
{
	const struct perfring_format *format = pencil->format;

	trailer->present = 0;
	if (!format || !perfring_format_has_trailer(format))
		return;
#define TRAILER_no(NAME, kind, a, b)
#define TRAILER_yes(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		trailer->present |= PERFRING_SAMPLE_##NAME; \
		draw_##kind(pencil, PERFRING_FIELD_KIND_##kind(PERFRING_BY_PLACES, trailer, a, b)); \
	}
#define TRAILER_last(NAME, kind, a, b) TRAILER_yes(NAME, kind, a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) TRAILER_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
}

/* How many variants of what follows hang on this member, or 0. */
static uint64_t variants_of(const struct perfring_record *record, const void *member)
{
	if (record->type == PERFRING_RECORD_AUXTRACE_ERROR && member == &record->is.auxtrace_error.fmt)
		return 3;
	if (record->type == PERFRING_RECORD_EVENT_UPDATE && member == &record->is.event_update.type)
		return 4;
	return 0;
}

/* Folds: no number is looked up for what is none. */
PERFRING_INLINE const char *group_of(const char *show)
{
	return !strcmp(show, "dec") || !strcmp(show, "signed") || !strcmp(show, "hex") || !strcmp(show, "time") ? NULL
														: show;
}

/* The least of the members that are always there. */
static uint64_t least_of(const struct perfring_format *format, uint32_t type)
{
	uint64_t least = 0;

	switch (type) {
#define PERFRING_RECORD(NAME, type, noun) case PERFRING_RECORD_##NAME:
#define PERFRING_MEMBER(kind, member, show) least += LEAST_##kind;
#define PERFRING_MEMBER_WHEN(when, kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun) break;
#include <perfring/records.def>
	default:
		break;
	}
	return least;
}

/* One try: false when a member that this draw asks for does not fit. */
static bool draw_members_of(struct pencil *pencil, struct perfring_record *record)
{
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		struct perfring_record_##noun *is = &record->is.noun; \
\
		is->reserved_ = 0;
#define PERFRING_MEMBER(kind, member, show) \
	pencil->allowance = pencil->left; \
	pencil->variants = variants_of(record, &is->member); \
	pencil->group = group_of(#show); \
	pencil->last = NULL; \
	draw_member(pencil, PERFRING_KIND_##kind, &is->member);
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (!(when)) { \
		memset(&is->member, 0, sizeof(is->member)); \
	} else if (pencil->left < LEAST_##kind) { \
		return false; \
	} else { \
		pencil->left -= LEAST_##kind; \
		PERFRING_MEMBER(kind, member, show) \
	}
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	pencil->variants = 0;
	pencil->group = NULL;
	return true;
}

int64_t perfring_generate_members(struct perfring_generator *generator, const struct perfring_format *format,
				  uint32_t type, struct perfring_record *record, void *room, size_t size, uint32_t most)
{
	uint32_t trailer = format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(format) : 0;
	uint64_t least = sizeof(struct perf_event_header) + trailer + least_of(format, type);
	struct pencil pencil;
	int tries = 64; /* the shortest variant is one of four */

	if (type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	if (most > PERFRING_RECORD_MAX)
		most = PERFRING_RECORD_MAX;
	most &= ~7u;
	if (size < most || most < least)
		return -ENOSPC;
	do {
		if (!tries--)
			return -ENOSPC;
		memset(&pencil, 0, sizeof(pencil));
		pencil.generator = generator;
		pencil.format = format;
		pencil.room = room;
		pencil.left = most - least;
		pencil.misc = draw_misc(generator);
		record->type = type;
	} while (!draw_members_of(&pencil, record));
	record->trailing = NULL;
	record->trailing_size = 0;
	if (!pencil.is_open)
		record->trailing = draw_trailing(&pencil, perfring_record_name(type) ? 8 : 1, &record->trailing_size);
	/* perf cuts a text at the record's end behind its padding. */
	if (pencil.last && !record->trailing_size && coin(generator)) {
		pencil.used -= pencil.last->room;
		pencil.last->room = (pencil.last->size + 8) & ~7u;
		pencil.used += pencil.last->room;
	}
	record->misc = pencil.misc;
	record->padding = 0;
	if (trailer)
		draw_trailer(&pencil, &record->trailer);
	else
		record->trailer.present = 0;
	record->size = (uint16_t)perfring_record_size(format, record);
	return (int64_t)pencil.used;
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
	struct perfring_record record;
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
	used = perfring_generate_members(generator, format, type, &record, drawn, sizeof(drawn), most);
	return used < 0 ? used : perfring_record_encode(format, &record, room, size);
}
