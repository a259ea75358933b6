/* spans.c - how long a program's own queries take, as a perf.data file that perf and perfring open: spans FILE
 *
 * perfring export and flame show each span as an interval of its thread.
 */
#include <fcntl.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct perfring_soft_point *query;

static void answer(long ms)
{
	uint64_t begin = perfring_soft_span_begin(query);
	char text[32];

	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
	perfring_soft_span_end(query, begin, text, (uint32_t)snprintf(text, sizeof(text), "of %ld ms", ms));
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1, ret = -1;
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1, .sample_id_all = 1};
	struct perfring_file_writer *writer;
	struct perfring_soft_event *event;
	struct perfring_session *session;
	struct perfring_item item;

	query = perfring_soft_define("span:query");
	if (!query || fd < 0)
		return fputs("usage: spans FILE\n", stderr), 2;
	attr.type = query->type;
	attr.config = query->config;
	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ADDR |
			   PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_RAW;
	attr.comm = attr.mmap = attr.mmap2 = attr.task = 1;
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map(event, 64, -1) ||
	    perfring_soft_put_state(event) < 0 || perfring_session_open(&session, 0) ||
	    perfring_session_add_set(session, perfring_soft_rings(event), -1, 0))
		return perror("spans"), 1;
	for (long ms = 1; ms <= 8; ms *= 2)
		answer(ms);
	perfring_session_flush(session);
	if (!perfring_file_writer_open(&writer, fd)) {
		ret = perfring_file_writer_add_event(writer, &attr, query->name);
		if (!ret)
			ret = perfring_file_writer_add_id(writer, 0, perfring_soft_id(event));
		if (!ret)
			ret = perfring_file_writer_describe(writer, argv);
		if (!ret)
			ret = perfring_file_writer_begin(writer);
		while (!ret && perfring_session_next(session, &item) == 1)
			ret = perfring_file_writer_put_item(writer, &item);
		if (!ret)
			ret = perfring_file_writer_finish(writer);
		perfring_file_writer_close(writer);
	}
	perfring_session_close(session);
	perfring_soft_close(event);
	return ret ? fprintf(stderr, "spans: %s\n", strerror(abs(ret))), 1 : 0;
}
