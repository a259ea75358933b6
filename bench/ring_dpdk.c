/* ring_dpdk.c - DPDK's ring with many producers (libdpdk-dev), in memory of its own: no EAL, no huge pages. */
#include <stdlib.h>

#include "bench.h"
#include "ring_peers.h"

#ifdef HAVE_DPDK
#include <rte_ring.h>

enum {
	SLOTS = RING_SIZE / RING_RECORD,
	BURST = 64,
};

static const char *open_dpdk(void **peer)
{
	ssize_t size = rte_ring_get_memsize_elem(RING_RECORD, SLOTS);
	struct rte_ring *ring = aligned_alloc(4096, ((size_t)size + 4095) / 4096 * 4096);

	rte_ring_init(ring, "bench", SLOTS, RING_F_SC_DEQ);
	*peer = ring;
	return NULL;
}

static int64_t write_dpdk(void *peer, int producer, int64_t records)
{
	struct rte_ring *ring = peer;
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++)
		if (rte_ring_mp_enqueue_elem(ring, ring_source, RING_RECORD))
			break;
	return done;
}

static int64_t read_dpdk(void *peer)
{
	struct ring_record space[BURST];
	struct rte_ring *ring = peer;
	int64_t done = 0;
	unsigned count, i;

	while ((count = rte_ring_sc_dequeue_burst_elem(ring, space, RING_RECORD, BURST, NULL)) > 0) {
		for (i = 0; i < count; i++)
			bench_use(space[i].words[0]);
		done += count;
	}
	return done;
}

const struct ring_peer ring_dpdk_mp = {.open = open_dpdk, .write = write_dpdk, .read = read_dpdk, .close = free};
#else
static const char *open_nothing(void **peer)
{
	*peer = NULL;
	return "SKIP-ENV: built without libdpdk-dev";
}

const struct ring_peer ring_dpdk_mp = {.open = open_nothing};
#endif
