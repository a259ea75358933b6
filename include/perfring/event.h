/* event.h - perf_event_open fds: naming what to observe, opening it, reading it, and why it was refused.
 *
 * Context: any thread unless said; not signal handlers.
 */
#ifndef PERFRING_EVENT_H
#define PERFRING_EVENT_H

#include <perfring/base.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* Text to attr, in perf's syntax: software and hardware events by name, `rNNN` raw ones, `subsys:name` tracepoints
 * (through tracefs), `mem:ADDR[/LEN][:rwx]`; each with modifiers behind a last colon: u k h (only there), p pp ppp
 * (precise_ip), G H, I (not idle), D (pinned).  Sets type, config, bp_*, the exclude_ flags and precise_ip; the rest of
 * *attr stays.  Returns 0; -EINVAL with *fault (may be NULL) telling where in the text; for tracepoints -ENOENT and
 * -EACCES as tracefs said. */
PERFRING_API int perfring_event_parse(const char *text, struct perf_event_attr *attr, struct perfring_fault *fault);

/* perf_event_open(2), FD_CLOEXEC always added.  pid, cpu, group_fd and flags as in ABI.md 1.1.  attr is not modified:
 * the size handed to the kernel is the smallest that holds it, so old kernels take it.  Returns an fd or -errno. */
PERFRING_API int perfring_event_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int group_fd,
				     uint64_t flags);

/* The id that records carry for this fd.  Returns 0 or -errno. */
PERFRING_API int perfring_event_id(int fd, uint64_t *id);

/* read(2) into room, told apart by the event's read_format (sample.h).  Returns 0, -ENOSPC (room too small), -EBADMSG,
 * -ENODATA (an event in error state reads as end of file), or -errno.  Valid until: room changes. */
PERFRING_API int perfring_event_read(int fd, const struct perfring_format *format, struct perfring_read *read,
				     void *room, size_t size);

/* Why perfring_event_open said `error` for these arguments, and what to change: one or more sentences that name the
 * event, the sysctl and its value now, the limit, the capability or the attr's bit.  Like snprintf: returns the length
 * of the whole text.  */
PERFRING_API int64_t perfring_event_explain(int error, const struct perf_event_attr *attr, int32_t pid, int32_t cpu,
					    char *room, size_t size);

/* The event's name as perfring_event_parse takes it ("cpu-clock:u", "sched:sched_switch", "mem:0x10/4:w"); for what
 * has none "type=N,config=N".  Like snprintf. */
PERFRING_API int64_t perfring_event_name(const struct perf_event_attr *attr, char *room, size_t size);

PERFRING_END

#endif
