/* ring.h - ring memory: one control page, then 2^n data pages (ABI.md 3).
 *
 * A ring is only where the bytes are.  Whoever reads it opens a reader on it (reader.h).
 *
 *     page                data, size bytes                 (span - size bytes: the data again, if mapped twice)
 *     | control page      | 2^n pages                      |
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
	void *mapping; /* what close unmaps; NULL when the memory is the caller's */
	uint64_t mapping_size;
	uint64_t flags; /* enum perfring_ring_flag */
	uint64_t reserved[1];
};

static_assert(sizeof(void *) != 8 || sizeof(struct perfring_ring) == 64, "ring");

enum perfring_ring_flag {
	PERFRING_RING_OVERWRITE = 1, /* read-only mapping: the kernel overwrites what was not read (ABI.md 7.8) */
};

/* Maps the ring of a perf_event_open fd: `pages` data pages, a power of two (0 maps the control page alone).  Kernel
 * rings cannot be mapped twice, so span == size.  The mapping outlives the fd.  Returns 0, -EINVAL, or what mmap said:
 * -EPERM is the memory budget, see perfring_ring_explain.  Context: any thread. */
PERFRING_API int perfring_ring_map(struct perfring_ring *ring, int fd, uint32_t pages, unsigned flags);

/* Describes memory laid out like the kernel's mapping: a control page of sysconf(_SC_PAGESIZE) bytes, then data.  The
 * page's data_offset and data_size count when they are not 0, and must lie inside `size`.  The memory stays the
 * caller's.  Returns 0, or -EINVAL when that is no ring. */
PERFRING_API int perfring_ring_over(struct perfring_ring *ring, void *memory, size_t size);

/* Unmaps.  Every event that writes into a kernel ring is detached from it by the last unmapping. */
PERFRING_API void perfring_ring_close(struct perfring_ring *ring);

/* Why perfring_ring_map said `error`, and what to change: the sysctl, the limit and the capability by name.  Like
 * snprintf: returns the length of the whole text. */
PERFRING_API int64_t perfring_ring_explain(int error, uint32_t pages, char *room, size_t size);

PERFRING_END

#endif
