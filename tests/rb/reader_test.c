/* reader_test.c - reading one ring: memory made by hand, mapped twice, shared with a writing thread, the kernel's. */
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/event.h>
#include <perfring/reader.h>

TestSuite(reader, .timeout = 60);

enum {
	PAGE = 4096
};

/* Ring memory as a kernel would map it, and the writing end of it. */
struct written {
	unsigned char *memory;
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t size;
	uint64_t head;
};

static struct written make(uint64_t size)
{
	struct written ring = {0};

	ring.memory = aligned_alloc(PAGE, PAGE + size);
	cr_assert_not_null(ring.memory);
	memset(ring.memory, 0, PAGE);
	memset(ring.memory + PAGE, 0xa5, size);
	ring.page = (void *)ring.memory;
	ring.page->data_offset = PAGE;
	ring.page->data_size = size;
	ring.data = ring.memory + PAGE;
	ring.size = size;
	return ring;
}

static void put(struct written *ring, const void *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		ring->data[(ring->head + i) % ring->size] = ((const unsigned char *)bytes)[i];
	ring->head += size;
}

/* A record of `size` bytes whose words all say `seed`. */
static void put_record(struct written *ring, uint64_t seed, uint16_t size)
{
	struct perf_event_header header = {.type = (uint32_t)(seed % 1000), .misc = 7, .size = size};

	put(ring, &header, sizeof(header));
	for (uint16_t i = 8; i < size; i = (uint16_t)(i + 8))
		put(ring, &seed, 8);
}

static bool is_record(const struct perf_event_header *record, uint64_t seed, uint16_t size)
{
	if (record->size != size || record->type != seed % 1000 || record->misc != 7)
		return false;
	for (uint16_t i = 8; i < size; i = (uint16_t)(i + 8))
		if (memcmp((const char *)record + i, &seed, 8))
			return false;
	return true;
}

static void publish(struct written *ring)
{
	perfring_page_publish(ring->page, ring->head);
}

static void open_reader(struct perfring_reader *reader, struct written *ring, unsigned flags)
{
	struct perfring_ring over;

	cr_assert_eq(perfring_ring_wrap(&over, ring->memory, PAGE + ring->size), 0);
	cr_assert_eq(over.size, ring->size);
	cr_assert_eq(perfring_reader_open(reader, &over, flags), 0);
}

static void close_both(struct perfring_reader *reader, struct written *ring)
{
	perfring_reader_close(reader);
	free(ring->memory);
}

Test(reader, memory_that_is_no_ring)
{
	struct written ring = make(PAGE);
	struct perfring_ring over;

	cr_assert_eq(perfring_ring_wrap(&over, NULL, 2 * PAGE), -EINVAL);
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, PAGE), -EINVAL);
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory + 4, 2 * PAGE - 4), -EINVAL);
	ring.page->data_size = 3000;
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, 2 * PAGE), -EINVAL);
	ring.page->data_size = 2 * PAGE;
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, 2 * PAGE), -EINVAL);
	ring.page->data_size = PAGE;
	ring.page->data_offset = UINT64_MAX - 7;
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, 2 * PAGE), -EINVAL);
	ring.page->data_offset = 8;
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, 2 * PAGE), -EINVAL);
	/* Kernels before 4.1 say neither. */
	ring.page->data_offset = 0;
	ring.page->data_size = 0;
	cr_assert_eq(perfring_ring_wrap(&over, ring.memory, 2 * PAGE), 0);
	cr_assert_eq(over.data, ring.data);
	cr_assert_eq(over.size, PAGE);
	free(ring.memory);
}

Test(reader, every_size_over_many_laps)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;
	uint64_t written = 0, read = 0, joined = 0;

	open_reader(&reader, &ring, 0);
	cr_assert_eq(perfring_reader_observe(&reader), 0);
	cr_assert_eq(perfring_reader_next(&reader, &record), 0);
	while (written < 20000) {
		uint64_t first = written;

		/* As many as fit, of sizes 8 to 512. */
		for (;;) {
			uint16_t size = (uint16_t)(8 + 8 * (written % 64));

			if (ring.head + size - perfring_page_reclaim(ring.page) > ring.size)
				break;
			put_record(&ring, written++, size);
		}
		publish(&ring);
		cr_assert_eq((uint64_t)perfring_reader_observe(&reader), ring.head - reader.position);
		while (perfring_reader_next(&reader, &record) == 1) {
			cr_assert(is_record(record, read, (uint16_t)(8 + 8 * (read % 64))), "record %llu",
				  (unsigned long long)read);
			cr_assert_eq((const unsigned char *)record == reader.joint,
				     (reader.position - record->size) % PAGE + record->size > PAGE,
				     "joined when it wraps, read in place when not");
			joined += (const unsigned char *)record == reader.joint;
			read++;
		}
		cr_assert_eq(read, written);
		cr_assert_gt(written, first);
		perfring_reader_return(&reader);
		cr_assert_eq(ring.page->data_tail, ring.head);
	}
	cr_assert_gt(joined, 100, "records that wrap were joined");
	close_both(&reader, &ring);
}

Test(reader, the_largest_record_wraps)
{
	struct written ring = make(128 * 1024);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	open_reader(&reader, &ring, 0);
	for (uint64_t i = 0; i < 50; i++) {
		put_record(&ring, i, 65528);
		publish(&ring);
		cr_assert_eq(perfring_reader_observe(&reader), 65528);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		cr_assert(is_record(record, i, 65528));
		perfring_reader_return(&reader);
	}
	close_both(&reader, &ring);
}

Test(reader, all_records_of_a_drain_stay_valid)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *records[200];

	open_reader(&reader, &ring, 0);
	for (uint64_t lap = 0; lap < 300; lap++) {
		uint64_t count = 0;

		for (uint64_t i = 0; i < 37; i++)
			put_record(&ring, lap * 100 + i, 104);
		publish(&ring);
		perfring_reader_observe(&reader);
		while (perfring_reader_next(&reader, &records[count]) == 1)
			count++;
		cr_assert_eq(count, 37);
		for (uint64_t i = 0; i < count; i++)
			cr_assert(is_record(records[i], lap * 100 + i, 104));
		perfring_reader_return(&reader);
	}
	close_both(&reader, &ring);
}

Test(reader, a_drain_ends_while_the_writer_goes_on)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	open_reader(&reader, &ring, 0);
	put_record(&ring, 1, 16);
	publish(&ring);
	cr_assert_eq(perfring_reader_observe(&reader), 16);
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	put_record(&ring, 2, 16);
	publish(&ring);
	cr_assert_eq(perfring_reader_next(&reader, &record), 0);
	cr_assert_eq(perfring_reader_observe(&reader), 16);
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	cr_assert(is_record(record, 2, 16));
	close_both(&reader, &ring);
}

Test(reader, a_reader_starts_where_the_last_one_stopped)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	put_record(&ring, 1, 24);
	put_record(&ring, 2, 24);
	publish(&ring);
	ring.page->data_tail = 24;
	open_reader(&reader, &ring, 0);
	cr_assert_eq(perfring_reader_observe(&reader), 24);
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	cr_assert(is_record(record, 2, 24));
	close_both(&reader, &ring);
}

static void expect_fault(struct perfring_reader *reader, int64_t at, const char *what)
{
	const struct perf_event_header *record;

	/* Again and again, and never past it. */
	for (int i = 0; i < 3; i++) {
		reader->fault.what = NULL;
		cr_assert_eq(perfring_reader_next(reader, &record), -EBADMSG);
		cr_assert_eq(reader->fault.at, at);
		cr_assert_str_eq(reader->fault.what, what);
	}
}

Test(reader, a_record_that_cannot_be)
{
	static const struct {
		uint16_t size;
		const char *what;
	} BAD[] = {
		{0, "record smaller than its header"},          {4, "record smaller than its header"},
		{12, "record size is not a multiple of 8"},     {48, "record longer than what was written"},
		{65528, "record longer than what was written"},
	};

	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct written ring = make(PAGE);
		struct perf_event_header header = {.type = 9, .size = BAD[i].size};
		struct perfring_reader reader;
		const struct perf_event_header *record;

		open_reader(&reader, &ring, 0);
		put_record(&ring, 5, 16);
		put(&ring, &header, 8);
		put_record(&ring, 6, 32);
		publish(&ring);
		cr_assert_eq(perfring_reader_observe(&reader), 56);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		expect_fault(&reader, 16, BAD[i].what);
		cr_assert_eq(perfring_reader_skip(&reader), 40);
		cr_assert_eq(ring.page->data_tail, 56);
		put_record(&ring, 7, 24);
		publish(&ring);
		cr_assert_eq(perfring_reader_observe(&reader), 24);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		cr_assert(is_record(record, 7, 24));
		close_both(&reader, &ring);
	}
}

Test(reader, a_head_that_cannot_be)
{
	static const uint64_t HEADS[] = {PAGE + 72, PAGE * 2, UINT64_MAX - 7, 57, 0, 40, UINT64_C(1) << 63};

	for (size_t i = 0; i < sizeof(HEADS) / sizeof(*HEADS); i++) {
		struct written ring = make(PAGE);
		struct perfring_reader reader;
		const struct perf_event_header *record;

		open_reader(&reader, &ring, 0);
		for (uint64_t n = 0; n < 8; n++)
			put_record(&ring, n, 8);
		publish(&ring);
		perfring_reader_observe(&reader);
		while (perfring_reader_next(&reader, &record) == 1)
			;
		perfring_reader_return(&reader);
		perfring_page_publish(ring.page, HEADS[i]);
		cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG, "head %llu", (unsigned long long)HEADS[i]);
		cr_assert_eq((unsigned long)reader.fault.at, (unsigned long)HEADS[i]); /* as far as a kernel counts */
		cr_assert_eq(perfring_reader_next(&reader, &record), 0);
		cr_assert_leq(perfring_reader_skip(&reader), PAGE);
		cr_assert_eq(reader.position % 8, 0);
		cr_assert_eq(perfring_reader_observe(&reader) < 0, (HEADS[i] & 7) != 0);
		close_both(&reader, &ring);
	}
}

/* Positions are distances: nothing happens where they wrap. */
Test(reader, positions_wrap)
{
	for (int copy = 0; copy < 2; copy++) {
		struct written ring = make(PAGE);
		struct perfring_reader reader;
		const struct perf_event_header *record;
		uint64_t read = 0;

		ring.head = ring.page->data_head = ring.page->data_tail = UINT64_MAX - 50 * PAGE + 1;
		open_reader(&reader, &ring, copy ? PERFRING_READER_COPY : 0);
		while (read < 2000) {
			for (uint64_t i = 0; i < 20; i++)
				put_record(&ring, read + i, 200);
			publish(&ring);
			cr_assert_eq(perfring_reader_observe(&reader), 20 * 200);
			for (uint64_t i = 0; i < 20; i++, read++) {
				cr_assert_eq(perfring_reader_next(&reader, &record), 1);
				cr_assert(is_record(record, read, 200), "record %llu", (unsigned long long)read);
			}
			cr_assert_eq(perfring_reader_next(&reader, &record), 0);
			cr_assert_null(record);
			perfring_reader_return(&reader);
			cr_assert_eq(ring.page->data_tail, ring.head);
		}
		cr_assert_lt(ring.head, 100 * PAGE, "and they did");
		close_both(&reader, &ring);
	}
}

/* A kernel counts positions in its unsigned long and zero-extends them into the page: on 32 bits 0 follows 2^32 - 8. */
Test(reader, positions_of_a_32_bit_kernel_wrap)
{
	for (int copy = 0; copy < 2; copy++) {
		struct written ring = make(PAGE);
		struct perfring_reader reader;
		const struct perf_event_header *record;
		uint64_t read = 0, given;

		ring.head = ring.page->data_head = ring.page->data_tail = UINT32_MAX - 5 * PAGE + 1;
		open_reader(&reader, &ring, copy ? PERFRING_READER_COPY : 0);
		while (read < 600) {
			for (uint64_t i = 0; i < 20; i++)
				put_record(&ring, read + i, 200);
			perfring_page_publish(ring.page, (unsigned long)ring.head);
			cr_assert_eq(perfring_reader_observe(&reader), 20 * 200);
			for (uint64_t i = 0; i < 20; i++, read++) {
				cr_assert_eq(perfring_reader_next(&reader, &record), 1);
				cr_assert(is_record(record, read, 200), "record %llu", (unsigned long long)read);
			}
			cr_assert_eq(perfring_reader_next(&reader, &record), 0);
			perfring_reader_return(&reader);
			/* The kernel looks at its low bits alone. */
			cr_assert_eq((unsigned long)ring.page->data_tail, (unsigned long)ring.head);
		}
		cr_assert_gt(ring.head, UINT32_MAX, "and they did");

		/* More than the ring holds is corrupt there, too; skipping it goes on at the kernel's position. */
		ring.head += 2 * PAGE;
		perfring_page_publish(ring.page, (unsigned long)ring.head);
		cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
		given = perfring_reader_skip(&reader);
		cr_assert_eq(given, PAGE);
		put_record(&ring, 7, 200);
		perfring_page_publish(ring.page, (unsigned long)ring.head);
		cr_assert_eq(perfring_reader_observe(&reader), 200);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		cr_assert(is_record(record, 7, 200));
		close_both(&reader, &ring);
	}
}

Test(reader, a_tail_between_words)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	put_record(&ring, 1, 24);
	put_record(&ring, 2, 24);
	publish(&ring);
	ring.page->data_tail = 24 + 5;
	open_reader(&reader, &ring, 0);
	cr_assert_eq(perfring_reader_observe(&reader), 24);
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	cr_assert(is_record(record, 2, 24));
	close_both(&reader, &ring);
}

/* The whole ring is no fault, one word more is; and of what was read, not yet returned, nothing can be taken back. */
Test(reader, a_head_at_the_edge)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	open_reader(&reader, &ring, 0);
	for (uint64_t i = 0; i < PAGE / 64; i++)
		put_record(&ring, i, 64);
	publish(&ring);
	cr_assert_eq(perfring_reader_observe(&reader), PAGE);
	perfring_page_publish(ring.page, PAGE + 8);
	cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	cr_assert_eq(ring.page->data_tail, 0, "only a return gives space back");
	perfring_page_publish(ring.page, PAGE + 8);
	cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG, "no space was given back for that");
	perfring_page_publish(ring.page, 4 * 64);
	cr_assert_eq(perfring_reader_observe(&reader), 0);
	perfring_page_publish(ring.page, 4 * 64 - 8);
	cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
	perfring_page_publish(ring.page, 4 * 64 + 4);
	cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
	perfring_page_publish(ring.page, 6 * 64);
	cr_assert_eq(perfring_reader_skip(&reader), 2 * 64, "what was not read is given up");
	perfring_page_publish(ring.page, 6 * 64 + 2 * PAGE);
	cr_assert_eq(perfring_reader_skip(&reader), PAGE, "no more than there can be");
	cr_assert_eq(ring.page->data_tail, 6 * 64 + 2 * PAGE);
	close_both(&reader, &ring);
}

/* Backwards is the kernel's other way: its head falls from 0. */
Test(reader, a_ring_written_backwards)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;

	open_reader(&reader, &ring, 0);
	perfring_page_publish(ring.page, (uint64_t)-48);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
		cr_assert_eq(perfring_reader_next(&reader, &record), 0);
	}
	close_both(&reader, &ring);
}

Test(reader, a_copy_cannot_change_its_size)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;
	struct perf_event_header header;

	open_reader(&reader, &ring, PERFRING_READER_COPY);
	put_record(&ring, 1, 32);
	put_record(&ring, 2, 24);
	publish(&ring);
	cr_assert_eq(perfring_reader_observe(&reader), 56);
	/* Changed after it was checked, before it is copied: the size, and what it is. */
	cr_assert_eq(perfring_reader_peek(&reader, &header), 32);
	((struct perf_event_header *)(void *)ring.data)->size = 65528;
	((struct perf_event_header *)(void *)ring.data)->type++;
	record = perfring_reader_join(&reader, &header);
	cr_assert_eq(memcmp(record, &header, sizeof(header)), 0);
	((struct perf_event_header *)(void *)ring.data)->size = 32;
	((struct perf_event_header *)(void *)ring.data)->type--;
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	((struct perf_event_header *)(void *)ring.data)->size = 65528;
	cr_assert_eq(record->size, 32);
	cr_assert_eq(perfring_reader_next(&reader, &record), 1);
	cr_assert(is_record(record, 2, 24));
	close_both(&reader, &ring);
}

Test(reader, copies_that_are_kept)
{
	struct written ring = make(PAGE);
	const struct perf_event_header *first, *second;
	struct perfring_reader reader;

	open_reader(&reader, &ring, PERFRING_READER_COPY | PERFRING_READER_KEEP);
	put_record(&ring, 1, 32);
	put_record(&ring, 2, 24);
	publish(&ring);
	cr_assert_eq(perfring_reader_observe(&reader), 56);
	cr_assert_eq(perfring_reader_next(&reader, &first), 1);
	cr_assert_eq(perfring_reader_next(&reader, &second), 1);
	memset(ring.data, 0xff, 56);
	cr_assert(is_record(first, 1, 32));
	cr_assert(is_record(second, 2, 24));
	close_both(&reader, &ring);
}

/* In a ring that is larger than the space for one record. */
Test(reader, keep_without_copy_has_no_effect)
{
	struct written ring = make(64 * PAGE);
	const struct perf_event_header *record;
	struct perfring_reader reader;
	unsigned wrapped = 0;

	open_reader(&reader, &ring, PERFRING_READER_KEEP);
	for (uint64_t i = 0; i < 1000; i++) {
		put_record(&ring, i, 1000);
		publish(&ring);
		perfring_reader_observe(&reader);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		cr_assert(is_record(record, i, 1000));
		if ((const unsigned char *)record < ring.data || (const unsigned char *)record >= ring.data + ring.size) {
			cr_assert_eq((const void *)record, reader.joint);
			wrapped++;
		}
		perfring_reader_return(&reader);
	}
	cr_assert_gt(wrapped, 0);
	close_both(&reader, &ring);
}

Test(reader, data_mapped_twice_is_never_copied)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	unsigned char *memory = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct written ring = {.memory = memory, .size = PAGE};
	struct perfring_ring mapped = {0};
	struct perfring_reader reader;
	const struct perf_event_header *record;
	uint64_t wrapped = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 2 * PAGE), 0);
	cr_assert_neq(mmap(memory, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
	cr_assert_neq(mmap(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, PAGE),
		      MAP_FAILED);
	ring.page = mapped.page = (void *)memory;
	ring.data = mapped.data = memory + PAGE;
	mapped.size = PAGE;
	mapped.span = 2 * PAGE;
	cr_assert_eq(perfring_reader_open(&reader, &mapped, 0), 0);
	cr_assert_null(reader.joint);
	for (uint64_t i = 0; i < 1000; i++) {
		put_record(&ring, i, 200);
		publish(&ring);
		perfring_reader_observe(&reader);
		cr_assert_eq(perfring_reader_next(&reader, &record), 1);
		cr_assert(is_record(record, i, 200));
		wrapped += (const unsigned char *)record + 200 > ring.data + PAGE;
		perfring_reader_return(&reader);
	}
	cr_assert_gt(wrapped, 10);
	perfring_reader_close(&reader);
	munmap(memory, 3 * PAGE);
	close(fd);
}

/* A writing thread with the page's own publish and reclaim: what a thread sanitizer judges. */
enum {
	RACED = 200000
};

static void *write_records(void *argument)
{
	struct written *ring = argument;

	for (uint64_t i = 0; i < RACED; i++) {
		uint16_t size = (uint16_t)(16 + 8 * (i % 20));

		while (ring->head + size - perfring_page_reclaim(ring->page) > ring->size)
			sched_yield();
		put_record(ring, i, size);
		publish(ring);
	}
	return NULL;
}

Test(reader, against_a_writing_thread)
{
	struct written ring = make(PAGE);
	struct perfring_reader reader;
	const struct perf_event_header *record;
	uint64_t read = 0;
	pthread_t writer;

	open_reader(&reader, &ring, 0);
	cr_assert_eq(pthread_create(&writer, NULL, write_records, &ring), 0);
	while (read < RACED) {
		int64_t left = perfring_reader_observe(&reader);

		cr_assert_geq(left, 0);
		if (left == 0)
			sched_yield();
		while (perfring_reader_next(&reader, &record) == 1) {
			cr_assert(is_record(record, read, (uint16_t)(16 + 8 * (read % 20))), "record %llu",
				  (unsigned long long)read);
			read++;
		}
		perfring_reader_return(&reader);
	}
	cr_assert_eq(pthread_join(writer, NULL), 0);
	close_both(&reader, &ring);
}

/* The kernel's ring: each touched page is one sample, none is lost while there is space. */
Test(reader, a_kernel_ring_of_page_faults)
{
	enum {
		FAULTS = 2000
	};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	struct perfring_ring ring;
	struct perfring_reader reader;
	const struct perf_event_header *record;
	uint64_t samples = 0;
	int fd = perfring_event_open(&attr, 0, -1, -1, 0);
	volatile char *memory;

	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s", strerror(-fd));
	cr_assert_eq(perfring_ring_map(&ring, fd, 3, 0), -EINVAL);
	/* Nothing can be given back in a ring that overwrites. */
	cr_assert_eq(perfring_ring_map(&ring, fd, 2, PERFRING_RING_OVERWRITE), 0);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), -EINVAL);
	perfring_ring_close(&ring);
	/* The control page alone has no records. */
	cr_assert_eq(perfring_ring_map(&ring, fd, 0, 0), 0);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), -EINVAL);
	perfring_ring_close(&ring);
	cr_assert_eq(perfring_ring_map(&ring, fd, 2, 0), 0);
	cr_assert_eq(ring.size, 2 * (uint64_t)sysconf(_SC_PAGESIZE));
	cr_assert_eq(ring.page->data_size, ring.size);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	memory = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)memory, MAP_FAILED);
	madvise((void *)memory, FAULTS * PAGE, MADV_NOHUGEPAGE);
	for (int lap = 0; lap < FAULTS / 100; lap++) {
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		for (int i = 0; i < 100; i++)
			memory[(lap * 100 + i) * PAGE] = 1;
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		cr_assert_gt(perfring_reader_observe(&reader), 0);
		while (perfring_reader_next(&reader, &record) == 1) {
			uint64_t addr;

			cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
			cr_assert_eq(record->size, 24);
			memcpy(&addr, (const char *)record + 16, 8);
			if (addr >= (uintptr_t)memory && addr < (uintptr_t)memory + FAULTS * PAGE) {
				cr_assert_eq(addr / PAGE, (uintptr_t)memory / PAGE + samples, "in order");
				samples++;
			}
		}
		perfring_reader_return(&reader);
	}
	cr_assert_eq(samples, FAULTS);
	munmap((void *)memory, FAULTS * PAGE);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
	close(fd);
}
