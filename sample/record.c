/* record.c - every record but SAMPLE: names, decoding, encoding, all from records.def. */
#include "attr.h"
#include "within.h"

const char *perfring_record_name(uint32_t type)
{
	switch (type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: \
		return #NAME;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
	default:
		return NULL;
	}
}

static uint64_t round_up(uint64_t size)
{
	return (size + 7) & ~UINT64_C(7);
}

static uint32_t trailer_size(const struct perfring_format *format, uint32_t type)
{
	return format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(format) : 0;
}

/* ---- decoding: one function a kind.  NULL, or what is wrong. ---- */

struct scan {
	struct perfring_cursor cursor; /* ends where the trailer begins */
	const struct perfring_format *format;
	uint16_t misc;
};

static const char ends_early[] = "record ends inside this member";

static const char *take_u16(struct scan *scan, uint16_t *value)
{
	return perfring_take_short(&scan->cursor, value) ? NULL : ends_early;
}

static const char *take_u32(struct scan *scan, uint32_t *value)
{
	return perfring_take_half(&scan->cursor, value) ? NULL : ends_early;
}

static const char *take_u64(struct scan *scan, uint64_t *value)
{
	return perfring_take_word(&scan->cursor, value) ? NULL : ends_early;
}

static const char *take_id128(struct scan *scan, struct perfring_file_id *file)
{
	struct perfring_cursor half;
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, 24))
		return ends_early;
	memset(file, 0, sizeof(*file));
	half = perfring_cursor_init(bytes, 0, 24);
	file->has_build_id = scan->misc & PERFRING_RECORD_MISC_MMAP_BUILD_ID;
	if (file->has_build_id) {
		file->build_id_size = *(const uint8_t *)bytes;
		if (file->build_id_size > sizeof(file->build_id))
			file->build_id_size = sizeof(file->build_id);
		memcpy(file->build_id, (const uint8_t *)bytes + 4, sizeof(file->build_id));
		return NULL;
	}
	perfring_take_half(&half, &file->maj);
	perfring_take_half(&half, &file->min);
	perfring_take_word(&half, &file->ino);
	perfring_take_word(&half, &file->ino_generation);
	return NULL;
}

static const char *take_tag(struct scan *scan, struct perfring_tag *tag)
{
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, sizeof(tag->bytes)))
		return ends_early;
	memcpy(tag->bytes, bytes, sizeof(tag->bytes));
	return NULL;
}

/* The room is there.  It need not hold a NUL (docs/abi.md 14.41). */
static void take_chars(struct scan *scan, struct perfring_string *string, uint32_t room)
{
	const void *bytes = NULL, *nul;

	perfring_take_bytes(&scan->cursor, &bytes, room);
	nul = memchr(bytes, 0, room);
	string->data = bytes;
	string->size = nul ? (uint32_t)((const char *)nul - string->data) : room;
	string->room = room;
}

static const char *take_string(struct scan *scan, struct perfring_string *string)
{
	take_chars(scan, string, perfring_cursor_left(&scan->cursor));
	return NULL;
}

static const char *take_list(struct scan *scan, struct perfring_list *list)
{
	return perfring_take_list(&scan->cursor, list);
}

static const char *take_links(struct scan *scan, struct perfring_links *links)
{
	if (!perfring_take_word(&scan->cursor, &links->nr))
		return ends_early;
	if (links->nr > perfring_cursor_left(&scan->cursor) / 16)
		return "more links than the record holds";
	perfring_take_words(&scan->cursor, &links->words, links->nr * 2);
	return NULL;
}

/* Without a format nothing tells how the block lies: it stays in `trailing`. */
static const char *take_read(struct scan *scan, struct perfring_read *read)
{
	if (scan->format)
		return perfring_take_read(&scan->cursor, read, scan->format->read_format);
	memset(read, 0, sizeof(*read));
	return NULL;
}

/* Padding to 8, counted from the record's start.  At the record's end it may be missing. */
static void skip_padding(struct scan *scan)
{
	uint32_t left = perfring_cursor_left(&scan->cursor);
	uint32_t padding = -scan->cursor.position & 7;

	scan->cursor.position += left < padding ? left : padding;
}

static const char *take_poke(struct scan *scan, struct perfring_poke *poke)
{
	if (!perfring_take_short(&scan->cursor, &poke->old_len) || !perfring_take_short(&scan->cursor, &poke->new_len))
		return ends_early;
	if (!perfring_take_bytes(&scan->cursor, &poke->old_bytes, poke->old_len) ||
	    !perfring_take_bytes(&scan->cursor, &poke->new_bytes, poke->new_len))
		return "poked bytes longer than the record";
	skip_padding(scan);
	return NULL;
}

static const char *take_rest(struct scan *scan, struct perfring_bytes *bytes)
{
	bytes->size = perfring_cursor_left(&scan->cursor);
	perfring_take_bytes(&scan->cursor, &bytes->data, bytes->size);
	return NULL;
}

/* ---- perf's own kinds (docs/abi.md 10) ---- */

static const char *take_words(struct scan *scan, struct perfring_list *list)
{
	list->nr = perfring_cursor_left(&scan->cursor) / 8;
	perfring_take_words(&scan->cursor, &list->words, list->nr);
	return NULL;
}

/* perf cuts the last string of a record behind its NUL: there may be less than `most`. */
static const char *take_text(struct scan *scan, struct perfring_string *string, uint32_t most)
{
	uint32_t left = perfring_cursor_left(&scan->cursor);

	if (!left)
		return ends_early;
	take_chars(scan, string, left < most ? left : most);
	return NULL;
}

static const char *take_text64(struct scan *scan, struct perfring_string *string)
{
	return take_text(scan, string, 64);
}

static const char *take_text512(struct scan *scan, struct perfring_string *string)
{
	return take_text(scan, string, 512);
}

static const char *take_attr(struct scan *scan, struct perfring_bytes *attr)
{
	if (perfring_cursor_left(&scan->cursor) < PERFRING_ATTR_MIN)
		return ends_early;
	attr->size = perfring_attr_own_size(scan->cursor.base + scan->cursor.position);
	if (attr->size < PERFRING_ATTR_MIN)
		return "attr shorter than any";
	return perfring_take_bytes(&scan->cursor, &attr->data, attr->size) ? NULL : "attr longer than the record";
}

static const char *take_build_id(struct scan *scan, struct perfring_build_id *id)
{
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, 24))
		return ends_early;
	memcpy(id->bytes, bytes, sizeof(id->bytes));
	id->has_size = scan->misc & PERFRING_RECORD_MISC_BUILD_ID_SIZE;
	id->size = sizeof(id->bytes);
	if (id->has_size && ((const uint8_t *)bytes)[20] < id->size)
		id->size = ((const uint8_t *)bytes)[20];
	return NULL;
}

static const char *take_blob(struct scan *scan, struct perfring_bytes *bytes)
{
	if (!perfring_take_word(&scan->cursor, &bytes->size))
		return ends_early;
	if (!perfring_take_bytes(&scan->cursor, &bytes->data, bytes->size))
		return "data longer than the record";
	skip_padding(scan);
	return NULL;
}

/* nr entries of `size` bytes each. */
static const char *take_entries(struct scan *scan, const void **entries, uint64_t *nr, uint32_t size)
{
	if (!perfring_take_word(&scan->cursor, nr))
		return ends_early;
	if (*nr > perfring_cursor_left(&scan->cursor) / size)
		return "more entries than the record holds";
	perfring_take_bytes(&scan->cursor, entries, *nr * size);
	return NULL;
}

static const char *take_index(struct scan *scan, struct perfring_index *index)
{
	const void *entries = NULL;
	const char *what = take_entries(scan, &entries, &index->nr, 32);

	index->entries = entries;
	index->machines = NULL;
	if (!what && index->nr)
		perfring_take_words(&scan->cursor, &index->machines, index->nr * 2);
	return what;
}

static const char *take_threads(struct scan *scan, struct perfring_threads *threads)
{
	return take_entries(scan, &threads->data, &threads->nr, 24);
}

static const char *take_metadata(struct scan *scan, struct perfring_metadata *metadata)
{
	return take_entries(scan, &metadata->data, &metadata->nr, 320);
}

/* A mask of 64-bit words has 4 bytes of padding in front of them. */
static const char *take_mask(struct scan *scan, struct perfring_cpu_map *map)
{
	uint32_t padding;

	if (!perfring_take_short(&scan->cursor, &map->nr) || !perfring_take_short(&scan->cursor, &map->long_size))
		return ends_early;
	if (map->long_size != 4 && map->long_size != 8)
		return "mask of words that have neither 4 nor 8 bytes";
	if (map->long_size == 8 && !perfring_take_half(&scan->cursor, &padding))
		return ends_early;
	map->size = (uint32_t)map->nr * map->long_size;
	return NULL;
}

static const char *take_range(struct scan *scan, struct perfring_cpu_map *map)
{
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, 2))
		return ends_early;
	map->any_cpu = *(const uint8_t *)bytes;
	if (!perfring_take_short(&scan->cursor, &map->first) || !perfring_take_short(&scan->cursor, &map->last))
		return ends_early;
	return NULL;
}

static const char *take_cpu_map(struct scan *scan, struct perfring_cpu_map *map)
{
	const char *what = NULL;

	memset(map, 0, sizeof(*map));
	if (!perfring_take_short(&scan->cursor, &map->type))
		return ends_early;
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		what = perfring_take_short(&scan->cursor, &map->nr) ? NULL : ends_early;
		map->size = (uint32_t)map->nr * 2;
		break;
	case PERFRING_CPU_MAP_MASK:
		what = take_mask(scan, map);
		break;
	case PERFRING_CPU_MAP_RANGE_CPUS:
		what = take_range(scan, map);
		break;
	default:
		map->size = perfring_cursor_left(&scan->cursor);
		break;
	}
	if (what)
		return what;
	if (!perfring_take_bytes(&scan->cursor, &map->data, map->size))
		return "more CPUs than the record holds";
	skip_padding(scan);
	return NULL;
}

static const char *take_conv(struct scan *scan, struct perfring_conv *conv)
{
	struct perfring_cursor words;
	const void *bytes;

	memset(conv, 0, sizeof(*conv));
	conv->is_there = perfring_take_bytes(&scan->cursor, &bytes, 24);
	if (!conv->is_there)
		return NULL;
	words = perfring_cursor_init(bytes, 0, 24);
	perfring_take_word(&words, &conv->cycles);
	perfring_take_word(&words, &conv->mask);
	conv->cap_zero = ((const uint8_t *)bytes)[16];
	conv->cap_short = ((const uint8_t *)bytes)[17];
	return NULL;
}

/* ---- the trailer: fields.def's order, but for IDENTIFIER, which is last (docs/abi.md 4.2) ---- */

/* Its size was tested. */
static void take_trailer(const struct perfring_format *format, struct perfring_cursor *cursor,
			 struct perfring_trailer *trailer)
{
#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		perfring_take_##kind(cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_TO, trailer, a, b)); \
		trailer->present |= PERFRING_SAMPLE_##NAME; \
	}
#include "trailer.def"
}

static void put_trailer(const struct perfring_format *format, struct perfring_cursor *cursor,
			const struct perfring_trailer *trailer)
{
#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		perfring_put_##kind(cursor, PERFRING_FIELD_KIND_##kind(PERFRING_BY_FROM, trailer, a, b));
#include "trailer.def"
}

int perfring_record_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				  struct perf_event_header header, struct perfring_record *decoded,
				  struct perfring_fault *fault)
{
	struct perfring_cursor end;
	struct scan scan;
	const char *what;
	uint32_t at, tail;

	decoded->type = header.type;
	decoded->misc = header.misc;
	decoded->size = header.size;
	decoded->padding = 0;
	decoded->trailer.present = 0;
	if (decoded->type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	if (decoded->size < sizeof(*record))
		return perfring_fault_set(fault, offsetof(struct perf_event_header, size),
					     "record shorter than its header");
	tail = trailer_size(format, decoded->type);
	if (tail > decoded->size - sizeof(*record))
		return perfring_fault_set(fault, decoded->size, "record shorter than its trailer");
	if (tail) {
		end = perfring_cursor_init(record, decoded->size - tail, decoded->size);
		take_trailer(format, &end, &decoded->trailer);
	}
	scan.cursor = perfring_cursor_init(record, sizeof(*record), decoded->size - tail);
	scan.format = format;
	scan.misc = decoded->misc;
	switch (decoded->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		struct perfring_record_##noun *is = &decoded->is.noun; \
\
		is->reserved_ = 0;
#define PERFRING_MEMBER(kind, member, show) \
	at = scan.cursor.position; \
	what = take_##kind(&scan, &is->member); \
	if (PERFRING_UNLIKELY(what)) \
		return perfring_fault_set(fault, at, what);
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (when) { \
		PERFRING_MEMBER(kind, member, show) \
	} else { \
		memset(&is->member, 0, sizeof(is->member)); \
	}
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	decoded->trailing = scan.cursor.base + scan.cursor.position;
	decoded->trailing_size = perfring_cursor_left(&scan.cursor);
	return 0;
}

int perfring_record_decode(const struct perfring_format *format, const struct perf_event_header *record,
			   struct perfring_record *decoded, struct perfring_fault *fault)
{
	const volatile perfring_header *from = (const volatile perfring_header *)record;
	struct perf_event_header header;

	header.type = from->type;
	header.misc = from->misc;
	header.size = from->size;
	return perfring_record_decode_within(format, record, header, decoded, fault);
}

/* ---- sizes, of what begins at `at`.  What cannot fit a record counts as PERFRING_TOO_MUCH. ---- */

/* Added to the size of a text that is shorter than its kind: whatever came behind it would be read as its end. */
#define CUT (UINT64_C(1) << 40)

#define ALWAYS(kind, type, size) \
	static uint64_t size_##kind(const struct perfring_format *format, uint64_t at, const type *value) \
	{ \
		(void)format; \
		(void)at; \
		(void)value; \
		return size; \
	}
ALWAYS(u16, uint16_t, 2)
ALWAYS(u32, uint32_t, 4)
ALWAYS(u64, uint64_t, 8)
ALWAYS(id128, struct perfring_file_id, 24)
ALWAYS(tag, struct perfring_tag, 8)
ALWAYS(list, struct perfring_list, perfring_size_list(value))
ALWAYS(links, struct perfring_links, 8 + perfring_size_many(value->nr, 16))
ALWAYS(rest, struct perfring_bytes, perfring_size_many(value->size, 1))
ALWAYS(words, struct perfring_list, perfring_size_many(value->nr, 8))
ALWAYS(build_id, struct perfring_build_id, 24)
ALWAYS(index, struct perfring_index, 8 + perfring_size_many(value->nr, value->machines ? 48 : 32))
ALWAYS(threads, struct perfring_threads, 8 + perfring_size_many(value->nr, 24))
ALWAYS(metadata, struct perfring_metadata, 8 + perfring_size_many(value->nr, 320))
ALWAYS(conv, struct perfring_conv, value->is_there ? 24 : 0)
#undef ALWAYS

static uint64_t size_padded(uint64_t at, uint64_t size)
{
	return round_up(at + size) - at;
}

/* Whether decoding finds the size that it has: no NUL inside, and one behind unless it fills its room. */
static bool is_whole(const struct perfring_string *string)
{
	if (string->size > PERFRING_RECORD_MAX || (string->room && string->size > string->room))
		return false;
	if (string->size < string->room && string->data[string->size])
		return false;
	return !string->size || !memchr(string->data, 0, string->size);
}

static uint64_t size_string(const struct perfring_format *format, uint64_t at, const struct perfring_string *string)
{
	(void)format;
	if (!is_whole(string))
		return PERFRING_TOO_MUCH;
	if (!string->room)
		return size_padded(at, (uint64_t)string->size + 1);
	return perfring_size_many(string->room, 1);
}

static uint64_t size_text(const struct perfring_string *string, uint32_t most)
{
	uint32_t room = string->room ? string->room : most;

	if (room > most || string->size > room || !is_whole(string))
		return PERFRING_TOO_MUCH;
	return room < most ? room + CUT : room;
}

static uint64_t size_text64(const struct perfring_format *format, uint64_t at, const struct perfring_string *string)
{
	(void)format;
	(void)at;
	return size_text(string, 64);
}

static uint64_t size_text512(const struct perfring_format *format, uint64_t at, const struct perfring_string *string)
{
	(void)format;
	(void)at;
	return size_text(string, 512);
}

static uint64_t size_read(const struct perfring_format *format, uint64_t at, const struct perfring_read *read)
{
	(void)at;
	return format ? perfring_size_read(read, format->read_format) : 0;
}

static uint64_t size_poke(const struct perfring_format *format, uint64_t at, const struct perfring_poke *poke)
{
	(void)format;
	return size_padded(at, UINT64_C(4) + poke->old_len + poke->new_len);
}

/* An attr that says another size would be read as another one. */
static uint64_t size_attr(const struct perfring_format *format, uint64_t at, const struct perfring_bytes *attr)
{
	(void)format;
	(void)at;
	if (attr->size < PERFRING_ATTR_MIN || attr->size != perfring_attr_own_size(attr->data))
		return PERFRING_TOO_MUCH;
	return perfring_size_many(attr->size, 1);
}

static uint64_t size_blob(const struct perfring_format *format, uint64_t at, const struct perfring_bytes *bytes)
{
	(void)format;
	return size_padded(at, 8 + perfring_size_many(bytes->size, 1));
}

static uint64_t size_cpu_map(const struct perfring_format *format, uint64_t at, const struct perfring_cpu_map *map)
{
	(void)format;
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		return size_padded(at, 4 + UINT64_C(2) * map->nr);
	case PERFRING_CPU_MAP_MASK:
		if (map->long_size != 4 && map->long_size != 8)
			return PERFRING_TOO_MUCH;
		return size_padded(at, (map->long_size == 8 ? 10 : 6) + (uint64_t)map->long_size * map->nr);
	case PERFRING_CPU_MAP_RANGE_CPUS:
		return size_padded(at, 8);
	default:
		return 2 + perfring_size_many(map->size, 1);
	}
}

int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record)
{
	bool is_of_perf = record->type >= PERFRING_RECORD_OF_PERF;
	uint64_t size = sizeof(struct perf_event_header);

	if (record->type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) \
	size += size & CUT ? PERFRING_TOO_MUCH : size_##kind(format, size, &is->member);
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (when) \
	PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	if (size & CUT)
		size = record->trailing_size ? PERFRING_TOO_MUCH : size - CUT;
	size += record->trailing_size;
	if (!is_of_perf)
		size = round_up(size) + trailer_size(format, record->type);
	return size > (is_of_perf ? UINT16_MAX : PERFRING_RECORD_MAX) ? -EINVAL : (int64_t)size;
}

/* ---- encoding: the room was tested, so puts cannot fail ---- */

static void put_u16(struct scan *scan, const uint16_t *value)
{
	perfring_put_short(&scan->cursor, *value);
}

static void put_u32(struct scan *scan, const uint32_t *value)
{
	perfring_put_half(&scan->cursor, *value);
}

static void put_u64(struct scan *scan, const uint64_t *value)
{
	perfring_put_word(&scan->cursor, *value);
}

static void put_padding(struct scan *scan)
{
	perfring_put_zeros(&scan->cursor, -scan->cursor.position & 7);
}

static void put_id128(struct scan *scan, const struct perfring_file_id *file)
{
	uint8_t size = file->build_id_size;

	if (file->has_build_id) {
		perfring_put_half(&scan->cursor, 0);
		scan->cursor.base[scan->cursor.position - 4] =
			size < sizeof(file->build_id) ? size : (uint8_t)sizeof(file->build_id);
		perfring_put_bytes(&scan->cursor, file->build_id, sizeof(file->build_id));
		scan->misc |= PERFRING_RECORD_MISC_MMAP_BUILD_ID;
		return;
	}
	perfring_put_half(&scan->cursor, file->maj);
	perfring_put_half(&scan->cursor, file->min);
	perfring_put_word(&scan->cursor, file->ino);
	perfring_put_word(&scan->cursor, file->ino_generation);
	scan->misc &= (uint16_t)~PERFRING_RECORD_MISC_MMAP_BUILD_ID;
}

static void put_tag(struct scan *scan, const struct perfring_tag *tag)
{
	perfring_put_bytes(&scan->cursor, tag->bytes, sizeof(tag->bytes));
}

static void put_string(struct scan *scan, const struct perfring_string *string)
{
	perfring_put_bytes(&scan->cursor, string->data, string->room ? string->room : string->size);
	if (string->room)
		return;
	perfring_put_zeros(&scan->cursor, 1);
	put_padding(scan);
}

static void put_list(struct scan *scan, const struct perfring_list *list)
{
	perfring_put_list(&scan->cursor, list);
}

static void put_links(struct scan *scan, const struct perfring_links *links)
{
	perfring_put_word(&scan->cursor, links->nr);
	perfring_put_bytes(&scan->cursor, links->words, links->nr * 16);
}

static void put_read(struct scan *scan, const struct perfring_read *read)
{
	if (scan->format)
		perfring_put_read(&scan->cursor, read, scan->format->read_format);
}

static void put_poke(struct scan *scan, const struct perfring_poke *poke)
{
	perfring_put_short(&scan->cursor, poke->old_len);
	perfring_put_short(&scan->cursor, poke->new_len);
	perfring_put_bytes(&scan->cursor, poke->old_bytes, poke->old_len);
	perfring_put_bytes(&scan->cursor, poke->new_bytes, poke->new_len);
	put_padding(scan);
}

static void put_rest(struct scan *scan, const struct perfring_bytes *bytes)
{
	perfring_put_bytes(&scan->cursor, bytes->data, bytes->size);
}

/* ---- perf's own kinds ---- */

static void put_words(struct scan *scan, const struct perfring_list *list)
{
	perfring_put_bytes(&scan->cursor, list->words, list->nr * 8);
}

static void put_text(struct scan *scan, const struct perfring_string *string, uint32_t most)
{
	perfring_put_bytes(&scan->cursor, string->data, string->room ? string->room : string->size);
	if (!string->room)
		perfring_put_zeros(&scan->cursor, most - string->size);
}

static void put_text64(struct scan *scan, const struct perfring_string *string)
{
	put_text(scan, string, 64);
}

static void put_text512(struct scan *scan, const struct perfring_string *string)
{
	put_text(scan, string, 512);
}

static void put_attr(struct scan *scan, const struct perfring_bytes *attr)
{
	put_rest(scan, attr);
}

static void put_build_id(struct scan *scan, const struct perfring_build_id *id)
{
	uint8_t size = id->size < sizeof(id->bytes) ? id->size : (uint8_t)sizeof(id->bytes);

	perfring_put_bytes(&scan->cursor, id->bytes, sizeof(id->bytes));
	perfring_put_zeros(&scan->cursor, 4);
	scan->misc &= (uint16_t)~PERFRING_RECORD_MISC_BUILD_ID_SIZE;
	if (!id->has_size)
		return;
	scan->cursor.base[scan->cursor.position - 4] = size;
	scan->misc |= PERFRING_RECORD_MISC_BUILD_ID_SIZE;
}

static void put_blob(struct scan *scan, const struct perfring_bytes *bytes)
{
	perfring_put_word(&scan->cursor, bytes->size);
	perfring_put_bytes(&scan->cursor, bytes->data, bytes->size);
	put_padding(scan);
}

static void put_index(struct scan *scan, const struct perfring_index *index)
{
	perfring_put_word(&scan->cursor, index->nr);
	perfring_put_bytes(&scan->cursor, index->entries, index->nr * 32);
	if (index->machines)
		perfring_put_bytes(&scan->cursor, index->machines, index->nr * 16);
}

static void put_threads(struct scan *scan, const struct perfring_threads *threads)
{
	perfring_put_word(&scan->cursor, threads->nr);
	perfring_put_bytes(&scan->cursor, threads->data, threads->nr * 24);
}

static void put_metadata(struct scan *scan, const struct perfring_metadata *metadata)
{
	perfring_put_word(&scan->cursor, metadata->nr);
	perfring_put_bytes(&scan->cursor, metadata->data, metadata->nr * 320);
}

static void put_cpu_map(struct scan *scan, const struct perfring_cpu_map *map)
{
	struct perfring_cursor *cursor = &scan->cursor;

	perfring_put_short(cursor, map->type);
	switch (map->type) {
	case PERFRING_CPU_MAP_CPUS:
		perfring_put_short(cursor, map->nr);
		perfring_put_bytes(cursor, map->data, UINT64_C(2) * map->nr);
		break;
	case PERFRING_CPU_MAP_MASK:
		perfring_put_short(cursor, map->nr);
		perfring_put_short(cursor, map->long_size);
		perfring_put_zeros(cursor, map->long_size == 8 ? 4 : 0);
		perfring_put_bytes(cursor, map->data, (uint64_t)map->long_size * map->nr);
		break;
	case PERFRING_CPU_MAP_RANGE_CPUS:
		perfring_put_bytes(cursor, &map->any_cpu, 1);
		perfring_put_zeros(cursor, 1);
		perfring_put_short(cursor, map->first);
		perfring_put_short(cursor, map->last);
		break;
	default:
		perfring_put_bytes(cursor, map->data, map->size);
		return;
	}
	put_padding(scan);
}

static void put_conv(struct scan *scan, const struct perfring_conv *conv)
{
	if (!conv->is_there)
		return;
	perfring_put_word(&scan->cursor, conv->cycles);
	perfring_put_word(&scan->cursor, conv->mask);
	perfring_put_bytes(&scan->cursor, &conv->cap_zero, 1);
	perfring_put_bytes(&scan->cursor, &conv->cap_short, 1);
	perfring_put_zeros(&scan->cursor, 6);
}

int64_t perfring_record_encode(const struct perfring_format *format, const struct perfring_record *record, void *room,
			       size_t size)
{
	struct perf_event_header header;
	int64_t needed = perfring_record_size(format, record);
	struct scan scan;

	if (needed < 0)
		return needed;
	if (size < (uint64_t)needed)
		return -ENOSPC;
	scan.cursor = perfring_cursor_init(room, sizeof(header), (uint32_t)needed);
	scan.format = format;
	scan.misc = record->misc;
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) put_##kind(&scan, &is->member);
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if (when) \
	PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	perfring_put_bytes(&scan.cursor, record->trailing, record->trailing_size);
	if (record->type < PERFRING_RECORD_OF_PERF)
		put_padding(&scan);
	if (trailer_size(format, record->type))
		put_trailer(format, &scan.cursor, &record->trailer);
	header.type = record->type;
	header.misc = scan.misc;
	header.size = (uint16_t)needed;
	memcpy(room, &header, sizeof(header));
	return needed;
}
