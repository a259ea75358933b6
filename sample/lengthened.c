/* lengthened.c - moves the trailers of KSYMBOL and BPF_EVENT records to their ends.
 *
 * The function of lengthened.h.  Bytes are foreign: nothing outside the checked size is read or written.
 */
#include "lengthened.h"

enum {
	MEMBERS = 24,      /* bytes of header and numbers, of both types */
	TRAILER_MAX = 48,
};

static uint64_t word_of(const unsigned char *record, uint32_t at)
{
	uint64_t word;

	memcpy(&word, record + at, sizeof(word));
	return word;
}

/* Where the members end: after the name, which ends with one to eight zeros.  0: no name ends in the record. */
static uint32_t end_of_members(const struct perf_event_header *header, const unsigned char *record)
{
	size_t length;

	if (header->size <= MEMBERS)
		return 0;
	if (header->type == PERFRING_RECORD_BPF_EVENT)
		return MEMBERS;
	length = strnlen((const char *)record + MEMBERS, header->size - (size_t)MEMBERS);
	return length < header->size - (size_t)MEMBERS ? MEMBERS + (uint32_t)(length / 8 + 1) * 8 : 0;
}

/* The event whose trailer begins at `end`, by its id; of a set of one event without ids, that one. */
static const struct perfring_format *event_at(const struct perfring_format_set *set, const unsigned char *record,
					      uint32_t end, uint32_t size)
{
	const struct perfring_format *only = perfring_format_set_at(set, 0);

	for (uint32_t at = end; at + 8 <= size && at < end + TRAILER_MAX; at += 8) {
		const struct perfring_format *found = perfring_format_set_find(set, word_of(record, at));

		if (found && found->trailer && at + found->trailer_id_back == end + found->trailer)
			return found;
	}
	if (perfring_format_set_count(set) == 1 && !only->trailer_id_back && end + 8 <= size && word_of(record, end))
		return only;
	return NULL;
}

bool perfring_lengthened_mend(const struct perfring_format_set *set, const struct perf_event_header *header,
			      void *record)
{
	unsigned char *bytes = record;
	uint32_t size = header->size, end = end_of_members(header, bytes);
	const struct perfring_format *format = end ? event_at(set, bytes, end, size) : NULL;

	if (!format || !format->trailer || end + format->trailer >= size)
		return false;
	/* it was moved, by less than it is long: an id stands there once more */
	if (!word_of(bytes, end) && format->trailer_id_back &&
	    perfring_format_set_find(set, word_of(bytes, size - format->trailer_id_back)) == format)
		return false;
	memmove(bytes + size - format->trailer, bytes + end, format->trailer);
	memset(bytes + end, 0, size - format->trailer - end);
	return true;
}
