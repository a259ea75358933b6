/* session_order.c - many rings as one stream: the merge in time order, spans, and what passes by counted.
 *
 * A round: every ring's writer position is sampled once (look).  `old_end` of a ring is where the round before ended.
 *
 *     ring 0   ... handed out | window: next 64, sorted | seen, not taken yet | not seen
 *                             ^ returned                ^ reader.position     ^ reader.observed
 *                                          ^ old_end
 *
 * A record before old_end can be handed out when it is the oldest of all windows: whatever a later look will find in
 * any ring was published after that ring was looked at in this round, so after everything before old_end of every ring
 * had been seen, and its time stamp was taken only just before it was published.  Records behind old_end take part in
 * the merge, and are handed out as long as an old one comes after them.  It is perf's FINISHED_ROUND rule, applied
 * while reading.
 *
 * One thread: the only concurrency is with the kernel, and goes through the reader.
 */
#include <perfring/session.h>

#include <stdlib.h>

#include <perfring/access.h>
#include <perfring/sample.h>

#include "event/opener.h"
#include "session_private.h"

/* ---- the heap of rings, by the key of their first record; ties by ring number ---- */

static const struct perfring_waiting *first_of(const struct perfring_session *session, uint32_t ring)
{
	return &session->rings[ring]->window[session->rings[ring]->first];
}

static bool comes_before(const struct perfring_session *session, uint32_t a, uint32_t b)
{
	uint64_t one = first_of(session, a)->key, other = first_of(session, b)->key;

	return one < other || (one == other && a < b);
}

static void heap_swap(struct perfring_session *session, uint32_t i, uint32_t j)
{
	uint32_t ring = session->heap[i];

	session->heap[i] = session->heap[j];
	session->heap[j] = ring;
}

static void heap_down(struct perfring_session *session, uint32_t i)
{
	for (;;) {
		uint32_t least = i;

		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < session->heap_count &&
			    comes_before(session, session->heap[child], session->heap[least]))
				least = child;
		if (least == i)
			return;
		heap_swap(session, i, least);
		i = least;
	}
}

/* ---- what passes by ---- */

/* The word at byte `at` of the record at `position`: of the copy, where one was made. */
static uint64_t word_at(const struct perfring_session_ring *ring, uint64_t position, uint64_t at)
{
	const uint64_t mask = ring->reader.mask;
	const unsigned char *word =
		ring->copies ? ring->copies + (position & mask) + at : ring->reader.data + ((position + at) & mask);

	/* Positions are multiples of 8, so a word never wraps. */
	return PERFRING_LOAD((const perfring_ring_word *)(const void *)word);
}

/* The record at the reader's position, of this header, in its place among the copies. */
static const struct perf_event_header *copy_record(const struct perfring_session_ring *ring,
						   const struct perf_event_header *header)
{
	unsigned char *room = ring->copies + (ring->reader.position & ring->reader.mask);

	perfring_reader_copy(&ring->reader, header, room);
	return (const struct perf_event_header *)(void *)room;
}

/* lost: the word in which a LOST or LOST_SAMPLES record says how many. */
static void count_into(struct perfring_totals *totals, const struct perf_event_header *header, uint64_t lost,
		       uint64_t sample_time)
{
	totals->records++;
	totals->bytes += header->size;
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		totals->samples++;
		if (!sample_time)
			break;
		if (!totals->first_time || sample_time < totals->first_time)
			totals->first_time = sample_time;
		if (sample_time > totals->last_time)
			totals->last_time = sample_time;
		break;
	case PERF_RECORD_LOST:
		totals->lost += lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		totals->lost_samples += lost;
		break;
	case PERF_RECORD_THROTTLE:
		totals->throttles++;
		break;
	case PERF_RECORD_UNTHROTTLE:
		totals->unthrottles++;
		break;
	default:
		break;
	}
}

/* Where the word of `lost` lies in such a record; 0: it has none. */
static uint16_t lost_at(const struct perf_event_header *header)
{
	/* u64 id, u64 lost; u64 lost */
	uint16_t at = header->type == PERF_RECORD_LOST ? 16 : header->type == PERF_RECORD_LOST_SAMPLES ? 8 : 0;

	return header->size >= at + 8 ? at : 0;
}

uint64_t perfring_session_lost_in(const struct perf_event_header *record, const struct perf_event_header *header)
{
	uint16_t at = lost_at(header);

	return at ? PERFRING_LOAD((const perfring_ring_word *)(const void *)((const unsigned char *)record + at)) : 0;
}

/* Whether events are counted one by one: an only event has the session's totals. */
static bool tells_events_apart(const struct perfring_session *session)
{
	return session->event_totals_room > 1;
}

static struct perfring_totals *totals_of(const struct perfring_session *session, const struct perfring_format *format)
{
	return format && tells_events_apart(session) && format->index < session->event_totals_room
		       ? &session->event_totals[format->index]
		       : NULL;
}

void perfring_session_count(struct perfring_session *session, struct perfring_session_ring *ring,
			    const struct perfring_format *format, const struct perf_event_header *header, uint64_t lost,
			    uint64_t sample_time)
{
	struct perfring_totals *totals = totals_of(session, format);

	count_into(&ring->totals, header, lost, sample_time);
	if (totals)
		count_into(totals, header, lost, sample_time);
}

void perfring_session_found_corrupt(struct perfring_session *session, struct perfring_session_ring *ring)
{
	ring->state = PERFRING_RING_FOUND_CORRUPT;
	ring->totals.corrupt++;
	session->corrupt_rings++;
}

int perfring_session_tell_corrupt(struct perfring_session *session)
{
	for (uint32_t i = 0; session->corrupt_rings && i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (ring && ring->state == PERFRING_RING_FOUND_CORRUPT) {
			ring->state = PERFRING_RING_TOLD_CORRUPT;
			session->fault = ring->reader.fault;
		} else if (ring && ring->aux && ring->aux->health == PERFRING_RING_FOUND_CORRUPT) {
			ring->aux->health = PERFRING_RING_TOLD_CORRUPT;
			session->fault = ring->aux->fault;
		} else {
			continue;
		}
		session->corrupt_rings--;
		session->fault_ring = i;
		return -EBADMSG;
	}
	return 0;
}

/* ---- the windows ---- */

static bool is_old(const struct perfring_session_ring *ring, uint64_t position)
{
	return (int64_t)(position - ring->old_end) < 0;
}

static void insert(struct perfring_session_ring *ring, const struct perfring_waiting *waiting)
{
	uint32_t at = ring->end;

	if (ring->end == 2 * PERFRING_WINDOW) {
		ring->end -= ring->first;
		memmove(ring->window, ring->window + ring->first, ring->end * sizeof(*ring->window));
		ring->first = 0;
		at = ring->end;
	}
	/* Almost always the youngest so far. */
	for (; at > ring->first && ring->window[at - 1].key > waiting->key; at--)
		ring->window[at] = ring->window[at - 1];
	ring->window[at] = *waiting;
	ring->end++;
	ring->old += is_old(ring, waiting->position);
}

/* The next record that was seen, as perfring_reader_next does, with what it keeps: the record's place, behind fillers,
 * and the header that was checked, whatever the memory says by now. */
static bool fetch(struct perfring_session *session, struct perfring_session_ring *ring,
		  struct perfring_waiting *waiting, struct perf_event_header *header)
{
	struct perfring_reader *reader = &ring->reader;
	uint64_t at;
	int size;

	if (ring->state != PERFRING_RING_SOUND)
		return false;
	size = perfring_reader_peek(reader, header);
	at = reader->position & reader->mask;
	if (size < 0)
		perfring_session_found_corrupt(session, ring);
	if (size <= 0)
		return false;
	PERFRING_POINT(session_peeked);
	waiting->position = reader->position;
	waiting->record = ring->copies                         ? copy_record(ring, header)
			  : at + (uint64_t)size > reader->span ? perfring_reader_join(reader, header)
							       : (const void *)(reader->data + at);
	PERFRING_POINT(session_fetched);
	reader->position += (uint64_t)size;
	return true;
}

/* As long as there is an old record that was not taken yet, the window holds old ones only: `old` tells of both. */
static void refill(struct perfring_session *session, struct perfring_session_ring *ring)
{
	while (ring->end - ring->first < PERFRING_WINDOW) {
		bool falls = perfring_ring_falls(ring), counted = false;
		struct perfring_waiting waiting;
		struct perf_event_header header;

		if (falls ? !perfring_session_snapshot_fetch(ring, &waiting, &header, &counted)
			  : !fetch(session, ring, &waiting, &header))
			return;
		waiting.time = 0;
		/* By the header that was checked: what lies at the record may be another one by now, and larger. */
		if (perfring_format_set_with(session->formats, &header, waiting.record, &waiting.format, NULL)) {
			waiting.format = NULL;
			ring->totals.unknown_ids += !counted;
		}
		if (waiting.format)
			waiting.time = perfring_format_time_with(waiting.format, &header, waiting.record);
		if (waiting.time > ring->youngest)
			ring->youngest = waiting.time;
		waiting.key = waiting.time ? waiting.time : ring->youngest;
		if (!counted)
			perfring_session_count(session, ring, waiting.format, &header,
					       perfring_session_lost_in(waiting.record, &header), waiting.time);
		insert(ring, &waiting);
	}
}

bool perfring_session_holds(const struct perfring_session *session)
{
	for (uint32_t i = 0; i < session->ring_count; i++) {
		const struct perfring_session_ring *ring = session->rings[i];

		if (ring && (ring->first != ring->end || ring->reader.position != ring->reader.observed))
			return true;
	}
	return false;
}

void perfring_session_look(struct perfring_session *session, bool last)
{
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring)
			continue;
		/* First: then the records that tell of these bytes are seen below (docs/abi.md 8). */
		if (ring->aux)
			perfring_session_aux_look(session, ring);
		if (perfring_ring_falls(ring))
			continue;
		ring->old_end = ring->reader.observed;
		if (ring->state == PERFRING_RING_SOUND && perfring_reader_observe(&ring->reader) < 0)
			perfring_session_found_corrupt(session, ring);
		if (last)
			ring->old_end = ring->reader.observed;
		/* All that waits was seen before this look. */
		ring->old = ring->end - ring->first;
	}
	session->merging = false;
	session->span_ring = 0;
}

/* The round's first next: fills the windows, orders the rings. */
static void begin_merge(struct perfring_session *session)
{
	session->merging = true;
	session->heap_count = 0;
	session->old_rings = 0;
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring || (ring->first == ring->end && ring->reader.position == ring->reader.observed))
			continue;
		refill(session, ring);
		session->old_rings += ring->old != 0;
		if (ring->first != ring->end)
			session->heap[session->heap_count++] = i;
	}
	for (uint32_t i = session->heap_count / 2; i-- > 0;)
		heap_down(session, i);
}

uint64_t perfring_session_first_key(struct perfring_session *session)
{
	if (!session->merging)
		begin_merge(session);
	if (!session->heap_count)
		return UINT64_MAX;
	return first_of(session, session->heap[0])->key < UINT64_MAX ? first_of(session, session->heap[0])->key
								     : UINT64_MAX - 1;
}

void perfring_session_take(struct perfring_session *session, struct perfring_item *item, uint64_t *last)
{
	struct perfring_session_ring *ring = session->rings[session->heap[0]];
	struct perfring_waiting waiting = ring->window[ring->first++];
	bool had_old = ring->old != 0;
	struct perfring_totals *totals;

	ring->old -= is_old(ring, waiting.position);
	refill(session, ring);
	session->old_rings -= had_old && !ring->old;
	if (ring->first == ring->end) {
		ring->first = ring->end = 0;
		session->heap[0] = session->heap[--session->heap_count];
	}
	heap_down(session, 0);

	item->record = waiting.record;
	item->format = waiting.format;
	item->time = waiting.time;
	if (waiting.key >= *last) {
		*last = waiting.key;
	} else if (waiting.time) {
		ring->totals.late++;
		totals = totals_of(session, waiting.format);
		if (totals)
			totals->late++;
	}
}

int perfring_session_next(struct perfring_session *session, struct perfring_item *item)
{
	int ret;

	if (PERFRING_UNLIKELY(!session))
		return -EINVAL;
	perfring_session_first_key(session);
	ret = perfring_session_tell_corrupt(session);
	if (ret)
		return ret;
	if (!session->old_rings || !session->heap_count)
		return 0;
	perfring_session_take(session, item, &session->last);
	return 1;
}

/* ---- spans ---- */

static void cut_span(const struct perfring_session_ring *ring, uint64_t from, uint64_t size, struct perfring_span *span)
{
	uint64_t at = from & ring->reader.mask;
	uint64_t row = ring->copies ? size : ring->reader.span - at;
	unsigned char *data = ring->copies ? ring->copies : ring->ring.data;

	span->size = size;
	span->count = 1;
	span->pieces[0].iov_base = data + at;
	span->pieces[0].iov_len = (size_t)(size < row ? size : row);
	if (size > row) {
		span->count = 2;
		span->pieces[1].iov_base = data;
		span->pieces[1].iov_len = (size_t)(size - row);
	}
}

/* Whose record it is, where there are several: each has IDENTIFIER then, first in a SAMPLE, else last. */
static const struct perfring_format *format_at(const struct perfring_session *session,
					       const struct perfring_session_ring *ring,
					       const struct perf_event_header *header, uint64_t position)
{
	if (header->size < 16 || header->type >= PERFRING_RECORD_OF_PERF)
		return NULL;
	return perfring_format_set_find(
		session->formats, word_at(ring, position, header->type == PERF_RECORD_SAMPLE ? 8 : header->size - 8u));
}

static bool ring_span(struct perfring_session *session, struct perfring_session_ring *ring, struct perfring_span *span)
{
	struct perfring_reader *reader = &ring->reader;
	bool apart = tells_events_apart(session);
	uint64_t from = reader->position, end = from;
	uint64_t time_at = session->sample_time_at;
	struct perf_event_header header;
	int size;

	if (ring->state != PERFRING_RING_SOUND)
		return false;
	/* Headers are looked at so that a span ends between records and loss is seen; bodies are not. */
	while ((size = perfring_reader_peek(reader, &header)) > 0) {
		uint64_t at = reader->position;

		PERFRING_POINT(session_peeked);
		/* A filler was passed over: it belongs in no span, which ends before it, or begins behind it. */
		if (at != end && end != from)
			break;
		if (end == from)
			from = at;
		if (ring->copies)
			copy_record(ring, &header);
		PERFRING_POINT(session_fetched);
		perfring_session_count(session, ring, apart ? format_at(session, ring, &header, at) : NULL, &header,
				       lost_at(&header) ? word_at(ring, at, lost_at(&header)) : 0,
				       time_at && header.size >= time_at + 8 ? word_at(ring, at, time_at) : 0);
		reader->position += (uint64_t)size;
		end = reader->position;
		/* The copies that follow lie at their beginning again. */
		if (ring->copies && (at & reader->mask) + (uint64_t)size > reader->mask)
			break;
	}
	if (size < 0)
		perfring_session_found_corrupt(session, ring);
	if (end != from)
		cut_span(ring, from, end - from, span);
	return end != from;
}

int perfring_session_next_span(struct perfring_session *session, struct perfring_span *span)
{
	int ret = session ? perfring_session_tell_corrupt(session) : -EINVAL;

	if (ret)
		return ret;
	for (; session->span_ring < session->ring_count; session->span_ring++) {
		struct perfring_session_ring *ring = session->rings[session->span_ring];
		uint64_t records, samples;

		if (!ring)
			continue;
		records = ring->totals.records;
		samples = ring->totals.samples;
		if (perfring_ring_falls(ring) ? perfring_session_snapshot_next_span(session, ring, span)
					      : ring_span(session, ring, span)) {
			span->ring = session->span_ring;
			if (!perfring_ring_falls(ring)) {
				span->records = ring->totals.records - records;
				span->samples = ring->totals.samples - samples;
			}
			return 1;
		}
	}
	return perfring_session_tell_corrupt(session);
}

/* ---- giving back ---- */

void perfring_session_return(struct perfring_session *session)
{
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];
		uint64_t returned, lowest;

		if (!ring)
			continue;
		if (ring->aux)
			perfring_session_aux_return(session, ring);
		if (perfring_ring_falls(ring)) {
			perfring_session_snapshot_drop(ring);
			session->merging = false;
			continue;
		}
		returned = ring->reader.returned;
		lowest = ring->reader.position;
		/* Records leave the window by time, and may stay behind younger ones in the ring. */
		for (uint32_t j = ring->first; j < ring->end; j++)
			if (ring->window[j].position - returned < lowest - returned)
				lowest = ring->window[j].position;
		perfring_reader_return_to(&ring->reader, lowest);
		if (ring->state == PERFRING_RING_TOLD_CORRUPT && ring->first == ring->end) {
			ring->totals.skipped += perfring_reader_skip(&ring->reader);
			ring->state = PERFRING_RING_SOUND;
		}
	}
}

struct perfring_fault perfring_session_fault(const struct perfring_session *session, uint32_t *ring)
{
	if (ring)
		*ring = session->fault_ring;
	return session->fault;
}

/* ---- totals ---- */

void perfring_totals_add(struct perfring_totals *sum, const struct perfring_totals *totals)
{
	sum->records += totals->records;
	sum->samples += totals->samples;
	sum->bytes += totals->bytes;
	sum->lost += totals->lost;
	sum->lost_samples += totals->lost_samples;
	sum->throttles += totals->throttles;
	sum->unthrottles += totals->unthrottles;
	sum->late += totals->late;
	sum->unknown_ids += totals->unknown_ids;
	sum->corrupt += totals->corrupt;
	sum->skipped += totals->skipped;
	if (totals->first_time && (!sum->first_time || totals->first_time < sum->first_time))
		sum->first_time = totals->first_time;
	if (totals->last_time > sum->last_time)
		sum->last_time = totals->last_time;
}

void perfring_session_totals(const struct perfring_session *session, struct perfring_totals *totals)
{
	*totals = session->removed;
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i])
			perfring_totals_add(totals, &session->rings[i]->totals);
}

uint32_t perfring_session_ring_count(const struct perfring_session *session)
{
	return session->ring_count;
}

int perfring_session_ring_totals(const struct perfring_session *session, uint32_t ring, struct perfring_totals *totals)
{
	if (ring >= session->ring_count || !session->rings[ring])
		return -EINVAL;
	*totals = session->rings[ring]->totals;
	return 0;
}

int perfring_session_count_event(struct perfring_session *session, uint32_t event)
{
	uint32_t room = session->event_totals_room;
	struct perfring_totals *totals;

	if (event < room)
		return 0;
	totals = realloc(session->event_totals, (event + 1) * sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	memset(totals + room, 0, (event + 1 - room) * sizeof(*totals));
	session->event_totals = totals;
	/* All that there was until now was the first one's. */
	if (room <= 1 && event)
		perfring_session_totals(session, totals);
	session->event_totals_room = event + 1;
	return 0;
}

/* FORMAT_LOST of one fd; of a group's the kernel tells of the whole group, and the ids say which is which. */
uint64_t perfring_session_lost_of(const struct perfring_session_event *event, const struct perfring_format *format)
{
	struct perfring_read values;
	uint64_t room[PERFRING_OPENER_READ_WORDS];

	if (perfring_opener_read(event->fd, format, &values, room, sizeof(room)))
		return 0;
	for (uint64_t i = 0; i < values.nr; i++)
		if (values.nr == 1 || perfring_read_id(&values, i) == event->id)
			return perfring_read_lost(&values, i);
	return 0;
}

int perfring_session_event_totals(const struct perfring_session *session, uint32_t event,
				  struct perfring_totals *totals)
{
	const struct perfring_format *format = perfring_format_set_at(session->formats, event);

	if (!format)
		return -EINVAL;
	memset(totals, 0, sizeof(*totals));
	if (!tells_events_apart(session))
		perfring_session_totals(session, totals);
	else if (event < session->event_totals_room)
		*totals = session->event_totals[event];
	totals->lost = totals->unknown_ids = totals->corrupt = totals->skipped = 0;
	if (event < session->kind_count && session->kinds[event])
		totals->lost = session->kinds[event]->lost;
	for (uint32_t i = 0; format->read_format & PERFRING_FORMAT_LOST && i < session->event_count; i++)
		if (session->events[i].event == event && session->events[i].fd >= 0)
			totals->lost += perfring_session_lost_of(&session->events[i], format);
	return 0;
}
