/* bpf_map.c - bpf-output events as consumers of a BPF program's records.
 *
 * perfring_session_put_map of session.h: the program's samples then come as those of any event.  Two system calls of bpf(2) for
 * each fd; no state.
 */
#include <perfring/session.h>

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event/event_private.h"
#include "session_private.h"

/* Stores the event's fd at its CPU's index, or deletes it there. */
static int change(enum bpf_cmd command, int map_fd, const struct perfring_session_event *event)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&event->cpu;
	attr.value = command == BPF_MAP_UPDATE_ELEM ? (uintptr_t)&event->fd : 0;
	return syscall(SYS_bpf, command, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static bool is_of(const struct perfring_session_event *opened, uint32_t event)
{
	return opened->event == event && opened->fd >= 0;
}

int perfring_session_put_map(struct perfring_session *session, uint32_t event, int map_fd)
{
	const struct perf_event_attr *attr = perfring_session_attr(session, event);
	const struct perfring_session_event *events = session->events;
	uint32_t found = 0, i;
	int ret = 0;

	if (!attr || attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_BPF_OUTPUT)
		return -EINVAL;
	for (i = 0; i < session->event_count; i++) {
		if (is_of(&events[i], event) && (events[i].tid >= 0 || events[i].cpu < 0))
			return -EINVAL;
		found += is_of(&events[i], event);
	}
	if (!found)
		return -EINVAL;
	for (i = 0; !ret && i < session->event_count; i++)
		if (is_of(&events[i], event))
			ret = change(BPF_MAP_UPDATE_ELEM, map_fd, &events[i]);
	/* The last one was refused: removes the others. */
	for (uint32_t stored = ret ? i - 1 : 0; stored-- > 0;)
		if (is_of(&events[stored], event))
			change(BPF_MAP_DELETE_ELEM, map_fd, &events[stored]);
	return ret;
}
