/* criterion.c - a test of what a function may cost, by counters of events around it, in a Criterion suite:
 *
 *     cc criterion.c $(pkg-config --cflags --libs perfring criterion) && ./a.out
 *
 * A count is steadier than a time: page faults and switches are exact, and instructions are where the machine counts them.
 */
#include <criterion/criterion.h>
#include <perfring/count.h>
#include <stdlib.h>

static struct perfring_counts *counts;

static void open_counts(void)
{
	if (perfring_counts_open_self(&counts, "page-faults:u,context-switches,instructions:u"))
		cr_skip_test("%s", perfring_counts_refusal(counts));
}

static void close_counts(void)
{
	perfring_counts_close(counts);
}

/* The count of an event since perfring_counts_enable; -1: this machine does not count it. */
static long long counted(uint32_t event)
{
	struct perfring_count sum;

	perfring_counts_disable(counts);
	perfring_counts_read(counts);
	return perfring_counts_sum(counts, event, PERFRING_COUNTS_ALL, 0, &sum) ? -1 : (long long)sum.value;
}

/* Each page is written.  (Not by memset, which compilers leave out where no one reads what it wrote.) */
static void fill(volatile char *memory, char value)
{
	for (size_t i = 0; i < 1 << 20; i += 4096)
		memory[i] = value;
}

TestSuite(fill, .init = open_counts, .fini = close_counts);

Test(fill, a_new_megabyte_faults_once_a_page)
{
	char *memory = aligned_alloc(4096, 1 << 20);

	perfring_counts_enable(counts);
	fill(memory, 1);
	cr_assert_leq(counted(0), 256 + 8);
	cr_assert_geq(counted(0), 1); /* fewer with huge pages */
	free(memory);
}

Test(fill, again_it_faults_no_more)
{
	char *memory = aligned_alloc(4096, 1 << 20);

	fill(memory, 1);
	perfring_counts_enable(counts);
	fill(memory, 2);
	cr_assert_leq(counted(0), 8);
	free(memory);
}
