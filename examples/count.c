/* count.c - counts events of a command and its children: count EVENTS COMMAND [ARGUMENT...]
 *
 *     count 'task-clock,{page-faults,context-switches}' make         what is in braces is counted together, or not at all
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <perfring/command.h>
#include <perfring/count.h>

static int refuse(const char *what, int error, const char *why)
{
	fprintf(stderr, "count: %s: %s\n", what, *why ? why : strerror(-error));
	return 1;
}

int main(int argc, char **argv)
{
	struct perf_event_attr base = {.size = sizeof(base), .disabled = 1, .enable_on_exec = 1, .inherit = 1};
	struct perfring_counts *counts = NULL;
	struct perfring_events *events = NULL;
	struct perfring_target *target = NULL;
	struct perfring_fault fault = {0};
	struct perfring_estimate estimate;
	struct perfring_command command;
	struct perfring_count count;
	char why[512];
	int ret;

	if (argc < 3)
		return refuse("usage", -EINVAL, "count EVENTS COMMAND [ARGUMENT...]");
	if ((ret = perfring_events_open(&events)))
		return refuse("events", ret, "");
	if ((ret = perfring_events_add(events, argv[1], &base, &fault)))
		return refuse(argv[1] + fault.at, ret, fault.what);
	if ((ret = perfring_command_open(&command, argv + 2)))
		return refuse("fork", ret, "");
	if ((ret = perfring_target_open(&target)) || (ret = perfring_target_add_thread(target, command.pid)) ||
	    (ret = perfring_counts_open(&counts, PERFRING_FALLBACK_ALL)))
		return refuse("counts", ret, "");
	if ((ret = perfring_counts_add(counts, events, target)))
		return refuse("add", ret, perfring_counts_refusal(counts));
	for (uint32_t i = 0; i < perfring_counts_count(counts); i++) /* not all of it as asked */
		if (perfring_counts_explain(counts, i, why, sizeof(why)) > 0)
			fprintf(stderr, "count: %s\n", why);
	if ((ret = perfring_command_release(&command)))
		return refuse(argv[2], ret, "");
	perfring_command_close(&command);
	waitpid(command.pid, NULL, 0);

	if ((ret = perfring_counts_read(counts)))
		return refuse("read", ret, "");
	for (uint32_t i = 0; i < perfring_counts_count(counts); i++) {
		if (perfring_counts_error(counts, i)) {
			printf(" <not supported> %s\n", perfring_events_at(events, i)->name);
			continue;
		}
		perfring_counts_sum(counts, i, PERFRING_COUNTS_ALL, 0, &count);
		printf("%16" PRIu64 " %s", count.value, perfring_events_at(events, i)->name);
		estimate = perfring_event_estimate(count.value, count.enabled, count.running);
		if (estimate.share < 1.0) /* more events than counters: they took turns */
			printf(", seen %.0f %% of the time: about %.0f +- %.0f", 100 * estimate.share, estimate.value,
			       estimate.margin);
		puts("");
	}
	perfring_counts_close(counts);
	perfring_target_close(target);
	perfring_events_close(events);
	return 0;
}
