/* forward_test.c - forward rings that overwrite: what a read-only mapping of a kernel event is.  Where its first record begins
 * is searched for: on memory made by hand, whose records are known, and on the kernel's. */
#include "test.h"

static void strike(const char *name);
#define PERFRING_POINT(name) strike(#name)

#include "rb/snapshot.c"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/writer.h>

TestSuite(forward, .timeout = 120);

enum {
	RECORDS = 1 << 16, /* that a test remembers */
	LAST = PERFRING_RECORD_MAX -
	       8, /* the first whole record begins at most so many bytes after the lap's first byte */
};

/* ---- a kernel's ring, made by hand ---- */

struct made {
	struct perfring_ring ring;
	void *memory;
	uint64_t starts[RECORDS]; /* positions */
	uint64_t count;
	uint64_t random;
};

static uint64_t draw(struct made *made)
{
	made->random ^= made->random << 13;
	made->random ^= made->random >> 7;
	made->random ^= made->random << 17;
	return made->random;
}

static struct made *make(uint32_t pages, uint64_t seed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (1 + pages) * page;
	struct made *made = calloc(1, sizeof(*made));

	cr_assert_not_null(made);
	cr_assert_eq(posix_memalign(&made->memory, page, size), 0);
	memset(made->memory, 0, size);
	cr_assert_eq(perfring_ring_wrap(&made->ring, made->memory, size), 0);
	made->ring.flags = PERFRING_RING_OVERWRITE;
	made->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	return made;
}

static void unmake(struct made *made)
{
	free(made->memory);
	free(made);
}

static void put_word(struct made *made, uint64_t word)
{
	memcpy(made->ring.data + (made->ring.page->data_head & (made->ring.size - 1)), &word, sizeof(word));
	made->ring.page->data_head += 8;
}

/* false: no word of it can be a header, for no type is so large.  true: many are headers, whose sizes lead to the record's end,
 * or to one another. */
static void put(struct made *made, uint16_t size, bool lies)
{
	const struct perf_event_header header = {1 + (uint32_t)(draw(made) % 21), 0, size};
	uint64_t word;

	cr_assert_lt(made->count, RECORDS);
	made->starts[made->count++] = made->ring.page->data_head;
	memcpy(&word, &header, sizeof(word));
	put_word(made, word);
	for (uint64_t left = size - 8u; left; left -= 8) {
		struct perf_event_header lie = {9, 2,
						(uint16_t)(draw(made) % 4 ? left : draw(made) % (left / 8) * 8 + 8)};

		memcpy(&word, &lie, sizeof(word));
		put_word(made, lies && draw(made) % 8 ? word : draw(made) | 1u << 31);
	}
}

static uint16_t any_size(struct made *made)
{
	uint64_t words = UINT64_C(1) << (1 + draw(made) % 9);

	return (uint16_t)(8 + draw(made) % words * 8);
}

/* The first of the remembered records that begins at this position or later. */
static uint64_t first_from(const struct made *made, uint64_t position)
{
	uint64_t low = 0, high = made->count;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (made->starts[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The next records of the snapshot are the remembered ones from this one on, to the last. */
static void expect_from(const struct made *made, struct perfring_snapshot *snapshot, uint64_t first)
{
	const struct perf_event_header *record;
	uint64_t at;

	for (uint64_t i = first; i < made->count; i++) {
		uint64_t end = i + 1 < made->count ? made->starts[i + 1] : made->ring.page->data_head;

		cr_assert_eq(perfring_snapshot_next(snapshot, &record), 1);
		at = snapshot->from + (uint64_t)((const unsigned char *)record - snapshot->data);
		cr_assert_eq(at, made->starts[i], "record %lu of %lu", (unsigned long)i, (unsigned long)made->count);
		cr_assert_eq(record->size, end - at);
	}
	cr_assert_eq(perfring_snapshot_next(snapshot, &record), 0);
}

static void strike_nothing(const char *name)
{
	(void)name;
}

static void (*striker)(const char *name) = strike_nothing;

static void strike(const char *name)
{
	striker(name);
}

/* Whatever sizes the records have: all whole ones, no other; and from where on that is certain. */
static void hold_to_truth(uint32_t pages, uint64_t seed, uint64_t records)
{
	struct made *made = make(pages, seed);
	struct perfring_snapshot snapshot;

	for (uint64_t i = 0; i < records; i++) {
		uint64_t head, base, first, certain;

		put(made, any_size(made), false);
		if (records > 2000 && i % 97)
			continue;
		head = made->ring.page->data_head;
		base = head > made->ring.size ? head - made->ring.size : 0;
		first = first_from(made, base);
		cr_assert_eq(perfring_snapshot_take(&snapshot, &made->ring, 0), 0);
		cr_assert_null(snapshot.fault.what);
		cr_assert_eq(snapshot.flags & PERFRING_RING_BACKWARD, 0);
		cr_assert_eq(snapshot.published, head);
		cr_assert_eq(snapshot.claimed, head);
		cr_assert_eq(snapshot.oldest, first < made->count ? made->starts[first] : head);
		certain = base ? first_from(made, base + LAST + 8) : 0;
		cr_assert_eq(snapshot.certain, certain < made->count ? made->starts[certain] : head);
		expect_from(made, &snapshot, first);
		perfring_snapshot_close(&snapshot);
	}
	cr_assert_gt(made->ring.page->data_head, 3 * made->ring.size);
	unmake(made);
}

static bool has_64_bits(void)
{
	return sizeof(long) == 8;
}

Test(forward, every_whole_record)
{
	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	for (uint64_t seed = 1; seed <= 10; seed++)
		hold_to_truth(1, seed, 600);
	hold_to_truth(32, 1, 12000);
	hold_to_truth(64, 2, 24000);
}

/* Where the bytes of records look like records, those from `certain` on are the true ones.  Before it there may be others. */
Test(forward, bytes_that_look_like_records)
{
	uint64_t wrong = 0, taken = 0;

	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct made *made = make(64, seed);
		const struct perf_event_header *record;
		struct perfring_snapshot snapshot;

		for (uint64_t i = 0; i < 12000; i++) {
			uint64_t at;

			put(made, draw(made) % 64 ? any_size(made) : (uint16_t)(draw(made) % 8000 * 8 + 8), true);
			if (made->ring.page->data_head <= made->ring.size || i % 61)
				continue;
			cr_assert_eq(perfring_snapshot_take(&snapshot, &made->ring, 0), 0);
			cr_assert_null(snapshot.fault.what);
			cr_assert_leq(snapshot.oldest, snapshot.published - snapshot.size + LAST);
			cr_assert_geq(snapshot.certain, snapshot.oldest);
			at = snapshot.oldest;
			while (at < snapshot.certain && perfring_snapshot_next(&snapshot, &record) == 1) {
				wrong += made->starts[first_from(made, at)] != at;
				at += record->size;
			}
			cr_assert_eq(at, snapshot.certain);
			expect_from(made, &snapshot, first_from(made, snapshot.certain));
			perfring_snapshot_close(&snapshot);
			taken++;
		}
		unmake(made);
	}
	cr_assert_gt(taken, 500);
	cr_assert_gt(wrong, 0, "the lies are none");
}

/* A header that is no size ends what precedes it; what follows is returned, and the place is reported. */
Test(forward, a_damaged_record)
{
	struct perfring_snapshot snapshot;
	struct made *made;
	uint64_t first;

	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	for (int laps = 0; laps < 2; laps++) {
		made = make(64, 3);
		while (made->ring.page->data_head < (laps ? 2 : 1) * made->ring.size - 600)
			put(made, any_size(made), false);
		first = made->count - 100;
		memset(made->ring.data + (made->starts[first - 1] & (made->ring.size - 1)), 0, 8);
		cr_assert_eq(perfring_snapshot_take(&snapshot, &made->ring, 0), 0);
		cr_assert_not_null(snapshot.fault.what);
		cr_assert_eq((uint64_t)snapshot.fault.at, snapshot.from);
		cr_assert_eq(snapshot.oldest, made->starts[first]);
		cr_assert_eq(snapshot.certain, snapshot.published);
		expect_from(made, &snapshot, first);
		perfring_snapshot_close(&snapshot);
		/* No record at all. */
		memset(made->ring.data, 0, (size_t)made->ring.size);
		cr_assert_eq(perfring_snapshot_take(&snapshot, &made->ring, 0), 0);
		cr_assert_not_null(snapshot.fault.what);
		cr_assert_eq(snapshot.count, 0);
		perfring_snapshot_close(&snapshot);
		made->ring.page->data_head |= 4;
		cr_assert_eq(perfring_snapshot_take(&snapshot, &made->ring, 0), -EBADMSG);
		unmake(made);
	}
}

/* ---- while the copy is made ---- */

static struct made *struck;
static unsigned strikes, strikes_at_most, records_per_strike;

static void write_meanwhile(const char *name)
{
	if (strcmp(name, "snapshot_copied") || strikes == strikes_at_most)
		return;
	strikes++;
	for (unsigned i = 0; i < records_per_strike; i++)
		put(struck, 64, false);
}

/* What the writer has overwritten by then is left out; the copy is made again when that is all of it. */
Test(forward, lapped)
{
	struct perfring_snapshot snapshot;
	const uint64_t fits = (uint64_t)sysconf(_SC_PAGESIZE) / 64;

	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	struck = make(1, 5);
	for (int i = 0; i < 1000; i++)
		put(struck, 64, false);
	striker = write_meanwhile;
	for (unsigned n = 0; n < fits; n++) {
		records_per_strike = n;
		strikes = 0;
		strikes_at_most = 1;
		cr_assert_eq(perfring_snapshot_take(&snapshot, &struck->ring, 1), 0);
		cr_assert_eq(snapshot.count, fits - n);
		cr_assert_eq(snapshot.published, struck->ring.page->data_head - 64 * n);
		cr_assert_eq(snapshot.claimed, snapshot.published);
		perfring_snapshot_close(&snapshot);
	}
	records_per_strike = (unsigned)fits;
	strikes = 0;
	cr_assert_eq(perfring_snapshot_take(&snapshot, &struck->ring, 2), 0);
	cr_assert_eq(snapshot.count, fits);
	perfring_snapshot_close(&snapshot);
	strikes = 0;
	strikes_at_most = 100;
	cr_assert_eq(perfring_snapshot_take(&snapshot, &struck->ring, 0), -EAGAIN);
	cr_assert_eq(strikes, 16);
	striker = strike_nothing;
	unmake(struck);
	/* In its first lap there is nothing to overwrite. */
	struck = make(1, 5);
	striker = write_meanwhile;
	put(struck, 64, false);
	records_per_strike = 10;
	strikes = 0;
	strikes_at_most = 1;
	cr_assert_eq(perfring_snapshot_take(&snapshot, &struck->ring, 1), 0);
	cr_assert_eq(snapshot.count, 1);
	cr_assert_eq(snapshot.certain, 0);
	perfring_snapshot_close(&snapshot);
	striker = strike_nothing;
	unmake(struck);
}

/* ---- the kernel's own ---- */

/* Page faults of user code at some depth, so that chains differ in length; read-only mappings of both kinds. */
struct twins {
	struct perfring_ring rings[2]; /* forward, backward */
	int fds[2];
	unsigned char *fresh;
	size_t left;
};

enum {
	FRESH = 20000
};

static int open_twin(bool backward, uint64_t sample_type, struct perfring_ring *ring)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = sample_type,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_callchain_kernel = 1,
		.write_backward = backward,
	};
	int fd = perfring_event_open(&attr, 0, -1, -1, 0), ret;

	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: kernel.perf_event_paranoid <= 2", strerror(-fd));
	ret = perfring_ring_map(ring, fd, 32, PERFRING_RING_OVERWRITE);
	if (ret)
		cr_skip_test("SKIP-ENV: mmap: %s: space in kernel.perf_event_mlock_kb", strerror(-ret));
	return fd;
}

static void open_twins(struct twins *twins, uint64_t sample_type)
{
	for (int i = 0; i < 2; i++)
		twins->fds[i] = open_twin(i, sample_type, &twins->rings[i]);
	twins->left = FRESH;
	twins->fresh = mmap(NULL, (size_t)FRESH * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(twins->fresh, MAP_FAILED);
	madvise(twins->fresh, (size_t)FRESH * 4096, MADV_NOHUGEPAGE);
}

static void close_twins(struct twins *twins)
{
	for (int i = 0; i < 2; i++) {
		perfring_ring_close(&twins->rings[i]);
		close(twins->fds[i]);
	}
	munmap(twins->fresh + (twins->left - FRESH) * 4096, (size_t)FRESH * 4096);
}

static __attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"))) int fault_at(
	volatile unsigned char *place, unsigned depth)
{
	int below = depth ? fault_at(place, depth - 1) : (*place = 1);

	__asm__ volatile("" : : : "memory"); /* no tail call */
	return below + 1;
}

/* The address space of a sanitizer may fault more: both rings see that, too. */
static void fault(struct twins *twins, unsigned count)
{
	static const unsigned depths[] = {0, 7, 1, 30, 2, 3, 60, 11};

	for (int i = 0; i < 2; i++)
		cr_assert_eq(ioctl(twins->fds[i], PERF_EVENT_IOC_ENABLE, 0), 0);
	for (unsigned i = 0; i < count && twins->left; i++, twins->left--, twins->fresh += 4096)
		fault_at(twins->fresh, depths[i % 8]);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ioctl(twins->fds[i], PERF_EVENT_IOC_DISABLE, 0), 0);
}

/* The two rings have the same records; where the backward one begins is known. */
static uint64_t compare(struct twins *twins)
{
	const struct perf_event_header *records[2];
	struct perfring_snapshot snapshots[2];
	uint64_t least;

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ioctl(twins->fds[i], PERF_EVENT_IOC_PAUSE_OUTPUT, 1ul), 0);
		cr_assert_eq(perfring_snapshot_take(&snapshots[i], &twins->rings[i], 0), 0);
		cr_assert_eq(ioctl(twins->fds[i], PERF_EVENT_IOC_PAUSE_OUTPUT, 0ul), 0);
		cr_assert_null(snapshots[i].fault.what);
	}
	cr_assert_eq(snapshots[0].flags & PERFRING_RING_BACKWARD, 0);
	cr_assert_neq(snapshots[1].flags & PERFRING_RING_BACKWARD, 0);
	cr_assert_eq(snapshots[0].published, snapshots[1].published);
	cr_assert_eq(twins->rings[0].page->data_tail, 0);
	/* Each ring cuts one record in two, at its own place: one may have a record more. */
	cr_assert_leq(snapshots[0].count, snapshots[1].count + 1);
	cr_assert_leq(snapshots[1].count, snapshots[0].count + 1);
	least = snapshots[0].count < snapshots[1].count ? snapshots[0].count : snapshots[1].count;
	for (uint64_t k = 0; k < least; k++) {
		for (int i = 0; i < 2; i++)
			cr_assert_eq(perfring_snapshot_previous(&snapshots[i], &records[i]), 1);
		cr_assert_eq(records[0]->size, records[1]->size, "%lu from the newest", (unsigned long)k);
		cr_assert_eq(memcmp(records[0], records[1], records[0]->size), 0, "%lu from the newest",
			     (unsigned long)k);
	}
	if (snapshots[0].oldest)
		cr_assert_geq(snapshots[0].certain, snapshots[0].published - snapshots[0].size + LAST);
	else
		cr_assert_eq(snapshots[0].certain, 0);
	for (int i = 0; i < 2; i++)
		perfring_snapshot_close(&snapshots[i]);
	return least;
}

Test(forward, the_kernels_ring_as_its_backward_twin)
{
	struct twins twins;
	uint64_t most = 0;

	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	open_twins(&twins, PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN);
	fault(&twins, 0);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t count;

		fault(&twins, 1 + i * 7);
		count = compare(&twins);
		most = count > most ? count : most;
	}
	/* Some laps. */
	cr_assert_gt(twins.rings[0].page->data_head, 4 * twins.rings[0].size);
	cr_assert_gt(most, 300);
	close_twins(&twins);
}

/* docs/abi.md 7.8: the writer never stops, and no LOST record comes but for a pause. */
Test(forward, vectors)
{
	const struct perf_event_header *record;
	struct perfring_snapshot snapshot;
	struct twins twins;
	uint64_t lost;

	if (!has_64_bits())
		cr_skip_test("SKIP-ENV: sizeof(long): 4: on 64 bits data_head says which way a ring goes");
	open_twins(&twins, PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	fault(&twins, 0);
	fault(&twins, 8000);
	cr_assert_eq(ioctl(twins.fds[0], PERF_EVENT_IOC_PAUSE_OUTPUT, 1ul), 0);
	cr_assert_eq(perfring_snapshot_take(&snapshot, &twins.rings[0], 0), 0);
	cr_assert_geq(snapshot.published, 8000 * 24);
	cr_assert_eq(snapshot.count, (snapshot.published - (snapshot.published - snapshot.size + 23) / 24 * 24) / 24);
	cr_assert_eq(snapshot.oldest, snapshot.published - snapshot.count * 24);
	while (perfring_snapshot_next(&snapshot, &record)) {
		cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
		cr_assert_eq(record->size, 24);
	}
	perfring_snapshot_close(&snapshot);
	fault(&twins, 7);
	cr_assert_eq(ioctl(twins.fds[0], PERF_EVENT_IOC_PAUSE_OUTPUT, 0ul), 0);
	fault(&twins, 1);
	cr_assert_eq(perfring_snapshot_take(&snapshot, &twins.rings[0], 0), 0);
	/* LOST precedes the record that it came with. */
	cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	while (record->type == PERF_RECORD_SAMPLE)
		cr_assert_eq(perfring_snapshot_previous(&snapshot, &record), 1);
	cr_assert_eq(record->type, PERF_RECORD_LOST);
	memcpy(&lost, (const unsigned char *)record + 16, 8);
	cr_assert_geq(lost, 7);
	perfring_snapshot_close(&snapshot);
	close_twins(&twins);
}

/* ---- of perfring's own: the rest is in snapshot_test ---- */

/* The next writer goes on where the first oldest record begins, whatever its ring has said. */
Test(forward, a_ring_that_is_opened_again)
{
	struct perfring_ring_options options = {.pages = 1, .flags = PERFRING_RING_OVERWRITE};
	uint64_t record[8] = {0};
	const struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, sizeof(record)};
	struct perfring_ring_state *state;
	struct perfring_snapshot snapshot;
	struct perfring_writer *writer;
	struct perfring_ring ring;
	uint64_t fits;

	memcpy(record, &header, sizeof(header));
	cr_assert_eq(perfring_ring_create(&ring, &options), 0);
	state = perfring_ring_state_of(ring.page);
	fits = ring.size / sizeof(record);
	for (int round = 0; round < 4; round++) {
		cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
		for (uint64_t i = 0; i < fits + 10; i++)
			cr_assert(perfring_writer_write(writer, NULL, record, sizeof(record)));
		cr_assert_eq(ring.page->data_tail, 0);
		cr_assert_eq(perfring_writer_lost(writer), 0);
		cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), 0);
		cr_assert_eq(snapshot.count, fits);
		cr_assert_eq(snapshot.certain, snapshot.oldest);
		cr_assert_eq(state->oldest, snapshot.oldest);
		perfring_snapshot_close(&snapshot);
		perfring_writer_close(writer);
		/* Words that cannot be: nothing is whole, until records are written. */
		if (round == 1)
			state->oldest = ring.page->data_head + 8;
		if (round == 2)
			state->oldest += 4;
	}
	/* An oldest record that says no size: a peer's. */
	memset(ring.data + (state->oldest & (ring.size - 1)), 0, 8);
	cr_assert_eq(perfring_writer_open(&writer, &ring, NULL), 0);
	cr_assert(perfring_writer_write(writer, NULL, record, sizeof(record)));
	cr_assert_eq(perfring_snapshot_take(&snapshot, &ring, 0), 0);
	cr_assert_null(snapshot.fault.what);
	cr_assert_eq(snapshot.count, 1);
	perfring_snapshot_close(&snapshot);
	perfring_writer_close(writer);
	perfring_ring_close(&ring);
}
