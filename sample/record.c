/* record.c - every record but SAMPLE: names, decoding, encoding, all from records.def. */
#include "attr.h"
#include "layout.h"
#include "members.h"
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

static uint32_t trailer_size(const struct perfring_format *format, uint32_t type)
{
	return format && type < PERFRING_RECORD_OF_PERF ? perfring_format_trailer(format) : 0;
}

/* ---- a record on the way: its members one after another ---- */

struct scan {
	struct perfring_cursor cursor; /* ends where the trailer begins */
	const struct perfring_format *format;
	uint16_t misc;
	bool is_cut; /* a text shorter than its kind was put: what comes after it would be read as its end */
};

static struct scan scan_of(const struct perfring_format *format, uint16_t misc, const void *bytes, uint32_t at,
			   uint32_t end)
{
	return (struct scan){.cursor = perfring_cursor_init(bytes, at, end), .format = format, .misc = misc};
}

enum {
	FILE_ID_SIZE = sizeof(((struct perfring_file_id *)0)->build_id) + 4,
};

static const char ends_early[] = "record ends inside this member";

/* ---- kinds by their layouts: each part goes to, or comes from, the member of the kind's struct that has its name ---- */

static const struct bound {
	enum perfring_kind kind;
	uint16_t offset;
	uint16_t size;
	char name[16];
} bounds[] = {
#define PERFRING_KIND_MEMBER(kind, member) \
	{PERFRING_KIND_##kind, offsetof(perfring_kind_##kind, member), sizeof(((perfring_kind_##kind *)0)->member), \
	 #member},
#include <perfring/kinds.def>
};

static const struct bound *bound_of(enum perfring_kind kind, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (bounds[i].kind == kind && !strncmp(bounds[i].name, name, length) && !bounds[i].name[length])
			return &bounds[i];
	return NULL;
}

static void keep_number(enum perfring_kind kind, const char *name, void *to, uint64_t number)
{
	const struct bound *bound = bound_of(kind, name, strlen(name));

	if (bound)
		perfring_number_put((unsigned char *)to + bound->offset, bound->size, number);
}

/* Bytes where they lie, and how many; those of a fixed number in the struct itself. */
static void keep_part(enum perfring_kind kind, const struct perfring_layout_member *part, void *to)
{
	const struct bound *bound = bound_of(kind, part->name, strlen(part->name));

	if (!bound)
		return;
	if (part->kind == PERFRING_LAYOUT_NUMBER) {
		keep_number(kind, part->name, to, part->number < part->most ? part->number : part->most);
	} else if (part->is_fixed) {
		memcpy((unsigned char *)to + bound->offset, part->bytes, bound->size);
	} else {
		memcpy((unsigned char *)to + bound->offset, &part->bytes, sizeof(part->bytes));
		keep_number(kind, "size", to, part->size);
		keep_number(kind, "room", to, part->space);
		if (part->kind == PERFRING_LAYOUT_PARTS)
			keep_number(kind, "nr", to, part->number);
	}
}

static const char *take_laid(struct scan *scan, enum perfring_kind kind, void *to, size_t size)
{
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	memset(to, 0, size);
	perfring_layout_open_member(&walk, kind, scan->misc, scan->cursor.base, scan->cursor.position,
				    scan->cursor.length);
	walk.is_whole = true;
	while (perfring_layout_next(&walk, &part) == 1)
		if (part.name[0])
			keep_part(kind, &part, to);
	scan->cursor.position = (uint32_t)walk.at;
	if (kind == PERFRING_KIND_build_id && !(scan->misc & PERFRING_RECORD_MISC_BUILD_ID_SIZE))
		((struct perfring_build_id *)to)->size = sizeof(((struct perfring_build_id *)to)->bytes);
	return walk.fault.what;
}

static const char *take_id128(struct scan *scan, struct perfring_file_id *file)
{
	struct perfring_cursor half;
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, FILE_ID_SIZE))
		return ends_early;
	memset(file, 0, sizeof(*file));
	half = perfring_cursor_init(bytes, 0, FILE_ID_SIZE);
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

/* It need not hold a NUL (docs/abi.md 14.41). */
static const char *take_string(struct scan *scan, struct perfring_string *string)
{
	const void *bytes = NULL, *nul;
	uint32_t room = perfring_cursor_left(&scan->cursor);

	perfring_take_bytes(&scan->cursor, &bytes, room);
	nul = memchr(bytes, 0, room);
	string->data = bytes;
	string->size = nul ? (uint32_t)((const char *)nul - string->data) : room;
	string->room = room;
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

/* NULL, or what is wrong. */
static const char *take(struct scan *scan, enum perfring_kind kind, void *to, size_t size)
{
	switch (kind) {
	case PERFRING_KIND_u16:
		return perfring_take_short(&scan->cursor, to) ? NULL : ends_early;
	case PERFRING_KIND_u32:
		return perfring_take_half(&scan->cursor, to) ? NULL : ends_early;
	case PERFRING_KIND_u64:
		return perfring_take_word(&scan->cursor, to) ? NULL : ends_early;
	case PERFRING_KIND_id128:
		return take_id128(scan, to);
	case PERFRING_KIND_string:
		return take_string(scan, to);
	case PERFRING_KIND_read:
		return take_read(scan, to);
	default:
		return take_laid(scan, kind, to, size);
	}
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
	const struct member_row *row;
	struct perfring_cursor end;
	struct scan scan;
	const char *what;
	uint32_t at, tail;

	decoded->type = header.type;
	decoded->misc = header.misc;
	decoded->size = header.size;
	decoded->padding = 0;
	decoded->trailer.present = 0;
	decoded->is.sample.reserved_ = 0;
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
	scan = scan_of(format, decoded->misc, record, sizeof(*record), decoded->size - tail);
	for (row = perfring_members_of(decoded->type); row->kind != PERFRING_KINDS; row++) {
		if (PERFRING_UNLIKELY(!perfring_members_has(decoded, row))) {
			memset(perfring_member_in(decoded, row), 0, row->size);
			continue;
		}
		at = scan.cursor.position;
		what = take(&scan, (enum perfring_kind)row->kind, perfring_member_in(decoded, row), row->size);
		if (PERFRING_UNLIKELY(what))
			return perfring_fault_set(fault, at, what);
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

void perfring_record_walk(struct perfring_layout_walk *walk, const struct perfring_record *decoded,
			  const struct perf_event_header *record, const void *member)
{
	const struct member_row *row;
	struct perfring_layout_member part;
	uint64_t at = sizeof(*record);
	uint64_t end = (uint64_t)((const char *)decoded->trailing - (const char *)record) + decoded->trailing_size;

	perfring_layout_open(walk, "", record, end, end);
	for (row = perfring_members_of(decoded->type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring_members_has(decoded, row))
			continue;
		perfring_layout_open_member(walk, (enum perfring_kind)row->kind, decoded->misc, record, at, end);
		if (perfring_member_of(decoded, row) == member)
			return;
		walk->is_whole = true;
		while (perfring_layout_next(walk, &part) == 1)
			;
		at = walk->at;
	}
}

/* ---- encoding: put, or only measured, at a cursor that has no bytes ---- */

static bool put_bytes(struct scan *scan, const void *bytes, uint64_t size)
{
	if (size > perfring_cursor_left(&scan->cursor))
		return false;
	if (scan->cursor.base)
		return bytes ? perfring_put_bytes(&scan->cursor, bytes, size) : perfring_put_zeros(&scan->cursor, size);
	scan->cursor.position += (uint32_t)size;
	return true;
}

static bool put_padding(struct scan *scan)
{
	return put_bytes(scan, NULL, -scan->cursor.position & 7);
}

static void set_misc(struct scan *scan, uint16_t bit, bool is_set)
{
	scan->misc = (uint16_t)(is_set ? scan->misc | bit : scan->misc & ~bit);
}

static bool put_id128(struct scan *scan, const struct perfring_file_id *file)
{
	uint8_t bytes[FILE_ID_SIZE] = {file->build_id_size};

	set_misc(scan, PERFRING_RECORD_MISC_MMAP_BUILD_ID, file->has_build_id);
	if (!file->has_build_id)
		return put_bytes(scan, &file->maj, 4) && put_bytes(scan, &file->min, 4) &&
		       put_bytes(scan, &file->ino, 8) && put_bytes(scan, &file->ino_generation, 8);
	if (bytes[0] > sizeof(file->build_id))
		bytes[0] = sizeof(file->build_id);
	memcpy(bytes + 4, file->build_id, sizeof(file->build_id));
	return put_bytes(scan, bytes, sizeof(bytes));
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

/* most: the bytes of a text, 0 of a string.  A text may be shorter where nothing comes after it. */
static bool put_string(struct scan *scan, const struct perfring_string *string, uint32_t most)
{
	uint32_t size = string->room ? string->room : string->size;

	if (!is_whole(string) || (most && size > most) || !put_bytes(scan, string->data, size))
		return false;
	scan->is_cut = most && string->room && string->room < most;
	if (string->room)
		return true;
	return most ? put_bytes(scan, NULL, most - size) : put_bytes(scan, NULL, 1) && put_padding(scan);
}

static bool put_read(struct scan *scan, const struct perfring_read *read)
{
	uint64_t size = scan->format ? perfring_size_read(read, scan->format->read_format) : 0;

	if (!scan->cursor.base)
		return put_bytes(scan, NULL, size);
	if (size)
		perfring_put_read(&scan->cursor, read, scan->format->read_format);
	return true;
}

/* An attr that says another size would be read as another one. */
static bool put_attr(struct scan *scan, const struct perfring_bytes *attr)
{
	return attr->size >= PERFRING_ATTR_MIN && attr->size == perfring_attr_own_size(attr->data) &&
	       put_bytes(scan, attr->data, attr->size);
}

/* What a walk asks for where it is going to read it.  Without bytes it is only measured. */
struct put {
	const unsigned char *from;
	enum perfring_kind kind;
};

static uint64_t number_from(const struct put *put, const char *name, size_t length)
{
	const struct bound *bound = bound_of(put->kind, name, length);

	return bound ? perfring_number_get(put->from + bound->offset, bound->size) : 0;
}

static const void *bytes_from(const struct put *put, const struct perfring_layout_member *part, const char *name,
			      size_t length)
{
	const struct bound *bound = bound_of(put->kind, name, length);
	const void *bytes = NULL;

	if (bound && part->is_fixed)
		return put->from + bound->offset;
	if (bound)
		memcpy(&bytes, put->from + bound->offset, sizeof(bytes));
	return bytes;
}

static void put_part(struct perfring_layout_walk *walk, struct perfring_layout_member *part)
{
	struct put *put = walk->filler;
	const char *name = walk->part + strcspn(walk->part, ": ");
	unsigned char *to = (unsigned char *)(uintptr_t)part->bytes;
	const void *bytes;
	size_t length;

	name += *name == ':';
	length = strcspn(name, " ");
	if (part->kind == PERFRING_LAYOUT_NUMBER) {
		part->number = number_from(put, name, length);
		if (part->number > part->most)
			part->number = part->most;
		return;
	}
	bytes = bytes_from(put, part, name, length);
	if (part->kind == PERFRING_LAYOUT_PARTS && part->use == PERFRING_LAYOUT_CHOICE) {
		part->number = part->entry ? bytes != NULL : number_from(put, name, length);
		return;
	}
	if (part->is_open) {
		part->size = part->entry ? number_from(put, "nr", 2) : number_from(put, "size", 4);
		part->size = perfring_size_many(part->size, part->entry ? part->entry : 1);
		walk->size = walk->at + part->size;
	}
	if (walk->bytes && part->size && !(part->is_open && part->entry)) {
		if (bytes)
			memcpy(to, bytes, (size_t)part->size);
		else
			memset(to, 0, (size_t)part->size);
	}
}

static bool put_laid(struct scan *scan, enum perfring_kind kind, const void *from)
{
	struct put put = {from, kind};
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	perfring_layout_open_member(&walk, kind, 0, scan->cursor.base, scan->cursor.position, scan->cursor.length);
	walk.is_whole = true;
	walk.fill = put_part;
	walk.filler = &put;
	while (perfring_layout_next(&walk, &part) == 1)
		;
	if (walk.at > scan->cursor.length)
		return false;
	scan->cursor.position = (uint32_t)walk.at;
	if (kind == PERFRING_KIND_build_id)
		set_misc(scan, PERFRING_RECORD_MISC_BUILD_ID_SIZE, ((const struct perfring_build_id *)from)->has_size);
	return !walk.fault.what;
}

/* Whether it fits, and would be decoded as it is. */
static bool put(struct scan *scan, const struct member_row *row, const void *from)
{
	enum perfring_kind kind = (enum perfring_kind)row->kind;

	if (scan->is_cut)
		return false;
	switch (kind) {
	case PERFRING_KIND_u16:
	case PERFRING_KIND_u32:
	case PERFRING_KIND_u64:
		return put_bytes(scan, from, row->size);
	case PERFRING_KIND_id128:
		return put_id128(scan, from);
	case PERFRING_KIND_string:
	case PERFRING_KIND_text64:
	case PERFRING_KIND_text512:
		return put_string(scan, from, perfring_layout_text_size(kind));
	case PERFRING_KIND_read:
		return put_read(scan, from);
	case PERFRING_KIND_attr:
		return put_attr(scan, from);
	default:
		return put_laid(scan, kind, from);
	}
}

static bool put_record(struct scan *scan, const struct perfring_record *record)
{
	const struct member_row *row;

	for (row = perfring_members_of(record->type); row->kind != PERFRING_KINDS; row++)
		if (perfring_members_has(record, row) && !put(scan, row, perfring_member_of(record, row)))
			return false;
	if (scan->is_cut && record->trailing_size)
		return false;
	return put_bytes(scan, record->trailing, record->trailing_size) &&
	       (record->type >= PERFRING_RECORD_OF_PERF || put_padding(scan));
}

int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record)
{
	uint32_t most = record->type < PERFRING_RECORD_OF_PERF ? PERFRING_RECORD_MAX : UINT16_MAX;
	uint32_t tail = trailer_size(format, record->type);
	struct scan scan = scan_of(format, record->misc, NULL, sizeof(struct perf_event_header), most - tail);

	if (record->type == PERFRING_RECORD_SAMPLE || !put_record(&scan, record))
		return -EINVAL;
	return scan.cursor.position + tail;
}

int64_t perfring_record_encode(const struct perfring_format *format, const struct perfring_record *record, void *room,
			       size_t size)
{
	struct perf_event_header header = {.type = record->type};
	int64_t needed = perfring_record_size(format, record);
	struct scan scan;

	if (needed < 0)
		return needed;
	if (size < (uint64_t)needed)
		return -ENOSPC;
	scan = scan_of(format, record->misc, room, sizeof(header), (uint32_t)needed);
	put_record(&scan, record);
	if (trailer_size(format, record->type))
		put_trailer(format, &scan.cursor, &record->trailer);
	header.misc = scan.misc;
	header.size = (uint16_t)needed;
	memcpy(room, &header, sizeof(header));
	return needed;
}
