/* swap.c - records, samples and attrs of the other byte order. */
#include <perfring/swap.h>

#include "attr.h"
#include "layout.h"
#include "members.h"
#include "mirror.h"
#include "shapes.h"
#include "within.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* A record is copied into the room, and swapped there part by part as its layouts say.
 *
 * A length decides by its native value, and is swapped before it is found too long.  So both directions see the same
 * lengths and stop at the same place: they undo each other on damaged records too. */
struct turn {
	const struct perfring_format *format;
	unsigned char *room;
	uint32_t at;
	uint32_t end;   /* where the trailer begins */
	uint32_t order; /* LAYOUT_ */
	uint16_t misc;  /* in our order */
};

/* ---- words ---- */

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

/* ---- attrs ---- */

/* Its bytes are in both.  Neither need be aligned. */
static void turn_attr_member(bool to_foreign, unsigned char *to, const unsigned char *from, uint32_t offset,
			     uint32_t size)
{
	uint64_t word = 0;
	uint32_t half = 0;
	uint16_t quarter = 0;

	if (size == 8) {
		memcpy(&word, from + offset, sizeof(word));
		word = offset == PERFRING_ATTR_AT_flags ? SWAP_BITS(to_foreign, mirror_attr_flags, word)
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
static uint32_t attr_own_size(bool to_foreign, const unsigned char *from)
{
	uint32_t size;

	memcpy(&size, from + PERFRING_ATTR_AT_size, sizeof(size));
	if (!to_foreign)
		size = __builtin_bswap32(size);
	return size ? size : PERFRING_ATTR_MIN;
}

/* A member that the attr's size cuts stays as it is: half a number has no value to go by. */
static void turn_attr_members(bool to_foreign, unsigned char *to, const unsigned char *from, uint32_t own)
{
#define PERFRING_ATTR(member, offset, size, show) \
	if ((offset) + (size) <= own) \
		turn_attr_member(to_foreign, to, from, offset, size);
#include <perfring/values.def>
}

static int64_t attr_swap(bool to_foreign, const struct perf_event_attr *attr, void *room, size_t size)
{
	const unsigned char *from = (const unsigned char *)(const void *)attr;
	uint32_t own = attr_own_size(to_foreign, from);

	if (own < PERFRING_ATTR_MIN || own > PERFRING_ATTR_MAX)
		return -EINVAL;
	if (size < own)
		return -ENOSPC;
	if (room != from)
		memcpy(room, from, own);
	turn_attr_members(to_foreign, room, from, own);
	return own;
}

int64_t perfring_attr_to_native(const struct perf_event_attr *foreign, void *room, size_t size)
{
	return attr_swap(false, foreign, room, size);
}

int64_t perfring_attr_to_foreign(const struct perf_event_attr *attr, void *room, size_t size)
{
	return attr_swap(true, attr, room, size);
}

/* ---- parts.  NULL, or what is wrong ---- */

/* A number, whose value later parts may hang on. */
static const char *turn_number(struct turn *turn, uint32_t size, void *value)
{
	unsigned char *bytes = turn->room + turn->at, one;
	uint32_t i;

	if (turn->end - turn->at < size)
		return "record ends inside this field";
	if (turn->order == LAYOUT_TO_OTHER)
		memcpy(value, bytes, size);
	for (i = 0; i < size / 2; i++) {
		one = bytes[i];
		bytes[i] = bytes[size - 1 - i];
		bytes[size - 1 - i] = one;
	}
	if (turn->order == LAYOUT_FROM_OTHER)
		memcpy(value, bytes, size);
	turn->at += size;
	return NULL;
}

static const char *turn_walk(struct turn *turn, struct perfring_layout_walk *walk)
{
	struct perfring_layout_member part;

	walk->order = turn->order;
	while (perfring_layout_next(walk, &part) == 1)
		;
	turn->at = (uint32_t)walk->at;
	return walk->fault.what;
}

static const char *turn_field(struct turn *turn, enum perfring_kind kind, uint64_t how)
{
	struct perfring_layout_walk walk;
	uint64_t value;

	if (kind == PERFRING_KIND_u64 || kind == PERFRING_KIND_weight)
		return turn_number(turn, sizeof(value), &value);
	perfring_layout_open_field(&walk, kind, how, turn->room, turn->at, turn->end);
	return turn_walk(turn, &walk);
}

/* Words, and less than one that is copied. */
static void turn_trailing(struct turn *turn)
{
	uint64_t word;

	while (!turn_number(turn, sizeof(word), &word))
		;
}

static int turn_shape(struct turn *turn, unsigned shape, struct perfring_fault *fault)
{
	const struct perfring_format *format = turn->format;
	const char *what;
	uint32_t at;

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		at = turn->at; \
		what = turn_field(turn, PERFRING_KIND_##kind, \
				  PERFRING_FIELD_KIND_##kind(PERFRING_BY_HOW, sample, a, b)); \
		if (what) \
			return perfring_fault_set(fault, at, what); \
	}
#include <perfring/fields.def>
	return 0;
}

/* As in sample.c: the shape that uses up the record, else the first that fits.  What a try has swapped does not stay. */
static int turn_sample(struct turn *turn, const void *record, struct perfring_fault *fault)
{
	const struct turn begin = *turn;
	uint64_t may_lack;
	unsigned fits = 0;
	bool found = false;
	size_t i;
	int error;

	if (!turn->format) {
		turn_trailing(turn);
		return 0;
	}
	may_lack = turn->format->branch_sample_type;
	for (i = 0; branches_may_lack(turn->format) && i < BRANCH_TRIES; i++) {
		if ((may_lack & branch_tries[i].when) != branch_tries[i].when)
			continue;
		error = turn_shape(turn, branch_tries[i].shape, NULL);
		if (!error && turn->at == turn->end)
			return 0;
		if (!error && !found)
			fits = branch_tries[i].shape;
		found = found || !error;
		*turn = begin;
		memcpy(turn->room + turn->at, (const unsigned char *)record + turn->at, turn->end - turn->at);
	}
	error = turn_shape(turn, fits, fault);
	if (!error)
		turn_trailing(turn);
	return error;
}

/* ---- decoding ---- */

/* The room has it in our order, and so its fields are what the decoder of this order finds. */
static __attribute__((noinline)) int decode_rare(const struct perfring_format *format,
						 const struct perf_event_header *foreign,
						 struct perfring_sample *sample, void *room, size_t size,
						 struct perfring_fault *fault)
{
	/* read once: a peer may be able to write to this memory (reader.h) */
	struct perf_event_header header = perfring_header_to_native(foreign);
	struct turn turn = {format, room, sizeof(header), header.size, LAYOUT_FROM_OTHER, header.misc};

	if (header.size < sizeof(header))
		return perfring_fault_set(fault, offsetof(perfring_header, size), "sample shorter than its fields");
	if (size < header.size)
		return -ENOSPC;
	memcpy(room, foreign, header.size);
	memcpy(room, &header, sizeof(header));
	turn_sample(&turn, foreign, NULL);
	return perfring_sample_decode_within(format, room, header.size, sample, fault);
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

/* ---- the other records ---- */

/* The kinds of numbers, on which later members may hang; the others by their layouts. */
static const char *turn_member(struct turn *turn, enum perfring_kind kind, void *member)
{
	struct perfring_layout_walk walk;

	switch (kind) {
	case PERFRING_KIND_u16:
		return turn_number(turn, 2, member);
	case PERFRING_KIND_u32:
		return turn_number(turn, 4, member);
	case PERFRING_KIND_u64:
		return turn_number(turn, 8, member);
	case PERFRING_KIND_read:
		/* Without a format nothing tells how the block lies. */
		return turn->format ? turn_field(turn, kind, turn->format->read_format) : NULL;
	default:
		perfring_layout_open_member(&walk, kind, turn->misc, turn->room, turn->at, turn->end);
		return turn_walk(turn, &walk);
	}
}

/* fields.def's order, but for IDENTIFIER, which is last (docs/abi.md 4.2).  Its size was tested. */
static void turn_trailer(struct turn *turn)
{
	const struct perfring_format *format = turn->format;

#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		turn_field(turn, PERFRING_KIND_##kind, 0);
#include "trailer.def"
}

/* NULL, or what is wrong with the member at *at. */
static const char *turn_members(struct turn *turn, uint32_t type, uint32_t *at)
{
	struct perfring_record record = {.type = type};
	const struct member_row *row;
	const char *what;

	for (row = perfring_members_of(type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring_members_has(&record, row))
			continue;
		*at = turn->at;
		what = turn_member(turn, (enum perfring_kind)row->kind, perfring_member_in(&record, row));
		if (what)
			return what;
	}
	return NULL;
}

/* ---- whole records ---- */

static int turn_record(struct turn *turn, uint32_t type, struct perfring_fault *fault)
{
	uint32_t tail = turn->format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(turn->format) : 0;
	const char *what;
	uint32_t at = 0;

	if (tail > turn->end - turn->at)
		return perfring_fault_set(fault, turn->end, "record shorter than its trailer");
	turn->end -= tail;
	what = turn_members(turn, type, &at);
	if (what)
		return perfring_fault_set(fault, at, what);
	turn->at = turn->end;
	turn->end += tail;
	if (tail)
		turn_trailer(turn);
	return 0;
}

static int64_t record_swap(bool to_foreign, const struct perfring_format *format,
			   const struct perf_event_header *record, void *room, size_t size,
			   struct perfring_fault *fault)
{
	struct perf_event_header turned = perfring_header_to_native(record), native = turned;
	struct turn turn;
	int error;

	/* One reading of the header, both ways. */
	if (to_foreign)
		native = perfring_header_to_native(&turned);
	if (size < sizeof(turned) || size < native.size)
		return -ENOSPC;
	if (native.size > sizeof(turned))
		memcpy(room, record, native.size);
	memcpy(room, &turned, sizeof(turned));
	if (native.size < sizeof(turned))
		return perfring_fault_set(fault, offsetof(struct perf_event_header, size),
					  "record shorter than its header");
	turn = (struct turn){
		format,     room, sizeof(turned), native.size, to_foreign ? LAYOUT_TO_OTHER : LAYOUT_FROM_OTHER,
		native.misc};
	if (native.type == PERFRING_RECORD_SAMPLE)
		error = turn_sample(&turn, record, fault);
	else
		error = turn_record(&turn, native.type, fault);
	return error ? error : native.size;
}

int64_t perfring_record_to_native(const struct perfring_format *format, const struct perf_event_header *foreign,
				  void *room, size_t size, struct perfring_fault *fault)
{
	return record_swap(false, format, foreign, room, size, fault);
}

int64_t perfring_record_to_foreign(const struct perfring_format *format, const struct perf_event_header *record,
				   void *room, size_t size, struct perfring_fault *fault)
{
	return record_swap(true, format, record, room, size, fault);
}
