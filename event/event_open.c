/* event_open.c - fds of perf_event_open: open, id, read, the calling thread's count, estimate.
 *
 * The functions of event.h for one fd.  Fds are the caller's; nothing is allocated.
 */
#include <perfring/event.h>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <perfring/page.h>

#include "event_private.h"

int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd, uint64_t flags)
{
	union perfring_attr packed;
	int ret = perfring__attr_pack(&packed, attr);
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

int perfring_event_read(int fd, const struct perfring_format *format, struct perfring_read *values, void *buffer,
			size_t size)
{
	struct perfring_cursor cursor;
	ssize_t got = read(fd, buffer, size);

	if (got < 0)
		return -errno;
	if (got == 0)
		return -ENODATA;
	cursor = perfring_cursor_init(buffer, 0, (uint32_t)got);
	return perfring_take_read(&cursor, values, format->read_format) ? -EBADMSG : 0;
}

int perfring_event_count_self(int fd, const struct perf_event_mmap_page *page, struct perfring_self_count *count)
{
	struct perfring_page_count seen;
	uint64_t words[5]; /* id and lost may follow */
	ssize_t got;

	/* An event without a counter looks like a disabled one, whose times do not advance: it is read.  Times that are
	 * not current serve an event that always counted, for which nothing is estimated. */
	if (perfring_page_read(page, &seen) == 0 && seen.is_counting &&
	    (seen.is_current || seen.enabled == seen.running)) {
		*count = (struct perfring_self_count){seen.value, seen.enabled, seen.running, PERFRING_COUNT_RDPMC};
		return 0;
	}
	got = read(fd, words, sizeof(words));
	if (got < 0)
		return -errno;
	if (got == 0)
		return -ENODATA;
	if (got < 24)
		return -EINVAL;
	*count = (struct perfring_self_count){words[0], words[1], words[2], PERFRING_COUNT_READ};
	return 0;
}

/* Newton's method, so that the library does not need libm. */
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

/* An occurrence is counted with probability `share`, so `value` of the estimated N = value / share is binomial, with
 * the variance N * share * (1 - share) = value * (1 - share); the variance of the estimate is that over share squared.
 * 95 % of a normal distribution lie within 1.96 standard deviations. */
struct perfring_estimate perfring_event_estimate(uint64_t value, uint64_t enabled, uint64_t running)
{
	struct perfring_estimate estimate = {(double)value, 1, 0};

	if (!running)
		return (struct perfring_estimate){0, 0, 0};
	/* The two times are not read at one instant. */
	if (running >= enabled)
		return estimate;
	estimate.value = (double)((long double)value * (long double)enabled / (long double)running);
	estimate.share = (double)running / (double)enabled;
	estimate.margin =
		1.96 * root_of((double)value * ((double)(enabled - running) / (double)enabled)) / estimate.share;
	return estimate;
}
