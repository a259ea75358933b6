/* ring.h - the memory of a ring: one control page, then 2^n data pages (docs/abi.md 3), of the kernel or of perfring.
 *
 * To read a ring, open a reader (reader.h), or take a snapshot of one that overwrites (snapshot.h).  To write into a ring of
 * perfring's, open a writer (writer.h; shared.h for many writers).
 *
 *   in memory   page            data, size bytes           the data again    what follows in the file
 *               | control page  | 2^n pages                | 2^n pages       | marks, owners (shared.h) | AUX
 *               |<- 1 page   -->|<------- span = 2 * size ---------------->|
 *   in the fd   0               1 page                                       1 page + size
 *
 * The fd of a perfring ring maps like a perf_event_open fd: any consumer maps 1 + 2^n pages at offset 0 and reads by
 * data_head, data_tail, data_offset and data_size.  What perfring needs beyond that is in struct perfring_ring_state, in a
 * part of the control page that the kernel does not use.  A ring is self-contained: another process needs its fd or its file
 * only.
 *
 * Shared memory is not trusted: perfring_ring_attach checks values once and keeps them in struct perfring_ring, which is
 * private memory.
 *
 * Context: any thread, not signal handlers, unless a function says otherwise.  One thread at a time for each struct
 * perfring_ring. */
#ifndef PERFRING_RING_H
#define PERFRING_RING_H

#include <perfring/base.h>

PERFRING_BEGIN

/* A mapped ring, in the caller's memory.  Filled by create, attach, map, wrap or share; emptied by perfring_ring_close.  Readers,
 * writers and snapshots copy what they need of it, but not the mapping. */
struct perfring_ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t size; /* bytes of data, a power of two */
	uint64_t span; /* bytes mapped from data on: size, or 2 * size if the data are mapped twice */
	void *mapping; /* what close unmaps; NULL for memory of the caller */
	uint64_t mapping_size;
	uint64_t flags; /* enum perfring_ring_flag */
	int32_t fd;     /* of a perfring ring: its memfd or file, which close closes; else -1 */
	uint32_t padding;
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_ring) == 64, "ring");

enum perfring_ring_flag {
	PERFRING_RING_OVERWRITE =
		1, /* a full ring overwrites its oldest records; of kernel rings: mapped read-only (docs/abi.md 7.8) */

	/* of perfring's rings, fixed at creation */
	PERFRING_RING_BACKWARD = 2, /* data_head decreases; upwards from it are the newest to the oldest records */
	PERFRING_RING_STRICT = 4, /* for shared writers: each record is visible when it is committed (shared.h) */
	PERFRING_RING_LEASED = 8, /* for shared writers: each writer fills chunks of its own (shared.h) */
	/* With STRICT: fillers (below) are LOST records, for consumers that refuse unknown types, such as libbpf's
	 * perf_buffer.  Records smaller than 24 bytes are refused. */
	PERFRING_RING_LOST_FILLERS = 256,

	/* of this mapping */
	PERFRING_RING_HUGE = 16,      /* transparent huge pages are asked for; cleared if the kernel refuses */
	PERFRING_RING_READ_ONLY = 32, /* attached for snapshots: no reader and no writer can be opened on it */
	PERFRING_RING_OWN = 64,       /* a perfring ring: its control page has a perfring_ring_state */

	/* of perfring_ring_create */
	PERFRING_RING_REPLACE = 128,  /* replace a file of that name */
	PERFRING_RING_HIGH_FD = 512,  /* fd is 1000 or more, or near RLIMIT_NOFILE, so that the numbers of the program's
				       * own descriptors do not change */
};

/* ---- a ring's own words, in its control page ---- */

enum {
	PERFRING_RING_STATE_AT = 2048, /* offset in the control page, after the kernel's last member */
	PERFRING_RING_ATTR_AT = 2560,  /* the attr of its records, attr_size bytes */
	PERFRING_RING_ATTR_SIZE = 512, /* at most */
	PERFRING_RING_VERSION = 1,
};

#define PERFRING_RING_MAGIC UINT64_C(0x676e697266726570) /* "perfring" in little-endian memory; shows the byte order too */

/* A position counts all bytes since the ring's creation, modulo 2^64; in a backward ring it is -data_head.
 * `published` is the position that data_head has.
 * Invariant: published <= claimed <= published + size; of a forward ring that overwrites: claimed - size <= oldest <= published.
 * Of a ring for shared writers `claimed` encodes a position (shared.h), for which this holds. */
struct perfring_ring_state {
	perfring_u64 magic;
	uint32_t version;
	uint32_t flags;         /* OVERWRITE, BACKWARD, STRICT, LEASED */
	perfring_u64 watermark; /* effective (docs/abi.md 7.7) */
	uint64_t marks_offset;  /* in the fd (shared.h); 0: none */
	uint64_t marks_size;
	uint64_t owners_offset;
	uint32_t owners;     /* slots */
	uint32_t grain;      /* bytes of ring for each mark: 8, or a leased chunk */
	int32_t creator_pid; /* in its own pid namespace */
	int32_t reserved1;
	uint64_t created;        /* CLOCK_REALTIME, ns */
	uint64_t counter_at;     /* the processor's counter at the first perfring_ring_calibrate ... */
	uint64_t counter_time;   /* ... and CLOCK_MONOTONIC then */
	perfring_u64 calibrator; /* the thread that holds page->lock: tid << 42 | start time << 22 | namespaces */
	perfring_u64 attr_id; /* perfring_ring_attr */
	perfring_u64 attr_size;
	uint64_t reserved2[1];

	/* written by writers; cache lines of their own */
	perfring_u64 claimed
		__attribute__((__aligned__(128))); /* end of the claimed space (OVERWRITE; shared.h) */
	perfring_u64 lost;       /* records refused since the last LOST record (shared writers; a closed writer) */
	perfring_u64 lost_total; /* records refused since creation, including those that no LOST record reports yet */
	perfring_u64 wakeup;     /* the stamp of docs/abi.md 7.3, step 7 (shared writers) */
	perfring_u64 events;     /* samples towards wakeup_events (shared writers) */
	perfring_u64 abandoned;  /* reservations of writers that died, which became fillers */
	/* pid and tid of the thread that has the writer (writer.h) open, in its own pid namespace; 0: closed, or none yet. */
	uint32_t writer_pid;
	uint32_t writer_tid;
	perfring_u64 writer; /* pid << 42 | tid << 20 | start time; changed by compare-exchange */
	perfring_u64 writer_image; /* identifies its program: exec starts another one with the same pid */
	perfring_u64 oldest; /* of a forward ring that overwrites: where its oldest whole record begins; never decreases */
	uint64_t reserved3[6];

	/* wakeup.h.  As the kernel's flag for poll: the watermark was crossed, and there was no poll since. */
	uint32_t pending __attribute__((__aligned__(128)));
	uint32_t armed;  /* how a reader sleeps, or is about to sleep */
	uint32_t paused; /* docs/abi.md 7.3, step 2 */
	uint32_t reserved4[29];
};

static_assert(sizeof(struct perfring_ring_state) == 384, "other processes read this layout");
static_assert(sizeof(struct perf_event_mmap_page) <= PERFRING_RING_STATE_AT, "docs/abi.md 3.2");

/* A filler record stands where space was claimed and not used, because a nested record follows it or its writer died.  The
 * kernel's types begin at 1.  perfring's readers skip fillers; other consumers skip unknown types by their size.  For a
 * consumer that fails at unknown types (libbpf's perf_buffer: LIBBPF_PERF_EVENT_ERROR) use PERFRING_RING_LOST_FILLERS: then a
 * filler is a PERF_RECORD_LOST with this misc and 0 lost records. */
enum {
	PERFRING_FILLER_TYPE = 0,
	PERFRING_FILLER_MISC = 0x5046,
};

/* Whether the record is a filler, of either kind.  Context: any thread, handlers. */
PERFRING_INLINE bool perfring_ring_is_filler(const struct perf_event_header *header)
{
	return header->misc == PERFRING_FILLER_MISC &&
	       (header->type == PERFRING_FILLER_TYPE || header->type == PERF_RECORD_LOST);
}

/* The state of a perfring ring (flags has OWN).  Context: any thread, handlers. */
PERFRING_INLINE struct perfring_ring_state *perfring_ring_state_of(const struct perf_event_mmap_page *page)
{
	return (struct perfring_ring_state *)(void *)((unsigned char *)(uintptr_t)page + PERFRING_RING_STATE_AT);
}

/* ---- perfring's rings ---- */

struct perfring_ring_options {
	uint32_t pages;     /* data pages, a power of two; at most 1 GiB of data */
	uint32_t flags;     /* BACKWARD, OVERWRITE, STRICT or LEASED, LOST_FILLERS, HUGE, REPLACE, HIGH_FD */
	const char *file;   /* path of a file, which stays; NULL: a sealed memfd, freed with its last fd and mapping */
	uint32_t wakeup;    /* as attr.wakeup_watermark, if `watermark` is set; not looked at without */
	bool watermark;     /* as attr.watermark (docs/abi.md 7.7) */
	uint32_t owners;    /* maximal number of shared writers at a time, up to 1024; 0: 64 */
	uint32_t chunk;     /* LEASED: bytes, a power of two from 512 to a quarter of the data; 0: 4096, or that quarter if it is less */
	uint32_t aux_pages; /* pages of an AUX area (aux.h), a power of two; 0: none */
	uint64_t id;        /* with attr: the id in its records; 0: they have none */
	/* The event whose records the ring holds, for its readers (perfring_session_describe_ring, perfring_session_add_set,
	 * `perfring ring`).  Copied, at most PERFRING_RING_ATTR_SIZE bytes.  NULL: not known. */
	const struct perf_event_attr *attr;
	uint64_t reserved[2];
};

/* Creates a ring and maps it, with the data twice in a row.  The control page is as the kernel's (version, size,
 * capabilities, data_offset, data_size; with AUX aux_offset and aux_size).  A file is allocated on disk at once, so that a
 * full disk is an error here and no SIGBUS later.  Returns 0; -EINVAL (no power of two, or flags that exclude one another:
 * STRICT or LEASED with OVERWRITE, BACKWARD or one another, LOST_FILLERS without STRICT; an attr with a wrong size); -EFBIG (above
 * 1 GiB); -EEXIST (the file exists, without REPLACE); -errno of memfd_create, open, fallocate, mmap.  Context: any thread. */
PERFRING_API int perfring_ring_create(struct perfring_ring *ring, const struct perfring_ring_options *options);

/* Maps the ring of an fd from perfring_ring_create, of this or another process (over a socket, by /proc/PID/fd/N, by the
 * file's path).  fd: stays the caller's; the ring keeps a duplicate.  flags: READ_ONLY, HUGE.  fault: may be NULL.
 *
 * All values of the control page are checked against the fd's size.  Returns 0; -EACCES (the fd allows READ_ONLY only);
 * -errno of mmap; or -EBADMSG with the place in *fault:
 *
 *   too short, another version or byte order, contradicting values, no perfring ring at all (at 2048)
 *   a memfd that is not sealed against shrinking (a file cannot be: who may write it can end its readers by SIGBUS)
 *   a memfd with holes, which reading would fill at this process's expense; attaching touches no page of the ring
 *
 * A holder of the fd can punch holes into it later; then reading allocates at most the ring's size.  To refuse that, any holder
 * seals the memfd after all processes have attached: fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE).  Context: any thread. */
PERFRING_API int perfring_ring_attach(struct perfring_ring *ring, int fd, unsigned flags, struct perfring_fault *fault);

/* Copies the attr and the id that the ring was created with.  They are not checked: its creator may have written anything.
 * attr: members that the ring's attr lacks are 0, those that this struct lacks are left out, and size is the number of bytes
 * that were copied.  id: may be NULL.  Returns 1; 0 if the ring has no attr (a kernel ring has none): then the attr is all 0,
 * and *id unchanged.  Context: any thread, handlers. */
PERFRING_API int perfring_ring_attr(const struct perfring_ring *ring, struct perf_event_attr *attr, uint64_t *id);

/* ---- other rings ---- */

/* Maps the ring of a perf_event_open fd.  pages: data pages, a power of two; 0: the control page only.  flags: OVERWRITE.
 * The kernel does not map a ring twice, so span == size.  The mapping outlives the fd.  Returns 0, -EINVAL, -errno of mmap
 * (perfring_ring_explain; -EPERM is the memory budget).  Context: any thread. */
PERFRING_API int perfring_ring_map(struct perfring_ring *ring, int fd, uint32_t pages, unsigned flags);

/* Makes a ring of the caller's memory, laid out as the kernel's mapping: a control page of sysconf(_SC_PAGESIZE) bytes, then the
 * data.  memory: aligned to 8; it must stay until the last use of the ring.  data_offset and data_size of the page are used if
 * they are not 0.  Returns 0; -EINVAL: the data are not within `size`, or their size is no power of two, or below 8 bytes; memory
 * is not aligned.  Context: any thread. */
PERFRING_API int perfring_ring_wrap(struct perfring_ring *ring, void *memory, size_t size);

/* Makes *handle another handle of the ring's mapping.  A mapping of perfring_ring_create or attach stays until all handles of
 * this process are closed, in any order.  A handle has no fd (-1).  Of a kernel ring, and of memory of the caller, the handle
 * is a copy that keeps nothing alive.  Returns 0, or -EINVAL (the ring is closed).  Context: any thread, not while the last
 * handle is being closed. */
PERFRING_API int perfring_ring_share(struct perfring_ring *handle, const struct perfring_ring *ring);

/* Closes the ring's fd, and unmaps the ring with its last handle.  The last unmapping of a kernel ring detaches all events
 * that write into it; records of a perfring ring stay for other holders of its fd or file.  After fork, the child must not
 * close a ring that has had a writer: the mapping was not inherited, and its address may be in use again.  Context: any thread,
 * when no other thread uses this ring. */
PERFRING_API void perfring_ring_close(struct perfring_ring *ring);

/* Explains an error of perfring_ring_map, and what to change: sysctl, limit, capability.  error: what it returned.  Like snprintf:
 * returns the length of the whole text.  Context: any thread. */
PERFRING_API int64_t perfring_ring_explain(int error, uint32_t pages, char *buffer, size_t size);

/* ---- time stamps by the processor's own counter ---- */

/* Fits the processor's counter to CLOCK_MONOTONIC, and publishes time_mult, time_shift, time_zero and the capabilities user_time
 * and user_time_zero in the control page, under its sequence lock (docs/abi.md 3.3).  The first call takes 20 ms; later calls
 * refine the result.  Returns 0; -EINVAL (no ring of perfring's, or READ_ONLY); -EBUSY (a thread of any process is calibrating;
 * or one of another pid or time namespace was: whether that one still lives cannot be seen from here); -EOPNOTSUPP (the processor
 * has no steady counter).  Context: any thread, not signal handlers. */
PERFRING_EXPERIMENTAL int perfring_ring_calibrate(struct perfring_ring *ring);

PERFRING_END

#endif
