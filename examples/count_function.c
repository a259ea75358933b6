/* count_function.c - what a call costs: events of this thread around it; -1: this machine does not count it. */
#include <perfring/count.h>
#include <stdio.h>

int main(void)
{
	struct perfring_counts *counts;
	struct perfring_count sum;

	if (perfring_counts_open_self(&counts, "instructions:u,page-faults:u,task-clock:u") || perfring_counts_enable(counts))
		return fprintf(stderr, "%s\n", perfring_counts_refusal(counts)), 1;
	pclose(popen("true", "r"));
	perfring_counts_read(counts);
	for (uint32_t i = 0; i < perfring_counts_count(counts); i++)
		printf("%16lld %s\n", perfring_counts_sum(counts, i, PERFRING_COUNTS_ALL, 0, &sum) ? -1 : (long long)sum.value,
		       perfring_counts_name(counts, i));
	perfring_counts_close(counts);
}
