/* session_open.c - what a session is to observe, opened: events and groups, for threads and CPUs, onto shared rings. */
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
	GONE = UINT32_MAX - 1, /* instead of an event's number: what it stood for has hung up */
};

void perfring_session_refuse(struct perfring_session *session, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->refusal, sizeof(session->refusal), format, arguments);
	va_end(arguments);
}

/* ---- numbers by keys: places are found among thousands ---- */

static struct perfring_places_slot *slot_of(const struct perfring_places *places, uint64_t key)
{
	uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

	for (;; at++) {
		struct perfring_places_slot *slot = &places->slots[at & (places->capacity - 1)];

		if (!slot->place || slot->key == key)
			return slot;
	}
}

static uint32_t places_find(const struct perfring_places *places, uint64_t key)
{
	return places->capacity ? slot_of(places, key)->place - 1 : UINT32_MAX;
}

static int places_put(struct perfring_places *places, uint64_t key, uint32_t number)
{
	struct perfring_places_slot *slot;

	if (places->used * 2 >= places->capacity) {
		struct perfring_places larger = {NULL, places->capacity ? places->capacity * 2 : 64, places->used};

		larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
		if (!larger.slots)
			return -ENOMEM;
		for (uint32_t i = 0; i < places->capacity; i++)
			if (places->slots[i].place)
				*slot_of(&larger, places->slots[i].key) = places->slots[i];
		free(places->slots);
		*places = larger;
	}
	slot = slot_of(places, key);
	places->used += !slot->place;
	slot->key = key;
	slot->place = number + 1;
	return 0;
}

/* ---- rings ---- */

/* A CPU has one ring for all; without CPUs each thread has its own. */
static uint64_t ring_key(int32_t tid, int32_t cpu)
{
	return cpu >= 0 ? UINT64_C(1) << 63 | (uint64_t)cpu : (uint64_t)(uint32_t)tid;
}

static struct perfring_session_ring *find_ring(const struct perfring_session *session, int32_t tid, int32_t cpu,
					       uint32_t *number)
{
	struct perfring_session_ring *ring;

	*number = places_find(&session->ring_of, ring_key(tid, cpu));
	ring = *number < session->ring_count ? session->rings[*number] : NULL;
	return ring && !ring->added && ring->cpu == cpu && (cpu >= 0 || ring->tid == tid) ? ring : NULL;
}

int perfring_session_make_space(struct perfring_session *session)
{
	uint32_t count = session->ring_count;
	int ret = perfring_os_array_grow(&session->rings, count, &session->ring_capacity, sizeof(*session->rings));

	return ret ? ret : perfring_os_array_grow(&session->heap, count, &session->heap_capacity, sizeof(*session->heap));
}

static int map_ring(const struct perfring_session *session, struct perfring_session_ring *ring)
{
	int ret = perfring_ring_map(&ring->ring, ring->fd, session->pages,
				    perfring_session_is_backward(session) ? PERFRING_RING_OVERWRITE : 0);

	if (!ret) {
		ret = perfring_session_open_ring(ring, 0);
		if (ret)
			perfring_ring_close(&ring->ring);
	}
	return ret;
}

/* Every ring anew, as large as session->pages says.  The last unmapping of a ring detaches what wrote into it (docs/abi.md
 * 3.1). */
static int map_again(struct perfring_session *session)
{
	int ret = 0;

	for (uint32_t i = 0; i < session->ring_count; i++)
		if (session->rings[i] && !session->rings[i]->added) {
			perfring_reader_close(&session->rings[i]->reader);
			perfring_ring_close(&session->rings[i]->ring);
		}
	for (uint32_t i = 0; !ret && i < session->ring_count; i++)
		if (session->rings[i] && !session->rings[i]->added)
			ret = map_ring(session, session->rings[i]);
	for (uint32_t i = 0; !ret && i < session->event_count; i++) {
		const struct perfring_session_event *event = &session->events[i];
		int to = event->fd < 0 ? -1 : session->rings[event->ring]->fd;

		if (event->fd != to && ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, to))
			ret = -errno;
	}
	return ret;
}

/* Rings can be mapped anew as long as nothing lies in them. */
static bool can_map_again(const struct perfring_session *session)
{
	for (uint32_t i = 0; i < session->ring_count; i++) {
		const struct perfring_session_ring *ring = session->rings[i];

		if (ring && !ring->added && ring->ring.page && (perfring_page_observe(ring->ring.page) || ring->aux))
			return false;
	}
	return true;
}

static bool can_shrink(const struct perfring_session *session)
{
	return session->options & PERFRING_SESSION_SHRINK && session->pages > 1 && can_map_again(session);
}

static void explain_ring(struct perfring_session *session, int error)
{
	int64_t said = perfring_ring_explain(error, session->pages, session->refusal, sizeof(session->refusal));

	if (error == -EPERM && session->options & PERFRING_SESSION_SHRINK && session->pages > 1 && said > 0 &&
	    (size_t)said < sizeof(session->refusal))
		snprintf(session->refusal + said, sizeof(session->refusal) - (size_t)said,
			 " The rings there are hold records already and were not made smaller: open events with "
			 "`disabled` set.");
}

/* Maps fd as the ring of its thread or CPU. */
static int add_ring(struct perfring_session *session, int fd, int32_t tid, int32_t cpu)
{
	struct perfring_session_ring *ring;
	int ret = perfring_session_make_space(session);

	if (ret)
		return ret;
	ring = perfring_session_new_ring(session);
	if (!ring)
		return -ENOMEM;
	ring->tid = cpu >= 0 ? -1 : tid;
	ring->cpu = cpu;
	ring->fd = fd;
	ret = map_ring(session, ring);
	while (ret == -EPERM && can_shrink(session)) {
		session->pages /= 2;
		ret = map_again(session);
		if (!ret)
			ret = map_ring(session, ring);
	}
	if (ret)
		explain_ring(session, ret);
	else
		ret = places_put(&session->ring_of, ring_key(tid, cpu), session->ring_count);
	if (ret) {
		perfring_session_close_ring(ring);
		return ret;
	}
	session->rings[session->ring_count++] = ring;
	session->merging = false;
	return 0;
}

/* ---- what epoll watches ---- */

/* Its thread is gone; another one may have the number by now. */
static bool has_hung_up(int fd)
{
	struct pollfd one = {.fd = fd};

	return poll(&one, 1, 0) == 1 && one.revents & POLLHUP;
}

/* One event of each thread and CPU stands for all that hang up when it does: each look at the set, and each wakeup of
 * theirs, costs as much as there are fds in it. */
static uint64_t watch_key(const struct perfring_session *session, const struct perfring_session_event *event)
{
	uint64_t flags = perfring_attr_flags(session->kinds[event->event]->open.attr);
	uint64_t end = (flags >> PERFRING_ATTR_FLAG_inherit & 1) | (flags >> PERFRING_ATTR_FLAG_pinned & 1) << 1 |
		       (flags >> PERFRING_ATTR_FLAG_remove_on_exec & 1) << 2;

	return (uint64_t)(uint32_t)event->tid << 32 | (uint32_t)(event->cpu + 1) << 3 | end;
}

static int watch(struct perfring_session *session, uint32_t number)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = number};
	struct perfring_session_event *event = &session->events[number];
	uint64_t key = watch_key(session, event);
	uint32_t other = places_find(&session->watched_of, key);
	int ret;

	if (other < session->event_count && watch_key(session, &session->events[other]) == key &&
	    !has_hung_up(session->events[other].fd))
		return 0;
	ret = places_put(&session->watched_of, key, number);
	if (!ret && epoll_ctl(session->epoll, EPOLL_CTL_ADD, event->fd, &interest))
		ret = -errno;
	if (!ret)
		session->live++;
	return ret;
}

void perfring_session_unwatch(struct perfring_session *session, uint32_t number)
{
	const struct perfring_session_event *event = &session->events[number];
	uint64_t key = watch_key(session, event);

	/* close alone leaves it in the epoll set while a forked child has a copy of it. */
	if (epoll_ctl(session->epoll, EPOLL_CTL_DEL, event->fd, NULL))
		return;
	session->live--;
	/* Its key is there: no room is needed.  The next of its kind is another thread, of the same number. */
	if (places_find(&session->watched_of, key) == number)
		places_put(&session->watched_of, key, GONE);
}

void perfring_session_cut_back(struct perfring_session *session, uint32_t events, uint32_t rings)
{
	while (session->event_count > events) {
		int fd = session->events[session->event_count - 1].fd;

		perfring_session_unwatch(session, session->event_count - 1);
		if (fd >= 0)
			close(fd);
		session->event_count--;
	}
	while (session->ring_count > rings)
		if (session->rings[--session->ring_count])
			perfring_session_close_ring(session->rings[session->ring_count]);
}

/* ---- attrs ---- */

static int add_kind(struct perfring_session *session, const struct perf_event_attr *attr, uint32_t number)
{
	uint32_t bytes = perfring_attr_own_size(attr);
	struct perfring_session_kind *kind;

	while (number >= session->kind_capacity)
		if (perfring_os_array_grow(&session->kinds, session->kind_capacity, &session->kind_capacity,
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

void perfring_session_cut_kinds(struct perfring_session *session, uint32_t count)
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

	if (ret) {
		perfring_session_refuse(session, "attr.size %u is not the size of a struct perf_event_attr.",
					attr->size);
		return ret;
	}
	if (!(format.sample_type & PERFRING_SAMPLE_TIME) || !perfring_format_has_trailer(&format)) {
		perfring_session_refuse(
			session,
			"a session orders records by time: sample_type needs TIME, and sample_id_all must be set.");
		return -EINVAL;
	}
	members = perfring_attr_whole(attr);
	if (members.write_backward && !(session->options & PERFRING_SESSION_BACKWARD)) {
		perfring_session_refuse(session,
					"a session reads its rings forwards: write_backward must not be set, except by "
					"PERFRING_SESSION_BACKWARD.");
		return -EINVAL;
	}
	return 0;
}

static int32_t clock_of(const struct perf_event_attr *attr)
{
	struct perf_event_attr members = perfring_attr_whole(attr);

	return members.use_clockid ? members.clockid : PERFRING_CLOCK_PERF;
}

static int check_clock(struct perfring_session *session, const struct perf_event_attr *attr, int32_t clock)
{
	if (clock_of(attr) == clock)
		return 0;
	perfring_session_refuse(session, "times of several clocks have no order: use_clockid and clockid must be the "
					 "same in each event of a session.");
	return -EINVAL;
}

/* What attrs from number `first` on have to share with one another and with those before. */
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
	if (!shared && session->kind_count > 1) {
		perfring_session_refuse(session, "several events in one session are told apart by IDENTIFIER: each "
						 "sample_type needs it.");
		return -EINVAL;
	}
	return 0;
}

static int check_group(struct perfring_session *session, uint32_t first)
{
	const struct perf_event_attr *leader = session->kinds[first]->open.attr;

	for (uint32_t i = first + 1; i < session->kind_count; i++) {
		const struct perf_event_attr *attr = session->kinds[i]->open.attr;

		if (attr->pinned || attr->exclusive)
			perfring_session_refuse(session,
						"event %u of the group is pinned or exclusive: only its leader can be.",
						i - first);
		else if (attr->inherit != leader->inherit)
			perfring_session_refuse(session,
						"event %u of the group has not its leader's `inherit`: all of a group "
						"are inherited, or none.",
						i - first);
		else
			continue;
		return -EINVAL;
	}
	return 0;
}

/* Copies of what was asked for, as numbers from `first` on. */
static int add_kinds(struct perfring_session *session, const struct perf_event_attr *const *attrs, uint32_t count,
		     uint32_t first)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < count; i++) {
		ret = check_attr(session, attrs[i]);
		if (!ret)
			ret = add_kind(session, attrs[i], first + i);
		if (ret)
			return ret;
		session->kinds[first + i]->open.leader = first;
		if (session->options & PERFRING_SESSION_BACKWARD)
			session->kinds[first + i]->open.attr->write_backward = 1;
		/* A sibling counts while its leader does: one that waits to be enabled itself never would after an exec
		 * that enables the leader (docs/abi.md trap 32), and would count another span of time after an enable. */
		if (i) {
			session->kinds[first + i]->open.attr->disabled = 0;
			session->kinds[first + i]->open.attr->enable_on_exec = 0;
		}
	}
	ret = check_kinds(session, first);
	return ret ? ret : check_group(session, first);
}

/* ---- fds ---- */

/* The clock that an event must have: that of those before it. */
static int32_t first_clock(const struct perfring_session *session, const struct perfring_session_kind *kind)
{
	return kind->open.leader ? session->clock : clock_of(session->kinds[0]->open.attr);
}

static struct perfring_opener_event *event_of(void *of, uint32_t number)
{
	struct perfring_session *session = of;

	return &session->kinds[number]->open;
}

/* Joins an event to the ring of its CPU or thread, which is mapped when it is the first there. */
static int join_ring(struct perfring_session *session, struct perfring_session_event *event)
{
	struct perfring_session_ring *ring = find_ring(session, event->tid, event->cpu, &event->ring);
	int ret;

	if (ring && !ioctl(event->fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		return 0;
	ret = -errno;
	/* A ring whose thread had this number and has exited, and which is not read to its end yet, is not its ring. */
	if (ring && !(ret == -EINVAL && event->cpu < 0 && has_hung_up(ring->fd))) {
		perfring_session_refuse(session, "the event cannot write into the ring of its CPU (SET_OUTPUT: %s).",
					strerror(-ret));
		return ret;
	}
	ret = add_ring(session, event->fd, event->tid, event->cpu);
	event->ring = ret ? 0 : session->ring_count - 1;
	return ret;
}

/* An fd that was opened becomes one of the session's. */
static int take(void *of, const struct perfring_open_place *place, uint32_t number, int fd)
{
	struct perfring_session *session = of;
	const struct perfring_session_kind *kind = session->kinds[number];
	uint32_t rings = session->ring_count;
	struct perfring_session_event event = {
		.fd = fd, .tid = place->is_cgroup ? -1 : place->who, .cpu = place->cpu, .event = number};
	int ret = perfring_event_id(fd, &event.id);

	/* A clock that was dropped: before the ring of another clock refuses it without a word. */
	if (!ret && number)
		ret = check_clock(session, kind->open.attr, first_clock(session, kind));
	if (!ret)
		ret = join_ring(session, &event);
	if (!ret)
		ret = perfring_os_array_grow(&session->events, session->event_count, &session->event_capacity,
					  sizeof(event));
	if (!ret) {
		session->events[session->event_count] = event;
		ret = watch(session, session->event_count);
	}
	if (!ret)
		session->event_count++;
	else if (session->ring_count > rings)
		perfring_session_close_ring(session->rings[--session->ring_count]);
	return ret;
}

/* Opens what was asked for at each of these.  is_late: no error when there is none of them any more. */
static int open_places(struct perfring_session *session, const struct perfring_session_asked *asked,
		       const struct perfring_numbers *who, const struct perfring_numbers *cpus, bool is_late)
{
	struct perfring_opener opener = {event_of,
					 take,
					 session,
					 asked->first,
					 asked->count,
					 session->allowed & ~(uint64_t)PERFRING_FALLBACK_MISSING,
					 is_late,
					 session->refusal,
					 sizeof(session->refusal)};

	session->refusal[0] = 0;
	return perfring_opener_open(&opener, &asked->target, who, cpus);
}

/* The ids of the fds from `from` on become known. */
static int name_fds(struct perfring_session *session, uint32_t from)
{
	int ret = 0;

	for (uint32_t i = from; !ret && i < session->event_count; i++)
		ret = perfring_format_set_put(session->formats, session->events[i].id, session->events[i].event);
	return ret;
}

static int plan(struct perfring_session *session, uint64_t more)
{
	return perfring_opener_files(more, session->options & PERFRING_SESSION_RAISE_FILES, session->refusal,
				     sizeof(session->refusal));
}

/* ---- adding ---- */

/* Where all samples have their time, for spans. */
static void note_time_place(struct perfring_session *session, const struct perfring_format *format)
{
	uint32_t at = format->sample_time_at;

	session->sample_time_at = format->index == 0 || session->sample_time_at == at ? at : 0;
}

/* The formats of the kinds from number `first` on, once they are as they were opened. */
static int add_formats(struct perfring_session *session, uint32_t first)
{
	for (uint32_t i = first; i < session->kind_count; i++) {
		int ret = perfring_session_count_event(session, i);
		int index = ret ? ret : perfring_format_set_add(session->formats, session->kinds[i]->open.attr);

		if (index < 0)
			return index;
		note_time_place(session, perfring_format_set_at(session->formats, i));
	}
	session->clock = clock_of(session->kinds[first]->open.attr);
	return 0;
}

/* What failed is gone again; rings that were shrunk for it are as they were, unless something lies in them by now. */
static void go_back(struct perfring_session *session, uint32_t events, uint32_t rings, uint32_t pages)
{
	perfring_session_cut_back(session, events, rings);
	if (session->pages == pages || !can_map_again(session))
		return;
	for (session->pages = pages; map_again(session); session->pages /= 2)
		if (session->pages == 1) {
			/* Somebody else took even that.  A session without its rings is none. */
			perfring_session_cut_back(session, 0, 0);
			return;
		}
}

static int open_asked(struct perfring_session *session, struct perfring_session_asked *asked)
{
	const struct perfring_numbers *who, *cpus;
	uint32_t events = session->event_count;
	int ret = 0;

	if (asked->target.cgroups.count && !asked->target.cpus.count) {
		asked->target.all_cpus = true;
		ret = perfring_numbers_add_online(&asked->target.cpus);
	}
	who = perfring_target_who(&asked->target);
	cpus = perfring_target_where(&asked->target);
	if (!ret)
		ret = plan(session, (uint64_t)who->count * cpus->count * asked->count);
	if (!ret)
		ret = open_places(session, asked, who, cpus, false);
	/* Again: something may have been dropped. */
	if (!ret)
		ret = check_kinds(session, asked->first);
	if (!ret)
		ret = add_formats(session, asked->first);
	return ret ? ret : name_fds(session, events);
}

int perfring_session_add_group(struct perfring_session *session, const struct perf_event_attr *const *attrs,
			       uint32_t count, const struct perfring_target *target)
{
	uint32_t events = session->event_count, rings = session->ring_count, pages = session->pages;
	struct perfring_session_asked *asked;
	int ret;

	session->refusal[0] = 0;
	if (!count) {
		perfring_session_refuse(session, "no event is named.");
		return -EINVAL;
	}
	if (perfring_target_who(target)->numbers[0] == -1 && perfring_target_where(target)->numbers[0] == -1) {
		perfring_session_refuse(session, "the target names neither a thread nor a CPU.");
		return -EINVAL;
	}
	if (perfring_os_array_grow(&session->asked, session->asked_count, &session->asked_capacity,
				sizeof(*session->asked))) {
		perfring_session_refuse(session, "adding the event failed: %s.", strerror(ENOMEM));
		return -ENOMEM;
	}
	asked = &session->asked[session->asked_count];
	asked->first = perfring_format_set_count(session->formats);
	asked->count = count;
	/* The copy has the cgroups' directories open. */
	ret = target->cgroups.count ? plan(session, target->cgroups.count) : 0;
	if (!ret)
		ret = perfring_target_copy(&asked->target, target);
	else
		memset(&asked->target, 0, sizeof(asked->target));
	if (!ret)
		ret = add_kinds(session, attrs, count, asked->first);
	if (!ret)
		ret = open_asked(session, asked);
	if (ret) {
		if (!*session->refusal)
			perfring_session_refuse(session, "adding the event failed: %s.", strerror(-ret));
		go_back(session, events, rings, pages);
		perfring_session_cut_kinds(session, asked->first);
		perfring_target_empty(&asked->target);
		return ret;
	}
	session->refusal[0] = 0;
	session->asked_count++;
	return (int)asked->first;
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
		if (!ids[i] || perfring_format_set_find(session->formats, ids[i])) {
			ret = ids[i] ? -EEXIST : -EINVAL;
			perfring_session_refuse(session, ids[i] ? "id %llu is known already." : "%llu is no id.",
						(unsigned long long)ids[i]);
		}
	if (!ret)
		ret = add_formats(session, first);
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = perfring_format_set_put(session->formats, ids[i], first);
	if (ret) {
		perfring_session_cut_kinds(session, first);
		if (!*session->refusal)
			perfring_session_refuse(session, "describing the event failed: %s.", strerror(-ret));
		return ret;
	}
	return (int)first;
}

/* ---- looking again ---- */

/* A late one runs when the others of its event do.  An exec that enabled them is over when there is another thread. */
static void start_late(struct perfring_session *session, uint32_t from)
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

/* Opens for threads or CPUs that are new, all of them or none. */
static int open_late(struct perfring_session *session, const struct perfring_session_asked *asked,
		     const struct perfring_numbers *who, const struct perfring_numbers *cpus)
{
	uint32_t events = session->event_count, rings = session->ring_count;
	int ret = open_places(session, asked, who, cpus, true);

	if (!ret)
		ret = name_fds(session, events);
	if (ret)
		perfring_session_cut_back(session, events, rings);
	else
		start_late(session, events);
	return ret;
}

/* Opens for those of `now` that `known` has not, one by one; they are known then. */
static int open_new(struct perfring_session *session, const struct perfring_session_asked *asked,
		    const struct perfring_numbers *now, struct perfring_numbers *known, bool are_cpus)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < now->count; i++) {
		struct perfring_numbers one = {&now->numbers[i], 1, 1};

		if (perfring_numbers_have(known, now->numbers[i]))
			continue;
		ret = are_cpus ? open_late(session, asked, perfring_target_who(&asked->target), &one)
			       : open_late(session, asked, &one, perfring_target_where(&asked->target));
		if (!ret)
			ret = perfring_numbers_add(known, now->numbers[i]);
	}
	return ret;
}

static uint64_t count_new(const struct perfring_numbers *now, const struct perfring_numbers *known)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < now->count; i++)
		count += !perfring_numbers_have(known, now->numbers[i]);
	return count;
}

/* The threads of some processes; most events of a session have the same ones, and are given the same threads. */
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
		ret = perfring_numbers_add_process(&listing->tids, &target->processes[i]);
		if (ret == -ESRCH)
			ret = 0;
	}
	if (!ret)
		listing->of = target;
	return ret;
}

static int look_for_threads(struct perfring_session *session, struct perfring_session_asked *asked,
			    struct listing *listing)
{
	struct perfring_target *target = &asked->target;
	struct perfring_numbers now = {NULL, 0, 0};
	int ret = list_threads(listing, target);

	for (uint32_t i = 0; !ret && i < listing->tids.count; i++)
		ret = perfring_numbers_add(&now, listing->tids.numbers[i]);
	for (uint32_t i = 0; !ret && i < target->threads.count; i++)
		ret = perfring_numbers_add(&now, target->threads.numbers[i]);
	if (!ret) {
		/* A number that is given again is another thread. */
		perfring_numbers_keep(&target->tids, &now);
		ret = plan(session,
			   count_new(&now, &target->tids) * perfring_target_where(target)->count * asked->count);
	}
	if (!ret)
		ret = open_new(session, asked, &now, &target->tids, false);
	free(now.numbers);
	return ret;
}

/* ---- what has hung up ---- */

static void close_event(struct perfring_session *session, uint32_t number)
{
	struct perfring_session_event *event = &session->events[number];
	const struct perfring_format *format = perfring_format_set_at(session->formats, event->event);

	if (format->read_format & PERFRING_FORMAT_LOST)
		session->kinds[event->event]->lost += perfring_session_lost_of(event, format);
	close(event->fd);
	event->fd = -1;
}

/* Nothing of it is unread, or held, or not returned. */
static bool is_drained(const struct perfring_session_ring *ring)
{
	return !ring->aux && ring->state == PERFRING_RING_SOUND && ring->first == ring->end &&
	       !ring->ops->has_seen(ring) &&
	       perfring_page_observe_from(ring->ring.page, ring->reader.returned) == ring->reader.returned;
}

/* Closes fds of threads that are gone, and their rings once they are read: where threads come and go, their number has
 * no end.  A ring's own fd stays as long as others may come that write into it. */
static void bury(struct perfring_session *session)
{
	uint32_t *open = calloc((size_t)session->ring_count + 1, sizeof(*open));

	for (int owners = 0; open && owners < 2; owners++)
		for (uint32_t i = 0; i < session->event_count; i++) {
			const struct perfring_session_event *event = &session->events[i];
			struct perfring_session_ring *ring = event->fd >= 0 ? session->rings[event->ring] : NULL;
			bool gone = ring && places_find(&session->watched_of, watch_key(session, event)) == GONE;
			bool owns = ring && (event->fd == ring->fd || (ring->aux && event->fd == ring->aux->fd));

			if (gone && !owners && !owns)
				close_event(session, i);
			else if (!owners && ring)
				open[event->ring]++;
			if (!gone || !owners || open[event->ring] != 1 || ring->cpu >= 0 || !is_drained(ring))
				continue;
			close_event(session, i);
			perfring_totals_add(&session->removed, &ring->totals);
			session->rings[event->ring] = NULL;
			session->merging = false;
			perfring_session_close_ring(ring);
		}
	free(open);
}

int perfring_session_update_on(struct perfring_session *session, const struct perfring_numbers *online)
{
	struct listing listing = {NULL, {NULL, 0, 0}};
	uint32_t events = session->event_count;
	int ret = 0;

	session->refusal[0] = 0;
	bury(session);
	for (uint32_t i = 0; !ret && i < session->asked_count; i++) {
		struct perfring_session_asked *asked = &session->asked[i];
		struct perfring_target *target = &asked->target;

		if (target->process_count && !session->kinds[asked->first]->open.attr->inherit)
			ret = look_for_threads(session, asked, &listing);
		if (ret || !target->all_cpus)
			continue;
		/* A thread's events sleep while their CPU is away; those of a CPU or cgroup died with it. */
		if (!target->threads.count && !target->process_count)
			perfring_numbers_keep(&target->cpus, online);
		ret = plan(session,
			   count_new(online, &target->cpus) * perfring_target_who(target)->count * asked->count);
		if (!ret)
			ret = open_new(session, asked, online, &target->cpus, true);
	}
	free(listing.tids.numbers);
	if (ret) {
		if (!*session->refusal)
			perfring_session_refuse(session, "looking for threads and CPUs failed: %s.", strerror(-ret));
		return ret;
	}
	session->refusal[0] = 0;
	return (int)(session->event_count - events);
}

int perfring_session_update(struct perfring_session *session)
{
	struct perfring_numbers online = {NULL, 0, 0};
	int ret = perfring_numbers_add_online(&online);

	if (!ret)
		ret = perfring_session_update_on(session, &online);
	free(online.numbers);
	return ret;
}

/* ---- how ---- */

int perfring_session_configure(struct perfring_session *session, uint32_t options, uint64_t allowed)
{
	if (session->asked_count)
		return -EBUSY;
	session->options = options;
	session->allowed = allowed;
	return 0;
}

uint64_t perfring_session_given_up(const struct perfring_session *session, uint32_t event)
{
	return event < session->kind_count && session->kinds[event] ? session->kinds[event]->open.dropped : 0;
}

const struct perf_event_attr *perfring_session_attr(const struct perfring_session *session, uint32_t event)
{
	return event < session->kind_count && session->kinds[event] ? session->kinds[event]->open.attr : NULL;
}

uint32_t perfring_session_pages(const struct perfring_session *session)
{
	return session->pages;
}
