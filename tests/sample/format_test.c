/* format_test.c - plans worked out from attrs, and records given to their events. */
#include "test.h"

#include <perfring/format.h>
#include <stdlib.h>

enum {
	IP = 1 << 0,
	TID = 1 << 1,
	TIME = 1 << 2,
	ADDR = 1 << 3,
	READ = 1 << 4,
	CALLCHAIN = 1 << 5,
	ID = 1 << 6,
	CPU = 1 << 7,
	PERIOD = 1 << 8,
	STREAM_ID = 1 << 9,
	RAW = 1 << 10,
	WEIGHT = 1 << 14,
	IDENTIFIER = 1 << 16,
	WEIGHT_STRUCT = 1 << 24,
};

/* An attr of 144 bytes, whatever the installed header's struct is. */
union attr {
	unsigned char bytes[4096];
	uint64_t words[512];
	struct perf_event_attr attr;
};

static void attr_of(union attr *attr, uint32_t size, uint64_t sample_type, bool sample_id_all)
{
	memset(attr, 0, sizeof(*attr));
	memcpy(attr->bytes + 4, &size, 4);
	attr->words[3] = sample_type;
	attr->attr.sample_id_all = sample_id_all;
}

Test(format, members_come_from_their_offsets, .timeout = 30)
{
	struct perfring_format format;
	union attr attr;

	attr_of(&attr, 144, IP | TID, true);
	attr.words[4] = 21;
	attr.words[9] = 0x20008;
	attr.words[10] = 0xff;
	attr.words[12] = 0xff00;
	attr.attr.precise_ip = 2;
	attr.attr.sigtrap = 1;
	cr_assert_eq(perfring_format_from_attr(&format, &attr.attr), 0);
	cr_assert_eq(format.sample_type, 3);
	cr_assert_eq(format.read_format, 21);
	cr_assert_eq(format.branch_sample_type, 0x20008);
	cr_assert_eq(format.sample_regs_user, 0xff);
	cr_assert_eq(format.sample_regs_intr, 0xff00);
	/* sample_id_all 18, precise_ip 15 to 16, sigtrap 37 (docs/abi.md 1.4) */
	cr_assert_eq(format.flags, UINT64_C(1) << 18 | UINT64_C(2) << 15 | UINT64_C(1) << 37);
}

/* The word of which only the first four bytes are there. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FIRST_HALF(high, low) (UINT64_C(high) << 32)
#else
#define FIRST_HALF(high, low) UINT64_C(low)
#endif

/* An attr is read as far as it says, not a byte further: the rest is 0. */
Test(format, flags_by_their_numbers, .timeout = 30)
{
	struct perf_event_attr attr = {.size = sizeof(attr)}, same = {.size = sizeof(attr)};

	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_disabled, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_mmap2, true);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_use_clockid, true);
	same.disabled = same.mmap2 = same.use_clockid = 1;
	cr_assert_eq(memcmp(&attr, &same, sizeof(attr)), 0);
	perfring_attr_set_flag(&attr, PERFRING_ATTR_FLAG_mmap2, false);
	same.mmap2 = 0;
	cr_assert_eq(memcmp(&attr, &same, sizeof(attr)), 0);
}

Test(format, attr_sizes, .timeout = 30)
{
	static const uint32_t sizes[] = {64, 65, 72, 76, 80, 84, 96, 100, 104, 128, 144, 160, 4096};
	static const uint32_t wrong[] = {1, 8, 63, 4097, UINT32_MAX};
	struct perfring_format format;
	union attr whole;
	size_t i;

	attr_of(&whole, 0, IP, false);
	whole.words[9] = UINT64_C(0x1111111122222222);
	whole.words[10] = 0x33;
	whole.words[12] = UINT64_C(0x4444444455555555);
	cr_assert_eq(perfring_format_from_attr(&format, &whole.attr), 0);
	cr_assert_eq(format.branch_sample_type, 0, "size 0 is 64");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t size = sizes[i];
		/* Also at an odd address. */
		unsigned char *exact = malloc(size + 1);
		const struct perf_event_attr *odd = (const void *)(exact + 1);

		cr_assert_not_null(exact);
		memcpy(exact + 1, whole.bytes, size);
		memcpy(exact + 5, &size, 4);
		cr_assert_eq(perfring_format_from_attr(&format, odd), 0, "size %u", size);
		cr_assert_eq(format.branch_sample_type,
			     size >= 80   ? UINT64_C(0x1111111122222222)
			     : size >= 76 ? FIRST_HALF(0x11111111, 0x22222222)
					  : 0,
			     "size %u", size);
		cr_assert_eq(format.sample_regs_user,
			     size >= 88   ? 0x33
			     : size >= 84 ? FIRST_HALF(0, 0x33)
					  : 0,
			     "size %u", size);
		cr_assert_eq(format.sample_regs_intr,
			     size >= 104   ? UINT64_C(0x4444444455555555)
			     : size >= 100 ? FIRST_HALF(0x44444444, 0x55555555)
					   : 0,
			     "size %u", size);
		free(exact);
	}
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(whole.bytes + 4, &wrong[i], 4);
		cr_assert_eq(perfring_format_from_attr(&format, &whole.attr), -EINVAL, "size %u", wrong[i]);
	}
}

Test(format, attr_size_is_the_smallest_that_holds_it, .timeout = 30)
{
	static const struct {
		size_t byte;
		uint32_t size;
	} cases[] = {{8, 64},    {63, 64},   {64, 72},   {79, 80},   {80, 96},   {92, 96},  {103, 104},
		     {108, 112}, {112, 120}, {119, 120}, {127, 128}, {128, 136}, {143, 144}};
	union attr attr;
	size_t i;

	attr_of(&attr, 144, 0, false);
	cr_assert_eq(perfring_attr_size(&attr.attr), 64);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attr_of(&attr, 144, 0, false);
		attr.bytes[cases[i].byte] = 1;
		cr_assert_eq(perfring_attr_size(&attr.attr), cases[i].size, "byte %zu", cases[i].byte);
	}
	attr_of(&attr, 64, 0, false);
	attr.bytes[100] = 1;
	cr_assert_eq(perfring_attr_size(&attr.attr), 64, "what lies behind its size is not its own");
	attr_of(&attr, 200, 0, false);
	attr.bytes[150] = 1;
	cr_assert_eq(perfring_attr_size(&attr.attr), 200, "newer than we know");
	attr.bytes[150] = 0;
	cr_assert_eq(perfring_attr_size(&attr.attr), 64);
}

Test(format, plan, .timeout = 30)
{
	struct perfring_format format;
	union attr attr;

	attr_of(&attr, 64, IP | TID | TIME | ID | CPU | STREAM_ID | PERIOD, true);
	cr_assert_eq(perfring_format_from_attr(&format, &attr.attr), 0);
	/* header 8, ip 8, tid 16, time 24, id 32, stream_id 40, cpu 48, period 56 */
	cr_assert_eq(format.least, 64);
	cr_assert_eq(format.sample_time_at, 24);
	cr_assert_eq(format.sample_id_at, 32);
	/* trailer: tid, time, id, stream_id, cpu */
	cr_assert_eq(format.trailer, 40);
	cr_assert_eq(format.trailer_time_back, 32);
	cr_assert_eq(format.trailer_id_back, 24);

	attr_of(&attr, 64, IDENTIFIER | TIME | READ | CALLCHAIN | RAW | ID, true);
	attr.words[4] = 1 | 2 | 4 | 16;
	cr_assert_eq(perfring_format_from_attr(&format, &attr.attr), 0);
	/* header, identifier, time, id, read 5 words, nr, raw's u32 */
	cr_assert_eq(format.least, 8 + 24 + 40 + 8 + 4);
	cr_assert_eq(format.sample_id_at, 8);
	cr_assert_eq(format.sample_time_at, 16);
	cr_assert_eq(format.trailer, 24);
	cr_assert_eq(format.trailer_id_back, 8, "IDENTIFIER is last in a trailer");
	cr_assert_eq(format.trailer_time_back, 24);

	attr_of(&attr, 64, IP | TIME | ID, false);
	cr_assert_eq(perfring_format_from_attr(&format, &attr.attr), 0);
	cr_assert_eq(format.trailer, 0);
	cr_assert_eq(format.trailer_id_back, 0);
	cr_assert_eq(format.trailer_time_back, 0);
	cr_assert_eq(format.sample_id_at, 24);

	attr_of(&attr, 64, WEIGHT | WEIGHT_STRUCT, false);
	cr_assert_eq(perfring_format_from_attr(&format, &attr.attr), 0);
	cr_assert_eq(format.sample_type, WEIGHT_STRUCT);
	cr_assert_eq(format.least, 16);
	cr_assert_eq(format.sample_id_at, 0);
	cr_assert_eq(format.sample_time_at, 0);
}

/* A record of n words; word 0 is the header. */
static const struct perf_event_header *record(uint64_t *words, uint32_t type, size_t n)
{
	struct perf_event_header header = {type, 0, (uint16_t)(n * 8)};

	memcpy(words, &header, sizeof(header));
	return (const void *)words;
}

Test(format, time_and_id_of_records, .timeout = 30)
{
	static const struct perfring_format constant = {.sample_type = IP | TID | TIME | ID | CPU,
							.flags = UINT64_C(1) << 18};
	struct perfring_format planned = constant;
	uint64_t words[8] = {0, 101, 102, 103, 104, 105, 106, 107};

	perfring_format_plan(&planned);
	record(words, 9, 7);
	cr_assert_eq(perfring_format_time_of(&constant, (const void *)words), 103);
	cr_assert_eq(perfring_format_time_of(&planned, (const void *)words), 103);
	cr_assert_eq(perfring_format_id_of(&constant, (const void *)words), 104);
	cr_assert_eq(perfring_format_id_of(&planned, (const void *)words), 104);
	/* A COMM of 8 words: its trailer is tid 104, time 105, id 106, cpu 107. */
	record(words, 3, 8);
	cr_assert_eq(perfring_format_time_of(&constant, (const void *)words), 105);
	cr_assert_eq(perfring_format_time_of(&planned, (const void *)words), 105);
	cr_assert_eq(perfring_format_id_of(&constant, (const void *)words), 106);
	cr_assert_eq(perfring_format_id_of(&planned, (const void *)words), 106);
	/* perf's own records have neither, short ones have no space. */
	record(words, 68, 8);
	cr_assert_eq(perfring_format_time_of(&planned, (const void *)words), 0);
	cr_assert_eq(perfring_format_id_of(&planned, (const void *)words), 0);
	record(words, 9, 3);
	cr_assert_eq(perfring_format_time_of(&planned, (const void *)words), 0);
	cr_assert_eq(perfring_format_time_of(&constant, (const void *)words), 0);
	record(words, 3, 3);
	cr_assert_eq(perfring_format_time_of(&planned, (const void *)words), 0);
}

static struct perfring_format_set *open_set(void)
{
	struct perfring_format_set *set = NULL;

	cr_assert_eq(perfring_format_set_open(&set), 0);
	cr_assert_not_null(set);
	return set;
}

static void add(struct perfring_format_set *set, uint64_t sample_type, bool sample_id_all, uint64_t id)
{
	union attr attr;
	int index;

	attr_of(&attr, 64, sample_type, sample_id_all);
	index = perfring_format_set_add(set, &attr.attr);
	cr_assert_geq(index, 0);
	cr_assert_eq(perfring_format_set_put(set, id, (uint32_t)index), 0);
}

/* The index of the event that a record is given to; -EBADMSG, or -1 for none. */
static int given_to(const struct perfring_format_set *set, const struct perf_event_header *header,
		    struct perfring_fault *fault)
{
	const struct perfring_format *format;
	int error = perfring_format_set_of(set, header, &format, fault);

	if (error) {
		cr_assert_null(format);
		return error;
	}
	return format ? (int)format->index : -1;
}

Test(format, set_holds_many_and_moves_none, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	const struct perfring_format *first, *formats[200];
	union attr attr;
	uint64_t id;
	uint32_t i;

	attr_of(&attr, 64, IP | IDENTIFIER, true);
	for (i = 0; i < 200; i++) {
		cr_assert_eq(perfring_format_set_add(set, &attr.attr), (int)i);
		formats[i] = perfring_format_set_at(set, i);
	}
	first = formats[0];
	cr_assert_eq(perfring_format_set_count(set), 200);
	for (id = 1; id <= 20000; id++)
		cr_assert_eq(perfring_format_set_put(set, id << 40 | id, (uint32_t)(id % 200)), 0);
	for (id = 1; id <= 20000; id++)
		cr_assert(perfring_format_set_find(set, id << 40 | id) == formats[id % 200]);
	cr_assert(perfring_format_set_at(set, 0) == first);
	cr_assert_null(perfring_format_set_at(set, 200));
	cr_assert_null(perfring_format_set_find(set, 1));
	cr_assert_null(perfring_format_set_find(set, 0));
	cr_assert_eq(perfring_format_set_put(set, 0, 0), -EINVAL);
	cr_assert_eq(perfring_format_set_put(set, 5, 200), -EINVAL);
	cr_assert_eq(perfring_format_set_put(set, UINT64_C(1) << 40 | 1, 1), 0, "again is no harm");
	cr_assert_eq(perfring_format_set_put(set, UINT64_C(1) << 40 | 1, 2), -EEXIST);
	attr_of(&attr, 5, IP, true);
	cr_assert_eq(perfring_format_set_add(set, &attr.attr), -EINVAL);
	cr_assert_eq(perfring_format_set_count(set), 200);
	perfring_format_set_close(set);
	perfring_format_set_close(NULL);
}

/* Ids that a multiplication by the golden ratio, the usual one, puts all on one slot: a file may hold millions. */
Test(format, ids_chosen_to_collide, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	union attr attr;
	uint64_t id;

	attr_of(&attr, 64, IP | IDENTIFIER, true);
	cr_assert_eq(perfring_format_set_add(set, &attr.attr), 0);
	for (id = 1; id <= 500000; id++)
		cr_assert_eq(perfring_format_set_put(set, id * UINT64_C(0xf1de83e19937733d), 0), 0);
	for (id = 1; id <= 500000; id++)
		cr_assert_not_null(perfring_format_set_find(set, id * UINT64_C(0xf1de83e19937733d)));
	cr_assert_null(perfring_format_set_find(set, 500001 * UINT64_C(0xf1de83e19937733d)));
	perfring_format_set_close(set);
}

Test(format, an_only_event_needs_no_id, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	struct perfring_fault fault = {-1, NULL};
	uint64_t words[4] = {0, 999, 999, 999};

	cr_assert_eq(given_to(set, record(words, 9, 4), &fault), -EBADMSG, "no event at all");
	cr_assert_not_null(fault.what);
	cr_assert_eq(given_to(set, record(words, 9, 4), NULL), -EBADMSG);
	add(set, IP, false, 7);
	cr_assert_eq(given_to(set, record(words, 9, 4), &fault), 0);
	cr_assert_eq(given_to(set, record(words, 3, 4), &fault), 0);
	cr_assert_eq(given_to(set, record(words, 68, 1), &fault), -1);
	perfring_format_set_close(set);
}

Test(format, by_identifier, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	struct perfring_fault fault = {-1, NULL};
	uint64_t words[5] = {0, 11, 1, 2, 12};

	add(set, IP | IDENTIFIER, true, 11);
	add(set, IP | TID | IDENTIFIER, true, 12);
	cr_assert_eq(given_to(set, record(words, 9, 5), &fault), 0);
	cr_assert_eq(given_to(set, record(words, 10, 5), &fault), 1);
	words[1] = 12;
	cr_assert_eq(given_to(set, record(words, 9, 5), &fault), 1);
	words[1] = 13;
	cr_assert_eq(given_to(set, record(words, 9, 5), &fault), -EBADMSG);
	cr_assert_eq(fault.at, 8);
	words[4] = 13;
	cr_assert_eq(given_to(set, record(words, 2, 5), &fault), -EBADMSG);
	cr_assert_eq(fault.at, 32);
	words[1] = 0;
	words[4] = 0;
	cr_assert_eq(given_to(set, record(words, 9, 5), &fault), 0);
	cr_assert_eq(given_to(set, record(words, 1, 5), &fault), 0);
	cr_assert_eq(given_to(set, record(words, 9, 1), &fault), -EBADMSG);
	cr_assert_eq(fault.at, 8);
	cr_assert_eq(given_to(set, record(words, 70, 1), &fault), -1);
	perfring_format_set_close(set);
}

Test(format, by_ids_at_one_place, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	/* SAMPLE: ip, tid, id.  Others: tid, id, cpu. */
	uint64_t words[5] = {0, 1, 22, 21, 2};

	add(set, IP | TID | ID | CPU, true, 21);
	add(set, IP | TID | ID | CPU | PERIOD, true, 22);
	cr_assert_eq(given_to(set, record(words, 9, 5), NULL), 0);
	cr_assert_eq(given_to(set, record(words, 3, 5), NULL), 0);
	words[3] = 22;
	cr_assert_eq(given_to(set, record(words, 9, 5), NULL), 1);
	cr_assert_eq(given_to(set, record(words, 3, 5), NULL), 1);
	words[3] = 23;
	cr_assert_eq(given_to(set, record(words, 9, 5), NULL), -EBADMSG);
	perfring_format_set_close(set);
}

/* Ids at different places: one counts only where its own event has it. */
Test(format, by_ids_at_their_own_places, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	uint64_t words[6] = {0, 31, 0, 32, 33, 5};

	add(set, IP | ID, true, 31);              /* SAMPLE: word 2; others: last word */
	add(set, IP | TID | ID, true, 32);        /* word 3; last */
	add(set, IP | TID | TIME | ID, true, 33); /* word 4 */
	add(set, IDENTIFIER, true, 34);           /* word 1 */
	add(set, ID | CPU, true, 35);             /* word 1; last but one */
	/* 31 stands at word 1, where neither 34's nor 35's is; 32 where it belongs. */
	cr_assert_eq(given_to(set, record(words, 9, 6), NULL), 1);
	words[3] = 0;
	cr_assert_eq(given_to(set, record(words, 9, 6), NULL), 2);
	words[4] = 0;
	cr_assert_eq(given_to(set, record(words, 9, 6), NULL), 0, "word 2 is 0: the first event");
	words[1] = 35;
	cr_assert_eq(given_to(set, record(words, 9, 6), NULL), 4);
	words[1] = 34;
	cr_assert_eq(given_to(set, record(words, 9, 6), NULL), 3);
	/* others */
	words[5] = 33;
	cr_assert_eq(given_to(set, record(words, 3, 6), NULL), 2);
	words[5] = 77;
	words[4] = 35;
	cr_assert_eq(given_to(set, record(words, 3, 6), NULL), 4);
	words[4] = 34;
	cr_assert_eq(given_to(set, record(words, 3, 6), NULL), -EBADMSG);
	perfring_format_set_close(set);
}

/* An event without sample_id_all writes records that carry no id. */
Test(format, records_that_carry_no_id, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	uint64_t words[4] = {0, 1, 2, 42};

	add(set, IP | ID, true, 41);
	add(set, IP | ID, false, 42);
	words[2] = 42;
	cr_assert_eq(given_to(set, record(words, 9, 4), NULL), 1);
	words[3] = 41;
	cr_assert_eq(given_to(set, record(words, 3, 4), NULL), 0);
	words[3] = 'a';
	cr_assert_eq(given_to(set, record(words, 3, 4), NULL), 1);
	cr_assert_eq(given_to(set, record(words, 14, 1), NULL), 1);
	perfring_format_set_close(set);
}

/* Any bytes at any size, exactly allocated and unaligned. */
Test(format, any_bytes, .timeout = 30)
{
	struct perfring_format_set *set = open_set();
	struct perfring_fault fault;
	unsigned size, type, byte;

	add(set, IP | ID, true, 51);
	add(set, IDENTIFIER | TIME | TID, true, 52);
	add(set, TID | TIME | ID | CPU, false, 53);
	for (type = 0; type < 70; type++) {
		for (size = 8; size < 100; size++) {
			unsigned char *exact = malloc(size + 1);
			struct perf_event_header header = {type, 0, (uint16_t)size};
			const struct perfring_format *format;

			cr_assert_not_null(exact);
			for (byte = 0; byte < size; byte++)
				exact[byte + 1] = (unsigned char)(byte % 8 ? 0 : 51 + byte / 8 % 3);
			memcpy(exact + 1, &header, sizeof(header));
			if (perfring_format_set_of(set, (const void *)(exact + 1), &format, &fault)) {
				cr_assert_geq(fault.at, 0);
				cr_assert_leq(fault.at, (int64_t)size);
			}
			free(exact);
		}
	}
	perfring_format_set_close(set);
}
