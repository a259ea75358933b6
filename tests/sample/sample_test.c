/* sample_test.c - every field of PERF_RECORD_SAMPLE, decoded and encoded, from bytes packed by hand and from this kernel. */
#include "test.h"
#include "pack.h"

#include "sample/within.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fill(struct pack *pack, unsigned char value, size_t size)
{
	memset(pack->bytes + pack->size, value, size);
	pack->size += size;
}

/* Writes the header into an exact allocation, `odd` bytes behind an aligned address: the end of the record is the end
 * of the allocation, so the address sanitizer sees every read outside. */
static const struct perf_event_header *finish(const struct pack *pack, size_t size, size_t odd)
{
	struct perf_event_header header = {9, 2, (uint16_t)size};
	unsigned char *exact = malloc(size + odd);

	cr_assert_not_null(exact);
	memcpy(exact + odd, pack->bytes, size);
	memcpy(exact + odd, &header, sizeof(header));
	return (const void *)(exact + odd);
}

static void drop(const struct perf_event_header *record, size_t odd)
{
	free((unsigned char *)(uintptr_t)record - odd);
}

/* Encodes what was decoded from `record`: the same bytes, padded with zeros to a multiple of 8, and no others; where one
 * byte is missing, none. */
static void encodes_back(const struct perfring_format *format, const struct perf_event_header *record,
			 const struct perfring_sample *sample)
{
	static unsigned char buffer[65536], untouched[65536];
	struct perf_event_header header, given;
	size_t size, padded, i;

	memcpy(&given, record, sizeof(given));
	size = given.size;
	padded = (size + 7) / 8 * 8;
	memset(untouched, 0xa5, sizeof(untouched));
	memset(buffer, 0xa5, sizeof(buffer));
	cr_assert_eq(perfring_sample_size_any(format, sample), (int64_t)padded);
	cr_assert_eq(perfring_sample_encode_any(format, sample, buffer, padded - 1), -ENOSPC);
	cr_assert_eq(perfring_sample_encode_any(format, sample, buffer, 0), -ENOSPC);
	cr_assert(!memcmp(buffer, untouched, sizeof(buffer)), "refused, but written");
	cr_assert_eq(perfring_sample_encode_any(format, sample, buffer, padded), (int64_t)padded);
	memcpy(&header, buffer, sizeof(header));
	cr_assert_eq(header.type, 9);
	cr_assert_eq(header.misc, given.misc);
	cr_assert_eq(header.size, padded);
	for (i = 8; i < size; i++)
		cr_assert_eq(buffer[i], ((const unsigned char *)record)[i], "byte %zu of %zu", i, size);
	for (i = size; i < padded; i++)
		cr_assert_eq(buffer[i], 0);
	cr_assert(!memcmp(buffer + padded, untouched, sizeof(buffer) - padded), "written behind the record");
	/* A longer one changes nothing. */
	cr_assert_eq(perfring_sample_encode(format, sample, buffer, sizeof(buffer)), (int64_t)padded);
	cr_assert(!memcmp(buffer + padded, untouched, sizeof(buffer) - padded));
}

/* Decodes, and checks what must hold for any record of one fixed length: every shorter one is refused, at a place
 * within it, none of the odd addresses is, and encoding gives the bytes back.  The record and *sample stay valid until
 * drop(). */
static const struct perf_event_header *decode(const struct perfring_format *format, const struct pack *pack,
					      struct perfring_sample *sample)
{
	struct perfring_fault fault = {-1, NULL};
	const struct perf_event_header *record;
	size_t size, odd;

	for (size = 8; size < pack->size; size++) {
		record = finish(pack, size, size % 4);
		fault.what = NULL;
		cr_assert_eq(perfring_sample_decode_any(format, record, sample, &fault), -EBADMSG,
			     "cut to %zu of %zu bytes", size, pack->size);
		cr_assert_eq(perfring_sample_decode_any(format, record, sample, NULL), -EBADMSG);
		cr_assert_not_null(fault.what);
		cr_assert_geq(fault.at, 8);
		cr_assert_leq(fault.at, (int64_t)size);
		drop(record, size % 4);
	}
	for (odd = 1; odd < 8; odd++) {
		record = finish(pack, pack->size, odd);
		cr_assert_eq(perfring_sample_decode_any(format, record, sample, NULL), 0);
		drop(record, odd);
	}
	record = finish(pack, pack->size, 0);
	cr_assert_eq(perfring_sample_decode_any(format, record, sample, &fault), 0, "%s at %lld",
		     fault.what ? fault.what : "?", (long long)fault.at);
	cr_assert_eq(sample->present, format->sample_type);
	cr_assert_eq(sample->trailing_size, 0);
	cr_assert(sample->trailing == (const unsigned char *)record + pack->size);
	cr_assert_eq(sample->misc, 2);
	encodes_back(format, record, sample);
	return record;
}

Test(sample, words_stand_in_wire_order, .timeout = 30)
{
	/* IP TID TIME ADDR ID CPU PERIOD STREAM_ID WEIGHT DATA_SRC IDENTIFIER TRANSACTION PHYS_ADDR CGROUP
	 * DATA_PAGE_SIZE CODE_PAGE_SIZE */
	struct perfring_format format = {.sample_type = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 1 << 14 |
							1 << 15 | 1 << 16 | 1 << 17 | 1 << 19 | 1 << 21 | 1 << 22 |
							1 << 23};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;
	int planned;

	for (planned = 0; planned < 2; planned++) {
		start(&pack, 9, 2);
		word(&pack, 0x1601);
		word(&pack, 0x0001);
		half(&pack, 0x0101);
		half(&pack, 0x0102);
		word(&pack, 0x0201);
		word(&pack, 0x0301);
		word(&pack, 0x0601);
		word(&pack, 0x0901);
		half(&pack, 0x0701);
		half(&pack, 0x0702);
		word(&pack, 0x0801);
		word(&pack, 0x1401);
		word(&pack, 0x1501);
		word(&pack, 0x1701);
		word(&pack, 0x1901);
		word(&pack, 0x2101);
		word(&pack, 0x2201);
		word(&pack, 0x2301);
		record = decode(&format, &pack, &sample);
		cr_assert_eq(sample.identifier, 0x1601);
		cr_assert_eq(sample.ip, 1);
		cr_assert_eq(sample.pid, 0x0101);
		cr_assert_eq(sample.tid, 0x0102);
		cr_assert_eq(sample.time, 0x0201);
		cr_assert_eq(sample.addr, 0x0301);
		cr_assert_eq(sample.id, 0x0601);
		cr_assert_eq(sample.stream_id, 0x0901);
		cr_assert_eq(sample.cpu, 0x0701);
		cr_assert_eq(sample.cpu_reserved, 0x0702);
		cr_assert_eq(sample.period, 0x0801);
		cr_assert_eq(sample.weight, 0x1401);
		cr_assert_eq(sample.data_src, 0x1501);
		cr_assert_eq(sample.transaction, 0x1701);
		cr_assert_eq(sample.phys_addr, 0x1901);
		cr_assert_eq(sample.cgroup, 0x2101);
		cr_assert_eq(sample.data_page_size, 0x2201);
		cr_assert_eq(sample.code_page_size, 0x2301);
		drop(record, 0);
		perfring_format_plan(&format);
	}
}

Test(sample, each_word_alone, .timeout = 30)
{
	static const unsigned bits[] = {0, 1, 2, 3, 6, 7, 8, 9, 14, 15, 16, 17, 19, 21, 22, 23, 24};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;
	size_t i;

	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		struct perfring_format format = {.sample_type = UINT64_C(1) << bits[i]};

		start(&pack, 9, 2);
		word(&pack, UINT64_C(0x1111222233334444));
		record = decode(&format, &pack, &sample);
		drop(record, 0);
	}
}

Test(sample, weight_struct, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 << 24 | 1 << 23};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	word(&pack, UINT64_C(0x0003000200000001));
	word(&pack, 4096);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.weight_struct.var1, 1);
	cr_assert_eq(sample.weight_struct.var2, 2);
	cr_assert_eq(sample.weight_struct.var3, 3);
	cr_assert_eq(sample.code_page_size, 4096);
	drop(record, 0);
}

/* The block of docs/abi.md 2.2, written from its text. */
static void read_block(struct pack *pack, uint64_t read_format, uint64_t nr)
{
	bool enabled = read_format & 1, running = read_format & 2, id = read_format & 4, group = read_format & 8,
	     lost = read_format & 16;
	uint64_t i;

	if (group)
		word(pack, nr);
	else
		word(pack, 100);
	if (enabled)
		word(pack, 7001);
	if (running)
		word(pack, 7002);
	for (i = 0; i < (group ? nr : 1); i++) {
		if (group)
			word(pack, 100 + i);
		if (id)
			word(pack, 200 + i);
		if (lost)
			word(pack, 300 + i);
	}
}

Test(sample, every_read_format, .timeout = 60)
{
	static struct pack pack;
	struct perfring_sample sample;
	const struct perf_event_header *record;
	uint64_t shape, nr, i;

	for (shape = 0; shape < 32; shape++) {
		for (nr = 0; nr < 4; nr++) {
			struct perfring_format format = {.sample_type = 1 << 4 | 1 << 15, .read_format = shape};

			if (!(shape & 8) && nr != 1)
				continue;
			perfring_format_plan(&format);
			start(&pack, 9, 2);
			read_block(&pack, shape, nr);
			word(&pack, 0xabc);
			record = decode(&format, &pack, &sample);
			cr_assert_eq(sample.read.nr, nr);
			cr_assert_eq(sample.read.enabled, shape & 1 ? 7001 : 0, "shape %llu",
				     (unsigned long long)shape);
			cr_assert_eq(sample.read.running, shape & 2 ? 7002 : 0);
			for (i = 0; i < nr; i++) {
				cr_assert_eq(perfring_read_value(&sample.read, i), 100 + i);
				cr_assert_eq(perfring_read_id(&sample.read, i), shape & 4 ? 200 + i : 0);
				cr_assert_eq(perfring_read_lost(&sample.read, i), shape & 16 ? 300 + i : 0);
			}
			cr_assert_eq(sample.data_src, 0xabc);
			drop(record, 0);
		}
	}
}

Test(sample, callchain, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 << 5 | 1 << 21};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	word(&pack, 4);
	word(&pack, (uint64_t)-128);
	word(&pack, UINT64_C(0xffffffff81000000));
	word(&pack, (uint64_t)-512);
	word(&pack, 0x401000);
	word(&pack, 1);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.callchain.nr, 4);
	cr_assert(perfring_list_is_marker(sample.callchain.words[0]));
	cr_assert_not(perfring_list_is_marker(sample.callchain.words[1]));
	cr_assert_eq(sample.callchain.words[1], UINT64_C(0xffffffff81000000));
	cr_assert_eq(sample.callchain.words[3], 0x401000);
	cr_assert_eq(sample.cgroup, 1);
	drop(record, 0);
	cr_assert(perfring_list_is_marker((uint64_t)-4095));
	cr_assert_not(perfring_list_is_marker((uint64_t)-4096));

	start(&pack, 9, 2);
	word(&pack, 0);
	word(&pack, 2);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.callchain.nr, 0);
	cr_assert_eq(sample.cgroup, 2);
	drop(record, 0);
}

/* Sizes as the kernel pads them (docs/abi.md 15), and odd ones of others: what follows is unaligned then. */
Test(sample, raw_sizes, .timeout = 30)
{
	static const uint32_t sizes[] = {4, 12, 20, 0, 1, 2, 3, 5, 7, 100};
	struct perfring_format format = {.sample_type = 1 << 10 | 1 << 5};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		start(&pack, 9, 2);
		word(&pack, 1);
		word(&pack, 0x77);
		half(&pack, sizes[i]);
		fill(&pack, 0x5a, sizes[i]);
		record = decode(&format, &pack, &sample);
		cr_assert_eq(sample.raw.size, sizes[i]);
		cr_assert(sample.raw.data == (const unsigned char *)record + 28);
		cr_assert_eq(sample.callchain.words[0], 0x77);
		drop(record, 0);
	}
	format.sample_type = 1 << 10 | 1 << 15 | 1 << 18;
	format.sample_regs_intr = 3;
	start(&pack, 9, 2);
	half(&pack, 3);
	fill(&pack, 1, 3);
	word(&pack, 0xda7a);
	word(&pack, 2);
	word(&pack, 11);
	word(&pack, 12);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.data_src, 0xda7a);
	cr_assert_eq(sample.regs_intr.nr, 2);
	cr_assert_eq(sample.regs_intr.values[1], 12);
	drop(record, 0);
}

enum {
	HW_INDEX = 1 << 17,
	COUNTERS = 1 << 19
};

static void branches(struct pack *pack, uint64_t nr, bool hw_idx, bool counters)
{
	uint64_t i;

	word(pack, nr);
	if (hw_idx)
		word(pack, 5);
	for (i = 0; i < nr; i++) {
		word(pack, 0x1000 + i);
		word(pack, 0x2000 + i);
		word(pack, 2);
	}
	for (i = 0; counters && i < nr; i++)
		word(pack, 0x3000 + i);
}

Test(sample, branch_stacks, .timeout = 60)
{
	static struct pack pack;
	struct perfring_fault fault = {-1, NULL};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	unsigned asked, there;
	uint64_t nr;

	for (asked = 0; asked < 4; asked++) {
		for (there = 0; there < 4; there++) {
			for (nr = 0; nr < 4; nr++) {
				struct perfring_format format = {
					.sample_type = 1 | 1 << 11 | 1 << 14,
					.branch_sample_type =
						8u | (asked & 1 ? HW_INDEX : 0) | (asked & 2 ? COUNTERS : 0),
				};

				/* Never more than was asked; hw_idx goes only together with the branches. */
				if ((there & ~asked) || (nr && (asked & 1) && !(there & 1)))
					continue;
				perfring_format_plan(&format);
				start(&pack, 9, 2);
				word(&pack, 0x10);
				branches(&pack, nr, there & 1, there & 2);
				word(&pack, 0x99);
				record = finish(&pack, pack.size, 3);
				cr_assert_eq(perfring_sample_decode(&format, record, &sample, &fault), 0, "%s",
					     fault.what ? fault.what : "?");
				cr_assert_eq(sample.trailing_size, 0, "asked %u there %u nr %llu", asked, there,
					     (unsigned long long)nr);
				cr_assert_eq(sample.branch_stack.nr, nr);
				cr_assert_eq(sample.branch_stack.has_hw_idx, (there & 1) != 0);
				cr_assert_eq(sample.branch_stack.hw_idx, there & 1 ? 5 : 0);
				cr_assert_eq(sample.weight, 0x99);
				encodes_back(&format, record, &sample);
				if (nr)
					cr_assert_eq(sample.branch_stack.entries[nr * 3 - 2], 0x2000 + nr - 1);
				if (nr && (there & 2)) {
					cr_assert_not_null(sample.branch_stack.counters);
					cr_assert_eq(sample.branch_stack.counters[nr - 1], 0x3000 + nr - 1);
				} else if (nr) {
					cr_assert_null(sample.branch_stack.counters);
				}
				drop(record, 3);
			}
		}
	}
}

/* A newer kernel's trailing bytes: no shape uses up the record, the whole one is taken. */
Test(sample, branch_stack_with_bytes_behind, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 << 11, .branch_sample_type = 8 | HW_INDEX | COUNTERS};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	branches(&pack, 2, true, true);
	word(&pack, 1);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, NULL), 0);
	cr_assert(sample.branch_stack.has_hw_idx);
	cr_assert_not_null(sample.branch_stack.counters);
	cr_assert_eq(sample.branch_stack.counters[1], 0x3001);
	cr_assert_eq(sample.trailing_size, 8);
	encodes_back(&format, record, &sample);
	drop(record, 0);
}

/* Counters were asked for, and are not there; taken for counters, the registers would leave a word behind. */
Test(sample, branch_stack_shape_that_uses_up_the_record, .timeout = 30)
{
	struct perfring_format format = {
		.sample_type = 1 << 11 | 1 << 18, .branch_sample_type = 8 | COUNTERS, .sample_regs_intr = 3};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	branches(&pack, 1, false, false);
	word(&pack, 2);
	word(&pack, 0);
	word(&pack, 7);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, NULL), 0);
	cr_assert_null(sample.branch_stack.counters);
	cr_assert_eq(sample.regs_intr.nr, 2);
	cr_assert_eq(sample.regs_intr.values[1], 7);
	cr_assert_eq(sample.trailing_size, 0);
	encodes_back(&format, record, &sample);
	drop(record, 0);
}

Test(sample, registers, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 << 12 | 1 << 18,
					 .sample_regs_user = UINT64_C(0x8000000000000103),
					 .sample_regs_intr = 0x80};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	word(&pack, 2);
	word(&pack, 10);
	word(&pack, 11);
	word(&pack, 18);
	word(&pack, 73);
	word(&pack, 1);
	word(&pack, 17);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.regs_user.abi, 2);
	cr_assert_eq(sample.regs_user.nr, 4);
	cr_assert_eq(sample.regs_user.mask, UINT64_C(0x8000000000000103));
	cr_assert_eq(sample.regs_user.values[2], 18);
	cr_assert_eq(sample.regs_user.values[3], 73);
	cr_assert_eq(sample.regs_intr.abi, 1);
	cr_assert_eq(sample.regs_intr.values[0], 17);
	drop(record, 0);

	/* A kernel thread has no user registers: abi 0 and nothing else. */
	start(&pack, 9, 2);
	word(&pack, 0);
	word(&pack, 2);
	word(&pack, 17);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.regs_user.abi, 0);
	cr_assert_eq(sample.regs_user.nr, 0);
	cr_assert_eq(sample.regs_intr.nr, 1);
	cr_assert_eq(sample.regs_intr.values[0], 17);
	drop(record, 0);
}

Test(sample, stacks_and_aux, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 << 13 | 1 << 20 | 1 << 15};
	struct perfring_fault fault = {-1, NULL};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;

	start(&pack, 9, 2);
	word(&pack, 16);
	fill(&pack, 0xaa, 16);
	word(&pack, 8);
	word(&pack, 0xd);
	word(&pack, 24);
	fill(&pack, 0xbb, 24);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.stack_user.size, 16);
	cr_assert_eq(sample.stack_user.dyn_size, 8);
	cr_assert(sample.stack_user.data == (const unsigned char *)record + 16);
	cr_assert_eq(sample.data_src, 0xd);
	cr_assert_eq(sample.aux.size, 24);
	cr_assert_eq(*(const unsigned char *)sample.aux.data, 0xbb);
	drop(record, 0);

	/* size 0: no dyn_size follows (docs/abi.md 14.4). */
	start(&pack, 9, 2);
	word(&pack, 0);
	word(&pack, 0xd);
	word(&pack, 0);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.stack_user.size, 0);
	cr_assert_eq(sample.stack_user.dyn_size, 0);
	cr_assert_eq(sample.data_src, 0xd);
	cr_assert_eq(sample.aux.size, 0);
	drop(record, 0);

	start(&pack, 9, 2);
	word(&pack, 8);
	fill(&pack, 0, 8);
	word(&pack, 9);
	word(&pack, 0xd);
	word(&pack, 0);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, &fault), -EBADMSG, "dyn_size above size");
	cr_assert_eq(fault.at, 8);
	drop(record, 0);
}

/* Every bit but WEIGHT (beside WEIGHT_STRUCT). */
static void pack_all(struct pack *pack)
{
	start(pack, 9, 2);
	word(pack, 1601);
	word(pack, 1);
	half(pack, 101);
	half(pack, 102);
	word(pack, 201);
	word(pack, 301);
	word(pack, 601);
	word(pack, 901);
	half(pack, 701);
	half(pack, 0);
	word(pack, 801);
	read_block(pack, 31, 2);
	word(pack, 2);
	word(pack, (uint64_t)-512);
	word(pack, 0x400000);
	half(pack, 12);
	fill(pack, 3, 12);
	branches(pack, 2, true, true);
	word(pack, 2);
	word(pack, 1201);
	word(pack, 1202);
	word(pack, 16);
	fill(pack, 4, 16);
	word(pack, 16);
	word(pack, UINT64_C(0x0003000200000001));
	word(pack, 1501);
	word(pack, 1701);
	word(pack, 1);
	word(pack, 1801);
	word(pack, 1901);
	word(pack, 2101);
	word(pack, 2201);
	word(pack, 2301);
	word(pack, 8);
	fill(pack, 5, 8);
}

static const struct perfring_format all_bits = {
	.sample_type = ((1 << 25) - 1) & ~(1 << 14),
	.read_format = 31,
	.branch_sample_type = 8 | HW_INDEX | COUNTERS,
	.sample_regs_user = 5,
	.sample_regs_intr = 1 << 8,
};

Test(sample, all_bits_together, .timeout = 30)
{
	struct perfring_format format = all_bits;
	struct perfring_fault fault = {-1, NULL};
	struct perfring_sample sample;
	const struct perf_event_header *record;
	static struct pack pack;
	size_t size;

	perfring_format_plan(&format);
	pack_all(&pack);
	record = decode(&format, &pack, &sample);
	cr_assert_eq(sample.identifier, 1601);
	cr_assert_eq(sample.period, 801);
	cr_assert_eq(perfring_read_lost(&sample.read, 1), 301);
	cr_assert_eq(sample.callchain.words[1], 0x400000);
	cr_assert_eq(sample.raw.size, 12);
	cr_assert_eq(sample.branch_stack.counters[1], 0x3001);
	cr_assert_eq(sample.regs_user.values[1], 1202);
	cr_assert_eq(sample.stack_user.dyn_size, 16);
	cr_assert_eq(sample.weight_struct.var3, 3);
	cr_assert_eq(sample.transaction, 1701);
	cr_assert_eq(sample.regs_intr.values[0], 1801);
	cr_assert_eq(sample.code_page_size, 2301);
	cr_assert_eq(sample.aux.size, 8);
	drop(record, 0);

	/* Bytes behind the last field are handed over, not refused; bits that we do not know are not present. */
	word(&pack, 0x1234);
	format.sample_type |= UINT64_C(1) << 40;
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, &fault), 0);
	cr_assert_eq(sample.present, all_bits.sample_type);
	cr_assert_eq(sample.trailing_size, 8);
	cr_assert_eq(*(const perfring_word *)sample.trailing, 0x1234);
	encodes_back(&format, record, &sample);
	drop(record, 0);

	/* Sizes that no record can have. */
	for (size = 0; size < 8; size++) {
		struct perf_event_header header = {9, 2, (uint16_t)size};
		struct perfring_format none = {.sample_type = 0};

		cr_assert_eq(perfring_sample_decode_any(&format, &header, &sample, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 6);
		cr_assert_eq(perfring_sample_decode_any(&none, &header, &sample, &fault), -EBADMSG);
		none.least = 1; /* a plan that is wrong */
		cr_assert_eq(perfring_sample_decode_any(&none, &header, &sample, &fault), -EBADMSG);
	}
}

/* Counts from the bytes, multiplied, must not come round to something small. */
Test(sample, counts_that_overflow, .timeout = 30)
{
	static const uint64_t counts[] = {2,
					  3,
					  UINT64_C(1) << 28,
					  UINT64_C(1) << 29,
					  UINT64_C(1) << 32,
					  (UINT64_C(1) << 32) + 1,
					  UINT64_C(1) << 59,
					  UINT64_C(1) << 60,
					  UINT64_C(1) << 61,
					  (UINT64_C(1) << 61) + 1,
					  UINT64_C(0xaaaaaaaaaaaaaab), /* times 24 is 8 */
					  UINT64_C(1) << 63,
					  UINT64_MAX};
	static const struct perfring_format formats[] = {
		{.sample_type = 1 << 4, .read_format = 8},
		{.sample_type = 1 << 4, .read_format = 8 | 4},
		{.sample_type = 1 << 4, .read_format = 28},
		{.sample_type = 1 << 5},
		{.sample_type = 1 << 11},
		{.sample_type = 1 << 11, .branch_sample_type = COUNTERS},
		{.sample_type = 1 << 11, .branch_sample_type = HW_INDEX},
		{.sample_type = 1 << 13},
		{.sample_type = 1 << 20},
	};
	struct perfring_fault fault;
	struct perfring_sample sample;
	static struct pack pack;
	size_t i, j;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		for (j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			uint64_t bytes_there =
				formats[i].sample_type == 1 << 13 || formats[i].sample_type == 1 << 20 ? 64 : 8;
			const struct perf_event_header *record;

			start(&pack, 9, 2);
			word(&pack, counts[j] * (bytes_there == 64 ? 8 : 1));
			word(&pack, 0);
			record = finish(&pack, pack.size, 1);
			if (bytes_there == 8 || counts[j] * 8 > 8) {
				cr_assert_eq(perfring_sample_decode_any(&formats[i], record, &sample, &fault), -EBADMSG,
					     "format %zu count %llx", i, (unsigned long long)counts[j]);
				cr_assert_eq(fault.at, 8);
			}
			drop(record, 1);
		}
	}
	/* RAW's is a u32. */
	for (j = 0; j < 3; j++) {
		static const uint32_t raw[] = {5, UINT32_MAX - 11, UINT32_MAX};
		static const struct perfring_format format = {.sample_type = 1 << 10};
		const struct perf_event_header *record;

		start(&pack, 9, 2);
		half(&pack, raw[j]);
		half(&pack, 0);
		record = finish(&pack, pack.size, 1);
		cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, &fault), -EBADMSG);
		drop(record, 1);
	}
}

static bool same_fault(const struct perfring_fault *a, const struct perfring_fault *b)
{
	return a->at == b->at && !strcmp(a->what, b->what);
}

/* The inlines for constant formats and the compiled functions, over every length: one answer. */
#define SAME(constant, samples) \
	do { \
		size_t size; \
		for (size = 8; size <= pack.size; size++) { \
			const struct perf_event_header *record = finish(&pack, size, 0); \
			struct perfring_fault one = {0, ""}, two = {0, ""}; \
			int first, second; \
\
			memset(samples, 0x55, sizeof(samples)); \
			first = perfring_sample_decode(&(constant), record, &(samples)[0], &one); \
			second = perfring_sample_decode_any(&(constant), record, &(samples)[1], &two); \
			cr_assert_eq(first, second); \
			cr_assert(first == 0 || same_fault(&one, &two)); \
			cr_assert(first != 0 || !memcmp(&(samples)[0], &(samples)[1], sizeof((samples)[0]))); \
			if (first == 0) { \
				size_t buffer = size - 8 + (size_t)rand() % 16; /* about as much as is needed */ \
				static unsigned char buffers[2][65536]; \
\
				memset(buffers, 0x5a, sizeof(buffers)); \
				cr_assert_eq(perfring_sample_size(&(constant), &(samples)[0]), \
					     perfring_sample_size_any(&(constant), &(samples)[0])); \
				cr_assert_eq(perfring_sample_encode(&(constant), &(samples)[0], buffers[0], buffer), \
					     perfring_sample_encode_any(&(constant), &(samples)[0], buffers[1], buffer)); \
				cr_assert(!memcmp(buffers[0], buffers[1], sizeof(buffers[0]))); \
				encodes_back(&(constant), record, &(samples)[0]); \
			} \
			drop(record, 0); \
		} \
	} while (0)

Test(sample, constant_and_run_time_codecs_agree, .timeout = 30)
{
	static const struct perfring_format few = {.sample_type = 1 | 2 | 4 | 1 << 8};
	static const struct perfring_format many = {.sample_type = ((1 << 25) - 1) & ~(1 << 14) & ~(1 << 11),
						    .read_format = 31,
						    .sample_regs_user = 5,
						    .sample_regs_intr = 1 << 8};
	static struct perfring_sample samples[2];
	static struct pack pack;

	start(&pack, 9, 2);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	word(&pack, 4);
	word(&pack, 5);
	SAME(few, samples);
	cr_assert_eq(samples[0].period, 4);
	cr_assert_eq(samples[0].trailing_size, 8);
	pack_all(&pack);
	SAME(all_bits, samples);
	/* The same bytes without the branches: the header, 9 words, 9 of read, 3 of callchain, 4 of raw, 10. */
	memmove(pack.bytes + 8 + 8 * (9 + 9 + 3 + 2), pack.bytes + 8 + 8 * (9 + 9 + 3 + 2 + 10),
		pack.size - (8 + 8 * (9 + 9 + 3 + 2 + 10)));
	pack.size -= 80;
	SAME(many, samples);
	cr_assert_eq(samples[0].aux.size, 8);
	cr_assert_eq(samples[0].trailing_size, 0);
}

/* The commonest formats have a path of their own once they are planned; without a plan none is taken, and a wrong plan harms
 * nobody. */
Test(sample, planned_and_unplanned_decoders_agree, .timeout = 60)
{
	static const unsigned front[] = {16, 0, 1, 2, 3, 6, 9, 7, 8}; /* in wire order */
	static struct perfring_sample samples[2];
	static struct pack pack;
	unsigned set, i;
	size_t size, least;

	for (set = 0; set < 1 << 12; set++) {
		struct perfring_format bare = {.sample_type = (set >> 9 & 1) << 4 | (set >> 10 & 1) << 5 |
							      (set >> 11 & 1) << 10,
					       .read_format = set % 32},
				       planned, wrong;

		start(&pack, 9, 2);
		for (i = 0; i < 9; i++) {
			if (!(set >> i & 1))
				continue;
			bare.sample_type |= UINT64_C(1) << front[i];
			word(&pack, UINT64_C(0x1111111100000000) + UINT64_C(0x100000001) * i);
		}
		least = pack.size;
		if (set >> 9 & 1) {
			unsigned words = 1 + (set & 1) + (set >> 1 & 1);

			least += 8 * (set & 8 ? words : words + (set >> 2 & 1) + (set >> 4 & 1));
			read_block(&pack, bare.read_format, 1 + set % 3);
		}
		if (set >> 10 & 1) {
			word(&pack, 2);
			word(&pack, (uint64_t)-512);
			word(&pack, 0x401000);
			least += 8;
		}
		if (set >> 11 & 1) {
			half(&pack, 4);
			half(&pack, 0xabcdef01);
			least += 4;
		}
		size = pack.size;
		while (pack.size < 120)
			word(&pack, 0);
		planned = bare;
		perfring_format_plan(&planned);
		wrong = planned;
		wrong.least = 1;
		for (; pack.size >= 8; pack.size -= 8) {
			const struct perf_event_header *record = finish(&pack, pack.size, set % 8);
			struct perfring_fault faults[2] = {{-1, ""}, {-1, ""}};
			int first, second;

			memset(samples, 0, sizeof(samples));
			first = perfring_sample_decode_any(&bare, record, &samples[0], &faults[0]);
			second = perfring_sample_decode_any(&planned, record, &samples[1], &faults[1]);
			cr_assert_eq(first, second, "set %x size %zu", set, pack.size);
			cr_assert_eq(first, pack.size >= size ? 0 : -EBADMSG, "set %x size %zu of %zu", set, pack.size,
				     size);
			cr_assert(first == 0 || same_fault(&faults[0], &faults[1]), "set %x size %zu", set, pack.size);
			cr_assert(first != 0 || !memcmp(&samples[0], &samples[1], sizeof(samples[0])),
				  "set %x size %zu", set, pack.size);
			cr_assert(first != 0 || samples[0].trailing_size == pack.size - size);
			cr_assert(pack.size >= least || faults[0].at == (int64_t)pack.size, "set %x size %zu", set,
				  pack.size);
			cr_assert_eq(perfring_sample_decode_any(&wrong, record, &samples[1], NULL), first);
			drop(record, set % 8);
		}
	}
}

/* By hand: 4 bytes of size, the data, and zeros up to a multiple of 8 (docs/abi.md 6). */
Test(sample, raw_is_padded_as_the_kernel_does, .timeout = 30)
{
	static const struct {
		uint32_t size, padding;
	} rows[] = {{0, 4}, {1, 3}, {3, 1}, {4, 0}, {5, 7}, {8, 4}, {11, 1}, {12, 0}, {13, 7}, {64, 4}, {65504, 4}};
	static const struct perfring_format format = {.sample_type = 1 << 10 | 1 << 15};
	static unsigned char data[65536], buffer[65536];
	static struct pack pack;
	struct perfring_sample sample;
	size_t i;

	memset(data, 0x77, sizeof(data));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sample.misc = 2;
		sample.trailing_size = 0;
		sample.raw = perfring_raw_of(data, rows[i].size);
		sample.data_src = UINT64_C(0x5000000000000005);
		start(&pack, 9, 2);
		half(&pack, rows[i].size + rows[i].padding);
		fill(&pack, 0x77, rows[i].size);
		fill(&pack, 0, rows[i].padding);
		word(&pack, sample.data_src);
		((struct perf_event_header *)(void *)pack.bytes)->size = (uint16_t)pack.size;
		memset(buffer, 0xa5, sizeof(buffer));
		cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), (int64_t)pack.size);
		cr_assert(!memcmp(buffer, pack.bytes, pack.size), "raw of %u bytes", rows[i].size);
		cr_assert_eq(perfring_sample_encode_any(&format, &sample, buffer, sizeof(buffer)), (int64_t)pack.size);
		cr_assert(!memcmp(buffer, pack.bytes, pack.size));
	}
}

/* Fields that end at no multiple of 8, and bytes behind the last: zeros at the end alone. */
Test(sample, odd_sizes_are_padded_at_the_end, .timeout = 30)
{
	static const struct perfring_format format = {.sample_type = 1 | 1 << 20};
	static const struct {
		struct perf_event_header header;
		uint64_t ip, size;
		char aux[3], trailing[13];
	} expected = {{9, 0, 40}, 0x10, 3, "abc", "xyz!?."};
	unsigned char buffer[48];
	struct perfring_sample sample;

	sample.misc = 0;
	sample.ip = 0x10;
	sample.aux.data = "abc";
	sample.aux.size = 3;
	sample.trailing = "xyz!?.";
	sample.trailing_size = 6;
	memset(buffer, 0xa5, sizeof(buffer));
	cr_assert_eq(perfring_sample_size(&format, &sample), 40);
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, 40), 40);
	cr_assert(!memcmp(buffer, &expected, sizeof(expected)));
	cr_assert_eq(buffer[40], 0xa5);
	/* The same without them: they are not looked at. */
	sample.trailing = NULL;
	sample.trailing_size = 0;
	cr_assert_eq(perfring_sample_size(&format, &sample), 32);
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, 32), 32);
	cr_assert(!memcmp(buffer + 8, (const unsigned char *)&expected + 8, 19));
	cr_assert_eq(buffer[26], 'c');
	cr_assert_eq(buffer[27] | buffer[28] | buffer[29] | buffer[30] | buffer[31], 0);
	cr_assert_eq(buffer[32], '.', "of the first time");
}

/* A READ block is written in the format's shape, wherever it came from. */
Test(sample, read_blocks_change_their_shape, .timeout = 30)
{
	static const uint64_t group[] = {3, 1001, 1002, 51, 61, 52, 62, 53, 63}; /* nr, times, (value, id) */
	struct perfring_format format = {.sample_type = 1 << 4, .read_format = 8 | 16 | 1};
	struct perfring_sample sample;
	uint64_t buffer[16];

	sample.misc = 0;
	sample.trailing_size = 0;
	sample.read.read_format = 8 | 4 | 1 | 2;
	sample.read.nr = group[0];
	sample.read.enabled = group[1];
	sample.read.running = group[2];
	sample.read.entries = (const perfring_word *)&group[3];
	/* nr, enabled, (value, lost) */
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), 8 + 8 * 8);
	cr_assert_eq(buffer[1], 3);
	cr_assert_eq(buffer[2], 1001);
	cr_assert_eq(buffer[3], 51);
	cr_assert_eq(buffer[4], 0);
	cr_assert_eq(buffer[5], 52);
	cr_assert_eq(buffer[7], 53);
	cr_assert_eq(buffer[8], 0);
	/* value, running, id */
	format.read_format = 2 | 4;
	sample.read.nr = 1;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), 8 + 3 * 8);
	cr_assert_eq(buffer[1], 51);
	cr_assert_eq(buffer[2], 1002);
	cr_assert_eq(buffer[3], 61);
}

Test(sample, what_cannot_be_encoded, .timeout = 30)
{
	static const uint64_t counts[] = {8190,
					  8191,
					  65528,
					  65529,
					  UINT64_C(1) << 32,
					  UINT64_C(1) << 60,
					  UINT64_C(1) << 61,
					  UINT64_C(0xaaaaaaaaaaaaaab),
					  UINT64_MAX - 7,
					  UINT64_MAX};
	static const uint64_t words[8192];
	static unsigned char buffer[65536], untouched[65536];
	struct perfring_sample sample;
	struct perfring_format format;
	size_t i, kind;

	memset(buffer, 0xa5, sizeof(buffer));
	memset(untouched, 0xa5, sizeof(untouched));
	for (kind = 0; kind < 6; kind++) {
		static const uint64_t types[] = {1 << 4, 1 << 5, 1 << 10, 1 << 11, 1 << 13, 1 << 20};
		uint64_t bytes_each = kind == 2 || kind >= 4 ? 1 : 8;

		memset(&format, 0, sizeof(format));
		memset(&sample, 0, sizeof(sample));
		format.sample_type = types[kind];
		format.read_format = 8;
		for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			uint64_t count = counts[i];

			if (bytes_each == 1 && count < 65528)
				count *= 8;
			sample.read.nr = sample.callchain.nr = sample.branch_stack.nr = count;
			sample.stack_user.size = sample.aux.size = count;
			sample.raw.size = (uint32_t)(count > UINT32_MAX ? UINT32_MAX : count);
			sample.raw.padding = (uint32_t)(count > UINT32_MAX ? UINT32_MAX : 0);
			cr_assert_eq(perfring_sample_size(&format, &sample), -EINVAL, "kind %zu nr %llx", kind,
				     (unsigned long long)count);
			cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), -EINVAL);
			cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, 0), -EINVAL);
		}
	}
	cr_assert(!memcmp(buffer, untouched, sizeof(buffer)));

	/* The longest there is, and what takes it one word too far. */
	format.sample_type = 1 << 5;
	sample.callchain.words = (const perfring_word *)words;
	sample.callchain.nr = 8189;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), 65528);
	cr_assert_eq(((const struct perf_event_header *)(const void *)buffer)->size, 65528);
	sample.trailing = words;
	sample.trailing_size = 1;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), -EINVAL);
	sample.trailing_size = UINT32_MAX;
	sample.callchain.nr = 0;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), -EINVAL);
	sample.trailing_size = 0;

	/* A lone event's block has one value. */
	format.sample_type = 1 << 4;
	format.read_format = 4;
	sample.read.entries = (const perfring_word *)words;
	for (i = 0; i < 3; i++) {
		sample.read.nr = i;
		cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), i == 1 ? 24 : -EINVAL);
	}
	/* As many registers as the mask has, or none. */
	format.sample_type = 1 << 12;
	format.sample_regs_user = 7;
	sample.regs_user.values = (const perfring_word *)words;
	for (i = 0; i < 5; i++) {
		sample.regs_user.abi = 2;
		sample.regs_user.nr = (uint32_t)i;
		cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), i == 3 ? 40 : -EINVAL);
		sample.regs_user.abi = 0;
		cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), 16);
	}
	/* No more of a stack than there is. */
	format.sample_type = 1 << 13;
	sample.stack_user.data = words;
	sample.stack_user.size = 16;
	for (i = 15; i < 19; i++) {
		sample.stack_user.dyn_size = i;
		cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), i < 17 ? 40 : -EINVAL);
	}
	sample.stack_user.size = 0;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), -EINVAL);
	sample.stack_user.dyn_size = 0;
	cr_assert_eq(perfring_sample_encode(&format, &sample, buffer, sizeof(buffer)), 16);
}

/* ---- bytes that the caller has other types for.  The compiler may believe that a u64 and a struct of others are never in
 * one place, and then takes a word that was written before the header for the one behind it. ---- */

static const struct perfring_format ip_tid = {.sample_type = 1 | 2};

/* The first word of a sample of `misc` and 24 bytes. */
static uint64_t first_word(uint64_t misc)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return UINT64_C(9) << 32 | misc << 16 | 24;
#else
	return 9 | misc << 32 | UINT64_C(24) << 48;
#endif
}

__attribute__((noinline)) static uint64_t encode_between(uint64_t *buffer, const struct perfring_sample *sample)
{
	buffer[0] = UINT64_C(0x1111111111111111);
	if (perfring_sample_encode(&ip_tid, sample, buffer, 24) != 24)
		return 1;
	return buffer[0];
}

__attribute__((noinline)) static uint64_t decode_twice(uint64_t *buffer)
{
	struct perfring_sample first, second;

	buffer[0] = first_word(1);
	if (perfring_sample_decode(&ip_tid, (const void *)buffer, &first, NULL))
		return 1;
	buffer[0] = first_word(2);
	if (perfring_sample_decode(&ip_tid, (const void *)buffer, &second, NULL))
		return 2;
	buffer[0] = 0;
	return (uint64_t)first.misc << 16 | second.misc;
}

__attribute__((noinline)) static uint64_t mode_twice(uint64_t *buffer)
{
	uint64_t mode;

	buffer[0] = first_word(1);
	mode = perfring_record_cpumode((const void *)buffer);
	buffer[0] = first_word(2);
	return mode << 16 | perfring_record_cpumode((const void *)buffer);
}

Test(sample, words_of_the_caller, .timeout = 30)
{
	uint64_t *buffer = malloc(24);
	struct perfring_sample sample;

	cr_assert_not_null(buffer);
	memset(&sample, 0, sizeof(sample));
	memset(buffer, 0xff, 24);
	sample.misc = 0x4002;
	cr_assert_eq(encode_between(buffer, &sample), first_word(0x4002));
	memset(buffer, 0xff, 24);
	cr_assert_eq(decode_twice(buffer), 0x10002);
	memset(buffer, 0xff, 24);
	cr_assert_eq(mode_twice(buffer), 0x10002);
	free(buffer);
}

/* The size that was tested is the one that counts, whatever the header says by now: the plain way, and each shape of a
 * branch stack. */
Test(sample, within_what_was_tested, .timeout = 30)
{
	const struct perfring_format formats[] = {
		{.sample_type = 1 << 5},
		{.sample_type = 1 << 11, .branch_sample_type = 1 << 17 | 1 << 19},
		{.sample_type = 0x1ff, .least = 80},
	};
	struct perf_event_header header = {9, 2, 65528};
	struct perfring_sample sample;
	unsigned char *record;
	uint64_t nr = 2;
	size_t i, size;

	for (i = 0; i < 3; i++) {
		for (size = 16; size <= 96; size += 8) {
			record = calloc(1, size);
			cr_assert_not_null(record);
			memcpy(record, &header, sizeof(header));
			memcpy(record + 8, &nr, sizeof(nr));
			if (!perfring__sample_decode_within(&formats[i], (const void *)record, (uint32_t)size, &sample,
							    NULL))
				cr_assert_eq((const unsigned char *)sample.trailing + sample.trailing_size,
					     record + size);
			free(record);
		}
	}
}

/* ---- columns ---- */

enum {
	ROWS = 40
};

/* A column for each field of one word, named by the bytes that it holds where nothing was written. */
struct table {
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) TABLE_##kind(a, b)
#define TABLE_u64(a, b) uint64_t a[ROWS];
#define TABLE_pair(a, b) uint32_t a[ROWS], b[ROWS];
#define TABLE_weight(a, b)
#define TABLE_read(a, b)
#define TABLE_list(a, b)
#define TABLE_raw(a, b)
#define TABLE_branch(a, b)
#define TABLE_regs(a, b)
#define TABLE_stack(a, b)
#define TABLE_aux(a, b)
#include <perfring/fields.def>
};

/* The stream: samples of all_bits, of changing length, every word of one word another. */
static size_t pack_stream(unsigned char *stream, size_t count)
{
	static struct pack pack;
	size_t i, j, size = 0;

	for (i = 0; i < count; i++) {
		pack_all(&pack);
		for (j = 0; j < 9; j++)
			pack.bytes[8 + 8 * j + 4 * (i % 2)] ^= (unsigned char)(0x40 + i);
		for (j = 0; j < i % 4; j++)
			word(&pack, 0xbeef);
		((struct perf_event_header *)(void *)pack.bytes)->size = (uint16_t)pack.size;
		memcpy(stream + size, pack.bytes, pack.size);
		size += pack.size;
	}
	return size;
}

/* Asks for the columns of `fields` (bit i: the i-th member of struct perfring_columns), and compares them with what
 * decode says. */
static void columns_agree(const unsigned char *stream, size_t size, size_t count, uint64_t fields)
{
	static struct table table, empty;
	const struct perfring_format format = all_bits;
	struct perfring_columns columns = {0};
	struct perfring_fault fault = {-1, NULL};
	struct perfring_sample sample;
	size_t position = 0, at = 0, i;
	unsigned column = 0;
	bool is_packed;

	memset(&table, 0x6b, sizeof(table));
	memset(&empty, 0x6b, sizeof(empty));
	/* Of the fields that are packed here: newer ones have no bytes. */
#define WANT(a) columns.a = fields >> column++ & 1 && is_packed ? table.a : NULL;
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	is_packed = format.sample_type & PERFRING_SAMPLE_##NAME; \
	WANT_##kind(a, b)
#define WANT_u64(a, b) WANT(a)
#define WANT_pair(a, b) WANT(a) WANT(b)
#define WANT_weight(a, b)
#define WANT_read(a, b)
#define WANT_list(a, b)
#define WANT_raw(a, b)
#define WANT_branch(a, b)
#define WANT_regs(a, b)
#define WANT_stack(a, b)
#define WANT_aux(a, b)
#include <perfring/fields.def>
	cr_assert_eq(perfring_columns_decode(&columns, &format, stream, size, &position, ROWS, &fault), (int64_t)count,
		     "%s at %lld", fault.what ? fault.what : "?", (long long)fault.at);
	cr_assert_eq(position, size);
	for (i = 0; i < ROWS; i++) {
		bool is_row = i < count;

		if (is_row) {
			const struct perf_event_header *record = (const void *)(stream + at);
			uint16_t record_size;

			cr_assert_eq(perfring_sample_decode_any(&format, record, &sample, NULL), 0);
			memcpy(&record_size, stream + at + 6, 2);
			at += record_size;
		}
#define CHECK(a) \
	cr_assert_eq(table.a[i], is_row &&columns.a ? sample.a : empty.a[i], "%s in row %zu, columns %llx", #a, i, \
		     (unsigned long long)fields);
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) CHECK_##kind(a, b)
#define CHECK_u64(a, b) CHECK(a)
#define CHECK_pair(a, b) CHECK(a) CHECK(b)
#define CHECK_weight(a, b)
#define CHECK_read(a, b)
#define CHECK_list(a, b)
#define CHECK_raw(a, b)
#define CHECK_branch(a, b)
#define CHECK_regs(a, b)
#define CHECK_stack(a, b)
#define CHECK_aux(a, b)
#include <perfring/fields.def>
	}
}

/* Each column alone, with its neighbour, those in front (the fast ones) and all: at every address. */
Test(sample, columns_agree_with_decode, .timeout = 60)
{
	static unsigned char bytes_there[32768];
	const unsigned columns = offsetof(struct perfring_columns, reserved) / sizeof(void *);
	unsigned char *exact;
	size_t size, odd;
	unsigned i;

	size = pack_stream(bytes_there, 30);
	for (odd = 0; odd < 8; odd++) {
		exact = malloc(size + odd);
		cr_assert_not_null(exact);
		memcpy(exact + odd, bytes_there, size);
		for (i = 0; i < columns; i++) {
			columns_agree(exact + odd, size, 30, UINT64_C(1) << i);
			columns_agree(exact + odd, size, 30, UINT64_C(3) << i);
		}
		columns_agree(exact + odd, size, 30, 0);
		columns_agree(exact + odd, size, 30, 0x7ff);
		columns_agree(exact + odd, size, 30, 0x5a5);
		columns_agree(exact + odd, size, 30, UINT64_MAX);
		free(exact);
	}
}

static void put_record(struct pack *pack, uint32_t type, uint16_t size, uint64_t ip)
{
	struct perf_event_header header = {type, 2, size};

	bytes(pack, &header, sizeof(header));
	word(pack, ip);
}

Test(sample, columns_stop, .timeout = 30)
{
	const struct perfring_format formats[] = {{.sample_type = 1}, {.sample_type = 1 | 1 << 10}};
	struct perfring_fault fault = {-1, NULL};
	uint64_t ip[8] = {0};
	struct perfring_columns columns = {.ip = ip};
	static struct pack pack;
	size_t position = 0;

	pack.size = 0;
	put_record(&pack, 9, 16, 1);
	put_record(&pack, 9, 16, 2);
	put_record(&pack, 9, 16, 3);
	put_record(&pack, 1, 16, 4); /* no sample */
	put_record(&pack, 9, 16, 5);
	/* At rows, */
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 0, &fault), 0);
	cr_assert_eq(position, 0);
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 2, &fault), 2);
	cr_assert_eq(position, 32);
	cr_assert_eq(ip[0], 1);
	cr_assert_eq(ip[1], 2);
	cr_assert_eq(ip[2], 0);
	/* in front of what is no sample, and there for ever, */
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault), 1);
	cr_assert_eq(position, 48);
	cr_assert_eq(ip[0], 3);
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault), 0);
	cr_assert_eq(position, 48);
	/* and at the end. */
	position = 64;
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault), 1);
	cr_assert_eq(ip[0], 5);
	cr_assert_eq(position, pack.size);
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault), 0);
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], NULL, 0, &(size_t){0}, 8, &fault), 0);
	cr_assert_null(fault.what);
	position = pack.size + 1;
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault),
		     -EINVAL);
	/* A column without a field, though there be no record. */
	columns.addr = ip;
	position = 0;
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, pack.size, &position, 8, &fault),
		     -EINVAL);
	cr_assert_eq(perfring_columns_decode(&columns, &formats[0], pack.bytes, 0, &position, 8, &fault), -EINVAL);
	cr_assert_eq(position, 0);
	columns.addr = NULL;
	columns.data_src = ip;
	cr_assert_eq(perfring_columns_decode(&columns, &formats[1], pack.bytes, pack.size, &position, 8, &fault),
		     -EINVAL);
}

/* In the midst it stops there; a call that begins there tells.  Fast columns and others, each with every cut of the
 * last record and every wrong size in it. */
Test(sample, columns_of_damaged_records, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 | 1 << 5 | 1 << 15};
	uint64_t ip[8], data_src[8];
	const struct perfring_columns wants[] = {{.ip = ip}, {.ip = ip, .data_src = data_src}};
	static struct pack pack;
	unsigned char *exact;
	unsigned planned, i, size;
	size_t whole = 0, there, position;

	for (planned = 0; planned < 2; planned++) {
		for (i = 0; i < 2; i++) {
			for (size = 0; size < 128; size++) {
				const bool cut = size < 40, fits = size >= 32 && size <= 40;
				struct perfring_fault fault = {-1, NULL};

				pack.size = 0;
				put_record(&pack, 9, 40, 0x10);
				word(&pack, 1);
				word(&pack, 0x20);
				word(&pack, 0x30);
				whole = pack.size;
				put_record(&pack, 9, (uint16_t)size, 0x11);
				word(&pack, 0);
				word(&pack, 0x31);
				word(&pack, 0x41);
				/* What the size says, or (odd sizes) fewer bytes than it says. */
				there = cut ? whole + size : pack.size;
				exact = malloc(there);
				cr_assert_not_null(exact);
				memcpy(exact, pack.bytes, there);
				position = 0;
				cr_assert_eq(
					perfring_columns_decode(&wants[i], &format, exact, there, &position, 8, &fault),
					fits ? 2 : 1, "size %u", size);
				cr_assert_eq(position, fits ? whole + size : whole);
				cr_assert_eq(ip[0], 0x10);
				cr_assert_null(fault.what);
				cr_assert(!fits || ip[1] == 0x11);
				cr_assert(!fits || i == 0 || data_src[1] == 0x31);
				if (!fits && there > whole) {
					cr_assert_eq(perfring_columns_decode(&wants[i], &format, exact, there,
									     &position, 8, &fault),
						     -EBADMSG, "size %u", size);
					cr_assert_eq(position, whole);
					cr_assert_not_null(fault.what);
					cr_assert_geq(fault.at, (int64_t)whole);
					cr_assert_leq(fault.at, (int64_t)(whole + size));
					cr_assert_eq(perfring_columns_decode(&wants[i], &format, exact, there,
									     &position, 8, NULL),
						     -EBADMSG);
				}
				free(exact);
			}
		}
		perfring_format_plan(&format);
	}

	/* What decode finds is told at its place; columns in front of it do not look there. */
	pack.size = 0;
	put_record(&pack, 9, 32, 0x10);
	word(&pack, 0);
	word(&pack, 0x30);
	put_record(&pack, 9, 32, 0x11);
	word(&pack, UINT64_MAX);
	word(&pack, 0x31);
	for (i = 0; i < 2; i++) {
		struct perfring_fault fault = {-1, NULL};

		position = 32;
		cr_assert_eq(perfring_columns_decode(&wants[i], &format, pack.bytes, pack.size, &position, 8, &fault),
			     i == 0 ? 1 : -EBADMSG);
		cr_assert_eq(fault.at, i == 0 ? -1 : 32 + 16);
	}
}

/* Every sample bit that this kernel gives for a software event. */
Test(sample, from_this_kernel, .timeout = 30)
{
	/* All 25 but BRANCH_STACK (11), WEIGHT (14, beside 24) and AUX (20). */
	const uint64_t bits = ((1 << 25) - 1) & ~(1 << 11) & ~(1 << 14) & ~(1 << 20);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), buffer = 64 * page;
	static unsigned char joined[65536], encoded[65536];
	struct perf_event_mmap_page *control;
	struct perfring_format format;
	struct perfring_fault fault = {-1, NULL};
	struct perfring_sample sample;
	struct perf_event_attr attr;
	uint64_t position, head, samples = 0;
	volatile unsigned char *touched;
	unsigned char *mapping;
	size_t i;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = 128;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = 1;
	attr.sample_type = bits;
	attr.read_format = 1 | 2 | 4 | 16;
	attr.sample_regs_user = 0xff;
	attr.sample_regs_intr = 0xff;
	attr.sample_stack_user = 256;
	attr.disabled = 1;
	attr.sample_id_all = 1;
	attr.exclude_hv = 1;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8UL);
	if (fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open with all sample bits: %s: needs CAP_PERFMON, Linux 6.0",
			     strerror(errno));
	mapping = mmap(NULL, page + buffer, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	if (mapping == MAP_FAILED)
		cr_skip_test("SKIP-ENV: mmap of 64 pages: %s: needs RLIMIT_MEMLOCK", strerror(errno));
	touched = mmap(NULL, 100 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(touched != MAP_FAILED);
	madvise((void *)(uintptr_t)touched, 100 * page, MADV_NOHUGEPAGE);
	control = (void *)mapping;
	cr_assert_eq(ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	for (i = 0; i < 100; i++)
		touched[i * page] = 1;
	cr_assert_eq(ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0), 0);

	cr_assert_eq(perfring_format_from_attr(&format, &attr), 0);
	cr_assert_eq(format.sample_type, bits);
	head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	cr_assert_leq(head, buffer);
	for (position = 0; position < head;) {
		const struct perf_event_header *record = (const void *)(mapping + page + position % buffer);

		cr_assert_geq(record->size, 8);
		memcpy(joined, record, record->size);
		position += record->size;
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		cr_assert_eq(perfring_sample_decode(&format, (const void *)joined, &sample, &fault), 0, "%s at %lld",
			     fault.what ? fault.what : "?", (long long)fault.at);
		cr_assert_eq(sample.trailing_size, 0, "%u bytes behind the last field", sample.trailing_size);
		cr_assert_eq(perfring_sample_encode(&format, &sample, encoded, sizeof(encoded)), record->size);
		cr_assert(!memcmp(encoded, joined, record->size), "encoded otherwise than this kernel does");
		cr_assert_eq(sample.present, bits);
		cr_assert_eq(sample.pid, (uint32_t)getpid());
		cr_assert_eq(sample.tid, (uint32_t)syscall(SYS_gettid));
		cr_assert_lt(sample.cpu, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
		cr_assert_eq(sample.period, 1);
		cr_assert_neq(sample.time, 0);
		cr_assert_neq(sample.id, 0);
		cr_assert_eq(sample.identifier, sample.id);
		cr_assert_eq(perfring_read_id(&sample.read, 0), sample.id);
		cr_assert_eq(perfring_format_id_of(&format, (const void *)joined), sample.id);
		cr_assert_eq(perfring_format_time_of(&format, (const void *)joined), sample.time);
		cr_assert_geq(perfring_read_value(&sample.read, 0), samples + 1);
		cr_assert_gt(sample.callchain.nr, 0);
		cr_assert(perfring_list_is_marker(sample.callchain.words[0]));
		cr_assert_eq(sample.regs_user.abi, sizeof(void *) == 8 ? 2 : 1);
		cr_assert_eq(sample.regs_user.nr, 8);
		cr_assert_leq(sample.stack_user.dyn_size, 256);
		cr_assert_eq(sample.stack_user.size, 256);
		cr_assert_eq(sample.raw.size, 4);
		cr_assert_eq(sample.data_src, UINT64_C(0x1e05080021), "every part NA (docs/abi.md 15)");
		if (sample.addr >= (uintptr_t)touched && sample.addr < (uintptr_t)touched + 100 * page)
			samples++;
	}
	/* One fault for each page that was touched; others may have come in between. */
	cr_assert_eq(samples, 100);
	munmap(mapping, page + buffer);
	munmap((void *)(uintptr_t)touched, 100 * page);
	close((int)fd);
}
