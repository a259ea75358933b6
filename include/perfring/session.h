/* session.h - many rings of perf_event fds as one stream: items in time order, or spans (unread bytes of one ring) for
 * recording.  docs/tutorial.md begins with it.
 *
 *     perfring_session_open(&session, 0);
 *     perfring_session_add(session, &attr, target);            opens, maps, redirects: one ring for each CPU
 *     perfring_session_enable(session);
 *     while (!perfring_session_is_over(session) && perfring_session_wait(session, 100) >= 0) {    ends at a signal, too
 *             while (perfring_session_next(session, &item) == 1)
 *                     use(&item);                              valid until perfring_session_return
 *             perfring_session_return(session);                one return for every ring
 *     }
 *     perfring_session_flush(session);                         the last round: next and return as above
 *
 * Order.  A round begins with each wait, which looks at all rings once.  A record is returned one round after it was first
 * seen.  Normally every earlier record has been seen by then, because a record is published shortly after its time stamp is
 * taken.  An exception: a record's time stamp is taken before its space is reserved, and an interrupt or a hypervisor may delay
 * the writer in between; in rounds shorter than a millisecond this happens.  Such late items are counted and returned.  Records
 * of one ring are nearly in order (an NMI can come between a time stamp and its record), so the next 64 of each ring are
 * sorted.  Records wait in the rings, not in copies (but for those of docs/abi.md 5), so memory is
 * bounded.  If records are held back, a wait ends after 10 ms.
 *
 * Other ways to read: perfring_session_snapshot (rings that overwrite), perfring_session_next_aux (AUX areas), merge.h
 * (several sessions as one stream), count.h (counts without a ring).
 *
 * Context: one thread at a time for each session, not signal handlers.  It starts no thread, installs no signal handler, and calls no
 * function of the caller.  Fds and rings are the session's, and valid until close; arguments are copied, except sets, AUX areas and
 * memory that cannot be shared (perfring_session_add_ring).
 * fork: the child must not use the session: kernel rings are not mapped there.
 */
#ifndef PERFRING_SESSION_H
#define PERFRING_SESSION_H

#include <sys/uio.h>
#include <perfring/aux.h>
#include <perfring/event.h>
#include <perfring/format.h>
#include <perfring/reader.h>
#include <perfring/ring.h>
#include <perfring/rows.h>
#include <perfring/target.h>

PERFRING_BEGIN

struct perfring_session;
struct perfring_set;

/* Totals of all rings, of one ring, or of one event.  They are never reset. */
struct perfring_totals {
	uint64_t records;
	uint64_t samples;
	uint64_t bytes;
	uint64_t lost;         /* records that did not fit into a ring: the sum of LOST */
	uint64_t lost_samples; /* the sum of LOST_SAMPLES */
	uint64_t throttles;
	uint64_t unthrottles;
	uint64_t late; /* items returned after an item with a later time */
	/* Records with an id of no attr, which are returned without a format.  Linux 6.18 writes such records: when two
	 * software events, also of two processes, sample one occurrence, both samples have the same id. */
	uint64_t unknown_ids;
	uint64_t corrupt;    /* how often a ring was found corrupt */
	uint64_t skipped;    /* bytes of rings that were dropped then */
	uint64_t first_time; /* of the samples; 0: none yet, or spans of samples with TIME at different offsets */
	uint64_t last_time;
	uint64_t aux;            /* AUX records */
	uint64_t aux_truncated;  /* AUX records with TRUNCATED: bytes were lost, because the area was full */
	uint32_t aux_partial;    /* with PARTIAL: there are gaps */
	uint32_t aux_collisions; /* with COLLISION: samples overlapped */
};

/* pages: data pages of each ring, a power of two; 0 for 128, perf's default.  Returns 0, -EINVAL, -ENOMEM, -errno of
 * epoll_create. */
PERFRING_API int perfring_session_open(struct perfring_session **session, uint32_t pages);

/* Options, set before the first add. */
enum perfring_session_option {
	PERFRING_SESSION_SHRINK = 1,      /* use smaller rings, down to one page, if the mlock budget is too small; all
					     rings of a session have one size, so rings that exist are mapped again, smaller */
	PERFRING_SESSION_RAISE_FILES = 2, /* raise the soft RLIMIT_NOFILE up to the hard limit */
	PERFRING_SESSION_BACKWARD = 4,    /* set write_backward on every event: rings overwrite, and are read by
					     perfring_session_snapshot only; forward rings that overwrite may be added */
};

/* options: bits of perfring_session_option.  allowed: bits of perfring_fallback, features of an attr that may be dropped so
 * that the event opens; records then have the format of the attr that was opened.  Returns 0, or -EBUSY after the first add. */
PERFRING_API int perfring_session_configure(struct perfring_session *session, uint32_t options, uint64_t allowed);

/* The features that were dropped of event `event` (bits of perfring_fallback), and the attr that was opened; NULL: no such event.
 * Valid until close. */
PERFRING_API uint64_t perfring_session_given_up(const struct perfring_session *session, uint32_t event);
PERFRING_API const struct perf_event_attr *perfring_session_attr(const struct perfring_session *session,
								 uint32_t event);

/* Data pages of each ring, after shrinking. */
PERFRING_API uint32_t perfring_session_pages(const struct perfring_session *session);

/* Closes every fd and ring. */
PERFRING_API void perfring_session_close(struct perfring_session *session);

/* Opens the event for each thread and CPU of the target.  The first event on a CPU (without CPUs: on a thread) maps the ring;
 * the others write into it by SET_OUTPUT.  An event needs TIME in sample_type, and sample_id_all.  With several events, each
 * also needs IDENTIFIER.  All use one clock.  write_backward must be 0.  Else -EINVAL.  Threads that exit meanwhile are
 * skipped.  Returns the event's number, from 0; or -errno: nothing of this event stays open, and perfring_session_refusal
 * explains it. */
PERFRING_API int perfring_session_add(struct perfring_session *session, const struct perf_event_attr *attr,
				      const struct perfring_target *target);

/* The same for a group: attrs[0] is the leader.  Siblings start and stop with the leader; their own `disabled` and
 * enable_on_exec are ignored.  Returns the leader's number; the siblings have the next numbers. */
PERFRING_API int perfring_session_add_group(struct perfring_session *session, const struct perf_event_attr *const *attrs,
					    uint32_t count, const struct perfring_target *target);

/* Opens every event on new threads of processes added by perfring_target_add_process, if the event does not inherit, and, if
 * the target was all CPUs, on CPUs that came online.  Closes the fds of threads that are gone, and their rings once these are
 * read; ids and totals stay.  The fds of a CPU that goes offline stay open and count no more; a CPU that was offline between
 * two calls is not noticed.  Call it after perfring_session_return.  Returns the number of fds it opened, or -errno with a
 * refusal; fds opened before that stay open. */
PERFRING_EXPERIMENTAL int perfring_session_update(struct perfring_session *session);

/* ---- rings of other sources: of perfring's writers, of another process, mapped by the caller ---- */

/* Describes records that come from no fd of this session: records with one of `ids` are those of `attr`.  The rules for the
 * attr are those of perfring_session_add; its clock is that of the writers.  Returns the event's number; -EINVAL, -EEXIST (a
 * known id), -ENOMEM, explained by perfring_session_refusal. */
PERFRING_API int perfring_session_describe(struct perfring_session *session, const struct perf_event_attr *attr,
					   const uint64_t *ids, uint32_t count);

/* The same with the attr and id that the ring's creator stored in it (perfring_ring_attr), which are not trusted.  Returns as above;
 * -ENODATA (it has none); -EEXIST (the id is known, perhaps by another ring). */
PERFRING_API int perfring_session_describe_ring(struct perfring_session *session, const struct perfring_ring *ring);

/* Adds a ring, which must have no other reader.  The session reads from its data_tail on.
 *
 * lifetime   The session shares the ring's memory (perfring_ring_share): it stays until perfring_session_remove_ring or close,
 *            also if the caller closes the ring or its set frees it.  A kernel ring that the caller mapped, and memory of the
 *            caller (perfring_ring_wrap), cannot be shared: they must stay mapped until then.
 * flags      0: trusts every writer not to change a published record, as the kernel does not.  Items and spans are in the
 *            ring.  The session reads each header once and nothing beyond it, but a writer that breaks the rule can change
 *            the record, and its size, before the caller decodes it.
 *            PERFRING_READER_COPY: trusts no writer.  Each record is copied before it is checked; items and spans are in the
 *            copy.  Takes the ring's data size and 64 KiB of memory.  Excludes an AUX area.
 * wake_fd    The eventfd (EFD_NONBLOCK) of the ring's writer, which rings may share; a crossing (wakeup.h) ends a wait.  -1,
 *            or an fd that has hung up: a wait looks at the ring every 10 ms.
 *
 * A writer that is delayed between its time stamp and its commit makes late records.  Call it after perfring_session_return.
 * Returns the ring's number, which may be that of a removed ring; -EINVAL (no data area, read-only; backward or overwriting,
 * and the session not BACKWARD, or the reverse; unknown flag), -ENOMEM, -errno of epoll_ctl. */
PERFRING_API int perfring_session_add_ring(struct perfring_session *session, const struct perfring_ring *ring,
					   int wake_fd, uint32_t flags);

/* Removes a ring that was added; the session's totals keep its share.  Call it after perfring_session_return.  Returns 0;
 * -EINVAL (not such a ring); -EBUSY (records were seen and not yet returned to the ring: go on reading). */
PERFRING_API int perfring_session_remove_ring(struct perfring_session *session, uint32_t ring);

/* Adds the rings of a set (set.h; perfring_soft_rings), now and later.  Each wait and flush adds those of threads that have
 * joined since, describes their event if the ring has an attr that is not known, and removes those that are drained.  The session
 * is the set's only reader, and uses perfring_set_ring.data.  Rings that overwrite cannot be added.  The set must stay open until
 * perfring_session_remove_set or perfring_session_close; then another session may read it, from what was returned on.  wake_fd, flags: as above, for each ring.  A ring that cannot be added
 * makes wait return that error; the next wait tries again.  Returns 0; -EINVAL (no set, unknown flag, a BACKWARD session);
 * -EEXIST; -ENOMEM. */
PERFRING_API int perfring_session_add_set(struct perfring_session *session, struct perfring_set *set, int wake_fd,
					  uint32_t flags);

/* Removes a set and its rings.  Records that no round has seen are not returned any more: flush first.  Call it after
 * perfring_session_return.  Returns 0 or -EINVAL. */
PERFRING_API int perfring_session_remove_set(struct perfring_session *session, struct perfring_set *set);

/* The time now, by the clock of the items' times, for comparison with them.  Returns 0; -EINVAL (no event yet); -EOPNOTSUPP:
 * events without a clockid have the kernel's own clock, which user space cannot read here (no user_time_zero); -EAGAIN: the
 * kernel kept changing the clock's parameters: call again. */
PERFRING_API int perfring_session_now(const struct perfring_session *session, uint64_t *time);

/* Why the last add, describe or update failed, and what to change; "" if it did not fail.  Valid until the next of them. */
PERFRING_API const char *perfring_session_refusal(const struct perfring_session *session);

/* Starts and stops every event; tries all.  Events opened with disabled = 0 or enable_on_exec need no enable.  Returns 0 or the first
 * -errno of ioctl(2). */
PERFRING_API int perfring_session_enable(struct perfring_session *session);
PERFRING_API int perfring_session_disable(struct perfring_session *session);

/* An epoll fd that is readable when a ring has reached its watermark, for the caller's event loop.  Then call
 * perfring_session_wait with timeout 0, which may return 0, because polling this fd consumes the wakeup.  Added rings wake
 * the fd only between a wait with timeout 0 and the next wait.  Valid until close. */
PERFRING_API int perfring_session_fd(const struct perfring_session *session);

/* Waits up to timeout_ms (-1: no limit) and begins a round.  Rings without a wake_fd are looked at every 10 ms.  Returns 1 if
 * a ring woke it; 0 after the time, with records of a ring without a wake_fd, or at once if the session is over; -EINTR after
 * a signal; -errno of adding a ring of a set.  The round has begun in each case, and there may be records. */
PERFRING_API int perfring_session_wait(struct perfring_session *session, int timeout_ms);

/* Whether all observed threads and their descendants have exited, so that no record will follow.  false while the session has
 * added rings or sets, whose writers it does not know. */
PERFRING_API bool perfring_session_is_over(const struct perfring_session *session);

/* Begins the last round, which returns all records that are in the rings now. */
PERFRING_API void perfring_session_flush(struct perfring_session *session);

/* The next item of the round, in time order.  Returns 1; 0 at the end of the round; -EBADMSG once for a corrupt ring, with
 * perfring_session_fault: its unread bytes are dropped, and the next call goes on.  Valid until perfring_session_return. */
PERFRING_API int perfring_session_next(struct perfring_session *session, struct perfring_item *item);

/* Adds rows (rows.h) of the next items of the round, as perfring_file_fill does of a file's.  Returns 1: rows are full
 * (item->record NULL), or *item is one of rows->stops; 0 at the end of the round; -ENOSPC: rows are full already; -EBADMSG as
 * perfring_session_next, item->record being NULL, or for a damaged sample, *item: then `at` of perfring_session_fault counts from its
 * beginning, and the ring is UINT32_MAX.  Rows are copies: they stay after perfring_session_return. */
PERFRING_API int perfring_session_fill(struct perfring_session *session, struct perfring_rows *rows,
				       struct perfring_item *item);

/* The unread records of one ring, in ring order, in at most two pieces. */
struct perfring_span {
	struct iovec pieces[2];
	uint32_t count; /* of pieces */
	uint32_t ring;
	uint64_t size; /* of both */
	uint64_t records;
	uint64_t samples; /* of the records */
};

/* The span of the next ring in this round.  Each ring is returned once; but a ring of perfring's again after each filler
 * record, a kernel ring again at each KSYMBOL, BPF_EVENT and TEXT_POKE, whose trailer may have to be moved to its end (docs/abi.md 5), and with
 * PERFRING_READER_COPY after a record that reaches the ring's end.  Losses are counted, and no record is held
 * back.  A session is read by next or by next_span, not by both.  Returns 1; 0 at the end of the round; -EBADMSG as
 * perfring_session_next.  Valid until perfring_session_return. */
PERFRING_API int perfring_session_next_span(struct perfring_session *session, struct perfring_span *span);

/* Copies all rings of a BACKWARD session and begins a round of the copies: next returns their records in time order,
 * next_span newest first, as the kernel wrote them; of forward rings oldest first.
 *
 * Pauses kernel rings until a membarrier (some milliseconds) shows that no record is being written; their events count the
 * records lost meanwhile.  If the system refuses membarrier, the oldest 64 KiB, or half of a smaller ring, are left out.  Rings
 * of perfring's are not paused.  Two snapshots may return one record; totals count it once.  Returns 0; -EINVAL (no ring
 * overwrites); or -errno of the first ring that failed (-EBADMSG with perfring_session_fault): copies of the others can be
 * read, and all rings are written again. */
PERFRING_API int perfring_session_snapshot(struct perfring_session *session);

/* Returns the space of all items and spans to the rings; they are no longer valid. */
PERFRING_API void perfring_session_return(struct perfring_session *session);

/* The place of the last -EBADMSG: *ring and the position in it. */
PERFRING_API struct perfring_fault perfring_session_fault(const struct perfring_session *session, uint32_t *ring);

/* Formats by event number and by id.  Valid until close. */
PERFRING_API const struct perfring_format_set *perfring_session_formats(const struct perfring_session *session);

/* The totals so far, of all rings. */
PERFRING_API void perfring_session_totals(const struct perfring_session *session, struct perfring_totals *totals);

/* One more than the highest number of a ring. */
PERFRING_API uint32_t perfring_session_ring_count(const struct perfring_session *session);

/* Totals of one ring.  Returns 0 or -EINVAL. */
PERFRING_EXPERIMENTAL int perfring_session_ring_totals(const struct perfring_session *session, uint32_t ring,
					      struct perfring_totals *totals);

/* Totals of the records with the ids of one event, over all rings.  `lost` is the sum of FORMAT_LOST of its fds, read here,
 * if read_format has it: LOST records do not name an event.  unknown_ids, corrupt and skipped are 0.  Returns 0 or -EINVAL. */
PERFRING_EXPERIMENTAL int perfring_session_event_totals(const struct perfring_session *session, uint32_t event,
					       struct perfring_totals *totals);

/* ---- AUX areas ---- */

/* Maps an AUX area of `pages` pages (a power of two) at each ring whose event has one (Intel PT, SPE, CoreSight ...).  snapshot:
 * an overwriting, read-only mapping; call perfring_session_disable before perfring_session_next_aux.  Of a PMU whose positions do
 * not count laps it returns all of an area that has been filled, each time.  Returns the number of areas; -EOPNOTSUPP (no PMU of
 * the session has AUX); -EINVAL (not a power of two, or a BACKWARD session, whose control pages are read-only); -errno of
 * mmap. */
PERFRING_API int perfring_session_map_aux(struct perfring_session *session, uint32_t pages, bool snapshot);

/* Adds the AUX area of an added ring without PERFRING_READER_COPY.  `aux` (aux.h) is the caller's, and must stay open until
 * the ring is removed.  Only a producer on this same object is enabled again by perfring_session_return.  Returns 0, -EINVAL,
 * -EEXIST, -ENOMEM. */
PERFRING_EXPERIMENTAL int perfring_session_add_aux(struct perfring_session *session, uint32_t ring,
					  struct perfring_aux_area *aux);

struct perfring_aux_piece {
	const unsigned char *bytes;
	uint64_t size;
	uint64_t position; /* of bytes[0], free-running, as in AUX records */
	uint32_t ring;
	uint32_t padding;
};

/* The next piece of AUX bytes in this round; two pieces if it wraps.  Returns 1; 0 at the end; -EBADMSG once for an area with
 * impossible positions (perfring_session_fault).  perfring_session_return enables a producer that stopped because the area
 * was full (TRUNCATED).  Valid until perfring_session_return. */
PERFRING_API int perfring_session_next_aux(struct perfring_session *session, struct perfring_aux_piece *piece);

/* ---- BPF output ---- */

/* Stores the fds of the BPF_OUTPUT event `event` in the BPF_MAP_TYPE_PERF_EVENT_ARRAY `map_fd`, each at its CPU's index, for
 * bpf_perf_event_output.  The payload is the sample's RAW field.  Returns 0; -EINVAL (no BPF_OUTPUT event, or one of
 * threads); -errno of bpf(2). */
PERFRING_API int perfring_session_put_map(struct perfring_session *session, uint32_t event, int map_fd);

/* ---- fds ---- */

/* One fd of the session. */
struct perfring_session_event {
	int fd;      /* -1: closed by perfring_session_update, because its thread has exited */
	int32_t tid; /* -1: all */
	int32_t cpu; /* -1: any */
	uint32_t event;
	uint32_t ring;
	uint32_t padding;
	uint64_t id;
};

/* The i-th fd, from 0, for ids, read(2) and ioctls.  Returns 1, or 0 after the last. */
PERFRING_API int perfring_session_event_at(const struct perfring_session *session, uint32_t i,
					   struct perfring_session_event *opened);

PERFRING_END

#endif
