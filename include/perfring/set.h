/* set.h - many rings for many writers: one for each thread, or one for each CPU.
 *
 * The default for a program with many threads is a ring for each (RING.md 3): no writer meets another.  The set knows
 * them all; a reader finds new ones by walking it, and merges them by time (session.h: perfring_session_add_ring).  A
 * thread that ends with records unread leaves its ring to the set until they are read.
 *
 *   join    a thread's ring is made at its first perfring_set_join, not in a handler; later calls, handlers included,
 *           find it.  It is left at perfring_set_leave or at the thread's end.
 *   drain   a reader visits each ring: perfring_set_next.  One whose thread has gone and that is empty is handed out a
 *           last time, as `drained`, and freed when a later walk comes to it.
 *
 *              join leave lost | current | next | close
 *   threads         yes        |   yes   |  no  |  no     admit, dismiss: as join, leave
 *   handlers        no         |   yes   |  no  |  no
 *   the reader      yes        |   yes   |  yes |  no     one at a time, with the readers of the members
 *
 * fork: as in writer.h.  A child opens a set of its own.  Of the one that it inherited it may call current and leave (in
 * the thread that forked, whose writer refuses), lost, which is 0, and close, which only frees memory: fds stay open.
 */
#ifndef PERFRING_SET_H
#define PERFRING_SET_H

#include <pthread.h>

#include <perfring/reader.h>
#include <perfring/writer.h>

PERFRING_BEGIN

struct perfring_set;

/* One ring of a set, as a reader sees it. */
struct perfring_set_ring {
	struct perfring_reader reader;
	struct perfring_ring ring;
	uint64_t number; /* unique in the set, counted up: a ring that was freed does not come back under its number */
	uint32_t tid;    /* of its thread (per thread) */
	int32_t cpu;     /* per CPU; else -1 */
	bool left;       /* its thread is gone: what is unread is the last */
	bool drained;    /* left, and nothing is unread: seen for the last time.  Take it out of a session now: else its memory
			    stays until the session is closed */
	uint8_t padding[6];
	void *data; /* the reader's own; NULL at first */
	uint64_t reserved[2];
};

/* Rings are made as `ring` says (pages; HUGE, wakeup: else -EINVAL), writers as `writer` says (NULL: the defaults).
 * limit: at most so many rings at a time, those that are left and not yet freed too; 0: 1024.  Each has an fd. */
PERFRING_API int perfring_set_open(struct perfring_set **set, const struct perfring_ring_options *ring,
				   const struct perfring_writer_options *writer, uint32_t limit);

/* All threads have left, or will never write again.  Unread records are gone. */
PERFRING_API void perfring_set_close(struct perfring_set *set);

/* This thread's writer, its ring made if it has none yet.  Returns 0; -EUSERS (the limit); what perfring_ring_create and
 * perfring_writer_open said.  Context: a thread, not a handler: it allocates; not a destructor of pthread_key_create: the
 * thread's end may have passed this set by, and the ring would be left never, or before what is written next. */
PERFRING_API int perfring_set_join(struct perfring_set *set, struct perfring_writer **writer);

/* This thread's writer; NULL before join and after leave.  Context: the thread and its handlers. */
PERFRING_API struct perfring_writer *perfring_set_current(struct perfring_set *set);

/* Closes this thread's writer, as its end does.  Its ring stays until it is drained. */
PERFRING_API void perfring_set_leave(struct perfring_set *set);

/* A ring for another thread of this process, which alone writes into it, with its handlers; it is not that thread's
 * perfring_set_current, and is not left at its end but by dismiss: for those who keep a list of threads themselves.
 * thread, tid: whom the ring names as its writer.  Returns as join.  Context: any thread, not a handler. */
PERFRING_API int perfring_set_admit(struct perfring_set *set, pthread_t thread, uint32_t tid,
				    struct perfring_writer **writer);

/* Its thread writes no more: any thread may say so once that is certain.  The ring stays until it is drained. */
PERFRING_API void perfring_set_dismiss(struct perfring_set *set, struct perfring_writer *writer);

/* The next ring behind `member` (NULL: the first) that a reader should look at; NULL behind the last.  Frees those that
 * were handed out as drained before.  Valid until the next walk reaches it again.  Read it by member->reader, or by
 * another reader on member->ring: what counts is data_tail. */
PERFRING_API struct perfring_set_ring *perfring_set_next(struct perfring_set *set, struct perfring_set_ring *member);

/* What was refused by all rings since the set was opened, those that are freed too.  0 in a fork's child. */
PERFRING_API uint64_t perfring_set_lost(struct perfring_set *set);

PERFRING_END

#endif
