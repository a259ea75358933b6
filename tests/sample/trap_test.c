/* trap_test.c - the 48 traps of docs/abi.md 14, one test each, by their numbers.
 *
 * Those that nothing in the tree can show, wholly or in part:
 *
 *   14  positions that wrap at 2^32: needs a 32-bit kernel (those of 64 bits are shown)
 *   15  the writer's side: no writer yet (that the kernel leaves space free is shown)
 *   36  COMPRESSED: not read yet (HEADER_FEATURE is shown)
 *   44  that two readers at once conflict: nothing here could notice (that they share data_tail is shown)
 */
#include "test.h"
#include "pack.h"
#include "watch.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <perfring/callchain.h>
#include <perfring/check.h>
#include <perfring/event.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/reader.h>
#include <perfring/session.h>
#include <perfring/swap.h>
#include <perfring/text.h>

TestSuite(trap, .timeout = 60);

enum {
	PAGE = 4096
};

#define SAMPLE_ID_ALL (UINT64_C(1) << 18)

/* ---- records by hand ---- */

static struct pack pack;

static const struct perf_event_header *seal(void)
{
	((struct perf_event_header *)(void *)pack.bytes)->size = (uint16_t)pack.size;
	return (const void *)pack.bytes;
}

static void decode(const struct perfring_format *format, struct perfring_sample *sample)
{
	struct perfring_fault fault = {0, "none"};

	cr_assert_eq(perfring_sample_decode_any(format, seal(), sample, &fault), 0, "%s", fault.what);
	cr_assert_eq(sample->trailing_size, 0);
}

static void decode_record(const struct perfring_format *format, struct perfring_record *record)
{
	struct perfring_fault fault = {0, "none"};

	cr_assert_eq(perfring_record_decode(format, seal(), record, &fault), 0, "%s", fault.what);
	cr_assert_eq(record->trailing_size, 0);
}

static void expect_text(const char *text)
{
	char line[512];

	perfring_record_text(NULL, seal(), line, sizeof(line));
	cr_assert_str_eq(line, text, "%s", line);
}

static bool is_text(const struct perfring_string *string, const char *text)
{
	return string->size == strlen(text) && !memcmp(string->data, text, string->size);
}

/* ---- a ring by hand ---- */

static void pages_are_known(void)
{
	if (sysconf(_SC_PAGESIZE) != PAGE)
		cr_skip_test("SKIP-ENV: pages of %ld bytes: what is expected here is counted in pages of 4096",
			     sysconf(_SC_PAGESIZE));
}

struct made {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	struct perfring_ring ring;
	struct perfring_reader reader;
	uint64_t head;
};

/* One page of data whose positions begin at `start`. */
static void made_open(struct made *made, uint64_t start_at)
{
	pages_are_known();
	made->page = aligned_alloc(PAGE, 2 * PAGE);
	cr_assert_not_null(made->page);
	memset(made->page, 0, 2 * PAGE);
	made->data = (unsigned char *)made->page + PAGE;
	made->head = start_at;
	made->page->data_head = made->page->data_tail = start_at;
	cr_assert_eq(perfring_ring_wrap(&made->ring, made->page, 2 * PAGE), 0);
	cr_assert_eq(perfring_reader_open(&made->reader, &made->ring, 0), 0);
}

static void made_put(struct made *made, uint16_t size, uint64_t value)
{
	struct perf_event_header header = {9, 0, size};
	uint64_t words[PAGE / 8];

	for (size_t i = 0; i < PAGE / 8; i++)
		words[i] = value;
	memcpy(words, &header, 8);
	for (size_t i = 0; i < size / 8u; i++, made->head += 8)
		memcpy(made->data + made->head % PAGE, &words[i], 8);
	perfring_page_publish(made->page, made->head);
}

static void made_close(struct made *made)
{
	perfring_reader_close(&made->reader);
	free(made->page);
}

/* ---- the kernel's rings ---- */

/* Each hit is one occurrence. */
static struct perf_event_attr watch(volatile uint64_t *word, uint64_t sample_type)
{
	struct perf_event_attr attr = watch_hits(word);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

static struct perf_event_attr faults(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = sample_type,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return attr;
}

/* Whether what perf_event_open, or a session, said means that this machine refuses. */
static bool is_refused(const struct perf_event_attr *attr, int error)
{
	unsigned version = 0;
	struct utsname name;

	switch (-error) {
	case EACCES:
	case EPERM:
	case ENOSYS:
		return true;
	case ENOENT:
		return attr->type == PERF_TYPE_TRACEPOINT;
	case ENOSPC:
	case EOPNOTSUPP:
		return attr->type == PERF_TYPE_BREAKPOINT;
	case EINVAL:
		/* PERF_FORMAT_LOST is of Linux 6.0. */
		return attr->read_format & 16 && !uname(&name) && sscanf(name.release, "%u", &version) == 1 &&
		       version < 6;
	default:
		return false;
	}
}

static int open_or_skip(const struct perf_event_attr *attr, int cpu, int group_fd)
{
	int fd = perfring_event_open(attr, 0, cpu, group_fd, 0);

	if (fd < 0 && is_refused(attr, fd))
		cr_skip_test("SKIP-ENV: perf_event_open: %s: needs CAP_PERFMON, breakpoints, Linux 6.0", strerror(-fd));
	cr_assert_geq(fd, 0, "perf_event_open: %s", strerror(-fd));
	return fd;
}

struct live {
	int fd;
	struct perfring_ring ring;
	struct perfring_reader reader;
	struct perfring_format format;
};

static void live_over(struct live *live, int fd, const struct perf_event_attr *attr, uint32_t pages)
{
	int error;

	pages_are_known();
	error = perfring_ring_map(&live->ring, fd, pages, 0);
	if (error == -EPERM)
		cr_skip_test("SKIP-ENV: mmap: EPERM: needs RLIMIT_MEMLOCK");
	cr_assert_eq(error, 0);
	live->fd = fd;
	cr_assert_eq(perfring_reader_open(&live->reader, &live->ring, 0), 0);
	cr_assert_eq(perfring_format_from_attr(&live->format, attr), 0);
}

static void live_open(struct live *live, const struct perf_event_attr *attr, uint32_t pages)
{
	live_over(live, open_or_skip(attr, -1, -1), attr, pages);
}

static const struct perf_event_header *live_next(struct live *live)
{
	const struct perf_event_header *record;

	cr_assert_eq(perfring_reader_next(&live->reader, &record), 1);
	return record;
}

static void live_close(struct live *live)
{
	perfring_reader_close(&live->reader);
	perfring_ring_close(&live->ring);
	close(live->fd);
}

/* Touches pages that were never touched: so many faults, perhaps a few more. */
static volatile char *touch(size_t pages)
{
	volatile char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(memory != MAP_FAILED);
	madvise((void *)(uintptr_t)memory, pages * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	munmap((void *)(uintptr_t)memory, pages * PAGE);
	return memory;
}

static void read_values(const struct live *live, struct perfring_read *values, uint64_t *buffer, size_t size)
{
	cr_assert_eq(perfring_event_read(live->fd, &live->format, values, buffer, size), 0);
}

/* A session of this thread, wherever it runs. */
static struct perfring_session *session_of(const struct perf_event_attr *attrs, int count, uint32_t pages)
{
	struct perfring_session *session;
	struct perfring_target *target;

	cr_assert_eq(perfring_session_open(&session, pages), 0);
	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	for (int i = 0; i < count; i++) {
		int index = perfring_session_add(session, &attrs[i], target);

		if (index < 0 && is_refused(&attrs[i], index))
			cr_skip_test("SKIP-ENV: %s", perfring_session_refusal(session));
		cr_assert_eq(index, i, "%s", perfring_session_refusal(session));
	}
	perfring_target_close(target);
	return session;
}

/* What a session says to this attr beside those that it has. */
static int refused(struct perfring_session *session, const struct perf_event_attr *attr, const char *word)
{
	struct perfring_target *target;
	int error;

	cr_assert_eq(perfring_target_open(&target), 0);
	cr_assert_eq(perfring_target_add_thread(target, (int32_t)syscall(SYS_gettid)), 0);
	error = perfring_session_add(session, attr, target);
	perfring_target_close(target);
	cr_assert_not_null(strstr(perfring_session_refusal(session), word), "%s", perfring_session_refusal(session));
	return error;
}

#define ORDERED (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_IP)

/* ---- the traps ---- */

/* Samples have IDENTIFIER first, trailers last; and six fields at most. */
Test(trap, t01_identifier_first_and_last)
{
	struct perfring_format format = {
		.sample_type = PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP | PERFRING_SAMPLE_TID |
			       PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ADDR | PERFRING_SAMPLE_ID |
			       PERFRING_SAMPLE_STREAM_ID | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_PERIOD,
		.flags = SAMPLE_ID_ALL,
	};
	struct perfring_sample sample;
	struct perfring_record record;

	perfring_format_plan(&format);
	cr_assert_eq(format.trailer, 48);
	start(&pack, 9, 2);
	for (uint64_t i = 1; i <= 9; i++)
		word(&pack, i);
	decode(&format, &sample);
	cr_assert_eq(sample.identifier, 1);
	cr_assert_eq(sample.period, 9);
	cr_assert_eq(perfring_format_id_of(&format, seal()), 1);
	start(&pack, 3, 0);
	word(&pack, 1);
	bytes(&pack, "abc\0\0\0\0", 8);
	for (uint64_t i = 1; i <= 6; i++)
		word(&pack, 100 + i);
	decode_record(&format, &record);
	cr_assert(is_text(&record.is.comm.comm, "abc"));
	cr_assert_eq(record.trailer.pid, 101);
	cr_assert_eq(record.trailer.cpu, 105);
	cr_assert_eq(record.trailer.identifier, 106);
	cr_assert_eq(perfring_format_id_of(&format, seal()), 106);
}

/* A size below 8 would loop for ever, one too large reads what is not there; the kernel writes such: a user stack and
 * registers beyond 64 KiB wrap the size. */
Test(trap, t02_sizes_that_cannot_be)
{
	static const uint16_t sizes[] = {0, 4, 7, 4000};
	const struct perf_event_header *record;
	struct perf_event_attr attr = faults(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR);
	struct live live;

	for (size_t i = 0; i < 4; i++) {
		struct made made;

		made_open(&made, 0);
		made_put(&made, 24, 1);
		made_put(&made, 24, 2);
		((struct perf_event_header *)(void *)(made.data + 24))->size = sizes[i];
		cr_assert_eq(perfring_reader_observe(&made.reader), 48);
		cr_assert_eq(perfring_reader_next(&made.reader, &record), 1);
		for (int again = 0; again < 3; again++)
			cr_assert_eq(perfring_reader_next(&made.reader, &record), -EBADMSG);
		cr_assert_eq(made.reader.fault.at, 24);
		cr_assert_eq(perfring_reader_skip(&made.reader), 24);
		made_put(&made, 24, 3);
		cr_assert_eq(perfring_reader_observe(&made.reader), 24);
		cr_assert_eq(perfring_reader_next(&made.reader, &record), 1);
		made_close(&made);
	}
	attr.sample_regs_intr = 0xff0fff;
	for (attr.sample_stack_user = 65336; attr.sample_stack_user <= 65496; attr.sample_stack_user += 8) {
		struct perfring_sample sample;

		live_open(&live, &attr, 64);
		ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
		touch(1);
		ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
		cr_assert_lt(perfring_reader_observe(&live.reader), 3 * 65536);
		while (perfring_reader_next(&live.reader, &record) == 1) {
			uint64_t said = UINT64_MAX;

			/* What the kernel meant to write stands behind the header, if the record goes so far. */
			if (record->size >= 16)
				memcpy(&said, (const char *)record + 8, 8);
			cr_assert_eq(perfring_sample_decode_any(&live.format, record, &sample, NULL),
				     said < record->size ? 0 : -EBADMSG, "%u bytes", record->size);
		}
		live_close(&live);
	}
}

/* sample_stack_user 0 with registers: the kernel writes a dyn_size behind the size 0 into 8 bytes that it did not reserve.
 * We never write it, and tell it. */
Test(trap, t03_stack_of_nothing_with_registers)
{
	struct perfring_format format = {
		.sample_type = PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_WEIGHT,
		.sample_regs_user = 1,
	};
	struct perfring_fault fault = {0, NULL};
	struct perfring_sample sample;
	uint64_t again[16];

	start(&pack, 9, 2);
	word(&pack, 2);
	word(&pack, 0x1234);
	word(&pack, 0);
	word(&pack, 0); /* the dyn_size that should not be: it pushes the weight out of the record */
	decode(&format, &sample);
	cr_assert_eq(perfring_record_check(&format, seal(), pack.size, &fault), -EBADMSG);
	cr_assert_eq(fault.at, 24);
	sample.weight = 7;
	cr_assert_eq(perfring_sample_encode_any(&format, &sample, again, sizeof(again)), 40);
	cr_assert_eq(again[3], 0);
	cr_assert_eq(again[4], 7);
	format.sample_stack_user = 64;
	cr_assert_eq(perfring_record_check(&format, seal(), pack.size, &fault), 0, "a stack that could not be had");
}

/* dyn_size is there when size is not 0. */
Test(trap, t04_dyn_size_only_with_a_stack)
{
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_WEIGHT};
	struct perfring_sample sample;

	start(&pack, 9, 2);
	word(&pack, 0);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(sample.weight, 77);
	start(&pack, 9, 2);
	word(&pack, 16);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 10);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(sample.stack_user.size, 16);
	cr_assert_eq(sample.stack_user.dyn_size, 10);
	cr_assert_eq(sample.weight, 77);
}

/* RAW's size counts from behind itself and includes the padding. */
Test(trap, t05_raw_size_and_what_follows)
{
	static const uint32_t payloads[][2] = {{1, 4}, {4, 4}, {5, 12}, {12, 12}, {13, 20}, {16, 20}};
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_RAW | PERFRING_SAMPLE_WEIGHT};
	struct perfring_sample sample;
	uint64_t buffer[16];

	for (uint32_t size = 4; size <= 20; size += 8) {
		start(&pack, 9, 2);
		half(&pack, size);
		bytes(&pack, "abcdefghijklmnopqrst", size);
		word(&pack, 77);
		decode(&format, &sample);
		cr_assert_eq(sample.raw.size, size);
		cr_assert_eq((const unsigned char *)sample.raw.data - pack.bytes, 12);
		cr_assert_eq(sample.weight, 77);
	}
	for (size_t i = 0; i < 6; i++) {
		uint32_t size;

		sample = (struct perfring_sample){.weight = 88, .raw = perfring_raw_of(pack.bytes, payloads[i][0])};
		cr_assert_eq(perfring_sample_encode_any(&format, &sample, buffer, sizeof(buffer)),
			     8 + 4 + payloads[i][1] + 8);
		memcpy(&size, &buffer[1], 4);
		cr_assert_eq(size, payloads[i][1]);
		cr_assert_eq(buffer[(12 + size) / 8], 88);
	}
}

/* No branches with and without hw_idx look alike but for the bytes left; counters stand behind all entries. */
Test(trap, t06_branches_with_and_without)
{
	const struct perfring_format format = {
		.sample_type = PERFRING_SAMPLE_BRANCH_STACK | PERFRING_SAMPLE_WEIGHT,
		.branch_sample_type = 1 << 17 | 1 << 19,
	};
	struct perfring_sample sample;

	for (uint64_t has = 0; has < 2; has++) {
		start(&pack, 9, 2);
		word(&pack, 0);
		if (has)
			word(&pack, 5);
		word(&pack, 77);
		decode(&format, &sample);
		cr_assert_eq(sample.branch_stack.nr, 0);
		cr_assert_eq(sample.branch_stack.has_hw_idx, has);
		cr_assert_eq(sample.weight, 77);
	}
	start(&pack, 9, 2);
	word(&pack, 2);
	word(&pack, 5);
	for (uint64_t i = 0; i < 6; i++)
		word(&pack, 10 + i);
	word(&pack, 100);
	word(&pack, 101);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(sample.branch_stack.hw_idx, 5);
	cr_assert_eq(sample.branch_stack.entries[3], 13);
	cr_assert_eq(sample.branch_stack.counters[1], 101);
	cr_assert_eq(sample.weight, 77);
}

/* abi 0 has no values; the mask is the attr's; the order is that of the bits, not of the names. */
Test(trap, t07_registers_by_the_attrs_mask)
{
	const struct perfring_format format = {
		.sample_type = PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_WEIGHT,
		.sample_regs_user = 1 << 6 | 1 << 1 | 1 << 17, /* BP, BX, R9 */
	};
	struct perfring_sample sample;

	start(&pack, 9, 2);
	word(&pack, 0);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(sample.regs_user.nr, 0);
	cr_assert_eq(sample.weight, 77);
	start(&pack, 9, 2);
	word(&pack, 2);
	word(&pack, 1);
	word(&pack, 6);
	word(&pack, 17);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(sample.regs_user.nr, 3);
	cr_assert_eq(sample.regs_user.values[0], 1);
	cr_assert_eq(sample.regs_user.values[1], 6);
	cr_assert_eq(sample.regs_user.values[2], 17);
	cr_assert_eq(sample.weight, 77);
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_X86, 1), "BX");
	cr_assert_str_eq(perfring_register_name(PERFRING_ARCH_X86, 6), "BP");
}

/* A read block has the shape of its own event's read_format, and a group as many entries as it says. */
Test(trap, t08_read_in_its_events_shape)
{
	struct perfring_format format = {.sample_type = PERFRING_SAMPLE_READ | PERFRING_SAMPLE_WEIGHT};
	struct perfring_sample sample;

	for (uint64_t nr = 0; nr <= 3; nr++) {
		format.read_format = PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID | PERFRING_FORMAT_TOTAL_TIME_ENABLED;
		start(&pack, 9, 2);
		word(&pack, nr);
		word(&pack, 1000);
		for (uint64_t i = 0; i < nr; i++) {
			word(&pack, 10 + i);
			word(&pack, 20 + i);
		}
		word(&pack, 77);
		decode(&format, &sample);
		cr_assert_eq(sample.read.nr, nr);
		cr_assert_eq(sample.read.enabled, 1000);
		cr_assert_eq(nr ? perfring_read_id(&sample.read, nr - 1) : 0, nr ? 20 + nr - 1 : 0);
		cr_assert_eq(sample.weight, 77);
	}
	/* One entry more than there is. */
	memset(pack.bytes + 8, 4, 1);
	cr_assert_eq(perfring_sample_decode_any(&format, seal(), &sample, NULL), -EBADMSG);
	format.read_format = PERFRING_FORMAT_ID;
	start(&pack, 9, 2);
	word(&pack, 3);
	word(&pack, 9);
	word(&pack, 77);
	decode(&format, &sample);
	cr_assert_eq(perfring_read_value(&sample.read, 0), 3);
	cr_assert_eq(perfring_read_id(&sample.read, 0), 9);
	cr_assert_eq(sample.weight, 77);
}

/* nr is bounded before it is multiplied; markers and the cookie are no addresses. */
Test(trap, t09_callchains)
{
	static const uint64_t too_many[] = {137, UINT64_C(0x2000000000000001), UINT64_C(1) << 61, UINT64_MAX};
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_CALLCHAIN};
	struct perfring_callchain chain;
	struct perfring_frame frame;
	struct perfring_sample sample;
	uint64_t frames = 0;

	start(&pack, 9, 2);
	word(&pack, 136);
	word(&pack, -UINT64_C(128));
	for (uint64_t i = 0; i < 132; i++)
		word(&pack, 0xffffffff81000000 + i);
	word(&pack, -UINT64_C(4095));
	word(&pack, -UINT64_C(640));
	word(&pack, 0x401000);
	decode(&format, &sample);
	chain = perfring_callchain_init(&sample.callchain);
	while (perfring_callchain_next(&chain, &frame) == 1)
		cr_assert_eq(frame.ip, 0xffffffff81000000 + frames++);
	cr_assert_eq(frames, 132);
	cr_assert_eq(chain.cookie, 0x401000);
	for (size_t i = 0; i < 4; i++) {
		memcpy(pack.bytes + 8, &too_many[i], 8);
		cr_assert_eq(perfring_sample_decode_any(&format, seal(), &sample, NULL), -EBADMSG);
	}
}

/* Pairs of u32 are swapped one by one; what stands beside cpu is kept. */
Test(trap, t10_pairs_are_not_words)
{
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CPU};
	static unsigned char foreign[24] = {0, 0, 0, 9, 0, 2, 0, 24, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
	struct perfring_sample sample;
	uint64_t buffer[3];

	if (*(const unsigned char *)&(const uint16_t){1} == 0) {
		static const unsigned char little[24] = {9, 0, 0, 0, 2, 0, 24, 0, 1, 0, 0, 0,
							 2, 0, 0, 0, 3, 0, 0,  0, 4, 0, 0, 0};

		memcpy(foreign, little, 24);
	}
	cr_assert_eq(perfring_record_to_native(&format, (const void *)foreign, buffer, sizeof(buffer), NULL), 24);
	cr_assert_eq(perfring_sample_decode_any(&format, (const void *)buffer, &sample, NULL), 0);
	cr_assert_eq(sample.pid, 1);
	cr_assert_eq(sample.tid, 2);
	cr_assert_eq(sample.cpu, 3);
	cr_assert_eq(sample.cpu_reserved, 4);
}

/* An inherited event has a STREAM_ID of its own: records belong to the event of their ID. */
Test(trap, t11_by_id_not_by_stream_id)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID,
		.sample_id_all = 1,
	};
	const struct perfring_format *format;
	struct perfring_format_set *set;

	cr_assert_eq(perfring_format_set_open(&set), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(perfring_format_set_add(set, &attr), i);
		cr_assert_eq(perfring_format_set_put(set, 7 + (uint64_t)i, (uint32_t)i), 0);
	}
	for (uint64_t i = 0; i < 2; i++) {
		start(&pack, 9, 2);
		word(&pack, 0x1000);
		word(&pack, 7 + i);
		word(&pack, 8 - i); /* the other's */
		cr_assert_eq(perfring_format_set_of(set, seal(), &format, NULL), 0);
		cr_assert_eq(format->index, i);
		start(&pack, 14, 0);
		word(&pack, 7 + i);
		word(&pack, 8 - i);
		cr_assert_eq(perfring_format_set_of(set, seal(), &format, NULL), 0);
		cr_assert_eq(format->index, i);
	}
	perfring_format_set_close(set);
}

#define WATCHED (PERF_SAMPLE_IP | PERF_SAMPLE_TID) /* 24 bytes */

/* LOST names who writes next, not who lost; who lost is told by FORMAT_LOST. */
Test(trap, t12_lost_names_the_next_writer)
{
	struct perf_event_attr attr = watch(&watched, WATCHED), other = watch(&watched_too, WATCHED);
	struct perfring_read values;
	struct perfring_record record;
	struct live live, next;
	uint64_t buffer[8], id;

	attr.read_format = other.read_format = PERF_FORMAT_ID | 16;
	live_open(&live, &attr, 1);
	next.fd = open_or_skip(&other, -1, -1);
	next.format = live.format;
	cr_assert_eq(ioctl(next.fd, PERF_EVENT_IOC_SET_OUTPUT, live.fd), 0);
	cr_assert_eq(perfring_event_id(next.fd, &id), 0);
	hit(&watched, 200);
	cr_assert_eq(perfring_reader_observe(&live.reader), 170 * 24);
	while (perfring_reader_next(&live.reader, &(const struct perf_event_header *){NULL}) == 1)
		;
	perfring_reader_return(&live.reader);
	hit(&watched_too, 1);
	cr_assert_eq(perfring_reader_observe(&live.reader), 48);
	cr_assert_eq(perfring_record_decode(&live.format, live_next(&live), &record, NULL), 0);
	cr_assert_eq(record.type, PERF_RECORD_LOST);
	cr_assert_eq(record.is.lost.lost, 30);
	cr_assert_eq(record.is.lost.id, id);
	read_values(&live, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_lost(&values, 0), 30);
	cr_assert_neq(perfring_read_id(&values, 0), id);
	read_values(&next, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_lost(&values, 0), 0);
	close(next.fd);
	live_close(&live);
}

/* LOST needs space of its own: a reader that gives back one record at a time frees nothing. */
Test(trap, t13_lost_needs_room_too)
{
	struct perf_event_attr attr = watch(&watched, WATCHED);
	struct live live;
	uint64_t lost;

	live_open(&live, &attr, 1);
	hit(&watched, 200);
	cr_assert_eq(perfring_reader_observe(&live.reader), 4080);
	live_next(&live);
	perfring_reader_return(&live.reader);
	hit(&watched, 1);
	cr_assert_eq(perfring_reader_observe(&live.reader), 4080 - 24, "no space for LOST and a record");
	live_next(&live);
	live_next(&live);
	perfring_reader_return(&live.reader);
	hit(&watched, 1);
	cr_assert_eq(perfring_reader_observe(&live.reader), 4080 - 72 + 48);
	for (int i = 0; i < 167; i++)
		cr_assert_eq(live_next(&live)->type, PERF_RECORD_SAMPLE);
	memcpy(&lost, (const char *)live_next(&live) + 16, 8);
	cr_assert_eq(lost, 31);
	cr_assert_eq(live_next(&live)->type, PERF_RECORD_SAMPLE);
	live_close(&live);
}

/* Positions run freely and wrap: only distances count. */
Test(trap, t14_positions_wrap)
{
	const struct perf_event_header *record;
	struct made made;

	made_open(&made, (uint64_t)-72);
	for (uint64_t i = 0; i < 6; i++)
		made_put(&made, 24, i);
	cr_assert_eq(made.page->data_head, 72);
	cr_assert_eq(perfring_reader_observe(&made.reader), 144);
	for (uint64_t i = 0; i < 6; i++) {
		cr_assert_eq(perfring_reader_next(&made.reader, &record), 1);
		cr_assert_eq(memcmp((const char *)record + 8, &i, 8), 0);
	}
	cr_assert_eq(perfring_reader_next(&made.reader, &record), 0);
	perfring_reader_return(&made.reader);
	cr_assert_eq(made.page->data_tail, 72);
	made_close(&made);
}

/* A ring is never quite full: records that would fill it to the last byte leave one out. */
Test(trap, t15_never_quite_full)
{
	struct perf_event_attr attr = watch(&watched, WATCHED | PERF_SAMPLE_TIME);
	struct live live;

	live_open(&live, &attr, 1);
	hit(&watched, 200);
	cr_assert_eq(perfring_reader_observe(&live.reader), 127 * 32);
	for (int i = 0; i < 127; i++)
		cr_assert_eq(live_next(&live)->size, 32);
	cr_assert_eq(perfring_reader_next(&live.reader, &(const struct perf_event_header *){NULL}), 0);
	live_close(&live);
}

/* What the kernel does not wake for is there all the same: a watermark as large as the ring is never passed. */
Test(trap, t16_records_that_nobody_is_woken_for)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_session *session;
	struct perfring_item item;
	int items = 0;

	attr.sample_id_all = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = PAGE;
	session = session_of(&attr, 1, 1);
	hit(&watched, 200);
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(perfring_session_wait(session, 1), 0);
		while (perfring_session_next(session, &item) == 1)
			items++;
		perfring_session_return(session);
	}
	cr_assert_eq(items, 127, "all but those the ring has no space for");
	perfring_session_close(session);
}

/* wakeup_events counts samples alone. */
Test(trap, t17_wakeup_events_counts_samples)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_session *session;

	attr.sample_id_all = 1;
	attr.comm = 1;
	attr.wakeup_events = 3;
	session = session_of(&attr, 1, 1);
	for (int i = 1; i <= 9; i++) {
		struct pollfd ready = {.fd = perfring_session_fd(session), .events = POLLIN};

		cr_assert_eq(prctl(PR_SET_NAME, i % 2 ? "one" : "two"), 0);
		hit(&watched, 1);
		cr_assert_eq(poll(&ready, 1, 0), i % 3 == 0, "sample %d", i);
	}
	perfring_session_close(session);
}

/* Who polls first takes the wakeup: a session looks at its rings whatever poll says. */
Test(trap, t18_a_wakeup_that_somebody_took)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_item item;
	struct pollfd ready = {.events = POLLIN};
	int items = 0;

	attr.sample_id_all = 1;
	attr.wakeup_events = 1;
	session = session_of(&attr, 1, 1);
	cr_assert_eq(perfring_session_event_at(session, 0, &opened), 1);
	hit(&watched, 5);
	ready.fd = opened.fd;
	cr_assert_eq(poll(&ready, 1, 0), 1);
	cr_assert_eq(poll(&ready, 1, 0), 0, "once");
	cr_assert_eq(perfring_session_wait(session, 0), 0);
	perfring_session_flush(session);
	while (perfring_session_next(session, &item) == 1)
		items++;
	cr_assert_eq(items, 5);
	perfring_session_close(session);
}

/* The first mapping's protection makes a ring that overwrites, for all who map it later: its forward records cannot be
 * read from any beginning. */
Test(trap, t19_the_first_mapping_decides)
{
	struct perf_event_attr attr = watch(&watched, WATCHED);
	struct perfring_ring first, second;
	struct perfring_reader reader;
	int fd = open_or_skip(&attr, -1, -1);

	cr_assert_eq(perfring_ring_map(&first, fd, 1, PERFRING_RING_OVERWRITE), 0);
	cr_assert_eq(perfring_reader_open(&reader, &first, 0), -EINVAL);
	cr_assert_eq(perfring_ring_map(&second, fd, 1, 0), 0);
	cr_assert_eq(perfring_reader_open(&reader, &second, 0), 0);
	hit(&watched, 300);
	cr_assert_eq(second.page->data_head, 300 * 24, "nothing was dropped");
	cr_assert_eq(perfring_reader_observe(&reader), -EBADMSG);
	perfring_reader_close(&reader);
	perfring_ring_close(&second);
	perfring_ring_close(&first);
	close(fd);
}

/* A ring written backwards has its newest record at a head that is below 0: told, not walked as if it were forwards. */
Test(trap, t20_backward_rings)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_session *session;
	struct made made;

	made_open(&made, 0);
	perfring_page_publish(made.page, (uint64_t)-48);
	cr_assert_eq(perfring_reader_observe(&made.reader), -EBADMSG);
	made_close(&made);
	attr.sample_id_all = 1;
	attr.write_backward = 1;
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	cr_assert_eq(refused(session, &attr, "write_backward"), -EINVAL);
	perfring_session_close(session);
}

/* Kernels before 4.1 do not say where the data is. */
Test(trap, t21_data_offset_and_size_of_0)
{
	struct perfring_ring ring;
	struct made made;

	made_open(&made, 0);
	cr_assert_eq(made.page->data_offset, 0);
	cr_assert_eq(made.page->data_size, 0);
	cr_assert(made.ring.data == made.data);
	cr_assert_eq(made.ring.size, PAGE);
	/* Said, they count. */
	made.page->data_offset = PAGE;
	made.page->data_size = PAGE / 2;
	cr_assert_eq(perfring_ring_wrap(&ring, made.page, 2 * PAGE), 0);
	cr_assert_eq(ring.size, PAGE / 2);
	made_close(&made);
}

/* SET_OUTPUT takes -1 as a long: an unsigned -1 is extended with zeros, and no descriptor. */
Test(trap, t22_detaching_takes_a_long)
{
	struct perf_event_attr attr = faults(0);
	int fd = open_or_skip(&attr, -1, -1);
	int result = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)UINT32_MAX), error = errno;

	if (sizeof(long) == 8) {
		cr_assert_eq(result, -1);
		cr_assert_eq(error, EBADF);
	}
	cr_assert_eq(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, -1L), 0, "%s", strerror(errno));
	close(fd);
}

/* Bits 13 and 14 of misc are other things in each kind; the cpumode is three bits of it. */
Test(trap, t23_misc_by_kind)
{
	start(&pack, 14, 0x6000);
	expect_text("SWITCH misc=SWITCH_OUT|SWITCH_OUT_PREEMPT");
	start(&pack, 3, 0x2000);
	word(&pack, 0);
	bytes(&pack, "a\0\0\0\0\0\0", 8);
	expect_text("COMM misc=COMM_EXEC pid=0 tid=0 comm=a");
	start(&pack, 1, 0x2002);
	for (int i = 0; i < 4; i++)
		word(&pack, 0);
	bytes(&pack, "b\0\0\0\0\0\0", 8);
	expect_text("MMAP misc=USER|MMAP_DATA pid=0 tid=0 addr=0 len=0 pgoff=0 filename=b");
	start(&pack, 11, 0x2000);
	for (int i = 0; i < 3; i++)
		word(&pack, 0);
	expect_text("AUX misc=0x2000 aux_offset=0 aux_size=0 flags=0");
	start(&pack, 10, 0x6002);
	cr_assert_eq(perfring_record_cpumode(seal()), 2);
	start(&pack, 9, 0x4005);
	cr_assert_eq(perfring_record_cpumode(seal()), 5);
}

/* Build id or inode: each MMAP2 for itself; 20 bytes are there whatever their number.  With a number that no id has, the bit was left
 * set by another event's record. */
Test(trap, t24_build_ids_by_record)
{
	static const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_TID};
	struct perfring_record record;

	for (int variant = 0; variant < 3; variant++) {
		start(&pack, 10, variant ? 0x4002 : 2);
		for (int i = 0; i < 4; i++)
			word(&pack, 0);
		half(&pack, variant == 1 ? 8 : variant == 2 ? 200 : 1);
		half(&pack, 0x11111111);
		word(&pack, 0x2222222222222222);
		word(&pack, 0x3333333333333333);
		word(&pack, 5 | UINT64_C(2) << 32);
		bytes(&pack, "/bin/a\0", 8);
		decode_record(&format, &record);
		cr_assert_eq(record.is.mmap2.file.has_build_id, variant == 1);
		cr_assert_eq(record.is.mmap2.prot, 5);
		cr_assert(is_text(&record.is.mmap2.filename, "/bin/a"));
		if (variant == 1) {
			cr_assert_eq(record.is.mmap2.file.build_id_size, 8);
			cr_assert_eq(record.is.mmap2.file.build_id[0], 0x11);
			cr_assert_eq(record.is.mmap2.file.build_id[19], 0x33);
		} else {
			cr_assert_eq(record.is.mmap2.file.maj, variant ? 200 : 1);
			cr_assert_eq(record.is.mmap2.file.min, 0x11111111);
			cr_assert_eq(record.is.mmap2.file.ino, 0x2222222222222222);
		}
	}
}

/* A record may go on at the ring's beginning. */
Test(trap, t25_records_in_two_pieces)
{
	const struct perf_event_header *record;
	struct made made;
	uint64_t wrapped = 0;

	made_open(&made, 0);
	for (uint64_t i = 1; i <= 1000; i++) {
		made_put(&made, 88, i);
		perfring_reader_observe(&made.reader);
		cr_assert_eq(perfring_reader_next(&made.reader, &record), 1);
		cr_assert_eq(record->size, 88);
		for (size_t at = 8; at < 88; at += 8)
			cr_assert_eq(memcmp((const char *)record + at, &i, 8), 0);
		wrapped += made.head / PAGE != (made.head - 88) / PAGE && made.head % PAGE;
		perfring_reader_return(&made.reader);
	}
	cr_assert_gt(wrapped, 10);
	made_close(&made);
}

/* PERIOD in sample_type makes every software occurrence a sample, whatever the period. */
Test(trap, t26_period_samples_everything)
{
	for (int with = 0; with < 2; with++) {
		struct perf_event_attr attr = faults(PERF_SAMPLE_IP | (with ? PERF_SAMPLE_PERIOD : 0u));
		struct perfring_sample sample;
		const struct perf_event_header *record;
		struct live live;
		uint64_t samples = 0, faulted;

		attr.sample_period = 7;
		live_open(&live, &attr, 4);
		touch(10);
		ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
		touch(100);
		ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
		perfring_reader_observe(&live.reader);
		for (; perfring_reader_next(&live.reader, &record) == 1; samples++) {
			cr_assert_eq(perfring_sample_decode_any(&live.format, record, &sample, NULL), 0);
			cr_assert(!with || sample.period == 1);
		}
		/* sanitizers may have touched pages of their own */
		cr_assert_eq(read(live.fd, &faulted, sizeof(faulted)), (ssize_t)sizeof(faulted));
		cr_assert_geq(faulted, 100);
		cr_assert_eq(samples, with ? faulted : faulted / 7);
		live_close(&live);
	}
}

/* A frequency of cpu-clock is a period of nanoseconds, and so is what IOC_PERIOD takes. */
Test(trap, t27_a_clocks_frequency_is_a_period)
{
	struct perf_event_attr attr = faults(PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD);
	uint64_t period = 2000000, first = 0, samples = 0;
	clock_t end = clock() + CLOCKS_PER_SEC / 10;
	struct perfring_sample sample;
	struct live live;

	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = 1;
	attr.sample_freq = 1000;
	live_open(&live, &attr, 1);
	/* As a frequency it would be far above perf_event_max_sample_rate. */
	cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_PERIOD, &period), 0);
	ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
	while (clock() < end)
		for (watched = 0; watched < 100000;)
			watched++;
	ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
	perfring_reader_observe(&live.reader);
	for (; live.reader.position != live.reader.observed; samples++) {
		cr_assert_eq(perfring_sample_decode_any(&live.format, live_next(&live), &sample, NULL), 0);
		cr_assert_eq(sample.period, 1000000, "what the frequency became");
		first = first ? first : sample.time;
	}
	cr_assert_geq(samples, 5);
	cr_assert_geq(sample.time - first, (samples - 1) * 1800000, "every 2 ms");
	live_close(&live);
}

/* sample_period 0 counts and never samples; single software occurrences are never throttled. */
Test(trap, t28_what_never_comes)
{
	struct perf_event_attr attr = watch(&watched, WATCHED);
	const struct perf_event_header *record;
	struct perfring_read values;
	struct live live;
	uint64_t buffer[8];
	int samples = 0;

	attr.sample_period = 0;
	live_open(&live, &attr, 1);
	hit(&watched, 10);
	cr_assert_eq(perfring_reader_observe(&live.reader), 0);
	read_values(&live, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_value(&values, 0), 10);
	live_close(&live);
	attr = faults(PERF_SAMPLE_IP);
	live_open(&live, &attr, 64);
	ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
	touch(5000);
	ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
	perfring_reader_observe(&live.reader);
	for (; perfring_reader_next(&live.reader, &record) == 1; samples++)
		cr_assert_eq(record->type, PERF_RECORD_SAMPLE);
	cr_assert_geq(samples, 5000);
	live_close(&live);
}

/* RESET is for values: times and lost counts stay. */
Test(trap, t29_reset_is_not_for_all)
{
	struct perf_event_attr attr = watch(&watched, WATCHED);
	struct perfring_read values;
	struct live live;
	uint64_t buffer[8], enabled;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | 16;
	live_open(&live, &attr, 1);
	hit(&watched, 200);
	read_values(&live, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_value(&values, 0), 200);
	enabled = values.enabled;
	cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_RESET, 0), 0);
	read_values(&live, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_value(&values, 0), 0);
	cr_assert_eq(perfring_read_lost(&values, 0), 30);
	cr_assert_gt(values.enabled, enabled);
	live_close(&live);
}

static void *fork_and_wait(void *argument)
{
	pid_t *ids = argument;

	ids[0] = (pid_t)syscall(SYS_gettid);
	ids[1] = fork();
	if (!ids[1])
		_exit(0);
	return waitpid(ids[1], NULL, 0) == ids[1] ? argument : NULL;
}

/* FORK's ptid is the thread that forked, and its trailer the parent's; EXIT's ptid is a process. */
Test(trap, t30_parents_of_fork_and_exit)
{
	struct perf_event_attr attr = faults(PERF_SAMPLE_TID);
	const struct perf_event_header *at;
	struct perfring_record record;
	struct live live;
	cpu_set_t cpus;
	pthread_t thread;
	pid_t ids[2];
	void *done;
	int forks = 0, exits = 0, cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET((unsigned)cpu, &cpus);
	cr_assert_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.disabled = 0;
	attr.inherit = attr.task = attr.sample_id_all = 1;
	live.fd = open_or_skip(&attr, cpu, -1);
	live_over(&live, live.fd, &attr, 1);
	cr_assert_eq(pthread_create(&thread, NULL, fork_and_wait, ids), 0);
	cr_assert_eq(pthread_join(thread, &done), 0);
	cr_assert_not_null(done);
	perfring_reader_observe(&live.reader);
	while (perfring_reader_next(&live.reader, &at) == 1) {
		cr_assert_eq(perfring_record_decode(&live.format, at, &record, NULL), 0);
		if (record.type == PERF_RECORD_FORK && record.is.fork.pid == (uint32_t)ids[1]) {
			cr_assert_eq(record.is.fork.ppid, (uint32_t)getpid());
			cr_assert_eq(record.is.fork.ptid, (uint32_t)ids[0]);
			cr_assert_eq(record.trailer.tid, (uint32_t)ids[0]);
			forks++;
		}
		if (record.type == PERF_RECORD_EXIT && record.is.exit.pid == (uint32_t)ids[1]) {
			cr_assert_eq(record.is.exit.ptid, (uint32_t)getpid());
			cr_assert_eq(record.trailer.tid, (uint32_t)ids[1]);
			exits++;
		}
	}
	cr_assert_eq(forks, 1);
	cr_assert_eq(exits, 1);
	live_close(&live);
}

/* An attr newer than the kernel: sent as short as it is, and never written to. */
Test(trap, t31_an_attr_too_new)
{
	struct {
		struct perf_event_attr attr;
		unsigned char rest[4096];
	} newer;
	struct perf_event_attr attr = watch(&watched, WATCHED);
	int fd;

	close(open_or_skip(&attr, -1, -1));
	memset(&newer, 0, sizeof(newer));
	newer.attr = attr;
	newer.attr.size = 4096;
	fd = perfring_event_open(&newer.attr, 0, -1, -1, 0);
	cr_assert_geq(fd, 0);
	close(fd);
	((unsigned char *)&newer)[1000] = 1;
	cr_assert_eq(perfring_event_open(&newer.attr, 0, -1, -1, 0), -E2BIG);
	cr_assert_eq(newer.attr.size, 4096, "the kernel's own size was not written over ours");
}

/* Siblings count only under a leader that is enabled, are not enabled with it but by GROUP, and are read in their own
 * format. */
Test(trap, t32_groups)
{
	struct perf_event_attr attr = watch(&watched, 0), sibling = watch(&watched_too, 0);
	struct live leader, member;
	struct perfring_read values;
	uint64_t buffer[16], ids[2];

	attr.read_format = PERF_FORMAT_GROUP;
	sibling.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	attr.disabled = 1;
	leader.fd = open_or_skip(&attr, -1, -1);
	member.fd = open_or_skip(&sibling, -1, leader.fd);
	cr_assert_eq(perfring_format_from_attr(&leader.format, &attr), 0);
	cr_assert_eq(perfring_format_from_attr(&member.format, &sibling), 0);
	cr_assert_eq(perfring_event_id(leader.fd, &ids[0]), 0);
	cr_assert_eq(perfring_event_id(member.fd, &ids[1]), 0);
	hit(&watched_too, 5);
	read_values(&member, &values, buffer, sizeof(buffer));
	cr_assert_eq(values.nr, 2);
	cr_assert_eq(perfring_read_value(&values, 1), 0, "its leader is not enabled");
	cr_assert_eq(perfring_read_id(&values, 0), ids[0]);
	cr_assert_eq(perfring_read_id(&values, 1), ids[1]);
	cr_assert_eq(ioctl(member.fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	cr_assert_eq(ioctl(leader.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	hit(&watched_too, 5);
	read_values(&leader, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_value(&values, 1), 0, "nor is it, yet");
	cr_assert_eq(ioctl(leader.fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), 0);
	hit(&watched_too, 5);
	read_values(&leader, &values, buffer, sizeof(buffer));
	cr_assert_eq(perfring_read_value(&values, 1), 5);
	cr_assert_eq(perfring_read_id(&values, 1), 0);
	close(member.fd);
	close(leader.fd);
}

static char path[64];

/* A perf.data file of one event, IDENTIFIER IP TIME, ids 5, in memory. */
static struct perfring_file_writer *file_begin(int *fd)
{
	struct perf_event_attr attr = faults(ORDERED);
	struct perfring_file_writer *writer;

	*fd = memfd_create("trap", MFD_CLOEXEC);
	cr_assert_geq(*fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	attr.sample_id_all = 1;
	cr_assert_eq(perfring_file_writer_open(&writer, *fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "faults"), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 5), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	return writer;
}

static void file_put(struct perfring_file_writer *writer, size_t size)
{
	struct iovec piece = {pack.bytes, size};

	cr_assert_eq(perfring_file_writer_write(writer, &piece, 1), 0);
}

static void file_put_sample(struct perfring_file_writer *writer, uint64_t ip)
{
	start(&pack, 9, 2);
	word(&pack, 5);
	word(&pack, ip);
	word(&pack, 1000 + ip);
	seal();
	file_put(writer, pack.size);
}

static struct perfring_file *file_end(struct perfring_file_writer *writer)
{
	struct perfring_file *data;

	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	return data;
}

/* Mappings without a file have names that are no paths, from the kernel and in what we write ourselves. */
Test(trap, t33_names_that_are_no_paths)
{
	struct perf_event_attr attr = faults(PERF_SAMPLE_TID);
	struct perfring_file_writer *writer;
	const struct perf_event_header *at;
	struct perfring_record record;
	struct perfring_file *data;
	struct perfring_item item;
	struct live live;
	int fd, found[2] = {0, 0};
	void *memory;

	attr.config = PERF_COUNT_SW_DUMMY;
	attr.mmap = attr.mmap2 = attr.mmap_data = 1;
	live_open(&live, &attr, 1);
	ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
	memory = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
	perfring_reader_observe(&live.reader);
	writer = file_begin(&fd);
	cr_assert_eq(perfring_file_writer_put_process(writer, getpid()), 0);
	data = file_end(writer);
	for (int source = 0; source < 2; source++)
		for (;;) {
			if (source ? perfring_file_next(data, &item) != 1
				   : perfring_reader_next(&live.reader, &at) != 1)
				break;
			at = source ? item.record : at;
			if (at->type != PERF_RECORD_MMAP2)
				continue;
			cr_assert_eq(perfring_record_decode(source ? item.format : &live.format, at, &record, NULL), 0);
			if (record.is.mmap2.addr > (uintptr_t)memory ||
			    record.is.mmap2.addr + record.is.mmap2.len <= (uintptr_t)memory)
				continue;
			cr_assert(is_text(&record.is.mmap2.filename, "//anon"));
			cr_assert_eq(record.misc, 2, "executable: no MMAP_DATA");
			cr_assert_eq(record.is.mmap2.file.ino, 0);
			found[source]++;
		}
	cr_assert_eq(found[0], 1);
	cr_assert_eq(found[1], 1);
	perfring_file_close(data);
	close(fd);
	munmap(memory, PAGE);
	live_close(&live);
}

/* Without sample_id_all other records have neither time nor id: a session does not take it. */
Test(trap, t34_without_sample_id_all)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_format format;
	struct perfring_record record;
	struct perfring_session *session;

	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	start(&pack, 3, 0);
	word(&pack, 1);
	bytes(&pack, "a name of 15 ch", 16);
	decode_record(&format, &record);
	cr_assert(is_text(&record.is.comm.comm, "a name of 15 ch"));
	cr_assert_eq(record.trailer.present, 0);
	cr_assert_eq(perfring_format_time_of(&format, seal()), 0);
	cr_assert_eq(perfring_format_id_of(&format, seal()), 0);
	cr_assert_eq(perfring_session_open(&session, 1), 0);
	cr_assert_eq(refused(session, &attr, "sample_id_all"), -EINVAL);
	perfring_session_close(session);
}

/* Times of two clocks have no order, though the kernel gives each its ring. */
Test(trap, t35_one_clock_in_a_session)
{
	struct perf_event_attr attr = watch(&watched, ORDERED);
	struct perfring_session *session;

	attr.sample_id_all = 1;
	session = session_of(&attr, 1, 1);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	cr_assert_eq(refused(session, &attr, "clock"), -EINVAL);
	perfring_session_close(session);
}

/* Records of odd sizes leave those behind them askew. */
Test(trap, t36_records_askew)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_sample sample;
	struct perfring_item item;
	uint64_t ip = 0;
	int fd, last;

	writer = file_begin(&fd);
	for (uint64_t i = 1; i <= 8; i++) {
		start(&pack, 80, 0);
		word(&pack, 3);
		bytes(&pack, "odd", 3);
		seal();
		file_put(writer, pack.size);
		file_put_sample(writer, i);
	}
	data = file_end(writer);
	while ((last = perfring_file_next(data, &item)) == 1) {
		cr_assert_eq((uintptr_t)item.record % 8, 0);
		if (item.record->type != PERF_RECORD_SAMPLE)
			continue;
		cr_assert_eq(perfring_sample_decode_any(item.format, item.record, &sample, NULL), 0);
		cr_assert_eq(sample.ip, ++ip);
	}
	cr_assert_eq(last, 0);
	cr_assert_eq(ip, 8);
	perfring_file_close(data);
	close(fd);
	/* The decoder itself needs no alignment. */
	start(&pack, 9, 2);
	word(&pack, 77);
	seal();
	memmove(pack.bytes + 3, pack.bytes, 16);
	cr_assert_eq(perfring_sample_decode_any(&(const struct perfring_format){.sample_type = PERFRING_SAMPLE_IP},
						(const void *)(pack.bytes + 3), &sample, NULL),
		     0);
	cr_assert_eq(sample.ip, 77);
}

/* TRACING_DATA and AUXTRACE are followed by bytes that are in no record's size. */
Test(trap, t37_bytes_behind_records)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint32_t types[8];
	size_t nr = 0;
	int fd;

	writer = file_begin(&fd);
	start(&pack, 66, 0);
	word(&pack, 16);
	seal();
	word(&pack, 0);
	word(&pack, 0); /* were it a record: of size 0 */
	file_put(writer, pack.size);
	start(&pack, 71, 0);
	word(&pack, 8);
	for (int i = 0; i < 4; i++)
		word(&pack, 0);
	seal();
	word(&pack, UINT64_MAX);
	file_put(writer, pack.size);
	file_put_sample(writer, 1);
	data = file_end(writer);
	while (nr < 8 && perfring_file_next(data, &item) == 1)
		types[nr++] = item.record->type;
	cr_assert_eq(nr, 3);
	cr_assert_eq(types[0], 66);
	cr_assert_eq(types[1], 71);
	cr_assert_eq(types[2], 9);
	perfring_file_close(data);
	close(fd);
}

/* Attr entries are as far apart as the header says, and their ids stand at their ends. */
Test(trap, t38_attr_entries_of_another_size)
{
	enum {
		ENTRY = 160,
		IDS = 104,
		ENTRIES = IDS + 16,
		DATA = ENTRIES + 2 * ENTRY
	};
	static const uint64_t types[] = {1 << 16 | 1 << 0, 1 << 16 | 1 << 0 | 1 << 3};
	struct perfring_file *data;
	struct perfring_item item;
	int fd = memfd_create("trap", MFD_CLOEXEC), i;

	pack.size = 0;
	bytes(&pack, "PERFILE2", 8);
	for (i = 1; i < 13; i++)
		word(&pack, i == 1   ? 104
			    : i == 2 ? ENTRY
			    : i == 3 ? ENTRIES
			    : i == 4 ? 2 * ENTRY
			    : i == 5 ? DATA
			    : i == 6 ? 24 + 32
				     : 0);
	word(&pack, 5);
	word(&pack, 6);
	for (i = 0; i < 2; i++) {
		size_t entry = pack.size;

		memset(pack.bytes + entry, 0xee, ENTRY);
		memset(pack.bytes + entry, 0, 72);
		pack.bytes[entry + 4] = 72; /* attr.size */
		memcpy(pack.bytes + entry + 24, &types[i], 8);
		pack.size = entry + ENTRY - 16;
		word(&pack, IDS + 8 * (uint64_t)i);
		word(&pack, 8);
	}
	for (i = 0; i < 2; i++) {
		half(&pack, 9);
		half(&pack, (24 + 8 * (uint32_t)i) << 16);
		word(&pack, 5 + (uint64_t)i);
		word(&pack, 0x1000);
		if (i)
			word(&pack, 0x2000);
	}
	cr_assert_eq(write(fd, pack.bytes, pack.size), (ssize_t)pack.size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cr_assert_eq(perfring_file_open(&data, path), 0, "%s", perfring_file_fault(data).what);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(perfring_file_next(data, &item), 1);
		cr_assert_eq(item.format->index, (uint32_t)i);
		cr_assert_eq(item.format->sample_type, types[i]);
		cr_assert_eq(perfring_file_attr(data, (uint32_t)i)->size, 72);
	}
	perfring_file_close(data);
	close(fd);
}

/* HEADER_ATTR's ids begin where its attr ends, by the attr's own size. */
Test(trap, t39_ids_behind_an_attr_of_any_size)
{
	struct perfring_record record;

	for (uint32_t size = 64; size <= 200; size += 8) {
		start(&pack, 64, 0);
		half(&pack, 1);
		half(&pack, size);
		memset(pack.bytes + pack.size, 0xee, size - 8);
		pack.size += size - 8;
		word(&pack, 5);
		word(&pack, 6);
		decode_record(NULL, &record);
		cr_assert_eq(record.is.header_attr.attr.size, size);
		cr_assert_eq(record.is.header_attr.ids.nr, 2);
		cr_assert_eq(record.is.header_attr.ids.words[0], 5);
	}
}

/* -1: no CPU, no thread. */
Test(trap, t40_nowhere_and_nobody)
{
	const struct perfring_format format = {
		.sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CPU,
		.flags = SAMPLE_ID_ALL,
	};
	char line[256];

	start(&pack, 69, 0);
	word(&pack, 1);
	word(&pack, 5);
	word(&pack, 0);
	word(&pack, UINT64_MAX);
	word(&pack, UINT64_MAX);
	expect_text("ID_INDEX index=[{id=5 idx=0 cpu=-1 tid=-1}]");
	start(&pack, 13, 0);
	word(&pack, 3);
	word(&pack, UINT64_MAX);
	half(&pack, UINT32_MAX);
	half(&pack, 0);
	perfring_record_text(&format, seal(), line, sizeof(line));
	cr_assert_str_eq(line, "LOST_SAMPLES lost=3 trailer={tid=-1/-1 cpu=-1}", "%s", line);
}

/* A name may fill its buffer to the last byte. */
Test(trap, t41_names_without_an_end)
{
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_TIME, .flags = SAMPLE_ID_ALL};
	struct perfring_record record;

	start(&pack, 3, 0);
	word(&pack, 1);
	bytes(&pack, "sixteen bytes!!!", 16);
	word(&pack, UINT64_C(0x7878787878787878));
	decode_record(&format, &record);
	cr_assert_eq(record.is.comm.comm.size, 16);
	cr_assert_eq(record.trailer.time, UINT64_C(0x7878787878787878));
	expect_text("COMM pid=1 tid=0 comm=sixteen bytes!!!xxxxxxxx");
}

/* data_tail never passes data_head, not even when data_head falls back or lies. */
Test(trap, t42_no_more_is_given_back_than_was_written)
{
	static const uint64_t lies[] = {48, 100000, (uint64_t)-8, 76};
	const struct perf_event_header *record;

	for (size_t i = 0; i < 4; i++) {
		struct made made;

		made_open(&made, 0);
		for (uint64_t k = 0; k < 4; k++)
			made_put(&made, 24, k);
		perfring_reader_return(&made.reader);
		cr_assert_eq(made.page->data_tail, 0);
		cr_assert_eq(perfring_reader_observe(&made.reader), 96);
		for (int k = 0; k < 3; k++)
			perfring_reader_next(&made.reader, &record);
		perfring_reader_return(&made.reader);
		cr_assert_eq(made.page->data_tail, 72, "three of four");
		perfring_page_publish(made.page, lies[i]);
		cr_assert_eq(perfring_reader_observe(&made.reader), -EBADMSG);
		perfring_reader_return(&made.reader);
		cr_assert_eq(made.page->data_tail, 72);
		perfring_reader_skip(&made.reader);
		cr_assert_eq(made.page->data_tail, lies[i] & ~UINT64_C(7));
		made_close(&made);
	}
}

/* To share a ring must not make a group: FD_OUTPUT without NO_GROUP would. */
Test(trap, t43_sharing_a_ring_makes_no_group)
{
	struct perf_event_attr attrs[2] = {watch(&watched, ORDERED), watch(&watched_too, ORDERED)};
	struct perfring_session *session;
	struct perfring_session_event opened;
	struct perfring_format format;
	struct perfring_read values;
	uint64_t buffer[8];

	for (int i = 0; i < 2; i++) {
		attrs[i].sample_id_all = 1;
		attrs[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	}
	session = session_of(attrs, 2, 1);
	cr_assert_eq(perfring_session_ring_count(session), 1);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(perfring_session_event_at(session, i, &opened), 1);
		cr_assert_eq(perfring_format_from_attr(&format, &attrs[i]), 0);
		cr_assert_eq(perfring_event_read(opened.fd, &format, &values, buffer, sizeof(buffer)), 0);
		cr_assert_eq(values.nr, 1);
		cr_assert_eq(perfring_read_id(&values, 0), opened.id);
	}
	perfring_session_close(session);
}

/* Two mappings of an event are one ring with one data_tail: who comes later goes on where the first one stopped. */
Test(trap, t44_mapped_twice_is_one_ring)
{
	struct perf_event_attr attr = watch(&watched, WATCHED);
	struct live live, again;

	live_open(&live, &attr, 1);
	hit(&watched, 3);
	cr_assert_eq(perfring_reader_observe(&live.reader), 72);
	live_next(&live);
	live_next(&live);
	perfring_reader_return(&live.reader);
	live_over(&again, dup(live.fd), &attr, 1);
	cr_assert(again.ring.page != live.ring.page);
	cr_assert_eq(perfring_reader_observe(&again.reader), 24);
	live_next(&again);
	perfring_reader_return(&again.reader);
	cr_assert_eq(live.ring.page->data_tail, 72, "the first one's too");
	live_close(&again);
	live_close(&live);
}

/* The bytes of a TEXT_POKE end anywhere: padding comes before the trailer. */
Test(trap, t45_text_poke_is_padded)
{
	const struct perfring_format format = {.sample_type = PERFRING_SAMPLE_TIME, .flags = SAMPLE_ID_ALL};
	struct perfring_record record;
	unsigned char again[64];

	for (uint16_t extra = 0; extra < 8; extra++) {
		start(&pack, 20, 1);
		word(&pack, 0x1000);
		quarter(&pack, 3);
		quarter(&pack, (uint16_t)(2 + extra));
		bytes(&pack, "OLDnewnewnew", 5 + (size_t)extra);
		while (pack.size % 8)
			bytes(&pack, "", 1);
		word(&pack, 99);
		decode_record(&format, &record);
		cr_assert_eq(record.is.text_poke.poke.new_len, 2 + extra);
		cr_assert_eq(memcmp(record.is.text_poke.poke.new_bytes, "newnewnew", 2 + (size_t)extra), 0);
		cr_assert_eq(record.trailer.time, 99);
		cr_assert_eq(perfring_record_encode(&format, &record, again, sizeof(again)), (int64_t)pack.size);
		cr_assert_eq(memcmp(again, pack.bytes, pack.size), 0);
	}
}

/* Of events whose records differ only IDENTIFIER can tell: it stands at one place in all of them. */
Test(trap, t46_identifier_for_several_events)
{
	struct perf_event_attr attrs[2] = {watch(&watched, ORDERED | PERF_SAMPLE_ADDR), watch(&watched_too, ORDERED)};
	const struct perfring_format *format;
	struct perfring_format_set *set;
	struct perfring_session *session;

	attrs[0].sample_id_all = attrs[1].sample_id_all = 1;
	cr_assert_eq(perfring_format_set_open(&set), 0);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(perfring_format_set_add(set, &attrs[i]), (int)i);
		cr_assert_eq(perfring_format_set_put(set, 7 + i, i), 0);
	}
	for (uint64_t i = 0; i < 2; i++) {
		start(&pack, 9, 2);
		word(&pack, 7 + i);
		for (uint64_t k = i; k < 3; k++)
			word(&pack, 8 - i); /* ids where ids could be, too */
		cr_assert_eq(perfring_format_set_of(set, seal(), &format, NULL), 0);
		cr_assert_eq(format->index, i);
	}
	perfring_format_set_close(set);
	session = session_of(attrs, 1, 1);
	attrs[1].sample_type &= ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	cr_assert_eq(refused(session, &attrs[1], "IDENTIFIER"), -EINVAL);
	perfring_session_close(session);
}

/* precise_ip is taken for software events, and makes nothing exact. */
Test(trap, t47_precise_without_effect)
{
	struct perf_event_attr attr = faults(PERF_SAMPLE_IP);
	struct live live;

	cr_assert_eq(perfring_event_parse("page-faults:ppp", &attr, NULL), 0);
	cr_assert_eq(attr.precise_ip, 3);
	live_open(&live, &attr, 1);
	ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0);
	touch(10);
	ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0);
	cr_assert_geq(perfring_reader_observe(&live.reader), 160);
	while (live.reader.position != live.reader.observed) {
		const struct perf_event_header *record = live_next(&live);

		cr_assert_eq(record->misc & 0x4000, 0);
		cr_assert_leq(perfring_record_cpumode(record), 2);
	}
	live_close(&live);
}

/* An attr is as long as what it says: 136 bytes at most for a kernel that does not know config4. */
Test(trap, t48_attrs_no_longer_than_needed)
{
	static union {
		struct perf_event_attr attr;
		uint64_t words[18];
	} is;

	is.attr.size = 144;
	cr_assert_eq(perfring_attr_size(&is.attr), 64);
	is.words[16] = 1; /* config3 */
	cr_assert_eq(perfring_attr_size(&is.attr), 136);
	is.words[17] = 1; /* config4 */
	cr_assert_eq(perfring_attr_size(&is.attr), 144);
	is.words[16] = is.words[17] = 0;
	is.words[14] = 1; /* aux_sample_size */
	cr_assert_eq(perfring_attr_size(&is.attr), 120);
}
