/* callchain.h - walking a callchain with its markers, and joining chains that come in two parts (docs/abi.md 5, 6).
 *
 *     struct perfring_callchain chain = perfring_callchain_init(&sample.callchain);
 *     struct perfring_frame frame;
 *
 *     while ((ret = perfring_callchain_next(&chain, &frame)) == 1)
 *             use(frame.ip, frame.context);
 *
 * The words are those of a decoded sample or CALLCHAIN_DEFERRED record, and not trusted: whatever they are,
 * the walk ends, by 0 or -EBADMSG.  Names of the
 * addresses: symbol.h; chains from copies of stacks: stacks.h. */
#ifndef PERFRING_CALLCHAIN_H
#define PERFRING_CALLCHAIN_H

#include <perfring/record.h>
#include <perfring/sample.h>

PERFRING_BEGIN

/* One address of a chain, and the last marker before it: (uint64_t)PERFRING_CONTEXT_USER ...; 0: none.  The walk begins with the
 * innermost.  An address after the
 * first of its context is a return address. */
struct perfring_frame {
	uint64_t ip;
	uint64_t context;
};

/* An iterator, in memory of the caller; nothing to free.  At its end, if is_deferred, the user part comes in a later
 * CALLCHAIN_DEFERRED record with this cookie. */
struct perfring_callchain {
	const perfring_word *words;
	uint64_t nr;
	uint64_t at; /* index of the next word */
	uint64_t context;
	uint64_t cookie;
	bool is_deferred;
	bool is_user; /* a user marker was met: after it a deferred marker is an address */
};

/* Begins a walk.  Valid while the words are.  Context, as of next: any thread, also signal handlers. */
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

/* The next address; markers and the cookie are not returned, but kept in the iterator.  Words after a user marker come from the
 * memory of a process: one with the value of the deferred marker is an address there.  Returns 1; 0 at the end; -EBADMSG for a
 * deferred marker without a cookie (chain->at - 1 is its index). */
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

/* Joins samples whose user callchain is deferred (their last two words are marker and cookie, without a user marker before)
 * with the CALLCHAIN_DEFERRED record of their thread and cookie.  Put every item of a stream in; all items come out, but for
 * the CALLCHAIN_DEFERRED records that were joined:
 *
 *     while (perfring_session_next(session, &item) == 1) {
 *             if (perfring_deferral_put(deferral, &item) == 1)
 *                     use(&item);                              not deferred: unchanged
 *             while (perfring_deferral_next(deferral, &whole) == 1)
 *                     use(&whole);                             complete, in the order of putting
 *     }
 *     perfring_deferral_flush(deferral);                       then next, for those that stay incomplete
 *
 * A completed sample is a new record, with a USER marker and the deferred words in place of marker and cookie.  It keeps its
 * format, which must stay valid, and its time: so it comes out late.  A deferred record without TID or without a trailer is
 * matched by its cookie only.  Complete samples that were not taken out do not count for
 * `most` (perfring_deferral_open).  The output can be much
 * larger than what waits, because one deferred record completes many samples: one of 40 bytes may come out with 64 KiB.
 * Context: one thread at a time for each deferral, not signal handlers.  docs/limits.md has the bounds. */
struct perfring_deferral;

/* most: bytes of memory for waiting samples (0: 1 MiB); beyond that the oldest comes out incomplete.  Returns 0 or -ENOMEM. */
PERFRING_API int perfring_deferral_open(struct perfring_deferral **deferral, size_t most);
PERFRING_API void perfring_deferral_close(struct perfring_deferral *deferral);

/* Puts an item, whose record is copied if it is kept.  Returns 1: it is not deferred (or cannot be decoded, or has no TID), use it as
 * it is; 0: it was taken, and next returns it later; -ENOMEM: it was not taken. */
PERFRING_API int perfring_deferral_put(struct perfring_deferral *deferral, const struct perfring_item *item);

/* The next sample that is complete, or stays incomplete.  Returns 1; 0: none now; -EINVAL (deferral is NULL).  Valid until the next
 * put, next or flush. */
PERFRING_API int perfring_deferral_next(struct perfring_deferral *deferral, struct perfring_item *item);

/* Ends the wait of all samples: next returns them incomplete. */
PERFRING_API void perfring_deferral_flush(struct perfring_deferral *deferral);

/* The number of samples that came out incomplete (flushed, beyond `most`, or too long when joined), and of deferred records
 * without a waiting sample. */
PERFRING_API uint64_t perfring_deferral_incomplete(const struct perfring_deferral *deferral);
PERFRING_EXPERIMENTAL uint64_t perfring_deferral_unmatched(const struct perfring_deferral *deferral);

PERFRING_END

#endif
