/* callchain.h - walking a callchain with its markers, and joining chains that come in two parts (docs/abi.md 5, 6).
 *
 *     struct perfring_callchain chain = perfring_callchain_init(&sample.callchain);
 *     struct perfring_frame frame;
 *
 *     while ((one = perfring_callchain_next(&chain, &frame)) == 1)
 *             use(frame.ip, frame.context);
 */
#ifndef PERFRING_CALLCHAIN_H
#define PERFRING_CALLCHAIN_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* An address, innermost first, and the marker that it stands behind: PERFRING_CONTEXT_USER ... as a u64, 0 before
 * any. */
struct perfring_frame {
	uint64_t ip;
	uint64_t context;
};

/* A walk.  When it has ended, cookie is that of the part which is still to come, if is_deferred. */
struct perfring_callchain {
	const perfring_word *words;
	uint64_t nr;
	uint64_t at;
	uint64_t context;
	uint64_t cookie;
	bool is_deferred;
	bool is_user; /* a user marker was passed: a deferred one behind it is none */
};

/* Context: any thread, also signal handlers.  Valid until: the words go. */
PERFRING_INLINE struct perfring_callchain perfring_callchain_init(const struct perfring_list *list)
{
	struct perfring_callchain chain;

	chain.words = list->words;
	chain.nr = list->nr;
	chain.at = 0;
	chain.context = 0;
	chain.cookie = 0;
	chain.is_deferred = false;
	chain.is_user = false;
	return chain;
}

/* The next address; markers and the cookie are passed over, and remembered.  Behind a marker of user space words come
 * from the memory of a process: one that looks like the deferred marker is an address there.  Returns 1, 0 at the end,
 * -EBADMSG for a deferred marker without a cookie behind it (chain->at - 1 is its place). */
PERFRING_INLINE int perfring_callchain_next(struct perfring_callchain *chain, struct perfring_frame *frame)
{
	while (chain->at < chain->nr) {
		uint64_t word = chain->words[chain->at++];
		bool is_deferred = word == (uint64_t)(int64_t)PERFRING_CONTEXT_USER_DEFERRED;

		if (PERFRING_LIKELY(!perfring_list_is_marker(word)) || (is_deferred && chain->is_user)) {
			frame->ip = word;
			frame->context = chain->context;
			return 1;
		}
		chain->context = word;
		chain->is_user = chain->is_user || perfring_list_is_user(word);
		if (!is_deferred)
			continue;
		if (chain->at == chain->nr)
			return -EBADMSG;
		chain->cookie = chain->words[chain->at++];
		chain->is_deferred = true;
	}
	return 0;
}

/* Samples whose user callchain is deferred (their last two words are marker and cookie, and no user marker stands in
 * front), waiting for the CALLCHAIN_DEFERRED record of their thread and cookie.  Put every item of a stream in; what
 * comes out is every item but the CALLCHAIN_DEFERRED records that were joined:
 *
 *     while (perfring_session_next(session, &item) == 1) {
 *             if (perfring_deferral_put(deferral, &item) == 1)
 *                     use(&item);                              not deferred: as it came
 *             while (perfring_deferral_next(deferral, &whole) == 1)
 *                     use(&whole);                             completed, in the order in which they came
 *     }
 *     perfring_deferral_flush(deferral);                       and next, for those whose rest never came
 *
 * A completed sample is a record of its own in which the deferred words stand in place of marker and cookie, behind one
 * USER marker.  It keeps its time, so it comes out late, and its format, which must live as long.  A deferred record
 * whose format has no TID or no trailer is matched by its cookie alone.  What is ready but not taken out is kept beyond
 * `most`.  What comes out can be far larger than what waits, as one rest serves many samples: a sample of 40 bytes may
 * come out as one of 64 KiB. Context: any thread, one at a time; not signal handlers. */
struct perfring_deferral;

/* most: bytes of samples that may wait, with what keeps them (0: 1 MiB); beyond that the oldest comes out incomplete.
 * Returns 0 or -ENOMEM. */
PERFRING_API int perfring_deferral_open(struct perfring_deferral **deferral, size_t most);
PERFRING_API void perfring_deferral_close(struct perfring_deferral *deferral);

/* Returns 1 when the item is not the deferral's business (or cannot be decoded, or no thread is known: TID), 0 when it
 * was taken, -ENOMEM when it should have been. */
PERFRING_API int perfring_deferral_put(struct perfring_deferral *deferral, const struct perfring_item *item);

/* The next sample that is complete, or was given up.  Returns 1, 0.  Valid until: the next call of put, next or
 * flush. */
PERFRING_API int perfring_deferral_next(struct perfring_deferral *deferral, struct perfring_item *item);

/* Gives up on all that wait. */
PERFRING_API void perfring_deferral_flush(struct perfring_deferral *deferral);

/* Samples that came out incomplete: flushed, squeezed out, or too long with their rest; and deferred records that no
 * sample waited for. */
PERFRING_API uint64_t perfring_deferral_incomplete(const struct perfring_deferral *deferral);
PERFRING_API uint64_t perfring_deferral_unmatched(const struct perfring_deferral *deferral);

PERFRING_END

#endif
