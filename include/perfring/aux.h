/* aux.h - the AUX area of a ring (docs/abi.md 8): raw bytes beside the records, written and read by position.
 *
 *     producer, on a ring of ours                        consumer, of any ring
 *       begin: how much room, from aux_tail (acquire)      observe: aux_head (acquire)
 *       ... writes the bytes ...                           ... reads the bytes ...
 *       end: an AUX record into the ring, then             return: aux_tail (release)
 *            aux_head (release), then the wakeup test
 *
 * The AUX record describes; only aux_head says what may be read. Positions are free-running on both sides: a masked
 * aux_tail makes the producer stop after the first lap. Our own areas are mapped twice in a row, so that every piece
 * is one piece; a kernel's cannot be, so there what runs over the end comes in two.
 *
 * As with the kernel's mappings, who opens chooses the mode: without PERFRING_RING_OVERWRITE the producer stops at what
 * the consumer has not returned; with it (snapshot mode) nothing is returned and the oldest bytes go.  Both ends of one
 * area choose alike.
 *
 * Which calls may run together: the producer's belong to the writer's thread and its handlers, are async-signal-safe
 * and leave errno alone; there is one transaction at a time, and who began it, or whom they hand it to, skips and
 * ends. Only perfring_aux_enable may come from other threads. The consumer's belong to one thread, here or in another
 * process, on a perfring_aux of its own.
 */
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
	struct perf_event_mmap_page *page; /* the ring's, which must outlive this */
	unsigned char *data;
	uint64_t size;         /* a power of two */
	uint64_t span;         /* bytes that lie in a row from any place below size: size, or 2 * size */
	uint64_t mapping_size; /* what close unmaps; 0: the memory is the caller's */
	uint64_t flags;        /* PERFRING_RING_OVERWRITE */

	/* the producer's */
	struct perfring_writer *writer;
	struct perfring_output *output;
	uint64_t position;    /* aux_head, our own copy */
	uint64_t room;        /* bytes that the open transaction may write */
	perfring_u64 begun;   /* a transaction is open */
	uint64_t woken;       /* the last boundary */
	uint64_t watermark;   /* effective; 0: none */
	perfring_u64 stopped; /* after TRUNCATED or no room: until perfring_aux_enable */

	/* the consumer's */
	uint64_t observed;
	uint64_t returned;
	uint64_t reserved[4];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_aux_area) == 160, "aux");

/* Maps the AUX area that the control page of a ring of ours names (perfring_ring_options.aux_pages). flags:
 * PERFRING_RING_OVERWRITE. Returns 0; -EINVAL (the ring has none, or is not ours, or was attached READ_ONLY, which
 * only a consumer with OVERWRITE may use); -EBADMSG (aux_offset and aux_size do not fit the data or the fd); what
 * fstat or mmap said. */
PERFRING_API int perfring_aux_open(struct perfring_aux_area *aux, const struct perfring_ring *ring, unsigned flags);

/* Describes an area that the caller mapped, for a consumer: `size` bytes, a power of two, such as the kernel's at the
 * perf fd's aux_offset.  flags: OVERWRITE when it is mapped read-only.  Returns 0, or -EINVAL. */
PERFRING_API int perfring_aux_wrap(struct perfring_aux_area *aux, struct perf_event_mmap_page *page, void *memory,
				   uint64_t size, unsigned flags);

PERFRING_API void perfring_aux_close(struct perfring_aux_area *aux);

/* ---- producer ---- */

/* Before the first begin; goes on where aux_head stands. `writer`, of this very ring, gets the AUX records, for
 * `output` (NULL: its own). watermark: the attr's aux_watermark; 0 for the default, half of the area; in overwrite
 * mode there is none. The area is not inherited by fork from here on. Returns 0; -EINVAL; what madvise said. Context:
 * the writer's thread. */
PERFRING_API int perfring_aux_produce(struct perfring_aux_area *aux, struct perfring_writer *writer,
				      struct perfring_output *output, uint32_t watermark);

/* Opens a transaction.  Returns the bytes that may be written from *room on, in one piece: in overwrite mode the whole
 * area.  0: there is no room; the producer is stopped and the reader woken.  -EBUSY: one is open already (no nesting);
 * -EAGAIN: stopped; -EINVAL: perfring_aux_produce was not called, or we are a fork's child. */
PERFRING_API int64_t perfring_aux_begin(struct perfring_aux_area *aux, unsigned char **room);

/* Passes over n bytes of the room, for alignment: they are published, and no record tells of them.  Returns the next
 * place; NULL when n is more than the room, or nothing is open, and then nothing has happened. */
PERFRING_API unsigned char *perfring_aux_skip(struct perfring_aux_area *aux, uint64_t n);

/* Closes it: `size` bytes were written, in overwrite mode perhaps several laps. An AUX record is written when size is
 * not 0 or a flag but OVERWRITE and FORMAT is set: {where they begin, size, flags}; in overwrite mode, like the
 * kernel's, {where the head is now, size, flags | OVERWRITE}. Other modes clear OVERWRITE. A record that the ring has
 * no room for is counted there; the bytes are published all the same. TRUNCATED wakes and stops. Returns 0; -EINVAL
 * (none open, more than the room), and then nothing has happened. */
PERFRING_API int perfring_aux_end(struct perfring_aux_area *aux, uint64_t size, uint64_t flags);

/* Lets a stopped producer go on.  A consumer asks for it after each wakeup, with nothing left to read too: the producer
 * may have stopped just before the room came back. */
PERFRING_API void perfring_aux_enable(struct perfring_aux_area *aux);

/* ---- consumer ---- */

/* Samples how far the producer is. Returns the bytes that can be read from *bytes on, in one piece, 0 when there are
 * none; -EBADMSG when the positions cannot be right. In overwrite mode: what was written since the last return, at
 * most the whole area; a producer that goes on overwrites it meanwhile, so stop it first. */
PERFRING_API int64_t perfring_aux_observe(struct perfring_aux_area *aux, const unsigned char **bytes);

/* Is done with n of the bytes observed: the producer may write there again. */
PERFRING_API void perfring_aux_return(struct perfring_aux_area *aux, uint64_t n);

PERFRING_END

#endif
