/* soft_heir_test.c - events on other threads, and what threads inherit: counts, samples, READ, beside the kernel's. */
#include "soft_rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <perfring/soft.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(soft_heir, .timeout = 60);

enum {
	PAGE = 4096,
	WORDS = 64,
};

/* ---- on another thread ---- */

Test(soft_heir, an_event_on_another_thread_counts_there)
{
	struct perfring_soft_point *point = perfring_soft_define("other");
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event, *sibling, *none;
	uint64_t stream = 0;
	struct worker worker;

	begin(&worker, point);
	tell(&worker, RAISE, 1);
	cr_assert_eq(perfring_soft_open_on(&none, &attr, worker.tid, NULL), -ESRCH, "it has not joined");
	cr_assert_null(none);
	cr_assert_eq(perfring_soft_open_on(&none, &attr, 1, NULL), -ESRCH, "of another process");
	cr_assert_eq(tell(&worker, JOIN, 0), 0);
	cr_assert_eq(perfring_soft_open_on(&event, &attr, worker.tid, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
	cr_assert_eq(perfring_soft_open(&none, &attr, PERFRING_SOFT_THREAD, event), -EINVAL, "of this thread");
	cr_assert_eq(perfring_soft_open_on(&sibling, &attr, worker.tid, event), 0);

	raise_times(point, 100);
	tell(&worker, RAISE, 7);
	cr_assert_eq(value(event), 7);
	cr_assert_eq(value(sibling), 7);
	cr_assert_eq(drain_ids(event, 0, &stream), 7);
	cr_assert_eq(stream, perfring_soft_id(event));

	cr_assert_eq(perfring_soft_refresh(event, 2), 0);
	tell(&worker, RAISE, 7);
	cr_assert_eq(value(event), 9, "its limit ends it in that thread");
	cr_assert_eq(value(sibling), 9, "and its group, after this occurrence");
	perfring_soft_enable(event, false);
	end(&worker);
	cr_assert_eq(value(event), 9, "its count stays");
	perfring_soft_close(sibling);
	perfring_soft_close(event);

	cr_assert_eq(perfring_soft_open_on(&event, &attr, 0, NULL), 0);
	raise_times(point, 3);
	cr_assert_eq(value(event), 3, "0: the caller");
	perfring_soft_close(event);
}

/* A clock of another thread ticks there, and nowhere else. */
Test(soft_heir, a_clock_on_another_thread)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .sample_period = 1000000};
	struct perfring_soft_event *event;
	struct worker worker;

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	begin(&worker, perfring_soft_define("clock"));
	cr_assert_eq(tell(&worker, JOIN, 0), 0);
	cr_assert_eq(perfring_soft_open_on(&event, &attr, worker.tid, NULL), 0);
	cr_assert_eq(perfring_soft_map(event, 16, -1), 0);
	burn(50000000);
	cr_assert_eq(drain_ids(event, 0, NULL), 0);
	tell(&worker, BURN, 100000000);
	cr_assert_geq(value(event), 100000000);
	cr_assert_gt(drain_ids(event, 0, NULL), 0);
	end(&worker);
	perfring_soft_close(event);
}

/* ---- threads that inherit ---- */

struct heir {
	struct perfring_soft_point *point;
	int raises;
	unsigned generations; /* after it */
	int ret;
	pid_t tid; /* of occur_on_both's thread */
};

static void *live(void *of)
{
	struct heir *heir = of, child = *heir;
	pthread_t thread;

	raise_times(heir->point, heir->raises);
	if (!heir->generations)
		return of;
	child.generations--;
	heir->ret = perfring_soft_thread_create(&thread, NULL, live, &child);
	if (!heir->ret) {
		pthread_join(thread, NULL);
		heir->ret = child.ret;
	}
	return of;
}

static void *live_alone(void *of)
{
	perfring_soft_join();
	return live(of);
}

Test(soft_heir, threads_inherit_of_their_creator)
{
	struct perfring_soft_point *point = perfring_soft_define("heirs");
	struct perf_event_attr attr = attr_sampling(point);
	struct heir heir = {.point = point, .raises = 5, .generations = 3};
	struct perfring_soft_event *event, *alone, *late, *none;
	pthread_t thread;
	void *returned;

	alone = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	attr.inherit = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_open(&none, &attr, PERFRING_SOFT_THREAD, alone), -EINVAL, "inherit as the leader's");
	cr_assert_eq(perfring_soft_map(event, 4, -1), 0);
	cr_assert_eq(perfring_soft_refresh(event, 1), -EINVAL, "an inherited event has no limit");
	late = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	perfring_soft_disable(late, false);

	cr_assert_eq(perfring_soft_thread_create(&thread, NULL, live, &heir), 0);
	pthread_join(thread, &returned);
	cr_assert_eq(returned, &heir);
	cr_assert_eq(heir.ret, 0);
	cr_assert_eq(value(event), 20, "four generations");
	cr_assert_eq(drain_ids(event, perfring_soft_id(event), NULL), 20);
	cr_assert_eq(value(alone), 0);
	cr_assert_eq(value(late), 0, "off, so its heirs were too");

	perfring_soft_reset(event, false);
	raise_times(point, 2);
	cr_assert_eq(value(event), 22, "reset leaves what threads that left have counted");

	cr_assert_eq(pthread_create(&thread, NULL, live_alone, &heir), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(value(event), 22, "nobody knows whose child that is");
	perfring_soft_close(late);
	perfring_soft_close(event);
	perfring_soft_close(alone);
}

struct waiting {
	struct perfring_soft_point *point;
	uint32_t goes;
};

static void *raise_later(void *of)
{
	struct waiting *waiting = of;

	while (!PERFRING_LOAD_ACQUIRE(&waiting->goes))
		usleep(100);
	raise_times(waiting->point, 3);
	return NULL;
}

/* Rings of another event: there is none for an heir that is older than that event. */
Test(soft_heir, what_has_no_ring_is_lost)
{
	struct waiting waiting = {.point = perfring_soft_define("older")};
	struct perf_event_attr attr = attr_sampling(waiting.point);
	struct perfring_soft_event *event, *other, *alone;
	struct worker worker;
	pthread_t thread;

	alone = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(alone, 4, -1), 0);
	attr.inherit = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_thread_create(&thread, NULL, raise_later, &waiting), 0);
	other = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(perfring_soft_map(other, 4, -1), 0);
	cr_assert_eq(perfring_soft_set_output(event, alone), -EINVAL, "it has no rings for heirs");
	cr_assert_eq(perfring_soft_set_output(event, other), 0);
	PERFRING_STORE_RELEASE(&waiting.goes, 1);
	pthread_join(thread, NULL);
	cr_assert_eq(perfring_soft_lost(event), 3);
	raise_times(waiting.point, 2);
	cr_assert_eq(drain_ids(other, perfring_soft_id(event), NULL), 2);
	cr_assert_eq(perfring_soft_lost(event), 3);
	perfring_soft_close(other);
	raise_times(waiting.point, 2);
	cr_assert_eq(perfring_soft_lost(event), 3, "it has no ring");
	perfring_soft_close(event);
	perfring_soft_close(alone);

	/* Two events whose threads have left are not of one thread. */
	attr.inherit = 0;
	begin(&worker, waiting.point);
	cr_assert_eq(tell(&worker, JOIN, 0), 0);
	cr_assert_eq(perfring_soft_open_on(&event, &attr, worker.tid, NULL), 0);
	end(&worker);
	begin(&worker, waiting.point);
	cr_assert_eq(tell(&worker, JOIN, 0), 0);
	cr_assert_eq(perfring_soft_open_on(&other, &attr, worker.tid, NULL), 0);
	cr_assert_eq(perfring_soft_map(other, 4, -1), 0);
	end(&worker);
	cr_assert_eq(perfring_soft_set_output(event, other), -EINVAL);
	perfring_soft_close(other);
	perfring_soft_close(event);
}

static uint64_t seen_by_handler;
static struct perfring_soft_point *struck_point;

static void raise_at_once(int number)
{
	(void)number;
	perfring_soft_raise(struck_point, 1, 0, NULL, 0);
	PERFRING_ADD(&seen_by_handler, 1);
}

static void *be_struck(void *of)
{
	(void)of;
	return NULL;
}

/* A signal for a new thread waits until the thread has joined. */
Test(soft_heir, a_handler_in_a_new_thread_raises_as_that_thread)
{
	struct perf_event_attr attr = attr_sampling(perfring_soft_define("struck"));
	struct sigaction action = {.sa_handler = raise_at_once};
	struct perfring_soft_event *event;
	struct timespec pause = {0, 1000000};
	pthread_t thread;
	pid_t child, self = getpid();
	int status;

	struck_point = perfring_soft_define("struck");
	attr.inherit = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	child = (pid_t)syscall(SYS_fork);
	if (!child) { /* not longer than the test, however that ends */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == self) {
			kill(self, SIGUSR1);
			syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
		}
		_exit(0);
	}
	for (int i = 0; i < 300; i++) {
		cr_assert_eq(perfring_soft_thread_create(&thread, NULL, be_struck, NULL), 0);
		pthread_join(thread, NULL);
	}
	/* Not each: a signal may come when its thread has left and has not ended. */
	while (value(event) < 20)
		usleep(1000);
	kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0)
		cr_assert_eq(errno, EINTR);
	cr_assert_leq(value(event), PERFRING_LOAD(&seen_by_handler));
	cr_assert_geq(value(event), 20u);
	perfring_soft_close(event);
}

Test(soft_heir, a_thread_that_cannot_join_is_no_thread)
{
	struct perfring_soft_point *point = perfring_soft_define("refused");
	struct heir heir = {.point = point, .raises = 1};
	struct perf_event_attr attr = attr_sampling(point);
	struct perfring_soft_event *event;
	pthread_attr_t large;
	pthread_t thread;

	attr.inherit = 1;
	event = open_event(&attr, PERFRING_SOFT_THREAD, NULL);
	pthread_attr_init(&large);
	cr_assert_eq(pthread_attr_setstacksize(&large, (size_t)1 << 47), 0);
	cr_assert_eq(perfring_soft_thread_create(&thread, &large, live, &heir), -EAGAIN);
	pthread_attr_destroy(&large);
	cr_assert_eq(value(event), 0);
	perfring_soft_close(event);
}

/* ---- READ ---- */

/* The records of READ in all rings: words after the header, without TOTAL_TIME. */
struct reads {
	uint32_t n;
	uint64_t sizes[8];
	uint64_t words[8][WORDS];
};

static void take_read(struct reads *reads, const struct perf_event_header *record)
{
	cr_assert_lt(reads->n, 8);
	reads->sizes[reads->n] = record->size;
	memcpy(reads->words[reads->n++], record + 1, record->size - sizeof(*record));
}

static void take_soft_reads(struct reads *reads, struct perfring_soft_event *event)
{
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;

	while ((member = perfring_set_next(perfring_soft_rings(event), member))) {
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1)
			if (record->type == PERF_RECORD_READ)
				take_read(reads, record);
		perfring_reader_return(&member->reader);
	}
}

static unsigned char *pages;

static void *occur_on_both(void *of)
{
	struct heir *heir = of;

	heir->tid = (pid_t)syscall(SYS_gettid);
	for (int i = 0; i < heir->raises; i++)
		syscall(SYS_getcpu, pages + (size_t)i * PAGE, NULL, NULL);
	raise_times(heir->point, heir->raises);
	return NULL;
}

/* The kernel's events of a group of `members`, and the READs of a thread that inherits them. */
static bool read_of_kernel(struct reads *reads, struct heir *heir, uint64_t format, int members, uint64_t *ids)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE}, alone = attr;
	int fds[4], own;
	struct perf_event_mmap_page *page;
	const struct perf_event_header *record;
	cpu_set_t before, here;
	pthread_t thread;
	uint64_t at;

	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.exclude_user = attr.inherit = attr.inherit_stat = 1;
	attr.read_format = format;
	/* One ring for both threads needs an event of a CPU. */
	cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	cr_assert_eq(sched_setaffinity(0, sizeof(here), &here), 0);
	for (int i = 0; i < members; i++) {
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, sched_getcpu(), i ? fds[0] : -1, 0);
		if (fds[i] < 0)
			return false;
		cr_assert_eq(ioctl(fds[i], PERF_EVENT_IOC_ID, &ids[i]), 0);
	}
	/* Not inherited: else the kernel swaps the events of both threads. */
	alone.config = PERF_COUNT_SW_DUMMY;
	own = (int)syscall(SYS_perf_event_open, &alone, 0, -1, -1, 0);
	cr_assert_geq(own, 0);
	page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	cr_assert_neq(page, MAP_FAILED);
	for (int i = 1; i < members; i++)
		cr_assert_eq(ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0]), 0);
	cr_assert_eq(pthread_create(&thread, NULL, occur_on_both, heir), 0);
	pthread_join(thread, NULL);
	/* A thread is joined before it has ended. */
	for (unsigned n = 0; n < 20000 && !syscall(SYS_tgkill, getpid(), heir->tid, 0); n++)
		usleep(500);
	for (at = 0; at < PERFRING_LOAD_ACQUIRE(&page->data_head); at += record->size) {
		record = (const void *)((const char *)page + PAGE + at);
		if (record->type == PERF_RECORD_READ)
			take_read(reads, record);
	}
	munmap(page, 3 * PAGE);
	for (int i = 0; i < members; i++)
		close(fds[i]);
	close(own);
	cr_assert_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	return true;
}

static uint64_t place_of(const uint64_t *ids, int members, uint64_t id)
{
	for (int i = 0; i < members; i++)
		if (ids[i] == id)
			return (uint64_t)i;
	return UINT64_MAX;
}

/* Ids, which differ, become the member's number. */
static void number_ids(struct reads *reads, const uint64_t *ids, int members, uint64_t format)
{
	for (uint32_t i = 0; i < reads->n; i++)
		for (uint64_t k = 1; k < reads->sizes[i] / 8 - 1; k++)
			if (format & PERF_FORMAT_ID && place_of(ids, members, reads->words[i][k]) != UINT64_MAX)
				reads->words[i][k] = 1000 + place_of(ids, members, reads->words[i][k]);
}

static void read_of_soft(struct reads *reads, struct heir *heir, uint64_t format, int members, uint64_t *ids)
{
	struct perf_event_attr attr = attr_of(heir->point);
	struct perfring_soft_event *events[4];
	pthread_t thread;

	attr.inherit = attr.inherit_stat = 1;
	attr.read_format = format;
	for (int i = 0; i < members; i++) {
		events[i] = open_event(&attr, PERFRING_SOFT_THREAD, i ? events[0] : NULL);
		ids[i] = perfring_soft_id(events[i]);
	}
	cr_assert_eq(perfring_soft_map(events[0], 2, -1), 0);
	for (int i = 1; i < members; i++)
		cr_assert_eq(perfring_soft_set_output(events[i], events[0]), 0);
	cr_assert_eq(perfring_soft_thread_create(&thread, NULL, occur_on_both, heir), 0);
	pthread_join(thread, NULL);
	take_soft_reads(reads, events[0]);
	for (int i = members; i--;)
		perfring_soft_close(events[i]);
}

Test(soft_heir, read_at_the_end_of_a_thread)
{
	struct heir heir = {.point = perfring_soft_define("read"), .raises = 5};
	static struct reads ours;
	uint64_t ids[4];

	pages = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(&ours, 0, sizeof(ours));
	read_of_soft(&ours, &heir, PERF_FORMAT_GROUP | PERF_FORMAT_ID, 2, ids);
	cr_assert_eq(ours.n, 2);
	cr_assert_eq(ours.sizes[0], 16 + 8 + 2 * 16, "the sibling ends first, in its group");
	cr_assert_eq((uint32_t)ours.words[0][0], (uint32_t)getpid());
	cr_assert_eq(ours.words[0][1], 2);
	cr_assert_eq(ours.words[0][2], 5);
	cr_assert_eq(ours.words[0][3], ids[0]);
	cr_assert_eq(ours.words[0][5], ids[1]);
	cr_assert_eq(ours.sizes[1], 16 + 8 + 16, "the leader last, alone");
	cr_assert_eq(ours.words[1][1], 1);
	cr_assert_eq(ours.words[1][3], ids[0]);
}

Test(soft_heir, reads_are_the_kernels)
{
	struct heir heir = {.point = perfring_soft_define("reads"), .raises = 5};
	static struct reads ours, theirs;
	uint64_t ids[4], format;

	for (int members = 1; members <= 3; members++)
		for (unsigned which = 0; which < 8; which++) {
			format = (which & 1 ? PERF_FORMAT_GROUP : 0) | (which & 2 ? PERF_FORMAT_ID : 0) |
				 (which & 4 ? 16 : 0);
			memset(&ours, 0, sizeof(ours));
			memset(&theirs, 0, sizeof(theirs));
			pages = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			cr_assert_neq(pages, MAP_FAILED);
			madvise(pages, 16 * PAGE, MADV_NOHUGEPAGE);
			if (!read_of_kernel(&theirs, &heir, format, members, ids))
				cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid at most 1, "
					     "or CAP_PERFMON, and Linux 6.0",
					     strerror(errno));
			number_ids(&theirs, ids, members, format);
			munmap(pages, 16 * PAGE);
			pages = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			read_of_soft(&ours, &heir, format, members, ids);
			number_ids(&ours, ids, members, format);
			munmap(pages, 16 * PAGE);
			cr_assert_eq(theirs.n, (uint32_t)members);
			cr_assert_eq(ours.n, theirs.n);
			for (uint32_t i = 0; i < ours.n; i++) {
				cr_assert_eq(ours.sizes[i], theirs.sizes[i], "%d, %u: record %u: %d bytes, kernel %d",
					     members, which, i, (int)ours.sizes[i], (int)theirs.sizes[i]);
				/* The kernel's event also counts the faults of a thread's beginning and end. */
				for (uint64_t k = 1; k < ours.sizes[i] / 8 - 1; k++)
					cr_assert(ours.words[i][k] == theirs.words[i][k] ||
							  (ours.words[i][k] == 5 && theirs.words[i][k] > 5),
						  "%d, %u: record %u, word %d: %d, kernel %d", members, which, i,
						  (int)k, (int)ours.words[i][k], (int)theirs.words[i][k]);
			}
		}
}
