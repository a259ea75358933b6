/* lengthened.h - KSYMBOL and BPF_EVENT records to whose size Linux has added the trailers of other events.
 *
 * session/ and file/ mend copies of them, so that each reader, perf too, finds the trailer at the record's end.
 */
#ifndef PERFRING_SAMPLE_LENGTHENED_H
#define PERFRING_SAMPLE_LENGTHENED_H

#include <perfring/record.h>

/* Linux (6.18, as seen) writes one header to all events that ask for these records, and adds the size of each one's trailer to it
 * (docs/abi.md 5).  The record of the second event has its trailer where its members end, and after it as many bytes as the first
 * event's trailer has, which nothing was written to. */
static inline bool perfring_lengthened_may_be(const struct perf_event_header *header)
{
	return header->type - 17u <= 1;
}

static_assert(PERFRING_RECORD_KSYMBOL == 17 && PERFRING_RECORD_BPF_EVENT == 18, "in a row");

/* Moves the trailer to the record's end, if it is of an event of the set and does not stand there; what is before it becomes 0, padding
 * of the name or words that follow the members.  The size stays.  Of a record of Linux a second call changes nothing.  header: a checked
 * copy.  record: header->size bytes, of this process alone.  Returns whether it was moved. */
bool perfring_lengthened_mend(const struct perfring_format_set *set, const struct perf_event_header *header,
			      void *record);

#endif
