/* corpus_vectors.c - the vectors of the conformance suite: families, each of which names its vectors and makes one.
 *
 * Numbers and orders of fields are written here once more, from docs/abi.md, because the library's tables are under test.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "corpus.h"

/* The ABI as docs/abi.md has it, written once more: the library's tables are under test. */
enum {
	IP,
	TID,
	TIME,
	ADDR,
	READ,
	CALLCHAIN,
	ID,
	CPU,
	PERIOD,
	STREAM_ID,
	RAW,
	BRANCH_STACK,
	REGS_USER,
	STACK_USER,
	WEIGHT,
	DATA_SRC,
	IDENTIFIER,
	TRANSACTION,
	REGS_INTR,
	PHYS_ADDR,
	AUX,
	CGROUP,
	DATA_PAGE_SIZE,
	CODE_PAGE_SIZE,
	WEIGHT_STRUCT,
	FIELDS,
};

#define BIT(n) (UINT64_C(1) << (n))
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* docs/abi.md 6: the order in a record. */
static const uint8_t wire[FIELDS] = {
	IDENTIFIER,    IP,       TID,         TIME,      ADDR,         ID,        STREAM_ID,      CPU,
	PERIOD,        READ,     CALLCHAIN,   RAW,       BRANCH_STACK, REGS_USER, STACK_USER,     WEIGHT,
	WEIGHT_STRUCT, DATA_SRC, TRANSACTION, REGS_INTR, PHYS_ADDR,    CGROUP,    DATA_PAGE_SIZE, CODE_PAGE_SIZE,
	AUX,
};

static const char *const field_names[FIELDS] = {
	"ip",
	"tid",
	"time",
	"addr",
	"read",
	"callchain",
	"id",
	"cpu",
	"period",
	"stream_id",
	"raw",
	"branch_stack",
	"regs_user",
	"stack_user",
	"weight",
	"data_src",
	"identifier",
	"transaction",
	"regs_intr",
	"phys_addr",
	"aux",
	"cgroup",
	"data_page_size",
	"code_page_size",
	"weight_struct",
};

enum {
	FLAG_SAMPLE_ID_ALL = 18,
	FORMAT_ENABLED = 1,
	FORMAT_RUNNING = 2,
	FORMAT_ID = 4,
	FORMAT_GROUP = 8,
	FORMAT_LOST = 16,
	BRANCH_HW_INDEX = 17,
	BRANCH_COUNTERS = 19,
	KERNEL = 1,
	USER = 2,
	FIRST_ID = 100,
	CHAIN = 160,
	BYTES = 65504,
	BRANCHES = 32,
	GROUP = 4,
};

#define USUAL TOOL_VECTOR_USUAL

_Static_assert(USUAL == (BIT(IDENTIFIER) | BIT(IP) | BIT(TID) | BIT(TIME) | BIT(CPU) | BIT(PERIOD)),
	       "the usual fields");

/* ---- names, events ---- */

void tool_vector_name(struct tool_vector *v, const char *what, const char *form, ...)
{
	va_list arguments;
	size_t size;

	va_start(arguments, form);
	vsnprintf(v->name, sizeof(v->name) - 4, form, arguments);
	va_end(arguments);
	for (const char *at = v->name; *at; at++)
		v->random = v->random * 31 + (unsigned char)*at;
	size = strlen(v->name);
	snprintf(v->name + size, sizeof(v->name) - size, ".%s", v->is_big ? "be" : "le");
	snprintf(v->what, sizeof(v->what), "%s", what);
}

static struct tool_attr attr_of(uint64_t sample_type)
{
	return (struct tool_attr){
		.type = 1,
		.size = 128,
		.sample_period = 1,
		.sample_type = sample_type,
		.flags = BIT(FLAG_SAMPLE_ID_ALL),
		.branch_sample_type = sample_type & BIT(BRANCH_STACK) ? 8 : 0,
		.sample_regs_user = sample_type & BIT(REGS_USER) ? 0x1ff : 0,
		.sample_regs_intr = sample_type & BIT(REGS_INTR) ? 0x103 : 0,
		.sample_stack_user = sample_type & BIT(STACK_USER) ? 64 : 0,
		.aux_sample_size = sample_type & BIT(AUX) ? 64 : 0,
	};
}

struct tool_attr *tool_vector_add_event(struct tool_vector *v, uint64_t sample_type)
{
	uint32_t i = v->events_nr++;

	v->attrs[i] = attr_of(sample_type);
	v->attrs[i].config = i; /* cpu-clock, task-clock ... */
	v->ids[i][0] = FIRST_ID + i;
	v->ids_nr[i] = 1;
	return &v->attrs[i];
}

/* ---- samples ---- */

struct sample {
	uint64_t identifier, ip, time, addr, id, stream_id, period;
	uint32_t pid, tid, cpu, cpu_reserved;
	struct {
		uint64_t nr, enabled, running, value[GROUP], id[GROUP], lost[GROUP];
	} read;
	uint64_t chain_nr, chain[CHAIN];
	uint32_t raw_size;
	uint64_t branch_nr, hw_idx, branch[BRANCHES][3], counters[BRANCHES];
	bool has_counters;
	uint64_t user_abi, intr_abi, regs[64];
	uint64_t stack_size, dyn_size;
	uint64_t weight, data_src, transaction, phys_addr, cgroup, data_page_size, code_page_size;
	uint32_t var1;
	uint16_t var2, var3;
	uint64_t aux_size;
	unsigned char bytes[BYTES]; /* of raw, stack and aux */
};

static uint64_t draw(struct tool_vector *v, uint64_t below)
{
	return tool_vector_draw(v, below);
}

/* A time after the last record's. */
static uint64_t next_time(struct tool_vector *v)
{
	if (!v->time)
		v->time = 1000000000;
	v->time += 1 + draw(v, 1000000);
	return v->time;
}

static void draw_sample(struct tool_vector *v, struct sample *s, uint32_t event)
{
	s->identifier = s->id = s->stream_id = v->ids[event][0];
	s->ip = 0x400000 + draw(v, 0x100000);
	s->pid = 1000 + (uint32_t)draw(v, 1000);
	s->tid = s->pid + (uint32_t)draw(v, 4);
	s->time = next_time(v);
	s->addr = UINT64_C(0x7f0000000000) + draw(v, UINT64_C(1) << 32);
	s->stream_id = s->id + 1000;
	s->cpu = (uint32_t)draw(v, 8);
	s->cpu_reserved = 0;
	s->period = 1 + draw(v, 1000000);
	s->read.nr = v->attrs[event].read_format & FORMAT_GROUP ? 3 : 1;
	s->read.enabled = 1000000 + draw(v, 1000000);
	s->read.running = 1000000 + draw(v, s->read.enabled - 1000000 + 1);
	for (unsigned i = 0; i < GROUP; i++) {
		s->read.value[i] = 1 + draw(v, UINT64_C(1) << 40);
		s->read.id[i] = v->ids[event][0] + i;
		s->read.lost[i] = draw(v, 100);
	}
	s->chain_nr = 4;
	s->chain[0] = (uint64_t)-512;
	for (unsigned i = 1; i < CHAIN; i++)
		s->chain[i] = 0x400000 + draw(v, 0x100000);
	s->raw_size = 20;
	s->branch_nr = 2;
	s->hw_idx = draw(v, 32);
	for (unsigned i = 0; i < BRANCHES; i++) {
		s->branch[i][0] = 0x400000 + draw(v, 0x100000);
		s->branch[i][1] = 0x400000 + draw(v, 0x100000);
		s->branch[i][2] = 2 | (1 + draw(v, 1000)) << 4; /* predicted, cycles */
		s->counters[i] = draw(v, 0);
	}
	s->user_abi = s->intr_abi = 2;
	for (unsigned i = 0; i < 64; i++)
		s->regs[i] = draw(v, UINT64_C(1) << 47);
	s->stack_size = 64;
	s->dyn_size = 40;
	s->weight = 1 + draw(v, 1000);
	s->var1 = 1 + (uint32_t)draw(v, 1000);
	s->var2 = 1 + (uint16_t)draw(v, 1000);
	s->var3 = 1 + (uint16_t)draw(v, 1000);
	s->data_src = UINT64_C(0x1e05080021);
	s->transaction = 2 | 4 | UINT64_C(7) << 32;
	s->phys_addr = draw(v, UINT64_C(1) << 40);
	s->cgroup = 1 + draw(v, 10000);
	s->data_page_size = 4096;
	s->code_page_size = 2 << 20;
	s->aux_size = 16;
	for (unsigned i = 0; i < 128; i++)
		s->bytes[i] = (unsigned char)draw(v, 256);
	for (unsigned i = 128; i < BYTES; i++)
		s->bytes[i] = (unsigned char)(i * 7);
}

static void put_read(struct tool_draft *d, const struct sample *s, uint64_t format)
{
	tool_put_open(d, "read", '{');
	if (format & FORMAT_GROUP)
		tool_put_u64(d, NULL, s->read.nr);
	else
		tool_put_u64(d, "value", s->read.value[0]);
	if (format & FORMAT_ENABLED)
		tool_put_u64(d, "enabled", s->read.enabled);
	if (format & FORMAT_RUNNING)
		tool_put_u64(d, "running", s->read.running);
	if (format & FORMAT_GROUP)
		tool_put_open(d, "values", '[');
	for (uint64_t i = 0; i < (format & FORMAT_GROUP ? s->read.nr : 1) && i < GROUP; i++) {
		if (format & FORMAT_GROUP) {
			tool_put_open(d, "", '{');
			tool_put_u64(d, "value", s->read.value[i]);
		}
		if (format & FORMAT_ID)
			tool_put_u64(d, "id", s->read.id[i]);
		if (format & FORMAT_LOST)
			tool_put_u64(d, "lost", s->read.lost[i]);
		if (format & FORMAT_GROUP)
			tool_put_close(d, '}');
	}
	if (format & FORMAT_GROUP)
		tool_put_close(d, ']');
	tool_put_close(d, '}');
}

static const uint8_t branch_widths[] = {1, 1, 1, 1, 16, 4, 2, 4, 3, 0};

static void put_branches(struct tool_draft *d, const struct sample *s, uint64_t branch_sample_type)
{
	tool_put_open(d, "branch_stack", '{');
	tool_put_u64(d, NULL, s->branch_nr);
	if (branch_sample_type & BIT(BRANCH_HW_INDEX) && s->branch_nr)
		tool_put_u64(d, "hw_idx", s->hw_idx);
	tool_put_open(d, "entries", '[');
	for (uint64_t i = 0; i < s->branch_nr && i < BRANCHES; i++) {
		tool_put_open(d, "", '{');
		tool_put_u64(d, "from", s->branch[i][0]);
		tool_put_u64(d, "to", s->branch[i][1]);
		tool_put_fields(d, "flags", s->branch[i][2], 64, branch_widths);
		tool_put_close(d, '}');
	}
	tool_put_close(d, ']');
	if (s->has_counters) {
		tool_put_open(d, "counters", '[');
		for (uint64_t i = 0; i < s->branch_nr && i < BRANCHES; i++)
			tool_put_u64(d, "", s->counters[i]);
		tool_put_close(d, ']');
	}
	tool_put_close(d, '}');
}

static void put_regs(struct tool_draft *d, const char *key, uint64_t abi, uint64_t mask, const uint64_t *regs)
{
	tool_put_open(d, key, '{');
	tool_put_u64(d, "abi", abi);
	tool_put_open(d, "values", '[');
	for (; abi && mask; mask &= mask - 1)
		tool_put_u64(d, "", *regs++);
	tool_put_close(d, ']');
	tool_put_close(d, '}');
}

static void put_field(struct tool_draft *d, const struct sample *s, const struct tool_attr *attr, unsigned field)
{
	const char *key = field_names[field];

	switch (field) {
	case IDENTIFIER:
		tool_put_u64(d, key, s->identifier);
		break;
	case IP:
		tool_put_u64(d, key, s->ip);
		break;
	case TID:
		tool_put_u32(d, "pid", s->pid);
		tool_put_u32(d, "tid", s->tid);
		break;
	case TIME:
		tool_put_u64(d, key, s->time);
		break;
	case ADDR:
		tool_put_u64(d, key, s->addr);
		break;
	case ID:
		tool_put_u64(d, key, s->id);
		break;
	case STREAM_ID:
		tool_put_u64(d, key, s->stream_id);
		break;
	case CPU:
		tool_put_u32(d, key, s->cpu);
		tool_put_u32(d, NULL, s->cpu_reserved);
		break;
	case PERIOD:
		tool_put_u64(d, key, s->period);
		break;
	case READ:
		put_read(d, s, attr->read_format);
		break;
	case CALLCHAIN:
		tool_put_u64(d, NULL, s->chain_nr);
		tool_put_open(d, key, '[');
		for (uint64_t i = 0; i < s->chain_nr && i < CHAIN; i++)
			tool_put_u64(d, "", s->chain[i]);
		tool_put_close(d, ']');
		break;
	case RAW:
		tool_put_u32(d, NULL, s->raw_size);
		tool_put_bytes(d, key, s->bytes, s->raw_size < BYTES ? s->raw_size : 4);
		break;
	case BRANCH_STACK:
		put_branches(d, s, attr->branch_sample_type);
		break;
	case REGS_USER:
		put_regs(d, key, s->user_abi, attr->sample_regs_user, s->regs);
		break;
	case STACK_USER:
		tool_put_open(d, key, '{');
		tool_put_u64(d, NULL, s->stack_size);
		tool_put_bytes(d, "bytes", s->bytes, s->stack_size < BYTES ? (size_t)s->stack_size : 8);
		if (s->stack_size)
			tool_put_u64(d, "dyn_size", s->dyn_size);
		tool_put_close(d, '}');
		break;
	case WEIGHT:
		tool_put_u64(d, key, s->weight);
		break;
	case WEIGHT_STRUCT:
		tool_put_open(d, key, '{');
		tool_say_number(d, "var1", s->var1);
		tool_say_number(d, "var2", s->var2);
		tool_say_number(d, "var3", s->var3);
		tool_put_u64(d, NULL, s->var1 | (uint64_t)s->var2 << 32 | (uint64_t)s->var3 << 48);
		tool_put_close(d, '}');
		break;
	case DATA_SRC:
		tool_put_u64(d, key, s->data_src);
		break;
	case TRANSACTION:
		tool_put_u64(d, key, s->transaction);
		break;
	case REGS_INTR:
		put_regs(d, key, s->intr_abi, attr->sample_regs_intr, s->regs);
		break;
	case PHYS_ADDR:
		tool_put_u64(d, key, s->phys_addr);
		break;
	case CGROUP:
		tool_put_u64(d, key, s->cgroup);
		break;
	case DATA_PAGE_SIZE:
		tool_put_u64(d, key, s->data_page_size);
		break;
	case CODE_PAGE_SIZE:
		tool_put_u64(d, key, s->code_page_size);
		break;
	case AUX:
		tool_put_u64(d, NULL, s->aux_size);
		tool_put_bytes(d, key, s->bytes, s->aux_size < BYTES ? (size_t)s->aux_size : 8);
		break;
	default:
		break;
	}
}

static void put_fields(struct tool_draft *d, const struct tool_attr *attr, const struct sample *s)
{
	for (unsigned i = 0; i < FIELDS; i++)
		if (attr->sample_type & BIT(wire[i]))
			put_field(d, s, attr, wire[i]);
}

enum {
	SAMPLE = 9,
};

static void put_sample(struct tool_vector *v, struct tool_draft *d, uint32_t event, uint16_t misc,
		       const struct sample *s)
{
	size_t begin = tool_record_begin(d, SAMPLE, misc);

	put_fields(d, &v->attrs[event], s);
	d->event = event + 1;
	tool_record_end(d, begin);
}

/* A record of which a decoder reports only that it is damaged. */
static void put_damaged_sample(struct tool_vector *v, const struct sample *s)
{
	struct tool_draft *d = &v->data;
	size_t begin = tool_record_begin(d, SAMPLE, USER);

	d->is_mute = true;
	put_fields(d, v->attrs, s);
	d->is_mute = false;
	d->is_damaged = true;
	tool_record_end(d, begin);
}

static struct sample *sample_of(struct tool_vector *v, uint32_t event)
{
	static struct sample sample;

	memset(&sample, 0, sizeof(sample));
	draw_sample(v, &sample, event);
	return &sample;
}

void tool_vector_add_sample(struct tool_vector *v, struct tool_draft *draft, uint32_t event)
{
	put_sample(v, draft, event, USER, sample_of(v, event));
}

static void add_sample(struct tool_vector *v, uint32_t event)
{
	tool_vector_add_sample(v, &v->data, event);
}

/* ---- families: samples ---- */

static bool field_alone(struct tool_vector *v, uint32_t i)
{
	tool_vector_name(v, "the only field of a sample", "field-%s-alone", field_names[wire[i]]);
	tool_vector_add_event(v, BIT(wire[i]));
	add_sample(v, 0);
	add_sample(v, 0);
	return true;
}

static bool field_beside(struct tool_vector *v, uint32_t i)
{
	tool_vector_name(v, "a field beside the usual ones", "field-%s", field_names[wire[i]]);
	tool_vector_add_event(v, USUAL | BIT(wire[i]));
	add_sample(v, 0);
	add_sample(v, 0);
	add_sample(v, 0);
	return true;
}

/* Samples of each field and the next one: a wrong length of the first moves the second. */
static bool field_pair(struct tool_vector *v, uint32_t i)
{
	unsigned first = wire[i], second = wire[i + 1];

	if (first == WEIGHT) /* excludes WEIGHT_STRUCT */
		second = DATA_SRC;
	tool_vector_name(v, "two fields that lie beside one another", "pair-%s-%s", field_names[first],
			 field_names[second]);
	tool_vector_add_event(v, BIT(TID) | BIT(TIME) | BIT(first) | BIT(second));
	add_sample(v, 0);
	add_sample(v, 0);
	return true;
}

static bool field_all(struct tool_vector *v, uint32_t i)
{
	static const char *const which[] = {"weight", "weight_struct", "group"};
	struct tool_attr *attr;

	tool_vector_name(v, "every field in one sample", "field-all-%s", which[i]);
	attr = tool_vector_add_event(v, (BIT(FIELDS) - 1) & ~BIT(i ? WEIGHT : WEIGHT_STRUCT));
	attr->read_format = i == 2 ? 31 : 0;
	attr->branch_sample_type |= i == 2 ? BIT(BRANCH_HW_INDEX) : 0;
	add_sample(v, 0);
	add_sample(v, 0);
	return true;
}

static bool read_format(struct tool_vector *v, uint32_t i)
{
	bool is_record = i >= 32;
	struct tool_attr *attr;
	const struct sample *s;
	size_t begin;

	i %= 32;
	tool_vector_name(v, "a read block by each read_format, docs/abi.md 2.2", "read-%s%s%s%s%s%s",
			 is_record ? "record" : "sample", i & 1 ? "-enabled" : "", i & 2 ? "-running" : "",
			 i & 4 ? "-id" : "", i & 8 ? "-group" : "", i & 16 ? "-lost" : "");
	attr = tool_vector_add_event(v, USUAL | (is_record ? 0 : BIT(READ) | BIT(ADDR)));
	attr->read_format = i;
	if (!is_record) {
		add_sample(v, 0);
		add_sample(v, 0);
		return true;
	}
	s = sample_of(v, 0);
	begin = tool_record_begin(&v->data, 8, 0);
	tool_put_u32(&v->data, "pid", s->pid);
	tool_put_u32(&v->data, "tid", s->tid);
	put_read(&v->data, s, i);
	tool_put_close(&v->data, '}');
	tool_put_open(&v->data, "trailer", '{');
	put_field(&v->data, s, attr, TID);
	put_field(&v->data, s, attr, TIME);
	put_field(&v->data, s, attr, CPU);
	put_field(&v->data, s, attr, IDENTIFIER);
	tool_record_end(&v->data, begin);
	return true;
}

/* The lengths of the parts of variable length. */
static bool chain(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint64_t nr;
		int32_t markers[4]; /* at 0, 1, 2, 3 */
	} rows[] = {
		{"empty", 0, {0}},
		{"marker-only", 1, {-512}},
		{"user", 5, {-512}},
		{"kernel-and-user", 5, {-128, 0, -512}},
		{"hypervisor", 3, {-32}},
		{"guest", 4, {-2176, 0, -2560}},
		{"guest-any", 3, {-2048}},
		{"no-marker", 3, {0}},
		{"127", 127, {-512}},
		{"135", 135, {-128, 0, -512}},
		{"deferred", 4, {-128, 0, -640}},
	};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a call chain and what follows it", "callchain-%s", rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(CALLCHAIN) | BIT(PHYS_ADDR));
	s = sample_of(v, 0);
	s->chain_nr = rows[i].nr;
	s->chain[0] = 0x400000;
	for (unsigned k = 0; k < 4; k++)
		if (rows[i].markers[k])
			s->chain[k] = (uint64_t)(int64_t)rows[i].markers[k];
	put_sample(v, &v->data, 0, KERNEL, s);
	add_sample(v, 0);
	return true;
}

static bool raw(struct tool_vector *v, uint32_t i)
{
	static const uint32_t sizes[] = {4, 12, 20, 36, 68, 1004, 4100, 65420};
	struct sample *s;

	if (i >= COUNT(sizes))
		return false;
	tool_vector_name(v, "raw bytes: their size counts from after itself and includes the padding", "raw-%" PRIu32,
			 sizes[i]);
	tool_vector_add_event(v, USUAL | BIT(RAW) | BIT(PHYS_ADDR));
	s = sample_of(v, 0);
	s->raw_size = sizes[i];
	put_sample(v, &v->data, 0, USER, s);
	add_sample(v, 0);
	return true;
}

static bool branches(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint64_t nr, type;
		bool has_counters;
		uint64_t flags;
	} rows[] = {
		{"empty", 0, 0, false, 2},
		{"one", 1, 0, false, 2},
		{"32", 32, 0, false, 2},
		{"empty-hw_idx", 0, BIT(BRANCH_HW_INDEX), false, 2},
		{"hw_idx", 3, BIT(BRANCH_HW_INDEX), false, 2},
		{"counters", 3, BIT(BRANCH_COUNTERS), true, 2},
		{"counters-absent", 3, BIT(BRANCH_COUNTERS), false, 2},
		{"hw_idx-counters", 3, BIT(BRANCH_HW_INDEX) | BIT(BRANCH_COUNTERS), true, 2},
		{"mispred", 1, 0, false, 1},
		{"in_tx", 1, 0, false, 4},
		{"abort", 1, 0, false, 8},
		{"cycles", 1, 0, false, UINT64_C(0x1234) << 4},
		{"type", 1, 0, false, UINT64_C(4) << 20},
		{"spec", 1, 0, false, UINT64_C(2) << 24},
		{"new_type", 1, 0, false, UINT64_C(15) << 20 | UINT64_C(2) << 26},
		{"priv", 1, 0, false, UINT64_C(2) << 30},
		{"every-flag", 2, 0, false, UINT64_C(0x1ffffffff)},
	};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a branch stack and what follows it", "branch-%s", rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(BRANCH_STACK) | BIT(PHYS_ADDR))->branch_sample_type |= rows[i].type;
	s = sample_of(v, 0);
	s->branch_nr = rows[i].nr;
	s->has_counters = rows[i].has_counters;
	s->branch[0][2] = rows[i].flags;
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

static bool regs(struct tool_vector *v, uint32_t i)
{
	static const uint64_t masks[] = {0x1, 0x1ff, 0xff0fff, UINT64_C(0x8000000000000001)};
	unsigned abi = i % 3, mask = i / 3 % 4, is_intr = i / 12;
	struct tool_attr *attr;
	struct sample *s;

	if (is_intr > 1)
		return false;
	tool_vector_name(v, "registers by the attr's mask; abi 0 has none", "regs-%s-abi%u-mask%u",
			 is_intr ? "intr" : "user", abi, mask);
	attr = tool_vector_add_event(v, USUAL | BIT(is_intr ? REGS_INTR : REGS_USER) | BIT(PHYS_ADDR));
	attr->sample_regs_user = is_intr ? 0 : masks[mask];
	attr->sample_regs_intr = is_intr ? masks[mask] : 0;
	s = sample_of(v, 0);
	s->user_abi = s->intr_abi = abi;
	put_sample(v, &v->data, 0, USER, s);
	add_sample(v, 0);
	return true;
}

static bool stack(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint64_t size, dyn_size;
	} rows[] = {
		{"empty", 0, 0},       {"8", 8, 8},
		{"dyn_size-0", 64, 0}, {"dyn_size-whole", 64, 64},
		{"8192", 8192, 5000},  {"65416", 65416, 65400},
	};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a copy of the stack: dyn_size is there when its size is not 0", "stack-%s", rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(STACK_USER) | BIT(PHYS_ADDR))->sample_stack_user = (uint32_t)rows[i].size;
	s = sample_of(v, 0);
	s->stack_size = rows[i].size;
	s->dyn_size = rows[i].dyn_size;
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

static bool data_src(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		unsigned at;
		uint64_t value;
	} rows[] = {
		{"op", 0, 2},
		{"lvl", 5, 0xa},
		{"snoop", 19, 0x10},
		{"lock", 24, 2},
		{"tlb", 26, 0xa},
		{"lvlnum", 33, 13},
		{"remote", 37, 1},
		{"snoopx", 38, 2},
		{"blk", 40, 4},
		{"hops", 43, 3},
		{"region", 46, 9},
		{"zero", 0, 0},
		{"every-bit", 0, UINT64_MAX},
	};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "parts of the word DATA_SRC", "data_src-%s", rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(ADDR) | BIT(WEIGHT) | BIT(DATA_SRC));
	s = sample_of(v, 0);
	s->data_src = rows[i].value << rows[i].at;
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

static bool weights(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint32_t var1;
		uint16_t var2, var3;
	} rows[] = {{"zero", 0, 0, 0},
		    {"var1", 0x12345678, 0, 0},
		    {"var2", 0, 0x1234, 0},
		    {"var3", 0, 0, 0x1234},
		    {"all", UINT32_MAX, UINT16_MAX, UINT16_MAX}};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "WEIGHT_STRUCT: three numbers in one of 64 bits", "weight_struct-%s", rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(WEIGHT_STRUCT) | BIT(PHYS_ADDR));
	s = sample_of(v, 0);
	s->var1 = rows[i].var1;
	s->var2 = rows[i].var2;
	s->var3 = rows[i].var3;
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

static bool aux(struct tool_vector *v, uint32_t i)
{
	static const uint64_t sizes[] = {0, 8, 64, 4096};
	struct sample *s;

	if (i >= COUNT(sizes))
		return false;
	tool_vector_name(v, "AUX data in a sample", "aux_sample-%" PRIu64, sizes[i]);
	tool_vector_add_event(v, USUAL | BIT(CODE_PAGE_SIZE) | BIT(AUX));
	s = sample_of(v, 0);
	s->aux_size = sizes[i];
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

static bool misc(struct tool_vector *v, uint32_t i)
{
	static const uint16_t values[] = {0, 1, 2, 3, 4, 5, 7, 2 | 1 << 14, 1 | 1 << 15};

	if (i >= COUNT(values))
		return false;
	tool_vector_name(v, "misc of a sample: the cpumode, EXACT_IP, a reserved bit", "misc-%#x", values[i]);
	tool_vector_add_event(v, USUAL);
	put_sample(v, &v->data, 0, values[i], sample_of(v, 0));
	return true;
}

/* 0, all ones, and the highest bit of each half, in every field that is one number. */
static bool extremes(struct tool_vector *v, uint32_t i)
{
	static const char *const names[] = {"zero", "ones", "sign"};
	static const uint64_t values[] = {0, UINT64_MAX, UINT64_C(0x8000000080000000)};
	uint64_t n = values[i];
	struct sample *s;

	tool_vector_name(v, "numbers at their ends", "numbers-%s", names[i]);
	tool_vector_add_event(v, BIT(IDENTIFIER) | BIT(IP) | BIT(TID) | BIT(TIME) | BIT(ADDR) | BIT(STREAM_ID) |
					 BIT(CPU) | BIT(PERIOD) | BIT(WEIGHT) | BIT(TRANSACTION) | BIT(PHYS_ADDR) |
					 BIT(CGROUP) | BIT(DATA_PAGE_SIZE) | BIT(CODE_PAGE_SIZE));
	s = sample_of(v, 0);
	s->ip = s->addr = s->stream_id = s->period = s->weight = s->transaction = s->phys_addr = s->cgroup = n;
	s->data_page_size = s->code_page_size = n;
	s->pid = s->tid = s->cpu = s->cpu_reserved = (uint32_t)n;
	put_sample(v, &v->data, 0, USER, s);
	return true;
}

/* ---- kernel records ---- */

struct record {
	const char *name;
	uint32_t type;
	uint16_t misc;
	const char *text;
	uint64_t numbers[4];
};

static const struct record kernel_records[] = {
	{"mmap", 1, USER, "/usr/bin/true", {0}},
	{"lost", 2, 0, NULL, {0}},
	{"comm", 3, 0, "true", {0}},
	{"exit", 4, 0, NULL, {0}},
	{"throttle", 5, 0, NULL, {0}},
	{"unthrottle", 6, 0, NULL, {0}},
	{"fork", 7, 0, NULL, {0}},
	{"mmap2", 10, USER, "/usr/bin/true", {0}},
	{"aux", 11, 0, NULL, {0}},
	{"itrace_start", 12, 0, NULL, {0}},
	{"lost_samples", 13, 0, NULL, {0}},
	{"switch", 14, 0, NULL, {0}},
	{"switch_cpu_wide", 15, 0, NULL, {0}},
	{"namespaces", 16, 0, NULL, {7}},
	{"ksymbol", 17, 0, "bpf_prog_0123456789abcdef_test", {1, 0}},
	{"bpf_event", 18, 0, NULL, {1}},
	{"cgroup", 19, 0, "/system.slice/test.service", {0}},
	{"text_poke", 20, KERNEL, NULL, {5, 5}},
	{"aux_output_hw_id", 21, 0, NULL, {0}},
	{"callchain_deferred", 22, USER, NULL, {3}},
};

/* The variants of one kind of record. */
static const struct record record_variants[] = {
	{"mmap-kernel", 1, KERNEL, "[kernel.kallsyms]_text", {0}},
	{"mmap-data", 1, USER | 1 << 13, "/usr/lib/libtest.so", {0}},
	{"mmap-anon", 1, USER, "//anon", {0}},
	{"mmap-timeout", 1, USER | 1 << 12, "/a", {0}},
	{"mmap-7", 1, USER, "/123456", {0}},
	{"mmap-8", 1, USER, "/1234567", {0}},
	{"mmap-bytes", 1, USER, "/\xc3\xa4 \"\\\n\xff", {0}},
	{"mmap2-build_id-20", 10, USER | 1 << 14, "/usr/bin/true", {20}},
	{"mmap2-build_id-16", 10, USER | 1 << 14, "/usr/bin/true", {16}},
	{"mmap2-build_id-0", 10, USER | 1 << 14, "/usr/bin/true", {0}},
	{"mmap2-kernel-build_id", 10, KERNEL | 1 << 14, "[kernel.kallsyms]_text", {20}},
	{"mmap2-data", 10, USER | 1 << 13, "/usr/lib/libtest.so", {0}},
	{"mmap2-anon", 10, USER, "//anon", {0}},
	{"mmap2-7", 10, USER, "/123456", {0}},
	{"mmap2-8", 10, USER, "/1234567", {0}},
	{"comm-exec", 3, 1 << 13, "sh", {0}},
	{"comm-empty", 3, 0, "", {0}},
	{"comm-7", 3, 0, "1234567", {0}},
	{"comm-8", 3, 0, "12345678", {0}},
	{"comm-15", 3, 0, "123456789abcdef", {0}},
	{"comm-blank", 3, 0, "a b  c", {0}},
	{"fork-exec", 7, 1 << 13, NULL, {0}},
	{"switch-out", 14, 1 << 13, NULL, {0}},
	{"switch-out-preempt", 14, 1 << 13 | 1 << 14, NULL, {0}},
	{"switch_cpu_wide-out", 15, 1 << 13, NULL, {0}},
	{"switch_cpu_wide-preempt", 15, 1 << 13 | 1 << 14, NULL, {0}},
	{"namespaces-none", 16, 0, NULL, {0}},
	{"namespaces-1", 16, 0, NULL, {1}},
	{"ksymbol-ool", 17, 0, "kprobe_insn_page", {2, 0}},
	{"ksymbol-unregister", 17, 0, "bpf_prog_0123456789abcdef_test", {1, 1}},
	{"ksymbol-unknown", 17, 0, "symbol", {0, 0}},
	{"bpf_event-unload", 18, 0, NULL, {2}},
	{"bpf_event-unknown", 18, 0, NULL, {0}},
	{"cgroup-root", 19, 0, "/", {0}},
	{"aux-truncated", 11, 0, NULL, {1}},
	{"aux-overwrite", 11, 0, NULL, {2}},
	{"aux-partial", 11, 0, NULL, {4}},
	{"aux-collision", 11, 0, NULL, {8}},
	{"aux-raw-format", 11, 0, NULL, {0x100}},
	{"text_poke-1-1", 20, KERNEL, NULL, {1, 1}},
	{"text_poke-5-3", 20, KERNEL, NULL, {5, 3}},
	{"text_poke-8-8", 20, KERNEL, NULL, {8, 8}},
	{"text_poke-new", 20, KERNEL, NULL, {0, 16}},
	{"text_poke-removed", 20, KERNEL, NULL, {16, 0}},
	{"text_poke-2-2", 20, KERNEL, NULL, {2, 2}},
	{"lost_samples-bpf", 13, 1 << 15, NULL, {0}},
	{"callchain_deferred-empty", 22, USER, NULL, {0}},
};

#define U16(key, number) tool_put_u16(d, key, (uint16_t)(number))
#define U32(key, number) tool_put_u32(d, key, (uint32_t)(number))
#define U64(key, number) tool_put_u64(d, key, number)

static void put_threads(struct tool_draft *d, const struct sample *s)
{
	U32("pid", s->pid);
	U32("tid", s->tid);
}

static void put_mapping(struct tool_vector *v, struct tool_draft *d, const struct sample *s)
{
	put_threads(d, s);
	U64("addr", UINT64_C(0x400000) + draw(v, 256) * 4096);
	U64("len", (1 + draw(v, 256)) * 4096);
	U64("pgoff", draw(v, 256) * 4096);
}

static void put_members(struct tool_vector *v, struct tool_draft *d, const struct record *record,
			const struct sample *s)
{
	switch (record->type) {
	case 1:
		put_mapping(v, d, s);
		tool_put_text(d, "filename", record->text, 0);
		break;
	case 2:
		U64("id", s->id);
		U64("lost", 1 + draw(v, 1000));
		break;
	case 3:
		put_threads(d, s);
		tool_put_text(d, "comm", record->text, 0);
		break;
	case 4:
	case 7:
		U32("pid", s->pid + 1);
		U32("ppid", s->pid);
		U32("tid", s->tid + 1);
		U32("ptid", s->tid);
		U64("time", s->time);
		break;
	case 5:
	case 6:
		U64("time", s->time);
		U64("id", s->id);
		U64("stream_id", s->stream_id);
		break;
	case 10:
		put_mapping(v, d, s);
		tool_put_open(d, "file", '{');
		if (record->misc & 1 << 14) {
			tool_put_u8(d, NULL, (uint8_t)record->numbers[0]);
			tool_put_zeros(d, 3);
			tool_put_bytes(d, "build_id", s->bytes, (size_t)record->numbers[0]);
			tool_put_zeros(d, 20 - (size_t)record->numbers[0]);
		} else {
			U32("maj", draw(v, 256));
			U32("min", draw(v, 256));
			U64("ino", draw(v, UINT64_C(1) << 40));
			U64("ino_generation", draw(v, UINT64_C(1) << 32));
		}
		tool_put_close(d, '}');
		U32("prot", record->misc & 1 << 13 ? 3 : 5);
		U32("flags", 2);
		tool_put_text(d, "filename", record->text, 0);
		break;
	case 11:
		U64("aux_offset", draw(v, UINT64_C(1) << 40));
		U64("aux_size", draw(v, 1 << 20));
		U64("flags", record->numbers[0]);
		break;
	case 12:
		put_threads(d, s);
		break;
	case 13:
		U64("lost", 1 + draw(v, 1000));
		break;
	case 15:
		U32("next_prev_pid", s->pid);
		U32("next_prev_tid", s->tid);
		break;
	case 16:
		put_threads(d, s);
		U64(NULL, record->numbers[0]);
		tool_put_open(d, "links", '[');
		for (uint64_t i = 0; i < record->numbers[0]; i++) {
			tool_put_open(d, "", '[');
			U64("", 4);
			U64("", UINT64_C(0xf0000000) + draw(v, 1000));
			tool_put_close(d, ']');
		}
		tool_put_close(d, ']');
		break;
	case 17:
		U64("addr", UINT64_C(0xffffffffc0000000) + draw(v, 1 << 20));
		U32("len", 1 + draw(v, 4096));
		U16("ksym_type", record->numbers[0]);
		U16("flags", record->numbers[1]);
		tool_put_text(d, "name", record->text, 0);
		break;
	case 18:
		U16("type", record->numbers[0]);
		U16("flags", 0);
		U32("id", 1 + draw(v, 1000));
		tool_put_bytes(d, "tag", s->bytes, 8);
		break;
	case 19:
		U64("id", 1 + draw(v, 10000));
		tool_put_text(d, "path", record->text, 0);
		break;
	case 20: {
		size_t begin;

		U64("addr", UINT64_C(0xffffffff81000000) + draw(v, 1 << 20));
		begin = d->bytes.size;
		U16(NULL, record->numbers[0]);
		U16(NULL, record->numbers[1]);
		tool_put_open(d, "poke", '{');
		tool_put_bytes(d, "old", s->bytes, (size_t)record->numbers[0]);
		tool_put_bytes(d, "new", s->bytes + 32, (size_t)record->numbers[1]);
		tool_put_close(d, '}');
		tool_put_padding(d, begin);
		break;
	}
	case 21:
		U64("hw_id", draw(v, 0));
		break;
	case 22:
		U64("cookie", draw(v, 0));
		U64(NULL, record->numbers[0]);
		tool_put_open(d, "ips", '[');
		for (uint64_t i = 0; i < record->numbers[0]; i++)
			U64("", s->chain[i]);
		tool_put_close(d, ']');
		break;
	default:
		break;
	}
}

/* docs/abi.md 4.2: the order of a trailer. */
static const uint8_t trailer_fields[] = {TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER};

static void put_trailer(struct tool_draft *d, const struct tool_attr *attr, const struct sample *s)
{
	bool is_open = false;

	if (!(attr->flags & BIT(FLAG_SAMPLE_ID_ALL)))
		return;
	for (size_t i = 0; i < COUNT(trailer_fields); i++) {
		if (!(attr->sample_type & BIT(trailer_fields[i])))
			continue;
		if (!is_open) {
			tool_put_close(d, '}');
			tool_put_open(d, "trailer", '{');
		}
		is_open = true;
		put_field(d, s, attr, trailer_fields[i]);
	}
}

static void add_record(struct tool_vector *v, const struct record *record)
{
	const struct sample *s = sample_of(v, 0);
	size_t begin = tool_record_begin(&v->data, record->type, record->misc);

	put_members(v, &v->data, record, s);
	put_trailer(&v->data, v->attrs, s);
	tool_record_end(&v->data, begin);
}

static bool kernel_record(struct tool_vector *v, uint32_t i)
{
	const struct record *record = &kernel_records[i / 2];

	if (i / 2 >= COUNT(kernel_records))
		return false;
	tool_vector_name(v, i % 2 ? "a record without a trailer" : "a record and its trailer", "record-%s%s",
			 record->name, i % 2 ? "-plain" : "");
	tool_vector_add_event(v, USUAL | BIT(STREAM_ID))->flags = i % 2 ? 0 : BIT(FLAG_SAMPLE_ID_ALL);
	add_record(v, record);
	add_sample(v, 0);
	add_record(v, record);
	return true;
}

static bool record_variant(struct tool_vector *v, uint32_t i)
{
	if (i >= COUNT(record_variants))
		return false;
	tool_vector_name(v, "a variant of a record", "record-%s", record_variants[i].name);
	tool_vector_add_event(v, USUAL);
	add_record(v, &record_variants[i]);
	add_sample(v, 0);
	return true;
}

static bool trailer(struct tool_vector *v, uint32_t i)
{
	uint64_t type = BIT(IP);
	static const struct record comm = {"comm", 3, 0, "trailer", {0}};

	for (size_t k = 0; k < COUNT(trailer_fields); k++)
		type |= i & 1 << k ? BIT(trailer_fields[k]) : 0;
	tool_vector_name(v, "a trailer of each choice of fields, docs/abi.md 4.2", "trailer%s%s%s%s%s%s%s",
			 i ? "" : "-none", i & 1 ? "-tid" : "", i & 2 ? "-time" : "", i & 4 ? "-id" : "",
			 i & 8 ? "-stream_id" : "", i & 16 ? "-cpu" : "", i & 32 ? "-identifier" : "");
	tool_vector_add_event(v, type);
	add_record(v, &comm);
	add_sample(v, 0);
	return true;
}

static bool unknown_record(struct tool_vector *v, uint32_t i)
{
	static const uint32_t types[] = {23, 40, 63, 87, 200, 32768, 0x7fffffff};
	struct tool_draft *d = &v->data;
	size_t begin;

	if (i >= COUNT(types))
		return false;
	tool_vector_name(v, "a record of a type that has no name yet: skipped by its size", "unknown-%" PRIu32,
			 types[i]);
	tool_vector_add_event(v, USUAL)->flags = 0;
	begin = tool_record_begin(d, types[i], 0);
	tool_put_bytes(d, "trailing", sample_of(v, 0)->bytes, 16);
	tool_record_end(d, begin);
	add_sample(v, 0);
	return true;
}

/* Newer kernels may write more than is known. */
static bool longer(struct tool_vector *v, uint32_t i)
{
	struct tool_draft *d = &v->data;
	const struct sample *s;
	size_t begin;

	tool_vector_name(v, "bytes after the last known member", "longer-%s", i ? "record" : "sample");
	tool_vector_add_event(v, USUAL);
	s = sample_of(v, 0);
	begin = tool_record_begin(d, i ? 13 : SAMPLE, i ? 0 : USER);
	if (i)
		tool_put_u64(d, "lost", 5);
	else
		put_fields(d, v->attrs, s);
	tool_put_bytes(d, "trailing", i ? "\0\0\0\0\0\0\0\1" : "\0\0\0\0\0\0\0\0", 8);
	if (i)
		put_trailer(d, v->attrs, s);
	else
		d->event = 1;
	tool_record_end(d, begin);
	add_sample(v, 0);
	return true;
}

/* ---- damage inside a record: its size is right, and what it says of its parts is not ---- */

static bool damaged_sample(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		unsigned field;
		uint64_t number;
	} rows[] = {
		{"callchain-nr", CALLCHAIN, 100},
		{"callchain-nr-overflow", CALLCHAIN, UINT64_C(0x2000000000000001)},
		{"callchain-nr-max", CALLCHAIN, UINT64_MAX},
		{"raw-size", RAW, 65536},
		{"raw-size-max", RAW, UINT32_MAX},
		{"branch-nr", BRANCH_STACK, 1000},
		{"branch-nr-overflow", BRANCH_STACK, UINT64_C(0x0aaaaaaaaaaaaaab)},
		{"stack-size", STACK_USER, 65536},
		{"stack-size-max", STACK_USER, UINT64_MAX},
		{"aux-size", AUX, 65536},
		{"aux-size-max", AUX, UINT64_MAX},
		{"read-nr", READ, 1000},
		{"read-nr-overflow", READ, UINT64_C(0x1000000000000001)},
	};
	struct sample *s;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a count or a length that the record cannot hold; the next record is whole", "damaged-%s",
			 rows[i].name);
	tool_vector_add_event(v, USUAL | BIT(rows[i].field))->read_format = rows[i].field == READ ? 15 : 0;
	add_sample(v, 0);
	s = sample_of(v, 0);
	s->chain_nr = s->branch_nr = s->stack_size = s->aux_size = s->read.nr = rows[i].number;
	s->raw_size = (uint32_t)rows[i].number;
	if (rows[i].field == CALLCHAIN || rows[i].field == BRANCH_STACK) { /* few of those that it claims are there */
		uint64_t nr = 3;
		size_t begin = v->data.bytes.size, at;

		s->chain_nr = s->branch_nr = nr;
		put_damaged_sample(v, s);
		at = begin + 8 + 48;
		tool_draft_set(&v->data, at, rows[i].number, 8);
	} else {
		put_damaged_sample(v, s);
	}
	add_sample(v, 0);
	return true;
}

static bool damaged_record(struct tool_vector *v, uint32_t i)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint32_t left; /* bytes of the record */
	} rows[] = {
		{"sample-short", SAMPLE, 40}, {"sample-header-only", SAMPLE, 8},
		{"mmap-short", 1, 32},        {"mmap2-short", 10, 48},
		{"comm-short", 3, 12},        {"exit-short", 4, 16},
		{"lost-short", 2, 16},        {"ksymbol-short", 17, 20},
		{"bpf_event-short", 18, 16},  {"namespaces-nr", 16, 72},
	};
	struct tool_draft *d = &v->data;
	const struct sample *s;
	struct record record = {0};
	size_t begin;

	if (i >= COUNT(rows))
		return false;
	tool_vector_name(v, "a record that ends before its members do; the next record is whole", "damaged-%s",
			 rows[i].name);
	tool_vector_add_event(v, USUAL & ~BIT(IDENTIFIER))->flags = 0;
	add_sample(v, 0);
	for (size_t k = 0; k < COUNT(kernel_records); k++)
		if (kernel_records[k].type == rows[i].type)
			record = kernel_records[k];
	s = sample_of(v, 0);
	begin = tool_record_begin(d, rows[i].type, USER);
	d->is_mute = true;
	if (rows[i].type == SAMPLE)
		put_fields(d, v->attrs, s);
	else
		put_members(v, d, &record, s);
	d->is_mute = false;
	d->bytes.size = begin + rows[i].left;
	d->is_damaged = true;
	tool_record_end(d, begin);
	add_sample(v, 0);
	return true;
}

/* ---- the table ---- */

static const struct tool_vector_family families[] = {
	{field_alone, FIELDS},
	{field_beside, FIELDS},
	{field_pair, FIELDS - 1},
	{field_all, 3},
	{read_format, 64},
	{chain, 0},
	{raw, 0},
	{branches, 0},
	{regs, 0},
	{stack, 0},
	{data_src, 0},
	{weights, 0},
	{aux, 0},
	{misc, 0},
	{extremes, 3},
	{kernel_record, 0},
	{record_variant, 0},
	{trailer, 64},
	{unknown_record, 0},
	{longer, 2},
	{damaged_sample, 0},
	{damaged_record, 0},
};

bool tool_vector_make(struct tool_vector *vector, uint32_t family, uint32_t i, bool is_big)
{
	const struct tool_vector_family *of = family < COUNT(families) ? &families[family] : NULL;

	if (!of)
		for (of = tool_file_families; of->make && family > COUNT(families); of++)
			family--;
	memset(vector, 0, sizeof(*vector));
	vector->is_big = vector->data.is_big = is_big;
	return of->make && (!of->count || i < of->count) && of->make(vector, i);
}

bool tool_vector_has_family(uint32_t family)
{
	uint32_t nr = COUNT(families);

	for (const struct tool_vector_family *of = tool_file_families; of->make; of++)
		nr++;
	return family < nr;
}
