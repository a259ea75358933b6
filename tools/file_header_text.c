/* file_header_text.c - header and features of a file as text, in perf's words where perf has any.
 *
 * tool_header_print and tool_attr_print of tools.h, for dump, script, report and evlist.  A feature with words of perf's has a
 * function; others are printed member by member (feature.h).  Payloads are foreign, and their texts escaped.
 */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "event_groups.h"
#include "tools.h"

/* The features that the perf of these words (6.1) knows. */
#define PERF_FEATURES 32

static uint32_t cpus_of(const struct perfring_file *data)
{
	uint64_t size = 0;
	const void *payload = perfring_file_feature(data, PERFRING_FEATURE_NRCPUS, &size);
	uint32_t cpus = 0;

	if (payload && size >= sizeof(cpus))
		memcpy(&cpus, payload, sizeof(cpus));
	return cpus;
}

static bool begin(const struct perfring_file *data, uint32_t feature, struct perfring_layout_walk *walk)
{
	uint64_t size = 0;
	const void *payload = perfring_file_feature(data, feature, &size);

	if (payload)
		perfring_feature_open(walk, feature, payload, size, cpus_of(data));
	return payload;
}

static bool is(const struct perfring_layout_member *member, const char *name)
{
	return !strcmp(member->name, name);
}

static void put(const void *text)
{
	tool_print(stdout, text, 0, false);
}

/* ---- the file ---- */

static bool print_file(const struct perfring_file *data, const char *path)
{
	uint64_t words[13] = {0};
	char name[4096], when[32];
	struct stat file;
	bool is_stdin = !strcmp(path, "-");
	ssize_t got = 0;
	size_t done = 0;
	int fd;

	snprintf(name, sizeof(name), "%s%s", path,
		 !is_stdin && !stat(path, &file) && S_ISDIR(file.st_mode) ? "/data" : "");
	printf("# ========\n");
	fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &file)) {
		got = -1;
	} else {
		/* a year that takes more than ten digits has no text */
		if (ctime_r(&file.st_mtime, when))
			printf("# captured on    : %s", when);
		else
			printf("# captured on    : %lld s after 1970\n", (long long)file.st_mtime);
		while (!perfring_file_is_pipe(data) && S_ISREG(file.st_mode) && done < sizeof(words) &&
		       (got = pread(fd, (char *)words + done, sizeof(words) - done, (off_t)done)) > 0)
			done += (size_t)got;
	}
	if (got < 0)
		tool_complain("%s: its header: %s", name, strerror(errno));
	if (done < sizeof(words)) /* the oldest is shorter */
		memset(words, 0, sizeof(words));
	if (fd >= 0 && !is_stdin)
		close(fd);
	for (size_t i = 0; perfring_file_is_foreign(data) && i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = __builtin_bswap64(words[i]);
	printf("# header version : %d\n", 1);
	printf("# data offset    : %" PRIu64 "\n", words[5]);
	printf("# data size      : %" PRIu64 "\n", words[6]);
	printf("# feat offset    : %" PRIu64 "\n", words[5] + words[6]);
	if (perfring_file_is_pipe(data))
		printf("# ========\n#\n");
	return got >= 0;
}

/* ---- events ---- */

struct bit_name {
	uint64_t bit;
	const char *name;
};

#define BIT(NAME) \
	{ \
		PERFRING_SAMPLE_##NAME, #NAME \
	}
/* in the order in which perf names them */
static const struct bit_name sample_bits[] = {
	BIT(IP),
	BIT(TID),
	BIT(TIME),
	BIT(ADDR),
	BIT(READ),
	BIT(CALLCHAIN),
	BIT(ID),
	BIT(CPU),
	BIT(PERIOD),
	BIT(STREAM_ID),
	BIT(RAW),
	BIT(BRANCH_STACK),
	BIT(REGS_USER),
	BIT(STACK_USER),
	BIT(IDENTIFIER),
	BIT(REGS_INTR),
	BIT(DATA_SRC),
	BIT(WEIGHT),
	BIT(PHYS_ADDR),
	BIT(AUX),
	BIT(CGROUP),
	BIT(DATA_PAGE_SIZE),
	BIT(CODE_PAGE_SIZE),
	BIT(WEIGHT_STRUCT),
	BIT(TRANSACTION),
};
#undef BIT
#define BIT(NAME) \
	{ \
		PERFRING_FORMAT_##NAME, #NAME \
	}
static const struct bit_name read_bits[] = {
	BIT(TOTAL_TIME_ENABLED), BIT(TOTAL_TIME_RUNNING), BIT(ID), BIT(GROUP), BIT(LOST),
};
#undef BIT

/* What stands before and after the name of a member of an attr. */
struct style {
	const char *before, *equals;
};

static void print_name(struct style *style, const char *name)
{
	printf("%s%s%s", style->before, name, style->equals);
	style->before = ", ";
}

static void print_bits(struct style *style, const char *name, uint64_t value, const struct bit_name *bits, size_t nr)
{
	bool first = true;

	if (!value)
		return;
	print_name(style, name);
	for (size_t i = 0; i < nr; i++) {
		if (!(value & bits[i].bit))
			continue;
		printf("%s%s", first ? "" : "|", bits[i].name);
		first = false;
	}
}

static const struct bit_name branch_bits[] = {
	{PERFRING_SAMPLE_BRANCH_USER, "USER"},
	{PERFRING_SAMPLE_BRANCH_KERNEL, "KERNEL"},
	{PERFRING_SAMPLE_BRANCH_HV, "HV"},
	{PERFRING_SAMPLE_BRANCH_ANY, "ANY"},
	{PERFRING_SAMPLE_BRANCH_ANY_CALL, "ANY_CALL"},
	{PERFRING_SAMPLE_BRANCH_ANY_RETURN, "ANY_RETURN"},
	{PERFRING_SAMPLE_BRANCH_IND_CALL, "IND_CALL"},
	{PERFRING_SAMPLE_BRANCH_ABORT_TX, "ABORT_TX"},
	{PERFRING_SAMPLE_BRANCH_IN_TX, "IN_TX"},
	{PERFRING_SAMPLE_BRANCH_NO_TX, "NO_TX"},
	{PERFRING_SAMPLE_BRANCH_COND, "COND"},
	{PERFRING_SAMPLE_BRANCH_CALL_STACK, "CALL_STACK"},
	{PERFRING_SAMPLE_BRANCH_IND_JUMP, "IND_JUMP"},
	{PERFRING_SAMPLE_BRANCH_CALL, "CALL"},
	{PERFRING_SAMPLE_BRANCH_NO_FLAGS, "NO_FLAGS"},
	{PERFRING_SAMPLE_BRANCH_NO_CYCLES, "NO_CYCLES"},
	{PERFRING_SAMPLE_BRANCH_TYPE_SAVE, "TYPE_SAVE"},
	{PERFRING_SAMPLE_BRANCH_HW_INDEX, "HW_INDEX"},
	{PERFRING_SAMPLE_BRANCH_PRIV_SAVE, "PRIV_SAVE"},
};

static void print_decimal(struct style *style, const char *name, uint64_t value)
{
	if (!value)
		return;
	print_name(style, name);
	printf("%" PRIu64, value);
}

static void print_hex(struct style *style, const char *name, uint64_t value)
{
	if (!value)
		return;
	print_name(style, name);
	printf("0x%" PRIx64, value);
}

static void print_flags(struct style *style, uint64_t flags)
{
#define PERFRING_ATTR_FLAG(flag, bit, width) \
	print_decimal(style, #flag, flags >> (bit) & ((UINT64_C(1) << (width)) - 1));
#include <perfring/values.def>
}

struct members {
#define PERFRING_ATTR(member, offset, size, show) uint64_t member;
#include <perfring/values.def>
};

static uint64_t member_of(const struct perf_event_attr *attr, size_t offset, size_t size)
{
	return attr->size < offset + size ? 0 : tool_number((const unsigned char *)attr + offset, size);
}

/* Members that are 0 are left out. */
void tool_attr_print(const struct perf_event_attr *attr, const char *before, const char *equals)
{
	struct style style = {before, equals};
	struct members members;

#define PERFRING_ATTR(member, offset, size, show) members.member = member_of(attr, offset, size);
#include <perfring/values.def>
	print_decimal(&style, "type", members.type);
	print_decimal(&style, "size", members.size);
	print_hex(&style, "config", members.config);
	print_decimal(&style, "{ sample_period, sample_freq }", members.sample_period);
	print_bits(&style, "sample_type", members.sample_type, sample_bits,
		   sizeof(sample_bits) / sizeof(sample_bits[0]));
	print_bits(&style, "read_format", members.read_format, read_bits, sizeof(read_bits) / sizeof(read_bits[0]));
	print_flags(&style, members.flags);
	print_decimal(&style, "{ wakeup_events, wakeup_watermark }", members.wakeup_events);
	print_decimal(&style, "bp_type", members.bp_type);
	print_hex(&style, "{ bp_addr, config1 }", members.config1);
	print_hex(&style, "{ bp_len, config2 }", members.config2);
	print_bits(&style, "branch_sample_type", members.branch_sample_type, branch_bits,
		   sizeof(branch_bits) / sizeof(branch_bits[0]));
	print_hex(&style, "sample_regs_user", members.sample_regs_user);
	print_decimal(&style, "sample_stack_user", members.sample_stack_user);
	if (members.clockid) {
		print_name(&style, "clockid");
		printf("%" PRId32, (int32_t)members.clockid);
	}
	print_hex(&style, "sample_regs_intr", members.sample_regs_intr);
	print_decimal(&style, "aux_watermark", members.aux_watermark);
	print_decimal(&style, "sample_max_stack", members.sample_max_stack);
	print_decimal(&style, "aux_sample_size", members.aux_sample_size);
	print_decimal(&style, "sig_data", members.sig_data);
	print_hex(&style, "config3", members.config3);
	print_hex(&style, "config4", members.config4);
}

static void print_event(const struct perfring_file *data, uint32_t event, const struct perf_event_attr *attr)
{
	const char *name = perfring_file_event_name(data, event);
	const char *between = ", id = { ";
	uint64_t id;

	printf("# event : name = ");
	put(name ? name : "?");
	printf(", ");
	for (uint32_t i = 0; perfring_file_event_id(data, event, i, &id) == 1; i++, between = ", ")
		printf("%s%" PRIu64, between, id);
	if (*between == ',' && between[1] == ' ' && !between[2])
		printf(" }");
	tool_attr_print(attr, ", ", " = ");
	putchar('\n');
}

static void print_events(const struct perfring_file *data)
{
	const struct perf_event_attr *attr;

	for (uint32_t event = 0; (attr = perfring_file_attr(data, event)); event++)
		print_event(data, event, attr);
}

/* ---- features that perf has words for ---- */

static void print_numbers_of_cpus(const struct perfring_layout_walk *from)
{
	struct perfring_layout_walk walk = *from;
	struct perfring_layout_member available, online;

	if (perfring_layout_next(&walk, &available) == 1 && perfring_layout_next(&walk, &online) == 1)
		printf("# nrcpus online : %" PRIu64 "\n# nrcpus avail : %" PRIu64 "\n", online.number,
		       available.number);
}

static void print_words(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;

	printf("# cmdline : ");
	while (perfring_layout_next(walk, &member) == 1) {
		if (member.kind != PERFRING_LAYOUT_STRING)
			continue;
		put(member.bytes);
		putchar(' ');
	}
	putchar('\n');
}

static void print_topology(struct perfring_layout_walk *walk)
{
	struct perfring_layout_walk again = *walk;
	struct perfring_layout_member member, die;
	uint64_t core = 0;
	bool has_dies = false;
	size_t cpu = 0;

	/* up to the dies of the CPUs, which come after their cores and sockets */
	while (!has_dies && perfring_layout_next(walk, &member) == 1)
		has_dies = is(&member, "die_lists");
	/* the lists come in the order in which they are printed, except that of the dies, which comes after the CPUs */
	for (int round = 0; round < 2; round++) {
		struct perfring_layout_walk one = again;

		while (perfring_layout_next(&one, &member) == 1) {
			const char *what = is(&member, "cores")  ? "sockets"
					   : is(&member, "dies") ? "dies   "
								 : "threads";

			if (!is(&member, "cores") && !is(&member, "dies") && !is(&member, "threads"))
				continue;
			if (is(&member, "threads") != (round == 1))
				continue;
			printf("# sibling %s : ", what);
			put(member.bytes);
			putchar('\n');
		}
	}
	while (perfring_layout_next(&again, &member) == 1) {
		if (is(&member, "core"))
			core = member.number;
		if (!is(&member, "socket"))
			continue;
		printf("# CPU %zu: Core ID %" PRId32 ", ", cpu++, (int32_t)core);
		while (has_dies && (has_dies = perfring_layout_next(walk, &die) == 1) && !is(&die, "die"))
			;
		if (has_dies)
			printf("Die ID %" PRId32 ", ", (int32_t)die.number);
		printf("Socket ID %" PRId32 "\n", (int32_t)member.number);
	}
}

static void print_nodes(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;
	uint64_t node = 0, total = 0;

	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "node")) {
			node = member.number;
		} else if (is(&member, "total")) {
			total = member.number;
		} else if (is(&member, "free")) {
			printf("# node%" PRIu64 " meminfo  : total = %" PRIu64 " kB, free = %" PRIu64 " kB\n", node,
			       total, member.number);
		} else if (is(&member, "cpus")) {
			printf("# node%" PRIu64 " cpu list : ", node);
			put(member.bytes);
			putchar('\n');
		}
	}
}

static void print_pmus(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;
	uint64_t type = 0;
	bool first = true;

	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "type"))
			type = member.number;
		if (!is(&member, "name"))
			continue;
		printf("%s", first ? "# pmu mappings: " : ", ");
		put(member.bytes);
		printf(" = %" PRIu64, type);
		first = false;
	}
	printf("%s", first ? "# pmu mappings: not available\n" : "\n");
}

static void print_groups(const struct perfring_file *data)
{
	struct tool_groups groups;
	struct tool_group group;
	const char *event;

	for (tool_groups_open(&groups, data); tool_groups_next(&groups, &group);) {
		printf("# group: ");
		put(group.name);
		for (uint32_t i = 0; i < group.members; i++) {
			event = perfring_file_event_name(data, group.leader + i);
			putchar(i ? ',' : '{');
			put(event ? event : "?");
		}
		printf("}\n");
	}
}

static void print_caches(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;
	const char *type = "", *size = "";
	uint64_t level = 0;

	printf("# CPU cache info:\n");
	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "level")) {
			level = member.number;
		} else if (is(&member, "type")) {
			type = member.bytes;
		} else if (is(&member, "size")) {
			size = member.bytes;
		} else if (is(&member, "map")) {
			printf("#  L%" PRIu64 " ", level);
			tool_print(stdout, type, 15, false);
			putchar(' ');
			tool_print_right(stdout, size, 8);
			printf(" [");
			put(member.bytes);
			printf("]\n");
		}
	}
}

static void print_times(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member first, last;

	if (perfring_layout_next(walk, &first) != 1 || perfring_layout_next(walk, &last) != 1)
		return;
	printf("# time of first sample : %" PRIu64 ".%06" PRIu64 "\n", first.number / 1000000000,
	       first.number % 1000000000 / 1000);
	printf("# time of last sample : %" PRIu64 ".%06" PRIu64 "\n", last.number / 1000000000,
	       last.number % 1000000000 / 1000);
	printf("# sample duration : %10.3f ms\n", (double)(last.number - first.number) / 1e6);
}

/* The bits of a node's map as ranges, as far as they go. */
struct ranges {
	uint64_t first;
	uint64_t next;
	bool is_open;
	bool is_later;
};

static void end_range(struct ranges *ranges)
{
	if (!ranges->is_open)
		return;
	printf("%s%" PRIu64, ranges->is_later ? "," : "", ranges->first);
	if (ranges->next - 1 > ranges->first)
		printf("-%" PRIu64, ranges->next - 1);
	ranges->is_open = false;
	ranges->is_later = true;
}

static void put_words_bits(struct ranges *ranges, uint64_t word, uint64_t base)
{
	for (uint64_t bit = 0; bit < 64; bit++) {
		if (!(word >> bit & 1)) {
			end_range(ranges);
			continue;
		}
		if (!ranges->is_open)
			ranges->first = base + bit;
		ranges->is_open = true;
		ranges->next = base + bit + 1;
	}
}

static void print_memory(struct perfring_layout_walk *walk)
{
	static const char units[] = "BKMG";
	struct perfring_layout_walk node = *walk;
	struct perfring_layout_member member;
	uint64_t block = 0, bytes, at = 0;
	struct ranges ranges = {0};
	bool is_first = true;
	size_t unit;

	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "block_size")) {
			block = member.number;
		} else if (is(&member, "nodes")) {
			printf("# memory nodes (nr %" PRIu64 ", block size 0x%" PRIx64 "):\n", member.number, block);
		} else if (is(&member, "node")) {
			if (!is_first) {
				end_range(&ranges);
				putchar('\n');
			}
			is_first = false;
			printf("#  %3" PRIu64 " ", member.number);
		} else if (is(&member, "bits")) {
			/* the number of blocks comes before the blocks */
			bytes = 0;
			node = *walk;
			while (perfring_layout_next(&node, &member) == 1 && is(&member, "word"))
				bytes += (uint64_t)__builtin_popcountll(member.number) * block;
			for (unit = 0; unit < sizeof(units) - 2 && bytes / 1024; unit++)
				bytes /= 1024;
			printf("[%" PRIu64 "%c]: ", bytes, units[unit]);
			memset(&ranges, 0, sizeof(ranges));
			at = 0;
		} else if (is(&member, "word")) {
			put_words_bits(&ranges, member.number, at);
			at += 64;
		}
	}
	end_range(&ranges);
	if (!is_first)
		putchar('\n');
}

static const char *clock_name(uint64_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return "realtime";
	case CLOCK_MONOTONIC:
		return "monotonic";
	case CLOCK_MONOTONIC_RAW:
		return "monotonic_raw";
	case CLOCK_BOOTTIME:
		return "boottime";
	case CLOCK_TAI:
		return "tai";
	default:
		return "(not found)";
	}
}

static void print_clock(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member version, clock, wall, own;
	char when[64] = "?";
	struct tm date;
	time_t seconds;

	if (perfring_layout_next(walk, &version) != 1 || perfring_layout_next(walk, &clock) != 1 ||
	    perfring_layout_next(walk, &wall) != 1 || perfring_layout_next(walk, &own) != 1)
		return;
	seconds = (time_t)(wall.number / 1000000000);
	if (localtime_r(&seconds, &date))
		strftime(when, sizeof(when), "%F %T", &date);
	printf("# clockid: %s (%" PRIu64 ")\n", clock_name(clock.number), clock.number);
	printf("# reference time: %s.%06" PRIu64 " = %" PRIu64 ".%06" PRIu64 " (TOD) = %" PRIu64 ".%09" PRIu64
	       " (%s)\n",
	       when, wall.number % 1000000000 / 1000, wall.number / 1000000000, wall.number % 1000000000 / 1000,
	       own.number / 1000000000, own.number % 1000000000, clock_name(clock.number));
}

static void print_compressed(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;
	uint64_t type = 0, level = 0;

	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "type"))
			type = member.number;
		else if (is(&member, "level"))
			level = member.number;
		else if (is(&member, "ratio"))
			printf("# compressed : %s, level = %" PRIu64 ", ratio = %" PRIu64 "\n",
			       type == 1 ? "Zstd" : "Unknown", level, member.number);
	}
}

/* "a=b, c=d" of one PMU. */
static void print_caps(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;
	bool first = true;

	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "name")) {
			printf("%s", first ? "# cpu pmu capabilities: " : ", ");
			put(member.bytes);
			first = false;
		} else if (is(&member, "value")) {
			putchar('=');
			put(member.bytes);
		}
	}
	printf("%s", first ? "# cpu pmu capabilities: not available\n" : "\n");
}

/* Of each PMU: its name comes after its capabilities. */
static void print_caps_of_pmus(struct perfring_layout_walk *walk)
{
	struct perfring_layout_walk ahead = *walk;
	struct perfring_layout_member pmu, member;
	bool first;

	perfring_layout_next(&ahead, &pmu); /* how many there are */
	perfring_layout_next(walk, &member);
	while (perfring_layout_next(&ahead, &pmu) == 1) {
		if (!is(&pmu, "pmu"))
			continue;
		printf("# ");
		put(pmu.bytes);
		printf(" pmu capabilities: ");
		first = true;
		while (perfring_layout_next(walk, &member) == 1 && !is(&member, "pmu")) {
			if (is(&member, "name")) {
				printf("%s", first ? "" : ", ");
				put(member.bytes);
				first = false;
			} else if (is(&member, "value")) {
				putchar('=');
				put(member.bytes);
			}
		}
		printf("%s", first ? "not available\n" : "\n");
	}
}

static void print_hybrid(struct perfring_layout_walk *walk)
{
	struct perfring_layout_member member;

	printf("# hybrid cpu system:\n");
	while (perfring_layout_next(walk, &member) == 1) {
		if (is(&member, "pmu")) {
			printf("# ");
			put(member.bytes);
		} else if (is(&member, "cpus")) {
			printf(" cpu list : ");
			put(member.bytes);
			putchar('\n');
		}
	}
}

/* ---- the others: every member by its name ---- */

static void print_bytes(const void *bytes, uint64_t size)
{
	const unsigned char *byte = bytes;

	printf("{size=%" PRIu64, size);
	for (uint64_t i = 0; i < size && i < 16; i++)
		printf("%s%02x", i ? "" : " ", byte[i]);
	printf("%s}", size > 16 ? "..." : "");
}

static void print_members(uint32_t feature, struct perfring_layout_walk *walk)
{
	const char *name = perfring_feature_name(feature);
	struct perfring_layout_member member;
	int one;

	if (name)
		printf("# %s:", name);
	else
		printf("# feature %" PRIu32 ":", feature);
	while ((one = perfring_layout_next(walk, &member)) == 1) {
		printf(" %s=", member.name);
		switch (member.kind) {
		case PERFRING_LAYOUT_NUMBER:
			printf("%" PRIu64, member.number);
			break;
		case PERFRING_LAYOUT_STRING:
			put(member.bytes);
			break;
		default:
			print_bytes(member.bytes, member.size);
			break;
		}
	}
	if (one < 0)
		printf(" (damaged: %s)", walk->fault.what);
	putchar('\n');
}

static void print_build_ids(struct perfring_layout_walk *walk)
{
	struct perfring_feature_build_id one;

	while (perfring_feature_next_build_id(walk, &one) == 1) {
		printf("# BUILD_ID: build_id=");
		for (size_t i = 0; i < one.id_size; i++)
			printf("%02x", one.id[i]);
		printf(" file=");
		for (size_t i = 0; i < one.name_size; i++)
			put((char[]){one.name[i], 0});
		putchar('\n');
	}
}

/* Long ones that perf has no word for ... */
static bool is_ours(uint32_t feature)
{
	switch (feature) {
	case PERFRING_FEATURE_TRACING_DATA:
	case PERFRING_FEATURE_BUILD_ID:
	case PERFRING_FEATURE_BPF_PROG_INFO:
	case PERFRING_FEATURE_BPF_BTF:
		return true;
	default:
		return false;
	}
}

/* ... and all that are kept for -I. */
static bool is_long(uint32_t feature)
{
	switch (feature) {
	case PERFRING_FEATURE_CPU_TOPOLOGY:
	case PERFRING_FEATURE_NUMA_TOPOLOGY:
	case PERFRING_FEATURE_CACHE:
	case PERFRING_FEATURE_MEM_TOPOLOGY:
		return true;
	default:
		return is_ours(feature);
	}
}

static void print_line(const struct perfring_file *data, const char *what, uint32_t feature)
{
	const char *text = perfring_file_string(data, feature);

	printf("# %s : ", what);
	put(text ? text : "");
	putchar('\n');
}

static void print_feature(const struct perfring_file *data, uint32_t feature, bool lists)
{
	struct perfring_layout_member member;
	struct perfring_layout_walk walk;

	if (!begin(data, feature, &walk))
		return;
	if (is_long(feature) && !lists) {
		if (!is_ours(feature))
			printf("# %s info available, use -I to display\n", perfring_feature_name(feature));
		return;
	}
	memset(&member, 0, sizeof(member));
	switch (feature) {
	case PERFRING_FEATURE_HOSTNAME:
		print_line(data, "hostname", feature);
		break;
	case PERFRING_FEATURE_OSRELEASE:
		print_line(data, "os release", feature);
		break;
	case PERFRING_FEATURE_VERSION:
		print_line(data, "perf version", feature);
		break;
	case PERFRING_FEATURE_ARCH:
		print_line(data, "arch", feature);
		break;
	case PERFRING_FEATURE_NRCPUS:
		print_numbers_of_cpus(&walk);
		break;
	case PERFRING_FEATURE_CPUDESC:
		print_line(data, "cpudesc", feature);
		break;
	case PERFRING_FEATURE_CPUID:
		print_line(data, "cpuid", feature);
		break;
	case PERFRING_FEATURE_TOTAL_MEM:
		perfring_layout_next(&walk, &member);
		printf("# total memory : %" PRIu64 " kB\n", member.number);
		break;
	case PERFRING_FEATURE_CMDLINE:
		print_words(&walk);
		break;
	case PERFRING_FEATURE_EVENT_DESC:
		print_events(data);
		break;
	case PERFRING_FEATURE_CPU_TOPOLOGY:
		print_topology(&walk);
		break;
	case PERFRING_FEATURE_NUMA_TOPOLOGY:
		print_nodes(&walk);
		break;
	case PERFRING_FEATURE_BRANCH_STACK:
		printf("# contains samples with branch stack\n");
		break;
	case PERFRING_FEATURE_PMU_MAPPINGS:
		print_pmus(&walk);
		break;
	case PERFRING_FEATURE_GROUP_DESC:
		print_groups(data);
		break;
	case PERFRING_FEATURE_STAT:
		printf("# contains stat data\n");
		break;
	case PERFRING_FEATURE_CACHE:
		print_caches(&walk);
		break;
	case PERFRING_FEATURE_SAMPLE_TIME:
		print_times(&walk);
		break;
	case PERFRING_FEATURE_MEM_TOPOLOGY:
		print_memory(&walk);
		break;
	case PERFRING_FEATURE_CLOCKID:
		perfring_layout_next(&walk, &member);
		printf("# clockid frequency: %" PRIu64 " MHz\n", member.number * 1000);
		break;
	case PERFRING_FEATURE_DIR_FORMAT:
		perfring_layout_next(&walk, &member);
		printf("# directory data version : %" PRIu64 "\n", member.number);
		break;
	case PERFRING_FEATURE_COMPRESSED:
		print_compressed(&walk);
		break;
	case PERFRING_FEATURE_CPU_PMU_CAPS:
		print_caps(&walk);
		break;
	case PERFRING_FEATURE_CLOCK_DATA:
		print_clock(&walk);
		break;
	case PERFRING_FEATURE_HYBRID_TOPOLOGY:
		print_hybrid(&walk);
		break;
	case PERFRING_FEATURE_PMU_CAPS:
		print_caps_of_pmus(&walk);
		break;
	case PERFRING_FEATURE_BUILD_ID:
		print_build_ids(&walk);
		break;
	case PERFRING_FEATURE_AUXTRACE:
		printf("# contains AUX area data (e.g. instruction trace)\n");
		print_members(feature, &walk);
		break;
	default:
		print_members(feature, &walk);
		break;
	}
}

bool tool_header_print(const struct perfring_file *data, const char *path, bool lists)
{
	bool good = print_file(data, path);

	/* a stream, or a file whose writer died, has attrs too */
	if (!perfring_file_feature(data, PERFRING_FEATURE_EVENT_DESC, NULL))
		print_events(data);
	for (uint32_t feature = 1; feature < PERFRING_FEATURE_BITS; feature++)
		print_feature(data, feature, lists);
	if (perfring_file_is_pipe(data))
		return good;
	printf("# missing features: ");
	for (uint32_t feature = 1; feature < PERF_FEATURES; feature++)
		if (!perfring_file_feature(data, feature, NULL))
			printf("%s ", perfring_feature_name(feature));
	printf("\n# ========\n#\n");
	return good;
}
