/* feature_test.c - features of perf.data files: each of them, cut, turned, kept and empty; names and build ids among them;
 * those whose sizes lie. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <perfring/build_id.h>
#include <perfring/feature.h>
#include <perfring/file.h>
#include <perfring/file_writer.h>
#include <perfring/swap.h>
#include "file_rig.h"
#include "machine.h"
#include "pack.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(feature, .timeout = 300);

/* ---- in a file ---- */

/* TRACING_DATA with formats of two systems: "a:one" is number 4711, "b:two" 4712; the others are damaged. */
static void put_tracing(struct pack *pack)
{
	static const char *const formats[] = {"name: one\nID: 4711\nformat:\n", "name: none\nIDs: 4713\n", "name: \nID: 4713\n",
					      "name: two\nID: 4712\n", "name: too\nID: 4712\n"};

	pack->size = 0;
	bytes(pack, "\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0header_page", 14 + 6 + 12);
	word(pack, 0);
	bytes(pack, "header_event", 13);
	word(pack, 0);
	half(pack, 0);
	half(pack, 2);
	for (int i = 0; i < 5; i++) {
		if (i == 0 || i == 3) {
			bytes(pack, i ? "b" : "a", 2);
			half(pack, i ? 2 : 3);
		}
		word(pack, strlen(formats[i]));
		bytes(pack, formats[i], strlen(formats[i]));
	}
	half(pack, 0);
	half(pack, 0);
	word(pack, 0);
}

/* Tracepoints without names have those of the file's own formats, several of one too; other events what perf makes up. */
/* A layout is trusted, but what its rules forbid is an error all the same. */
Test(feature, layouts_against_the_rules)
{
	static const struct {
		const char *layout, *what;
	} tries[] = {
		{"{*:a y:b {*:c y:d {*:e y:f {*:g y:h {*:i y:j } } } } }", "lists are nested too deep"},
		{"{+:a s:b }", "entries of no size"},
	};
	static const unsigned char bytes[64];

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct perfring_layout_member member;
		struct perfring_layout_walk walk;
		int ret, parts = 0;

		perfring_layout_open(&walk, tries[i].layout, bytes, 0, sizeof(bytes));
		while ((ret = perfring_layout_next(&walk, &member)) == 1)
			cr_assert_lt(++parts, 100);
		cr_assert_eq(ret, -EBADMSG, "%s: %d after %d parts", tries[i].layout, ret, parts);
		cr_assert_str_eq(walk.fault.what, tries[i].what);
	}
}

Test(feature, names_of_tracepoints)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name, *told;
	} events[] = {
		{2, 4711, "", "a:one"},		      {2, 4712, "", "b:two"}, {2, 4713, "", "type=2,config=0x1269"},
		{2, 4712, "mine", "mine"},	      {2, 4711, "", "a:one"}, {0, 0, "", "cycles:HG"},
		{4, 4711, "", "raw 0x1267:HG"},
	};
	static struct pack pack;

	make_folder();
	for (int number = 0; number < 4; number++) {
		struct mode mode = {number & 1, number & 2, 0};
		struct perfring_file_writer *writer;
		struct perfring_file *data;
		int fd;

		remove(path);
		writer = create(mode, &fd);
		for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
			struct perf_event_attr attr = attr_of(TIMED);

			attr.type = events[i].type;
			attr.config = events[i].config;
			cr_assert_geq(perfring_file_writer_add_event(writer, &attr, events[i].name), 0);
		}
		put_tracing(&pack);
		cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, pack.bytes, pack.size), 0);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		cr_assert_eq(perfring_file_writer_end_round(writer), 0);
		end(writer, fd);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		for (uint32_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
			cr_assert_str_eq(perfring_file_event_name(data, i), events[i].told, "%u in %d: %s", i, number,
					 perfring_file_event_name(data, i));
		perfring_file_close(data);
	}
	remove_folder();
}

/* A stream's record of TRACING_DATA is as perf writes it: 12 bytes, whose last word counts what follows, padding included. */
Test(feature, tracing_data_of_a_stream)
{
	static struct pack pack;
	struct perfring_file_writer *writer;
	struct {
		struct perf_event_header header;
		uint32_t size;
	} record;
	unsigned records = 0;
	int64_t at = 16, got; /* after the header of a stream */
	int fd;

	make_folder();
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &(struct perf_event_attr){.size = 64, .sample_type = TIMED}, "one"), 0);
	put_tracing(&pack);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_TRACING_DATA, pack.bytes, pack.size), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_finish(writer), 0);
	perfring_file_writer_close(writer);
	while ((got = pread(fd, &record, sizeof(record), at)) >= (int64_t)sizeof(record.header)) {
		cr_assert_geq(record.header.size, sizeof(record.header));
		at += record.header.size;
		if (record.header.type != PERFRING_RECORD_HEADER_TRACING_DATA)
			continue;
		records++;
		cr_assert_eq(record.header.size, 12);
		cr_assert_eq(record.size, (pack.size + 7) / 8 * 8);
		at += record.size;
	}
	cr_assert_eq(got, 0);
	cr_assert_eq(records, 1);
	close(fd);
	remove_folder();
}

/* A stream has no record of a feature of no bytes: perf stops there. */
Test(feature, empty_features)
{
	static const uint32_t empty[] = {PERFRING_FEATURE_BRANCH_STACK, PERFRING_FEATURE_STAT, PERFRING_FEATURE_ARCH, 77};
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	struct perfring_item item;
	uint64_t cpus = 1 | UINT64_C(1) << 32;
	uint32_t features = 0;
	int fd, one;

	make_folder();
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(perfring_file_writer_open_stream(&writer, fd), 0);
	cr_assert_eq(perfring_file_writer_add_event(writer, &(struct perf_event_attr){.size = 64, .sample_type = TIMED}, "one"), 0);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		cr_assert_eq(perfring_file_writer_put_feature(writer, empty[i], NULL, 0), 0);
	cr_assert_eq(perfring_file_writer_put_feature(writer, PERFRING_FEATURE_NRCPUS, &cpus, sizeof(cpus)), 0);
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	end(writer, fd);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	while ((one = perfring_file_next(data, &item)) == 1) {
		if (item.record->type != PERFRING_RECORD_HEADER_FEATURE)
			continue;
		cr_assert_gt(item.record->size, 16);
		features++;
	}
	cr_assert_eq(one, 0);
	cr_assert_eq(features, 2, "NRCPUS and EVENT_DESC");
	perfring_file_close(data);
	remove_folder();
}

/* A writer whose long has 32 bits: the other byte order puts the halves of each word the other way round. */
Test(feature, narrow_bitmap)
{
	struct perfring_file_writer *writer;
	struct perfring_file *data;
	unsigned char *file, half_word[4];
	size_t size;
	int fd;

	make_folder();
	writer = begin((struct mode){false, true, 0}, &fd);
	write_timed(writer, 1);
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_HOSTNAME, "narrow"), 0);
	cr_assert_eq(perfring_file_writer_put_string(writer, PERFRING_FEATURE_CPUID, "cpu"), 0);
	cr_assert_eq(perfring_file_writer_put_string(writer, 100, "beyond"), 0);
	end(writer, fd);
	file = get_file(&size);
	for (size_t at = 72; at < 104; at += 8) {
		memcpy(half_word, file + at, 4);
		memcpy(file + at, file + at + 4, 4);
		memcpy(file + at + 4, half_word, 4);
	}
	set_file(path, file, size);
	cr_assert_eq(perfring_file_open(&data, path), 0);
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_HOSTNAME), "narrow");
	cr_assert_str_eq(perfring_file_string(data, PERFRING_FEATURE_CPUID), "cpu");
	cr_assert_not_null(perfring_file_feature(data, 100, NULL));
	perfring_file_close(data);
	free(file);
	remove_folder();
}

/* ---- each of them ---- */

/* A payload, told by its members: a number of 1, 2, 4, 8 bytes (y h w d), a string (s), bytes with a NUL (z), n bytes
 * (x), tracing data's first ones (m) and byte order (o), an attr (a); at `?` it may end. */
static void build(struct pack *pack, const char *members, bool is_foreign, size_t ends[4])
{
	size_t nr = 0;

	pack->size = 0;
	for (const char *at = members; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		size_t length = strcspn(at, " ") - 1;
		uint64_t number = strtoull(at + 1, NULL, 0);
		char text[64] = "";
		_Alignas(8) unsigned char foreign[64];
		struct perf_event_attr attr = attr_of(TIMED);

		memcpy(text, at + 1, length);
		switch (*at) {
		case 'y':
			bytes(pack, &number, 1);
			break;
		case 'h':
			quarter(pack, is_foreign ? __builtin_bswap16((uint16_t)number) : (uint16_t)number);
			break;
		case 'w':
			half(pack, is_foreign ? __builtin_bswap32((uint32_t)number) : (uint32_t)number);
			break;
		case 'd':
			word(pack, turned(number, is_foreign));
			break;
		case 's':
			half(pack, is_foreign ? __builtin_bswap32(64) : 64);
			bytes(pack, text, 64);
			break;
		case 'z':
			bytes(pack, text, length + 1);
			break;
		case 'x':
			memset(pack->bytes + pack->size, 0xab, number);
			pack->size += number;
			break;
		case 'm':
			bytes(pack, "\x17\x08\x44tracing", 10);
			break;
		case 'o':
			text[0] = is_foreign == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
			bytes(pack, text, 1);
			break;
		case 'a':
			attr.size = 64;
			perfring_attr_to_foreign(&attr, foreign, sizeof(foreign));
			bytes(pack, is_foreign ? (const void *)foreign : &attr, 64);
			break;
		default:
			cr_assert_lt(nr, 4);
			ends[nr++] = pack->size;
			break;
		}
	}
	while (nr < 4)
		ends[nr++] = SIZE_MAX;
}

/* What the walk tells, up to its end, which it returns. */
static int tell(uint32_t feature, const void *payload, size_t size, char *text, size_t buffer)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	size_t used = 0;
	int one;

	perfring_feature_open(&walk, feature, payload, size, 2);
	while ((one = perfring_layout_next(&walk, &member)) == 1) {
		const char *begin = member.bytes;
		int more;

		cr_assert_lt(used, buffer);
		cr_assert(!member.size ||
			  (begin >= (const char *)payload && begin + member.size <= (const char *)payload + size));
		if (member.kind == PERFRING_LAYOUT_STRING)
			more = snprintf(text + used, buffer - used, "%s=\"%s\" ", member.name, begin);
		else if (member.kind == PERFRING_LAYOUT_NUMBER)
			more = snprintf(text + used, buffer - used, "%s=%llu ", member.name,
					(unsigned long long)member.number);
		else
			more = snprintf(text + used, buffer - used, "%s[%llu] ", member.name,
					(unsigned long long)member.size);
		used += (size_t)more;
	}
	text[used ? used - 1 : 0] = 0;
	if (one) {
		cr_assert_eq(one, -EBADMSG);
		cr_assert_not_null(walk.fault.what);
		cr_assert(walk.fault.at >= 0 && (uint64_t)walk.fault.at <= size);
		cr_assert_eq(perfring_layout_next(&walk, &member), 0);
	}
	return one;
}

static const struct {
	uint32_t feature;
	const char *name, *members, *told;
} features[] = {
	{1, "TRACING_DATA",
	 "m z0.6 o y8 w4096 zheader_page d3 x3 zheader_event d2 x2 w1 d4 x4 w2 zsched w2 d1 x1 d2 x2 zirq w0 w0 w3 x3 "
	 "? "
	 "d5 x5",
	 "magic[10] version=\"0.6\" big_endian=0 long_size=8 page_size=4096 page=\"header_page\" page_bytes=3 "
	 "header_page[3] event=\"header_event\" event_bytes=2 header_event[2] ftrace=1 bytes=4 format[4] systems=2 "
	 "system=\"sched\" events=2 bytes=1 format[1] bytes=2 format[2] system=\"irq\" events=0 kallsyms_bytes=0 "
	 "kallsyms[0] printk_bytes=3 printk[3] cmdline_bytes=5 cmdline[5]"},
	{2, "BUILD_ID", "? w0 h0x8001 h44 w0xffffffff x20 y20 y0 h0 zkernel. ? w0 h0x8002 h36 w7 x20 y16 y0 h0",
	 "type=0 misc=32769 size=44 pid=4294967295 build_id[20] length=20 reserved=0 reserved=0 file[8] type=0 "
	 "misc=32770 size=36 pid=7 build_id[20] length=16 reserved=0 reserved=0 file[0]"},
	{3, "HOSTNAME", "shost", "hostname=\"host\""},
	{4, "OSRELEASE", "s6.18", "osrelease=\"6.18\""},
	{5, "VERSION", "s6.1.1", "version=\"6.1.1\""},
	{6, "ARCH", "sx86_64", "arch=\"x86_64\""},
	{7, "NRCPUS", "w4 w2", "available=4 online=2"},
	{8, "CPUDESC", "sCPU", "cpudesc=\"CPU\""},
	{9, "CPUID", "sme,1", "cpuid=\"me,1\""},
	{10, "TOTAL_MEM", "d0x100000000", "kilobytes=4294967296"},
	{11, "CMDLINE", "w2 sperf srecord", "count=2 argument=\"perf\" argument=\"record\""},
	{12, "EVENT_DESC", "w2 w64 a w2 scycles d7 d8 a w0 sfaults",
	 "events=2 attr_size=64 attr[64] ids=2 name=\"cycles\" id=7 id=8 attr[64] ids=0 name=\"faults\""},
	{13, "CPU_TOPOLOGY", "w1 s0-1 w2 s0 s1 ? w0 w0 w1 w0 ? w1 s0-1 w3 w4",
	 "core_lists=1 cores=\"0-1\" thread_lists=2 threads=\"0\" threads=\"1\" core=0 socket=0 core=1 socket=0 "
	 "die_lists=1 dies=\"0-1\" die=3 die=4"},
	{14, "NUMA_TOPOLOGY", "w1 w5 d10 d20 s0-1", "nodes=1 node=5 total=10 free=20 cpus=\"0-1\""},
	{15, "BRANCH_STACK", "", ""},
	{16, "PMU_MAPPINGS", "w2 w1 ssoftware w2 stracepoint",
	 "pmus=2 type=1 name=\"software\" type=2 name=\"tracepoint\""},
	{17, "GROUP_DESC", "w1 s{a,b} w0 w2", "groups=1 name=\"{a,b}\" leader=0 members=2"},
	{18, "AUXTRACE", "d2 d100 d48 d0x100000000 d96", "count=2 offset=100 size=48 offset=4294967296 size=96"},
	{19, "STAT", "", ""},
	{20, "CACHE", "w1 w1 w2 w64 w1024 w8 sUnified s512K s0",
	 "version=1 caches=1 level=2 line_size=64 sets=1024 ways=8 type=\"Unified\" size=\"512K\" map=\"0\""},
	{21, "SAMPLE_TIME", "d1000 d2000", "first=1000 last=2000"},
	{22, "MEM_TOPOLOGY", "d1 d4096 d2 d0 d65 d65 d1 d2 d1 d64 d64 d3",
	 "version=1 block_size=4096 nodes=2 node=0 size=65 bits=65 word=1 word=2 node=1 size=64 bits=64 word=3"},
	{23, "CLOCKID", "d1", "resolution=1"},
	{24, "DIR_FORMAT", "d1", "version=1"},
	{25, "BPF_PROG_INFO", "w1 w3 w5 d9 x3 x5", "programs=1 info_bytes=3 data_bytes=5 arrays=9 info[3] data[5]"},
	{26, "BPF_BTF", "w2 w1 w3 x3 w2 w0", "count=2 id=1 bytes=3 btf[3] id=2 bytes=0 btf[0]"},
	{27, "COMPRESSED", "w0 w1 w3 w6 w528384", "version=0 type=1 level=3 ratio=6 mmap_len=528384"},
	{28, "CPU_PMU_CAPS", "w1 sbranches s32", "caps=1 name=\"branches\" value=\"32\""},
	{29, "CLOCK_DATA", "w1 w7 d5 d6", "version=1 clockid=7 wall_clock=5 clock=6"},
	{30, "HYBRID_TOPOLOGY", "w1 scpu_core s0-3", "pmus=1 pmu=\"cpu_core\" cpus=\"0-3\""},
	{31, "PMU_CAPS", "w2 w1 sa sb scpu w0 smsr",
	 "pmus=2 caps=1 name=\"a\" value=\"b\" pmu=\"cpu\" caps=0 pmu=\"msr\""},
	{33, "E_MACHINE", "w62 w0", "e_machine=62 e_flags=0"},
	{34, "CLN_SIZE", "w64", "bytes=64"},
};

Test(feature, features)
{
	static struct pack pack, foreign;
	static char text[4096];

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		uint32_t feature = features[i].feature;
		size_t ends[4], others[4], cut, end;

		cr_assert_str_eq(perfring_feature_name(feature), features[i].name);
		build(&pack, features[i].members, false, ends);
		cr_assert_eq(tell(feature, pack.bytes, pack.size, text, sizeof(text)), 0, "%u", feature);
		cr_assert_str_eq(text, features[i].told);
		build(&foreign, features[i].members, true, others);
		for (cut = 0; cut < pack.size; cut++) {
			unsigned char *exact = malloc(cut + 1);
			int one;

			cr_assert_not_null(exact);
			memcpy(exact + 1, pack.bytes, cut);
			one = tell(feature, exact + 1, cut, text, sizeof(text));
			for (end = 0; end < 4 && ends[end] != cut; end++)
				;
			cr_assert_eq(one, end < 4 ? 0 : -EBADMSG, "%u cut at %zu: %s", feature, cut, text);
			/* half a feature, too, is itself again */
			perfring_feature_swap(feature, exact + 1, cut, 2, true);
			perfring_feature_swap(feature, exact + 1, cut, 2, false);
			cr_assert_eq(memcmp(exact + 1, pack.bytes, cut), 0, "%u cut at %zu", feature, cut);
			free(exact);
		}
		cr_assert_eq(perfring_feature_swap(feature, pack.bytes, pack.size, 2, true), 0);
		cr_assert_eq(memcmp(pack.bytes, foreign.bytes, pack.size), 0, "%u", feature);
		cr_assert_eq(perfring_feature_swap(feature, pack.bytes, pack.size, 2, false), 0);
		build(&foreign, features[i].members, false, others);
		cr_assert_eq(memcmp(pack.bytes, foreign.bytes, pack.size), 0, "%u", feature);
		/* what the layout does not tell */
		if (feature == 2)
			continue;
		memset(pack.bytes + pack.size, 0, 3);
		if (tell(feature, pack.bytes, pack.size + 3, text, sizeof(text)) == 0)
			cr_assert_str_eq(text + strlen(text) - 7, "rest[3]");
	}
}

/* What no layout tells is one member; without a count of CPUs, what goes by it is the rest. */
Test(feature, raw_features)
{
	static const uint32_t numbers[] = {0, 32, 35, 255, 70000};
	static struct pack pack, copy;
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;
	static char text[4096];
	size_t ends[4];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		cr_assert_eq(tell(numbers[i], "abcde", 5, text, sizeof(text)), 0);
		cr_assert_str_eq(text, numbers[i] == 32 ? "domains[5]" : "bytes[5]");
		cr_assert(numbers[i] == 32 || !perfring_feature_name(numbers[i]));
	}
	build(&pack, "w0 w0 ? w1 w2 w3 w4", false, ends);
	perfring_feature_open(&walk, PERFRING_FEATURE_CPU_TOPOLOGY, pack.bytes, pack.size, 0);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_eq(perfring_layout_next(&walk, &member), 1);
	cr_assert_str_eq(member.name, "rest");
	cr_assert_eq(member.size, 16);
	cr_assert_eq(perfring_layout_next(&walk, &member), 0);
	/* an attr whose size is none, but one in the other order: turned twice it is the same */
	build(&pack, "w1 w64 y0 y0 y0 y0 y0 y0 y0 y64 x56 w0 sname", false, ends);
	build(&copy, "w1 w64 y0 y0 y0 y0 y0 y0 y0 y64 x56 w0 sname", false, ends);
	cr_assert_eq(perfring_feature_swap(PERFRING_FEATURE_EVENT_DESC, pack.bytes, pack.size, 2, true), -EBADMSG);
	cr_assert_eq(perfring_feature_swap(PERFRING_FEATURE_EVENT_DESC, pack.bytes, pack.size, 2, false), -EBADMSG);
	cr_assert_eq(memcmp(pack.bytes, copy.bytes, pack.size), 0);
	/* counts that lie: no more steps than there are bytes */
	build(&pack, "d0xffffffffffffffff d1 d2", false, ends);
	cr_assert_eq(tell(PERFRING_FEATURE_AUXTRACE, pack.bytes, pack.size, text, sizeof(text)), -EBADMSG);
	build(&pack, "w0xffffffff sa sb", false, ends);
	cr_assert_eq(tell(PERFRING_FEATURE_CMDLINE, pack.bytes, pack.size, text, sizeof(text)), -EBADMSG);
}

/* All of them, through files and streams of either order. */
static void put_features(struct perfring_file_writer *writer, struct pack *pack)
{
	size_t ends[4];

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		build(pack, features[i].members, false, ends);
		/* CPU_TOPOLOGY goes by NRCPUS, and the directory's is not for one file */
		if (features[i].feature == 7)
			half_at(pack, 0, 2);
		if (features[i].feature != 24)
			cr_assert_eq(perfring_file_writer_put_feature(writer, features[i].feature, pack->bytes, pack->size), 0);
	}
}

Test(feature, kept_features)
{
	static struct pack pack;
	static char text[4096];
	size_t ends[4];
	int fd, last;

	make_folder();
	/* Before begin, after it, and twice: what a stream has is not in it again. */
	for (int number = 0; number < 12; number++) {
		struct mode mode = {number & 1, number & 2, 0};
		struct perfring_file_writer *writer = create(mode, &fd);
		struct perf_event_attr attr = attr_of(TIMED);
		struct perfring_file *data;
		struct perfring_item item;
		uint64_t before;
		size_t i;

		cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
		if (number / 4 != 1)
			put_features(writer, &pack);
		cr_assert_eq(perfring_file_writer_begin(writer), 0);
		write_timed(writer, 1);
		before = perfring_file_writer_size(writer);
		if (number / 4 != 0)
			put_features(writer, &pack);
		cr_assert_eq(perfring_file_writer_size(writer) > before, mode.is_stream && number / 4 == 1);
		end(writer, fd);
		cr_assert_eq(perfring_file_open(&data, path), 0);
		while ((last = perfring_file_next(data, &item)) == 1)
			;
		cr_assert_eq(last, 0);
		for (i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
			uint32_t feature = features[i].feature;
			uint64_t size;
			const void *payload = perfring_file_feature(data, feature, &size);

			/* EVENT_DESC is the writer's own; BUILD_ID's records have a type in a stream; perf takes no
			 * BPF of another byte order */
			if (feature == 24 || (mode.is_foreign && (feature == 25 || feature == 26)))
				continue;
			/* nor a record of no bytes */
			if (mode.is_stream && !*features[i].members) {
				cr_assert_null(payload);
				continue;
			}
			cr_assert_not_null(payload, "%u in %d", feature, number);
			build(&pack, features[i].members, false, ends);
			if (feature == 7)
				half_at(&pack, 0, 2);
			if (feature == 12) {
				cr_assert_eq(tell(feature, payload, (size_t)size, text, sizeof(text)), 0);
				cr_assert_not_null(strstr(text, "name=\"one\""));
			} else if (feature == 2) {
				cr_assert_eq(size, pack.size);
				cr_assert_eq(memcmp((const char *)payload + 6, pack.bytes + 6, 38), 0);
			} else {
				/* tracing data is padded in a stream */
				cr_assert_leq(pack.size, size);
				cr_assert_lt(size, pack.size + (feature == 1 ? 8 : 1));
				cr_assert_eq(memcmp(payload, pack.bytes, pack.size), 0, "%u in %d", feature, number);
			}
		}
		perfring_file_close(data);
	}
	remove_folder();
}

/* ---- build ids ---- */

struct elf {
	bool is_long, is_foreign;
	struct pack pack;
};

static void put_half(struct elf *elf, uint32_t value)
{
	half(&elf->pack, elf->is_foreign ? __builtin_bswap32(value) : value);
}

static void put_quarter(struct elf *elf, uint16_t value)
{
	quarter(&elf->pack, elf->is_foreign ? __builtin_bswap16(value) : value);
}

/* As wide as an address of its class. */
static void put_wide(struct elf *elf, uint64_t value)
{
	if (elf->is_long)
		word(&elf->pack, turned(value, elf->is_foreign));
	else
		put_half(elf, (uint32_t)value);
}

static void put_segment(struct elf *elf, uint32_t type, uint64_t offset, uint64_t size)
{
	put_half(elf, type);
	if (elf->is_long)
		put_half(elf, 4);
	put_wide(elf, offset);
	put_wide(elf, 0);
	put_wide(elf, 0);
	put_wide(elf, size);
	put_wide(elf, size);
	if (!elf->is_long)
		put_half(elf, 4);
	put_wide(elf, 4);
}

/* Two segments, of which the second has a note of another kind and that of the build id, `length` bytes long. */
static void make_elf(struct elf *elf, bool is_long, bool is_foreign, uint32_t name, uint32_t length)
{
	bool is_big = is_foreign == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	size_t segments = is_long ? 64 : 52, entry = is_long ? 56 : 32, notes = segments + 2 * entry;

	elf->is_long = is_long;
	elf->is_foreign = is_foreign;
	elf->pack.size = 0;
	bytes(&elf->pack,
	      "\x7f"
	      "ELF",
	      4);
	bytes(&elf->pack, is_long ? "\2" : "\1", 1);
	bytes(&elf->pack, is_big ? "\2" : "\1", 1);
	bytes(&elf->pack, "\1\0\0\0\0\0\0\0\0\0", 10);
	put_quarter(elf, 3);
	put_quarter(elf, 62);
	put_half(elf, 1);
	put_wide(elf, 0);
	put_wide(elf, segments);
	put_wide(elf, 0);
	put_half(elf, 0);
	put_quarter(elf, (uint16_t)segments);
	put_quarter(elf, (uint16_t)entry);
	put_quarter(elf, 2);
	put_quarter(elf, 0);
	put_quarter(elf, 0);
	put_quarter(elf, 0);
	cr_assert_eq(elf->pack.size, segments);
	put_segment(elf, 1, 0, 1000);
	put_segment(elf, 4, notes, 12 + 8 + 4 + 12 + 4 + length);
	cr_assert_eq(elf->pack.size, notes);
	put_half(elf, 6);
	put_half(elf, 4);
	put_half(elf, 1);
	bytes(&elf->pack, "Other\0\0\0desc", 12);
	put_half(elf, name);
	put_half(elf, length);
	put_half(elf, 3);
	bytes(&elf->pack, "GNU", 4);
	for (uint32_t i = 0; i < length && i < 64; i++)
		bytes(&elf->pack, (unsigned char[]){(unsigned char)(i + 1)}, 1);
}

Test(feature, build_ids)
{
	static const uint32_t lengths[] = {20, 16, 8, 1, 0, 21, 64, 0xffffffff};
	static const uint32_t names[] = {4, 0, 5, 0xfffffffc, 0xffffffff};
	static struct elf elf;
	uint8_t id[PERFRING_BUILD_ID_SIZE], expected[PERFRING_BUILD_ID_SIZE];
	size_t i, cut;

	make_folder();
	for (i = 0; i < PERFRING_BUILD_ID_SIZE; i++)
		expected[i] = (uint8_t)(i + 1);
	for (int number = 0; number < 4; number++) {
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			bool is_good = lengths[i] && lengths[i] <= 20;

			make_elf(&elf, number & 1, number & 2, 4, lengths[i]);
			set_memory(elf.pack.bytes, elf.pack.size);
			cr_assert_eq(perfring_build_id_of(path, id), is_good ? (int64_t)lengths[i] : -ENODATA);
			if (is_good)
				cr_assert_eq(memcmp(id, expected, lengths[i]), 0);
		}
		for (i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
			make_elf(&elf, number & 1, number & 2, names[i], 20);
			set_memory(elf.pack.bytes, elf.pack.size);
			cr_assert_eq(perfring_build_id_of(path, id), -ENODATA);
		}
		make_elf(&elf, number & 1, number & 2, 4, 20);
		for (cut = 0; cut < elf.pack.size; cut++) {
			int64_t got;

			set_memory(elf.pack.bytes, cut);
			got = perfring_build_id_of(path, id);
			cr_assert(got == -EINVAL || got == -ENODATA, "%zu: %lld", cut, (long long)got);
		}
		/* each byte of header, segments and notes, as wrong as it can be: an answer, and no access outside */
		for (cut = 0; cut < elf.pack.size; cut++) {
			unsigned char good = elf.pack.bytes[cut];
			int64_t got;

			elf.pack.bytes[cut] = 0xff;
			set_memory(elf.pack.bytes, elf.pack.size);
			got = perfring_build_id_of(path, id);
			cr_assert(got == -EINVAL || got == -ENODATA || got == 20, "%zu: %lld", cut, (long long)got);
			elf.pack.bytes[cut] = good;
		}
	}
	cr_assert_eq(perfring_build_id_of("/no/such/file", id), -ENOENT);
	cr_assert_eq(perfring_build_id_of("/dev/null", id), -EINVAL);
	cr_assert_eq(perfring_build_id_of(folder, id), -EINVAL);
	set_memory("#!/bin/sh\n", 10);
	cr_assert_eq(perfring_build_id_of(path, id), -EINVAL);
	remove_folder();
}

/* ---- sizes that lie ---- */

/* Opens and reads it, and asks for every feature. */
static int read_whole(const char *name)
{
	struct perfring_item item;
	struct perfring_file *data;
	int last = perfring_file_open(&data, name);

	if (!last) {
		do
			last = perfring_file_next(data, &item);
		while (last == 1);
		for (uint32_t feature = 0; feature < PERFRING_FEATURE_BITS; feature++)
			perfring_file_feature(data, feature, NULL);
	}
	perfring_file_close(data);
	return last;
}

/* A small file in which each word in turn says petabytes, and other sizes that nobody has: with little memory to be had,
 * it is never memory that is wanting. */
static void lie(bool is_foreign, bool is_stream)
{
	static const uint64_t lies[] = {
		UINT64_MAX,        UINT64_MAX / 2, UINT64_C(1) << 50, UINT64_C(1) << 40,
		UINT64_C(1) << 32, 0x7fffffff,     0xffffffff,        UINT64_C(0xffffffff00000000)};
	struct {
		struct perf_event_header header;
		uint64_t size, offset, reference;
		uint32_t index, tid, cpu, reserved;
	} record = {{PERFRING_RECORD_AUXTRACE, 0, 48}, 8, 0, 0, 0, 0, 0, 0};
	struct perf_event_attr attr = attr_of(TIMED | PERFRING_SAMPLE_IDENTIFIER);
	struct perfring_file_writer *writer;
	struct rlimit limit = {0, 0};
	size_t size, ends[4];
	static struct pack pack;
	unsigned char *file;
	int fd, status;
	pid_t child;

	make_folder();
	writer = create((struct mode){is_stream, is_foreign, 0}, &fd);
	cr_assert_eq(perfring_file_writer_add_event(writer, &attr, "one"), 0);
	cr_assert_eq(perfring_file_writer_add_id(writer, 0, 7), 0);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		build(&pack, features[i].members, false, ends);
		if (features[i].feature != PERFRING_FEATURE_DIR_FORMAT)
			cr_assert_eq(perfring_file_writer_put_feature(writer, features[i].feature, pack.bytes, pack.size), 0);
	}
	cr_assert_eq(perfring_file_writer_begin(writer), 0);
	cr_assert_eq(perfring_file_writer_end_round(writer), 0);
	cr_assert_eq(perfring_file_writer_put_auxtrace(writer, &record.header, &(struct iovec){(char[8]){"8 bytes"}, 8}, 1), 0);
	end(writer, fd);
	file = get_file(&size);
	remove_folder();
	set_memory(file, size);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		unsigned long pages = 0;
		FILE *statm = fopen("/proc/self/statm", "r");
		int code = 0;

		if (!statm || fscanf(statm, "%lu", &pages) != 1)
			_exit(2);
		/* what is there, and the blocks of a reader at rest */
		limit.rlim_cur = limit.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16u << 20);
		if (!IS_SANITIZED && setrlimit(RLIMIT_AS, &limit))
			_exit(3);
		for (size_t at = 0; at + 8 <= size && !code; at += is_long() ? 4 : IS_SANITIZED ? 36 : 12)
			for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]) && !code; i++) {
				uint64_t told = turned(lies[i], is_foreign), true_word;

				memcpy(&true_word, file + at, 8);
				memcpy(file + at, &told, 8);
				set_memory(file, size);
				code = read_whole(path) == -ENOMEM ? 4 : 0;
				memcpy(file + at, &true_word, 8);
			}
		_exit(code);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%x", (unsigned)status);
	free(file);
}

Test(feature, lies)
{
	for (int number = 0; number < 4; number++)
		lie(number & 1, number & 2);
}
