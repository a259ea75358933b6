/* swap.c - records, samples and attrs of the other byte order.
 *
 * The functions of swap.h: file/ converts what it reads and writes.  One function a kind, expanded from fields.def, or a walk by
 * the kind's layout.  No allocation; each length is bounded by the record before anything after it is read.
 */
#include <perfring/swap.h>

#include "attr.h"
#include "layout_private.h"
#include "members.h"
#include "mirror.h"
#include "shapes.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* One function for each kind of field (fields.def) does all three modes: TO_NATIVE and TO_FOREIGN swap a whole record into the
 * buffer; DECODE decodes a foreign sample, and swaps only lists of words into the buffer.  A field has the same offset in the
 * buffer and in the record.
 *
 * Lengths are compared by their native value in both directions.  So both see the same lengths and stop at the same place: they
 * undo each other on damaged records too. */
enum mode {
	TO_NATIVE,
	TO_FOREIGN,
	DECODE,
};

struct byteswap {
	struct perfring_cursor cursor; /* over the record; ends where the trailer begins */
	const struct perfring_format *format;
	unsigned char *buffer;
	enum mode mode;
	uint16_t misc; /* in native order */
};

static const char ends_early[] = "record ends inside this field";

/* ---- numbers of 16, 32 and 64 bits: short, half, word.  *value is in native order ---- */

#define SWAP_NUMBER(name, type, bits) \
	FOLDED bool swap_##name(struct byteswap *swap, type *value) \
	{ \
		unsigned char *to = swap->buffer + swap->cursor.position; \
		type swapped; \
\
		if (PERFRING_UNLIKELY(!perfring_take_##name(&swap->cursor, value))) \
			return false; \
		swapped = __builtin_bswap##bits(*value); \
		if (swap->mode != DECODE) \
			memcpy(to, &swapped, sizeof(swapped)); \
		if (swap->mode != TO_FOREIGN) \
			*value = swapped; \
		return true; \
	}
SWAP_NUMBER(short, uint16_t, 16)
SWAP_NUMBER(half, uint32_t, 32)
SWAP_NUMBER(word, uint64_t, 64)
#undef SWAP_NUMBER

/* ---- words: *words point into the buffer ---- */

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

AVX2 FOLDED void swap_8(perfring_word *to, const perfring_word *from)
{
	const __m256i order = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x08090a0b0c0d0e0f, 0x0001020304050607));

	_mm256_storeu_si256((void *)to, _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)from), order));
	_mm256_storeu_si256((void *)(to + 4), _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)(from + 4)), order));
}

/* At least 8 words.  For a number that is no multiple of 8, some words are computed and stored twice, from `from`; correct only
 * because `to` and `from` do not overlap (swap.h).  A loop over the remainder takes longer. */
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

/* Returns 0, so that a caller can return its result. */
FOLDED int put_swapped(perfring_word *to, const perfring_word *from, uint64_t nr)
{
	uint64_t i;

	if (PERFRING_LIKELY(nr >= 8) && PERFRING_LIKELY(HAS_SWAP_MANY))
		return swap_many(to, from, nr);
	for (i = 0; i < nr; i++)
		to[i] = __builtin_bswap64(from[i]);
	return 0;
}

FOLDED bool swap_words(struct byteswap *swap, const perfring_word **words, uint64_t nr)
{
	perfring_word *to = (perfring_word *)(void *)(swap->buffer + swap->cursor.position);
	const perfring_word *from = NULL;

	*words = to;
	if (PERFRING_UNLIKELY(!perfring_take_words(&swap->cursor, &from, nr)))
		return false;
	put_swapped(to, from, nr);
	return true;
}

/* ---- attrs ---- */

static void swap_attr_member(enum mode mode, unsigned char *attr, uint32_t offset, uint32_t size)
{
	uint64_t number = perfring__number_get(attr + offset, size);

	if (offset == PERFRING_ATTR_AT_flags)
		number = SWAP_BITS(mode == TO_FOREIGN, mirror_attr_flags, number);
	else if (offset == PERFRING_ATTR_AT_aux_action)
		/* Bit-reversing the word and swapping its bytes leaves each byte in place with its bits reversed. */
		number = mirror_bits(__builtin_bswap64(number));
	else
		number = __builtin_bswap64(number) >> (64 - 8 * size);
	perfring__number_put(attr + offset, size, number);
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

/* A member that the end of the attr cuts stays as it is: half a number has no value. */
static int64_t attr_swap(enum mode mode, const struct perf_event_attr *attr, void *buffer, size_t size)
{
	const unsigned char *from = (const unsigned char *)(const void *)attr;
	uint32_t own = attr_own_size(mode, from);

	if (own < PERFRING_ATTR_MIN || own > PERFRING_ATTR_MAX)
		return -EINVAL;
	if (size < own)
		return -ENOSPC;
	if (buffer != from)
		memcpy(buffer, from, own);
#define PERFRING_ATTR(member, offset, size, show) \
	if ((offset) + (size) <= own) \
		swap_attr_member(mode, buffer, offset, size);
#include <perfring/values.def>
	return own;
}

int64_t perfring_attr_to_native(const struct perf_event_attr *foreign, void *buffer, size_t size)
{
	return attr_swap(TO_NATIVE, foreign, buffer, size);
}

int64_t perfring_attr_to_foreign(const struct perf_event_attr *attr, void *buffer, size_t size)
{
	return attr_swap(TO_FOREIGN, attr, buffer, size);
}

/* ---- the fields of samples: one function a kind.  Each returns NULL, or what is wrong ---- */

FOLDED const char *swap_u64(struct byteswap *swap, uint64_t *value)
{
	return swap_word(swap, value) ? NULL : ends_early;
}

FOLDED const char *swap_pair(struct byteswap *swap, uint32_t *first, uint32_t *second)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(&swap->cursor, 8)))
		return ends_early;
	swap_half(swap, first);
	swap_half(swap, second);
	return NULL;
}

/* Swaps WEIGHT_STRUCT as one number: the members are in reverse order on big endian (docs/abi.md 6). */
FOLDED const char *swap_weight(struct byteswap *swap, struct perfring_weight *weight)
{
	uint64_t word = 0;

	if (PERFRING_UNLIKELY(!swap_word(swap, &word)))
		return ends_early;
	weight->var1 = (uint32_t)word;
	weight->var2 = (uint16_t)(word >> 32);
	weight->var3 = (uint16_t)(word >> 48);
	return NULL;
}

FOLDED const char *swap_read(struct byteswap *swap, struct perfring_read *read, uint64_t read_format)
{
	bool group = read_format & PERFRING_FORMAT_GROUP;
	uint32_t entry = perfring_format_read_entry(read_format);
	const perfring_word *rest;

	read->read_format = read_format;
	read->nr = 1;
	read->enabled = 0;
	read->running = 0;
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(&swap->cursor, perfring_format_read_least(read_format))))
		return "record ends inside the read block";
	if (group)
		swap_word(swap, &read->nr);
	else
		swap_words(swap, &read->entries, 1);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		swap_word(swap, &read->enabled);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		swap_word(swap, &read->running);
	if (!group) {
		swap_words(swap, &rest, entry / 8 - 1);
		return NULL;
	}
	if (PERFRING_UNLIKELY(read->nr > perfring_cursor_left(&swap->cursor) / entry))
		return "read block: more entries than the record holds";
	swap_words(swap, &read->entries, read->nr * (entry / 8));
	return NULL;
}

FOLDED const char *swap_list(struct byteswap *swap, struct perfring_list *list)
{
	if (PERFRING_UNLIKELY(!swap_word(swap, &list->nr)))
		return ends_early;
	return swap_words(swap, &list->words, list->nr) ? NULL : "list longer than the record";
}

FOLDED const char *swap_raw(struct byteswap *swap, struct perfring_raw *raw)
{
	raw->padding = 0;
	if (PERFRING_UNLIKELY(!swap_half(swap, &raw->size)))
		return ends_early;
	return perfring_take_bytes(&swap->cursor, &raw->data, raw->size) ? NULL : "raw data longer than the record";
}

FOLDED void swap_entries(struct byteswap *swap, struct perfring_branch_stack *stack)
{
	perfring_word *to = (perfring_word *)(void *)(swap->buffer + swap->cursor.position);
	const perfring_word *from = NULL;
	uint64_t i;

	perfring_take_words(&swap->cursor, &from, stack->nr * 3);
	for (i = 0; i < stack->nr; i++) {
		to[3 * i] = __builtin_bswap64(from[3 * i]);
		to[3 * i + 1] = __builtin_bswap64(from[3 * i + 1]);
		to[3 * i + 2] = SWAP_BITS(swap->mode == TO_FOREIGN, mirror_branch_flags, from[3 * i + 2]);
	}
	stack->entries = to;
}

FOLDED const char *swap_branch(struct byteswap *swap, struct perfring_branch_stack *stack, uint64_t branch_sample_type,
			       unsigned shape)
{
	stack->counters = NULL;
	stack->hw_idx = 0;
	stack->has_hw_idx =
		(branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && !(shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX);
	if (PERFRING_UNLIKELY(!swap_word(swap, &stack->nr)))
		return ends_early;
	if ((shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX) && stack->nr)
		return "branch stack without its hw_idx";
	if (stack->has_hw_idx && PERFRING_UNLIKELY(!swap_word(swap, &stack->hw_idx)))
		return "record ends inside the branch stack";
	if (PERFRING_UNLIKELY(stack->nr > perfring_cursor_left(&swap->cursor) / 24))
		return "branch stack longer than the record";
	swap_entries(swap, stack);
	if ((branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS) && !(shape & PERFRING_BRANCH_SHAPE_NO_COUNTERS) &&
	    PERFRING_UNLIKELY(!swap_words(swap, &stack->counters, stack->nr)))
		return "record ends inside the branch counters";
	return NULL;
}

FOLDED const char *swap_regs(struct byteswap *swap, struct perfring_regs *regs, uint64_t mask, uint32_t nr,
			     uint32_t arch)
{
	regs->mask = mask;
	regs->nr = 0;
	regs->arch = arch;
	if (PERFRING_UNLIKELY(!swap_word(swap, &regs->abi)))
		return ends_early;
	if (regs->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		regs->nr = nr;
	return swap_words(swap, &regs->values, regs->nr) ? NULL : "record ends inside the registers";
}

FOLDED const char *swap_stack(struct byteswap *swap, struct perfring_stack *stack)
{
	stack->dyn_size = 0;
	if (PERFRING_UNLIKELY(!swap_word(swap, &stack->size)))
		return ends_early;
	if (PERFRING_UNLIKELY(!perfring_take_bytes(&swap->cursor, &stack->data, stack->size)))
		return "stack longer than the record";
	if (stack->size && PERFRING_UNLIKELY(!swap_word(swap, &stack->dyn_size)))
		return "record ends before dyn_size";
	if (PERFRING_UNLIKELY(stack->dyn_size > stack->size))
		return "dyn_size larger than the stack";
	return NULL;
}

FOLDED const char *swap_aux(struct byteswap *swap, struct perfring_aux *aux)
{
	if (PERFRING_UNLIKELY(!swap_word(swap, &aux->size)))
		return ends_early;
	return perfring_take_bytes(&swap->cursor, &aux->data, aux->size) ? NULL : "aux data longer than the record";
}

/* Fields that this version does not know are taken as u64 words.  Bytes after the last word are copied. */
FOLDED void swap_trailing(struct byteswap *swap)
{
	uint32_t left = perfring_cursor_left(&swap->cursor);
	const perfring_word *words;

	swap_words(swap, &words, left / 8);
	memcpy(swap->buffer + swap->cursor.position, swap->cursor.base + swap->cursor.position, left % 8);
}

/* The record has at least its header, and fits the buffer.  `swap` is at the first field. */
FOLDED int swap_fields(struct byteswap swap, struct perfring_sample *sample, struct perfring_fault *fault,
		       unsigned shape)
{
	const struct perfring_format *format = swap.format;
	uint64_t left = PERFRING_SAMPLE_KNOWN; /* this row's and the following fields: known to the compiler */
	uint64_t type = format->sample_type;

	/* An earlier try of another shape has swapped bytes here. */
	if (swap.mode != DECODE)
		memcpy(swap.buffer + swap.cursor.position, swap.cursor.base + swap.cursor.position,
		       perfring_cursor_left(&swap.cursor));
/* Before a field that is not one word: done if sample_type has none of the fields left. */
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (!PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) && !(type & left)) \
		goto done; \
	left &= ~(uint64_t)PERFRING_SAMPLE_##NAME; \
	if (type & PERFRING_SAMPLE_##NAME) { \
		uint32_t at = swap.cursor.position; \
		const char *what = swap_##kind(&swap, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b)); \
		if (PERFRING_UNLIKELY(what)) \
			return perfring_fault_set(fault, at, what); \
	}
#include <perfring/fields.def>
done:
	sample->misc = swap.misc;
	sample->present = type & PERFRING_SAMPLE_KNOWN;
	sample->trailing = swap.buffer + swap.cursor.position;
	sample->trailing_size = perfring_cursor_left(&swap.cursor);
	if (PERFRING_UNLIKELY(sample->trailing_size))
		swap_trailing(&swap);
	return 0;
}

static __attribute__((noinline)) int swap_any(const void *swap, struct perfring_sample *sample,
					      struct perfring_fault *fault, unsigned shape)
{
	return swap_fields(*(const struct byteswap *)swap, sample, fault, shape);
}

FOLDED struct byteswap swap_of(enum mode mode, const struct perfring_format *format, const void *record,
			       struct perf_event_header native, void *buffer)
{
	return (struct byteswap){
		.cursor = perfring_cursor_init(record, sizeof(native), native.size),
		.format = format,
		.buffer = buffer,
		.mode = mode,
		.misc = native.misc,
	};
}

static __attribute__((noinline)) int decode_branches(const struct perfring_format *format,
						     const struct perf_event_header *foreign,
						     struct perf_event_header header, struct perfring_sample *sample,
						     void *buffer, struct perfring_fault *fault)
{
	struct byteswap swap = swap_of(DECODE, format, foreign, header, buffer);

	return try_shapes(format, swap_any, &swap, sample, fault);
}

static __attribute__((noinline)) int decode_slow(const struct perfring_format *format,
						 const struct perf_event_header *foreign,
						 struct perfring_sample *sample, void *buffer, size_t size,
						 struct perfring_fault *fault)
{
	/* read once: a peer may be able to write to this memory (reader.h) */
	struct perf_event_header header = perfring_header_to_native(foreign);

	/* The plan is not trusted: every field has its own test. */
	if (header.size < sizeof(header) || header.size < format->least)
		return perfring_fault_set(fault,
					  header.size < sizeof(header) ? offsetof(perfring_header, size) : header.size,
					  "sample shorter than its fields");
	if (size < header.size)
		return -ENOSPC;
	if (branches_may_lack(format))
		return decode_branches(format, foreign, header, sample, buffer, fault);
	return swap_fields(swap_of(DECODE, format, foreign, header, buffer), sample, fault, 0);
}

/* A swapped word has its halves exchanged: on a little-endian machine the first is the upper one. */
#define FIRST_SHIFT (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 32 : 0)

/* Swaps those fields of `some` that the format has.  Returns the address of the next field. */
FOLDED const perfring_word *swap_front(const perfring_word *from, uint64_t type, uint64_t some,
				       struct perfring_sample *sample)
{
	uint64_t word;

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

/* The fast path: words, then a callchain up to the record's end, whose place is in the plan.  Any other sample takes the slow
 * path.  All tests come first, so that the compiler saves no registers on the fast path. */
int perfring_sample_decode_foreign(const struct perfring_format *format, const struct perf_event_header *foreign,
				   struct perfring_sample *sample, void *buffer, size_t size,
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
	perfring_word *to = (perfring_word *)(void *)((unsigned char *)buffer + least);

	/* The plan is not trusted: swap_front reads at most FRONT_SIZE bytes, of fields that the type has. */
	if (PERFRING_UNLIKELY(own < sizeof(*foreign) + FRONT_SIZE || own > size || least > own || left % 8 ||
			      (type & ~(uint64_t)FRONT) != PERFRING_SAMPLE_CALLCHAIN ||
			      least < sizeof(*foreign) + sizeof(*words) || __builtin_bswap64(words[-1]) != left / 8))
		return decode_slow(format, foreign, sample, buffer, size, fault);
	sample->present = type;
	sample->trailing = (unsigned char *)buffer + own;
	sample->trailing_size = 0;
	sample->misc = __builtin_bswap16(header->misc);
	sample->callchain.words = to;
	sample->callchain.nr = left / 8;
	front = swap_front(front, type, PERFRING_SAMPLE_IDENTIFIER | PLACE, sample);
	if (type & IDS)
		front = swap_front(front, type, IDS, sample);
	swap_front(front, type, COUNT, sample);
	return put_swapped(to, words, left / 8);
}

/* ---- the members of the other records ---- */

/* Swaps the member in the buffer, which holds a copy of the record, by its layout. */
static const char *swap_laid(struct byteswap *swap, enum perfring_kind kind)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;

	perfring__layout_open_member(&walk, kind, swap->misc, swap->buffer, swap->cursor.position, swap->cursor.length);
	walk.order = swap->mode == TO_FOREIGN ? LAYOUT_TO_FOREIGN : LAYOUT_FROM_FOREIGN;
	while (perfring_layout_next(&walk, &member) == 1)
		;
	swap->cursor.position = (uint32_t)walk.at;
	return walk.fault.what;
}

/* Swaps numbers here, because later members may depend on them, and kinds that need no walk; other kinds by their layouts. */
static const char *swap_member(struct byteswap *swap, enum perfring_kind kind, void *member)
{
	switch (kind) {
	case PERFRING_KIND_u16:
		return swap_short(swap, member) ? NULL : ends_early;
	case PERFRING_KIND_u32:
		return swap_half(swap, member) ? NULL : ends_early;
	case PERFRING_KIND_u64:
		return swap_u64(swap, member);
	case PERFRING_KIND_read:
		/* Without a format its layout is unknown. */
		return swap->format ? swap_read(swap, member, swap->format->read_format) : NULL;
	case PERFRING_KIND_list:
		return swap_list(swap, member);
	case PERFRING_KIND_string:
		swap->cursor.position = swap->cursor.length;
		return NULL;
	default:
		return swap_laid(swap, kind);
	}
}

/* ---- the trailer, whose size was tested: trailer.def ---- */

static void swap_trailer(struct byteswap *swap)
{
	const struct perfring_format *format = swap->format;
	struct perfring_trailer is, *sample = &is;

#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		swap_##kind(swap, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b));
#include "trailer.def"
}

/* Swaps the members of a record.  Returns NULL, or what is wrong with the member at *at. */
static const char *swap_members(struct byteswap *swap, uint32_t type, uint32_t *at)
{
	struct perfring_record record = {.type = type};
	const struct member_row *row;
	const char *what = NULL;

	for (row = perfring__members_of(type); !what && row->kind != PERFRING_KINDS; row++) {
		if (!perfring__members_has(&record, row))
			continue;
		*at = swap->cursor.position;
		what = swap_member(swap, (enum perfring_kind)row->kind, perfring__member_in(&record, row));
	}
	return what;
}

/* ---- whole records ---- */

static int swap_sample(struct byteswap *swap, struct perfring_fault *fault)
{
	struct perfring_sample sample;

	if (!swap->format) {
		swap_trailing(swap);
		return 0;
	}
	if (branches_may_lack(swap->format))
		return try_shapes(swap->format, swap_any, swap, &sample, fault);
	return swap_any(swap, &sample, fault, 0);
}

static int swap_record(struct byteswap *swap, uint32_t type, struct perfring_fault *fault)
{
	uint32_t tail = swap->format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(swap->format) : 0;
	const char *what;
	uint32_t at = 0;

	if (tail > perfring_cursor_left(&swap->cursor))
		return perfring_fault_set(fault, swap->cursor.length, "record shorter than its trailer");
	swap->cursor.length -= tail;
	what = swap_members(swap, type, &at);
	if (what)
		return perfring_fault_set(fault, at, what);
	swap->cursor.position = swap->cursor.length;
	swap->cursor.length += tail;
	if (tail)
		swap_trailer(swap);
	return 0;
}

static int64_t record_swap(enum mode mode, const struct perfring_format *format, const struct perf_event_header *record,
			   void *buffer, size_t size, struct perfring_fault *fault)
{
	/* Reads the header once.  The same function converts native to foreign. */
	struct perf_event_header swapped = perfring_header_to_native(record);
	struct perf_event_header native = swapped;
	struct byteswap swap;
	int error;

	if (mode == TO_FOREIGN)
		native = perfring_header_to_native(&swapped);
	if (size < sizeof(swapped) || size < native.size)
		return -ENOSPC;
	if (native.size > sizeof(swapped))
		memcpy(buffer, record, native.size);
	memcpy(buffer, &swapped, sizeof(swapped));
	if (native.size < sizeof(swapped))
		return perfring_fault_set(fault, offsetof(struct perf_event_header, size),
					  "record shorter than its header");
	swap = swap_of(mode, format, record, native, buffer);
	if (native.type == PERFRING_RECORD_SAMPLE)
		error = swap_sample(&swap, fault);
	else
		error = swap_record(&swap, native.type, fault);
	return error ? error : native.size;
}

int64_t perfring_record_to_native(const struct perfring_format *format, const struct perf_event_header *foreign,
				  void *buffer, size_t size, struct perfring_fault *fault)
{
	return record_swap(TO_NATIVE, format, foreign, buffer, size, fault);
}

int64_t perfring_record_to_foreign(const struct perfring_format *format, const struct perf_event_header *record,
				   void *buffer, size_t size, struct perfring_fault *fault)
{
	return record_swap(TO_FOREIGN, format, record, buffer, size, fault);
}
