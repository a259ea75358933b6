/* ring.c - a ring of one's own between two processes: one writes, from its signal handler too; the other reads.
 *
 * The ring's fd is all that the other needs.  Records that do not fit are counted, and LOST records say how many. */
#include <perfring/reader.h>
#include <perfring/wakeup.h>
#include <perfring/writer.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 10000000, MAIN = 1, HANDLER = 2 }; /* MAIN, HANDLER: where a record was written */

struct record {
	struct perf_event_header header;
	uint64_t number;
};

static struct perfring_writer *writer;
static volatile uint64_t in_handler;

static void put(uint16_t where, uint64_t number)
{
	struct perfring_claim claim;
	struct record *record = perfring_writer_reserve(writer, NULL, sizeof(*record), &claim);

	if (!record)
		return; /* full: counted */
	record->header = (struct perf_event_header){PERF_RECORD_SAMPLE, where, sizeof(*record)};
	record->number = number;
	perfring_writer_commit(writer, &claim);
}

static void on_timer(int signal)
{
	(void)signal;
	put(HANDLER, in_handler++);
}

static int write_all(int fd)
{
	/* A full ring is waited for, but not in a handler that interrupts a record. */
	struct perfring_writer_options options = {.policy = PERFRING_WRITER_WAIT, .wait_ns = 1000000000, .wake_fd = -1};
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct perfring_ring ring;

	if (perfring_ring_attach(&ring, fd, 0, NULL) < 0 || perfring_writer_open(&writer, &ring, &options) < 0)
		return 1;
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t i = 0; i < COUNT; i++)
		put(MAIN, i);
	setitimer(ITIMER_REAL, &never, NULL);
	perfring_writer_flush(writer);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	return 0;
}

int main(void)
{
	struct perfring_ring_options options = {.pages = 64};
	uint64_t counts[3] = {0, 0, 0}, lost = 0, number;
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_ring ring;
	int64_t there = 0;
	bool over = false;
	pid_t child;

	if (perfring_ring_create(&ring, &options) < 0 || perfring_reader_open(&reader, &ring, 0) < 0)
		return 1;
	if ((child = fork()) == 0)
		_exit(write_all(ring.fd));
	while (!over || there > 0) {
		over = over || waitpid(child, NULL, WNOHANG) != 0;
		there = perfring_reader_observe(&reader);
		if (there < 0)
			return fprintf(stderr, "ring: %s\n", reader.fault.what), 1;
		while (perfring_reader_next(&reader, &record) == 1) {
			if (record->type == PERF_RECORD_LOST)
				lost += ((const uint64_t *)(const void *)record)[2];
			else
				counts[record->misc % 3]++;
		}
		perfring_reader_return(&reader);
		if (there == 0 && !over)
			perfring_wakeup_wait(&ring, reader.position, 10000000);
	}
	number = perfring_ring_state_of(ring.page)->lost_total;
	printf("%llu of main, %llu of the handler, %llu lost by LOST records, %llu after the last record\n",
	       (unsigned long long)counts[MAIN], (unsigned long long)counts[HANDLER], (unsigned long long)lost,
	       (unsigned long long)(number - lost));
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	return counts[MAIN] + counts[HANDLER] + number < COUNT;
}
