/* generate.h - random attrs, samples and records for tests and fuzzers: valid, or damaged in named ways.
 *
 * perfring gen and the fuzzers call these (docs/conformance.md).  The shapes are random, not the bytes: a count is 0, 1, a few or as
 * many as fit, with equal probability; the variants of a member are equally probable too; numbers are small, large, at a boundary,
 * or any.  What is generated passes perfring_record_check until it is damaged.  The same seed gives the same bytes on all machines
 * of one byte order.
 *
 * format: NULL: records have no trailer, and there are no SAMPLE records.  buffer, record: aligned to 8.  Nothing is allocated;
 * perfring_generate_mutate takes 70 KB of stack, the others less than 4 KB.
 * Context: any thread, not signal handlers; a generator belongs to one thread.
 */
#ifndef PERFRING_GENERATE_H
#define PERFRING_GENERATE_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

struct perfring_generator {
	uint64_t state;
	uint64_t reserved[3];
};

static_assert(sizeof(struct perfring_generator) == 32, "generator");

/* Begins a sequence; any seed. */
PERFRING_API void perfring_generator_seed(struct perfring_generator *generator, uint64_t seed);

/* A random number, 0 to below - 1; any 64 bits if below is 0. */
PERFRING_API uint64_t perfring_generator_draw(struct perfring_generator *generator, uint64_t below);

/* Writes an attr of `size` bytes, 64 to 4096, that a kernel could accept: any sample_type, but WEIGHT and WEIGHT_STRUCT only one at a
 * time; any read_format, masks and flags.  Bytes after the known members are 0.  Returns 0 or -EINVAL (the size). */
PERFRING_API int perfring_generate_attr(struct perfring_generator *generator, struct perf_event_attr *attr,
					size_t size);

/* Generates a sample of this format (not NULL); what its members point to is in `buffer`.  most: the maximal size of its
 * record, at most 65528.  Returns the number of bytes used in `buffer`, at most the record's size; -ENOSPC if the shortest
 * sample of this format needs more than `most`, or `size` is less than `most`. */
PERFRING_API int64_t perfring_generate_sample(struct perfring_generator *generator,
					      const struct perfring_format *format, struct perfring_sample *sample,
					      void *buffer, size_t size, uint32_t most);

/* The same for a record of a type other than SAMPLE, with its trailer.  If records.def does not have the type, the record is words
 * after its header and the trailer.  Also returns -EINVAL for SAMPLE. */
PERFRING_API int64_t perfring_generate_members(struct perfring_generator *generator,
					       const struct perfring_format *format, uint32_t type,
					       struct perfring_record *record, void *buffer, size_t size, uint32_t most);

/* Writes one valid record.  type: 0 is any type of the kernel's; SAMPLE is allowed.  Returns its size, at most `size`; -ENOSPC
 * (the shortest does not fit); -EINVAL (SAMPLE without a format). */
PERFRING_API int64_t perfring_generate_record(struct perfring_generator *generator,
					      const struct perfring_format *format, uint32_t type, void *buffer,
					      size_t size);

/* PERFRING_DAMAGE_LENGTH ...: the ways of values.def in which a record can be damaged. */
enum perfring_damage {
#define PERFRING_DAMAGE(NAME, what) PERFRING_DAMAGE_##NAME,
#include <perfring/values.def>
	PERFRING_DAMAGES,
};

/* "LENGTH", and a sentence on what it does: constant texts; NULL after the last. */
PERFRING_API const char *perfring_damage_name(uint32_t damage);
PERFRING_API const char *perfring_damage_what(uint32_t damage);

/* Damages a valid record of this format in place.  size: bytes at `record` that may be written, at least its header.size.
 * damage: PERFRING_DAMAGE_, or PERFRING_DAMAGES for any that this record can have.  perfring_record_check refuses the result, with
 * two exceptions: after ID, TYPE and BYTES the record may be valid; PADDING that follows a string is a remark of
 * perfring_record_examine.  Returns how many bytes a decoder is to be given, which after SIZE_SMALL and SIZE_LARGE is not
 * header.size; 0 if the record cannot have this damage or is not valid: then the record is unchanged, and bytes after it may have
 * become 0. */
PERFRING_API int64_t perfring_generate_damage(struct perfring_generator *generator,
					      const struct perfring_format *format, uint32_t damage, void *record,
					      size_t size);

/* For LLVMFuzzerCustomMutator: changes the record (any bytes) in place.  It becomes a new record, gets another field or member, a
 * damage, or a few other bytes.  most: bytes at `record` that may be written.  Returns the new size, at most
 * `most`; what does not fit is cut off. */
PERFRING_API size_t perfring_generate_mutate(const struct perfring_format *format, void *record, size_t size,
					     size_t most, uint64_t seed);

PERFRING_END

#endif
