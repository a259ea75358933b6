/* ring_peers.h - what ring_bench.c measures perfring against: each peer by the same few calls.
 *
 * A peer's loop over records is in its own file, where the compiler sees all of the peer that is inline.  Its ring holds
 * 1 MiB of records; what it stores are the first RECORD bytes of ring_source, by value, as perfring does.
 */
#ifndef RING_PEERS_H
#define RING_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct perf_event_mmap_page;

enum {
	RING_SIZE = 1 << 20,
	RING_RECORD = 64,
	RING_PRODUCERS = 2,
};

/* By value, in the containers of the peers. */
struct ring_record {
	uint64_t words[RING_RECORD / sizeof(uint64_t)];
};

/* A whole record, its header first; warm.  The writer puts its size into the header. */
extern unsigned char ring_source[4096];

struct ring_peer {
	const char *(*open)(void **peer);       /* NULL, or the reason why there is none, for bench_skip */
	void (*join)(void *peer, int producer); /* in the producer's thread; NULL where there is nothing to do */
	/* Up to that number of records; stops when it is full.  Returns how many. */
	int64_t (*write)(void *peer, int producer, int64_t records);
	void (*finish)(void *peer, int producer); /* what was written is to be seen now; NULL where it is at once */
	/* Reads what there is, one word of each record at the least, and gives the space back.  Returns how many.  NULL
	 * where old records are overwritten. */
	int64_t (*read)(void *peer);
	void (*leave)(void *peer, int producer); /* as join */
	void (*close)(void *peer);
};

extern const struct ring_peer ring_ck_spsc, ring_ck_mpsc;
extern const struct ring_peer ring_dpdk_mp;
extern const struct ring_peer ring_boost;
extern const struct ring_peer ring_concurrent_token, ring_concurrent_bulk, ring_readerwriter;
extern const struct ring_peer ring_lttng_fields, ring_lttng_array;

/* ---- the kernel's algorithm (ring_kernel.c), on the memory of a ring of ours ---- */

struct ring_kernel;

struct ring_kernel *ring_kernel_open(struct perf_event_mmap_page *page, unsigned char *data, uint64_t size);
void ring_kernel_close(struct ring_kernel *ring);
/* Records of ring_source, size bytes each.  Returns how many fitted. */
int64_t ring_kernel_unlocked(struct ring_kernel *ring, uint64_t size, int64_t records);
int64_t ring_kernel_locked(struct ring_kernel *ring, uint64_t size, int64_t records);

#ifdef __cplusplus
}
#endif

#endif
