/* generate_test.c - generated records: the codec's inverse over millions of them, their shapes, and their damages. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perfring/check.h>
#include <perfring/generate.h>
#include <perfring/reader.h>
#include <perfring/swap.h>
#include "machine.h"
#include "sanitizers.h"
#include "test.h"

TestSuite(generate, .timeout = 600);

enum {
	ROOM = 65536,
	RECORDS = 100, /* of each attr */
};

/* ---- equal, member by member, and what is pointed to ---- */

static bool same_bytes(const void *a, const void *b, uint64_t size)
{
	return !size || !memcmp(a, b, size);
}

static bool same_u16(const uint16_t *a, const uint16_t *b)
{
	return *a == *b;
}

static bool same_u32(const uint32_t *a, const uint32_t *b)
{
	return *a == *b;
}

static bool same_u64(const uint64_t *a, const uint64_t *b)
{
	return *a == *b;
}

static bool same_weight(const struct perfring_weight *a, const struct perfring_weight *b)
{
	return a->var1 == b->var1 && a->var2 == b->var2 && a->var3 == b->var3;
}

static bool same_read(const struct perfring_read *a, const struct perfring_read *b)
{
	uint64_t i;

	if (a->nr != b->nr || a->enabled != b->enabled || a->running != b->running || a->read_format != b->read_format)
		return false;
	for (i = 0; i < a->nr && a->entries; i++)
		if (perfring_read_value(a, i) != perfring_read_value(b, i) ||
		    perfring_read_id(a, i) != perfring_read_id(b, i) ||
		    perfring_read_lost(a, i) != perfring_read_lost(b, i))
			return false;
	return true;
}

static bool same_list(const struct perfring_list *a, const struct perfring_list *b)
{
	return a->nr == b->nr && same_bytes(a->words, b->words, 8 * a->nr);
}

static bool same_raw(const struct perfring_raw *a, const struct perfring_raw *b)
{
	return a->size == b->size && a->padding == b->padding && same_bytes(a->data, b->data, a->size);
}

static bool same_branch(const struct perfring_branch_stack *a, const struct perfring_branch_stack *b)
{
	return a->nr == b->nr && a->has_hw_idx == b->has_hw_idx && a->hw_idx == b->hw_idx &&
	       !a->counters == !b->counters && same_bytes(a->entries, b->entries, 24 * a->nr) &&
	       (!a->counters || same_bytes(a->counters, b->counters, 8 * a->nr));
}

static bool same_regs(const struct perfring_regs *a, const struct perfring_regs *b)
{
	return a->abi == b->abi && a->mask == b->mask && a->nr == b->nr && a->arch == b->arch &&
	       same_bytes(a->values, b->values, UINT64_C(8) * a->nr);
}

static bool same_stack(const struct perfring_stack *a, const struct perfring_stack *b)
{
	return a->size == b->size && a->dyn_size == b->dyn_size && same_bytes(a->data, b->data, a->size);
}

static bool same_aux(const struct perfring_aux *a, const struct perfring_aux *b)
{
	return a->size == b->size && same_bytes(a->data, b->data, a->size);
}

static bool same_id128(const struct perfring_file_id *a, const struct perfring_file_id *b)
{
	return a->maj == b->maj && a->min == b->min && a->ino == b->ino && a->ino_generation == b->ino_generation &&
	       a->build_id_size == b->build_id_size && a->has_build_id == b->has_build_id &&
	       same_bytes(a->build_id, b->build_id, sizeof(a->build_id));
}

static bool same_tag(const struct perfring_tag *a, const struct perfring_tag *b)
{
	return same_bytes(a->bytes, b->bytes, sizeof(a->bytes));
}

static bool same_string(const struct perfring_string *a, const struct perfring_string *b)
{
	return a->size == b->size && a->space == b->space && same_bytes(a->data, b->data, a->size);
}

static bool same_text64(const struct perfring_string *a, const struct perfring_string *b)
{
	return same_string(a, b);
}

static bool same_text512(const struct perfring_string *a, const struct perfring_string *b)
{
	return same_string(a, b);
}

static bool same_links(const struct perfring_links *a, const struct perfring_links *b)
{
	return a->nr == b->nr && same_bytes(a->words, b->words, 16 * a->nr);
}

static bool same_poke(const struct perfring_poke *a, const struct perfring_poke *b)
{
	return a->old_len == b->old_len && a->new_len == b->new_len &&
	       same_bytes(a->old_bytes, b->old_bytes, a->old_len) && same_bytes(a->new_bytes, b->new_bytes, a->new_len);
}

static bool same_rest(const struct perfring_bytes *a, const struct perfring_bytes *b)
{
	return a->size == b->size && same_bytes(a->data, b->data, a->size);
}

static bool same_words(const struct perfring_list *a, const struct perfring_list *b)
{
	return same_list(a, b);
}

static bool same_attr(const struct perfring_bytes *a, const struct perfring_bytes *b)
{
	return same_rest(a, b);
}

static bool same_blob(const struct perfring_bytes *a, const struct perfring_bytes *b)
{
	return same_rest(a, b);
}

static bool same_build_id(const struct perfring_build_id *a, const struct perfring_build_id *b)
{
	return a->size == b->size && a->has_size == b->has_size && same_bytes(a->bytes, b->bytes, sizeof(a->bytes));
}

static bool same_index(const struct perfring_index *a, const struct perfring_index *b)
{
	return a->nr == b->nr && !a->machines == !b->machines && same_bytes(a->entries, b->entries, 32 * a->nr) &&
	       (!a->machines || same_bytes(a->machines, b->machines, 16 * a->nr));
}

static bool same_threads(const struct perfring_threads *a, const struct perfring_threads *b)
{
	return a->nr == b->nr && same_bytes(a->data, b->data, 24 * a->nr);
}

static bool same_cpu_map(const struct perfring_cpu_map *a, const struct perfring_cpu_map *b)
{
	return a->type == b->type && a->nr == b->nr && a->long_size == b->long_size && a->first == b->first &&
	       a->last == b->last && a->any_cpu == b->any_cpu && a->size == b->size &&
	       same_bytes(a->data, b->data, a->size);
}

static bool same_conv(const struct perfring_conv *a, const struct perfring_conv *b)
{
	return a->is_there == b->is_there && a->cap_zero == b->cap_zero && a->cap_short == b->cap_short &&
	       a->cycles == b->cycles && a->mask == b->mask;
}

static bool same_metadata(const struct perfring_metadata *a, const struct perfring_metadata *b)
{
	return a->nr == b->nr && same_bytes(a->data, b->data, 320 * a->nr);
}

#define SAME_u64(x, y, a, b) same_u64(&x->a, &y->a)
#define SAME_pair(x, y, a, b) (same_u32(&x->a, &y->a) && same_u32(&x->b, &y->b))
#define SAME_weight(x, y, a, b) same_weight(&x->a, &y->a)
#define SAME_read(x, y, a, b) same_read(&x->a, &y->a)
#define SAME_list(x, y, a, b) same_list(&x->a, &y->a)
#define SAME_raw(x, y, a, b) same_raw(&x->a, &y->a)
#define SAME_branch(x, y, a, b) same_branch(&x->a, &y->a)
#define SAME_regs(x, y, a, b) same_regs(&x->a, &y->a)
#define SAME_stack(x, y, a, b) same_stack(&x->a, &y->a)
#define SAME_aux(x, y, a, b) same_aux(&x->a, &y->a)

/* NULL, or the member that differs. */
static const char *differs_sample(const struct perfring_sample *x, const struct perfring_sample *y)
{
	if (x->present != y->present)
		return "present";
	if (x->misc != y->misc)
		return "misc";
	if (x->trailing_size != y->trailing_size || !same_bytes(x->trailing, y->trailing, x->trailing_size))
		return "trailing";
#define PERFRING_FIELD(NAME, bit, kind, a, b, ...) \
	if ((x->present & PERFRING_SAMPLE_##NAME) && !SAME_##kind(x, y, a, b)) \
		return #NAME;
#include <perfring/fields.def>
	return NULL;
}

#define TRAILER_no(NAME, kind, a, b)
#define TRAILER_yes(NAME, kind, a, b) \
	if ((x->present & PERFRING_SAMPLE_##NAME) && !SAME_##kind(x, y, a, b)) \
		return "trailer " #NAME;
#define TRAILER_last(NAME, kind, a, b) TRAILER_yes(NAME, kind, a, b)

static const char *differs_trailer(const struct perfring_trailer *x, const struct perfring_trailer *y)
{
	if (x->present != y->present)
		return "trailer";
#define PERFRING_FIELD(NAME, bit, kind, a, b, trailer, ...) TRAILER_##trailer(NAME, kind, a, b)
#include <perfring/fields.def>
	return NULL;
}

static const char *differs_record(const struct perfring_record *x, const struct perfring_record *y)
{
	if (x->type != y->type)
		return "type";
	if (x->misc != y->misc)
		return "misc";
	if (x->size != y->size)
		return "size";
	if (x->trailing_size != y->trailing_size || !same_bytes(x->trailing, y->trailing, x->trailing_size))
		return "trailing";
	switch (x->type) {
#define PERFRING_RECORD(NAME, type, noun) \
	case PERFRING_RECORD_##NAME: { \
		const struct perfring_record_##noun *is = &x->is.noun, *other = &y->is.noun; \
\
		(void)is; \
		(void)other;
#define PERFRING_MEMBER(kind, member, show) \
	if (!same_##kind(&is->member, &other->member)) \
		return #member;
#define PERFRING_MEMBER_WHEN(when, kind, member, show) \
	if ((when) && !same_##kind(&is->member, &other->member)) \
		return #member;
#define PERFRING_RECORD_END(NAME, type, noun) \
	break; \
	}
#include <perfring/records.def>
	default:
		break;
	}
	return differs_trailer(&x->trailer, &y->trailer);
}

static const uint8_t types[] = {
#define PERFRING_RECORD(NAME, type, noun) type,
#define PERFRING_MEMBER(kind, member, show)
#define PERFRING_RECORD_END(NAME, type, noun)
#include <perfring/records.def>
};

/* ---- inverse ---- */

static unsigned char drawn[ROOM], record[ROOM], again[ROOM], foreign[ROOM], native[ROOM], swapped[ROOM];

/* What is asked of every record, whatever it holds. */
static const char *try_bytes(const struct perfring_format *format, int64_t size)
{
	const struct perf_event_header *header = (const void *)record;
	struct perfring_fault fault = {-1, NULL};
	struct perfring_finding finding;
	int64_t length;

	if (header->size != size)
		return "header.size";
	if (perfring_record_examine(format, header, (size_t)size, &finding))
		return finding.what;
	length = perfring_record_to_foreign(format, header, foreign, (size_t)size, &fault);
	if (length != size)
		return "to_foreign";
	length = perfring_record_to_native(format, (const void *)foreign, native, (size_t)size, &fault);
	if (length != size)
		return "to_native";
	return memcmp(native, record, (size_t)size) ? "twice swapped" : NULL;
}

static const char *try_sample(struct perfring_generator *generator, const struct perfring_format *format, uint32_t most)
{
	const struct perf_event_header *header = (const void *)record;
	struct perfring_sample sample, decoded;
	const char *what;
	int64_t size, used;

	used = perfring_generate_sample(generator, format, &sample, drawn, most, most);
	if (used < 0)
		return most < perfring_format_least(format) + 12 ? NULL : "generate";
	size = perfring_sample_encode(format, &sample, record, most);
	if (size != used || size > most || size != perfring_sample_size(format, &sample) ||
	    memcmp(record, drawn, (size_t)size))
		return "encode";
	if (perfring_sample_decode(format, header, &decoded, NULL))
		return "decode";
	what = differs_sample(&sample, &decoded);
	if (what)
		return what;
	if (perfring_sample_encode(format, &decoded, again, (size_t)size) != size ||
	    memcmp(record, again, (size_t)size))
		return "encode again";
	what = try_bytes(format, size);
	if (what)
		return what;
	if (perfring_sample_decode_foreign(format, (const void *)foreign, &decoded, swapped, (size_t)size, NULL))
		return "decode_foreign";
	return differs_sample(&sample, &decoded);
}

static const char *try_record(struct perfring_generator *generator, const struct perfring_format *format, uint32_t type,
			      uint32_t most)
{
	const struct perf_event_header *header = (const void *)record;
	struct perfring_record made, decoded;
	const char *what;
	int64_t size, used;

	used = perfring_generate_members(generator, format, type, &made, drawn, most, most);
	if (used < 0)
		return most < 700 ? NULL : "generate";
	size = perfring_record_encode(format, &made, record, most);
	if (size < used || size > most || size != perfring_record_size(format, &made) || (type < 64 && size % 8))
		return "encode";
	if (perfring_record_decode(format, header, &decoded, NULL))
		return "decode";
	what = differs_record(&made, &decoded);
	if (what)
		return what;
	if (perfring_record_encode(format, &decoded, again, (size_t)size) != size ||
	    memcmp(record, again, (size_t)size))
		return "encode again";
	return try_bytes(format, size);
}

static void draw_format(struct perfring_generator *generator, struct perfring_format *format)
{
	union {
		struct perf_event_attr attr;
		unsigned char buffer[4096];
	} any;
	size_t size = 64 + 8 * perfring_generator_draw(generator, 11);

	if (!perfring_generator_draw(generator, 64))
		size = 64 + perfring_generator_draw(generator, 4033);
	cr_assert_eq(perfring_generate_attr(generator, &any.attr, size), 0);
	cr_assert_eq(any.attr.size, size);
	cr_assert_eq(perfring_format_from_attr(format, &any.attr), 0);
	cr_assert_eq(format->sample_type, any.attr.sample_type, "both weights");
	format->arch = (uint16_t)perfring_generator_draw(generator, 6);
}

static uint32_t draw_most(struct perfring_generator *generator)
{
	uint64_t shape = perfring_generator_draw(generator, 256);

	if (shape < 4)
		return 65528;
	if (shape < 32)
		return 4096;
	return 256 + (uint32_t)perfring_generator_draw(generator, 768);
}

/* Now and then the shortest needs more than `most`. */
static bool was_made(void)
{
	return ((const struct perf_event_header *)(const void *)record)->size;
}

/* All attrs whose number is `part` of `parts`. */
static void inverse(uint64_t part, uint64_t parts)
{
	const char *wished = getenv("PERFRING_INVERSE"), *what;
	uint64_t attrs = trials(IS_SANITIZED ? 8160 : 102000), samples = 0, records = 0, bytes = 0, i;
	struct perfring_generator generator;
	struct perfring_format format;
	uint32_t type, most;
	int j;

	if (wished)
		attrs = strtoull(wished, NULL, 0) / RECORDS;
	attrs = (attrs + parts - 1) / parts;
	for (i = 0; i < attrs; i++) {
		perfring_generator_seed(&generator, i * parts + part);
		draw_format(&generator, &format);
		for (j = 0; j < RECORDS; j++) {
			most = draw_most(&generator);
			type = types[perfring_generator_draw(&generator, sizeof(types))];
			if (!perfring_generator_draw(&generator, 64))
				type = (uint32_t)perfring_generator_draw(&generator, 256);
			memset(record, 0, 8);
			if (j % 2 || type == PERFRING_RECORD_SAMPLE) {
				type = PERFRING_RECORD_SAMPLE;
				what = try_sample(&generator, &format, most);
				samples += was_made();
			} else {
				what = try_record(&generator, &format, type, most);
				records += was_made();
			}
			cr_assert_null(what, "attr %llu, record %d, type %u: %s",
				       (unsigned long long)(i * parts + part), j, type, what);
			bytes += ((const struct perf_event_header *)(const void *)record)->size;
		}
	}
	fprintf(stderr, "generate: part %llu: %llu attrs, %llu samples, %llu other records, %llu MiB\n",
		(unsigned long long)part, (unsigned long long)attrs, (unsigned long long)samples,
		(unsigned long long)records, (unsigned long long)(bytes >> 20));
	cr_assert_geq(samples, attrs * RECORDS * 45 / 100);
	cr_assert_geq(records, attrs * RECORDS * 45 / 100);
	/* Ten millions in all where everything is tried (scripts/prove), native and swapped. */
	if (!wished)
		cr_assert_geq((samples + records) * parts, trials(IS_SANITIZED ? 800000 : 10000000));
}

Test(generate, inverse_0)
{
	inverse(0, 4);
}

Test(generate, inverse_1)
{
	inverse(1, 4);
}

Test(generate, inverse_2)
{
	inverse(2, 4);
}

Test(generate, inverse_3)
{
	inverse(3, 4);
}

/* ---- shapes ---- */

/* How often something had none, one, more. */
struct counts {
	uint32_t none;
	uint32_t one;
	uint32_t more;
};

static void count_nr(struct counts *counts, uint64_t nr)
{
	counts->none += nr == 0;
	counts->one += nr == 1;
	counts->more += nr > 1;
}

/* Each at least 2 of 100. */
static void assert_even(const struct counts *counts, uint32_t draws, const char *what)
{
	cr_assert_gt(counts->none, draws / 50, "%s: none %u", what, counts->none);
	cr_assert_gt(counts->one, draws / 50, "%s: one %u", what, counts->one);
	cr_assert_gt(counts->more, draws / 50, "%s: more %u", what, counts->more);
}

/* Every field at once; masks of three registers. */
static struct perfring_format all_fields(void)
{
	struct perfring_format format;

	memset(&format, 0, sizeof(format));
	format.sample_type = PERFRING_SAMPLE_KNOWN & ~(uint64_t)PERFRING_SAMPLE_WEIGHT;
	format.read_format = 0x1f;
	format.branch_sample_type = PERFRING_SAMPLE_BRANCH_ANY;
	format.sample_regs_user = 7;
	format.sample_regs_intr = 0x38;
	format.flags = UINT64_C(1) << PERFRING_ATTR_FLAG_sample_id_all;
	format.arch = PERFRING_ARCH_X86;
	format.sample_stack_user = 32768;
	perfring_format_plan(&format);
	return format;
}

static void histogram(uint32_t most, uint32_t draws)
{
	struct counts read = {0}, chain = {0}, raw = {0}, branch = {0}, stack = {0}, aux = {0}, dyn = {0};
	uint32_t user[3] = {0}, intr[3] = {0}, deferred = 0, trailing = 0, large = 0, full = 0, i;
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	struct perfring_sample sample;
	int64_t size;

	perfring_generator_seed(&generator, most);
	for (i = 0; i < draws; i++) {
		cr_assert_geq(perfring_generate_sample(&generator, &format, &sample, drawn, most, most), 0);
		size = perfring_sample_size(&format, &sample);
		cr_assert(size > 0 && size <= most);
		large += size > 60000;
		full += size == most;
		count_nr(&read, sample.read.nr);
		count_nr(&chain, sample.callchain.nr);
		count_nr(&raw, (sample.raw.size - 4) / 8);
		count_nr(&branch, sample.branch_stack.nr);
		count_nr(&stack, sample.stack_user.size / 8);
		count_nr(&aux, sample.aux.size / 8);
		count_nr(&dyn, sample.stack_user.size ? sample.stack_user.dyn_size : 0);
		cr_assert(sample.regs_user.abi <= 2 && sample.regs_intr.abi <= 2);
		user[sample.regs_user.abi]++;
		intr[sample.regs_intr.abi]++;
		trailing += sample.trailing_size != 0;
		deferred +=
			sample.callchain.nr >= 2 && sample.callchain.words[sample.callchain.nr - 2] == (uint64_t)-640;
	}
	assert_even(&read, i, "read");
	assert_even(&chain, i, "callchain");
	assert_even(&raw, i, "raw");
	assert_even(&branch, i, "branches");
	assert_even(&stack, i, "stack");
	assert_even(&aux, i, "aux");
	cr_assert(dyn.none && dyn.more);
	for (i = 0; i < 3; i++)
		cr_assert(user[i] > draws / 10 && intr[i] > draws / 10, "abi %u", i);
	cr_assert_gt(deferred, draws / 50);
	cr_assert_gt(trailing, draws / 50);
	cr_assert_gt(full, draws / 50);
	cr_assert(most < 65528 || large > draws / 50, "large %u", large);
}

Test(generate, sample_shapes)
{
	histogram(2048, 20000);
	histogram(65528, 2000);
}

Test(generate, branch_shapes)
{
	struct perfring_format format = all_fields();
	uint32_t full = 0, no_hw_idx = 0, no_counters = 0, i;
	struct perfring_generator generator;
	struct perfring_sample sample;

	format.branch_sample_type |= PERFRING_SAMPLE_BRANCH_HW_INDEX | PERFRING_SAMPLE_BRANCH_COUNTERS;
	/* With fields of varying length behind it only the full shape can be told. */
	perfring_generator_seed(&generator, 5);
	for (i = 0; i < 2000; i++) {
		cr_assert_geq(perfring_generate_sample(&generator, &format, &sample, drawn, 2048, 2048), 0);
		cr_assert(sample.branch_stack.has_hw_idx && sample.branch_stack.counters);
	}
	format.sample_type &= ~(uint64_t)(PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER |
					  PERFRING_SAMPLE_REGS_INTR | PERFRING_SAMPLE_AUX);
	perfring_format_plan(&format);
	for (i = 0; i < 2000; i++) {
		cr_assert_geq(perfring_generate_sample(&generator, &format, &sample, drawn, 2048, 2048), 0);
		cr_assert(sample.branch_stack.has_hw_idx || !sample.branch_stack.nr);
		no_hw_idx += !sample.branch_stack.has_hw_idx;
		no_counters += sample.branch_stack.nr && !sample.branch_stack.counters;
		full += sample.branch_stack.has_hw_idx && sample.branch_stack.counters;
	}
	cr_assert(no_hw_idx > 200 && no_counters > 100 && full > 500, "%u %u %u", no_hw_idx, no_counters, full);
}

/* One draw of a kind, decoded from what was encoded. */
static void draw_kind(struct perfring_generator *generator, const struct perfring_format *format, uint32_t type,
		      struct perfring_record *decoded)
{
	int64_t size = perfring_generate_record(generator, format, type, record, 2048);

	cr_assert_gt(size, 0, "type %u: %lld", type, (long long)size);
	cr_assert_eq(perfring_record_decode(format, (const void *)record, decoded, NULL), 0);
}

enum {
	DRAWS = 2000,
};

/* Every one of `nr` variants, seen[] times, is no rarer than 1 of 20. */
static void assert_seen(const uint32_t *seen, uint32_t nr, const char *what)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		cr_assert_gt(seen[i], DRAWS / 20, "%s: variant %u", what, i);
}

Test(generate, record_variants)
{
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	struct perfring_record made;
	uint32_t file[2] = {0}, fmt[3] = {0}, cut[2] = {0}, update[4] = {0}, map[4] = {0}, width[2] = {0};
	uint32_t machines[2] = {0}, conv[2] = {0}, build_id[2] = {0}, attr[2] = {0}, i;
	struct counts links = {0}, chain = {0}, name = {0}, read = {0}, threads = {0};

	perfring_generator_seed(&generator, 3);
	for (i = 0; i < DRAWS; i++) {
		draw_kind(&generator, &format, 10, &made);
		file[made.is.mmap2.file.has_build_id]++;
		count_nr(&name, made.is.mmap2.filename.size);
		draw_kind(&generator, &format, 8, &made);
		count_nr(&read, made.is.read.read.nr);
		draw_kind(&generator, &format, 16, &made);
		count_nr(&links, made.is.namespaces.links.nr);
		draw_kind(&generator, &format, 22, &made);
		count_nr(&chain, made.is.callchain_deferred.ips.nr);
		draw_kind(&generator, &format, 64, &made);
		attr[made.is.header_attr.attr.size > 136]++;
		draw_kind(&generator, &format, 67, &made);
		build_id[made.is.header_build_id.build_id.has_size]++;
		draw_kind(&generator, &format, 69, &made);
		machines[made.is.id_index.index.machines != NULL]++;
		draw_kind(&generator, &format, 72, &made);
		cr_assert_leq(made.is.auxtrace_error.fmt, 2);
		fmt[made.is.auxtrace_error.fmt]++;
		if (made.is.auxtrace_error.fmt < 2)
			cut[made.is.auxtrace_error.msg.space < 64]++;
		draw_kind(&generator, &format, 73, &made);
		count_nr(&threads, made.is.thread_map.threads.nr);
		draw_kind(&generator, &format, 74, &made);
		map[made.is.cpu_map.cpus.type < 3 ? made.is.cpu_map.cpus.type : 3]++;
		if (made.is.cpu_map.cpus.type == 1)
			width[made.is.cpu_map.cpus.long_size == 8]++;
		draw_kind(&generator, &format, 78, &made);
		cr_assert_leq(made.is.event_update.type, 3);
		update[made.is.event_update.type]++;
		draw_kind(&generator, &format, 79, &made);
		conv[made.is.time_conv.more.is_there]++;
	}
	assert_seen(file, 2, "MMAP2.file");
	assert_seen(attr, 2, "HEADER_ATTR.attr");
	assert_seen(build_id, 2, "HEADER_BUILD_ID.build_id");
	assert_seen(machines, 2, "ID_INDEX.machines");
	assert_seen(fmt, 3, "AUXTRACE_ERROR.fmt");
	assert_seen(cut, 2, "AUXTRACE_ERROR.msg");
	assert_seen(map, 4, "CPU_MAP.cpus");
	assert_seen(width, 2, "CPU_MAP.long_size");
	assert_seen(update, 4, "EVENT_UPDATE.type");
	assert_seen(conv, 2, "TIME_CONV.more");
	assert_even(&name, DRAWS, "MMAP2.filename");
	assert_even(&read, DRAWS, "READ.read");
	assert_even(&links, DRAWS, "NAMESPACES.links");
	assert_even(&chain, DRAWS, "CALLCHAIN_DEFERRED.ips");
	assert_even(&threads, DRAWS, "THREAD_MAP.threads");
}

/* type 0 is every one of the kernel's, and none of perf's. */
Test(generate, every_kind)
{
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	uint32_t seen[256] = {0}, i, largest[256] = {0}, kernels = 0;

	for (i = 0; i < sizeof(types); i++)
		kernels += types[i] < 64;
	perfring_generator_seed(&generator, 4);
	for (i = 0; i < 1000 * kernels; i++) {
		const struct perf_event_header *header = (const void *)record;
		size_t buffer = i % 32 ? 1024 : 65528;

		cr_assert_gt(perfring_generate_record(&generator, &format, 0, record, buffer), 0);
		cr_assert_lt(header->type, 256);
		seen[header->type]++;
		if (header->size > largest[header->type])
			largest[header->type] = header->size;
	}
	for (i = 0; i < 256; i++)
		if (i < 64 && (i == PERFRING_RECORD_SAMPLE || perfring_record_name(i)))
			cr_assert(seen[i] > 800 && seen[i] < 1200, "type %u: %u", i, seen[i]);
		else
			cr_assert_eq(seen[i], 0, "type %u", i);
	/* those that can be long are so if they fit */
	cr_assert_gt(largest[1], 60000);
	cr_assert_gt(largest[9], 60000);
	cr_assert_gt(largest[16], 60000);
	cr_assert_gt(largest[20], 60000);
	cr_assert_gt(largest[22], 60000);
	for (i = 0; i < sizeof(types); i++) {
		cr_assert_gt(perfring_generate_record(&generator, &format, types[i], record, 2048), 0);
		cr_assert_eq(((const struct perf_event_header *)(const void *)record)->type, types[i]);
	}
	/* of types in no table too */
	for (i = 0; i < 200; i++) {
		cr_assert_gt(perfring_generate_record(&generator, &format, 40 + i, record, 1024), 0);
		cr_assert_eq(((const struct perf_event_header *)(const void *)record)->type, 40 + i);
	}
}

Test(generate, attrs)
{
	struct perfring_generator generator;
	struct perf_event_attr attr;
	uint64_t ones = 0, zeros = 0, formats = 0, masks = 0, branches = 0, flags = 0, word;
	uint32_t i, nr, few = 0, many = 0, none = 0, types_seen = 0, sample_id_all = 0;

	perfring_generator_seed(&generator, 6);
	for (i = 0; i < 5000; i++) {
		cr_assert_eq(perfring_generate_attr(&generator, &attr, sizeof(attr)), 0);
		ones |= attr.sample_type;
		zeros |= ~attr.sample_type;
		cr_assert_neq(attr.sample_type & (PERF_SAMPLE_WEIGHT | PERFRING_SAMPLE_WEIGHT_STRUCT),
			      PERF_SAMPLE_WEIGHT | (uint64_t)PERFRING_SAMPLE_WEIGHT_STRUCT);
		cr_assert_leq(attr.read_format, 31);
		cr_assert_eq(attr.sample_stack_user % 8, 0);
		cr_assert(attr.sample_regs_user && attr.sample_regs_intr);
		formats |= UINT64_C(1) << attr.read_format;
		branches |= attr.branch_sample_type;
		masks |= attr.sample_regs_user & attr.sample_regs_intr;
		types_seen |= 1u << attr.type;
		sample_id_all += attr.sample_id_all;
		memcpy(&word, (const char *)&attr + 40, 8);
		flags |= word;
		nr = (uint32_t)__builtin_popcountll(attr.sample_type);
		none += nr == 0;
		few += nr > 0 && nr <= 4;
		many += nr >= 20;
	}
	/* all sample bits, all 32 read formats, all 20 branch bits, all 40 flag bits */
	cr_assert_eq(ones, PERFRING_SAMPLE_KNOWN);
	cr_assert_eq(zeros & PERFRING_SAMPLE_KNOWN, PERFRING_SAMPLE_KNOWN);
	cr_assert_eq(formats, 0xffffffff);
	cr_assert_eq(branches, 0xfffff);
	cr_assert_eq(masks, UINT64_MAX);
	cr_assert_eq(types_seen, 0x3f);
	cr_assert_eq(flags, 0xffffffffff);
	cr_assert(none > 50 && few > 500 && many > 500, "%u %u %u", none, few, many);
	cr_assert(sample_id_all > 3500 && sample_id_all < 4900);
	cr_assert_eq(perfring_generate_attr(&generator, &attr, 63), -EINVAL);
	cr_assert_eq(perfring_generate_attr(&generator, &attr, 4097), -EINVAL);
	/* of the oldest size: nothing behind it is written */
	memset(&attr, 0xa5, sizeof(attr));
	cr_assert_eq(perfring_generate_attr(&generator, &attr, 64), 0);
	cr_assert_eq(attr.size, 64);
	for (i = 64; i < sizeof(attr); i++)
		cr_assert_eq(((const unsigned char *)&attr)[i], 0xa5);
}

/* ---- the same everywhere ---- */

static uint64_t sum(uint64_t so_far, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	for (; size; size--)
		so_far = (so_far ^ *byte++) * UINT64_C(0x100000001b3);
	return so_far;
}

enum {
	OLD_FIELDS = 0x1ffffff, /* and WEIGHT_STRUCT is one of them */
};

/* Of formats and kinds that no new row changes: HEADER_ATTR is not among them, its attr has every field there is. */
static uint64_t sum_of_seed(uint64_t seed)
{
	static const uint32_t fields[] = {
		0x0, 0x1, 0x10187, 0x187, 0x1ffbfff, 0xfeffff, 0xc30, 0x3000, 0x140800, OLD_FIELDS & ~0x4000,
	};
	static const uint8_t kinds[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
					17, 18, 19, 20, 21, 22, 67, 69, 72, 73, 74, 78, 79, 83, 84, 99};
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	uint64_t total = UINT64_C(0xcbf29ce484222325);
	int64_t size;
	uint32_t i, j;

	perfring_generator_seed(&generator, seed);
	for (i = 0; i < 6400; i++) {
		j = i / sizeof(kinds);
		format.sample_type = fields[j % (sizeof(fields) / sizeof(fields[0]))];
		format.read_format = j / 2 % 32;
		format.branch_sample_type = PERFRING_SAMPLE_BRANCH_ANY;
		format.branch_sample_type |= j / 3 % 2 ? PERFRING_SAMPLE_BRANCH_HW_INDEX : 0;
		format.branch_sample_type |= j / 5 % 2 ? PERFRING_SAMPLE_BRANCH_COUNTERS : 0;
		format.flags = (uint64_t)(j % 3 != 0) << PERFRING_ATTR_FLAG_sample_id_all;
		perfring_format_plan(&format);
		memset(record, 0x5a, 1024);
		size = perfring_generate_record(&generator, &format, kinds[i % sizeof(kinds)], record, 1024);
		if (size > 0)
			total = sum(total, record, (size_t)size);
	}
	return total;
}

/* The first three words of splitmix64 from 0 and from 1234567, as its authors' code gives them. */
Test(generate, draws)
{
	struct perfring_generator generator;
	uint32_t seen[10] = {0}, i;

	perfring_generator_seed(&generator, 0);
	cr_assert_eq(perfring_generator_draw(&generator, 0), UINT64_C(0xe220a8397b1dcdaf));
	cr_assert_eq(perfring_generator_draw(&generator, 0), UINT64_C(0x6e789e6aa1b965f4));
	cr_assert_eq(perfring_generator_draw(&generator, 0), UINT64_C(0x06c45d188009454f));
	perfring_generator_seed(&generator, 1234567);
	cr_assert_eq(perfring_generator_draw(&generator, 0), UINT64_C(6457827717110365317));
	cr_assert_eq(perfring_generator_draw(&generator, 0), UINT64_C(3203168211198807973));
	for (i = 0; i < 100000; i++) {
		uint64_t value = perfring_generator_draw(&generator, 10);

		cr_assert_lt(value, 10);
		seen[value]++;
		cr_assert_eq(perfring_generator_draw(&generator, 1), 0);
		cr_assert_lt(perfring_generator_draw(&generator, UINT64_MAX), UINT64_MAX);
	}
	for (i = 0; i < 10; i++)
		cr_assert(seen[i] > 9600 && seen[i] < 10400, "%u: %u", i, seen[i]);
}

Test(generate, same_seed_same_bytes)
{
	cr_assert_eq(sum_of_seed(1), sum_of_seed(1));
	cr_assert_neq(sum_of_seed(1), sum_of_seed(2));
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		cr_assert_eq(sum_of_seed(1), UINT64_C(0x578b7fce13e97eaa), "%#llx", (unsigned long long)sum_of_seed(1));
}

/* ---- too short a buffer ---- */

/* In `most` bytes, with a byte in front and behind that nobody may touch. */
static void try_buffer(struct perfring_generator *generator, const struct perfring_format *format, uint32_t type,
		     uint32_t most)
{
	unsigned char *buffer = drawn + 64;
	struct perfring_sample sample;
	struct perfring_record other;
	int64_t used, size;

	memset(drawn, 0xa5, 64);
	memset(buffer + most, 0xa5, 64);
	size = perfring_generate_record(generator, format, type, buffer, most);
	cr_assert(size == -ENOSPC || (size >= 8 && size <= most));
	if (type == PERFRING_RECORD_SAMPLE)
		used = perfring_generate_sample(generator, format, &sample, buffer, most, most);
	else
		used = perfring_generate_members(generator, format, type, &other, buffer, most, most);
	cr_assert(used == -ENOSPC || (used >= 0 && used <= most));
	cr_assert_eq(used == -ENOSPC, size == -ENOSPC, "type %u in %u", type, most);
	for (uint32_t i = 0; i < 64; i++)
		cr_assert(drawn[i] == 0xa5 && buffer[most + i] == 0xa5, "type %u in %u", type, most);
	/* space for less than the record may take */
	if (type == PERFRING_RECORD_SAMPLE)
		used = perfring_generate_sample(generator, format, &sample, buffer, most, (most + 8) & ~7u);
	else
		used = perfring_generate_members(generator, format, type, &other, buffer, most, (most + 8) & ~7u);
	cr_assert_eq(used, -ENOSPC);
}

Test(generate, room_too_small)
{
	struct perfring_generator generator;
	struct perfring_format format;
	struct perfring_record other;
	uint32_t most, i, j;

	perfring_generator_seed(&generator, 8);
	for (i = 0; i < 300; i++) {
		draw_format(&generator, &format);
		for (j = 0; j < sizeof(types); j++)
			for (most = 0; most < 640; most += 1 + (uint32_t)perfring_generator_draw(&generator, 40))
				try_buffer(&generator, &format, types[j], most);
	}
	/* The shortest of each fits in just what it needs: 8 for the header, then docs/abi.md 5, 6 and 10. */
	format = all_fields();
	format.sample_type = 0x1ffbfff; /* the first 25, WEIGHT beside WEIGHT_STRUCT left out */
	format.flags = 0;
	perfring_format_plan(&format);
	cr_assert_eq(perfring_generate_record(&generator, &format, 14, record, 7), -ENOSPC);
	cr_assert_eq(perfring_generate_record(&generator, &format, 14, record, 8), 8);
	cr_assert_eq(perfring_generate_record(&generator, &format, 2, record, 23), -ENOSPC);
	cr_assert_eq(perfring_generate_record(&generator, &format, 2, record, 24), 24);
	cr_assert_eq(perfring_generate_record(&generator, &format, 10, record, 79), -ENOSPC);
	cr_assert_eq(perfring_generate_record(&generator, &format, 10, record, 80), 80);
	cr_assert_eq(perfring_generate_record(&generator, &format, 72, record, 103), -ENOSPC);
	/* header, 16 fields of a word, READ 3 words, CALLCHAIN, RAW 8, BRANCH_STACK, REGS twice, STACK, AUX */
	cr_assert_eq(perfring_generate_record(&generator, &format, 9, record, 8 + 16 * 8 + 24 + 7 * 8 - 1), -ENOSPC);
	cr_assert_eq(perfring_generate_record(&generator, &format, 9, record, 8 + 16 * 8 + 24 + 7 * 8),
		     8 + 16 * 8 + 24 + 7 * 8);
	cr_assert_eq(perfring_generate_members(&generator, &format, 9, &other, record, 4096, 4096), -EINVAL);
	cr_assert_eq(perfring_generate_record(&generator, NULL, 9, record, 4096), -EINVAL);
}

/* ---- damages ---- */

enum {
	KERNEL = 1,
	ALL = 2,
};

/* The kinds that each damage can befall: by hand, from what is in docs/abi.md 4, 5, 6 and 10. */
static const struct {
	enum perfring_damage damage;
	int all; /* KERNEL: types below 64; ALL */
	bool may_pass;
	uint8_t kinds[32]; /* besides */
} befalls[] = {
	{PERFRING_DAMAGE_SIZE_SMALL, ALL, false, {0}},
	{PERFRING_DAMAGE_SIZE_LARGE, ALL, false, {0}},
	{PERFRING_DAMAGE_SIZE_ODD, KERNEL, false, {0}},
	/* not those that could end anywhere: FINISHED_ROUND, FINISHED_INIT, COMPRESSED */
	{PERFRING_DAMAGE_TRUNCATED, KERNEL, false, {64, 65, 66, 67, 69, 70, 71, 72, 73, 74,
						    75, 76, 77, 78, 79, 80, 83, 84, 85, 86}},
	{PERFRING_DAMAGE_LENGTH, 0, false, {9, 20, 64, 67, 83}},
	{PERFRING_DAMAGE_NR, 0, false, {8, 9, 16, 22, 69, 73, 74, 75, 78, 84}},
	{PERFRING_DAMAGE_NR_OVERFLOW, 0, false, {8, 9, 16, 22, 69, 73, 75, 84}},
	{PERFRING_DAMAGE_DYN_SIZE, 0, false, {9}},
	{PERFRING_DAMAGE_ID, KERNEL, true, {0}},
	{PERFRING_DAMAGE_MARKER, 0, false, {9}},
	{PERFRING_DAMAGE_STRING, 0, false, {1, 3, 10, 17, 19, 65, 67, 72, 78, 84}},
	{PERFRING_DAMAGE_PADDING, 0, false, {1, 3, 10, 17, 19, 20, 65, 67, 72, 74, 78, 79, 83, 84}},
	{PERFRING_DAMAGE_ABI, 0, false, {9}},
	{PERFRING_DAMAGE_TYPE, ALL, true, {0}},
	{PERFRING_DAMAGE_MISC, 0, false, {1, 9, 10, 20, 22, 67}},
	{PERFRING_DAMAGE_BYTES, ALL, true, {0}},
};

static bool can_befall(size_t row, uint32_t type)
{
	size_t i;

	if (befalls[row].all == ALL || (befalls[row].all == KERNEL && type < 64))
		return true;
	for (i = 0; i < sizeof(befalls[row].kinds); i++)
		if (befalls[row].kinds[i] == type)
			return true;
	return false;
}

static bool is_refused(const struct perfring_format *format, size_t size)
{
	const struct perf_event_header *header = (const void *)record;
	struct perfring_finding finding;
	int ret = perfring_record_examine(format, header, size, &finding);

	cr_assert(ret == 0 || ((ret == -EBADMSG || ret == 1) && finding.what && finding.at >= 0));
	return ret;
}

/* Whether the record has this damage: refused, but for padding, which is a remark after a string. */
static bool has_damage(const struct perfring_format *format, size_t row, size_t size)
{
	struct perfring_finding finding;
	int ret = perfring_record_examine(format, (const void *)record, size, &finding);

	return ret < 0 || (ret && befalls[row].damage == PERFRING_DAMAGE_PADDING);
}

/* Damages the record once.  Returns whether it could be. */
static bool damage_once(struct perfring_generator *generator, const struct perfring_format *format, size_t row,
			size_t size)
{
	size_t buffer = size + 8 * perfring_generator_draw(generator, 3), i;
	int64_t now;

	memset(record + size, 0xa5, 64);
	memcpy(again, record, size + 64);
	now = perfring_generate_damage(generator, format, befalls[row].damage, record, buffer);
	cr_assert(now >= 0 && now <= (int64_t)buffer);
	for (i = buffer; i < size + 64; i++)
		cr_assert_eq(record[i], 0xa5);
	if (!now) {
		cr_assert_eq(memcmp(record, again, size), 0);
		return false;
	}
	cr_assert_neq(memcmp(record, again, size), 0, "nothing changed");
	if (!befalls[row].may_pass)
		cr_assert(has_damage(format, row, (size_t)now), "%s of type %u passes",
			  perfring_damage_name(befalls[row].damage),
			  ((struct perf_event_header *)(void *)record)->type);
	return true;
}

Test(generate, damages)
{
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	uint32_t done, i;
	size_t row, j;
	int64_t size;

	cr_assert_eq(sizeof(befalls) / sizeof(befalls[0]), PERFRING_DAMAGES);
	perfring_generator_seed(&generator, 9);
	for (row = 0; row < PERFRING_DAMAGES; row++) {
		for (j = 0; j < sizeof(types); j++) {
			for (i = done = 0; i < 300; i++) {
				size = perfring_generate_record(&generator, &format, types[j], record, 1024);
				cr_assert_gt(size, 0);
				cr_assert_not(is_refused(&format, (size_t)size));
				done += damage_once(&generator, &format, row, (size_t)size);
			}
			cr_assert_eq(done != 0, can_befall(row, types[j]), "%s of type %u: %u of %u",
				     perfring_damage_name(befalls[row].damage), types[j], done, i);
		}
	}
}

/* A remark that a record has already is no damage. */
Test(generate, damages_of_what_has_a_remark)
{
	static const uint32_t named[] = {PERFRING_RECORD_COMM, PERFRING_RECORD_MMAP2, PERFRING_RECORD_CGROUP, PERFRING_RECORD_KSYMBOL};
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	struct perfring_finding finding;
	uint32_t done = 0;
	int64_t size;

	perfring_generator_seed(&generator, 12);
	for (uint32_t i = 0; i < 4000; i++) {
		size = perfring_generate_record(&generator, &format, named[i % 4], record, 1024);
		cr_assert_gt(size, 0);
		if (perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_PADDING, record, (size_t)size) != size ||
		    perfring_record_examine(&format, (const void *)record, (size_t)size, &finding) != 1)
			continue;
		for (size_t row = 0; row < PERFRING_DAMAGES; row++) {
			static unsigned char whole[1024];

			memcpy(whole, record, (size_t)size);
			done += damage_once(&generator, &format, row, (size_t)size);
			memcpy(record, whole, (size_t)size);
		}
	}
	cr_assert_gt(done, 1000);
}

/* What each damage has done, seen in the bytes. */
Test(generate, damage_is_what_it_says)
{
	struct perfring_format format;
	struct perfring_generator generator;
	struct perf_event_header *header = (void *)record;
	struct perfring_sample sample;
	uint64_t nr;
	uint32_t i, abi;
	int64_t size, now;

	memset(&format, 0, sizeof(format));
	format.sample_type = PERFRING_SAMPLE_CALLCHAIN;
	perfring_format_plan(&format);
	perfring_generator_seed(&generator, 10);
	for (i = 0; i < 1000; i++) {
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_SIZE_SMALL, record, 512);
		cr_assert(now == size && header->size < 8);
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_SIZE_LARGE, record, 512);
		cr_assert(now == size && header->size > size);
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_SIZE_ODD, record, 512);
		cr_assert(!now || (header->size == now && now % 8));
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_TRUNCATED, record, 512);
		cr_assert(!now || (header->size == now && now < size && now % 8 == 0));
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_NR, record, 512);
		memcpy(&nr, record + 8, 8);
		cr_assert(now == size && nr > (uint64_t)(size - 16) / 8);
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_NR_OVERFLOW, record, 512);
		memcpy(&nr, record + 8, 8);
		/* in 64 or in 32 bits */
		cr_assert(now == size && ((nr * 8 < 64 && nr > 8) || ((uint32_t)(nr * 8) < 64 && nr > 8)));
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_MISC, record, 512);
		cr_assert(now == size && (header->misc & 7) >= 6);
	}
	format.sample_type = PERFRING_SAMPLE_REGS_USER | PERFRING_SAMPLE_STACK_USER;
	format.sample_regs_user = 3;
	format.sample_stack_user = 256;
	perfring_format_plan(&format);
	for (i = 0; i < 1000; i++) {
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_ABI, record, 512);
		memcpy(&abi, record + 8, 4);
		cr_assert(now == size && abi > 2);
		size = perfring_generate_record(&generator, &format, 9, record, 512);
		cr_assert_eq(perfring_sample_decode(&format, header, &sample, NULL), 0);
		nr = sample.stack_user.size;
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGE_DYN_SIZE, record, 512);
		cr_assert_eq(now, nr ? size : 0);
		if (now)
			cr_assert_gt(*(const perfring_word *)(const void *)((const char *)sample.stack_user.data + nr),
				     nr);
	}
}

/* There is no larger size to say. */
Test(generate, damage_of_the_largest)
{
	struct perfring_generator generator;
	uint64_t nr = (65535 - 16) / 24;
	uint32_t i;

	perfring_generator_seed(&generator, 13);
	memset(record, 0, sizeof(record));
	memcpy(record, &(struct perf_event_header){PERFRING_RECORD_THREAD_MAP, 0, 65535}, 8);
	memcpy(record + 8, &nr, 8);
	cr_assert_eq(perfring_record_check(NULL, (const void *)record, 65535, NULL), 0);
	memcpy(again, record, sizeof(record));
	for (i = 0; i < 100; i++)
		cr_assert_eq(perfring_generate_damage(&generator, NULL, PERFRING_DAMAGE_SIZE_LARGE, record, 65535), 0);
	cr_assert_eq(memcmp(record, again, sizeof(record)), 0);
}

/* PERFRING_DAMAGES is every one in turn. */
Test(generate, any_damage)
{
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	uint32_t i, refused = 0;
	int64_t size, now;

	perfring_generator_seed(&generator, 11);
	for (i = 0; i < 10000; i++) {
		size = perfring_generate_record(&generator, &format, types[i % sizeof(types)], record, 1024);
		now = perfring_generate_damage(&generator, &format, PERFRING_DAMAGES, record, (size_t)size);
		cr_assert(now > 0 && now <= size);
		refused += is_refused(&format, (size_t)now);
	}
	cr_assert(refused > 7000 && refused < 10000, "%u", refused);
	cr_assert_eq(perfring_generate_damage(&generator, &format, PERFRING_DAMAGES + 1, record, 1024), 0);
}

Test(generate, damage_names)
{
	uint32_t i;

	cr_assert_str_eq(perfring_damage_name(PERFRING_DAMAGE_SIZE_SMALL), "SIZE_SMALL");
	cr_assert_str_eq(perfring_damage_name(PERFRING_DAMAGE_NR_OVERFLOW), "NR_OVERFLOW");
	cr_assert_str_eq(perfring_damage_what(PERFRING_DAMAGE_STRING), "a string has no NUL");
	for (i = 0; i < PERFRING_DAMAGES; i++)
		cr_assert(perfring_damage_name(i) && perfring_damage_what(i));
	cr_assert_null(perfring_damage_name(PERFRING_DAMAGES));
	cr_assert_null(perfring_damage_what(PERFRING_DAMAGES));
}

/* ---- mutation ---- */

Test(generate, mutations)
{
	static unsigned char was[ROOM];
	struct perfring_format format = all_fields();
	uint32_t changed = 0, valid = 0, grown = 0, i;
	struct perfring_generator generator;
	size_t size, most, now;

	perfring_generator_seed(&generator, 12);
	for (i = 0; i < 20000; i++) {
		most = 8 + perfring_generator_draw(&generator, 1024);
		memset(record, (int)i, most);
		size = 0;
		if (i % 8) {
			int64_t made = perfring_generate_record(&generator, &format, i % 2 ? 9 : 0, record, most);

			size = made < 0 ? perfring_generator_draw(&generator, most + 1) : (size_t)made;
		}
		memset(record + most, 0xa5, 64);
		memcpy(was, record, size);
		now = perfring_generate_mutate(&format, record, size, most, i);
		cr_assert_leq(now, most);
		for (int j = 0; j < 64; j++)
			cr_assert_eq(record[most + (size_t)j], 0xa5);
		changed += now != size || memcmp(was, record, now);
		grown += now > size;
		if (now >= 8)
			valid += !perfring_record_check(&format, (const void *)record, now, NULL);
	}
	cr_assert(changed > 17000, "%u", changed);
	cr_assert(grown > 1000, "%u", grown);
	cr_assert(valid > 3000 && valid < 18000, "%u", valid);
}

/* Of what is too large, no more is left than may be; nothing behind it is touched. */
Test(generate, mutation_of_too_much)
{
	struct perfring_format format = all_fields();
	uint32_t i;

	for (i = 0; i < 2000; i++) {
		memset(record, (int)i, 256);
		memcpy(again, record, 256);
		cr_assert_leq(perfring_generate_mutate(&format, record, 256, i % 128, i), i % 128);
		cr_assert_eq(memcmp(record + i % 128, again + i % 128, 256 - i % 128), 0);
	}
}

/* The largest records stay within theirs too. */
Test(generate, mutation_of_the_largest)
{
	struct perfring_format format = all_fields();
	struct perfring_generator generator;
	uint32_t i, redrawn = 0;
	size_t now;

	perfring_generator_seed(&generator, 14);
	for (i = 0; i < 2000; i++) {
		int64_t size = perfring_generate_record(&generator, &format, i % 2 ? 9 : 1, record, 65528);

		now = perfring_generate_mutate(&format, record, (size_t)size, 65528, i);
		cr_assert_leq(now, 65528);
		redrawn += size > 60000 && now > 8 && now != (size_t)size &&
			   !perfring_record_check(&format, (const void *)record, now, NULL);
	}
	cr_assert_gt(redrawn, 10, "%u", redrawn);
}

/* ---- stack ---- */

static void *many_mutations(void *format)
{
	struct perfring_generator generator;
	uint64_t i;
	int64_t size;

	perfring_generator_seed(&generator, 15);
	for (i = 0; i < 3000; i++) {
		size = perfring_generate_record(&generator, format, i % 2 ? 9 : 0, record, 2048);
		perfring_generate_mutate(format, record, size < 0 ? 0 : (size_t)size, 2048, i);
	}
	return NULL;
}

/* As much as generate.h says, and some for the thread itself. */
Test(generate, stack)
{
	static unsigned char stack[1 << 18] __attribute__((aligned(4096)));
	struct perfring_format format = all_fields();
	pthread_attr_t attr;
	pthread_t thread;
	size_t unused = 0;

	if (IS_SANITIZED)
		cr_skip_test("SKIP-ENV: a sanitizer has frames of its own");
	memset(stack, 0xa5, sizeof(stack));
	cr_assert_eq(pthread_attr_init(&attr), 0);
	cr_assert_eq(pthread_attr_setstack(&attr, stack, sizeof(stack)), 0);
	cr_assert_eq(pthread_create(&thread, &attr, many_mutations, &format), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	while (unused < sizeof(stack) && stack[unused] == 0xa5)
		unused++;
	fprintf(stderr, "generate: %zu bytes of stack\n", sizeof(stack) - unused);
	cr_assert(sizeof(stack) - unused > 66 << 10);
	cr_assert_leq(sizeof(stack) - unused, 96 << 10);
}

/* ---- perfring gen --as ring ---- */

static void read_image(void *image, size_t size)
{
	const struct perf_event_header *one;
	struct perfring_reader reader;
	struct perfring_record decoded;
	struct perfring_ring ring;
	uint32_t nr = 0;

	cr_assert_eq(perfring_ring_wrap(&ring, image, size), 0);
	cr_assert_eq(ring.size & (ring.size - 1), 0);
	cr_assert_eq(perfring_reader_open(&reader, &ring, 0), 0);
	cr_assert_gt(perfring_reader_observe(&reader), 0);
	while (perfring_reader_next(&reader, &one) == 1) {
		cr_assert(one->type == PERFRING_RECORD_MMAP2 || one->type == PERFRING_RECORD_COMM);
		cr_assert_eq(perfring_record_decode(NULL, one, &decoded, NULL), 0);
		nr++;
	}
	cr_assert_eq(nr, 500);
	cr_assert_eq(perfring_reader_observe(&reader), 0);
	perfring_reader_close(&reader);
	perfring_ring_close(&ring);
}

Test(generate, ring_image)
{
	const char *tool = getenv("PERFRING_TOOL");
	char path[] = "/tmp/generate_test.XXXXXX", shell[4096];
	struct stat status;
	void *image;
	int fd;

	if (!tool)
		cr_skip_test("SKIP-ENV: PERFRING_TOOL is not set: ctest sets it");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	snprintf(shell, sizeof(shell), "'%s' gen --as ring -n 500 --type MMAP2,COMM -o %s", tool, path);
	cr_assert_eq(system(shell), 0);
	close(fd); /* of what was there */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &status), 0);
	image = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	unlink(path);
	close(fd);
	cr_assert_neq(image, MAP_FAILED);
	read_image(image, (size_t)status.st_size);
	munmap(image, (size_t)status.st_size);
}
