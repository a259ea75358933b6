/* event_open.c - perf_event_open fds: opened, identified, read, estimated. */
#include <perfring/event.h>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event_private.h"

int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd, uint64_t flags)
{
	union perfring_attr packed;
	int ret = perfring_attr_pack(&packed, attr);
	long fd;

	if (ret)
		return ret;
	fd = syscall(SYS_perf_event_open, &packed, (pid_t)pid, (int)cpu, group_fd,
		     (unsigned long)(flags | PERFRING_FLAG_FD_CLOEXEC));
	return fd < 0 ? -errno : (int)fd;
}

int perfring_event_id(int fd, uint64_t *id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, id) ? -errno : 0;
}

int perfring_event_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *room,
			size_t size)
{
	struct perfring_cursor cursor;
	ssize_t got = read(fd, room, size);

	if (got < 0)
		return -errno;
	if (got == 0)
		return -ENODATA;
	cursor = perfring_cursor_init(room, 0, (uint32_t)got);
	return perfring_take_read(&cursor, values, format->read_format) ? -EBADMSG : 0;
}

/* No libm for one root. */
static double root_of(double square)
{
	double root = square > 1 ? square : 1, next = (root + square / root) / 2;

	if (square <= 0)
		return 0;
	while (next < root) {
		root = next;
		next = (root + square / root) / 2;
	}
	return root;
}

/* An occurrence is seen with probability `share`, so `value` of the estimated N = value / share is binomial, its
 * variance N * share * (1 - share) = value * (1 - share); the estimate's is that over share squared.  95 % of a normal
 * distribution lie within 1.96 standard deviations. */
struct perfring_estimate perfring_event_estimate(uint64_t value, uint64_t enabled, uint64_t running)
{
	struct perfring_estimate estimate = {(double)value, 1, 0};

	if (!running)
		return (struct perfring_estimate){0, 0, 0};
	/* The two times are not read in one instant: a hair more than always is always. */
	if (running >= enabled)
		return estimate;
	estimate.value = (double)((long double)value * (long double)enabled / (long double)running);
	estimate.share = (double)running / (double)enabled;
	estimate.margin =
		1.96 * root_of((double)value * ((double)(enabled - running) / (double)enabled)) / estimate.share;
	return estimate;
}
