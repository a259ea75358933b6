/* format.h - what an attr says about the bytes of its records.
 *
 * A format is the part of struct perf_event_attr that shapes records, and a plan worked out from it once: where id
 * and time lie, how long the trailer is, what a sample needs at least.  A format known at compile time is written as
 *
 *     static const struct perfring_format format = { .sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID };
 *
 * and needs no plan: the inlines become straight loads.  Every other one comes from perfring_format_from_attr, or from the set of
 * formats of a session (perfring_session_formats) or file (perfring_file_formats).
 *
 * Context: unless stated otherwise any thread, also signal handlers; nothing is allocated.  Sets: the table below; open, close,
 * add and put allocate.
 */
#ifndef PERFRING_FORMAT_H
#define PERFRING_FORMAT_H

#include <perfring/base.h>
#include <perfring/kinds.def>

PERFRING_BEGIN

/* PERFRING_SAMPLE_IP ...: bits of attr.sample_type. */
enum perfring_sample_bit {
#define PERFRING_FIELD(NAME, bit, ...) PERFRING_SAMPLE_##NAME = 1 << (bit),
#include <perfring/fields.def>
};

/* All bits of sample_type that this version knows. */
enum {
#define PERFRING_FIELD(NAME, bit, ...) | (1 << (bit))
	PERFRING_SAMPLE_KNOWN = 0
#include <perfring/fields.def>
};

/* PERFRING_TYPE_SOFTWARE, PERFRING_FORMAT_GROUP ...: every number of values.def. */
enum perfring_value {
#define PERFRING_VALUE(group, NAME, value) PERFRING_##NAME = (value),
#include <perfring/values.def>
};

/* PERFRING_ATTR_FLAG_inherit ...: bit numbers in the flag word. */
enum perfring_attr_flag {
#define PERFRING_ATTR_FLAG(flag, bit, width) PERFRING_ATTR_FLAG_##flag = (bit),
#include <perfring/values.def>
};

/* Members are the attr's own, under their own names.  `flags` is its flag word (little-endian bit numbers). */
struct perfring_format {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint64_t sample_regs_intr;
	uint64_t flags;
	uint32_t index; /* the number of its event in its set */
	/* The plan.  Offsets from the record's start in a SAMPLE, back from its end in a trailer; 0: there is none. */
	uint16_t least;   /* bytes of a SAMPLE record that has every field, each as short as it can be */
	uint16_t trailer; /* bytes of the sample_id trailer; 0 without sample_id_all */
	uint16_t sample_id_at;
	uint16_t sample_time_at;
	uint16_t trailer_id_back;
	uint16_t trailer_time_back;
	uint8_t sample_regs_user_nr; /* bits in the mask of that name */
	uint8_t sample_regs_intr_nr;
	/* Not of the plan. */
	uint16_t arch;              /* PERFRING_ARCH_: whose registers these are; 0 is this build's own */
	uint32_t sample_stack_user; /* for check: what the kernel may have done (docs/abi.md 14.3) */
	uint64_t reserved[3];
};

static_assert(sizeof(struct perfring_format) == 96, "format");

/* A struct perf_event_header at any address, in memory of any type: to be accessed through this.  (A typedef of the kernel's struct
 * would not take its aliasing rules away.) */
typedef struct {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
} __attribute__((__packed__, __may_alias__)) perfring_header;

static_assert(sizeof(perfring_header) == sizeof(struct perf_event_header), "header");

/* A header as one word in native byte order: one store instead of three. */
PERFRING_INNER uint64_t perfring_format_header_word(uint32_t type, uint16_t misc, uint16_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return type | (uint64_t)misc << 32 | (uint64_t)size << 48;
#else
	return (uint64_t)type << 32 | (uint64_t)misc << 16 | size;
#endif
}

/* Whether a sample_id trailer has a field: by the table's column; IDENTIFIER is the last one. */
#define PERFRING_TRAILER_no 0
#define PERFRING_TRAILER_yes 1
#define PERFRING_TRAILER_last 2

/* Bytes of a read_format block before its entries (docs/abi.md 2.2). */
PERFRING_INLINE uint32_t perfring_format_read_head(uint64_t read_format)
{
	return 8 * (uint32_t)(!!(read_format & PERFRING_FORMAT_GROUP) +
			      !!(read_format & PERFRING_FORMAT_TOTAL_TIME_ENABLED) +
			      !!(read_format & PERFRING_FORMAT_TOTAL_TIME_RUNNING));
}

/* Bytes of one entry of a read_format block: the value, with its id and its lost count if it has them. */
PERFRING_INLINE uint32_t perfring_format_read_entry(uint64_t read_format)
{
	return 8 + (uint32_t)(read_format & PERFRING_FORMAT_ID) * 2 +
	       (uint32_t)(read_format & PERFRING_FORMAT_LOST) / 2;
}

/* Bytes of the shortest read_format block: a group may have no entries, another one has one. */
PERFRING_INLINE uint32_t perfring_format_read_least(uint64_t read_format)
{
	return perfring_format_read_head(read_format) +
	       (read_format & PERFRING_FORMAT_GROUP ? 0 : perfring_format_read_entry(read_format));
}

/* The size of a SAMPLE record with every field of the format, each as short as it can be. */
PERFRING_INLINE uint32_t perfring_format_least(const struct perfring_format *format)
{
	uint32_t least = sizeof(struct perf_event_header);

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (format->sample_type & PERFRING_SAMPLE_##NAME) \
		least += PERFRING_FIELD_KIND_##kind(PERFRING_BY_LEAST, sample, a, b);
#include <perfring/fields.def>
	return least;
}

/* Where `field` (one PERFRING_SAMPLE_ bit) begins in a SAMPLE record; 0 when the format has no such field, or when a
 * field of varying length stands before it. */
PERFRING_INLINE uint32_t perfring_format_field_offset(uint64_t sample_type, uint64_t field)
{
	uint32_t at = sizeof(struct perf_event_header);

#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if (field == PERFRING_SAMPLE_##NAME) \
		return sample_type & field ? at : 0; \
	if (sample_type & PERFRING_SAMPLE_##NAME) { \
		if (!PERFRING_FIELD_KIND_##kind(PERFRING_BY_WORD, sample, a, b)) \
			return 0; \
		at += 8; \
	}
#include <perfring/fields.def>
	return 0;
}

/* Bytes from the beginning of `field` in a sample_id trailer to the record's end; 0 when it is not there. */
PERFRING_INLINE uint32_t perfring_format_field_back(uint64_t sample_type, uint64_t field)
{
	uint32_t back = 0;
	bool found = false;

#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	if (PERFRING_TRAILER_##trailer == PERFRING_TRAILER_yes && (sample_type & PERFRING_SAMPLE_##NAME)) { \
		found = found || field == PERFRING_SAMPLE_##NAME; \
		back += found ? 8 : 0; \
	}
#include <perfring/fields.def>
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	if (PERFRING_TRAILER_##trailer == PERFRING_TRAILER_last && (sample_type & PERFRING_SAMPLE_##NAME)) { \
		found = found || field == PERFRING_SAMPLE_##NAME; \
		back += found ? 8 : 0; \
	}
#include <perfring/fields.def>
	return back;
}

/* Whether records but SAMPLE have a sample_id trailer (attr.sample_id_all). */
PERFRING_INLINE bool perfring_format_has_trailer(const struct perfring_format *format)
{
	return format->flags >> PERFRING_ATTR_FLAG_sample_id_all & 1;
}

/* Bytes of the sample_id trailer of every record but SAMPLE (docs/abi.md 4.2). */
PERFRING_INLINE uint32_t perfring_format_trailer(const struct perfring_format *format)
{
	uint32_t size = 0;

	if (!perfring_format_has_trailer(format))
		return 0;
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	if (PERFRING_TRAILER_##trailer != PERFRING_TRAILER_no && (format->sample_type & PERFRING_SAMPLE_##NAME)) \
		size += 8;
#include <perfring/fields.def>
	return size;
}

/* The number of bits of a mask: from the plan, or, with a constant format, counted by the compiler. */
PERFRING_INNER uint32_t perfring_format_nr(const struct perfring_format *format, uint64_t mask, uint32_t planned)
{
	return __builtin_constant_p(mask) || PERFRING_UNLIKELY(!format->least) ? (uint32_t)__builtin_popcountll(mask)
									       : planned;
}

/* Works out the plan from the members above it.  Call it after changing one of them by hand.  Context: any. */
PERFRING_API void perfring_format_plan(struct perfring_format *format);

/* The word at a planned place: `at` bytes from the start of a SAMPLE, `back` bytes from the end of any other record.  Returns
 * false if the record has no such place: then *word is as it was.  _with: by a copy of the header that was checked before, so that nothing outside that
 * size is read, even if another process changes the header in the ring. */
PERFRING_INNER bool perfring_format_word_with(const struct perf_event_header *header, const void *record, uint32_t at,
					       uint32_t back, uint64_t *word)
{
	uint32_t type = header->type, size = header->size, from;

	if (type == PERF_RECORD_SAMPLE)
		from = at;
	else if (type < PERFRING_RECORD_OF_PERF && back && back <= size)
		from = size - back;
	else
		from = 0;
	if (from < sizeof(*header) || from + 8 > size)
		return false;
	memcpy(word, (const unsigned char *)record + from, 8);
	return true;
}

/* The header as it lies at `record`, each member read once: another process may be writing there. */
PERFRING_INNER struct perf_event_header perfring_format_header_of(const struct perf_event_header *record)
{
	const volatile perfring_header *at = (const volatile perfring_header *)record;
	struct perf_event_header header;

	header.type = at->type;
	header.misc = at->misc;
	header.size = at->size;
	return header;
}

/* The same, by the header at `record`. */
PERFRING_INNER bool perfring_format_word_of(const struct perf_event_header *record, uint32_t at, uint32_t back,
					     uint64_t *word)
{
	struct perf_event_header header = perfring_format_header_of(record);

	return perfring_format_word_with(&header, record, at, back, word);
}

/* The record's time in ns, and the id of its event, without decoding the rest; 0 if it has none.  Types from 64 up, which the
 * perf tool writes, have neither.  format: planned; or constant at compile time, else the result is right, but slow. */
PERFRING_INNER uint64_t perfring_format_time_with(const struct perfring_format *format,
						   const struct perf_event_header *header, const void *record)
{
	uint64_t time = 0;
	uint64_t type = format->sample_type;

	if (__builtin_constant_p(type) || PERFRING_UNLIKELY(!format->least))
		perfring_format_word_with(header, record, perfring_format_field_offset(type, PERFRING_SAMPLE_TIME),
					  perfring_format_has_trailer(format)
						  ? perfring_format_field_back(type, PERFRING_SAMPLE_TIME)
						  : 0,
					  &time);
	else
		perfring_format_word_with(header, record, format->sample_time_at, format->trailer_time_back, &time);
	return time;
}

/* The record's time; 0 if it has none.  The record is not decoded; its header is read once. */
PERFRING_INLINE uint64_t perfring_format_time_of(const struct perfring_format *format,
						 const struct perf_event_header *record)
{
	struct perf_event_header header = perfring_format_header_of(record);

	return perfring_format_time_with(format, &header, record);
}

/* The id of the record's event; 0 if it has none. */
PERFRING_INLINE uint64_t perfring_format_id_of(const struct perfring_format *format,
					       const struct perf_event_header *record)
{
	uint64_t id = 0;
	uint64_t type = format->sample_type;
	uint64_t field = type & PERFRING_SAMPLE_IDENTIFIER ? PERFRING_SAMPLE_IDENTIFIER : PERFRING_SAMPLE_ID;

	if (__builtin_constant_p(type) || PERFRING_UNLIKELY(!format->least))
		perfring_format_word_of(
			record, perfring_format_field_offset(type, field),
			perfring_format_has_trailer(format) ? perfring_format_field_back(type, field) : 0, &id);
	else
		perfring_format_word_of(record, format->sample_id_at, format->trailer_id_back, &id);
	return id;
}

/* Reads attr by its own `size` (0 counts as 64), so an attr longer or shorter than the installed header's struct is
 * fine as long as `size` bytes are there.  WEIGHT beside WEIGHT_STRUCT, which no kernel accepts, is dropped.
 * Returns 0, or -EINVAL for a size below 64 or above 4096.  Context: any. */
PERFRING_API int perfring_format_from_attr(struct perfring_format *format, const struct perf_event_attr *attr);

/* The smallest published size of struct perf_event_attr (PERF_ATTR_SIZE_VER0 ...) that holds every byte of *attr that is not 0: every
 * kernel and perf that knows those members accepts it.  Reads attr by its own size, as above. */
PERFRING_API uint32_t perfring_attr_size(const struct perf_event_attr *attr);

/* Sets or clears a one-bit flag of *attr.  flag: PERFRING_ATTR_FLAG_, also one that the installed kernel header does not name. */
PERFRING_API void perfring_attr_set_flag(struct perf_event_attr *attr, uint32_t flag, bool set);

/* A set of formats, one for each event, found by the ids that the kernel gave its fds.
 *
 *                   open, close   add, put, arch   all others
 *   open, close          -              -               -
 *   add, put, arch       -              -               -
 *   all others           -              -       any number at once
 */
struct perfring_format_set;

/* Returns 0 or -ENOMEM. */
PERFRING_API int perfring_format_set_open(struct perfring_format_set **set);
PERFRING_API void perfring_format_set_close(struct perfring_format_set *set);

/* Adds an event; attr is copied.  Returns its number, from 0 in the order of adding; -EINVAL (attr.size, as from_attr), -ENOMEM. */
PERFRING_API int perfring_format_set_add(struct perfring_format_set *set, const struct perf_event_attr *attr);

/* Makes `id` one of event `index`: an event has one for each fd.  Returns 0, also if it was; -EINVAL (no such event, or id 0),
 * -EEXIST (another event has it), -ENOMEM. */
PERFRING_API int perfring_format_set_put(struct perfring_format_set *set, uint64_t id, uint32_t index);

/* Sets the architecture of the samples' registers, PERFRING_ARCH_, for events added before and after. */
PERFRING_API void perfring_format_set_arch(struct perfring_format_set *set, uint32_t arch);

/* The format of the event with this id, or number; NULL: there is none.  Valid until close: a set never moves its formats.  The
 * number of events. */
PERFRING_API const struct perfring_format *perfring_format_set_find(const struct perfring_format_set *set, uint64_t id);
PERFRING_API const struct perfring_format *perfring_format_set_at(const struct perfring_format_set *set,
								  uint32_t index);
PERFRING_API uint32_t perfring_format_set_count(const struct perfring_format_set *set);

/* A copy of the attr that was added, as many bytes as its `size` says, at least sizeof; NULL: no such event.  Valid until
 * close. */
PERFRING_API const struct perf_event_attr *perfring_format_set_attr(const struct perfring_format_set *set,
								    uint32_t index);

/* The i-th id, from 0 in the order of putting, and the number of its event.  Returns 1, or 0 after the last. */
PERFRING_API int perfring_format_set_id_at(const struct perfring_format_set *set, uint32_t i, uint64_t *id,
					   uint32_t *index);

/* The format of a record: that of the event whose id it has, looked for at each place where an attr of the set puts ids (docs/abi.md
 * 14).  A set of one event needs no ids.  Id 0 is the first event, as in the records that the perf tool makes.  A record without any
 * known id belongs to the first event whose records carry none, if there is one.  *format is NULL for types from 64 up.
 * Returns 0; or -EBADMSG with *fault (may be NULL): the id is of no event, or the record is too short to hold one, or the set is
 * empty.  _with: by a copy of the header, as above. */
PERFRING_API int perfring_format_set_of(const struct perfring_format_set *set, const struct perf_event_header *record,
					const struct perfring_format **format, struct perfring_fault *fault);
PERFRING_API int perfring_format_set_with(const struct perfring_format_set *set, const struct perf_event_header *header,
					  const void *record, const struct perfring_format **format,
					  struct perfring_fault *fault);

PERFRING_END

#endif
