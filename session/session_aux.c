/* session_aux.c - the AUX areas of a session's rings (docs/abi.md 8): mapped, handed out piece by piece, their producers started
 * again. */
#include <perfring/session.h>

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session_private.h"

/* ---- mapping ---- */

static struct perfring_session_aux *new_aux(struct perfring_session_ring *ring, struct perfring_aux_area *area)
{
	struct perfring_session_aux *aux = calloc(1, sizeof(*aux));

	if (!aux)
		return NULL;
	aux->area = area ? area : &aux->mapped;
	aux->fd = -1;
	if (area)
		aux->taken = aux->end = area->returned;
	ring->aux = aux;
	return aux;
}

/* The first of the ring's fds whose PMU has an area. */
static int map_ring(struct perfring_session *session, uint32_t number, uint32_t pages, bool snapshot)
{
	struct perfring_session_ring *ring = session->rings[number];
	uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), size = pages * page_size;
	uint64_t offset = page_size + ring->ring.size;
	void *memory = MAP_FAILED;
	struct perfring_session_aux *aux;
	int ret = -EOPNOTSUPP;

	if (size > SIZE_MAX)
		return -ENOMEM;
	PERFRING_STORE(&ring->ring.page->aux_offset, offset);
	PERFRING_STORE(&ring->ring.page->aux_size, size);
	for (uint32_t i = 0; memory == MAP_FAILED && i < session->event_count; i++) {
		if (session->events[i].ring != number || session->events[i].fd < 0)
			continue;
		memory = mmap(NULL, (size_t)size, snapshot ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
			      session->events[i].fd, (off_t)offset);
		if (memory == MAP_FAILED && errno != EOPNOTSUPP)
			ret = -errno;
		if (memory == MAP_FAILED)
			continue;
		aux = new_aux(ring, NULL);
		if (!aux) {
			munmap(memory, (size_t)size);
			return -ENOMEM;
		}
		ret = perfring_aux_wrap(&aux->mapped, ring->ring.page, memory, size,
					snapshot ? PERFRING_RING_OVERWRITE : 0);
		aux->mapped.mapping_size = size;
		aux->taken = aux->end = aux->mapped.returned;
		aux->fd = session->events[i].fd;
	}
	if (ret) {
		perfring_session_aux_close(ring);
		PERFRING_STORE(&ring->ring.page->aux_offset, UINT64_C(0));
		PERFRING_STORE(&ring->ring.page->aux_size, UINT64_C(0));
	}
	return ret;
}

int perfring_session_map_aux(struct perfring_session *session, uint32_t pages, bool snapshot)
{
	int ret, mapped = 0;

	/* The control page of a backward ring is mapped read-only, and the area is described in it. */
	if (!pages || pages & (pages - 1) || perfring_session_is_backward(session))
		return -EINVAL;
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring || ring->added || ring->aux)
			continue;
		ret = map_ring(session, i, pages, snapshot);
		if (ret && ret != -EOPNOTSUPP)
			return ret;
		mapped += !ret;
	}
	return mapped ? mapped : -EOPNOTSUPP;
}

int perfring_session_add_aux(struct perfring_session *session, uint32_t number, struct perfring_aux_area *area)
{
	struct perfring_session_ring *ring = number < session->ring_count ? session->rings[number] : NULL;

	if (!ring || !ring->added || ring->reader.flags & PERFRING_READER_COPY || area->page != ring->ring.page)
		return -EINVAL;
	if (ring->aux)
		return -EEXIST;
	return new_aux(ring, area) ? 0 : -ENOMEM;
}

void perfring_session_aux_close(struct perfring_session_ring *ring)
{
	if (ring->aux)
		perfring_aux_close(&ring->aux->mapped);
	free(ring->aux);
	ring->aux = NULL;
}

/* ---- reading ---- */

void perfring_session_aux_look(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_session_aux *aux = ring->aux;
	const unsigned char *bytes;

	if (aux->health != PERFRING_RING_SOUND)
		return;
	if (perfring_aux_observe(aux->area, &bytes) < 0) {
		aux->health = PERFRING_RING_FOUND_CORRUPT;
		aux->fault.at = (int64_t)perfring_page_observe_aux(aux->area->page);
		aux->fault.what = "aux_head is not between what was read and the area's end";
		ring->totals.corrupt++;
		session->corrupt_rings++;
		return;
	}
	/* One that overwrites may have gone over what was not handed out, or not returned, yet. */
	if (aux->taken - aux->area->returned > aux->area->size)
		aux->taken = aux->area->returned;
	aux->end = aux->area->observed;
	aux->ran |= aux->end != aux->area->returned;
}

int perfring_session_next_aux(struct perfring_session *session, struct perfring_aux_piece *piece)
{
	int ret = session ? perfring_session_report_corrupt(session) : -EINVAL;

	if (ret)
		return ret;
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_aux *aux = session->rings[i] ? session->rings[i]->aux : NULL;
		uint64_t at, row;

		if (!aux || aux->taken == aux->end)
			continue;
		at = aux->taken & (aux->area->size - 1);
		row = aux->area->span - at;
		piece->bytes = aux->area->data + at;
		piece->size = aux->end - aux->taken < row ? aux->end - aux->taken : row;
		piece->position = aux->taken;
		piece->ring = i;
		piece->padding = 0;
		aux->taken += piece->size;
		return 1;
	}
	return 0;
}

void perfring_session_aux_return(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_session_aux *aux = ring->aux;
	struct perfring_aux_area *area = aux->area;

	if (aux->taken != area->returned)
		perfring_aux_return(area, aux->taken - area->returned);
	if (aux->health == PERFRING_RING_REPORTED_CORRUPT) {
		/* Goes on where it says that it is. */
		uint64_t position = perfring_page_observe_aux_from(area->page, area->returned);
		uint64_t dropped = position - area->returned;

		ring->totals.skipped += dropped < area->size ? dropped : area->size;
		area->observed = area->returned = aux->taken = aux->end = position;
		perfring_page_return_aux(area->page, position);
		aux->health = PERFRING_RING_SOUND;
	}
	/* Each time: one that found no space just before this return says so in no record, and nothing may be left to read.
	 * One that runs, or was never started, is left alone. */
	if (area->flags & PERFRING_RING_OVERWRITE)
		return;
	if (aux->fd < 0)
		perfring_aux_enable(area);
	else if (aux->ran && session->state != PERFRING_SESSION_DISABLED)
		ioctl(aux->fd, PERF_EVENT_IOC_ENABLE, 0);
}

bool perfring_session_aux_is_out(const struct perfring_session_ring *ring)
{
	const struct perfring_session_aux *aux = ring->aux;

	return aux && (aux->taken != aux->area->returned || aux->health != PERFRING_RING_SOUND);
}
