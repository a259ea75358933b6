/* sample.h - the body of PERF_RECORD_SAMPLE (docs/abi.md 6), decoded and encoded, one by one and many into columns.
 *
 *     perfring_file_next(file, &item);                         or of a session, or a reader's record and a format of one's own
 *     perfring_sample_decode(item.format, item.record, &sample, NULL);
 *     if (sample.present & PERFRING_SAMPLE_TID)
 *             use(sample.tid);
 *
 * The struct, the decoder, the encoder, the sizes and the columns are views of fields.def, whose rows are in the order in which
 * the kernel writes the fields (perf_output_sample in linux/kernel/events/core.c).
 *
 * Decoding copies numbers.  Pointers point into the record, and are valid as long as its bytes are; what they point to need not
 * be aligned (perfring_word).  A member is set only if its bit is in `present`; the others are not cleared.
 *
 * Hostile bytes: decoding ends, reads nothing outside the record, and allocates nothing, whatever the record and the format are.
 * The record is in native byte order; for the other one see swap.h.
 *
 * Context of all functions: any thread, also signal handlers.  Objects are the caller's.
 */
#ifndef PERFRING_SAMPLE_H
#define PERFRING_SAMPLE_H

#include <perfring/cursor.h>
#include <perfring/format.h>

PERFRING_BEGIN

/* A read_format block (docs/abi.md 2.2), of samples, READ records and read(2): nr entries of a value and, if the format has them,
 * its id and its lost count.  Without FORMAT_GROUP nr is 1.  enabled and running are 0 unless the format has them.  The three
 * functions take an entry's index i, below nr: it is not checked. */
struct perfring_read {
	const perfring_word *entries; /* without FORMAT_GROUP the times stand inside the entry: use the functions */
	uint64_t nr;
	uint64_t enabled; /* ns */
	uint64_t running; /* ns */
	uint64_t read_format;
};

/* A word of entry i, the one with the number `after` in it (0: the value).  The times of a format without GROUP do not count: they
 * stand between the value and the others. */
PERFRING_INNER uint64_t perfring_read_word(const struct perfring_read *read, uint64_t i, uint64_t after)
{
	uint64_t head = perfring_format_read_head(read->read_format) / 8;

	if (read->read_format & PERFRING_FORMAT_GROUP)
		head = 0;
	return read->entries[i * (perfring_format_read_entry(read->read_format) / 8) + after + (after ? head : 0)];
}

/* The value of entry i, which is below nr. */
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

/* nr words: a callchain, innermost address first, with its markers.  To walk it: callchain.h. */
struct perfring_list {
	const perfring_word *words;
	uint64_t nr;
};

/* Whether a word of a callchain is a marker, not an address (docs/abi.md 6). */
PERFRING_INLINE bool perfring_list_is_marker(uint64_t word)
{
	return word >= (uint64_t)(int64_t)PERFRING_CONTEXT_MAX;
}

/* Whether the words after this marker come from the memory of a process: they may have any value, a marker's too. */
PERFRING_INLINE bool perfring_list_is_user(uint64_t word)
{
	return word == (uint64_t)(int64_t)PERFRING_CONTEXT_USER ||
	       word == (uint64_t)(int64_t)PERFRING_CONTEXT_GUEST_USER;
}

/* A record has size + padding bytes of RAW and does not distinguish them (docs/abi.md 6): decoding counts all of them in size, and
 * sets padding to 0; encoding writes size bytes, then `padding` zeros. */
struct perfring_raw {
	const void *data;
	uint32_t size;
	uint32_t padding;
};

/* `size` bytes (at most 65528) as the kernel would send them: padded so that the next field is aligned. */
PERFRING_INLINE struct perfring_raw perfring_raw_of(const void *data, uint32_t size)
{
	struct perfring_raw raw;

	raw.data = data;
	raw.size = size;
	raw.padding = (4 - size) & 7;
	return raw;
}

/* nr branches, the newest first: entries are three words each (from, to, flags); counters one word each, or NULL: there are none.
 * hw_idx is set only with has_hw_idx. */
struct perfring_branch_stack {
	const perfring_word *entries;
	const perfring_word *counters;
	uint64_t nr;
	uint64_t hw_idx;
	bool has_hw_idx;
};

/* nr values in rising bit order of mask; none if abi is 0.  abi: PERFRING_SAMPLE_REGS_ABI_. */
struct perfring_regs {
	const perfring_word *values;
	uint64_t abi;
	uint64_t mask;
	uint32_t nr;
	uint32_t arch; /* the format's; perfring_register_name has the names */
};

/* The name of a register by its bit in the mask (0 to 63), "R8"; NULL if it has none.  arch: PERFRING_ARCH_.  The text is
 * constant, and never freed. */
PERFRING_API const char *perfring_register_name(uint32_t arch, uint32_t bit);

/* PERFRING_ARCH_ of a machine as `uname -m` spells it; PERFRING_ARCH_OTHER when its registers have no names here. */
PERFRING_API uint32_t perfring_arch_of(const char *machine);

/* A copy of the user stack, upwards from the stack pointer: size bytes, of which the kernel filled the first dyn_size. */
struct perfring_stack {
	const void *data;
	uint64_t size;
	uint64_t dyn_size;
};

/* WEIGHT_STRUCT: how long the access or instruction took, in the PMU's units. */
struct perfring_weight {
	uint32_t var1;
	uint16_t var2;
	uint16_t var3;
};

/* Bytes of the AUX area at the time of the sample: the PMU's own format. */
struct perfring_aux {
	const void *data;
	uint64_t size;
};

/* perfring_kind_u64 ...: the type of a member of each kind of kinds.def. */
#define PERFRING_KIND(kind, type, layout) typedef type perfring_kind_##kind;
#include <perfring/kinds.def>

enum perfring_kind {
#define PERFRING_KIND(kind, type, layout) PERFRING_KIND_##kind,
#include <perfring/kinds.def>
	PERFRING_KINDS,
};

/* How many of the reserved words of struct perfring_sample, and of the reserved columns of struct perfring_columns, the
 * PERFRING_FIELD_ADDED rows of fields.def have taken. */
enum {
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	+ (PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) ? 1 : (int)(sizeof(perfring_kind_##kind) / 8))
	PERFRING_SAMPLE_ADDED = 0
#include <perfring/fields.def>
	,
#define PERFRING_FIELD(...)
#define PERFRING_NUMBERS_number 1
#define PERFRING_NUMBERS_numbers 2
#define PERFRING_NUMBERS_own 0
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	+PERFRING_FIELD_BY(PERFRING_NUMBERS_, PERFRING_FIELD_KIND_##kind)
	PERFRING_COLUMNS_ADDED = 0
#include <perfring/fields.def>
};

/* One decoded sample, or one to encode; its members (identifier, ip, pid, tid, time, ...) are in fields.def.  The layout is part of
 * the ABI: later fields are added at the end, wherever they stand in a record. */
struct perfring_sample {
	uint64_t present;     /* PERFRING_SAMPLE_ bits of the members that were decoded */
	const void *trailing; /* bytes after the last known field: of newer kernels, or padding */
	uint32_t trailing_size;
	uint16_t misc; /* of the header */
	uint16_t padding;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	perfring_kind_##kind PERFRING_FIELD_KIND_##kind(PERFRING_BY_MEMBERS, sample, a, b);
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	perfring_kind_##kind PERFRING_FIELD_KIND_##kind(PERFRING_BY_MEMBERS, sample, a, b);
#include <perfring/fields.def>
	uint64_t reserved[4 - PERFRING_SAMPLE_ADDED];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_sample) == 408, "sample");

/* ---- take: decodes a member, one function for each kind.  Each returns NULL, or what is wrong: a constant text ---- */

PERFRING_INNER const char *perfring_take_u64(struct perfring_cursor *cursor, uint64_t *value)
{
	return perfring_take_word(cursor, value) ? NULL : "record ends inside this field";
}

PERFRING_INNER const char *perfring_take_pair(struct perfring_cursor *cursor, uint32_t *first, uint32_t *second)
{
	if (PERFRING_UNLIKELY(!perfring_cursor_holds(cursor, 8)))
		return "record ends inside this field";
	perfring_take_half(cursor, first);
	perfring_take_half(cursor, second);
	return NULL;
}

PERFRING_INNER const char *perfring_take_weight(struct perfring_cursor *cursor, struct perfring_weight *weight)
{
	uint64_t word = 0;

	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &word)))
		return "record ends inside this field";
	weight->var1 = (uint32_t)word;
	weight->var2 = (uint16_t)(word >> 32);
	weight->var3 = (uint16_t)(word >> 48);
	return NULL;
}

/* One test of the bounds for all words, and no division: a division costs more than the rest of the function. */
PERFRING_INNER const char *perfring_take_read(struct perfring_cursor *cursor, struct perfring_read *read,
					       uint64_t read_format)
{
	const uint64_t times = PERFRING_FORMAT_TOTAL_TIME_ENABLED | PERFRING_FORMAT_TOTAL_TIME_RUNNING;
	const perfring_word *words = (const perfring_word *)(const void *)(cursor->base + cursor->position);
	uint32_t left = perfring_cursor_left(cursor);
	uint64_t size;

	read->read_format = read_format;
	read->enabled = 0;
	read->running = 0;
	/* 40 bytes: of a format without GROUP, with all its members: the longest READ whose size is known without nr. */
	if (PERFRING_UNLIKELY(left < 40) && left < perfring_format_read_least(read_format))
		return "record ends inside the read block";
	if (!(read_format & PERFRING_FORMAT_GROUP)) {
		read->nr = 1;
		read->entries = words++;
		if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
			read->enabled = *words++;
		if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
			read->running = *words;
		cursor->position += perfring_format_read_least(read_format);
		return NULL;
	}
	size = *words++;
	read->nr = size;
	if (read_format & times) {
		if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
			read->enabled = *words++;
		if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
			read->running = *words++;
	}
	read->entries = words;
	cursor->position = (uint32_t)((const unsigned char *)words - cursor->base);
	left = perfring_cursor_left(cursor);
	if (PERFRING_UNLIKELY(size > left))
		return "read block: more entries than the record holds";
	size *= perfring_format_read_entry(read_format);
	if (PERFRING_UNLIKELY(size > left))
		return "read block: more entries than the record holds";
	cursor->position += (uint32_t)size;
	return NULL;
}

PERFRING_INNER const char *perfring_take_list(struct perfring_cursor *cursor, struct perfring_list *list)
{
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &list->nr)))
		return "record ends inside this field";
	return perfring_take_words(cursor, &list->words, list->nr) ? NULL : "list longer than the record";
}

PERFRING_INNER const char *perfring_take_raw(struct perfring_cursor *cursor, struct perfring_raw *raw)
{
	raw->padding = 0;
	if (PERFRING_UNLIKELY(!perfring_take_half(cursor, &raw->size)))
		return "record ends inside this field";
	return perfring_take_bytes(cursor, &raw->data, raw->size) ? NULL : "raw data longer than the record";
}

/* Parts of a branch stack that the kernel may leave out, although the attr asks for them (docs/abi.md 6).  The record does not say
 * so: the decoder tries the shapes in turn (sample/shapes.h). */
enum perfring_branch_shape {
	PERFRING_BRANCH_SHAPE_NO_HW_IDX = 1,
	PERFRING_BRANCH_SHAPE_NO_COUNTERS = 2,
};

PERFRING_INNER const char *perfring_take_branch(struct perfring_cursor *cursor, struct perfring_branch_stack *stack,
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

PERFRING_INNER const char *perfring_take_regs(struct perfring_cursor *cursor, struct perfring_regs *regs,
					       uint64_t mask, uint32_t nr, uint32_t arch)
{
	regs->mask = mask;
	regs->nr = 0;
	regs->arch = arch;
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &regs->abi)))
		return "record ends inside this field";
	if (regs->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		regs->nr = nr;
	return perfring_take_words(cursor, &regs->values, regs->nr) ? NULL : "record ends inside the registers";
}

PERFRING_INNER const char *perfring_take_stack(struct perfring_cursor *cursor, struct perfring_stack *stack)
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

PERFRING_INNER const char *perfring_take_aux(struct perfring_cursor *cursor, struct perfring_aux *aux)
{
	if (PERFRING_UNLIKELY(!perfring_take_word(cursor, &aux->size)))
		return "record ends inside this field";
	return perfring_take_bytes(cursor, &aux->data, aux->size) ? NULL : "aux data longer than the record";
}

PERFRING_INNER int perfring_fault_set(struct perfring_fault *fault, uint32_t at, const char *what)
{
	if (fault) {
		fault->at = at;
		fault->what = what;
	}
	return -EBADMSG;
}

/* An inline that must be inlined: only then does a constant format become straight loads. */
#ifndef PERFRING_FOLDED
#define PERFRING_FOLDED PERFRING_INLINE __attribute__((always_inline))
#endif

/* Decodes the fields whose bits are in `fields`: those of the format from one of its fields on, which begins at `position`. */
PERFRING_FOLDED int perfring_sample_decode_fields(const struct perfring_format *format,
						  const struct perf_event_header *record, uint32_t position,
						  uint32_t size, uint64_t fields, struct perfring_sample *sample,
						  struct perfring_fault *fault, unsigned shape)
{
	struct perfring_cursor cursor = perfring_cursor_init(record, position, size);
	uint64_t left = PERFRING_SAMPLE_KNOWN; /* of this row and later ones; a constant */

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (!PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b) && !(fields & left)) \
		goto done; \
	left &= ~(uint64_t)PERFRING_SAMPLE_##NAME; \
	if (fields & PERFRING_SAMPLE_##NAME) { \
		uint32_t at = cursor.position; \
		const char *what = \
			perfring_take_##kind(&cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, sample, a, b)); \
		if (PERFRING_UNLIKELY(what)) \
			return perfring_fault_set(fault, at, what); \
	}
#include <perfring/fields.def>
done:
	sample->trailing = cursor.base + cursor.position;
	sample->trailing_size = size - cursor.position;
	return 0;
}

/* The body of both decoders.  With a constant format it is one comparison and straight loads. */
PERFRING_FOLDED int perfring_sample_decode_shape(const struct perfring_format *format,
						 const struct perf_event_header *record, uint32_t size,
						 struct perfring_sample *sample, struct perfring_fault *fault,
						 unsigned shape)
{
	uint64_t type = format->sample_type; /* read once: *sample may be *format, as far as the compiler knows */
	uint32_t least = format->least;

	/* The format's `least` saves work (format.h: the plan).  One that is too small does no harm: each take checks its bounds. */
	if (__builtin_constant_p(type) || !least)
		least = perfring_format_least(format);
	if (PERFRING_UNLIKELY(size < sizeof(*record) || size < least))
		return perfring_fault_set(fault, size < sizeof(*record) ? offsetof(perfring_header, size) : size,
					     "sample shorter than its fields");
	sample->misc = ((const perfring_header *)record)->misc;
	sample->present = type & PERFRING_SAMPLE_KNOWN;
	return perfring_sample_decode_fields(format, record, sizeof(*record), size, type, sample, fault, shape);
}

/* perfring_sample_decode as a function: for formats known only at run time, and for branch stacks, whose shape has to be found. */
PERFRING_API int perfring_sample_decode_any(const struct perfring_format *format,
					    const struct perf_event_header *record, struct perfring_sample *sample,
					    struct perfring_fault *fault);

/* Decodes a record of type SAMPLE; its type is not looked at.  Reads the header's `size` once, and no more bytes than that: the
 * caller has made sure that they are there, as readers, sessions and files have.  Returns 0; or -EBADMSG with the offset in the
 * record and a text in *fault (may be NULL), and *sample undefined.  Valid while the record's bytes are. */
PERFRING_FOLDED int perfring_sample_decode(const struct perfring_format *format, const struct perf_event_header *record,
					   struct perfring_sample *sample, struct perfring_fault *fault)
{
	/* size is read once: a peer may be able to write to this memory (reader.h). */
	if (__builtin_constant_p(format->sample_type) && !(format->sample_type & PERFRING_SAMPLE_BRANCH_STACK))
		return perfring_sample_decode_shape(format, record, ((const volatile perfring_header *)record)->size,
						    sample, fault, 0);
	return perfring_sample_decode_any(format, record, sample, fault);
}

/* ---- size and put: encode a member, one pair of functions for each kind; the inverse of take ---- */

#define PERFRING_TOO_MUCH (UINT64_C(1) << 20) /* the size of what no record can hold: sums of it do not overflow */

PERFRING_INNER uint64_t perfring_size_many(uint64_t nr, uint64_t size)
{
	return nr > PERFRING_RECORD_MAX ? PERFRING_TOO_MUCH : nr * size;
}

PERFRING_INNER uint64_t perfring_size_u64(uint64_t value)
{
	(void)value;
	return 8;
}

PERFRING_INNER uint64_t perfring_size_pair(uint32_t first, uint32_t second)
{
	(void)first;
	(void)second;
	return 8;
}

PERFRING_INNER uint64_t perfring_size_weight(const struct perfring_weight *weight)
{
	(void)weight;
	return 8;
}

PERFRING_INNER uint64_t perfring_size_read(const struct perfring_read *read, uint64_t read_format)
{
	if (!(read_format & PERFRING_FORMAT_GROUP))
		return read->nr == 1 ? perfring_format_read_least(read_format) : PERFRING_TOO_MUCH;
	return perfring_format_read_head(read_format) +
	       perfring_size_many(read->nr, perfring_format_read_entry(read_format));
}

PERFRING_INNER uint64_t perfring_size_list(const struct perfring_list *list)
{
	return 8 + perfring_size_many(list->nr, 8);
}

PERFRING_INNER uint64_t perfring_size_raw(const struct perfring_raw *raw)
{
	return UINT64_C(4) + perfring_size_many(raw->size, 1) + perfring_size_many(raw->padding, 1);
}

/* Whether hw_idx is written: with branches always when the format has it, without them when the sample does. */
PERFRING_INNER bool perfring_branch_puts_hw_idx(const struct perfring_branch_stack *stack, uint64_t branch_sample_type)
{
	return (branch_sample_type & PERFRING_SAMPLE_BRANCH_HW_INDEX) && (stack->nr || stack->has_hw_idx);
}

PERFRING_INNER bool perfring_branch_puts_counters(const struct perfring_branch_stack *stack,
						   uint64_t branch_sample_type)
{
	return (branch_sample_type & PERFRING_SAMPLE_BRANCH_COUNTERS) && stack->counters;
}

PERFRING_INNER uint64_t perfring_size_branch(const struct perfring_branch_stack *stack, uint64_t branch_sample_type)
{
	return UINT64_C(8) + (perfring_branch_puts_hw_idx(stack, branch_sample_type) ? 8 : 0) +
	       perfring_size_many(stack->nr, perfring_branch_puts_counters(stack, branch_sample_type) ? 32 : 24);
}

PERFRING_INNER uint64_t perfring_size_regs(const struct perfring_regs *regs, uint32_t nr)
{
	if (regs->abi == PERFRING_SAMPLE_REGS_ABI_NONE)
		return 8;
	return regs->nr == nr ? UINT64_C(8) + nr * 8 : PERFRING_TOO_MUCH;
}

PERFRING_INNER uint64_t perfring_size_stack(const struct perfring_stack *stack)
{
	if (stack->dyn_size > stack->size)
		return PERFRING_TOO_MUCH;
	return 8 + perfring_size_many(stack->size, 1) + (stack->size ? 8 : 0);
}

PERFRING_INNER uint64_t perfring_size_aux(const struct perfring_aux *aux)
{
	return 8 + perfring_size_many(aux->size, 1);
}

/* The encoder has compared the sum of the sizes with the buffer's before the first put: a put cannot fail. */

PERFRING_INNER void perfring_put_u64(struct perfring_cursor *cursor, uint64_t value)
{
	perfring_put_word(cursor, value);
}

PERFRING_INNER void perfring_put_pair(struct perfring_cursor *cursor, uint32_t first, uint32_t second)
{
	perfring_put_half(cursor, first);
	perfring_put_half(cursor, second);
}

PERFRING_INNER void perfring_put_weight(struct perfring_cursor *cursor, const struct perfring_weight *weight)
{
	perfring_put_word(cursor, weight->var1 | (uint64_t)weight->var2 << 32 | (uint64_t)weight->var3 << 48);
}

/* In the format's shape, whatever the shape of the block that `read` points to. */
PERFRING_INNER void perfring_put_read(struct perfring_cursor *cursor, const struct perfring_read *read,
				       uint64_t read_format)
{
	bool group = read_format & PERFRING_FORMAT_GROUP;
	uint64_t i;

	perfring_put_word(cursor, group ? read->nr : perfring_read_value(read, 0));
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		perfring_put_word(cursor, read->enabled);
	if (read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		perfring_put_word(cursor, read->running);
	for (i = 0; i < read->nr; i++) {
		if (group)
			perfring_put_word(cursor, perfring_read_value(read, i));
		if (read_format & PERFRING_FORMAT_ID)
			perfring_put_word(cursor, perfring_read_id(read, i));
		if (read_format & PERFRING_FORMAT_LOST)
			perfring_put_word(cursor, perfring_read_lost(read, i));
	}
}

PERFRING_INNER void perfring_put_list(struct perfring_cursor *cursor, const struct perfring_list *list)
{
	perfring_put_word(cursor, list->nr);
	perfring_put_bytes(cursor, list->words, list->nr * 8);
}

PERFRING_INNER void perfring_put_raw(struct perfring_cursor *cursor, const struct perfring_raw *raw)
{
	perfring_put_half(cursor, raw->size + raw->padding);
	perfring_put_bytes(cursor, raw->data, raw->size);
	perfring_put_zeros(cursor, raw->padding);
}

PERFRING_INNER void perfring_put_branch(struct perfring_cursor *cursor, const struct perfring_branch_stack *stack,
					 uint64_t branch_sample_type)
{
	perfring_put_word(cursor, stack->nr);
	if (perfring_branch_puts_hw_idx(stack, branch_sample_type))
		perfring_put_word(cursor, stack->hw_idx);
	perfring_put_bytes(cursor, stack->entries, stack->nr * 24);
	if (perfring_branch_puts_counters(stack, branch_sample_type))
		perfring_put_bytes(cursor, stack->counters, stack->nr * 8);
}

PERFRING_INNER void perfring_put_regs(struct perfring_cursor *cursor, const struct perfring_regs *regs, uint32_t nr)
{
	perfring_put_word(cursor, regs->abi);
	if (regs->abi != PERFRING_SAMPLE_REGS_ABI_NONE)
		perfring_put_bytes(cursor, regs->values, UINT64_C(8) * nr);
}

PERFRING_INNER void perfring_put_stack(struct perfring_cursor *cursor, const struct perfring_stack *stack)
{
	perfring_put_word(cursor, stack->size);
	if (!stack->size)
		return;
	perfring_put_bytes(cursor, stack->data, stack->size);
	perfring_put_word(cursor, stack->dyn_size);
}

PERFRING_INNER void perfring_put_aux(struct perfring_cursor *cursor, const struct perfring_aux *aux)
{
	perfring_put_word(cursor, aux->size);
	perfring_put_bytes(cursor, aux->data, aux->size);
}

/* The bodies of both encoders.  With a constant format without fields of variable length, and without trailing bytes, the size is
 * constant: one comparison and straight stores. */
PERFRING_FOLDED int64_t perfring_sample_size_shape(const struct perfring_format *format,
						   const struct perfring_sample *sample, uint32_t trailing_size)
{
	uint64_t size = sizeof(struct perf_event_header);

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		size += perfring_size_##kind(PERFRING_FIELD_KIND_##kind(PERFRING_BY_FROM, sample, a, b));
#include <perfring/fields.def>
	size = (size + trailing_size + 7) & ~UINT64_C(7);
	return size > PERFRING_RECORD_MAX ? -EINVAL : (int64_t)size;
}

/* The body of perfring_sample_encode.  trailing_size: sample->trailing_size, or 0 as a constant. */
PERFRING_FOLDED int64_t perfring_sample_encode_shape(const struct perfring_format *format,
						     const struct perfring_sample *sample, void *buffer, size_t size,
						     uint32_t trailing_size)
{
	int64_t needed = perfring_sample_size_shape(format, sample, trailing_size);
	struct perfring_cursor cursor;

	if (PERFRING_UNLIKELY(needed < 0))
		return needed;
	if (PERFRING_UNLIKELY(size < (uint64_t)needed))
		return -ENOSPC;
	cursor = perfring_cursor_init(buffer, 0, (uint32_t)needed);
	perfring_put_word(&cursor, perfring_format_header_word(PERF_RECORD_SAMPLE, sample->misc, (uint16_t)needed));
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		perfring_put_##kind(&cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_FROM, sample, a, b));
#include <perfring/fields.def>
	if (trailing_size)
		perfring_put_bytes(&cursor, sample->trailing, trailing_size);
	perfring_put_zeros(&cursor, perfring_cursor_left(&cursor));
	return needed;
}

/* perfring_sample_size and perfring_sample_encode as functions. */
PERFRING_API int64_t perfring_sample_size_any(const struct perfring_format *format,
					      const struct perfring_sample *sample);
PERFRING_API int64_t perfring_sample_encode_any(const struct perfring_format *format,
						const struct perfring_sample *sample, void *buffer, size_t size);

/* The inverse of decode: writes a record of type SAMPLE into a buffer of `size` bytes.  Takes misc, the members of every field
 * that the format has (`present` is not looked at) and the trailing bytes if trailing_size is not 0.  Pointers must not point
 * into the buffer.  The record is padded with zeros to a multiple of 8.  Returns the record's size, 8 to 65528; -ENOSPC (the
 * buffer is too small); -EINVAL (more than 65528 bytes; registers whose nr is not that of the format's mask; a dyn_size larger
 * than its stack; a read block without GROUP whose nr is not 1).  A stack of size 0 in a format with registers and
 * sample_stack_user 0 may look to perfring_record_check as if the kernel had shifted it (docs/abi.md 14.3). */
PERFRING_FOLDED int64_t perfring_sample_encode(const struct perfring_format *format,
					       const struct perfring_sample *sample, void *buffer, size_t size)
{
	if (__builtin_constant_p(format->sample_type) && PERFRING_LIKELY(!sample->trailing_size))
		return perfring_sample_encode_shape(format, sample, buffer, size, 0);
	return perfring_sample_encode_any(format, sample, buffer, size);
}

/* The record's size, which perfring_sample_encode would return with a large buffer: what to reserve in a ring.  Or -EINVAL, as
 * that. */
PERFRING_FOLDED int64_t perfring_sample_size(const struct perfring_format *format, const struct perfring_sample *sample)
{
	if (__builtin_constant_p(format->sample_type) && PERFRING_LIKELY(!sample->trailing_size))
		return perfring_sample_size_shape(format, sample, 0);
	return perfring_sample_size_any(format, sample);
}

/* ---- columns ---- */

/* Arrays of the caller for the members of many samples: row i of each column that is not NULL is sample i's.  Each has space for
 * the `rows` of the call.  Every field of one word has a column, except WEIGHT_STRUCT. */
struct perfring_columns {
#define PERFRING_COLUMN_number(type, a, b) type *a;
#define PERFRING_COLUMN_numbers(type, a, b) type *a, *b;
#define PERFRING_COLUMN_own(type, a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(PERFRING_COLUMN_, PERFRING_FIELD_KIND_##kind)(perfring_kind_##kind, a, b)
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, ...) \
	PERFRING_FIELD_BY(PERFRING_COLUMN_, PERFRING_FIELD_KIND_##kind)(perfring_kind_##kind, a, b)
#include <perfring/fields.def>
	uint64_t *reserved[6 - PERFRING_COLUMNS_ADDED]; /* NULL */
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_columns) == 192, "columns");

/* Decodes the samples at `records` (`size` bytes of records in a row) from offset *position on, at most `rows` of them, and stops
 * before the first record that is not a SAMPLE.  *position: then the offset of that record, or the end of the last sample.
 * Columns of fields before all fields of variable length (see fields.def) are fast: with only these, the rest of each record is
 * not read.  Returns the number of rows; -EINVAL (a column whose field the format does not have, a *position above size);
 * -EBADMSG with *fault (may be NULL; `at` counts from `records`), if the record at *position is damaged and there is no row. */
PERFRING_API int64_t perfring_columns_decode(const struct perfring_columns *columns,
					     const struct perfring_format *format, const void *records, size_t size,
					     size_t *position, size_t rows, struct perfring_fault *fault);

PERFRING_END

#endif
