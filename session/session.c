/* session.c - a session: rings that are added to it, waiting for all, closing them. */
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

struct perfring_session_ring *perfring_session_new_ring(const struct perfring_session *session)
{
	struct perfring_session_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->ops = perfring_session_is_backward(session) ? &perfring_session_backward : &perfring_session_forward;
	ring->tid = ring->cpu = ring->fd = -1;
	ring->wake = PERFRING_NO_WAKE;
	return ring;
}

int perfring_session_open_ring(struct perfring_session_ring *ring, unsigned flags)
{
	/* A backward ring has a copy in place of a reader. */
	if (ring->ops == &perfring_session_backward)
		return 0;
	/* None of the copies is written over before it is returned, for the writers' space ends there, too. */
	return perfring_reader_open(&ring->reader, &ring->ring, flags ? flags | PERFRING_READER_KEEP : 0);
}

void perfring_session_close_ring(struct perfring_session_ring *ring)
{
	perfring_reader_close(&ring->reader);
	perfring_snapshot_close(&ring->snapshot.copy);
	perfring_session_aux_close(ring);
	perfring_ring_close(&ring->ring);
	free(ring);
}

/* Whether its writer, which is perfring's, writes to an fd for it. */
static bool can_wake(const struct perfring_session_ring *ring)
{
	return ring->wake != PERFRING_NO_WAKE && ring->ring.flags & PERFRING_RING_OWN;
}

void perfring_session_close(struct perfring_session *session)
{
	if (!session)
		return;
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i] && can_wake(session->rings[i]))
			perfring_wakeup_disarm(&session->rings[i]->ring);
	perfring_session_cut_back(session, 0, 0);
	perfring_session_cut_kinds(session, 0);
	for (uint32_t i = 0; i < session->asked_count; i++)
		perfring_target_empty(&session->asked[i].target);
	if (session->epoll >= 0)
		close(session->epoll);
	if (session->formats)
		perfring_format_set_close(session->formats);
	free(session->events);
	free(session->kinds);
	free(session->asked);
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

/* The place of fd among the wakes; PERFRING_NO_WAKE for none.  Returns 0 or -errno. */
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
	if (perfring_os_array_grow(&session->wakes, at, &session->wake_capacity, sizeof(*session->wakes)))
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
	struct perfring_session_wake *wake;

	if (place == PERFRING_NO_WAKE)
		return;
	wake = &session->wakes[place];
	if (--wake->rings)
		return;
	epoll_ctl(session->epoll, EPOLL_CTL_DEL, wake->fd, NULL);
	wake->fd = -1;
}

int perfring_session_add_ring(struct perfring_session *session, const struct perfring_ring *memory, int wake_fd,
			      uint32_t flags)
{
	bool is_backward = memory->flags & (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD);
	struct perfring_session_ring *ring;
	uint32_t place = 0;
	int ret;

	if (is_backward != perfring_session_is_backward(session) || memory->flags & PERFRING_RING_READ_ONLY ||
	    !memory->page || !memory->data || flags & ~(uint32_t)PERFRING_READER_COPY)
		return -EINVAL;
	ret = perfring_session_make_space(session);
	if (ret)
		return ret;
	ring = perfring_session_new_ring(session);
	if (!ring)
		return -ENOMEM;
	perfring_ring_share(&ring->ring, memory);
	ring->added = true;
	ret = perfring_session_open_ring(ring, flags);
	if (!ret && !is_backward)
		ret = take_wake(session, wake_fd, &ring->wake);
	ring->is_polled = !is_backward && ring->wake == PERFRING_NO_WAKE;
	if (ret) {
		perfring_session_close_ring(ring);
		return ret;
	}
	while (place < session->ring_count && session->rings[place])
		place++;
	session->rings[place] = ring;
	if (place == session->ring_count)
		session->ring_count++;
	session->added++;
	session->merging = false;
	return (int)place;
}

int perfring_session_remove_ring(struct perfring_session *session, uint32_t number)
{
	struct perfring_session_ring *ring = number < session->ring_count ? session->rings[number] : NULL;

	if (!ring || !ring->added)
		return -EINVAL;
	if (ring->ops->has_seen(ring) || ring->state != PERFRING_RING_SOUND || perfring_session_aux_is_out(ring))
		return -EBUSY;
	if (can_wake(ring))
		perfring_wakeup_disarm(&ring->ring);
	give_wake(session, ring->wake);
	perfring_totals_add(&session->removed, &ring->totals);
	perfring_session_close_ring(ring);
	session->rings[number] = NULL;
	session->added--;
	session->merging = false;
	return 0;
}

int perfring_session_now(const struct perfring_session *session, uint64_t *time)
{
	int ret = -EOPNOTSUPP;

	if (!perfring_format_set_count(session->formats))
		return -EINVAL;
	if (session->clock != PERFRING_CLOCK_PERF) {
		*time = perfring_os_clock_of(session->clock);
		return *time ? 0 : -EINVAL;
	}
	/* The kernel publishes its clock in each of its control pages. */
	for (uint32_t i = 0; ret == -EOPNOTSUPP && i < session->ring_count; i++)
		if (session->rings[i] && !session->rings[i]->added)
			ret = perfring_page_to_time(session->rings[i]->ring.page, perfring_writer_counter(), time);
	return ret;
}

const char *perfring_session_refusal(const struct perfring_session *session)
{
	return session->refusal;
}

/* ---- running ---- */

/* Leaders alone: a group starts and stops as one with its leader (session_open.c), and all of it counts the same span.  All are
 * tried; the first error is returned. */
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
	return session->event_count && !perfring_session_is_live(session);
}

/* Before a sleep: the next crossing in a ring that was added writes to its fd; after it, no more (wakeup.h).  Returns
 * whether there was one already.  Records below the watermark end no wait, as in a kernel ring. */
bool perfring_session_arm(struct perfring_session *session, bool armed)
{
	bool crossed = false;

	for (uint32_t i = 0; session->wake_count && i < session->ring_count; i++) {
		const struct perfring_session_ring *ring = session->rings[i];

		if (!ring || !can_wake(ring))
			continue;
		if (armed)
			perfring_wakeup_arm(&ring->ring, ring->reader.observed, PERFRING_WAKEUP_EVENTFD);
		else
			perfring_wakeup_disarm(&ring->ring);
		crossed |= perfring_wakeup_poll(&ring->ring) != 0;
	}
	return crossed;
}

bool perfring_session_is_live(const struct perfring_session *session)
{
	return session->live || session->added || session->set_count;
}

/* Whether a ring that was added wakes no wait, or one may be added to a set, which wakes none. */
bool perfring_session_is_silent(const struct perfring_session *session)
{
	if (session->set_count)
		return true;
	for (uint32_t i = 0; session->added && i < session->ring_count; i++)
		if (session->rings[i] && session->rings[i]->is_polled)
			return true;
	return false;
}

static void note_wake(struct perfring_session *session, uint32_t place, uint32_t events)
{
	struct perfring_session_wake *wake = &session->wakes[place];
	uint64_t count;

	if (events & EPOLLIN && read(wake->fd, &count, sizeof(count)) < 0) {
		/* Another reader of the same eventfd was faster. */
	}
	if (!(events & (EPOLLHUP | EPOLLERR)))
		return;
	/* It would always be ready: its rings are silent from now on. */
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring || ring->wake != place)
			continue;
		if (can_wake(ring))
			perfring_wakeup_disarm(&ring->ring);
		ring->wake = PERFRING_NO_WAKE;
		ring->is_polled = true;
		give_wake(session, place);
	}
}

/* Whether a ring that wakes no wait has records that no round has seen. */
static bool has_unseen(const struct perfring_session *session)
{
	for (uint32_t i = 0; session->added && i < session->ring_count; i++) {
		const struct perfring_session_ring *ring = session->rings[i];

		if (ring && ring->is_polled && ring->state == PERFRING_RING_SOUND &&
		    perfring_page_observe_from(ring->ring.page, ring->reader.observed) != ring->reader.observed)
			return true;
	}
	return false;
}

/* One sleep.  Returns 1 if a ring woke it, 0, or -errno. */
static int sleep_once(struct perfring_session *session, int timeout_ms)
{
	struct epoll_event ready[64];
	bool polled = timeout_ms == 0;
	int count, ret = 0;

	if (timeout_ms && perfring_session_arm(session, true)) {
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
		/* The target of this fd is gone: it would always be ready. */
		if (ready[i].events & (EPOLLHUP | EPOLLERR))
			perfring_session_unwatch(session, ready[i].data.u32);
	}
	/* After a wait with 0 the caller's event loop may sleep on the session's fd: then the rings stay armed. */
	if (perfring_session_arm(session, polled) && ret >= 0)
		ret = 1;
	return ret;
}

int perfring_session_wait(struct perfring_session *session, int timeout_ms)
{
	int ret, error, slice;

	if (!perfring_session_is_live(session))
		timeout_ms = 0;
	else if (perfring_session_holds(session) && (timeout_ms < 0 || timeout_ms > PERFRING_HOLD_MS))
		timeout_ms = PERFRING_HOLD_MS;
	do {
		slice = timeout_ms;
		if (perfring_session_is_silent(session) && (slice < 0 || slice > PERFRING_HOLD_MS))
			slice = PERFRING_HOLD_MS;
		ret = sleep_once(session, slice);
		error = perfring_session_walk_sets(session);
		if (timeout_ms > 0)
			timeout_ms -= slice;
	} while (!ret && !error && timeout_ms && slice > 0 && !has_unseen(session));
	perfring_session_look(session, false);
	return ret < 0 || !error ? ret : error;
}

void perfring_session_flush(struct perfring_session *session)
{
	perfring_session_walk_sets(session); /* what cannot be added now is added by a later wait */
	perfring_session_look(session, true);
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
