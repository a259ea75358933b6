/* self.c - an event of the calling thread, counted without a system call where its control page allows. */
#include <perfring/event.h>

#include <unistd.h>
#include <perfring/page.h>

int perfring_event_count_self(int fd, const struct perf_event_mmap_page *page, struct perfring_self_count *count)
{
	struct perfring_page_count seen;
	uint64_t room[5]; /* id and lost may follow */
	ssize_t got;

	/* Off its counter an event that waits looks like one that is disabled, whose times stand still.  Times that are not
	 * up to now serve an event that always counted: nothing is to be estimated from them. */
	if (perfring_page_read(page, &seen) == 0 && seen.is_counting &&
	    (seen.is_current || seen.enabled == seen.running)) {
		*count = (struct perfring_self_count){seen.value, seen.enabled, seen.running, PERFRING_COUNT_RDPMC};
		return 0;
	}
	got = read(fd, room, sizeof(room));
	if (got < 0)
		return -errno;
	if (got == 0)
		return -ENODATA;
	if (got < 24)
		return -EINVAL;
	*count = (struct perfring_self_count){room[0], room[1], room[2], PERFRING_COUNT_READ};
	return 0;
}
