/* shared_ring.c - four processes write into one ring; one of them is killed, and what it left unfinished is counted. */
#include <perfring/reader.h>
#include <perfring/shared.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 4
#define COUNT 100000

struct record {
	struct perf_event_header header;
	uint64_t number;
};

static int write_on(int fd, uint16_t writer)
{
	struct perfring_writer_options options = {.policy = PERFRING_WRITER_WAIT, .wait_ns = 1000000000, .wake_fd = -1};
	struct record record = {{PERF_RECORD_SAMPLE, writer, sizeof(record)}, 0};
	struct perfring_claim claim;
	struct perfring_shared *shared;
	struct perfring_ring ring;

	if (perfring_ring_attach(&ring, fd, 0, NULL) || perfring_shared_open(&shared, &ring, &options))
		return 1;
	for (; record.number < COUNT; record.number++)
		perfring_shared_write(shared, NULL, &record, sizeof(record));
	if (writer == 0 && perfring_shared_reserve(shared, NULL, sizeof(record), &claim))
		kill(getpid(), SIGKILL); /* between reserve and commit */
	perfring_shared_close(shared);
	return 0;
}

int main(void)
{
	struct perfring_ring_options options = {.pages = 16, .flags = PERFRING_RING_STRICT};
	uint64_t next[WRITERS] = {0}, gaps = 0;
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_shared *shared;
	struct perfring_ring ring;
	unsigned living = WRITERS;

	if (perfring_ring_create(&ring, &options) || perfring_reader_open(&reader, &ring, 0))
		return 1;
	for (uint16_t writer = 0; writer < WRITERS; writer++)
		if (fork() == 0)
			_exit(write_on(ring.fd, writer));
	for (bool last = false; !last;) {
		while (living && waitpid(-1, NULL, WNOHANG) > 0)
			living--;
		last = !living;
		if (last && perfring_shared_open(&shared, &ring, NULL) == 0) /* recovers from dead writers */
			perfring_shared_close(shared);
		perfring_reader_observe(&reader);
		while (perfring_reader_next(&reader, &record) == 1)
			if (record->type == PERF_RECORD_SAMPLE) {
				gaps += ((const struct record *)record)->number != next[record->misc];
				next[record->misc] = ((const struct record *)record)->number + 1;
			}
		perfring_reader_return(&reader);
	}
	for (int writer = 0; writer < WRITERS; writer++)
		printf("%d: %llu records\n", writer, (unsigned long long)next[writer]);
	/* LOST records tell it before the next record; this, after the last one too. */
	printf("%llu gaps, %llu lost in unfinished records\n", (unsigned long long)gaps,
	       (unsigned long long)perfring_shared_lost(&ring));
	perfring_ring_close(&ring);
	return 0;
}
