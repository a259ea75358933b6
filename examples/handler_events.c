/* handler_events.c - a program's own event, raised in a signal handler too, read by another process while it runs, and saved so that
 * perf opens it: handler_events FILE */
#include <fcntl.h>
#include <perfring/file_writer.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct perfring_soft_point *point;

static void on_timer(int number)
{
	(void)number;
	perfring_soft_raise(point, 1, 0, "tick", 4); /* also in the middle of a raise of main's */
}

/* The observed process: a ring for each thread, in files FILE.0, FILE.1 ... */
static int work(const char *file)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1, .sample_id_all = 1};
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct perfring_soft_event *event;

	point = perfring_soft_define("app:event");
	attr.type = point->type;
	attr.config = point->config;
	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU |
			   PERFRING_SAMPLE_RAW;
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map_files(event, 256, file, -1))
		return 1;
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	for (volatile int i = 0; i < 300000000; i++) /* the timer's ticks come in between */
		if (i % 3000 == 0)
			perfring_soft_raise(point, 1, 0, "work", 4);
	return 0;
}

/* The ring of its only thread, once it is whole. */
static int attach(struct perfring_ring *ring, const char *path, pid_t child)
{
	int fd, ret = -1;

	while (ret && waitpid(child, NULL, WNOHANG) == 0) {
		usleep(1000);
		fd = open(path, O_RDWR | O_CLOEXEC);
		ret = perfring_ring_attach(ring, fd, 0, NULL); /* which keeps a duplicate */
		close(fd);
	}
	unlink(path);
	return ret;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct perfring_file_writer *writer;
	struct perfring_session *session;
	struct perfring_totals totals;
	struct perfring_item item;
	struct perfring_ring ring;
	char file[4000], path[4096];
	bool over = false;
	uint64_t id;
	pid_t child;
	int ret;

	if (fd < 0)
		return fputs("usage: handler_events FILE\n", stderr), 2;
	snprintf(file, sizeof(file), "%s.ring", argv[1]);
	snprintf(path, sizeof(path), "%s.0", file);
	if ((child = fork()) == 0)
		_exit(work(file));
	if (attach(&ring, path, child) || perfring_ring_attr(&ring, &attr, &id) != 1 || perfring_session_open(&session, 0) ||
	    perfring_session_describe_ring(session, &ring) < 0 || perfring_session_add_ring(session, &ring, -1, 0) < 0)
		return fputs("handler_events: no ring\n", stderr), 1;
	ret = perfring_file_writer_open(&writer, fd) || perfring_file_writer_add_event(writer, &attr, "app:event") < 0 ||
	      perfring_file_writer_add_id(writer, 0, id) || perfring_file_writer_describe(writer, argv) ||
	      perfring_file_writer_begin(writer);
	while (!ret && !over) {
		over = waitpid(child, NULL, WNOHANG) != 0;
		if (over)
			perfring_session_flush(session);
		else
			perfring_session_wait(session, 10); /* ms */
		while (!ret && perfring_session_next(session, &item) == 1)
			ret = perfring_file_writer_put_item(writer, &item);
		perfring_session_return(session);
	}
	ret = ret || perfring_file_writer_finish(writer);
	perfring_session_totals(session, &totals);
	printf("%llu events, %llu lost\n", (unsigned long long)totals.samples, (unsigned long long)totals.lost);
	return ret;
}
