/* json.c - a record as one line of JSON, from the tables.
 *
 * convert --to-json writes records by it; report, stat, doctor and top their texts by tool_json_text.  One function a kind of
 * member, or a walk by its layout; names of values come from values.def.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "json.h"

/* The columns of the tables. */
enum show {
#define PERFRING_VALUE_GROUP(group, prefix, is_set) SHOW_##group,
#include <perfring/values.def>
	SHOW_dec,
	SHOW_signed,
	SHOW_hex,
	SHOW_time,
	SHOW_str,
	SHOW_both,
	SHOW_float,
	SHOW_data_src,
	SHOW_sample,
	SHOW_flag,
};

static const struct {
	const char *prefix;
	bool is_set;
} groups[] = {
#define PERFRING_VALUE_GROUP(group, prefix, is_set) {prefix, is_set},
#include <perfring/values.def>
};

static const struct {
	enum show group;
	const char *name;
	int64_t value;
} names[] = {
#define PERFRING_VALUE(group, NAME, value) {SHOW_##group, #NAME, (value)},
#include <perfring/values.def>
};

/* ---- strings ---- */

/* How many bytes of UTF-8 one character is, from the first; 0 when it is none (too long a form and surrogates too). */
static unsigned utf8(const unsigned char *text, uint64_t size)
{
	unsigned length = *text < 0x80                    ? 1
			  : *text >= 0xc2 && *text < 0xe0 ? 2
			  : *text >= 0xe0 && *text < 0xf0 ? 3
			  : *text >= 0xf0 && *text < 0xf5 ? 4
							  : 0;

	if (!length || length > size)
		return 0;
	for (unsigned i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f) ||
	    (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

static void put_string(FILE *out, const void *bytes, uint64_t size)
{
	const unsigned char *text = bytes, *end = text + size;

	putc_unlocked('"', out);
	while (text < end) {
		unsigned length = utf8(text, (uint64_t)(end - text));

		if (!length || *text == '\\') {
			fprintf(out, "\\\\x%02x", *text++);
		} else if (length == 1) {
			if (*text < 0x20 || *text == 0x7f)
				fprintf(out, "\\u%04x", *text);
			else if (*text == '"')
				fputs("\\\"", out);
			else
				putc_unlocked(*text, out);
			text++;
		} else {
			if (*text == 0xc2 && text[1] < 0xa0)
				fprintf(out, "\\u%04x", text[1]);
			else
				fwrite(text, 1, length, out);
			text += length;
		}
	}
	putc_unlocked('"', out);
}

void tool_json_text(FILE *out, const char *text)
{
	put_string(out, text, strlen(text));
}

static void put_bytes(FILE *out, const void *bytes, uint64_t size)
{
	const unsigned char *byte = bytes;

	putc_unlocked('"', out);
	for (; size; size--, byte++) {
		putc_unlocked("0123456789abcdef"[*byte >> 4], out);
		putc_unlocked("0123456789abcdef"[*byte & 15], out);
	}
	putc_unlocked('"', out);
}

static void put_number(FILE *out, bool is_hex, uint64_t number)
{
	char digits[24];
	size_t n = sizeof(digits);
	unsigned base = is_hex ? 16 : 10;

	digits[--n] = '"';
	do {
		digits[--n] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	if (is_hex) {
		digits[--n] = 'x';
		digits[--n] = '0';
		digits[--n] = '"';
	}
	fwrite(digits + n, 1, sizeof(digits) - n - !is_hex, out);
}

static void put_signed(FILE *out, int64_t number)
{
	if (number < 0)
		putc_unlocked('-', out);
	put_number(out, false, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_key(FILE *out, bool *first, const char *key)
{
	fputs(*first ? "\"" : ",\"", out);
	fputs(key, out);
	fputs("\":", out);
	*first = false;
}

static void put_between(FILE *out, bool *first)
{
	if (!*first)
		putc_unlocked(',', out);
	*first = false;
}

/* ---- numbers by their names ---- */

static const char *without_prefix(size_t name, enum show group)
{
	size_t size = strlen(groups[group].prefix);

	return names[name].name + (strncmp(names[name].name, groups[group].prefix, size) ? 0 : size);
}

static void put_bit(FILE *out, bool *first, const char *name)
{
	fputs(*first ? "\"" : "|", out);
	fputs(name, out);
	*first = false;
}

/* Bits without a name; 0x0 when no bit is set. */
static void put_bits_left(FILE *out, bool first, uint64_t bits)
{
	if (bits || first)
		fprintf(out, "%s0x%" PRIx64, first ? "\"" : "|", bits);
	putc_unlocked('"', out);
}

static void put_set(FILE *out, enum show group, uint64_t bits)
{
	bool first = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t bit = (uint64_t)names[i].value;

		if (names[i].group != group || !(bits & bit) || (bit & (bit - 1)))
			continue;
		put_bit(out, &first, without_prefix(i, group));
		bits &= ~bit;
	}
	put_bits_left(out, first, bits);
}

static void put_sample_type(FILE *out, uint64_t bits)
{
	bool first = true;

#define PERFRING_FIELD(NAME, bit, ...) \
	if (bits & PERFRING_SAMPLE_##NAME) \
		put_bit(out, &first, #NAME);
#include <perfring/fields.def>
	put_bits_left(out, first, bits & ~(uint64_t)PERFRING_SAMPLE_KNOWN);
}

/* Writes the bits that have names, and parts of more than one bit with their number. */
static void put_attr_flags(FILE *out, uint64_t bits)
{
	bool first = true;
	uint64_t part, mask;

#define PERFRING_ATTR_FLAG(flag, bit, width) \
	mask = ((UINT64_C(1) << (width)) - 1) << (bit); \
	part = bits & mask; \
	bits &= ~mask; \
	if (part) \
		put_bit(out, &first, #flag); \
	if (part && (width) > 1) \
		fprintf(out, "=%" PRIu64, part >> (bit));
#include <perfring/values.def>
	put_bits_left(out, first, bits);
}

/* The name, or NULL. */
static const char *name_of(enum show group, uint64_t number)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].group == group && (uint64_t)names[i].value == number)
			return without_prefix(i, group);
	return NULL;
}

/* A part of a word, always a string; groups stand in front of the other ways to show a number. */
static void put_part(FILE *out, enum show show, uint64_t part)
{
	const char *name = NULL;

	if (show < SHOW_dec && groups[show].is_set) {
		put_set(out, show, part);
		return;
	}
	if (show < SHOW_dec)
		name = name_of(show, part);
	if (name)
		fprintf(out, "\"%s\"", name);
	else
		fprintf(out, "\"%" PRIu64 "\"", part);
}

/* The word, and each part that says something. */
static void put_data_src(FILE *out, uint64_t word)
{
	uint64_t part;

	fprintf(out, "{\"word\":\"0x%" PRIx64 "\"", word);
#define PERFRING_DATA_SRC(key, BIT, width, show) \
	part = word >> PERFRING_##BIT & ((UINT64_C(1) << (width)) - 1); \
	if (part) { \
		fputs(",\"" #key "\":", out); \
		put_part(out, SHOW_##show, part); \
	}
#include <perfring/values.def>
	putc_unlocked('}', out);
}

/* Writes misc, whose bits have different meanings for each type. */
static void put_misc(FILE *out, uint32_t type, uint16_t misc)
{
	uint16_t cpumode = misc & PERFRING_RECORD_MISC_CPUMODE_MASK, left = misc & (uint16_t)~cpumode;
	bool first = true;

	if (cpumode && name_of(SHOW_cpumode, cpumode)) {
		put_bit(out, &first, name_of(SHOW_cpumode, cpumode));
	} else if (cpumode) {
		fprintf(out, "\"%u", cpumode);
		first = false;
	}
#define PERFRING_MISC(of, NAME) \
	if (((of) == 0 || (of) == type) && (left & PERFRING_RECORD_MISC_##NAME)) { \
		put_bit(out, &first, #NAME); \
		left &= (uint16_t)~PERFRING_RECORD_MISC_##NAME; \
	}
#include <perfring/values.def>
	put_bits_left(out, first, left);
}

static void put_value(FILE *out, enum show show, uint64_t number)
{
	const char *name;

	switch (show) {
	case SHOW_dec:
	case SHOW_signed:
	case SHOW_time:
	case SHOW_both:
	case SHOW_float:
		put_number(out, false, number);
		return;
	case SHOW_hex:
	case SHOW_str:
		put_number(out, true, number);
		return;
	case SHOW_data_src:
		put_data_src(out, number);
		return;
	case SHOW_sample:
		put_sample_type(out, number);
		return;
	case SHOW_flag:
		put_attr_flags(out, number);
		return;
	default:
		break;
	}
	if (groups[show].is_set) {
		put_set(out, show, number);
		return;
	}
	name = name_of(show, number);
	if (name)
		tool_json_text(out, name);
	else
		put_number(out, false, number);
}

/* ---- kinds: one function each, of fields and of members ---- */

static void put_u64(FILE *out, enum show show, const uint64_t *number)
{
	put_value(out, show, *number);
}

static void put_u32(FILE *out, enum show show, const uint32_t *number)
{
	if (show == SHOW_signed)
		put_signed(out, (int32_t)*number);
	else
		put_value(out, show, *number);
}

static void put_u16(FILE *out, enum show show, const uint16_t *number)
{
	put_value(out, show, *number);
}

/* The bits of a double; one that JSON has no word for is a string. */
static void put_float(FILE *out, const void *bits)
{
	double number;

	memcpy(&number, bits, sizeof(number));
	if (number - number == 0)
		fprintf(out, "%.17g", number);
	else
		fprintf(out, "\"%g\"", number);
}

static void put_words(FILE *out, enum show show, const struct perfring_list *list)
{
	bool first = true;

	putc_unlocked('[', out);
	for (uint64_t i = 0; i < list->nr; i++) {
		put_between(out, &first);
		put_value(out, show, list->words[i]);
	}
	putc_unlocked(']', out);
}

#define put_list put_words

static void put_read(FILE *out, enum show show, const struct perfring_read *read)
{
	bool first = true;

	(void)show;
	putc_unlocked('{', out);
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED) {
		put_key(out, &first, "enabled");
		put_number(out, false, read->enabled);
	}
	if (read->read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING) {
		put_key(out, &first, "running");
		put_number(out, false, read->running);
	}
	put_key(out, &first, "values");
	putc_unlocked('[', out);
	first = true;
	for (uint64_t i = 0; i < read->nr; i++) {
		put_between(out, &first);
		fprintf(out, "{\"value\":%" PRIu64, perfring_read_value(read, i));
		if (read->read_format & PERFRING_FORMAT_ID)
			fprintf(out, ",\"id\":%" PRIu64, perfring_read_id(read, i));
		if (read->read_format & PERFRING_FORMAT_LOST)
			fprintf(out, ",\"lost\":%" PRIu64, perfring_read_lost(read, i));
		putc_unlocked('}', out);
	}
	fputs("]}", out);
}

static void put_rest(FILE *out, enum show show, const struct perfring_bytes *bytes)
{
	(void)show;
	put_bytes(out, bytes->data, bytes->size);
}

#define put_blob put_rest

static void put_string_member(FILE *out, enum show show, const struct perfring_string *string)
{
	(void)show;
	put_string(out, string->data, string->size);
}

static void put_tag(FILE *out, enum show show, const struct perfring_tag *tag)
{
	(void)show;
	put_bytes(out, tag->bytes, sizeof(tag->bytes));
}

static void put_id128(FILE *out, enum show show, const struct perfring_file_id *file)
{
	(void)show;
	if (file->has_build_id) {
		fputs("{\"build_id\":", out);
		put_bytes(out, file->build_id, file->build_id_size);
		putc_unlocked('}', out);
	} else {
		fprintf(out,
			"{\"maj\":%" PRIu32 ",\"min\":%" PRIu32 ",\"ino\":%" PRIu64 ",\"ino_generation\":%" PRIu64 "}",
			file->maj, file->min, file->ino, file->ino_generation);
	}
}

static void put_links(FILE *out, enum show show, const struct perfring_links *links)
{
	bool first = true;

	putc_unlocked('[', out);
	for (uint64_t i = 0; i < links->nr; i++) {
		put_between(out, &first);
		putc_unlocked('[', out);
		put_value(out, show, links->words[i * 2]);
		fprintf(out, ",%" PRIu64 "]", links->words[i * 2 + 1]);
	}
	putc_unlocked(']', out);
}

static void put_poke(FILE *out, enum show show, const struct perfring_poke *poke)
{
	(void)show;
	fputs("{\"old\":", out);
	put_bytes(out, poke->old_bytes, poke->old_len);
	fputs(",\"new\":", out);
	put_bytes(out, poke->new_bytes, poke->new_len);
	putc_unlocked('}', out);
}

/* Writes each member of an attr up to its size. */
static void put_attr(FILE *out, enum show show, const struct perfring_bytes *attr)
{
	bool first = true;
	uint64_t number;

	(void)show;
	putc_unlocked('{', out);
#define PERFRING_ATTR(member, offset, bytes, show) \
	if ((offset) + (bytes) <= attr->size) { \
		number = tool_number((const unsigned char *)attr->data + (offset), (bytes)); \
		put_key(out, &first, #member); \
		put_value(out, SHOW_##show, number); \
	}
#include <perfring/values.def>
	putc_unlocked('}', out);
}

static void put_build_id(FILE *out, enum show show, const struct perfring_build_id *id)
{
	(void)show;
	put_bytes(out, id->bytes, id->size);
}

static void put_index(FILE *out, enum show show, const struct perfring_index *index)
{
	static const char *const keys[] = {"id", "idx", "cpu", "tid", "machine_pid", "vcpu"};
	bool first = true, inner;

	(void)show;
	putc_unlocked('[', out);
	for (uint64_t i = 0; i < index->nr; i++) {
		put_between(out, &first);
		putc_unlocked('{', out);
		inner = true;
		for (size_t k = 0; k < (index->machines ? 6 : 4); k++) {
			uint64_t word = k < 4 ? index->entries[i * 4 + k] : index->machines[i * 2 + k - 4];

			put_key(out, &inner, keys[k]);
			if (k < 2)
				put_number(out, false, word);
			else
				put_signed(out, (int64_t)word);
		}
		putc_unlocked('}', out);
	}
	putc_unlocked(']', out);
}

static void put_cpu_map(FILE *out, enum show show, const struct perfring_cpu_map *map)
{
	const unsigned char *bytes = map->data;

	(void)show;
	fputs("{\"type\":", out);
	put_value(out, SHOW_cpu_map, map->type);
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		fputs(",\"cpus\":[", out);
		for (uint32_t i = 0; i < map->nr; i++) {
			uint64_t cpu = tool_number(bytes + i * 2, 2);

			/* only the last number stands for any CPU */
			fputs(i ? "," : "", out);
			put_signed(out, cpu == UINT16_MAX ? -1 : (int64_t)cpu);
		}
		putc_unlocked(']', out);
		break;
	case PERFRING_CPU_MAP_MASK:
		fputs(",\"mask\":[", out);
		for (uint32_t i = 0; i < map->nr; i++) {
			fputs(i ? "," : "", out);
			put_number(out, true, tool_number(bytes + i * map->long_size, map->long_size));
		}
		putc_unlocked(']', out);
		break;
	case PERFRING_CPU_MAP_RANGE_CPUS:
		fprintf(out, ",\"any_cpu\":%u,\"first\":%u,\"last\":%u", map->any_cpu, map->first, map->last);
		break;
	default:
		fputs(",\"bytes\":", out);
		put_bytes(out, bytes, map->size);
		break;
	}
	putc_unlocked('}', out);
}

/* A kind without a function of its own: its parts by their names; null: it is not there. */
static void put_laid(FILE *out, struct perfring_layout_walk *walk)
{
	struct perfring_layout_member part;
	bool first = true, inner = true, is_open = false, is_list;
	int one = perfring_layout_next(walk, &part);

	if (one != 1) {
		fputs("null", out);
		return;
	}
	is_list = part.use == PERFRING_LAYOUT_COUNT;
	putc_unlocked(is_list ? '[' : '{', out);
	for (; one == 1; one = perfring_layout_next(walk, &part)) {
		if (part.kind == PERFRING_LAYOUT_PADDING || part.use == PERFRING_LAYOUT_COUNT ||
		    part.use == PERFRING_LAYOUT_LENGTH)
			continue;
		if (part.begins) {
			fputs(is_open ? "}" : "", out);
			put_between(out, &first);
			putc_unlocked('{', out);
			is_open = inner = true;
		}
		put_key(out, &inner, part.name);
		if (part.kind == PERFRING_LAYOUT_STRING)
			put_string(out, part.bytes, part.size);
		else if (part.kind != PERFRING_LAYOUT_NUMBER)
			put_bytes(out, part.bytes, part.size);
		else if (part.is_signed)
			put_signed(out, part.size == 4 ? (int32_t)part.number : (int64_t)part.number);
		else
			put_number(out, part.is_hex, part.number);
	}
	fputs(is_open ? "}" : "", out);
	putc_unlocked(is_list ? ']' : '}', out);
}

static void put_weight(FILE *out, enum show show, const struct perfring_weight *weight)
{
	(void)show;
	fprintf(out, "{\"var1\":%" PRIu32 ",\"var2\":%u,\"var3\":%u}", weight->var1, weight->var2, weight->var3);
}

static void put_raw(FILE *out, enum show show, const struct perfring_raw *raw)
{
	(void)show;
	put_bytes(out, raw->data, raw->size);
}

static void put_aux(FILE *out, enum show show, const struct perfring_aux *aux)
{
	(void)show;
	put_bytes(out, aux->data, aux->size);
}

static void put_stack(FILE *out, enum show show, const struct perfring_stack *stack)
{
	(void)show;
	fprintf(out, "{\"size\":%" PRIu64 ",\"dyn_size\":%" PRIu64 ",\"bytes\":", stack->size, stack->dyn_size);
	put_bytes(out, stack->data, stack->size);
	putc_unlocked('}', out);
}

/* The parts that say something.  Big-endian compilers lay them out from the other end of the word. */
static void put_branch_flags(FILE *out, uint64_t flags)
{
	bool first = true;
	uint64_t part;

	putc_unlocked('{', out);
#define PERFRING_BRANCH_FLAG(flag, bit, width, show) \
	part = flags >> (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (bit) : 64 - (bit) - (width)) & \
	       ((UINT64_C(1) << (width)) - 1); \
	if (part) { \
		put_key(out, &first, #flag); \
		put_value(out, SHOW_##show, part); \
	}
#include <perfring/values.def>
	putc_unlocked('}', out);
}

static void put_branch(FILE *out, enum show show, const struct perfring_branch_stack *stack)
{
	bool first = true;

	(void)show;
	putc_unlocked('{', out);
	if (stack->has_hw_idx)
		fprintf(out, "\"hw_idx\":%" PRId64 ",", (int64_t)stack->hw_idx);
	fputs("\"entries\":[", out);
	for (uint64_t i = 0; i < stack->nr; i++) {
		put_between(out, &first);
		fprintf(out, "{\"from\":\"0x%" PRIx64 "\",\"to\":\"0x%" PRIx64 "\",\"flags\":", stack->entries[i * 3],
			stack->entries[i * 3 + 1]);
		put_branch_flags(out, stack->entries[i * 3 + 2]);
		if (stack->counters)
			fprintf(out, ",\"counters\":\"0x%" PRIx64 "\"", stack->counters[i]);
		putc_unlocked('}', out);
	}
	fputs("]}", out);
}

static void put_regs(FILE *out, enum show show, const struct perfring_regs *regs)
{
	uint64_t mask = regs->mask;

	(void)show;
	fprintf(out, "{\"abi\":%" PRIu64, regs->abi);
	for (uint32_t i = 0; i < regs->nr && mask; i++, mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);
		const char *name = perfring_register_name(regs->arch, bit);

		if (name)
			fprintf(out, ",\"%s\":\"0x%" PRIx64 "\"", name, regs->values[i]);
		else
			fprintf(out, ",\"%" PRIu32 "\":\"0x%" PRIx64 "\"", bit, regs->values[i]);
	}
	putc_unlocked('}', out);
}

/* ---- what a tracepoint's payload holds ---- */

static void put_field(FILE *out, const struct tool_tracepoints *tracepoints, const struct tool_tracepoint_field *field,
		      const struct tool_tracepoint_value *value)
{
	int64_t length;
	bool first = true;

	if (!value->bytes) {
		fputs("null", out);
		return;
	}
	if (field->kind == TOOL_TRACEPOINT_TEXT) {
		length = tool_tracepoint_text_size(value);
		if (length < 0)
			put_bytes(out, value->bytes, value->size);
		else
			put_string(out, value->bytes, (uint64_t)length);
		return;
	}
	if (field->is_list)
		putc_unlocked('[', out);
	for (uint32_t i = 0; i < value->count; i++) {
		uint64_t number = tool_tracepoint_number(tracepoints, field, value, i);

		put_between(out, &first);
		if (field->kind == TOOL_TRACEPOINT_SIGNED)
			put_signed(out, (int64_t)number);
		else
			put_number(out, field->kind == TOOL_TRACEPOINT_HEX, number);
	}
	if (field->is_list)
		putc_unlocked(']', out);
}

static void put_trace(FILE *out, struct tool_tracepoints *tracepoints, const struct perfring_item *item,
		      const struct perfring_raw *raw, bool *first_field)
{
	const struct tool_tracepoint *tracepoint = tool_tracepoints_of(tracepoints, item->format->index);
	struct tool_tracepoint_value value;
	bool first = true;

	if (!tracepoint)
		return;
	put_key(out, first_field, "trace");
	putc_unlocked('{', out);
	for (uint32_t i = 0; i < tracepoint->nr; i++) {
		const struct tool_tracepoint_field *field = &tracepoint->fields[i];

		put_between(out, &first);
		tool_json_text(out, field->name);
		putc_unlocked(':', out);
		tool_tracepoint_value(tracepoints, field, raw, &value);
		put_field(out, tracepoints, field, &value);
	}
	putc_unlocked('}', out);
}

/* ---- records ---- */

/* A pair has two names: the second that of its member. */
#define FIELD_numbers(put, script, a, b, show) \
	put_key(out, &first, #a); \
	put_signed(out, (int32_t)of->a); \
	if (show == SHOW_both) { \
		put_key(out, &first, #b); \
		put_signed(out, (int32_t)of->b); \
	}
#define FIELD_own(put, script, a, b, show) \
	put_key(out, &first, script); \
	put(out, show, &of->a);
#define FIELD_number FIELD_own

static void put_sample(FILE *out, struct tool_tracepoints *tracepoints, const struct perfring_item *item,
		       const struct perfring_sample *of)
{
	bool first = true;

	fputs(",\"fields\":{", out);
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) \
	if (of->present & PERFRING_SAMPLE_##NAME) { \
		PERFRING_FIELD_BY(FIELD_, PERFRING_FIELD_KIND_##kind)(put_##kind, script, a, b, SHOW_##show) \
	}
#include <perfring/fields.def>
	if (of->present & PERFRING_SAMPLE_RAW)
		put_trace(out, tracepoints, item, &of->raw, &first);
	putc_unlocked('}', out);
}

static void put_trailer(FILE *out, const struct perfring_trailer *of)
{
	bool first = true;

	if (!of->present)
		return;
	fputs(",\"trailer\":{", out);
#define TRAILER_no(NAME, kind, a, b, show, script)
#define TRAILER_yes(NAME, kind, a, b, show, script) \
	if (of->present & PERFRING_SAMPLE_##NAME) { \
		PERFRING_FIELD_BY(FIELD_, PERFRING_FIELD_KIND_##kind)(put_##kind, script, a, b, show) \
	}
#define TRAILER_last TRAILER_yes
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, show, script) \
	TRAILER_##trailer(NAME, kind, a, b, SHOW_##show, script)
#include <perfring/fields.def>
	putc_unlocked('}', out);
}

static void put_member(FILE *out, const struct perfring_record *decoded, const struct perf_event_header *record,
		       enum perfring_kind kind, enum show show, const void *member)
{
	struct perfring_layout_walk walk;

	switch (kind) {
#define MEMBER(kind, put) \
	case PERFRING_KIND_##kind: \
		put(out, show, member); \
		break;
		MEMBER(u16, put_u16)
		MEMBER(u32, put_u32)
		MEMBER(u64, put_u64)
		MEMBER(read, put_read)
		MEMBER(list, put_list)
		MEMBER(id128, put_id128)
		MEMBER(tag, put_tag)
		MEMBER(string, put_string_member)
		MEMBER(text64, put_string_member)
		MEMBER(text512, put_string_member)
		MEMBER(links, put_links)
		MEMBER(poke, put_poke)
		MEMBER(rest, put_rest)
		MEMBER(blob, put_blob)
		MEMBER(words, put_words)
		MEMBER(attr, put_attr)
		MEMBER(build_id, put_build_id)
		MEMBER(index, put_index)
		MEMBER(cpu_map, put_cpu_map)
#undef MEMBER
	default:
		perfring_record_walk(&walk, decoded, record, member);
		put_laid(out, &walk);
		break;
	}
}

static void put_members(FILE *out, const struct perfring_record *record, const struct perf_event_header *bytes)
{
	bool first = true;

	fputs(",\"members\":{", out);
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case (type): { \
		const struct perfring_record_##noun *is = &record->is.noun; \
		(void)is;
#define PERFRING_MEMBER(kind, member, show) \
	put_key(out, &first, #member); \
	if (SHOW_##show == SHOW_float) \
		put_float(out, &is->member); \
	else \
		put_member(out, record, bytes, PERFRING_KIND_##kind, SHOW_##show, &is->member);
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
	if (record->trailing_size) {
		put_key(out, &first, "trailing");
		put_bytes(out, record->trailing, record->trailing_size);
	}
	putc_unlocked('}', out);
	put_trailer(out, &record->trailer);
}

/* The beginning of each line.  format: of the record's event, or of the one of its group; NULL: of none. */
static void put_head(FILE *out, const struct tool_input *input, const struct perfring_item *item,
		     const struct perfring_format *format)
{
	const char *kind = perfring_record_name(item->record->type);
	const char *event = format ? perfring_file_event_name(input->data, format->index) : NULL;
	uint32_t stream = perfring_file_part(input->data);

	fputs("{\"kind\":", out);
	if (kind)
		tool_json_text(out, kind);
	else
		fprintf(out, "\"RECORD_%" PRIu32 "\"", item->record->type);
	if (stream)
		fprintf(out, ",\"stream\":%" PRIu32, stream - 1);
	fprintf(out, ",\"at\":%" PRId64 ",\"size\":%u,\"misc\":", perfring_file_position(input->data),
		item->record->size);
	put_misc(out, item->record->type, item->record->misc);
	if (item->time)
		fprintf(out, ",\"time\":%" PRIu64, item->time);
	if (perfring_file_was_late(input->data))
		fputs(",\"late\":true", out);
	if (event) {
		fputs(",\"event\":", out);
		tool_json_text(out, event);
	}
}

bool tool_json_record(FILE *out, struct tool_input *input, struct tool_tracepoints *tracepoints,
		      const struct perfring_item *item, struct perfring_fault *fault)
{
	bool is_sample = item->record->type == PERFRING_RECORD_SAMPLE, more;
	const struct perfring_format *format;
	struct perfring_record record;
	struct perfring_sample sample;
	int error;

	*fault = (struct perfring_fault){0, NULL};
	if (!is_sample)
		error = perfring_record_decode(item->format, item->record, &record, fault);
	else
		error = item->format ? perfring_sample_decode(item->format, item->record, &sample, fault) : -EINVAL;
	if (is_sample && !error) {
		for (more = tool_input_event(input, item->format, &sample, &format); more;
		     more = tool_input_more(input, &format)) {
			put_head(out, input, item, format);
			put_sample(out, tracepoints, item, &sample);
			fputs("}\n", out);
		}
		return true;
	}
	put_head(out, input, item, item->format);
	if (error)
		fprintf(out, ",\"fault\":\"%s\",\"fault_at\":%" PRId64,
			fault->what ? fault->what : "an id that no event has", fault->at);
	else
		put_members(out, &record, item->record);
	fputs("}\n", out);
	return !error;
}
