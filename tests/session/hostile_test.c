/* hostile_test.c - a session beside a process that shares its ring and changes what it has published: the records'
 * headers at the moment after they were looked at, and everything at any moment. */
#include "sanitizers.h"
#include "test.h"

#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static void strike(const char *name);

#define PERFRING_POINT(name) strike(#name)
#include "session/session_order.c"

TestSuite(hostile, .timeout = 120);

enum {
	PAGE = 4096,
	RECORD = 64,
	FIRST_ID = 100,
};

/* ---- a ring with nothing readable after its last byte ---- */

struct hostile {
	struct perfring_session *session;
	struct perfring_ring ring;
	unsigned char *memory;
	size_t mapped;
	uint64_t head;
	uint64_t written;
};

static void hostile_open(struct hostile *hostile, uint32_t pages, uint32_t flags)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.sample_id_all = 1,
	};
	size_t size = (1 + (size_t)pages) * PAGE;

	memset(hostile, 0, sizeof(*hostile));
	hostile->mapped = size + 32 * PAGE;
	hostile->memory = mmap(NULL, hostile->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(hostile->memory, MAP_FAILED);
	cr_assert_eq(mprotect(hostile->memory, size, PROT_READ | PROT_WRITE), 0);
	cr_assert_eq(perfring_ring_wrap(&hostile->ring, hostile->memory, size), 0);
	cr_assert_eq(perfring_session_open(&hostile->session, 0), 0);
	for (uint64_t id = FIRST_ID; id < FIRST_ID + 2; id++)
		cr_assert_geq(perfring_session_describe(hostile->session, &attr, &id, 1), 0);
	cr_assert_eq(perfring_session_add_ring(hostile->session, &hostile->ring, -1, flags), 0);
}

static void hostile_close(struct hostile *hostile)
{
	perfring_session_close(hostile->session);
	munmap(hostile->memory, hostile->mapped);
}

static _Atomic uint64_t *word_in(const struct hostile *hostile, uint64_t position)
{
	return (_Atomic uint64_t *)(void *)(hostile->ring.data + (position & (hostile->ring.size - 1)));
}

static uint64_t header_of(uint32_t type, uint16_t size)
{
	struct perf_event_header header = {type, 0, size};
	uint64_t word;

	memcpy(&word, &header, sizeof(word));
	return word;
}

/* Record number n: a SAMPLE, or a COMM with its trailer, of one of two events; its time is n + 1. */
static uint64_t word_of(uint64_t n, uint32_t i)
{
	bool is_sample = n % 3;

	if (i == 0)
		return header_of(is_sample ? PERF_RECORD_SAMPLE : PERF_RECORD_COMM, RECORD);
	if (is_sample)
		return i == 1 ? FIRST_ID + n % 2 : i == 2 ? n + 1 : n * 8 + i;
	return i == RECORD / 8 - 2 ? n + 1 : i == RECORD / 8 - 1 ? FIRST_ID + n % 2 : n * 8 + i;
}

/* Whether there was space. */
static bool hostile_write(struct hostile *hostile)
{
	uint64_t n = hostile->written;

	if (hostile->head + RECORD - perfring_page_reclaim(hostile->ring.page) > hostile->ring.size)
		return false;
	for (uint32_t i = 0; i < RECORD / 8; i++)
		atomic_store_explicit(word_in(hostile, hostile->head + 8 * i), word_of(n, i), memory_order_relaxed);
	hostile->head += RECORD;
	hostile->written++;
	perfring_page_publish(hostile->ring.page, hostile->head);
	return true;
}

/* ---- at the moment after the look ---- */

static struct {
	struct hostile *at; /* NULL: no strike */
	const char *point;
	uint64_t header;
} struck;

static void strike(const char *name)
{
	const struct hostile *hostile = struck.at;

	if (!hostile || strcmp(name, struck.point) != 0)
		return;
	atomic_store_explicit(word_in(hostile, hostile->session->rings[0]->reader.position), struck.header,
			      memory_order_relaxed);
}

static void check_record(const struct hostile *hostile, const struct perf_event_header *record, uint64_t n, bool copied)
{
	uint64_t words[RECORD / 8];

	if (!copied)
		return;
	cr_assert((const unsigned char *)record < hostile->memory ||
		  (const unsigned char *)record >= hostile->memory + hostile->mapped);
	memcpy(words, record, sizeof(words));
	for (uint32_t i = 0; i < RECORD / 8; i++)
		cr_assert_eq(words[i], word_of(n, i), "record %lu, word %u: %lx", (unsigned long)n, i,
			     (unsigned long)words[i]);
}

/* The records of some laps as items; then as spans. */
static void read_struck(const char *point, uint64_t header, uint32_t flags)
{
	struct perfring_item item;
	struct perfring_span span;
	struct hostile hostile;
	uint64_t n = 0, lap;

	hostile_open(&hostile, 1, flags);
	lap = hostile.ring.size / RECORD;
	struck.header = header;
	struck.point = point;
	/* 5 of 8 of a lap: the end of the ring is met at different places. */
	while (n < 4 * lap) {
		for (uint64_t i = 0; i < lap * 5 / 8; i++)
			cr_assert(hostile_write(&hostile));
		perfring_session_wait(hostile.session, 0);
		perfring_session_flush(hostile.session);
		struck.at = &hostile;
		while (perfring_session_next(hostile.session, &item) == 1) {
			cr_assert_eq(item.time, n + 1, "%lu, not %lu", (unsigned long)item.time, (unsigned long)n + 1);
			cr_assert_not_null(item.format);
			cr_assert_eq(item.format->index, n % 2);
			check_record(&hostile, item.record, n, flags);
			n++;
		}
		struck.at = NULL;
		cr_assert_eq(n, hostile.written);
		perfring_session_return(hostile.session);
	}
	while (n < 8 * lap) {
		for (uint64_t i = 0; i < lap * 5 / 8; i++)
			cr_assert(hostile_write(&hostile));
		perfring_session_wait(hostile.session, 0);
		struck.at = &hostile;
		while (perfring_session_next_span(hostile.session, &span) == 1) {
			cr_assert_eq(span.size, span.records * RECORD);
			for (uint32_t i = 0; i < span.count; i++)
				for (size_t at = 0; at < span.pieces[i].iov_len; at += RECORD)
					check_record(&hostile, (const void *)((char *)span.pieces[i].iov_base + at),
						     n++, flags);
		}
		struck.at = NULL;
		cr_assert_eq(n, hostile.written);
		perfring_session_return(hostile.session);
	}
	hostile_close(&hostile);
}

static const uint64_t SIZES[] = {0, 8, 16, 1 << 15, 65528, 65535};

Test(hostile, a_header_that_changes_after_the_look)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++)
		for (uint32_t type = 0; type < 70; type += 3)
			for (int flags = 0; flags <= PERFRING_READER_COPY; flags++) {
				uint64_t header = header_of(type, (uint16_t)SIZES[i]);

				read_struck("reader_taken", header, (uint32_t)flags);
				read_struck("session_peeked", header, (uint32_t)flags);
			}
}

/* ---- at any moment ---- */

struct vandal {
	const struct hostile *hostile;
	bool only_sizes;
	_Atomic bool stop;
	uint64_t writes;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Sizes of records flip to and fro; or any word, and sometimes data_head. */
static void *vandalise(void *of)
{
	struct vandal *vandal = of;
	struct perf_event_mmap_page *page = vandal->hostile->ring.page;
	uint64_t state = 88172645463325252u, size = vandal->hostile->ring.size;

	while (!atomic_load_explicit(&vandal->stop, memory_order_relaxed)) {
		uint64_t at = next_random(&state) % size & ~UINT64_C(7), word = next_random(&state);

		if (vandal->only_sizes) {
			at &= ~(uint64_t)(RECORD - 1);
			word = header_of(PERF_RECORD_COMM, (uint16_t)(word & 1 ? RECORD : 65528));
		} else if (word % 3 == 0) {
			word = header_of((uint32_t)(word >> 8 & 127), (uint16_t)(word >> 20 & 0xfff8));
		}
		atomic_store_explicit(word_in(vandal->hostile, at), word, memory_order_relaxed);
		if (!vandal->only_sizes && state % 1024 == 0)
			PERFRING_STORE(&page->data_head, state & 1024 ? state : PERFRING_LOAD(&page->data_tail) + 8);
		vandal->writes++;
	}
	return NULL;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void use_item(const struct perfring_item *item, const struct hostile *hostile)
{
	const unsigned char *at = (const unsigned char *)item->record;
	struct perfring_sample sample;

	cr_assert(at < hostile->memory || at >= hostile->memory + hostile->mapped, "it lies in the ring");
	cr_assert_geq(item->record->size, sizeof(*item->record));
	if (item->format && item->record->type == PERF_RECORD_SAMPLE)
		perfring_sample_decode_any(item->format, item->record, &sample, NULL);
	/* Each word that the header promises is there. */
	for (uint32_t i = 0; i < item->record->size; i += 8)
		(void)*(const volatile unsigned char *)(at + i);
}

static void use_span(const struct perfring_span *span)
{
	uint64_t records = 0, size = 0;

	for (uint32_t i = 0; i < span->count; i++)
		for (size_t at = 0; at < span->pieces[i].iov_len; records++) {
			struct perf_event_header header;

			memcpy(&header, (char *)span->pieces[i].iov_base + at, sizeof(header));
			cr_assert_geq(header.size, sizeof(header));
			cr_assert_leq(at + header.size, span->pieces[i].iov_len, "it ends between records");
			at += header.size;
			size += header.size;
		}
	cr_assert_eq(size, span->size);
	cr_assert_eq(records, span->records);
}

/* Returns how many records came out, of a second of reading. */
static uint64_t read_vandalised(uint32_t pages, bool only_sizes, uint32_t flags, bool spans)
{
	struct perfring_item item;
	struct perfring_span span;
	struct hostile hostile;
	struct vandal vandal = {&hostile, only_sizes, false, 0};
	uint64_t records = 0, rounds = 0;
	double end = seconds_now() + 1;
	pthread_t thread;

	hostile_open(&hostile, pages, flags);
	cr_assert_eq(pthread_create(&thread, NULL, vandalise, &vandal), 0);
	for (; seconds_now() < end || rounds < 10; rounds++) {
		int ret = 0;

		hostile.head = PERFRING_LOAD(&hostile.ring.page->data_tail);
		while (hostile_write(&hostile))
			;
		perfring_session_wait(hostile.session, 0);
		if (rounds % 2)
			perfring_session_flush(hostile.session);
		if (spans)
			while ((ret = perfring_session_next_span(hostile.session, &span)) == 1 || ret == -EBADMSG) {
				if (ret == 1)
					records += span.records;
				if (ret == 1 && flags)
					use_span(&span);
			}
		else
			while ((ret = perfring_session_next(hostile.session, &item)) == 1 || ret == -EBADMSG) {
				records += ret == 1;
				if (ret == 1 && flags)
					use_item(&item, &hostile);
			}
		cr_assert_eq(ret, 0);
		perfring_session_return(hostile.session);
	}
	atomic_store(&vandal.stop, true);
	pthread_join(thread, NULL);
	hostile_close(&hostile);
	cr_assert_gt(vandal.writes, 0);
	return records;
}

Test(hostile, sizes_that_flip)
{
	for (int spans = 0; spans < 2; spans++)
		for (uint32_t flags = 0; flags <= PERFRING_READER_COPY; flags++)
			cr_assert_gt(read_vandalised(1, true, flags, spans), 0);
}

/* Without COPY the words that a session reads of what another process writes are what this sanitizer is to tell. */
#define TRUSTS (!IS_THREAD_SANITIZED)

Test(hostile, all_that_can_be_written)
{
	for (int spans = 0; spans < 2; spans++)
		for (uint32_t flags = TRUSTS ? 0 : PERFRING_READER_COPY; flags <= PERFRING_READER_COPY; flags++)
			cr_assert_gt(read_vandalised(1u << (2 * spans), false, flags, spans), 0);
}
