/* record.h - every record but SAMPLE: its members and its sample_id trailer (ABI.md 4, 5), decoded and encoded.
 *
 * Everything here is a view of records.def and, for the trailer, of fields.def.  As with samples, numbers are copied
 * and the rest is pointed at: pointers point into the record and are valid as long as it is.
 *
 * Context: any thread, also signal handlers.
 */
#ifndef PERFRING_RECORD_H
#define PERFRING_RECORD_H

#include <perfring/cursor.h>
#include <perfring/format.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* PERFRING_RECORD_MMAP ...: types, from the kernel (below 64) and from perf itself. */
enum perfring_record_type {
#define PERFRING_RECORD(NAME, type, noun) PERFRING_RECORD_##NAME = (type),
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
};

/* size bytes without the NUL and the padding.  data[size] is 0 in records of the kernel's, but nothing promises it
 * for bytes from elsewhere. */
struct perfring_string {
	const char *data;
	uint32_t size;
	uint32_t reserved;
};

struct perfring_bytes {
	const void *data;
	uint64_t size;
};

/* The file behind a mapping: has_build_id tells which half (misc bit 14, of each record on its own). */
struct perfring_file_id {
	uint32_t maj;
	uint32_t min;
	uint64_t ino;
	uint64_t ino_generation;
	uint8_t build_id[20];
	uint8_t build_id_size; /* at most 20, whatever the record says */
	bool has_build_id;
};

struct perfring_tag {
	uint8_t bytes[8];
};

/* nr pairs of words: device, inode. */
struct perfring_links {
	const perfring_word *words;
	uint64_t nr;
};

struct perfring_poke {
	const void *old_bytes;
	const void *new_bytes;
	uint16_t old_len;
	uint16_t new_len;
};

#define PERFRING_DECLARE_RECORD_u16(member) uint16_t member;
#define PERFRING_DECLARE_RECORD_u32(member) uint32_t member;
#define PERFRING_DECLARE_RECORD_u64(member) uint64_t member;
#define PERFRING_DECLARE_RECORD_id128(member) struct perfring_file_id member;
#define PERFRING_DECLARE_RECORD_tag(member) struct perfring_tag member;
#define PERFRING_DECLARE_RECORD_string(member) struct perfring_string member;
#define PERFRING_DECLARE_RECORD_list(member) struct perfring_list member;
#define PERFRING_DECLARE_RECORD_links(member) struct perfring_links member;
#define PERFRING_DECLARE_RECORD_read(member) struct perfring_read member;
#define PERFRING_DECLARE_RECORD_poke(member) struct perfring_poke member;
#define PERFRING_DECLARE_RECORD_rest(member) struct perfring_bytes member;

/* struct perfring_record_mmap ...: the members of each kind, under the kernel's names. */
#define PERFRING_RECORD(NAME, type, noun) \
	struct perfring_record_##noun { \
		uint32_t reserved_;
#define PERFRING_MEMBER(kind, member, show) PERFRING_DECLARE_RECORD_##kind(member)
#define PERFRING_RECORD_END(NAME, type, noun) \
	} \
	;
#include <perfring/records.def>

/* The sample_id trailer.  A member means something when its bit stands in `present`. */
struct perfring_trailer {
	uint64_t present;
#define PERFRING_DECLARE_TRAILER_no(kind, a, b)
#define PERFRING_DECLARE_TRAILER_yes(kind, a, b) PERFRING_DECLARE_##kind(a, b)
#define PERFRING_DECLARE_TRAILER_last(kind, a, b) PERFRING_DECLARE_##kind(a, b)
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) PERFRING_DECLARE_TRAILER_##trailer(kind, a, b)
#include <perfring/fields.def>
};

/* One record of any kind but SAMPLE.  The member of `is` named by the type holds its members; a kind that is not in
 * records.def has none, and all its bytes are in `trailing`. */
struct perfring_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	const void *trailing; /* between the last known member and the trailer: newer kernels */
	uint32_t trailing_size;
	uint32_t padding;
	struct perfring_trailer trailer;
	union {
#define PERFRING_RECORD(NAME, type, noun) struct perfring_record_##noun noun;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
	} is;
};

PERFRING_INLINE uint16_t perfring_record_cpumode(const struct perf_event_header *record)
{
	return ((const perfring_header *)record)->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
}

/* "MMAP2", or NULL for a type that is not in records.def. */
PERFRING_API const char *perfring_record_name(uint32_t type);

/* Decodes any record but SAMPLE (-EINVAL).  format may be NULL: then there is no trailer, and read blocks are left in
 * `trailing`.  Returns 0, or -EBADMSG with *fault (may be NULL) telling where in the record and what. */
PERFRING_API int perfring_record_decode(const struct perfring_format *format, const struct perf_event_header *record,
					struct perfring_record *decoded, struct perfring_fault *fault);

/* The inverse: writes the record, trailer included, into room of `size` bytes.  Takes record->type, misc (its bit for
 * build ids from the file_id), `is`, the trailing bytes if trailing_size is not 0 and, where the format has a trailer,
 * the trailer's members.  Returns the record's size, a multiple of 8; -ENOSPC when
 * the room is too small, -EINVAL for SAMPLE and for more than 65528 bytes. */
PERFRING_API int64_t perfring_record_encode(const struct perfring_format *format, const struct perfring_record *record,
					    void *room, size_t size);

/* What perfring_record_encode would return, given room. */
PERFRING_API int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record);

PERFRING_END

#endif
