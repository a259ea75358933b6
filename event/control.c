/* control.c - ioctl(2), fcntl(2) and prctl(2) on events, with their traps avoided (docs/abi.md 2.1, 2.4).
 *
 * The functions of event.h on open fds: one system call each, no state, no allocation.  Any thread.
 */
#include <perfring/event.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "event_private.h"

enum {
	PROGRAMS_MAX = 64, /* of one tracepoint: more are E2BIG (docs/abi.md 2.1) */
};

/* argument: a whole word, as the kernel reads it. */
static int control(int fd, unsigned long request, unsigned long argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

int perfring_event_enable(int fd, bool group)
{
	return control(fd, PERF_EVENT_IOC_ENABLE, group ? PERF_IOC_FLAG_GROUP : 0);
}

int perfring_event_disable(int fd, bool group)
{
	return control(fd, PERF_EVENT_IOC_DISABLE, group ? PERF_IOC_FLAG_GROUP : 0);
}

int perfring_event_reset(int fd, bool group)
{
	return control(fd, PERF_EVENT_IOC_RESET, group ? PERF_IOC_FLAG_GROUP : 0);
}

int perfring_event_refresh(int fd, uint32_t n)
{
	/* To the kernel 0 is no limit, and it adds an int: a negative one would reduce the budget.  (Linux 6.18
	 * restarts a breakpoint without budget only with IOC_PERIOD besides, whose argument is not known here.) */
	return n && n <= INT32_MAX ? control(fd, PERF_EVENT_IOC_REFRESH, n) : -EINVAL;
}

int perfring_event_set_period(int fd, uint64_t period)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

int perfring_event_set_output(int fd, int to)
{
	/* Through long: the kernel accepts only a -1 of 64 bits (docs/abi.md 14.22). */
	return control(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)(long)to);
}

int perfring_event_set_filter(int fd, const char *filter)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? -errno : 0;
}

int perfring_event_pause(int fd, bool paused)
{
	return control(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, paused);
}

int perfring_event_set_bpf(int fd, int program)
{
	return program < 0 ? -EBADF : control(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)program);
}

int perfring_event_query_bpf(int fd, uint32_t *ids, uint32_t *count)
{
	uint32_t query[2 + PROGRAMS_MAX] = {*count < PROGRAMS_MAX ? *count : PROGRAMS_MAX};
	uint32_t capacity = query[0];

	if (ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, query) < 0 && errno != ENOSPC)
		return -errno;
	*count = query[1];
	memcpy(ids, query + 2, (query[1] < capacity ? query[1] : capacity) * sizeof(*ids));
	/* With a capacity of 0 the kernel only counts, and returns success. */
	return query[1] > capacity ? -ENOSPC : 0;
}

int perfring_event_modify(int fd, const struct perf_event_attr *attr)
{
	union perfring_attr packed;
	int ret = perfring__attr_pack(&packed, attr);

	return ret ? ret : ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &packed) < 0 ? -errno : 0;
}

int perfring_event_set_signal(int fd, int number, int32_t tid)
{
	struct f_owner_ex owner = {F_OWNER_TID, number ? tid : 0};
	int flags = fcntl(fd, F_GETFL);

	/* No SETSIG of 0: that is SIGIO, which does not carry the fd. */
	if (number < 0 || (number && tid <= 0))
		return -EINVAL;
	if (flags < 0)
		return -errno;
	/* Off first, then owner and number, then on: no signal goes to the wrong thread or has the wrong number. */
	if (fcntl(fd, F_SETFL, flags & ~O_ASYNC) < 0 || fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	    fcntl(fd, F_SETSIG, number) < 0 || (number && fcntl(fd, F_SETFL, flags | O_ASYNC) < 0))
		return -errno;
	return 0;
}

int perfring_event_enable_all(void)
{
	return prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

int perfring_event_disable_all(void)
{
	return prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
