/* ring_concurrent.cc - moodycamel's queues (libconcurrentqueue-dev, libreaderwriterqueue-dev), under C names.
 *
 * The try_ forms: what was allocated when the queue was made is all there is, as in a ring.
 */
#include "bench.h"
#include "ring_peers.h"

#include <algorithm>
#include <vector>

enum {
	SLOTS = RING_SIZE / RING_RECORD,
	BULK = 64,
};

#if __has_include(<concurrentqueue/concurrentqueue.h>)
#include <concurrentqueue/concurrentqueue.h>

struct concurrent {
	moodycamel::ConcurrentQueue<ring_record> queue{SLOTS, RING_PRODUCERS, 0};
	moodycamel::ConsumerToken consumer{queue};
	moodycamel::ProducerToken producers[RING_PRODUCERS]{moodycamel::ProducerToken(queue),
							    moodycamel::ProducerToken(queue)};
	std::vector<ring_record> batch = std::vector<ring_record>(BULK);
};

static const char *open_concurrent(void **peer)
{
	concurrent *opened = new concurrent;

	std::fill(opened->batch.begin(), opened->batch.end(), *reinterpret_cast<const ring_record *>(ring_source));
	*peer = opened;
	return nullptr;
}

static void close_concurrent(void *peer)
{
	delete static_cast<concurrent *>(peer);
}

static int64_t write_token(void *peer, int producer, int64_t records)
{
	const ring_record *source = reinterpret_cast<const ring_record *>(ring_source);
	concurrent *to = static_cast<concurrent *>(peer);
	int64_t done = 0;

	while (done < records && to->queue.try_enqueue(to->producers[producer], *source)) {
		bench_use(0);
		done++;
	}
	return done;
}

static int64_t write_bulk(void *peer, int producer, int64_t records)
{
	concurrent *to = static_cast<concurrent *>(peer);
	int64_t done = 0;

	while (done < records) {
		int64_t count = std::min<int64_t>(records - done, BULK);

		if (!to->queue.try_enqueue_bulk(to->producers[producer], to->batch.begin(), static_cast<size_t>(count)))
			break;
		done += count;
	}
	return done;
}

static int64_t read_concurrent(void *peer)
{
	concurrent *from = static_cast<concurrent *>(peer);
	ring_record space[BULK];
	int64_t done = 0;

	while (size_t count = from->queue.try_dequeue_bulk(from->consumer, space, BULK)) {
		for (size_t i = 0; i < count; i++)
			bench_use(space[i].words[0]);
		done += static_cast<int64_t>(count);
	}
	return done;
}

const ring_peer ring_concurrent_token = {open_concurrent, nullptr, write_token,     nullptr,
					 read_concurrent, nullptr, close_concurrent};
const ring_peer ring_concurrent_bulk = {open_concurrent, nullptr, write_bulk,      nullptr,
					read_concurrent, nullptr, close_concurrent};
#else
static const char *open_no_concurrent(void **)
{
	return "SKIP-ENV: built without libconcurrentqueue-dev";
}

const ring_peer ring_concurrent_token = {open_no_concurrent, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
const ring_peer ring_concurrent_bulk = {open_no_concurrent, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
#endif

#if __has_include(<readerwriterqueue/readerwriterqueue.h>)
#include <readerwriterqueue/readerwriterqueue.h>

using readerwriter = moodycamel::ReaderWriterQueue<ring_record>;

static const char *open_readerwriter(void **peer)
{
	*peer = new readerwriter(SLOTS);
	return nullptr;
}

static void close_readerwriter(void *peer)
{
	delete static_cast<readerwriter *>(peer);
}

static int64_t write_readerwriter(void *peer, int, int64_t records)
{
	const ring_record *source = reinterpret_cast<const ring_record *>(ring_source);
	readerwriter *to = static_cast<readerwriter *>(peer);
	int64_t done = 0;

	while (done < records && to->try_enqueue(*source)) {
		bench_use(0);
		done++;
	}
	return done;
}

static int64_t read_readerwriter(void *peer)
{
	readerwriter *from = static_cast<readerwriter *>(peer);
	int64_t done = 0;

	for (; const ring_record *record = from->peek(); done++) {
		bench_use(record->words[0]);
		from->pop();
	}
	return done;
}

const ring_peer ring_readerwriter = {open_readerwriter, nullptr, write_readerwriter, nullptr,
				     read_readerwriter, nullptr, close_readerwriter};
#else
static const char *open_no_readerwriter(void **)
{
	return "SKIP-ENV: built without libreaderwriterqueue-dev";
}

const ring_peer ring_readerwriter = {open_no_readerwriter, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
#endif
