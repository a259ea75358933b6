/* session_open.c - opens events and groups of a session for threads and CPUs, and maps their rings.
 *
 * perfring_session_add, add_group, describe, update and configure of session.h.  event/opener.c opens the fds of one place at a
 * time and returns here for their ring: the first fd of a CPU (or thread) is mapped, the others are redirected into it.  A failed
 * add is undone to where it began.  epoll watches one fd of each ring.
 */
#include <perfring/session.h>

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "event/opener.h"
#include "session_private.h"

enum {
	HUNG_UP = UINT32_MAX - 1, /* in watched_of, in place of an event's number */
};

int perfring__session_refuse(struct perfring_session *session, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->refusal, sizeof(session->refusal), format, arguments);
	va_end(arguments);
	return error;
}

/* Sets the refusal's text if there is none.  Returns `error`. */
static int explain(struct perfring_session *session, const char *what, int error)
{
	return *session->refusal ? error
				 : perfring__session_refuse(session, error, "%s failed: %s.", what, strerror(-error));
}

/* ---- hash table: sessions have thousands of events ---- */

static struct perfring_table_slot *slot_of(const struct perfring_table *table, uint64_t key)
{
	uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

	for (;; at++) {
		struct perfring_table_slot *slot = &table->slots[at & (table->capacity - 1)];

		if (!slot->value || slot->key == key)
			return slot;
	}
}

static uint32_t table_find(const struct perfring_table *table, uint64_t key)
{
	return table->capacity ? slot_of(table, key)->value - 1 : UINT32_MAX;
}

static int table_put(struct perfring_table *table, uint64_t key, uint32_t number)
{
	struct perfring_table_slot *slot;

	if (table->used * 2 >= table->capacity) {
		struct perfring_table larger = {NULL, table->capacity ? table->capacity * 2 : 64, table->used};

		larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
		if (!larger.slots)
			return -ENOMEM;
		for (uint32_t i = 0; i < table->capacity; i++)
			if (table->slots[i].value)
				*slot_of(&larger, table->slots[i].key) = table->slots[i];
		free(table->slots);
		*table = larger;
	}
	slot = slot_of(table, key);
	table->used += !slot->value;
	slot->key = key;
	slot->value = number + 1;
	return 0;
}

/* ---- rings ---- */

/* The key of a ring: there is one for each CPU, or, without CPUs, for each thread. */
static uint64_t ring_key(int32_t tid, int32_t cpu)
{
	return cpu >= 0 ? UINT64_C(1) << 63 | (uint64_t)cpu : (uint64_t)(uint32_t)tid;
}

static struct perfring_session_ring *find_ring(const struct perfring_session *session, int32_t tid, int32_t cpu,
					       uint32_t *number)
{
	struct perfring_session_ring *ring;

	*number = table_find(&session->ring_of, ring_key(tid, cpu));
	ring = perfring__session_ring_at(session, *number);
	return ring && !ring->added && ring->cpu == cpu && (cpu >= 0 || ring->tid == tid) ? ring : NULL;
}

int perfring__session_make_space(struct perfring_session *session)
{
	uint32_t count = session->ring_count;
	int ret = perfring__os_array_grow(&session->rings, count, &session->ring_capacity, sizeof(*session->rings));

	return ret ? ret
		   : perfring__os_array_grow(&session->heap, count, &session->heap_capacity, sizeof(*session->heap));
}

static int map_ring(const struct perfring_session *session, struct perfring_session_ring *ring)
{
	int ret = perfring_ring_map(&ring->ring, ring->fd, session->pages,
				    perfring__session_is_backward(session) ? PERFRING_RING_OVERWRITE : 0);

	if (!ret) {
		ret = perfring__session_open_ring(ring, 0);
		if (ret)
			perfring_ring_close(&ring->ring);
	}
	return ret;
}

/* Maps all rings anew.  The last munmap of a ring detaches the events that wrote into it (docs/abi.md 3.1). */
static int map_again(struct perfring_session *session)
{
	struct perfring_session_ring *ring;
	int ret = 0;

	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		if (!ring->added) {
			perfring_reader_close(&ring->reader);
			perfring_ring_close(&ring->ring);
		}
	for (uint32_t i = 0; !ret && (ring = perfring__session_ring_from(session, &i)); i++)
		if (!ring->added)
			ret = map_ring(session, ring);
	for (uint32_t i = 0; !ret && i < session->event_count; i++) {
		const struct perfring_session_event *event = &session->events[i];
		int to = event->fd < 0 ? -1 : session->rings[event->ring]->fd;

		if (event->fd != to && ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, to))
			ret = -errno;
	}
	return ret;
}

/* Whether all rings are empty, so that they can be mapped anew. */
static bool can_map_again(const struct perfring_session *session)
{
	const struct perfring_session_ring *ring;

	for (uint32_t i = 0; (ring = perfring__session_ring_from(session, &i)); i++)
		if (!ring->added && ring->ring.page && (perfring_page_observe(ring->ring.page) || ring->aux))
			return false;
	return true;
}

static void explain_ring(struct perfring_session *session, int error)
{
	int64_t length = perfring_ring_explain(error, session->pages, session->refusal, sizeof(session->refusal));

	if (error == -EPERM && session->options & PERFRING_SESSION_SHRINK && session->pages > 1 && length > 0 &&
	    (size_t)length < sizeof(session->refusal))
		snprintf(session->refusal + length, sizeof(session->refusal) - (size_t)length,
			 " The rings there are hold records already and were not made smaller: open events with "
			 "`disabled` set.");
}

/* Maps fd's ring for its thread or CPU. */
static int add_ring(struct perfring_session *session, int fd, int32_t tid, int32_t cpu)
{
	struct perfring_session_ring *ring;
	int ret = perfring__session_make_space(session);

	if (ret)
		return ret;
	ring = perfring__session_new_ring(session);
	if (!ring)
		return -ENOMEM;
	ring->tid = cpu >= 0 ? -1 : tid;
	ring->cpu = cpu;
	ring->fd = fd;
	ret = map_ring(session, ring);
	while (ret == -EPERM && session->options & PERFRING_SESSION_SHRINK && session->pages > 1 &&
	       can_map_again(session)) {
		session->pages /= 2;
		ret = map_again(session);
		if (!ret)
			ret = map_ring(session, ring);
	}
	if (ret)
		explain_ring(session, ret);
	else
		ret = table_put(&session->ring_of, ring_key(tid, cpu), session->ring_count);
	if (ret) {
		perfring__session_close_ring(ring);
		return ret;
	}
	session->rings[session->ring_count++] = ring;
	session->merging = false;
	return 0;
}

/* ---- what epoll watches ---- */

/* Whether the fd's thread has exited: another one may have its number. */
static bool has_hung_up(int fd)
{
	struct pollfd one = {.fd = fd};

	return poll(&one, 1, 0) == 1 && one.revents & POLLHUP;
}

/* For all events that hang up together, epoll watches one: each wakeup costs as much as there are fds in the set. */
static uint64_t watch_key(const struct perfring_session *session, const struct perfring_session_event *event)
{
	uint64_t flags = perfring__attr_flags(session->kinds[event->event]->open.attr);
	uint64_t end = (flags >> PERFRING_ATTR_FLAG_inherit & 1) | (flags >> PERFRING_ATTR_FLAG_pinned & 1) << 1 |
		       (flags >> PERFRING_ATTR_FLAG_remove_on_exec & 1) << 2;

	return (uint64_t)(uint32_t)event->tid << 32 | (uint32_t)(event->cpu + 1) << 3 | end;
}

static int watch(struct perfring_session *session, uint32_t number)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = number};
	struct perfring_session_event *event = &session->events[number];
	uint64_t key = watch_key(session, event);
	uint32_t other = table_find(&session->watched_of, key);
	int ret;

	if (other < session->event_count && watch_key(session, &session->events[other]) == key &&
	    !has_hung_up(session->events[other].fd))
		return 0;
	ret = table_put(&session->watched_of, key, number);
	if (!ret && epoll_ctl(session->epoll, EPOLL_CTL_ADD, event->fd, &interest))
		ret = -errno;
	if (!ret)
		session->live++;
	return ret;
}

void perfring__session_unwatch(struct perfring_session *session, uint32_t number)
{
	const struct perfring_session_event *event = &session->events[number];
	uint64_t key = watch_key(session, event);

	/* close alone would leave it in the epoll set while a forked child has a copy. */
	if (epoll_ctl(session->epoll, EPOLL_CTL_DEL, event->fd, NULL))
		return;
	session->live--;
	/* The key exists, so this needs no memory.  Its next event is of another thread with that number. */
	if (table_find(&session->watched_of, key) == number)
		table_put(&session->watched_of, key, HUNG_UP);
}

void perfring__session_cut_back(struct perfring_session *session, uint32_t events, uint32_t rings)
{
	while (session->event_count > events) {
		int fd = session->events[session->event_count - 1].fd;

		perfring__session_unwatch(session, session->event_count - 1);
		if (fd >= 0)
			close(fd);
		session->event_count--;
	}
	while (session->ring_count > rings)
		if (session->rings[--session->ring_count])
			perfring__session_close_ring(session->rings[session->ring_count]);
}

/* ---- attrs ---- */

static int add_kind(struct perfring_session *session, const struct perf_event_attr *attr, uint32_t number)
{
	uint32_t bytes = perfring__attr_own_size(attr);
	struct perfring_session_kind *kind;

	while (number >= session->kind_capacity)
		if (perfring__os_array_grow(&session->kinds, session->kind_capacity, &session->kind_capacity,
					    sizeof(*session->kinds)))
			return -ENOMEM;
	kind = calloc(1, sizeof(*kind));
	if (!kind)
		return -ENOMEM;
	kind->open.attr = calloc(1, bytes > sizeof(*attr) ? bytes : sizeof(*attr));
	if (!kind->open.attr) {
		free(kind);
		return -ENOMEM;
	}
	memcpy(kind->open.attr, attr, bytes);
	kind->open.leader = number;
	while (session->kind_count < number)
		session->kinds[session->kind_count++] = NULL;
	session->kinds[session->kind_count++] = kind;
	return 0;
}

void perfring__session_cut_kinds(struct perfring_session *session, uint32_t count)
{
	while (session->kind_count > count) {
		struct perfring_session_kind *kind = session->kinds[--session->kind_count];

		if (kind)
			free(kind->open.attr);
		free(kind);
	}
}

static int check_attr(struct perfring_session *session, const struct perf_event_attr *attr)
{
	struct perfring_format format;
	struct perf_event_attr members;
	int ret = perfring_format_from_attr(&format, attr);

	if (ret)
		return perfring__session_refuse(
			session, ret, "attr.size %u is not the size of a struct perf_event_attr.", attr->size);
	if (!(format.sample_type & PERFRING_SAMPLE_TIME) || !perfring_format_has_trailer(&format))
		return perfring__session_refuse(
			session, -EINVAL,
			"a session orders records by time: sample_type needs TIME, and sample_id_all must be set.");
	members = perfring__attr_whole(attr);
	if (members.write_backward && !perfring__session_is_backward(session))
		return perfring__session_refuse(
			session, -EINVAL,
			"a session reads its rings forwards: write_backward must not be set, except by "
			"PERFRING_SESSION_BACKWARD.");
	return 0;
}

static int32_t clock_of(const struct perf_event_attr *attr)
{
	struct perf_event_attr members = perfring__attr_whole(attr);

	return members.use_clockid ? members.clockid : PERFRING_CLOCK_PERF;
}

static int check_clock(struct perfring_session *session, const struct perf_event_attr *attr, int32_t clock)
{
	if (clock_of(attr) == clock)
		return 0;
	return perfring__session_refuse(
		session, -EINVAL,
		"times of several clocks have no order: use_clockid and clockid must be the same in each event of a session.");
}

/* Checks what the kinds from `first` on must share with one another and with earlier ones. */
static int check_kinds(struct perfring_session *session, uint32_t first)
{
	int32_t clock = first ? session->clock : clock_of(session->kinds[first]->open.attr);
	uint64_t shared = PERFRING_SAMPLE_IDENTIFIER;
	int ret = 0;

	for (uint32_t i = first; !ret && i < session->kind_count; i++) {
		ret = check_attr(session, session->kinds[i]->open.attr);
		if (!ret)
			ret = check_clock(session, session->kinds[i]->open.attr, clock);
		shared &= session->kinds[i]->open.attr->sample_type;
	}
	if (ret)
		return ret;
	for (uint32_t i = 0; i < first; i++)
		shared &= perfring_format_set_at(session->formats, i)->sample_type;
	if (shared || session->kind_count == 1)
		return 0;
	return perfring__session_refuse(
		session, -EINVAL,
		"the events of a session are distinguished by IDENTIFIER: with several events each sample_type needs it.");
}

static int check_group(struct perfring_session *session, uint32_t first)
{
	const struct perf_event_attr *leader = session->kinds[first]->open.attr;

	for (uint32_t i = first + 1; i < session->kind_count; i++) {
		const struct perf_event_attr *attr = session->kinds[i]->open.attr;

		if (attr->pinned || attr->exclusive)
			return perfring__session_refuse(
				session, -EINVAL,
				"event %u of the group is pinned or exclusive: only its leader can be.", i - first);
		if (attr->inherit != leader->inherit)
			return perfring__session_refuse(
				session, -EINVAL,
				"event %u of the group has another `inherit` than its leader: all events of a group are "
				"inherited, or none.",
				i - first);
	}
	return 0;
}

/* Copies the attrs, as numbers from `first` on. */
static int add_kinds(struct perfring_session *session, const struct perf_event_attr *const *attrs, uint32_t count,
		     uint32_t first)
{
	int ret = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct perf_event_attr *attr;

		ret = check_attr(session, attrs[i]);
		if (!ret)
			ret = add_kind(session, attrs[i], first + i);
		if (ret)
			return ret;
		session->kinds[first + i]->open.leader = first;
		attr = session->kinds[first + i]->open.attr;
		if (perfring__session_is_backward(session))
			attr->write_backward = 1;
		/* A sibling counts while its leader does.  Disabled, it would not start when an exec enables the leader
		 * (docs/abi.md trap 32), and after an enable later than the leader. */
		if (i)
			attr->disabled = attr->enable_on_exec = 0;
	}
	ret = check_kinds(session, first);
	return ret ? ret : check_group(session, first);
}

/* ---- fds ---- */

static struct perfring_opener_event *event_of(void *of, uint32_t number)
{
	struct perfring_session *session = of;

	return &session->kinds[number]->open;
}

/* Redirects an event into the ring of its CPU or thread, or maps that ring. */
static int join_ring(struct perfring_session *session, struct perfring_session_event *event)
{
	struct perfring_session_ring *ring = find_ring(session, event->tid, event->cpu, &event->ring);
	int ret;

	if (ring && !ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		return 0;
	ret = -errno;
	/* The ring may be of a thread that had the same number, has exited, and is not read to its end yet. */
	if (ring && !(ret == -EINVAL && event->cpu < 0 && has_hung_up(ring->fd)))
		return perfring__session_refuse(session, ret,
						"the event cannot write into the ring of its CPU (SET_OUTPUT: %s).",
						strerror(-ret));
	ret = add_ring(session, event->fd, event->tid, event->cpu);
	event->ring = ret ? 0 : session->ring_count - 1;
	return ret;
}

/* Adds an fd to the session. */
static int take(void *of, const struct perfring_open_place *place, uint32_t number, int fd)
{
	struct perfring_session *session = of;
	const struct perfring_session_kind *kind = session->kinds[number];
	uint32_t rings = session->ring_count;
	struct perfring_session_event event = {
		.fd = fd, .tid = place->is_cgroup ? -1 : place->who, .cpu = place->cpu, .event = number};
	int ret = perfring_event_id(fd, &event.id);

	/* A fallback may have dropped the clock.  SET_OUTPUT would refuse it without an explanation. */
	if (!ret && number)
		ret = check_clock(session, kind->open.attr,
				  kind->open.leader ? session->clock : clock_of(session->kinds[0]->open.attr));
	if (!ret)
		ret = join_ring(session, &event);
	if (!ret)
		ret = perfring__os_array_grow(&session->events, session->event_count, &session->event_capacity,
					      sizeof(event));
	if (!ret) {
		session->events[session->event_count] = event;
		ret = watch(session, session->event_count);
	}
	if (!ret)
		session->event_count++;
	else if (session->ring_count > rings)
		perfring__session_close_ring(session->rings[--session->ring_count]);
	return ret;
}

/* Opens the request's events at these threads and CPUs.  is_late: it is no error if all of them are gone. */
static int open_at(struct perfring_session *session, const struct perfring_session_request *request,
		   const struct perfring_numbers *who, const struct perfring_numbers *cpus, bool is_late)
{
	struct perfring_opener opener = {
		.event = event_of,
		.take = take,
		.of = session,
		.first = request->first,
		.count = request->count,
		.allowed = session->allowed & ~(uint64_t)PERFRING_FALLBACK_MISSING,
		.is_late = is_late,
		.refusal = session->refusal,
		.size = sizeof(session->refusal),
	};

	session->refusal[0] = 0;
	return perfring__opener_open(&opener, &request->target, who, cpus);
}

/* Adds the ids of the fds from `from` on to the formats. */
static int add_ids(struct perfring_session *session, uint32_t from)
{
	int ret = 0;

	for (uint32_t i = from; !ret && i < session->event_count; i++)
		ret = perfring_format_set_put(session->formats, session->events[i].id, session->events[i].event);
	return ret;
}

static int reserve_files(struct perfring_session *session, uint64_t more)
{
	return perfring__opener_files(more, session->options & PERFRING_SESSION_RAISE_FILES, session->refusal,
				      sizeof(session->refusal));
}

/* ---- adding ---- */

/* Adds the formats of the kinds from `first` on, as they were opened. */
static int add_formats(struct perfring_session *session, uint32_t first)
{
	for (uint32_t i = first; i < session->kind_count; i++) {
		int ret = perfring__session_count_event(session, i);
		int index = ret ? ret : perfring_format_set_add(session->formats, session->kinds[i]->open.attr);
		uint32_t at;

		if (index < 0)
			return index;
		at = perfring_format_set_at(session->formats, i)->sample_time_at;
		session->sample_time_at = i == 0 || session->sample_time_at == at ? at : 0;
	}
	session->clock = clock_of(session->kinds[first]->open.attr);
	return 0;
}

/* Undoes a failed add.  Rings that it has made smaller get their old size, if they are still empty. */
static void roll_back(struct perfring_session *session, uint32_t events, uint32_t rings, uint32_t pages)
{
	perfring__session_cut_back(session, events, rings);
	if (session->pages == pages || !can_map_again(session))
		return;
	for (session->pages = pages; map_again(session); session->pages /= 2)
		if (session->pages == 1) {
			/* Other processes have locked even that memory.  A session without its rings has no events. */
			perfring__session_cut_back(session, 0, 0);
			return;
		}
}

static int open_request(struct perfring_session *session, struct perfring_session_request *request)
{
	const struct perfring_numbers *who, *cpus;
	uint32_t events = session->event_count;
	int ret = 0;

	if (request->target.cgroups.count && !request->target.cpus.count) {
		request->target.all_cpus = true;
		ret = perfring__numbers_add_online(&request->target.cpus);
	}
	who = perfring__target_who(&request->target);
	cpus = perfring__target_where(&request->target);
	if (!ret)
		ret = reserve_files(session, (uint64_t)who->count * cpus->count * request->count);
	if (!ret)
		ret = open_at(session, request, who, cpus, false);
	/* Again: fallbacks may have changed the attrs. */
	if (!ret)
		ret = check_kinds(session, request->first);
	if (!ret)
		ret = add_formats(session, request->first);
	return ret ? ret : add_ids(session, events);
}

int perfring_session_add_group(struct perfring_session *session, const struct perf_event_attr *const *attrs,
			       uint32_t count, const struct perfring_target *target)
{
	uint32_t events = session->event_count, rings = session->ring_count, pages = session->pages;
	struct perfring_session_request *request;
	int ret;

	session->refusal[0] = 0;
	if (!count)
		return perfring__session_refuse(session, -EINVAL, "no event is named.");
	if (perfring__target_who(target)->numbers[0] == -1 && perfring__target_where(target)->numbers[0] == -1)
		return perfring__session_refuse(session, -EINVAL, "the target names neither a thread nor a CPU.");
	if (perfring__os_array_grow(&session->requests, session->request_count, &session->request_capacity,
				    sizeof(*session->requests)))
		return explain(session, "adding the event", -ENOMEM);
	request = &session->requests[session->request_count];
	request->first = perfring_format_set_count(session->formats);
	request->count = count;
	/* The copy opens the cgroups' directories. */
	ret = target->cgroups.count ? reserve_files(session, target->cgroups.count) : 0;
	if (!ret)
		ret = perfring__target_copy(&request->target, target);
	else
		memset(&request->target, 0, sizeof(request->target));
	if (!ret)
		ret = add_kinds(session, attrs, count, request->first);
	if (!ret)
		ret = open_request(session, request);
	if (ret) {
		explain(session, "adding the event", ret);
		roll_back(session, events, rings, pages);
		perfring__session_cut_kinds(session, request->first);
		perfring__target_empty(&request->target);
		return ret;
	}
	session->refusal[0] = 0;
	session->request_count++;
	return (int)request->first;
}

int perfring_session_add(struct perfring_session *session, const struct perf_event_attr *attr,
			 const struct perfring_target *target)
{
	return perfring_session_add_group(session, &attr, 1, target);
}

int perfring_session_describe(struct perfring_session *session, const struct perf_event_attr *attr, const uint64_t *ids,
			      uint32_t count)
{
	uint32_t first = perfring_format_set_count(session->formats);
	int ret;

	session->refusal[0] = 0;
	ret = add_kinds(session, &attr, 1, first);
	for (uint32_t i = 0; !ret && i < count; i++)
		if (!ids[i])
			ret = perfring__session_refuse(session, -EINVAL, "0 is no id.");
		else if (perfring_format_set_find(session->formats, ids[i]))
			ret = perfring__session_refuse(session, -EEXIST, "id %llu is known already.",
						       (unsigned long long)ids[i]);
	if (!ret)
		ret = add_formats(session, first);
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = perfring_format_set_put(session->formats, ids[i], first);
	if (ret) {
		perfring__session_cut_kinds(session, first);
		return explain(session, "describing the event", ret);
	}
	return (int)first;
}

/* ---- new threads and CPUs, and those that are gone ---- */

/* Starts fds for new places as the others of their event.  enable_on_exec: that exec was before the new thread. */
static void start_new(struct perfring_session *session, uint32_t from)
{
	for (uint32_t i = from; i < session->event_count; i++) {
		const struct perfring_session_kind *kind = session->kinds[session->events[i].event];

		if (kind->open.leader != session->events[i].event)
			continue;
		if (session->state == PERFRING_SESSION_DISABLED)
			ioctl(session->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
		else if (session->state == PERFRING_SESSION_ENABLED || kind->open.attr->enable_on_exec)
			ioctl(session->events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
}

/* Opens the request's events at new places, all or none. */
static int open_all(struct perfring_session *session, const struct perfring_session_request *request,
		    const struct perfring_numbers *who, const struct perfring_numbers *cpus)
{
	uint32_t events = session->event_count, rings = session->ring_count;
	int ret = open_at(session, request, who, cpus, true);

	if (!ret)
		ret = add_ids(session, events);
	if (ret)
		perfring__session_cut_back(session, events, rings);
	else
		start_new(session, events);
	return ret;
}

/* Opens them one by one for those of `now` that are not in `known`, and adds these to it. */
static int open_new(struct perfring_session *session, const struct perfring_session_request *request,
		    const struct perfring_numbers *now, struct perfring_numbers *known, bool are_cpus)
{
	const struct perfring_numbers *others =
		are_cpus ? perfring__target_who(&request->target) : perfring__target_where(&request->target);
	uint64_t count = 0;
	int ret;

	for (uint32_t i = 0; i < now->count; i++)
		count += !perfring__numbers_have(known, now->numbers[i]);
	ret = reserve_files(session, count * others->count * request->count);
	for (uint32_t i = 0; !ret && i < now->count; i++) {
		struct perfring_numbers one = {&now->numbers[i], 1, 1};

		if (perfring__numbers_have(known, now->numbers[i]))
			continue;
		ret = open_all(session, request, are_cpus ? others : &one, are_cpus ? &one : others);
		if (!ret)
			ret = perfring__numbers_add(known, now->numbers[i]);
	}
	return ret;
}

/* Threads of processes.  Most events of a session observe the same processes, so one list serves them. */
struct listing {
	const struct perfring_target *of;
	struct perfring_numbers tids;
};

static int list_threads(struct listing *listing, const struct perfring_target *target)
{
	int ret = 0;

	if (listing->of && listing->of->process_count == target->process_count &&
	    !memcmp(listing->of->processes, target->processes, target->process_count * sizeof(*target->processes)))
		return 0;
	listing->of = NULL;
	listing->tids.count = 0;
	for (uint32_t i = 0; !ret && i < target->process_count; i++) {
		ret = perfring__numbers_add_process(&listing->tids, &target->processes[i]);
		if (ret == -ESRCH)
			ret = 0;
	}
	if (!ret)
		listing->of = target;
	return ret;
}

static int update_threads(struct perfring_session *session, struct perfring_session_request *request,
			  struct listing *listing)
{
	struct perfring_target *target = &request->target;
	struct perfring_numbers now = {NULL, 0, 0};
	int ret = list_threads(listing, target);

	for (uint32_t i = 0; !ret && i < listing->tids.count; i++)
		ret = perfring__numbers_add(&now, listing->tids.numbers[i]);
	for (uint32_t i = 0; !ret && i < target->threads.count; i++)
		ret = perfring__numbers_add(&now, target->threads.numbers[i]);
	if (!ret) {
		/* A number that was gone meanwhile is another thread. */
		perfring__numbers_keep(&target->tids, &now);
		ret = open_new(session, request, &now, &target->tids, false);
	}
	free(now.numbers);
	return ret;
}

static void close_event(struct perfring_session *session, uint32_t number)
{
	struct perfring_session_event *event = &session->events[number];
	const struct perfring_format *format = perfring_format_set_at(session->formats, event->event);

	if (format->read_format & PERFRING_FORMAT_LOST)
		session->kinds[event->event]->lost += perfring__session_lost_of(event, format);
	close(event->fd);
	event->fd = -1;
}

/* All its records were read and returned. */
static bool is_drained(const struct perfring_session_ring *ring)
{
	return !ring->aux && ring->state == PERFRING_HEALTH_SOUND && ring->first == ring->end &&
	       !ring->ops->has_seen(ring) &&
	       perfring_page_observe_from(ring->ring.page, ring->reader.returned) == ring->reader.returned;
}

/* Closes the fds of exited threads, and rings that are read to their end: threads may come and go without bound.  A
 * ring's own fd stays while other events may write into it. */
static void close_exited(struct perfring_session *session)
{
	uint32_t *open = calloc((size_t)session->ring_count + 1, sizeof(*open));

	for (int owners = 0; open && owners < 2; owners++)
		for (uint32_t i = 0; i < session->event_count; i++) {
			const struct perfring_session_event *event = &session->events[i];
			struct perfring_session_ring *ring = event->fd >= 0 ? session->rings[event->ring] : NULL;
			bool gone = ring && table_find(&session->watched_of, watch_key(session, event)) == HUNG_UP;
			bool owns = ring && (event->fd == ring->fd || (ring->aux && event->fd == ring->aux->fd));

			if (gone && !owners && !owns)
				close_event(session, i);
			else if (!owners && ring)
				open[event->ring]++;
			if (!gone || !owners || open[event->ring] != 1 || ring->cpu >= 0 || !is_drained(ring))
				continue;
			close_event(session, i);
			perfring__session_drop_ring(session, event->ring);
		}
	free(open);
}

int perfring__session_update_on(struct perfring_session *session, const struct perfring_numbers *online)
{
	struct listing listing = {NULL, {NULL, 0, 0}};
	uint32_t events = session->event_count;
	int ret = 0;

	session->refusal[0] = 0;
	close_exited(session);
	for (uint32_t i = 0; !ret && i < session->request_count; i++) {
		struct perfring_session_request *request = &session->requests[i];
		struct perfring_target *target = &request->target;

		if (target->process_count && !session->kinds[request->first]->open.attr->inherit)
			ret = update_threads(session, request, &listing);
		if (ret || !target->all_cpus)
			continue;
		/* The events of a thread stop while its CPU is offline; those of a CPU or cgroup never count again. */
		if (!target->threads.count && !target->process_count)
			perfring__numbers_keep(&target->cpus, online);
		ret = open_new(session, request, online, &target->cpus, true);
	}
	free(listing.tids.numbers);
	if (ret)
		return explain(session, "looking for threads and CPUs", ret);
	session->refusal[0] = 0;
	return (int)(session->event_count - events);
}

int perfring_session_update(struct perfring_session *session)
{
	struct perfring_numbers online = {NULL, 0, 0};
	int ret = perfring__numbers_add_online(&online);

	if (!ret)
		ret = perfring__session_update_on(session, &online);
	free(online.numbers);
	return ret;
}

/* ---- how ---- */

int perfring_session_configure(struct perfring_session *session, uint32_t options, uint64_t allowed)
{
	if (session->request_count)
		return -EBUSY;
	session->options = options;
	session->allowed = allowed;
	return 0;
}

static const struct perfring_session_kind *kind_at(const struct perfring_session *session, uint32_t event)
{
	return event < session->kind_count ? session->kinds[event] : NULL;
}

uint64_t perfring_session_given_up(const struct perfring_session *session, uint32_t event)
{
	const struct perfring_session_kind *kind = kind_at(session, event);

	return kind ? kind->open.dropped : 0;
}

const struct perf_event_attr *perfring_session_attr(const struct perfring_session *session, uint32_t event)
{
	const struct perfring_session_kind *kind = kind_at(session, event);

	return kind ? kind->open.attr : NULL;
}

uint32_t perfring_session_pages(const struct perfring_session *session)
{
	return session->pages;
}
