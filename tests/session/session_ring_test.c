/* session_ring_test.c - rings of our own in sessions: added, removed, written by the threads of a set, closed by their owners. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/set.h>
#include <perfring/wakeup.h>
#include "session/session_private.h"
#include "session_rig.h"
#include "test.h"

TestSuite(session_ring, .timeout = 120);

/* ---- rings that were added ---- */

enum {
	OURS = 4,
	OUR_SAMPLES = 20000,
	OUR_ID = 4711,
};

static struct perf_event_attr our_attr(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return attr;
}

static const struct perfring_format our_format = {
	.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ADDR,
	.flags = 1 << PERFRING_ATTR_FLAG_sample_id_all,
};

static bool write_sample(struct perfring_writer *writer, uint64_t number)
{
	struct perfring_sample sample = {.identifier = OUR_ID, .pid = (uint32_t)getpid(), .addr = number};
	struct perfring_claim claim;
	int64_t size;
	void *buffer;

	sample.tid = (uint32_t)syscall(SYS_gettid);
	size = perfring_sample_size(&our_format, &sample);
	buffer = perfring_writer_reserve(writer, NULL, (uint64_t)size, &claim);
	if (!buffer)
		return false;
	sample.time = perfring_writer_stamp(writer, &claim);
	perfring_sample_encode(&our_format, &sample, buffer, (size_t)size);
	perfring_writer_commit(writer, &claim);
	return true;
}

static void *write_samples(void *of)
{
	struct perfring_set *set = of;
	struct perfring_writer *writer;
	uint64_t failed = 0;

	if (perfring_set_join(set, &writer))
		return (void *)-1;
	for (uint64_t i = 0; i < OUR_SAMPLES; i++) {
		failed += !write_sample(writer, i);
		if (i % 2048 == 2047)
			usleep(1000);
	}
	return (void *)(intptr_t)failed;
}

/* How many mappings of this process are of rings. */
static uint32_t rings_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint32_t count = 0;
	char line[512];

	cr_assert(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:perfring") != NULL;
	fclose(maps);
	return count;
}

static uint32_t read_round(struct perfring_session *session)
{
	struct perfring_item item;
	uint32_t count = 0;

	cr_assert_geq(perfring_session_wait(session, 0), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		count += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	return count;
}

static void *write_some(void *set)
{
	struct perfring_writer *writer;

	if (perfring_set_join(set, &writer))
		return (void *)-1;
	for (uint64_t i = 0; i < 10; i++)
		if (!write_sample(writer, i))
			return (void *)-1;
	return NULL;
}

/* Whoever forgets to take drained rings out of the session has their memory until its end, and no less. */
Test(session_ring, rings_whose_set_freed_them, .timeout = 60)
{
	struct perfring_writer_options writer = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_ring_options ring = {.pages = 4};
	struct perf_event_attr ours = our_attr();
	struct perfring_session *session;
	struct perfring_set_ring *member;
	struct perfring_set *set;
	uint64_t id = OUR_ID;
	pthread_t thread;
	void *ret;

	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &ours, &id, 1), 0);
	for (uint32_t round = 0; round < 20; round++) {
		cr_assert_eq(pthread_create(&thread, NULL, write_some, set), 0);
		cr_assert_eq(pthread_join(thread, &ret), 0);
		cr_assert_null(ret);
		for (member = NULL; (member = perfring_set_next(set, member));)
			if (!member->data) {
				int number = perfring_session_add_ring(session, &member->ring, -1,
								       round & 1 ? PERFRING_READER_COPY : 0);

				cr_assert_eq(number, (int)round);
				member->data = set;
			}
		cr_assert_eq(read_round(session), 10);
	}
	/* All are drained; a walk frees them. */
	for (int walk = 0; walk < 2; walk++)
		for (member = NULL; (member = perfring_set_next(set, member));)
			cr_assert(member->drained);
	cr_assert_null(perfring_set_next(set, NULL));
	cr_assert_eq(read_round(session), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 3), 0);
	perfring_set_close(set);
	cr_assert_eq(read_round(session), 0);
	cr_assert_gt(rings_mapped(), 0);
	perfring_session_close(session);
	cr_assert_eq(rings_mapped(), 0);
}

Test(session_ring, a_ring_that_its_owner_closed, .timeout = 60)
{
	struct perfring_writer_options options = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_ring_options shape = {.pages = 4};
	struct perfring_ring ring, again, none = {.fd = -1};
	struct perf_event_attr ours = our_attr();
	struct perfring_session *session, *other;
	struct perfring_writer *writer;
	uint64_t id = OUR_ID;

	cr_assert_eq(perfring_ring_create(&ring, &shape), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	for (uint64_t i = 0; i < 10; i++)
		cr_assert(write_sample(writer, i));
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &ours, &id, 1), 0);
	cr_assert_eq(perfring_session_add_ring(session, &ring, -1, 0), 0);
	/* Handles of handles, closed in any order; an add that fails holds none. */
	cr_assert_eq(perfring_ring_share(&again, &ring), 0);
	cr_assert_eq(again.fd, -1);
	cr_assert_eq(perfring_session_open(&other, 0), 0);
	cr_assert_eq(perfring_session_add_ring(other, &again, STDIN_FILENO + 1000, 0), -EBADF);
	perfring_session_close(other);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	cr_assert_eq(perfring_ring_share(&ring, &none), -EINVAL);
	perfring_ring_close(&again);
	cr_assert_eq(read_round(session), 10, "the session has it still");
	cr_assert_gt(rings_mapped(), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(rings_mapped(), 0);
	perfring_session_close(session);
}

static void writers_as_one_stream(bool mixed)
{
	struct perf_event_attr ours = our_attr(), theirs = fault_attr();
	struct perfring_ring_options ring = {.pages = 512, .attr = &ours, .id = OUR_ID};
	struct perfring_writer_options writer = {.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC};
	uint64_t next[OURS] = {0}, last = 0, fallen = 0, faults = 0, touched = 0, changes = 0;
	uint32_t tids[OURS] = {0}, tid_before = 0;
	struct perfring_session *session;
	struct perfring_target *target;
	struct perfring_totals totals;
	struct perfring_set *set;
	pthread_t threads[OURS];
	struct perfring_item item;
	bool began = false;
	int event, more = 3;

	writer.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, set, writer.wake_fd, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, set, writer.wake_fd, 0), -EEXIST);
	cr_assert(!perfring_session_is_over(session));
	if (mixed) {
		theirs.use_clockid = 1;
		theirs.clockid = CLOCK_MONOTONIC;
		theirs.inherit = 0;
		cr_assert_eq(perfring_target_open(&target), 0);
		cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
		event = perfring_session_add(session, &theirs, target);
		perfring_target_close(target);
		if (event < 0)
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		cr_assert_eq(perfring_session_enable(session), 0);
	}
	for (int i = 0; i < OURS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_samples, set), 0);
	while (more) {
		cr_assert_geq(perfring_session_wait(session, 20), 0);
		if (mixed) {
			char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			*(volatile char *)page = 1;
			touched++;
			munmap(page, 4096);
		}
		while (perfring_session_next(session, &item) == 1) {
			struct perfring_sample sample;
			uint32_t who = 0;

			if (item.record->type != PERF_RECORD_SAMPLE)
				continue;
			fallen += item.time < last;
			if (item.time > last)
				last = item.time;
			cr_assert_not_null(item.format);
			if (item.format->index != (uint32_t)mixed) { /* the set's event is described by its first ring */
				faults++;
				continue;
			}
			cr_assert_eq(perfring_sample_decode(item.format, item.record, &sample, NULL), 0);
			cr_assert_eq(sample.time, item.time);
			cr_assert_eq(sample.identifier, OUR_ID);
			changes += sample.tid != tid_before;
			tid_before = sample.tid;
			while (who < OURS && tids[who] && tids[who] != sample.tid)
				who++;
			cr_assert_lt(who, OURS);
			tids[who] = sample.tid;
			cr_assert_eq(sample.addr, next[who]++, "each thread's own order");
		}
		perfring_session_return(session);
		/* Every thread has joined, written and gone; then two rounds for the last. */
		began |= tids[OURS - 1] != 0;
		if (began && !session->added)
			more--;
	}
	for (int i = 0; i < OURS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		cr_assert_null(failed, "thread %d: %lld", i, (long long)(intptr_t)failed);
		cr_assert_eq(next[i], OUR_SAMPLES);
	}
	/* The last rounds' page faults. */
	perfring_session_disable(session);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		faults += item.record->type == PERF_RECORD_SAMPLE;
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.samples, OURS * OUR_SAMPLES + faults, "the rings are gone, what they counted is not");
	cr_assert_eq(totals.unknown_ids, 0);
	cr_assert_eq(totals.late, fallen, "whatever fell behind was counted");
	/* A thread that is held up between stamp and commit; seldom. */
	cr_assert_lt(fallen, OURS * OUR_SAMPLES / 100);
	cr_assert_gt(changes, OURS, "one after the other is no merge");
	if (mixed)
		cr_assert_geq(faults, touched);
	cr_assert_eq(perfring_session_remove_set(session, set), 0);
	cr_assert_eq(perfring_session_remove_set(session, set), -EINVAL);
	perfring_session_close(session);
	perfring_set_close(set);
	close(writer.wake_fd);
}

Test(session_ring, writers_of_a_set_as_one_stream)
{
	writers_as_one_stream(false);
}

Test(session_ring, writers_of_a_set_and_a_kernel_event_as_one_stream)
{
	writers_as_one_stream(true);
}

static void *join_and_write(void *set)
{
	struct perfring_writer *writer;

	usleep(50000);
	return (void *)(intptr_t)(perfring_set_join(set, &writer) || !write_sample(writer, 9));
}

/* Nobody wakes it, and a thread that joins while it waits is found. */
Test(session_ring, a_wait_for_rings_that_wake_nobody_is_as_long_as_asked)
{
	struct perf_event_attr attr = our_attr();
	struct perfring_ring_options ring = {.pages = 1, .attr = &attr, .id = OUR_ID};
	struct perfring_writer_options writer = {.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_session *session;
	struct perfring_item item;
	struct timespec from, to;
	struct perfring_set *set;
	pthread_t thread;
	uint64_t now = 0;
	void *failed;

	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_now(session, &now), -EINVAL);
	cr_assert_eq(perfring_session_add_set(session, set, -1, 0), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_assert_eq(perfring_session_wait(session, 120), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_assert_geq((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 119);
	cr_assert_eq(pthread_create(&thread, NULL, join_and_write, set), 0);
	cr_assert_eq(perfring_session_wait(session, -1), 0);
	pthread_join(thread, &failed);
	cr_assert_null(failed);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	cr_assert_eq(item.format->index, 0);
	cr_assert_eq(perfring_session_now(session, &now), 0);
	cr_assert_gt(now, item.time);
	cr_assert_lt(now - item.time, UINT64_C(60000000000), "one clock");
	perfring_session_return(session);
	/* The set goes first. */
	cr_assert_eq(perfring_session_remove_set(session, set), 0);
	perfring_set_close(set);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	perfring_session_close(session);
}

/* The second session reads on after what the first returned, also of a thread that has left. */
Test(session_ring, a_set_is_read_by_one_session_after_another, .timeout = 60)
{
	struct perf_event_attr attr = our_attr();
	struct perfring_ring_options ring = {.pages = 4, .attr = &attr, .id = OUR_ID};
	struct perfring_writer_options writer = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
	struct perfring_session *session;
	struct perfring_writer *own;
	struct perfring_set *set;
	pthread_t thread;
	void *failed;

	cr_assert_eq(perfring_set_open(&set, &ring, &writer, 0), 0);
	cr_assert_eq(perfring_set_join(set, &own), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(perfring_session_open(&session, 0), 0);
		cr_assert_eq(perfring_session_add_set(session, set, -1, 0), 0);
		cr_assert_eq(pthread_create(&thread, NULL, write_some, set), 0);
		pthread_join(thread, &failed);
		cr_assert_null(failed);
		cr_assert(write_sample(own, 0));
		cr_assert_eq(read_round(session), i ? 12 : 11, "session %d", i);
		cr_assert(write_sample(own, 0)); /* for the next one */
		perfring_session_close(session);
	}
	/* Three threads have left, and nothing of theirs is unread. */
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_add_set(session, set, -1, 0), 0);
	cr_assert_eq(read_round(session), 1);
	cr_assert_eq(read_round(session), 0);
	perfring_session_close(session);
	perfring_set_leave(set);
	perfring_set_close(set);
}

/* A KSYMBOL or BPF_EVENT as Linux writes it to the second event that asks for it: 32 bytes more than it has, with what was there. */
static bool write_program(struct perfring_writer *writer, uint64_t number)
{
	const char *name = number % 3 ? "bpf_prog_0123456789abcdef_of_ours" : "";
	struct perfring_record is = {.type = number & 1 ? PERFRING_RECORD_BPF_EVENT : PERFRING_RECORD_KSYMBOL,
				     .trailer = {.identifier = OUR_ID, .pid = 1, .tid = 2}};
	unsigned char bytes[128];
	struct perfring_claim claim;
	void *buffer;
	int64_t size;

	if (number & 1)
		is.is.bpf_event.id = (uint32_t)number;
	else
		is.is.ksymbol = (struct perfring_record_ksymbol){
			.addr = number, .name = {.data = name, .size = (uint32_t)strlen(name)}};
	size = perfring_record_encode(&our_format, &is, bytes, sizeof(bytes));
	cr_assert_gt(size, 0);
	buffer = perfring_writer_reserve(writer, NULL, (uint64_t)size + 32, &claim);
	if (!buffer)
		return false;
	is.trailer.time = perfring_writer_stamp(writer, &claim);
	perfring_record_encode(&our_format, &is, bytes, sizeof(bytes));
	memset(bytes + size, 0x11, 32);
	((struct perf_event_header *)(void *)bytes)->size += 32;
	memcpy(buffer, bytes, (size_t)size + 32);
	perfring_writer_commit(writer, &claim);
	return true;
}

/* A record of write_program or write_sample, as it should be. */
static void look(const struct perf_event_header *record, uint64_t number, uint64_t *last)
{
	struct perfring_record is;
	uint64_t time = perfring_format_time_of(&our_format, record);

	cr_assert_eq(perfring_format_id_of(&our_format, record), OUR_ID, "%lu", (unsigned long)number);
	cr_assert(time > *last && time < *last + UINT64_C(60000000000), "%lu", (unsigned long)number);
	*last = time;
	if (record->type == PERF_RECORD_SAMPLE)
		return;
	cr_assert_eq(perfring_record_decode(&our_format, record, &is, NULL), 0);
	if (record->type == PERF_RECORD_BPF_EVENT)
		cr_assert_eq(is.is.bpf_event.id, number);
	else
		cr_assert_eq(is.is.ksymbol.addr, number);
	cr_assert_eq(is.trailer.tid, 2);
}

/* Such records through a ring of one page, which they wrap many times: as items and as spans, with and without copies. */
Test(session_ring, trailers_are_at_the_end)
{
	for (int way = 0; way < 4; way++) {
		struct perfring_ring_options options = {.pages = 1};
		struct perfring_writer_options stamped = {
			.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_MONOTONIC, .wake_fd = -1};
		struct perf_event_attr attr = our_attr();
		struct perfring_session *session;
		struct perfring_writer *writer;
		struct perfring_ring ring;
		struct perfring_item item;
		struct perfring_span span;
		uint64_t id = OUR_ID, written = 0, read = 0, last = monotonic_ns();

		cr_assert_eq(perfring_session_open(&session, 0), 0);
		cr_assert_eq(perfring_ring_create(&ring, &options), 0);
		cr_assert_eq(perfring_writer_open(&writer, &ring, &stamped), 0);
		cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 0);
		cr_assert_eq(perfring_session_add_ring(session, &ring, -1, way & 1 ? PERFRING_READER_COPY : 0), 0);
		session->rings[0]->ring.flags &= ~(uint64_t)PERFRING_RING_OWN; /* as if it were the kernel's */
		for (unsigned round = 0; round < 200; round++) {
			while (written < read + 1 + round % 40 &&
			       (written % 5 < 2 ? write_program : write_sample)(writer, written))
				written++;
			cr_assert_geq(perfring_session_wait(session, 0), 0);
			perfring_session_flush(session);
			while (!(way & 2) && perfring_session_next(session, &item) == 1)
				look(item.record, read++, &last);
			while (way & 2 && perfring_session_next_span(session, &span) == 1) {
				static unsigned char bytes[8192];
				uint64_t at = 0;

				for (uint32_t i = 0, used = 0; i < span.count; used += (uint32_t)span.pieces[i++].iov_len)
					memcpy(bytes + used, span.pieces[i].iov_base, span.pieces[i].iov_len);
				for (uint64_t i = 0; i < span.records; i++) {
					const struct perf_event_header *record = (const void *)(bytes + at);

					look(record, read++, &last);
					at += record->size;
				}
				cr_assert_eq(at, span.size);
			}
			perfring_session_return(session);
			cr_assert_eq(read, written, "round %u", round);
		}
		cr_assert_gt(written, 1000);
		session->rings[0]->ring.flags |= PERFRING_RING_OWN;
		perfring_session_close(session);
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

Test(session_ring, rings_are_added_and_removed)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writers[2];
	struct perfring_ring rings[2], broken;
	struct perfring_totals totals;
	struct perfring_item item;
	uint64_t ids[2] = {OUR_ID, OUR_ID + 1}, zero = 0;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_ring_create(&rings[i], &options), 0);
		cr_assert_eq(perfring_writer_open(&writers[i], &rings[i], NULL), 0);
	}
	cr_assert_eq(perfring_session_describe(session, &attr, &zero, 1), -EINVAL);
	cr_assert_str_eq(perfring_session_refusal(session), "0 is no id.");
	cr_assert_eq(perfring_session_describe(session, &attr, ids, 2), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, ids + 1, 1), -EEXIST);
	attr.clockid = CLOCK_REALTIME;
	ids[0] = 5;
	cr_assert_eq(perfring_session_describe(session, &attr, ids, 1), -EINVAL);
	broken = rings[0];
	broken.flags |= PERFRING_RING_READ_ONLY;
	cr_assert_eq(perfring_session_add_ring(session, &broken, -1, 0), -EINVAL);

	cr_assert_eq(perfring_session_add_ring(session, &rings[0], -1, 0), 0);
	cr_assert_eq(perfring_session_add_ring(session, &rings[1], -1, 0), 1);
	cr_assert(!perfring_session_is_over(session));
	cr_assert(write_sample(writers[0], 1));
	cr_assert(write_sample(writers[1], 2));
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EBUSY, "seen, not handed out");
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EBUSY, "handed out, not returned");
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	cr_assert(write_sample(writers[0], 3));
	cr_assert_eq(perfring_session_remove_ring(session, 2), -EINVAL);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(perfring_session_remove_ring(session, 0), -EINVAL);
	cr_assert_eq(perfring_session_ring_totals(session, 0, &totals), -EINVAL);
	/* What was not seen stays in the ring, for the next reader. */
	cr_assert_eq(perfring_page_observe(rings[0].page) - perfring_page_reclaim(rings[0].page), 40);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 0);
	perfring_session_return(session);
	cr_assert_eq(perfring_session_add_ring(session, &rings[0], -1, 0), 0, "the free place");
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	perfring_session_totals(session, &totals);
	cr_assert_eq(totals.samples, 3);
	cr_assert_eq(totals.bytes, 120);
	perfring_session_close(session);
	/* The rings are the caller's. */
	for (int i = 0; i < 2; i++) {
		cr_assert(write_sample(writers[i], 4));
		perfring_writer_close(writers[i]);
		perfring_ring_close(&rings[i]);
	}
}

static void *write_later(void *of)
{
	usleep(50000);
	for (uint64_t i = 0; i < 30; i++)
		write_sample(of, i);
	return NULL;
}

Test(session_ring, rings_that_were_added_end_a_wait)
{
	/* 2048 bytes are the watermark: 51 of our 40-byte samples are below it. */
	struct perfring_ring_options options = {.pages = 1};
	struct perfring_writer_options with = {.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writers[2];
	struct perfring_ring rings[2];
	struct pollfd polled;
	uint64_t id = OUR_ID;
	int64_t began;
	pthread_t thread;

	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_ring_create(&rings[i], &options), 0);
		cr_assert_eq(perfring_writer_open(&writers[i], &rings[i], &with), 0);
		cr_assert_eq(perfring_session_add_ring(session, &rings[i], with.wake_fd, 0), i);
	}
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 100), 0, "nothing is there");
	cr_assert_geq(milliseconds() - began, 80);
	/* 30 below the watermark; the thread writes 30 more. */
	for (uint64_t i = 0; i < 30; i++)
		cr_assert(write_sample(writers[1], i));
	cr_assert_eq(perfring_wakeup_poll(&rings[1]), 0);
	cr_assert_eq(pthread_create(&thread, NULL, write_later, writers[1]), 0);
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert_lt(milliseconds() - began, 10000);
	pthread_join(thread, NULL);
	/* Told once: no second wait ends by it. (The records are held back, so the wait is short.) */
	cr_assert_eq(perfring_session_wait(session, 20000), 0);

	/* A crossing before the wait ends it at once. */
	for (uint64_t i = 0; i < 52; i++)
		cr_assert(write_sample(writers[0], i));
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert_lt(milliseconds() - began, 10000);
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);

	/* An event loop of one's own: armed by a wait with 0. */
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	polled = (struct pollfd){.fd = perfring_session_fd(session), .events = POLLIN};
	cr_assert_eq(poll(&polled, 1, 0), 0);
	for (uint64_t i = 0; i < 60; i++)
		cr_assert(write_sample(writers[0], i));
	cr_assert_eq(poll(&polled, 1, 0), 1);
	cr_assert_eq(perfring_session_wait(session, 0), 1);
	cr_assert_eq(poll(&polled, 1, 0), 0);

	/* Shared by two, gone with the last. */
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	for (uint64_t i = 0; i < 60; i++)
		cr_assert(write_sample(writers[1], i));
	cr_assert_eq(poll(&polled, 1, 0), 1);
	perfring_session_flush(session);
	for (struct perfring_item item; perfring_session_next(session, &item) == 1;)
		;
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 1), 0);
	cr_assert_eq(perfring_session_add_ring(session, &rings[1], with.wake_fd, 0), 0);
	perfring_session_close(session);
	for (int i = 0; i < 2; i++) {
		perfring_writer_close(writers[i]);
		perfring_ring_close(&rings[i]);
	}
	close(with.wake_fd);
}

/* An fd that hangs up wakes no more: its ring is looked at now and then, as one without. */
Test(session_ring, a_ring_whose_fd_has_hung_up_is_silent)
{
	struct perfring_ring_options options = {.pages = 1};
	struct perf_event_attr attr = our_attr();
	struct perfring_session *session;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	struct perfring_item item;
	uint64_t id = OUR_ID;
	int64_t began;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	cr_assert_eq(perfring_session_describe(session, &attr, &id, 1), 0);
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	cr_assert_eq(perfring_session_add_ring(session, &ring, ends[0], 0), 0);
	close(ends[1]);
	cr_assert_eq(perfring_session_wait(session, 20000), 1);
	cr_assert(write_sample(writer, 1));
	began = milliseconds();
	cr_assert_eq(perfring_session_wait(session, 20000), 0);
	cr_assert_lt(milliseconds() - began, 10000);
	perfring_session_flush(session);
	cr_assert_eq(perfring_session_next(session, &item), 1);
	perfring_session_return(session);
	cr_assert_eq(perfring_session_remove_ring(session, 0), 0);
	perfring_session_close(session);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	close(ends[0]);
}
