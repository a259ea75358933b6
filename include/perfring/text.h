/* text.h - any record, field or attr as one line of text; each value by its name.
 *
 * Like snprintf: at most `size` bytes are written, NUL included, and the length of the whole text is returned
 * whatever the room.  Nothing is allocated; bytes that are not printable come out as \xHH, so a line stays a line.
 * Context: any thread, also signal handlers.
 */
#ifndef PERFRING_TEXT_H
#define PERFRING_TEXT_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* "MMAP2 misc=USER pid=1 tid=1 addr=0x... filename=/bin/true trailer={tid=1/1 time=5}": the kind, then every member,
 * the number of trailing bytes if there are any, and the trailer.  Fields of samples and trailers have perf script's
 * names; times are nanoseconds; registers have the names of the format's arch, or the numbers of their bits.
 * A record that cannot be decoded is shown as far as that goes: "SAMPLE fault=\"...\" at=24".  format as for
 * perfring_record_decode. */
PERFRING_API int64_t perfring_record_text(const struct perfring_format *format, const struct perf_event_header *record,
					  char *room, size_t size);

/* One field of a decoded sample, without its name.  field is a PERFRING_SAMPLE_ bit that is present (else -EINVAL).
 * "tid" is shown as pid/tid. */
PERFRING_API int64_t perfring_field_text(const struct perfring_sample *sample, uint64_t field, char *room, size_t size);

/* "type=SOFTWARE config=0 sample_type=IP|TID ... flags=disabled|inherit": members that are 0 are left out, but
 * for type and config.  Returns -EINVAL for a size that perfring_format_from_attr refuses. */
PERFRING_API int64_t perfring_attr_text(const struct perf_event_attr *attr, char *room, size_t size);

PERFRING_END

#endif
