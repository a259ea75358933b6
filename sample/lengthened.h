/* lengthened.h - records to whose size Linux has added the trailers of other events.
 *
 * session/ and file/ mend them first, so that each reader, perf too, finds the trailer at the record's end.
 */
#ifndef PERFRING_SAMPLE_LENGTHENED_H
#define PERFRING_SAMPLE_LENGTHENED_H

#include <perfring/record.h>

/* Linux (6.18, as seen) writes KSYMBOL, BPF_EVENT and TEXT_POKE records by one header to all events that ask for them, and adds the
 * size of each one's trailer to it (docs/abi.md 5).  The record of the second event has its trailer where its members end, and after it
 * as many bytes as the trailers before have, which nothing was written to. */
static inline bool perfring__lengthened_may_be(const struct perf_event_header *header)
{
	return header->type < 32 && UINT32_C(1) << header->type & (UINT32_C(1) << PERFRING_RECORD_KSYMBOL |
								    UINT32_C(1) << PERFRING_RECORD_BPF_EVENT |
								    UINT32_C(1) << PERFRING_RECORD_TEXT_POKE);
}

/* Moves the trailer to the record's end, if it is of an event of the set and stands where the members end; what is before it becomes 0:
 * padding, or words that follow the members.  The size stays.  A second call changes nothing.  header: has the record's type and
 * size.  record: header->size bytes in native order, of this process alone.  Returns whether the trailer was moved. */
bool perfring__lengthened_mend(const struct perfring_format_set *set, const struct perf_event_header *header,
			       void *record);

#endif
