/* flight_recorder.c - the last two seconds of the whole machine as perf.data: flight_recorder FILE
 *
 * Rings that overwrite cost little while they run.  They are read once, here after 5 seconds.
 */
#include <fcntl.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "flight_recorder: %s: %s\n", what, why);
	return 1;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .freq = 1, .sample_freq = 1000, .sample_id_all = 1};
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	struct perfring_file_writer *writer;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_item item;
	uint64_t now = 0;
	int ret;

	if (fd < 0)
		return refuse("usage", "flight_recorder FILE");
	perfring_event_parse("cpu-clock", &attr, NULL);
	attr.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD;
	attr.comm = attr.mmap = attr.mmap2 = attr.task = attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	if (perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) || perfring_session_open(&session, 128) ||
	    perfring_session_configure(session, PERFRING_SESSION_BACKWARD, PERFRING_FALLBACK_ALL))
		return refuse("session", "no memory");
	if (perfring_session_add(session, &attr, target) < 0)
		return refuse("cpu-clock", perfring_session_refusal(session));
	sleep(5);
	perfring_session_now(session, &now);
	if (perfring_session_snapshot(session))
		return refuse("snapshot", perfring_session_fault(session, NULL).what);
	if ((ret = perfring_file_writer_open(&writer, fd)) ||
	    (ret = perfring_file_writer_add_formats(writer, perfring_session_formats(session))) ||
	    (ret = perfring_file_writer_describe(writer, argv)) || (ret = perfring_file_writer_begin(writer)) ||
	    (ret = perfring_file_writer_put_kernel(writer)) || (ret = perfring_file_writer_put_process(writer, -1)))
		return refuse(argv[1], strerror(-ret));
	while (!ret && perfring_session_next(session, &item) == 1)
		if (item.time + UINT64_C(2000000000) >= now)
			ret = perfring_file_writer_put_item(writer, &item);
	if (ret || (ret = perfring_file_writer_finish(writer)))
		return refuse(argv[1], strerror(-ret));
	perfring_file_writer_close(writer);
	perfring_session_close(session);
	perfring_target_close(target);
	return 0;
}
