/* merge_test.c - several sessions as one stream, against a model that sorts; and one session for each thread. */
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/merge.h>
#include <perfring/set.h>
#include "session/session_private.h"
#include "stream.h"

TestSuite(merge, .timeout = 120);

enum {
	MOST = 4, /* sessions */
	RINGS = 3 /* of each */
};

struct rig {
	struct perfring_session *sessions[MOST];
	struct stream streams[MOST][RINGS];
	struct perfring_merge *merge;
	uint32_t count;
	uint32_t rings;
};

static void rig_open(struct rig *rig, uint32_t sessions, uint32_t rings, int wake_fd)
{
	memset(rig, 0, sizeof(*rig));
	rig->count = sessions;
	rig->rings = rings;
	for (uint32_t s = 0; s < sessions; s++) {
		rig->sessions[s] = stream_session(100 * (s + 1), 2, 0);
		for (uint32_t r = 0; r < rings; r++)
			stream_open(&rig->streams[s][r], rig->sessions[s], 4, 0, 0, wake_fd);
	}
	cr_assert_eq(perfring_merge_open(&rig->merge, rig->sessions, sessions), 0);
}

static void rig_close(struct rig *rig)
{
	perfring_merge_close(rig->merge);
	for (uint32_t s = 0; s < rig->count; s++) {
		perfring_session_close(rig->sessions[s]);
		for (uint32_t r = 0; r < rig->rings; r++)
			stream_close(&rig->streams[s][r]);
	}
}

static void put(struct rig *rig, uint32_t s, uint32_t r, uint64_t time, uint64_t number)
{
	cr_assert(stream_write(&rig->streams[s][r], 100 * (s + 1), time, number));
}

/* What comes out now: numbers, and the sessions that they came from. */
static uint32_t take(struct rig *rig, uint64_t *numbers, uint32_t *from)
{
	struct perfring_item item;
	uint32_t count = 0, session = 99;
	int one;

	while ((one = perfring_merge_next(rig->merge, &item, &session)) == 1) {
		numbers[count] = ((const struct stream_sample *)(const void *)item.record)->number;
		from[count++] = session;
	}
	cr_assert_eq(one, 0);
	return count;
}

/* The rule that no session can keep alone: an old record of one brings out younger ones of another that come before. */
Test(merge, what_is_old_is_a_matter_of_all)
{
	uint64_t numbers[16];
	uint32_t from[16];
	struct rig rig;

	rig_open(&rig, 2, 1, -1);
	put(&rig, 0, 0, 60, 1);
	put(&rig, 0, 0, 70, 2);
	cr_assert_geq(perfring_merge_wait(rig.merge, 0), 0);
	cr_assert_eq(take(&rig, numbers, from), 0, "seen for the first time");
	put(&rig, 1, 0, 50, 3);
	put(&rig, 1, 0, 65, 4);
	put(&rig, 1, 0, 75, 5);
	put(&rig, 0, 0, 66, 6);
	cr_assert_geq(perfring_merge_wait(rig.merge, 0), 0);
	cr_assert_eq(take(&rig, numbers, from), 5);
	cr_assert_eq(numbers[0], 3);
	cr_assert_eq(from[0], 1);
	cr_assert_eq(numbers[1], 1);
	cr_assert_eq(from[1], 0);
	cr_assert_eq(numbers[2], 4);
	cr_assert_eq(from[2], 1);
	cr_assert_eq(numbers[3], 6);
	cr_assert_eq(numbers[4], 2);
	perfring_merge_return(rig.merge);
	cr_assert_eq(rig.streams[0][0].ring.page->data_tail, 3 * sizeof(struct stream_sample));
	cr_assert_eq(rig.streams[1][0].ring.page->data_tail, 2 * sizeof(struct stream_sample));
	perfring_merge_wait(rig.merge, 0);
	cr_assert_eq(take(&rig, numbers, from), 1);
	cr_assert_eq(numbers[0], 5);
	perfring_merge_return(rig.merge);
	rig_close(&rig);
}

Test(merge, what_is_late_is_counted)
{
	struct perfring_totals totals;
	uint64_t numbers[16];
	uint32_t from[16];
	struct rig rig;

	rig_open(&rig, 2, 1, -1);
	put(&rig, 0, 0, 1000, 1);
	perfring_merge_flush(rig.merge);
	cr_assert_eq(take(&rig, numbers, from), 1);
	/* Late to the other session, not to its own. */
	put(&rig, 1, 0, 900, 2);
	put(&rig, 1, 0, 1100, 3);
	perfring_merge_flush(rig.merge);
	cr_assert_eq(take(&rig, numbers, from), 2, "late, not lost");
	cr_assert_eq(numbers[0], 2);
	perfring_session_totals(rig.sessions[1], &totals);
	cr_assert_eq(totals.late, 1);
	cr_assert_eq(perfring_session_event_totals(rig.sessions[1], 0, &totals), 0);
	cr_assert_eq(totals.late, 1);
	cr_assert_eq(totals.samples, 2);
	cr_assert_eq(perfring_session_event_totals(rig.sessions[1], 1, &totals), 0);
	cr_assert_eq(totals.late + totals.samples, 0);
	perfring_session_totals(rig.sessions[0], &totals);
	cr_assert_eq(totals.late, 0);
	rig_close(&rig);
}

/* Ties come by session, then by ring; a time of all ones is one like any other. */
Test(merge, ties_and_ends)
{
	uint64_t numbers[16];
	uint32_t from[16];
	struct rig rig;

	rig_open(&rig, 3, 1, -1);
	put(&rig, 2, 0, 5, 3);
	put(&rig, 1, 0, 5, 2);
	put(&rig, 2, 0, UINT64_MAX, 4);
	perfring_merge_flush(rig.merge);
	cr_assert_eq(take(&rig, numbers, from), 3);
	cr_assert_eq(numbers[0], 2);
	cr_assert_eq(numbers[1], 3);
	cr_assert_eq(numbers[2], 4, "session 0 is empty, and no younger than this");
	cr_assert_eq(from[2], 2);
	rig_close(&rig);
}

Test(merge, a_corrupt_ring_in_one)
{
	struct perfring_totals totals;
	struct perfring_item item;
	struct perfring_fault fault;
	uint64_t numbers[16];
	uint32_t from[16], session = 99, ring = 99;
	struct rig rig;

	rig_open(&rig, 3, 2, -1);
	put(&rig, 0, 0, 10, 1);
	put(&rig, 1, 1, 20, 2);
	put(&rig, 1, 1, 25, 3);
	put(&rig, 2, 0, 30, 4);
	/* The second record's size, in place. */
	((struct perf_event_header *)(void *)(rig.streams[1][1].ring.data + sizeof(struct stream_sample)))->size = 12;
	perfring_merge_flush(rig.merge);
	cr_assert_eq(perfring_merge_next(rig.merge, &item, &session), -EBADMSG);
	cr_assert_eq(session, 1);
	fault = perfring_session_fault(rig.sessions[1], &ring);
	cr_assert_eq(ring, 1);
	cr_assert_eq(fault.at, sizeof(struct stream_sample));
	cr_assert_eq(take(&rig, numbers, from), 3, "what is sound comes out");
	cr_assert_eq(numbers[0], 1);
	cr_assert_eq(numbers[1], 2);
	cr_assert_eq(numbers[2], 4);
	perfring_merge_return(rig.merge);
	perfring_session_totals(rig.sessions[1], &totals);
	cr_assert_eq(totals.corrupt, 1);
	cr_assert_eq(totals.skipped, sizeof(struct stream_sample));
	put(&rig, 1, 1, 40, 5);
	perfring_merge_flush(rig.merge);
	cr_assert_eq(take(&rig, numbers, from), 1, "the ring goes on");
	rig_close(&rig);
}

/* A fault that is met behind a window of records, in the middle of the round. */
Test(merge, a_fault_in_the_middle_of_a_round)
{
	uint64_t taken = 0, faults = 0, last = 0;
	struct perfring_item item;
	struct rig rig;
	int one;

	rig_open(&rig, 2, 1, -1);
	for (uint64_t i = 1; i <= 100; i++) {
		put(&rig, 0, 0, 10 * i, i);
		put(&rig, 1, 0, 10 * i + 5, i);
	}
	((struct perf_event_header *)(void *)(rig.streams[1][0].ring.data + 90 * sizeof(struct stream_sample)))->size =
		7;
	perfring_merge_flush(rig.merge);
	while ((one = perfring_merge_next(rig.merge, &item, NULL))) {
		faults += one < 0;
		taken += one > 0;
		cr_assert(one < 0 || item.time >= last);
		last = one > 0 ? item.time : last;
	}
	cr_assert_eq(taken, 190);
	cr_assert_eq(faults, 1);
	rig_close(&rig);
}

Test(merge, sessions_that_do_not_go_together)
{
	struct perf_event_attr attr = stream_attr();
	struct perfring_session *sessions[2] = {stream_session(100, 1, 0), NULL};
	struct perfring_merge *merge = (void *)1;
	uint64_t id = 7;

	cr_assert_eq(perfring_merge_open(&merge, sessions, 0), -EINVAL);
	cr_assert_null(merge);
	sessions[1] = sessions[0];
	cr_assert_eq(perfring_merge_open(&merge, sessions, 2), -EINVAL, "one session twice");
	cr_assert_eq(perfring_session_open(&sessions[1], 0), 0);
	attr.clockid = CLOCK_BOOTTIME;
	cr_assert_eq(perfring_session_describe(sessions[1], &attr, &id, 1), 0);
	cr_assert_eq(perfring_merge_open(&merge, sessions, 2), -EINVAL, "another clock");
	cr_assert_eq(perfring_merge_open(&merge, sessions, 1), 0);
	perfring_merge_close(merge);
	perfring_merge_close(NULL);
	perfring_session_close(sessions[0]);
	perfring_session_close(sessions[1]);
}

/* A ring of a set that cannot be added: each wait returns the error, and begins the round of every session. */
Test(merge, a_wait_returns_the_errors_of_sets)
{
	struct perf_event_attr attr = stream_attr();
	struct perfring_ring_options ring = {.pages = 4, .attr = &attr, .id = 100};
	int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), later = wake_fd + 100;
	struct perfring_writer *writer;
	struct perfring_set *set;
	uint64_t numbers[16];
	uint32_t from[16];
	struct rig rig;

	rig_open(&rig, 3, 1, -1);
	cr_assert_eq(perfring_set_open(&set, &ring, NULL, 0), 0);
	cr_assert_eq(perfring_session_add_set(rig.sessions[0], set, later, 0), 0);
	cr_assert_eq(perfring_merge_wait(rig.merge, 0), 0, "its set is empty");
	cr_assert_eq(perfring_set_join(set, &writer), 0);
	for (uint32_t s = 0; s < 3; s++)
		put(&rig, s, 0, 60 - s, s);
	cr_assert_eq(perfring_merge_wait(rig.merge, 0), -EBADF);
	cr_assert_eq(take(&rig, numbers, from), 0, "seen for the first time");
	cr_assert_eq(perfring_merge_wait(rig.merge, 1), -EBADF);
	cr_assert_eq(take(&rig, numbers, from), 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(from[i], 2 - i);
	perfring_merge_return(rig.merge);
	cr_assert_eq(dup2(wake_fd, later), later);
	cr_assert_eq(perfring_merge_wait(rig.merge, 0), 0, "the next wait adds it");
	cr_assert_eq(rig.sessions[0]->added, 2);
	rig_close(&rig);
	perfring_set_leave(set);
	perfring_set_close(set);
	close(later);
	close(wake_fd);
}

/* ---- against a model: what was written, sorted ---- */

struct written {
	uint64_t time;
	uint64_t number;
};

static int by_time(const void *a, const void *b)
{
	const struct written *one = a, *other = b;

	return one->time < other->time ? -1 : one->time > other->time;
}

/* Every time is another one, so that there is one order.  Records of a ring are nearly sorted: some are stamped up to 40
 * records before they are written.  What a look must not miss is as in life: stamps that are given out before a look are
 * written before it. */
static void against_a_model(uint32_t sessions, unsigned seed)
{
	enum {
		ROUNDS = 4000,
		EACH = 40
	};
	struct written *all = malloc(ROUNDS * EACH * sizeof(*all));
	uint64_t sent = 0, got = 0, clock = 1;
	uint64_t held[MOST][RINGS] = {{0}};
	struct perfring_item item;
	struct rig rig;
	uint32_t from;

	rig_open(&rig, sessions, RINGS, -1);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = rand_r(&seed) % EACH; i > 0; i--) {
			uint32_t s = (uint32_t)rand_r(&seed) % sessions, r = (uint32_t)rand_r(&seed) % RINGS;

			clock += 1 + (uint64_t)rand_r(&seed) % 5;
			/* A stamp that waits for its record: a nested one comes before it. */
			if (!held[s][r] && rand_r(&seed) % 4 == 0) {
				held[s][r] = clock;
				continue;
			}
			if (stream_write(&rig.streams[s][r], 100 * (s + 1) + (uint64_t)rand_r(&seed) % 2, clock, sent))
				all[sent++].time = clock;
		}
		for (uint32_t s = 0; s < sessions; s++)
			for (uint32_t r = 0; r < RINGS; r++) {
				if (held[s][r] && stream_write(&rig.streams[s][r], 100 * (s + 1), held[s][r], sent))
					all[sent++].time = held[s][r];
				held[s][r] = 0;
			}
		if (round == ROUNDS - 1)
			perfring_merge_flush(rig.merge);
		else
			perfring_merge_wait(rig.merge, 0);
		while (rand_r(&seed) % 500 && perfring_merge_next(rig.merge, &item, &from) == 1) {
			const struct stream_sample *sample = (const void *)item.record;

			cr_assert_lt(sample->number, sent);
			cr_assert_eq(item.time, all[sample->number].time);
			cr_assert_eq(from, sample->identifier / 100 - 1);
			cr_assert_eq(item.format->index, sample->identifier % 100);
			all[sample->number].number = got++;
		}
		if (rand_r(&seed) % 3)
			perfring_merge_return(rig.merge);
	}
	while (perfring_merge_next(rig.merge, &item, &from) == 1)
		all[((const struct stream_sample *)(const void *)item.record)->number].number = got++;
	cr_assert_eq(got, sent);
	cr_assert_gt(got, ROUNDS * EACH / 4);
	qsort(all, sent, sizeof(*all), by_time);
	for (uint64_t i = 0; i < sent; i++)
		cr_assert_eq(all[i].number, i, "number %lu of all came as number %lu", i, all[i].number);
	for (uint32_t s = 0; s < sessions; s++) {
		struct perfring_totals totals;

		perfring_session_totals(rig.sessions[s], &totals);
		cr_assert_eq(totals.late, 0);
	}
	rig_close(&rig);
	free(all);
}

Test(merge, two_against_a_model)
{
	against_a_model(2, 1);
}

Test(merge, four_against_a_model)
{
	against_a_model(4, 2);
}

/* ---- waiting ---- */

struct later {
	struct stream *stream;
	uint64_t id;
	uint64_t writes;
};

static void *write_later(void *of)
{
	struct later *later = of;

	usleep(30000);
	for (uint64_t i = 0; i < later->writes; i++)
		stream_write(later->stream, later->id, 1000 + i, i);
	stream_end(later->stream);
	return NULL;
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Any session's crossing ends the wait of all, and so does it a poll of the merge's fd. */
Test(merge, a_crossing_in_one_ends_a_wait)
{
	int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	for (uint32_t which = 0; which < 3; which++) {
		struct later later;
		uint64_t begin;
		pthread_t thread;
		struct rig rig;

		rig_open(&rig, 3, 1, wake_fd);
		later = (struct later){&rig.streams[which][0], 100 * (which + 1), 350};
		begin = milliseconds();
		/* For once the first wait of all is the one that is ended. */
		if (which != 1) {
			cr_assert_eq(perfring_merge_wait(rig.merge, 20), 0);
			cr_assert_geq(milliseconds() - begin, 19);
		}
		cr_assert_eq(pthread_create(&thread, NULL, write_later, &later), 0);
		if (which == 2) {
			struct pollfd poll_fd = {perfring_merge_fd(rig.merge), POLLIN, 0};

			cr_assert_eq(poll(&poll_fd, 1, 5000), 1);
			perfring_merge_wait(rig.merge, 0);
		} else {
			cr_assert_eq(perfring_merge_wait(rig.merge, 5000), 1);
		}
		cr_assert_lt(milliseconds() - begin, 2500);
		pthread_join(thread, NULL);
		rig_close(&rig);
	}
	close(wake_fd);
}

/* ---- kernel events ---- */

static struct perf_event_attr fault_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return attr;
}

static struct perfring_session *kernel_session(int32_t tid, const struct perf_event_attr *attr)
{
	struct perfring_session *session;
	struct perfring_target *target;
	int event;

	cr_assert_eq(perfring_session_open(&session, 64), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_cpus(target, NULL), 0);
	cr_assert_eq(perfring_target_add_thread(target, tid), 0);
	event = perfring_session_add(session, attr, target);
	perfring_target_close(target);
	if (event == -EACCES || event == -EPERM || event == -ENOSYS)
		cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
	cr_assert_eq(event, 0, "%s", perfring_session_refusal(session));
	return session;
}

static void touch_pages(uint64_t pages)
{
	char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, pages * 4096, MADV_NOHUGEPAGE);
	for (uint64_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * 4096] = 1;
	munmap(memory, pages * 4096);
}

/* Two children that take page faults by turns, each observed by a session of its own, and a ring of ours in a third; the
 * first child ends long before the others. */
Test(merge, kernel_events_and_a_ring_of_ours)
{
	enum {
		SHORT = 600,
		LONG = 3000
	};
	struct perf_event_attr attr = fault_attr();
	struct perfring_session *sessions[3];
	struct perfring_merge *merge;
	struct stream ours;
	uint64_t by[3] = {0}, last = 0, fell = 0, changes = 0, late = 0, written = 0, alone = 0;
	uint32_t before = 9;
	bool is_first_over = false;
	int gates[2][2], turns[2][2];
	pid_t children[2];

	/* They take turns as long as both live, so that no machine runs them one after the other. */
	cr_assert_eq(pipe(turns[0]) + pipe(turns[1]), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(pipe(gates[i]), 0);
		children[i] = fork();
		if (children[i] == 0) {
			char gate;

			close(gates[i][1]);
			if (read(gates[i][0], &gate, 1) == 1)
				for (uint64_t n = 0; n < (i ? LONG : SHORT); n += 50) {
					touch_pages(50);
					if (n < SHORT && (write(turns[i][1], &gate, 1) != 1 || read(turns[!i][0], &gate, 1) != 1))
						break;
					usleep(500);
					/* half of them when the other's end has been seen */
					if (n == LONG / 2 && read(gates[i][0], &gate, 1) != 1)
						break;
				}
			syscall(SYS_exit_group, 0);
		}
		sessions[i] = kernel_session(children[i], &attr);
		cr_assert_eq(perfring_session_enable(sessions[i]), 0);
	}
	sessions[2] = stream_session(500, 1, 0);
	stream_open(&ours, sessions[2], 64, 0, 0, -1);
	cr_assert_eq(perfring_merge_open(&merge, sessions, 3), 0);
	cr_assert_eq(write(gates[0][1], "x", 1) + write(gates[1][1], "x", 1), 2);
	while (!perfring_session_is_over(sessions[0]) || !perfring_session_is_over(sessions[1]) || written < 500) {
		struct perfring_item item;
		struct timespec now;
		uint32_t from;

		cr_assert_geq(perfring_merge_wait(merge, 5), 0);
		if (!is_first_over && perfring_session_is_over(sessions[0])) {
			is_first_over = true;
			cr_assert_eq(write(gates[1][1], "x", 1), 1);
		}
		if (written < 500) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			cr_assert(stream_write(&ours, 500, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
					       written++));
		}
		if (perfring_session_is_over(sessions[0]) && perfring_session_is_over(sessions[1]))
			perfring_merge_flush(merge);
		while (perfring_merge_next(merge, &item, &from) == 1) {
			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			cr_assert_lt(from, 3);
			by[from]++;
			changes += from != before;
			before = from;
			fell += item.time < last;
			last = item.time > last ? item.time : last;
			alone += from == 1 && perfring_session_is_over(sessions[0]);
		}
		perfring_merge_return(merge);
	}
	perfring_merge_flush(merge);
	for (struct perfring_item item; perfring_merge_next(merge, &item, NULL) == 1;)
		by[2] += ((const struct stream_sample *)(const void *)item.record)->identifier == 500;
	for (int i = 0; i < 3; i++) {
		struct perfring_totals totals;

		perfring_session_totals(sessions[i], &totals);
		late += totals.late;
		cr_assert_eq(totals.lost + totals.corrupt, 0);
	}
	/* The kernel stamps and then publishes: whatever fell behind did so by a writer that was held up in between. */
	cr_assert_eq(late, fell, "each that fell was counted");
	cr_assert_leq(fell, (SHORT + LONG) / 100);
	cr_assert_geq(by[0], SHORT);
	cr_assert_geq(by[1], LONG);
	cr_assert_eq(by[2], 500);
	cr_assert_gt(changes, 6, "one after the other is no merge");
	cr_assert_gt(alone, LONG / 4, "one has ended, and the others go on");
	perfring_merge_close(merge);
	for (int i = 0; i < 3; i++)
		perfring_session_close(sessions[i]);
	stream_close(&ours);
	for (int i = 0; i < 2; i++) {
		waitpid(children[i], NULL, 0);
		close(gates[i][0]);
		close(gates[i][1]);
		close(turns[i][0]);
		close(turns[i][1]);
	}
}

/* ---- one session for each consumer thread ---- */

enum {
	CONSUMERS = 4,
	ITEMS = 40000
};

struct consumer {
	struct perfring_session *session;
	struct stream stream;
	uint64_t got;
	uint64_t wrong;
	bool done;
};

static void *produce(void *of)
{
	struct consumer *consumer = of;
	uint64_t written = 0;

	while (written < ITEMS) {
		if (stream_write(&consumer->stream, 100, written + 1, written))
			written++;
		else
			sched_yield();
	}
	stream_end(&consumer->stream);
	return NULL;
}

static void *consume(void *of)
{
	struct consumer *consumer = of;
	struct perfring_item item;

	while (consumer->got < ITEMS) {
		perfring_session_wait(consumer->session, 1);
		while (perfring_session_next(consumer->session, &item) == 1) {
			const struct stream_sample *sample = (const void *)item.record;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			consumer->wrong += sample->number != consumer->got++ || sample->time != sample->number + 1;
		}
		perfring_session_return(consumer->session);
	}
	return NULL;
}

Test(merge, a_session_for_each_thread)
{
	struct consumer consumers[CONSUMERS];
	pthread_t writers[CONSUMERS], readers[CONSUMERS];

	memset(consumers, 0, sizeof(consumers));
	for (int i = 0; i < CONSUMERS; i++) {
		consumers[i].session = stream_session(100, 2, 0);
		stream_open(&consumers[i].stream, consumers[i].session, 16, 0, 0, -1);
	}
	for (int i = 0; i < CONSUMERS; i++) {
		cr_assert_eq(pthread_create(&writers[i], NULL, produce, &consumers[i]), 0);
		cr_assert_eq(pthread_create(&readers[i], NULL, consume, &consumers[i]), 0);
	}
	for (int i = 0; i < CONSUMERS; i++) {
		struct perfring_totals totals;

		pthread_join(writers[i], NULL);
		pthread_join(readers[i], NULL);
		cr_assert_eq(consumers[i].wrong, 0);
		perfring_session_totals(consumers[i].session, &totals);
		cr_assert_eq(totals.samples, ITEMS);
		cr_assert_eq(totals.late + totals.corrupt + totals.unknown_ids, 0, "%lu late, %lu corrupt, %lu strange",
			     totals.late, totals.corrupt, totals.unknown_ids);
		perfring_session_close(consumers[i].session);
		stream_close(&consumers[i].stream);
	}
}

/* The same with the kernel's rings: four threads that open a session each, observe themselves, and read it. */
struct self_reader {
	struct perf_event_attr attr;
	uint64_t touched;
	uint64_t seen;
	uint64_t unknown_ids;
	int error;
};

static void *observe_myself(void *of)
{
	struct self_reader *self = of;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_item item;
	int32_t tid = (int32_t)syscall(SYS_gettid);

	self->error = perfring_session_open(&session, 64);
	if (self->error)
		return NULL;
	perfring_target_open(&target);
	perfring_target_add_thread(target, tid);
	self->error = perfring_session_add(session, &self->attr, target);
	perfring_target_close(target);
	if (self->error >= 0)
		self->error = perfring_session_enable(session);
	for (int round = 0; !self->error && round < 50; round++) {
		touch_pages(20);
		self->touched += 20;
		perfring_session_wait(session, 0);
		while (perfring_session_next(session, &item) == 1)
			self->seen += item.record->type == PERF_RECORD_SAMPLE;
		perfring_session_return(session);
	}
	perfring_session_disable(session);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		self->seen += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	perfring_session_close(session);
	return NULL;
}

Test(merge, threads_that_observe_themselves)
{
	struct self_reader selves[CONSUMERS];
	pthread_t threads[CONSUMERS];

	memset(selves, 0, sizeof(selves));
	for (int i = 0; i < CONSUMERS; i++) {
		selves[i].attr = fault_attr();
		cr_assert_eq(pthread_create(&threads[i], NULL, observe_myself, &selves[i]), 0);
	}
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CONSUMERS; i++) {
		if (selves[i].error == -EACCES || selves[i].error == -EPERM || selves[i].error == -ENOSYS)
			cr_skip_test("SKIP-ENV: perf_event_open: %s: needs perf_event_paranoid 2 or less",
				     strerror(-selves[i].error));
		cr_assert_eq(selves[i].error, 0);
		cr_assert_eq(selves[i].touched, 1000);
		cr_assert_geq(selves[i].seen, 1000, "%lu", selves[i].seen);
	}
}
