/* self_profile.c - a program that profiles itself: its own CPU time, without privilege and without the kernel's events. */
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t work(void)
{
	static volatile uint64_t sum;

	for (uint64_t i = 0; i < 300000000; i++)
		sum += i * i;
	return sum;
}

int main(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK,
				       .freq = 1, .sample_freq = 250, .sample_id_all = 1};
	struct perfring_soft_event *event;
	struct perfring_session *session;
	struct perfring_sample sample;
	struct perfring_item item;
	uint64_t inside = 0, all = 0;

	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD;
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map(event, 64, -1) ||
	    perfring_session_open(&session, 0) || perfring_session_add_set(session, perfring_soft_rings(event), -1, 0))
		return perror("self_profile"), 1;
	work(); /* here and in every thread that joins (perfring_soft_join) */
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		if (item.record->type == PERFRING_RECORD_SAMPLE && !perfring_sample_decode(item.format, item.record, &sample, NULL)) {
			all += sample.period; /* ns of CPU time */
			if (sample.ip - (uintptr_t)work < 200)
				inside += sample.period;
		}
	printf("%.2f s of CPU time, %.0f %% of it in work\n", (double)all / 1e9, 100 * (double)inside / (double)(all + !all));
	perfring_session_close(session);
	perfring_soft_close(event);
	return inside * 2 < all;
}
