/* session_private.h - what the files of a session share: fds, rings and their windows. */
#ifndef SESSION_SESSION_PRIVATE_H
#define SESSION_SESSION_PRIVATE_H

#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/snapshot.h>

#include "event/opener.h"
#include "os/array.h"
#include "os/heap.h"

/* An event as it was opened; the leader of one in no group is its own. */
struct perfring_session_kind {
	struct perfring_opener_event open;
	uint64_t lost; /* FORMAT_LOST of fds that were closed since */
};

/* What one add asked for; where it is open by now. */
struct perfring_session_asked {
	struct perfring_target target;
	uint32_t first; /* the leader's number */
	uint32_t count; /* of events */
};

/* Numbers found by keys.  What was taken away stays in it until its key is put again: look whether it is still there. */
struct perfring_places {
	struct perfring_places_slot {
		uint64_t key;
		uint32_t place; /* number + 1; 0: free */
	} * slots;
	uint32_t capacity; /* a power of two */
	uint32_t used;
};

enum {
	PERFRING_WINDOW = 64,
	PERFRING_HOLD_MS = 10,
	PERFRING_CLOCK_PERF = -1
};

/* A record that was seen and not yet handed out. */
struct perfring_waiting {
	uint64_t key;      /* what it is ordered by: its time; for one without, the youngest before it */
	uint64_t time;     /* 0: it has none */
	uint64_t position; /* in its ring */
	const struct perf_event_header *record;
	const struct perfring_format *format;
};

/* A corrupt ring is reported once, and its unread bytes are dropped when nothing of it is in use any more. */
enum perfring_ring_health {
	PERFRING_RING_SOUND,
	PERFRING_RING_FOUND_CORRUPT,
	PERFRING_RING_REPORTED_CORRUPT,
};

/* An fd that is written to when a ring that was added has something; many rings may share it. */
struct perfring_session_wake {
	int fd;         /* -1: a free place */
	uint32_t rings; /* that have it */
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
	PERFRING_WAKE_MARK = 1u << 31, /* in what epoll hands back: a place among the wakes, not among the events */
};

/* The AUX area of a ring.  Invariant: area.returned <= taken <= end <= area.returned + area.size, as distances. */
struct perfring_session_aux {
	struct perfring_aux_area *area; /* &mapped, or the caller's */
	struct perfring_aux_area mapped;
	int fd;         /* the event that it is of; -1: the caller's */
	uint64_t taken; /* handed out up to here */
	uint64_t end;   /* the round's */
	bool ran;       /* it had bytes: somebody started it */
	enum perfring_ring_health health;
	struct perfring_fault fault;
};

/* What is done with a ring: forward (session_order.c) or backward (session_snapshot.c). */
struct perfring_session_ring_ops {
	/* Begins a round: what the writer has published by now is seen. */
	void (*observe)(struct perfring_session *session, struct perfring_session_ring *ring, bool last);
	/* Fills the window with records that were seen. */
	void (*fill)(struct perfring_session *session, struct perfring_session_ring *ring);
	/* Takes the next span of the round. */
	bool (*take_span)(struct perfring_session *session, struct perfring_session_ring *ring,
			  struct perfring_span *span);
	/* Returns what was handed out. */
	void (*give_back)(struct perfring_session *session, struct perfring_session_ring *ring);
	/* Whether records were seen that are not returned. */
	bool (*has_seen)(const struct perfring_session_ring *ring);
};

extern const struct perfring_session_ring_ops perfring_session_forward, perfring_session_backward;

/* The copy of a backward ring. */
struct perfring_session_snapshot {
	struct perfring_snapshot copy;
	uint64_t counted; /* records below this position were in the totals before */
	bool is_paused;   /* the kernel does not write; so also of a ring of perfring's, which needs no pause */
};

/* A ring of a session.  Invariants of a forward one:
 *   window[first .. end) is sorted by (key, position), and holds the records between what was handed out and
 *   reader.position;
 *   old = how many of them lie before old_end;
 *   reader.returned <= every position in the window < reader.position, as distances. */
struct perfring_session_ring {
	const struct perfring_session_ring_ops *ops;
	struct perfring_ring ring;
	struct perfring_reader reader;             /* forward */
	struct perfring_session_snapshot snapshot; /* backward; positions in the window are numbers of records */
	struct perfring_totals totals;
	int32_t tid;
	int32_t cpu;
	int fd;            /* the event that was mapped: the others write into its ring */
	uint64_t old_end;  /* what lies before it was seen a round ago */
	uint64_t youngest; /* the largest time met */
	uint32_t first;
	uint32_t end;
	uint32_t old;
	enum perfring_ring_health state;
	bool added;     /* by perfring_session_add_ring: `ring` is a handle of the caller's */
	bool is_polled; /* it wakes no wait */
	bool leaving;   /* of a set that has freed it: removed when nothing of it is in use any more */
	uint32_t wake;  /* its place among the wakes, or PERFRING_NO_WAKE */
	struct perfring_session_aux *aux; /* session_aux.c; NULL: it has none */
	struct perfring_waiting window[2 * PERFRING_WINDOW];
};

struct perfring_session {
	struct perfring_format_set *formats;
	struct perfring_session_event *events; /* one for each fd */
	uint32_t event_count;
	uint32_t event_capacity;
	uint32_t live;                        /* fds in the epoll set: of each thread and CPU one, until it hangs up */
	struct perfring_session_kind **kinds; /* by number; NULL for one that only formats know */
	uint32_t kind_count;
	uint32_t kind_capacity;
	struct perfring_session_asked *asked;
	uint32_t asked_count;
	uint32_t asked_capacity;
	struct perfring_places ring_of; /* a thread or CPU -> its ring */
	struct perfring_places
		watched_of; /* a thread, CPU and way to end -> the event that stands for all in the epoll set */
	uint32_t options;   /* PERFRING_SESSION_ */
	uint64_t allowed;   /* PERFRING_FALLBACK_ */
	enum perfring_session_state {
		PERFRING_SESSION_AS_OPENED,
		PERFRING_SESSION_ENABLED,
		PERFRING_SESSION_DISABLED,
	} state;
	struct perfring_session_ring **rings; /* NULL: it was removed, and the place is free */
	uint32_t ring_count;
	uint32_t ring_capacity;
	uint32_t added; /* rings that perfring_session_add_ring brought */
	struct perfring_session_wake *wakes;
	uint32_t wake_count;
	uint32_t wake_capacity;
	struct perfring_session_set *sets;
	uint32_t set_count;
	uint32_t set_capacity;
	uint32_t leaving; /* rings */
	struct perfring_totals removed;       /* of rings that were removed */
	struct perfring_totals *event_totals; /* of each event, by its number */
	uint32_t event_totals_capacity;
	uint32_t pages;
	int epoll;
	struct perfring_heap_entry *heap; /* rings with something in their window, by the key of the first */
	uint32_t heap_count;
	uint32_t heap_capacity;
	uint32_t old_rings;      /* rings with something that was seen a round ago */
	uint32_t corrupt_rings;  /* and areas: found, and not reported */
	uint32_t span_ring;      /* rings before it have no span in this round any more */
	bool merging;            /* the round's windows are filled */
	uint64_t last;           /* the largest key handed out */
	uint32_t sample_time_at; /* where every event's samples have their time; 0: not at one place */
	int32_t clock;           /* of every event: its clockid, PERFRING_CLOCK_PERF without one */
	uint32_t fault_ring;
	struct perfring_fault fault;
	char refusal[1024];
};

/* session.c */
void perfring_session_close_ring(struct perfring_session_ring *ring);

/* session_set.c: adds the rings of threads that joined a set since the last walk, removes drained ones.  Returns 0 or the first
 * error; what failed is tried again by the next walk. */
int perfring_session_walk_sets(struct perfring_session *session);

/* session_open.c */
void __attribute__((format(printf, 2, 3)))
perfring_session_refuse(struct perfring_session *session, const char *format, ...);

/* Space for one ring more, in the arrays of rings. */
int perfring_session_make_space(struct perfring_session *session);

/* Drops what came after these counts; the attrs likewise. */
void perfring_session_cut_back(struct perfring_session *session, uint32_t events, uint32_t rings);
void perfring_session_cut_kinds(struct perfring_session *session, uint32_t count);

/* Event number `number` has hung up. */
void perfring_session_unwatch(struct perfring_session *session, uint32_t number);

/* perfring_session_update, with these CPUs online. */
int perfring_session_update_on(struct perfring_session *session, const struct perfring_numbers *online);

/* session_order.c: looks at every ring, and so begins a round; the last one hands out everything. */
void perfring_session_look(struct perfring_session *session, bool last);

/* Whether records that were seen wait for their turn. */
bool perfring_session_holds(const struct perfring_session *session);

static inline bool perfring_session_is_backward(const struct perfring_session *session)
{
	return session->options & PERFRING_SESSION_BACKWARD;
}

/* A ring of no thread or CPU yet; NULL: no memory.  To be closed by perfring_session_close_ring. */
struct perfring_session_ring *perfring_session_new_ring(const struct perfring_session *session);

/* Opens its reader, once it is mapped. */
int perfring_session_open_ring(struct perfring_session_ring *ring, unsigned flags);

/* session_order.c, for merge.c: the smallest key of the windows (UINT64_MAX: they are empty), with the round begun; and the next
 * item, `last` being the largest key that was handed out. */
uint64_t perfring_session_first_key(struct perfring_session *session);
void perfring_session_take(struct perfring_session *session, struct perfring_item *item, uint64_t *last);

/* Reports one ring or area that was found corrupt: -EBADMSG, or 0 when there is none left to report. */
int perfring_session_report_corrupt(struct perfring_session *session);

void perfring_session_found_corrupt(struct perfring_session *session, struct perfring_session_ring *ring);

/* Counts a record that is handed out.  header: a copy, whose size was checked; time: of a sample, 0: unknown. */
void perfring_session_count(struct perfring_session *session, struct perfring_session_ring *ring,
			    const struct perfring_format *format, const struct perf_event_header *record,
			    const struct perf_event_header *header, uint64_t time);

/* FORMAT_LOST of one fd; 0: it has none. */
uint64_t perfring_session_lost_of(const struct perfring_session_event *event, const struct perfring_format *format);

/* Space for the totals of event number `event`.  Returns 0 or -ENOMEM. */
int perfring_session_count_event(struct perfring_session *session, uint32_t event);

/* A record comes into its ring's window.  header: as it was checked.  is_counted: it was in the totals before. */
void perfring_session_put(struct perfring_session *session, struct perfring_session_ring *ring,
			  struct perfring_waiting *waiting, const struct perf_event_header *header, bool is_counted);

/* session_aux.c: a look at the AUX areas, the return of what was handed out, whether some of it is out; and the end. */
void perfring_session_aux_look(struct perfring_session *session, struct perfring_session_ring *ring);
void perfring_session_aux_return(struct perfring_session *session, struct perfring_session_ring *ring);
bool perfring_session_aux_is_out(const struct perfring_session_ring *ring);
void perfring_session_aux_close(struct perfring_session_ring *ring);

/* session.c, for merge.c: whether a record may come; before a sleep on the session's fd by somebody else; whether a wait must be
 * short. */
bool perfring_session_is_live(const struct perfring_session *session);
bool perfring_session_arm(struct perfring_session *session, bool armed);
bool perfring_session_is_silent(const struct perfring_session *session);

void perfring_totals_add(struct perfring_totals *sum, const struct perfring_totals *totals);

#endif
