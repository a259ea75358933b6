/* filter_test.c - which samples count: lists, times and frames of filter.h. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <perfring/filter.h>

TestSuite(filter, .timeout = 30);

static struct perfring_sample sample_of(uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t time)
{
	struct perfring_sample sample = {.pid = pid, .tid = tid, .cpu = cpu, .time = time};

	sample.present = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_TIME;
	return sample;
}

static bool counts(const struct perfring_filter *filter, uint32_t cpu, uint64_t time)
{
	struct perfring_sample sample = sample_of(1, 2, cpu, time);

	return perfring_filter_counts(filter, &sample);
}

static bool shows(const struct perfring_filter *filter, uint32_t pid, uint32_t tid, const char *comm, const char *object,
		  const char *symbol)
{
	struct perfring_sample sample = sample_of(pid, tid, 0, 1);

	return perfring_filter_shows(filter, &sample, comm, object, symbol);
}

Test(filter, without_one_all_count)
{
	const struct perfring_filter none = {.comms = NULL};

	cr_assert_eq(perfring_filter_check(&none), 0);
	cr_assert(counts(&none, 7, 5) && shows(&none, 1, 2, NULL, NULL, NULL));
}

Test(filter, lists_of_numbers)
{
	static const struct {
		const char *list;
		int answer;
	} ids[] = {{"0", 0},	 {"12,345", 0}, {"2147483647", 0},  {"", -EINVAL},   {",1", -EINVAL},   {"1,", -EINVAL},
		   {"1,,2", -EINVAL}, {"-1", -EINVAL}, {"0x10", -EINVAL}, {"1 ", -EINVAL}, {"2147483648", -EINVAL}, {"99999999999999999999", -EINVAL}},
	  cpus[] = {{"0", 0}, {"0-3,6", 0}, {"3-0", -EINVAL}, {"0-", -EINVAL}, {"-3", -EINVAL}, {"", -EINVAL}, {"1,", -EINVAL}, {"a", -EINVAL}};
	struct perfring_filter filter = {.pids = "12,345", .cpus = "0-3,6"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		cr_assert_eq(perfring_filter_check(&(struct perfring_filter){.pids = ids[i].list}), ids[i].answer, "%s", ids[i].list);
		cr_assert_eq(perfring_filter_check(&(struct perfring_filter){.tids = ids[i].list}), ids[i].answer, "%s", ids[i].list);
	}
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++)
		cr_assert_eq(perfring_filter_check(&(struct perfring_filter){.cpus = cpus[i].list}), cpus[i].answer, "%s", cpus[i].list);
	cr_assert_eq(perfring_filter_check(&(struct perfring_filter){.frames = PERFRING_FILTER_FRAMES_COUNT}), -EINVAL);
	cr_assert(shows(&filter, 12, 0, NULL, NULL, NULL) && shows(&filter, 345, 0, NULL, NULL, NULL));
	cr_assert(!shows(&filter, 1, 12, NULL, NULL, NULL) && !shows(&filter, 34, 0, NULL, NULL, NULL));
	cr_assert(counts(&filter, 0, 1) && counts(&filter, 3, 1) && counts(&filter, 6, 1) && !counts(&filter, 4, 1));
}

Test(filter, lists_of_words)
{
	const struct perfring_filter filter = {.comms = "a b,redis", .objects = "libc.so.6,/bin/x", .symbols = "main,f"};
	char made[PERFRING_FILTER_SHORT_NAME];

	cr_assert(shows(&filter, 1, 1, "a b", "/usr/lib/libc.so.6", "f"));
	cr_assert(shows(&filter, 1, 1, "redis", "/bin/x", "main"));
	cr_assert(!shows(&filter, 1, 1, "a", "/bin/x", "main") && !shows(&filter, 1, 1, NULL, "/bin/x", "main"));
	cr_assert(!shows(&filter, 1, 1, "redis", "x", "main") && !shows(&filter, 1, 1, "redis", NULL, "main"));
	cr_assert(!shows(&filter, 1, 1, "redis", "/bin/x", "mai") && !shows(&filter, 1, 1, "redis", "/bin/x", NULL));
	cr_assert_str_eq(perfring_filter_short_name("/usr/bin/x", made), "x");
	cr_assert_str_eq(perfring_filter_short_name("/tmp/perf-12.map", made), "[JIT] tid 12");
	cr_assert_str_eq(perfring_filter_short_name("[vdso]", made), "[vdso]");
	cr_assert_str_eq(perfring_filter_short_name("/", made), "/");
}

Test(filter, kinds_of_frames)
{
	const unsigned modes[] = {PERFRING_RECORD_MISC_CPUMODE_UNKNOWN, PERFRING_RECORD_MISC_KERNEL, PERFRING_RECORD_MISC_USER,
				  PERFRING_RECORD_MISC_HYPERVISOR, PERFRING_RECORD_MISC_GUEST_KERNEL, PERFRING_RECORD_MISC_GUEST_USER};
	uint32_t kernel = perfring_filter_modes(&(struct perfring_filter){.frames = PERFRING_FILTER_KERNEL});
	uint32_t user = perfring_filter_modes(&(struct perfring_filter){.frames = PERFRING_FILTER_USER});

	cr_assert_eq(perfring_filter_modes(&(struct perfring_filter){.frames = PERFRING_FILTER_ALL_FRAMES}), UINT32_MAX);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		cr_assert_eq(kernel >> modes[i] & 1, i == 1 || i == 4, "%u", i);
		cr_assert_eq(user >> modes[i] & 1, i == 2 || i == 5, "%u", i);
	}
}

Test(filter, times)
{
	struct perfring_filter filter = {.comms = NULL};
	static const char *const wrong[] = {"", "1", "x,y", "2,1", "1,2,3", "1,2 ", "101%", "50%-40%", "10%/0", "10%/11", "10%/x", "%", "99999999999999999999,"};

	cr_assert_eq(perfring_filter_set_time(&filter, "1.5,2", 0, 0), 0);
	cr_assert(!counts(&filter, 0, 1499999999) && counts(&filter, 0, 1500000000) && counts(&filter, 0, 2000000000) &&
		  !counts(&filter, 0, 2000000001));
	cr_assert_eq(perfring_filter_set_time(&filter, ",1 3,", 0, 0), 0);
	cr_assert(counts(&filter, 0, 1) && !counts(&filter, 0, 2000000000) && counts(&filter, 0, 9000000000));
	cr_assert_eq(perfring_filter_set_time(&filter, "10%/2", 1000, 2000), 0);
	cr_assert(!counts(&filter, 0, 1099) && counts(&filter, 0, 1100) && counts(&filter, 0, 1200) && !counts(&filter, 0, 1201));
	cr_assert_eq(perfring_filter_set_time(&filter, "0%-10%,50%-60%", 1000, 2000), 0);
	cr_assert(counts(&filter, 0, 1000) && !counts(&filter, 0, 1300) && counts(&filter, 0, 1550) && !counts(&filter, 0, 1700));
	cr_assert(counts(&filter, 0, 0), "a sample without a time is of each");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_assert_eq(perfring_filter_set_time(&filter, wrong[i], 1000, 2000), -EINVAL, "'%s'", wrong[i]);
}

Test(filter, spans_are_bounded)
{
	struct perfring_filter filter = {.comms = NULL};
	char text[8 * (PERFRING_FILTER_SPANS_MAX + 1)], *at = text;

	for (unsigned i = 0; i < PERFRING_FILTER_SPANS_MAX; i++)
		at += sprintf(at, "%s%u,%u", i ? " " : "", i, i);
	cr_assert_eq(perfring_filter_set_time(&filter, text, 0, 0), 0);
	cr_assert_eq(filter.span_count, PERFRING_FILTER_SPANS_MAX);
	sprintf(at, " 9,9");
	cr_assert_eq(perfring_filter_set_time(&filter, text, 0, 0), -EINVAL);
	cr_assert_eq(perfring_filter_set_time(&filter, "0,1 nonsense", 0, 0), -EINVAL);
	cr_assert_eq(filter.time, text, "it is as it was");
	cr_assert_eq(filter.span_count, PERFRING_FILTER_SPANS_MAX);
	cr_assert_eq(filter.spans[1].first, UINT64_C(1000000000));
}

/* A record of no CPU is of each. */
Test(filter, other_records)
{
	const struct perfring_filter filter = {.cpus = "1"};
	struct perfring_trailer trailer = {.present = PERFRING_SAMPLE_CPU, .cpu = 1};

	cr_assert(perfring_filter_takes_record(&filter, &trailer));
	trailer.cpu = 2;
	cr_assert(!perfring_filter_takes_record(&filter, &trailer));
	trailer.cpu = UINT32_MAX;
	cr_assert(perfring_filter_takes_record(&filter, &trailer));
	trailer = (struct perfring_trailer){.present = 0};
	cr_assert(perfring_filter_takes_record(&filter, &trailer));
}
