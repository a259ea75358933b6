/* merge.c - several sessions as one stream in time order.
 *
 * The rule of session_order.c, over all sessions: a wait observes every ring, and a record is returned when an old record of
 * any session comes after it.  So the merge compares the sessions' first keys, whatever each session itself could return.
 *
 * The functions of merge.h.  Reads the sessions' windows by session_private.h; one thread for all of them.
 */
#include <perfring/merge.h>
#include <perfring/session.h>

#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "session_private.h"

struct perfring_merge {
	struct perfring_session **sessions;
	struct perfring_heap_entry *heap; /* of sessions, by the first key of their windows, or UINT64_MAX */
	uint32_t count;
	uint32_t old_rings; /* of all sessions */
	bool merging;       /* the keys are of this round */
	bool corrupt;       /* a session may have a fault to report */
	uint64_t last;
	int epoll;
};

static int join(struct perfring_merge *merge, struct perfring_session *session)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = merge->count};

	if (session->clock != merge->sessions[0]->clock || perfring__session_is_backward(session))
		return -EINVAL;
	if (epoll_ctl(merge->epoll, EPOLL_CTL_ADD, session->epoll, &interest))
		return errno == EEXIST ? -EINVAL : -errno;
	if (session->last > merge->last)
		merge->last = session->last;
	return 0;
}

int perfring_merge_open(struct perfring_merge **merge, struct perfring_session *const *sessions, uint32_t count)
{
	struct perfring_merge *made;
	int ret = 0;

	*merge = NULL;
	if (!count)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->sessions = calloc(count, sizeof(*made->sessions));
	made->heap = calloc(count, sizeof(*made->heap));
	made->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!made->sessions || !made->heap)
		ret = -ENOMEM;
	else if (made->epoll < 0)
		ret = -errno;
	for (; !ret && made->count < count; made->count++) {
		made->sessions[made->count] = sessions[made->count];
		ret = join(made, sessions[made->count]);
	}
	if (ret) {
		perfring_merge_close(made);
		return ret;
	}
	*merge = made;
	return 0;
}

void perfring_merge_close(struct perfring_merge *merge)
{
	if (!merge)
		return;
	if (merge->epoll >= 0)
		close(merge->epoll);
	free(merge->sessions);
	free(merge->heap);
	free(merge);
}

int perfring_merge_fd(const struct perfring_merge *merge)
{
	return merge->epoll;
}

int perfring_merge_wait(struct perfring_merge *merge, int timeout_ms)
{
	bool is_live = false, is_short = false, crossed = false;
	struct epoll_event ready;
	int count, ret, error = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		struct perfring_session *session = merge->sessions[i];

		is_live |= perfring__session_is_live(session);
		is_short |= perfring__session_holds(session) || perfring__session_is_silent(session);
	}
	if (!is_live)
		timeout_ms = 0;
	else if ((timeout_ms < 0 || timeout_ms > PERFRING_HOLD_MS) && is_short)
		timeout_ms = PERFRING_HOLD_MS;
	for (uint32_t i = 0; timeout_ms && i < merge->count; i++)
		crossed |= perfring__session_arm(merge->sessions[i], true);
	count = epoll_wait(merge->epoll, &ready, 1, crossed ? 0 : timeout_ms);
	ret = count < 0 ? -errno : count > 0 || crossed;
	/* Each takes its wakeups and hang-ups, and begins a round, also after an error of another.  Its rings stay armed for
	 * the caller's event loop. */
	for (uint32_t i = 0; i < merge->count; i++) {
		int one = perfring_session_wait(merge->sessions[i], 0);

		if (one > 0 && ret >= 0)
			ret = 1;
		else if (one < 0 && !error)
			error = one;
	}
	merge->merging = false;
	return ret < 0 || !error ? ret : error;
}

void perfring_merge_flush(struct perfring_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		perfring_session_flush(merge->sessions[i]);
	merge->merging = false;
}

/* Updates the key at heap[at]. */
static void look_at(struct perfring_merge *merge, uint32_t at)
{
	struct perfring_session *session = merge->sessions[merge->heap[at].number];

	merge->heap[at].key = perfring__session_first_key(session);
	merge->corrupt |= session->corrupt_rings != 0;
}

static int report_corrupt(struct perfring_merge *merge, uint32_t *number)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < merge->count; i++) {
		*number = i;
		ret = perfring__session_report_corrupt(merge->sessions[i]);
	}
	merge->corrupt = ret != 0;
	return ret;
}

int perfring_merge_next(struct perfring_merge *merge, struct perfring_item *item, uint32_t *number)
{
	struct perfring_session *session;
	uint32_t unasked;
	int ret;

	if (!merge)
		return -EINVAL;
	if (!number)
		number = &unasked;
	if (!merge->merging) {
		merge->merging = true;
		merge->old_rings = 0;
		for (uint32_t i = 0; i < merge->count; i++) {
			merge->heap[i].number = i;
			look_at(merge, i);
			merge->old_rings += merge->sessions[i]->old_rings;
		}
		perfring__heap_make(merge->heap, merge->count);
	}
	if (merge->corrupt) {
		ret = report_corrupt(merge, number);
		if (ret)
			return ret;
	}
	*number = merge->heap[0].number;
	session = merge->sessions[*number];
	if (!merge->old_rings || !session->heap_count)
		return 0;
	merge->old_rings -= session->old_rings;
	perfring__session_take(session, item, &merge->last);
	merge->old_rings += session->old_rings;
	look_at(merge, 0);
	perfring__heap_down(merge->heap, merge->count, 0);
	assert(perfring__heap_is_valid(merge->heap, merge->count));
	return 1;
}

void perfring_merge_return(struct perfring_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		perfring_session_return(merge->sessions[i]);
}
