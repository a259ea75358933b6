/* wakeup_test.c - when readers are woken: the vectors of docs/abi.md 15 on our rings and on this kernel's, from one table; what
 * it costs in system calls; and every interleaving of a crossing with a reader that goes to sleep. */
#include "test.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* rb/writer.c and rb/wakeup.c are compiled in here: each named point hands over to the schedule, and each system call
 * that a wakeup makes is counted. */
#define PERFRING_POINT(name) strike(#name)
static void strike(const char *name);

static unsigned calls;

#define state_of wakeup_state_of
#define syscall(...) (PERFRING_ADD(&calls, 1u), syscall(__VA_ARGS__))
#include "rb/wakeup.c"
#undef syscall
#undef state_of
#include "rb/writer.c"

#include "machine.h"

TestSuite(wakeup, .timeout = 100);

enum {
	SIZE = 4096, /* the vectors' S */
	RECORD = 24,
	TOUCHED = 2048, /* pages for faults */
};

/* ---- one ring, ours or the kernel's, and what is written into it ---- */

struct subject {
	struct perfring_ring ring;
	struct perfring_writer *writer; /* NULL: the kernel writes */
	struct perfring_output outputs[2];
	unsigned events; /* outputs, or perf fds */
	uint64_t ids[2];
	int fds[2];
	unsigned char *fresh; /* pages never touched */
	unsigned touched;
};

struct wanted {
	bool samples;
	bool watermark;
	uint32_t wakeup[2]; /* wakeup_watermark, or wakeup_events of each event */
	unsigned events;
};

static void need_page(void)
{
	if (sysconf(_SC_PAGESIZE) != SIZE)
		cr_skip_test("SKIP-ENV: sysconf: the vectors are for a page of 4096 bytes");
}

static void make_ours(struct subject *subject, const struct wanted *wanted)
{
	struct perfring_ring_options options = {
		.pages = 1, .watermark = wanted->watermark, .wakeup = wanted->watermark ? wanted->wakeup[0] : 0};
	struct perfring_writer_options writing = {.wake_fd = -1};

	cr_assert_eq(perfring_ring_create(&subject->ring, &options), 0);
	subject->events = wanted->events;
	for (unsigned i = 0; i < wanted->events; i++) {
		subject->ids[i] = 100 + i;
		subject->outputs[i].id = 100 + i;
		subject->outputs[i].wakeup_events = wanted->watermark ? 0 : wanted->wakeup[i];
	}
	cr_assert_eq(perfring_writer_open(&subject->writer, &subject->ring, &writing), 0);
}

static int open_event(const struct wanted *wanted, unsigned i)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.comm = i == 0,
		.watermark = wanted->watermark,
	};

	if (wanted->samples) {
		/* One fault is both, and the kernel tells of the first event's kind last. */
		attr.config = i == 0 ? PERF_COUNT_SW_PAGE_FAULTS_MIN : PERF_COUNT_SW_PAGE_FAULTS;
		attr.sample_period = 1;
		attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
	}
	attr.wakeup_events = wanted->wakeup[i]; /* one word with wakeup_watermark */
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int poll_now(int fd)
{
	struct pollfd asked = {.fd = fd, .events = POLLIN | POLLRDNORM};

	return poll(&asked, 1, 0) < 0 ? -errno : asked.revents;
}

/* A sanitizer would look into its own memory first, and fault there. */
__attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"))) static void touch(
	struct subject *subject)
{
	*(volatile unsigned char *)(subject->fresh + (size_t)subject->touched++ * SIZE) = 1;
}

static void make_kernels(struct subject *subject, const struct wanted *wanted)
{
	subject->events = wanted->events;
	subject->fresh = mmap(NULL, (size_t)TOUCHED * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(subject->fresh != MAP_FAILED);
	madvise(subject->fresh, (size_t)TOUCHED * SIZE, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < wanted->events; i++) {
		subject->fds[i] = open_event(wanted, i);
		if (subject->fds[i] < 0)
			cr_skip_test("SKIP-ENV: perf_event_open: %s: CAP_PERFMON or a lower perf_event_paranoid",
				     strerror(errno));
		cr_assert_eq(ioctl(subject->fds[i], PERF_EVENT_IOC_ID, &subject->ids[i]), 0);
	}
	cr_assert_eq(perfring_ring_map(&subject->ring, subject->fds[0], 1, 0), 0);
	if (wanted->events > 1)
		cr_assert_eq(ioctl(subject->fds[1], PERF_EVENT_IOC_SET_OUTPUT, (long)subject->fds[0]), 0);
}

static void drop(struct subject *subject)
{
	if (subject->writer)
		perfring_writer_close(subject->writer);
	perfring_ring_close(&subject->ring);
	for (unsigned i = 0; i < 2; i++)
		if (subject->fds[i] >= 0)
			close(subject->fds[i]);
	if (subject->fresh)
		munmap(subject->fresh, (size_t)TOUCHED * SIZE);
}

static void put(struct perfring_writer *writer, struct perfring_output *output, uint32_t type)
{
	const uint64_t record[3] = {header_word(type, 24), output ? output->id : 1, 2};

	perfring_writer_write(writer, output, record, sizeof(record));
}

/* COMM, of 24 bytes. */
static void side_band(struct subject *subject)
{
	if (subject->writer)
		put(subject->writer, &subject->outputs[0], PERF_RECORD_COMM);
	else
		prctl(PR_SET_NAME, "a");
}

/* A sample of 24 bytes by each event, the first event's last. */
static void sample(struct subject *subject)
{
	if (!subject->writer) {
		touch(subject);
		return;
	}
	for (unsigned i = subject->events; i-- > 0;)
		put(subject->writer, &subject->outputs[i], PERF_RECORD_SAMPLE);
}

static int polled(struct subject *subject)
{
	return subject->writer ? perfring_wakeup_poll(&subject->ring) : poll_now(subject->fds[0]);
}

static uint64_t position(const struct subject *subject)
{
	return __atomic_load_n(&subject->ring.page->data_head, __ATOMIC_ACQUIRE);
}

static void drain(struct subject *subject)
{
	__atomic_store_n(&subject->ring.page->data_tail, position(subject), __ATOMIC_RELEASE);
}

static struct subject make(bool live, const struct wanted *wanted)
{
	struct subject subject = {.fds = {-1, -1}};

	if (!live) {
		make_ours(&subject, wanted);
		return subject;
	}
	make_kernels(&subject, wanted);
	/* All code and memory that the steps touch, once: no faults of their own later. */
	sample(&subject);
	side_band(&subject);
	polled(&subject);
	drain(&subject);
	cr_assert_eq(position(&subject), 0);
	cr_assert_eq(subject.ring.data[0], 0);
	for (unsigned i = 0; i < wanted->events; i++)
		cr_assert_eq(ioctl(subject.fds[i], PERF_EVENT_IOC_ENABLE, 0), 0);
	return subject;
}

enum {
	IN = POLLIN | POLLRDNORM
};

/* ---- vectors ---- */

/* docs/abi.md 15: S = 4096, 24-byte records, the consumer always empty, 400 records. */
static const struct vector {
	bool watermark;
	uint32_t wakeup;
	uint64_t first;
	unsigned wakes;
} vectors[] = {
	{true, 0, 2064, 4},    {false, 0, 2064, 4},     {true, 1, 24, 400},   {true, 23, 24, 400},
	{true, 24, 48, 399},   {true, 48, 72, 199},     {true, 100, 120, 95}, {true, 2048, 2064, 4},
	{true, 4096, 4104, 2}, {true, 100000, 4104, 2},
};

static void follow(bool live, const struct vector *vector)
{
	const struct wanted wanted = {.events = 1, .watermark = vector->watermark, .wakeup = {vector->wakeup, 0}};
	struct subject subject = make(live, &wanted);
	uint64_t first = 0;
	unsigned wakes = 0;
	int said;

	for (unsigned i = 1; i <= 400; i++) {
		side_band(&subject);
		said = polled(&subject);
		cr_assert(said == 0 || said == IN);
		cr_assert_eq(position(&subject), (uint64_t)i * RECORD);
		if (said && wakes++ == 0)
			first = position(&subject);
		drain(&subject);
	}
	cr_assert_eq(first, vector->first, "watermark %u: first wakeup at %llu", vector->wakeup,
		     (unsigned long long)first);
	cr_assert_eq(wakes, vector->wakes, "watermark %u: %u wakeups", vector->wakeup, wakes);
	drop(&subject);
}

static void follow_all(bool live)
{
	need_page();
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		follow(live, &vectors[i]);
}

Test(wakeup, watermark)
{
	follow_all(false);
}

Test(wakeup, watermark_live)
{
	follow_all(true);
}

/* The stamp of docs/abi.md 7.3: the watermark, and one for every n-th sample of a wakeup_events of n. */
struct model {
	uint64_t position, stamp, events;
};

static bool model_write(struct model *model, uint32_t wakeup_events)
{
	uint64_t before = model->stamp;

	model->position += RECORD;
	if (model->position - model->stamp > SIZE / 2)
		model->stamp += SIZE / 2;
	if (wakeup_events && ++model->events >= wakeup_events) {
		model->events -= wakeup_events;
		model->stamp++;
	}
	return model->stamp != before;
}

/* Whether the model wakes for the records that the step wrote, whatever faulted in it: a sanitizer's memory does too. */
static bool model_step(struct model *model, const struct subject *subject, const struct wanted *wanted)
{
	struct perf_event_header header;
	bool wakes = false;
	uint64_t record[3];

	while (model->position != position(subject)) {
		for (unsigned i = 0; i < 3; i++)
			memcpy(&record[i], subject->ring.data + (model->position + i * 8) % SIZE, 8);
		memcpy(&header, record, sizeof(header));
		cr_assert_eq(header.size, RECORD);
		wakes |= model_write(model, header.type != PERF_RECORD_SAMPLE ? 0
					    : record[1] == subject->ids[0]    ? wanted->wakeup[0]
									      : wanted->wakeup[1]);
	}
	return wakes;
}

/* Returns how many steps woke; those that wrote what they should are held against the table, too. */
static unsigned count_events(bool live, const struct wanted *wanted, bool with_side_band, unsigned steps,
			     unsigned every, unsigned strict)
{
	bool expected, exact, doubtful = false;
	struct model model = {0};
	struct subject subject;
	unsigned wakes = 0;
	uint64_t before;
	int said;

	need_page();
	subject = make(live, wanted);
	for (unsigned i = 1; i <= steps; i++) {
		before = position(&subject);
		sample(&subject);
		if (with_side_band)
			side_band(&subject);
		said = polled(&subject);
		expected = model_step(&model, &subject, wanted);
		drain(&subject);
		/* a fault too many may have come behind the poll, and is told by the next */
		exact = position(&subject) - before == 2 * RECORD;
		if (exact && !doubtful)
			cr_assert_eq(said, expected ? IN : 0, "step %u", i);
		doubtful = !exact;
		if (i <= strict && position(&subject) == (uint64_t)i * 2 * RECORD)
			cr_assert_eq(said, i % every == 0 ? IN : 0, "step %u", i);
		cr_assert(exact || live);
		wakes += said != 0;
	}
	drop(&subject);
	return wakes;
}

/* One sample and one side-band record each step: every 4th; beyond step 40 the bytes wake as well. */
static const struct wanted one = {.samples = true, .events = 1, .wakeup = {4, 0}};

Test(wakeup, events)
{
	cr_assert_eq(count_events(false, &one, true, 600, 4, 40), 150 + 10);
}

Test(wakeup, events_live)
{
	cr_assert_geq(count_events(true, &one, true, 600, 4, 40), 150 + 5, "the bytes have woken, too");
}

/* 6 and 1000 on one ring: every third step of two samples, for the counter is the ring's. */
static const struct wanted two = {.samples = true, .events = 2, .wakeup = {6, 1000}};

Test(wakeup, shared)
{
	cr_assert_eq(count_events(false, &two, false, 30, 3, 30), 10);
}

Test(wakeup, shared_live)
{
	cr_assert_geq(count_events(true, &two, false, 30, 3, 30), 10);
}

/* With W >= S the ring is full before anybody is woken. */
static void fill_unwoken(bool live)
{
	const struct wanted wanted = {.events = 1, .watermark = true, .wakeup = {SIZE, 0}};
	struct subject subject;

	need_page();
	subject = make(live, &wanted);
	for (unsigned i = 0; i < 200; i++)
		side_band(&subject);
	cr_assert_eq(position(&subject), 4080, "170 of them, the others are lost");
	cr_assert_eq(polled(&subject), 0);
	drain(&subject);
	side_band(&subject);
	cr_assert_eq(position(&subject), 4080 + 48, "LOST");
	cr_assert_eq(polled(&subject), IN, "more than S");
	drop(&subject);
}

Test(wakeup, full_unwoken)
{
	fill_unwoken(false);
}

Test(wakeup, full_unwoken_live)
{
	fill_unwoken(true);
}

/* docs/abi.md 2.3. */
static void poll_edges(bool live)
{
	const struct wanted wanted = {.events = 1, .watermark = true, .wakeup = {48, 0}};
	struct subject subject;

	need_page();
	subject = make(live, &wanted);
	cr_assert_eq(polled(&subject), 0, "nothing yet");
	side_band(&subject);
	side_band(&subject);
	cr_assert_eq(polled(&subject), 0, "at the watermark, not above it: records alone do not count");
	side_band(&subject);
	cr_assert_eq(polled(&subject), IN);
	cr_assert_eq(polled(&subject), 0, "consumed, though nothing was read");
	for (unsigned i = 0; i < 10; i++)
		side_band(&subject);
	cr_assert_eq(polled(&subject), IN, "once for many crossings");
	cr_assert_eq(polled(&subject), 0);
	drain(&subject);
	cr_assert_eq(polled(&subject), 0);
	side_band(&subject);
	side_band(&subject);
	drain(&subject);
	cr_assert_eq(polled(&subject), IN, "drained or not");
	/* without its ring */
	perfring_writer_close(subject.writer);
	perfring_ring_close(&subject.ring);
	cr_assert_eq(live ? poll_now(subject.fds[0]) : perfring_wakeup_poll(&subject.ring), POLLHUP);
	subject.writer = NULL;
	drop(&subject);
}

Test(wakeup, edges)
{
	poll_edges(false);
}

Test(wakeup, edges_live)
{
	poll_edges(true);
}

/* ---- system calls ---- */

struct sleeper {
	struct perfring_ring ring;
	struct perfring_writer *writer;
	int fd; /* an eventfd */
};

/* A ring whose every record is a crossing when watermark is 1. */
static struct sleeper make_sleeper(uint32_t watermark, uint32_t wakeup_events)
{
	struct perfring_ring_options options = {.pages = 1, .watermark = true, .wakeup = watermark};
	struct sleeper sleeper = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	struct perfring_writer_options writing = {.wake_fd = sleeper.fd, .output = {.wakeup_events = wakeup_events}};

	cr_assert_geq(sleeper.fd, 0);
	cr_assert_eq(perfring_ring_create(&sleeper.ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&sleeper.writer, &sleeper.ring, &writing), 0);
	calls = 0;
	return sleeper;
}

static void drop_sleeper(struct sleeper *sleeper)
{
	perfring_writer_close(sleeper->writer);
	perfring_ring_close(&sleeper->ring);
	close(sleeper->fd);
}

static void cross(struct sleeper *sleeper)
{
	put(sleeper->writer, NULL, PERF_RECORD_SAMPLE);
	sleeper->ring.page->data_tail = sleeper->ring.page->data_head;
}

/* The eventfd's counter; 0 when it is not readable. */
static uint64_t told(struct sleeper *sleeper)
{
	uint64_t count;

	return read(sleeper->fd, &count, 8) == 8 ? count : 0;
}

static bool arm(struct sleeper *sleeper, unsigned ways)
{
	return perfring_wakeup_arm(&sleeper->ring, sleeper->ring.page->data_head, ways);
}

Test(wakeup, unarmed)
{
	struct sleeper sleeper = make_sleeper(1, 0);

	for (unsigned i = 0; i < 1000; i++)
		cross(&sleeper);
	cr_assert_eq(calls, 0, "nobody sleeps");
	cr_assert_eq(told(&sleeper), 0);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN, "but the crossings are told");
	drop_sleeper(&sleeper);
}

Test(wakeup, one_call)
{
	struct sleeper sleeper = make_sleeper(1, 0);

	for (unsigned i = 1; i <= 50; i++) {
		cr_assert(!arm(&sleeper, PERFRING_WAKEUP_EVENTFD));
		cr_assert_eq(told(&sleeper), 0);
		for (unsigned k = 0; k < 20; k++)
			cross(&sleeper);
		cr_assert_eq(calls, i, "one for twenty crossings");
		cr_assert_eq(told(&sleeper), 1, "written once");
		cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN);
	}
	/* armed, and nothing crosses */
	drop_sleeper(&sleeper);
	sleeper = make_sleeper(1000, 0);
	cr_assert(!arm(&sleeper, PERFRING_WAKEUP_EVENTFD));
	for (unsigned i = 0; i < 41; i++)
		cross(&sleeper);
	cr_assert_eq(calls, 0, "984 bytes");
	cross(&sleeper);
	cr_assert_eq(calls, 1, "1008 bytes");
	cr_assert_eq(told(&sleeper), 1);
	/* taken back */
	perfring_wakeup_poll(&sleeper.ring);
	cr_assert(!arm(&sleeper, PERFRING_WAKEUP_EVENTFD));
	perfring_wakeup_disarm(&sleeper.ring);
	for (unsigned i = 0; i < 100; i++)
		cross(&sleeper);
	cr_assert_eq(calls, 1);
	cr_assert_eq(told(&sleeper), 0);
	/* a futex that nobody sleeps on is one call, too */
	perfring_wakeup_poll(&sleeper.ring);
	cr_assert(!arm(&sleeper, PERFRING_WAKEUP_FUTEX));
	for (unsigned i = 0; i < 100; i++)
		cross(&sleeper);
	cr_assert_eq(calls, 2);
	cr_assert_eq(told(&sleeper), 0, "only the way that was asked for");
	drop_sleeper(&sleeper);
}

/* Several crossings in one outermost section: one (docs/abi.md 7.5). */
Test(wakeup, nested_once)
{
	struct sleeper sleeper = make_sleeper(1, 0);
	const uint64_t record[3] = {header_word(9, 24), 1, 2};
	struct perfring_claim claim;
	void *space;

	cr_assert(!arm(&sleeper, PERFRING_WAKEUP_EVENTFD));
	space = perfring_writer_reserve(sleeper.writer, NULL, 24, &claim);
	cr_assert_not_null(space);
	for (unsigned i = 0; i < 5; i++)
		cr_assert(perfring_writer_write(sleeper.writer, NULL, record, 24));
	cr_assert_eq(calls, 0, "nothing is published");
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), 0);
	memcpy(space, record, 24);
	perfring_writer_commit(sleeper.writer, &claim);
	cr_assert_eq(calls, 1);
	cr_assert_eq(told(&sleeper), 1);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN);
	cr_assert_eq(sleeper.ring.page->data_head, 6 * 24);
	drop_sleeper(&sleeper);
}

/* What was looked at is told at once: then nobody sleeps. */
Test(wakeup, arm_looks)
{
	struct sleeper sleeper = make_sleeper(1000, 0);

	cr_assert(!perfring_wakeup_arm(&sleeper.ring, 0, PERFRING_WAKEUP_EVENTFD));
	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert(perfring_wakeup_arm(&sleeper.ring, 0, PERFRING_WAKEUP_EVENTFD), "a record below the watermark");
	cr_assert(!perfring_wakeup_arm(&sleeper.ring, 24, PERFRING_WAKEUP_EVENTFD), "which has been read");
	for (unsigned i = 0; i < 41; i++)
		put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert(perfring_wakeup_arm(&sleeper.ring, 42 * 24, PERFRING_WAKEUP_EVENTFD), "a crossing nobody polled");
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN);
	cr_assert(!perfring_wakeup_arm(&sleeper.ring, 42 * 24, PERFRING_WAKEUP_EVENTFD));
	drop_sleeper(&sleeper);
}

/* A counter at its end neither blocks nor breaks anything. */
Test(wakeup, full_counter, .timeout = 20)
{
	struct sleeper sleeper = make_sleeper(1, 0);
	uint64_t full = UINT64_MAX - 1;

	cr_assert_eq(write(sleeper.fd, &full, 8), 8);
	arm(&sleeper, PERFRING_WAKEUP_EVENTFD);
	errno = EXDEV;
	cross(&sleeper);
	cr_assert_eq(errno, EXDEV);
	cr_assert_eq(calls, 1);
	cr_assert_eq(told(&sleeper), UINT64_MAX - 1);
	perfring_wakeup_poll(&sleeper.ring);
	arm(&sleeper, PERFRING_WAKEUP_EVENTFD);
	cross(&sleeper);
	cr_assert_eq(told(&sleeper), 1);
	drop_sleeper(&sleeper);
}

static struct sleeper *handled;

static void write_in_handler(int signal)
{
	(void)signal;
	cross(handled);
}

Test(wakeup, errno_stays)
{
	struct sleeper sleeper = make_sleeper(1, 0);
	const unsigned ways[] = {0, PERFRING_WAKEUP_EVENTFD, PERFRING_WAKEUP_FUTEX,
				 PERFRING_WAKEUP_EVENTFD | PERFRING_WAKEUP_FUTEX};

	handled = &sleeper;
	signal(SIGUSR1, write_in_handler);
	close(sleeper.fd); /* so that write(2) says EBADF */
	for (unsigned i = 0; i < 4; i++) {
		arm(&sleeper, ways[i]);
		calls = 0;
		errno = EXDEV;
		raise(SIGUSR1);
		cr_assert_eq(errno, EXDEV, "ways %u", ways[i]);
		cr_assert_eq(calls, (unsigned)__builtin_popcount(ways[i]));
	}
	sleeper.fd = -1;
	drop_sleeper(&sleeper);
}

Test(wakeup, flush)
{
	struct sleeper sleeper = make_sleeper(1000, 0);

	perfring_writer_flush(sleeper.writer);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), 0, "there is nothing");
	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), 0);
	perfring_writer_flush(sleeper.writer);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN, "one record below the watermark");
	cr_assert_eq(calls, 0, "nobody slept");
	cr_assert(!perfring_wakeup_arm(&sleeper.ring, 24, PERFRING_WAKEUP_EVENTFD));
	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert_eq(told(&sleeper), 0);
	perfring_writer_flush(sleeper.writer);
	cr_assert_eq(told(&sleeper), 1);
	cr_assert_eq(calls, 1);
	/* a flush is no crossing of the watermark's: that comes where it would have come */
	perfring_wakeup_poll(&sleeper.ring);
	for (unsigned i = 2; i < 41; i++)
		cross(&sleeper);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), 0, "984 bytes");
	cross(&sleeper);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN, "1008 bytes");
	drop_sleeper(&sleeper);
}

/* The next record wakes, whatever the watermark, and only that one. */
Test(wakeup, next_record)
{
	struct sleeper sleeper = make_sleeper(2048, 0);

	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE); /* the limit is open */
	for (unsigned i = 1; i <= 10; i++) {
		cr_assert(!perfring_writer_arm(sleeper.writer), "no record is in the making");
		cr_assert(!arm(&sleeper, PERFRING_WAKEUP_EVENTFD));
		cr_assert_eq(told(&sleeper), 0);
		put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
		cr_assert_eq(told(&sleeper), 1);
		cr_assert_eq(calls, i);
		put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
		cr_assert_eq(told(&sleeper), 0);
		cr_assert_eq(calls, i);
		cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN);
	}
	drop_sleeper(&sleeper);
}

/* In the middle of a record the sleeper is told that this one may come without a wakeup. */
Test(wakeup, next_record_busy)
{
	struct sleeper sleeper = make_sleeper(2048, 0);
	struct perfring_claim claim;
	void *space;

	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	space = perfring_writer_reserve(sleeper.writer, NULL, 24, &claim);
	cr_assert_not_null(space);
	cr_assert(perfring_writer_arm(sleeper.writer));
	memcpy(space, (uint64_t[3]){header_word(9, 24), 1, 2}, 24);
	perfring_writer_commit(sleeper.writer, &claim);
	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), IN, "the one after it, at the latest");
	drop_sleeper(&sleeper);
}

/* ---- sleeping ---- */

static int64_t milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static const int64_t millisecond = 1000000;

Test(wakeup, timeouts)
{
	struct sleeper sleeper = make_sleeper(1000, 0);
	struct perfring_ring_state *state = perfring_ring_state_of(sleeper.ring.page);
	struct perfring_ring none = {0};
	int64_t start = milliseconds();

	cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 0, 0), 0);
	cr_assert_lt(milliseconds() - start, 1000);
	start = milliseconds();
	cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 0, 60 * millisecond), 0);
	cr_assert_geq(milliseconds() - start, 59);
	cr_assert_eq(state->armed, 0, "taken back");
	put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 0, -1), 1, "there are records");
	cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 0, INT64_MAX), 1);
	cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 24, 10 * millisecond), 0, "and have been read");
	cr_assert_eq(state->armed, 0);
	cr_assert_eq(perfring_wakeup_wait(&none, 0, 0), -EINVAL);
	drop_sleeper(&sleeper);
}

struct late {
	pthread_t thread;
	pthread_t sleeping;
	struct sleeper *sleeper;
	int64_t delay;
	int signal;
	unsigned sent; /* signals */
	bool returned;
};

/* When the reader sleeps, as far as one can see. */
static void *act_late(void *data)
{
	struct late *late = data;
	struct perfring_ring_state *state = perfring_ring_state_of(late->sleeper->ring.page);

	while (!(__atomic_load_n(&state->armed, __ATOMIC_SEQ_CST) & PERFRING_WAKEUP_FUTEX))
		usleep(100);
	usleep((useconds_t)late->delay);
	if (!late->signal)
		put(late->sleeper->writer, NULL, PERF_RECORD_SAMPLE);
	/* armed is said before the sleep, which a signal between them does not end */
	while (late->signal && !__atomic_load_n(&late->returned, __ATOMIC_ACQUIRE)) {
		pthread_kill(late->sleeping, late->signal);
		late->sent++;
		for (int n = 0; n < 50 && !__atomic_load_n(&late->returned, __ATOMIC_ACQUIRE); n++)
			usleep((useconds_t)late->delay);
	}
	return NULL;
}

static void nothing(int signal)
{
	(void)signal;
}

Test(wakeup, woken_and_interrupted)
{
	for (unsigned interrupt = 0; interrupt < 2; interrupt++) {
		struct sleeper sleeper = make_sleeper(1, 0);
		struct late late = {.sleeper = &sleeper,
				    .sleeping = pthread_self(),
				    .delay = 20000,
				    .signal = interrupt ? SIGUSR2 : 0};
		struct sigaction action = {.sa_handler = nothing};

		sigaction(SIGUSR2, &action, NULL);
		cr_assert_eq(pthread_create(&late.thread, NULL, act_late, &late), 0);
		cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, 0, -1), interrupt ? -EINTR : 1);
		__atomic_store_n(&late.returned, true, __ATOMIC_RELEASE);
		pthread_join(late.thread, NULL);
		cr_assert_leq(late.sent, 2, "one before the sleep");
		cr_assert_eq(perfring_ring_state_of(sleeper.ring.page)->armed, 0);
		cr_assert_eq(perfring_wakeup_poll(&sleeper.ring), 0);
		cr_assert_eq(perfring_wakeup_wait(&sleeper.ring, sleeper.ring.page->data_head, 10 * millisecond), 0);
		drop_sleeper(&sleeper);
	}
}

/* By the ring's fd alone. */
static int sleep_in_child(int fd)
{
	struct perfring_ring ring;

	if (perfring_ring_attach(&ring, fd, 0, NULL))
		return 1;
	for (uint64_t i = 0; i < 20; i++) {
		if (perfring_wakeup_wait(&ring, ring.page->data_tail, 20000 * millisecond) != 1)
			return 2;
		if (perfring_wakeup_poll(&ring) != 0)
			return 3; /* the wait has told it */
		__atomic_store_n(&ring.page->data_tail, __atomic_load_n(&ring.page->data_head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	}
	return 0;
}

Test(wakeup, across_processes)
{
	struct sleeper sleeper = make_sleeper(1, 0);
	struct perfring_ring_state *state = perfring_ring_state_of(sleeper.ring.page);
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(sleep_in_child(sleeper.ring.fd));
	for (unsigned i = 0; i < 20; i++) {
		while (!(__atomic_load_n(&state->armed, __ATOMIC_SEQ_CST) & PERFRING_WAKEUP_FUTEX)) {
			cr_assert_eq(waitpid(child, &status, WNOHANG), 0, "the child left: %x", (unsigned)status);
			usleep(100);
		}
		usleep(i % 4 * 1000);
		put(sleeper.writer, NULL, PERF_RECORD_SAMPLE);
		while (i < 19 &&
		       __atomic_load_n(&sleeper.ring.page->data_tail, __ATOMIC_ACQUIRE) != sleeper.ring.page->data_head)
			usleep(100);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
	cr_assert_eq(calls, 20, "one call for each");
	drop_sleeper(&sleeper);
}

/* ---- every interleaving ----
 *
 * Two threads, of which one runs at a time: each named point hands over to the schedule, which lets the reader make its
 * k-th step after the writer's at[k]-th.  What is between two points is one step. */

struct actor {
	pthread_t thread; /* one for all schedules: to make one is dear under the sanitizers */
	sem_t again;      /* for the next schedule; run is NULL: there is none */
	sem_t go;
	sem_t over;
	void (*run)(struct actor *actor);
	struct sleeper *sleeper;
	const char *point;
	bool done;
	bool free; /* stops at no point any more */
	int result;
};

static __thread struct actor *self;
static sem_t handed_over;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		;
}

static void strike(const char *name)
{
	struct actor *actor = self;

	if (!actor || PERFRING_LOAD(&actor->free))
		return;
	actor->point = name;
	sem_post(&handed_over);
	await(&actor->go);
}

static void *act(void *data)
{
	struct actor *actor = data;

	for (;;) {
		await(&actor->again);
		if (!actor->run)
			return NULL;
		await(&actor->go);
		self = actor;
		actor->run(actor);
		self = NULL;
		PERFRING_STORE(&actor->done, true);
		sem_post(&handed_over);
		sem_post(&actor->over);
	}
}

/* Whether it came to its next point, or to its end, within the time. */
static bool step(struct actor *actor, int64_t microseconds)
{
	struct timespec until;

	if (PERFRING_LOAD(&actor->done))
		return true;
	sem_post(&actor->go);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(microseconds / 1000000);
	until.tv_nsec += (long)(microseconds % 1000000 * 1000);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (sem_timedwait(&handed_over, &until) < 0)
		if (errno == ETIMEDOUT)
			return false;
	return true;
}

static void open_actor(struct actor *actor)
{
	sem_init(&actor->again, 0, 0);
	sem_init(&actor->go, 0, 0);
	sem_init(&actor->over, 0, 0);
	cr_assert_eq(pthread_create(&actor->thread, NULL, act, actor), 0);
}

static void start(struct actor *actor, struct sleeper *sleeper, void (*run)(struct actor *))
{
	actor->run = run;
	actor->sleeper = sleeper;
	actor->point = NULL;
	actor->done = actor->free = false;
	actor->result = 0;
	while (sem_trywait(&actor->go) == 0) /* what the schedule before did not need */
		;
	sem_post(&actor->again);
}

static void close_actor(struct actor *actor)
{
	actor->run = NULL;
	sem_post(&actor->again);
	pthread_join(actor->thread, NULL);
}

/* Writers.  Each ends with a crossing, or with a flush. */
static void write_crossing(struct actor *actor)
{
	actor->sleeper->writer->thread = perfring_writer_thread();
	put(actor->sleeper->writer, NULL, PERF_RECORD_SAMPLE);
}

static void write_nested(struct actor *actor)
{
	struct perfring_writer *writer = actor->sleeper->writer;
	struct perfring_claim claim;
	void *space;

	writer->thread = perfring_writer_thread();
	space = perfring_writer_reserve(writer, NULL, 24, &claim);
	put(writer, NULL, PERF_RECORD_SAMPLE);
	memcpy(space, (uint64_t[3]){header_word(9, 24), 1, 2}, 24);
	perfring_writer_commit(writer, &claim);
}

static void write_and_flush(struct actor *actor)
{
	write_crossing(actor);
	perfring_writer_flush(actor->sleeper->writer);
}

/* Readers.  The position is where the ring stood before. */
static void sleep_by_futex(struct actor *actor)
{
	actor->result = perfring_wakeup_wait(&actor->sleeper->ring, actor->sleeper->ring.page->data_tail,
					     INT64_C(10000) * millisecond);
}

static void sleep_by_eventfd(struct actor *actor)
{
	struct pollfd asked = {.fd = actor->sleeper->fd, .events = POLLIN};

	actor->result = 1;
	if (perfring_wakeup_arm(&actor->sleeper->ring, actor->sleeper->ring.page->data_tail, PERFRING_WAKEUP_EVENTFD))
		return;
	strike("wakeup_sleeping");
	actor->result = poll(&asked, 1, 10000);
}

/* Has read all there is, but a crossing that is on its way is not slept through either. */
static void sleep_drained(struct actor *actor)
{
	struct perfring_ring *ring = &actor->sleeper->ring;

	actor->result = perfring_wakeup_wait(ring, perfring_page_observe(ring->page), INT64_C(10000) * millisecond);
}

/* For the next record.  When one is in the making that may come unheard, it sleeps but short, and looks. */
static void sleep_for_record(struct actor *actor)
{
	struct perfring_ring *ring = &actor->sleeper->ring;
	uint64_t at = ring->page->data_tail;
	bool short_sleep = perfring_writer_arm(actor->sleeper->writer);

	actor->result = perfring_wakeup_wait(ring, at, short_sleep ? millisecond / 2 : 10000 * millisecond);
	if (short_sleep)
		actor->result = 2;
}

static struct actor writer, reader;

struct race {
	uint32_t watermark, wakeup_events;
	unsigned before; /* records, read already */
	void (*write)(struct actor *);
	void (*sleep)(struct actor *);
};

/* One ring serves all schedules, and stands before each as it did before the first. */
static struct sleeper sleeper;
static struct perfring_writer writer_image;
static void *page_image;

static size_t page_size(void)
{
	return (size_t)((const unsigned char *)sleeper.ring.data - (const unsigned char *)sleeper.ring.page);
}

static void keep_images(void)
{
	writer_image = *sleeper.writer;
	page_image = malloc(page_size());
	cr_assert_not_null(page_image);
	memcpy(page_image, sleeper.ring.page, page_size());
}

static void restore_images(void)
{
	*sleeper.writer = writer_image;
	memcpy(sleeper.ring.page, page_image, page_size());
	told(&sleeper);
	calls = 0;
}

/* Returns the writer's steps.  at: for each step of the reader, how many of the writer's come first. */
static unsigned race_once(const struct race *race, const unsigned at[4], unsigned *slept)
{
	unsigned steps = 0;
	bool finished = true;
	int64_t began;

	restore_images();
	start(&writer, &sleeper, race->write);
	start(&reader, &sleeper, race->sleep);
	for (unsigned k = 0; k < 4 && finished; k++) {
		while (steps < at[k] && !PERFRING_LOAD(&writer.done)) {
			cr_assert(step(&writer, 5000000), "the writer hangs behind %s", writer.point);
			steps++;
		}
		/* From the last point on it sleeps, and is given a moment to get there. */
		finished = step(&reader, reader.point && !strcmp(reader.point, "wakeup_sleeping") ? 200 : 5000000);
	}
	*slept += !finished;
	/* From here on each to its end: the reader may be asleep, and come to another point. */
	began = milliseconds();
	PERFRING_STORE(&reader.free, true);
	sem_post(&reader.go);
	while (!PERFRING_LOAD(&writer.done)) {
		cr_assert(step(&writer, 5000000), "the writer hangs behind %s", writer.point);
		steps++;
	}
	await(&writer.over);
	await(&reader.over);
	while (sem_trywait(&handed_over) == 0)
		;
	/* at its end it looks again, and says 1 though nobody woke it: so the time counts, too */
	cr_assert_lt(milliseconds() - began, 5000, "slept through a crossing at %u %u %u %u", at[0], at[1], at[2],
		     at[3]);
	cr_assert_gt(reader.result, 0, "slept through a crossing at %u %u %u %u", at[0], at[1], at[2], at[3]);
	if (race->sleep != sleep_for_record)
		cr_assert_leq(calls, 2, "%u system calls", calls);
	/* told, or to be seen: and after it nobody is armed that sleeps no more */
	cr_assert_neq(sleeper.ring.page->data_head, sleeper.ring.page->data_tail);
	return steps;
}

static void race_everywhere(const struct race *race)
{
	unsigned never[4] = {1000, 1000, 1000, 1000};
	unsigned slept = 0, runs = 0, points, steps, last = race->sleep == sleep_for_record ? 4 : 3;
	unsigned at[4];

	cpu_set_t here;

	/* One runs at a time: on one processor it costs no interrupt of another to hand over. */
	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
	sem_init(&handed_over, 0, 0);
	open_actor(&writer);
	open_actor(&reader);
	sleeper = make_sleeper(race->watermark, race->wakeup_events);
	for (unsigned i = 0; i < race->before; i++)
		cross(&sleeper);
	perfring_wakeup_poll(&sleeper.ring);
	keep_images();
	points = race_once(race, never, &slept);
	cr_assert_gt(points, 5);
	cr_assert_eq(slept, 0);
	for (at[0] = 0; at[0] <= points; at[0]++)
		for (at[1] = at[0]; at[1] <= points; at[1]++)
			for (at[2] = at[1]; at[2] <= points; at[2]++)
				for (at[3] = at[2]; at[3] <= (last == 4 ? points : at[2]); at[3]++, runs++) {
					steps = race_once(race, at, &slept);
					if (steps > points) /* once armed for, a record goes another way */
						points = steps;
				}
	close_actor(&writer);
	close_actor(&reader);
	free(page_image);
	drop_sleeper(&sleeper);
	cr_assert_gt(slept, 5, "of %u schedules %u slept", runs, slept);
}

Test(wakeup, race_watermark_futex)
{
	race_everywhere(&(struct race){48, 0, 2, write_crossing, sleep_by_futex});
}

Test(wakeup, race_watermark_eventfd)
{
	race_everywhere(&(struct race){48, 0, 2, write_crossing, sleep_by_eventfd});
}

Test(wakeup, race_events_futex)
{
	race_everywhere(&(struct race){2048, 2, 1, write_crossing, sleep_by_futex});
}

Test(wakeup, race_nested_eventfd)
{
	race_everywhere(&(struct race){72, 0, 2, write_nested, sleep_by_eventfd});
}

Test(wakeup, race_flush_futex)
{
	race_everywhere(&(struct race){2048, 0, 1, write_and_flush, sleep_by_futex});
}

Test(wakeup, race_next_record)
{
	race_everywhere(&(struct race){2048, 0, 1, write_crossing, sleep_for_record});
}

Test(wakeup, race_drained_futex)
{
	race_everywhere(&(struct race){48, 0, 2, write_crossing, sleep_drained});
}
