/* merge.h - several sessions as one stream of items in time order.
 *
 * A merge, with its sessions, is used by one thread at a time. */
#ifndef PERFRING_MERGE_H
#define PERFRING_MERGE_H

#include <perfring/session.h>

PERFRING_BEGIN

/* One session a consumer thread is the way to read more than one CPU can; where one thread reads several, of other
 * clocks aside, a merge hands out the items of all in time order.  It waits, looks and returns for all of them: they
 * are read through it alone while it is open. */
struct perfring_merge;

/* Returns 0; -EINVAL: none, one twice, times of several clocks, or rings that overwrite; -ENOMEM; what epoll said. */
PERFRING_API int perfring_merge_open(struct perfring_merge **merge, struct perfring_session *const *sessions,
				     uint32_t count);
PERFRING_API void perfring_merge_close(struct perfring_merge *merge);
PERFRING_API int perfring_merge_wait(struct perfring_merge *merge, int timeout_ms);
PERFRING_API void perfring_merge_flush(struct perfring_merge *merge);
/* *session: which it came from, by number, or whose ring was found corrupt; may be NULL. */
PERFRING_API int perfring_merge_next(struct perfring_merge *merge, struct perfring_item *item, uint32_t *session);
PERFRING_API void perfring_merge_return(struct perfring_merge *merge);
PERFRING_API int perfring_merge_fd(const struct perfring_merge *merge);

PERFRING_END

#endif
