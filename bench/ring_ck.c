/* ring_ck.c - the rings of Concurrency Kit (libck-dev). */
#include <stdlib.h>

#include "bench.h"
#include "ring_peers.h"

#if __has_include(<ck_ring.h>)
#include <ck_ring.h>

enum {
	SLOTS = RING_SIZE / RING_RECORD,
};

CK_RING_PROTOTYPE(record, ring_record)

struct ck {
	ck_ring_t ring;
	ck_ring_buffer_t *slots;
};

static const char *open_ck(void **peer)
{
	struct ck *ck = aligned_alloc(128, (sizeof(*ck) + 127) / 128 * 128);

	ck->slots = aligned_alloc(4096, SLOTS * sizeof(struct ring_record));
	ck_ring_init(&ck->ring, SLOTS);
	*peer = ck;
	return NULL;
}

static void close_ck(void *peer)
{
	struct ck *ck = peer;

	free(ck->slots);
	free(ck);
}

static int64_t write_spsc(void *peer, int producer, int64_t records)
{
	struct ring_record *source = (struct ring_record *)(void *)ring_source;
	struct ck *ck = peer;
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++)
		if (!CK_RING_ENQUEUE_SPSC(record, &ck->ring, (struct ring_record *)(void *)ck->slots, source))
			break;
	return done;
}

static int64_t read_spsc(void *peer)
{
	struct ring_record record;
	struct ck *ck = peer;
	int64_t done = 0;

	for (; CK_RING_DEQUEUE_SPSC(record, &ck->ring, (struct ring_record *)(void *)ck->slots, &record); done++)
		bench_use(record.words[0]);
	return done;
}

static int64_t write_mpsc(void *peer, int producer, int64_t records)
{
	struct ring_record *source = (struct ring_record *)(void *)ring_source;
	struct ck *ck = peer;
	int64_t done;

	(void)producer;
	for (done = 0; done < records; done++)
		if (!CK_RING_ENQUEUE_MPSC(record, &ck->ring, (struct ring_record *)(void *)ck->slots, source))
			break;
	return done;
}

static int64_t read_mpsc(void *peer)
{
	struct ring_record record;
	struct ck *ck = peer;
	int64_t done = 0;

	for (; CK_RING_DEQUEUE_MPSC(record, &ck->ring, (struct ring_record *)(void *)ck->slots, &record); done++)
		bench_use(record.words[0]);
	return done;
}

const struct ring_peer ring_ck_spsc = {.open = open_ck, .write = write_spsc, .read = read_spsc, .close = close_ck};
const struct ring_peer ring_ck_mpsc = {.open = open_ck, .write = write_mpsc, .read = read_mpsc, .close = close_ck};
#else
static const char *open_nothing(void **peer)
{
	*peer = NULL;
	return "SKIP-ENV: built without libck-dev";
}

const struct ring_peer ring_ck_spsc = {.open = open_nothing};
const struct ring_peer ring_ck_mpsc = {.open = open_nothing};
#endif
