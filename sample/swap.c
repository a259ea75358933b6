/* swap.c - records, samples and attrs of the other byte order. */
#include <perfring/swap.h>

#include "attr.h"
#include "layout.h"
#include "mirror.h"
#include "shapes.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* One function a kind does all three: it swaps a whole record into the room, from the foreign order or to it, or
 * decodes a foreign sample, for which only words are swapped there.  What is in the room lies where it lies in the
 * record.
 *
 * A length decides by its native value, and is swapped before it is found too long.  So both directions see the same
 * lengths and stop at the same place: they undo each other on damaged records too. */
enum mode {
	TO_NATIVE,
	TO_FOREIGN,
	DECODE,
};

struct turn {
	struct perfring_cursor cursor; /* over the record; ends where the trailer begins */
	const struct perfring_format *format;
	unsigned char *room;
	enum mode mode;
	uint16_t misc; /* in our order */
};

static const char ends_early[] = "record ends inside this field";

/* ---- numbers: *value is in our order ---- */

#define TURN_NUMBER(name, type, bits) \
	FOLDED bool turn_##name(struct turn *turn, type *value) \
	{ \
		unsigned char *to = turn->room + turn->cursor.position; \
		type turned; \
\
		if (PERFRING_UNLIKELY(!perfring_take_##name(&turn->cursor, value))) \
			return false; \
		turned = __builtin_bswap##bits(*value); \
		if (turn->mode != DECODE) \
			memcpy(to, &turned, sizeof(turned)); \
		if (turn->mode != TO_FOREIGN) \
			*value = turned; \
		return true; \
	}
TURN_NUMBER(short, uint16_t, 16)
TURN_NUMBER(half, uint32_t, 32)
TURN_NUMBER(word, uint64_t, 64)
#undef TURN_NUMBER

/* ---- words: *words are those in the room ---- */

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

AVX2 FOLDED void swap_8(perfring_word *to, const perfring_word *from)
{
	const __m256i order = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x08090a0b0c0d0e0f, 0x0001020304050607));

	_mm256_storeu_si256((void *)to, _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)from), order));
	_mm256_storeu_si256((void *)(to + 4), _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)(from + 4)), order));
}

/* At least 8.  Where they are no multiple, some of the last 8 are swapped twice: callchains are of any length, and a
 * loop over what is left would take longer.  A foreign callchain sample costs 1.35 native ones with it. */
AVX2 __attribute__((noinline)) static int swap_many(perfring_word *to, const perfring_word *from, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr - 8; i += 8)
		swap_8(to + i, from + i);
	swap_8(to + nr - 8, from + nr - 8);
	return 0;
}

#define HAS_SWAP_MANY __builtin_cpu_supports("avx2")
#else
#define swap_many(to, from, nr) 0
#define HAS_SWAP_MANY false
#endif

/* Returns 0, so that it can be the last call of those who do. */
FOLDED int swap_words(perfring_word *to, const perfring_word *from, uint64_t nr)
{
	uint64_t i;

	if (PERFRING_LIKELY(nr >= 8) && PERFRING_LIKELY(HAS_SWAP_MANY))
		return swap_many(to, from, nr);
	for (i = 0; i < nr; i++)
		to[i] = __builtin_bswap64(from[i]);
	return 0;
}

FOLDED bool turn_words(struct turn *turn, const perfring_word **words, uint64_t nr)
{
	perfring_word *to = (perfring_word *)(void *)(turn->room + turn->cursor.position);
	const perfring_word *from = NULL;

	*words = to;
	if (PERFRING_UNLIKELY(!perfring_take_words(&turn->cursor, &from, nr)))
		return false;
	swap_words(to, from, nr);
	return true;
}

/* ---- attrs ---- */

/* Its bytes are in both.  Neither need be aligned. */
static void turn_attr_member(enum mode mode, unsigned char *to, const unsigned char *from, uint32_t offset,
			     uint32_t size)
{
	uint64_t word = 0;
	uint32_t half = 0;
	uint16_t quarter = 0;

	if (size == 8) {
		memcpy(&word, from + offset, sizeof(word));
		word = offset == PERFRING_ATTR_AT_flags ? SWAP_BITS(mode == TO_FOREIGN, mirror_attr_flags, word)
							: __builtin_bswap64(word);
		memcpy(to + offset, &word, sizeof(word));
	} else if (size == 4) {
		memcpy(&half, from + offset, sizeof(half));
		/* one-bit fields: mirrored and swapped, each byte has its bits mirrored */
		half = offset == PERFRING_ATTR_AT_aux_action ? (uint32_t)mirror_bits(__builtin_bswap64(half))
							     : __builtin_bswap32(half);
		memcpy(to + offset, &half, sizeof(half));
	} else {
		memcpy(&quarter, from + offset, sizeof(quarter));
		quarter = __builtin_bswap16(quarter);
		memcpy(to + offset, &quarter, sizeof(quarter));
	}
}

/* 0 stands for the oldest size (docs/abi.md 1.3). */
static uint32_t attr_own_size(enum mode mode, const unsigned char *from)
{
	uint32_t size;

	memcpy(&size, from + PERFRING_ATTR_AT_size, sizeof(size));
	if (mode != TO_FOREIGN)
		size = __builtin_bswap32(size);
	return size ? size : PERFRING_ATTR_MIN;
}

/* A member that the attr's size cuts stays as it is: half a number has no value to go by. */
static void turn_attr_members(enum mode mode, unsigned char *to, const unsigned char *from, uint32_t own)
{
#define PERFRING_ATTR(member, offset, size, show) \
	if ((offset) + (size) <= own) \
		turn_attr_member(mode, to, from, offset, size);
#include <perfring/values.def>
}

static int64_t attr_swap(enum mode mode, const struct perf_event_attr *attr, void *room, size_t size)
{
	const unsigned char *from = (const unsigned char *)(const void *)attr;
	uint32_t own = attr_own_size(mode, from);

	if (own < PERFRING_ATTR_MIN || own > PERFRING_ATTR_MAX)
		return -EINVAL;
	if (size < own)
		return -ENOSPC;
	if (room != from)
		memcpy(room, from, own);
	turn_attr_members(mode, room, from, own);
	return own;
}

int64_t perfring_attr_to_native(const struct perf_event_attr *foreign, void *room, size_t size)
{
	return attr_swap(TO_NATIVE, foreign, room, size);
}

int64_t perfring_attr_to_foreign(const struct perf_event_attr *attr, void *room, size_t size)
{
	return attr_swap(TO_FOREIGN, attr, room, size);
}

/* ---- the fields of samples: one function a kind.  NULL, or what is wrong.  Some are kinds of members too. ---- */

FOLDED const char *turn_u64(struct turn *turn, uint64_t *value)
{
	return turn_word(turn, value) ? NULL : ends_early;
}

FOLDED const char *turn_pair(struct turn *turn, uint32_t *first, uint32_t *second)
{
	struct turn half = *turn;
	const void *bytes;

	if (PERFRING_UNLIKELY(!perfring_take_bytes(&turn->cursor, &bytes, 8)))
		return ends_early;
	half.cursor = perfring_cursor_init(bytes, 0, 8);
	half.room = turn->room + turn->cursor.position - 8;
	turn_half(&half, first);
	turn_half(&half, second);
	return NULL;
}

/* One number, whose halves trade places on the other machine (docs/abi.md 6). */
FOLDED const char *turn_weight(struct turn *turn, struct perfring_weight *weight)
{
	uint64_t word = 0;

	if (PERFRING_UNLIKELY(!turn_word(turn, &word)))
		return ends_early;
	weight->var1 = (uint32_t)word;
	weight->var2 = (uint16_t)(word >> 32);
	weight->var3 = (uint16_t)(word >> 48);
	return NULL;
}

FOLDED const char *turn_read(struct turn *turn, struct perfring_read *read, uint64_t read_format)
{
	bool group = read_format & PERFRING_FORMAT_GROUP;
	uint32_t entry = perfring_format_read_entry(read_format);
	const perfring_word *behind;

	read->read_format = read_format;
	read->nr = 1;
	read->enabled = 0;
	read->running = 0;
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(&turn->cursor, perfring_format_read_least(read_format))))
		return "record ends inside the read block";
	if (group)
		turn_word(turn, &read->nr);
	else
		turn_words(turn, &read->entries, 1);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		turn_word(turn, &read->enabled);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		turn_word(turn, &read->running);
	if (!group) {
		turn_words(turn, &behind, entry / 8 - 1);
		return NULL;
	}
	if (PERFRING_UNLIKELY(read->nr > perfring_cursor_left(&turn->cursor) / entry))
		return "read block: more entries than the record holds";
	turn_words(turn, &read->entries, read->nr * (entry / 8));
	return NULL;
}

FOLDED const char *turn_list(struct turn *turn, struct perfring_list *list)
{
	if (PERFRING_UNLIKELY(!turn_word(turn, &list->nr)))
		return ends_early;
	return turn_words(turn, &list->words, list->nr) ? NULL : "list longer than the record";
}

FOLDED const char *turn_raw(struct turn *turn, struct perfring_raw *raw)
{
	raw->padding = 0;
	if (PERFRING_UNLIKELY(!turn_half(turn, &raw->size)))
		return ends_early;
	return perfring_take_bytes(&turn->cursor, &raw->data, raw->size) ? NULL : "raw data longer than the record";
}

FOLDED void turn_entries(struct turn *turn, struct perfring_branch_stack *stack)
{
	perfring_word *to = (perfring_word *)(void *)(turn->room + turn->cursor.position);
	const perfring_word *from = NULL;
	uint64_t i;

	perfring_take_words(&turn->cursor, &from, stack->nr * 3);
	for (i = 0; i < stack->nr; i++) {
		to[3 * i] = __builtin_bswap64(from[3 * i]);
		to[3 * i + 1] = __builtin_bswap64(from[3 * i + 1]);
		to[3 * i + 2] = SWAP_BITS(turn->mode == TO_FOREIGN, mirror_branch_flags, from[3 * i + 2]);
	}
	stack->entries = to;
}

FOLDED const char *turn_branch(struct turn *turn, struct perfring_branch_stack *stack, uint64_t branch_sample_type,
			       unsigned shape)
{
	stack->counters = NULL;
	stack->hw_idx = 0;
	stack->has_hw_idx =
		(branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && !(shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX);
	if (PERFRING_UNLIKELY(!turn_word(turn, &stack->nr)))
		return ends_early;
	if ((shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX) && stack->nr)
		return "branch stack without its hw_idx";
	if (stack->has_hw_idx && PERFRING_UNLIKELY(!turn_word(turn, &stack->hw_idx)))
		return "record ends inside the branch stack";
	if (PERFRING_UNLIKELY(stack->nr > perfring_cursor_left(&turn->cursor) / 24))
		return "branch stack longer than the record";
	turn_entries(turn, stack);
	if ((branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS) && !(shape & PERFRING_BRANCH_SHAPE_NO_COUNTERS) &&
	    PERFRING_UNLIKELY(!turn_words(turn, &stack->counters, stack->nr)))
		return "record ends inside the branch counters";
	return NULL;
}

FOLDED const char *turn_regs(struct turn *turn, struct perfring_regs *regs, uint64_t mask, uint32_t nr, uint32_t arch)
{
	regs->mask = mask;
	regs->nr = 0;
	regs->arch = arch;
	if (PERFRING_UNLIKELY(!turn_word(turn, &regs->abi)))
		return ends_early;
	if (regs->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		regs->nr = nr;
	return turn_words(turn, &regs->values, regs->nr) ? NULL : "record ends inside the registers";
}

FOLDED const char *turn_stack(struct turn *turn, struct perfring_stack *stack)
{
	stack->dyn_size = 0;
	if (PERFRING_UNLIKELY(!turn_word(turn, &stack->size)))
		return ends_early;
	if (PERFRING_UNLIKELY(!perfring_take_bytes(&turn->cursor, &stack->data, stack->size)))
		return "stack longer than the record";
	if (stack->size && PERFRING_UNLIKELY(!turn_word(turn, &stack->dyn_size)))
		return "record ends before dyn_size";
	if (PERFRING_UNLIKELY(stack->dyn_size > stack->size))
		return "dyn_size larger than the stack";
	return NULL;
}

FOLDED const char *turn_aux(struct turn *turn, struct perfring_aux *aux)
{
	if (PERFRING_UNLIKELY(!turn_word(turn, &aux->size)))
		return ends_early;
	return perfring_take_bytes(&turn->cursor, &aux->data, aux->size) ? NULL : "aux data longer than the record";
}

/* Fields of newer kernels are words.  What is less than one is copied. */
FOLDED void turn_trailing(struct turn *turn)
{
	uint32_t left = perfring_cursor_left(&turn->cursor);
	const perfring_word *words;

	turn_words(turn, &words, left / 8);
	memcpy(turn->room + turn->cursor.position, turn->cursor.base + turn->cursor.position, left % 8);
}

/* The record is not empty, and the room has its size.  `turn` is at the first field. */
FOLDED int turn_fields(struct turn turn, struct perfring_sample *sample, struct perfring_fault *fault, unsigned shape)
{
	const struct perfring_format *format = turn.format;
	uint64_t left = PERFRING_SAMPLE_KNOWN; /* of this row and those behind it: known to the compiler */
	uint64_t type = format->sample_type;

	if (turn.mode != DECODE)
		memcpy(turn.room + turn.cursor.position, turn.cursor.base + turn.cursor.position,
		       perfring_cursor_left(&turn.cursor));
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (!PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) && !(type & left)) \
		goto done; \
	left &= ~(uint64_t)PERFRING_SAMPLE_##NAME; \
	if (type & PERFRING_SAMPLE_##NAME) { \
		uint32_t at = turn.cursor.position; \
		const char *what = turn_##kind(&turn, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b)); \
		if (PERFRING_UNLIKELY(what)) \
			return perfring_fault_set(fault, at, what); \
	}
#include <perfring/fields.def>
done:
	sample->misc = turn.misc;
	sample->present = type & PERFRING_SAMPLE_KNOWN;
	sample->trailing = turn.room + turn.cursor.position;
	sample->trailing_size = perfring_cursor_left(&turn.cursor);
	if (PERFRING_UNLIKELY(sample->trailing_size))
		turn_trailing(&turn);
	return 0;
}

static __attribute__((noinline)) int turn_any(const struct turn *turn, struct perfring_sample *sample,
					      struct perfring_fault *fault, unsigned shape)
{
	return turn_fields(*turn, sample, fault, shape);
}

/* As in sample.c: the shape that uses up the record, else the first that fits. */
static __attribute__((noinline)) int turn_branches(const struct turn *turn, struct perfring_sample *sample,
						   struct perfring_fault *fault)
{
	uint64_t may_lack = turn->format->branch_sample_type;
	unsigned fits = 0;
	bool found = false;
	size_t i;

	for (i = 0; i < BRANCH_TRIES; i++) {
		if ((may_lack & branch_tries[i].when) != branch_tries[i].when ||
		    turn_any(turn, sample, NULL, branch_tries[i].shape))
			continue;
		if (!sample->trailing_size)
			return 0;
		if (!found)
			fits = branch_tries[i].shape;
		found = true;
	}
	return turn_any(turn, sample, fault, fits);
}

FOLDED struct turn turn_of(enum mode mode, const struct perfring_format *format, const void *record,
			   struct perf_event_header native, void *room)
{
	return (struct turn){
		.cursor = perfring_cursor_init(record, sizeof(native), native.size),
		.format = format,
		.room = room,
		.mode = mode,
		.misc = native.misc,
	};
}

static __attribute__((noinline)) int decode_branches(const struct perfring_format *format,
						     const struct perf_event_header *foreign,
						     struct perf_event_header header, struct perfring_sample *sample,
						     void *room, struct perfring_fault *fault)
{
	struct turn turn = turn_of(DECODE, format, foreign, header, room);

	return turn_branches(&turn, sample, fault);
}

static __attribute__((noinline)) int decode_rare(const struct perfring_format *format,
						 const struct perf_event_header *foreign,
						 struct perfring_sample *sample, void *room, size_t size,
						 struct perfring_fault *fault)
{
	/* read once: a peer may be able to write to this memory (reader.h) */
	struct perf_event_header header = perfring_header_to_native(foreign);

	/* No plan, or a wrong one, harms nobody: every field has its own test. */
	if (header.size < sizeof(header) || header.size < format->least)
		return perfring_fault_set(fault,
					  header.size < sizeof(header) ? offsetof(perfring_header, size) : header.size,
					  "sample shorter than its fields");
	if (size < header.size)
		return -ENOSPC;
	if (branches_may_lack(format))
		return decode_branches(format, foreign, header, sample, room, fault);
	return turn_fields(turn_of(DECODE, format, foreign, header, room), sample, fault, 0);
}

/* Those of `some` that the format has.  Returns where the next field begins. */
FOLDED const perfring_word *swap_front(const perfring_word *from, uint64_t type, uint64_t some,
				       struct perfring_sample *sample)
{
	uint64_t word;

/* Swapping the whole word exchanges the halves as well: on a little-endian machine the first is now the upper one. */
#define FIRST_SHIFT (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 32 : 0)
#define FRONT_number(a, b) sample->a = word;
#define FRONT_numbers(a, b) \
	sample->a = (uint32_t)(word >> FIRST_SHIFT); \
	sample->b = (uint32_t)(word >> (32 - FIRST_SHIFT));
#define FRONT_own(a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (some & type & PERFRING_SAMPLE_##NAME) { \
		word = __builtin_bswap64(*from++); \
		PERFRING_FIELD_BY(FRONT_, PERFRING_FIELD_KIND_##kind)(a, b) \
	}
#include <perfring/fields.def>
	return from;
}

/* Nearly every sample has these words and a callchain that is all the rest of it: where that begins the plan says.
 * What is otherwise begins anew on the way of the rare.  All that can fail comes first: what is left then needs no more
 * registers than a call may clobber. */
int perfring_sample_decode_foreign(const struct perfring_format *format, const struct perf_event_header *foreign,
				   struct perfring_sample *sample, void *room, size_t size,
				   struct perfring_fault *fault)
{
	/* size is read once: a peer may be able to write to this memory (reader.h) */
	const volatile perfring_header *header = (const volatile perfring_header *)foreign;
	const unsigned char *bytes = (const unsigned char *)foreign;
	uint32_t own = __builtin_bswap16(header->size);
	uint32_t least = format->least;
	uint32_t left = own - least;
	uint64_t type = format->sample_type;
	const perfring_word *words = (const perfring_word *)(const void *)(bytes + least);
	const perfring_word *front = (const perfring_word *)(const void *)(bytes + sizeof(*foreign));
	perfring_word *to = (perfring_word *)(void *)((unsigned char *)room + least);

	if (PERFRING_UNLIKELY(own < sizeof(*foreign) + FRONT_SIZE || own > size || least > own || left % 8 ||
			      (type & ~(uint64_t)FRONT) != PERFRING_SAMPLE_CALLCHAIN ||
			      least < sizeof(*foreign) + sizeof(*words) || __builtin_bswap64(words[-1]) != left / 8))
		return decode_rare(format, foreign, sample, room, size, fault);
	sample->present = type;
	sample->trailing = (unsigned char *)room + own;
	sample->trailing_size = 0;
	sample->misc = __builtin_bswap16(header->misc);
	sample->callchain.words = to;
	sample->callchain.nr = left / 8;
	front = swap_front(front, type, PERFRING_SAMPLE_IDENTIFIER | PLACE, sample);
	if (type & IDS)
		front = swap_front(front, type, IDS, sample);
	swap_front(front, type, COUNT, sample);
	return swap_words(to, words, left / 8);
}

/* ---- the members of the other records ---- */

/* By the kind's layout, in the room, which has the record already. */
static const char *turn_laid(struct turn *turn, enum perfring_kind kind)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;

	perfring_layout_open_member(&walk, kind, turn->misc, turn->room, turn->cursor.position, turn->cursor.length);
	walk.order = turn->mode == TO_FOREIGN ? LAYOUT_TO_OTHER : LAYOUT_FROM_OTHER;
	while (perfring_layout_next(&walk, &member) == 1)
		;
	turn->cursor.position = (uint32_t)walk.at;
	return walk.fault.what;
}

/* The kinds of numbers, on which later members may hang, and what needs no walk; the others by their layouts. */
FOLDED const char *turn_member(struct turn *turn, enum perfring_kind kind, void *member)
{
	switch (kind) {
	case PERFRING_KIND_u16:
		return turn_short(turn, member) ? NULL : ends_early;
	case PERFRING_KIND_u32:
		return turn_half(turn, member) ? NULL : ends_early;
	case PERFRING_KIND_u64:
		return turn_u64(turn, member);
	case PERFRING_KIND_read:
		/* Without a format nothing tells how the block lies. */
		return turn->format ? turn_read(turn, member, turn->format->read_format) : NULL;
	case PERFRING_KIND_list:
		return turn_list(turn, member);
	case PERFRING_KIND_string:
		turn->cursor.position = turn->cursor.length;
		return NULL;
	default:
		return turn_laid(turn, kind);
	}
}

/* ---- the trailer: fields.def's order, but for IDENTIFIER, which is last (docs/abi.md 4.2).  Its size was tested. ---- */

static void turn_trailer(struct turn *turn)
{
	const struct perfring_format *format = turn->format;
	struct perfring_trailer is, *sample = &is;

#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		turn_##kind(turn, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b));
#include "trailer.def"
}

/* NULL, or what is wrong with the member at *at. */
static const char *turn_members(struct turn *turn, uint32_t type, uint32_t *at)
{
	const char *what = NULL;

	switch (type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		struct perfring_record_##noun is_, *is = &is_; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) \
	*at = turn->cursor.position; \
	what = turn_member(turn, PERFRING_KIND_##kind, &is->member); \
	if (what) \
		return what;
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (when) { \
		PERFRING_MEMBER(kind, member, show) \
	}
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	return what;
}

/* ---- whole records ---- */

static int turn_sample(struct turn *turn, struct perfring_fault *fault)
{
	struct perfring_sample sample;

	if (!turn->format) {
		turn_trailing(turn);
		return 0;
	}
	if (branches_may_lack(turn->format))
		return turn_branches(turn, &sample, fault);
	return turn_any(turn, &sample, fault, 0);
}

static int turn_record(struct turn *turn, uint32_t type, struct perfring_fault *fault)
{
	uint32_t tail = turn->format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(turn->format) : 0;
	const char *what;
	uint32_t at = 0;

	if (tail > perfring_cursor_left(&turn->cursor))
		return perfring_fault_set(fault, turn->cursor.length, "record shorter than its trailer");
	turn->cursor.length -= tail;
	what = turn_members(turn, type, &at);
	if (what)
		return perfring_fault_set(fault, at, what);
	turn->cursor.position = turn->cursor.length;
	turn->cursor.length += tail;
	if (tail)
		turn_trailer(turn);
	return 0;
}

static int64_t record_swap(enum mode mode, const struct perfring_format *format, const struct perf_event_header *record,
			   void *room, size_t size, struct perfring_fault *fault)
{
	struct perf_event_header turned = perfring_header_to_native(record);
	struct perf_event_header native = turned;
	struct turn turn;
	int error;

	/* One reading of the header, both ways. */
	if (mode == TO_FOREIGN)
		native = perfring_header_to_native(&turned);
	if (size < sizeof(turned) || size < native.size)
		return -ENOSPC;
	if (native.size > sizeof(turned))
		memcpy(room, record, native.size);
	memcpy(room, &turned, sizeof(turned));
	if (native.size < sizeof(turned))
		return perfring_fault_set(fault, offsetof(struct perf_event_header, size),
					  "record shorter than its header");
	turn = turn_of(mode, format, record, native, room);
	if (native.type == PERFRING_RECORD_SAMPLE)
		error = turn_sample(&turn, fault);
	else
		error = turn_record(&turn, native.type, fault);
	return error ? error : native.size;
}

int64_t perfring_record_to_native(const struct perfring_format *format, const struct perf_event_header *foreign,
				  void *room, size_t size, struct perfring_fault *fault)
{
	return record_swap(TO_NATIVE, format, foreign, room, size, fault);
}

int64_t perfring_record_to_foreign(const struct perfring_format *format, const struct perf_event_header *record,
				   void *room, size_t size, struct perfring_fault *fault)
{
	return record_swap(TO_FOREIGN, format, record, room, size, fault);
}
