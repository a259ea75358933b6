/* session_snapshot.c - rings that overwrite: paused and copied together, then read in time order or as spans.
 *
 * perfring_session_snapshot of session.h, and the operations on copies that session_order.c calls for BACKWARD sessions (struct
 * perfring_session_ring_ops).  A copy is made by rb/snapshot.c; while it is in use its ring goes on being written.
 */
#include <perfring/session.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include "os/membarrier.h"
#include "sample/lengthened.h"
#include "session_private.h"

enum {
	IN_FLIGHT = 65536, /* the maximal size of a record */
};

/* ---- copies ---- */

static bool is_backward(const struct perfring_snapshot *copy)
{
	return copy->flags & PERFRING_RING_BACKWARD;
}

/* Whether the totals count a record of `size` bytes already: by the position after it. */
static bool was_counted(const struct perfring_session_snapshot *snapshot, const struct perf_event_header *record,
			uint64_t size)
{
	const struct perfring_snapshot *copy = &snapshot->copy;
	uint64_t place = (uint64_t)((const unsigned char *)record - copy->data);
	uint64_t end = is_backward(copy) ? copy->published - place : copy->from + place + size;

	return (int64_t)(end - snapshot->counted) <= 0;
}

/* In the copy, which is this process's own, and whose sizes were checked. */
static void mend(const struct perfring_session *session, const struct perf_event_header *record)
{
	if (PERFRING_UNLIKELY(perfring__lengthened_may_be(record)))
		perfring__lengthened_mend(session->formats, record, (void *)(uintptr_t)record);
}

static void fill(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_snapshot *copy = &ring->snapshot.copy;
	struct perfring_pending waiting;
	struct perf_event_header header;

	while (ring->end - ring->first < PERFRING_WINDOW && perfring_snapshot_next(copy, &waiting.record) == 1) {
		memcpy(&header, waiting.record, sizeof(header));
		mend(session, waiting.record);
		waiting.position = copy->oldest_first - 1;
		perfring__session_put(session, ring, &waiting, &header,
				      was_counted(&ring->snapshot, waiting.record, header.size));
	}
}

/* The offset of the next record of a span: as the writer wrote them, upwards. */
static uint64_t next_place(const struct perfring_snapshot *copy)
{
	if (is_backward(copy))
		return copy->newest_first < copy->count ? copy->places[copy->newest_first] : UINT64_MAX;
	return copy->oldest_first < copy->count ? copy->places[copy->count - 1 - copy->oldest_first] : UINT64_MAX;
}

/* The next span of a copy: of a backward ring the newest record first. */
static bool take_span(struct perfring_session *session, struct perfring_session_ring *ring, struct perfring_span *span)
{
	struct perfring_snapshot *copy = &ring->snapshot.copy;
	const struct perf_event_header *record;
	struct perf_event_header header;
	uint64_t from, end;

	from = end = next_place(copy);
	if (from == UINT64_MAX)
		return false;
	span->records = 0;
	span->samples = 0;
	/* A filler ends the span. */
	while (next_place(copy) == end) {
		const struct perfring_format *format = NULL;

		if (is_backward(copy))
			perfring_snapshot_previous(copy, &record);
		else
			perfring_snapshot_next(copy, &record);
		memcpy(&header, record, sizeof(header));
		mend(session, record);
		span->records++;
		span->samples += header.type == PERF_RECORD_SAMPLE;
		if (!was_counted(&ring->snapshot, record, header.size)) {
			perfring_format_set_of(session->formats, record, &format, NULL);
			perfring__session_count(session, ring, format, record, &header,
						format ? perfring_format_time_of(format, record) : 0);
		}
		end += header.size;
	}
	span->size = end - from;
	span->count = 1;
	span->pieces[0].iov_base = copy->data + from;
	span->pieces[0].iov_len = (size_t)span->size;
	return true;
}

static void drop(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_snapshot *copy = &ring->snapshot.copy;

	if (copy->oldest_first || copy->newest_first)
		ring->snapshot.counted = copy->published;
	perfring_snapshot_close(copy);
	ring->first = ring->end = ring->old = 0;
	session->merging = false;
	if (ring->state == PERFRING_HEALTH_REPORTED_CORRUPT)
		ring->state = PERFRING_HEALTH_SOUND;
}

static bool has_seen(const struct perfring_session_ring *ring)
{
	return ring->snapshot.copy.count != 0;
}

const struct perfring_session_ring_ops perfring__session_backward = {NULL, fill, take_span, drop, has_seen};

static int pause_output(const struct perfring_session_ring *ring, unsigned long paused)
{
	return ring->added ? 0 : ioctl(ring->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, paused) ? -errno : 0;
}

/* Drops the oldest records, which the kernel may be overwriting. */
static void leave_out_oldest(struct perfring_snapshot *copy)
{
	uint64_t margin = copy->size / 2 < IN_FLIGHT ? copy->size / 2 : IN_FLIGHT;
	uint64_t end = copy->size - margin;
	struct perf_event_header header;

	while (copy->count) {
		uint64_t place = copy->places[copy->count - 1];

		memcpy(&header, copy->data + place, sizeof(header));
		if (place + header.size <= end)
			break;
		copy->oldest = copy->published - place;
		copy->count--;
	}
	if ((uint64_t)copy->fault.at - copy->from >= end)
		copy->fault.what = NULL;
}

static int take_copy(struct perfring_session *session, uint32_t number, bool settled)
{
	struct perfring_session_ring *ring = session->rings[number];
	struct perfring_snapshot *copy = &ring->snapshot.copy;
	int ret = perfring_snapshot_take(copy, &ring->ring, 0);

	if (ret == -EBADMSG) {
		ring->totals.corrupt++;
		session->fault = copy->fault;
		session->fault_ring = number;
	}
	if (ret)
		return ret;
	/* perfring's writers publish what they are about to overwrite. */
	if (!settled && !ring->added)
		leave_out_oldest(copy);
	if (copy->fault.what && ring->state == PERFRING_HEALTH_SOUND) {
		ring->reader.fault = copy->fault;
		perfring__session_found_corrupt(session, ring);
	}
	ring->old_end = copy->count;
	ring->latest = 0;
	return 0;
}

/* ---- snapshots ---- */

int perfring_session_snapshot(struct perfring_session *session)
{
	struct perfring_session_ring *ring;
	bool kernel = false, settled;
	uint32_t count = 0;
	int first = 0, ret;

	if (!perfring__session_is_backward(session))
		return -EINVAL;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		count++;
		kernel |= !ring->added;
		drop(session, ring);
		ret = pause_output(ring, 1);
		first = first ? first : ret;
		ring->snapshot.is_paused = !ret;
	}
	if (!count)
		return -EINVAL;
	/* A pause stops new records.  One that is being written, above the published head, may overwrite the oldest.
	 * The kernel writes with preemption disabled, so it is finished after a membarrier (a grace period). */
	settled = !kernel || perfring__os_membarrier_system();
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		if (ring->snapshot.is_paused) {
			ret = take_copy(session, i, settled);
			first = first ? first : ret;
			ret = pause_output(ring, 0);
			first = first ? first : ret;
		}
	/* A new order: this copy may have records of the last one. */
	session->last = 0;
	session->merging = false;
	session->span_ring = 0;
	return first;
}
