/* generate.c - random attrs, samples and records, drawn by shape from the tables.
 *
 * The functions of generate.h that draw, for `perfring gen` and the fuzzers.  A record is drawn in one walk over its fields, each
 * of which takes a part of the bytes that are left.  No allocation; the same seed gives the same record on all machines of one
 * byte order.
 */
#include <perfring/generate.h>

#include "attr.h"
#include "layout_private.h"
#include "members.h"
#include "mirror.h"
#include "shapes.h"

/* ---- numbers: splitmix64.  A statement draws once, for C leaves the order of operands open ---- */

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

/* For a bound of 32 bits, no value is more likely than another by more than one in 2^32. */
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

/* A count of at most `most`. */
static uint64_t count(struct perfring_generator *generator, uint64_t most)
{
	static const uint16_t boundaries[] = {7, 15, 16, 63, 64, 127, 128, 135, 255, 256, 512, 1024, 4095, 4096};
	uint64_t nr = draw(generator, 7);

	switch (nr) {
	case 0:
	case 1:
	case 2:
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

/* ---- groups of values.def ---- */

static const struct {
	enum show group;
	int value;
} values[] = {
#define PERFRING_VALUE(group, NAME, value) {SHOW_##group, value},
#include <perfring/values.def>
};

/* The first row of a group: rows are in the order of the groups (values_test). */
static size_t first_of(enum show show)
{
	size_t low = 0, high = sizeof(values) / sizeof(values[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (values[middle].group < show)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t draw_in(struct perfring_generator *generator, enum show show)
{
	size_t first = first_of(show);

	return (uint64_t)values[first + draw(generator, first_of(show + 1) - first)].value;
}

/* All bits of the values of a group. */
static uint64_t bits_in(enum show show)
{
	size_t end = first_of(show + 1);
	uint64_t bits = 0;

	for (size_t i = first_of(show); i < end; i++)
		bits |= (uint64_t)values[i].value;
	return bits;
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

/* Registers of some machine, or any; the kernel accepts no empty mask. */
static uint64_t draw_mask(struct perfring_generator *generator)
{
	uint64_t mask = registers_of(draw_in(generator, SHOW_arch)), bits;

	if (!mask)
		mask = UINT64_MAX;
	bits = bits_of(generator, mask);
	return bits ? bits : mask & -mask;
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

/* Draws fields, but none whose shape depends on a member beyond the attr's end. */
static uint64_t draw_sample_type(struct perfring_generator *generator, size_t size)
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
	static const uint8_t clocks[] = {0, 1, 4, 7, 11}; /* that perf_event_open accepts (docs/abi.md 1.5) */

#define PERFRING_ATTR(member, offset, size, show) members->member = number(generator, UINT64_MAX >> (64 - 8 * (size)));
#include <perfring/values.def>
	members->type = draw_in(generator, SHOW_type);
	members->size = size;
	members->flags = draw_flags(generator);
	members->sample_type = draw_sample_type(generator, size);
	members->read_format = next(generator) & bits_in(SHOW_read_format);
	members->branch_sample_type = bits_of(generator, bits_in(SHOW_branch_sample)) | PERFRING_SAMPLE_BRANCH_ANY;
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
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		members.flags = mirror_attr_flags(members.flags, false);
	memset(attr, 0, size);
#define PERFRING_ATTR(member, offset, bytes, show) \
	if ((offset) + (bytes) <= size) \
		perfring__number_put((unsigned char *)(void *)attr + (offset), bytes, members.member);
#include <perfring/values.def>
	return 0;
}

/* ---- the parts of fields and members, while layout.c walks over them ---- */

/* A record that is being drawn into its buffer, from `used` on.  Each member has its minimal size; what the record can
 * grow beyond the sum of these is `left`. */
struct draw_state {
	struct perfring_generator *generator;
	const struct perfring_format *format;
	unsigned char *buffer;
	size_t used;
	uint64_t left;
	uint64_t allowance; /* how much of `left` the current field may take */
	uint64_t field;     /* PERFRING_SAMPLE_ of the current field; 0 in other records */
	uint64_t how;       /* what its layout depends on besides its bytes, as in kinds.def */
	uint64_t variants;  /* the current number is one of 0 to variants - 1; 0: any number */
	uint64_t promised;  /* bytes whose lengths are already drawn */
	uint64_t text_at;   /* the last member, if it is a text that may be cut at the record's end, or 0 */
	enum show show;
	enum perfring_kind kind;
	uint16_t misc;
	bool has_no_user; /* neither registers nor stack of user space */
	bool is_open;     /* the last member extends to the end of the record: no trailing words */
};

static void put_word(void *words, uint64_t i, uint64_t word)
{
	memcpy((unsigned char *)words + 8 * i, &word, 8);
}

/* Numbers of every size. */
static void draw_words(struct draw_state *state, void *words, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr; i++)
		put_word(words, i, number(state->generator, UINT64_MAX));
}

static void draw_bytes(struct draw_state *state, unsigned char *bytes, uint64_t size)
{
	uint64_t word, at;

	if (!draw(state->generator, 8)) {
		memset(bytes, 0, (size_t)size);
		return;
	}
	for (at = 0; at < size; at += 8) {
		word = next(state->generator);
		memcpy(bytes + at, &word, size - at < 8 ? (size_t)(size - at) : 8);
	}
}

/* Characters of paths, or, one time in 8, any bytes but NUL. */
static void draw_chars(struct draw_state *state, unsigned char *chars, uint64_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ_012345./89";
	bool is_odd = !draw(state->generator, 8);
	uint64_t word = 0, i;

	for (i = 0; i < size; i++, word >>= 8) {
		if (i % 8 == 0)
			word = next(state->generator);
		chars[i] = is_odd ? (unsigned char)(word % 255 + 1) : (unsigned char)plain[word & 63];
	}
}

static uint64_t draw_number(struct draw_state *state, uint64_t mask)
{
	if (state->variants)
		return draw(state->generator, state->variants);
	/* SHOW_float is the first that is no group. */
	if (state->show < SHOW_float && draw(state->generator, 8))
		return draw_in(state->generator, state->show) & mask;
	return number(state->generator, mask);
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

/* CONTEXT_MAX is only the bound of the markers, and a deferred marker stands at the end of a callchain. */
static uint64_t draw_marker(struct perfring_generator *generator)
{
	static const int markers[] = {
		PERFRING_CONTEXT_HV,    PERFRING_CONTEXT_KERNEL,       PERFRING_CONTEXT_USER,
		PERFRING_CONTEXT_GUEST, PERFRING_CONTEXT_GUEST_KERNEL, PERFRING_CONTEXT_GUEST_USER,
	};

	return (uint64_t)(int64_t)markers[draw(generator, sizeof(markers) / sizeof(markers[0]))];
}

/* At most eight parts, each after its marker.  The last part of a sample's callchain may be deferred: marker and
 * cookie. */
static void draw_callchain(struct draw_state *state, void *words, uint64_t nr)
{
	struct perfring_generator *generator = state->generator;
	uint64_t parts = PERFRING_MAX_CONTEXTS_PER_STACK, until = 0, i;

	if (state->field && nr >= 2 && !draw(generator, 4)) {
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

/* The entries of a list, as one part. */
static void fill_entries(struct draw_state *state, const struct perfring_layout_member *part)
{
	const uint64_t flags = (UINT64_C(1) << 33) - 1;
	void *words = (void *)(uintptr_t)part->bytes;
	uint64_t i;

	if (state->kind == PERFRING_KIND_list) {
		draw_callchain(state, words, part->number);
		return;
	}
	if (state->kind != PERFRING_KIND_branch || part->size != 24 * part->number) {
		draw_words(state, words, part->size / 8);
		return;
	}
	for (i = 0; i < 3 * part->number; i++)
		put_word(words, i, i % 3 == 2 ? number(state->generator, flags) : draw_address(state->generator));
}

/* 0 stands for no limit: then the kernel writes no stack of size 0. */
static uint64_t draw_stack_size(struct draw_state *state)
{
	uint64_t limit = state->format->sample_stack_user;
	uint64_t most = state->allowance < 16 ? 0 : (state->allowance - 8) / 8, size;

	if (state->has_no_user)
		return 0;
	size = 8 * count(state->generator, limit && most > limit / 8 ? limit / 8 : most);
	return size || limit ? size : 8;
}

/* The number that says how much of a field follows. */
static uint64_t draw_extent(struct draw_state *state, const struct perfring_layout_member *part)
{
	uint64_t entry;

	switch (state->kind) {
	case PERFRING_KIND_raw:
		/* As the kernel writes it: the next field is aligned. */
		return 4 + 8 * count(state->generator, state->allowance / 8);
	case PERFRING_KIND_aux:
		return 8 * count(state->generator, state->allowance / 8);
	case PERFRING_KIND_stack:
		return draw_stack_size(state);
	case PERFRING_KIND_regs:
		if (8 * state->how > state->allowance ||
		    (state->has_no_user && state->field == PERFRING_SAMPLE_REGS_USER))
			return PERFRING_SAMPLE_REGS_ABI_NONE;
		return draw(state->generator, part->most + 1);
	case PERFRING_KIND_branch:
		/* As perfring__branch_how has it: no branches, or entries with counters. */
		if (state->how >> 63)
			return 0;
		entry = state->how & PERFRING_SAMPLE_BRANCH_COUNTERS ? 32 : part->entry;
		return count(state->generator, state->allowance / entry);
	default:
		return count(state->generator, state->allowance / part->entry);
	}
}

static void fill_number(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	struct draw_state *state = walk->filler;
	uint64_t left = walk->size - walk->at - part->size, mask = UINT64_MAX >> (64 - 8 * part->size), value, other;

	if (walk->is_whole && part->use != PERFRING_LAYOUT_VALUE) {
		part->number = draw_extent(state, part);
		return;
	}
	switch (part->use) {
	case PERFRING_LAYOUT_COUNT:
		/* Where entries differ, their size and padding come first. */
		other = part->entry ? 0 : 6;
		value = left < other ? 0 : count(state->generator, (left - other) / (part->entry ? part->entry : 8));
		break;
	case PERFRING_LAYOUT_LENGTH:
		/* Of two lengths of 2 bytes each, the first may take all, or half. */
		other = state->promised + (part->size == 2 ? 2 : 0);
		left = left < other ? 0 : left - other;
		if (part->size == 2 && !state->promised && coin(state->generator))
			left /= 2;
		value = count(state->generator, left < mask ? left : mask);
		state->promised += value;
		break;
	case PERFRING_LAYOUT_CHOICE:
		if (part->number)
			value = left >= 4 && coin(state->generator) ? 2 * part->number : part->number;
		else
			value = draw(state->generator, 4);
		if (!part->number && value == 3)
			value += number(state->generator, 0xff);
		break;
	default:
		if (part->most < mask)
			value = coin(state->generator) ? part->most : draw(state->generator, part->most + 1);
		else
			value = part->depth ? number(state->generator, mask) : draw_number(state, mask);
		break;
	}
	part->number = value & mask;
}

static void fill_string(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	struct draw_state *state = walk->filler;
	unsigned char *bytes = (unsigned char *)(uintptr_t)part->bytes;
	uint64_t most = part->space & ~UINT64_C(7), size, space;

	if (!part->is_open) {
		size = count(state->generator, part->space - 1);
		draw_chars(state, bytes, size);
		memset(bytes + size, 0, (size_t)(part->space - size));
		state->text_at = part->depth ? 0 : walk->at;
		return;
	}
	/* Padded to 8, and sometimes more than that. */
	size = count(state->generator, most - 1);
	space = (size + 8) & ~UINT64_C(7);
	if (!draw(state->generator, 8) && space + 16 <= most)
		space += 8 + 8 * draw(state->generator, 2);
	memset(bytes, 0, (size_t)space);
	draw_chars(state, bytes, size);
	walk->size = walk->at + space;
	state->is_open = true;
}

static void fill_bytes(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	struct draw_state *state = walk->filler;
	uint64_t size = part->size;

	if (part->is_open) {
		size = count(state->generator, size);
		walk->size = walk->at + size;
		state->is_open = true;
	}
	if (state->promised)
		state->promised -= size;
	draw_bytes(state, (unsigned char *)(uintptr_t)part->bytes, size);
}

static void fill_attr(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	static const uint16_t sizes[] = {
#define PERFRING_ATTR_SIZE(version, size) size,
#include <perfring/values.def>
	};
	struct draw_state *state = walk->filler;
	uint64_t most = walk->size - walk->at, size;

	if (most > PERFRING_ATTR_MAX)
		most = PERFRING_ATTR_MAX;
	size = sizes[draw(state->generator, sizeof(sizes) / sizeof(sizes[0]))];
	if (!draw(state->generator, 4))
		size = PERFRING_ATTR_MIN + 8 * count(state->generator, (most - PERFRING_ATTR_MIN) / 8);
	if (size > most)
		size = PERFRING_ATTR_MIN;
	perfring_generate_attr(state->generator, (void *)(uintptr_t)part->bytes, (size_t)size);
}

/* The number of entries up to the end, or whether parts that may be missing are there. */
static void fill_parts(struct perfring_layout_walk *walk, struct perfring_layout_member *parts)
{
	struct draw_state *state = walk->filler;
	uint64_t left = walk->size - walk->at;

	if (parts->use == PERFRING_LAYOUT_VALUE) {
		fill_entries(state, parts);
		return;
	}
	if (parts->use == PERFRING_LAYOUT_COUNT) {
		walk->size = walk->at + parts->entry * count(state->generator, left / parts->entry);
		state->is_open = true;
		return;
	}
	parts->number = left >= parts->size && coin(state->generator);
	if (parts->number)
		return;
	walk->size = walk->at;
	state->is_open = true;
}

static void fill_padding(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	(void)walk;
	memset((void *)(uintptr_t)part->bytes, 0, (size_t)part->size);
}

static void fill_part(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	static void (*const fills[])(struct perfring_layout_walk *, struct perfring_layout_member *) = {
		[PERFRING_LAYOUT_NUMBER] = fill_number, [PERFRING_LAYOUT_STRING] = fill_string,
		[PERFRING_LAYOUT_BYTES] = fill_bytes,   [PERFRING_LAYOUT_ATTR] = fill_attr,
		[PERFRING_LAYOUT_PARTS] = fill_parts,   [PERFRING_LAYOUT_PADDING] = fill_padding,
	};

	fills[part->kind](walk, part);
}

/* Draws one field or member at state->used.  Its own are `least` bytes of the record, and what it takes of
 * state->left. */
static void draw_member(struct draw_state *state, enum perfring_kind kind, uint64_t how, uint64_t least)
{
	uint64_t end = state->used + least + state->left;
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	state->kind = kind;
	state->how = how;
	state->text_at = 0;
	if (state->field || kind == PERFRING_KIND_read)
		perfring__layout_open_field(&walk, kind, how, state->buffer, state->used, end);
	else
		perfring__layout_open_member(&walk, kind, state->misc, state->buffer, state->used, end);
	walk.is_whole = state->field || kind == PERFRING_KIND_read || kind == PERFRING_KIND_list;
	walk.fill = fill_part;
	walk.filler = state;
	while (perfring_layout_next(&walk, &part) == 1)
		;
	state->left += least - (walk.at - state->used);
	state->used = (size_t)walk.at;
}

/* ---- samples ---- */

enum {
	VARYING = 0
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	| (PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) ? 0 : PERFRING_SAMPLE_##NAME)
#include <perfring/fields.def>
};

/* The decoder takes the shape that uses up the record.  So hw_idx or counters may be missing only where no other shape
 * fits: when every field after the branch stack is one word, the full shape is too long by just what is missing. */
static bool is_branch_free(const struct perfring_format *format)
{
	uint64_t after = 0;

#define PERFRING_FIELD(NAME, bit, kind, ...) \
	after = PERFRING_SAMPLE_##NAME == PERFRING_SAMPLE_BRANCH_STACK ? 0 : after | PERFRING_SAMPLE_##NAME;
#include <perfring/fields.def>
	return !(format->sample_type & after & VARYING);
}

/* Chooses what the branch stack lacks; hw_idx, where it may be missing, is part of the allowance. */
static unsigned draw_shape(struct draw_state *state)
{
	uint64_t type = state->format->branch_sample_type;

	if (state->field != PERFRING_SAMPLE_BRANCH_STACK || !is_branch_free(state->format))
		return 0;
	if (type & PERFRING_SAMPLE_BRANCH_HW_INDEX) {
		if (state->allowance < 8 || !draw(state->generator, 4))
			return PERFRING_BRANCH_SHAPE_NO_HW_IDX;
		state->allowance -= 8;
	}
	if (type & PERFRING_SAMPLE_BRANCH_COUNTERS && !draw(state->generator, 4))
		return PERFRING_BRANCH_SHAPE_NO_COUNTERS;
	return 0;
}

/* The bytes that a field always has beyond its minimal size. */
static uint64_t fixed_extra(const struct perfring_format *format, uint64_t field)
{
	if (field & format->sample_type & PERFRING_SAMPLE_RAW)
		return 4;
	return field & format->sample_type & PERFRING_SAMPLE_BRANCH_STACK &&
			       format->branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX && !is_branch_free(format)
		       ? 8
		       : 0;
}

static uint64_t least_of_sample(const struct perfring_format *format)
{
	return perfring_format_least(format) + fixed_extra(format, PERFRING_SAMPLE_RAW) +
	       fixed_extra(format, PERFRING_SAMPLE_BRANCH_STACK);
}

/* Draws one of the set bits. */
static uint64_t one_of(struct perfring_generator *generator, uint64_t set)
{
	uint64_t skip = draw(generator, (uint64_t)__builtin_popcountll(set));

	for (; skip; skip--)
		set &= set - 1;
	return set & -set;
}

/* Each field of varying length has an even share; one of them may take all that is not reserved for the others. */
static void draw_fields(struct draw_state *state)
{
	const struct perfring_format *format = state->format;
	uint64_t varying = format->sample_type & VARYING, greedy = 0, share = 0, reserved;

	if (varying) {
		greedy = one_of(state->generator, varying);
		share = state->left / (uint64_t)__builtin_popcountll(varying) & ~UINT64_C(7);
	}
	/* With user registers and no stack asked for, the kernel writes a stack of size 0 wrongly (docs/abi.md 14.3), so
	 * the sample has neither.  A format made by hand may have a stack all the same. */
	state->has_no_user = (varying & PERFRING_SAMPLE_STACK_USER) && !format->sample_stack_user &&
			     (coin(state->generator) || share < 16);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		unsigned shape; \
\
		state->field = PERFRING_SAMPLE_##NAME; \
		varying &= ~state->field; \
		reserved = share * (uint64_t)__builtin_popcountll(varying); \
		state->allowance = state->field == greedy ? state->left - reserved : share; \
		shape = draw_shape(state); \
		(void)shape; \
		draw_member(state, PERFRING_KIND_##kind, PERFRING_FIELD_KIND_##kind(PERFRING_BY_HOW, none, a, b), \
			    PERFRING_FIELD_KIND_##kind(PERFRING_BY_LEAST, none, a, b) + \
				    fixed_extra(format, PERFRING_SAMPLE_##NAME)); \
	}
#include <perfring/fields.def>
	/* Beside a branch stack of more than one shape, trailing bytes may make the wrong one fit. */
	if (format->branch_sample_type & (PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS))
		state->left = 0;
}

/* ---- every other record ---- */

/* How many variants of the following members depend on this one, or 0. */
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
	return perfring__layout_least((enum perfring_kind)row->kind);
}

/* The minimal size of the members that are always there. */
static uint64_t least_of(const struct perfring_format *format, uint32_t type)
{
	const struct member_row *row;
	uint64_t least = 0;

	for (row = perfring__members_of(type); row->kind != PERFRING_KINDS; row++)
		if (!row->is_conditional)
			least += least_of_member(format, row);
	return least;
}

/* The bit of misc on which the layout of a kind depends. */
static uint16_t misc_bit_of(enum perfring_kind kind)
{
	return kind == PERFRING_KIND_id128      ? PERFRING_RECORD_MISC_MMAP_BUILD_ID
	       : kind == PERFRING_KIND_build_id ? PERFRING_RECORD_MISC_BUILD_ID_SIZE
						: 0;
}

/* One try: false when a member that this draw asks for does not fit. */
static bool draw_members_of(struct draw_state *state, uint32_t type)
{
	struct perfring_record record = {.type = type};
	const struct member_row *row;
	enum perfring_kind kind;
	uint64_t least;
	void *member;

	for (row = perfring__members_of(type); row->kind != PERFRING_KINDS; row++) {
		kind = (enum perfring_kind)row->kind;
		/* Without a format the layout of a read block is unknown, and it has no bytes. */
		if (!perfring__members_has(&record, row) || (kind == PERFRING_KIND_read && !state->format))
			continue;
		least = least_of_member(state->format, row);
		if (row->is_conditional && state->left < least)
			return false;
		state->left -= row->is_conditional ? least : 0;
		member = perfring__member_in(&record, row);
		state->variants = variants_of(&record, member);
		state->show = (enum show)row->show;
		state->allowance = state->left;
		state->misc &= (uint16_t)~misc_bit_of(kind);
		if (misc_bit_of(kind) && coin(state->generator))
			state->misc |= misc_bit_of(kind);
		draw_member(state, kind, kind == PERFRING_KIND_read ? state->format->read_format : 0, least);
		/* Later members may depend on a number. */
		if (kind <= PERFRING_KIND_u64)
			memcpy(member, state->buffer + state->used - row->size, row->size);
	}
	return true;
}

/* ---- whole records ---- */

static uint16_t draw_misc(struct perfring_generator *generator)
{
	uint16_t misc = (uint16_t)draw_in(generator, SHOW_cpumode);

	if (coin(generator))
		misc |= (uint16_t)(draw(generator, 4) << 13);
	if (!draw(generator, 16))
		misc |= (uint16_t)(1 << (3 + draw(generator, 13)));
	return misc;
}

/* Words after the known members, as a newer kernel may write them: one time in `seldom`.  Returns their size. */
static uint64_t draw_trailing(struct draw_state *state, uint64_t seldom)
{
	uint64_t size = draw(state->generator, seldom) ? 0 : 8 * count(state->generator, state->left / 8);

	draw_bytes(state, state->buffer + state->used, size);
	state->used += (size_t)size;
	return size;
}

/* Writes a record into the buffer.  Returns its size, or -ENOSPC. */
static int64_t draw_record(struct perfring_generator *generator, const struct perfring_format *format, uint32_t type,
			   unsigned char *buffer, size_t size, uint32_t most)
{
	bool is_sample = type == PERFRING_RECORD_SAMPLE;
	uint32_t trailer = format && !is_sample && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(format) : 0;
	uint64_t least = is_sample ? least_of_sample(format)
				   : sizeof(struct perf_event_header) + trailer + least_of(format, type);
	struct perf_event_header header = {.type = type};
	uint64_t trailing = 0;
	struct draw_state state;
	int tries = 64; /* the shortest variant is one of four */

	most = (most < PERFRING_RECORD_MAX ? most : PERFRING_RECORD_MAX) & ~7u;
	if (size < most || most < least)
		return -ENOSPC;
	do {
		if (!tries--)
			return -ENOSPC;
		memset(&state, 0, sizeof(state));
		state.generator = generator;
		state.format = format;
		state.buffer = buffer;
		state.used = sizeof(header);
		state.left = most - least;
		state.show = SHOW_dec;
		state.misc = draw_misc(generator);
		if (is_sample)
			draw_fields(&state);
	} while (!is_sample && !draw_members_of(&state, type));
	if (!state.is_open)
		trailing = draw_trailing(&state, perfring_record_name(type) ? 8 : 1);
	/* perf cuts a text at the record's end after its padding. */
	if (state.text_at && !trailing && coin(generator))
		state.used = (size_t)(state.text_at + ((strlen((char *)buffer + state.text_at) + 8) & ~(size_t)7));
	draw_words(&state, buffer + state.used, trailer / 8);
	header.misc = state.misc;
	header.size = (uint16_t)(state.used + trailer);
	memcpy(buffer, &header, sizeof(header));
	return header.size;
}

int64_t perfring_generate_sample(struct perfring_generator *generator, const struct perfring_format *format,
				 struct perfring_sample *sample, void *buffer, size_t size, uint32_t most)
{
	int64_t used = draw_record(generator, format, PERFRING_RECORD_SAMPLE, buffer, size, most);

	return used < 0 ? used : perfring_sample_decode_any(format, buffer, sample, NULL) ? -EINVAL : used;
}

int64_t perfring_generate_members(struct perfring_generator *generator, const struct perfring_format *format,
				  uint32_t type, struct perfring_record *record, void *buffer, size_t size,
				  uint32_t most)
{
	int64_t used;

	if (type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	used = draw_record(generator, format, type, buffer, size, most);
	return used < 0 ? used : perfring_record_decode(format, buffer, record, NULL) ? -EINVAL : used;
}

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

int64_t perfring_generate_record(struct perfring_generator *generator, const struct perfring_format *format,
				 uint32_t type, void *buffer, size_t size)
{
	if (!type)
		type = draw_type(generator, format);
	if (type == PERFRING_RECORD_SAMPLE && !format)
		return -EINVAL;
	return draw_record(generator, format, type, buffer, size, size < UINT32_MAX ? (uint32_t)size : UINT32_MAX);
}
