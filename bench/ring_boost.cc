/* ring_boost.cc - Boost's queue of one producer and one consumer (libboost-dev), under C names; its size is known when
 * it is made, as a ring's is. */
#include "bench.h"
#include "ring_peers.h"

#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>

using queue = boost::lockfree::spsc_queue<ring_record>;

static const char *open_boost(void **peer)
{
	*peer = new queue(RING_SIZE / RING_RECORD);
	return nullptr;
}

static void close_boost(void *peer)
{
	delete static_cast<queue *>(peer);
}

static int64_t write_boost(void *peer, int, int64_t records)
{
	const ring_record *source = reinterpret_cast<const ring_record *>(ring_source);
	queue *to = static_cast<queue *>(peer);
	int64_t done = 0;

	while (done < records && to->push(*source)) {
		bench_use(0);
		done++;
	}
	return done;
}

static int64_t read_boost(void *peer)
{
	auto use = [](const ring_record &record) { bench_use(record.words[0]); };

	return static_cast<int64_t>(static_cast<queue *>(peer)->consume_all(use));
}

const ring_peer ring_boost = {open_boost, nullptr, write_boost, nullptr, read_boost, nullptr, close_boost};
#else
static const char *open_nothing(void **)
{
	return "SKIP-ENV: built without libboost-dev";
}

const ring_peer ring_boost = {open_nothing, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
#endif
