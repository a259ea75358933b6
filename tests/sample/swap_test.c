/* swap_test.c - records, samples and attrs of the other byte order, against twins packed by hand in both. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <perfring/swap.h>
#include <perfring/text.h>

#include "pack.h"
#include "test.h"

#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

TestSuite(swap, .timeout = 60);

/* ---- twins: the same record in our order and in the other ---- */

struct twin {
	const char *name;
	struct perfring_format format;
	bool has_format;
	struct pack native;
	struct pack foreign;
};

static void backwards(struct pack *pack, const void *from, size_t size)
{
	while (size--)
		pack->bytes[pack->size++] = ((const unsigned char *)from)[size];
}

static void words(struct twin *twin, uint64_t value)
{
	bytes(&twin->native, &value, 8);
	backwards(&twin->foreign, &value, 8);
}

static void halves(struct twin *twin, uint32_t value)
{
	bytes(&twin->native, &value, 4);
	backwards(&twin->foreign, &value, 4);
}

static void quarters(struct twin *twin, uint16_t value)
{
	bytes(&twin->native, &value, 2);
	backwards(&twin->foreign, &value, 2);
}

static void same(struct twin *twin, const void *from, size_t size)
{
	bytes(&twin->native, from, size);
	bytes(&twin->foreign, from, size);
}

/* A word of bit-fields: its value on machines of either order. */
static void fields(struct twin *twin, uint64_t little, uint64_t big)
{
	bytes(&twin->native, LITTLE ? &little : &big, 8);
	backwards(&twin->foreign, LITTLE ? &big : &little, 8);
}

static void begin(struct twin *twin, const char *name, uint32_t type, uint16_t misc, uint64_t sample_type)
{
	twin->name = name;
	memset(&twin->format, 0, sizeof(twin->format));
	twin->format.sample_type = sample_type;
	twin->has_format = true;
	twin->native.size = 0;
	twin->foreign.size = 0;
	halves(twin, type);
	quarters(twin, misc);
	quarters(twin, 0);
}

static void set_size(struct pack *pack, bool foreign, uint16_t size)
{
	unsigned char *at = pack->bytes + 6;

	memcpy(at, &size, 2);
	if (foreign) {
		unsigned char first = at[0];

		at[0] = at[1];
		at[1] = first;
	}
}

typedef void visitor(const struct twin *twin);

static void end(struct twin *twin, visitor *visit)
{
	set_size(&twin->native, false, (uint16_t)twin->native.size);
	set_size(&twin->foreign, true, (uint16_t)twin->foreign.size);
	perfring_format_plan(&twin->format);
	visit(twin);
}

static struct twin t;

static void list(unsigned nr)
{
	words(&t, nr);
	for (unsigned i = 0; i < nr; i++)
		words(&t, UINT64_C(0x8090a0b0c0d0e000) + i);
}

static void each_sample(visitor *visit)
{
	for (unsigned bit = 0; bit < 25; bit++) {
		static const unsigned one_word[] = {16, 0, 2, 3, 6, 9, 8, 14, 15, 17, 19, 21, 22, 23};
		bool is = false;

		for (size_t i = 0; i < sizeof(one_word) / sizeof(one_word[0]); i++)
			is = is || one_word[i] == bit;
		if (!is)
			continue;
		begin(&t, "one word", 9, 0x4002, UINT64_C(1) << bit);
		words(&t, 0x1122334455667788);
		end(&t, visit);
	}
	begin(&t, "tid and cpu", 9, 2, PERFRING_SAMPLE_TID | PERFRING_SAMPLE_CPU);
	halves(&t, 0x01020304);
	halves(&t, 0x05060708);
	halves(&t, 3);
	halves(&t, 0xfffefdfc);
	end(&t, visit);
	/* one number: var1 is its low half in either order */
	begin(&t, "weight_struct", 9, 2, PERFRING_SAMPLE_WEIGHT_STRUCT);
	words(&t, UINT64_C(0x11112222) | UINT64_C(0x3344) << 32 | UINT64_C(0x5566) << 48);
	end(&t, visit);
	for (unsigned format = 0; format < 32; format++) {
		begin(&t, "read", 9, 2, PERFRING_SAMPLE_READ | PERFRING_SAMPLE_PERIOD);
		t.format.read_format = format;
		words(&t, 0x1234);
		if (format & PERFRING_FORMAT_GROUP)
			words(&t, 3);
		else
			words(&t, 0xabcdef);
		if (format & PERFRING_FORMAT_TOTAL_TIME_ENABLED)
			words(&t, 0x1000000);
		if (format & PERFRING_FORMAT_TOTAL_TIME_RUNNING)
			words(&t, 0x2000000);
		for (unsigned i = 0; i < (format & PERFRING_FORMAT_GROUP ? 3 : 1); i++) {
			if (format & PERFRING_FORMAT_GROUP)
				words(&t, 0x77000000 + i);
			if (format & PERFRING_FORMAT_ID)
				words(&t, 0x88000000 + i);
			if (format & PERFRING_FORMAT_LOST)
				words(&t, 0x99000000 + i);
		}
		end(&t, visit);
	}
	for (unsigned nr = 0; nr < 40; nr++) {
		begin(&t, "callchain", 9, 2, PERFRING_SAMPLE_CALLCHAIN | PERFRING_SAMPLE_DATA_SRC);
		list(nr);
		words(&t, 0x1e05080021);
		end(&t, visit);
	}
	begin(&t, "raw", 9, 2, PERFRING_SAMPLE_RAW | PERFRING_SAMPLE_TRANSACTION);
	halves(&t, 12);
	same(&t, "hello, world", 12);
	words(&t, 0x400000000a);
	end(&t, visit);
	begin(&t, "odd raw", 9, 2, PERFRING_SAMPLE_RAW | PERFRING_SAMPLE_REGS_INTR);
	t.format.sample_regs_intr = 0x1ff;
	halves(&t, 5);
	same(&t, "hello", 5);
	words(&t, 2);
	for (unsigned i = 0; i < 9; i++)
		words(&t, 0xff00000000 + i);
	end(&t, visit);
	for (unsigned shape = 0; shape < 8; shape++) {
		bool has_hw_idx = shape & 1, has_counters = shape & 2, is_empty = shape & 4;

		begin(&t, "branch stack", 9, 2, PERFRING_SAMPLE_BRANCH_STACK | PERFRING_SAMPLE_PHYS_ADDR);
		t.format.branch_sample_type = (has_hw_idx ? PERFRING_SAMPLE_BRANCH_HW_INDEX : 0) |
					      (has_counters ? PERFRING_SAMPLE_BRANCH_COUNTERS : 0);
		words(&t, is_empty ? 0 : 2);
		if (has_hw_idx && !is_empty) /* docs/abi.md 6: without branches it is left out */
			words(&t, 0x0102030405060708);
		for (unsigned i = 0; i < (is_empty ? 0 : 2); i++) {
			words(&t, 0x401000 + i);
			words(&t, 0x402000 + i);
			fields(&t, 1 << 1 | 0x1234 << 4 | UINT64_C(2) << 30,
			       UINT64_C(1) << 62 | UINT64_C(0x1234) << 44 | UINT64_C(2) << 31);
		}
		for (unsigned i = 0; has_counters && i < (is_empty ? 0 : 2); i++)
			words(&t, 0x0807060504030201 + i);
		words(&t, 0xdeadbeef);
		end(&t, visit);
	}
	begin(&t, "branch stack without the counters that it could have", 9, 2, PERFRING_SAMPLE_BRANCH_STACK);
	t.format.branch_sample_type = PERFRING_SAMPLE_BRANCH_COUNTERS | PERFRING_SAMPLE_BRANCH_HW_INDEX;
	words(&t, 1);
	words(&t, 0x55);
	words(&t, 0x401000);
	words(&t, 0x402000);
	fields(&t, 1, UINT64_C(1) << 63);
	end(&t, visit);
	for (uint64_t abi = 0; abi < 3; abi++) {
		begin(&t, "registers and stack", 9, 2, PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER);
		t.format.sample_regs_user = 0xff0fff;
		words(&t, abi);
		for (unsigned i = 0; abi && i < 20; i++)
			words(&t, 0x1000000000 + i);
		words(&t, abi ? 16 : 0);
		if (abi) {
			same(&t, "0123456789abcdef", 16);
			words(&t, 8);
		}
		end(&t, visit);
	}
	begin(&t, "aux", 9, 2, PERFRING_SAMPLE_CODE_PAGE_SIZE | PERFRING_SAMPLE_AUX);
	words(&t, 4096);
	words(&t, 24);
	same(&t, "some bytes of a trace   ", 24);
	end(&t, visit);
	begin(&t, "trailing words", 9, 2, PERFRING_SAMPLE_IP);
	words(&t, 0x401000);
	words(&t, 0x1122334455667788);
	words(&t, 0x99aabbccddeeff00);
	end(&t, visit);
	begin(&t, "trailing bytes", 9, 2, PERFRING_SAMPLE_IP);
	words(&t, 0x401000);
	words(&t, 0x1122334455667788);
	same(&t, "xyz", 3);
	end(&t, visit);
	begin(&t, "stack with a dyn_size too large", 9, 2, PERFRING_SAMPLE_STACK_USER | PERFRING_SAMPLE_CGROUP);
	words(&t, 8);
	same(&t, "01234567", 8);
	words(&t, 9);
	same(&t, "not swap", 8);
	end(&t, visit);
	begin(&t, "everything", 9, 0x4001, ((1 << 25) - 1) & ~PERFRING_SAMPLE_WEIGHT); /* what is packed below */
	t.format.read_format = PERFRING_FORMAT_GROUP | PERFRING_FORMAT_ID;
	t.format.sample_regs_user = 0x8001;
	t.format.sample_regs_intr = 0x101;
	words(&t, 1); /* identifier */
	words(&t, 2); /* ip */
	halves(&t, 3);
	halves(&t, 4);
	words(&t, 5); /* time */
	words(&t, 6); /* addr */
	words(&t, 7); /* id */
	words(&t, 8); /* stream_id */
	halves(&t, 9);
	halves(&t, 0);
	words(&t, 10); /* period */
	words(&t, 2);
	for (unsigned i = 0; i < 4; i++)
		words(&t, 11 + i);
	list(21);
	halves(&t, 4);
	same(&t, "raw!", 4);
	words(&t, 1);
	words(&t, 21);
	words(&t, 22);
	fields(&t, UINT64_C(1) << 2, UINT64_C(1) << 61);
	words(&t, 2); /* user registers */
	words(&t, 23);
	words(&t, 24);
	words(&t, 8);
	same(&t, "stackdat", 8);
	words(&t, 7);
	words(&t, 25); /* weight_struct */
	words(&t, 26);
	words(&t, 27);
	words(&t, 1);
	words(&t, 28);
	words(&t, 29);
	words(&t, 30); /* phys_addr */
	words(&t, 31);
	words(&t, 32);
	words(&t, 33);
	words(&t, 8);
	same(&t, "auxbytes", 8);
	end(&t, visit);
}

/* With a trailer of every field; `end_with_trailer` writes it. */
#define TRAILED \
	(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_ID | PERFRING_SAMPLE_STREAM_ID | \
	 PERFRING_SAMPLE_CPU | PERFRING_SAMPLE_IDENTIFIER | PERFRING_SAMPLE_IP)

static void end_with_trailer(visitor *visit)
{
	t.format.flags = UINT64_C(1) << 18;
	halves(&t, 0x0a0b0c0d);
	halves(&t, 0x1a1b1c1d);
	words(&t, 0x2a2b2c2d2e2f3031);
	words(&t, 41);
	words(&t, 42);
	halves(&t, 7);
	halves(&t, 0x4a4b4c4d);
	words(&t, 43);
	end(&t, visit);
}

static void halves_of(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		halves(&t, 0x01020304 + i * 0x100);
}

static void words_of(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		words(&t, UINT64_C(0x0102030405060708) + i);
}

/* nr bytes of text, NUL and more behind it */
static void text_of(const char *text, size_t nr)
{
	char buffer[512] = {0};

	memcpy(buffer, text, strlen(text));
	same(&t, buffer, nr);
}

static void each_kernel_record(visitor *visit)
{
	static const struct {
		const char *name;
		uint32_t type;
		unsigned halves, words;
	} plain[] = {
		{"LOST", 2, 0, 2},
		{"EXIT", 4, 4, 1},
		{"THROTTLE", 5, 0, 3},
		{"UNTHROTTLE", 6, 0, 3},
		{"FORK", 7, 4, 1},
		{"AUX", 11, 0, 3},
		{"ITRACE_START", 12, 2, 0},
		{"LOST_SAMPLES", 13, 0, 1},
		{"SWITCH", 14, 0, 0},
		{"SWITCH_CPU_WIDE", 15, 2, 0},
		{"AUX_OUTPUT_HW_ID", 21, 0, 1},
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		begin(&t, plain[i].name, plain[i].type, 0x2000, TRAILED);
		halves_of(plain[i].halves);
		words_of(plain[i].words);
		end_with_trailer(visit);
	}
	begin(&t, "MMAP", 1, 2, TRAILED);
	halves_of(2);
	words_of(3);
	text_of("/bin/true", 16);
	end_with_trailer(visit);
	begin(&t, "COMM", 3, 0x2000, TRAILED);
	halves_of(2);
	text_of("comm", 8);
	end_with_trailer(visit);
	for (unsigned format = 0; format < 32; format++) {
		begin(&t, "READ", 8, 0, TRAILED);
		t.format.read_format = format;
		halves_of(2);
		if (format & PERFRING_FORMAT_GROUP) {
			words(&t, 2);
			words_of((unsigned)__builtin_popcount(format & 3) +
				 2 * (1 + (unsigned)__builtin_popcount(format & 0x14)));
		} else {
			words_of(1 + (unsigned)__builtin_popcount(format));
		}
		end_with_trailer(visit);
	}
	begin(&t, "READ without a format", 8, 0, 0);
	t.has_format = false;
	halves_of(2);
	same(&t, "01234567", 8);
	end(&t, visit);
	begin(&t, "MMAP2 of a device", 10, 0x2002, TRAILED);
	halves_of(2);
	words_of(3);
	halves_of(2);
	words_of(2);
	halves_of(2);
	text_of("/bin/true", 16);
	end_with_trailer(visit);
	begin(&t, "MMAP2 of a build id", 10, 0x4002, TRAILED);
	halves_of(2);
	words_of(3);
	same(&t, "\24\0\0\0abcdefghijklmnopqrst", 24);
	halves_of(2);
	text_of("/bin/true", 16);
	end_with_trailer(visit);
	begin(&t, "NAMESPACES", 16, 0, TRAILED);
	halves_of(2);
	words(&t, 7);
	words_of(14);
	end_with_trailer(visit);
	begin(&t, "KSYMBOL", 17, 0, TRAILED);
	words_of(1);
	halves_of(1);
	quarters(&t, 0x0102);
	quarters(&t, 0x0304);
	text_of("bpf_prog", 16);
	end_with_trailer(visit);
	begin(&t, "BPF_EVENT", 18, 0, TRAILED);
	quarters(&t, 0x0102);
	quarters(&t, 0x0304);
	halves_of(1);
	same(&t, "tagbytes", 8);
	end_with_trailer(visit);
	begin(&t, "CGROUP", 19, 0, TRAILED);
	words_of(1);
	text_of("/a/path", 8);
	end_with_trailer(visit);
	begin(&t, "TEXT_POKE", 20, 1, TRAILED);
	words_of(1);
	quarters(&t, 5);
	quarters(&t, 3);
	same(&t, "olderNEW", 8);
	same(&t, "\0\0\0\0", 4);
	end_with_trailer(visit);
	begin(&t, "CALLCHAIN_DEFERRED", 22, 2, TRAILED);
	words_of(1);
	list(11);
	end_with_trailer(visit);
	begin(&t, "a kernel's type that is not known", 40, 2, TRAILED);
	same(&t, "these bytes stay", 16);
	end_with_trailer(visit);
	begin(&t, "trailing bytes of a known one", 2, 0, TRAILED);
	words_of(2);
	same(&t, "as it is", 8);
	end_with_trailer(visit);
}

static void attr_members(unsigned size)
{
	halves(&t, 1);
	halves(&t, size);
	words_of(4);
	fields(&t, 1 | 3 << 15 | 1 << 18, UINT64_C(1) << 63 | UINT64_C(3) << 47 | UINT64_C(1) << 45);
	halves_of(2);
	words_of(1);
	if (size < 144)
		return;
	words_of(3);
	halves_of(2);
	words_of(1);
	halves_of(1);
	quarters(&t, 127);
	quarters(&t, 0x0a0b);
	halves_of(1);
	if (LITTLE) { /* aux_start_paused and aux_resume */
		same(&t, "\5\0\0\0", 4);
		t.foreign.bytes[t.foreign.size - 4] = 0xa0;
	} else {
		same(&t, "\xa0\0\0\0", 4);
		t.foreign.bytes[t.foreign.size - 4] = 5;
	}
	words_of(3);
}

static void each_own_record(visitor *visit)
{
	begin(&t, "HEADER_ATTR", 64, 0, 0);
	attr_members(144);
	words_of(11);
	end(&t, visit);
	begin(&t, "HEADER_ATTR of the first size", 64, 0, 0);
	attr_members(0);
	words_of(2);
	end(&t, visit);
	begin(&t, "HEADER_ATTR of a size to come", 64, 0, 0);
	attr_members(144);
	memset(t.native.bytes + 12, 0, 4);
	memset(t.foreign.bytes + 12, 0, 4);
	t.native.bytes[LITTLE ? 12 : 15] = 152;
	t.foreign.bytes[LITTLE ? 15 : 12] = 152;
	same(&t, "newbytes", 8);
	words_of(1);
	end(&t, visit);
	begin(&t, "HEADER_EVENT_TYPE", 65, 0, 0);
	words_of(1);
	text_of("cycles", 64);
	end(&t, visit);
	begin(&t, "HEADER_TRACING_DATA", 66, 0, 0);
	halves_of(1);
	end(&t, visit);
	begin(&t, "HEADER_TRACING_DATA with its data", 66, 0, 0);
	halves_of(1);
	same(&t, "\027\010\104tracing", 10);
	end(&t, visit);
	begin(&t, "HEADER_BUILD_ID", 67, 0x8001, 0);
	halves_of(1);
	same(&t, "abcdefghijklmnopqrst\24\1\2\3", 24);
	text_of("[kernel.kallsyms]", 24);
	end(&t, visit);
	begin(&t, "FINISHED_ROUND", 68, 0, 0);
	end(&t, visit);
	begin(&t, "ID_INDEX", 69, 0, 0);
	words(&t, 2);
	words_of(8);
	end(&t, visit);
	begin(&t, "ID_INDEX with machines", 69, 0, 0);
	words(&t, 2);
	words_of(12);
	end(&t, visit);
	begin(&t, "AUXTRACE_INFO", 70, 0, 0);
	halves_of(2);
	words_of(5);
	end(&t, visit);
	begin(&t, "AUXTRACE", 71, 0, 0);
	words_of(3);
	halves_of(4);
	end(&t, visit);
	for (uint32_t format = 0; format < 3; format++) {
		begin(&t, "AUXTRACE_ERROR", 72, 0, 0);
		halves_of(5);
		halves(&t, format);
		words_of(format ? 2 : 1);
		text_of("lost", format < 2 ? 8 : 64);
		halves_of(format < 2 ? 0 : 2);
		end(&t, visit);
	}
	begin(&t, "THREAD_MAP", 73, 0, 0);
	words(&t, 2);
	words(&t, 4711);
	text_of("first", 16);
	words(&t, 4712);
	text_of("second", 16);
	end(&t, visit);
	begin(&t, "CPU_MAP of a list", 74, 0, 0);
	quarters(&t, 0);
	quarters(&t, 2);
	quarters(&t, 0x0102);
	quarters(&t, 0x0304);
	end(&t, visit);
	begin(&t, "CPU_MAP of u32", 74, 0, 0);
	quarters(&t, 1);
	quarters(&t, 2);
	quarters(&t, 4);
	halves_of(2);
	same(&t, "\0", 2);
	end(&t, visit);
	begin(&t, "CPU_MAP of u64", 74, 0, 0);
	quarters(&t, 1);
	quarters(&t, 2);
	quarters(&t, 8);
	same(&t, "\0\0\0", 4);
	words_of(2);
	same(&t, "\0\0\0\0\0", 6);
	end(&t, visit);
	begin(&t, "CPU_MAP of a range", 74, 0, 0);
	quarters(&t, 2);
	same(&t, "\1", 2);
	quarters(&t, 3);
	quarters(&t, 0x0304);
	end(&t, visit);
	begin(&t, "CPU_MAP of a type to come", 74, 0, 0);
	quarters(&t, 9);
	same(&t, "as is.", 6);
	end(&t, visit);
	begin(&t, "STAT_CONFIG", 75, 0, 0);
	words(&t, 2);
	words_of(4);
	end(&t, visit);
	begin(&t, "STAT", 76, 0, 0);
	words_of(1);
	halves_of(2);
	words_of(3);
	end(&t, visit);
	begin(&t, "STAT_ROUND", 77, 0, 0);
	words_of(2);
	end(&t, visit);
	for (uint64_t type = 0; type < 5; type++) {
		begin(&t, "EVENT_UPDATE", 78, 0, 0);
		words(&t, type);
		words(&t, 9);
		if (type == 1) {
			words(&t, 0x3ff8000000000000);
		} else if (type == 3) {
			quarters(&t, 0);
			quarters(&t, 1);
			quarters(&t, 0x0506);
			same(&t, "\0", 2);
		} else {
			text_of("unit", 8);
		}
		end(&t, visit);
	}
	begin(&t, "TIME_CONV", 79, 0, 0);
	words_of(5);
	same(&t, "\1\1\0\0\0\0\0\0", 8);
	end(&t, visit);
	begin(&t, "TIME_CONV of old", 79, 0, 0);
	words_of(3);
	end(&t, visit);
	begin(&t, "HEADER_FEATURE", 80, 0, 0);
	words(&t, 3);
	same(&t, "payload not 8", 13);
	end(&t, visit);
	begin(&t, "COMPRESSED", 81, 0, 0);
	same(&t, "compressed!", 11);
	end(&t, visit);
	begin(&t, "FINISHED_INIT", 82, 0, 0);
	end(&t, visit);
	begin(&t, "COMPRESSED2", 83, 0, 0);
	words(&t, 11);
	same(&t, "compressed!\0\0\0\0\0", 16);
	end(&t, visit);
	begin(&t, "BPF_METADATA", 84, 0, 0);
	text_of("prog", 512);
	words(&t, 1);
	text_of("key", 64);
	text_of("value", 256);
	end(&t, visit);
	begin(&t, "SCHEDSTAT_CPU", 85, 0, 0);
	words_of(1);
	halves_of(1);
	quarters(&t, 17);
	quarters(&t, 0);
	same(&t, "counters", 8);
	end(&t, visit);
	begin(&t, "SCHEDSTAT_DOMAIN", 86, 0, 0);
	words_of(1);
	halves_of(1);
	quarters(&t, 17);
	quarters(&t, 3);
	same(&t, "counters", 8);
	end(&t, visit);
	begin(&t, "perf's type that is not known", 99, 7, TRAILED);
	t.format.flags = UINT64_C(1) << 18; /* which has no trailer */
	same(&t, "these bytes stay too", 20);
	end(&t, visit);
}

static void each(visitor *visit)
{
	each_sample(visit);
	each_kernel_record(visit);
	each_own_record(visit);
}

/* ---- the input is read-only and has nothing behind it ---- */

static unsigned char *fence; /* the first byte that cannot be read */

static const void *fenced(const void *from, size_t size)
{
	static unsigned char *base, *writable; /* the same memory twice */
	const size_t most = 65536;

	if (!base) {
		int fd = memfd_create("fenced", MFD_CLOEXEC);

		cr_assert_eq(ftruncate(fd, (off_t)most), 0);
		base = mmap(NULL, most + (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert(base != MAP_FAILED);
		cr_assert_eq(mmap(base, most, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), base);
		writable = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		cr_assert(writable != MAP_FAILED);
		close(fd);
		fence = base + most;
	}
	memcpy(writable + most - size, from, size);
	return fence - size;
}

static const struct perfring_format *format_of(const struct twin *twin)
{
	return twin->has_format ? &twin->format : NULL;
}

/* What a foreign sample decodes to, against what its native twin does. */
static void expect_sample(const struct twin *twin, const void *native, const void *foreign, size_t size)
{
	struct perfring_fault fault = {-1, NULL}, native_fault = {-1, NULL};
	struct perfring_sample sample, native_sample;
	unsigned char *buffer = malloc(size), *encoded = malloc(size + 8), *native_encoded = malloc(size + 8);
	int error = perfring_sample_decode(&twin->format, native, &native_sample, &native_fault);
	char text[2048], native_text[2048];

	cr_assert(buffer && encoded && native_encoded);
	cr_assert_eq(perfring_sample_decode_foreign(&twin->format, foreign, &sample, buffer, size, &fault), error, "%s",
		     twin->name);
	if (error) {
		cr_assert_eq(error, -EBADMSG);
		cr_assert_eq(fault.at, native_fault.at, "%s: %ld %ld", twin->name, (long)fault.at,
			     (long)native_fault.at);
		cr_assert_str_eq(fault.what, native_fault.what);
	} else {
		cr_assert_eq(sample.present, native_sample.present);
		cr_assert_eq(sample.misc, native_sample.misc);
		cr_assert_eq(sample.trailing_size, native_sample.trailing_size);
		cr_assert_eq(memcmp(sample.trailing, native_sample.trailing, sample.trailing_size), 0);
		for (unsigned bit = 0; bit < 25; bit++) {
			uint64_t field = UINT64_C(1) << bit;

			if (!(sample.present & field))
				continue;
			cr_assert(perfring_field_text(&sample, field, text, sizeof(text)) >= 0);
			cr_assert(perfring_field_text(&native_sample, field, native_text, sizeof(native_text)) >= 0);
			cr_assert_str_eq(text, native_text, "%s: bit %u", twin->name, bit);
		}
		cr_assert_eq(perfring_sample_encode(&twin->format, &sample, encoded, size + 8),
			     perfring_sample_encode(&twin->format, &native_sample, native_encoded, size + 8));
		cr_assert_eq(memcmp(encoded + 8, native_encoded + 8, size - 8), 0, "%s", twin->name);
	}
	if (!error)
		cr_assert_eq(perfring_sample_decode_foreign(&twin->format, foreign, &sample, buffer, size - 1, NULL),
			     -ENOSPC);
	free(buffer);
	free(encoded);
	free(native_encoded);
}

static void expect_equal(const struct twin *twin, const unsigned char *is, const struct pack *should, const char *what)
{
	for (size_t at = 0; at < should->size; at++)
		cr_assert_eq(is[at], should->bytes[at], "%s, %s: byte %zu is 0x%02x, not 0x%02x", twin->name, what, at,
			     is[at], should->bytes[at]);
}

static void expect_twin(const struct twin *twin)
{
	const struct perfring_format *format = format_of(twin);
	struct perfring_fault fault = {-1, NULL};
	size_t size = twin->native.size;
	unsigned char *buffer = malloc(size);
	bool is_damaged = strstr(twin->name, "too large");
	int64_t result = is_damaged ? -EBADMSG : (int64_t)size;
	const void *record = fenced(twin->foreign.bytes, size);

	cr_assert_not_null(buffer);
	cr_assert_eq(perfring_record_to_native(format, record, buffer, size, &fault), result, "%s: %s at %ld", twin->name,
		     fault.what, (long)fault.at);
	expect_equal(twin, buffer, &twin->native, "to native");
	cr_assert_eq(memcmp(record, twin->foreign.bytes, size), 0);
	cr_assert_eq(perfring_record_to_native(format, record, buffer, size - 1, &fault), -ENOSPC);
	if (twin->foreign.bytes[LITTLE ? 3 : 0] == 9)
		expect_sample(twin, twin->native.bytes, record, size);
	record = fenced(twin->native.bytes, size);
	cr_assert_eq(perfring_record_to_foreign(format, record, buffer, size, &fault), result, "%s", twin->name);
	expect_equal(twin, buffer, &twin->foreign, "to foreign");
	cr_assert_eq(perfring_record_to_foreign(format, record, buffer, size - 1, &fault), -ENOSPC);
	free(buffer);
}

Test(swap, fields)
{
	each_sample(expect_twin);
}

Test(swap, kernel_records)
{
	each_kernel_record(expect_twin);
}

Test(swap, own_records)
{
	each_own_record(expect_twin);
}

/* A type of the tables that has no twin here would go untested. */
static uint32_t types_seen[128];

static void see(const struct twin *twin)
{
	uint32_t type;

	memcpy(&type, twin->native.bytes, 4);
	types_seen[type]++;
}

Test(swap, every_type_has_a_twin)
{
	each(see);
	for (uint32_t type = 0; type < 128; type++)
		cr_assert(!perfring_record_name(type) || types_seen[type], "%s", perfring_record_name(type));
}

/* ---- damage ---- */

static unsigned long damaged;

/* Any bytes: both ways give the input back, and fail where decoding fails. */
static void expect_total(const struct twin *twin, const struct pack *pack, size_t size)
{
	const struct perfring_format *format = format_of(twin);
	struct perfring_fault fault = {-1, NULL}, back = {-1, NULL}, decode = {-1, NULL};
	unsigned char *native = malloc(size), *foreign = malloc(size);
	const void *record = fenced(pack->bytes, size);
	struct perfring_record decoded;
	struct perfring_sample sample;
	uint32_t type;
	int64_t result;
	int error;

	cr_assert(native && foreign);
	result = perfring_record_to_native(format, record, native, size, &fault);
	cr_assert(result == (int64_t)size || result == -EBADMSG);
	cr_assert_eq(perfring_record_to_foreign(format, (void *)native, foreign, size, &back), result);
	cr_assert_eq(memcmp(foreign, pack->bytes, size), 0, "%s, size %zu", twin->name, size);
	cr_assert_eq(memcmp(record, pack->bytes, size), 0);
	memcpy(&type, native, 4);
	if (type != 9)
		error = perfring_record_decode(format, (void *)native, &decoded, &decode);
	else if (format)
		error = perfring_sample_decode(format, (void *)native, &sample, &decode);
	else
		error = 0;
	cr_assert_eq(error, result < 0 ? result : 0, "%s, size %zu: %s %s", twin->name, size, fault.what, decode.what);
	if (error) {
		damaged++;
		cr_assert(fault.what && fault.at >= 0 && fault.at <= (int64_t)size);
		cr_assert_eq(fault.at, back.at);
		cr_assert_str_eq(fault.what, back.what);
		cr_assert(type == 9 || fault.at == decode.at, "%s, size %zu: %s at %ld, %s at %ld", twin->name, size,
			  fault.what, (long)fault.at, decode.what, (long)decode.at);
	}
	if (type == 9 && format)
		expect_sample(twin, native, record, size);
	free(native);
	free(foreign);
}

static void expect_prefixes(const struct twin *twin)
{
	static struct pack pack;

	for (size_t size = 8; size < twin->foreign.size; size++) {
		pack = twin->foreign;
		set_size(&pack, true, (uint16_t)size);
		expect_total(twin, &pack, size);
	}
}

Test(swap, every_prefix)
{
	each(expect_prefixes);
	cr_assert_gt(damaged, 1000);
}

static void expect_changes(const struct twin *twin)
{
	static const unsigned char changes[] = {0x01, 0x08, 0x80, 0xff};
	static struct pack pack;

	pack = twin->foreign;
	for (size_t at = 0; at < pack.size; at++) {
		if (at == 6 || at == 7)
			continue;
		for (size_t i = 0; i < sizeof(changes); i++) {
			pack.bytes[at] ^= changes[i];
			expect_total(twin, &pack, pack.size);
			pack.bytes[at] ^= changes[i];
		}
	}
}

Test(swap, every_byte_changed)
{
	each(expect_changes);
	cr_assert_gt(damaged, 1000);
}

Test(swap, shorter_than_its_header)
{
	static const unsigned char big[] = {0, 0, 0, 9, 0, 2, 0, 7}, little[] = {9, 0, 0, 0, 2, 0, 7, 0};
	struct perf_event_header header;
	struct perfring_sample sample;
	struct perfring_format format = {.sample_type = PERFRING_SAMPLE_IP};
	struct perfring_fault fault = {-1, NULL};
	unsigned char buffer[9] = {[8] = 0xee};
	const void *foreign;

	foreign = fenced(LITTLE ? big : little, 8);
	header = perfring_header_to_native(foreign);
	cr_assert_eq(header.type, 9);
	cr_assert_eq(header.misc, 2);
	cr_assert_eq(header.size, 7);
	perfring_format_plan(&format);
	cr_assert_eq(perfring_record_to_native(&format, foreign, buffer, 8, &fault), -EBADMSG);
	cr_assert_eq(fault.at, 6);
	cr_assert_eq(memcmp(buffer, LITTLE ? little : big, 8), 0);
	cr_assert_eq(buffer[8], 0xee);
	cr_assert_eq(perfring_record_to_native(&format, foreign, buffer, 7, &fault), -ENOSPC);
	cr_assert_eq(perfring_sample_decode_foreign(&format, foreign, &sample, buffer, 8, &fault), -EBADMSG);
	cr_assert_eq(perfring_sample_decode_foreign(&format, foreign, &sample, buffer, 8, NULL), -EBADMSG);
}

/* A SAMPLE of no event: words. */
Test(swap, sample_without_format)
{
	begin(&t, "sample without a format", 9, 2, 0);
	t.has_format = false;
	words_of(3);
	same(&t, "xy", 2);
	set_size(&t.native, false, (uint16_t)t.native.size);
	set_size(&t.foreign, true, (uint16_t)t.foreign.size);
	t.foreign.bytes[LITTLE ? 3 : 0] = 9;
	unsigned char buffer[34];
	cr_assert_eq(perfring_record_to_native(NULL, fenced(t.foreign.bytes, 34), buffer, 34, NULL), 34);
	expect_equal(&t, buffer, &t.native, "to native");
	cr_assert_eq(perfring_record_to_foreign(NULL, fenced(t.native.bytes, 34), buffer, 34, NULL), 34);
	expect_equal(&t, buffer, &t.foreign, "to foreign");
}

/* Without a plan too. */
Test(swap, format_without_plan)
{
	struct perfring_format format = {.sample_type = PERFRING_SAMPLE_IP | PERFRING_SAMPLE_REGS_USER,
					 .sample_regs_user = 0x0f};
	struct perfring_sample sample;
	struct perfring_fault fault;
	uint64_t buffer[16];

	begin(&t, "registers", 9, 2, 0);
	words(&t, 0x401000);
	words(&t, 2);
	words_of(4);
	set_size(&t.foreign, true, (uint16_t)t.foreign.size);
	cr_assert_eq(perfring_sample_decode_foreign(&format, fenced(t.foreign.bytes, t.foreign.size), &sample, buffer,
						    sizeof(buffer), &fault),
		     0);
	cr_assert_eq(sample.ip, 0x401000);
	cr_assert_eq(sample.regs_user.nr, 4);
	cr_assert_eq(sample.regs_user.values[3], UINT64_C(0x010203040506070b));
	set_size(&t.foreign, true, 16);
	cr_assert_eq(perfring_sample_decode_foreign(&format, fenced(t.foreign.bytes, 16), &sample, buffer, sizeof(buffer),
						    &fault),
		     -EBADMSG);
	cr_assert_eq(fault.at, 16);
}

/* Without branches the kernel leaves hw_idx out (docs/abi.md 6).  Read with one, it would be the size of the AUX data, and a
 * size of 0 and a trailing word would follow: what a try swaps must not stay. */
Test(swap, branch_shape_that_uses_up_the_record)
{
	begin(&t, "no branches, no hw_idx", 9, 2, PERFRING_SAMPLE_BRANCH_STACK | PERFRING_SAMPLE_AUX);
	t.format.branch_sample_type = PERFRING_SAMPLE_BRANCH_HW_INDEX;
	words(&t, 0);
	words(&t, 16);
	same(&t, "\0\0\0\0\0\0\0\0tracedat", 16);
	end(&t, expect_twin);
}

/* ---- bit-fields ---- */

/* By hand from docs/abi.md 6: the bit numbers of either order. */
static const struct {
	const char *name;
	unsigned little, big, width;
} branch_flags[] = {
	{"mispred", 0, 63, 1}, {"predicted", 1, 62, 1}, {"in_tx", 2, 61, 1}, {"abort", 3, 60, 1},
	{"cycles", 4, 44, 16}, {"type", 20, 40, 4},     {"spec", 24, 38, 2}, {"new_type", 26, 34, 4},
	{"priv", 30, 31, 3},   {"the rest", 33, 0, 31},
};

Test(swap, branch_flags)
{
	for (size_t i = 0; i < sizeof(branch_flags) / sizeof(branch_flags[0]); i++) {
		for (unsigned bit = 0; bit < branch_flags[i].width; bit++) {
			begin(&t, branch_flags[i].name, 9, 2, PERFRING_SAMPLE_BRANCH_STACK);
			words(&t, 1);
			words(&t, 0x401000);
			words(&t, 0x402000);
			fields(&t, UINT64_C(1) << (branch_flags[i].little + bit),
			       UINT64_C(1) << (branch_flags[i].big + bit));
			end(&t, expect_twin);
		}
	}
}

/* ---- attrs ---- */

static void expect_flags(uint64_t little, uint64_t big)
{
	unsigned char buffer[64];

	begin(&t, "flags", 1, 0, 0);
	t.native.size = t.foreign.size = 0;
	halves_of(1);
	halves(&t, 64);
	words_of(4);
	fields(&t, little, big);
	halves_of(2);
	words_of(1);
	cr_assert_eq(t.native.size, 64);
	cr_assert_eq(perfring_attr_to_native(fenced(t.foreign.bytes, 64), buffer, 64), 64);
	expect_equal(&t, buffer, &t.native, "to native");
	cr_assert_eq(perfring_attr_to_foreign(fenced(t.native.bytes, 64), buffer, 64), 64);
	expect_equal(&t, buffer, &t.foreign, "to foreign");
}

Test(swap, attr_flags)
{
	for (unsigned bit = 0; bit < 64; bit++)
		if (bit != 15 && bit != 16)
			expect_flags(UINT64_C(1) << bit, UINT64_C(1) << (63 - bit));
	/* precise_ip: two bits with a value */
	for (uint64_t precise = 1; precise < 4; precise++)
		expect_flags(precise << 15, precise << 47);
	expect_flags(1 | UINT64_C(2) << 15 | UINT64_C(1) << 63, UINT64_C(1) << 63 | UINT64_C(2) << 47 | 1);
}

/* What it says is the same afterwards: the compiler's own bit-fields tell. */
Test(swap, attr_members)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)}, foreign, native;

	attr.config = 0x0102030405060708;
	attr.precise_ip = 1;
	attr.sample_id_all = 1;
	attr.wakeup_events = 77;
	attr.sample_max_stack = 0x0102;
	cr_assert_eq(perfring_attr_to_foreign(&attr, &foreign, sizeof(foreign)), sizeof(attr));
	cr_assert_eq(foreign.type, 0x01000000);
	cr_assert_eq(foreign.config, UINT64_C(0x0807060504030201));
	cr_assert_eq(foreign.sample_max_stack, 0x0201);
	cr_assert_eq(perfring_attr_to_native(&foreign, &native, sizeof(native)), sizeof(attr));
	cr_assert_eq(memcmp(&attr, &native, sizeof(attr)), 0);
	cr_assert_eq(perfring_attr_to_foreign(&attr, &foreign, sizeof(foreign) - 1), -ENOSPC);
}

Test(swap, attr_of_any_size)
{
	static const uint32_t sizes[] = {0,   64,  65,  68,  72,  80,  96,  104, 110,
					 112, 117, 119, 120, 128, 136, 144, 145, 4096};
	static unsigned char attr[4096], foreign[4097], native[4097];

	for (size_t i = 0; i < sizeof(attr); i++)
		attr[i] = (unsigned char)(i * 7 + 3);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int64_t own = sizes[i] ? sizes[i] : 64;

		memcpy(attr + 4, &sizes[i], 4);
		foreign[own] = native[own] = 0xee;
		cr_assert_eq(perfring_attr_to_foreign(fenced(attr, (size_t)own), foreign, (size_t)own), own);
		cr_assert_eq(memcmp(foreign + 144, attr + 144, own > 144 ? (size_t)own - 144 : 0), 0);
		cr_assert_eq(perfring_attr_to_native(fenced(foreign, (size_t)own), native, (size_t)own), own);
		cr_assert_eq(memcmp(native, attr, (size_t)own), 0, "size %u", sizes[i]);
		cr_assert(foreign[own] == 0xee && native[own] == 0xee);
		cr_assert_eq(perfring_attr_to_native(fenced(foreign, (size_t)own), native, (size_t)own - 1), -ENOSPC);
		/* half a member has no value: as it is */
		if (sizes[i] == 68)
			cr_assert_eq(memcmp(foreign + 64, attr + 64, 4), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		static const uint32_t bad[] = {1, 63, 4097, UINT32_MAX};

		memcpy(attr + 4, &bad[i], 4);
		cr_assert_eq(perfring_attr_to_foreign(fenced(attr, 64), foreign, sizeof(foreign)), -EINVAL);
		foreign[4] = attr[7];
		foreign[5] = attr[6];
		foreign[6] = attr[5];
		foreign[7] = attr[4];
		cr_assert_eq(perfring_attr_to_native(fenced(foreign, 64), native, sizeof(native)), -EINVAL);
	}
}
