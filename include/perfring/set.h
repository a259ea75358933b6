/* set.h - one ring for each thread of a process, found by one reader.
 *
 * The default for a program with many threads: writers do not share memory.  A session reads all of them in time order
 * (session.h: perfring_session_add_set); another reader finds new rings by walking the set.  After its thread has ended, a
 * ring stays in the set until its records are read.
 *
 *   join    The first perfring_set_join of a thread, outside of signal handlers, creates its ring.  Later calls, also in
 *           handlers, find it.  perfring_set_leave or the thread's end leaves it.
 *   drain   A reader visits each ring by perfring_set_next.  A ring whose thread has left, and that is empty, is returned
 *           once more with `drained` set, and freed when a later walk reaches it.
 *   overwrite  Rings that overwrite have no reader: perfring_snapshot_take copies them.  Such a ring, when its thread has left,
 *           stays until the reader that has its last copy sets `drained`; an empty one is drained as any.
 *
 * soft.h keeps its rings in one.  Threads that join share nothing but the set's lock; writers take none (docs/ring.md 6).
 *
 *              join leave lost | current | next | close
 *   threads         yes        |   yes   |  no  |  no     admit, dismiss: as join, leave
 *   handlers        no         |   yes   |  no  |  no
 *   the reader      yes        |   yes   |  yes |  no     one at a time, with the readers of its rings
 *
 * Fillers.  The rings may hold filler records of type 0 (ring.h).  libbpf's perf_buffer fails at them: for such a consumer use a
 * shared ring, STRICT with PERFRING_RING_LOST_FILLERS.
 *
 * fork: as in writer.h.  A child opens its own set.  On the inherited one the thread that forked may call current and leave
 * (the writer refuses), lost (which returns 0), and close (which frees memory and leaves fds open). */
#ifndef PERFRING_SET_H
#define PERFRING_SET_H

#include <pthread.h>

#include <perfring/reader.h>
#include <perfring/writer.h>

PERFRING_BEGIN

struct perfring_set;

/* One ring of a set, as a reader sees it. */
struct perfring_set_ring {
	struct perfring_reader reader; /* of a ring that overwrites all 0 */
	struct perfring_ring ring;
	uint64_t number; /* unique in the set, ascending, never used again */
	uint32_t tid;    /* its thread; of a ring for each CPU 0 */
	int32_t cpu;     /* its CPU; of a ring for each thread -1 */
	bool left;       /* its thread has left: no record will be added */
	bool drained;    /* left and empty: returned for the last time.  Of a ring that overwrites the reader sets it */
	uint8_t padding[6];
	void *data; /* for the reader's use; initially NULL */
	uint64_t reserved[2];
};

/* Opens an empty set; options are copied.  ring: the options of each ring: pages, HUGE, OVERWRITE with BACKWARD, wakeup, attr and
 * id; file: the rings are files FILE.0, FILE.1 ..., which stay if the process dies, until another one with REPLACE takes their
 * names; that of a drained ring is removed.  Others give -EINVAL. writer: the options of each writer; NULL for the defaults.
 * limit: the maximal number of rings, including those left and not yet freed; 0 for 1024.  Each ring has an fd. */
PERFRING_API int perfring_set_open(struct perfring_set **set, const struct perfring_ring_options *ring,
				   const struct perfring_writer_options *writer, uint32_t limit);

/* Frees the set and drops unread records.  All threads must have left, or must not write again. */
PERFRING_API void perfring_set_close(struct perfring_set *set);

/* The calling thread's writer, valid until it leaves; creates its ring if it has none.  Returns 0; -EUSERS (limit reached); errors of
 * perfring_ring_create and perfring_writer_open.  Context: threads.  Not signal handlers: it allocates.  Not destructors of
 * pthread_key_create: the set's own destructor may have run already, so that the ring would be left never, or too early. */
PERFRING_API int perfring_set_join(struct perfring_set *set, struct perfring_writer **writer);

/* The calling thread's writer; NULL before join and after leave.  Context: threads and their handlers. */
PERFRING_EXPERIMENTAL struct perfring_writer *perfring_set_current(struct perfring_set *set);

/* Closes the calling thread's writer, as the thread's end does.  The ring stays until it is drained. */
PERFRING_API void perfring_set_leave(struct perfring_set *set);

/* Creates a ring for another thread of this process, for callers that keep their own list of threads.  Only that thread and
 * its handlers may write into it.  perfring_set_current does not return it, and the thread's end does not leave it: call
 * perfring_set_dismiss.  thread, tid: the writer that the ring names.  Returns as join.  Context: threads, not handlers. */
PERFRING_API int perfring_set_admit(struct perfring_set *set, pthread_t thread, uint32_t tid,
				    struct perfring_writer **writer);

/* Leaves a ring of perfring_set_admit.  Its thread must not write again.  The ring stays until it is drained.  Context: any
 * thread. */
PERFRING_API void perfring_set_dismiss(struct perfring_set *set, struct perfring_writer *writer);

/* The ring after `member` (NULL: the first) that a reader should visit; NULL after the last.  Frees rings that were returned
 * as drained before.  Valid until the next walk reaches it again.  Read it by member->reader, or by any reader of
 * member->ring: its data_tail says what is read. */
PERFRING_API struct perfring_set_ring *perfring_set_next(struct perfring_set *set, struct perfring_set_ring *member);

/* The number of records that all rings have refused since the set was opened, including rings that are freed.  0 in a child
 * after fork. */
PERFRING_EXPERIMENTAL uint64_t perfring_set_lost(struct perfring_set *set);

PERFRING_END

#endif
