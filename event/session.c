/* session.c - opening events onto shared rings, waiting for them, closing them. */
#include <perfring/session.h>

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
	perfring_ring_close(&ring->ring);
	free(ring);
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
		close_ring(session->rings[--session->ring_count]);
}

void perfring_session_close(struct perfring_session *session)
{
	if (!session)
		return;
	cut_back(session, 0, 0);
	if (session->epoll >= 0)
		close(session->epoll);
	if (session->formats)
		perfring_format_set_close(session->formats);
	free(session->events);
	free(session->rings);
	free(session->heap);
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

		if (ring->cpu == cpu && (cpu >= 0 || ring->tid == tid)) {
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

/* Maps fd as the ring of its thread or CPU. */
static int add_ring(struct perfring_session *session, int fd, int32_t tid, int32_t cpu)
{
	struct perfring_session_ring *ring;
	int ret;

	if (session->ring_count == session->ring_room) {
		uint32_t room = session->ring_room;
		void *rings = grow(session->rings, &room, sizeof(*session->rings));
		void *heap;

		if (!rings)
			return -ENOMEM;
		session->rings = rings;
		heap = realloc(session->heap, room * sizeof(*session->heap));
		if (!heap)
			return -ENOMEM;
		session->heap = heap;
		session->ring_room = room;
	}
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
	return session->event_count && !session->live;
}

int perfring_session_wait(struct perfring_session *session, int timeout_ms)
{
	struct epoll_event ready[64];
	int count, ret = 0;

	if (!session->live)
		timeout_ms = 0;
	else if ((timeout_ms < 0 || timeout_ms > PERFRING_HOLD_MS) && perfring_session_holds(session))
		timeout_ms = PERFRING_HOLD_MS;
	count = epoll_wait(session->epoll, ready, sizeof(ready) / sizeof(*ready), timeout_ms);
	if (count < 0)
		ret = -errno;
	for (int i = 0; i < count; i++) {
		ret = 1;
		/* The target of this fd is gone: it would be ready for ever. */
		if (ready[i].events & (EPOLLHUP | EPOLLERR)) {
			epoll_ctl(session->epoll, EPOLL_CTL_DEL, session->events[ready[i].data.u32].fd, NULL);
			session->live--;
		}
	}
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
