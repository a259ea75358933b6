/* swap.h - records and attrs of the other byte order (docs/abi.md 11.6), read and, for tests and tools, written.
 *
 * file.h swaps what it reads: programs need this only for bytes from elsewhere.  Foreign means: of a machine whose byte order is
 * not this build's.  Bit-fields are converted by their value: a flag word or branch entry has the same flags afterwards.
 * Strings, RAW, user stacks, AUX data, build ids and payloads of perf's features are bytes, and copied.
 *
 * The input is never modified; the buffer must not overlap it, except that an attr may be converted in place (the buffer is the
 * attr).  Context: any thread, also signal handlers.
 */
#ifndef PERFRING_SWAP_H
#define PERFRING_SWAP_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* The header of a foreign record, in native order; each member is read once. */
PERFRING_INLINE struct perf_event_header perfring_header_to_native(const struct perf_event_header *foreign)
{
	const volatile perfring_header *from = (const volatile perfring_header *)foreign;
	struct perf_event_header header;

	header.type = __builtin_bswap32(from->type);
	header.misc = __builtin_bswap16(from->misc);
	header.size = __builtin_bswap16(from->size);
	return header;
}

/* Converts a whole record of any type from the foreign to the native byte order, and back.  Reads 8 bytes, then as many as
 * the header says.  format: as for perfring_record_decode, of a native attr.  Known members are swapped by their kind.
 * Trailing bytes of a SAMPLE (without a format, all) are swapped as words; those of other records, and of types that are not
 * in records.def, are copied.
 *
 * Both conversions together are the identity, for damaged records too, with one exception: where a branch stack may lack its
 * hw_idx or counters (docs/abi.md 6), a sample that is damaged, or has a user stack or AUX data after it, may be taken for
 * another shape on the way back.
 *
 * Returns the record's size; -ENOSPC if `size` is less than that, or than 8; -EBADMSG with *fault (may be NULL) if the record
 * is damaged: numbers before the fault, and a length that is too long, are swapped, the rest is copied. */
PERFRING_API int64_t perfring_record_to_native(const struct perfring_format *format,
					       const struct perf_event_header *foreign, void *buffer, size_t size,
					       struct perfring_fault *fault);
PERFRING_API int64_t perfring_record_to_foreign(const struct perfring_format *format,
						const struct perf_event_header *record, void *buffer, size_t size,
						struct perfring_fault *fault);

/* Decodes a foreign SAMPLE in one step, as perfring_sample_decode, but lists of words, trailing ones too, are swapped into
 * `buffer`; bytes point into the record.  Returns 0; -ENOSPC if `size` is less than the record's; -EBADMSG as
 * perfring_sample_decode.  Valid while the record and `buffer` are. */
PERFRING_API int perfring_sample_decode_foreign(const struct perfring_format *format,
						const struct perf_event_header *foreign, struct perfring_sample *sample,
						void *buffer, size_t size, struct perfring_fault *fault);

/* Converts an attr of its own size (0 counts as 64).  Bytes after the known members, and a member that its size cuts, are
 * copied.  Returns its size; -EINVAL for a size below 64 or above 4096; -ENOSPC. */
PERFRING_API int64_t perfring_attr_to_native(const struct perf_event_attr *foreign, void *buffer, size_t size);
PERFRING_API int64_t perfring_attr_to_foreign(const struct perf_event_attr *attr, void *buffer, size_t size);

PERFRING_END

#endif
