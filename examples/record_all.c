/* record_all.c - every CPU into a file that perf opens, what runs already included: record_all FILE [SECONDS]
 *
 * The bytes of each ring are moved as they are, whole runs of records with one system call.
 */
#include <fcntl.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "record_all: %s: %s\n", what, why);
	return 1;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .freq = 1, .sample_freq = 999, .sample_id_all = 1, .disabled = 1};
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	double end, seconds = argc > 2 ? atof(argv[2]) : 1;
	struct perfring_file_writer *writer;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals;
	struct perfring_span span;
	bool last = false;
	int ret;

	if (fd < 0)
		return refuse("usage", "record_all FILE [SECONDS]");
	perfring_event_parse("cpu-clock", &attr, NULL);
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD |
			   PERFRING_SAMPLE_CALLCHAIN;
	attr.comm = attr.mmap = attr.mmap2 = attr.task = 1;
	if (perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) || perfring_session_open(&session, 0) ||
	    perfring_session_configure(session, PERFRING_SESSION_SHRINK, PERFRING_FALLBACK_ALL))
		return refuse("session", "no memory");
	if (perfring_session_add(session, &attr, target) < 0)
		return refuse("cpu-clock", perfring_session_refusal(session));
	if ((ret = perfring_file_writer_open(&writer, fd)) ||
	    (ret = perfring_file_writer_add_formats(writer, perfring_session_formats(session))) ||
	    (ret = perfring_file_writer_describe(writer, argv)) || (ret = perfring_file_writer_begin(writer)) ||
	    (ret = perfring_session_enable(session)) || /* from here on the rings have what changes */
	    (ret = perfring_file_writer_put_kernel(writer)) || (ret = perfring_file_writer_put_process(writer, -1)))
		return refuse(argv[1], strerror(-ret));
	for (end = now() + seconds; !ret && !last;) {
		last = now() >= end;
		if (last) {
			perfring_session_disable(session);
			perfring_session_flush(session);
		} else {
			perfring_session_wait(session, 100); /* ms */
		}
		while (!ret && perfring_session_next_span(session, &span) == 1)
			ret = perfring_file_writer_write(writer, span.pieces, (int)span.count);
		perfring_session_return(session);
		if (!ret)
			ret = perfring_file_writer_end_round(writer);
	}
	perfring_session_totals(session, &totals);
	if (!ret)
		ret = perfring_file_writer_put_times(writer, totals.first_time, totals.last_time);
	if (ret || (ret = perfring_file_writer_finish(writer)))
		return refuse(argv[1], strerror(-ret));
	printf("%llu samples of %u CPUs, %llu lost\n", (unsigned long long)totals.samples, perfring_session_ring_count(session),
	       (unsigned long long)totals.lost);
	perfring_file_writer_close(writer);
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
