/* aux_test.c - the AUX area against a model written from docs/abi.md 8, with handlers, hostile pages and another process. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a race may strike: rb/aux.c is compiled in here, with every named point a call. */
#define PERFRING_POINT(name) strike(#name)
static void strike(const char *name);
#include "rb/aux.c"

#include <perfring/wakeup.h>
#include "machine.h"

TestSuite(aux, .timeout = 60);

/* ---- the rig ---- */

struct rig {
	struct perfring_ring ring;
	struct perfring_writer *writer;
	struct perfring_aux_area aux;      /* the producer's */
	struct perfring_aux_area consumer; /* another mapping of the same area */
};

static const char *struck_at; /* the point at which `striker` is called; NULL: the one of this number */
static unsigned struck_number;
static void (*striker)(struct rig *rig);
static struct rig *struck;
static unsigned passed;
static unsigned strikes;

static void strike(const char *name)
{
	void (*now)(struct rig *) = striker;

	if (!now || (struck_at ? strcmp(name, struck_at) != 0 : passed++ != struck_number))
		return;
	striker = NULL;
	strikes++;
	now(struck);
	striker = now;
}

static void strike_at(struct rig *rig, const char *name, unsigned number, void (*what)(struct rig *))
{
	struck = rig;
	struck_at = name;
	struck_number = number;
	striker = what;
	passed = 0;
	strikes = 0;
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The data's own watermark is out of the way: all of it. */
static struct rig make(uint32_t aux_pages, uint32_t watermark, unsigned flags, const struct perfring_output *output)
{
	struct perfring_ring_options options = {
		.pages = 1, .watermark = true, .wakeup = UINT32_MAX, .aux_pages = aux_pages};
	struct perfring_writer_options writing = {.wake_fd = -1};
	struct rig rig;

	if (output)
		writing.output = *output;
	cr_assert_eq(perfring_ring_create(&rig.ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&rig.writer, &rig.ring, &writing), 0);
	cr_assert_eq(perfring_aux_open(&rig.aux, &rig.ring, flags), 0);
	cr_assert_eq(perfring_aux_open(&rig.consumer, &rig.ring, flags), 0);
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, NULL, watermark), 0);
	return rig;
}

static void drop(struct rig *rig)
{
	striker = NULL;
	perfring_aux_close(&rig->consumer);
	perfring_aux_close(&rig->aux);
	perfring_writer_close(rig->writer);
	perfring_ring_close(&rig->ring);
}

/* The byte that belongs at a position. */
static unsigned char byte_of(uint64_t position)
{
	return (unsigned char)(position * 31 + (position >> 8) * 7 + 5);
}

static void fill(unsigned char *buffer, uint64_t position, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		buffer[i] = byte_of(position + i);
}

/* The first place that is wrong, or `size`. */
static uint64_t right(const unsigned char *bytes, uint64_t position, uint64_t size)
{
	uint64_t i;

	for (i = 0; i < size && bytes[i] == byte_of(position + i); i++)
		;
	return i;
}

/* Takes the next record out of the data, by plain positions. */
static uint16_t record(struct rig *rig, unsigned char *buffer)
{
	struct perf_event_mmap_page *page = rig->ring.page;
	uint64_t from = page->data_tail;
	struct perf_event_header header;

	if (__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) == from)
		return 0;
	memcpy(&header, rig->ring.data + from % rig->ring.size, sizeof(header));
	for (uint16_t i = 0; i < header.size; i++)
		buffer[i] = rig->ring.data[(from + i) % rig->ring.size];
	__atomic_store_n(&page->data_tail, from + header.size, __ATOMIC_RELEASE);
	return header.size;
}

/* The next record is AUX with these words, and 32 bytes long. */
static void told(struct rig *rig, uint64_t offset, uint64_t size, uint64_t flags)
{
	unsigned char buffer[65536];
	uint64_t words[4];

	cr_assert_eq(record(rig, buffer), 32, "an AUX record of 32 bytes");
	memcpy(words, buffer, 32);
	cr_assert_eq(words[0], header_word(11, 32));
	cr_assert_eq(words[1], offset, "aux_offset %llu, not %llu", (unsigned long long)words[1],
		     (unsigned long long)offset);
	cr_assert_eq(words[2], size, "aux_size");
	cr_assert_eq(words[3], flags, "flags");
}

static bool woke(struct rig *rig)
{
	int events = perfring_wakeup_poll(&rig->ring);

	cr_assert(events == 0 || events == (POLLIN | POLLRDNORM));
	return events != 0;
}

static void none_told(struct rig *rig)
{
	cr_assert_eq(rig->ring.page->data_head, rig->ring.page->data_tail, "no record");
}

/* A transaction of `size` bytes. */
static void write_aux(struct rig *rig, uint64_t size, uint64_t flags)
{
	unsigned char *buffer;
	int64_t n = perfring_aux_begin(&rig->aux, &buffer);

	cr_assert_geq(n, (int64_t)size);
	fill(buffer, rig->aux.position, size);
	cr_assert_eq(perfring_aux_end(&rig->aux, size, flags), 0);
}

/* ---- by hand ---- */

Test(aux, memory)
{
	struct rig rig = make(4, 0, 0, NULL);
	struct perf_event_mmap_page *page = rig.ring.page;
	uint64_t size = 4 * page_size();

	cr_assert_eq(page->aux_size, size);
	cr_assert_geq(page->aux_offset, page->data_offset + page->data_size);
	cr_assert_eq(page->aux_offset % page_size(), 0);
	cr_assert_eq(page->aux_head, 0);
	cr_assert_eq(page->aux_tail, 0);
	cr_assert_eq(rig.aux.size, size);
	/* twice in a row, and the same bytes as another mapping's */
	rig.aux.data[5] = 0x5a;
	cr_assert_eq(rig.aux.data[size + 5], 0x5a);
	cr_assert_eq(rig.consumer.data[5], 0x5a);
	rig.aux.data[2 * size - 1] = 0xa5;
	cr_assert_eq(rig.consumer.data[size - 1], 0xa5);
	/* not in the data's place, nor in the control page's */
	memset(rig.aux.data, 0xff, size);
	for (uint64_t i = 0; i < rig.ring.size; i++)
		cr_assert_eq(rig.ring.data[i], 0);
	cr_assert_eq(page->aux_tail, 0);
	drop(&rig);
}

/* One lap with the numbers worked out by hand from docs/abi.md 8. */
Test(aux, first_lap)
{
	struct rig rig = make(1, 0, 0, NULL);
	struct perf_event_mmap_page *page = rig.ring.page;
	uint64_t size = page_size();
	const unsigned char *bytes;
	unsigned char *buffer;

	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 0);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)size - 1, "one byte stays free");
	cr_assert(buffer == rig.aux.data);
	fill(buffer, 0, size - 96);
	cr_assert_eq(page->aux_head, 0, "nothing is there before the end");
	cr_assert_eq(perfring_aux_end(&rig.aux, size - 96, 0), 0);
	cr_assert_eq(page->aux_head, size - 96);
	told(&rig, 0, size - 96, 0);
	cr_assert(woke(&rig), "more than half");

	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), 95);
	cr_assert(buffer == rig.aux.data + size - 96);
	cr_assert_eq(perfring_aux_end(&rig.aux, 96, 0), -EINVAL, "more than the buffer");
	cr_assert_eq(page->aux_head, size - 96, "and nothing happened");
	fill(buffer, size - 96, 95);
	cr_assert_eq(perfring_aux_end(&rig.aux, 95, 0), 0);
	told(&rig, size - 96, 95, 0);
	cr_assert_eq(page->aux_head, size - 1, "exactly full");
	cr_assert(!woke(&rig), "no second boundary yet");

	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), 0, "full");
	cr_assert(woke(&rig), "and the reader is told");
	cr_assert(!woke(&rig));
	none_told(&rig);
	cr_assert_eq(perfring_aux_end(&rig.aux, 0, 0), -EINVAL, "none is open");
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), -EAGAIN, "stopped");
	cr_assert(!woke(&rig));
	perfring_aux_enable(&rig.aux);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), 0, "still full");
	cr_assert(woke(&rig));

	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), (int64_t)size - 1);
	cr_assert_eq(right(bytes, 0, size - 1), size - 1);
	perfring_aux_return(&rig.consumer, 1);
	cr_assert_eq(page->aux_tail, 1);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), -EAGAIN, "buffer alone does not start it");
	perfring_aux_enable(&rig.aux);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), 1);
	buffer[0] = byte_of(size - 1);
	cr_assert_eq(perfring_aux_end(&rig.aux, 1, 0), 0);
	told(&rig, size - 1, 1, 0);
	cr_assert(woke(&rig), "the boundary at the end of the area");

	/* over the end, in one piece */
	perfring_aux_return(&rig.consumer, size - 2);
	cr_assert_eq(page->aux_tail, size - 1);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)size - 2);
	cr_assert(buffer == rig.aux.data, "position %llu", (unsigned long long)rig.aux.position);
	cr_assert_eq(perfring_aux_end(&rig.aux, 0, 0), 0);
	none_told(&rig);
	write_aux(&rig, 100, 0);
	told(&rig, size, 100, 0);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 101);
	cr_assert(bytes == rig.consumer.data + size - 1);
	cr_assert_eq(right(bytes, size - 1, 101), 101);
	/* more than was observed is not given back */
	perfring_aux_return(&rig.consumer, 1000);
	cr_assert_eq(page->aux_tail, size + 100, "free-running");
	drop(&rig);
}

/* Head after each transaction, and whether it woke: watermark W, consumer always empty.  At least W beyond the last
 * multiple of W that was told. */
Test(aux, watermark)
{
	static const struct {
		uint32_t watermark;
		struct {
			uint32_t size;
			bool wakes;
		} steps[8];
	} rows[] = {
		{0, {{2047, false}, {1, true}, {2047, false}, {1, true}, {2049, true}, {2046, false}, {1, true}}},
		{1000, {{999, false}, {1, true}, {2999, true}, {1, true}, {999, false}, {1, true}, {1, false}}},
		{1, {{1, true}, {5, true}, {1, true}}},
		{24, {{24, true}, {23, false}, {24, true}, {1, true}, {48, true}}},
		/* not clamped to the area, which is in the way of nothing: positions run freely */
		{10000,
		 {{4000, false}, {4000, false}, {1999, false}, {1, true}, {4000, false}, {4000, false}, {2500, true}}},
	};

	if (page_size() != 4096)
		cr_skip_test("SKIP-ENV: sysconf: the rows are for pages of 4096 bytes");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig rig = make(1, rows[i].watermark, 0, NULL);
		const unsigned char *bytes;

		for (unsigned k = 0; k < 8 && rows[i].steps[k].size; k++) {
			write_aux(&rig, rows[i].steps[k].size, 0);
			cr_assert_eq(woke(&rig), rows[i].steps[k].wakes, "watermark %u, step %u", rows[i].watermark, k);
			perfring_aux_return(&rig.consumer, (uint64_t)perfring_aux_observe(&rig.consumer, &bytes));
			told(&rig, rig.aux.position - rows[i].steps[k].size, rows[i].steps[k].size, 0);
		}
		drop(&rig);
	}
}

/* Which ends write a record, with which flags, and which wake and stop. */
Test(aux, flags)
{
	static const struct {
		uint64_t size, flags, said;
		bool record, wakes;
	} rows[] = {
		{0, 0, 0, false, false}, {0, 2, 0, false, false}, {0, 0x100, 0, false, false},
		{8, 0, 0, true, false},  {8, 2, 0, true, false},  {8, 0x100, 0x100, true, false},
		{0, 1, 1, true, true},   {8, 1, 1, true, true},   {0, 4, 4, true, false},
		{0, 8, 8, true, false},  {8, 15, 13, true, true},
	};

	for (unsigned mode = 0; mode < 2; mode++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct rig rig = make(1, 0, mode ? PERFRING_RING_OVERWRITE : 0, NULL);
			unsigned char *buffer;

			write_aux(&rig, rows[i].size, rows[i].flags);
			if (rows[i].record)
				told(&rig, mode ? rows[i].size : 0, rows[i].size, rows[i].said | (mode ? 2 : 0));
			none_told(&rig);
			cr_assert_eq(rig.ring.page->aux_head, rows[i].size);
			cr_assert_eq(woke(&rig), rows[i].wakes);
			if (rows[i].wakes) {
				cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), -EAGAIN, "stopped");
				perfring_aux_enable(&rig.aux);
			}
			cr_assert_gt(perfring_aux_begin(&rig.aux, &buffer), 0);
			drop(&rig);
		}
}

Test(aux, skip)
{
	struct rig rig = make(1, 0, 0, NULL);
	uint64_t size = page_size();
	unsigned char *buffer, *next;
	const unsigned char *bytes;

	cr_assert_null(perfring_aux_skip(&rig.aux, 0), "none is open");
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)size - 1);
	cr_assert_null(perfring_aux_skip(&rig.aux, size), "more than the buffer");
	cr_assert_eq(rig.ring.page->aux_head, 0);
	next = perfring_aux_skip(&rig.aux, 64);
	cr_assert(next == buffer + 64);
	cr_assert_eq(rig.ring.page->aux_head, 64, "published at once");
	cr_assert(!woke(&rig));
	next = perfring_aux_skip(&rig.aux, size / 2 - 64);
	cr_assert(next == buffer + size / 2);
	cr_assert(woke(&rig), "the same test as at the end");
	none_told(&rig);
	cr_assert_eq(perfring_aux_end(&rig.aux, size / 2, 0), -EINVAL, "what was passed over is gone from the buffer");
	fill(next, size / 2, 10);
	cr_assert_eq(perfring_aux_end(&rig.aux, 10, 0), 0);
	told(&rig, size / 2, 10, 0);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), (int64_t)size / 2 + 10);
	cr_assert_eq(right(bytes + size / 2, size / 2, 10), 10);
	cr_assert_null(perfring_aux_skip(&rig.aux, 0), "closed");
	/* all of the buffer, and not a byte more */
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)size / 2 - 11);
	cr_assert_null(perfring_aux_skip(&rig.aux, size / 2 - 10));
	cr_assert_not_null(perfring_aux_skip(&rig.aux, size / 2 - 11));
	cr_assert_eq(rig.ring.page->aux_head, size - 1);
	cr_assert_eq(perfring_aux_end(&rig.aux, 0, 0), 0);
	none_told(&rig);
	drop(&rig);
}

Test(aux, overwrite)
{
	struct rig rig = make(1, 100, PERFRING_RING_OVERWRITE, NULL);
	uint64_t size = page_size();
	const unsigned char *bytes;
	unsigned char *buffer;

	write_aux(&rig, 1000, 0);
	told(&rig, 1000, 1000, 2);
	cr_assert(!woke(&rig), "there is no watermark");
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 1000, "what was never written is not shown");
	cr_assert_eq(right(bytes, 0, 1000), 1000);
	write_aux(&rig, size, 0);
	told(&rig, size + 1000, size, 2);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), (int64_t)size, "the whole area");
	cr_assert(bytes == rig.consumer.data + 1000);
	cr_assert_eq(right(bytes, 1000, size), size);
	perfring_aux_return(&rig.consumer, size);
	cr_assert_eq(rig.ring.page->aux_tail, 0, "nothing is given back");
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 0);
	/* several laps in one transaction, by a driver that goes round by itself */
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)size, "the consumer is in nobody's way");
	cr_assert(buffer == rig.aux.data + 1000);
	cr_assert_eq(perfring_aux_end(&rig.aux, 5 * size + 3, 0), 0);
	told(&rig, 6 * size + 1003, 5 * size + 3, 2);
	cr_assert_eq(rig.ring.page->aux_head, 6 * size + 1003);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), (int64_t)size);
	cr_assert(bytes == rig.consumer.data + 1003);
	cr_assert(!woke(&rig));
	drop(&rig);
}

/* ---- the record, and what stands around it ---- */

static void trailer(const struct perfring_output *output, void *buffer)
{
	uint64_t words[2] = {0x1111111111111111, output->id};

	memcpy(buffer, words, 16);
}

Test(aux, trailer)
{
	struct perfring_output own = {.id = 77, .trailer_size = 16, .trailer = trailer};
	struct perfring_output other = {.id = 78, .trailer_size = 8, .trailer = NULL};
	struct rig rig = make(1, 0, 0, &own);
	const uint64_t expected[6] = {header_word(11, 48), 0, 100, 0, 0x1111111111111111, 77};
	unsigned char buffer[65536];

	write_aux(&rig, 100, 0);
	cr_assert_eq(record(&rig, buffer), 48);
	cr_assert(memcmp(buffer, expected, 48) == 0, "the words, then the writer's own trailer");
	/* another output of the same writer */
	perfring_aux_close(&rig.aux);
	cr_assert_eq(perfring_aux_open(&rig.aux, &rig.ring, 0), 0);
	other.trailer_size = 16;
	other.trailer = trailer;
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, &other, 0), 0);
	write_aux(&rig, 50, PERFRING_AUX_PARTIAL);
	cr_assert_eq(record(&rig, buffer), 48);
	cr_assert(memcmp(buffer + 8, (uint64_t[5]){100, 50, 4, 0x1111111111111111, 78}, 40) == 0,
		  "where the other ended");
	drop(&rig);
}

/* At aux_recorded the record is there, and aux_head does not say so yet. */
static void look_between(struct rig *rig)
{
	const unsigned char *bytes;
	uint64_t head = rig->ring.page->aux_head;

	cr_assert_eq(rig->ring.page->data_head - rig->ring.page->data_tail, 32, "the record first");
	cr_assert_eq(perfring_aux_observe(&rig->consumer, &bytes), 0, "the bytes are not to be read");
	cr_assert_eq(head, 100);
	told(rig, 100, 500, 0);
}

Test(aux, record_first)
{
	struct rig rig = make(1, 0, 0, NULL);
	const unsigned char *bytes;

	write_aux(&rig, 100, 0);
	told(&rig, 0, 100, 0);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 100);
	perfring_aux_return(&rig.consumer, 100);
	strike_at(&rig, "aux_recorded", 0, look_between);
	write_aux(&rig, 500, 0);
	cr_assert_eq(strikes, 1);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 500);
	drop(&rig);
}

/* A ring without space for the record: counted there, and the bytes go on. */
Test(aux, record_refused)
{
	struct rig rig = make(1, 0, 0, NULL);
	uint64_t filling[3] = {header_word(1, 24), 1, 2};
	unsigned char buffer[65536];
	unsigned written = 0;

	while (perfring_writer_write(rig.writer, NULL, filling, 24))
		written++;
	cr_assert_eq(written, (rig.ring.size - 1) / 24);
	cr_assert_eq(perfring_writer_lost(rig.writer), 1);
	write_aux(&rig, 200, 0);
	cr_assert_eq(perfring_writer_lost(rig.writer), 2);
	cr_assert_eq(rig.ring.page->aux_head, 200);
	while (record(&rig, buffer))
		;
	write_aux(&rig, 10, 0);
	cr_assert_eq(record(&rig, buffer), 24, "LOST");
	cr_assert(memcmp(buffer, (uint64_t[3]){header_word(2, 24), 0, 2}, 24) == 0, "both of them");
	told(&rig, 200, 10, 0);
	drop(&rig);
}

/* ---- nesting ---- */

static struct rig *handled;
static int64_t handler_said;

static void begin_in_handler(int signal)
{
	unsigned char *buffer;

	(void)signal;
	handler_said = perfring_aux_begin(&handled->aux, &buffer);
}

Test(aux, nesting_refused)
{
	struct rig rig = make(1, 0, 0, NULL);
	unsigned char *buffer;

	handled = &rig;
	signal(SIGUSR1, begin_in_handler);
	cr_assert_gt(perfring_aux_begin(&rig.aux, &buffer), 0);
	raise(SIGUSR1);
	cr_assert_eq(handler_said, -EBUSY);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), -EBUSY);
	fill(buffer, 0, 10);
	cr_assert_eq(perfring_aux_end(&rig.aux, 10, 0), 0, "the open one is unharmed");
	told(&rig, 0, 10, 0);
	/* begun in a handler, ended by the thread */
	raise(SIGUSR1);
	cr_assert_eq(handler_said, (int64_t)page_size() - 11);
	cr_assert_eq(perfring_aux_end(&rig.aux, 5, 0), 0);
	told(&rig, 10, 5, 0);
	drop(&rig);
}

static void strike_begin(struct rig *rig)
{
	(void)rig;
	begin_in_handler(0);
}

/* At every point from begin to end, the writer's too, a handler's begin is refused. */
Test(aux, nesting_refused_everywhere)
{
	unsigned points = 0;

	do {
		struct rig rig = make(1, 0, 0, NULL);

		handled = &rig;
		handler_said = 1;
		strike_at(&rig, NULL, points, strike_begin);
		write_aux(&rig, 30, PERFRING_AUX_TRUNCATED);
		striker = NULL;
		cr_assert_eq(handler_said, strikes ? -EBUSY : 1, "at point %u", points);
		told(&rig, 0, 30, 1);
		none_told(&rig);
		cr_assert_eq(rig.ring.page->aux_head, 30);
		drop(&rig);
	} while (strikes && ++points);
	cr_assert_geq(points, 7, "aux_begun, the writer's, aux_recorded, aux_published, aux_stopped: %u", points);
}

static void strike_write(struct rig *rig)
{
	uint64_t nested[2] = {header_word(3, 16), 4711};

	cr_assert(perfring_writer_write(rig->writer, NULL, nested, 16));
}

/* A handler's record at each of these points: both are whole, in the order of their claims. */
Test(aux, record_interrupted)
{
	unsigned points = 0, before = 0;
	unsigned char buffer[65536];
	bool first;

	do {
		struct rig rig = make(1, 0, 0, NULL);

		strike_at(&rig, NULL, points, strike_write);
		write_aux(&rig, 30, 0);
		striker = NULL;
		first = strikes && memcmp(rig.ring.data, (uint64_t[1]){header_word(3, 16)}, 8) == 0;
		before += first;
		if (!first)
			told(&rig, 0, 30, 0);
		if (strikes) {
			cr_assert_eq(record(&rig, buffer), 16, "at point %u", points);
			cr_assert(memcmp(buffer, (uint64_t[2]){header_word(3, 16), 4711}, 16) == 0);
		}
		if (first)
			told(&rig, 0, 30, 0);
		none_told(&rig);
		cr_assert_eq(rig.ring.page->aux_head, 30);
		drop(&rig);
	} while (strikes && ++points);
	cr_assert_geq(points, 6);
	cr_assert(before > 0 && before < points);
}

/* The AUX record nested in a record of the thread: aux_head may be ahead of data_head then, never behind the record. */
Test(aux, end_inside_a_record)
{
	struct rig rig = make(1, 0, 0, NULL);
	struct perfring_claim claim;
	unsigned char bytes[65536];
	uint64_t *words = perfring_writer_reserve(rig.writer, NULL, 16, &claim);

	cr_assert_not_null(words);
	write_aux(&rig, 2048, 0);
	cr_assert_eq(rig.ring.page->data_head, 0, "the outer record is not whole");
	cr_assert_eq(rig.ring.page->aux_head, 2048);
	cr_assert(woke(&rig));
	words[0] = header_word(3, 16);
	words[1] = 1;
	perfring_writer_commit(rig.writer, &claim);
	cr_assert_eq(record(&rig, bytes), 16);
	told(&rig, 0, 2048, 0);
	drop(&rig);
}

/* A wakeup makes a system call, which may fail: errno is the interrupted code's. */
Test(aux, errno_stays)
{
	struct perfring_ring_options options = {.pages = 1, .aux_pages = 1};
	struct perfring_writer_options writing = {.wake_fd = eventfd(0, EFD_NONBLOCK)};
	uint64_t full = UINT64_MAX - 1;
	struct rig rig;

	cr_assert_eq(perfring_ring_create(&rig.ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&rig.writer, &rig.ring, &writing), 0);
	cr_assert_eq(perfring_aux_open(&rig.aux, &rig.ring, 0), 0);
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, NULL, 8), 0);
	cr_assert_eq(write(writing.wake_fd, &full, 8), 8);
	perfring_wakeup_arm(&rig.ring, 0, PERFRING_WAKEUP_EVENTFD);
	errno = ETXTBSY;
	write_aux(&rig, 8, 0);
	cr_assert_eq(errno, ETXTBSY, "write(2) said EAGAIN, and nobody heard it");
	/* the counter is taken, the next boundary is written to it */
	cr_assert_eq(read(writing.wake_fd, &full, 8), 8);
	perfring_wakeup_poll(&rig.ring);
	perfring_wakeup_arm(&rig.ring, 0, PERFRING_WAKEUP_EVENTFD);
	write_aux(&rig, 8, 0);
	cr_assert_eq(read(writing.wake_fd, &full, 8), 8);
	cr_assert_eq(full, 1);
	close(writing.wake_fd);
	perfring_aux_close(&rig.aux);
	perfring_writer_close(rig.writer);
	perfring_ring_close(&rig.ring);
}

/* ---- positions that run freely, and those that do not ---- */

/* A consumer that stores masked positions reads one lap, and then the trace stands still.  Ours goes on. */
Test(aux, masked_tail)
{
	for (unsigned masked = 0; masked < 2; masked++) {
		struct rig rig = make(1, 0, 0, NULL);
		uint64_t size = page_size(), written = 0;
		const unsigned char *bytes;
		unsigned char *buffer;
		unsigned char rest[65536];
		int64_t n = 0;

		for (unsigned i = 0; i < 100 && (n = perfring_aux_begin(&rig.aux, &buffer)) > 0; i++) {
			n = n < 1000 ? n : 1000;
			fill(buffer, written, (uint64_t)n);
			cr_assert_eq(perfring_aux_end(&rig.aux, (uint64_t)n, 0), 0);
			cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), n);
			cr_assert_eq(right(bytes, written, (uint64_t)n), (uint64_t)n);
			written += (uint64_t)n;
			perfring_aux_return(&rig.consumer, (uint64_t)n);
			if (masked)
				rig.ring.page->aux_tail &= size - 1;
			while (record(&rig, rest))
				;
		}
		if (masked) {
			cr_assert_eq(n, 0, "no space was seen");
			cr_assert_lt(written, 2 * size, "after the first lap");
			cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), -EAGAIN);
		} else {
			cr_assert_eq(written, 100 * 1000);
			cr_assert_eq(rig.ring.page->aux_tail, 100 * 1000);
		}
		drop(&rig);
	}
}

Test(aux, hostile_positions)
{
	static const uint64_t tails[] = {5, 1, -UINT64_C(4096), UINT64_C(1) << 63, 1000000};
	static const uint64_t heads[] = {4097, 1 << 20, UINT64_MAX, UINT64_C(1) << 63};
	struct rig rig = make(1, 0, 0, NULL);
	const unsigned char *bytes;
	unsigned char *buffer;

	/* ahead of the producer: no space that is not ours */
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		rig.ring.page->aux_tail = tails[i] == -UINT64_C(4096) ? -page_size() : tails[i];
		perfring_aux_enable(&rig.aux);
		cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), 0, "aux_tail %llx", (unsigned long long)tails[i]);
	}
	/* behind it, but by less than the area: the kernel takes it, and it is the consumer's own loss */
	rig.ring.page->aux_tail = UINT64_MAX;
	perfring_aux_enable(&rig.aux);
	cr_assert_eq(perfring_aux_begin(&rig.aux, &buffer), (int64_t)page_size() - 2);
	cr_assert_eq(perfring_aux_end(&rig.aux, 0, 0), 0);
	rig.ring.page->aux_tail = 0;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		rig.ring.page->aux_head = heads[i] + page_size() - 4096;
		if (perfring_page_observe_aux_from(rig.ring.page, rig.consumer.returned) - rig.consumer.returned <=
		    rig.consumer.size)
			continue; /* a 32-bit kernel's low words can be right */
		cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), -EBADMSG);
	}
	/* the producer keeps its own copy, and says it again */
	perfring_aux_enable(&rig.aux);
	write_aux(&rig, 7, 0);
	cr_assert_eq(rig.ring.page->aux_head, 7);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 7);
	drop(&rig);
}

/* At the end of the numbers, where positions wrap to 0. */
Test(aux, positions_wrap)
{
	struct perfring_ring_options options = {.pages = 1, .aux_pages = 1};
	uint64_t from = -UINT64_C(1500);
	const unsigned char *bytes;
	struct rig rig;

	cr_assert_eq(perfring_ring_create(&rig.ring, &options), 0);
	cr_assert_eq(perfring_writer_open(&rig.writer, &rig.ring, NULL), 0);
	rig.ring.page->aux_head = from;
	rig.ring.page->aux_tail = from;
	cr_assert_eq(perfring_aux_open(&rig.aux, &rig.ring, 0), 0);
	cr_assert_eq(perfring_aux_open(&rig.consumer, &rig.ring, 0), 0);
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, NULL, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		write_aux(&rig, 1000, 0);
		told(&rig, from + i * 1000, 1000, 0);
		cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 1000);
		cr_assert_eq(right(bytes, from + i * 1000, 1000), 1000);
		perfring_aux_return(&rig.consumer, 1000);
	}
	cr_assert_eq(rig.ring.page->aux_tail, 1500);
	drop(&rig);
}

/* ---- pages that lie ---- */

Test(aux, bad_pages)
{
	struct perfring_ring_options options = {.pages = 2, .aux_pages = 4};
	struct perfring_ring ring;
	struct perfring_aux_area aux;
	uint64_t page = page_size(), offset, size, end;
	struct perf_event_mmap_page kernel = {0};
	struct perfring_ring copy;

	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	offset = ring.page->aux_offset;
	size = ring.page->aux_size;
	end = (uint64_t)lseek(ring.fd, 0, SEEK_END);
	cr_assert_eq(offset + size, end, "behind everything else");
	const struct {
		uint64_t offset, size;
	} rows[] = {
		{offset + 1, size},
		{offset + 8, page},
		{offset + page, size},
		{offset, 2 * size},
		{offset, size - page}, /* no power of two */
		{offset, size + page},
		{offset, page / 2},
		{offset, 1},
		{offset, 0},
		{0, size},
		{page, page},     /* the data */
		{2 * page, page}, /* their second page */
		{end, page},
		{offset, UINT64_C(1) << 62},
		{offset, UINT64_C(1) << 63},
		{offset, UINT64_MAX},
		{-page, page},
		{-page, 2 * page},
		{-size, size},
		{UINT64_C(1) << 63, size},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ring.page->aux_offset = rows[i].offset;
		ring.page->aux_size = rows[i].size;
		cr_assert_eq(perfring_aux_open(&aux, &ring, 0), -EBADMSG, "row %zu", i);
		cr_assert_null(aux.data);
		perfring_aux_close(&aux);
	}
	ring.page->aux_offset = 0;
	ring.page->aux_size = 0;
	cr_assert_eq(perfring_aux_open(&aux, &ring, 0), -EINVAL, "none");
	ring.page->aux_offset = offset;
	ring.page->aux_size = size;
	cr_assert_eq(perfring_aux_open(&aux, &ring, PERFRING_RING_BACKWARD), -EINVAL, "no such flag");
	copy = ring;
	copy.flags &= ~(uint64_t)PERFRING_RING_OWN;
	cr_assert_eq(perfring_aux_open(&aux, &copy, 0), -EINVAL, "no ring of ours");
	cr_assert_eq(perfring_aux_open(&aux, &ring, 0), 0);
	cr_assert_eq(perfring_aux_produce(&aux, NULL, NULL, 0), -EINVAL);
	perfring_aux_close(&aux);
	perfring_aux_close(&aux);
	perfring_ring_close(&ring);

	cr_assert_eq(perfring_aux_wrap(&aux, &kernel, &kernel, 12288, 0), -EINVAL);
	cr_assert_eq(perfring_aux_wrap(&aux, &kernel, &kernel, 0, 0), -EINVAL);
	cr_assert_eq(perfring_aux_wrap(&aux, NULL, &kernel, 4096, 0), -EINVAL);
	cr_assert_eq(perfring_aux_wrap(&aux, &kernel, NULL, 4096, 0), -EINVAL);

	options.aux_pages = 0;
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	cr_assert_eq(perfring_aux_open(&aux, &ring, 0), -EINVAL, "a ring without");
	perfring_ring_close(&ring);
}

Test(aux, wrong_calls)
{
	struct rig rig = make(1, 0, 0, NULL), other = make(1, 0, 0, NULL);
	unsigned char *buffer;

	cr_assert_eq(perfring_aux_begin(&rig.consumer, &buffer), -EINVAL, "no producer");
	cr_assert_null(perfring_aux_skip(&rig.consumer, 0));
	cr_assert_eq(perfring_aux_end(&rig.consumer, 0, 0), -EINVAL);
	cr_assert_eq(perfring_aux_produce(&rig.consumer, other.writer, NULL, 0), -EINVAL, "another ring's writer");
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, NULL, 0), -EINVAL, "twice");
	drop(&other);
	drop(&rig);
}

/* A ring attached for looking only: snapshots, nothing that stores. */
Test(aux, read_only)
{
	struct rig rig = make(1, 0, PERFRING_RING_OVERWRITE, NULL);
	struct perfring_ring looked;
	struct perfring_aux_area aux;
	const unsigned char *bytes;

	write_aux(&rig, 900, 0);
	cr_assert_eq(perfring_ring_attach(&looked, rig.ring.fd, PERFRING_RING_READ_ONLY, NULL), 0);
	cr_assert_eq(perfring_aux_open(&aux, &looked, 0), -EINVAL);
	cr_assert_eq(perfring_aux_open(&aux, &looked, PERFRING_RING_OVERWRITE), 0);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 900);
	cr_assert_eq(right(bytes, 0, 900), 900);
	perfring_aux_return(&aux, 900);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 0);
	perfring_aux_close(&aux);
	perfring_ring_close(&looked);
	drop(&rig);
}

/* ---- a kernel's area, mapped once: pieces come in two ---- */

Test(aux, mapped_once)
{
	unsigned char *area = malloc(4096);
	struct perf_event_mmap_page *page = calloc(1, 4096);
	struct perfring_aux_area aux;
	const unsigned char *bytes;

	cr_assert_not_null(area);
	cr_assert_not_null(page);
	page->aux_head = 4000;
	page->aux_tail = 4000;
	cr_assert_eq(perfring_aux_wrap(&aux, page, area, 4096, 0), 0);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 0, "where the tail stands");
	for (uint64_t i = 4000; i < 5000; i++)
		area[i % 4096] = byte_of(i);
	page->aux_head = 5000;
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 96);
	cr_assert_eq(right(bytes, 4000, 96), 96);
	perfring_aux_return(&aux, 90);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 6);
	perfring_aux_return(&aux, 6);
	cr_assert_eq(page->aux_tail, 4096);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 904);
	cr_assert(bytes == area);
	cr_assert_eq(right(bytes, 4096, 904), 904);
	perfring_aux_return(&aux, 904);
	cr_assert_eq(page->aux_tail, 5000);

	/* a snapshot: mapped read-only, and the tail is nobody's */
	page->aux_tail = 12345;
	cr_assert_eq(perfring_aux_wrap(&aux, page, area, 4096, PERFRING_RING_OVERWRITE), 0);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 4096 - 904);
	cr_assert(bytes == area + 904);
	perfring_aux_return(&aux, 4096 - 904);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 904);
	cr_assert(bytes == area);
	perfring_aux_return(&aux, 904);
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 0);
	cr_assert_eq(page->aux_tail, 12345);
	/* a driver whose head does not run freely: back to 100 */
	page->aux_head = 100;
	cr_assert_eq(perfring_aux_observe(&aux, &bytes), 4096 - 100);
	cr_assert(bytes == area + 100);
	perfring_aux_close(&aux);
	free(page);
	free(area);
}

/* ---- processes ---- */

enum {
	TRACE = 3000000, /* bytes from one process to the other */
};

/* All by the fd. */
static int consume(int fd)
{
	struct perfring_ring ring;
	struct perfring_aux_area aux;
	const unsigned char *bytes;
	uint64_t seen = 0;
	int64_t n;

	if (perfring_ring_attach(&ring, fd, 0, NULL) || perfring_aux_open(&aux, &ring, 0))
		return 1;
	while (seen < TRACE) {
		n = perfring_aux_observe(&aux, &bytes);
		if (n < 0)
			return 2;
		if (n == 0)
			usleep(10);
		if (right(bytes, seen, (uint64_t)n) != (uint64_t)n)
			return 3;
		seen += (uint64_t)n;
		perfring_aux_return(&aux, (uint64_t)n);
	}
	return seen == TRACE && ring.page->aux_tail == TRACE ? 0 : 4;
}

Test(aux, other_process)
{
	struct rig rig = make(1, 0, 0, NULL);
	uint64_t written = 0, size, random = 1;
	unsigned char *buffer;
	unsigned char rest[65536];
	int status;
	int64_t n;
	pid_t child = fork();

	if (child == 0)
		_exit(consume(rig.ring.fd));
	cr_assert_gt(child, 0);
	while (written < TRACE) {
		n = perfring_aux_begin(&rig.aux, &buffer);
		if (n <= 0) {
			cr_assert(n == 0 || n == -EAGAIN);
			cr_assert_eq(waitpid(child, &status, WNOHANG), 0, "the consumer left: %d", status);
			usleep(10);
			perfring_aux_enable(&rig.aux);
			continue;
		}
		random = random * 6364136223846793005u + 1442695040888963407u;
		size = 1 + (random >> 33) % (uint64_t)n;
		if (size > TRACE - written)
			size = TRACE - written;
		fill(buffer, written, size);
		cr_assert_eq(perfring_aux_end(&rig.aux, size, 0), 0);
		written += size;
		while (record(&rig, rest))
			;
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
	cr_assert_eq(rig.ring.page->aux_tail, TRACE);
	drop(&rig);
}

/* A fork's child produces nothing, and harms nothing. */
Test(aux, forked)
{
	struct rig rig = make(1, 0, 0, NULL);
	unsigned char *buffer;
	int status;
	pid_t child;

	if (!is_kept_from_child(MADV_WIPEONFORK))
		cr_skip_test(NO_WIPEONFORK);
	if (!is_kept_from_child(MADV_DONTFORK))
		cr_skip_test(NO_DONTFORK);
	cr_assert_gt(perfring_aux_begin(&rig.aux, &buffer), 0);
	child = fork();
	if (child == 0)
		_exit(perfring_aux_end(&rig.aux, 10, 0) != -EINVAL     ? 1
		      : perfring_aux_skip(&rig.aux, 1) != NULL         ? 2
		      : perfring_aux_begin(&rig.aux, &buffer) != -EINVAL ? 3
								       : 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile unsigned char *)buffer = 1;
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "it cannot touch the parent's area");
	fill(buffer, 0, 10);
	cr_assert_eq(perfring_aux_end(&rig.aux, 10, 0), 0);
	told(&rig, 0, 10, 0);
	drop(&rig);
}

/* Both ends go, and others come: they go on where the page says. */
Test(aux, reopened)
{
	struct rig rig = make(1, 0, 0, NULL);
	const unsigned char *bytes;

	write_aux(&rig, 2500, 0);
	told(&rig, 0, 2500, 0);
	cr_assert(woke(&rig));
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 2500);
	perfring_aux_return(&rig.consumer, 700);
	perfring_aux_close(&rig.aux);
	perfring_aux_close(&rig.consumer);
	perfring_writer_close(rig.writer);
	cr_assert_eq(perfring_writer_open(&rig.writer, &rig.ring, NULL), 0);
	cr_assert_eq(perfring_aux_open(&rig.aux, &rig.ring, 0), 0);
	cr_assert_eq(perfring_aux_produce(&rig.aux, rig.writer, NULL, 0), 0);
	write_aux(&rig, 500, 0);
	told(&rig, 2500, 500, 0);
	cr_assert(!woke(&rig), "the last boundary was told by the one before");
	cr_assert_eq(perfring_aux_open(&rig.consumer, &rig.ring, 0), 0);
	cr_assert_eq(perfring_aux_observe(&rig.consumer, &bytes), 2300);
	cr_assert_eq(right(bytes, 700, 2300), 2300);
	drop(&rig);
}

/* ---- the model: docs/abi.md 8, line by line ---- */

struct model {
	uint64_t size, head, tail, buffer, last, watermark;
	bool overwrite, open, stopped, wake;
};

static void model_test_wakeup(struct model *model)
{
	if (!model->overwrite && model->head - model->last >= model->watermark) {
		model->last = model->head / model->watermark * model->watermark;
		model->wake = true;
	}
}

/* circ_space of docs/abi.md 7.2. */
static uint64_t model_space(uint64_t head, uint64_t tail, uint64_t size)
{
	return (tail - (head + 1)) % size;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void schedule(uint64_t seed)
{
	static const uint32_t watermarks[] = {0, 0, 1, 7, 64, 1000, 4096, 100000};
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	bool overwrite = next_random(&random) % 4 == 0;
	uint32_t watermark = watermarks[next_random(&random) % 8];
	struct rig rig = make(1u << next_random(&random) % 3, watermark, overwrite ? PERFRING_RING_OVERWRITE : 0, NULL);
	struct model model = {
		.size = rig.aux.size, .watermark = watermark ? watermark : rig.aux.size / 2, .overwrite = overwrite};
	uint64_t n, flags, data_head = 0, data_wakeup = 0, expected;
	const unsigned char *bytes;
	unsigned char *buffer = NULL, *place;
	int64_t said;

	for (unsigned i = 0; i < 400; i++) {
		bool emitted = false;
		uint64_t offset = 0;

		model.wake = false;
		flags = 0;
		n = 0;
		switch (next_random(&random) % 8) {
		case 0:
		case 1: /* begin */
			said = perfring_aux_begin(&rig.aux, &place);
			if (model.open) {
				cr_assert_eq(said, -EBUSY);
				break;
			}
			if (model.stopped) {
				cr_assert_eq(said, -EAGAIN);
				break;
			}
			model.buffer = model.size;
			if (!overwrite)
				model.buffer = model.head - model.tail < model.size
						     ? model_space(model.head, model.tail, model.size)
						     : 0;
			cr_assert_eq(said, (int64_t)model.buffer);
			if (model.buffer == 0) {
				model.stopped = true;
				model.wake = true;
				break;
			}
			model.open = true;
			buffer = place;
			cr_assert(buffer == rig.aux.data + model.head % model.size);
			break;
		case 2: /* skip */
			n = next_random(&random) % (model.size / 4);
			place = perfring_aux_skip(&rig.aux, n);
			if (!model.open || n > model.buffer) {
				cr_assert_null(place);
				break;
			}
			fill(buffer, model.head, n); /* so that the consumer need not know */
			model.head += n;
			model.buffer -= n;
			model_test_wakeup(&model);
			cr_assert(place == rig.aux.data + model.head % model.size);
			buffer = place;
			break;
		case 3:
		case 4: /* end */
			if (next_random(&random) % 4 == 0)
				flags = next_random(&random) & 15;
			n = next_random(&random) % 8 == 0 ? 0 : next_random(&random) % (model.buffer + 1);
			if (next_random(&random) % 16 == 0 && !overwrite)
				n = model.buffer + 1;
			if (next_random(&random) % 8 == 0)
				n = model.buffer;
			if (model.open && n <= model.buffer)
				fill(buffer, model.head, n);
			said = perfring_aux_end(&rig.aux, n, flags);
			if (!model.open || n > model.buffer) {
				cr_assert_eq(said, -EINVAL);
				break;
			}
			cr_assert_eq(said, 0);
			offset = overwrite ? model.head + n : model.head;
			flags = overwrite ? flags | 2 : flags & 13;
			emitted = n || flags & 13;
			model.head += n;
			model_test_wakeup(&model);
			if (flags & 1) {
				model.wake = true;
				model.stopped = true;
			}
			model.open = false;
			model.buffer = 0;
			break;
		case 5: /* the reader's answer */
			perfring_aux_enable(&rig.aux);
			model.stopped = false;
			break;
		default: /* observe, return */
			said = perfring_aux_observe(&rig.consumer, &bytes);
			if (overwrite) {
				expected = model.head < model.size ? model.head : model.size;
				if (model.tail > model.head - expected)
					expected = model.head - model.tail;
			} else {
				expected = model.head - model.tail;
			}
			cr_assert_eq(said, (int64_t)expected);
			/* overwritten meanwhile where the open transaction writes */
			if (!overwrite || !model.open)
				cr_assert_eq(right(bytes, model.head - expected, expected), expected);
			n = next_random(&random) % (expected + 1);
			if (next_random(&random) % 2)
				n = expected;
			perfring_aux_return(&rig.consumer, n);
			model.tail = model.head - expected + n;
			break;
		}
		if (emitted) { /* the ring's own wakeup, which it shares (docs/abi.md 7.3, step 7) */
			data_head += 32;
			if (data_head - data_wakeup > rig.ring.size) {
				data_wakeup += rig.ring.size;
				model.wake = true;
			}
			told(&rig, offset, n, flags);
		}
		none_told(&rig);
		cr_assert_eq(rig.ring.page->data_head, data_head);
		cr_assert_eq(rig.ring.page->aux_head, model.head);
		cr_assert_eq(rig.ring.page->aux_tail, overwrite ? 0 : model.tail);
		cr_assert_eq(woke(&rig), model.wake, "seed %llu, step %u", (unsigned long long)seed, i);
	}
	drop(&rig);
}

Test(aux, model)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		schedule(seed);
}
