/* sample.h - the body of PERF_RECORD_SAMPLE (ABI.md 6), decoded.
 *
 * Everything here is a view of fields.def: the struct, the decoder, the sizes.  Decoding copies numbers and points at
 * the rest: whatever is a pointer points into the record and is valid as long as the record is.  Nothing is cleared
 * first: a member means something when its bit stands in `present`.
 *
 * Total over bytes: for any bytes and any format decoding ends, reads nothing outside the record, allocates nothing.
 * Context: any thread, also signal handlers.
 */
#ifndef PERFRING_SAMPLE_H
#define PERFRING_SAMPLE_H

#include <perfring/cursor.h>
#include <perfring/format.h>

PERFRING_BEGIN

/* A read_format block, in READ records too: nr entries of a value and, if the format has them, its id and its lost
 * count.  Without FORMAT_GROUP nr is 1.  enabled and running are 0 unless the format has them. */
struct perfring_read {
	const perfring_word *entries; /* without FORMAT_GROUP the times stand inside the entry: use the functions */
	uint64_t nr;
	uint64_t enabled; /* ns */
	uint64_t running; /* ns */
	uint64_t read_format;
};

/* The word of entry i that stands `after` others in it, the times of a lone event not counted. */
PERFRING_INLINE uint64_t perfring_read_word(const struct perfring_read *read, uint64_t i, uint64_t after)
{
	uint64_t head = perfring_format_read_head(read->read_format) / 8;

	if (read->read_format & PERFRING_FORMAT_GROUP)
		head = 0;
	return read->entries[i * (perfring_format_read_entry(read->read_format) / 8) + after + (after ? head : 0)];
}

PERFRING_INLINE uint64_t perfring_read_value(const struct perfring_read *read, uint64_t i)
{
	return perfring_read_word(read, i, 0);
}

/* 0 when the format has no ids. */
PERFRING_INLINE uint64_t perfring_read_id(const struct perfring_read *read, uint64_t i)
{
	return read->read_format & PERFRING_FORMAT_ID ? perfring_read_word(read, i, 1) : 0;
}

/* 0 when the format has no lost counts. */
PERFRING_INLINE uint64_t perfring_read_lost(const struct perfring_read *read, uint64_t i)
{
	if (!(read->read_format & PERFRING_FORMAT_LOST))
		return 0;
	return perfring_read_word(read, i, read->read_format & PERFRING_FORMAT_ID ? 2 : 1);
}

/* nr words: a callchain, with its markers. */
struct perfring_list {
	const perfring_word *words;
	uint64_t nr;
};

/* Whether a word of a callchain is a marker, not an address (ABI.md 6). */
PERFRING_INLINE bool perfring_list_is_marker(uint64_t word)
{
	return word >= (uint64_t)(int64_t)PERFRING_CONTEXT_MAX;
}

/* `size` as transmitted: padding included, its own 4 bytes not. */
struct perfring_raw {
	const void *data;
	uint32_t size;
	uint32_t reserved;
};

/* Entries are three words (from, to, flags).  hw_idx is there when has_hw_idx, counters (one word an entry) when not
 * NULL. */
struct perfring_branch_stack {
	const perfring_word *entries;
	const perfring_word *counters;
	uint64_t nr;
	uint64_t hw_idx;
	bool has_hw_idx;
};

/* nr values in rising bit order of mask; none when abi is 0. */
struct perfring_regs {
	const perfring_word *values;
	uint64_t abi;
	uint64_t mask;
	uint32_t nr;
};

/* size bytes were reserved, the first dyn_size of them mean something. */
struct perfring_stack {
	const void *data;
	uint64_t size;
	uint64_t dyn_size;
};

struct perfring_weight {
	uint32_t var1;
	uint16_t var2;
	uint16_t var3;
};

struct perfring_aux {
	const void *data;
	uint64_t size;
};

#define PERFRING_DECLARE_u64(a, b) uint64_t a;
#define PERFRING_DECLARE_pair(a, b) uint32_t a, b;
#define PERFRING_DECLARE_weight(a, b) struct perfring_weight a;
#define PERFRING_DECLARE_read(a, b) struct perfring_read a;
#define PERFRING_DECLARE_list(a, b) struct perfring_list a;
#define PERFRING_DECLARE_raw(a, b) struct perfring_raw a;
#define PERFRING_DECLARE_branch(a, b) struct perfring_branch_stack a;
#define PERFRING_DECLARE_regs(a, b) struct perfring_regs a;
#define PERFRING_DECLARE_stack(a, b) struct perfring_stack a;
#define PERFRING_DECLARE_aux(a, b) struct perfring_aux a;

/* identifier, ip, pid, tid, time, ... : see fields.def. */
struct perfring_sample {
	uint64_t present;     /* PERFRING_SAMPLE_ bits of the members that were decoded */
	const void *trailing; /* bytes behind the last known field: newer kernels, or padding */
	uint32_t trailing_size;
	uint16_t misc; /* of the header */
	uint16_t padding;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) PERFRING_DECLARE_##kind(a, b)
#include <perfring/fields.def>
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_sample) == 408, "sample");

/* ---- take: one function a kind.  NULL when it could be taken, else what is wrong. ---- */

PERFRING_INLINE const char *perfring_take_u64(struct perfring_cursor *cursor, uint64_t *value)
{
	return perfring_take_word(cursor, value) ? NULL : "record ends inside this field";
}

PERFRING_INLINE const char *perfring_take_pair(struct perfring_cursor *cursor, uint32_t *first, uint32_t *second)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, 8)))
		return "record ends inside this field";
	perfring_take_half(cursor, first);
	perfring_take_half(cursor, second);
	return NULL;
}

PERFRING_INLINE const char *perfring_take_weight(struct perfring_cursor *cursor, struct perfring_weight *weight)
{
	uint64_t word = 0;

	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &word)))
		return "record ends inside this field";
	weight->var1 = (uint32_t)word;
	weight->var2 = (uint16_t)(word >> 32);
	weight->var3 = (uint16_t)(word >> 48);
	return NULL;
}

PERFRING_INLINE const char *perfring_take_read(struct perfring_cursor *cursor, struct perfring_read *read,
					       uint64_t read_format)
{
	bool group = read_format & PERFRING_FORMAT_GROUP;
	uint32_t entry = perfring_format_read_entry(read_format);

	read->read_format = read_format;
	read->nr = 1;
	read->enabled = 0;
	read->running = 0;
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, perfring_format_read_least(read_format))))
		return "record ends inside the read block";
	if (group)
		perfring_take_word(cursor, &read->nr);
	else
		perfring_take_words(cursor, &read->entries, 1);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		perfring_take_word(cursor, &read->enabled);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		perfring_take_word(cursor, &read->running);
	if (!group) {
		cursor->position += entry - 8;
		return NULL;
	}
	if (PERFRING_UNLIKELY(read->nr > perfring_cursor_left(cursor) / entry))
		return "read block: more entries than the record holds";
	perfring_take_words(cursor, &read->entries, read->nr * (entry / 8));
	return NULL;
}

PERFRING_INLINE const char *perfring_take_list(struct perfring_cursor *cursor, struct perfring_list *list)
{
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &list->nr)))
		return "record ends inside this field";
	return perfring_take_words(cursor, &list->words, list->nr) ? NULL : "list longer than the record";
}

PERFRING_INLINE const char *perfring_take_raw(struct perfring_cursor *cursor, struct perfring_raw *raw)
{
	if (PERFRING_UNLIKELY(!perfring_take_half(cursor, &raw->size)))
		return "record ends inside this field";
	return perfring_take_bytes(cursor, &raw->data, raw->size) ? NULL : "raw data longer than the record";
}

/* What the kernel may leave out of a branch stack without a word (ABI.md 6): the decoder tries the shapes in turn. */
enum perfring_branch_shape {
	PERFRING_BRANCH_SHAPE_NO_HW_IDX = 1,
	PERFRING_BRANCH_SHAPE_NO_COUNTERS = 2,
};

PERFRING_INLINE const char *perfring_take_branch(struct perfring_cursor *cursor, struct perfring_branch_stack *stack,
						 uint64_t branch_sample_type, unsigned shape)
{
	stack->counters = NULL;
	stack->hw_idx = 0;
	stack->has_hw_idx =
		(branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && !(shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX);
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &stack->nr)))
		return "record ends inside this field";
	/* hw_idx is left out together with the branches, never alone. */
	if ((shape & PERFRING_BRANCH_SHAPE_NO_HW_IDX) && stack->nr)
		return "branch stack without its hw_idx";
	if (stack->has_hw_idx && PERFRING_UNLIKELY(!perfring_take_word(cursor, &stack->hw_idx)))
		return "record ends inside the branch stack";
	if (PERFRING_UNLIKELY(stack->nr > perfring_cursor_left(cursor) / 24))
		return "branch stack longer than the record";
	perfring_take_words(cursor, &stack->entries, stack->nr * 3);
	if ((branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS) && !(shape & PERFRING_BRANCH_SHAPE_NO_COUNTERS) &&
	    PERFRING_UNLIKELY(!perfring_take_words(cursor, &stack->counters, stack->nr)))
		return "record ends inside the branch counters";
	return NULL;
}

PERFRING_INLINE const char *perfring_take_regs(struct perfring_cursor *cursor, struct perfring_regs *regs,
					       uint64_t mask)
{
	regs->mask = mask;
	regs->nr = 0;
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &regs->abi)))
		return "record ends inside this field";
	if (regs->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		regs->nr = (uint32_t)__builtin_popcountll(mask);
	return perfring_take_words(cursor, &regs->values, regs->nr) ? NULL : "record ends inside the registers";
}

PERFRING_INLINE const char *perfring_take_stack(struct perfring_cursor *cursor, struct perfring_stack *stack)
{
	stack->dyn_size = 0;
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &stack->size)))
		return "record ends inside this field";
	if (PERFRING_UNLIKELY(!perfring_take_bytes(cursor, &stack->data, stack->size)))
		return "stack longer than the record";
	if (stack->size && PERFRING_UNLIKELY(!perfring_take_word(cursor, &stack->dyn_size)))
		return "record ends before dyn_size";
	if (PERFRING_UNLIKELY(stack->dyn_size > stack->size))
		return "dyn_size larger than the stack";
	return NULL;
}

PERFRING_INLINE const char *perfring_take_aux(struct perfring_cursor *cursor, struct perfring_aux *aux)
{
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &aux->size)))
		return "record ends inside this field";
	return perfring_take_bytes(cursor, &aux->data, aux->size) ? NULL : "aux data longer than the record";
}

/* The arguments behind the cursor, for each kind of row. */
#define PERFRING_TO_u64(a, b) &sample->a
#define PERFRING_TO_pair(a, b) &sample->a, &sample->b
#define PERFRING_TO_weight(a, b) &sample->a
#define PERFRING_TO_read(a, b) &sample->a, format->b
#define PERFRING_TO_list(a, b) &sample->a
#define PERFRING_TO_raw(a, b) &sample->a
#define PERFRING_TO_branch(a, b) &sample->a, format->b, shape
#define PERFRING_TO_regs(a, b) &sample->a, format->b
#define PERFRING_TO_stack(a, b) &sample->a
#define PERFRING_TO_aux(a, b) &sample->a

PERFRING_INLINE int perfring_sample_fault(struct perfring_fault *fault, uint32_t at, const char *what)
{
	if (fault) {
		fault->at = at;
		fault->what = what;
	}
	return -EBADMSG;
}

/* An inline that is worth nothing unless it is inlined: only then do constants fold. */
#ifndef PERFRING_FOLDED
#define PERFRING_FOLDED PERFRING_INLINE __attribute__((always_inline))
#endif

/* The body of both decoders.  With a constant format it is one compare and straight loads. */
PERFRING_FOLDED int perfring_sample_decode_shape(const struct perfring_format *format,
						 const struct perf_event_header *record, struct perfring_sample *sample,
						 struct perfring_fault *fault, unsigned shape)
{
	/* size is read once: a peer may be able to write to this memory (reader.h). */
	const perfring_header *header = record;
	uint32_t size = ((const volatile perfring_header *)header)->size;
	struct perfring_cursor cursor = perfring_cursor_over(record, sizeof(*record), size);
	uint32_t least = format->least;
	uint64_t left = PERFRING_SAMPLE_KNOWN; /* of this row and those behind it: known to the compiler */

	/* A plan spares work, but a wrong one harms nobody: every take has its own test. */
	if (__builtin_constant_p(format->sample_type) || !least)
		least = perfring_format_least(format);
	if (PERFRING_UNLIKELY(size < sizeof(*record) || size < least))
		return perfring_sample_fault(fault, size, "sample shorter than its fields");
	sample->misc = header->misc;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (!PERFRING_IS_WORD_##kind && !(format->sample_type & left)) \
		goto done; \
	left &= ~(uint64_t)PERFRING_SAMPLE_##NAME; \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		uint32_t at = cursor.position; \
		const char *what = perfring_take_##kind(&cursor, PERFRING_TO_##kind(a, b)); \
		if (PERFRING_UNLIKELY(what)) \
			return perfring_sample_fault(fault, at, what); \
	}
#include <perfring/fields.def>
done:
	sample->present = format->sample_type & PERFRING_SAMPLE_KNOWN;
	sample->trailing = cursor.base + cursor.position;
	sample->trailing_size = size - cursor.position;
	return 0;
}

/* The decoder for formats known only at run time, and for branch stacks whose shape must be found out. */
PERFRING_API int perfring_sample_decode_any(const struct perfring_format *format,
					    const struct perf_event_header *record, struct perfring_sample *sample,
					    struct perfring_fault *fault);

/* Decodes a record of type SAMPLE.  Returns 0, or -EBADMSG with *fault (may be NULL) telling where in the record and
 * what; *sample then means nothing.  Valid until: the record's bytes go. */
PERFRING_FOLDED int perfring_sample_decode(const struct perfring_format *format, const struct perf_event_header *record,
					   struct perfring_sample *sample, struct perfring_fault *fault)
{
	if (__builtin_constant_p(format->sample_type) && !(format->sample_type & PERFRING_SAMPLE_BRANCH_STACK))
		return perfring_sample_decode_shape(format, record, sample, fault, 0);
	return perfring_sample_decode_any(format, record, sample, fault);
}

PERFRING_END

#endif
