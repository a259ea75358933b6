/* damage.c - records damaged in named ways, and changed at random for fuzzers.
 *
 * The functions of generate.h that damage: `perfring gen` and the fuzzers call them.  Damages are rows of values.def; where one
 * can be put is found by a walk over the record's members, and one of all places is chosen.
 */
#include <perfring/check.h>
#include <perfring/generate.h>

#include "attr.h"
#include "layout_private.h"
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

/* ---- the site of the damage: one of all that the record has, with equal probability ---- */

struct damage_site {
	struct perfring_generator *generator;
	enum perfring_damage damage;
	unsigned char *record;
	uint32_t size; /* of the record, before */
	uint32_t new_size;
	uint64_t found;
	uint32_t at;
	uint32_t width; /* of the number that is written, at most 8 */
	uint64_t value;
	uint32_t fill; /* bytes after it that get the same value */
};

static uint64_t draw(struct damage_site *site, uint64_t below)
{
	return perfring_generator_draw(site->generator, below);
}

/* Chooses among the sites found so far, each with the same probability.  Returns whether it is this one. */
static bool takes(struct damage_site *site, enum perfring_damage damage, uint32_t at, uint32_t width)
{
	if (damage != site->damage || draw(site, ++site->found))
		return false;
	site->at = at;
	site->width = width;
	site->fill = 0;
	return true;
}

static uint32_t at_of(const struct damage_site *site, const void *bytes)
{
	return (uint32_t)((const unsigned char *)bytes - site->record);
}

static uint64_t highest(uint32_t width)
{
	return UINT64_MAX >> (64 - 8 * width);
}

/* A value that is too high, by little or by much. */
static uint64_t beyond(struct damage_site *site, uint64_t most, uint32_t width)
{
	uint64_t highest_value = highest(width), value;

	switch (draw(site, 3)) {
	case 0:
		value = most + 1 + draw(site, 8);
		break;
	case 1:
		value = highest_value - draw(site, 8);
		break;
	default:
		value = draw(site, 0) & highest_value;
		break;
	}
	return value > most && value <= highest_value ? value : highest_value;
}

/* The length in bytes of what follows. */
static void note_length(struct damage_site *site, uint32_t at, uint32_t width)
{
	if (takes(site, PERFRING_DAMAGE_LENGTH, at, width))
		site->value = beyond(site, site->size - at - width, width);
}

/* A count of entries of `entry` bytes each; NR_OVERFLOW: count * entry overflows 64 or 32 bits. */
static void note_count(struct damage_site *site, uint32_t at, uint32_t width, uint32_t entry)
{
	if (takes(site, PERFRING_DAMAGE_NR, at, width))
		site->value = beyond(site, (site->size - at - width) / entry, width);
	if (width == 8 && takes(site, PERFRING_DAMAGE_NR_OVERFLOW, at, width))
		site->value = (draw(site, 2) ? UINT64_MAX : UINT32_MAX) / entry + 1 + draw(site, 3);
}

static void note_padding(struct damage_site *site, uint32_t from, uint32_t until)
{
	if (from < until && takes(site, PERFRING_DAMAGE_PADDING, from, 1)) {
		site->at = from + (uint32_t)draw(site, until - from);
		site->value = 1 + draw(site, 255);
	}
}

static void note_marker(struct damage_site *site, const struct perfring_list *list)
{
	uint64_t i;

	if (!list->nr || !takes(site, PERFRING_DAMAGE_MARKER, 0, 8))
		return;
	i = draw(site, list->nr);
	site->at = at_of(site, list->words + i);
	site->value = draw(site, 2) ? (uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED
				    : (uint64_t)(int64_t)PERFRING_CONTEXT_MAX + draw(site, 4095);
}

/* ---- fields and members: by their layouts ---- */

/* Which damage a number is that is too high, by its kind. */
static enum perfring_damage too_much_of(enum perfring_kind kind)
{
	return kind == PERFRING_KIND_regs    ? PERFRING_DAMAGE_ABI
	       : kind == PERFRING_KIND_stack ? PERFRING_DAMAGE_DYN_SIZE
					     : PERFRING_DAMAGE_LENGTH;
}

static void note_part(struct damage_site *site, enum perfring_kind kind, const struct perfring_layout_member *part)
{
	uint32_t at = at_of(site, part->bytes), size = (uint32_t)part->size, end = at + (uint32_t)part->space;

	switch (part->kind) {
	case PERFRING_LAYOUT_NUMBER:
		/* Entries of different sizes have 0 in `entry`: the count becomes more than the bytes that follow. */
		if (part->use == PERFRING_LAYOUT_COUNT)
			note_count(site, at, size, part->entry ? part->entry : 1);
		if (part->use == PERFRING_LAYOUT_LENGTH)
			note_length(site, at, size);
		/* Not of id128: where a build id's size is too high, the bytes are a device's numbers, which is valid. */
		if (part->most < highest(size) && kind != PERFRING_KIND_id128 &&
		    takes(site, too_much_of(kind), at, size))
			site->value = beyond(site, part->most, size);
		break;
	case PERFRING_LAYOUT_STRING:
		if (part->depth)
			break;
		if (size < part->space && takes(site, PERFRING_DAMAGE_STRING, at + size, 1)) {
			site->value = 'a' + draw(site, 26);
			site->fill = end - at - size - 1;
		}
		note_padding(site, at + size + 1, end);
		break;
	case PERFRING_LAYOUT_ATTR:
		note_length(site, at + PERFRING_ATTR_AT_size, 4);
		break;
	case PERFRING_LAYOUT_PADDING:
		note_padding(site, at, end);
		break;
	default:
		break;
	}
}

/* Notes the sites of damage in the parts of a member.  Returns the place of the next member. */
static uint32_t note_parts(struct damage_site *site, enum perfring_kind kind, struct perfring_layout_walk *walk,
			   const void *member)
{
	struct perfring_layout_member part;

	while (perfring_layout_next(walk, &part) == 1)
		note_part(site, kind, &part);
	if (kind == PERFRING_KIND_list)
		note_marker(site, member);
	return (uint32_t)walk->at;
}

static void note_sample(struct damage_site *site, const struct perfring_format *format)
{
	uint32_t at = sizeof(struct perf_event_header);
	struct perfring_layout_walk walk;
	struct perfring_sample sample;
	unsigned shape;

	if (perfring_sample_decode(format, (const void *)site->record, &sample, NULL))
		return;
	shape = shape_of(format, &sample);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (sample.present & PERFRING_SAMPLE_##NAME) { \
		perfring__layout_open_field(&walk, PERFRING_KIND_##kind, \
					    PERFRING_FIELD_KIND_##kind(PERFRING_BY_HOW, sample, a, b), site->record, \
					    at, site->size); \
		at = note_parts(site, PERFRING_KIND_##kind, &walk, &sample.a); \
	}
#include <perfring/fields.def>
}

static void note_record(struct damage_site *site, const struct perfring_format *format)
{
	uint32_t at = sizeof(struct perf_event_header), end;
	struct perfring_layout_walk walk;
	const struct member_row *row;
	struct perfring_record record;
	enum perfring_kind kind;

	if (perfring_record_decode(format, (const void *)site->record, &record, NULL))
		return;
	end = at_of(site, record.trailing) + record.trailing_size;
	for (row = perfring__members_of(record.type); row->kind != PERFRING_KINDS; row++)
		if (perfring__members_has(&record, row)) {
			kind = (enum perfring_kind)row->kind;
			/* Without a format, no read block is decoded. */
			if (kind == PERFRING_KIND_read)
				perfring__layout_open_field(&walk, kind, format ? format->read_format : 0, site->record,
							    at, format ? end : at);
			else
				perfring__layout_open_member(&walk, kind, record.misc, site->record, at, end);
			at = note_parts(site, kind, &walk, perfring__member_of(&record, row));
		}
}

/* ---- what every record has ---- */

static void note_size(struct damage_site *site, uint64_t size)
{
	site->value = size;
	site->at = offsetof(struct perf_event_header, size);
	site->width = 2;
}

static void note_odd_size(struct damage_site *site, size_t capacity)
{
	uint32_t part = 1 + (uint32_t)draw(site, 7);
	/* a record of 8 bytes would become smaller than its header: that is SIZE_SMALL */
	bool grows = site->size < 16 || (draw(site, 2) && site->size + part <= capacity);

	if (grows && site->size + part > capacity)
		return;
	if (!takes(site, PERFRING_DAMAGE_SIZE_ODD, 0, 0))
		return;
	site->new_size = grows ? site->size + part : site->size - part;
	note_size(site, site->new_size);
}

static uint32_t other_type(struct damage_site *site, uint32_t type)
{
	uint32_t other = type;
	uint64_t nr = 0;

#define PERFRING_RECORD(NAME, number, noun) \
	if (type != PERFRING_RECORD_##NAME && !draw(site, ++nr)) \
		other = PERFRING_RECORD_##NAME;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, number, noun)
#include <perfring/records.def>
	return other;
}

/* The offset of the id of the record's event; 0: the record has none. */
static uint32_t id_at(const struct damage_site *site, const struct perfring_format *format, uint32_t type)
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
	return back ? site->size - (uint32_t)back : 0;
}

static void note_header(struct damage_site *site, const struct perfring_format *format, size_t capacity)
{
	const perfring_header *header = (const void *)site->record;
	uint32_t size = site->size, step = header->type < PERFRING_RECORD_OF_PERF ? 8 : 1;

	if (takes(site, PERFRING_DAMAGE_SIZE_SMALL, 0, 0))
		note_size(site, draw(site, sizeof(*header)));
	if (size < UINT16_MAX && takes(site, PERFRING_DAMAGE_SIZE_LARGE, 0, 0))
		note_size(site,
			  size + 1 + draw(site, draw(site, 2) && size < UINT16_MAX - 16 ? 16 : UINT16_MAX - size));
	if (site->damage == PERFRING_DAMAGE_SIZE_ODD && header->type < PERFRING_RECORD_OF_PERF)
		note_odd_size(site, capacity);
	if (size > sizeof(*header) && takes(site, PERFRING_DAMAGE_TRUNCATED, 0, 0)) {
		site->new_size = size - step * (uint32_t)(1 + draw(site, (size - sizeof(*header)) / step));
		note_size(site, site->new_size);
	}
	if (takes(site, PERFRING_DAMAGE_MISC, offsetof(struct perf_event_header, misc), 2))
		site->value = (header->misc & ~(uint64_t)PERFRING_RECORD_MISC_CPUMODE_MASK) | (6 + draw(site, 2));
	if (takes(site, PERFRING_DAMAGE_TYPE, 0, 4))
		site->value = other_type(site, header->type);
	if (size > sizeof(*header) && takes(site, PERFRING_DAMAGE_BYTES, 0, 1)) {
		site->at = (uint32_t)(sizeof(*header) + draw(site, size - sizeof(*header)));
		site->width = (uint32_t)(1 + draw(site, size - site->at < 8 ? size - site->at : 8));
		site->value = draw(site, 0);
	}
	if (id_at(site, format, header->type) && takes(site, PERFRING_DAMAGE_ID, id_at(site, format, header->type), 8))
		site->value = draw(site, 0);
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

/* Whether the record now has the damage.  verdict: of perfring_record_examine.  Some may leave a valid record; padding after a
 * string is a remark. */
static bool is_damaged(enum perfring_damage damage, int verdict)
{
	switch (damage) {
	case PERFRING_DAMAGE_ID:
	case PERFRING_DAMAGE_TYPE:
	case PERFRING_DAMAGE_BYTES:
		return true;
	case PERFRING_DAMAGE_PADDING:
		return verdict != 0;
	default:
		return verdict < 0;
	}
}

/* One try.  A change that leaves a valid record by chance is undone: for example, one that truncates the record where
 * another could end. */
static bool try_damage(struct damage_site *site, const struct perfring_format *format, size_t capacity)
{
	const struct perf_event_header *record = (const void *)site->record;
	struct perfring_finding finding;
	uint32_t type = ((const perfring_header *)record)->type;
	unsigned char *at;
	uint64_t was;

	site->found = 0;
	site->new_size = site->size;
	note_header(site, format, capacity);
	if (type != PERFRING_RECORD_SAMPLE)
		note_record(site, format);
	else if (format)
		note_sample(site, format);
	if (!site->found)
		return false;
	at = site->record + site->at;
	was = perfring__number_get(at, site->width);
	/* what is filled must be 0: undoing it sets it to 0 */
	if (was == (site->value & highest(site->width)) || !is_zero(at + site->width, site->fill))
		return false;
	if (site->new_size > site->size)
		memset(site->record + site->size, 0, site->new_size - site->size);
	perfring__number_put(at, site->width, site->value);
	memset(at + site->width, (int)site->value, site->fill);
	if (is_damaged(site->damage, perfring_record_examine(format, record, site->new_size, &finding)))
		return true;
	perfring__number_put(at, site->width, was);
	memset(at + site->width, 0, site->fill);
	return false;
}

int64_t perfring_generate_damage(struct perfring_generator *generator, const struct perfring_format *format,
				 uint32_t damage, void *record, size_t size)
{
	const perfring_header *header = record;
	uint8_t order[PERFRING_DAMAGES];
	struct damage_site site;
	uint32_t i, j, tries;

	if (damage > PERFRING_DAMAGES || perfring_record_check(format, record, size, NULL))
		return 0;
	memset(&site, 0, sizeof(site));
	site.generator = generator;
	site.record = record;
	site.size = header->size;
	for (i = 0; i < PERFRING_DAMAGES; i++)
		order[i] = (uint8_t)i;
	for (i = 0; i < PERFRING_DAMAGES; i++) {
		j = i + (uint32_t)draw(&site, PERFRING_DAMAGES - i);
		site.damage = (enum perfring_damage)order[j];
		order[j] = order[i];
		for (tries = 0; tries < TRIES && (damage == site.damage || damage == PERFRING_DAMAGES); tries++)
			if (try_damage(&site, format, size))
				return site.new_size;
	}
	return 0;
}

/* ---- mutation ---- */

/* Replaces one member, or the trailer, by that of a random record of the type.  Returns the record's size, or 0. */
static size_t redraw_record(struct perfring_generator *generator, const struct perfring_format *format,
			    const void *bytes, void *drawn, size_t drawn_size, void *buffer, size_t most)
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
	for (row = perfring__members_of(record.type); row->kind != PERFRING_KINDS; row++)
		if (nr++ == chosen)
			memcpy(perfring__member_in(&record, row), perfring__member_of(&other, row), row->size);
	if (nr <= chosen)
		record.trailer = other.trailer;
	size = perfring_record_encode(format, &record, buffer, most);
	return size < 0 ? 0 : (size_t)size;
}

#define TAKE_number(a, b) sample.a = other.a
#define TAKE_numbers(a, b) sample.a = other.a, sample.b = other.b
#define TAKE_own(a, b) sample.a = other.a

static size_t redraw_sample(struct perfring_generator *generator, const struct perfring_format *format,
			    const void *bytes, void *drawn, size_t drawn_size, void *buffer, size_t most)
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
	size = perfring_sample_encode(format, &sample, buffer, most);
	return size < 0 ? 0 : (size_t)size;
}

/* Replaces one member of the record: copies it, draws a random record after the copy, and encodes the mixture back. */
static size_t redraw(struct perfring_generator *generator, const struct perfring_format *format, void *record,
		     size_t size, size_t most)
{
	unsigned char copy[UINT16_MAX + 1 + 4096] __attribute__((__aligned__(8))), *drawn;
	perfring_header *header = (perfring_header *)(void *)copy;
	size_t drawn_at = (size + 7) & ~(size_t)7, drawn_size; /* aligned to 8, as generate.h asks */

	if (size < sizeof(*header) || size > UINT16_MAX)
		return 0;
	drawn = copy + drawn_at;
	drawn_size = sizeof(copy) - drawn_at;
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

/* Draws a new record, of the same type or of any in the table; mostly a small one. */
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
	uint64_t space = perfring_generator_draw(generator, 4) ? 64 + perfring_generator_draw(generator, 512) : most;
	int64_t made;

	if (size >= sizeof(perfring_header) && perfring_generator_draw(generator, 4) &&
	    ((perfring_header *)record)->type)
		type = ((perfring_header *)record)->type;
	made = perfring_generate_record(generator, format, type, record, space < most ? (size_t)space : most);
	return made < 0 ? 0 : (size_t)made;
}

static size_t change_bytes(struct perfring_generator *generator, void *record, size_t size, size_t most)
{
	unsigned char *bytes = record;
	uint64_t nr = 1 + perfring_generator_draw(generator, 4), word;

	/* one time in 8, a word more or less at the end */
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
