/* record.c - every record but SAMPLE: names, decoding, encoding, all from records.def.
 *
 * The functions of record.h.  A kind that the kernel writes has a take and a put function here, because records of it are many;
 * other kinds are walked by their layout (layout.h).  The trailer comes from trailer.def.  No allocation; signal handlers decode
 * too (soft/).
 */
#include "attr.h"
#include "layout_private.h"
#include "members.h"
#include "mirror.h"
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

/* ---- a scan over the members of a record ---- */

struct scan {
	struct perfring_cursor cursor; /* ends where the trailer begins */
	const struct perfring_format *format;
	uint16_t misc;
	bool is_cut; /* a text shorter than its kind was put: more bytes would be read as its end */
};

/* Stores member by member: a copy of the whole struct would wait for these stores. */
FOLDED void begin_scan(struct scan *scan, const struct perfring_format *format, uint16_t misc, const void *bytes,
		       uint32_t end)
{
	scan->cursor = perfring_cursor_init(bytes, sizeof(struct perf_event_header), end);
	scan->format = format;
	scan->misc = misc;
	scan->is_cut = false;
}

enum {
	FILE_ID_SIZE = sizeof(((struct perfring_file_id *)0)->build_id) + 4,
	LINK_SIZE = 2 * sizeof(perfring_word),
};

static const char ends_early[] = "record ends inside this member";

/* ---- kinds by their layouts: a part is the member of the kind's struct that has its name ---- */

static const struct binding {
	enum perfring_kind kind;
	uint16_t offset;
	uint16_t size;
	char name[16];
} bindings[] = {
#define PERFRING_KIND_MEMBER(kind, member) \
	{PERFRING_KIND_##kind, offsetof(perfring_kind_##kind, member), sizeof(((perfring_kind_##kind *)0)->member), \
	 #member},
#include <perfring/kinds.def>
};

static const struct binding *binding_of(enum perfring_kind kind, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++)
		if (bindings[i].kind == kind && !strncmp(bindings[i].name, name, length) && !bindings[i].name[length])
			return &bindings[i];
	return NULL;
}

static void keep_number(enum perfring_kind kind, const char *name, void *to, uint64_t number)
{
	const struct binding *binding = binding_of(kind, name, strlen(name));

	if (binding)
		perfring__number_put((unsigned char *)to + binding->offset, binding->size, number);
}

/* Bytes are kept by their address and number, or, if their number is fixed, in the struct itself. */
static void keep_part(enum perfring_kind kind, const struct perfring_layout_member *part, void *to)
{
	const struct binding *binding = binding_of(kind, part->name, strlen(part->name));

	if (!binding)
		return;
	if (part->kind == PERFRING_LAYOUT_NUMBER) {
		keep_number(kind, part->name, to, part->number < part->most ? part->number : part->most);
	} else if (part->is_fixed) {
		memcpy((unsigned char *)to + binding->offset, part->bytes, binding->size);
	} else {
		memcpy((unsigned char *)to + binding->offset, &part->bytes, sizeof(part->bytes));
		keep_number(kind, "size", to, part->size);
		keep_number(kind, "space", to, part->space);
		if (part->kind == PERFRING_LAYOUT_PARTS)
			keep_number(kind, "nr", to, part->number);
	}
}

static const char *walk_laid(struct scan *scan, enum perfring_kind kind, void *to, size_t size)
{
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	memset(to, 0, size);
	perfring__layout_open_member(&walk, kind, scan->misc, scan->cursor.base, scan->cursor.position,
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

/* The walk has a copy, so that the scan stays in registers. */
FOLDED const char *take_laid(struct scan *scan, enum perfring_kind kind, void *to, size_t size)
{
	struct scan copy = *scan;
	const char *what = walk_laid(&copy, kind, to, size);

	scan->cursor.position = copy.cursor.position;
	return what;
}

/* ---- kinds that the kernel writes: one function a kind.  Each returns NULL, or what is wrong ---- */

/* A size above that of build ids is no size: the bit was left set by another event's record (docs/abi.md 14.24). */
static const char *take_id128(struct scan *scan, struct perfring_file_id *file)
{
	struct perfring_cursor half;
	const void *bytes;

	if (!perfring_take_bytes(&scan->cursor, &bytes, FILE_ID_SIZE))
		return ends_early;
	memset(file, 0, sizeof(*file));
	half = perfring_cursor_init(bytes, 0, FILE_ID_SIZE);
	file->has_build_id =
		scan->misc & PERFRING_RECORD_MISC_MMAP_BUILD_ID && *(const uint8_t *)bytes <= sizeof(file->build_id);
	if (file->has_build_id) {
		file->build_id_size = *(const uint8_t *)bytes;
		memcpy(file->build_id, (const uint8_t *)bytes + 4, sizeof(file->build_id));
		return NULL;
	}
	perfring_take_half(&half, &file->maj);
	perfring_take_half(&half, &file->min);
	perfring_take_word(&half, &file->ino);
	perfring_take_word(&half, &file->ino_generation);
	return NULL;
}

/* Takes a string up to the end of the record, which may have no NUL (docs/abi.md 14.41). */
static const char *take_string(struct scan *scan, struct perfring_string *string)
{
	const void *bytes = NULL, *nul;
	uint32_t space = perfring_cursor_left(&scan->cursor);

	perfring_take_bytes(&scan->cursor, &bytes, space);
	nul = memchr(bytes, 0, space);
	string->data = bytes;
	string->size = nul ? (uint32_t)((const char *)nul - string->data) : space;
	string->space = space;
	return NULL;
}

/* Takes a read block.  Without a format its layout is unknown: then its bytes stay in `trailing`. */
static const char *take_read(struct scan *scan, struct perfring_read *read)
{
	if (scan->format)
		return perfring_take_read(&scan->cursor, read, scan->format->read_format);
	memset(read, 0, sizeof(*read));
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

static const char *take_links(struct scan *scan, struct perfring_links *links)
{
	if (!perfring_take_word(&scan->cursor, &links->nr))
		return ends_early;
	if (links->nr > perfring_cursor_left(&scan->cursor) / LINK_SIZE)
		return "more entries than there are bytes for";
	perfring_take_words(&scan->cursor, &links->words, links->nr * 2);
	return NULL;
}

/* Takes old and new bytes, and their padding, which the end of the record may cut. */
static const char *take_poke(struct scan *scan, struct perfring_poke *poke)
{
	uint32_t left, padding;

	if (!perfring_take_short(&scan->cursor, &poke->old_len) || !perfring_take_short(&scan->cursor, &poke->new_len))
		return ends_early;
	if (!perfring_take_bytes(&scan->cursor, &poke->old_bytes, poke->old_len) ||
	    !perfring_take_bytes(&scan->cursor, &poke->new_bytes, poke->new_len))
		return "more bytes than there are";
	left = perfring_cursor_left(&scan->cursor);
	padding = -scan->cursor.position & 7;
	scan->cursor.position += left < padding ? left : padding;
	return NULL;
}

/* Takes a member of a kind, which is a constant.  Returns NULL, or what is wrong. */
FOLDED const char *take(struct scan *scan, enum perfring_kind kind, void *to, size_t size)
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
	case PERFRING_KIND_tag:
		return take_tag(scan, to);
	case PERFRING_KIND_string:
		return take_string(scan, to);
	case PERFRING_KIND_list:
		return perfring_take_list(&scan->cursor, to);
	case PERFRING_KIND_links:
		return take_links(scan, to);
	case PERFRING_KIND_read:
		return take_read(scan, to);
	case PERFRING_KIND_poke:
		return take_poke(scan, to);
	default:
		return take_laid(scan, kind, to, size);
	}
}

/* ---- the trailer: trailer.def ---- */

/* The caller has tested its size. */
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

int perfring__record_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
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
	begin_scan(&scan, format, decoded->misc, record, decoded->size - tail);
	switch (decoded->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		struct perfring_record_##noun *is = &decoded->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) \
	at = scan.cursor.position; \
	what = take(&scan, PERFRING_KIND_##kind, &is->member, sizeof(is->member)); \
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
	return perfring__record_decode_within(format, record, header, decoded, fault);
}

void perfring_record_walk(struct perfring_layout_walk *walk, const struct perfring_record *decoded,
			  const struct perf_event_header *record, const void *member)
{
	const struct member_row *row;
	struct perfring_layout_member part;
	uint64_t at = sizeof(*record);
	uint64_t end = (uint64_t)((const char *)decoded->trailing - (const char *)record) + decoded->trailing_size;

	perfring_layout_open(walk, "", record, end, end);
	for (row = perfring__members_of(decoded->type); row->kind != PERFRING_KINDS; row++) {
		if (!perfring__members_has(decoded, row))
			continue;
		perfring__layout_open_member(walk, (enum perfring_kind)row->kind, decoded->misc, record, at, end);
		if (perfring__member_of(decoded, row) == member)
			return;
		walk->is_whole = true;
		while (perfring_layout_next(walk, &part) == 1)
			;
		at = walk->at;
	}
}

/* ---- encoding; a cursor without bytes only measures.  False: the member cannot be encoded, as measuring finds ---- */

/* A measured sum may exceed the largest record: the caller tests it. */
FOLDED bool put_bytes(struct scan *scan, const void *bytes, uint64_t size)
{
	if (scan->cursor.base)
		return bytes ? perfring_put_bytes(&scan->cursor, bytes, size) : perfring_put_zeros(&scan->cursor, size);
	scan->cursor.position += (uint32_t)(size < PERFRING_TOO_MUCH ? size : PERFRING_TOO_MUCH);
	return true;
}

FOLDED bool put_padding(struct scan *scan)
{
	return put_bytes(scan, NULL, -scan->cursor.position & 7);
}

static void set_misc(struct scan *scan, uint16_t bit, bool is_set)
{
	scan->misc = (uint16_t)(is_set ? scan->misc | bit : scan->misc & ~bit);
}

FOLDED bool put_id128(struct scan *scan, const struct perfring_file_id *file)
{
	uint8_t bytes[FILE_ID_SIZE] = {file->build_id_size};

	if (!scan->cursor.base)
		return put_bytes(scan, NULL, sizeof(bytes));
	set_misc(scan, PERFRING_RECORD_MISC_MMAP_BUILD_ID, file->has_build_id);
	if (!file->has_build_id)
		return put_bytes(scan, &file->maj, 4) && put_bytes(scan, &file->min, 4) &&
		       put_bytes(scan, &file->ino, 8) && put_bytes(scan, &file->ino_generation, 8);
	if (bytes[0] > sizeof(file->build_id))
		bytes[0] = sizeof(file->build_id);
	memcpy(bytes + 4, file->build_id, sizeof(file->build_id));
	return put_bytes(scan, bytes, sizeof(bytes));
}

/* Whether decoding returns its size: no NUL inside, and one after it unless it fills its space. */
static bool is_whole(const struct perfring_string *string)
{
	if (string->size > PERFRING_RECORD_MAX || (string->space && string->size > string->space))
		return false;
	if (string->size < string->space && string->data[string->size])
		return false;
	return !string->size || !memchr(string->data, 0, string->size);
}

/* most: the size of a text, 0 for a string.  A text may be shorter at the end of the record. */
FOLDED bool put_string(struct scan *scan, const struct perfring_string *string, uint32_t most)
{
	uint32_t size = string->space ? string->space : string->size;

	if (!scan->cursor.base && (!is_whole(string) || (most && size > most)))
		return false;
	scan->is_cut = most && string->space && string->space < most;
	if (!put_bytes(scan, string->data, size))
		return false;
	if (string->space)
		return true;
	return most ? put_bytes(scan, NULL, most - size) : put_bytes(scan, NULL, 1) && put_padding(scan);
}

FOLDED bool put_list(struct scan *scan, const void *entries, const uint64_t *nr, uint32_t size)
{
	return put_bytes(scan, nr, sizeof(*nr)) && put_bytes(scan, entries, perfring_size_many(*nr, size));
}

FOLDED bool put_read(struct scan *scan, const struct perfring_read *read)
{
	uint64_t read_format = scan->format ? scan->format->read_format : 0;

	if (!scan->cursor.base)
		return put_bytes(scan, NULL, scan->format ? perfring_size_read(read, read_format) : 0);
	if (scan->format)
		perfring_put_read(&scan->cursor, read, read_format);
	return true;
}

FOLDED bool put_poke(struct scan *scan, const struct perfring_poke *poke)
{
	return put_bytes(scan, &poke->old_len, 2) && put_bytes(scan, &poke->new_len, 2) &&
	       put_bytes(scan, poke->old_bytes, poke->old_len) && put_bytes(scan, poke->new_bytes, poke->new_len) &&
	       put_padding(scan);
}

/* Decoding takes an attr by its own size. */
static bool put_attr(struct scan *scan, const struct perfring_bytes *attr)
{
	return attr->size >= PERFRING_ATTR_MIN && attr->size == perfring__attr_own_size(attr->data) &&
	       put_bytes(scan, attr->data, attr->size);
}

/* The member that a walk over its layout encodes. */
struct put {
	const unsigned char *from;
	enum perfring_kind kind;
};

static uint64_t number_from(const struct put *put, const char *name, size_t length)
{
	const struct binding *binding = binding_of(put->kind, name, length);

	return binding ? perfring__number_get(put->from + binding->offset, binding->size) : 0;
}

static const void *bytes_from(const struct put *put, const struct perfring_layout_member *part, const char *name,
			      size_t length)
{
	const struct binding *binding = binding_of(put->kind, name, length);
	const void *bytes = NULL;

	if (binding && part->is_fixed)
		return put->from + binding->offset;
	if (binding)
		memcpy(&bytes, put->from + binding->offset, sizeof(bytes));
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

static bool put_walk(struct scan *scan, enum perfring_kind kind, const void *from)
{
	struct put put = {from, kind};
	struct perfring_layout_member part;
	struct perfring_layout_walk walk;

	if (scan->cursor.position > scan->cursor.length)
		return false;
	perfring__layout_open_member(&walk, kind, 0, scan->cursor.base, scan->cursor.position, scan->cursor.length);
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

/* Kinds that only perf writes: not inline. */
static __attribute__((noinline)) bool put_of_perf(struct scan *scan, enum perfring_kind kind, const void *from)
{
	switch (kind) {
	case PERFRING_KIND_text64:
	case PERFRING_KIND_text512:
		return put_string(scan, from, perfring__layout_text_size(kind));
	case PERFRING_KIND_attr:
		return put_attr(scan, from);
	default:
		return put_walk(scan, kind, from);
	}
}

FOLDED bool put_laid(struct scan *scan, enum perfring_kind kind, const void *from)
{
	struct scan copy = *scan;
	bool is_put = put_of_perf(&copy, kind, from);

	*scan = copy;
	return is_put;
}

/* Returns false for a member that decoding would not return as it is.  The kind is a constant. */
FOLDED bool put(struct scan *scan, enum perfring_kind kind, const void *from)
{
	if (scan->is_cut)
		return false;
	switch (kind) {
	case PERFRING_KIND_u16:
		return put_bytes(scan, from, 2);
	case PERFRING_KIND_u32:
		return put_bytes(scan, from, 4);
	case PERFRING_KIND_u64:
		return put_bytes(scan, from, 8);
	case PERFRING_KIND_id128:
		return put_id128(scan, from);
	case PERFRING_KIND_tag:
		return put_bytes(scan, from, sizeof(struct perfring_tag));
	case PERFRING_KIND_string:
		return put_string(scan, from, 0);
	case PERFRING_KIND_list:
		return put_list(scan, ((const struct perfring_list *)from)->words,
				&((const struct perfring_list *)from)->nr, sizeof(perfring_word));
	case PERFRING_KIND_links:
		return put_list(scan, ((const struct perfring_links *)from)->words,
				&((const struct perfring_links *)from)->nr, LINK_SIZE);
	case PERFRING_KIND_read:
		return put_read(scan, from);
	case PERFRING_KIND_poke:
		return put_poke(scan, from);
	default:
		return put_laid(scan, kind, from);
	}
}

FOLDED bool put_record(struct scan *scan, const struct perfring_record *record)
{
	switch (record->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &record->is.noun; \
\
		(void)is;
#define PERFRING_MEMBER(kind, member, show) \
	if (PERFRING_UNLIKELY(!put(scan, PERFRING_KIND_##kind, &is->member))) \
		return false;
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
	if (scan->is_cut && record->trailing_size)
		return false;
	return put_bytes(scan, record->trailing, record->trailing_size) &&
	       (record->type >= PERFRING_RECORD_OF_PERF || put_padding(scan));
}

int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record)
{
	uint32_t most = record->type < PERFRING_RECORD_OF_PERF ? PERFRING_RECORD_MAX : UINT16_MAX;
	uint32_t tail = trailer_size(format, record->type);
	struct scan scan;

	begin_scan(&scan, format, record->misc, NULL, most - tail);
	if (record->type == PERFRING_RECORD_SAMPLE || !put_record(&scan, record) ||
	    scan.cursor.position > scan.cursor.length)
		return -EINVAL;
	return scan.cursor.position + tail;
}

int64_t perfring_record_encode(const struct perfring_format *format, const struct perfring_record *record, void *buffer,
			       size_t size)
{
	struct perf_event_header header = {.type = record->type};
	int64_t needed = perfring_record_size(format, record);
	struct scan scan;

	if (needed < 0)
		return needed;
	if (size < (uint64_t)needed)
		return -ENOSPC;
	begin_scan(&scan, format, record->misc, buffer, (uint32_t)needed);
	if (!put_record(&scan, record))
		return -EINVAL;
	if (trailer_size(format, record->type))
		put_trailer(format, &scan.cursor, &record->trailer);
	header.misc = scan.misc;
	header.size = (uint16_t)needed;
	memcpy(buffer, &header, sizeof(header));
	return needed;
}
