/* killed_writers.c - events of four threads in files, read by another process after kill -9. */
#include <fcntl.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

static struct perfring_soft_point *point;

static void *raise_numbers(void *thread)
{
	struct timespec pause = {0, 20000};
	uint64_t words[2] = {(uintptr_t)thread, 0};

	perfring_soft_join(); /* makes this thread's ring */
	for (;; words[1]++) {
		perfring_soft_raise(point, 1, 0, words, sizeof(words));
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int write_on(const char *file, int begun)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_period = 1, .sample_id_all = 1};
	struct perfring_soft_event *event;
	pthread_t threads[THREADS];

	point = perfring_soft_define("app:number");
	attr.type = point->type;
	attr.config = point->config;
	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_RAW;
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map_files(event, 1024, file, -1))
		return 1;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, raise_numbers, (void *)i);
	for (close(begun);;) /* ends the parent's read */
		pause();
}

int main(void)
{
	char file[64], path[80];
	uint64_t next[THREADS] = {0}, words[2], gaps = 0, samples = 0;
	struct perfring_session *session;
	struct perfring_sample sample;
	struct perfring_item item;
	int fd, begun[2];
	pid_t child;

	snprintf(file, sizeof(file), "/tmp/killed_writers.%d", (int)getpid());
	if (pipe(begun))
		return 1;
	child = fork();
	if (child == 0)
		_exit(write_on(file, begun[1]));
	close(begun[1]);
	if (read(begun[0], path, sizeof(path))) /* until its threads are there, or it has ended */
		return 1;
	usleep(300000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);

	if (perfring_session_open(&session, 0))
		return 1;
	for (int i = 0; snprintf(path, sizeof(path), "%s.%d", file, i), (fd = open(path, O_RDWR | O_CLOEXEC)) >= 0; i++) {
		struct perfring_fault fault = {0, ""};
		struct perfring_ring ring;

		if (perfring_ring_attach(&ring, fd, 0, &fault)) { /* killed while it was made: nothing has been written into it */
			fprintf(stderr, "killed_writers: %s: %s\n", path, fault.what);
			close(fd), unlink(path);
			continue;
		}
		perfring_session_describe_ring(session, &ring); /* the others say the same */
		if (perfring_session_add_ring(session, &ring, -1, 0) < 0)
			return 1;
		perfring_ring_close(&ring); /* the session has its own handle */
		close(fd), unlink(path);
	}
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		if (item.format && !perfring_sample_decode(item.format, item.record, &sample, NULL) && sample.raw.size >= 16) {
			memcpy(words, sample.raw.data, sizeof(words));
			gaps += words[1] != next[words[0] % THREADS];
			next[words[0] % THREADS] = words[1] + 1;
			samples++;
		}
	perfring_session_close(session);
	printf("%llu events of %d threads, %llu gaps\n", (unsigned long long)samples, THREADS, (unsigned long long)gaps);
	return !samples || gaps;
}
