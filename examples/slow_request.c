/* slow_request.c - a flight recorder with a trigger: when a request takes longer than a bound, the last second of this process is
 * saved as perf.data: slow_request FILE */
#include <fcntl.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BOUND 0.1 /* s */

static volatile unsigned sum;

static void busy(double seconds)
{
	for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
		for (unsigned i = 0; i < 10000; i++)
			sum += i;
}

static void quick(void) { busy(0.01); sum++; }
static void slow(void) { busy(0.2); sum++; }

/* Rings that overwrite: nothing is read before it is wanted. */
static int observe(struct perfring_session **session, struct perf_event_attr *attr)
{
	struct perfring_target *target;

	perfring_event_parse("cpu-clock:u", attr, NULL);
	attr->sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_CALLCHAIN;
	attr->inherit = attr->sample_id_all = attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	if (perfring_target_open(&target) || perfring_target_add_cpus(target, NULL) ||
	    perfring_target_add_process(target, getpid()) || perfring_session_open(session, 32) ||
	    perfring_session_configure(*session, PERFRING_SESSION_BACKWARD, PERFRING_FALLBACK_ALL))
		return fputs("slow_request: no memory\n", stderr), -1;
	if (perfring_session_add(*session, attr, target) < 0)
		return fprintf(stderr, "slow_request: %s\n", perfring_session_refusal(*session)), -1;
	perfring_target_close(target);
	return 0;
}

/* The samples since `from`, and what this process has mapped. */
static int save(struct perfring_session *session, int fd, char **argv, uint64_t from)
{
	struct perfring_file_writer *writer;
	struct perfring_item item;
	int ret = perfring_session_snapshot(session), samples = 0;

	if (ret || (ret = perfring_file_writer_open(&writer, fd)))
		return ret;
	if (!(ret = perfring_file_writer_add_formats(writer, perfring_session_formats(session))) &&
	    !(ret = perfring_file_writer_describe(writer, argv)) && !(ret = perfring_file_writer_begin(writer)))
		ret = perfring_file_writer_put_process(writer, getpid());
	while (!ret && perfring_session_next(session, &item) == 1)
		if (item.time >= from && item.record->type == PERFRING_RECORD_SAMPLE) {
			ret = perfring_file_writer_put_item(writer, &item);
			samples++;
		}
	perfring_session_return(session);
	if (!ret)
		ret = perfring_file_writer_finish(writer);
	perfring_file_writer_close(writer);
	return ret ? ret : samples;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1, samples = 0;
	struct perf_event_attr attr = {.size = sizeof(attr), .freq = 1, .sample_freq = 1000};
	struct perfring_session *session;
	struct timespec begin, end;
	double seconds;

	if (fd < 0)
		return fputs("usage: slow_request FILE\n", stderr), 2;
	if (observe(&session, &attr))
		return 1;
	for (int request = 0; request < 100 && !samples; request++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		request == 50 ? slow() : quick();
		clock_gettime(CLOCK_MONOTONIC, &end);
		seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
		if (seconds < BOUND)
			continue;
		samples = save(session, fd, argv, (uint64_t)(end.tv_sec - 1) * 1000000000 + (uint64_t)end.tv_nsec);
		printf("request %d took %.2f s: %d samples in %s\n", request, seconds, samples, argv[1]);
	}
	perfring_session_close(session);
	return samples <= 0;
}
