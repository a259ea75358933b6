/* soft_stress_test.c - soft events while everything moves: threads are born and die, raise and are interrupted by handlers
 * that raise, events come, are redirected and go, and a reader drains.  Every occurrence is accounted for.
 *
 * PERFRING_SOAK (machine.h): seconds.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/session.h>
#include <perfring/soft.h>

#include "machine.h"
#include "test.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	SLOTS = 64,
	LIVES = 1 << 18,
	LEVELS = 2,        /* the thread, its handler */
	BURST = 16,        /* occurrences in a row */
	STRAYS = 2,        /* before join, and after leave */
	LOUD_NS = 3000000, /* between two signals */
	LONG_LIVED = 4,    /* events that sample; ORDERED of them stay with one set of rings */
	ORDERED = 3,
	IDS = 1 << 16,
};

/* What each record carries as raw data. */
struct told {
	uint32_t life, level;
	uint64_t sequence;
};

struct life {
	uint32_t tid;
	uint32_t ended;
	uint64_t raised[LEVELS]; /* each by its level alone */
	timer_t timer;
	pthread_t thread;
};

static struct life lives[LIVES];
static uint32_t born;
static uint32_t stops;   /* bear no more, stir no more */
static uint32_t refused; /* what no thread should be told */
static struct perfring_soft_point *point;
static __thread struct life *self;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)*state * below >> 32);
}

static unsigned count_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* ---- threads ---- */

static void tell(struct life *life, uint32_t level)
{
	struct told told = {(uint32_t)(life - lives), level, life->raised[level]++};

	perfring_soft_raise(point, 1, 0, &told, sizeof(told));
}

static void on_signal(int number)
{
	int error = errno;

	(void)number;
	errno = ERANGE;
	for (int i = 0; i < 2; i++)
		tell(self, 1);
	if (errno != ERANGE)
		PERFRING_ADD(&refused, 1);
	errno = error;
}

static void begin_life(struct life *life)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	struct itimerspec every = {{0, LOUD_NS}, {0, 1}};

	self = life;
	life->tid = (uint32_t)syscall(SYS_gettid);
	event.sigev_notify_thread_id = (pid_t)life->tid;
	if (timer_create(CLOCK_MONOTONIC, &event, &life->timer) || timer_settime(life->timer, 0, &every, NULL))
		PERFRING_ADD(&refused, 1);
}

/* Signals come on, up to the thread's very end. */
static void end_life(struct life *life)
{
	PERFRING_STORE_RELEASE(&life->ended, 1);
}

static void *live(void *of)
{
	struct life *life = of;
	uint32_t number = (uint32_t)(life - lives), state = number;
	int ret;

	begin_life(life);
	for (int i = 0; i < STRAYS; i++)
		tell(life, 0);
	while ((ret = perfring_soft_join()) == -EUSERS) /* more rings of the dead than the reader has seen */
		sched_yield();
	if (ret)
		PERFRING_ADD(&refused, 1);
	for (uint32_t bursts = 1 + draw(&state, 6); bursts; bursts--) {
		double until = now() + 0.004 + 0.012 * draw(&state, 1000) / 1000;

		for (int i = 0; i < BURST; i++)
			tell(life, 0);
		while (now() < until)
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	if (number % 3 == 0) {
		perfring_soft_leave();
		for (int i = 0; i < STRAYS; i++)
			tell(life, 0);
	}
	end_life(life);
	return NULL;
}

static struct life *new_life(void)
{
	return &lives[PERFRING_ADD(&born, 1)];
}

static void bury(struct life *life)
{
	pthread_join(life->thread, NULL);
	timer_delete(life->timer);
}

static void *bear(void *unused)
{
	struct life *slots[SLOTS] = {NULL};

	(void)unused;
	while (!PERFRING_LOAD(&stops) && PERFRING_LOAD(&born) < LIVES - SLOTS) {
		for (int i = 0; i < SLOTS; i++) {
			if (slots[i] && !PERFRING_LOAD_ACQUIRE(&slots[i]->ended))
				continue;
			if (slots[i])
				bury(slots[i]);
			slots[i] = new_life();
			if (pthread_create(&slots[i]->thread, NULL, live, slots[i]))
				PERFRING_ADD(&refused, 1);
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	for (int i = 0; i < SLOTS; i++)
		if (slots[i])
			bury(slots[i]);
	return NULL;
}

/* ---- events ---- */

static struct perf_event_attr stress_attr(uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERFRING_SOFT_TYPE,
		.size = sizeof(attr),
		.config = point->config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_STREAM_ID |
			       PERF_SAMPLE_RAW,
		.read_format = PERFRING_FORMAT_ID | PERFRING_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = 1,
	};

	return attr;
}

static struct perfring_soft_event *open_event(const struct perf_event_attr *attr, struct perfring_soft_event *leader)
{
	struct perfring_soft_event *event;
	int ret;

	while ((ret = perfring_soft_open(&event, attr, PERFRING_SOFT_PROCESS, leader)) == -EUSERS)
		sched_yield();
	cr_assert_eq(ret, 0, "%d", ret);
	return event;
}

/* By read(2)'s bytes: value, id, lost. */
static uint64_t read_count(struct perfring_soft_event *event)
{
	uint64_t words[3];

	cr_assert_eq(perfring_soft_read(event, words, sizeof(words)), 24);
	cr_assert_eq(words[1], perfring_soft_id(event));
	cr_assert_eq(words[2], perfring_soft_lost(event));
	return words[0];
}

/* ---- who writes how much ---- */

static struct written {
	uint64_t id;
	uint64_t records;
} written[IDS]; /* the reader's, until it has ended */

static uint64_t *records_of(uint64_t id)
{
	uint32_t at = (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) % IDS;

	while (written[at].id && written[at].id != id)
		at = (at + 1) % IDS;
	written[at].id = id;
	return &written[at].records;
}

/* Events on the point that wrote into rings of the long-lived ones. */
static struct guest {
	uint64_t id;
	uint64_t records;
} guests[IDS / 2];
static uint32_t guest_count;

static struct perfring_soft_event *long_lived[LONG_LIVED]; /* the first and the last of ORDERED are mapped */
static uint64_t last_sequence[ORDERED][LIVES][LEVELS];     /* + 1 */
static struct perfring_format stress_format;

static struct told told_of(const struct perf_event_header *record, uint32_t tid, uint64_t *id)
{
	struct perfring_sample sample;
	struct told told;

	cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
	cr_assert_eq(perfring_sample_decode(&stress_format, record, &sample, NULL), 0);
	cr_assert_eq(sample.raw.size, 20, "16 bytes, padded");
	memcpy(&told, sample.raw.data, sizeof(told));
	cr_assert_lt(told.life, LIVES);
	cr_assert_lt(told.level, LEVELS);
	cr_assert_eq(sample.pid, (uint32_t)getpid());
	cr_assert_eq(sample.tid, lives[told.life].tid);
	if (tid)
		cr_assert_eq(sample.tid, tid, "in its thread's own ring");
	*id = sample.identifier;
	return told;
}

/* One record of the rings of long-lived events.  tid: whose ring; 0: not known. */
static void take(const struct perf_event_header *record, uint32_t tid)
{
	struct told told;
	uint64_t id;

	if (record->type == PERF_RECORD_LOST)
		return;
	told = told_of(record, tid, &id);
	(*records_of(id))++;
	for (int i = 0; i < ORDERED; i++) {
		uint64_t *last = &last_sequence[i][told.life][told.level];

		if (perfring_soft_id(long_lived[i]) != id)
			continue;
		cr_assert_geq(told.sequence, *last, "event %d, thread %u, level %u: doubled or out of order", i,
			      told.life, told.level);
		*last = told.sequence + 1;
	}
}

/* ---- readers: by walks, or by a session ---- */

struct readers {
	struct perfring_session *session; /* NULL: by walks */
	int wake_fd;
	struct perfring_set *sets[2];
};

/* Walks a set.  Returns whether there are rings in it. */
static bool visit(struct readers *readers, struct perfring_set *set)
{
	struct perfring_set_ring *member = NULL;
	const struct perf_event_header *record;
	bool any = false;

	while ((member = perfring_set_next(set, member))) {
		any = true;
		if (readers->session) {
			if (!member->data) {
				int ring =
					perfring_session_add_ring(readers->session, &member->ring, readers->wake_fd, 0);

				cr_assert_geq(ring, 0, "%d", ring);
				member->data = (void *)(intptr_t)(ring + 1);
			}
			if (member->drained)
				cr_assert_eq(perfring_session_remove_ring(readers->session,
									  (uint32_t)(intptr_t)member->data - 1),
					     0);
			continue;
		}
		cr_assert_geq(perfring_reader_observe(&member->reader), 0, "%s", member->reader.fault.what);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			cr_assert(!member->drained);
			take(record, member->tid);
		}
		perfring_reader_return(&member->reader);
	}
	return any;
}

/* Returns whether there are rings. */
static bool drain_all(struct readers *readers)
{
	struct perfring_item item;
	bool any = false;
	int ret;

	for (int i = 0; i < 2; i++)
		any |= visit(readers, readers->sets[i]);
	if (!readers->session) {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		return any;
	}
	ret = perfring_session_wait(readers->session, 5);
	cr_assert(ret >= 0 || ret == -EINTR, "%d", ret); /* the clocks' timers */
	while (perfring_session_next(readers->session, &item) == 1)
		take(item.record, 0);
	perfring_session_return(readers->session);
	return any;
}

/* ---- whoever opens, redirects and closes ---- */

static void pause_some(uint32_t *state)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000 + draw(state, 4000000)}, NULL);
}

/* Nobody is in an event any more that was disabled before: closing one that is enabled waits for that. */
static void settle(void)
{
	struct perf_event_attr attr = stress_attr(0);
	struct perfring_soft_event *event = open_event(&attr, NULL);

	perfring_soft_enable(event, false);
	perfring_soft_close(event);
}

/* Records in an event's own rings, all of which are read. */
static uint64_t empty(struct perfring_soft_event *event, bool told)
{
	struct perfring_set *set = perfring_soft_rings(event);
	const struct perf_event_header *record;
	struct perfring_set_ring *member = NULL;
	uint64_t samples = 0, id;

	cr_assert_not_null(set);
	while ((member = perfring_set_next(set, member))) {
		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &record) == 1) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			samples++;
			if (told)
				told_of(record, member->tid, &id);
		}
		perfring_reader_return(&member->reader);
	}
	return samples;
}

static void map(struct perfring_soft_event *event, uint32_t pages, int wake_fd)
{
	int ret = perfring_soft_map(event, pages, wake_fd);

	cr_assert_eq(ret, 0, "%d", ret);
}

/* Writes into the rings of a long-lived one. */
static void stir_guest(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(1);
	struct perfring_soft_event *event = open_event(&attr, NULL);
	struct guest *guest = &guests[guest_count++ % (IDS / 2)];

	cr_assert_eq(perfring_soft_set_output(event, long_lived[0]), 0);
	perfring_soft_enable(event, false);
	pause_some(state);
	perfring_soft_disable(event, false);
	settle();
	guest->id = perfring_soft_id(event);
	guest->records = read_count(event) - perfring_soft_lost(event);
	perfring_soft_close(event);
}

/* In rings of its own. */
static void stir_mapped(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(1);
	struct perfring_soft_event *event = open_event(&attr, NULL);

	map(event, 1, -1);
	perfring_soft_enable(event, false);
	pause_some(state);
	perfring_soft_disable(event, false);
	settle();
	cr_assert_eq(empty(event, true) + perfring_soft_lost(event), read_count(event));
	perfring_soft_close(event);
}

/* A group: the leader is closed first. */
static void stir_group(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(1);
	struct perfring_soft_event *leader = open_event(&attr, NULL), *sibling;
	uint64_t of_leader, of_sibling;

	attr.disabled = 0;
	sibling = open_event(&attr, leader);
	map(leader, 2, -1);
	cr_assert_eq(perfring_soft_set_output(sibling, leader), 0);
	perfring_soft_enable(leader, draw(state, 2));
	pause_some(state);
	perfring_soft_disable(leader, false);
	settle();
	of_leader = read_count(leader);
	of_sibling = read_count(sibling);
	cr_assert_eq(empty(leader, true) + perfring_soft_lost(leader) + perfring_soft_lost(sibling),
		     of_leader + of_sibling);
	perfring_soft_close(leader);
	pause_some(state); /* it goes on by itself, and writes nowhere */
	perfring_soft_close(sibling);
}

/* Everything that a sample can hold, at a period that changes, until the last moment. */
static void stir_heavy(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(7);
	struct perfring_soft_event *event;

	attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			    PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = 0xff0fff;
	attr.sample_stack_user = 512;
	event = open_event(&attr, NULL);
	map(event, 8, -1);
	perfring_soft_enable(event, false);
	for (int i = 0; i < 3; i++) {
		pause_some(state);
		cr_assert_eq(perfring_soft_set_period(event, 1 + draw(state, 9)), 0);
		perfring_soft_reset(event, false);
		empty(event, false);
	}
	perfring_soft_close(event);
}

/* A timer in every thread. */
static void stir_clock(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(500000 + draw(state, 2000000));
	struct perfring_soft_event *event;

	attr.type = PERFRING_TYPE_SOFTWARE;
	attr.config = draw(state, 2) ? PERFRING_COUNT_SW_CPU_CLOCK : PERFRING_COUNT_SW_TASK_CLOCK;
	event = open_event(&attr, NULL);
	map(event, 1, -1);
	perfring_soft_enable(event, false);
	pause_some(state);
	empty(event, false);
	if (draw(state, 2)) {
		perfring_soft_disable(event, false);
		pause_some(state);
		perfring_soft_enable(event, false);
	}
	pause_some(state);
	perfring_soft_close(event);
}

/* Of this thread alone. */
static void stir_thread(uint32_t *state)
{
	struct perf_event_attr attr = stress_attr(3);
	struct perfring_soft_event *event;
	uint32_t count = draw(state, 100);
	uint64_t before;

	cr_assert_eq(perfring_soft_open(&event, &attr, PERFRING_SOFT_THREAD, NULL), 0);
	map(event, 2, -1);
	perfring_soft_enable(event, false);
	before = self->raised[1]; /* a signal between these two may come one too early or too late: not exact */
	for (uint32_t i = 0; i < count; i++)
		tell(self, 0);
	perfring_soft_disable(event, false);
	cr_assert_geq(read_count(event), count);
	cr_assert_leq(read_count(event), count + self->raised[1] - before + 2);
	cr_assert_leq(empty(event, true), read_count(event) / 3);
	cr_assert_eq(perfring_soft_refresh(event, 5), 0);
	for (uint32_t i = 0; i < 20; i++)
		tell(self, 0);
	cr_assert_eq(empty(event, true), 5);
	perfring_soft_close(event);
}

static void *stir(void *count)
{
	static void (*const ways[])(uint32_t * state) = {stir_guest, stir_mapped, stir_group,
							 stir_heavy, stir_clock,  stir_thread};
	uint32_t state = 7, *rounds = count;

	begin_life(new_life());
	for (; !PERFRING_LOAD(&stops); PERFRING_ADD(rounds, 1)) {
		ways[*rounds % (sizeof(ways) / sizeof(*ways))](&state);
		cr_assert_eq(perfring_soft_set_output(long_lived[ORDERED], long_lived[*rounds % 2 ? 0 : ORDERED - 1]),
			     0);
	}
	end_life(self);
	return self;
}

/* ---- all of them ---- */

static void stress(bool by_session, double seconds)
{
	struct perf_event_attr attr;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct readers readers = {NULL, -1, {NULL, NULL}};
	struct perfring_soft_event *counter;
	uint64_t raised = 0, lost = 0, ids[LONG_LIVED];
	unsigned fds = count_fds();
	uint32_t rounds = 0;
	pthread_t bearer, stirrer;
	struct life *stirrers;
	void *result;
	double end;

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	point = perfring_soft_define("stress:told");
	cr_assert_not_null(point);
	attr = stress_attr(1);
	cr_assert_eq(perfring_format_from_attr(&stress_format, &attr), 0);
	if (by_session)
		readers.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (int i = 0; i < LONG_LIVED; i++) {
		long_lived[i] = open_event(&attr, NULL);
		ids[i] = perfring_soft_id(long_lived[i]);
	}
	attr = stress_attr(0);
	counter = open_event(&attr, NULL);
	/* One that is always full, one that seldom is. */
	map(long_lived[0], 16, readers.wake_fd);
	map(long_lived[ORDERED - 1], 1, readers.wake_fd);
	cr_assert_eq(perfring_soft_set_output(long_lived[1], long_lived[0]), 0);
	cr_assert_eq(perfring_soft_set_output(long_lived[ORDERED], long_lived[0]), 0);
	readers.sets[0] = perfring_soft_rings(long_lived[0]);
	readers.sets[1] = perfring_soft_rings(long_lived[ORDERED - 1]);
	if (by_session) {
		cr_assert_eq(perfring_session_open(&readers.session, 0), 0);
		attr = stress_attr(1);
		cr_assert_eq(perfring_session_describe(readers.session, &attr, ids, LONG_LIVED), 0, "%s",
			     perfring_session_refusal(readers.session));
	}
	for (int i = 0; i < LONG_LIVED; i++)
		perfring_soft_enable(long_lived[i], false);
	perfring_soft_enable(counter, false);

	cr_assert_eq(pthread_create(&bearer, NULL, bear, NULL), 0);
	cr_assert_eq(pthread_create(&stirrer, NULL, stir, &rounds), 0);
	/* On a machine that is busy with others, they have not come to it often enough by then. */
	for (end = now() + seconds;
	     now() < end || ((PERFRING_LOAD(&rounds) <= 12 || PERFRING_LOAD(&born) <= 2 * SLOTS) && now() < end + 60);)
		drain_all(&readers);
	PERFRING_STORE(&stops, 1);
	/* Both end only when somebody drains: threads wait for rings. */
	while (pthread_tryjoin_np(stirrer, &result))
		drain_all(&readers);
	stirrers = result;
	timer_delete(stirrers->timer);
	while (pthread_tryjoin_np(bearer, NULL))
		drain_all(&readers);
	perfring_soft_leave(); /* this thread takes part since it opened events */
	for (end = now() + 20; drain_all(&readers);)
		cr_assert_lt(now(), end, "rings of the dead are drained, and freed");
	cr_assert_null(perfring_set_next(readers.sets[0], NULL));
	cr_assert_null(perfring_set_next(readers.sets[1], NULL));

	cr_assert_eq(refused, 0);
	for (uint32_t i = 0; i < born; i++)
		raised += lives[i].raised[0] + lives[i].raised[1];
	for (int i = 0; i < LONG_LIVED; i++) {
		cr_assert_eq(read_count(long_lived[i]), raised, "event %d", i);
		cr_assert_eq(*records_of(ids[i]) + perfring_soft_lost(long_lived[i]), raised, "event %d", i);
		lost += perfring_soft_lost(long_lived[i]);
	}
	cr_assert_eq(read_count(counter), raised);
	cr_assert_leq(guest_count, IDS / 2);
	for (uint32_t i = 0; i < guest_count; i++)
		cr_assert_eq(*records_of(guests[i].id), guests[i].records, "guest %u", i);
	fprintf(stderr, "%u threads, %u events opened and closed, %llu raised, of %d events %llu lost\n", born, rounds,
		(unsigned long long)raised, LONG_LIVED, (unsigned long long)lost);
	cr_assert_gt(born, 2 * SLOTS);
	cr_assert_gt(rounds, 12);
	cr_assert_gt(*records_of(ids[0]), 0);
	cr_assert_gt(lost, 0);

	if (by_session) {
		perfring_session_close(readers.session);
		close(readers.wake_fd);
	}
	perfring_soft_close(counter);
	for (int i = 0; i < LONG_LIVED; i++)
		perfring_soft_close(long_lived[i]);
	cr_assert_eq(count_fds(), fds);
}

Test(soft_stress, all_that_is_raised_is_written_or_lost, .timeout = 300)
{
	stress(false, soak_seconds());
}

Test(soft_stress, the_same_by_a_session, .timeout = 300)
{
	stress(true, soak_seconds() / 2);
}

/* ---- beside the kernel's ---- */

enum {
	STEPS = 4000,
	OTHERS = 3,
	PAGE = 4096,
};

static uint32_t others_left;

static void *raise_often(void *unused)
{
	struct life *life = new_life();

	(void)unused;
	life->tid = (uint32_t)syscall(SYS_gettid);
	if (perfring_soft_join())
		PERFRING_ADD(&refused, 1);
	for (int i = 0; i < STEPS; i++) {
		tell(life, 0);
		if (i % 64 == 63)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	PERFRING_ADD(&others_left, UINT32_MAX);
	return NULL;
}

/* An occurrence of ours, a page fault, one of ours: that is how they must come, whatever other threads do. */
Test(soft_stress, soft_and_kernel_rings_as_one_stream, .timeout = 60)
{
	struct perf_event_attr ours, faults;
	struct readers readers = {NULL, -1, {NULL, NULL}};
	struct perfring_soft_event *event;
	struct perfring_target *target;
	struct perfring_totals totals;
	uint64_t next[OTHERS + 1] = {0}, touched = 0, done = 0, last = 0, fallen = 0, id, changes = 0;
	uint32_t before = 0;
	pthread_t threads[OTHERS];
	struct perfring_item item;
	char *pages;
	int ret;

	point = perfring_soft_define("stress:told");
	ours = stress_attr(1);
	cr_assert_eq(perfring_format_from_attr(&stress_format, &ours), 0);
	faults = ours;
	faults.type = PERFRING_TYPE_SOFTWARE;
	faults.config = PERFRING_COUNT_SW_PAGE_FAULTS;
	faults.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	faults.read_format = 0;
	faults.exclude_kernel = 1;
	pages = mmap(NULL, (size_t)STEPS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(pages, MAP_FAILED);
	madvise(pages, (size_t)STEPS * PAGE, MADV_NOHUGEPAGE);

	cr_assert_eq(perfring_session_open(&readers.session, 0), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	ret = perfring_session_add(readers.session, &faults, target);
	perfring_target_close(target);
	if (ret < 0)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(readers.session));
	event = open_event(&ours, NULL);
	readers.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	map(event, 256, readers.wake_fd);
	readers.sets[0] = perfring_soft_rings(event);
	id = perfring_soft_id(event);
	cr_assert_eq(perfring_session_describe(readers.session, &ours, &id, 1), 1);
	perfring_soft_enable(event, false);
	cr_assert_eq(perfring_session_enable(readers.session), 0);
	self = new_life();
	self->tid = (uint32_t)syscall(SYS_gettid);
	others_left = OTHERS;
	for (int i = 0; i < OTHERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, raise_often, NULL), 0);
	for (int rounds = 3; rounds;) {
		visit(&readers, readers.sets[0]);
		for (int i = 0; i < 50 && done < STEPS; i++) {
			tell(self, 0);
			*(volatile char *)(pages + done++ * PAGE) = 1;
		}
		if (done == STEPS && !PERFRING_LOAD(&others_left)) {
			if (rounds == 3) {
				perfring_soft_leave();
				for (int i = 0; i < OTHERS; i++)
					pthread_join(threads[i], NULL);
			}
			rounds--;
		}
		cr_assert_geq(perfring_session_wait(readers.session, 1), 0);
		if (rounds == 0)
			perfring_session_flush(readers.session);
		while (perfring_session_next(readers.session, &item) == 1) {
			struct perfring_sample sample;
			struct told told;
			uint64_t from;

			cr_assert_not_null(item.format);
			cr_assert_eq(item.record->type, PERF_RECORD_SAMPLE, "nothing was lost");
			if (item.time < last)
				fallen++;
			else
				last = item.time;
			if (item.format->index == 0) {
				cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
				if (sample.addr - (uintptr_t)pages >= (uint64_t)STEPS * PAGE)
					continue;
				cr_assert_eq((sample.addr - (uintptr_t)pages) / PAGE, touched);
				cr_assert_eq(next[0], touched + 1, "behind the occurrence, before the next one");
				touched++;
				continue;
			}
			told = told_of(item.record, 0, &from);
			cr_assert_eq(from, id);
			cr_assert_leq(told.life, OTHERS);
			cr_assert_eq(told.sequence, next[told.life]++);
			if (told.life == 0)
				cr_assert_eq(told.sequence, touched, "behind the fault");
			changes += told.life != before;
			before = told.life;
		}
		perfring_session_return(readers.session);
	}
	cr_assert_eq(touched, STEPS);
	for (int i = 0; i <= OTHERS; i++)
		cr_assert_eq(next[i], STEPS);
	cr_assert_eq(refused, 0);
	cr_assert_eq(perfring_soft_lost(event), 0);
	cr_assert_eq(read_count(event), (uint64_t)(OTHERS + 1) * STEPS);
	perfring_session_totals(readers.session, &totals);
	cr_assert_eq(totals.unknown_ids, 0);
	cr_assert_eq(totals.late, fallen);
	cr_assert_lt(fallen, STEPS / 100, "a thread that is held up in mid record; seldom");
	cr_assert_gt(changes, OTHERS + 1, "one after the other is no merge");
	perfring_session_close(readers.session);
	perfring_soft_close(event);
	close(readers.wake_fd);
	munmap(pages, (size_t)STEPS * PAGE);
}
