/* session_order.c - many rings as one stream: the merge in time order, spans, totals.
 *
 * A round reads every ring's writer position once (look).  A ring's `old_end` is where the previous round ended.
 *
 *     ring 0   ... returned | window: next 64, sorted | seen, not in it yet | not seen
 *                           ^ returned                ^ reader.position     ^ reader.observed
 *                                        ^ old_end
 *
 * A record is old if it is before old_end, so seen in an earlier round.  The oldest record of all windows may be returned if it
 * is old, or if an old one still comes after it: whatever a later round finds was published after all old records were seen,
 * and time stamps are taken just before publication.  This is perf's FINISHED_ROUND rule, applied while reading.
 *
 * A session has one thread.  Concurrent writers are handled by reader.h.
 */
#include <perfring/session.h>

#include <assert.h>
#include <stdlib.h>

#include <perfring/access.h>
#include <perfring/sample.h>

#include "sample/lengthened.h"
#include "sample/rows_fill.h"
#include "session_private.h"

/* ---- totals ---- */

static uint64_t word_at(const struct perf_event_header *record, uint64_t at)
{
	return PERFRING_LOAD((const perfring_ring_word *)(const void *)((const unsigned char *)record + at));
}

/* Adds a record to totals.  word: of a LOST, LOST_SAMPLES or AUX record the word that counts. */
static void count_into(struct perfring_totals *totals, const struct perf_event_header *header, uint64_t word,
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
		totals->lost += word;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		totals->lost_samples += word;
		break;
	case PERF_RECORD_THROTTLE:
		totals->throttles++;
		break;
	case PERF_RECORD_UNTHROTTLE:
		totals->unthrottles++;
		break;
	case PERF_RECORD_AUX:
		totals->aux++;
		totals->aux_truncated += word & PERFRING_AUX_TRUNCATED;
		totals->aux_partial += !!(word & PERFRING_AUX_PARTIAL);
		totals->aux_collisions += !!(word & PERFRING_AUX_COLLISION);
		break;
	default:
		break;
	}
}

/* The count in a LOST or LOST_SAMPLES record, the flags of an AUX record. */
static uint64_t word_with(const struct perf_event_header *record, const struct perf_event_header *header)
{
	/* LOST: after the id; LOST_SAMPLES: the first word; AUX: the third */
	uint16_t at = header->type == PERF_RECORD_LOST           ? 16
		      : header->type == PERF_RECORD_LOST_SAMPLES ? 8
		      : header->type == PERF_RECORD_AUX          ? 24
								 : 0;

	return at && header->size >= at + 8 ? word_at(record, at) : 0;
}

/* Whether each event has totals: a single event has the session's. */
static bool counts_events(const struct perfring_session *session)
{
	return session->event_totals_count > 1;
}

static struct perfring_totals *totals_of(const struct perfring_session *session, const struct perfring_format *format)
{
	return format && counts_events(session) && format->index < session->event_totals_count
		       ? &session->event_totals[format->index]
		       : NULL;
}

void perfring__session_count(struct perfring_session *session, struct perfring_session_ring *ring,
			     const struct perfring_format *format, const struct perf_event_header *record,
			     const struct perf_event_header *header, uint64_t time)
{
	struct perfring_totals *totals = totals_of(session, format);
	uint64_t word = word_with(record, header);

	count_into(&ring->totals, header, word, time);
	if (totals)
		count_into(totals, header, word, time);
}

void perfring__session_found_corrupt(struct perfring_session *session, struct perfring_session_ring *ring)
{
	ring->state = PERFRING_HEALTH_FOUND_CORRUPT;
	ring->totals.corrupt++;
	session->corrupt_rings++;
}

int perfring__session_report_corrupt(struct perfring_session *session)
{
	struct perfring_session_ring *ring;

	for (uint32_t i = 0; session->corrupt_rings && (ring = perfring__session_ring_from(session, &i)); i++) {
		if (ring->state == PERFRING_HEALTH_FOUND_CORRUPT) {
			ring->state = PERFRING_HEALTH_REPORTED_CORRUPT;
			session->fault = ring->reader.fault;
		} else if (ring->aux && ring->aux->health == PERFRING_HEALTH_FOUND_CORRUPT) {
			ring->aux->health = PERFRING_HEALTH_REPORTED_CORRUPT;
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

/* Whether the invariants of session_private.h hold: asserted after each step, in builds without NDEBUG. */
static __attribute__((unused)) bool ring_is_valid(const struct perfring_session_ring *ring)
{
	bool is_forward = ring->ops == &perfring__session_forward;
	uint32_t old = 0;

	if (ring->first > ring->end || ring->end > 2 * PERFRING_WINDOW)
		return false;
	for (uint32_t i = ring->first; i < ring->end; i++) {
		const struct perfring_pending *waiting = &ring->window[i];

		if (i > ring->first && waiting->key < waiting[-1].key)
			return false;
		if (is_forward && waiting->position - ring->reader.returned >= ring->reader.position - ring->reader.returned)
			return false;
		old += is_old(ring, waiting->position);
	}
	return !is_forward || (old == ring->old && perfring_reader_is_valid(&ring->reader));
}

static void insert(struct perfring_session_ring *ring, const struct perfring_pending *waiting)
{
	uint32_t at = ring->end;

	/* Twice the window, so that it moves once in 64 inserts. */
	if (ring->end == 2 * PERFRING_WINDOW) {
		ring->end -= ring->first;
		memmove(ring->window, ring->window + ring->first, ring->end * sizeof(*ring->window));
		ring->first = 0;
		at = ring->end;
	}
	/* Usually the latest so far. */
	for (; at > ring->first && ring->window[at - 1].key > waiting->key; at--)
		ring->window[at] = ring->window[at - 1];
	ring->window[at] = *waiting;
	ring->end++;
	ring->old += is_old(ring, waiting->position);
}

/* The same record, or its copy with the trailer at the end, if Linux made it too long (sample/lengthened.h): a kernel's ring cannot
 * be written to.  The copy lives as long as the record's space, and is as large.  Without memory the record stays as it is. */
static const struct perf_event_header *mended(const struct perfring_session *session, struct perfring_session_ring *ring,
					      uint64_t position, const struct perf_event_header *record,
					      const struct perf_event_header *header)
{
	struct perfring_session_mended *copy;

	/* Linux alone lengthens */
	if (PERFRING_LIKELY(!perfring__lengthened_may_be(header)) || ring->ring.flags & PERFRING_RING_OWN)
		return record;
	copy = malloc(sizeof(*copy) + header->size);
	if (!copy)
		return record;
	/* the copy first: a peer may write to the record */
	memcpy(copy->record, record, header->size);
	memcpy(copy->record, header, sizeof(*header));
	if (!perfring__lengthened_mend(session->formats, header, copy->record)) {
		free(copy);
		return record;
	}
	copy->position = position;
	copy->next = NULL;
	*(ring->mended ? &ring->last_mended->next : &ring->mended) = copy;
	ring->last_mended = copy;
	return (const struct perf_event_header *)(const void *)copy->record;
}

/* The copies are in the ring's order. */
void perfring__session_free_mended(struct perfring_session_ring *ring, uint64_t from, uint64_t until)
{
	struct perfring_session_mended *copy;

	while ((copy = ring->mended) && copy->position - from < until - from) {
		ring->mended = copy->next;
		free(copy);
	}
}

void perfring__session_put(struct perfring_session *session, struct perfring_session_ring *ring,
			   struct perfring_pending *waiting, const struct perf_event_header *header, bool is_counted)
{
	waiting->time = 0;
	/* By the checked header: the writer may have changed the record, and its size. */
	if (perfring_format_set_with(session->formats, header, waiting->record, &waiting->format, NULL)) {
		waiting->format = NULL;
		ring->totals.unknown_ids += !is_counted;
	}
	if (waiting->format)
		waiting->time = perfring_format_time_with(waiting->format, header, waiting->record);
	if (waiting->time > ring->latest)
		ring->latest = waiting->time;
	waiting->key = waiting->time ? waiting->time : ring->latest;
	if (!is_counted)
		perfring__session_count(session, ring, waiting->format, waiting->record, header, waiting->time);
	insert(ring, waiting);
}

bool perfring__session_holds(const struct perfring_session *session)
{
	const struct perfring_session_ring *ring;

	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		if (ring->ops->has_seen(ring))
			return true;
	return false;
}

void perfring__session_look(struct perfring_session *session, bool last)
{
	struct perfring_session_ring *ring;

	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		/* First, so that the records that name these bytes are seen below (docs/abi.md 8). */
		if (ring->aux)
			perfring__session_aux_look(session, ring);
		if (ring->ops->observe)
			ring->ops->observe(session, ring, last);
	}
	session->merging = false;
	session->span_ring = 0;
}

/* Fills the windows and the heap, at the first next of a round. */
static void begin_merge(struct perfring_session *session)
{
	struct perfring_session_ring *ring;

	session->merging = true;
	session->heap_count = 0;
	session->old_rings = 0;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		ring->ops->fill(session, ring);
		session->old_rings += ring->old != 0;
		if (ring->first != ring->end)
			session->heap[session->heap_count++] =
				(struct perfring_heap_entry){ring->window[ring->first].key, i};
	}
	perfring__heap_make(session->heap, session->heap_count);
	assert(perfring__heap_is_valid(session->heap, session->heap_count));
}

uint64_t perfring__session_first_key(struct perfring_session *session)
{
	if (!session->merging)
		begin_merge(session);
	/* UINT64_MAX says that there is none. */
	if (!session->heap_count)
		return UINT64_MAX;
	return session->heap[0].key - (session->heap[0].key == UINT64_MAX);
}

void perfring__session_take(struct perfring_session *session, struct perfring_item *item, uint64_t *last)
{
	struct perfring_session_ring *ring = session->rings[session->heap[0].number];
	struct perfring_pending waiting = ring->window[ring->first++];
	bool had_old = ring->old != 0;
	struct perfring_totals *totals;

	ring->old -= is_old(ring, waiting.position);
	ring->ops->fill(session, ring);
	session->old_rings -= had_old && !ring->old;
	if (ring->first == ring->end) {
		ring->first = ring->end = 0;
		session->heap[0] = session->heap[--session->heap_count];
	} else {
		session->heap[0].key = ring->window[ring->first].key;
	}
	perfring__heap_down(session->heap, session->heap_count, 0);
	assert(perfring__heap_is_valid(session->heap, session->heap_count) && ring_is_valid(ring));

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
	perfring__session_first_key(session);
	ret = perfring__session_report_corrupt(session);
	if (ret)
		return ret;
	if (!session->old_rings || !session->heap_count)
		return 0;
	perfring__session_take(session, item, &session->last);
	return 1;
}

/* ---- spans ---- */

static void cut_span(const struct perfring_session_ring *ring, uint64_t from, uint64_t size, struct perfring_span *span)
{
	bool is_copied = ring->reader.flags & PERFRING_READER_COPY;
	uint64_t at = from & ring->reader.mask;
	uint64_t contiguous = is_copied ? size : ring->reader.span - at;
	unsigned char *data = is_copied ? ring->reader.joint : ring->ring.data;

	span->size = size;
	span->count = 1;
	span->pieces[0].iov_base = data + at;
	span->pieces[0].iov_len = (size_t)(size < contiguous ? size : contiguous);
	if (size > contiguous) {
		span->count = 2;
		span->pieces[1].iov_base = data;
		span->pieces[1].iov_len = (size_t)(size - contiguous);
	}
}

/* The event of a record.  With several events each record has IDENTIFIER: first in a SAMPLE, else last. */
static const struct perfring_format *format_of(const struct perfring_session *session,
					       const struct perf_event_header *record,
					       const struct perf_event_header *header)
{
	if (header->size < 16 || header->type >= PERFRING_RECORD_OF_PERF)
		return NULL;
	return perfring_format_set_find(session->formats,
					word_at(record, header->type == PERF_RECORD_SAMPLE ? 8 : header->size - 8u));
}

int perfring_session_next_span(struct perfring_session *session, struct perfring_span *span)
{
	int ret = session ? perfring__session_report_corrupt(session) : -EINVAL;
	struct perfring_session_ring *ring;

	if (ret)
		return ret;
	for (; (ring = perfring__session_ring_from(session, &session->span_ring)); session->span_ring++)
		if (ring->ops->take_span(session, ring, span)) {
			span->ring = session->span_ring;
			return 1;
		}
	return perfring__session_report_corrupt(session);
}

/* ---- forward rings ---- */

static void observe(struct perfring_session *session, struct perfring_session_ring *ring, bool last)
{
	ring->old_end = ring->reader.observed;
	if (ring->state == PERFRING_HEALTH_SOUND && perfring_reader_observe(&ring->reader) < 0)
		perfring__session_found_corrupt(session, ring);
	if (last)
		ring->old_end = ring->reader.observed;
	/* The window was seen before this round. */
	ring->old = ring->end - ring->first;
}

/* The checked header of the next seen record.  Returns whether there is one. */
static bool peek(struct perfring_session *session, struct perfring_session_ring *ring, struct perf_event_header *header)
{
	int size = ring->state == PERFRING_HEALTH_SOUND ? perfring_reader_peek(&ring->reader, header) : 0;

	if (size < 0)
		perfring__session_found_corrupt(session, ring);
	if (size <= 0)
		return false;
	PERFRING_POINT(session_peeked);
	return true;
}

/* Records enter the window in ring order.  While an old record is still in the ring, the whole window is old.  So old == 0
 * means: no old record is left, in the window or in the ring. */
static void fill(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perf_event_header header;

	while (ring->end - ring->first < PERFRING_WINDOW && peek(session, ring, &header)) {
		struct perfring_pending waiting = {.position = ring->reader.position};

		waiting.record = mended(session, ring, waiting.position, perfring_reader_take(&ring->reader, &header), &header);
		perfring__session_put(session, ring, &waiting, &header, false);
	}
	assert(ring_is_valid(ring));
}

/* Reads headers, and from bodies at most a loss count, an id and a time; what may be mended is copied.  With COPY each record is. */
static bool take_span(struct perfring_session *session, struct perfring_session_ring *ring, struct perfring_span *span)
{
	struct perfring_reader *reader = &ring->reader;
	uint64_t from = reader->position, end = from;
	uint64_t records = ring->totals.records, samples = ring->totals.samples;
	uint64_t time_at = session->sample_time_at;
	struct perf_event_header header;

	while (peek(session, ring, &header)) {
		uint64_t at = reader->position;
		const struct perf_event_header *record, *read;

		/* A filler was skipped.  It ends the span, or comes before it. */
		if (at != end && end != from)
			break;
		/* One that may be mended begins a span: its copy is one. */
		if (PERFRING_UNLIKELY(perfring__lengthened_may_be(&header)) && end != from &&
		    !(ring->ring.flags & PERFRING_RING_OWN))
			break;
		if (end == from)
			from = at;
		read = perfring_reader_take(reader, &header);
		record = mended(session, ring, at, read, &header);
		perfring__session_count(session, ring,
					counts_events(session) ? format_of(session, record, &header) : NULL, record,
					&header, time_at && header.size >= time_at + 8 ? word_at(record, time_at) : 0);
		end = reader->position;
		if (PERFRING_UNLIKELY(record != read)) {
			span->size = header.size;
			span->count = 1;
			span->pieces[0] = (struct iovec){(void *)(uintptr_t)record, header.size};
			goto counted;
		}
		/* The next copy starts at the beginning of `joint`. */
		if (reader->flags & PERFRING_READER_COPY && (at & reader->mask) + header.size > reader->mask)
			break;
	}
	if (end == from)
		return false;
	cut_span(ring, from, end - from, span);
counted:
	span->records = ring->totals.records - records;
	span->samples = ring->totals.samples - samples;
	return true;
}

static void give_back(struct perfring_session *session, struct perfring_session_ring *ring)
{
	uint64_t returned = ring->reader.returned, lowest = ring->reader.position;

	(void)session;
	/* Records leave the window by time, so one may stay after later ones of its ring. */
	for (uint32_t j = ring->first; j < ring->end; j++)
		if (ring->window[j].position - returned < lowest - returned)
			lowest = ring->window[j].position;
	perfring_reader_return_to(&ring->reader, lowest);
	perfring__session_free_mended(ring, returned, lowest);
	assert(ring_is_valid(ring));
	if (ring->state == PERFRING_HEALTH_REPORTED_CORRUPT && ring->first == ring->end) {
		ring->totals.skipped += perfring_reader_skip(&ring->reader);
		ring->state = PERFRING_HEALTH_SOUND;
	}
}

static bool has_seen(const struct perfring_session_ring *ring)
{
	return ring->reader.observed != ring->reader.returned;
}

const struct perfring_session_ring_ops perfring__session_forward = {observe, fill, take_span, give_back, has_seen};

/* ---- returning ---- */

void perfring_session_return(struct perfring_session *session)
{
	struct perfring_session_ring *ring;

	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		if (ring->aux)
			perfring__session_aux_return(session, ring);
		ring->ops->give_back(session, ring);
	}
}

static int next_of(void *session, struct perfring_item *item)
{
	return perfring_session_next(session, item);
}

int perfring_session_fill(struct perfring_session *session, struct perfring_rows *rows, struct perfring_item *item)
{
	struct perfring_fault fault = {0};
	bool is_fault;
	int one = perfring__rows_fill(rows, item, next_of, session, &fault, &is_fault);

	if (is_fault) {
		session->fault = fault;
		session->fault_ring = UINT32_MAX;
	}
	return one;
}

struct perfring_fault perfring_session_fault(const struct perfring_session *session, uint32_t *ring)
{
	if (ring)
		*ring = session->fault_ring;
	return session->fault;
}

/* last_time is a maximum, first_time a minimum; the rest are sums. */
void perfring__totals_add(struct perfring_totals *sum, const struct perfring_totals *totals)
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
	sum->aux += totals->aux;
	sum->aux_truncated += totals->aux_truncated;
	sum->aux_partial += totals->aux_partial;
	sum->aux_collisions += totals->aux_collisions;
	if (totals->first_time && (!sum->first_time || totals->first_time < sum->first_time))
		sum->first_time = totals->first_time;
	if (totals->last_time > sum->last_time)
		sum->last_time = totals->last_time;
}

void perfring_session_totals(const struct perfring_session *session, struct perfring_totals *totals)
{
	const struct perfring_session_ring *ring;

	*totals = session->removed;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		perfring__totals_add(totals, &ring->totals);
}

uint32_t perfring_session_ring_count(const struct perfring_session *session)
{
	return session->ring_count;
}

int perfring_session_ring_totals(const struct perfring_session *session, uint32_t ring, struct perfring_totals *totals)
{
	const struct perfring_session_ring *found = perfring__session_ring_at(session, ring);

	if (!found)
		return -EINVAL;
	*totals = found->totals;
	return 0;
}

int perfring__session_count_event(struct perfring_session *session, uint32_t event)
{
	uint32_t count = session->event_totals_count;
	struct perfring_totals *totals;

	if (event < count)
		return 0;
	totals = realloc(session->event_totals, (event + 1) * sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	memset(totals + count, 0, (event + 1 - count) * sizeof(*totals));
	session->event_totals = totals;
	/* Until now all records were of the first event. */
	if (count <= 1 && event)
		perfring_session_totals(session, totals);
	session->event_totals_count = event + 1;
	return 0;
}

/* A group's read has the whole group: finds this fd by its id. */
uint64_t perfring__session_lost_of(const struct perfring_session_event *event, const struct perfring_format *format)
{
	struct perfring_read values;
	uint64_t space[PERFRING_OPENER_READ_WORDS];

	if (perfring__opener_read(event->fd, format, &values, space, sizeof(space)))
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
	if (!counts_events(session))
		perfring_session_totals(session, totals);
	else if (totals_of(session, format))
		*totals = *totals_of(session, format);
	totals->lost = totals->unknown_ids = totals->corrupt = totals->skipped = 0;
	if (event < session->kind_count && session->kinds[event])
		totals->lost = session->kinds[event]->lost;
	for (uint32_t i = 0; format->read_format & PERFRING_FORMAT_LOST && i < session->event_count; i++)
		if (session->events[i].event == event && session->events[i].fd >= 0)
			totals->lost += perfring__session_lost_of(&session->events[i], format);
	return 0;
}
