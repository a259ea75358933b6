/* soft_kernel_test.c - the kernel's own software event beside ours: the same calls, the same samples.
 *
 * Page faults of this thread drive the kernel's: for each occurrence a system call writes into a fresh page, and the point is
 * raised.  (The kernel's own faults, and not those of the thread's code: a sanitizer's run time has many.)  After each call
 * the samples of both so far are compared, and at the end the counts.  A context switch is a schedule-in for the kernel's
 * event, and nothing for ours: a sequence that differs, in which the thread was switched, is run again.
 */
#include "test.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include <perfring/reader.h>
#include <perfring/soft.h>

#include "clocks.h"
#include "machine.h"
#include "os/clock.h"

TestSuite(soft_kernel, .timeout = 120);

enum {
	PAGE = 4096,
	REGION = 512, /* pages: more than a sequence touches */
	RING = 64,    /* pages */
	RECORD = 16,  /* bytes of a sample: header and TID */
	STEPS_MOST = 64,
	TRIES = 50,
};

static unsigned char *region;
static unsigned touched;
static struct perfring_soft_point *point;

/* ---- both events ---- */

struct twin {
	int fd;
	struct perfring_soft_event *soft;
};

static struct perf_event_attr attr_of(uint32_t type, uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {.type = type, .size = sizeof(attr), .config = config, .disabled = 1};

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_TID;
	return attr;
}

static int output = -1; /* the kernel's ring, which each of its events writes into */
static struct perf_event_mmap_page *page;
static struct perfring_soft_event *soft_output;

static void prepare(void)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1);

	output = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (output < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid at most 1, or CAP_PERFMON",
			     strerror(errno));
	page = mmap(NULL, (1 + RING) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, output, 0);
	if (page == MAP_FAILED)
		cr_skip_test("SKIP-ENV: mmap of %d pages: %s: needs RLIMIT_MEMLOCK", RING, strerror(errno));
	region = mmap(NULL, REGION * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(region, MAP_FAILED);
	madvise(region, REGION * PAGE, MADV_NOHUGEPAGE);
	point = perfring_soft_define("soft_kernel");
	attr = attr_of(PERFRING_SOFT_TYPE, point->config, 1);
	cr_assert_eq(perfring_soft_open(&soft_output, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_map(soft_output, RING, -1), 0);
}

static void open_twin(struct twin *twin, uint64_t period)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, period);

	attr.exclude_user = 1;
	twin->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	cr_assert_geq(twin->fd, 0);
	cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_SET_OUTPUT, output), 0);
	attr = attr_of(PERFRING_SOFT_TYPE, point->config, period);
	cr_assert_eq(perfring_soft_open(&twin->soft, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_set_output(twin->soft, soft_output), 0);
}

static void close_twin(struct twin *twin)
{
	close(twin->fd);
	perfring_soft_close(twin->soft);
}

/* ---- what is done to both ---- */

enum call {
	OCCUR,
	OCCUR_4,
	DISABLE,
	ENABLE,
	REFRESH_2,
	PERIOD, /* PERIOD + n: set_period(n) */
};

static void occur(unsigned times)
{
	for (; times; times--) {
		cr_assert_eq(syscall(SYS_getcpu, region + (size_t)touched++ * PAGE, NULL, NULL), 0);
		perfring_soft_raise(point, 1, 0, NULL, 0);
	}
}

static void set_period(struct twin *twin, uint64_t period)
{
	cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_PERIOD, &period), 0);
	cr_assert_eq(perfring_soft_set_period(twin->soft, period), 0);
}

static void call_both(struct twin *twin, unsigned call)
{
	switch (call) {
	case OCCUR:
		occur(1);
		break;
	case OCCUR_4:
		occur(4);
		break;
	case DISABLE:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		perfring_soft_disable(twin->soft, false);
		break;
	case ENABLE:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		perfring_soft_enable(twin->soft, false);
		break;
	case REFRESH_2:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_REFRESH, 2), 0);
		cr_assert_eq(perfring_soft_refresh(twin->soft, 2), 0);
		break;
	default:
		set_period(twin, call - PERIOD);
	}
}

/* ---- one sequence ---- */

struct steps {
	uint64_t period;
	unsigned count;
	uint8_t call[STEPS_MOST];
};

struct told {
	uint64_t samples[STEPS_MOST]; /* so far, after each step */
	uint64_t count;
};

static struct told kernel, soft;

/* What the kernel's event has written since the last look.  Its records are all of one size. */
static uint64_t drain_kernel(void)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
		 samples = (head - page->data_tail) / RECORD;

	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return samples;
}

static uint64_t drain_soft(void)
{
	struct perfring_set_ring *member = perfring_set_next(perfring_soft_rings(soft_output), NULL);
	const struct perf_event_header *record;
	uint64_t samples = 0;

	cr_assert_geq(perfring_reader_observe(&member->reader), 0);
	while (perfring_reader_next(&member->reader, &record) == 1) {
		cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
		cr_assert_eq(record->size, RECORD);
		samples++;
	}
	perfring_reader_return(&member->reader);
	return samples;
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void run_once(const struct steps *steps)
{
	struct twin twin;
	unsigned i;

	memset(&kernel, 0, sizeof(kernel));
	memset(&soft, 0, sizeof(soft));
	touched = 0;
	madvise(region, REGION * PAGE, MADV_DONTNEED);
	open_twin(&twin, steps->period);
	for (i = 0; i < steps->count; i++) {
		call_both(&twin, steps->call[i]);
		kernel.samples[i] = drain_kernel() + (i ? kernel.samples[i - 1] : 0);
		soft.samples[i] = drain_soft() + (i ? soft.samples[i - 1] : 0);
	}
	cr_assert_eq(read(twin.fd, &kernel.count, 8), 8);
	cr_assert_eq(perfring_soft_read(twin.soft, &soft.count, 8), 8);
	close_twin(&twin);
}

static const char *text_of(const struct steps *steps)
{
	static const char *const names[PERIOD] = {"o", "oooo", "disable", "enable", "refresh2"};
	static char text[64 + 32 * STEPS_MOST];
	int used = snprintf(text, sizeof(text), "period %u:", (unsigned)steps->period);

	for (unsigned i = 0; i < steps->count; i++) {
		if (steps->call[i] < PERIOD)
			used += snprintf(text + used, sizeof(text) - (size_t)used, " %s", names[steps->call[i]]);
		else
			used += snprintf(text + used, sizeof(text) - (size_t)used, " p%u",
					 (unsigned)(steps->call[i] - PERIOD));
		used += snprintf(text + used, sizeof(text) - (size_t)used, "(%u,%u)", (unsigned)kernel.samples[i],
				 (unsigned)soft.samples[i]);
	}
	return text;
}

static void run(const struct steps *steps)
{
	uint64_t before;

	for (unsigned tries = 0; tries < TRIES; tries++) {
		before = switches();
		run_once(steps);
		if (!memcmp(&kernel, &soft, sizeof(kernel)))
			return;
		if (switches() == before)
			tries += TRIES / 5; /* not for a switch */
	}
	cr_assert_fail("samples after each step of the kernel, of ours: %s, counts %u, %u", text_of(steps),
		       (unsigned)kernel.count, (unsigned)soft.count);
}

static void add(struct steps *steps, unsigned call, unsigned times)
{
	for (; times; times--) {
		cr_assert_lt(steps->count, STEPS_MOST);
		steps->call[steps->count++] = (uint8_t)call;
	}
}

/* ---- tests ---- */

/* Each period after each other, after each number of occurrences up to a whole period; set while it is enabled, while it is
 * off, and before it was ever on. */
Test(soft_kernel, every_pair_of_periods)
{
	unsigned first, second, before, way;

	prepare();
	for (first = 1; first <= 8; first++)
		for (second = 1; second <= 8; second++)
			for (before = 0; before <= first; before++)
				for (way = 0; way < 4; way++) {
					struct steps steps = {.period = first};

					if (way < 3)
						add(&steps, ENABLE, 1);
					add(&steps, OCCUR, before);
					if (way == 1)
						add(&steps, DISABLE, 1);
					add(&steps, PERIOD + second, 1);
					if (way == 2)
						add(&steps, DISABLE, 1);
					if (way)
						add(&steps, ENABLE, 1);
					add(&steps, OCCUR, 2 * second + first + 2);
					run(&steps);
				}
}

/* All sequences of five calls, with occurrences after them; a third of them from each period, and a fifth of those in the short
 * form.  A sanitizer has nothing to find in numbers. */
Test(soft_kernel, every_sequence_of_five)
{
	static const unsigned calls[] = {OCCUR, OCCUR_4, PERIOD + 1, PERIOD + 3, DISABLE, ENABLE, REFRESH_2};
	enum {
		CALLS = sizeof(calls) / sizeof(calls[0])
	};
	unsigned sequence, i, rest, share = IS_SANITIZED ? 3 * 11 : is_long() ? 3 : 3 * 5;
	uint64_t period;

	prepare();
	for (period = 1; period <= 3; period++)
		for (sequence = (unsigned)period - 1; sequence < CALLS * CALLS * CALLS * CALLS * CALLS;
		     sequence += share) {
			struct steps steps = {.period = period};

			add(&steps, ENABLE, 1);
			for (i = 0, rest = sequence; i < 5; i++, rest /= CALLS)
				add(&steps, calls[rest % CALLS], 1);
			add(&steps, ENABLE, 1);
			add(&steps, OCCUR, 7);
			run(&steps);
		}
}

/* Longer ones, by longer periods. */
Test(soft_kernel, sequences_at_random)
{
	unsigned seed = 1, round;

	prepare();
	for (round = 0; round < trials(3000); round++) {
		struct steps steps = {.period = 1 + (unsigned)rand_r(&seed) % 12};

		while (steps.count < STEPS_MOST - 1) {
			unsigned call = (unsigned)rand_r(&seed) % (PERIOD + 4);

			if (call > PERIOD)
				call = OCCUR_4;
			if (call == PERIOD)
				call += 1 + (unsigned)rand_r(&seed) % 12;
			add(&steps, call, 1);
		}
		add(&steps, ENABLE, 1);
		run(&steps);
	}
}

/* ---- clocks ---- */

/* Runs for a while and sleeps for a while. */
static void spend(uint64_t ns)
{
	struct timespec nap = {0, 1000000};
	uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID), next = begin;

	while (now_of(CLOCK_THREAD_CPUTIME_ID) < begin + ns) {
		burn_by(CLOCK_MONOTONIC, 1000000);
		if (now_of(CLOCK_THREAD_CPUTIME_ID) > next) {
			nanosleep(&nap, NULL);
			next = now_of(CLOCK_THREAD_CPUTIME_ID) + 20000000;
		}
	}
}

static uint64_t periods_of(struct perfring_ring *ring)
{
	const struct perf_event_header *record;
	struct perfring_reader reader;
	uint64_t sum = 0;

	cr_assert_eq(perfring_reader_open(&reader, ring, 0), 0);
	cr_assert_geq(perfring_reader_observe(&reader), 0);
	while (perfring_reader_next(&reader, &record) == 1)
		if (record->type == PERF_RECORD_SAMPLE)
			sum += ((const uint64_t *)(const void *)record)[1];
	perfring_reader_close(&reader);
	return sum;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t within)
{
	return a < b + within && b < a + within;
}

static uint64_t soft_sum_of(struct perfring_soft_event *event)
{
	struct perfring_set_ring *member = NULL;
	uint64_t sum = 0;

	while ((member = perfring_set_next(perfring_soft_rings(event), member)))
		sum += periods_of(&member->ring);
	return sum;
}

/* The kernel's cpu-clock and ours on one thread: the same count within 2 % and 2 ms.  After a tick the sum of our samples' periods
 * is our count within 30 ms; a tick may come late, beside others by up to a second (docs/abi.md 9.4).  The kernel's skips what its
 * timer misses, as while the machine's host has the CPU, and is no larger. */
Test(soft_kernel, cpu_clock)
{
	struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000);
	struct perfring_soft_event *ours;
	uint64_t begun, ended, kernel_count, soft_count, kernel_sum, soft_sum = 0;
	struct perfring_ring ring;
	int fd;

	attr.sample_type = PERF_SAMPLE_PERIOD;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid at most 1, or CAP_PERFMON",
			     strerror(errno));
	cr_assert_eq(perfring_ring_map(&ring, fd, RING, 0), 0);
	cr_assert_eq(perfring_soft_open(&ours, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	cr_assert_eq(perfring_soft_map(ours, RING, -1), 0);
	begun = perfring__os_clock_now();
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	perfring_soft_enable(ours, false);
	spend(500000000);
	do {
		spend(1000000);
		cr_assert_eq(perfring_soft_read(ours, &soft_count, sizeof(soft_count)), 8);
		soft_sum = soft_sum_of(ours);
	} while (!is_near(soft_sum, soft_count, 25000000) && soft_count < 1600000000);
	perfring_soft_disable(ours, false);
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	ended = perfring__os_clock_now();
	cr_assert_eq(read(fd, &kernel_count, sizeof(kernel_count)), 8);
	cr_assert_eq(perfring_soft_read(ours, &soft_count, sizeof(soft_count)), 8);
	kernel_sum = periods_of(&ring);
	soft_sum = soft_sum_of(ours);
	/* The kernel's counts what others took from the thread unseen: interrupts, and the machine's host. */
	cr_assert(kernel_count + soft_count / 50 + 2000000 >= soft_count && kernel_count <= ended - begun + 2000000, "%lu %lu",
		  kernel_count, soft_count);
	cr_assert(soft_sum <= soft_count && is_near(soft_sum, soft_count, 30000000), "%lu %lu", soft_sum, soft_count);
	cr_assert(kernel_sum <= kernel_count + 2000000 && kernel_sum >= soft_count / 2, "%lu %lu %lu", kernel_sum,
		  kernel_count, soft_count);
	perfring_soft_close(ours);
	perfring_ring_close(&ring);
	close(fd);
}
