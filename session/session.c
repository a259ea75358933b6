/* session.c - a session: adding and removing rings, waiting, closing.
 *
 * The parts of session.h that are not in the files beside it: session_open.c opens events, session_order.c returns items and
 * spans, session_snapshot.c copies rings that overwrite, session_set.c follows sets, session_aux.c reads AUX areas.  One thread
 * at a time; the session owns its fds and rings.
 */
#include <perfring/session.h>

#include <perfring/page.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "event/event_private.h"
#include "os/clock.h"
#include "session_private.h"

enum {
	DEFAULT_PAGES = 128,
};

int perfring_session_open(struct perfring_session **session, uint32_t pages)
{
	int ret;

	*session = NULL;
	if (pages & (pages - 1))
		return -EINVAL;
	*session = calloc(1, sizeof(**session));
	if (!*session)
		return -ENOMEM;
	(*session)->pages = pages ? pages : DEFAULT_PAGES;
	(*session)->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = (*session)->epoll < 0 ? -errno : perfring_format_set_open(&(*session)->formats);
	if (ret) {
		perfring_session_close(*session);
		*session = NULL;
	}
	return ret;
}

struct perfring_session_ring *perfring__session_new_ring(const struct perfring_session *session)
{
	struct perfring_session_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->ops = perfring__session_is_backward(session) ? &perfring__session_backward : &perfring__session_forward;
	ring->tid = ring->cpu = ring->fd = -1;
	ring->wake = PERFRING_NO_WAKE;
	return ring;
}

int perfring__session_open_ring(struct perfring_session_ring *ring, unsigned flags)
{
	/* A backward ring has a copy in place of a reader. */
	if (ring->ops == &perfring__session_backward)
		return 0;
	/* Records in the copy are not overwritten before they are returned, because writers get no space until then. */
	return perfring_reader_open(&ring->reader, &ring->ring, flags ? flags | PERFRING_READER_KEEP : 0);
}

void perfring__session_close_ring(struct perfring_session_ring *ring)
{
	perfring__session_free_mended(ring, 0, UINT64_MAX);
	perfring_reader_close(&ring->reader);
	perfring_snapshot_close(&ring->snapshot.copy);
	perfring__session_aux_close(ring);
	perfring_ring_close(&ring->ring);
	free(ring);
}

void perfring__session_drop_ring(struct perfring_session *session, uint32_t number)
{
	struct perfring_session_ring *ring = session->rings[number];

	perfring__totals_add(&session->removed, &ring->totals);
	session->rings[number] = NULL;
	session->merging = false;
	perfring__session_close_ring(ring);
}

/* A writer of perfring's that writes to an eventfd. */
static bool can_wake(const struct perfring_session_ring *ring)
{
	return ring->wake != PERFRING_NO_WAKE && ring->ring.flags & PERFRING_RING_OWN;
}

static void disarm(const struct perfring_session_ring *ring)
{
	if (can_wake(ring))
		perfring_wakeup_disarm(&ring->ring);
}

void perfring_session_close(struct perfring_session *session)
{
	struct perfring_session_ring *ring;

	if (!session)
		return;
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		disarm(ring);
	perfring__session_leave_sets(session);
	perfring__session_cut_back(session, 0, 0);
	perfring__session_cut_kinds(session, 0);
	for (uint32_t i = 0; i < session->request_count; i++)
		perfring__target_empty(&session->requests[i].target);
	if (session->epoll >= 0)
		close(session->epoll);
	if (session->formats)
		perfring_format_set_close(session->formats);
	free(session->events);
	free(session->kinds);
	free(session->requests);
	free(session->ring_of.slots);
	free(session->watched_of.slots);
	free(session->rings);
	free(session->heap);
	free(session->wakes);
	free(session->sets);
	free(session->event_totals);
	free(session);
}

/* ---- rings that were added ---- */

/* *place: the index of fd among the wakes; PERFRING_NO_WAKE without fd.  Returns 0 or -errno. */
static int take_wake(struct perfring_session *session, int fd, uint32_t *place)
{
	struct epoll_event interest = {.events = EPOLLIN};
	uint32_t at = session->wake_count;

	*place = PERFRING_NO_WAKE;
	if (fd < 0)
		return 0;
	for (uint32_t i = 0; i < session->wake_count; i++) {
		if (session->wakes[i].fd == fd) {
			session->wakes[i].rings++;
			*place = i;
			return 0;
		}
		if (session->wakes[i].fd < 0)
			at = i;
	}
	if (perfring__os_array_grow(&session->wakes, at, &session->wake_capacity, sizeof(*session->wakes)))
		return -ENOMEM;
	interest.data.u32 = at | PERFRING_WAKE_MARK;
	if (epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &interest))
		return -errno;
	session->wakes[at].fd = fd;
	session->wakes[at].rings = 1;
	if (at == session->wake_count)
		session->wake_count++;
	*place = at;
	return 0;
}

static void give_wake(struct perfring_session *session, uint32_t place)
{
	if (place == PERFRING_NO_WAKE || --session->wakes[place].rings)
		return;
	epoll_ctl(session->epoll, EPOLL_CTL_DEL, session->wakes[place].fd, NULL);
	session->wakes[place].fd = -1;
}

int perfring_session_add_ring(struct perfring_session *session, const struct perfring_ring *memory, int wake_fd,
			      uint32_t flags)
{
	bool is_copied = memory->flags & (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD);
	struct perfring_session_ring *ring;
	uint32_t place = 0;
	int ret;

	if (is_copied != perfring__session_is_backward(session) || memory->flags & PERFRING_RING_READ_ONLY ||
	    !memory->page || !memory->data || flags & ~(uint32_t)PERFRING_READER_COPY)
		return -EINVAL;
	ret = perfring__session_make_space(session);
	if (ret)
		return ret;
	ring = perfring__session_new_ring(session);
	if (!ring)
		return -ENOMEM;
	perfring_ring_share(&ring->ring, memory);
	ring->added = true;
	ret = perfring__session_open_ring(ring, flags);
	if (!ret && !is_copied)
		ret = take_wake(session, wake_fd, &ring->wake);
	ring->is_polled = !is_copied && ring->wake == PERFRING_NO_WAKE;
	if (ret) {
		perfring__session_close_ring(ring);
		return ret;
	}
	while (perfring__session_ring_at(session, place))
		place++;
	session->rings[place] = ring;
	session->ring_count += place == session->ring_count;
	session->added++;
	session->merging = false;
	return (int)place;
}

int perfring_session_remove_ring(struct perfring_session *session, uint32_t number)
{
	struct perfring_session_ring *ring = perfring__session_ring_at(session, number);

	if (!ring || !ring->added)
		return -EINVAL;
	if (ring->ops->has_seen(ring) || ring->state != PERFRING_HEALTH_SOUND || perfring__session_aux_is_out(ring))
		return -EBUSY;
	disarm(ring);
	give_wake(session, ring->wake);
	perfring__session_drop_ring(session, number);
	session->added--;
	return 0;
}

int perfring_session_now(const struct perfring_session *session, uint64_t *time)
{
	const struct perfring_session_ring *ring;
	int ret = -EOPNOTSUPP;

	if (!perfring_format_set_count(session->formats))
		return -EINVAL;
	if (session->clock != PERFRING_CLOCK_PERF) {
		*time = perfring__os_clock_of(session->clock);
		return *time ? 0 : -EINVAL;
	}
	/* Each control page of the kernel has the parameters of its clock. */
	for (uint32_t i = 0; ret == -EOPNOTSUPP && (ring = perfring__session_ring_from(session, &i)); i++)
		if (!ring->added)
			ret = perfring_page_to_time(ring->ring.page, perfring_writer_counter(), time);
	return ret;
}

const char *perfring_session_refusal(const struct perfring_session *session)
{
	return session->refusal;
}

/* ---- running ---- */

/* Only leaders: a group starts and stops with its leader (session_open.c).  Tries all; returns the first error. */
static int control(struct perfring_session *session, unsigned long request)
{
	int ret = 0;

	for (uint32_t i = 0; i < session->event_count; i++) {
		const struct perfring_session_event *event = &session->events[i];

		if (event->fd >= 0 && session->kinds[event->event]->open.leader == event->event &&
		    ioctl(event->fd, request, 0) && !ret)
			ret = -errno;
	}
	return ret;
}

int perfring_session_enable(struct perfring_session *session)
{
	session->state = PERFRING_SESSION_ENABLED;
	return control(session, PERF_EVENT_IOC_ENABLE);
}

int perfring_session_disable(struct perfring_session *session)
{
	session->state = PERFRING_SESSION_DISABLED;
	return control(session, PERF_EVENT_IOC_DISABLE);
}

int perfring_session_fd(const struct perfring_session *session)
{
	return session->epoll;
}

bool perfring_session_is_over(const struct perfring_session *session)
{
	return session->event_count && !perfring__session_is_live(session);
}

/* Before a sleep, armed: the next crossing in an added ring writes to its eventfd; else not (wakeup.h).  Returns
 * whether there was a crossing.  As in a kernel ring, records below the watermark end no wait. */
bool perfring__session_arm(struct perfring_session *session, bool armed)
{
	const struct perfring_session_ring *ring;
	bool crossed = false;

	for (uint32_t i = 0; session->wake_count && (ring = perfring__session_ring_from(session, &i)); i++) {
		if (!can_wake(ring))
			continue;
		if (armed)
			perfring_wakeup_arm(&ring->ring, ring->reader.observed, PERFRING_WAKEUP_EVENTFD);
		else
			perfring_wakeup_disarm(&ring->ring);
		crossed |= perfring_wakeup_poll(&ring->ring) != 0;
	}
	return crossed;
}

bool perfring__session_is_live(const struct perfring_session *session)
{
	return session->live || session->added || session->set_count;
}

/* Whether some added ring cannot end a wait, or a set may add one that cannot. */
bool perfring__session_is_silent(const struct perfring_session *session)
{
	const struct perfring_session_ring *ring;

	for (uint32_t i = 0; session->added && (ring = perfring__session_ring_from(session, &i)); i++)
		if (ring->is_polled)
			return true;
	return session->set_count;
}

static void note_wake(struct perfring_session *session, uint32_t place, uint32_t events)
{
	struct perfring_session_ring *ring;
	uint64_t count;

	if (events & EPOLLIN && read(session->wakes[place].fd, &count, sizeof(count)) < 0) {
		/* Another reader of the eventfd was faster. */
	}
	if (!(events & (EPOLLHUP | EPOLLERR)))
		return;
	/* The fd would always be ready: its rings are polled from now on. */
	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++) {
		if (ring->wake != place)
			continue;
		disarm(ring);
		ring->wake = PERFRING_NO_WAKE;
		ring->is_polled = true;
		give_wake(session, place);
	}
}

/* Whether a polled ring has records that no round has seen. */
static bool has_unseen(const struct perfring_session *session)
{
	const struct perfring_session_ring *ring;

	for (uint32_t i = 0; session->added && (ring = perfring__session_ring_from(session, &i)); i++)
		if (ring->is_polled && ring->state == PERFRING_HEALTH_SOUND &&
		    perfring_page_observe_from(ring->ring.page, ring->reader.observed) != ring->reader.observed)
			return true;
	return false;
}

/* Sleeps once.  Returns 1 if a ring ended it, 0, or -errno. */
static int sleep_once(struct perfring_session *session, int timeout_ms)
{
	struct epoll_event ready[64];
	bool polled = timeout_ms == 0;
	int count, ret = 0;

	if (timeout_ms && perfring__session_arm(session, true)) {
		timeout_ms = 0;
		ret = 1;
	}
	count = epoll_wait(session->epoll, ready, sizeof(ready) / sizeof(*ready), timeout_ms);
	if (count < 0)
		ret = -errno;
	for (int i = 0; i < count; i++) {
		ret = 1;
		if (ready[i].data.u32 & PERFRING_WAKE_MARK) {
			note_wake(session, ready[i].data.u32 & ~PERFRING_WAKE_MARK, ready[i].events);
			continue;
		}
		/* The thread has exited: its fd would always be ready. */
		if (ready[i].events & (EPOLLHUP | EPOLLERR))
			perfring__session_unwatch(session, ready[i].data.u32);
	}
	/* After a wait of 0 the caller may sleep on the session's fd, so the rings stay armed. */
	if (perfring__session_arm(session, polled) && ret >= 0)
		ret = 1;
	return ret;
}

int perfring_session_wait(struct perfring_session *session, int timeout_ms)
{
	int ret, error, slice;

	if (!perfring__session_is_live(session))
		timeout_ms = 0;
	else if (perfring__session_holds(session) && (timeout_ms < 0 || timeout_ms > PERFRING_HOLD_MS))
		timeout_ms = PERFRING_HOLD_MS;
	do {
		slice = timeout_ms;
		if (perfring__session_is_silent(session) && (slice < 0 || slice > PERFRING_HOLD_MS))
			slice = PERFRING_HOLD_MS;
		ret = sleep_once(session, slice);
		error = perfring__session_walk_sets(session);
		if (timeout_ms > 0)
			timeout_ms -= slice;
	} while (!ret && !error && timeout_ms && slice > 0 && !has_unseen(session));
	perfring__session_look(session, false);
	return ret < 0 || !error ? ret : error;
}

void perfring_session_flush(struct perfring_session *session)
{
	perfring__session_walk_sets(session); /* a later wait tries again */
	perfring__session_look(session, true);
}

/* ---- what there is ---- */

const struct perfring_format_set *perfring_session_formats(const struct perfring_session *session)
{
	return session->formats;
}

int perfring_session_event_at(const struct perfring_session *session, uint32_t i, struct perfring_session_event *opened)
{
	if (i >= session->event_count)
		return 0;
	*opened = session->events[i];
	return 1;
}
