/* within.h - decoders with a size that the caller has read and tested: they do not read header.size again.
 *
 * check.c, columns.c, record.c and sample.c use it for records in memory that a peer can write (reader.h).
 */
#ifndef PERFRING_SAMPLE_WITHIN_H
#define PERFRING_SAMPLE_WITHIN_H

#include <perfring/record.h>
#include <perfring/sample.h>

/* As perfring_sample_decode_any and perfring_record_decode, with the header's members as arguments: a peer may write to
 * the memory of the record meanwhile (reader.h). */
int perfring__sample_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				   uint32_t size, struct perfring_sample *sample, struct perfring_fault *fault);
int perfring__record_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				   struct perf_event_header header, struct perfring_record *decoded,
				   struct perfring_fault *fault);

#endif
