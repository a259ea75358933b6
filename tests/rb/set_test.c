/* set_test.c - a ring for each thread while threads come and go, and a ring for each CPU while threads change CPUs. */
#include "test.h"

/* Every named place of the rings of CPUs, in the inlines and in rb/cpus.c, which is compiled here for that. */
static void strike(void);
#define PERFRING_POINT(name) strike()

#include <poll.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/cpus.h>
#include <perfring/set.h>
#include <perfring/wakeup.h>
#include "rb/cpus.c"
#include "machine.h"

TestSuite(set, .timeout = 60);

enum {
	ROOM = 4096, /* of one page of ring */
	TYPE = 100,
};

/* Who wrote it, in the thread itself or in a handler, and how many before it. */
struct told {
	struct perf_event_header header;
	uint32_t who;
	uint32_t nested;
	uint64_t number;
	uint64_t more[8]; /* as far as the size goes: number + place */
};

static struct told told(uint32_t who, uint32_t nested, uint64_t number, uint16_t size)
{
	struct told record = {{.type = TYPE, .size = size}, who, nested, number, {0}};

	for (uint64_t i = 0; i < 8; i++)
		record.more[i] = number + i;
	return record;
}

static bool is_whole(const struct perf_event_header *header)
{
	const struct told *record = (const void *)header;

	if (header->type != TYPE || header->size < 24 || header->size > sizeof(*record))
		return false;
	for (uint64_t i = 0; i < (header->size - 24u) / 8; i++)
		if (record->more[i] != record->number + i)
			return false;
	return true;
}

static uint16_t size_of(uint64_t number)
{
	return (uint16_t)(24 + 8 * (number * 7 % 9));
}

/* ---- a ring for each thread ---- */

Test(set, joins_once_and_leaves)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_writer *writer, *again;
	const struct perf_event_header *record;
	struct perfring_set_ring *member;
	struct perfring_set *set;
	struct told one = told(1, 0, 5, 32);

	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	cr_assert_null(perfring_set_next(set, NULL));
	cr_assert_null(perfring_set_current(set));
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	cr_assert_eq(perfring_set_join(set, &again), 0);
	cr_assert_eq(again, writer);
	cr_assert_eq(perfring_set_current(set), writer);
	cr_assert(perfring_writer_write(writer, NULL, &one, 32));

	member = perfring_set_next(set, NULL);
	cr_assert_not_null(member);
	cr_assert_null(perfring_set_next(set, member), "joined once, one ring");
	cr_assert_eq(member->number, 0);
	cr_assert_eq(member->tid, (uint32_t)syscall(SYS_gettid));
	cr_assert_eq(member->cpu, -1);
	cr_assert(!member->left && !member->drained);

	perfring_set_leave(set);
	cr_assert_null(perfring_set_current(set));
	perfring_set_leave(set);
	member = perfring_set_next(set, NULL);
	cr_assert(member->left && !member->drained, "its record is unread");
	cr_assert_eq(perfring_reader_observe(&member->reader), 32);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
	cr_assert_eq(memcmp(record, &one, 32), 0);
	cr_assert(!perfring_set_next(set, NULL)->drained, "read, but not given back");
	perfring_reader_return(&member->reader);

	/* Joined again: another ring, another number, and the first is seen once more. */
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	member = perfring_set_next(set, NULL);
	cr_assert_eq(member->number, 0);
	cr_assert(member->left && member->drained);
	member = perfring_set_next(set, member);
	cr_assert_eq(member->number, 1);
	cr_assert(!member->left);
	member = perfring_set_next(set, NULL);
	cr_assert_eq(member->number, 1, "the first is freed");
	cr_assert_null(perfring_set_next(set, member));
	perfring_set_close(set);
}

Test(set, keeps_what_cannot_be_a_thread_ring)
{
	struct perfring_ring_options ring = {.pages = 1, .flags = PERFRING_RING_STRICT};
	struct perfring_set *set;
	struct perfring_cpus *cpus;

	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), -EINVAL);
	cr_assert_eq(perfring_cpus_open(&cpus, &ring, NULL), -EINVAL);
	ring.flags = PERFRING_RING_BACKWARD;
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), -EINVAL, "nobody could read it");
	ring.flags = PERFRING_RING_OVERWRITE;
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), -EINVAL);
	ring.flags = 0;
	ring.file = "/tmp/perfring_set_test";
	cr_assert_eq(perfring_cpus_open(&cpus, &ring, NULL), -EINVAL);
	ring.file = NULL;
	ring.pages = 3;
	cr_assert_eq(perfring_cpus_open(&cpus, &ring, NULL), -EINVAL);
	cr_assert_null(cpus);
}

/* Each ring is a file with the attr, which other processes attach; a drained one's goes. */
Test(set, rings_in_files_that_know_their_event)
{
	struct perf_event_attr attr = {.type = 77, .size = sizeof(attr), .sample_type = PERF_SAMPLE_TIME}, found;
	char folder[] = "/tmp/perfring-set-XXXXXX", file[64], path[80];
	struct perfring_ring_options ring = {.pages = 1, .file = file, .attr = &attr, .id = 4711};
	struct perfring_set_ring *member;
	struct perfring_ring attached;
	struct perfring_writer *writer;
	struct perfring_set *set;
	uint64_t id = 0;
	int fd;

	cr_assert_not_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/ring", folder);
	attr.size = PERFRING_RING_ATTR_SIZE + 8;
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), -EINVAL);
	attr.size = sizeof(attr);
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	memset(file, 'x', 8); /* the set has its own copies */
	attr.type = 78;
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	snprintf(path, sizeof(path), "%s/ring.0", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(perfring_ring_attach(&attached, fd, 0, NULL), 0);
	close(fd);
	cr_assert_eq(perfring_ring_attr(&attached, &found, &id), 1);
	cr_assert_eq(found.type, 77);
	cr_assert_eq(found.size, sizeof(found));
	cr_assert_eq(id, 4711);
	/* Another process may write there: no more than an attr is taken, and it says its own size. */
	perfring_ring_state_of(attached.page)->attr_size = 1 << 20;
	cr_assert_eq(perfring_ring_attr(&attached, &found, &id), 0);
	perfring_ring_state_of(attached.page)->attr_size = 64;
	memset((char *)attached.page + PERFRING_RING_ATTR_AT, 0xff, 64);
	cr_assert_eq(perfring_ring_attr(&attached, &found, NULL), 1);
	cr_assert_eq(found.size, 64);
	cr_assert_eq(found.bp_addr, UINT64_MAX);
	cr_assert_eq(found.branch_sample_type, 0, "not of the ring's");
	perfring_ring_close(&attached);

	perfring_set_leave(set);
	member = perfring_set_next(set, NULL);
	cr_assert(member && member->drained);
	cr_assert_eq(access(path, F_OK), 0);
	cr_assert_null(perfring_set_next(set, NULL));
	cr_assert_neq(access(path, F_OK), 0);
	perfring_set_close(set);
	cr_assert_eq(rmdir(folder), 0);
}

static void *join_only(void *set)
{
	struct perfring_writer *writer;

	return (void *)(intptr_t)perfring_set_join(set, &writer);
}

static intptr_t run(void *(*start)(void *), void *with)
{
	pthread_t thread;
	void *result;

	cr_assert_eq(pthread_create(&thread, NULL, start, with), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	return (intptr_t)result;
}

Test(set, holds_to_its_limit_until_rings_are_freed)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_set *set;

	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 2), 0);
	cr_assert_eq(run(join_only, set), 0);
	cr_assert_eq(run(join_only, set), 0);
	cr_assert_eq(run(join_only, set), -EUSERS, "the two rings of threads that are gone are not seen yet");
	for (int walk = 0; walk < 2; walk++)
		for (struct perfring_set_ring *member = NULL; (member = perfring_set_next(set, member));)
			cr_assert(walk == 0 && member->drained);
	cr_assert_eq(run(join_only, set), 0);
	cr_assert_eq(perfring_set_next(set, NULL)->number, 2);
	perfring_set_close(set);
}

static void *overfill(void *set)
{
	struct perfring_writer *writer;
	struct told record = told(0, 0, 0, 32);
	intptr_t refused = 0;

	if (perfring_set_join(set, &writer))
		return (void *)-1;
	for (int i = 0; i < 200; i++)
		refused += !perfring_writer_write(writer, NULL, &record, 32);
	return (void *)refused;
}

Test(set, loss_outlives_the_ring)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_set_ring *member = NULL;
	struct perfring_set *set;

	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	/* 127 records of 32 bytes leave 32 of 4096 free, one byte of which stays so (docs/abi.md 7.2): the 128th is refused. */
	cr_assert_eq(run(overfill, set), 73);
	cr_assert_eq(perfring_set_lost(set), 73);
	cr_assert_eq(run(overfill, set), 73);
	cr_assert_eq(perfring_set_lost(set), 146);
	while ((member = perfring_set_next(set, member)))
		perfring_reader_skip(&member->reader);
	while ((member = perfring_set_next(set, member)))
		cr_assert(member->drained);
	cr_assert_null(perfring_set_next(set, NULL));
	cr_assert_eq(perfring_set_lost(set), 146);
	perfring_set_close(set);
}

/* Threads come and go all the time, each with handlers. */
enum {
	BIRTHS = 3000,
	AT_ONCE = 6,
	RECORDS = 40,
	SIGNALS = 8,
};

struct births {
	struct perfring_set *set;
	uint32_t next;
	uint32_t failed;
	uint32_t running;
};

struct life {
	struct births *births;
	uint32_t who;
	uint64_t nested;
};

static __thread struct life *this_life;

static void on_signal(int signal)
{
	struct life *life = this_life;
	struct perfring_writer *writer = perfring_set_current(life->births->set);
	struct told record = told(life->who, 1, life->nested, size_of(life->nested));

	(void)signal;
	if (!writer)
		return;
	if (!perfring_writer_write(writer, NULL, &record, record.header.size))
		PERFRING_ADD(&life->births->failed, 1);
	life->nested++;
}

static void *live(void *of)
{
	struct life life = {of, 0, 0};
	struct perfring_writer *writer;
	struct perfring_claim claim;
	void *space;

	this_life = &life;
	life.who = PERFRING_ADD(&life.births->next, 1);
	raise(SIGUSR1); /* no ring yet: nothing happens */
	while (perfring_set_join(life.births->set, &writer) == -EUSERS)
		sched_yield();
	for (uint64_t i = 0; i < RECORDS; i++) {
		struct told record = told(life.who, 0, i, size_of(i));

		space = perfring_writer_reserve(writer, NULL, record.header.size, &claim);
		if (!space) {
			PERFRING_ADD(&life.births->failed, 1);
			continue;
		}
		if (i % (RECORDS / SIGNALS) == 0)
			raise(SIGUSR1); /* in mid record */
		memcpy(space, &record, record.header.size);
		perfring_writer_commit(writer, &claim);
	}
	if (life.who % 2)
		perfring_set_leave(life.births->set);
	return NULL;
}

static void *bear(void *of)
{
	struct births *births = of;

	for (int i = 0; i < BIRTHS / AT_ONCE; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, live, births) || pthread_join(thread, NULL))
			PERFRING_ADD(&births->failed, 1);
	}
	PERFRING_ADD(&births->running, UINT32_MAX);
	return NULL;
}

Test(set, every_record_of_threads_that_come_and_go_once_and_in_order)
{
	static uint64_t seen[BIRTHS][2];
	struct perfring_ring_options ring = {.pages = 1};
	struct sigaction action = {.sa_handler = on_signal};
	struct births births = {.running = AT_ONCE};
	uint64_t rounds = 0, records = 0, youngest = 0, left = 0;
	pthread_t threads[AT_ONCE];
	bool last = false;

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	/* So few that threads wait for rings of those before them. */
	cr_assert_eq(perfring_set_open(&births.set, &ring, NULL, 2 * AT_ONCE), 0);
	for (int i = 0; i < AT_ONCE; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, bear, &births), 0);
	for (;; rounds++) {
		struct perfring_set_ring *member = NULL;
		bool any = false;
		uint64_t before = 0;

		last = !PERFRING_LOAD_ACQUIRE(&births.running);
		while ((member = perfring_set_next(births.set, member))) {
			const struct perf_event_header *header;

			any = true;
			cr_assert(!before || member->number >= before, "a walk goes up");
			before = member->number + 1;
			if (member->number + 1 > youngest)
				youngest = member->number + 1;
			left += member->drained;
			cr_assert_geq(perfring_reader_observe(&member->reader), 0);
			while (perfring_reader_next(&member->reader, &header) == 1) {
				const struct told *record = (const void *)header;

				cr_assert(is_whole(header));
				cr_assert(!member->drained, "drained means that nothing comes");
				cr_assert_lt(record->who, BIRTHS);
				cr_assert_lt(record->nested, 2);
				cr_assert_eq(record->number, seen[record->who][record->nested],
					     "doubled, lost or out of order");
				seen[record->who][record->nested]++;
				records++;
			}
			perfring_reader_return(&member->reader);
		}
		if (last && !any)
			break;
	}
	for (int i = 0; i < AT_ONCE; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(births.failed, 0);
	for (int i = 0; i < BIRTHS; i++) {
		cr_assert_eq(seen[i][0], RECORDS, "thread %d", i);
		cr_assert_eq(seen[i][1], SIGNALS, "thread %d", i);
	}
	cr_assert_eq(records, BIRTHS * (RECORDS + SIGNALS));
	cr_assert_eq(youngest, BIRTHS, "each ring a number of its own");
	cr_assert_eq(left, BIRTHS, "each was seen drained, once");
	cr_assert_eq(perfring_set_lost(births.set), 0);
	perfring_set_close(births.set);
}

/* ---- a ring for each CPU ---- */

/* Opens in `way`, or skips. */
static struct perfring_cpus *open_way(const struct perfring_ring_options *ring,
				      const struct perfring_writer_options *writer, int way)
{
	struct perfring_cpus *cpus;
	int ret = perfring__cpus_open_way(&cpus, ring, writer, way);

	if (ret == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: rseq: EOPNOTSUPP: x86-64 and a C library that registers restartable sequences");
	cr_assert_eq(ret, 0);
	cr_assert_eq(perfring_cpus_way(cpus), way);
	return cpus;
}

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static bool pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void publishes_in_the_order_of_claims(int way)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_cpus *cpus = open_way(&ring, NULL, way);
	struct perfring_claim claims[4];
	const struct perf_event_header *record;
	struct perfring_set_ring *member, *other;
	bool two = pin(1);

	/* Each record's start is the sum of the sizes before it: 24, 32, 40, 48. */
	static const uint64_t ends[4] = {24, 56, 96, 144};

	/* Whether the writer is on the ring's CPU when it commits must not matter. */
	for (int away = 0; away <= two; away++) {
		static const int orders[6][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2},
						 {2, 0, 3, 1}, {0, 2, 1, 3}, {1, 2, 3, 0}};

		for (int order = 0; order < 6; order++) {
			uint64_t start;
			bool done[5] = {false};

			cr_assert(pin(0));
			member = perfring_cpus_at(cpus, 0);
			cr_assert_eq(member->cpu, 0);
			start = perfring_page_observe(member->ring.page);
			for (uint64_t i = 0; i < 4; i++) {
				struct told one = told(0, 0, i, (uint16_t)(24 + 8 * i));
				void *space = perfring_cpus_reserve(cpus, NULL, one.header.size, &claims[i]);

				cr_assert_not_null(space);
				memcpy(space, &one, one.header.size);
				cr_assert_eq(perfring_page_observe(member->ring.page), start);
			}
			cr_assert(pin(away));
			for (int i = 0; i < 4; i++) {
				uint64_t visible = 0;

				perfring_cpus_commit(cpus, &claims[orders[order][i]]);
				cr_assert(perfring__cpus_is_valid(cpus), "order %d, %d away %d", order, i, away);
				done[orders[order][i]] = true;
				for (int j = 0; done[j]; j++)
					visible = ends[j];
				cr_assert_eq(perfring_page_observe(member->ring.page) - start, visible,
					     "order %d, %d away %d", order, i, away);
			}
			cr_assert_eq(perfring_reader_observe(&member->reader), 144);
			for (uint64_t i = 0; i < 4; i++) {
				cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
				cr_assert(is_whole(record));
				cr_assert_eq(((const struct told *)(const void *)record)->number, i);
			}
			perfring_reader_return(&member->reader);
		}
	}
	if (two) {
		other = perfring_cpus_at(cpus, 1);
		cr_assert_eq(perfring_page_observe(other->ring.page), 0);
	}
	cr_assert_eq(perfring_cpus_lost(cpus), 0);
	perfring_cpus_close(cpus);
}

Test(set, cpus_publish_in_the_order_of_claims_locked)
{
	publishes_in_the_order_of_claims(PERFRING_CPUS_LOCKED);
}

Test(set, cpus_publish_in_the_order_of_claims_rseq)
{
	publishes_in_the_order_of_claims(PERFRING_CPUS_RSEQ);
}

static void trailer(const struct perfring_output *output, void *space)
{
	memcpy(space, &output->data, 8);
}

/* Two records that follow one another, committed by two threads at the same time, again and again: whoever is later must
 * see the other's.  What is left out of either side's barriers shows here after some thousand times at the latest. */
struct duel {
	struct perfring_cpus *cpus;
	struct perfring_claim claims[2];
	perfring_u64 turn; /* both wait for it */
	uint64_t done[2]; /* the last turn that each has made */
	uint64_t delay[2];
	int cpu[2];
	bool over;
};

struct duellist {
	struct duel *duel;
	int who;
};

static void *fight(void *of)
{
	struct duellist *self = of;
	struct duel *duel = self->duel;

	pin(duel->cpu[self->who]);
	for (uint64_t turn = 1;; turn++) {
		while (PERFRING_LOAD_ACQUIRE(&duel->turn) < turn)
			if (PERFRING_LOAD(&duel->over))
				return NULL;
		for (uint64_t i = 0; i < PERFRING_LOAD(&duel->delay[self->who]); i++)
			PERFRING_FENCE_LOCAL();
		perfring_cpus_commit(duel->cpus, &duel->claims[self->who]);
		PERFRING_STORE_RELEASE(&duel->done[self->who], turn);
	}
}

/* The ring is CPU 0's.  first: the CPU on which the earlier record is committed; the later one is on the other. */
static void commit_together(int way, int first)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct duel duel = {.cpus = open_way(&ring, NULL, way), .cpu = {first, !first}};
	struct duellist rival = {&duel, first == 0}; /* the one on CPU 1; the one on CPU 0 is this thread */
	int own = !rival.who;
	struct perfring_set_ring *member = perfring_cpus_at(duel.cpus, 0);
	uint64_t turn, until = now_ms() + 700;
	pthread_t thread;

	if (!pin(1))
		cr_skip_test("SKIP-ENV: sched_setaffinity: a second CPU");
	cr_assert(pin(0));
	cr_assert_eq(pthread_create(&thread, NULL, fight, &rival), 0);
	for (turn = 1; now_ms() < until; turn++) {
		uint64_t end;

		for (int i = 0; i < 2; i++) {
			struct told one = told((uint32_t)i, 0, turn, 24);
			void *space = perfring_cpus_reserve(duel.cpus, NULL, 24, &duel.claims[i]);

			cr_assert_not_null(space);
			memcpy(space, &one, 24);
		}
		end = duel.claims[1].end;
		PERFRING_STORE(&duel.delay[rival.who], turn * 7 % 64);
		PERFRING_STORE_RELEASE(&duel.turn, turn);
		for (uint64_t i = 0; i < turn * 13 % 256; i++)
			PERFRING_FENCE_LOCAL();
		perfring_cpus_commit(duel.cpus, &duel.claims[own]);
		while (PERFRING_LOAD_ACQUIRE(&duel.done[rival.who]) < turn)
			;
		cr_assert_eq(perfring_page_observe(member->ring.page), end, "invisible, in turn %llu",
			     (unsigned long long)turn);
		perfring_page_return(member->ring.page, end);
	}
	PERFRING_STORE(&duel.over, true);
	pthread_join(thread, NULL);
	if (getenv("SET_TEST_VERBOSE"))
		fprintf(stderr, "way %d, first on %d: %llu turns\n", way, first, (unsigned long long)turn);
	perfring_cpus_close(duel.cpus);
}

Test(set, cpus_commit_together_locked)
{
	commit_together(PERFRING_CPUS_LOCKED, 0);
}

Test(set, cpus_commit_together_first_at_home)
{
	commit_together(PERFRING_CPUS_RSEQ, 0);
}

Test(set, cpus_commit_together_first_away)
{
	commit_together(PERFRING_CPUS_RSEQ, 1);
}

static void tells_losses(int way)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_writer_options writer = {
		.wake_fd = -1,
		.output = {.id = 7, .trailer_size = 8, .trailer = trailer, .data = (void *)0x1234},
	};
	struct perfring_output second = {.id = 9};
	struct perfring_cpus *cpus = open_way(&ring, &writer, way);
	struct perfring_set_ring *member;
	const struct perf_event_header *record;
	struct perfring_claim claim;
	struct told one = told(0, 0, 0, 24);
	uint64_t words[4];
	int taken = 0;

	cr_assert(pin(0));
	member = perfring_cpus_at(cpus, 0);
	/* docs/abi.md 7.3: 24-byte records on one page: 170 fit (4080 bytes). */
	for (int i = 0; i < 200; i++)
		taken += perfring_cpus_write(cpus, i & 1 ? &second : NULL, &one, 24);
	cr_assert_eq(taken, 170);
	cr_assert_eq(perfring_cpus_lost(cpus), 30);
	cr_assert_eq(second.lost, 15);
	/* Freeing 24 is not enough for what needs 24 + 24 + 8, with 16 free: dropped, 31; with 72 it is. */
	cr_assert_eq(perfring_reader_observe(&member->reader), 4080);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
	perfring_reader_return(&member->reader);
	cr_assert(!perfring_cpus_write(cpus, NULL, &one, 24));
	perfring_reader_next(&member->reader, &record);
	perfring_reader_next(&member->reader, &record);
	perfring_reader_return(&member->reader);
	cr_assert(perfring_cpus_write(cpus, NULL, &one, 24));
	for (int i = 3; i < 170; i++) {
		cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
		cr_assert_eq(record->type, TYPE);
	}
	cr_assert_eq(perfring_reader_observe(&member->reader), 32 + 24);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	cr_assert_eq(record->size, 32);
	memcpy(words, record, 32);
	cr_assert_eq(words[1], 7);
	cr_assert_eq(words[2], 31);
	cr_assert_eq(words[3], 0x1234);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
	cr_assert_eq(record->type, TYPE);
	perfring_reader_return(&member->reader);
	/* Told once; the second one raises the limit. */
	cr_assert(perfring_cpus_write(cpus, NULL, &one, 24));
	cr_assert(perfring_cpus_write(cpus, NULL, &one, 24));
	cr_assert_eq(perfring_reader_observe(&member->reader), 48);

	/* No record's sizes are refused and counted. */
	static const uint64_t bad[] = {0, 4, 12, 65536, 65535, 4096, UINT64_MAX, UINT64_MAX - 7};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert_null(perfring_cpus_reserve(cpus, NULL, bad[i], &claim), "%llu", (unsigned long long)bad[i]);
	cr_assert_eq(perfring_cpus_lost(cpus), 31 + 8);
	/* A loss in a ring with space is told at once. */
	cr_assert(perfring_cpus_write(cpus, NULL, &one, 24));
	cr_assert_eq(perfring_reader_observe(&member->reader), 48 + 32 + 24);
	perfring_reader_next(&member->reader, &record);
	perfring_reader_next(&member->reader, &record);
	perfring_reader_next(&member->reader, &record);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	memcpy(words, record, 32);
	cr_assert_eq(words[2], 8);

	/* Paused: refused and counted, told by the first record after it; discarded: a filler. */
	perfring_cpus_pause(cpus, true);
	cr_assert(!perfring_cpus_write(cpus, NULL, &one, 24));
	perfring_cpus_pause(cpus, false);
	perfring_reader_next(&member->reader, &record);
	cr_assert_not_null(perfring_cpus_reserve(cpus, NULL, 40, &claim));
	perfring_cpus_discard(cpus, &claim);
	cr_assert_eq(perfring_reader_observe(&member->reader), 32 + 40);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 1);
	memcpy(words, record, 32);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	cr_assert_eq(words[2], 1);
	cr_assert_eq(perfring_reader_next(&member->reader, &record), 0, "fillers are not handed out");
	perfring_cpus_close(cpus);
}

Test(set, cpus_tell_losses_as_the_kernel_locked)
{
	tells_losses(PERFRING_CPUS_LOCKED);
}

Test(set, cpus_tell_losses_as_the_kernel_rseq)
{
	tells_losses(PERFRING_CPUS_RSEQ);
}

static void wakes(int way)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	/* One page: a watermark of 2048 bytes, 64 records of 32; the kernel wakes when more than that is written. */
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_writer_options writer = {.wake_fd = fd};
	struct perfring_output counts = {.id = 1, .wakeup_events = 3};
	struct perfring_cpus *cpus = open_way(&ring, &writer, way);
	struct told one = told(0, 0, 0, 32);
	struct perfring_claim first, second;
	struct perfring_set_ring *member;
	uint64_t count;

	cr_assert(pin(0));
	member = perfring_cpus_at(cpus, 0);
	cr_assert(!perfring_wakeup_arm(&member->ring, 0, PERFRING_WAKEUP_EVENTFD));
	for (int i = 1; i <= 65; i++) {
		cr_assert(perfring_cpus_write(cpus, NULL, &one, 32));
		cr_assert_eq(read(fd, &count, 8), i == 65 ? 8 : -1, "record %d", i);
	}
	cr_assert_eq(perfring_wakeup_poll(&member->ring), POLLIN | POLLRDNORM);
	cr_assert_eq(perfring_wakeup_poll(&member->ring), 0);
	perfring_reader_skip(&member->reader);

	/* Samples are counted by those who count; the third one's crossing waits until it is published. */
	one.header.type = PERF_RECORD_SAMPLE;
	for (int i = 1; i <= 2; i++)
		cr_assert(perfring_cpus_write(cpus, &counts, &one, 32));
	cr_assert_not_null(perfring_cpus_reserve(cpus, NULL, 8, &first));
	memcpy(perfring_cpus_reserve(cpus, &counts, 32, &second), &one, 32);
	perfring_cpus_commit(cpus, &second);
	cr_assert_eq(perfring_wakeup_poll(&member->ring), 0);
	perfring_cpus_discard(cpus, &first);
	cr_assert_eq(perfring_wakeup_poll(&member->ring), POLLIN | POLLRDNORM);
	perfring_cpus_close(cpus);
	close(fd);
}

Test(set, cpus_wake_at_the_watermark_and_by_samples_locked)
{
	wakes(PERFRING_CPUS_LOCKED);
}

Test(set, cpus_wake_at_the_watermark_and_by_samples_rseq)
{
	wakes(PERFRING_CPUS_RSEQ);
}

Test(set, cpus_and_threads_refuse_in_a_forks_child)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_writer *writer;
	struct perfring_cpus *cpus;
	struct perfring_set *set;
	struct perfring_claim claim;
	struct told one = told(0, 0, 0, 24);
	int status;
	pid_t child;

	if (!is_kept_from_child(MADV_WIPEONFORK))
		cr_skip_test(NO_WIPEONFORK);
	cr_assert_eq(perfring_cpus_open(&cpus, &ring, NULL), 0);
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	cr_assert_not_null(perfring_cpus_reserve(cpus, NULL, 24, &claim));
	child = fork();
	if (child == 0) {
		int code = 0;

		perfring_cpus_commit(cpus, &claim);
		code |= perfring_cpus_write(cpus, NULL, &one, 24);
		code |= perfring_cpus_reserve(cpus, NULL, 0, &claim) ? 2 : 0;
		code |= perfring_writer_write(perfring_set_current(set), NULL, &one, 24) ? 4 : 0;
		code |= perfring_cpus_lost(cpus) ? 8 : 0;
		perfring_set_leave(set);
		perfring_cpus_close(cpus);
		syscall(SYS_exit_group, code);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
	cr_assert_eq(perfring_page_observe(perfring_cpus_at(cpus, (uint32_t)(claim.state >> 1))->ring.page), 0);
	perfring_cpus_close(cpus);
	perfring_set_close(set);
}

/* What the parent's rings were mapped at is the child's to use, and stays so. */
Test(set, a_forks_child_closes_what_it_inherited)
{
	struct perfring_ring_options ring = {.pages = 1};
	struct perfring_set *set, *own[4];
	struct perfring_writer *writer;
	struct told one = told(0, 0, 0, 24);
	int status;
	pid_t child;

	if (!is_kept_from_child(MADV_DONTFORK))
		cr_skip_test(NO_DONTFORK);
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	cr_assert_not(perfring_writer_write(writer, NULL, &one, 12));
	cr_assert_eq(perfring_set_lost(set), 1);
	child = fork();
	if (child == 0) {
		int code = 0;

		code |= perfring_set_lost(set) ? 1 : 0;
		for (int i = 0; i < 4; i++)
			code |= perfring_set_open(&own[i], &ring, NULL, 0) || perfring_set_join(own[i], &writer) ? 2
														 : 0;
		perfring_set_close(set);
		for (int i = 0; i < 4; i++)
			code |= perfring_writer_write(perfring_set_current(own[i]), NULL, &one, 24) ? 0 : 4;
		syscall(SYS_exit_group, code);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
	cr_assert(perfring_writer_write(writer, NULL, &one, 24), "the parent's");
	perfring_set_close(set);
}

/* ---- numbers of CPUs ---- */

enum {
	NO_MOUNT = 128, /* above what the rest add up to */
};

/* In a mount namespace of its own: sysfs knows one CPU by name, and by `possible` what is given; we run on our last. */
static int open_where(const char *possible, uint32_t *numbers)
{
	static const char folder[] = "/sys/devices/system/cpu";
	struct perfring_ring_options ring = {.pages = 1};
	struct told one = told(0, 0, 0, 24);
	struct perfring_cpus *cpus;
	int code = 0, fd;
	size_t last = 0;
	cpu_set_t set;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, NULL) || chdir(folder) || mkdir("cpu0", 0755))
		return NO_MOUNT;
	if (possible) {
		fd = open("possible", O_WRONLY | O_CREAT, 0644);
		code |= write(fd, possible, strlen(possible)) == (ssize_t)strlen(possible) ? 0 : 1;
		close(fd);
	}
	code |= sched_getaffinity(0, sizeof(set), &set) ? 2 : 0;
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		last = CPU_ISSET(i, &set) ? i : last;
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	code |= sched_setaffinity(0, sizeof(set), &set) ? 4 : 0;
	for (int way = PERFRING_CPUS_LOCKED; way <= PERFRING_CPUS_RSEQ; way++) {
		int ret = perfring__cpus_open_way(&cpus, &ring, NULL, way);

		if (ret == -EOPNOTSUPP)
			continue;
		if (ret)
			return code | 8;
		code |= perfring_cpus_write(cpus, NULL, &one, 24) ? 0 : 16;
		numbers[0] = cpus->count;
		numbers[1] = (uint32_t)last;
		/* On one beyond the table: refused, and counted. */
		cpus->count = (uint32_t)last;
		cpus->fast = cpus->fast ? cpus->count : 0;
		if (last) {
			code |= perfring_cpus_write(cpus, NULL, &one, 24) ? 32 : 0;
			code |= perfring_cpus_lost(cpus) == 1 ? 0 : 64;
		}
		cpus->count = numbers[0];
		perfring_cpus_close(cpus);
	}
	return code;
}

Test(set, cpus_are_numbered_with_gaps)
{
	/* NULL: there is no such file.  count 0: up to the last that we may run on. */
	static const struct {
		const char *possible;
		uint32_t count;
	} cases[] = {{NULL, 0}, {"0\n", 0}, {"0-1,300,302-303\n", 304}, {"0,99999999\n", 0}, {"x", 0}, {"", 0}};
	uint32_t *numbers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(numbers, MAP_FAILED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			syscall(SYS_exit_group, open_where(cases[i].possible, numbers));
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFEXITED(status));
		if (WEXITSTATUS(status) == NO_MOUNT)
			cr_skip_test("SKIP-ENV: unshare, mount: refused: needs CAP_SYS_ADMIN");
		cr_assert_eq(WEXITSTATUS(status), 0, "case %zu: %d", i, WEXITSTATUS(status));
		cr_assert_eq(numbers[0], cases[i].count ? cases[i].count : numbers[1] + 1, "case %zu", i);
	}
	munmap(numbers, 4096);
}

/* Many threads on few CPUs, moved to and fro by themselves in mid record, by another thread, and by handlers. */
enum {
	MOVERS = 8,
	MOST = 1 << 18, /* records of a thread, and as many of its handlers */
	MOVE_MS = 1500,
};

struct moving {
	struct perfring_cpus *cpus;
	perfring_u64 attempts, refused, invalid;
	uint32_t running, started;
	bool failed;
	uint64_t until;
	pid_t tids[MOVERS];
	unsigned char written[MOVERS][2][MOST];
	unsigned char found[MOVERS][2][MOST];
	uint64_t next[2][MOVERS][2]; /* by CPU: at least so high must the number be */
};

struct mover {
	struct moving *moving;
	uint32_t who;
	uint64_t numbers[2];
};

static __thread struct mover *this_mover;
static __thread uint64_t strikes;
static __thread bool in_handler;
static __thread uint64_t met_itself;

/* At a named place of a mover: to another CPU, or a handler that writes, now and then. */
static void strike(void)
{
	uint64_t dice;

	if (!this_mover)
		return;
	strikes = strikes * 6364136223846793005u + 1442695040888963407u;
	dice = strikes >> 33;
	if (dice % 256 == 0)
		pin((int)(dice >> 9 & 1));
	else if (dice % 256 == 1)
		raise(SIGUSR2); /* in its handler: when that returns */
}

static void write_one(struct mover *mover, uint32_t nested, int move_to)
{
	uint64_t number = mover->numbers[nested]++;
	struct told record;
	struct perfring_claim claim;
	void *space;

	if (number >= MOST)
		return;
	record = told(mover->who, nested, number, size_of(number));
	PERFRING_ADD(&mover->moving->attempts, 1);
	space = perfring_cpus_reserve(mover->moving->cpus, NULL, record.header.size, &claim);
	if (!space) {
		PERFRING_ADD(&mover->moving->refused, 1);
		mover->numbers[nested]--;
		return;
	}
	memcpy(space, &record, 24);
	if (move_to >= 0)
		pin(move_to);
	memcpy((unsigned char *)space + 24, record.more, record.header.size - 24u);
	mover->moving->written[mover->who][nested][number] = 1;
	perfring_cpus_commit(mover->moving->cpus, &claim);
	if (!perfring__cpus_is_valid(mover->moving->cpus))
		PERFRING_ADD(&mover->moving->invalid, 1);
}

static void on_timer(int signal)
{
	int saved = errno;
	uint64_t number;

	(void)signal;
	/* The thread sanitizer delivers a signal within its own handler: its numbers would be out of order. */
	if (!this_mover || in_handler) {
		met_itself += in_handler;
		handler_ends();
		return;
	}
	in_handler = true;
	number = this_mover->numbers[1];
	write_one(this_mover, 1, number % 8 == 3 ? (int)(number / 8 % 2) : -1);
	in_handler = false;
	errno = saved;
	handler_ends();
}

static void *move(void *of)
{
	struct mover mover = *(struct mover *)of;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
	struct itimerspec every = {{0, 300000}, {0, 300000}};
	timer_t timer;
	sigset_t usr2;

	strikes = mover.who;
	this_mover = &mover;
	mover.moving->tids[mover.who] = (pid_t)syscall(SYS_gettid);
	PERFRING_ADD(&mover.moving->started, 1);
	event._sigev_un._tid = mover.moving->tids[mover.who];
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		PERFRING_STORE(&mover.moving->failed, true);
	for (uint64_t i = 0; now_ms() < mover.moving->until && mover.numbers[0] < MOST; i++) {
		write_one(&mover, 0, i % 64 == 17 ? (int)(i / 64 % 2) : -1);
		if (i % 32 == 31)
			sched_yield();
	}
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, NULL);
	this_mover = NULL;
	if (getenv("SET_TEST_VERBOSE"))
		fprintf(stderr, "handler met itself %llu times\n", (unsigned long long)met_itself);
	timer_delete(timer);
	PERFRING_ADD(&mover.moving->running, UINT32_MAX);
	return NULL;
}

static void *push_around(void *of)
{
	struct moving *moving = of;

	for (unsigned i = 0; PERFRING_LOAD(&moving->running); i++) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(i / MOVERS % 2, &one);
		sched_setaffinity(moving->tids[i % MOVERS], sizeof(one), &one);
		if (i % 16 == 0)
			usleep(50);
	}
	return NULL;
}

/* Reads what there is; gives the sum of what LOST records say. */
static uint64_t read_all(struct moving *moving)
{
	struct perfring_set_ring *member;
	uint64_t lost = 0, words[3];

	for (uint32_t cpu = 0; (member = perfring_cpus_at(moving->cpus, cpu)); cpu++) {
		const struct perf_event_header *header;

		cr_assert_geq(perfring_reader_observe(&member->reader), 0);
		while (perfring_reader_next(&member->reader, &header) == 1) {
			const struct told *record = (const void *)header;

			if (header->type == PERF_RECORD_LOST) {
				memcpy(words, header, sizeof(words));
				lost += words[2];
				continue;
			}
			cr_assert(is_whole(header), "torn");
			cr_assert_lt(record->who, MOVERS);
			cr_assert_lt(record->nested, 2);
			cr_assert_lt(record->number, MOST);
			cr_assert_eq(moving->found[record->who][record->nested][record->number]++, 0, "doubled");
			if (cpu < 2) {
				uint64_t *next = &moving->next[cpu][record->who][record->nested];

				cr_assert_geq(record->number, *next, "out of order, %u", record->nested);
				*next = record->number + 1;
			}
		}
		perfring_reader_return(&member->reader);
	}
	return lost;
}

static void moves(int way, bool rare)
{
	/* So small that it is full now and then. */
	struct perfring_ring_options ring = {.pages = 4};
	struct moving *moving = calloc(1, sizeof(*moving));
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct mover movers[MOVERS];
	pthread_t threads[MOVERS], pusher;
	uint64_t lost = 0, pending = 0, handlers = 0;
	struct perfring_set_ring *member;
	uint32_t rounds = 0;

	cr_assert_not_null(moving);
	moving->cpus = open_way(&ring, NULL, way);
	if (rare)
		moving->cpus->fast = 0; /* every claim by the slow path's sequence */
	cr_assert_eq(sigaction(SIGUSR2, &action, NULL), 0);
	moving->running = MOVERS;
	moving->until = now_ms() + MOVE_MS;
	for (uint32_t i = 0; i < MOVERS; i++) {
		movers[i] = (struct mover){moving, i, {0, 0}};
		cr_assert_eq(pthread_create(&threads[i], NULL, move, &movers[i]), 0);
	}
	while (PERFRING_LOAD_ACQUIRE(&moving->started) < MOVERS)
		sched_yield();
	cr_assert_eq(pthread_create(&pusher, NULL, push_around, moving), 0);
	while (PERFRING_LOAD_ACQUIRE(&moving->running)) {
		lost += read_all(moving);
		if (++rounds % 4 == 0)
			usleep(100);
	}
	for (int i = 0; i < MOVERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(pusher, NULL);
	cr_assert(!moving->failed);
	/* Everybody is done: all that was committed is visible now, without anybody's help. */
	lost += read_all(moving);
	for (int i = 0; i < MOVERS; i++)
		for (int nested = 0; nested < 2; nested++)
			for (int number = 0; number < MOST; number++) {
				cr_assert_eq(moving->found[i][nested][number], moving->written[i][nested][number],
					     "thread %d, %d, record %d", i, nested, number);
				handlers += nested && moving->found[i][nested][number];
			}
	cr_assert_gt(handlers, 100, "no handler wrote: nothing was shown");
	cr_assert_eq(perfring_cpus_lost(moving->cpus), moving->refused);
	cr_assert_eq(moving->invalid, 0);
	for (uint32_t i = 0; i < moving->cpus->count; i++)
		cr_assert_eq(perfring_cpus_of(moving->cpus, i)->waiting, 0);
	for (uint32_t i = 0; (member = perfring_cpus_at(moving->cpus, i)); i++)
		pending += perfring_ring_state_of(member->ring.page)->lost;
	cr_assert_eq(lost + pending, moving->refused);
	if (getenv("SET_TEST_VERBOSE"))
		fprintf(stderr, "way %d: %llu attempts, %llu refused, %llu by handlers, %u rounds\n", way,
			(unsigned long long)moving->attempts, (unsigned long long)moving->refused,
			(unsigned long long)handlers, rounds);
	perfring_cpus_close(moving->cpus);
	free(moving);
}

Test(set, cpus_every_record_of_threads_that_move_once_locked)
{
	moves(PERFRING_CPUS_LOCKED, false);
}

Test(set, cpus_every_record_of_threads_that_move_once_rseq)
{
	moves(PERFRING_CPUS_RSEQ, false);
}

Test(set, cpus_every_record_of_threads_that_move_once_rseq_rare)
{
	moves(PERFRING_CPUS_RSEQ, true);
}
