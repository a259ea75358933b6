/* record_test.c - every record but SAMPLE, packed by hand, decoded, and encoded to the same bytes. */
#include "test.h"
#include "pack.h"

#include <perfring/record.h>
#include <stdlib.h>

/* NUL and padding, as the kernel writes them. */
static void string(struct pack *pack, const char *text)
{
	size_t size = (strlen(text) + 8) / 8 * 8;

	memset(pack->bytes + pack->size, 0, size);
	memcpy(pack->bytes + pack->size, text, strlen(text));
	pack->size += size;
}

/* TID TIME ID STREAM_ID CPU, and IDENTIFIER behind them. */
static const struct perfring_format whole_trailer = {
	.sample_type = 1 | 2 | 4 | 1 << 6 | 1 << 9 | 1 << 7 | 1 << 8 | 1 << 16,
	.read_format = 4,
	.flags = UINT64_C(1) << 18,
};

static const struct perfring_format no_trailer = {.sample_type = 1 | 2 | 4, .read_format = 4};

static void trailer(struct pack *pack)
{
	half(pack, 9001);
	half(pack, 9002);
	word(pack, 9003);
	word(pack, 9004);
	word(pack, 9005);
	half(pack, 9006);
	half(pack, 0);
	word(pack, 9007);
}

/* An exact allocation, `odd` bytes behind an aligned address. */
static const struct perf_event_header *finish(const struct pack *pack, size_t size, size_t odd)
{
	unsigned char *exact = malloc(size + odd);
	uint16_t short_size = (uint16_t)size;

	cr_assert_not_null(exact);
	memcpy(exact + odd, pack->bytes, size);
	memcpy(exact + odd + 6, &short_size, 2);
	return (const void *)(exact + odd);
}

static void drop(const struct perf_event_header *record, size_t odd)
{
	free((unsigned char *)(uintptr_t)record - odd);
}

/* Decodes, encodes, compares; an encoder with one byte too little gives up, and writes nothing. */
static const struct perf_event_header *round_trip(const struct perfring_format *format, const struct pack *pack,
						  struct perfring_record *decoded)
{
	struct perfring_fault fault = {-1, NULL};
	const struct perf_event_header *record = finish(pack, pack->size, 5);
	unsigned char *room = malloc(pack->size);
	size_t i;

	cr_assert_not_null(room);
	cr_assert_eq(perfring_record_decode(format, record, decoded, &fault), 0, "%s at %lld",
		     fault.what ? fault.what : "?", (long long)fault.at);
	cr_assert_eq(decoded->size, pack->size);
	cr_assert_eq(perfring_record_size(format, decoded), (int64_t)pack->size);
	memset(room, 0x77, pack->size);
	cr_assert_eq(perfring_record_encode(format, decoded, room, pack->size - 1), -ENOSPC);
	for (i = 0; i < pack->size; i++)
		cr_assert_eq(room[i], 0x77);
	cr_assert_eq(perfring_record_encode(format, decoded, room, pack->size), (int64_t)pack->size);
	cr_assert_eq(memcmp(room, record, pack->size), 0, "type %u", decoded->type);
	free(room);
	return record;
}

/* The record in *pack is without its trailer: with one, with a format that has none, and with no format.  What it
 * returns is decoded with the trailer. */
static const struct perf_event_header *all_ways(struct pack *pack, struct perfring_record *decoded)
{
	const struct perf_event_header *record;
	struct perfring_fault fault = {-1, NULL};
	size_t size, bare = pack->size;

	record = round_trip(&no_trailer, pack, decoded);
	cr_assert_eq(decoded->trailing_size, 0);
	cr_assert_eq(decoded->trailer.present, 0);
	drop(record, 5);
	record = round_trip(NULL, pack, decoded);
	drop(record, 5);
	trailer(pack);
	/* Cut anywhere: an answer, and no read outside. */
	for (size = 8; size < pack->size; size++) {
		record = finish(pack, size, size % 8);
		if (perfring_record_decode(&whole_trailer, record, decoded, &fault)) {
			cr_assert_geq(fault.at, 0);
			cr_assert_leq(fault.at, (int64_t)size);
			cr_assert_eq(perfring_record_decode(&whole_trailer, record, decoded, NULL), -EBADMSG);
		}
		drop(record, size % 8);
	}
	record = finish(pack, 55, 0);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, decoded, &fault), -EBADMSG,
		     "56 bytes are the least with this trailer");
	drop(record, 0);
	record = round_trip(&whole_trailer, pack, decoded);
	cr_assert_eq(decoded->size, bare + 48);
	cr_assert_eq(decoded->trailing_size, 0);
	cr_assert_eq(decoded->trailer.present, 2 | 4 | 1 << 6 | 1 << 9 | 1 << 7 | 1 << 16);
	cr_assert_eq(decoded->trailer.pid, 9001);
	cr_assert_eq(decoded->trailer.tid, 9002);
	cr_assert_eq(decoded->trailer.time, 9003);
	cr_assert_eq(decoded->trailer.id, 9004);
	cr_assert_eq(decoded->trailer.stream_id, 9005);
	cr_assert_eq(decoded->trailer.cpu, 9006);
	cr_assert_eq(decoded->trailer.identifier, 9007);
	return record;
}

static void assert_string(const struct perfring_string *string, const char *expected)
{
	cr_assert_eq(string->size, strlen(expected));
	cr_assert_eq(memcmp(string->data, expected, string->size), 0);
}

static struct pack pack;
static struct perfring_record decoded;

Test(record, names, .timeout = 30)
{
	cr_assert_str_eq(perfring_record_name(1), "MMAP");
	cr_assert_str_eq(perfring_record_name(9), "SAMPLE");
	cr_assert_str_eq(perfring_record_name(22), "CALLCHAIN_DEFERRED");
	cr_assert_str_eq(perfring_record_name(68), "FINISHED_ROUND");
	cr_assert_str_eq(perfring_record_name(86), "SCHEDSTAT_DOMAIN");
	cr_assert_null(perfring_record_name(0));
	cr_assert_null(perfring_record_name(23));
	cr_assert_null(perfring_record_name(63));
	cr_assert_null(perfring_record_name(87));
	cr_assert_null(perfring_record_name(UINT32_MAX));
}

Test(record, mmap, .timeout = 30)
{
	start(&pack, 1, 2 | 1 << 13);
	half(&pack, 10);
	half(&pack, 11);
	word(&pack, 0x7f0000000000);
	word(&pack, 0x1000);
	word(&pack, 0x2000);
	string(&pack, "/bin/true");
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.misc, 0x2002);
	cr_assert_eq(decoded.is.mmap.pid, 10);
	cr_assert_eq(decoded.is.mmap.tid, 11);
	cr_assert_eq(decoded.is.mmap.addr, 0x7f0000000000);
	cr_assert_eq(decoded.is.mmap.len, 0x1000);
	cr_assert_eq(decoded.is.mmap.pgoff, 0x2000);
	cr_assert_eq(decoded.is.mmap.filename.size, 9);
}

Test(record, mmap2_in_both_variants, .timeout = 30)
{
	const struct perf_event_header *record;
	size_t i;

	start(&pack, 10, 2);
	half(&pack, 10);
	half(&pack, 11);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	half(&pack, 8);
	half(&pack, 1);
	word(&pack, 777);
	word(&pack, 888);
	half(&pack, 5);
	half(&pack, 2);
	string(&pack, "//anon");
	record = all_ways(&pack, &decoded);
	cr_assert_not(decoded.is.mmap2.file.has_build_id);
	cr_assert_eq(decoded.is.mmap2.file.maj, 8);
	cr_assert_eq(decoded.is.mmap2.file.min, 1);
	cr_assert_eq(decoded.is.mmap2.file.ino, 777);
	cr_assert_eq(decoded.is.mmap2.file.ino_generation, 888);
	cr_assert_eq(decoded.is.mmap2.prot, 5);
	cr_assert_eq(decoded.is.mmap2.flags, 2);
	assert_string(&decoded.is.mmap2.filename, "//anon");
	drop(record, 5);

	start(&pack, 10, 0x4002);
	half(&pack, 10);
	half(&pack, 11);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	half(&pack, 20);
	for (i = 0; i < 20; i++)
		bytes(&pack, &(unsigned char){(unsigned char)(i + 1)}, 1);
	half(&pack, 5);
	half(&pack, 2);
	string(&pack, "/lib/x.so");
	record = all_ways(&pack, &decoded);
	cr_assert(decoded.is.mmap2.file.has_build_id);
	cr_assert_eq(decoded.is.mmap2.file.build_id_size, 20);
	cr_assert_eq(decoded.is.mmap2.file.build_id[0], 1);
	cr_assert_eq(decoded.is.mmap2.file.build_id[19], 20);
	assert_string(&decoded.is.mmap2.filename, "/lib/x.so");
	drop(record, 5);

	/* A size that is too large, with all 20 bytes there whatever it says. */
	pack.bytes[40] = 255;
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.mmap2.file.build_id_size, 20);
	drop(record, 0);
	pack.bytes[40] = 8;
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.is.mmap2.file.build_id_size, 8);
	cr_assert_eq(decoded.is.mmap2.file.build_id[19], 20);
	/* Which variant is written, the file says, not misc. */
	decoded.is.mmap2.file.has_build_id = false;
	cr_assert_eq(perfring_record_encode(&whole_trailer, &decoded, pack.bytes, sizeof(pack.bytes)),
		     (int64_t)pack.size);
	cr_assert_eq(((const struct perf_event_header *)(const void *)pack.bytes)->misc, 2);
	drop(record, 5);
}

Test(record, of_numbers, .timeout = 30)
{
	start(&pack, 2, 0);
	word(&pack, 5);
	word(&pack, 31);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.lost.id, 5);
	cr_assert_eq(decoded.is.lost.lost, 31);

	start(&pack, 4, 0);
	half(&pack, 1);
	half(&pack, 2);
	half(&pack, 3);
	half(&pack, 4);
	word(&pack, 5);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.exit.pid, 1);
	cr_assert_eq(decoded.is.exit.ppid, 2);
	cr_assert_eq(decoded.is.exit.tid, 3);
	cr_assert_eq(decoded.is.exit.ptid, 4);
	cr_assert_eq(decoded.is.exit.time, 5);

	start(&pack, 7, 1 << 13);
	half(&pack, 11);
	half(&pack, 12);
	half(&pack, 13);
	half(&pack, 14);
	word(&pack, 15);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.fork.ptid, 14);
	cr_assert_eq(decoded.misc, 0x2000);

	start(&pack, 5, 0);
	word(&pack, 51);
	word(&pack, 52);
	word(&pack, 53);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.throttle.time, 51);
	cr_assert_eq(decoded.is.throttle.stream_id, 53);

	start(&pack, 6, 0);
	word(&pack, 61);
	word(&pack, 62);
	word(&pack, 63);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.unthrottle.id, 62);

	start(&pack, 11, 0);
	word(&pack, 111);
	word(&pack, 112);
	word(&pack, 3);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.aux.aux_offset, 111);
	cr_assert_eq(decoded.is.aux.aux_size, 112);
	cr_assert_eq(decoded.is.aux.flags, 3);

	start(&pack, 12, 0);
	half(&pack, 121);
	half(&pack, 122);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.itrace_start.tid, 122);

	start(&pack, 13, 0);
	word(&pack, 131);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.lost_samples.lost, 131);

	start(&pack, 14, 0x6000);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.misc, 0x6000);

	start(&pack, 15, 0);
	half(&pack, 151);
	half(&pack, 152);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.switch_cpu_wide.next_prev_pid, 151);
	cr_assert_eq(decoded.is.switch_cpu_wide.next_prev_tid, 152);

	start(&pack, 18, 0);
	quarter(&pack, 1);
	quarter(&pack, 2);
	half(&pack, 181);
	word(&pack, UINT64_C(0x0807060504030201));
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.bpf_event.type, 1);
	cr_assert_eq(decoded.is.bpf_event.flags, 2);
	cr_assert_eq(decoded.is.bpf_event.id, 181);
	cr_assert_eq(decoded.is.bpf_event.tag.bytes[0], 1);
	cr_assert_eq(decoded.is.bpf_event.tag.bytes[7], 8);

	start(&pack, 21, 0);
	word(&pack, 211);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.aux_output_hw_id.hw_id, 211);
}

Test(record, with_strings, .timeout = 30)
{
	/* Sizes from ABI.md 15: COMM "a" 24, "abcdefgh" 32. */
	static const char *const names[] = {"", "a", "abcdefg", "abcdefgh", "fifteen letters"};
	static const size_t sizes[] = {24, 24, 24, 32, 32};
	const struct perf_event_header *record;
	size_t i;

	for (i = 0; i < 5; i++) {
		start(&pack, 3, 1 << 13);
		half(&pack, 31);
		half(&pack, 32);
		string(&pack, names[i]);
		cr_assert_eq(pack.size, sizes[i]);
		record = all_ways(&pack, &decoded);
		assert_string(&decoded.is.comm.comm, names[i]);
		cr_assert_eq(decoded.is.comm.tid, 32);
		drop(record, 5);
	}

	start(&pack, 17, 0);
	word(&pack, 0xffffffffc0000000);
	half(&pack, 64);
	quarter(&pack, 1);
	quarter(&pack, 1);
	string(&pack, "bpf_prog_1234_x");
	record = all_ways(&pack, &decoded);
	cr_assert_eq(decoded.is.ksymbol.addr, 0xffffffffc0000000);
	cr_assert_eq(decoded.is.ksymbol.len, 64);
	cr_assert_eq(decoded.is.ksymbol.ksym_type, 1);
	cr_assert_eq(decoded.is.ksymbol.flags, 1);
	assert_string(&decoded.is.ksymbol.name, "bpf_prog_1234_x");
	drop(record, 5);

	start(&pack, 19, 0);
	word(&pack, 190);
	string(&pack, "/system.slice");
	record = all_ways(&pack, &decoded);
	cr_assert_eq(decoded.is.cgroup.id, 190);
	assert_string(&decoded.is.cgroup.path, "/system.slice");
	drop(record, 5);
}

/* A foreign COMM of 16 letters and no NUL (ABI.md 14.41): it ends where the trailer begins. */
Test(record, string_without_nul, .timeout = 30)
{
	const struct perf_event_header *record;
	struct perfring_string copy;

	start(&pack, 3, 0);
	half(&pack, 1);
	half(&pack, 2);
	bytes(&pack, "sixteen letters!", 16);
	trailer(&pack);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, NULL), 0);
	assert_string(&decoded.is.comm.comm, "sixteen letters!");
	cr_assert_eq(decoded.trailing_size, 0);
	copy = decoded.is.comm.comm;
	drop(record, 0);
	record = finish(&pack, 32, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), 0);
	assert_string(&decoded.is.comm.comm, "sixteen letters!");
	cr_assert_eq(decoded.is.comm.comm.size, copy.size);
	drop(record, 0);
	/* Nothing at all where the string should be. */
	record = finish(&pack, 16, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.comm.comm.size, 0);
	drop(record, 0);
}

Test(record, with_lists, .timeout = 30)
{
	static const uint64_t counts[] = {
		15, 16, UINT64_C(1) << 28, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_C(1) << 61, UINT64_MAX};
	const struct perf_event_header *record;
	struct perfring_fault fault = {-1, NULL};
	uint64_t i;

	start(&pack, 16, 0);
	half(&pack, 161);
	half(&pack, 162);
	word(&pack, 7);
	for (i = 0; i < 14; i++)
		word(&pack, 1000 + i);
	cr_assert_eq(pack.size, 136, "ABI.md 15");
	record = all_ways(&pack, &decoded);
	cr_assert_eq(decoded.is.namespaces.links.nr, 7);
	cr_assert_eq(decoded.is.namespaces.links.words[13], 1013);
	drop(record, 5);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		memcpy(pack.bytes + 16, &counts[i], 8);
		record = finish(&pack, pack.size, 0);
		cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 16);
		drop(record, 0);
	}

	start(&pack, 22, 2);
	word(&pack, 0xc00c1e);
	word(&pack, 3);
	word(&pack, (uint64_t)-512);
	word(&pack, 2);
	word(&pack, 3);
	record = all_ways(&pack, &decoded);
	cr_assert_eq(decoded.is.callchain_deferred.cookie, 0xc00c1e);
	cr_assert_eq(decoded.is.callchain_deferred.ips.nr, 3);
	cr_assert_eq(decoded.is.callchain_deferred.ips.words[2], 3);
	drop(record, 5);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		memcpy(pack.bytes + 16, &counts[i], 8);
		record = finish(&pack, pack.size, 0);
		cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 16);
		drop(record, 0);
	}
}

Test(record, text_poke, .timeout = 30)
{
	const struct perf_event_header *record;
	uint16_t old_len, new_len;
	size_t i;

	for (old_len = 0; old_len < 10; old_len += 3) {
		for (new_len = 0; new_len < 10; new_len++) {
			start(&pack, 20, 1);
			word(&pack, 0xffffffff81000000);
			quarter(&pack, old_len);
			quarter(&pack, new_len);
			for (i = 0; i < old_len; i++)
				bytes(&pack, "o", 1);
			for (i = 0; i < new_len; i++)
				bytes(&pack, "n", 1);
			while (pack.size % 8)
				bytes(&pack, "", 1);
			record = all_ways(&pack, &decoded);
			cr_assert_eq(decoded.is.text_poke.poke.old_len, old_len);
			cr_assert_eq(decoded.is.text_poke.poke.new_len, new_len);
			if (old_len)
				cr_assert_eq(*(const char *)decoded.is.text_poke.poke.old_bytes, 'o');
			if (new_len)
				cr_assert_eq(*(const char *)decoded.is.text_poke.poke.new_bytes, 'n');
			drop(record, 5);
		}
	}
	/* More than there is. */
	pack.bytes[18] = 0xff;
	pack.bytes[19] = 0xff;
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
}

Test(record, read_in_every_format, .timeout = 30)
{
	const struct perf_event_header *record;
	uint64_t shape, nr, i;

	for (shape = 0; shape < 32; shape++) {
		for (nr = 1; nr < 4; nr++) {
			struct perfring_format format = whole_trailer;

			if (!(shape & 8) && nr != 1)
				continue;
			format.read_format = shape;
			start(&pack, 8, 0);
			half(&pack, 81);
			half(&pack, 82);
			word(&pack, shape & 8 ? nr : 100);
			if (shape & 1)
				word(&pack, 7001);
			if (shape & 2)
				word(&pack, 7002);
			for (i = 0; i < nr; i++) {
				if (shape & 8)
					word(&pack, 100 + i);
				if (shape & 4)
					word(&pack, 200 + i);
				if (shape & 16)
					word(&pack, 300 + i);
			}
			trailer(&pack);
			record = round_trip(&format, &pack, &decoded);
			cr_assert_eq(decoded.is.read.pid, 81);
			cr_assert_eq(decoded.is.read.read.nr, nr);
			cr_assert_eq(decoded.trailing_size, 0);
			cr_assert_eq(perfring_read_value(&decoded.is.read.read, nr - 1), 100 + nr - 1);
			cr_assert_eq(perfring_read_id(&decoded.is.read.read, nr - 1), shape & 4 ? 200 + nr - 1 : 0);
			cr_assert_eq(decoded.trailer.identifier, 9007);
			drop(record, 5);
		}
	}
	/* Without a format the block stays where it is. */
	start(&pack, 8, 0);
	half(&pack, 81);
	half(&pack, 82);
	word(&pack, 1);
	word(&pack, 2);
	record = round_trip(NULL, &pack, &decoded);
	cr_assert_eq(decoded.is.read.tid, 82);
	cr_assert_eq(decoded.is.read.read.nr, 0);
	cr_assert_eq(decoded.trailing_size, 16);
	drop(record, 5);
}

/* Each subset of the six words, in the order of ABI.md 4.2. */
Test(record, every_trailer, .timeout = 30)
{
	static const unsigned bits[] = {1, 2, 6, 9, 7, 16};
	const struct perf_event_header *record;
	unsigned subset, i;

	for (subset = 0; subset < 64; subset++) {
		/* The other bits have no part in it. */
		struct perfring_format format = {.sample_type = ((1 << 25) - 1), .flags = UINT64_C(1) << 18};

		start(&pack, 2, 0);
		word(&pack, 1);
		word(&pack, 2);
		for (i = 0; i < 6; i++) {
			format.sample_type &= ~(UINT64_C(1) << bits[i]);
			if (!(subset >> i & 1))
				continue;
			format.sample_type |= UINT64_C(1) << bits[i];
			word(&pack, UINT64_C(0x0000000500000000) + bits[i]);
		}
		record = round_trip(&format, &pack, &decoded);
		cr_assert_eq(decoded.is.lost.lost, 2);
		for (i = 0; i < 6; i++)
			cr_assert_eq(decoded.trailer.present >> bits[i] & 1, subset >> i & 1);
		if (subset & 1)
			cr_assert_eq(decoded.trailer.tid, 5);
		if (subset & 16)
			cr_assert_eq(decoded.trailer.cpu, 7);
		if (subset & 32)
			cr_assert_eq(decoded.trailer.identifier, UINT64_C(0x0000000500000010));
		drop(record, 5);
		format.flags = 0;
		drop(round_trip(&format, &pack, &decoded), 5);
		cr_assert_eq(decoded.trailing_size, pack.size - 24);
	}
}

Test(record, newer_and_unknown_ones_are_kept, .timeout = 30)
{
	const struct perf_event_header *record;

	/* LOST with two more words. */
	start(&pack, 2, 0);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	word(&pack, 4);
	trailer(&pack);
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.trailing_size, 16);
	cr_assert_eq(*(const perfring_word *)decoded.trailing, 3);
	drop(record, 5);
	/* A kind that is in no table. */
	start(&pack, 50, 7);
	word(&pack, 1);
	trailer(&pack);
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.trailing_size, 8);
	cr_assert_eq(decoded.trailer.time, 9003);
	drop(record, 5);
	/* From 64 up there is no trailer. */
	start(&pack, 500, 7);
	word(&pack, 1);
	trailer(&pack);
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.trailing_size, 56);
	cr_assert_eq(decoded.trailer.present, 0);
	drop(record, 5);
}

Test(record, of_perf_itself, .timeout = 30)
{
	const struct perf_event_header *record;
	unsigned char room[24];

	start(&pack, 68, 0);
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.trailing_size, 0);
	drop(record, 5);
	start(&pack, 77, 0);
	word(&pack, 1);
	word(&pack, 2);
	record = round_trip(&whole_trailer, &pack, &decoded);
	cr_assert_eq(decoded.is.stat_round.payload.size, 16);
	cr_assert_eq(decoded.trailing_size, 0);
	drop(record, 5);
	/* Sizes that are not multiples of 8 become such. */
	start(&pack, 80, 0);
	word(&pack, 1);
	half(&pack, 2);
	record = finish(&pack, pack.size, 1);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.header_feature.payload.size, 12);
	cr_assert_eq(perfring_record_encode(&whole_trailer, &decoded, room, sizeof(room)), 24);
	cr_assert_eq(room[16], 2);
	cr_assert_eq(room[20], 0);
	drop(record, 1);
}

Test(record, refused, .timeout = 30)
{
	struct perf_event_header header = {9, 0, 8};
	struct perfring_fault fault = {-1, NULL};
	static uint64_t words[9000];
	unsigned char room[64];
	uint16_t size;

	cr_assert_eq(perfring_record_decode(NULL, &header, &decoded, NULL), -EINVAL);
	decoded.type = 9;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	cr_assert_eq(perfring_record_encode(NULL, &decoded, room, sizeof(room)), -EINVAL);
	header.type = 2;
	for (size = 0; size < 8; size++) {
		header.size = size;
		cr_assert_eq(perfring_record_decode(NULL, &header, &decoded, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 0);
	}
	/* Too short for its own members. */
	memset(room, 0, sizeof(room));
	for (size = 8; size < 24; size++) {
		header.size = size;
		memcpy(room, &header, sizeof(header));
		cr_assert_eq(perfring_record_decode(NULL, (const void *)room, &decoded, &fault), -EBADMSG);
		cr_assert_eq(fault.at, size < 16 ? 8 : 16);
	}

	/* 65528 bytes fit a header; one word more does not, nor do counts whose product wraps. */
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 22;
	decoded.is.callchain_deferred.ips.words = words;
	decoded.is.callchain_deferred.ips.nr = (65528 - 24) / 8;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 65528);
	decoded.is.callchain_deferred.ips.nr++;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.callchain_deferred.ips.nr = UINT64_C(1) << 61;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, room, sizeof(room)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 16;
	decoded.is.namespaces.links.nr = UINT64_C(1) << 60;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, room, sizeof(room)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 3;
	decoded.is.comm.comm.size = UINT32_MAX;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, room, sizeof(room)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 81;
	decoded.is.compressed.payload.size = UINT64_MAX - 7;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, room, sizeof(room)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 8;
	cr_assert_eq(perfring_record_size(&whole_trailer, &decoded), -EINVAL, "a lone value is one");
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 68;
	decoded.trailing_size = UINT32_MAX;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
}

/* Made from members alone, as a writer of synthetic records does. */
Test(record, made_from_nothing, .timeout = 30)
{
	static const unsigned char expected[] = {
		3,   0,   0, 0, 0, 0x20, 40, 0, /* COMM, COMM_EXEC, 40 bytes */
		7,   0,   0, 0, 8, 0,    0,  0, /* pid, tid */
		'x', 'y', 0, 0, 0, 0,    0,  0, /* comm */
		7,   0,   0, 0, 8, 0,    0,  0, /* trailer: tid */
		9,   0,   0, 0, 0, 0,    0,  0, /* time */
	};
	struct perfring_format format = {.sample_type = 1 | 2 | 4, .flags = UINT64_C(1) << 18};
	unsigned char room[sizeof(expected)];

	memset(&decoded, 0, sizeof(decoded));
	decoded.type = PERFRING_RECORD_COMM;
	decoded.misc = PERFRING_RECORD_MISC_COMM_EXEC;
	decoded.is.comm.pid = 7;
	decoded.is.comm.tid = 8;
	decoded.is.comm.comm.data = "xy";
	decoded.is.comm.comm.size = 2;
	decoded.trailer.pid = 7;
	decoded.trailer.tid = 8;
	decoded.trailer.time = 9;
	cr_assert_eq(perfring_record_encode(&format, &decoded, room, sizeof(room)), (int64_t)sizeof(expected));
	cr_assert_eq(memcmp(room, expected, sizeof(expected)), 0);
	cr_assert_eq(perfring_record_cpumode((const void *)room), 0);
}
