/* generate.h - random attrs, samples and records, valid ones and ones damaged in named ways: for tests and fuzzers.
 *
 * Drawn by shape, not by byte: each count is as likely to be 0, 1, a few, or as many as fit; each variant of a member
 * as likely as another; numbers are small, large, at a boundary, or anything.  What is generated passes
 * perfring_record_check, until it is damaged.  The same seed gives the same bytes, on every machine of one byte order.
 *
 * Nothing is allocated, but perfring_generate_mutate takes 70 KB of stack, the others less than 4 KB.  A format may be
 * NULL: there is no trailer then, and no SAMPLE.
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

PERFRING_API void perfring_generator_seed(struct perfring_generator *generator, uint64_t seed);

/* 0 to below - 1; any 64 bits when below is 0. */
PERFRING_API uint64_t perfring_generator_draw(struct perfring_generator *generator, uint64_t below);

/* Writes an attr that a kernel could have accepted and perf could have recorded, of `size` bytes (64 to 4096; those
 * after the known members are 0): any sample_type but WEIGHT beside WEIGHT_STRUCT, any read_format, masks, flags.
 * Returns 0 or -EINVAL. */
PERFRING_API int perfring_generate_attr(struct perfring_generator *generator, struct perf_event_attr *attr,
					size_t size);

/* Generates a sample of this format (not NULL); what its members point to is in `buffer`.  most: the maximal size of its
 * record, at most 65528.  Returns the number of bytes used in `buffer`, at most the record's size; -ENOSPC if the shortest
 * sample of this format needs more than `most`, or `size` is less than `most`. */
PERFRING_API int64_t perfring_generate_sample(struct perfring_generator *generator,
					      const struct perfring_format *format, struct perfring_sample *sample,
					      void *buffer, size_t size, uint32_t most);

/* The same for all other types, with the trailer.  A type that is not in records.def has no members, only trailing words.
 * -EINVAL for SAMPLE. */
PERFRING_API int64_t perfring_generate_members(struct perfring_generator *generator,
					       const struct perfring_format *format, uint32_t type,
					       struct perfring_record *record, void *buffer, size_t size, uint32_t most);

/* One whole valid record, encoded.  type: 0 for any of the kernel's; else any, SAMPLE too.  Returns its size, at most `size`;
 * -ENOSPC when the shortest does not fit, -EINVAL for a SAMPLE without a format. */
PERFRING_API int64_t perfring_generate_record(struct perfring_generator *generator,
					      const struct perfring_format *format, uint32_t type, void *buffer,
					      size_t size);

/* PERFRING_DAMAGE_LENGTH ...: the ways of values.def in which a record can be damaged. */
enum perfring_damage {
#define PERFRING_DAMAGE(NAME, what) PERFRING_DAMAGE_##NAME,
#include <perfring/values.def>
	PERFRING_DAMAGES,
};

/* "LENGTH", and what it does; NULL after the last. */
PERFRING_API const char *perfring_damage_name(uint32_t damage);
PERFRING_API const char *perfring_damage_what(uint32_t damage);

/* Damages a valid record of this format in place.  size: bytes at `record`, at least its header.size; none is written
 * beyond them.  damage: PERFRING_DAMAGE_, or PERFRING_DAMAGES for any that this record can have.  perfring_record_check
 * refuses the result, but may accept it after ID, TYPE and BYTES.  Returns the number of bytes to pass to a decoder from
 * now on, which after SIZE_ damages is not header.size; 0, without a change, if this record cannot have this damage or is
 * not valid. */
PERFRING_API int64_t perfring_generate_damage(struct perfring_generator *generator,
					      const struct perfring_format *format, uint32_t damage, void *record,
					      size_t size);

/* For LLVMFuzzerCustomMutator: makes of one record (of any bytes) another: a new one, the same with one field or member
 * drawn anew, a damaged one, or a few bytes changed.  Returns the new size, at most `most`: of a larger record, what is
 * beyond that is dropped. */
PERFRING_API size_t perfring_generate_mutate(const struct perfring_format *format, void *record, size_t size,
					     size_t most, uint64_t seed);

PERFRING_END

#endif
