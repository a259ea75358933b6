/* soft_sequence_test.c - the kernel's events beside ours: random attrs, random sequences of calls, the same occurrences; then the
 * same counts, samples, losses, READs, wakeups and signals.
 *
 * Page faults drive the kernel's (a system call writes a fresh page), or with threads and processes, where the kernel itself writes
 * pages, a tracepoint of a system call: each occurrence makes that call, and raises the point.  Both have a group of
 * one or two members, each with a ring of its own.  In a sequence with threads, events are inherited, and the kernel's are of one
 * CPU, on which the test stays: only so does the kernel give a ring to inherited events.  A context switch is a schedule-in of the
 * kernel's event and nothing for ours (soft.h): with threads and processes no period is changed, and a sequence that differs and in
 * which the thread was switched is run again.  With write_backward the kernel's rings are mapped read-only, and all rings are copied
 * at the end. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include <perfring/reader.h>
#include <perfring/ring.h>
#include <perfring/snapshot.h>
#include <perfring/soft.h>
#include <perfring/wakeup.h>

#include "machine.h"
#include "sanitizers.h"

TestSuite(soft_sequence, .timeout = 1800);

enum {
	MEMBERS = 2,
	STEPS = 24,
	THREADS = STEPS + 1, /* of one sequence */
	WORDS = 6,           /* of a record that are compared */
	RECORDS = 4096,      /* of one member in one sequence */
	TRIES = 20,
	FORMAT_LOST = 16,
	PAGE = 4096,
	PAGES = STEPS * 80,
};

extern char **environ;

static unsigned char *region; /* whose fresh pages a system call writes; NULL: the tracepoint's call */
static unsigned touched;
static struct perfring_soft_point *point;
static uint64_t tracepoint;
static uint32_t main_tid;

/* ---- what is done ---- */

enum call {
	OCCUR,
	OCCUR_MANY,
	ENABLE,
	DISABLE,
	RESET,
	DRAIN,
	PERIOD,  /* alone: no threads */
	REFRESH, /* likewise */
	THREAD,  /* with threads */
	FORK,
	EXEC,
	CALLS,
};

static const char *const NAMES[CALLS] = {"occur",  "many",    "enable", "disable", "reset", "drain",
					 "period", "refresh", "thread", "fork",    "exec"};

struct step {
	uint8_t call, member, group, number;
};

struct sequence {
	unsigned seed, members;
	bool inherits, signals, disabled, backward;
	uint64_t period[MEMBERS], sample_type, read_format;
	uint32_t wakeup_events;
	struct step steps[STEPS];
};

/* ---- what came of it ---- */

struct log {
	uint32_t n;
	uint64_t words[RECORDS][WORDS]; /* type, thread, and of LOST, READ, SAMPLE what is not a time or an id */
};

struct outcome {
	uint64_t counts[MEMBERS][3 + 2 * MEMBERS];
	uint64_t wakeups, signals; /* a bit for each step; how many */
	struct log logs[MEMBERS];
};

static struct outcome kernel, soft;

/* Both sides of one member. */
struct twin {
	int fd;
	uint64_t id;
	struct perfring_ring ring;
	struct perfring_reader reader;
	struct perfring_soft_event *event;
};

static struct twin twins[MEMBERS];
static uint32_t tids[THREADS], tid_count;

static uint64_t number_of(uint32_t tid)
{
	for (uint32_t i = 0; i < tid_count; i++)
		if (tids[i] == tid)
			return i;
	cr_assert_lt(tid_count, THREADS);
	tids[tid_count] = tid;
	return tid_count++;
}

/* In place of an id: whose it is. */
static uint64_t plain(uint64_t word)
{
	for (uint64_t i = 0; i < MEMBERS; i++)
		if ((word && word == twins[i].id) || (twins[i].event && word == perfring_soft_id(twins[i].event)))
			return 0xabc000 + i;
	return word;
}

static void note(struct log *log, const struct perf_event_header *record)
{
	const uint64_t *body = (const void *)(record + 1);
	uint64_t *words = log->words[log->n++];
	uint32_t count = (record->size - 8u) / 8;

	cr_assert_lt(log->n, RECORDS);
	memset(words, 0, WORDS * sizeof(*words));
	words[0] = record->type;
	if (record->type == PERF_RECORD_LOST) {
		words[1] = plain(body[0]);
		words[2] = body[1];
		return;
	}
	/* TID is the first of a sample, and of READ. */
	words[1] = number_of((uint32_t)(body[0] >> 32));
	for (uint32_t i = 1; i < count && i + 1 < WORDS; i++)
		words[i + 1] = plain(body[i]);
}

static void drain(const struct sequence *sequence)
{
	struct perfring_set_ring *ring = NULL;
	const struct perf_event_header *record;

	for (unsigned m = 0; m < sequence->members; m++) {
		cr_assert_geq(perfring_reader_observe(&twins[m].reader), 0);
		while (perfring_reader_next(&twins[m].reader, &record) == 1)
			note(&kernel.logs[m], record);
		perfring_reader_return(&twins[m].reader);
		for (ring = NULL; (ring = perfring_set_next(perfring_soft_rings(twins[m].event), ring));) {
			cr_assert_geq(perfring_reader_observe(&ring->reader), 0);
			while (perfring_reader_next(&ring->reader, &record) == 1)
				if (record->type)
					note(&soft.logs[m], record);
			perfring_reader_return(&ring->reader);
		}
	}
}

static void copy(struct log *log, const struct perfring_ring *ring)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;

	cr_assert_eq(perfring_snapshot_take(&snapshot, ring, 0), 0);
	cr_assert_null(snapshot.fault.what);
	while (perfring_snapshot_next(&snapshot, &record) == 1)
		note(log, record);
	perfring_snapshot_close(&snapshot);
}

static void copy_all(const struct sequence *sequence)
{
	struct perfring_set_ring *ring;

	for (unsigned m = 0; m < sequence->members; m++) {
		cr_assert_eq(ioctl(twins[m].fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
		copy(&kernel.logs[m], &twins[m].ring);
		for (ring = NULL; (ring = perfring_set_next(perfring_soft_rings(twins[m].event), ring));)
			copy(&soft.logs[m], &ring->ring);
	}
}

/* The kernel has one ring for all threads, we one for each: as if each thread's records were in a row. */
static void sort(struct log *log)
{
	static uint64_t sorted[RECORDS][WORDS];
	uint32_t n = 0;

	for (uint64_t thread = 0; thread < THREADS; thread++)
		for (uint32_t i = 0; i < log->n; i++)
			if (log->words[i][0] != PERF_RECORD_LOST && log->words[i][1] == thread)
				memcpy(sorted[n++], log->words[i], sizeof(sorted[0]));
	memcpy(log->words, sorted, n * sizeof(sorted[0]));
	log->n = n;
}

/* ---- signals ---- */

static uint32_t kernel_signals, soft_signals;

static void on_kernel(int number)
{
	(void)number;
	PERFRING_ADD(&kernel_signals, 1u);
}

static void on_soft(int number)
{
	(void)number;
	PERFRING_ADD(&soft_signals, 1u);
}

/* ---- calls ---- */

static void occur(unsigned times)
{
	while (times--) {
		if (region)
			syscall(SYS_getcpu, region + (size_t)touched++ * PAGE, NULL, NULL);
		else
			syscall(SYS_ioprio_get, 0, 0);
		perfring_soft_raise(point, 1, 0, NULL, 0);
	}
}

static void *live(void *times)
{
	occur((unsigned)(uintptr_t)times);
	return NULL;
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		cr_assert_eq(errno, EINTR);
}

static void do_step(const struct step *step)
{
	unsigned long flag = step->group ? PERF_IOC_FLAG_GROUP : 0;
	struct twin *twin = &twins[step->member];
	char *words[] = {(char *)(uintptr_t)"true", NULL};
	uint64_t period = step->number;
	pthread_t thread;
	struct stat before, after;
	pid_t pid;

	switch (step->call) {
	case OCCUR:
		occur(step->number);
		break;
	case OCCUR_MANY:
		occur(10u * step->number);
		break;
	case ENABLE:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_ENABLE, flag), 0);
		perfring_soft_enable(twin->event, step->group);
		break;
	case DISABLE:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_DISABLE, flag), 0);
		perfring_soft_disable(twin->event, step->group);
		break;
	case RESET:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_RESET, flag), 0);
		perfring_soft_reset(twin->event, step->group);
		break;
	case PERIOD:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_PERIOD, &period), 0);
		cr_assert_eq(perfring_soft_set_period(twin->event, period), 0);
		/* In a group an enable of the other member is a schedule-in of this one, for the kernel alone: at once, for both. */
		if (!twins[1].event)
			break;
		cr_assert_eq(ioctl(twins[0].fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		perfring_soft_disable(twins[0].event, false);
		cr_assert_eq(ioctl(twins[0].fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		perfring_soft_enable(twins[0].event, false);
		break;
	case REFRESH:
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_REFRESH, (int)step->number), 0);
		cr_assert_eq(perfring_soft_refresh(twin->event, step->number), 0);
		break;
	case THREAD:
		cr_assert_eq(stat("/proc/self/task", &before), 0);
		cr_assert_eq(perfring_soft_thread_create(&thread, NULL, live, (void *)(uintptr_t)step->number), 0);
		pthread_join(thread, NULL);
		/* It is joined before the kernel has written its READ. */
		for (unsigned n = 0; n < 2000 && !stat("/proc/self/task", &after) && after.st_nlink > before.st_nlink; n++)
			usleep(50);
		break;
	case FORK:
		pid = fork();
		if (!pid) {
			occur(step->number);
			_exit(0);
		}
		cr_assert_gt(pid, 0);
		wait_for(pid);
		break;
	case EXEC:
		cr_assert_eq(posix_spawnp(&pid, "true", NULL, NULL, words, environ), 0);
		wait_for(pid);
		break;
	default:;
	}
}

/* ---- one sequence ---- */

static void make_attrs(const struct sequence *sequence, unsigned m, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_period = sequence->period[m];
	attr->sample_type = sequence->sample_type;
	attr->read_format = sequence->read_format;
	attr->disabled = !m && sequence->disabled;
	attr->wakeup_events = sequence->wakeup_events;
	attr->write_backward = sequence->backward;
	attr->inherit = attr->inherit_thread = attr->inherit_stat = sequence->inherits;
}

static bool open_twins(const struct sequence *sequence)
{
	struct f_owner_ex owner = {F_OWNER_TID, (pid_t)main_tid};
	uint32_t pages = !sequence->inherits  ? 1
			 : sequence->backward ? 64
					      : 16; /* of several rings for one all must be kept */
	struct perf_event_attr attr;
	struct twin *twin;

	for (unsigned m = 0; m < sequence->members; m++) {
		twin = &twins[m];
		make_attrs(sequence, m, &attr);
		attr.type = region ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT;
		attr.config = region ? PERF_COUNT_SW_PAGE_FAULTS : tracepoint;
		attr.exclude_user = !!region;
		twin->fd = (int)syscall(SYS_perf_event_open, &attr, 0, sequence->inherits ? sched_getcpu() : -1,
					m ? twins[0].fd : -1, PERF_FLAG_FD_CLOEXEC);
		if (twin->fd < 0)
			return false;
		cr_assert_eq(ioctl(twin->fd, PERF_EVENT_IOC_ID, &twin->id), 0);
		cr_assert_eq(perfring_ring_map(&twin->ring, twin->fd, pages,
					       sequence->backward ? PERFRING_RING_OVERWRITE : 0),
			     0);
		if (!sequence->backward)
			cr_assert_eq(perfring_reader_open(&twin->reader, &twin->ring, 0), 0);
		attr.exclude_user = 0;
		attr.type = point->type;
		attr.config = point->config;
		cr_assert_eq(perfring_soft_open(&twin->event, &attr, PERFRING_SOFT_THREAD, m ? twins[0].event : NULL), 0);
		cr_assert_eq(perfring_soft_map(twin->event, pages, -1), 0);
		if (!sequence->signals)
			continue;
		cr_assert_eq(fcntl(twin->fd, F_SETSIG, SIGRTMIN + 1), 0);
		cr_assert_eq(fcntl(twin->fd, F_SETOWN_EX, &owner), 0);
		cr_assert_eq(fcntl(twin->fd, F_SETFL, O_ASYNC), 0);
		cr_assert_eq(perfring_soft_set_signal(twin->event, SIGRTMIN + 2, main_tid, twin->fd), 0);
	}
	return true;
}

static void close_twins(const struct sequence *sequence)
{
	for (unsigned m = sequence->members; m--;) {
		perfring_reader_close(&twins[m].reader);
		perfring_ring_close(&twins[m].ring);
		close(twins[m].fd);
		perfring_soft_close(twins[m].event);
		twins[m].event = NULL;
		twins[m].id = 0;
	}
}

/* Of the ring's first fd since the last look.  With signals the kernel wakes at each overflow, and we do not; with threads it has
 * one ring. */
static void look_at_wakeups(const struct sequence *sequence, unsigned step)
{
	struct perfring_set_ring *ring;

	for (unsigned m = 0; m < sequence->members && !sequence->signals && !sequence->inherits; m++) {
		struct pollfd ready = {.fd = twins[m].fd, .events = POLLIN};

		if (poll(&ready, 1, 0) == 1 && ready.revents & POLLIN)
			kernel.wakeups |= UINT64_C(1) << (2 * step + m);
		ring = perfring_set_next(perfring_soft_rings(twins[m].event), NULL);
		if (perfring_wakeup_poll(&ring->ring))
			soft.wakeups |= UINT64_C(1) << (2 * step + m);
	}
}

static void take_counts(const struct sequence *sequence)
{
	for (unsigned m = 0; m < sequence->members; m++) {
		cr_assert_gt(read(twins[m].fd, kernel.counts[m], sizeof(kernel.counts[m])), 0);
		cr_assert_gt(perfring_soft_read(twins[m].event, soft.counts[m], sizeof(soft.counts[m])), 0);
		for (size_t i = 0; i < sizeof(soft.counts[m]) / 8; i++) {
			kernel.counts[m][i] = plain(kernel.counts[m][i]);
			soft.counts[m][i] = plain(soft.counts[m][i]);
		}
	}
}

static bool run_once(const struct sequence *sequence)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&soft, 0, sizeof(soft));
	kernel_signals = soft_signals = tid_count = 0;
	number_of(main_tid);
	if (region)
		munmap(region, (size_t)PAGES * PAGE);
	region = NULL;
	touched = 0;
	if (!sequence->inherits) {
		region = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert_neq(region, MAP_FAILED);
		madvise(region, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	}
	if (!open_twins(sequence))
		return false;
	for (unsigned i = 0; i < STEPS; i++) {
		do_step(&sequence->steps[i]);
		if (!sequence->backward && (sequence->steps[i].call == DRAIN || sequence->inherits))
			drain(sequence);
		look_at_wakeups(sequence, i);
	}
	if (sequence->backward)
		copy_all(sequence);
	else
		drain(sequence);
	take_counts(sequence);
	kernel.signals = PERFRING_LOAD(&kernel_signals);
	soft.signals = PERFRING_LOAD(&soft_signals);
	close_twins(sequence);
	for (unsigned m = 0; m < MEMBERS && sequence->inherits; m++) {
		sort(&kernel.logs[m]);
		sort(&soft.logs[m]);
	}
	return true;
}

static bool is_equal(void)
{
	if (memcmp(kernel.counts, soft.counts, sizeof(soft.counts)) || kernel.wakeups != soft.wakeups ||
	    kernel.signals != soft.signals)
		return false;
	for (unsigned m = 0; m < MEMBERS; m++)
		if (kernel.logs[m].n != soft.logs[m].n ||
		    memcmp(kernel.logs[m].words, soft.logs[m].words, soft.logs[m].n * sizeof(soft.logs[m].words[0])))
			return false;
	return true;
}

static void print_log(const char *whose, const struct log *log, uint32_t from)
{
	for (uint32_t i = from; i < log->n && i < from + 3; i++) {
		fprintf(stderr, "  %s record %u:", whose, i);
		for (unsigned k = 0; k < WORDS; k++)
			fprintf(stderr, " %lx", (unsigned long)log->words[i][k]);
		fputc('\n', stderr);
	}
}

static void print(const struct sequence *sequence)
{
	fprintf(stderr, "sequence %u: %u members, periods %lu %lu, type %lx, format %lx, wakeup %u%s%s%s%s\n ",
		sequence->seed, sequence->members, (unsigned long)sequence->period[0],
		(unsigned long)sequence->period[1], (unsigned long)sequence->sample_type,
		(unsigned long)sequence->read_format, sequence->wakeup_events, sequence->inherits ? ", inherits" : "",
		sequence->signals ? ", signals" : "", sequence->disabled ? ", disabled" : "",
		sequence->backward ? ", backward" : "");
	for (unsigned i = 0; i < STEPS; i++) {
		const struct step *step = &sequence->steps[i];

		fprintf(stderr, " %s(%u%s,%u)", NAMES[step->call], step->member, step->group ? "g" : "", step->number);
	}
	fprintf(stderr, "\n  wakeups %lx %lx, signals %lu %lu\n", (unsigned long)kernel.wakeups,
		(unsigned long)soft.wakeups, (unsigned long)kernel.signals, (unsigned long)soft.signals);
	for (unsigned m = 0; m < sequence->members; m++) {
		const struct log *theirs = &kernel.logs[m], *ours = &soft.logs[m];
		uint32_t i = 0;

		fprintf(stderr, "  member %u: counts", m);
		for (unsigned k = 0; k < 5; k++)
			fprintf(stderr, " %lx/%lx", (unsigned long)kernel.counts[m][k],
				(unsigned long)soft.counts[m][k]);
		fprintf(stderr, ", records %u %u\n", theirs->n, ours->n);
		while (i < theirs->n && i < ours->n && !memcmp(theirs->words[i], ours->words[i], sizeof(ours->words[i])))
			i++;
		print_log("their", theirs, i);
		print_log("our", ours, i);
	}
}

static void make(struct sequence *sequence, unsigned seed)
{
	unsigned random = seed;

	memset(sequence, 0, sizeof(*sequence));
	sequence->seed = seed;
	sequence->members = 1 + (unsigned)rand_r(&random) % MEMBERS;
	sequence->inherits = rand_r(&random) % 4 == 0;
	/* READ signals too, in the kernel; and the thread sanitizer merges signals. */
	sequence->signals = rand_r(&random) % 3 == 0 && !sequence->inherits && !IS_THREAD_SANITIZED;
	sequence->disabled = rand_r(&random) % 2;
	sequence->wakeup_events = (uint32_t)rand_r(&random) % 5;
	sequence->sample_type = PERF_SAMPLE_TID;
	if (rand_r(&random) % 4 == 0)
		sequence->sample_type |= PERF_SAMPLE_PERIOD;
	if (!sequence->inherits && rand_r(&random) % 2)
		sequence->sample_type |= PERF_SAMPLE_READ;
	sequence->read_format = (rand_r(&random) % 2 ? PERF_FORMAT_ID : 0) | (rand_r(&random) % 2 ? FORMAT_LOST : 0) |
				(rand_r(&random) % 2 ? PERF_FORMAT_GROUP : 0);
	for (unsigned m = 0; m < MEMBERS; m++)
		sequence->period[m] = 1 + (unsigned)rand_r(&random) % 6;
	for (unsigned i = 0; i < STEPS; i++) {
		struct step *step = &sequence->steps[i];

		do
			step->call = (uint8_t)((unsigned)rand_r(&random) % CALLS);
		while (sequence->inherits ? step->call == PERIOD || step->call == REFRESH
					  : step->call >= THREAD);
		step->member = (uint8_t)((unsigned)rand_r(&random) % sequence->members);
		step->group = (uint8_t)((unsigned)rand_r(&random) % 2);
		step->number = (uint8_t)(1 + (unsigned)rand_r(&random) % 7);
	}
	sequence->backward = rand_r(&random) % 4 == 0;
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void prepare(void)
{
	static const char *const files[] = {"/sys/kernel/tracing/events/syscalls/sys_enter_ioprio_get/id",
					    "/sys/kernel/debug/tracing/events/syscalls/sys_enter_ioprio_get/id"};
	FILE *file = NULL;
	cpu_set_t here;

	for (unsigned i = 0; i < 2 && !file; i++)
		file = fopen(files[i], "r");
	if (!file || fscanf(file, "%lu", &tracepoint) != 1)
		cr_skip_test("SKIP-ENV: %s: %s: needs a kernel with system call tracepoints, and root", files[0],
			     strerror(errno));
	fclose(file);
	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	cr_assert_eq(sched_setaffinity(0, sizeof(here), &here), 0);
	point = perfring_soft_define("soft_sequence");
	main_tid = (uint32_t)syscall(SYS_gettid);
	signal(SIGRTMIN + 1, on_kernel);
	signal(SIGRTMIN + 2, on_soft);
}

Test(soft_sequence, the_kernels_and_ours_are_the_same)
{
	unsigned count = IS_SANITIZED ? 40 : is_long() ? 10000 : 300, from = 1;
	const char *only = getenv("PERFRING_SEQUENCE");
	struct perf_event_attr alone = {.size = sizeof(alone), .type = PERF_TYPE_SOFTWARE};
	struct sequence sequence;
	uint64_t before;
	int own;

	prepare();
	/* Not inherited: else the kernel swaps the events of two threads. */
	alone.config = PERF_COUNT_SW_DUMMY;
	own = (int)syscall(SYS_perf_event_open, &alone, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (only)
		from = (unsigned)atoi(only), count = 1;
	for (unsigned seed = from; seed < from + count; seed++) {
		bool held = false;

		make(&sequence, seed);
		for (unsigned tries = 0; !held && tries < TRIES; tries++) {
			before = switches();
			if (!run_once(&sequence))
				cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid -1 or "
					     "CAP_PERFMON, and Linux 6.0",
					     strerror(errno));
			held = is_equal();
			if (switches() == before)
				tries += TRIES / 5; /* not for a switch */
		}
		if (!held) {
			print(&sequence);
			cr_assert_fail("sequence %u: PERFRING_SEQUENCE=%u runs it alone", seed, seed);
		}
	}
	close(own);
}
