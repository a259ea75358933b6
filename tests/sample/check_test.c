/* check_test.c - well-formed or not, where and why: each rule kept and broken by hand, and the records of this kernel. */
#include "test.h"
#include "pack.h"

#include <perfring/check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	IP = 1 << 0,
	TID = 1 << 1,
	TIME = 1 << 2,
	READ = 1 << 4,
	CALLCHAIN = 1 << 5,
	CPU = 1 << 7,
	RAW = 1 << 10,
	BRANCH_STACK = 1 << 11,
	REGS_USER = 1 << 12,
	STACK_USER = 1 << 13,
	WEIGHT = 1 << 14,
	DATA_SRC = 1 << 15,
	IDENTIFIER = 1 << 16,
	TRANSACTION = 1 << 17,
	REGS_INTR = 1 << 18,
	AUX = 1 << 20,
	CGROUP = 1 << 21,
};

#define NO_DATA_SRC UINT64_C(0x1e05080021) /* docs/abi.md 15 */

/* TIME and IDENTIFIER behind each record. */
static const struct perfring_format with_trailer = {
	.sample_type = TIME | IDENTIFIER,
	.flags = UINT64_C(1) << 18,
};

static void trailer(struct pack *pack, uint64_t time)
{
	word(pack, time);
	word(pack, 77);
}

/* In a copy of just its size, so that sanitizers see every read too many. */
static int check(const struct perfring_format *format, struct pack *pack, struct perfring_fault *fault)
{
	struct perf_event_header *copy = malloc(pack->size);
	struct perfring_finding finding;
	uint16_t size = (uint16_t)pack->size;
	int error;

	memcpy(pack->bytes + 6, &size, sizeof(size));
	memcpy(copy, pack->bytes, pack->size);
	error = perfring_record_check(format, copy, pack->size, fault);
	cr_assert_eq(perfring_record_check(format, copy, pack->size, NULL), error);
	if (error) {
		cr_assert_eq(perfring_record_examine(format, copy, pack->size, &finding), error);
		cr_assert_eq(finding.severity, PERFRING_DAMAGE);
		cr_assert_eq(finding.at, fault->at);
		cr_assert_eq(finding.what, fault->what);
	} else {
		cr_assert_geq(perfring_record_examine(format, copy, pack->size, &finding), 0);
		cr_assert_neq(finding.severity, PERFRING_DAMAGE);
	}
	free(copy);
	return error;
}

static void passes(const struct perfring_format *format, struct pack *pack, const char *name)
{
	struct perfring_fault fault = {-1, NULL};
	int error = check(format, pack, &fault);

	cr_assert_eq(error, 0, "%s: %s at %lld", name, fault.what ? fault.what : "?", (long long)fault.at);
}

static void faulty(const struct perfring_format *format, struct pack *pack, int64_t at, const char *what)
{
	struct perfring_fault fault = {-1, "passed"};
	int error = check(format, pack, &fault);

	cr_assert_eq(error, -EBADMSG, "not faulty: %s", what);
	cr_assert_eq(fault.at, at, "%s: at %lld, not %lld", fault.what, (long long)fault.at, (long long)at);
	cr_assert_not_null(strstr(fault.what, what), "'%s' has no '%s'", fault.what, what);
}

/* Well-formed, with a remark. */
static void remarked(const struct perfring_format *format, struct pack *pack, int64_t at, const char *what)
{
	struct perfring_finding finding;

	passes(format, pack, what);
	cr_assert_eq(perfring_record_examine(format, (void *)pack->bytes, pack->size, &finding), 1, "no remark: %s",
		     what);
	cr_assert_eq(finding.severity, PERFRING_REMARK);
	cr_assert_eq(finding.at, at, "%s: at %lld, not %lld", finding.what, (long long)finding.at, (long long)at);
	cr_assert_not_null(strstr(finding.what, what), "'%s' has no '%s'", finding.what, what);
}

static void zeros(struct pack *pack, size_t size)
{
	memset(pack->bytes + pack->size, 0, size);
	pack->size += size;
}

/* With its NUL and padding. */
static void string(struct pack *pack, const char *text)
{
	size_t size = (strlen(text) + 8) / 8 * 8;

	zeros(pack, size);
	memcpy(pack->bytes + pack->size - size, text, strlen(text));
}

static void words(struct pack *pack, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		word(pack, (uint64_t)i + 1);
}

/* A well-formed record of each kind but SAMPLE, as `with_trailer` has it.  False: there is no such kind. */
static bool valid(struct pack *pack, uint32_t type)
{
	start(pack, type, 0);
	switch (type) {
	case PERFRING_RECORD_MMAP:
		words(pack, 4);
		string(pack, "/bin/true");
		break;
	case PERFRING_RECORD_LOST:
		words(pack, 2);
		break;
	case PERFRING_RECORD_COMM:
		words(pack, 1);
		string(pack, "a name of 15 by");
		break;
	case PERFRING_RECORD_EXIT:
	case PERFRING_RECORD_THROTTLE:
	case PERFRING_RECORD_UNTHROTTLE:
	case PERFRING_RECORD_FORK:
	case PERFRING_RECORD_AUX:
		words(pack, 3);
		break;
	case PERFRING_RECORD_READ:
		words(pack, 2);
		break;
	case PERFRING_RECORD_MMAP2:
		words(pack, 8);
		string(pack, "//anon");
		break;
	case PERFRING_RECORD_ITRACE_START:
	case PERFRING_RECORD_LOST_SAMPLES:
	case PERFRING_RECORD_SWITCH_CPU_WIDE:
	case PERFRING_RECORD_AUX_OUTPUT_HW_ID:
		words(pack, 1);
		break;
	case PERFRING_RECORD_SWITCH:
		break;
	case PERFRING_RECORD_NAMESPACES:
		word(pack, 5);
		word(pack, 7);
		words(pack, 14);
		break;
	case PERFRING_RECORD_KSYMBOL:
		words(pack, 2);
		string(pack, "bpf_prog_0123");
		break;
	case PERFRING_RECORD_BPF_EVENT:
		words(pack, 2);
		break;
	case PERFRING_RECORD_CGROUP:
		words(pack, 1);
		string(pack, "/");
		break;
	case PERFRING_RECORD_TEXT_POKE:
		word(pack, 0xffffffff81000000);
		quarter(pack, 5);
		quarter(pack, 5);
		bytes(pack, "\x0f\x1f\x44\x00\x00\xe9\x01\x02\x03\x04", 10);
		zeros(pack, 2);
		break;
	case PERFRING_RECORD_CALLCHAIN_DEFERRED:
		word(pack, 99);
		word(pack, 2);
		word(pack, (uint64_t)-512);
		word(pack, (uint64_t)-1); /* a process may have any word in its stack */
		break;
	case PERFRING_RECORD_HEADER_ATTR:
		half(pack, 0);
		half(pack, 64);
		zeros(pack, 56);
		words(pack, 2);
		break;
	case PERFRING_RECORD_HEADER_EVENT_TYPE:
		words(pack, 1);
		string(pack, "cycles");
		zeros(pack, 56);
		break;
	case PERFRING_RECORD_HEADER_TRACING_DATA:
		half(pack, 0);
		break;
	case PERFRING_RECORD_HEADER_BUILD_ID:
		quarter_at(pack, 4, 0x8000);
		half(pack, 0xffffffff);
		bytes(pack, "01234567890123456789\x14\0\0\0", 24);
		bytes(pack, "[kernel.kallsyms]\0\0\0", 20);
		words(pack, 1); /* perf from 6.12 may have a trailer here */
		break;
	case PERFRING_RECORD_FINISHED_ROUND:
	case PERFRING_RECORD_FINISHED_INIT:
		break;
	case PERFRING_RECORD_ID_INDEX:
		word(pack, 2);
		words(pack, 12);
		break;
	case PERFRING_RECORD_AUXTRACE_INFO:
		words(pack, 4);
		break;
	case PERFRING_RECORD_AUXTRACE:
		words(pack, 5);
		break;
	case PERFRING_RECORD_AUXTRACE_ERROR:
		half(pack, 1);
		zeros(pack, 16);
		half(pack, 1);
		words(pack, 2);
		string(pack, "lost");
		break;
	case PERFRING_RECORD_THREAD_MAP:
		word(pack, 1);
		word(pack, 5);
		bytes(pack, "kworker/u8:1-eve", 16); /* cut off without a NUL */
		break;
	case PERFRING_RECORD_CPU_MAP:
		quarter(pack, 1);
		quarter(pack, 1);
		quarter(pack, 8);
		zeros(pack, 4);
		word(pack, 3);
		zeros(pack, 6);
		break;
	case PERFRING_RECORD_STAT_CONFIG:
		word(pack, 1);
		words(pack, 2);
		break;
	case PERFRING_RECORD_STAT:
		words(pack, 5);
		break;
	case PERFRING_RECORD_STAT_ROUND:
		words(pack, 2);
		break;
	case PERFRING_RECORD_EVENT_UPDATE:
		word(pack, 2);
		word(pack, 77);
		string(pack, "a name");
		break;
	case PERFRING_RECORD_TIME_CONV:
		words(pack, 5);
		quarter(pack, 0x0101);
		zeros(pack, 6);
		break;
	case PERFRING_RECORD_HEADER_FEATURE:
	case PERFRING_RECORD_COMPRESSED:
		words(pack, 2);
		bytes(pack, "odd", 3); /* docs/abi.md 14.36 */
		break;
	case PERFRING_RECORD_COMPRESSED2:
		word(pack, 3);
		bytes(pack, "odd\0\0\0\0\0", 8);
		break;
	case PERFRING_RECORD_BPF_METADATA:
		string(pack, "prog");
		zeros(pack, 504);
		word(pack, 1);
		zeros(pack, 320);
		break;
	case PERFRING_RECORD_SCHEDSTAT_CPU:
	case PERFRING_RECORD_SCHEDSTAT_DOMAIN:
		words(pack, 6);
		break;
	default:
		return false;
	}
	if (type < 64)
		trailer(pack, 1000);
	return true;
}

Test(check, every_kind_passes, .timeout = 30)
{
	static struct pack pack;
	uint32_t type, kinds = 0;
	char name[24];

	for (type = 0; type < 200; type++) {
		snprintf(name, sizeof(name), "type %u", type);
		if (!valid(&pack, type)) {
			cr_assert(type == PERFRING_RECORD_SAMPLE || !perfring_record_name(type), "%s", name);
			continue;
		}
		passes(&with_trailer, &pack, name);
		/* Without a format nobody knows where the trailer begins. */
		passes(NULL, &pack, name);
		kinds++;
	}
	cr_assert_eq(kinds, 21 + 23);
}

/* Every shorter one ends, and is told of at a place that is there. */
Test(check, every_prefix, .timeout = 30)
{
	static struct pack pack;
	struct perfring_fault fault;
	uint32_t type;
	size_t size, whole;
	void *copy;
	int error;

	for (type = 0; type < 200; type++) {
		if (!valid(&pack, type))
			continue;
		whole = pack.size;
		cr_assert_eq(check(&with_trailer, &pack, &fault), 0);
		for (size = 0; size < whole; size++) {
			copy = malloc(size);
			memcpy(copy, pack.bytes, size);
			/* less is there than the header says */
			fault.what = NULL;
			cr_assert_eq(perfring_record_check(&with_trailer, copy, size, &fault), -EBADMSG);
			cr_assert_eq(fault.at, size < 8 ? (int64_t)size : 6, "type %u: %zu of %zu bytes", type, size,
				     whole);
			cr_assert_not_null(
				strstr(fault.what, size < 8 ? "ends inside its header" : "larger than what"));
			if (size >= 8) {
				uint16_t half_size = (uint16_t)size;

				memcpy((char *)copy + 6, &half_size, 2);
				fault.at = -1;
				fault.what = NULL;
				error = perfring_record_check(&with_trailer, copy, size, &fault);
				cr_assert(error == 0 || error == -EBADMSG);
				cr_assert(!error || (fault.what && fault.at >= 0 && fault.at <= (int64_t)size));
				/* what no kernel writes */
				if (type < 64 && size % 8)
					cr_assert_eq(fault.at, 6, "type %u: %zu of %zu bytes", type, size, whole);
				if (type < 64 && size < 24)
					cr_assert_eq(error, -EBADMSG, "type %u: %zu bytes are no trailer", type, size);
			}
			free(copy);
		}
	}
}

Test(check, header, .timeout = 30)
{
	static const uint32_t moded[] = {1, 9, 10, 20, 22, 67};
	static struct pack pack;
	struct perfring_fault fault;
	uint16_t size, misc;
	uint32_t i;

	/* size: too small, too large, no multiple of 8 */
	for (size = 0; size < 8; size++) {
		valid(&pack, PERFRING_RECORD_LOST);
		memcpy(pack.bytes + 6, &size, 2);
		cr_assert_eq(perfring_record_check(NULL, (const void *)pack.bytes, pack.size, &fault), -EBADMSG);
		cr_assert_eq(fault.at, 6);
		cr_assert_not_null(strstr(fault.what, "smaller than the header"), "%s", fault.what);
	}
	valid(&pack, PERFRING_RECORD_LOST);
	size = (uint16_t)pack.size;
	memcpy(pack.bytes + 6, &size, 2);
	cr_assert_eq(perfring_record_check(&with_trailer, (const void *)pack.bytes, pack.size + 100, &fault), 0);
	cr_assert_eq(perfring_record_check(&with_trailer, (const void *)pack.bytes, pack.size - 1, &fault), -EBADMSG);
	cr_assert_eq(fault.at, 6);
	cr_assert_not_null(strstr(fault.what, "larger than what is there"), "%s", fault.what);
	zeros(&pack, 4);
	faulty(&with_trailer, &pack, 6, "not a multiple of 8");
	start(&pack, 63, 0);
	zeros(&pack, 1);
	faulty(NULL, &pack, 6, "not a multiple of 8");
	start(&pack, 64 + 63, 0);
	zeros(&pack, 1);
	passes(NULL, &pack, "perf's own sizes are any");

	/* cpumode: 0 to 5, where there is one */
	for (i = 0; i < sizeof(moded) / sizeof(moded[0]); i++) {
		start(&pack, moded[i], 0);
		if (moded[i] != 9)
			valid(&pack, moded[i]);
		misc = moded[i] == 67 ? 0x8000 : 0;
		quarter_at(&pack, 4, misc | 5);
		passes(moded[i] == 9 ? NULL : &with_trailer, &pack, "cpumode 5");
		quarter_at(&pack, 4, misc | 6);
		faulty(moded[i] == 9 ? NULL : &with_trailer, &pack, 4, "cpumode");
	}
	valid(&pack, PERFRING_RECORD_COMM);
	quarter_at(&pack, 4, 7);
	passes(&with_trailer, &pack, "COMM has no cpumode");
	valid(&pack, PERFRING_RECORD_MMAP2);
	quarter_at(&pack, 4, 0x9f82);
	passes(&with_trailer, &pack, "bits of no name");
}

Test(check, what_decode_refuses, .timeout = 30)
{
	static const struct perfring_format format = {.sample_type = IP | STACK_USER};
	static struct pack pack;

	valid(&pack, PERFRING_RECORD_NAMESPACES);
	word_at(&pack, 16, 8);
	faulty(&with_trailer, &pack, 16, "more entries");
	start(&pack, PERFRING_RECORD_LOST, 0);
	words(&pack, 1);
	faulty(&with_trailer, &pack, 16, "trailer");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x1234);
	word(&pack, 8);
	word(&pack, 0);
	word(&pack, 9);
	faulty(&format, &pack, 16, "dyn_size");
	word_at(&pack, 32, 8);
	passes(&format, &pack, "dyn_size of the whole stack");
}

Test(check, strings, .timeout = 30)
{
	static const uint32_t kinds[] = {PERFRING_RECORD_COMM, PERFRING_RECORD_KSYMBOL, PERFRING_RECORD_CGROUP};
	static const int64_t at[] = {16, 24, 16};
	static struct pack pack;
	size_t i;

	for (i = 0; i < 3; i++) {
		start(&pack, kinds[i], 0);
		words(&pack, i == 1 ? 2 : 1);
		bytes(&pack, "just 16 bytes...", 16);
		trailer(&pack, 1000);
		faulty(&with_trailer, &pack, at[i], "without its NUL");
		pack.bytes[at[i] + 15] = 0;
		passes(&with_trailer, &pack, "a NUL");
		pack.bytes[at[i] + 8] = 0;
		remarked(&with_trailer, &pack, at[i] + 9, "padding that is not 0");
		memset(pack.bytes + at[i] + 3, 0, 13);
		passes(&with_trailer, &pack, "padded more than it needs");
		pack.bytes[at[i] + 15] = 1;
		remarked(&with_trailer, &pack, at[i] + 15, "padding that is not 0");
	}
	start(&pack, PERFRING_RECORD_COMM, 0);
	words(&pack, 1);
	faulty(NULL, &pack, 16, "without its NUL");
}

/* perf leaves old bytes behind the names of mappings that it makes itself; those have no time. */
Test(check, names_of_mappings, .timeout = 30)
{
	static struct pack pack;
	int second;

	for (second = 0; second < 2; second++) {
		int64_t name = second ? 72 : 40;

		start(&pack, second ? PERFRING_RECORD_MMAP2 : PERFRING_RECORD_MMAP, 2);
		words(&pack, second ? 8 : 4);
		bytes(&pack, "/bin\0old", 8);
		trailer(&pack, 1000);
		remarked(&with_trailer, &pack, name + 5, "padding that is not 0");
		memset(pack.bytes + name + 8, 0, 8);
		passes(&with_trailer, &pack, "made by perf");
		pack.bytes[name + 4] = '/';
		faulty(&with_trailer, &pack, name, "without its NUL");
	}
}

Test(check, build_ids, .timeout = 30)
{
	static struct pack pack;

	start(&pack, PERFRING_RECORD_MMAP2, 2 | 1 << 14);
	words(&pack, 4);
	bytes(&pack,
	      "\x14\0\0\0"
	      "01234567890123456789",
	      24);
	words(&pack, 1);
	string(&pack, "/bin/true");
	trailer(&pack, 1000);
	passes(&with_trailer, &pack, "20 bytes");
	pack.bytes[40] = 21;
	remarked(&with_trailer, &pack, 40, "the bit of a build id, of another event's record");
	pack.bytes[40] = 8;
	pack.bytes[42] = 1;
	faulty(&with_trailer, &pack, 42, "padding that is not 0");
	quarter_at(&pack, 4, 2);
	passes(&with_trailer, &pack, "these are numbers: no build id");

	valid(&pack, PERFRING_RECORD_HEADER_BUILD_ID);
	pack.bytes[32] = 21;
	faulty(NULL, &pack, 32, "build id longer than 20");
	pack.bytes[32] = 20;
	pack.bytes[35] = 1;
	faulty(NULL, &pack, 35, "padding that is not 0");
	quarter_at(&pack, 4, 0);
	faulty(NULL, &pack, 32, "padding that is not 0");
	memset(pack.bytes + 32, 0, 4);
	passes(NULL, &pack, "older files have 20 bytes and no number");
	pack.bytes[35] = 1;
	faulty(NULL, &pack, 35, "padding that is not 0");
	pack.bytes[35] = 0;
	pack.bytes[55] = 1;
	remarked(NULL, &pack, 55, "padding that is not 0");
}

Test(check, padding, .timeout = 30)
{
	static const struct {
		uint32_t type;
		int64_t at;
		bool is_string;
	} paddings[] = {
		{PERFRING_RECORD_TEXT_POKE, 30, false},     {PERFRING_RECORD_COMPRESSED2, 19, false},
		{PERFRING_RECORD_CPU_MAP, 14, false},       {PERFRING_RECORD_CPU_MAP, 17, false},
		{PERFRING_RECORD_CPU_MAP, 26, false},       {PERFRING_RECORD_TIME_CONV, 50, false},
		{PERFRING_RECORD_TIME_CONV, 55, false},     {PERFRING_RECORD_EVENT_UPDATE, 31, true},
		{PERFRING_RECORD_AUXTRACE_ERROR, 55, true}, {PERFRING_RECORD_HEADER_EVENT_TYPE, 79, true},
		{PERFRING_RECORD_BPF_METADATA, 519, true},
	};
	static struct pack pack;
	size_t size;
	size_t i;

	for (i = 0; i < sizeof(paddings) / sizeof(paddings[0]); i++) {
		valid(&pack, paddings[i].type);
		pack.bytes[paddings[i].at] = 1;
		if (paddings[i].is_string)
			remarked(&with_trailer, &pack, paddings[i].at, "padding that is not 0");
		else
			faulty(&with_trailer, &pack, paddings[i].at, "padding that is not 0");
	}
	/* any CPUs, from 1 to 3 */
	start(&pack, PERFRING_RECORD_CPU_MAP, 0);
	quarter(&pack, 2);
	bytes(&pack, "\1\0", 2);
	quarter(&pack, 1);
	quarter(&pack, 3);
	passes(NULL, &pack, "a range of CPUs");
	pack.bytes[11] = 1;
	faulty(NULL, &pack, 11, "padding that is not 0");
	/* three CPUs in a list */
	start(&pack, PERFRING_RECORD_CPU_MAP, 0);
	quarter(&pack, 0);
	quarter(&pack, 3);
	quarter(&pack, 1);
	quarter(&pack, 2);
	quarter(&pack, 3);
	zeros(&pack, 6);
	passes(NULL, &pack, "a list of CPUs");
	pack.bytes[18] = 1;
	faulty(NULL, &pack, 18, "padding that is not 0");
	/* texts that fill their buffer */
	valid(&pack, PERFRING_RECORD_HEADER_EVENT_TYPE);
	memset(pack.bytes + 16, 'x', 64);
	faulty(NULL, &pack, 16, "without its NUL");
	/* as perf cuts them: "branches" has 8 letters */
	for (size = 1; size < 64; size++) {
		pack.size = 16 + size;
		if (size % 8)
			faulty(NULL, &pack, 16, "without its NUL");
		else
			passes(NULL, &pack, "branches");
	}
	valid(&pack, PERFRING_RECORD_AUXTRACE_ERROR);
	half_at(&pack, 28, 0); /* fmt */
	memset(pack.bytes + 40, 'x', 8);
	pack.size = 48;
	faulty(NULL, &pack, 40, "without its NUL");
	valid(&pack, PERFRING_RECORD_BPF_METADATA);
	memset(pack.bytes + 8, 'x', 512);
	faulty(NULL, &pack, 8, "without its NUL");
}

static void chain(struct pack *pack, uint64_t nr, ...)
{
	va_list list;
	uint64_t i;

	start(pack, PERFRING_RECORD_SAMPLE, 1);
	word(pack, nr);
	va_start(list, nr);
	for (i = 0; i < nr; i++)
		word(pack, va_arg(list, uint64_t));
	va_end(list);
}

Test(check, callchains, .timeout = 30)
{
	static const struct perfring_format format = {.sample_type = CALLCHAIN};
	static const int markers[] = {-32, -128, -512, -2048, -2176, -2560};
	const uint64_t kernel = (uint64_t)-128, user = (uint64_t)-512, deferred = (uint64_t)-640,
		       ip = 0xffffffff81000001;
	static struct pack pack;
	size_t i;

	chain(&pack, UINT64_C(0));
	passes(&format, &pack, "no entries");
	chain(&pack, UINT64_C(3), ip, ip, ip);
	passes(&format, &pack, "no marker");
	for (i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		chain(&pack, UINT64_C(3), (uint64_t)(int64_t)markers[i], ip, user);
		passes(&format, &pack, "known markers");
	}
	chain(&pack, UINT64_C(3), kernel, ip, (uint64_t)-1);
	faulty(&format, &pack, 32, "marker that does not exist");
	chain(&pack, UINT64_C(2), (uint64_t)-4095, ip);
	faulty(&format, &pack, 16, "marker that does not exist");
	chain(&pack, UINT64_C(1), (uint64_t)-4096);
	passes(&format, &pack, "an address below all markers");
	/* This kernel wrote just such words, out of the frames of a process (see of_this_kernel). */
	chain(&pack, UINT64_C(5), kernel, ip, user, (uint64_t)-1, deferred);
	passes(&format, &pack, "any words of a process");

	chain(&pack, UINT64_C(4), kernel, ip, deferred, (uint64_t)-7);
	passes(&format, &pack, "a deferred chain, and any cookie");
	chain(&pack, UINT64_C(3), kernel, ip, deferred);
	faulty(&format, &pack, 32, "without its cookie");
	chain(&pack, UINT64_C(5), kernel, ip, deferred, UINT64_C(7), ip);
	faulty(&format, &pack, 32, "more than its cookie");
}

Test(check, lengths_in_samples, .timeout = 30)
{
	static const struct perfring_format raw = {.sample_type = RAW};
	static const struct perfring_format stack = {.sample_type = STACK_USER};
	static const struct perfring_format small_stack = {.sample_type = STACK_USER, .sample_stack_user = 8};
	static const struct perfring_format aux = {.sample_type = IP | AUX};
	static struct pack pack;

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	half(&pack, 12);
	bytes(&pack, "data and old", 12);
	passes(&raw, &pack, "12 bytes of RAW");
	half_at(&pack, 8, 8);
	faulty(&raw, &pack, 8, "next field unaligned");

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 16);
	words(&pack, 2);
	word(&pack, 3);
	passes(&stack, &pack, "a stack of 16 bytes");
	faulty(&small_stack, &pack, 8, "sample_stack_user");
	word_at(&pack, 8, 15);
	memset(pack.bytes + 31, 0, 9); /* where the last word is now */
	faulty(&stack, &pack, 8, "not a multiple of 8");

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x1234);
	word(&pack, 8);
	words(&pack, 1);
	passes(&aux, &pack, "8 bytes of AUX");
	word_at(&pack, 16, 7);
	faulty(&aux, &pack, 16, "not a multiple of 8");
	word_at(&pack, 16, 0);
	passes(&aux, &pack, "no AUX, and a newer kernel's word");
}

Test(check, registers, .timeout = 30)
{
	static const struct perfring_format format = {
		.sample_type = IP | REGS_USER | REGS_INTR,
		.sample_regs_user = 3,
		.sample_regs_intr = 1,
	};
	static struct pack pack;

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x1234);
	word(&pack, 2);
	words(&pack, 2);
	word(&pack, 1);
	words(&pack, 1);
	passes(&format, &pack, "abi 2 and 1");
	word_at(&pack, 16, 3);
	faulty(&format, &pack, 16, "register abi");
	word_at(&pack, 16, 2);
	word_at(&pack, 40, 1 | UINT64_C(1) << 40);
	faulty(&format, &pack, 40, "register abi");
}

/* hw_idx is left out with the branches: what lies behind is found all the same. */
Test(check, behind_branches, .timeout = 30)
{
	static const struct perfring_format format = {
		.sample_type = BRANCH_STACK | REGS_INTR,
		.branch_sample_type = 1 << 3 | 1 << 17,
		.sample_regs_intr = 1,
	};
	static struct pack pack;

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0);
	word(&pack, 2);
	words(&pack, 1);
	passes(&format, &pack, "no branches");
	word_at(&pack, 16, 4);
	faulty(&format, &pack, 16, "register abi");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 1);
	word(&pack, (uint64_t)-1);
	words(&pack, 3);
	word(&pack, 4);
	words(&pack, 1);
	faulty(&format, &pack, 48, "register abi");
}

/* docs/abi.md 14.3: the bytes that 6.18 wrote for such attrs, 8 more than it had reserved.  Values as it wrote them. */
Test(check, shifted_behind_an_empty_stack, .timeout = 30)
{
	static const struct perfring_format whole = {
		.sample_type = IP | REGS_USER | STACK_USER | WEIGHT | DATA_SRC | TRANSACTION | REGS_INTR | CGROUP,
		.sample_regs_user = 1,
		.sample_regs_intr = 3,
	};
	static const struct perfring_format clamped = {
		.sample_type = REGS_USER | STACK_USER | DATA_SRC | TRANSACTION,
		.sample_regs_user = 1,
		.sample_stack_user = 256,
	};
	static const struct perfring_format no_registers = {.sample_type = IP | STACK_USER | DATA_SRC | TRANSACTION};
	static const struct perfring_format plain = {
		.sample_type = REGS_USER | STACK_USER | WEIGHT,
		.sample_regs_user = 1,
	};
	static const struct perfring_format weighed = {.sample_type =
							       IP | STACK_USER | WEIGHT | DATA_SRC | TRANSACTION};
	static const struct perfring_format alone = {.sample_type = REGS_USER | STACK_USER, .sample_regs_user = 1};
	static struct pack pack;
	int shift;

	/* As it should be, and 8 bytes later with the last word cut off. */
	for (shift = 0; shift < 2; shift++) {
		start(&pack, PERFRING_RECORD_SAMPLE, 2);
		word(&pack, 0x560c0a2e935a);
		word(&pack, 2);
		words(&pack, 1);
		word(&pack, 0);
		zeros(&pack, shift ? 8 : 0);
		word(&pack, shift ? 0 : 9);
		word(&pack, NO_DATA_SRC);
		word(&pack, 0);
		word(&pack, 2);
		words(&pack, 2);
		if (!shift)
			word(&pack, 1);
		if (shift)
			faulty(&whole, &pack, 32, "shifted by 8");
		else
			passes(&whole, &pack, "a stack of size 0 as it should be");
	}

	for (shift = 0; shift < 2; shift++) {
		start(&pack, PERFRING_RECORD_SAMPLE, 2);
		word(&pack, 2);
		words(&pack, 1);
		word(&pack, 0);
		zeros(&pack, shift ? 8 : 0);
		word(&pack, NO_DATA_SRC);
		zeros(&pack, shift ? 0 : 8);
		if (shift)
			faulty(&clamped, &pack, 24, "shifted by 8");
		else
			passes(&clamped, &pack, "clamped to 0");
	}

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x55db1d57e35a);
	word(&pack, 0);
	word(&pack, 0);
	word(&pack, NO_DATA_SRC);
	faulty(&no_registers, &pack, 16, "shifted by 8");
	word_at(&pack, 32, NO_DATA_SRC ^ 2);
	passes(&no_registers, &pack, "no proof");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x55db1d57e35a);
	word(&pack, 0);
	word(&pack, NO_DATA_SRC);
	word(&pack, 0);
	passes(&no_registers, &pack, "a kernel thread");

	/* nothing to tell a weight of 0 from a dyn_size: the kernel never writes the one */
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 2);
	words(&pack, 1);
	word(&pack, 0);
	word(&pack, 0);
	faulty(&plain, &pack, 24, "shifted by 8");
	word_at(&pack, 32, 1);
	passes(&plain, &pack, "a weight");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0);
	word(&pack, 0);
	word(&pack, 0);
	passes(&plain, &pack, "a kernel thread, a weight of 0");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 2);
	words(&pack, 1);
	word(&pack, 0);
	word(&pack, 0);
	word(&pack, 5);
	passes(&plain, &pack, "a newer kernel's word: it would end there, not behind it");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 0x55db1d57e35a);
	word(&pack, 0);
	word(&pack, 0);
	word(&pack, NO_DATA_SRC);
	word(&pack, NO_DATA_SRC);
	passes(&weighed, &pack, "DATA_SRC is where it should be");
	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	word(&pack, 2);
	words(&pack, 1);
	word(&pack, 0);
	passes(&alone, &pack, "nothing behind it: nothing is shifted");
}

Test(check, without_a_format, .timeout = 30)
{
	static const struct perfring_format callchain = {.sample_type = CALLCHAIN};
	static struct pack pack;

	start(&pack, PERFRING_RECORD_SAMPLE, 2);
	words(&pack, 3);
	passes(NULL, &pack, "a sample of any bytes");
	word_at(&pack, 8, 9);
	faulty(&callchain, &pack, 8, "list longer");
	start(&pack, 12345, 0xffff);
	words(&pack, 3);
	passes(NULL, &pack, "a kind of a newer kernel");
	start(&pack, 23, 0);
	words(&pack, 3);
	passes(&with_trailer, &pack, "a kind of a newer kernel, with its trailer");
}

/* ---- this kernel ---- */

enum {
	PAGES = 300,
	ROOM = 512
};

static volatile unsigned char *touched;

/* A fault under frames that say anything. */
static __attribute__((noinline)) void touch_with_odd_frames(size_t at)
{
#ifdef __x86_64__
	uint64_t outer[2] = {0, (uint64_t)-640};
	uint64_t inner[2] = {(uintptr_t)outer, (uint64_t)-1};
	uint64_t *frame = inner;

	__asm__ volatile("xchgq %%rbp, %0\n\tmovb $1, (%1)\n\txchgq %%rbp, %0"
			 : "+r"(frame)
			 : "r"(touched + at)
			 : "memory");
#else
	touched[at] = 1;
#endif
}

struct live {
	struct perf_event_attr attr;
	struct perfring_format format;
	struct perf_event_mmap_page *control;
	size_t page;
	int fd;
};

static void live_open(struct live *live)
{
	static const char need[] = "needs CAP_PERFMON, Linux 6.0";

	live->page = (size_t)sysconf(_SC_PAGESIZE);
	live->attr.type = PERF_TYPE_SOFTWARE;
	live->attr.size = 128;
	live->attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	live->attr.sample_period = 1;
	live->attr.disabled = 1;
	live->attr.exclude_hv = 1;
	live->fd = (int)syscall(SYS_perf_event_open, &live->attr, 0, -1, -1, 8UL);
	if (live->fd < 0)
		cr_skip_test("SKIP-ENV: perf_event_open: %s: %s", strerror(errno), need);
	live->control = mmap(NULL, (1 + ROOM) * live->page, PROT_READ | PROT_WRITE, MAP_SHARED, live->fd, 0);
	if (live->control == MAP_FAILED)
		cr_skip_test("SKIP-ENV: mmap of %d pages: %s: needs RLIMIT_MEMLOCK", ROOM, strerror(errno));
	cr_assert_eq(perfring_format_from_attr(&live->format, &live->attr), 0);
	touched = mmap(NULL, PAGES * live->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(touched != MAP_FAILED);
	madvise((void *)(uintptr_t)touched, PAGES * live->page, MADV_NOHUGEPAGE);
}

/* Checks every record, and counts kinds and faults of which `what` is told. */
static uint64_t live_check(struct live *live, uint64_t *kinds, const char *what)
{
	uint64_t position, faults = 0, head = __atomic_load_n(&live->control->data_head, __ATOMIC_ACQUIRE);
	const unsigned char *data = (const unsigned char *)live->control + live->page;
	struct perfring_fault fault;

	cr_assert_lt(head, ROOM * live->page, "the ring is too small for this test");
	for (position = 0; position < head;) {
		const struct perf_event_header *record = (const void *)(data + position);
		uint16_t size = record->size;
		void *copy;
		int error;

		cr_assert(size >= 8 && position + size <= head);
		cr_assert_lt(record->type, 64u);
		kinds[record->type]++;
		copy = malloc(size);
		memcpy(copy, record, size);
		error = perfring_record_check(&live->format, copy, size, &fault);
		free(copy);
		position += size;
		if (!error)
			continue;
		cr_assert(what && strstr(fault.what, what), "type %u: %s at %lld", record->type, fault.what,
			  (long long)fault.at);
		faults++;
	}
	return faults;
}

static void live_close(struct live *live)
{
	munmap(live->control, (1 + ROOM) * live->page);
	munmap((void *)(uintptr_t)touched, PAGES * live->page);
	close(live->fd);
}

/* Every sample bit and every kind that a software event can have here. */
Test(check, of_this_kernel, .timeout = 60)
{
	const uint64_t bits = ((1 << 25) - 1) & ~(BRANCH_STACK | WEIGHT | AUX);
	struct live live = {
		.attr =
			{
				.sample_type = bits,
				.read_format = 1 | 2 | 4 | 8 | 16,
				.sample_regs_user = 0xff,
				.sample_regs_intr = 0xff,
				.sample_stack_user = 512,
				.mmap = 1,
				.comm = 1,
				.task = 1,
				.mmap_data = 1,
				.sample_id_all = 1,
				.mmap2 = 1,
				.comm_exec = 1,
				.context_switch = 1,
				.namespaces = 1,
				.ksymbol = 1,
				.bpf_event = 1,
				.cgroup = 1,
				.build_id = 1,
			},
	};
	uint64_t kinds[64] = {0};
	struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE, .size = 128};
	long sibling;
	size_t i;
	pid_t child;
	int status;

	live_open(&live);
	clock.read_format = 1 | 2 | 4 | 8 | 16;
	sibling = syscall(SYS_perf_event_open, &clock, 0, -1, live.fd, 8UL);
	cr_assert_geq(sibling, 0);
	cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), 0);
	for (i = 0; i < PAGES - 8; i++)
		touched[i * live.page] = 1;
	for (; i < PAGES; i++)
		touch_with_odd_frames(i * live.page);
	prctl(PR_SET_NAME, "fifteen letters");
	prctl(PR_SET_NAME, "eight ch");
	munmap(mmap(NULL, live.page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), live.page);
	child = fork();
	if (!child)
		_exit(0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	usleep(1000);
	cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
	live_check(&live, kinds, NULL);
	cr_assert_geq(kinds[PERF_RECORD_SAMPLE], PAGES);
	cr_assert_geq(kinds[PERF_RECORD_MMAP2], 1);
	cr_assert_geq(kinds[PERF_RECORD_COMM], 2);
	cr_assert_geq(kinds[PERF_RECORD_FORK], 1);
	cr_assert_geq(kinds[PERF_RECORD_SWITCH], 1);
	close((int)sibling);
	live_close(&live);
}

/* And 14.3, as this kernel does it: with registers, and without any to show it. */
Test(check, shifted_by_this_kernel, .timeout = 60)
{
	static const uint64_t types[] = {
		IP | REGS_USER | STACK_USER | WEIGHT,
		IP | REGS_USER | STACK_USER | DATA_SRC | TRANSACTION | REGS_INTR | CGROUP,
		IP | STACK_USER | DATA_SRC | TRANSACTION,
	};
	size_t t, i;

	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		uint64_t kinds[64] = {0}, faults;
		struct live live = {.attr = {.sample_type = types[t]}};

		live.attr.sample_regs_user = types[t] & REGS_USER ? 0xff : 0;
		live.attr.sample_regs_intr = types[t] & REGS_INTR ? 0xff : 0;
		live_open(&live);
		cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		for (i = 0; i < PAGES; i++)
			touched[i * live.page] = 1;
		cr_assert_eq(ioctl(live.fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		faults = live_check(&live, kinds, "shifted by 8");
		cr_assert_geq(kinds[PERF_RECORD_SAMPLE], PAGES);
		if (!faults)
			cr_skip_test("SKIP-ENV: this kernel does not shift what is behind an empty stack");
		cr_assert_eq(faults, kinds[PERF_RECORD_SAMPLE]);
		live_close(&live);
	}
}
