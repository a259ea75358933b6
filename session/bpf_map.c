/* bpf_map.c - bpf-output events as the consumers of a BPF program's records. */
#include <perfring/session.h>

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event/event_private.h"
#include "session_private.h"

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

static int put(int map_fd, int32_t cpu, int fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&cpu;
	attr.value = (uintptr_t)&fd;
	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static void take_out(int map_fd, int32_t cpu)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&cpu;
	bpf(BPF_MAP_DELETE_ELEM, &attr);
}

int perfring_session_put_map(struct perfring_session *session, uint32_t event, int map_fd)
{
	const struct perf_event_attr *attr = perfring_session_attr(session, event);
	uint32_t found = 0, i;
	int ret = 0;

	if (!attr || attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_BPF_OUTPUT)
		return -EINVAL;
	for (i = 0; i < session->event_count; i++) {
		if (session->events[i].event != event || session->events[i].fd < 0)
			continue;
		if (session->events[i].tid >= 0 || session->events[i].cpu < 0)
			return -EINVAL;
		found++;
	}
	if (!found)
		return -EINVAL;
	for (i = 0; !ret && i < session->event_count; i++)
		if (session->events[i].event == event && session->events[i].fd >= 0)
			ret = put(map_fd, session->events[i].cpu, session->events[i].fd);
	if (!ret)
		return 0;
	/* The last one is the one that was refused. */
	for (i--; i-- > 0;)
		if (session->events[i].event == event && session->events[i].fd >= 0)
			take_out(map_fd, session->events[i].cpu);
	return ret;
}
