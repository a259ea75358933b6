/* session_snapshot.c - what backward rings hold, all at one moment: paused, copied, handed out in time order or as spans. */
#include <perfring/session.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include "os/membarrier.h"
#include "session_private.h"

enum {
	IN_FLIGHT = 65536, /* as much as one record can be */
};

static int pause_output(const struct perfring_session_ring *ring, unsigned long paused)
{
	return ring->added ? 0 : ioctl(ring->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, paused) ? -errno : 0;
}

/* The oldest may be what somebody still writes over. */
static void leave_out_oldest(struct perfring_snapshot *moment)
{
	uint64_t margin = moment->size / 2 < IN_FLIGHT ? moment->size / 2 : IN_FLIGHT;
	uint64_t end = moment->size - margin;
	struct perf_event_header header;

	while (moment->count) {
		uint64_t place = moment->places[moment->count - 1];

		memcpy(&header, moment->data + place, sizeof(header));
		if (place + header.size <= end)
			break;
		moment->oldest = moment->published - place;
		moment->count--;
	}
	if ((uint64_t)moment->fault.at - moment->from >= end)
		moment->fault.what = NULL;
}

static int take(struct perfring_session *session, uint32_t number, bool settled)
{
	struct perfring_session_ring *ring = session->rings[number];
	struct perfring_snapshot *moment = &ring->moment;
	int ret = perfring_snapshot_take(moment, &ring->ring, 0);

	if (ret == -EBADMSG) {
		ring->totals.corrupt++;
		session->fault = moment->fault;
		session->fault_ring = number;
	}
	if (ret)
		return ret;
	/* Our own writers say what they are about to write over. */
	if (!settled && !ring->added)
		leave_out_oldest(moment);
	if (moment->fault.what && ring->state == PERFRING_RING_SOUND) {
		ring->reader.fault = moment->fault;
		perfring_session_found_corrupt(session, ring);
	}
	ring->reader.observed = moment->count;
	ring->old_end = moment->count;
	ring->youngest = 0;
	return 0;
}

int perfring_session_snapshot(struct perfring_session *session)
{
	bool kernel = false, settled;
	uint32_t falling = 0;
	int first = 0, ret;

	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring || !perfring_ring_falls(ring))
			continue;
		falling++;
		kernel |= !ring->added;
		perfring_session_snapshot_drop(ring);
	}
	if (!falling)
		return -EINVAL;
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i] && perfring_ring_falls(session->rings[i])) {
			ret = pause_output(session->rings[i], 1);
			first = first ? first : ret;
			session->rings[i]->is_paused = !ret;
		}
	/* Pausing stops who begins to write, not who is in the middle of it, above the published head, where the oldest
	 * records lie.  The kernel writes with preemption disabled: after the barrier, a grace period, it is done. */
	settled = !kernel || perfring_os_membarrier_system();
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i] && perfring_ring_falls(session->rings[i]) && session->rings[i]->is_paused) {
			ret = take(session, i, settled);
			first = first ? first : ret;
			ret = pause_output(session->rings[i], 0);
			first = first ? first : ret;
		}
	/* A round of its own: what the copy before told may be in this one again. */
	session->last = 0;
	session->merging = false;
	session->span_ring = 0;
	return first;
}

static bool was_counted(const struct perfring_session_ring *ring, uint64_t place)
{
	return (int64_t)(ring->moment.published - place - ring->counted) <= 0;
}

bool perfring_session_snapshot_fetch(struct perfring_session_ring *ring, struct perfring_waiting *waiting,
			   struct perf_event_header *header, bool *counted)
{
	if (perfring_snapshot_next(&ring->moment, &waiting->record) != 1)
		return false;
	memcpy(header, waiting->record, sizeof(*header));
	*counted = was_counted(ring, (uint64_t)((const unsigned char *)waiting->record - ring->moment.data));
	waiting->position = ring->reader.position++;
	return true;
}

bool perfring_session_snapshot_next_span(struct perfring_session *session, struct perfring_session_ring *ring,
			       struct perfring_span *span)
{
	struct perfring_snapshot *moment = &ring->moment;
	const struct perf_event_header *record;
	struct perf_event_header header;
	uint64_t from, end;

	if (moment->newest_first == moment->count)
		return false;
	from = end = moment->places[moment->newest_first];
	span->records = 0;
	span->samples = 0;
	/* Behind a filler another one begins. */
	while (moment->newest_first < moment->count && moment->places[moment->newest_first] == end) {
		const struct perfring_format *format = NULL;

		perfring_snapshot_previous(moment, &record);
		memcpy(&header, record, sizeof(header));
		span->records++;
		span->samples += header.type == PERF_RECORD_SAMPLE;
		if (!was_counted(ring, end)) {
			perfring_format_set_of(session->formats, record, &format, NULL);
			perfring_session_count(
				session, ring, format, &header, perfring_session_lost_in(record, &header),
				header.type == PERF_RECORD_SAMPLE && format ? perfring_format_time_of(format, record)
									    : 0);
		}
		end += header.size;
	}
	ring->reader.position = moment->newest_first;
	span->size = end - from;
	span->count = 1;
	span->pieces[0].iov_base = moment->data + from;
	span->pieces[0].iov_len = (size_t)span->size;
	return true;
}

void perfring_session_snapshot_drop(struct perfring_session_ring *ring)
{
	struct perfring_snapshot *moment = &ring->moment;

	if (!perfring_ring_falls(ring))
		return;
	if (moment->oldest_first || moment->newest_first)
		ring->counted = moment->published;
	perfring_snapshot_close(moment);
	ring->reader.position = ring->reader.observed = 0;
	ring->first = ring->end = ring->old = 0;
	if (ring->state == PERFRING_RING_TOLD_CORRUPT)
		ring->state = PERFRING_RING_SOUND;
}
