/* session.h - many rings of perf_event fds as one stream: items in time order, or whole spans for recording.
 *
 *     perfring_session_open(&session, 0);
 *     perfring_session_add(session, &attr, target);            opens, maps, redirects: one ring for each CPU
 *     perfring_session_enable(session);
 *     while (perfring_session_wait(session, 100) >= 0) {
 *             while (perfring_session_next(session, &item) == 1)
 *                     use(&item);                              valid until perfring_session_return
 *             perfring_session_return(session);                one return for every ring
 *     }
 *
 * Order.  Each wait looks at all rings once: a round.  An item is handed out one round after it was first seen, when
 * every older one must have been seen too: a record that a later round finds was published after an earlier look at
 * its ring, and took its time stamp just before.  Records of one ring are only nearly in order (an NMI between a time
 * stamp and its record), so each ring's next 64 are kept sorted.  What comes out late all the same is counted, and
 * handed out.  Nothing is copied: what is held back lies in the rings, so memory is bounded.  A record waits for at
 * most one round more; a wait that would hold records back ends after 10 ms.
 *
 * Rings that overwrite are not waited for but copied (perfring_session_snapshot); AUX bytes come piece by piece
 * (perfring_session_next_aux); several sessions are one stream by merge.h.  To count alone takes no ring:
 * count.h.
 *
 * A session is used by one thread at a time.  No thread, no signal handler, no callback is installed.
 */
#ifndef PERFRING_SESSION_H
#define PERFRING_SESSION_H

#include <sys/uio.h>
#include <perfring/aux.h>
#include <perfring/event.h>
#include <perfring/format.h>
#include <perfring/reader.h>
#include <perfring/ring.h>
#include <perfring/target.h>

PERFRING_BEGIN

struct perfring_session;

/* What went by, of all rings or of one.  Loss is a result: none of these is ever reset. */
struct perfring_totals {
	uint64_t records;
	uint64_t samples;
	uint64_t bytes;
	uint64_t lost;         /* records that found a ring full: the sum of LOST */
	uint64_t lost_samples; /* the sum of LOST_SAMPLES */
	uint64_t throttles;
	uint64_t unthrottles;
	uint64_t late; /* items handed out after a younger one */
	/* Records whose id is in no attr: handed out without a format.  Linux 6.18 writes such: of two software events
	 * that sample one occurrence, be it for two processes, both samples carry one's id. */
	uint64_t strangers;
	uint64_t corrupt;    /* times a ring was found corrupt */
	uint64_t skipped;    /* bytes given up there */
	uint64_t first_time; /* of the samples; 0: none had one, or in spans not all have it at the same place */
	uint64_t last_time;
	uint64_t reserved[3];
};

/* pages: data pages of each ring, a power of two; 0 means 128, perf's default. */
PERFRING_API int perfring_session_open(struct perfring_session **session, uint32_t pages);

/* How a session makes its rings and what it may do to open everything; before the first add. */
enum perfring_session_option {
	PERFRING_SESSION_SHRINK = 1,      /* rings become smaller, down to a page, before the mlock budget refuses them; what was
					     mapped before is mapped again alike: all rings have one size */
	PERFRING_SESSION_RAISE_FILES = 2, /* the soft RLIMIT_NOFILE is raised as far as the hard one permits */
	PERFRING_SESSION_BACKWARD = 4,    /* every event gets write_backward, its rings overwrite, and are read by
					     perfring_session_snapshot alone */
};

/* options: of perfring_session_option.  allowed: of perfring_fallback, what may be given up so that an event opens; the
 * formats are those of what was opened.  Returns 0, or -EBUSY after the first add. */
PERFRING_API int perfring_session_configure(struct perfring_session *session, uint32_t options, uint64_t allowed);

/* What was given up of event number `event` (perfring_fallback), and the attr that was opened. */
PERFRING_API uint64_t perfring_session_given_up(const struct perfring_session *session, uint32_t event);
PERFRING_API const struct perf_event_attr *perfring_session_attr(const struct perfring_session *session,
								 uint32_t event);

/* Data pages of its rings: as asked, or what shrinking left. */
PERFRING_API uint32_t perfring_session_pages(const struct perfring_session *session);

/* Closes every fd and ring. */
PERFRING_API void perfring_session_close(struct perfring_session *session);

/* Opens the event for each thread and CPU of the target.  The first event on a CPU (or, without CPUs, on a thread) maps
 * the ring, the others write into it by SET_OUTPUT.  All events of a session need TIME and, when there are several,
 * IDENTIFIER in sample_type, sample_id_all and the same clock, and not write_backward: else -EINVAL.  Threads that die
 * before they are opened are passed over.  Returns the event's number, from 0; on -errno nothing of this event stays
 * open and perfring_session_refusal tells why. */
PERFRING_API int perfring_session_add(struct perfring_session *session, const struct perf_event_attr *attr,
				      const struct perfring_target *target);

/* The same for a group: attrs[0] leads, the others are its siblings on each thread and CPU, and start and stop with it,
 * whatever their own `disabled` and enable_on_exec say.  Returns the leader's number; the siblings' follow it. */
PERFRING_API int perfring_session_add_group(struct perfring_session *session, const struct perf_event_attr *const *attrs,
					    uint32_t count, const struct perfring_target *target);

/* Looks again: opens every event on threads of observed processes (added as processes, without inherit) that were born
 * since, and on CPUs that came (back) online when the target was all CPUs.  Closes fds of threads that are gone, and
 * their rings once they are read; their ids and totals stay.  A CPU's fds stay open when it goes offline, and count
 * nothing any more; one that came back before anybody looked goes unnoticed.  Returns how many fds it opened, or -errno
 * with a refusal; what could be opened stays open.  After a return. */
PERFRING_API int perfring_session_update(struct perfring_session *session);

/* ---- rings that are not of kernel events: our own writers', another process's, mapped by hand ---- */

/* Says how records look that no fd of this session makes: those of `attr`, which carry one of `ids`.  The rules for the
 * attr are those of perfring_session_add, and its clock is the writers'.  Returns the event's number; -EINVAL, -EEXIST
 * (an id that is known), -ENOMEM: perfring_session_refusal tells why. */
PERFRING_API int perfring_session_describe(struct perfring_session *session, const struct perf_event_attr *attr,
					   const uint64_t *ids, uint32_t count);

/* Makes `ring` one of the session's: from its data_tail on it has no other reader.  The ring stays the caller's.  The session
 * has a handle of its own (perfring_ring_share): when the caller closes the ring, or its set frees it because it is drained,
 * its memory stays until it is removed here, or the session is closed.  Of a kernel's ring that was mapped by hand, and of
 * memory that was the caller's (perfring_ring_wrap), there is no such handle: they stay mapped until then.
 *
 * flags: 0 trusts every process that may write into the ring to leave a record alone once it is published, as the kernel
 * does.  Items and spans lie in the ring then.  The session itself reads each header once, and nothing beyond what that
 * header says; but what it hands out may be another record by the time it is decoded, of another size.
 * PERFRING_READER_COPY trusts nobody: each record is copied into memory of the session's before anything looks at it, and
 * items and spans lie there, with the headers that were checked.  It takes as much memory again as the ring has data, and
 * 64 KiB.  Such a ring can have no AUX area.
 *
 * wake_fd: the eventfd (EFD_NONBLOCK) that its writer was given, which rings may share, so that a crossing (wakeup.h) ends
 * a wait; -1, or when it has hung up: it is looked at every 10 ms of a wait.  A writer that is held up between its time
 * stamp and its commit makes late records.  For none to be late because its ring is new, walk the set (set.h) before each
 * wait.  Not between the first next and the return of a round.  Returns the ring's number, which may be that of one
 * removed; -EINVAL (no data, or read-only, or one of the two, ring and session, is BACKWARD alone; another flag), -ENOMEM,
 * or what epoll_ctl said. */
PERFRING_API int perfring_session_add_ring(struct perfring_session *session, const struct perfring_ring *ring,
					   int wake_fd, uint32_t flags);

/* Takes it out again; its totals stay in the session's.  Returns 0; -EINVAL (no ring that was added); -EBUSY (records of
 * it are seen and not handed out, or handed out and not returned: go on reading).  After a return. */
PERFRING_API int perfring_session_remove_ring(struct perfring_session *session, uint32_t ring);

/* Why the last add failed and what to change.  Valid until the next add; "" if it did not fail. */
PERFRING_API const char *perfring_session_refusal(const struct perfring_session *session);

/* Starts and stops every event.  Events opened with disabled = 0 or enable_on_exec need no enable. */
PERFRING_API int perfring_session_enable(struct perfring_session *session);
PERFRING_API int perfring_session_disable(struct perfring_session *session);

/* An epoll fd that is readable when a ring has reached its watermark: for an event loop of your own, which then calls
 * perfring_session_wait with 0 (and may get 0 from it: a poll of this fd takes the wakeup).  Rings that were added wake
 * it from a wait with 0 on, until another wait.  Valid until close. */
PERFRING_API int perfring_session_fd(const struct perfring_session *session);

/* Waits up to timeout_ms (-1: no limit) and begins a round.  Returns 1 when a ring woke us, 0 after the time (at once
 * when the session is over), -EINTR after a signal: there may be records in every case. */
PERFRING_API int perfring_session_wait(struct perfring_session *session, int timeout_ms);

/* Whether every observed thread is gone, with its descendants: nothing more will come.  Never while rings are in it that
 * were added: who writes into them is not known here. */
PERFRING_API bool perfring_session_is_over(const struct perfring_session *session);

/* Begins the last round: everything that is in the rings now is handed out. */
PERFRING_API void perfring_session_flush(struct perfring_session *session);

/* The next item of the round, in time order.  Returns 1, 0 when the round is done, or -EBADMSG once for a ring found
 * corrupt: its fault is perfring_session_fault, its unread bytes are given up, and the next call goes on.
 * Valid until: perfring_session_return. */
PERFRING_API int perfring_session_next(struct perfring_session *session, struct perfring_item *item);

/* One ring's unread records as they lie, whole records, in at most two pieces. */
struct perfring_span {
	struct iovec pieces[2];
	uint32_t count; /* of pieces */
	uint32_t ring;
	uint64_t size; /* of both */
	uint64_t records;
	uint64_t samples; /* of the records */
};

/* Instead of next: the next ring's span in this round; a ring comes once, one of ours again behind each filler.  What
 * the records say of loss is counted as it passes, nothing is held back.  Returns 1, 0 when the round is done, -EBADMSG
 * as above.  A session is read by next or by next_span, not by both.  Valid until: perfring_session_return. */
PERFRING_API int perfring_session_next_span(struct perfring_session *session, struct perfring_span *span);

/* BACKWARD: pauses every ring, copies what they hold, lets them go on, and begins a round of it: next and next_span hand
 * out what is in the copies (next: in time order; spans: newest first in memory, as the kernel wrote them), until
 * return.  What is written between pause and resume counts as lost at the events.  Some milliseconds go by meanwhile: a
 * grace period (membarrier), behind which nobody is in the middle of a record any more; where the system refuses one,
 * the oldest 64 KiB, or half of a smaller ring, are left out instead.  Rings of our own are not paused.  Snapshots may
 * hand out a record again; totals count each once.  Returns 0; -EINVAL (no ring that overwrites); or -errno of the first
 * ring that failed, -EBADMSG with perfring_session_fault; the others' copies are there, and every ring goes on. */
PERFRING_API int perfring_session_snapshot(struct perfring_session *session);

/* All that was handed out is done with: gives the rings their room back. */
PERFRING_API void perfring_session_return(struct perfring_session *session);

/* Where the last -EBADMSG was: ring and position in it. */
PERFRING_API struct perfring_fault perfring_session_fault(const struct perfring_session *session, uint32_t *ring);

/* Formats by event number and by id.  Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_session_formats(const struct perfring_session *session);

PERFRING_API void perfring_session_totals(const struct perfring_session *session, struct perfring_totals *totals);

PERFRING_API uint32_t perfring_session_ring_count(const struct perfring_session *session);

/* Of one ring. */
PERFRING_API int perfring_session_ring_totals(const struct perfring_session *session, uint32_t ring,
					      struct perfring_totals *totals);

/* Of one event, over all rings: what carried its id.  `lost` is FORMAT_LOST of its fds where read_format has it (read
 * here, by read(2)), for LOST records name no loser; strangers, corrupt and skipped are 0.  Returns 0 or -EINVAL. */
PERFRING_API int perfring_session_event_totals(const struct perfring_session *session, uint32_t event,
					       struct perfring_totals *totals);

/* ---- AUX areas ---- */

/* Maps an AUX area of `pages` pages (a power of two) at every ring whose event has one (Intel PT, SPE, CoreSight ...).
 * snapshot: overwriting, read-only mapping; perfring_session_disable before its pieces are asked for.  Returns how many;
 * -EOPNOTSUPP: no PMU of the session has AUX; -EINVAL: not a power of two, or BACKWARD (the area is described in the
 * control page, which is read-only there); what mmap said. */
PERFRING_API int perfring_session_map_aux(struct perfring_session *session, uint32_t pages, bool snapshot);

/* The same for one ring that was added, without COPY: `aux` (aux.h) is the caller's, of that ring, and stays until it is
 * removed.  To be enabled again its producer must produce by this very one.  Returns 0, -EINVAL, -EEXIST, -ENOMEM. */
PERFRING_API int perfring_session_add_aux(struct perfring_session *session, uint32_t ring,
					  struct perfring_aux_area *aux);

struct perfring_aux_piece {
	const unsigned char *bytes;
	uint64_t size;
	uint64_t position; /* of bytes[0], free-running: what AUX records name */
	uint32_t ring;
	uint32_t padding;
};

/* The next piece of the round; one that runs over the end of a kernel's area comes as two.  Returns 1, 0 when there is
 * no more, -EBADMSG once for an area whose positions cannot be right (perfring_session_fault).  A producer that stopped
 * (TRUNCATED, no room) is enabled again by perfring_session_return, once its room is given back.  Valid until:
 * perfring_session_return. */
PERFRING_API int perfring_session_next_aux(struct perfring_session *session, struct perfring_aux_piece *piece);

/* ---- BPF output ---- */

/* Puts the fds of BPF_OUTPUT event `event`, one a CPU, into the BPF_MAP_TYPE_PERF_EVENT_ARRAY `map_fd` at the index of
 * their CPU, where bpf_perf_event_output finds them.  The payload is each sample's RAW.  Returns 0, -EINVAL (the event
 * is not BPF_OUTPUT, or was opened for threads), or -errno of bpf(2). */
PERFRING_API int perfring_session_put_map(struct perfring_session *session, uint32_t event, int map_fd);

/* ---- fds ---- */

/* One fd of the session. */
struct perfring_session_event {
	int fd;      /* -1: its thread is gone, and perfring_session_update has closed it */
	int32_t tid; /* -1: all */
	int32_t cpu; /* -1: any */
	uint32_t event;
	uint32_t ring;
	uint32_t padding;
	uint64_t id;
};

/* The i-th fd, from 0.  Returns 1, or 0 behind the last.  (For ids in a file, read(2), FORMAT_LOST, ioctls.) */
PERFRING_API int perfring_session_event_at(const struct perfring_session *session, uint32_t i,
					   struct perfring_session_event *opened);

PERFRING_END

#endif
