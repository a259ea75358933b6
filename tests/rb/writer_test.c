/* writer_test.c - writing into a ring: docs/abi.md 15's vectors, on our rings and on the kernel's by the same code; then what
 * only ours has. */
#include "test.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <perfring/reader.h>
#include <perfring/snapshot.h>
#include "clocks.h"
#include "machine.h"
#include "ring_feed.h"

TestSuite(writer, .timeout = 60);

enum {
	PAGE = 4096,
	SWITCH = 14, /* PERF_RECORD_SWITCH: a record that may have 8 bytes */
};

/* ---- looking at either ring ---- */

/* Bytes at a free-running position, joined. */
static void look(const struct feed *feed, uint64_t at, void *to, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		((unsigned char *)to)[i] = feed->data[(at + i) % feed->size];
}

static struct perf_event_header header_at(const struct feed *feed, uint64_t at)
{
	struct perf_event_header header;

	look(feed, at, &header, sizeof(header));
	return header;
}

static uint64_t word_at(const struct feed *feed, uint64_t at)
{
	uint64_t word;

	look(feed, at, &word, sizeof(word));
	return word;
}

static uint64_t head_of(const struct feed *feed)
{
	return perfring_page_observe(feed->page);
}

static void set_tail(struct feed *feed, uint64_t tail)
{
	perfring_page_return(feed->page, tail);
}

static void expect_lost(const struct feed *feed, uint64_t at, uint16_t size, uint64_t id, uint64_t lost)
{
	struct perf_event_header header = header_at(feed, at);

	cr_assert_eq(header.type, PERF_RECORD_LOST, "%u", header.type);
	cr_assert_eq(header.misc, 0);
	cr_assert_eq(header.size, size, "%u", header.size);
	cr_assert_eq(word_at(feed, at + 8), id);
	cr_assert_eq(word_at(feed, at + 16), lost, "%llu", (unsigned long long)word_at(feed, at + 16));
}

static void expect_sample(const struct feed *feed, uint64_t at, uint16_t size)
{
	struct perf_event_header header = header_at(feed, at);

	cr_assert_eq(header.type, PERF_RECORD_SAMPLE, "%u", header.type);
	cr_assert_eq(header.size, size, "%u", header.size);
}

static const unsigned char raw[65536] = {0x51, 0x52, 0x53};

/* How many of nr records of this size are taken. */
static unsigned fill(struct feed *feed, unsigned output, unsigned nr, uint64_t size)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < nr; i++)
		taken += feed_write(feed, output, raw, size);
	return taken;
}

static void open_feed(struct feed *feed, bool live, struct feed_options options)
{
	cpu_set_t set;

	/* The trailer says which CPU. */
	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	options.live = live;
	if (!options.pages)
		options.pages = 1;
	if (!options.outputs)
		options.outputs = 1;
	if (!feed_open(feed, &options)) {
		if (live)
			cr_skip_test("%s", feed->reason);
		cr_assert_fail("%s", feed->reason);
	}
	cr_assert_eq(feed->size, options.pages * PAGE);
}

#define BOTH(name) \
	static void name(bool live); \
	Test(writer, name##_ours) \
	{ \
		name(false); \
	} \
	Test(writer, name##_kernel) \
	{ \
		name(true); \
	} \
	static void name(bool live)

/* ---- docs/abi.md 15 ---- */

BOTH(space)
{
	static const struct {
		uint64_t size;
		unsigned fit;
	} vectors[] = {{24, 170}, {32, 127}, {40, 102}};
	struct feed feed;

	for (unsigned i = 0; i < 3; i++) {
		open_feed(&feed, live, (struct feed_options){0});
		cr_assert_eq(fill(&feed, 0, 200, vectors[i].size), vectors[i].fit);
		cr_assert_eq(head_of(&feed), vectors[i].fit * vectors[i].size);
		cr_assert_eq(feed_lost(&feed, 0), 200 - vectors[i].fit);
		/* Nothing has been given back: what would fit is not taken either, for LOST comes first. */
		cr_assert_eq(fill(&feed, 0, 1, 16), 0);
		feed_close(&feed);
	}
}

BOTH(lost_is_told_where_it_fits)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){0});
	cr_assert_eq(fill(&feed, 0, 200, 24), 170);
	cr_assert_eq(head_of(&feed), 4080);
	/* 24 bytes more are not enough for LOST and the record. */
	set_tail(&feed, 24);
	cr_assert_eq(fill(&feed, 0, 1, 24), 0);
	cr_assert_eq(head_of(&feed), 4080);
	cr_assert_eq(feed_lost(&feed, 0), 31);
	set_tail(&feed, 72);
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq(head_of(&feed), 4128);
	expect_lost(&feed, 4080, 24, feed.ids[0], 31);
	expect_sample(&feed, 4104, 24);
	/* Told once: and the count stays. */
	set_tail(&feed, 4128);
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq(head_of(&feed), 4152);
	expect_sample(&feed, 4128, 24);
	cr_assert_eq(feed_lost(&feed, 0), 31);
	feed_close(&feed);
}

BOTH(lost_with_a_trailer)
{
	uint32_t words[2];
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){.sample_type = FEED_TRAILER});
	cr_assert_eq(fill(&feed, 0, 110, 40), 102);
	cr_assert_eq(head_of(&feed), 4080);
	set_tail(&feed, 4080);
	cr_assert_eq(fill(&feed, 0, 1, 40), 1);
	cr_assert_eq(head_of(&feed), 4080 + 48 + 40);
	expect_lost(&feed, 4080, 48, feed.ids[0], 8);
	look(&feed, 4080 + 24, words, 8);
	cr_assert_eq(words[0], (uint32_t)getpid());
	cr_assert_eq(words[1], (uint32_t)syscall(SYS_gettid));
	look(&feed, 4080 + 32, words, 8);
	cr_assert_eq(words[0], (uint32_t)sched_getcpu());
	cr_assert_eq(word_at(&feed, 4080 + 40), feed.ids[0]);
	expect_sample(&feed, 4080 + 48, 40);
	feed_close(&feed);
}

BOTH(paused)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){0});
	cr_assert_eq(fill(&feed, 0, 2, 24), 2);
	feed_pause(&feed, true);
	cr_assert_eq(fill(&feed, 0, 7, 24), 0);
	cr_assert_eq(head_of(&feed), 48);
	cr_assert_eq(feed_lost(&feed, 0), 7);
	feed_pause(&feed, false);
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq(head_of(&feed), 96);
	expect_lost(&feed, 48, 24, feed.ids[0], 7);
	expect_sample(&feed, 72, 24);
	feed_close(&feed);
}

BOTH(pause_of_a_ring_that_overwrites)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){.backward = true, .overwrite = true});
	cr_assert_eq(fill(&feed, 0, 500, 24), 500);
	cr_assert_eq((int64_t)head_of(&feed), -12000);
	cr_assert_eq(feed_lost(&feed, 0), 0);
	feed_pause(&feed, true);
	cr_assert_eq(fill(&feed, 0, 7, 24), 0);
	cr_assert_eq((int64_t)head_of(&feed), -12000);
	/* Newest to oldest: 170 whole records (docs/abi.md 7.8). */
	for (unsigned i = 0; i < 170; i++)
		expect_sample(&feed, head_of(&feed) + 24 * i, 24);
	feed_pause(&feed, false);
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq((int64_t)head_of(&feed), -12048);
	expect_lost(&feed, head_of(&feed), 24, feed.ids[0], 7);
	expect_sample(&feed, head_of(&feed) + 24, 24);
	feed_close(&feed);
}

BOTH(backward_and_stopping)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){.backward = true});
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq((int64_t)head_of(&feed), -24);
	cr_assert_eq(fill(&feed, 0, 299, 24), 169);
	cr_assert_eq((int64_t)head_of(&feed), -4080);
	cr_assert_eq(feed_lost(&feed, 0), 130);
	cr_assert_eq(fill(&feed, 0, 1, 24), 0);
	cr_assert_eq(feed_lost(&feed, 0), 131);
	/* tail := head frees everything. */
	set_tail(&feed, head_of(&feed));
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_eq((int64_t)head_of(&feed), -4128);
	/* LOST has the lower address: it is read first. */
	expect_lost(&feed, head_of(&feed), 24, feed.ids[0], 131);
	expect_sample(&feed, head_of(&feed) + 24, 24);
	feed_close(&feed);
}

/* Only the low bits of a wrong tail count, and it is not found out (docs/abi.md 7.2). */
BOTH(wrong_tails)
{
	struct feed feed;

	/* head + 8 leaves 7 bytes: not even the smallest fits. */
	open_feed(&feed, live, (struct feed_options){0});
	cr_assert_eq(fill(&feed, 0, 171, 24), 170);
	set_tail(&feed, 4080 + 8);
	cr_assert_eq(fill(&feed, 0, 1, 16), 0);
	/* 1000000 % 4096 = 576: (576 - 4081) mod 4096 = 591 bytes: LOST and 23 more. */
	set_tail(&feed, 1000000);
	cr_assert_eq(fill(&feed, 0, 40, 24), 23);
	cr_assert_eq(head_of(&feed), 4080 + 24 + 23 * 24);
	expect_lost(&feed, 4080, 24, feed.ids[0], 2);
	cr_assert_eq(feed_lost(&feed, 0), 2 + 17);
	feed_close(&feed);
}

BOTH(two_outputs)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){.outputs = 2});
	cr_assert_eq(fill(&feed, 0, 100, 24), 100);
	cr_assert_eq(fill(&feed, 1, 75, 24), 70);
	cr_assert_eq(fill(&feed, 0, 3, 24), 0);
	cr_assert_eq(feed_lost(&feed, 0), 3);
	cr_assert_eq(feed_lost(&feed, 1), 5);
	/* The common count is told by who writes next. */
	set_tail(&feed, 4080);
	cr_assert_eq(fill(&feed, 1, 1, 24), 1);
	expect_lost(&feed, 4080, 24, feed.ids[1], 8);
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	expect_sample(&feed, 4128, 24);
	cr_assert_eq(head_of(&feed), 4152);
	/* Off the ring, and on again. */
	feed_attach(&feed, false);
	cr_assert_eq(fill(&feed, 1, 5, 24), 0);
	cr_assert_eq(feed_lost(&feed, 1), 5);
	cr_assert_eq(head_of(&feed), 4152);
	feed_attach(&feed, true);
	cr_assert_eq(fill(&feed, 1, 1, 24), 1);
	cr_assert_eq(head_of(&feed), 4176);
	feed_close(&feed);
}

/* What poll says (docs/abi.md 2.3): once for a crossing, though there are records still. */
BOTH(poll_says_it_once)
{
	struct feed feed;

	open_feed(&feed, live, (struct feed_options){.watermark = true, .wakeup = 48});
	cr_assert_not(feed_poll(&feed));
	cr_assert_eq(fill(&feed, 0, 2, 24), 2);
	cr_assert_not(feed_poll(&feed));
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert(feed_poll(&feed));
	cr_assert_not(feed_poll(&feed));
	/* The stamp moved by 48, not to where the record ends: 96 is not above 96. */
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert_not(feed_poll(&feed));
	cr_assert_eq(fill(&feed, 0, 1, 24), 1);
	cr_assert(feed_poll(&feed));
	/* Refused records wake nobody. */
	cr_assert_eq(fill(&feed, 0, 165, 24), 165);
	feed_poll(&feed);
	cr_assert_eq(fill(&feed, 0, 10, 24), 0);
	cr_assert_not(feed_poll(&feed));
	feed_close(&feed);
}

/* ---- ours alone ---- */

static void make(struct perfring_ring *ring, uint32_t pages, uint32_t flags)
{
	const struct perfring_ring_options options = {.pages = pages, .flags = flags};

	cr_assert_eq(perfring_ring_create(ring, &options), 0);
}

static struct perfring_writer *open_writer(struct perfring_ring *ring)
{
	struct perfring_writer *writer;

	cr_assert_eq(perfring_writer_open(&writer, ring, NULL), 0);
	return writer;
}

/* A record of `size` bytes whose words all say `word`. */
static void encode(void *space, uint64_t size, uint64_t word)
{
	struct perf_event_header header = {SWITCH, 0, (uint16_t)size};

	memcpy(space, &header, sizeof(header));
	for (uint64_t i = 8; i < size; i += 8)
		memcpy((unsigned char *)space + i, &word, 8);
}

static bool put(struct perfring_writer *writer, uint64_t size, uint64_t word)
{
	struct perfring_claim claim;
	void *space = perfring_writer_reserve(writer, NULL, size, &claim);

	if (!space)
		return false;
	encode(space, size, word);
	perfring_writer_commit(writer, &claim);
	return true;
}

static bool is_put(const struct perf_event_header *record, uint64_t size, uint64_t word)
{
	if (record->type != SWITCH || record->size != size)
		return false;
	for (uint64_t i = 8; i < size; i += 8)
		if (memcmp((const unsigned char *)record + i, &word, 8))
			return false;
	return true;
}

static uint64_t published(const struct perfring_ring *ring)
{
	return perfring_page_observe(ring->page);
}

/* What one of our readers and a foreign one hand out: the words of the records, in order; ~lost for LOST. */
static unsigned drain(struct perfring_ring *ring, uint64_t *words, unsigned nr)
{
	const struct perf_event_header *record;
	struct foreign *foreign = malloc(sizeof(*foreign));
	struct perfring_reader reader;
	unsigned got = 0, other = 0;
	uint64_t word;

	cr_assert_eq(foreign_open(foreign, ring->fd, (size_t)(ring->size / PAGE)), 0);
	cr_assert_eq(perfring_reader_open(&reader, ring, 0), 0);
	cr_assert_geq(perfring_reader_observe(&reader), 0);
	while (perfring_reader_next(&reader, &record) == 1) {
		cr_assert_neq(record->type, PERFRING_FILLER_TYPE);
		cr_assert_lt(got, nr);
		if (record->type == PERF_RECORD_LOST) {
			memcpy(&word, (const unsigned char *)record + 16, 8);
			words[got++] = ~word;
		} else {
			memcpy(&words[got], (const unsigned char *)record + 8, 8);
			cr_assert(is_put(record, record->size, words[got]));
			got++;
		}
	}
	while ((record = foreign_next(foreign)) != NULL) {
		memcpy(&word, (const unsigned char *)record + (record->type == PERF_RECORD_LOST ? 16 : 8), 8);
		cr_assert_lt(other, got);
		cr_assert_eq(words[other], record->type == PERF_RECORD_LOST ? ~word : word);
		other++;
	}
	cr_assert_eq(got, other);
	cr_assert_eq(reader.position, foreign->tail);
	perfring_reader_return(&reader);
	perfring_reader_close(&reader);
	foreign_close(foreign);
	free(foreign);
	return got;
}

Test(writer, sizes_that_no_record_has)
{
	static const uint64_t sizes[] = {0,
					 1,
					 4,
					 7,
					 9,
					 12,
					 20,
					 4095,
					 65529,
					 65532,
					 65535,
					 65536,
					 65544,
					 UINT64_MAX,
					 UINT64_MAX - 7,
					 1ull << 32,
					 (1ull << 61) + 8};
	const unsigned nr = sizeof(sizes) / sizeof(sizes[0]);
	struct perfring_output output = {.id = 5};
	struct perfring_claim claim;
	struct perfring_writer *writer, *other;
	struct perfring_ring ring, large;
	unsigned char before[PAGE];
	uint64_t words[4];

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert(put(writer, 24, 1));
	memset(ring.data + 24, 0xa5, PAGE - 24);
	memcpy(before, ring.data, PAGE);
	for (unsigned i = 0; i < nr; i++) {
		cr_assert_null(perfring_writer_reserve(writer, &output, sizes[i], &claim), "%llu",
			       (unsigned long long)sizes[i]);
		cr_assert_eq(output.lost, i + 1);
		cr_assert_eq(perfring_writer_lost(writer), i + 1);
	}
	/* Nor in a ring that could hold it. */
	make(&large, 64, 0);
	other = open_writer(&large);
	for (unsigned i = 0; i < nr; i++)
		cr_assert_null(perfring_writer_reserve(other, NULL, sizes[i], &claim), "%llu",
			       (unsigned long long)sizes[i]);
	cr_assert_eq(perfring_writer_lost(other), nr);
	cr_assert(put(other, 65528, 1));
	perfring_writer_close(other);
	perfring_ring_close(&large);
	/* Records, but larger than this ring can hold: it never is quite full. */
	cr_assert_null(perfring_writer_reserve(writer, &output, 4096, &claim));
	cr_assert_null(perfring_writer_reserve(writer, &output, 4104, &claim));
	cr_assert_null(perfring_writer_reserve(writer, &output, 65528, &claim));
	cr_assert_eq(output.lost, nr + 3);
	cr_assert_eq(memcmp(before, ring.data, PAGE), 0);
	cr_assert_eq(published(&ring), 24);
	cr_assert(put(writer, 24, 2));
	cr_assert_eq(drain(&ring, words, 4), 3);
	cr_assert_eq(words[0], 1);
	cr_assert_eq(words[1], ~(uint64_t)(nr + 3));
	cr_assert_eq(words[2], 2);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* What the caller encoded is no record: it counts as no sample, and is the reader's to refuse. */
Test(writer, records_that_lie)
{
	static const uint16_t sizes[] = {0, 4, 7, 48, 65528, 65535};
	struct perfring_output output = {.wakeup_events = 1};
	struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, 0};
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring;
	unsigned char *space;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		space = perfring_writer_reserve(writer, &output, 40, &claim);
		cr_assert_not_null(space);
		header.size = sizes[i];
		memcpy(space, &header, sizeof(header));
		perfring_writer_commit(writer, &claim);
		cr_assert_eq(published(&ring), 40 * (i + 1));
		cr_assert_eq(perfring_wakeup_poll(&ring), 0, "%u", sizes[i]);
	}
	space = perfring_writer_reserve(writer, &output, 40, &claim);
	header.size = 40;
	memcpy(space, &header, sizeof(header));
	perfring_writer_commit(writer, &claim);
	cr_assert_eq(perfring_wakeup_poll(&ring), POLLIN | POLLRDNORM);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, largest_sizes)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[2];

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 20; i++) { /* at every place of the ring, always in one piece */
		cr_assert(put(writer, 4088, i));
		cr_assert_not(put(writer, 8, 0));
		cr_assert_eq(drain(&ring, words, 2), 1);
		cr_assert_eq(words[0], i);
		cr_assert(put(writer, 16, 99)); /* tells the loss */
		cr_assert_eq(drain(&ring, words, 2), 2);
		cr_assert_eq(words[0], ~UINT64_C(1));
	}
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
	make(&ring, 16, 0);
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 100; i++) {
		cr_assert(put(writer, 65528, i));
		cr_assert_eq(drain(&ring, words, 2), 1);
		cr_assert_eq(words[0], i);
	}
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, what_open_refuses)
{
	static void (*const trailer)(const struct perfring_output *, void *) = feed_trailer;
	struct perfring_writer_options options = {.wake_fd = -1};
	struct perfring_writer *writer = (void *)&options;
	struct perfring_ring ring, other, over;
	static _Alignas(4096) unsigned char memory[2 * PAGE];

	make(&ring, 1, 0);
	options.output.trailer = trailer;
	options.output.trailer_size = 7;
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), -EINVAL);
	cr_assert_null(writer);
	options.output.trailer_size = 56;
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), -EINVAL);
	options.output.trailer_size = 48;
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	perfring_writer_close(writer);
	/* A mapping for snapshots. */
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_eq(perfring_writer_open(&writer, &other, NULL), -EINVAL);
	perfring_ring_close(&other);
	perfring_ring_close(&ring);
	/* Rings for shared writers. */
	make(&ring, 4, PERFRING_RING_STRICT);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), -EINVAL);
	perfring_ring_close(&ring);
	make(&ring, 4, PERFRING_RING_LEASED);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), -EINVAL);
	perfring_ring_close(&ring);
	/* No ring of ours. */
	cr_assert_eq(perfring_ring_wrap(&over, memory, sizeof(memory)), 0);
	cr_assert_eq(perfring_writer_open(&writer, &over, NULL), -EINVAL);
}

/* ---- nested, by hand: the inner one is what a handler would write ---- */

Test(writer, outermost_publishes)
{
	struct perfring_claim outer, inner;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	void *space, *within;
	uint64_t words[3];

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	space = perfring_writer_reserve(writer, NULL, 32, &outer);
	within = perfring_writer_reserve(writer, NULL, 24, &inner);
	cr_assert_eq((unsigned char *)within - (unsigned char *)space, 32);
	encode(within, 24, 2);
	perfring_writer_commit(writer, &inner);
	cr_assert_eq(published(&ring), 0);
	cr_assert(put(writer, 40, 3));
	cr_assert_eq(published(&ring), 0);
	encode(space, 32, 1);
	perfring_writer_commit(writer, &outer);
	cr_assert_eq(published(&ring), 96);
	cr_assert_eq(drain(&ring, words, 3), 3);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(words[i], i + 1);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* The inner one finds no space; its loss is told behind the outer one. */
Test(writer, nested_and_refused)
{
	struct perfring_claim outer;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[3];
	void *space;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	space = perfring_writer_reserve(writer, NULL, 4080, &outer);
	cr_assert_not(put(writer, 16, 9));
	encode(space, 4080, 1);
	cr_assert_eq(published(&ring), 0);
	perfring_writer_commit(writer, &outer);
	cr_assert_eq(published(&ring), 4080);
	cr_assert_eq(drain(&ring, words, 3), 1);
	cr_assert(put(writer, 16, 2));
	cr_assert_eq(drain(&ring, words, 3), 2);
	cr_assert_eq(words[0], ~UINT64_C(1));
	cr_assert_eq(words[1], 2);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- discarded ---- */

Test(writer, discard_without_a_trace)
{
	struct perfring_claim claim, inner;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[2];
	void *space, *again;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert(put(writer, 24, 1));
	space = perfring_writer_reserve(writer, NULL, 4000, &claim);
	cr_assert_not_null(space);
	perfring_writer_discard(writer, &claim);
	cr_assert_eq(published(&ring), 24);
	/* The space is free again, and nothing is counted. */
	again = perfring_writer_reserve(writer, NULL, 4000, &claim);
	cr_assert_eq(again, space);
	/* An inner one behind it, discarded, leaves none either. */
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 16, &inner));
	perfring_writer_discard(writer, &inner);
	encode(again, 4000, 2);
	perfring_writer_commit(writer, &claim);
	cr_assert_eq(published(&ring), 4024);
	cr_assert_eq(perfring_writer_lost(writer), 0);
	cr_assert_eq(drain(&ring, words, 2), 2);
	cr_assert_eq(words[1], 2);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, discard_under_a_nested_one)
{
	struct perfring_claim outer;
	struct perfring_writer *writer;
	struct perf_event_header header;
	struct perfring_ring ring;
	uint64_t words[3];

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 32, &outer));
	cr_assert(put(writer, 24, 2));
	perfring_writer_discard(writer, &outer);
	cr_assert_eq(published(&ring), 56);
	memcpy(&header, ring.data, sizeof(header));
	cr_assert_eq(header.type, 0);
	cr_assert_eq(header.misc, 0x5046);
	cr_assert_eq(header.size, 32);
	cr_assert_eq(perfring_writer_lost(writer), 0);
	cr_assert(put(writer, 24, 3));
	cr_assert_eq(drain(&ring, words, 3), 2);
	cr_assert_eq(words[0], 2);
	cr_assert_eq(words[1], 3);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* A ring that overwrites: the space stays, a filler; a snapshot does not hand it out. */
Test(writer, discard_in_a_ring_that_overwrites)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring;

	make(&ring, 1, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE);
	writer = open_writer(&ring);
	cr_assert(put(writer, 24, 1));
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 32, &claim));
	perfring_writer_discard(writer, &claim);
	cr_assert(put(writer, 24, 2));
	cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), 0);
	cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 1);
	cr_assert(is_put(record, 24, 1));
	cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 1);
	cr_assert(is_put(record, 24, 2));
	cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 0);
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* LOST was told in front of it, and stays. */
Test(writer, discard_behind_lost)
{
	static const uint32_t kinds[] = {0, PERFRING_RING_BACKWARD};
	struct perfring_writer *writer;
	struct perf_event_header header;
	struct perfring_claim claim;
	struct perfring_ring ring;
	uint64_t lost;

	for (unsigned kind = 0; kind < 2; kind++) {
		make(&ring, 1, kinds[kind]);
		writer = open_writer(&ring);
		cr_assert(put(writer, 4080, 1));
		cr_assert_not(put(writer, 24, 2));
		perfring_page_return(ring.page, published(&ring));
		cr_assert_not_null(perfring_writer_reserve(writer, NULL, 40, &claim));
		perfring_writer_discard(writer, &claim);
		/* In a ring that falls LOST lies in front of the space, which becomes a filler. */
		cr_assert_eq(published(&ring), kind ? -UINT64_C(4144) : 4104);
		memcpy(&header, ring.data + (kind ? published(&ring) % PAGE : 4080), 8);
		cr_assert_eq(header.type, PERF_RECORD_LOST);
		memcpy(&lost, ring.data + (kind ? published(&ring) % PAGE : 4080) + 16, 8);
		cr_assert_eq(lost, 1);
		if (kind) {
			memcpy(&header, ring.data + (published(&ring) + 24) % PAGE, 8);
			cr_assert_eq(header.type, PERFRING_FILLER_TYPE);
			cr_assert_eq(header.size, 40);
		}
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

/* Nested records take nothing of the one in the making, though the ring overwrites. */
Test(writer, nested_may_not_lap)
{
	struct perfring_writer *writer;
	struct perfring_claim outer;
	struct perfring_ring ring;
	unsigned char *space;

	make(&ring, 1, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE);
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 10; i++)
		cr_assert(put(writer, 1000, i));
	space = perfring_writer_reserve(writer, NULL, 2000, &outer);
	cr_assert_not_null(space);
	encode(space, 2000, 10);
	cr_assert(put(writer, 2000, 11));
	cr_assert_not(put(writer, 104, 12));
	cr_assert(is_put((const void *)space, 2000, 10));
	perfring_writer_commit(writer, &outer);
	cr_assert_eq(published(&ring), -UINT64_C(14000));
	cr_assert_eq(perfring_writer_lost(writer), 1);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- transactions ---- */

Test(writer, transaction)
{
	struct perfring_claim claim;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[8];
	void *space;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert(perfring_writer_begin(writer, NULL, 96, 3, &claim));
	space = perfring_writer_take(&claim, 24);
	encode(space, 24, 1);
	/* No record's sizes, and more than is left: the claim stays as it is. */
	cr_assert_null(perfring_writer_take(&claim, 0));
	cr_assert_null(perfring_writer_take(&claim, 12));
	cr_assert_null(perfring_writer_take(&claim, 80));
	encode(perfring_writer_take(&claim, 16), 16, 2);
	cr_assert_eq(published(&ring), 0);
	encode(perfring_writer_take(&claim, 56), 56, 3);
	cr_assert_null(perfring_writer_take(&claim, 8));
	cr_assert_eq(published(&ring), 0);
	perfring_writer_end(writer, &claim);
	cr_assert_eq(published(&ring), 96);
	/* What was not taken is given back. */
	cr_assert(perfring_writer_begin(writer, NULL, 1000, 5, &claim));
	encode(perfring_writer_take(&claim, 24), 24, 4);
	perfring_writer_end(writer, &claim);
	cr_assert_eq(published(&ring), 120);
	/* All of it. */
	cr_assert(perfring_writer_begin(writer, NULL, 1000, 5, &claim));
	perfring_writer_end(writer, &claim);
	cr_assert_eq(published(&ring), 120);
	/* Or skipped, where something nested lies behind it. */
	cr_assert(perfring_writer_begin(writer, NULL, 1000, 5, &claim));
	encode(perfring_writer_take(&claim, 24), 24, 5);
	cr_assert(put(writer, 16, 6));
	perfring_writer_end(writer, &claim);
	cr_assert_eq(published(&ring), 1136);
	cr_assert_eq(drain(&ring, words, 8), 6);
	for (uint64_t i = 0; i < 6; i++)
		cr_assert_eq(words[i], i + 1);
	/* Refused, it counts as all its records. */
	cr_assert_not(perfring_writer_begin(writer, NULL, 4096, 3, &claim));
	cr_assert_not(perfring_writer_begin(writer, NULL, 0, 2, &claim));
	cr_assert_not(perfring_writer_begin(writer, NULL, 12, 2, &claim));
	cr_assert_eq(perfring_writer_lost(writer), 7);
	cr_assert(perfring_writer_begin(writer, NULL, 4000, 3, &claim));
	cr_assert_not(perfring_writer_begin(writer, NULL, 1000, 4, &(struct perfring_claim){0}));
	encode(perfring_writer_take(&claim, 4000), 4000, 7);
	perfring_writer_end(writer, &claim);
	cr_assert_eq(perfring_writer_lost(writer), 11);
	cr_assert_eq(drain(&ring, words, 8), 2);
	cr_assert_eq(words[0], ~UINT64_C(7));
	cr_assert_eq(words[1], 7);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* More than a record can be, and a rest that no single filler covers. */
Test(writer, transaction_of_many_records)
{
	struct perfring_claim claim;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[8];

	make(&ring, 64, 0);
	writer = open_writer(&ring);
	for (uint64_t i = 0; i < 9; i++) {
		cr_assert(perfring_writer_begin(writer, NULL, 200000, 4, &claim));
		for (uint64_t k = 0; k < 3; k++)
			encode(perfring_writer_take(&claim, 16), 16, 10 * i + k);
		cr_assert(put(writer, 16, 10 * i + 3));
		perfring_writer_end(writer, &claim);
		cr_assert_eq(drain(&ring, words, 8), 4);
		for (uint64_t k = 0; k < 4; k++)
			cr_assert_eq(words[k], 10 * i + k);
	}
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* In a ring that falls, oldest first all the same. */
Test(writer, transaction_in_a_ring_that_falls)
{
	static const uint32_t kinds[] = {PERFRING_RING_BACKWARD, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE};
	struct perf_event_header header;
	struct perfring_claim claim;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	/* The rest is given back; in a ring that overwrites it stays, a filler. */
	static const uint64_t steps[] = {72, 120};
	uint64_t at, last, word;

	for (unsigned kind = 0; kind < 2; kind++) {
		make(&ring, 1, kinds[kind]);
		writer = open_writer(&ring);
		for (uint64_t i = 0; i < 3; i++) {
			cr_assert(perfring_writer_begin(writer, NULL, 120, 3, &claim));
			for (uint64_t k = 0; k < 3; k++)
				encode(perfring_writer_take(&claim, 24), 24, 3 * i + k);
			cr_assert_eq(published(&ring), -(steps[kind] * i));
			perfring_writer_end(writer, &claim);
			cr_assert_eq(published(&ring), -(steps[kind] * (i + 1)));
		}
		last = 9;
		for (at = published(&ring); at != 0; at += header.size) {
			memcpy(&header, ring.data + at % PAGE, 8);
			if (header.type == PERFRING_FILLER_TYPE && header.misc == PERFRING_FILLER_MISC)
				continue;
			memcpy(&word, ring.data + at % PAGE + 8, 8);
			cr_assert_eq(word, --last);
		}
		cr_assert_eq(last, 0);
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

/* Its samples count one by one, and what was not taken is none. */
Test(writer, transaction_of_samples)
{
	static const uint32_t kinds[] = {0, PERFRING_RING_BACKWARD, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE};
	const struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, 16};
	struct perfring_output output = {.wakeup_events = 3};
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring;

	for (unsigned kind = 0; kind < 3; kind++) {
		make(&ring, 1, kinds[kind]);
		memset(ring.data, 0, PAGE);
		writer = open_writer(&ring);
		for (unsigned i = 0; i < 6; i++) {
			cr_assert(perfring_writer_begin(writer, &output, 80, 5, &claim));
			for (unsigned k = 0; k < 2; k++)
				memcpy(perfring_writer_take(&claim, 16), &header, sizeof(header));
			perfring_writer_end(writer, &claim);
			/* 2, 4: 1, 3: 0, and once more. */
			cr_assert_eq(perfring_wakeup_poll(&ring) != 0, i % 3 != 0, "%u, %u", kind, i);
		}
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

/* ---- waiting ---- */

struct late {
	struct perfring_ring *ring;
	uint64_t seen; /* data_head when it looked */
};

static void *return_late(void *argument)
{
	struct late *late = argument;
	struct timespec nap = {0, 30000000};

	nanosleep(&nap, NULL);
	late->seen = perfring_page_observe(late->ring->page);
	perfring_page_return(late->ring->page, late->seen);
	return NULL;
}

Test(writer, wait_for_the_reader)
{
	struct perfring_writer_options options = {
		.policy = PERFRING_WRITER_WAIT, .wait_ns = UINT64_C(20000000000), .wake_fd = -1};
	struct perfring_writer *writer;
	struct perfring_claim outer;
	struct perfring_ring ring;
	struct late late = {&ring, 0};
	pthread_t thread;
	uint64_t begun;

	make(&ring, 1, 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	for (uint64_t i = 0; i < 170; i++)
		cr_assert(put(writer, 24, i));
	begun = now_of(CLOCK_MONOTONIC);
	cr_assert_eq(pthread_create(&thread, NULL, return_late, &late), 0);
	cr_assert(put(writer, 24, 170));
	cr_assert_geq(now_of(CLOCK_MONOTONIC) - begun, 29000000u);
	pthread_join(thread, NULL);
	cr_assert_eq(late.seen, 4080);
	/* It was not full for the reader, so nothing is lost. */
	cr_assert_eq(perfring_writer_lost(writer), 0);
	cr_assert_eq(published(&ring), 4104);
	/* Nested in a record it would wait for itself. */
	for (uint64_t i = 0; i < 168; i++)
		cr_assert(put(writer, 24, i));
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 24, &outer));
	begun = now_of(CLOCK_MONOTONIC);
	cr_assert_not(put(writer, 24, 0));
	cr_assert_lt(now_of(CLOCK_MONOTONIC) - begun, 10000000000u);
	cr_assert_eq(perfring_writer_lost(writer), 1);
	perfring_writer_discard(writer, &outer);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, wait_no_longer_than_stated)
{
	struct perfring_writer_options options = {.policy = PERFRING_WRITER_WAIT, .wait_ns = 40000000, .wake_fd = -1};
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t begun, took, least;

	for (unsigned i = 0; i < 2; i++) {
		make(&ring, 1, i ? PERFRING_RING_BACKWARD : 0);
		cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
		cr_assert(put(writer, 4080, 0));
		begun = now_of(CLOCK_MONOTONIC);
		cr_assert_not(put(writer, 24, 0));
		took = now_of(CLOCK_MONOTONIC) - begun;
		cr_assert_geq(took, 40000000u);
		cr_assert_lt(took, 2000000000u);
		cr_assert_eq(perfring_writer_lost(writer), 1);
		/* What can never fit is not waited for.  A thread that others keep from running takes long once, not each time. */
		least = UINT64_MAX;
		for (unsigned n = 0; n < 5; n++) {
			begun = now_of(CLOCK_MONOTONIC);
			cr_assert_not(put(writer, 8192, 0));
			took = now_of(CLOCK_MONOTONIC) - begun;
			least = took < least ? took : least;
		}
		cr_assert_lt(least, 39000000u);
		cr_assert_eq(perfring_writer_lost(writer), 6);
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

/* ---- stamps ---- */

Test(writer, stamps_of_a_clock)
{
	struct perfring_writer_options options = {
		.stamp = PERFRING_STAMP_CLOCK, .clockid = CLOCK_BOOTTIME, .wake_fd = -1};
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring;
	uint64_t before, stamp;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert_eq(perfring_writer_stamp(writer, NULL), 0);
	perfring_writer_close(writer);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 64, &claim));
	before = now_of(CLOCK_BOOTTIME);
	stamp = perfring_writer_stamp(writer, &claim);
	cr_assert_geq(stamp, before);
	cr_assert_leq(stamp, now_of(CLOCK_BOOTTIME));
	perfring_writer_discard(writer, &claim);
	perfring_writer_close(writer);
	/* One time for a transaction's records. */
	options.stamp = PERFRING_STAMP_TRANSACTION;
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	before = now_of(CLOCK_BOOTTIME);
	cr_assert(perfring_writer_begin(writer, NULL, 64, 2, &claim));
	stamp = perfring_writer_stamp(writer, &claim);
	cr_assert_geq(stamp, before);
	cr_assert_leq(stamp, now_of(CLOCK_BOOTTIME));
	nanosleep(&(struct timespec){0, 1000000}, NULL);
	cr_assert_eq(perfring_writer_stamp(writer, &claim), stamp);
	perfring_writer_end(writer, &claim);
	cr_assert(perfring_writer_begin(writer, NULL, 64, 2, &claim));
	cr_assert_gt(perfring_writer_stamp(writer, &claim), stamp);
	perfring_writer_end(writer, &claim);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, stamps_of_the_counter)
{
	struct perfring_writer_options options = {.stamp = PERFRING_STAMP_COUNTER, .wake_fd = -1};
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring, other;
	uint64_t before, stamp, after, time, worst = 0;
	int error;

	make(&ring, 1, 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	error = perfring_ring_calibrate(&ring);
	if (error == -EOPNOTSUPP)
		cr_skip_test("SKIP-ENV: perfring_ring_calibrate: no steady counter on this processor");
	cr_assert_eq(error, 0);
	cr_assert_eq(ring.page->capabilities & (8 | 16), 8 | 16);
	cr_assert_eq(ring.page->lock & 1, 0);
	cr_assert_neq(ring.page->time_mult, 0);
	/* A second process has the conversion from the ring alone. */
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 64, &claim));
	for (unsigned i = 0; i < 2000; i++) {
		before = now_of(CLOCK_MONOTONIC);
		stamp = perfring_writer_stamp(writer, &claim);
		after = now_of(CLOCK_MONOTONIC);
		cr_assert_eq(perfring_page_to_time(other.page, stamp, &time), 0);
		if (time < before && before - time > worst)
			worst = before - time;
		if (time > after && time - after > worst)
			worst = time - after;
		if (i % 200 == 0)
			nanosleep(&(struct timespec){0, 20000000}, NULL);
	}
	cr_assert_lt(worst, 100000u, "%llu ns off", (unsigned long long)worst);
	/* Refined by the time since. */
	cr_assert_eq(perfring_ring_calibrate(&ring), 0);
	before = now_of(CLOCK_MONOTONIC);
	cr_assert_eq(perfring_page_to_time(ring.page, perfring_writer_stamp(writer, &claim), &time), 0);
	cr_assert_geq(time + 100000, before);
	cr_assert_leq(time, now_of(CLOCK_MONOTONIC) + 100000);
	perfring_writer_discard(writer, &claim);
	perfring_ring_close(&other);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- forks ---- */

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

Test(writer, fork_in_mid_record)
{
	struct perfring_claim claim, inner;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[2];
	unsigned char *space;
	pid_t child;
	int status;

	if (!is_kept_from_child(MADV_WIPEONFORK))
		cr_skip_test(NO_WIPEONFORK);
	make(&ring, 1, 0);
	writer = open_writer(&ring);
	space = perfring_writer_reserve(writer, NULL, 64, &claim);
	encode(space, 64, 1);
	/* The child's calls change nothing. */
	child = fork();
	if (child == 0) {
		perfring_writer_commit(writer, &claim);
		perfring_writer_discard(writer, &claim);
		if (perfring_writer_reserve(writer, NULL, 24, &inner) ||
		    perfring_writer_begin(writer, NULL, 24, 1, &inner) ||
		    perfring_writer_write(writer, NULL, "\16\0\0\0\0\0\10\0", 8) || perfring_writer_lost(writer))
			_exit(1);
		perfring_writer_pause(writer, true);
		perfring_writer_arm(writer);
		perfring_writer_flush(writer);
		perfring_writer_reset(writer);
		perfring_writer_close(writer);
		_exit(7);
	}
	status = status_of(child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%#x", (unsigned)status);
	/* One that goes on encoding. */
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		space[8] = 0xff;
		_exit(1);
	}
	status = status_of(child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%#x", (unsigned)status);
	cr_assert_eq(published(&ring), 0);
	perfring_writer_commit(writer, &claim);
	cr_assert(put(writer, 24, 2));
	cr_assert_eq(published(&ring), 88);
	cr_assert_eq(drain(&ring, words, 2), 2);
	cr_assert_eq(words[0], 1);
	cr_assert_eq(words[1], 2);
	/* Closed, the mapping is for children again. */
	perfring_writer_close(writer);
	child = fork();
	if (child == 0)
		_exit(put(open_writer(&ring), 24, 3) ? 7 : 1);
	status = status_of(child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%#x", (unsigned)status);
	cr_assert_eq(drain(&ring, words, 2), 1);
	cr_assert_eq(words[0], 3);
	perfring_ring_close(&ring);
}

/* A child may attach by the fd it inherits, and write when the parent has no writer. */
Test(writer, one_writer_at_a_time)
{
	struct perfring_writer *writer, *second;
	struct perfring_ring ring, own;
	uint64_t words[2];
	siginfo_t info;
	pid_t child;
	int status;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert_eq(perfring_writer_open(&second, &ring, NULL), -EBUSY);
	cr_assert_null(second);
	child = fork();
	if (child == 0) {
		if (perfring_ring_attach(&own, ring.fd, 0, NULL))
			_exit(1);
		_exit(perfring_writer_open(&second, &own, NULL) == -EBUSY ? 7 : 2);
	}
	status = status_of(child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%#x", (unsigned)status);
	cr_assert(put(writer, 24, 1));
	perfring_writer_close(writer);
	child = fork();
	if (child == 0) {
		if (perfring_ring_attach(&own, ring.fd, 0, NULL) || perfring_writer_open(&second, &own, NULL))
			_exit(1);
		_exit(put(second, 24, 2) ? 7 : 2); /* not closed: it is dead */
	}
	/* Not reaped yet. */
	cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	status = status_of(child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%#x", (unsigned)status);
	cr_assert_eq(drain(&ring, words, 2), 2);
	cr_assert_eq(words[0], 1);
	cr_assert_eq(words[1], 2);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

static void *leave_open(void *ring)
{
	struct perfring_writer *writer;

	/* Its thread dies with it open: our memory, which nobody needs any more, goes with the process. */
	return perfring_writer_open(&writer, ring, NULL) == 0 ? ring : NULL;
}

Test(writer, thread_that_died)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;
	pthread_t thread;
	int error = -1;
	void *result;

	make(&ring, 1, 0);
	cr_assert_eq(pthread_create(&thread, NULL, leave_open, &ring), 0);
	pthread_join(thread, &result);
	cr_assert_not_null(result);
	/* It is joined a moment before the kernel has forgotten it. */
	for (unsigned i = 0; i < 1000 && (error = perfring_writer_open(&writer, &ring, NULL)) == -EBUSY; i++)
		usleep(1000);
	cr_assert_eq(error, 0);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- killed, and jumped out of ---- */

Test(writer, killed_in_mid_record)
{
	static const uint32_t kinds[] = {0, PERFRING_RING_BACKWARD, PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE};
	struct perfring_ring_state *state;
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perf_event_header header;
	struct perfring_ring ring;
	uint64_t at, words[4];
	pid_t child;
	int status;

	for (unsigned kind = 0; kind < 3; kind++) {
		make(&ring, 1, kinds[kind]);
		state = perfring_ring_state_of(ring.page);
		child = fork();
		if (child == 0) {
			writer = open_writer(&ring);
			put(writer, 24, 1);
			perfring_writer_reserve(writer, NULL, 104, &claim);
			put(writer, 24, 9);
			kill(getpid(), SIGKILL);
		}
		status = status_of(child);
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		cr_assert_eq(published(&ring), kind ? -UINT64_C(24) : 24);
		writer = open_writer(&ring);
		if (kind < 2) {
			/* What was claimed was known to the dead alone: no space is lost, and the others go on. */
			cr_assert(put(writer, 24, 2));
			cr_assert_eq(published(&ring), kind ? -UINT64_C(48) : 48);
		} else {
			cr_assert_eq(state->abandoned, 1);
			cr_assert_eq(perfring_writer_lost(writer), 1);
			cr_assert(put(writer, 24, 2));
			at = published(&ring);
			/* the record, LOST, the space of the dead, the first */
			cr_assert_eq(at, -(UINT64_C(24) + 104 + 24 + 24 + 24));
			memcpy(&header, ring.data + at % PAGE, 8);
			cr_assert_eq(header.type, PERF_RECORD_LOST);
			memcpy(words, ring.data + (at + 16) % PAGE, 8);
			cr_assert_eq(words[0], 1);
			memcpy(&header, ring.data + (at + 24) % PAGE, 8);
			cr_assert_eq(header.type, SWITCH);
			memcpy(&header, ring.data + (at + 48) % PAGE, 8);
			cr_assert_eq(header.type, PERFRING_FILLER_TYPE);
			cr_assert_eq(header.misc, PERFRING_FILLER_MISC);
			cr_assert_eq(header.size, 128);
			memcpy(&header, ring.data + (at + 176) % PAGE, 8);
			cr_assert_eq(header.type, SWITCH);
		}
		if (kind == 0) {
			cr_assert_eq(drain(&ring, words, 4), 2);
			cr_assert_eq(words[0], 1);
			cr_assert_eq(words[1], 2);
		}
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

static sigjmp_buf out;

static void jump(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

Test(writer, jump_out_of_a_record)
{
	static struct perfring_writer *writer;
	static struct perfring_ring ring;
	static struct perfring_claim claim;
	uint64_t words[4];

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	cr_assert(put(writer, 24, 1));
	signal(SIGUSR1, jump);
	if (sigsetjmp(out, 1) == 0) {
		perfring_writer_reserve(writer, NULL, 104, &claim);
		raise(SIGUSR1);
	}
	/* Everything is nested from now on. */
	cr_assert(put(writer, 24, 2));
	cr_assert_eq(published(&ring), 24);
	perfring_writer_reset(writer);
	cr_assert_eq(perfring_writer_lost(writer), 1);
	cr_assert(put(writer, 24, 3));
	cr_assert_eq(drain(&ring, words, 4), 3);
	cr_assert_eq(words[0], 1);
	cr_assert_eq(words[1], ~UINT64_C(1));
	cr_assert_eq(words[2], 3);
	cr_assert_eq(perfring_ring_state_of(ring.page)->abandoned, 1);
	/* With no record in the making it changes nothing. */
	perfring_writer_reset(writer);
	cr_assert_eq(perfring_writer_lost(writer), 1);
	cr_assert(put(writer, 24, 4));
	cr_assert_eq(drain(&ring, words, 4), 1);
	cr_assert_eq(words[0], 4);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- counts ---- */

/* The end of it is told by no LOST record: the total is, with the writer, and from the ring when it is gone. */
Test(writer, losses_at_the_end)
{
	struct perfring_writer *writer;
	struct perfring_ring ring, other;
	unsigned taken = 0;

	make(&ring, 1, 0);
	writer = open_writer(&ring);
	for (unsigned i = 0; i < 200; i++)
		taken += put(writer, 24, i);
	cr_assert_eq(taken, 170);
	cr_assert_eq(perfring_writer_lost(writer), 30);
	perfring_writer_close(writer);
	cr_assert_eq(perfring_ring_attach(&other, ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_eq(perfring_ring_state_of(other.page)->lost_total, 30);
	perfring_ring_close(&other);
	/* Another writer goes on counting. */
	writer = open_writer(&ring);
	cr_assert_not(put(writer, 24, 0));
	cr_assert_eq(perfring_writer_lost(writer), 31);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* The same bytes where the other writer of the library would have put them. */
Test(writer, closed_and_opened_again)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t words[4];

	make(&ring, 1, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		writer = open_writer(&ring);
		cr_assert(put(writer, 8 * (2 + i % 40), i));
		perfring_writer_close(writer);
		cr_assert_eq(drain(&ring, words, 4), 1);
		cr_assert_eq(words[0], i);
	}
	perfring_ring_close(&ring);
}

/* ---- paused by another thread ---- */

struct stop {
	struct perfring_ring *ring;
	struct perfring_writer *writer;
	uint64_t stood, stayed;
};

static void *pause_it(void *argument)
{
	struct stop *stop = argument;

	for (unsigned i = 0; i < 200; i++) {
		nanosleep(&(struct timespec){0, 50000}, NULL);
		perfring_writer_pause(stop->writer, true);
		/* One record may be in the making. */
		nanosleep(&(struct timespec){0, 1000000}, NULL);
		stop->stood = perfring_page_observe(stop->ring->page);
		nanosleep(&(struct timespec){0, 200000}, NULL);
		if (perfring_page_observe(stop->ring->page) != stop->stood)
			stop->stayed++;
		perfring_writer_pause(stop->writer, false);
	}
	return stop;
}

Test(writer, paused_by_another_thread)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;
	struct stop stop = {&ring, NULL, 0, 0};
	uint64_t written = 0, attempted = 0, told = 0, read = 0;
	const struct perf_event_header *record;
	struct perfring_reader reader;
	pthread_t thread;
	uint64_t word;
	bool done = false;

	make(&ring, 16, 0);
	writer = open_writer(&ring);
	stop.writer = writer;
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, pause_it, &stop), 0);
	while (!done) {
		done = pthread_tryjoin_np(thread, NULL) == 0;
		for (unsigned i = 0; i < 100; i++) {
			written += put(writer, 24, attempted);
			attempted++;
		}
		cr_assert_geq(perfring_reader_observe(&reader), 0);
		while (perfring_reader_next(&reader, &record) == 1) {
			memcpy(&word, (const unsigned char *)record + (record->type == PERF_RECORD_LOST ? 16 : 8), 8);
			told += record->type == PERF_RECORD_LOST ? word : 0;
			read += record->type == SWITCH;
			if (record->type == SWITCH)
				cr_assert_eq(word, read + told - 1); /* in order, and each loss where it was */
		}
		perfring_reader_return(&reader);
	}
	/* A millisecond was too short for one record in the making, on a machine of two CPUs: seldom. */
	cr_assert_leq(stop.stayed, 20u, "%llu times of 200 it went on", (unsigned long long)stop.stayed);
	cr_assert_eq(read, written);
	cr_assert_eq(written + perfring_writer_lost(writer), attempted);
	cr_assert_gt(perfring_writer_lost(writer), 0);
	perfring_reader_close(&reader);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- what must stay as it was ---- */

Test(writer, errno_stays)
{
	struct perfring_writer_options options = {.policy = PERFRING_WRITER_WAIT, .wait_ns = 1000000, .wake_fd = -1};
	struct perfring_claim claim;
	struct perfring_writer *writer;
	struct perfring_ring ring;

	make(&ring, 1, 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), 0);
	errno = 4711;
	for (unsigned i = 0; i < 172; i++)
		put(writer, 24, i);
	perfring_writer_reserve(writer, NULL, 7, &claim);
	perfring_writer_pause(writer, true);
	perfring_writer_pause(writer, false);
	perfring_writer_arm(writer);
	perfring_writer_flush(writer);
	perfring_writer_lost(writer);
	cr_assert_eq(errno, 4711);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- what a review found ---- */

static struct perfring_writer *open_plain(struct perfring_ring *ring, const struct perfring_writer_options *options)
{
	struct perfring_ring_options of = {.pages = 1};
	struct perfring_writer *writer;

	cr_assert_eq(perfring_ring_create(ring, &of), 0);
	cr_assert_eq(perfring_writer_open(&writer, ring, options), 0);
	return writer;
}

static bool write_sample(struct perfring_writer *writer, struct perfring_output *output, uint16_t size)
{
	struct perf_event_header *record;
	struct perfring_claim claim;

	record = perfring_writer_reserve(writer, output, size, &claim);
	if (!record)
		return false;
	*record = (struct perf_event_header){PERF_RECORD_SAMPLE, 0, size};
	perfring_writer_commit(writer, &claim);
	return true;
}

/* Nothing taken is nothing written: what a handler writes meanwhile is published, and all that comes later. */
Test(writer, transaction_of_nothing)
{
	struct perfring_writer *writer;
	struct perfring_claim claim;
	struct perfring_ring ring;

	writer = open_plain(&ring, NULL);
	cr_assert(write_sample(writer, NULL, 24));
	cr_assert(perfring_writer_begin(writer, NULL, 240, 10, &claim));
	perfring_writer_end(writer, &claim);
	cr_assert_eq(ring.page->data_head, 24);
	cr_assert(perfring_writer_begin(writer, NULL, 240, 10, &claim));
	cr_assert(write_sample(writer, NULL, 40)); /* as a handler would */
	perfring_writer_end(writer, &claim);
	cr_assert_eq(ring.page->data_head, 24 + 240 + 40);
	for (uint64_t i = 1; i <= 10; i++) {
		cr_assert(write_sample(writer, NULL, 24));
		cr_assert_eq(ring.page->data_head, 304 + 24 * i);
	}
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* A jump out of a claim that was never checked: it may reach beyond what the ring holds. */
Test(writer, reset_of_a_claim_that_does_not_fit)
{
	const struct perf_event_header *record;
	struct perfring_reader reader;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	unsigned records = 0;

	for (uint64_t size = 48; size < 65536; size = size == 48 ? 4104 : size == 4104 ? 65528 : 65536) {
		writer = open_plain(&ring, NULL);
		for (int i = 0; i < 170; i++)
			cr_assert(write_sample(writer, NULL, 24));
		/* What the inline reserve had stored when it was left. */
		writer->claimed = writer->position + size;
		perfring_writer_reset(writer);
		cr_assert_eq(ring.page->data_head, 4080);
		cr_assert_eq(perfring_writer_lost(writer), 1);
		cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
		cr_assert_eq(perfring_reader_observe(&reader), 4080);
		for (records = 0; perfring_reader_next(&reader, &record) == 1; records++)
			cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
		cr_assert_eq(records, 170);
		perfring_reader_return(&reader);
		cr_assert(write_sample(writer, NULL, 24));
		cr_assert_eq(ring.page->data_head, 4080 + 24 + 24, "a LOST record first");
		perfring_reader_close(&reader);
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

Test(writer, outputs_that_lie)
{
	struct perfring_output odd = {.id = 7, .trailer_size = 12};
	struct perfring_writer *writer;
	struct perfring_ring ring;

	writer = open_plain(&ring, NULL);
	while (write_sample(writer, NULL, 24)) {
	}
	cr_assert_eq(odd.lost, 0);
	perfring_page_return(ring.page, 4080);
	cr_assert(write_sample(writer, &odd, 24));
	cr_assert_eq(ring.page->data_head, 4080 + 24 + 24, "no trailer without a function that writes it");
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(writer, more_that_open_refuses)
{
	struct perfring_writer_options options = {.stamp = PERFRING_STAMP_CLOCK, .clockid = 12345, .wake_fd = -1};
	struct perfring_ring_options of = {.pages = 1};
	struct perfring_writer *writer;
	struct perfring_ring ring;

	cr_assert_eq(perfring_ring_create(&ring, &of), 0);
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), -EINVAL, "no such clock");
	options.stamp = PERFRING_STAMP_TRANSACTION + 1;
	cr_assert_eq(perfring_writer_open(&writer, &ring, &options), -EINVAL, "no such stamp");
	ring.page->data_head = (uint64_t)-48;
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), -EBADMSG, "positions are compared");
	ring.page->data_head = 4;
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), -EBADMSG, "between words");
	ring.page->data_head = 0;
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0, "nobody was left as its writer");
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* Who paused the one before did not mean the next. */
Test(writer, opened_again_after_a_pause)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;

	writer = open_plain(&ring, NULL);
	perfring_writer_pause(writer, true);
	cr_assert_not(write_sample(writer, NULL, 24));
	perfring_writer_close(writer);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	cr_assert(write_sample(writer, NULL, 24));
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

static void *free_late(void *page)
{
	struct timespec nap = {0, 50000000};

	nanosleep(&nap, NULL);
	perfring_page_return(page, 4080);
	return NULL;
}

/* However long is stated: a sum that does not fit is for ever, not for nothing. */
Test(writer, wait_for_ever)
{
	struct perfring_writer_options options = {.policy = PERFRING_WRITER_WAIT, .wake_fd = -1, .wait_ns = INT64_MAX};
	struct perfring_writer *writer;
	struct perfring_ring ring;
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		writer = open_plain(&ring, &options);
		for (int j = 0; j < 170; j++)
			cr_assert(write_sample(writer, NULL, 24));
		cr_assert_eq(pthread_create(&thread, NULL, free_late, ring.page), 0);
		cr_assert(write_sample(writer, NULL, 24));
		cr_assert_eq(perfring_writer_lost(writer), 0);
		pthread_join(thread, NULL);
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
		options.wait_ns = UINT64_MAX;
	}
}

struct opener {
	struct perfring_ring *ring;
	pthread_barrier_t *start;
	int result;
};

static void *open_at_once(void *data)
{
	struct opener *opener = data;
	struct perfring_writer *writer;

	pthread_barrier_wait(opener->start);
	opener->result = perfring_writer_open(&writer, opener->ring, NULL);
	pthread_barrier_wait(opener->start);
	if (opener->result == 0)
		perfring_writer_close(writer);
	return NULL;
}

/* Of two that open at one time, one has it. */
Test(writer, two_that_open_at_once)
{
	struct perfring_ring_options of = {.pages = 1};
	struct opener openers[2];
	pthread_barrier_t start;
	struct perfring_ring ring;
	pthread_t threads[2];

	cr_assert_eq(perfring_ring_create(&ring, &of), 0);
	pthread_barrier_init(&start, NULL, 2);
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 2; i++) {
			openers[i] = (struct opener){&ring, &start, 0};
			cr_assert_eq(pthread_create(&threads[i], NULL, open_at_once, &openers[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		cr_assert_neq(openers[0].result, openers[1].result);
		cr_assert_eq(openers[0].result + openers[1].result, -EBUSY);
	}
	pthread_barrier_destroy(&start);
	perfring_ring_close(&ring);
}
