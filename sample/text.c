/* text.c - records, fields and attrs as text, from the tables.
 *
 * The functions of text.h, for `perfring dump`, `perfring ring` and programs.  text_kind writes the kinds of members that have a
 * form of their own, text_laid all others.  Names of fields and members come from fields.def and records.def; those of values and
 * registers from values.def: the group is the row's column `show`.
 *
 * What fits is written; what does not is counted.  Nothing is allocated.  Context: any thread, signal handlers.
 */
#include <perfring/text.h>

#include "attr.h"
#include "layout_private.h"
#include "members.h"

/* ---- a line: what does not fit is still counted; line_end puts the NUL after the text, or in the last byte ---- */

struct line {
	char *buffer;
	size_t size;
	size_t length;
};

static inline void put_char(struct line *line, char c)
{
	if (line->length < line->size)
		line->buffer[line->length] = c;
	line->length++;
}

static inline void put_text(struct line *line, const char *text, size_t size)
{
	if (PERFRING_LIKELY(line->length < line->size && size <= line->size - line->length))
		memcpy(line->buffer + line->length, text, size);
	else if (line->length < line->size)
		memcpy(line->buffer + line->length, text, line->size - line->length);
	line->length += size;
}

/* Most texts are literals, whose length the compiler knows. */
PERFRING_FOLDED void put(struct line *line, const char *text)
{
	put_text(line, text, strlen(text));
}

static int64_t line_end(struct line *line)
{
	if (line->size)
		line->buffer[line->length < line->size ? line->length : line->size - 1] = 0;
	return (int64_t)line->length;
}

#define DIGITS 24 /* no number has more */

/* text: the digits up to `end`, after which DIGITS bytes more can be read: a copy of a fixed size is fast. */
static inline void put_digits(struct line *line, const char *text, const char *end)
{
	size_t size = (size_t)(end - text);

	if (PERFRING_LIKELY(line->length < line->size && line->size - line->length >= DIGITS)) {
		memcpy(line->buffer + line->length, text, DIGITS);
		line->length += size;
	} else {
		put_text(line, text, size);
	}
}

static void put_dec(struct line *line, uint64_t value)
{
	char digits[2 * DIGITS] = {0};

	put_digits(line, perfring_digits_decimal(digits + DIGITS, value), digits + DIGITS);
}

static void put_signed(struct line *line, int64_t value)
{
	if (value < 0)
		put_char(line, '-');
	put_dec(line, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_digit(struct line *line, unsigned value)
{
	put_char(line, "0123456789abcdef"[value & 15]);
}

static void put_hex(struct line *line, uint64_t value)
{
	char digits[2 * DIGITS] = {0}, *text = perfring_digits_hex(digits + DIGITS, value);

	if (value) {
		*--text = 'x';
		*--text = '0';
	}
	put_digits(line, text, digits + DIGITS);
}

static void put_bytes(struct line *line, const void *bytes, uint64_t size)
{
	const unsigned char *byte = bytes;

	for (; size; size--, byte++) {
		put_digit(line, *byte >> 4);
		put_digit(line, *byte);
	}
}

/* The backslash too, so that \xHH means one thing. */
static void put_string(struct line *line, const char *text, uint64_t size)
{
	for (; size; size--, text++) {
		if (*text >= 0x20 && *text < 0x7f && *text != '\\') {
			put_char(line, *text);
			continue;
		}
		put(line, "\\x");
		put_bytes(line, text, 1);
	}
}

/* Between the entries of a list. */
static void put_separator(struct line *line, bool *first, char separator)
{
	if (!*first)
		put_char(line, separator);
	*first = false;
}

static void put_space(struct line *line, bool *first)
{
	put_separator(line, first, ' ');
}

static void put_key(struct line *line, bool *first, const char *key)
{
	put_space(line, first);
	put(line, key);
	put_char(line, '=');
}

static void put_bit(struct line *line, bool *first, const char *name)
{
	put_separator(line, first, '|');
	put(line, name);
}

/* Bits that have no name, or the 0 of an empty set. */
static void put_bits_left(struct line *line, bool first, uint64_t value)
{
	if (!value && !first)
		return;
	put_separator(line, &first, '|');
	put_hex(line, value);
}

/* ---- values, as the show columns of the tables say ---- */

static const struct {
	const char *prefix;
	bool is_set;
} groups[] = {
#define PERFRING_VALUE_GROUP(group, prefix, is_set) {prefix, is_set},
#include <perfring/values.def>
};

static const struct name {
	const char *name;
	int32_t value;
	enum show group;
} names[] = {
#define PERFRING_VALUE(group, NAME, value) {#NAME, (value), SHOW_##group},
#include <perfring/values.def>
};

static const struct name *const names_end = names + sizeof(names) / sizeof(names[0]);

/* The first of a group: values.def has them in the order of its groups. */
static const struct name *first_of(enum show group)
{
	const struct name *first = names;
	size_t left = sizeof(names) / sizeof(names[0]);

	while (left) {
		size_t half = left / 2;

		if (first[half].group < group) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	return first;
}

static const char *name_without_prefix(const struct name *name)
{
	size_t size = strlen(groups[name->group].prefix);

	return strncmp(name->name, groups[name->group].prefix, size) ? name->name : name->name + size;
}

/* The row of a value in a group, or NULL.  Values are compared as signed numbers: context markers are words near 2^64. */
static const char *name_of(enum show group, uint64_t value)
{
	const struct name *name;

	for (name = first_of(group); name < names_end && name->group == group; name++)
		if ((uint64_t)(int64_t)name->value == value)
			return name_without_prefix(name);
	return NULL;
}

static void put_set(struct line *line, enum show group, uint64_t value)
{
	const struct name *name;
	bool first = true;

	for (name = first_of(group); name < names_end && name->group == group; name++) {
		uint64_t bit = (uint64_t)(int64_t)name->value;

		if (!(value & bit) || (bit & (bit - 1)))
			continue;
		put_bit(line, &first, name_without_prefix(name));
		value &= ~bit;
	}
	put_bits_left(line, first, value);
}

static void put_sample_type(struct line *line, uint64_t value)
{
	bool first = true;

#define PERFRING_FIELD(NAME, bit, ...) \
	if (value & PERFRING_SAMPLE_##NAME) \
		put_bit(line, &first, #NAME);
#include <perfring/fields.def>
	put_bits_left(line, first, value & ~(uint64_t)PERFRING_SAMPLE_KNOWN);
}

static void put_flags(struct line *line, uint64_t value)
{
	bool first = true;
	uint64_t part, mask;

#define PERFRING_ATTR_FLAG(flag, bit, width) \
	mask = ((UINT64_C(1) << (width)) - 1) << (bit); \
	part = value & mask; \
	value &= ~mask; \
	if (part) \
		put_bit(line, &first, #flag); \
	if (part && (width) > 1) { \
		put_char(line, '='); \
		put_dec(line, part >> (bit)); \
	}
#include <perfring/values.def>
	put_bits_left(line, first, value);
}

/* The bits of a double, exactly, as C's %a shows them. */
static void put_float(struct line *line, uint64_t bits)
{
	uint64_t fraction = bits << 12;
	int exponent = (int)(bits >> 52 & 0x7ff);

	if (bits >> 63)
		put_char(line, '-');
	if (exponent == 0x7ff) {
		put(line, fraction ? "nan" : "inf");
		return;
	}
	put(line, exponent ? "0x1" : "0x0");
	if (fraction)
		put_char(line, '.');
	for (; fraction; fraction <<= 4)
		put_digit(line, (unsigned)(fraction >> 60));
	if (bits << 1)
		exponent = exponent ? exponent - 1023 : -1022;
	put(line, exponent < 0 ? "p" : "p+");
	put_signed(line, exponent);
}

static void put_value(struct line *line, enum show show, uint64_t value);

/* The word, and each part that says something. */
static void put_data_src(struct line *line, uint64_t value)
{
	static const struct {
		const char *key;
		enum show group;
		unsigned shift;
		unsigned width;
	} parts[] = {
#define PERFRING_DATA_SRC(part, BIT, width, show) {#part, SHOW_##show, PERFRING_##BIT, (width)},
#include <perfring/values.def>
	};
	bool first = true;
	size_t i;

	put_hex(line, value);
	put_char(line, '{');
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t part = value >> parts[i].shift & ((UINT64_C(1) << parts[i].width) - 1);

		if (!part)
			continue;
		put_key(line, &first, parts[i].key);
		put_value(line, parts[i].group, part);
	}
	put_char(line, '}');
}

static void put_value(struct line *line, enum show show, uint64_t value)
{
	const char *name;

	switch (show) {
	case SHOW_dec:
	case SHOW_signed:
	case SHOW_time:
	case SHOW_both:
		put_dec(line, value);
		return;
	case SHOW_hex:
	case SHOW_str:
		put_hex(line, value);
		return;
	case SHOW_data_src:
		put_data_src(line, value);
		return;
	case SHOW_sample:
		put_sample_type(line, value);
		return;
	case SHOW_flag:
		put_flags(line, value);
		return;
	case SHOW_float:
		put_float(line, value);
		return;
	default:
		break;
	}
	if (groups[show].is_set) {
		put_set(line, show, value);
		return;
	}
	name = name_of(show, value);
	if (name)
		put(line, name);
	else
		put_dec(line, value);
}

/* ---- kinds of fields and members ---- */

PERFRING_FOLDED void put_named(struct line *line, const char *name, enum show show, uint64_t value)
{
	put(line, name);
	put_value(line, show, value);
}

static void put_size(struct line *line, uint64_t size)
{
	put_named(line, "{size=", SHOW_dec, size);
	put_char(line, '}');
}

static void text_read(struct line *line, enum show show, const struct perfring_read *read)
{
	bool first = true;
	uint64_t i;

	put_char(line, '[');
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED) {
		put_key(line, &first, "enabled");
		put_dec(line, read->enabled);
	}
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING) {
		put_key(line, &first, "running");
		put_dec(line, read->running);
	}
	for (i = 0; i < read->nr; i++) {
		put_space(line, &first);
		put_named(line, "{value=", show, perfring_read_value(read, i));
		if (read->read_format & PERFRING_FORMAT_ID)
			put_named(line, " id=", SHOW_dec, perfring_read_id(read, i));
		if (read->read_format & PERFRING_FORMAT_LOST)
			put_named(line, " lost=", SHOW_dec, perfring_read_lost(read, i));
		put_char(line, '}');
	}
	put_char(line, ']');
}

/* Only callchains have markers. */
static void text_list(struct line *line, enum show show, const struct perfring_list *list, bool has_markers)
{
	bool first = true;
	uint64_t i;

	put_char(line, '[');
	for (i = 0; i < list->nr; i++) {
		uint64_t word = list->words[i];
		bool is_marker = has_markers && perfring_list_is_marker(word);
		const char *name = is_marker ? name_of(SHOW_context, word) : NULL;

		put_space(line, &first);
		if (name)
			put(line, name);
		else if (is_marker)
			put_signed(line, (int64_t)word);
		else
			put_value(line, show, word);
	}
	put_char(line, ']');
}

/* Names of bits, values of wider parts.  Big-endian compilers lay the parts out from the other end of the word. */
static void put_branch_flags(struct line *line, bool *first, uint64_t flags)
{
	static const struct {
		const char *key;
		enum show show;
		unsigned bit;
		unsigned width;
	} parts[] = {
#define PERFRING_BRANCH_FLAG(flag, bit, width, show) {#flag, SHOW_##show, (bit), (width)},
#include <perfring/values.def>
	};
	bool is_extended = false;
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		unsigned shift =
			__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? parts[i].bit : 64 - parts[i].bit - parts[i].width;
		uint64_t part = flags >> shift & ((UINT64_C(1) << parts[i].width) - 1);

		if (parts[i].show == SHOW_branch_type)
			is_extended = part == PERFRING_BR_EXTEND_ABI;
		if (!part && !(is_extended && parts[i].show == SHOW_branch_new_type))
			continue;
		if (parts[i].width == 1) {
			put_space(line, first);
			put(line, parts[i].key);
			continue;
		}
		put_key(line, first, parts[i].key);
		put_value(line, parts[i].show, part);
	}
}

static void text_branch(struct line *line, enum show show, const struct perfring_branch_stack *stack)
{
	bool first = true, inner;
	uint64_t i;

	put_char(line, '[');
	if (stack->has_hw_idx) {
		put_key(line, &first, "hw_idx");
		put_signed(line, (int64_t)stack->hw_idx);
	}
	for (i = 0; i < stack->nr; i++) {
		put_space(line, &first);
		put_value(line, show, stack->entries[i * 3]);
		put(line, "->");
		put_value(line, show, stack->entries[i * 3 + 1]);
		if (!stack->entries[i * 3 + 2] && !stack->counters)
			continue;
		inner = true;
		put_char(line, '{');
		put_branch_flags(line, &inner, stack->entries[i * 3 + 2]);
		if (stack->counters) {
			put_key(line, &inner, "counters");
			put_hex(line, stack->counters[i]);
		}
		put_char(line, '}');
	}
	put_char(line, ']');
}

/* Each value after its register's name, or after the number of its bit. */
static void text_regs(struct line *line, enum show show, const struct perfring_regs *regs)
{
	uint64_t mask = regs->mask;
	uint32_t i;

	put_named(line, "{abi=", SHOW_regs_abi, regs->abi);
	for (i = 0; i < regs->nr && mask; i++, mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);
		const char *name = perfring_register_name(regs->arch, bit);

		put_char(line, ' ');
		if (name)
			put(line, name);
		else
			put_dec(line, bit);
		put_char(line, '=');
		put_value(line, show, regs->values[i]);
	}
	put_char(line, '}');
}

static void text_id128(struct line *line, enum show show, const struct perfring_file_id *file)
{
	if (file->has_build_id) {
		put(line, "{build_id=");
		put_bytes(line, file->build_id, file->build_id_size);
	} else {
		put_named(line, "{maj=", show, file->maj);
		put_named(line, " min=", show, file->min);
		put_named(line, " ino=", show, file->ino);
		put_named(line, " ino_generation=", show, file->ino_generation);
	}
	put_char(line, '}');
}

/* Pairs "first:second": the first is shown as `show` says, the second in decimal. */
static void text_links(struct line *line, enum show show, const struct perfring_links *links)
{
	bool first = true;
	uint64_t i;

	put_char(line, '[');
	for (i = 0; i < links->nr; i++) {
		put_space(line, &first);
		put_value(line, show, links->words[i * 2]);
		put_char(line, ':');
		put_dec(line, links->words[i * 2 + 1]);
	}
	put_char(line, ']');
}

static int put_attr(struct line *line, const struct perf_event_attr *attr)
{
	struct perfring_attr_members members;
	bool first = true;
	int error = perfring__attr_read(&members, attr);

	if (error)
		return error;
		/* The kind of event is shown always: type at 0, config at 8. */
#define PERFRING_ATTR(member, offset, size, show) \
	if (members.member || (offset) == 0 || (offset) == 8) { \
		put_key(line, &first, #member); \
		put_value(line, SHOW_##show, members.member); \
	}
#include <perfring/values.def>
	return 0;
}

/* Any of them but id and idx may be -1 (docs/abi.md 14.40). */
static void text_index(struct line *line, const struct perfring_index *index)
{
	static const char *const keys[] = {"id", "idx", "cpu", "tid", "machine_pid", "vcpu"};
	bool first = true, inner;
	uint64_t i;
	size_t k;

	put_char(line, '[');
	for (i = 0; i < index->nr; i++) {
		put_space(line, &first);
		put_char(line, '{');
		inner = true;
		for (k = 0; k < (index->machines ? 6 : 4); k++) {
			uint64_t word = k < 4 ? index->entries[i * 4 + k] : index->machines[i * 2 + k - 4];

			put_key(line, &inner, keys[k]);
			if (k < 2)
				put_dec(line, word);
			else
				put_signed(line, (int64_t)word);
		}
		put_char(line, '}');
	}
	put_char(line, ']');
}

/* A run of CPUs in a list such as "0-3,5". */
struct run {
	int64_t first;
	int64_t last;
	bool is_open;
	bool is_later; /* a run was shown before */
};

static void run_end(struct line *line, struct run *run)
{
	if (!run->is_open)
		return;
	if (run->is_later)
		put_char(line, ',');
	put_signed(line, run->first);
	if (run->last > run->first) {
		put_char(line, '-');
		put_signed(line, run->last);
	}
	run->is_open = false;
	run->is_later = true;
}

static void run_add(struct line *line, struct run *run, int64_t first, int64_t last)
{
	if (run->is_open && run->first >= 0 && first == run->last + 1) {
		run->last = last;
		return;
	}
	run_end(line, run);
	run->first = first;
	run->last = last;
	run->is_open = true;
}

static void put_mask(struct line *line, struct run *run, const struct perfring_cpu_map *map)
{
	const char *bytes = map->data;
	uint64_t word;
	int64_t cpu;

	for (uint64_t i = 0; i < map->nr; i++)
		for (word = perfring__number_get(bytes + i * map->long_size, map->long_size); word; word &= word - 1) {
			cpu = (int64_t)i * map->long_size * 8 + __builtin_ctzll(word);
			run_add(line, run, cpu, cpu);
		}
}

/* -1 stands for any CPU. */
static void text_cpu_map(struct line *line, const struct perfring_cpu_map *map)
{
	struct run run = {0, 0, false, false};
	const char *bytes = map->data;
	int64_t cpu;

	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		for (uint64_t i = 0; i < map->nr; i++) {
			cpu = (int64_t)perfring__number_get(bytes + 2 * i, 2);
			cpu = cpu == UINT16_MAX ? -1 : cpu;
			run_add(line, &run, cpu, cpu);
		}
		break;
	case PERFRING_CPU_MAP_MASK:
		put_mask(line, &run, map);
		break;
	case PERFRING_CPU_MAP_RANGE_CPUS:
		if (map->any_cpu)
			run_add(line, &run, -1, -1);
		run_add(line, &run, map->first, map->last);
		break;
	default:
		put_named(line, "{type=", SHOW_dec, map->type);
		put_named(line, " size=", SHOW_dec, map->size);
		put_char(line, '}');
		break;
	}
	run_end(line, &run);
}

static void put_part(struct line *line, const struct perfring_layout_member *part)
{
	if (part->kind == PERFRING_LAYOUT_STRING)
		put_string(line, part->bytes, part->size);
	else if (part->kind != PERFRING_LAYOUT_NUMBER)
		put_bytes(line, part->bytes, part->size);
	else if (part->is_hex)
		put_hex(line, part->number);
	else if (part->is_signed)
		put_signed(line, part->size == 4 ? (int32_t)part->number : (int64_t)part->number);
	else
		put_dec(line, part->number);
}

/* Returns false for a kind that has no form of its own.  members: the address of its member; of a pair, those of both. */
PERFRING_FOLDED bool text_kind(struct line *line, enum perfring_kind kind, enum show show, const void *const *members)
{
	const void *member = members[0];
	const struct perfring_weight *weight = member;
	const struct perfring_stack *stack = member;
	const struct perfring_string *string = member;
	const struct perfring_build_id *id = member;
	const struct perfring_poke *poke = member;

	switch (kind) {
	case PERFRING_KIND_u16:
		put_value(line, show, *(const uint16_t *)member);
		break;
	case PERFRING_KIND_u32:
		if (show == SHOW_signed)
			put_signed(line, *(const int32_t *)member);
		else
			put_value(line, show, *(const uint32_t *)member);
		break;
	case PERFRING_KIND_u64:
		put_value(line, show, *(const uint64_t *)member);
		break;
	case PERFRING_KIND_pair:
		put_signed(line, *(const int32_t *)member);
		if (show != SHOW_both)
			break;
		put_char(line, '/');
		put_signed(line, *(const int32_t *)members[1]);
		break;
	case PERFRING_KIND_weight:
		put_named(line, "{var1=", show, weight->var1);
		put_named(line, " var2=", show, weight->var2);
		put_named(line, " var3=", show, weight->var3);
		put_char(line, '}');
		break;
	case PERFRING_KIND_read:
		text_read(line, show, member);
		break;
	case PERFRING_KIND_list:
	case PERFRING_KIND_words:
		text_list(line, show, member, kind == PERFRING_KIND_list);
		break;
	case PERFRING_KIND_raw:
		put_size(line, ((const struct perfring_raw *)member)->size);
		break;
	case PERFRING_KIND_branch:
		text_branch(line, show, member);
		break;
	case PERFRING_KIND_regs:
		text_regs(line, show, member);
		break;
	case PERFRING_KIND_stack:
		put_named(line, "{size=", SHOW_dec, stack->size);
		put_named(line, " dyn_size=", SHOW_dec, stack->dyn_size);
		put_char(line, '}');
		break;
	case PERFRING_KIND_aux:
		put_size(line, ((const struct perfring_aux *)member)->size);
		break;
	case PERFRING_KIND_id128:
		text_id128(line, show, member);
		break;
	case PERFRING_KIND_tag:
		put_bytes(line, ((const struct perfring_tag *)member)->bytes, sizeof(struct perfring_tag));
		break;
	case PERFRING_KIND_string:
	case PERFRING_KIND_text64:
	case PERFRING_KIND_text512:
		put_string(line, string->data, string->size);
		break;
	case PERFRING_KIND_links:
		text_links(line, show, member);
		break;
	case PERFRING_KIND_poke:
		put(line, "{old=");
		put_bytes(line, poke->old_bytes, poke->old_len);
		put(line, " new=");
		put_bytes(line, poke->new_bytes, poke->new_len);
		put_char(line, '}');
		break;
	case PERFRING_KIND_rest:
	case PERFRING_KIND_blob:
		put_size(line, ((const struct perfring_bytes *)member)->size);
		break;
	case PERFRING_KIND_attr:
		put_char(line, '{');
		if (put_attr(line, ((const struct perfring_bytes *)member)->data))
			put_named(line, "size=", SHOW_dec, ((const struct perfring_bytes *)member)->size);
		put_char(line, '}');
		break;
	case PERFRING_KIND_build_id:
		put_bytes(line, id->bytes, id->size);
		break;
	case PERFRING_KIND_index:
		text_index(line, member);
		break;
	case PERFRING_KIND_cpu_map:
		text_cpu_map(line, member);
		break;
	default:
		return false;
	}
	return true;
}

/* A kind without a form of its own: its parts by their names, entries of lists in braces, or key=value. */
static void text_laid(struct line *line, struct perfring_layout_walk *walk)
{
	struct perfring_layout_member part;
	bool first = true, inner = true, is_open = false, is_list;
	int one = perfring_layout_next(walk, &part);

	is_list = one == 1 && part.use == PERFRING_LAYOUT_COUNT;
	put_char(line, is_list ? '[' : '{');
	for (; one == 1; one = perfring_layout_next(walk, &part)) {
		bool is_key = !strcmp(part.name, "key"), is_value = !strcmp(part.name, "value");

		if (part.kind == PERFRING_LAYOUT_PADDING || part.use == PERFRING_LAYOUT_COUNT ||
		    part.use == PERFRING_LAYOUT_LENGTH)
			continue;
		if (part.begins) {
			put(line, is_open ? "}" : "");
			put_space(line, &first);
			is_open = !is_key;
			put(line, is_open ? "{" : "");
			inner = true;
		}
		if (part.name[0] && !is_key && !is_value)
			put_key(line, &inner, part.name);
		put_part(line, &part);
		put(line, is_key ? "=" : "");
	}
	put(line, is_open ? "}" : "");
	put_char(line, is_list ? ']' : '}');
}

/* ---- samples ---- */

#define TEXT_FIELD(line, kind, show, of, a, b) \
	text_kind(line, PERFRING_KIND_##kind, SHOW_##show, \
		  (const void *const[]){PERFRING_FIELD_KIND_##kind(PERFRING_BY_PLACES, of, a, b)})

static void put_sample(struct line *line, const struct perfring_sample *sample)
{
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) \
	if (sample->present & PERFRING_SAMPLE_##NAME) { \
		put(line, " " script "="); \
		TEXT_FIELD(line, kind, show, sample, a, b); \
	}
#include <perfring/fields.def>
}

static void put_trailer(struct line *line, const struct perfring_trailer *sample_id)
{
	bool first = true;

	if (!sample_id->present)
		return;
	put(line, " trailer={");
#define PUT_TRAILER_no(...)
#define PUT_TRAILER_last PUT_TRAILER_yes
#define PUT_TRAILER_yes(NAME, kind, a, b, show, script) \
	if (sample_id->present & PERFRING_SAMPLE_##NAME) { \
		put_key(line, &first, script); \
		TEXT_FIELD(line, kind, show, sample_id, a, b); \
	}
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) \
	PUT_TRAILER_##trailer(NAME, kind, a, b, show, script)
#include <perfring/fields.def>
	put_char(line, '}');
}

int64_t perfring_field_text(const struct perfring_sample *sample, uint64_t field, char *buffer, size_t size)
{
	struct line line = {buffer, size, 0};

	if (!(sample->present & field))
		return -EINVAL;
	switch (field) {
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) \
	case PERFRING_SAMPLE_##NAME: \
		TEXT_FIELD(&line, kind, show, sample, a, b); \
		break;
#include <perfring/fields.def>
	default:
		return -EINVAL;
	}
	return line_end(&line);
}

/* ---- records ---- */

/* Bits of misc mean different things in different kinds (docs/abi.md 4.1, 14.23).  type 0: in every kind. */
static const struct {
	uint32_t type;
	uint16_t bit;
	const char *name;
} misc_bits[] = {
#define PERFRING_MISC(type, NAME) {(type), PERFRING_RECORD_MISC_##NAME, #NAME},
#include <perfring/values.def>
};

static void put_misc(struct line *line, uint32_t type, uint16_t misc)
{
	uint16_t cpumode = misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
	uint16_t left = misc & (uint16_t)~PERFRING_RECORD_MISC_CPUMODE_MASK;
	bool first = true;
	size_t i;

	if (!misc)
		return;
	put(line, " misc=");
	if (cpumode) {
		put_value(line, SHOW_cpumode, cpumode);
		first = false;
	}
	for (i = 0; i < sizeof(misc_bits) / sizeof(misc_bits[0]); i++) {
		if ((misc_bits[i].type && misc_bits[i].type != type) || !(left & misc_bits[i].bit))
			continue;
		put_bit(line, &first, misc_bits[i].name);
		left &= (uint16_t)~misc_bits[i].bit;
	}
	put_bits_left(line, first, left);
}

static void put_trailing(struct line *line, uint32_t size)
{
	if (size)
		put_named(line, " trailing=", SHOW_dec, size);
}

static void put_fault(struct line *line, const struct perfring_fault *fault)
{
	put(line, " fault=\"");
	put(line, fault->what);
	put(line, "\" at=");
	put_signed(line, fault->at);
}

static void put_record(struct line *line, const struct perfring_record *decoded, const struct perf_event_header *record)
{
	struct perfring_layout_walk walk;
	const struct member_row *row;
	const void *members[2] = {NULL, NULL}; /* the second stays NULL: records have no pairs */

	for (row = perfring__members_of(decoded->type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring__members_has(decoded, row))
			continue;
		put_char(line, ' ');
		put(line, row->name);
		put_char(line, '=');
		members[0] = perfring__member_of(decoded, row);
		if (text_kind(line, (enum perfring_kind)row->kind, (enum show)row->show, members))
			continue;
		perfring_record_walk(&walk, decoded, record, members[0]);
		text_laid(line, &walk);
	}
}

/* Kind and misc, with which each line begins. */
static void put_heading(struct line *line, uint32_t type, uint16_t misc)
{
	const char *name = perfring_record_name(type);

	if (name)
		put(line, name);
	else
		put_named(line, "RECORD_", SHOW_dec, type);
	put_misc(line, type, misc);
}

int64_t perfring_sample_text(const struct perfring_sample *sample, char *buffer, size_t size)
{
	struct line line = {buffer, size, 0};

	put_heading(&line, PERFRING_RECORD_SAMPLE, sample->misc);
	put_sample(&line, sample);
	put_trailing(&line, sample->trailing_size);
	return line_end(&line);
}

int64_t perfring_record_decoded_text(const struct perfring_record *decoded, const struct perf_event_header *record,
				     char *buffer, size_t size)
{
	struct line line = {buffer, size, 0};

	put_heading(&line, decoded->type, ((const perfring_header *)record)->misc);
	put_record(&line, decoded, record);
	put_trailing(&line, decoded->trailing_size);
	put_trailer(&line, &decoded->trailer);
	return line_end(&line);
}

int64_t perfring_record_text(const struct perfring_format *format, const struct perf_event_header *record, char *buffer,
			     size_t size)
{
	const perfring_header *header = (const perfring_header *)record;
	bool is_sample = header->type == PERFRING_RECORD_SAMPLE;
	struct line line = {buffer, size, 0};
	struct perfring_fault fault = {0, NULL};
	struct perfring_record decoded;
	struct perfring_sample sample;

	if (is_sample && format && !perfring_sample_decode_any(format, record, &sample, &fault))
		return perfring_sample_text(&sample, buffer, size);
	if (!is_sample && !perfring_record_decode(format, record, &decoded, &fault))
		return perfring_record_decoded_text(&decoded, record, buffer, size);
	put_heading(&line, header->type, header->misc);
	if (fault.what)
		put_fault(&line, &fault);
	else
		put_trailing(&line, header->size < sizeof(*record) ? 0 : header->size - (uint32_t)sizeof(*record));
	return line_end(&line);
}

int64_t perfring_attr_text(const struct perf_event_attr *attr, char *buffer, size_t size)
{
	struct line line = {buffer, size, 0};
	int error = put_attr(&line, attr);

	return error ? error : line_end(&line);
}
