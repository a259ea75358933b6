/* debug_test.c - what PERFRING_DEBUG finds out: a writer in the wrong thread, two readers of one ring. */
#define PERFRING_DEBUG
#include "test.h"

#include <pthread.h>
#include <perfring/reader.h>
#include <perfring/writer.h>

TestSuite(debug, .timeout = 30);

static const struct perfring_ring_options one_page = {.pages = 1};

struct use {
	struct perfring_writer *writer;
	bool taken;
};

static void *write_elsewhere(void *argument)
{
	struct use *use = argument;
	struct perf_event_header record = {14, 0, 8};

	use->taken = perfring_writer_write(use->writer, NULL, &record, sizeof(record));
	return NULL;
}

/* Refused and counted: the ring is not touched. */
Test(debug, writer_in_another_thread)
{
	struct perf_event_header record = {14, 0, 8};
	struct use use = {NULL, true};
	struct perfring_ring ring;
	pthread_t thread;

	cr_assert_eq(perfring_ring_create(&ring, &one_page), 0);
	cr_assert_eq(perfring_writer_open(&use.writer, &ring, NULL), 0);
	cr_assert(perfring_writer_write(use.writer, NULL, &record, sizeof(record)));
	cr_assert_eq(pthread_create(&thread, NULL, write_elsewhere, &use), 0);
	pthread_join(thread, NULL);
	cr_assert_not(use.taken);
	cr_assert_eq(perfring_writer_lost(use.writer), 1);
	cr_assert_eq(perfring_page_observe(ring.page), 8);
	cr_assert(perfring_writer_write(use.writer, NULL, &record, sizeof(record)));
	cr_assert_eq(perfring_page_observe(ring.page), 40); /* LOST, and the record */
	perfring_writer_close(use.writer);
	perfring_ring_close(&ring);
}

Test(debug, two_readers)
{
	struct perf_event_header bytes = {14, 0, 8};
	const struct perf_event_header *record;
	struct perfring_reader first, second;
	struct perfring_writer *writer;
	struct perfring_ring ring;

	cr_assert_eq(perfring_ring_create(&ring, &one_page), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	cr_assert_eq(perfring_reader_open(&first, &ring, 0), 0);
	cr_assert_eq(perfring_reader_open(&second, &ring, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(perfring_writer_write(writer, NULL, &bytes, sizeof(bytes)));
	cr_assert_eq(perfring_reader_observe(&first), 24);
	cr_assert_eq(perfring_reader_next(&first, &record), 1);
	perfring_reader_return(&first);
	/* The second returns what the first has: from then on it is told, and moves nothing. */
	cr_assert_eq(perfring_reader_observe(&second), 24);
	cr_assert_eq(perfring_reader_next(&second, &record), 1);
	cr_assert_eq(perfring_reader_next(&second, &record), 1);
	perfring_reader_return(&second);
	cr_assert_eq(ring.page->data_tail, 8);
	cr_assert_eq(perfring_reader_observe(&second), -EBADMSG);
	cr_assert_not_null(second.fault.what);
	/* The other goes on. */
	cr_assert_eq(perfring_reader_observe(&first), 16);
	perfring_reader_close(&first);
	perfring_reader_close(&second);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}
