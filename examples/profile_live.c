/* profile_live.c - a program that prints its own profile while it runs, without a file and without privilege: collapsed stacks with the
 * names of its functions. */
#include <perfring/profile_fill.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <stdio.h>
#include <unistd.h>

static volatile uint64_t sum, rounds = 200000000;

__attribute__((noinline)) static void multiply(uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		sum += i * i;
}

__attribute__((noinline)) static void work(void)
{
	multiply(rounds);
	sum++; /* after the call, so that it is one */
}

int main(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK,
				       .freq = 1, .sample_freq = 250, .sample_id_all = 1};
	struct perfring_profile_fill *fill;
	struct perfring_soft_event *event;
	struct perfring_profile *profile;
	struct perfring_session *session;
	struct perfring_item item;
	int ret;

	attr.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CALLCHAIN |
			   PERFRING_SAMPLE_PERIOD;
	if (perfring_soft_open(&event, &attr, PERFRING_SOFT_PROCESS, NULL) || perfring_soft_map(event, 64, -1) ||
	    perfring_soft_set_unwind(event, true) || perfring_session_open(&session, 0) ||
	    perfring_session_add_set(session, perfring_soft_rings(event), -1, 0) || perfring_profile_open(&profile, NULL) ||
	    perfring_profile_fill_open(&fill, profile, &(struct perfring_profile_fill_options){.session = session}) ||
	    perfring_names_take_process(perfring_profile_fill_names(fill), (uint32_t)getpid()))
		return perror("profile_live"), 1;
	work(); /* a program in service would read and write a profile in a thread of its own, each minute */
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		perfring_profile_fill_item(fill, &item, NULL);
	perfring_session_return(session);
	ret = perfring_profile_write(profile, PERFRING_PROFILE_COLLAPSED, NULL, stdout);
	perfring_profile_fill_close(fill);
	perfring_profile_close(profile);
	perfring_session_close(session);
	perfring_soft_close(event);
	return ret;
}
