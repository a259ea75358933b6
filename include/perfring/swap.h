/* swap.h - records and attrs of the other byte order (docs/abi.md 11.6), read and, for tests and tools, written.
 *
 * Foreign means: of a machine whose byte order is not this build's.  Bit-fields go by their value: a foreign flag word
 * or branch entry has the same flags afterwards, not the same bits mirrored.  What is bytes stays bytes: strings, RAW,
 * user stacks, AUX data, build ids, payloads of perf's features.
 *
 * The input is never modified; the room must not overlap it.  Context: any thread, also signal handlers.
 */
#ifndef PERFRING_SWAP_H
#define PERFRING_SWAP_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* The header of a foreign record, in our order. */
PERFRING_INLINE struct perf_event_header perfring_header_to_native(const struct perf_event_header *foreign)
{
	const volatile perfring_header *from = (const volatile perfring_header *)foreign;
	struct perf_event_header header;

	header.type = __builtin_bswap32(from->type);
	header.misc = __builtin_bswap16(from->misc);
	header.size = __builtin_bswap16(from->size);
	return header;
}

/* A whole record of any kind, from the foreign order into ours, and back.  At least 8 bytes can be read, and then as
 * many as the header says.  format as for perfring_record_decode (of a swapped attr, so its members are in our order).
 * Known members go by their kind; in a SAMPLE trailing bytes go by words (without a format, all), in other records, and
 * in types that are not in records.def, they stay as they are.
 *
 * Twice is the identity, for damaged records too.  The exception: where a branch stack may lack its hw_idx or counters
 * (docs/abi.md 6), a sample that is damaged, or has a user stack or AUX data behind it, may be taken for another shape on
 * the way back.
 *
 * Returns the record's size; -ENOSPC when `size` is less than that, or than 8; -EBADMSG with *fault (may be NULL) when
 * the record is damaged: the numbers before the fault, a length that is too long included, were swapped, the rest
 * copied as it is. */
PERFRING_API int64_t perfring_record_to_native(const struct perfring_format *format,
					       const struct perf_event_header *foreign, void *room, size_t size,
					       struct perfring_fault *fault);
PERFRING_API int64_t perfring_record_to_foreign(const struct perfring_format *format,
						const struct perf_event_header *record, void *room, size_t size,
						struct perfring_fault *fault);

/* Decodes a foreign SAMPLE in one go: as perfring_sample_decode does, but lists of words, trailing ones too, are
 * swapped into the room, and bytes still point into the record.  Returns 0, -ENOSPC when `size` is less than the
 * record's, or -EBADMSG as perfring_sample_decode.  Valid until: the record or the room goes. */
PERFRING_API int perfring_sample_decode_foreign(const struct perfring_format *format,
						const struct perf_event_header *foreign, struct perfring_sample *sample,
						void *room, size_t size, struct perfring_fault *fault);

/* An attr, as long as its own size says (0 counts as 64); bytes behind the known members, and a member that its size
 * cuts, stay as they are.  Returns its length, -EINVAL for a size below 64 or above 4096, -ENOSPC. */
PERFRING_API int64_t perfring_attr_to_native(const struct perf_event_attr *foreign, void *room, size_t size);
PERFRING_API int64_t perfring_attr_to_foreign(const struct perf_event_attr *attr, void *room, size_t size);

PERFRING_END

#endif
