/* session.c - opening events onto shared rings, waiting for them, closing them. */
#include <perfring/session.h>

#include <perfring/wakeup.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "event.h"
#include "session.h"

enum {
	DEFAULT_PAGES = 128
};

static void __attribute__((format(printf, 2, 3))) refuse(struct perfring_session *session, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->refusal, sizeof(session->refusal), format, arguments);
	va_end(arguments);
}

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

static void close_ring(struct perfring_session_ring *ring)
{
	perfring_reader_close(&ring->reader);
	if (!ring->added)
		perfring_ring_close(&ring->ring);
	free(ring);
}

/* Whether a writer of ours writes to an fd for it. */
static bool can_wake(const struct perfring_session_ring *ring)
{
	return ring->added && ring->wake != PERFRING_NO_WAKE && ring->ring.flags & PERFRING_RING_OWN;
}

/* Drops what came after these counts. */
static void cut_back(struct perfring_session *session, uint32_t events, uint32_t rings)
{
	while (session->event_count > events) {
		int fd = session->events[--session->event_count].fd;

		/* close alone leaves it in the epoll set while a forked child has a copy of it. */
		epoll_ctl(session->epoll, EPOLL_CTL_DEL, fd, NULL);
		close(fd);
		session->live--;
	}
	while (session->ring_count > rings)
		if (session->rings[--session->ring_count])
			close_ring(session->rings[session->ring_count]);
}

void perfring_session_close(struct perfring_session *session)
{
	if (!session)
		return;
	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i] && can_wake(session->rings[i]))
			perfring_wakeup_disarm(&session->rings[i]->ring);
	cut_back(session, 0, 0);
	if (session->epoll >= 0)
		close(session->epoll);
	if (session->formats)
		perfring_format_set_close(session->formats);
	free(session->events);
	free(session->rings);
	free(session->heap);
	free(session->wakes);
	free(session);
}

/* ---- adding ---- */

static int check_attr(struct perfring_session *session, const struct perf_event_attr *attr,
		      struct perfring_format *format, int32_t *clock)
{
	int ret = perfring_format_from_attr(format, attr);
	uint32_t count = perfring_format_set_count(session->formats);
	struct perf_event_attr members;

	if (ret) {
		refuse(session, "attr.size %u is not the size of a struct perf_event_attr.", attr->size);
		return ret;
	}
	if (!(format->sample_type & PERFRING_SAMPLE_TIME) || !perfring_format_has_trailer(format)) {
		refuse(session,
		       "a session orders records by time: sample_type needs TIME, and sample_id_all must be set.");
		return -EINVAL;
	}
	members = perfring_attr_whole(attr);
	if (members.write_backward) {
		refuse(session, "a session reads its rings forwards: write_backward must not be set.");
		return -EINVAL;
	}
	*clock = members.use_clockid ? members.clockid : PERFRING_CLOCK_PERF;
	if (count && *clock != session->clock) {
		refuse(session,
		       "times of several clocks have no order: use_clockid and clockid must be the same in each "
		       "event of a session.");
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct perfring_format *other = perfring_format_set_at(session->formats, i);

		if (!(format->sample_type & other->sample_type & PERFRING_SAMPLE_IDENTIFIER)) {
			refuse(session, "several events in one session are told apart by IDENTIFIER: each sample_type "
					"needs it.");
			return -EINVAL;
		}
	}
	return 0;
}

static struct perfring_session_ring *find_ring(const struct perfring_session *session, int32_t tid, int32_t cpu,
					       uint32_t *index)
{
	/* The ring of the same place in the event before this one, most of the time: look from there. */
	for (uint32_t i = 0; i < session->ring_count; i++) {
		uint32_t at = (*index + i) % session->ring_count;
		struct perfring_session_ring *ring = session->rings[at];

		if (ring && !ring->added && ring->cpu == cpu && (cpu >= 0 || ring->tid == tid)) {
			*index = at;
			return ring;
		}
	}
	return NULL;
}

static void *grow(void *array, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? *room * 2 : 16;
	void *grown = realloc(array, wanted * size);

	if (grown)
		*room = wanted;
	return grown;
}

/* Room for one ring more, in both arrays. */
static int make_room(struct perfring_session *session)
{
	uint32_t room = session->ring_room;
	void *rings, *heap;

	if (session->ring_count < room)
		return 0;
	rings = grow(session->rings, &room, sizeof(*session->rings));
	if (!rings)
		return -ENOMEM;
	session->rings = rings;
	heap = realloc(session->heap, room * sizeof(*session->heap));
	if (!heap)
		return -ENOMEM;
	session->heap = heap;
	session->ring_room = room;
	return 0;
}

/* Maps fd as the ring of its thread or CPU. */
static int add_ring(struct perfring_session *session, int fd, int32_t tid, int32_t cpu)
{
	struct perfring_session_ring *ring;
	int ret = make_room(session);

	if (ret)
		return ret;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ret = perfring_ring_map(&ring->ring, fd, session->pages, 0);
	if (ret) {
		perfring_ring_explain(ret, session->pages, session->refusal, sizeof(session->refusal));
		free(ring);
		return ret;
	}
	ret = perfring_reader_open(&ring->reader, &ring->ring, 0);
	if (ret) {
		close_ring(ring);
		return ret;
	}
	ring->tid = cpu >= 0 ? -1 : tid;
	ring->cpu = cpu;
	ring->fd = fd;
	session->rings[session->ring_count++] = ring;
	return 0;
}

/* Opens one fd and joins it to its ring. */
static int add_fd(struct perfring_session *session, const struct perf_event_attr *attr, int32_t tid, int32_t cpu,
		  uint32_t *ring_index)
{
	struct perfring_session_event *event;
	struct perfring_session_ring *ring;
	struct epoll_event interest = {.events = EPOLLIN};
	int ret, fd;

	if (session->event_count == session->event_room) {
		void *events = grow(session->events, &session->event_room, sizeof(*session->events));

		if (!events)
			return -ENOMEM;
		session->events = events;
	}
	fd = perfring_event_open(attr, tid, cpu, -1, 0);
	if (fd < 0) {
		perfring_event_explain(fd, attr, tid, cpu, session->refusal, sizeof(session->refusal));
		return fd;
	}
	event = &session->events[session->event_count];
	memset(event, 0, sizeof(*event));
	event->fd = fd;
	event->tid = tid;
	event->cpu = cpu;
	ret = perfring_event_id(fd, &event->id);
	ring = ret ? NULL : find_ring(session, tid, cpu, ring_index);
	if (!ret && ring) {
		ret = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
		if (ret)
			refuse(session, "the event cannot write into the ring of its CPU (SET_OUTPUT: %s).",
			       strerror(-ret));
	} else if (!ret) {
		ret = add_ring(session, fd, tid, cpu);
		*ring_index = ret ? 0 : session->ring_count - 1;
	}
	event->ring = *ring_index;
	interest.data.u32 = session->event_count;
	if (!ret && epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &interest))
		ret = -errno;
	if (ret) {
		if (!*session->refusal)
			refuse(session, "adding the event's fd failed: %s.", strerror(-ret));
		close(fd);
		return ret;
	}
	session->event_count++;
	session->live++;
	return 0;
}

/* Where all samples have their time, for spans. */
static void note_time_place(struct perfring_session *session, const struct perfring_format *format)
{
	uint32_t at = format->sample_time_at;

	session->sample_time_at = format->index == 0 || session->sample_time_at == at ? at : 0;
}

int perfring_session_add(struct perfring_session *session, const struct perf_event_attr *attr,
			 const struct perfring_target *target)
{
	static const int32_t ANY = -1;
	const int32_t *tids = target->tids.count ? target->tids.numbers : &ANY;
	const int32_t *cpus = target->cpus.count ? target->cpus.numbers : &ANY;
	uint32_t tid_count = target->tids.count ? target->tids.count : 1;
	uint32_t cpu_count = target->cpus.count ? target->cpus.count : 1;
	uint32_t events = session->event_count, rings = session->ring_count, place = 0;
	struct perfring_format format;
	int32_t clock;
	int ret, index;

	session->refusal[0] = 0;
	if (!target->tids.count && !target->cpus.count) {
		refuse(session, "the target names neither a thread nor a CPU.");
		return -EINVAL;
	}
	ret = check_attr(session, attr, &format, &clock);
	if (ret)
		return ret;
	for (uint32_t t = 0; !ret && t < tid_count; t++)
		for (uint32_t c = 0; !ret && c < cpu_count; c++) {
			ret = add_fd(session, attr, tids[t], cpus[c], &place);
			/* A thread that has died since it was listed, one of several. */
			if (ret == -ESRCH && tid_count > 1)
				ret = 0;
		}
	if (!ret && session->event_count == events)
		ret = -ESRCH;
	index = ret ? ret : perfring_format_set_add(session->formats, attr);
	for (uint32_t i = events; index >= 0 && i < session->event_count; i++) {
		session->events[i].event = (uint32_t)index;
		ret = perfring_format_set_put(session->formats, session->events[i].id, (uint32_t)index);
		if (ret)
			index = ret;
	}
	if (index < 0) {
		if (!*session->refusal)
			refuse(session, "adding the event failed: %s.", strerror(-index));
		cut_back(session, events, rings);
		return index;
	}
	session->refusal[0] = 0;
	session->clock = clock;
	note_time_place(session, perfring_format_set_at(session->formats, (uint32_t)index));
	return index;
}

/* ---- rings that were added ---- */

int perfring_session_describe(struct perfring_session *session, const struct perf_event_attr *attr, const uint64_t *ids,
			      uint32_t count)
{
	struct perfring_format format;
	int32_t clock;
	int index, ret;

	session->refusal[0] = 0;
	ret = check_attr(session, attr, &format, &clock);
	for (uint32_t i = 0; !ret && i < count; i++)
		if (!ids[i] || perfring_format_set_find(session->formats, ids[i])) {
			ret = ids[i] ? -EEXIST : -EINVAL;
			refuse(session, ids[i] ? "id %llu is known already." : "%llu is no id.",
			       (unsigned long long)ids[i]);
		}
	index = ret ? ret : perfring_format_set_add(session->formats, attr);
	for (uint32_t i = 0; index >= 0 && i < count; i++) {
		ret = perfring_format_set_put(session->formats, ids[i], (uint32_t)index);
		if (ret)
			index = ret;
	}
	if (index < 0) {
		if (!*session->refusal)
			refuse(session, "describing the event failed: %s.", strerror(-index));
		return index;
	}
	session->clock = clock;
	note_time_place(session, perfring_format_set_at(session->formats, (uint32_t)index));
	return index;
}

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
	if (at == session->wake_room) {
		void *wakes = grow(session->wakes, &session->wake_room, sizeof(*session->wakes));

		if (!wakes)
			return -ENOMEM;
		session->wakes = wakes;
	}
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

int perfring_session_add_ring(struct perfring_session *session, const struct perfring_ring *memory, int wake_fd)
{
	struct perfring_session_ring *ring;
	uint32_t place = 0;
	int ret;

	if (memory->flags & (PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD | PERFRING_RING_READ_ONLY))
		return -EINVAL;
	ret = make_room(session);
	if (ret)
		return ret;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->ring = *memory;
	ring->added = true;
	ring->tid = -1;
	ring->cpu = -1;
	ring->fd = -1;
	ret = perfring_reader_open(&ring->reader, &ring->ring, 0);
	if (!ret)
		ret = take_wake(session, wake_fd, &ring->wake);
	if (ret) {
		close_ring(ring);
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
	if (ring->reader.observed != ring->reader.returned || ring->state != PERFRING_RING_SOUND)
		return -EBUSY;
	if (can_wake(ring))
		perfring_wakeup_disarm(&ring->ring);
	give_wake(session, ring->wake);
	perfring_totals_add(&session->removed, &ring->totals);
	close_ring(ring);
	session->rings[number] = NULL;
	session->added--;
	session->merging = false;
	return 0;
}

const char *perfring_session_refusal(const struct perfring_session *session)
{
	return session->refusal;
}

/* ---- running ---- */

static int control(struct perfring_session *session, unsigned long request)
{
	for (uint32_t i = 0; i < session->event_count; i++)
		if (ioctl(session->events[i].fd, request, 0))
			return -errno;
	return 0;
}

int perfring_session_enable(struct perfring_session *session)
{
	return control(session, PERF_EVENT_IOC_ENABLE);
}

int perfring_session_disable(struct perfring_session *session)
{
	return control(session, PERF_EVENT_IOC_DISABLE);
}

int perfring_session_fd(const struct perfring_session *session)
{
	return session->epoll;
}

bool perfring_session_is_over(const struct perfring_session *session)
{
	return session->event_count && !session->live && !session->added;
}

/* Before a sleep: the next crossing in a ring that was added writes to its fd; after it, no more (wakeup.h).  Returns
 * whether there was one already.  Records below the watermark end no wait, as in a kernel ring. */
static bool arm(struct perfring_session *session, bool armed)
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

/* Some ring that was added wakes nobody. */
static bool has_silent(const struct perfring_session *session)
{
	for (uint32_t i = 0; session->added && i < session->ring_count; i++)
		if (session->rings[i] && session->rings[i]->added && session->rings[i]->wake == PERFRING_NO_WAKE)
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
	/* It would be ready for ever: its rings are silent from now on. */
	for (uint32_t i = 0; i < session->ring_count; i++) {
		struct perfring_session_ring *ring = session->rings[i];

		if (!ring || !ring->added || ring->wake != place)
			continue;
		if (can_wake(ring))
			perfring_wakeup_disarm(&ring->ring);
		ring->wake = PERFRING_NO_WAKE;
		give_wake(session, place);
	}
}

int perfring_session_wait(struct perfring_session *session, int timeout_ms)
{
	struct epoll_event ready[64];
	bool polled = timeout_ms == 0;
	int count, ret = 0;

	if (!session->live && !session->added)
		timeout_ms = 0;
	else if ((timeout_ms < 0 || timeout_ms > PERFRING_HOLD_MS) &&
		 (perfring_session_holds(session) || has_silent(session)))
		timeout_ms = PERFRING_HOLD_MS;
	if (timeout_ms && arm(session, true)) {
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
		/* The target of this fd is gone: it would be ready for ever. */
		if (ready[i].events & (EPOLLHUP | EPOLLERR)) {
			epoll_ctl(session->epoll, EPOLL_CTL_DEL, session->events[ready[i].data.u32].fd, NULL);
			session->live--;
		}
	}
	/* Somebody's own event loop sleeps on our fd, behind a wait with 0: then the rings stay armed. */
	if (arm(session, polled) && ret >= 0)
		ret = 1;
	perfring_session_look(session, false);
	return ret;
}

void perfring_session_flush(struct perfring_session *session)
{
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
