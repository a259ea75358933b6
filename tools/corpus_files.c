/* corpus_files.c - vectors of the conformance suite: perf's own records, attrs, features, and files of every form.
 *
 * Rows of a table of functions, each of which makes one vector by the functions of corpus.h; corpus.c walks them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "corpus.h"

#define BIT(n) (UINT64_C(1) << (n))
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define USUAL TOOL_VECTOR_USUAL
#define U8(key, number) tool_put_u8(d, key, (uint8_t)(number))
#define U16(key, number) tool_put_u16(d, key, (uint16_t)(number))
#define U32(key, number) tool_put_u32(d, key, (uint32_t)(number))
#define U64(key, number) tool_put_u64(d, key, number)
#define OPEN(key, bracket) tool_put_open(d, key, bracket)
#define CLOSE(bracket) tool_put_close(d, bracket)

enum {
	EVENT_TYPE = 65,
	FINISHED_ROUND = 68,
	COMPRESSED = 81,
	COMPRESSED2 = 83,
	FEATURE_COMPRESSED = 27,
	FEATURE_HOSTNAME = 3,
};

static void sample(struct tool_vector *v)
{
	tool_vector_add_sample(v, &v->data, 0);
}

static uint64_t draw(struct tool_vector *v, uint64_t below)
{
	return tool_vector_draw(v, below);
}

static void put_drawn(struct tool_vector *v, struct tool_draft *d, const char *key, size_t size)
{
	unsigned char bytes[256];

	for (size_t i = 0; i < size && i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)draw(v, 256);
	tool_put_bytes(d, key, bytes, size);
}

static void empty_record(struct tool_draft *d, uint32_t type)
{
	tool_record_end(d, tool_record_begin(d, type, 0));
}

/* ---- records of perf ---- */

static void put_cpu_map(struct tool_draft *d, unsigned form)
{
	size_t begin = d->bytes.size;

	OPEN("cpus", '{');
	U16("type", form < 3 ? 0 : form < 5 ? 1 : 2);
	switch (form) {
	case 0: /* a list, of no CPU */
	case 1: /* a list */
	case 2: /* any CPU */
		U16(NULL, form == 0 ? 0 : form == 1 ? 3 : 1);
		OPEN("cpus", '[');
		for (uint16_t cpu = 0; form == 1 && cpu < 3; cpu++)
			U16("", cpu * 5);
		if (form == 2)
			U16("", UINT16_MAX);
		CLOSE(']');
		break;
	case 3: /* masks of 4 and 8 bytes */
	case 4:
		U16(NULL, 2);
		U16(NULL, form == 3 ? 4 : 8);
		tool_put_zeros(d, form == 3 ? 0 : 4);
		OPEN("mask", '[');
		for (unsigned i = 0; i < 2; i++) {
			tool_say_u64(d, "", 0x81 + i);
			if (form == 3)
				U32(NULL, 0x81 + i);
			else
				U64(NULL, 0x81 + i);
		}
		CLOSE(']');
		break;
	default: /* a range */
		U8("any_cpu", form - 5);
		tool_put_zeros(d, 1);
		U16("first", 2);
		U16("last", 7);
		break;
	}
	CLOSE('}');
	tool_put_padding(d, begin);
}

static void put_index(struct tool_draft *d, struct tool_vector *v, uint64_t nr, bool has_machines)
{
	U64(NULL, nr);
	OPEN("index", '[');
	for (uint64_t i = 0; i < nr; i++) {
		OPEN("", '{');
		U64("id", v->ids[0][0] + i);
		U64("idx", i);
		U64("cpu", i ? i : UINT64_MAX);
		U64("tid", i ? UINT64_MAX : 1000);
		if (has_machines) { /* they lie after all entries */
			tool_say_u64(d, "machine_pid", 77 + i);
			tool_say_u64(d, "vcpu", i);
		}
		CLOSE('}');
	}
	CLOSE(']');
	for (uint64_t i = 0; i < nr && has_machines; i++) {
		U64(NULL, 77 + i);
		U64(NULL, i);
	}
}

static const struct {
	const char *name;
	uint32_t type;
	unsigned form;
} perf_records[] = {
	{"event_type", 65, 64},         {"event_type-short", 65, 16},
	{"header_build_id", 67, 20},    {"header_build_id-16", 67, 16},
	{"header_build_id-old", 67, 0}, {"finished_round", 68, 0},
	{"id_index-empty", 69, 0},      {"id_index", 69, 2},
	{"id_index-machines", 69, 12},  {"auxtrace_info", 70, 1},
	{"auxtrace_info-plain", 70, 0}, {"auxtrace", 71, 0},
	{"auxtrace-empty", 71, 1},      {"auxtrace_error-0", 72, 0},
	{"auxtrace_error-1", 72, 1},    {"auxtrace_error-2", 72, 2},
	{"thread_map-empty", 73, 0},    {"thread_map", 73, 2},
	{"cpu_map-none", 74, 0},        {"cpu_map-list", 74, 1},
	{"cpu_map-any", 74, 2},         {"cpu_map-mask4", 74, 3},
	{"cpu_map-mask8", 74, 4},       {"cpu_map-range", 74, 5},
	{"cpu_map-range-any", 74, 6},   {"stat_config", 75, 3},
	{"stat_config-empty", 75, 0},   {"stat", 76, 0},
	{"stat_round", 77, 0},          {"stat_round-final", 77, 1},
	{"event_update-unit", 78, 0},   {"event_update-scale", 78, 1},
	{"event_update-name", 78, 2},   {"event_update-cpus", 78, 3},
	{"time_conv", 79, 1},           {"time_conv-short", 79, 0},
	{"finished_init", 82, 0},       {"bpf_metadata", 84, 2},
	{"bpf_metadata-empty", 84, 0},  {"schedstat_cpu", 85, 0},
	{"schedstat_domain", 86, 0},    {"tracing_data-12", 66, 12},
	{"tracing_data-16", 66, 16},
};

static void put_perf_members(struct tool_vector *v, struct tool_draft *d, uint32_t type, unsigned form)
{
	switch (type) {
	case 65:
		U64("event_id", 7);
		tool_put_text(d, "name", "old-event", form);
		break;
	case 67:
		U32("pid", UINT32_MAX);
		put_drawn(v, d, "build_id", form ? form : 20);
		tool_put_zeros(d, form ? 20 - form : 0);
		U8(NULL, form);
		tool_put_zeros(d, 3);
		tool_put_text(d, "filename", "/usr/bin/true", 64);
		break;
	case 69:
		put_index(d, v, form % 10, form > 10);
		break;
	case 70:
		U32("type", 1);
		U32("pad", 0);
		OPEN("priv", '[');
		for (unsigned i = 0; i < form * 4; i++)
			U64("", draw(v, 1000));
		CLOSE(']');
		break;
	case 71:
		U64("size", form ? 0 : 24);
		U64("offset", 0x10000);
		U64("reference", draw(v, 0));
		U32("idx", 3);
		U32("tid", UINT32_MAX);
		U32("cpu", 2);
		U32("pad", 0);
		break;
	case 72:
		U32("type", 1);
		U32("code", 6);
		U32("cpu", 2);
		U32("pid", 1000);
		U32("tid", 1001);
		U32("fmt", form);
		U64("ip", 0x401000);
		if (form >= 1)
			U64("time", 2000000000);
		tool_put_text(d, "msg", "Overflow packet", 64);
		if (form >= 2) {
			U32("machine_pid", 77);
			U32("vcpu", 1);
		}
		break;
	case 73:
		U64(NULL, form);
		OPEN("threads", '[');
		for (unsigned i = 0; i < form; i++) {
			OPEN("", '{');
			U64("pid", 1000 + i);
			tool_put_text(d, "comm", i ? "a-second-thread" : "first", 16);
			CLOSE('}');
		}
		CLOSE(']');
		break;
	case 74:
		put_cpu_map(d, form);
		break;
	case 75:
		U64(NULL, form);
		OPEN("config", '[');
		for (unsigned i = 0; i < form; i++) {
			OPEN("", '[');
			U64("", i);
			U64("", i == 1 ? 1000 : 1);
			CLOSE(']');
		}
		CLOSE(']');
		break;
	case 76:
		U64("id", v->ids[0][0]);
		U32("cpu", 3);
		U32("thread", UINT32_MAX);
		U64("val", draw(v, 1000000));
		U64("ena", 1000000);
		U64("run", 900000);
		break;
	case 77:
		U64("type", form);
		U64("time", 3000000000);
		break;
	case 78:
		U64("type", form);
		U64("id", v->ids[0][0]);
		if (form == 0)
			tool_put_text(d, "text", "Joules", 0);
		else if (form == 1)
			U64("scale", UINT64_C(0x3e12e0be826d694b)); /* 1e-9 */
		else if (form == 2)
			tool_put_text(d, "text", "renamed-event", 0);
		else
			put_cpu_map(d, 1);
		break;
	case 79:
		U64("time_shift", 31);
		U64("time_mult", 0x12345678);
		U64("time_zero", draw(v, 0));
		if (!form) {
			break;
		}
		OPEN("more", '{');
		U64("cycles", draw(v, 0));
		U64("mask", UINT64_C(0xffffffffffffff));
		U8("cap_zero", 1);
		U8("cap_short", 0);
		CLOSE('}');
		tool_put_zeros(d, 6);
		break;
	case 84:
		tool_put_text(d, "prog_name", "bpf_prog_0123456789abcdef_test", 512);
		U64(NULL, form);
		OPEN("metadata", '[');
		for (unsigned i = 0; i < form; i++) {
			OPEN("", '{');
			tool_put_text(d, "key", i ? "version" : "author", 64);
			tool_put_text(d, "value", i ? "1" : "perfring", 256);
			CLOSE('}');
		}
		CLOSE(']');
		break;
	case 85:
	case 86:
		U64("timestamp", 4000000000);
		U32("cpu", 1);
		U16("version", 17);
		U16(type == 85 ? "pad" : "domain", type == 85 ? 0 : 1);
		put_drawn(v, d, "counters", 64);
		break;
	default:
		break;
	}
}

/* A tracepoint's description: one system, one event. */
static void put_tracing(struct tool_draft *d, bool is_big)
{
	static const unsigned char magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				   "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
	static const char event[] =
		"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
		"\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
		"\ttime_extend : type == 30\n\tdata max type_len  == 28      \n"; /* the whole is a multiple of 8 */
	static const char format[] = "name: vector\nID: 700\nformat:\n"
				     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
				     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
				     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
				     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
				     "\tfield:u64 value;\toffset:8;\tsize:8;\tsigned:0;\n\n"
				     "print fmt: \"value=%llu\", REC->value\n";
	static const char *const sized[] = {page, event, format};

	OPEN("", '{');
	tool_put_bytes(d, "magic", magic, sizeof(magic));
	CLOSE('}');
	OPEN("", '{');
	tool_put_text(d, "version", "0.6", 4);
	CLOSE('}');
	U8(NULL, is_big); /* the byte order is not said */
	OPEN("", '{');
	U8("long_size", 8);
	CLOSE('}');
	OPEN("", '{');
	U32("page_size", 4096);
	CLOSE('}');
	for (unsigned i = 0; i < 2; i++) {
		OPEN("", '{');
		tool_put_text(d, i ? "event" : "page", i ? "header_event" : "header_page", i ? 13 : 12);
		CLOSE('}');
		U64(NULL, strlen(sized[i]));
		OPEN("", '{');
		tool_put_bytes(d, i ? "header_event" : "header_page", sized[i], strlen(sized[i]));
		CLOSE('}');
	}
	U32(NULL, 0); /* formats of ftrace */
	U32(NULL, 1);
	OPEN("", '{');
	tool_put_text(d, "system", "corpus", 7);
	CLOSE('}');
	U32(NULL, 1);
	U64(NULL, strlen(format));
	OPEN("", '{');
	tool_put_bytes(d, "format", format, strlen(format));
	CLOSE('}');
	U32(NULL, 0);
	OPEN("", '{');
	tool_put_bytes(d, "kallsyms", "", 0);
	CLOSE('}');
	U32(NULL, 0);
	OPEN("", '{');
	tool_put_bytes(d, "printk", "", 0);
	CLOSE('}');
	U64(NULL, 0);
	OPEN("", '{');
	tool_put_bytes(d, "cmdline", "", 0);
	CLOSE('}');
}

/* A HEADER_TRACING_DATA record and the bytes after it, which its size leaves out. */
static void put_tracing_record(struct tool_vector *v, unsigned size)
{
	struct tool_draft *d = &v->data, *tracing = tool_vector_feature(v, 1);
	size_t begin;

	put_tracing(tracing, v->is_big);
	v->has_feature[1] = TOOL_FEATURE_SAID;
	begin = tool_record_begin(d, 66, 0);
	U32("size", tracing->bytes.size);
	/* four bytes that older perfs lack */
	if (size == 16)
		tool_put_bytes(d, "trailing", "\0\0\0\0", 4);
	tool_record_end(d, begin);
	begin = d->bytes.size;
	tool_put_bytes(d, NULL, tracing->bytes.bytes, tracing->bytes.size);
	tool_put_padding(d, begin);
}

static bool perf_record(struct tool_vector *v, uint32_t i)
{
	bool is_stream = i % 2;
	struct tool_draft *d = &v->data;
	size_t begin;

	if (i / 2 >= COUNT(perf_records))
		return false;
	i /= 2;
	tool_vector_name(v, "a record of perf's own, docs/abi.md 10", "perf-%s%s", perf_records[i].name,
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	if (perf_records[i].type == 66) {
		/* In a file it is a feature. */
		if (!is_stream) {
			snprintf(v->what, sizeof(v->what),
				 "a tracepoint's description; HEADER_TRACING_DATA is of streams");
			put_tracing(tool_vector_feature(v, 1), v->is_big);
			sample(v);
			return true;
		}
		v->attrs[0].type = 2;
		v->attrs[0].config = 700;
		put_tracing_record(v, perf_records[i].form);
		sample(v);
		return true;
	}
	if (perf_records[i].type == 69) { /* the ids of the index are the event's */
		v->ids[0][1] = v->ids[0][0] + 1;
		v->ids_nr[0] = 2;
	}
	begin = tool_record_begin(d, perf_records[i].type,
				  perf_records[i].type == 67 ? 2 | (perf_records[i].form ? 1 << 15 : 0) : 0);
	put_perf_members(v, d, perf_records[i].type, perf_records[i].form);
	tool_record_end(d, begin);
	if (perf_records[i].type == 71 && !perf_records[i].form)
		put_drawn(v, d, NULL, 24);
	sample(v);
	return true;
}

/* ---- attrs ---- */

static bool attr_size(struct tool_vector *v, uint32_t i)
{
	static const uint32_t sizes[] = {64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 65, 68, 92, 100, 160, 200, 256};
	bool is_stream = i % 2;
	struct tool_attr *attr;

	if (i / 2 >= COUNT(sizes))
		return false;
	i /= 2;
	tool_vector_name(v, "an attr of each size that there was, and of others", "attr-size-%" PRIu32 "%s", sizes[i],
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	attr = tool_vector_add_event(v, USUAL);
	attr->size = sizes[i];
	if (sizes[i] >= 112)
		attr->sample_max_stack = 64;
	if (sizes[i] >= 128)
		attr->sig_data = 0x1234;
	if (sizes[i] >= 136)
		attr->config3 = 0x5678;
	if (sizes[i] >= 144)
		attr->config4 = 0x9abc;
	tool_vector_add_event(v, USUAL)->size = sizes[i];
	sample(v);
	tool_vector_add_sample(v, &v->data, 1);
	return true;
}

static bool attr_flag(struct tool_vector *v, uint32_t i)
{
	uint64_t flag = i < 40 ? BIT(i) : (i - 38) * BIT(15); /* and precise_ip 2, 3 */

	tool_vector_name(v, "a flag of the attr, docs/abi.md 1.4", "attr-flag-%s%" PRIu32, i < 40 ? "" : "precise-",
			 i < 40 ? i : i - 38);
	tool_vector_add_event(v, USUAL)->flags |= flag;
	sample(v);
	return true;
}

static bool attr_member(struct tool_vector *v, uint32_t i)
{
	struct tool_attr *attr;
	static const char *const names[] = {
		"config",        "sample_period",    "wakeup_events", "bp",       "config1", "config2", "clockid",
		"aux_watermark", "sample_max_stack", "aux_action",    "sig_data", "raw",     "cache",   "freq",
	};

	if (i >= COUNT(names))
		return false;
	tool_vector_name(v, "members of the attr", "attr-%s", names[i]);
	attr = tool_vector_add_event(v, USUAL);
	switch (i) {
	case 0:
		attr->config = 2;
		break;
	case 1:
		attr->sample_period = UINT64_C(0x123456789a);
		break;
	case 2:
		attr->wakeup_events = 0x12345678;
		attr->flags |= BIT(14);
		break;
	case 3:
		attr->type = 5;
		attr->bp_type = 3;
		attr->config1 = 0x401000;
		attr->config2 = 8;
		break;
	case 4:
		attr->type = 4;
		attr->config1 = UINT64_C(0x123456789abcdef0);
		break;
	case 5:
		attr->type = 4;
		attr->config2 = UINT64_C(0x123456789abcdef0);
		break;
	case 6:
		attr->clockid = 1;
		attr->flags |= BIT(25);
		break;
	case 7:
		attr->aux_watermark = 0x12345678;
		break;
	case 8:
		attr->sample_max_stack = 0x1234;
		break;
	case 9:
		attr->aux_action = 2;
		break;
	case 10:
		attr->sig_data = UINT64_C(0x123456789abcdef0);
		break;
	case 11:
		attr->type = 4;
		attr->config = UINT64_C(0x123456789abcdef0);
		break;
	case 12:
		attr->type = 3;
		attr->config = 0x10102;
		break;
	default:
		attr->type = 0;
		attr->sample_period = 4000;
		attr->flags |= BIT(10);
		break;
	}
	sample(v);
	return true;
}

/* ---- features ---- */

#define PART(statement) \
	do { \
		OPEN("", '{'); \
		statement; \
		CLOSE('}'); \
	} while (0)

static void string(struct tool_draft *d, const char *key, const char *text)
{
	PART(tool_put_string(d, key, text));
}

static void word(struct tool_draft *d, const char *key, uint64_t number)
{
	PART(U32(key, number));
}

static void wide(struct tool_draft *d, const char *key, uint64_t number)
{
	PART(U64(key, number));
}

static void put_build_ids(struct tool_vector *v, struct tool_draft *d, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		word(d, "type", 0);
		PART(U16("misc", (i ? 2 : 1) | 1 << 15));
		U16(NULL, 36 + 64);
		word(d, "pid", UINT32_MAX);
		OPEN("", '{');
		put_drawn(v, d, "build_id", 20);
		CLOSE('}');
		U8(NULL, 20);
		tool_put_zeros(d, 3);
		OPEN("", '{');
		tool_put_text(d, "file", i ? "/usr/bin/true" : "[kernel.kallsyms]", 64);
		CLOSE('}');
	}
}

static void put_event_desc(struct tool_vector *v, struct tool_draft *d)
{
	U32(NULL, v->events_nr);
	U32(NULL, v->attrs[0].size);
	for (uint32_t i = 0; i < v->events_nr; i++) {
		PART(tool_put_attr(d, "attr", &v->attrs[i]));
		U32(NULL, v->ids_nr[i]);
		string(d, "name", i ? "the second event" : "the first event");
		for (uint32_t k = 0; k < v->ids_nr[i]; k++)
			wide(d, "id", v->ids[i][k]);
	}
}

static void put_cpu_topology(struct tool_draft *d, unsigned cpus, bool has_places, bool has_dies)
{
	U32(NULL, 1);
	string(d, "cores", "0-3");
	U32(NULL, 2);
	string(d, "threads", "0-1");
	string(d, "threads", "2-3");
	for (unsigned i = 0; i < cpus && has_places; i++) {
		word(d, "core", i / 2);
		word(d, "socket", 0);
	}
	if (!has_dies)
		return;
	U32(NULL, 1);
	string(d, "dies", "0-3");
	for (unsigned i = 0; i < cpus; i++)
		word(d, "die", 0);
}

static void put_bpf_prog_info(struct tool_draft *d)
{
	U32(NULL, 1);
	U32(NULL, 40);
	U32(NULL, 0);
	wide(d, "arrays", 0);
	OPEN("", '{');
	tool_put_bytes(d, "info", "\2\0\0\0\7\0\0\0\1\2\3\4\5\6\7\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		       40);
	CLOSE('}');
	OPEN("", '{');
	tool_put_bytes(d, "data", "", 0);
	CLOSE('}');
}

static void put_pmu_caps(struct tool_draft *d, bool has_many)
{
	if (has_many)
		U32(NULL, 2);
	for (unsigned pmu = 0; pmu < (has_many ? 2 : 1); pmu++) {
		U32(NULL, 2);
		string(d, "name", "branches");
		string(d, "value", "32");
		string(d, "name", "max_precise");
		string(d, "value", "3");
		if (has_many)
			string(d, "pmu", pmu ? "cpu_atom" : "cpu_core");
	}
}

enum {
	FILE_FEATURES = 3,
};

static const char *const feature_rows[] = {
	"tracing_data",
	"build_id",
	"build_id-empty",
	"hostname",
	"hostname-empty",
	"osrelease",
	"version",
	"arch",
	"nrcpus",
	"cpudesc",
	"cpuid",
	"total_mem",
	"cmdline",
	"cmdline-empty",
	"event_desc",
	"cpu_topology",
	"cpu_topology-old",
	"cpu_topology-dies",
	"numa_topology",
	"branch_stack",
	"pmu_mappings",
	"group_desc",
	"auxtrace",
	"stat",
	"cache",
	"sample_time",
	"mem_topology",
	"clockid",
	"bpf_prog_info",
	"bpf_btf",
	"compressed",
	"cpu_pmu_caps",
	"clock_data",
	"hybrid_topology",
	"pmu_caps",
	"cpu_domain_info",
	"e_machine",
	"cln_size",
	"unknown-35",
	"machine",
};

static void put_machine(struct tool_vector *v)
{
	struct tool_draft *d = tool_vector_feature(v, FEATURE_HOSTNAME);

	string(d, "hostname", "corpus.example");
	string(tool_vector_feature(v, 4), "osrelease", "6.18.0");
	string(tool_vector_feature(v, 5), "version", "6.18");
	string(tool_vector_feature(v, 6), "arch", "x86_64");
	d = tool_vector_feature(v, 7);
	word(d, "available", 4);
	word(d, "online", 4);
	string(tool_vector_feature(v, 8), "cpudesc", "A processor");
	string(tool_vector_feature(v, 9), "cpuid", "GenuineIntel,6,0,0");
	wide(tool_vector_feature(v, 10), "kilobytes", 8000000);
}

static void put_feature(struct tool_vector *v, const char *row)
{
	struct tool_draft *d;

#define ROW(text, bit) (!strcmp(row, text) && (d = tool_vector_feature(v, bit)))
	if (ROW("tracing_data", 1)) {
		put_tracing(d, v->is_big);
	} else if (ROW("build_id", 2)) {
		put_build_ids(v, d, 2);
	} else if (ROW("build_id-empty", 2)) {
		;
	} else if (ROW("hostname", 3)) {
		string(d, "hostname", "corpus.example");
	} else if (ROW("hostname-empty", 3)) {
		string(d, "hostname", "");
	} else if (ROW("osrelease", 4)) {
		string(d, "osrelease", "6.18.0");
	} else if (ROW("version", 5)) {
		string(d, "version", "6.18");
	} else if (ROW("arch", 6)) {
		string(d, "arch", "x86_64");
	} else if (ROW("nrcpus", 7)) {
		word(d, "available", 8);
		word(d, "online", 6);
	} else if (ROW("cpudesc", 8)) {
		string(d, "cpudesc",
		       "A processor of more than sixty-four characters, which two pieces of sixty-four hold");
	} else if (ROW("cpuid", 9)) {
		string(d, "cpuid", "GenuineIntel,6,0,0");
	} else if (ROW("total_mem", 10)) {
		wide(d, "kilobytes", UINT64_C(8123456789));
	} else if (ROW("cmdline", 11)) {
		U32(NULL, 3);
		string(d, "argument", "/usr/bin/perf");
		string(d, "argument", "record");
		string(d, "argument", "a b");
	} else if (ROW("cmdline-empty", 11)) {
		U32(NULL, 0);
	} else if (ROW("event_desc", 12)) {
		put_event_desc(v, d);
	} else if (ROW("cpu_topology", 13)) {
		put_cpu_topology(d, 4, true, false);
		d = tool_vector_feature(v, 7);
		word(d, "available", 4);
		word(d, "online", 4);
	} else if (ROW("cpu_topology-old", 13)) {
		put_cpu_topology(d, 4, false, false);
	} else if (ROW("cpu_topology-dies", 13)) {
		put_cpu_topology(d, 4, true, true);
		d = tool_vector_feature(v, 7);
		word(d, "available", 4);
		word(d, "online", 4);
	} else if (ROW("numa_topology", 14)) {
		U32(NULL, 2);
		for (unsigned i = 0; i < 2; i++) {
			word(d, "node", i);
			wide(d, "total", 4000000 + i);
			wide(d, "free", 1000000 + i);
			string(d, "cpus", i ? "2-3" : "0-1");
		}
	} else if (ROW("branch_stack", 15)) {
		;
	} else if (ROW("pmu_mappings", 16)) {
		U32(NULL, 3);
		word(d, "type", 1);
		string(d, "name", "software");
		word(d, "type", 4);
		string(d, "name", "cpu");
		word(d, "type", 9);
		string(d, "name", "uprobe");
	} else if (ROW("group_desc", 17)) {
		U32(NULL, 1);
		string(d, "name", "a group");
		word(d, "leader", 0);
		word(d, "members", 2);
	} else if (ROW("auxtrace", 18)) {
		U64(NULL, 2);
		for (unsigned k = 0; k < 2; k++) {
			wide(d, "offset", 0x1000 + k * 0x100);
			wide(d, "size", 0x30);
		}
	} else if (ROW("stat", 19)) {
		;
	} else if (ROW("cache", 20)) {
		word(d, "version", 1);
		U32(NULL, 1);
		word(d, "level", 1);
		word(d, "line_size", 64);
		word(d, "sets", 64);
		word(d, "ways", 8);
		string(d, "type", "Data");
		string(d, "size", "32K");
		string(d, "map", "0-1");
	} else if (ROW("sample_time", 21)) {
		wide(d, "first", 1000000000);
		wide(d, "last", UINT64_C(123456789012));
	} else if (ROW("mem_topology", 22)) {
		wide(d, "version", 1);
		wide(d, "block_size", 0x8000000);
		U64(NULL, 1);
		wide(d, "node", 0);
		wide(d, "size", 70);
		U64(NULL, 70);
		wide(d, "word", UINT64_C(0xffffffffffffff0f));
		wide(d, "word", 0x3f);
	} else if (ROW("clockid", 23)) {
		wide(d, "resolution", 1);
	} else if (ROW("bpf_prog_info", 25)) {
		put_bpf_prog_info(d);
	} else if (ROW("bpf_btf", 26)) {
		U32(NULL, 1);
		word(d, "id", 7);
		U32(NULL, 24);
		OPEN("", '{');
		tool_put_bytes(d, "btf", "\x9f\xeb\1\0\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
		CLOSE('}');
	} else if (ROW("compressed", FEATURE_COMPRESSED)) {
		word(d, "version", 0);
		word(d, "type", 1);
		word(d, "level", 1);
		word(d, "ratio", 3);
		word(d, "mmap_len", 528384);
	} else if (ROW("cpu_pmu_caps", 28)) {
		put_pmu_caps(d, false);
	} else if (ROW("clock_data", 29)) {
		word(d, "version", 1);
		word(d, "clockid", 1);
		wide(d, "wall_clock", UINT64_C(1700000000123456789));
		wide(d, "clock", UINT64_C(123456789012));
	} else if (ROW("hybrid_topology", 30)) {
		U32(NULL, 2);
		string(d, "pmu", "cpu_core");
		string(d, "cpus", "0-3");
		string(d, "pmu", "cpu_atom");
		string(d, "cpus", "4-7");
	} else if (ROW("pmu_caps", 31)) {
		put_pmu_caps(d, true);
	} else if (ROW("cpu_domain_info", 32)) {
		OPEN("", '{');
		put_drawn(v, d, "domains", 32);
		CLOSE('}');
	} else if (ROW("e_machine", 33)) {
		word(d, "e_machine", 62);
		word(d, "e_flags", 0);
	} else if (ROW("cln_size", 34)) {
		word(d, "bytes", 64);
	} else if (ROW("unknown-35", 35)) {
		OPEN("", '{');
		put_drawn(v, d, "bytes", 24);
		CLOSE('}');
	} else if (!strcmp(row, "machine")) {
		put_machine(v);
	}
#undef ROW
}

static bool feature(struct tool_vector *v, uint32_t i)
{
	bool is_stream = i >= COUNT(feature_rows);

	/* The first ones are records of their own in a stream. */
	i = is_stream ? i - (uint32_t)COUNT(feature_rows) + FILE_FEATURES : i;
	if (i >= COUNT(feature_rows))
		return false;
	tool_vector_name(v, "a feature of perf.data, docs/abi.md 11.3", "feature-%s%s", feature_rows[i],
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	tool_vector_add_event(v, USUAL);
	/* By HOSTNAME a reader sees how long the words of the feature bits are (docs/abi.md 11.1). */
	if (!strstr(feature_rows[i], "hostname") && strcmp(feature_rows[i], "machine"))
		put_feature(v, "hostname");
	put_feature(v, feature_rows[i]);
	if (!strcmp(feature_rows[i], "branch_stack")) { /* it says that samples have one */
		for (uint32_t k = 0; k < 2; k++) {
			v->attrs[k].sample_type |= BIT(11);
			v->attrs[k].branch_sample_type = 8;
		}
	}
	sample(v);
	return true;
}

/* ---- files ---- */

static bool several_events(struct tool_vector *v, uint32_t i)
{
	uint64_t types[] = {USUAL, USUAL | BIT(3), USUAL | BIT(14)};
	bool is_stream = i % 2;

	i /= 2;
	tool_vector_name(v,
			 i == 0   ? "several events of one sample_type"
			 : i == 1 ? "several events whose samples differ; IDENTIFIER tells which"
				  : "several events with several ids each",
			 "events-%s%s",
			 i == 0   ? "alike"
			 : i == 1 ? "different"
				  : "ids",
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	for (unsigned k = 0; k < 3; k++) {
		tool_vector_add_event(v, i == 1 ? types[k] : USUAL);
		v->ids_nr[k] = i == 2 ? 3 : 1;
		for (unsigned n = 1; n < v->ids_nr[k]; n++)
			v->ids[k][n] = v->ids[k][0] + 10 * n;
	}
	for (unsigned k = 0; k < 7; k++)
		tool_vector_add_sample(v, &v->data, k % 3);
	return true;
}

/* Rounds: the second of two CPUs' records comes earlier than the first's, and samples are returned by their times. */
static bool rounds(struct tool_vector *v, uint32_t i)
{
	bool is_stream = i % 2;

	tool_vector_name(v, "records that are in order of time only within rounds", "order-rounds%s",
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			v->time = 1000000000 + round * UINT64_C(100000000) + (1 - cpu) * UINT64_C(50000000);
			sample(v);
			sample(v);
		}
		empty_record(&v->data, FINISHED_ROUND);
	}
	v->has_order = true;
	return true;
}

static bool container(struct tool_vector *v, uint32_t i)
{
	static const char *const rows[] = {
		"plain",
		"no-records",
		"no-ids",
		"many-records",
		"version-1",
		"header-72",
		"attr-entry-larger",
		"unfinished",
		"long-words",
		"unaligned",
		"no-sample_id_all",
		"stream",
		"stream-no-records",
		"stream-machine",
	};
	size_t begin;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a form of file", "file-%s", rows[i]);
	tool_vector_add_event(v, USUAL);
	switch (i) {
	case 1:
	case 12:
		v->form = i == 12 ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
		return true;
	case 2:
		snprintf(v->what, sizeof(v->what), "one event that has no ids: every record is its own");
		v->ids_nr[0] = 0;
		v->attrs[0].sample_type &= ~BIT(16);
		break;
	case 3:
		for (unsigned k = 0; k < 500; k++)
			sample(v);
		break;
	case 4:
		snprintf(v->what, sizeof(v->what),
			 "version 1: PERFFILE, of which the header's numbers alone show the order");
		v->is_version1 = true;
		v->attrs[0].size = 64;
		break;
	case 5:
		snprintf(v->what, sizeof(v->what), "a header of 72 bytes, before there were features");
		v->header_size = 72;
		break;
	case 6:
		snprintf(v->what, sizeof(v->what),
			 "attr entries that are larger than the attr: its ids' place is at their end");
		v->attr_entry = 128 + 32 + 16;
		tool_vector_add_event(v, USUAL);
		break;
	case 7:
		snprintf(v->what, sizeof(v->what),
			 "the writer died: data.size is 0, the records go on to the end of the file");
		v->is_unfinished = true;
		break;
	case 8:
		snprintf(v->what, sizeof(v->what), "feature bits in words of 32 bits, as a writer of 32 bits has them");
		v->has_long_words = true;
		put_machine(v);
		break;
	case 9:
		snprintf(v->what, sizeof(v->what), "records after one whose size is no multiple of 8");
		begin = tool_record_begin(&v->data, EVENT_TYPE, 0);
		tool_put_u64(&v->data, "event_id", 7);
		tool_put_text(&v->data, "name", "abc", 5);
		tool_record_end(&v->data, begin);
		break;
	case 10:
		v->attrs[0].flags = 0;
		break;
	case 11:
		v->form = TOOL_VECTOR_STREAM;
		break;
	case 13:
		v->form = TOOL_VECTOR_STREAM;
		put_machine(v);
		break;
	default:
		break;
	}
	sample(v);
	sample(v);
	return true;
}

static bool compressed(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		size_t most;
		uint32_t type;
		bool is_ended;
	} rows[] = {
		{"one", 100000, COMPRESSED, false},  {"ended", 100000, COMPRESSED, true},
		{"cut-100", 100, COMPRESSED, false}, {"cut-61", 61, COMPRESSED, true},
		{"cut-8", 8, COMPRESSED, false},     {"2", 100000, COMPRESSED2, false},
		{"2-cut-61", 61, COMPRESSED2, true},
	};
	bool is_stream = i % 2;

	if (i / 2 >= COUNT(rows))
		return false;
	i /= 2;
	tool_vector_name(v, "compressed records: one zstd frame, records cut between them", "zstd-%s%s", rows[i].name,
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	put_feature(v, "compressed");
	put_machine(v);
	for (unsigned k = 0; k < 12; k++)
		sample(v);
	tool_draft_compress(&v->data, rows[i].most, rows[i].type, rows[i].is_ended);
	return true;
}

static bool compressed_block(struct tool_vector *v, uint32_t i)
{
	bool is_stream = i % 2;
	enum tool_block block = i / 2 ? TOOL_BLOCK_RUN : TOOL_BLOCK_MATCH;
	size_t begin;

	tool_vector_name(v, "a compressed record whose blocks are not stored", "zstd-%s%s",
			 block == TOOL_BLOCK_RUN ? "run" : "match", is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	put_feature(v, "compressed");
	put_machine(v);
	sample(v);
	if (block == TOOL_BLOCK_RUN) {
		begin = tool_record_begin(&v->data, EVENT_TYPE, 0);
		tool_put_u64(&v->data, "event_id", 7);
		tool_put_text(&v->data, "name", "x", 64);
		tool_record_end(&v->data, begin);
	}
	tool_draft_compress_block(&v->data, block);
	return true;
}

static bool directory(struct tool_vector *v, uint32_t i)
{
	bool is_compressed = i >= 3;
	uint32_t parts = is_compressed ? i - 2 : i + 1;
	struct tool_draft *d = tool_vector_feature(v, 24);

	tool_vector_name(v, "a directory: the file `data`, and a file of records for each ring",
			 "directory-%" PRIu32 "%s", parts, is_compressed ? "-zstd" : "");
	v->form = TOOL_VECTOR_DIRECTORY;
	tool_vector_add_event(v, USUAL);
	wide(d, "version", 1);
	put_machine(v);
	if (is_compressed)
		put_feature(v, "compressed");
	sample(v);
	for (uint32_t k = 0; k < parts; k++)
		v->parts[k].is_big = v->is_big;
	for (unsigned k = 0; k < 9; k++)
		tool_vector_add_sample(v, &v->parts[k % parts], 0);
	for (uint32_t k = 0; k < parts && is_compressed; k++)
		tool_draft_compress(&v->parts[k], 100, COMPRESSED, false);
	v->parts_nr = parts;
	v->has_order = true;
	return true;
}

/* ---- damaged files ---- */

static bool damaged_file(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint32_t size;
	} rows[] = {
		{"size-0", 0}, {"size-4", 4}, {"size-7", 7}, {"size-beyond", 65528}, {"size-slightly", 64},
	};
	bool is_stream = i % 2;

	if (i / 2 >= COUNT(rows))
		return false;
	i /= 2;
	tool_vector_name(v, "a record whose size cannot be: reading ends there, after the records before",
			 "damaged-%s%s", rows[i].name, is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	sample(v);
	sample(v);
	tool_put_u32(&v->data, NULL, 9);
	tool_put_u16(&v->data, NULL, 2);
	tool_put_u16(&v->data, NULL, (uint16_t)rows[i].size);
	tool_put_zeros(&v->data, 40);
	v->is_damaged = true;
	return true;
}

static bool truncated(struct tool_vector *v, uint32_t i)
{
	static const uint32_t cuts[] = {1, 4, 8, 40, 50, 52, 55};
	bool is_stream = i % 2;
	size_t said;

	if (i / 2 >= COUNT(cuts))
		return false;
	i /= 2;
	tool_vector_name(v, "a file that ends inside a record", "truncated-%" PRIu32 "%s", cuts[i],
			 is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	sample(v);
	sample(v);
	said = v->data.json.size;
	v->data.is_mute = true;
	sample(v);
	v->data.is_mute = false;
	v->data.json.size = said;
	v->cut = cuts[i];
	v->is_damaged = true;
	return true;
}

static bool unknown_id(struct tool_vector *v, uint32_t i)
{
	struct tool_draft *d = &v->data;
	bool is_stream = i;
	size_t begin;

	tool_vector_name(v, "a sample of an id that no event has", "damaged-id%s", is_stream ? "-stream" : "");
	v->form = is_stream ? TOOL_VECTOR_STREAM : TOOL_VECTOR_FILE;
	tool_vector_add_event(v, USUAL);
	tool_vector_add_event(v, USUAL | BIT(3));
	sample(v);
	begin = tool_record_begin(d, 9, 2);
	d->is_mute = true;
	U64(NULL, 999);
	tool_put_zeros(d, 40);
	d->is_mute = false;
	d->is_damaged = true;
	tool_record_end(d, begin);
	tool_vector_add_sample(v, d, 1);
	return true;
}

const struct tool_vector_family tool_file_families[] = {
	{perf_record, 0},    {attr_size, 0},    {attr_flag, 42}, {attr_member, 0}, {feature, 0},
	{several_events, 6}, {rounds, 2},       {container, 0},  {compressed, 0},  {compressed_block, 4},
	{directory, 6},      {damaged_file, 0}, {truncated, 0},  {unknown_id, 2},  {NULL, 0},
};
