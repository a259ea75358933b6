/* nested_test.c - handlers that write into the ring of the thread that they interrupt: at every named point (nest.h), by
 * timers at 20 kHz, with readers in this process and another, paused and armed by other threads meanwhile.
 *
 * PERFRING_SOAK (machine.h): seconds for the four storms.
 */
#include "sanitizers.h"
#include "test.h"

#if IS_THREAD_SANITIZED
#define NESTED_ONE_DEEP
#endif

static void nested_point(const char *name);

#define PERFRING_POINT(name) nested_point(#name)
#include "rb/writer.c"

#include "machine.h"
#include "nest.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <perfring/reader.h>

TestSuite(nested, .timeout = 300);

/* ---- at every named point ---- */

static const char *nested_strike_at, *nested_strike_then; /* once each, by nested_strike */
static void (*nested_strike)(void);

static void nested_point(const char *name)
{
	if (nested_strike_at && !strcmp(name, nested_strike_at)) {
		nested_strike_at = nested_strike_then;
		nested_strike_then = NULL;
		nested_strike();
	}
	if (nest_looks)
		nest_look();
	if (!nest_armed)
		return;
	if (nest_next == nest_plan.stops)
		nest_traced++;
	else if (nest_left-- == 0) {
#ifdef NESTED_ONE_DEEP
		/* The thread sanitizer keeps a signal back until the handler has returned. */
		if (nest_next) {
			nest_strike();
			return;
		}
#endif
		raise(SIGUSR1);
	}
}

static void nested_struck(int number)
{
	(void)number;
	nest_strike();
}

static void nest_arm(unsigned stop)
{
	if (stop < nest_plan.stops)
		nest_left = nest_plan.at[stop] - (stop && nest_plan.rest[stop - 1]);
}

static void nest_disarm(void)
{
}

static uint64_t nest_around(nest_subject *subject, uint64_t id)
{
	return subject(nest_writer, id);
}

static uint64_t nested_write(struct perfring_writer *writer, uint64_t id)
{
	return nest_write(writer, id, 24);
}

static uint64_t nested_long(struct perfring_writer *writer, uint64_t id)
{
	return nest_write(writer, id, 40);
}

static uint64_t nested_discard(struct perfring_writer *writer, uint64_t id)
{
	return nest_discard(writer, id);
}

static uint64_t nested_three(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 3);
}

static uint64_t nested_two(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 2);
}

static uint64_t nested_none(struct perfring_writer *writer, uint64_t id)
{
	return nest_transaction(writer, id, 0);
}

nest_subject *const nest_subjects[NEST_SUBJECTS + 1] = {nested_write, nested_long, nested_discard,
							nested_three, nested_two,  nested_none};

static void catch (int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER | SA_RESTART};

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

static void at_points(unsigned deep, unsigned rests, uint64_t of, uint64_t leaf, uint64_t least)
{
	unsigned mode;

	catch (SIGUSR1, nested_struck);
	for (mode = 0; mode < NEST_MODES; mode++) {
		nest_runs = 0;
		nest_looks = false;
		nest_open(&nest_modes[mode]);
		nest_looks = true;
		nest_every(0, deep, rests, of, leaf);
		nest_looks = false;
		nest_close();
		cr_assert_eq(nest_failures, 0, "%s", nest_first);
		cr_assert_geq(nest_runs, least, "%s: %lu runs", nest_mode->name, (unsigned long)nest_runs);
	}
}

Test(nested, one_at_every_point)
{
	at_points(1, 0, 1, 1, 5);
}

Test(nested, chains_of_two)
{
	at_points(2, 0, 1, 1, 20);
}

Test(nested, two_in_sequence)
{
	at_points(2, 1, 1, 1, 10);
}

Test(nested, chains_of_three)
{
	at_points(3, 0, 1, 2, 40);
}

Test(nested, three_in_chain_and_sequence)
{
	at_points(3, 1, 3, 2, 10);
	at_points(3, 2, 3, 2, 10);
	at_points(3, 3, 3, 2, 10);
}

/* ---- handlers during a reset ---- */

static struct perfring_writer *reset_writer;
static unsigned reset_written;

/* As a handler there: a record, one that is not wanted, another. */
static void write_during_reset(void)
{
	unsigned char record[24] = {PERF_RECORD_SAMPLE, 0, 0, 0, 0, 0, sizeof(record)};
	struct perfring_claim claim;

	reset_written += perfring_writer_write(reset_writer, NULL, record, sizeof(record));
	if (perfring_writer_reserve(reset_writer, NULL, 32, &claim))
		perfring_writer_discard(reset_writer, &claim);
	reset_written += perfring_writer_write(reset_writer, NULL, record, sizeof(record));
}

/* All that is published, from the lowest address. */
static unsigned count_published(const struct perfring_ring *ring, bool backward, uint64_t *lost)
{
	uint64_t at = backward ? ring->page->data_head : 0, end = backward ? 0 : ring->page->data_head, count;
	unsigned samples = 0;

	for (*lost = 0; at != end;) {
		const unsigned char *record = ring->data + (at & (ring->size - 1));
		struct perf_event_header header;

		memcpy(&header, record, sizeof(header));
		cr_assert(header.size >= 8 && header.size <= (backward ? -at : end - at), "a record of %u",
			  header.size);
		memcpy(&count, record + 16, 8);
		samples += header.type == PERF_RECORD_SAMPLE;
		*lost += header.type == PERF_RECORD_LOST ? count : 0;
		at += header.size;
	}
	return samples;
}

/* The partner of each line of reset is a handler that writes there, of the same thread: between the two loads, after them, after
 * the count, and when it has found that another handler's record follows.  What it was told is written is written. */
Test(nested, what_a_handler_writes_during_a_reset_stays)
{
	/* The last three are passed only after another handler has written. */
	static const char *const points[] = {"reset_began", "reset_looked",    "reset_counted", "leave_looked",
					     "reset_kept",  "leave_published", "leave_left"};
	/* A ring that overwrites keeps all that was reserved: it does not pass reset_counted and reset_kept. */
	static const uint32_t kinds[] = {0, PERFRING_RING_OVERWRITE | PERFRING_RING_BACKWARD};
	unsigned char record[24] = {PERF_RECORD_SAMPLE, 0, 0, 0, 0, 0, sizeof(record)};
	struct perfring_claim claim;
	struct perfring_ring ring;
	uint64_t lost;

	for (unsigned i = 0; i < 2 * sizeof(points) / sizeof(*points); i++) {
		struct perfring_ring_options options = {.pages = 1, .flags = kinds[i % 2]};
		bool second = i / 2 >= 4;

		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		cr_assert_eq(perfring_writer_open(&reset_writer, &ring, NULL), 0);
		cr_assert(perfring_writer_write(reset_writer, NULL, record, sizeof(record)));
		cr_assert_not_null(perfring_writer_reserve(reset_writer, NULL, 104, &claim));
		reset_written = 1;
		nested_strike = write_during_reset;
		nested_strike_at = second ? "reset_looked" : points[i / 2];
		nested_strike_then = second ? points[i / 2] : NULL;
		perfring_writer_reset(reset_writer);
		cr_assert(!nested_strike_at || (kinds[i % 2] && !strncmp(nested_strike_at, "reset_", 6)),
			  "%s is not passed", nested_strike_at);
		nested_strike_at = NULL;
		cr_assert(perfring_writer_write(reset_writer, NULL, record, sizeof(record)));
		cr_assert_eq(count_published(&ring, i % 2, &lost), reset_written + 1, "%s", points[i / 2]);
		cr_assert_eq(perfring_writer_lost(reset_writer), 1, "%s", points[i / 2]);
		cr_assert_eq(lost, 1, "%s", points[i / 2]);
		cr_assert_eq(reset_writer->claimed, reset_writer->position);
		perfring_writer_close(reset_writer);
		perfring_ring_close(&ring);
	}
}

/* ---- at random ---- */

enum {
	SOAK_LEVELS = 3,
	SOAK_PAGES = 16,
	SOAK_HZ = 20000,
	SOAK_REFUSED = 1000, /* at least, where the reader sleeps */
};

/* Shared with the other process, when it reads. */
struct soak_got {
	uint64_t records[SOAK_LEVELS];
	uint64_t lost;
	uint64_t bad; /* line of the first complaint */
	uint64_t bad_value;
	uint64_t stop; /* the writer has ended: read what is left, and leave */
	uint64_t left;
};

static struct perfring_ring soak_ring;
static struct perfring_writer *soak_writer;
static struct soak_got *soak_got;
static uint64_t soak_taken[SOAK_LEVELS], soak_refused[SOAK_LEVELS], soak_signals[SOAK_LEVELS];
static uint64_t soak_attempts; /* of level 0 */
static uint32_t soak_ends;     /* nothing is to be paused any more */
static uint64_t soak_pauses, soak_sleeps;
static bool soak_pausing;
static timer_t soak_timers[2];
static double soak_until; /* the storm's end */
static volatile bool soak_is_slower;

static double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The next of this level: 24 to 80 bytes, told by its own number. */
static void soak_write(unsigned level)
{
	uint64_t number = soak_taken[level], id = (uint64_t)level << 56 | number;
	struct perfring_claim claim;
	uint16_t size = (uint16_t)(24 + number % 8 * 8);
	void *space = perfring_writer_reserve(soak_writer, NULL, size, &claim);

	if (!space) {
		soak_refused[level]++;
		return;
	}
	nest_encode(space, size, id);
	if (number % 16 == 7 && claim.size) /* now and then one that is not wanted: it leaves nothing to read */
		perfring_writer_discard(soak_writer, &claim);
	else
		perfring_writer_commit(soak_writer, &claim);
	soak_taken[level]++;
}

/* When the storm is over its signals come seldom.  A handler looks as well: on a slow machine they leave no time for
 * anything else. */
static void soak_look_at_time(void)
{
	struct itimerspec every = {{0, 10000000}, {0, 10000000}};

	if (soak_is_slower || seconds_now() < soak_until)
		return;
	soak_is_slower = true;
	timer_settime(soak_timers[0], 0, &every, NULL);
	timer_settime(soak_timers[1], 0, &every, NULL);
}

static void soak_level_1(int number)
{
	unsigned i;

	(void)number;
	soak_look_at_time();
	soak_signals[1]++;
	for (i = 0; i < 8; i++)
		soak_write(1);
	handler_ends();
}

static void soak_level_2(int number)
{
	unsigned i;

	(void)number;
	soak_look_at_time();
	soak_signals[2]++;
	for (i = 0; i < 8; i++)
		soak_write(2);
	handler_ends();
}

static void soak_complain(uint64_t line, uint64_t value)
{
	if (!soak_got->bad) {
		soak_got->bad_value = value;
		__atomic_store_n(&soak_got->bad, line, __ATOMIC_RELEASE);
	}
}

static void soak_record(const struct perf_event_header *record, uint64_t next[SOAK_LEVELS])
{
	const uint64_t *words = (const uint64_t *)(const void *)record;
	unsigned level, i;
	uint64_t number;

	if (record->type == PERFRING_FILLER_TYPE && record->misc == PERFRING_FILLER_MISC)
		return;
	if (record->type == PERF_RECORD_LOST) {
		soak_got->lost += words[2];
		return;
	}
	if (record->type != PERF_RECORD_SAMPLE || record->size < 24) {
		soak_complain(__LINE__, record->type);
		return;
	}
	level = (unsigned)(words[1] >> 56);
	number = words[1] & ((UINT64_C(1) << 56) - 1);
	if (level >= SOAK_LEVELS) {
		soak_complain(__LINE__, words[1]);
		return;
	}
	if (next[level] % 16 == 7)
		next[level]++; /* was discarded */
	if (number != next[level] || record->size != 24 + number % 8 * 8)
		soak_complain(__LINE__, words[1]);
	next[level] = number + 1;
	soak_got->records[level]++;
	for (i = 2; i < record->size / 8u; i++)
		if (words[i] != nest_word(words[1], i))
			soak_complain(__LINE__, words[1]);
}

/* Drains until told to stop.  nap: ns between two drains. */
static void soak_read(const struct perfring_ring *ring, long nap, bool sleeps)
{
	const struct perf_event_header *record;
	uint64_t next[SOAK_LEVELS] = {0}, stop, attempts;
	struct perfring_reader reader;
	struct timespec pause = {0, nap};
	bool making;
	int result;

	if (perfring_reader_open(&reader, ring, 0)) {
		soak_complain(__LINE__, 0);
		return;
	}
	do {
		stop = __atomic_load_n(&soak_got->stop, __ATOMIC_ACQUIRE);
		if (perfring_reader_observe(&reader) < 0)
			soak_complain(__LINE__, reader.observed);
		while ((result = perfring_reader_next(&reader, &record)) == 1)
			soak_record(record, next);
		if (result < 0)
			soak_complain(__LINE__, (uint64_t)reader.fault.at);
		perfring_reader_return(&reader);
		if (soak_got->bad)
			break;
		if (nap && !stop)
			nanosleep(&pause, NULL);
		if (sleeps && !stop) {
			attempts = __atomic_load_n(&soak_attempts, __ATOMIC_ACQUIRE);
			making = perfring_writer_arm(soak_writer);
			result = perfring_wakeup_wait(ring, reader.position, making ? 1000000 : 2000000000);
			__atomic_fetch_add(&soak_sleeps, !making, __ATOMIC_RELAXED);
			/* Ten thousand tried to wake us, and none did. */
			if (result == 0 && !making && !__atomic_load_n(&soak_got->stop, __ATOMIC_ACQUIRE) &&
			    __atomic_load_n(&soak_attempts, __ATOMIC_ACQUIRE) - attempts > 10000)
				soak_complain(__LINE__, attempts);
		}
	} while (!stop);
	soak_got->left = 1;
	perfring_reader_close(&reader);
}

struct soak_reader {
	long nap;
	bool sleeps;
};

static void *soak_reader_thread(void *data)
{
	const struct soak_reader *reader = data;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	soak_read(&soak_ring, reader->nap, reader->sleeps);
	return NULL;
}

/* Pauses now and then: what is claimed when pause returns is the last. */
static void *soak_pauser_thread(void *data)
{
	struct timespec nap = {0, 2000000};
	uint64_t head, attempts;
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!__atomic_load_n(&soak_ends, __ATOMIC_ACQUIRE)) {
		perfring_writer_pause(soak_writer, true);
		/* Two more were tried by the thread itself: the one that was in the making is published. */
		attempts = __atomic_load_n(&soak_attempts, __ATOMIC_ACQUIRE);
		while (__atomic_load_n(&soak_attempts, __ATOMIC_ACQUIRE) - attempts < 3 &&
		       !__atomic_load_n(&soak_ends, __ATOMIC_ACQUIRE))
			sched_yield();
		head = perfring_page_observe(soak_ring.page);
		while (__atomic_load_n(&soak_attempts, __ATOMIC_ACQUIRE) - attempts < 300 &&
		       !__atomic_load_n(&soak_ends, __ATOMIC_ACQUIRE))
			sched_yield();
		if (perfring_page_observe(soak_ring.page) != head)
			soak_complain(__LINE__, head);
		perfring_writer_pause(soak_writer, false);
		__atomic_fetch_add(&soak_pauses, 1, __ATOMIC_RELAXED);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static timer_t soak_timer(int number)
{
	struct sigevent event;
	timer_t timer;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = number;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	cr_assert_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	return timer;
}

static void soak_start(timer_t timer, long interval)
{
	struct itimerspec every = {{0, interval}, {0, interval}};

	cr_assert_eq(timer_settime(timer, 0, &every, NULL), 0);
}

static void soak_open(void)
{
	struct perfring_ring_options options = {.pages = SOAK_PAGES};
	struct perfring_writer_options writer = {.wake_fd = -1, .output = {.id = 77}};

	soak_got = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(soak_got != MAP_FAILED);
	cr_assert_eq(perfring_ring_create(&soak_ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&soak_writer, &soak_ring, &writer), 0);
}

/* On a busy machine those who pause and arm have not come to it often enough yet, or the writer has not filled the ring
 * that often while its reader slept. */
static bool soak_others_lag(bool idle)
{
	if (idle && !soak_pausing)
		return soak_refused[0] + soak_refused[1] + soak_refused[2] <= SOAK_REFUSED;
	return soak_pausing && (__atomic_load_n(&soak_pauses, __ATOMIC_RELAXED) <= 3 ||
				__atomic_load_n(&soak_sleeps, __ATOMIC_RELAXED) <= 3);
}

/* Whether a level of handlers has hardly been there: the thread had no processor when its timers expired. */
static bool soak_signals_lag(void)
{
	for (unsigned level = 1; level < SOAK_LEVELS; level++)
		if (__atomic_load_n(&soak_signals[level], __ATOMIC_RELAXED) < 10)
			return true;
	return false;
}

/* Writes as fast as it goes, and is interrupted; `idle`: seldom enough that the reader sleeps. */
static void soak_run(bool idle)
{
	struct sigaction action = {.sa_handler = soak_level_1, .sa_flags = SA_RESTART};
	double until;
	unsigned i, spin;

	sigemptyset(&action.sa_mask);
	cr_assert_eq(sigaction(SIGRTMIN + 1, &action, NULL), 0);
	action.sa_handler = soak_level_2;
	sigaddset(&action.sa_mask, SIGRTMIN + 1);
	cr_assert_eq(sigaction(SIGRTMIN + 2, &action, NULL), 0);
	sigaddset(&action.sa_mask, SIGRTMIN + 2);
	soak_timers[0] = soak_timer(SIGRTMIN + 1);
	soak_timers[1] = soak_timer(SIGRTMIN + 2);
	until = soak_until = seconds_now() + soak_seconds() / 4;
	soak_start(soak_timers[0], 1000000000 / SOAK_HZ);
	soak_start(soak_timers[1], 1000000000 / SOAK_HZ + 777);
	do {
		soak_look_at_time();
		for (i = 0; i < 64; i++) {
			soak_write(0);
			__atomic_fetch_add(&soak_attempts, 1, __ATOMIC_RELEASE);
			if (idle)
				for (spin = 0; spin < 2000; spin++)
					__asm__ volatile("" : : : "memory");
		}
#ifdef NESTED_ONE_DEEP
		nanosleep(&(struct timespec){0, 1}, NULL); /* where it lets signals in */
		/* Where it runs a handler that it had put off, within another one that it had, it leaves all signals blocked. */
		pthread_sigmask(SIG_UNBLOCK, &action.sa_mask, NULL);
#endif
	} while (!__atomic_load_n(&soak_got->bad, __ATOMIC_ACQUIRE) &&
		 (seconds_now() < until || ((soak_others_lag(idle) || soak_signals_lag()) && seconds_now() < until + 20)));
	timer_delete(soak_timers[0]);
	timer_delete(soak_timers[1]);
	signal(SIGRTMIN + 1, SIG_IGN);
	signal(SIGRTMIN + 2, SIG_IGN);
	__atomic_store_n(&soak_ends, 1, __ATOMIC_RELEASE);
	/* What is pending is told, when there is space: which takes its own time, however long others lagged. */
	until = seconds_now();
	while ((soak_writer->lost || PERFRING_LOAD(&perfring_ring_state_of(soak_ring.page)->paused)) &&
	       !soak_got->bad && seconds_now() < until + 20)
		soak_write(0);
	__atomic_store_n(&soak_got->stop, 1, __ATOMIC_RELEASE);
}

static void soak_judge(void)
{
	uint64_t refused = 0;
	unsigned level;

	cr_assert_eq(soak_got->bad, 0, "line %lu: %#lx", (unsigned long)soak_got->bad,
		     (unsigned long)soak_got->bad_value);
	cr_assert_eq(soak_got->left, 1);
	for (level = 0; level < SOAK_LEVELS; level++) {
		uint64_t discarded = (soak_taken[level] + 8) / 16;

		cr_assert_eq(soak_got->records[level], soak_taken[level] - discarded, "level %u: %lu, not %lu", level,
			     (unsigned long)soak_got->records[level], (unsigned long)(soak_taken[level] - discarded));
		refused += soak_refused[level];
		if (level)
			cr_assert_geq(soak_signals[level], 10, "level %u was never there", level);
	}
	cr_assert_eq(soak_got->lost, refused, "%lu, not %lu", (unsigned long)soak_got->lost, (unsigned long)refused);
	cr_assert_eq(perfring_writer_lost(soak_writer), refused);
	cr_assert_eq(perfring_page_observe(soak_ring.page), soak_writer->position);
	perfring_writer_close(soak_writer);
	perfring_ring_close(&soak_ring);
	munmap(soak_got, 4096);
}

static void soak_with_thread(struct soak_reader reader, bool pauses)
{
	pthread_t thread, pauser;

	soak_open();
	soak_pausing = pauses;
	cr_assert_eq(pthread_create(&thread, NULL, soak_reader_thread, &reader), 0);
	if (pauses)
		cr_assert_eq(pthread_create(&pauser, NULL, soak_pauser_thread, NULL), 0);
	soak_run(reader.sleeps);
	pthread_join(thread, NULL);
	if (pauses)
		pthread_join(pauser, NULL);
}

Test(nested, timers_while_a_reader_drains)
{
	soak_with_thread((struct soak_reader){0, false}, false);
	soak_judge();
}

Test(nested, timers_while_the_reader_sleeps)
{
	uint64_t refused;

	/* Under the thread sanitizer a slow machine does not fill the ring in 20 ms. */
	soak_with_thread((struct soak_reader){IS_THREAD_SANITIZED ? 200000000 : 20000000, false}, false);
	refused = soak_refused[0] + soak_refused[1] + soak_refused[2];
	cr_assert_gt(refused, SOAK_REFUSED, "the ring was never full");
	soak_judge();
}

Test(nested, timers_while_another_process_reads)
{
	struct perfring_ring theirs;
	struct perfring_fault fault;
	pid_t child;
	int status;

	soak_open();
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		if (perfring_ring_attach(&theirs, soak_ring.fd, 0, &fault))
			soak_complain(__LINE__, (uint64_t)fault.at);
		else
			soak_read(&theirs, 0, false);
		_exit(0);
	}
	soak_run(false);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
	soak_judge();
}

Test(nested, timers_while_others_pause_and_arm)
{
	soak_with_thread((struct soak_reader){0, true}, true);
	cr_assert_gt(soak_pauses, 3);
	cr_assert_gt(soak_sleeps, 3);
	soak_judge();
}
