/* lengthened_test.c - KSYMBOL and BPF_EVENT records that Linux made too long have their trailers at their ends again. */
#include "sample/lengthened.h"
#include <perfring/check.h>
#include <perfring/generate.h>
#include <perfring/record.h>
#include "test.h"

enum {
	SPACE = 1024,
};

static struct perfring_format_set *set;
static const struct perfring_format *format;
static union {
	struct perf_event_header header;
	unsigned char bytes[SPACE];
} record, before;

/* A set of `count` events; their ids are 100, 101, ... */
static void open_set(uint64_t sample_type, unsigned count)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = sample_type, .sample_id_all = 1};

	cr_assert_eq(perfring_format_set_open(&set), 0);
	for (unsigned i = 0; i < count; i++) {
		cr_assert_eq(perfring_format_set_add(set, &attr), (int)i);
		cr_assert_eq(perfring_format_set_put(set, 100 + i, i), 0);
	}
	format = perfring_format_set_at(set, count - 1);
}

/* A record of the last event, and `more` bytes after its trailer, each of them `rest`. */
static void make(uint32_t type, const char *name, uint32_t more, unsigned char rest)
{
	struct perfring_record made = {.type = type,
				       .trailer = {.pid = 7, .tid = 8, .time = 1234567, .id = 100 + format->index,
						   .identifier = 100 + format->index, .stream_id = 100 + format->index, .cpu = 3}};
	int64_t size;

	if (type == PERFRING_RECORD_KSYMBOL)
		made.is.ksymbol = (struct perfring_record_ksymbol){
			.addr = 0xffffffffc0000000, .len = 20, .ksym_type = 1, .name = {.data = name, .size = (uint32_t)strlen(name)}};
	else
		made.is.bpf_event = (struct perfring_record_bpf_event){.type = 1, .id = 5};
	memset(&record, 0, sizeof(record));
	size = perfring_record_encode(format, &made, &record, sizeof(record));
	cr_assert_gt(size, 0);
	memset(record.bytes + size, rest, more);
	record.header.size = (uint16_t)(size + more);
}

static bool mend(void)
{
	struct perf_event_header header = record.header;

	return perfring__lengthened_mend(set, &header, &record);
}

static void is_right(uint32_t type, const char *name)
{
	const struct perfring_format *found;
	struct perfring_record is;

	cr_assert_eq(perfring_format_set_of(set, &record.header, &found, NULL), 0);
	cr_assert_eq(found, format);
	cr_assert_eq(perfring_format_time_of(found, &record.header), 1234567);
	cr_assert_eq(perfring_record_check(found, &record.header, record.header.size, NULL), 0);
	cr_assert_eq(perfring_record_decode(found, &record.header, &is, NULL), 0);
	cr_assert_eq(is.trailer.time, 1234567);
	if (type == PERFRING_RECORD_KSYMBOL) {
		cr_assert_eq(is.is.ksymbol.name.size, strlen(name));
		cr_assert_eq(memcmp(is.is.ksymbol.name.data, name, strlen(name)), 0);
		cr_assert_eq(is.is.ksymbol.len, 20);
	} else {
		cr_assert_eq(is.is.bpf_event.id, 5);
	}
}

static const char *const names[] = {"", "seven__", "eight___", "bpf_prog_59f4a931744dcdc6_loop"};

/* By ids at either place, of one event and of three, with each number of bytes that observers can add, whatever was in them. */
Test(lengthened, trailers_are_found)
{
	static const uint64_t types[] = {
		PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER,
		PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_CPU,
		PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_IDENTIFIER,
		PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ID,
	};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned count = 1; count <= 3; count += 2) {
			open_set(types[i], count);
			for (uint32_t type = PERFRING_RECORD_KSYMBOL; type <= PERFRING_RECORD_BPF_EVENT; type++)
				for (unsigned j = 0; j < 4; j++)
					for (uint32_t more = 8; more <= 3 * 48; more += 8)
						for (unsigned rest = 0; rest < 3; rest++) {
							make(type, names[j], more, (unsigned char)(rest * 0x55));
							cr_assert(mend(), "%u, %u more", type, more);
							is_right(type, names[j]);
							before = record;
							cr_assert_not(mend(), "again: %u, %u more", type, more);
							cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0);
						}
			perfring_format_set_close(set);
		}
}

/* What an older record left there has an id, too. */
Test(lengthened, an_old_trailer_is_none)
{
	unsigned char old[48];

	open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_IDENTIFIER, 2);
	make(PERFRING_RECORD_BPF_EVENT, "", 0, 0);
	memcpy(old, record.bytes + 24, format->trailer);
	memset(old + 8, 1, 8); /* another time */
	for (uint32_t type = PERFRING_RECORD_KSYMBOL; type <= PERFRING_RECORD_BPF_EVENT; type++) {
		make(type, names[3], format->trailer, 0);
		memcpy(record.bytes + record.header.size - format->trailer, old, format->trailer);
		cr_assert(mend());
		is_right(type, names[3]);
	}
	perfring_format_set_close(set);
}

/* A later kernel's BPF_EVENT with more members: with ids, and without. */
Test(lengthened, later_members_stay)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME, .sample_id_all = 1};
	struct perfring_generator generator;

	perfring_generator_seed(&generator, 4);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t more = 8 * (1 + (uint32_t)perfring_generator_draw(&generator, 12)), size;

		if (i % 2) {
			open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID |
					 PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_IDENTIFIER, 2);
		} else {
			cr_assert_eq(perfring_format_set_open(&set), 0);
			cr_assert_eq(perfring_format_set_add(set, &attr), 0);
			format = perfring_format_set_at(set, 0);
		}
		make(PERFRING_RECORD_BPF_EVENT, "", 0, 0);
		size = record.header.size;
		memmove(record.bytes + 24 + more, record.bytes + 24, size - 24);
		for (uint32_t at = 24; at < 24 + more; at += 8) {
			uint64_t word = perfring_generator_draw(&generator, 0);

			memcpy(record.bytes + at, &word, 8);
		}
		record.header.size = (uint16_t)(size + more);
		before = record;
		cr_assert_not(mend());
		cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0);
		perfring_format_set_close(set);
	}
}

/* A right record of one event has a CPU where another event's id would be, and that id. */
Test(lengthened, events_of_two_types)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_id_all = 1};

	attr.sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER;
	cr_assert_eq(perfring_format_set_open(&set), 0);
	cr_assert_eq(perfring_format_set_add(set, &attr), 0);
	cr_assert_eq(perfring_format_set_put(set, 3, 0), 0);
	attr.sample_type |= PERFRING_SAMPLE_CPU;
	cr_assert_eq(perfring_format_set_add(set, &attr), 1);
	cr_assert_eq(perfring_format_set_put(set, 101, 1), 0);
	format = perfring_format_set_at(set, 1);
	for (uint32_t type = PERFRING_RECORD_KSYMBOL; type <= PERFRING_RECORD_BPF_EVENT; type++) {
		make(type, names[3], 0, 0);
		before = record;
		cr_assert_not(mend());
		cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0);
	}
	perfring_format_set_close(set);
}

/* Another pid namespace: pid and tid are 0, and what is left there has an id. */
Test(lengthened, threads_of_elsewhere)
{
	uint64_t id = 101;

	open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_IDENTIFIER, 2);
	make(PERFRING_RECORD_BPF_EVENT, "", 32, 0x11);
	memset(record.bytes + 24, 0, 8);
	memcpy(record.bytes + record.header.size - 8, &id, 8);
	cr_assert(mend());
	is_right(PERFRING_RECORD_BPF_EVENT, "");
	before = record;
	cr_assert_not(mend());
	cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0);
	perfring_format_set_close(set);
}

/* A TEXT_POKE of 5 bytes for 5. */
Test(lengthened, pokes)
{
	static const unsigned char old[5] = {1, 2, 3, 4, 5}, new[5] = {6, 7, 8, 9, 10};
	struct perfring_record made = {.type = PERFRING_RECORD_TEXT_POKE, .trailer = {.pid = 7, .tid = 8, .time = 1234567, .identifier = 101}}, is;
	struct perf_event_header header;
	int64_t size;

	open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER, 2);
	made.is.text_poke = (struct perfring_record_text_poke){
		.addr = 9, .poke = {.old_len = 5, .new_len = 5, .old_bytes = old, .new_bytes = new}};
	size = perfring_record_encode(format, &made, &record, sizeof(record));
	cr_assert_gt(size, 0);
	cr_assert_not(mend());
	memset(record.bytes + size, 0x55, 48);
	header = record.header;
	header.size = (uint16_t)(size + 48);
	record.header = header;
	cr_assert(mend());
	cr_assert_eq(perfring_record_decode(format, &record.header, &is, NULL), 0);
	cr_assert_eq(is.trailer.time, 1234567);
	cr_assert_eq(memcmp(is.is.text_poke.poke.new_bytes, new, 5), 0);
	cr_assert_not(mend());
	perfring_format_set_close(set);
}

/* Without ids: of one event. */
Test(lengthened, one_event_needs_no_ids)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME, .sample_id_all = 1};

	cr_assert_eq(perfring_format_set_open(&set), 0);
	cr_assert_eq(perfring_format_set_add(set, &attr), 0);
	format = perfring_format_set_at(set, 0);
	make(PERFRING_RECORD_KSYMBOL, names[3], 16, 0xaa);
	cr_assert(mend());
	is_right(PERFRING_RECORD_KSYMBOL, names[3]);
	cr_assert_not(mend());
	perfring_format_set_close(set);
}

/* Right ones stay as they are; so do those of perf, whose trailers are 0, and records without. */
Test(lengthened, others_stay)
{
	open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER, 2);
	for (unsigned j = 0; j < 4; j++) {
		make(PERFRING_RECORD_KSYMBOL, names[j], 0, 0);
		before = record;
		cr_assert_not(mend());
		memset(record.bytes + record.header.size - format->trailer, 0, format->trailer);
		record.header.size += 16;
		before = record;
		cr_assert_not(mend());
		cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0);
	}
	perfring_format_set_close(set);
	format = NULL;
}

/* Any bytes: nothing outside the record changes, nor the header; a second call changes nothing. */
Test(lengthened, any_bytes)
{
	struct perfring_generator generator;

	open_set(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_IDENTIFIER, 3);
	perfring_generator_seed(&generator, 3);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t size = 8 + 8 * (uint32_t)perfring_generator_draw(&generator, 20);

		for (uint32_t at = 0; at < sizeof(record) / 4; at += 8) {
			uint64_t word = perfring_generator_draw(&generator, 4) ? perfring_generator_draw(&generator, 4) + 99 : 0;

			memcpy(record.bytes + at, &word, 8);
		}
		record.header = (struct perf_event_header){.type = i % 3 == 2 ? 20 : 17 + i % 3, .size = (uint16_t)size};
		before = record;
		mend();
		cr_assert_eq(memcmp(record.bytes + size, before.bytes + size, sizeof(record) - size), 0);
		cr_assert_eq(memcmp(record.bytes, before.bytes, size < 16 ? size : 16), 0);
		before = record;
		mend();
		cr_assert_eq(memcmp(&record, &before, sizeof(record)), 0, "%u", i);
	}
	perfring_format_set_close(set);
}
