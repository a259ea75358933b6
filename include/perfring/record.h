/* record.h - every record but SAMPLE: its members and its sample_id trailer (docs/abi.md 4, 5), decoded and encoded.
 *
 *     perfring_record_decode(item.format, item.record, &record, NULL);
 *     if (record.type == PERFRING_RECORD_COMM)
 *             use(record.is.comm.tid, record.is.comm.comm.data);
 *
 * The structs, decoder and encoder are views of records.def and, for the trailer, of fields.def; the layouts of kinds are in
 * kinds.def.  Numbers are copied.  Pointers point into the record, need not be aligned, and are valid as long as its bytes are.
 *
 * Hostile bytes: decoding reads nothing outside of the header's `size`, which the caller has made sure is there.  Records are in
 * native byte order (swap.h).  Context of all functions: any thread, also signal handlers; nothing is allocated.
 */
#ifndef PERFRING_RECORD_H
#define PERFRING_RECORD_H

#include <perfring/cursor.h>
#include <perfring/format.h>
#include <perfring/layout.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* PERFRING_RECORD_MMAP ...: types, from the kernel (below 64) and from perf itself. */
enum perfring_record_type {
#define PERFRING_RECORD(NAME, type, noun) PERFRING_RECORD_##NAME = (type),
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
};

/* A string in a record.
 *
 * Decoded: data has `size` bytes before the NUL.  `space` is what the string takes in its record, with the NUL and padding.
 * If size == space, there is no NUL; the kernel's strings have one.
 *
 * To encode, set space to 0: then the NUL and padding are written after the `size` bytes, up to a multiple of 8 from the
 * record's start; members of the kinds text64 and text512 are filled.  With another space, the `space` bytes at data are written
 * as they are; the first NUL among them must be at `size`. */
struct perfring_string {
	const char *data;
	uint32_t size;
	uint32_t space;
};

/* `size` bytes of any content. */
struct perfring_bytes {
	const void *data;
	uint64_t size;
};

/* The file of a mapping: has_build_id says which half is valid: misc bit 14 of each record, and a size of at most 20. */
struct perfring_file_id {
	uint32_t maj;
	uint32_t min;
	uint64_t ino;
	uint64_t ino_generation;
	uint8_t build_id[20];
	uint8_t build_id_size; /* at most 20 */
	bool has_build_id;
};

/* The tag of a BPF program. */
struct perfring_tag {
	uint8_t bytes[8];
};

/* nr pairs of words: device, inode. */
struct perfring_links {
	const perfring_word *words;
	uint64_t nr;
};

/* The bytes of code before and after a TEXT_POKE. */
struct perfring_poke {
	const void *old_bytes;
	const void *new_bytes;
	uint16_t old_len;
	uint16_t new_len;
};

/* nr entries of four words: id, idx, cpu, tid.  machines: nr entries of two words: machine_pid, vcpu; NULL: none. */
struct perfring_index {
	const perfring_word *entries;
	const perfring_word *machines;
	uint64_t nr;
};

/* nr entries of 24 bytes: a word (pid), 16 bytes of name. */
struct perfring_threads {
	const void *data;
	uint64_t nr;
};

/* By type: CPUS has nr u16 in data; MASK has nr words of long_size (4 or 8) bytes in data; RANGE_CPUS has first, last and
 * any_cpu; another type has `size` bytes in data. */
struct perfring_cpu_map {
	const void *data;
	uint32_t size; /* bytes in data; for encoding, nr and long_size define it if the type has a name */
	uint16_t type; /* PERFRING_CPU_MAP_ */
	uint16_t nr;
	uint16_t long_size;
	uint16_t first;
	uint16_t last;
	uint8_t any_cpu;
};

/* The members of TIME_CONV that older files lack. */
struct perfring_conv {
	bool is_there;
	uint8_t cap_zero;
	uint8_t cap_short;
	uint64_t cycles;
	uint64_t mask;
};

/* The build id of a HEADER_BUILD_ID record. */
struct perfring_build_id {
	uint8_t bytes[20];
	uint8_t size;  /* at most 20 */
	bool has_size; /* the record has the number; those of older files do not, and have 20 bytes */
};

/* nr entries of 64 bytes of key and 256 of value. */
struct perfring_metadata {
	const void *data;
	uint64_t nr;
};

/* struct perfring_record_mmap ...: the members of each kind, under the kernel's names. */
#define PERFRING_RECORD(NAME, type, noun) \
	struct perfring_record_##noun { \
		uint32_t reserved_;
#define PERFRING_MEMBER(kind, member, show) perfring_kind_##kind member;
#define PERFRING_RECORD_END(NAME, type, noun) \
	} \
	;
#include <perfring/records.def>

/* The sample_id trailer.  A member is valid if its PERFRING_SAMPLE_ bit is set in `present`. */
enum {
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, trailer, ...) +!!PERFRING_TRAILER_##trailer
	PERFRING_TRAILER_ADDED = 0
#include <perfring/fields.def>
};

struct perfring_trailer {
	uint64_t present; /* PERFRING_SAMPLE_ bits */
#define PERFRING_DECLARE_TRAILER_no(type, members)
#define PERFRING_DECLARE_TRAILER_yes(type, members) type members;
#define PERFRING_DECLARE_TRAILER_last(type, members) type members;
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) \
	PERFRING_DECLARE_TRAILER_##trailer(perfring_kind_##kind, \
					   PERFRING_FIELD_KIND_##kind(PERFRING_BY_MEMBERS, sample, a, b))
#define PERFRING_FIELD_ADDED(...)
#include <perfring/fields.def>
#define PERFRING_FIELD(...)
#define PERFRING_FIELD_ADDED(NAME, bit, kind, a, b, trailer, ...) \
	PERFRING_DECLARE_TRAILER_##trailer(perfring_kind_##kind, \
					   PERFRING_FIELD_KIND_##kind(PERFRING_BY_MEMBERS, sample, a, b))
#include <perfring/fields.def>
	uint64_t reserved[2 - PERFRING_TRAILER_ADDED];
};

static_assert(sizeof(struct perfring_trailer) == 72, "trailer");

/* One record of any kind but SAMPLE.  The member of `is` named by the type holds its members; a kind that is not in
 * records.def has none, and all its bytes are in `trailing`. */
struct perfring_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	const void *trailing; /* bytes between the last known member and the trailer, of newer kernels */
	uint32_t trailing_size;
	uint32_t padding;
	struct perfring_trailer trailer;
	union {
#define PERFRING_RECORD(NAME, type, noun) struct perfring_record_##noun noun;
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
		uint64_t reserved[24]; /* for larger kinds */
	} is;
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_record) == 288, "record");

/* The CPU mode in misc, PERFRING_RECORD_MISC_KERNEL, _USER ... (docs/abi.md 4.1). */
PERFRING_INLINE uint16_t perfring_record_cpumode(const struct perf_event_header *record)
{
	return ((const perfring_header *)record)->misc & PERFRING_RECORD_MISC_CPUMODE_MASK;
}

/* "MMAP2", a constant text; NULL for a type that is not in records.def. */
PERFRING_API const char *perfring_record_name(uint32_t type);

/* Decodes any record but SAMPLE.  format: NULL if there is no trailer; then a read block is left in `trailing`.  Returns 0; -EINVAL
 * (SAMPLE); -EBADMSG, with the offset in the record and a text in *fault (may be NULL), and *decoded undefined.  Valid while the
 * record's bytes are. */
PERFRING_API int perfring_record_decode(const struct perfring_format *format, const struct perf_event_header *record,
					struct perfring_record *decoded, struct perfring_fault *fault);

/* The inverse: writes the record, with its trailer, into a buffer of `size` bytes.  It takes type, misc, `is` and the trailing bytes
 * of *record, and the trailer's members that the format has.  misc's bit for build ids is set by the file_id or build_id.  Types
 * below 64 are padded to a multiple of 8.  Returns the record's size; -ENOSPC (the buffer is too small); -EINVAL:
 *
 *   SAMPLE; a record of more than 65528 bytes, or 65535 from type 64 on
 *   members that would decode differently: a string with a NUL inside or longer than its space; a text64 or text512 that does not
 *   fill its bytes and is not the last member; an attr with another size; a mask of words of an invalid size */
PERFRING_API int64_t perfring_record_encode(const struct perfring_format *format, const struct perfring_record *record,
					    void *buffer, size_t size);

/* The record's size, which perfring_record_encode would return with a large buffer; or -EINVAL as that. */
PERFRING_API int64_t perfring_record_size(const struct perfring_format *format, const struct perfring_record *record);

/* Begins a walk (layout.h) over the parts of a member of a record of type 64 or above: `member` is in *decoded, which was
 * decoded from `record`.  Valid while the record is. */
PERFRING_API void perfring_record_walk(struct perfring_layout_walk *walk, const struct perfring_record *decoded,
				       const struct perf_event_header *record, const void *member);

PERFRING_END

#endif
