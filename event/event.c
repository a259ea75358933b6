/* event.c - perf_event_open fds: opened, identified, read. */
#include <perfring/event.h>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event.h"

int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd, uint64_t flags)
{
	unsigned char bytes[PERFRING_ATTR_ROOM];
	uint32_t size = perfring_attr_size(attr);
	long fd;

	/* The caller's struct may be newer than the kernel, or than our header: only what is not 0 is sent. */
	memset(bytes, 0, sizeof(bytes));
	if (size > sizeof(bytes))
		return -E2BIG;
	memcpy(bytes, attr, perfring_attr_bytes(attr) < size ? perfring_attr_bytes(attr) : size);
	memcpy(bytes + offsetof(struct perf_event_attr, size), &size, sizeof(size));
	fd = syscall(SYS_perf_event_open, bytes, (pid_t)pid, (int)cpu, group_fd,
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
	cursor = perfring_cursor_over(room, 0, (uint32_t)got);
	return perfring_take_read(&cursor, values, format->read_format) ? -EBADMSG : 0;
}
