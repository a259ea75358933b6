/* neighbour_test.c - rings shared with a process that writes anything into them: wild records, positions, states and marks, before
 * and while they are read by a reader, a session, a snapshot, or written by a shared writer.
 *
 * Each run is drawn from its number, so that one that fails can be run again: PERFRING_NEIGHBOUR=N is run N alone.
 * PERFRING_PROVE=1 makes 10 000 runs of each kind instead of some hundred.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <perfring/reader.h>
#include <perfring/sample.h>
#include <perfring/session.h>
#include <perfring/shared.h>
#include <perfring/snapshot.h>
#include <perfring/writer.h>

#include "rb/shared_private.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(neighbour, .timeout = 3600);

enum {
	RUNS = 300,
	RUNS_ALL = 10000,
	PAGE = 4096,
	PAGES_MOST = 8,
	ROUNDS = 8,
	FIRST_ID = 100,
	HONEST_ID = 0x5eed1e57,                        /* that no neighbour writes */
	GROWTH_MOST = (IS_SANITIZED ? 400 : 32) << 10, /* KiB: a sanitizer keeps what was freed */
};

/* ---- what is drawn ---- */

static uint64_t drawn;

static uint64_t draw(void)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return drawn;
}

static uint64_t below(uint64_t limit)
{
	return draw() % limit;
}

/* Small, near a limit, near `near`, or anything. */
static uint64_t draw_word(uint64_t near)
{
	switch (below(8)) {
	case 0:
		return below(64);
	case 1:
		return UINT64_MAX - below(64);
	case 2:
		return UINT64_C(1) << below(64);
	case 3:
		return near + below(64);
	case 4:
		return near - below(64);
	case 5:
		return near + 8 * below(1024);
	case 6:
		return near - 8 * below(1024);
	default:
		return draw();
	}
}

static uint64_t draw_header(void)
{
	static const uint16_t sizes[] = {0, 1, 7, 8, 12, 16, 40, 64, 4096, 65528, 65535};
	struct perf_event_header header = {(uint32_t)below(90), (uint16_t)(below(4) ? 0 : draw()),
					   sizes[below(sizeof(sizes) / sizeof(*sizes))]};
	uint64_t word;

	if (below(6) == 0)
		header = (struct perf_event_header){below(2) ? PERFRING_FILLER_TYPE : PERF_RECORD_LOST,
						    PERFRING_FILLER_MISC, (uint16_t)(8 * below(9000))};
	memcpy(&word, &header, sizeof(word));
	return word;
}

/* ---- a ring, and what its neighbour may write ---- */

/* Where its tables are, as it was made. */
struct marks {
	uint64_t marks, marks_size, owners;
	uint32_t owner_count;
};

struct rig {
	struct perfring_ring ring;
	unsigned char *guarded; /* of a ring over memory with nothing behind it */
	size_t guarded_size;
	unsigned char *file; /* all of a memfd */
	size_t file_size;
	struct marks marks;
	uint64_t head;
	uint64_t records;
	uint64_t id; /* 0: of one of two events */
	_Atomic bool stop;
	uint64_t seed; /* the thread's */
};

static uint64_t *word_at(const struct rig *rig, uint64_t position)
{
	return (uint64_t *)(void *)(rig->ring.data + (position & (rig->ring.size - 1) & ~UINT64_C(7)));
}

static void open_rig_over(struct rig *rig)
{
	size_t size = (1 + ((size_t)1 << below(4))) * PAGE;

	memset(rig, 0, sizeof(*rig));
	rig->guarded_size = size + 20 * PAGE;
	rig->guarded = mmap(NULL, rig->guarded_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(rig->guarded != MAP_FAILED);
	cr_assert_eq(mprotect(rig->guarded, size, PROT_READ | PROT_WRITE), 0);
	cr_assert_eq(perfring_ring_wrap(&rig->ring, rig->guarded, size), 0);
}

static void open_rig_own(struct rig *rig, uint32_t flags)
{
	struct perfring_ring_options options = {.pages = 1u << below(4), .flags = flags, .owners = 8};
	const struct perfring_ring_state *state;
	struct stat status;

	memset(rig, 0, sizeof(*rig));
	if (flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED) && options.pages < 2)
		options.pages = 2;
	cr_assert_eq(perfring_ring_create(&rig->ring, &options), 0);
	cr_assert_eq(fstat(rig->ring.fd, &status), 0);
	rig->file_size = (size_t)status.st_size;
	rig->file = mmap(NULL, rig->file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig->ring.fd, 0);
	cr_assert(rig->file != MAP_FAILED);
	state = perfring_ring_state_of(rig->ring.page);
	rig->marks = (struct marks){state->marks_offset, state->marks_size, state->owners_offset, state->owners};
}

static void close_rig(struct rig *rig)
{
	if (rig->guarded)
		munmap(rig->guarded, rig->guarded_size);
	if (rig->file) {
		munmap(rig->file, rig->file_size);
		perfring_ring_close(&rig->ring);
	}
}

/* Samples of two events, as long as there is space, from where the ring stands. */
static void fill(struct rig *rig)
{
	uint64_t most = below(2) ? rig->ring.size : below(rig->ring.size);

	rig->head = PERFRING_LOAD(&rig->ring.page->data_tail) & ~UINT64_C(7);
	rig->records = 0;
	for (uint64_t used = 0, size; (size = 32 + 8 * below(20)) <= most - used; used += size) {
		struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, (uint16_t)size};

		memcpy(word_at(rig, rig->head), &header, sizeof(header));
		for (uint64_t at = 8; at < size; at += 8)
			*word_at(rig, rig->head + at) = at == 8 ? rig->id ? rig->id : FIRST_ID + below(2) : at;
		rig->head += size;
		rig->records++;
	}
	perfring_page_publish(rig->ring.page, rig->head);
}

/* One wild write. */
static void damage(const struct rig *rig)
{
	const struct marks *marks = &rig->marks;
	struct perf_event_mmap_page *page = rig->ring.page;
	struct perfring_ring_state *state = perfring_ring_state_of(page);
	uint64_t head = PERFRING_LOAD(&page->data_head), tail = PERFRING_LOAD(&page->data_tail), at;
	bool is_own = rig->file != NULL;

	switch (below(is_own ? 9 : 6)) {
	case 0:
	case 1:
		PERFRING_STORE((perfring_ring_word *)word_at(rig, draw()), draw_header());
		break;
	case 2:
		PERFRING_STORE((perfring_ring_word *)word_at(rig, draw()), draw_word(head));
		break;
	case 3:
		PERFRING_STORE(&page->data_head, draw_word(head));
		break;
	case 4:
		PERFRING_STORE(&page->data_tail, draw_word(tail));
		break;
	case 5: /* what describes the ring was looked at when it was opened */
		at = below(2) ? 1024 + 8 * below(10) : 8 * below(128);
		PERFRING_STORE((perfring_ring_word *)(void *)((unsigned char *)page + at), draw_word(rig->ring.size));
		break;
	case 6:
		at = sizeof(state->magic) + 8 * below(sizeof(*state) / 8 - 1);
		PERFRING_STORE((perfring_ring_word *)(void *)((unsigned char *)state + at), draw_word(head));
		break;
	case 7:
		if (marks->marks_size >= 8) {
			at = marks->marks + 8 * below(marks->marks_size / 8);
			PERFRING_STORE((perfring_ring_word *)(void *)(rig->file + at), draw_word(head));
		}
		break;
	default: /* beside the mutex, which is the C library's: shared.h says what scribbling over it does */
		if (marks->owners) {
			at = offsetof(struct perfring_owner_slot, pid);
			at += 8 * below((sizeof(struct perfring_owner_slot) - at) / 8);
			at += marks->owners + sizeof(struct perfring_owner_slot) * below(marks->owner_count);
			PERFRING_STORE((perfring_ring_word *)(void *)(rig->file + at), draw_word(head));
		}
	}
}

/* The neighbour, who goes on while we read: by its own numbers. */
static void *neighbour(void *of)
{
	struct rig *rig = of;
	const struct marks marks = rig->marks;
	struct perf_event_mmap_page *page = rig->ring.page;
	uint64_t state = rig->seed | 1;

	while (!atomic_load_explicit(&rig->stop, memory_order_relaxed)) {
		uint64_t word, at, size = rig->ring.size;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		word = state % 3 ? state : (uint64_t)((state >> 20) % 90) | ((state >> 30) & 0xfff8) << 48;
		at = state >> 8;
		switch (state % 16) {
		case 0:
			PERFRING_STORE(&page->data_head,
				       state & 64 ? PERFRING_LOAD(&page->data_tail) + at % (2 * size) : word);
			break;
		case 1:
			PERFRING_STORE(&page->data_tail,
				       state & 64 ? PERFRING_LOAD(&page->data_head) - at % (2 * size) : word);
			break;
		case 2:
			if (rig->file)
				PERFRING_STORE((perfring_ring_word *)(void *)(rig->file + PERFRING_RING_STATE_AT + 128 +
									      at % 32 * 8),
					       word);
			break;
		case 3:
			if (marks.marks_size >= 8)
				PERFRING_STORE((perfring_ring_word *)(void *)(rig->file + marks.marks +
									      at % (marks.marks_size / 8) * 8),
					       word);
			break;
		case 4:
			if (marks.owners)
				PERFRING_STORE((perfring_ring_word *)(void *)(rig->file + marks.owners +
									      sizeof(struct perfring_owner_slot) *
										      (at % marks.owner_count) +
									      128 + 8 * (at % 16)),
					       word);
			break;
		default:
			PERFRING_STORE((perfring_ring_word *)word_at(rig, at), word);
		}
	}
	return NULL;
}

/* ---- what each run must keep to ---- */

static long memory_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static volatile unsigned char sink;

/* Each byte that a record's header promises can be read. */
static void use(const struct perf_event_header *record)
{
	const unsigned char *at = (const unsigned char *)record;
	unsigned size = *(const volatile uint16_t *)&record->size;

	for (unsigned i = 0; i < size; i += 8)
		sink ^= at[i];
}

static struct counts {
	uint64_t runs, handed_out, told, unharmed;
} counts;

/* All runs of one kind. */
static void run_all(const char *name, void (*run)(bool changes))
{
	const char *alone = getenv("PERFRING_NEIGHBOUR"), *proves = getenv("PERFRING_PROVE");
	uint64_t first = alone ? strtoull(alone, NULL, 10) : 0;
	uint64_t runs = alone ? first + 1 : proves && *proves ? RUNS_ALL : RUNS;
	long before;

	memset(&counts, 0, sizeof(counts));
	before = 0;
	for (uint64_t number = first; number < runs; number++) {
		double begun = cpu_seconds();

		drawn = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
		draw();
		run(number % 4 == 3);
		counts.runs++;
		cr_assert_lt(cpu_seconds() - begun, 5, "run %lu takes %.1f s", (unsigned long)number,
			     cpu_seconds() - begun);
		if (number == first + 10)
			before = memory_kib();
	}
	if (before)
		cr_assert_lt(memory_kib() - before, GROWTH_MOST, "from %ld to %ld KiB", before, memory_kib());
	fprintf(stderr, "%s: %lu runs, %lu records, %lu faults told, %lu unharmed\n", name, (unsigned long)counts.runs,
		(unsigned long)counts.handed_out, (unsigned long)counts.told, (unsigned long)counts.unharmed);
	if (!alone)
		cr_assert(counts.told && counts.handed_out && counts.unharmed);
}

static void begin_neighbour(struct rig *rig, pthread_t *thread)
{
	rig->seed = draw();
	atomic_store(&rig->stop, false);
	cr_assert_eq(pthread_create(thread, NULL, neighbour, rig), 0);
}

static void end_neighbour(struct rig *rig, pthread_t thread)
{
	atomic_store(&rig->stop, true);
	pthread_join(thread, NULL);
}

/* ---- the reader ---- */

/* What must come out of a ring that nobody changes: how many records, and whether they end at a fault. */
static bool expect(const struct rig *rig, const struct perfring_reader *reader, uint64_t *records)
{
	uint64_t head = PERFRING_LOAD(&rig->ring.page->data_head), at = reader->position;

	*records = 0;
	if (head - reader->returned > rig->ring.size || head & 7)
		return false;
	while (at != head) {
		struct perf_event_header header;

		memcpy(&header, word_at(rig, at), sizeof(header));
		if (header.size < 8 || header.size & 7 || header.size > head - at)
			return false;
		*records += !perfring_ring_is_filler(&header);
		at += header.size;
	}
	return true;
}

static void run_reader(bool changes)
{
	const struct perf_event_header *record;
	unsigned flags = changes || below(2) ? PERFRING_READER_COPY : 0;
	struct perfring_reader reader;
	pthread_t thread = 0;
	struct rig rig;

	open_rig_over(&rig);
	fill(&rig);
	if (below(4) == 0)
		PERFRING_STORE(&rig.ring.page->data_tail, draw_word(rig.head));
	cr_assert_eq(perfring_reader_open(&reader, &rig.ring, flags), 0);
	for (uint64_t i = below(4); i > 0; i--)
		damage(&rig);
	if (changes)
		begin_neighbour(&rig, &thread);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t expected = 0, records = 0;
		bool is_good = !changes && expect(&rig, &reader, &expected);
		int64_t ret = perfring_reader_observe(&reader);

		if (ret >= 0)
			while ((ret = perfring_reader_next(&reader, &record)) == 1) {
				records++;
				use(record);
				cr_assert_leq(records, rig.ring.size / 8);
			}
		counts.handed_out += records;
		if (!changes) {
			cr_assert_eq(ret, is_good ? 0 : -EBADMSG);
			cr_assert_eq(records, expected);
		}
		if (ret) {
			counts.told++;
			cr_assert_eq(ret, -EBADMSG);
			cr_assert_not_null(reader.fault.what);
			cr_assert_leq(perfring_reader_skip(&reader), rig.ring.size);
		} else {
			counts.unharmed++;
			perfring_reader_return(&reader);
		}
		/* It goes on: behind the fault there is what a writer writes next. */
		if (!changes) {
			fill(&rig);
			if (below(2))
				damage(&rig);
		}
	}
	if (changes)
		end_neighbour(&rig, thread);
	perfring_reader_close(&reader);
	close_rig(&rig);
}

Test(neighbour, reader)
{
	run_all("reader", run_reader);
}

/* ---- a session of two rings, one of which is its neighbour's ---- */

static void run_session(bool changes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
	};
	const uint64_t ids[] = {FIRST_ID, FIRST_ID + 1, HONEST_ID};
	bool spans = below(2);
	struct perfring_session *session;
	struct perfring_totals totals;
	struct perfring_sample sample;
	struct perfring_item item;
	struct perfring_span span;
	struct rig rig, honest;
	pthread_t thread = 0;
	uint64_t told = 0, good = 0, written = 0;

	open_rig_over(&rig);
	open_rig_over(&honest);
	fill(&rig);
	cr_assert_eq(perfring_session_open(&session, 0), 0);
	honest.id = HONEST_ID;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		cr_assert_eq(perfring_session_describe(session, &attr, &ids[i], 1), (int)i);
	if (below(4) == 0)
		PERFRING_STORE(&rig.ring.page->data_tail, draw_word(rig.head));
	cr_assert_eq(perfring_session_add_ring(session, &rig.ring, -1, PERFRING_READER_COPY), 0);
	cr_assert_eq(perfring_session_add_ring(session, &honest.ring, -1, PERFRING_READER_COPY), 1);
	for (uint64_t i = below(4); i > 0; i--)
		damage(&rig);
	if (changes)
		begin_neighbour(&rig, &thread);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t records = 0;
		int ret;

		fill(&honest);
		written += honest.records;
		cr_assert_geq(perfring_session_wait(session, 0), 0);
		perfring_session_flush(session);
		for (;;) {
			ret = spans ? perfring_session_next_span(session, &span)
				    : perfring_session_next(session, &item);
			if (ret == -EBADMSG) {
				uint32_t ring = 7;

				cr_assert_not_null(perfring_session_fault(session, &ring).what);
				cr_assert_eq(ring, 0);
				told++;
				cr_assert_leq(told, ROUNDS * 4);
				continue;
			}
			if (ret != 1)
				break;
			cr_assert_leq(++records, (rig.ring.size + honest.ring.size) / 8);
			if (spans) {
				for (uint32_t i = 0; i < span.count; i++)
					for (size_t at = 0; at < span.pieces[i].iov_len;) {
						const struct perf_event_header *record =
							(const void *)((char *)span.pieces[i].iov_base + at);

						cr_assert_geq(record->size, 8);
						cr_assert_leq(at + record->size, span.pieces[i].iov_len);
						use(record);
						at += record->size;
					}
				good += span.ring == 1 ? span.records : 0;
				counts.handed_out += span.records;
			} else {
				use(item.record);
				if (item.format && item.record->type == PERF_RECORD_SAMPLE)
					perfring_sample_decode_any(item.format, item.record, &sample, NULL);
				good += item.format && item.format->index == 2;
				counts.handed_out++;
			}
		}
		cr_assert_eq(ret, 0);
		perfring_session_return(session);
		if (!changes) {
			fill(&rig);
			if (below(2))
				damage(&rig);
		}
	}
	if (changes)
		end_neighbour(&rig, thread);
	perfring_session_totals(session, &totals);
	cr_assert_eq(good, written, "of its honest neighbour %lu of %lu came", (unsigned long)good,
		     (unsigned long)written);
	counts.told += told;
	counts.unharmed += !told;
	cr_assert(!told == !totals.corrupt, "%lu faults told, %lu counted", (unsigned long)told,
		  (unsigned long)totals.corrupt);
	perfring_session_close(session);
	close_rig(&rig);
	close_rig(&honest);
}

Test(neighbour, session)
{
	run_all("session", run_session);
}

/* ---- a snapshot ---- */

static void use_snapshot(struct perfring_snapshot *snapshot, uint64_t size)
{
	const struct perf_event_header *record;
	uint64_t records = 0, position = snapshot->claimed, last = UINT64_MAX, left;

	while (perfring_snapshot_next(snapshot, &record) == 1) {
		cr_assert_leq(++records, size / 8);
		cr_assert_geq(record->size, 8);
		cr_assert((const unsigned char *)record >= snapshot->data &&
			  (const unsigned char *)record + record->size <= snapshot->data + size);
		use(record);
	}
	counts.handed_out += records;
	cr_assert_eq(records, snapshot->count);
	for (records = 0; perfring_snapshot_previous(snapshot, &record) == 1; records++)
		cr_assert_lt(records, snapshot->count);
	cr_assert_eq(records, snapshot->count);
	for (records = 0; perfring_snapshot_unfinished(snapshot, &position, &record, &left) == 1; records++) {
		cr_assert_leq(records, size / 8);
		cr_assert(position != last);
		last = position;
		cr_assert_leq(left, size);
		if (record) {
			cr_assert((const unsigned char *)record >= snapshot->data &&
				  (const unsigned char *)record + left <= snapshot->data + size);
			use(record);
		}
	}
}

static void run_snapshot(bool changes)
{
	static const uint32_t kinds[] = {PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE, PERFRING_RING_BACKWARD, 0,
					 PERFRING_RING_STRICT, PERFRING_RING_LEASED};
	uint32_t flags = kinds[below(5)];
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_claim claim;
	pthread_t thread = 0;
	struct rig rig;

	open_rig_own(&rig, flags);
	if (!(flags & (PERFRING_RING_STRICT | PERFRING_RING_LEASED))) {
		cr_assert_eq(perfring_writer_open(&writer, &rig.ring, NULL), 0);
		for (uint64_t i = below(400); i > 0; i--) {
			struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, (uint16_t)(16 + 8 * below(20))};
			void *buffer = perfring_writer_reserve(writer, NULL, header.size, &claim);

			if (!buffer)
				continue;
			memset(buffer, 0x55, header.size);
			memcpy(buffer, &header, sizeof(header));
			perfring_writer_commit(writer, &claim);
		}
		perfring_writer_close(writer);
	} else {
		fill(&rig);
	}
	for (uint64_t i = below(5); i > 0; i--)
		damage(&rig);
	if (changes)
		begin_neighbour(&rig, &thread);
	for (unsigned round = 0; round < 3; round++) {
		int ret = perfring_snapshot_take(&snapshot, &rig.ring, 4);

		cr_assert(ret == 0 || ret == -EBADMSG || ret == -EAGAIN || ret == -EINVAL, "%d", ret);
		if (ret == 0) {
			use_snapshot(&snapshot, rig.ring.size);
			counts.told += snapshot.fault.what != NULL;
			counts.unharmed += snapshot.fault.what == NULL;
		} else {
			counts.told++;
			if (ret == -EBADMSG)
				cr_assert_not_null(snapshot.fault.what);
		}
		perfring_snapshot_close(&snapshot);
	}
	if (changes)
		end_neighbour(&rig, thread);
	close_rig(&rig);
}

Test(neighbour, snapshot)
{
	run_all("snapshot", run_snapshot);
}

/* ---- a shared writer, that of another mapping; and who attaches ---- */

static void write_shared(struct perfring_shared *shared)
{
	struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, 0};
	struct perfring_claim claim;

	for (unsigned i = 0; i < 60; i++) {
		unsigned char *buffer;

		header.size = (uint16_t)(16 + 8 * below(20));
		buffer = perfring_shared_reserve(shared, NULL, header.size, &claim);
		if (!buffer) {
			counts.told++;
			continue;
		}
		counts.handed_out++;
		memset(buffer, 0x55, header.size);
		memcpy(buffer, &header, sizeof(header));
		if (below(8))
			perfring_shared_commit(shared, &claim);
		else
			perfring_shared_discard(shared, &claim);
	}
	perfring_shared_flush(shared);
}

static void run_shared(bool changes)
{
	uint32_t flags = below(2) ? PERFRING_RING_STRICT : PERFRING_RING_LEASED;
	struct perfring_shared *shared = NULL, *second = NULL;
	struct perfring_fault fault = {0, NULL};
	struct perfring_owner owner;
	struct perfring_ring other;
	pthread_t thread = 0;
	struct rig rig;
	int ret;

	open_rig_own(&rig, flags);
	if (below(2))
		cr_assert_eq(perfring_shared_open(&shared, &rig.ring, NULL), 0);
	if (shared && below(2))
		write_shared(shared);
	for (uint64_t i = below(6); i > 0; i--)
		damage(&rig);
	if (changes)
		begin_neighbour(&rig, &thread);
	ret = perfring_ring_attach(&other, rig.ring.fd, 0, &fault);
	cr_assert(ret == 0 || (ret == -EBADMSG && fault.what), "%d", ret);
	counts.told += ret != 0;
	counts.unharmed += ret == 0;
	if (ret == 0) {
		ret = perfring_shared_open(&second, &other, NULL);
		cr_assert(ret == 0 || ret == -EUSERS || ret == -EINVAL || ret == -ENOMEM, "%d", ret);
		if (ret == 0)
			write_shared(second);
		for (uint32_t i = 0; i < 2000 && perfring_shared_owner_at(&other, i, &owner) != -EINVAL; i++)
			;
		perfring_shared_lost(&other);
		perfring_shared_abandoned(&other);
	}
	if (shared) {
		write_shared(shared);
		perfring_shared_close(shared);
	}
	if (second)
		perfring_shared_close(second);
	perfring_ring_close(&other);
	if (changes)
		end_neighbour(&rig, thread);
	close_rig(&rig);
}

Test(neighbour, shared)
{
	run_all("shared", run_shared);
}

/* ---- seals ---- */

/* What others may shrink is not mapped: a touch behind its end would be SIGBUS. */
static void run_seals(bool changes)
{
	static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE};
	struct perfring_fault fault = {0, NULL};
	struct perfring_ring ring;
	int fd, chosen = 0, ret;
	size_t size;
	struct rig rig;

	(void)changes;
	open_rig_own(&rig, below(2) ? 0 : PERFRING_RING_STRICT);
	fd = memfd_create("neighbour", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_geq(fd, 0);
	size = below(4) ? rig.file_size : below(rig.file_size + 1);
	cr_assert_eq(pwrite(fd, rig.file, size, 0), (ssize_t)size);
	for (unsigned i = 0; i < sizeof(seals) / sizeof(*seals); i++)
		chosen |= below(3) ? seals[i] : 0;
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, chosen), 0);
	ret = perfring_ring_attach(&ring, fd, below(2) && !(chosen & F_SEAL_FUTURE_WRITE) ? 0 : PERFRING_RING_READ_ONLY,
				   &fault);
	if (!(chosen & F_SEAL_SHRINK) || size < rig.file_size) {
		cr_assert_eq(ret, -EBADMSG);
		cr_assert_not_null(fault.what);
		counts.told++;
	} else {
		cr_assert_eq(ret, 0);
		cr_assert_neq(ftruncate(fd, 0), 0);
		cr_assert_eq(ring.size, rig.ring.size);
		counts.handed_out++;
		counts.unharmed++;
	}
	perfring_ring_close(&ring);
	close(fd);
	close_rig(&rig);
}

Test(neighbour, seals)
{
	run_all("seals", run_seals);
}
