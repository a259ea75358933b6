/* session_private.h - what the files of session/ share: events, rings and their windows.
 *
 * Only these files, and tests of them, see it.  All of it is used by the session's thread alone; what other processes write is in
 * the rings.
 */
#ifndef PERFRING_SESSION_SESSION_PRIVATE_H
#define PERFRING_SESSION_SESSION_PRIVATE_H

#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/snapshot.h>

#include "event/opener.h"
#include "os/array.h"
#include "os/heap.h"

/* An event.  In no group it is its own leader. */
struct perfring_session_kind {
	struct perfring_opener_event open;
	uint64_t lost; /* FORMAT_LOST of closed fds */
};

/* The arguments of one add, and where its events are open. */
struct perfring_session_request {
	struct perfring_target target;
	uint32_t first; /* the leader's number */
	uint32_t count;
};

/* Hash table u64 -> u32.  Entries are never deleted: callers check that the value is still valid. */
struct perfring_table {
	struct perfring_table_slot {
		uint64_t key;
		uint32_t value; /* + 1; 0: a free slot */
	} * slots;
	uint32_t capacity; /* a power of two */
	uint32_t used;
};

enum {
	PERFRING_WINDOW = 64,
	PERFRING_HOLD_MS = 10,
	PERFRING_CLOCK_PERF = -1
};

/* A record that was seen and is not returned to the caller yet. */
struct perfring_pending {
	uint64_t key;      /* for the order: its time, or the latest time before it */
	uint64_t time;     /* 0: it has none */
	uint64_t position; /* in its ring */
	const struct perf_event_header *record;
	const struct perfring_format *format;
};

/* A corrupt ring is reported once.  Its unread bytes are dropped when none of its records is in use. */
enum perfring_ring_health {
	PERFRING_HEALTH_SOUND,
	PERFRING_HEALTH_FOUND_CORRUPT,
	PERFRING_HEALTH_REPORTED_CORRUPT,
};

/* The eventfd of added rings. */
struct perfring_session_wake {
	int fd;         /* -1: a free place */
	uint32_t rings; /* that use it */
};

struct perfring_session_ring;

/* A set of rings whose threads come and go (session_set.c). */
struct perfring_session_set {
	struct perfring_set *set;
	int wake_fd;
	uint32_t flags;
};

enum {
	PERFRING_NO_WAKE = UINT32_MAX,
	PERFRING_WAKE_MARK = 1u << 31, /* in epoll's data: an index of wakes, not of events */
};

/* The AUX area of a ring.  Invariant: area.returned <= taken <= end <= area.returned + area.size, as distances. */
struct perfring_session_aux {
	struct perfring_aux_area *area; /* &mapped, or the caller's */
	struct perfring_aux_area mapped;
	int fd;         /* of the event; -1: the caller's area */
	uint64_t taken; /* the end of the pieces that were returned to the caller */
	uint64_t end;   /* the round's */
	bool has_run;   /* a producer has written bytes */
	enum perfring_ring_health health;
	struct perfring_fault fault;
};

/* Operations of forward rings (session_order.c) and backward rings (session_snapshot.c). */
struct perfring_session_ring_ops {
	/* Begins a round: finds what is published now.  NULL: a snapshot does. */
	void (*observe)(struct perfring_session *session, struct perfring_session_ring *ring, bool last);
	/* Moves seen records into the window. */
	void (*fill)(struct perfring_session *session, struct perfring_session_ring *ring);
	/* Takes the next span of the round. */
	bool (*take_span)(struct perfring_session *session, struct perfring_session_ring *ring,
			  struct perfring_span *span);
	/* Returns the space of used records. */
	void (*give_back)(struct perfring_session *session, struct perfring_session_ring *ring);
	/* Whether there are seen records whose space is not returned. */
	bool (*has_seen)(const struct perfring_session_ring *ring);
};

extern const struct perfring_session_ring_ops perfring__session_forward, perfring__session_backward;

/* The copy of a backward ring. */
struct perfring_session_snapshot {
	struct perfring_snapshot copy;
	uint64_t counted; /* position up to which the totals count */
	bool is_paused;   /* the kernel does not write; perfring's rings need no pause */
};

/* The copy of a record of a kernel's forward ring (sample/lengthened.h), until its space is returned. */
struct perfring_session_mended {
	struct perfring_session_mended *next;
	uint64_t position;
	unsigned char record[] __attribute__((__aligned__(8)));
};

/* A ring of a session.  Invariants of a forward one:
 *   window[first .. end) is sorted by (key, position); its records are between the last taken one and reader.position;
 *   old = how many of them are before old_end;
 *   reader.returned <= every position in the window < reader.position, as distances. */
struct perfring_session_ring {
	const struct perfring_session_ring_ops *ops;
	struct perfring_ring ring;
	struct perfring_reader reader;
	struct perfring_session_snapshot snapshot; /* backward; positions in the window number records */
	struct perfring_totals totals;
	int32_t tid;
	int32_t cpu;
	int fd;           /* mapped; other events write into its ring */
	uint64_t old_end; /* what is before it was seen in an earlier round */
	uint64_t latest;  /* the latest time of its records so far */
	uint32_t first;
	uint32_t end;
	uint32_t old;
	enum perfring_ring_health state;
	bool added;                       /* by perfring_session_add_ring: `ring` shares the caller's memory */
	bool is_polled;                   /* it cannot end a wait: each wait looks at it every PERFRING_HOLD_MS */
	bool leaving;                     /* its set has freed it: removed when no record is in use */
	uint32_t wake;                    /* an index, or PERFRING_NO_WAKE */
	struct perfring_session_aux *aux; /* or NULL */
	struct perfring_session_mended *mended, *last_mended; /* in the ring's order; NULL: none, then the last is not looked at */
	struct perfring_pending window[2 * PERFRING_WINDOW];
};

struct perfring_session {
	struct perfring_format_set *formats;
	struct perfring_session_event *events; /* one for each fd */
	uint32_t event_count;
	uint32_t event_capacity;
	uint32_t live;                        /* events in the epoll set: one for each thread and CPU, until it hangs up */
	struct perfring_session_kind **kinds; /* NULL: one that was only described */
	uint32_t kind_count;
	uint32_t kind_capacity;
	struct perfring_session_request *requests;
	uint32_t request_count;
	uint32_t request_capacity;
	struct perfring_table ring_of;    /* thread or CPU -> ring */
	struct perfring_table watched_of; /* watch_key -> the event in the epoll set */
	uint32_t options;                 /* PERFRING_SESSION_ */
	uint64_t allowed;                 /* PERFRING_FALLBACK_ */
	enum perfring_session_state {
		PERFRING_SESSION_AS_OPENED,
		PERFRING_SESSION_ENABLED,
		PERFRING_SESSION_DISABLED,
	} state;
	struct perfring_session_ring **rings; /* NULL: a free place */
	uint32_t ring_count;
	uint32_t ring_capacity;
	uint32_t added; /* rings */
	struct perfring_session_wake *wakes;
	uint32_t wake_count;
	uint32_t wake_capacity;
	struct perfring_session_set *sets;
	uint32_t set_count;
	uint32_t set_capacity;
	uint32_t leaving;                     /* rings */
	struct perfring_totals removed;       /* of rings that were removed */
	struct perfring_totals *event_totals; /* by event number */
	uint32_t event_totals_count;
	uint32_t pages;
	int epoll;
	struct perfring_heap_entry *heap; /* of rings with records in the window, by the first key */
	uint32_t heap_count;
	uint32_t heap_capacity;
	uint32_t old_rings;      /* rings with records before old_end */
	uint32_t corrupt_rings;  /* and areas, not reported yet */
	uint32_t span_ring;      /* the ring of the next span */
	bool merging;            /* the windows are filled for this round */
	uint64_t last;           /* the largest key that was taken */
	uint32_t sample_time_at; /* the offset of TIME in every sample; 0: it differs */
	int32_t clock;           /* of every event: its clockid or PERFRING_CLOCK_PERF */
	uint32_t fault_ring;
	struct perfring_fault fault;
	char refusal[1024];
};

/* The next ring from place *i on, or NULL. */
static inline struct perfring_session_ring *perfring__session_ring_from(const struct perfring_session *session,
									uint32_t *i)
{
	while (*i < session->ring_count && !session->rings[*i])
		++*i;
	return *i < session->ring_count ? session->rings[*i] : NULL;
}

static inline struct perfring_session_ring *perfring__session_ring_at(const struct perfring_session *session,
								      uint32_t number)
{
	return number < session->ring_count ? session->rings[number] : NULL;
}

/* session.c */
void perfring__session_close_ring(struct perfring_session_ring *ring);

/* Closes a ring; the session keeps its totals. */
void perfring__session_drop_ring(struct perfring_session *session, uint32_t number);

/* session_set.c: adds rings of threads that have joined a set, removes drained ones.  Returns 0 or the first error; the
 * next walk tries again. */
int perfring__session_walk_sets(struct perfring_session *session);

/* Before close: the sets' rings are no longer this session's, and another one may read them. */
void perfring__session_leave_sets(struct perfring_session *session);

/* session_open.c */

/* Sets the refusal's text.  Returns `error`. */
int __attribute__((format(printf, 3, 4)))
perfring__session_refuse(struct perfring_session *session, int error, const char *format, ...);

/* Makes space in the session's arrays for one more ring.  Returns 0 or -ENOMEM. */
int perfring__session_make_space(struct perfring_session *session);

/* Closes the events and rings, or frees the kinds, after the first `events`, `rings`, `count`. */
void perfring__session_cut_back(struct perfring_session *session, uint32_t events, uint32_t rings);
void perfring__session_cut_kinds(struct perfring_session *session, uint32_t count);

/* Removes an event that has hung up from the epoll set. */
void perfring__session_unwatch(struct perfring_session *session, uint32_t number);

/* perfring_session_update for these online CPUs. */
int perfring__session_update_on(struct perfring_session *session, const struct perfring_numbers *online);

/* session_order.c: begins a round.  last: it returns all records that are in the rings now. */
void perfring__session_look(struct perfring_session *session, bool last);

/* Whether seen records are not returned yet. */
bool perfring__session_holds(const struct perfring_session *session);

static inline bool perfring__session_is_backward(const struct perfring_session *session)
{
	return session->options & PERFRING_SESSION_BACKWARD;
}

/* A ring that is not mapped yet, or NULL.  Close it by perfring__session_close_ring. */
struct perfring_session_ring *perfring__session_new_ring(const struct perfring_session *session);

/* Opens the reader of a mapped ring. */
int perfring__session_open_ring(struct perfring_session_ring *ring, unsigned flags);

/* session_order.c, for merge.c.  The smallest key of the windows; UINT64_MAX: they are empty.  Begins the round. */
uint64_t perfring__session_first_key(struct perfring_session *session);

/* Takes the next item.  *last: the largest key that was taken. */
void perfring__session_take(struct perfring_session *session, struct perfring_item *item, uint64_t *last);

/* Reports one corrupt ring or area: -EBADMSG, or 0 if there is none. */
int perfring__session_report_corrupt(struct perfring_session *session);

void perfring__session_found_corrupt(struct perfring_session *session, struct perfring_session_ring *ring);

/* Counts a record.  header: a checked copy; time: of a sample, 0: unknown. */
void perfring__session_count(struct perfring_session *session, struct perfring_session_ring *ring,
			     const struct perfring_format *format, const struct perf_event_header *record,
			     const struct perf_event_header *header, uint64_t time);

/* FORMAT_LOST of one fd, or 0. */
uint64_t perfring__session_lost_of(const struct perfring_session_event *event, const struct perfring_format *format);

/* Makes space for the event's totals.  Returns 0 or -ENOMEM. */
int perfring__session_count_event(struct perfring_session *session, uint32_t event);

/* Frees the copies of records that begin between two positions of the ring; 0 and UINT64_MAX: all, for positions are multiples
 * of 8. */
void perfring__session_free_mended(struct perfring_session_ring *ring, uint64_t from, uint64_t until);

/* Puts a record into the window.  header: as checked.  is_counted: the totals count it already. */
void perfring__session_put(struct perfring_session *session, struct perfring_session_ring *ring,
			   struct perfring_pending *waiting, const struct perf_event_header *header, bool is_counted);

/* session_aux.c */
void perfring__session_aux_look(struct perfring_session *session, struct perfring_session_ring *ring);
void perfring__session_aux_return(struct perfring_session *session, struct perfring_session_ring *ring);
bool perfring__session_aux_is_out(const struct perfring_session_ring *ring);
void perfring__session_aux_close(struct perfring_session_ring *ring);

/* session.c, for merge.c: is_live: whether records may still come; arm: arms (or disarms) rings before a sleep on the session's fd;
 * is_silent: whether some ring cannot end a wait. */
bool perfring__session_is_live(const struct perfring_session *session);
bool perfring__session_arm(struct perfring_session *session, bool armed);
bool perfring__session_is_silent(const struct perfring_session *session);

void perfring__totals_add(struct perfring_totals *sum, const struct perfring_totals *totals);

#endif
