/* own_pmu.c - a PMU of the program's own: an event of the kernel's, the processor's too, in each thread, read without a system call
 * where the processor lets a thread read its counter (rdpmc). */
#include <perfring/event.h>
#include <perfring/page.h>
#include <perfring/ring.h>
#include <perfring/soft.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct perf_event_attr kernels = {.size = sizeof(kernels)};

struct counting {
	int fd;
	struct perfring_ring page; /* its control page alone */
};

static int init(const struct perf_event_attr *attr, struct perfring_soft_point **point)
{
	(void)point; /* it has none: the event is read */
	return attr->config ? -ENOENT : 0;
}

static int add(struct perfring_soft_counter *counter)
{
	struct counting *counting = calloc(1, sizeof(*counting));

	if (!counting)
		return -ENOMEM;
	counting->fd = perfring_event_open(&kernels, (int32_t)counter->tid, -1, -1, 0);
	if (counting->fd < 0) {
		int error = counting->fd;

		free(counting);
		return error;
	}
	(void)perfring_ring_map(&counting->page, counting->fd, 0, 0); /* without it: by read(2) */
	counter->data = counting;
	return 0;
}

static uint64_t read_counter(struct perfring_soft_counter *counter, bool here)
{
	const struct counting *counting = counter->data;
	struct perfring_page_count count;
	uint64_t value = 0;

	if (here && counting->page.page && !perfring_page_read(counting->page.page, &count) && count.is_counting)
		return count.value;
	return read(counting->fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static void del(struct perfring_soft_counter *counter)
{
	struct counting *counting = counter->data;

	perfring_ring_close(&counting->page);
	close(counting->fd);
	free(counting);
}

static struct perfring_soft_pmu pmu = {
	.type = PERFRING_SOFT_TYPE, .init = init, .add = add, .del = del, .read = read_counter};

static void *work(void *sum)
{
	perfring_soft_join();
	for (volatile int i = 0; i < 10000000; i++)
		;
	memset(sum, 1, 1 << 20);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "instructions:u";
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct perfring_soft_event *event;
	pthread_t thread;
	uint64_t count;
	char text[512];
	int ret;

	if (perfring_event_parse(name, &kernels, NULL) || perfring_soft_pmu_register(&pmu))
		return fprintf(stderr, "own_pmu: %s: no such event\n", name), 1;
	attr.type = pmu.type;
	ret = perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL);
	if (ret) {
		perfring_event_explain(ret, &kernels, 0, -1, text, sizeof(text));
		return fprintf(stderr, "own_pmu: %s\n", text), 1;
	}
	pthread_create(&thread, NULL, work, malloc(1 << 20));
	pthread_join(thread, NULL);
	perfring_soft_read(event, &count, sizeof(count));
	printf("%llu %s\n", (unsigned long long)count, name);
	perfring_soft_close(event);
}
