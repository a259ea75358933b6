/* aux.h - the AUX area of a ring (docs/abi.md 8): raw bytes beside the records, written and read by position.
 *
 *     producer, on a perfring ring                       consumer, of any ring
 *       begin: free space, by aux_tail (acquire)           observe: aux_head (acquire)
 *       ... writes the bytes ...                           ... reads the bytes ...
 *       end: an AUX record into the ring, then             return: aux_tail (release)
 *            aux_head (release), then the wakeup test
 *
 * The AUX record only describes the bytes; aux_head says what may be read.  Positions are free-running on both sides: a
 * masked aux_tail would stop the producer after the first lap.  Areas of perfring are mapped twice in a row, so that each
 * piece is contiguous; a kernel's cannot be, and a piece that wraps around comes in two.
 *
 * The mode is chosen at opening, by both ends alike.  Without PERFRING_RING_OVERWRITE the producer stops at bytes that the
 * consumer has not returned; with it (snapshot mode) nothing is returned, and the oldest bytes are overwritten.
 *
 * Context: the producer's functions belong to the writer's thread and its handlers, are async-signal-safe, and keep errno.
 * One transaction is open at a time.  perfring_aux_enable may be called by any thread.  The consumer's functions belong to
 * one thread, of this or another process, with a perfring_aux_area of its own. */
#ifndef PERFRING_AUX_H
#define PERFRING_AUX_H

#include <perfring/page.h>
#include <perfring/ring.h>
#include <perfring/writer.h>

PERFRING_BEGIN

/* The flags of an AUX record (docs/abi.md 5), for end. */
enum perfring_aux_flag {
	PERFRING_AUX_TRUNCATED = 1,
	PERFRING_AUX_OVERWRITE = 2,
	PERFRING_AUX_PARTIAL = 4,
	PERFRING_AUX_COLLISION = 8,
	PERFRING_AUX_FORMAT = 0xff00, /* the PMU's own; as in the newest kernels, no reason for a record (docs/abi.md 8) */
};

struct perfring_aux_area {
	struct perf_event_mmap_page *page; /* the ring's, which must stay mapped */
	unsigned char *data;
	uint64_t size;         /* a power of two */
	uint64_t span;         /* bytes mapped from data on: size, or 2 * size if the area is mapped twice */
	uint64_t mapping_size; /* what close unmaps; 0: the memory is the caller's */
	uint64_t flags;        /* PERFRING_RING_OVERWRITE */

	/* the producer's */
	struct perfring_writer *writer;
	struct perfring_output *output;
	uint64_t position;    /* aux_head, our own copy */
	uint64_t space;       /* bytes that the open transaction may write */
	perfring_u64 begun;   /* a transaction is open */
	uint64_t woken;       /* the last boundary */
	uint64_t watermark;   /* effective; 0: none */
	perfring_u64 stopped; /* after TRUNCATED or no space: until perfring_aux_enable */

	/* the consumer's */
	uint64_t observed;
	uint64_t returned;
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_aux_area) == 160, "aux");

/* Maps the AUX area that the control page of a ring of ours names (perfring_ring_options.aux_pages). flags:
 * PERFRING_RING_OVERWRITE.  Returns 0; -EINVAL (the ring has none, or is not ours, or was attached READ_ONLY, which
 * only a consumer with OVERWRITE may use); -EBADMSG (aux_offset and aux_size do not fit the data or the fd); -errno of fstat or
 * mmap. */
PERFRING_EXPERIMENTAL int perfring_aux_open(struct perfring_aux_area *aux, const struct perfring_ring *ring, unsigned flags);

/* Describes an area that the caller mapped, for a consumer: `size` bytes, a power of two, such as the kernel's at the
 * perf fd's aux_offset.  flags: OVERWRITE when it is mapped read-only.  Returns 0, or -EINVAL. */
PERFRING_API int perfring_aux_wrap(struct perfring_aux_area *aux, struct perf_event_mmap_page *page, void *memory,
				   uint64_t size, unsigned flags);

/* Unmaps the area, unless it is the caller's memory.  Context: threads, when neither end uses it any more. */
PERFRING_API void perfring_aux_close(struct perfring_aux_area *aux);

/* ---- producer ---- */

/* Makes this the producer's end, before the first begin; continues at aux_head.  writer: the writer of this ring, into which the AUX
 * records go, for `output` (NULL: the writer's own); both must stay.  watermark: the attr's aux_watermark in bytes; 0: half of the
 * area; without effect in overwrite mode.  From now on fork does not inherit the area.  Returns 0; -EINVAL; -errno of madvise.
 * Context: the writer's thread. */
PERFRING_EXPERIMENTAL int perfring_aux_produce(struct perfring_aux_area *aux, struct perfring_writer *writer,
				      struct perfring_output *output, uint32_t watermark);

/* Begins a transaction.  Returns the number of bytes that may be written at *space, contiguous; in overwrite mode the whole
 * area; 0 if there is no space: then the producer is stopped and the reader woken; -EBUSY: a transaction is open (they do not
 * nest); -EAGAIN: stopped; -EINVAL: perfring_aux_produce was not called, or this is a child after fork. */
PERFRING_EXPERIMENTAL int64_t perfring_aux_begin(struct perfring_aux_area *aux, unsigned char **space);

/* Skips n bytes for alignment: they are published without a record.  Returns the next place; NULL, without an effect, if n is
 * more than the space, or no transaction is open. */
PERFRING_EXPERIMENTAL unsigned char *perfring_aux_skip(struct perfring_aux_area *aux, uint64_t n);

/* Ends the transaction.  size: the number of bytes written, in overwrite mode perhaps several laps.  Writes an AUX record if
 * size is not 0, or flags has more than OVERWRITE and FORMAT: {position of the first byte, size, flags}; in overwrite mode,
 * as the kernel, {new head, size, flags | OVERWRITE}.  Other modes clear OVERWRITE.  If the ring has no space for the record,
 * it counts it as lost; the bytes are published nevertheless.  TRUNCATED wakes the reader and stops the producer.  Returns 0;
 * -EINVAL, without an effect (no transaction, more than the space). */
PERFRING_EXPERIMENTAL int perfring_aux_end(struct perfring_aux_area *aux, uint64_t size, uint64_t flags);

/* Enables a stopped producer.  A consumer calls it after each wakeup, also if there is nothing to read: the producer may have
 * stopped just before space was returned. */
PERFRING_API void perfring_aux_enable(struct perfring_aux_area *aux);

/* ---- consumer ---- */

/* Samples the producer's position.  Returns the number of bytes that can be read at *bytes, contiguous; 0: none; -EBADMSG:
 * impossible positions.  In overwrite mode: the bytes written since the last return, at most the whole area; stop the
 * producer first, or it overwrites them meanwhile. */
PERFRING_API int64_t perfring_aux_observe(struct perfring_aux_area *aux, const unsigned char **bytes);

/* Returns n of the observed bytes: the producer may overwrite them. */
PERFRING_API void perfring_aux_return(struct perfring_aux_area *aux, uint64_t n);

PERFRING_END

#endif
