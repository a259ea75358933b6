/* callchain_test.c - callchains walked with their markers, and those in two parts joined. */
#include "test.h"
#include "pack.h"

#include <stdlib.h>
#include <perfring/callchain.h>

/* The part that waits, again, over a malloc that can be told to fail; and so not linked from the library. */
static long mallocs_left = -1;

static void *counted_malloc(size_t size)
{
	if (!mallocs_left)
		return NULL;
	mallocs_left -= mallocs_left > 0;
	return malloc(size);
}

static void *counted_calloc(size_t nr, size_t size)
{
	if (!mallocs_left)
		return NULL;
	mallocs_left -= mallocs_left > 0;
	return calloc(nr, size);
}

#define malloc counted_malloc
#define calloc counted_calloc
#include "sample/callchain.c"
#undef malloc
#undef calloc

TestSuite(callchain, .timeout = 60);

/* docs/abi.md 6, by number. */
#define KERN (-UINT64_C(128))
#define USR (-UINT64_C(512))
#define DEFER (-UINT64_C(640))

/* ---- the walk ---- */

/* Walks `nr` words; the frames found go to `frames`.  Returns what the walk ended with. */
static int walk(const uint64_t *words, uint64_t nr, struct perfring_callchain *chain, struct perfring_frame *frames,
		size_t *found)
{
	struct perfring_list list = {(const perfring_word *)words, nr};
	int one;

	*chain = perfring_callchain_init(&list);
	for (*found = 0; (one = perfring_callchain_next(chain, &frames[*found])) == 1; ++*found)
		;
	return one;
}

Test(callchain, markers_are_no_addresses)
{
	/* Kernel, USR, a marker of no name (-4095 is the lowest), and the highest address that is none. */
	const uint64_t words[] = {KERN, 10, 11, USR, 20, -UINT64_C(4095), 30, -UINT64_C(4096), UINT64_MAX};
	struct perfring_callchain chain;
	struct perfring_frame frames[16];
	size_t found;

	cr_assert_eq(walk(words, 9, &chain, frames, &found), 0);
	cr_assert_eq(found, 5);
	cr_assert_eq(frames[0].ip, 10);
	cr_assert_eq(frames[0].context, KERN);
	cr_assert_eq(frames[1].ip, 11);
	cr_assert_eq(frames[1].context, KERN);
	cr_assert_eq(frames[2].ip, 20);
	cr_assert_eq(frames[2].context, USR);
	cr_assert_eq(frames[3].ip, 30);
	cr_assert_eq(frames[3].context, -UINT64_C(4095));
	cr_assert_eq(frames[4].ip, -UINT64_C(4096));
	cr_assert_eq(chain.context, UINT64_MAX);
	cr_assert_not(chain.is_deferred);
}

Test(callchain, without_markers_and_without_words)
{
	const uint64_t words[] = {10, 11, USR, KERN};
	struct perfring_callchain chain;
	struct perfring_frame frames[16];
	size_t found;

	cr_assert_eq(walk(words, 2, &chain, frames, &found), 0);
	cr_assert_eq(found, 2);
	cr_assert_eq(frames[1].ip, 11);
	cr_assert_eq(frames[1].context, 0);
	cr_assert_eq(walk(NULL, 0, &chain, frames, &found), 0);
	cr_assert_eq(found, 0);
	cr_assert_eq(walk(words + 2, 2, &chain, frames, &found), 0);
	cr_assert_eq(found, 0);
	cr_assert_eq(perfring_callchain_next(&chain, frames), 0);
}

Test(callchain, a_cookie_is_no_address)
{
	/* Cookies that look like an address, and like markers. */
	const uint64_t cookies[] = {UINT64_C(0x100000001), USR, DEFER};
	struct perfring_callchain chain;
	struct perfring_frame frames[16];
	size_t found;

	for (size_t i = 0; i < 3; i++) {
		const uint64_t words[] = {KERN, 10, DEFER, cookies[i]};

		cr_assert_eq(walk(words, 4, &chain, frames, &found), 0);
		cr_assert_eq(found, 1);
		cr_assert(chain.is_deferred);
		cr_assert_eq(chain.cookie, cookies[i]);
		cr_assert_eq(chain.context, DEFER);
		cr_assert_eq(walk(words, 3, &chain, frames, &found), -EBADMSG);
		cr_assert_eq(found, 1);
		cr_assert_eq(chain.at - 1, 2);
		cr_assert_not(chain.is_deferred);
	}
}

/* What stands behind a marker of user space is the memory of a process, and may look like anything. */
Test(callchain, a_process_defers_nothing)
{
	const uint64_t users[] = {USR, -UINT64_C(2560)};
	struct perfring_callchain chain;
	struct perfring_frame frames[16];
	size_t found;

	for (size_t i = 0; i < 2; i++) {
		const uint64_t words[] = {users[i], 10, DEFER, 11, KERN, 12, DEFER};

		cr_assert_eq(walk(words, 7, &chain, frames, &found), 0, "a marker at the end lacks no cookie here");
		cr_assert_eq(found, 5);
		cr_assert_eq(frames[1].ip, DEFER);
		cr_assert_eq(frames[1].context, users[i]);
		cr_assert_eq(frames[2].ip, 11);
		cr_assert_eq(frames[2].context, users[i]);
		cr_assert_eq(frames[3].ip, 12);
		cr_assert_eq(frames[3].context, KERN, "other markers are what they were");
		cr_assert_eq(frames[4].ip, DEFER);
		cr_assert_eq(frames[4].context, KERN);
		cr_assert_not(chain.is_deferred);
		cr_assert_eq(chain.cookie, 0);
	}
}

/* ---- joining ---- */

/* Fields in front of the chain and behind it. */
#define SAMPLED \
	(PERFRING_SAMPLE_TID | PERFRING_SAMPLE_TIME | PERFRING_SAMPLE_PERIOD | PERFRING_SAMPLE_CALLCHAIN | \
	 PERFRING_SAMPLE_RAW)

static const struct perfring_format formats[] = {
	{.sample_type = SAMPLED, .flags = UINT64_C(1) << 18},
	{.sample_type = SAMPLED},                        /* no trailer: a deferred record tells no thread */
	{.sample_type = SAMPLED & ~PERFRING_SAMPLE_TID}, /* nor does a sample */
	{.sample_type = SAMPLED & ~PERFRING_SAMPLE_CALLCHAIN},
};

static const struct perf_event_header *seal(struct pack *pack)
{
	((struct perf_event_header *)(void *)pack->bytes)->size = (uint16_t)pack->size;
	return (const void *)pack->bytes;
}

static void words(struct pack *pack, const uint64_t *from, size_t nr)
{
	bytes(pack, from, nr * 8);
}

/* A sample of `pid` 7 with this chain; its period is `number`. */
static struct perfring_item sample(struct pack *pack, const struct perfring_format *format, uint32_t tid,
				   uint64_t number, const uint64_t *chain, size_t nr)
{
	struct perfring_item item = {NULL, format, number};

	start(pack, 9, 2);
	if (format->sample_type & PERFRING_SAMPLE_TID) {
		half(pack, 7);
		half(pack, tid);
	}
	word(pack, number);
	word(pack, 1000 + number);
	if (format->sample_type & PERFRING_SAMPLE_CALLCHAIN) {
		word(pack, nr);
		words(pack, chain, nr);
	}
	half(pack, 12);
	half(pack, (uint32_t)number);
	word(pack, UINT64_C(0x5a5a5a5a5a5a5a5a));
	item.record = seal(pack);
	return item;
}

/* A CALLCHAIN_DEFERRED record of formats[0], of a thread of pid 7. */
static struct perfring_item rest(struct pack *pack, uint32_t tid, uint64_t time, uint64_t cookie, const uint64_t *ips,
				 size_t nr)
{
	struct perfring_item item = {NULL, &formats[0], time};

	start(pack, 22, 2);
	word(pack, cookie);
	word(pack, nr);
	words(pack, ips, nr);
	half(pack, 7);
	half(pack, tid);
	word(pack, time);
	item.record = seal(pack);
	return item;
}

/* What comes out next is this very record, at this time. */
static void expect(struct perfring_deferral *deferral, const struct pack *pack, const struct perfring_format *format,
		   uint64_t time)
{
	struct perfring_item item = {NULL, NULL, 0};

	cr_assert_eq(perfring_deferral_next(deferral, &item), 1, "time %d", (int)time);
	cr_assert_eq(item.time, time);
	cr_assert(item.format == format);
	cr_assert_eq(item.record->size, pack->size, "%u bytes, not %zu", item.record->size, pack->size);
	cr_assert_eq(memcmp(item.record, pack->bytes, pack->size), 0);
}

static void expect_nothing(struct perfring_deferral *deferral)
{
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_next(deferral, &item), 0);
}

static struct pack one, two, wanted;

/* As Linux 6.19 writes it: the kernel part, then the pair; later the user part behind its marker. */
Test(callchain, a_sample_is_completed)
{
	const uint64_t chain[] = {KERN, 0xffffffff81000010, 0xffffffff81000020, DEFER, UINT64_C(3) << 48 | 9};
	const uint64_t ips[] = {USR, 0x401000, 0x402000};
	const uint64_t whole[] = {KERN, 0xffffffff81000010, 0xffffffff81000020, USR, 0x401000, 0x402000};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	item = sample(&one, &formats[0], 8, 100, chain, 5);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	memset(one.bytes, 0xee, one.size); /* it was copied */
	expect_nothing(deferral);
	item = rest(&one, 8, 200, UINT64_C(3) << 48 | 9, ips, 3);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	memset(one.bytes, 0xee, one.size);
	sample(&wanted, &formats[0], 8, 100, whole, 6);
	expect(deferral, &wanted, &formats[0], 100);
	expect_nothing(deferral);
	/* The same again completes nothing. */
	item = rest(&one, 8, 300, UINT64_C(3) << 48 | 9, ips, 3);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	expect_nothing(deferral);
	cr_assert_eq(perfring_deferral_unmatched(deferral), 1);
	cr_assert_eq(perfring_deferral_incomplete(deferral), 0);
	perfring_deferral_close(deferral);
	perfring_deferral_close(NULL);
}

/* Whatever the two parts say themselves, one USER marker stands in front of the user part. */
Test(callchain, one_user_marker)
{
	static const struct {
		uint64_t chain[6];
		uint64_t ips[4];
		uint64_t whole[8];
		size_t nr, ips_nr, whole_nr;
	} cases[] = {
		{{KERN, 10, DEFER, 1}, {USR, 20, 21}, {KERN, 10, USR, 20, 21}, 4, 3, 5},
		{{KERN, 10, DEFER, 1}, {20, 21}, {KERN, 10, USR, 20, 21}, 4, 2, 5},
		{{KERN, 10, DEFER, 1}, {USR, USR, 21}, {KERN, 10, USR, 21}, 4, 3, 4},
		{{DEFER, 1}, {USR, 20}, {USR, 20}, 2, 2, 2},
		{{DEFER, 1}, {20}, {USR, 20}, 2, 1, 2},
		{{KERN, 10, DEFER, 1}, {0}, {KERN, 10, USR}, 4, 0, 3},
		{{KERN, 10, DEFER, 1}, {USR}, {KERN, 10, USR}, 4, 1, 3},
		/* Markers of others are left where they are. */
		{{10, DEFER, 1}, {KERN, 20}, {10, USR, KERN, 20}, 3, 2, 4},
	};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		item = sample(&one, &formats[0], 8, i, cases[i].chain, cases[i].nr);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		item = rest(&one, 8, 200, 1, cases[i].ips, cases[i].ips_nr);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0, "case %zu", i);
		sample(&wanted, &formats[0], 8, i, cases[i].whole, cases[i].whole_nr);
		expect(deferral, &wanted, &formats[0], i);
		expect_nothing(deferral);
	}
	cr_assert_eq(perfring_deferral_incomplete(deferral), 0);
	perfring_deferral_close(deferral);
}

/* One kernel entry, many samples: all share a cookie, and come out as they came in. */
Test(callchain, several_samples_of_one_cookie)
{
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (uint64_t i = 0; i < 100; i++) {
		const uint64_t chain[] = {KERN, i, DEFER, 5 + i % 2};

		item = sample(&one, &formats[0], 8, i, chain, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	}
	for (uint64_t odd = 2; odd-- > 0;) {
		const uint64_t ips[] = {USR, 30 + odd};

		item = rest(&one, 8, 200, 5 + odd, ips, 2);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		for (uint64_t i = odd; i < 100; i += 2) {
			const uint64_t whole[] = {KERN, i, USR, 30 + odd};

			sample(&wanted, &formats[0], 8, i, whole, 4);
			expect(deferral, &wanted, &formats[0], i);
		}
		expect_nothing(deferral);
	}
	perfring_deferral_close(deferral);
}

Test(callchain, threads_do_not_mix)
{
	const uint64_t chain[] = {KERN, 1, DEFER, 5}, other[] = {KERN, 2, DEFER, 6};
	const uint64_t ips[] = {USR, 30}, ips_other[] = {USR, 40};
	const uint64_t whole[] = {KERN, 1, USR, 30}, whole_other[] = {KERN, 1, USR, 40};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	item = sample(&one, &formats[0], 9, 2, chain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	item = sample(&one, &formats[0], 8, 3, other, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	/* Neither another thread's cookie nor another cookie of the thread. */
	item = rest(&one, 10, 4, 5, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	item = rest(&one, 9, 4, 6, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	expect_nothing(deferral);
	item = rest(&one, 9, 5, 5, ips_other, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	sample(&wanted, &formats[0], 9, 2, whole_other, 4);
	expect(deferral, &wanted, &formats[0], 2);
	expect_nothing(deferral);
	item = rest(&one, 8, 6, 5, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	sample(&wanted, &formats[0], 8, 1, whole, 4);
	expect(deferral, &wanted, &formats[0], 1);
	expect_nothing(deferral);
	cr_assert_eq(perfring_deferral_unmatched(deferral), 2);
	perfring_deferral_close(deferral);
}

/* A deferred record that does not tell its thread: a cookie is one CPU's and one kernel entry's. */
Test(callchain, by_the_cookie_alone)
{
	const uint64_t chain[] = {KERN, 1, DEFER, 5}, other[] = {KERN, 1, DEFER, 6};
	const uint64_t whole[] = {KERN, 1, USR, 30};
	const struct perfring_format *without[] = {&formats[1], NULL};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (size_t i = 0; i < 2; i++) {
		item = sample(&one, &formats[1], 8, 1, chain, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		item = sample(&one, &formats[1], 8, 2, other, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		start(&one, 22, 2);
		word(&one, 5);
		word(&one, 1);
		word(&one, 30);
		item = (struct perfring_item){seal(&one), without[i], 0};
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		sample(&wanted, &formats[1], 8, 1, whole, 4);
		expect(deferral, &wanted, &formats[1], 1);
		expect_nothing(deferral);
		perfring_deferral_flush(deferral);
		sample(&wanted, &formats[1], 8, 2, other, 4);
		expect(deferral, &wanted, &formats[1], 2);
	}
	cr_assert_eq(perfring_deferral_incomplete(deferral), 2);
	cr_assert_eq(perfring_deferral_unmatched(deferral), 0);
	perfring_deferral_close(deferral);
}

Test(callchain, what_is_not_deferred_passes)
{
	const uint64_t chain[] = {KERN, 1, DEFER, 5}, plain[] = {KERN, 1, USR, 5};
	/* A process's words, in each of which no pair is one; a cookie that is not the last; one pair inside another. */
	const uint64_t none[][6] = {
		{USR, 15, DEFER, 1},       {USR, DEFER, 1},          {-UINT64_C(2560), 15, DEFER, 1},
		{USR, 15, KERN, DEFER, 1}, {KERN, 10, DEFER, 1, 20}, {KERN, 10, DEFER, DEFER, 1}};
	const size_t none_nr[] = {4, 3, 4, 5, 5, 5};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	item = sample(&one, &formats[0], 8, 1, plain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	item = sample(&one, &formats[0], 8, 1, plain, 0);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	item = sample(&one, &formats[0], 8, 1, chain, 3);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1, "a marker without its cookie");
	for (size_t i = 0; i < 6; i++) {
		item = sample(&one, &formats[0], 8, 1, none[i], none_nr[i]);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 1, "chain %zu", i);
	}
	for (size_t i = 2; i < 4; i++) {
		item = sample(&one, &formats[i], 8, 1, chain, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 1, "neither a thread nor a chain");
	}
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	item.format = NULL;
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	/* Cut: no part of it can be trusted. */
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	((struct perf_event_header *)(void *)one.bytes)->size -= 8;
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	item = rest(&one, 8, 1, 5, chain, 2);
	((struct perf_event_header *)(void *)one.bytes)->size -= 24;
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	/* Kinds of other numbers, even with the same bytes. */
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	((struct perf_event_header *)(void *)one.bytes)->type = 3;
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	perfring_deferral_flush(deferral);
	expect_nothing(deferral);
	cr_assert_eq(perfring_deferral_incomplete(deferral), 0);
	cr_assert_eq(perfring_deferral_unmatched(deferral), 0);
	perfring_deferral_close(deferral);
}

/* Beyond `most` bytes the oldest gives way; what is left at the end is flushed. */
Test(callchain, squeezed_and_flushed)
{
	struct perfring_deferral *deferral;
	struct perfring_item item;
	uint64_t chain[] = {KERN, 1, DEFER, 0};
	const uint64_t ips[] = {USR, 30}, whole[] = {KERN, 1, USR, 30};

	sample(&one, &formats[0], 8, 0, chain, 4);
	cr_assert_eq(perfring_deferral_open(&deferral, 3 * (one.size + sizeof(struct part))), 0);
	for (uint64_t i = 0; i < 5; i++) {
		chain[3] = 5 + i;
		item = sample(&one, &formats[0], 8, i, chain, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		if (i >= 3) {
			chain[3] = 5 + i - 3;
			sample(&wanted, &formats[0], 8, i - 3, chain, 4);
			expect(deferral, &wanted, &formats[0], i - 3);
		}
		expect_nothing(deferral);
	}
	cr_assert_eq(perfring_deferral_incomplete(deferral), 2);
	/* The rest of one that was squeezed out comes too late; that of the last one does not. */
	item = rest(&one, 8, 9, 5 + 1, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	item = rest(&one, 8, 9, 5 + 4, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	sample(&wanted, &formats[0], 8, 4, whole, 4);
	expect(deferral, &wanted, &formats[0], 4);
	/* Two are left, and there is space for one more. */
	chain[3] = 5 + 5;
	item = sample(&one, &formats[0], 8, 5, chain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	expect_nothing(deferral);
	perfring_deferral_flush(deferral);
	for (uint64_t i = 2; i <= 5; i++) {
		if (i == 4)
			continue;
		chain[3] = 5 + i;
		sample(&wanted, &formats[0], 8, i, chain, 4);
		expect(deferral, &wanted, &formats[0], i);
	}
	expect_nothing(deferral);
	cr_assert_eq(perfring_deferral_incomplete(deferral), 5);
	cr_assert_eq(perfring_deferral_unmatched(deferral), 1);
	perfring_deferral_close(deferral);
	/* One that is too large by itself. */
	cr_assert_eq(perfring_deferral_open(&deferral, one.size + sizeof(struct part) - 1), 0);
	item = sample(&one, &formats[0], 8, 5, chain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	expect(deferral, &one, &formats[0], 5);
	expect_nothing(deferral);
	perfring_deferral_close(deferral);
}

/* A record holds 65528 bytes: with 56 besides the chain, 8184 words; one more and it stays as it is. */
Test(callchain, too_long_with_its_rest)
{
	static uint64_t chain[8192], ips[8192], whole[8192];
	struct perfring_deferral *deferral;
	struct perfring_item item;

	for (size_t i = 0; i < 8192; i++)
		chain[i] = ips[i] = whole[i] = 1000 + i;
	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (size_t longer = 0; longer < 2; longer++) {
		const size_t nr = 4100 + longer, ips_nr = 4085;

		chain[nr - 2] = DEFER;
		chain[nr - 1] = 5;
		memcpy(whole + nr - 1, ips, ips_nr * 8);
		whole[nr - 2] = USR;
		item = sample(&one, &formats[0], 8, 1, chain, nr);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		item = rest(&two, 8, 2, 5, ips, ips_nr);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
		sample(&wanted, &formats[0], 8, 1, whole, nr - 1 + ips_nr);
		cr_assert_eq(wanted.size, 65528 + 8 * longer);
		expect(deferral, longer ? &one : &wanted, &formats[0], 1);
		expect_nothing(deferral);
		cr_assert_eq(perfring_deferral_incomplete(deferral), longer);
		chain[nr - 2] = 1000 + nr - 2;
		chain[nr - 1] = 1000 + nr - 1;
	}
	/* Two parts that do not even fit the space for the words. */
	chain[8180] = DEFER;
	chain[8181] = 5;
	item = sample(&one, &formats[0], 8, 1, chain, 8182);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	item = rest(&two, 8, 2, 5, ips, 8180);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	expect(deferral, &one, &formats[0], 1);
	cr_assert_eq(perfring_deferral_incomplete(deferral), 2);
	perfring_deferral_close(deferral);
}

/* Nothing is lost and nothing leaks when there is no memory; what waited waits on. */
Test(callchain, without_memory)
{
	const uint64_t chain[] = {KERN, 1, DEFER, 5}, ips[] = {USR, 30}, whole[] = {KERN, 1, USR, 30};
	struct perfring_deferral *deferral;
	struct perfring_item item, item_rest;

	for (mallocs_left = 0; mallocs_left < 2; mallocs_left++) {
		long at = mallocs_left;

		cr_assert_eq(perfring_deferral_open(&deferral, 0), -ENOMEM);
		cr_assert_null(deferral);
		mallocs_left = at;
	}
	mallocs_left = -1;
	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	item_rest = rest(&two, 8, 2, 5, ips, 2);
	mallocs_left = 0;
	cr_assert_eq(perfring_deferral_put(deferral, &item), -ENOMEM);
	expect_nothing(deferral);
	mallocs_left = 1;
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	cr_assert_eq(perfring_deferral_put(deferral, &item_rest), -ENOMEM);
	expect_nothing(deferral);
	mallocs_left = -1;
	cr_assert_eq(perfring_deferral_put(deferral, &item_rest), 0);
	sample(&wanted, &formats[0], 8, 1, whole, 4);
	expect(deferral, &wanted, &formats[0], 1);
	expect_nothing(deferral);
	cr_assert_eq(perfring_deferral_incomplete(deferral) + perfring_deferral_unmatched(deferral), 0);
	perfring_deferral_close(deferral);
}

/* Closed with everything in it: waiting, ready, shown, and the words of a rest (for the leak checker). */
Test(callchain, closed_in_the_middle)
{
	const uint64_t chain[] = {KERN, 1, DEFER, 5}, other[] = {KERN, 1, DEFER, 6}, ips[] = {USR, 30};
	struct perfring_deferral *deferral;
	struct perfring_item item;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (int i = 0; i < 6; i++) {
		item = sample(&one, &formats[0], 8, 1, i % 2 ? chain : other, 4);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	}
	item = rest(&one, 8, 2, 5, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	cr_assert_eq(perfring_deferral_next(deferral, &item), 1);
	item = sample(&one, &formats[0], 8, 1, chain, 4);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	item = rest(&one, 8, 2, 5, ips, 2);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	perfring_deferral_close(deferral);
}

/* ---- random streams against a naive model: an array that is searched from its beginning ---- */

static uint64_t state;

/* xorshift64*, by Vigna: a fixed seed, so a failure comes again. */
static uint64_t next(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * UINT64_C(0x2545f4914f6cdd1d) >> 32) % below;
}

enum {
	MODEL = 64
};

struct waits {
	uint64_t number, cookie;
	uint32_t tid;
	size_t nr, size;
	uint64_t chain[8];
};

static struct {
	struct waits waits[MODEL];
	size_t count, held;
	uint64_t incomplete, unmatched;
} model;

static struct waits model_take(size_t i)
{
	struct waits taken = model.waits[i];

	model.held -= taken.size;
	memmove(&model.waits[i], &model.waits[i + 1], (--model.count - i) * sizeof(taken));
	return taken;
}

static void model_put(struct perfring_deferral *deferral, uint64_t number, size_t most)
{
	struct waits waits = {.number = number, .cookie = 1 + next(4), .tid = 8 + (uint32_t)next(3)};
	size_t frames = next(4);
	struct perfring_item item;

	waits.chain[waits.nr++] = KERN;
	for (size_t i = 0; i < frames; i++)
		waits.chain[waits.nr++] = next(100);
	waits.chain[waits.nr++] = DEFER;
	waits.chain[waits.nr++] = waits.cookie;
	item = sample(&one, &formats[0], waits.tid, number, waits.chain, waits.nr);
	waits.size = one.size + sizeof(struct part);
	cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	model.waits[model.count++] = waits;
	model.held += waits.size;
	while (model.held > most) {
		waits = model_take(0);
		model.incomplete++;
		sample(&wanted, &formats[0], waits.tid, waits.number, waits.chain, waits.nr);
		expect(deferral, &wanted, &formats[0], waits.number);
	}
}

static void model_rest(struct perfring_deferral *deferral)
{
	uint64_t cookie = 1 + next(4), ips[4] = {USR, next(100), next(100), next(100)};
	uint32_t tid = 8 + (uint32_t)next(3);
	size_t nr = 1 + next(4), from = next(2);
	bool names_thread = next(4), matched = false;
	struct perfring_item item = rest(&one, tid, 1, cookie, ips + from, nr - from);
	int taken;

	if (!names_thread) {
		item.format = &formats[1];
		one.size -= 16;
		seal(&one);
	}
	taken = perfring_deferral_put(deferral, &item);
	for (size_t i = 0; i < model.count;) {
		struct waits waits = model.waits[i];

		if (waits.cookie != cookie || (names_thread && waits.tid != tid)) {
			i++;
			continue;
		}
		model_take(i);
		matched = true;
		memcpy(&waits.chain[waits.nr - 2], ips, nr * 8);
		sample(&wanted, &formats[0], waits.tid, waits.number, waits.chain, waits.nr - 2 + nr);
		expect(deferral, &wanted, &formats[0], waits.number);
	}
	model.unmatched += !matched;
	cr_assert_eq(taken, !matched);
}

Test(callchain, random_streams)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct perfring_deferral *deferral;
		size_t most;

		state = seed * UINT64_C(0x9e3779b97f4a7c15);
		most = 60 + next(6000);
		memset(&model, 0, sizeof(model));
		cr_assert_eq(perfring_deferral_open(&deferral, most), 0);
		for (uint64_t i = 0; i < 1000; i++) {
			if (next(8))
				model_put(deferral, i, most);
			else
				model_rest(deferral);
			expect_nothing(deferral);
		}
		perfring_deferral_flush(deferral);
		while (model.count) {
			struct waits waits = model_take(0);

			model.incomplete++;
			sample(&wanted, &formats[0], waits.tid, waits.number, waits.chain, waits.nr);
			expect(deferral, &wanted, &formats[0], waits.number);
		}
		expect_nothing(deferral);
		cr_assert_eq(perfring_deferral_incomplete(deferral), model.incomplete);
		cr_assert_eq(perfring_deferral_unmatched(deferral), model.unmatched);
		perfring_deferral_close(deferral);
	}
}

/* 1 MiB of samples all waiting with one cookie, each of a thread of its own, and as many deferred records that find
 * none: a list would take minutes. */
Test(callchain, many_wait_and_few_are_found, .timeout = 30)
{
	const uint64_t chain[] = {DEFER, 5}, ips[] = {30};
	struct perfring_deferral *deferral;
	struct perfring_item item;
	uint32_t waiting = 16000;

	cr_assert_eq(perfring_deferral_open(&deferral, 0), 0);
	for (uint32_t tid = 0; tid < waiting; tid++) {
		item = sample(&one, &formats[0], tid, tid, chain, 2);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 0);
	}
	for (uint32_t i = 0; i < 2000000; i++) {
		item = rest(&one, waiting + i, 1, 5, ips, 1);
		cr_assert_eq(perfring_deferral_put(deferral, &item), 1);
	}
	cr_assert_eq(perfring_deferral_unmatched(deferral), 2000000);
	perfring_deferral_close(deferral);
}
