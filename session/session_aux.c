/* session_aux.c - the AUX areas of a session's rings (docs/abi.md 8): mapped, read in pieces, restarted.
 *
 * The functions of session.h on AUX areas; session_order.c calls it at each look and return.  Positions in the control page are a
 * producer's, and checked.  `perfring record` reads areas by it (tools/auxtrace.c).
 */
#include <perfring/session.h>

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session_private.h"

enum {
	LAP_LOOK = 512, /* bytes */
};

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

/* Maps the area of the first of the ring's fds whose PMU has one. */
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
		perfring__session_aux_close(ring);
		PERFRING_STORE(&ring->ring.page->aux_offset, UINT64_C(0));
		PERFRING_STORE(&ring->ring.page->aux_size, UINT64_C(0));
	}
	return ret;
}

int perfring_session_map_aux(struct perfring_session *session, uint32_t pages, bool snapshot)
{
	struct perfring_session_ring *ring;
	int ret, mapped = 0;

	/* The area is described in the control page, which is read-only in a backward ring. */
	if (!pages || pages & (pages - 1) || perfring__session_is_backward(session))
		return -EINVAL;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		if (ring->added || ring->aux)
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
	struct perfring_session_ring *ring = perfring__session_ring_at(session, number);

	if (!ring || !ring->added || ring->reader.flags & PERFRING_READER_COPY || area->page != ring->ring.page)
		return -EINVAL;
	if (ring->aux)
		return -EEXIST;
	return new_aux(ring, area) ? 0 : -ENOMEM;
}

void perfring__session_aux_close(struct perfring_session_ring *ring)
{
	if (ring->aux)
		perfring_aux_close(&ring->aux->mapped);
	free(ring->aux);
	ring->aux = NULL;
}

/* ---- reading ---- */

/* PMUs of the kernel report positions in an overwriting area that are reduced by its size (Intel PT, SPE), so that laps are
 * not counted.  Whether there was one, the end of the area shows, which is 0 until then. */
static bool has_lapped(const struct perfring_aux_area *area, uint64_t position)
{
	uint64_t free = area->size - position, look = free < LAP_LOOK ? free : LAP_LOOK;

	if (position >= area->size)
		return false;
	for (uint64_t i = area->size - look; i < area->size; i++)
		if (area->data[i])
			return true;
	return false;
}

void perfring__session_aux_look(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_session_aux *aux = ring->aux;
	bool is_kernels = aux->fd >= 0 && aux->area->flags & PERFRING_RING_OVERWRITE;
	const unsigned char *bytes;

	/* A snapshot in use stays as it is. */
	if (aux->health != PERFRING_HEALTH_SOUND || (is_kernels && aux->taken != aux->area->returned))
		return;
	if (perfring_aux_observe(aux->area, &bytes) < 0) {
		aux->health = PERFRING_HEALTH_FOUND_CORRUPT;
		aux->fault.at = (int64_t)perfring_page_observe_aux(aux->area->page);
		aux->fault.what = "aux_head is not between what was read and the area's end";
		ring->totals.corrupt++;
		session->corrupt_rings++;
		return;
	}
	if (is_kernels && has_lapped(aux->area, aux->area->observed)) {
		/* all of it, as if it were the second lap */
		aux->taken = aux->area->returned = aux->area->observed;
		aux->area->observed += aux->area->size;
	}
	/* An overwriting producer may have passed what was not taken, or not returned. */
	if (aux->taken - aux->area->returned > aux->area->size)
		aux->taken = aux->area->returned;
	aux->end = aux->area->observed;
	aux->has_run |= aux->end != aux->area->returned;
}

int perfring_session_next_aux(struct perfring_session *session, struct perfring_aux_piece *piece)
{
	int ret = session ? perfring__session_report_corrupt(session) : -EINVAL;
	struct perfring_session_ring *ring;

	if (ret)
		return ret;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		struct perfring_session_aux *aux = ring->aux;
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

void perfring__session_aux_return(struct perfring_session *session, struct perfring_session_ring *ring)
{
	struct perfring_session_aux *aux = ring->aux;
	struct perfring_aux_area *area = aux->area;

	if (aux->taken != area->returned)
		perfring_aux_return(area, aux->taken - area->returned);
	if (aux->health == PERFRING_HEALTH_REPORTED_CORRUPT) {
		/* Continues at the producer's position. */
		uint64_t position = perfring_page_observe_aux_from(area->page, area->returned);
		uint64_t dropped = position - area->returned;

		ring->totals.skipped += dropped < area->size ? dropped : area->size;
		area->observed = area->returned = aux->taken = aux->end = position;
		perfring_page_return_aux(area->page, position);
		aux->health = PERFRING_HEALTH_SOUND;
	}
	/* After each return: a producer that found no space just before it wrote no record, and there may be nothing to
	 * read.  Does not touch one that runs, or was never started. */
	if (area->flags & PERFRING_RING_OVERWRITE)
		return;
	if (aux->fd < 0)
		perfring_aux_enable(area);
	else if (aux->has_run && session->state != PERFRING_SESSION_DISABLED)
		ioctl(aux->fd, PERF_EVENT_IOC_ENABLE, 0);
}

bool perfring__session_aux_is_out(const struct perfring_session_ring *ring)
{
	const struct perfring_session_aux *aux = ring->aux;

	return aux && (aux->taken != aux->area->returned || aux->health != PERFRING_HEALTH_SOUND);
}
