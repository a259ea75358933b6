/* within.h - the decoders for those who have tested header.size already: what they tested is what is read within. */
#ifndef PERFRING_WITHIN_H
#define PERFRING_WITHIN_H

#include <perfring/record.h>
#include <perfring/sample.h>

/* As perfring_sample_decode_any and perfring_record_decode, but for the size, and the header, which is not read again:
 * a peer may be able to write to that memory (reader.h). */
int perfring_sample_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				  uint32_t size, struct perfring_sample *sample, struct perfring_fault *fault);
int perfring_record_decode_within(const struct perfring_format *format, const struct perf_event_header *record,
				  struct perf_event_header header, struct perfring_record *decoded,
				  struct perfring_fault *fault);

#endif
