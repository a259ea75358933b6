/* session_set.c - rings of threads that come and go: each round begins with a walk of the sets (set.h).
 *
 * perfring_session_add_set, remove_set and describe_ring of session.h; session.c walks the sets at each wait and flush.
 *
 * A set's ring is in the session from the walk that finds it until the walk that finds it drained.  `data` of the set's
 * member is the session's ring number + 1.
 */
#include <stdlib.h>
#include <perfring/set.h>
#include "session_private.h"

static void remove_member(struct perfring_session *session, struct perfring_set_ring *member)
{
	uint32_t number = (uint32_t)(uintptr_t)member->data - 1;
	struct perfring_session_ring *ring = session->rings[number];

	member->data = NULL;
	/* Records may be in use, or its corruption not reported.  The session shares its memory until then. */
	if (perfring_session_remove_ring(session, number) && !ring->leaving) {
		ring->leaving = true;
		session->leaving++;
	}
}

int perfring_session_describe_ring(struct perfring_session *session, const struct perfring_ring *ring)
{
	struct perf_event_attr attr;
	uint64_t id;

	if (!perfring_ring_attr(ring, &attr, &id))
		return -ENODATA;
	return perfring_session_describe(session, &attr, &id, 1);
}

/* Describes a ring's event.  Returns 0, also if the ring has no attr or its event is known; or -errno. */
static int describe(struct perfring_session *session, const struct perfring_ring *ring)
{
	int ret = perfring_session_describe_ring(session, ring);

	return ret >= 0 || ret == -ENODATA || ret == -EEXIST ? 0 : ret;
}

static int walk(struct perfring_session *session, const struct perfring_session_set *of)
{
	struct perfring_set_ring *member = NULL;
	int error = 0, ret;

	while ((member = perfring_set_next(of->set, member))) {
		if (!member->data && !member->drained) {
			ret = describe(session, &member->ring);
			if (!ret)
				ret = perfring_session_add_ring(session, &member->ring, of->wake_fd, of->flags);
			if (ret >= 0)
				member->data = (void *)(uintptr_t)(ret + 1);
			else if (!error)
				error = ret;
		} else if (member->data && member->drained) {
			remove_member(session, member);
		}
	}
	return error;
}

int perfring__session_walk_sets(struct perfring_session *session)
{
	struct perfring_session_ring *ring;
	int error = 0;

	for (uint32_t i = 0; session->leaving && (ring = perfring__session_ring_from(session, &i)); i++)
		if (ring->leaving && !perfring_session_remove_ring(session, i))
			session->leaving--;
	for (uint32_t i = 0; i < session->set_count; i++) {
		int ret = walk(session, &session->sets[i]);

		error = error ? error : ret;
	}
	return error;
}

void perfring__session_leave_sets(struct perfring_session *session)
{
	struct perfring_set_ring *member;

	for (uint32_t i = 0; i < session->set_count; i++)
		for (member = NULL; (member = perfring_set_next(session->sets[i].set, member));)
			member->data = NULL;
	session->set_count = 0;
}

int perfring_session_add_set(struct perfring_session *session, struct perfring_set *set, int wake_fd, uint32_t flags)
{
	if (!set || session->options & PERFRING_SESSION_BACKWARD || flags & ~(uint32_t)PERFRING_READER_COPY)
		return -EINVAL;
	for (uint32_t i = 0; i < session->set_count; i++)
		if (session->sets[i].set == set)
			return -EEXIST;
	if (perfring__os_array_grow(&session->sets, session->set_count, &session->set_capacity, sizeof(*session->sets)))
		return -ENOMEM;
	session->sets[session->set_count++] = (struct perfring_session_set){set, wake_fd, flags};
	return 0;
}

int perfring_session_remove_set(struct perfring_session *session, struct perfring_set *set)
{
	struct perfring_set_ring *member = NULL;
	uint32_t i = 0;

	while (i < session->set_count && session->sets[i].set != set)
		i++;
	if (i == session->set_count)
		return -EINVAL;
	while ((member = perfring_set_next(set, member)))
		if (member->data)
			remove_member(session, member);
	session->sets[i] = session->sets[--session->set_count];
	return 0;
}
