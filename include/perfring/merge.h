/* merge.h - several sessions as one stream of items in time order.
 *
 * Each call is that of session.h for all sessions at once, with the same results.  Context: one thread at a time for a merge with its
 * sessions; not signal handlers. */
#ifndef PERFRING_MERGE_H
#define PERFRING_MERGE_H

#include <perfring/session.h>

PERFRING_BEGIN

/* To read faster than one CPU can, use one session for each consumer thread.  When one thread reads several sessions of the
 * same clock, a merge returns their items in time order.  While it is open, the sessions are read through it alone:
 * perfring_merge_return stands for each perfring_session_return.  What does not read may be called as before, such as
 * perfring_session_fault of the session with a corrupt ring. */
struct perfring_merge;

/* The sessions stay the caller's, and must stay open until close.  Returns 0; -EINVAL (count is 0, a session is given twice, the
 * clocks differ, or rings overwrite); -ENOMEM; -errno of epoll. */
PERFRING_EXPERIMENTAL int perfring_merge_open(struct perfring_merge **merge, struct perfring_session *const *sessions,
				     uint32_t count);
PERFRING_EXPERIMENTAL void perfring_merge_close(struct perfring_merge *merge);

/* As perfring_session_wait and perfring_session_flush; but where a session has a set, or a ring without a wake_fd, a wait may return 0
 * after 10 ms, without records.  Each session begins its round, also after an error; the first error
 * is returned, and the next wait tries again. */
PERFRING_EXPERIMENTAL int perfring_merge_wait(struct perfring_merge *merge, int timeout_ms);
PERFRING_EXPERIMENTAL void perfring_merge_flush(struct perfring_merge *merge);

/* As perfring_session_next.  *session (may be NULL): the index of the item's session, or of the session with the corrupt ring. */
PERFRING_EXPERIMENTAL int perfring_merge_next(struct perfring_merge *merge, struct perfring_item *item, uint32_t *session);

/* As perfring_session_return and perfring_session_fd. */
PERFRING_EXPERIMENTAL void perfring_merge_return(struct perfring_merge *merge);
PERFRING_EXPERIMENTAL int perfring_merge_fd(const struct perfring_merge *merge);

PERFRING_END

#endif
