/* session.h - what the files of a session share: targets, fds, rings and their windows. */
#ifndef EVENT_SESSION_H
#define EVENT_SESSION_H

#include <perfring/reader.h>
#include <perfring/session.h>

struct perfring_numbers {
	int32_t *numbers;
	uint32_t count;
	uint32_t room;
	bool sorted;
};

struct perfring_target {
	struct perfring_numbers cpus;
	struct perfring_numbers tids;
};

enum {
	PERFRING_WINDOW = 64,
	PERFRING_HOLD_MS = 10,
	PERFRING_CLOCK_PERF = -1
};

/* A record seen and not yet handed out. */
struct perfring_waiting {
	uint64_t key;      /* what it is ordered by: its time; for one without, the youngest before it */
	uint64_t time;     /* 0: it has none */
	uint64_t position; /* in its ring */
	const struct perf_event_header *record;
	const struct perfring_format *format;
};

/* A corrupt ring is told once, and its unread bytes are given up when nothing of it is in use any more. */
enum perfring_ring_health {
	PERFRING_RING_SOUND,
	PERFRING_RING_FOUND_CORRUPT,
	PERFRING_RING_TOLD_CORRUPT,
};

/* An fd that is written to when a ring that was added has something; many rings may share it. */
struct perfring_session_wake {
	int fd;         /* -1: a free place */
	uint32_t rings; /* that have it */
};

enum {
	PERFRING_NO_WAKE = UINT32_MAX,
	PERFRING_WAKE_MARK = 1u << 31, /* in what epoll hands back: a place among the wakes, not among the events */
};

/* A ring of a session.  Invariants:
 *   window[first .. end) is sorted by (key, position), and holds the records between what was handed out and
 *   reader.position;
 *   old = how many of them lie before old_end;
 *   reader.returned <= every position in the window < reader.position, as distances. */
struct perfring_session_ring {
	struct perfring_ring ring;
	struct perfring_reader reader;
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
	bool added;    /* by perfring_session_add_ring: the memory is the caller's */
	uint32_t wake; /* of an added one: its place among the wakes, or PERFRING_NO_WAKE */
	struct perfring_waiting window[2 * PERFRING_WINDOW];
};

struct perfring_session {
	struct perfring_format_set *formats;
	struct perfring_session_event *events; /* one for each fd */
	uint32_t event_count;
	uint32_t event_room;
	uint32_t live;                        /* fds that have not hung up */
	struct perfring_session_ring **rings; /* NULL: it was removed, and the place is free */
	uint32_t ring_count;
	uint32_t ring_room;
	uint32_t added; /* rings that perfring_session_add_ring brought */
	struct perfring_session_wake *wakes;
	uint32_t wake_count;
	uint32_t wake_room;
	struct perfring_totals removed; /* of rings that were removed */
	uint32_t pages;
	int epoll;
	/* Rings with something in their window, the one with the smallest first key at heap[0]; room for ring_room. */
	uint32_t *heap;
	uint32_t heap_count;
	uint32_t old_rings; /* rings with something that was seen a round ago */
	uint32_t corrupt_rings;
	bool merging;            /* the round's windows are filled */
	uint64_t last;           /* the largest key handed out */
	uint32_t sample_time_at; /* where every event's samples have their time; 0: not at one place */
	int32_t clock;           /* of every event: its clockid, PERFRING_CLOCK_PERF without one */
	uint32_t fault_ring;
	struct perfring_fault fault;
	char refusal[1024];
};

/* order.c: looks at every ring, and so begins a round; the last one hands out everything. */
void perfring_session_look(struct perfring_session *session, bool last);

/* Whether something seen waits for its turn. */
bool perfring_session_holds(const struct perfring_session *session);

void perfring_totals_add(struct perfring_totals *sum, const struct perfring_totals *totals);

#endif
