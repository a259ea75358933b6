/* snapshot_test.c - snapshots: held against a model, taken at every named instant, from other threads and processes, of
 * the kernel's rings, and after the writer's death. */
#include "test.h"

static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include "rb/snapshot.c"
#include "rb/writer.c"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <perfring/event.h>
#include "machine.h"

TestSuite(snapshot, .timeout = 120);

enum {
	KIB = 1024,
	RING = 4096,
	LEVELS = 3, /* the thread, a handler, a handler in a handler */
	FIRST_TYPE = 1000,
	LARGEST = 1 << 9,
	OVERWRITES = PERFRING_RING_BACKWARD | PERFRING_RING_OVERWRITE,
};

static const uint32_t both_ways[] = {OVERWRITES, PERFRING_RING_OVERWRITE};

/* ---- where a race may strike ---- */

static __thread void (*striker)(const char *name);
static __thread unsigned striking;

static void strike(const char *name)
{
	if (!striker || striking)
		return;
	striking = 1;
	striker(name);
	striking = 0;
}

/* ---- records that say where they belong ---- */

/* Behind the header: position of its end, sequence number of its level, then words made of both. */
static uint64_t word_of(uint64_t end, uint64_t sequence, uint64_t i)
{
	return (end ^ sequence << 40) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static uint64_t sequences[LEVELS];

static void encode(uint64_t *space, uint64_t size, uint64_t end, unsigned level, uint64_t sequence)
{
	struct perf_event_header header = {FIRST_TYPE + level, 0, (uint16_t)size};
	uint64_t i;

	memcpy(space, &header, sizeof(header));
	space[1] = end;
	space[2] = sequence;
	for (i = 3; i < size / 8; i++)
		space[i] = word_of(end, sequence, i);
}

static bool is_intact(const struct perf_event_header *record)
{
	const uint64_t *words = (const uint64_t *)(const void *)record;
	uint64_t i;

	if (record->size < 24 || record->type < FIRST_TYPE || record->type >= FIRST_TYPE + LEVELS || record->misc)
		return false;
	for (i = 3; i < record->size / 8; i++)
		if (words[i] != word_of(words[1], words[2], i))
			return false;
	return true;
}

/* 24 is the smallest. */
static bool write_one(struct perfring_writer *writer, unsigned level, uint64_t size)
{
	struct perfring_claim claim = {.end = 0};
	void *space = perfring_writer_reserve(writer, NULL, size, &claim);

	if (!space)
		return false;
	encode(space, size, claim.end, level, ++sequences[level]);
	strike("encoded");
	perfring_writer_commit(writer, &claim);
	return true;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t random_size(uint64_t *state)
{
	return 24 + next_random(state) % (LARGEST / 8 - 2) * 8;
}

/* What is wrong with a snapshot of such records; NULL: nothing.  dense: no filler may lie between them.  (A handler may
 * leave one where it comes at the wrong instant: rb/writer.c.) */
static const char *wrong_with(struct perfring_snapshot *snapshot, bool dense)
{
	const struct perf_event_header *record;
	uint64_t last[LEVELS] = {0}, end = 0, count = 0;
	const uint64_t *words;
	unsigned level;

	if (snapshot->fault.what)
		return snapshot->fault.what;
	while (perfring_snapshot_next(snapshot, &record)) {
		words = (const uint64_t *)(const void *)record;
		if (record->type == PERF_RECORD_LOST)
			return "a loss, in a ring that overwrites";
		if (!is_intact(record))
			return "a torn record";
		level = record->type - FIRST_TYPE;
		if (last[level] && words[2] != last[level] + 1)
			return "a hole in a sequence";
		last[level] = words[2];
		if (count && (dense ? words[1] - record->size != end : words[1] - record->size < end))
			return "not where the one before ended";
		end = words[1];
		count++;
	}
	if (count != snapshot->count)
		return "miscounted";
	if (count && (dense ? end != snapshot->published : end > snapshot->published))
		return "the newest is missing";
	if (snapshot->oldest > snapshot->published || snapshot->published > snapshot->claimed ||
	    snapshot->claimed - snapshot->oldest > snapshot->size)
		return "the invariant";
	return NULL;
}

/* Of a ring whose writer stands still: what is whole is there.  A record more would have been in reach of `claimed`. */
static const char *wrong_at_rest(const struct perfring_ring *ring, bool dense)
{
	const struct perfring_ring_state *state = perfring_ring_state_of(ring->page);
	struct perfring_snapshot snapshot;
	uint64_t unreported;
	const char *wrong;

	if (perfring_snapshot_take(&snapshot, ring, 1))
		return "not taken";
	wrong = wrong_with(&snapshot, dense);
	if (!wrong && snapshot.published !=
			      (ring->flags & PERFRING_RING_BACKWARD ? -ring->page->data_head : ring->page->data_head))
		wrong = "not up to data_head";
	if (!wrong && snapshot.claimed != state->claimed)
		wrong = "not up to claimed";
	/* A writer of a forward ring leaves out what it is about to overwrite, and then reports its claim. */
	unreported = ring->flags & PERFRING_RING_BACKWARD ? 0 : (uint64_t)LEVELS * LARGEST;
	if (!wrong && snapshot.oldest != 0 &&
	    snapshot.claimed - snapshot.oldest + unreported + LARGEST <= snapshot.size)
		wrong = "one more was whole";
	perfring_snapshot_close(&snapshot);
	return wrong;
}

/* ---- rings ---- */

static void make(struct perfring_ring *ring, uint32_t pages, uint32_t flags, const char *file)
{
	struct perfring_ring_options options = {.pages = pages, .flags = flags, .file = file};
	int ret = perfring_ring_create(ring, &options);

	cr_assert_eq(ret, 0, "perfring_ring_create: %d", ret);
}

static struct perfring_writer *open_writer(struct perfring_ring *ring)
{
	struct perfring_writer *writer;
	int ret = perfring_writer_open(&writer, ring, NULL);

	cr_assert_eq(ret, 0, "perfring_writer_open: %d", ret);
	return writer;
}

static void take(struct perfring_snapshot *snapshot, const struct perfring_ring *ring)
{
	int ret = perfring_snapshot_take(snapshot, ring, 0);

	cr_assert_eq(ret, 0, "perfring_snapshot_take: %d", ret);
}

/* ---- a model ---- */

/* Any size from 8, with a body that tells which. */
static void write_plain(struct perfring_writer *writer, uint32_t nr, uint64_t size)
{
	struct perf_event_header header = {FIRST_TYPE + nr, 0, (uint16_t)size};
	struct perfring_claim claim = {.end = 0};
	unsigned char *space = perfring_writer_reserve(writer, NULL, size, &claim);

	cr_assert_not_null(space);
	memcpy(space, &header, sizeof(header));
	memset(space + 8, (int)(nr % 251), size - 8);
	perfring_writer_commit(writer, &claim);
}

static void check_plain(const struct perf_event_header *record, uint32_t nr, uint64_t size)
{
	const unsigned char *body = (const unsigned char *)record + 8;
	uint64_t i;

	cr_assert_eq(record->type, FIRST_TYPE + nr);
	cr_assert_eq(record->size, size);
	for (i = 0; i < size - 8; i++)
		cr_assert_eq(body[i], nr % 251);
}

/* Of `nr` records, the newest that fit into the ring together, both ways. */
static void check_model(const struct perfring_ring *ring, const uint16_t *sizes, uint32_t nr)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	uint32_t first = nr, i;
	uint64_t sum = 0, all = 0;

	while (first && sum + sizes[first - 1] <= ring->size)
		sum += sizes[--first];
	for (i = 0; i < nr; i++)
		all += sizes[i];
	take(&snapshot, ring);
	cr_assert_null(snapshot.fault.what);
	cr_assert_eq(snapshot.count, nr - first);
	cr_assert_eq(snapshot.published, all);
	cr_assert_eq(snapshot.claimed, all);
	cr_assert_eq(snapshot.oldest, all - sum);
	for (i = first; i < nr; i++) {
		cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 1);
		check_plain(record, i, sizes[i]);
	}
	cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 0);
	cr_assert_null(record);
	for (i = nr; i-- > first;) {
		cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
		cr_assert_eq(record->type, FIRST_TYPE + i);
		cr_assert_eq(record->size, sizes[i]);
	}
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 0);
	perfring_snapshot_close(&snapshot);
}

static uint16_t random_plain(uint64_t *state)
{
	uint64_t below = UINT64_C(2) << next_random(state) % 9;

	return (uint16_t)(8 + next_random(state) % (below - 1) * 8);
}

Test(snapshot, every_size_over_many_laps)
{
	static const uint16_t fixed[] = {8, 16, 24, 40, 64, 1000, 1024, 2048, 4080, 4088};
	uint16_t sizes[600];
	struct perfring_ring ring;
	struct perfring_writer *writer;
	uint64_t state = 1;
	uint32_t round, nr, pages;

	for (round = 0; round < 4 * sizeof(fixed) / sizeof(fixed[0]) + 40; round++) {
		pages = round % 3 == 2 ? 4 : 1;
		make(&ring, pages, both_ways[round % 2], NULL);
		writer = open_writer(&ring);
		check_model(&ring, sizes, 0);
		for (nr = 0; nr < sizeof(sizes) / sizeof(sizes[0]); nr++) {
			if (round < 4 * sizeof(fixed) / sizeof(fixed[0]))
				sizes[nr] = fixed[round / 4];
			else /* mostly small */
				sizes[nr] = random_plain(&state);
			write_plain(writer, nr, sizes[nr]);
			if (nr < 20 || nr % 7 == 0 || nr > 560)
				check_model(&ring, sizes, nr + 1);
		}
		perfring_writer_close(writer);
		perfring_ring_close(&ring);
	}
}

Test(snapshot, what_is_not_taken)
{
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;

	memset(&ring, 0, sizeof(ring));
	cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), -EINVAL);
	/* A kernel's ring that is called backward, and is not. */
	if (sizeof(long) == 8) {
		make(&ring, 1, OVERWRITES, NULL);
		ring.flags = OVERWRITES;
		ring.page->data_head = 4096;
		cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), -EINVAL);
		cr_assert_null(snapshot.data);
		perfring_ring_close(&ring);
	}
}

static void leave_fillers_out(uint32_t flags)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_claim claim = {.end = 0};
	struct perfring_ring ring;

	make(&ring, 1, flags, NULL);
	writer = open_writer(&ring);
	write_plain(writer, 1, 24);
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 40, &claim));
	write_plain(writer, 2, 24); /* nested: the space below cannot be given back */
	perfring_writer_discard(writer, &claim);
	write_plain(writer, 3, 24);
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 3);
	cr_assert_eq(snapshot.published, 24 + 40 + 24 + 24);
	cr_assert_eq(snapshot.oldest, 0);
	perfring_snapshot_next(&snapshot, &record);
	check_plain(record, 1, 24);
	perfring_snapshot_next(&snapshot, &record);
	check_plain(record, 2, 24);
	perfring_snapshot_next(&snapshot, &record);
	check_plain(record, 3, 24);
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

Test(snapshot, fillers_are_not_handed_out)
{
	leave_fillers_out(OVERWRITES);
	leave_fillers_out(PERFRING_RING_OVERWRITE);
}

/* ---- docs/abi.md 15 and 7.8, on ours and on the kernel's ---- */

struct backward {
	struct perfring_ring ring;
	void *subject;
	void (*write)(struct backward *backward, uint32_t nr); /* 24 bytes each */
	void (*pause)(struct backward *backward, bool paused);
	uint32_t type;
	int fd;
	unsigned char *fresh;
};

static void hold_to_vectors(struct backward *backward)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	uint64_t i, lost;

	take(&snapshot, &backward->ring);
	cr_assert_eq(snapshot.count, 0);
	perfring_snapshot_close(&snapshot);
	backward->write(backward, 1);
	cr_assert_eq(backward->ring.page->data_head, UINT64_C(-24));
	backward->write(backward, 499);
	cr_assert_eq(backward->ring.page->data_head, UINT64_C(-12000));
	backward->pause(backward, true);
	backward->write(backward, 7);
	cr_assert_eq(backward->ring.page->data_head, UINT64_C(-12000));
	take(&snapshot, &backward->ring);
	cr_assert_null(snapshot.fault.what);
	cr_assert_eq(snapshot.count, 170);
	cr_assert_eq(snapshot.published, 12000);
	cr_assert_eq(snapshot.oldest, 12000 - 4080);
	for (i = 0; perfring_snapshot_previous(&snapshot, &record); i++) {
		cr_assert_eq((const unsigned char *)record - snapshot.data, (ptrdiff_t)(24 * i));
		cr_assert_eq(record->type, backward->type);
		cr_assert_eq(record->size, 24);
	}
	cr_assert_eq(i, 170);
	perfring_snapshot_close(&snapshot);
	/* LOST 7 lies at the lower address, so it is read first. */
	backward->pause(backward, false);
	backward->write(backward, 1);
	backward->pause(backward, true);
	cr_assert_eq(backward->ring.page->data_head, UINT64_C(-12048));
	take(&snapshot, &backward->ring);
	cr_assert_eq(snapshot.count, 170);
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	memcpy(&lost, (const unsigned char *)record + 16, 8);
	cr_assert_eq(lost, 7);
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	cr_assert_eq(record->type, backward->type);
	perfring_snapshot_close(&snapshot);
}

static void write_ours(struct backward *backward, uint32_t nr)
{
	uint64_t record[3] = {0};
	struct perf_event_header header = {backward->type, 0, 24};

	memcpy(record, &header, sizeof(header));
	while (nr--)
		perfring_writer_write(backward->subject, NULL, record, 24);
}

static void pause_ours(struct backward *backward, bool paused)
{
	perfring_writer_pause(backward->subject, paused);
}

Test(snapshot, vectors_on_our_ring)
{
	struct backward backward = {.write = write_ours, .pause = pause_ours, .type = PERF_RECORD_SAMPLE};

	make(&backward.ring, 1, OVERWRITES, NULL);
	backward.subject = open_writer(&backward.ring);
	hold_to_vectors(&backward);
	perfring_writer_close(backward.subject);
	perfring_ring_close(&backward.ring);
}

/* One page fault each, and no other: a sanitizer's shadow would have its own. */
__attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"))) static void write_kernel(
	struct backward *backward, uint32_t nr)
{
	ioctl(backward->fd, PERF_EVENT_IOC_ENABLE, 0);
	while (nr--) {
		*(volatile unsigned char *)backward->fresh = 1;
		backward->fresh += 4096;
	}
	ioctl(backward->fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void pause_kernel(struct backward *backward, bool paused)
{
	cr_assert_eq(ioctl(backward->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, (unsigned long)paused), 0);
}

Test(snapshot, vectors_on_a_ring_of_the_kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.disabled = 1,
		.exclude_kernel = 1,
		.write_backward = 1,
	};
	struct backward backward = {.write = write_kernel, .pause = pause_kernel, .type = PERF_RECORD_SAMPLE};
	unsigned char *fresh;
	int ret;

	if (sysconf(_SC_PAGESIZE) != RING)
		cr_skip_test("SKIP-ENV: sysconf: pages of %ld bytes: a machine with pages of 4096",
			     sysconf(_SC_PAGESIZE));
	backward.fd = perfring_event_open(&attr, 0, -1, -1, 0);
	if (backward.fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: kernel.perf_event_paranoid <= 2", strerror(-backward.fd));
	ret = perfring_ring_map(&backward.ring, backward.fd, 1, PERFRING_RING_OVERWRITE);
	if (ret)
		cr_skip_test("SKIP-ENV: mmap: %s: space in kernel.perf_event_mlock_kb", strerror(-ret));
	fresh = mmap(NULL, 1024 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(fresh, MAP_FAILED);
	madvise(fresh, 1024 * 4096, MADV_NOHUGEPAGE);
	backward.fresh = fresh;
	/* What this code itself may fault on, it faults on now. */
	write_kernel(&backward, 0);
	hold_to_vectors(&backward);
	perfring_ring_close(&backward.ring);
	close(backward.fd);
	munmap(fresh, 1024 * 4096);
}

/* ---- rings that stop: what is unread ---- */

static struct perfring_ring *struck_ring;
static struct perfring_writer *struck_writer;
static uint64_t strikes, struck_tail;

/* The reader returns while the copy is made, and the writer uses it. */
static void return_some(const char *name)
{
	unsigned i;

	if (strcmp(name, "snapshot_copied"))
		return;
	perfring_page_return(struck_ring->page, struck_tail);
	for (i = 0; i < 40; i++)
		cr_assert(write_one(struck_writer, 0, 24));
}

static void take_struck(struct perfring_snapshot *snapshot, struct perfring_ring *ring, struct perfring_writer *writer,
			uint64_t tail)
{
	struck_ring = ring;
	struck_writer = writer;
	struck_tail = tail;
	striker = return_some;
	take(snapshot, ring);
	striker = NULL;
}

Test(snapshot, a_falling_ring_that_stops)
{
	struct backward backward = {.type = PERF_RECORD_SAMPLE};
	struct perfring_ring *ring = &backward.ring;
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	uint64_t lost;
	unsigned i;

	make(ring, 1, PERFRING_RING_BACKWARD, NULL);
	backward.subject = writer = open_writer(ring);
	write_ours(&backward, 300);
	cr_assert_eq(ring->page->data_head, UINT64_C(-4080));
	cr_assert_eq(perfring_writer_lost(writer), 130);
	take(&snapshot, ring);
	cr_assert_eq(snapshot.count, 170);
	perfring_snapshot_close(&snapshot);
	/* The older half is returned. */
	perfring_page_return(ring->page, UINT64_C(-2040));
	take(&snapshot, ring);
	cr_assert_eq(snapshot.count, 85);
	cr_assert_eq(snapshot.oldest, 2040);
	perfring_snapshot_close(&snapshot);
	/* tail := head frees everything. */
	perfring_page_return(ring->page, ring->page->data_head);
	take(&snapshot, ring);
	cr_assert_eq(snapshot.count, 0);
	perfring_snapshot_close(&snapshot);
	write_ours(&backward, 1);
	cr_assert_eq(ring->page->data_head, UINT64_C(-4128));
	take(&snapshot, ring);
	cr_assert_eq(snapshot.count, 2);
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	memcpy(&lost, (const unsigned char *)record + 16, 8);
	cr_assert_eq(lost, 130);
	perfring_snapshot_close(&snapshot);
	perfring_page_return(ring->page, ring->page->data_head);
	for (i = 0; i < 170; i++)
		cr_assert(write_one(writer, 0, 24));
	take_struck(&snapshot, ring, writer, UINT64_C(-4128) - 24 * 50);
	cr_assert_eq(snapshot.published, 4128 + 170 * 24);
	cr_assert_eq(snapshot.oldest, 4128 + 50 * 24);
	cr_assert_eq(snapshot.count, 120);
	cr_assert_null(wrong_with(&snapshot, true));
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(ring);
}

/* ---- a ring that does not fall ---- */

Test(snapshot, a_ring_that_rises)
{
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	unsigned i;

	make(&ring, 1, 0, NULL);
	writer = open_writer(&ring);
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 0);
	perfring_snapshot_close(&snapshot);
	for (i = 0; i < 170; i++)
		cr_assert(write_one(writer, 0, 24));
	cr_assert_not(write_one(writer, 0, 24));
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 170);
	cr_assert_eq(snapshot.oldest, 0);
	cr_assert_null(wrong_with(&snapshot, true));
	perfring_snapshot_close(&snapshot);
	perfring_page_return(ring.page, 24 * 20);
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 150);
	cr_assert_eq(snapshot.oldest, 24 * 20);
	cr_assert_null(wrong_with(&snapshot, true));
	perfring_snapshot_close(&snapshot);
	take_struck(&snapshot, &ring, writer, 24 * 50);
	cr_assert_eq(snapshot.count, 120);
	cr_assert_eq(snapshot.oldest, 24 * 50);
	cr_assert_null(wrong_with(&snapshot, true));
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- forced instants ---- */

static uint64_t lap_bytes, lap_strikes;
static const char *lap_point;

static void write_meanwhile(const char *name)
{
	uint64_t written;

	if (strcmp(name, lap_point) || !lap_strikes)
		return;
	lap_strikes--;
	strikes++;
	for (written = 0; written < lap_bytes; written += 64)
		write_one(struck_writer, 0, 64);
}

/* The writer goes on by so many bytes, at one of two places, the first so many times. */
static int taken_meanwhile(struct perfring_snapshot *snapshot, const char *point, uint64_t bytes, uint64_t times,
			   unsigned tries)
{
	int ret;

	lap_point = point;
	lap_bytes = bytes;
	lap_strikes = times;
	strikes = 0;
	striker = write_meanwhile;
	ret = perfring_snapshot_take(snapshot, struck_ring, tries);
	striker = NULL;
	return ret;
}

static void lap(uint32_t flags)
{
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;
	const char *wrong;
	uint64_t i, bytes;

	make(&ring, 1, flags, NULL);
	struck_ring = &ring;
	struck_writer = open_writer(&ring);
	for (i = 0; i < 100; i++)
		write_one(struck_writer, 0, 64);
	/* Behind the copy: the oldest are not believed, though the copy still had them. */
	for (bytes = 64; bytes < RING; bytes += 64) {
		cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_copied", bytes, UINT64_MAX, 1), 0);
		cr_assert_eq(snapshot.count, (RING - bytes) / 64);
		wrong = wrong_with(&snapshot, true);
		cr_assert_null(wrong, "%s", wrong);
		/* History: nothing was being written. */
		cr_assert_eq(snapshot.claimed, snapshot.published);
		perfring_snapshot_close(&snapshot);
	}
	/* Before it: the copy has them no more. */
	for (bytes = 64; bytes < RING; bytes += 64) {
		cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_observed", bytes, 1, 1), 0);
		cr_assert_eq(snapshot.count, (RING - bytes) / 64);
		wrong = wrong_with(&snapshot, true);
		cr_assert_null(wrong, "%s", wrong);
		perfring_snapshot_close(&snapshot);
	}
	/* Lapped: again, as often as asked for. */
	cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_copied", RING, 3, 4), 0);
	cr_assert_eq(strikes, 3);
	cr_assert_eq(snapshot.count, RING / 64);
	perfring_snapshot_close(&snapshot);
	cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_copied", RING, UINT64_MAX, 4), -EAGAIN);
	cr_assert_eq(strikes, 4);
	cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_copied", 10 * RING, UINT64_MAX, 0), -EAGAIN);
	cr_assert_eq(strikes, 16);
	cr_assert_eq(taken_meanwhile(&snapshot, "snapshot_observed", 3 * RING, 15, 0), 0);
	cr_assert_eq(snapshot.count, RING / 64);
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(struck_writer);
	perfring_ring_close(&ring);
}

Test(snapshot, lapped)
{
	lap(OVERWRITES);
	lap(PERFRING_RING_OVERWRITE);
}

static struct perfring_claim struck_claim;
static uint64_t struck_claimed;

static void finish(const char *name)
{
	if (strcmp(name, "snapshot_copied"))
		return;
	if (struck_claim.size)
		perfring_writer_discard(struck_writer, &struck_claim);
	else
		perfring_ring_state_of(struck_ring->page)->claimed = struck_claimed;
}

Test(snapshot, finished_meanwhile)
{
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;
	unsigned i;

	make(&ring, 1, OVERWRITES, NULL);
	struck_ring = &ring;
	struck_writer = open_writer(&ring);
	for (i = 0; i < 100; i++)
		write_one(struck_writer, 0, 64);
	/* The space was given out before and is finished behind the copy: history, not what was being written. */
	cr_assert_not_null(perfring_writer_reserve(struck_writer, NULL, 72, &struck_claim));
	striker = finish;
	take(&snapshot, &ring);
	striker = NULL;
	cr_assert_eq(snapshot.published, 6400);
	cr_assert_eq(snapshot.claimed, 6400);
	cr_assert_eq(snapshot.count, (RING - 72) / 64);
	perfring_snapshot_close(&snapshot);
	/* Scribbled over behind the copy. */
	struck_claim.size = 0;
	struck_claimed = 6472 + RING + 8;
	striker = finish;
	cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), -EBADMSG);
	striker = NULL;
	cr_assert_not_null(snapshot.fault.what);
	perfring_writer_close(struck_writer);
	perfring_ring_close(&ring);
}

/* Every named place of one record, counted; at each a nested record, and from there on at each a snapshot. */
static uint64_t visited, nested_at, second_at, looks;
static const char *wrong_look, *wrong_place;
static bool second_inside;

static void look(const char *name)
{
	const char *wrong;

	/* The snapshot's own places. */
	if (!strncmp(name, "snapshot_", 9))
		return;
	looks++;
	wrong = wrong_at_rest(struck_ring, true);
	if (wrong && !wrong_look) {
		wrong_look = wrong;
		wrong_place = name;
	}
}

static void interrupt_second(const char *name)
{
	striking = 1;
	look(name);
	if (++visited == second_at)
		write_one(struck_writer, 2, 136);
	striking = 0;
}

static void interrupt_first(const char *name)
{
	uint64_t mine;

	look(name);
	mine = ++visited;
	if (mine != nested_at)
		return;
	/* A handler, which is interrupted in its turn, or only looked into. */
	striker = second_inside ? interrupt_second : look;
	visited = 0;
	striking = 0;
	write_one(struck_writer, 1, 104);
	striking = 1;
	striker = interrupt_first;
	visited = mine;
}

/* One record of 72 bytes, with nested ones at two places.  Returns how many places there were. */
static uint64_t interrupted(uint64_t at, uint64_t inside)
{
	struct perfring_claim claim = {.end = 0};
	void *space;

	nested_at = at;
	second_inside = inside;
	second_at = inside;
	visited = 0;
	striker = interrupt_first;
	space = perfring_writer_reserve(struck_writer, NULL, 72, &claim);
	cr_assert_not_null(space);
	strike("given");
	encode(space, 72, claim.end, 0, ++sequences[0]);
	strike("encoded");
	perfring_writer_commit(struck_writer, &claim);
	striker = NULL;
	cr_assert_null(wrong_at_rest(struck_ring, true));
	return visited;
}

static void look_at_every_place(uint32_t flags)
{
	struct perfring_ring ring;
	uint64_t places, i, j;

	memset(sequences, 0, sizeof(sequences));
	make(&ring, 1, flags, NULL);
	struck_ring = &ring;
	struck_writer = open_writer(&ring);
	for (i = 0; i < 200; i++)
		write_one(struck_writer, 0, 24 + i % 7 * 8);
	places = interrupted(0, 0);
	cr_assert_geq(places, 10);
	looks = 0;
	for (i = 1; i <= places + 2; i++) {
		interrupted(i, 0);
		cr_assert_null(wrong_look, "nested at place %d: %s, seen at %s", (int)i, wrong_look, wrong_place);
		for (j = 1; j <= places + 2; j++) {
			interrupted(i, j);
			cr_assert_null(wrong_look, "nested at place %d and in it at %d: %s, seen at %s", (int)i, (int)j,
				       wrong_look, wrong_place);
		}
	}
	cr_assert_gt(looks, 1000);
	perfring_writer_close(struck_writer);
	perfring_ring_close(&ring);
}

Test(snapshot, at_every_named_place)
{
	look_at_every_place(OVERWRITES);
	look_at_every_place(PERFRING_RING_OVERWRITE);
}

/* ---- what was being written ---- */

Test(snapshot, unfinished)
{
	struct perf_event_header header = {FIRST_TYPE + 1, 0, 104};
	const struct perf_event_header *record;
	struct perfring_claim outer = {.end = 0}, inner = {.end = 0};
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t position, size;
	void *space;
	unsigned i;

	make(&ring, 1, OVERWRITES, NULL);
	writer = open_writer(&ring);
	for (i = 0; i < 100; i++)
		write_one(writer, 0, 64);
	take(&snapshot, &ring);
	position = snapshot.claimed;
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 0);
	cr_assert_null(record);
	perfring_snapshot_close(&snapshot);
	/* Room was given out, no more; in it a handler that has finished; and one that has encoded its header. */
	cr_assert_not_null(perfring_writer_reserve(writer, NULL, 72, &outer));
	write_one(writer, 1, 48);
	space = perfring_writer_reserve(writer, NULL, 104, &inner);
	cr_assert_not_null(space);
	memcpy(space, &header, sizeof(header));
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.published, 6400);
	cr_assert_eq(snapshot.claimed, 6400 + 72 + 48 + 104);
	cr_assert_eq(snapshot.count, (RING - 72 - 48 - 104) / 64);
	position = snapshot.claimed;
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 1);
	cr_assert_eq(size, 104);
	cr_assert_eq(record->type, FIRST_TYPE + 1);
	cr_assert_eq(position, 6400 + 72 + 48);
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 1);
	cr_assert_eq(size, 48);
	cr_assert(is_intact(record));
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 1);
	cr_assert_eq(size, 72);
	cr_assert_eq(record->type, PERFRING_FILLER_TYPE);
	cr_assert_eq(record->misc, PERFRING_FILLER_MISC);
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 0);
	perfring_snapshot_close(&snapshot);
	/* A header that cannot be. */
	header.size = 4000;
	memcpy(space, &header, sizeof(header));
	take(&snapshot, &ring);
	position = snapshot.claimed;
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 1);
	cr_assert_null(record);
	cr_assert_eq(size, 72 + 48 + 104);
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 0);
	/* A position from nowhere. */
	position = 0;
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 0);
	position = UINT64_MAX - 7;
	cr_assert_eq(perfring_snapshot_unfinished(&snapshot, &position, &record, &size), 0);
	perfring_snapshot_close(&snapshot);
	perfring_writer_discard(writer, &inner);
	perfring_writer_discard(writer, &outer);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- a writer that never rests ---- */

static struct perfring_writer *live_writer;
static uint64_t live_states[LEVELS];
static int live_over;

static void write_nested(int number)
{
	unsigned level = number == SIGALRM ? 1 : 2;

	write_one(live_writer, level, random_size(&live_states[level]));
	handler_ends();
}

static uint64_t cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* SIGALRM by one clock, SIGUSR1 by another: each interrupts the calling thread, and the second the handler of the
 * first. */
static void start_interrupting(uint64_t first_ns, uint64_t second_ns, timer_t timers[2])
{
	uint64_t periods[2] = {first_ns, second_ns};
	int numbers[2] = {SIGALRM, SIGUSR1};
	struct sigaction action;
	struct sigevent event;
	struct itimerspec spec;
	unsigned i, k;
	uint64_t taken;

	for (i = 0; i < LEVELS; i++)
		live_states[i] = 88172645463325252u + i;
	for (i = 0; i < 2; i++) {
		memset(&action, 0, sizeof(action));
		action.sa_handler = write_nested;
		action.sa_flags = SA_RESTART;
		sigemptyset(&action.sa_mask);
		if (i == 1)
			sigaddset(&action.sa_mask, SIGALRM);
		sigaction(numbers[i], &action, NULL);
		memset(&event, 0, sizeof(event));
		event.sigev_notify = SIGEV_THREAD_ID;
		event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		event.sigev_signo = numbers[i];
		timer_create(CLOCK_MONOTONIC, &event, &timers[i]);
		/* Where a handler is slow (qemu-user), they must not fill the ring within one record: that is a loss.  By its
		 * own clock: while others had the processor it was not slow. */
		taken = cpu_time();
		for (k = 0; k < 8; k++)
			raise(numbers[i]);
		taken = cpu_time() - taken;
		if (periods[i] < taken)
			periods[i] = taken;
		memset(&spec, 0, sizeof(spec));
		spec.it_value.tv_nsec = spec.it_interval.tv_nsec = (long)periods[i];
		timer_settime(timers[i], 0, &spec, NULL);
	}
}

/* Once in a while: the thread sanitizer (of LLVM 14) blocks every signal while it delivers some, and where a handler of theirs
 * delivers more, it forgets what was blocked before.  From then on none would come. */
static void unblock(void)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGALRM);
	sigaddset(&both, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &both, NULL);
}

static void *write_for_ever(void *subject)
{
	timer_t timers[2];
	uint64_t i;

	live_writer = open_writer(subject);
	start_interrupting(61000, 97000, timers);
	for (i = 0; !__atomic_load_n(&live_over, __ATOMIC_RELAXED); i++) {
		write_one(live_writer, 0, random_size(&live_states[0]));
		if (i % 64 == 0)
			unblock();
	}
	timer_delete(timers[0]);
	timer_delete(timers[1]);
	perfring_writer_close(live_writer);
	return NULL;
}

static void race(uint32_t flags)
{
	uint64_t nr = 0, lapped = 0, oldest_lost = 0, nested = 0;
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;
	const char *wrong;
	pthread_t thread;
	int ret;

	make(&ring, 16, flags, NULL);
	__atomic_store_n(&live_over, 0, __ATOMIC_RELAXED);
	memset(sequences, 0, sizeof(sequences));
	cr_assert_eq(pthread_create(&thread, NULL, write_for_ever, &ring), 0);
	/* On a machine that is busy with others the race has not been run by then. */
	while (nr < 10000 || ((oldest_lost <= 100 || nested <= 100) && nr < 300000)) {
		ret = perfring_snapshot_take(&snapshot, &ring, 0);
		if (ret == -EAGAIN) {
			lapped++;
			continue;
		}
		cr_assert_eq(ret, 0);
		wrong = wrong_with(&snapshot, false);
		cr_assert_null(wrong, "snapshot %d: %s", (int)nr, wrong);
		if (!snapshot.oldest) { /* no lap yet */
			perfring_snapshot_close(&snapshot);
			continue;
		}
		/* One that lost none ends within a record of a whole ring. */
		oldest_lost += snapshot.published - snapshot.oldest + LARGEST < snapshot.size;
		while (perfring_snapshot_previous(&snapshot, &record))
			nested += record->type != FIRST_TYPE;
		perfring_snapshot_close(&snapshot);
		nr++;
	}
	__atomic_store_n(&live_over, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* The race was run, and the writer was interrupted. */
	cr_assert_gt(oldest_lost, 100, "%d lost some, %d times lapped", (int)oldest_lost, (int)lapped);
	cr_assert_gt(nested, 100);
	cr_assert(sequences[0] && sequences[1] && sequences[2]);
	perfring_ring_close(&ring);
}

Test(snapshot, of_a_writer_that_never_rests)
{
	race(OVERWRITES);
}

Test(snapshot, of_a_forward_writer_that_never_rests)
{
	race(PERFRING_RING_OVERWRITE);
}

/* ---- other processes ---- */

static int look_from_outside(const char *path, int fd, uint64_t published)
{
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;
	int other = path ? open(path, O_RDONLY | O_CLOEXEC) : fd, ret;

	if (other < 0 || perfring_ring_attach(&ring, other, PERFRING_RING_READ_ONLY, NULL))
		return 2;
	if (perfring_snapshot_take(&snapshot, &ring, 0))
		return 3;
	ret = snapshot.published != published || snapshot.count < 50 || wrong_with(&snapshot, true) ? 4 : 0;
	perfring_snapshot_close(&snapshot);
	perfring_ring_close(&ring);
	return ret;
}

static void leave_child(int status)
{
	syscall(SYS_exit_group, status);
}

Test(snapshot, from_another_process)
{
	struct perfring_writer *writer;
	struct perfring_ring ring;
	char path[64];
	int status, by;
	pid_t child;
	unsigned i;

	make(&ring, 1, OVERWRITES, NULL);
	writer = open_writer(&ring);
	for (i = 0; i < 200; i++)
		write_one(writer, 0, 64);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), ring.fd);
	for (by = 0; by < 2; by++) {
		child = fork();
		if (child == 0)
			leave_child(look_from_outside(by ? path : NULL, ring.fd, 200 * 64));
		cr_assert_gt(child, 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFEXITED(status));
		cr_assert_eq(WEXITSTATUS(status), 0, "%s: %d", by ? path : "the fd", WEXITSTATUS(status));
	}
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* ---- flight recorder ---- */

struct told {
	uint64_t ready;
	uint64_t committed; /* the thread's records below this position were committed */
};

static char flight_path[128];

static void name_flight(const char *test)
{
	const char *folder = getenv("TMPDIR");

	snprintf(flight_path, sizeof(flight_path), "%s/perfring-%s-%d", folder ? folder : "/tmp", test, (int)getpid());
}

/* Reads what a dead process left.  Returns what is wrong, or NULL. */
static const char *wrong_with_file(const char *path, bool dense, uint64_t committed, uint64_t *unfinished)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	uint64_t position, size, broken = 0;
	struct perfring_ring ring;
	const char *wrong;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || perfring_ring_attach(&ring, fd, PERFRING_RING_READ_ONLY, NULL)) {
		if (fd >= 0)
			close(fd);
		return "not readable";
	}
	close(fd);
	wrong = wrong_at_rest(&ring, dense);
	if (!wrong && !perfring_snapshot_take(&snapshot, &ring, 1)) {
		if (snapshot.published < committed)
			wrong = "what was committed is missing";
		position = snapshot.claimed;
		while (perfring_snapshot_unfinished(&snapshot, &position, &record, &size)) {
			++*unfinished;
			broken += !record || !is_intact(record);
		}
		/* The others in it are handlers' that had finished. */
		if (!wrong && broken > LEVELS)
			wrong = "more was being written than there were writers";
		perfring_snapshot_close(&snapshot);
	}
	perfring_ring_close(&ring);
	return wrong;
}

static void fly(const char *path, struct told *told, uint64_t seed)
{
	struct perfring_ring_options options = {
		.pages = 1 << seed % 5, .flags = both_ways[seed % 2] | PERFRING_RING_REPLACE, .file = path};
	struct perfring_ring ring;
	struct perfring_claim claim = {.end = 0};
	timer_t timers[2];
	uint64_t size, i;
	void *space;

	if (perfring_ring_create(&ring, &options) || perfring_writer_open(&live_writer, &ring, NULL))
		leave_child(1);
	start_interrupting(50000 + seed % 7 * 10000, 70000 + seed % 5 * 10000, timers);
	__atomic_store_n(&told->ready, 1, __ATOMIC_RELEASE);
	for (i = 0;; i++) {
		if (i % 64 == 0)
			unblock();
		size = random_size(&live_states[0]);
		space = perfring_writer_reserve(live_writer, NULL, size, &claim);
		if (!space)
			leave_child(2);
		encode(space, size, claim.end, 0, ++sequences[0]);
		perfring_writer_commit(live_writer, &claim);
		__atomic_store_n(&told->committed, claim.end, __ATOMIC_RELEASE);
	}
}

Test(snapshot, a_thousand_that_were_killed)
{
	struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t state = 2463534242u, unfinished = 0, i;
	struct timespec nap = {0, 0};
	const char *wrong;
	int status;
	pid_t child;

	cr_assert_neq(told, MAP_FAILED);
	name_flight("killed");
	for (i = 0; i < trials(1000); i++) {
		memset(told, 0, sizeof(*told));
		child = fork();
		if (child == 0)
			fly(flight_path, told, i);
		cr_assert_gt(child, 0);
		nap.tv_nsec = 20000;
		while (!__atomic_load_n(&told->ready, __ATOMIC_ACQUIRE) && waitpid(child, &status, WNOHANG) == 0)
			nanosleep(&nap, NULL);
		nap.tv_nsec = (long)(next_random(&state) % (i % 2 ? 3000000 : 300000));
		nanosleep(&nap, NULL);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		cr_assert(WIFSIGNALED(status), "child %d ended by itself: %d", (int)i, WEXITSTATUS(status));
		wrong = wrong_with_file(flight_path, false, __atomic_load_n(&told->committed, __ATOMIC_ACQUIRE),
					&unfinished);
		cr_assert_null(wrong, "child %d: %s", (int)i, wrong);
	}
	unlink(flight_path);
	/* Some died in mid record. */
	cr_assert_gt(unfinished, 0);
	munmap(told, 4096);
}

/* ---- killed at every named place ---- */

static void die(const char *name)
{
	(void)name;
	if (++visited == nested_at)
		kill(getpid(), SIGKILL);
}

/* Two laps undisturbed; then records with others nested in them, a discard, a transaction: it dies at the n-th place,
 * or ends with 0. */
static void fly_to_place(const char *path, struct told *told, uint32_t flags, uint64_t place)
{
	struct perfring_ring_options options = {.pages = 1, .flags = flags | PERFRING_RING_REPLACE, .file = path};
	struct perfring_claim outer = {.end = 0}, inner = {.end = 0};
	struct perfring_ring ring;
	void *space, *second;
	unsigned i;

	if (perfring_ring_create(&ring, &options) || perfring_writer_open(&live_writer, &ring, NULL))
		leave_child(1);
	for (i = 0; i < 200; i++)
		write_one(live_writer, 0, 48);
	told->committed = 200 * 48;
	nested_at = place;
	striker = die;
	write_one(live_writer, 0, 56);
	told->committed += 56;
	space = perfring_writer_reserve(live_writer, NULL, 72, &outer);
	strike("given");
	write_one(live_writer, 1, 104);
	second = perfring_writer_reserve(live_writer, NULL, 40, &inner);
	strike("given");
	write_one(live_writer, 2, 136);
	encode(second, 40, inner.end, 1, ++sequences[1]);
	strike("encoded");
	perfring_writer_commit(live_writer, &inner);
	strike("committed");
	encode(space, 72, outer.end, 0, ++sequences[0]);
	perfring_writer_commit(live_writer, &outer);
	told->committed += 72 + 104 + 40 + 136;
	perfring_writer_reserve(live_writer, NULL, 88, &outer);
	write_one(live_writer, 1, 64);
	perfring_writer_discard(live_writer, &outer);
	told->committed += 88 + 64;
	if (!perfring_writer_begin(live_writer, NULL, 200, 3, &outer))
		leave_child(2);
	for (i = 0; i < 3; i++) {
		space = perfring_writer_take(&outer, 48);
		strike("taken");
		/* The first is the oldest: its end is the lowest. */
		encode(space, 48, outer.end - 200 + (i + 1) * 48, 0, ++sequences[0]);
	}
	perfring_writer_end(live_writer, &outer);
	told->committed += 200;
	write_one(live_writer, 0, 32);
	told->committed += 32;
	leave_child(0);
}

static void kill_at_every_place(uint32_t flags)
{
	struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t unfinished = 0, place;
	const char *wrong;
	int status;
	pid_t child;

	cr_assert_neq(told, MAP_FAILED);
	name_flight("placed");
	for (place = 1;; place++) {
		memset(told, 0, sizeof(*told));
		child = fork();
		if (child == 0)
			fly_to_place(flight_path, told, flags, place);
		cr_assert_gt(child, 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		wrong = wrong_with_file(flight_path, false, told->committed, &unfinished);
		cr_assert_null(wrong, "killed at place %d: %s", (int)place, wrong);
		if (WIFEXITED(status))
			break;
	}
	unlink(flight_path);
	cr_assert_eq(WEXITSTATUS(status), 0);
	cr_assert_geq(place, 50);
	cr_assert_geq(unfinished, place / 2);
	munmap(told, 4096);
}

Test(snapshot, killed_at_every_named_place)
{
	kill_at_every_place(OVERWRITES);
	kill_at_every_place(PERFRING_RING_OVERWRITE);
}

/* ---- memory that lies ---- */

static int take_and_walk(const struct perfring_ring *ring, struct perfring_fault *fault)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	uint64_t position, size;
	int ret = perfring_snapshot_take(&snapshot, ring, 2);

	*fault = snapshot.fault;
	if (ret)
		return ret;
	cr_assert_leq(snapshot.count, ring->size / 8);
	while (perfring_snapshot_next(&snapshot, &record)) {
		cr_assert_geq((const unsigned char *)record, snapshot.data);
		cr_assert_geq(record->size, 8);
		cr_assert_leq((const unsigned char *)record + record->size, snapshot.data + ring->size);
	}
	position = snapshot.claimed;
	while (perfring_snapshot_unfinished(&snapshot, &position, &record, &size))
		cr_assert(!record || (const unsigned char *)record + size <= snapshot.data + ring->size);
	perfring_snapshot_close(&snapshot);
	return 0;
}

Test(snapshot, positions_that_cannot_be)
{
	struct perfring_ring_state *state;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_fault fault;
	struct perfring_ring ring;
	uint64_t published;
	unsigned i;

	make(&ring, 1, OVERWRITES, NULL);
	state = perfring_ring_state_of(ring.page);
	writer = open_writer(&ring);
	for (i = 0; i < 200; i++)
		write_one(writer, 0, 64);
	published = state->claimed;
	cr_assert_eq(published, 200 * 64);

	state->claimed = published - 8;
	cr_assert_eq(take_and_walk(&ring, &fault), -EBADMSG);
	cr_assert_not_null(fault.what);
	cr_assert_eq((uint64_t)fault.at, -published);
	state->claimed = published + RING + 8;
	cr_assert_eq(take_and_walk(&ring, &fault), -EBADMSG);
	state->claimed = published + 4;
	cr_assert_eq(take_and_walk(&ring, &fault), -EBADMSG);
	state->claimed = UINT64_MAX;
	cr_assert_eq(take_and_walk(&ring, &fault), -EBADMSG);
	/* The whole ring is being written: nothing is whole, and that is right. */
	state->claimed = published + RING;
	cr_assert_eq(take_and_walk(&ring, &fault), 0);
	cr_assert_null(fault.what);
	state->claimed = published;
	ring.page->data_head += 4;
	cr_assert_eq(take_and_walk(&ring, &fault), -EBADMSG);
	ring.page->data_head -= 4;

	/* The tenth newest has no size that can be: the nine are handed out. */
	((struct perf_event_header *)(void *)(ring.data + ((9 * 64 - published) & (RING - 1))))->size = 4;
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 9);
	cr_assert_not_null(snapshot.fault.what);
	cr_assert_eq((uint64_t)snapshot.fault.at, 9 * 64 - published);
	cr_assert_eq(snapshot.oldest, published - 9 * 64);
	perfring_snapshot_close(&snapshot);
	((struct perf_event_header *)(void *)(ring.data + ((5 * 64 - published) & (RING - 1))))->size = 60;
	take(&snapshot, &ring);
	cr_assert_eq(snapshot.count, 5);
	cr_assert_str_eq(snapshot.fault.what, "record size is not a multiple of 8");
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}

/* On 32 bits a kernel's data_head is the low half of the position; a reader's data_tail has all of it. */
Test(snapshot, positions_of_a_32_bit_kernel_wrap)
{
	const uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), beyond = (UINT64_C(1) << 32) - 10 * 64;
	const struct perf_event_header *record;
	struct perf_event_mmap_page *page = NULL;
	struct perfring_snapshot snapshot;
	struct perfring_ring ring;
	uint64_t at = beyond;

	cr_assert_eq(posix_memalign((void **)&page, page_size, 2 * page_size), 0);
	memset(page, 0, 2 * page_size);
	cr_assert_eq(perfring_ring_wrap(&ring, page, 2 * page_size), 0);
	page->data_tail = beyond;
	for (unsigned i = 0; i < 20; i++, at += 64)
		encode((uint64_t *)(void *)((char *)page + page_size + (at & (page_size - 1))), 64, at + 64, 0, i);
	page->data_head = (unsigned long)at;
	take(&snapshot, &ring);
	cr_assert_null(snapshot.fault.what);
	cr_assert_eq(snapshot.count, 20);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(perfring_snapshot_next(&snapshot, &record), 1);
		cr_assert(is_intact(record));
		cr_assert_eq(((const uint64_t *)(const void *)record)[1], beyond + (i + 1) * 64);
	}
	perfring_snapshot_close(&snapshot);
	perfring_ring_close(&ring);
	free(page);
}

Test(snapshot, scribbled_over)
{
	struct perfring_ring_state *state;
	struct perfring_writer *writer;
	struct perfring_fault fault;
	uint64_t random = 7, taken = 0, refused = 0, i, j;
	struct perfring_ring ring;
	uint64_t *words;
	int ret;

	make(&ring, 1, OVERWRITES, NULL);
	state = perfring_ring_state_of(ring.page);
	words = (uint64_t *)(void *)ring.data;
	writer = open_writer(&ring);
	for (i = 0; i < 200; i++)
		write_one(writer, 0, 64);
	for (i = 0; i < 20000; i++) {
		if (i % 4 == 0)
			ring.page->data_head = next_random(&random) >> next_random(&random) % 64;
		if (i % 4 == 1)
			state->claimed = -ring.page->data_head + next_random(&random) % (RING + 64);
		if (i % 4 == 2)
			ring.page->data_head = -(next_random(&random) % (3 * RING)) & ~UINT64_C(7);
		if (i % 4 == 3)
			state->claimed = -ring.page->data_head + next_random(&random) % 64 * 8;
		state->oldest =
			i % 8 < 4 ? ring.page->data_head - next_random(&random) % 600 * 8 : next_random(&random);
		for (j = 0; j < 20; j++)
			words[next_random(&random) % (RING / 8)] = next_random(&random) >> next_random(&random) % 64;
		ring.page->data_tail = next_random(&random);
		ring.flags = i % 3 == 0   ? both_ways[i / 3 % 2] | PERFRING_RING_OWN
			     : i % 3 == 1 ? PERFRING_RING_OWN | (i % 2 ? PERFRING_RING_BACKWARD : PERFRING_RING_STRICT)
			     : i & 8      ? PERFRING_RING_OVERWRITE
					  : 0;
		ret = take_and_walk(&ring, &fault);
		cr_assert(ret == 0 || ret == -EBADMSG || ret == -EINVAL, "%d", ret);
		cr_assert(ret != -EBADMSG || fault.what);
		taken += ret == 0;
		refused += ret == -EBADMSG;
	}
	cr_assert_gt(taken, 1000);
	cr_assert_gt(refused, 1000);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}
