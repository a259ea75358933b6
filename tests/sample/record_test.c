/* record_test.c - every record but SAMPLE, packed by hand, decoded, and encoded to the same bytes. */
#include "test.h"
#include "pack.h"

#include "sample/within.h"
#include <perfring/record.h>
#include <perfring/text.h>
#include <stdio.h>
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
	unsigned char *buffer = malloc(pack->size);
	size_t i;

	cr_assert_not_null(buffer);
	cr_assert_eq(perfring_record_decode(format, record, decoded, &fault), 0, "%s at %lld",
		     fault.what ? fault.what : "?", (long long)fault.at);
	cr_assert_eq(decoded->size, pack->size);
	cr_assert_eq(perfring_record_size(format, decoded), (int64_t)pack->size);
	memset(buffer, 0x77, pack->size);
	cr_assert_eq(perfring_record_encode(format, decoded, buffer, pack->size - 1), -ENOSPC);
	for (i = 0; i < pack->size; i++)
		cr_assert_eq(buffer[i], 0x77);
	cr_assert_eq(perfring_record_encode(format, decoded, buffer, pack->size), (int64_t)pack->size);
	cr_assert_eq(memcmp(buffer, record, pack->size), 0, "type %u", decoded->type);
	free(buffer);
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
	uint32_t device[2];
	uint64_t inode[2];
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
	bytes(&pack, "\x14\0\0", 4);
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

	/* A size that no build id has: the bit is another event's, and these are a device and an inode. */
	pack.bytes[40] = 254;
	memcpy(device, pack.bytes + 40, sizeof(device));
	memcpy(inode, pack.bytes + 48, sizeof(inode));
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(&whole_trailer, record, &decoded, NULL), 0);
	cr_assert_not(decoded.is.mmap2.file.has_build_id);
	cr_assert_eq(decoded.is.mmap2.file.build_id_size, 0);
	cr_assert_eq(decoded.is.mmap2.file.maj, device[0]);
	cr_assert_eq(decoded.is.mmap2.file.min, device[1]);
	cr_assert_eq(decoded.is.mmap2.file.ino, inode[0]);
	cr_assert_eq(decoded.is.mmap2.file.ino_generation, inode[1]);
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
	bytes(&pack, "\1\2\3\4\5\6\7\x8", 8);
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
	/* Sizes from docs/abi.md 15: COMM "a" 24, "abcdefgh" 32. */
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

/* A foreign COMM of 16 letters and no NUL (docs/abi.md 14.41): it ends where the trailer begins. */
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
	cr_assert_eq(pack.size, 136, "docs/abi.md 15");
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
	quarter_at(&pack, 18, 0xffff);
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

/* Each subset of the six words, in the order of docs/abi.md 4.2. */
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
			if (bits[i] == 1 || bits[i] == 7) { /* two halves */
				half(&pack, bits[i]);
				half(&pack, 5);
			} else {
				word(&pack, UINT64_C(0x0000000500000000) + bits[i]);
			}
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

/* Zeros up to a multiple of 8. */
static void pad(struct pack *to)
{
	while (to->size % 8)
		bytes(to, "", 1);
}

/* Room for `size` bytes, so much of it `text`. */
static void text_in(struct pack *to, const char *text, size_t size)
{
	memset(to->bytes + to->size, 0, size);
	memcpy(to->bytes + to->size, text, strlen(text));
	to->size += size;
}

/* Any bytes: an answer, and nothing outside is read, nor written by the encoder. */
static void survives(const struct perf_event_header *record)
{
	struct perfring_fault fault = {-1, NULL};
	struct perfring_record broken;
	unsigned char *buffer;
	int64_t size;

	cr_assert_gt(perfring_record_text(NULL, record, NULL, 0), 0);
	if (perfring_record_decode(&whole_trailer, record, &broken, &fault)) {
		cr_assert_not_null(fault.what);
		cr_assert_geq(fault.at, 0);
		cr_assert_leq(fault.at, ((const perfring_header *)record)->size);
		return;
	}
	cr_assert_leq((const unsigned char *)broken.trailing + broken.trailing_size,
		      (const unsigned char *)record + ((const perfring_header *)record)->size);
	size = perfring_record_size(NULL, &broken);
	if (size < 0)
		return;
	buffer = malloc((size_t)size);
	cr_assert_not_null(buffer);
	cr_assert_eq(perfring_record_encode(NULL, &broken, buffer, (size_t)size), size);
	free(buffer);
}

/* A record of perf's own: decoded, encoded to the same bytes, shown; cut and damaged at every byte.  What it returns is
 * in `decoded`, with `left` bytes trailing. */
static const struct perf_event_header *of_perf(const struct pack *from, uint32_t left, const char *expected)
{
	static const unsigned char odd_bytes[] = {0x01, 0x7f, 0x80, 0xff};
	static char line[4096];
	const struct perf_event_header *record;
	static struct pack broken;
	size_t at, i;

	for (at = 8; at < from->size; at++) {
		record = finish(from, at, at % 8);
		survives(record);
		drop(record, at % 8);
	}
	broken = *from;
	for (at = 8; at < from->size; at++) {
		for (i = 0; i < sizeof(odd_bytes); i++) {
			broken.bytes[at] = odd_bytes[i];
			record = finish(&broken, broken.size, i);
			survives(record);
			drop(record, i);
		}
		broken.bytes[at] = from->bytes[at];
	}
	record = round_trip(NULL, from, &decoded);
	drop(record, 5);
	record = round_trip(&whole_trailer, from, &decoded);
	cr_assert_eq(decoded.trailing_size, left);
	cr_assert_eq(decoded.trailer.present, 0);
	cr_assert_eq(perfring_record_text(NULL, record, line, sizeof(line)), (int64_t)strlen(expected), "%s", line);
	cr_assert_str_eq(line, expected);
	return record;
}

Test(record, of_perf_itself, .timeout = 30)
{
	start(&pack, 68, 0);
	drop(of_perf(&pack, 0, "FINISHED_ROUND"), 5);
	start(&pack, 82, 0);
	drop(of_perf(&pack, 0, "FINISHED_INIT"), 5);
	start(&pack, 66, 0);
	half(&pack, 4096);
	drop(of_perf(&pack, 0, "HEADER_TRACING_DATA size=4096"), 5);
	cr_assert_eq(decoded.is.header_tracing_data.size, 4096);
	half(&pack, 0); /* padding of newer perfs */
	drop(of_perf(&pack, 4, "HEADER_TRACING_DATA size=4096 trailing=4"), 5);
	cr_assert_eq(decoded.is.header_tracing_data.size, 4096);
	start(&pack, 71, 0);
	word(&pack, 0x2000);
	word(&pack, 0x10);
	word(&pack, 0x1234);
	half(&pack, 3);
	half(&pack, 99);
	half(&pack, UINT32_MAX);
	half(&pack, 0);
	drop(of_perf(&pack, 0, "AUXTRACE size=8192 offset=0x10 reference=0x1234 idx=3 tid=99 cpu=-1 pad=0"), 5);
	cr_assert_eq(decoded.is.auxtrace.size, 0x2000);
	cr_assert_eq(decoded.is.auxtrace.tid, 99);
	start(&pack, 76, 0);
	word(&pack, 7);
	half(&pack, 2);
	half(&pack, 5);
	word(&pack, 1000);
	word(&pack, 2000);
	word(&pack, 3000);
	drop(of_perf(&pack, 0, "STAT id=7 cpu=2 thread=5 val=1000 ena=2000 run=3000"), 5);
	cr_assert_eq(decoded.is.stat.thread, 5);
	cr_assert_eq(decoded.is.stat.run, 3000);
	start(&pack, 77, 0);
	word(&pack, 1);
	word(&pack, 2);
	drop(of_perf(&pack, 0, "STAT_ROUND type=FINAL time=2"), 5);
	cr_assert_eq(decoded.is.stat_round.type, 1);
	start(&pack, 85, 0);
	word(&pack, 5);
	half(&pack, 1);
	quarter(&pack, 17);
	quarter(&pack, 0);
	half(&pack, 0xabcd);
	drop(of_perf(&pack, 0, "SCHEDSTAT_CPU timestamp=5 cpu=1 version=17 pad=0 counters={size=4}"), 5);
	cr_assert_eq(decoded.is.schedstat_cpu.counters.size, 4);
	start(&pack, 86, 0);
	word(&pack, 5);
	half(&pack, 1);
	quarter(&pack, 16);
	quarter(&pack, 2);
	drop(of_perf(&pack, 0, "SCHEDSTAT_DOMAIN timestamp=5 cpu=1 version=16 domain=2 counters={size=0}"), 5);
	cr_assert_eq(decoded.is.schedstat_domain.domain, 2);
	/* A record of a perf that is newer still. */
	start(&pack, 87, 0);
	bytes(&pack, "any", 3);
	drop(of_perf(&pack, 3, "RECORD_87 trailing=3"), 5);
}

Test(record, header_attr, .timeout = 30)
{
	const struct perf_event_header *record;

	/* Its ids stand behind as many bytes as the attr says (docs/abi.md 14.39): 64, 72 and more than any header has. */
	start(&pack, 64, 0);
	half(&pack, 1);
	half(&pack, 72);
	word(&pack, 2);
	text_in(&pack, "", 56);
	word(&pack, 41);
	word(&pack, UINT64_MAX);
	record = of_perf(&pack, 0, "HEADER_ATTR attr={type=SOFTWARE size=72 config=0x2} ids=[41 18446744073709551615]");
	cr_assert_eq(decoded.is.header_attr.attr.size, 72);
	cr_assert_eq(decoded.is.header_attr.attr.data, (const char *)record + 8);
	cr_assert_eq(decoded.is.header_attr.ids.nr, 2);
	cr_assert_eq(decoded.is.header_attr.ids.words[0], 41);
	/* An attr that is said to be as long as another is not read as that. */
	decoded.is.header_attr.attr.size = 64;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	drop(record, 5);
	start(&pack, 64, 0);
	half(&pack, 0);
	half(&pack, 0);
	text_in(&pack, "", 56);
	drop(of_perf(&pack, 0, "HEADER_ATTR attr={type=HARDWARE config=0} ids=[]"), 5);
	cr_assert_eq(decoded.is.header_attr.attr.size, 64, "0 is the oldest size");
	start(&pack, 64, 0);
	half(&pack, 0);
	half(&pack, 200);
	text_in(&pack, "", 192);
	word(&pack, 1);
	half(&pack, 2);
	drop(of_perf(&pack, 4, "HEADER_ATTR attr={type=HARDWARE size=200 config=0} ids=[1] trailing=4"), 5);
	cr_assert_eq(decoded.is.header_attr.ids.nr, 1);
	half_at(&pack, 12, 63);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
	half_at(&pack, 12, 213);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG, "one byte more than there is");
	drop(record, 0);
}

Test(record, header_event_type, .timeout = 30)
{
	const struct perf_event_header *record;

	start(&pack, 65, 0);
	word(&pack, 3);
	text_in(&pack, "cycles", 64);
	record = of_perf(&pack, 0, "HEADER_EVENT_TYPE event_id=3 name=cycles");
	assert_string(&decoded.is.header_event_type.name, "cycles");
	decoded.is.header_event_type.name.space = 0;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 80, "all of it when nothing else is said");
	decoded.is.header_event_type.name.space = 65;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.header_event_type.name.space = 5;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL, "six letters");
	drop(record, 5);
	/* as perf writes it: cut behind the name */
	start(&pack, 65, 0);
	word(&pack, 3);
	text_in(&pack, "cycles", 8);
	record = of_perf(&pack, 0, "HEADER_EVENT_TYPE event_id=3 name=cycles");
	cr_assert_eq(perfring_record_size(NULL, &decoded), 24);
	decoded.trailing = "x";
	decoded.trailing_size = 1;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL, "what trails would be of the name");
	decoded.is.header_event_type.name.space = 0;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 81);
	decoded.is.header_event_type.name.data = "cycl\0s";
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL, "read as four letters");
	drop(record, 5);
	start(&pack, 65, 0);
	word(&pack, 3);
	memset(pack.bytes + pack.size, 'n', 70);
	pack.size += 70;
	record = of_perf(&pack, 6,
			 "HEADER_EVENT_TYPE event_id=3 "
			 "name=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn trailing=6");
	cr_assert_eq(decoded.is.header_event_type.name.size, 64);
	drop(record, 5);
}

Test(record, header_build_id, .timeout = 30)
{
	static const char id[] = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14";
	const struct perf_event_header *record;
	unsigned char buffer[128];

	/* The length of the id, and a name in a multiple of 64 bytes: 100 in all. */
	start(&pack, 67, 0x8001);
	half(&pack, UINT32_MAX);
	bytes(&pack, id, 20);
	bytes(&pack, "\x8\0\0", 4);
	text_in(&pack, "[kernel]", 64);
	cr_assert_eq(pack.size, 100);
	record = of_perf(&pack, 0,
			 "HEADER_BUILD_ID misc=KERNEL|BUILD_ID_SIZE pid=-1 build_id=0102030405060708 "
			 "filename=[kernel]");
	cr_assert(decoded.is.header_build_id.build_id.has_size);
	cr_assert_eq(decoded.is.header_build_id.build_id.size, 8);
	cr_assert_eq(decoded.is.header_build_id.build_id.bytes[19], 20, "all of it is there, whatever its size");
	assert_string(&decoded.is.header_build_id.filename, "[kernel]");
	/* The member says which kind it is, not misc. */
	decoded.is.header_build_id.build_id.has_size = false;
	decoded.is.header_build_id.filename.space = 0;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), 48, "36, 8 letters, a NUL, padding");
	cr_assert_eq(((const perfring_header *)(const void *)buffer)->misc, 1);
	cr_assert_eq(buffer[32], 0);
	drop(record, 5);
	pack.bytes[32] = 200;
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.header_build_id.build_id.size, 20);
	drop(record, 0);
	/* An older file's. */
	start(&pack, 67, 2);
	half(&pack, 12);
	bytes(&pack, id, 20);
	half(&pack, 0);
	text_in(&pack, "/bin/x", 12);
	drop(of_perf(&pack, 0,
		     "HEADER_BUILD_ID misc=USER pid=12 build_id=0102030405060708090a0b0c0d0e0f1011121314 "
		     "filename=/bin/x"),
	     5);
	cr_assert_not(decoded.is.header_build_id.build_id.has_size);
	cr_assert_eq(decoded.is.header_build_id.build_id.size, 20);
}

Test(record, id_index, .timeout = 30)
{
	static const uint64_t counts[] = {3, UINT64_C(1) << 27, UINT64_C(1) << 59, UINT64_MAX};
	const struct perf_event_header *record;
	size_t i;

	start(&pack, 69, 0);
	word(&pack, 2);
	for (i = 0; i < 2; i++) {
		word(&pack, 50 + i);
		word(&pack, i);
		word(&pack, i ? UINT64_MAX : 3);
		word(&pack, i ? 77 : UINT64_MAX);
	}
	record = of_perf(&pack, 0, "ID_INDEX index=[{id=50 idx=0 cpu=3 tid=-1} {id=51 idx=1 cpu=-1 tid=77}]");
	cr_assert_eq(decoded.is.id_index.index.nr, 2);
	cr_assert_eq(decoded.is.id_index.index.entries[7], 77);
	cr_assert_null(decoded.is.id_index.index.machines);
	drop(record, 5);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct pack many = pack;

		memcpy(many.bytes + 8, &counts[i], 8);
		record = finish(&many, many.size, 0);
		cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
		drop(record, 0);
	}
	/* A part of the second array is none. */
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	drop(of_perf(&pack, 24, "ID_INDEX index=[{id=50 idx=0 cpu=3 tid=-1} {id=51 idx=1 cpu=-1 tid=77}] trailing=24"),
	     5);
	cr_assert_null(decoded.is.id_index.index.machines);
	word(&pack, 4);
	record = of_perf(&pack, 0,
			 "ID_INDEX index=[{id=50 idx=0 cpu=3 tid=-1 machine_pid=1 vcpu=2} "
			 "{id=51 idx=1 cpu=-1 tid=77 machine_pid=3 vcpu=4}]");
	cr_assert_eq(decoded.is.id_index.index.machines[3], 4);
	drop(record, 5);
	start(&pack, 69, 0);
	word(&pack, 0);
	drop(of_perf(&pack, 0, "ID_INDEX index=[]"), 5);
}

Test(record, auxtrace_info, .timeout = 30)
{
	start(&pack, 70, 0);
	half(&pack, 4);
	half(&pack, 0);
	word(&pack, 8);
	word(&pack, 0xffffffffffffffff);
	drop(of_perf(&pack, 0, "AUXTRACE_INFO type=ARM_SPE pad=0 priv=[0x8 0xffffffffffffffff]"), 5);
	cr_assert_eq(decoded.is.auxtrace_info.priv.nr, 2);
	half_at(&pack, 8, 77);
	drop(of_perf(&pack, 0, "AUXTRACE_INFO type=77 pad=0 priv=[0x8 0xffffffffffffffff]"), 5);
}

/* With fmt come a time, and then whose machine it was. */
Test(record, auxtrace_error, .timeout = 30)
{
	static const char *const lines[] = {
		"AUXTRACE_ERROR type=1 code=2 cpu=3 pid=4 tid=5 fmt=0 ip=0x6 msg=lost",
		"AUXTRACE_ERROR type=1 code=2 cpu=3 pid=4 tid=5 fmt=1 ip=0x6 time=7 msg=lost",
		"AUXTRACE_ERROR type=1 code=2 cpu=3 pid=4 tid=5 fmt=2 ip=0x6 time=7 msg=lost machine_pid=8 vcpu=9",
		("AUXTRACE_ERROR type=1 code=2 cpu=3 pid=4 tid=5 fmt=3 ip=0x6 time=7 msg=lost machine_pid=8 vcpu=9 "
		 "trailing=8"),
	};
	static const size_t sizes[] = {104, 112, 120, 128};
	const struct perf_event_header *record;
	uint32_t fmt, i;

	for (fmt = 0; fmt < 4; fmt++) {
		start(&pack, 72, 0);
		for (i = 1; i < 6; i++)
			half(&pack, i);
		half(&pack, fmt);
		word(&pack, 6);
		if (fmt >= 1)
			word(&pack, 7);
		text_in(&pack, "lost", 64);
		if (fmt >= 2) {
			half(&pack, 8);
			half(&pack, 9);
		}
		if (fmt == 3)
			word(&pack, 1);
		cr_assert_eq(pack.size, sizes[fmt]);
		record = of_perf(&pack, fmt == 3 ? 8 : 0, lines[fmt]);
		cr_assert_eq(decoded.is.auxtrace_error.time, fmt ? 7 : 0);
		cr_assert_eq(decoded.is.auxtrace_error.vcpu, fmt > 1 ? 9 : 0);
		assert_string(&decoded.is.auxtrace_error.msg, "lost");
		drop(record, 5);
	}
	/* perf cuts the message when nothing follows it. */
	start(&pack, 72, 0);
	for (i = 1; i < 6; i++)
		half(&pack, i);
	half(&pack, 1);
	word(&pack, 6);
	word(&pack, 7);
	text_in(&pack, "lost", 8);
	record = of_perf(&pack, 0, lines[1]);
	cr_assert_eq(perfring_record_size(NULL, &decoded), 56);
	decoded.is.auxtrace_error.fmt = 2;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL, "machine_pid would be of the message");
	decoded.is.auxtrace_error.msg.space = 0;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 120);
	drop(record, 5);
}

Test(record, thread_map, .timeout = 30)
{
	const struct perf_event_header *record;

	start(&pack, 73, 0);
	word(&pack, 2);
	word(&pack, UINT64_MAX);
	text_in(&pack, "", 16);
	word(&pack, 12);
	bytes(&pack, "sixteen letters!", 16);
	record = of_perf(&pack, 0, "THREAD_MAP threads=[{pid=-1 comm=} {pid=12 comm=sixteen letters!}]");
	cr_assert_eq(decoded.is.thread_map.threads.nr, 2);
	cr_assert_eq(decoded.is.thread_map.threads.data, (const char *)record + 16);
	drop(record, 5);
	word_at(&pack, 8, 3);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
}

enum {
	MAPS = 8
};

static const char *const map_lines[MAPS] = {
	"0-2,5", "-1,0", "", "0,2,31-33", "0,7,63", "0-127", "-1,3", "{type=3 size=14}",
};

/* What stands behind a CPU_MAP's header and an EVENT_UPDATE's id. */
static void map_in(struct pack *to, size_t which)
{
	static const uint16_t lists[3][8] = {{0, 4, 0, 1, 2, 5}, {0, 2, UINT16_MAX}, {0}};
	size_t i;

	switch (which) {
	case 0: /* type 0, nr 4, and padding */
	case 1:
	case 2:
		for (i = 0; i < (which ? 4 : 8); i++)
			quarter(to, lists[which][i]);
		break;
	case 3: /* type 1, nr 2, words of 4 bytes */
		quarter(to, 1);
		quarter(to, 2);
		quarter(to, 4);
		half(to, 0x80000005);
		half(to, 3);
		quarter(to, 0);
		break;
	case 4: /* type 1, nr 1, a word of 8 bytes behind padding; then 6 bytes to a multiple of 8 */
		quarter(to, 1);
		quarter(to, 1);
		quarter(to, 8);
		half(to, 0);
		word(to, UINT64_C(0x8000000000000081));
		bytes(to, "\0\0\0\0\0", 6);
		break;
	case 5: /* type 2: not any, 0 to 127 */
		quarter(to, 2);
		bytes(to, "\0", 2);
		quarter(to, 0);
		quarter(to, 127);
		break;
	case 6: /* any */
		quarter(to, 2);
		bytes(to, "\1", 2);
		quarter(to, 3);
		quarter(to, 3);
		break;
	default: /* a type of no name keeps its bytes, padding or not */
		quarter(to, 3);
		bytes(to, "\1\2\3\4\5\6\7\x8\0\0\0\0\0", 14);
		break;
	}
}

Test(record, cpu_map, .timeout = 30)
{
	static const size_t nrs[] = {4, 2, 0, 2, 1, 0, 0, 0};
	const struct perf_event_header *record;
	char line[128];
	size_t i;

	for (i = 0; i < MAPS; i++) {
		start(&pack, 74, 0);
		map_in(&pack, i);
		snprintf(line, sizeof(line), "CPU_MAP cpus=%s", map_lines[i]);
		record = of_perf(&pack, 0, line);
		cr_assert_eq(decoded.is.cpu_map.cpus.nr, nrs[i]);
		if (i == 3 || i == 4)
			cr_assert_eq(decoded.is.cpu_map.cpus.long_size, i == 3 ? 4 : 8);
		if (i == 6) {
			cr_assert_eq(decoded.is.cpu_map.cpus.first, 3);
			cr_assert_eq(decoded.is.cpu_map.cpus.any_cpu, 1);
		}
		drop(record, 5);
	}
	/* Without its padding, as the last bytes of a record may be. */
	start(&pack, 74, 0);
	map_in(&pack, 0);
	pack.size -= 4;
	record = finish(&pack, pack.size, 3);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), 0);
	cr_assert_eq(decoded.is.cpu_map.cpus.nr, 4);
	cr_assert_eq(perfring_record_size(NULL, &decoded), 24);
	drop(record, 3);
	/* More CPUs than there are; words of 2 bytes. */
	quarter_at(&pack, 10, 5);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
	start(&pack, 74, 0);
	quarter(&pack, 1);
	quarter(&pack, 1);
	quarter(&pack, 2);
	quarter(&pack, 5);
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 74;
	decoded.is.cpu_map.cpus.type = 1;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL, "no words of no bytes");
}

Test(record, event_update, .timeout = 30)
{
	const struct perf_event_header *record;
	char line[128];
	size_t i;

	start(&pack, 78, 0);
	word(&pack, 0);
	word(&pack, 5);
	text_in(&pack, "Joules", 8);
	record = of_perf(&pack, 0, "EVENT_UPDATE type=UNIT id=5 text=Joules");
	assert_string(&decoded.is.event_update.text, "Joules");
	drop(record, 5);
	start(&pack, 78, 0);
	word(&pack, 1);
	word(&pack, 5);
	word(&pack, UINT64_C(0x3ff8000000000000));
	drop(of_perf(&pack, 0, "EVENT_UPDATE type=SCALE id=5 scale=0x1.8p+0"), 5);
	cr_assert_eq(decoded.is.event_update.scale, UINT64_C(0x3ff8000000000000));
	cr_assert_null(decoded.is.event_update.text.data);
	start(&pack, 78, 0);
	word(&pack, 2);
	word(&pack, 5);
	text_in(&pack, "cycles:u", 9);
	record = of_perf(&pack, 0, "EVENT_UPDATE type=NAME id=5 text=cycles:u");
	assert_string(&decoded.is.event_update.text, "cycles:u");
	cr_assert_eq(decoded.is.event_update.scale, 0);
	drop(record, 5);
	for (i = 0; i < MAPS; i++) {
		start(&pack, 78, 0);
		word(&pack, 3);
		word(&pack, 5);
		map_in(&pack, i);
		snprintf(line, sizeof(line), "EVENT_UPDATE type=CPUS id=5 cpus=%s", map_lines[i]);
		drop(of_perf(&pack, 0, line), 5);
	}
	start(&pack, 78, 0);
	word(&pack, 4);
	word(&pack, 5);
	bytes(&pack, "whatever it is", 14);
	drop(of_perf(&pack, 14, "EVENT_UPDATE type=4 id=5 trailing=14"), 5);
}

Test(record, stat_config, .timeout = 30)
{
	start(&pack, 75, 0);
	word(&pack, 4);
	word(&pack, 0);
	word(&pack, 3);
	word(&pack, 1);
	word(&pack, 1000);
	word(&pack, 2);
	word(&pack, 1);
	word(&pack, 9);
	word(&pack, 0);
	drop(of_perf(&pack, 0, "STAT_CONFIG config=[AGGR_MODE:3 INTERVAL:1000 SCALE:1 9:0]"), 5);
	cr_assert_eq(decoded.is.stat_config.config.nr, 4);
}

Test(record, time_conv, .timeout = 30)
{
	start(&pack, 79, 0);
	word(&pack, 10);
	word(&pack, 1024);
	word(&pack, 77);
	drop(of_perf(&pack, 0, "TIME_CONV time_shift=10 time_mult=1024 time_zero=77 more={}"), 5);
	cr_assert_eq(decoded.is.time_conv.time_zero, 77);
	cr_assert_not(decoded.is.time_conv.more.is_there);
	word(&pack, 55);
	word(&pack, 0xff);
	bytes(&pack, "\1\2\0\0\0\0\0", 8);
	drop(of_perf(&pack, 0,
		     "TIME_CONV time_shift=10 time_mult=1024 time_zero=77 "
		     "more={cycles=55 mask=0xff cap_zero=1 cap_short=2}"),
	     5);
	cr_assert(decoded.is.time_conv.more.is_there);
	cr_assert_eq(decoded.is.time_conv.more.mask, 0xff);
	pack.size = 48;
	drop(of_perf(&pack, 16, "TIME_CONV time_shift=10 time_mult=1024 time_zero=77 more={} trailing=16"), 5);
}

/* Sizes that are multiples of nothing, as perf writes them. */
Test(record, payloads, .timeout = 30)
{
	const struct perf_event_header *record;
	size_t i;

	start(&pack, 80, 0);
	word(&pack, 3);
	text_in(&pack, "a host's name", 68);
	cr_assert_eq(pack.size, 84);
	drop(of_perf(&pack, 0, "HEADER_FEATURE feature=3 payload={size=68}"), 5);
	cr_assert_eq(decoded.is.header_feature.payload.size, 68);
	start(&pack, 81, 0);
	for (i = 8; i < 346; i++)
		bytes(&pack, &(unsigned char){(unsigned char)(i * 7)}, 1);
	drop(of_perf(&pack, 0, "COMPRESSED payload={size=338}"), 5);
	cr_assert_eq(decoded.is.compressed.payload.size, 338);
	/* The largest there is. */
	for (; i < 65535; i++)
		bytes(&pack, &(unsigned char){(unsigned char)(i * 7)}, 1);
	drop(round_trip(NULL, &pack, &decoded), 5);
	cr_assert_eq(decoded.is.compressed.payload.size, 65527);
	decoded.is.compressed.payload.size++;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	/* This one tells its size, and is padded. */
	start(&pack, 83, 0);
	word(&pack, 330);
	for (i = 16; i < 346; i++)
		bytes(&pack, &(unsigned char){(unsigned char)(i * 7)}, 1);
	pad(&pack);
	cr_assert_eq(pack.size, 352);
	record = of_perf(&pack, 0, "COMPRESSED2 payload={size=330}");
	cr_assert_eq(decoded.is.compressed2.payload.size, 330);
	cr_assert_eq(decoded.is.compressed2.payload.data, (const char *)record + 16);
	drop(record, 5);
	word_at(&pack, 8, 337); /* one more than there is */
	record = finish(&pack, pack.size, 0);
	cr_assert_eq(perfring_record_decode(NULL, record, &decoded, NULL), -EBADMSG);
	drop(record, 0);
}

Test(record, bpf_metadata, .timeout = 30)
{
	start(&pack, 84, 0);
	text_in(&pack, "prog", 512);
	word(&pack, 2);
	text_in(&pack, "key", 64);
	text_in(&pack, "value", 256);
	text_in(&pack, "other", 64);
	text_in(&pack, "", 256);
	drop(of_perf(&pack, 0, "BPF_METADATA prog_name=prog metadata=[key=value other=]"), 5);
	cr_assert_eq(decoded.is.bpf_metadata.metadata.nr, 2);
	/* A trailer, which it may have, is kept. */
	trailer(&pack);
	drop(of_perf(&pack, 48, "BPF_METADATA prog_name=prog metadata=[key=value other=] trailing=48"), 5);
}

/* The buffer of a string is kept: a name padded to 64 bytes, one without NUL, and one that says too little. */
Test(record, strings_keep_their_room, .timeout = 30)
{
	const struct perf_event_header *record;

	start(&pack, 3, 0);
	half(&pack, 1);
	half(&pack, 2);
	bytes(&pack, "sixteen letters!", 16);
	drop(all_ways(&pack, &decoded), 5);
	cr_assert_eq(decoded.is.comm.comm.space, 16);
	start(&pack, 19, 0);
	word(&pack, 1);
	text_in(&pack, "/", 64);
	record = all_ways(&pack, &decoded);
	cr_assert_eq(decoded.is.cgroup.path.space, 64);
	cr_assert_eq(decoded.is.cgroup.path.size, 1);
	decoded.is.cgroup.path.space = 0;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 24);
	/* What would be read as another: a NUL inside, none behind. */
	decoded.is.cgroup.path.size = 8;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.cgroup.path.space = 8;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.cgroup.path.data = "/8bytes_";
	decoded.is.cgroup.path.space = 9;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 25 + 7);
	decoded.is.cgroup.path.size = 7;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.cgroup.path.size = 8;
	decoded.is.cgroup.path.space = 8;
	cr_assert_eq(perfring_record_size(NULL, &decoded), 24);
	decoded.is.cgroup.path.space = 7;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	decoded.is.cgroup.path.space = UINT32_MAX;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	drop(record, 5);
}

Test(record, refused, .timeout = 30)
{
	struct perf_event_header header = {9, 0, 8};
	struct perfring_fault fault = {-1, NULL};
	static uint64_t words[9000];
	unsigned char buffer[64];
	uint16_t size;

	cr_assert_eq(perfring_record_decode(NULL, &header, &decoded, NULL), -EINVAL);
	decoded.type = 9;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), -EINVAL);
	header.type = 2;
	for (size = 0; size < 8; size++) {
		header.size = size;
		cr_assert_eq(perfring_record_decode(NULL, &header, &decoded, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 6);
	}
	/* Too short for its own members. */
	memset(buffer, 0, sizeof(buffer));
	for (size = 8; size < 24; size++) {
		header.size = size;
		memcpy(buffer, &header, sizeof(header));
		cr_assert_eq(perfring_record_decode(NULL, (const void *)buffer, &decoded, &fault), -EBADMSG);
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
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 16;
	decoded.is.namespaces.links.nr = UINT64_C(1) << 60;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 3;
	decoded.is.comm.comm.size = UINT32_MAX;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 81;
	decoded.is.compressed.payload.size = UINT64_MAX - 7;
	cr_assert_eq(perfring_record_encode(NULL, &decoded, buffer, sizeof(buffer)), -EINVAL);
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 8;
	cr_assert_eq(perfring_record_size(&whole_trailer, &decoded), -EINVAL, "a lone value is one");
	memset(&decoded, 0, sizeof(decoded));
	decoded.type = 68;
	decoded.trailing_size = UINT32_MAX;
	cr_assert_eq(perfring_record_size(NULL, &decoded), -EINVAL);
}

/* The size that was tested is the one that counts, whatever the header says by now. */
Test(record, within_what_was_tested, .timeout = 30)
{
	const struct perf_event_header tested = {3, 0, 24};
	struct perf_event_header *record;

	start(&pack, 3, 0);
	half(&pack, 7);
	half(&pack, 8);
	text_in(&pack, "name", 8);
	record = malloc(24);
	cr_assert_not_null(record);
	memcpy(record, pack.bytes, 24);
	record->size = 65528;
	cr_assert_eq(perfring__record_decode_within(NULL, record, tested, &decoded, NULL), 0);
	cr_assert_eq(decoded.size, 24);
	cr_assert_eq(decoded.is.comm.comm.space, 8);
	free(record);
}

/* Made from members alone, as a writer of synthetic records does. */
Test(record, made_from_nothing, .timeout = 30)
{
	struct perfring_format format = {.sample_type = 1 | 2 | 4, .flags = UINT64_C(1) << 18};
	const struct perf_event_header *expected;
	unsigned char buffer[40];

	start(&pack, 3, 0x2000); /* COMM, COMM_EXEC */
	half(&pack, 7);
	half(&pack, 8);
	bytes(&pack, "xy\0\0\0\0\0", 8);
	half(&pack, 7);
	half(&pack, 8);
	word(&pack, 9);
	cr_assert_eq(pack.size, sizeof(buffer));
	expected = finish(&pack, pack.size, 0);
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
	cr_assert_eq(perfring_record_encode(&format, &decoded, buffer, sizeof(buffer)), (int64_t)sizeof(buffer));
	cr_assert_eq(memcmp(buffer, expected, sizeof(buffer)), 0);
	drop(expected, 0);
	cr_assert_eq(perfring_record_cpumode((const void *)buffer), 0);
}
