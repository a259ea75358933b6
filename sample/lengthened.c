/* lengthened.c - moves the trailers of records that Linux made too long to their ends.
 *
 * The function of lengthened.h.  Bytes are foreign: nothing outside the size is read or written.
 */
#include "lengthened.h"

#include "layout_private.h"

enum {
	MEMBERS = 24, /* bytes of header and numbers, of KSYMBOL and BPF_EVENT */
	POKE = 20,    /* of TEXT_POKE, up to the bytes */
	TRAILER_MAX = 48,
	PID_MAX = 1 << 22, /* the highest kernel.pid_max */
};

static uint64_t word_of(const unsigned char *record, uint32_t at)
{
	return perfring__number_get(record + at, 8);
}

static uint32_t align(uint32_t size)
{
	return (size + 7) / 8 * 8;
}

/* Where the members end: after a name, which ends with one to eight zeros, or the bytes of a poke.  0: not in the record. */
static uint32_t end_of_members(const struct perf_event_header *header, const unsigned char *record)
{
	uint32_t end = MEMBERS;
	uint16_t lengths[2];

	if (header->size <= MEMBERS)
		return 0;
	if (header->type == PERFRING_RECORD_KSYMBOL) {
		end += align((uint32_t)strnlen((const char *)record + MEMBERS, header->size - (size_t)MEMBERS) + 1);
	} else if (header->type == PERFRING_RECORD_TEXT_POKE) {
		memcpy(lengths, record + 16, sizeof(lengths));
		end = align(POKE + (uint32_t)lengths[0] + lengths[1]);
	}
	return end < header->size ? end : 0;
}

/* The place of a field of a trailer that begins at `from`; 0: the format has none. */
static uint32_t place_of(const struct perfring_format *format, uint32_t from, uint64_t field)
{
	return format->sample_type & field
		       ? from + format->trailer - perfring_format_field_back(format->sample_type, field)
		       : 0;
}

static bool is_pid(uint32_t number)
{
	return number <= PID_MAX || number == UINT32_MAX;
}

/* Whether a trailer of the format can begin at `from`: each field for an id has the same one, and pid, tid, time and cpu are such. */
static bool can_be(const struct perfring_format *format, const unsigned char *record, uint32_t from)
{
	uint32_t tid = place_of(format, from, PERFRING_SAMPLE_TID), time = place_of(format, from, PERFRING_SAMPLE_TIME),
		 cpu = place_of(format, from, PERFRING_SAMPLE_CPU), id = place_of(format, from, PERFRING_SAMPLE_ID),
		 identifier = place_of(format, from, PERFRING_SAMPLE_IDENTIFIER);
	uint32_t pids[2] = {0};

	if (tid)
		memcpy(pids, record + tid, sizeof(pids));
	return is_pid(pids[0]) && is_pid(pids[1]) && (!time || word_of(record, time)) &&
	       (!cpu || !(word_of(record, cpu) >> 32)) &&
	       (!id || !identifier || word_of(record, id) == word_of(record, identifier));
}

/* The event whose trailer begins at `end`, by its id.  Of a set of one event without ids, that one, after a name or a poke: after a
 * BPF_EVENT's members a later kernel may have others. */
static const struct perfring_format *event_at(const struct perfring_format_set *set,
					      const struct perf_event_header *header, const unsigned char *record,
					      uint32_t end)
{
	const struct perfring_format *format = perfring_format_set_at(set, 0);

	if (perfring_format_set_count(set) == 1 && !format->trailer_id_back && header->type != PERFRING_RECORD_BPF_EVENT)
		return end + format->trailer < header->size && can_be(format, record, end) ? format : NULL;
	for (uint32_t at = end; at + 8 <= header->size && at < end + TRAILER_MAX; at += 8) {
		format = perfring_format_set_find(set, word_of(record, at));
		if (format && format->trailer && at + format->trailer_id_back == end + format->trailer &&
		    end + format->trailer < header->size && can_be(format, record, end))
			return format;
	}
	return NULL;
}

/* Whether the trailer at the record's end is one, and stands where the members end; or was moved there, with zeros before it. */
static bool is_right(const struct perfring_format_set *set, const struct perf_event_header *header,
		     const unsigned char *record, uint32_t end)
{
	const struct perfring_format *format;
	uint32_t at = end;

	if (perfring_format_set_with(set, header, record, &format, NULL) || !format || !format->trailer ||
	    end + format->trailer > header->size)
		return false;
	while (at + format->trailer < header->size && !record[at])
		at++;
	return at + format->trailer == header->size;
}

bool perfring__lengthened_mend(const struct perfring_format_set *set, const struct perf_event_header *header,
			       void *record)
{
	unsigned char *bytes = record;
	uint32_t size = header->size, end = end_of_members(header, bytes);
	const struct perfring_format *format;

	if (!end || is_right(set, header, bytes, end))
		return false;
	format = event_at(set, header, bytes, end);
	if (!format)
		return false;
	memmove(bytes + size - format->trailer, bytes + end, format->trailer);
	memset(bytes + end, 0, size - format->trailer - end);
	return true;
}
