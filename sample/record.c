/* record.c - every record but SAMPLE: names, decoding, encoding, all from records.def. */
#include <perfring/record.h>

/* The largest size that is a multiple of 8 and fits the header's u16. */
enum {
	RECORD_MOST = 65528
};

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

/* perf's own records have none (ABI.md 10). */
static uint32_t trailer_size(const struct perfring_format *format, uint32_t type)
{
	return format && type < 64 ? perfring_format_trailer(format) : 0;
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
	half = perfring_cursor_over(bytes, 0, 24);
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

/* A string has all the bytes up to the trailer; it need not have a NUL (ABI.md 14.41). */
static const char *take_string(struct scan *scan, struct perfring_string *string)
{
	uint32_t room = perfring_cursor_left(&scan->cursor);
	const void *bytes = NULL, *nul;

	perfring_take_bytes(&scan->cursor, &bytes, room);
	nul = memchr(bytes, 0, room);
	string->data = bytes;
	string->size = nul ? (uint32_t)((const char *)nul - string->data) : room;
	string->reserved = 0;
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

static const char *take_poke(struct scan *scan, struct perfring_poke *poke)
{
	uint32_t left;

	if (!perfring_take_short(&scan->cursor, &poke->old_len) || !perfring_take_short(&scan->cursor, &poke->new_len))
		return ends_early;
	if (!perfring_take_bytes(&scan->cursor, &poke->old_bytes, poke->old_len) ||
	    !perfring_take_bytes(&scan->cursor, &poke->new_bytes, poke->new_len))
		return "poked bytes longer than the record";
	left = perfring_cursor_left(&scan->cursor);
	scan->cursor.position += left < (-scan->cursor.position & 7) ? left : (-scan->cursor.position & 7);
	return NULL;
}

static const char *take_rest(struct scan *scan, struct perfring_bytes *bytes)
{
	bytes->size = perfring_cursor_left(&scan->cursor);
	perfring_take_bytes(&scan->cursor, &bytes->data, bytes->size);
	return NULL;
}

/* ---- the trailer: fields.def's order, but for IDENTIFIER, which is last (ABI.md 4.2) ---- */

#define IN_ORDER_no(...)
#define IN_ORDER_yes(...) TRAILER_FIELD(__VA_ARGS__)
#define IN_ORDER_last(...)
#define AT_END_no(...)
#define AT_END_yes(...)
#define AT_END_last(...) TRAILER_FIELD(__VA_ARGS__)

/* Its size was tested. */
static void take_trailer(const struct perfring_format *format, struct perfring_cursor *cursor,
			 struct perfring_trailer *trailer)
{
#define TAKE_u64(a, b) perfring_take_word(cursor, &trailer->a)
#define TAKE_pair(a, b) perfring_take_pair(cursor, &trailer->a, &trailer->b)
#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) { \
		TAKE_##kind(a, b); \
		trailer->present |= PERFRING_SAMPLE_##NAME; \
	}
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) IN_ORDER_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) AT_END_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
#undef TRAILER_FIELD
}

static void put_trailer(const struct perfring_format *format, struct perfring_cursor *cursor,
			const struct perfring_trailer *trailer)
{
#define PUT_u64(a, b) perfring_put_word(cursor, trailer->a)
#define PUT_pair(a, b) perfring_put_half(cursor, trailer->a), perfring_put_half(cursor, trailer->b)
#define TRAILER_FIELD(NAME, kind, a, b) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		PUT_##kind(a, b);
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) IN_ORDER_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) AT_END_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
#undef TRAILER_FIELD
}

static int record_fault(struct perfring_fault *fault, uint32_t at, const char *what)
{
	if (fault) {
		fault->at = at;
		fault->what = what;
	}
	return -EBADMSG;
}

int perfring_record_decode(const struct perfring_format *format, const struct perf_event_header *record,
			   struct perfring_record *decoded, struct perfring_fault *fault)
{
	/* size is read once: a peer may be able to write to this memory (reader.h). */
	const volatile perfring_header *header = record;
	struct perfring_cursor end;
	struct scan scan;
	const char *what;
	uint32_t at, tail;

	decoded->type = header->type;
	decoded->misc = header->misc;
	decoded->size = header->size;
	decoded->padding = 0;
	decoded->trailer.present = 0;
	if (decoded->type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	if (decoded->size < sizeof(*record))
		return record_fault(fault, 0, "record shorter than its header");
	tail = trailer_size(format, decoded->type);
	if (tail > decoded->size - sizeof(*record))
		return record_fault(fault, decoded->size, "record shorter than its trailer");
	if (tail) {
		end = perfring_cursor_over(record, decoded->size - tail, decoded->size);
		take_trailer(format, &end, &decoded->trailer);
	}
	scan.cursor = perfring_cursor_over(record, sizeof(*record), decoded->size - tail);
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
		return record_fault(fault, at, what);
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

/* ---- sizes.  What cannot fit a record counts as TOO_MUCH, so that sums do not overflow. ---- */

enum {
	TOO_MUCH = 1 << 20
};

static uint64_t size_many(uint64_t nr, uint64_t size)
{
	return nr > RECORD_MOST ? TOO_MUCH : nr * size;
}

static uint64_t size_u16(const struct perfring_format *format, const uint16_t *value)
{
	(void)format;
	return sizeof(*value);
}

static uint64_t size_u32(const struct perfring_format *format, const uint32_t *value)
{
	(void)format;
	return sizeof(*value);
}

static uint64_t size_u64(const struct perfring_format *format, const uint64_t *value)
{
	(void)format;
	return sizeof(*value);
}

static uint64_t size_id128(const struct perfring_format *format, const struct perfring_file_id *file)
{
	(void)format;
	(void)file;
	return 24;
}

static uint64_t size_tag(const struct perfring_format *format, const struct perfring_tag *tag)
{
	(void)format;
	return sizeof(tag->bytes);
}

/* With its NUL and the padding; what stands before a string is always a multiple of 8. */
static uint64_t size_string(const struct perfring_format *format, const struct perfring_string *string)
{
	(void)format;
	return round_up((uint64_t)string->size + 1);
}

static uint64_t size_list(const struct perfring_format *format, const struct perfring_list *list)
{
	(void)format;
	return 8 + size_many(list->nr, 8);
}

static uint64_t size_links(const struct perfring_format *format, const struct perfring_links *links)
{
	(void)format;
	return 8 + size_many(links->nr, 16);
}

static uint64_t size_read(const struct perfring_format *format, const struct perfring_read *read)
{
	if (!format)
		return 0;
	if (!(format->read_format & PERFRING_FORMAT_GROUP))
		return read->nr == 1 ? perfring_format_read_least(format->read_format) : TOO_MUCH;
	return perfring_format_read_head(format->read_format) +
	       size_many(read->nr, perfring_format_read_entry(format->read_format));
}

static uint64_t size_poke(const struct perfring_format *format, const struct perfring_poke *poke)
{
	(void)format;
	return round_up(UINT64_C(4) + poke->old_len + poke->new_len);
}

static uint64_t size_rest(const struct perfring_format *format, const struct perfring_bytes *bytes)
{
	(void)format;
	return size_many(bytes->size, 1);
}

int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record)
{
	uint64_t size = sizeof(struct perf_event_header);

	if (record->type == PERFRING_RECORD_SAMPLE)
		return -EINVAL;
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) size += size_##kind(format, &is->member);
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	size = round_up(size + record->trailing_size) + trailer_size(format, record->type);
	return size > RECORD_MOST ? -EINVAL : (int64_t)size;
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
	perfring_put_bytes(&scan->cursor, string->data, string->size);
	perfring_put_zeros(&scan->cursor, 1);
	put_padding(scan);
}

static void put_list(struct scan *scan, const struct perfring_list *list)
{
	perfring_put_word(&scan->cursor, list->nr);
	perfring_put_bytes(&scan->cursor, list->words, list->nr * 8);
}

static void put_links(struct scan *scan, const struct perfring_links *links)
{
	perfring_put_word(&scan->cursor, links->nr);
	perfring_put_bytes(&scan->cursor, links->words, links->nr * 16);
}

/* In the format's shape, whatever the shape of the block that `read` points to. */
static void put_read(struct scan *scan, const struct perfring_read *read)
{
	struct perfring_cursor *cursor = &scan->cursor;
	uint64_t shape = scan->format ? scan->format->read_format : 0;
	bool group = shape & PERFRING_FORMAT_GROUP;
	uint64_t i;

	if (!scan->format)
		return;
	perfring_put_word(cursor, group ? read->nr : perfring_read_value(read, 0));
	if (shape & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
		perfring_put_word(cursor, read->enabled);
	if (shape & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
		perfring_put_word(cursor, read->running);
	for (i = 0; i < read->nr; i++) {
		if (group)
			perfring_put_word(cursor, perfring_read_value(read, i));
		if (shape & PERFRING_FORMAT_ID)
			perfring_put_word(cursor, perfring_read_id(read, i));
		if (shape & PERFRING_FORMAT_LOST)
			perfring_put_word(cursor, perfring_read_lost(read, i));
	}
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
	scan.cursor = perfring_cursor_over(room, sizeof(header), (uint32_t)needed);
	scan.format = format;
	scan.misc = record->misc;
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) put_##kind(&scan, &is->member);
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	perfring_put_bytes(&scan.cursor, record->trailing, record->trailing_size);
	put_padding(&scan);
	if (trailer_size(format, record->type))
		put_trailer(format, &scan.cursor, &record->trailer);
	header.type = record->type;
	header.misc = scan.misc;
	header.size = (uint16_t)needed;
	memcpy(room, &header, sizeof(header));
	return needed;
}
