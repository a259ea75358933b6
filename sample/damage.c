/* damage.c - records damaged in named ways, and changed at random for fuzzers. */
#include <perfring/check.h>
#include <perfring/generate.h>

#include "attr.h"
#include "layout.h"
#include "members.h"
#include "shapes.h"

static const struct {
	const char *name;
	const char *what;
} damages[] = {
#define PERFRING_DAMAGE(NAME, what) {#NAME, what},
#include <perfring/values.def>
};

const char *perfring_damage_name(uint32_t damage)
{
	return damage < PERFRING_DAMAGES ? damages[damage].name : NULL;
}

const char *perfring_damage_what(uint32_t damage)
{
	return damage < PERFRING_DAMAGES ? damages[damage].what : NULL;
}

/* ---- the place to damage: one of all that the record has, each as likely as another ---- */

struct wound {
	struct perfring_generator *generator;
	enum perfring_damage damage;
	unsigned char *record;
	uint32_t size; /* of the record, before and after */
	uint32_t new_size;
	uint64_t found;
	uint32_t at;
	uint32_t width; /* of the number that is written, at most 8 */
	uint64_t value;
	uint32_t fill; /* bytes behind it that get the same value */
};

static uint64_t draw(struct wound *wound, uint64_t below)
{
	return perfring_generator_draw(wound->generator, below);
}

/* Whether this place is the one so far. */
static bool takes(struct wound *wound, enum perfring_damage damage, uint32_t at, uint32_t width)
{
	if (damage != wound->damage || draw(wound, ++wound->found))
		return false;
	wound->at = at;
	wound->width = width;
	wound->fill = 0;
	return true;
}

static uint32_t at_of(const struct wound *wound, const void *bytes)
{
	return (uint32_t)((const unsigned char *)bytes - wound->record);
}

static uint64_t highest(uint32_t width)
{
	return UINT64_MAX >> (64 - 8 * width);
}

/* A bit too much, or very much. */
static uint64_t beyond(struct wound *wound, uint64_t most, uint32_t width)
{
	uint64_t highest_value = highest(width), value;

	switch (draw(wound, 3)) {
	case 0:
		value = most + 1 + draw(wound, 8);
		break;
	case 1:
		value = highest_value - draw(wound, 8);
		break;
	default:
		value = draw(wound, 0) & highest_value;
		break;
	}
	return value > most && value <= highest_value ? value : highest_value;
}

/* A length in bytes of what stands behind it. */
static void note_length(struct wound *wound, uint32_t at, uint32_t width)
{
	if (takes(wound, PERFRING_DAMAGE_LENGTH, at, width))
		wound->value = beyond(wound, wound->size - at - width, width);
}

/* A count of entries of `entry` bytes each.  When it is multiplied in 64 or 32 bits, too little comes out. */
static void note_count(struct wound *wound, uint32_t at, uint32_t width, uint32_t entry)
{
	if (takes(wound, PERFRING_DAMAGE_NR, at, width))
		wound->value = beyond(wound, (wound->size - at - width) / entry, width);
	if (width == 8 && takes(wound, PERFRING_DAMAGE_NR_OVERFLOW, at, width))
		wound->value = (draw(wound, 2) ? UINT64_MAX : UINT32_MAX) / entry + 1 + draw(wound, 3);
}

static void note_padding(struct wound *wound, uint32_t from, uint32_t until)
{
	if (from < until && takes(wound, PERFRING_DAMAGE_PADDING, from, 1)) {
		wound->at = from + (uint32_t)draw(wound, until - from);
		wound->value = 1 + draw(wound, 255);
	}
}

static void note_marker(struct wound *wound, const struct perfring_list *list)
{
	uint64_t i;

	if (!list->nr || !takes(wound, PERFRING_DAMAGE_MARKER, 0, 8))
		return;
	i = draw(wound, list->nr);
	wound->at = at_of(wound, list->words + i);
	wound->value = draw(wound, 2) ? (uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED
				      : (uint64_t)(int64_t)PERFRING_CONTEXT_MAX + draw(wound, 4095);
}

/* ---- fields and members: by their layouts ---- */

/* A number that is more than it may be. */
static enum perfring_damage too_much_of(enum perfring_kind kind)
{
	return kind == PERFRING_KIND_regs    ? PERFRING_DAMAGE_ABI
	       : kind == PERFRING_KIND_stack ? PERFRING_DAMAGE_DYN_SIZE
					     : PERFRING_DAMAGE_LENGTH;
}

static void note_part(struct wound *wound, enum perfring_kind kind, const struct perfring_layout_member *part)
{
	uint32_t at = at_of(wound, part->bytes), size = (uint32_t)part->size, end = at + (uint32_t)part->space;

	switch (part->kind) {
	case PERFRING_LAYOUT_NUMBER:
		/* At least as many as there are bytes, where entries differ. */
		if (part->use == PERFRING_LAYOUT_COUNT)
			note_count(wound, at, size, part->entry ? part->entry : 1);
		if (part->use == PERFRING_LAYOUT_LENGTH)
			note_length(wound, at, size);
		if (part->most < highest(size) && takes(wound, too_much_of(kind), at, size))
			wound->value = beyond(wound, part->most, size);
		break;
	case PERFRING_LAYOUT_STRING:
		if (part->depth)
			break;
		if (size < part->space && takes(wound, PERFRING_DAMAGE_STRING, at + size, 1)) {
			wound->value = 'a' + draw(wound, 26);
			wound->fill = end - at - size - 1;
		}
		note_padding(wound, at + size + 1, end);
		break;
	case PERFRING_LAYOUT_ATTR:
		note_length(wound, at + PERFRING_ATTR_AT_size, 4);
		break;
	case PERFRING_LAYOUT_PADDING:
		note_padding(wound, at, end);
		break;
	default:
		break;
	}
}

/* Returns where the next one begins. */
static uint32_t note_parts(struct wound *wound, enum perfring_kind kind, struct perfring_layout_walk *walk,
			   const void *member)
{
	struct perfring_layout_member part;

	while (perfring_layout_next(walk, &part) == 1)
		note_part(wound, kind, &part);
	if (kind == PERFRING_KIND_list)
		note_marker(wound, member);
	return (uint32_t)walk->at;
}

static void note_sample(struct wound *wound, const struct perfring_format *format)
{
	uint32_t at = sizeof(struct perf_event_header);
	struct perfring_layout_walk walk;
	struct perfring_sample sample;
	unsigned shape;

	if (perfring_sample_decode(format, (const void *)wound->record, &sample, NULL))
		return;
	shape = shape_of(format, &sample);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (sample.present & PERFRING_SAMPLE_##NAME) { \
		perfring_layout_open_field(&walk, PERFRING_KIND_##kind, \
					   PERFRING_FIELD_KIND_##kind(PERFRING_BY_HOW, sample, a, b), wound->record, \
					   at, wound->size); \
		at = note_parts(wound, PERFRING_KIND_##kind, &walk, &sample.a); \
	}
#include <perfring/fields.def>
}

static void note_record(struct wound *wound, const struct perfring_format *format)
{
	uint32_t at = sizeof(struct perf_event_header), end;
	struct perfring_layout_walk walk;
	const struct member_row *row;
	struct perfring_record record;
	enum perfring_kind kind;

	if (perfring_record_decode(format, (const void *)wound->record, &record, NULL))
		return;
	end = at_of(wound, record.trailing) + record.trailing_size;
	for (row = perfring_members_of(record.type); row->kind != PERFRING_KINDS; row++)
		if (perfring_members_has(&record, row)) {
			kind = (enum perfring_kind)row->kind;
			/* Without a format nothing of a read block was decoded. */
			if (kind == PERFRING_KIND_read)
				perfring_layout_open_field(&walk, kind, format ? format->read_format : 0, wound->record,
							   at, format ? end : at);
			else
				perfring_layout_open_member(&walk, kind, record.misc, wound->record, at, end);
			at = note_parts(wound, kind, &walk, perfring_member_of(&record, row));
		}
}

/* ---- what every record has ---- */

static void note_size(struct wound *wound, uint64_t size)
{
	wound->value = size;
	wound->at = offsetof(struct perf_event_header, size);
	wound->width = 2;
}

static void note_odd_size(struct wound *wound, size_t room)
{
	uint32_t part = 1 + (uint32_t)draw(wound, 7);
	bool grows = wound->size < 16 || (draw(wound, 2) && wound->size + part <= room);

	if (grows && wound->size + part > room)
		return;
	if (!takes(wound, PERFRING_DAMAGE_SIZE_ODD, 0, 0))
		return;
	wound->new_size = grows ? wound->size + part : wound->size - part;
	note_size(wound, wound->new_size);
}

static uint32_t other_type(struct wound *wound, uint32_t type)
{
	uint32_t other = type;
	uint64_t nr = 0;

#define PERFRING_RECORD(NAME, number, noun) \
	if (type != PERFRING_RECORD_##NAME && !draw(wound, ++nr)) \
		other = PERFRING_RECORD_##NAME;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, number, noun)
#include <perfring/records.def>
	return other;
}

/* Where the id of its event stands; 0: it has none. */
static uint32_t id_at(const struct wound *wound, const struct perfring_format *format, uint32_t type)
{
	uint64_t field, back;

	if (!format)
		return 0;
	field = format->sample_type & PERFRING_SAMPLE_IDENTIFIER ? PERFRING_SAMPLE_IDENTIFIER : PERFRING_SAMPLE_ID;
	if (type == PERFRING_RECORD_SAMPLE)
		return perfring_format_field_offset(format->sample_type, field);
	if (type >= PERFRING_RECORD_OF_PERF || !perfring_format_has_trailer(format))
		return 0;
	back = perfring_format_field_back(format->sample_type, field);
	return back ? wound->size - (uint32_t)back : 0;
}

static void note_header(struct wound *wound, const struct perfring_format *format, size_t room)
{
	const perfring_header *header = (const void *)wound->record;
	uint32_t size = wound->size, step = header->type < PERFRING_RECORD_OF_PERF ? 8 : 1;

	if (takes(wound, PERFRING_DAMAGE_SIZE_SMALL, 0, 0))
		note_size(wound, draw(wound, sizeof(*header)));
	if (size < UINT16_MAX && takes(wound, PERFRING_DAMAGE_SIZE_LARGE, 0, 0))
		note_size(wound,
			  size + 1 + draw(wound, draw(wound, 2) && size < UINT16_MAX - 16 ? 16 : UINT16_MAX - size));
	if (wound->damage == PERFRING_DAMAGE_SIZE_ODD && header->type < PERFRING_RECORD_OF_PERF)
		note_odd_size(wound, room);
	if (size > sizeof(*header) && takes(wound, PERFRING_DAMAGE_TRUNCATED, 0, 0)) {
		wound->new_size = size - step * (uint32_t)(1 + draw(wound, (size - sizeof(*header)) / step));
		note_size(wound, wound->new_size);
	}
	if (takes(wound, PERFRING_DAMAGE_MISC, offsetof(struct perf_event_header, misc), 2))
		wound->value = (header->misc & ~(uint64_t)PERFRING_RECORD_MISC_CPUMODE_MASK) | (6 + draw(wound, 2));
	if (takes(wound, PERFRING_DAMAGE_TYPE, 0, 4))
		wound->value = other_type(wound, header->type);
	if (size > sizeof(*header) && takes(wound, PERFRING_DAMAGE_BYTES, 0, 1)) {
		wound->at = (uint32_t)(sizeof(*header) + draw(wound, size - sizeof(*header)));
		wound->width = (uint32_t)(1 + draw(wound, size - wound->at < 8 ? size - wound->at : 8));
		wound->value = draw(wound, 0);
	}
	if (id_at(wound, format, header->type) &&
	    takes(wound, PERFRING_DAMAGE_ID, id_at(wound, format, header->type), 8))
		wound->value = draw(wound, 0);
}

/* ---- damaging ---- */

enum {
	TRIES = 8,
};

static bool is_zero(const unsigned char *bytes, uint32_t size)
{
	while (size && !bytes[size - 1])
		size--;
	return !size;
}

/* These may leave a record as good as it was. */
static bool may_pass(enum perfring_damage damage)
{
	return damage == PERFRING_DAMAGE_ID || damage == PERFRING_DAMAGE_TYPE || damage == PERFRING_DAMAGE_BYTES;
}

/* One try.  What check would let pass is no damage, and undone: what fits by chance after all, such as a tail cut off
 * where another record could end. */
static bool hurts(struct wound *wound, const struct perfring_format *format, size_t room)
{
	const struct perf_event_header *record = (const void *)wound->record;
	struct perfring_finding finding;
	uint32_t type = ((const perfring_header *)record)->type;
	unsigned char *at;
	uint64_t was;

	wound->found = 0;
	wound->new_size = wound->size;
	note_header(wound, format, room);
	if (type != PERFRING_RECORD_SAMPLE)
		note_record(wound, format);
	else if (format)
		note_sample(wound, format);
	if (!wound->found)
		return false;
	at = wound->record + wound->at;
	was = perfring_number_get(at, wound->width);
	if (was == (wound->value & highest(wound->width)) || !is_zero(at + wound->width, wound->fill))
		return false;
	if (wound->new_size > wound->size)
		memset(wound->record + wound->size, 0, wound->new_size - wound->size);
	perfring_number_put(at, wound->width, wound->value);
	memset(at + wound->width, (int)wound->value, wound->fill);
	if (may_pass(wound->damage) || perfring_record_examine(format, record, wound->new_size, &finding))
		return true;
	perfring_number_put(at, wound->width, was);
	memset(at + wound->width, 0, wound->fill);
	return false;
}

int64_t perfring_generate_damage(struct perfring_generator *generator, const struct perfring_format *format,
				 uint32_t damage, void *record, size_t size)
{
	const perfring_header *header = record;
	uint8_t order[PERFRING_DAMAGES];
	struct wound wound;
	uint32_t i, j, tries;

	if (damage > PERFRING_DAMAGES || perfring_record_check(format, record, size, NULL))
		return 0;
	memset(&wound, 0, sizeof(wound));
	wound.generator = generator;
	wound.record = record;
	wound.size = header->size;
	for (i = 0; i < PERFRING_DAMAGES; i++)
		order[i] = (uint8_t)i;
	for (i = 0; i < PERFRING_DAMAGES; i++) {
		j = i + (uint32_t)draw(&wound, PERFRING_DAMAGES - i);
		wound.damage = (enum perfring_damage)order[j];
		order[j] = order[i];
		for (tries = 0; tries < TRIES && (damage == wound.damage || damage == PERFRING_DAMAGES); tries++)
			if (hurts(&wound, format, size))
				return wound.new_size;
	}
	return 0;
}

/* ---- mutation ---- */

/* One member of the record drawn anew: that of another record of its kind.  Returns its size, or 0. */
static size_t redraw_record(struct perfring_generator *generator, const struct perfring_format *format,
			    const void *bytes, void *drawn, size_t drawn_size, void *room, size_t most)
{
	struct perfring_record record, other;
	const struct member_row *row;
	uint64_t nr = 0, chosen;
	int64_t size;

	if (perfring_record_decode(format, bytes, &record, NULL) ||
	    perfring_generate_members(generator, format, record.type, &other, drawn, drawn_size, (uint32_t)drawn_size) <
		    0)
		return 0;
	chosen = perfring_generator_draw(generator, 12);
	for (row = perfring_members_of(record.type); row->kind != PERFRING_KINDS; row++)
		if (nr++ == chosen)
			memcpy(perfring_member_in(&record, row), perfring_member_of(&other, row), row->size);
	if (nr <= chosen)
		record.trailer = other.trailer;
	size = perfring_record_encode(format, &record, room, most);
	return size < 0 ? 0 : (size_t)size;
}

#define TAKE_number(a, b) sample.a = other.a
#define TAKE_numbers(a, b) sample.a = other.a, sample.b = other.b
#define TAKE_own(a, b) sample.a = other.a

static size_t redraw_sample(struct perfring_generator *generator, const struct perfring_format *format,
			    const void *bytes, void *drawn, size_t drawn_size, void *room, size_t most)
{
	struct perfring_sample sample, other;
	uint64_t nr = 0, chosen;
	int64_t size;

	if (perfring_sample_decode(format, bytes, &sample, NULL) ||
	    perfring_generate_sample(generator, format, &other, drawn, drawn_size, (uint32_t)drawn_size) < 0)
		return 0;
	chosen = perfring_generator_draw(generator, (uint64_t)__builtin_popcountll(sample.present) + 1);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if ((sample.present & PERFRING_SAMPLE_##NAME) && nr++ == chosen) { \
		PERFRING_FIELD_BY(TAKE_, PERFRING_FIELD_KIND_##kind)(a, b); \
	}
#include <perfring/fields.def>
	if (nr == chosen)
		sample.trailing_size = 0;
	size = perfring_sample_encode(format, &sample, room, most);
	return size < 0 ? 0 : (size_t)size;
}

/* A copy with the size that it has, and behind it what is drawn: both are encoded into the record's room.  Not inline,
 * so that this array is never on the stack beside that of perfring_generate_record. */
static __attribute__((noinline)) size_t redraw(struct perfring_generator *generator,
					       const struct perfring_format *format, void *record, size_t size,
					       size_t most)
{
	unsigned char copy[UINT16_MAX + 1 + 4096], *drawn;
	perfring_header *header = (perfring_header *)(void *)copy;
	size_t drawn_size;

	if (size < sizeof(*header) || size > UINT16_MAX)
		return 0;
	drawn = copy + size;
	drawn_size = sizeof(copy) - size;
	memcpy(copy, record, size);
	header->size = (uint16_t)size;
	if (most > PERFRING_RECORD_MAX)
		most = PERFRING_RECORD_MAX;
	if (drawn_size > most)
		drawn_size = most;
	if (header->type != PERFRING_RECORD_SAMPLE)
		return redraw_record(generator, format, copy, drawn, drawn_size, record, most);
	return format ? redraw_sample(generator, format, copy, drawn, drawn_size, record, most) : 0;
}

/* Of the same kind, or of any in the table: a small one rather than a large one. */
static size_t draw_anew(struct perfring_generator *generator, const struct perfring_format *format, void *record,
			size_t size, size_t most)
{
	static const uint8_t types[] = {
#define PERFRING_RECORD(NAME, type, noun) type,
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
	};
	uint32_t type = types[perfring_generator_draw(generator, sizeof(types))];
	uint64_t room = perfring_generator_draw(generator, 4) ? 64 + perfring_generator_draw(generator, 512) : most;
	int64_t made;

	if (size >= sizeof(perfring_header) && perfring_generator_draw(generator, 4) &&
	    ((perfring_header *)record)->type)
		type = ((perfring_header *)record)->type;
	made = perfring_generate_record(generator, format, type, record, room < most ? (size_t)room : most);
	return made < 0 ? 0 : (size_t)made;
}

static size_t change_bytes(struct perfring_generator *generator, void *record, size_t size, size_t most)
{
	unsigned char *bytes = record;
	uint64_t nr = 1 + perfring_generator_draw(generator, 4), word;

	/* a word more or less at the end, now and then */
	word = perfring_generator_draw(generator, 16);
	if (!word && size + 8 <= most) {
		memset(bytes + size, 0, 8);
		size += 8;
	} else if (word == 1 && size >= 16) {
		size -= 8;
	}
	for (; size && nr; nr--) {
		word = perfring_generator_draw(generator, size);
		bytes[word] = (unsigned char)perfring_generator_draw(generator, 256);
	}
	return size;
}

size_t perfring_generate_mutate(const struct perfring_format *format, void *record, size_t size, size_t most,
				uint64_t seed)
{
	struct perfring_generator generator;
	size_t made = 0;

	if (size > most)
		size = most;
	perfring_generator_seed(&generator, seed);
	switch (perfring_generator_draw(&generator, 8)) {
	case 0:
		made = draw_anew(&generator, format, record, size, most);
		break;
	case 1:
	case 2:
	case 3:
		made = redraw(&generator, format, record, size, most);
		break;
	case 4:
		if (size >= sizeof(perfring_header))
			made = (size_t)perfring_generate_damage(&generator, format, PERFRING_DAMAGES, record, size);
		break;
	default:
		break;
	}
	return made ? made : change_bytes(&generator, record, size, most);
}
