/* text_test.c - records, fields and attrs as lines of text, and never a byte beyond the buffer. */
#include "test.h"
#include "pack.h"

#include <perfring/text.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct perf_event_header *finish(struct pack *pack)
{
	uint16_t size = (uint16_t)pack->size;

	memcpy(pack->bytes + 6, &size, 2);
	return (const void *)pack->bytes;
}

/* What is decoded already has the same text, whatever the size. */
static void expect_decoded(const struct perfring_format *format, const struct perf_event_header *record, const char *expected)
{
	int64_t whole = (int64_t)strlen(expected);
	bool is_sample = record->type == PERFRING_RECORD_SAMPLE;
	struct perfring_record decoded;
	struct perfring_sample sample;
	char buffer[4096];

	cr_assert_lt(whole, (int64_t)sizeof(buffer));
	if (is_sample ? !format || perfring_sample_decode(format, record, &sample, NULL)
		      : perfring_record_decode(format, record, &decoded, NULL))
		return;
	for (size_t size = 0; size <= (size_t)whole + 2; size++) {
		size_t kept = size > (size_t)whole ? (size_t)whole : size ? size - 1 : 0;

		memset(buffer, '#', sizeof(buffer));
		cr_assert_eq(is_sample ? perfring_sample_text(&sample, buffer, size)
				       : perfring_record_decoded_text(&decoded, record, buffer, size),
			     whole);
		cr_assert_eq(memcmp(buffer, expected, kept), 0, "%s", expected);
		cr_assert(!size || !buffer[kept]);
		cr_assert_eq(buffer[size], '#');
	}
}

/* The line, and the same cut to every shorter buffer: allocated exactly, always ended, the length always the whole. */
static void assert_line(const struct perfring_format *format, struct pack *pack, const char *expected)
{
	const struct perf_event_header *record = finish(pack);
	int64_t whole = (int64_t)strlen(expected);
	size_t size;

	for (size = 0; size <= (size_t)whole + 2; size++) {
		char *buffer = malloc(size ? size : 1);
		size_t kept = size > (size_t)whole ? (size_t)whole : size ? size - 1 : 0;
		int64_t length;

		cr_assert_not_null(buffer);
		buffer[0] = '#';
		length = perfring_record_text(format, record, size ? buffer : NULL, size);
		if (size > (size_t)whole)
			cr_assert_str_eq(buffer, expected);
		cr_assert_eq(length, whole);
		if (size) {
			cr_assert_eq(buffer[kept], 0);
			cr_assert_eq(memcmp(buffer, expected, kept), 0);
		} else {
			cr_assert_eq(buffer[0], '#');
		}
		free(buffer);
	}
	expect_decoded(format, record, expected);
}

static struct pack pack;

static const struct perfring_format with_trailer = {.sample_type = 2 | 4 | 1 << 7, .flags = UINT64_C(1) << 18};

static void tail(struct pack *to, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu)
{
	half(to, pid);
	half(to, tid);
	word(to, time);
	half(to, cpu);
	half(to, 0);
}

static uint64_t seed = UINT64_C(0x853c49e6748fea9b);

/* xorshift64*, by Vigna: a fixed seed, so a failure comes again. */
static uint64_t next(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

Test(text, records, .timeout = 60)
{
	start(&pack, 3, 1 << 13);
	half(&pack, 12);
	half(&pack, 13);
	bytes(&pack, "sh\0\0\0\0\0", 8);
	tail(&pack, 12, 13, 1234567890123, 1);
	assert_line(&with_trailer, &pack,
		    "COMM misc=COMM_EXEC pid=12 tid=13 comm=sh trailer={tid=12/13 time=1234567890123 cpu=1}");

	/* Synthesised: nobody, nowhere. */
	start(&pack, 1, 2 | 1 << 13 | 1 << 12);
	half(&pack, UINT32_MAX);
	half(&pack, 0);
	word(&pack, 0x400000);
	word(&pack, 0x1000);
	word(&pack, 0);
	bytes(&pack, "/a b\\\n\xff", 8);
	tail(&pack, 0, 0, 0, UINT32_MAX);
	assert_line(&with_trailer, &pack,
		    "MMAP misc=USER|PROC_MAP_PARSE_TIMEOUT|MMAP_DATA pid=-1 tid=0 addr=0x400000 len=0x1000 pgoff=0 "
		    "filename=/a b\\x5c\\x0a\\xff trailer={tid=0/0 time=0 cpu=-1}");

	start(&pack, 14, 0x6000);
	assert_line(NULL, &pack, "SWITCH misc=SWITCH_OUT|SWITCH_OUT_PREEMPT");
	start(&pack, 2, 0x6001);
	word(&pack, 5);
	word(&pack, 6);
	word(&pack, 7);
	assert_line(NULL, &pack, "LOST misc=KERNEL|0x6000 id=5 lost=6 trailing=8");
	start(&pack, 51, 0);
	word(&pack, 5);
	assert_line(NULL, &pack, "RECORD_51 trailing=8");
	start(&pack, 81, 0);
	word(&pack, 5);
	assert_line(NULL, &pack, "COMPRESSED payload={size=8}");
	/* bit 15 is two kinds' own (docs/abi.md 4.1) */
	start(&pack, 67, 0x8002);
	assert_line(NULL, &pack,
		    "HEADER_BUILD_ID misc=USER|BUILD_ID_SIZE fault=\"record ends inside this member\" at=8");
	start(&pack, 13, 0x8000);
	word(&pack, 9);
	assert_line(NULL, &pack, "LOST_SAMPLES misc=LOST_SAMPLES_BPF lost=9");
	start(&pack, 2, 0x8000);
	assert_line(NULL, &pack, "LOST misc=EXT_RESERVED fault=\"record ends inside this member\" at=8");
	start(&pack, 11, 0);
	word(&pack, 0x1000);
	word(&pack, 0x20);
	word(&pack, 1 | 4);
	assert_line(NULL, &pack, "AUX aux_offset=0x1000 aux_size=0x20 flags=TRUNCATED|PARTIAL");
	start(&pack, 17, 0);
	word(&pack, UINT64_C(0xffffffffc0001000));
	half(&pack, 128);
	quarter(&pack, 1);
	quarter(&pack, 1);
	bytes(&pack, "bpf_x\0\0", 8);
	assert_line(NULL, &pack, "KSYMBOL addr=0xffffffffc0001000 len=0x80 ksym_type=BPF flags=UNREGISTER name=bpf_x");
	start(&pack, 18, 0);
	quarter(&pack, 1);
	quarter(&pack, 0);
	half(&pack, 44);
	bytes(&pack, "\1\2\3\4\5\6\7\x8", 8);
	assert_line(NULL, &pack, "BPF_EVENT type=PROG_LOAD flags=0 id=44 tag=0102030405060708");
	/* what is nobody's number has no sign, and what may be nobody has one */
	half_at(&pack, 12, 0x90000001);
	assert_line(NULL, &pack, "BPF_EVENT type=PROG_LOAD flags=0 id=2415919105 tag=0102030405060708");
	start(&pack, 66, 0);
	half(&pack, 0x80000000);
	assert_line(NULL, &pack, "HEADER_TRACING_DATA size=2147483648");
	start(&pack, 71, 0);
	for (int i = 0; i < 5; i++)
		word(&pack, UINT64_MAX);
	assert_line(NULL, &pack,
		    "AUXTRACE size=18446744073709551615 offset=0xffffffffffffffff reference=0xffffffffffffffff "
		    "idx=4294967295 tid=-1 cpu=-1 pad=4294967295");
	start(&pack, 69, 0);
	word(&pack, 1);
	for (int i = 0; i < 4; i++)
		word(&pack, UINT64_MAX);
	assert_line(NULL, &pack,
		    "ID_INDEX index=[{id=18446744073709551615 idx=18446744073709551615 cpu=-1 tid=-1}]");
	start(&pack, 20, 1);
	word(&pack, 0x10);
	quarter(&pack, 2);
	quarter(&pack, 1);
	bytes(&pack, "\x0f\x1f\xe8", 4);
	assert_line(NULL, &pack, "TEXT_POKE misc=KERNEL addr=0x10 poke={old=0f1f new=e8}");
	start(&pack, 16, 0);
	half(&pack, 1);
	half(&pack, 2);
	word(&pack, 2);
	word(&pack, 4);
	word(&pack, 4026531840);
	word(&pack, 5);
	word(&pack, 6);
	assert_line(NULL, &pack, "NAMESPACES pid=1 tid=2 links=[4:4026531840 5:6]");
	start(&pack, 22, 2);
	word(&pack, 0x77);
	word(&pack, 3);
	word(&pack, (uint64_t)-512);
	word(&pack, 0x401000);
	word(&pack, (uint64_t)-3);
	assert_line(NULL, &pack, "CALLCHAIN_DEFERRED misc=USER cookie=0x77 ips=[USER 0x401000 -3]");
}

Test(text, mmap2, .timeout = 30)
{
	start(&pack, 10, 2);
	half(&pack, 1);
	half(&pack, 1);
	word(&pack, 0x7f0000001000);
	word(&pack, 0x2000);
	word(&pack, 0x3000);
	half(&pack, 8);
	half(&pack, 1);
	word(&pack, 42);
	word(&pack, 0);
	half(&pack, 5);
	half(&pack, 2);
	bytes(&pack, "/bin/true\0\0\0\0\0\0", 16);
	assert_line(NULL, &pack,
		    "MMAP2 misc=USER pid=1 tid=1 addr=0x7f0000001000 len=0x2000 pgoff=0x3000 "
		    "file={maj=8 min=1 ino=42 ino_generation=0} prot=0x5 flags=0x2 filename=/bin/true");
	start(&pack, 10, 0x4002);
	half(&pack, 1);
	half(&pack, 1);
	word(&pack, 0x1000);
	word(&pack, 0x2000);
	word(&pack, 0);
	bytes(&pack, "\4\0\0\0\xde\xad\xbe\xef", 8);
	word(&pack, 0);
	word(&pack, 0);
	half(&pack, 0);
	half(&pack, 0);
	bytes(&pack, "x\0\0\0\0\0\0", 8);
	assert_line(NULL, &pack,
		    "MMAP2 misc=USER|MMAP_BUILD_ID pid=1 tid=1 addr=0x1000 len=0x2000 pgoff=0 "
		    "file={build_id=deadbeef} prot=0 flags=0 filename=x");
}

/* The flags of a branch are bit-fields: a big-endian compiler lays the first of them into the highest bits. */
static void branch_flags_in(struct pack *to, uint64_t flags)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	static const unsigned widths[] = {1, 1, 1, 1, 16, 4, 2, 4, 3, 31};
	uint64_t turned = 0;
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		turned = turned << widths[i] | (flags & ((UINT64_C(1) << widths[i]) - 1));
		flags >>= widths[i];
	}
	flags = turned;
#endif
	word(to, flags);
}

Test(text, samples, .timeout = 60)
{
	static const struct perfring_format plain = {.sample_type = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 16};
	static const struct perfring_format read = {.sample_type = 1 << 4, .read_format = 31};
	static const struct perfring_format lone = {.sample_type = 1 << 4, .read_format = 2};
	static const struct perfring_format chain = {.sample_type = 1 << 5 | 1 << 10};
	static const struct perfring_format branches = {.sample_type = 1 << 11,
							.branch_sample_type = 8 | 1 << 17 | 1 << 19};
	static const struct perfring_format branch_flags = {.sample_type = 1 << 11, .branch_sample_type = 8 | 1 << 17};
	static const struct perfring_format state = {.sample_type = 1 << 12 | 1 << 13 | 1 << 24 | 1 << 20,
						     .sample_regs_user = 0x101,
						     .arch = PERFRING_ARCH_X86};
	static const struct perfring_format words = {.sample_type = 1 << 15 | 1 << 17 | 1 << 21};

	start(&pack, 9, 2 | 1 << 14);
	word(&pack, 6);
	word(&pack, 0x401000);
	half(&pack, 100);
	half(&pack, 101);
	word(&pack, 5000000000);
	half(&pack, 3);
	half(&pack, 0);
	word(&pack, 1);
	assert_line(&plain, &pack,
		    "SAMPLE misc=USER|EXACT_IP identifier=6 ip=0x401000 tid=100/101 time=5000000000 cpu=3 period=1");
	assert_line(NULL, &pack, "SAMPLE misc=USER|EXACT_IP trailing=48");
	pack.size = 24;
	assert_line(&plain, &pack, "SAMPLE misc=USER|EXACT_IP fault=\"sample shorter than its fields\" at=24");

	start(&pack, 9, 1);
	word(&pack, 2);
	word(&pack, 10);
	word(&pack, 11);
	word(&pack, 12);
	word(&pack, 13);
	word(&pack, 0);
	word(&pack, 14);
	word(&pack, 15);
	word(&pack, 1);
	assert_line(&read, &pack,
		    "SAMPLE misc=KERNEL read=[enabled=10 running=11 {value=12 id=13 lost=0} {value=14 id=15 lost=1}]");
	start(&pack, 9, 0);
	word(&pack, 12);
	word(&pack, 11);
	assert_line(&lone, &pack, "SAMPLE read=[running=11 {value=12}]");

	start(&pack, 9, 0);
	word(&pack, 5);
	word(&pack, (uint64_t)-128);
	word(&pack, UINT64_C(0xffffffff81000010));
	word(&pack, (uint64_t)-640);
	word(&pack, 9);
	word(&pack, (uint64_t)-77);
	half(&pack, 4);
	half(&pack, 0);
	assert_line(&chain, &pack, "SAMPLE callchain=[KERNEL 0xffffffff81000010 USER_DEFERRED 0x9 -77] raw={size=4}");

	start(&pack, 9, 0);
	word(&pack, 2);
	word(&pack, UINT64_MAX);
	word(&pack, 0x10);
	word(&pack, 0x20);
	branch_flags_in(&pack, 2 | 5 << 4 | 1 << 20);
	word(&pack, 0x30);
	word(&pack, 0);
	branch_flags_in(&pack, 0);
	word(&pack, 0x7);
	word(&pack, 0);
	assert_line(&branches, &pack,
		    "SAMPLE brstack=[hw_idx=-1 0x10->0x20{predicted cycles=5 type=COND counters=0x7} "
		    "0x30->0{counters=0}]");

	/* every part of the flags: type 15 hands over to new_type, whose 0 means something then */
	start(&pack, 9, 0);
	word(&pack, 2);
	word(&pack, 0);
	word(&pack, 0x10);
	word(&pack, 0x20);
	branch_flags_in(&pack,
			UINT64_C(0xf) | 0xffff << 4 | 15 << 20 | 3 << 24 | UINT64_C(2) << 30 | UINT64_C(1) << 33);
	word(&pack, 0x30);
	word(&pack, 0x40);
	branch_flags_in(&pack, 2 | 6 << 20 | 1 << 24 | UINT64_C(1) << 30);
	assert_line(&branch_flags, &pack,
		    "SAMPLE brstack=[hw_idx=0 0x10->0x20{mispred predicted in_tx abort cycles=65535 type=EXTEND_ABI "
		    "spec=SPEC_CORRECT_PATH new_type=FAULT_ALGN priv=KERNEL reserved=0x1} "
		    "0x30->0x40{predicted type=RET spec=SPEC_WRONG_PATH priv=USER}]");

	start(&pack, 9, 0);
	word(&pack, 2);
	word(&pack, 0xa);
	word(&pack, 0xb);
	word(&pack, 8);
	word(&pack, 0);
	word(&pack, 8);
	word(&pack, UINT64_C(0x0003000200000001));
	word(&pack, 0);
	assert_line(&state, &pack,
		    "SAMPLE uregs={abi=64 AX=0xa IP=0xb} ustack={size=8 dyn_size=8} "
		    "weight_struct={var1=1 var2=2 var3=3} aux={size=0}");

	start(&pack, 9, 0);
	word(&pack, UINT64_C(0x1e05080021));
	word(&pack, 2 | 1 << 5 | UINT64_C(7) << 32);
	word(&pack, 1);
	assert_line(&words, &pack,
		    "SAMPLE data_src=0x1e05080021{op=NA lvl=NA snoop=NA lock=NA tlb=NA lvlnum=NA} "
		    "transaction=TRANSACTION|CONFLICT|0x700000000 cgroup=1");
	/* every part's highest bit or value */
	start(&pack, 9, 0);
	word(&pack, UINT64_C(1) << 4 | 1 << 18 | 1 << 23 | 1 << 25 | UINT64_C(1) << 32 | UINT64_C(9) << 33 |
			    UINT64_C(1) << 37 | UINT64_C(2) << 38 | UINT64_C(4) << 40 | UINT64_C(4) << 43 |
			    UINT64_C(31) << 46);
	word(&pack, 0);
	word(&pack, 1);
	assert_line(&words, &pack,
		    "SAMPLE data_src=0x7e4b302840010{op=EXEC lvl=UNC snoop=HITM lock=LOCKED tlb=OS lvlnum=CXL "
		    "remote=REMOTE snoopx=PEER blk=ADDR hops=HOPS_3 region=31} transaction=0 cgroup=1");
}

/* The flags as this machine's compiler lays out the kernel's struct, whatever its byte order. */
Test(text, branch_flags_of_the_header, .timeout = 30)
{
	static const struct perfring_format format = {.sample_type = 1 << 11, .branch_sample_type = 8};
	struct perf_branch_entry entry;

	memset(&entry, 0, sizeof(entry));
	entry.from = 0x10;
	entry.to = 0x20;
	entry.predicted = 1;
	entry.abort = 1;
	entry.cycles = 0x8001;
	entry.type = 6;
	start(&pack, 9, 0);
	word(&pack, 1);
	bytes(&pack, &entry, sizeof(entry));
	assert_line(&format, &pack, "SAMPLE brstack=[0x10->0x20{predicted abort cycles=32769 type=RET}]");
}

/* By their names, which are a machine's own; a bit without a name, or of a machine without names, by its number. */
Test(text, registers, .timeout = 30)
{
	static const char *const lines[] = {
		[PERFRING_ARCH_X86] = "SAMPLE uregs={abi=64 SP=0x1 R15=0x2 30=0x3 XMM15_HIGH=0x4} iregs={abi=NONE}",
		[PERFRING_ARCH_ARM64] = "SAMPLE uregs={abi=64 X7=0x1 X23=0x2 LR=0x3 63=0x4} iregs={abi=NONE}",
		[PERFRING_ARCH_RISCV] = "SAMPLE uregs={abi=64 T2=0x1 S7=0x2 T5=0x3 63=0x4} iregs={abi=NONE}",
		[PERFRING_ARCH_S390] = "SAMPLE uregs={abi=64 R7=0x1 FP7=0x2 FP14=0x3 63=0x4} iregs={abi=NONE}",
		[PERFRING_ARCH_POWERPC] = "SAMPLE uregs={abi=64 R7=0x1 R23=0x2 R30=0x3 63=0x4} iregs={abi=NONE}",
	};
	struct perfring_format format = {
		.sample_type = 1 << 12 | 1 << 18,
		.sample_regs_user = 1 << 7 | 1 << 23 | 1 << 30 | UINT64_C(1) << 63,
		.sample_regs_intr = 1,
	};
	uint16_t arch;

	start(&pack, 9, 0);
	word(&pack, 2);
	word(&pack, 1);
	word(&pack, 2);
	word(&pack, 3);
	word(&pack, 4);
	word(&pack, 0);
	for (arch = PERFRING_ARCH_X86; arch <= PERFRING_ARCH_POWERPC; arch++) {
		format.arch = arch;
		assert_line(&format, &pack, lines[arch]);
	}
	format.arch = PERFRING_ARCH_OTHER;
	assert_line(&format, &pack, "SAMPLE uregs={abi=64 7=0x1 23=0x2 30=0x3 63=0x4} iregs={abi=NONE}");
#ifdef __x86_64__
	format.arch = PERFRING_ARCH_NATIVE;
	assert_line(&format, &pack, lines[PERFRING_ARCH_X86]);
#endif
}

/* A double's bits as C's %a shows them, against this C library's. */
Test(text, doubles, .timeout = 60)
{
	static const uint64_t edges[] = {
		0,
		UINT64_C(1) << 63,
		1,
		UINT64_C(0x000fffffffffffff),
		UINT64_C(0x0010000000000000),
		UINT64_C(0x3ff0000000000000),
		UINT64_C(0xbff8000000000000),
		UINT64_C(0x7fefffffffffffff),
		UINT64_C(0x7ff0000000000000),
		UINT64_C(0xfff0000000000000),
		UINT64_C(0x7ff8000000000000),
	};
	char expected[128], line[128], value[64];
	double number;
	uint64_t bits;
	size_t i;

	for (i = 0; i < 20000; i++) {
		bits = i < sizeof(edges) / sizeof(edges[0]) ? edges[i] : next() << (next() % 60);
		memcpy(&number, &bits, sizeof(number));
		snprintf(value, sizeof(value), "%a", number);
		snprintf(expected, sizeof(expected), "EVENT_UPDATE type=SCALE id=0 scale=%s", value);
		start(&pack, 78, 0);
		word(&pack, 1);
		word(&pack, 0);
		word(&pack, bits);
		perfring_record_text(NULL, finish(&pack), line, sizeof(line));
		cr_assert_str_eq(line, expected);
	}
}

Test(text, digits, .timeout = 30)
{
	char buffer[32], *end = buffer + sizeof(buffer) - 1, expected[32];

	*end = 0;
	for (uint32_t i = 0; i < 20000; i++) {
		/* both sides of every power of two, then any */
		uint64_t number = i < 128 ? (UINT64_C(1) << i / 2) - i % 2 : next() >> next() % 64;

		snprintf(expected, sizeof(expected), "%" PRIu64, number);
		cr_assert_str_eq(perfring_digits_decimal(end, number), expected);
		snprintf(expected, sizeof(expected), "%" PRIx64, number);
		cr_assert_str_eq(perfring_digits_hex(end, number), expected);
		snprintf(expected, sizeof(expected), "%08" PRIu32, (uint32_t)number % 100000000);
		cr_assert_str_eq(perfring_digits_padded(end, (uint32_t)number, 8), expected);
		snprintf(expected, sizeof(expected), "%02" PRIu32, (uint32_t)number % 100);
		cr_assert_str_eq(perfring_digits_pair(end, (uint32_t)number % 100), expected);
	}
	for (uint64_t number = 1; number < UINT64_MAX / 10; number *= 10)
		for (uint64_t near = number - 1; near <= number + 1; near++) {
			snprintf(expected, sizeof(expected), "%" PRIu64, near);
			cr_assert_str_eq(perfring_digits_decimal(end, near), expected);
		}
}

Test(text, fields, .timeout = 30)
{
	static const struct perfring_format format = {.sample_type = 1 | 2 | 1 << 7};
	struct perfring_sample sample;
	char buffer[16];

	start(&pack, 9, 0);
	word(&pack, 0xabc);
	half(&pack, 5);
	half(&pack, 6);
	half(&pack, 1);
	half(&pack, 0);
	cr_assert_eq(perfring_sample_decode_any(&format, finish(&pack), &sample, NULL), 0);
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_IP, buffer, sizeof(buffer)), 5);
	cr_assert_str_eq(buffer, "0xabc");
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_TID, buffer, sizeof(buffer)), 3);
	cr_assert_str_eq(buffer, "5/6");
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_CPU, buffer, sizeof(buffer)), 1);
	cr_assert_str_eq(buffer, "1");
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_IP, buffer, 3), 5);
	cr_assert_str_eq(buffer, "0x");
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_IP, NULL, 0), 5);
	cr_assert_eq(perfring_field_text(&sample, PERFRING_SAMPLE_TIME, buffer, sizeof(buffer)), -EINVAL);
	cr_assert_eq(perfring_field_text(&sample, 3, buffer, sizeof(buffer)), -EINVAL, "two fields are not one");
	cr_assert_eq(perfring_field_text(&sample, 0, buffer, sizeof(buffer)), -EINVAL);
	cr_assert_eq(perfring_field_text(&sample, UINT64_C(1) << 63, buffer, sizeof(buffer)), -EINVAL);
}

Test(text, attrs, .timeout = 30)
{
	static union {
		struct perf_event_attr attr;
		unsigned char bytes[144];
		uint64_t words[18];
	} is;
	char buffer[512];
	int64_t length;
	size_t size;

	is.attr.size = 64;
	cr_assert_eq(perfring_attr_text(&is.attr, buffer, sizeof(buffer)), 30);
	cr_assert_str_eq(buffer, "type=HARDWARE size=64 config=0");
	is.attr.type = 1;
	is.attr.size = 144;
	is.attr.config = 2;
	is.attr.sample_period = 1000;
	is.attr.sample_type = 1 | 2 | 1 << 16 | UINT64_C(1) << 40;
	is.attr.read_format = 4 | 16;
	is.attr.disabled = 1;
	is.attr.inherit = 1;
	is.attr.precise_ip = 2;
	is.attr.wakeup_events = 1;
	is.attr.branch_sample_type = 1 | 8;
	is.words[17] = 0x44;
	length = perfring_attr_text(&is.attr, buffer, sizeof(buffer));
	cr_assert_str_eq(buffer, "type=SOFTWARE size=144 config=0x2 sample_period=1000 "
			       "sample_type=IDENTIFIER|IP|TID|0x10000000000 read_format=ID|LOST "
			       "flags=disabled|inherit|precise_ip=2 wakeup_events=1 branch_sample_type=USER|ANY "
			       "config4=0x44");
	cr_assert_eq(length, (int64_t)strlen(buffer));
	for (size = 0; size <= (size_t)length + 1; size++) {
		char *exact = malloc(size ? size : 1);

		cr_assert_not_null(exact);
		cr_assert_eq(perfring_attr_text(&is.attr, exact, size), length);
		if (size) {
			cr_assert_eq(strlen(exact), size - 1);
			cr_assert_eq(memcmp(exact, buffer, size - 1), 0);
		}
		free(exact);
	}
	is.attr.type = 77;
	is.attr.size = 64;
	perfring_attr_text(&is.attr, buffer, sizeof(buffer));
	cr_assert_eq(strncmp(buffer, "type=77 size=64 ", 16), 0);
	is.attr.size = 63;
	cr_assert_eq(perfring_attr_text(&is.attr, buffer, sizeof(buffer)), -EINVAL);
}

/* Any bytes with any format: an answer, nothing outside, one printable line, and what decodes also encodes. */
Test(text, any_bytes, .timeout = 120)
{
	static char buffer[4096];
	static unsigned char again[65536];
	unsigned long i, decoded_ones = 0, samples = 0;

	for (i = 0; i < 200000; i++) {
		struct perfring_format format = {0};
		size_t size = 8 + next() % 240, odd = next() % 8, at;
		struct perf_event_header header = {(uint32_t)(next() % 90), (uint16_t)next(), (uint16_t)size};
		unsigned char *exact = malloc(size + odd);
		const struct perf_event_header *record = (const void *)(exact + odd);
		struct perfring_record decoded;
		struct perfring_sample sample;
		struct perfring_fault fault;
		int64_t length;

		cr_assert_not_null(exact);
		/* Mostly small numbers, so that counts are often right. */
		for (at = 0; at < size; at++)
			exact[odd + at] = (unsigned char)(next() % 4 ? 0 : next() % 3 ? next() % 4 : next());
		if (next() % 3 == 0)
			header.type = 9;
		if (next() % 50 == 0)
			header.size = (uint16_t)(next() % 8);
		memcpy(exact + odd, &header, sizeof(header));
		format.sample_type = next() & next() & next();
		format.read_format = next() & 31;
		format.branch_sample_type = next() & ((1 << 20) - 1);
		format.sample_regs_user = next() & next() & next();
		format.sample_regs_intr = next() & next() & next();
		format.flags = next();
		if (next() & 1)
			perfring_format_plan(&format);
		length = perfring_record_text(next() % 8 ? &format : NULL, record, buffer, sizeof(buffer));
		cr_assert_gt(length, 0);
		for (at = 0; at < (size_t)length && at < sizeof(buffer) - 1; at++)
			cr_assert(buffer[at] >= ' ' && buffer[at] <= '~');
		cr_assert_eq(buffer[at], 0);
		if (header.type == 9) {
			int first = perfring_sample_decode(&format, record, &sample, &fault);

			samples += first == 0;
			cr_assert(first == 0 || first == -EBADMSG);
			if (first)
				cr_assert(fault.at >= 0 && fault.at <= (header.size < 8 ? 6 : header.size) &&
					  fault.what);
			perfring_format_time_of(&format, record);
			perfring_format_id_of(&format, record);
		} else if (!perfring_record_decode(&format, record, &decoded, &fault)) {
			length = perfring_record_encode(&format, &decoded, again, sizeof(again));
			cr_assert_gt(length, 0);
			if (header.type < 64)
				cr_assert_eq(length % 8, 0);
			decoded_ones++;
		} else {
			cr_assert(fault.at >= 0 && fault.at <= (header.size < 8 ? 6 : header.size) && fault.what);
		}
		free(exact);
	}
	cr_assert_gt(decoded_ones, 20000, "%lu", decoded_ones);
	cr_assert_gt(samples, 2000, "%lu", samples);
}
