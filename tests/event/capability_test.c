/* capability_test.c - what this machine lets us observe, each proved by a count: tests/support/must_run says which of them a
 * machine must have. */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/event.h>
#include "switches.h"
#include "watch.h"

TestSuite(capability, .timeout = 30);

__attribute__((noinline)) static void watched_function(void)
{
	watched++;
	__asm__ volatile("" ::: "memory");
}

/* Opens the event on this thread, or everything on CPU 0, or skips with the reason. */
static int open_or_skip(struct perf_event_attr *attr, int32_t cpu)
{
	char reason[1024];
	int fd;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	fd = perfring_event_open(attr, cpu < 0 ? 0 : -1, cpu, -1, 0);
	if (fd < 0) {
		perfring_event_explain(-fd, attr, cpu < 0 ? 0 : -1, cpu, reason, sizeof(reason));
		cr_skip_test("SKIP-ENV: perf_event_open: %s", reason);
	}
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	cr_assert_eq(read(fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	close(fd);
	return count;
}

/* Needs no permission: there is always one test. */
Test(capability, names_are_known)
{
	struct perf_event_attr attr = {.type = 99};

	cr_assert_eq(perfring_event_parse("page-faults:u", &attr, NULL), 0);
	cr_assert_eq(attr.type, PERF_TYPE_SOFTWARE);
}

Test(capability, software)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS};
	unsigned char *memory;
	uint64_t count;
	int fd;

	attr.exclude_kernel = 1;
	fd = open_or_skip(&attr, -1);
	memory = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(memory != MAP_FAILED);
	madvise(memory, 16 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 16; i++)
		memory[i * 4096] = 1;
	count = count_of(fd);
	cr_assert_geq(count, 16, "%" PRIu64, count);
}

Test(capability, kernel_side)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES};
	int fd = open_or_skip(&attr, -1);

	switch_away(5);
	cr_assert_geq(count_of(fd), 5);
}

Test(capability, cpu_wide)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	int fd = open_or_skip(&attr, 0);

	usleep(20000);
	cr_assert_gt(count_of(fd), 0);
}

Test(capability, breakpoint)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT};
	uint64_t count;
	int fd;

	need_breakpoints();
	attr.bp_type = 2; /* writes */
	attr.bp_addr = (uint64_t)(uintptr_t)&watched;
	attr.bp_len = sizeof(watched);
	attr.exclude_kernel = 1;
	fd = open_or_skip(&attr, -1);
	for (int i = 0; i < 7; i++)
		watched_function();
	count = count_of(fd);
	cr_assert_eq(count, 7, "%" PRIu64, count);
}

Test(capability, tracepoint)
{
	struct perf_event_attr attr = {.sample_period = 1};
	struct perfring_fault fault = {0, ""};
	int ret = perfring_event_parse("sched:sched_switch", &attr, &fault);
	int fd;

	if (ret)
		cr_skip_test("SKIP-ENV: tracefs: %s", strerror(-ret));
	fd = open_or_skip(&attr, -1);
	switch_away(5);
	cr_assert_geq(count_of(fd), 5);
}

/* Where a function of this program lies in its file; 0 when it is not to be found. */
static uint64_t file_offset_of(uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end, offset, found = 0;
	char line[512];

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
		    start <= address && address < end)
			found = address - start + offset;
	fclose(maps);
	return found;
}

Test(capability, uprobe)
{
	struct perf_event_attr attr = {.sample_period = 1};
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	char path[512] = "";
	uint64_t count;
	int fd;

	if (!type)
		cr_skip_test("SKIP-ENV: uprobe: the kernel has none (CONFIG_UPROBE_EVENTS)");
	cr_assert_eq(fscanf(type, "%" SCNu32, &attr.type), 1);
	fclose(type);
	cr_assert_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
	attr.config1 = (uint64_t)(uintptr_t)path;
	attr.config2 = file_offset_of((uint64_t)(uintptr_t)watched_function);
	cr_assert_neq(attr.config2, 0);
	fd = open_or_skip(&attr, -1);
	for (int i = 0; i < 3; i++)
		watched_function();
	count = count_of(fd);
	cr_assert_eq(count, 3, "%" PRIu64, count);
}
