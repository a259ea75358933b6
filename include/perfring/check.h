/* check.h - whether a record is well-formed, and if not where and why.
 *
 * Decoding asks whether the bytes can be read; checking asks whether a kernel, or perf, could have written them (docs/abi.md 4 to 6,
 * 10, 14).  Not faults are: types, misc bits and trailing bytes that are not in the tables, because a newer kernel may write them;
 * and what today's kernels write: old bytes in the padding of RAW, values without a name, a cpu of -1, a time of 0.
 *
 * Context: any thread, also signal handlers.  Nothing is allocated.
 */
#ifndef PERFRING_CHECK_H
#define PERFRING_CHECK_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* Checks one record of any kind.  `size` bytes can be read at `record`; format as for perfring_record_decode, and
 * without one the body of a SAMPLE is not looked at.  In this order, what decode refuses or:
 *
 *   header   size below 8, beyond `size`, or (types below 64) no multiple of 8; cpumode above 5 where misc has one
 *            (SAMPLE, MMAP, MMAP2, TEXT_POKE, CALLCHAIN_DEFERRED, HEADER_BUILD_ID)
 *   samples  a stack or AUX sample that is no multiple of 8, a stack larger than sample_stack_user if that is not 0, RAW
 *            that leaves the next field unaligned; a register abi above 2; a callchain marker that is not in values.def, a
 *            deferred one whose cookie is not the last word.  Words after the first user marker, and those of
 *            CALLCHAIN_DEFERRED, come from the memory of a process and may have any value
 *   14.3     a stack of size 0 for which the kernel wrote 8 bytes more than it had reserved, so that every field after it
 *            is shifted: recognised if the next word is 0, the rest would end 8 bytes after the record, and
 *            either the format has registers and sample_stack_user 0, or DATA_SRC shows it by being 8 bytes off
 *   members  a string that fills its space without a NUL (not in lists, nor in an event's that ends at a multiple of 8: perf
 *            cuts those); a build id longer than 20; padding that is not 0 after build ids, in TEXT_POKE, COMPRESSED2, CPU maps
 *            and TIME_CONV
 *
 * Returns 0, or -EBADMSG with *fault (may be NULL): `at` is the first byte of what is wrong, or where decode says. */
PERFRING_API int perfring_record_check(const struct perfring_format *format, const struct perf_event_header *record,
				       size_t size, struct perfring_fault *fault);

/* How bad a finding is. */
enum perfring_severity {
	PERFRING_NOTHING,
	PERFRING_REMARK, /* well-formed, but not as kernels and perf mean to write it */
	PERFRING_DAMAGE, /* what perfring_record_check returns -EBADMSG for */
};

struct perfring_finding {
	int64_t at;       /* its first byte, from the record's beginning */
	const char *what; /* a constant text; NULL for NOTHING */
	enum perfring_severity severity;
	uint32_t reserved;
};

/* The same, and remarks: padding after a string that is not 0, as perf 3.x and Android's simpleperf leave it; the bit of a build id in
 * an MMAP2 whose size is none, as Linux leaves it (docs/abi.md 14.24).
 *
 * Strings are padded up to the trailer, and to 8 in perf's own records and without a format.  Padding after the name of an
 * MMAP or MMAP2 counts only when the trailer has a time that is not 0: every perf leaves old bytes in those it makes.
 *
 * Returns 0; 1 with the record's first remark; -EBADMSG with the damage.  *finding is always set. */
PERFRING_API int perfring_record_examine(const struct perfring_format *format, const struct perf_event_header *record,
					 size_t size, struct perfring_finding *finding);

PERFRING_END

#endif
