/* text.h - any record, field or attr as one line of text; each value by its name.
 *
 * Like snprintf: at most `size` bytes are written, NUL included, and the length of the whole text is returned, whatever `size`
 * is (0: buffer may be NULL).  Nothing is allocated.  Bytes outside 0x20 to 0x7e, and backslashes, are written as \xHH, so that the
 * text is one line of ASCII whatever the record holds.  Names of values are those of values.def; what has no name is a number.
 * Context: any thread, also signal handlers.
 */
#ifndef PERFRING_TEXT_H
#define PERFRING_TEXT_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* "MMAP2 misc=USER pid=1 tid=1 addr=0x... filename=/bin/true trailer={tid=1/1 time=5}": the kind, then every member, the number
 * of bytes that follow the known members if there are any, and the trailer (the sample_id_all fields).  Fields of samples and
 * trailers have perf script's names; times are
 * nanoseconds; registers have the names of the format's arch, or the numbers of their bits.  Of a record that cannot be decoded:
 * "SAMPLE fault=\"...\" at=24", which is no error.  format: as for perfring_record_decode; without one (NULL) the
 * text of a SAMPLE is its name, misc, and the number of its bytes after the header. */
PERFRING_API int64_t perfring_record_text(const struct perfring_format *format, const struct perf_event_header *record,
					  char *buffer, size_t size);

/* The same text of what was decoded already.  record: whose bytes the decoded one points into. */
PERFRING_API int64_t perfring_record_decoded_text(const struct perfring_record *decoded,
						  const struct perf_event_header *record, char *buffer, size_t size);
PERFRING_API int64_t perfring_sample_text(const struct perfring_sample *sample, char *buffer, size_t size);

/* One field of a decoded sample, without its name.  field: one PERFRING_SAMPLE_ bit; -EINVAL if it is not present.  TID is shown as
 * pid/tid.  The sample's record must still be there. */
PERFRING_API int64_t perfring_field_text(const struct perfring_sample *sample, uint64_t field, char *buffer, size_t size);

/* "type=SOFTWARE config=0 sample_type=IP|TID ... flags=disabled|inherit": members that are 0 are left out, but
 * for type and config.  Reads attr by its own size.  Returns -EINVAL for a size that perfring_format_from_attr refuses. */
PERFRING_API int64_t perfring_attr_text(const struct perf_event_attr *attr, char *buffer, size_t size);

/* ---- digits, for callers that print columns of their own: written downwards from `end`, without a NUL.  Each function returns
 * where the digits begin, in the caller's buffer ---- */

/* The two digits of a number below 100. */
PERFRING_INNER char *perfring_digits_pair(char *end, uint32_t number)
{
	static const char digits[] =
		"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
		"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

	end -= 2;
	memcpy(end, digits + 2 * number, 2);
	return end;
}

/* At most 20 digits, without leading zeros. */
PERFRING_INLINE char *perfring_digits_decimal(char *end, uint64_t number)
{
	for (; number >= 100; number /= 100)
		end = perfring_digits_pair(end, (uint32_t)(number % 100));
	if (number >= 10)
		return perfring_digits_pair(end, (uint32_t)number);
	*--end = (char)('0' + number);
	return end;
}

/* At most 16 digits in lower case, without leading zeros and without "0x". */
PERFRING_INLINE char *perfring_digits_hex(char *end, uint64_t number)
{
	do
		*--end = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	return end;
}

/* The lowest `digits` decimal digits of a number, with leading zeros.  digits: an even number. */
PERFRING_INLINE char *perfring_digits_padded(char *end, uint32_t number, unsigned digits)
{
	for (; digits; digits -= 2, number /= 100)
		end = perfring_digits_pair(end, number % 100);
	return end;
}

PERFRING_END

#endif
