/* ring.h - ring memory: one control page, then 2^n data pages (docs/abi.md 3): the kernel's, and our own.
 *
 * A ring is only where the bytes are.  Whoever reads it opens a reader on it (reader.h), or takes a snapshot of one that
 * overwrites (snapshot.h); whoever writes into our own opens a writer (writer.h, or shared.h for many).
 *
 *   in memory   page            data, size bytes           the data again    what lies behind it in the file
 *               | control page  | 2^n pages                | 2^n pages       | marks, owners (shared.h) | AUX
 *               |<- 1 page   -->|<------- span = 2 * size ---------------->|
 *   in the fd   0               1 page                                       1 page + size
 *
 * The fd of a ring of ours maps like a perf_event_open fd: a foreign consumer maps 1 + 2^n pages at 0 and reads it by
 * data_head, data_tail, data_offset and data_size.  What else another process, or a reader after the writer's death, must
 * know stands in struct perfring_ring_state, in the part of the control page that the kernel leaves unused: a ring is
 * self-contained, its fd (or its file) is all that has to be handed over.
 *
 * Everything in shared memory is another process's word: what attach has checked is kept in struct perfring_ring, which
 * is private, and nothing is read a second time.
 */
#ifndef PERFRING_RING_H
#define PERFRING_RING_H

#include <perfring/base.h>

PERFRING_BEGIN

struct perfring_ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t size; /* bytes of data, a power of two */
	uint64_t span; /* bytes that can be read in a row from any place below size: size, or 2 * size */
	void *mapping; /* what close unmaps, with the page of the handles behind it; NULL when the memory is the caller's */
	uint64_t mapping_size;
	uint64_t flags; /* enum perfring_ring_flag */
	int32_t fd;     /* of our own rings: the memfd or file, the ring's to close; else -1 */
	uint32_t padding;
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_ring) == 64, "ring");

enum perfring_ring_flag {
	PERFRING_RING_OVERWRITE =
		1, /* full means that the oldest go: of kernel rings, a read-only mapping (docs/abi.md 7.8) */

	/* of our own rings, at creation; they are the ring's for good */
	PERFRING_RING_BACKWARD =
		2, /* data_head falls; from it upwards lie the newest to the oldest; OVERWRITE needs it */
	PERFRING_RING_STRICT = 4, /* for shared writers: each record visible at once (shared.h) */
	PERFRING_RING_LEASED = 8, /* for shared writers: each fills chunks of its own (shared.h) */
	/* With STRICT: fillers (below) are LOST records, for a consumer that refuses unknown types, as libbpf's perf_buffer
	 * does.  Records smaller than 24 bytes are refused. */
	PERFRING_RING_LOST_FILLERS = 256,

	/* how this mapping was made */
	PERFRING_RING_HUGE = 16,      /* transparent huge pages are asked for; cleared when the kernel would not */
	PERFRING_RING_READ_ONLY = 32, /* attached for snapshots: neither reader nor writer can be opened on it */
	PERFRING_RING_OWN = 64,       /* a ring of ours: its control page holds a perfring_ring_state */
	PERFRING_RING_REPLACE = 128,  /* create: a file of that name is replaced, not refused */
};

/* ---- a ring's own words, in its control page ---- */

enum {
	PERFRING_RING_STATE_AT = 2048, /* bytes into the control page; behind the kernel's last member */
	PERFRING_RING_VERSION = 1,
};

#define PERFRING_RING_MAGIC UINT64_C(0x676e697266726570) /* "perfring" in little-endian memory: also tells the order */

/* Free-running positions, in rings that fall too: there they are -data_head.
 * Invariant: published <= claimed <= published + size (of a ring for shared writers: what its `claimed` stands for). */
struct perfring_ring_state {
	perfring_u64 magic;
	uint32_t version;
	uint32_t flags;         /* OVERWRITE, BACKWARD, STRICT, LEASED */
	perfring_u64 watermark; /* effective (docs/abi.md 7.7) */
	uint64_t marks_offset;  /* in the fd: shared.h; 0 when there are none */
	uint64_t marks_size;
	uint64_t owners_offset;
	uint32_t owners;     /* slots */
	uint32_t grain;      /* bytes of ring for each mark: 8, or a leased chunk */
	int32_t creator_pid; /* as its own pid namespace sees it */
	int32_t reserved1;
	uint64_t created;        /* CLOCK_REALTIME, ns */
	uint64_t counter_at;     /* the processor's counter ... */
	uint64_t counter_time;   /* ... and CLOCK_MONOTONIC, when they were first compared (perfring_ring_calibrate) */
	perfring_u64 calibrator; /* the thread that stores page->lock now: pid << 42 | tid << 20 | start time */
	uint64_t reserved2[3];

	/* written by writers, seldom (line of their own) */
	perfring_u64 claimed
		__attribute__((__aligned__(128))); /* how far room was given out: OVERWRITE, and see shared.h */
	perfring_u64 lost;       /* refused since the last LOST record (shared writers; a writer that was closed) */
	perfring_u64 lost_total; /* refused since creation; what no LOST record says yet is in it too */
	perfring_u64 wakeup;     /* the stamp of docs/abi.md 7.3, step 7 (shared writers) */
	perfring_u64 events;     /* samples towards wakeup_events (shared writers) */
	perfring_u64 abandoned;  /* rooms of writers that died in mid record, turned into fillers */
	/* The thread writer's, as its own pid namespace sees them; 0: closed properly, or none yet. */
	uint32_t writer_pid;
	uint32_t writer_tid;
	perfring_u64 writer; /* the same and when it began: pid << 42 | tid << 20 | start time; by compare and swap */
	perfring_u64 writer_image; /* of the program that it ran: exec makes a new one of the same pid */
	uint64_t reserved3[7];

	/* wakeup.h.  The kernel's poll flag: a crossing that nobody polled yet. */
	uint32_t pending __attribute__((__aligned__(128)));
	uint32_t armed;  /* readers that sleep, or are about to */
	uint32_t paused; /* docs/abi.md 7.3, step 2 */
	uint32_t reserved4[29];
};

static_assert(sizeof(struct perfring_ring_state) == 384, "the state's layout is read by other processes");
static_assert(sizeof(struct perf_event_mmap_page) <= PERFRING_RING_STATE_AT, "docs/abi.md 3.2");

/* Room that was given out and not used, because a nested record follows it or its writer died: a record of this type and
 * misc.  The kernel's types begin at 1.  Our readers pass over it; others skip what they do not know by its size.  A consumer
 * that takes an unknown type for an error (libbpf's perf_buffer: LIBBPF_PERF_EVENT_ERROR) wants PERFRING_RING_LOST_FILLERS:
 * then it is a PERF_RECORD_LOST with this misc, which lost 0 records. */
enum {
	PERFRING_FILLER_TYPE = 0,
	PERFRING_FILLER_MISC = 0x5046,
};

PERFRING_INLINE bool perfring_ring_is_filler(const struct perf_event_header *header)
{
	return header->misc == PERFRING_FILLER_MISC &&
	       (header->type == PERFRING_FILLER_TYPE || header->type == PERF_RECORD_LOST);
}

/* The state of one of our rings (flags has OWN). */
PERFRING_INLINE struct perfring_ring_state *perfring_ring_state_of(const struct perf_event_mmap_page *page)
{
	return (struct perfring_ring_state *)(void *)((unsigned char *)(uintptr_t)page + PERFRING_RING_STATE_AT);
}

/* ---- our own rings ---- */

struct perfring_ring_options {
	uint32_t pages;     /* data pages, a power of two; the data are at most 1 GiB */
	uint32_t flags;     /* BACKWARD, OVERWRITE, STRICT or LEASED, LOST_FILLERS, HUGE, REPLACE */
	const char *file;   /* a file of this name, kept; NULL: a sealed memfd, gone with its last fd and mapping */
	uint32_t wakeup;    /* the attr's wakeup_watermark, when `watermark`; else 0 */
	bool watermark;     /* the attr's flag of this name (docs/abi.md 7.7); the ring's for good */
	uint32_t owners;    /* shared writers at a time, up to 1024; 0 means 64 */
	uint32_t chunk;     /* LEASED: bytes, a power of two of 512 to a quarter of the data; 0 means 4096 at most */
	uint32_t aux_pages; /* of an AUX area (aux.h), a power of two; 0: none */
	uint64_t reserved[4];
};

/* Makes a ring and maps it: control page filled as the kernel fills it (version, size, capabilities, data_offset,
 * data_size; aux_offset and aux_size when asked for), data twice in a row.  A file is allocated on the disk at once, so
 * that a full disk is told here and is no SIGBUS later.  Returns 0; -EINVAL (not a power of two, flags that exclude one
 * another: OVERWRITE without BACKWARD, STRICT or LEASED with either or with one another, LOST_FILLERS without STRICT); -EFBIG (above 1 GiB); -EEXIST
 * (a file of that name, without REPLACE); what memfd_create, open, fallocate or mmap said.  Context: any thread. */
PERFRING_API int perfring_ring_create(struct perfring_ring *ring, const struct perfring_ring_options *options);

/* Maps the ring behind an fd that came from perfring_ring_create, here or in another process (over a socket, by
 * /proc/PID/fd/N, by the file's name); the fd stays the caller's, the ring keeps a copy.  flags: READ_ONLY, HUGE.
 * Everything that the control page says is checked against the fd's size: a file that is too short, has another version
 * or byte order, or whose numbers do not fit one another is -EBADMSG, with the place in `fault` (which may be NULL); no
 * ring of ours at all is -EBADMSG at 2048; so is a memfd that others may still shrink under us.  (A file can be: a process
 * that may write it can end one that maps it, by SIGBUS.)  Attaching touches none of the ring's memory: a memfd with
 * holes, which would become memory of the process that touches them first, is -EBADMSG, and holes of a file are left as they
 * are.  A holder of the fd may punch holes later (F_SEAL_FUTURE_WRITE, added by the receiver after attaching, prevents it):
 * the most that reading then allocates is the ring's size.  -EACCES: the fd allows only READ_ONLY.  Context: any thread. */
PERFRING_API int perfring_ring_attach(struct perfring_ring *ring, int fd, unsigned flags, struct perfring_fault *fault);

/* ---- others' rings ---- */

/* Maps the ring of a perf_event_open fd: `pages` data pages, a power of two (0 maps the control page alone).  Kernel
 * rings cannot be mapped twice, so span == size.  The mapping outlives the fd.  flags: OVERWRITE.  Returns 0, -EINVAL, or
 * what mmap said: -EPERM is the memory budget, see perfring_ring_explain.  Context: any thread. */
PERFRING_API int perfring_ring_map(struct perfring_ring *ring, int fd, uint32_t pages, unsigned flags);

/* Describes memory laid out like the kernel's mapping: a control page of sysconf(_SC_PAGESIZE) bytes, then data.  The
 * page's data_offset and data_size count when they are not 0, and must lie inside `size`.  The memory stays the
 * caller's.  Returns 0, or -EINVAL when that is no ring. */
PERFRING_API int perfring_ring_wrap(struct perfring_ring *ring, void *memory, size_t size);

/* Makes *handle another handle of a ring that is mapped here: what perfring_ring_create or attach has mapped stays until
 * the last handle of this process is closed, in whatever order, by perfring_ring_close.  A handle has no fd (-1).  Of a
 * kernel's ring and of memory that is the caller's it is a copy that holds nothing: closing it does nothing.  Returns 0, or
 * -EINVAL (it is closed).  Context: any thread; not while the last handle is being closed. */
PERFRING_API int perfring_ring_share(struct perfring_ring *handle, const struct perfring_ring *ring);

/* Unmaps, unless there is another handle (perfring_ring_share), and closes the ring's own fd.  A fork's child does not close what it inherited once a writer was opened on it:
 * its mapping is not there, and may be another's by now.  Every event that writes into a kernel ring is detached from it by the last
 * unmapping; records in a ring of ours stay for whoever else has its fd or file. */
PERFRING_API void perfring_ring_close(struct perfring_ring *ring);

/* Why perfring_ring_map said `error`, and what to change: the sysctl, the limit and the capability by name.  Like
 * snprintf: returns the length of the whole text. */
PERFRING_API int64_t perfring_ring_explain(int error, uint32_t pages, char *room, size_t size);

/* ---- time stamps by the processor's own counter ---- */

/* Fits the processor's counter to CLOCK_MONOTONIC and publishes time_mult, time_shift, time_zero and the capability bits
 * user_time and user_time_zero in the control page, under its sequence lock (docs/abi.md 3.3).  Takes 20 ms the first time; a
 * later call refines by the time since.  Returns 0; -EBUSY: another thread, of whatever process, is at it (one that died at
 * it is not); -EOPNOTSUPP: no counter that runs steadily on this processor.  Context: any thread, no handler. */
PERFRING_API int perfring_ring_calibrate(struct perfring_ring *ring);

PERFRING_END

#endif
